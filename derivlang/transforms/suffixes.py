"""Suffixes of arguments on the arguments themselves (`case`), or on their verbs (`agree`).

              singular  plural      nom-acc            erg-abs
    first       kar      kon        subjects           subjects of transitive clauses
    second      kin      ker        objects            objects, and other subjects
    third       kan      kre        indirect objects   indirect objects

Words with suffixes have no inverse, so `undo` reads the stored source.
The suffixes and systems are from Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356). In place of a system, `case`
takes a table with a suffix of the singular and one of the plural for relations:

    relation	singular	plural
    nsubj	kar	kon
    obj	kin	ker               nsubj covers nsubj:pass unless that has a row of its own
    obl	loc                       one suffix: both numbers have it
    vocative		en              an empty one: no suffix in that number

Lines that begin with `#` are comments; the header may be left out.

Arguments: the subjects, objects and indirect objects of a batch's trees, with their number.

The relations are UD v2's (and v1's); words with other relations are not arguments:

    subject          nsubj, nsubj:pass, nsubj:outer (nsubjpass)
    object           obj (dobj)
    indirect object  iobj

A clause with an object is transitive: its head has a dependent that is one. The head of an outer subject is its copula
(`lifting.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, owners
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words, numbers_of
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.schema import V2_RELATIONS
from derivlang.core.spec import Named, param
from derivlang.formats.opening import read_text
from derivlang.formats.places import once_per_version
from derivlang.syntax.forest import forest_of
from derivlang.syntax.lifting import with_outer_copulas
from derivlang.syntax.words import see
from derivlang.transforms.base import Forms, Transform
from derivlang.transforms.forms import FEATS, LEMMAS, has_features, with_lemmas, with_suffixes

SUBJECT, OBJECT, INDIRECT = range(3)
ROLES = {"nsubj": SUBJECT, "nsubjpass": SUBJECT, "obj": OBJECT, "dobj": OBJECT, "iobj": INDIRECT}
SUFFIXES = ("kar", "kon", "kin", "ker", "kan", "kre")
System: TypeAlias = Literal["nom-acc", "erg-abs"]
_SYSTEMS = (*get_args(System), "none")
_ARGUMENTS = {"subj": SUBJECT, "obj": OBJECT, "iobj": INDIRECT}
# The place of each suffix among the sorted ones.
_BY_SOUND = [sorted(SUFFIXES).index(suffix) for suffix in SUFFIXES]
# What may bear the suffixes of a clause, the first choice first.
_BEARERS = {"verb": ("verb", "cop", "aux"), "aux": ("aux", "cop", "verb")}
_RELATIONS = {"cop": "cop", "aux": "aux", "auxpass": "aux"}
_HEADER = "relation\tsingular\tplural"


@dataclass(frozen=True, kw_only=True)
class SuffixTransform(Transform):
    """A transform that adds suffixes by the argument's role and number."""

    stem: Literal["form", "lemma"] = param("form", "what has the suffix: the word, or its lemma", draws=False)
    number: bool = param(True, "whether the plural has suffixes of its own, by the feature Number", draws=False)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Trees, and what number and stem read."""
        return ("head", "upos", *([FEATS] if self.number else []), *([LEMMAS] if self.stem == "lemma" else []))

    def remedy(self, missing: Sequence[str], layers: Collection[str]) -> str:
        """Return what to do where a batch lacks features, which are needed for number only."""
        return "add number=no, or take a treebank in CoNLL-U with features" if missing == [FEATS] else ""


@dataclass(frozen=True, kw_only=True)
class Agree(SuffixTransform):
    """Agreement: suffixes on the verb for its subject, object and indirect object.

        agree:subj+obj           she gave him apples .        ->   she gavekarker him apples .
        agree:subj               the boys have slept .        ->   the boys have sleptkon .
        agree:subj:on=aux        the boys have slept .        ->   the boys havekon slept .
        agree:iobj:system=erg-abs

    The verb gets the suffixes of its arguments, sorted and joined: the head of the clause if it is a verb, else the
    copula, else the last auxiliary. With `on=aux` it is the last auxiliary, else the copula, else the verb. A clause
    without any of these has no suffix. An outer subject is the argument of the outer copula (`syntax/lifting.py`). The
    number is the argument's, as in `case`; a relative word without the feature Number is singular.

    The released program marks the main verb; it has the rule for auxiliaries, too, and does not use it. It does not
    mark an xcomp, and its verbs agree with the noun of a relative clause.
    Source: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), polypersonal agreement.
    """

    name = "agree"
    rule_version = 2

    arguments: str = param(
        "subj+obj", "arguments to agree with: subj, obj and iobj", positional=True, draws=False, file=False
    )
    system: System = param("nom-acc", "case system of the suffixes", draws=False)
    on: Literal["verb", "aux"] = param("verb", "word with the suffixes: the verb, or its last auxiliary", draws=False)

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

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the forms, verbs with the suffixes of their arguments."""
        found, codes = marked(batch, self.system, number=self.number)
        wanted = np.isin(found.role, [_ARGUMENTS[name] for name in self.arguments.split("+")])
        at = _bearers(batch, found, self.on)[found.head]
        wanted &= at >= 0
        at, codes = at[wanted], np.array(_BY_SOUND, np.int64)[codes[wanted]]
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


