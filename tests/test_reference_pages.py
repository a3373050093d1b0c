"""The pages of reference that are made when the site is built: whole; error ids are stable; headings of help pages."""

from __future__ import annotations

import re
import runpy
from typing import Any

import click
import pytest

from derivlang.cli.generated import grouped
from derivlang.core import errors
from derivlang.core.plugins import Registry
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.tasks.registry import TASKS
from derivlang.sources.generated.base import GENERATORS
from derivlang.training.objectives.registry import OBJECTIVES, find_objective, objective_names
from derivlang.transforms.registry import find_transform, transform_names
from tests.commands import run
from tests.helpers import ROOT
from tests.test_command_line import EVERY, NAMES, Words

PAGES: dict[str, Any] = {
    name: runpy.run_path(str(ROOT / "docs" / f"{name}.py")) for name in ("options", "specs", "errors")
}
FROZEN = (ROOT / "tests" / "error_ids.txt").read_text("utf-8").split()


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The text of each page: seconds of reading, which no other test shall wait for."""
    return {name: writer["page"]() for name, writer in PAGES.items()}


# Errors


def test_ids_are_stable(pages: dict[str, str]) -> None:
    """Scripts rely on ids, so none may be renamed or removed. A new one joins the list."""
    ids = re.findall(r"^\| `([^`]+)` \|", pages["errors"], re.MULTILINE)
    assert ids == FROZEN == sorted(set(FROZEN)), "write each id of the source into tests/error_ids.txt, by name"
    assert [id for id in ids if not re.fullmatch(r"[a-z]+(-[a-z0-9]+){0,3}", id) or len(id) > 30] == []
    for path in (ROOT / "derivlang").rglob("*.py"):  # by plain search, so that a call which the page misses is noticed
        assert set(re.findall(r'\bid="([^"{}]+)"', path.read_text("utf-8"))) <= set(ids), path


def test_the_example_is_a_message_of_the_package() -> None:
    bank = (ROOT / "derivlang" / "formats" / "conllu.py").read_text("utf-8")
    for text in (PAGES["errors"]["HEAD"], errors.__doc__ or ""):
        assert re.search(r"\[head-range]\n *(.*)\n", text)[1] in bank  # type: ignore[index]


def test_a_message_says_what_is_filled_in() -> None:
    found = PAGES["errors"]["messages"]()
    assert found["head-root"].text == "head {heads}, and no word of its sentence has head 0"
    assert found["unknown-scale"].text == "there is no scale {name}; did you mean {near}?"
    assert found["script"] == ("UsageError", "a worker process runs the script again, and would do all its work again")


# Options


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_the_page_has_every_option_of_a_command(words: Words, command: click.Command, pages: dict[str, str]) -> None:
    parts = re.split(rf"^## derivlang {' '.join(words)}$", pages["options"], flags=re.MULTILINE)
    section = parts[1].partition("\n## ")[0]
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


# Spec strings


@pytest.mark.parametrize(
    "kind",
    [
        *map(find_transform, transform_names()),
        *map(find_objective, objective_names()),
        *map(GENERATORS.find, GENERATORS.names()),
    ],
)
def test_the_page_has_every_parameter(kind: Any, pages: dict[str, str]) -> None:
    section = pages["specs"].split(f"\n### `{kind.name}`\n")[1].partition("\n##")[0]
    assert all(f"\n| `{one['name']}`" in section for one in kind.parameters())


# Objectives, tasks, measures


@pytest.mark.parametrize(
    ("page", "registry"), [("objectives", OBJECTIVES), ("evaluation", TASKS), ("evaluation", MEASURES)]
)
def test_a_page_has_a_row_for_each_name(page: str, registry: Registry[Any]) -> None:
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8")
    assert set(registry.built_in) <= set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE))
