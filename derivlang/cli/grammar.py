"""`derivlang grammar`: list, show, score and fit word-order models, and print exact probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import Bar, refuse_given
from derivlang.cli.types import FILE, OUT_FILE, PLACE, Group, Number, Whole, completes
from derivlang.core.errors import UsageError

_LABELS = click.Choice(["map", "as-is"])


@click.group("grammar", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """List, show, score and fit word-order models, and print exact probabilities.

    \b
    derivlang grammar fit fr-ud-train.conllu
    derivlang grammar score fr fr-ud-test.conllu
    derivlang grammar ls
    """


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the grammars that ship with derivlang.

    \b
    derivlang grammar ls --json
    """
    from derivlang.grammar.load import load_grammar, shipped

    found = [load_grammar(name).summary() for name in shipped()]
    if as_json:
        echo(json.dumps(found, ensure_ascii=False))
        return
    for grammar in found:
        heads = " ".join(f"{name}:{count}" for name, count in grammar["classes"].items())
        echo(f"{grammar['name']:<6}{grammar['language']:<18}{grammar['about'].get('licence', ''):<40}{heads}")


@command.command("show", no_args_is_help=True, short_help="Show the origin and the strongest weights of a grammar.")
@click.argument("grammar", shell_complete=completes("grammar"))
@click.option("-n", "--count", type=PLACE, default=10, show_default=True,
              help="Number of weights to show for each head class.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the grammar's summary as JSON.")
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
@click.option("--substrate", help="Grammar of the treebanks' language, to mix in.")
@click.option("--mix", type=Number(0, 1), default=0.05, show_default=True, help="Share of the substrate.")
@click.option("--labels", type=_LABELS, default="map", show_default=True,
              help="Mapping of labels to the grammar's UD version, or labels as they are.")  # fmt: skip
@click.option("--most", type=Whole(2, 13), default=7, show_default=True,
              help="Maximum size of a scored family, the head included.")  # fmt: skip
@click.option("--punct", is_flag=True, help="Order punctuation as well.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(
    grammar: str,
    treebanks: tuple[Path, ...],
    substrate: str | None,
    mix: float,
    labels: Literal["map", "as-is"],
    most: int,
    punct: bool,
    as_json: bool,
) -> None:
    """Score a grammar on CoNLL-U files: bits a head, and its shares of the orders of subject, verb and object.

    GRAMMAR is the name of a shipped grammar or a path.

    \b
    derivlang grammar score fr fr-ud-test.conllu
    """
    from derivlang.grammar.figures import figures
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel
    from derivlang.grammar.statistics import SVO
    from derivlang.grammar.treebank import read_families

    if substrate is None:
        refuse_given("is the share of a --substrate", "mix")
    superstrate = load_grammar(grammar, where="GRAMMAR")
    other = load_grammar(substrate, where="--substrate") if substrate is not None else None
    families, _ = read_families(treebanks, punct=punct, own=other is None)
    model = OrderModel(superstrate, other, mix=mix, labels=labels)
    best = OrderModel(superstrate, other, mix=mix, labels=labels, mode="argmax")
    found = figures(model, best, families, most)
    if as_json:
        echo(json.dumps(found))
        return
    echo(f"{'heads':<8}{'number':>8}{'bits':>8}{'uniform':>9}{'right':>8}")
    for name, row in found["classes"].items():
        if row["heads"]:
            bits = f"{row['bits']:>8.3f}{row['uniform']:>9.3f}{row['right']:>8.1%}"
            echo(f"{name:<8}{row['heads']:>8}{bits}")
    if found.get("clauses"):
        echo(f"\n{found['clauses']} clauses with nominal subject and object")
        echo(f"{'':<10}" + "".join(f"{order:>8}" for order in SVO))
        for key in ("observed", "sample", "argmax"):
            echo(f"{key:<10}" + "".join(f"{share:>8.1%}" for share in found[key].values()))


@command.command("fit", no_args_is_help=True, short_help="Fit a grammar to CoNLL-U files.")
@click.argument("treebanks", nargs=-1, required=True, type=FILE, metavar="TREEBANK...")
@click.option("-o", "--out", type=OUT_FILE, help="Grammar file to write.  [default: TREEBANK.grammar.tsv, here]")
@click.option("--language", default="", help="Name of the language, for the header.")
@click.option("--licence", default="", help="Licence of the treebanks, for the header.")
@click.option("--classes", default="N,V", show_default=True, help="Head classes: N, V, or a UPOS such as ADJ.")
@click.option("--l2", type=Number(0, min_open=True), default=None,
              help="Strength of the L2 penalty.  [default: 2; with --dev the best on it]")  # fmt: skip
