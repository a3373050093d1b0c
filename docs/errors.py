"""Write docs/errors.md, the table of all error ids, from the source of the package.

    python docs/errors.py

An id is read where an error is made: `UsageError("…", id="columns")`, `parse_errors(…, id="manifest")`,
`unknown("source", …)` and `Registry("source", …)` for `unknown-source`. What a message fills in stands in braces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "errors.md"
MESSAGES = 3  # of an id, at most, in the table

HEAD = """# Errors

Every error message of derivlang ends with a short id in brackets. The next step, if there is one, has a line of
its own:

    fr.conllu:1482: word 9 has head 31, but the sentence has 24 words [head-range]
      correct the tree, or leave the sentence out

The ids are stable, so that scripts can tell errors apart. `UsageError` ends a command with exit code 2, every
other error with 1. In Python all of them are subclasses of `derivlang.DerivlangError`, with the fields `what`,
`where`, `fix` and `id`; `system` stands for an `OSError` that reaches the command line.

`python docs/errors.py` writes this page. Braces mark what a message fills in. At most three messages of an id are
shown.

| id | error | message | what to do | module |
|---|---|---|---|---|
"""

# Functions that raise an error for their caller -> its class where the caller names none, and its message.
RAISERS = {
    "parse_errors": ("DataError", "this is not a valid {}: {reason}"),
    "read_record": ("StoreError", "this is not a valid {}: {reason}"),
}


@dataclass(frozen=True, slots=True, order=True)
class Raised:
    """A place where an error is made."""

    id: str
    error: str
    message: str
    fix: str
    module: str


def errors() -> list[Raised]:
    """Every place of the package that makes an error with an id, by id."""
    found = {Raised("system", "OSError", "{filename}: {strerror}", "", "cli.main")}
    for path in sorted((ROOT / "derivlang").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "derivlang").with_suffix("").parts).removesuffix(".__init__")
        if module in ("core.errors", "core.parse_errors"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            found |= {Raised(*facts, module) for facts in _raised(node)}
    return sorted(found)


def page() -> str:
    """The text of docs/errors.md."""
    by_id: dict[str, list[Raised]] = {}
    for one in errors():
        by_id.setdefault(one.id, []).append(one)
    rows = []
    for id, places in by_id.items():
        cells = [
            [f"`{id}`"],
            [f"`{name}`" for name in _distinct(one.error for one in places)],
            _distinct(_cell(one.message) for one in places)[:MESSAGES],
            _distinct(_cell(one.fix) for one in places if one.fix not in ("", "{fix}"))[:MESSAGES],
            [f"`{name}`" for name in _distinct(one.module for one in places)],
        ]
        rows.append("| " + " | ".join("<br>".join(cell) or "–" for cell in cells) + " |\n")
    return HEAD + "".join(rows)


def _raised(node: ast.AST) -> Iterator[tuple[str, str, str, str]]:
    """(id, error, message, fix) of the errors that an expression makes."""
    if isinstance(node, ast.Tuple) and len(node.elts) == 3:  # (word, what, id) of core/trees.py
        _, what, id = node.elts
        if isinstance(id, ast.Constant) and isinstance(id.value, str) and id.value.startswith("head-"):
            yield id.value, "LayerError", f"the word has {_text(what)}", "correct the tree"
    if not isinstance(node, ast.Call):
        return
    callee = node.func.id if isinstance(node.func, ast.Name) else ""
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    fix = _text(named["fix"]) if "fix" in named else ""
    if callee in ("unknown", "Registry"):
        kind = _text(node.args[0])
        if callee == "Registry":  # as in core/plugins.py
            fix = fix or f"`derivlang ls` lists the {kind}s"
        if not kind.startswith("{"):
            yield (
                f"unknown-{kind.split()[0]}",
                "UsageError",
                f"there is no {kind} {{name}}; did you mean {{near}}?",
                fix,
            )
    elif callee == "_fault" and len(node.args) == 4:  # of formats/conllu_checks.py
        what, id = node.args[2:4]
        fix = "correct the tree, or leave the sentence out"
        yield from ((one, "LayerError", f"word {{number}} has {_text(what)}", fix) for one in _ids(id))
    elif "id" in named and (callee.endswith("Error") or callee in RAISERS):
        error, message = RAISERS.get(callee, (callee, ""))
        if callee in RAISERS:
            message = message.replace("{}", _text(node.args[1]))
            error = _text(named["error"]).strip("{}") if "error" in named else error
        else:
            message = _text(node.args[0])
        yield from ((one, error, message, fix) for one in _ids(named["id"]))


def _ids(node: ast.expr) -> list[str]:
    """The ids that an expression may be."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return _ids(node.body) + _ids(node.orelse)
    if isinstance(node, ast.JoinedStr) and _text(node) == "empty-{name}":  # of formats/tagged.py
        return ["empty-token", "empty-tag"]
    return []  # handed on from a caller, who names it


def _text(node: ast.expr) -> str:
    """A message as the source writes it, with names in braces for what is filled in."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None else str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value) if isinstance(node.value, (ast.Constant, ast.IfExp)) else _name(node.value)
    if isinstance(node, ast.IfExp):
        one, other = _text(node.body), _text(node.orelse)
        return f"{one} / {other}" if one and other else one or other
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.BoolOp):
        return _text(node.values[0])
    return _name(node)


def _name(node: ast.expr) -> str:
    """`{limit}` for `options.limit`, `settings["limit"]`, `short(limit)` and the like; `{…}` for longer expressions."""
    while True:
        if isinstance(node, ast.Name):
            return f"{{{node.id.strip('_')}}}"
        if isinstance(node, ast.Attribute):
            return f"{{{node.attr.strip('_')}}}"
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        ):
            return f"{{{node.slice.value}}}"
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return "{…}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _distinct(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
