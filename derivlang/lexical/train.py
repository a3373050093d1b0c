"""From a source to a tokenizer's folder: the words of its train split, counted once.

The words are those that a lexicon with an overlap is fitted on, so that a twin can be fitted without the source.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import derivlang
from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import StoreError
from derivlang.engine.job import Job, count_vocabulary
from derivlang.engine.plan import make_plan, source_files
from derivlang.formats.opening import check_encoding
from derivlang.lexical.bpe import SUFFIX, train_bpe
from derivlang.lexical.encoding import Encoder
from derivlang.lexical.tokenizer import FORMAT, RECIPE, WORDS, Tokenizer, check_free, dump, write_folder
from derivlang.sources.find import Request, find
from derivlang.store.disk import disk


def train(
    request: Request, out: Path, *, vocab_size: int = 40_000, min_frequency: int = 2, force: bool = False
) -> dict[str, Any]:
    """Train a tokenizer on the train split of a source (else its first) and write its folder; gives the recipe.

    DerivlangError where the source cannot be read, the size does not fit it, or the folder is taken; then nothing is
    written.
    """
    check_free(out, force=force)
    check_encoding(request.encoding)
    corpus = find(request)
    job = Job("identity", None, corpus, encoding=request.encoding)
    split = corpus.splits[0]
    types, counts = count_vocabulary(job, make_plan(job, out, splits=[split], shard_tokens=1 << 40, limit=None)[split])
    bpe = train_bpe(types, counts, vocab_size, min_frequency)
    tokenizer = Tokenizer(bpe)
    recipe = {
        "format": FORMAT,
        "derivlang": derivlang.__version__,
        "kind": "source",
        "fingerprint": tokenizer.fingerprint(),
        "vocab_size": bpe.size,
        "specials": list(bpe.entries[: bpe.n_special]),
        "suffix": SUFFIX,
        "scripts": [None],
        "merges": len(bpe.merges),
        "min_frequency": min_frequency,
        "source": {
            "name": corpus.name,
            "language": corpus.language,
            "licence": corpus.licence,
            "split": split,
            "words": str(corpus.splitter()) if corpus.is_raw else corpus.options.get("words", "as given"),
            "files": corpus.options.get("files") or source_files(job, [split]),
        },
        "words": {
            "types": len(types),
            "tokens": int(counts.sum()),
            "subwords": int(np.diff(Encoder(tokenizer).types(types).offsets) @ counts),
        },
    }

    def write(folder: Path) -> None:
        tokenizer.save(folder)
        save_words(folder / WORDS, types, counts)
        (folder / RECIPE).write_text(dump(recipe), "utf-8")

    write_folder(out, write, force=force)
    return recipe


def save_words(path: Path, types: pa.Array, counts: Int64) -> None:
    """The word types that a tokenizer was trained on, in the order of first occurrence."""
    import pyarrow.parquet as pq

    with disk(path):
        pq.write_table(pa.table({"type": types, "count": to_arrow(counts)}), path, compression="zstd")


def read_words(folder: Path) -> tuple[pa.Array, Int64]:
    """(Arrow strings [T], int64[T]) of a tokenizer's folder; StoreError where they are damaged."""
    import pyarrow.parquet as pq

    path = folder / WORDS
    try:
        table = pq.read_table(path, schema=pa.schema({"type": pa.string(), "count": pa.int64()})).combine_chunks()
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot be read: {error}", where=str(path), id="tokenizer") from None
    types = table["type"].chunk(0) if table.num_rows else string_array([])
    return types, to_numpy(table["count"])
