"""Runs that a user starts again after a failure: what each needs, does, and leaves behind."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run that can be killed and started again.

    prepare: fills a fresh folder. act: the run, in that folder. seen: what must equal that of a run left alone.
    older: the folder of an older set, which must stay whole until it is replaced.
    """

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], Any]
    seen: Callable[[Path], dict[str, str]]
    older: str | None = None


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash; empty folders too.

    Without empty locks: one that a killed run left blocks nobody.
    """
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
        if (path.is_file() or not any(path.iterdir()))
        and not (path.name.startswith(".") and path.suffix == ".lock" and path.stat().st_size == 0)
    }


def text(folder: Path, lines: int = 60) -> Path:
    """A tokenised text of some 700 words."""
    path = folder / "a.tokens"
    sentences = ("The cat sat on the mat .", "Ann saw it and smiled .", "Was it the old one ?", "Nobody knew .")
    path.write_text("".join(f" {sentences[i % 4]} {sentences[(i * 7 + 1) % 4]} \n" for i in range(lines)), "utf-8")
    return path


def _text(folder: Path) -> None:
    text(folder)


def _make(spec: str, **options: Any) -> Callable[[Path], Any]:
    def act(folder: Path) -> Any:
        given = {"shard_tokens": 150, **options}
        return make(Pipeline.parse(spec), SourceRequest(str(folder / "a.tokens")), MakeOptions(folder / "out", **given))

    return act


def _older(folder: Path) -> None:
    text(folder)
    make(Pipeline.parse("perm"), SourceRequest("demo"), MakeOptions(folder / "out", splits=("test",)))


def _parse(folder: Path) -> Any:
    from derivlang.engine.events import Events
    from derivlang.engine.parse import parse

    return parse(SourceRequest(str(folder / "a.tokens")), MakeOptions(Path(), parses=folder / "parses"), Events())


def _syn(folder: Path) -> Any:
    options = MakeOptions(folder / "out", parses=folder / "parses", shard_tokens=300)
    return make(Pipeline.parse("trans,syn:fr"), SourceRequest(str(folder / "a.tokens")), options)


def _tokenizer(folder: Path) -> Any:
    from derivlang.lexical.train import train
    from derivlang.lexical.twin_folder import make_twin

    if not (folder / "tok").exists():
        train(SourceRequest(str(folder / "a.tokens")), folder / "tok", vocab_size=70, min_frequency=1)
    if not (folder / "twin").exists():
        make_twin(folder / "tok", "trans", folder / "twin")


def _prepare_training(folder: Path) -> None:
    from tests.training import pair

    pair()  # encoded once, for all runs


def _pretrain(folder: Path) -> Any:
    from tests.training import trained

    return trained(folder / "run", resume=(folder / "run" / "run.json").exists())


def _weights(folder: Path) -> dict[str, str]:
    """The final weights, and the names of all else that is left: times and losses differ between runs."""
    files = tree(folder)
    return {name: digest if name.startswith("run/model/") else "" for name, digest in files.items()}


SCENARIOS = (
    Scenario("make", _text, _make("trans:overlap=30,inv"), tree),
    Scenario("make --force, over an older set", _older, _make("trans,inv", force=True), tree, older="out"),
    Scenario("parse", _text, _parse, tree),
    Scenario("make with trees, parsed first", _text, _syn, tree),
    Scenario("tokenizer and twin", _text, _tokenizer, tree),
    Scenario("pretrain", _prepare_training, _pretrain, _weights),
)


def named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@cache
def expected(scenario: Scenario) -> dict[str, str]:
    """What a run that nobody disturbs leaves."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        scenario.prepare(folder)
        scenario.act(folder)
        return scenario.seen(folder)
    finally:
        shutil.rmtree(folder)
