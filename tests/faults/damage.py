"""Damage to a finished set: what `verify` must find, and what it may only note.

`forged`: the manifest is made to agree with the changed files, so that only the content can show the damage.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from derivlang.core.errors import DerivlangError
from derivlang.engine.make import make
from derivlang.engine.options import MakeOptions
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.verify import verify
from tests.faults.scenarios import text
from tests.fuzz.forge import forge

Damage = Callable[[Path, random.Random], None]
DAMAGES: dict[str, tuple[Damage, bool]] = {}
BENIGN = ("an edited card", "files that a hub adds")


@dataclass(frozen=True, slots=True)
class Missed:
    """A damage that was not found, or that ended in something else than an answer."""

    damage: str
    seed: int
    what: str


def damage(name: str, *, forged: bool = False) -> Callable[[Damage], Damage]:
    def add(function: Damage) -> Damage:
        DAMAGES[name] = (function, forged)
        return function

    return add


@cache
def finished(kind: str) -> Path:
    """A set of several shards: running text with a lexicon, or labelled sentences with trees and entities."""
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    if kind == "text":
        request, options = SourceRequest(str(text(folder))), MakeOptions(folder / "set", shard_tokens=150)
    else:
        request, options = SourceRequest("demo"), MakeOptions(folder / "set")
    make(Pipeline.parse("trans:overlap=30,inv"), request, options)
    return folder / "set"


def tried(name: str, seed: int) -> Missed | None:
    """Damage a copy of a set in one way; None if `verify` says what it must."""
    function, forged = DAMAGES[name]
    rng = random.Random(f"{name}/{seed}")
    folder = Path(mkdtemp(prefix="derivlang-faults-"))
    try:
        shutil.copytree(finished(rng.choice(("text", "labels"))), folder / "set")
        function(folder / "set", rng)
        if forged:
            forge(folder / "set")
        try:
            right = verify(folder / "set")["ok"]
        except DerivlangError:
            right = False
        if right != (name in BENIGN):
            return Missed(name, seed, "verify calls it right" if right else "verify calls it wrong")
        return None
    except Exception as error:  # noqa: BLE001 (what escapes `verify` is a fault, and is counted)
        return Missed(name, seed, f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder)


def shards(folder: Path) -> list[Path]:
    return sorted((folder / "data").iterdir())


@damage("a flipped bit")
def _(folder: Path, rng: random.Random) -> None:
    path = rng.choice(shards(folder))
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


@damage("a shard cut short")
def _(folder: Path, rng: random.Random) -> None:
    path = rng.choice(shards(folder))
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


@damage("a missing shard")
def _(folder: Path, rng: random.Random) -> None:
    rng.choice(shards(folder)).unlink()


@damage("two shards exchanged")
def _(folder: Path, rng: random.Random) -> None:
    a, b = rng.sample(shards(folder), 2)
    left, right = a.read_bytes(), b.read_bytes()
    a.write_bytes(right)
    b.write_bytes(left)


@damage("an extra shard")
def _(folder: Path, rng: random.Random) -> None:
    path = rng.choice(shards(folder))
    shutil.copy(path, path.with_name(rng.choice(("train-00009-of-00010.parquet", "extra.parquet"))))


@damage("a foreign file in data/")
def _(folder: Path, rng: random.Random) -> None:
    (folder / "data" / rng.choice(("notes.txt", "train.jsonl", "deep"))).write_text("x", "utf-8")


@damage("a missing or changed lexicon")
def _(folder: Path, rng: random.Random) -> None:
    path = folder / "lexicon.tsv"
    if rng.random() < 0.2:
        path.unlink()
        return
    lines = path.read_text("utf-8").splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    path.write_text("".join(lines), "utf-8")


@damage("a changed leaf of the manifest")
def _(folder: Path, rng: random.Random) -> None:
    path = folder / "derivlang.json"
    manifest = json.loads(path.read_text("utf-8"))
    holder, key = rng.choice(list(leaves(manifest)))
    holder[key] = other(holder[key])
    path.write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")


def leaves(value: Any) -> Any:
    """(holder, key) of every number, text and null of a JSON value."""
    for key, found in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(found, dict | list) and found:
            yield from leaves(found)
        else:
            yield value, key


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "x"


@damage("an edited card")
def _(folder: Path, rng: random.Random) -> None:
    path = folder / "README.md"
    path.write_text(path.read_text("utf-8") + "\nMore about this set.\n", "utf-8")


@damage("files that a hub adds")
def _(folder: Path, rng: random.Random) -> None:
    (folder / ".gitattributes").write_text("*.parquet filter=lfs\n", "utf-8")
    (folder / ".cache" / "huggingface").mkdir(parents=True)
    (folder / ".cache" / "huggingface" / "x.lock").write_text("", "utf-8")


def _table(folder: Path, rng: random.Random) -> tuple[Path, pa.Table]:
    path = rng.choice(shards(folder))
    return path, pq.read_table(path)


def _put(path: Path, table: pa.Table, name: str, values: list[Any]) -> None:
    at = table.schema.get_field_index(name)
    kind = table.schema.field(at).type
    kind = kind if not pa.types.is_dictionary(kind) else pa.string()
    pq.write_table(table.set_column(at, pa.field(name, kind), pa.array(values, kind)), path)


@damage("a changed word, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    name = rng.choice(("source", "tokens"))
    values = table[name].to_pylist()
    row = rng.choice([i for i, words in enumerate(values) if words])
    values[row][rng.randrange(len(values[row]))] += rng.choice(("x", "\u10d0", "."))
    _put(path, table, name, values)


@damage("a changed order, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    values = table["order"].to_pylist()
    row = rng.choice([i for i, words in enumerate(values) if len(words) > 1])
    a, b = rng.sample(range(len(values[row])), 2)
    values[row][a], values[row][b] = values[row][b], values[row][a]
    _put(path, table, "order", values)


@damage("a changed key, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    values = table["key"].to_pylist()
    row = rng.randrange(len(values))
    values[row] ^= 1 << rng.randrange(64)
    _put(path, table, "key", values)


@damage("a missing column, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    pq.write_table(table.drop_columns([rng.choice(table.column_names)]), path)


@damage("a lost row, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    row = rng.randrange(table.num_rows)
    pq.write_table(pa.concat_tables([table.slice(0, row), table.slice(row + 1)]), path)


@damage("a column of another type, hash forged", forged=True)
def _(folder: Path, rng: random.Random) -> None:
    path, table = _table(folder, rng)
    # A value of a row that does not move (`idx`, `comments`) is stored once: nothing but the hash can tell of it.
    name = rng.choice([name for name in table.column_names if name not in ("idx", "comments")])
    at = table.column_names.index(name)
    kind = rng.choice((pa.float32(), pa.binary(), pa.list_(pa.float64())))
    pq.write_table(table.set_column(at, name, pa.nulls(table.num_rows, kind)), path)
