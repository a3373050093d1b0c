"""Settings of `stats` and `match`. Help pages import this module, which therefore imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from derivlang.core.settings import Settings, setting
from derivlang.formats.places import OptionalPath


@dataclass(frozen=True, kw_only=True)
class StatsOptions(Settings):
    """What `stats` reads and measures."""

    split: str | None = setting(None, "Split to measure.", unset="the first")
    limit: int | None = setting(None, "Documents to read, at most.", minimum=1, unset="all", only_with="--t")
    entropy_words: int = setting(1_000_000, "Words whose local entropies are measured; 0: none.", minimum=0)

    tokenizer: OptionalPath = setting(None, "Tokenizer of the sub-words whose overlap is measured.")


@dataclass(frozen=True, kw_only=True)
class MatchOptions(Settings):
    """What `match` compares."""

    family: str = setting(
        "mallows",
        "Transform to turn: mallows, shuffle or flip, with other parameters, as mallows:by=sentence.",
    )
    by: Literal["tau", "entropy"] = setting("tau", "Distance to match: Kendall's tau, or 3-local entropy.")
    split: str | None = setting(None, "Split to take the sample from.", unset="the first")
    limit: int | None = setting(
        None,
        "Documents of the sample, at most; of these --by entropy reads a million words.",
        minimum=1,
        unset="1000, or with --by entropy all",
    )
