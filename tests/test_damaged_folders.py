"""What each command says of a folder that has lost a file, or in which one was cut off or changed by a byte.

It is made again with a warning (or, where a command always writes, without one), or one message names the file and what
to do. Nothing damaged is called complete, but for checkpoints of a finished run, which its model does not need. The
table is `damaged_folders.txt`; after a message changes, `python -m tests.test_damaged_folders` writes it again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from derivlang.core.seal import sealed
from derivlang.core.version import __version__
from tests import runs as synthetic
from tests.commands import TREES, run, snapshot, written

TABLE = Path(__file__).with_name("damaged_folders.txt")
_TEXT = "the cat sat .\nthe dog ran to the cat .\na bird saw it .\n"
_RUN = "--source src/a.train.tokens --words space --seq-len 16 --batch-size 8 --steps 2 --threads 1 --resume"
MAKERS = {
    "set": "make --t trans:overlap=30,inv src/a.train.tokens --words space -o set",
    "tok": "tokenizer train src/a.train.tokens --words space --vocab-size 40 -o tok",
    "twin": "tokenizer twin tok --t trans:overlap=30 --joint -o twin",
    "dict": "dict --t trans src/a.train.tokens --words space --coverage 50 --heldout 10 -o dict.tsv",
    "pair": "pair set --format text -o pairs",
    "parser": "parser train a.conllu --epochs 1 -o parser",
    "grammar": "grammar fit a.conllu -o own.tsv",
    "run": f"pretrain {_RUN} --model model.toml --vocab-size 40 --save-every 1 --t trans,inv "
    "--objective xlm-align:labels=hmm --data data -o run",
    "evaluation": "evaluate run --task pos:demo --seeds 1 --regime sup --epochs 1 --measure perplexity --sentences 5 "
    "--threads 1 --device cpu",
    "foreign": f"pretrain {_RUN} --t trans:overlap=30,inv --objective mlm --init checkpoint --data other -o foreign",
    "measured": "evaluate --init checkpoint --t trans:overlap=30,inv --source src/a.train.tokens -o measured "
    "--task none --measure perplexity --sentences 5 --threads 1 --device cpu",
}


DAMAGES = ("missing", "cut off", "changed")


@dataclass(frozen=True)
class Kind:
    """Files of a kind that are damaged, and the commands that meet them: the first makes them, others read them."""

    files: tuple[str, ...]
    commands: tuple[str, ...]
    damages: tuple[str, ...] = DAMAGES


KINDS = {
    "set": Kind(
        ("set/derivlang.json", "set/data/train-00000-of-00001.parquet", "set/lexicon.tsv"),
        (MAKERS["set"], "verify set", "pair set --format pharaoh -o new"),
    ),
    "tokenizer": Kind(
        ("tok/derivlang-tokenizer.json", "tok/tokenizer.json", "tok/tokenizer_config.json", "tok/words.parquet"),
        (MAKERS["tok"], "tokenizer twin tok --t trans:overlap=20 -o new"),
    ),
    "twin": Kind(
        ("twin/derivlang-tokenizer.json", "twin/tokenizer.json", "twin/joint/tokenizer.json", "twin/lexicon.tsv"),
        (MAKERS["twin"],),
    ),
    "dictionary": Kind(
        ("dict.tsv.recipe.json", "dict.tsv", "dict.heldout.tsv"), (MAKERS["dict"], "dict check dict.tsv --strict")
    ),
    "pairs": Kind(("pairs.recipe.json", "pairs.derived"), (MAKERS["pair"],)),
    "data of a run": Kind(
        ("data/encoded-text-*/made-of.json", "data/encoded-text-*/data.json", "data/encoded-text-*/ids.bin",
         "data/dictionary-*/dictionary.tsv", "data/links-*/links.pharaoh", "data/tokenizer-*/tokenizer.json"),
        (MAKERS["run"] + "-2",),
    ),
    "data of a checkpoint": Kind(
        ("other/lexicon-*/lexicon.tsv", "other/tokenizer-*/tokenizer.json"), (MAKERS["foreign"] + "-2",)
    ),
    "run": Kind(
        ("run/run.json", "run/log.jsonl", "run/model/model.safetensors", "run/tokenizer/words.parquet",
         "run/twin/tokenizer.json", "run/dictionary.tsv", "run/checkpoints/step-00000002/state.json"),
        (MAKERS["run"], "verify run", "report run -o new"),
    ),
    "run of a checkpoint": Kind(
        ("measured/run.json", "measured/lexicon.tsv"),
        (MAKERS["measured"], "verify measured"),
    ),
    "parser": Kind(
        ("parser/model.json", "parser/model.npz"),
        (MAKERS["parser"], "verify parser", "parser score parser a.conllu"),
    ),
    "grammar": Kind(
        ("own.tsv.recipe.json", "own.tsv"), (MAKERS["grammar"], "verify own.tsv", "grammar score own.tsv a.conllu")
    ),
    "evaluation": Kind(
        ("run/evaluation.json", "run/evaluation/pos-demo.sup.1.parquet", "run/evaluation/perplexity.parquet"),
        (MAKERS["evaluation"], "verify run", "report run -o new"),
    ),
    "study": Kind(("study/study.json",), ("verify study", "report study -o new")),
}  # fmt: skip
# Warnings of these tiny models and texts that are not about damage.
_OTHER = re.compile(
    "are unknown to|no held-out|has no (effect|dev)|lexicon was fitted|needs a tokenizer|too few|"
    "writing to|resuming from|of the test|of a set"
)


def _study(folder: Path) -> None:
    """A finished study of two cells, with a report."""
    cells = ["mlm", "align-mlm"]
    for name in cells:
        made = synthetic.run(folder / "runs" / name, objective=name)
        record = json.loads((made / "run.json").read_text("utf-8"))
        written(made / "pretrained.json", json.dumps({"fingerprint": record["fingerprint"]}))
    planned = [{"name": name, "run": f"runs/{name}", "factors": {"objective": name}} for name in cells]
    record = {"format": 1, "study": "two", "factors": {"objective": cells}, "report": {}, "cells": planned}
    written(folder / "study.json", json.dumps(sealed({**record, "derivlang": "0"})))
    run("report", folder, "-o", folder / "report")


def build(folder: Path) -> None:
    """Make one of each kind in the current folder."""
    from tests.checkpoints import checkpoint
    from tests.training import toml

    written(folder / "src/a.train.tokens", _TEXT * 15)
    written(folder / "src/a.test.tokens", _TEXT * 2)
    written(folder / "a.conllu", TREES * 25)
    written(folder / "model.toml", toml())
    shutil.copytree(checkpoint(), folder / "checkpoint")
    for line in MAKERS.values():
        run(*line.split())
    _study(folder / "study")


def lines_of(name: str) -> Iterator[str]:
    """Yield a line for each file of a kind, damage and command; the current folder is left as it was."""
    here, kind = Path.cwd(), KINDS[name]
    yield f"== {name}"
    with TemporaryDirectory() as kept:
        whole = Path(shutil.copytree(here, Path(kept) / "whole"))
        for pattern in kind.files:
            (file,) = sorted(path.relative_to(here) for path in here.glob(pattern))[:1]
            for how in kind.damages:
                for command in kind.commands:
                    damage(file, how)
                    yield f"{how} {_plain(str(file))}: {told(command, file, whole)}"
                    restore(here, whole)


def damage(file: Path, how: str) -> None:
    data = bytearray(file.read_bytes())
    if how == "missing":
        file.unlink()
        return
    if how == "cut off":
        del data[_middle(data) :]
    else:
        middle = _middle(data)
        at = next((at for at in range(middle, len(data)) if chr(data[at]).isalnum()), middle)
        data[at] = ord("7") if data[at] != ord("7") else ord("3")
    fresh = file.with_name("fresh")  # the damaged file may be mapped into memory by this process
    fresh.write_bytes(data)
    fresh.replace(file)


def _middle(data: bytes) -> int:
    """Return the middle of a file, counted without what differs between machines: the folder's path and the version."""
    passed, at = 0, []
    varying = "|".join(map(re.escape, (f"{Path.cwd()}{os.sep}", __version__)))
    for match in re.finditer(varying.encode(), data):
        at.append(range(passed, match.start()))
        passed = match.end()
    constant = [*chain.from_iterable(at), *range(passed, len(data))]
    return constant[len(constant) // 2]


def restore(here: Path, whole: Path) -> None:
    """Make a folder what it was."""
    before, now = snapshot(whole), snapshot(here)
    for name in now.keys() - before.keys():
        (here / name).unlink()
    for name, content in before.items():
        if now.get(name) != content:
            written(here / name, content)
    for folder in sorted((path for path in here.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()) and not (whole / folder.relative_to(here)).is_dir():
            folder.rmdir()


def told(command: str, file: Path, whole: Path) -> str:
    """Return what a command says: its message, or its warnings and whether the file is as it was."""
    ran = run(*command.split(), code=None)  # anything but an error of ours is raised
    words = " ".join(command.split()[: 2 if command.startswith(("tokenizer", "parser", "grammar", "dict --")) else 1])
    lines = [
        line for line in ran.err.splitlines() if line.startswith(("derivlang: ", "  ")) and not _OTHER.search(line)
    ]
    if not ran.code:
        again = file.exists() and file.read_bytes() == (whole / file).read_bytes()
        lines.append("(the file is as it was)" if again else "(used without the file, or with it as it is)")
    elif not lines:
        lines = ran.out.splitlines()[:1]
    text = " / ".join(line.strip().removeprefix("derivlang: ") for line in lines)
    return f"{words} -> {ran.code} {_plain(text)}"


def _plain(text: str) -> str:
    """A message without what differs between machines and versions: folders, hashes, places of a fault, sizes."""
    text = text.replace(f"{Path.cwd()}{os.sep}", "").replace(os.sep, "/")
    text = re.sub(r"[0-9a-f]{16}", "…", text)
    text = re.sub(r"(this is not a valid [\w. ]+): .*?(?= \[| /|$)", r"\1: …", text)
    text = re.sub(r"cannot be read: .*?(?= \[| /|$)", "cannot be read: …", text)
    return re.sub(r"\([\d,]+ of [\d,]+ bytes\)", "(…)", text)


def table() -> dict[str, list[str]]:
    """The lines of the table, by kind."""
    found: dict[str, list[str]] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if line.startswith("== "):
            lines = found[line.removeprefix("== ")] = []
        lines.append(line)
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("torch")
    folder, before = tmp_path_factory.mktemp("world"), Path.cwd()
    os.chdir(folder)
    build(folder)
    yield folder
    os.chdir(before)


@pytest.mark.parametrize("name", KINDS)
def test_damage_is_repaired_or_named(name: str, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    assert list(lines_of(name)) == table()[name]


@pytest.mark.parametrize("name", KINDS)
def test_nothing_damaged_is_called_complete(name: str) -> None:
    for line in table()[name]:
        assert "already complete" not in line or "was copied again" in line or "wrote run/model" in line or (
            "run/checkpoints/" in line
        ), line  # fmt: skip


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        os.chdir(place)
        build(Path.cwd())
        wanted = sys.argv[1:] or list(KINDS)
        old = table() if TABLE.exists() else {}
        new = {name: list(lines_of(name)) if name in wanted else old[name] for name in KINDS}
        os.chdir("/")
    TABLE.write_text("".join(f"{line}\n" for lines in new.values() for line in lines), "utf-8")