@dataclass(frozen=True, kw_only=True)
class Case(SuffixTransform):
    """Case: suffixes on subjects, objects and indirect objects.

        case:nom-acc                 she gave him apples .   ->   shekar gave himkan applesker .
        case:nom-acc:stem=lemma      she gave him apples .   ->   shekar gave hekan appleker .
        case:nom-acc:suffix=free     she gave him apples .   ->   she kar gave him kan apples ker .
        case:erg-abs                 she sleeps .            ->   shekin sleeps .
        case:TABLE.tsv               relations and their suffixes in a file of your own
        case:none                    no suffix: the control

    The number is the word's (`Number=Plur` of its features); number=no takes the singular everywhere, and then the
    source needs no features. A table gives each relation its suffix, arguments or not. Free suffixes are inserted
    words.
    Sources: Ravfogel, Goldberg and Linzen 2019 (NAACL, N19-1356), fused suffixes on lemmas; Bisazza, Üstün and Sportel
    2021 (TACL 9), case with fixed and free orders.
    """

    name = "case"
    rule_version = 2

    system: str = param(
        "nom-acc", "nom-acc, erg-abs, none, or a file with a table of suffixes", positional=True, draws=False,
        file=Named(lambda: _SYSTEMS),
    )  # fmt: skip
    suffix: Literal["fused", "free"] = param("fused", "suffixes: part of the word, or words after it", draws=False)

    def validate(self) -> None:
        """Raise DataError for a broken file, before any source is read."""
        self._table()

    def _table(self) -> SuffixTable | None:
        return None if self.system in _SYSTEMS else read_suffixes(self.system)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """Trees, and what number and stem read; nothing without suffixes."""
        return () if self.system == "none" else super().needs

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
    def resources(self) -> tuple[str, ...]:
        """The fingerprint of the table."""
        table = self._table()
        return () if table is None else (f"suffixes {table.fingerprint}",)

    def _marked(self, batch: Batch) -> tuple[Int64, Int64, pa.Array]:
        """Return (the words with a suffix int64[n], its number int64[n], the suffixes as Arrow strings)."""
        table = self._table()
        if table is None:
            arguments, codes = marked(batch, self.system, number=self.number)
            return arguments.word, codes, string_array(SUFFIXES)
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


def marked(batch: Batch, system: str, *, number: bool) -> tuple[Arguments, Int64]:
    """Return the arguments of a batch and the numbers of their suffixes in SUFFIXES, int64[n]."""
    found = arguments_of(batch)
    case = found.role
    if system == "erg-abs":
        case = np.where((case == SUBJECT) & ~found.transitive, OBJECT, case)
    return found, 2 * case + plurals(batch, found.word, number=number)


def plurals(batch: Batch, words: Int64, *, number: bool) -> Int64:
    """Return int64[n]: 1 for words in the plural, 0 for others; without number all are 0."""
    return has_features(batch, ["Number=Plur"])[words].astype(np.int64) if number else np.zeros_like(words)


