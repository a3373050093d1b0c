"""The exceptions that a user may see, and how a message is written.

    DerivlangError            exit code 1
    ├── UsageError            exit code 2: the command, a spec or an option is wrong
    └── DataError             the input is wrong: a file, a line, a word
        ├── LayerError        an annotation does not fit its words
        └── StoreError        a derived folder is damaged, incomplete or of another plan

A message says what is wrong, where, and what to do; it ends with a short stable id:

    fr.conllu:1482: word 9 has head 31, but the sentence has 24 words [head-range]
      fix the line, or leave the sentence out
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DerivlangError(Exception):
    """What went wrong, where, and what to do about it; formatted once, here.

    what: a sentence without a full stop. where: `file:line`, an option or a folder. fix: the next step.
    id: short and stable, so that scripts can tell faults apart.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None, id: str = "error"):
        super().__init__(what, where, fix, id)
        self.what, self.where, self.fix, self.id = what, where, fix, id

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        step = f"\n  {self.fix}" if self.fix else ""
        return f"{place}{self.what} [{self.id}]{step}"

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only fields do not survive the default pickling
        return _rebuild, (type(self), self.what, self.where, self.fix, self.id)


class UsageError(DerivlangError):
    """The command line, a spec string or an option cannot be used."""

    exit_code = 2


class DataError(DerivlangError):
    """The input cannot be read as what it should be."""


class LayerError(DataError):
    """An annotation does not fit the words it is said to annotate."""


class StoreError(DataError):
    """A derived folder is damaged, incomplete, or was made by another plan."""


def unknown(
    kind: str, name: str, names: Iterable[str], *, where: str | None = None, fix: str | None = None
) -> UsageError:
    """The error for a name that is not registered: near names first, else the list."""
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return UsageError(f"there is no {kind} {name!r}; {hint}", where=where, fix=fix, id=f"unknown-{kind.split()[0]}")


def _rebuild(cls: type[DerivlangError], what: str, where: str | None, fix: str | None, id: str) -> DerivlangError:
    return cls(what, where=where, fix=fix, id=id)
