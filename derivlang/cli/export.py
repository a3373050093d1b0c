"""`derivlang export`: a derived set in another format, or the model of a run as a folder for `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo
from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_PATH, SET
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import given, typed
from derivlang.store.settings import ExportOptions

TRANSFORMERS = "transformers"


@click.command("export", no_args_is_help=True)
@click.argument("derived", type=SET, metavar="DERIVED|RUN[@STEP]")
@settings_options(ExportOptions, only=("split", "format"))
@option(
    "-o",
    "--out",
    type=OUT_PATH,
    default=STDOUT,
    help="File or URL to write; of transformers, a folder.  [default: standard output]",
)
@settings_options(ExportOptions, without=("split", "format"))
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(derived: Path, out: Path, as_json: bool, **asked: Any) -> None:
    """Write a derived set in another format, or a run's model with a tokenizer, for use in other tools.

    A line of the format pharaoh has the links i-j of one row, source word first, zero-based and sorted. The lines of
    text and pharaoh correspond, so `--format text --source`, `--format text` and `--format pharaoh` give an aligned
    corpus. Without -o the file goes to standard output and messages to standard error.

    The format transformers is of a run, or of one of its checkpoints: a folder with its model and the tokenizer of the
    derived language (with --source, of the source) for `AutoModel…` and `AutoTokenizer`. It reads words that are joined
    by one space.

    \b
    derivlang export OUT --split test --format text | head
    derivlang export OUT --split test -o test.jsonl
    derivlang export OUT --split test --format pharaoh -o test.links
    derivlang export RUN --format transformers -o MODEL
    """
    from derivlang.store.export import export, format_of

    options = ExportOptions(**given(ExportOptions, asked))
    if format_of(options, out) == TRANSFORMERS:
        _export_model(derived, out, options, as_json=as_json)
        return
    with Bar() as bar, bar.stage("exporting", total=set_size(derived, options.split)):
        result = export(derived, options, out)
    spaces = f"; a space inside {counted(result['spaces'], 'word')}" if result["spaces"] else ""
    text = json.dumps(result) if as_json else f"{counted(result['rows'], 'row')}: {place_of(out)}{spaces}"
    told(text, as_json=as_json, out=out)


def _export_model(run: Path, out: Path, options: ExportOptions, *, as_json: bool) -> None:
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.evaluation.export import export_model
    from derivlang.evaluation.trained import PretrainedRun
    from derivlang.training.checkpoint import run_and_step
    from derivlang.training.config import TOKEN_TYPES
    from derivlang.training.languages import DERIVED, SOURCE

    for word in typed(options, ("split", "documents", "escape_formulas")):
        option = word.partition("=")[0]
        raise UsageError(
            "does not apply to the model of a run", where=option, fix=f"leave {option} out", id="unused-option"
        )
    if out == STDOUT:
        raise UsageError("a folder cannot be written to standard output", where="-o", fix="name it", id="usage")
    trained = PretrainedRun.load(*run_and_step(run))
    result = export_model(trained, SOURCE if options.source else DERIVED, out, force=options.force)
    text = f"{out}: the model, with a tokenizer of {result['entries']:,} entries for the {result['language']} language"
    if trained.language_ids and not options.source and trained.config.model_type in TOKEN_TYPES:
        text += "; give the model token_type_ids of 1, as in training"
    echo(json.dumps(result) if as_json else text)
