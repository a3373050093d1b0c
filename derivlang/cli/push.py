"""`derivlang push`: a set, a run or a study on the Hugging Face hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import Bar
from derivlang.cli.settings import settings_options
from derivlang.cli.types import FOLDER
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.store.settings import PushOptions


@click.command("push", no_args_is_help=True)
@click.argument("result", type=FOLDER, metavar="SET|RUN|STUDY")
@click.argument("repository", metavar="OWNER/NAME")
@settings_options(PushOptions)
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(result: Path, repository: str, as_json: bool, **asked: Any) -> None:
    """Send a derived set, a run or a study to a repository of the Hugging Face hub.

    A set goes to a dataset repository, a run or a study to a model repository, which is made unless it is there. Files
    are checked against their hashes first. Only files of the result are sent, and none that the hub has already. What
    an earlier push has left there is removed; other files stay. A repository of another result, or of anything else, is
    refused without --force. All files come in one commit (above 1,000 in several, the record last), so an interrupted
    push is never taken for a whole result; the same command goes on.

    The token comes from `hf auth login` or HF_TOKEN.

    \b
    derivlang push OUT my-name/demo-inverted --dry-run
    """
    from derivlang.studies.push import how_to_load, push

    with Bar():
        done = push(result, repository, PushOptions(**given(PushOptions, asked)), warn)
    if as_json:
        echo(json.dumps(done, ensure_ascii=False))
        return
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
    for line in how_to_load(done["kind"], repository, done["revision"]):
        echo(f"  {line}")
