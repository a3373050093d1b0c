"""The small library for people: `derive` a text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from derivlang.core.arrow import string_array
from derivlang.core.batch import build
from derivlang.core.layers.gaps import Gaps
from derivlang.core.sentences import Rule
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Mode, Splitter
from derivlang.parsing.base import find_parser
from derivlang.pipeline import Pipeline, read_lexicon


@dataclass(frozen=True, slots=True)
class DerivedText:
    """words: the derived words. order: the source word of each, from 0 (-1: inserted). text: words joined by a
    space. source: the source's words."""

    words: list[str]
    order: list[int]
    text: str
    source: list[str]


def derive(
    text: str,
    spec: str,
    *,
    words: Mode = "space",
    language: str = "en",
    sentences: Rule = "marks",
    lexicon: Path | None = None,
    parser: str | None = None,
) -> DerivedText:
    """A line of text under a pipeline.

    words: how it becomes words: "space" (it is tokenised), "spacy", "unicode". lexicon: a saved lexicon.tsv,
    needed where the spec keeps some of the types. parser: what finds the trees that `syn` needs (default: the bundled
    one of the language). Raises UsageError for a bad spec, a missing lexicon or parser.

    >>> derive("Welcome to ACL .", "inv").text
    'ACL to Welcome .'
    """
    pipeline = Pipeline.parse(spec)
    fitted = pipeline.fit(saved=read_lexicon(lexicon) if lexicon else None, where=str(lexicon))
    splitting = Splitting(Splitter(words, language))
    split = splitting.texts([text])
    types = splitting.words.types() if len(splitting.words) else string_array([])
    gaps = Gaps(splitting.gaps.types(), split.lead, split.trail, split.at, split.inner)
    one = np.zeros((1, 1), np.int32)
    batch = build(split.words, types, split.units, one, np.zeros(1, np.int64), gaps=gaps)
    trees = find_parser(parser, language) if pipeline.needs_trees else None
    result = pipeline.derive(batch, fitted, rule=sentences, parser=trees)
    derived = result.derived.strings().to_pylist()
    return DerivedText(derived, result.order.index.tolist(), " ".join(derived), result.source.strings().to_pylist())
