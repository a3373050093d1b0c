"""Join several sources into one: as tokenised text with a paragraph in each line, or as a treebank with all labels."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.formats.opening import open_bytes
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.files import writing

NAMES = {"validation": "valid", "train": "train"}  # train is last: if it exists, the text is complete


def is_joined(folder: Path, *, labelled: bool = False) -> bool:
    """Return whether a folder holds a whole joined text."""
    return (folder / _file("train", labelled)).exists()


def _file(split: str, labelled: bool) -> str:
    return f"{NAMES[split]}.{'conllu' if labelled else 'tokens'}"


def join(requests: Sequence[SourceRequest], folder: Path, *, labelled: bool = False) -> None:
    """Write the train data of all sources, and the validation data of those that have some, into a folder.

    The files are train.tokens and valid.tokens or, labelled, train.conllu and valid.conllu. A file without splits is
    train data. Raise DataError if there is no train data, or a source has nothing to join; UsageError for a labelled
    source that is not in CoNLL-U.
    """
    sources = [Source.open(Pipeline.parse("identity"), request) for request in requests]
    if not any("train" in source.corpus.splits for source in sources):
        raise DataError("no source has a train split", where=str(folder), id="empty-split")
    for source in sources if labelled else ():
        if source.corpus.format != "conllu":
            raise UsageError(
                f"treebanks has {source.corpus.name}, which is not in CoNLL-U",
                where="[study]",
                fix="give text in place of treebanks, which keeps only words",
                id="study",
            )
    for source in sources:
        if not any(split in source.corpus.splits for split in NAMES):
            raise DataError(
                f"{source.corpus.name} has no train and no validation split, so nothing of it would be joined",
                where="[study]",
                fix="leave it out",
                id="empty-split",
            )
    folder.mkdir(parents=True, exist_ok=True)
    for split in NAMES:
        if some := [source for source in sources if split in source.corpus.splits]:
            with writing(folder / _file(split, labelled)) as file:
                for source in some:
                    (_copy if labelled else _write)(source, split, file)


def _copy(source: Source, split: str, file: BinaryIO) -> None:
    """Write the files of a split of a treebank, each with an empty line after its last sentence."""
    for part in source.corpus.parts:
        if part.split == split:
            with open_bytes(part.path) as treebank:
                shutil.copyfileobj(treebank, file)
            file.write(b"\n\n")


def _write(source: Source, split: str, file: BinaryIO) -> None:
    """Write the paragraphs of a split, one a line."""
    for _, sentences in groupby(_sentences(source, split), key=itemgetter(0)):
        words = (name.replace(" ", "\u00a0") for _, names in sentences for name in names)
        file.write((" ".join(words) + "\n").encode())


def _sentences(source: Source, split: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the paragraph and the words of each row of a split."""
    for batch in source.batches(split):
        names = batch.types.take(to_arrow(batch.words)).to_pylist()
        first, after = batch.unit_words[batch.records[:, 0]], batch.unit_words[batch.records[:, -1] + 1]
        for document, begin, end in zip(batch.documents.tolist(), first.tolist(), after.tolist(), strict=True):
            yield document, names[begin:end]
