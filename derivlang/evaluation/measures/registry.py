"""Measures by name: the built-in ones, and measures from other packages (entry points `derivlang.measures`).

Help pages import this module, which therefore imports nothing heavy.
"""

from __future__ import annotations

from derivlang.core.plugins import Registry
from derivlang.evaluation.measures.base import Measure

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
