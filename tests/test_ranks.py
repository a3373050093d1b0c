"""`plan`, `work` and `finish`: every file equal to that of `make`, whoever ran which task, and how often."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import derivlang
from derivlang.core.errors import DataError
from derivlang.core.seal import sealed
from derivlang.engine import engines, ranks
from derivlang.engine.job import Events, Job, ShardTask
from derivlang.store.making import Target
from derivlang.store.shards import ShardWriter
from tests import commands
from tests.commands import Copy, make, once, run, shards, snapshot, spawn, wiki, written

TEXT = "".join(f" Line {i} of the text has some words , {i % 7} . And more ! \n" for i in range(60))
SPEC = "trans:overlap=30,perm"


def planned(spec: str, source: object, out: Path, *options: object) -> int:
    """Plan a set; the number of its tasks."""
    count: int = run("plan", "--t", spec, source, "-o", out, "--json", *options).json["tasks"]
    return count


def worked(out: Path, world: int = 1) -> int:
    """Run every rank, the last one first; the number of tasks that were made."""
    done = [run("work", out, "--rank", rank, "--world", world, "--json").json for rank in reversed(range(world))]
    return sum(one["made"] for one in done)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return wiki(tmp_path, TEXT)


@once
def _whole(folder: Path) -> None:
    make(SPEC, wiki(folder, TEXT), folder / "whole", "--shard-tokens", 100)


@pytest.fixture
def whole(tmp_path: Path, text: Path) -> dict[str, bytes]:
    """The set that `make` makes of the text."""
    _whole(tmp_path)
    return snapshot(tmp_path / "whole")


def jsonl(folder: Path) -> Path:
    rows = [{"tokens": f"It is row {i} .".split(), "ner_tags": ["O"] * 4 + ["B-X"]} for i in range(1000)]
    return written(folder / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def parquet(folder: Path) -> Path:
    import pyarrow.parquet as pq

    table = pa.table({"premise": [f"Is it {i} ?" for i in range(500)], "hypothesis": ["It is ."] * 500})
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    return folder / "a.parquet"


def derived(folder: Path) -> Path:
    make("trans:overlap=20,inv", wiki(folder, TEXT), folder / "first", "--shard-tokens", 100)
    return folder / "first"


def lexicon(folder: Path) -> str:
    written(folder / "lex.tsv", "line\tligne\ntext\ttexte\n")
    return f'lex:"{folder / "lex.tsv"}",inv'


SOURCES: dict[str, tuple[str | Callable[[Path], str], Callable[[Path], object], tuple[object, ...]]] = {
    "tokens": (SPEC, lambda folder: wiki(folder, TEXT), ("--shard-tokens", 100)),
    "raw text, two files": (
        "trans,inv",
        lambda folder: written(folder / "in/a.txt", TEXT).parent if written(folder / "in/b.txt", TEXT) else folder,
        ("--shard-tokens", 300),
    ),
    "a limit": (SPEC, lambda folder: wiki(folder, TEXT), ("--limit", 7)),
    "entities in JSON lines": ("trans,perm", jsonl, ("--shard-tokens", 1250)),
    "pairs in Parquet": ("perm", parquet, ("--shard-tokens", 400)),
    "a treebank": ("trans,inv", commands.trees, ()),
    "questions": ("inv", commands.questions, ()),
    "a derived set": ("perm", derived, ()),
    "a generated source": ("trans,inv", lambda folder: "source:zipf=50:n=400", ("--shard-tokens", 500)),
    "a named source": ("case:nom-acc,inv", lambda folder: "demo", ()),
    "a dictionary": (lexicon, lambda folder: wiki(folder, TEXT), ("--shard-tokens", 100)),
    "trees that are parsed": ("syn:fr", lambda folder: wiki(folder, TEXT), ("--limit", 5)),
    "drawn in sequence": ("shuffle:final=move:rng=numpy:seed=0", lambda folder: wiki(folder, TEXT), ()),
}


@pytest.mark.parametrize(("name", "world"), list(zip(SOURCES, cycle([7, 1, 2]), strict=False)))
def test_every_file_is_that_of_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, world: int) -> None:
    given, build, options = SOURCES[name]
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    monkeypatch.chdir(tmp_path)
    spec = given if isinstance(given, str) else given(tmp_path)
    source = build(tmp_path)
    if isinstance(source, Path):
        source = source.relative_to(tmp_path)  # ranks have other working folders
    make(spec, source, tmp_path / "made", *options)
    wanted = snapshot(tmp_path / "made")
    out = tmp_path / "out"
    tasks = planned(spec, source, out, *options)
    monkeypatch.chdir("/")
    assert worked(out, world) == tasks
    assert worked(out, world) == 0
    run("finish", out)
    monkeypatch.chdir(tmp_path)
    assert snapshot(out) == wanted


def test_in_python(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    told = derivlang.plan(text, SPEC, tmp_path / "out", shard_tokens=100)
    assert told["tasks"] == len(list((tmp_path / "whole" / "data").iterdir()))
    assert derivlang.work(tmp_path / "out", rank=0, world=1)["made"] == told["tasks"]
    assert derivlang.finish(tmp_path / "out").manifest == derivlang.DerivedSet(tmp_path / "whole").manifest
    assert snapshot(tmp_path / "out") == whole


def test_make_goes_on_with_what_ranks_have_made(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    run("work", out, "--rank", 0, "--world", 2)
    done = {path.name: path.stat().st_mtime_ns for path in shards(out)}
    make(SPEC, text, out, "--shard-tokens", 100)
    assert {path.name: path.stat().st_mtime_ns for path in shards(out) if path.name in done} == done
    assert snapshot(out) == whole


def test_ranks_go_on_with_what_make_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    from tests.test_store import counted

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        counted(patch, 2)
        run("make", "--t", SPEC, text, "-o", out, "--shard-tokens", 100, code=130)
    assert "begun by `derivlang make`" in run("work", out, "--rank", 0, "--world", 1, code=1).err
    tasks = planned(SPEC, text, out, "--shard-tokens", 100)
    assert worked(out, 2) == tasks - 2
    run("finish", out)
    assert snapshot(out) == whole


def test_planning_again_keeps_what_is_done(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    tasks = planned(SPEC, text, out, "--shard-tokens", 100)
    run("work", out, "--rank", 1, "--world", 3)
    again = run("plan", "--t", SPEC, text, "-o", out, "--shard-tokens", 100)
    assert f"{tasks} tasks, {len(range(1, tasks, 3))} of them done" in again.out
    assert worked(out, 4) == tasks - len(range(1, tasks, 3))
    run("finish", out)
    assert snapshot(out) == whole
    for command in (("plan", "--t", SPEC, text, "-o", out, "--shard-tokens", 100), ("finish", out)):
        assert "already complete" in run(*command).err
    assert "already complete" in run("work", out, "--rank", 0, "--world", 1).err
    assert snapshot(out) == whole


def test_what_is_lost_or_damaged_is_made_again(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    worked(out)
    first, second, third, *_ = shards(out)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1] + b"x")
    (third.parents[1] / f"{third.stem}.record").write_bytes(b"")
    ran = run("finish", out, code=1)
    assert f"3 tasks not done yet, the first: {first.stem}" in ran.err
    assert "[unfinished]" in ran.err
    assert worked(out, 2) == 3
    run("finish", out)
    assert snapshot(out) == whole


def test_an_older_set_stays_until_the_new_one_is_finished(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    make("inv", text, out)
    before = snapshot(out)
    assert "[other-plan]" in run("plan", "--t", SPEC, text, "-o", out, code=1).err
    planned(SPEC, text, out, "--shard-tokens", 100, "--force")
    worked(out)
    assert {name: content for name, content in snapshot(out).items() if not name.startswith(".")} == before
    for other in (("make", "--t", "perm"), ("plan", "--t", "perm")):
        assert "other-plan" in run(*other, text, "-o", out, code=1).err
    run("finish", out)
    assert snapshot(out) == whole


def test_a_late_rank_of_a_plan_that_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    """It writes to the stage of its own plan, which the next set removes."""
    out, run_task = tmp_path / "out", ranks.run_task
    planned("inv", text, out, "--shard-tokens", 60)

    def late(*given: Any) -> Any:
        monkeypatch.setattr(ranks, "run_task", run_task)
        planned(SPEC, text, out, "--shard-tokens", 100, "--force")
        worked(out)
        if when == "before":
            run_task(*given)
        run("finish", out)
        return run_task(*given)

    for when in ("before", "after"):  # noqa: B007 (`late` looks at it)
        monkeypatch.setattr(ranks, "run_task", late)
        run("work", out, "--rank", 0, "--world", 1, code=None)
        assert {n: c for n, c in snapshot(out).items() if not n.startswith(".derivlang/")} == whole
        make(SPEC, text, out, "--shard-tokens", 100)
        assert snapshot(out) == whole
        shutil.rmtree(out)
        planned("inv", text, out, "--shard-tokens", 60)


def test_planning_again_beside_a_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    out, write = tmp_path / "out", ShardWriter.write

    def slow(self: ShardWriter, columns: Any) -> None:
        monkeypatch.setattr(ShardWriter, "write", write)
        write(self, columns)
        planned(SPEC, text, out, "--shard-tokens", 100)

    planned(SPEC, text, out, "--shard-tokens", 100)
    monkeypatch.setattr(ShardWriter, "write", slow)
    assert worked(out) == 6
    run("finish", out)
    assert snapshot(out) == whole


def failing(job: Job, task: ShardTask, target: Target) -> tuple[str, int]:
    raise DataError("the disk of the source is gone")


def test_a_failed_command_leaves_a_plan_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    with monkeypatch.context() as patched:
        patched.setattr(engines, "run_task", failing)
        run("make", "--t", SPEC, text, "-o", out, "--shard-tokens", 100, code=1)
    assert worked(out) == 6
    run("finish", out)
    assert snapshot(out) == whole


def test_a_finished_set_that_lost_a_shard_is_planned_again(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    make(SPEC, text, out, "--shard-tokens", 100)
    shards(out)[1].unlink()
    assert planned(SPEC, text, out, "--shard-tokens", 100) == 6
    assert worked(out) == 6
    run("finish", out)
    assert snapshot(out) == whole


@pytest.mark.parametrize("damage", ["plan", "manifest"])
def test_damage_beside_an_older_set(tmp_path: Path, text: Path, whole: dict[str, bytes], damage: str) -> None:
    out = tmp_path / "out"
    make("inv", text, out)
    planned(SPEC, text, out, "--shard-tokens", 100, "--force")
    worked(out)
    if damage == "plan":
        path = out / ".derivlang" / "plan.json"
        path.write_bytes(path.read_bytes()[:-10])
        assert "[not-planned]" in run("finish", out, code=1).err
        planned(SPEC, text, out, "--shard-tokens", 100, "--force")
    else:
        written(out / "derivlang.json", "{}")
    assert worked(out) == 0
    run("finish", out)
    assert snapshot(out) == whole


def test_a_kill_while_the_set_is_put_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, whole: dict[str, bytes]
) -> None:
    """After any number of steps, no task runs again."""
    out, replace = tmp_path / "out", Path.replace
    for steps in range(12):
        make("inv", text, out, "--force")
        planned(SPEC, text, out, "--shard-tokens", 100, "--force")
        worked(out)
        left = steps

        def killed(self: Path, target: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", killed)
            run("finish", out, code=None)
        assert worked(out) == 0
        run("finish", out)
        assert snapshot(out) == whole


def test_two_ranks_that_run_the_same_tasks(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    line = commands.command_line("work", out, "--rank", 0, "--world", 1)
    both = [subprocess.Popen(line, env=commands.environment(), stderr=subprocess.PIPE) for _ in range(2)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in both] == [(b"", 0)] * 2
    run("finish", out)
    assert snapshot(out) == whole


def test_killed_ranks(tmp_path: Path) -> None:
    """Twelve kills of ranks, and of what finishes the set: the commands that are given again end with the same set."""
    rng = random.Random(3)
    words = [f"w{n}" for n in range(3000)]
    source = wiki(tmp_path, "".join(f" {' '.join(rng.choices(words, k=3000))} . \n" for _ in range(60)))
    make(SPEC, source, tmp_path / "whole", "--shard-tokens", 6000)
    out = tmp_path / "out"
    planned(SPEC, source, out, "--shard-tokens", 6000)
    kills = 0
    while kills < 12:
        last = kills >= 8
        if last:
            worked(out, 3)
        arguments = ("finish", out) if last else ("work", out, "--rank", kills % 3, "--world", 3)
        process = Copy(*arguments)
        time.sleep(rng.uniform(0.0, 0.6))
        os.kill(process.pid, signal.SIGKILL)
        assert "Traceback" not in process.wait().err
        kills += 1
        if (out / "derivlang.json").exists():
            assert snapshot(out).items() >= snapshot(tmp_path / "whole").items()
            shutil.rmtree(out)
            planned(SPEC, source, out, "--shard-tokens", 6000)
    worked(out, 3)
    run("finish", out)
    assert snapshot(out) == snapshot(tmp_path / "whole")


# Schedulers


def test_the_printed_commands_make_the_set(tmp_path: Path, text: Path, whole: dict[str, bytes]) -> None:
    """`sbatch` stands in for Slurm's: it runs each task of the array, with the variable that Slurm sets."""
    place = tmp_path / "my out"
    printed = run("plan", "--t", SPEC, text, "-o", place, "--shard-tokens", 100, "--world", 3).out
    sbatch, *_, finish = (line for line in printed.splitlines() if line.startswith(("sbatch", "derivlang finish")))
    stand_in = r"""#!/bin/sh
array=${1#--array=}
for task in $(seq ${array%-*} ${array#*-}); do
    env SLURM_ARRAY_TASK_ID=$task sh -c "$3" || exit
done
"""
    bin = tmp_path / "bin"
    written(bin / "sbatch", stand_in).chmod(0o755)
    (python,) = commands.command_line()[:1]
    written(bin / "derivlang", f'#!/bin/sh\nexec {python} -m derivlang "$@"\n').chmod(0o755)
    path = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    for line in (sbatch, finish):
        subprocess.run(line, shell=True, check=True, env=commands.environment(**path), stdout=subprocess.DEVNULL)
    assert snapshot(place) == whole


