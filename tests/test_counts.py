"""Counts of a run: every name that the package counts has a sentence, and stands in docs/reference/counts.md."""

from __future__ import annotations

import re

import pytest

from derivlang.cli.options import sentence, templates_of
from derivlang.core.schema import Field
from tests.commands import ROOT

_LISTED = re.findall(
    r"^\| `([a-z_]+-[a-z-]+)` \|", (ROOT / "docs" / "reference" / "counts.md").read_text("utf-8"), re.MULTILINE
)
NAMES = [name for name in _LISTED if not name.endswith("-total")]  # totals are printed as a percentage
COUNTED = re.compile(r'counts\[f?"(?:\{[a-z.]+\})?([a-z-]+)"\]|how = "([a-z]+)" if .* else "([a-z]+)"')


def test_every_count_of_the_source_is_listed() -> None:
    found = set()
    for folder in ("core/layers", "syntax", "transforms"):
        for path in (ROOT / "derivlang" / folder).rglob("*.py"):
            for names in COUNTED.findall(path.read_text("utf-8")):
                found |= {name.removeprefix("-") for name in names if name}
    found -= {"total"}  # `entities` of the manifest has it
    assert {"mwt-dissolved", "split", "cut", "dropped", "widened", "trees-not-projective"} <= found
    assert all(any(listed == name or listed.endswith(f"-{name}") for listed in NAMES) for name in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_listed_count_has_a_sentence(name: str) -> None:
    kinds = {"ner_tags": "entities", "answers": "answers", "tree": "tree", "parse": "constituents"}
    templates = templates_of([Field(column, kind) for column, kind in kinds.items()])
    assert sentence(name, 2345, templates).startswith("2,345 ")


def test_a_column_is_counted_by_its_kind() -> None:
    templates = templates_of([Field("tags", "entities"), Field("cited", "answers")])
    assert sentence("tags-dropped", 2, templates) == (
        "2 entities of tags were left out, since the reordering splits them (--entities atomic keeps them whole)"
    )
    assert sentence("cited-dropped", 1, templates) == (
        "1 answer of cited was left out, since the reordering splits it (--answers atomic keeps it whole)"
    )


def test_a_count_without_a_sentence_keeps_its_name() -> None:
    assert sentence("links-lost", 1234, templates_of([])) == "links-lost: 1,234"
