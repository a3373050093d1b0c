"""Settings of `export`, `push` and what else writes a file, declared once (core/settings.py).

Help pages import this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from derivlang.core.settings import Settings, replaces, setting

ExportFormat = Literal["text", "jsonl", "conllu", "pharaoh", "tsv", "csv", "squad", "bracketed", "transformers"]


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Settings):
    """What `export` takes besides the folder and the file. Raises UsageError for an unknown format.

    format: transformers is of a run.
    """

    split: str | None = setting(None, "Split to take.", unset="the only one")
    format: ExportFormat | None = setting(None, "Format to write.", unset="by the suffix of -o")
    source: bool = setting(False, "Write the source side instead, row for row; of a run, take the source's tokenizer.")
    target: str | None = setting(None, "Language whose tokenizer is written, of a run of several.")
    documents: bool = setting(False, "Write one document per line (of running text, a paragraph); text only.")
    force: bool = setting(False, "Replace a file that holds something else, or a model.")


@dataclass(frozen=True, kw_only=True)
class FileOptions(Settings):
    """What a command takes that writes one file, and no settings of its own to a dataclass."""

    force: bool = replaces()


@dataclass(frozen=True, kw_only=True)
class PushOptions(Settings):
    """What `push` takes besides the folder and the repository."""

    private: bool = setting(False, "Make the repository private if it is new; refuse one that is public.")
    revision: str = setting("main", "Branch to send to; a new one begins at main.")
    edited_card: bool = setting(False, "Send a card (README.md) of a set that was edited.")
    checkpoints: bool = setting(False, "Send the checkpoints of runs, too, with the state of their training.")
    force: bool = setting(False, "Replace another result there, or send beside what is there.")
    dry_run: bool = setting(False, "Check everything and list what would be sent, without the network.")
