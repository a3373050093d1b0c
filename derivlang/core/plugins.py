"""Registries: objects by name, built in, added in this process, or from the entry points of other packages.

A package adds an object, here a transform, in its `pyproject.toml`:

    [project.entry-points."derivlang.transforms"]
    turn = "my_package.turn:Turn"
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from derivlang.core.errors import DerivlangError, StoreError, UsageError, unknown
from derivlang.core.messages import warn
from derivlang.core.spec import Parameterised

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Item = TypeVar("Item")
Seen = TypeVar("Seen")
SCRIPT = "__main__"  # the module of a script or a notebook
_of_script: list[str] = []


def script_has_added() -> bool:
    """Return whether the running script has added an object of its own, which worker processes need, too."""
    return bool(_of_script)


class Registry(Generic[Item]):
    """The objects of one kind by name. Nothing takes the name of a built-in one; an added one hides a plug-in.

    kind: the noun of messages; entry points have the group `derivlang.<kind>s`. base: the class of the objects; with
    `of_classes` they are its subclasses, otherwise its instances, or functions that return one. built_in: objects, or
    "module:attribute", imported when it is needed. fix: where to look for a name. instead: what to write for
    names that papers or other programs use. overrides: methods of which a class must define one, or it does nothing.
    added: the objects of `add`.
    Each plug-in is loaded separately, so a broken one breaks nothing else.
    """

    def __init__(
        self,
        kind: str,
        base: type[Any],
        built_in: Mapping[str, Any],
        *,
        of_classes: bool = False,
        fix: str = "",
        instead: Mapping[str, str] | None = None,
        overrides: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.base = base
        self.group = f"derivlang.{kind}s"
        self.built_in = built_in
        self.of_classes = of_classes
        listed = f"`derivlang ls` lists the {kind}s"
        self.fix = f"{fix or listed}; a plug-in needs its package to be installed"
        self.instead = instead or {}
        self.overrides = overrides
        self.added: dict[str, Item] = {}

    def add(self, name: str, item: Item) -> Item:
        """Add an object for this process, for notebooks and tests. Raise UsageError for a wrong name or class."""
        if self.of_classes:
            self._check(name, item)
        if name in self.built_in:
            raise UsageError(f"derivlang has a {self.kind} named {name!r}", fix="choose another name", id="plug-in")
        self.added[name] = item
        if getattr(item, "__module__", type(item).__module__) == SCRIPT:
            _of_script.append(name)
        return item

    def names(self) -> list[str]:
        """Return all names, in the order in which `find` looks."""
        return list(dict.fromkeys([*self.added, *self.built_in, *self.plug_ins()]))

    def plug_ins(self) -> dict[str, EntryPoint]:
        """Return the entry points by name. Warn of those with the name of a built-in object, which are left out."""
        points = plug_ins(self.group)
        for name in sorted(points.keys() & self.built_in.keys()):
            _warn_once(
                f"the plug-in {name!r} ({points[name].value}) is ignored: derivlang has a {self.kind} of this name"
            )
        return {name: point for name, point in points.items() if name not in self.built_in}

    def described(self, describe: Callable[[Item], Seen]) -> list[Seen]:
        """Return what a function makes of each object. Warn of plug-ins that are broken, which are left out."""
        found = []
        for name in self.names():
            try:
                found.append(describe(self.find(name)))
            except UsageError as error:
                if error.id != "plug-in":
                    raise
                warn(f"{error.what}; it is left out")
        return found

    def _check(self, name: str, item: Any) -> None:
        """Raise UsageError for what is not a class of this kind, for a wrong name, or for a class that does nothing."""
        if not isinstance(item, type) or not issubclass(item, self.base):
            raise self._of_another_kind(name)
        if not re.fullmatch(r"[\w.-]+", name):
            raise UsageError(
                f"{name!r} is not a name of a {self.kind}",
                where=item.__qualname__,
                fix="set `name` in its class, of letters, digits, - and _",
                id="plug-in",
            )
        if self.overrides and all(getattr(item, one) is getattr(self.base, one) for one in self.overrides):
            raise UsageError(
                f"the {self.kind} {name!r} does nothing: its class does not define {' or '.join(self.overrides)}",
                fix="define it; check the spelling of the method",
                id="plug-in",
            )
        if issubclass(item, Parameterised):
            if item.name != name:  # files keep the name of the class, by which the object is found again
                raise UsageError(
                    f"the plug-in {name!r} is a {self.kind} whose class has the name {item.name!r}",
                    where=item.__qualname__,
                    fix="give its entry point and its class the same name",
                    id="plug-in",
                )
            item.declared()

    def _of_another_kind(self, name: str) -> UsageError:
        return UsageError(f"the plug-in {name!r} is not a derivlang {self.base.__name__}", id="plug-in")

    def __contains__(self, name: str) -> bool:
        if name in self.added or name in self.built_in:
            return True
        return "/" not in name and name in self.plug_ins()  # a path names no plug-in, and the search takes time

    def find(self, name: str) -> Item:
        """Return the object of a name.

        Raises UsageError with similar names if there is none, or if a plug-in cannot be loaded or is of another kind.
        """
        if name not in self:
            raise self.unknown(name)
        item: Any = self.added[name] if name in self.added else self.built_in.get(name)
        if isinstance(item, str):
            module, _, attribute = item.partition(":")
            item = getattr(import_module(module), attribute)
        elif item is None:
            item = load_plug_in(self.group, name)
            if self.of_classes:
                self._check(name, item)
        if not self.of_classes:
            if callable(item) and (isinstance(item, type) or not isinstance(item, self.base)):
                item = item()  # a class may pass for an instance of a protocol, hence the first test
            if not isinstance(item, self.base):
                raise self._of_another_kind(name)
        return item  # type: ignore[no-any-return]

    def require(self, name: str, plug_ins: Mapping[str, str], where: str) -> None:
        """Raise StoreError unless there is an object of a name that a file of derivlang holds.

        plug_ins: the packages that the file names, as `providers` returns them. where: the file.
        """
        if name not in self:
            package = plug_ins.get(f"{self.kind} {name}")
            raise StoreError(
                f"this was made with the {self.kind} {name!r}, which no installed package provides",
                where=where,
                fix=f"install the package that provides it{f' ({package}, as the file says)' if package else ''}",
                id="missing-plug-in",
            )

    def providers(self, names: Iterable[str]) -> dict[str, str]:
        """Return the package of each plug-in among the names: {"transform turn": "my-package"}."""
        packages = {}
        for name in names:
            point = None if name in self.added else self.plug_ins().get(name)
            if point is not None and point.dist is not None:
                packages[f"{self.kind} {name}"] = point.dist.name
        return packages

    def unknown(self, name: str, *others: str) -> UsageError:
        """Return the error for an unknown name. others: further names that could be meant."""
        if name in self.instead:
            return UsageError(
                f"there is no {self.kind} {name!r}", fix=f"write {self.instead[name]}", id=f"unknown-{self.kind}"
            )
        return unknown(self.kind, name, [*self.names(), *others], fix=self.fix)


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name."""
    from importlib.metadata import entry_points  # imported late: a third of the package's start-up time

    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


