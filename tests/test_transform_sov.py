"""`sov`: published rows, and the rule held to plain lists on random trees."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from tests.real import needs_data
from tests.strategies import Annotated
from tests.test_syntax import batch_with, spec_words, tree
from tests.tree_orders import FREE, Family, derived, made_verified_and_undone, plain, plainly, trees

LUNCH = tree(
    "they/PRON/nsubj/2 say/VERB/root/0 the/DET/det/4 broker/NOUN/nsubj/5 took/VERB/ccomp/2 them/PRON/obj/5"
    " out/ADP/compound:prt/5 for/ADP/case/9 lunch/NOUN/obl/5 frequently/ADV/advmod/5"
)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ("sov:ovs", "them took out frequently the broker for lunch say they"),
        ("sov:sov", "they the broker them took out frequently for lunch say"),
        ("sov:vso", "say they took out frequently the broker them for lunch"),
    ],
)
def test_rows_of_rnn_typology(spec: str, wanted: str) -> None:
    assert spec_words(spec, batch_with(LUNCH)) == [wanted.split()]


def by_sov(order: str) -> Family:
    """The rule as it is published, with lists."""

    def arranged(found: Annotated, head: int, members: list[int]) -> list[int]:
        def group(word: int) -> str:
            name, form = plain(found, word), found.words[word].lower()
            if word == head or name in ("expl", "advmod", "aux") or found.relations[word] == "compound:prt":
                return "v"
            if name == "mark" and form == "to":
                return "v"
            if found.tags[word] in ("PRON", "DET") and (
                form == "who" or (form == "that" and found.relations[head] == "acl:relcl")
            ):
                return "-"
            return {"nsubj": "s", "csubj": "s", "obj": "o", "ccomp": "o", "xcomp": "o"}.get(name, "-")

        groups = {word: group(word) for word in members}
        if found.tags[head] in ("VERB", "AUX"):
            core = [word for letter in order for word in members if groups[word] == letter]
            others = [word for word in members if groups[word] == "-"]
            return [*(w for w in others if w < head), *core, *(w for w in others if w > head)]
        names = {word: plain(found, word) for word in members if word != head}
        copulas = [word for word in members if names.get(word) == "cop"]
        if not copulas or "aux" in names.values():
            return members
        subjects = [word for word in names if groups[word] == "s"]
        rest = [word for word in members if word not in subjects]
        at = rest.index(copulas[0]) + (order.index("s") > order.index("v"))
        return [*rest[:at], *subjects, *rest[at:]]

    return arranged


@pytest.mark.parametrize("order", ["ovs", "sov", "vso", "vos", "osv", "svo"])
def test_subject_object_and_verb(order: str) -> None:
    found = trees()
    assert derived(f"sov:{order}:{FREE}", found) == [plainly(one, by_sov(order)) for one in found]


def test_a_random_order_is_one_of_six_for_a_whole_sentence() -> None:
    found = trees()
    six = ["".join(order) for order in itertools.permutations("svo")]
    options = [{order: plainly(one, by_sov(order)) for order in six} for one in found]
    drawn = derived(f"sov:random:{FREE}", found)
    assert all(order in orders.values() for order, orders in zip(drawn, options, strict=True))
    assert derived(f"sov:random:seed=2:{FREE}", found) != drawn


def test_the_six_orders_are_drawn_alike() -> None:
    found = [tree(f"s{i}/X/nsubj/2 v/VERB/root/0 o/X/obj/2") for i in range(600)]
    drawn = Counter(tuple(order) for order in derived("sov:random", found))
    assert len(drawn) == 6
    assert all(65 <= number <= 135 for number in drawn.values())  # 3.8 standard deviations of 9.1


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "The/DET/det/2 cat/NOUN/nsubj/5 is/AUX/cop/5 very/ADV/advmod/5 black/ADJ/root/0 ./PUNCT/punct/5",
            "is The cat very black .",
        ),
        (
            "Ann/PROPN/nsubj/2 met/VERB/root/0 a/DET/det/4 man/NOUN/obj/2 who/PRON/nsubj/6 sells/VERB/acl:relcl/4"
            " books/NOUN/obj/6 !/PUNCT/punct/2",
            "a man who books sells met Ann !",
        ),
        ("They/PRON/nsubj/2 over/VERB/root/0 look/X/goeswith/2 it/PRON/obj/2", "it over look They"),
        ("He/PRON/nsubj/3 will/AUX/aux/3 come/VERB/root/0 today/ADV/advmod/3", "will come today He"),
    ],
)
def test_sentences_in_object_verb_subject_order(text: str, wanted: str) -> None:
    assert spec_words("sov:ovs", batch_with(tree(text))) == [wanted.split()]


@needs_data
@pytest.mark.parametrize(("spec", "treebank"), [("sov:random", "Arabic-PUD"), ("sov:ovs", "English-GUM")])
def test_a_treebank_is_made_verified_and_undone(spec: str, treebank: str, tmp_path: Path) -> None:
    made_verified_and_undone(spec, treebank, tmp_path)
