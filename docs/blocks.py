"""Run the code blocks of README.md and of the site's pages, each page in an empty folder of its own.

    python docs/blocks.py [PAGE ...] [--jobs 2]

Blocks of these kinds are run: sh, console (commands behind `$`, and their output), python, pycon (a doctest). A block
below a line with only a file name in backticks is written to that file. A note below a block, or one "on this page",
says why a block is not run as it stands; it is an HTML comment (CONTRIBUTING.md). Sphinx runs the blocks marked
{code-cell}.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "*/README.md", "docs/**/*.md")
CORPORA = Path(os.environ.get("DERIVLANG_TEST_DATA", ROOT.parent / "shared" / "data"))
SECONDS = 300  # two minutes on an idle machine
RUN = ("sh", "console", "python", "pycon")
NOTES = ("Not run", "Run with --dry-run", "Needs corpora")
NOTE = re.compile(rf"<!-- ({'|'.join(NOTES)})( on this page)?: .+\. -->", re.DOTALL)
FILE_NAME = re.compile(r"`([\w./-]+\.\w+)`")
COMMAND = re.compile(r"^ *(\$ |(derivlang|python|pip|torchrun|sbatch|lm_eval) )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. file: where its text belongs, if its page says so.

    notes: the beginnings of its notes, and the comments below it that are not notes.
    """

    page: str
    line: int
    kind: str
    text: str
    file: str | None
    notes: frozenset[str] = field(default=frozenset())

    @property
    def where(self) -> str:
        """The place for messages."""
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    tokens = MarkdownIt().use(front_matter_plugin).parse(page.read_text("utf-8"))
    name = os.path.relpath(page, ROOT)
    everywhere = {found[1] for found in map(_note, tokens) if found is not None and found[2]}
    blocks = []
    for i, token in enumerate(tokens):
        if token.type not in ("fence", "code_block"):
            continue
        kind = token.info.strip() if token.type == "fence" else "indented"
        before = FILE_NAME.fullmatch(tokens[i - 2].content) if i >= 3 and tokens[i - 2].type == "inline" else None
        notes = set(everywhere)
        for comment in takewhile(lambda token: token.type == "html_block", tokens[i + 1 :]):
            found = _note(comment)
            notes.add(comment.content.strip() if found is None else found[1])
        line = token.map[0] + 1 if token.map else 0
        blocks.append(Block(name, line, kind, token.content, before[1] if before else None, frozenset(notes)))
    return blocks


def _note(token: Token) -> re.Match[str] | None:
    return NOTE.fullmatch(token.content.strip()) if token.type == "html_block" else None


def faults(block: Block) -> Iterator[str]:
    """What is wrong with the form of a block."""
    if block.kind == "indented":
        yield "an indented block: write a fence with a kind"
    elif block.kind.startswith("{"):
        if "```" in block.text:
            yield "a block inside of a directive is not seen: write the directive with :::"
    elif block.kind not in RUN and block.file is None and COMMAND.search(block.text):
        yield "commands in a block that is not run: its kind should be sh or console"
    for comment in sorted(block.notes.difference(NOTES)):
        yield f"{comment} is not a note; write <!-- {NOTES[0]}: why. -->, or begin it with {' or '.join(NOTES[1:])}"


def run_page(page: Path) -> tuple[Counter[str], list[str]]:
    """Run the blocks of a page in an empty folder. Returns how many were run, and the failures."""
    counts: Counter[str] = Counter()
    failures: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    blocks = blocks_of(page)
    sys.path.append("")
    signal.signal(signal.SIGALRM, _too_long)
    with tempfile.TemporaryDirectory(prefix="derivlang-page-") as folder, contextlib.chdir(folder):
        os.environ["XDG_CACHE_HOME"] = str(Path(folder, ".cache"))
        for block in blocks:
            failures += [f"{block.where}: {fault}" for fault in faults(block)]
            if block.file is not None:
                Path(block.file).parent.mkdir(parents=True, exist_ok=True)
                Path(block.file).write_text(block.text, "utf-8")
            elif block.kind in RUN:
                done = _how(block)
                counts[done] += 1
                if done in ("run", "run with --dry-run"):
                    try:
                        signal.alarm(SECONDS)
                        _run(block, names)
                    except BaseException as error:  # noqa: BLE001  a page may raise anything, SystemExit too
                        failures.append(f"{block.where}: {type(error).__name__}: {error}")
                    finally:
                        signal.alarm(0)
    return counts, failures


