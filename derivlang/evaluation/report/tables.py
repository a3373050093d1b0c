r"""The tables of a section, from the rows of `compare`: as text for the page and for LaTeX, as numbers for CSV.

There is a table of a score by condition, of its contrasts, of its course over steps, and of every score; of the rows of
test sets and of the runs. A cell is a text; what follows its line break is printed smaller: "79.2\n78.1–80.3, n=3".

LaTeX tables are for `\usepackage{booktabs,graphicx}`: one that is wider than the text is made smaller. What is smaller
in a cell stands in brackets behind its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

import pandas as pd

from derivlang.core.messages import counted, first_names
from derivlang.evaluation.columns import PERCENT, Column
from derivlang.evaluation.lines import seeds_told, set_told, signature_line
from derivlang.evaluation.report.compare import MEAN, OTHER_SETS, PRIMARY, is_whole, last_layer
from derivlang.evaluation.report.factors import INTERACTION, Condition, Section, told_of
from derivlang.evaluation.report.frame import CHANCE, DELTA, FLOORS, RANGE, REGIMES
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.statistics import FEW_UNITS
from derivlang.evaluation.table import FACTOR

EMPTY = "–"
_TITLES = {**REGIMES, **FLOORS}
_TEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--",
    "×": r"$\times$", "Δ": r"$\Delta$", "ρ": r"$\rho$", "<": "$<$", ">": "$>$", "|": "$|$", "…": r"\dots{}", '"': "''",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Table:
    """A table. shown: its cells as text, with named labels of rows. data: its numbers, one a row, for the CSV file.

    name: of its files. note, signature: plain text. A table with a signature has a LaTeX file.
    """

    folder: ClassVar[str] = "tables"
    name: str
    title: str
    shown: pd.DataFrame
    data: pd.DataFrame
    note: str = ""
    signature: str = ""

    @property
    def files(self) -> dict[str, bytes]:
        """Their content, by suffix. CSV has no empty columns, and spaces between the numbers of a list."""
        data = self.data.drop(columns="condition", errors="ignore").dropna(axis=1, how="all")
        data = data.map(lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else value)
        texts = {"csv": data.loc[:, (data != "").any()].to_csv(index=False, lineterminator="\n")}
        if self.signature:
            texts["tex"] = self.latex()
        return {kind: text.encode() for kind, text in texts.items()}

    def latex(self) -> str:
        """Return the table with its note and its signature as LaTeX."""
        shown = self.shown.map(lambda cell: tex(re.sub(r"(?s)\n(.*)", r" (\1)", cell)))
        shown = shown.rename(columns=tex, index=tex).rename_axis(index=list(map(tex, shown.index.names)))
        text = shown.reset_index(allow_duplicates=True).to_latex(
            index=False, escape=False, caption=f"{tex(self.title)}. {tex(self.note)}", label=f"tab:{self.name}",
            column_format="l" * shown.index.nlevels + "r" * shown.shape[1], position="ht",
        )  # fmt: skip
        # \width is the width of the table itself
        fits = "\\centering\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{\\begin{tabular}"
        signature = tex(self.signature).replace("$|$", r"$|$\allowbreak ")
        end = f"\\par\\footnotesize\\texttt{{{signature}}}\n\\end{{table}}"
        text = text.replace(r"\begin{tabular}", fits).replace(r"\end{tabular}", r"\end{tabular}}")
        return str(text.replace(r"\end{table}", end))


def tex(plain: object) -> str:
    """Return text without LaTeX markup."""
    return str(plain).translate(_TEX)


def grid(lines: Iterable[tuple[Sequence[str], Mapping[str, str]]], names: Sequence[str]) -> pd.DataFrame:
    """Return lines (labels, cells by column) as a table; those with the same labels are one row. names: of the labels.

    Labels that are empty in all rows are left out.
    """
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for labels, cells in lines:
        rows.setdefault(tuple(labels), {}).update(cells)
    used = [place for place in range(len(names)) if any(labels[place] for labels in rows)] or [0]
    index = pd.MultiIndex.from_tuples([[labels[place] for place in used] for labels in rows])
    return pd.DataFrame(list(rows.values()), index.set_names([names[place] for place in used])).fillna(EMPTY)


def number(value: float, unit: str = PERCENT) -> str:
    """Return a number with a true minus sign: one decimal in percent, two of other small numbers; never -0.0."""
    if value != value:
        return "NaN"
    digits = 1 if unit == PERCENT or abs(value) >= 100 else 2
    return (f"{value:.1e}" if abs(value) >= 1e9 else f"{value:z.{digits}f}").replace("-", "−")


def signed(value: float, unit: str = PERCENT) -> str:
    """Return a number with its sign; 0 has no sign."""
    text = number(value, unit)
    return text if value != value or text.startswith("−") or float(text) == 0 else f"+{text}"


def p_value(value: float) -> str:
    """Return a p-value with three decimals."""
    return EMPTY if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(row: Mapping[str, Any], column: Column) -> str:
    """Return the interval of a row of `compare`, "" without one; of a share it is cut at 0 and 100."""
    low, high = row["low"], row["high"]
    if low != low:
        return ""
    if row["kind"] != MEAN:
        return f"{signed(low, column.unit)} to {signed(high, column.unit)}"
    if row["regime"] not in (DELTA, RANGE) and column.unit == PERCENT:
        low, high = max(low, 0.0), min(high, 100.0)
    return ("–" if low >= 0 else " to ").join([number(low, column.unit), number(high, column.unit)])


def estimate_cell(row: Mapping[str, Any], column: Column, planned: int = 0) -> str:
    """Return the cell of a row of `compare`: the value; its interval, or the values of two seeds; and n.

    planned: the number of runs.
    """
    write = number if row["kind"] == MEAN else signed
    seeds = ", ".join(write(value, column.unit) for value in row["values"]) if row["n"] == 2 else ""
    why = row["why"] if row["n"] > 2 or not row["n"] else ""
    n = f"n={row['n']}" + (f" of {planned}" if row["n"] < planned else "")
    told = ", ".join(filter(None, [interval(row, column) or seeds, why, n]))
    return f"{write(row['value'], column.unit)}{'*' if row['p_holm'] < 0.05 else ''}\n{told}"


def file_name(*texts: str) -> str:
    """Return the name of a file for texts: letters, digits and hyphens, with a hash of a text that has others."""
    plain = ((text, re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")) for text in texts if text)
    return "-".join(
        name if name == text else f"{name[:40]}-{crc32(text.encode()):08x}".lstrip("-") for text, name in plain
    )


def listed(names: Iterable[str]) -> str:
    """Return names as text: a, b and c."""
    several = list(names)
    return " and ".join(filter(None, [", ".join(several[:-1]), *several[-1:]]))


def regime_title(regime: str) -> str:
    """Return the title of a regime."""
    return _TITLES.get(regime, regime)


class ReportedScore:
    """A score of a section.

    scores: its rows of the table of scores. rows: its comparisons on whole test sets, of all layers and steps. name: of
    its files. layer: the last one, which tables by condition and over steps are of; None if the score is not by layer.
    means: of finished models. regimes: that tables by factor show: SUP, ZS, CS, Δ, or of a measure all but chance.
    """

    def __init__(self, section: Section, task: str, column: Column, scores: pd.DataFrame, rows: pd.DataFrame) -> None:
        self.section, self.task, self.column, self.scores, self.rows = section, task, column, scores, rows
        self.name, self.layer = file_name(task, column.name), last_layer(rows, task, column.name)
        self.means = self.of_kind(MEAN)
        there = self.means["regime"].unique()
        self.regimes = [one for one in REGIMES if one in there] or [one for one in there if one != CHANCE]

    def title(self, regime: str = "", *more: str) -> str:
        """Return the name of the score for titles, such as "pos: accuracy, ZS"."""
        return ", ".join(filter(None, [f"{self.task}: {self.column.shown}", regime_title(regime), *more]))

    def of_kind(self, kind: str) -> pd.DataFrame:
        """Return the comparisons of finished models."""
        return self.rows[(self.rows["kind"] == kind) & is_whole(self.rows, self.layer)]

    def steps(self) -> pd.DataFrame:
        """Return the means of checkpoints and of finished models, which get their last step; no rows without
        checkpoints."""
        means = self.rows[(self.rows["kind"] == MEAN) & is_whole(self.rows.assign(step=pd.NA), self.layer)]
        if means["step"].isna().all():
            return means[:0]
        last: dict[Condition, int] = {}
        for run, step in self.section.rows.groupby("run")["step"].max().items():
            condition = self.section.runs[run][0]
            last[condition] = max(last.get(condition, 0), int(step))
        steps = means["step"].fillna(means["condition"].map(last.get).astype("Int64"))
        return means.assign(step=steps).sort_values("step", kind="stable")


def scores_of(section: Section, comparisons: pd.DataFrame) -> list[ReportedScore]:
    """Return the scores of a section, in the order of their columns. comparisons: all of it."""
    whole = comparisons[is_whole(comparisons.assign(layer=pd.NA, step=pd.NA))]
    scores, rows = (dict(iter(one.groupby(["task", "metric"]))) for one in (section.rows, whole))
    return [
        ReportedScore(section, key[0], column, scores[key], rows.get(key, whole[:0]))
        for key, column in section.columns.items()
        if key in scores
    ]


def score_table(score: ReportedScore) -> Table:
    """Return the table of a score: a row for each condition that was planned, a column for each regime."""
    section, column, means = score.section, score.column, score.means
    headline = column.name if column.headline else None  # of a published number without a metric
    published = [one for one in section.published
                 if (one["task"], one.get("metric", headline)) == (score.task, column.name)]  # fmt: skip
    cells: dict[tuple[Condition, str], str] = {}  # (condition, title of a column) -> text
    for row in means.to_dict("records"):
        condition, title = row["condition"], regime_title(row["regime"]) or column.shown
        cells[condition, title] = estimate_cell(row, column, section.planned[condition])
    for one in published:
        title = f"{regime_title(one.get('regime', '')) or column.shown}, published"
        for condition in section.planned:
            levels = section.levels_of(condition).items()
            if all(str(one.get(name, one.get(f"{FACTOR}{name}", level))) == level for name, level in levels):
                cells[condition, title] = number(one["value"], column.unit)
    there = {title for _, title in cells}
    shown = [regime_title(one) or column.shown for one in (*score.regimes, *FLOORS)]
    titles = [title for one in shown for title in (one, f"{one}, published") if title in there]
    lines = (
        (_levels(condition) or ["all"], {title: cells.get((condition, title), EMPTY) for title in titles})
        for condition in section.planned
    )
    return Table(
        score.name,
        score.title() + (f", by {listed(section.factors)}" if section.factors else ""),
        grid(lines, section.factors or [section.name or "runs"]),
        means,
        _note(
            f"Unit: {column.unit}." if column.unit else "",
            "Smaller is better." if column.better == "down" else "",
            f"Layer {score.layer}." if score.layer is not None else "",
            _floor(section, means),
            f"Published: {'; '.join(dict.fromkeys(str(one.get('source')) for one in published))}." if published else "",
            _intervals(means),
        ),
        signature(score),
    )


def contrast_table(score: ReportedScore, kind: str) -> Table | None:
    """Return the table of differences or of interactions, a row for each; None if there are none."""
    section, column, some = score.section, score.column, score.of_kind(kind)
    some = some[some["regime"].isin(score.regimes)]
    if some.empty:
        return None
    lines = []
    for row in some.to_dict("records"):
        condition = section.label(row["condition"], row["factor"].split(" × "))
        told = f"mean of {row['conditions']} conditions" if row["conditions"] > 1 else condition
        cells = {
            "difference": estimate_cell(row, column),
            "p": p_value(row["p"]),
            "by seed": ", ".join(signed(value, column.unit) for value in row["values"]),
            **({"p (Holm)": p_value(row["p_holm"])} if row["family"] == PRIMARY else {}),
        }
        lines.append(((regime_title(row["regime"]), row["factor"], row["contrast"], told), cells))
    tests, baseline = some["family"].eq(PRIMARY).sum(), told_of(section.baseline)
    # A mean may be over several sets.
    others = first_names(
        some.loc[some["why"].str.contains(OTHER_SETS) & (some["conditions"] == 1), "contrast"].unique()
    )
    return Table(
        f"{score.name}-{kind}s",
        score.title("", "interactions" if kind == INTERACTION else "contrasts with the baseline"),
        grid(lines, ["Regime", "Factor", "Contrast", "Condition"]),
        some,
        _note(
            f"How far a difference from the baseline ({baseline}) depends on another factor."
            if kind == INTERACTION
            else f"A level minus the baseline ({baseline}), paired by pre-training seed"
            f"{'' if others else ', on the same test set'}.",
            f"There are {OTHER_SETS} in {others}: these differences may come from what was tested." if others else "",
            "A mean of conditions is over those that all sides have, each with the same weight."
            if some["conditions"].max() > 1
            else "",
            f"p: of no difference. The primary outcome is {'.'.join(filter(None, section.primary))}: "
            f"{counted(tests, 'test')}, corrected by Holm's method; * is p < 0.05 after it. All other p-values are "
            "exploratory."
            if tests and section.primary
            else "p: of no difference; all are exploratory and not corrected.",
            _few(some),
        ),
        signature(score),
    )


def curve_table(score: ReportedScore) -> Table | None:
    """Return the table of a score over steps, or None if no checkpoint was evaluated."""
    some, section = score.steps(), score.section
    some = some[some["regime"].isin(score.regimes)]
    several = some["regime"].nunique() > 1
    lines = [
        ([regime_title(row["regime"]) * several, *_levels(row["condition"])],
         {f"{row['step']:,}": estimate_cell(row, score.column, section.planned[row["condition"]])})
        for row in some.to_dict("records")
    ]  # fmt: skip
    shown = grid(lines, ["Regime", *section.factors]) if lines else None
    title = score.title("", "over steps")
    return None if shown is None else Table(f"{score.name}-steps", title, shown, some, _intervals(some))


def every_score(section: Section, comparisons: pd.DataFrame, task: str) -> Table:
    """Return the table of all numbers of a task in finished models: rows of outcomes, columns of conditions."""
    some = comparisons[(comparisons["task"] == task) & (comparisons["kind"] == MEAN) & comparisons["step"].isna()]
    lines = []
    for row in some.to_dict("records"):
        column, layer = section.columns[task, row["metric"]], "" if pd.isna(row["layer"]) else str(row["layer"])
        labels = (column.shown, regime_title(row["regime"]), row["split"], row["group"], layer)
        lines.append((labels, {section.label(row["condition"]) or "mean": estimate_cell(row, column)}))
    shown = grid(lines, ["Score", "Regime", "Split", "Part", "Layer"])
    return Table(file_name(task, "scores"), f"{task}: every score", shown, some, _intervals(some))


def signatures(scores: Iterable[ReportedScore]) -> Table:
    """Return the table of the signatures of all scores."""
    shown = grid((((one.task, one.column.name), {"Signature": signature(one)}) for one in scores), ["Task", "Score"])
    return Table("signatures", "Signatures", shown, shown.reset_index(), "How a score was computed, for a paper.")


def signature(score: ReportedScore) -> str:
    """Return the signature of a score in its section. What differs among its runs is listed."""
    rows = score.scores
    some = rows[(rows["regime"] != CHANCE) & rows["final"] & is_whole(rows.assign(step=pd.NA, layer=pd.NA))]
    of_sets = some[some["counts"].notna() & (some["formula"] != "")].drop_duplicates(["set_hash", "formula"])
    parts: dict[str, Iterable[Any]] = {
        "set": dict.fromkeys(map(set_told, some["set"], some["set_hash"])),
        "split": some["split"].unique(),
        "units": dict.fromkeys(
            counted(len(counts_of(*row)), unit)
            for *row, unit in of_sets[["formula", "counts", "unit"]].to_numpy()
            if len(row[1])
        ),
        **{name: [value] for name, value in score.section.of_task.get(score.task, {}).items()},
        "seeds": [seeds_told(some["seed"])],
        "ft_seeds": [seeds_told(some["ft_seed"].dropna())],
        "derivlang": some["version"].unique(),
    }
    return signature_line(f"{score.task}.{score.column.name}", parts)


def _levels(condition: Condition) -> list[str]:
    return [level or "none" for level in condition]


def _note(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _intervals(some: pd.DataFrame) -> str:
    """Return what the cells of means have: intervals, if some do, and a warning if they are of few units."""
    told = ", with 95 % intervals" if some["low"].notna().any() else ""
    return _note(f"Means over n pre-training seeds{told}.", _few(some))


def _few(some: pd.DataFrame) -> str:
    few = some[some["low"].notna() & (some["units"] < FEW_UNITS)].sort_values("units")[["units", "unit"]].to_numpy()
    return f"The test set has {counted(*few[0])}: intervals of fewer than {FEW_UNITS} are inexact." if len(few) else ""


def _floor(section: Section, some: pd.DataFrame) -> str:
    """Return what the floor of a score is, as a sentence: of a task in ZS, or the range of chance levels."""
    if RANGE in some["regime"].unique():
        known = {section.untrained(condition) is None for condition in section.planned}
        floor = ", or else ".join(("ZS of the untrained model", "the chance level")[one] for one in sorted(known))
        return f"% of range: (ZS − floor) / (SUP − floor), with {floor} as the floor."
    values = some.loc[some["regime"] == CHANCE, "value"].dropna()
    ends = dict.fromkeys([number(values.min()), number(values.max())])
    return f"Chance: {' to '.join(ends)}." if len(values) else ""
