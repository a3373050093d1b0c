"""Raw text to words: each distinct piece split once gives what spaCy's tokenizer gives for the whole text."""

from __future__ import annotations

import itertools

import pytest
import spacy

from derivlang.core.errors import UsageError
from derivlang.formats.opening import open_lines
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter
from tests.real import SHARED, needs_data

WRITTEN = [
    "Don't wait; it's 5 p.m. (or so), isn't it?",
    "The harbour-master's daughter can't, won't and shan't -- \"ever\" -- sail…",
    "See https://example.org/a?b=c, or write to a.b@example.org!",
    "We're\u00a0here\u2003and  there,\tat\n10km/h. :-) A.B.C. e.g. U.K.-based co-op's",
    "<unk> and [MASK] stay; (<unk>) too.",
    "",
    "   ",
]


def words_of(texts: list[str], language: str) -> list[list[str]]:
    splitting = Splitting(Splitter("spacy", language))
    split = splitting.texts(texts)
    flat = splitting.words.types().to_pylist() if len(splitting.words) else []
    return [[flat[w] for w in split.words[a:b]] for a, b in itertools.pairwise(split.units)]


def test_written_examples() -> None:
    tokenizer = spacy.blank("en").tokenizer
    expected = [[t.text for t in tokenizer(text) if not t.is_space] for text in WRITTEN]
    expected[4] = ["<unk>", "and", "[MASK]", "stay", ";", "(", "<unk>", ")", "too", "."]  # specials are cut out first
    assert words_of(WRITTEN, "en") == expected


@needs_data
@pytest.mark.parametrize(
    ("file", "language"),
    [
        ("xnli/dev.en.tsv", "en"),
        ("xnli/dev.fr.tsv", "fr"),
        ("xnli/dev.de.tsv", "de"),
        ("text/eltec-eng/eltec-eng.txt.gz", "en"),
    ],
)
def test_real_text(file: str, language: str) -> None:
    lines = itertools.islice(open_lines(SHARED / file), 1500)
    texts = [cell for _, line in lines for cell in line.split("\t")]
    tokenizer = spacy.blank(language).tokenizer
    expected = [[t.text for t in tokenizer(text) if not t.is_space] for text in texts]
    differ = [
        i for i, (ours, theirs) in enumerate(zip(words_of(texts, language), expected, strict=True)) if ours != theirs
    ]
    assert not differ, (texts[differ[0]], len(differ))


@pytest.mark.parametrize("mode", ["unicode", "space"])
def test_other_modes_spell_the_text(mode: str) -> None:
    splitter = Splitter(mode)  # type: ignore[arg-type]
    for piece in "Don't (a-b) नमस्ते। naïve e\u0301t 3.14 <unk>x".split():
        assert "".join(splitter.words(piece)) == piece
    assert Splitter("unicode").words("नमस्ते।") == ["नमस्ते", "।"]


def test_a_language_that_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="--lang"):
        Splitter("spacy", "qq")
