"""Count the package: lines, statements and nodes of its syntax trees, and files, by room.

    python benchmarks/size.py                the table
    python benchmarks/size.py FOLDER         of another checkout

Statements are those of `ast`, without docstrings, imports and `raise`. `whole` is the package with what was moved out
of it: `tools/`, and Python in files of other types. tests/test_size.py holds both at the records of size.toml.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

PACKAGE, TOOLS = "derivlang", "tools"
_GENERATED = "_version.py"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FREE = (ast.Import, ast.ImportFrom, ast.Raise)
_CODE = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Size:
    """Numbers of some files."""

    lines: int = 0
    statements: int = 0
    nodes: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @classmethod
    def of(cls, text: str) -> Size:
        """Return the numbers of the text of one file."""
        nodes = list(ast.walk(ast.parse(text)))
        free = {
            id(node.body[0]) for node in nodes if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None
        }
        counted = [n for n in nodes if isinstance(n, ast.stmt) and not isinstance(n, _FREE) and id(n) not in free]
        return cls(text.count("\n"), len(counted), len(nodes), 1)


def by_room(root: Path) -> dict[str, Size]:
    """Return the numbers of the folders of the package, of `tools/`, and of Python in files of other types."""
    rooms: dict[str, Size] = defaultdict(Size)
    for path in _files(root / PACKAGE, "*.py"):
        inside = path.relative_to(root / PACKAGE).parts
        rooms[inside[0] if len(inside) > 1 else PACKAGE] += Size.of(path.read_text("utf-8"))
    for path in _files(root / TOOLS, "*.py"):
        rooms[TOOLS] += Size.of(path.read_text("utf-8"))
    for path in _files(root / PACKAGE, "*"):
        if path.suffix != ".py" and (hidden := _python_in(path)):
            rooms["in other files"] += hidden
    return dict(rooms)


def totals(rooms: dict[str, Size]) -> dict[str, Size]:
    """Return the numbers of the package, and of the whole."""
    outside = (TOOLS, "in other files")
    package = sum((size for room, size in rooms.items() if room not in outside), Size())
    return {"package": package, "whole": sum(rooms.values(), Size())}


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    for path in sorted(folder.rglob(pattern)):
        if path.is_file() and path.name != _GENERATED and "__pycache__" not in path.parts:
            yield path


def _python_in(path: Path) -> Size | None:
    """Return the numbers of a file of another type if its text is Python that defines or imports something."""
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
    except (UnicodeDecodeError, SyntaxError, ValueError):
        return None
    return Size.of(text) if any(isinstance(node, _CODE) for node in tree.body) else None


def main(*arguments: str) -> None:
    """Print the table."""
    rooms = by_room(Path(arguments[0]) if arguments else Path(__file__).parents[1])
    print(f"{'':16}{'lines':>9}{'statements':>12}{'nodes':>10}{'files':>7}")
    for name, size in {**dict(sorted(rooms.items(), key=lambda item: -item[1].lines)), **totals(rooms)}.items():
        lines, statements, nodes, files = astuple(size)
        print(f"{name:16}{lines:9,}{statements:12,}{nodes:10,}{files:7,}")


if __name__ == "__main__":
    main(*sys.argv[1:])
