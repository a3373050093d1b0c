"""derivlang: derived languages from natural ones.

source corpus -> Batch -> Pipeline (an order and a lexicon) -> derived Batch -> Parquet, manifest

>>> import derivlang
>>> derivlang.derive("Welcome to ACL .", "inv").text
'ACL to Welcome .'
>>> derivlang.Pipeline.parse("trans,perm:window=3")
Pipeline 8c78014
├── trans          30b6ceb
└── perm:window=3  b7273a3
>>> drawing = derivlang.view(derivlang.derive("Welcome to ACL .", "inv"))  # shown in a notebook; .save("acl.html")
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from derivlang.core.version import __version__ as __version__

if TYPE_CHECKING:
    from derivlang.api import DerivedText, derive, view
    from derivlang.commands.align import align_words, score_links
    from derivlang.commands.distance import match, stats
    from derivlang.commands.grammar import count_orders, fit_grammar, grammar_probs, score_grammar
    from derivlang.commands.lexical import dictionary, pairs, tokenizer, twin
    from derivlang.commands.parser import score_parser, train_parser
    from derivlang.commands.push import push
    from derivlang.commands.sets import DerivedSet, finish, make, parse, plan, work
    from derivlang.commands.studies import Study, reproduce, study
    from derivlang.commands.training import Run, pretrain, report
    from derivlang.core.errors import DerivlangError
    from derivlang.core.messages import DerivlangWarning
    from derivlang.core.spec import param
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.compare import compare
    from derivlang.map import Columns, map_dataset
    from derivlang.pipeline import Pipeline
    from derivlang.transforms.base import Transform
    from derivlang.transforms.registry import register

__all__ = [
    "Columns",
    "DerivedSet",
    "DerivedText",
    "DerivlangError",
    "DerivlangWarning",
    "Pipeline",
    "Run",
    "Study",
    "Transform",
    "align_words",
    "compare",
    "count_orders",
    "derive",
    "dictionary",
    "finish",
    "fit_grammar",
    "grammar_probs",
    "make",
    "map_dataset",
    "match",
    "pairs",
    "parse",
    "param",
    "plan",
    "pretrain",
    "push",
    "register",
    "report",
    "reproduce",
    "score_grammar",
    "score_links",
    "score_parser",
    "scores",
    "stats",
    "study",
    "tokenizer",
    "train_parser",
    "twin",
    "view",
    "work",
]

_WHERE = {
    "Columns": "derivlang.map",
    "DerivedSet": "derivlang.commands.sets",
    "DerivedText": "derivlang.api",
    "DerivlangError": "derivlang.core.errors",
    "DerivlangWarning": "derivlang.core.messages",
    "Pipeline": "derivlang.pipeline",
    "Run": "derivlang.commands.training",
    "Study": "derivlang.commands.studies",
    "Transform": "derivlang.transforms.base",
    "align_words": "derivlang.commands.align",
    "compare": "derivlang.evaluation.report.compare",
    "count_orders": "derivlang.commands.grammar",
    "derive": "derivlang.api",
    "dictionary": "derivlang.commands.lexical",
    "finish": "derivlang.commands.sets",
    "fit_grammar": "derivlang.commands.grammar",
    "grammar_probs": "derivlang.commands.grammar",
    "make": "derivlang.commands.sets",
    "map_dataset": "derivlang.map",
    "match": "derivlang.commands.distance",
    "pairs": "derivlang.commands.lexical",
    "parse": "derivlang.commands.sets",
    "param": "derivlang.core.spec",
    "plan": "derivlang.commands.sets",
    "pretrain": "derivlang.commands.training",
    "push": "derivlang.commands.push",
    "register": "derivlang.transforms.registry",
    "report": "derivlang.commands.training",
    "reproduce": "derivlang.commands.studies",
    "score_grammar": "derivlang.commands.grammar",
    "score_links": "derivlang.commands.align",
    "score_parser": "derivlang.commands.parser",
    "scores": "derivlang.evaluation.collect",
    "stats": "derivlang.commands.distance",
    "study": "derivlang.commands.studies",
    "tokenizer": "derivlang.commands.lexical",
    "train_parser": "derivlang.commands.parser",
    "twin": "derivlang.commands.lexical",
    "view": "derivlang.api",
    "work": "derivlang.commands.sets",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import derivlang` costs nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'derivlang' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from importlib import import_module

    return globals().setdefault(name, getattr(import_module(_WHERE[name]), name))


def __dir__() -> list[str]:
    """Return the public names, for `dir` and for tab completion: those above, and the version."""
    return [*__all__, "__version__"]
