"""Files of sentence pairs: two texts with their links, Pharaoh links only, Parquet.

    text      OUT.source, OUT.derived, OUT.pharaoh: a pair per line       pharaoh   OUT: the links of the same lines
    parquet   OUT: pair, key, source, tokens, links (with tokenizers source_ids, ids, subword_links)

Pairs are written a row group at a time. With a tokenizer of each side, `PairEncoder` gives their
sub-words and gold links:

    links of words (i, j)  ->  links of their sub-words, `each` to each or `all` to all (encoding.py)

A word and its transliteration have equally many sub-words under a tokenizer and its twin, and the k-th is linked to the
k-th, as in a word that stays as it is under one tokenizer. Otherwise (a dictionary exchanged words, or the second
tokenizer is not a twin) every sub-word of a word is linked to every sub-word of the other.

Sentence pairs of a batch as ranges of source and derived words, and their gold links.

    source   s0 | s1 | s2       Usually words stay in their sentence: a sentence and its derived form are a pair.
    derived  s0 | s2 s1         Sentences that an order mixes (one tree over both) form one pair together.

The derived text is cut where no source sentence has words on both sides. A pair with an empty side is dropped (all
words deleted, or only inserted words).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core import arrow
from derivlang.core.arrays import Bool, Int32, Int64, UInt64, expand_ranges, owners
from derivlang.core.arrow import decoded, list_array, scalar, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import sequence_keys
from derivlang.core.order import Order
from derivlang.lexical.encoding import Encoded, SubwordEncoder, lift_links
from derivlang.lexical.settings import PairFormat
from derivlang.lexical.tokenizer import Tokenizer, require_source
from derivlang.lexical.twin import check_twin
from derivlang.pipeline import Pipeline
from derivlang.transforms.trans import Trans

_SPACE = "[ \t\n\x0b\x0c\r]"  # at which `align` divides lines
FORMATS: tuple[str, ...] = get_args(PairFormat)
LINKS = pa.list_(pa.list_(pa.field("element", pa.int32(), nullable=False), 2))


IDS = pa.list_(pa.field("element", pa.int32(), nullable=False))


@dataclass(frozen=True, slots=True)
class Pairs:
    """P sentence pairs.

    number: int64[P], position in the split. key: uint64[P]. source, derived: list<dictionary>[P], words as codes into
    types. links: int64[L, 3], pair, source and derived position, sorted by the first two. subwords: with tokenizers,
    the ids of both sides, list<int32>[P], and their links.
    """

    number: Int64
    key: UInt64
    source: pa.Array
    derived: pa.Array
    links: Int64
    subwords: tuple[pa.Array, pa.Array, Int64] | None = None


def files_of(out: Path, kind: PairFormat) -> list[Path]:
    """Return the files that a format writes."""
    if kind == "text":
        return [out.with_name(f"{out.name}.{part}") for part in ("source", "derived", "pharaoh")]
    return [out]


@contextmanager
def writing_pairs(
    streams: Sequence[BinaryIO], kind: PairFormat, *, subwords: bool = False
) -> Iterator[Callable[[Pairs], None]]:
    """Give the function that writes the next pairs in a format. streams: of `files_of`."""
    if kind != "parquet":
        yield partial(_write_lines, streams)
        return
    from pyarrow import parquet

    words = pa.list_(pa.string())
    fields = [("pair", pa.int64()), ("key", pa.uint64()), ("source", words), ("tokens", words), ("links", LINKS)]
    if subwords:
        fields += [("source_ids", IDS), ("ids", IDS), ("subword_links", LINKS)]
    schema = pa.schema(fields)
    writer = parquet.ParquetWriter(streams[0], schema, compression="zstd", compression_level=1)
    try:
        yield lambda pairs: writer.write_table(_table(pairs, schema), max(len(pairs.number), 1))
        writer.close()
    finally:  # after an error pyarrow would try to finish the file later, when it is closed, and print an error
        writer.is_open = False


def holding_space(words: pa.Array) -> Bool:
    """Return bool[N]: the words of list<dictionary>[P] with white space, which a line of text cannot show."""
    coded = words.flatten()
    found: Bool = to_numpy(pc.match_substring_regex(coded.dictionary, _SPACE))[to_numpy(coded.indices)]
    return found


def lines(words: pa.Array) -> list[str]:
    """Return list<dictionary>[P] as lines: words joined by a space, white space inside a word as U+00A0."""
    coded = words.flatten()
    flat = pc.replace_substring_regex(coded.dictionary, _SPACE, "\u00a0").take(coded.indices)
    return list[str](pc.binary_join(pa.ListArray.from_arrays(words.offsets, flat), scalar(" ")).to_pylist())


def link_lines(pairs: Pairs) -> list[str]:
    """Return the links of each pair as `0-0 1-2`: source position, derived position, from 0."""
    pair, source, derived = pairs.links.T
    offsets = np.searchsorted(pair, np.arange(len(pairs.number) + 1))
    texts: list[str] = arrow.link_lines(offsets, source, derived).to_pylist()
    return texts


def _write_lines(streams: Sequence[BinaryIO], pairs: Pairs) -> None:
    """Write the lines of both sides and of the links, or with one stream of the links only."""
    texts = [link_lines(pairs)]
    if len(streams) > 1:
        texts = [lines(pairs.source), lines(pairs.derived), *texts]
    for stream, rows in zip(streams, texts, strict=True):
        stream.write("".join(f"{row}\n" for row in rows).encode())


def _table(pairs: Pairs, schema: pa.Schema) -> pa.Table:
    n = len(pairs.number)
    source, derived = decoded(pairs.source), decoded(pairs.derived)
    columns = [to_arrow(pairs.number), to_arrow(pairs.key), source, derived, _column(pairs.links, n)]
    if pairs.subwords is not None:
        ours, theirs, links = pairs.subwords
        columns += [ours.cast(IDS), theirs.cast(IDS), _column(links, n)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(links: Int64, n: int) -> pa.Array:
    """Return the links of n pairs as an array of type LINKS."""
    ends = to_arrow(links[:, 1:].astype(np.int32).ravel())
    two: Any = pa.FixedSizeListArray.from_arrays(ends, type=LINKS.value_type)
    offsets = np.searchsorted(links[:, 0], np.arange(n + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(to_arrow(offsets), two, type=LINKS)


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """The tokenizers of both sides. how: the method by which `lift_links` links sub-words."""

    source: SubwordEncoder
    derived: SubwordEncoder
    how: Literal["each", "all"]

    @classmethod
    def load(cls, folders: tuple[Path, Path], pipeline: Pipeline) -> PairEncoder:
        """Read the tokenizers of the source and of the derived language of a pipeline.

        Raise DataError if the first is a twin, StoreError for a twin of another tokenizer or script, UsageError for a
        twin that cannot encode the derived words.
        """
        ours, theirs = map(Tokenizer.load, folders)
        require_source(ours, str(folders[0]))
        lexical = [t for t in pipeline.transforms if t.has_lexicon]
        maps = [t for t in lexical if isinstance(t, Trans)]
        if theirs.recipe["kind"] == "twin":
            if keeps := [t for t in maps if t.overlap]:
                raise UsageError(
                    f"{keeps[0]} keeps words of the source, which the twin's own vocabulary lacks",
                    where="--twin",
                    fix="leave out --tokenizer and --twin, or give a set without an overlap",
                    id="tokenizer",
                )
            if len(maps) != 1:
                raise UsageError(
                    f"a twin is of one trans, but the set's transforms are {pipeline}",
                    where="--twin",
                    fix="give a tokenizer of the derived language: derivlang tokenizer train SET",
                    id="tokenizer",
                )
            fix = "give the tokenizer that the twin was made of, and a twin made with the set's own trans"
            check_twin(theirs, ours, maps[0].stored, folders[1], fix)
            alike = len(lexical) == 1
        else:
            alike = not lexical and theirs.fingerprint() == ours.fingerprint()
        return cls(SubwordEncoder(ours), SubwordEncoder(theirs), "each" if alike else "all")

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of both tokenizers."""
        return [side.tokenizer.fingerprint() for side in (self.source, self.derived)]

    def encode(self, pairs: Pairs) -> tuple[pa.Array, pa.Array, Int64]:
        """Return the ids of both sides, and the gold links of their sub-words."""
        source, derived = _subwords(self.source, pairs.source), _subwords(self.derived, pairs.derived)
        sides = [to_numpy(side.offsets).astype(np.int64) for side in (pairs.source, pairs.derived)]
        # Links count words in their pair; `lift_links` takes words counted over all pairs.
        pair, i, j = pairs.links.T
        lifted = lift_links(np.stack([i + sides[0][pair], j + sides[1][pair]], 1), source, derived, self.how)
        starts = [encoded.offsets[words] for words, encoded in zip(sides, (source, derived), strict=True)]
        # starts[0] [0, 3, 5]: the sub-words 0 1 2 are of pair 0, 3 and 4 of pair 1.
        pair = np.searchsorted(starts[0], lifted[:, 0], "right") - 1
        gold = np.stack([pair, lifted[:, 0] - starts[0][pair], lifted[:, 1] - starts[1][pair]], 1)
        ids = [list_array(start, to_arrow(side.ids)) for start, side in zip(starts, (source, derived), strict=True)]
        return ids[0], ids[1], by_source(gold)

    def count(self, ids: Sequence[pa.Array], counts: dict[str, int]) -> None:
        """Add the numbers of sub-words and of unknown ones to `counts`. ids: of both sides."""
        for side, encoder, lists in zip(("source", "derived"), (self.source, self.derived), ids, strict=True):
            flat = to_numpy(lists.flatten())
            counts[side] += len(flat)
            counts[f"{side}_unknown"] += int((flat == encoder.tokenizer.unknown).sum())


