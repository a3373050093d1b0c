"""`train_parser` and `score_parser`: parsers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from derivlang.commands.shared import PathLike, local
from derivlang.core.keywords import takes
from derivlang.core.settings import given
from derivlang.display.bar import ProgressBar
from derivlang.parsing.settings import ParserOptions, ParserScoreOptions


@takes(ParserOptions)
def train_parser(
    treebank: PathLike, out: PathLike, *, data_dir: PathLike | None = None, force: bool = False, **options: Any
) -> dict[str, Any]:
    """Train a tagger and parser on a treebank, as `derivlang parser train` does.

    treebank: a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder. out: the folder to
    write, which `make` takes as its parser. data_dir: as of `make`.

    Return the model card, with "settings", "trained_on" and "scores". A parser that the same call has made is kept.
    Raise DerivlangError where the command would fail; no file is left half-written.
    """
    from derivlang.training.parser import train_parser as run

    asked = ParserOptions(**given(ParserOptions, options))
    with ProgressBar():
        return run(Path(treebank), local(out, "parsers"), asked, data_dir=_path(data_dir), force=force)


@takes(ParserScoreOptions)
def score_parser(
    parser: PathLike, treebank: PathLike, *, data_dir: PathLike | None = None, **options: Any
) -> dict[str, Any]:
    """Score a parser on the words of a treebank, as `derivlang parser score` does.

    parser: as of `make`. treebank: as of `train_parser`. data_dir: as of `make`.

    Return {"words", "UPOS", "UAS", "LAS", "LAS universal"}: the number of words, and percentages of them. Raise
    DerivlangError as the command.
    """
    from derivlang.training.parser_scores import score_parser as run

    asked = ParserScoreOptions(**given(ParserScoreOptions, options))
    with ProgressBar():
        return run(str(parser), Path(treebank), asked, data_dir=_path(data_dir))[1]


def _path(place: PathLike | None) -> Path | None:
    return None if place is None else Path(place)
