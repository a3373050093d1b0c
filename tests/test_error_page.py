"""The table of error ids (docs/reference/errors.md): up to date, whole, and no id vanishes."""

from __future__ import annotations

import re
import runpy
from typing import Any

import pytest

from derivlang.core import errors
from tests.helpers import ROOT

WRITER: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "errors.py"))
FROZEN = (ROOT / "tests" / "error_ids.txt").read_text("utf-8").split()


@pytest.fixture(scope="module")
def ids() -> set[str]:
    """Every id of the source: seconds of reading, which no other test shall wait for."""
    return {one.id for one in WRITER["errors"]()}


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "reference" / "errors.md").read_text("utf-8") == WRITER["page"](), (
        "run: python docs/errors.py"
    )


def test_the_example_is_a_message_of_the_package() -> None:
    fixes = {one.fix for one in WRITER["errors"]() if one.id == "head-range"}
    for text in (WRITER["HEAD"], errors.__doc__ or ""):
        assert re.search(r"\[head-range]\n *(.*)\n", text)[1] in fixes  # type: ignore[index]


def test_each_message_stands_beside_its_own_fix() -> None:
    """Constants, variables and messages that are handed on are written out."""
    pairs = {(one.message, one.fix) for one in WRITER["errors"]()}
    tree = "correct the tree, or leave out the sentence"
    assert ("word {number} has itself as head", tree) in pairs
    assert ("the word has itself as head", tree) in pairs
    columns = "write ten columns with single tabs between them, and _ for an empty value"
    assert ("the line has an empty FORM", columns) in pairs
    assert (
        "not a run: there is no run.json, here or in its subfolders",
        "name the folder of runs: {below} / make one: derivlang pretrain … -o RUN",
    ) in pairs


def test_ids_are_stable(ids: set[str]) -> None:
    """An id is a promise to scripts: one that is renamed or removed breaks them; a new one joins the list."""
    assert sorted(set(FROZEN) - ids) == [], "an id vanished"
    assert sorted(ids - set(FROZEN)) == [], "add these to tests/error_ids.txt"
    assert sorted(set(FROZEN)) == FROZEN


def test_every_id_of_the_source_is_in_the_page(ids: set[str]) -> None:
    """By plain search, so that a call which the writer does not understand is noticed."""
    for path in (ROOT / "derivlang").rglob("*.py"):
        for id in re.findall(r'\bid="([^"{}]+)"', path.read_text("utf-8")):
            assert id in ids, f"{path}: {id}"


def test_an_id_is_short_and_plain(ids: set[str]) -> None:
    assert [id for id in ids if not re.fullmatch(r"[a-z]+(-[a-z0-9]+){0,3}", id) or len(id) > 30] == []
