"""The options of `make` that a recipe has to repeat: those that change what is made, as they are typed.

    options_of(SourceRequest("a.csv", text_column=("review",), header=False), MakeOptions(Path("out"), limit=5))
        ->  ["--text-column=review", "--no-header", "--limit=5"]

The transforms and their seed are in the spec. Folders of this machine are left out: the folder of the corpora, and
those that a parser and a saved lexicon lie in. The lexicon lies in the set as well, and is named as there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.policies import Policies
from derivlang.core.settings import declared, typed
from derivlang.engine.options import MakeOptions
from derivlang.sources.corpus import Corpus
from derivlang.sources.request import SourceRequest
from derivlang.store.manifest import LEXICON

_OF_SOURCE = (
    "word_column", "text_column", "header", "quoting", "delimiter", "words", "lang", "encoding", "format",
    "column_names",
)  # fmt: skip
_RULES = ("limit", "sentences", "repair_tags", "parser")  # the other settings say how a run goes


def continued(corpus: Corpus, options: MakeOptions) -> MakeOptions:
    """Return the options for a derived set as the source: its sentences stay, and its policies hold for all transforms.

    Raises UsageError for a policy that would undo the set's policy, and for another rule of sentences.
    """
    rule = corpus.options["sentences"]
    if options.sentences not in (rule, declared(MakeOptions)["sentences"].default):
        raise UsageError(
            f"the set has its sentences already, by the rule {rule}",
            where="--sentences",
            fix="leave --sentences out, or make the set from its first source",
            id="unused-option",
        )
    for name, one in declared(Policies).items():
        policy = getattr(corpus.options["policies"], name)
        if policy not in (one.default, getattr(options.policies, name)):
            raise UsageError(
                f"the source was made with --{name} {policy}, which must hold for all transforms of a set",
                where=f"--{name}",
                fix=f"give --{name} {policy}, or make the set from its first source",
                id="other-policy",
            )
    limit = options.limit and min(options.limit, corpus.options["limit"] or options.limit)
    return replace(options, sentences=rule, limit=limit)


def recipe_of(corpus: Corpus, request: SourceRequest, options: MakeOptions) -> list[str]:
    """Return the options of the one command that makes the set. A derived source was read with its own options.

    its own --words=space --columns=source --limit=9, and now --limit=5  ->  ["--words=space", "--limit=5"]
    """
    if corpus.format != "derived":
        return options_of(request, options)
    later = options_of(SourceRequest(request.source), options)
    names = {option.partition("=")[0] for option in later} | {"--columns"}
    return [*(option for option in corpus.options["recipe"] if option.partition("=")[0] not in names), *later]


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
