"""The notes of code blocks: read by `docs/blocks.py`, and not seen by readers."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT

pytest.importorskip("mdit_py_plugins")  # of the extra `docs`

BLOCKS: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "blocks.py"))
PAGES = sorted({page for pattern in BLOCKS["PAGES"] for page in ROOT.glob(pattern) if "_build" not in page.parts})
FENCE = "```sh\ntrue\n```\n"


def notes(tmp_path: Path, text: str) -> list[set[str]]:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    return [set(block.notes) for block in BLOCKS["blocks_of"](page)]


@pytest.mark.parametrize("note", BLOCKS["NOTES"])
def test_a_note_belongs_to_the_block_above_it(note: str, tmp_path: Path) -> None:
    text = f"{FENCE}\n<!-- {note}: a reason,\nin two lines. -->\n\nText.\n\n{FENCE}\n"
    assert notes(tmp_path, text) == [{note}, set()]


@pytest.mark.parametrize("note", BLOCKS["NOTES"])
def test_a_note_on_the_page_belongs_to_every_block(note: str, tmp_path: Path) -> None:
    assert notes(tmp_path, f"<!-- {note} on this page: a reason. -->\n\n{FENCE}\nText.\n\n{FENCE}") == [{note}, {note}]


def test_a_block_has_several_notes(tmp_path: Path) -> None:
    text = f"{FENCE}\n" + "\n".join(f"<!-- {note}: a reason. -->\n" for note in BLOCKS["NOTES"])
    assert notes(tmp_path, text) == [set(BLOCKS["NOTES"])]


@pytest.mark.parametrize("comment", ["Not ran: a reason.", "Not run.", "not run: a reason.", "Not run: no full stop"])
def test_a_comment_below_a_block_that_is_no_note_is_a_fault(comment: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{FENCE}\n<!-- {comment} -->\n", "utf-8")
    (block,) = BLOCKS["blocks_of"](page)
    (fault,) = BLOCKS["faults"](block)
    assert comment in fault


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_readers_see_no_note(page: Path) -> None:
    """Neither in a paragraph nor in a cell of a table; the page that explains them has them in code."""
    shown = [
        child.content
        for token in BLOCKS["MarkdownIt"]().enable("table").parse(page.read_text("utf-8"))
        for child in token.children or ()
        if child.type == "text"
    ]
    seen = [text for text in shown for note in BLOCKS["NOTES"] if text.startswith((f"{note}:", f"{note} on this page"))]
    assert not seen
