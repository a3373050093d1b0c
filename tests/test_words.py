"""Raw text to words: each distinct piece split once gives what spaCy's tokenizer gives for the whole text."""

from __future__ import annotations

import itertools
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.formats import words
from derivlang.formats.opening import open_lines
from derivlang.formats.pieces import Splitting
from derivlang.formats.words import WITH_RULES, Splitter, _at_end, _stretches
from tests.helpers import read_text
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
    split = Splitting(Splitter("spacy", language)).texts(texts)
    flat = split.types.to_pylist()
    return [[flat[w] for w in split.words[a:b]] for a, b in itertools.pairwise(split.units)]


SPACES = [code for code in range(0x110000) if chr(code).isspace()]  # none is assigned after Python's tables
NEAR = [0x180E, 0x200B, 0x200C, 0x200D, 0xFEFF]  # look like white space, or were


@pytest.mark.parametrize("mode", ["space", "unicode"])
def test_what_divides_words(mode: Any) -> None:
    """Tokenised text is divided by white space of ASCII, raw text by what `str.isspace` knows, not by Arrow."""
    splitter = Splitter(mode)
    divides = [code for code in SPACES if mode != "space" or code < 128]
    assert divides[:10] == [9, 10, 11, 12, 13, 28, 29, 30, 31, 32]
    for code in [*SPACES, *NEAR]:
        space = chr(code)
        texts = [f"a{space}b c.", f"{space}x{space}{space}y{space}", f"{space}{space}", f"e {space} é", ""]
        split = Splitting(splitter).texts(texts)
        types = split.types.to_pylist()
        found = [[types[w] for w in split.words[a:b]] for a, b in itertools.pairwise(split.units)]
        pattern = f"[{re.escape(''.join(map(chr, divides)))}]+"
        pieces = [[piece for piece in re.split(pattern, text) if piece] for text in texts]
        assert found == [[word for piece in row for word in splitter.words(piece)] for row in pieces], hex(code)
        assert split.gaps.texts(split.words, split.types, split.units).to_pylist() == texts


