"""Compare sets of constituents with the second implementation (`tests/reference_constituents.py`), row by row.

    python -m tests.compared_constituents --every 3        eleven treebanks, three sets of entities, two of answers

Trees are those of `tests/constituent_trees.py`. derivlang writes the sets and undoes them; pyarrow reads them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import reference_brackets as brackets
from tests import reference_constituents as reference
from tests.constituent_trees import Projector, by_rule, indented, on_a_line, projective, sentences_of, without_traces
from tests.helpers import make, manifest, undone
from tests.real import SHARED
from tests.reference_constituents import Row

MARKERS = {"Sing": "🅂", "Plur": "🄿"}
TREEBANKS = (
    "Arabic-PUD Chinese-GSDSimp English-EWT French-GSD German-PUD Hindi-PUD Italian-ParTUT Japanese-GSD Korean-PUD "
    "Turkish-PUD Vietnamese-VTB"
).split()
ENTITIES = ["en", "fr", "de"]
ANSWERS = ["en", "de"]
ORDERS = [
    *(f"switch:{'0' * n}1{'0' * (5 - n)}" for n in range(6)),
    "switch:111111",
    "switch:110010:final=move",
    "np:N-Num-A-D",
    "np:A-Num-N-D",
    "np:D-Num-N-A",
    "np:D-Num-N-A,switch:110010",
]
HOPS = ["hop:edge=VP:by=tags", "hop:edge=NP:by=tags", "hop:edge=VP:by=tags,switch:110010"]
HOPS_OF_FEATURES = ["hop:edge=VP", "hop:edge=S", "hop:edge=VP,switch:110010"]

Rows = list[dict[str, Any]]


# Sources


def treebank(name: str, every: int = 1, limit: int | None = None) -> tuple[str, Rows]:
    """Return a file of brackets, each tree in one of five layouts, and its rows as a table has them.

    every, limit: take each n-th sentence, and so many of these at most."""
    text, rows = [], []
    for path in sorted((SHARED / f"ud/UD_{name}").glob("*.conllu*")):
        for number, tokens in enumerate(sentences_of(path)):
            if len(rows) == limit:
                return "".join(text), rows
            if number % every or not projective(tokens):
                continue
            tree = Projector(tokens, flat=len(rows) % 2 == 0, traces=len(rows) % 3 == 0).tree()
            line = on_a_line(tree)
            escaped = re.sub(r"(?<!NONE- )([/*])", r"\\\1", line).replace("[", "-LSB-")
            layouts = [f"{line}\n", f"( {indented(tree)} )\n", f"(TOP {line})\n", f"{escaped}  ", f"({line})\n\n"]
            text.append(layouts[len(rows) % 5])
            feats = ["|".join(f"{a}={b}" for a, b in token.feats.items()) or "_" for token in tokens[1:]]
            parse = on_a_line(without_traces(tree) or [])
            words, lemmas = [token.form for token in tokens[1:]], [token.lemma for token in tokens[1:]]
            rows.append({"tokens": words, "lemmas": lemmas, "feats": feats, "parse": parse})
    return "".join(text), rows


def entities(language: str, every: int = 1, limit: int | None = None) -> Rows:
    """Return rows of WikiANN with trees by rule."""
    path = next((SHARED / "ner/wikiann" / language).glob("dev.tsv*"))
    data = path.read_bytes()
    blocks = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n\n")
    rows = []
    for block in blocks[::every][:limit]:
        pairs = [line.split("\t") for line in block.split("\n") if "\t" in line]
        words = [re.sub(r"\s", "_", word) for word, _ in pairs]
        if words:
            rows.append({"tokens": words, "ner_tags": [tag for _, tag in pairs], "parse": _by_rule(words)})
    return rows


def questions(language: str, every: int = 1, limit: int | None = None) -> Rows:
    """Return rows of XQuAD, their contexts as words with trees by rule.

    Words of English are divided at marks; those of other languages at spaces, so that answers end inside of words."""
    rows: Rows = []
    data = json.loads((SHARED / f"qa/xquad/xquad.{language}.json").read_text("utf-8"))["data"]
    paragraphs = [one for article in data for one in article["paragraphs"]]
    for paragraph in paragraphs[::every][:limit]:
        context = paragraph["context"]
        found = list(re.finditer(r"\w+|[^\w\s]" if language == "en" else r"\S+", context))
        words = [match.group() for match in found]
        begins = [sum(map(len, words[:n])) + n for n in range(len(words))]

        def moved(at: int, found: list[re.Match[str]] = found, begins: list[int] = begins) -> int:
            """The place of a character of the context in the words with one space between."""
            word = max(n for n, match in enumerate(found) if match.start() <= at)
            return begins[word] + min(at, found[word].end() - 1) - found[word].start()

        for question in paragraph["qas"]:
            spans = [(a["answer_start"], a["answer_start"] + len(a["text"])) for a in question["answers"]]
            places = [(moved(start), moved(end - 1) + 1) for start, end in spans]
            answers = {
                "text": [" ".join(words)[start:end] for start, end in places],
                "answer_start": [start for start, _ in places],
            }
            rows.append({"tokens": words, "id": question["id"], "answers": answers, "parse": _by_rule(words)})
    return rows


def _by_rule(words: list[str]) -> str:
    return " ".join(map(on_a_line, by_rule(words)))


def given_of(source: str | Rows) -> list[dict[str, Any]]:
    """Return words, numbered trees and labels of the rows of a file of brackets, or of a table."""
    if isinstance(source, str):
        found = [brackets.numbered(brackets.plain(tree)) for tree in brackets.read(source)]
        return [{"words": words, "trees": trees} for trees, words in found]
    trees = [brackets.numbered(brackets.written(row["parse"]))[0] for row in source]
    return [{**row, "words": row["tokens"], "trees": tree} for row, tree in zip(source, trees, strict=True)]


# Comparison


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a set, with tags as text."""
    kinds = {field["column"]: field for field in manifest(folder)["schema"]["fields"]}
    for path in sorted((folder / "data").iterdir()):
        for row in pq.read_table(path).to_pylist():
            if "ner_tags" in row:
                row["ner_tags"] = [kinds["ner_tags"]["classes"][tag] for tag in row["ner_tags"]]
            yield row


