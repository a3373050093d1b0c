"""`derivlang export`, `undo` and `push`: what is done with a set or a run."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import FOLDER, SET
from derivlang.commands.results import Export, Push, Undo
from derivlang.core.messages import counted


def _show_export(asked: Export, result: dict[str, Any]) -> None:
    if "entries" in result:
        entries, language = result["entries"], result["language"]
        types = result.get("token_type_ids")
        ids = f"; give the model token_type_ids of {types}, as in training" if types else ""
        echo(f"{result['out']}: the model, with a tokenizer of {entries:,} entries for the {language} language{ids}")
        return
    spaces = f"; a space inside {counted(result['spaces'], 'word')}" if result["spaces"] else ""
    echo(f"{counted(result['rows'], 'row')}: {place_of(result['out'])}{spaces}", err=True)


export_command = command_line(
    Export,
    "export",
    _show_export,
    arguments=[click.Argument(["derived"], type=SET, metavar="DERIVED|RUN[@STEP]")],
    on_stderr=to_stdout,
    first=("split", "format"),
)


def _show_undo(asked: Undo, results: list[dict[str, Any]]) -> None:
    for result in results:
        echo(f"{counted(result['rows'], 'row')} as {result['format']}: {place_of(result['out'])}", err=True)


undo_command = command_line(
    Undo, "undo", _show_undo, arguments=[click.Argument(["derived"], type=SET)], on_stderr=to_stdout, first=("split",)
)


def _show_push(asked: Push, done: dict[str, Any]) -> None:
    from derivlang.commands.push import how_to_load

    files = done["files"]
    total = f"{counted(len(files), 'file')}, {sum(files.values()):,} bytes"
    if done["commit"] is None:
        for name, size in files.items():
            echo(f"{size:>14,}  {name}")
        echo(f"{total}, would be sent to {done['url']}")
        return
    removed = f", {counted(done['removed'], 'older file')} removed" if done["removed"] else ""
    echo(f"{done['url']}  {total}{removed if done['sent'] else ', all of them there already'}")
    for line in how_to_load(done["kind"], asked.repository, done["revision"]):
        echo(f"  {line}")


push_command = command_line(
    Push,
    "push",
    _show_push,
    arguments=[
        click.Argument(["result"], type=FOLDER, metavar="SET|RUN"),
        click.Argument(["repository"], metavar="OWNER/NAME"),
    ],
)
