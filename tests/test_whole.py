"""What commands write: one process at a time, whole or not at all, and nothing of somebody else is lost.

The commands come from the command line itself: a new one that writes needs a scenario (tests/faults/scenarios.py).
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from derivlang.core.errors import StoreError
from derivlang.store.disk import held, stage_of
from derivlang.store.files import held_file, writing
from derivlang.store.folders import replace_folder, sweep
from tests.commands import run, spawn, written
from tests.faults.scenarios import SCENARIOS, Scenario, commands, expected, named, tree, writes

COMMANDS = dict(commands())
# Commands that write no file of their own: a new command has a scenario, or stands here.
READS = {
    "derive", "explore", "match", "verify", "grammar ls", "grammar probs", "grammar score", "grammar show", "parser ls",
    "parser score", "align score", "ls", "push",
}  # fmt: skip
FOLDERS = [scenario for scenario in SCENARIOS if scenario.folder and not scenario.slow]
FILES = [one for one in SCENARIOS if ("-o" in one.line and not one.folder) or "--html" in one.line]
ADDS = {"evaluate", "study"}  # these replace nothing, and name nothing


def folder_option(command: click.Command) -> bool:
    return any(getattr(option.type, "writes", False) and option.type.dir_okay for option in command.params)  # type: ignore[attr-defined]


def test_every_command_that_writes_has_a_scenario() -> None:
    assert {one.command for one in SCENARIOS} == {name for name, command in COMMANDS.items() if writes(command)}
    assert {name for name, command in COMMANDS.items() if not writes(command)} == READS
    folders = {name for name, command in COMMANDS.items() if writes(command) and folder_option(command)}
    assert {one.command for one in FOLDERS} == folders


def plant(folder: Path) -> dict[Path, bytes]:
    """Put foreign files into a folder and every folder below it."""
    planted = {}
    for below in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        for name in ("thesis.txt", "chapters/one.txt", "table.json"):
            path = written(below / name, f"mine, {name}\n")
            planted[path] = path.read_bytes()
    return planted


@pytest.mark.parametrize("scenario", FOLDERS, ids=lambda scenario: scenario.name)
def test_foreign_files_stay(scenario: Scenario, tmp_path: Path) -> None:
    """A folder is written again: with --force, where there is such an option. What is not of the result stays."""
    scenario.prepare(tmp_path)
    out = tmp_path / (scenario.folder or "")
    more: tuple[str, ...] = ()
    if not out.exists() or scenario.command in ADDS:
        scenario(tmp_path)
        can_force = any("--force" in option.opts for option in COMMANDS[scenario.command].params)
        more = ("--force",) if can_force and "--force" not in scenario.line else ()
    planted = plant(out)
    before = tree(tmp_path)
    ran = scenario(tmp_path, *more, code=None)
    assert {path: path.read_bytes() for path in planted} == planted
    if ran.code:  # refused
        assert "[output]" in ran.err or "was added: it is not a file of the run [damaged]" in ran.err
        assert tree(tmp_path) == before
    else:
        files = {name for name, digest in expected(scenario).items() if digest != "folder"}
        assert all((tmp_path / name).is_file() for name in files)
    # A report of the same scores is kept, and has nothing to say.
    if scenario.command not in {*ADDS, "report"} and scenario.act is None and not scenario.once:
        assert "thesis.txt" in ran.err


@pytest.mark.parametrize("scenario", FILES, ids=lambda scenario: scenario.name)
def test_a_file_that_another_command_makes_is_refused(scenario: Scenario, tmp_path: Path) -> None:
    scenario.prepare(tmp_path)
    before = tree(tmp_path)
    flag = "--html" if "--html" in scenario.line else "-o"
    out = tmp_path / scenario.line[scenario.line.index(flag) + 1]
    with held(out, "plan", "another command", what="this file"):
        ran = scenario(tmp_path, code=1)
    assert "another run is making this file (another command)" in ran.err
    assert "[other-run]" in ran.err
    assert tree(tmp_path) == before


def test_a_parser_that_another_command_trains_is_refused(tmp_path: Path) -> None:
    named("parser train").prepare(tmp_path)
    with held(tmp_path / "out", "plan", "another command", what="a parser"):
        assert "[other-run]" in named("parser train")(tmp_path, code=1).err
    assert not (tmp_path / "out").exists()


def test_the_same_command_waits_for_the_file(tmp_path: Path) -> None:
    out, told = tmp_path / "out.txt", list[str]()

    def other() -> None:
        with held_file(out, "one", 1, warn=told.append), writing(out) as stream:
            stream.write(b"second")

    thread = threading.Thread(target=other)
    with held_file(out, "one", 1), writing(out) as stream:
        thread.start()
        thread.join(0.4)
        stream.write(b"first")
        assert thread.is_alive()
    thread.join()
    assert out.read_bytes() == b"second"
    assert len(told) == 1
    assert "waiting for it" in told[0]
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


LINES = [
    "export set --format text", "undo set", "dict --t trans a.tokens --format tsv", "pair set --format pharaoh",
    "pair set --format parquet", "align train a.txt b.txt --model ibm2", "grammar fit a.conllu",
    "grammar count a.conllu",
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the commands of LINES read, and in which they run."""
    for name in ("export", "align train", "grammar fit"):
        named(name).prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("line", LINES)
