"""Sentence pairs with links: the exact ones, those that an aligner finds, or links from a file.

    gold             of the order, between sub-words; of pairs of a file, those that belong to it
    hmm, eflomal     found by an aligner (align/) in all pairs of the run, between words
    FILE             Pharaoh links of the pairs of --pairs, a line per pair, between words

    DATA/links-HASH/links.pharaoh        an aligner's links, a line per pair; its name depends on the pairs

An aligner sees the words of both sides of the rows and nothing of the pipeline. A link between words becomes links
between all sub-words of both words.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.align.align import INSTALL, AlignOptions, align_bitext
from derivlang.align.bitext import Bitext, WordLists
from derivlang.align.links import Links, check_range, parse_lines
from derivlang.core.arrays import Int64, lengths_of, offsets_of
from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import open_lines
from derivlang.formats.progress import stage
from derivlang.lexical.encoding import Encoded
from derivlang.training.batch import Pieces
from derivlang.training.data_folder import Make
from derivlang.training.languages import Languages
from derivlang.training.prepare import Prepared
from derivlang.training.streams.base import ALIGNERS, GOLD
from derivlang.training.streams.bitext import FilePairs, lifted
from derivlang.training.streams.pair_source import PairSource
from derivlang.training.streams.pairs import SentencePairs

LINKS = "links.pharaoh"


@dataclass(frozen=True, kw_only=True)
class LinkedPairs(SentencePairs):
    """Sentences and their derived forms, with links. kind: gold, hmm, eflomal or a file of links."""

    links: bool = True
    kind: str = GOLD

    def source(self, prepared: Prepared, links_file: Path | None = None) -> PairSource:
        """Return the pairs. Raise DataError if they have no link, UsageError for links of a file without pairs."""
        file = None if self.kind in (GOLD, *ALIGNERS) else Path(self.kind)
        if file is not None and not prepared.pair_files:
            raise UsageError(
                f"{file} has links of the pairs of a file, but the pairs come from the corpus",
                where="--objective",
                fix="give these pairs with --pairs, or links=hmm",
                id="unused-option",
            )
        pairs = super().source(prepared, file)
        if self.kind in ALIGNERS:
            pairs = AlignedPairs(pairs, self.kind, prepared.languages, prepared.made)
        if isinstance(pairs, FilePairs | AlignedPairs) and not pairs.linked.ends.size:
            raise DataError(
                "its sentence pairs have no links",
                where=str(file or next(iter(prepared.pair_files.values()), "--parallel")),
                fix="give Pharaoh links (PREFIX.pharaoh, or links=FILE), e.g. of derivlang align train, or links=hmm",
                id="no-links",
            )
        return pairs


def check_kind(kind: str, parameter: str) -> None:
    """Raise UsageError for a kind of links that is neither known nor a file. parameter: its name, for the message."""
    if kind not in (GOLD, *ALIGNERS) and not Path(kind).is_file():
        raise UsageError(
            f"{parameter}={kind} is neither {GOLD}, {', '.join(ALIGNERS)} nor a file that is there",
            where="--objective",
            fix="give a file of Pharaoh links, a line per pair, e.g. of derivlang align train",
            id="missing-file",
        )


class AlignedPairs(PairSource):
    """Other pairs with the links of an aligner, made unless they are in the folder."""

    def __init__(self, pairs: PairSource, model: str, languages: Languages, make: Make):
        self.pairs, self.special_ids = pairs, pairs.special_ids
        self.sizes, self.languages = pairs.sizes, pairs.languages
        (source, ours), (derived, theirs) = (_words(pairs, side, languages) for side in range(2))
        links, digest = _links((source, derived), model, make)
        starts = np.stack([offsets_of(self.sizes[:, side])[:-1] for side in range(2)], axis=1)
        self.linked = lifted(
            links, (source.offsets, derived.offsets), (ours, theirs), starts, self.sizes, np.arange(len(self.sizes))
        )
        both = sha256(f"{pairs.facts.get('sha256')} {digest}".encode()).hexdigest()
        self.facts = {**pairs.facts, "aligner": model, "links": len(links.source), "sha256": both}

    def side(self, pairs: Int64, side: int) -> Pieces:
        return self.pairs.side(pairs, side)


def _words(pairs: PairSource, side: int, languages: Languages) -> tuple[WordLists, Encoded]:
    """Return the words of a side as an aligner sees them, neighbouring sub-words of one word as text; their sub-words.

    sub-words we low er</w> of the words 0 1 1  ->  words "we", "lower"
    """
    tokens = pairs.side(np.arange(len(pairs.sizes)), side)
    starts = offsets_of(pairs.sizes[:, side])
    begins = np.ones(len(tokens.ids), bool)
    begins[1:] = tokens.words[1:] != tokens.words[:-1]
    begins[starts[:-1]] = True
    first = np.append(np.flatnonzero(begins), len(begins))
    entries = languages.entries
    parts = [entries[i] for i in tokens.ids.tolist()]
    words = pa.array(["".join(parts[i:j]) for i, j in pairwise(first.tolist())], pa.string())
    return WordLists.of(words, np.searchsorted(first, starts)), Encoded(tokens.ids.astype(np.int32), first)


def _links(sides: tuple[WordLists, WordLists], model: str, make: Make) -> tuple[Links, str]:
    """Return the links of an aligner between words, and the hash of their file."""
    source, derived = sides
    bitext = Bitext(source, derived)
    digest = sha256("\n".join((model, *source.types.to_pylist(), "", *derived.types.to_pylist())).encode())
    for array in (source.codes, source.offsets, derived.codes, derived.offsets):
        digest.update(array.tobytes())

    def write(fresh: Path) -> None:
        if model == "eflomal" and find_spec("eflomal") is None:
            raise UsageError("eflomal is not installed", where="--objective", fix=INSTALL, id="missing-package")
        aligned = align_bitext(bitext, AlignOptions(model))
        with stage("writing links"), (fresh / LINKS).open("wb") as file:
            file.writelines(line.encode() + b"\n" for line in aligned.lines())

    path = make("links", {"aligner": model, "pairs": digest.hexdigest()}, write) / LINKS
    links = parse_lines([line for _, line in open_lines(path)], str(path))
    check_range(links, lengths_of(source.offsets), lengths_of(derived.offsets), str(path))
    return links, sha256(path.read_bytes()).hexdigest()
