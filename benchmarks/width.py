"""How wide the package is, counted from its code: `python benchmarks/width.py`

lines       of code, without docstrings, comments and blank lines (`ast`)
identity    modules that compare a record with what is wanted themselves, by `record.difference`; by a rule, those that
            hand both to `record.check_same`; declared, those that declare a `Kind` or an `Artifact`, which compares
by hash     modules that compare a hash or a fingerprint with == or !=: of content that may be damaged, or of identity
by hand     checks of options that depend on others, outside their declaration (`core/dependencies.py`)
rate        modules that name the learning rate of `pretrain`
functions   commands that make or measure something, and the ones among them that have a Python function
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click

PACKAGE = Path(__file__).parents[1] / "derivlang"
# What answers "which settings are these?" for every command, and is not of the learning rate.
GENERIC = ("core/", "cli/generated.py", "cli/options.py")
SHOWING = {"completion", "explore", "ls", "show"}  # commands that neither make nor measure


def lines_of_code(text: str) -> int:
    """Return the number of lines that hold code: no docstring, comment or blank line."""
    doc = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in silent
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(code - doc)


def called(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each function or class that is called by its bare name."""
    yield from (
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


def compares_hashes(tree: ast.Module) -> Iterator[bool]:
    """Yield for each comparison by == or != whether a side of it is named after a hash."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            named = ast.unparse(node).lower()
            yield any(word in named for word in ("fingerprint", "digest", "sha256", "hash_of", "file_hash", "[hash]"))


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name, `grammar fit`, commands of groups one by one."""
    from derivlang.cli.main import main

    def inside(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(command, click.Group):
            yield name, command
            return
        context = click.Context(command)
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from inside(f"{name} {one}".strip(), found)

    return inside("", main)


def main() -> None:
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    files.pop("_version.py", None)
    lines = {name: lines_of_code(text) for name, text in files.items()}
    classes = sum(isinstance(node, ast.ClassDef) for text in files.values() for node in ast.walk(ast.parse(text)))
    evaluation = sum(n for name, n in lines.items() if name.startswith("evaluation/"))
    every = dict(commands())
    options = sum(isinstance(one, click.Option) for command in every.values() for one in command.params)
    calls = {name: set(called(ast.parse(text))) for name, text in files.items()}
    identity, by_rule = (
        [name for name, found in calls.items() if function in found] for function in ("difference", "check_same")
    )
    declared = [name for name, found in calls.items() if found & {"Artifact", "Kind", "kind_of_files"}]
    by_hash = [name for name, text in files.items() if any(compares_hashes(ast.parse(text)))]
    by_hand = sum(text.count("refuse_given(") for name, text in files.items() if name != "cli/options.py")
    rate = [name for name, text in files.items() if "learning_rate" in text and not name.startswith(GENERIC)]
    training = [name for name in rate if not name.startswith("evaluation/")]
    functions = PACKAGE / "commands"
    public = sum(
        isinstance(node, ast.FunctionDef) and any("takes" in ast.unparse(one) for one in node.decorator_list)
        for path in functions.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )
    making = [name for name in every if name.split()[0] not in SHOWING and not name.endswith(" ls")]
    for what, number in (
        ("modules", len(files)),
        ("lines of code, evaluation/ apart", sum(lines.values()) - evaluation),
        ("lines of code of evaluation/", evaluation),
        ("lines of the longest module", max(text.count("\n") for text in files.values())),
        ("classes", classes),
        ("options of all commands", options),
        ("modules that compare identity themselves", len(identity)),
        ("modules that compare it by `check_same`", len(by_rule)),
        ("modules that declare an artifact", len(declared)),
        ("modules that compare hashes by hand", len(by_hash)),
        ("checks of options by hand", by_hand),
        ("modules that the learning rate passes", len(training)),
        ("commands that make or measure", len(making)),
        ("Python functions of commands", public),
    ):
        print(f"{number:>7,}  {what}")
    print("\nidentity: " + ", ".join(sorted(identity)))
    print("check_same: " + ", ".join(sorted(by_rule)))
    print("artifacts: " + ", ".join(sorted(declared)))
    print("hashes: " + ", ".join(sorted(by_hash)))
    print("learning rate: " + ", ".join(sorted(training)))
    print("commands: " + ", ".join(making))


if __name__ == "__main__":
    main()
