"""Write a report's folder from a table of scores.

DIR/index.html                 the whole report as one self-contained page
DIR/report.md                  the same as Markdown, with figures/*.png
DIR/tables/*.csv, *.tex        the numbers of each table; the tables of scores for a paper
DIR/figures/*.png, *.svg, *.pdf
DIR/scores.parquet, .tsv       the table itself: with counts and metadata, and for people
DIR/report.json                what the report is of, and its files
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from derivlang.core.errors import StoreError
from derivlang.core.messages import counted
from derivlang.core.version import __version__
from derivlang.evaluation.report.cells import Document, Part, Table, file_name, listed
from derivlang.evaluation.report.compare import DIFFERENCE, compared
from derivlang.evaluation.report.drawing import Figure
from derivlang.evaluation.report.factors import INTERACTION, Section, sections_of
from derivlang.evaluation.report.figures import correlation_figure, score_figures
from derivlang.evaluation.report.frame import ScoreTable, with_names
from derivlang.evaluation.report.latex import latex_tables
from derivlang.evaluation.report.listings import doses, facts_of, run_list, signatures, test_rows, test_sets
from derivlang.evaluation.report.markdown import markdown
from derivlang.evaluation.report.page import page
from derivlang.evaluation.report.tables import contrast_table, curve_table, every_score, layer_table, score_table
from derivlang.evaluation.report.transfer import correlation_table, scatters_of
from derivlang.evaluation.table import write_scores
from derivlang.formats.progress import stage
from derivlang.store.folders import is_free, replace_folder
from derivlang.store.listing import file_hash
from derivlang.store.record import read_record, record_text

PAGE, MARKDOWN, DATA, SCORES = "index.html", "report.md", "report.json", ("scores.parquet", "scores.tsv")
FORMAT = 2


def report(
    scores: pd.DataFrame, out: Path, baseline: Mapping[str, Any] | None = None, primary: str | None = None
) -> dict[str, Any]:
    """Write a report of a table of scores and return {"out", "runs", "evaluated", "figures"}.

    baseline, primary: as in `compare`. A whole report of the same scores is kept. Another one in `out` is replaced, and
    files that are not of it stay. Raise StoreError if there is something else than a report, and what `compare` raises.
    """
    if not is_free(out) and not files_of_report(out):
        raise StoreError("holds something else than a report", where=str(out), fix="give another folder", id="output")
    asked = {"baseline": dict(baseline or {}), "primary": primary, "scores": _hash(scores)}
    if (made := _made(out, asked)) is not None:
        return made
    sections = sections_of(ScoreTable.of(with_names(scores)), baseline, primary) if len(scores) else []
    with stage("drawing", None):
        parts = [part_of(one, f"{file_name(one.name or 'runs')}-" if len(sections) > 1 else "") for one in sections]
    blocks = [block for part in parts for block in part.blocks]
    evaluated = {f"{section.name}/{run}" for section in sections for run in section.runs}
    runs = evaluated | set(scores.attrs.get("states") or {})

    def write(folder: Path) -> None:
        texts = (PAGE, page(document)), (MARKDOWN, markdown(document))
        for name, content in chain(texts, *map(_files_of, blocks)):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        for name in SCORES:
            write_scores(scores, folder / name)
        files = sorted(str(path.relative_to(folder).as_posix()) for path in folder.rglob("*") if path.is_file())
        record = _record(sections, [*files, DATA]) | {"asked": asked, "result": result}
        (folder / DATA).write_text(record_text(record), "utf-8", newline="\n")

    document = Document("What the models transfer", _told(len(evaluated), sorted(runs - evaluated)), parts)
    figures = sum(isinstance(block, Figure) for block in blocks)
    result = {"runs": len(runs), "evaluated": len(evaluated), "figures": figures}
    replace_folder(out, write, files_of_report(out), record=DATA, what="report")
    return {"out": str(out), **result}


def _hash(scores: pd.DataFrame) -> str:
    """Return a hash of a table with its attributes, as scores.parquet has them."""
    with TemporaryDirectory(prefix="derivlang-") as folder:
        write_scores(scores, Path(folder, SCORES[0]))
        return file_hash(Path(folder, SCORES[0]))


def _made(out: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what `report` returns if the folder holds a whole report of what is asked for, by this version."""
    with suppress(StoreError):
        record = read_record(out / DATA, DATA, id="output")
        same = record.get("asked") == asked and record.get("derivlang") == __version__
        files, result = record.get("files"), record.get("result")
        if same and isinstance(files, list) and isinstance(result, dict):
            is_whole = all((out / str(name)).is_file() for name in files)
            return {**result, "out": str(out)} if is_whole else None
    return None


