"""Drawing orders: the right distribution, and nothing that a draw should not depend on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from derivlang.core.keys import mix
from derivlang.grammar import exact, gibbs, order_model
from derivlang.grammar.families import Families
from derivlang.grammar.grammar import Grammar, load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.weights import Weights
from tests.grammars import Keyed, sizes, treebank
from tests.real import SHARED, needs_data

pytestmark = needs_data
HEADS = [
    "NOUN&nsubj @VERB&@ NOUN&obj",
    "NOUN&nsubj AUX&aux @VERB&@ NOUN&obl NOUN&obl",
    "DET&det ADJ&amod @NOUN&@ NOUN&nmod",
    "ADP&case DET&det ADJ&amod ADJ&amod @NOUN&@ VERB&acl:relcl",
    "PRON&nsubj ADV&advmod @VERB&@ NOUN&obj NOUN&obl ADV&advmod VERB&advcl",
    "SCONJ&mark NOUN&nsubj AUX&aux ADV&advmod @VERB&@ NOUN&obj NOUN&obl VERB&advcl",
]


@cache
def grammar(name: str) -> Grammar:
    return load_grammar(SHARED / "gd/models" / name if "/" in name else name)


def published(code: str = "GD_French/fr", **options) -> OrderModel:
    return OrderModel(grammar(code), grammar("GD_English/en"), **options)


def shipped(**options) -> OrderModel:
    return OrderModel(grammar("fr"), grammar("en"), **options)


def real(keys_from: int = 0) -> Families:
    """Some thousands of English families with keys like those of a corpus."""
    families = treebank("UD_English-EWT", "dev", False)
    keys = mix(np.arange(keys_from, keys_from + len(families), dtype=np.uint64))
    return Families(families.offsets, families.members, families.tokens, keys)


@pytest.mark.parametrize("make", [published, shipped])
@pytest.mark.parametrize("head", HEADS, ids=range(len(HEADS)))
def test_ten_thousand_draws_follow_the_distribution(make, head: str) -> None:
    """Chi-square at one in a million; orders expected fewer than five times are taken together."""
    scipy_stats = pytest.importorskip("scipy.stats")
    labels = head.split()
    model = make()
    orders, probabilities = model.distribution(labels)
    n = 10_000
    families = Families(np.arange(n + 1) * len(labels), np.tile(Families.of([labels]).members, n),
                        Families.of([labels]).tokens, mix(np.arange(n, dtype=np.uint64)))  # fmt: skip
    drawn = model.draw(families, Keyed()).reshape(n, -1)
    number = {tuple(order): i for i, order in enumerate(orders.tolist())}
    counts = np.bincount([number[tuple(order)] for order in drawn.tolist()], minlength=len(orders))
    often = probabilities * n >= 5
    seen = np.append(counts[often], counts[~often].sum())
    expected = np.append(probabilities[often], probabilities[~often].sum()) * n
    if expected[-1] < 5:
        seen, expected = seen[:-1], expected[:-1]
        expected *= seen.sum() / expected.sum()
    if len(seen) > 1:
        assert scipy_stats.chisquare(seen, expected).pvalue > 1e-6


@pytest.mark.parametrize("mode", ["sample", "argmax"])
def test_a_draw_depends_on_labels_and_key_alone(mode: str) -> None:
    families = real()
    whole = shipped(mode=mode).draw(families, Keyed())
    # one model for parts of any size, met in another order, with labels that it met with other keys
    model = shipped(mode=mode)
    model.draw(real(10**6), Keyed())
    rng = np.random.default_rng(0)
    for chosen in np.array_split(rng.permutation(len(families)), 7):
        part = families.take(chosen)
        drawn = model.draw(part, Keyed())
        for i, f in enumerate(chosen[:300]):
            assert (
                drawn[part.offsets[i] : part.offsets[i + 1]].tolist()
                == whole[families.offsets[f] : families.offsets[f + 1]].tolist()
            )
    # other numbers of the same labels
    tokens = tuple(reversed(families.tokens))
    members = (len(tokens) - 1 - families.members).astype(np.int32)
    again = Families(families.offsets, members, tokens, families.keys)
    assert (shipped(mode=mode).draw(again, Keyed()) == whole).all()


@pytest.mark.parametrize("mode", ["sample", "argmax"])
def test_how_many_are_drawn_at_once_changes_nothing(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    families = real()
    whole = shipped(mode=mode).draw(families, Keyed())
    model = shipped(mode=mode)
    parts = [model.draw(families.take(part), Keyed()) for part in np.array_split(np.arange(len(families)), 20)]
    assert (np.concatenate(parts) == whole).all()
    monkeypatch.setattr(order_model, "_AT_ONCE", 100)
    monkeypatch.setattr(exact, "_CHUNK", 1000)
    assert (shipped(mode=mode).draw(families, Keyed()) == whole).all()


def test_every_order_is_a_permutation_and_no_family_is_lost() -> None:
    families = treebank("UD_English-EWT", "dev", True)
    drawn = shipped().draw(families, Keyed())
    n = sizes(families)
    sums = np.add.reduceat(drawn.astype(np.int64), families.offsets[:-1])
    squares = np.add.reduceat(drawn.astype(np.int64) ** 2, families.offsets[:-1])
    assert (sums == n * (n - 1) // 2).all()
    assert (squares == (n - 1) * n * (2 * n - 1) // 6).all()


def test_heads_without_a_model_stay() -> None:
    families = real()
    model = OrderModel({"N": grammar("fr")})
    assert model.has_model("NOUN")
    assert model.has_model("@PROPN&@")
    assert not model.has_model("@VERB&@")
    drawn = model.draw(families, Keyed())
    places = np.arange(len(drawn)) - np.repeat(families.offsets[:-1], sizes(families))
    verbs = np.repeat(~model.modelled(families), sizes(families))
    assert (drawn[verbs] == places[verbs]).all()
    assert (drawn[~verbs] != places[~verbs]).any()
    assert model.draw(families.take(np.zeros(0, np.int64)), Keyed()).tolist() == []


@pytest.mark.parametrize("make", [published, shipped])
def test_argmax_is_the_most_probable_order(make) -> None:
    best = make(mode="argmax")
    for head in HEADS:
        labels = head.split()
        if len(labels) <= 7:
            orders, probabilities = best.distribution(labels)
            chosen = best.draw(Families.of([labels]), Keyed()).tolist()
            assert probabilities[orders.tolist().index(chosen)] >= probabilities.max() * (1 - 1e-5)


def test_argmax_keeps_ties_as_they_stand() -> None:
    best = shipped(mode="argmax")
    labels = "NOUN&obl NOUN&obl @VERB&@ NOUN&obl NOUN&obl".split()
    chosen = [i for i in best.draw(Families.of([labels]), Keyed()).tolist() if i != 2]
    assert chosen == [0, 1, 3, 4]
    unknown = "X&x INTJ&y @VERB&@ SYM&z".split()
    model = OrderModel(Grammar("", "", "v2", {"V": Weights.of({("PRE", ("NOUN",)): {"VERB": 1.0}}, 5)}), mode="argmax")
    assert model.draw(Families.of([unknown]), Keyed()).tolist() == [0, 1, 2, 3]  # no weights at all: nothing moves


def test_temperature_sharpens_and_flattens() -> None:
    labels = HEADS[4].split()
    top = [shipped(temperature=t).distribution(labels)[1].max() for t in (0.5, 1.0, 3.0)]
    assert top[0] > top[1] > top[2]


def precedence(drawn: np.ndarray) -> np.ndarray:
    """[n, n]: how often a stands before b."""
    place = drawn.argsort(axis=1)
    return (place[:, :, None] < place[:, None, :]).mean(axis=0)


def test_large_families_come_near_the_exact_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = HEADS[5].split()
    n = 500
    one = Families.of([labels])
    families = Families(
        np.arange(n + 1) * len(labels), np.tile(one.members, n), one.tokens, mix(np.arange(n, dtype=np.uint64))
    )
    exactly = precedence(shipped().draw(families, Keyed()).reshape(n, -1))
    monkeypatch.setattr(exact, "MOST_DEPENDENTS", 2)
    sampled = precedence(shipped().draw(families, Keyed()).reshape(n, -1))
    assert np.abs(sampled - exactly).max() < 0.15  # 4.7 standard errors of the difference
    best = shipped(mode="argmax").draw(one, Keyed()).tolist()
    monkeypatch.undo()
    assert best == shipped(mode="argmax").draw(one, Keyed()).tolist()


@pytest.mark.parametrize("n", [14, 15, 17, 100, 2000])
def test_a_head_with_many_dependents_is_ordered(n: int) -> None:
    """An enumeration of the 15! orders would not come to an end."""
    rng = np.random.default_rng(n)
    pool = "NOUN&nsubj NOUN&obj ADV&advmod NOUN&obl VERB&conj CCONJ&cc NOUN&conj".split()
    labels = [pool[i] for i in rng.integers(0, len(pool), n)]
    labels.insert(3, "@VERB&@")
    for mode in ("sample", "argmax"):
        model = shipped(mode=mode)
        drawn = model.draw(Families.of([labels]), Keyed()).tolist()
        assert sorted(drawn) == list(range(n + 1))
        assert drawn == shipped(mode=mode).draw(Families.of([labels, labels]), Keyed()).tolist()[: n + 1]
        other = model.draw(Families.of([labels]), Keyed("another")).tolist()
        assert (other == drawn) == (mode == "argmax")
    assert gibbs.n_sweeps(2000) == 1


def test_the_chance_of_an_order_is_known_up_to_14_dependents_of_every_class() -> None:
    heads = {"N": "NOUN", "V": "VERB", "ADJ": "ADJ", "ADV": "ADV", "AUX": "AUX", "NUM": "NUM"}
    assert [*shipped().classes] == [*heads]
    families = [[f"@{head}&@", *["NOUN&obl"] * n] for head in (*heads.values(), "X") for n in (1, 14, 15)]
    orders = np.concatenate([np.arange(len(labels), dtype=np.int32) for labels in families])
    one, most, more = shipped().log_probs(Families.of(families), orders).reshape(-1, 3).T
    assert ((one[:-1] < 0) & (most[:-1] < 0) & np.isnan(more[:-1])).all()
    assert (one[-1], most[-1], more[-1]) == (0, 0, 0)  # no model


@pytest.mark.parametrize("mode", ["sample", "argmax"])
def test_the_work_for_a_large_family_grows_with_its_size(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places that are looked at: the square of the size up to a bound, a multiple of it above."""
    looked = 0
    gaps = gibbs._gaps

    def counting(tables: Any, left: Any, right: Any, me: int) -> Any:
        nonlocal looked
        looked += len(left) + len(right) + 3
        return gaps(tables, left, right, me)

    monkeypatch.setattr(gibbs, "_gaps", counting)
    monkeypatch.setattr(gibbs, "MOST_TOGETHER", 100)
    monkeypatch.setattr(gibbs, "_MOST_STEPS", 100)
    work = {}
    for n in (100, 200, 400, 800):
        labels = [["NOUN&nsubj", "ADV&advmod", "NOUN&obl"][i % 3] for i in range(n)]
        labels.insert(n // 2, "@VERB&@")
        looked = 0
        drawn = shipped(mode=mode).draw(Families.of([labels]), Keyed()).tolist()
        assert sorted(drawn) == list(range(n + 1))
        work[n] = looked
    for n in (200, 400, 800):
        assert work[n] <= 1.1 * work[n // 2] * 2


def test_the_stretches_of_a_large_family_stand_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gibbs, "MOST_TOGETHER", 50)
    labels = [["NOUN&nsubj", "ADV&advmod", "NOUN&obl"][i % 3] for i in range(120)]
    labels.insert(70, "@VERB&@")
    drawn = shipped().draw(Families.of([labels]), Keyed()).tolist()
    head = drawn.index(70)
    for side in (drawn[:head], drawn[head + 1 :]):
        stretches = [(member - (member > 70)) // 50 for member in side]
        assert stretches == sorted(stretches)
        assert side != sorted(side)


def test_labels_that_no_model_knows_take_no_room() -> None:
    """A corpus may have any number of relations: those that the models cannot tell apart have one number."""
    model = shipped()
    families = Families.of([["NOUN&nsubj", "@VERB&@", f"NOUN&x{i}", f"NOUN&obl:y{i}"] for i in range(3000)])
    drawn = model.draw(families, Keyed())
    assert len(model._scores) < 20
    few = Families.of([["NOUN&nsubj", "@VERB&@", "NOUN&x", "NOUN&obl:y"]] * 3000)
    assert drawn.tolist() == shipped().draw(replace(few, keys=families.keys), Keyed()).tolist()
