"""`derive`: a text under a pipeline, without files; `view`: a derived text as a drawing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.batch import Batch, build
from derivlang.core.errors import DataError, UsageError, parse_errors
from derivlang.core.layers.tree import Tree
from derivlang.core.layers.words import Words
from derivlang.core.messages import errors_in_python, warn
from derivlang.core.takes import Mode, Rule
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from derivlang.parsing.registry import find_parser, unused_parser
from derivlang.pipeline import Pipeline
from derivlang.transforms.fitting import read_lexicon

if TYPE_CHECKING:
    from derivlang.display.rows import LinkedLines
    from derivlang.display.view import View


# White space that no word has: sentences have it. Not U+00A0, U+2007 and U+202F, nor the space of the number 20 000.
_SPACE = re.compile(r"(?<!\d)[^\S\u00a0\u2007\u202f]|[^\S\u00a0\u2007\u202f](?!\d)")

_CHUNK = 1000  # lines that are derived together


@dataclass(frozen=True, slots=True)
class DerivedText:
    """A derived text. In a notebook it is shown as a drawing (`view`).

    words: the derived words. order: the position of each in the source, from 0 (-1: inserted). text: the derived words
    joined by spaces. source: the source's words. labels, source_labels: if the spec needs trees, the parser's `upos`,
    `head` (the number of the governor in the text, from 1; 0 = root) and `deprel` of each word; else empty.
    """

    words: list[str]
    order: list[int]
    text: str
    source: list[str]
    labels: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    source_labels: dict[str, list[Any]] = field(default_factory=dict, repr=False)

    @property
    def links(self) -> list[tuple[int, int]]:
        """The word links (source position, derived position), from 0, sorted."""
        return sorted((i, j) for j, i in enumerate(self.order) if i >= 0)

    def linked(self) -> LinkedLines:
        """Return both lines as `derivlang.display` draws them."""
        from derivlang.display.rows import Line, LinkedLines

        def line(words: list[str], labels: dict[str, list[Any]]) -> Line:
            head, relation = (tuple(labels.get(name, ())) for name in ("head", "deprel"))
            return Line(tuple(words), head, relation, {"upos": tuple(labels["upos"])} if labels else {})

        return LinkedLines(line(self.source, self.source_labels), line(self.words, self.labels), tuple(self.order))

    def _repr_html_(self) -> str:
        return view(self)._repr_html_()


@errors_in_python()
def derive(
    text: str | Sequence[str],
    spec: str | Pipeline,
    *,
    words: Mode | None = None,
    lang: str = "en",
    sentences: Rule = "marks",
    lexicon: Path | str | None = None,
    parser: str | None = None,
) -> DerivedText:
    """Derive a text, as `make` derives a `.txt` file with this text.

    Transforms that draw in sequence need several sentences, and draw from the first of these on.

    text: raw text, or a list of the words of one text. White space inside of such a word may only be a no-break space,
    or stand between digits (`20 000`, as in treebanks): a list of sentences is refused. spec: the transforms, or a
    pipeline of them. words: how to split raw text, "spacy" (default), "unicode", or "space" for tokenised text.
    lang: language of the text, for spaCy's tokenizer and the parser. sentences: how sentences are split. lexicon: a
    saved lexicon.tsv, needed if the spec keeps some of the types. parser: finds the trees that `syn` needs (default:
    the bundled one of the language).

    Raises UsageError for a bad spec or argument, for a list of texts, or a missing lexicon or parser; DataError for an
    empty word or a text that cannot be encoded.

    >>> derive("Hello, world!", "inv").text
    'world , Hello !'
    >>> derive(["Hello,", "world!"], "inv").text
    'world! Hello,'
    """
    deriver = Deriver(spec, language=lang, sentences=sentences, lexicon=lexicon, parser=parser)
    _warn_of_language(deriver.pipeline, lang, words if isinstance(text, str) else "space")
    if isinstance(text, str):
        splitting = Splitting(Splitter("spacy" if words is None else words, lang))
        with parse_errors("derive", "text"):
            batch = _running([text], splitting)
    elif isinstance(text, Sequence) and not isinstance(text, bytes | bytearray | memoryview):
        if words is not None:
            raise UsageError("words= says how to split raw text, but the text is a list of words", id="words")
        with parse_errors("derive", "list of words"):
            batch = _words(text)
    else:
        raise UsageError(f"derive takes a text or a list of words, not {_name(text)}", id="no-text")
    (derived,) = deriver.derive(batch, 1, one=True)
    return derived


def derive_lines(
    lines: Iterable[str],
    spec: str | Pipeline,
    *,
    words: Mode | None = None,
    lang: str = "en",
    sentences: Rule = "marks",
    lexicon: Path | str | None = None,
    parser: str | None = None,
) -> Iterator[DerivedText]:
    """Yield each line derived, as `make` derives the lines of a `.txt` file. Arguments and errors are as of `derive`.

    lines: raw text, such as an open file. They are read in chunks of 1,000, which costs less per line than `derive`.

    >>> [line.text for line in derive_lines(["Hello, world!", "Go home !"], "inv")]
    ['world , Hello !', 'home Go !']
    """
    rows = (line.rstrip("\n") for line in lines)
    chunks = iter(lambda: list(islice(rows, _CHUNK)), [])
    texts = derive_chunks(chunks, spec, words=words, lang=lang, sentences=sentences, lexicon=lexicon, parser=parser)
    while True:
        with errors_in_python():
            chunk = next(texts, None)
        if chunk is None:
            return
        yield from chunk


def derive_chunks(
    chunks: Iterable[Sequence[str]],
    spec: str | Pipeline,
    *,
    words: Mode | None = None,
    lang: str = "en",
    sentences: Rule = "marks",
    lexicon: Path | str | None = None,
    parser: str | None = None,
    one: bool = False,
) -> Iterator[list[DerivedText]]:
    """Yield each chunk of lines derived, one text per line. Arguments and results are as in `derive`.

    The lines of a chunk are derived together, so large chunks cost less per line. one: there is one chunk; if it is one
    sentence, transforms that draw in sequence are refused. Raises as `derive` does, but names the options of the
    command line, which reads its lines here.

    >>> [[text.text for text in chunk] for chunk in derive_chunks([["Go !", "Who ? Me !"]], "inv")]
    [['Go !', 'Who ? Me !']]
    """
    deriver = Deriver(spec, language=lang, sentences=sentences, lexicon=lexicon, parser=parser)
    _warn_of_language(deriver.pipeline, lang, words)
    splitter = Splitter("spacy" if words is None else words, lang)
    for lines in chunks:
        with parse_errors("derive", "text"):
            batch = _running(lines, Splitting(splitter))
        yield deriver.derive(batch, len(lines), one=one)


def view(text: DerivedText) -> View:
    """Return a derived text as a drawing: both lines, with the links between their words.

    text: what `derive` returns; `DerivedSet.show` draws rows of a set. A notebook shows the result; `.save(FILE)`
    writes it as a page. Raises UsageError for other data.
    """
    from derivlang.display.view import View

    if not isinstance(text, DerivedText):
        raise UsageError(
            f"view takes a derived text, not {_name(text)}",
            fix="pass what derive returns; derivlang.DerivedSet(FOLDER).show(row=5) draws a row of a set",
            id="no-view",
        )
    return View([text.linked()])


def _warn_of_language(pipeline: Pipeline, language: str, words: Mode | None) -> None:
    """Warn of a language that neither the splitter of words nor a parser reads, and of what does not fit it."""
    pipeline.warn_of_misfits(language)
    if language != "en" and words in ("space", "unicode") and not pipeline.needs_trees:
        warn(f"neither spaCy's tokenizer nor a parser reads the text, so the language {language!r} has no effect")


class Deriver:
    """A fitted pipeline with its rule for sentences and its parser, for one text after another of a sequence."""

    def __init__(
        self, spec: str | Pipeline, *, language: str, sentences: Rule, lexicon: Path | str | None, parser: str | None
    ) -> None:
        self.pipeline = (spec if isinstance(spec, Pipeline) else Pipeline.parse(spec)).begin()
        saved = read_lexicon(Path(lexicon)) if lexicon else None
        self.fitted = self.pipeline.fit(saved=saved, where=str(lexicon))
        self.sentences: Rule = sentences
        if parser is not None and not self.pipeline.needs_trees:
            raise unused_parser(f"{self.pipeline} needs no trees")
        self.parser = find_parser(parser, language) if self.pipeline.needs_trees else None

    def derive(self, batch: Batch, n_texts: int, *, one: bool = False) -> list[DerivedText]:
        """Return the texts of a batch, whose documents are their numbers, ascending; one without words is empty.

        one: whether these texts are all that is derived. Raise UsageError if they are one sentence, under transforms
        that draw in sequence.
        """
        result = self.pipeline.derive(batch, self.fitted, rule=self.sentences, parser=self.parser)
        source, derived = result.source, result.derived
        if one and len(source.tails) <= 1:
            self.pipeline.check_keyed("a single sentence")
        source_words, words = source.strings().to_pylist(), derived.strings().to_pylist()
        first_unit = np.searchsorted(source.documents, np.arange(n_texts + 1))  # a record is a unit here
        begins, places = source.unit_words[first_unit].tolist(), derived.unit_words[first_unit].tolist()
        out = []
        for text in range(n_texts):
            begin, end, first, last = begins[text], begins[text + 1], places[text], places[text + 1]
            index = result.order.index[first:last]
            text_words = words[first:last]
            out.append(
                DerivedText(
                    text_words,
                    np.where(index < 0, -1, index - begin).tolist(),
                    " ".join(text_words),
                    source_words[begin:end],
                    _labels(derived, first, last),
                    _labels(source, begin, end),
                )
            )
        return out


def _labels(batch: Batch, begin: int, end: int) -> dict[str, list[Any]]:
    """Return the tags and trees of the words begin … end - 1, {} if the batch has none. Heads count in the text."""
    tree, tags = batch.layers.get("head"), batch.layers.get("upos")
    if not isinstance(tree, Tree) or not isinstance(tags, Words):
        return {}
    unit = np.searchsorted(batch.unit_words, np.arange(begin, end), "right") - 1
    head = tree.head[begin:end]
    in_text = np.where(head > 0, head + batch.unit_words[unit] - begin, 0)
    return {
        "upos": _values(tags, begin, end),
        "head": in_text.tolist(),
        "deprel": _values(tree.deprel, begin, end),
    }


def _values(layer: Words, begin: int, end: int) -> list[Any]:
    values = layer.values.to_pylist()
    return [values[code] for code in layer.codes[begin:end].tolist()]


def _running(texts: Sequence[str], splitting: Splitting) -> Batch:
    """Return a batch of running text. Each line of a text is a unit, as in a file; documents are the texts' numbers."""
    lines_of_texts = [text.split("\n") for text in texts]
    lines = [line for text in lines_of_texts for line in text]
    split = splitting.texts(lines)
    documents = np.repeat(np.arange(len(texts)), [len(text) for text in lines_of_texts])
    numbers = np.arange(len(lines), dtype=np.int32)
    return build(split.words, split.types, split.units, numbers[:, None], documents, running=True)


def _words(words: Sequence[str]) -> Batch:
    """Return a batch with one unit of words."""
    for number, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise UsageError(f"word {number} is {_name(word)}, not a string", id="no-text")
        if not word:
            raise DataError(f"word {number} is empty", id="empty-word")
        if _SPACE.search(word):
            raise UsageError(
                f"word {number} holds white space, {word[:50]!r}, but a list holds the words of one text",
                fix="derive each text by itself, [derive(text, spec) for text in texts]; a word may hold U+00A0",
                id="spaced-word",
            )
    encoded = string_array(words).dictionary_encode()
    codes = to_numpy(encoded.indices).astype(np.int32)
    unit = np.array([0, len(words)], np.int64)
    return build(codes, encoded.dictionary, unit, np.zeros((1, 1), np.int32), np.zeros(1, np.int64))


def _name(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"
