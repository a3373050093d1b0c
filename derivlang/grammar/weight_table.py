"""Weight tables: one side and one distance for each relation, the grammars of Hahn et al. and Clark et al.

    relation	side	distance          side > 0: the dependent stands before its head, else after it
    nsubj	0.9	0.4               distance: of two on one side the larger one is farther from the head
    obj	-0.6	0.1
    *	-0.1	0.0               a relation without a row of its own (optional)

A relation with a subtype (`nmod:poss`) is looked up with it, then without it (`nmod`), then as `*`. Lines that begin
with `#` are comments; the header may be left out.
Source: Hahn, Jurafsky and Futrell 2020 (PNAS 117, 2347–2353), *word order grammars*; Clark et al. 2023 (TACL 11).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError
from derivlang.core.schema import V2_RELATIONS
from derivlang.grammar.families import LIFTED
from derivlang.grammar.weights import broken, lines

_HEADER = "relation\tside\tdistance"
_REST = "*"
# A mark that is laid out like a word; published tables have no row for it.
_PUNCT = "punct"
# Slots of a family: relations before the head, from far to near; then these three; then relations after the head.
N_MIDDLE = 3


@dataclass(frozen=True, slots=True)
class WeightTable:
    """The weights of relations. rows: (side, distance) by relation. where: the file, for messages."""

    rows: Mapping[str, tuple[float, float]]
    where: str

    @property
    def fingerprint(self) -> str:
        """The hash of the weights, whatever the order and the form of the rows."""
        return sha256(repr(sorted(self.rows.items())).encode()).hexdigest()

    def slots(self, relations: Sequence[str]) -> tuple[Int64, int]:
        """Return (int64[R], the slot of each relation; the number of slots before the middle ones).

        Sorted by slots, a family is in the order of the table; equal weights have equal slots. A relation without
        weights has slot -1.

            nsubj 0.9 0.4, advmod 0.2 0.1, obj -0.6 0.1   ->   nsubj 0, advmod 1, (2 3 4 the middle), obj 5
        """
        found = [self._row(relation) for relation in relations]
        before = sorted({-distance for side, distance in filter(None, found) if side > 0})
        after = sorted({distance for side, distance in filter(None, found) if not side > 0})
        out = np.full(len(relations), -1, np.int64)
        for number, row in enumerate(found):
            if row is not None:
                side, distance = row
                out[number] = before.index(-distance) if side > 0 else len(before) + N_MIDDLE + after.index(distance)
        return out, len(before)

    def _row(self, relation: str) -> tuple[float, float] | None:
        plain = relation.partition(":")[0]
        for name in (relation, plain) if plain == _PUNCT else (relation, plain, _REST):
            if name in self.rows:
                return self.rows[name]
        return None

    def missing(self, relation: str) -> DataError:
        """Return the error for a relation that the table lacks."""
        return DataError(
            f"the table has no weights for the relation {relation!r}, which the trees have",
            where=self.where,
            fix=f"add a row for it, or a row `{_REST}` for all relations without one",
            id="grammar-relation",
        )


def is_punct(relation: str) -> bool:
    """Return whether a relation may lack weights: marks then stay on their side, next to their head."""
    return relation.partition(":")[0] == _PUNCT


def read_table(path: Path) -> WeightTable:
    """Return the table of a file.

    Raises DataError missing-file, encoding, grammar-header (no weights), grammar-line (another number of columns, a
    weight that is not a finite number, a relation that comes twice).
    """
    rows: dict[str, tuple[float, float]] = {}
    numbers: dict[str, int] = {}
    for number, line in lines(path):
        if not line.strip() or line.startswith("#") or (not rows and line == _HEADER):
            continue
        cells = line.split("\t")
        if len(cells) != 3 or not cells[0].strip():
            raise broken(path, number, f"{line[:60]!r} is not a row of relation, side and distance, separated by tabs")
        relation = cells[0].strip()
        if relation in rows:
            raise broken(path, number, f"the relation {relation!r} comes twice, first in line {numbers[relation]}")
        rows[relation] = (_weight(path, number, cells[1]), _weight(path, number, cells[2]))
        numbers[relation] = number
    if not rows:
        raise DataError(
            "the table has no weights",
            where=str(path),
            fix="write a row for each relation: relation, side weight, distance weight, separated by tabs",
            id="grammar-header",
        )
    return WeightTable(rows, str(path))


def random_table(number: int) -> WeightTable:
    """Return the random grammar of a number: two draws from [-0.5, 0.5) for each relation, by name, as published.

    The names are the relations of UD v2 and of lifted heads; the published ones come from the authors' tables.
    `*` is `dep`, for relations outside UD.
    """
    draws = random.Random(number)
    rows = {name: (draws.random() - 0.5, draws.random() - 0.5) for name in sorted(V2_RELATIONS.union(LIFTED))}
    return WeightTable({**rows, _REST: rows["dep"]}, f"grammar:random={number}")


def _weight(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise broken(path, number, f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise broken(path, number, f"{text!r} is not a finite number")
    return value