@cache
def _warn_once(message: str) -> None:
    warn(message)


def load_plug_in(group: str, name: str) -> Any:
    """Load the object of an entry point. Raise UsageError if its package cannot be imported."""
    point = plug_ins(group)[name]
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"the plug-in {name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            fix="repair or uninstall its package",
            id="plug-in",
        ) from error


def is_own(item: object) -> bool:
    """Return whether an object's class is one of derivlang."""
    return type(item).__module__.partition(".")[0] == "derivlang"


@contextmanager
def plug_in_errors(kind: str, item: Parameterised, method: Callable[..., object]) -> Iterator[None]:
    """Raise UsageError plug-in, with file and line, in place of an exception in a method of another package.

    kind: what the object is, such as "transform". The line is the last one in the method's own file: an error of numpy
    is shown where the object calls it.
    """
    try:
        yield
    except DerivlangError:
        raise
    except Exception as error:
        if is_own(item):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        file = getattr(getattr(method, "__code__", None), "co_filename", "")
        at = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
        raise UsageError(
            f"`{method.__name__}` of the {kind} {item.name} failed: {type(error).__name__}: {error}",
            where=f"{at.filename}:{at.lineno}",
            fix=f"correct the {kind}, or write to its authors",
            id="plug-in",
        ) from error
