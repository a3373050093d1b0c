"""`derivlang export`: a derived set in another format, or the model of a run as a folder for `transformers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.messages import echo
from derivlang.cli.options import STDOUT, Bar, place_of, set_size, told
from derivlang.cli.types import FOLDER, OUT_PATH, completes
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted

TRANSFORMERS = "transformers"
# The format of a file, by its suffix: what --format need not say.
_BY_SUFFIX = {
    ".txt": "text",
    ".jsonl": "jsonl",
    ".conllu": "conllu",
    ".tsv": "tsv",
    ".csv": "csv",
    ".json": "squad",
}


@click.command("export", no_args_is_help=True)
@click.argument("derived", type=FOLDER, metavar="DERIVED|RUN[@STEP]", shell_complete=completes("set"))
@click.option("--split", help="Split to take.  [default: the only one]")
@click.option(
    "--format",
    "kind",
    help="Format to write.  [default: by the suffix of -o]",
    type=click.Choice(["text", "jsonl", "conllu", "pharaoh", "tsv", "csv", "squad", TRANSFORMERS]),
)
@click.option(
    "-o",
    "--out",
    type=OUT_PATH,
    default=STDOUT,
    help="File to write; of transformers, a folder.  [default: standard output]",
)
@click.option(
    "--source", is_flag=True, help="Write the source side instead, row for row; of a run, take the source's tokenizer."
)
@click.option(
    "--documents", is_flag=True, help="Write one document per line (of running text, a paragraph); text only."
)
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="Put an apostrophe before cells that a spreadsheet would run as formulas; csv and tsv only.",
)
@click.option("--force", is_flag=True, help="Replace a file that holds something else, or a model.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    derived: Path,
    kind: Any,
    split: str | None,
    out: Path,
    source: bool,
    documents: bool,
    escape_formulas: bool,
    force: bool,
    as_json: bool,
) -> None:
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
    named_by = "--format" if kind else "-o"
    kind = kind or _format_of(out)
    if kind == TRANSFORMERS:
        unfit = {"--split": split, "--documents": documents, "--escape-formulas": escape_formulas}
        _export_model(derived, out, source=source, force=force, unfit=unfit, as_json=as_json)
        return
    from derivlang.store.export import ExportRequest, export, refuse_other_suffix

    if out.is_dir():
        raise UsageError("is a folder", where=str(out), fix="name a file", id="output")
    own = [suffix for suffix, name in _BY_SUFFIX.items() if name == kind]
    refuse_other_suffix(f"the format {kind}", list(dict.fromkeys([*own, ".txt", ".tokens"])), out)  # .txt is any text
    with Bar() as bar, bar.stage("exporting", total=set_size(derived, split)):
        request = ExportRequest(split, kind, source, documents, named_by, escape_formulas, force)
        result = export(derived, request, out)
    spaces = f"; a space inside {counted(result['spaces'], 'word')}" if result["spaces"] else ""
    text = json.dumps(result) if as_json else f"{counted(result['rows'], 'row')}: {place_of(out)}{spaces}"
    told(text, as_json=as_json, out=out)


def _format_of(out: Path) -> str:
    """Return the format that the file's suffix names. UsageError for standard output and for an unknown suffix."""
    if out.suffix.lower() not in _BY_SUFFIX:
        what = "standard output needs a format" if out == STDOUT else f"the suffix {out.suffix!r} names no format"
        raise UsageError(
            what,
            where="-o" if out != STDOUT else "export",
            fix=f"--format NAME, or name the file {', '.join(_BY_SUFFIX)}",
            id="missing-option",
        )
    return _BY_SUFFIX[out.suffix.lower()]


def _export_model(run: Path, out: Path, *, source: bool, force: bool, unfit: dict[str, Any], as_json: bool) -> None:
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.evaluation.export import export_model
    from derivlang.evaluation.trained import PretrainedRun
    from derivlang.training.checkpoint import run_and_step
    from derivlang.training.languages import DERIVED, SOURCE

    for option in (name for name, value in unfit.items() if value):
        raise UsageError(
            "does not apply to the model of a run", where=option, fix=f"leave {option} out", id="unused-option"
        )
    if out == STDOUT:
        raise UsageError("a folder cannot be written to standard output", where="-o", fix="name it", id="usage")
    trained = PretrainedRun.load(*run_and_step(run))
    result = export_model(trained, SOURCE if source else DERIVED, out, force=force)
    text = f"{out}: the model, with a tokenizer of {result['entries']:,} entries for the {result['language']} language"
    if trained.language_ids and not source:
        text += "; give the model token_type_ids of 1, as in training"
    echo(json.dumps(result) if as_json else text)
