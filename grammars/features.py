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
from derivlang.grammar.grammar import Grammar
from derivlang.grammar.load import load_grammar
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


def distances(measured: Mapping[str, Any], key: str = "sample") -> dict[str, float]:
    """By feature with enough dependents: how far English under the grammar is from the language, in points."""
    return {n: 100 * abs(row["own"] - row[key]) for n, row in measured.items() if row["count"] >= FEWEST}


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
    alone = [d for measured in others for d in distances(measured, "alone").values()]
    far = sum(d > FAR for d in every)
    return [
        "## Ten features of word order",
        "",
        "Share of the dependents before their head, in %: in the language / in English trees under its grammar (sample), and",
        f"their distance in points; above {FAR} in bold. Of each feature with at least {FEWEST} dependents in the language.",
        f"The mean distance, English itself left out, is {_mean(every):.1f} points, without the 5 % of English"
        f" {_mean(alone):.1f}; {far} of {len(every)} are above {FAR}.",
        "",
        *_table(figures, "features"),
        "",
        "English itself: "
        + ", ".join(f"{n} {_percent(row['english'])} of {row['english_count']:,}" for n, row in english.items())
        + ".",
        "",
        *_without_pud(figures),
        *_why_far(figures),
        "### What is counted",
        "",
        f"English trees: UD_{ENGLISH} (test), which no grammar has learnt from. The language's trees: its PUD treebank, else",
        "the test split that its grammar has not learnt from. Written by `python grammars/build.py DATA --features`.",
        "",
        "The shipped grammars have learnt from all 1,000 sentences of a PUD treebank. Of the sentences learnt from they are: "
        + ", ".join(f"`{n}` {100_000 / f['sentences']:.0f} %" for n, f in figures.items() if "PUD" in f["treebanks"])
        + ".",
        "",
        "| feature | atlas | dependent | head |",
        "| --- | --- | --- | --- |",
        *(
            f"| {f.name} | {f.chapter or '–'} | {' or '.join(f.tags)}, `{f.relation}` | {' or '.join(f.heads) or 'all'} |"
            for f in FEATURES
        ),
        "",
        "Relative clauses are `acl:relcl`, and demonstratives `det` with `PronType=Dem`, of any UPOS; in a treebank that",
        "marks no such difference all `acl` and all `det` of the table are counted (Vietnamese: not the demonstratives, which",
        "are PRON and follow their noun). Left out are pronouns as subject, object and genitive, subjects and objects in",
        "copular clauses, case markers other than ADP (English 's, Chinese de) and infinitive markers.",
        "",
    ]


def _without_pud(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The same of grammars that have not learnt from PUD."""
    known = {name: f for name, f in figures.items() if f.get("without PUD")}
    if not known:
        return []
    every = [d for f in known.values() for d in distances(f["without PUD"]).values()]
    both = [d for f in known.values() for d in distances(f["features"]).values()]
    return [
        "### Without PUD",
        "",
        "The same for grammars that have not learnt from PUD: fitted without it, or, where there is nothing else, on four",
        "fifths of its heads, measured on the last fifth, for each fifth. The mean distance of these languages is"
        f" {_mean(every):.1f} points, with PUD {_mean(both):.1f}. All are fitted so that"
        " [relations meet](../guide/syntax.md#relations-that-two-languages-divide-differently).",
        "",
        *_table(known, "without PUD"),
        "",
    ]


def _why_far(figures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The far features with the reasons that numbers show."""
    far = [
        (name, feature, f["features"][feature], f)
        for name, f in figures.items()
        for feature, distance in distances(f["features"]).items()
        if distance > FAR
    ]
    if not far:
        return []
    rows = []
    for name, feature, row, f in far:
        shares = (row["own"], f["learnt"].get(feature), row["standardised"], row["alone"], row["sample"])
        rows.append(f"| `{name}` | {feature} | {' | '.join(map(_percent, shares))} |")
    with_kinds = [(name, feature, f["kinds"][feature]) for name, feature, _, f in far if feature in f.get("kinds", {})]
    return [
        f"### Further than {FAR} points",
        "",
        "Two things keep English away from the language's share. The treebanks learnt from may differ from the one that is",
        "compared. And English has other contexts: *in English contexts* is the language's own share if passive auxiliaries,",
        "and auxiliaries, subordinators and case markers beside the dependent, were as frequent as in English.",
        "",
        "| grammar | feature | language | trees learnt from | in English contexts | English, without mixing | English, sample |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *rows,
        "",
        *_kinds(with_kinds),
    ]


def _kinds(rows: list[tuple[str, str, dict[str, Any]]]) -> list[str]:
    """The kinds of dependents that explain far features."""
    if not rows:
        return []
    lines = []
    for name, feature, counted in rows:
        (many, before), (others, others_before) = counted["own"]["kind"], counted["own"]["others"]
        theirs, rest = counted["english"]["kind"][0], counted["english"]["others"][0]
        cells = (
            KINDS[name, feature].name,
            _of(many, many + others),
            _of(before, many),
            _of(others_before, others),
            _of(theirs, theirs + rest),
        )
        lines.append(f"| `{name}` | {feature} | {' | '.join(cells)} |")
    return [
        "One relation has kinds of dependents, each with its order, and English has more or fewer of a kind. Shares of the",
        "dependents that are of the kind, in the language's trees and in English trees, and shares before the head:",
        "",
        "| grammar | feature | kind | in the language | kind before the head | others before the head | in English |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *lines,
        "",
        *(f"- `{name}`, {feature}: {KINDS[name, feature].why}" for name, feature, _ in rows),
        "",
    ]


def _of(part: int, whole: int) -> str:
    return f"{_percent(part / whole if whole else None)} of {whole:,}"


def _table(figures: Mapping[str, Mapping[str, Any]], key: str) -> list[str]:
    header = ("grammar", *(feature.name for feature in FEATURES), "mean")
    lines = [header, ("---",) * len(header)]
    for name, f in figures.items():
        found = distances(f[key])
        cells = (_cell(f[key][each.name]) for each in FEATURES)
        lines.append((f"`{name}`", *cells, f"{_mean(found.values()):.1f}"))
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(row: Mapping[str, Any]) -> str:
    if row["count"] < FEWEST:
        return "–"
    distance = 100 * abs(row["own"] - row["sample"])
    said = f"**{distance:.1f}**" if distance > FAR else f"{distance:.1f}"
    return f"{_percent(row['own'])} / {_percent(row['sample'])}, {said}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
