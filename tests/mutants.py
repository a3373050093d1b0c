"""Change one expression of the package and see whether a test fails: 60 mutants, kept in tests/mutants.txt.

    python -m tests.mutants                  replace mutants whose code is gone, try all, write the list
    python -m tests.mutants --alive          the same, but try only those that no test has killed
    python -m tests.mutants --map [TEST...]  run tests once, and note in out/mutants.json which reach which mutants

tests/mutant_sites.py says what a mutant is, and which are drawn.

A mutant is tried in a copy of the checkout, first with the test that killed it last time, then with tests that reach
its line. It is killed if one fails, or if they do not end in time and do without the change. Times are of the CPU, so
that other programs change no result; Hypothesis draws the same examples each time. The exit code is 1 if fewer are
killed than the list records.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.mutant_sites import ROOT, SEED, Mutant, drawn, file_of, spans, text_of

LIST, MAP = ROOT / "tests" / "mutants.txt", ROOT / "out" / "mutants.json"
LOG, CHOSEN = "mutants.log", "mutants.chosen"  # in a copy: what happened, and the tests to run
MUTANT_SECONDS, ALL_SECONDS = 30, 25 * 60  # of the CPU; ten times as long by the clock
TEST_SECONDS, FILE_SECONDS = 10.0, 1.0  # tests of one mutant, by the times of the map; what a further file adds

_began = 0.0


# In a copy, called by the package of `--map` and by pytest (`-p tests.mutants`).


def reached(number: int) -> None:
    """Note that the test that runs now reaches the expression of a mutant."""
    note("reached", os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0], number)


@cache
def note(*values: Any) -> None:
    with (ROOT / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


def cpu() -> float:
    return sum(os.times()[:4])


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if (ROOT / CHOSEN).is_file():
        order = {test: place for place, test in enumerate(json.loads((ROOT / CHOSEN).read_text("utf-8")))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        note("ran", report.nodeid, "failed", 0)


def pytest_runtest_logstart() -> None:
    global _began
    _began = cpu()


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.failed:
        note("ran", report.nodeid, report.outcome, round(cpu() - _began, 3))


# In the program.


def run(copy: Path, *arguments: str, seconds: int = resource.RLIM_INFINITY) -> bool:
    """Run pytest in a copy; return whether it ended in time."""
    (copy / LOG).write_text("")
    command = [sys.executable, "-m", "pytest", "-p", "tests.mutants", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    places = {"PYTHONPATH": str(copy), "TMPDIR": str(copy.parent)}
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
    with subprocess.Popen(
        [*command, *arguments], cwd=copy, env=os.environ | places, preexec_fn=limit, **options
    ) as process:
        try:
            return process.wait(10 * seconds if seconds > 0 else None) != -signal.SIGXCPU
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError):  # it and what it started
                os.killpg(process.pid, signal.SIGKILL)


def notes(copy: Path, kind: str) -> list[list[Any]]:
    lines = map(json.loads, (copy / LOG).read_text("utf-8").splitlines())
    return [values for name, *values in lines if name == kind]


@contextmanager
def checkout() -> Iterator[Path]:
    """Copy the checkout for a while."""
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns(".git", ".*_cache", ".hypothesis", "out", "build")
        yield shutil.copytree(ROOT, Path(folder) / "copy", ignore=ignored)


def read_map() -> dict[str, dict[str, float]]:
    """Return the tests that reach each mutant, and their seconds."""
    return dict(json.loads(MAP.read_text("utf-8"))) if MAP.is_file() else {}


def measure_map(mutants: list[Mutant], tests: Sequence[str]) -> None:
    """Run tests with a package that notes which mutants they reach, and add that to the map."""
    pieces: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, mutant in enumerate(mutants):
        begin, end = spans(mutant.file)[mutant.key]
        call = f'(__import__("tests.mutants", fromlist=["reached"]).reached({number}) or ('
        pieces[mutant.file] += [(begin, call), (end, "))")]
    with checkout() as copy:
        for file, inserted in pieces.items():
            text = text_of(file).encode()
            for at, piece in sorted(inserted, reverse=True):
                text = text[:at] + piece.encode() + text[at:]
            (copy / file).write_bytes(text)
        try:
            run(copy, *tests)
        finally:  # Ctrl-C keeps what was found
            passed = {test: seconds for test, outcome, seconds in notes(copy, "ran") if outcome == "passed"}
            found = read_map()
            for number, mutant in enumerate(mutants):
                reaching = {test for test, other in notes(copy, "reached") if other == number}
                if "" in reaching or not mutant.scope.endswith("()"):  # reached when something is imported
                    reaching |= {test for test in passed if mutant.is_near(test)}
                found.setdefault(mutant.key, {}).update((test, passed[test]) for test in reaching & passed.keys())
            MAP.parent.mkdir(exist_ok=True)
            MAP.write_text(json.dumps(found, indent=1), "utf-8")


def tests_of(mutant: Mutant, seconds: dict[str, float]) -> list[str]:
    """Return the tests to try: the one that killed it, an example of each near test, of each other, further ones."""
    order, examples = [], Counter[str]()
    for test in sorted(seconds, key=lambda test: (seconds[test], test)):
        examples[test.partition("[")[0]] += 1
        order.append((not mutant.is_near(test), examples[test.partition("[")[0]], seconds[test], test))
    chosen, left = [mutant.test] if mutant.test else [], TEST_SECONDS
    for *_, seconds_of_test, test in sorted(order):
        cost = seconds_of_test + FILE_SECONDS * (file_of(test) not in map(file_of, chosen))
        if cost <= left or not chosen:
            chosen.append(test)
            left -= cost
    return [test for test in dict.fromkeys(chosen) if text_of(file_of(test))]


def tried(copy: Path, mutant: Mutant, tests: list[str]) -> Mutant:
    """Return a mutant with the result of tests."""
    (begin, end), text = spans(mutant.file)[mutant.key], text_of(mutant.file).encode()
    (copy / mutant.file).write_bytes(text[:begin] + f"({mutant.after})".encode() + text[end:])
    (copy / CHOSEN).write_text(json.dumps(tests), "utf-8")
    trial = partial(run, copy, "-x", *dict.fromkeys(map(file_of, tests)), seconds=MUTANT_SECONDS)
    ended = trial()
    failed = [test for test, outcome, _ in notes(copy, "ran") if outcome == "failed"]
    shutil.copy2(ROOT / mutant.file, copy / mutant.file)
    if not ended and not failed and trial():
        failed = ["no end"]
    return replace(mutant, result="killed" if failed else "survived", test="".join(failed[:1]))


def write(mutants: list[Mutant], record: int) -> int:
    """Write the list; return how many are killed."""
    killed = sum(mutant.result == "killed" for mutant in mutants)
    head = f"# Mutants by tests/mutants.py with the seed {SEED}.\n# killed: {max(killed, record)} or more\n"
    LIST.write_text(head + "".join(f"{m.key}\t{m.result}\t{m.test}\n" for m in mutants), "utf-8")
    return killed


def main() -> int:
    parser = argparse.ArgumentParser(description="Try mutants of the package with its tests.")
    parser.add_argument("--map", nargs="*", metavar="TEST", help="Run these tests, or all, to see which reach what.")
    parser.add_argument("--alive", action="store_true", help="Try only mutants that no test has killed.")
    asked, mutants = parser.parse_args(), drawn()
    if asked.map is not None:
        measure_map(mutants, asked.map)
        return 0
    recorded = re.search(r"killed: (\d+)", text_of("tests/mutants.txt"))
    record, known = int(recorded[1]) if recorded else 0, read_map()
    with checkout() as copy:
        for place, mutant in enumerate(mutants):
            tests = tests_of(mutant, known.get(mutant.key, {}))
            if not tests:
                mutants[place] = mutant = replace(mutant, result="", test="")
            elif cpu() < ALL_SECONDS and not (asked.alive and mutant.result == "killed"):
                mutants[place] = mutant = tried(copy, mutant, tests)
                write(mutants, record)
            what = mutant.file, mutant.scope, mutant.line, f"{mutant.before} -> {mutant.after}"
            print(mutant.result or "not tried", *what, mutant.test or f"{len(tests)} tests", sep=" | ", flush=True)
    killed = write(mutants, record)
    print(f"{killed} of {len(mutants)} killed, {record} on record")
    return killed < record


if __name__ == "__main__":
    sys.exit(main())
