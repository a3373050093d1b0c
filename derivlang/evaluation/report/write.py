r"""Write a report's folder from a table of scores.

DIR/index.html                 the whole report as one self-contained page
DIR/tables/*.csv, *.tex        the numbers of each table; the tables of scores for a paper
DIR/figures/*.png, *.svg, *.pdf
DIR/scores.parquet, .tsv       the table itself: with counts and metadata, and for people
DIR/report.json                what the report is of, and its files

The page is of the template page.html. All text is escaped, as names come from files. LaTeX tables are for
`\usepackage{booktabs,graphicx}`: one that is wider than the text is made smaller. What is smaller in a cell stands in
brackets behind its value.
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
from derivlang.evaluation.report.cells import Table, file_name, listed
from derivlang.evaluation.report.compare import DIFFERENCE, compared
from derivlang.evaluation.report.correlation import correlation_table, correlations_of
from derivlang.evaluation.report.factors import INTERACTION, Section, sections_of
from derivlang.evaluation.report.facts import results_of, run_list, settings_of, test_rows
from derivlang.evaluation.report.figures import Figure, correlation_figure, score_figures
from derivlang.evaluation.report.frame import with_names
from derivlang.evaluation.report.tables import (
    contrast_table,
    curve_table,
    every_score,
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
TITLE = "What the models transfer"
TERMS = (
    "A derived language is made from a natural one, the source, by rules that change its words or their order, so "
    "every label and word link is known. A model is pre-trained on both languages, and then fine-tuned for a task.",
    "SUP (supervised): fine-tuned on labels of the derived language and tested on it, the upper bound. ZS (zero-shot): "
    "fine-tuned on labels of the source language, tested on the derived one. Δ = SUP − ZS: what does not transfer. CS "
    "(code-switched): fine-tuned on pairs that have one side in each language.",
)


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
    told = [*TERMS, _told(len(_runs(runs, scores)), sorted(runs - evaluated))]
    contents: dict[str, str | bytes] = {}

    def write(folder: Path) -> None:
        with stage("drawing", None):
            parts = [part_of(one, f"{file_name(one.name or 'runs')}-" if len(sections) > 1 else "") for one in sections]
        contents[PAGE] = page(TITLE, told, parts)
        for block in (block for part in parts for block in (*part.blocks, *part.folded)):
            if isinstance(block, Figure):
                contents.update({f"figures/{block.name}.{kind}": content for kind, content in block.files.items()})
            else:
                contents[f"tables/{block.name}.csv"] = block.csv
                contents.update({f"tables/{block.name}.tex": latex(block)} if block.signature else {})
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        for name in SCORES:
            write_scores(scores, folder / name)
        (folder / DATA).write_text(record_text(_record(sections, [*contents, *SCORES, DATA])), "utf-8", newline="\n")

    replace_folder(out, write, files_of_report(out), record=DATA, what="report")
    figures = sum(name.endswith(".svg") for name in contents)
    n = {name: len(_runs(some, scores)) for name, some in (("runs", runs), ("evaluated", evaluated))}
    return {"out": str(out), **n, "figures": figures}


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


def _told(runs: int, missing: Sequence[str]) -> str:
    without = f", {len(missing)} without a result ({listed(missing)})" if missing else ""
    return (
        f"{counted(runs, 'run')}{without}; written by derivlang {__version__}. A cell has the mean over n pre-training "
        "seeds, in each of which fine-tuning seeds are averaged; in small type its interval over seeds and test "
        "documents, if there are three seeds or more, or the values of two."
    )


def _record(sections: Sequence[Section], files: Sequence[str]) -> dict[str, Any]:
    """Return what report.json holds."""
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
    return {"format": FORMAT, "derivlang": __version__, "studies": studies, "files": sorted(files)}


def files_of_report(out: Path) -> list[str]:
    """Return the files of an earlier report, which its record lists; an empty list if it is not a report."""
    try:
        record = read_record(out / DATA, DATA, id="output")
    except StoreError:
        return []
    files = record.get("files") if "derivlang" in record else None
    return [str(name) for name in files] if isinstance(files, list) else []


_TEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--",
    "×": r"$\times$", "Δ": r"$\Delta$", "ρ": r"$\rho$", "<": "$<$", ">": "$>$", "|": "$|$", "…": r"\dots{}", '"': "''",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}  # fmt: skip
_MARKS = re.compile("|".join(map(re.escape, _TEX)))


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a report: results in sentences, tables and figures; then settings and tables that are folded."""

    title: str
    results: Sequence[str]
    blocks: Sequence[Table | Figure]
    settings: Sequence[str]
    folded: Sequence[Table | Figure]


def page(title: str, told: Sequence[str], parts: Sequence[Part]) -> str:
    """Return the whole page. Raise UsageError without jinja2."""
    jinja2 = module_of("jinja2", "a report")
    options = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template = (resources.files(__package__ or "") / "page.html").read_text("utf-8")
    made = jinja2.Environment(**options).from_string(template)
    return str(
        made.render(
            title=title, told=told, parts=parts, html=html_table, base64=lambda content: b64encode(content).decode()
        )
    ).lstrip()


def html_table(shown: pd.DataFrame) -> str:
    """Return a table as HTML. Equal labels of neighbouring rows share a cell."""
    styler = shown.rename_axis(index=list(map(escape, shown.index.names))).style.format(escape="html")
    # A label may be broken after a comma or a colon.
    styler = styler.format_index(lambda label: re.sub("([,:])", r"\1<wbr>", escape(str(label))), axis=0)
    return str(styler.format_index(escape="html", axis=1).to_html(exclude_styles=True))


def latex(one: Table) -> str:
    """Return a table with its note and its signature as LaTeX."""
    shown = one.shown.map(lambda cell: tex(_in_brackets(cell))).rename(columns=tex, index=tex)
    text = shown.rename_axis(index=list(map(tex, shown.index.names))).reset_index(allow_duplicates=True).to_latex(
        index=False, escape=False, caption=f"{tex(one.title)}. {tex(one.note)}", label=f"tab:{one.name}",
        column_format="l" * shown.index.nlevels + "r" * shown.shape[1], position="ht",
    )  # fmt: skip
    # \width is the width of the table itself
    fits = "\\centering\n\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{\\begin{tabular}"
    text = text.replace(r"\begin{tabular}", fits).replace(r"\end{tabular}", r"\end{tabular}}")
    signature = tex(one.signature).replace("$|$", r"$|$\allowbreak ")
    return str(text.replace(r"\end{table}", f"\\par\\footnotesize\\texttt{{{signature}}}\n\\end{{table}}"))


def tex(plain: object) -> str:
    """Return text without LaTeX markup."""
    return _MARKS.sub(lambda match: _TEX[match[0]], str(plain))


def _in_brackets(cell: str) -> str:
    value, _, note = cell.partition("\n")
    return f"{value} ({note})" if note else value
