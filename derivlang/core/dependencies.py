"""What an option needs of others: declared with the option, checked only here; and the packages of extras.

    setting("x", "Kind of choice.", only_with="--heldout")     --by is refused without --heldout
    setting(None, "Tokenizer …", requires="--twin")             --tokenizer is refused without --twin
    setting(None, "Number …", excludes="--steps, --epochs")     --tokens is refused beside one of them

The command line, Python functions and studies check what the user gave, whatever its value. Help pages say it. What
depends on a value is checked where the value is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from derivlang.core.errors import UsageError

# A package of several extras is of the first one here.
EXTRAS = {
    "train": ("torch", "transformers", "accelerate", "scipy", "matplotlib", "jinja2"),
    "fit": ("scipy",),
    "explore": ("gradio",),
    "stanza": ("stanza",),
    "align": ("eflomal",),
    "urls": ("upath", "fsspec"),  # upath: the module of universal_pathlib
    "s3": ("s3fs",),
    "gcs": ("gcsfs",),
}


def missing_package(error: ModuleNotFoundError) -> UsageError | None:
    """Return the error for a package of an extra that is not installed, None for any other module."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return UsageError(
                f"this needs the package {package}, which is not installed",
                fix=f"pip install 'derivlang[{extra}]'",
                id="missing-package",
            )
    return None


def module_of(name: str, what: str) -> Any:
    """Return a module of an extra's package. what: needs it, for the message of the UsageError without the package."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        extra = next(extra for extra, packages in EXTRAS.items() if package in packages)
        raise UsageError(
            f"{what} needs {package}", fix=f"pip install 'derivlang[{extra}]'", id="missing-package"
        ) from None


def require(extra: str, packages: Iterable[str] = (), *, what: str = "") -> None:
    """Raise UsageError, with the install command, if packages of an extra are missing. packages: () for all of them.

    what: needs them, for the message: `training`.
    """
    missing = [package for package in packages or EXTRAS[extra] if find_spec(package) is None]
    if missing:
        told = f"{what} needs {', '.join(missing)}".lstrip()
        raise UsageError(told, fix=f"pip install 'derivlang[{extra}]'", id="missing-package")


def require_torch(*more: str) -> None:
    """Raise UsageError if torch, transformers, accelerate or one of `more` is missing."""
    require("train", dict.fromkeys(("torch", "transformers", "accelerate", *more)), what="training")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNeeds:
    """Names of other options, as typed, with commas: `--heldout`, `-o`; of an argument, `SOURCE`.

    only_with: the option has an effect only with one of them. requires: all of them have to be given, too. excludes:
    none of them may be given.
    """

    only_with: str = ""
    requires: str = ""
    excludes: str = ""

    def added_to(self, help: str) -> str:
        """Return the help of an option, with what it needs: `Kind of choice (with --heldout).`"""
        parts = (
            ("with ", _listed(self.only_with, "or")),
            ("with ", _listed(self.requires, "and")),
            ("not with ", _listed(self.excludes, "or")),
        )
        told = "; ".join(word + names for word, names in parts if names)
        return f"{help.removesuffix('.')} ({told})." if told else help

    def check(self, option: str, given: Collection[str]) -> None:
        """Raise UsageError if an option that the user gave does not go with the others. given: what he gave."""
        if self.only_with and not any(name in given for name in self.only_with.split(", ")):
            what = f"has no effect without {self.only_with.replace(', ', ' or ')}"
            raise UsageError(what, where=option, fix=f"leave {option} out", id="unused-option")
        for name in filter(None, self.requires.split(", ")):
            if name not in given:
                raise UsageError(f"needs {name}, too", where=option, fix=f"add {name}", id="missing-option")
        for name in filter(None, self.excludes.split(", ")):
            if name in given:
                fix = f"leave {option} or {name} out"
                raise UsageError(f"cannot be given with {name}", where=option, fix=fix, id="two-options")


def _listed(names: str, word: str) -> str:
    """`--a, --b, --c` and `or`  ->  `--a, --b or --c`"""
    first, comma, last = names.rpartition(", ")
    return f"{first} {word} {last}" if comma else last


def check_dependencies(given: Mapping[str, OptionNeeds], also: Collection[str] = ()) -> None:
    """Raise UsageError for the first of some options that does not go with the others.

    given: what the options that the user gave need, by name. also: names of the other options and arguments given.
    """
    for option, one in given.items():
        one.check(option, {*given, *also})
