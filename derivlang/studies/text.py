"""Join several sources into one tokenised text: one paragraph per line, words joined by one space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError
from derivlang.engine.batches import Source
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.files import writing

FILES = {"validation": "valid.tokens", "train": "train.tokens"}  # train is last: if it exists, the text is complete


def join(requests: Sequence[SourceRequest], folder: Path) -> dict[str, int]:
    """Write folder/train.tokens of all sources, and valid.tokens of those with a validation split.

    Return the number of words in each split. A file without splits is train data. Raise DataError if there is no train
    data.
    """
    sources = [Source.open(Pipeline.parse("identity"), request) for request in requests]
    folder.mkdir(parents=True, exist_ok=True)
    words = {}
    for split, name in FILES.items():
        some = [source for source in sources if split in source.corpus.splits]
        if not some:
            continue
        words[split] = 0
        with writing(folder / name) as file:
            for source in some:
                words[split] += _write(source, split, file)
    if not words.get("train"):
        raise DataError("no source has a train split", where=str(folder), id="empty-split")
    return words


def _write(source: Source, split: str, file: object) -> int:
    total, last, line = 0, -1, []  # type: tuple[int, int, list[str]]
    for batch in source.batches(split):
        names = batch.types.take(to_arrow(batch.words)).to_pylist()
        units = batch.unit_words
        ends = np.append(np.flatnonzero(np.diff(batch.documents)) + 1, batch.n_records)
        begin = 0
        for end in ends.tolist():
            document = int(batch.documents[begin])
            if document != last and line:
                file.write((" ".join(line) + "\n").encode())  # type: ignore[attr-defined]
                line = []
            last = document
            first, after = int(units[batch.records[begin, 0]]), int(units[batch.records[end - 1, -1] + 1])
            line += [name.replace(" ", "\u00a0") for name in names[first:after]]
            begin = end
        total += batch.n_words
    if line:
        file.write((" ".join(line) + "\n").encode())  # type: ignore[attr-defined]
    return total
