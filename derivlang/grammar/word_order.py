"""Word-order features of trees: ten pairs of a head and a dependent, most of them chapters of the World Atlas.

The value of a feature is the share of such dependents before their head: in a treebank as it stands, or expected
under a model. The expectation is exact: P(x before the head) is the sum over all sets left of the head with x in
them, over Z.

    old cat of Ann      ADJ&amod @NOUN&@ PROPN&nmod      adjective: 1 of 1 before; genitive: 0 of 1

So that a feature is one construction in all languages, these are left out: subjects, objects and genitives that are
pronouns (clitics in some); subjects and objects of heads that are no verbs (copular clauses); auxiliaries of heads that
are neither verbs nor verbal nouns; case markers that are not ADP (English 's, Chinese de); infinitive markers (PART).
Source: Dryer and Haspelmath (eds.) 2013, *The World Atlas of Language Structures Online*, chapters 82 to 94.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, lengths_of
from derivlang.grammar import exact
from derivlang.grammar.families import Families, families_of_trees
from derivlang.grammar.local import Local
from derivlang.grammar.order_model import OrderModel
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
    all. marked: test of (UPOS, relation, FEATS) in place of that of the UPOS, in treebanks where a dependent passes it.
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
    """The families of some trees, and which members are of which feature: bool[M] for each of `FEATURES`."""

    families: Families
    flags: tuple[Bool, ...]

    def take(self, chosen: Bool) -> OrderSample:
        """Return some of the families, bool[F], with their flags."""
        members = np.repeat(chosen, lengths_of(self.families.offsets))
        return OrderSample(self.families.take(chosen), tuple(flags[members] for flags in self.flags))


def sample_of_tables(tables: Iterable[pa.Table]) -> OrderSample:
    """Return the sample of tables with the columns head, upos, deprel and feats; punctuation is left out."""
    heads, offsets, columns = words_of_tables(tables, ("upos", "deprel", "feats"))
    upos, deprel, feats = columns["upos"], columns["deprel"], columns["feats"]
    families, words = families_of_trees(heads, offsets, upos, deprel)
    start = np.repeat(offsets[:-1], np.diff(offsets))
    governor = np.where(heads > 0, start + heads - 1, 0)
    tags, plain = np.array(upos), np.array([relation.partition(":")[0] for relation in deprel])
    is_dependent = np.ones(len(words), bool)
    is_dependent[families.head_places] = False
    flags = []
    for feature in FEATURES:
        related = (heads > 0) & (plain == feature.relation)
        if feature.heads:
            is_head = np.isin(tags, feature.heads)
            is_head |= [not set(feature.heads).isdisjoint(values.split("|")) for values in feats]
            related &= is_head[governor]
        found = related & np.isin(tags, feature.tags)
        if feature.marked is not None:
            marked = np.zeros(len(related), bool)
            which = np.flatnonzero(related)
            marked[which] = [feature.marked(upos[word], deprel[word], feats[word]) for word in which]
            found = marked if marked.any() else found
        flags.append(found[words] & is_dependent)
    return OrderSample(families, tuple(flags))


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
        before[families.offsets[at] + index + (index >= heads)] = before_head(local)
    return _shares(sample, before)


def before_head(local: Local) -> Float:
    """Return float64[d, b]: the probability that each dependent stands before its head."""
    tables = exact.chains(local)
    out = _share_of_sets(tables.splits, tables.total)
    narrow = tables.narrow()
    if narrow.size:
        tables = exact.chains(local.take(narrow), dtype=np.longdouble)
        out[:, narrow] = _share_of_sets(tables.splits, tables.total)
    return out


def _share_of_sets(splits: NDArray[np.floating], total: NDArray[np.floating]) -> Float:
    """Return float64[d, b]: the share of the left sets that have each dependent; d = 1: [splits[1] / total]."""
    d = len(splits).bit_length() - 1
    has = (np.arange(1 << d) & (1 << np.arange(d))[:, None]) > 0
    return np.asarray(has.astype(splits.dtype) @ splits / total, np.float64)


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
