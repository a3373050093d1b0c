"""OrderModel: draws, log-probabilities and exact distributions of orders under a mixture of grammars.

    w = (1 - mix) · superstrate + mix · substrate      (Wang and Eisner 2016, §5: 0.95 and 0.05)
    p(order) = exp(w / temperature) / Z

A draw is a function of the family's labels in surface order, its key and the parameters, and of nothing else: u =
draw(key, 0) / 2^64 goes through the inverse distribution. (Rounding may differ where u lies within 1e-15 of a border.)

- up to `exact.MOST_DEPENDENTS` dependents the distribution is exact;
- with HI features (`.orm` files) up to `sequences.MOST_MEMBERS` members exact by enumeration, above that without HI;
- larger families: Gibbs sampling, see `gibbs`.

`argmax` gives the most probable order; among orders that are equally probable (to 1e-6 in log) the one that keeps
most pairs as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from derivlang.core.arrays import Bool, Int32, Int64, Ints, UInt64, lengths_of
from derivlang.core.errors import UsageError
from derivlang.core.keys import mix, sequence_keys, text_key
from derivlang.grammar import exact, gibbs, tables
from derivlang.grammar.enumerate_orders import (
    MOST_MEMBERS,
    all_orders,
    flat,
    indicators,
    score,
    to_dependents,
    to_members,
)
from derivlang.grammar.families import Families, head_class
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.local import Local
from derivlang.grammar.memo import IDENTITY, Memo
from derivlang.grammar.scores import Component, Scores
from derivlang.grammar.sequences import MOST_MEMBERS as MOST_WITH_SEQUENCES
from derivlang.grammar.weights import Float

_CHUNK = 1 << 18  # numbers in the largest table of a chunk: 2 MB, about the second-level cache
_ENUMERATED = 16  # families at a time whose orders are all listed: 59,049 numbers each for sequences of five
_LARGE_KEPT = 4096  # orders of large families
_ENUMERATED_SMALL = 2048  # of those of at most `tables.MOST_MEMBERS` members
_TIE = 1e-7  # what keeping a pair is worth under argmax


class Draws(Protocol):
    """Keyed random numbers."""

    def draw(self, keys: UInt64, positions: Ints) -> UInt64:
        """uint64[n]: one for each (key, position)."""


class OrderModel:
    """superstrate: a grammar, or one for each head class ({"N": fr, "V": hi}; other classes are left alone).

    substrate: the grammar of the language of the trees; None, or a class it lacks: no mixing. mix: its share. labels:
    "map" takes labels to the version of each grammar, "as-is" does not (the published behaviour). temperature: > 0.
    mode: "sample" or "argmax".
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
        if not temperature > 0:
            raise UsageError(f"temperature={temperature} must be above 0", id="bad-value")
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
                Component(share, part.weights[name], part.labels if labels == "map" else None) for share, part in parts
            )
        self.mode = mode
        self.classes = tuple(classes)
        self._scores = Scores(classes, temperature)
        self._memo, self._tables = Memo(), tables.Tables()
        self._large_memo: dict[tuple[int, bytes], Int32] = {}
        self._hashes: dict[str, np.uint64] = {}

    @property
    def memo_bytes(self) -> int:
        """Bytes that the families and draws kept so far take; bounded."""
        return self._memo.n_bytes + self._tables.n_bytes

    def has_model(self, head: str) -> bool:
        """Are families with this head ordered? head: `@UPOS&@`, or a UPOS."""
        return head_class(head) in self.classes

    def modelled(self, families: Families) -> Bool:
        """bool[F]: the families whose head class has a model."""
        return np.asarray(self._classes(families)[1] >= 0)

    def draw(self, families: Families, draws: Draws) -> Int32:
        """int32[M]: which member of its family stands at each derived place; `members[offsets[f] + out]` gathers.

        A family whose head class has no model stays as it is.
        """
        n_families = len(families)
        numbers, classes = self._classes(families)
        lengths = lengths_of(families.offsets)
        spot = np.arange(len(families.members), dtype=np.int32)
        if self._tables.is_full or self._memo.is_full:
            self._memo.clear()
            self._tables.clear()
        place = spot - np.repeat(families.offsets[:-1].astype(np.int32), lengths)
        if n_families == 0:
            return place
        packed = np.full(n_families, IDENTITY)
        exactly = (classes >= 0) & (lengths > 1) & (lengths <= exact.MOST_DEPENDENTS + 1)
        hashes = sequence_keys(self._token_hashes(families.tokens)[families.members], families.offsets)
        random = draws.draw(families.keys, np.zeros(n_families, np.int64))
        u: Float = (random >> np.uint64(11)).astype(np.float64) * 2.0**-53
        numbers = numbers[families.members]
        found = self._memo.find(hashes)
        same = self._memo.same(found, numbers, families.offsets, lengths, spot)
        todo = exactly.copy()
        if self.mode == "sample":
            small = exactly & (lengths <= tables.MOST_MEMBERS)
            heads = families.head_places - families.offsets[:-1]
            for n in np.unique(lengths[small]).tolist():
                at = np.flatnonzero(small & (lengths == n))
                rows = np.zeros(len(at), np.int32)
                known = same[at]
                rows[known] = self._memo.rows(found[at[known]])
                rows[~known] = self._rows(n, at[~known], found, hashes, numbers, families, heads, classes)
                packed[at] = self._tables.draw(n, rows, heads[at], (random[at] >> np.uint64(32)).astype(np.uint32))
            todo &= ~small
        met = np.flatnonzero(todo & same)
        if met.size:
            orders, hit = self._memo.orders(found[met], u[met])
            packed[met[hit]] = orders[hit]
            todo[met[hit]] = False
        left = np.flatnonzero(todo)
        for n in np.unique(lengths[left]).tolist():
            at = left[lengths[left] == n]
            rows = numbers[families.offsets[at] + np.arange(n)[:, None]]
            packed[at] = self._compute(
                rows, families.head_places[at] - families.offsets[at], classes[at], hashes[at], u[at]
            )
        shift = (np.minimum(place, 15) * 4).astype(np.uint64)
        out = ((np.repeat(packed, lengths) >> shift) & np.uint64(15)).astype(np.int32)
        for f in np.flatnonzero(lengths > exact.MOST_DEPENDENTS + 1):
            begin, end = families.offsets[f], families.offsets[f + 1]
            out[begin:end] = place[begin:end]
            if classes[f] >= 0:
                head = int(families.head_places[f] - begin)
                out[begin:end] = self._large(numbers[begin:end], head, classes[[f]], families.keys[f], draws)
        return out

    def log_probs(self, families: Families, orders: Int32) -> Float:
        """float64[F]: natural log of the probability of each order (as `draw` gives them), whatever the mode.

        0 where no model applies; nan for families too large for exact probabilities.
        """
        numbers, classes = self._classes(families)
        lengths = lengths_of(families.offsets)
        out = np.zeros(len(families))
        numbers = numbers[families.members]
        modelled = (classes >= 0) & (lengths > 1)
        for n in np.unique(lengths[modelled]).tolist():
            at = np.flatnonzero(modelled & (lengths == n))
            if n > exact.MOST_DEPENDENTS + 1:
                out[at] = np.nan
                continue
            for chunk in np.array_split(at, -(-len(at) // _chunk_size(n - 1))):
                index = families.offsets[chunk] + np.arange(n)[:, None]
                heads = families.head_places[chunk] - families.offsets[chunk]
                local = self._scores.local(numbers[index], heads, classes[chunk])
                mine = to_dependents(orders[index].T.astype(np.int8), heads)
                if self._by_enumeration(n, classes[chunk]):
                    for f in range(len(chunk)):
                        every = self._log_all(
                            _columns(local, [f]), numbers[index[:, [f]]], heads[[f]], classes[chunk[[f]]]
                        )
                        at_order = (all_orders(n) == mine[f]).all(axis=1).argmax()
                        out[chunk[f]] = every[0, at_order] - _log_sum(every[0])
                else:
                    out[chunk] = score(local, np.arange(len(chunk)), mine) - _log_z(local)
        return out

    def exact_parts(self, families: Families) -> Iterator[tuple[Int64, Local, Float]]:
        """Families with a model and exact probabilities, in parts of equal size: (int64[b] which, scores, log Z).

        HI is left out. For sums over orders that meet a condition: rule the others out in the scores, `log_sum`.
        """
        numbers, classes = self._classes(families)
        lengths = lengths_of(families.offsets)
        numbers = numbers[families.members]
        chosen = (classes >= 0) & (lengths > 1) & (lengths <= exact.MOST_DEPENDENTS + 1)
        for n in np.unique(lengths[chosen]).tolist():
            at = np.flatnonzero(chosen & (lengths == n))
            for chunk in np.array_split(at, -(-len(at) // _chunk_size(n - 1))):
                rows = numbers[families.offsets[chunk] + np.arange(n)[:, None]]
                local = self._scores.local(rows, families.head_places[chunk] - families.offsets[chunk], classes[chunk])
                yield chunk, local, _log_z(local)

    def log_sum(self, local: Local) -> Float:
        """float64[b]: log of the sum over all orders of exp(score); -inf where it is below 1e-300 of its bound."""
        return exact.chains(local).log_z

    def distribution(self, nodes: list[str]) -> tuple[NDArray[np.int8], Float]:
        """(orders int8[n!, n], probabilities float64[n!]) of one family, in lexicographic order of the given nodes.

        Raises LayerError family-head; UsageError family-size above `MOST_MEMBERS`, grammar-class.
        """
        families = Families.of([nodes])
        numbers, classes = self._classes(families)
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
        orders = all_orders(n)
        place = families.head_places
        local = self._scores.local(numbers[families.members][:, None], place, classes)
        mine = to_dependents(orders, place)
        if self._by_enumeration(n, classes):
            every = self._log_all(local, numbers[families.members][:, None], place, classes)[0]
            digits = n ** np.arange(n - 1, -1, -1)  # an order as a number, to find it among all_orders
            scores = every[np.searchsorted(orders @ digits, mine @ digits)]
        else:
            scores = score(local, np.zeros(len(orders), np.int64), mine)
        return orders, np.exp(scores - _log_sum(scores))

    def _classes(self, families: Families) -> tuple[Int32, Int32]:
        """(label numbers int32[T], class number of each family int32[F], -1 without a model)."""
        numbers, classes = self._scores.numbers(families.tokens)
        return numbers, classes[families.members[families.head_places]]

    def _token_hashes(self, tokens: tuple[str, ...]) -> UInt64:
        for token in tokens:
            if token not in self._hashes:
                self._hashes[token] = text_key(token)
        return np.array([self._hashes[token] for token in tokens], np.uint64)

    def _compute(self, rows: Int32, heads: Int64, classes: Int32, hashes: UInt64, u: Float) -> UInt64:
        """Packed orders uint64[K] of draws in families of n members: rows int32[n, K]; kept in the memo."""
        n = len(rows)
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        other = np.flatnonzero((rows[:, first[inverse]] != rows).any(axis=0))
        if other.size:  # two families with one hash: those that come second are done by themselves, and not kept
            inverse[other] = len(first) + np.arange(len(other))
            first = np.concatenate([first, other])
        packed = np.empty(len(u), np.uint64)
        low, high = np.empty(len(u)), np.empty(len(u))
        by_family = np.argsort(inverse, kind="stable")
        size = _ENUMERATED if self._by_enumeration(n, classes) else _chunk_size(n - 1)
        ends = np.searchsorted(inverse[by_family], np.arange(size, len(first) + size, size))
        for begin, chunk in zip(range(0, len(first), size), np.split(by_family, ends[:-1]), strict=True):
            which = first[begin : begin + size]
            local = self._scores.local(rows[:, which], heads[which], classes[which])
            if self._by_enumeration(n, classes[which]):
                orders, lows, widths = self._enumerated(
                    local, rows[:, which], heads[which], classes[which], inverse[chunk] - begin, u[chunk]
                )
            else:
                orders, lows, widths = self._orders(local, heads[which], inverse[chunk] - begin, u[chunk])
            packed[chunk] = pack(to_members(orders, heads[chunk]))
            low[chunk], high[chunk] = lows, lows + widths
        keep = np.ones(len(u), bool)
        keep[other] = False
        # one interval for each order drawn of a family
        _, once = np.unique(mix(packed[keep] ^ mix(hashes[keep])), return_index=True)
        once = np.flatnonzero(keep)[once]
        self._memo.add(hashes[once], rows[:, once].T, packed[once], low[once], high[once])
        return packed

    def _rows(
        self,
        n: int,
        at: Int64,
        found: Int32,
        hashes: UInt64,
        numbers: Int32,
        families: Families,
        heads: Int64,
        classes: Int32,
    ) -> Int32:
        """int32[K]: the rows in the tables of families `at`, of n members, that are not in the memo yet."""
        if not len(at):
            return np.zeros(0, np.int32)
        _, first, inverse = np.unique(hashes[at], return_index=True, return_inverse=True)
        labels = numbers[families.offsets[at] + np.arange(n)[:, None]]
        other = np.flatnonzero((labels[:, first[inverse]] != labels).any(axis=0))
        if other.size:  # two families with one hash: those that come second are done by themselves, and not kept
            inverse[other] = len(first) + np.arange(len(other))
            first = np.concatenate([first, other])
        rows = np.empty(len(first), np.int32)
        for chunk in np.array_split(np.arange(len(first)), -(-len(first) // _ENUMERATED_SMALL)):
            which = first[chunk]
            some = at[which]
            local = self._scores.local(labels[:, which], heads[some], classes[some])
            rows[chunk] = self._tables.add(n, self._log_all(local, labels[:, which], heads[some], classes[some]))
        new = np.flatnonzero(found[at[first]] < 0)
        new = new[new < len(first) - len(other)]
        self._memo.add_families(hashes[at[first[new]]], labels[:, first[new]].T, rows[new])
        return rows[inverse]

    def _by_enumeration(self, n: int, classes: Int32) -> bool:
        return n <= MOST_WITH_SEQUENCES and self._scores.has_sequences(classes)

    def _large(self, numbers: Int32, head: int, classes: Int32, key: np.uint64, draws: Draws) -> Int32:
        """The order of a family above the exact sizes: label numbers int32[n]."""
        stream = draws.draw(np.array([key], np.uint64), np.array([1]))  # another for another seed
        known = (int(stream[0]), numbers.tobytes())
        if known in self._large_memo:
            return self._large_memo[known]
        distinct, labels = np.unique(np.delete(numbers, head), return_inverse=True)
        rows = np.append(distinct, numbers[head])[:, None]
        local = self._scores.local(rows, np.array([len(distinct)]), classes)
        order = gibbs.arrange(local, labels, head, key, draws, best=self.mode == "argmax")
        if len(self._large_memo) >= _LARGE_KEPT:
            self._large_memo.clear()
        self._large_memo[known] = order
        return order

    def _log_all(self, local: Local, rows: Int32, heads: Int64, classes: Int32) -> Float:
        """float64[b, n!]: scores of all orders of b families, HI included; rows: label numbers int32[n, b].

        The orders are those of `all_orders`, of the dependents and, as the last member, the head.
        """
        n = len(rows)
        out = flat(local).T @ indicators(n)
        for c in np.unique(classes).tolist():
            at = np.flatnonzero(classes == c)
            heads_last = to_members(np.arange(n, dtype=np.int8)[None], heads[at]).T.astype(np.int64)
            out[at] += self._scores.sequences(c, rows[heads_last, at])
        return np.asarray(out)

    def _enumerated(
        self, local: Local, rows: Int32, heads: Int64, classes: Int32, which: Int64, u: Float
    ) -> tuple[NDArray[np.int8], Float, Float]:
        """As `_orders`, from all orders; which: int64[q], the family of each draw."""
        scores = self._log_all(local, rows, heads, classes)
        orders = all_orders(len(rows))
        if self.mode == "argmax":
            scores += flat(_keeping(_nothing(local), heads)).T @ indicators(len(rows))
            return orders[scores.argmax(axis=1)][which], np.zeros(len(u)), np.ones(len(u))
        ends = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
        ends /= ends[:, -1:]
        found = np.array([np.searchsorted(ends[f], x, "right") for f, x in zip(which, u, strict=True)], np.int64)
        found = np.minimum(found, len(orders) - 1)
        low = np.where(found > 0, ends[which, found - 1], 0.0)
        return orders[found], low, ends[which, found] - low

    def _orders(self, local: Local, heads: Int64, rows: Int64, u: Float) -> tuple[NDArray[np.int8], Float, Float]:
        if self.mode == "argmax":
            return exact.draw(exact.chains(_keeping(local, heads), best=True), rows, u)
        tables = exact.chains(local)
        orders, low, width = exact.draw(tables, rows, u)
        narrow = tables.narrow()
        if narrow.size:
            again = np.flatnonzero(np.isin(rows, narrow))
            more = exact.chains(_columns(local, narrow), dtype=np.longdouble)
            orders[again], low[again], width[again] = exact.draw(more, np.searchsorted(narrow, rows[again]), u[again])
        return orders, low, width


def pack(orders: NDArray[np.int8]) -> UInt64:
    """uint64[q] from int8[q, n], n at most 16; places beyond n are as in IDENTITY."""
    out = np.full(len(orders), IDENTITY)
    n = orders.shape[1]
    if n < 16:
        out = (out >> np.uint64(4 * n)) << np.uint64(4 * n)
    else:
        out[:] = 0
    for p in range(n):
        out |= orders[:, p].astype(np.uint64) << np.uint64(4 * p)
    return out


def _log_z(local: Local) -> Float:
    tables = exact.chains(local)
    out = tables.log_z
    narrow = tables.narrow()
    if narrow.size:
        out[narrow] = exact.chains(_columns(local, narrow), dtype=np.longdouble).log_z
    return out


def _log_sum(scores: Float) -> float:
    top = scores.max()
    return float(top + np.log(np.exp(scores - top).sum()))


def _nothing(local: Local) -> Local:
    """All scores zero."""
    return Local(*(np.zeros_like(getattr(local, name)) for name in Local.__slots__))


def _columns(local: Local, which: NDArray[np.intp] | list[int]) -> Local:
    """Some of the families."""
    return Local(*(getattr(local, name)[..., which] for name in Local.__slots__))


def _keeping(local: Local, heads: Int64) -> Local:
    """With a little for each pair that stays as it stands: a different little, so that no two orders tie."""
    d = local.n_dependents
    index = np.arange(d)
    pair = np.where(index[:, None] < index, _TIE * (1 + (index[:, None] * (d + 1) + index) / 4096), 0.0)[..., None]
    before = np.where(index[:, None] < heads, _TIE * (1 + index[:, None] / 5000), 0.0)
    after = np.where(index[:, None] >= heads, _TIE * (1 + index[:, None] / 5000), 0.0)
    return replace(
        local,
        left=local.left + pair,
        right=local.right + pair,
        across=local.across + pair,
        before=local.before + before,
        after=local.after + after,
    )


def _chunk_size(d: int) -> int:
    """Families at a time: the largest table holds 2^d · (d + 1) · 2 numbers a family."""
    return max(1, _CHUNK // ((1 << d) * (d + 1) * 2))
