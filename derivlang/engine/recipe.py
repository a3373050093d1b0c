"""The options of `make` that a recipe has to repeat: those that change what is made, as they are typed.

    options_of(SourceRequest("a.csv", texts=("review",), header=False), MakeOptions(Path("out"), limit=5))
        ->  ["--text-column=review", "--no-header", "--limit=5"]

The transforms and their seed are in the spec. Folders of this machine are left out: that of the corpora, and those that
a parser and a saved lexicon lie in. The lexicon lies in the set as well, and is named as there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from derivlang.core.policies import Policies
from derivlang.core.settings import declared, typed
from derivlang.engine.options import MakeOptions
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import LEXICON

_OF_SOURCE = ("words", "texts", "header", "quoting", "mode", "language", "encoding", "names")
_RULES = ("limit", "sentences", "repair_tags", "parser")  # the other settings say how a run goes


def options_of(request: SourceRequest, options: MakeOptions) -> list[str]:
    """Return the options that differ from their defaults, each as one word of a command line."""
    if options.parser and "/" in options.parser:
        options = replace(options, parser=f"{Path(options.parser).name}/")
    return [
        *typed(request, _OF_SOURCE),
        *typed(options, ("splits", "columns")),
        *([f"--lexicon={LEXICON}"] if options.lexicon else []),
        *typed(options, _RULES),
        *typed(options.policies, declared(Policies)),
    ]
