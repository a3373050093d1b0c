"""The file of a probabilistic context-free grammar, as nltk reads it, with one comment that means something.

    # a comment
    S -> NP VP [1.0]
    # switch 5
    NP -> 'big' NP [0.3] | 'Ann' [0.5] | 'Bo' [0.2]

A line holds rules of one left side; sentences are made from the first. Words are quoted. The probabilities
of a left side sum to 1, up to the 0.01 of nltk, and are scaled to do so. `# switch 5` numbers the rules of the next
line, so that `switch=` can reverse them; nltk reads it as a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import empty_file, read_text

_EPSILON = 0.01  # as nltk.grammar.PCFG.EPSILON
_SWITCH = re.compile(r"#\s*switch\s+(\d{1,3})\s*")
_LEFT = re.compile(r"\s*([\w/][\w/^<>-]*)\s*->\s*")
_PART = re.compile(
    r"""(?P<symbol>[\w/][\w/^<>-]*)|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|\[(?P<weight>[^\]]*)\]|(?P<bar>\|)"""
)
_SPACE = re.compile(r"\s*")

# A symbol on a right side: the name, and whether it is a word.
Symbol: TypeAlias = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a grammar. switch: the number of the switch that reverses it, 0 if there is none."""

    left: str
    right: tuple[Symbol, ...]
    probability: float
    line: int
    switch: int = 0


def read_rules(path: Path) -> tuple[list[Rule], str]:
    """Return the rules of a grammar and the text of its file.

    Raises DataError: pcfg-syntax, pcfg-probability, pcfg-symbol, empty-file, and as `read_text`.
    """
    text = read_text(path)
    rules: list[Rule] = []
    switch = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if line.lstrip().startswith("#"):
            marked = _SWITCH.fullmatch(line.strip())
            switch = int(marked[1]) if marked else switch
            continue
        rules += _rules_of(line, number, switch, f"{path}:{number}")
        switch = 0
    if not rules:
        raise empty_file(path, "rule")
    _check_sums(rules, path)
    _check_symbols(rules, path)
    return rules, text


def grammars() -> dict[str, Path]:
    """Return the files of the grammars that come with the package, by name (`six-switches`)."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "grammars").glob("*.pcfg"))}


def grammar_path(name: str) -> Path:
    """Return the file of a grammar of the package, or the path that is not such a name."""
    return grammars().get(name, Path(name))


def check_switches(what: str, digits: str, rules: list[Rule], file: str) -> None:
    """Raise UsageError for digits that are not 0 or 1, or fewer than a grammar has switches, and a grammar without any.

    what: has the digits.
    """
    if not set(digits) <= {"0", "1"}:
        raise UsageError(f"{what}={digits} must be zeros and ones", id="bad-value")
    highest = max(rule.switch for rule in rules)
    if not highest:
        raise UsageError(
            f"{what}={digits} needs numbered rules, but {file} numbers no rule with `# switch N`",
            fix="write # switch 1 in the line before a rule",
            id="bad-value",
        )
    if len(digits) < highest:
        raise UsageError(
            f"{what}={digits} has {len(digits)} digits, but {file} has a switch {highest}",
            fix="give a digit for each switch",
            id="bad-value",
        )


def _rules_of(line: str, number: int, switch: int, where: str) -> list[Rule]:
    """Return the rules of a line."""

    def fail(what: str) -> DataError:
        return DataError(what, where=where, fix="write rules as S -> NP VP [0.7] | 'word' [0.3]", id="pcfg-syntax")

    left = _LEFT.match(line)
    if left is None:
        raise fail("the line does not begin with a symbol and ->")
    rules: list[Rule] = []
    right: list[Symbol] = []
    probability: float | None = None
    at = left.end()
    while True:
        part = _PART.match(line, at)
        if part is None and at < len(line):
            raise fail(f"{line[at:].split()[0]!r} is neither a symbol, a quoted word, | nor a probability in [ ]")
        if part is None or part["bar"]:
            if not right:
                raise fail("a right side without symbols: a rule that makes nothing is not supported")
            if probability is None:
                raise fail(f"the rule {_shown(left[1], right)} has no probability")
            rules.append(Rule(left[1], tuple(right), probability, number, switch))
            if part is None:
                return rules
            right, probability = [], None
        elif probability is not None:
            raise fail("a probability ends a rule: write | before the next one")
        elif part["weight"] is not None:
            probability = _probability(part["weight"], _shown(left[1], right), where)
        elif part["symbol"]:
            right.append((part["symbol"], False))
        else:
            word = part["double"] if part["single"] is None else part["single"]
            if not word or word.split() != [word]:
                raise fail(f"the quoted word {word!r} is empty or holds a space")
            right.append((word, True))
        at = _SPACE.match(line, part.end()).end()  # type: ignore[union-attr]  # always matches


def _probability(text: str, rule: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value <= 1:
        raise DataError(
            f"the rule {rule} has the probability {text.strip()}, which is not above 0 and at most 1",
            where=where,
            fix="correct it: the probabilities of a left side sum to 1",
            id="pcfg-probability",
        )
    return value


def _shown(left: str, right: list[Symbol]) -> str:
    return f"{left} -> {' '.join(repr(name) if is_word else name for name, is_word in right)}"


def _check_sums(rules: list[Rule], path: Path) -> None:
    """Raise DataError pcfg-probability if the probabilities of a left side do not sum to 1."""
    sums: dict[str, float] = {}
    for rule in rules:
        sums[rule.left] = sums.get(rule.left, 0.0) + rule.probability
    for rule in rules:
        if abs(sums[rule.left] - 1) > _EPSILON:
            raise DataError(
                f"the probabilities of {rule.left} sum to {sums[rule.left]:.6g}, not to 1",
                where=f"{path}:{rule.line}",
                fix=f"correct the rules of {rule.left}, which begin here",
                id="pcfg-probability",
            )


def _check_symbols(rules: list[Rule], path: Path) -> None:
    """Raise DataError pcfg-symbol for a symbol without rules."""
    known = {rule.left for rule in rules}
    for rule in rules:
        for name, is_word in rule.right:
            if not is_word and name not in known:
                raise DataError(
                    f"the symbol {name} has no rule",
                    where=f"{path}:{rule.line}",
                    fix=f"add a rule {name} -> …, or quote it if it is a word: '{name}'",
                    id="pcfg-symbol",
                )
