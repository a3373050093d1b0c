"""`derivlang push` of runs, against a stand-in of the hub."""

from __future__ import annotations

from pathlib import Path

import derivlang
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


def test_a_study_is_not_sent_as_one(hub: Hub, tmp_path: Path) -> None:
    written(tmp_path / "study" / "study.json", "{}")
    ran = run("push", tmp_path / "study", "me/study", code=2)
    assert "a study is not sent as one" in ran.err
    assert "push its runs one by one" in ran.err
    assert not {*hub.requests} & {"put", "commit"}
