"""The expressions of the package that tests/mutants.py may change, and the list of those that it does.

A mutant changes one comparison, constant or branch: `<` to `<=`, `==` to `!=`, `in` to `not in`, 1 to 2, True to False,
`and` to `or`, `if c` to `if not c`. Every such expression has a rank, a hash of itself and SEED. The first list has the
lowest ranks. The place of a mutant whose code is gone goes to the lowest rank that is not in the list. Code that was
there before and has such a rank is in the list, so most that follow are from the code that came instead.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEED, NUMBER = 1, 60
PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)]
OTHER: dict[type, type] = {ast.And: ast.Or, ast.Or: ast.And, **dict(PAIRS), **{b: a for a, b in PAIRS}}
SKIPPED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.pattern)


@dataclass(frozen=True)
class Mutant:
    """A change of one expression.

    scope: the function, with (), or the class; empty in a module. line: where it begins. nth: among the same changes
    of equal lines of the scope, from 1. result: killed, survived, or nothing yet. test: that failed.
    """

    file: str
    scope: str
    line: str
    before: str
    after: str
    nth: str
    result: str = ""
    test: str = ""

    @property
    def key(self) -> str:
        return "\t".join((self.file, self.scope, self.line, self.before, self.after, self.nth))

    @property
    def rank(self) -> str:
        return hashlib.sha256(f"{SEED}\t{self.key}".encode()).hexdigest()

    def is_near(self, test: str) -> bool:
        """Whether the file of a test names the module."""
        package, _, module = self.file.removesuffix(".py").replace("/", ".").rpartition(".")
        pattern = rf"\b{package}(\.| import [^\n]*\b){module}\b"
        return re.search(pattern, text_of(file_of(test))) is not None


def changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield (expression, what it becomes) of a node."""
    match node:
        case ast.Compare(left, operators, right):
            for at, operator in enumerate(operators):
                yield node, ast.Compare(left, [*operators[:at], OTHER[type(operator)](), *operators[at + 1 :]], right)
        case ast.BoolOp(operator, values):
            yield node, ast.BoolOp(OTHER[type(operator)](), values)
        case ast.Constant(bool() as value):
            yield node, ast.Constant(not value)
        case ast.Constant(int() as value):
            yield node, ast.Constant(value + 1)
    for test in [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else getattr(node, "ifs", []):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield test, test.operand
        elif not isinstance(test, ast.Compare | ast.BoolOp | ast.Constant):  # those are changed themselves
            yield test, ast.UnaryOp(ast.Not(), test)


def scoped(node: ast.AST, scope: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes below one with their scopes, without annotations, messages, and checks of what holds anyway."""
    inside = scope
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inside = f"{scope.removesuffix('()')}.{node.name}".strip(".") + "()" * (not isinstance(node, ast.ClassDef))
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if (
                not isinstance(child, ast.AST)
                or isinstance(child, SKIPPED)
                or name in ("annotation", "returns")
                or (name == "decorator_list" and ast.unparse(child).startswith("dataclass("))
                or (isinstance(child, ast.keyword) and child.arg == "strict")
            ):
                continue
            yield child, inside if name == "body" else scope
            yield from scoped(child, inside if name == "body" else scope)


def sites(text: str, file: str) -> dict[Mutant, tuple[int, int]]:
    """Return the mutants of a file, and where their expressions begin and end, in bytes."""
    lines = text.encode().splitlines(keepends=True)
    begins = [0, *accumulate(map(len, lines))]
    found, counts = {}, Counter[str]()
    for node, scope in scoped(ast.parse(text)):
        for old, new in changes(node):
            line = lines[old.lineno - 1].decode().strip()
            mutant = Mutant(file, scope, line, ast.unparse(old), ast.unparse(new), "")
            counts[mutant.key] += 1
            end = begins[old.end_lineno - 1] + old.end_col_offset  # type: ignore[operator]
            found[replace(mutant, nth=str(counts[mutant.key]))] = (begins[old.lineno - 1] + old.col_offset, end)
    return found


def file_of(test: str) -> str:
    return test.partition("::")[0]


@cache
def text_of(file: str) -> str:
    return (ROOT / file).read_text("utf-8") if (ROOT / file).is_file() else ""


@cache
def spans(file: str) -> dict[str, tuple[int, int]]:
    return {mutant.key: span for mutant, span in sites(text_of(file), file).items()}


def listed() -> list[Mutant]:
    """Return the mutants of the list."""
    return [Mutant(*line.split("\t")) for line in text_of("tests/mutants.txt").splitlines() if not line.startswith("#")]


def gone() -> list[Mutant]:
    """Return the listed mutants whose code is gone."""
    return [mutant for mutant in listed() if mutant.key not in spans(mutant.file)]


def drawn() -> list[Mutant]:
    """Return the listed mutants whose code is there, and as many others as are missing."""
    kept = [mutant for mutant in listed() if mutant.key in spans(mutant.file)]
    if len(kept) < NUMBER:
        keys = {mutant.key for mutant in kept}
        paths = [path for path in (ROOT / "derivlang").rglob("*.py") if path.name not in ("__main__.py", "_version.py")]
        files = [path.relative_to(ROOT).as_posix() for path in paths]
        others = [mutant for file in files for mutant in sites(text_of(file), file) if mutant.key not in keys]
        kept += sorted(others, key=lambda mutant: mutant.rank)[: NUMBER - len(kept)]
    return sorted(kept, key=lambda mutant: mutant.key)
