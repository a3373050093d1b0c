"""`derivlang push`: a set or a run on the Hugging Face hub."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import FOLDER
from derivlang.commands.results import Push
from derivlang.core.messages import counted


def _show(asked: Push, done: dict[str, Any]) -> None:
    from derivlang.commands.push import how_to_load

    files = done["files"]
    total = f"{counted(len(files), 'file')}, {sum(files.values()):,} bytes"
    if done["commit"] is None:
        for name, size in files.items():
            echo(f"{size:>14,}  {name}")
        echo(f"{total}, would be sent to {done['url']}")
        return
    removed = f", {counted(done['removed'], 'older file')} removed" if done["removed"] else ""
    news = f"{done['sent']:,} of them sent{removed}" if done["sent"] or removed else "all of them there already"
    echo(f"{done['url']}  {total}, {news}")
    for line in how_to_load(done["kind"], asked.repository, done["revision"]):
        echo(f"  {line}")


command = command_line(
    Push,
    "push",
    _show,
    arguments=[
        click.Argument(["result"], type=FOLDER, metavar="SET|RUN"),
        click.Argument(["repository"], metavar="OWNER/NAME"),
    ],
)
