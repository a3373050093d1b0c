"""Every command of the registry without the packages of the extras, and with standard output closed.

The commands run in children of one process that has loaded the command line; a child ends as a program does, so that
what happens at exit counts. A new command needs a line in `CASES`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click
import pytest

from derivlang.cli.main import main
from derivlang.core.dependencies import EXTRAS
from tests.commands import ROOT, environment, make, run, trees, written
from tests.runs import run as run_folder

NEEDED = {"jinja2", "fsspec"}  # by spaCy, and by datasets
BLOCKED = sorted({package for packages in EXTRAS.values() for package in packages} - NEEDED)
MODULES = {"universal_pathlib": "upath"}  # of packages with another name

# (command line, the extra that it needs). SET, TEXT, LINKS, TOK and RUN are there; OUT is a new path.
CASES: list[tuple[str, str]] = [
    ("derive --words space --t inv TEXT", ""),
    ("make --t trans,inv TREES -o OUT", ""),
    ("make --t inv s3://bucket/a.txt -o OUT", "s3"),
    ("make --t inv TREES -o s3://bucket/out", "s3"),
    ("verify memory://set", "urls"),
    ("plan --t trans,inv TREES -o OUT", ""),
    ("work PLANNED --rank 0 --world 1", ""),
    ("finish PLANNED", ""),
    ("show SET", ""),
    ("show SET --html OUT", ""),
    ("stats SET", ""),
    ("match --t stride:2 demo", ""),
    ("explore --no-open", "explore"),
    ("verify SET", ""),
    ("export SET --format jsonl", ""),
    ("export RUN --format transformers -o OUT", "train"),
    ("push SET me/set --dry-run", ""),
    ("push RUN me/run --dry-run", ""),
    ("undo SET", ""),
    ("parse TEXT --words space -o OUT", ""),
    ("parse TEXT --words space -o OUT --parser stanza", "stanza"),
    ("dict --t trans TREES --format tsv", ""),
    ("pair SET --format pharaoh", ""),
    ("grammar ls", ""),
    ("grammar show fr", ""),
    ("grammar score fr TREES", ""),
    ("grammar fit DEMO -o OUT", "fit"),
    ("grammar count DEMO -o OUT", ""),
    ("grammar probs --superstrate fr --head VERB --nodes NOUN&nsubj,@VERB&@,NOUN&obj", ""),
    ("tokenizer train TREES --vocab-size 50 --min-frequency 1 -o OUT", ""),
    ("tokenizer twin TOK --t trans -o OUT", ""),
    ("parser train TREES -o OUT", "train"),
    ("parser score english TREES", ""),
    ("parser ls", ""),
    ("align train TEXT TEXT", ""),
    ("align train TEXT TEXT --model eflomal", "align"),
    ("align train TEXT TEXT --model ot --encoder RUN", "train"),
    ("align score LINKS LINKS", ""),
    ("pretrain --source demo --t inv --objective mlm -o OUT", "train"),
    ("evaluate RUN --measure alignment", "train"),
    ("report RUN -o OUT", ""),
    ("study align-mlm-tiny -o OUT", "train"),
    ("study align-mlm-tiny -o OUT --dry-run", "train"),
    ("study align-mlm-tiny -o OUT --array", "train"),
    ("ls", ""),
]

# A child gets its own standard output and error, and leaves the loop by the end of its command.
DRIVER = """
import json, os, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None  # importing it raises ModuleNotFoundError, and find_spec returns None
from derivlang.cli.main import COMMANDS, main
# What several commands load is loaded before the forks, and hidden from the garbage collection at each child's end.
import derivlang.align.align, derivlang.api, derivlang.display.page, derivlang.engine.make, derivlang.grammar.grammar
import derivlang.grammar.scores, derivlang.lexical.pairs, derivlang.lexical.train, derivlang.lexical.twin
import derivlang.parsing.bundled, derivlang.store.export, derivlang.store.verify
import derivlang.distance, derivlang.evaluation.report.write, pandas
import gc; gc.freeze()
for number, (arguments, stdout, closed) in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if child:
        print(number, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for place, fd, name in ((f"{number}.err", 2, "stderr"), (stdout, 1, "stdout")):
        if fd in closed:
            os.close(fd)
            setattr(sys, name, None)
        else:
            os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT), fd)
    main(arguments)
    sys.exit(0)
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. needs: the extra that it needs."""

    line: str
    needs: str
    code: int
    err: str


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    """The commands of the registry that do something, with their groups: `grammar ls`."""
    if not isinstance(command, click.Group):
        yield name.strip()
        return
    for sub in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), sub)
        assert found is not None
        yield from leaves(found, f"{name} {sub}")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    source = trees(folder)
    make("trans,inv", source, folder / "set")
    run("plan", "--t", "trans,inv", source, "-o", folder / "planned")
    run("tokenizer", "train", source, "--vocab-size", 50, "--min-frequency", 1, "-o", folder / "tok")
    return {
        "SET": folder / "set",
        "PLANNED": folder / "planned",
        "TEXT": written(folder / "text.txt", "The cat sleeps .\nIt rains .\n"),
        "TREES": source,
        "DEMO": ROOT / "derivlang" / "sources" / "demo" / "demo-ud-dev.conllu",
        "LINKS": written(folder / "links.pharaoh", "0-0 1-1\n0-1\n"),
        "TOK": folder / "tok",
        "RUN": run_folder(folder / "run", rates={"pos": (0.8, 0.6)}),
    }


PLAIN = [case for case in CASES if not case[1]]
# How commands run: which of them, a file or device as standard output, the numbers of the streams that are closed.
WAYS: dict[str, tuple[list[tuple[str, str]], str, tuple[int, ...]]] = {
    "as usual": (CASES, "/dev/null", ()),
    "output closed": ([*PLAIN, *[case for case in CASES if case[1]][:4]], "/dev/null", (1,)),
    "output full": (PLAIN, "/dev/full", ()),
    "errors closed": (PLAIN, "/dev/null", (2,)),
}


@pytest.fixture(scope="module")
def ended(inputs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Ended]]:
    """Every case in each of the ways, in one process."""
    folder = tmp_path_factory.mktemp("ended")
    jobs = [(case, stdout, closed) for cases, stdout, closed in WAYS.values() for case in cases]
    lines = []
    for number, ((line, _), _, _) in enumerate(jobs):
        places = {**inputs, "OUT": folder / f"out-{number}.html"}
        words = [str(places.get(word, word)) for word in line.split()]
        lines.append([word.replace(",@", " @").replace(",NOUN", " NOUN") for word in words])
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(BLOCKED)],
        input=json.dumps([(words, *rest) for words, (_, *rest) in zip(lines, jobs, strict=True)]).encode(),
        capture_output=True,
        cwd=folder,
        env=environment(),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    codes = [int(line.split()[1]) for line in done.stdout.decode().splitlines()]
    found = []
    for number, (((line, needs), _, closed), code) in enumerate(zip(jobs, codes, strict=True)):
        err = "" if 2 in closed else (folder / f"{number}.err").read_text("utf-8")
        found.append(Ended(line, needs, code, err))
    left = iter(found)
    return {way: list(islice(left, len(cases))) for way, (cases, _, _) in WAYS.items()}


def names_extra(one: Ended) -> bool:
    """Whether a command ended with the one error that names the extra to install."""
    return one.code in (1, 2) and ids(one) == ["missing-package"] and f"pip install 'derivlang[{one.needs}]'" in one.err


def says(one: Ended, why: str) -> bool:
    """Whether a command ended with one error, about its output."""
    return one.code == 1 and len(ids(one)) == 1 and re.search(why, one.err) is not None


def ids(one: Ended) -> list[str]:
    """The ids of the errors that a command printed, and nothing that Python prints about exceptions."""
    traces = re.findall("Traceback|Exception ignored", one.err)
    return [*traces, *re.findall(r" \[([a-z-]+)\]$", one.err, re.MULTILINE)]


def test_every_command_of_the_registry_is_tried() -> None:
    tried = {" ".join(word for word in line.split() if word.islower()) for line, _ in CASES}
    untried = [name for name in leaves(main) if not any(f"{line} ".startswith(f"{name} ") for line in tried)]
    assert untried == [], "add a command line to CASES"


def test_a_command_works_without_the_extras_or_names_the_one_to_install(ended: dict[str, list[Ended]]) -> None:
    found = ended["as usual"]
    assert len(found) == len(CASES)
    assert [one for one in found if not (names_extra(one) if one.needs else one.code == 0)] == []
    assert [one for one in found if {"Traceback", "Exception ignored"} & set(ids(one))] == []


def test_with_standard_output_closed_there_is_one_message(ended: dict[str, list[Ended]]) -> None:
    """The exit code is that of an error, also where files are written: the user asked for what would be printed."""
    found = ended["output closed"]
    assert [one for one in found if not (names_extra(one) if one.needs else says(one, "is closed|Bad file"))] == []


def test_with_standard_output_full_there_is_one_message(ended: dict[str, list[Ended]]) -> None:
    found = ended["output full"]
    assert [one for one in found if not says(one, "No space left on")] == []


def test_with_standard_error_closed_a_command_works(ended: dict[str, list[Ended]]) -> None:
    found = ended["errors closed"]
    assert [one for one in found if one.code] == []


def test_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    declared = {
        extra: {re.split(r"[<>=\[ ]", package)[0] for package in packages} - {"derivlang"}
        for extra, packages in project.items()
        if extra not in ("all", "dev", "docs")
    }
    declared = {extra: {MODULES.get(name, name) for name in packages} for extra, packages in declared.items()}
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == declared
