"""The Dask engine: the same bytes from any workers, and one error, in bounded time, where a cluster is of no use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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
    keep = cluster.keep

    def killed(*arguments: Any) -> Any:
        kept = keep(*arguments)
        staged = tmp_path / "out" / ".derivlang" / kept["plan"][:16] / "data"
        staged.mkdir(parents=True)
        (staged / f".{shards(whole)[1].name}.4321.tmp").write_bytes(b"PAR1")
        return kept

    monkeypatch.setattr(cluster, "keep", killed)
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
    ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "has had no worker for 1 seconds [no-workers]" in ran.err
    assert "dask worker" in ran.err


def test_all_workers_die(tmp_path: Path, scheduler: str, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with an error that keeps the finished shards; the same command goes on from there."""
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    keep = cluster.keep
    with worker(scheduler, tmp_path) as process:

        def kill(*arguments: Any) -> Any:
            process.kill()
            return keep(*arguments)

        monkeypatch.setattr(cluster, "keep", kill)
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
    assert "the set was planned with pyarrow " in ran.err
    assert " (here 1.2.3)" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_worker_without_the_package(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text("import sys\nsys.modules['derivlang'] = None\n")
    with worker(scheduler, tmp_path, tmp_path / "other"):
        ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "[other-workers]" in ran.err
    assert "tcp://127.0.0.1:" in ran.err
    assert "derivlang" in ran.err.split("tcp://127.0.0.1:")[1]


def test_a_worker_that_joins_later_is_checked_with_its_first_rank(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(
        "import derivlang.core.version as found\nfound.__version__ = '0.0.9'\n"
    )
    checks: Iterator[Callable[..., None]] = iter([lambda *arguments: None, cluster._check_workers])
    monkeypatch.setattr(cluster, "_check_workers", lambda *arguments: next(checks)(*arguments))
    with worker(scheduler, tmp_path, tmp_path / "other"):
        ran = run("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert "tcp://127.0.0.1:" in ran.err
    assert " (here 0.0.9)" in ran.err


def test_a_worker_that_does_not_see_the_output_folder(tmp_path: Path, scheduler: str) -> None:
    """A folder in which nothing is planned stands for one that only this process sees."""
    with (
        worker(scheduler, tmp_path),
        distributed.Client(scheduler, set_as_default=False) as client,
        pytest.raises(DataError, match=r"tcp://127.0.0.1:\d+: no set is planned here"),
    ):
        list(cluster._results(client, scheduler, tmp_path / "out", partial(cluster._work, tmp_path / "out", 1), [0]))


def test_a_grammar_by_a_relative_path(tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that a spec names are stored with the plan, so workers need not find them."""
    from tests import commands

    source = commands.trees(tmp_path / "in", name="x-ud-train.conllu")
    grammar = ROOT / "grammars" / "fr.grammar.tsv"
    (tmp_path / grammar.name).write_bytes(grammar.read_bytes())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    make(f"syn:{grammar.name}", source, tmp_path / "one")
    with worker(scheduler, tmp_path / "elsewhere"):
        make(f"syn:{grammar.name}", source, tmp_path / "out", "--engine", f"dask:{scheduler}")
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "one")


def test_a_parser_in_a_folder_is_refused(tmp_path: Path, scheduler: str) -> None:
    parser, engine = ROOT / "derivlang" / "parsing" / "english-light", f"dask:{scheduler}"
    ran = run("parse", wiki(tmp_path), "-o", tmp_path / "out", "--parser", parser, "--engine", engine, code=2)
    assert "[parser-name]" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_damaged_source_is_the_error_of_the_engine_in_one_process(tmp_path: Path, scheduler: str) -> None:
    from tests import commands

    bad = commands.written(tmp_path / "bad.txt", b"caf\xe9\n")
    with worker(scheduler, tmp_path):
        ran = run("make", "--t", "inv", bad, "-o", tmp_path / "out", "--engine", f"dask:{scheduler}", code=1)
    assert ran.err.startswith(f"derivlang: {bad}:1: byte 0xe9 at offset 3 ")


def test_more_tasks_than_ranks(tmp_path: Path, scheduler: str, whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_RANKS", 2)
    with worker(scheduler, tmp_path):
        make(SPEC, wiki(tmp_path, TEXT), tmp_path / "out", *SHARD, "--engine", f"dask:{scheduler}")
    assert snapshot(tmp_path / "out") == snapshot(whole)


def test_a_finished_set_is_not_made_again(tmp_path: Path, scheduler: str, whole: Path) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make(SPEC, source, out, *SHARD)
    ran = run("make", "--t", SPEC, source, "-o", out, *SHARD, "--force", "--engine", f"dask:{scheduler}")
    assert "already complete" in ran.err  # without a worker
    assert snapshot(out) == snapshot(whole)


def test_an_error_that_is_not_ours_becomes_one(tmp_path: Path, scheduler: str) -> None:
    with (
        worker(scheduler, tmp_path),
        distributed.Client(scheduler, set_as_default=False) as client,
        pytest.raises(DataError, match="a task failed on the Dask cluster: division by zero"),
    ):
        list(cluster._results(client, scheduler, tmp_path, _divide, [0]))


def _divide(number: int) -> float:
    return 1 / number
