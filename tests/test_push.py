"""`derivlang push`, against a stand-in of the hub: what is sent, in which order, and what an interruption leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import pytest

import derivlang
from tests.commands import command_line, environment, make, run, snapshot, trees, written
from tests.hub_server import LARGE, SIGNATURE, TOKEN, Hub, Repo

constants = pytest.importorskip("huggingface_hub.constants")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set of several shards and splits, with a lexicon."""
    out = tmp_path_factory.mktemp("push") / "set"
    make("trans,perm", "demo", out, "--shard-tokens", 300, "--seed", 1)
    return out


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """A copy of the set, for tests that change it."""
    return Path(shutil.copytree(made, tmp_path / "set"))


def copy_of(files: dict[str, bytes], folder: Path) -> Path:
    """A folder with the files of a commit, as a download has it."""
    for name, content in files.items():
        written(folder / name, content)
    return folder


def of(hub: Hub, name: str = "me/set", type: str = "dataset") -> Repo:
    return hub.repos[type, name]


def refused(hub: Hub, *arguments: object, told: str, id: str) -> None:
    """A push is refused with one message, and nothing is sent."""
    before = {key: repo.head().oid for key, repo in hub.repos.items()}
    ran = run("push", *arguments, code=None)
    assert ran.code in (1, 2)
    assert f"[{id}]" in ran.err
    assert ran.err.count("derivlang:") == 1
    assert told in ran.err
    assert not {*hub.requests} & {"put", "commit"}
    assert {key: hub.repos[key].head().oid for key in before} == before


# Sets


def test_a_set_arrives_whole_in_one_commit(hub: Hub, made: Path, tmp_path: Path) -> None:
    ran = run("push", made, "me/set")
    files = of(hub).head().files
    assert {name: files[name] for name in snapshot(made)} == snapshot(made)
    assert files.keys() - snapshot(made).keys() == {".gitattributes"}
    (commit,) = of(hub).branches["main"][1:]
    assert commit.files == files
    assert ran.out.startswith(f"{hub.url}/datasets/me/set  {len(files) - 1} files, ")
    assert '  datasets.load_dataset("me/set")\n' in ran.out
    assert "  hf download me/set --repo-type dataset --local-dir set\n" in ran.out
    assert run("verify", copy_of(files, tmp_path / "copy")).out.endswith("rows are right\n")
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.out + ran.err


def test_what_is_there_is_not_sent_again(hub: Hub, made: Path) -> None:
    run("push", made, "me/set")
    before = of(hub).head().oid
    hub.reset()
    again = run("push", made, "me/set", "--json").json
    assert (again["sent"], again["removed"], again["commit"]) == (False, 0, before)
    assert not {*hub.requests} & {"put", "commit"}
    assert "all of them there already" in run("push", made, "me/set").out


def test_an_older_set_is_replaced_and_other_files_stay(hub: Hub, made: Path, tmp_path: Path) -> None:
    by_hand = ("LICENSE", "data/a/b.parquet", "notes/a.md")
    make("inv", "demo", tmp_path / "other", "--shard-tokens", 200)
    run("push", tmp_path / "other", "me/set")
    repo = of(hub)
    repo.add("main", "by hand", {**repo.head().files, **dict.fromkeys(by_hand, b"mine")})
    before = len(repo.branches["main"])
    hub.reset()
    refused(hub, made, "me/set", told="another result (spec is inv, not trans:", id="other-repository")
    ran = run("push", made, "me/set", "--force", "--json")
    done = ran.json
    assert "kept what is not of an earlier push: LICENSE, data/a/b.parquet, notes/a.md" in ran.err
    assert done["removed"] > 0
    assert repo.head().files.keys() - {".gitattributes", *by_hand} == done["files"].keys()
    assert len(repo.branches["main"]) == before + 1


def test_a_branch_is_made_and_the_rest_stays(hub: Hub, made: Path) -> None:
    ran = run("push", made, "me/set", "--revision", "v2")
    assert of(hub).head().files.keys() == {".gitattributes"}
    assert "derivlang.json" in of(hub).head("v2").files
    assert 'datasets.load_dataset("me/set", revision="v2")' in ran.out
    assert f"{hub.url}/datasets/me/set/tree/v2 " in ran.out
    assert run("push", made, "me/set", "--revision", "v2", "--json").json["sent"] is False


def test_private_is_of_the_new_repository_and_checked(hub: Hub, made: Path) -> None:
    run("push", made, "me/mine", "--private")
    assert of(hub, "me/mine").private
    hub.repos["dataset", "me/public"] = Repo(private=False)
    of(hub, "me/public").add("main", "initial commit", {})
    hub.reset()
    refused(hub, made, "me/public", "--private", told="this repository is public", id="public-repository")


