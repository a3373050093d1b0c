"""Word order in trees as they stand, and as a grammar orders them: features of the atlas, pairs, and clauses.

    python tools/word_order.py fr-ud-test.conllu.gz --grammar fr

The value of a feature is the share of its dependents before their head. What a grammar expects is exact: P(x before
the head) is the sum over all sets left of the head with x in them, over Z; P(S-V-O) is Z with all other orders of
subject, verb and object ruled out, over Z.

    old cat of Ann      ADJ&amod @NOUN&@ PROPN&nmod      adjective: 1 of 1 before; genitive: 0 of 1
    S-V-O: s left of the head, o right of it;      S-O-V: both left, and o not before s

So that a feature is one construction in all languages, these are left out: subjects, objects and genitives that are
pronouns (clitics in some); subjects and objects of heads that are not verbs (copular clauses); auxiliaries of heads
that are neither verbs nor verbal nouns; case markers that are not ADP (English 's, Chinese de); infinitive markers
(PART). Source: Dryer and Haspelmath (eds.) 2013, *The World Atlas of Language Structures Online*, chapters 82 to 94.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.formats import conllu
from derivlang.grammar import exact
from derivlang.grammar.enumerate_orders import Local
from derivlang.grammar.families import Families, families_of_trees, head_class, marked
from derivlang.grammar.grammar import load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import as_they_stand, read_families, words_of_tables
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
SVO = ("S-V-O", "S-O-V", "V-S-O", "V-O-S", "O-V-S", "O-S-V")
_RULED_OUT = -1e3  # added to a log score: its factor underflows to nothing
# Pairs of a head class and a dependent, by a test of its UPOS and its relation without subtype.
PAIRS: dict[str, tuple[str, Callable[[str, str], bool]]] = {
    "adjective before noun": ("N", lambda upos, relation: upos == "ADJ" and relation == "amod"),
    "adposition before noun": ("N", lambda upos, relation: upos == "ADP" and relation == "case"),
    "genitive before noun": ("N", lambda upos, relation: upos in _NOUNS and relation == "nmod"),
    "relative clause before noun": ("N", lambda upos, relation: upos == "VERB" and relation == "acl"),
    "oblique before verb": ("V", lambda upos, relation: upos in _NOUNS and relation == "obl"),
}


@dataclass(frozen=True, eq=False)
class OrderSample:
    """The families of some trees, and the members that each feature or pair counts: bool[M] by name."""

    families: Families
    flags: dict[str, Bool]

    def take(self, chosen: Bool) -> OrderSample:
        """Return some of the families, bool[F], with their flags."""
        members = np.repeat(chosen, lengths_of(self.families.offsets))
        return OrderSample(self.families.take(chosen), {name: flags[members] for name, flags in self.flags.items()})


def sample_of_tables(tables: Iterable[pa.Table]) -> OrderSample:
    """Return the sample of tables with the columns head, upos, deprel and feats; punctuation is left out."""
    heads, offsets, columns = words_of_tables(tables, ("upos", "deprel", "feats"))
    families, words = families_of_trees(heads, offsets, *marked(columns["upos"], columns["deprel"], columns["feats"]))
    is_dependent = np.ones(len(words), bool)
    is_dependent[families.head_places] = False
    flags = flags_of_words(heads, offsets, columns)
    return OrderSample(families, {name: flag[words] & is_dependent for name, flag in flags.items()})


def sample_of_pairs(families: Families) -> OrderSample:
    """Return the sample of `PAIRS` among some families, whose labels are UD v2, with or without subtypes."""
    owner = np.repeat(np.arange(len(families)), lengths_of(families.offsets))
    classes = np.array([head_class(token) for token in families.tokens])[families.members[families.head_places]]
    return OrderSample(
        families, {name: _flags(families, test) & (classes == head)[owner] for name, (head, test) in PAIRS.items()}
    )


def flags_of_words(heads: Int32, offsets: Int64, columns: Mapping[str, Sequence[str]]) -> dict[str, Bool]:
    """Return bool[N] by feature: the words that are such dependents. columns: upos, deprel and feats."""
    upos, deprel, feats = columns["upos"], columns["deprel"], columns["feats"]
    governor = governors(heads, offsets)
    tags, plain = np.array(upos), np.array([relation.partition(":")[0] for relation in deprel])
    flags = {}
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
        flags[feature.name] = flag
    return flags


def governors(heads: Int32, offsets: Int64) -> Int64:
    """Return int64[N]: the index of each word's head among all words; 0 for roots.

    heads [2, 0, 2, 0] of sentences of two words -> [1, 0, 3, 0]
    """
    return np.where(heads > 0, np.repeat(offsets[:-1], np.diff(offsets)) + heads - 1, 0)


def observed(sample: OrderSample) -> dict[str, tuple[int, float]]:
    """Return (number, share before the head) of each feature; nan without any."""
    return _shares(sample, _as_it_stands(sample.families))


def expected(model: OrderModel, sample: OrderSample) -> dict[str, tuple[int, float]]:
    """Return (number, expected share before the head) of each feature; nan without any.

    Families too large to be exact are left out. Those whose head class has no model count as they stand.
    """
    sample = sample.take(np.add.reduceat(np.any([*sample.flags.values()], axis=0), sample.families.offsets[:-1]) > 0)
    families = sample.families
    before = _as_it_stands(families)
    before[np.repeat(model.modelled(families), lengths_of(families.offsets))] = np.nan
    for at, local, _ in model.exact_parts(families):
        heads = families.head_places[at] - families.offsets[at]
        index = np.arange(local.n_dependents)[:, None]
        before[families.offsets[at] + index + (index >= heads)] = _before_head(local)
    return _shares(sample, before)


def _before_head(local: Local) -> Float:
    """Return float64[d, b]: the probability that each dependent stands before its head."""
    tables = exact.chains(local, "logs")
    d = local.n_dependents
    has = (np.arange(1 << d) & (1 << np.arange(d))[:, None]) > 0  # [d, 2^d]: the dependents of each set
    return np.asarray(has @ np.exp(tables.splits - tables.total))


def standardised(own: OrderSample, other: OrderSample, name: str) -> float:
    """Return the share of a feature before the head in `own` if its contexts were as frequent as in `other`.

    A context is whether the relation has `:pass`, and which of aux, mark and case
    are among the head's other dependents; those that `own` does not have are left out. nan if it has none.
    """
    ours, theirs = _contexts(own, name), _contexts(other, name)
    shared = [context for context in theirs if context in ours]
    total = sum(len(theirs[context]) for context in shared)
    means = {context: sum(ours[context]) / len(ours[context]) for context in shared}
    return sum(len(theirs[c]) * means[c] for c in shared) / total if total else float("nan")


def _contexts(sample: OrderSample, name: str) -> dict[tuple[str, ...], list[bool]]:
    """Return for each context of a feature whether each dependent is before its head."""
    families = sample.families
    flagged = np.flatnonzero(sample.flags[name])
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
    """Return float64[M]: for each member of a family 1 if it stands before the head, else 0."""
    places = np.repeat(families.head_places, lengths_of(families.offsets))
    return (np.arange(len(families.members)) < places).astype(np.float64)


def _shares(sample: OrderSample, before: Float) -> dict[str, tuple[int, float]]:
    known = ~np.isnan(before)
    values = {name: before[flags & known] for name, flags in sample.flags.items()}
    return {name: (len(some), float(some.mean()) if len(some) else float("nan")) for name, some in values.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Clauses:
    """C verbs with a nominal subject and a nominal object.

    subject, object: int64[C], position of the first of each among the dependents (the head is not counted).
    """

    families: Families
    subject: Int64
    object: Int64


def clauses(families: Families) -> Clauses:
    """Return the clauses among some families; labels are UD v2 or v1, with or without subtypes."""
    owner = np.repeat(np.arange(len(families)), lengths_of(families.offsets))
    chosen = np.array([head_class(token) == "V" for token in families.tokens])[families.members[families.head_places]]
    places = []
    for relations in (("nsubj",), ("obj", "dobj")):
        flagged = np.flatnonzero(_flags(families, lambda upos, rel, of=relations: upos in _NOUNS and rel in of))
        first = np.full(len(families), -1)
        first[owner[flagged[::-1]]] = flagged[::-1]  # the last write counts: the first member of each family
        chosen &= first >= 0
        places.append(first - families.offsets[:-1] - (first > families.head_places))
    return Clauses(families.take(np.flatnonzero(chosen)), places[0][chosen], places[1][chosen])


def observed_shares(transitive: Clauses, orders: Int32 | None = None) -> Float:
    """Return float64[6]: the share of each order of SVO, at present or under `orders` (int32[M])."""
    families = transitive.families
    if orders is None:
        orders = as_they_stand(families)
    counts = np.zeros(len(SVO))
    for f in range(len(families)):
        begin, end = families.offsets[f], families.offsets[f + 1]
        head = int(families.head_places[f] - begin)
        line = orders[begin:end].tolist()
        s, o = (int(x[f]) + (x[f] >= head) for x in (transitive.subject, transitive.object))
        places = sorted([(line.index(s), "S"), (line.index(o), "O"), (line.index(head), "V")])
        counts[SVO.index("-".join(letter for _, letter in places))] += 1
    return np.asarray(counts / max(counts.sum(), 1))


def expected_shares(model: OrderModel, transitive: Clauses) -> tuple[Float, int]:
    """Return (float64[6]: mean probability of each order of SVO, the number of clauses small enough to be exact)."""
    total, number = np.zeros(len(SVO)), 0
    for at, local, log_z in model.exact_parts(transitive.families):
        s, o = transitive.subject[at], transitive.object[at]
        total += [np.exp(exact.log_z(_ordered(local, s, o, name)) - log_z).sum() for name in SVO]
        number += len(at)
    return total / max(number, 1), number


def _ordered(local: Local, s: Int64, o: Int64, name: str) -> Local:
    """Return the scores with all orders of subject, object and head but one ruled out."""
    left, right = local.left.copy(), local.right.copy()
    before, after = local.before.copy(), local.after.copy()
    b = np.arange(len(s))
    letters = name.split("-")
    for letter, x in (("S", s), ("O", o)):
        is_left = letters.index(letter) < letters.index("V")
        (after if is_left else before)[x, b] += _RULED_OUT
    late, early = (o, s) if letters.index("S") < letters.index("O") else (s, o)
    left[late, early, b] += _RULED_OUT
    right[late, early, b] += _RULED_OUT
    return replace(local, left=left, right=right, before=before, after=after)


def _flags(families: Families, is_one: Callable[[str, str], bool]) -> Bool:
    """Return bool[M]: the members that pass a test of UPOS and relation without subtype."""
    labels = [token.partition("&") for token in families.tokens]
    tests = [not upos.startswith("@") and is_one(upos, relation.partition(":")[0]) for upos, _, relation in labels]
    return np.asarray(np.array(tests, bool)[families.members])


def main() -> None:
    """Print numbers and shares in the treebanks, and with a grammar the shares that it expects in their trees."""
    parser = argparse.ArgumentParser(
        description="Measure the word order of treebanks, and of their trees in a grammar."
    )
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="TREEBANK", help="CoNLL-U file")
    parser.add_argument("--grammar", help="name or file of a grammar")
    parser.add_argument("--substrate", help="grammar of the treebanks' own language, with a weight of 5 %%")
    options = parser.parse_args()
    substrate = load_grammar(options.substrate) if options.substrate else None
    model = OrderModel(load_grammar(options.grammar), substrate) if options.grammar else None
    families, _ = read_families(options.treebanks, own=substrate is None)
    atlas = sample_of_tables(rows.table for path in options.treebanks for rows in conllu.read(path))
    rows = []
    for sample in (atlas, sample_of_pairs(families)):
        ordered = expected(model, sample) if model else {}
        rows += [(name, *found, *ordered.get(name, ())[1:]) for name, found in observed(sample).items()]
    transitive = clauses(families)
    shares = [observed_shares(transitive), *([expected_shares(model, transitive)[0]] if model else [])]
    rows += [(name, len(transitive.families), *row) for name, *row in zip(SVO, *shares, strict=True)]
    for name, number, *values in rows:
        print(f"{name:<28}{number:>8,}" + "".join(f"{value:>9.1%}" for value in values))


if __name__ == "__main__":
    main()
