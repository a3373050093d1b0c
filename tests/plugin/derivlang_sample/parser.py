"""chain, chain-fr: parsers without a model, for English and for French.

Tags go by how a word looks. The first verb is the root; small words hang from the word after them, all others from
the root.

    the cats slept .    DET NOUN VERB PUNCT    2 3 0 3    det nsubj root punct

$DERIVLANG_SAMPLE_LOG names a file that gets a line for each call, with the number of words.
"""

from __future__ import annotations

import os
import unicodedata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64
from derivlang.parsing.base import UPOS, Parses

RELATIONS = ("root", "det", "case", "nummod", "nsubj", "obj", "advmod", "punct", "dep")
_SMALL = {"DET": "det", "ADP": "case", "NUM": "nummod"}


class Chain:
    """A `Parser` (derivlang.parsing.base)."""

    def __init__(self, name: str = "chain", language: str = "en") -> None:
        self.name, self.language, self.fingerprint = name, language, f"{name}-1"

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        if os.environ.get("DERIVLANG_SAMPLE_LOG"):
            with Path(os.environ["DERIVLANG_SAMPLE_LOG"]).open("a") as log:
                log.write(f"{self.name} {len(words)}\n")
        tag_of_type = [tag(word) for word in types.to_pylist()]
        tags = [tag_of_type[code] for code in words.tolist()]
        heads: list[int] = []
        relations: list[str] = []
        for begin, end in pairwise(sentences.tolist()):
            here = heads_of(tags[begin:end])
            heads += here
            relations += relations_of(tags[begin:end], here)
        return Parses(
            np.array([UPOS.index(t) for t in tags], np.uint8),
            np.array(heads, np.int32),
            np.array([RELATIONS.index(r) for r in relations], np.int32),
            RELATIONS,
        )


def french() -> Chain:
    return Chain("chain-fr", "fr")


def tag(word: str) -> str:
    """A tag by how the word looks."""
    if all(unicodedata.category(c)[0] == "P" for c in word):
        return "PUNCT"
    if word[0].isdigit():
        return "NUM"
    if word.endswith(("ly", "ment")):
        return "ADV"
    if word.endswith(("ed", "es", "it")):
        return "VERB"
    if len(word) <= 2:
        return "ADP"
    if len(word) == 3:
        return "DET"
    return "PROPN" if word[0].isupper() else "NOUN"


def heads_of(tags: list[str]) -> list[int]:
    """1-based, 0 = root."""
    n = len(tags)
    plain = [i for i in range(n) if tags[i] != "PUNCT"] or list(range(n))
    root = next((i for i in plain if tags[i] == "VERB"), plain[-1]) if n else -1
    heads = []
    for i in range(n):
        after = i + 1 < n and tags[i] in _SMALL and tags[i + 1] != "PUNCT"
        heads.append(0 if i == root else i + 2 if after else root + 1)
    return heads


def relations_of(tags: list[str], heads: list[int]) -> list[str]:
    def relation(place: int) -> str:
        tag, head = tags[place], heads[place] - 1
        if head < 0:
            return "root"
        if tag in ("PUNCT", "ADV"):
            return {"PUNCT": "punct", "ADV": "advmod"}[tag]
        if tag in _SMALL:
            return _SMALL[tag]
        return "nsubj" if place < head else "obj"

    return [relation(place) for place in range(len(tags))]
