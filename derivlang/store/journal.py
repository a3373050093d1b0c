"""The journal of a folder that is being made: the plan's hash, and each finished shard with its counts.

All that a run writes lies in `.derivlang/` until it is whole; then it replaces what was in the folder. So a run
that fails leaves an older set as it was, and the same plan goes on from what is finished. A folder that holds
anything else than a derived set is never touched.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.store.disk import disk
from derivlang.store.manifest import LEXICON, NAME, read_manifest

STAGE = ".derivlang"
_FILES = {NAME, LEXICON, "README.md"}
_SHARD = re.compile(r".+-\d{5}-of-\d{5}\.parquet")


class Journal:
    """Of one folder and one plan. `done`: the entries of the finished shards, by task name."""

    def __init__(self, folder: Path, plan: str):
        self.folder, self.plan = folder, plan
        self.stage = folder / STAGE
        self.done: dict[str, dict[str, Any]] = {}
        self._path = self.stage / "journal.jsonl"
        self._made = False

    def open(self, *, force: bool = False) -> dict[str, Any] | None:
        """Look at the folder, and make it ready. Gives the manifest if this plan is already done there.

        StoreError where the folder holds something else, or (without `force`) another plan's set.
        """
        self._refuse_others()
        if (self.folder / NAME).exists() and not force:
            manifest = read_manifest(self.folder)
            if manifest.get("plan") != self.plan:
                raise self._other(str(manifest.get("spec")))
            if self._whole(manifest):
                return manifest
        if self._path.exists():
            self._read(force)
        try:
            self._begin()
        except StoreError:
            self.give_up()
            raise
        return None

    def _begin(self) -> None:
        """The staging folder, and a journal of what is finished."""
        with disk(self.folder):
            self._made = not self.folder.exists()
            (self.stage / "data").mkdir(parents=True, exist_ok=True)
            for leftover in (self.stage / "data").glob(".*.tmp"):
                leftover.unlink()
            lines = [{"plan": self.plan}, *({"task": name, **entry} for name, entry in self.done.items())]
            fresh = self._path.with_suffix(".tmp")  # a torn last line is not written on
            try:
                fresh.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
                fresh.replace(self._path)
            finally:
                fresh.unlink(missing_ok=True)

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Record a finished shard."""
        with disk(self._path), self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"task": name, **entry}, ensure_ascii=False) + "\n")
        self.done[name] = entry

    def vocabulary(self, name: str) -> Path:
        """Where the type counts of a task wait until the manifest is written."""
        return self.stage / f"{name}.vocabulary"

    def close(self, files: dict[str, str]) -> None:
        """Put the finished set in its place: shards, then these texts by file name, the manifest last."""
        with disk(self.folder):
            for name, text in files.items():
                (self.stage / name).write_text(text, "utf-8")
            self._remove_set()
            (self.stage / "data").replace(self.folder / "data")
            for name in sorted(files, key=lambda name: name == NAME):
                (self.stage / name).replace(self.folder / name)
            shutil.rmtree(self.stage)

    def give_up(self) -> None:
        """After a failure: nothing is left of a run that finished no shard with rows."""
        if any(entry["shard"]["rows"] for entry in self.done.values()):
            return
        shutil.rmtree(self.stage, ignore_errors=True)
        if self._made and self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _refuse_others(self) -> None:
        """StoreError unless the folder is absent, empty, or holds a derived set, finished or not, and only that."""
        folder = self.folder
        with disk(folder):
            if not folder.exists():
                above = next(parent for parent in folder.absolute().parents if parent.exists())
                if not above.is_dir():
                    raise StoreError(f"{above} is a file, not a folder", where=str(folder), id="output")
                return
        if not folder.is_dir():
            raise StoreError("this is a file, not a folder", where=str(folder), id="output")
        entries = list(folder.iterdir())
        alien = [e.name for e in entries if not self._ours(e)]
        if (folder / "data").is_dir():
            alien += [f"data/{e.name}" for e in (folder / "data").iterdir() if not _SHARD.fullmatch(e.name)]
        known = (folder / NAME).is_file() or self.stage.is_dir()
        if alien or (entries and not known):
            raise StoreError(
                f"the folder holds something else: {', '.join(alien or [e.name for e in entries])[:80]}",
                where=str(folder),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )

    @staticmethod
    def _ours(entry: Path) -> bool:
        return entry.is_file() if entry.name in _FILES else entry.name in ("data", STAGE) and entry.is_dir()

    def _read(self, force: bool) -> None:
        """The finished shards of an earlier run of this plan; another plan's are refused, or replaced."""
        done: dict[str, dict[str, Any]] = {}
        try:
            first, *lines = self._path.read_bytes().split(b"\n")[:-1]  # what follows the last line end was cut
            plan = json.loads(first)["plan"]
            for line in lines:
                entry = json.loads(line)
                name, shard = entry.pop("task"), entry["shard"]
                if shard["rows"] and self.vocabulary(name).exists() and _same(self.stage, shard):
                    done[name] = entry
        except (OSError, ValueError, IndexError, KeyError, TypeError):
            plan = None  # damaged: as good as none
        if plan == self.plan and not force:
            self.done = done
            return
        if plan is not None and done and not force:
            raise self._other("another plan, unfinished")
        with disk(self.stage):
            shutil.rmtree(self.stage)

    def _whole(self, manifest: dict[str, Any]) -> bool:
        shards = [shard for entry in manifest["splits"].values() for shard in entry["shards"]]
        return all(_same(self.folder, shard) for shard in shards)

    def _remove_set(self) -> None:
        (self.folder / NAME).unlink(missing_ok=True)  # first, so that half a set is never taken for a whole one
        for name in sorted(_FILES):
            (self.folder / name).unlink(missing_ok=True)
        if (self.folder / "data").exists():
            shutil.rmtree(self.folder / "data")

    def _other(self, spec: str) -> StoreError:
        return StoreError(
            f"the folder holds a set made by another plan ({spec})",
            where=str(self.folder),
            fix="choose another folder with -o, or pass --force to replace it",
            id="other-plan",
        )


def _same(folder: Path, shard: dict[str, Any]) -> bool:
    """Is the shard there, byte for byte?"""
    path = folder / shard["file"]
    if not path.exists() or path.stat().st_size != shard["bytes"]:
        return False
    with path.open("rb") as file:
        return bool(hashlib.file_digest(file, "sha256").hexdigest() == shard["sha256"])
