"""Two runs in one folder, a source that changes while it is read, disks that are full or read-only."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from derivlang.core.errors import DerivlangError
from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.export import undo
from derivlang.store.verify import verify
from tests.faults.scenarios import text, tree

ROOT = Path(__file__).parents[2]


def command(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """derivlang, in a process of its own in this folder; what it says goes to a file of its number."""
    with (folder / f"said-{random.getrandbits(32):x}").open("w") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "derivlang", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )


def said(folder: Path) -> str:
    return "".join(path.read_text("utf-8") for path in folder.glob("said-*"))


def two_runs(specs: tuple[str, str], seed: int) -> str | None:
    """Two runs start in one folder, the second up to 0.3 s later. The set is one run's, whole; nobody dies of it."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        text(folder, 1_500)
        runs = []
        for spec in specs:
            runs.append(command(folder, "make", "--t", spec, "a.tokens", "-o", "out", "--shard-tokens", "1000"))
            time.sleep(random.Random(seed).uniform(0, 0.3))
        codes = [run.wait(120) for run in runs]
        words = said(folder)
        if "Traceback" in words or 0 not in codes:
            return f"exit codes {codes}: {words[-300:]}"
        if len(set(specs)) == 1 and codes != [0, 0]:
            return f"the same plan twice ends with {codes}: {words[-300:]}"
        if len(set(specs)) == 2 and codes == [0, 0]:
            return "two plans both say that they are done"
        if not verify(folder / "out")["ok"]:
            return "the set is wrong"
        spec = json.loads((folder / "out" / "derivlang.json").read_text("utf-8"))["spec"]
        if len(set(specs)) == 2 and spec != Pipeline.parse(specs[codes.index(0)]).stored:
            return "the set is not that of the run that says it is done"
        left = [name for name in tree(folder) if not name.startswith(("out/", "said-", "a.tokens"))]
        return f"left behind: {left}" if left or (folder / "out" / ".derivlang").exists() else None
    finally:
        shutil.rmtree(folder)


CHANGES = ("grows", "is cut", "is replaced", "is written over")


def changing_source(change: str, seed: int) -> str | None:
    """A source changes at some moment of a run: the run stops, or its set is that of the bytes in its manifest."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    rng = random.Random(f"{change}/{seed}")
    try:
        path = text(folder, 3_000)
        data = path.read_bytes()
        finished = threading.Event()

        def meddle() -> None:
            finished.wait(rng.uniform(0, 0.4))
            if change == "grows":
                with path.open("ab") as out:
                    out.write(b" One more line . \n")
            elif change == "is cut":
                os.truncate(path, len(data) // 2)
            elif change == "is replaced":
                (folder / "new").write_bytes(data.replace(b"cat", b"dog"))
                (folder / "new").replace(path)
            else:
                with path.open("r+b") as out:
                    out.write(data.replace(b"cat", b"dog"))

        thread = threading.Thread(target=meddle)
        thread.start()
        try:
            make(Pipeline.parse("inv"), SourceRequest(str(path)), MakeOptions(folder / "out", shard_tokens=1_000))
        except DerivlangError as error:
            return None if "a.tokens" in str(error) else f"the error does not name the file: {error}"
        finally:
            finished.set()
            thread.join()
        if not verify(folder / "out")["ok"]:
            return "verify calls the set wrong"
        undo(folder / "out", None, folder / "undone")
        (entry,) = json.loads((folder / "out" / "derivlang.json").read_text("utf-8"))["source"]["files"]
        same = hashlib.sha256((folder / "undone").read_bytes()).hexdigest() == entry["sha256"]
        return None if same else "the set is not that of the file in its manifest"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path]:
    """A disk of its own of some size. OSError where this process may not mount one."""
    place = Path(mkdtemp(prefix="derivlang-faults-"))
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", place], capture_output=True
    ).returncode:
        place.rmdir()
        raise OSError("this process may not mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        with suppress(OSError):
            place.rmdir()


def full_disk(kilobytes: int) -> str | None:
    """A run on a disk that is too small says so and leaves an older set alone; with room the same command ends well."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        source = text(folder, 2_000)
        with small_disk(kilobytes) as disk:
            with suppress(DerivlangError):
                make(Pipeline.parse("perm"), SourceRequest("demo"), MakeOptions(disk / "old", splits=("test",)))
            before = tree(disk)
            try:
                make(
                    Pipeline.parse("trans,inv"),
                    SourceRequest(str(source)),
                    MakeOptions(disk / "out", shard_tokens=1_000),
                )
            except DerivlangError as error:
                if error.id != "disk-full":
                    return f"another error: {error}"
            else:
                return None if verify(disk / "out")["ok"] else "the set is wrong"
            if {name: digest for name, digest in tree(disk).items() if not name.startswith("out/")} != before:
                return "something else than the run's own folder was changed"
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            make(Pipeline.parse("trans,inv"), SourceRequest(str(source)), MakeOptions(disk / "out", shard_tokens=1_000))
            return None if verify(disk / "out")["ok"] else "the set made later is wrong"
    finally:
        shutil.rmtree(folder)


def read_only_disk() -> str | None:
    """Nothing can be written: one message that names the folder, and an older set is still read."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        with small_disk(4_096) as disk:
            make(Pipeline.parse("inv"), SourceRequest("demo"), MakeOptions(disk / "old", splits=("test",)))
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            if not verify(disk / "old")["ok"]:
                return "a set on a read-only disk is called wrong"
            for out, options in ((disk / "new", {}), (disk / "old", {"force": True})):
                try:
                    make(Pipeline.parse("perm"), SourceRequest("demo"), MakeOptions(out, **options))
                except DerivlangError as error:
                    if str(disk) not in str(error):
                        return f"the error does not name the folder: {error}"
                else:
                    return "a run on a read-only disk says that it is done"
            return None
    finally:
        shutil.rmtree(folder)
