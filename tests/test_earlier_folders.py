"""Folders that commit d29ccca (version 0.2.0) made are found and used, or one message says what to do.

`earlier/d29ccca.tar.xz` was written by that commit, of 48 made-up sentences and 30 made-up trees:

    src/, trees.conllu, model.toml, study.toml     what the commands below read
    set, ordered, tok, twin, joint, dict.tsv, pairs.parquet, out.jsonl, own.grammar, run, longer, study

`longer` is a run of 200 steps that was stopped after some.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.commands import run, snapshot
from tests.study_calls import Here

ARCHIVE = Path(__file__).parent / "earlier" / "d29ccca.tar.xz"
WORDS = ("--words", "space")
PRETRAIN = ("pretrain", "--source", "src", *WORDS, "--t", "trans,inv", "--model", "model.toml",
            "--objective", "align-mlm", "--threads", 1)  # fmt: skip

# What the same command as then makes of a folder or a file. kept: it says so, and changes nothing.
KEPT = {
    "tok": ("tokenizer", "train", "src", "--vocab-size", 60, "--min-frequency", 1, *WORDS),
    "twin": ("tokenizer", "twin", "tok", "--t", "trans:overlap=25"),
    "joint": ("tokenizer", "twin", "tok", "--t", "trans", "--joint"),
}
ORDERED = ("make", "--t", "syn:own.grammar", "trees.conllu", "-o", "ordered")
WRITTEN_AGAIN = {
    "dict.tsv": ("dict", "--t", "trans", "src", *WORDS, "--coverage", 50, "--noise", 10, "--heldout", 20),
    "pairs.parquet": ("pair", "set", "--split", "train", "--rate", 50, "--format", "parquet"),
    "own.grammar": ("grammar", "fit", "trees.conllu"),  # which gets its recipe
}
# Another command in the same place: the difference that the refusal names.
REFUSED = {
    "set": (("make", "--t", "trans:overlap=50,inv", "src", *WORDS), "overlap=50"),
    "tok": (("tokenizer", "train", "src", "--vocab-size", 50, *WORDS), "vocab_size is 60, not 50"),
    "twin": (("tokenizer", "twin", "tok", "--t", "trans:script=greek"), "scripts is georgian, not greek"),
    "dict.tsv": (("dict", "--t", "trans", "src", *WORDS, "--coverage", 50), "heldout is 20, not 0"),
    "pairs.parquet": (("pair", "set", "--split", "train", "--format", "parquet"), "rate is 50, not 100"),
}


@pytest.fixture
def earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "earlier"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    shutil.copy(folder / "model.toml", tmp_path)  # a study's paths are relative to its folder
    monkeypatch.chdir(folder)
    return folder


def test_the_same_command_finds_what_it_made(earlier: Path) -> None:
    for name, command in KEPT.items():
        before = snapshot(earlier / name)
        assert "already complete" in run(*command, "-o", name).err
        assert snapshot(earlier / name) == before


def test_the_same_command_writes_the_same_file(earlier: Path) -> None:
    for name, command in WRITTEN_AGAIN.items():
        before = (earlier / name).read_bytes()
        run(*command, "-o", name)
        assert (earlier / name).read_bytes() == before


def test_another_command_is_refused_with_the_difference(earlier: Path) -> None:
    before = snapshot(earlier)
    for name, (command, told) in REFUSED.items():
        assert told in run(*command, "-o", name, code=1).err
    assert snapshot(earlier) == before


def test_a_set_gets_the_grammar_that_its_spec_names(earlier: Path) -> None:
    assert "no grammar file" in run("verify", "ordered", code=1).err
    (earlier / "ordered" / "files").mkdir()  # where a set has its grammar since then
    shutil.copy("own.grammar", earlier / "ordered" / "files")
    (problem,) = json.loads(run("verify", "ordered", "--json", code=1).out)["problems"]  # `syn` has another layout now
    assert problem["what"] == "the fingerprint does not match the spec, the lexicon and the rules of this version"
    run("undo", "ordered", "-o", "back.conllu")
    assert (earlier / "back.conllu").read_bytes() == (earlier / "trees.conllu").read_bytes()


def test_a_set_is_made_again_only_with_force(earlier: Path) -> None:
    """Its rules that belong to no transform are earlier ones (`OUTPUT_VERSION`), so that it is another set."""
    before = snapshot(earlier / "ordered")
    assert "or another version made it) [other-plan]" in run(*ORDERED, code=1).err
    assert snapshot(earlier / "ordered") == before
    run(*ORDERED, "--force")
    assert snapshot(earlier / "ordered" / "data") == {
        name.removeprefix("data/"): content for name, content in before.items() if name.startswith("data/")
    }
    assert "all 30 rows are right" in run("verify", "ordered").out


def test_a_set_is_verified_undone_and_exported(earlier: Path) -> None:
    assert "all 48 rows are right" in run("verify", "set").out
    run("undo", "set", "--split", "train", "-o", "back.txt")
    assert (earlier / "back.txt").read_bytes() == (earlier / "src" / "text.train.tokens").read_bytes()
    run("export", "set", "--split", "train", "-o", "again.jsonl")
    assert (earlier / "again.jsonl").read_bytes() == (earlier / "out.jsonl").read_bytes()
    assert "48" in run("grammar", "show", "own.grammar").out


def test_a_run_is_kept_checked_evaluated_and_reported(earlier: Path) -> None:
    pytest.importorskip("torch")
    model = snapshot(earlier / "run" / "model")
    kept = run(*PRETRAIN, "-o", "run", "--resume")
    assert "already complete" in kept.err
    assert "of an earlier version" in kept.err
    assert "nothing is wrong" in run("verify", "run").out
    run("evaluate", "run", "--measure", "alignment", "--threads", 1)
    assert snapshot(earlier / "run" / "model") == model
    assert "1 run" in run("report", "run", "-o", "report").out


def test_a_stopped_run_goes_on(earlier: Path) -> None:
    pytest.importorskip("torch")
    command = (*PRETRAIN, "--save-every", 5, "--log-every", 5, "-o", "longer", "--resume", "--steps")
    assert "steps is 200, not 12" in run(*command, 12, code=1).err
    log = earlier / "longer" / "log.jsonl"
    first = log.read_text("utf-8").splitlines()[0]  # of step 5, with its seconds; what came later is trained again
    assert "200 steps" in run(*command, 200).out
    assert log.read_text("utf-8").splitlines()[0] == first


def test_a_study_is_reported_again_and_foreign_files_stay(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("derivlang.studies.processes.Server", Here)
    foreign = [earlier / "study" / "report" / name for name in ("notes.txt", "figures/mine.png")]
    for path in foreign:
        path.write_text("mine")
    done = run("study", "study.toml", "-o", "study")
    assert "done" in done.err
    assert (earlier / "study" / "report" / "scores.parquet").exists()
    assert [path.read_text() for path in foreign] == ["mine", "mine"]
    assert "nothing is wrong" in run("verify", "study").out
