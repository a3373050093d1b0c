"""Kill a run, then run the same command again: it must end with exactly what a run left alone gives, and nothing more.

A forked child counts the file operations that Python tells its audit hooks (open, rename, remove, mkdir, rmdir) and
ends itself with SIGKILL at a chosen one: every moment between two changes of the disk can be tried. Workers of a pool
are killed at random moments, and by killing the process that started them.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from derivlang.core.errors import DerivlangError
from tests.faults.scenarios import Scenario, expected, text, tree

_COUNTED = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")
SECONDS = 60.0  # for one run: a hang, not a slow machine


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one trial. fault: None where all was as it must be."""

    scenario: str
    point: str
    fault: str | None


@cache
def points(scenario: Scenario) -> int:
    """The number of file operations of a whole run."""
    expected(scenario)  # imports and what is made once are no operations of a run
    folder = _fresh(scenario)
    try:
        reading, writing = os.pipe()
        child = _fork(scenario, folder, -1, writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            counted = told.read()
        if _wait(child) != 0:
            raise RuntimeError(f"{scenario.name} fails without a kill: {_said(folder)}")
        return int(counted)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def killed_at(scenario: Scenario, point: int) -> Outcome:
    """Kill a run at one of its file operations, look at what is left, and run it again."""
    folder = _fresh(scenario)
    try:
        older = folder / (scenario.folder or "")
        before = tree(older) if scenario.older else {}
        status = _wait(_fork(scenario, folder, point, None))
        if status not in (0, signal.SIGKILL):
            return Outcome(scenario.name, f"operation {point}", f"the run ended with {status} before it was killed")
        after = {name.removeprefix(f"{scenario.folder}/"): digest for name, digest in expected(scenario).items()}
        fault = _older_set(older, before, after) if scenario.older else None
        return Outcome(scenario.name, f"operation {point}", fault or _again(scenario, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def worker_killed(rng: random.Random) -> Outcome:
    """Kill one worker of a pool at a random moment, or the process that started the workers: none may be left."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    whole = rng.random() < 0.5
    what = "the process that started the workers" if whole else "a worker"
    try:
        text(folder, 2_000)
        main = _command(folder)
        _, family = strike(main, rng, whole)
        try:
            main.wait(SECONDS)
        except subprocess.TimeoutExpired:
            main.kill()
            return Outcome(WORKERS, what, "the run hangs")
        left = still_alive(family, 10.0)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if left:
            return Outcome(WORKERS, what, f"{len(left)} processes live on")
        if status := _command(folder).wait(SECONDS):
            return Outcome(WORKERS, what, f"the same command then ends with {status}: {_said(folder)}")
        (folder / _SAID).unlink()
        return Outcome(WORKERS, what, None if tree(folder) == _by_workers() else "another set than that of one run")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def strike(main: subprocess.Popen[bytes], rng: random.Random, whole: bool) -> tuple[bool, set[int]]:
    """Kill a worker of a pool at a random moment, or (whole) the process that started it.

    Returns whether one was killed before the run ended, and the processes that were seen below the main one.
    """
    family, began, pause = set[int](), None, rng.uniform(0.0, 0.5)
    while main.poll() is None:
        family |= _descendants(main.pid)
        began = began or (time.monotonic() if len(family) >= 3 else None)  # two workers and who watches them
        if began is not None and time.monotonic() - began > pause:
            with suppress(ProcessLookupError):
                workers = sorted(pid for pid in family if not _watches(pid))
                os.kill(main.pid if whole else rng.choice(workers), signal.SIGKILL)
            return True, family
        time.sleep(0.01)
    return False, family


def _watches(pid: int) -> bool:
    """Return whether a process is Python's own, which watches workers. If it dies, Python prints a traceback."""
    with suppress(OSError):  # it has ended
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


WORKERS = "make, two workers"


def _command(folder: Path) -> subprocess.Popen[bytes]:
    command = ["make", "--t", "trans,inv", "a.tokens", "-o", "out", "--workers", "2", "--shard-tokens", "1500"]
    with (folder / _SAID).open("w") as said:  # not a pipe: a worker that lives on would keep it open
        return subprocess.Popen(
            [sys.executable, "-m", "derivlang", *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )


@cache
def _by_workers() -> dict[str, str]:
    """What the command leaves when nobody disturbs it."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        text(folder, 2_000)
        if _command(folder).wait(SECONDS):
            raise RuntimeError(f"{WORKERS} fails without a kill: {_said(folder)}")
        (folder / _SAID).unlink()
        return tree(folder)
    finally:
        shutil.rmtree(folder)


def _again(scenario: Scenario, folder: Path) -> str | None:
    """Run the same command to its end, in a child; what differs from a run left alone."""
    status = _wait(_fork(scenario, folder, -1, None))
    if status != 0:
        return f"the same command then ends with {status}: {_said(folder)}"
    (folder / _SAID).unlink(missing_ok=True)
    found, wanted = scenario.seen(folder), expected(scenario)
    if found == wanted:
        return None
    names = sorted(set(found) ^ set(wanted)) or sorted(name for name in wanted if found[name] != wanted[name])
    return f"other files than those of a run left alone: {', '.join(names[:4])}"


def _older_set(folder: Path, before: dict[str, str], after: dict[str, str]) -> str | None:
    """An older set is whole, or is replaced by a whole one, or is said to be unfinished; never a mixture."""
    from derivlang.store.verify import verify

    if (found := _loaded(tree(folder))) and found not in (_loaded(before), _loaded(after)):
        return "readers find other shards than the older ones or the new ones"
    if {name: digest for name, digest in tree(folder).items() if name in before} == before:
        return None
    try:
        return None if verify(folder)["ok"] else "half of an older set is taken for a whole one"
    except DerivlangError as error:
        return None if error.id == "unfinished" else f"neither whole nor unfinished: {error}"


def _loaded(files: dict[str, str]) -> dict[str, str]:
    """What a reader loads that knows neither manifests nor stages: the shards, and the card that names them."""
    shards = {name: digest for name, digest in files.items() if name.startswith("data/") and digest != "folder"}
    return {**shards, "README.md": files.get("README.md", "")} if shards else {}


_SAID = ".said"


def _fresh(scenario: Scenario) -> Path:
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    scenario.prepare(folder)
    return folder


def _fork(scenario: Scenario, folder: Path, point: int, told: int | None) -> int:
    """A child that acts, and kills itself at a file operation; it writes how many there were to `told`."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        count = _audit(point)
        scenario(folder)
        if told is not None:
            os.write(told, str(count()).encode())
        status = 0
    except BaseException:  # noqa: BLE001 (a child must not go on as its parent would)
        with suppress(OSError):
            (folder / _SAID).write_text(traceback.format_exc(), "utf-8")
    finally:
        os._exit(status)


def _audit(point: int) -> Callable[[], int]:
    n = 0

    def hook(event: str, arguments: Any) -> None:
        nonlocal n
        if event in _COUNTED and not (event == "open" and _reads(arguments)):
            if n == point:
                os.kill(os.getpid(), signal.SIGKILL)
            n += 1

    sys.addaudithook(hook)
    return lambda: n


def _reads(arguments: Any) -> bool:
    """Does this call of `open` only read? Its flags tell; those of io.open are in its mode."""
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return not set(mode) & set("wax+")
    return not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def _wait(child: int) -> int:
    """The exit status, or the number of the signal that ended it; a child that hangs is killed, and is a fault."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def _said(folder: Path) -> str:
    path = folder / _SAID
    lines = path.read_text("utf-8").strip().splitlines() if path.exists() else []
    return lines[-1] if lines else "it hung, or died"


def _descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have; of /proc."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with suppress(OSError):
                new = {int(n) for n in path.read_text().split()} - found
                found |= new
                todo += new
    return found


def still_alive(family: set[int], seconds: float) -> list[int]:
    """Those of some processes that have not ended after a while; zombies have."""
    deadline = time.monotonic() + seconds
    while True:
        alive = [pid for pid in family if _state(pid) not in ("Z", "X", "")]
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def some(scenario: Scenario, n: int) -> Iterator[int]:
    """`n` file operations of a run, spread evenly over it; all of them where there are fewer."""
    total = points(scenario)
    return iter(sorted({round(i * (total - 1) / max(1, n - 1)) for i in range(n)}))
