"""Read what a parser is trained and scored on: trees of CoNLL-U, and running text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import offsets_of
from derivlang.core.errors import DataError
from derivlang.formats.conllu import read
from derivlang.formats.opening import open_lines
from derivlang.parsing.base import UPOS
from derivlang.parsing.treebank import Text, Treebank


def read_treebank(path: Path) -> Treebank:
    """Read the trees of a CoNLL-U file. Raises DataError upos for a tag that UD does not have, and as `conllu.read`."""
    columns: dict[str, list[list[Any]]] = {"tokens": [], "upos": [], "head": [], "deprel": []}
    for rows in read(path):
        for name, lists in columns.items():
            lists += rows.table.column(name).to_pylist()
    for number, tags in enumerate(columns["upos"]):
        for tag in tags:
            if tag not in UPOS:
                raise DataError(
                    f"sentence {number + 1} has the tag {tag!r}, which is not one of UD's: {' '.join(UPOS)}",
                    where=str(path),
                    fix="use a treebank of Universal Dependencies, version 2",
                    id="upos",
                )
    return Treebank.of(columns["tokens"], columns["upos"], columns["head"], columns["deprel"])


def read_text(path: Path) -> Text:
    """Read running text with words between spaces; each line counts as a sentence."""
    lines = [words for _, line in open_lines(path) if (words := line.split())]
    flat = pa.array([word for words in lines for word in words], pa.string()).dictionary_encode()
    codes = flat.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Text(codes, flat.dictionary, offsets_of(np.array([len(words) for words in lines], np.int64)))
