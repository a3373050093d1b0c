"""Tables over the factors of a study: each condition, marginal means, contrasts with the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from derivlang.evaluation.report.cells import (
    EMPTY,
    INTERVALS,
    Row,
    Table,
    TableCell,
    decimal,
    p_cell,
    seeds_note,
    signed,
    titles,
)
from derivlang.evaluation.report.factors import Condition, FactorGrid, Headline
from derivlang.evaluation.report.scores import ScoreKey
from derivlang.evaluation.statistics import Estimate, holm

_MEAN_OF = "Mean of conditions: over those that both levels have, each with the same weight. "


def factor_notes(grid: FactorGrid) -> list[str]:
    """Return what is known of the factors, a line each, and how to read the tables."""
    notes = [f"{name}: {', '.join(grid.levels[name])}" for name in grid.factors]
    if grid.follow:
        notes.append(f"With one level, or given by those above: {', '.join(grid.follow)}.")
    return [*notes, f"Numbers are means over n pre-training seeds. {INTERVALS} Of measures, it covers seeds alone.",
            f"{EMPTY}: planned, but without a result among these runs. A blank cell: never planned."]  # fmt: skip


def by_factor(grid: FactorGrid, headline: Headline) -> Table:
    """Return the table of a score by condition: rows of x (and of other factors), columns of lines."""
    others = [name for name in grid.factors if name not in (grid.x, grid.lines)]
    across = grid.levels[grid.lines] if grid.lines else ("",)
    rows = []
    for above in product(*(grid.levels[name] for name in others)):
        for level in grid.levels[grid.x]:
            line = [(level, *((one,) if grid.lines else ()), *above) for one in across]
            if any(condition in grid.planned for condition in line):
                cells = [_condition_cell(grid, c, headline, key) for key, _ in headline.regimes for c in line]
                rows.append(Row((*above, level), tuple(cells)))
    titles = tuple(title for _, title in headline.regimes)
    groups = tuple((title, across) for title in titles) if grid.lines else (("", titles),)
    return Table(
        f"factor-{headline.id}",
        f"{headline.title} by {_and([grid.x, *([grid.lines] if grid.lines else []), *others])}",
        f"Columns: {grid.lines}." if grid.lines else "",
        (*others, grid.x),
        groups,
        tuple(rows),
    )


def marginal_means(grid: FactorGrid, headline: Headline) -> Table:
    """Return the table of the marginal means of each factor; one factor alone has none."""
    rows = []
    for factor in grid.factors if len(grid.factors) > 1 else ():
        measured = [(key, grid.balanced(factor, grid.levels[factor], key)) for key, _ in headline.regimes]
        for level in grid.levels[factor] if any(found for _, found in measured) else ():
            cells = []
            for key, found in measured:
                conditions = [grid.with_level(condition, factor, level) for condition in found]
                runs = [run for condition in conditions for run in grid.scored(condition, key).values()]
                mean = grid.mean(conditions, headline, key)
                cells += [_mean_cell(mean, headline, key, titles(runs)), TableCell(str(len(conditions)))]
            rows.append(Row((factor, level), tuple(cells)))
    return Table(
        f"marginal-{headline.id}",
        f"{headline.title}: marginal means",
        "The mean over the conditions (combinations of the other factors) in which every level of the factor has the "
        "score, each with the same weight. Their number is beside it; a factor without any is left out, and so is a "
        "seed that one of them lacks.",
        ("Factor", "Level"),
        tuple((title, ("mean", "conditions")) for _, title in headline.regimes),
        tuple(rows),
    )


def contrasts(grid: FactorGrid, headline: Headline) -> Table:
    """Return the table of each level minus the baseline, by condition and over all of them."""
    lines: list[tuple[tuple[str, ...], list[Estimate | None]]] = []
    for factor, base in grid.baselines.items():
        for level in grid.levels[factor]:
            if level != base:
                lines += _contrasts_of(grid, factor, base, level, headline)
    tested = [(row, at, one.p) for row, (_, found) in enumerate(lines) for at, one in enumerate(found)
              if one is not None and one.p is not None]  # fmt: skip
    corrected = holm([p for _, _, p in tested])
    p_of = {(row, at): p for (row, at, _), p in zip(tested, corrected, strict=True)}
    rows = [
        Row(
            labels[: 2 + (len(grid.factors) > 1)],
            tuple(c for at, one in enumerate(found) for c in (_difference_cell(one), p_cell(p_of.get((row, at))))),
        )
        for row, (labels, found) in enumerate(lines)
    ]
    return Table(
        f"contrasts-{headline.id}",
        f"{headline.title}: contrasts with the baseline",
        f"A level minus the baseline ({', '.join(f'{f} {level}' for f, level in grid.baselines.items())}), paired by "
        "pre-training seed: the mean over the seeds that both have. "
        f"{_MEAN_OF if len(grid.factors) > 1 else ''}p: of no difference, corrected for all those of this table "
        "(Holm); without three seeds there is none.",
        ("Factor", "Difference", "Condition")[: 2 + (len(grid.factors) > 1)],
        tuple((title, ("points", "p")) for _, title in headline.regimes),
        tuple(rows),
    )


def _contrasts_of(
    grid: FactorGrid, factor: str, base: str, level: str, headline: Headline
) -> list[tuple[tuple[str, ...], list[Estimate | None]]]:
    """Return (labels, estimates by regime) of a level in each condition that plans both, and over all."""
    place, keys = grid.factors.index(factor), [key for key, _ in headline.regimes]
    both = [c for c in _in_order(grid) if c[place] == base and grid.with_level(c, factor, level) in grid.planned]
    lines: list[tuple[tuple[str, ...], list[Estimate | None]]] = []
    for condition in both:
        told = ", ".join(f"{name} {one}" for name, one in zip(grid.factors, condition, strict=True) if name != factor)
        found = [grid.contrast([condition], factor, level, headline, key) for key in keys]
        lines.append(((factor, f"{level} − {base}", told), found))
    measured = [grid.balanced(factor, (base, level), key) for key in keys]
    if max(map(len, measured)) > 1:
        told = f"mean of {'–'.join(dict.fromkeys(str(n) for n in sorted(map(len, measured))))} conditions"
        found = [
            grid.contrast(c, factor, level, headline, k) if c else None for c, k in zip(measured, keys, strict=True)
        ]
        lines.append(((factor, f"{level} − {base}", told), found))
    return lines


def _in_order(grid: FactorGrid) -> list[Condition]:
    """Return the planned conditions in the order of their levels."""
    places = [{level: n for n, level in enumerate(grid.levels[name])} for name in grid.factors]
    return sorted(grid.planned, key=lambda c: tuple(at[one] for at, one in zip(places, c, strict=True)))


def _condition_cell(grid: FactorGrid, condition: Condition, headline: Headline, key: ScoreKey) -> TableCell:
    if condition not in grid.planned:
        return TableCell("", "", "not planned")
    runs = list(grid.scored(condition, key).values())
    found = grid.mean([condition], headline, key)
    cell = _mean_cell(found, headline, key, titles(runs))
    planned = grid.planned[condition]
    return replace(cell, note=f"{cell.note} of {planned}") if found is not None and found.n < planned else cell


def _mean_cell(found: Estimate | None, headline: Headline, key: ScoreKey, title: str) -> TableCell:
    if found is None:
        return TableCell()
    within = headline.within and key.regime != "delta"
    return TableCell(decimal(found.mean), seeds_note(found, within=within), title)


def _difference_cell(found: Estimate | None) -> TableCell:
    return TableCell() if found is None else TableCell(signed(found.mean), seeds_note(found, signed))


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
