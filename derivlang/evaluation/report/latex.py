r"""Tables as LaTeX, for `\usepackage{booktabs,graphicx}`.

There is one file per score and regime, since wide tables do not fit a page. A table that is still wider than the text
is made smaller, to its width.
What is smaller in a cell stands in \footnotesize behind its value; the signature stands below the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd

from derivlang.evaluation.report.cells import Table, file_name

_MARKUP = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--",
    "×": r"$\times$", "Δ": r"$\Delta$", "ρ": r"$\rho$", "<": "$<$", ">": "$>$", "|": "$|$", "…": r"\dots{}", '"': "''",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}  # fmt: skip
_MARKS = re.compile("|".join(map(re.escape, _MARKUP)))


def latex_tables(one: Table) -> Iterator[tuple[str, str]]:
    """Yield (name, content) of the files of a table: one for each group of its columns, or one."""
    grouped = one.shown.columns.nlevels > 1
    for group in one.shown.columns.unique(level=0) if grouped else [""]:
        part = one.shown[group] if grouped else one.shown
        name = "-".join(filter(None, [one.name, file_name(group.replace("Δ", "delta").lower())]))
        yield name, _latex(one, part, f"{one.title}{f' ({group})' if group else ''}", name)


def _latex(one: Table, part: pd.DataFrame, title: str, name: str) -> str:
    shown = part.map(_cell).rename(columns=_text, index=_text)
    shown.index.names = [_text(str(label)) for label in part.index.names]
    text = shown.reset_index().to_latex(
        index=False, escape=False, caption=f"{_text(title)}. {_text(one.note)}", label=f"tab:{name}",
        column_format="l" * part.index.nlevels + "r" * part.shape[1], position="ht",
    )  # fmt: skip
    # \width is the width of the table itself
    fits = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{\\begin{tabular}"
    text = text.replace(r"\begin{tabular}", fits).replace(r"\end{tabular}", r"\end{tabular}}")
    end = r"\end{table}"
    if one.signature:
        signature = _text(one.signature).replace("$|$", r"$|$\allowbreak ")
        text = text.replace(end, f"\\par\\footnotesize\\texttt{{{signature}}}\n{end}")
    return str(text.replace(r"\begin{table}[ht]", "\\begin{table}[ht]\n\\centering"))


def _cell(cell: str) -> str:
    value, _, note = cell.partition("\n")
    return f"{_text(value)} {{\\footnotesize ({_text(note)})}}" if note else _text(value)


def _text(plain: str) -> str:
    """Return text without markup."""
    return _MARKS.sub(lambda match: _MARKUP[match[0]], str(plain))
