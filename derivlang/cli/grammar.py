"""`derivlang grammar`: list, show, score and fit word-order models, count orders, and print exact probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from derivlang.cli.generated import command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import FILE, Group, completes
from derivlang.commands.command import Command
from derivlang.commands.grammar import CountOrders, FitGrammar, GrammarProbs, ScoreGrammar
from derivlang.core.messages import counted
from derivlang.core.settings import setting


@dataclass(frozen=True, eq=False, repr=False)
class _ListGrammars(Command[list[dict[str, Any]]]):
    """List the grammars that ship with derivlang.

    \b
    derivlang grammar ls --json
    """

    def __call__(self) -> list[dict[str, Any]]:
        """Return the summary of each."""
        from derivlang.grammar.grammar import load_grammar, shipped

        return [load_grammar(name).summary() for name in shipped()]


def _show_grammars(asked: _ListGrammars, grammars: list[dict[str, Any]]) -> None:
    for grammar in grammars:
        heads = " ".join(f"{name}:{count}" for name, count in grammar["classes"].items())
        echo(f"{grammar['name']:<6}{grammar['language']:<18}{grammar['about'].get('licence', ''):<40}{heads}")


@dataclass(frozen=True, eq=False, repr=False)
class _ShowGrammar(Command[dict[str, Any]]):
    """Show the origin of a grammar and its strongest weights.

    GRAMMAR is the name of a shipped grammar or a path.

    \b
    derivlang grammar show fr
    """

    grammar: str
    count: int = setting(10, "Number of weights to show for each head class.", also="-n", minimum=0)

    def __call__(self) -> dict[str, Any]:
        """Return its summary, with the strongest weights of each head class."""
        from derivlang.grammar.grammar import load_grammar

        loaded = load_grammar(self.grammar, where="GRAMMAR")
        strongest = {
            name: [
                {"kind": kind, "labels": list(tokens), "weight": weight}
                for kind, tokens, weight in sorted(weights.features(), key=lambda f: -abs(f[2]))[: self.count]
            ]
            for name, weights in loaded.weights.items()
        }
        return {**loaded.summary(), "strongest": strongest}


def _show_grammar(asked: _ShowGrammar, shown: dict[str, Any]) -> None:
    echo(f"{shown['name']}  {shown['language']}  labels UD {shown['labels']}  fingerprint {shown['fingerprint']}")
    for key, value in shown["about"].items():
        echo(f"  {key}: {value}")
    for name, n_weights in shown["classes"].items():
        echo(f"{name} heads: {n_weights:,} weights")
        for feature in shown["strongest"][name]:
            echo(f"  {feature['weight']:>8.3f}  {feature['kind']:<4} {' '.join(feature['labels'])}")


def _treebanks() -> click.Argument:
    return click.Argument(["treebanks"], nargs=-1, required=True, type=FILE, metavar="TREEBANK...")


def _show_scores(asked: ScoreGrammar, figures: dict[str, Any]) -> None:
    echo(f"{'heads':<8}{'number':>8}{'bits':>8}{'uniform':>9}{'right':>8}")
    for name, row in figures["classes"].items():
        if row["heads"]:
            bits = f"{row['bits']:>8.3f}{row['uniform']:>9.3f}{row['right']:>8.1%}"
            echo(f"{name:<8}{row['heads']:>8}{bits}")


def _show_fit(asked: FitGrammar, result: dict[str, Any]) -> None:
    heads = ", ".join(f"{name} {count:,}" for name, count in result["classes"].items())
    penalties = ", ".join(f"{name} {value:g}" for name, value in result["l2"].items())
    shares = "".join(f"; {name} thinned {value:g}" for name, value in result["thin"].items() if value)
    size = Path(result["out"]).stat().st_size
    echo(f"{result['out']}: weights of {heads}; L2 {penalties}{shares}; {size:,} bytes")


def _show_counts(asked: CountOrders, result: dict[str, Any]) -> None:
    counts = ", ".join(counted(result[f"{name}s"], name) for name in ("sentence", "relation", "pair"))
    echo(f"{result['out']}: {counts}")


def _show_probs(asked: GrammarProbs, head: dict[str, Any]) -> None:
    for order, p in zip(head["orders"], head["probs"], strict=True):
        echo(f"{p:.6f}  {' '.join(head['nodes'][i] for i in order)}")


def _is_stream(asked: FitGrammar | CountOrders) -> bool:
    from derivlang.store.files import is_stream

    return asked.out is not None and is_stream(asked.out)


ls = command_line(
    _ListGrammars, "ls", _show_grammars, bare=True, json_of=lambda grammars: [grammars],
    json_help="Print the list as JSON.",
)  # fmt: skip
show = command_line(
    _ShowGrammar, "show", _show_grammar, arguments=[click.Argument(["grammar"], shell_complete=completes("grammar"))],
    json_help="Print the grammar's summary as JSON.",
    summary="Show the origin and the strongest weights of a grammar.",
)  # fmt: skip
score = command_line(
    ScoreGrammar,
    "score",
    _show_scores,
    arguments=[click.Argument(["grammar"], shell_complete=completes("grammar")), _treebanks()],
    json_help="Print the figures as JSON.",
    summary="Score a grammar on CoNLL-U files.",
)
fit = command_line(
    FitGrammar, "fit", _show_fit, arguments=[_treebanks()], json_help="Print the figures as JSON.", silent=_is_stream,
    summary="Fit a grammar to CoNLL-U files.",
)  # fmt: skip
count = command_line(
    CountOrders, "count", _show_counts, arguments=[_treebanks()], json_help="Print the figures as JSON.",
    silent=_is_stream, summary="Count the orders of CoNLL-U files.",
)  # fmt: skip
probs = command_line(
    GrammarProbs, "probs", _show_probs, json_help="Print the orders as JSON.",
    summary="Print the probability of every order of a head.",
)  # fmt: skip
command = Group(
    "grammar",
    commands=[ls, show, score, fit, count, probs],
    help="""List, show, score and fit word-order models, count orders, and print exact probabilities.

    \b
    derivlang grammar fit fr-ud-train.conllu
    derivlang grammar score fr fr-ud-test.conllu
    derivlang grammar ls
    """,
)
