"""Derived sets on disk: the same bytes however they were made, going on after a stop, and what verify finds."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import derivlang.engine.engines as engines
from derivlang.core.errors import StoreError
from derivlang.engine import build
from derivlang.engine.job import Job, ShardTask, run_task
from derivlang.engine.make import make as make_set
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.making import Making
from derivlang.store.set_plan import Target
from derivlang.store.storage import Store
from tests import commands
from tests.commands import leftovers, make, once, rows, run, shards, snapshot, wiki

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))
SHARD = ("--shard-tokens", 100)
SPEC = "trans:overlap=30,perm"


class Counted:
    """`run_task`, counting its calls; `stop` ends the run at that call."""

    def __init__(self, stop: int | None = None, error: type[BaseException] = KeyboardInterrupt):
        self.names: list[str] = []
        self._stop, self._error = stop, error

    def __call__(self, job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
        if len(self.names) == self._stop:
            raise self._error
        self.names.append(task.name)
        return run_task(job, task, target)


def counted(monkeypatch: pytest.MonkeyPatch, stop: int | None = None) -> Counted:
    found = Counted(stop)
    monkeypatch.setattr(engines, "run_task", found)
    return found


def stopped(monkeypatch: pytest.MonkeyPatch, source: Path, out: Path, after: int, *options: object) -> None:
    """A run that is interrupted when `after` shards are there."""
    counted(monkeypatch, after)
    ran = run("make", "--t", SPEC, source, "-o", out, *SHARD, *options, code=130)
    assert ran.out == ""
    assert one_line_of_interruption(ran.err)


def one_line_of_interruption(err: str) -> bool:
    """The terminal's ^C gets a line end, then one line of ours."""
    return err.strip() == "derivlang: interrupted; the same command continues from here"


def counts(result: Any) -> Any:
    return {name: value for name, value in result.items() if name not in ("out", "seconds", "tokens_per_second")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """An uninterrupted run of TEXT, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    result = make(SPEC, wiki(folder, TEXT), folder / "out", *SHARD)
    assert len(shards(folder / "out")) > 5
    return folder / "out", result


# Going on


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupted_run_goes_on_and_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any], after: int
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, after)
    assert len(shards(out)) == after
    assert leftovers(out) == []
    assert not (out / "derivlang.json").exists()
    ran = run("verify", out, code=1)
    if after:
        assert "not finished" in ran.err
        assert "same `make` command" in ran.err

    tasks = counted(monkeypatch)
    result = make(SPEC, source, out, *SHARD)
    assert len(tasks.names) == len(shards(out)) - after
    assert snapshot(out) == snapshot(whole[0])
    assert counts(result) == counts(whole[1])


def test_an_interrupted_run_with_force_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    for spec in ("inv", SPEC):  # --force replaces a set of another plan, then one of this plan
        make(spec, source, out, *SHARD, "--force")
        counted(monkeypatch, 3)
        run("make", "--t", SPEC, source, "-o", out, *SHARD, "--force", code=130)
        tasks = counted(monkeypatch)
        make(SPEC, source, out, *SHARD, "--force")
        assert len(tasks.names) == len(shards(out)) - 3
        assert snapshot(out) == snapshot(whole[0])
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD, "--force")  # no run was interrupted: the set is made anew
    assert len(tasks.names) == len(shards(out))


@pytest.mark.parametrize("damage", ["", "# derivlang lexicon"])
def test_a_set_without_its_lexicon_is_not_complete(tmp_path: Path, damage: str) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make(SPEC, source, out, *SHARD)
    before = snapshot(out)
    (out / "lexicon.tsv").unlink()
    if damage:
        (out / "lexicon.tsv").write_text(damage, "utf-8")
    make(SPEC, source, out, *SHARD)
    assert snapshot(out) == before


def test_a_run_that_is_stopped_after_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"

    def stop(*given: Any) -> None:
        run_task(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, "run_task", stop)
    with pytest.raises(KeyboardInterrupt):
        make_set(Pipeline.parse(SPEC), SourceRequest(str(source)), MakeOptions(out, shard_tokens=100))
    assert len(shards(out)) == 1
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert len(tasks.names) == len(shards(out)) - 1
    assert snapshot(out) == snapshot(whole[0])


def test_stopping_at_every_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]) -> None:
    """A run that is stopped again and again still ends with the same bytes."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    for _ in range(len(shards(whole[0])) - 1):
        stopped(monkeypatch, source, out, 1)
    assert counted(monkeypatch).names == []
    make(SPEC, source, out, *SHARD)
    assert snapshot(out) == snapshot(whole[0])


@pytest.mark.parametrize("content", [b"", b"{}", b"{}\n", b"\xff\xfe}\n", b'{"plan": 3, "asked": []}', b"[" * 10_000])
def test_a_damaged_plan_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any], content: bytes
) -> None:
    """As after a full disk: each record says which plan it belongs to."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 2)
    (out / ".derivlang" / "plan.json").write_bytes(content)
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert len(tasks.names) == len(shards(out)) - 2
    assert snapshot(out) == snapshot(whole[0])


def test_a_shard_lost_before_the_run_goes_on_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 3)
    shards(out)[0].unlink()
    shards(out)[1].write_bytes(shards(out)[1].read_bytes()[:-10])
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert len(tasks.names) == len(shards(out)) - 1
    assert snapshot(out) == snapshot(whole[0])


def test_leftovers_of_a_killed_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    """SIGKILL leaves temporary files: of a shard, and of a record."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 2)
    (shards(out)[0].parent / ".test-00002-of-00009.parquet.123.tmp").write_bytes(b"half")
    for name in ("derivlang.json", "README.md", "lexicon.tsv", ".plan.json.123.tmp"):
        (out / ".derivlang" / name).write_bytes(b"half")
    counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert snapshot(out) == snapshot(whole[0])


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "missing", "nonsense", "of another task"])
def test_a_task_with_a_damaged_record_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any], damage: str
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 3)
    first, record, *_ = sorted((out / ".derivlang").glob("*/*.record"))
    content, nonsense = record.read_bytes(), b'{"task": 3}\n'
    if damage == "missing":
        record.unlink()
    else:
        damaged = {
            "empty": b"",
            "truncated": content[:-9],
            "flipped": flipped(content),
            "nonsense": hashlib.sha256(nonsense).hexdigest().encode() + b"\n" + nonsense,
            "of another task": first.read_bytes(),
        }
        record.write_bytes(damaged[damage])
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert len(tasks.names) == len(shards(out)) - 2
    assert snapshot(out) == snapshot(whole[0])


