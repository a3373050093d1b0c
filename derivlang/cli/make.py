"""`derivlang make`: from a source to a derived set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import say
from derivlang.cli.options import (
    request_of,
    run_and_show,
    run_options,
    settings_of,
    source_options,
    spec_option,
    warn_of_data_dir,
)
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FOLDER, SEED, completes
from derivlang.engine.options import MakeOptions


@click.command("make", cls=HeadedCommand, no_args_is_help=True)
@click.argument("source", shell_complete=completes("source"))
@spec_option("Transforms, left to right, e.g. trans,inv or perm:window=3; `derivlang ls` lists them.", required=True)
@option("-o", "--out", type=OUT_FOLDER, help="Folder or URL to write.  [default: SOURCE.TRANSFORMS, here]")
@option("--seed", type=SEED, help="Seed of the transforms that state no seed.  [default: 1]")
@settings_options(MakeOptions, only=("lexicon", "columns"))
@source_options
@run_options()
def command(source: str, spec: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Make a derived language from SOURCE: a name, a file, a folder, hub:name/config, or a derived set.

    A file, a folder or a set may lie in a store: s3://bucket/folder.

    Without -o the set is written to a folder in the current folder, named after the source and the transforms. The same
    command continues an interrupted run.

    \b
    derivlang make --t trans,inv demo
    derivlang make --t trans:overlap=25,perm ner:fr
    derivlang make --t trans,inv wikitext103 --data-dir DIR -o OUT
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers start no threads that core/threads.py leaves idle
    from derivlang.core.messages import warn
    from derivlang.engine.make import make
    from derivlang.pipeline import seeded
    from derivlang.store.manifest import LEXICON

    pipeline = seeded(spec, options["seed"], warn)
    settings = settings_of(out or default_folder(source, str(pipeline), changed_options("seed")), options)
    warn_of_data_dir(source)
    run_and_show(
        lambda events: make(pipeline, request_of(source, options), settings, events),
        as_json=as_json,
        begins="" if out else f"writing to {settings.out}{os.sep}",
    )
    if settings.lexicon is None and pipeline.needs_counts():
        say(
            f"the lexicon was fitted on the training split of this source, or its first; for other sources of this "
            f"language give "
            f"--lexicon {settings.out / LEXICON} (`derivlang verify {settings.out} OTHER` compares two sets)"
        )
