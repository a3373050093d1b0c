"""The Dask engine: the same bytes from any workers, and one error, in bounded time, where a cluster is of no use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import DataError
from derivlang.engine import cluster
from tests.commands import ROOT, make, run, shards, snapshot, wiki
from tests.helpers import python

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))
SHARD = ("--shard-tokens", 100)
SPEC = "trans,perm"


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A scheduler without workers."""
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as found:
        yield found.scheduler_address


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run in one process writes."""
    folder = tmp_path_factory.mktemp("whole")
    make(SPEC, wiki(folder, TEXT), folder / "out", *SHARD)
    return folder / "out"


@contextmanager
def worker(scheduler: str, cwd: Path, *path: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker process, with folders before the package on its path; it has arrived when the block begins."""
    with subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny", "--nthreads", "1",
         "--no-dashboard", "--local-directory", str(cwd)],
        cwd=cwd, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))}, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            with distributed.Client(scheduler, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
            yield process
        finally:
            process.kill()
            process.wait(30)
            with distributed.Client(scheduler, set_as_default=False) as client:
                gone(client)


def gone(client: Any) -> None:
    """Wait until the scheduler has noticed that its worker is dead."""
    for _ in range(600):
        if not client.nthreads():
            return
        client.sync(_sleep)
    raise AssertionError("the scheduler still has a worker")


async def _sleep() -> None:
    import asyncio

    await asyncio.sleep(0.05)


def test_relative_paths_and_what_a_dead_worker_left(
    tmp_path: Path, scheduler: str, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has a working folder of its own. A worker that was killed leaves a part of a shard."""
    wiki(tmp_path, TEXT)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    checked = cluster._check_workers

    def killed(*arguments: Any) -> None:
        checked(*arguments)
        (staged,) = (path for path in (tmp_path / "out" / ".derivlang").iterdir() if path.is_dir())
        (staged / f".{shards(whole)[1].name}.4321.tmp").write_bytes(b"PAR1")

    monkeypatch.setattr(cluster, "_check_workers", killed)
    with worker(scheduler, elsewhere):
        make(SPEC, next(tmp_path.glob("*.tokens")).name, "out", *SHARD, "--engine", f"dask:{scheduler}")
    assert snapshot(tmp_path / "out") == snapshot(whole)
    make(SPEC, next(tmp_path.glob("*.tokens")).name, "out", *SHARD)  # found done, not refused
    assert not list(elsewhere.glob("out"))


@pytest.mark.parametrize("address", ["", "tcp://127.0.0.1:{port}", "nonsense://x", "127.0.0.1:nonsense", "tcp://"])
def test_an_address_without_a_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        engine = "dask:" + address.format(port=free.getsockname()[1])
        ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", engine, code=2)
    assert ran.err.startswith("derivlang: --engine: ")
    assert "dask:tcp://host:8786" in ran.err
    assert not (tmp_path / "out").exists()


def test_no_traceback_and_no_log_from_the_command_line(tmp_path: Path) -> None:
    ran = python("-m", "derivlang", "make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out",
                 "--engine", "dask:nonsense://x", "--workers", 2)  # fmt: skip
    assert ran.returncode == 2
    warning, error = ran.stderr.split("\n", 1)
    assert warning.endswith("so --workers has no effect")
    assert error.startswith("derivlang: --engine: no Dask scheduler answers at 'nonsense://x'")
    assert "Traceback" not in ran.stderr


def test_a_cluster_without_workers(tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    monkeypatch.setattr(cluster, "_LOOK", 0.1)
    ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "has had no worker for 1 seconds [no-workers]" in ran.err
    assert "dask worker" in ran.err


def test_all_workers_die(tmp_path: Path, scheduler: str, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with an error that keeps the finished shards; the same command goes on from there."""
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    monkeypatch.setattr(cluster, "_LOOK", 0.1)
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    checked = cluster._check_workers
    with worker(scheduler, tmp_path) as process:

        def kill(*arguments: Any) -> None:
            checked(*arguments)
            process.kill()

        monkeypatch.setattr(cluster, "_check_workers", kill)
        ran = run("make", "--t", SPEC, source, "-o", out, *SHARD, "--engine", f"dask:{scheduler}", code=1)
        assert "[no-workers]" in ran.err
    make(SPEC, source, out, *SHARD)
    assert snapshot(out) == snapshot(whole)


def test_workers_that_would_write_other_bytes_are_refused_by_name(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text("import pyarrow\npyarrow.__version__ = '1.2.3'\n")
    with worker(scheduler, tmp_path, tmp_path / "other"):
        ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "[other-workers]" in ran.err
    assert "tcp://127.0.0.1:" in ran.err
    assert "pyarrow 1.2.3 (here " in ran.err
    assert not (tmp_path / "out").exists()


def test_a_worker_that_joins_later_is_checked_with_its_first_task(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(
        "import derivlang.core.version as found\nfound.__version__ = '0.0.9'\n"
    )
    monkeypatch.setattr(cluster, "_check_workers", lambda *arguments: None)
    with worker(scheduler, tmp_path, tmp_path / "other"):
        ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "derivlang 0.0.9 (here " in ran.err


def test_a_grammar_that_a_worker_does_not_find(tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec is what the user wrote: a relative path in it is refused where the worker finds nothing there."""
    from tests import commands

    source = commands.trees(tmp_path / "in", name="x-ud-train.conllu")
    grammar = ROOT / "grammars" / "fr.grammar.tsv"
    (tmp_path / grammar.name).write_bytes(grammar.read_bytes())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with worker(scheduler, tmp_path / "elsewhere"):
        ran = run("make", "--t", f"syn:{grammar.name}", source, "-o", "out", "--engine", f"dask:{scheduler}", code=1)
    assert "[other-workers]" in ran.err
    assert grammar.name in ran.err
    assert "absolute paths" in ran.err


def test_a_damaged_source_is_the_error_of_the_engine_in_one_process(tmp_path: Path, scheduler: str) -> None:
    from tests import commands

    bad = commands.written(tmp_path / "bad.txt", b"caf\xe9\n")
    with worker(scheduler, tmp_path):
        ran = run("make", "--t", "inv", bad, "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert ran.err.startswith(f"derivlang: {bad}:1: byte 3 ")


def test_results_are_released_as_they_come(tmp_path: Path, scheduler: str) -> None:
    """Neither the scheduler nor the driver keeps those that were taken."""
    with worker(scheduler, tmp_path), distributed.Client(scheduler, set_as_default=False) as client:
        taken = 0
        for _ in cluster._results(client, _number, list(range(6)), scheduler):  # type: ignore[arg-type]
            taken += 1
            client.sync(_sleep)
            assert len(client.futures) <= 6 - taken
        assert taken == 6


def test_few_tasks_wait_at_the_scheduler(tmp_path: Path, scheduler: str) -> None:
    with worker(scheduler, tmp_path), distributed.Client(scheduler, set_as_default=False) as client:
        most, taken = 0, []
        for number in cluster._results(client, _number, list(range(300)), scheduler):  # type: ignore[arg-type]
            most = max(most, len(client.futures))
            taken.append(number)
        assert sorted(taken) == list(range(300))  # type: ignore[type-var]
        assert most <= 2 * cluster._LEAST_AHEAD  # the client forgets those that are done a little later


def _number(number: int) -> int:
    return number


def test_an_error_that_is_not_ours_becomes_one(tmp_path: Path, scheduler: str) -> None:
    with (
        worker(scheduler, tmp_path),
        distributed.Client(scheduler, set_as_default=False) as client,
        pytest.raises(DataError, match="a task failed on the Dask cluster: division by zero"),
    ):
        list(cluster._results(client, _divide, [0], scheduler))  # type: ignore[list-item, arg-type]


def _divide(number: int) -> float:
    return 1 / number
