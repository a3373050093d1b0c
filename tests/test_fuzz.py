"""Every reader of foreign bytes takes some dozens of damaged inputs; the long run is `python -m tests.fuzz`."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import harness
from tests.fuzz.harness import AT_LEAST
from tests.fuzz.readers import READERS, Reader

PACKAGE = Path(__file__).parents[1] / "derivlang"
# Calls that read a file, or turn the bytes of one into something else.
READING = {"open_lines", "open_bytes", "open_file", "read_text", "read_bytes", "ParquetFile", "read_table", "memmap",
           "from_pretrained", "decompress", "json.load", "json.loads", "tomllib.load", "tomllib.loads", "np.load",
           "torch.load", "csv.reader", "ipc.open_file", "read_record"}  # fmt: skip
# Modules that read nothing foreign, with the reason.
EXEMPT = {
    "evaluation.report.write": "whether a record has a name, names of files, and a template of the package",
    "evaluation.export": "a tokenizer that it has just built",
    "training.streams.linked": "links, by align.links",
    "display.page": "a template and the fonts of the package",
    "formats.words": "modules of spaCy, to look for a name",
    "formats.opening": "lines and bytes for the readers that are tried",
    "transforms.field": "a list of the package",
    "formats.spec_paths": "files of a set in a store, which are copied",
    "store.hub_push": "bytes for a hash, and a record that is compared",
    "store.files": "what it has just written",
    "store.storage": "bytes for the readers that are tried",
    "training.data": "a file whose hash was just compared",
    "transforms.scripts": "tables of the package",
    "transforms.letters": "a table of the package",
    "align.align": "output of a program that it has just run",
    "cli.child": "arguments that a study has just written",
    "cli.options": "a manifest that the run has just written or checked",
    "engine.build": "lines of files that were just read, to look for a character",
    "formats.inspection": "bytes for a hash alone",
    "sources.corpus": "what it has just written",
    "studies.text": "bytes of treebanks, which pretrain reads",
    "studies.plan": "a level that it has just written",
    "studies.run": "the log of a command that it has just run",
    "training.record": "a level of the command line, where any text is one",
}


def test_no_reader_raises_a_foreign_error() -> None:
    """In a process with bounded memory; the inputs are the same in each run."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--inputs", "80", "--seconds", "0.12", "--json"],
        cwd=PACKAGE.parent,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
    )
    # `tokenizers` prints a line of its own for each option of a token that it does not know
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    faults = [line for line in lines if "number" in line]
    assert not faults
    assert done.returncode == 0, done.stderr[-2000:]  # it died: of memory, or in a library
    assert [line["reader"] for line in lines] == list(READERS)
    assert all(line["inputs"] >= AT_LEAST for line in lines)


def test_every_module_that_reads_files_is_tried() -> None:
    assert not sorted(_reading() - _registered()), "register a reader for these in tests/fuzz/readers.py"


def test_every_registered_module_exists() -> None:
    gone = sorted(_registered() - {_name(path) for path in PACKAGE.rglob("*.py")})
    assert not gone, "tests/fuzz/readers.py or EXEMPT names these modules, which do not exist"


def _registered() -> set[str]:
    """The modules that a reader tries, and the exempt ones."""
    return {module for reader in READERS.values() for module in reader.modules} | set(EXEMPT)


def _reading() -> set[str]:
    """The modules that call one of `READING`."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            called = ast.unparse(call.func)
            if called in READING or called.rpartition(".")[2] in READING:
                found.add(_name(path))
    return found


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("waits", [False, True])
def test_a_hang_is_seen(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that computes, and one that waits."""

    def read(folder: Path, data: bytes) -> str | None:
        while True:
            if waits:
                time.sleep(0.01)

    monkeypatch.setattr(harness, "SECONDS", 0.05)
    found = harness.one(Reader("hangs", "bytes", lambda: [b""], read, ()), b"", 0)
    assert found is not None
    assert found.kind == "hang"
