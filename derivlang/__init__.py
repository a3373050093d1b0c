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
    from derivlang.api import DerivedText, derive, derive_lines, view
    from derivlang.commands import align, distance, grammar, lexical, parser, results, sets
    from derivlang.commands import report as reporting
    from derivlang.commands.command import function
    from derivlang.commands.pretrain import Pretrain
    from derivlang.commands.results import DerivedSet, Run
    from derivlang.core.errors import DerivlangError
    from derivlang.core.messages import DerivlangWarning
    from derivlang.core.spec import param
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.compare import compare
    from derivlang.map import Columns, map_dataset
    from derivlang.pipeline import Pipeline
    from derivlang.studies.study import RunStudy, Study
    from derivlang.transforms.base import Transform
    from derivlang.transforms.registry import register

    align_words = function(align.AlignWords, "align_words")
    count_orders = function(grammar.CountOrders, "count_orders")
    dictionary = function(lexical.MakeDictionary, "dictionary")
    finish = function(sets.FinishSet, "finish")
    fit_grammar = function(grammar.FitGrammar, "fit_grammar")
    grammar_probs = function(grammar.GrammarProbs, "grammar_probs")
    make = function(sets.MakeSet, "make")
    match = function(distance.FindMatch, "match")
    pairs = function(lexical.WritePairs, "pairs")
    parse = function(sets.ParseSource, "parse")
    plan = function(sets.PlanSet, "plan")
    pretrain = function(Pretrain, "pretrain")
    push = function(results.Push, "push")
    report = function(reporting.WriteReport, "report")
    score_grammar = function(grammar.ScoreGrammar, "score_grammar")
    score_links = function(align.ScoreLinks, "score_links")
    score_parser = function(parser.ScoreParser, "score_parser")
    stats = function(distance.Stats, "stats")
    study = function(RunStudy, "study")
    tokenizer = function(lexical.TrainTokenizer, "tokenizer")
    train_parser = function(parser.TrainParser, "train_parser")
    twin = function(lexical.MakeTwin, "twin")
    work = function(sets.WorkOnSet, "work")

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
    "derive_lines",
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

# Where each name is; of a command the class, which becomes a function when it is first used.
_WHERE = {
    "Columns": "map",
    "DerivedSet": "commands.results",
    "DerivedText": "api",
    "DerivlangError": "core.errors",
    "DerivlangWarning": "core.messages",
    "Pipeline": "pipeline",
    "Run": "commands.results",
    "Study": "studies.study",
    "Transform": "transforms.base",
    "align_words": "commands.align:AlignWords",
    "compare": "evaluation.report.compare",
    "count_orders": "commands.grammar:CountOrders",
    "derive": "api",
    "derive_lines": "api",
    "dictionary": "commands.lexical:MakeDictionary",
    "finish": "commands.sets:FinishSet",
    "fit_grammar": "commands.grammar:FitGrammar",
    "grammar_probs": "commands.grammar:GrammarProbs",
    "make": "commands.sets:MakeSet",
    "map_dataset": "map",
    "match": "commands.distance:FindMatch",
    "pairs": "commands.lexical:WritePairs",
    "param": "core.spec",
    "parse": "commands.sets:ParseSource",
    "plan": "commands.sets:PlanSet",
    "pretrain": "commands.pretrain:Pretrain",
    "push": "commands.results:Push",
    "register": "transforms.registry",
    "report": "commands.report:WriteReport",
    "score_grammar": "commands.grammar:ScoreGrammar",
    "score_links": "commands.align:ScoreLinks",
    "score_parser": "commands.parser:ScoreParser",
    "scores": "evaluation.collect",
    "stats": "commands.distance:Stats",
    "study": "studies.study:RunStudy",
    "tokenizer": "commands.lexical:TrainTokenizer",
    "train_parser": "commands.parser:TrainParser",
    "twin": "commands.lexical:MakeTwin",
    "view": "api",
    "work": "commands.sets:WorkOnSet",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import derivlang` costs nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'derivlang' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from importlib import import_module

    module, _, command = _WHERE[name].partition(":")
    found = getattr(import_module(f"derivlang.{module}"), command or name)
    if command:
        found = import_module("derivlang.commands.command").function(found, name)
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    """Return the public names, for `dir` and for tab completion: those above, and the version."""
    return [*__all__, "__version__"]
