"""`derivlang push` of runs and studies, against a stand-in of the hub."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import derivlang
from derivlang.core.seal import sealed
from tests import runs as synthetic
from tests.commands import run, written
from tests.hub_server import Hub
from tests.test_push import copy_of, of, refused


def test_a_run_arrives_without_data_and_checkpoints(hub: Hub, tmp_path: Path) -> None:
    folder = synthetic.run(tmp_path / "run", rates={"pos": (0.8, 0.6)})
    for name in ("data/ids.bin", "checkpoints/a/note.bin", "wandb/a.log", "mine.txt", "model/mine.md"):
        written(folder / name, "mine")
    ran = run("push", folder, "me/run")
    files = of(hub, "me/run", "model").head().files
    assert {"run.json", "model/config.json", "evaluation.json"} <= files.keys()
    assert [name for name in files if name.startswith("evaluation/")]
    assert not [name for name in files if "mine" in name or name.startswith(("data/", "checkpoints/", "wandb/"))]
    assert "not sent, as it is not of the result: mine.txt, model/mine.md" in ran.err
    assert "has no README.md" in ran.err
    assert f"{hub.url}/me/run  " in ran.out
    assert 'transformers.AutoModel.from_pretrained("me/run", subfolder="model")' in ran.out
    copy = copy_of(files, tmp_path / "copy")
    assert run("verify", copy).out.endswith("nothing is wrong\n")
    repo = of(hub, "me/run", "model")
    repo.add("main", "by hand", {**files, "evaluation/mine.npz": b"mine"})
    again = run("push", folder, "me/run")
    assert "kept what is not of an earlier push: evaluation/mine.npz" in again.err
    assert repo.head().files.keys() == {*files, "evaluation/mine.npz"}
    assert len(derivlang.scores(copy)) == len(derivlang.scores(folder))
    written(folder / "model" / "config.json", "{ }")
    assert "was changed [damaged]" in run("push", folder, "me/run", code=1).err


def test_an_unfinished_run_or_a_link_is_refused(hub: Hub, tmp_path: Path) -> None:
    folder = synthetic.run(tmp_path / "linked")
    (folder / "README.md").symlink_to(written(tmp_path / "private.txt", "private"))
    refused(hub, folder, "me/run", told=f"{folder / 'README.md'}: is a link, so it is not sent", id="linked-file")
    folder = synthetic.run(tmp_path / "run", facts={"status": "stopped"})
    refused(hub, folder, "me/run", told="this run is not finished: its status is 'stopped'", id="unfinished")


def study_of(folder: Path) -> tuple[Path, list[str]]:
    """A finished study of two cells, with a report, and the names of the cells."""
    cells = ["mlm", "align-mlm"]
    for name in cells:
        made = synthetic.run(folder / "runs" / name, objective=name)
        record = json.loads((made / "run.json").read_text("utf-8"))
        written(made / "pretrained.json", json.dumps({"fingerprint": record["fingerprint"]}))
        written(made / "data" / "ids.bin", "mine")
    planned = [{"name": name, "run": f"runs/{name}", "factors": {"objective": name}} for name in cells]
    record = {"format": 1, "study": "two", "factors": {"objective": cells}, "report": {}, "cells": planned}
    written(folder / "study.json", json.dumps(sealed({**record, "derivlang": "0"})))
    run("report", folder, "-o", folder / "report")
    return folder, cells


def test_a_study_arrives_with_its_runs_and_its_report(hub: Hub, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    study, cells = study_of(tmp_path / "study")
    written(study / "runs" / cells[0] / "mine.txt", "mine")
    ran = run("push", study, "me/study")
    commits = of(hub, "me/study", "model").branches["main"]
    assert len(commits) == 2
    files = commits[-1].files
    assert {f"runs/{cell}/run.json" for cell in cells} | {"report/index.html", "study.json"} <= files.keys()
    assert not [name for name in files if "/data/" in name or "/checkpoints/" in name or "mine" in name]
    assert f"not sent, as it is not of the result: runs/{cells[0]}/mine.txt" in ran.err
    assert "  hf download me/study --local-dir study\n" in ran.out
    copy = copy_of(files, tmp_path / "copy")
    assert "nothing is wrong" in run("verify", copy).out
    hub.reset()
    run("push", synthetic.run(tmp_path / "run"), "me/run")
    hub.reset()
    assert "holds something else: run.json, not study.json" in run("push", study, "me/run", code=1).err
    assert not {*hub.requests} & {"put", "commit"}
    run("push", study, "me/run", "--force")
    assert of(hub, "me/run", "model").head().files.keys() == files.keys()
    shutil.rmtree(study / "runs" / cells[-1])
    hub.reset()
    refused(hub, study, "me/study", told=f"this study is not finished: {cells[-1]} is to be run", id="unfinished")
