"""Measures by name: the built-in ones, and measures from other packages (entry points `derivlang.measures`).

Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.set_names import short_name

MEASURES: Registry[Measure] = Registry(
    "measure",
    Measure,
    {
        "alignment": "derivlang.evaluation.measures.alignment:Alignment",
        "contextual": "derivlang.evaluation.measures.contextual:Contextual",
        "retrieval": "derivlang.evaluation.measures.retrieval:Retrieval",
        "links": "derivlang.evaluation.measures.links:WordLinks",
        "ngrams": "derivlang.evaluation.measures.ngrams:NGrams",
        "perplexity": "derivlang.evaluation.measures.perplexity:Perplexity",
        "projection": "derivlang.evaluation.measures.projection:Projection",
        "regions": "derivlang.evaluation.measures.regions:Regions",
        "surprisal": "derivlang.evaluation.measures.surprisal:Surprisal",
    },
)
# Projection is for a picture, ngrams reads the training text; the others need a causal model.
USUAL = tuple(name for name in MEASURES.built_in if name not in ("ngrams", "projection", "regions", "surprisal"))
# Measures on a file of the user, by the name before the colon.
OF_FILES = {"links": "FileLinks", "retrieval": "FileRetrieval", "translation": "FileTranslation"}


def kind_of(name: str) -> str:
    """Return the measure of a name, without a file."""
    return name.partition(":")[0]


def file_of(name: str) -> tuple[Path, tuple[str, ...]] | None:
    """Return the file of KIND:FILE or KIND:NAME-NAME=FILE, and the names of its sides, or (); None of other measures.

    Raise UsageError for another name.
    """
    kind, colon, given = name.partition(":")
    if kind not in MEASURES and kind not in OF_FILES:
        raise MEASURES.unknown(kind, *(OF_FILES.keys() - MEASURES.names()))
    if not colon and kind in MEASURES:
        return None
    names, equals, path = given.partition("=")
    sides = tuple(names.split("-"))
    if not equals or "/" in names or len(sides) != 2:
        sides, path = (), given
    if kind not in OF_FILES or not path:
        also = f", or {kind} without a file" if kind in MEASURES else ""
        fix = f"write e.g. {kind if kind in OF_FILES else 'links'}:en-fr=FILE{also}"
        raise UsageError(f"{name!r} is not a measure on a file", where="--measure", fix=fix, id="usage")
    return Path(path), sides


def label_of(name: str) -> str:
    """Return the name of a measure in results and reports."""
    return ":".join(map(short_name, name.split(":", 1)))


def measure_of(name: str, target: str) -> Measure:
    """Return the measure of a name. target: the language that a run is evaluated on."""
    found = file_of(name)
    if found is None:
        return MEASURES.find(name)
    module = import_module("derivlang.evaluation.measures.of_file")
    measure: Measure = getattr(module, OF_FILES[kind_of(name)])(*found, target)
    return measure
