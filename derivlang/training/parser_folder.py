"""The folder of a parser as an artifact: its model card records how it was trained, and so whether it may be kept.

{"trained_on": {"a.conllu": "3f…"}, "settings": {"seed": 1, …}, …}
    ->  {"language": "en", "seed": 1, …, "files": [{"name": "a.conllu", "sha256": "3f…"}], …}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.parsing.model import CARD, WEIGHTS, load_model
from derivlang.store.artifact import ArtifactKind
from derivlang.store.record import read_record

RARE = ", rare words as <unk>"  # ends the name of further scores of the same treebank
_NEEDED = ("language", "settings", "threads", "licence", "trained_on", "scored_on")


def recipe_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return what distinguishes a parser from another one: its files and settings.

    score: names of the treebanks in its scores. scored_on: the same with hashes.
    """
    scored = card["scored_on"]
    return {
        "language": card["language"],
        "seed": card["settings"]["seed"],
        "epochs": card["settings"]["epochs"],
        "threads": card["threads"],
        "licence": card["licence"],
        "files": _files(card["trained_on"]),
        "score": sorted(scored),
        "scored_on": _files(dict(sorted(scored.items()))),
    }


def _files(hashes: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "sha256": digest} for name, digest in hashes.items()]


def read_recipe(folder: Path) -> dict[str, Any]:
    """Return the recipe of a folder's parser. Raise StoreError for a card that is damaged, or does not record it."""
    what = "model card of a parser"
    card = read_record(folder / CARD, what, id="parser-damaged")
    if any(name not in card for name in _NEEDED):
        told = "holds a parser whose card does not say how it was trained"
        raise StoreError(told, where=str(folder), id="output")
    with parse_errors(str(folder / CARD), what, error=StoreError, id="parser-damaged"):
        return recipe_of(card)


def _check(folder: Path) -> None:
    """Raise StoreError if the model of a folder is damaged, or does not match its card."""
    try:
        load_model(folder)
    except DataError as error:
        raise StoreError(error.what, where=error.where, id=error.id) from error


PARSER_FOLDERS = ArtifactKind(
    noun="parser",
    record=CARD,
    names=(WEIGHTS, CARD),
    read=read_recipe,
    files=lambda recipe: (WEIGHTS,),
    check=_check,
)