def test_a_byte_order_mark_is_white_space_at_the_head_of_a_file_only() -> None:
    split = Splitting(Splitter("space")).texts(["\ufeffa b\n", "\ufeffc\n"], heads=[0])
    assert split.types.take(pa.array(split.words)).to_pylist() == ["a", "b", "\ufeffc"]
    assert split.gaps.texts(split.words, split.types, split.units).to_pylist() == ["\ufeffa b\n", "\ufeffc\n"]


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
    lines = itertools.islice(open_lines(SHARED / file), 600)
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
    tokenizer, seen = words._tokenizer_of_long("en"), []
    monkeypatch.setattr(words, "_tokenizer_of_long", lambda _: lambda text: seen.append(len(text)) or tokenizer(text))
    text = piece * (20_000 // len(piece))
    assert "".join(Splitter("spacy", "en").words(text)) == text
    assert max(seen) <= 4096
    assert len(seen) <= 2 * len(text) / 4096 + 2


@pytest.mark.parametrize(
    "piece", ["a", "a-", "1,", "é", "éa'", "é\u0301", 'א"', "ア", "👩\u200d", "🇦", "\u0301", "<unk>"]
)
def test_the_time_of_unicode_words_is_linear(piece: str) -> None:
    """A word may be of any length, so no stretch is cut; with quadratic time, this would not end within an hour."""
    text = piece * 200_000
    assert "".join(Splitter("unicode").words(text)) == text


@pytest.mark.parametrize("text", ["a" * 50_000, "é" * 50_000, "a\u200c" * 25_000])
def test_a_unicode_word_of_any_length_is_one(text: str) -> None:
    assert Splitter("unicode").words(text) == [text]


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


# languages without spaces: a sentence, and its words

UNSPACED = {
    "ja": "私 は 猫 が 好き です 。",
    "zh": "我 喜欢 猫 。",
    "th": "ฉัน ชอบ แมว สี ดำ",
    "lo": "ຂ້ອຍ ມັກ ແມວ",
    "km": "ខ្ញុំ ចូលចិត្ត ឆ្មា",
    "my": "ကျွန်တော် ကြောင် ကြိုက်တယ် ။",
    "bo": "ང་ ཞི་མི་ ལ་ དགའ །",
}


@pytest.mark.parametrize("rule", [("spacy", "en"), ("spacy", "xx"), ("unicode", "en")], ids="-".join)
@pytest.mark.parametrize("code", UNSPACED)
def test_text_that_no_rule_divides_is_refused(code: str, rule: tuple[Any, str], tmp_path: Path) -> None:
    """The error has the line, and what would divide the words: no other `--words` than for words with spaces."""
    file = tmp_path / "x.txt"
    file.write_text(f"Two.\n\n{UNSPACED[code].replace(' ', '')}\n{UNSPACED[code].replace(' ', '')}\n", "utf-8")
    with pytest.raises(DataError) as caught:
        list(read_text(file, Splitter(*rule)))
    assert (caught.value.id, caught.value.where) == ("undivided-text", f"{file}:3")
    fix = str(caught.value.fix)
    assert re.findall(r"--lang (\w+)", fix) == ([code] if code in WITH_RULES else [])
    left_out = {"unicode"} if code in WITH_RULES and rule[0] == "unicode" else set()
    assert set(re.findall(r"leave out --words (\w+)", fix)) == left_out
    assert set(re.findall(r"--words (\w+)", fix)) == {"space"} | left_out


@pytest.mark.parametrize("code", UNSPACED)
def test_text_that_spaces_or_its_own_rules_divide_is_read(code: str, recwarn: pytest.WarningsRecorder) -> None:
    for splitter in (Splitter("spacy", "en"), Splitter("unicode"), Splitter("space")):
        assert len(Splitting(splitter).texts([UNSPACED[code]] * 3).words) >= 3 * len(UNSPACED[code].split())
    if code == "zh":
        assert len(Splitting(Splitter("spacy", "zh")).texts([UNSPACED[code].replace(" ", "")]).words) == 5
    assert not recwarn.list


@given(others=st.integers(1, 9), undivided=st.integers(1, 9))
@settings(max_examples=20)
def test_fewer_than_half_of_the_lines_are_a_warning(others: int, undivided: int) -> None:
    """In words that the user has divided by spaces, half of the lines are a warning, and fewer are not."""
    lines = ["There is a cat ."] * others + ["私は猫が好きです。"] * undivided
    if undivided >= others:
        with pytest.raises(DataError, match="undivided-text"):
            Splitting(Splitter("spacy", "en")).texts(lines)
        with pytest.warns(DerivlangWarning, match=f"{undivided} line"):
            Splitting(Splitter("space")).texts(lines)
    else:
        with pytest.warns(DerivlangWarning, match=f"{undivided} line.*--lang ja"):
            Splitting(Splitter("spacy", "en")).texts(lines)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Splitting(Splitter("space")).texts(lines)


@pytest.mark.parametrize("name", ["東京都庁舎前駅", "ประเทศไทย"])
def test_names_of_other_languages_in_a_line_are_no_matter(name: str, recwarn: pytest.WarningsRecorder) -> None:
    Splitting(Splitter("spacy", "en")).texts([f"The station is called {name} ({name}) there, in the middle of town."])
    assert not recwarn.list


@pytest.mark.parametrize("code", ["ja", "th", "ko", "vi", "lo", "my", "nope"])
def test_a_missing_tokenizer_is_advised_by_what_helps(code: str) -> None:
    try:
        Splitter("spacy", code)
    except UsageError as error:
        advice = str(error.fix)
        assert ("unicode" in advice) == (code in ("ko", "vi", "nope"))  # these have spaces
        assert ("pip install" in advice) == (code in ("ja", "th", "ko", "vi"))


@pytest.mark.parametrize(
    ("language", "piece", "words"),
    [
        ("ar", "صباحاً.", ["صباحاً", "."]),
        ("ar", "(كلمة.)", ["(", "كلمة", ".", ")"]),
        ("ar", "صباحاً...", ["صباحاً", "..."]),
        ("ar", "12.", ["12", "."]),
        ("ar", "3.5", ["3.5"]),
        ("ar", "د.", ["د."]),
        ("grc", "λόγος.", ["λόγος", "."]),
    ],
)
def test_a_final_stop_is_a_word_where_spacy_has_no_rule_for_it(language: str, piece: str, words: list[str]) -> None:
    assert Splitter("spacy", language).words(piece) == words
