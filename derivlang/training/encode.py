"""Encode a source's split into the files of `data.py`, or reuse existing files."""

from __future__ import annotations

import json
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, UInt64, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError
from derivlang.core.keys import sequence_keys
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.store.disk import whole_folder
from derivlang.training.data import FORMAT, NAME, Data, read_recipe
from derivlang.training.languages import Both, Languages
from derivlang.training.packing import cut, pack, restrict
from derivlang.training.settings import Packing


def encode(
    folder: Path,
    source: Source,
    languages: Languages,
    *,
    split: str,
    seq_len: int,
    limit: int | None = None,
    packing: Packing = "sentences",
) -> Data:
    """Encode a split into a folder, or reuse its data if source, languages and length are the same.

    Raise StoreError if the folder holds other data, DataError for a split without words.
    """
    files = source.files([split])
    wanted = _of_languages(languages, seq_len, limit, packing) | {
        "parser": source.corpus.options.get("parser"),
        "source": source.corpus.name,
        "split": split,
        "words": str(source.corpus.splitter()),
        "language": source.corpus.language,
        "encoding": source.encoding,
        "input": sha256(json.dumps(files, sort_keys=True, default=str).encode()).hexdigest()[:16],
    }
    if (folder / NAME).exists():
        _check(folder, wanted)
        return Data.open(folder, languages)
    whole_folder(folder, lambda fresh: _write(fresh, source, languages, split, seq_len, limit, wanted))
    return Data.open(folder, languages)


def take(
    folder: Path, languages: Languages, *, seq_len: int, limit: int | None = None, packing: Packing = "sentences"
) -> Data:
    """Return the data of a folder without checking its source, which may be missing.

    Raise StoreError if there is no data, or if it is of other languages or settings.
    """
    _check(folder, _of_languages(languages, seq_len, limit, packing))
    return Data.open(folder, languages)


def _of_languages(languages: Languages, seq_len: int, limit: int | None, packing: Packing) -> dict[str, Any]:
    """Return the recipe fields other than the source."""
    return {
        "spec": languages.pipeline.stored,
        # Covers rule versions and the files of grammars. In the first format, so that a recipe and the fingerprint of
        # the data stay those of earlier versions.
        "pipeline": languages.pipeline.fingerprint(format=1),
        "limit": limit,
        "seq_len": seq_len,
        "packing": packing,
        "tokenizer": languages.tokenizer.fingerprint(),
        "twin": languages.twin.tokenizer.recipe["fingerprint"],
        "lexicon": languages.twin.tokenizer.recipe["lexicon"],
    }


def _check(folder: Path, wanted: dict[str, Any]) -> None:
    """Raise StoreError if the folder's recipe differs."""
    recipe = read_recipe(folder)
    other = [name for name, value in wanted.items() if recipe.get(name) != value]
    if other:
        raise StoreError(
            f"holds data of another run: {other[0]} is {recipe.get(other[0])!r}, not {wanted[other[0]]!r}",
            where=str(folder),
            fix="give another folder, or remove this one",
            id="other-data",
        )


def _write(
    folder: Path,
    source: Source,
    languages: Languages,
    split: str,
    seq_len: int,
    limit: int | None,
    wanted: dict[str, Any],
) -> None:
    most = seq_len - 2
    wide = "<u2" if languages.tokenizer.size <= 1 << 16 else "<i4"
    types = {"ids": wide, "order": "<u2", "begins": "|u1", "sentences": "<i8", "keys": "<i8", "pieces": "<i8"}
    types |= {"kept": "|u1"} if languages.twin.map.overlap else {}
    digest = sha256(json.dumps(wanted, sort_keys=True).encode())
    sizes = dict.fromkeys([*types, "instances"], 0)
    hashes = {name: sha256() for name in sizes}
    done = cut_sentences = 0
    pieces: list[Int64] = []
    with ExitStack() as stack:
        files: dict[str, BinaryIO] = {
            name: stack.enter_context((folder / f"{name}.bin").open("wb")) for name in [*types, "instances"]
        }

        def write(name: str, values: Any, dtype: str) -> None:
            data = np.ascontiguousarray(values, dtype)
            digest.update(data.data)
            hashes[name].update(data.data)
            files[name].write(data.data)
            sizes[name] += len(data)

        write("sentences", [0], "<i8")
        for batch in source.batches(split, limit):
            both = languages.both(batch)
            sentences, keys = _blocks(batch, both)
            words = _numbers(both.source.words())
            found = cut(sentences, words, most)
            cut_sentences += int((np.diff(sentences) > most).sum())
            start = np.repeat(found[:-1], np.diff(found))
            write("ids", both.source.ids, wide)
            write("order", restrict(both.order.index, found) - start, "<u2")
            write("begins", np.diff(words, prepend=-1) != 0, "|u1")
            if "kept" in types:
                write("kept", _kept(both, languages, batch), "|u1")
            write("sentences", sentences[1:] + done, "<i8")
            write("keys", keys.view(np.int64), "<i8")
            pieces.append(found[:-1] + done)
            done += both.source.n_subwords
        if not done:
            raise DataError(f"the split {split} of {source.corpus.name} holds no words", id="empty-split")
        offsets = np.append(np.concatenate(pieces), done)
        write("pieces", offsets, "<i8")
        instances = pack(np.diff(offsets) + 1, seq_len - 1)
        write("instances", instances, "<i8")
    types["instances"] = "<i8"
    rows, full = len(instances) - 1, done + len(offsets) + len(instances) - 2
    if wanted["packing"] == "stream":  # each piece has <s> and </s>, and rows have no padding
        rows = (done + 2 * (len(offsets) - 1)) // seq_len
        full = rows * seq_len
    recipe = {
        "format": FORMAT,
        "derivlang": __version__,
        **wanted,
        "kept": "kept" in types,
        "files": {name: [dtype, sizes[name]] for name, dtype in types.items()},
        "sha256": {name: found.hexdigest() for name, found in hashes.items()},
        "subwords": done,
        "sentences": sizes["keys"],
        "instances": rows,
        "cut_sentences": cut_sentences,
        "filled_percent": round(100 * full / (rows * seq_len), 2) if rows else 0.0,
        "fingerprint": digest.hexdigest()[:16],
    }
    (folder / NAME).write_text(json.dumps(recipe, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _blocks(batch: Batch, both: Both) -> tuple[Int64, UInt64]:
    """Return (int64[S + 1] sub-word offsets, uint64[S] content keys) of the blocks that an order keeps together.

    A block is a sentence, or all sentences that a tree spans. Blocks are the derived language's sentences. Their
    offsets are valid in the source, too, since each is a permutation of the same sub-words.
    """
    found = both.order.sentences
    words = np.searchsorted(both.source.offsets, found)
    if len(found) == len(batch.sentences):
        return found, batch.keys
    return found, sequence_keys(batch.type_hashes[batch.words], words)


def _numbers(words: Ints) -> Int64:
    """Return int64[M]: words renumbered without gaps, as some have no sub-word. words: [M], ascending.

    words [3, 3, 5, 6]  ->  [0, 0, 1, 2]
    """
    return np.cumsum(np.diff(words, prepend=words[:1]) > 0)


def _kept(both: Both, languages: Languages, batch: Batch) -> Bool:
    """Return bool[M]: the sub-words of words that the overlap keeps."""
    words = languages.twin.kept(batch.types)[batch.words]
    return np.repeat(words, lengths_of(both.source.offsets))
