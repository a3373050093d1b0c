"""The inputs of training, as `prepare.py` makes or finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derivlang.training.data import Data
from derivlang.training.dictionary import JointDictionary
from derivlang.training.languages import Languages
from derivlang.training.word_dictionary import WordDictionary


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: that of the encoded data, shared by runs. files: what a run keeps to use its model, by name: folders of
    tokenizers, a fitted lexicon, a dictionary. data: encoded for rows of `seq_len` sub-words; encoded: for each row
    length. pairs: the dictionary; with the tokenizer of a checkpoint it is one of words, None if none was given.
    given: the name of the file of a dictionary that was given, "" if it was made. heldout: names and hashes of the
    files of held-out text; None if the data was taken without its source.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    data: Data
    pairs: JointDictionary | WordDictionary | None
    encoded: Mapping[int, Data]
    given: str = ""
    heldout: list[dict[str, Any]] | None = None
