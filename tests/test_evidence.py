"""The tables and figures of the study pages, and the README's numbers, are computed from the scores beside them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.helpers import ROOT

WRITER: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "evidence"))
STUDIES: Path = WRITER["PAGES"]


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    found: dict[str, str] = WRITER["tables"]()
    return found


def test_the_tables_of_pages_are_up_to_date(tables: dict[str, str]) -> None:
    pages = {path.name: path.read_text("utf-8") for path in STUDIES.glob("*.md")}
    for name in tables:
        assert sum(f"<!-- table: {name} -->" in page for page in pages.values()) == 1
    for name, page in pages.items():
        assert WRITER["updated"](page, tables) == page, f"{name}: run python docs/evidence"


def test_a_changed_number_is_noticed(tables: dict[str, str]) -> None:
    page = (STUDIES / "align-mlm-tiny.md").read_text("utf-8")
    assert WRITER["updated"](page.replace("15.7", "16.7"), tables) != page.replace("15.7", "16.7")


def test_the_figures_of_pages_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the three formats of a figure, the one that pages have is drawn."""
    draw = Figure.savefig

    def savefig(figure: Figure, stream: Any, *, format: str, **options: Any) -> None:
        if format == "svg":
            draw(figure, stream, format=format, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    for name, content in WRITER["figures"]().items():
        assert (STUDIES / name).read_text("utf-8") == content, f"{name}: run python docs/evidence"


def test_readme_and_page_say_the_numbers_of_the_scores() -> None:
    for page, said in WRITER["statements"]().items():
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert [one for one in said if one not in text] == [], page
