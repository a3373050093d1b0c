"""The journal of a folder that is being made: the plan's hash, and each finished shard with its counts.

It lies in `.derivlang/` until the manifest is written. The same plan goes on from it; another plan is refused.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.store.manifest import LEXICON, NAME

_FOLDER = ".derivlang"
_OURS = {NAME, LEXICON, "README.md", "data", _FOLDER}


class Journal:
    """Of one folder and one plan. `done`: the entries of the finished shards, by task name."""

    def __init__(self, folder: Path, plan: str):
        self.folder, self.plan = folder, plan
        self._path = folder / _FOLDER / "journal.jsonl"
        self.done: dict[str, dict[str, Any]] = {}

    def open(self, *, force: bool = False) -> dict[str, Any] | None:
        """Make the folder ready. Gives the manifest if this plan is already done there.

        StoreError where the folder holds something else, or (without `force`) another plan's set.
        """
        folder = self.folder
        if folder.exists() and not folder.is_dir():
            raise StoreError("this is a file, not a folder", where=str(folder), id="output")
        present = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
        alien = sorted(present - _OURS)
        if alien or (present and not (present & {NAME, _FOLDER})):
            raise StoreError(
                f"the folder holds something else: {', '.join(alien or sorted(present))[:80]}",
                where=str(folder),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )
        if force:
            self.clear()
        elif NAME in present:
            manifest: dict[str, Any] = json.loads((folder / NAME).read_text("utf-8"))
            if manifest["plan"] != self.plan:
                raise self._other(str(manifest["spec"]))
            if self._whole(manifest):
                return manifest
            self.clear()  # damaged or missing shards: counts are not kept by shard, so all is made again
        elif self._path.exists():
            self._read()
        (folder / "data").mkdir(parents=True, exist_ok=True)
        self._path.parent.mkdir(exist_ok=True)
        for leftover in (folder / "data").glob(".*.tmp"):
            leftover.unlink()
        if not self.done:
            self._path.write_text(json.dumps({"plan": self.plan}) + "\n", "utf-8")
        return None

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Record a finished shard."""
        self.done[name] = entry
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"task": name, **entry}, ensure_ascii=False) + "\n")

    def vocabulary(self, name: str) -> Path:
        """Where the type counts of a task wait until the manifest is written."""
        return self.folder / _FOLDER / f"{name}.vocabulary"

    def close(self) -> None:
        shutil.rmtree(self.folder / _FOLDER)

    def clear(self) -> None:
        """Remove what a run of derivlang wrote here, and nothing else."""
        for name in _OURS:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _read(self) -> None:
        lines = self._path.read_text("utf-8").splitlines()
        try:
            entries = [json.loads(line) for line in lines if line.endswith("}")]
            plan = entries[0]["plan"]
        except (ValueError, IndexError, KeyError) as error:
            raise StoreError(
                "the journal is damaged", where=str(self._path), fix="pass --force to begin anew", id="journal"
            ) from error
        if plan != self.plan:
            raise self._other("another plan")
        for entry in entries[1:]:
            shard = entry["shard"]
            file = self.folder / shard["file"]
            vocabulary = self.vocabulary(entry["task"])
            if file.exists() and file.stat().st_size == shard["bytes"] and vocabulary.exists():
                self.done[entry.pop("task")] = entry

    def _whole(self, manifest: dict[str, Any]) -> bool:
        shards = [shard for entry in manifest["splits"].values() for shard in entry["shards"]]
        files = [(self.folder / shard["file"], shard["bytes"]) for shard in shards]
        return all(file.exists() and file.stat().st_size == size for file, size in files)

    def _other(self, spec: str) -> StoreError:
        return StoreError(
            f"the folder holds a set made by another plan ({spec})",
            where=str(self.folder),
            fix="choose another folder with -o, or pass --force to replace it",
            id="other-plan",
        )
