"""agree: suffixes on the verb for its subject, object and indirect object.

    agree:subj+obj           she gave him apples .        ->   she gavekarker him apples .
    agree:subj               the boys have slept .        ->   the boys have sleptkon .
    agree:subj:on=aux        the boys have slept .        ->   the boys havekon slept .
    agree:iobj:system=erg-abs

The verb gets the suffixes of its arguments (`suffixes.py`), sorted and joined: the head of the clause if it is a verb,
else the copula, else the last auxiliary. With `on=aux` it is the last auxiliary, else the copula, else the verb. A
clause without any of these has no suffix. An outer subject is the argument of the outer copula (`syntax/outer.py`). The
number is the argument's, as in `case`; a relative word without the feature Number is singular. Words with suffixes have
no inverse, so `undo` reads the stored source.

The released program marks the main verb; it has the rule for auxiliaries, too, and does not use it. It does not mark an
xcomp, and its verbs agree with the noun of a relative clause.
Source: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), polypersonal agreement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.words import Words, numbers_of
from derivlang.core.lexicon import Lexicon
from derivlang.core.spec import param
from derivlang.syntax.arguments import INDIRECT, OBJECT, SUBJECT, Arguments
from derivlang.transforms.base import Transform
from derivlang.transforms.features import FEATS
from derivlang.transforms.forms import LEMMAS, Forms, with_lemmas, with_suffixes
from derivlang.transforms.suffixes import SUFFIXES, System, marked, number_param, number_remedy

_ARGUMENTS = {"subj": SUBJECT, "obj": OBJECT, "iobj": INDIRECT}


@dataclass(frozen=True, kw_only=True)
class Agree(Transform):
    """Agreement: suffixes on the verb for its subject, object and indirect object."""

    name = "agree"
    injective = False
    rule_version = 2

    arguments: str = param(
        "subj+obj", "arguments to agree with: subj, obj and iobj", positional=True, draws=False, file=False
    )
    system: System = param("nom-acc", "case system of the suffixes", draws=False)
    on: Literal["verb", "aux"] = param("verb", "word with the suffixes: the verb, or its last auxiliary", draws=False)
    stem: Literal["form", "lemma"] = param("form", "what has the suffixes: the word, or its lemma", draws=False)
    number: bool = number_param()

    def validate(self) -> None:
        """Raise UsageError for other names than arguments; sort them, so that equal transforms have equal specs."""
        names = self.arguments.split("+")
        if not set(names) <= _ARGUMENTS.keys() or len(set(names)) < len(names):
            raise UsageError(
                f"agree: {self.arguments!r} names no arguments of a verb",
                where="--t",
                fix="give some of subj, obj and iobj, each once: agree:subj+obj",
                id="bad-value",
            )
        object.__setattr__(self, "arguments", "+".join(name for name in _ARGUMENTS if name in names))

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Trees, and what number and stem read."""
        return ("head", "upos", *([FEATS] if self.number else []), *([LEMMAS] if self.stem == "lemma" else []))

    def remedy(self, missing: Sequence[str], layers: Collection[str]) -> str:
        """Return what to do where a batch lacks layers."""
        return number_remedy(missing)

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the forms, verbs with the suffixes of their arguments."""
        found = marked(batch, self.system, number=self.number)
        wanted = np.isin(found.arguments.role, [_ARGUMENTS[name] for name in self.arguments.split("+")])
        at = _bearers(batch, found.arguments, self.on)[found.arguments.head]
        wanted &= at >= 0
        at, codes = at[wanted], np.array(_BY_SOUND, np.int64)[found.codes[wanted]]
        if self.stem == "lemma":
            forms = with_lemmas(forms, batch, np.unique(at), before)
        # One suffix after the other, the first of each verb, then the second …
        by = np.lexsort((codes, at))
        at, codes = at[by], codes[by]
        rank = np.arange(len(at)) - np.searchsorted(at, at, "left")
        for turn in range(int(rank.max(initial=-1)) + 1):
            some = rank == turn
            forms = with_suffixes(forms, at[some], codes[some], string_array(sorted(SUFFIXES)))
        return forms


# The place of each suffix among the sorted ones.
_BY_SOUND = [sorted(SUFFIXES).index(suffix) for suffix in SUFFIXES]


# What may bear the suffixes of a clause, the first choice first.
_BEARERS = {"verb": ("verb", "cop", "aux"), "aux": ("aux", "cop", "verb")}
_RELATIONS = {"cop": "cop", "aux": "aux", "auxpass": "aux"}


def _bearers(batch: Batch, found: Arguments, on: str) -> Int64:
    """Return int64[N]: the word that bears the suffixes of the clause that each word heads, -1 if it has none."""
    tags = batch.layers["upos"]
    assert isinstance(tags, Words)
    is_verb = numbers_of(tags, lambda tag: tag in ("VERB", "AUX")) > 0
    kinds = np.array([_RELATIONS.get(name.partition(":")[0], "") for name in found.relations])[found.relation]
    out = np.full(batch.n_words, -1)
    for kind in reversed(_BEARERS[on]):  # the last one assigned stays
        words = np.flatnonzero(is_verb if kind == "verb" else (kinds == kind) & (found.parent >= 0))
        out[words if kind == "verb" else found.parent[words]] = words
    return out
