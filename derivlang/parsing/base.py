"""Parsers: sentences of words in, a tag a word and a tree a sentence out.

    parser = find_parser(None, "en")                  # the bundled one
    parses = parser.parse(batch.words, batch.types, batch.sentences)

A parser is anything with a `name`, a `language`, a `fingerprint` and `parse`. Another package adds one under its own
`pyproject.toml`; what is registered is called without arguments and gives the parser:

    [project.entry-points."derivlang.parsers"]
    mine = "my_package.parser:MyParser"
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, UInt8
from derivlang.core.errors import DerivlangError, UsageError, unknown
from derivlang.core.plugins import load_plug_in, plug_ins
from derivlang.core.trees import first_fault

GROUP = "derivlang.parsers"
BUNDLED = {"en": "english"}  # language -> the parser in this package
UPOS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM",
    "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
"""The universal tags of UD v2 (universaldependencies.org/u/pos); codes are places in it."""


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
    """What finds the trees of sentences.

    name: as on the command line. language: code of the language it reads, "en". fingerprint: hash of all that its
    answers depend on: the model's contents, and the rules that touch its input.
    """

    @property
    def name(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        """words: int32[N], codes into types (Arrow strings [T]); sentences: int64[S + 1], word offsets.

        A sentence's tree is to depend on its words alone, not on the sentences beside it.
        """
        ...


def find_parser(spec: str | None, language: str) -> Parser:
    """The parser that `spec` names, for sources in `language` (a code as "en"). Models are loaded once a process.

    None: the one in this package for the language. "english"; "stanza", "stanza:DIR"; "spacy:NAME"; a folder made by
    `derivlang parser train`; the name of a plug-in. Raises UsageError parser-language, unknown-parser, plug-in,
    parser-name; DataError parser-missing, parser-damaged; DerivlangError where a package is not installed.
    """
    if spec is None:
        if language not in BUNDLED:
            raise UsageError(
                f"no parser for the language {language!r} comes with derivlang (there is one for: "
                f"{', '.join(sorted(BUNDLED))})",
                where="--parser",
                fix=f"name one that reads {language!r}: --parser stanza, --parser spacy:NAME, a folder made by "
                "`derivlang parser train`, or give CoNLL-U with trees",
                id="parser-language",
            )
        spec = BUNDLED[language]
    parser = _load(spec, language)
    if parser.language != language:
        raise UsageError(
            f"the parser {spec!r} reads {parser.language!r}, but the source is in {language!r}",
            where="--parser",
            fix="name a parser of the source's language, or the source's true language (--lang)",
            id="parser-language",
        )
    return parser


def parser_names() -> list[str]:
    """The names that `find_parser` knows without an argument."""
    return sorted({*BUNDLED.values(), "stanza", *plug_ins(GROUP)})


@cache
def _load(spec: str, language: str) -> Parser:
    name, colon, argument = spec.partition(":")
    if name == "english" and not colon:
        from derivlang.parsing.bundled import bundled_parser

        return bundled_parser("english")
    if name == "stanza":
        from derivlang.parsing.stanza_adapter import load_stanza

        return load_stanza(argument or None, language)
    if name == "spacy":
        from derivlang.parsing.spacy_adapter import load_spacy

        return load_spacy(argument)
    if spec in plug_ins(GROUP):
        made = load_plug_in(GROUP, spec)
        parser = made() if callable(made) else made
        if not isinstance(parser, Parser):
            raise UsageError(f"the plug-in {spec!r} is no derivlang Parser", id="plug-in")
        return parser
    if Path(spec).is_dir() or "/" in spec or "\\" in spec:
        from derivlang.parsing.bundled import ModelParser

        return ModelParser.load(Path(spec))
    names = [*parser_names(), "spacy:NAME"]
    raise unknown("parser", spec, names, fix="`derivlang parser ls` lists the parsers; a folder needs a / in its name")


def checked(parses: Parses, sentences: Int64, parser: str) -> Parses:
    """The parses of a foreign parser, if they are trees. Raises DerivlangError parser-tree otherwise."""
    n = int(sentences[-1])
    if not len(parses.upos) == len(parses.head) == len(parses.deprel) == n:
        raise DerivlangError(f"the parser {parser!r} gave {len(parses.head)} heads for {n} words", id="parser-tree")
    fault = first_fault(parses.head, sentences)
    if fault is not None:
        word, what, _ = fault
        row = int(np.searchsorted(sentences, word, "right")) - 1
        raise DerivlangError(
            f"the parser {parser!r} gave no tree for sentence {row}: word {word - int(sentences[row]) + 1} has {what}",
            fix="use another parser, or report it to the parser's authors",
            id="parser-tree",
        )
    return parses