@click.option("--dev", multiple=True, type=FILE, metavar="TREEBANK",
              help="Treebank that decides --l2 and --thin; may be repeated.")  # fmt: skip
@click.option("--thin", type=Number(0, 1, max_open=True), default=None,
              help="Share of the dependents of noun heads that training leaves out, so that an order depends less on"
                   " the other dependents.  [default: 0; with --dev the best on it]")  # fmt: skip
@click.option("--subtypes", default="all", show_default=True,
              help="Subtypes of relations to keep: all, none, or a list.")  # fmt: skip
@click.option("--labels", type=click.Choice(["v2", "v1"]), default="v2", show_default=True,
              help="UD version of the treebanks.")  # fmt: skip
@click.option("--punct", is_flag=True, help="Order punctuation as well.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def fit(
    treebanks: tuple[Path, ...],
    out: Path | None,
    language: str,
    licence: str,
    classes: str,
    l2: float | None,
    dev: tuple[Path, ...],
    thin: float | None,
    subtypes: str,
    labels: str,
    punct: bool,
    as_json: bool,
) -> None:
    """Fit a grammar to CoNLL-U files, by maximum likelihood with an L2 penalty, and write it.

    \b
    derivlang grammar fit fr-ud-train.conllu --dev fr-ud-dev.conllu -o my-fr.grammar.tsv
    derivlang grammar fit fr-ud-train.conllu
    """
    from derivlang.formats.opening import packing_of
    from derivlang.grammar import file
    from derivlang.grammar.build import FEWEST_HEADS, THINNED, GrammarRecipe, build
    from derivlang.grammar.families import UPOS, head_class
    from derivlang.grammar.treebank import check_labels, check_subtypes, check_version, demonstratives, read_families
    from derivlang.store.files import held_file, is_stream, writing

    asked = classes.split(",")
    wrong = [name for name in asked if name not in ("N", "V", *UPOS)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is not a head class", where="--classes", fix=f"N, V, {', '.join(UPOS)}", id="grammar-class"
        )
    begins, named = "", out is not None
    if out is None:
        folder = default_folder(treebanks[0].name, options=changed_options("treebanks") | _others(treebanks))
        out = Path(f"{folder}.grammar.tsv")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", where="-o", id="missing-folder")
    context = click.get_current_context()
    context.with_resource(held_file(out, f"grammar fit {treebanks[0]}", context.params))
    if not named:
        if out.exists():
            fix = "delete it to fit it again, or name another file with -o"
            raise UsageError("the grammar file exists already", where=str(out), fix=fix, id="out-exists")
        begins = f"writing to {out}"
    if packing_of(out) or out.suffix == ".orm":
        raise UsageError(f"a grammar is written as text, not as {out.suffix}", where="-o", id="output")
    if any(path.exists() and out.exists() and out.samefile(path) for path in (*treebanks, *dev)):
        raise UsageError("a grammar cannot be written over its treebank", where="-o", id="output")
    names = tuple(dict.fromkeys(map(head_class, asked)))  # NOUN is of the class N
    thinned = set(THINNED) & set(names)
    if not thinned:
        refuse_given("only noun heads are thinned, and --classes has no N", "thin")
    if l2 is not None and (thin is not None or not thinned):
        given = "--l2 and --thin are given" if thinned else "--l2 is given, and no class is thinned"
        refuse_given(f"it has nothing to decide: {given}", "dev")
    with Bar() as bar, bar.stage("reading"):
        families, n_sentences = read_families(treebanks, punct=punct, own=True)
        held, _ = read_families(dev, punct=punct, own=True) if dev else (None, 0)
        forms = demonstratives(treebanks)
    check_version(families, labels, str(treebanks[0]))
    check_labels(families, str(treebanks[0]))
    kept = None if subtypes == "all" else () if subtypes == "none" else tuple(subtypes.split(","))
    check_subtypes(families, kept or ())
    about = {
        "treebanks": ", ".join(path.name for path in treebanks),
        "sentences": str(n_sentences),
        **({"licence": licence} if licence else {}),
        **({"demonstratives": " ".join(forms)} if forms else {}),
    }
    strengths = (l2,) if l2 else None
    recipe = GrammarRecipe(out.name.partition(".")[0], language, names, kept, labels, punct, strengths, thin)
    with Bar(begins=begins):
        grammar, chosen = build(recipe, families, held, about)
    for name in names:
        if name not in grammar.classes:
            warn(f"the grammar has no model of {name} heads: fewer than {FEWEST_HEADS} have dependents")
    with writing(out) as stream:
        stream.write(file.text_of(grammar).encode())
    if is_stream(out):  # it cannot be read again, and may be standard output
        return
    result = {"out": str(out), **file.read(out).summary()}
    result["l2"] = {name: settings.l2 for name, settings in chosen.items()}
    result["thin"] = {name: settings.thin for name, settings in chosen.items()}
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
    else:
        heads = ", ".join(f"{name} {count:,}" for name, count in result["classes"].items())
        penalties = ", ".join(f"{name} {value:g}" for name, value in result["l2"].items())
        shares = "".join(f"; {name} thinned {value:g}" for name, value in result["thin"].items() if value)
        echo(f"{out}: weights of {heads}; L2 {penalties}{shares}; {out.stat().st_size:,} bytes")


