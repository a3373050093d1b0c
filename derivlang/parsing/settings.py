"""Settings of the training and the scoring of a parser. Help pages import this module: it imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from derivlang.core.settings import Settings, setting
from derivlang.formats.places import OptionalPath, Paths


def _language() -> Any:
    return setting("en", "Code of the treebank's language.")


@dataclass(frozen=True, kw_only=True)
class ParserOptions(Settings):
    """What the training of a parser takes besides the treebank. Raises UsageError for a value out of bounds.

    score: files, folders or names of further treebanks.
    """

    language: str = _language()
    seed: int = setting(1, "Random seed.", minimum=0, maximum=2**63 - 1)
    epochs: int = setting(30, "Number of passes over the treebank.", minimum=1)
    score: Paths = setting((), "Another treebank to score at the end; may be repeated.", either=True)
    licence: str = setting("", "Licence of the treebank, for the model card.", unset="none")
    threads: int = setting(1, "Number of CPU threads; another number gives slightly different weights.", minimum=1)


@dataclass(frozen=True, kw_only=True)
class ParserScoreOptions(Settings):
    """What the scoring of a parser takes besides the parser and the treebank."""

    split: str | None = setting(None, "Split to score, if TREEBANK is a folder.", unset="test")
    language: str = _language()
    unk: OptionalPath = setting(
        None,
        "Treebank that counts words: those seen there at most once are replaced by <unk>.",
        either=True,
    )
