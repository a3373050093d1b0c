"""Fitting: weights of one head class by maximum likelihood with L2, on all orders of families of 2 to 6 members.

    minimise  - sum over families of log p(observed order | members)  +  sum over weights of strength · w² / 2

The gradient is exact: for each number that an order may add up (`enumerate_orders.flat`), its expected count minus its
observed count. Each such number is a sum of weights over kinds and views, given by a sparse matrix, so a step is one
matrix product for each family size. The optimiser is scipy's L-BFGS; Wang and Eisner 2016, §5, used stochastic
gradients without a penalty.

Families are *thinned*: dependents are left out, so that a model depends less on which other dependents there are.

    DET ADJ @NOUN@  at 0.25  ->  DET ADJ @NOUN@ 0.5625    ADJ @NOUN@ 0.1875    DET @NOUN@ 0.1875    (@NOUN@ 0.0625)

The rest keeps its order. A noun without an article is common in English but rare in French: a model that has seen nouns
with and without each dependent infers less from absent dependents. This is dropout of inputs (Srivastava et al. 2014),
summed over all outcomes instead of sampled.

Borrowing: relations that a head class has hardly seen, learnt from the heads of other classes.

A relation is the same whatever the part of speech of its head is (universaldependencies.org/u/dep/aux_: the auxiliary
of a clause, whose predicate may be a verb, a noun or an adjective), but each head class has a model of its own. Welsh
auxiliaries depend on verbal nouns, which are NOUN, and English ones on VERB: the Welsh model of verbs has seen none.

    AUX&aux PROPN&nsubj @NOUN&@     ->     AUX&aux @VERB&@

Such a dependent is learnt by itself with its head, under the name of the most frequent head of the class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from derivlang.core.arrays import Int64, lengths_of
from derivlang.core.errors import UsageError
from derivlang.core.threads import one_thread
from derivlang.formats.progress import rows_done, stage, steps_done
from derivlang.grammar.enumerate_orders import MOST_MEMBERS, indicators, order_numbers, ordered_pairs
from derivlang.grammar.families import Families, is_head, plain, relation_of
from derivlang.grammar.weights import BOS, EOS, PAIRS, PUBLISHED, VIEWS, Float, Weights, views

FEW = 5  # a relation with fewer dependents in a class is borrowed
# The dependents of a borrowed relation count for at most this share of the class's heads, so that many such relations
# do not outweigh what a small class shows itself: Persian objects precede verbs, and nouns follow adverbs.
SHARE = 0.1


Counted: TypeAlias = dict[tuple[str, ...], float]
"""The count of each label sequence of a head class, sorted by labels."""


def summed(parts: Iterable[tuple[tuple[str, ...], float]]) -> Counted:
    """Return the sum of the counts of each label sequence."""
    totals: Counted = {}
    for labels, count in parts:
        totals[labels] = totals.get(labels, 0.0) + count
    return dict(sorted(totals.items()))


def with_borrowed(own: Counted, families: Families, name: str) -> Counted:
    """Return the sequences of class `name`, with some of two members for relations that it has hardly seen.

    families: of all classes.
    """
    own_heads, seen, totals = Counter[str](), Counter[str](), Counter[str]()
    pairs = Counter[tuple[str, bool]]()  # by label, and whether it stands before its head
    for number, head_class in enumerate(families.classes.tolist()):
        labels = families.labels(number)
        head = int(families.head_places[number] - families.offsets[number])
        inside = head_class == name
        own_heads[labels[head]] += inside
        for place, label in enumerate(labels):
            if place != head:
                (seen if inside else totals)[relation_of(label)] += 1
                if not inside:
                    pairs[label, place < head] += 1
    usual = min(own_heads, key=lambda label: (-own_heads[label], label), default="")
    if not own_heads[usual]:
        return own
    most = SHARE * float(np.sum(list(own.values())))
    borrowed = [
        ((plain(label), usual) if before else (usual, plain(label)), count * min(1.0, most / totals[relation]))
        for (label, before), count in pairs.items()
        if seen[relation := relation_of(label)] < FEW
    ]
    return summed([*borrowed, *own.items()])


MOST = 6  # members of the largest training families


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSettings:
    """How weights are fitted.

    l2: strength of the penalty. factors: multiples of it for a view (joint …); default 1. most: members of the largest
    training families, after thinning. thin: share of dependents left out (`thinned`). dropped: share of families
    without subtypes (`families`).
    """

    l2: float = 1.0
    factors: Mapping[str, float] | None = None
    most: int = MOST
    thin: float = 0.0
    dropped: float = 0.0


@dataclass(frozen=True, slots=True)
class _Size:
    """Distinct families of n members.

    counts: [b]. slots: sparse [P · b, weights]. observed: int64[b], index of the order of each in `all_orders`.
    """

    n: int
    counts: Float
    slots: Any
    observed: Int64


class Problem:
    """The likelihood of the families of one head class, as a function of the weights that occur in them."""

    def __init__(self, counted: Counted, settings: FitSettings) -> None:
        self.settings = settings
        tokens = [*dict.fromkeys(label for labels in counted for label in labels), BOS, EOS]
        self._numbers = {token: number for number, token in enumerate(tokens)}
        seen = [views(token, len(VIEWS)) for token in tokens]
        self._codes: tuple[dict[str, int], ...] = tuple({} for _ in VIEWS)
        self._has_subtype = np.array([":" in token for token in tokens])
        rows = np.array(
            [
                [codes.setdefault(name, len(codes)) for codes, name in zip(self._codes, token, strict=True)]
                for token in seen
            ]
        )  # [T + 2, views]
        self._sizes_of_views = [len(codes) for codes in self._codes]
        by_size = [self._size(n, rows, counted) for n in range(2, settings.most + 1)]
        used = np.unique(np.concatenate([np.zeros(0, np.int64), *(np.unique(cells) for _, _, _, cells in by_size)]))
        used = used[used >= 0]
        self.cells = used  # cell of each weight in the tables of all views, flattened one after the other
        self._parts = [_Size(n, c, _matrix(cells, used), observed) for n, c, observed, cells in by_size if len(c)]
        self.strengths = self._strengths()
        self.n_families = float(sum(part.counts.sum() for part in self._parts))

    @one_thread()
    def value(self, weights: Float) -> tuple[float, Float]:
        """Return (penalised negative log likelihood in nats, its gradient)."""
        loss = float((self.strengths * weights**2).sum() / 2)
        gradient = self.strengths * weights
        for part in self._parts:
            table = indicators(part.n)
            local = (part.slots @ weights).reshape(len(table), -1)
            scores = local.T @ table
            top = scores.max(axis=1)
            scores -= top[:, None]
            seen = scores[np.arange(len(top)), part.observed]
            np.exp(scores, out=scores)
            total = scores.sum(axis=1)
            loss += float((part.counts * (np.log(total) - seen)).sum())
            scores *= (part.counts / total)[:, None]
            expected = table @ scores.T
            # Expected less observed: the gradient of the negative log likelihood.
            expected -= table[:, part.observed] * part.counts
            gradient = gradient + part.slots.T @ expected.reshape(-1)
        steps_done(1)
        return loss, gradient

    def weights(self, values: Float) -> Weights:
        """Return the tables of a weight vector."""
        pairs, begin = [], 0
        flat = np.zeros(sum(len(PAIRS) * v * v for v in self._sizes_of_views))
        flat[self.cells] = values
        for v in self._sizes_of_views:
            table = np.zeros((len(PAIRS), v + 1, v + 1))
            table[:, :v, :v] = flat[begin : begin + len(PAIRS) * v * v].reshape(len(PAIRS), v, v)
            pairs.append(table)
            begin += len(PAIRS) * v * v
        return Weights(self._codes, tuple(pairs), {})

    def _size(self, n: int, rows: Int64, counted: Counted) -> tuple[int, Float, Int64, Int64]:
        """Return (n, counts [b], observed int64[b], cells int64[P, b, 10]); -1 where a number has fewer weights."""
        some = {labels: count for labels, count in counted.items() if len(labels) == n}
        members = np.array([[self._numbers[label] for label in labels] for labels in some], np.int64).reshape(-1, n)
        heads = np.array([[is_head(label) for label in labels].index(True) for labels in some], np.int64)
        at, d = np.arange(len(some)), n - 1
        index = np.arange(d)
        bos, eos = len(rows) - 2, len(rows) - 1
        dependents = members[at[:, None], index + (index >= heads[:, None])].T  # [d, b]
        head = members[at, heads]
        first, second = ordered_pairs(d)

        def cells(kinds: tuple[str, ...], a: Any, b: Any) -> Int64:
            a, b = np.broadcast_arrays(a, b)
            out = np.full((*a.shape, 2 * len(VIEWS)), -1, np.int64)
            fine = self._has_subtype[a] | self._has_subtype[b]
            begin = 0
            for view, v in enumerate(self._sizes_of_views):
                for k, kind in enumerate(kinds):
                    cell = begin + (PAIRS.index(kind) * v + rows[a, view]) * v + rows[b, view]
                    out[..., 2 * view + k] = cell if view < PUBLISHED else np.where(fine, cell, -1)
                begin += len(PAIRS) * v * v
            return out

        a, b = dependents[first], dependents[second]
        # In the order of the rows of `indicators`. A number that adds up two kinds, such as PRE and BFR, has the cells
        # of both.
        slots = [cells(("PRE", kind), a, b) for kind in ("BFR", "AFT", "BTW")]
        slots += [cells(("BI",), a, b), cells(("PRE",), dependents, head), cells(("PRE",), head, dependents)]
        slots += [cells(("BI",), bos, dependents), cells(("BI",), dependents, eos)]
        slots += [cells(("BI",), dependents, head), cells(("BI",), head, dependents)]
        slots += [cells(("BI",), bos, head[None]), cells(("BI",), head[None], eos)]
        order = np.where(np.arange(n) == heads[:, None], d, np.arange(n) - (np.arange(n) > heads[:, None]))
        return n, np.array(list(some.values())), order_numbers(order), np.concatenate(slots)

    def _strengths(self) -> Float:
        """Return the strength of each weight: l2 times the factor of its view.

        A weight of labels without subtypes has the factor of the view without them in a fine one, too. So do
        demonstratives: `det:dem` is of a universal feature and common, while a subtype may be rare.
        """
        factors, out = self.settings.factors or {}, []
        for view, codes in zip(VIEWS, self._codes, strict=True):
            divided = np.array([plain(name) != name for name in codes])
            fine = np.tile((divided[:, None] | divided).reshape(-1), len(PAIRS))
            out.append(np.where(fine, factors.get(view, 1.0), factors.get(view.removeprefix("fine "), 1.0)))
        return np.asarray(self.settings.l2 * np.concatenate(out)[self.cells])


def fit(families: Families, name: str, settings: FitSettings) -> Weights:
    """Return the weights of head class `name` ("N", "V", …)."""
    try:
        from scipy.optimize import minimize
    except ImportError:
        raise UsageError(
            "fitting a grammar needs scipy", fix="pip install 'derivlang[fit]'", id="missing-package"
        ) from None

    own = distinct(families, name)
    if settings.dropped:
        own = dropped(own, settings.dropped)
    with stage(f"thinning {name} heads", "rows", len(own)):
        own = thinned(own, settings.thin)
    with stage(f"indexing the weights of {name} heads", None):  # a few large array operations
        problem = Problem(with_borrowed(own, families, name), settings)
    if not problem.n_families:
        return Weights.of({}, len(VIEWS))
    thin = f", thinned {settings.thin:g}" if settings.thin else ""
    with stage(f"fitting {name} heads, L2 {settings.l2:g}{thin}", "steps"):  # their number is not known before
        optimum = minimize(
            problem.value,
            np.zeros(len(problem.cells)),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 400, "maxcor": 20, "ftol": 1e-7, "gtol": 1e-3},
        )
    return problem.weights(optimum.x)


def distinct(families: Families, name: str) -> Counted:
    """Return the families of a class, each label sequence once."""
    sizes = lengths_of(families.offsets)
    chosen = np.flatnonzero((families.classes == name) & (sizes > 1) & (sizes <= MOST_MEMBERS))
    return summed((tuple(families.labels(number)), 1.0) for number in chosen.tolist())


def dropped(counted: Counted, share: float) -> Counted:
    """Return the sequences with this share of the count of each moved to it without subtypes."""
    return summed(
        (line, count * part)
        for labels, count in counted.items()
        for line, part in ((labels, 1 - share), (tuple(map(plain, labels)), share))
        if part
    )


def _matrix(cells: Int64, used: Int64) -> Any:
    """Return a sparse matrix [slots, weights] of ones."""
    from scipy.sparse import csr_matrix

    flat = cells.reshape(-1, cells.shape[-1])
    row, column = np.nonzero(flat >= 0)
    place = np.searchsorted(used, flat[row, column])
    return csr_matrix((np.ones(len(row)), (row, place)), shape=(len(flat), len(used)))


def thinned(counted: Counted, share: float) -> Counted:
    """Return the sequences with each dependent left out with probability `share`; the sum of the counts stays the same.

    It takes 2^d steps for d dependents. Raises UsageError thin-share unless 0 <= share < 1.
    """
    if not 0 <= share < 1:
        raise UsageError(
            f"the share {share:g} must be at least 0 and below 1", fix="use 0 or more, less than 1", id="thin-share"
        )
    return summed(_left_out(counted, share))


def _left_out(counted: Counted, share: float) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield (labels, count) for each choice of dependents to leave out of each sequence."""
    for labels, count in counted.items():
        dependents = [place for place, label in enumerate(labels) if not is_head(label)]
        for n_out in range(len(dependents) + 1 if share else 1):
            part = count * share**n_out * (1 - share) ** (len(dependents) - n_out)
            for out in combinations(dependents, n_out):
                yield tuple(label for place, label in enumerate(labels) if place not in out), part
        rows_done(1)
