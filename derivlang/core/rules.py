"""The names of the rules for the ends of sentences (`sentences.py` has the rules)."""

from __future__ import annotations

from typing import Literal, get_args

Rule = Literal["marks", "period", "unit"]
RULES: tuple[str, ...] = get_args(Rule)
