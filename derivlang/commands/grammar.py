"""`fit_grammar`, `count_orders`, `score_grammar` and `grammar_probs`: word-order models.

`fit_file` (grammar_file.py), `count_file` (counts_file.py), `figures_of` and `orders_of` are the same for settings
objects, as the command line has them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from derivlang.commands.shared import PathLike, local
from derivlang.core.errors import UsageError
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.grammar.settings import GrammarCountOptions, GrammarFitOptions, GrammarProbsOptions, GrammarScoreOptions


@takes(GrammarFitOptions)
def fit_grammar(treebanks: PathLike | Sequence[PathLike], out: PathLike, **options: Any) -> dict[str, Any]:
    """Fit a grammar to CoNLL-U files and write it, as `derivlang grammar fit` does.

    out: the file to write, which `syn` takes as its grammar. OUT.recipe.json is written beside it. A grammar that the
    same call has made is kept.

    Return its summary: {"out", "name", "language", "labels", "classes", "about", "fingerprint", "l2", "thin"};
    "classes" has the number of weights of each head class. Raise DerivlangError where the command would fail; no file
    is left half-written.
    """
    from derivlang.commands.grammar_file import fit_file

    with ProgressBar():
        return fit_file(
            _several(treebanks), local(out, "grammars"), GrammarFitOptions(**given(GrammarFitOptions, options)), warn
        )


@takes(GrammarCountOptions)
def count_orders(treebanks: PathLike | Sequence[PathLike], out: PathLike, **options: Any) -> dict[str, Any]:
    """Count the orders of CoNLL-U files and write the counts, as `derivlang grammar count` does.

    out: the file to write, which `syn` takes as its grammar with a model of counts (`model="side=0.75"`).

    Return {"out", "sentences", "relations", "pairs", "fingerprint"}. Raise DerivlangError where the command would fail.
    """
    from derivlang.commands.counts_file import count_file

    return count_file(
        _several(treebanks), local(out, "counts"), GrammarCountOptions(**given(GrammarCountOptions, options)), warn
    )


@takes(GrammarScoreOptions)
def score_grammar(grammar: PathLike, treebanks: PathLike | Sequence[PathLike], **options: Any) -> dict[str, Any]:
    """Score a grammar on CoNLL-U files, as `derivlang grammar score` does.

    grammar: the name of a shipped grammar, or a path.

    Return {"classes": {class: {"heads", "bits", "uniform", "right"}}}, with None for the last three if there are no
    heads. Raise DerivlangError as the command.
    """
    return figures_of(str(grammar), _several(treebanks), GrammarScoreOptions(**given(GrammarScoreOptions, options)))


@takes(GrammarProbsOptions)
def grammar_probs(superstrate: PathLike, **options: Any) -> list[dict[str, Any]]:
    """Return the exact probability of every order of each head, as `derivlang grammar probs` does.

    superstrate: the name of a shipped grammar, or a path.

    Return {"nodes", "orders", "probs"} of each head: labels, places of the nodes in each order, lexicographic, and its
    probability. Raise DerivlangError as the command.
    """
    return list(orders_of(str(superstrate), GrammarProbsOptions(**given(GrammarProbsOptions, options))))


def figures_of(grammar: str, treebanks: Sequence[Path], options: GrammarScoreOptions) -> dict[str, Any]:
    """Return what `score_grammar` returns."""
    from derivlang.grammar.evaluate import evaluate
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel
    from derivlang.grammar.treebank import read_families

    superstrate = load_grammar(grammar, where="GRAMMAR")
    other = load_grammar(options.substrate, where="--substrate") if options.substrate is not None else None
    families, _ = read_families(treebanks, punct=options.punct, own=other is None)
    model = OrderModel(superstrate, other, mix=options.mix, labels=options.labels)
    best = OrderModel(superstrate, other, mix=options.mix, labels=options.labels, mode="argmax")
    scores = {name: asdict(evaluate(model, best, families, name, options.most)) for name in model.classes}
    return {
        "classes": {
            name: {key: None if math.isnan(value) else value for key, value in score.items()}  # JSON has no nan
            for name, score in scores.items()
        }
    }


def orders_of(superstrate: str, options: GrammarProbsOptions) -> Iterator[dict[str, Any]]:
    """Yield what `grammar_probs` returns, a head at a time."""
    from derivlang.grammar.heads import parse_head, read_heads
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel

    if options.nodes is None and options.nodes_file is None:
        raise UsageError("give --head and --nodes, or --nodes-file", where="--nodes", id="missing-option")
    heads = [("--nodes", options.head or "", options.nodes or "")]
    if options.nodes_file is not None:
        heads = read_heads(options.nodes_file)
    model = OrderModel(
        load_grammar(superstrate, where="--superstrate"),
        load_grammar(options.substrate, where="--substrate") if options.substrate is not None else None,
        mix=options.mix,
        labels=options.labels,
        temperature=options.temperature,
    )
    for where, upos, text in heads:
        members = parse_head(upos, text, where, any_relation=options.labels == "as-is")
        orders, probabilities = model.distribution(members)
        yield {"nodes": members, "orders": orders.tolist(), "probs": probabilities.tolist()}


def _several(paths: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    return (Path(paths),) if isinstance(paths, str | Path) else tuple(map(Path, paths))
