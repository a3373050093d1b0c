"""case: suffixes of case on subjects, objects and indirect objects.

    case:nom-acc                 she gave him apples .   ->   shekar gave himkan applesker .
    case:nom-acc:stem=lemma      she gave him apples .   ->   shekar gave hekan appleker .
    case:nom-acc:suffix=free     she gave him apples .   ->   she kar gave him kan apples ker .
    case:erg-abs                 she sleeps .            ->   shekin sleeps .
    case:TABLE.tsv               relations and their suffixes in a file of your own (`suffix_table.py`)
    case:none                    no suffix: the control

`suffixes.py` has the systems, `syntax/arguments.py` the relations. The number is the word's (`Number=Plur` of its
features); number=no takes the singular everywhere, and then the source needs no features. A table gives each relation
its suffix, arguments or not. Words with suffixes have no inverse, so `undo` reads the stored source; free suffixes are
inserted words.
Sources: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), fused suffixes on lemmas; Bisazza, Üstün and Sportel 2021
(TACL 9), case with fixed and free orders.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, owners
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.core.spec_files import Named
from derivlang.syntax.words import see
from derivlang.transforms.base import Transform
from derivlang.transforms.features import FEATS
from derivlang.transforms.forms import LEMMAS, Forms, with_lemmas, with_suffixes
from derivlang.transforms.suffix_table import SuffixTable, read_suffixes
from derivlang.transforms.suffixes import SUFFIXES, System, marked, number_param, number_remedy, plurals

_NAMES = (*get_args(System), "none")


@dataclass(frozen=True, kw_only=True)
class Case(Transform):
    """Case: suffixes on subjects, objects and indirect objects."""

    name = "case"
    rule_version = 2

    system: str = param(
        "nom-acc", "nom-acc, erg-abs, none, or a file with a table of suffixes", positional=True, draws=False,
        file=Named(lambda: _NAMES),
    )  # fmt: skip
    suffix: Literal["fused", "free"] = param("fused", "suffixes: part of the word, or words after it", draws=False)
    stem: Literal["form", "lemma"] = param("form", "what has the suffix: the word, or its lemma", draws=False)
    number: bool = number_param()

    def validate(self) -> None:
        """Raise DataError for a broken file, before any source is read."""
        self._table()

    def _table(self) -> SuffixTable | None:
        return None if self.system in _NAMES else read_suffixes(self.system)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Trees, and what number and stem read."""
        if self.system == "none":
            return ()
        return ("head", "upos", *([FEATS] if self.number else []), *([LEMMAS] if self.stem == "lemma" else []))

    def remedy(self, missing: Sequence[str], layers: Collection[str]) -> str:
        """Return what to do where a batch lacks layers."""
        return number_remedy(missing)

    @property
    def has_order(self) -> bool:
        """Whether suffixes are words."""
        return not self.is_permutation

    @property
    def is_permutation(self) -> bool:  # type: ignore[override]
        """Whether no suffix is a word."""
        return self.suffix == "fused" or self.system == "none"

    @property
    def has_forms(self) -> bool:
        """Whether words change."""
        return self.system != "none" and (self.suffix == "fused" or self.stem == "lemma")

    @property
    def injective(self) -> bool:  # type: ignore[override]
        """Whether no word changes."""
        return not self.has_forms

    @property
    def resources(self) -> tuple[str, ...]:
        """The fingerprint of the table."""
        table = self._table()
        return () if table is None else (f"suffixes {table.fingerprint}",)

    def _marked(self, batch: Batch) -> tuple[Int64, Int64, pa.Array]:
        """Return (the words with a suffix int64[n], its number int64[n], the suffixes as Arrow strings)."""
        table = self._table()
        if table is None:
            found = marked(batch, self.system, number=self.number)
            return found.arguments.word, found.codes, string_array(SUFFIXES)
        seen = see(batch)
        codes = table.codes(seen.relations)[seen.relation]
        words = np.flatnonzero(codes >= 0)
        codes = codes[words] + plurals(batch, words, number=self.number)
        some = to_numpy(pc.not_equal(table.suffixes, scalar("")))[codes]  # an empty suffix is not a word
        return words[some], codes[some], table.suffixes

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order with free suffixes as words of their own."""
        order = super().order(batch, draws)
        if self.is_permutation:
            return order
        words, codes, suffixes = self._marked(batch)
        owner = owners(batch.sentences)[words]
        in_tail = words >= (batch.sentences[1:] - batch.tails)[owner]
        more = np.bincount(owner[in_tail], minlength=len(batch.tails)).astype(np.int32)  # in the tail of each sentence
        return replace(order, tails=batch.tails + more).with_words(
            words + 1, owner, suffixes.take(to_arrow(codes)), words
        )

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the forms, arguments as lemmas and with fused suffixes."""
        words, codes, suffixes = self._marked(batch)
        if self.stem == "lemma":
            forms = with_lemmas(forms, batch, words, before)
        return with_suffixes(forms, words, codes, suffixes) if self.suffix == "fused" else forms