@command.command("probs", no_args_is_help=True, short_help="Print the probability of every order of a head.")
@click.option("--superstrate", required=True, help="Grammar: a name, a path, or an .orm file of one head class.")
@click.option("--substrate", help="Grammar to mix in.")
@click.option("--mix", type=Number(0, 1), default=0.05, show_default=True, help="Share of the substrate.")
@click.option("--head", help="UPOS of the head, such as VERB (with --nodes).")
@click.option("--nodes", help='Labels of the head and its dependents, in order: "NOUN&nsubj @VERB&@ NOUN&obj".')
@click.option(
    "--nodes-file", type=FILE, help="File with a head on each line, instead of --head and --nodes: UPOS, a tab, labels."
)
@click.option("--labels", type=_LABELS, default="map", show_default=True,
              help="Mapping of labels to each grammar's UD version, or labels as they are.")  # fmt: skip
@click.option("--temperature", type=Number(0, min_open=True), default=1.0, show_default=True,
              help="Temperature: above 1 flattens the distribution, below 1 sharpens it.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each head.")
def probs(
    superstrate: str,
    substrate: str | None,
    mix: float,
    head: str | None,
    nodes: str | None,
    nodes_file: Path | None,
    labels: Literal["map", "as-is"],
    temperature: float,
    as_json: bool,
) -> None:
    """Print the exact probability of every order of a head and its dependents, in lexicographic order.

    \b
    derivlang grammar probs --superstrate fr --head VERB --nodes "NOUN&nsubj @VERB&@ NOUN&obj"
    """
    from derivlang.grammar.heads import parse_head, read_heads
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel

    if (nodes_file is None) == (nodes is None) or (nodes is None) != (head is None):
        raise UsageError("give --head and --nodes, or --nodes-file", where="grammar probs", id="missing-option")
    if substrate is None:
        refuse_given("is the share of a --substrate", "mix")
    heads = [("--nodes", head or "", nodes or "")] if nodes_file is None else read_heads(nodes_file)
    model = OrderModel(
        load_grammar(superstrate, where="--superstrate"),
        load_grammar(substrate, where="--substrate") if substrate is not None else None,
        mix=mix,
        labels=labels,
        temperature=temperature,
    )
    for where, upos, text in heads:
        members = parse_head(upos, text, where, any_relation=labels == "as-is")
        orders, probabilities = model.distribution(members)
        if as_json:
            found = {"nodes": members, "orders": orders.tolist(), "probs": probabilities.tolist()}
            echo(json.dumps(found, ensure_ascii=False))
        else:
            for order, p in zip(orders.tolist(), probabilities.tolist(), strict=True):
                echo(f"{p:.6f}  {' '.join(members[i] for i in order)}")


def _others(treebanks: tuple[Path, ...]) -> dict[str, object]:
    """Return the treebanks after the first, as part of a default name."""
    return {"with": tuple(map(str, treebanks[1:]))} if len(treebanks) > 1 else {}
