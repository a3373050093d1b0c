"""`derivlang grammar`: list, show, score and fit word-order models, count orders, and print exact probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import Bar
from derivlang.cli.settings import settings_options
from derivlang.cli.types import FILE, LOCAL_FILE, PLACE, Group, completes
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.grammar.settings import GrammarCountOptions, GrammarFitOptions, GrammarProbsOptions, GrammarScoreOptions


@click.group("grammar", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, show, score and fit word-order models, count orders, and print exact probabilities.

    \b
    derivlang grammar fit fr-ud-train.conllu
    derivlang grammar score fr fr-ud-test.conllu
    derivlang grammar ls
    """


@command.command("ls")
@option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the grammars that ship with derivlang.

    \b
    derivlang grammar ls --json
    """
    from derivlang.grammar.load import load_grammar, shipped

    grammars = [load_grammar(name).summary() for name in shipped()]
    if as_json:
        echo(json.dumps(grammars, ensure_ascii=False))
        return
    for grammar in grammars:
        heads = " ".join(f"{name}:{count}" for name, count in grammar["classes"].items())
        echo(f"{grammar['name']:<6}{grammar['language']:<18}{grammar['about'].get('licence', ''):<40}{heads}")


@command.command("show", no_args_is_help=True, short_help="Show the origin and the strongest weights of a grammar.")
@click.argument("grammar", shell_complete=completes("grammar"))
@option("-n", "--count", type=PLACE, default=10, show_default=True,
              help="Number of weights to show for each head class.")  # fmt: skip
@option("--json", "as_json", is_flag=True, help="Print the grammar's summary as JSON.")
def show(grammar: str, count: int, as_json: bool) -> None:
    """Show the origin of a grammar and its strongest weights.

    GRAMMAR is the name of a shipped grammar or a path.

    \b
    derivlang grammar show fr
    """
    from derivlang.grammar.load import load_grammar

    loaded = load_grammar(grammar, where="GRAMMAR")
    shown = loaded.summary()
    shown["strongest"] = {
        name: [
            {"kind": kind, "labels": list(tokens), "weight": weight}
            for kind, tokens, weight in sorted(weights.features(), key=lambda f: -abs(f[2]))[:count]
        ]
        for name, weights in loaded.weights.items()
    }
    if as_json:
        echo(json.dumps(shown, ensure_ascii=False))
        return
    echo(f"{shown['name']}  {shown['language']}  labels UD {shown['labels']}  fingerprint {shown['fingerprint']}")
    for key, value in shown["about"].items():
        echo(f"  {key}: {value}")
    for name, n_weights in shown["classes"].items():
        echo(f"{name} heads: {n_weights:,} weights")
        for feature in shown["strongest"][name]:
            echo(f"  {feature['weight']:>8.3f}  {feature['kind']:<4} {' '.join(feature['labels'])}")


@command.command("score", no_args_is_help=True, short_help="Score a grammar on CoNLL-U files.")
@click.argument("grammar", shell_complete=completes("grammar"))
@click.argument("treebanks", nargs=-1, required=True, type=FILE, metavar="TREEBANK...")
@settings_options(GrammarScoreOptions)
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(grammar: str, treebanks: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Score a grammar on CoNLL-U files: bits per head, and the share of heads whose most probable order is right.

    GRAMMAR is the name of a shipped grammar or a path.

    \b
    derivlang grammar score fr fr-ud-test.conllu
    """
    from derivlang.commands.grammar import figures_of

    figures = figures_of(grammar, treebanks, GrammarScoreOptions(**given(GrammarScoreOptions, options)))
    if as_json:
        echo(json.dumps(figures))
        return
    echo(f"{'heads':<8}{'number':>8}{'bits':>8}{'uniform':>9}{'right':>8}")
    for name, row in figures["classes"].items():
        if row["heads"]:
            bits = f"{row['bits']:>8.3f}{row['uniform']:>9.3f}{row['right']:>8.1%}"
            echo(f"{name:<8}{row['heads']:>8}{bits}")


