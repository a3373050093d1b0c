"""The Hugging Face hub, through `datasets`: the copy of a named source, or any `hub:name/config`.

    hub:owner/name/config              its newest revision
    hub:owner/name/config@v1.0         a branch, a tag, or the hash of a commit

All that is read of a set is read at one revision, which the parts of a corpus name.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from derivlang.core.columns import bring
from derivlang.core.errors import DataError, parse_errors, reason
from derivlang.core.names import split_name
from derivlang.core.schema import TEXT
from derivlang.formats.base import HUB, Format
from derivlang.formats.rows import ROWS_PER_TABLE, Rows
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.infer import infer, unify
from derivlang.sources.labels import by_name
from derivlang.sources.named import NamedSource
from derivlang.store.files import writing

_COMMIT = re.compile(r"[0-9a-f]{40}")


def find_hub(name: str, words: Sequence[str] = (), texts: Sequence[str] = (), labels: Sequence[str] = ()) -> Corpus:
    """Return the corpus `owner/name/config`, `owner/name` or `name/config`, at `@revision` if the name ends with it.

    words, texts, labels: as of `infer`.
    DataError if the hub does not have it.
    """
    name, at, wanted = name.partition("@")
    if at and not wanted:
        raise DataError("no revision follows the @", where=f"hub:{name}", fix=f"hub:{name} is the newest", id="hub")
    parts = name.split("/")
    tries = [(name, "")] if len(parts) <= 2 else [("/".join(parts[:2]), "/".join(parts[2:]))]
    if len(parts) == 2:
        tries.append((parts[0], parts[1]))
    faults: list[Exception] = []
    for dataset, config in tries:
        try:
            splits, revision = _load(dataset, config, wanted)
        except Exception as error:  # noqa: BLE001 (whatever a loader raises, the set is not available)
            faults.append(error)
            continue
        with _hub_errors(f"hub:{name}"):
            files = _parts(splits, dataset, config, revision)
            types, sample = _look(splits, files)
            schema, layout = infer(types, sample, where=f"hub:{name}", words=words, texts=texts, labels=labels)
        return Corpus(f"hub:{name}", "hub", schema, files, layout=layout, revision=revision, types=types)
    # Of several readings of the name, report the one whose set exists, else the first.
    known = [fault for fault in faults if not _is_missing(fault)]
    raise DataError(
        f"the hub does not give {name}{wanted and f'@{wanted}'}: {reason((known or faults)[0])}",
        fix="check the name and the network, or pass a local file or folder",
        id="hub",
    )


def _is_missing(fault: Exception) -> bool:
    """Return whether the hub has no set of a name, or cannot be reached."""
    missing = isinstance(fault, FileNotFoundError | ConnectionError)
    return missing or type(fault).__name__ == "RepositoryNotFoundError"  # of huggingface_hub, if a revision was given


def find_hub_copy(named: NamedSource, argument: str, hub: tuple[str, str]) -> tuple[Corpus | None, str | None]:
    """Return a named source from the hub, or None and the reason why it is not available.

    Running text is first written to a local file, under `$HF_HOME` or the user's cache, and read like the original.
    """
    try:
        splits, revision = _load(*hub)
    except Exception as error:  # noqa: BLE001 (whatever a loader raises, the set is not available)
        return None, reason(error)
    where = f"hub:{'/'.join(hub)}"
    if named.schema is TEXT:
        folder = _cache() / "-".join(hub).replace("/", "-")
        parts = tuple(_as_file(split, rows, folder, where) for split, rows in splits.items())
        return replace(named.corpus(argument, parts), revision=revision), None
    parts = _parts(splits, *hub, revision)
    with _hub_errors(where):
        types, sample = _look(splits, parts)
        schema, layout = infer(types, sample, where=where)
    corpus = named.corpus(argument, parts, format="hub", schema=by_name(schema), layout=layout, aliases={})
    return replace(corpus, revision=revision, types=types), None


def _parts(splits: Iterable[str], dataset: str, config: str, revision: str | None) -> tuple[CorpusFile, ...]:
    """Return the parts of a set. Their paths are `dataset@revision|configuration|split`, or without a revision."""
    name = f"{dataset}@{revision}" if revision else dataset
    return tuple(CorpusFile(split_name(split), Path(f"{name}|{config}|{split}"), split) for split in splits)


def _read(path: Path, *, limit: int | None = None, sha256: str | None = None, **options: Any) -> Iterator[Rows]:
    """Yield the first `limit` rows of a split that `find_hub` found. options: of the files of a copy, not of its rows.

    sha256: the `_content` of the split; other rows are not checked. DataError if the rows cannot be loaded, or are
    others.
    """
    rows = _load_split(path)
    with _hub_errors(_where(path)):
        if sha256 is not None and _hash(rows) != sha256:
            raise DataError(
                "the set changed while it was read",
                where=_where(path),
                fix="run the same command again (make, parse: with --force)",
                id="source-changed",
            )
        rows = rows.with_format("arrow")
        total = len(rows) if limit is None else min(limit, len(rows))
        for start in range(0, total, ROWS_PER_TABLE):
            stop = min(start + ROWS_PER_TABLE, total)
            table: pa.Table = rows[start:stop]
            yield Rows(path, table, np.zeros(stop - start, np.int64), np.arange(start, stop), first_row=start)


def _content(path: Path, **options: Any) -> str:
    """Return the SHA-256 of a split's columns and rows. A set of the hub may change under its name.

    DataError if they cannot be loaded.
    """
    rows = _load_split(path)
    with _hub_errors(_where(path)):
        return _hash(rows)


def _load_split(path: Path) -> Any:
    name, config, split = str(path).split("|")
    dataset, _, revision = name.partition("@")
    with _hub_errors(_where(path)):
        return _load(dataset, config, revision)[0][split]


def _where(path: Path) -> str:
    """Return the name of a set: `hub:dataset/configuration`."""
    name, config, _ = str(path).split("|")
    return f"hub:{'/'.join(filter(None, (name.partition('@')[0], config)))}"


def _hub_errors(where: str) -> AbstractContextManager[None]:
    """Raise DataError in place of whatever `datasets` raises, also for a set that was loaded before."""
    return parse_errors(where, "set of the hub", id="hub", fix="check the network, and run the same command again")


def _hash(rows: Any) -> str:
    digest, rows = sha256(), rows.with_format("arrow")
    for start in range(0, len(rows), ROWS_PER_TABLE):
        table: pa.Table = rows[start : min(start + ROWS_PER_TABLE, len(rows))].combine_chunks()
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, table.schema.remove_metadata()) as stream:
            stream.write_table(table)
        digest.update(out.getvalue())
    return digest.hexdigest()


def _look(splits: dict[str, Any], parts: Sequence[CorpusFile]) -> tuple[pa.Schema, pa.Table]:
    """Return the columns of all splits, and the first rows."""
    types = unify({p: rows.features.arrow_schema for p, rows in zip(parts, splits.values(), strict=True)})
    first = next(iter(splits.values()))
    rows = first.with_format("arrow")[: min(100, len(first))]
    return types, bring(rows, types, lambda row: str(parts[0].path), optional=types.names)


def _load(dataset: str, config: str, revision: str = "") -> tuple[dict[str, Any], str | None]:
    """Return the splits of a dataset by name, and the commit that they are of; else the revision that was asked for.

    `datasets` keeps the rows of each commit in a folder with its hash. A set that is not kept so says no commit.
    Without a network it takes the newest commit that it has, whatever revision it is asked for. So a branch or a tag is
    first looked up, which needs the network. DataError if the commit is not the one that was asked for.
    """
    offline_if_unreachable()
    import datasets

    if revision and not _COMMIT.fullmatch(revision):
        revision = _commit_of(dataset, revision)
    splits = dict(datasets.load_dataset(dataset, config or None, **({"revision": revision} if revision else {})))
    folders = (Path(file["filename"]).parent.name for rows in splits.values() for file in rows.cache_files)
    commit = next(filter(_COMMIT.fullmatch, folders), None)
    if revision and commit not in (None, revision):
        raise DataError(
            f"the cache has the commit {commit}, and not {revision}",
            where=f"hub:{dataset}",
            fix="connect to the hub, or leave @… out to take what the cache has",
            id="hub",
        )
    return splits, commit or revision or None


def _commit_of(dataset: str, revision: str) -> str:
    """Return the commit of a branch or a tag. Raises what `huggingface_hub` raises, or ValueError if there is none."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RevisionNotFoundError

    try:
        return str(HfApi().dataset_info(dataset, revision=revision).sha)
    except RevisionNotFoundError as error:
        raise ValueError(f"it has no revision {revision!r}") from error


