"""Write docs/reference/errors.md, the tables of all error messages, from the source of the package.

    python docs/errors.py

An id is read where an error is made: `UsageError("…", id="columns")`, `parse_errors(…, id="manifest")`,
`unknown("source", …)` and `Registry("source", …)` for `unknown-source`. What a message fills in stands in braces.
Constants, texts that a function keeps in a variable, and texts that are handed to a function that makes the error, are
written out.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "errors.md"

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

Each package has a table of its messages. Braces mark what a message fills in; ` / ` separates alternatives.
`python docs/errors.py` writes this page.
"""

TABLE = """
## {}

| id | error | message | what to do | module |
|---|---|---|---|---|
"""

# Functions that raise an error for their caller -> its class where the caller names none, its message, and the number
# of the argument that the message fills in.
RAISERS = {
    "parse_errors": ("DataError", "this is not a valid {}: {reason}", 1),
    "read_record": ("StoreError", "this is not a valid {}: {reason}", 1),
    "check_same": ("StoreError", "{}: {difference}", 2),
}
Texts = dict[str, ast.expr]  # what a name stands for
Faults = list[tuple[str, str]]  # (what, id) of faults that one function finds and another one raises


@dataclass(frozen=True, slots=True, order=True)
class Raised:
    """A message, and where it is made. package: the first part of the module, "derivlang" for a module at the top."""

    package: str
    id: str
    error: str
    message: str
    fix: str
    module: str


@cache
def errors() -> list[Raised]:
    """Every message with an id, by package and id."""
    folder = ROOT / "derivlang"
    trees = {
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text("utf-8")
        )
        for path in sorted(folder.rglob("*.py"))
    }
    constants = {module: _constants(tree) for module, tree in trees.items()}
    nodes = {
        module: list(ast.walk(_WriteOut({**_imported(tree, constants), **constants[module]}).visit(tree)))
        for module, tree in trees.items()
    }
    imports = {
        module: {name.name for node in inside if isinstance(node, ast.ImportFrom) for name in node.names}
        for module, inside in nodes.items()
    }
    of_trees = [fault for node in nodes["core.trees"] if isinstance(node, ast.Tuple) for fault in _fault(node)]
    found = {Raised("cli", "system", "OSError", "{filename}: {strerror}", "", "cli.main")}
    for module, inside in nodes.items():
        if module in ("core.errors", "core.parse_errors"):
            continue
        faults = [fault for node in inside for fault in _fault(node)]
        if "first_fault" in imports[module]:
            faults += of_trees
        handed_on: dict[int, tuple[Texts, ...]] = {}  # of a call, by its innermost function
        for function in (node for node in inside if isinstance(node, ast.FunctionDef)):
            users = (nodes[name] for name in nodes if name == module or function.name in imports[name])
            handed_on |= dict.fromkeys(map(id, ast.walk(function)), tuple(_handed_on(function, users)))
        package = module.partition(".")[0] if "." in module else "derivlang"
        for node in inside:
            if isinstance(node, ast.Call):
                texts = handed_on.get(id(node), ())
                told = {one for some in texts for one in _raised(_written(node, some), faults)}
                told |= {one for one in _raised(node, faults) if not told or "{what}" not in one[2]}
                found |= {Raised(package, *facts, module) for facts in told}
    return sorted(found)


def page() -> str:
    """The text of docs/reference/errors.md."""
    parts = [HEAD]
    for package, rows in groupby(errors(), key=lambda one: one.package):
        parts.append(TABLE.format(package))
        for one in rows:
            fix = "–" if one.fix in ("", "{fix}") else _cell(one.fix)
            parts.append(f"| `{one.id}` | `{one.error}` | {_cell(one.message)} | {fix} | `{one.module}` |\n")
    return "".join(parts)


