"""Folders that are named by what they are made of, and what changes the names of a run's data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from derivlang.core.errors import DataError, StoreError
from derivlang.core.settings import declared
from derivlang.sources.request import SourceRequest
from derivlang.store import made_of
from derivlang.store.made_of import RECIPE, checked, faults, known, made, recipe_of
from tests.commands import command_line, environment, run, snapshot, written

RECIPES: list[dict[str, Any]] = [{"size": 3, "of": ["a", None]}, {"size": 4, "of": ["a", None]}, {}]


def write(folder: Path) -> None:
    written(folder / "a.txt", "some text\n")
    written(folder / "inside" / "b.bin", b"\0\1\2")


def test_each_recipe_has_a_folder_that_is_made_once(tmp_path: Path) -> None:
    folders = [made(tmp_path / "home", "kind", recipe, write) for recipe in RECIPES]
    assert len(set(folders)) == len(RECIPES)
    for folder, recipe in zip(folders, RECIPES, strict=True):
        assert made(tmp_path / "home", "kind", recipe, lambda fresh: pytest.fail("it is there")) == folder
        assert recipe_of(folder) == recipe
        assert list(known(tmp_path / "home", "kind", recipe or {"size": 5})) == ([folder] if recipe else [])
        assert snapshot(folder).keys() == {"a.txt", "inside/b.bin", RECIPE}
    assert made(tmp_path / "home", "other", RECIPES[0], write) not in folders
    assert len(list((tmp_path / "home").iterdir())) == 4


def test_nothing_is_left_of_what_fails_or_changes_meanwhile(tmp_path: Path) -> None:
    def fails(*folder: Path) -> None:
        raise DataError("changed")

    for ways in ((fails, lambda: None), (write, fails)):
        with pytest.raises(DataError, match="changed"):
            made(tmp_path / "home", "kind", {}, *ways)
        assert not (tmp_path / "home").exists() or not any((tmp_path / "home").iterdir())


def test_one_process_makes_it_and_the_others_wait(tmp_path: Path) -> None:
    calls, begin = list[Path](), Barrier(3)

    def slow(folder: Path) -> None:
        calls.append(folder)
        time.sleep(0.3)
        write(folder)

    def make() -> None:
        begin.wait()
        made(tmp_path, "kind", {}, slow)

    threads = [Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, pathlib; from derivlang.store.made_of import made\n"
        "write = lambda fresh: (fresh / 'a').write_text('x') and os.kill(os.getpid(), 9)\n"
        "made(pathlib.Path('home'), 'kind', {}, write)"
    )
    subprocess.run([command_line()[0], "-c", program], cwd=tmp_path, env=environment(), check=False)
    assert [path.name.startswith(".kind-") for path in (tmp_path / "home").iterdir()] == [True] * 3  # locks and a stage
    folder = made(tmp_path / "home", "kind", {}, write)
    assert list((tmp_path / "home").iterdir()) == [folder]
    assert "a" not in snapshot(folder)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda at: (at / "a.txt").unlink(), r"a\.txt: is missing or was cut off"),
        (lambda at: (at / "a.txt").write_text("some"), r"a\.txt: is missing or was cut off"),
        (lambda at: (at / "inside" / "b.bin").write_bytes(b"\0\1\3"), r"b\.bin: was changed"),
        (lambda at: (at / RECIPE).unlink(), r"made-of\.json: cannot be read"),
        (lambda at: (at / RECIPE).write_text("{}"), r"made-of\.json: this is not a valid recipe"),
        (lambda at: shutil.copy(at.parent / "other" / RECIPE, at), "the folder has the name of another recipe"),
    ],
)
def test_what_was_changed_is_refused_with_its_file(damage: Callable[[Path], Any], told: str, tmp_path: Path) -> None:
    folder = made(tmp_path, "kind", {"size": 3}, write)
    made(tmp_path, "kind", {"size": 4}, write).rename(tmp_path / "other")
    damage(folder)
    with pytest.raises(StoreError, match=told) as error:
        made(tmp_path, "kind", {"size": 3}, write)
    assert "remove its folder" in str(error.value)


def test_content_is_read_where_the_time_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder as it was written is not read, but a copy is; `faults` reads all."""
    folder = made(tmp_path, "kind", {}, write)
    read: list[str] = []
    of_file = made_of.file_hash
    monkeypatch.setattr(made_of, "file_hash", lambda path: read.append(path.name) or of_file(path))
    checked(folder)
    assert read == []
    (tmp_path / "copy").mkdir()
    copy = Path(shutil.copytree(folder, tmp_path / "copy" / folder.name, copy_function=shutil.copyfile))
    checked(copy)
    assert sorted(read) == ["a.txt", "b.bin"]
    stat = (folder / "a.txt").stat()
    (folder / "a.txt").write_text("SOME text\n")
    os.utime(folder / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    checked(folder)
    assert list(faults(folder)) == [("a.txt", "was changed")]


# What changes the names of a run's data

TEXT = "the cat sat on a mat , and a dog saw it .\nwho was it ? nobody knew .\n" * 30
OTHER = TEXT.replace("cat", "hen").replace("nobody", "somebody").replace("who", "what")
# Settings that the data depends on -> another value than that of the test.
OF_DATA: dict[str, Any] = {
    "spec": "trans,perm", "vocab_size": 48, "seq_len": 24, "packing": "stream", "limit": 3, "tokenizer_for": "both",
    "dict_coverage": "50", "dict_by": "frequency", "dict_seed": 2, "derived_source": "other.txt",
    "language": ("en=text:a.txt", "la=t:trans,inv", "own=t:inv ids:own"),
}  # fmt: skip


def names(**changes: Any) -> frozenset[str]:
    """The folders of data of a run on a.txt."""
    from derivlang.training.prepare import prepare_data
    from derivlang.training.settings import RunPaths
    from tests.training import settings

    request = SourceRequest("a.txt", **{"words": "space", **changes.pop("request", {})})
    paths = {f.name: changes.pop(f.name) for f in fields(RunPaths) if f.name in changes}
    wanted = settings(**{"source": "a.txt", "vocab_size": 46, "seq_len": 16, **changes})
    prepared = prepare_data(wanted, request, RunPaths(**{"run": Path("run"), "data": Path("data"), **paths}))
    return frozenset(prepared.used)


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.txt", TEXT)
    written(tmp_path / "other.txt", OTHER)
    written(tmp_path / "words.tsv", "the\tle\ncat\tchat\n")


@pytest.mark.usefixtures("texts")
def test_every_setting_that_data_depends_on_changes_a_name_and_no_other_does() -> None:
    from derivlang.training.settings import TrainingSettings

    before = names()
    assert {name.partition("-")[0] for name in before} == {"tokenizer", "twin", "dictionary", "encoded"}
    for name, value in OF_DATA.items():
        more = {"vocab_size": 70} if name == "tokenizer_for" else {}  # the letters of two scripts
        assert names(**{name: value, **more}) - before, name
    others = {name: one for name, one in declared(TrainingSettings).items() if name not in {*OF_DATA, "source"}}
    for name, one in others.items():
        value = next((choice for choice in one.choices if choice != one.default), None) if one.choices else None
        if one.kind is bool:
            value = not one.default
        elif value is None and one.kind is int:
            value = (one.default or 0) + 1
        elif value is None and one.kind is float:
            value = one.default / 2 if one.default else 0.01
        if value is not None:
            assert names(**{name: value}) == before, name


@pytest.mark.usefixtures("texts")
def test_files_rules_and_reading_change_a_name_and_paths_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    before = names()
    assert names(request={"words": "unicode"}) - before
    assert names(parses=Path("parses"), run=Path("elsewhere")) == before
    for place in (
        "derivlang.training.encode.FORMAT", "derivlang.training.data_folder.FORMAT",
        "derivlang.lexical.dictionary.RULE_VERSION", "derivlang.transforms.word_order.Inv.rule_version",
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(place, 99)
            assert names() - before, place
    with_words = names(spec="lex:words.tsv,inv")
    written(Path("words.tsv"), "the\tle\ncat\tchats\n")
    assert names(spec="lex:words.tsv,inv").isdisjoint(with_words - before)
    other = names(derived_source="other.txt")
    written(Path("other.txt"), OTHER.replace("hen", "cow"))
    assert names(derived_source="other.txt") - other
    written(Path("a.txt"), TEXT + "one more line .\n")
    assert names().isdisjoint(before)


@pytest.mark.usefixtures("texts")
def test_ls_lists_data_and_what_no_run_names() -> None:
    used = names(run=Path("run"), data=Path("data"))
    asked = ("--source", "a.txt", "--t", "trans,inv", "--words", "space", "--vocab-size", 47, "--steps", 1)
    run("pretrain", *asked, "--data", "data", "-o", "run")
    every = {line.split()[0] for line in run("ls", "--data", "data").out.splitlines()}
    assert used < every == {path.name for path in Path("data").iterdir()}
    unused = {line.split()[0] for line in run("ls", "--data", "data", "--unused").out.splitlines()}
    assert unused == used
    entries = map(json.loads, run("ls", "--data", "data", "--json").out.splitlines())
    (entry,) = (one for one in entries if one["recipe"].get("vocab_size") == 47)
    assert entry["recipe"]["text"] == "a.txt"
    assert entry["bytes"] > 1000
    assert "there is no such folder" in run("ls", "--data", "nowhere", code=1).err
    assert "[unused-option]" in run("ls", "--unused", code=2).err
