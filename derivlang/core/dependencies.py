"""What an option needs of others: declared with the option, checked only here.

    setting("x", "Kind of choice.", only_with="--overlap")     --by is refused without --overlap
    setting(None, "Tokenizer …", requires="--twin")             --tokenizer is refused without --twin
    setting(None, "Number …", excludes="--steps, --epochs")     --tokens is refused beside one of them
    setting(None, "Project …", extra="wandb")                   --wandb is refused without the packages of the extra

The command line, Python functions and studies check what the user gave, whatever its value. Help pages say it. What
depends on a value is checked where the value is used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from derivlang.core.errors import UsageError
from derivlang.core.extras import require


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNeeds:
    """Names of other options, as typed, with commas: `--overlap`, `-o`; of an argument, `SOURCE`.

    only_with: the option has an effect only with one of them. requires: all of them have to be given, too. excludes:
    none of them may be given. extra: its packages have to be installed.
    """

    only_with: str = ""
    requires: str = ""
    excludes: str = ""
    extra: str = ""

    def added_to(self, help: str) -> str:
        """Return the help of an option, with what it needs: `Kind of choice (with --overlap).`"""
        parts = (
            ("with ", _listed(self.only_with, "or")),
            ("with ", _listed(self.requires, "and")),
            ("not with ", _listed(self.excludes, "or")),
            ("pip install ", self.extra and f"'derivlang[{self.extra}]'"),
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
        if self.extra:
            require(self.extra, where=option)


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