def _too_long(*_: object) -> None:
    raise TimeoutError("too long: let it run with --dry-run, or not at all, and say so")


def _how(block: Block) -> str:
    """What is done with a block, as counted."""
    if "Not run" in block.notes:
        return "not run, for a reason given"
    if "Needs corpora" in block.notes and not CORPORA.is_dir():
        return f"skipped without corpora in {CORPORA}"
    return "run with --dry-run" if "Run with --dry-run" in block.notes else "run"


def _run(block: Block, names: dict[str, Any]) -> None:
    """Run a block; raise if it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "DERIVLANG_DATA"}
    environment |= {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    if "Needs corpora" in block.notes:
        environment["DERIVLANG_DATA"] = str(CORPORA)
    text = block.text
    if "Run with --dry-run" in block.notes:
        text = re.sub(r"^((?:\$ )?derivlang .*?)( +#.*)?$", r"\1 --dry-run", text, flags=re.MULTILINE)
    if block.kind == "sh":
        _shell(text, environment)
    elif block.kind == "console":
        for command, shown in _transcript(text):
            printed = _shell(command, environment)
            if not _pattern(shown).fullmatch("".join(f"{line.rstrip()}\n" for line in printed.splitlines())):
                raise AssertionError(f"`{command}` printed\n{printed}")
    elif block.kind == "python":
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * block.line + text, block.page, "exec"), names)
    else:
        _doctest(block, names)


def _shell(text: str, environment: dict[str, str]) -> str:
    """The output of commands, which must exit with 0. `pip` and `pytest` do nothing here, as CI runs both by itself."""
    with subprocess.Popen(
        ["bash", "-euc", f"pip() {{ :; }}\npytest() {{ :; }}\n{text}"], env=environment, text=True,
        start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            printed, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # the commands of the shell, too
            raise
    if process.returncode:
        raise AssertionError(f"exit code {process.returncode}:\n{printed[-3000:]}")
    return printed


def _transcript(text: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines below it; a line that ends with a backslash goes on."""
    steps: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps and not steps[-1][1] and steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0]}\n{line}", [])
        elif steps:
            steps[-1][1].append(line.rstrip())
        else:
            raise AssertionError("the first line of a console block begins with `$ `")
    return steps


def _pattern(lines: list[str]) -> re.Pattern[str]:
    """Lines of output as a pattern: `…` is anything in a line, and any lines where it stands by itself."""
    parts = [r"(?:.*\n)*" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines]
    return re.compile("".join(parts))


def _doctest(block: Block, names: dict[str, Any]) -> None:
    doctest.ELLIPSIS_MARKER = "…"
    test = doctest.DocTestParser().get_doctest(block.text, names, block.where, block.page, block.line)
    test.globs = names  # not a copy: later blocks see these names
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    if runner.run(test, out=report.append, clear_globs=False).failed:
        raise AssertionError("".join(report))


def main() -> int:
    """Run the pages; 1 if a block fails."""
    parser = argparse.ArgumentParser(description="Run the code blocks of README.md and of the site's pages.")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="pages at a time (default 2)")
    options = parser.parse_args()
    found = sorted({path for pattern in PAGES for path in ROOT.glob(pattern) if "_build" not in path.parts})
    pages = [path.resolve() for path in options.pages] or found
    total: Counter[str] = Counter()
    failed = False
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        for page, (counts, failures) in zip(pages, pool.map(run_page, pages), strict=True):
            if counts or failures:
                print(f"{os.path.relpath(page, ROOT)}: {', '.join(f'{n} {what}' for what, n in counts.items())}")
            for failure in failures:
                print(f"FAILED {failure}")
            sys.stdout.flush()
            total += counts
            failed |= bool(failures)
    print("blocks: " + ", ".join(f"{n} {what}" for what, n in total.items()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