def verbs_of(row: Row, given: Mapping[str, Any], by: str) -> dict[int, tuple[str, str]]:
    """Return marker and form of the verbs of a row, by their places."""
    if by == "tags":
        above = reference.parents(row.trees)
        third = [at for at, chain in above.items() if chain and chain[-1] == ["VBZ", at]]
        return {at: (MARKERS["Sing"], row.words[at]) for at in third}
    out = {}
    for at, word in enumerate(row.order):
        feats = set(given["feats"][word].split("|")) if word >= 0 else set()
        number = [name for name in MARKERS if f"Number={name}" in feats]
        if {"Person=3", "Tense=Pres", "VerbForm=Fin"} <= feats and number:
            out[at] = (MARKERS[number[0]], given["lemmas"][word])
    return out


def expected(given: Mapping[str, Any], spec: str) -> Row:
    """Return the derived row by the definitions."""
    row = Row.of(given["words"], given["trees"])
    for part in spec.split(","):
        name, *values = part.split(":")
        options = dict(value.split("=") for value in values if "=" in value)
        if name == "switch":
            change, final = reference.switching(values[0]), options.get("final", "keep")
            row = reference.moved(row, change, final=final)
        elif name == "np":
            row = reference.moved(row, reference.sorting(values[0].split("-")))
        else:
            row = reference.hopped(row, options["edge"], verbs_of(row, given, options.get("by", "feats")))
    return row


def differences(derived: Mapping[str, Any], given: Mapping[str, Any], spec: str) -> dict[str, tuple[Any, Any]]:
    """Return (derivlang's, expected) of each column of a row that is not as the definitions have it.

    given: words, trees (numbered) and labels of the source's row."""
    words = given["words"]
    row = expected(given, spec)
    trees = brackets.named(reference.over_order(given["trees"], row.order), row.words)
    pairs = {
        "source": (derived["source"], words),
        "tokens": (derived["tokens"], row.words),
        "order": (derived["order"], row.order),
        "parse": (brackets.written(derived["parse"]), trees),
    }
    if "ner_tags" in given:
        found = reference.entities(given["ner_tags"])
        pairs["ner_tags"] = (derived["ner_tags"], reference.tags_of(found, row.order))
    if "answers" in given:
        pairs["answers"] = (derived["answers"], reference.answers_of(given["answers"], words, row))
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def compare(source: str | Rows, spec: str, folder: Path) -> tuple[Counter[str], list[Any]]:
    """Make a set, and return what was compared (rows, words, rows that the order changes) and all differences.

    A column that differs counts in its rows; so does `undo` that does not write the bytes of the file."""
    path = folder / ("source.mrg" if isinstance(source, str) else "source.jsonl")
    lines = source if isinstance(source, str) else "".join(_json(row) + "\n" for row in source)
    path.write_text(lines, "utf-8")
    out = make(spec, path, folder / "set", force=True)
    counts: Counter[str] = Counter()
    examples = []
    given = given_of(source)
    for number, (derived, one) in enumerate(zip(rows_of(out), given, strict=True)):
        found = differences(derived, one, spec)
        changed = derived["order"] != list(range(len(one["words"])))
        counts.update(found.keys(), rows=1, words=len(one["words"]), changed=changed)
        examples += [(number, found)] if found else []
    if undone(out, suffix=path.suffix) != path.read_bytes():
        examples.append(("undo", path.name))
    return counts, examples


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def sources(every: int) -> Iterator[tuple[str, str | Rows, list[str]]]:
    """Yield all sources with their specs."""
    for name in TREEBANKS:
        text, rows = treebank(name, every)
        yield name, text, [*ORDERS, *HOPS]
        if name == "English-EWT":
            yield f"{name} with features", rows, HOPS_OF_FEATURES
    for language in ENTITIES:
        yield f"entities {language}", entities(language, every), [*ORDERS, *HOPS]
    for language in ANSWERS:
        yield f"answers {language}", questions(language, every), [*ORDERS, *HOPS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take each n-th sentence or paragraph")
    total: Counter[str] = Counter()
    wrong = 0
    for name, source, specs in sources(parser.parse_args().every):
        for spec in specs:
            with tempfile.TemporaryDirectory() as folder:
                counts, examples = compare(source, spec, Path(folder))
            total.update(counts)
            wrong += len(examples)
            sys.stdout.write(f"{name:<26} {spec:<36} {dict(counts)} {examples[:1] or ''}\n")
    sys.stdout.write(f"{dict(total)}, {wrong} differences\n")


if __name__ == "__main__":
    main()
