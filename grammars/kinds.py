"""Kinds of dependents that a language has and English lacks, or the reverse: why a word-order feature stays far.

A feature is one relation, and a language may divide its dependents into kinds that have orders of their own. Chinese
aspect markers and modals are both `aux`; the first follow the verb. English has no dependents of that kind, so no
weight of a label can move the right share of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.formats import conllu
from derivlang.grammar.treebank import words_of_tables
from tools.word_order import flags_of_words, governors

# Of (form, relation, FEATS, relations of the head's other dependents without subtypes).
Test = Callable[[str, str, str, Collection[str]], bool]


@dataclass(frozen=True)
class Kind:
    """name: a phrase after "share of the dependents". why: a sentence on what differs. is_one: whether a word is one."""

    name: str
    why: str
    is_one: Test


KINDS = {
    ("ar", "subject"): Kind(
        "beside an auxiliary or a subordinator",
        "Beside an auxiliary or a subordinator half of the Arabic subjects come first, and English has more of both.",
        lambda form, relation, feats, beside: not {"aux", "mark"}.isdisjoint(beside),
    ),
    ("cy", "demonstrative"): Kind(
        "beside another determiner",
        "A Welsh demonstrative stands with the article (*y llyfr hwn*, the book this), so the model of Welsh learns its"
        " order beside one; English demonstratives stand without one, and so do the articles that precede.",
        lambda form, relation, feats, beside: "det" in beside,
    ),
    ("de", "numeral"): Kind(
        "a year",
        "A year follows its noun (*im Jahr 2010*), other numerals precede. English years are seldom `nummod`.",
        lambda form, relation, feats, beside: len(form) == 4 and form.isdecimal() and "1000" <= form < "2100",
    ),
    ("zh", "adposition"): Kind(
        "a localiser, `case:loc`",
        "Localisers follow their noun, prepositions precede. English has only prepositions.",
        lambda form, relation, feats, beside: relation == "case:loc",
    ),
    ("zh", "auxiliary"): Kind(
        "an aspect marker, `Aspect=`",
        "Aspect markers (了, 著, 過) follow the verb, modals and the passive marker precede. English has no marker of the"
        " first kind.",
        lambda form, relation, feats, beside: "Aspect=" in feats,
    ),
}


def count(paths: Iterable[Path], feature: str, kind: Kind) -> dict[str, list[int]]:
    """Return {"kind": [number, of which before the head], "others": …} of the dependents of a feature in some files."""
    names = ("tokens", "upos", "deprel", "feats")
    heads, offsets, columns = words_of_tables((rows.table for path in paths for rows in conllu.read(path)), names)
    governor = governors(heads, offsets)
    relations = [relation.partition(":")[0] for relation in columns["deprel"]]
    dependents: dict[int, list[int]] = {}
    for word in np.flatnonzero(heads > 0).tolist():
        dependents.setdefault(int(governor[word]), []).append(word)
    out = {"kind": [0, 0], "others": [0, 0]}
    for word in np.flatnonzero(flags_of_words(heads, offsets, columns)[feature]).tolist():
        beside = {relations[other] for other in dependents[int(governor[word])] if other != word}
        is_one = kind.is_one(columns["tokens"][word], columns["deprel"][word], columns["feats"][word], beside)
        row = out["kind" if is_one else "others"]
        row[0] += 1
        row[1] += bool(word < governor[word])
    return out


def counts(name: str, far: Iterable[str], own: list[Path], english: list[Path]) -> dict[str, Any]:
    """Return {feature: {"own": count, "english": count}} of the far features of a grammar that have kinds."""
    return {
        feature: {"own": count(own, feature, kind), "english": count(english, feature, kind)}
        for feature in far
        if (kind := KINDS.get((name, feature)))
    }
