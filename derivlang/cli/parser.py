"""`derivlang parser`: train, score and list parsers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar
from derivlang.cli.types import PATH, Group, completes
from derivlang.commands.command import Command
from derivlang.commands.parser import ScoreParser, TrainParser


@dataclass(frozen=True, eq=False, repr=False)
class _ListParsers(Command[list[dict[str, Any]]]):
    """List the parsers by name.

    \b
    derivlang parser ls --json
    """

    def __call__(self) -> list[dict[str, Any]]:
        """Return {"name", "summary"} of each, of a bundled one also "language" and "licence"."""
        from derivlang.parsing.bundled import bundled_model
        from derivlang.parsing.registry import BUNDLED, PARSERS

        parsers = []
        for language, names in sorted(BUNDLED.items()):
            for name in names:
                card = bundled_model(name).card
                role = (
                    f"smaller and faster, taught by {card['teacher']['name']}" if "teacher" in card else "the default"
                )
                summary = f"{role}; part of this package; trained on {', '.join(card['trained_on'])}"
                parsers.append({"name": name, "language": language, "summary": summary, "licence": card["licence"]})
        parsers += [{"name": name, "summary": f"plug-in: {p.value}"} for name, p in PARSERS.plug_ins().items()]
        parsers += [
            {"name": "stanza", "summary": "Stanza's models in its default folder (pip install 'derivlang[stanza]')"},
            {"name": "stanza:DIR", "summary": "Stanza's models in a folder"},
            {"name": "spacy:NAME", "summary": "a spaCy pipeline with Universal Dependencies labels"},
            {"name": "DIR/", "summary": "a folder made by `derivlang parser train`"},
        ]
        return parsers


def _show_parsers(asked: _ListParsers, parsers: list[dict[str, Any]]) -> None:
    for parser in parsers:
        echo(f"{parser['name']:<15}{parser.get('language', ''):<4}{parser['summary']}")


def _line(scores: dict[str, Any]) -> str:
    told = ", ".join(f"{name} {value:.2f}" for name, value in scores.items() if name != "words")
    return f"{told} ({scores['words']:,} words)"


def _train(asked: TrainParser) -> dict[str, Any]:
    with Bar(shown=False):  # a line for each epoch
        return asked()


def _show_card(asked: TrainParser, card: dict[str, Any]) -> None:
    for name, scores in card["scores"].items():
        echo(f"{name}: {_line(scores)}")


def _score(asked: ScoreParser) -> tuple[str, dict[str, Any]]:
    with Bar():
        return asked.scored()


def _show_scores(asked: ScoreParser, scored: tuple[str, dict[str, Any]]) -> None:
    echo(f"{scored[0]}: {_line(scored[1])}")


train = command_line(
    TrainParser,
    "train",
    _show_card,
    arguments=[click.Argument(["treebank"], type=PATH)],
    json_help="Print the model card as JSON.",
    run=_train,
    summary="Train a tagger and parser on a treebank.",
    last=("data_dir", "force", "as_json"),
)
score = command_line(
    ScoreParser,
    "score",
    _show_scores,
    arguments=[click.Argument(["parser"], shell_complete=completes("parser")), click.Argument(["treebank"], type=PATH)],
    run=_score,
    json_of=lambda scored: scored[1],
    json_help="Print the scores as JSON.",
    summary="Score a parser on a treebank: UPOS, UAS and LAS.",
)
ls = command_line(
    _ListParsers, "ls", _show_parsers, bare=True, json_of=lambda parsers: [parsers], json_help="Print the list as JSON."
)
command = Group(
    "parser",
    commands=[ls, train, score],
    help="""Train, score and list parsers.

    \b
    derivlang parser ls
    """,
)
