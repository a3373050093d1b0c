"""The inputs of training, as `prepare.py` makes or finds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from derivlang.training.data import Data
from derivlang.training.dictionary import JointDictionary
from derivlang.training.languages import Languages


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: that of the encoded data, shared by runs. data: encoded for rows of `seq_len` sub-words; encoded: for each
    row length.
    """

    folder: Path
    tokenizer: Path
    twin: Path
    languages: Languages
    data: Data
    dictionary: Path
    pairs: JointDictionary
    encoded: Mapping[int, Data]
