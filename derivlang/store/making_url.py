"""A set that is made at a URL: each shard is written where it will be, and the manifest, written last, makes the set.

Nothing can be held or renamed there. So `plan.json` is written only if there is none, which lets one plan win, and a
plan that replaces another set has a folder of its own for its shards, `data-3f0c9a12/`. The older set stays whole until
all shards of the new one are there; then its manifest goes, the new one comes, and the rest of it is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.making import (
    BEGUN,
    DATA,
    DRAFT,
    FILES,
    PLAN,
    SHARD,
    Making,
    Target,
    Warn,
    begun_plan,
    of_draft,
    read_plan,
    stage_of,
)
from derivlang.store.manifest import NAME, Derived, read_manifest, shards_of
from derivlang.store.task_record import STAGE
from derivlang.store.url_store import UrlStore


class UrlMaking(Making):
    """The run of one plan into a place with a URL."""

    def __init__(
        self,
        out: Path,
        plan: str,
        asked: Mapping[str, Any],
        kept: Mapping[str, bytes] = {},
        begun: Mapping[str, Any] = {},
    ):
        super().__init__(out, UrlStore(str(out)), plan, asked, kept, begun)

    def _take(self, begun: Mapping[str, Any]) -> None:
        super()._take(begun)
        data = begun.get("data", DATA)
        self._data = data if data in (DATA, self._own_data) else DATA

    @property
    def _own_data(self) -> str:
        """The folder of the shards where an older set is replaced."""
        return f"{DATA}-{self.plan[:8]}"

    @property
    def target(self) -> Target:
        return Target(self.store, self.plan, self._data, self._data)

    def is_begun(self) -> bool:
        return False  # nothing is held, and a manifest appears whole

    @contextmanager
    def held(self, spec: str, warn: Warn) -> Iterator[None]:
        yield

    def open(
        self, tasks: Iterable[str], *, force: bool = False, warn: Warn = lambda message: None
    ) -> dict[str, Any] | None:
        finished = self.finished(force=force, warn=warn)
        if finished is not None:
            self.sweep()
            return finished
        there, begun = self.store.sizes(), begun_plan(self.store)
        if DRAFT in there:
            self.check_draft(force=force)
        if begun.get("plan") == self.plan:
            self._take(begun)
            self._begun_before, self.done = True, self.done_of(tasks)
            return None
        if PLAN in there and not force:
            raise self.other(begun.get("asked", {}), BEGUN)
        if PLAN in there or NAME in there:
            # A folder of its own: the set that is there may be of this plan, too, and lies in another one.
            used = {name.partition("/")[0] for name in self.older_files()}
            self._data = DATA if self._own_data in used else self._own_data
        shards = {name for name in there if SHARD.fullmatch(name) and not name.startswith(f"{self._data}/")}
        self._replaces = shards | self.older_files()
        if PLAN in there:  # with `force`: one put, so that at every moment there is a plan
            self.store.put(PLAN, self.dump({"data": self._data}))
        else:
            self.begin()
        return None

    def begin(self, details: Mapping[str, Any] = {}) -> None:
        content = self.dump({"data": self._data, **details})
        if details and self.is_current():
            self.store.put(PLAN, content)
            return
        self.store.put_new(PLAN, content)
        begun = begun_plan(self.store)  # read back: not every store refuses to replace what is there
        if begun.get("plan") != self.plan:  # another command was quicker
            raise self.other(begun.get("asked", {}), BEGUN)

    def shards(self) -> Callable[[Mapping[str, Any]], bool]:
        there = cache(self.store.sizes)  # a folder is listed once, when the first record is found

        def has_shard(shard: Mapping[str, Any]) -> bool:
            size: int = shard["bytes"]
            return there(shard["file"].partition("/")[0]).get(shard["file"]) == size

        return has_shard

    in_place = shards

    def close(self, files: Mapping[str, str], shards: Sequence[Mapping[str, Any]]) -> None:
        there = self.store.sizes()
        self._refuse_others(there)
        if lost := [shard["file"] for shard in shards if there.get(shard["file"]) != shard["bytes"]]:
            raise self.unfinished([Path(name).stem for name in lost])
        if not self.is_current():
            raise self._replaced()
        new = {name: text.encode() for name, text in files.items()}
        new |= {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        older = self._older_plan() if NAME in there else self.plan
        self._replaces |= self.older_files() if older != self.plan else set()
        if older != self.plan:
            # Its card and its lexicon are about to be others, and without a manifest no reader takes them for its own.
            self.store.remove(NAME)
        # False sorts before True: the manifest is last.
        for name in sorted(new, key=lambda name: name == NAME):
            self.store.put(name, new[name])
        if DRAFT in there:
            self.store.remove(DRAFT)
        self._clean(new.keys() | {shard["file"] for shard in shards})

    def sweep(self) -> None:
        begun = read_plan(self.store)
        if begun is not None and begun.get("plan") != self.plan:
            return
        self._take(begun or {})
        if begun is None or self._older_plan() != self.plan:
            self._clean(None)
        else:
            self._clean(Derived(self.out, changed=True).own_files())

    def _clean(self, own: Collection[str] | None) -> None:
        """Remove the stage but for a draft, its plan last, and what the finished set has replaced.

        own: the names of its files; None to remove the stage only.
        """
        there = self.store.sizes()
        stays = of_draft(self.store) | {PLAN}
        gone = {name for name in there if name.startswith(f"{STAGE}/") and not {name, name.rpartition("/")[0]} & stays}
        if own is not None:  # the plan says what was replaced, and shards have names of their own
            gone |= {name for name in there if name in self._replaces or SHARD.fullmatch(name)} - set(own)
        self._remove(gone)
        self.store.remove(PLAN)

    def _remove(self, names: set[str]) -> None:
        """Remove files. A store may refuse some of many without a word: these are tried once more, each by itself."""
        self.store.remove(*names)
        for name in names & self.store.sizes().keys() if names else ():
            self.store.remove(name)

    def check_current(self, tasks: Iterable[str]) -> None:
        if not self.is_current() and not self.is_by_others():
            self.retract(tasks)
            raise self._replaced()

    def is_by_others(self) -> bool:
        return read_plan(self.store) is None and self._older_plan() == self.plan

    def retract(self, tasks: Iterable[str]) -> None:
        made = {self.target.file(task) for task in tasks}
        if self.store.get(NAME) is not None:  # errors are not passed over: what the set lists must stay
            made -= {shard["file"] for shard in shards_of(read_manifest(self.out))}
        self.store.remove(*self.store.sizes(stage_of(self.plan)), *made)

    def give_up(self) -> None:
        with suppress(StoreError):  # of a store that has just failed: the same command goes on, or says what is left
            there = self.store.sizes()
            stage = f"{stage_of(self.plan)}/"
            if self._begun_before or NAME in there or any(name.startswith(stage) for name in there):
                return
            if self.is_current():
                # A set that was only begun, and that this one was to replace, goes with its plan.
                self._remove({name for name in there if SHARD.fullmatch(name)})
                self.sweep()

    def _replaced(self) -> StoreError:
        return StoreError(
            "another command has begun a set here in the meantime",
            where=str(self.out),
            fix="make this one in another place",
            id="other-run",
        )

    def check_place(self, *, force: bool = False) -> None:
        self._refuse_others(self.store.sizes(), force=force)

    def _older_plan(self) -> str | None:
        """Return the plan of the set that is there; None if there is none that can be read."""
        with suppress(StoreError):
            return str(read_manifest(self.out).get("plan"))
        return None

    def _refuse_others(self, there: Mapping[str, int], *, force: bool = False) -> None:
        """Raise StoreError unless the place is empty, or holds only a derived set, finished or not."""
        begun, older = PLAN in there, self.older_files() if NAME in there else set()
        own = FILES | older | self._replaces | {f"{SPEC_FILES}/{name}" for name in self.kept if begun}
        # Without a manifest that lists them, only their form says what shards are.
        shards = begun or force or not older
        staged = [name for name in there if name.startswith(f"{STAGE}/")]
        alien = [name for name in there if name not in own and not (shards and SHARD.fullmatch(name))]
        others = [name for name in alien if name not in staged]
        if others or not (begun or NAME in there or len(staged) == len(there)):
            raise StoreError(
                f"the folder holds something else: {', '.join(others or there)[:80]}",
                where=str(self.out),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )
