"""A set that is made in a local folder: in a stage, `.derivlang/`, which replaces the older set when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store import journal
from derivlang.store.disk import LOCK, disk, held
from derivlang.store.folder_store import TEMPORARY, FolderStore
from derivlang.store.folders import remove_files
from derivlang.store.listing import file_hash
from derivlang.store.making import DATA, FILES, SHARD, STAGE, Making, Target, Warn, begun_plan
from derivlang.store.manifest import NAME, Derived, is_intact, read_manifest


class FolderMaking(Making):
    """The run of one plan into a local folder."""

    def __init__(self, folder: Path, plan: str, asked: Mapping[str, Any], kept: Mapping[str, bytes] = {}):
        super().__init__(folder, FolderStore(folder), plan, asked, kept)
        self.folder, self.stage = folder, folder / STAGE

    @property
    def target(self) -> Target:
        return Target(self.store, self.plan, f"{STAGE}/{DATA}")

    def is_begun(self) -> bool:
        return self.stage.exists() or (self.folder / LOCK).exists()

    @contextmanager
    def held(self, spec: str, warn: Warn) -> Iterator[None]:
        try:
            self._refuse_others()
        except StoreError:
            # If another run is at work, it may have changed the folder in between: `open` looks at its result.
            if not self.is_begun():
                self._refuse_others()  # or it has just ended
        with held(self.folder, self.plan, spec, warn, what="a set in this folder", lock=self.folder / LOCK):
            yield

    def finished(self, *, force: bool = False, warn: Warn = lambda message: None) -> dict[str, Any] | None:
        self._refuse_others()
        if not (self.folder / NAME).exists() or force:
            return None
        manifest = read_manifest(self.folder)
        if manifest.get("plan") != self.plan:
            raise self.other({"options": [], **manifest, "splits": list(manifest["splits"])})
        damaged = self._damaged(manifest) if is_intact(manifest) else NAME
        if damaged is not None:
            warn(f"{self.folder / damaged} is missing or was changed; the set is made again")
            return None
        return manifest

    def open(
        self, tasks: Iterable[str], *, force: bool = False, warn: Warn = lambda message: None
    ) -> dict[str, Any] | None:
        manifest = self.finished(force=force, warn=warn)
        if manifest is not None:
            self.sweep()
            return manifest
        tasks = list(tasks)
        if self.stage.exists():
            self._take_up(tasks, force)
        try:
            with disk(self.folder):
                (self.stage / DATA).mkdir(parents=True, exist_ok=True)
                _remove_temporary(self.stage / DATA)
            if begun_plan(self.store).get("plan") != self.plan:
                self.begin()
        except StoreError:
            self.give_up()
            raise
        return None

    def sweep(self) -> None:
        if self.stage.is_dir() and begun_plan(self.store).get("plan", self.plan) == self.plan:
            with disk(self.stage):
                shutil.rmtree(self.stage)

    def _take_up(self, tasks: list[str], force: bool) -> None:
        """Take the finished tasks of an earlier run of this plan. Those of another plan are refused, or removed."""
        begun = begun_plan(self.store)
        header, records = journal.read(self.store)
        for task, record in records.items():
            Target(self.store, header["plan"], self.target.data).commit(task, record)
        if begun.get("plan") in (None, self.plan):
            self.done = self.done_of(tasks)
            if self.done or "plan" in begun:
                return
        elif not force and ("job" in begun or self._has_finished_tasks(begun["plan"])):
            # Nothing is lost by removing a stage without a finished task, unless ranks are about to begin.
            raise self.other(begun["asked"], "begun, but not finished: ")
        with disk(self.stage):
            shutil.rmtree(self.stage)

    def has_shard(self, shard: Mapping[str, Any]) -> bool:
        return _same(self.stage, shard)

    def _has_finished_tasks(self, plan: str) -> bool:
        """Return whether some task of a plan is done that has rows."""
        target = Target(self.store, plan, self.target.data)
        shards = (r.entry["shard"] for path in self.stage.glob("*.record") if (r := target.record(path.stem)))
        return any(shard["rows"] and self.has_shard(shard) for shard in shards)

    def close(self, files: Mapping[str, str]) -> None:
        self._refuse_others()  # what was put into the folder during the run
        with disk(self.folder):
            for name, text in files.items():
                (self.stage / name).write_text(text, "utf-8", newline="\n")
            _remove_temporary(self.stage / DATA)
            shutil.rmtree(self.stage / SPEC_FILES, ignore_errors=True)  # of a run that was killed here
            if self.kept:
                (self.stage / SPEC_FILES).mkdir()
            for name, content in self.kept.items():
                (self.stage / SPEC_FILES / name).write_bytes(content)
            remove_files(self.folder, (*FILES, "data/*.parquet", f"{SPEC_FILES}/*"), record=NAME)
            for folder in (DATA, *([SPEC_FILES] if self.kept else [])):
                # The older set is gone now. Until the manifest is there the folder counts as unfinished, so that a run
                # that is killed between these lines is continued.
                (self.stage / folder).replace(self.folder / folder)
            # False sorts before True: the manifest is last.
            for name in sorted(files, key=lambda name: name == NAME):
                (self.stage / name).replace(self.folder / name)
            shutil.rmtree(self.stage)

    def give_up(self) -> None:
        if not self._has_finished_tasks(self.plan):
            shutil.rmtree(self.stage, ignore_errors=True)

    def _refuse_others(self) -> None:
        """Raise StoreError unless the folder is missing, empty, or holds only a derived set, finished or not."""
        folder = self.folder
        with disk(folder):
            if not folder.exists():
                above = next(parent for parent in folder.absolute().parents if parent.exists())
                if not above.is_dir():
                    raise StoreError(f"{above} is a file, not a folder", where=str(folder), id="output")
                return
        if not folder.is_dir():
            raise StoreError("this is a file, not a folder", where=str(folder), id="output")
        entries = _entries(folder)
        # Anything that derivlang would not have written here may be a user's file: the run stops before it writes or
        # removes.
        alien = [e.name for e in entries if not self._ours(e)]
        if (folder / DATA).is_dir():
            listed = self._listed()
            inside = (f"{DATA}/{entry.name}" for entry in _entries(folder / DATA))
            alien += [name for name in inside if not (SHARD.fullmatch(name) if listed is None else name in listed)]
        # The stage first: a run that has just ended has replaced it by the set.
        known = self.stage.is_dir() or (folder / NAME).is_file() or all(e.name == LOCK or _is_gone(e) for e in entries)
        if alien or (entries and not known):
            raise StoreError(
                f"the folder holds something else: {', '.join(alien or [e.name for e in entries])[:80]}",
                where=str(folder),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )

    def _listed(self) -> set[str] | None:
        """Return the shards that the manifest lists, or None if there is no readable manifest."""
        if not (self.folder / NAME).is_file():
            return None
        with suppress(StoreError):
            splits = read_manifest(self.folder)["splits"].values()
            return {shard["file"] for entry in splits for shard in entry["shards"]}
        return None

    @staticmethod
    def _ours(entry: Path) -> bool:
        """Return whether an entry of the folder is of a run; True for one that another run has just removed."""
        if entry.is_file():
            return entry.name in (*FILES, LOCK)
        if entry.is_dir():
            return entry.name in (DATA, SPEC_FILES, STAGE)
        return _is_gone(entry)

    def _damaged(self, manifest: dict[str, Any]) -> str | None:
        """Return the first file of the set that is missing or does not match its manifest, None if it is whole."""
        shards = [shard for entry in manifest["splits"].values() for shard in entry["shards"]]
        damaged = [shard["file"] for shard in shards if not _same(self.folder, shard)]
        damaged += [f"{SPEC_FILES}/{name}" for name, content in self.kept.items() if not self._has_copy(name, content)]
        if not damaged and not self._has_lexicon(manifest):
            damaged.append(str(manifest["lexicon"]))
        return next(iter(damaged), None)

    def _has_copy(self, name: str, content: bytes) -> bool:
        """Return whether the set has its copy of a file that the spec names; sets of earlier versions have none."""
        path = self.folder / SPEC_FILES / name
        return path.is_file() and path.read_bytes() == content

    def _has_lexicon(self, manifest: dict[str, Any]) -> bool:
        """Return whether lexicon.tsv fits the fingerprint in the manifest; True for a set without a lexicon."""
        if not manifest["lexicon"]:
            return True
        try:
            return Derived(self.folder).has_fingerprint()
        except (DerivlangError, ValueError):
            return False


def _remove_temporary(folder: Path) -> None:
    """Remove what processes that were killed have left in the folder of the shards."""
    for leftover in folder.glob(TEMPORARY):
        leftover.unlink(missing_ok=True)


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, nothing if another run has just removed it."""
    with suppress(FileNotFoundError):
        return list(folder.iterdir())
    return []


def _is_gone(path: Path) -> bool:
    return not os.path.lexists(path)


def _same(folder: Path, shard: Mapping[str, Any]) -> bool:
    """Return whether the shard is there with the bytes that were recorded."""
    path = folder / shard["file"]
    # The size first: it is known without reading the file.
    return bool(path.is_file() and path.stat().st_size == shard["bytes"] and file_hash(path) == shard["sha256"])
