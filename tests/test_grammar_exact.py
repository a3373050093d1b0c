"""Exact probabilities: against enumeration written out in `tests/grammars.py`, and against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from derivlang.core.errors import UsageError
from derivlang.core.keys import Draws
from derivlang.grammar import exact
from derivlang.grammar.enumerate_orders import Local
from derivlang.grammar.families import Families
from derivlang.grammar.grammar import Grammar, load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.scores import SameSize
from derivlang.grammar.weights import Weights
from tests.grammars import MODELS, old, plain_distribution, plain_weights, sizes, treebank
from tests.real import SHARED, needs_data

TREEBANKS = ("UD_English-EWT", "UD_French-GSD", "UD_German-GSD", "UD_Persian-Seraji", "UD_Irish-IDT", "UD_Turkish-BOUN")
PER_FILE = {2: 6, 3: 12, 4: 12, 5: 8, 6: 1}  # families of each size, for a seventh of the models of nouns and of verbs
FEW = {2: 2, 3: 6, 4: 4}  # for the others


def real_heads(number: int, head_class: str, wanted: dict[int, int]) -> list[list[str]]:
    """Some families of a treebank, another part of another treebank for each number, with v1 labels."""
    families = treebank(TREEBANKS[number % len(TREEBANKS)], "dev")
    heads = ("@VERB&@",) if head_class == "V" else ("@NOUN&@", "@PROPN&@", "@PRON&@")
    of_class = np.isin(families.members[families.head_places], [families.tokens.index(h) for h in heads])
    out = []
    for n, count in wanted.items():
        found = np.flatnonzero(of_class & (sizes(families) == n))
        out += [families.labels(int(found[(number * 131 + 17 * i) % len(found)])) for i in range(count)]
    return [[old(label) for label in family] for family in out]


@needs_data
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_a_published_model_gives_the_plain_distribution(path: Path) -> None:
    number = MODELS.index(path)
    name = path.name.partition(".")[0][-1]
    weights = plain_weights(path)
    model = OrderModel(load_grammar(path), labels="as-is")
    for labels in real_heads(number, name, FEW if number % 7 else PER_FILE):
        plain = plain_distribution(labels, (1.0, weights))
        orders, probabilities = model.distribution(labels)
        assert [tuple(order) for order in orders.tolist()] == list(plain)
        np.testing.assert_allclose(probabilities, list(plain.values()), atol=1e-9, rtol=0)


@needs_data
@pytest.mark.parametrize("name", ["N", "V"])
def test_seven_members_and_a_mixture(name: str) -> None:
    paths = [
        SHARED / f"gd/models/GD_{language}/{code}@{name}.orm.gz"
        for language, code in (("Irish", "ga"), ("English", "en"))
    ]
    ga, en = map(load_grammar, paths)
    mixture = [(0.95, plain_weights(paths[0])), (0.05, plain_weights(paths[1]))]
    for labels in real_heads(0, name, {7: 1, 5: 5, 3: 10}):
        plain = plain_distribution(labels, *mixture)
        _, probabilities = OrderModel(ga, en, labels="as-is").distribution(labels)
        np.testing.assert_allclose(probabilities, list(plain.values()), atol=1e-9, rtol=0)


def random_labels(n: int, seed: int) -> list[str]:
    """Labels of an English verb head, some of them equal."""
    rng = np.random.default_rng(seed)
    pool = (
        "NOUN&nsubj NOUN&obj ADV&advmod NOUN&obl NOUN&obl AUX&aux PRON&nsubj VERB&advcl SCONJ&mark PART&advmod".split()
    )
    labels = [pool[i] for i in rng.integers(0, len(pool), n - 1)]
    labels.insert(int(rng.integers(0, n)), "@VERB&@")
    return labels


def without_sequences(path: Path) -> Grammar:
    grammar = load_grammar(path)
    weights = {name: Weights(w.codes, w.pairs, {}) for name, w in grammar.weights.items()}
    return Grammar(grammar.name, "", "v1", weights)


@needs_data
@pytest.mark.parametrize("n", range(2, 10))
def test_the_programme_equals_enumeration(n: int) -> None:
    model = OrderModel(without_sequences(SHARED / "gd/models/GD_French/fr"), temperature=0.7)
    labels = random_labels(n, n)
    orders, probabilities = model.distribution(labels)
    some = np.unique(np.linspace(0, len(orders) - 1, 2000).astype(int))
    families = Families.of([labels] * len(some))
    found = model.log_probs(families, orders[some].astype(np.int32).reshape(-1))
    np.testing.assert_allclose(np.exp(found), probabilities[some], atol=1e-12, rtol=0)


@needs_data
def test_probabilities_near_underflow_are_computed_in_more_range() -> None:
    """At a temperature of 0.01 scores of published models reach thousands."""
    model = OrderModel(without_sequences(SHARED / "gd/models/GD_French/fr"), temperature=0.01)
    for seed in range(5):
        labels = random_labels(7, seed)
        orders, probabilities = model.distribution(labels)
        families = Families.of([labels] * len(orders))
        found = np.exp(model.log_probs(families, orders.astype(np.int32).reshape(-1)))
        np.testing.assert_allclose(found, probabilities, atol=1e-9, rtol=0)


@needs_data
def test_log_probabilities_with_sequences_are_those_of_the_distribution() -> None:
    model = OrderModel(load_grammar(SHARED / "gd/models/GD_English/en"))
    labels = random_labels(5, 3)
    orders, probabilities = model.distribution(labels)
    families = Families.of([labels] * len(orders))
    np.testing.assert_allclose(
        np.exp(model.log_probs(families, orders.astype(np.int32).reshape(-1))), probabilities, atol=1e-12, rtol=0
    )


def some_local(labels: list[str], seeds: range) -> Local:
    """The scores of families of shuffled labels."""
    scores = OrderModel(load_grammar("fr"), load_grammar("en"))._scores
    families = [[*np.random.default_rng(seed).permutation(labels).tolist(), "@VERB&@"] for seed in seeds]
    numbers = np.array([scores.numbers(tuple(family))[0] for family in families], np.int32).T
    classes = np.full(len(seeds), scores.class_names.index("V"), np.int32)
    return scores.local(SameSize(numbers, np.full(len(seeds), len(labels)), classes))


@pytest.mark.parametrize("d", [2, 5, 9, 10])
def test_logarithms_give_what_sums_give(d: int) -> None:
    pool = "NOUN&nsubj NOUN&obj ADV&advmod NOUN&obl AUX&aux PRON&nsubj VERB&advcl SCONJ&mark PART&advmod PUNCT&punct"
    local = some_local(pool.split()[:d], range(5))
    plain, logs = exact.chains(local), exact.chains(local, "logs")
    np.testing.assert_allclose(logs.log_z, plain.log_z, rtol=1e-12)
    np.testing.assert_allclose(np.exp(logs.splits - logs.total), plain.splits / plain.total, rtol=1e-9)
    rows, u = np.repeat(np.arange(5), 40), np.random.default_rng(d).random(200)
    assert (exact.draw(logs, rows, u) == exact.draw(plain, rows, u)).all()


@pytest.mark.parametrize("temperature", [0.01, 1e-4, 1e-6])
@pytest.mark.parametrize("n", [8, 13])
def test_draws_at_low_temperatures_are_the_most_probable_orders(n: int, temperature: float) -> None:
    """Sums of products underflow there, even those of extended precision."""
    pool = "NOUN&nsubj NOUN&obj ADV&advmod NOUN&obl AUX&aux PRON&iobj VERB&advcl SCONJ&mark PART&discourse ADJ&xcomp"
    labels = [*pool.split(), "VERB&ccomp", "PRON&expl"][: n - 1]
    families = Families.of([["@VERB&@", *np.random.default_rng(seed).permutation(labels)] for seed in range(4)])
    cold = OrderModel(load_grammar("fr"), load_grammar("en"), temperature=temperature)
    orders = cold.draw(families, Draws("cold"))
    assert (np.sort(orders.reshape(4, n), axis=1) == np.arange(n)).all()
    assert np.isfinite(cold.log_probs(families, orders)).all()
    if temperature < 1e-3:
        best = OrderModel(load_grammar("fr"), load_grammar("en"), mode="argmax")
        assert (best.draw(families, Draws("cold")) == orders).all()


def test_temperatures_that_no_scores_allow() -> None:
    with pytest.raises(UsageError, match="must be at least 1e-06"):
        OrderModel(load_grammar("fr"), temperature=1e-310)
