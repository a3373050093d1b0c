"""Sentence pairs of a file: what `derivlang pair` wrote, or pairs of a user's own in the same form.

    PREFIX.source, PREFIX.derived, perhaps PREFIX.pharaoh     sentences, words between white space; links `0-1 2-0`
    FILE.parquet                                              lists of words `source` and `tokens`, perhaps `links`

The left side is text of the source language, the right side of the derived language, each in its own word order. If a
side does not fit into half a row, both sides are cut in proportion, at words. A pair with an empty side is left out.
Word links become links between all sub-words of both words.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.align.bitext import WordLists, encode_lines
from derivlang.align.links import Links, check_range, parse_lines
from derivlang.core.arrays import Int64, Ints, expand_ranges, lengths_of, offsets_of, owners
from derivlang.core.arrow import to_numpy
from derivlang.core.errors import DataError, parse_errors
from derivlang.formats.opening import open_lines
from derivlang.lexical.encoding import Encoded, lift_links
from derivlang.store.shards import read_parquet
from derivlang.training.batch import Pieces
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.streams.pair_source import PairLinks, PairSource

PARTS = ("source", "derived", "pharaoh")


@dataclass(frozen=True, slots=True, eq=False)
class PairFile:
    """The sentence pairs of a file. links: between words, or None. sha256: hash of the files.

    spoken: int8[N] for each side, the language of each word; None: the language of the side.
    """

    source: WordLists
    derived: WordLists
    links: Links | None
    sha256: str
    spoken: tuple[Ints, Ints] | None = None


def read_pairs(path: Path, links_file: Path | None = None, names: tuple[str, ...] = ()) -> PairFile:
    """Read a Parquet file or text files. Raise DataError if one is missing or damaged, or if they do not fit.

    links_file: Pharaoh links in place of those that belong to the pairs. names: of both sides, for PREFIX.en and
    PREFIX.fr, which are read if there is no PREFIX.source. PREFIX.gold is then read rather than PREFIX.pharaoh.
    """
    if path.suffix == ".parquet":
        files, (source, derived, links) = [path], _parquet(path)
    else:
        files = [Path(f"{path}.{part}") for part in PARTS[:2]]
        if names and not files[0].exists():
            files = [Path(f"{path}.{name}") for name in names]
        source, derived = (encode_lines([line for _, line in open_lines(file)]) for file in files)
        links, beside = None, [Path(f"{path}.{part}") for part in (*(["gold"] if names else []), PARTS[2])]
        links_file = links_file or next((file for file in beside if file.exists()), None)
    if links_file is not None:
        files.append(links_file)
        links = parse_lines([line for _, line in open_lines(links_file)], str(links_file))
    sizes = [lengths_of(side.offsets) for side in (source, derived)]
    if len(sizes[0]) != len(sizes[1]):
        raise DataError(
            f"has {len(sizes[0]):,} source sentences, but {len(sizes[1]):,} derived ones",
            where=str(path),
            fix="line n of one file must belong to line n of the other",
            id="lengths",
        )
    if links is not None:
        check_range(links, sizes[0], sizes[1], str(files[-1]))
    digest = sha256(b"".join(sha256(file.read_bytes()).digest() for file in files)).hexdigest()
    return PairFile(source, derived, links, digest)


def _parquet(path: Path) -> tuple[WordLists, WordLists, Links | None]:
    with parse_errors(str(path), "Parquet file"):
        table = read_parquet(path)
        table.validate(full=True)
    columns = {}
    for name in ("source", "tokens"):
        if name not in table.column_names or table.schema.field(name).type != pa.list_(pa.string()):
            raise DataError(
                f"has no column {name!r} of lists of words",
                where=str(path),
                fix="write it with derivlang pair --format parquet, or name PREFIX of PREFIX.source and PREFIX.derived",
                id="pairs",
            )
        lists = table.column(name).combine_chunks()
        if lists.null_count or lists.values.null_count:
            raise DataError(f"the column {name!r} has empty values", where=str(path), id="pairs")
        columns[name] = WordLists.of(lists.flatten(), offsets_of(to_numpy(lists.value_lengths()).astype(np.int64)))
    links = None
    if "links" in table.column_names:
        with parse_errors(str(path), "column of links", id="pairs"):
            lists = table.column("links").combine_chunks()
            ends = np.asarray(lists.flatten().flatten().to_pylist(), np.int64).reshape(-1, 2)
            rows = owners(offsets_of(to_numpy(lists.value_lengths()).astype(np.int64))).astype(np.int64)
            if len(rows) != len(ends) or (ends < 0).any():
                raise ValueError("a link is not a pair of positions")
            links = Links.of(rows, ends[:, 0].astype(np.int32), ends[:, 1].astype(np.int32), len(lists))
    return columns["source"], columns["tokens"], links


class FilePairs(PairSource):
    """The pairs of a file as sub-words, each side of at most `room` and at least `shortest`."""

    def __init__(
        self,
        file: PairFile,
        languages: Languages,
        room: int,
        shortest: int = 1,
        of: tuple[int, int] = (SOURCE, DERIVED),
    ):
        """Encode the pairs. of: the language of each side, by number."""
        self.special_ids, self._spoken = languages.special_ids, file.spoken
        sides, readers = (file.source, file.derived), [languages.readers[number].tokenizer for number in of]
        source, derived = (r.encode(s.types, s.codes, s.offsets) for r, s in zip(readers, sides, strict=True))
        encoded = source, derived
        starts = np.stack([e.offsets[s.offsets[:-1]] for e, s in zip(encoded, sides, strict=True)], axis=1)
        whole = np.stack([lengths_of(e.offsets[s.offsets]) for e, s in zip(encoded, sides, strict=True)], axis=1)
        kept = np.stack([_cut(e, starts[:, i], whole, i, room) for i, e in enumerate(encoded)], axis=1)
        some = np.flatnonzero((kept >= shortest).all(axis=1))
        if not len(some):
            least = f" of {shortest} or more sub-words per side" if shortest > 1 else ""
            raise DataError(f"holds no sentence pair{least}", where="--pairs", id="no-pair-fits")
        self._encoded, self._starts, self.sizes = encoded, starts[some], kept[some]
        self.languages = np.tile(np.array(of, np.int64), (len(some), 1))
        if file.spoken is not None:  # of a sentence and its copy
            self.languages[:] = file.spoken[0][file.source.offsets[:-1][some]][:, None]
        words = file.source.offsets, file.derived.offsets
        self.linked = PairLinks(np.zeros((2, 0), np.int64), np.zeros(len(some) + 1, np.int64))
        if file.links is not None:
            self.linked = lifted(file.links, words, encoded, starts, kept, some)
        self.facts = {
            "sentences": len(whole),
            "cut_sentences": int((kept < whole).any(axis=1).sum()),
            "short_pairs": len(whole) - len(some),
            "sha256": file.sha256,
        }

    def side(self, pairs: Int64, side: int) -> Pieces:
        starts, sizes, encoded = self._starts[pairs, side], self.sizes[pairs, side], self._encoded[side]
        at = expand_ranges(starts, sizes)
        words = np.searchsorted(encoded.offsets, at, "right") - 1
        first = np.searchsorted(encoded.offsets, starts, "right") - 1
        spoken = np.repeat(self.languages[pairs, side], sizes) if self._spoken is None else self._spoken[side][words]
        return Pieces(
            encoded.ids[at].astype(np.int64),
            words - np.repeat(first, sizes),
            spoken.astype(np.int8),
            np.zeros(len(at), bool),
        )


def _cut(encoded: Encoded, starts: Int64, whole: Int64, side: int, room: int) -> Int64:
    """Return int64[P]: the number of sub-words that a side keeps.

    sizes 30 and 20, room 15: the sides keep at most 15 and 10, and end before the word that this would cut.
    """
    longest = np.maximum(whole.max(axis=1), 1)
    limit = np.minimum(whole[:, side], np.maximum(whole[:, side] * room // longest, 1))
    limit = np.where(longest <= room, whole[:, side], limit)
    edge = encoded.offsets[np.searchsorted(encoded.offsets, starts + limit, "right") - 1] - starts
    return np.where((limit < whole[:, side]) & (edge > 0), edge, limit)


def lifted(
    links: Links, words: tuple[Int64, Int64], encoded: tuple[Encoded, Encoded], starts: Int64, kept: Int64, some: Int64
) -> PairLinks:
    """Return links of words as links of the sub-words that are kept. A word of 2 linked to one of 1  ->  2 links.

    words: int64[P + 1], word offsets of the pairs, and encoded: sub-words, of each side. starts, kept: int64[P, 2],
    first sub-word of each side and number of those that are kept. some: int64[K], the pairs that are kept.
    """
    pair = owners(links.offsets)
    ends = np.stack([words[0][pair] + links.source, words[1][pair] + links.target], axis=1)
    subword_links = lift_links(ends, *encoded)
    row = np.searchsorted(starts[:, 0], subword_links[:, 0], "right") - 1
    subword_links -= starts[row]
    number = np.full(len(kept), -1)
    number[some] = np.arange(len(some))
    there = (number[row] >= 0) & (subword_links < kept[row]).all(axis=1)
    return PairLinks(subword_links[there].T, offsets_of(np.bincount(number[row][there], minlength=len(some))))