def test_python_sends_what_the_command_sends(hub: Hub, made: Path, tmp_path: Path) -> None:
    done = derivlang.push(derivlang.DerivedSet(made), "me/set")
    assert done["url"] == f"{hub.url}/datasets/me/set"
    assert run("push", made, "me/set", "--json").json == {**done, "sent": False}
    assert derivlang.push(made, "me/set", dry_run=True)["commit"] is None
    edited = copy_of(snapshot(made) | {"README.md": b"mine"}, tmp_path / "edited")
    with pytest.raises(derivlang.DerivlangError, match="edited_card=True sends it as it is"):
        derivlang.push(edited, "me/set")


def test_a_dry_run_needs_no_network(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    ran = run("push", made, "me/set", "--dry-run")
    names = [line.split()[-1] for line in ran.out.splitlines()[:-1]]
    assert sorted(names) == sorted(snapshot(made))
    assert names[-1] == "derivlang.json"
    assert ran.out.splitlines()[-1].endswith("would be sent to https://huggingface.co/datasets/me/set")
    ran = run("push", made, "me/set", code=1)
    assert ran.err == "derivlang: me/set: the hub is not asked: HF_HUB_OFFLINE is set [hub]\n" + (
        "  unset it, and run the same command again\n"
    )


def test_foreign_files_stay_with_a_warning(hub: Hub, out: Path) -> None:
    written(out / "thesis.txt", "mine")
    written(out / "data" / "train-extra.parquet", "mine")
    written(out / ".derivlang" / "tasks" / "a.json", "{}")
    written(out / ".derivlang.lock", "")
    ran = run("push", out, "me/set")
    assert "not sent, as it is not of the result: thesis.txt, data/train-extra.parquet" in ran.err
    names = of(hub).head().files
    assert not [name for name in names if "thesis" in name or "extra" in name or ".derivlang" in name]


def test_an_edited_card_is_sent_only_if_it_is_meant(hub: Hub, out: Path) -> None:
    card = (out / "README.md").read_text("utf-8").replace("license: apache-2.0", "license: cc0-1.0")
    written(out / "README.md", card)
    refused(hub, out, "me/set", told="the dataset card was edited", id="card")
    ran = run("push", out, "me/set", "--edited-card")
    assert "README.md was edited, and is sent as it is" in ran.err
    assert of(hub).head().files["README.md"] == card.encode()
    written(out / "README.md", card.replace("license: cc0-1.0", "license: nonsense"))
    hub.reset()
    ran = run("push", out, "me/set", "--edited-card", code=1)
    assert "README.md: the hub refuses the card: " in ran.err
    assert "must be one of the list" in ran.err
    assert not {*hub.requests} & {"preupload", "commit"}
    written(out / "README.md", card.replace("license: cc0-1.0", "license: {"))
    assert "the hub refuses the card: Invalid metadata" in run("push", out, "me/set", "--edited-card", code=1).err
    (out / "README.md").unlink()
    refused(hub, out, "me/set", "--edited-card", told="the dataset card is missing", id="card")


def test_a_damaged_or_unfinished_set_is_refused(hub: Hub, out: Path, tmp_path: Path) -> None:
    shard = min((out / "data").iterdir())
    content = shard.read_bytes()
    written(shard, content[:-9] + b"x" + content[-8:])
    refused(hub, out, "me/set", told=f"{shard}: was changed", id="damaged")
    shard.unlink()
    refused(hub, out, "me/set", told="is missing", id="damaged")
    run("plan", "--t", "inv", trees(tmp_path), "-o", tmp_path / "planned")
    refused(hub, tmp_path / "planned", "me/set", told="this set is not finished", id="unfinished")
    refused(hub, tmp_path, "me/set", told="this is not a derived set", id="no-manifest")
    refused(hub, tmp_path / "gone", "me/set", told="there is no such folder", id="missing-folder")
    assert not hub.repos


@pytest.mark.parametrize(
    "name", ["set", "a/b/c", "me/se t", "me/..", "/set", "me/", "me/a--b", "me/x.git", "", "a@b/c"]
)
def test_names_that_no_repository_has(hub: Hub, made: Path, name: str) -> None:
    refused(hub, made, name, told="is not the name of a repository", id="repository")


@pytest.mark.parametrize("branch", ["", "a b", "../main", "-x"])
def test_names_that_no_branch_has(hub: Hub, made: Path, branch: str) -> None:
    refused(hub, made, "me/set", f"--revision={branch}", told="is not the name of a branch", id="repository")


def test_a_set_in_a_store_is_refused(made: Path) -> None:
    assert "is not a local path" in run("push", "s3://bucket/set", "me/set", code=2).err
    with pytest.raises(derivlang.DerivlangError, match="from a local folder"):
        derivlang.push("memory://set", "me/set")


# The hub fails


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    [
        ("create", 401, "the hub refuses access (401)"),
        ("put", 403, "the hub refuses access (403)"),
        ("commit", 500, "the hub answered with status 500: commit failed, see …"),
        ("commit", 412, "somebody else changed the repository meanwhile (412)"),
        ("tree", 404, "the hub has no such repository or branch, or hides it (404)"),
        ("batch", 403, "the hub refuses access (403)"),
    ],
)
def test_a_failure_is_one_message_without_secrets(hub: Hub, made: Path, fault: str, status: int, told: str) -> None:
    hub.faults[fault, 1] = status
    ran = run("push", made, "me/set", code=1)
    assert told in ran.err
    assert ran.err.count("derivlang: me/set: ") == 1
    for secret in (TOKEN, SIGNATURE, "http://"):
        assert secret not in ran.out + ran.err
    hub.reset()
    run("push", made, "me/set")
    assert of(hub).head().files["derivlang.json"] == (made / "derivlang.json").read_bytes()


