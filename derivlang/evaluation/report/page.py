r"""A report as one self-contained HTML page, of the template page.html; tables as LaTeX.

All text is escaped, as names come from files. LaTeX tables are for `\usepackage{booktabs,graphicx}`: one that is wider
than the text is made smaller. What is smaller in a cell stands in brackets behind its value.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources

import pandas as pd

from derivlang.core.dependencies import module_of
from derivlang.evaluation.report.cells import Table
from derivlang.evaluation.report.figures import Figure

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
    styler = styler.format_index(_wrapped, axis=0).format_index(escape="html", axis=1)
    return str(styler.to_html(exclude_styles=True))


def _wrapped(label: object) -> str:
    """Return a label as HTML that may be broken after a comma or a colon."""
    return re.sub("([,:])", r"\1<wbr>", escape(str(label)))


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