# Bad input


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("work", "OUT", "--rank", 4, "--world", 4), r"there is no rank 4 of 4 \[rank\].*ranks are 0 to 3"),
        (("work", "OUT", "--rank", -1, "--world", 4), "--rank"),
        (("work", "OUT", "--rank", 0, "--world", 0), "--world"),
        (("finish", "OUT"), r"6 tasks not done yet, the first: test-00000-of-00006 \[unfinished\]"),
        (("verify", "OUT"), r"this set is not finished.*\[unfinished\]"),
        (("work", "IN", "--rank", 0, "--world", 4), r"no set is planned here.*\[not-planned\]"),
        (("finish", "IN"), r"no set is planned here.*\[not-planned\]"),
        (("finish", "NOWHERE"), "does not exist|no set is planned here"),
    ],
)
def test_one_message(tmp_path: Path, text: Path, arguments: tuple[object, ...], told: str) -> None:
    out = tmp_path / "OUT"
    planned(SPEC, text, out, "--shard-tokens", 100)
    (tmp_path / "IN").mkdir()
    before = snapshot(tmp_path)
    places = {name: tmp_path / name for name in ("OUT", "IN", "NOWHERE")}
    ran = run(*(places.get(str(one), one) for one in arguments), code=None)
    assert ran.code in (1, 2)
    assert derived_message(ran.err, told)
    assert snapshot(tmp_path) == before