@pytest.mark.parametrize("planned", [True, False])
def test_a_run_killed_while_it_removes_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any], planned: bool
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("derivlang.store.storage.shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_set(Pipeline.parse(SPEC), SourceRequest(str(source)), MakeOptions(out, shard_tokens=100))
    assert (out / ".derivlang").exists()
    assert (out / "derivlang.json").exists()
    if not planned:
        (out / ".derivlang" / "plan.json").unlink()
    tasks = counted(monkeypatch)
    make(SPEC, source, out, *SHARD)
    assert tasks.names == []
    assert snapshot(out) == snapshot(whole[0])


def test_a_reader_loads_one_set_or_none_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    """After each change of the folder while an older set is replaced, `datasets` loads it, the new one, or nothing."""
    datasets = pytest.importorskip("datasets")
    source, out, left, seen = wiki(tmp_path, TEXT), tmp_path / "out", 0, set[str]()
    make("perm", source, tmp_path / "older", "--shard-tokens", 200)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def loaded(folder: Path) -> Any:
        found = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path / "cache"))
        return found.to_list()

    older, new = loaded(tmp_path / "older"), loaded(whole[0])

    def killed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return method(*given)

        return call

    def close(*given: Any) -> None:
        with monkeypatch.context() as patch:
            for name in ("put", "remove", "rename"):
                patch.setattr(Store, name, killed(getattr(Store, name)))
            finish(*given)

    finish = Making.close
    monkeypatch.setattr(Making, "close", close)
    for after in range(40):
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(tmp_path / "older", out)
        left = after
        code = run("make", "--t", SPEC, source, "-o", out, *SHARD, "--force", code=None).code
        try:
            rows = loaded(out)
        except Exception:  # noqa: BLE001 (of `datasets`: there is no data)
            seen.add("nothing")
        else:
            assert rows in (older, new), after
            seen.add("older" if rows == older else "new")
        if code == 0:
            break
        with monkeypatch.context() as patch:
            patch.setattr(Making, "close", finish)
            make(SPEC, source, out, *SHARD, "--force")
        assert snapshot(out) == snapshot(whole[0]), after
    assert code == 0
    assert seen == {"older", "nothing", "new"}