def _subwords(encoder: SubwordEncoder, words: pa.Array) -> Encoded:
    """Return the sub-words of the words of list<string>[P]."""
    coded = words.flatten()
    return encoder.types(coded.dictionary).take(to_numpy(coded.indices))


def segments(source: Batch, derived: Batch, order: Order) -> Int64:
    """Return int64[P, 5]: unit, source begin and end, and derived begin and end of the sentence pairs of a batch.

    They are sorted by unit, then position. The units of both sides have the same numbers.

    An example, with a cut where highest before < lowest, 0 0 | 2 1 2 | 3:

        source sentence of each derived word   0 0 2 1 2 3
        highest so far                         0 0 2 2 2 3
        lowest from here on                    0 0 1 1 2 3

    Position 2 begins a pair, as the highest before it (0) is below the lowest from there on (1). Position 3 does not: 2
    is not below 1. Source sentences 1 and 2 form one pair.
    """
    units = derived.unit_words
    n = len(order.index)
    if n == 0 or source.n_words == 0:
        return np.zeros((0, 5), np.int64)
    kept = order.index >= 0
    unit = owners(units)
    sentence = np.where(kept, owners(source.sentences)[np.where(kept, order.index, 0)], -1)
    if not kept.all():
        sentence = _with_inserted(sentence, kept, unit)
    highest = np.maximum.accumulate(sentence)
    # -1 (a unit of only inserted words) must not count as the lowest for the words before it.
    lowest = np.minimum.accumulate(np.where(sentence < 0, np.iinfo(np.int32).max, sentence)[::-1])[::-1]
    first = np.ones(n, bool)
    first[1:] = (highest[:-1] < lowest[1:]) | (unit[1:] != unit[:-1])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], n)
    # low is -1 in a unit of only inserted words. What `source.sentences` gives for it is dropped in the last line.
    low, high = np.minimum.reduceat(sentence, begin), np.maximum.reduceat(sentence, begin)
    pairs = np.stack([unit[begin], source.sentences[low], source.sentences[high + 1], begin, end], axis=1)
    return pairs[(low >= 0) & (np.add.reduceat(kept, begin) > 0)].astype(np.int64)


