"""How much memory there is for a training step on a processor, in containers too, and what is done with little."""

from __future__ import annotations

import gc
import resource
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.training import loader, micro_of, network, trained

torch = pytest.importorskip("torch")

from derivlang.core.errors import UsageError  # noqa: E402
from derivlang.training import memory  # noqa: E402
from derivlang.training.memory import SMALLER, available, kept_bytes, rows_that_fit  # noqa: E402
from tests.test_training_loop import Stop, stopping  # noqa: E402

GB = 1 << 30


def system(folder: Path, cgroup: str = "0::/\n", files: dict[str, dict[str, Any]] | None = None) -> int:
    """`available` on a machine with 20 GB free; files: of control groups, by folder."""
    for path, text in {
        "proc/meminfo": "MemTotal: 33554432 kB\nMemFree: 1 kB\nMemAvailable: 20971520 kB\n",
        "proc/self/cgroup": cgroup,
        "proc/self/status": "Name: python\nVmSize:\t 1048576 kB\n",
        **{
            f"cg/{place}/{name}": f"{value}\n"
            for place, group in (files or {}).items()
            for name, value in group.items()
        },
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return available(folder / "proc", folder / "cg")


def test_a_machine_without_limits(tmp_path: Path) -> None:
    assert system(tmp_path) == 20 * GB


@pytest.mark.parametrize(
    ("cgroup", "files", "free"),
    [
        ("0::/\n", {".": {"memory.max": 4 * GB, "memory.current": GB}}, 3 * GB),
        ("0::/a/b\n", {"a/b": {"memory.max": "max", "memory.current": GB}}, 20 * GB),
        ("0::/a/b\n", {"a": {"memory.max": 6 * GB, "memory.current": 2 * GB}}, 4 * GB),  # of the group above
        ("0::/host/path\n", {".": {"memory.max": 5 * GB, "memory.current": 0}}, 5 * GB),  # the host's path, inside
        ("0::/\n", {".": {"memory.max": 4 * GB, "memory.current": 4 * GB, "memory.stat": f"inactive_file {GB}"}}, GB),
        ("5:cpu:/\n4:memory:/x\n", {"memory/x": {"memory.limit_in_bytes": 2 * GB, "memory.usage_in_bytes": GB}}, GB),
        ("4:memory:/\n", {"memory": {"memory.limit_in_bytes": 1 << 62, "memory.usage_in_bytes": GB}}, 20 * GB),
        ("0::/\n", {".": {"memory.max": GB, "memory.current": 2 * GB}}, 0),
    ],
)
def test_a_container(tmp_path: Path, cgroup: str, files: dict[str, dict[str, Any]], free: int) -> None:
    assert system(tmp_path, cgroup, files) == free


def test_ulimit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less what is taken of the address space already: 1 GB."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (5 * GB, resource.RLIM_INFINITY))
    assert system(tmp_path) == 4 * GB


def test_this_machine_has_some() -> None:
    assert 0 < available() < 1 << 50


def test_rows_take_memory_in_proportion() -> None:
    """And the weights do not count among what rows take."""

    def kept(batch: int) -> tuple[int, Any]:
        net, made = network("mlm", "modernbert", batch_size=batch)
        return kept_bytes(net, micro_of(made)), net

    (two, net), (eight, _) = kept(2), kept(8)
    assert 3 * two < eight < 5 * two
    rows = [rows_that_fit(net, lambda n: loader(batch_size=n), free) for free in (0, 50_000_000, 100_000_000)]
    assert rows[0] == 0 < rows[1] < rows[2]


def test_counting_what_is_kept_keeps_nothing() -> None:
    net, made = network("mlm", "modernbert", batch_size=2)
    outputs: list[weakref.ref[torch.Tensor]] = []
    for module in net.modules():
        module.register_forward_hook(
            lambda module, given, out: outputs.append(weakref.ref(out)) if isinstance(out, torch.Tensor) else None
        )
    kept_bytes(net, micro_of(made))
    gc.collect()
    assert len(outputs) > 10
    assert [out for out in outputs if out() is not None] == []


def test_what_a_step_takes_besides_its_rows_counts_once() -> None:
    """The dictionary of align-mlm is in each step, however few rows it has."""

    def fitting(objective: str, free: int) -> int:
        net, _ = network(objective, "modernbert")
        return rows_that_fit(net, lambda n: loader(objective, batch_size=n), free)

    free = 200_000_000
    assert 0.9 < fitting("align-mlm", free) / fitting("mlm", free) <= 1


def test_pretraining_refuses_a_step_that_does_not_fit_and_names_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    for free, fix in ((300_000, SMALLER), (5_000_000, "--accumulate 4: as many rows per step, 16 at once")):
        monkeypatch.setattr(memory, "available", lambda free=free: free)
        with pytest.raises(UsageError, match="64 rows of 32 sub-words do not fit into the") as caught:
            trained(run, steps=2, batch_size=64)
        assert (caught.value.id, caught.value.fix) == ("memory", fix)
        assert not run.exists()
    trained(run, steps=2, batch_size=64, accumulate=4)


def test_a_run_that_goes_on_keeps_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Stop):
        trained(tmp_path / "run", logged=stopping(4))
    monkeypatch.setattr(memory, "available", lambda: 300_000)
    with pytest.raises(UsageError, match="free some memory"):
        trained(tmp_path / "run", resume=True)
    monkeypatch.undo()
    assert trained(tmp_path / "run", resume=True)["steps"] == 6
