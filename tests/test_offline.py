"""Commands on local files open no connection, and write only below their output, the cache and the temporary folder.

An audit hook in a process of its own sees both. What a library does in compiled code, past Python's functions, strace
sees, where it is installed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.commands import written
from tests.helpers import python

TEXT = "The old man saw 3 cats near the garden .\nShe reads , and nobody has seen it .\n" * 20
MODEL = """
[model]
type = "modernbert"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 24
"""
# Runs one command, and writes its connections and the paths that it wrote to sys.argv[1].
HOOK = """
import json, os, sys
report = sys.argv.pop(1)
connections, paths = [], []
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2, "os.truncate": 1}
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        connections.append(f"{event} {arguments[1:]}")
    count = 1 if event == "open" and arguments[2] & WRITES else CHANGES.get(event, 0)
    for path in arguments[:count]:
        if isinstance(path, (str, bytes, os.PathLike)):
            paths.append(os.path.join(os.getcwd(), os.fsdecode(path)))
sys.addaudithook(hook)
from derivlang.cli.main import run
try:
    run()
finally:
    found = json.dumps({"connections": connections, "paths": sorted(set(paths))})
    with open(report, "w") as file:
        file.write(found)
"""
CALLS = "connect,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,truncate"
STRACE = ["strace", "-f", "-y", "--seccomp-bpf", "-s", "4096", "-e", f"trace={CALLS}"] if shutil.which("strace") else []
TRAINS = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
# Each reads what the lines before it have written.
PLAIN = [
    "parse text.train.tokens -o out/parsed",
    "make --t trans,syn:fr text.train.tokens -o out/set --parses out/parses",
    "verify out/set",
    "export out/set -o out/set.jsonl",
    "tokenizer train text.train.tokens --vocab-size 60 --min-frequency 1 -o out/tokenizer",
]
TRAINING = [
    "pretrain --source text.train.tokens --t inv --model model.toml --vocab-size 60 --steps 1 --batch-size 2 "
    "--seq-len 32 --threads 1 -o out/run",
    "evaluate out/run --task none --measure perplexity --sentences 5 --threads 1 --device cpu",
    "export out/run --format transformers -o out/checkpoint",
]


@pytest.mark.parametrize("lines", [PLAIN, pytest.param(TRAINING, marks=TRAINS)], ids=["data", "training"])
def test_no_connection_and_no_file_elsewhere(lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, cache, temporary = (tmp_path / name for name in ("work", "cache", "temporary"))
    for folder in (work, cache, temporary):
        folder.mkdir()
    written(work / "text.train.tokens", TEXT)
    written(work / "model.toml", MODEL)
    monkeypatch.chdir(work)
    monkeypatch.delenv("HF_HUB_OFFLINE")  # without the variables that the tests set, as a user has it
    monkeypatch.delenv("HF_DATASETS_OFFLINE")
    monkeypatch.delenv("DERIVLANG_PARSES")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # torch sets it in this process
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    places = {"XDG_CACHE_HOME": str(cache), "HF_HOME": str(cache), "TMPDIR": str(temporary)}
    report, calls = tmp_path / "report.json", tmp_path / "calls"
    before = [*STRACE, "-o", str(calls)] if STRACE else []
    for line in lines:
        ran = python("-c", HOOK, report, *line.split(), before=before, **places)
        assert ran.returncode == 0, ran.stderr
        found = json.loads(report.read_text("utf-8"))
        traced = calls.read_text("utf-8") if STRACE else ""
        assert [*found["connections"], *re.findall(r"connect\(.*AF_INET.*", traced)] == [], line
        allowed = (work / "out", cache, temporary, Path("/dev"), report)
        paths = [*found["paths"], *written_in(traced, work)]
        assert [path for path in paths if not any(map(Path(path).is_relative_to, allowed))] == [], line


def written_in(traced: str, folder: Path) -> Iterator[Path]:
    """The paths of calls that made or changed a file, in what strace has written of a process that ran in `folder`.

    A path is relative to the folder before it, as in `7 openat(AT_FDCWD</home/me>, "set", O_WRONLY|O_CREAT) = 3`. In
    calls with several paths the last one is made.
    """
    for call in re.finditer(r"^\d+ +(\w+)\((.*)\) = \d", traced, re.MULTILINE):
        name, arguments = call.groups()
        if name not in ("open", "openat") or re.search("O_WRONLY|O_RDWR|O_CREAT", arguments):
            start, path = re.findall(r'(?:<([^>]*)>, )?"([^"]*)"', arguments)[-1]
            yield folder / start / path


def test_calls_of_strace_are_read() -> None:
    traced = """7 openat(AT_FDCWD</home/me>, "a/b", O_RDONLY) = 3</home/me/a/b>
7 openat(AT_FDCWD</home/me>, "new", O_WRONLY|O_CREAT|O_CLOEXEC, 0666) = 3</home/me/new>
8 mkdir("/elsewhere", 0777) = 0
8 mkdir("/there", 0777) = -1 EEXIST (File exists)
8 renameat2(AT_FDCWD</home/me>, "new", 4</other>, "old", 0) = 0"""
    assert [*map(str, written_in(traced, Path("/home/me")))] == ["/home/me/new", "/elsewhere", "/other/old"]
