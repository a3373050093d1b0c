"""No claim: `make --t trans,inv` against the loops of `make_loops`, tuned: what depends only on a word is kept in a
dict, and `datasets` gets Arrow tables.
"""

from __future__ import annotations

from make_loops import against
from measure import Report, Settings


def benchmark(settings: Settings) -> Report:
    return against(settings, {"tuned-map": 0, "tuned-loop": 0})
