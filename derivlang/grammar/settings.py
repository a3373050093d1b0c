"""Settings of the commands of `grammar`, declared once (core/settings.py). Help pages import this module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from derivlang.core.settings import Settings, replaces, setting
from derivlang.formats.places import Paths


def _mix() -> Any:
    return setting(0.05, "Share of the substrate.", minimum=0, maximum=1, only_with="--substrate")


def _language() -> Any:
    return setting("", "Name of the language, for the header.")


def _licence() -> Any:
    return setting("", "Licence of the treebanks, for the header.")


def _punct() -> Any:
    return setting(False, "Order punctuation as well.")


@dataclass(frozen=True, kw_only=True)
class GrammarFitOptions(Settings):
    """What `grammar fit` takes besides the treebanks. Raises UsageError for a value out of bounds.

    dev: treebanks that decide l2 and thin.
    """

    language: str = _language()
    licence: str = _licence()
    classes: str = setting("N,V", "Head classes: N, V, or a UPOS such as ADJ.", commas=True)
    l2: float | None = setting(None, "Strength of the L2 penalty.", above=0, unset="2; with --dev the best on it")
    dev: Paths = setting((), "Treebank that decides --l2 and --thin; may be repeated.", file=True)
    thin: float | None = setting(
        None,
        "Share of the dependents of noun heads that training leaves out, so that an order depends less on the other "
        "dependents.",
        minimum=0,
        below=1,
        unset="0; with --dev the best on it",
    )
    labels: Literal["v2", "v1"] = setting("v2", "UD version of the treebanks.")
    punct: bool = _punct()
    force: bool = replaces()


@dataclass(frozen=True, kw_only=True)
class GrammarCountOptions(Settings):
    """What `grammar count` takes besides the treebanks."""

    language: str = _language()
    licence: str = _licence()
    force: bool = replaces()


@dataclass(frozen=True, kw_only=True)
class GrammarScoreOptions(Settings):
    """What `grammar score` takes besides the grammar and the treebanks. Raises UsageError for a value out of bounds."""

    substrate: str | None = setting(None, "Grammar of the treebanks' language, to mix in.")
    mix: float = _mix()
    labels: Literal["map", "as-is"] = setting(
        "map", "Mapping of labels to the grammar's UD version, or labels as they are."
    )
    most: int = setting(7, "Maximum size of a scored family, the head included.", minimum=2, maximum=13)
    punct: bool = _punct()


@dataclass(frozen=True, kw_only=True)
class GrammarProbsOptions(Settings):
    """What `grammar probs` takes besides the grammar and the head. Raises UsageError for a value out of bounds."""

    substrate: str | None = setting(None, "Grammar to mix in.")
    mix: float = _mix()
    labels: Literal["map", "as-is"] = setting(
        "map", "Mapping of labels to each grammar's UD version, or labels as they are."
    )
    temperature: float = setting(1, "Temperature: above 1 flattens the distribution, below 1 sharpens it.", above=0)
