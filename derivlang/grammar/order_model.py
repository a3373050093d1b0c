"""OrderModel: draws, log-probabilities and exact distributions of orders under a mixture of grammars.

    w = (1 - mix) · superstrate + mix · substrate      (Wang and Eisner 2016, §5: 0.95 and 0.05)
    p(order) = exp(w / temperature) / Z

A draw is a function of the family's labels in surface order, its key and the parameters, and of nothing else: u =
draw(key, 0) / 2^64 goes through the inverse distribution. (Rounding may differ if u is within 1e-15 of a border.)

- Up to `exact.MOST_DEPENDENTS` dependents the distribution is exact.
- HI features (`.orm` files) count up to `enumerate_orders.MOST_WITH_HI` members, by enumeration, not in larger ones.
- Larger families than that are sampled (`gibbs`).

`argmax` gives the most probable order. Among equally probable orders (to 1e-6 in log) it gives the one that keeps the
most pairs in surface order.

Where a family's order comes from:

    its size                                     its order comes from
    2 to 5 members                               the cumulative probabilities of all its orders
    up to `exact.MOST_DEPENDENTS` dependents     its distribution (`exact`, or all orders for HI)
    more dependents                              Gibbs sampling (`gibbs`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Int32, Int64, UInt64, lengths_of, positions
from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws, fractions
from derivlang.core.threads import one_thread
from derivlang.grammar import exact, gibbs
from derivlang.grammar.enumerate_orders import (
    MOST_MEMBERS,
    Local,
    all_orders,
    order_numbers,
    score,
    to_dependents,
    to_members,
)
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.scores import Component, SameSize, Scores
from derivlang.grammar.weights import Float

_SMALL = 5  # members of a family whose orders are drawn by thresholds
_AT_ONCE = 1 << 14  # draws at a time for these families
_ENUMERATED = 16  # and for larger ones whose orders are all listed: 59,049 numbers each for sequences of five
_COLDEST = 1e-6  # below this temperature, scores overflow


class OrderModel:
    """A mixture of grammars as a distribution over the orders of families.

    superstrate: a grammar, or one for each head class ({"N": fr, "V": hi}; families of other classes keep their
    order). substrate: the grammar of the trees' language; None, or a grammar without the class: nothing is mixed in.
    The subtypes of the trees are read as subtypes of the substrate's language (`families`).
    mix: share of the substrate. labels: "map" maps labels to the UD version of each grammar, "as-is" does not (the
    published behaviour). temperature: at least 1e-6. mode: "sample" or "argmax".
    """

    def __init__(
        self,
        superstrate: Grammar | Mapping[str, Grammar],
        substrate: Grammar | None = None,
        *,
        mix: float = 0.05,
        labels: Literal["map", "as-is"] = "map",
        temperature: float = 1.0,
        mode: Literal["sample", "argmax"] = "sample",
    ) -> None:
        if not 0 <= mix <= 1:
            raise UsageError(f"mix={mix} must be from 0 to 1", id="bad-value")
        if not temperature >= _COLDEST:
            raise UsageError(
                f"temperature={temperature} must be at least {_COLDEST}",
                fix="use mode=argmax for the most probable order",
                id="bad-value",
            )
        grammars = (
            dict.fromkeys(superstrate.classes, superstrate) if isinstance(superstrate, Grammar) else dict(superstrate)
        )
        classes = {}
        for name, grammar in grammars.items():
            if name not in grammar.classes:
                raise UsageError(
                    f"the grammar {grammar.name} has no model of {name} heads",
                    fix=f"it has: {', '.join(grammar.classes)}",
                    id="grammar-class",
                )
            parts = [(1.0, grammar)]
            if substrate is not None and mix and name in substrate.classes:
                parts = [(1.0 - mix, grammar), (mix, substrate)]
            classes[name] = tuple(
                Component(
                    share,
                    part.weights[name],
                    part.labels if labels == "map" else None,
                    substrate is not None and part.fingerprint == substrate.fingerprint,
                )
                for share, part in parts
            )
        self.classes = tuple(classes)
        self.demonstratives = () if substrate is None else substrate.demonstratives  # in the language of the trees
        self._scores = Scores(classes, temperature)
        self._best = mode == "argmax"

    def has_model(self, head: str) -> bool:
        """Return whether families with this head are ordered. head: `@UPOS&@`, or a UPOS."""
        return head_class(head) in self.classes

    def modelled(self, families: Families) -> Bool:
        """Return bool[F]: the families whose head class has a model."""
        return np.asarray(self._numbered(families)[1] >= 0)

    @one_thread()
    def draw(self, families: Families, draws: Draws) -> Int32:
        """Return int32[M]: which member of its family stands at each derived position.

        `members[offsets[f] + out]` gathers the new order. A family whose head class has no model stays as it is.
        """
        numbers, classes = self._numbered(families)
        lengths, starts = lengths_of(families.offsets), families.offsets[:-1]
        out = positions(families.offsets)
        modelled = classes >= 0
        heads = families.head_places - starts
        random = draws.draw(families.keys, np.zeros(len(families), np.int64))
        for n in np.unique(lengths[modelled & (lengths > 1)]).tolist():
            at = np.flatnonzero(modelled & (lengths == n))
            places = starts[at] + np.arange(n)[:, None]
            some = SameSize(numbers[places], heads[at], classes[at])
            if n <= exact.MOST_DEPENDENTS + 1:
                orders = self._drawn(some, random[at])
            else:
                keys = families.keys[at]
                orders = np.stack([self._large_order(some, f, key, draws) for f, key in enumerate(keys)])
            out[places] = orders.T
        return out

    @one_thread()
    def log_probs(self, families: Families, orders: Int32) -> Float:
        """Return float64[F]: natural log of the probability of each order (int32[M], as from `draw`), in any mode.

        0 where no model applies; nan for families too large for exact probabilities.
        """
        out = np.zeros(len(families))
        out[self.modelled(families) & (lengths_of(families.offsets) > exact.MOST_DEPENDENTS + 1)] = np.nan
        for chunk, some in self._chunks(families):
            local, row = self._scores.local(some), np.arange(len(chunk))
            index = families.offsets[chunk] + np.arange(len(some.labels))[:, None]
            wanted = to_dependents(orders[index].T.astype(np.int8), some.heads)
            if self._scores.needs_all_orders(some):
                every = self._scores.of_all_orders(local, some)
                out[chunk] = every[row, order_numbers(wanted)] - _log_sum(every)
            else:
                out[chunk] = score(local, row, wanted) - exact.log_z(local)
        return out

    def exact_parts(self, families: Families) -> Iterator[tuple[Int64, Local, Float]]:
        """Yield (numbers of some families int64[b], their scores, log Z float64[b]), each part of one size.

        Families without a model, or too large for exact probabilities, are left out; HI is ignored. For the sum over
        the orders that meet a condition, rule the other orders out in the scores and call `exact.log_z`.
        """
        for chunk, some in self._chunks(families):
            local = self._scores.local(some)
            yield chunk, local, exact.log_z(local)

    @one_thread()
    def distribution(self, nodes: list[str]) -> tuple[NDArray[np.int8], Float]:
        """Return (orders int8[n!, n], probabilities float64[n!]) of one family, in lexicographic order of its nodes.

        Raises LayerError family-head; UsageError family-size above `MOST_MEMBERS`, grammar-class.
        """
        families = Families.of([nodes])
        numbers, classes = self._numbered(families)
        n = len(nodes)
        if classes[0] < 0:
            head = next(node for node in nodes if node.startswith("@"))
            raise UsageError(
                f"no model for the head {head}", fix=f"there are: {', '.join(self.classes)}", id="grammar-class"
            )
        if n > MOST_MEMBERS:
            raise UsageError(
                f"{n} members have too many orders to list", fix=f"give at most {MOST_MEMBERS}", id="family-size"
            )
        one = SameSize(numbers[:, None], families.head_places, classes)
        orders, local = all_orders(n), self._scores.local(one)
        wanted = to_dependents(orders, one.heads)
        if self._scores.needs_all_orders(one):
            scores = self._scores.of_all_orders(local, one)[0, order_numbers(wanted)]
        else:
            scores = score(local, np.zeros(len(orders), np.int64), wanted)
        return orders, np.exp(scores - _log_sum(scores))

    def _numbered(self, families: Families) -> tuple[Int32, Int32]:
        """Return (label number of each member int32[M], class number of each family int32[F]; -1: no model)."""
        numbers, classes = self._scores.numbers(families.tokens)
        return numbers.take(families.members), classes.take(families.members.take(families.head_places))

    def _chunks(self, families: Families) -> Iterator[tuple[Int64, SameSize]]:
        """Yield (the numbers of some families, these): of one size, with a model and exact probabilities."""
        numbers, classes = self._numbered(families)
        lengths = lengths_of(families.offsets)
        chosen = (classes >= 0) & (lengths > 1) & (lengths <= exact.MOST_DEPENDENTS + 1)
        for n in np.unique(lengths[chosen]).tolist():
            at = np.flatnonzero(chosen & (lengths == n))
            for chunk in np.array_split(at, -(-len(at) // exact.chunk_size(n - 1))):
                begins = families.offsets[chunk]
                rows = numbers[begins + np.arange(n)[:, None]]
                yield chunk, SameSize(rows, families.head_places[chunk] - begins, classes[chunk])

    def _drawn(self, families: SameSize, random: UInt64) -> NDArray[np.int8]:
        """Return orders int8[K, n] of families that are not large. random: uint64[K], their draws."""
        n, needs_all = len(families.labels), self._scores.needs_all_orders(families)
        first, index = _distinct(families.labels)
        out = np.empty((len(index), n), np.int8)
        size = _AT_ONCE if n <= _SMALL else _ENUMERATED if needs_all else exact.chunk_size(n - 1)
        by_family = np.argsort(index, kind="stable")
        for begin in range(0, len(index), size):
            chunk = by_family[begin : begin + size]
            which, rows = np.unique(index[chunk], return_inverse=True)
            orders = self._orders(families.take(first[which]), rows, random[chunk])
            out[chunk] = to_members(orders, families.heads[chunk])
        return out

    def _orders(self, families: SameSize, rows: Int64, random: UInt64) -> NDArray[np.int8]:
        """Return orders int8[q, n] of dependents and head.

        rows: int64[q], the family of each draw. random: uint64[q], the draws.
        """
        n, local = len(families.labels), self._scores.local(families)
        if self._best:
            local = local.with_ties_broken(families.heads)
        if n <= _SMALL or self._scores.needs_all_orders(families):
            scores = self._scores.of_all_orders(local, families)
            if self._best:
                number = scores.argmax(axis=1)[rows]
            elif n <= _SMALL:
                number = _by_thresholds(scores, rows, random)
            else:
                number, _ = exact.chosen(scores[rows].T, fractions(random), "logs")
            return np.asarray(all_orders(n)[number])
        if self._best:
            return exact.draw(exact.chains(local, "best"), rows, fractions(random))
        return exact.draw_orders(local, rows, fractions(random))

    def _large_order(self, families: SameSize, f: int, key: np.uint64, draws: Draws) -> Int32:
        """Return int32[n]: the order of family f, too large for exact tables."""
        labels, head = families.labels[:, f], int(families.heads[f])
        distinct, numbers = np.unique(np.delete(labels, head), return_inverse=True)
        rows = np.append(distinct, labels[head])[:, None]
        local = self._scores.local(SameSize(rows, np.array([len(distinct)]), families.classes[[f]]))
        return gibbs.arrange(local, numbers, head, key, draws, best=self._best)


def _log_sum(scores: Float) -> Float:
    """Return the log of the sum of exponentials along the last axis."""
    top = scores.max(axis=-1)
    return np.asarray(top + np.log(np.exp(scores - top[..., None]).sum(axis=-1)))


def _distinct(labels: Int32) -> tuple[Int64, Int64]:
    """Return (int64[D] a family of each kind, int64[K] the kind of each): families with the same labels int32[n, K].

    Families [a, b, a] -> [0, 1], [0, 1, 0].
    """
    rows = pa.py_buffer(np.ascontiguousarray(labels.T))
    kinds = pa.Array.from_buffers(pa.binary(4 * len(labels)), labels.shape[1], [None, rows])
    index = kinds.dictionary_encode().indices.to_numpy().astype(np.int64)
    return np.unique(index, return_index=True)[1], index


def _by_thresholds(scores: Float, rows: Int64, random: UInt64) -> Int64:
    """Return int64[q]: the order of each draw. scores: float64[b, n!]. rows: int64[q]. random: uint64[q].

    The cumulative probabilities of a family's orders are whole numbers of 2^-32, so a probability is right to 2.4e-10.
    The number of those that are at most the upper 32 bits of the draw is the number of the order:

        three orders with probabilities .5, .25, .25:  thresholds .5 .75;  u = .6 -> order 1
    """
    ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
    ends *= 2.0**32 / ends[:, -1:]
    thresholds = np.minimum(ends[:, :-1], 2**32 - 1).astype(np.uint32)
    u = (random >> np.uint64(32)).astype(np.uint32)
    return np.asarray((thresholds[rows] <= u[:, None]).sum(axis=1))