def offline_if_unreachable() -> None:
    """Use only the cache of the hub if it cannot be reached, since the client would retry for half a minute.

    Must run before `datasets` is imported, which reads the setting once. Behind a proxy, this is left to the client.
    """
    if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy", "hf_hub_offline") for name in os.environ):
        return
    hub = urlsplit(os.environ.get("HF_ENDPOINT", ""))
    try:
        port = hub.port or (80 if hub.scheme == "http" else 443)
        socket.create_connection((hub.hostname or "huggingface.co", port), timeout=5).close()
    except (OSError, ValueError):  # ValueError: of a port that is not a number
        os.environ["HF_HUB_OFFLINE"] = "1"


def _as_file(split: str, rows: Any, folder: Path, where: str) -> CorpusFile:
    """Write the lines of a split to a file, unless it is there. Its folder is named after the content."""
    with _hub_errors(where):
        folder /= _hash(rows)[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.tokens"
    if not path.exists():
        with writing(path) as out:
            out.writelines(line.encode() for line in _lines(rows, where))
    return CorpusFile(split_name(split), path, path.name)


def _lines(rows: Any, where: str) -> Iterator[str]:
    with _hub_errors(where):
        for batch in rows.iter(ROWS_PER_TABLE):
            yield from (line if line.endswith("\n") else f"{line}\n" for line in batch["text"])


def _cache() -> Path:
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")  # noqa: PTH111, PTH118
    return Path(home) / "derivlang"


FORMAT = Format(name=HUB, what="set of the hub", read=_read, content=_content, binary=True)
