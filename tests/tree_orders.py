"""Random trees, and plain layouts of them, for the tests of transforms that order heads and their subtrees."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from derivlang.pipeline import Pipeline
from tests.helpers import file_bytes, first_blocks, make, right, rows, undone
from tests.real import SHARED
from tests.strategies import Annotated, some_heads
from tests.test_syn_sources import every_word_keeps
from tests.test_syntax import batch_with

FREE = "freeze=none:punct=permute"
RELATIONS = [
    *["nsubj", "nsubj:pass", "csubj", "obj", "iobj", "obl", "obl:tmod", "expl", "ccomp", "xcomp", "advcl", "advmod"],
    *["aux", "aux:pass", "cop", "mark", "case", "cc", "conj", "compound:prt", "compound", "nummod", "appos", "flat"],
    *["nmod", "nmod", "nmod:poss", "case", "case", "obj", "det", "amod", "acl:relcl", "acl", "parataxis", "punct"],
]
FORMS = ["to", "of", "that", "who", "cat", "old", "sleeps", "in", "and", "is"]


@cache
def trees(*more: str) -> list[Annotated]:
    """Random trees of up to 13 words; function words have the tags and forms that the rules look for.

    more: relations beside RELATIONS.
    """
    rng = random.Random(7)
    out = []
    for _ in range(600):
        words = [rng.choice(FORMS) for _ in range(rng.randint(1, 13))]
        tags = [rng.choice(["VERB", "AUX", "PRON", "NOUN", "NOUN", "ADJ", "CCONJ"]) for _ in words]
        heads = some_heads(tags, rng)
        relations = ["root" if head == 0 else rng.choice([*RELATIONS, *more]) for head in heads]
        for place, head in enumerate(heads):
            if head and relations[head - 1] == "nmod" and rng.random() < 0.5:
                relations[place] = "case"
            if relations[place] == "case":
                tags[place], words[place] = rng.choice([("ADP", "of"), ("ADP", "in"), ("PART", "of")])
        out.append(Annotated(words, tags, heads, relations, []))
    return out


def derived(spec: str, found: Sequence[Annotated]) -> list[list[int]]:
    """The order of each tree, from 0."""
    batch = batch_with(*found)
    index = Pipeline.parse(spec).order(batch).index
    return [
        (index[begin:end] - begin).tolist() for begin, end in itertools.pairwise(batch.unit_words.tolist())
    ]  # a unit is a tree


Family = Callable[[Annotated, int, list[int]], list[int]]


def plainly(found: Annotated, arranged: Family) -> list[int]:
    """The words of a tree, from 0, with the family of each head in the order that a function gives it."""

    def under(head: int) -> list[int]:
        members = sorted([head, *children(found, head)])
        parts = [[member] if member == head else under(member) for member in arranged(found, head, members)]
        return list(itertools.chain.from_iterable(parts))

    return under(found.heads.index(0))


def children(found: Annotated, word: int) -> list[int]:
    return [child for child, head in enumerate(found.heads) if head == word + 1]


def plain(found: Annotated, word: int) -> str:
    return found.relations[word].partition(":")[0]


def made_verified_and_undone(spec: str, treebank: str, folder: Path) -> None:
    """Make a set of a part of a treebank: each word keeps its labels and governor, verify and undo are exact."""
    limit = 80
    out = make(spec, f"pos:{treebank}", folder / "out", data_dir=SHARED, limit=limit)
    plain = make("identity", f"pos:{treebank}", folder / "plain", data_dir=SHARED, limit=limit)
    right(out)
    every_word_keeps(
        rows(out, "test").to_pylist(), rows(plain, "test").to_pylist(), ("upos", "deprel", "lemmas", "feats", "xpos")
    )
    source = next((SHARED / "ud" / f"UD_{treebank}").glob("*-test.conllu*"))
    assert undone(out, "test") == first_blocks(file_bytes(source), limit)
