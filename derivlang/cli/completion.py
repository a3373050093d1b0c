"""Shell completion: what may stand where, by the mechanism of click.

    derivlang make --t tra<TAB>               trans
    derivlang make --t trans,perm:w<TAB>      trans,perm:window=
    derivlang make wiki<TAB>                  wikitext2  wikitext103, and files
    derivlang evaluate out/<TAB>              folders of runs

A completer has the signature of click's `shell_complete`. Where a plug-in is broken, or a folder cannot be read, it
returns nothing, so that no message is printed at a prompt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from derivlang.core.errors import DerivlangError

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_FILES, _FOLDERS = CompletionItem("", type="file"), CompletionItem("", type="dir")
_BREAKS = ":="  # bash takes what follows them for a word of its own


def completer(names: Callable[[str], Iterable[str]], *more: CompletionItem) -> Completer:
    """Return a completer of the names that a function gives for what was typed.

    more: files or folders beside them; in bash, where there is no such name. They come first, as bash's function drops
    what stands before them.
    """

    @wraps(names)
    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        try:
            matching = [name for name in names(typed) if name.startswith(typed)]
        except (DerivlangError, OSError, ImportError):
            matching = []
        return [*more, *map(CompletionItem, matching)]

    return complete


def _sources(typed: str) -> list[str]:
    from derivlang.sources.named import named_sources

    return list(named_sources())


def _transforms(typed: str) -> list[str]:
    from derivlang.transforms.registry import TRANSFORMS

    return _of_spec(typed, TRANSFORMS)


def _objectives(typed: str) -> list[str]:
    from derivlang.training.objectives.registry import OBJECTIVES

    return _of_spec(typed, OBJECTIVES)


def _of_spec(typed: str, registry: Any) -> list[str]:
    """Return how the last part of a spec may go on: a name, a parameter, or a value of a parameter.

    trans,pe -> trans,perm      perm:w -> perm:window=      trans:gr -> trans:greek
    """
    before, comma, last = typed.rpartition(",")
    name, colon, given = last.partition(":")
    if not colon:
        return [before + comma + one for one in registry.names()]
    earlier, _, part = given.rpartition(":")
    start = before + comma + name + colon + (f"{earlier}:" if earlier else "")
    key, equals, _ = part.partition("=")
    completions = []
    for one in registry.find(name).parameters():
        values = one["type"].split("|") if "|" in one["type"] else one["names"]
        if equals:
            completions += [f"{start}{key}={value}" for value in values if one["name"] == key]
            continue
        completions.append(f"{start}{one['name']}=")
        if one["positional"] and not earlier:
            completions += [start + value for value in values]
    return completions


def _grammars(typed: str) -> list[str]:
    from derivlang.grammar.load import shipped

    return list(shipped())


def _studies(typed: str) -> list[str]:
    from derivlang.studies.file import shipped

    return sorted(shipped())


def _recipes(typed: str) -> list[str]:
    from derivlang.studies.file import scales

    return [name for name in _studies(typed) if scales(name)]


def _models(typed: str) -> list[str]:
    from importlib import resources

    return sorted(
        file.name.removesuffix(".toml") for file in (resources.files("derivlang.training") / "models").iterdir()
    )


def _parsers(typed: str) -> list[str]:
    from derivlang.parsing.registry import parser_names

    return [*parser_names(), "spacy:"]


def _tasks(typed: str) -> list[str]:
    from derivlang.evaluation.tasks.registry import TASKS

    return _listed(typed, TASKS.names())


def _measures(typed: str) -> list[str]:
    from derivlang.evaluation.measures.registry import MEASURES

    return _listed(typed, MEASURES.names())


def _listed(typed: str, names: Iterable[str]) -> list[str]:
    before, comma, _ = typed.rpartition(",")
    return [before + comma + name for name in names]


def _folders_with(*files: str) -> Callable[[str], list[str]]:
    """Return a function that gives the folders with one of these files, and those that lead to some."""

    def folders(typed: str) -> list[str]:
        above = Path(typed) if typed.endswith("/") else Path(typed).parent
        subfolders = sorted(path for path in above.iterdir() if path.is_dir() and not path.name.startswith("."))
        made = [path for path in subfolders if any((path / file).exists() for file in files)]
        further = [path for path in subfolders if path not in made and any(path.glob(f"*/{files[0]}"))]
        start = typed[: typed.rfind("/") + 1]
        return [start + path.name for path in made] + [f"{start}{path.name}/" for path in further]

    return folders


# By the name that arguments and options give (`completes` in types.py).
COMPLETERS = {
    "source": completer(_sources, _FILES),
    "spec": completer(_transforms),
    "objective": completer(_objectives),
    "study": completer(_studies, _FILES),
    "recipe": completer(_recipes),
    "grammar": completer(_grammars, _FILES),
    "model": completer(_models, _FILES),
    "parser": completer(_parsers, _FOLDERS),
    "tasks": completer(_tasks),
    "measures": completer(_measures),
    "run": completer(_folders_with("run.json", "study.json"), _FOLDERS),
    "set": completer(_folders_with("derivlang.json"), _FOLDERS),
}


class _Bash(BashComplete):
    """Completion in bash of words with `:` and `=`, which bash divides.

    click reads the divided words, as `trans : gr`. This reads the line up to the cursor, and leaves out of an answer
    what stands before the last of these marks.
    """

    source_template = BashComplete.source_template.replace(
        'COMP_WORDS="${COMP_WORDS[*]}"', 'COMP_LINE="${COMP_LINE:0:$COMP_POINT}" COMP_WORDS="${COMP_WORDS[*]}"'
    ).replace("COMPREPLY+=($value)", "COMPREPLY+=($value)\n            [[ $value == *[=:/] ]] && compopt -o nospace")
    _typed, _before = "", 0  # the word at the cursor, and how much of it bash takes for earlier words

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the cursor and the one at it."""
        line = os.environ.get("COMP_LINE")
        if line is None:
            return super().get_completion_args()
        words = split_arg_string(line)
        typed = words.pop() if words and not line[-1].isspace() else ""
        self._before = max(typed.rfind(mark) for mark in _BREAKS) + 1
        self._typed = typed
        return words[1:], typed

    def format_completion(self, item: CompletionItem) -> str:
        """Return an answer without what bash takes for an earlier word."""
        value = item.value.removeprefix(self._typed[: self._before]) if item.type == "plain" else item.value
        return f"{item.type},{value}"


add_completion_class(_Bash)