def test_a_forced_run_killed_while_it_removes_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    """The same command makes it again; what it replaced first is still in the stage."""
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make("perm", source, out)
    with monkeypatch.context() as patch:
        patch.setattr("derivlang.store.storage.shutil.rmtree", interrupted)
        run("make", "--t", SPEC, source, "-o", out, *SHARD, "--force", code=130)
    for record in (out / ".derivlang").glob("*/*.record"):
        record.unlink()
    make(SPEC, source, out, *SHARD, "--force")
    assert snapshot(out) == snapshot(whole[0])


def interrupted(path: Path, **options: Any) -> None:
    """Stands for `rmtree` of a process that is killed: it removes nothing of the stage."""
    if path.parent.name == ".derivlang":
        raise KeyboardInterrupt


def test_a_finished_set_leaves_the_unfinished_run_of_another_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make("inv", source, out)
    stopped(monkeypatch, source, out, 2, "--force")
    counted(monkeypatch)
    make("inv", source, out)
    assert len(list((out / ".derivlang").glob("*/data/*.parquet"))) == 2


def test_another_plan_is_refused_while_a_run_is_unfinished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 2)
    before = snapshot(out)
    counted(monkeypatch)
    ran = run("make", "--t", "inv", source, "-o", out, *SHARD, code=1)
    assert "--force" in ran.err
    assert snapshot(out) == before
    make("inv", source, out, "--force")
    assert run("verify", out, "--json").json["ok"]
    assert len(shards(out)) == 1


def test_a_changed_source_is_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    stopped(monkeypatch, source, out, 2)
    wiki(tmp_path, TEXT.replace("text", "book"))
    counted(monkeypatch)
    assert "[other-plan]" in run("make", "--t", SPEC, source, "-o", out, *SHARD, code=1).err


def heed_interrupts() -> None:
    """A test run in the background of a shell ignores SIGINT, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Running:
    """`make` of a larger set in a process of its own, with a session of its own."""

    def __init__(self, tmp_path: Path, workers: int):
        words = [f"w{n}" for n in range(5000)]
        line = " ".join(random.Random(1).choices(words, k=5000))
        self.out = tmp_path / "out"
        self.command = ["make", "--t", "trans,perm", wiki(tmp_path, f" {line} . \n" * 250), "-o", self.out]
        self.command += ["--shard-tokens", 100_000]
        self.process = subprocess.Popen(
            commands.command_line(*self.command, "--workers", workers, warnings="ignore"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=commands.environment(), start_new_session=True,
            preexec_fn=heed_interrupts,
        )  # fmt: skip

    def finished(self) -> list[str]:
        """The shards of the tasks that have a record."""
        done = {file.stem for file in (self.out / ".derivlang").glob("*/*.record")}
        return [file.name for file in shards(self.out) if file.stem in done]

    def wait_for_some(self) -> None:
        end = time.monotonic() + 40
        while len(self.finished()) < 2 and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        if self.process.poll() is not None:
            self.process.communicate()
            pytest.skip("this machine is too quick: the run ended before it could be stopped")

    def workers(self) -> list[int]:
        """The processes of the pool: children of children of `make`."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parent, session = int(fields[1]), int(fields[3])
                if session == self.process.pid and parent not in (self.process.pid, os.getpid()):
                    found.append(int(entry.name))
        return found

    def end(self) -> tuple[int, str]:
        """Exit code and stderr."""
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err.decode()

    def goes_on(self) -> None:
        """Assert that the same command makes what is missing, and only that."""
        out = self.out
        assert not [name for name in snapshot(out) if name.endswith(".tmp")]
        assert not (out / "derivlang.json").exists()
        done = {file.name: file.stat().st_mtime_ns for file in shards(out) if file.name in self.finished()}
        assert len(done) > 1
        run(*self.command)
        assert len(shards(out)) > len(done)
        assert {file.name: file.stat().st_mtime_ns for file in shards(out) if file.name in done} == done
        assert not (out / ".derivlang").exists()
        assert leftovers(out) == []
        assert json.loads((out / "derivlang.json").read_text("utf-8"))["splits"]["test"]["documents"] == 250


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c(tmp_path: Path, workers: int) -> None:
    """SIGINT to the process and its children, as from a terminal: exit code 130, then it goes on."""
    running = Running(tmp_path, workers)
    running.wait_for_some()
    os.killpg(running.process.pid, signal.SIGINT)
    code, err = running.end()
    assert code == 130, err
    assert one_line_of_interruption(err), err
    running.goes_on()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the workers are found in /proc")
