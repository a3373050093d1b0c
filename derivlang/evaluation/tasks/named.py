"""What `evaluate --task` names: a task and its set.

    given                         label, in results and reports         file name
    pos                           pos                                   pos
    pos:French-GSD                pos:French-GSD                        pos-French-GSD
    blimp:data/pairs.jsonl        blimp:data/pairs.jsonl                blimp-data-pairs.jsonl
    blimp:/home/me/pairs.jsonl    blimp:pairs.jsonl-5c1f0ba2            blimp-pairs.jsonl-5c1f0ba2

A label has no absolute path: of such a path, it has the last name and eight hex digits of its hash.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from derivlang.evaluation.set_names import file_name_of, short_name

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
