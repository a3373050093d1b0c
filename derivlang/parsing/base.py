"""Parser: the protocol of parsers, which give each word a tag and each sentence a tree.

A parser is any object with a `name`, a `language`, a `fingerprint` and a method `parse`; `registry.py` finds one by its
name.

    She reads .    ->    upos PRON VERB PUNCT, head 2 0 2, deprel nsubj root punct

`with_parses` gives a batch a parser's tags and trees as layers, one tree per sentence, on all sides of its records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from derivlang.core import schema
from derivlang.core.arrays import Int32, Int64, UInt8, lengths_of, owners
from derivlang.core.batch import Batch
from derivlang.core.errors import DerivlangError
from derivlang.core.layers.parse import parse_layers
from derivlang.core.trees import first_fault

UPOS = tuple(sorted(set(schema.UPOS) - {"_"}))
"""The universal tags of UD v2 (universaldependencies.org/u/pos); a tag's code is its index here."""


@dataclass(frozen=True, slots=True, eq=False)
class Parses:
    """Trees of S sentences with N words.

    upos: uint8[N], codes into UPOS. head: int32[N], 1-based in the sentence, 0 = root; each sentence with words is a
    tree with one root. deprel: int32[N], codes into relations.
    """

    upos: UInt8
    head: Int32
    deprel: Int32
    relations: tuple[str, ...]


@runtime_checkable
class Parser(Protocol):
    """Finds the trees of sentences.

    name: as on the command line. language: code of the language that it parses, such as "en". fingerprint: hash of
    everything that the trees depend on, which is the model and the rules that change its input.
    """

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        """Parse S sentences.

        words: int32[N], codes into types (Arrow strings [T]); sentences: int64[S + 1], word offsets.
        The tree of a sentence must depend on its own words only, not on the other sentences of the call.
        """
        ...


def checked(parses: Parses, sentences: Int64, parser: str) -> Parses:
    """Return the parses if they are trees, else raise DerivlangError parser-tree. parser: its name, for the message."""
    n = int(sentences[-1])
    if not len(parses.upos) == len(parses.head) == len(parses.deprel) == n:
        raise DerivlangError(f"the parser {parser!r} returned {len(parses.head)} heads for {n} words", id="parser-tree")
    fault = first_fault(parses.head, sentences)
    if fault is not None:
        word, what, _ = fault
        row = int(np.searchsorted(sentences, word, "right")) - 1
        number = word - int(sentences[row]) + 1
        raise DerivlangError(
            f"the parser {parser!r} did not return a tree for sentence {row}: word {number} has {what}",
            fix="use another parser, or report it to the parser's authors",
            id="parser-tree",
        )
    return parses


def with_parses(batch: Batch, parser: Parser) -> Batch:
    """Return the batch with layers `upos` and `head`. A batch with trees stays as it is; tags of its own are kept."""
    if "head" in batch.layers:
        return batch
    parses = parser.parse(batch.words, batch.types, batch.sentences)
    # Heads count from the first word of the sentence; in a batch, from the first word of the unit. In a unit with
    # sentences of 2 and 3 words, the shift is 0 0 2 2 2, and the heads 2 0 | 2 0 2 become 2 0 4 0 4.
    shift = np.repeat(batch.sentences[:-1] - batch.unit_words[owners(batch.units)], lengths_of(batch.sentences))
    head = np.where(parses.head > 0, parses.head + shift, 0)
    layers = parse_layers(parses.upos, UPOS, head, parses.deprel, parses.relations)
    return replace(batch, layers={**layers, **batch.layers})
