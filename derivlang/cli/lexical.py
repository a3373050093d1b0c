"""`derivlang dict` with `dict check`, `pair`, and `tokenizer`: what is made of words."""

from __future__ import annotations

import sys
from typing import Any

import click

from derivlang.cli.generated import HeadedCommand, command_line, with_bar
from derivlang.cli.messages import echo, message
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import FILE, FOLDER, SET, Group, source_argument
from derivlang.commands.lexical import CheckDictionary, MakeDictionary, MakeTwin, TrainTokenizer, WritePairs
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted

_LEFT_OUT = "pairs left out: MUSE reads no capitals and no white space inside a word (TSV and JSON hold all)"


class _Dictionary(HeadedCommand):
    """The command `dict`, whose first word may be `check`; a folder of this name is ./check."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of `dict`, or of `dict check`."""
        if args[:1] == ["check"]:
            return check.make_context(f"{info_name} check", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _show_dict(asked: MakeDictionary, result: dict[str, Any]) -> None:
    pairs, words = counted(result["pairs"], "pair"), counted(result["entries"], "chosen word")
    of_types, of_tokens = result["coverage_types"], result["coverage_tokens"]
    lines = [
        f"{place_of(result['out'])}: {pairs} of {words}, {of_types:.1f} % of {result['types']:,} with a translation, "
        f"{of_tokens:.1f} % of running words"
    ]
    more = (
        ("heldout", "entries held out"), ("noise", "wrong pairs"), ("left_out", _LEFT_OUT),
        ("heldout_left_out", f"held-out {_LEFT_OUT}"),
    )  # fmt: skip
    lines += [f"{result[name]:,} {what}" for name, what in more if result[name]]
    echo("\n".join(lines), err=to_stdout(asked))


def _show_faults(asked: CheckDictionary, result: dict[str, Any]) -> None:
    unit = result["unit"]
    for fault in result["lines"][:20]:
        place = f":{fault['line']}" if unit == "line" else f": {unit} {fault['line']}"
        message(f"{asked.file}{place}: {fault['what']} [{fault['kind']}]")
    pairs, words = counted(result["pairs"], "pair"), counted(result["types"], "word")
    echo(f"{asked.file}: {pairs} of {words}; {counted(result['skipped'], unit)} skipped")
    for kind, n in result["faults"].items():
        echo(f"{kind}: {n:,}")
    if result["left_out"]:
        echo(f"{result['left_out']:,} {_LEFT_OUT}")


dict_command = command_line(
    MakeDictionary, "dict", _show_dict, arguments=[source_argument()], on_stderr=to_stdout, cls=_Dictionary,
    last=("repair_tags", "force", "as_json"),
)  # fmt: skip
check = command_line(
    CheckDictionary, "check", _show_faults, arguments=[click.Argument(["file"], type=FILE)], summary="Check a file."
)


def _run_pair(asked: WritePairs) -> dict[str, Any]:
    if to_stdout(asked) and asked.format == "parquet" and sys.stdout.isatty():
        fix = "give -o FILE, or redirect the output: > FILE"
        raise UsageError("Parquet is binary, and standard output is a terminal", where="-o", fix=fix, id="output")
    return with_bar(asked)


def _show_pair(asked: WritePairs, result: dict[str, Any]) -> None:
    files = place_of(result["out"]) if to_stdout(asked) else ", ".join(result["files"])
    sentences, links = counted(result["sentences"], "sentence pair"), counted(result["links"], "link")
    lines = [f"{files}: {result['pairs']:,} of {sentences}, {links}"]
    if result["spaces"]:
        lines.append(f"a space inside {counted(result['spaces'], 'word')}")
    for side in ("source", "derived"):
        if unknown := result.get("subwords", {}).get(f"{side}_unknown"):
            lines.append(f"{side} side: {unknown:,} of {result['subwords'][side]:,} sub-words are <unk>")
    echo("\n".join(lines), err=to_stdout(asked))


pair_command = command_line(
    WritePairs,
    "pair",
    _show_pair,
    arguments=[click.Argument(["derived"], type=SET)],
    run=_run_pair,
    on_stderr=to_stdout,
    first=("rate", "format"),
)


def _show_tokenizer(asked: TrainTokenizer, recipe: dict[str, Any]) -> None:
    words = recipe["words"]
    echo(
        f"{recipe['out']}: {recipe['vocab_size']:,} entries, {recipe['merges']:,} merges, from {words['tokens']:,} "
        f"words ({words['types']:,} types), {words['subwords'] / words['tokens']:.3f} sub-words per word"
    )


def _show_twin(asked: MakeTwin, recipe: dict[str, Any]) -> None:
    joint_ids = recipe["joint"]
    echo(
        f"{recipe['out']}: {recipe['vocab_size']:,} entries in {recipe['scripts'][0]}; joint ids: shift "
        f"{joint_ids['shift']:,}, size {joint_ids['size']:,}"
    )
    for unit, share in recipe["overlap"].items():
        echo(
            f"shared {unit}: {share['shared_types_percent']} % of {share['types']:,} types, "
            f"{share['shared_tokens_percent']} % of {share['tokens']:,} running ones"
        )


train = command_line(
    TrainTokenizer, "train", _show_tokenizer, arguments=[source_argument()], json_help="Print the recipe as JSON.",
    summary="Train a character BPE on the words of a source.", first=("vocab_size",), last=("force", "as_json"),
)  # fmt: skip
twin = command_line(
    MakeTwin, "twin", _show_twin, arguments=[click.Argument(["tokenizer"], type=FOLDER, metavar="DIR")],
    json_help="Print the recipe as JSON.", summary="Make the twin of a tokenizer for a derived language.",
)  # fmt: skip
tokenizer_command = Group(
    "tokenizer",
    commands=[train, twin],
    help="""Train tokenizers and make their twins.

    A twin gives derived text the ids that the source's tokenizer gives the source text.

    \b
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    derivlang tokenizer train --vocab-size 400 demo
    """,
)