def test_a_passing_failure_is_tried_again_without_a_word(
    hub: Hub, made: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.faults["put", 1] = 503
    ran = run("push", made, "me/set")
    assert ran.err == ""
    assert SIGNATURE not in caplog.text
    assert "derivlang.json" in of(hub).head().files


def test_without_a_network(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    ran = run("push", made, "me/set", code=1)
    assert ran.err.startswith("derivlang: me/set: the connection to the hub failed (Connect")
    assert "[hub]\n  the same command goes on" in ran.err


def test_somebody_else_commits_between(hub: Hub, made: Path) -> None:
    """The set does not come onto files that somebody else changed."""

    def other() -> None:
        of(hub).add("main", "other", of(hub).head().files)

    hub.faults["commit", 1] = other
    assert "somebody else changed the repository meanwhile" in run("push", made, "me/set", code=1).err
    assert "derivlang.json" not in of(hub).head().files
    hub.reset()
    run("push", made, "me/set")
    assert of(hub).head().files.keys() >= snapshot(made).keys()


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (("README.md", "train.csv", "data.parquet"), "the repository holds something else: "),
        (("data/mine.parquet",), "data/mine.parquet"),
        (("run.json",), "run.json, not derivlang.json"),
        (("derivlang.json",), "another result ("),
    ],
)
def test_a_repository_of_something_else_is_refused(hub: Hub, made: Path, there: tuple[str, ...], told: str) -> None:
    repo = hub.repos["dataset", "me/set"] = Repo(private=False)
    repo.add("main", "mine", {".gitattributes": b"", **dict.fromkeys(there, b'{"cells": []}')})
    refused(hub, made, "me/set", told=told, id="other-repository")


def test_a_card_by_itself_is_replaced_only_with_force(hub: Hub, made: Path) -> None:
    repo = hub.repos["dataset", "me/set"] = Repo(private=False)
    repo.add("main", "the form of the hub", {".gitattributes": b"", "README.md": b"mine"})
    refused(hub, made, "me/set", told="README.md", id="other-repository")
    assert "--force to send it there" in run("push", made, "me/set", code=1).err
    run("push", made, "me/set", "--force")
    assert repo.head().files["README.md"] == (made / "README.md").read_bytes()


@pytest.mark.parametrize(
    ("kind", "number", "older"),
    [
        ("put", 3, False),
        ("commit", 1, False),
        ("after commit", 1, False),
        ("put", 1, True),
        ("commit", 1, True),
    ],
)
def test_a_killed_push_leaves_no_mixture_and_goes_on(
    hub: Hub, made: Path, tmp_path: Path, kind: str, number: int, older: bool
) -> None:
    force = ["--force"] if older else []
    if older:
        make("inv", "demo", tmp_path / "older", "--shard-tokens", 200)
        run("push", tmp_path / "older", "me/set")
        hub.reset()
    env = environment(HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1", HF_TOKEN=TOKEN)
    killed: list[int] = []

    def kill() -> None:
        os.kill(process.pid, signal.SIGKILL)
        killed.append(process.wait())

    hub.faults[kind, number] = kill
    process = subprocess.Popen(command_line("push", made, "me/set", *force), env=env, stderr=subprocess.PIPE, text=True)
    told = process.communicate(timeout=120)[1]
    assert killed == [-signal.SIGKILL], told
    for commit in of(hub).branches["main"]:  # what any reader may have seen
        record = commit.files.get("derivlang.json")
        for split in json.loads(record or '{"splits": {}}')["splits"].values():
            for shard in split["shards"]:
                assert sha256(commit.files[shard["file"]]).hexdigest() == shard["sha256"]
    had = set[str]()
    while had != (had := set(hub.large)):  # what the killed process sent last may still be on its way
        time.sleep(0.3)
    hub.reset()
    run("push", made, "me/set", *force)
    large = {sha256(content).hexdigest() for name, content in snapshot(made).items() if name.endswith(LARGE)}
    assert hub.requests["put"] == len(large - had)
    files = of(hub).head().files
    assert files.keys() - {".gitattributes"} == snapshot(made).keys()
    assert all(files[name] == content for name, content in snapshot(made).items())
