"""The Hugging Face hub, through `datasets`: a named source's copy there, or any `hub:name/config`."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from derivlang.core.errors import DataError
from derivlang.core.schema import TEXT
from derivlang.core.splits import split_name
from derivlang.formats.rows import ROWS_PER_TABLE, Rows
from derivlang.sources.corpus import Corpus, Part
from derivlang.sources.infer import infer
from derivlang.sources.named import Named


def find_hub(name: str, words: Sequence[str] = (), texts: Sequence[str] = ()) -> Corpus:
    """`owner/name/config`, `owner/name` or `name/config`; DataError if the hub does not give it."""
    parts = name.split("/")
    tries = [(name, "")] if len(parts) <= 2 else [("/".join(parts[:2]), "/".join(parts[2:]))]
    if len(parts) == 2:
        tries.append((parts[0], parts[1]))
    fault: Exception | None = None
    for dataset, config in tries:
        try:
            splits = _load(dataset, config)
        except _faults() as error:
            fault = error
            continue
        schema = infer(*_look(splits), where=f"hub:{name}", words=words, texts=texts)
        found = tuple(Part(split_name(split), Path(f"{dataset}|{config}|{split}"), split) for split in splits)
        return Corpus(f"hub:{name}", "hub", schema, found)
    raise DataError(
        f"the hub does not give {name}: {_first_line(fault)}",
        fix="check the name and the network, or pass a local file or folder",
        id="hub",
    )


def find_hub_copy(named: Named, argument: str, hub: tuple[str, str]) -> Corpus | None:
    """A named source from the hub, or None if it cannot be had. Running text is written to a local copy first,
    under `$HF_HOME` or the user's cache, so that it is read as the original files are."""
    try:
        splits = _load(*hub)
    except _faults():
        return None
    if named.schema is TEXT:
        folder = _cache() / "-".join(hub).replace("/", "-")
        parts = tuple(_as_file(split, rows, folder) for split, rows in splits.items())
        return named.corpus(argument, parts)
    parts = tuple(Part(split_name(s), Path(f"{hub[0]}|{hub[1]}|{s}"), s) for s in splits)
    schema = infer(*_look(splits), where=f"hub:{'/'.join(hub)}")
    return named.corpus(argument, parts, format="hub", schema=schema)


def read_hub(corpus: Corpus, part: Part, limit: int | None) -> Iterator[Rows]:
    """The rows of one split."""
    dataset, config, split = str(part.path).split("|")
    rows = _load(dataset, config)[split].with_format("arrow")
    total = len(rows) if limit is None else min(limit, len(rows))
    for start in range(0, total, ROWS_PER_TABLE):
        stop = min(start + ROWS_PER_TABLE, total)
        table: pa.Table = rows[start:stop]
        yield Rows(part.path, table, np.zeros(stop - start, np.int64), np.arange(start, stop))


def _look(splits: dict[str, Any]) -> tuple[pa.Schema, pa.Table]:
    """The Arrow schema of a set, and its first rows."""
    first = next(iter(splits.values()))
    return first.features.arrow_schema, first.with_format("arrow")[: min(100, len(first))]


def _load(dataset: str, config: str) -> dict[str, Any]:
    _offline_if_unreachable()
    import datasets

    loaded = datasets.load_dataset(dataset, config or None)
    return dict(loaded)


def _offline_if_unreachable() -> None:
    """Where the hub cannot be reached, only its cache is asked: the client would retry for half a minute.

    Set before `datasets` is imported, which reads it once. Behind a proxy the client itself finds out.
    """
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy", "hf_hub_offline") for name in os.environ):
        return
    host = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname or "huggingface.co"
    try:
        socket.create_connection((host, 443), timeout=5).close()
    except OSError:
        os.environ["HF_HUB_OFFLINE"] = "1"


def _faults() -> tuple[type[Exception], ...]:
    import datasets

    return (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError)


def _as_file(split: str, rows: Any, folder: Path) -> Part:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.tokens"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as out:
            for batch in rows.iter(ROWS_PER_TABLE):
                out.writelines(line if line.endswith("\n") else f"{line}\n" for line in batch["text"])
        Path(out.name).replace(path)
    return Part(split_name(split), path, path.name)


def _cache() -> Path:
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")  # noqa: PTH111, PTH118
    return Path(home) / "derivlang"


def _first_line(error: Exception | None) -> str:
    return str(error).strip().splitlines()[0] if error is not None and str(error).strip() else repr(error)