def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    """As when memory runs out: one message, no traceback; the next run removes what the worker left."""
    running = Running(tmp_path, 2)
    running.wait_for_some()
    os.kill(running.workers()[0], signal.SIGKILL)
    code, err = running.end()
    assert code == 1, err
    assert "Traceback" not in err
    assert err.startswith("derivlang: ")
    run(*running.command)
    assert leftovers(running.out) == []
    assert run("verify", running.out).code == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the workers are found in /proc")
def test_workers_end_when_the_main_process_is_killed(tmp_path: Path) -> None:
    running = Running(tmp_path, 2)
    running.wait_for_some()
    assert len(running.workers()) >= 2
    running.process.kill()
    running.process.communicate(timeout=60)  # returns when nobody holds its pipes
    end = time.monotonic() + 60
    while running.workers() and time.monotonic() < end:
        time.sleep(0.05)
    assert running.workers() == []
    run(*running.command)
    assert leftovers(running.out) == []
    assert run("verify", running.out).code == 0


# Doing it again


def test_a_finished_set_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = commands.trees(tmp_path), tmp_path / "out"
    first = make("trans,perm", source, out)
    before, times = snapshot(out), {f: f.stat().st_mtime_ns for f in out.rglob("*") if f.is_file()}
    tasks = counted(monkeypatch)
    again = make("trans,perm", source, out)
    assert counts(again) == counts(first)
    assert first["changed"] == {"mwt-dissolved": 1}
    assert tasks.names == []
    assert snapshot(out) == before
    assert {f: f.stat().st_mtime_ns for f in out.rglob("*") if f.is_file()} == times


def test_equal_specs_are_one_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make("trans,perm", source, out)
    tasks = counted(monkeypatch)
    make("trans:script=georgian, perm:seed=1:window=0", source, out, "--workers", 3)
    assert tasks.names == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--limit", 3], "limit was not given, and is 3 now"),
        (
            ["--shard-tokens", 50],
            "its shards have another size, its transforms other files or rules, or another version made it",
        ),
        (["--seed", 2], "spec is perm, not perm:seed=2"),
        (["--sentences", "unit"], "sentences is marks, not unit"),
        (["--columns", "tokens"], "columns_left_out is none, not "),
        (["--entities", "drop"], "policies.entities is split, not drop"),
        (["--repair-tags"], "options is none, not --repair-tags"),
        (["--words", "unicode"], "words is space, not unicode"),
    ],
)
def test_another_plan_is_refused_without_force(tmp_path: Path, options: list[object], told: str) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make("perm", source, out, *SHARD)
    before = snapshot(out)
    size = () if "--shard-tokens" in options else SHARD
    ran = run("make", "--t", "perm", source, "-o", out, *size, *options, code=1)
    assert f"derivlang: {out}: the folder holds another set ({told}" in ran.err
    assert "--force" in ran.err
    assert snapshot(out) == before


def test_force_replaces(tmp_path: Path) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make(SPEC, source, out, *SHARD)
    make("inv", source, out, "--force")
    make("inv", source, tmp_path / "fresh")
    assert snapshot(out) == snapshot(tmp_path / "fresh")


def test_force_on_the_same_plan_makes_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make(SPEC, source, out, *SHARD)
    before, tasks = snapshot(out), counted(monkeypatch)
    make(SPEC, source, out, *SHARD, "--force")
    assert len(tasks.names) == len(shards(out))
    assert snapshot(out) == before


