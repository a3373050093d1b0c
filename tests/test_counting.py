"""Plans that are deferred: ranks hash and count the source, and the set is that of `make`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from derivlang.core.seal import sealed
from derivlang.engine import counting, ranks
from derivlang.parsing.model import PACKAGE
from derivlang.store.storage import Store
from tests import commands
from tests.commands import make, run, snapshot, written
from tests.test_ranks import SOURCES, SPEC, TEXT, text, whole

__all__ = ["text", "whole"]  # fixtures
PLAN = ".derivlang/plan.json"
SMALL = ("--shard-tokens", 100)


def counts(out: Path) -> bool:
    """Whether ranks have something to count."""
    return (out / PLAN).exists() and json.loads((out / PLAN).read_text("utf-8")).get("stage") == "count"


def deferred(source: object, out: Path, *options: object, spec: str = SPEC) -> int:
    """Plan a set later; the number of tasks to count."""
    told = run("plan", "--t", spec, source, "-o", out, "--json", "--defer", *options).json
    assert (told["stage"], told["plan"]) == ("count", None)
    count: int = told["tasks"]
    return count


def worked(out: Path, world: int = 1, *options: object) -> dict[str, int]:
    """Run every rank, the last one first; the sums of what they report."""
    done = [run("work", out, "--rank", r, "--world", world, "--json", *options).json for r in reversed(range(world))]
    return {name: sum(one[name] for one in done) for name in ("counted", "made", "found")}


def clock(monkeypatch: pytest.MonkeyPatch, now: list[float], sleep: Callable[[float], None] | None = None) -> None:
    """Give ranks a time of their own, in which a sleep takes 250 seconds; locks and other threads keep the real one."""
    sleep = sleep or (lambda seconds: now.__setitem__(0, now[0] + 250))
    own = vars(time) | {"monotonic": lambda: now[0], "sleep": sleep}
    monkeypatch.setattr(ranks, "time", SimpleNamespace(**own))


def rows_only(snapshot: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in snapshot.items() if not name.startswith(".")}


@pytest.mark.parametrize(
    ("name", "world"), list(zip(sorted(SOURCES.keys() - {"trees that are parsed"}), cycle([1, 2, 7]), strict=False))
)
def test_every_file_is_that_of_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, world: int) -> None:
    given, build, options = SOURCES[name]
    monkeypatch.chdir(tmp_path)
    spec = given if isinstance(given, str) else given(tmp_path)
    source = build(tmp_path)
    if isinstance(source, Path):
        source = source.relative_to(tmp_path)
    make(spec, source, tmp_path / "made", *options)
    wanted = snapshot(tmp_path / "made")
    out = tmp_path / "out"
    tasks = deferred(source, out, *options, spec=spec)
    assert not list((out / ".derivlang").rglob("*.record"))
    monkeypatch.chdir("/")
    assert worked(out, world, "--stage", "count") == {"counted": tasks, "made": 0, "found": 0}
    assert not counts(out)
    made = worked(out, world)
    assert (made["counted"], made["made"] > 0) == (0, True)
    run("finish", out)
    monkeypatch.chdir(tmp_path)
    assert snapshot(out) == wanted


@pytest.mark.parametrize("split", ["test", "train"])
def test_the_split_of_the_lexicon_is_counted_whole(tmp_path: Path, split: str) -> None:
    """It may be none of those that are made, and no limit holds for it."""
    folder = written(tmp_path / "in" / "train.txt", TEXT).parent
    written(folder / "test.txt", TEXT.upper())
    options = ("--splits", split, "--limit", 7)
    make(SPEC, folder, tmp_path / "made", *options)
    deferred(folder, tmp_path / "out", *options)
    worked(tmp_path / "out")
    run("finish", tmp_path / "out")
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "made")


def test_a_saved_lexicon(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    saved = ("--lexicon", tmp_path / "whole" / "lexicon.tsv", *SMALL)
    make(SPEC, text, tmp_path / "made", *saved)
    deferred(text, tmp_path / "out", *saved)
    worked(tmp_path / "out", 1)
    run("finish", tmp_path / "out")
    assert snapshot(tmp_path / "out") == snapshot(tmp_path / "made")


def test_ranks_wait_for_each_other(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    tasks = deferred(text, out, *SMALL)
    lines = [commands.command_line("work", out, "--rank", rank, "--world", 3, "--json") for rank in range(3)]
    processes = []
    for line in lines:
        processes.append(subprocess.Popen(line, env=commands.environment(), stdout=subprocess.PIPE))
        time.sleep(0.2)
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert sum(one["counted"] for one in told) >= tasks
    assert sum(one["made"] for one in told) == 6
    run("finish", out)
    assert snapshot(out) == whole


def test_a_rank_that_does_not_wait(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    for options in (("--rank", 1, "--no-wait"), ("--rank", 0, "--stage", "derive", "--no-wait")):
        ran = run("work", out, "--world", 2, *options, code=75)
        assert "3 tasks not counted yet" in ran.err
        assert "[unfinished]" in ran.err
    assert "[unfinished]" in run("finish", out, code=1).err
    assert run("work", out, "--rank", 0, "--world", 2, "--stage", "count", "--json").json["counted"] == 3
    assert worked(out, 2, "--no-wait") == {"counted": 0, "made": 6, "found": 0}
    run("finish", out)
    assert snapshot(out) == whole


@pytest.mark.parametrize("stage", ["count", "derive"])
def test_another_rank_plans_when_the_last_one_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes], stage: str
) -> None:
    out, prepare = tmp_path / "out", ranks.prepare
    deferred(text, out, *SMALL)

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ranks, "prepare", killed)
    run("work", out, "--rank", 0, "--world", 1, code=130)
    assert counts(out)
    monkeypatch.setattr(ranks, "prepare", prepare)
    assert run("work", out, "--rank", 1, "--world", 2, "--json", "--stage", stage).json["counted"] == 0
    assert not counts(out)
    worked(out)
    run("finish", out)
    assert snapshot(out) == whole


def test_who_waits_plans_when_the_last_rank_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    out, looks, sleeps = tmp_path / "out", [0.0], []
    deferred(text, out, *SMALL)

    def passes(seconds: float) -> None:
        sleeps.append(seconds)
        looks[0] += 400
        if len(sleeps) == 2:  # rank 1 counts the last task, and dies before it plans
            with monkeypatch.context() as patch:
                patch.setattr(ranks, "prepare", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
                run("work", out, "--rank", 1, "--world", 2, code=130)

    clock(monkeypatch, looks, passes)
    assert run("work", out, "--rank", 0, "--world", 2, "--json").json["made"] == 3
    assert len(sleeps) == 2
    worked(out)
    run("finish", out)
    assert snapshot(out) == whole


def test_who_waits_counts_for_a_rank_that_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    out, now = tmp_path / "out", [0.0]
    deferred(text, out, *SMALL)
    clock(monkeypatch, now)
    ran = run("work", out, "--rank", 0, "--world", 2, "--json")
    assert (ran.json["counted"], ran.json["made"], now[0]) == (6, 3, 750)
    assert ran.err.count("3 tasks not counted yet, the first: test-00001-of-00006; waiting for other ranks") == 1
    worked(out)
    run("finish", out)
    assert snapshot(out) == whole


def test_who_waits_fails_as_the_rank_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path) -> None:
    """And does not wait for ever."""
    out, now = tmp_path / "out", [0.0]
    deferred(text, out, *SMALL)

    def passes(seconds: float) -> None:
        now[0] += 250
        os.utime(text, ns=(1, 1))

    clock(monkeypatch, now, passes)
    assert "[source-changed]" in run("work", out, "--rank", 0, "--world", 2, code=1).err


@pytest.mark.parametrize("command", ["make", "plan"])
def test_no_other_set_is_begun_beside_the_counts(
    tmp_path: Path, text: Path, whole: dict[str, bytes], command: str
) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    run("work", out, "--rank", 0, "--world", 2, "--stage", "count")
    for spec, more in (("inv", ()), (SPEC, ("--limit", 3))):
        ran = run(command, "--t", spec, text, "-o", out, *SMALL, *more, code=1)
        assert "begun, but not finished" in ran.err
        assert "[other-plan]" in ran.err
    assert len(list(out.rglob("*.record"))) == 3
    worked(out)
    run("finish", out)
    assert snapshot(out) == whole


@pytest.mark.parametrize("command", ["make", "plan"])
def test_a_rank_whose_set_was_replaced_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, command: str
) -> None:
    out, count = tmp_path / "out", counting.count_vocabulary
    deferred(text, out, *SMALL)

    def replaced(*given: Any) -> Any:
        monkeypatch.setattr(counting, "count_vocabulary", count)
        run(command, "--t", "perm", text, "-o", out, "--shard-tokens", 200, "--force")
        return count(*given)

    monkeypatch.setattr(counting, "count_vocabulary", replaced)
    ran = run("work", out, "--rank", 0, "--world", 1, "--json")
    assert "another set has been begun here, so this rank ends" in ran.err
    assert (ran.json["counted"], ran.json["made"]) == (0, 0)


def test_a_saved_lexicon_that_does_not_fit_is_refused_at_once(tmp_path: Path, text: Path) -> None:
    make("trans:overlap=20,perm", text, tmp_path / "other")
    saved = tmp_path / "other" / "lexicon.tsv"
    ran = run("plan", "--t", SPEC, text, "-o", tmp_path / "out", "--defer", "--lexicon", saved, code=None)
    assert "[other-lexicon]" in ran.err
    assert not (tmp_path / "out").exists()


def test_a_link_to_a_plan_counts_nothing(tmp_path: Path, text: Path) -> None:
    """Somebody else may make it who knows only its path."""
    deferred(text, tmp_path / "mine", *SMALL)
    theirs = tmp_path / "theirs" / ".derivlang"
    theirs.mkdir(parents=True)
    (theirs / "plan.json").symlink_to(tmp_path / "mine" / PLAN)
    assert "[trust]" in run("work", theirs.parent, "--rank", 0, "--world", 1, code=2).err
    assert [path.name for path in theirs.iterdir()] == ["plan.json"]


def test_a_kill_between_the_plan_and_the_removal_of_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    out, remove = tmp_path / "out", Store.remove
    deferred(text, out, *SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "remove", lambda self, *names: remove(self, *names) if counts(out) else None)
        worked(out, 1, "--stage", "count")
    assert len(list(out.rglob("*.record"))) == 6
    assert run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--defer", "--json").json["stage"] == "derive"
    assert worked(out)["counted"] == 0
    run("finish", out)
    assert snapshot(out) == whole


def test_a_late_rank_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    """Others have counted its task and finished the set meanwhile."""
    out, count = tmp_path / "out", counting.count_vocabulary
    deferred(text, out, *SMALL)

    def late(*given: Any) -> Any:
        monkeypatch.setattr(counting, "count_vocabulary", count)
        worked(out)
        run("finish", out)
        return count(*given)

    monkeypatch.setattr(counting, "count_vocabulary", late)
    run("work", out, "--rank", 0, "--world", 1)
    assert snapshot(out) == whole
    assert not (out / ".derivlang").exists()


def test_planning_again(tmp_path: Path, text: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    tasks = deferred(text, out, *SMALL)
    run("work", out, "--rank", 0, "--world", 2, "--stage", "count")
    assert "6 tasks to count first, 3 of them done" in run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--defer").out
    monkeypatch.chdir(text.parent)
    run("plan", "--t", SPEC, f"./{text.name}", "-o", out, *SMALL, "--defer")  # the same source
    other = run("plan", "--t", "perm", text, "-o", out, "--defer", code=1).err
    assert "begun, but not finished" in other
    assert "[other-plan]" in other
    run("plan", "--t", "perm", text, "-o", out, "--defer", "--force")
    assert deferred(text, out, *SMALL, "--force") == tasks
    worked(out)
    # the plan that was made of the counts goes on, whatever `--force` says
    for more in ((), ("--force",)):
        again = run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--defer", "--json", *more).json
        assert (again["stage"], again["tasks"], again["done"]) == ("derive", 6, 6)
    assert "[other-plan]" in run("plan", "--t", "perm", text, "-o", out, "--defer", code=1).err
    run("finish", out)
    assert snapshot(out) == whole
    assert "already complete" in run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--defer").err


def test_an_older_set_stays_until_the_new_one_is_finished(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    make("inv", text, out)
    older = snapshot(out)
    assert "[other-plan]" in run("plan", "--t", SPEC, text, "-o", out, "--defer", code=1).err
    deferred(text, out, *SMALL, "--force")
    assert rows_only(snapshot(out)) == older
    assert "[unfinished]" in run("finish", out, code=1).err
    worked(out)
    assert rows_only(snapshot(out)) == older
    run("finish", out)
    assert snapshot(out) == whole


def test_make_goes_on_without_the_counts(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    run("work", out, "--rank", 0, "--world", 2, "--stage", "count")
    make(SPEC, text, out, *SMALL)
    assert snapshot(out) == whole
    deferred(text, out, *SMALL, "--force")
    run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--force")
    assert not counts(out)


@pytest.mark.parametrize("when", ["count", "derive"])
def test_a_file_that_changed_since_the_plan(tmp_path: Path, text: Path, when: str) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    if when == "derive":
        worked(out, 1, "--stage", "count")
    os.utime(text, ns=(1, 1))
    if when == "derive":  # the same content
        worked(out)
        run("finish", out)
        return
    ran = run("work", out, "--rank", 0, "--world", 1, code=1)
    assert f"{text}: this is not the file that was planned" in ran.err
    assert "[source-changed]" in ran.err
    assert "[other-plan]" in run("plan", "--t", SPEC, text, "-o", out, *SMALL, "--defer", code=1).err
    deferred(text, out, *SMALL, "--force")
    assert worked(out)["made"] == 6


def test_a_file_that_changes_while_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path) -> None:
    out, count = tmp_path / "out", counting.count_vocabulary

    def changes(*given: Any) -> Any:
        with text.open("a") as file:
            file.write(" One more . \n")
        return count(*given)

    deferred(text, out, *SMALL)
    monkeypatch.setattr(counting, "count_vocabulary", changes)
    assert "[source-changed]" in run("work", out, "--rank", 0, "--world", 1, code=1).err
    assert not list(out.rglob("*.record"))


@pytest.mark.parametrize("damage", ["cut", "of another task"])
def test_a_damaged_record_is_counted_again(tmp_path: Path, text: Path, whole: dict[str, bytes], damage: str) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    run("work", out, "--rank", 0, "--world", 2, "--stage", "count")
    first, second, _ = sorted(out.rglob("*.record"))
    first.write_bytes(first.read_bytes()[:-3] if damage == "cut" else second.read_bytes())
    assert worked(out, 2, "--stage", "count")["counted"] == 4
    worked(out)
    run("finish", out)
    assert snapshot(out) == whole


def test_somebody_elses_plan_counts_nothing_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path
) -> None:
    out = tmp_path / "out"
    deferred(text, out, *SMALL)
    monkeypatch.setattr(ranks, "_is_mine", lambda path: False)
    ran = run("work", out, "--rank", 0, "--world", 1, code=2)
    assert "--trust" in ran.err
    assert "[trust]" in ran.err
    assert not list(out.rglob("*.record"))
    assert worked(out, 1, "--trust")["made"] == 6


@pytest.mark.parametrize("defer", [(), ("--defer",)])
def test_ranks_parse(tmp_path: Path, text: Path, defer: tuple[str, ...]) -> None:
    """The source with trees is that of `parse`, and its sets are, too."""
    run("parse", text, "-o", tmp_path / "whole", "--shard-tokens", 300)
    out = tmp_path / "out"
    run("plan", "--parse", text, "-o", out, "--shard-tokens", 300, *defer)
    worked(out, 3, "--stage", "count")
    assert worked(out, 3)["made"] == 2
    run("finish", out)
    assert snapshot(out) == snapshot(tmp_path / "whole")
    assert "[other-plan]" in run("plan", "--t", "inv", text, "-o", out, code=1).err


@pytest.mark.parametrize("parser", ["english/", "spacy:../model", "a/b"])
def test_a_plan_names_no_folder_of_a_parser(tmp_path: Path, text: Path, parser: str) -> None:
    out = tmp_path / "out"
    run("plan", "--parse", text, "-o", out)
    plan = json.loads((out / PLAN).read_text("utf-8"))
    plan["job"]["parser"] = parser
    written(out / PLAN, json.dumps(sealed(plan)))
    ran = run("work", out, "--rank", 0, "--world", 1, code=1)
    assert f'parser is "{parser}"' in ran.err
    assert "[plan]" in ran.err


def test_a_parser_in_a_folder_parses_without_ranks(tmp_path: Path, text: Path) -> None:
    folder = tmp_path / "english"
    shutil.copytree(PACKAGE / "english", folder)
    ran = run("plan", "--parse", text, "-o", tmp_path / "out", "--parser", folder, code=2)
    assert "[parser-name]" in ran.err
    assert not (tmp_path / "out").exists()


def test_one_of_two_is_planned(tmp_path: Path, text: Path) -> None:
    assert "[usage]" in run("plan", text, "-o", tmp_path / "out", code=2).err
    assert "[two-options]" in run("plan", text, "-o", tmp_path / "out", "--parse", "--t", "inv", code=2).err


def test_trees_are_parsed_first(tmp_path: Path, text: Path) -> None:
    ran = run("plan", "--t", "syn:fr", text, "-o", tmp_path / "out", "--defer", code=2)
    assert "derivlang parse" in ran.err
    assert "[defer]" in ran.err
    assert not (tmp_path / "out").exists()


def values(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values of a JSON value."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for name, one in items:
        yield (*path, name)
        yield from values(one, (*path, name))


def test_a_plan_with_values_of_other_types_is_one_message(tmp_path: Path, text: Path) -> None:
    """Each place has three of seven values, in turn."""
    out, kinds = tmp_path / "out", cycle((None, -1, "x", [], {}, [1], True))
    deferred(text, out, "--shard-tokens", 300)
    whole = (out / PLAN).read_text("utf-8")
    for path, other in ((path, other) for path in values(json.loads(whole)) for other in islice(kinds, 3)):
        plan = json.loads(whole)
        place = plan
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = other
        written(out / PLAN, json.dumps(sealed(plan)))
        ran = run("work", out, "--rank", 0, "--world", 1, "--no-wait", "--stage", "count", code=None)
        assert ran.code in (0, 1, 2, 75), (path, other)
        assert "Traceback" not in ran.err, (path, other)
        for record in out.rglob("*.record"):
            record.unlink()
        (out / PLAN).unlink(missing_ok=True)
