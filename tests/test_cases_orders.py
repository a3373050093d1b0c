"""Orders of trees on the cases of strangers (`tests/cases/orders`), through commands, and a law over real treebanks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import make, rows, run, written
from tests.real import SHARED, needs_data

CASES = Path(__file__).parent / "cases" / "orders"


# Texts, parsed by the bundled parser.
TEXTS = [
    ("syn:ja", "Ayman al-Zawahiri spoke to us .", "Ayman al - Zawahiri us to spoke ."),
]


@pytest.mark.parametrize(("spec", "text", "right"), TEXTS)
def test_texts(spec: str, text: str, right: str) -> None:
    assert run("derive", text, "--t", spec).out == right + "\n"


def conllu(text: str) -> str:
    """A sentence of form/UPOS/relation/head words as CoNLL-U."""
    lines = []
    for number, word in enumerate(text.split(), 1):
        form, upos, relation, head = word.rsplit("/", 3)
        lines.append("\t".join([str(number), form, form.lower(), upos, "_", "_", head, relation, "_", "_"]))
    return "\n".join(lines) + "\n\n"


def derived(spec: str, source: Path, out: Path) -> str:
    """The first row of a file under a spec."""
    make(spec, source, out)
    return " ".join(rows(out, "train")[0]["tokens"])


# Trees that a parser may not find: spec, tree, derived words.
TREES = [
    # names, numbers and fixed expressions hold the marks between their words
    ("syn:ja", "We/PRON/nsubj/2 saw/VERB/root/0 Al/PROPN/obj/2 -/PUNCT/punct/5 Sadr/PROPN/flat/3", "We Al - Sadr saw"),
    (
        "syn:ja:mode=argmax",
        "We/PRON/nsubj/2 met/VERB/root/0 Abu/PROPN/obj/2 (/PUNCT/punct/5 Ali/PROPN/flat/3 )/PUNCT/punct/5",
        "We Abu ( Ali ) met",
    ),
    ("sov:ovs", "I/PRON/nsubj/2 saw/VERB/root/0 May/PROPN/obj/2 5/NUM/nummod/3 ,/PUNCT/punct/6 2005/NUM/nmod/4",
     "May 5 , 2005 saw I"),
    (
        "grammar:min-dl",
        "Kofi/PROPN/flat/3 ,/PUNCT/punct/3 Secretary/PROPN/nsubj/5 ,/PUNCT/punct/3 left/VERB/root/0",
        "left , Kofi , Secretary",
    ),
    # without them they are words and marks like others
    ("sov:ovs:freeze=none", "I/PRON/nsubj/2 saw/VERB/root/0 Al/PROPN/obj/2 -/PUNCT/punct/5 Sadr/PROPN/flat/3",
     "Al - Sadr saw I"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "tree", "right"), TREES)
def test_trees(spec: str, tree: str, right: str, tmp_path: Path) -> None:
    assert derived(spec, written(tmp_path / "a.conllu", conllu(tree)), tmp_path / "out") == right


@needs_data
@pytest.mark.parametrize(("spec", "bank"), [("syn:ja", "English-EWT"), ("grammar:random=1", "English-GUM")])
def test_names_stay_whole(spec: str, bank: str, tmp_path: Path) -> None:
    """Each flat or fixed expression, with all that stands in it and depends on it, is one piece in source order."""
    make(spec, f"pos:{bank}", tmp_path, "--data-dir", SHARED, "--splits", "train")
    with_marks = 0
    for row in rows(tmp_path, "train"):
        place = {word: at for at, word in enumerate(row["order"])}
        for span in expressions(row):
            at = [place[word] for word in span]
            assert at == list(range(at[0], at[0] + len(at))), " ".join(row["source"])
            with_marks += any(row["source"][word] in ("-", ",", "(", '"') for word in span)
    assert with_marks > 100


HEADLESS = ("flat", "fixed", "goeswith")


def expressions(row: dict[str, Any]) -> Iterator[list[int]]:
    """The source words from the first to the last of each expression, if all of them are below its head."""
    names = [relation.partition(":")[0] for relation in row["deprel"]]
    if not {*names} & {*HEADLESS}:
        return
    order = row["order"]
    up = {word: order[head - 1] if head else -1 for word, head in zip(order, row["head"], strict=True)}
    inner = {word for word, name in zip(order, names, strict=True) if name in HEADLESS}

    def top(word: int) -> int:
        return top(up[word]) if word in inner else word

    def under(word: int, above: int) -> bool:
        return word == above or (word >= 0 and under(up[word], above))

    for above in {top(word) for word in inner}:
        members = [word for word in up if top(word) == above]
        span = list(range(min(members), max(members) + 1))
        if all(under(word, above) for word in span):
            yield span
