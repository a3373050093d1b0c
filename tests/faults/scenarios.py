"""Runs that a user starts again after a failure: what each needs, does, and leaves behind.

Every command that writes has a scenario here: `tests/test_whole.py` compares them with the command line.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import click

from derivlang.cli.main import main
from derivlang.cli.types import LocalPath
from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from tests.commands import Ran, once, run

DEMO = Path(__file__).parents[2] / "derivlang" / "sources" / "demo"


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash, locks and what is half written too; empty folders too."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def names(folder: Path) -> dict[str, str]:
    """The names alone, where times or losses are in the files."""
    return {name: digest if digest == "folder" else "" for name, digest in tree(folder).items()}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command that can be killed and started again, in a folder of its own.

    command: its name on the command line, which `line` begins with. prepare: fills a fresh folder. line: the arguments;
    or `act`, what does the same in Python. seen: what must equal that of a run left alone. folder: the folder that it
    writes, if it is one. older: whether that folder holds an older set, which must stay whole until it is replaced.
    once: the command refuses a folder in which it has ended. slow: seconds a run, tried only in the long form.
    """

    name: str
    command: str
    prepare: Callable[[Path], Any]
    line: tuple[str, ...] = ()
    act: Callable[[Path], Any] | None = None
    seen: Callable[[Path], dict[str, str]] = tree
    folder: str | None = None
    older: bool = False
    once: bool = False
    slow: bool = False

    def __call__(self, folder: Path, *more: str, code: int | None = 0) -> Ran:
        """Run the command in this folder. An exception that is none of ours is raised, and another exit code, too."""
        with chdir(folder):
            if self.act is not None:
                self.act(Path())
                return Ran(0, "", "")
            return run(*self.line, *more, code=None if self.once else code)


def text(folder: Path, lines: int = 60) -> Path:
    """A tokenised text of some 700 words."""
    path = folder / "a.tokens"
    sentences = ("The cat sat on the mat .", "Ann saw it and smiled .", "Was it the old one ?", "Nobody knew .")
    path.write_text("".join(f" {sentences[i % 4]} {sentences[(i * 7 + 1) % 4]} \n" for i in range(lines)), "utf-8")
    return path


