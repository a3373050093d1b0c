"""Read the CoNLL-U trees on which a parser is trained and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.formats.conllu import read
from derivlang.parsing.base import UPOS
from derivlang.parsing.treebank import Treebank


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
