"""Parsers by name: those in this package, Stanza, spaCy, stored models, and parsers from other packages.

    parser = find_parser(None, "en")                  # the default for English
    parses = parser.parse(batch.words, batch.types, batch.sentences)

A package adds a `Parser` (`base.py`), or a class or function that returns one, as an entry point `derivlang.parsers`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.plugins import Registry
from derivlang.formats.places import is_path
from derivlang.parsing.base import Parser

BUNDLED = {"en": ("english", "english-light")}  # language -> its parsers in this package, the default first
PARSERS: Registry[Parser] = Registry(
    "parser",
    Parser,
    {
        "english": "derivlang.parsing.bundled:english",
        "english-light": "derivlang.parsing.bundled:english_light",
    },
    fix="list the parsers with `derivlang parser ls`; the path of a folder needs a /",
)


def find_parser(spec: str | None, language: str) -> Parser:
    """Return the parser that `spec` names, for sources in `language` (a code such as "en").

    spec: None for the default of the language in this package; "english", "english-light"; "stanza", "stanza:DIR";
    "spacy:NAME"; a folder made by `derivlang parser train`; the name of a plug-in. A process loads
    each model once. Raises UsageError parser-language, unknown-parser, plug-in, parser-name; DataError parser-missing,
    parser-damaged; DerivlangError missing-package.
    """
    if spec is None:
        if language not in BUNDLED:
            raise UsageError(
                f"derivlang brings no parser for the language {language!r} (only for: {', '.join(sorted(BUNDLED))})",
                where="--parser",
                fix=f"name a parser for {language!r} to `make` or `derive`: --parser stanza, --parser spacy:NAME, or a "
                "folder made by `derivlang parser train`; or use CoNLL-U with trees",
                id="parser-language",
            )
        spec = BUNDLED[language][0]
    parser = _load(spec, language)
    if parser.language != language:
        raise UsageError(
            f"the parser {spec!r} is for the language {parser.language!r}, but the source is in {language!r}",
            where=spec,
            fix=f"name a parser for {language!r}, or correct the source's language (--lang)",
            id="parser-language",
        )
    return parser


def unused_parser(why: str) -> UsageError:
    """Return the error for a parser where no trees are looked for."""
    return UsageError(why, where="--parser", fix="leave --parser out", id="unused-option")


def parser_names() -> list[str]:
    """Return the names that `find_parser` takes without an argument."""
    return [*PARSERS.names(), "stanza"]


def forget_parsers() -> None:
    """Load each model again when it is next asked for: a folder may hold another one now."""
    _load.cache_clear()


@cache
def _load(spec: str, language: str) -> Parser:
    """Load a parser.

    The imports stand here because most commands need no parser: they take 60 ms, and no module below imports this one.
    """
    name, _, argument = spec.partition(":")
    if name == "stanza":
        from derivlang.parsing.foreign import load_stanza

        return load_stanza(argument or None, language)
    if name == "spacy":
        from derivlang.parsing.foreign import load_spacy

        return load_spacy(argument)
    if spec in PARSERS:
        return PARSERS.find(spec)
    if "/" in spec or "\\" in spec or is_path(spec, "folder"):
        from derivlang.parsing.bundled import ModelParser

        return ModelParser.load(Path(spec))
    raise PARSERS.unknown(spec, "stanza", "spacy:NAME")
