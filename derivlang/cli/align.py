"""`derivlang align`: link the words of two texts, and score links."""

from __future__ import annotations

from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import place_of, to_stdout
from derivlang.cli.types import FILE, Group
from derivlang.commands.align import AlignWords, ScoreLinks
from derivlang.core.messages import counted


def _show(asked: AlignWords, result: dict[str, Any]) -> None:
    links, pairs = counted(result["links"], "link"), counted(result["sentences"], "sentence pair")
    echo(f"{links} of {pairs}: {place_of(result['out'])}", err=True)


def _show_scores(asked: ScoreLinks, figures: dict[str, float]) -> None:
    for name, value in figures.items():
        echo(f"{name:<11}{100 * value:6.2f} %")


train = command_line(
    AlignWords,
    "train",
    _show,
    arguments=[click.Argument(["source"], type=FILE), click.Argument(["target"], type=FILE)],
    json_help="Print a summary as JSON.",
    on_stderr=to_stdout,
    summary="Train an aligner on two texts and write their links.",
    completed=False,
)
score = command_line(
    ScoreLinks,
    "score",
    _show_scores,
    arguments=[click.Argument(["links"], type=FILE), click.Argument(["gold"], type=FILE)],
    json_help="Print the figures as JSON.",
    summary="Score links against gold links.",
)
command = Group(
    "align",
    commands=[train, score],
    help="""Word aligners: link the words of two texts, and score links against gold links.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    """,
)
