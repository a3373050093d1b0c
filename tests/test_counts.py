"""Counts of a run: every name that the package counts has a sentence, and stands in docs/formats.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

import pytest

from derivlang.cli.counts import sentence
from derivlang.core.layers import registry
from derivlang.core.layers.base import Layer
from tests.commands import ROOT

_LISTED = re.findall(r"^\| `([a-z_]+-[a-z-]+)` \|", (ROOT / "docs" / "formats.md").read_text("utf-8"), re.MULTILINE)
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
    one, many = (sentence(name, count, {"ner_tags"}) for count in (1, 2345))
    assert one.startswith("1 ")
    assert many.startswith("2,345 ")
    assert one[2:] != many[6:]
    assert not set("[]|{}") & set(one + many)


def test_columns_tell_entities_from_answers() -> None:
    assert sentence("tags-dropped", 2, {"tags"}) == (
        "2 entities of tags were left out, since the reordering splits them (--entities atomic keeps them whole)"
    )
    assert sentence("answers-dropped", 1, {"tags"}) == (
        "1 answer of answers was left out, since the reordering splits it (--answers atomic keeps it whole)"
    )


def test_a_count_of_a_plug_in_keeps_its_name() -> None:
    assert sentence("links-lost", 1234, ()) == "links-lost: 1,234"


def test_a_count_of_another_package_has_the_meaning_that_its_layer_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Layer):
        losses: ClassVar[Mapping[str, str]] = {"{}-lost": "references to words that were deleted"}

    assert sentence("refers-lost", 3, ()) == "refers-lost: 3"
    monkeypatch.setitem(registry._ADDED, "other", Other)
    assert sentence("refers-lost", 3, ()) == "3 references to words that were deleted (refers-lost)"
