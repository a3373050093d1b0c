"""What a dictionary is made of: the entries of a source's vocabulary, with their images under a lexicon.

word    the types of the split that lexicons are fitted on (train, else the first)
token   the sub-word types of a tokenizer (`tokenizer.json`), each with its twin: the string through the script; the
        mark of a word's end or continuation is not mapped. Counts: every word type encoded once
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.core.layers.words import Words
from derivlang.core.lexicon import SPECIALS, Lexicon
from derivlang.engine.job import Job, Task, Vocabulary, count_types, read_part
from derivlang.pipeline import Pipeline
from derivlang.sources.read import Reading

_AT_ONCE = 1 << 14  # words encoded at a time


@dataclass(frozen=True, slots=True)
class Entries:
    """T entries: words Arrow strings [T], counts int64[T], their images `images[offsets[t]:offsets[t + 1]]`.

    tags: Arrow strings [T], the most frequent tag of each, where tags are known.
    """

    words: pa.Array
    counts: Int64
    offsets: Int64
    images: pa.Array
    tags: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.words)


def count(job: Job, tasks: list[Task], *, tags: bool) -> tuple[pa.Array, Int64, pa.Array | None]:
    """(types [T], int64[T] counts, and with `tags` each type's most frequent UPOS, where the source has any)."""
    vocabulary = Vocabulary()
    tagged: Counter[tuple[str, str]] = Counter()
    for task in tasks:
        for batch in read_part(job, task, Reading(job.corpus.splitter(), job.encoding, job.repair_tags)):
            vocabulary.add(batch.types, count_types(batch))
            if tags:
                _count_tags(batch, tagged)
    types, counts = vocabulary.result()
    if not tagged:
        return types, counts, None
    best: dict[str, tuple[int, str]] = {}
    for (word, tag), n in tagged.items():  # the most frequent; of equals the first by name
        if word not in best or (-n, tag) < best[word]:
            best[word] = (-n, tag)
    return types, counts, string_array([best[word][1] if word in best else "_" for word in types.to_pylist()])


def _count_tags(batch: Batch, found: Counter[tuple[str, str]]) -> None:
    layer = batch.layers.get("upos")
    if not isinstance(layer, Words):
        return
    pairs, counts = np.unique(batch.words.astype(np.int64) * len(layer.values) + layer.codes, return_counts=True)
    words = batch.types.take(to_arrow(pairs // len(layer.values))).to_pylist()
    tags = layer.values.take(to_arrow(pairs % len(layer.values))).to_pylist()
    for word, tag, n in zip(words, tags, counts.tolist(), strict=True):
        if tag is not None:
            found[word, tag] += n


def word_entries(types: pa.Array, counts: Int64, lexicon: Lexicon, tags: pa.Array | None = None) -> Entries:
    """The types that are no special tokens and have an image."""
    pairs = lexicon.pairs(types)
    place = to_numpy(pa.compute.index_in(pairs["source"].combine_chunks(), value_set=types))
    sizes = np.bincount(place, minlength=len(types))
    kept = np.flatnonzero(sizes)
    return Entries(
        types.take(to_arrow(kept)),
        counts[kept],
        offsets_of(sizes[kept]),
        pairs["derived"].combine_chunks(),
        None if tags is None else tags.take(to_arrow(kept)),
    )


def token_entries(folder: Path, types: pa.Array, counts: Int64, pipeline: Pipeline) -> Entries:
    """The sub-word types of the tokenizer in a folder that are no special tokens, and their twins.

    Raises UsageError where the pipeline's lexicon is no whole script; DataError where the tokenizer cannot be used.
    """
    lexical = [t for t in pipeline.transforms if t.has_lexicon]
    if not lexical or any(t.name != "trans" or getattr(t, "overlap", 0) for t in lexical):
        raise UsageError(
            f"sub-words have twins under whole scripts only, not under {pipeline}",
            where="--level",
            fix="--t trans (with overlap, a sub-word's twin is the same), or --level word",
            id="token-level",
        )
    vocabulary, model = _read_tokenizer(folder)
    numbers = np.array([number for _, number in vocabulary], np.int64)
    tokens = [token for token, _ in vocabulary]
    suffix, prefix = model.get("end_of_word_suffix") or "", model.get("continuing_subword_prefix") or ""
    ends = [suffix if suffix and token.endswith(suffix) else "" for token in tokens]
    begins = [prefix if prefix and token.startswith(prefix) else "" for token in tokens]
    stems = [t[len(b) : len(t) - len(e)] for t, b, e in zip(tokens, begins, ends, strict=True)]
    images = pipeline.fit().apply(string_array(stems)).to_pylist()
    twins = [b + image + e for b, image, e in zip(begins, images, ends, strict=True)]
    seen = _encoded(folder, types, counts, int(numbers.max(initial=-1)) + 1)
    return Entries(string_array(tokens), seen[numbers], offsets_of(np.ones(len(tokens), int)), string_array(twins))


def _read_tokenizer(folder: Path) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """(the non-special sub-words with their ids, by id; the model of `tokenizer.json`)."""
    path = folder / "tokenizer.json" if folder.is_dir() else folder
    try:
        data = json.loads(path.read_text("utf-8"))
        model = data["model"]
        vocabulary = model["vocab"]
        if isinstance(vocabulary, list):
            vocabulary = {token: number for number, (token, _) in enumerate(vocabulary)}
        specials = {*SPECIALS, *(entry["content"] for entry in data.get("added_tokens") or [] if entry.get("special"))}
        found = sorted(((t, int(n)) for t, n in vocabulary.items() if t not in specials), key=lambda pair: pair[1])
        if any("ByteLevel" in json.dumps(data.get(part)) for part in ("pre_tokenizer", "decoder")):
            raise ValueError("it works on bytes, which have no twins under a script; take one on characters")
    except FileNotFoundError:
        raise DataError(
            "there is no tokenizer.json", where=str(folder), fix="name a tokenizer's folder", id="missing-file"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"the tokenizer cannot be used: {what}", where=str(path), id="tokenizer") from None
    return found, model


def _encoded(folder: Path, types: pa.Array, counts: Int64, size: int) -> Int64:
    """int64[V]: how often each sub-word stands in the text, by id."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json" if folder.is_dir() else folder
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 (the library raises Exception itself)
        raise DataError(f"the tokenizer cannot be used: {error}", where=str(path), id="tokenizer") from None
    seen = np.zeros(size, np.int64)
    for start in range(0, len(types), _AT_ONCE):
        words = types.slice(start, _AT_ONCE).to_pylist()
        for encoding, n in zip(
            tokenizer.encode_batch(words, add_special_tokens=False), counts[start : start + _AT_ONCE], strict=True
        ):
            ids = np.array([number for number in encoding.ids if number < size], np.int64)
            np.add.at(seen, ids, n)
    return seen