def _raised(node: ast.Call, faults: Faults) -> Iterator[tuple[str, str, str, str]]:
    """(id, error, message, fix) of the errors that a call makes. faults: for the variables `what` and `id`."""
    callee = node.func.id if isinstance(node.func, ast.Name) else ""
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    fix = _text(named["fix"]) if "fix" in named else ""
    if isinstance(named.get("fix"), ast.Call):  # {near} for `fix=_near(path)`
        fix = _name(named["fix"].func)
    if callee in ("unknown", "Registry"):
        kind = _text(node.args[0])
        if callee == "Registry":  # as in core/plugins.py
            fix = f"{fix or f'`derivlang ls` lists the {kind}s'}; a plug-in needs its package to be installed"
        if not kind.startswith("{"):
            id = _text(named["id"]) if "id" in named else f"unknown-{kind.split()[0]}"
            yield id, "UsageError", f"there is no {kind} {{name}}; did you mean {{near}}?", fix
    elif "id" in named and callee.endswith("Error"):
        message = _text(node.args[0])
        if isinstance(named["id"], ast.Name):
            yield from ((id, callee, message.replace("{what}", what), fix) for what, id in faults if id)
        for id in _ids(named["id"]):
            texts = [what for what, of in faults if not of] or [what for what, _ in faults]
            if "{what}" not in message or not texts:
                texts = ["{what}"]
            yield from ((id, callee, message.replace("{what}", text), fix) for text in texts)
    elif "id" in named and callee in RAISERS:
        error, message, at = RAISERS[callee]
        error = _text(named["error"]).strip("{}") if "error" in named else error
        yield from ((id, error, message.replace("{}", _text(node.args[at])), fix) for id in _ids(named["id"]))


def _fault(node: ast.AST) -> Faults:
    """Return [(what, id)] of a tuple (…, what, "head-…"), and [(what, "")] of a returned (place, what) or a `Fault`."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
        return [(_text(node.value.elts[1]), "")] if _is_text(node.value.elts[1]) else []
    if isinstance(node, ast.Call) and _callee(node) == "Fault":
        return [(_text(node.args[-1]), "")]
    parts = node.elts if isinstance(node, ast.Tuple) else []
    if len(parts) < 3 or not (isinstance(parts[-1], ast.Constant) and str(parts[-1].value).startswith("head-")):
        return []
    return [(_text(parts[-2]), str(parts[-1].value))]


def _handed_on(maker: ast.FunctionDef, users: Iterable[list[ast.AST]]) -> Iterator[Texts]:
    """The texts that calls hand to a function that makes an error as `what`, and their other texts, by parameter.

    users: the nodes of each module that knows the function.
    """
    names = [arg.arg for arg in maker.args.args if arg.arg != "self"]
    if maker.name in RAISERS or "what" not in names:
        return
    for node in (node for inside in users for node in inside):
        if isinstance(node, ast.Call) and _callee(node) == maker.name:
            given = dict(zip(names, node.args, strict=False)) | {one.arg or "": one.value for one in node.keywords}
            if _is_text(given.get("what")):
                yield {name: value for name, value in given.items() if _is_text(value)}


def _imported(tree: ast.Module, constants: dict[str, Texts]) -> Texts:
    """The constants that a module imports."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            theirs = constants.get((node.module or "").removeprefix("derivlang."), {})
            found |= {name.name: theirs[name.name] for name in node.names if name.name in theirs}
    return found


def _callee(node: ast.Call) -> str:
    """`name` of name(…) and of self.name(…)."""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def _written(node: ast.Call, texts: Texts) -> ast.Call:
    return _WriteOut(texts).visit(deepcopy(node))  # type: ignore[no-any-return]


class _WriteOut(ast.NodeTransformer):
    """Replace names by the texts that they stand for."""

    def __init__(self, known: Texts) -> None:
        self.known = known

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, (own, bound) = self.known, _variables(node)
        own = {name: self.visit(value) for name, value in own.items()}
        self.known = {name: value for name, value in outer.items() if name not in bound} | own
        self.generic_visit(node)
        self.known = outer
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.known.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _constants(tree: ast.Module) -> Texts:
    """The constants of a module that are texts or numbers, also those of `ONE, OTHER = "one", "other"`."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [getattr(side, "elts", [side]) for side in (node.targets[0], node.value)]
            for target, value in zip(*pairs, strict=False):
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                    found[target.id] = value
    return found


def _variables(function: ast.FunctionDef) -> tuple[Texts, set[str]]:
    """The variables of a function that always hold a text, and the names of all its variables and parameters."""
    nodes = list(ast.walk(function))
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    texts: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_text(node.value):
            texts.setdefault(node.targets[0].id, []).append(node.value)
    own = {name: _alternatives(values) for name, values in texts.items() if len(values) == stored[name]}
    return own, {*stored, *(node.arg for node in nodes if isinstance(node, ast.arg))}


def _is_text(node: ast.expr | None) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) and _is_text(node.orelse)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _alternatives(values: list[ast.expr]) -> ast.expr:
    """`a if … else b if … else c`, as `_text` reads it."""
    *others, last = values
    for value in reversed(others):
        last = ast.IfExp(ast.Constant(True), value, last)
    return last


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
        return (
            _text(node.value) if isinstance(node.value, (ast.Constant, ast.IfExp, ast.JoinedStr)) else _name(node.value)
        )
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


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
