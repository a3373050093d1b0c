"""Encode a source's split into the files of `data.py`, or reuse existing files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from derivlang.core.arrays import Int64, UInt64
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import sequence_keys
from derivlang.core.parse_errors import parse_errors
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.sources.find import name_of
from derivlang.sources.named import SOURCES, split_name
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import Artifact, ArtifactKind
from derivlang.store.record import digest
from derivlang.training.data import FORMAT, NAME, STAMPS, Data, mapped, read_recipe, write_stamps
from derivlang.training.languages import SOURCE, Languages, ParallelBatch
from derivlang.training.packing import cut
from derivlang.training.settings import Packing
from derivlang.training.text_data import TextData, TextWriter
from derivlang.training.twin_data import TwinData, TwinWriter

DATA = ArtifactKind(
    noun="encoded text",
    record=NAME,
    names=(NAME, STAMPS, "*.bin"),
    read=read_recipe,
    files=lambda recipe: (f"{name}.bin" for name in recipe["files"]),
    words={
        "input": "the files of the source have changed since, or are others",
        "pipeline": "the rules or the files of its transforms are others",
        "tokenizer": "it was encoded with another tokenizer",
        "twin": "it was encoded with another twin",
        "lexicon": "it was encoded with another lexicon",
        "derived_tokenizer": "it was encoded with another tokenizer of the derived language",
    },
    fix="give another folder, or remove this one",
    id="other-data",
)

# Gets the content keys of all sentences, uint64[S], and returns what the recipe says of them.
Check: TypeAlias = Callable[[UInt64], Mapping[str, Any]]

# By `Languages.has_twin`: how encoded data is read and written.
_KINDS: dict[bool, tuple[Any, Any]] = {True: (TwinData, TwinWriter), False: (TextData, TextWriter)}


def encode(
    folder: Path,
    source: Source,
    languages: Languages,
    *,
    split: str,
    seq_len: int,
    limit: int | None = None,
    packing: Packing = "sentences",
    check: Check | None = None,
) -> Data:
    """Encode a split into a folder, or reuse its data if source, languages and length are the same.

    check: called before the folder is there, so that no data is left if it raises an error, and for data that is
    reused.
    Raise StoreError if the folder holds other data, DataError for a split without words.
    """
    files = source.files([split])
    wanted = _of_languages(languages, seq_len, limit, packing) | {
        "reading": source.corpus.reading(source.encoding),
        "parser": source.corpus.options.get("parser"),
        "source": source.corpus.name,
        "split": split,
        "words": str(source.corpus.splitter()),
        "language": source.corpus.language,
        "encoding": source.encoding,
        "input": digest(files),
    }
    data = Artifact(kind=DATA, path=folder, wanted=wanted)

    def kept(path: Path) -> None:
        if check is not None:
            check(mapped(path, "keys", read_recipe(path)).view(np.uint64))

    data.make(lambda fresh: _write(fresh, source, languages, split, seq_len, limit, wanted, check), kept)
    return open_data(folder, languages)


def take(
    folder: Path, languages: Languages, *, seq_len: int, limit: int | None = None, packing: Packing = "sentences"
) -> Data:
    """Return the data of a folder without reading its source, which may be missing (`check_source`).

    Raise StoreError if there is no data, or if it is of other languages or settings.
    """
    Artifact(kind=DATA, path=folder, wanted=_of_languages(languages, seq_len, limit, packing)).required()
    return open_data(folder, languages)


def check_source(folder: Path, request: SourceRequest, option: str = "--source") -> None:
    """Raise StoreError if there is no data, or if it is of a source of another name, or that was read in another way.

    The source is not read, so only what the request states can be compared. option: which names the source.
    """
    recipe = read_recipe(folder)
    with parse_errors(str(folder / NAME), "recipe of encoded data", error=StoreError, id="data"):
        reading = recipe["reading"]
        columns = [name for name in reading.get("columns") or () if name]  # plain text has none
        other = [name for name in (*request.texts, *request.words) if name not in columns]
        # A set of parses has the name of its source, whatever its folder is called.
        parsed = recipe.get("parser") is not None and split_name(request.source)[0] not in SOURCES
        pairs = (
            (option, None if parsed else name_of(request.source), recipe.get("source")),
            ("--encoding", request.encoding, recipe.get("encoding")),
            ("--lang", request.language, recipe.get("language")),
            ("--words", request.mode, next(iter(reading.get("words") or ()), None)),
            ("column", ", ".join(other), ", ".join(columns)),
        )
    for option, now, was in pairs:
        if now and was and now != was:
            raise StoreError(
                f"holds data of {option} {was}, not {now}",
                where=str(folder),
                fix="give the --data folder of this source, or the options that the data was made with",
                id="other-data",
            )


def _of_languages(languages: Languages, seq_len: int, limit: int | None, packing: Packing) -> dict[str, Any]:
    """Return the recipe fields other than the source."""
    return {
        "spec": languages.pipeline.stored,
        "pipeline": languages.fingerprint(),  # covers rule versions and the files of grammars
        "limit": limit,
        "seq_len": seq_len,
        "packing": packing,
        **languages.recipe,
    }


def _write(
    folder: Path,
    source: Source,
    languages: Languages,
    split: str,
    seq_len: int,
    limit: int | None,
    wanted: dict[str, Any],
    check: Check | None,
) -> dict[str, Any]:
    """Write the files of a split, and return the recipe. check: as of `encode`."""
    writer = _KINDS[languages.has_twin][1](languages)
    types = {**writer.types, "sentences": "<i8", "keys": "<i8", "pieces": "<i8"}
    whole = sha256(json.dumps(wanted, sort_keys=True).encode())
    sizes: dict[str, int] = {}
    hashes: dict[str, Any] = {}
    done = cut_sentences = 0
    pieces: list[Int64] = []
    every_key: list[UInt64] = []
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {}

        def write(name: str, values: Any) -> None:
            data = np.ascontiguousarray(values, types[name])
            if name not in files:
                files[name] = stack.enter_context((folder / f"{name}.bin").open("wb"))
                hashes[name], sizes[name] = sha256(), 0
            whole.update(data.data)
            hashes[name].update(data.data)
            files[name].write(data.data)
            sizes[name] += len(data)

        write("sentences", [0])
        for batch in source.batches(split, limit):
            both = languages.both(batch)
            keys = _keys(batch, both)
            begins = both.begins()
            words = np.cumsum(begins, dtype=np.int64)
            cuts = cut(both.blocks, words, seq_len - 2)
            cut_sentences += int((np.diff(both.blocks) > seq_len - 2).sum())
            for name, values in writer.arrays(batch, both, cuts, begins).items():
                write(name, values)
            write("sentences", both.blocks[1:] + done)
            write("keys", keys.view(np.int64))
            pieces.append(cuts[:-1] + done)
            if check is not None:
                every_key.append(keys)
            done += int(both.offsets[-1])
        if not done:
            raise DataError(f"the split {split} of {source.corpus.name} holds no words", id="empty-split")
        offsets = np.append(np.concatenate(pieces), done)
        write("pieces", offsets)
        last = writer.last(offsets, seq_len, wanted["packing"])
        for name, values in last.items():
            types[name] = "<i8"
            write(name, values)
    write_stamps(folder)
    subwords, by_language = writer.sizes(offsets, last, seq_len, wanted["packing"])
    _check_rows(by_language[SOURCE][0], seq_len)
    checked = {} if check is None else check(np.concatenate(every_key))
    rows, filled = (sum(side) for side in zip(*by_language, strict=True))
    return {
        "format": FORMAT,
        "derivlang": __version__,
        **wanted,
        "kept": "kept" in types,
        "files": {name: [dtype, sizes[name]] for name, dtype in types.items()},
        "sha256": {name: hashed.hexdigest() for name, hashed in hashes.items()},
        "subwords": subwords,
        "sentences": sizes["keys"],
        "instances": by_language[SOURCE][0],
        "cut_sentences": cut_sentences,
        "filled_percent": round(100 * filled / (rows * seq_len), 2) if rows else 0.0,
        **writer.facts(),
        **checked,
        "fingerprint": whole.hexdigest()[:16],
    }


def open_data(folder: Path, languages: Languages) -> Data:
    """Open the data of a folder. Raise StoreError if it is not one, or a file is cut off or changed."""
    data: Data = _KINDS[languages.has_twin][0].open(folder, read_recipe(folder), languages)
    _check_rows(data.n_instances(SOURCE), data.seq_len)
    return data


def _check_rows(n_rows: int, seq_len: int) -> None:
    """Raise DataError if a stream is shorter than a row."""
    if not n_rows:
        raise DataError(
            f"the source has fewer sub-words than a row of a stream, {seq_len}",
            where="--seq-len",
            fix="lower it, or give --packing sentences",
            id="empty-split",
        )


def _keys(batch: Batch, both: ParallelBatch) -> UInt64:
    """Return uint64[S]: the content keys of the blocks that an order keeps together.

    A block is one sentence of the source, or several that one tree spans.
    """
    if len(both.blocks) == len(batch.sentences):
        return batch.keys
    return sequence_keys(batch.type_hashes[batch.words], np.searchsorted(both.offsets, both.blocks))
