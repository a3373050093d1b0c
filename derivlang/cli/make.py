"""`derivlang make`: from a source to a derived set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import Bar, events, names, request_of, run_options, settings_of, show, source_options


@click.command("make", no_args_is_help=True)
@click.argument("source")
@click.option("--t", "spec", required=True, help="The transforms, left to right: trans,inv or perm:window=3 …")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@source_options
@click.option("--seed", type=click.IntRange(0), help="For transforms that state none.  [default: 1]")
@click.option("--lexicon", type=click.Path(path_type=Path), help="A saved lexicon.tsv: keep the same types as there.")
@click.option("--columns", help="Keep only these of key, source, tokens, text; the rest follows.")
@run_options
def command(source: str, spec: str, out: Path, as_json: bool, **options: Any) -> None:
    """Make a derived language from SOURCE: a name, a file, a folder, hub:name/config, or a derived set.

    \b
    derivlang make --t trans,inv wikitext103 --data-dir DIR -o OUT
    derivlang make --t trans:overlap=25,perm ner:fr --data-dir DIR -o OUT
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: --workers share the cores, not threads
    from derivlang.engine.make import make

    settings = settings_of(
        out,
        options,
        seed=options["seed"],
        lexicon=options["lexicon"],
        columns=names(options["columns"]),
    )
    with Bar() as bar:
        result = make(spec, request_of(source, options), settings, events(bar))
    show(result, as_json)
