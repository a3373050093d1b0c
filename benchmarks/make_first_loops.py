"""No claim: `make --t trans,inv` against the ten lines that one writes first, with `datasets.map` and with polars.

They reverse and transliterate whole lines. `make` does more: it finds the sentences, leaves final marks in place, and
writes keys, orders and what `undo` needs.
"""

from __future__ import annotations

from make_loops import against
from measure import Report, Settings


def benchmark(settings: Settings) -> Report:
    return against(settings, {"first": 0, "polars": 0}, same_rows=False)
