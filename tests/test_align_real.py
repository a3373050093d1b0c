"""Alignment error rates on real gold links and on derived pairs: ceilings a little above what was measured.

No gold link is used in training. Measured figures and those of other aligners: `docs/guide/align.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from derivlang.align.align import AlignOptions, align
from derivlang.align.links import parse_lines, score
from tests.commands import run
from tests.real import SHARED, needs_data

pytestmark = needs_data


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def aer(pair: str, options: AlignOptions) -> float:
    folder = SHARED / "align" / pair
    source, target = (lines(folder / f"test.{language}") for language in pair.split("-"))
    return 100 * score(align(source, target, options), parse_lines(lines(folder / "test.gold"))).aer


@pytest.mark.parametrize(
    ("pair", "hmm", "ibm2"),
    [("en-fr", 12, 21), ("de-en", 33, 43), ("ro-en", 38.5, 48), ("en-hi", 61.5, 66)],
)
def test_gold_sets(pair: str, hmm: float, ibm2: float) -> None:
    assert aer(pair, AlignOptions(lower=True)) < hmm
    assert aer(pair, AlignOptions("ibm2", lower=True)) < ibm2


def test_more_sentences() -> None:
    assert aer("en-cs", AlignOptions(lower=True)) < 34.1  # eflomal's, from the same sentences


@pytest.mark.parametrize(("spec", "most"), [("trans,inv", 0.3), ("trans,perm", 21), ("trans,syn:fr", 5)])
def test_derived_pairs(spec: str, most: float, tmp_path: Path) -> None:
    """Under perm, words that a sentence has twice can be told apart by nobody: they make most of the errors."""
    out = tmp_path / "out"
    run("make", "--t", spec, "wikitext2", "--splits", "valid", "--data-dir", SHARED, "--limit", "500", "-o", out)
    for name, options in (("a", ("text", "--source")), ("b", ("text",)), ("gold", ("pharaoh",))):
        run("export", out, "--format", *options, "-o", tmp_path / name)
    run("align", "train", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "found")
    found = run("align", "score", tmp_path / "found", tmp_path / "gold", "--json").json
    assert 100 * found["aer"] < most
