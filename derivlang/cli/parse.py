"""`derivlang parse`: parse a source once for all the sets that `syn` makes from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.options import (
    request_of,
    run_and_show,
    run_options,
    settings_of,
    source_options,
    warn_of_data_dir,
)
from derivlang.cli.types import OUT_FOLDER, completes
from derivlang.core.dependencies import OptionNeeds

# The parses that `make` reads are of one size, and are kept.
_NEEDS = {
    "shard_tokens": OptionNeeds(only_with="--out"),
    "force": OptionNeeds(only_with="--out"),
    "parses": OptionNeeds(excludes="--out"),
}


@click.command("parse", cls=HeadedCommand, no_args_is_help=True)
@click.argument("source", shell_complete=completes("source"))
@option("-o", "--out", type=OUT_FOLDER, help="Folder or URL to write.  [default: the cache that make reads]")
@source_options
@run_options(_NEEDS)
def command(source: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Parse SOURCE once, for all sets that `syn` derives from it.

    `make` parses a source by itself if a transform needs trees. It then takes parses from the cache, which this command
    fills.

    \b
    derivlang parse demo:nli
    derivlang parse wikitext103 --data-dir DIR --workers 8
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers start no threads that core/threads.py leaves idle
    from derivlang.engine.parse import parse, parses_folder

    settings = settings_of(out or Path(), options)
    warn_of_data_dir(source)
    run_and_show(
        lambda events: parse(request_of(source, options), settings, events),
        as_json=as_json,
        begins="" if out else f"writing to {parses_folder(settings)}{os.sep}, where make reads parses",
    )