def test_a_folder_that_is_empty_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    source = wiki(tmp_path)
    make("inv", source, tmp_path / "empty")
    make("inv", source, tmp_path / "a" / "b" / "c")
    assert snapshot(tmp_path / "empty") == snapshot(tmp_path / "a" / "b" / "c")


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_a_damaged_shard_of_a_finished_set_is_remade(tmp_path: Path, whole: tuple[Path, Any], damage: str) -> None:
    source, out = wiki(tmp_path, TEXT), tmp_path / "out"
    make(SPEC, source, out, *SHARD)
    shard = shards(out)[1]
    content = shard.read_bytes()
    if damage == "missing":
        shard.unlink()
    else:
        shard.write_bytes(content[:-10] if damage == "truncated" else flipped(content))
    make(SPEC, source, out, *SHARD)
    assert snapshot(out) == snapshot(whole[0])


def flipped(content: bytes) -> bytes:
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


def test_nothing_of_this_machine_is_in_the_set(tmp_path: Path) -> None:
    make(SPEC, wiki(tmp_path, TEXT), tmp_path / "out", *SHARD)
    for name, content in snapshot(tmp_path / "out").items():
        assert str(tmp_path).encode() not in content, name


# Workers


@pytest.mark.parametrize("workers", [2, 3])
def test_the_same_bytes_for_any_number_of_workers(tmp_path: Path, whole: tuple[Path, Any], workers: int) -> None:
    result = make(SPEC, wiki(tmp_path, TEXT), tmp_path / "out", *SHARD, "--workers", workers)
    assert snapshot(tmp_path / "out") == snapshot(whole[0])
    assert counts(result) == counts(whole[1])


def test_the_order_in_which_shards_end_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    def backwards(job: Job, tasks: list[ShardTask], target: Target, workers: int) -> Iterator[tuple[str, int]]:
        for task in reversed(tasks):
            yield run_task(job, task, target)

    monkeypatch.setattr(build, "run_tasks", backwards)
    make(SPEC, wiki(tmp_path, TEXT), tmp_path / "out", *SHARD)
    assert snapshot(tmp_path / "out") == snapshot(whole[0])