def _copied(write: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """What fills a folder with a copy of `run`, which `write` makes once."""
    return once(lambda folder: write(folder / "run"))


@once
def _older(folder: Path) -> None:
    text(folder)
    make(Pipeline.parse("perm"), SourceRequest("demo"), MakeOptions(folder / "out", splits=("test",)))


def _planned(folder: Path) -> None:
    with chdir(folder):
        text(Path())
        run("plan", "--t", "trans:overlap=30,inv", "a.tokens", "-o", "out", "--shard-tokens", 150)


def _planned_names(folder: Path) -> dict[str, str]:
    """The names of what a plan and its ranks leave: it has places and times; `finish` removes half-written shards."""
    return {name: kind for name, kind in names(folder).items() if not name.endswith(".tmp")}


def _worked(folder: Path) -> None:
    _planned(folder)
    with chdir(folder):
        run("work", "out", "--rank", 0, "--world", 1)


@once
def _set(folder: Path) -> None:
    make(Pipeline.parse("trans,inv"), SourceRequest(str(text(folder))), MakeOptions(folder / "set"))


def _trained_tokenizer(folder: Path, out: str) -> None:
    from derivlang.lexical.settings import TokenizerOptions
    from derivlang.lexical.train import train

    train(SourceRequest(str(text(folder))), folder / out, TokenizerOptions(vocab_size=60, min_frequency=1))


@once
def _tokenizer(folder: Path) -> None:
    _trained_tokenizer(folder, "tok")


@once
def _older_tokenizer(folder: Path) -> None:
    _trained_tokenizer(folder, "out")
    (folder / "out" / "thesis.txt").write_text("mine", "utf-8")


def _treebank(folder: Path) -> None:
    shutil.copy(DEMO / "demo-ud-test.conllu", folder / "a.conllu")


def _bitext(folder: Path) -> None:
    lines = text(folder).read_text("utf-8").splitlines()
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    (folder / "b.txt").write_text("".join(f"{line.upper()}\n" for line in lines), "utf-8")


def _tiny_run(folder: Path) -> None:
    from tests.tiny_runs import write_run

    write_run(folder)


def _untouched_run(folder: Path) -> None:
    from tests import runs

    runs.run(folder, evaluated=False)  # nothing to draw, which is slow


def _prepare_training(folder: Path) -> None:
    from tests.training import pair

    pair()  # encoded once, for all runs


def _pretrain(folder: Path) -> Any:
    from tests.training import trained

    return trained(folder / "run", resume=(folder / "run" / "run.json").exists())


def _pretrain_again(folder: Path) -> Any:
    from tests.training import trained

    return trained(folder / "run", steps=3, force=True, resume=_is_new(folder / "run"))


def _is_new(run: Path) -> bool:
    """Return whether a run of three steps is there, which the same command with --resume goes on with."""
    record = run / "run.json"
    return record.exists() and json.loads(record.read_text("utf-8"))["steps"] == 3


def _trained_run(folder: Path) -> None:
    from tests.training import trained

    trained(folder)
    (folder / "thesis.txt").write_text("mine", "utf-8")


def _weights(folder: Path) -> dict[str, str]:
    """The final weights, and the names of all else that is left: times and losses differ between runs."""
    files = tree(folder)
    return {name: digest if name.startswith("run/model/") else "" for name, digest in files.items()}


def _folder_beside_set(folder: Path) -> None:
    _set(folder)
    (folder / "out").mkdir()


def _study(folder: Path) -> None:
    table = '[study]\nsource = "demo"\nmodel = "tiny"\nsteps = 1\n[factors]\nobjective = ["mlm"]\n'
    (folder / "s.toml").write_text(f'{table}[cell]\nt = "trans,inv"\nvocab-size = 300\n', "utf-8")


def _scenario(line: str, prepare: Callable[[Path], Any], name: str = "", *, words: int = 1, **rest: Any) -> Scenario:
    """A scenario of a command line, whose first words name the command."""
    parts = tuple(line.split())
    command = " ".join(parts[:words])
    return Scenario(name or command, command, prepare, parts, **rest)


SCENARIOS = (
    _scenario("make --t trans:overlap=30,inv a.tokens -o out --shard-tokens 150", text, folder="out"),
    _scenario("make --t trans,inv a.tokens -o out --shard-tokens 150 --force", _older,
              "make --force, over an older set", folder="out", older=True),
    _scenario("plan --t trans:overlap=30,inv a.tokens -o out --shard-tokens 150", text, folder="out",
              seen=_planned_names),
    _scenario("work out --rank 1 --world 2", _planned, folder="out", seen=_planned_names),
    _scenario("finish out", _worked, folder="out"),
    _scenario("parse a.tokens --parses parses", text),
    _scenario("parse a.tokens -o out", text, "parse -o", folder="out"),
    _scenario("make --t trans,syn:fr a.tokens -o out --parses parses --shard-tokens 300", text,
              "make with trees, parsed first", folder="out"),
    _scenario("tokenizer train a.tokens -o out --vocab-size 70 --min-frequency 1", text, words=2, folder="out"),
    _scenario("tokenizer train a.tokens -o out --vocab-size 70 --min-frequency 1 --force", _older_tokenizer,
              "tokenizer train --force, beside a foreign file", words=2, folder="out"),
    _scenario("tokenizer twin tok --t trans -o out --joint", _tokenizer, words=2, folder="out"),
    _scenario("dict --t trans a.tokens -o out.tsv --coverage 80 --heldout 10", text),
    _scenario("pair set --format text -o out", _set),
    _scenario("export set -o out.jsonl", _set),
    _scenario("stats set -o out.parquet", _set),
    _scenario("export run --format transformers -o out", _copied(_tiny_run), "export --format transformers",
              folder="out", once=True),
    _scenario("undo set -o out.txt", _set),
    _scenario("undo set -o out --split train", _folder_beside_set, "undo, into a folder", folder="out", once=True),
    _scenario("show set --html out.html", _set),
    _scenario("align train a.txt b.txt --model ibm2 --iterations 1 -o out.pharaoh", _bitext, words=2),
    _scenario("grammar fit a.conllu -o out.tsv", _treebank, words=2),
    _scenario("grammar count a.conllu -o out.tsv", _treebank, words=2),
    _scenario("parser train a.conllu -o out --epochs 1 --force", _treebank, words=2, folder="out"),
    Scenario("pretrain", "pretrain", _prepare_training, act=_pretrain, seen=_weights),
    Scenario("pretrain --force, over an older run", "pretrain", _copied(_trained_run), act=_pretrain_again,
             seen=_weights, folder="run"),
    _scenario("evaluate run --measure perplexity --sentences 10", _copied(_tiny_run), seen=names, folder="run"),
    _scenario("report run -o out", _copied(_untouched_run), folder="out"),
    _scenario("study s.toml -o out --array", _study, "study --array", folder="out", seen=names),
    _scenario("study s.toml -o out", _study, folder="out", seen=names, slow=True),
)  # fmt: skip


def commands() -> Iterator[tuple[str, click.Command]]:
    """The commands of the command line by name, as `tokenizer train`."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(command, click.Group):
            yield " ".join(words), command
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from below(found, (*words, name))

    return below(main, ())


def writes(command: click.Command) -> bool:
    """Whether a command has an option for what it writes."""
    return any(isinstance(option.type, LocalPath) and option.type.writes for option in command.params)


def named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@cache
def expected(scenario: Scenario) -> dict[str, str]:
    """What a run that nobody disturbs leaves."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        scenario.prepare(folder)
        scenario(folder)
        return scenario.seen(folder)
    finally:
        shutil.rmtree(folder)
