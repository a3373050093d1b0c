"""Sets that earlier versions made: they verify and undo; for `make`, they are other sets.

`sets/older` was made by the last version without `fingerprint_format` in its manifest, from `sets/older.tokens`:

    derivlang make --t trans:overlap=50,perm older.tokens -o older
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from derivlang.store.manifest import dump
from tests.commands import run, snapshot
from tests.helpers import make, manifest

SETS = Path(__file__).parent / "sets"


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A copy of the set and its source."""
    shutil.copytree(SETS / "older", tmp_path / "older")
    shutil.copy(SETS / "older.tokens", tmp_path)
    return tmp_path / "older"


def edited(folder: Path, **fields: object) -> None:
    """Change fields of the manifest, and its hash with them."""
    (folder / "derivlang.json").write_text(dump({**manifest(folder), **fields}), "utf-8")


def problems(folder: Path) -> list[str]:
    return [problem["what"] for problem in json.loads(run("verify", folder, "--json", code=None).out)["problems"]]


def test_it_verifies_and_undoes(older: Path) -> None:
    assert "fingerprint_format" not in manifest(older)
    assert problems(older) == []
    run("undo", older, "-o", older.parent / "back")
    assert (older.parent / "back").read_bytes() == (SETS / "older.tokens").read_bytes()


def test_the_same_command_replaces_it_only_with_force(older: Path) -> None:
    """It has another `OUTPUT_VERSION` (store/manifest.py), and so another plan."""
    command = ("make", "--t", "trans:overlap=50,perm", older.parent / "older.tokens", "-o", older)
    before = snapshot(older)
    assert "or another version made it) [other-plan]" in run(*command, code=1).err
    assert snapshot(older) == before
    run(*command, "--force")
    assert problems(older) == []
    assert manifest(older)["fingerprint_format"] == 2


def test_a_new_set_has_the_same_bytes_and_another_fingerprint(older: Path) -> None:
    out = make("trans:overlap=50,perm", older.parent / "older.tokens", older.parent / "new")
    assert (out / "lexicon.tsv").read_bytes() == (older / "lexicon.tsv").read_bytes()
    assert manifest(out)["fingerprint"] != manifest(older)["fingerprint"]
    assert manifest(out)["fingerprint_format"] == 2
    assert manifest(out)["plan"] != manifest(older)["plan"]
    edited(out, fingerprint=manifest(older)["fingerprint"])
    assert problems(out) == ["the fingerprint does not match the spec, the lexicon and the rules of this version"]


def test_each_fingerprint_is_checked_in_its_own_format(older: Path) -> None:
    edited(older, fingerprint="0" * 16)
    assert problems(older) == ["the fingerprint does not match the spec, the lexicon and the rules of this version"]
    edited(older, fingerprint_format=3)
    (what,) = problems(older)
    assert "3 is not a known format of fingerprints; use a newer derivlang" in what
    run("undo", older, "-o", older.parent / "back")
