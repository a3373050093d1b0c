"""Tables 3 and 8 of the paper over the runs of a setting, and the correlation between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from derivlang.evaluation.report import published
from derivlang.evaluation.report.cells import (
    ALIGNMENTS,
    EMPTY,
    HERE,
    INTERVALS,
    PAPER,
    Regimes,
    Row,
    Table,
    TableCell,
    alignment_cell,
    decimal,
    number_cell,
    p_cell,
    pair,
    runs_cell,
    score_cell,
    score_columns,
)
from derivlang.evaluation.report.columns import DEV, Column, regimes_of
from derivlang.evaluation.report.correlation import Correlation, spearman
from derivlang.evaluation.report.settings import Entry, Setting
from derivlang.evaluation.report.variants import NAMES


def overview(setting: Setting) -> Table:
    """Return the table of all objectives and languages, SUP, ZS, Δ (Table 3 of the paper)."""
    regimes = regimes_of(mixed=setting.mixed)
    return Table(
        "overview",
        "Objectives and languages",
        f"{_like(setting, 'Table 3')}SUP: fine-tuned and tested on the derived language; ZS: fine-tuned on the source, "
        f"tested on the derived language; Δ = SUP − ZS{_MIXED if setting.mixed else ''}. In percent, on test sets: "
        "means over n pre-training seeds, in each of which fine-tuning seeds are averaged. "
        f"{INTERVALS} In the figures, a dot is a seed and a line this interval. "
        f"{_origin(setting, 'dev sets, one run each')}Chance: of the most frequent training label, or of a head drawn "
        "uniformly; – where a score has no chance level.",
        _labels(setting),
        score_columns(setting.headline, regimes),
        (*_scores(setting, regimes), *_chance(setting, regimes)) if setting.headline else (),
    )


def dev_overview(setting: Setting) -> Table:
    """Return the same table on dev sets, as in the paper: those of runs that have such scores."""
    known = any(entry.scores(column, f"{DEV}zs") for entry in setting.entries for column in setting.headline)
    regimes = regimes_of(mixed=setting.mixed, dev=True)
    return Table(
        "dev",
        "On dev sets, as in the paper" if setting.published else "On dev sets",
        f"The same models on the derived dev sets. {_origin(setting, 'them')}SUP chose its epoch on them.",
        _labels(setting),
        score_columns(setting.headline, regimes),
        _scores(setting, regimes) if known else (),
    )


def epoch_choice(setting: Setting) -> Table:
    """Return the table of ZS by the dev set that chooses the epoch."""
    rows = [
        Row((entry.label, entry.language.spec), (*cells, runs_cell(entry.runs)))
        for entry in setting.entries
        if any(entry.scores(column, "oracle") for column in setting.headline)
        for cells in [[score_cell(entry, column, r) for column in setting.headline for r, _ in _CHOICES]]
    ]
    return Table(
        "oracle",
        "ZS by the choice of the epoch",
        "The scores of the first table, whose epoch the source's dev set chose, beside those of the epoch that the "
        "derived dev set chooses, which labels of the derived language would allow. After one epoch they are the same. "
        f"{INTERVALS}",
        ("Objective", "Language"),
        score_columns(setting.headline, _CHOICES),
        tuple(rows),
    )


def alignment(setting: Setting) -> Table:
    """Return the table of alignment beside Δ, held-out pairs first (Table 8 of the paper)."""
    measured = any(entry.alignment(name) is not None for entry in setting.entries for name, _ in ALIGNMENTS)
    rows = []
    for labels, entry, key in _lines(setting) if measured or setting.published else ():
        cells = [alignment_cell(entry, name) for name, _ in ALIGNMENTS]
        cells += [score_cell(entry, column, "delta") for column in setting.headline]
        rows.append(Row((*labels, *_mark(setting)), (*cells, runs_cell(entry.runs if entry else ()))))
        if key is not None:
            printed = [published.ALIGNMENT[key] if name == "all" else None for name, _ in ALIGNMENTS]
            printed += [column.of(published.TABLE_3[key], "delta") for column in setting.headline]
            rows.append(Row((*labels, PAPER), (*map(number_cell, printed), TableCell("")), paper=True))
    return Table(
        "alignment",
        "Alignment of word embeddings",
        f"{_like(setting, 'Table 8')}Percentage of the source's rows whose nearest row of the derived language is "
        "their twin's. Held-out: rows outside the training dictionary; all and by token mass include the pairs that "
        "DICT-MLM and ALIGN-MLM were trained on. Means over n pre-training seeds; the 95 % intervals of the alignment "
        f"cover seeds alone, those of Δ test documents, too. {_origin(setting, 'a random sample of all rows')}",
        _labels(setting),
        (
            ("Alignment", tuple(title for _, title in ALIGNMENTS)),
            ("Δ", tuple(column.title for column in setting.headline)),
            ("", ("runs",)),
        ),
        tuple(rows),
    )


def alignment_points(setting: Setting, name: str, column: Column) -> list[tuple[Entry, float, float]]:
    """Return (entry, alignment, Δ) of the entries that have both, each averaged over pre-training seeds."""
    found = [(entry, entry.alignment(name), entry.delta(column)) for entry in setting.entries]
    return [(entry, x, y) for entry, x, y in found if x is not None and y is not None]


def correlations(setting: Setting) -> dict[tuple[Column, str], Correlation]:
    """Return Spearman's ρ of alignment with Δ by (column, kind of alignment, or "paper": from the paper's tables)."""
    out = {}
    for column in setting.headline:
        for name in _CORRELATED:
            points = alignment_points(setting, name, column)
            languages = [entry.language.spec for entry, _, _ in points]
            out[column, name] = spearman([x for _, x, _ in points], [y for _, _, y in points], languages)
        if column.printed and setting.published:
            lines = published.TABLE_3.items()
            printed = [(published.ALIGNMENT[key], line[column.task][2], key[1]) for key, line in lines]
            out[column, PAPER] = spearman(*map(list, zip(*printed, strict=True)))
    return out


def correlation_table(found: dict[tuple[Column, str], Correlation]) -> Table:
    """Return the table of correlations, with the published ones below."""
    printed = ", and recomputed from the paper's Tables 3 and 8" if any(name == PAPER for _, name in found) else ""
    rows = [
        Row((column.title, _CORRELATED.get(name, _PRINTED)), _correlation_cells(one), name == PAPER)
        for (column, name), one in found.items()
    ]
    return Table(
        "correlation",
        "Correlation of alignment with transfer",
        f"Spearman's ρ of alignment with Δ over the rows above, averaged over pre-training seeds{printed}. A negative "
        "ρ means that better alignment goes with a smaller Δ. p: two-sided permutation test, which exchanges rows of "
        "one language only; over all permutations up to 50,000, else over 10,000. Floor: the smallest p that is "
        "possible with these rows; where it is above 0.05, no ρ is significant. Rows share objectives, so they are not "
        "independent, and p is too small.",
        ("Score", "Alignment"),
        (("", ("points", "ρ", "p", "floor of p")),),
        tuple(rows),
    )


def _scores(setting: Setting, regimes: Regimes) -> tuple[Row, ...]:
    rows: list[Row] = []
    for labels, entry, key in _lines(setting):
        line = published.TABLE_3[key] if key else None
        rows += pair(labels, entry, line, setting.headline, regimes, _mark(setting))
    return tuple(rows)


def _chance(setting: Setting, regimes: Regimes) -> Iterable[Row]:
    """Yield a row of chance levels, the range over the runs, if any score has one."""
    levels = [
        [value for run in setting.runs if (value := run.chance(column)) is not None] for column in setting.headline
    ]
    if any(levels):
        cells = []
        for found in levels:
            ends = dict.fromkeys(decimal(value) for value in (min(found), max(found))) if found else [EMPTY]
            level = TableCell("–".join(ends))
            cells += [level if regime != "delta" else TableCell("") for regime, _ in regimes]
        yield Row(("Chance", "", *_mark(setting)), (*cells, TableCell("")))


def _lines(setting: Setting) -> Iterable[tuple[tuple[str, str], Entry | None, tuple[str, str] | None]]:
    """Yield (labels, entry, key in the paper's table) by objective: first the paper's rows that were run or planned."""
    if not setting.published:
        yield from _others(setting)
        return
    planned = setting.planned
    for objective in published.OBJECTIVES:
        for language in published.LANGUAGES:
            found = [entry for entry in setting.find(objective, language) if entry.variant.standard]
            rows: list[tuple[str, str, Entry | None]] = [(entry.label, entry.language.spec, entry) for entry in found]
            there = {entry.language for entry in found}
            for name, one in sorted(planned):
                if (name, one.bare) == (objective, language) and one not in there:
                    rows.append((NAMES[objective], one.spec, None))
            for number, (label, spec, entry) in enumerate(rows):  # the paper's row stands once, beside any script
                yield (label, spec), entry, None if number else (objective, language)
        yield from _others(setting, [objective])
    yield from _others(setting, [e.variant.objective for e in setting.entries if e.variant.objective not in NAMES])


def _others(setting: Setting, objectives: Sequence[str] | None = None) -> Iterable[tuple[tuple[str, str], Entry, None]]:
    """Yield the rows of these objectives that are not in the paper's Table 3; all rows if `objectives` is None."""
    for entry in setting.entries:
        printed = entry.variant.standard and entry.key in published.TABLE_3
        if objectives is None or (entry.variant.objective in objectives and not printed):
            yield (entry.label, entry.language.spec), entry, None


def _mark(setting: Setting) -> tuple[str, ...]:
    """Return the label that tells our rows from the paper's, where its rows are."""
    return (HERE,) if setting.published else ()


def _labels(setting: Setting) -> tuple[str, ...]:
    return ("Objective", "Language", *([""] if setting.published else []))


def _like(setting: Setting, table: str) -> str:
    return f"Like {table} of the paper. " if setting.published else ""


def _origin(setting: Setting, of: str) -> str:
    return f"The paper's numbers are from {of}. " if setting.published else ""


def _correlation_cells(found: Correlation) -> tuple[TableCell, ...]:
    rho = TableCell() if found.rho is None else TableCell(f"{found.rho:.3f}".replace("-", "−"))
    floor = (
        TableCell()
        if found.floor is None
        else TableCell(f"{found.floor:.3f}" if found.floor >= 0.001 else f"{found.floor:.5f}")
    )
    return TableCell(str(found.n)), rho, p_cell(found.p), floor


_MIXED = "; CS: fine-tuned on pairs with one side in each language, tested on the derived language"
_CHOICES = (("zs", "source dev"), ("oracle", "dev oracle"))
_CORRELATED = {"heldout": "held-out", "all": "all"}
_PRINTED = "paper, all"
