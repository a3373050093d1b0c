"""Measures by name: the built-in ones, and measures from other packages (entry points `derivlang.measures`).

Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

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
        "contextual": "derivlang.evaluation.measures.links:Contextual",
        "retrieval": "derivlang.evaluation.measures.links:Retrieval",
        "links": "derivlang.evaluation.measures.links:WordLinks",
        "ngrams": "derivlang.evaluation.measures.perplexity:NGrams",
        "perplexity": "derivlang.evaluation.measures.perplexity:Perplexity",
        "projection": "derivlang.evaluation.measures.alignment:Projection",
        "regions": "derivlang.evaluation.measures.surprisal:Regions",
        "surprisal": "derivlang.evaluation.measures.surprisal:Surprisal",
        "translation": "derivlang.evaluation.measures.translation:FileTranslation",
    },
)
# Projection is for a picture, ngrams reads the training text, translation a file; the others need a causal model.
_ASKED = ("ngrams", "projection", "regions", "surprisal", "translation")
USUAL = tuple(name for name in MEASURES.built_in if name not in _ASKED)


def file_of(name: str) -> tuple[Path, tuple[str, ...]] | None:
    """Return the file of KIND:FILE or KIND:NAME-NAME=FILE, and the names of its sides, or (); None of other measures.

    Raise UsageError for another name.
    """
    kind, colon, given = name.partition(":")
    measure = MEASURES.find(kind)
    is_only_on_files = measure.of_file is type(measure)
    if not colon and not is_only_on_files:
        return None
    names, equals, path = given.partition("=")
    sides = tuple(names.split("-"))
    if not equals or "/" in names or len(sides) != 2:
        sides, path = (), given
    if measure.of_file is None or not path:
        also = "" if is_only_on_files else f", or {kind} without a file"
        fix = f"write e.g. {kind if measure.of_file else 'links'}:en-fr=FILE{also}"
        raise UsageError(f"{name!r} is not a measure on a file", where="--measure", fix=fix, id="usage")
    return Path(path), sides


def label_of(name: str) -> str:
    """Return the name of a measure in results and reports."""
    return ":".join(map(short_name, name.split(":", 1)))


def measure_of(name: str, target: str) -> Measure:
    """Return the measure of a name. target: the language that a run is evaluated on."""
    found, measure = file_of(name), MEASURES.find(name.partition(":")[0])
    return measure if found is None or measure.of_file is None else measure.of_file(*found, target)
