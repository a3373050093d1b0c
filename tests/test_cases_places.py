"""Files that commands write: no name of theirs leads to a file of the user, and no file of the user is replaced.

The names come from an audit hook over each command, the commands from the command line (tests/faults/scenarios.py).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from derivlang.cli.types import LocalPath
from derivlang.core.errors import DerivlangError
from derivlang.core.seal import sealed
from tests.commands import Ran, run, snapshot, written
from tests.faults.scenarios import SCENARIOS, Scenario, commands, named

pytest.importorskip("torch")

CHANGES = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# Of scenarios that write the same names, one.
QUICK = [one for one in SCENARIOS if not (one.slow or one.older or "--force," in one.name or "trees" in one.name)]
# Folders whose names are derivlang's: a user has none there.
OWN = re.compile(r"(.*/)?\.derivlang(/.*)?|run/evaluation")
_seen: list[Path] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is not None and (event in CHANGES or (event == "open" and arguments[2] & WRITES)):
        paths = arguments[: 2 if event in CHANGES else 1]
        _seen.extend(Path.cwd() / os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike))


sys.addaudithook(_note)


@contextmanager
def noted() -> Iterator[list[Path]]:
    """Every path that is opened for writing, made or renamed in the block. (A hook can only be added.)"""
    global _seen
    _seen = found = []
    try:
        yield found
    finally:
        _seen = None


@cache
def names_of(scenario: Scenario) -> dict[str, list[str]]:
    """What a command writes in its folder: one name of a kind, with the files that are in it at last if it is a folder.

    Names with random digits, which nobody can foresee, are left out; so is what is in a stage, a new folder.
    """
    with TemporaryDirectory(prefix="derivlang-tests-") as name:
        folder = Path(name)
        scenario.prepare(folder)
        before = set(folder.rglob("*"))
        with noted() as found:
            scenario(folder)
        new = [path for path in found if path.is_relative_to(folder) and path not in before]
        names = {str(path.relative_to(folder)): sorted(snapshot(path)) if path.is_dir() else [] for path in new}
    kinds = {re.sub(r"\d{5}", "N", name): name for name in reversed(names)}
    no = re.compile(r"\.[0-9a-f]{12}\.tmp$|(^|/)\.[^/]+\.derivlang/")
    return {name: names[name] for name in kinds.values() if not no.search(name)}


def link(place: Path, mine: Path) -> None:
    place.symlink_to(mine)


def hard_link(place: Path, mine: Path) -> None:
    place.hardlink_to(mine)


def link_to_folder(place: Path, mine: Path) -> None:
    place.symlink_to(mine.parent)


def folder(place: Path, mine: Path) -> None:
    mine.parent.rename(place)


@pytest.mark.parametrize("scenario", QUICK, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("ways", [(link, hard_link), (link_to_folder,), (folder,)], ids=["file", "link", "folder"])
def test_no_name_of_a_command_leads_to_a_file_of_the_user(
    scenario: Scenario, ways: tuple[Callable[[Path, Path], None], ...], tmp_path: Path
) -> None:
    """A folder of the user's has files with the names that the command gives to files of its own.

    Names lead to a file by a link or a hard link, in turn; the first one by either, in turn of the commands.
    """
    altered = {}
    of_folders = ways != (link, hard_link)
    for number, (name, inside) in enumerate(names_of(scenario).items()):
        way = ways[(number + QUICK.index(scenario)) % len(ways)]
        here, mine = tmp_path / f"{number}", written(tmp_path / f"mine-{number}" / "mine.txt", "mine\n" * 9)
        here.mkdir()
        scenario.prepare(here)
        if (here / name).exists() or (of_folders and (not inside or OWN.fullmatch(name) or "--force" in scenario.line)):
            continue
        for one in inside if of_folders else ():
            written(mine.parent / one, "mine")
        before = snapshot(mine.parent)
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        way(here / name, mine)
        with suppress(DerivlangError):  # of a scenario in Python
            scenario(here, code=None)
        after = snapshot(here / name if way is folder else mine.parent)
        if gone := [one for one in before if after.get(one) != before[one]]:
            altered[name] = gone
    assert altered == {}


# Commands and their options for a file, and how each is used: the scenario that prepares its folder, and the line.
FILES = {
    "export -o": ("export", "export set -o OUT.jsonl"),
    "undo -o": ("undo", "undo set -o OUT.txt"),
    "show --html": ("show", "show set --html OUT.svg"),
    "stats -o": ("stats", "stats set -o OUT.parquet"),
    "stats --plot": ("stats", "stats set --plot OUT.svg"),
    "dict -o": ("dict", "dict --t trans a.tokens -o OUT.tsv --coverage 80 --heldout 10"),
    "pair -o": ("pair", "pair set --format text -o OUT"),
    "align train -o": ("align train", "align train a.txt b.txt --model ibm2 --iterations 1 -o OUT"),
    "grammar fit -o": ("grammar fit", "grammar fit a.conllu -o OUT.tsv"),
    "grammar count -o": ("grammar count", "grammar count a.conllu -o OUT.tsv"),
}


def test_every_option_for_a_file_is_tried() -> None:
    found = {
        f"{name} {min(option.opts, key=len)}": command
        for name, command in commands()
        for option in command.params
        if isinstance(option.type, LocalPath) and option.type.writes and option.type.file_okay
    }
    assert found.keys() == FILES.keys()
    assert [name for name, command in found.items() if not any("--force" in one.opts for one in command.params)] == []


def in_folder(folder: Path, line: str, out: str, *more: str) -> Ran:
    with chdir(folder):
        return run(*line.replace("OUT", out).split(), *more, code=None)


@pytest.mark.parametrize("option", FILES)
def test_a_file_of_the_user_is_replaced_only_with_force(option: str, tmp_path: Path) -> None:
    name, line = FILES[option]
    named(name).prepare(tmp_path)
    (tmp_path / "results").mkdir()
    place = "results/out"

    def files() -> dict[str, bytes]:
        return snapshot(tmp_path / "results")

    def plant(content: dict[str, bytes]) -> None:
        for path in (tmp_path / "results").iterdir():
            path.unlink()
        for name, text in content.items():
            written(tmp_path / "results" / name, text)

    assert in_folder(tmp_path, line, place).code == 0
    result = files()
    assert in_folder(tmp_path, line, place).code == 0
    assert files() == result
    for one in result:
        for there in ({one: b"mine"}, result | {one: b"mine"}):
            plant(there)
            refused = in_folder(tmp_path, line, place)
            assert (refused.code, files()) == (1, there), (one, refused.err)
            assert re.search("--force|remove it and", refused.err)
        assert in_folder(tmp_path, line, place, "--force").code == 0
        assert files() == result


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("export", "make --t trans set -o set --force"),
        ("export", "make --t trans set/data -o set --force"),
        ("export", "make --t trans set/data/train-00000-of-00001.parquet -o set --force"),
        ("align train", "align train a.txt b.txt -o b.txt --force"),
        ("align train", "dict --t trans a.txt -o a.txt --force"),
        ("grammar count", "grammar count a.conllu -o a.conllu --force"),
    ],
)
def test_nothing_is_written_over_its_own_source(name: str, line: str, tmp_path: Path) -> None:
    named(name).prepare(tmp_path)
    before = snapshot(tmp_path)
    refused = in_folder(tmp_path, line, "")
    assert (refused.code, snapshot(tmp_path)) == (2, before)
    assert "cannot be written over its" in refused.err


# The content of a file with the name of a lock, and whether it is one that a command left.
LOCKS = {
    "precious\n": False,
    "d41d8cd98f00b204e9800998ecf8427e  a.txt\n": False,
    "0123456789abcdef undo": True,
    "": True,
}


@pytest.mark.parametrize("text", LOCKS)
def test_a_file_with_the_name_of_a_lock_stays(text: str, tmp_path: Path) -> None:
    named("export").prepare(tmp_path)
    lock = written(tmp_path / ".out.jsonl.lock", text)
    ran = in_folder(tmp_path, "export set -o out.jsonl", "")
    assert ran.code == (0 if LOCKS[text] else 1)
    assert lock.exists() != LOCKS[text]
    if not LOCKS[text]:
        assert lock.read_text() == text
        assert "has the name of a lock, and holds something else [output]" in ran.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_name_of_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    named("export").prepare(tmp_path)
    os.mkfifo(tmp_path / ".out.jsonl.lock")
    assert "is a pipe or a device" in in_folder(tmp_path, "export set -o out.jsonl", "").err


def test_a_lock_of_somebody_else_in_a_run_stays(tmp_path: Path) -> None:
    named("evaluate").prepare(tmp_path)
    notes = written(tmp_path / "run" / ".notes.lock", "mine\n")
    dead = written(tmp_path / "run" / ".model.derivlang.lock", "")
    named("evaluate")(tmp_path)
    assert notes.read_text() == "mine\n"
    assert not dead.exists()


URLS = {
    "s3://b/a::b": "`::` joins two URLs, and 'b' is not one [bad-value]",
    "memory://x::y": "`::` joins two URLs, and 'y' is not one [bad-value]",
    "s3://": "the URL names no bucket or host [bad-value]",
    "https:///": "the URL names no bucket or host [bad-value]",
    "libarchive://x": "needs a package that is not installed [missing-package]",
}


@pytest.mark.parametrize("url", URLS)
def test_what_is_wrong_with_a_url(url: str, tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    if url.startswith("libarchive") and find_spec("libarchive"):
        pytest.skip("it is installed")
    for line in ("make --t inv URL -o out", "verify URL"):
        ran = in_folder(tmp_path, line.replace("URL", url), "")
        assert ran.code in (1, 2)
        assert URLS[url] in ran.err


@pytest.mark.parametrize("status", [500, 503])
def test_a_web_server_that_fails_holds_no_missing_file(tmp_path: Path, status: int) -> None:
    class Failing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Failing)
    Thread(target=server.serve_forever, daemon=True).start()
    ran = in_folder(tmp_path, f"make --t inv http://127.0.0.1:{server.server_port}/a.txt -o out", "")
    server.shutdown()
    server.server_close()
    assert ran.code == 1
    assert f"cannot read it: {status}" in ran.err


@pytest.mark.parametrize("part", ["/dev/zero", "pipe", "a\0b"])
def test_a_plan_of_what_is_not_a_file(part: str, tmp_path: Path) -> None:
    named("work").prepare(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "out" / ".derivlang" / "plan.json"
    plan = json.loads(path.read_text("utf-8"))
    plan["job"]["parts"][0]["path"] = str(tmp_path / part) if part == "pipe" else part
    plan.pop("sha256", None)
    path.write_text(json.dumps(sealed(plan)), "utf-8")
    for line in ("work out --rank 0 --world 1", "finish out"):
        ran = in_folder(tmp_path, line, "")
        assert ran.code == 1
        assert "this is not a valid plan" in ran.err
