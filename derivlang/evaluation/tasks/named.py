"""What `evaluate --task` names: a task and its set.

    given                         label, in results and reports         file name
    pos                           pos                                   pos
    pos:French-GSD                pos:French-GSD                        pos-French-GSD
    blimp:data/pairs.jsonl        blimp:data/pairs.jsonl                blimp-data-pairs.jsonl
    blimp:/home/me/pairs.jsonl    blimp:pairs.jsonl-5c1f0ba2            blimp-pairs.jsonl-5c1f0ba2

A label has no absolute path: of such a path, it has the last name and eight hex digits of its hash.
"""

from __future__ import annotations

import os
from abc import ABC
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from derivlang.evaluation.columns import Column


@dataclass(frozen=True)
class NamedTask(ABC):
    """A task on a set.

    kind: the name of the task. columns: its scores, one of which is the headline. name: as given, KIND or KIND:SET.
    """

    kind: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]

    name: str

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").partition("\n")[0]

    @classmethod
    def headline(cls) -> Column:
        """Return the main score: it chooses the epoch, and reports show it first."""
        return next(column for column in cls.columns if column.headline)

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that the name gives, as given; () without a colon."""
        _, colon, argument = self.name.partition(":")
        return (argument,) if colon else ()

    @property
    def label(self) -> str:
        """The name in results and reports."""
        return ":".join([self.kind, "+".join(map(short_name, self.sets))]) if self.sets else self.kind

    @property
    def file_name(self) -> str:
        """The name in file names."""
        return file_name_of(self.label)


def short_name(name: str) -> str:
    """Return the name of a set, without the folders of an absolute path, also where it follows TARGET=."""
    target, _, given = name.partition("=")
    target, given = ("", name) if "/" in target or not given else (f"{target}=", given)
    path = Path(os.path.normpath(given))
    return f"{target}{path.name}-{sha256(bytes(path)).hexdigest()[:8]}" if path.is_absolute() else name


def file_name_of(label: str) -> str:
    """Return a label without colons and slashes."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in label)
