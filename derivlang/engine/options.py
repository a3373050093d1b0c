"""The options of `make`, each declared once with its help, default and check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from derivlang.core.policies import Policies
from derivlang.core.settings import Settings, setting
from derivlang.core.takes import Names, Rule
from derivlang.formats.places import OptionalPath


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RowOptions(Settings):
    """Which rows of a source are taken. splits: () for all."""

    heading: ClassVar[str] = "Source"
    splits: Names = setting((), "Splits to take, e.g. train,test.", unset="all that are found", commas=True)
    limit: int | None = setting(None, "Maximum number of rows per split; of running text, paragraphs.", minimum=1)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SentenceRule(Settings):
    """How sentences are found."""

    sentences: Rule = setting("marks", "Rule for the ends of sentences.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LabelOptions(Policies, SentenceRule):
    """How sentences are found, and what happens to labels."""

    heading: ClassVar[str] = "Sentences and labels"
    repair_tags: bool = setting(False, "Repair ill-formed tags of entities, without losing a label, and count them.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShardOptions(Settings):
    """What is written, by how many processes."""

    workers: int = setting(1, "Number of worker processes.", minimum=1)
    shard_tokens: int = setting(
        20_000_000, "Approximate number of words per shard; for a parse at most 500000.", minimum=1
    )
    force: bool = setting(False, "Replace a set in this folder that another plan made.")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ParserOption(Settings):
    """What parses a source, for orders that need trees: a name that `find_parser` knows."""

    parser: str | None = setting(
        None, "Parser of the trees that orders need: english, english-light, stanza, spacy:NAME, or a folder/."
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ParserNames(ParserOption):
    """The same, and where parses are kept."""

    parses: OptionalPath = setting(None, "Folder that keeps parses.", unset="$DERIVLANG_PARSES, then the user's cache")


class RunOptions(ParserNames, ShardOptions):
    """How a run goes."""

    heading: ClassVar[str] = "Run"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LexiconOption(Settings):
    """What the words of a derived language are made of."""

    lexicon: OptionalPath = setting(None, "Saved lexicon.tsv to use instead of fitting one.", file=True)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ColumnOptions(LexiconOption):
    """The same, and which columns a set has. columns: () for all."""

    columns: Names = setting(
        (), "Optional columns to keep: any of key, source, tokens and text.", unset="all", commas=True
    )


@dataclass(frozen=True)
class MakeOptions(RowOptions, LabelOptions, RunOptions, ColumnOptions):
    """What `make` takes besides the pipeline and the source. out: the folder to write."""

    out: Path

    @property
    def policies(self) -> Policies:
        """The policies by themselves."""
        return Policies(entities=self.entities, answers=self.answers, mwt=self.mwt)
