"""Word-order features of trees: ten pairs of a head and a dependent, most of them chapters of the World Atlas.

The value of a feature is the share of such dependents before their head: in a treebank as it stands, or expected
under a model. The expectation is exact: P(x before the head) is the sum over all sets left of the head with x in
them, over Z.

    old cat of Ann      ADJ&amod @NOUN&@ PROPN&nmod      adjective: 1 of 1 before; genitive: 0 of 1

So that a feature is one construction in all languages, these are left out: subjects, objects and genitives that are
pronouns (clitics in some); subjects and objects of heads that are not verbs (copular clauses); auxiliaries of heads
that are neither verbs nor verbal nouns; case markers that are not ADP (English 's, Chinese de); infinitive markers
(PART). Source: Dryer and Haspelmath (eds.) 2013, *The World Atlas of Language Structures Online*, chapters 82 to 94.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.grammar import exact
from derivlang.grammar.families import Families, families_of_trees
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.subtypes import marked
from derivlang.grammar.treebank import words_of_tables
from derivlang.grammar.weights import Float

_NOUNS = ("NOUN", "PROPN")
_VERBAL = ("VERB", "VerbForm=Vnoun")


def _is_relative(upos: str, relation: str, _: str) -> bool:
    return upos == "VERB" and relation == "acl:relcl"


def _is_demonstrative(_upos: str, _relation: str, feats: str) -> bool:
    return "PronType=Dem" in feats.split("|")


@dataclass(frozen=True, slots=True)
class OrderFeature:
    """A kind of dependent. chapter: of the atlas, "" without one.

    relation: without subtype. tags: UPOS of the dependent. heads: UPOS of the head or a feature in its FEATS; empty:
    all. marked: test of (UPOS, relation, FEATS) in place of the test of the UPOS, in treebanks where a dependent passes
    it.
    """

    name: str
    chapter: str
    relation: str
    tags: tuple[str, ...]
    heads: tuple[str, ...] = ()
    marked: Callable[[str, str, str], bool] | None = None


FEATURES = (
    OrderFeature("subject", "82A", "nsubj", _NOUNS, ("VERB",)),
    OrderFeature("object", "83A", "obj", _NOUNS, ("VERB",)),
    OrderFeature("adposition", "85A", "case", ("ADP",), _NOUNS),
    OrderFeature("genitive", "86A", "nmod", _NOUNS, _NOUNS),
    OrderFeature("adjective", "87A", "amod", ("ADJ",), _NOUNS),
    OrderFeature("relative clause", "90A", "acl", ("VERB",), _NOUNS, _is_relative),
    OrderFeature("numeral", "89A", "nummod", ("NUM",), _NOUNS),
    OrderFeature("demonstrative", "88A", "det", ("DET",), _NOUNS, _is_demonstrative),
    OrderFeature("auxiliary", "", "aux", ("AUX",), _VERBAL),
    OrderFeature("subordinator", "94A", "mark", ("SCONJ", "ADP")),
)
FEWEST = 20  # dependents of a kind, for a share


@dataclass(frozen=True, eq=False)
class OrderSample:
    """The families of some trees, and the members of each feature: bool[M] for each of `FEATURES`."""

    families: Families
    flags: tuple[Bool, ...]

    def take(self, chosen: Bool) -> OrderSample:
        """Return some of the families, bool[F], with their flags."""
        members = np.repeat(chosen, lengths_of(self.families.offsets))
        return OrderSample(self.families.take(chosen), tuple(flags[members] for flags in self.flags))


def sample_of_tables(tables: Iterable[pa.Table]) -> OrderSample:
    """Return the sample of tables with the columns head, upos, deprel and feats; punctuation is left out."""
    heads, offsets, columns = words_of_tables(tables, ("upos", "deprel", "feats"))
    families, words = families_of_trees(heads, offsets, *marked(columns["upos"], columns["deprel"], columns["feats"]))
    is_dependent = np.ones(len(words), bool)
    is_dependent[families.head_places] = False
    flags = flags_of_words(heads, offsets, columns)
    return OrderSample(families, tuple(flag[words] & is_dependent for flag in flags))


def flags_of_words(heads: Int32, offsets: Int64, columns: Mapping[str, Sequence[str]]) -> list[Bool]:
    """Return bool[N] for each of `FEATURES`: the words that are such dependents. columns: upos, deprel and feats."""
    upos, deprel, feats = columns["upos"], columns["deprel"], columns["feats"]
    governor = governors(heads, offsets)
    tags, plain = np.array(upos), np.array([relation.partition(":")[0] for relation in deprel])
    flags = []
    for feature in FEATURES:
        related = (heads > 0) & (plain == feature.relation)
        if feature.heads:
            is_head = np.isin(tags, feature.heads)
            is_head |= [not set(feature.heads).isdisjoint(values.split("|")) for values in feats]
            related &= is_head[governor]
        flag = related & np.isin(tags, feature.tags)
        if feature.marked is not None:
            passes = np.zeros(len(related), bool)
            which = np.flatnonzero(related)
            passes[which] = [feature.marked(upos[word], deprel[word], feats[word]) for word in which.tolist()]
            flag = passes if passes.any() else flag
        flags.append(flag)
    return flags


def governors(heads: Int32, offsets: Int64) -> Int64:
    """Return int64[N]: the index of each word's head among all words; 0 for roots.

    heads [2, 0, 2, 0] of sentences of two words -> [1, 0, 3, 0]
    """
    return np.where(heads > 0, np.repeat(offsets[:-1], np.diff(offsets)) + heads - 1, 0)


def observed(sample: OrderSample) -> list[tuple[int, float]]:
    """Return (number, share before the head) of each feature; nan without any."""
    return _shares(sample, _as_it_stands(sample.families))


def expected(model: OrderModel, sample: OrderSample) -> list[tuple[int, float]]:
    """Return (number, expected share before the head) of each feature; nan without any.

    Families too large to be exact are left out. Those whose head class has no model count as they stand.
    """
    families = sample.families
    before = _as_it_stands(families)
    before[np.repeat(model.modelled(families), lengths_of(families.offsets))] = np.nan
    for at, local, _ in model.exact_parts(families):
        heads = families.head_places[at] - families.offsets[at]
        index = np.arange(local.n_dependents)[:, None]
        before[families.offsets[at] + index + (index >= heads)] = exact.before_head(local)
    return _shares(sample, before)


def standardised(own: OrderSample, other: OrderSample, number: int) -> float:
    """Return the share of a feature before the head in `own` if its contexts were as frequent as in `other`.

    number: of the feature in `FEATURES`. A context is whether the relation has `:pass`, and which of aux, mark and case
    are among the head's other dependents; those that `own` does not have are left out. nan if it has none.
    """
    ours, theirs = _contexts(own, number), _contexts(other, number)
    shared = [context for context in theirs if context in ours]
    total = sum(len(theirs[context]) for context in shared)
    means = {context: sum(ours[context]) / len(ours[context]) for context in shared}
    return sum(len(theirs[c]) * means[c] for c in shared) / total if total else float("nan")


def _contexts(sample: OrderSample, number: int) -> dict[tuple[str, ...], list[bool]]:
    """Return for each context of a feature whether each dependent is before its head."""
    families = sample.families
    flagged = np.flatnonzero(sample.flags[number])
    owner = np.searchsorted(families.offsets, flagged, "right") - 1
    relations = [token.partition("&")[2].partition(":")[0] for token in families.tokens]
    contexts: dict[tuple[str, ...], list[bool]] = {}
    for member, family in zip(flagged.tolist(), owner.tolist(), strict=True):
        others = [at for at in range(families.offsets[family], families.offsets[family + 1]) if at != member]
        around = {relations[families.members[at]] for at in others} & {"aux", "mark", "case"}
        passive = "pass" if families.tokens[families.members[member]].endswith(":pass") else ""
        contexts.setdefault((passive, *sorted(around)), []).append(bool(member < families.head_places[family]))
    return contexts


def _as_it_stands(families: Families) -> Float:
    """Return float64[M]: 1 for the members before the head of their family."""
    places = np.repeat(families.head_places, lengths_of(families.offsets))
    return (np.arange(len(families.members)) < places).astype(np.float64)


def _shares(sample: OrderSample, before: Float) -> list[tuple[int, float]]:
    out = []
    for flags in sample.flags:
        values = before[flags]
        values = values[~np.isnan(values)]
        out.append((len(values), float(values.mean()) if len(values) else float("nan")))
    return out
