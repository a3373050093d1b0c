"""`fit_grammar`, `score_grammar` and `grammar_probs`: word-order models.

`fit_file`, `figures_of` and `orders_of` are the same for settings objects, as the command line has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from derivlang.commands.shared import PathLike
from derivlang.core.errors import UsageError
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.grammar.settings import GrammarFitOptions, GrammarProbsOptions, GrammarScoreOptions


@takes(GrammarFitOptions)
def fit_grammar(treebanks: PathLike | Sequence[PathLike], out: PathLike, **options: Any) -> dict[str, Any]:
    """Fit a grammar to CoNLL-U files and write it, as `derivlang grammar fit` does.

    out: the file to write, which `syn` takes as its grammar.

    Return its summary: {"out", "name", "language", "labels", "classes", "about", "fingerprint", "l2", "thin"};
    "classes" has the number of weights of each head class. Raise DerivlangError where the command would fail; no file
    is left half-written.
    """
    with ProgressBar():
        return fit_file(_several(treebanks), Path(out), GrammarFitOptions(**given(GrammarFitOptions, options)), warn)


@takes(GrammarScoreOptions)
def score_grammar(grammar: PathLike, treebanks: PathLike | Sequence[PathLike], **options: Any) -> dict[str, Any]:
    """Score a grammar on CoNLL-U files, as `derivlang grammar score` does.

    grammar: the name of a shipped grammar, or a path.

    Return {"classes": {class: {"heads", "bits", "uniform", "right"}}, …}, and where there are clauses with subject and
    object "clauses", "observed", "sample" and "argmax": their number, and shares of orders. Raise DerivlangError as the
    command.
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


def fit_file(
    treebanks: Sequence[Path], out: Path, options: GrammarFitOptions, warn: Callable[[str], None]
) -> dict[str, Any]:
    """Fit a grammar, write it to `out`, and return what `fit_grammar` returns; of a stream, {"out"} alone."""
    from derivlang.grammar import file
    from derivlang.grammar.build import FEWEST_HEADS, GrammarRecipe, build
    from derivlang.grammar.treebank import check_labels, check_subtypes, check_version, demonstratives, read_families
    from derivlang.store.files import held_file, is_stream, writing

    names = _classes(options)
    _check_out(out, (*treebanks, *options.dev))
    with held_file(out, f"grammar fit {treebanks[0]}", treebanks, options):
        families, n_sentences = read_families(treebanks, punct=options.punct, own=True)
        held, _ = read_families(options.dev, punct=options.punct, own=True) if options.dev else (None, 0)
        forms = demonstratives(treebanks)
        check_version(families, options.labels, str(treebanks[0]))
        check_labels(families, str(treebanks[0]))
        kept = {"all": None, "none": ()}.get(options.subtypes, tuple(options.subtypes.split(",")))
        check_subtypes(families, kept or ())
        about = {
            "treebanks": ", ".join(path.name for path in treebanks),
            "sentences": str(n_sentences),
            **({"licence": options.licence} if options.licence else {}),
            **({"demonstratives": " ".join(forms)} if forms else {}),
        }
        strengths = (options.l2,) if options.l2 else None
        recipe = GrammarRecipe(
            out.name.partition(".")[0], options.language, names, kept, options.labels, options.punct, strengths,
            options.thin,
        )  # fmt: skip
        grammar, chosen = build(recipe, families, held, about)
        for name in names:
            if name not in grammar.classes:
                warn(f"the grammar has no model of {name} heads: fewer than {FEWEST_HEADS} have dependents")
        with writing(out) as stream:
            stream.write(file.text_of(grammar).encode())
    if is_stream(out):  # it cannot be read again, and may be standard output
        return {"out": str(out)}
    result = {"out": str(out), **file.read(out).summary()}
    result["l2"] = {name: settings.l2 for name, settings in chosen.items()}
    result["thin"] = {name: settings.thin for name, settings in chosen.items()}
    return result


def figures_of(grammar: str, treebanks: Sequence[Path], options: GrammarScoreOptions) -> dict[str, Any]:
    """Return what `score_grammar` returns."""
    from derivlang.grammar.figures import figures
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel
    from derivlang.grammar.treebank import read_families

    superstrate = load_grammar(grammar, where="GRAMMAR")
    other = load_grammar(options.substrate, where="--substrate") if options.substrate is not None else None
    families, _ = read_families(treebanks, punct=options.punct, own=other is None)
    model = OrderModel(superstrate, other, mix=options.mix, labels=options.labels)
    best = OrderModel(superstrate, other, mix=options.mix, labels=options.labels, mode="argmax")
    return figures(model, best, families, options.most)


def orders_of(superstrate: str, options: GrammarProbsOptions) -> Iterator[dict[str, Any]]:
    """Yield what `grammar_probs` returns, a head at a time."""
    from derivlang.grammar.heads import parse_head, read_heads
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel

    if options.nodes is None and options.nodes_file is None:
        raise UsageError("give --head and --nodes, or --nodes-file", where="grammar probs", id="missing-option")
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


def _classes(options: GrammarFitOptions) -> tuple[str, ...]:
    """Return the head classes to fit. Raise UsageError for others, and for an option that none of them reads."""
    from derivlang.grammar.build import THINNED
    from derivlang.grammar.families import UPOS, head_class

    asked = options.classes.split(",")
    wrong = [name for name in asked if name not in ("N", "V", *UPOS)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is not a head class", where="--classes", fix=f"N, V, {', '.join(UPOS)}", id="grammar-class"
        )
    names = tuple(dict.fromkeys(map(head_class, asked)))  # NOUN is of the class N
    thinned = set(THINNED) & set(names)
    if not thinned and options.thin is not None:
        raise _unused("only noun heads are thinned, and --classes has no N", "--thin")
    if options.dev and options.l2 is not None and (options.thin is not None or not thinned):
        told = "--l2 and --thin are given" if thinned else "--l2 is given, and no class is thinned"
        raise _unused(f"it has nothing to decide: {told}", "--dev")
    return names


def _check_out(out: Path, treebanks: Sequence[Path]) -> None:
    """Raise UsageError for a file that a grammar cannot be written to."""
    from derivlang.formats.opening import packing_of

    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", where="-o", id="missing-folder")
    if packing_of(out) or out.suffix == ".orm":
        raise UsageError(f"a grammar is written as text, not as {out.suffix}", where="-o", id="output")
    if any(path.exists() and out.exists() and out.samefile(path) for path in treebanks):
        raise UsageError("a grammar cannot be written over its treebank", where="-o", id="output")


def _unused(why: str, option: str) -> UsageError:
    return UsageError(why, where=option, fix=f"leave {option} out", id="unused-option")


def _several(paths: PathLike | Sequence[PathLike]) -> tuple[Path, ...]:
    return (Path(paths),) if isinstance(paths, str | Path) else tuple(map(Path, paths))
