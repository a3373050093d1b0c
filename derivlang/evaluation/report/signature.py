"""How a metric was computed, in one line, so that two papers can be compared (as sacrebleu does; Post 2018).

pos.accuracy|set:UD EWT#5f0c12ab|split:test|units:316 documents|epochs:1|seeds:1,2,3|ft_seeds:2|derivlang:0.9
"""

from __future__ import annotations

import pandas as pd

from derivlang.evaluation.report.compare import is_whole
from derivlang.evaluation.report.factors import Section
from derivlang.evaluation.report.frame import CHANCE
from derivlang.evaluation.scores import counts_of

_DIGITS = 8  # of the hash of a set


def signature(section: Section, task: str, metric: str) -> str:
    """Return the signature of a metric in a section. What differs among its runs is listed."""
    rows = section.of_score[task, metric]
    some = rows[(rows["regime"] != CHANCE) & rows["final"]]
    some = some[is_whole(some.assign(step=pd.NA, layer=pd.NA))]
    sets = [f"{name}#{hash[:_DIGITS]}" if hash else name for name, hash in _unique(some, ["set", "set_hash"])]
    units = dict.fromkeys(units_of(row) for _, row in some.drop_duplicates(["set_hash", "formula"]).iterrows())
    found = {
        "set": sets,
        "split": some["split"].unique(),
        "units": [f"{n:,} {unit}s" for n, unit in units if n],
        **{name: [value] for name, value in section.of_task.get(task, {}).items()},
        "seeds": sorted(some["seed"].unique()),
        "ft_seeds": [n] if (n := some["ft_seed"].nunique()) else [],
        "derivlang": some["version"].unique(),
    }
    told = {name: ",".join(filter(None, map(str, values))) for name, values in found.items()}
    return "|".join([f"{task}.{metric}", *(f"{name}:{value}" for name, value in told.items() if value)])


def units_of(row: pd.Series[str]) -> tuple[int, str]:
    """Return (number of units of a row of scores, kind of unit); 0 without counts."""
    if row["counts"] is None or not row["formula"]:
        return 0, row["unit"]
    return len(counts_of(row["formula"], row["counts"])), row["unit"]


def _unique(rows: pd.DataFrame, columns: list[str]) -> list[tuple[str, ...]]:
    return [tuple(row) for row in rows[columns].drop_duplicates().itertuples(index=False) if any(row)]
