"""A treebank as arrays, to train a parser on and to score it.

Scores of a parser on given words: UPOS, UAS and LAS over all words, with punctuation.

All are percentages of words. UPOS: with the gold tag. UAS: with the gold head. LAS: with the gold head and the gold
relation in full (`nsubj:pass`). LAS universal: the same with relations up to the colon (`nsubj`), which
`conll18_ud_eval.py`, the script of the CoNLL 2018 shared task, calls LAS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, UInt8, offsets_of
from derivlang.core.errors import DataError
from derivlang.formats.conllu import read
from derivlang.parsing.base import UPOS, Parser, Parses


@dataclass(frozen=True, eq=False)
class Treebank:
    """N words, T types, S sentences.

    words: int32[N], codes into types (Arrow strings [T]). sentences: int64[S + 1], word offsets.
    upos: uint8[N], codes into UPOS. head: int32[N], 1-based in the sentence, 0 = root.
    deprel: int32[N], codes into relations.
    """

    words: Int32
    types: pa.Array
    sentences: Int64
    upos: UInt8
    head: Int32
    deprel: Int32
    relations: tuple[str, ...]

    @property
    def n_sentences(self) -> int:
        """S."""
        return len(self.sentences) - 1

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sequence[str]],
        upos: Sequence[Sequence[str]],
        head: Sequence[Sequence[int]],
        deprel: Sequence[Sequence[str]],
    ) -> Treebank:
        """Make a treebank from lists, one a sentence. Raises ValueError for a tag that is not one of UD's 17."""
        flat = pa.array([word for sentence in sentences for word in sentence], pa.string()).dictionary_encode()
        names = sorted({name for row in deprel for name in row})
        code = {name: i for i, name in enumerate(names)}
        return cls(
            words=flat.indices.to_numpy(zero_copy_only=False).astype(np.int32),
            types=flat.dictionary,
            sentences=offsets_of(np.array([len(sentence) for sentence in sentences], np.int64)),
            upos=np.array([UPOS.index(tag) for row in upos for tag in row], np.uint8),
            head=np.array([h for row in head for h in row], np.int32),
            deprel=np.array([code[name] for row in deprel for name in row], np.int32),
            relations=tuple(names),
        )


def read_treebank(path: Path) -> Treebank:
    """Read the trees of a CoNLL-U file. Raises DataError upos for a tag that UD does not have, and as `conllu.read`."""
    columns: dict[str, list[list[Any]]] = {"tokens": [], "upos": [], "head": [], "deprel": []}
    for rows in read(path):
        for name, lists in columns.items():
            lists += rows.table.column(name).to_pylist()
    for number, tags in enumerate(columns["upos"]):
        for tag in tags:
            if tag not in UPOS:
                raise DataError(
                    f"sentence {number + 1} has the tag {tag!r}, which is not one of UD's: {' '.join(UPOS)}",
                    where=str(path),
                    fix="use a treebank of Universal Dependencies, version 2",
                    id="upos",
                )
    return Treebank.of(columns["tokens"], columns["upos"], columns["head"], columns["deprel"])


def score(parser: Parser, bank: Treebank) -> dict[str, float]:
    """Parse the words of a treebank; return {"words": N, "UPOS": %, "UAS": %, "LAS": %, "LAS universal": %}."""
    return compare(parser.parse(bank.words, bank.types, bank.sentences), bank)


def compare(parses: Parses, gold: Treebank) -> dict[str, float]:
    """Return the scores of given parses."""
    head = parses.head == gold.head
    label = _same(parses, gold, full=True)
    universal = _same(parses, gold, full=False)
    correct = {
        "UPOS": parses.upos == gold.upos,
        "UAS": head,
        "LAS": head & label,
        "LAS universal": head & universal,
    }
    n = max(len(head), 1)
    return {"words": len(head), **{name: round(100 * float(right.sum()) / n, 2) for name, right in correct.items()}}


def _same(parses: Parses, gold: Treebank, *, full: bool) -> Bool:
    """Return bool[N], whether the relations are the same: in full, or up to the colon."""
    ours, theirs = (
        np.array([name if full else name.partition(":")[0] for name in names], object)
        for names in (parses.relations, gold.relations)
    )
    equal = ours[:, None] == theirs[None, :]
    return np.asarray(equal[parses.deprel, gold.deprel], bool)


def mask_rare(bank: Treebank, training: Treebank, most: int = 1) -> Treebank:
    """Return the treebank with `<unk>` for words seen at most `most` times in training, regardless of case."""
    counts: dict[str, int] = {}
    for word, n in zip(
        training.types.to_pylist(), np.bincount(training.words, minlength=len(training.types)).tolist(), strict=True
    ):
        counts[word.lower()] = counts.get(word.lower(), 0) + n
    words = bank.types.to_pylist()
    rare = np.array([counts.get(word.lower(), 0) <= most for word in words], bool)
    codes: Int32 = np.where(rare[bank.words], np.int32(len(words)), bank.words).astype(np.int32)
    return Treebank(
        codes,
        pa.array([*words, "<unk>"], pa.string()),
        bank.sentences,
        bank.upos,
        bank.head,
        bank.deprel,
        bank.relations,
    )