def test_labelled_sets_with_workers(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        commands.trees(tmp_path / "in", name=f"x-ud-{split}.conllu")
    make("perm", tmp_path / "in", tmp_path / "one")
    make("perm", tmp_path / "in", tmp_path / "two", "--workers", 2)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


# Verify


def problems(out: Path) -> list[dict[str, Any]]:
    ran = run("verify", out, "--json", code=None)
    result = ran.json
    assert set(result) == {"ok", "out", "splits", "problems", "notes"}
    assert ran.code == (0 if result["ok"] else 1)
    assert result["ok"] == (not result["problems"])
    assert all(set(p) == {"file", "row", "column", "what"} for p in result["problems"])
    if not result["ok"]:
        talk = run("verify", out, code=1)
        assert all(p["file"] in talk.out and p["what"] in talk.out for p in result["problems"])
        assert talk.err == ""
    return list(result["problems"])


@once
def _text(folder: Path) -> None:
    make("trans,perm", wiki(folder, TEXT), folder / "out", "--shard-tokens", 300)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    _text(tmp_path)
    return tmp_path / "out"


@once
def _treebank(folder: Path) -> None:
    make("trans,inv", commands.trees(folder, commands.TREES * 4), folder / "out")


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    _treebank(tmp_path)
    return tmp_path / "out"


def test_a_right_set_is_right(text: Path, tmp_path: Path) -> None:
    assert problems(text) == []
    assert f"{len(rows(text, 'test')):,} rows" in run("verify", text).out
    for number, (spec, kind) in enumerate(
        [("inv", "pairs"), ("trans,perm", "questions"), ("perm", "entities"), (SPEC, "trees"), ("identity", "wiki")]
    ):
        make(spec, getattr(commands, kind)(tmp_path / "in"), tmp_path / str(number))
        assert problems(tmp_path / str(number)) == []


def test_verify_finds_a_flipped_byte(text: Path) -> None:
    shard = shards(text)[1]
    shard.write_bytes(flipped(shard.read_bytes()))
    (problem,) = problems(text)
    assert problem["file"] == f"data/{shard.name}"


def test_verify_finds_damage_at_any_byte(tmp_path: Path) -> None:
    """Never a traceback, never missed."""
    out = tmp_path / "out"
    make("trans,perm", wiki(tmp_path, TEXT), out)
    (shard,) = shards(out)
    content = shard.read_bytes()
    for at in random.Random(1).sample(range(len(content)), 40):
        shard.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        ran = run("verify", out, "--json", code=1)
        assert ran.json["problems"][0]["file"] == f"data/{shard.name}", at


def test_verify_finds_a_missing_shard(text: Path) -> None:
    shard = shards(text)[0]
    shard.unlink()
    (problem,) = problems(text)
    assert problem["file"] == f"data/{shard.name}"
    assert "missing" in problem["what"]
    for command in (["export", "--format", "text"], ["undo"]):
        ran = run(command[0], text, *command[1:], "-o", text.parent / "x", code=1)
        assert str(shard) in ran.err
        assert not (text.parent / "x").exists()


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_verify_finds_a_truncated_shard(text: Path, keep: int) -> None:
    shard = shards(text)[-1]
    shard.write_bytes(shard.read_bytes()[:keep])
    (problem,) = problems(text)
    assert problem["file"] == f"data/{shard.name}"
    last = 2 * TEXT.count("\n") - 1
    for command in (["show", "--row", last], ["export", "--format", "text", "-o", text.parent / "x"]):
        ran = run(command[0], text, *command[1:], code=1)
        assert ran.err.startswith(f"derivlang: {shard}: ")


def test_verify_goes_on_after_a_bad_shard(text: Path) -> None:
    first, second = shards(text)[0], shards(text)[1]
    first.write_bytes(b"nothing")
    change_word(second, "tokens", 3, 0)
    assert [p["file"] for p in problems(text)] == [f"data/{first.name}", f"data/{second.name}"]


def change_word(shard: Path, column: str, row: int, word: int, value: Any = "other") -> None:
    values = pq.read_table(shard, columns=[column])[column][row].as_py()
    values[word] = value(values) if callable(value) else value
    commands.change(shard, column, row, values)


def test_rewriting_a_shard_alone_is_noticed_by_its_hash_only(text: Path) -> None:
    """The tool of the following tests changes nothing else."""
    shard = shards(text)[0]
    commands.change(shard, "document", 2, pq.read_table(shard)["document"][2].as_py())
    (problem,) = problems(text)
    assert problem["row"] is None
    assert "hash" in problem["what"]


@pytest.mark.parametrize("shard", [0, 1])
@pytest.mark.parametrize("row", [0, 7])
@pytest.mark.parametrize("column", ["tokens", "source"])
def test_verify_names_a_changed_word(text: Path, column: str, row: int, shard: int) -> None:
    file = shards(text)[shard]
    change_word(file, column, row, 1)
    (problem,) = problems(text)
    assert (problem["file"], problem["row"]) == (f"data/{file.name}", row)
    assert problem["column"] == column


@pytest.mark.parametrize("value", ["other", "exchanged", -1, 99, -5])
def test_verify_names_a_changed_order(text: Path, value: Any) -> None:
    file = shards(text)[0]
    order = pq.read_table(file)["order"][7].as_py()
    if value == "exchanged":
        changed = [order[1], order[0], *order[2:]]
    else:
        changed = [order[1] if value == "other" else value, *order[1:]]
    commands.change(file, "order", 7, changed)
    (problem,) = problems(text)
    assert (problem["file"], problem["row"], problem["column"]) == (f"data/{file.name}", 7, "order")


def test_verify_names_a_row_that_lost_a_word(text: Path) -> None:
    file = shards(text)[0]
    commands.change(file, "tokens", 7, pq.read_table(file)["tokens"][7].as_py()[:-1])
    (problem,) = problems(text)
    assert (problem["file"], problem["row"], problem["column"]) == (f"data/{file.name}", 7, "tokens")


@pytest.mark.parametrize(("column", "value"), [("key", 12345), ("document", 999)])
def test_verify_names_a_changed_number(text: Path, column: str, value: int) -> None:
    file = shards(text)[1]
    commands.change(file, column, 5, value)
    (problem,) = problems(text)
    assert problem["file"] == f"data/{file.name}"
    if column == "key":
        assert (problem["row"], problem["column"]) == (5, "key")
    # a document's number follows from nothing else: the file's hash is all there is


NODE = dict.fromkeys(["lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"], "_")


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("text", "another text", True),
        ("mwt", [{"id": "1-2", "form": "x", **NODE}], True),
        ("source_misc", ["_", "_", "A=b"], True),
        ("upos", [0, 0, 0], False),
        ("deprel", ["root", "obj", "punct"], False),
        ("head", [0, 1, 2], False),
        ("lemmas", ["x", "20000", "!"], False),
        ("misc", ["_", "_", "A=b"], False),
    ],
)
def test_verify_finds_a_changed_label(treebank: Path, column: str, value: Any, named: bool) -> None:
    """A label that is moved and not stored twice follows from itself: only the hash can tell, not the row."""
    (shard,) = shards(treebank)
    commands.change(shard, column, 3, value)
    (problem,) = problems(treebank)
    assert problem["file"] == f"data/{shard.name}"
    if named or problem["row"] is not None:
        assert problem["row"] == 3
        assert problem["column"].removeprefix("source_") == column.removeprefix("source_")


