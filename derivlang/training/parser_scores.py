"""Score a parser on a treebank, on the CPU and, if one is asked for, on a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.formats.progress import stage
from derivlang.parsing.read import read_treebank
from derivlang.parsing.registry import find_parser
from derivlang.parsing.scores import compare, differences, mask_rare
from derivlang.parsing.settings import ParserScoreOptions
from derivlang.sources.treebank import files_of, find_treebank


def score_parser(
    parser: str, treebank: Path, options: ParserScoreOptions, *, data_dir: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Return (the name of the file that is scored, the scores).

    scores: {"words": N, "UPOS": %, "UAS": %, "LAS": %, "LAS universal": %}; with a device also {"device": {"device":
    its name, "torch": version, the same scores, "differ": the share of words that differ, in percent}}. Raise
    UsageError for a split of a file, and as `find_parser`; DataError for a treebank that cannot be read.
    """
    device = options.device
    parsers = [find_parser(parser, options.language, where) for where in dict.fromkeys([None, device])]
    treebank = find_treebank(treebank, data_dir)
    if options.split is not None and not treebank.is_dir():
        what = "is of a folder, and TREEBANK is one file"
        raise UsageError(what, where="--split", fix="leave --split out", id="unused-option")
    split = options.split or "test"
    file = files_of(treebank, split)[split]
    bank = read_treebank(file)
    if options.unk is not None:
        bank = mask_rare(bank, read_treebank(files_of(find_treebank(options.unk, data_dir))["train"]))
    with stage("parsing", "words", len(bank.words) * len(parsers)):
        parses = [each.parse(bank.words, bank.types, bank.sentences) for each in parsers]
    scores, *on_device = [compare(each, bank) for each in parses]
    if device is None:
        return file.name, scores
    from derivlang.parsing.device import record

    return file.name, {**scores, "device": {**record(device), **on_device[0], "differ": differences(*parses)}}
