"""The options of `make` that a recipe has to repeat: those that change what is made, as they are typed.

    options_of(SourceRequest("a.csv", texts=("review",), header=False), MakeOptions(Path("out"), limit=5))
        ->  ["--text-column=review", "--no-header", "--limit=5"]

The transforms and their seed are in the spec. Folders of this machine are left out: that of the corpora, and those that
a parser and a saved lexicon lie in. The lexicon lies in the set as well, and is named as there.
"""

from __future__ import annotations

from pathlib import Path

from derivlang.core.policies import Policies
from derivlang.core.settings import declared
from derivlang.engine.options import MakeOptions
from derivlang.sources.find import SourceRequest
from derivlang.store.manifest import LEXICON

_RULES = ("limit", "sentences", "repair_tags", "parser")  # the other settings say how a run goes


def options_of(request: SourceRequest, options: MakeOptions) -> list[str]:
    """Return the options that differ from their defaults, each as one word of a command line."""
    named = {
        "words": request.mode,
        "lang": request.language,
        "encoding": request.encoding if request.encoding != "utf-8" else None,
        "column-names": ",".join(request.names),
        "splits": ",".join(options.splits),
        "columns": ",".join(options.columns),
        "lexicon": LEXICON if options.lexicon else None,
    }
    header = [] if request.header is None else ["--header" if request.header else "--no-header"]
    found = [
        *(f"--word-column={column}" for column in request.words),
        *(f"--text-column={column}" for column in request.texts),
        *header,
        *(["--quoting"] if request.quoting else []),
        *(f"--{name}={value}" for name, value in named.items() if value),
    ]
    for settings, names in ((options, _RULES), (options.policies, tuple(declared(Policies)))):
        kind: type = type(settings)
        for name, one in declared(kind).items():
            value = getattr(settings, name)
            if name == "parser" and value and "/" in value:
                value = f"{Path(value).name}/"
            if name in names and value != one.default:
                found.append(str(one.option) if value is True else f"{one.option}={value}")
    return found
