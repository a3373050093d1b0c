"""What `case` and `agree` share: the suffixes of arguments, by case system and number.

              singular  plural      nom-acc            erg-abs
    first       kar      kon        subjects           subjects of transitive clauses
    second      kin      ker        objects            objects, and other subjects
    third       kan      kre        indirect objects   indirect objects

Source: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356): suffixes and systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.batch import Batch
from derivlang.core.spec import param
from derivlang.syntax.arguments import OBJECT, SUBJECT, Arguments, arguments_of
from derivlang.transforms.features import FEATS, has_features

SUFFIXES = ("kar", "kon", "kin", "ker", "kan", "kre")
System: TypeAlias = Literal["nom-acc", "erg-abs"]


def number_param() -> Any:
    """Declare the parameter `number`."""
    return param(True, "whether the plural has suffixes of its own, by the feature Number", draws=False)


def number_remedy(missing: Sequence[str]) -> str:
    """Return what to do where a batch lacks features, which are needed for number only."""
    return "add number=no, or take a treebank in CoNLL-U with features" if missing == [FEATS] else ""


class Marked(NamedTuple):
    """Arguments and the numbers of their suffixes in SUFFIXES, int64[n]."""

    arguments: Arguments
    codes: Int64


def marked(batch: Batch, system: str, *, number: bool) -> Marked:
    """Return the arguments of a batch and their suffixes. system: nom-acc or erg-abs."""
    found = arguments_of(batch)
    case = found.role
    if system == "erg-abs":
        case = np.where((case == SUBJECT) & ~found.transitive, OBJECT, case)
    return Marked(found, 2 * case + plurals(batch, found.word, number=number))


def plurals(batch: Batch, words: Int64, *, number: bool) -> Int64:
    """Return int64[n]: 1 for words in the plural, 0 for others; without number all are 0."""
    return has_features(batch, ["Number=Plur"])[words].astype(np.int64) if number else np.zeros_like(words)