@command.command("fit", no_args_is_help=True, short_help="Fit a grammar to CoNLL-U files.")
@click.argument("treebanks", nargs=-1, required=True, type=FILE, metavar="TREEBANK...")
@option("-o", "--out", type=LOCAL_FILE, help="Grammar file to write.  [default: TREEBANK.grammar.tsv, here]")
@settings_options(GrammarFitOptions)
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def fit(treebanks: tuple[Path, ...], out: Path | None, as_json: bool, **options: Any) -> None:
    """Fit a grammar to CoNLL-U files, by maximum likelihood with an L2 penalty, and write it.

    FILE.recipe.json beside it says how it was made. A grammar that the same command has already made is kept.

    \b
    derivlang grammar fit fr-ud-train.conllu --dev fr-ud-dev.conllu -o my-fr.grammar.tsv
    derivlang grammar fit fr-ud-train.conllu
    """
    from derivlang.commands.grammar_file import fit_file
    from derivlang.store.files import is_stream

    begins = ""
    if out is None:
        out, begins = _default_out(treebanks, ".grammar.tsv")
    asked = GrammarFitOptions(**given(GrammarFitOptions, options))
    with Bar(begins=begins) as bar:
        result = fit_file(treebanks, out, asked, warn, found=bar.complete)
    if is_stream(out):
        return
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
    else:
        heads = ", ".join(f"{name} {count:,}" for name, count in result["classes"].items())
        penalties = ", ".join(f"{name} {value:g}" for name, value in result["l2"].items())
        shares = "".join(f"; {name} thinned {value:g}" for name, value in result["thin"].items() if value)
        echo(f"{out}: weights of {heads}; L2 {penalties}{shares}; {out.stat().st_size:,} bytes")


@command.command("count", no_args_is_help=True, short_help="Count the orders of CoNLL-U files.")
@click.argument("treebanks", nargs=-1, required=True, type=FILE, metavar="TREEBANK...")
@option("-o", "--out", type=LOCAL_FILE, help="File of counts to write.  [default: TREEBANK.counts.tsv, here]")
@settings_options(GrammarCountOptions)
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def count(treebanks: tuple[Path, ...], out: Path | None, as_json: bool, **options: Any) -> None:
    """Count the orders of CoNLL-U files: the sides of relations, and which of two relations comes first.

    `syn` orders words by them: `--t 'syn:FILE:model="side=0.75"'`, or `model="pairwise=0.7"`.

    \b
    derivlang grammar count fr-ud-train.conllu fr-ud-dev.conllu -o my-fr.counts.tsv
    derivlang grammar count fr-ud-train.conllu
    """
    from derivlang.commands.counts_file import count_file
    from derivlang.store.files import is_stream

    begins = ""
    if out is None:
        out, begins = _default_out(treebanks, ".counts.tsv")
    asked = GrammarCountOptions(**given(GrammarCountOptions, options))
    with Bar(begins=begins):
        result = count_file(treebanks, out, asked, warn)
    if is_stream(out):
        return
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
    else:
        echo(f"{out}: {', '.join(counted(result[f'{name}s'], name) for name in ('sentence', 'relation', 'pair'))}")


@command.command("probs", no_args_is_help=True, short_help="Print the probability of every order of a head.")
@option("--superstrate", required=True, help="Grammar: a name, a path, or an .orm file of one head class.")
@settings_options(GrammarProbsOptions)
@option("--json", "as_json", is_flag=True, help="Print a line of JSON for each head.")
def probs(superstrate: str, as_json: bool, **options: Any) -> None:
    """Print the exact probability of every order of a head and its dependents, in lexicographic order.

    \b
    derivlang grammar probs --superstrate fr --head VERB --nodes "NOUN&nsubj @VERB&@ NOUN&obj"
    """
    from derivlang.commands.grammar import orders_of

    for head in orders_of(superstrate, GrammarProbsOptions(**given(GrammarProbsOptions, options))):
        if as_json:
            echo(json.dumps(head, ensure_ascii=False))
            continue
        for order, p in zip(head["orders"], head["probs"], strict=True):
            echo(f"{p:.6f}  {' '.join(head['nodes'][i] for i in order)}")


def _default_out(treebanks: tuple[Path, ...], suffix: str) -> tuple[Path, str]:
    """Return (the file that a command writes without -o, what it then says about it)."""
    others: dict[str, object] = {"with": tuple(map(str, treebanks[1:]))} if len(treebanks) > 1 else {}
    out = Path(f"{default_folder(treebanks[0].name, options=changed_options('treebanks') | others)}{suffix}")
    return out, f"writing to {out}"
