"""The scripts of docs/howto/schedulers.md, with the packages that they are for: every file is that of `make`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.commands import (
    ROOT,
    command_line,
    environment,
    leftovers,
    make,
    rows,
    run,
    shards,
    snapshot,
    spawn,
    trees,
    wiki,
    written,
)

PAGE = (ROOT / "docs" / "howto" / "schedulers.md").read_text("utf-8")
SHARD = ("--shard-tokens", 2500)


def block(name: str) -> str:
    """The file of this name on the page."""
    found = re.search(rf"^`{re.escape(name)}`\n\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the page has no {name}"
    return found[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The set that `make` makes of what the page plans."""
    folder = tmp_path_factory.mktemp("whole")
    make("trans,inv", "demo", folder / "out", *SHARD)
    return snapshot(folder / "out")


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """The set that the page plans, in the folder where its scripts run."""
    run("plan", "--t", "trans,inv", "demo", "-o", tmp_path / "planned", *SHARD)
    return tmp_path / "planned"


def script(folder: Path, name: str, *packages: Path, text: str | None = None, code: int = 0) -> str:
    """Run a script of the page in a folder. packages: folders of further packages. Returns what it wrote."""
    path = os.pathsep.join(map(str, [*packages, ROOT]))
    done = subprocess.run(
        [sys.executable, written(folder / name, text or block(name))],
        cwd=folder, env=environment(PYTHONPATH=path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    return done.stdout


def executable(path: Path, text: str) -> Path:
    written(path, text).chmod(0o755)
    return path


# Batch systems


def test_slurm(tmp_path: Path, planned: Path, whole: dict[str, bytes]) -> None:
    """`sbatch` stands in for Slurm's: it runs a job at once, if the job that it depends on has ended with 0."""
    executable(tmp_path / "bin" / "derivlang", "#!/bin/sh\nexit 1\n")
    executable(
        tmp_path / "bin" / "sbatch",
        r"""#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in
        --array=*) array=${1#--array=} ;;
        --dependency=afterok:*) [ -e "ended-${1#*:}" ] || exit 0 ;;
        --wrap) command=$2; shift ;;
    esac
    shift
done
first=${array%-*} last=${array#*-}
for task in $(seq ${first:-0} ${last:-0}); do
    [ -z "$array" ] || export SLURM_ARRAY_TASK_ID=$task
    sh -c "$command" >&2 || failed=1
done
[ "$failed" ] || touch "ended-$$"
echo $$
""",
    )
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def submitted() -> None:
        both = ["bash", "-euc", block("planned.sh")]
        subprocess.run(both, cwd=tmp_path, env=environment(**path), check=True, capture_output=True, timeout=120)

    submitted()
    assert not list(tmp_path.glob("ended-*"))
    executable(tmp_path / "bin" / "derivlang", f'#!/bin/sh\nexec {sys.executable} -m derivlang "$@"\n')
    submitted()
    assert snapshot(planned) == whole


def test_kubernetes(planned: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod runs the command of the job, with the variable that says its number."""
    job = yaml.safe_load(block("work.yaml"))["spec"]
    (container,) = job["template"]["spec"]["containers"]
    program, *arguments = ["planned" if one.startswith("s3://") else one for one in container["command"]]
    assert (program, job["completionMode"]) == ("derivlang", "Indexed")
    monkeypatch.chdir(planned.parent)
    for pod in range(job["completions"]):
        run(*(one.replace("$(JOB_COMPLETION_INDEX)", str(pod)) for one in arguments))
    run("finish", planned)
    assert snapshot(planned) == whole


def test_what_was_parsed_in_another_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are those of `make`, and every file is that of `make` from what was parsed."""
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    text = written(tmp_path / "corpus.txt", block("corpus.txt") * 20)
    shard = ("--shard-tokens", 150)
    make("syn:fr", text, tmp_path / "made", *shard)
    run("parse", text, "-o", tmp_path / "parsed", *shard)
    run("plan", "--t", "syn:fr", tmp_path / "parsed", "-o", tmp_path / "french", *shard)
    for rank in range(2):
        run("work", tmp_path / "french", "--rank", rank, "--world", 2)
    run("finish", tmp_path / "french")
    assert len(shards(tmp_path / "french")) > 1
    assert rows(tmp_path / "french", "train") == rows(tmp_path / "made", "train")
    make("syn:fr", tmp_path / "parsed", tmp_path / "again", *shard)
    assert snapshot(tmp_path / "french") == snapshot(tmp_path / "again")


# Packages


def test_datatrove(tmp_path: Path, planned: Path, whole: dict[str, bytes]) -> None:
    """What datatrove calls complete has its records; what is lost later is made again."""
    pytest.importorskip("datatrove")
    only_work = block("with_datatrove.py").replace('    derivlang.finish("planned")\n', "")
    script(tmp_path, "work.py", text=only_work)
    stage = planned / ".derivlang"
    records = sorted(stage.glob("*/*.record"))
    assert len(records) == 7
    assert sorted(path.name for path in (tmp_path / "logs/work/completions").iterdir()) == [
        f"0000{n}" for n in range(4)
    ]
    records[0].unlink()
    shards(planned)[1].write_bytes(b"")
    by_marks = block("with_datatrove.py").replace(", skip_completed=False", "")
    assert "2 tasks not done yet" in script(tmp_path, "marks.py", text=by_marks, code=1)
    script(tmp_path, "with_datatrove.py")
    assert snapshot(planned) == whole


def test_a_rank_that_fails_is_not_complete_for_datatrove(tmp_path: Path) -> None:
    pytest.importorskip("datatrove")
    text = wiki(tmp_path)
    run("plan", "--t", "inv", text, "-o", tmp_path / "planned")
    written(text, " Another text . \n")
    assert "[source-changed]" in script(tmp_path, "with_datatrove.py", code=1)
    assert not (tmp_path / "logs/work/completions/00000").exists()
    assert shards(tmp_path / "planned") == []


@pytest.mark.slow
@pytest.mark.parametrize(("package", "name"), [("ray", "with_ray.py"), ("pyspark", "with_spark.py")])
def test_ray_and_spark(tmp_path: Path, planned: Path, whole: dict[str, bytes], package: str, name: str) -> None:
    pytest.importorskip(package)
    script(tmp_path, name)
    assert snapshot(planned) == whole


CLUSTER = """
from distributed import LocalCluster


class SLURMCluster(LocalCluster):
    def __init__(self, queue, cores, memory, walltime):
        super().__init__(n_workers=0, threads_per_worker=cores, memory_limit=memory, dashboard_address=None)

    def scale(self, jobs):
        super().scale(jobs)
"""


def test_dask_jobqueue(tmp_path: Path, planned: Path, whole: dict[str, bytes]) -> None:
    """A local cluster stands in for Slurm's."""
    pytest.importorskip("distributed")
    written(tmp_path / "packages" / "dask_jobqueue.py", CLUSTER)
    script(tmp_path, "with_dask.py", tmp_path / "packages")
    assert snapshot(planned) == whole


# What a scheduler relies on


def test_threads_change_no_byte(tmp_path: Path) -> None:
    """The ranks of a word order, which multiplies matrices, in environments that ask for threads."""
    source = trees(tmp_path)
    make("syn:hi", source, tmp_path / "made")
    for number in ("1", "2", "many"):
        out = tmp_path / number
        run("plan", "--t", "syn:hi", source, "-o", out)
        spawn("work", out, "--rank", 0, "--world", 1, env=environment(OMP_NUM_THREADS=number))
        run("finish", out)
        assert snapshot(out) == snapshot(tmp_path / "made")


def test_exit_codes(tmp_path: Path) -> None:
    text, out = wiki(tmp_path), tmp_path / "out"
    run("plan", "--t", "inv", text, "-o", out)
    assert "Missing option '--rank'" in spawn("work", out, "--world", 2, code=2).err
    again = [spawn("work", out, "--rank", 0, "--world", 9) for _ in range(2)]
    assert [one.out for one in again] == ["rank 0 of 9: 1 task done\n", "rank 0 of 9: 0 tasks done, 1 done before\n"]
    assert [one.err for one in again] == ["", ""]
    assert spawn("work", out, "--rank", 8, "--world", 9).out == "rank 8 of 9: 0 tasks done\n"
    shards(out)[0].unlink()
    written(text, " Another text . \n")
    assert (
        len(re.findall(r"^derivlang: ", spawn("work", out, "--rank", 0, "--world", 1, code=1).err, re.MULTILINE)) == 1
    )


@pytest.mark.parametrize("command", ["work", "make"])
def test_a_command_that_is_told_to_end_leaves_nothing_half_written(tmp_path: Path, command: str) -> None:
    """SIGTERM is what Slurm and Kubernetes send first."""
    text = wiki(tmp_path, "".join(f" Line {i} of the text has some words , {i % 7} . \n" for i in range(40_000)))
    shard = ("--shard-tokens", 20_000)
    make("perm", text, tmp_path / "made", *shard)
    wanted = snapshot(tmp_path / "made")
    out = tmp_path / "out"
    planned = ("--t", "perm", text, "-o", out, *shard)
    if command == "work":
        run("plan", *planned)
    line = command_line("make", *planned) if command == "make" else command_line("work", out, "--rank", 0, "--world", 1)
    with subprocess.Popen(line, env=environment(), stderr=subprocess.PIPE, text=True) as rank:
        for _ in range(600):
            if list(out.rglob("*.record")):  # before its first task is done, `make` leaves nothing at all
                break
            time.sleep(0.05)
        rank.send_signal(signal.SIGTERM)
        _, err = rank.communicate(timeout=60)
    assert rank.returncode == 130
    assert err.strip() == "derivlang: interrupted; the same command continues from here"
    assert 0 < len(shards(out)) < len(wanted) - 2
    assert all(path.read_bytes() == wanted[f"data/{path.name}"] for path in shards(out))
    assert leftovers(out) == []
    make("perm", text, out, *shard)
    assert snapshot(out) == wanted
