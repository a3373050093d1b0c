"""Write a report's folder from a table of scores.

DIR/index.html                 the whole report as one self-contained page
DIR/tables/*.csv, *.tex        the numbers of each table; the tables of scores for a paper
DIR/figures/*.png, *.svg, *.pdf
DIR/scores.parquet, .tsv       the table itself: with counts and metadata, and for people
DIR/report.json                what the report is of, and its files

The page is of the template page.html. All text is escaped, as names come from files.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from derivlang.core.dependencies import module_of
from derivlang.core.errors import StoreError
from derivlang.core.messages import counted
from derivlang.core.version import __version__
from derivlang.evaluation.report.compare import DIFFERENCE, compared
from derivlang.evaluation.report.correlation import correlation_table, correlations_of
from derivlang.evaluation.report.factors import INTERACTION, Section, sections_of
from derivlang.evaluation.report.facts import results_of, run_list, settings_of, test_rows
from derivlang.evaluation.report.figures import Figure, correlation_figure, score_figures
from derivlang.evaluation.report.frame import with_names
from derivlang.evaluation.report.tables import (
    Table,
    contrast_table,
    curve_table,
    every_score,
    file_name,
    listed,
    score_table,
    scores_of,
    signatures,
)
from derivlang.evaluation.table import FACTOR, TARGET, write_scores
from derivlang.formats.progress import stage
from derivlang.store.folders import is_free, replace_folder
from derivlang.store.record import read_record, record_text

PAGE, DATA, SCORES = "index.html", "report.json", ("scores.parquet", "scores.tsv")
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a report: results in sentences, tables and figures; then settings and tables that are folded."""

    title: str
    results: Sequence[str]
    blocks: Sequence[Table | Figure]
    settings: Sequence[str]
    folded: Sequence[Table | Figure]


def report(
    scores: pd.DataFrame, out: Path, baseline: Mapping[str, Any] | None = None, primary: str | None = None
) -> dict[str, Any]:
    """Write a report of a table of scores and return {"out", "runs", "evaluated", "figures"}.

    baseline, primary: as in `compare`. An earlier report in `out` is replaced, and files that are not of it stay. Raise
    StoreError if there is something else than a report, and what `compare` raises.
    """
    if not is_free(out) and not files_of_report(out):
        raise StoreError("holds something else than a report", where=str(out), fix="give another folder", id="output")
    sections = sections_of(with_names(scores), baseline, primary) if len(scores) else []
    evaluated = {f"{section.name}/{run}" for section in sections for run in section.runs}
    runs = evaluated | set(scores.attrs.get("states") or {})
    n = {name: len(_runs(some, scores)) for name, some in (("runs", runs), ("evaluated", evaluated))}
    files: list[str] = []

    def write(folder: Path) -> None:
        with stage("drawing", None):
            parts = [part_of(one, f"{file_name(one.name or 'runs')}-" if len(sections) > 1 else "") for one in sections]
        contents = {PAGE: page(parts, counted(n["runs"], "run"), sorted(runs - evaluated)).encode()}
        for block in (block for part in parts for block in (*part.blocks, *part.folded)):
            contents |= {f"{block.folder}/{block.name}.{kind}": content for kind, content in block.files.items()}
        files.extend(sorted([*contents, *SCORES, DATA]))
        studies = [
            {
                "study": one.name,
                "runs": list(one.runs),
                "factors": {name: list(one.levels[name]) for name in one.factors},
                "baseline": dict(one.baseline),
                "primary": one.primary and ".".join(filter(None, one.primary)),
                "test": one.test,
                "constant": dict(one.constant),
            }
            for one in sections
        ]
        record = {"format": FORMAT, "derivlang": __version__, "studies": studies, "files": files}
        for name, content in {**contents, DATA: record_text(record).encode()}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        for name in SCORES:
            write_scores(scores, folder / name)

    replace_folder(out, write, files_of_report(out), record=DATA, what="report")
    return {"out": str(out), **n, "figures": sum(name.endswith(".svg") for name in files)}


def part_of(section: Section, prefix: str = "") -> Part:
    """Return the part of a section: the score that it is about first, with what is compared and drawn of it.

    prefix: of the names of its files.
    """
    comparisons = compared(section)
    scores = scores_of(section, comparisons)
    primary = section.primary and section.primary[:2]
    headlines = [one for one in scores if one.column.headline or (one.task, one.column.name) == primary]
    headlines.sort(key=lambda one: (one.task, one.column.name) != primary)
    blocks: list[Table | Figure | None] = []
    folded: list[Table | None] = []
    for one in headlines:
        blocks += [score_table(one), *score_figures(one)]
        if one.column.over != "points":
            blocks += [contrast_table(one, kind) for kind in (DIFFERENCE, INTERACTION)]
        folded.append(curve_table(one))
    if len(found := correlations_of(section, scores)):
        blocks += [correlation_table(section, found)]
        blocks += [correlation_figure(section, one) for one in found.to_dict("records")]
    folded += [every_score(section, comparisons, task) for task in dict.fromkeys(one.task for one in scores)]
    folded += [test_rows(section), signatures(scores), run_list(section)]
    results = list(results_of(headlines[0]))
    named = [[replace(one, name=f"{prefix}{one.name}") for one in some if one is not None] for some in (blocks, folded)]
    return Part(section.title, results, named[0], settings_of(section), named[1])


def _runs(names: Collection[str], scores: pd.DataFrame) -> set[str]:
    """Return the runs of names; a run of several languages has the name RUN@TARGET for each target."""
    column = f"{FACTOR}{TARGET}"
    targets = [f"@{one}" for one in scores[column].dropna().unique()] if column in scores else []
    return {next((name.removesuffix(one) for one in targets if name.endswith(one)), name) for name in names}


def files_of_report(out: Path) -> list[str]:
    """Return the files of an earlier report, which its record lists; an empty list if it is not a report."""
    try:
        record = read_record(out / DATA, DATA, id="output")
    except StoreError:
        return []
    files = record.get("files") if "derivlang" in record else None
    return [str(name) for name in files] if isinstance(files, list) else []


def page(parts: Sequence[Part], runs: str, missing: Sequence[str]) -> str:
    """Return the whole page. runs: their number, for people. missing: those without a result.

    Raise UsageError without jinja2.
    """
    jinja2 = module_of("jinja2", "a report")
    options = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template = (resources.files(__package__ or "") / "page.html").read_text("utf-8")
    made = jinja2.Environment(**options).from_string(template)
    functions = {"html": html_table, "listed": listed, "base64": lambda content: b64encode(content).decode()}
    return str(made.render(parts=parts, runs=runs, missing=missing, version=__version__, **functions)).lstrip()


def html_table(shown: pd.DataFrame) -> str:
    """Return a table as HTML. Equal labels of neighbouring rows share a cell."""
    styler = shown.rename_axis(index=list(map(escape, shown.index.names))).style.format(escape="html")
    # A label may be broken after a comma or a colon.
    styler = styler.format_index(lambda label: re.sub("([,:])", r"\1<wbr>", escape(str(label))), axis=0)
    return str(styler.format_index(escape="html", axis=1).to_html(exclude_styles=True))
