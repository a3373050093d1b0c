"""The page of spec strings (docs/reference/specs.md): up to date, and whole."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from derivlang.sources.generated.registry import GENERATORS
from derivlang.training.objectives.registry import find_objective, objective_names
from derivlang.transforms.registry import find_transform, transform_names
from tests.helpers import ROOT

WRITER: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "specs.py"))
PAGE = (ROOT / "docs" / "reference" / "specs.md").read_text("utf-8")


def test_the_page_is_up_to_date() -> None:
    assert WRITER["page"]() == PAGE, "run: python docs/specs.py"


@pytest.mark.parametrize(
    "kind",
    [
        *map(find_transform, transform_names()),
        *map(find_objective, objective_names()),
        *map(GENERATORS.find, GENERATORS.names()),
    ],
)
def test_the_page_has_every_parameter(kind: Any) -> None:
    section = PAGE.split(f"\n### `{kind.name}`\n")[1].partition("\n##")[0]
    assert all(f"\n| `{one['name']}`" in section for one in kind.parameters())