def derived_message(err: str, told: str) -> bool:
    import re

    return re.search(told, err, re.DOTALL) is not None and "Traceback" not in err


def edit(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a plan as somebody could who knows how it is sealed."""
    path = out / ".derivlang" / "plan.json"
    plan = json.loads(path.read_text("utf-8"))
    change(plan)
    written(path, json.dumps(sealed(plan)))


def test_a_source_that_changed_since_the_plan(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    written(text, TEXT.replace("text", "book"))
    assert "[source-changed]" in run("work", out, "--rank", 0, "--world", 1, code=1).err
    assert shards(out) == []
    written(text, TEXT)  # another time, the same content
    worked(out)
    run("finish", out)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a plan, and of every list and object."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in inside:
        yield from leaves(one, (*path, key))


def test_a_plan_with_values_of_other_types_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path
) -> None:
    """Each value in turn: a DerivlangError, or the change has no effect on what is read.

    Each place has three of eight values, in turn.
    """
    out = tmp_path / "out"
    kinds = cycle((7, None, "x", {"x": 1}, -1, [1], 1.5, True))
    planned("inv", jsonl(tmp_path), out, "--shard-tokens", 1250, "--limit", 20)
    path = out / ".derivlang" / "plan.json"
    plan = json.loads(path.read_text("utf-8"))
    told = []
    for place in leaves(plan):
        for value in islice(kinds, 3):
            changed = json.loads(json.dumps(plan))
            if not place:
                continue
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            written(path, json.dumps(sealed(changed)))
            try:
                ranks.work(out, 0, 1, Events(warn=told.append))
                ranks.finish(out, Events(warn=told.append))
            except derivlang.DerivlangError as error:
                told.append(str(error))
            for made in (*out.glob("[!.]*.*"), *out.glob("data/*"), *shards(out), *out.glob(".derivlang/*/*.record")):
                made.unlink(missing_ok=True)
            (out / ".derivlang").mkdir(exist_ok=True)
    assert len(told) > 200


def test_links_are_not_followed(tmp_path: Path, text: Path) -> None:
    victim, out = written(tmp_path / "victim" / "mine.txt", "mine").parent, tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    (stage,) = (path for path in (out / ".derivlang").iterdir() if path.is_dir())
    moved = stage.rename(tmp_path / "moved")
    for link, target in ((stage, moved), (out / "data", victim), (out / "files", victim)):
        link.symlink_to(target)
        for command in (("work", out, "--rank", 0, "--world", 1), ("finish", out)):
            ran = run(*command, code=1)
            assert "this is a link, so nothing is written there" in ran.err
        link.unlink()
        if moved.exists():
            moved.rename(stage)
    assert snapshot(victim) == {"mine.txt": b"mine"}


def test_a_rank_with_other_versions(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    edit(out, lambda plan: plan["facts"].update(numpy="1.0"))
    for command in (("work", out, "--rank", 0, "--world", 1), ("finish", out)):
        ran = run(*command, code=1)
        assert "would write other bytes: numpy is 1.0, not " in ran.err
        assert "[other-workers]" in ran.err
    edit(out, lambda plan: plan["facts"].update(numpy=np.__version__))
    assert worked(out) == 6
    edit(out, lambda plan: plan["facts"].update(numpy="1.0"))
    assert "6 tasks\n" in run("plan", "--t", SPEC, text, "-o", out, "--shard-tokens", 100).out
    assert worked(out) == 6  # one set has the shards of one version


def forged(secret: Path) -> dict[str, Callable[[dict[str, Any]], None]]:
    """Plans that somebody else wrote, to reach what is not theirs."""

    def name(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["test"][0]["name"] = "../../evil-00000-of-00001"

    def split(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["../../evil"] = plan["job"]["tasks"].pop("test")

    def file(plan: dict[str, Any]) -> None:
        plan["job"]["parts"][0]["path"] = str(secret)

    def no_stamp(plan: dict[str, Any]) -> None:
        file(plan)
        plan["job"]["parts"][0]["stamp"] = None

    def stamp(plan: dict[str, Any]) -> None:
        """Whoever may list a folder knows the stamps of its files."""
        file(plan)
        stat = secret.stat()
        seen = [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
        plan["job"]["parts"][0] |= {"stamp": seen, "sha256": "0" * 64}

    def spec(plan: dict[str, Any]) -> None:
        plan["job"]["spec"] = f'lex:"{secret}"'

    def text(plan: dict[str, Any]) -> None:
        plan["texts"] = {"../../secret.txt": sha256(secret.read_bytes()).hexdigest()}

    def place(plan: dict[str, Any]) -> None:
        """What is stored below `files/` is written below `files/` of the finished set."""
        content = b"echo pwned"
        name = f"files/{secret.parent / 'victim.sh'}"
        written(secret.parent / "deep" / "out" / ".derivlang" / plan["plan"][:16] / "files" / "x", content)
        plan["texts"][name] = sha256(content).hexdigest()

    def stage(plan: dict[str, Any]) -> None:
        """The hash of the plan is the name of its stage."""
        plan["plan"] = "../../victim"

    def hub(plan: dict[str, Any]) -> None:
        plan["job"]["corpus"]["format"] = "hub"
        plan["job"]["parts"][0]["path"] = f"{secret.parent}||train"

    def types(plan: dict[str, Any]) -> None:
        plan["job"] = [1]

    def part(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["test"][0]["spans"][0]["part"] = 10**9

    return {
        one.__name__: one for one in (name, split, file, no_stamp, stamp, spec, text, place, stage, hub, types, part)
    }


@pytest.mark.parametrize("name", sorted(forged(Path())))
def test_a_plan_of_somebody_else_reaches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, name: str
) -> None:
    secret, out = written(tmp_path / "secret.txt", "password\n"), tmp_path / "deep" / "out"
    monkeypatch.setattr(ranks, "_is_mine", lambda path: False)
    planned(SPEC, text, out, "--shard-tokens", 100)
    edit(out, forged(secret)[name])
    before = snapshot(tmp_path)
    for command in (("work", out, "--rank", 0, "--world", 1), ("finish", out)):
        ran = run(*command, code=1)
        assert "Traceback" not in ran.err
        assert "password" not in ran.err
        assert ran.err.count("\n") < 4
    assert snapshot(tmp_path) == before


def test_a_damaged_plan(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    path = out / ".derivlang" / "plan.json"
    content = path.read_bytes()
    for damaged in (b"", content[:-40], content.replace(b'"limit": null', b'"limit": 3')):
        path.write_bytes(damaged)
        for command in (("work", out, "--rank", 0, "--world", 1), ("finish", out)):
            told = run(*command, code=1).err
            assert "the plan was damaged (.derivlang/plan.json) [not-planned]\n  plan it again: " in told
    path.write_bytes(content)
    (lexicon,) = (out / ".derivlang").glob("*/lexicon.tsv")
    lexicon.write_bytes(lexicon.read_bytes()[:-9])
    ran = spawn("work", out, "--rank", 0, "--world", 1, code=1)
    assert "lexicon.tsv is missing or was changed" in ran.err
    planned(SPEC, text, out, "--shard-tokens", 100)  # writes it anew
    worked(out)
