"""Raw text to words: each distinct piece split once gives what spaCy's tokenizer gives for the whole text."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import UsageError
from derivlang.formats.opening import open_lines
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import Splitter, _at_end, _stretches
from tests.real import SHARED, needs_data
from tests.strategies import laws

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
        ("text/wikitext-2/wiki.valid.tokens", "en"),
    ],
)
def test_real_text(file: str, language: str) -> None:
    lines = itertools.islice(open_lines(SHARED / file), 1500)
    texts = [cell.replace("<unk>", "unk") for _, line in lines for cell in line.split("\t")]
    tokenizer = spacy.blank(language).tokenizer
    expected = [[t.text for t in tokenizer(text) if not t.is_space] for text in texts]
    differ = [
        i for i, (ours, theirs) in enumerate(zip(words_of(texts, language), expected, strict=True)) if ours != theirs
    ]
    assert not differ, (texts[differ[0]], len(differ))


MARKS = [
    *"().,;:!?'\"-/…*#@$%&aZ1é中😀`",
    "...",
    ":)",
    "'s",
    "n't",
    "p.m.",
    "http://a.b/",
    "x@y.de",
    "10km",
    "C++",
    "--",
]


@laws
@given(
    st.lists(st.tuples(st.sampled_from(MARKS), st.integers(1, 90)), min_size=1, max_size=6),
    st.sampled_from(["en", "de", "fr", "es", "ru", "hu", "el", "tr", "zh"]),
)
def test_long_runs_of_marks_are_split_as_spacy_splits_them(runs: list[tuple[str, int]], language: str) -> None:
    text = "".join(mark * count for mark, count in runs)
    assert Splitter("spacy", language).words(text) == [token.text for token in plain_tokenizer(language)(text)]


@cache
def plain_tokenizer(language: str) -> Any:
    return spacy.blank(language).tokenizer


def test_a_long_piece_is_cut_in_linear_time() -> None:
    """Some megabytes without a space would otherwise be copied once for each of their stretches."""
    copied = 0

    class Piece(str):
        def __getitem__(self, at: Any) -> str:
            nonlocal copied
            found = Piece(super().__getitem__(at))
            copied += len(found)
            return found

    piece = Piece("ab." * 30_000 + "c" * 90_000)
    assert "".join(_stretches(piece)) == piece
    assert copied < 2 * len(piece)


@pytest.mark.parametrize("piece", ["(", ")", ":)", "'s", "😀", "a-", "…", "x(", "a", "1,", '."', "a.b@c", "http://a/"])
def test_the_work_for_a_piece_is_bounded(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """spaCy's tokenizer sees a bounded stretch, and each search for a suffix a bounded end of it."""
    splitter, seen = Splitter("spacy", "en"), []
    split = splitter._split
    monkeypatch.setattr(splitter, "_split", lambda text: seen.append(len(text)) or split(text))
    text = piece * (50_000 // len(piece))
    assert "".join(splitter.words(text)) == text
    assert max(seen) <= 4096
    assert len(seen) <= 2 * len(text) / 4096 + 2


@pytest.mark.parametrize(
    ("text", "looks"), [("a" * 5000 + ")", 65), ("a" * 50 + ")", 51), ("a" * 4000 + "." * 300, 4300)]
)
def test_a_suffix_is_searched_at_the_end(text: str, looks: int) -> None:
    class Pattern:
        looked = 0

        def search(self, text: str, begin: int = 0) -> re.Match[str] | None:
            self.looked = max(self.looked, len(text) - begin)
            return pattern.search(text, begin)

    pattern, spy = re.compile(r"\)$|\.\.+$"), Pattern()
    assert _at_end(spy)(text).span() == pattern.search(text).span()  # type: ignore[arg-type, union-attr]
    assert spy.looked <= looks


@pytest.mark.parametrize("mode", ["unicode", "space"])
def test_other_modes_spell_the_text(mode: str) -> None:
    splitter = Splitter(mode)  # type: ignore[arg-type]
    for piece in "Don't (a-b) नमस्ते। naïve e\u0301t 3.14 <unk>x".split():
        assert "".join(splitter.words(piece)) == piece
    assert Splitter("unicode").words("नमस्ते।") == ["नमस्ते", "।"]


def test_a_language_that_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="--lang"):
        Splitter("spacy", "qq")
