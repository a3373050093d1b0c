"""`derive`: a text under a pipeline, without files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.batch import Batch, build
from derivlang.core.errors import DataError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.rules import Rule
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Mode, Splitter
from derivlang.parsing.registry import find_parser
from derivlang.pipeline import Pipeline
from derivlang.transforms.lexicon_file import read_lexicon


@dataclass(frozen=True, slots=True)
class DerivedText:
    """A derived text.

    words: the derived words. order: the position of each in the source, from 0 (-1: inserted). text: the derived words
    joined by spaces. source: the source's words.
    """

    words: list[str]
    order: list[int]
    text: str
    source: list[str]


def derive(
    text: str | Sequence[str],
    spec: str,
    *,
    words: Mode | None = None,
    language: str = "en",
    sentences: Rule = "marks",
    lexicon: Path | str | None = None,
    parser: str | None = None,
) -> DerivedText:
    """Derive a text, as `make` derives a `.txt` file with this text.

    text: raw text, or a list of words. words: how to split raw text, "spacy" (default), "unicode", or "space" for
    tokenised text. language: of the text, for spaCy's tokenizer and the parser. sentences: how sentences are split.
    lexicon: a saved lexicon.tsv, needed if the spec keeps some of the types. parser: finds the trees that `syn` needs
    (default: the bundled one of the language).

    Raises UsageError for a bad spec or argument, or a missing lexicon or parser; DataError for an empty word or a text
    that cannot be encoded.

    >>> derive("Hello, world!", "inv").text
    'world , Hello !'
    >>> derive(["Hello,", "world!"], "inv").text
    'world! Hello,'
    """
    pipeline = Pipeline.parse(spec)
    fitted = pipeline.fit(saved=read_lexicon(Path(lexicon)) if lexicon else None, where=str(lexicon))
    if isinstance(text, str):
        splitting = Splitting(Splitter("spacy" if words is None else words, language))
        with parse_errors("derive", "text"):
            batch = _lines(text, splitting)
    elif isinstance(text, Sequence) and not isinstance(text, bytes | bytearray | memoryview):
        if words is not None:
            raise UsageError("words= says how to split raw text, but the text is a list of words", id="words")
        with parse_errors("derive", "list of words"):
            batch = _words(text)
    else:
        raise UsageError(f"derive takes a text or a list of words, not {_name(text)}", id="no-text")
    trees = find_parser(parser, language) if pipeline.needs_trees else None
    result = pipeline.derive(batch, fitted, rule=sentences, parser=trees)
    derived = result.derived.strings().to_pylist()
    return DerivedText(derived, result.order.index.tolist(), " ".join(derived), result.source.strings().to_pylist())


def _lines(text: str, splitting: Splitting) -> Batch:
    """Return a batch of running text. Each line is a unit, as in a file."""
    lines = text.split("\n")
    split = splitting.texts(lines)
    types = splitting.words.types() if len(splitting.words) else string_array([])
    numbers = np.arange(len(lines))
    return build(split.words, types, split.units, numbers.astype(np.int32)[:, None], numbers, running=True)


def _words(words: Sequence[str]) -> Batch:
    """Return a batch with one unit of words."""
    for number, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise UsageError(f"word {number} is {_name(word)}, not a string", id="no-text")
        if not word:
            raise DataError(f"word {number} is empty", id="empty-word")
    encoded = string_array(words).dictionary_encode()
    codes = to_numpy(encoded.indices).astype(np.int32)
    unit = np.array([0, len(words)], np.int64)
    return build(codes, encoded.dictionary, unit, np.zeros((1, 1), np.int32), np.zeros(1, np.int64))


def _name(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
