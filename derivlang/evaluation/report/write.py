"""Write a report's folder from run folders.

DIR/index.html            the whole report as one self-contained page
DIR/report.md             the same as Markdown, with figures/*.png
DIR/report.json           runs, scores, differences and correlations as data
DIR/scores.tsv            every number of every run, one a line, with the levels of its factors (scores.py)
DIR/figures/*.png, *.svg
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.seal import HASH
from derivlang.core.version import __version__
from derivlang.evaluation.report import listings
from derivlang.evaluation.report.by_factor import by_factor, contrasts, factor_notes, marginal_means
from derivlang.evaluation.report.cells import ALIGNMENTS, Document, Part, Table, with_rows
from derivlang.evaluation.report.columns import Column, regimes_of
from derivlang.evaluation.report.correlation import Correlation
from derivlang.evaluation.report.curves import curve_table, curves_of, layer_curves, layer_table, logged_curves
from derivlang.evaluation.report.differences import Difference, differences_of
from derivlang.evaluation.report.drawing import Figure
from derivlang.evaluation.report.estimates import mean_of
from derivlang.evaluation.report.factors import FactorGrid, grids_of
from derivlang.evaluation.report.figures import alignment_figures, curve_figures, delta_figures, factor_figures
from derivlang.evaluation.report.markdown import markdown
from derivlang.evaluation.report.overview import (
    alignment,
    correlation_table,
    correlations,
    dev_overview,
    epoch_choice,
    overview,
)
from derivlang.evaluation.report.page import page
from derivlang.evaluation.report.projection import PROJECTION, projection_figures, projection_table
from derivlang.evaluation.report.reading import read_runs
from derivlang.evaluation.report.runs import Run, same_model
from derivlang.evaluation.report.scores import scores_file, scores_of
from derivlang.evaluation.report.settings import Entry, Setting, copies_of, settings_of
from derivlang.evaluation.report.sweeps import sweeps
from derivlang.formats.progress import stage
from derivlang.store.folders import is_free, replace_folder
from derivlang.store.record import read_record, record_text
from derivlang.training.run_files import FILES

PAGE, MARKDOWN, DATA, FIGURES, SCORES = "index.html", "report.md", "report.json", "figures", "scores.tsv"
FORMAT = 1
_OF_EARLIER_VERSIONS = [PAGE, MARKDOWN, DATA, SCORES, f"{FIGURES}/*.png", f"{FIGURES}/*.svg"]


@dataclass(frozen=True, slots=True, eq=False)
class ReportSection:
    """A setting and everything that the report shows of it."""

    setting: Setting
    differences: list[Difference]
    correlations: dict[tuple[Column, str], Correlation]
    deltas: list[Figure]
    alignments: list[Figure]
    curves: list[Figure]
    layers: list[Figure]

    @property
    def figures(self) -> list[Figure]:
        return [*self.deltas, *self.alignments, *self.curves, *self.layers]


def report(folders: Iterable[Path], out: Path) -> dict[str, Any]:
    """Write a report of these runs and return {"out", "runs", "evaluated", "settings", "figures"}.

    An earlier report in `out` is replaced, and files that are not of it stay. Raise StoreError if there is something
    else than a report.
    """
    _check_free(out)
    runs = read_runs(folders)
    with stage("drawing", None):
        return _write(runs, out)


def _write(runs: Sequence[Run], out: Path) -> dict[str, Any]:
    scores = scores_of(runs)
    grids = grids_of(runs, scores)
    studies = [_study(grid, f"f{n}-" if len(grids) > 1 else "") for n, grid in enumerate(grids, 1)]
    settings = settings_of(runs)
    parts = [_part(setting, f"s{n}-" if len(settings) > 1 else "") for n, setting in enumerate(settings, 1)]
    pictures = projection_figures(settings)
    drawn = [*pictures, *(figure for part in studies for _, some in part.shown for figure in some),
             *(figure for section in parts for figure in section.figures)]  # fmt: skip

    def write(folder: Path) -> None:
        if drawn:
            (folder / FIGURES).mkdir()
        for figure in drawn:
            (folder / _picture(figure, "png")).write_bytes(figure.png)
            (folder / _picture(figure, "svg")).write_text(figure.file, "utf-8", newline="\n")
        document = _document(runs, studies, parts, pictures)
        (folder / PAGE).write_text(page(document), "utf-8", newline="\n")
        (folder / MARKDOWN).write_text(markdown(document), "utf-8", newline="\n")
        (folder / SCORES).write_text(scores_file(scores, runs), "utf-8", newline="")
        files = [PAGE, MARKDOWN, SCORES, DATA, *(_picture(figure, kind) for figure in drawn for kind in ("png", "svg"))]
        data = {**_data(runs, parts), "files": sorted(files)}
        (folder / DATA).write_text(record_text(data), "utf-8", newline="\n")

    replace_folder(out, write, _files(out), record=DATA, what="report")
    return {
        "out": str(out),
        "runs": len(runs),
        "evaluated": sum(run.evaluation is not None for run in runs),
        "settings": len(settings),
        "figures": len(drawn),
    }


def _part(setting: Setting, prefix: str) -> ReportSection:
    return ReportSection(
        setting,
        differences_of(setting),
        correlations(setting),
        delta_figures(setting, prefix),
        alignment_figures(setting, prefix),
        curve_figures(curves_of(setting), prefix),
        curve_figures([*layer_curves(setting), *logged_curves(setting)], prefix),
    )


def _study(grid: FactorGrid, prefix: str) -> Part:
    """Return the part of a study: its scores by factor, with figures; marginal means and contrasts."""
    shown: list[tuple[Table, Sequence[Figure]]] = []
    folded = []
    for headline in grid.headlines:
        shown.append((by_factor(grid, headline), factor_figures(grid, headline, prefix)))
        more = with_rows((marginal_means(grid, headline), contrasts(grid, headline)))
        if headline.column is None:  # of a measure
            folded += more
        else:
            shown += [(table, ()) for table in more]
    return Part(f"{prefix}factors", f"{grid.plan.name}: by factor", factor_notes(grid), shown, folded)


def _document(
    runs: Sequence[Run], studies: Sequence[Part], sections: Sequence[ReportSection], pictures: Sequence[Figure]
) -> Document:
    parts = [
        Part(f"s{number}", one.setting.title, one.setting.notes, _shown(one), _folded(one))
        for number, one in enumerate(sections, 1)
    ]
    listed = with_rows((projection_table([s.setting for s in sections]), listings.doses(runs), listings.run_list(runs)))
    at_end = [
        Part(table.id, table.title, (), [(table, pictures if table.id == PROJECTION else ())]) for table in listed
    ]
    published = any(one.setting.published for one in sections)
    return Document("What the models transfer", _told(runs, published), [*studies, *parts, *at_end])


def _shown(part: ReportSection) -> list[tuple[Table, list[Figure]]]:
    """Return the tables in order, each with the figures below it."""
    found = [
        (overview(part.setting), part.deltas),
        (listings.differences(part.setting, part.differences), []),
        (listings.test_sets(part.setting), []),
        (alignment(part.setting), []),
        (correlation_table(part.correlations), part.alignments),
        *((table, []) for table in sweeps(part.setting)),
        (curve_table(part.setting, curves_of(part.setting)), part.curves),
        (layer_table(part.setting, layer_curves(part.setting)), part.layers),
    ]
    return [(table, figures) for table, figures in found if table.rows]


def _folded(part: ReportSection) -> list[Table]:
    """Return the longer tables, which are folded on the page."""
    setting = part.setting
    return with_rows(
        (
            listings.other_differences(setting, part.differences),
            epoch_choice(setting),
            dev_overview(setting),
            listings.untuned(setting),
            listings.every_alignment(setting),
            listings.inside(setting),
            listings.every_score(setting),
        )
    )


def _told(runs: Sequence[Run], published: bool) -> str:
    evaluated = sum(run.evaluation is not None for run in runs)
    missing = f", {len(runs) - evaluated} not evaluated yet" if evaluated < len(runs) else ""
    paper = "Rows marked “paper” are the printed numbers of the ALIGN-MLM paper. " if published else ""
    return (
        f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}{missing}; written by derivlang {__version__}. "
        f"{paper}Runs of different sources, models, steps or data are in separate tables. – is a value that was not "
        "measured. R1, R2 … are the runs of the last table."
    )


def _data(runs: Sequence[Run], parts: Sequence[ReportSection]) -> dict[str, Any]:
    same, left_out = same_model(runs), copies_of(runs)
    return {
        "format": FORMAT,
        "derivlang": __version__,
        "runs": [
            {
                "id": run.id,
                "folder": str(run.folder),
                "state": run.state,
                "same_as": same.get(run.id),  # as in scores.tsv: the weights alone
                "left_out_for": left_out.get(run.id),
                **{name: value for name, value in run.facts.items() if name not in (FILES, HASH)},
            }
            for run in runs
        ],
        "settings": [
            {
                "title": part.setting.title,
                "notes": part.setting.notes,
                "entries": [_entry(entry, part.setting) for entry in part.setting.entries],
                "differences": [_difference(one) for one in part.differences],
                "correlations": [
                    {"task": column.task, "metric": column.name, "alignment": name, **asdict(one)}
                    for (column, name), one in part.correlations.items()
                ],
            }
            for part in parts
        ],
    }


def _entry(entry: Entry, setting: Setting) -> dict[str, Any]:
    regimes = [name for name, _ in regimes_of(mixed=setting.mixed)]
    scores: dict[str, dict[str, Any]] = {}
    means: dict[str, dict[str, Any]] = {}
    for column in setting.columns:
        scores.setdefault(column.task, {})[column.name] = {
            regime: {run.id: asdict(score) for run, score in entry.scores(column, regime)} for regime in regimes
        }
        found = {regime: mean_of(entry, column, regime) for regime in regimes}
        means.setdefault(column.task, {})[column.name] = {r: asdict(one) for r, one in found.items() if one}
    return {
        "objective": entry.label,
        "spec": entry.language.spec,
        "runs": [run.id for run in entry.runs],
        "alignment": {name: entry.alignment(name) for name, _ in ALIGNMENTS},
        "means": means,
        "scores": scores,
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "objective": one.entry.label,
        "minus": one.base.label,
        "spec": one.entry.language.spec,
        "task": one.column.task,
        "metric": one.column.name,
        "of": one.regime,
        **(asdict(one.found) if one.found else {}),
        "p_holm": one.p,
        "by_seed": one.by_seed,
        "alone": one.alone,
        "runs": [run.id for run in one.runs],
    }


def _check_free(out: Path) -> None:
    """Raise StoreError if the folder holds something else than a report."""
    if is_free(out) or _is_report(out / DATA):
        return
    raise StoreError("holds something else than a report", where=str(out), fix="give another folder", id="output")


def _picture(figure: Figure, kind: str) -> str:
    """Return the name of a figure's file in the report."""
    return f"{FIGURES}/{figure.name}.{kind}"


def _files(out: Path) -> list[str]:
    """Return the files of an earlier report: those that its record lists, or all that earlier versions wrote."""
    try:
        listed = read_record(out / DATA, DATA, id="output").get("files")
    except StoreError:
        return []
    return [str(name) for name in listed] if isinstance(listed, list) else _OF_EARLIER_VERSIONS


def _is_report(path: Path) -> bool:
    try:
        return "settings" in read_record(path, DATA, id="output")
    except StoreError:
        return False
