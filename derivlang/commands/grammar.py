"""`fit_grammar`, `count_orders`, `score_grammar` and `grammar_probs`: word-order models."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from derivlang.commands.command import Command
from derivlang.commands.folders import default_folder
from derivlang.core.messages import warn
from derivlang.core.settings import setting
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.formats.progress import found, reader
from derivlang.grammar.settings import GrammarCountOptions, GrammarFitOptions, GrammarProbsOptions, GrammarScoreOptions

Treebanks: TypeAlias = PathLike | Sequence[PathLike]
_file = partial(setting, None, also="-o", file=True, writes=True)


@dataclass(frozen=True, eq=False, repr=False)
class FitGrammar(Command[dict[str, Any]], GrammarFitOptions):
    """Fit a grammar to CoNLL-U files, by maximum likelihood with an L2 penalty, and write it.

    FILE.recipe.json beside it says how it was made. A grammar that the same command has already made is kept.

    \b
    derivlang grammar fit fr-ud-train.conllu --dev fr-ud-dev.conllu -o my-fr.grammar.tsv
    derivlang grammar fit fr-ud-train.conllu
    """

    treebanks: Treebanks
    out: OptionalPath = _file("Grammar file to write.", unset="TREEBANK.grammar.tsv, here")

    def __call__(self) -> dict[str, Any]:
        """Return its summary: {"out", "name", "language", "labels", "classes", "about", "fingerprint", "l2", "thin"};
        "classes" has the number of weights of each head class. No file is left half-written."""
        from derivlang.commands.grammar_file import fit_file

        treebanks = _several(self.treebanks)
        out = self.out or _default_out(self, treebanks, ".grammar.tsv")
        return fit_file(treebanks, out, self.part(GrammarFitOptions), warn, found=found)


@dataclass(frozen=True, eq=False, repr=False)
class CountOrders(Command[dict[str, Any]], GrammarCountOptions):
    """Count the orders of CoNLL-U files: the sides of relations, and which of two relations comes first.

    `syn` orders words by them: `--t 'syn:FILE:model="side=0.75"'`, or `model="pairwise=0.7"`.

    \b
    derivlang grammar count fr-ud-train.conllu fr-ud-dev.conllu -o my-fr.counts.tsv
    derivlang grammar count fr-ud-train.conllu
    """

    treebanks: Treebanks
    out: OptionalPath = _file("File of counts to write.", unset="TREEBANK.counts.tsv, here")

    def __call__(self) -> dict[str, Any]:
        """Return {"out", "sentences", "relations", "pairs", "fingerprint"}.

        Raise StoreError if the file is there with another content, unless it is to be replaced.
        """
        from derivlang.commands.grammar_file import check_out
        from derivlang.engine.watch import FileStamp, unchanged
        from derivlang.grammar.counts import count, text_of
        from derivlang.store.files import held_file, write_texts

        treebanks = _several(self.treebanks)
        out = self.path("out") or _default_out(self, treebanks, ".counts.tsv")
        check_out(out, treebanks, "a file of counts")
        names = ", ".join(path.name for path in treebanks)
        about = {"language": self.language, "treebanks": names, "licence": self.licence}
        # The same treebanks give the same bytes, so the file needs no recipe beside it.
        with held_file(out, f"grammar count {treebanks[0]}", treebanks, self.part(GrammarCountOptions)):
            with unchanged({path: FileStamp.of(path) for path in treebanks}):
                counts = count(treebanks, {key: value for key, value in about.items() if value})
            write_texts(out, {out.name: text_of(counts)}, replace=self.force)
        return {
            "out": str(out),
            "sentences": int(counts.about["sentences"]),
            "relations": len({relation for relation, _ in counts.sides}),
            "pairs": len(counts.pairs),
            "fingerprint": counts.fingerprint,
        }


@dataclass(frozen=True, eq=False, repr=False)
class ScoreGrammar(Command[dict[str, Any]], GrammarScoreOptions):
    """Score a grammar on CoNLL-U files: bits per head, and the share of heads whose most probable order is right.

    GRAMMAR is the name of a shipped grammar or a path.

    \b
    derivlang grammar score fr fr-ud-test.conllu
    """

    grammar: PathLike
    treebanks: Treebanks

    def __call__(self) -> dict[str, Any]:
        """Return {"classes": {class: {"heads", "bits", "uniform", "right"}}}, with None for the last three if there are
        no heads."""
        from derivlang.grammar.build import evaluate
        from derivlang.grammar.grammar import load_grammar
        from derivlang.grammar.order_model import OrderModel
        from derivlang.grammar.treebank import read_families

        superstrate = load_grammar(str(self.grammar), where="GRAMMAR")
        other = load_grammar(self.substrate, where="--substrate") if self.substrate is not None else None
        families, _ = read_families(_several(self.treebanks), punct=self.punct, own=other is None)
        model = OrderModel(superstrate, other, mix=self.mix, labels=self.labels)
        best = OrderModel(superstrate, other, mix=self.mix, labels=self.labels, mode="argmax")
        scores = {name: asdict(evaluate(model, best, families, name, self.most)) for name in model.classes}
        return {
            "classes": {
                name: {key: None if math.isnan(value) else value for key, value in score.items()}  # JSON has no nan
                for name, score in scores.items()
            }
        }


@dataclass(frozen=True, eq=False, repr=False)
class GrammarProbs(Command[dict[str, Any]], GrammarProbsOptions):
    """Print the exact probability of every order of a head and its dependents, in lexicographic order.

    \b
    derivlang grammar probs --superstrate fr --head VERB --nodes "NOUN&nsubj @VERB&@ NOUN&obj"
    """

    superstrate: Annotated[str, setting(None, "Grammar: a name, a path, or an .orm file of one head class.")]
    head: Annotated[str, setting(None, "UPOS of the head, such as VERB.")]
    nodes: Annotated[
        str, setting(None, 'Labels of the head and its dependents, in order: "NOUN&nsubj @VERB&@ NOUN&obj".')
    ]

    def __call__(self) -> dict[str, Any]:
        """Return {"nodes", "orders", "probs"}: labels, places of the nodes in each order, lexicographic, and its
        probability."""
        from derivlang.grammar.families import parse_head
        from derivlang.grammar.grammar import load_grammar
        from derivlang.grammar.order_model import OrderModel

        model = OrderModel(
            load_grammar(self.superstrate, where="--superstrate"),
            load_grammar(self.substrate, where="--substrate") if self.substrate is not None else None,
            mix=self.mix,
            labels=self.labels,
            temperature=self.temperature,
        )
        members = parse_head(self.head, self.nodes, any_relation=self.labels == "as-is")
        orders, probabilities = model.distribution(members)
        return {"nodes": members, "orders": orders.tolist(), "probs": probabilities.tolist()}


def _several(paths: Treebanks) -> tuple[Path, ...]:
    return (Path(paths),) if isinstance(paths, (str, os.PathLike)) else tuple(map(Path, paths))


def _default_out(asked: FitGrammar | CountOrders, treebanks: tuple[Path, ...], suffix: str) -> Path:
    """Return the file that a command writes without -o, and say so."""
    others: dict[str, object] = {"with": tuple(map(str, treebanks[1:]))} if len(treebanks) > 1 else {}
    out = Path(f"{default_folder(treebanks[0].name, options=asked.changed() | others)}{suffix}")
    reader().begins(f"writing to {out}")
    return out
