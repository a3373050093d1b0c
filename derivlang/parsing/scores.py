"""Scores of a parser on given words: UPOS, UAS and LAS over all words, with punctuation.

All are percentages of words. UPOS: with the gold tag. UAS: with the gold head. LAS: with the gold head and the gold
relation in full (`nsubj:pass`). LAS universal: the same with relations up to the colon (`nsubj`), which
`conll18_ud_eval.py`, the script of the CoNLL 2018 shared task, calls LAS.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32
from derivlang.parsing.base import Parser, Parses
from derivlang.parsing.treebank import Treebank


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