@pytest.mark.parametrize("kind", ["entities", "pairs", "questions"])
def test_verify_finds_a_changed_label_of_other_sets(tmp_path: Path, kind: str) -> None:
    column, row, value = {
        "entities": ("ner_tags", 1, [0, 0, 0]),
        "pairs": ("label", 2, 0),
        "questions": ("answers", 1, {"text": ["ლივეს"], "answer_start": [11]}),
    }[kind]
    make("trans,inv", getattr(commands, kind)(tmp_path), tmp_path / "out")
    (shard,) = shards(tmp_path / "out")
    commands.change(shard, column, row, value)
    (problem,) = problems(tmp_path / "out")
    assert problem["file"] == f"data/{shard.name}"
    assert problem["row"] in (None, row)


@pytest.mark.parametrize("column", ["premise_tokens", "hypothesis_source", "hypothesis"])
def test_verify_names_the_side_of_a_pair(tmp_path: Path, column: str) -> None:
    make("trans,inv", commands.pairs(tmp_path), tmp_path / "out")
    (shard,) = shards(tmp_path / "out")
    if column == "hypothesis":
        commands.change(shard, column, 2, "another")
    else:
        change_word(shard, column, 2, 1)
    (problem,) = problems(tmp_path / "out")
    assert (problem["row"], problem["column"]) == (2, column)


def test_verify_finds_a_swapped_row(text: Path) -> None:
    """Two whole rows exchanged: each is right alone, but the file is another one."""
    shard = shards(text)[0]
    table = pq.read_table(shard)
    order = [0, 2, 1, *range(3, table.num_rows)]
    pq.write_table(table.take(order), shard, compression="zstd", store_schema=False)
    (problem,) = problems(text)
    assert problem["file"] == f"data/{shard.name}"


def test_verify_finds_exchanged_shards(text: Path) -> None:
    first, second = shards(text)[0], shards(text)[1]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    assert [p["file"] for p in problems(text)] == [f"data/{first.name}", f"data/{second.name}"]


@pytest.mark.parametrize("count", ["tokens", "sentences", "documents"])
def test_verify_finds_a_changed_count(text: Path, count: str) -> None:
    commands.edit_manifest(text, ["splits", "test", count], 7)
    (problem,) = problems(text)
    assert problem["file"] == "derivlang.json"
    assert count in problem["what"]
    assert "7" in problem["what"]


@pytest.mark.parametrize("count", ["rows", "words", "bytes"])
def test_verify_finds_a_changed_count_of_a_shard(text: Path, count: str) -> None:
    commands.edit_manifest(text, ["splits", "test", "shards", 1, count], 7)
    (problem,) = problems(text)
    assert problem["file"] in ("derivlang.json", f"data/{shards(text)[1].name}")