def segment_keys(source: Batch, pairs: Int64) -> UInt64:
    """Return uint64[P]: the content keys of the pairs' source words. pairs: as from `segments`."""
    _, begin, end, _, _ = pairs.T
    sizes = end - begin
    words = source.words[expand_ranges(begin, sizes)]
    return sequence_keys(source.type_hashes[words], np.concatenate([[0], np.cumsum(sizes)]))


def by_source(links: Int64) -> Int64:
    """Return links, int64[L, 3], by pair, then source position; links of one position keep their order."""
    return np.asarray(links[np.lexsort((links[:, 1], links[:, 0]))])


def links_of(order: Order, pairs: Int64) -> Int64:
    """Return int64[L, 3]: pair, source and derived position of the links (index[j], j) inside the pairs.

    Inserted and deleted words have none.

    index [2, 1, 0, 4, 3] of two pairs with 3 and 2 words on both sides  ->  2-0 1-1 0-2 and 1-0 0-1
    """
    _, source_begin, _, begin, end = pairs.T
    sizes = end - begin
    place = expand_ranges(begin, sizes)
    pair = np.repeat(np.arange(len(pairs)), sizes)
    kept = order.index[place] >= 0
    place, pair = place[kept], pair[kept]
    return np.stack([pair, order.index[place] - source_begin[pair], place - begin[pair]], axis=1)


def _with_inserted(sentence: Int64, kept: Bool, unit: Int32) -> Int64:
    """Return the sentences with the sentences of inserted words filled in.

    sentence: int64[M], -1 at inserted words. An inserted word belongs to the sentence of the word before it in its
    unit, else of the word after it; in a unit of inserted words only it stays -1.

        sentence -1 0 -1 1 | -1 in two units  ->  0 0 0 1 | -1
    """
    at = np.arange(len(sentence))
    before = np.maximum.accumulate(np.where(kept, at, -1))
    after = np.minimum.accumulate(np.where(kept, at, len(at))[::-1])[::-1]
    # np.maximum: before the first kept word there is -1, which would read the last unit.
    has_before = (before >= 0) & (unit[np.maximum(before, 0)] == unit)
    last = np.minimum(after, len(at) - 1)
    has_after = (after < len(at)) & (unit[last] == unit)
    filled = np.where(has_before, sentence[np.maximum(before, 0)], np.where(has_after, sentence[last], -1))
    return np.asarray(filled, np.int64)
