r"""A report as one self-contained HTML page, of the template page.html, and as Markdown; tables as LaTeX.

All text is escaped, as names come from files. LaTeX tables are for `\usepackage{booktabs,graphicx}`: one that is wider
than the text is made smaller. What is smaller in a cell stands in brackets behind its value.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
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
_MARKDOWN = re.compile(r"[\\`*_\[\]~|]|://")  # markup of emphasis, code, links and cell borders
_FIRST = re.compile(r"^([#+=-]+|\d+[.)])(?=\s|$)")  # markup that begins a heading or a list


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

    def wrapped(label: object) -> str:
        return re.sub("([,:])", r"\1<wbr>", escape(str(label)))

    def cell(text: str) -> str:
        value, _, note = escape(text).partition("\n")
        return f"{value}<small>{note}</small>" if note else value

    styler = shown.rename_axis(index=list(map(wrapped, shown.index.names))).style
    styler = styler.format(cell).format_index(wrapped, axis=0).format_index(wrapped, axis=1)
    return str(styler.to_html(exclude_styles=True))


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


def markdown(title: str, told: Sequence[str], parts: Sequence[Part]) -> str:
    """Return the whole report as Markdown. Figures are named by their PNG files."""
    out = [f"# {text(title)}", *map(text, told)]
    for part in parts:
        out += [f"## {text(part.title)}", _list(part.results)]
        for one in (*part.blocks, "### Settings", *part.folded):
            if isinstance(one, Table):
                out += [f"### {text(one.title)}", table_text(one.shown), text(one.note), _code(one.signature)]
            elif isinstance(one, Figure):
                out += [f"![{text(one.caption)}](figures/{one.name}.png)", text(one.caption)]
            else:
                out += [one, _list(part.settings)]
    return "\n\n".join(map(str.rstrip, filter(None, out))) + "\n"


def table_text(shown: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    labels, columns = shown.index.names, list(shown.columns)
    rule = _line(["---"] * len(labels) + ["---:"] * len(columns))
    rows = zip(shown.index, shown.to_numpy(), strict=True)
    return _line(map(text, [*labels, *columns])) + rule + "".join(
        _line(map(text, [*(names if isinstance(names, tuple) else [names]), *map(_in_brackets, cells)]))
        for names, cells in rows
    )  # fmt: skip


def text(plain: object) -> str:
    """Return one line of Markdown that shows this text, without markup and HTML."""
    line = escape(" ".join(str(plain).split()), quote=False)
    line = _MARKDOWN.sub(lambda match: "".join(f"&#{ord(c)};" for c in match[0]), line)
    return _FIRST.sub(lambda match: f"&#{ord(match[0][0])};{match[0][1:]}", line)


def _code(plain: str) -> str:
    """Return one line of Markdown that shows this text as code, to be copied; as text if it holds a mark of code."""
    return text(plain) if "`" in plain or not plain else f"`{' '.join(plain.split())}`"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {text(line)}" for line in lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _in_brackets(cell: str) -> str:
    value, _, note = cell.partition("\n")
    return f"{value} ({note})" if note else value
