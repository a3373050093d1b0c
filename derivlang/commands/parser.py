"""`train_parser` and `score_parser`: parsers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from derivlang.commands.command import Command
from derivlang.commands.folders import named_folder
from derivlang.core.settings import setting
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.formats.progress import found, reader
from derivlang.parsing.settings import ParserOptions, ParserScoreOptions
from derivlang.sources.request import DataDir


@dataclass(frozen=True, eq=False, repr=False)
class TrainParser(Command[dict[str, Any]], ParserOptions, DataDir):
    """Train a tagger and parser on TREEBANK and write a model of about 5 MB.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder (UD_English-EWT), which
    is searched for where `make` searches for pos:English-EWT.

    In a folder, `*-train` is the training data. `*-dev` and `*-test` are scored at the end, once as they are and once
    with <unk> for words seen at most once in training. The scores do not influence training, which needs torch (pip
    install 'derivlang[train]') and takes half an hour on one core. The model runs without torch. A parser that the same
    command has already made is kept.

    \b
    derivlang parser train UD_English-EWT --data-dir DIR
    derivlang parser train UD_English-EWT --score en_gum-ud-test.conllu -o english
    """

    treebank: PathLike
    out: OptionalPath = setting(None, "Folder to write.", also="-o", unset="TREEBANK.parser, here", writes=True)
    _: KW_ONLY
    force: bool = setting(False, "Replace a parser in the folder.")

    def __call__(self) -> dict[str, Any]:
        """Return the model card, with "settings", "trained_on" and "scores". No file is left half-written."""
        from derivlang.sources.treebank import find_treebank
        from derivlang.training.parser import train_parser

        treebank = find_treebank(Path(self.treebank), self.path("data_dir"))
        out = self.path("out") or named_folder(treebank.name, last="parser")
        options = self.part(ParserOptions)
        return train_parser(
            treebank, out, options, data_dir=self.path("data_dir"), force=self.force, report=reader().tell, found=found
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ScoreParser(Command[dict[str, Any]], ParserScoreOptions, DataDir):
    """Score PARSER on the words of TREEBANK: UPOS, UAS and LAS.

    TREEBANK is a CoNLL-U file, a folder of Universal Dependencies, or the name of such a folder, as UD_English-EWT,
    which is found as `make` finds pos:English-EWT.

    All words count, with punctuation. LAS compares relations in full (nsubj:pass); "LAS universal" compares them up to
    the colon, as the script of the CoNLL 2018 shared task does.

    \b
    derivlang parser score english UD_English-EWT --data-dir DIR
    """

    parser: PathLike
    treebank: PathLike

    def __call__(self) -> dict[str, Any]:
        """Return {"words", "UPOS", "UAS", "LAS", "LAS universal"}: the number of words, and percentages of them."""
        return self.scored()[1]

    def scored(self) -> tuple[str, dict[str, Any]]:
        """Return (the name of the file that is scored, the same)."""
        from derivlang.training.parser import score_parser

        options = self.part(ParserScoreOptions)
        return score_parser(str(self.parser), Path(self.treebank), options, data_dir=self.path("data_dir"))
