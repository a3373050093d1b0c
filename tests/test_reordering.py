"""Statistics of reordering: against scipy, and against loops that say what they mean."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from derivlang.distance.measure import measure_set
from derivlang.distance.reordering import MEANINGS, Reordering, kendall_tau, table_of
from tests import commands
from tests.commands import make, run
from tests.helpers import rows


@given(st.integers(2, 40).flatmap(lambda n: st.permutations(range(n))))
def test_kendalls_tau_is_scipys(ranks: list[int]) -> None:
    expected = kendalltau(range(len(ranks)), ranks).statistic
    assert math.isclose(kendall_tau(ranks), expected, abs_tol=1e-12)


@pytest.mark.parametrize("spec", ["trans,inv", "perm", "syn:fr", "identity"])
def test_statistics_of_a_set_are_those_of_its_rows(spec: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(spec, "demo", out)
    found = measure_set(out, "train", 0)
    listed = rows(out, "train").to_pylist()
    orders = [row["order"] for row in listed]
    words = sum(map(len, orders))
    assert found["units"] == len(orders)
    assert found["source_words"] == found["derived_words"] == words
    moved = sum(i != j for order in orders for j, i in enumerate(order))
    assert found["moved_percent"] == pytest.approx(100 * moved / words)
    taus = [kendalltau(range(len(order)), order).statistic for order in orders if len(order) > 1]
    assert found["kendall_tau"] == pytest.approx(sum(taus) / len(taus))
    edges = [abs(head - j) for row in listed for j, head in enumerate(row["head"], start=1) if head]
    assert found["derived_dependency_length"] == pytest.approx(sum(edges) / len(edges))
    types = {word for row in listed for word in row["source"]}
    shared = sum(word in types for row in listed for word in row["tokens"])
    assert found["overlap_percent"] == pytest.approx(100 * shared / words)
    words = ("stats", out, "--split", "train", "--entropy-words", 0)
    printed = [line.split("  ")[0] for line in run(*words).out.splitlines()]
    assert [line for line in printed if line in MEANINGS.values()] == list(MEANINGS.values())
    assert found.items() <= run(*words, "--json").json.items()


def test_split_entities_are_those_that_make_counts(tmp_path: Path) -> None:
    result = make("inv", "demo", tmp_path / "out")
    split = sum(
        round(found["entities"] * found["entities_split_percent"] / 100)
        for found in (measure_set(tmp_path / "out", name, 0) for name in result["splits"])
        if found["entities"]
    )
    assert split == result["changed"]["ner_tags-split"]


def test_what_is_not_there_is_not_counted(tmp_path: Path) -> None:
    make("inv", commands.wiki(tmp_path), tmp_path / "out")
    found = measure_set(tmp_path / "out", None, 0)
    assert found["entities"] is None
    assert found["source_dependency_length"] is None
    assert "Entities" not in dict(table_of(found))
    assert all(value is None or value == 0 for value in Reordering().result().values())
