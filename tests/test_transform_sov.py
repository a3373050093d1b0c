"""`sov`: published rows, and the rule held to plain lists on random trees."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from tests.published_rules import Token, sov
from tests.real import needs_data
from tests.strategies import Annotated
from tests.test_syntax import batch_with, spec_words, tree
from tests.tree_orders import FREE, derived, made_verified_and_undone, trees


def plainly(found: Annotated, order: str) -> list[int]:
    """The rule with lists."""
    rows = zip(found.words, found.tags, found.heads, found.relations, strict=True)
    return sov([Token(form, form, tag, "_", head - 1, relation) for form, tag, head, relation in rows], order)


@pytest.mark.parametrize("order", ["ovs", "sov", "vso", "vos", "osv", "svo"])
def test_subject_object_and_verb(order: str) -> None:
    found = trees("nsubj:outer", "csubj:outer", "advcl:relcl")
    assert derived(f"sov:{order}:{FREE}", found) == [plainly(one, order) for one in found]


def test_a_random_order_is_one_of_six_for_a_whole_sentence() -> None:
    found = trees("nsubj:outer", "csubj:outer", "advcl:relcl")
    six = ["".join(order) for order in itertools.permutations("svo")]
    options = [{order: plainly(one, order) for order in six} for one in found]
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