def test_a_pipe_is_written_to_and_stays(here: Path, line: str) -> None:
    run(*line.split(), "-o", "whole")
    before, found = tree(here), list[bytes]()
    os.mkfifo("pipe")
    reader = threading.Thread(target=lambda: found.append((here / "pipe").read_bytes()))
    reader.start()
    run(*line.split(), "-o", "pipe")
    reader.join()
    assert found == [(here / "whole").read_bytes()]
    assert stat.S_ISFIFO((here / "pipe").stat().st_mode)
    (here / "pipe").unlink()
    assert tree(here) == before


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
def test_a_link_to_standard_output_stays(here: Path) -> None:
    (here / "link").symlink_to("/dev/stdout")
    ran = spawn("export", "set", "--format", "text", "-o", "link", cwd=here)
    run("export", "set", "--format", "text", "-o", "whole")
    assert ran.out == (here / "whole").read_text("utf-8")
    assert str((here / "link").readlink()) == "/dev/stdout"


def test_a_link_to_a_file_leads_to_the_new_file(tmp_path: Path) -> None:
    written(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    with writing(tmp_path / "link", replace=True) as stream:
        stream.write(b"new")
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_no_folder_is_made_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"), held_file(tmp_path / "no" / "out", "one"):
        pass
    with pytest.raises(StoreError, match="No such file"), writing(tmp_path / "no" / "out"):
        pass
    assert not list(tmp_path.iterdir())


# Folders


def fill(*names: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for name in names:
            written(folder / name, f"new {name}")

    return write


NAMES = ("record", "a/*.txt", "b")


def test_a_folder_is_replaced_but_for_foreign_files(tmp_path: Path) -> None:
    out, told = tmp_path / "out", list[str]()
    for name in ("record", "a/old.txt", "a/mine", "a/deep/old.txt", "c", "b/mine"):
        written(out / name, f"old {name}")
    replace_folder(out, fill("record", "a/new.txt"), NAMES, record="record", what="thing", warn=told.append)
    files = {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}
    kept = ("a/mine", "a/deep/old.txt", "c", "b/mine")
    assert files == {name: f"old {name}" for name in kept} | {name: f"new {name}" for name in ("record", "a/new.txt")}
    assert told == [f"{out}: kept what is not part of the thing: a/deep/, a/mine, b/, c"]
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("foreign", ["c/d", "c", "c/d/e"], ids=["file", "file for a folder", "folder for a file"])
def test_a_foreign_file_in_the_way_is_refused(tmp_path: Path, foreign: str) -> None:
    out = tmp_path / "out"
    written(out / "record", "old")
    written(out / foreign, "mine")
    before = tree(tmp_path)
    with pytest.raises(StoreError, match="would be written, and it is there already"):
        replace_folder(out, fill("record", "c/d"), NAMES, record="record")
    assert tree(tmp_path) == before


@pytest.mark.parametrize(("name", "scenario"), [("run/model/config.json", "pretrain"), ("run/log.jsonl", "pretrain")])
def test_a_foreign_file_in_the_way_of_a_first_result_is_refused(tmp_path: Path, name: str, scenario: str) -> None:
    """A folder without a record holds no earlier result, whatever its files are called."""
    found = named(scenario)
    found.prepare(tmp_path)
    written(tmp_path / name, "mine")
    before = tree(tmp_path)
    try:
        told = found(tmp_path, code=1).err
    except StoreError as error:  # of a scenario in Python
        told = str(error)
    assert f"{Path(*Path(name).parts[1:]).as_posix()} would be written, and it is there already" in told
    assert tree(tmp_path) == before


def test_an_unfinished_stage_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    written(out / "record", "old")
    before = tree(tmp_path)
    written(stage_of(out) / "record", "half")
    written(tmp_path / ".out.derivlang.lock", "")
    sweep(tmp_path)
    assert tree(tmp_path) == before


def test_what_a_living_process_holds_is_not_swept(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        fill("record")(folder)
        sweep(tmp_path)

    with held(tmp_path / "out", "plan", "told", what="this"):
        replace_folder(tmp_path / "out", write, NAMES)
        assert (tmp_path / ".out.lock").exists()
    assert (tmp_path / "out" / "record").exists()
