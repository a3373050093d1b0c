"""The options of `make`, each declared once with its help, default and check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from derivlang.core.policies import Policies
from derivlang.core.rules import Rule
from derivlang.core.settings import check_settings, setting


@dataclass(frozen=True, slots=True)
class MakeOptions:
    """What `make` takes besides the pipeline and the source. Raises UsageError for a value out of bounds.

    out: the folder to write. splits, columns: () for all. parser: a name that `find_parser` knows.
    """

    out: Path
    splits: tuple[str, ...] = setting((), "Splits to take, e.g. train,test.", unset="all that are found", commas=True)
    workers: int = setting(1, "Number of worker processes.", minimum=1)
    engine: str = setting("local", "Engine: local, or dask:ADDRESS.")
    shard_tokens: int = setting(
        20_000_000, "Approximate number of words per shard; for a parse at most 500000.", minimum=1
    )
    limit: int | None = setting(None, "Maximum number of rows per split; of running text, paragraphs.", minimum=1)
    lexicon: Path | None = setting(None, "Saved lexicon.tsv to use instead of fitting one.", file=True)
    sentences: Rule = setting("marks", "Rule for the ends of sentences.")
    policies: Policies = Policies()
    repair_tags: bool = setting(False, "Repair ill-formed tags of entities, without losing a label, and count them.")
    columns: tuple[str, ...] = setting(
        (), "Optional columns to keep: any of key, source, tokens and text.", unset="all", commas=True
    )
    force: bool = setting(False, "Replace a set in this folder that another plan made.")
    parser: str | None = setting(
        None, "Parser of the trees that orders need: english, english-light, stanza, spacy:NAME, or a folder/."
    )
    parses: Path | None = setting(None, "Folder that keeps parses.", unset="$DERIVLANG_PARSES, then the user's cache")

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class RankOptions:
    """Which of the processes that make a planned set this is. Raises UsageError for a value out of bounds."""

    rank: int | None = setting(None, "Number of this rank, from 0.", unset="from the array job", minimum=0)
    world: int | None = setting(None, "Number of ranks.", unset="from the array job", minimum=1)
    trust: bool = setting(
        False, "The plan is yours: count its files; do not hash them again if their stamps are the same."
    )
    stage: Literal["count", "derive"] | None = setting(
        None, "Only this stage of a plan that was made with --defer.", unset="one after the other"
    )
    no_wait: bool = setting(False, "Exit with 75 where other ranks must end a stage first, in place of waiting.")

    def __post_init__(self) -> None:
        check_settings(self)
