"""dialect: one map for the whole language, by sounds, suffixes and made-up words; saved as rules."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang import derive
from derivlang.core.arrow import string_array
from derivlang.core.errors import DerivlangError, UsageError
from derivlang.core.lexicon import SPECIALS, Lexicon
from derivlang.pipeline import Pipeline
from derivlang.transforms import dialect, letters
from derivlang.transforms.letters import LetterModel, in_case, is_capitals
from tests.commands import run, written
from tests.helpers import make, right, undone
from tests.real import SHARED, needs_data
from tests.strategies import laws

LETTERS = "abdegiklmnoprstuvzABDEéÉñабвАБαβاب"
WORD = st.text(LETTERS, min_size=1, max_size=9)
ODD = st.text("ab1.-' <中é\t", min_size=1, max_size=4)
COUNTS = st.dictionaries(WORD | ODD, st.integers(1, 40), max_size=40)
RATE = st.sampled_from([0.0, 0.2, 0.5, 1.0])
TABLE = letters.letters()


def fitted(spec: str, words: dict[str, int]) -> Lexicon:
    return Pipeline.parse(spec).fit(string_array(list(words)), np.array(list(words.values()), np.int64))


def mapped(lexicon: Lexicon, words: list[str]) -> list[str]:
    out: list[str] = lexicon.apply(string_array(words)).to_pylist()
    return out


def near(letter: str) -> set[str]:
    point = ord(letter)
    return {chr(other) for other in TABLE.near[TABLE.near_at[point] : TABLE.near_at[point + 1]]}


def has_alphabet(word: str) -> bool:
    """By the rule of the page, a character at a time."""
    kinds = [int(TABLE.kind[ord(c)]) if ord(c) < len(TABLE.kind) else 0 for c in word]
    return 2 in kinds and 0 not in kinds


@needs_data
def real_counts() -> Counter[str]:
    return Counter((SHARED / "text" / "wikitext-2" / "wiki.valid.tokens").read_text("utf-8").split())


# the table of sounds


def test_near_letters_are_small_letters_with_the_same_case_and_near_in_both_directions() -> None:
    listed = [chr(point) for point in range(len(TABLE.kind)) if near(chr(point))]
    assert len(listed) > 200
    for letter in listed:
        assert letter not in near(letter)
        for other in near(letter):
            assert letter in near(other)
            assert (letter.upper() == letter) == (other.upper() == other)
        for form in (letter, letter.upper()):
            assert len(form) == 1
            assert form.lower() == letter
            assert TABLE.small[ord(form)] == ord(letter)
            assert has_alphabet(form)
    assert near("p") == {"b"}
    assert near("b") == {"p", "v"}
    assert near("é") == {"á", "í"}
    assert near("h") == set()


@pytest.mark.parametrize(
    "word",
    "don't l’ Café Cafe\u0301 мама ΛΌΓΟΣ ქართული ինչպե՞ս हिन्दी كَتَبَ می\u200cخواهم well-known người col·lecció ß İ".split(
        " "
    ),
)
def test_words_with_an_alphabet(word: str) -> None:
    assert has_alphabet(word)
    points = np.frombuffer(word.encode("utf-32-le"), np.uint32)
    assert TABLE.has_alphabet(points, np.array([0, len(points)])).tolist() == [True]


# laws of all parts


@laws
@given(COUNTS, RATE, RATE, RATE)
def test_it_is_one_map_for_any_order_of_the_vocabulary_and_saved(
    counts: dict[str, int], phon: float, suffix: float, nonce: float
) -> None:
    if not (phon or suffix or nonce):
        return
    spec = f"dialect:phon={phon}:suffix={suffix}:nonce={nonce}:suffixes=5"
    asked = [*counts, "unseen", "Unseen", "UNSEEN", "абва", *SPECIALS, "2023", "中文", "B2B"]
    lexicon = fitted(spec, counts)
    images = mapped(lexicon, asked)
    assert mapped(fitted(spec, dict(reversed(counts.items()))), asked) == images
    pipeline = Pipeline.parse(spec)
    saved = pipeline.save(lexicon)
    assert mapped(pipeline.fit(saved=saved), asked) == images
    assert pipeline.save(pipeline.fit(saved=saved)) == saved
    for word, image in zip(asked, images, strict=True):
        if not has_alphabet(word):
            assert image == word
            continue
        assert image
        assert has_alphabet(image)
        if not nonce:
            assert word[:1].isupper() == image[:1].isupper()
        if is_capitals(word):
            assert not any(c.islower() for c in image)
    small = dict(zip(asked, images, strict=True))
    assert small["Unseen"] == in_case("Unseen", small["unseen"])
    assert small["UNSEEN"] == in_case("UNSEEN", small["unseen"])


@laws
@given(st.lists(WORD, min_size=1, max_size=30), RATE.filter(bool))
def test_letters_change_alike_in_equal_contexts(words: list[str], rate: float) -> None:
    """And each becomes a near one, in its case; other letters stay."""
    seen: dict[tuple[str, str, str], str] = {}
    for word, image in zip(words, mapped(fitted(f"dialect:phon={rate}", {}), words), strict=True):
        assert len(image) == len(word)
        small = word.lower()
        for place, (letter, after) in enumerate(zip(word, image, strict=True)):
            context = (small[place - 1 : place], small[place], small[place + 1 : place + 2])
            assert seen.setdefault(context, after.lower()) == after.lower()
            assert letter.isupper() == after.isupper()
            assert after.lower() in near(small[place]) | {small[place]}
            if rate == 1.0 and near(small[place]):
                assert after != letter


@laws
@given(COUNTS, st.sampled_from(["phon", "suffix", "nonce"]))
def test_a_larger_rate_changes_what_a_smaller_one_changes(counts: dict[str, int], part: str) -> None:
    words = list(counts)
    low, high, most = (mapped(fitted(f"dialect:{part}={rate}", counts), words) for rate in (0.3, 0.6, 1.0))
    if part != "phon":  # whole words; a context is one of several in a word
        for word, *images in zip(words, low, high, most, strict=True):
            assert images[0] in (word, images[1])
            assert images[1] in (word, images[2])
        return
    for word, *images in zip(words, low, high, most, strict=True):
        for letter, a, b, c in zip(word, *images, strict=True):
            assert a in (letter, b)
            assert b in (letter, c)


def test_both_cases_of_a_letter_are_letters() -> None:
    """Else a saved vocabulary of small letters would hold words without an alphabet: Ɣ has ɣ, which the table lacks."""
    table = letters.letters()
    of_table = np.flatnonzero(table.kind == 2)
    for case in (table.small, table.capital):
        assert (table.kind[case[of_table]] == 2).all()


@needs_data
@pytest.mark.parametrize("part", ["phon", "suffix", "nonce"])
def test_a_part_at_0_or_almost_0_changes_nothing(part: str) -> None:
    counts = real_counts()
    words = [word for word in counts if has_alphabet(word)]
    assert mapped(fitted(f"dialect:{part}=1e-12", counts), words) == words
    others = ":".join(f"{name}=0.5" for name in ("phon", "suffix", "nonce") if name != part)
    (step,) = fitted(f"dialect:{others}", counts).steps
    assert isinstance(step, dialect.DialectMap)
    arrow = string_array(words)
    parts = {"phon": step.sounds, "suffix": step.endings, "nonce": lambda words: step.made_up(words, words)}
    assert {name: parts[name](arrow).equals(arrow) for name in parts} == {name: name == part for name in parts}


@needs_data
def test_the_parts_follow_each_other() -> None:
    """Suffixes are counted in the words that phon makes, as in a chain of two; then nonce replaces whole words."""
    counts = real_counts()
    words = list(counts)
    sounds_only = mapped(fitted("dialect:phon=0.3", counts), words)
    merged: Counter[str] = Counter()
    for word, image in zip(words, sounds_only, strict=True):
        merged[image] += counts[word]
    both = mapped(fitted("dialect:phon=0.3:suffix=0.5", counts), words)
    suffixed = fitted("dialect:suffix=0.5", merged)
    assert mapped(suffixed, sounds_only) == both
    every = mapped(fitted("dialect:phon=0.3:suffix=0.5:nonce=0.3", counts), words)
    replaced = sum(a != b for a, b in zip(both, every, strict=True)) / sum(map(has_alphabet, words))
    assert 0.28 < replaced < 0.32


# the shares of what changes, over seeds


def within(found: int, number: int, rate: float) -> bool:
    """Whether a count is within four standard deviations of what a binomial distribution expects."""
    return abs(found - number * rate) <= 4 * (number * rate * (1 - rate)) ** 0.5


@needs_data
def test_contexts_change_at_the_rate_and_near_letters_are_even() -> None:
    words = [word for word in real_counts() if has_alphabet(word)]
    # A place for each context that may change: the word and the position in it.
    places: dict[str, tuple[int, int]] = {}
    for number, word in enumerate(words):
        small = f" {word.lower()} "
        for place in range(len(word)):
            if near(small[place + 1]):
                places[small[place : place + 3]] = (number, place)
    assert len(places) > 2000
    becomes: Counter[tuple[str, str]] = Counter()
    for seed in range(20):
        images = mapped(fitted(f"dialect:phon=0.07:seed={seed}", {}), words)
        after = {context: images[number][place].lower() for context, (number, place) in places.items()}
        changed = [(context[1], letter) for context, letter in after.items() if context[1] != letter]
        assert within(len(changed), len(places), 0.07)
        becomes.update(changed)
    for letter in "abeiosv":
        found = [becomes[letter, other] for other in near(letter)]
        expected = sum(found) / len(found)
        assert expected > 20
        assert sum((n - expected) ** 2 / expected for n in found) < 14  # chi-squared, p < 0.001 for two degrees


@needs_data
def test_suffixes_change_at_the_rate() -> None:
    counts = real_counts()
    changed, number = 0, 0
    for seed in range(20):
        lexicon = fitted(f"dialect:suffix=0.5:seed={seed}", counts)
        suffixes: dict[str, str] = lexicon.steps[0].suffixes  # type: ignore[attr-defined]
        assert len(suffixes) == 200
        assert {"ing", "ed", "ly", "tion"} <= set(suffixes)
        assert all(len(suffix) == len(image) for suffix, image in suffixes.items())
        number += len(suffixes)
        changed += sum(a != b for a, b in suffixes.items())
    assert within(changed, number, 0.5)


@needs_data
@pytest.mark.parametrize("rate", [0.001, 0.8])
def test_words_are_made_up_at_the_rate(rate: float) -> None:
    counts = real_counts()
    words = sorted({word.lower() for word in counts if has_alphabet(word)})
    changed = 0
    for seed in range(5):
        images = mapped(fitted(f"dialect:nonce={rate}:seed={seed}", counts), words)
        changed += sum(a != b for a, b in zip(words, images, strict=True))
    assert within(changed, 5 * len(words), rate)


@needs_data
def test_seeds_and_steps_differ() -> None:
    counts = real_counts()
    words = list(counts)
    for spec in ("dialect:phon=0.3", "dialect:suffix=0.5", "dialect:nonce=0.5"):
        first, second = (mapped(fitted(f"{spec}:seed={seed}", counts), words) for seed in (1, 2))
        differ = sum(a != b for a, b in zip(first, second, strict=True))
        assert differ > 0.3 * len(words)
    twice = mapped(fitted("dialect:nonce=0.5,dialect:nonce=0.5", counts), words)
    once = mapped(fitted("dialect:nonce=0.5", counts), words)
    assert sum(a != b for a, b in zip(twice, words, strict=True)) > 1.3 * sum(
        a != b for a, b in zip(once, words, strict=True)
    )


# suffixes


def test_the_longest_frequent_suffix_is_replaced_by_one_of_its_length() -> None:
    counts = {"walking": 5, "talking": 5, "walked": 4, "talked": 4, "nations": 3, "stations": 3, "gamma": 2}
    lexicon = fitted("dialect:suffix=1.0", counts)
    suffixes: dict[str, str] = lexicon.steps[0].suffixes  # type: ignore[attr-defined]
    assert "king" not in suffixes  # more than half of the word
    assert {"ng", "ing", "ed", "ked", "ns"} <= set(suffixes)
    assert "g" not in suffixes
    for word in ("jumping", "Ring", "JUMPING", "walked", "ing", "ng"):
        (image,) = mapped(lexicon, [word])
        fits = [s for s in suffixes if word.lower().endswith(s) and 2 * len(s) <= len(word)]
        if not fits:
            assert image == word
            continue
        longest = max(fits, key=len)
        new = suffixes[longest]
        assert new != longest
        assert image == word[: -len(longest)] + (new.upper() if word.isupper() else new)


def test_the_number_of_suffixes_is_a_parameter_and_ties_go_by_the_alphabet() -> None:
    counts = {"aabb": 2, "aacc": 2, "aaxx": 3}
    for number, expected in ((2, ["xx", "bb"]), (3, ["xx", "bb", "cc"]), (200, ["xx", "bb", "cc"])):
        lexicon = fitted(f"dialect:suffix=0.5:suffixes={number}", counts)
        assert list(lexicon.steps[0].suffixes) == expected  # type: ignore[attr-defined]


def test_a_suffix_with_a_vowel_sign_first_becomes_one_that_has_it_too() -> None:
    counts = {"सरकारों": 9, "सड़कों": 7, "नदियाँ": 5, "सरकारी": 4, "लड़कियाँ": 3, "किताबें": 3, "बातचीत": 2}
    for seed in range(10):
        suffixes = fitted(f"dialect:suffix=1.0:seed={seed}", counts).steps[0].suffixes  # type: ignore[attr-defined]
        for suffix, image in suffixes.items():
            assert dialect._is_mark(suffix[0]) == dialect._is_mark(image[0])


# made-up words


def test_made_up_words_have_the_letters_of_the_model() -> None:
    """Each letter follows its two letters somewhere in the words, and the last one ends a word."""
    words = ["banana", "bandana", "cabana", "ananas"]
    points = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    model = LetterModel.of(points, np.append(0, np.cumsum([len(word) for word in words])))
    rng = np.random.default_rng(0)
    made = model.words(np.full(300, 7), lambda rows, place: rng.random(len(rows)))
    found = {"".join(map(chr, row)) for row in made.reshape(300, 7)}
    inner = {f"  {word}"[i : i + 3] for word in words for i in range(len(word) - 1)}
    for word in found:
        assert {f"  {word}"[i : i + 3] for i in range(len(word) - 2)} <= inner
        assert word[-1] in "as"
    assert len(found) > 5
    starts = Counter(chr(first) for first in made.reshape(300, 7)[:, 0])
    assert starts["b"] > starts["c"] > 0  # two words of the four begin with b


def test_the_example_of_the_model_is_right() -> None:
    points = np.frombuffer("catcar".encode("utf-32-le"), np.uint32)
    model = LetterModel.of(points, np.array([0, 3, 6]))

    def last(second: str, first: str) -> Counter[str]:
        count = 400
        before = [np.full(count, ord(letter), np.uint32) for letter in (second, first)]
        found = model._letters(*before, np.ones(count, bool), np.arange(count) / count)
        return Counter(map(chr, found))

    assert last("c", "a") == {"t": 200, "r": 200}
    assert last("c", "r") == {"t": 200, "r": 200}


@needs_data
def test_made_up_words_are_new_and_as_long_as_their_words() -> None:
    counts = real_counts()
    known = {word.lower() for word in counts}
    words = sorted(word for word in known if has_alphabet(word) and len(word) > 4)
    images = mapped(fitted("dialect:nonce=1.0", counts), words)
    assert sum(image in known for image in images) < 0.001 * len(words)
    longer = np.array([len(image) - len(word) for word, image in zip(words, images, strict=True)])
    assert 0 <= longer.mean() < 0.3  # words of the vocabulary are drawn again, and most of these are short


@pytest.mark.parametrize("mean", [1, 3, 8, 64])
def test_lengths_are_of_the_poisson_distribution(mean: int) -> None:
    """By its formula, at evenly spaced draws; a length of 0 is 1."""
    n = 100_000
    found = np.bincount(dialect._poisson(np.full(n, mean), np.arange(n) / n), minlength=3 * mean + 40) / n
    expected = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(len(found))]
    expected[:2] = [0, sum(expected[:2])]
    assert np.abs(found - expected).max() < 2 / n


def test_only_words_of_the_list_are_made_up(tmp_path: Path) -> None:
    listed = written(tmp_path / "words.txt", "\ufeffthe\r\n\nOf \n中文\n2023\n")
    counts = Counter("the of cat dog bird sees walked river lake boat".split())
    lexicon = fitted(f"dialect:nonce=1.0:words={listed}", counts)
    words = ["the", "The", "THE", "of", "OF", "cat", "lake"]
    images = dict(zip(words, mapped(lexicon, words), strict=True))
    assert {word for word in words if images[word] == word} == {"cat", "lake"}
    assert images["The"] == images["the"].capitalize()
    assert images["OF"] == images["of"].upper()
    saved = Pipeline.parse(f"dialect:nonce=1.0:words={listed}").save(lexicon)
    listed.unlink()
    assert mapped(Pipeline.parse(f"dialect:nonce=1.0:words={listed}").fit(saved=saved), words) == list(images.values())


def test_an_empty_vocabulary_changes_nothing() -> None:
    for counts in ({}, {"2023": 4, "中文": 2, ".": 9}, {"'": 1}):
        assert mapped(fitted("dialect:suffix=1.0:nonce=1.0", counts), ["cat", "Dog"]) == ["cat", "Dog"]
    assert mapped(fitted("dialect:nonce=1.0", {"don't": 2}), ["cat", "don't"]) == ["cat", "don't"]  # no word of letters
    assert all(set(word) == {"a"} for word in mapped(fitted("dialect:nonce=1.0", {"a": 1}), ["a", "cat", "don't"]))


# examples, sets, and errors


def test_the_examples_of_the_module_are_right() -> None:
    (line,) = (line for line in (dialect.__doc__ or "").splitlines() if "   ->   " in line)
    source, _, rest = line.strip().partition("   ->   ")
    image, _, spec = rest.partition("     ")
    assert derive(source, spec).text == image
    for line in (letters.__doc__ or "").splitlines():
        for letter, _, others in (part.strip().partition(" -> ") for part in line.split("    ") if " -> " in part):
            assert near(letter) == ({*others.split()} if "none" not in others else set())


@pytest.mark.parametrize(
    "spec", ["dialect:phon=0.2", "dialect:phon=0.2:suffix=0.5:nonce=0.5:words=WORDS,dialect:nonce=0.1:seed=2"]
)
def test_lemmas_stay_and_undo_gives_the_source(spec: str, tmp_path: Path) -> None:
    listed = written(tmp_path / "w.txt", "the\nof\nin\n")
    spec = spec.replace("WORDS", str(listed))
    lines = ("1 The the DET 2 det", "2 boats boat NOUN 3 nsubj", "3 left leave VERB 0 root")
    rows = ["{} {} {} {} _ _ {} {} _ _".format(*line.split()).replace(" ", "\t") for line in lines]
    source = written(tmp_path / "a.conllu", "\n".join([*rows, "\n"]))
    out = make(spec, source, tmp_path / "out")
    listed.unlink()  # its words are in lexicon.tsv
    right(out)
    assert undone(out, suffix=".conllu") == source.read_bytes()
    ran = run("export", out, "--format", "conllu", "-o", tmp_path / "derived")
    assert ran.code == 0
    derived = [line.split("\t") for line in (tmp_path / "derived").read_text("utf-8").splitlines() if "\t" in line]
    assert [cells[2] for cells in derived] == ["the", "boat", "leave"]
    assert [cells[1] for cells in derived] != ["The", "boats", "left"]


@needs_data
@pytest.mark.parametrize(
    "file",
    [
        "ud/UD_English-EWT/en_ewt-ud-dev.conllu",
        "ner/wikiann/fr/test.tsv",
        "qa/xquad/xquad.es.json",
        "text/wikitext-2/wiki.valid.tokens",
    ],
)
def test_real_sets_are_right_and_undone(file: str, tmp_path: Path) -> None:
    spec = "dialect:phon=0.07:suffix=0.5:nonce=0.01,dialect:nonce=0.001:seed=2"
    out = make(
        spec,
        SHARED / file,
        tmp_path / "out",
        words="space" if "wiki." in file else None,
        language="es" if ".es." in file else None,
    )
    right(out)
    back = undone(out, suffix=Path(file).suffix)
    source = (SHARED / file).read_bytes()
    if file.endswith(".json"):
        assert json.loads(back) == json.loads(source)  # undo writes JSON without the white space between its values
    else:
        assert back == source
    assert "dialect:nonce=0.001:seed=2" in (out / "lexicon.tsv").read_text("utf-8")


def test_it_goes_with_trans() -> None:
    text = "One of the old FERRIES crossed the lake in 2023 ."
    changed = derive(text, "dialect:phon=0.3").text
    assert derive(text, "dialect:phon=0.3,trans").text == derive(changed, "trans").text
    script = derive(text, "trans").text
    assert derive(text, "trans,dialect:phon=0.3").text == derive(script, "dialect:phon=0.3").text != script


def test_text_without_an_alphabet_is_warned_of() -> None:
    pipeline, lexicon = Pipeline.parse("dialect:phon=0.1"), fitted("dialect:phon=0.1", {})
    types = string_array(["cat", "猫", "2023", "."])
    assert pipeline.warnings(lexicon, types, np.array([60, 1, 20, 20])) == []
    assert pipeline.warnings(lexicon, types, np.array([50, 2, 20, 28])) == [
        "2.0 % of the words are in an alphabet that dialect has no sounds for; they stay"
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("dialect", "needs a probability above 0"),
        ("dialect:phon=0:suffix=0:nonce=0", "needs a probability above 0"),
        ("dialect:phon=1.5", "must be at most 1"),
        ("dialect:suffix=-0.1", "must be at least 0"),
        ("dialect:nonce=nan", "must be a finite number"),
        ("dialect:suffix=0.5:suffixes=1", "must be at least 2"),
        ("dialect:phon=0.1:words=w.txt", "nonce is 0"),
        ("dialect:suffix=0.5", "needs-lexicon"),
        ("dialect:nonce=0.5", "needs-lexicon"),
    ],
)
def test_a_wrong_spec(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        derive("a b .", spec)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "missing-file"),
        ("folder", "directory"),
        (b"", "the file has no word"),
        (b"\n \n", "the file has no word"),
        (b"the\nof the\n", r"w\.txt:2: 'of the' is more than one word"),
        (b"the\t129\n", "more than one word"),
        (b"the\n\xff\n", r"w\.txt:2: the file is not UTF-8"),
    ],
)
def test_a_wrong_list_of_words(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(DerivlangError, match=message):
        make(f"dialect:nonce=0.5:words={path}", "demo", tmp_path / "out")


def test_a_damaged_lexicon_is_refused(tmp_path: Path) -> None:
    spec = f"dialect:suffix=0.5:nonce=0.5:words={written(tmp_path / 'w.txt', 'the')}"
    pipeline = Pipeline.parse(spec)
    saved = pipeline.save(fitted(spec, {"walking": 3, "talked": 2, "the": 1}))
    assert saved is not None
    for damaged in (
        saved.replace("kind\tword", "kind"),
        saved.replace("listed\tthe\t\n", "listed\tthe\n"),
        saved.replace("listed\tthe\t\n", "listed\tthe\tof\n"),
        saved.replace("listed\tthe\t\n", "listed\tthe\t\n" * 2),
        saved.replace("listed\tthe", "list\tthe"),
        saved.replace("suffix\ted\t", "suffix\ted\tx"),
        saved.replace("word\tthe", "word\t中"),
        saved.rstrip("\n"),
    ):
        assert damaged != saved
        with pytest.raises(DerivlangError, match=r"\[lexicon\]"):
            pipeline.fit(saved=damaged)
