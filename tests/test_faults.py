"""What `python -m tests.faults` tries at length, in short: kills, damages, two runs at once, sources, disks."""

from __future__ import annotations

import os
import random

import pytest

from tests import flaky_store
from tests.faults import around, damage, kills, ranks
from tests.faults.scenarios import SCENARIOS, Scenario

# The last operations of a run put the set in its place: each of them is tried; of the rest, the one in the middle.
# (A kill at the first one leaves nothing.)
LAST = 8


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if not one.slow], ids=lambda scenario: scenario.name)
def test_a_killed_run_goes_on(scenario: Scenario) -> None:
    total = kills.points(scenario)
    chosen = {total // 2, *range(max(0, total - (LAST if scenario.older else 1)), total)}
    faults = [(o.point, o.fault) for point in sorted(chosen) if (o := kills.killed_at(scenario, point)).fault]
    assert not faults


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_killed_anywhere_goes_on(scenario: Scenario) -> None:
    """At each of its file operations."""
    outcomes = [kills.killed_at(scenario, point) for point in range(kills.points(scenario))]
    assert not [(o.point, o.fault) for o in outcomes if o.fault]


@pytest.mark.parametrize("seed", range(2))
def test_no_worker_outlives_a_killed_run(seed: int) -> None:
    assert kills.worker_killed(random.Random(seed)).fault is None


_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="commands run in forked children")


@_forks
def test_five_kills_of_ranks_that_count() -> None:
    """Of one set."""
    with ranks.folder() as place:
        assert ranks.Campaign(place, random.Random(5), defer=True).run(5) is None


@pytest.mark.slow
@_forks
@pytest.mark.parametrize("defer", [False, True])
@pytest.mark.parametrize("where", ["a folder", "a store that fails"])
def test_a_hundred_kills_of_ranks(where: str, defer: bool) -> None:
    """Of what plans, of ranks, of what finishes, of workers and of the process that started them."""
    if where == "a folder":
        with ranks.folder() as place:
            assert ranks.Campaign(place, random.Random(1), defer).run(90, workers=10) is None
        return
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    with ranks.store(every=10) as (bucket, server):
        assert ranks.Campaign(bucket, random.Random(2), defer).run(90, workers=10) is None
        spoiled = server.asked()[1]
    assert set(spoiled) == set(flaky_store.FAULTS)


@pytest.mark.parametrize("name", damage.DAMAGES)
def test_damage_is_found(name: str) -> None:
    """Each kind of damage, at three random places."""
    assert not [missed for seed in range(3) if (missed := damage.tried(name, seed))]


@pytest.mark.parametrize("specs", [("trans,inv", "perm"), ("inv", "inv")], ids=["two plans", "one plan"])
def test_two_runs_in_one_folder(specs: tuple[str, str]) -> None:
    assert around.two_runs(specs, 0) is None


@pytest.mark.parametrize("change", around.CHANGES)
def test_a_source_that_changes(change: str) -> None:
    assert not [fault for seed in range(3) if (fault := around.changing_source(change, seed))]


needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


@needs_mount
@pytest.mark.parametrize("kilobytes", [40, 100, 160, 400])
def test_a_full_disk(kilobytes: int) -> None:
    try:
        assert around.full_disk(kilobytes) is None
    except OSError as error:
        pytest.skip(str(error))


@needs_mount
def test_a_read_only_disk() -> None:
    try:
        assert around.read_only_disk() is None
    except OSError as error:
        pytest.skip(str(error))
