"""The page of options (docs/reference/options.md): up to date, and whole; and the headings of help pages."""

from __future__ import annotations

import re
import runpy
from typing import Any

import click
import pytest

from derivlang.cli.headings import grouped
from tests.commands import run
from tests.helpers import ROOT
from tests.test_command_line import EVERY, NAMES, Words

WRITER: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "options.py"))
PAGE = (ROOT / "docs" / "reference" / "options.md").read_text("utf-8")


def test_the_page_is_up_to_date() -> None:
    assert WRITER["page"]() == PAGE, "run: python docs/options.py"


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_the_page_has_every_option_of_a_command(words: Words, command: click.Command) -> None:
    section = re.split(rf"^## derivlang {' '.join(words)}$", PAGE, flags=re.MULTILINE)[1].partition("\n## ")[0]
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in ("help", "quiet", "verbose"):
            assert re.search(rf"^\| `[^`]*{re.escape(option.opts[0])}\b[^`]*` \| [A-Z]", section, re.MULTILINE)


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_a_help_page_shows_every_option_once(words: Words, command: click.Command) -> None:
    text = run(*words, "--help-all" if getattr(command, "usual", ()) else "--help").out
    context = click.Context(command, help_option_names=["-h", "--help"])
    for heading, records in grouped(command, context).items():
        for spelling, _ in records:
            assert len(re.findall(rf"^  {re.escape(spelling)}(  |$)", text, re.MULTILINE)) == 1, (heading, spelling)


@pytest.mark.parametrize(("name", "flag"), [("make", "--help"), ("parse", "--help"), ("pretrain", "--help-all")])
def test_long_help_pages_have_headings(name: str, flag: str) -> None:
    text = run(name, flag).out
    sections = re.split(r"^([A-Z][A-Za-z, ]+):\n", text.partition("\nOptions:\n")[2], flags=re.MULTILINE)
    assert len(sections) >= 5
    assert all(section.count("\n  -") < 20 for section in sections)
