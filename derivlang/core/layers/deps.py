"""Enhanced dependencies (DEPS of CoNLL-U) of words and empty nodes: their numbers are mapped as heads are.

2:nsubj|8.1:conj     two parts: the number 2 and what follows it, `:nsubj`; the empty node 8.1 and `:conj`
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from derivlang.core.arrays import Int64, owners, positions
from derivlang.core.layers.nodes import Nodes
from derivlang.core.trees import NO_HEAD

_PART = re.compile(r"([0-9]+)(?:\.([0-9]+))?(:.*)", re.DOTALL)
_MINOR = re.compile(r"[1-9][0-9]{0,8}")
_UNKNOWN = -1  # the minor number of what cannot be the id of an empty node, such as 8.01


class EnhancedPart(NamedTuple):
    """A part of DEPS.

    number, minor: 8 and 1 of the empty node 8.1 that it names; minor is 0 for a word, both are 0 where it names
    neither. rest: what follows them, or the whole part.
    """

    number: int
    minor: int
    rest: str


_NONE = EnhancedPart(0, 0, "_")  # of words without DEPS


@lru_cache(1 << 16)  # most words have one of few texts
def parts_of(text: str) -> tuple[EnhancedPart, ...]:
    """Return the parts of DEPS. `0:root`, `_` and what is not a reference name nothing."""
    parts = []
    for part in text.split("|"):
        found = _PART.fullmatch(part)
        number = int(found[1]) if found else 0
        minor = 0
        if found and found[2] is not None:
            minor = int(found[2]) if _MINOR.fullmatch(found[2]) else _UNKNOWN
        parts.append(EnhancedPart(number, minor, found[3]) if found and (number or minor) else EnhancedPart(0, 0, part))
    return tuple(parts)


@lru_cache(1 << 16)
def written(parts: tuple[EnhancedPart, ...]) -> str:
    """Return DEPS, sorted by the ids that the parts name, as CoNLL-U requires."""
    ordered = sorted(parts, key=lambda part: part[:2])
    names = (f"{part.number}.{part.minor}" if part.minor else str(part.number or "") for part in ordered)
    return "|".join(name + part.rest for name, part in zip(names, ordered, strict=True)) or _NONE.rest


@dataclass(frozen=True, eq=False)
class EnhancedGraph:
    """The enhanced dependencies of N words, then of E empty nodes.

    parts: of each. unit: the unit of each. number: the number in the id of each, 8 of 8 and of 8.1. begins: the first
    word of each unit. nodes: the nodes by unit, number and minor number.
    """

    parts: list[tuple[EnhancedPart, ...]]
    unit: list[int]
    number: list[int]
    begins: list[int]
    nodes: dict[tuple[int, int, int], int]

    @classmethod
    def of(cls, texts: Iterable[str], empty: Nodes | None, units: Int64) -> EnhancedGraph:
        """Return the graph of words and nodes. texts: the DEPS of both. units: int64[U + 1], word offsets."""
        unit, number, minor = owners(units).tolist(), (positions(units) + 1).tolist(), []
        n_words = len(unit)
        if empty is not None:
            unit += empty.unit.tolist()
            number += empty.numbers(units).tolist()
            minor = empty.minor.tolist()
        ids = zip(unit[n_words:], number[n_words:], minor, strict=True)
        nodes = {id: at for at, id in enumerate(ids, n_words)}
        return cls([parts_of(text) for text in texts], unit, number, units.tolist(), nodes)

    def above(self, at: int, part: EnhancedPart) -> int:
        """Return the word or node that a part of a word or node names, -1 for none."""
        if part.minor:
            return self.nodes.get((self.unit[at], part.number, part.minor), -1)
        return self.begins[self.unit[at]] + part.number - 1 if part.number else -1

    def reached(self) -> set[int]:
        """Return the words and nodes that a root reaches."""
        below = defaultdict(list)
        new = []
        for at, parts in enumerate(self.parts):
            for part in parts:
                above = self.above(at, part)
                if above >= 0:
                    below[above].append(at)
                elif part.rest.startswith("0:"):
                    new.append(at)
        found = set(new)
        while new:
            new = list({at for above in new for at in below[above]} - found)
            found.update(new)
        return found

    def texts(self) -> list[str]:
        """Return the DEPS of words and nodes."""
        return list(map(written, self.parts))

    def moved(self, came: list[int], derived: EnhancedGraph) -> EnhancedGraph:
        """Return the derived graph with the parts of this one under their derived numbers.

        came: the word or node of this graph that each derived one was, -1 for an inserted word, whose DEPS are `_`.
        Parts that name what was deleted are left out; if none is left, the DEPS are `_`.

        `4:nsubj|8.1:conj` with word 4 at position 6, word 8 at position 2  ->  `2.1:conj|6:nsubj`
        """
        number = {old: new for old, new in zip(came, derived.number, strict=True) if old >= 0}

        def parts(at: int) -> Iterator[EnhancedPart]:
            for part in self.parts[at]:
                if part.number == part.minor == 0:
                    yield part
                elif (above := self.above(at, part)) in number:
                    yield EnhancedPart(number[above], part.minor, part.rest)

        return replace(derived, parts=[tuple(parts(at)) if at >= 0 else () for at in came])

    def connected(self, source: EnhancedGraph, came: list[int], head: list[int], relation: list[str]) -> EnhancedGraph:
        """Return this derived graph, so that a root reaches all that it reached in the source.

        A word that no root reaches any more, as words or nodes between were deleted, gets its head and relation. Such
        an empty node depends on the root of the tree. An inserted word gets its head and relation, too, unless no word
        of its unit has DEPS. What no root reached in the source stays as it is. came: as of `moved`. head, relation: of
        the M derived words.

        1 `0:root`, 2 an inserted word with the head 1 and the relation dep   ->   2 `1:dep`
        """
        own = [EnhancedPart(h, 0, f":{name}" if h else f"0:{name}") for h, name in zip(head, relation, strict=True)]
        roots = {self.unit[at]: self.number[at] for at in reversed(range(len(head))) if head[at] == 0}
        own += [EnhancedPart(roots.get(unit, NO_HEAD), 0, ":dep") for unit in self.unit[len(head) :]]
        given = {source.unit[at] for at in range(source.begins[-1]) if source.parts[at] != (_NONE,)}
        kept = source.reached()
        needed = [at for at, old in enumerate(came) if (old in kept if old >= 0 else self.unit[at] in given)]
        graph = self
        for only_without in (True, False):
            reached, parts = graph.reached(), list(graph.parts)
            for at in [at for at in needed if at not in reached]:
                named = [part for part in parts[at] if part != _NONE]
                is_led = own[at].number == NO_HEAD or any(part[:2] == own[at][:2] and part.number for part in named)
                if not is_led and not (only_without and named and own[at].number):
                    parts[at] = (*named, own[at])
            graph = replace(graph, parts=parts)
        return graph
