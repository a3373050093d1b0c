"""A set that is being made: its plan, the records of its tasks, and how the finished set comes to its place.

    .derivlang/plan.json                                         the hash of the plan, and what was asked for
    .derivlang/3f0c9a12b4d5e6f7/train-00000-of-00002.record      a finished task of this plan
    .derivlang/3f0c9a12b4d5e6f7/data/train-00000-of-00002.parquet    its shard, in a local folder
    data/train-00000-of-00002.parquet                            its shard, at a URL: it stays there

Each plan has a stage of its own, so a process that still works for another plan does no harm. A failed run leaves an
older set as it was, and the same plan goes on from its finished tasks. Foreign files are never touched.

In a local folder the whole folder `data` is replaced at once, when all else but the manifest is there. At a URL nothing
can be held or renamed. There `plan.json` is written only if there is none, which lets one plan win, and a plan that
replaces another set has a folder of its own for its shards, `data-3f0c9a12/`. In both the manifest comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.messages import counted
from derivlang.core.seal import is_intact, sealed
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store import disk
from derivlang.store.disk import LOCK, STAGE
from derivlang.store.manifest import NAME, Derived, read_manifest, shards_of
from derivlang.store.record import difference, record_text
from derivlang.store.set_plan import (
    BEGUN,
    DATA,
    FILES,
    OTHER_PLAN,
    PLAN,
    SHARD,
    Target,
    TaskRecord,
    begun_plan,
    difference_of_sets,
    is_of_set,
    read_plan,
    stage_of,
)
from derivlang.store.storage import store_at

Warn = Callable[[str], None]


class Making(Target):
    """The run of one plan into one place.

    with making.held(spec, warn):       # another run of this plan waits, a run of another plan is refused
        if (manifest := making.open(tasks, force=force)) is None:
            ...                         # run the tasks that are not in `done`, then close(); give_up() after a failure

    done: the names of the tasks that earlier runs have finished.
    """

    def __init__(
        self,
        out: Path,
        plan: str,
        asked: Mapping[str, Any],
        kept: Mapping[str, bytes] = {},
        begun: Mapping[str, Any] = {},
    ):
        """plan: the hash of everything that the set depends on. asked: the part of it that people know by name.

        kept: the content of the files that the spec names, for the folder `files/`. begun: what `plan.json` says, if it
        is of this plan. StoreError for a URL where no set can be made.
        """
        super().__init__(store_at(out), plan)
        self.out, self.asked, self.kept = out, asked, kept
        self.done: set[str] = set()
        self._own_data = f"{DATA}-{plan[:8]}"  # the folder of the shards at a URL where an older set is replaced
        self._seen: tuple[bytes | None, bool] = (None, False)  # the last `plan.json`, and whether it was of this plan
        self.follows: str | None = None  # the hash of the plan whose tasks counted for this one (engine/counting.py)
        self._begun_before = False  # whether an earlier run of this plan has left something that must stay
        self._take(begun)

    def _take(self, begun: Mapping[str, Any]) -> None:
        """Take what `plan.json` says of what this set replaces, and of the folder of its shards."""
        self._replaces = {name for name in begun.get("replaces", []) if is_of_set(name)}
        self.final = begun["data"] if begun.get("data") == self._own_data else DATA

    def check_place(self, *, force: bool = False) -> Mapping[str, int]:
        """Return what is in the place, as `Store.sizes`. StoreError for anything but a derived set, finished or not.

        force: the set is to be replaced.
        """
        own = stage_of(self.plan)
        self.store.check(STAGE, own, f"{own}/{DATA}", f"{own}/{SPEC_FILES}", DATA, SPEC_FILES)
        listing, is_local = self.store.sizes(), self.store.is_local
        there = listing.keys() - {LOCK}
        staged = {name for name in there if name.startswith(f"{STAGE}/")}
        begun, older = bool(staged) if is_local else PLAN in there, self.older_files() if NAME in there else set()
        ours = FILES | older | self._replaces | {f"{DATA}/", f"{SPEC_FILES}/"}
        ours |= {f"{SPEC_FILES}/{name}" for name in self.kept if begun}
        # Without a manifest that lists them, only their form says what shards are.
        shards = not older or (not is_local and (begun or force))
        # Anything that derivlang would not have written here may be a user's file: the run stops before it writes or
        # removes.
        alien = {name for name in there - staged - ours if not (shards and SHARD.fullmatch(name))}
        if alien or not (begun or NAME in there or len(staged) == len(there)):
            raise StoreError(
                f"the folder holds something else: {', '.join(sorted(alien or there))[:80]}",
                where=str(self.out),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )
        return listing

    def is_begun(self) -> bool:
        """Return whether a run is at work in a local folder, or was killed and left something there."""
        return self.store.is_local and any((self.out / name).exists() for name in (STAGE, LOCK))

    @contextmanager
    def held(self, spec: str, warn: Warn) -> Iterator[None]:
        """Hold the place during the block, if it can be held, so that no other process makes a set there.

        Warns once and waits if a run of the same plan holds it. StoreError if a run of another plan holds it, or if the
        place holds anything but a derived set. spec: named in the error of a run that is refused.
        """
        if not self.store.is_local:
            yield
            return
        try:
            self.check_place()
        except StoreError:
            # If another run is at work, it may have changed the folder in between: `open` looks at its result.
            if not self.is_begun():
                self.check_place()  # or it has just ended
        with disk.held(self.out, self.plan, spec, warn, what="a set in this folder", lock=self.out / LOCK):
            yield

    def finished(self, *, force: bool = False, warn: Warn = lambda message: None) -> dict[str, Any] | None:
        """Return the manifest if this plan is already done in the place; writes nothing.

        warn: called with the file that is missing or damaged in a set of this plan, which has to be made again.
        StoreError if the place holds anything but a derived set, or (without `force`) the set of another plan.
        """
        self.check_place(force=force)
        if force or not (self.out / NAME).exists():
            return None
        manifest = read_manifest(self.out)
        if manifest.get("plan") != self.plan:
            raise self.other({"options": [], **manifest, "splits": list(manifest["splits"])})
        damaged = self._damaged(manifest) if is_intact(manifest) else NAME
        if damaged is not None:
            warn(f"{self.store.where(damaged)} is missing or was changed; the set is made again")
            return None
        return manifest

    def _damaged(self, manifest: Mapping[str, Any]) -> str | None:
        """Return the first file of the set that is missing or does not match its manifest, None if it is whole."""
        is_whole = self.store.matching()
        damaged = [shard["file"] for shard in shards_of(manifest) if not is_whole(shard["file"], shard)]
        copies = {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        damaged += [name for name, content in copies.items() if self.store.get(name) != content]
        with suppress(DerivlangError, ValueError):  # of a lexicon that cannot be read
            if damaged or not manifest["lexicon"] or Derived(self.out).has_fingerprint():
                return next(iter(damaged), None)
        return str(manifest["lexicon"])

    def open(
        self,
        tasks: Iterable[str],
        *,
        force: bool = False,
        counts: bool = False,
        warn: Warn = lambda message: None,
    ) -> dict[str, Any] | None:
        """Prepare the place, which must be held, for the run. Returns the manifest if this plan is already done there.

        tasks: the names of all tasks of the plan. counts: whether they only count the source; else a plan of the same
        set that counts may be there, which this one then follows. StoreError as in `finished`, and for an unfinished
        set of another plan.
        """
        finished = self.finished(force=force, warn=warn)
        if finished is not None:
            self.sweep()
            return finished
        there, begun, is_local = self.store.sizes(), begun_plan(self.store), self.store.is_local
        if begun.get("plan") == self.plan:
            self._take(begun)
            self._begun_before, self.done = True, self.done_of(tasks)
            return None
        told = difference_of_sets(begun.get("asked", {}), self.asked)
        if begun.get("stage") == "count" and not (counts or told):
            self.follows = begun["plan"]
        if self.follows or (is_local and not begun):  # or it was damaged: the records say which plan they belong to
            self.done = self.done_of(tasks)
            self._begun_before = bool(self.done)
        # In a held place nothing is lost with a plan that has no finished task, unless ranks are about to begin.
        is_empty = is_local and "job" not in begun and not (begun and Target(self.store, begun["plan"]).has_rows())
        if PLAN in there and not is_empty and not (force or self.follows):
            why = "its source was changed, or is counted in another way" if counts else ""
            raise self.other(begun.get("asked", {}), BEGUN, told or why)
        if is_local and not (self._begun_before or self.follows):
            self._clean(None)
        if not is_local and ((PLAN in there and not self.follows) or NAME in there):
            # A folder of its own: the set that is there may be of this plan, too, and lies in another one.
            used = {name.partition("/")[0] for name in self.older_files()}
            self.final = DATA if self._own_data in used else self._own_data
        shards = {name for name in there if SHARD.fullmatch(name) and not name.startswith(f"{self.final}/")}
        self._replaces = shards | self.older_files()
        if self.follows:  # what was counted stays until this plan is complete
            return None
        try:
            self.begin(over=PLAN in there)  # with `force`: one put, so that at every moment there is a plan
        except StoreError:
            self.give_up()
            raise
        return None

    def close(self, files: Mapping[str, str], shards: Sequence[Mapping[str, Any]]) -> None:
        """Put the finished set in its place: the shards, then these texts by file name, the manifest last.

        shards: the entries of the manifest. StoreError if one is not there any more.
        """
        there = self.check_place()  # what was put into the place during the run
        is_local, final, staged = self.store.is_local, self.final, self.data
        found = {**there, **self.store.sizes(staged)} if is_local else there
        names = {Path(shard["file"]).name: shard["bytes"] for shard in shards}
        places = {name: (f"{staged}/{name}", f"{final}/{name}") for name in names}
        if lost := [name for name, size in names.items() if size not in map(found.get, places[name])]:
            raise self.unfinished([Path(name).stem for name in lost])
        if not (is_local or self.is_current()):
            raise self._replaced()
        new = {name: text.encode() for name, text in files.items()}
        new |= {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        own = new.keys() | {shard["file"] for shard in shards}
        is_other = NAME in there and not self._is_there()
        self._replaces |= self.older_files() if is_other else set()
        put = self.store.prepare(new, f"{stage_of(self.plan)}/fresh")
        if is_local or is_other:
            # Its card and its lexicon are about to be others, and without a manifest no reader takes them for its own.
            self.store.remove(NAME)
        with self.store.replacing(final, staged, names):
            for name in sorted(new.keys() - {NAME}):  # the card first: without it a reader guesses what the data is
                put(name)
            gone = {name for name in there if name in FILES | self._replaces and not SHARD.fullmatch(name)}
            self.store.remove(*(gone - own))
        put(NAME)
        self._clean(own)

    def begin(self, details: Mapping[str, Any] = {}, *, over: bool = False) -> None:
        """Write down which plan this is. details: what ranks need of it, JSON values. over: another plan is replaced.

        StoreError if another command was quicker, in a place that cannot be held.
        """
        plan = {"plan": self.plan, "asked": self.asked, "replaces": sorted(self._replaces), "data": self.final}
        content = record_text(sealed({**plan, **details})).encode()
        follows = self.follows is not None and begun_plan(self.store).get("plan") == self.follows
        if over or follows or (details and self.is_current()):
            self.store.put(PLAN, content)
            return
        self.store.put_new(PLAN, content)
        begun = begun_plan(self.store)  # read back: not every store refuses to replace what is there
        if begun.get("plan") != self.plan:
            raise self.other(begun.get("asked", {}), BEGUN)

    def give_up(self) -> None:
        """Remove what a failed run has written, unless it goes on from an earlier one, or some task has rows."""
        with suppress(StoreError):  # of a store that has just failed: the same command goes on, or says what is left
            if self.follows or self._begun_before or self.has_rows():
                return
            if not self.store.is_local:
                there = self.store.sizes()
                if NAME in there or not self.is_current():
                    return
                # A set that was only begun, and that this one was to replace, goes with its plan.
                self._remove({name for name in there if SHARD.fullmatch(name)})
            self.sweep()

    def sweep(self) -> None:
        """Remove what a run of this plan has left beside the finished set, if it was killed just before its end.

        Nothing is removed if `plan.json` is of another plan, or was damaged.
        """
        begun = read_plan(self.store)
        if begun is not None and begun.get("plan", "") not in (self.plan, self.follows):
            return
        self._take(begun or {})
        own = self.older_files() if begun is not None and self._is_there() else set()
        self._clean(own or None)

    def retract(self, tasks: Iterable[str]) -> None:
        """Remove what tasks have written after their plan was finished by others, or replaced by another one."""
        made = {f"{self.data}/{task}.parquet" for task in tasks}
        # Errors are not passed over: what the set lists must stay.
        if not self.store.is_local and self.store.get(NAME) is not None:
            made -= {shard["file"] for shard in shards_of(read_manifest(self.out))}
        self.store.remove(f"{stage_of(self.plan)}/", *made)

    def _clean(self, own: Collection[str] | None) -> None:
        """Remove the stage, its plan last, and what the finished set has replaced.

        own: the names of its files; None to remove the stage only.
        """
        there = self.store.sizes()
        gone = {name for name in there if name.startswith(f"{STAGE}/")} - {PLAN}
        if own is not None:  # the plan says what was replaced, and shards have names of their own
            gone |= {name for name in there if name in self._replaces or SHARD.fullmatch(name)} - set(own)
        self._remove(gone)
        self.store.remove(PLAN)

    def _remove(self, names: set[str]) -> None:
        """Remove files. A store may refuse some of many without a word: these are tried once more, each by itself."""
        self.store.remove(*names)
        for name in names & self.store.sizes().keys() if names else ():
            self.store.remove(name)

    def is_current(self) -> bool:
        """Return whether the place still waits for this plan: it is neither finished nor replaced by another one."""
        content = self.store.get(PLAN)
        if content != self._seen[0]:  # a large plan is parsed once, and not after each task
            self._seen = content, begun_plan(self.store).get("plan") == self.plan
        return self._seen[1]

    def check_current(self, tasks: Iterable[str]) -> None:
        """Raise StoreError if another set has been begun in a place that cannot be held. tasks: just done, removed."""
        if not (self.store.is_local or self.is_current() or self.is_by_others()):
            self.retract(tasks)
            raise self._replaced()

    def is_by_others(self) -> bool:
        """Return whether other processes have finished the set of this plan, in a place that cannot be held."""
        return not self.store.is_local and read_plan(self.store) is None and self._is_there()

    def all_records(self, tasks: Sequence[str], *, shards: bool = False) -> Iterator[TaskRecord]:
        """Yield the records of tasks, in their order, each read once.

        shards: look for their shards, too, as others may have made them. StoreError if a task is not done, after all
        have been looked at.
        """
        is_whole, missing = self.whole() if shards else bool, list[str]()
        for task, record in zip(tasks, self.records(tasks), strict=True):
            if record is None or not is_whole(record):
                missing.append(task)
            elif not missing:
                yield record
        if missing:
            raise self.unfinished(missing)

    def unfinished(self, tasks: list[str]) -> StoreError:
        """Return the error for tasks that have no record."""
        return StoreError(
            f"{counted(len(tasks), 'task')} not done yet, the first: {tasks[0]}",
            where=str(self.out),
            fix="run `derivlang work` for each rank again, or `make`: they take the tasks that are not done",
            id="unfinished",
        )

    def older_files(self) -> set[str]:
        """Return the names of the files of the set that is there; none if there is none that can be read."""
        with suppress(DerivlangError):
            return set(Derived(self.out, changed=True).own_files())
        return set()

    def _is_there(self) -> bool:
        """Return whether the manifest that is there is of this plan."""
        with suppress(StoreError):
            return bool(read_manifest(self.out).get("plan") == self.plan)
        return False

    def other(self, recorded: Mapping[str, Any], state: str = "", told: str = "") -> StoreError:
        """Return the error for a set of another plan. recorded: what its manifest or its plan says of it.

        told: the difference, if it is known.
        """
        known = {name: value for name, value in self.asked.items() if name in recorded}
        told = told or difference(recorded, known) or OTHER_PLAN
        return StoreError(
            f"the folder holds another set ({state}{told})",
            where=str(self.out),
            fix="choose another folder with -o, or pass --force to replace it",
            id="other-plan",
        )

    def _replaced(self) -> StoreError:
        return StoreError(
            "another command has begun a set here in the meantime",
            where=str(self.out),
            fix="make this one in another place",
            id="other-run",
        )
