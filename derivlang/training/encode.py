"""Encode one split of a source: write the files that `data.py` describes, or use those that are there.

The text of a language may be another one than the source's (`--derived-source`). Measures read held-out text of the
source, so `heldout_overlap` looks for its sentences in the other text. Sources: Deshpande et al. (2022), section 4.2;
Dufter and Schütze (2020).
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from derivlang.core.arrays import Int64, UInt64, offsets_of, owners
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError
from derivlang.core.keys import sequence_keys
from derivlang.core.messages import counted, warn
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find, name_of
from derivlang.sources.request import SourceRequest
from derivlang.store.record import digest, record_text
from derivlang.training.data import FORMAT, NAME, Data, cut, instance_files, pack
from derivlang.training.data_folder import Make
from derivlang.training.languages import Languages, ParallelBatch
from derivlang.training.settings import Packing


def encode(
    make: Make,
    source: Source,
    languages: Languages,
    *,
    split: str,
    seq_len: int,
    limit: int | None = None,
    packing: Packing = "sentences",
) -> Data:
    """Encode a split into a folder that `make` gives, or reuse its data. Raise DataError for a split without words."""
    wanted = {
        "rules": FORMAT,
        "spec": languages.pipeline.stored,
        "pipeline": languages.fingerprint(),  # covers rule versions and the files of grammars
        "limit": limit,
        "seq_len": seq_len,
        "packing": packing,
        **languages.recipe,
        "reading": source.corpus.reading(source.encoding),
        "parser": source.corpus.options.get("parser"),
        "source": source.corpus.name,
        "split": split,
        "words": str(source.corpus.splitter()),
        "language": source.corpus.language,
        "encoding": source.encoding,
        "input": digest(source.files([split])),
    }

    def write(place: Path) -> None:
        recipe = _write(place, source, languages, split, seq_len, wanted)
        (place / NAME).write_text(record_text(recipe), "utf-8", newline="\n")

    return Data.open(make("encoded-text", wanted, write), languages)


def _write(
    folder: Path, source: Source, languages: Languages, split: str, seq_len: int, wanted: dict[str, Any]
) -> dict[str, Any]:
    """Write the files of a split, and return the recipe."""
    names = ("sentences", "keys", "pieces", "starts", *instance_files(languages))
    types = dict.fromkeys(names, "<i8") | {"slots": "<u2", "shared": "|u1", "begins": "|u1"}
    types["ids"] = "<u2" if languages.size <= 1 << 16 else "<i4"
    whole = sha256(json.dumps(wanted, sort_keys=True).encode())
    sizes = dict.fromkeys(types, 0)
    done = 0
    unknown = np.zeros((len(languages.own), 2), np.int64)
    pieces: list[Int64] = []
    counts: list[Int64] = []
    with ExitStack() as stack:
        files = {name: stack.enter_context((folder / f"{name}.bin").open("wb")) for name in types}

        def write(name: str, values: Any) -> None:
            data = np.ascontiguousarray(values, types[name])
            whole.update(data.data)
            files[name].write(data.data)
            sizes[name] += len(data)

        write("sentences", [0])
        for batch in source.batches(split, wanted["limit"]):
            both = languages.parallel(batch)
            begins = both.begins()
            cuts = cut(both.blocks, np.cumsum(begins, dtype=np.int64), seq_len - 2)
            unknown += [(int(np.count_nonzero(side.ids == languages.unknown_id)), len(side.ids)) for side in both.sides]
            arrays, numbers = _subwords(both, cuts, languages)
            arrays |= {"begins": begins, "sentences": both.blocks[1:] + done, "keys": _keys(batch, both).view(np.int64)}
            for name, values in arrays.items():
                write(name, values)
            pieces.append(cuts[:-1] + done)
            counts.append(numbers)
            done += int(both.offsets[-1])
        if not done:
            raise DataError(f"the split {split} of {source.corpus.name} holds no words", id="empty-split")
        write("pieces", np.append(np.concatenate(pieces), done))
        numbers = np.concatenate(counts)
        write("starts", offsets_of(numbers.ravel()))
        for name, lengths in zip(instance_files(languages), numbers.T, strict=True):
            write(name, pack(lengths + 1, seq_len - 1, single=wanted["packing"] == "single"))
    return {
        "format": FORMAT,
        "derivlang": __version__,
        **wanted,
        "files": {name: [dtype, sizes[name]] for name, dtype in types.items()},
        "unknown_percent": [round(100 * int(n) / max(int(of), 1), 2) for n, of in unknown],
        "fingerprint": whole.hexdigest()[:16],
    }


def _subwords(both: ParallelBatch, pieces: Int64, languages: Languages) -> tuple[dict[str, Any], Int64]:
    """Return (the sub-words of a batch, in order of pieces, then languages; int64[P, L], their numbers).

    pieces [0, 2, 4], source slots 0 1 2 3, derived slots 3 0 2 1  ->  slots [0, 1, 0, 1, 0, 1, 1, 0] in their pieces
    """
    slots, ids = (np.concatenate([getattr(side, name) for side in both.sides]) for name in ("slots", "ids"))
    n, piece = len(both.sides), owners(pieces)[slots].astype(np.int64)
    cell = piece * n + owners(offsets_of(np.array([len(side.ids) for side in both.sides])))
    shared = np.zeros(len(ids), bool)
    if languages.are_mapped:  # each slot has one sub-word in every language
        by_slot = np.array([side.ids[np.argsort(side.slots)] for side in both.sides])
        same = by_slot == by_slot[0]  # as the first language, which shares what one with ids of its own has, too
        own = [bool((reader.tokenizer.own != languages.tokenizer.own).any()) for reader in languages.readers]
        same[0] = same[own if any(own) else slice(1, None)].any(axis=0)
        shared = np.concatenate([of[side.slots] for of, side in zip(same, both.sides, strict=True)])
    order = np.argsort(cell, kind="stable")
    arrays = {"ids": ids[order], "slots": (slots - pieces[piece])[order], "shared": shared[order]}
    return arrays, np.bincount(cell, minlength=(len(pieces) - 1) * n).reshape(-1, n)


def _keys(batch: Batch, both: ParallelBatch) -> UInt64:
    """Return uint64[S]: the content keys of the blocks that an order keeps together.

    A block is one sentence of the source, or several that one tree spans.
    """
    if len(both.blocks) == len(batch.sentences):
        return batch.keys
    return sequence_keys(batch.type_hashes[batch.words], np.searchsorted(both.offsets, both.blocks))


SHORTEST = 3  # words of a sentence that measures on held-out text read
_MOST = 0.01  # share of sentences that two texts may have in common by chance


def heldout_overlap(request: SourceRequest, other: SourceRequest, trained: UInt64, keys: UInt64) -> int:
    """Return how many sentences of another text are of the source's held-out text, with a warning if there are some.

    trained, keys: uint64[S], of the source's text that is trained on, and of the other text. Sentences of the former,
    such as headings that recur, are not held out anyway, so they do not count; there is a warning if more than 1 % of
    them are in the other text, since the texts are then parallel in part. Raise DataError if more than 1 % of the
    held-out sentences are in the other text. A tree over several sentences is one in encoded text, so these are not
    found.
    """
    corpus = find(request)
    parallel, read = int(np.isin(trained, keys).sum()), counted(len(trained), "sentence")
    if parallel > _MOST * len(trained):
        warn(
            f"{name_of(other.source)} has {parallel:,} of the {read} that are trained on in the source language, "
            "so the texts are parallel in part"
        )
    split = corpus.heldout
    if split == corpus.splits[0]:  # nothing is held out, as an evaluation says
        return 0
    every, shared, example = 0, 0, ""
    seen: UInt64 = np.zeros(0, np.uint64)
    for batch in Source.open(Pipeline.parse("identity"), request, trees=False).batches(split):
        _, first = np.unique(batch.keys, return_index=True)
        lengths = np.diff(batch.sentences)
        some = first[(lengths[first] >= SHORTEST) & ~np.isin(batch.keys[first], seen)]
        seen = np.concatenate([seen, batch.keys[some]])
        both = np.sort(some[np.isin(batch.keys[some], keys) & ~np.isin(batch.keys[some], trained)])
        if len(both) and not shared:
            begin, end = batch.sentences[both[0]], batch.sentences[both[0] + 1]
            example = " ".join(batch.strings()[begin:end].to_pylist())
        every, shared = every + len(some), shared + len(both)
    _say(shared, every, example, f"{corpus.name} ({split})", name_of(other.source))
    return shared


def _say(shared: int, every: int, example: str, heldout: str, other: str) -> None:
    """Warn of sentences that are not held out, or raise DataError if they are too many."""
    if not shared:
        return
    what = f"the held-out text of {heldout} shares {shared:,} of its {counted(every, 'sentence')} with {other}"
    if shared > _MOST * every:
        raise DataError(
            f"{what}, so measures would read text that was trained on, e.g. {example!r}",
            where="--derived-source",
            fix=f"remove these sentences from {other}, or give another text; up to {100 * _MOST:g} % are allowed",
            id="not-held-out",
        )
    warn(f"{what}, e.g. {example!r}: measures read text that was trained on")
