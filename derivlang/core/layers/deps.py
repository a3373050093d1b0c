"""Enhanced dependencies in a derived order: the numbers in DEPS are mapped as heads are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int32
from derivlang.core.arrow import scalar, string_array, to_arrow, to_numpy
from derivlang.core.layers.base import Realignment
from derivlang.core.trees import NO_WORD, only_governors

_REFERENCE = re.compile(r"^([0-9]+)(?:\.([0-9]+))?:")


def moved_deps(deps: pa.Array, move: Realignment, numbers: dict[tuple[int, str], str], unit: Int32) -> pa.Array:
    """Return the DEPS of M derived words, strings [M], `_` for inserted words.

    deps: strings [N], of the source. numbers: the new ids of empty nodes, by (unit, old id). unit: int32[M].
    """
    index = move.order.index
    kept = index >= 0
    words = np.maximum(index, 0)  # an inserted word reads word 0, and gets `_` below
    number, relations = only_governors(deps)  # one governor: nearly all
    number, deps, relations = number[words], deps.take(to_arrow(words)), relations.take(to_arrow(words))
    one = kept & (number > 0)
    place = np.full(len(index), -1, np.int64)
    place[one] = move.positions[move.source.unit_words[unit[one]] + number[one] - 1]
    governor = pc.cast(to_arrow(place - move.derived_units[unit] + 1), pa.string())
    moved = pc.binary_join_element_wise(governor, pc.fill_null(relations, scalar("")), scalar(":"))
    gone = ~kept | (one & (place < 0))
    out = pc.if_else(to_arrow(gone), scalar("_"), pc.if_else(to_arrow(one), moved, deps))
    some = np.flatnonzero(kept & ~one & to_numpy(pc.invert(pc.is_in(deps, value_set=NO_WORD))))
    mapped = [
        map_deps(text, u, move, numbers)
        for text, u in zip(deps.take(to_arrow(some)).to_pylist(), unit[some].tolist(), strict=True)
    ]
    at = np.zeros(len(index), bool)
    at[some] = True
    return pc.replace_with_mask(out, to_arrow(at), string_array(mapped))


def map_deps(deps: str, unit: int, move: Realignment, numbers: dict[tuple[int, str], str]) -> str:
    """Return DEPS with derived numbers, sorted by number as CoNLL-U requires. References to deleted words are left out.

    `4:nsubj|8.1:conj` with word 4 at position 6, word 8 at position 2  ->  `2.1:conj|6:nsubj`
    """
    source, derived = int(move.source.unit_words[unit]), int(move.derived_units[unit])
    out: list[tuple[Any, str]] = []
    for part in deps.split("|"):
        match = _REFERENCE.match(part)
        if not match:
            out.append(((0, 0), part))
            continue
        # The match ends with the colon, which stays: `4:nsubj` -> `:nsubj`.
        rest = part[match.end() - 1 :]
        if match[2]:
            new = numbers.get((unit, f"{match[1]}.{match[2]}"))
            if new is not None:
                whole, _, minor = new.partition(".")
                out.append(((int(whole), int(minor)), new + rest))
        elif match[1] == "0":
            out.append(((0, 0), part))
        else:
            place = int(move.positions[source + int(match[1]) - 1])
            if place >= 0:
                out.append(((place - derived + 1, 0), f"{place - derived + 1}{rest}"))
    return "|".join(part for _, part in sorted(out, key=lambda item: item[0])) or "_"
