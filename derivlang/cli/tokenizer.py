"""`derivlang tokenizer`: train a tokenizer on a source, and make its twins for derived languages."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import FOLDER, Group, source_argument
from derivlang.commands.lexical import MakeTwin, TrainTokenizer


@click.group("tokenizer", cls=Group)
def command() -> None:
    """Train tokenizers and make their twins.

    A twin gives derived text the ids that the source's tokenizer gives the source text.

    \b
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    derivlang tokenizer train --vocab-size 400 demo
    """


def _show(asked: TrainTokenizer, recipe: dict[str, Any]) -> None:
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
    TrainTokenizer, "train", _show, arguments=[source_argument()], json_help="Print the recipe as JSON.",
    summary="Train a character BPE on the words of a source.", first=("vocab_size",), last=("force", "as_json"),
)  # fmt: skip
twin = command_line(
    MakeTwin, "twin", _show_twin, arguments=[click.Argument(["tokenizer"], type=FOLDER, metavar="DIR")],
    json_help="Print the recipe as JSON.", summary="Make the twin of a tokenizer for a derived language.",
)  # fmt: skip
command.add_command(train)
command.add_command(twin)
