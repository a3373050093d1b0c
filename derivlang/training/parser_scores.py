"""Score a parser on a treebank."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.formats.progress import stage
from derivlang.parsing.read import read_treebank
from derivlang.parsing.registry import find_parser
from derivlang.parsing.scores import mask_rare, score
from derivlang.parsing.settings import ParserScoreOptions
from derivlang.sources.treebank import files_of, find_treebank


def score_parser(
    parser: str, treebank: Path, options: ParserScoreOptions, *, data_dir: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Return (the name of the file that is scored, the scores).

    scores: {"words": N, "UPOS": %, "UAS": %, "LAS": %, "LAS universal": %}. Raise UsageError for a split of a file, and
    as `find_parser`; DataError for a treebank that cannot be read.
    """
    found = find_parser(parser, options.language)
    treebank = find_treebank(treebank, data_dir)
    if options.split is not None and not treebank.is_dir():
        what = "is of a folder, and TREEBANK is one file"
        raise UsageError(what, where="--split", fix="leave --split out", id="unused-option")
    split = options.split or "test"
    file = files_of(treebank, split)[split]
    bank = read_treebank(file)
    if options.unk is not None:
        bank = mask_rare(bank, read_treebank(files_of(find_treebank(options.unk, data_dir))["train"]))
    with stage("parsing", "words", len(bank.words)):
        return file.name, score(found, bank)
