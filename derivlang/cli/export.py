"""`derivlang export`: a derived set in another format, or the model of a run as a folder for `transformers`."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import SET
from derivlang.commands.results import Export
from derivlang.core.messages import counted


def _show(asked: Export, result: dict[str, Any]) -> None:
    if "entries" in result:
        entries, language = result["entries"], result["language"]
        types = result.get("token_type_ids")
        ids = f"; give the model token_type_ids of {types}, as in training" if types else ""
        echo(f"{result['out']}: the model, with a tokenizer of {entries:,} entries for the {language} language{ids}")
        return
    spaces = f"; a space inside {counted(result['spaces'], 'word')}" if result["spaces"] else ""
    echo(f"{counted(result['rows'], 'row')}: {place_of(result['out'])}{spaces}", err=True)


command = command_line(
    Export,
    "export",
    _show,
    arguments=[click.Argument(["derived"], type=SET, metavar="DERIVED|RUN[@STEP]")],
    on_stderr=to_stdout,
    first=("split", "format"),
)
