"""`derivlang parse`: the trees of a source, found once for all the sets that `syn` makes of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import Bar, events, request_of, run_options, settings_of, show, source_options


@click.command("parse", no_args_is_help=True)
@click.argument("source")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="A set of its own here.  [default: where make looks]"
)
@source_options
@run_options
def command(source: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Parse SOURCE. `make` with a transform that needs trees does it by itself; this does it alone.

    \b
    derivlang parse wikitext103 --data-dir DIR --workers 8
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: --workers share the cores, not threads
    from derivlang.engine.parse import parse

    with Bar() as bar:
        result = parse(request_of(source, options), settings_of(out or Path(), options), events(bar))
    show(result, as_json)
