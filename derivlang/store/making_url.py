"""A set that is made at a URL: each shard is written where it will be, and the manifest, written last, makes the set.

Nothing can be held or renamed there. So `plan.json` is written only if there is none, which lets one plan win, and a
plan that replaces another set has a folder of its own for its shards, `data-3f0c9a12/`: the older set stays whole until
the new manifest is there, and what it replaces is removed after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError, StoreError
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.making import DATA, FILES, PLAN, SHARD, STAGE, Making, Target, Warn, begun_plan
from derivlang.store.manifest import LEXICON, NAME, Derived, is_intact, read_manifest
from derivlang.store.url_store import UrlStore


class UrlMaking(Making):
    """The run of one plan into a place with a URL.

    begun: what `plan.json` says, of a plan that was stored.
    """

    def __init__(
        self,
        out: Path,
        plan: str,
        asked: Mapping[str, Any],
        kept: Mapping[str, bytes] = {},
        begun: Mapping[str, Any] = {},
    ):
        super().__init__(out, UrlStore(str(out)), plan, asked, kept)
        self._data = str(begun.get("data", DATA))
        self._replaces = list(begun.get("replaces", []))

    @property
    def target(self) -> Target:
        return Target(self.store, self.plan, self._data, self._data)

    def is_begun(self) -> bool:
        return False  # nothing is held, and a manifest appears whole

    @contextmanager
    def held(self, spec: str, warn: Warn) -> Iterator[None]:
        yield

    def finished(self, *, force: bool = False, warn: Warn = lambda message: None) -> dict[str, Any] | None:
        there = self.store.sizes()
        manifest = self._manifest(there)
        self._refuse_others(there, manifest)
        if manifest is None or force:
            return None
        if manifest.get("plan") != self.plan:
            raise self.other({"options": [], **manifest, "splits": list(manifest["splits"])})
        damaged = self._damaged(manifest, there) if is_intact(manifest) else NAME
        if damaged is not None:
            warn(f"{self.store.where(damaged)} is missing or was changed; the set is made again")
            return None
        return manifest

    def open(
        self, tasks: Iterable[str], *, force: bool = False, warn: Warn = lambda message: None
    ) -> dict[str, Any] | None:
        finished = self.finished(force=force, warn=warn)
        if finished is not None:
            self.sweep()
            return finished
        there, begun = self.store.sizes(), begun_plan(self.store)
        if begun.get("plan") == self.plan:
            self._data, self._replaces = begun.get("data", DATA), begun.get("replaces", [])
            self.done = self.done_of(tasks)
            return None
        if PLAN in there and not force:
            raise self.other(begun.get("asked", {}), "begun, but not finished: ")
        older = self._manifest(there)
        if PLAN in there or (older is not None and older["plan"] != self.plan):
            self._data = f"{DATA}-{self.plan[:8]}"
        self._replaces = [name for name in there if SHARD.fullmatch(name) and not name.startswith(f"{self._data}/")]
        if force:
            self.store.remove(PLAN)
        self.begin()
        return None

    def begin(self, details: Mapping[str, Any] = {}) -> None:
        content = self.dump({"data": self._data, "replaces": self._replaces, **details})
        if not self.store.put_new(PLAN, content):
            begun = begun_plan(self.store)
            if begun.get("plan") != self.plan:  # another command was quicker
                raise self.other(begun.get("asked", {}), "begun, but not finished: ")
            if details:
                self.store.put(PLAN, content)

    def has_shard(self, shard: Mapping[str, Any]) -> bool:
        size: int = shard["bytes"]
        return self.store.sizes(self._data).get(shard["file"]) == size

    def close(self, files: Mapping[str, str]) -> None:
        there = self.store.sizes()
        older = self._manifest(there)
        self._refuse_others(there, older)
        if begun_plan(self.store).get("plan") != self.plan:
            raise StoreError(
                "another command has begun a set here in the meantime",
                where=str(self.out),
                fix="plan this one in another place",
                id="other-run",
            )
        if older is not None:
            # Its card and its lexicon are about to be others, and without a manifest no reader takes them for its own.
            self.store.remove(NAME)
        new = {name: text.encode() for name, text in files.items()}
        new |= {f"{SPEC_FILES}/{name}": content for name, content in self.kept.items()}
        # False sorts before True: the manifest is last.
        for name in sorted(new, key=lambda name: name == NAME):
            self.store.put(name, new[name])
        for name in (*self._replaces, *self._replaced_files(older)):
            if name in there and name not in new:
                self.store.remove(name)
        self.sweep()

    def sweep(self) -> None:
        if begun_plan(self.store).get("plan", self.plan) == self.plan:
            # The plan last: without it, nothing would say whose the others are.
            for name in sorted(self.store.sizes(STAGE), key=lambda name: name == PLAN):
                self.store.remove(name)

    def give_up(self) -> None:
        with suppress(StoreError):  # of a store that has just failed: the same command goes on, or says what is left
            there = self.store.sizes()
            shards = [name for name in there if name.startswith(f"{self._data}/") and SHARD.fullmatch(name)]
            if NAME in there or any(name.startswith(STAGE) and name.endswith(".record") for name in there):
                return
            for name in shards if begun_plan(self.store).get("plan") == self.plan else []:
                self.store.remove(name)
            self.sweep()

    def _manifest(self, there: Mapping[str, int]) -> dict[str, Any] | None:
        """Return the manifest of the set that is there, None if there is none."""
        return read_manifest(self.out) if NAME in there else None

    def _refuse_others(self, there: Mapping[str, int], manifest: Mapping[str, Any] | None) -> None:
        """Raise StoreError unless the place is empty, or holds only a derived set, finished or not."""
        entries = [] if manifest is None else manifest["splits"].values()
        listed = {shard["file"] for entry in entries for shard in entry["shards"]}
        begun = PLAN in there
        kept = {f"{SPEC_FILES}/{name}" for name in self.kept if begun}
        own = FILES | listed | kept | set(self._replaced_files(manifest))
        alien = [
            name
            for name in there
            if not (name in own or name.startswith(f"{STAGE}/") or (begun and SHARD.fullmatch(name)))
        ]
        if alien or (there and manifest is None and not begun and not all(n.startswith(f"{STAGE}/") for n in there)):
            raise StoreError(
                f"the folder holds something else: {', '.join(alien or there)[:80]}",
                where=str(self.out),
                fix="choose another folder with -o; nothing was written",
                id="output",
            )

    def _replaced_files(self, manifest: Mapping[str, Any] | None) -> list[str]:
        """Return the files of an older set beside its shards: its lexicon, and the files that its spec names."""
        if manifest is None:
            return []
        with suppress(DerivlangError):
            kept = Derived(self.out, changed=True).pipeline.files_to_keep()
            return [LEXICON, *(f"{SPEC_FILES}/{name}" for name in kept)]
        return [LEXICON]

    def _damaged(self, manifest: dict[str, Any], there: Mapping[str, int]) -> str | None:
        """Return the first file of the set that is missing or has another size, None if it is whole."""
        shards = [shard for entry in manifest["splits"].values() for shard in entry["shards"]]
        damaged = [shard["file"] for shard in shards if there.get(shard["file"]) != shard["bytes"]]
        damaged += [name for name in (f"{SPEC_FILES}/{name}" for name in self.kept) if name not in there]
        if manifest["lexicon"] and not damaged:
            with suppress(DerivlangError, ValueError):
                return None if Derived(self.out).has_fingerprint() else LEXICON
            return LEXICON
        return next(iter(damaged), None)
