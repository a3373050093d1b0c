"""`derivlang pair`: write sentence pairs of a derived set with gold links."""

from __future__ import annotations

import sys
from typing import Any

import click

from derivlang.cli.generated import command_line, with_bar
from derivlang.cli.messages import echo
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import SET
from derivlang.commands.lexical import WritePairs
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted


def _run(asked: WritePairs) -> dict[str, Any]:
    if to_stdout(asked) and asked.format == "parquet" and sys.stdout.isatty():
        fix = "give -o FILE, or redirect the output: > FILE"
        raise UsageError("Parquet is binary, and standard output is a terminal", where="-o", fix=fix, id="output")
    return with_bar(asked)


def _show(asked: WritePairs, result: dict[str, Any]) -> None:
    files = place_of(result["out"]) if to_stdout(asked) else ", ".join(result["files"])
    sentences, links = counted(result["sentences"], "sentence pair"), counted(result["links"], "link")
    lines = [f"{files}: {result['pairs']:,} of {sentences}, {links}"]
    if result["spaces"]:
        lines.append(f"a space inside {counted(result['spaces'], 'word')}")
    for side in ("source", "derived"):
        if unknown := result.get("subwords", {}).get(f"{side}_unknown"):
            lines.append(f"{side} side: {unknown:,} of {result['subwords'][side]:,} sub-words are <unk>")
    echo("\n".join(lines), err=to_stdout(asked))


command = command_line(
    WritePairs,
    "pair",
    _show,
    arguments=[click.Argument(["derived"], type=SET)],
    run=_run,
    on_stderr=to_stdout,
    first=("rate", "format"),
)
