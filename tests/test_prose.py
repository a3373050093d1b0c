"""Retired words and names do not return: texts for people use the field's terms and plain English.

A phrase is added once the whole package is free of it. Spelling itself is codespell's (pyproject.toml, .ci/run).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from derivlang.cli.main import COMMANDS, main
from tests.helpers import ROOT

# Retired phrase -> what stands in its place.
RETIRED = {
    "0 is none": "must be at least 1, got 0",
    "At its highest": "Peak learning rate.",
    "Of matrices": "AdamW weight decay (matrices only).",
    "Of the processor": "Number of CPU threads.",
    "UsageError for a duration that is none": "Raise UsageError if the duration is not positive.",
    "taken apart": "split by the reordering",
    "took apart": "split",
    "mwt-dissolved: ": "… multiword tokens were dissolved",
    "what a recipe says beside": "recipe fields other than the source",
    "where to? name": "missing output file",
    "Whoever ": "Code that …",
    "Nobody waits": "Only logging and saving synchronise the device.",
    "pretends a device": "emulates an accelerator",
    "hidden position": "masked position",
    "hidden sub-word": "masked sub-word",
    "is hidden": "is masked",
    "that are hidden": "that are masked",
    "no number any more": "became NaN or infinite",
    "said better by": "reported by",
}
# Retired name -> the name that replaced it.
RETIRED_NAMES = {
    "Design": "ModelConfig",
    "Talk": "Callbacks",
    "LogSettings": "SessionSettings",
    "alone": "file_lock",
    "hidden": "masked",
    "places": "positions",
    "print_": "fingerprint",
    "sent": "to_device",
    "spread": "expand_ranges",
}
# A noun of measure, then "a Y" for "per Y": "lines a second". One word after "one" counts as such a noun, too.
MEASURE = (
    r"(?:words|sub-words|tokens|lines|rows|bits|bytes|seconds|ms|ns|nanoseconds|microseconds|MB|GB|MiB|kB|places"
    r"|positions|letters|operations|characters|numbers|counts|threads|once|twice"
    r"|(?:an?|several)\s+(?:object|pair|word|label|paragraph|sentence|state|tag|root|number|tree|line)"
    r"|one\s+(?:sentence\s+pair|head\s+class|JSON\s+object"
    r"|(?!(?:in|of|on|for|that|with|without|to|from|by|at|as|or|and|under|was)\b)[\w-]+))"
)
UNIT = (
    r"(?:(?:CPU|sentence|verb|source|training)\s+)?(?:second|word|sub-word|token|line|row|cell|head|step|file|record"
    r"|split|side|sentence|pair|process|question|type|family|class|position|slot|input|page|panel|score|shard|batch|task"
    r"|key|column|pass|document|paragraph|label|link|index|parameter|checkpoint|run|seed|language)"
)
# Patterns that make a sentence hard to read -> (regular expression, what to write, occurrences that are left). The last
# number only falls.
PATTERNS = {
    "those of": (r"(?<!so )\b(?:those|that|the ones?)\s+of\b", "the noun itself: 'step: of the checkpoint'", 0),
    "is no X": (
        r"(?<!here )(?<!here\n)\b(?:is|are|was|were)\s+(?:no\b(?!\s+(?:longer|more|better)\b)|none\s+of\b)",
        "is not a",
        0,
    ),
    "which is none": (r"\b(?:that|which)\s+(?:is|are)\s+none\b", "invalid, missing, is not a …", 0),
    "alone": (r"\balone\b", "only; by itself", 0),
    "tells": (
        r"(?<![`\"'{(._/=])\b(?:told|tells?|telling)\b(?![`\"'}=:(])",
        "records, says, shows; distinguishes; gives",
        0,
    ),
    "X a Y": (rf"(?<!\")\b{MEASURE}\s+an?\s+{UNIT}\b(?!\s+(?:has|had|may|can))", "per: 'lines per second'", 0),
}
TEXTS = sorted(
    path.relative_to(ROOT)
    for pattern in ("derivlang/**/*.py", "docs/**/*.md", "grammars/*.py", "grammars/*.md", "benchmarks/*.py", "*.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("phrase", RETIRED)
def test_a_retired_phrase_does_not_return(phrase: str) -> None:
    pattern = re.compile(r"\s+".join(map(re.escape, phrase.split())))  # across lines, too
    for path in TEXTS:
        text = (ROOT / path).read_text("utf-8")
        found = pattern.search(text)
        assert found is None, (
            f"{path}:{text.count(chr(10), 0, found.start() if found else 0) + 1}: write {RETIRED[phrase]!r}"
        )


@cache
def prose(path: Path) -> list[tuple[int, str]]:
    """(line, text) of the docstrings, comments and strings of a module, or of a whole page."""
    text = (ROOT / path).read_text("utf-8")
    if path.suffix != ".py":
        return [(1, text)]
    return [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE")
    ]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_that_is_hard_to_read_does_not_return(name: str) -> None:
    pattern, instead, left = PATTERNS[name]
    found = [
        f"{path}:{line + text.count(chr(10), 0, match.start())}: {' '.join(match[0].split())}"
        for path in TEXTS
        if path.parts[0] in ("derivlang", "docs", "README.md")
        for line, text in prose(path)
        for match in re.finditer(pattern, text)
    ]
    assert len(found) <= left, "\n".join([f"{name!r}: write {instead}", *found])


def defined() -> Iterator[tuple[str, str]]:
    """(name, file) of every class and function of a module, and every method."""
    for path in TEXTS:
        if path.parts[0] == "derivlang" and path.suffix == ".py":
            for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    yield node.name, f"{path}:{node.lineno}"


def test_a_retired_name_does_not_return() -> None:
    found = {where: f"{name}: {RETIRED_NAMES[name]}" for name, where in defined() if name in RETIRED_NAMES}
    assert not found


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in TEXTS:
        if path.parts[0] == "derivlang" and path.suffix == ".py":
            for node in ast.parse((ROOT / path).read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def helps() -> Iterator[tuple[str, str]]:
    """(command and option, help) of every option."""
    todo: list[tuple[str, click.Command]] = [("", main)]
    while todo:
        words, command = todo.pop()
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{words} {option.opts[0]}", option.help or ""
        if isinstance(command, click.Group):
            names = COMMANDS if command is main else command.commands
            found = [(f"{words} {name}".strip(), command.get_command(click.Context(command), name)) for name in names]
            todo += [(name, inner) for name, inner in found if inner is not None]


@pytest.mark.parametrize(("option", "help"), list(helps()))
def test_help_is_a_phrase_that_stands_alone(option: str, help: str) -> None:
    assert help, option
    assert not re.match(r"(Of|In|At|By|With|Where|Not) ", help), f"{option}: a help text begins with a noun, or a verb"
    assert help.split("  [")[0].endswith("."), f"{option}: {help}"


def test_the_texts_are_found() -> None:
    assert {Path("README.md"), Path("docs/design/architecture.md"), Path("derivlang/cli/sets.py")} <= set(TEXTS)
