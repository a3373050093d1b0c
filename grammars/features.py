"""The word-order features of the shipped grammars: the language's own shares, and the shares of English under the grammar.

`build.py` measures them and writes them to docs/reference/word-order.md. English is UD English-GUM (test), from which nothing is
learnt. The language's own trees are its PUD treebank, else the test split that the grammar has not learnt from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kinds import KINDS, counts

from derivlang.formats import conllu
from derivlang.grammar.grammar import Grammar, load_grammar
from derivlang.grammar.order_model import OrderModel
from tools import word_order
from tools.word_order import FEATURES, FEWEST, OrderSample

ENGLISH = "English-GUM"
FAR = 15  # points; a feature further from the language is marked


@cache
def sample(data: Path, treebank: str) -> OrderSample:
    """The test split of a treebank."""
    return sample_of(_test_split(data, treebank))


def _test_split(data: Path, treebank: str) -> list[Path]:
    return sorted((data / "ud" / f"UD_{treebank}").glob("*-ud-test.conllu*"))


def sample_of(paths: Iterable[Path]) -> OrderSample:
    """The trees of some files."""
    return word_order.sample_of_tables(rows.table for path in paths for rows in conllu.read(path))


def own_treebank(name: str, sources: Iterable[str], test: str) -> str:
    """The treebank of a language's own shares."""
    return ENGLISH if name == "en" else next((source for source in sources if source.endswith("-PUD")), test)


def measure(grammar: Grammar, own: OrderSample, data: Path) -> dict[str, Any]:
    """By feature: number and share in the language's own trees, and the shares in English under the grammar.

    standardised: the share in the language if its contexts were as frequent as in English (`word_order.standardised`).
    """
    english = sample(data, ENGLISH)
    substrate = None if grammar.name == "en" else load_grammar("en")
    shares = {
        "own": word_order.observed(own),
        "english": word_order.observed(english),
        "sample": word_order.expected(OrderModel(grammar, substrate), english),
        "alone": word_order.expected(OrderModel(grammar), english),
    }
    out = {}
    for name in shares["own"]:
        row = {key: found[name][1] for key, found in shares.items()}
        row |= {"count": shares["own"][name][0], "english_count": shares["english"][name][0]}
        row["standardised"] = word_order.standardised(own, english, name)
        out[name] = {key: None if math.isnan(value) else value for key, value in row.items()}
    return out


def mean(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The features of several folds as one: counts added up, shares weighted by them."""
    out = {}
    for name in parts[0]:
        rows = [part[name] for part in parts if part[name]["count"]]
        total = sum(row["count"] for row in rows)
        row = {**parts[0][name], "count": total, "standardised": None}
        row |= {
            key: sum(r[key] * r["count"] for r in rows) / total if total else None for key in ("own", "sample", "alone")
        }
        out[name] = row
    return out


def distances(measured: Mapping[str, Any]) -> dict[str, float]:
    """By feature with enough dependents: how far English under the grammar is from the language, in points."""
    return {n: 100 * abs(row["own"] - row["sample"]) for n, row in measured.items() if row["count"] >= FEWEST}


def kinds_of(name: str, own: str, measured: Mapping[str, Any], data: Path) -> dict[str, Any]:
    """The kinds of dependents of far features, in the language's own treebank and in English."""
    far = [feature for feature, distance in distances(measured).items() if distance > FAR]
    return counts(name, far, _test_split(data, own), _test_split(data, ENGLISH))


def learnt(paths: Iterable[Path], measured: Mapping[str, Any]) -> dict[str, float]:
    """The shares of far features in the trees learnt from."""
    far = [name for name, distance in distances(measured).items() if distance > FAR]
    if not far:
        return {}
    found = word_order.observed(sample_of(paths))
    return {name: found[name][1] for name in far if found[name][0]}


def section(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The lines of docs/reference/word-order.md."""
    english = next(iter(figures.values()))["features"]
    others = [f["features"] for name, f in figures.items() if name != "en"]
    every = [d for measured in others for d in distances(measured).values()]
    far = sum(d > FAR for d in every)
    return [
        "## Ten features",
        "",
        f"Dependents before their head. English: UD_{ENGLISH} (test), from which no grammar was learnt. Language: its PUD",
        f"treebank, else the test split. A feature has a cell if the language has at least {FEWEST} such dependents.",
        f"On average, the two numbers of a cell differ by {_mean(every):.1f} points; {far} of {len(every)} differ by more than"
        f" {FAR}, in bold.",
        *_without_pud(figures),
        "",
        *_table(figures),
        "",
        *_why_far(figures),
        "| feature | atlas | dependent | head | in English |",
        "| --- | --- | --- | --- | ---: |",
        *(
            f"| {f.name} | {f.chapter or '–'} | {' or '.join(f.tags)}, `{f.relation}` | {' or '.join(f.heads) or 'all'}"
            f" | {_percent(english[f.name]['english'])} of {english[f.name]['english_count']:,} |"
            for f in FEATURES
        ),
        "",
        "A relative clause is an `acl:relcl`, and a demonstrative a `det` with `PronType=Dem`. A treebank that does not mark",
        "these has all its `acl` and `det` counted (Vietnamese has no demonstratives here). Not counted: pronouns as subject,",
        "object and genitive, clauses with a copula, other case markers than ADP, and infinitive markers.",
        "",
    ]


def _without_pud(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence on grammars that have not learnt from PUD."""
    known = [f for f in figures.values() if f.get("without PUD")]
    if not known:
        return []
    without, with_it = (
        _mean([d for f in known for d in distances(f[key]).values()]) for key in ("without PUD", "features")
    )
    return [
        f"Most grammars have learnt from PUD. Fitted without it, the {len(known)} grammars that can be have {without:.1f} points"
        f" in place of {with_it:.1f}."
    ]


def _why_far(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why some features are far."""
    far = [
        f"- `{name}`, {feature}: {KINDS[name, feature].why}"
        for name, f in figures.items()
        for feature, distance in distances(f["features"]).items()
        if distance > FAR and (name, feature) in KINDS
    ]
    return (
        ["The relations in bold have two kinds of dependents, of which English has more or fewer:", "", *far, ""]
        if far
        else []
    )


def _table(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [("grammar", *(feature.name for feature in FEATURES)), ("---",) * (len(FEATURES) + 1)]
    lines += [(f"`{name}`", *(_cell(f["features"][each.name]) for each in FEATURES)) for name, f in figures.items()]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(row: Mapping[str, Any]) -> str:
    if row["count"] < FEWEST:
        return "–"
    shares = f"{_percent(row['own'])} / {_percent(row['sample'])}"
    return f"**{shares}**" if 100 * abs(row["own"] - row["sample"]) > FAR else shares


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
