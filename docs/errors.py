"""The page of all error ids, from the source of the package: `conf.py` writes it when the site is built.

An id is read where an error is made: `UsageError("…", id="columns")`, `parse_errors(…, id="manifest")`,
`unknown("source", …)` and `Registry("source", …)` for `unknown-source`, and where it ends a fault, such as
(word, "itself as head", "head-cycle"). What a message fills in stands in braces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

HEAD = """# Errors

Every error message of derivlang ends with a short id in brackets. The next step, if there is one, has a line of
its own:

```text
fr.conllu:1482: word 9 has head 31, but the sentence has 24 words [head-range]
  correct the tree, or leave out the sentence
```

The ids are stable, so that scripts can distinguish errors. `UsageError` ends a command with exit code 2, every
other error with 1. In Python all of them are subclasses of `derivlang.DerivlangError`, with the fields `what`,
`where`, `fix` and `id`; `system` stands for an `OSError` that reaches the command line.

Each id has one of its messages here. Braces mark what a message fills in; ` / ` separates alternatives.

| id | error | a message |
|---|---|---|
"""

# Functions that raise an error for their caller: its class where the caller names none, its message, and the number of
# the argument that the message fills in.
RAISERS = {
    "parse_errors": ("DataError", "this is not a valid {}: {reason}", 1),
    "read_record": ("StoreError", "this is not a valid {}: {reason}", 1),
    "check_same": ("StoreError", "{}: {difference}", 2),
}


NOUNS = {"unknown": 0, "Registry": 0, "check_known": 2}  # the number of the argument that says what is unknown


class Message(NamedTuple):
    error: str
    text: str


def messages() -> dict[str, Message]:
    """A message of each id, by id: the first one that begins with a word of its own, if there is one."""
    known = frozenset((ROOT / "tests" / "error_ids.txt").read_text("utf-8").split())
    faults: dict[str, Message] = {}
    found = {"system": [Message("OSError", "{filename}: {strerror}")]}
    for path in sorted((ROOT / "derivlang").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for id, message in _made(node):
                found.setdefault(id, []).append(message)
            faults = dict(_fault(node, known)) | faults
    first = {id: min(some, key=lambda one: one.text.startswith("{")) for id, some in found.items()}
    return dict(sorted((faults | first).items()))


def page() -> str:
    """The text of docs/reference/errors.md."""
    rows = (f"| `{id}` | `{one.error}` | {_cell(one.text)} |\n" for id, one in messages().items())
    return HEAD + "".join(rows)


def _made(node: ast.AST) -> Iterator[tuple[str, Message]]:
    """The ids that a call makes errors with, and their messages."""
    if not isinstance(node, ast.Call):
        return
    callee = getattr(node.func, "id", "")
    ids = [id for keyword in node.keywords if keyword.arg == "id" for id in _ids(keyword.value)]
    if callee in NOUNS:
        noun = _text(node.args[NOUNS[callee]])
        for id in ids or ([] if noun.startswith("{") else [f"unknown-{noun.split()[0]}"]):
            yield id, Message("UsageError", f"there is no {noun} {{name}}; did you mean {{near}}?")
    elif ids and (callee in RAISERS or callee.endswith("Error")):
        error, text, at = RAISERS.get(callee, (callee, "{}", 0))
        named = [_text(keyword.value).strip("{}") for keyword in node.keywords if keyword.arg == "error"]
        for id in ids:
            yield id, Message((named or [error])[0], text.replace("{}", _text(node.args[at])))


def _fault(node: ast.AST, known: frozenset[str]) -> Iterator[tuple[str, Message]]:
    """The id at the end of a tuple, or of a call of a local function, and the first text in it."""
    parts = node.elts if isinstance(node, ast.Tuple) else node.args if isinstance(node, ast.Call) else []
    texts = [_text(part) for part in parts if isinstance(part, ast.JoinedStr) or isinstance(_constant(part), str)]
    if len(texts) > 1 and " " in texts[0] and _constant(parts[-1]) in known:
        yield texts[-1], Message("DataError", texts[0])


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _ids(node: ast.expr) -> list[str]:
    """The ids that an expression may be: none where a caller hands it on, who names it."""
    if isinstance(node, ast.IfExp):
        return _ids(node.body) + _ids(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) else []


def _text(node: ast.expr) -> str:
    """A message as the source writes it, with names in braces for what is filled in."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(map(_text, node.values))
        case ast.FormattedValue():
            return _text(node.value)
        case ast.IfExp():
            return " / ".join(filter(None, map(_text, (node.body, node.orelse))))
        case ast.BinOp(op=ast.Add()):
            return _text(node.left) + _text(node.right)
        case ast.BoolOp():
            return _text(node.values[0])
        case ast.Call(args=[first, *_]) | ast.Call(func=first) | ast.Subscript(value=first):
            return _text(first)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return f"{{{name.strip('_')}}}"
    return "{…}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