def _bearers(batch: Batch, found: Arguments, on: str) -> Int64:
    """Return int64[N]: the word that bears the suffixes of the clause that each word heads, -1 if it has none."""
    is_verb = numbers_of(batch.layer("upos", Words), lambda tag: tag in ("VERB", "AUX")) > 0
    kinds = np.array([_RELATIONS.get(name.partition(":")[0], "") for name in found.relations])[found.relation]
    out = np.full(batch.n_words, -1)
    for kind in reversed(_BEARERS[on]):  # the last one assigned stays
        words = np.flatnonzero(is_verb if kind == "verb" else (kinds == kind) & (found.parent >= 0))
        out[words if kind == "verb" else found.parent[words]] = words
    return out


@dataclass(frozen=True, slots=True)
class SuffixTable:
    """The suffixes of relations. rows: (singular, plural) by relation."""

    rows: Mapping[str, tuple[str, str]]

    @property
    def fingerprint(self) -> str:
        """The hash of the suffixes, whatever the order of the rows."""
        return sha256(repr(sorted(self.rows.items())).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def suffixes(self) -> pa.Array:
        """Arrow strings [2 R]: the singular and the plural of each row."""
        return string_array([suffix for row in self.rows.values() for suffix in row])

    def codes(self, relations: Sequence[str]) -> Int64:
        """Return int64[n]: the number of each relation's singular among `suffixes`, -1 for one without a suffix."""
        places = {name: 2 * number for number, name in enumerate(self.rows)}
        return np.array([places.get(name, places.get(name.partition(":")[0], -1)) for name in relations], np.int64)


@once_per_version
def read_suffixes(file: Path) -> SuffixTable:
    """Return the table of a file.

    Raises DataError missing-file, encoding, and suffix-table: no row, a line with other columns, a relation that is not
    one of UD v2, or that comes twice.
    """
    rows: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(read_text(file).splitlines(), 1):
        if not line.strip() or line.startswith("#") or (not rows and line == _HEADER):
            continue
        relation, *suffixes = line.split("\t")
        if len(suffixes) not in (1, 2) or any(one != "".join(one.split()) for one in suffixes):
            raise _broken(file, number, f"{line[:60]!r} is not a relation and its suffixes, separated by tabs")
        if relation.partition(":")[0] not in V2_RELATIONS:
            raise _broken(file, number, f"{relation[:60]!r} is not a relation of UD v2")
        if relation in rows:
            raise _broken(file, number, f"the relation {relation!r} comes twice")
        rows[relation] = (suffixes[0], suffixes[-1])
    if not any(map("".join, rows.values())):
        raise _broken(file, 1, "the file has no suffix")
    return SuffixTable(rows)


def _broken(file: Path, number: int, what: str) -> DataError:
    return DataError(what, where=f"{file}:{number}", fix="give lines as nsubj<TAB>kar<TAB>kon", id="suffix-table")


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The n arguments of a batch of N words, in the order of the words.

    word: int64[n]. head: int64[n], the word that each depends on. role: int64[n], SUBJECT, OBJECT or INDIRECT.
    transitive: bool[n], whether the clause has an object. parent: int64[N], -1 for roots, and relation: int32[N], codes
    into relations: the trees in which the heads are these.
    """

    word: Int64
    head: Int64
    role: Int64
    transitive: Bool
    parent: Int64
    relation: Int32
    relations: tuple[str, ...]


def arguments_of(batch: Batch) -> Arguments:
    """Return the arguments of a batch with trees."""
    tree = batch.layer("head", Tree)
    forest, relation, relations = with_outer_copulas(
        forest_of(tree.head, batch.unit_words, batch.sentences),
        tree.deprel.codes,
        [name or "_" for name in tree.deprel.values.to_pylist()],
    )
    parent = forest.parent
    role = np.array([ROLES.get(name.partition(":")[0], -1) for name in relations])[relation]
    word = np.flatnonzero((role >= 0) & (parent >= 0))
    head, role = parent[word], role[word]
    has_object = np.zeros(batch.n_words, bool)
    has_object[head[role == OBJECT]] = True
    return Arguments(word, head, role, has_object[head], parent, relation, relations)
