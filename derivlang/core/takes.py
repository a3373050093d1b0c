"""Types of settings (settings.py): the names of rules, and types of which a user may give more than the setting is.

data: Takes[Path | None, PathLike | None] = setting(None, "Folder of encoded data.")      a user may give a text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, Union, get_args

Read = TypeVar("Read")
Given = TypeVar("Given")
if TYPE_CHECKING:

    class Takes(Generic[Read, Given]):
        """A descriptor, for type checkers: the type of a setting, and what a user may give."""

        def __get__(self, settings: object, kind: Any = None) -> Read: ...
        def __set__(self, settings: object, value: Given) -> None: ...

    PerTask: TypeAlias = Takes[Read, Read | Sequence[Read]]  # of fine-tuning: one for all tasks, or one for each
else:

    class Takes:
        def __class_getitem__(cls, kinds: Any) -> Any:
            return kinds[0]

    PerTask = Union  # of one type, which is this type


Percent: TypeAlias = Takes[str, str | float]  # a text such as 12.5 or 100/3
Listed: TypeAlias = Takes[str, str | Sequence[str]]  # a text with commas
Names: TypeAlias = Sequence[str]  # a tuple; a user may give a list, or a text with commas


Mode = Literal["spacy", "unicode", "space"]  # how raw text is split into words
MODES: tuple[str, ...] = get_args(Mode)
Rule = Literal["marks", "period", "unit"]
RULES: tuple[str, ...] = get_args(Rule)