def test_verify_finds_another_hash_spec_fingerprint_or_lost_shard_in_the_manifest(text: Path) -> None:
    whole = (text / "derivlang.json").read_bytes()
    manifest = json.loads(whole)
    entries = manifest["splits"]["test"]["shards"]
    for path, value in [
        (["splits", "test", "shards", 0, "sha256"], "0" * 64),
        (["splits", "test", "shards"], entries[1:]),
        (["spec"], "trans,inv"),
        (["spec"], "perm"),
        (["fingerprint"], "0" * 16),
    ]:
        commands.edit_manifest(text, path, value)
        assert problems(text), (path, value)
        (text / "derivlang.json").write_bytes(whole)
    assert problems(text) == []


def test_verify_finds_a_damaged_lexicon(tmp_path: Path) -> None:
    data = commands.wikitext103(tmp_path)
    out = tmp_path / "out"
    make("trans:overlap=50", "wikitext103", out, "--data-dir", data, "--splits", "test")
    assert problems(out) == []
    lexicon = (out / "lexicon.tsv").read_text("utf-8")
    last_kept = "\tchanged".join(lexicon.rsplit("\tkept", 1))
    for changed in (lexicon.replace("\tchanged", "\tkept", 1), last_kept):
        assert changed != lexicon
        (out / "lexicon.tsv").write_text(changed, "utf-8")
        assert problems(out)
    for broken in (lexicon.replace("\tkept", "", 1), "nonsense", ""):
        (out / "lexicon.tsv").write_text(broken, "utf-8")
        ran = run("verify", out, code=None)
        assert ran.code in (1, 2)
        assert "lexicon.tsv" in ran.out + ran.err
    (out / "lexicon.tsv").unlink()
    ran = run("verify", out, code=1)
    assert "lexicon.tsv" in ran.out + ran.err


def test_verify_without_a_set(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    commands.written(tmp_path / "file", "x")
    for path, id in (("nowhere", "missing-folder"), ("empty", "no-manifest")):
        for command in (["verify"], ["show"], ["export", "--format", "text", "-o", "-"], ["undo", "-o", "-"]):
            ran = run(command[0], tmp_path / path, *command[1:], code=1)
            assert ran.err.startswith(f"derivlang: {tmp_path / path}: ")
            assert f"[{id}]" in ran.err
    assert f"derivlang make --t … {tmp_path / 'nowhere'}" in run("show", tmp_path / "nowhere", code=1).err
    commands.written(tmp_path / "demo.inv" / "derivlang.json", "{}")
    assert f"did you mean {tmp_path / 'demo.inv'}?" in run("stats", tmp_path / "demo", code=1).err


def test_store_errors_name_the_folder(tmp_path: Path) -> None:
    from derivlang.store.manifest import Derived

    with pytest.raises(StoreError) as caught:
        Derived(tmp_path / "no")
    assert caught.value.where == str(tmp_path / "no")


def test_a_writer_that_fails_leaves_no_message_of_pyarrow(tmp_path: Path) -> None:
    """A second row group whose column cannot be cast: the writer is collected after its file is closed."""
    import gc
    import sys

    from derivlang.core.schema import Field, Schema, Side
    from derivlang.store.shards import ShardWriter

    ignored: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, ignored.append
    try:
        writer = ShardWriter(tmp_path / "x.parquet", Schema((Side(),), (Field("label", "value"),)))
        writer.write({"label": pa.array([1, 2])})
        with pytest.raises(pa.ArrowInvalid):
            writer.write({"label": pa.array(["no number"])})
        writer.close()
        del writer
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert ignored == []


def test_the_version_of_the_package_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in the manifest, and in what the manifest's hash covers; a run of another version goes on."""
    for kind in ("wiki", "trees"):
        source = getattr(commands, kind)(tmp_path)
        make("trans,perm", source, tmp_path / kind)
        monkeypatch.setattr("derivlang.engine.manifest.__version__", "9.9.9")
        make("trans,perm", source, tmp_path / f"{kind}2")
        again = counted(monkeypatch)
        make("trans,perm", source, tmp_path / kind)
        assert again.names == []
        one, two = snapshot(tmp_path / kind), snapshot(tmp_path / f"{kind}2")
        assert {name for name in one if one[name] != two[name]} == {"derivlang.json"}
        monkeypatch.undo()
        assert run("verify", tmp_path / f"{kind}2").code == 0
