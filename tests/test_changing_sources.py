"""Sources that change while a run reads them: the run stops and says so, and keeps nothing of what it read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import derivlang.engine.engines as engines
from derivlang.core.errors import DataError
from derivlang.engine import job as jobs
from derivlang.engine.batches import Source
from derivlang.engine.job import Job, ShardTask, run_task
from derivlang.formats.inspection import FileStamp, unchanged
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical import train as tokenizers
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.set_plan import Target
from tests import commands
from tests.commands import ROOT, make, run, shards, snapshot, wiki, written

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))
OTHER = TEXT.replace("words", "birds")
SHARD = ("--shard-tokens", 100)


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write(" One line more . \n")


def in_place(path: Path) -> None:
    """The same size, inode and time."""
    before = path.stat()
    with path.open("r+") as file:
        file.write(OTHER)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path) -> None:
    before = path.stat()
    path.with_name("fresh").write_text(OTHER)
    os.utime(path.with_name("fresh"), ns=(before.st_atime_ns, before.st_mtime_ns))
    path.with_name("fresh").replace(path)


def truncated(path: Path) -> None:
    os.truncate(path, 1000)


def gone(path: Path) -> None:
    path.unlink()


CHANGES = [append, in_place, replaced, truncated, gone]


def at_batch(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None], number: int) -> None:
    """Change something before the batch of this number is read, of all that the run reads."""
    read, count = jobs.batches, [0]

    def batches(*arguments: Any, **options: Any) -> Any:
        for batch in read(*arguments, **options):
            if count[0] == number:
                change()
            count[0] += 1
            yield batch

    monkeypatch.setattr(jobs, "batches", batches)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["between", "within"])
def test_a_changed_source_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], when: str
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    if when == "within":
        at_batch(monkeypatch, lambda: change(source), 2)
    else:
        done: list[str] = []

        def task_of(job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
            if len(done) == 2:
                change(source)
            done.append(task.name)
            return run_task(job, task, target)

        monkeypatch.setattr(engines, "run_task", task_of)
    ran = run("make", "--t", "trans,inv", source, "-o", out, *SHARD, code=1)
    assert str(source) in ran.err
    assert "[missing-file]" in ran.err if change is gone else "[source-changed]" in ran.err
    assert len(shards(out)) == 2
    assert not (out / "derivlang.json").exists()
    monkeypatch.undo()
    if change is not gone:
        make("trans,inv", source, out, *SHARD, "--force")
        assert run("verify", out).code == 0
        make("trans,inv", source, tmp_path / "plain", *SHARD)
        assert snapshot(out) == snapshot(tmp_path / "plain")


def test_a_touched_source_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between tasks another time, or another link to the file, is no other content."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"

    def task_of(job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
        os.utime(source)
        return run_task(job, task, target)

    monkeypatch.setattr(engines, "run_task", task_of)
    make("trans,inv", source, out, *SHARD)
    assert run("verify", out).code == 0


@pytest.mark.parametrize("change", [append, in_place])
def test_the_reference_of_a_lexicon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    """The train split, which is read for the lexicon alone."""
    wiki(tmp_path / "in", TEXT, "wiki.test.tokens")
    train, out = wiki(tmp_path / "in", TEXT, "wiki.train.tokens"), tmp_path / "out"
    command = ["make", "--t", "trans:overlap=50", tmp_path / "in", "--splits", "test", "-o", out, *SHARD]
    at_batch(monkeypatch, lambda: change(train), 0)
    ran = run(*command, code=1)
    assert "[source-changed]" in ran.err
    assert str(train) in ran.err
    assert not out.exists()
    monkeypatch.undo()

    def stop(job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
        if shards(out):
            raise KeyboardInterrupt
        return run_task(job, task, target)

    monkeypatch.setattr(engines, "run_task", stop)
    run(*command, code=130)
    monkeypatch.undo()
    append(train)  # another lexicon: a run that went on would mix two
    assert "[other-plan]" in run(*command, code=1).err


def test_a_derived_set_as_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("trans", wiki(tmp_path, TEXT), tmp_path / "set", *SHARD)
    first, second = shards(tmp_path / "set")[:2]
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    ran = run("make", "--t", "inv", tmp_path / "set", "-o", tmp_path / "out", code=1)
    assert str(first) in ran.err
    assert "[damaged]" in ran.err
    first.write_bytes(content)
    at_batch(monkeypatch, lambda: second.write_bytes(content), 1)
    ran = run("make", "--t", "inv", tmp_path / "set", "-o", tmp_path / "out", code=1)
    assert str(second) in ran.err
    assert "[source-changed]" in ran.err


def test_a_derived_set_whose_transforms_have_changed(tmp_path: Path) -> None:
    """A derived source is derived again: with another grammar, it would be another language."""
    grammar, out = tmp_path / "my.grammar.tsv", tmp_path / "out"
    grammar.write_bytes((ROOT / "grammars" / "fr.grammar.tsv").read_bytes())
    run("make", "--t", f"syn:{grammar}", "demo", "--splits", "test", "-o", tmp_path / "syn")
    (tmp_path / "syn" / "files" / grammar.name).write_bytes((ROOT / "grammars" / "ja.grammar.tsv").read_bytes())
    assert "[other-transforms]" in run("make", "--t", "inv", tmp_path / "syn", "-o", out, code=1).err
    run("make", "--t", "trans:overlap=50", "demo", "--splits", "test", "-o", tmp_path / "trans")
    lexicon = tmp_path / "trans" / "lexicon.tsv"
    lexicon.write_text(lexicon.read_text("utf-8").replace("changed", "kept", 1), "utf-8")
    assert "[other-transforms]" in run("make", "--t", "inv", tmp_path / "trans", "-o", out, code=1).err
    assert not out.exists()


def test_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = wiki(tmp_path, TEXT)
    dictionary = written(tmp_path / "d.txt", "words mots\nline ligne\n")
    before_fit(monkeypatch, lambda: written(dictionary, "words voiture\n"))
    ran = run("make", "--t", f"lex:{dictionary}", source, "-o", tmp_path / "out", code=1)
    assert "[source-changed]" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("when", ["planned", "read"])
@pytest.mark.parametrize("command", ["tokenizer", "dict"])
def test_tokenizers_and_dictionaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, when: str) -> None:
    """The recipe has the hash of the words that were counted, or nothing is written."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out.tsv"
    options = ["train", source, "--vocab-size", 60] if command == "tokenizer" else ["--t", "trans", source]
    if when == "read":
        at_batch(monkeypatch, lambda: append(source), 0)
    else:
        module = tokenizers if command == "tokenizer" else dictionaries
        count = module.vocabulary_of

        def changed(*arguments: Any, **more: Any) -> Any:
            append(source)
            return count(*arguments, **more)

        monkeypatch.setattr(module, "vocabulary_of", changed)
    ran = run(command, *options, "-o", out, code=1)
    assert str(source) in ran.err
    assert "[source-changed]" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_a_source_that_is_read_into_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are those that were hashed, also in a second reading."""
    path = wiki(tmp_path, TEXT)
    source = Source.open(Pipeline.parse("trans"), SourceRequest(str(path)))
    files = source.files(["test"])
    list(source.batches("test"))
    append(path)
    assert source.files(["test"]) == files
    for read in (lambda: list(source.batches("test")), source.vocabulary):
        with pytest.raises(DataError, match="changed while it was read"):
            read()
    source = Source.open(Pipeline.parse("trans"), SourceRequest(str(path)))
    at_batch(monkeypatch, lambda: append(path), 0)
    with pytest.raises(DataError, match="changed while it was read"):
        list(source.batches("test"))


def before_fit(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Change something before the lexicon is fitted."""
    from derivlang.engine import build as module

    fit = module._fit

    def changed(*arguments: Any) -> Job:
        change()
        return fit(*arguments)

    monkeypatch.setattr(module, "_fit", changed)


def test_what_is_seen_of_a_fresh_file_is_never_changed_in_the_same_tick(tmp_path: Path) -> None:
    """Rewritten at once, in place, with the size and time that it had."""
    file = written(tmp_path / "x", TEXT)
    for _ in range(20):
        written(file, TEXT)
        seen = FileStamp.of(file)
        in_place(file)
        with pytest.raises(DataError), unchanged({file: seen}):
            pass


@pytest.mark.parametrize("workers", [1, 2])
def test_labelled_sets_and_workers(tmp_path: Path, workers: int) -> None:
    for name in ("a.train.conllu", "b.train.conllu", "c.test.conllu"):
        commands.trees(tmp_path / "in", name=name)
    make("trans,inv", tmp_path / "in", tmp_path / "out", "--workers", workers)
    assert run("verify", tmp_path / "out").code == 0
