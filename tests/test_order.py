"""Order: composing then applying is applying in turn, with words inserted and deleted; the inverse undoes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import Int64, lengths_of, offsets_of
from derivlang.core.errors import LayerError
from derivlang.core.order import Order, contiguous_runs
from tests.strategies import gathered, laws, lists, seeds, some_order, some_sentences

rates = st.sampled_from([0.0, 0.0, 0.3, 0.9])


def words_of(sentences: Int64) -> list[str]:
    return [f"w{i}" for i in range(int(sentences[-1]))]


def marked(order: Order) -> dict[str, int]:
    """The source word that each inserted word marks, by the inserted word (distinct here)."""
    if order.inserted is None or order.anchors is None:
        return {}
    return dict(zip(order.inserted.to_pylist(), order.anchors.tolist(), strict=True))


@laws
@given(some_sentences(), seeds, seeds, rates, rates, rates, rates)
def test_then_is_applying_in_turn(
    sentences: Int64, one: int, two: int, in1: float, out1: float, in2: float, out2: float
) -> None:
    first = some_order(sentences, one, insert=in1, delete=out1, marker="+").check()
    second = some_order(first.sentences, two, insert=in2, delete=out2, marker="*").check()
    both = first.then(second).check()
    words = words_of(sentences)
    assert gathered(words, both) == gathered(gathered(words, first), second)
    assert both.sentences.tolist() == second.sentences.tolist()
    assert both.tails.tolist() == second.tails.tolist()
    assert both.n_source == first.n_source
    assert both.n_inserted == sum(word[0] in "+*" for word in gathered(words, both))
    assert both.n_deleted == len(words) - sum(word[0] == "w" for word in gathered(words, both))


@laws
@given(some_sentences(), seeds, seeds)
def test_marks_of_a_composition_are_source_words(sentences: Int64, one: int, two: int) -> None:
    first = some_order(sentences, one, insert=0.5, delete=0.2, marker="+")
    second = some_order(first.sentences, two, insert=0.5, delete=0.2, marker="*")
    of_first, of_second = marked(first), marked(second)
    derived = gathered(words_of(sentences), first)
    for name, mark in marked(first.then(second)).items():
        if name in of_first:
            assert mark == of_first[name]
        else:  # a mark on a mark marks what that one marks
            target = derived[of_second[name]]
            assert mark == of_first.get(target, int(target[1:]) if target[0] == "w" else -1)


@laws
@given(some_sentences(), seeds, seeds, seeds, rates)
def test_then_is_associative(sentences: Int64, one: int, two: int, three: int, rate: float) -> None:
    a = some_order(sentences, one, insert=rate, delete=rate, marker="+")
    b = some_order(a.sentences, two, insert=rate, delete=rate, marker="*")
    c = some_order(b.sentences, three, insert=rate, delete=rate, marker="#")
    left, right = a.then(b).then(c), a.then(b.then(c))
    assert left.index.tolist() == right.index.tolist()
    assert marked(left) == marked(right)
    assert gathered(words_of(sentences), left) == gathered(words_of(sentences), right)


@laws
@given(some_sentences(), seeds, rates)
def test_inverse_undoes_permutations_and_insertions(sentences: Int64, seed: int, insert: float) -> None:
    order = some_order(sentences, seed, insert=insert)
    tails = np.zeros(len(sentences) - 1, np.int32)
    back = order.invert(sentences, tails)
    assert gathered(gathered(words_of(sentences), order), back) == words_of(sentences)
    there_and_back = order.then(back)
    assert there_and_back.index.tolist() == list(range(order.n_source))
    assert there_and_back.sentences.tolist() == sentences.tolist()
    assert back.is_permutation == order.is_permutation == (order.n_inserted == 0)


@laws
@given(some_sentences(), seeds)
def test_a_deletion_has_no_inverse(sentences: Int64, seed: int) -> None:
    order = some_order(sentences, seed, delete=0.5)
    if order.n_deleted:
        assert not order.is_permutation
        with pytest.raises(LayerError, match="deleted"):
            order.invert(sentences, np.zeros(len(sentences) - 1, np.int32))


@laws
@given(some_sentences(), seeds, rates, rates)
def test_identity_is_neutral(sentences: Int64, seed: int, insert: float, delete: float) -> None:
    order = some_order(sentences, seed, insert=insert, delete=delete)
    tails = np.zeros(len(sentences) - 1, np.int32)
    for same in (
        Order.identity(sentences, tails).then(order),
        order.then(Order.identity(order.sentences, order.tails)),
    ):
        assert same.index.tolist() == order.index.tolist()
        assert same.sentences.tolist() == order.sentences.tolist()
        assert same.tails.tolist() == order.tails.tolist()
        assert marked(same) == marked(order)


@laws
@given(some_sentences(), seeds, rates, rates)
def test_places_are_the_way_of_each_word(sentences: Int64, seed: int, insert: float, delete: float) -> None:
    order = some_order(sentences, seed, insert=insert, delete=delete)
    derived = gathered(words_of(sentences), order)
    expected = [derived.index(word) if word in derived else -1 for word in words_of(sentences)]
    assert order.positions().tolist() == expected


@laws
@given(some_sentences(), st.data(), seeds, rates, rates)
def test_expanded_orders_move_groups_whole(
    sentences: Int64, data: st.DataObject, seed: int, insert: float, delete: float
) -> None:
    n = int(sentences[-1])  # groups
    sizes = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
    groups = offsets_of(sizes)
    order = some_order(sentences, seed, insert=insert, delete=delete)
    words = [f"w{i}" for i in range(int(groups[-1]))]
    spelled = [words[a:b] for a, b in zip(groups.tolist(), groups.tolist()[1:], strict=False)]
    expanded = order.expand(groups).check()
    rows = lists(gathered(spelled, order), order.sentences)
    expected = [[word for group in row for word in ([group] if isinstance(group, str) else group)] for row in rows]
    assert lists(gathered(words, expanded), expanded.sentences) == expected
    assert expanded.n_source == len(words)
    tails = [
        sum(1 if isinstance(g, str) else len(g) for g in row[len(row) - t :])
        for row, t in zip(rows, order.tails.tolist(), strict=True)
    ]
    assert expanded.tails.tolist() == tails
    first_words = {name: int(groups[mark]) for name, mark in marked(order).items()}
    assert marked(expanded) == first_words


@pytest.mark.parametrize(
    ("index", "n_source", "inserted"),
    [
        ([0, 1, 1], 3, 0),  # a word twice
        ([0, 1, 3], 3, 0),  # a word that is not there
        ([0, -2, 1], 3, 0),
        ([0, -1, 1], 3, 0),  # an insertion without its word
        ([0, 1, 2], 3, 1),  # a word without its insertion
        ([0, 1], 3, 0),  # offsets that do not fit: three places
    ],
)
def test_check_refuses_what_is_no_order(index: list[int], n_source: int, inserted: int) -> None:
    order = Order(
        np.array(index, np.int32),
        np.array([0, 3]),
        np.zeros(1, np.int32),
        n_source,
        pa.array(["+"] * inserted) if inserted else None,
        np.zeros(inserted, np.int32) if inserted else None,
    )
    with pytest.raises(LayerError, match=r"\[order\]"):
        order.check()


def test_orders_of_different_lengths_do_not_compose() -> None:
    a = Order.identity(np.array([0, 3]), np.zeros(1, np.int32))
    b = Order.identity(np.array([0, 2]), np.zeros(1, np.int32))
    with pytest.raises(LayerError):
        a.then(b)


def test_a_mark_that_a_later_step_deletes_is_gone() -> None:
    offsets, tails = np.array([0, 2]), np.zeros(1, np.int32)
    mark = Order(np.array([-1, 0, 1], np.int32), np.array([0, 3]), tails, 2, pa.array(["+"]), np.array([0], np.int32))
    unmark = Order(np.array([2, 1], np.int32), np.array([0, 2]), tails, 3)
    both = mark.then(unmark).check()
    assert gathered(["a", "b"], both) == ["b", "a"]
    assert (both.n_inserted, both.n_deleted, both.is_permutation) == (0, 0, True)
    assert gathered(["b", "a"], both.invert(offsets, tails)) == ["a", "b"]


@laws
@given(some_sentences(), seeds, rates, rates)
def test_runs_of_groups(sentences: Int64, seed: int, insert: float, delete: float) -> None:
    order = some_order(sentences, seed, insert=insert, delete=delete)
    groups = np.arange(order.n_source) // 3
    found = contiguous_runs(order, groups, np.arange(order.n_source), order.positions())
    kept = [i for i in order.index.tolist() if i >= 0]
    place = {word: j for j, word in enumerate(order.index.tolist()) if word >= 0}
    expected = []
    for group in sorted(set(groups.tolist())):
        mine = [rank for rank, word in enumerate(kept) if word // 3 == group]
        runs: list[list[int]] = []
        for rank in mine:
            if runs and runs[-1][-1] == rank - 1:
                runs[-1].append(rank)
            else:
                runs.append([rank])
        expected += [(group, place[kept[r[0]]], place[kept[r[-1]]] + 1, len(runs) == 1) for r in runs]
    assert list(zip(*(array.tolist() for array in found), strict=True)) == expected


def test_lengths_are_of_the_derived_sentences() -> None:
    order = some_order(np.array([0, 4, 4, 9]), 1, insert=0.5, delete=0.3)
    assert int(lengths_of(order.sentences).sum()) == order.n_derived == len(order.index)
