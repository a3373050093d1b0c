"""Orders and hops of constituents on real text, against a second implementation: trees, words, entities and answers.

These are samples; `python -m tests.compared_constituents` compares eleven treebanks, three sets of entities and two of
answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import compared_constituents as compared
from tests.compared_constituents import ANSWERS, ENTITIES, HOPS, HOPS_OF_FEATURES, ORDERS, TREEBANKS, compare
from tests.real import needs_data

pytestmark = needs_data
SPECS = [*ORDERS, *HOPS]


@pytest.mark.parametrize(("name", "specs"), [(name, SPECS[n::5]) for n, name in enumerate(TREEBANKS)])
def test_treebanks(name: str, specs: list[str], tmp_path: Path) -> None:
    text, _ = compared.treebank(name, every=8, limit=30)
    for spec in specs:
        counts, wrong = compare(text, spec, tmp_path)
        assert not wrong, (spec, wrong[0])
        assert counts["rows"] == 30


def test_orders_change_treebanks(tmp_path: Path) -> None:
    """No order and no hop is compared on text that it leaves alone."""
    text, _ = compared.treebank("English-EWT", every=7, limit=90)
    for spec in SPECS:
        counts, wrong = compare(text, spec, tmp_path)
        assert counts["changed"], spec
        assert not wrong, (spec, wrong[0])


@pytest.mark.parametrize("spec", HOPS_OF_FEATURES)
def test_features_and_lemmas(spec: str, tmp_path: Path) -> None:
    counts, wrong = compare(compared.treebank("English-EWT", every=3, limit=200)[1], spec, tmp_path)
    assert not wrong, wrong[0]
    assert counts["changed"]


@pytest.mark.parametrize("language", ENTITIES)
@pytest.mark.parametrize("spec", [SPECS[6], *SPECS[-3:]])
def test_entities(language: str, spec: str, tmp_path: Path) -> None:
    counts, wrong = compare(compared.entities(language, every=50, limit=60), spec, tmp_path)
    assert not wrong, wrong[0]
    assert counts["changed"]


@pytest.mark.parametrize("language", ANSWERS)
@pytest.mark.parametrize("spec", [SPECS[6], *SPECS[-3:]])
def test_answers(language: str, spec: str, tmp_path: Path) -> None:
    counts, wrong = compare(compared.questions(language, every=60, limit=2), spec, tmp_path)
    assert not wrong, wrong[0]
    assert counts["changed"]
