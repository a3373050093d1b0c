"""The entries of a dictionary: a source's vocabulary, with its images under a lexicon.

word    the types of the split that lexicons are fitted on (train, else the first)
token   the sub-word types of a tokenizer (`tokenizer.json`), each with its twin. A twin is the string mapped through
        the script, without the mark of a word's end or continuation. Counts come from encoding every word type once
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
from derivlang.core.parse_errors import parse_errors
from derivlang.engine.job import Job, ShardTask, read_task
from derivlang.engine.vocabulary import TypeCounts, count_types
from derivlang.lexical.bpe import as_merge
from derivlang.pipeline import Pipeline
from derivlang.sources.read import Reading
from derivlang.transforms.trans import Trans, map_script

_AT_ONCE = 1 << 14  # words encoded at a time


@dataclass(frozen=True, slots=True)
class Entries:
    """T entries: words Arrow strings [T], counts int64[T], images `images[offsets[t]:offsets[t + 1]]`.

    tags: Arrow strings [T], the most frequent tag of each, or None if tags are unknown.
    """

    words: pa.Array
    counts: Int64
    offsets: Int64
    images: pa.Array
    tags: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.words)


def count(job: Job, tasks: list[ShardTask], *, tags: bool) -> tuple[pa.Array, Int64, pa.Array | None]:
    """Return (types [T], counts int64[T], most frequent UPOS of each type with `tags` if the source has any)."""
    vocabulary = TypeCounts()
    tagged: Counter[tuple[str, str]] = Counter()
    for task in tasks:
        for batch in read_task(job, task, Reading(job.corpus.splitter(), job.encoding, job.repair_tags)):
            vocabulary.add(batch.types, count_types(batch))
            if tags:
                _count_tags(batch, tagged)
    types, counts = vocabulary.result()
    if not tagged:
        return types, counts, None
    best: dict[str, tuple[int, str]] = {}
    for (word, tag), n in tagged.items():  # ties: the first tag by name
        if word not in best or (-n, tag) < best[word]:
            best[word] = (-n, tag)
    return types, counts, string_array([best[word][1] if word in best else "_" for word in types.to_pylist()])


def _count_tags(batch: Batch, tag_counts: Counter[tuple[str, str]]) -> None:
    layer = batch.layers.get("upos")
    if not isinstance(layer, Words):
        return
    pairs, counts = np.unique(batch.words.astype(np.int64) * len(layer.values) + layer.codes, return_counts=True)
    words = batch.types.take(to_arrow(pairs // len(layer.values))).to_pylist()
    tags = layer.values.take(to_arrow(pairs % len(layer.values))).to_pylist()
    for word, tag, n in zip(words, tags, counts.tolist(), strict=True):
        if tag is not None:
            tag_counts[word, tag] += n


def word_entries(types: pa.Array, counts: Int64, lexicon: Lexicon, tags: pa.Array | None = None) -> Entries:
    """Return the entries of types that have an image. Special tokens have none."""
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


def entries_by_place(
    job: Job, tasks: list[ShardTask], lexicon: Lexicon, types: pa.Array, counts: Int64, tags: pa.Array | None
) -> Entries:
    """Return the entries of types whose words change by their place: all forms that occur, the most frequent first.

    types, counts, tags: as of `count`. Special tokens and words that are always deleted have no entry.
    """
    found: Counter[tuple[str, str]] = Counter()
    pipeline = job.pipeline.begin()
    for task in tasks:
        for batch in read_task(job, task, Reading(job.corpus.splitter(), job.encoding, job.repair_tags)):
            result = pipeline.derive(batch, lexicon)
            source, derived, index = result.source, result.derived, result.order.index
            n = len(derived.types)
            pairs = source.words[index[index >= 0]].astype(np.int64) * n + derived.words[index >= 0]
            codes, numbers = np.unique(pairs, return_counts=True)
            words, forms = source.types.take(to_arrow(codes // n)), derived.types.take(to_arrow(codes % n))
            for word, form, number in zip(words.to_pylist(), forms.to_pylist(), numbers.tolist(), strict=True):
                found[word, form] += number
    images: dict[str, list[str]] = {}
    for word, form in sorted(found, key=lambda pair: (-found[pair], pair)):
        images.setdefault(word, []).append(form)
    kept = [place for place, word in enumerate(types.to_pylist()) if word in images and word not in SPECIALS]
    forms_of = [images[word] for word in types.take(pa.array(kept, pa.int64())).to_pylist()]
    return Entries(
        types.take(pa.array(kept, pa.int64())),
        counts[kept],
        offsets_of(np.array([len(forms) for forms in forms_of], np.int64)),
        string_array([form for forms in forms_of for form in forms]),
        None if tags is None else tags.take(pa.array(kept, pa.int64())),
    )


def token_entries(folder: Path, types: pa.Array, counts: Int64, pipeline: Pipeline) -> Entries:
    """Return the sub-word types of the tokenizer in a folder, without special tokens, and their twins.

    Raise UsageError unless the pipeline's lexicon maps all words through a script; DataError if the tokenizer cannot be
    used.
    """
    lexical = [t for t in pipeline.transforms if t.has_lexicon]
    if not lexical or any(t.name != "trans" or getattr(t, "overlap", 0) for t in lexical):
        raise UsageError(
            f"sub-words have twins only if all words change script, not under {pipeline}",
            where="--level",
            fix="leave out overlap= (sub-words have the same twins with and without it), or give --level word",
            id="token-level",
        )
    vocabulary, model = _read_tokenizer(folder)
    numbers = np.array([number for _, number in vocabulary], np.int64)
    tokens = [token for token, _ in vocabulary]
    suffix, prefix = model.get("end_of_word_suffix") or "", model.get("continuing_subword_prefix") or ""
    ends = [suffix if suffix and token.endswith(suffix) else "" for token in tokens]
    begins = [prefix if prefix and token.startswith(prefix) else "" for token in tokens]
    stems = [t[len(b) : len(t) - len(e)] for t, b, e in zip(tokens, begins, ends, strict=True)]
    mapped = string_array(stems)
    for step in lexical:
        assert isinstance(step, Trans)
        # `apply` would keep the word `<unk>`. Here it may be the stem of an ordinary entry: `<unk></w>`, of `x<unk>`.
        mapped = map_script(mapped, step.loaded)
    images = mapped.to_pylist()
    twins = [b + image + e for b, image, e in zip(begins, images, ends, strict=True)]
    seen = _encoded(folder, types, counts, numbers)
    return Entries(string_array(tokens), seen, offsets_of(np.ones(len(tokens), int)), string_array(twins))


def _read_tokenizer(folder: Path) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Return (non-special sub-words with their ids, by id; the model of `tokenizer.json`)."""
    path = folder / "tokenizer.json" if folder.is_dir() else folder
    if not path.exists():
        raise DataError(
            "there is no tokenizer.json", where=str(folder), fix="give a tokenizer's folder", id="missing-file"
        )
    with parse_errors(str(path), "tokenizer", id="tokenizer"):
        data = json.loads(path.read_text("utf-8"))
        model = data["model"]
        vocabulary = model["vocab"]
        if isinstance(vocabulary, list):
            vocabulary = {token: number for number, (token, _) in enumerate(vocabulary)}
        specials = {*SPECIALS, *(entry["content"] for entry in data.get("added_tokens") or [] if entry.get("special"))}
        subwords = sorted(((t, int(n)) for t, n in vocabulary.items() if t not in specials), key=lambda pair: pair[1])
        if any("ByteLevel" in json.dumps(data.get(part)) for part in ("pre_tokenizer", "decoder")):
            raise ValueError("it works on bytes, which have no twins in another script; use a character tokenizer")
        if subwords and (subwords[0][1] < 0 or subwords[-1][1] >= 1 << 32):
            raise ValueError("an id is negative, or above 2^32")
        affixes = [model.get(name) or "" for name in ("end_of_word_suffix", "continuing_subword_prefix")]
        if not all(isinstance(mark, str) for mark in affixes):
            raise ValueError("the suffix of last sub-words and the prefix of others must be strings")
        if any(not right.startswith(affixes[1]) for _, right in map(as_merge, model.get("merges") or [])):
            raise ValueError(
                f"the right part of a merge does not begin with {affixes[1]!r}"
            )  # `tokenizers` would panic
        "".join(token for token, _ in subwords).encode()  # raises for lone surrogates, which are not text
    return subwords, model


def _encoded(folder: Path, types: pa.Array, counts: Int64, numbers: Int64) -> Int64:
    """Return int64[V]: the frequency of each sub-word in the text. numbers: int64[V], their ids, ascending."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json" if folder.is_dir() else folder
    with parse_errors(str(path), "tokenizer", id="tokenizer"):
        tokenizer = Tokenizer.from_file(str(path))
    seen = np.zeros(len(numbers), np.int64)
    for start in range(0, len(types), _AT_ONCE):
        words = types.slice(start, _AT_ONCE).to_pylist()
        for encoding, n in zip(
            tokenizer.encode_batch(words, add_special_tokens=False), counts[start : start + _AT_ONCE], strict=True
        ):
            ids = np.array(encoding.ids, np.int64)
            np.add.at(seen, np.searchsorted(numbers, ids[np.isin(ids, numbers)]), n)
    return seen
