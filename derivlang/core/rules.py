"""The names of the rules for words (`formats/words.py`) and for the ends of sentences (`sentences.py`)."""

from __future__ import annotations

from typing import Literal, get_args

Mode = Literal["spacy", "unicode", "space"]  # how raw text is split into words
MODES: tuple[str, ...] = get_args(Mode)
Rule = Literal["marks", "period", "unit"]
RULES: tuple[str, ...] = get_args(Rule)
