"""`plan`, `work` and `finish`: every file equal to that of `make`, whoever ran which task, and how often."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import derivlang
from derivlang.core.seal import sealed
from derivlang.engine.launchers import rank_of
from derivlang.engine.options import RankOptions
from tests import commands
from tests.commands import make, run, shards, snapshot, spawn, wiki, written

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


@pytest.fixture
def whole(tmp_path: Path, text: Path) -> dict[str, bytes]:
    """The set that `make` makes of the text."""
    make(SPEC, text, tmp_path / "whole", "--shard-tokens", 100)
    return snapshot(tmp_path / "whole")


def jsonl(folder: Path) -> Path:
    rows = [{"tokens": f"It is row {i} .".split(), "ner_tags": ["O"] * 4 + ["B-X"]} for i in range(4000)]
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
    "entities in JSON lines": ("trans,perm", jsonl, ("--shard-tokens", 5000)),
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


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_is_that_of_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given, build, options = SOURCES[name]
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    monkeypatch.chdir(tmp_path)
    spec = given if isinstance(given, str) else given(tmp_path)
    source = build(tmp_path)
    if isinstance(source, Path):
        source = source.relative_to(tmp_path)  # ranks have other working folders
    make(spec, source, tmp_path / "made", *options)
    wanted = snapshot(tmp_path / "made")
    for world in (1, 2, 7):
        out = tmp_path / str(world)
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
    stage = out / ".derivlang"
    first, second, third, *_ = sorted((stage / "data").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1] + b"x")
    (stage / f"{third.stem}.record").write_bytes(b"")
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
        line = commands.command_line(*arguments)
        process = subprocess.Popen(line, env=commands.environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 1.2))
        process.send_signal(signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err
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
    """`sbatch` stands in for Slurm's: it runs each task of the array, with the variables that Slurm sets."""
    place = tmp_path / "my out"
    printed = run("plan", "--t", SPEC, text, "-o", place, "--shard-tokens", 100, "--world", 3).out
    sbatch, *_, finish = (line for line in printed.splitlines() if line.startswith(("sbatch", "derivlang finish")))
    stand_in = r"""#!/bin/sh
array=${1#--array=}
for task in $(seq ${array%-*} ${array#*-}); do
    env SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=${array%-*} SLURM_ARRAY_TASK_STEP=1 SLURM_ARRAY_TASK_COUNT=3 \
        sh -c "$3" || exit
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


@pytest.mark.parametrize(
    ("environment", "options", "wanted"),
    [
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"}, {}, (3, 4)),
        ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_STEP": "2",
          "SLURM_ARRAY_TASK_COUNT": "4"}, {}, (2, 4)),
        ({"JOB_COMPLETION_INDEX": "0"}, {"world": 9}, (0, 9)),
        ({"SGE_TASK_ID": "1", "SGE_TASK_FIRST": "1"}, {"world": 2}, (0, 2)),
        ({"SGE_TASK_ID": "undefined", "PBS_ARRAY_INDEX": "5"}, {"world": 6}, (5, 6)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "1", "AWS_BATCH_JOB_ARRAY_SIZE": "8"}, {}, (1, 8)),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"}, {"rank": 0, "world": 2}, (0, 2)),
    ],
)  # fmt: skip
def test_the_rank_of_an_array_job(
    environment: dict[str, str], options: dict[str, int], wanted: tuple[int, int]
) -> None:
    assert rank_of(RankOptions(**options), environment) == wanted


@pytest.mark.parametrize(
    ("environment", "options", "option"),
    [({}, {}, "--rank"), ({}, {"world": 2}, "--rank"), ({"JOB_COMPLETION_INDEX": "0"}, {}, "--world")],
)
def test_no_rank_is_guessed(environment: dict[str, str], options: dict[str, int], option: str) -> None:
    with pytest.raises(derivlang.DerivlangError, match=rf"(?s){option}.*e\.g\. --rank 0 --world 4"):
        rank_of(RankOptions(**options), environment)


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


def test_a_rank_with_other_versions(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    planned(SPEC, text, out, "--shard-tokens", 100)
    edit(out, lambda plan: plan["facts"].update(numpy="1.0"))
    for command in (("work", out, "--rank", 0, "--world", 1), ("finish", out)):
        ran = run(*command, code=1)
        assert "the set was planned with numpy 1.0" in ran.err
        assert "[other-workers]" in ran.err


def forged(secret: Path) -> dict[str, Callable[[dict[str, Any]], None]]:
    """Plans that somebody else wrote, to reach what is not theirs."""

    def name(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["test"][0][0] = "../../evil-00000-of-00001"

    def split(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["../../evil"] = plan["job"]["tasks"].pop("test")

    def file(plan: dict[str, Any]) -> None:
        plan["job"]["parts"][0][1] = str(secret)

    def no_stamp(plan: dict[str, Any]) -> None:
        file(plan)
        plan["job"]["parts"][0][3] = None

    def stamp(plan: dict[str, Any]) -> None:
        file(plan)
        stat = secret.stat()
        plan["job"]["parts"][0][3][0] = [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]
        plan["job"]["parts"][0][3][1] = "0"

    def spec(plan: dict[str, Any]) -> None:
        plan["job"]["spec"] = f'lex:"{secret}"'

    def text(plan: dict[str, Any]) -> None:
        plan["texts"] = {"../../secret.txt": sha256(secret.read_bytes()).hexdigest()}

    def types(plan: dict[str, Any]) -> None:
        plan["job"] = [1]

    def part(plan: dict[str, Any]) -> None:
        plan["job"]["tasks"]["test"][0][1][0][0] = 10**9

    return {one.__name__: one for one in (name, split, file, no_stamp, stamp, spec, text, types, part)}


@pytest.mark.parametrize("name", sorted(forged(Path())))
def test_a_plan_of_somebody_else_reaches_nothing(tmp_path: Path, text: Path, name: str) -> None:
    secret, out = written(tmp_path / "secret.txt", "password\n"), tmp_path / "deep" / "out"
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
        assert "[not-planned]" in run("work", out, "--rank", 0, "--world", 1, code=1).err
    path.write_bytes(content)
    lexicon = out / ".derivlang" / "lexicon.tsv"
    lexicon.write_bytes(lexicon.read_bytes()[:-9])
    ran = spawn("work", out, "--rank", 0, "--world", 1, code=1)
    assert "lexicon.tsv is missing or was changed" in ran.err
    planned(SPEC, text, out, "--shard-tokens", 100)  # writes it anew
    worked(out)
