"""The program that trains parsers with plain text: with words of the text, and as a student of another parser."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from derivlang.core.trees import first_fault
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.treebank import score
from derivlang.training.parser import arithmetic
from tests.helpers import ROOT
from tests.test_parsing_training import TINY, bank, fit, parser, write_treebank

torch = pytest.importorskip("torch", reason="training needs torch: pip install 'derivlang[train]'")
sys.path.insert(0, str(ROOT / "tools"))

from tools.train_parser import TextConfig, fit_student, fit_with_text, read_text, taught  # noqa: E402

TEXT = ("The big dog sees the house . A cat 's house is old . " * 3 + "\n= Houses =\n") * 8


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with arithmetic(1):
        yield


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(TEXT, "utf-8")
    return tmp_path / "a.txt"


def tiny(**changes: object) -> TextConfig:
    own = {name: getattr(TINY, name) for name in TINY.__slots__}
    return replace(TextConfig(**own, text_epochs=2, min_text_count=2), **changes)  # type: ignore[arg-type]


def test_a_tiny_run_learns_its_sentences_and_repeats_itself(text: Path, tmp_path: Path) -> None:
    plain, lines = read_text(text, "en"), []
    trained = fit_with_text(bank(), plain, tiny(epochs=200), lines.append)
    found = score(parser(trained, tmp_path / "one"), bank())
    assert found["UPOS"] == 100.0
    assert found["LAS"] >= 90.0  # learning to guess words first, it needs more steps
    assert "house" in trained.vocabulary
    assert any(line.startswith("text, step") for line in lines)
    few = [fit_with_text(bank(), plain, tiny(epochs=3, unseen=0.3), lines.append).weights for _ in range(2)]
    assert all(np.array_equal(few[0][name], few[1][name]) for name in few[0])


def test_a_student_learns_its_teachers_trees_with_its_words(text: Path, tmp_path: Path) -> None:
    teacher, plain = parser(fit(bank(), TINY), tmp_path / "teacher"), read_text(text, "en")
    config = replace(TINY, cell="light", epochs=12, width=7, arc=12, label=12, hidden=(12, 16))
    trained = fit_student(bank(), plain, teacher, config)
    small = parser(trained, tmp_path / "student")
    assert score(small, bank())["LAS"] == 100.0
    assert small.model.vocabulary == teacher.model.vocabulary
    for name in ("words", "pieces"):
        assert np.array_equal(small.model.matrices[name], teacher.model.matrices[name])
    data = taught(bank(), plain, teacher)
    assert data.n_sentences == 4 * bank().n_sentences + 6 * 8  # `= Houses =` is one word and left out
    assert first_fault(data.head, data.sentences) is None
    assert score(small, data)["LAS"] >= 95.0


def test_plain_text_is_cut_into_sentences_and_normalised_as_its_language(text: Path) -> None:
    plain = read_text(text, "en")
    words = plain.types.to_pylist()
    first = [words[code] for code in plain.words[: plain.sentences[1]]]
    assert first == "The big dog sees the house .".split()
    assert int(np.diff(plain.sentences).max()) == 7
    assert int(plain.sentences[-1]) == len(plain.words)
    text.write_text("de auto's zijn mooi .\n" + "a " * 150 + "\n", "utf-8")
    assert read_text(text, "nl").types.to_pylist()[:5] == ["de", "auto's", "zijn", "mooi", "."]
    assert read_text(text, "en").types.to_pylist()[1] == "auto"
    assert np.diff(read_text(text, "nl").sentences).tolist() == [5, 60, 60, 30]


@pytest.mark.slow
def test_the_program_trains_a_parser_and_its_student(text: Path, tmp_path: Path) -> None:
    write_treebank(tmp_path)
    for out, more in (("big", ()), ("small", ("--teacher", f"{tmp_path / 'big'}/"))):
        options = (tmp_path, "--text", text, "-o", tmp_path / out, "--epochs", "1", *more)
        subprocess.run([sys.executable, ROOT / "tools/train_parser.py", *options], check=True, capture_output=True)
    big, small = (ModelParser.load(tmp_path / out) for out in ("big", "small"))
    card = json.loads((tmp_path / "small" / "model.json").read_text("utf-8"))
    assert card["teacher"]["fingerprint"] == big.fingerprint
    assert list(card["trained_on"]) == ["xx_tiny-ud-train.conllu", "a.txt"]
    assert card["scores"]["xx_tiny-ud-dev.conllu"]["words"] == 52
    assert small.model.vocabulary == big.model.vocabulary
