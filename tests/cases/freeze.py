"""Freeze what derivlang makes of the case files: `python -m tests.cases.freeze` writes goldens.jsonl beside this script.

A line per file: the exit code and, of a refused file, the error id; otherwise the derived rows, and what `undo` returns
("source": the bytes of the file). Long values are hashes. A file whose right value is stated in a test of its own
(tests/test_cases_*.py) is left out: freezing is for what is right already. Read each changed line before you commit it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from tests.commands import Ran, run

HERE = Path(__file__).parent
GOLDENS = HERE / "goldens.jsonl"
_LONGEST = 1500  # characters of a value that is kept as it is


def files() -> Iterator[str]:
    """Names of the case files that no other test names."""
    tests = "".join(path.read_text("utf-8") for path in HERE.parent.glob("test_cases_*.py"))
    yield from sorted(path.name for path in (HERE / "data").iterdir() if not re.search(rf"\b{path.stem}\b", tests))


def frozen(name: str) -> dict[str, Any]:
    """What derivlang makes of a case file, by the command of its kind."""
    with TemporaryDirectory() as folder:
        source = HERE / "data" / name
        place = Path(folder, name)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place)
        return {"file": name, **_KINDS.get(name[0], _made)(place)}


def _made(place: Path) -> dict[str, Any]:
    out = place.parent / "made"
    ran = run("make", "--t", "inv", place, "-o", out, "--words", "unicode", code=None)
    if ran.code:
        return _refused(ran)
    rows = {str(file.relative_to(out)): pq.read_table(file).to_pylist() for file in sorted(out.rglob("*.parquet"))}
    undone = {}
    for split in sorted({name.split("/")[-1].split("-")[0] for name in rows}):
        file = place.parent / f"undone-{split}"
        ran = run("undo", out, "--split", split, "-o", file, code=None)
        undone[split] = _refused(ran) if ran.code else _bytes(file, place)
    checked = run("verify", out, code=None).code
    return {"code": 0, "verify": checked, "undo": undone, "rows": _short(json.dumps(rows, default=str, sort_keys=True))}


def _scored(place: Path) -> dict[str, Any]:
    ran = run("align", "score", HERE / "data" / "g1_hyp.pharaoh", place, "--json", code=None)
    return _refused(ran) if ran.code else {"code": 0, "scores": ran.json}


def _read_as_dictionary(place: Path) -> dict[str, Any]:
    text = place.parent / "text.txt"
    text.write_text("rain fell on the old house . Bo sat by the Rain in New York .\n", "utf-8")
    out = place.parent / "made"
    ran = run("make", "--t", f"lex:{place}", text, "-o", out, "--words", "space", code=None)
    if ran.code:
        return _refused(ran)
    rows = [row for file in sorted(out.rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return {"code": 0, "rows": _short(json.dumps(rows, default=str, sort_keys=True))}


_KINDS = {"g": _scored, "k": _read_as_dictionary}


def _refused(ran: Ran) -> dict[str, Any]:
    ids = re.findall(r" \[([a-z0-9-]+)\]$", ran.err, re.MULTILINE)
    return {"code": ran.code, "id": ids[-1] if ids else ""}


def _bytes(file: Path, source: Path) -> str:
    made = file.read_bytes()
    if source.is_file() and made == source.read_bytes():
        return "source"
    return _short(made.decode("utf-8", "backslashreplace"))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"sha256 {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


if __name__ == "__main__":
    GOLDENS.write_text("".join(json.dumps(frozen(name), ensure_ascii=False) + "\n" for name in files()), "utf-8")
