"""`derivlang align`: its contract, and bad input."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.commands import leftovers, run, written

ENGLISH = "The house is small\nA house\n\nthe small book\nthe book is small\n"
FRENCH = "la maison est petite\nune maison\nrien\nle petit livre\nle livre est petit\n"


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    return written(tmp_path / "en.txt", ENGLISH), written(tmp_path / "fr.txt", FRENCH)


@pytest.mark.parametrize("model", ["hmm", "ibm2"])
def test_train_and_score(model: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.pharaoh"
    told = run("align", "train", *texts, "-o", out, "--model", model, "--lower", "--json").json
    assert list(told) == ["out", "model", "symmetrise", "sentences", "links", "seconds"]
    assert (told["model"], told["sentences"]) == (model, 5)
    lines = out.read_text().split("\n")
    assert len(lines) == 6
    assert lines[2] == lines[5] == ""
    assert told["links"] == sum(len(line.split()) for line in lines)
    found = run("align", "score", out, out, "--json").json
    assert found == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "aer": 0.0}
    again = tmp_path / "again.pharaoh"
    run("align", "train", *texts, "-o", again, "--model", model, "--lower")
    assert again.read_bytes() == out.read_bytes()


def test_options_reach_the_aligner(texts: tuple[Path, Path], tmp_path: Path) -> None:
    def links(*options: str) -> set[str]:
        run("align", "train", *texts, "-o", tmp_path / "x", "--lower", "--force", *options)
        found = (tmp_path / "x").read_text().split("\n")
        return {f"{n}:{link}" for n, line in enumerate(found) for link in line.split()}

    both, either = links("--symmetrise", "intersection"), links("--symmetrise", "union")
    assert both <= links("--symmetrise", "grow-diag-final-and") <= either
    assert links("--symmetrise", "posterior:0.9") < links("--symmetrise", "posterior:0.01")
    assert links("--iterations", "1") != links("--iterations", "30", "--symmetrise", "posterior:0.01")


def test_output_to_stdout_and_figures_for_readers(texts: tuple[Path, Path], tmp_path: Path) -> None:
    gold = written(tmp_path / "gold", "0-0\n1p1\n")
    assert run("align", "score", gold, gold).out.splitlines() == [
        "precision  100.00 %", "recall     100.00 %", "f1         100.00 %", "aer          0.00 %",
    ]  # fmt: skip


def test_a_derived_set_is_scored_by_its_own_links(tmp_path: Path) -> None:
    words = ["red", "blue", "old", "new", "cat", "dog", "sun", "sea"]
    # no two words are in every sentence: place alone would have to tell them apart
    text = "".join(
        f"{'the' if a < b else 'a'} {a} {b} {'is' if b < c else 'was'} {c} .\n"
        for a, b, c in itertools.permutations(words, 3)
    )
    source = written(tmp_path / "a.tokens", text)
    run("make", "--t", "trans,inv", source, "-o", tmp_path / "out")
    for name, options in (("a", ("text", "--source")), ("b", ("text",)), ("gold", ("pharaoh",))):
        run("export", tmp_path / "out", "--format", *options, "-o", tmp_path / name)
    run("align", "train", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "found")
    texts = ("--source", tmp_path / "a", "--target", tmp_path / "b")
    assert run("align", "score", tmp_path / "found", tmp_path / "gold", *texts, "--json").json["aer"] < 0.01


# bad input


def fails(code: int, *arguments: object) -> str:
    return run("align", *arguments, code=code).err


@pytest.mark.parametrize(
    ("options", "id"),
    [
        (("--model", "hm"), "unknown-aligner"),
        (("--symmetrise", "grow"), "unknown-symmetrisation"),
        (("--symmetrise", "posterior:1.5"), "symmetrisation"),
        (("--symmetrise", "union:0.5"), "symmetrisation"),
        (("--encoding", "utf-9"), "unknown-encoding"),
        (("--model", "eflomal", "--symmetrise", "posterior:0.3"), "symmetrisation"),
    ],
)
def test_bad_options(options: tuple[str, ...], id: str, texts: tuple[Path, Path], tmp_path: Path) -> None:
    message = fails(2, "train", *texts, "-o", tmp_path / "out", *options)
    assert f"[{id}]" in message
    assert not (tmp_path / "out").exists()


def test_texts_of_different_length(texts: tuple[Path, Path], tmp_path: Path) -> None:
    short = written(tmp_path / "short", "un\n")
    message = fails(1, "train", texts[0], short, "-o", tmp_path / "out")
    assert f"{texts[0]}, {short}: the source has 5 lines, but the target has 1 [lengths]" in message
    assert not (tmp_path / "out").exists()
    assert leftovers(tmp_path) == []


def test_an_empty_side(texts: tuple[Path, Path], tmp_path: Path) -> None:
    message = fails(1, "train", texts[0], written(tmp_path / "none", "\n\n \n\n\n"), "-o", tmp_path / "out")
    assert "the target side has no words [empty-side]" in message
    assert not (tmp_path / "out").exists()


def test_missing_files(texts: tuple[Path, Path], tmp_path: Path) -> None:
    assert "[missing-file]" in fails(1, "train", texts[0], tmp_path / "fr.tx", "-o", tmp_path / "out")
    assert "[missing-file]" in fails(1, "score", tmp_path / "a", texts[0])
    assert "Traceback" not in fails(1, "train", *texts, "-o", tmp_path / "no" / "folder" / "out")


def test_an_older_file_stays_when_a_run_fails(texts: tuple[Path, Path], tmp_path: Path) -> None:
    out = written(tmp_path / "out", "0-0\n")
    fails(1, "train", texts[0], written(tmp_path / "short", "un\n"), "-o", out)
    assert out.read_text() == "0-0\n"


def test_bad_links(texts: tuple[Path, Path], tmp_path: Path) -> None:
    good = written(tmp_path / "good", "0-0\n\n\n\n0-0\n")
    bad = written(tmp_path / "bad", "0-0\n\n0_1\n\n\n")
    assert f"{bad}:3: '0_1' is not a link [link]" in fails(1, "score", bad, good)
    far = written(tmp_path / "far", "0-0\n0-2\n\n\n\n")
    assert f"{far}:2: the link 0-2 is to target word 2" in fails(1, "score", far, good, "--target", texts[1])
    few = written(tmp_path / "few", "0-0\n")
    assert f"{few}, {good}: 1 line of links, but 5 lines of gold links [lengths]" in fails(1, "score", few, good)
    assert "[lengths]" in fails(1, "score", few, few, "--source", texts[0])


# eflomal


def test_eflomal_missing(texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eflomal", None)
    message = fails(2, "train", *texts, "-o", tmp_path / "out", "--model", "eflomal")
    assert "eflomal is not installed [missing-package]" in message
    assert "pip install 'derivlang[align]'" in message
    assert not (tmp_path / "out").exists()


def test_eflomal_sees_numbers_for_words_and_no_empty_sentence(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    class Aligner:
        """Links the first words, and in one direction the second ones."""

        def __init__(self, n_iterations: tuple[int, ...] | None):
            assert n_iterations == (3, 3, 3)

        def align(self, source, target, links_filename_fwd: str, links_filename_rev: str) -> None:  # type: ignore[no-untyped-def]
            seen.extend([list(source), list(target)])
            Path(links_filename_fwd).write_text("0-0 1-1\n" * len(seen[0]))
            Path(links_filename_rev).write_text("0-0\n" * len(seen[0]))

    fake = ModuleType("eflomal")
    fake.Aligner = Aligner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "eflomal", fake)
    out = tmp_path / "out"
    options = ("--model", "eflomal", "--lower", "--iterations", "3")
    run("align", "train", *texts, "-o", out, "--force", *options, "--symmetrise", "intersection")
    assert out.read_text() == "0-0\n0-0\n\n0-0\n0-0\n"
    assert seen[0] == ["0 1 2 3\n", "4 1\n", "0 3 5\n", "0 5 2 3\n"]
    assert len(seen[1]) == 4
    run("align", "train", *texts, "-o", out, "--force", *options)
    assert out.read_text() == "0-0 1-1\n0-0 1-1\n\n0-0 1-1\n0-0 1-1\n"
