"""`derivlang grammar`: word-order models: list, show, score, fit, and exact probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.core.errors import UsageError

if TYPE_CHECKING:
    from derivlang.grammar.families import Families
    from derivlang.grammar.grammar import Grammar

_LABELS = click.Choice(["map", "as-is"])


@click.group("grammar", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Word-order models: which there are, what they say, how well they predict, and fitting new ones.

    \b
    derivlang grammar fit fr-ud-train.conllu -o my-fr.grammar.tsv
    derivlang grammar score fr fr-ud-test.conllu
    derivlang grammar ls
    """


@command.command("ls")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def ls(as_json: bool) -> None:
    """List the grammars that ship with derivlang."""
    from derivlang.grammar.load import load_grammar, shipped

    found = [_summary(load_grammar(name)) for name in shipped()]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for grammar in found:
        heads = " ".join(f"{name}:{count}" for name, count in grammar["classes"].items())
        click.echo(f"{grammar['name']:<6}{grammar['language']:<18}{grammar['about'].get('licence', ''):<40}{heads}")


@command.command("show", no_args_is_help=True)
@click.argument("grammar")
@click.option("-n", "--count", type=click.IntRange(0), default=10, show_default=True,
              help="How many of the strongest weights of each class.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def show(grammar: str, count: int, as_json: bool) -> None:
    """Show what a grammar is made of, and its strongest weights. GRAMMAR: a name or a path."""
    from derivlang.grammar.load import load_grammar

    loaded = load_grammar(grammar, where="GRAMMAR")
    shown = _summary(loaded)
    shown["strongest"] = {
        name: [
            {"kind": kind, "labels": list(tokens), "weight": weight}
            for kind, tokens, weight in sorted(weights.features(), key=lambda f: -abs(f[2]))[:count]
        ]
        for name, weights in loaded.weights.items()
    }
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    click.echo(f"{shown['name']}  {shown['language']}  labels UD {shown['labels']}  fingerprint {shown['fingerprint']}")
    for key, value in shown["about"].items():
        click.echo(f"  {key}: {value}")
    for name, n_weights in shown["classes"].items():
        click.echo(f"{name} heads: {n_weights:,} weights")
        for feature in shown["strongest"][name]:
            click.echo(f"  {feature['weight']:>8.3f}  {feature['kind']:<4} {' '.join(feature['labels'])}")


@command.command("score", no_args_is_help=True)
@click.argument("grammar")
@click.argument("treebanks", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TREEBANK...")
@click.option("--substrate", help="Mix with the grammar of the trees' own language.")
@click.option("--mix", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="The substrate's share.")
@click.option("--labels", type=_LABELS, default="map", show_default=True,
              help="Take labels to the grammar's version of UD, or leave them.")  # fmt: skip
@click.option("--most", type=click.IntRange(2, 13), default=7, show_default=True, help="Members of the largest heads.")
@click.option("--punct", is_flag=True, help="Punctuation is ordered, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(
    grammar: str,
    treebanks: tuple[Path, ...],
    substrate: str | None,
    mix: float,
    labels: Any,
    most: int,
    punct: bool,
    as_json: bool,
) -> None:
    """Bits a head that a grammar needs for the orders of CoNLL-U files, and its orders of subject, verb and object.

    GRAMMAR: a name or a path.
    """
    from derivlang.grammar import statistics
    from derivlang.grammar.evaluate import NoDraws, evaluate
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel

    superstrate = load_grammar(grammar, where="GRAMMAR")
    other = load_grammar(substrate, where="--substrate") if substrate else None
    families, _ = _families(treebanks, punct)
    model = OrderModel(superstrate, other, mix=mix, labels=labels)
    best = OrderModel(superstrate, other, mix=mix, labels=labels, mode="argmax")
    found: dict[str, Any] = {"classes": {}}
    for name in model.classes:
        got = evaluate(model, best, families, name, most)
        found["classes"][name] = {
            "heads": got.heads,
            **{key: _number(getattr(got, key)) for key in ("bits", "uniform", "right")},
        }
    if "V" in model.classes:
        clauses = statistics.clauses(families)
        expected, _ = statistics.expected_shares(model, clauses)
        chosen = statistics.observed_shares(clauses, best.draw(clauses.families, NoDraws()))
        found["clauses"] = len(clauses.families)
        for key, shares in (
            ("observed", statistics.observed_shares(clauses)),
            ("sample", expected),
            ("argmax", chosen),
        ):
            found[key] = {order: _number(share) for order, share in zip(statistics.SVO, shares, strict=True)}
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(f"{'heads':<8}{'number':>8}{'bits':>8}{'uniform':>9}{'right':>8}")
    for name, row in found["classes"].items():
        if row["heads"]:
            bits = f"{row['bits']:>8.3f}{row['uniform']:>9.3f}{row['right']:>8.1%}"
            click.echo(f"{name:<8}{row['heads']:>8}{bits}")
    if found.get("clauses"):
        click.echo(f"\n{found['clauses']} clauses with nominal subject and object")
        click.echo(f"{'':<10}" + "".join(f"{order:>8}" for order in statistics.SVO))
        for key in ("observed", "sample", "argmax"):
            click.echo(f"{key:<10}" + "".join(f"{share:>8.1%}" for share in found[key].values()))


@command.command("fit", no_args_is_help=True)
@click.argument("treebanks", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TREEBANK...")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The grammar file to write.")
@click.option("--language", default="", help="Its name, for the header.")
@click.option("--licence", default="", help="Licence of the treebanks, for the header.")
@click.option("--classes", default="N,V", show_default=True, help="Head classes: N, V, or a UPOS such as ADJ.")
@click.option("--l2", type=click.FloatRange(0, min_open=True), default=None,
              help="Strength of the penalty.  [default: 2, or by --dev]")  # fmt: skip
@click.option("--dev", multiple=True, type=click.Path(path_type=Path), metavar="TREEBANK",
              help="Choose the penalty and --thin by these sentences.")  # fmt: skip
@click.option("--thin", type=click.FloatRange(0, 1, max_open=True), default=None,
              help="Share of the dependents of noun heads left out while learning, so that the model leans less on"
                   " which others are there.  [default: 0, or by --dev]")  # fmt: skip
@click.option("--subtypes", default="all", show_default=True,
              help="Subtypes of relations that stay: all, none, or a list.")  # fmt: skip
@click.option("--labels", type=click.Choice(["v2", "v1"]), default="v2", show_default=True,
              help="The version of UD that the treebanks follow.")  # fmt: skip
@click.option("--punct", is_flag=True, help="Punctuation is ordered, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def fit(
    treebanks: tuple[Path, ...],
    out: Path,
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
    """Fit a grammar to CoNLL-U files, by maximum likelihood with L2, and write it."""
    from derivlang.grammar import file
    from derivlang.grammar.build import Recipe, build
    from derivlang.grammar.families import UPOS
    from derivlang.grammar.treebank import check_version

    names = tuple(classes.split(","))
    wrong = [name for name in names if name not in ("N", "V", *UPOS)]
    if wrong:
        raise UsageError(
            f"{wrong[0]!r} is no head class", where="--classes", fix=f"N, V, {', '.join(UPOS)}", id="grammar-class"
        )
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", where="-o", id="missing-folder")
    families, n_sentences = _families(treebanks, punct)
    check_version(families, labels, str(treebanks[0]))
    kept = None if subtypes == "all" else () if subtypes == "none" else tuple(subtypes.split(","))
    held, _ = _families(dev, punct) if dev else (None, 0)
    about = {
        "treebanks": ", ".join(path.name for path in treebanks),
        "sentences": str(n_sentences),
        **({"licence": licence} if licence else {}),
    }
    strengths = (l2,) if l2 else None
    recipe = Recipe(out.name.partition(".")[0], language, names, kept, labels, punct, strengths, thin)
    grammar, chosen = build(recipe, families, held, about)
    file.write(grammar, out)
    result = {"out": str(out), **_summary(file.read(out))}
    result["l2"] = {name: settings.l2 for name, settings in chosen.items()}
    result["thin"] = {name: settings.thin for name, settings in chosen.items()}
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        heads = ", ".join(f"{name} {count:,}" for name, count in result["classes"].items())
        penalties = ", ".join(f"{name} {value:g}" for name, value in result["l2"].items())
        thinned = "".join(f"; {name} thinned {value:g}" for name, value in result["thin"].items() if value)
        click.echo(f"{out}: weights of {heads}; L2 {penalties}{thinned}; {out.stat().st_size:,} bytes")


@command.command("probs", no_args_is_help=True)
@click.option("--superstrate", required=True, help="The grammar: a name, a path, or an .orm file of one head class.")
@click.option("--substrate", help="Mix with this grammar.")
@click.option("--mix", type=click.FloatRange(0, 1), default=0.05, show_default=True, help="The substrate's share.")
@click.option("--head", help="UPOS of the head, as VERB.")
@click.option("--nodes", help='Labels in order: "NOUN&nsubj @VERB&@ NOUN&obj".')
@click.option("--nodes-file", type=click.Path(path_type=Path), help="A line a head: VERB, a tab, labels.")
@click.option("--labels", type=_LABELS, default="map", show_default=True,
              help="Take labels to each grammar's version of UD, or leave them.")  # fmt: skip
@click.option("--temperature", type=click.FloatRange(0, min_open=True), default=1.0, show_default=True,
              help="Above 1 flattens, below 1 sharpens.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line a head.")
def probs(
    superstrate: str,
    substrate: str | None,
    mix: float,
    head: str | None,
    nodes: str | None,
    nodes_file: Path | None,
    labels: Any,
    temperature: float,
    as_json: bool,
) -> None:
    """The exact probability of every order of a head and its dependents, in lexicographic order."""
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel

    if (nodes_file is None) == (nodes is None) or (nodes is None) != (head is None):
        raise UsageError("give --head and --nodes, or --nodes-file", where="grammar probs", id="missing-option")
    lines: Iterable[tuple[str, str, str]]
    lines = [("--nodes", head or "", nodes)] if nodes is not None else _lines(nodes_file)
    model = OrderModel(
        load_grammar(superstrate, where="--superstrate"),
        load_grammar(substrate, where="--substrate") if substrate else None,
        mix=mix,
        labels=labels,
        temperature=temperature,
    )
    for where, upos, text in lines:
        labels_ = _checked(text.split(), upos, where, known=labels == "map")
        orders, probabilities = model.distribution(labels_)
        if as_json:
            found = {"nodes": labels_, "orders": orders.tolist(), "probs": probabilities.tolist()}
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            for order, p in zip(orders.tolist(), probabilities.tolist(), strict=True):
                click.echo(f"{p:.6f}  {' '.join(labels_[i] for i in order)}")


def _lines(path: Path | None) -> list[tuple[str, str, str]]:
    from derivlang.core.errors import DataError
    from derivlang.formats.opening import open_lines

    assert path is not None
    out = []
    for number, line in open_lines(path):
        upos, tab, text = line.partition("\t")
        if not tab:
            raise DataError(
                f"{line!r} has no tab", where=f"{path}:{number}", fix="write VERB, a tab, the labels", id="nodes-line"
            )
        out.append((f"{path}:{number}", upos, text))
    return out


def _checked(labels: list[str], upos: str, where: str, *, known: bool) -> list[str]:
    """The labels, if they are one head of this UPOS and its dependents. known: relations must be those of UD."""
    from derivlang.grammar.families import UPOS
    from derivlang.grammar.labels import V1_RELATIONS, V2_RELATIONS

    if upos not in UPOS:
        raise UsageError(f"{upos!r} is no UPOS", where=where, fix=f"one of {', '.join(UPOS)}", id="not-a-upos")
    heads = [label for label in labels if label.startswith("@")]
    if heads != [f"@{upos}&@"]:
        found = "no head" if not heads else f"the heads {' '.join(heads)}"
        raise UsageError(f"there must be one head @{upos}&@, found {found}", where=where, id="family-head")
    for label in labels:
        tag, _, relation = label.removeprefix("@").partition("&")
        if tag not in UPOS:
            raise UsageError(f"{label!r}: {tag!r} is no UPOS", where=where, fix="write UPOS&deprel", id="not-a-upos")
        plain = relation.partition(":")[0]
        if not relation or (known and relation != "@" and plain not in V1_RELATIONS | V2_RELATIONS):
            raise UsageError(
                f"{label!r}: {relation!r} is no relation of UD version 1 or 2",
                where=where,
                fix="write UPOS&deprel, or pass --labels as-is",
                id="not-a-relation",
            )
    return labels


def _families(paths: Iterable[Path], punct: bool) -> tuple[Families, int]:
    """(families, sentences) of CoNLL-U files."""
    from derivlang.formats import conllu
    from derivlang.grammar.treebank import families_of_tables

    return families_of_tables((rows.table for path in paths for rows in conllu.read(path)), punct=punct)


def _summary(grammar: Grammar) -> dict[str, Any]:
    return {
        "name": grammar.name,
        "language": grammar.language,
        "labels": grammar.labels,
        "fingerprint": grammar.fingerprint,
        "classes": {name: len(weights) for name, weights in grammar.weights.items()},
        "about": dict(grammar.about),
    }


def _number(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else float(value)
