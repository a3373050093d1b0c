"""The journal of a folder that is being made: the hash of the plan, and each finished shard with its counts.

A run writes everything to `.derivlang/` in the folder. When the set is complete, it replaces what was there. So a run
that fails leaves an older set as it was, and the same plan continues from the finished shards. A folder that holds
anything but a derived set is never touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import HASH, hash_of, sealed
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.card import CARD
from derivlang.store.disk import LOCK, disk, held
from derivlang.store.folders import remove_files
from derivlang.store.listing import file_hash
from derivlang.store.manifest import LEXICON, NAME, Derived, is_intact, read_manifest
from derivlang.store.record import difference

STAGE = ".derivlang"
_JOURNAL = "journal.jsonl"
_FILES = {NAME, LEXICON, CARD}
_SHARD = re.compile(r"data/.+-\d{5}-of-\d{5}\.parquet")


class Journal:
    """The run of one plan into one folder. done: the entries of the finished shards, by task name.

    with journal.held(spec, warn):      # another run of this plan waits, a run of another plan is refused
        if (manifest := journal.open(force=force)) is None:
            ...                         # add() each shard, then close(); give_up() after a failure
    """

    def __init__(self, folder: Path, plan: str, asked: Mapping[str, Any], kept: Mapping[str, bytes] = {}):
        """plan: the hash of everything that the set depends on. asked: the part of it that people know by name.

        kept: the content of the files that the spec names, for the folder `files/`.
        """
        self.folder, self.plan, self.asked, self.kept = folder, plan, asked, kept
        self.stage = folder / STAGE
        self.done: dict[str, dict[str, Any]] = {}
        self._path = self.stage / _JOURNAL

    def is_begun(self) -> bool:
        """Return whether a run is at work in the folder, or was killed and left something there."""
        return self.stage.exists() or (self.folder / LOCK).exists()

    @contextmanager
    def held(self, spec: str, warn: Callable[[str], None]) -> Iterator[None]:
        """Hold the folder during the block, so that no other process makes a set there.

        Warns once and waits if a run of the same plan holds it. StoreError if a run of another plan holds it, or if the
        folder holds anything but a derived set. spec: named in the error of a run that is refused.
        """
        try:
            self._refuse_others()
        except StoreError:
            # If another run is at work, it may have changed the folder in between: `open` looks at its result.
            if not self.is_begun():
                self._refuse_others()  # or it has just ended
        with held(self.folder, self.plan, spec, warn, what="a set in this folder", lock=self.folder / LOCK):
            yield

    def finished(
        self, *, force: bool = False, warn: Callable[[str], None] = lambda message: None
    ) -> dict[str, Any] | None:
        """Return the manifest if this plan is already done in the folder; writes nothing.

        warn: called with the file that is missing or damaged in a set of this plan, which has to be made again.
        StoreError if the folder holds anything but a derived set, or (without `force`) the set of another plan.
        """
        self._refuse_others()
        if not (self.folder / NAME).exists() or force:
            return None
        manifest = read_manifest(self.folder)
        if manifest.get("plan") != self.plan:
            raise self._other({"options": [], **manifest, "splits": list(manifest["splits"])})
        damaged = self._damaged(manifest) if is_intact(manifest) else NAME
        if damaged is not None:
            warn(f"{self.folder / damaged} is missing or was changed; the set is made again")
            return None
        return manifest

    def open(self, *, force: bool = False, warn: Callable[[str], None] = lambda message: None) -> dict[str, Any] | None:
        """Prepare the folder, which must be held, for the run. Returns the manifest if this plan is already done there.

        StoreError as in `finished`, and for an unfinished set of another plan.
        """
        manifest = self.finished(force=force, warn=warn)
        if manifest is not None:
            self._remove_old_stage()
            return manifest
        if self._path.exists():
            self._read(force)
        try:
            self._begin()
        except StoreError:
            self.give_up()
            raise
        return None

    def _remove_old_stage(self) -> None:
        """Remove what a run of this plan left if it was killed just before its end."""
        try:
            plan, _ = _first_line(self._path.read_bytes())
        except OSError:
            plan = None
        if self.stage.is_dir() and plan in (None, self.plan):
            with disk(self.stage):
                shutil.rmtree(self.stage)

    def _begin(self) -> None:
        """Make the staging folder, and write a journal of the finished shards."""
        with disk(self.folder):
            (self.stage / "data").mkdir(parents=True, exist_ok=True)
            for leftover in (self.stage / "data").glob(".*.tmp"):
                leftover.unlink()
            lines = [
                {"plan": self.plan, "asked": self.asked},
                *(_line(name, entry) for name, entry in self.done.items()),
            ]
            fresh = self._path.with_suffix(".tmp")  # so that nothing is appended to a torn last line
            try:
                fresh.write_text(
                    "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8", newline="\n"
                )
                fresh.replace(self._path)
            finally:
                fresh.unlink(missing_ok=True)

    def add(self, name: str, entry: dict[str, Any]) -> None:
        """Record a finished shard, whose vocabulary must be written already."""
        entry = {**entry, "vocabulary": file_hash(self.vocabulary(name))}
        with disk(self._path), self._path.open("a", encoding="utf-8", newline="\n") as out:
            out.write(json.dumps(_line(name, entry), ensure_ascii=False) + "\n")
        self.done[name] = entry

    def vocabulary(self, name: str) -> Path:
        """Return the file that keeps the type counts of a task until the manifest is written."""
        return self.stage / f"{name}.vocabulary"

    def close(self, files: dict[str, str]) -> None:
        """Put the finished set in its place: the shards, then these texts by file name, the manifest last."""
        self._refuse_others()  # what was put into the folder during the run
        with disk(self.folder):
            for name, text in files.items():
                (self.stage / name).write_text(text, "utf-8", newline="\n")
            shutil.rmtree(self.stage / SPEC_FILES, ignore_errors=True)  # of a run that was killed here
            if self.kept:
                (self.stage / SPEC_FILES).mkdir()
            for name, content in self.kept.items():
                (self.stage / SPEC_FILES / name).write_bytes(content)
            remove_files(self.folder, (*_FILES, "data/*.parquet", f"{SPEC_FILES}/*"), record=NAME)
            for folder in ("data", *([SPEC_FILES] if self.kept else [])):
                # The older set is gone now. Until the manifest is there the folder counts as unfinished, so that a run
                # that is killed between these lines is continued.
                (self.stage / folder).replace(self.folder / folder)
            # False sorts before True: the manifest is last.
            for name in sorted(files, key=lambda name: name == NAME):
                (self.stage / name).replace(self.folder / name)
            shutil.rmtree(self.stage)

    def give_up(self) -> None:
        """Remove what a failed run has written, unless it has finished a shard with rows."""
        if any(entry["shard"]["rows"] for entry in self.done.values()):
            return
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
        if (folder / "data").is_dir():
            listed = self._listed()
            inside = (f"data/{entry.name}" for entry in _entries(folder / "data"))
            alien += [name for name in inside if not (_SHARD.fullmatch(name) if listed is None else name in listed)]
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
            return entry.name in (*_FILES, LOCK)
        if entry.is_dir():
            return entry.name in ("data", SPEC_FILES, STAGE)
        return _is_gone(entry)

    def _read(self, force: bool) -> None:
        """Take the finished shards of an earlier run of this plan. Those of another plan are refused, or removed."""
        done: dict[str, dict[str, Any]] = {}
        plan: str | None = None
        asked: dict[str, Any] = {}
        with suppress(DerivlangError), parse_errors(str(self._path), "journal"):  # a damaged journal counts as none
            content = self._path.read_bytes()
            for line in content.split(b"\n")[1:-1]:  # text after the last line end is a torn line
                entry = json.loads(line)
                intact = entry.pop(HASH) == hash_of(entry)
                name, shard = entry.pop("task"), entry["shard"]
                if intact and shard["rows"] and self._same_vocabulary(name, entry) and _same(self.stage, shard):
                    done[name] = entry
            plan, asked = _first_line(content)
        if plan == self.plan:
            self.done = done
            return
        # Nothing is lost by removing a stage without a finished shard, so only finished shards of another plan are
        # protected.
        if plan is not None and done and not force:
            raise self._other(asked, "begun, but not finished: ")
        with disk(self.stage):
            shutil.rmtree(self.stage)

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

    def _same_vocabulary(self, name: str, entry: dict[str, Any]) -> bool:
        path = self.vocabulary(name)
        return bool(path.is_file() and file_hash(path) == entry["vocabulary"])

    def _other(self, recorded: Mapping[str, Any], state: str = "") -> StoreError:
        """Return the error for a set of another plan. recorded: what its manifest or its journal says of it."""
        known = {name: value for name, value in self.asked.items() if name in recorded}
        told = difference(recorded, known) or "its shards have another size, or its transforms other files or rules"
        return StoreError(
            f"the folder holds another set ({state}{told})",
            where=str(self.folder),
            fix="choose another folder with -o, or pass --force to replace it",
            id="other-plan",
        )


def plan_of(folder: Path) -> str | None:
    """Return the hash of the plan of the set in a folder, finished or begun; None if there is none that says it."""
    with suppress(StoreError):
        return str(read_manifest(folder).get("plan"))
    with suppress(OSError):
        return _first_line((folder / STAGE / _JOURNAL).read_bytes())[0]
    return None


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder, nothing if another run has just removed it."""
    with suppress(FileNotFoundError):
        return list(folder.iterdir())
    return []


def _is_gone(path: Path) -> bool:
    return not os.path.lexists(path)


def _line(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a finished shard, with its hash: a damaged count would go into the manifest."""
    return sealed({"task": name, **entry})


def _same(folder: Path, shard: dict[str, Any]) -> bool:
    """Return whether the shard is there with the bytes that were recorded."""
    path = folder / shard["file"]
    # The size first: it is known without reading the file.
    return bool(path.is_file() and path.stat().st_size == shard["bytes"] and file_hash(path) == shard["sha256"])


def _first_line(journal: bytes) -> tuple[str | None, dict[str, Any]]:
    """Return (the plan's hash, what was asked for) of a journal; (None, {}) if its first line is damaged.

    Journals of earlier versions do not say what was asked for.
    """
    with suppress(DerivlangError), parse_errors("journal", "journal"):
        line = json.loads(journal.split(b"\n", 1)[0])
        return str(line["plan"]), dict(line.get("asked") or {})
    return None, {}
