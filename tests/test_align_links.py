"""Pharaoh links, their scores, and one set of links of two."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.align.links import Links, check_range, grow_diag_final_and, method, parse_lines, score, symmetrise
from derivlang.core.errors import DataError, UsageError

links_of_a_line = st.sets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=15)


def links(*lines: str) -> Links:
    return parse_lines(lines)


def text(found: Links) -> list[str]:
    return list(found.lines())


def of_sets(rows: list[set[tuple[int, int]]]) -> Links:
    return parse_lines(" ".join(f"{i}-{j}" for i, j in sorted(row)) for row in rows)


# format


@given(st.lists(st.lists(st.tuples(st.integers(0, 99_999), st.sampled_from("-p"), st.integers(0, 99_999)))))
def test_lines_read_back(rows: list[list[tuple[int, str, int]]]) -> None:
    lines = [" ".join(f"{i}{mark}{j}" for i, mark, j in row) for row in rows]
    assert text(parse_lines(lines)) == lines


def test_links_are_sorted_and_kept_once() -> None:
    found = Links.of(np.array([2, 0, 2, 2]), np.array([1, 5, 0, 1]), np.array([1, 0, 3, 1]), 4)
    assert text(found) == ["5-0", "", "0-3 1-1", ""]


@pytest.mark.parametrize("word", ["1", "1-", "-1", "1--2", "a-b", "1-2-3", "1s2", "١-٢", "1-2,", "9999999999-0"])
def test_a_malformed_link_is_named_with_its_line(word: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_lines(["0-0", f"1-1 {word}"], "x.pharaoh")
    assert (caught.value.id, caught.value.where) == ("link", "x.pharaoh:2")
    assert repr(word) in str(caught.value)


def test_links_lie_within_their_sentences() -> None:
    found = links("0-0 1-2", "3-0")
    check_range(found, np.array([2, 4]), np.array([3, 1]))
    check_range(found, None, np.array([3, 1]))
    for sizes, where in (((2, 3), (3, 1)), "x:2"), (((2, 4), (2, 1)), "x:1"):
        with pytest.raises(DataError) as caught:
            check_range(found, np.array(sizes[0]), np.array(sizes[1]), "x")
        assert (caught.value.id, caught.value.where) == ("link-range", where)
    with pytest.raises(DataError, match="lengths"):
        check_range(found, np.array([2]), None)


# scores


def test_a_score_by_hand() -> None:
    """A = {0-0, 1-1, 2-2, 3-3}, S = {0-0, 1-2}, P = S and {1-1, 2-1}: |A ∩ P| = 2, |A ∩ S| = 1."""
    found = score(links("0-0 1-1", "2-2 3-3"), links("0-0 1p1 1-2", "2p1"))
    assert found.precision == pytest.approx(2 / 4)
    assert found.recall == pytest.approx(1 / 2)
    assert found.f1 == pytest.approx(0.5)
    assert found.aer == pytest.approx(1 - (1 + 2) / (4 + 2))


def test_a_link_belongs_to_its_line() -> None:
    assert score(links("0-0", ""), links("", "0-0")).aer == 1.0


def test_nothing_to_find() -> None:
    assert asdict(score(links("", ""), links("", ""))) == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "aer": 0.0}
    assert score(links("0-0"), links("")).aer == 1.0
    assert score(links("0-0"), links("0p0")).aer == 0.0
    assert score(links(), links()).aer == 0.0


def test_links_given_twice_count_once() -> None:
    assert score(links("0-0 0-0 1p1"), links("0-0 0-0 1-1")).aer == 0.0


def test_scores_need_as_many_lines() -> None:
    with pytest.raises(DataError, match="lengths"):
        score(links("0-0"), links("0-0", ""))


@given(st.lists(st.tuples(links_of_a_line, links_of_a_line, links_of_a_line), max_size=6))
def test_scores_are_those_of_sets(rows: list[tuple[set[tuple[int, int]], ...]]) -> None:
    found = of_sets([row[0] for row in rows])
    gold = parse_lines(
        " ".join([*(f"{i}-{j}" for i, j in sure), *(f"{i}p{j}" for i, j in possible)]) for _, sure, possible in rows
    )
    size = sum(len(a) for a, _, _ in rows)
    n_sure = sum(len(s) for _, s, _ in rows)
    hits_sure = sum(len(a & s) for a, s, _ in rows)
    hits = sum(len(a & (s | p)) for a, s, p in rows)
    result = score(found, gold)
    assert result.precision == (hits / size if size else 1)
    assert result.recall == (hits_sure / n_sure if n_sure else 1)
    if size + n_sure:
        assert result.aer == pytest.approx(1 - (hits + hits_sure) / (size + n_sure))


# symmetrisation


def test_symmetrisation_by_hand() -> None:
    """0-0 and 3-3 are common; 1-1 touches 0-0; 5-6 touches nothing and its words are free; 0-5 has a linked word."""
    forward, backward = links("0-0 1-1 3-3 0-5"), links("0-0 3-3 5-6 3-4")
    assert text(symmetrise(forward, backward, "intersection")) == ["0-0 3-3"]
    assert text(symmetrise(forward, backward, "union")) == ["0-0 0-5 1-1 3-3 3-4 5-6"]
    assert text(symmetrise(forward, backward, "grow-diag-final-and")) == ["0-0 1-1 3-3 3-4 5-6"]


def test_growth_runs_along_a_chain_in_one_sweep() -> None:
    """From 0-0 grows 1-1, and at once from 1-1, before 3-2 is looked at, grows 2-1, which takes both words of 2-2."""
    assert grow_diag_final_and([(0, 0), (1, 1), (2, 1)], [(0, 0)]) == {(0, 0), (1, 1), (2, 1)}
    forward, backward = [(0, 0), (1, 1), (2, 1), (3, 2)], [(0, 0), (2, 2), (3, 2)]
    assert grow_diag_final_and(forward, backward) == {(0, 0), (1, 1), (2, 1), (3, 2)}


@given(st.lists(st.tuples(links_of_a_line, links_of_a_line), min_size=1, max_size=6))
def test_symmetrisations_lie_between_intersection_and_union(
    rows: list[tuple[set[tuple[int, int]], set[tuple[int, int]]]],
) -> None:
    forward, backward = (of_sets([row[k] for row in rows]) for k in (0, 1))
    both, either, grown = (
        [set(line.split()) for line in symmetrise(forward, backward, name).lines()]
        for name in ("intersection", "union", "grow-diag-final-and")
    )
    for (first, second), common, all_, between in zip(rows, both, either, grown, strict=True):
        assert common == {f"{i}-{j}" for i, j in first & second}
        assert all_ == {f"{i}-{j}" for i, j in first | second}
        assert common <= between <= all_
        found = {(int(i), int(j)) for i, j in (link.split("-") for link in between)}
        linked = {i for i, _ in found}, {j for _, j in found}
        for i, j in (first | second) - found:  # nothing is left out whose words are both free
            assert i in linked[0] or j in linked[1]


@pytest.mark.parametrize("name", ["growing", "posterior:", "posterior:x", "posterior:1", "union:0.3", "posterior:nan"])
def test_unknown_methods(name: str) -> None:
    with pytest.raises(UsageError, match="symmetrisation"):
        method(name)


def test_methods() -> None:
    assert method("posterior:0.45").threshold == 0.45
    assert method("posterior").threshold == 0.3
