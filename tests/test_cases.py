"""Case files that were right from the beginning: what derivlang makes of them stays as it was (cases/freeze.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.freeze import GOLDENS, files, frozen

ROWS: list[dict[str, Any]] = [json.loads(line) for line in GOLDENS.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_of_a_case_nothing_has_changed(row: dict[str, Any]) -> None:
    assert frozen(row["file"]) == row


def test_every_case_is_tested() -> None:
    assert set(files()) <= {row["file"] for row in ROWS}