def part_of(section: Section, prefix: str = "") -> Part:
    """Return the part of a section: its scores, each with what is compared and drawn of it; then lists.

    prefix: of the names of its files.
    """
    comparisons = compared(section)
    primary = section.primary and section.primary[:2]
    headlines = [key for key in section.of_score if section.scores.columns[key].headline or key == primary]
    blocks: list[Table | Figure | None] = []
    for task, metric in headlines:
        blocks.append(score_table(section, comparisons, task, metric))
        blocks += score_figures(section, comparisons, task, metric)
        if section.scores.columns[task, metric].over != "points":
            blocks += [contrast_table(section, comparisons, task, metric, kind) for kind in (DIFFERENCE, INTERACTION)]
        blocks += [layer_table(section, comparisons, task, metric), curve_table(section, comparisons, task, metric)]
    scatters = scatters_of(section, comparisons)
    if scatters:
        blocks += [correlation_table(section, scatters), *(correlation_figure(section, one) for one in scatters)]
    blocks += [every_score(section, comparisons, task) for task in dict.fromkeys(task for task, _ in section.of_score)]
    blocks += [test_sets(section), test_rows(section), signatures(section), doses(section), run_list(section)]
    name = section.name or "Runs"
    named = [replace(block, name=f"{prefix}{block.name}") for block in blocks if block is not None]
    return Part(file_name(name), name, facts_of(section), named)


def _files_of(block: Table | Figure) -> Iterator[tuple[str, str | bytes]]:
    """Yield the name and the content of each file of a table or a figure."""
    if isinstance(block, Table):
        yield f"tables/{block.name}.csv", block.csv
        yield from ((f"tables/{name}.tex", text) for name, text in (latex_tables(block) if block.latex else ()))
    else:
        yield from ((f"figures/{block.name}.{kind}", content) for kind, content in block.files.items())


def _told(evaluated: int, missing: Sequence[str]) -> str:
    without = f", {len(missing)} without a result ({listed(missing)})" if missing else ""
    return (
        f"{counted(evaluated + len(missing), 'run')}{without}; written by derivlang {__version__}. A cell has the mean "
        "over n pre-training seeds, in each of which fine-tuning seeds are averaged. In small type stands its 95 % "
        "interval, which covers seeds and test documents (explained in the documentation: What an interval in the "
        "report says). It needs three seeds; of two, their values stand there. Every table is in tables/ as CSV, those "
        "of scores as LaTeX, too; every figure is in figures/ as PNG, SVG and PDF."
    )


def _record(sections: Sequence[Section], files: Sequence[str]) -> dict[str, Any]:
    """Return what report.json holds."""
    return {
        "format": FORMAT,
        "derivlang": __version__,
        "studies": [
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
        ],
        "files": sorted(files),
    }


def files_of_report(out: Path) -> list[str]:
    """Return the files of an earlier report, which its record lists; an empty list if it is not a report."""
    try:
        record = read_record(out / DATA, DATA, id="output")
    except StoreError:
        return []
    if "derivlang" not in record:
        return []
    files = record.get("files")
    if files is None and record.get("format") == 1 and (out / MARKDOWN).is_file():  # before there was a list
        text = (out / MARKDOWN).read_text("utf-8", errors="replace")
        shown = re.findall(r"\]\((figures/[\w.-]+)\.png\)", text)
        files = [PAGE, MARKDOWN, DATA, SCORES[1], *(f"{name}.{kind}" for name in shown for kind in ("png", "svg"))]
    return [str(name) for name in files] if isinstance(files, list) else []
