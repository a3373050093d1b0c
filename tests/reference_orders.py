"""Orders of words, written plainly: a sentence is a list of places, its draws come one by one (`tests/reference.py`).

Each function returns which word stands at each place of a body. `draw(place, purpose)` is a 64-bit whole number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Draw = Callable[[int, int], int]

CHOSEN, AGAIN = 1 << 40, 1 << 41


def by_draws(places: Sequence[int], draw: Callable[[int], int]) -> list[int]:
    """Places sorted by the top 32 bits of their draws, ties by place."""
    return sorted(places, key=lambda place: (draw(place) >> 32, place))


def cut(items: Sequence[int], size: int) -> list[list[int]]:
    """Windows of a size, the last of which may be shorter; 0: one window."""
    size = size or max(len(items), 1)
    return [list(items[i : i + size]) for i in range(0, len(items), size)]


def shuffled(
    body: int,
    draw: Draw,
    *,
    local: int = 0,
    blocks: int = 1,
    derange: bool = False,
    rate: float = 1.0,
    how: str = "positions",
) -> list[int]:
    """A shuffle of a body; a block is drawn as its first word."""
    out: list[int] = []
    for window in cut(range(body), local):
        members = {block[0]: block for block in cut(window, blocks)}
        units = list(members)
        order = swapped(units, draw, rate) if how == "swaps" else partly(units, draw, rate, derange)
        out += [word for unit in order for word in members[unit]]
    return out


def partly(units: list[int], draw: Draw, rate: float, derange: bool) -> list[int]:
    """The chosen units in a drawn order, at the places of the chosen ones."""
    chosen = [unit for unit in units if rate == 1 or (draw(unit, CHOSEN) >> 11) / 2**53 < rate]
    attempt = 0
    while True:
        order = by_draws(chosen, lambda unit: draw(unit, attempt * AGAIN))  # noqa: B023
        if not derange or len(chosen) < 2 or all(one != other for one, other in zip(order, chosen, strict=True)):
            break
        attempt += 1
    drawn = dict(zip(chosen, order, strict=True))
    return [drawn.get(unit, unit) for unit in units]


def swapped(units: list[int], draw: Draw, rate: float) -> list[int]:
    """Exchanges of two units, one after the other."""
    out, n = list(units), len(units)
    for step in range(int((n - 1) * rate)):
        both = draw(units[0], CHOSEN + step)
        one = ((both >> 32) * n) >> 32
        other = (one + 1 + (((both & 0xFFFFFFFF) * (n - 1)) >> 32)) % n
        out[one], out[other] = out[other], out[one]
    return out


def stride(body: int, k: int) -> list[int]:
    """Every k-th word from each of the first k on."""
    return [place for rest in range(k) for place in range(rest, body, k)]


def flipped(body: int, goes_before: Sequence[bool]) -> list[int]:
    """Clouatre et al.: a held word, and the next one before it or after it. goes_before: of each word."""
    out: list[int] = []
    held = None
    for place in range(body):
        if held is None:
            held = place
        elif goes_before[place]:
            out.append(place)
        else:
            out.append(held)
            held = place
    return out if held is None else [*out, held]


def inserted(code: Sequence[int]) -> list[int]:
    """Word i before the last code[i] words of the list so far."""
    out: list[int] = []
    for word, k in enumerate(code):
        out.insert(len(out) - k, word)
    return out


def distance(order: Sequence[int]) -> int:
    """Kendall's tau distance to the source: pairs of words in the other order."""
    return sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
