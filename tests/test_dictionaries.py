"""Dictionaries: files read and written, rankings and cuts, noise, and `derivlang dict`."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang import Pipeline
from derivlang.commands.pretrain import Pretrain
from derivlang.core.errors import DataError, UsageError
from derivlang.core.lexicon import SPECIALS
from derivlang.core.messages import DerivlangWarning
from derivlang.formats.dictionary import read_dictionary, written
from derivlang.lexical.dictionary import wrong_translations
from derivlang.lexical.settings import TokenizerOptions, percent, portion
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.train import train
from derivlang.lexical.twin import twin_of
from derivlang.lexical.vocabulary import cut
from derivlang.sources.request import SourceRequest
from derivlang.training.translations import read_words
from derivlang.transforms.scripts import load_script
from tests.commands import run
from tests.helpers import make, rows
from tests.reference import rounded
from tests.strategies import any_word, laws

SENTENCES = [f"w{i % 97} w{i % 13} common the . w{i}\n" for i in range(400)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.train.tokens"
    path.write_text("".join(SENTENCES) + "<unk> again .\n", "utf-8")
    return path


def counts_of(corpus: Path) -> Counter[str]:
    counts = Counter(corpus.read_text("utf-8").split())
    del counts["<unk>"]
    return counts


def dictionary(source: Path, out: Path, *options: object, spec: str = "trans") -> Any:
    return run("dict", "--t", spec, source, "-o", out, "--json", "--force", *options).json


def sources(path: Path) -> list[str]:
    return [word for word, _ in read_dictionary(path).pairs]


# shares


@laws
@given(st.fractions(0, 100), st.integers(0, 10**6))
def test_a_portion_is_rounded_half_up(share: Fraction, n: int) -> None:
    assert portion(share, n) == rounded(share, n)


def test_shares_are_read_exactly() -> None:
    assert percent("12.5", "--x") == Fraction(25, 2)
    assert percent("1/3", "--x") == Fraction(1, 3)
    for text in ("0", "-1", "100.1", "x", "nan", "1/0", ""):
        with pytest.raises(UsageError, match="--x"):
            percent(text, "--x")
    assert percent("0", "--x", zero=True) == 0
    with pytest.raises(UsageError, match="below 100"):
        percent("100", "--x", hundred=False)


# rankings and cuts


vocabularies = st.dictionaries(any_word, st.integers(1, 50), min_size=1, max_size=60)


@laws
@given(
    vocabularies,
    st.integers(1, 100),
    st.integers(1, 100),
    st.integers(0, 99),
    st.sampled_from(["random", "frequency", "mass"]),
    st.integers(0, 5),
    st.randoms(),
)
def test_cuts_are_exact_nested_disjoint_and_of_the_set_of_words(
    counts: dict[str, int], one: int, other: int, heldout: int, by: Any, seed: int, random: Any
) -> None:
    words = list(counts)

    def run_cut(names: list[str], coverage: int) -> tuple[list[str], list[str]] | None:
        numbers = np.array([counts[n] for n in names], np.int64)
        try:
            found = cut(pa.array(names), numbers, coverage=coverage, by=by, heldout=heldout, seed=seed)
        except UsageError as error:
            assert error.id == "coverage"  # noqa: PT017
            return None
        return [names[i] for i in found.chosen], [names[i] for i in found.heldout]

    small, large = (run_cut(words, share) for share in sorted((one, other)))
    n, total = len(words), sum(counts.values())
    held = rounded(heldout, n)
    if by != "mass":
        assert (small is None) == (rounded(min(one, other), n) > n - held)
    shuffled = words[:]
    random.shuffle(shuffled)
    assert run_cut(shuffled, min(one, other)) == small
    if small is None:
        return
    chosen, apart = small
    assert len(set(chosen)) == len(chosen)
    assert len(apart) == held
    assert set(chosen).isdisjoint(apart)
    if by == "mass":
        reached = sum(counts[w] for w in chosen) * 100
        assert reached >= min(one, other) * total
        assert reached - 100 * counts[chosen[-1]] < min(one, other) * total
    else:
        assert len(chosen) == rounded(min(one, other), n)
    if large is not None:
        assert large[0][: len(chosen)] == chosen
        assert large[1] == apart


def test_by_frequency_takes_the_most_frequent() -> None:
    words = [f"w{i}" for i in range(40)]
    counts = np.array([i // 2 for i in range(40)], np.int64)
    found = cut(pa.array(words), counts, coverage=50, by="frequency").chosen
    assert sorted(counts[found], reverse=True) == counts[found].tolist() == sorted(counts, reverse=True)[:20]
    assert found.tolist() != cut(pa.array(words), counts, coverage=50, by="frequency", seed=2).chosen.tolist()


def test_the_held_out_part_is_the_same_for_every_by() -> None:
    words = pa.array([f"w{i}" for i in range(100)])
    counts = np.arange(1, 101)
    parts = [
        cut(words, counts, coverage=30, by=by, heldout=20).heldout.tolist()
        for by in ("random", "frequency", "mass")  # type: ignore[arg-type]
    ]
    assert parts[0] == parts[1] == parts[2]
    assert len(parts[0]) == 20


# noise


@laws
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), min_size=1, unique=True),
    st.integers(0, 100),
)
def test_wrong_translations_are_exact_and_wrong(pairs: list[tuple[str, str]], share: int) -> None:
    words, translations = [a for a, _ in pairs], [b for _, b in pairs]
    try:
        found = wrong_translations(words, translations, share, 1)
    except UsageError as error:
        assert error.id == "noise"  # noqa: PT017
        return
    assert len(found) == rounded(share, len(pairs))
    own = set(pairs)
    wrong = [(words[i], t) for i, t in found.items()]
    assert len(set(wrong)) == len(wrong)
    assert own.isdisjoint(wrong)
    assert {t for _, t in wrong} <= set(translations)
    assert found == wrong_translations(words, translations, share, 1)


def test_impossible_noise_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"\[noise\]"):
        wrong_translations(["a", "b"], ["x", "x"], 50, 1)


# files


FAULTY = (
    b"\xef\xbb\xbfthe le\r\nthe la\nthe le\n\n one\ntwo deux trois\n"
    b"\xff\xfe x\nbad \xef\xbf\xbd\n<unk> inconnu\ncat\tle chat\na  b\n"
)


def test_faults_are_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_bytes(FAULTY)
    found = read_dictionary(path)
    assert found.entries() == {"the": ("le", "la"), "cat": ("le chat",), "a": ("b",)}
    assert [(f.line, f.kind) for f in found.faults] == [
        (3, "duplicate"),
        (4, "blank"),
        (5, "blank"),
        (6, "columns"),
        (7, "encoding"),
        (8, "encoding"),
        (9, "special"),
    ]
    result = run("dict", "check", path, "--json").json
    assert (result["pairs"], result["types"], result["skipped"]) == (4, 3, 7)
    assert result["faults"] == {"blank": 2, "columns": 1, "duplicate": 1, "encoding": 2, "special": 1}
    assert result["lines"][4] == {"line": 7, "kind": "encoding", "what": "the line is not UTF-8: byte 0xff"}
    told = run("dict", "check", path)
    assert f"{path}:6: the line has 3 columns, expected 2 [columns]" in told.err
    assert "4 pairs of 3 words; 7 lines skipped" in told.out
    strict = run("dict", "check", path, "--strict", code=1)
    assert f"{path}:3: " in strict.err
    assert strict.out == ""


def test_faults_of_json_are_told_by_entry(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"a": ["b"],\n\n "c": [""]}')
    told = run("dict", "check", path)
    assert f"{path}: entry 2: the translation is blank [blank]" in told.err
    assert "1 pair of 1 word; 1 entry skipped" in told.out
    assert run("dict", "check", path, "--json").json["unit"] == "entry"
    assert f"{path}: entry 2: " in run("dict", "check", path, "--strict", code=1).err


def test_a_clean_copy(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_bytes(FAULTY)
    for name in ("clean.tsv", "clean.json"):
        run("dict", "check", path, "-o", tmp_path / name)
        clean = read_dictionary(tmp_path / name, strict=True)
        assert clean.pairs == read_dictionary(path).pairs
    packed = tmp_path / "d.txt.gz"
    packed.write_bytes(gzip.compress(FAULTY))
    assert read_dictionary(packed) == read_dictionary(path)
    for suffix in ("gz", "GZ"):
        packed = tmp_path / f"clean.tsv.{suffix}"
        packed.write_bytes(gzip.compress((tmp_path / "clean.tsv").read_bytes()))
        assert read_dictionary(packed) == read_dictionary(tmp_path / "clean.tsv")


def test_a_clean_copy_keeps_counts_and_all_characters(corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(f"{corpus.read_text('utf-8')}\ufffd x\ufffdy\n", "utf-8")
    dictionary(corpus, tmp_path / "d.tsv")
    run("dict", "check", tmp_path / "d.tsv", "-o", tmp_path / "clean.tsv")
    assert (tmp_path / "clean.tsv").read_bytes() == (tmp_path / "d.tsv").read_bytes()
    found = read_dictionary(tmp_path / "d.tsv", strict=True)
    assert "x\ufffdy" in found.entries()
    assert found.warning(tmp_path / "d.tsv") is None


def test_skipped_lines_are_a_warning_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text("dog Hund\ndog Hund\nnew york neu york\ncat Katze tom\nhouse\nred rot\n", "utf-8")
    told: list[str] = []
    assert len(read_words(path, told.append).pairs) == 2
    assert len(told) == 1
    assert "3 lines skipped, the first is line 3: the line has 4 columns, expected 2" in told[0]


@laws
@given(st.lists(st.tuples(any_word, any_word), min_size=1, unique=True), st.sampled_from(["tsv", "json"]))
def test_files_are_read_back(tmp_path_factory: pytest.TempPathFactory, pairs: Any, kind: Any) -> None:
    def is_fit(word: str) -> bool:
        """Neither blank nor what counts as a fault; cells lose spaces at their ends."""
        return word.strip() == word and not {"\ufffd", "\0"} & set(word) and word not in SPECIALS

    usual = [pair for pair in pairs if all(map(is_fit, pair))]
    usual.sort(key=lambda pair: pair[0])  # JSON keeps a word's translations together
    if not usual:
        return
    path = tmp_path_factory.mktemp("d") / f"d.{kind}"
    path.write_text(written(usual, [1] * len(usual), kind), "utf-8", newline="\n")
    assert list(read_dictionary(path, strict=True).pairs) == usual


@pytest.mark.parametrize(
    ("name", "content", "pairs"),
    [
        ("d.tsv", "the\tle\nthe\tla\n", [("the", "le"), ("the", "la")]),
        ("d.tsv", "id\ttarget\tsource\n1\tle\tthe\n", [("the", "le")]),
        ("d.tsv", "source\tderived\tcount\na\\\\n\tb\\tc\t3\n", [("a\\n", "b\tc")]),
        ("d.tsv", "source\ttarget\na\\n\tb\n", [("a\\n", "b")]),
        ("d.json", '{"the": ["le", "la"], "cat": "chat"}', [("the", "le"), ("the", "la"), ("cat", "chat")]),
        ("d.json", '[["the", "le"], ["cat", ["chat"]]]', [("the", "le"), ("cat", "chat")]),
        ("en-fr.0-5000", "the le\n", [("the", "le")]),
    ],
)
def test_forms(name: str, content: str, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    assert list(read_dictionary(tmp_path / name, strict=True).pairs) == pairs


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.json", b'{"a": ["b"],\n "c" "d"}', r"d.json:2: this is not valid JSON"),
        ("d.json", b'{"a": "b",\n "c": "\xff"}', r"d.json:2: the file is not UTF-8"),
        ("d.json", b"3", r"the JSON is not"),
        ("d.json", b'{"a": []}', r"holds no pair; the first fault, in entry 1: 'a' has no translation"),
        ("d.txt", b"\n\n", r"holds no pair; the first fault, in line 1: the word is blank"),
        ("d.txt", b"", r"the dictionary holds no pair \[no-pair\]"),
        (
            "d.tsv",
            b"source\tderived\tSource\na\tb\tc\n",
            r"d.tsv:1: both 'source' \(column 1\) and 'source' \(column 3\)",
        ),
        ("d.tsv", b"word\ttarget\ttgt\na\tb\tc\n", r"'tgt' \(column 3\) may name the translations"),
    ],
)
def test_files_that_are_no_dictionary(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_dictionary(tmp_path / name)


@pytest.mark.parametrize("name", ["d.csv", "d.txt", "my d.tsv"])
@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_the_advice_for_another_separator_helps(name: str, mark: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"house{mark}maison\ndog{mark}chien\nice cream{mark}glace\n", "utf-8")
    told = run("dict", "check", tmp_path / name, code=1).err
    assert f"the words are separated by {mark!r}, not by tabs" in told
    subprocess.run(told[told.index("tr ") :], shell=True, cwd=tmp_path, check=True)
    pairs = (("house", "maison"), ("dog", "chien"), ("ice cream", "glace"))
    assert read_dictionary(tmp_path / "NEW.tsv", strict=True).pairs == pairs


# the command


def test_a_dictionary_of_a_pair(corpus: Path, tmp_path: Path) -> None:
    counts = counts_of(corpus)
    n, total = len(counts), sum(counts.values())
    found = {}
    for coverage in (25, 50, 100):
        out = tmp_path / f"c{coverage}.tsv"
        result = dictionary(corpus, out, "--coverage", coverage)
        pairs = read_dictionary(out, strict=True).pairs
        found[coverage] = [word for word, _ in pairs]
        assert result["types"] == n
        assert result["pairs"] == result["entries"] == len(pairs) == rounded(coverage, n)
        assert result["coverage_types"] == pytest.approx(100 * len(pairs) / n, abs=1e-4)
        mass = sum(counts[word] for word, _ in pairs)
        assert result["coverage_tokens"] == pytest.approx(100 * mass / total, abs=1e-4)
        twin = Pipeline.parse("trans").fit()
        assert [t for _, t in pairs] == twin.apply(pa.array(found[coverage])).to_pylist()
        listed = [line.split("\t") for line in out.read_text("utf-8").splitlines()[1:]]
        assert all(int(number) == counts[word] for word, _, number in listed)
    assert found[100][: len(found[50])] == found[50]
    assert found[50][: len(found[25])] == found[25]
    assert set(found[100]) == set(counts)
    assert dictionary(corpus, tmp_path / "x.tsv", "--coverage", 25, "--seed", 2)["pairs"] == len(found[25])
    assert sources(tmp_path / "x.tsv") != found[25]


def test_it_depends_on_the_words_and_not_on_their_order(corpus: Path, tmp_path: Path) -> None:
    turned = tmp_path / "turned.train.tokens"
    turned.write_text("".join(reversed(corpus.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    for by in ("random", "frequency", "mass"):
        for source, out in ((corpus, tmp_path / f"a{by}.txt"), (turned, tmp_path / f"b{by}.txt")):
            dictionary(source, out, "--coverage", 30, "--by", by, "--noise", 10, "--heldout", 10)
        assert (tmp_path / f"a{by}.txt").read_bytes() == (tmp_path / f"b{by}.txt").read_bytes()
        assert (tmp_path / f"a{by}.heldout.txt").read_bytes() == (tmp_path / f"b{by}.heldout.txt").read_bytes()


def test_the_same_command_gives_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        dictionary(corpus, tmp_path / folder / "d.json", "--coverage", 20, "--noise", 5, "--heldout", 5)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f).iterdir()} for f in ("one", "two"))
    assert one == two
    assert set(one) == {"d.json", "d.heldout.json", "d.json.recipe.json"}
    assert str(tmp_path).encode() not in one["d.json.recipe.json"]


def test_held_out_entries_and_listed_noise(corpus: Path, tmp_path: Path) -> None:
    n = len(counts_of(corpus))
    out = tmp_path / "d.tsv"
    result = dictionary(corpus, out, "--coverage", 40, "--heldout", 10, "--noise", "7.5")
    assert result["heldout"] == rounded(10, n)
    pairs, apart = read_dictionary(out, strict=True).pairs, sources(tmp_path / "d.heldout.tsv")
    assert len(apart) == result["heldout"]
    assert {word for word, _ in pairs}.isdisjoint(apart)
    recipe = json.loads((tmp_path / "d.tsv.recipe.json").read_text("utf-8"))
    twin = Pipeline.parse("trans").fit()
    truth = dict(zip(sources(out), twin.apply(pa.array(sources(out))).to_pylist(), strict=True))
    wrong = [[word, found, truth[word]] for word, found in pairs if found != truth[word]]
    assert recipe["wrong"] == wrong
    assert len(wrong) == result["noise"] == rounded(Fraction(15, 2), len(pairs))
    assert {found for _, found, _ in wrong} <= set(truth.values())
    assert recipe["noise"] == 7.5
    assert recipe["result"]["pairs"] == len(pairs)
    dictionary(corpus, out)  # the held-out words of the earlier run are in this one
    assert not (tmp_path / "d.heldout.tsv").exists()


def test_transforms_that_a_derived_source_has_already_are_named(corpus: Path, tmp_path: Path) -> None:
    run("make", "--t", "trans,inv", corpus, "-o", tmp_path / "set")
    said = run("dict", "--t", "trans,inv", tmp_path / "set", "-o", tmp_path / "d.tsv").err
    assert "warning: the source is derived by trans,inv already; this derives it by trans,inv once more" in said
    assert "warning" not in run("dict", tmp_path / "set", "-o", tmp_path / "e.tsv").err
    assert "warning" not in run("make", "--t", "inv:final=move", tmp_path / "set", "-o", tmp_path / "other").err
    twice = run("make", "--t", "trans,trans", corpus, "-o", tmp_path / "twice").err
    assert "warning: trans,trans leaves every word of the source as it is" in twice


def test_words_without_a_translation_count_as_running_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the dog saw the cat\n", "utf-8")
    (tmp_path / "en-fr.txt").write_text("dog chien\nthe le\n", "utf-8")
    result = dictionary(tmp_path / "a.txt", tmp_path / "d.tsv", spec=f"lex:{tmp_path / 'en-fr.txt'}")
    assert (result["types"], result["coverage_types"], result["coverage_tokens"]) == (2, 100.0, 60.0)


def test_by_mass(corpus: Path, tmp_path: Path) -> None:
    result = dictionary(corpus, tmp_path / "m.tsv", "--coverage", 30, "--by", "mass")
    assert 30 <= result["coverage_tokens"] < 60


def test_overlap_is_fitted_on_the_same_words(corpus: Path, tmp_path: Path) -> None:
    out = make("trans:overlap=25,inv", corpus, tmp_path / "set")
    dictionary(corpus, tmp_path / "a.tsv", spec="trans:overlap=25")
    run("dict", out, "-o", tmp_path / "b.tsv")  # a derived set: its own pair
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    seen = {
        (s, t)
        for row in rows(out).to_pylist()
        for s, t in zip((row["source"][i] for i in row["order"]), row["tokens"], strict=True)
    }
    assert {pair for pair in seen if pair[0] != "<unk>"} == set(read_dictionary(tmp_path / "b.tsv").pairs)


def test_several_translations(corpus: Path, tmp_path: Path) -> None:
    given_ = tmp_path / "en-fr.txt"
    given_.write_text("the le\nthe la\ncommon commun\nunseen invu\n", "utf-8")
    for spec, script in ((f'lex:"{given_}"', False), (f'lex:"{given_}",trans', True)):
        result = dictionary(corpus, tmp_path / "d.tsv", spec=spec)
        found = read_dictionary(tmp_path / "d.tsv", strict=True).entries()
        trans = Pipeline.parse("trans").fit()
        expected = {"the": ("le", "la"), "common": ("commun",)}
        if script:
            expected = {w: tuple(trans.apply(pa.array(list(t))).to_pylist()) for w, t in expected.items()}
        assert {w: found[w] for w in expected} == expected
        assert ("w1" in found) == script
        assert result["types"] == (len(counts_of(corpus)) if script else 2)
        assert result["pairs"] == result["types"] + 1


def test_sub_words_of_a_tokenizer(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tok"
    train(SourceRequest(str(corpus), words="space"), folder, TokenizerOptions(vocab_size=60))
    tokenizer = Tokenizer.load(folder)
    built, vocabulary = tokenizer.build(), set(tokenizer.bpe.entries[12:])
    result = dictionary(corpus, tmp_path / "t.tsv", "--level", "token", "--tokenizer", folder)
    found = dict(read_dictionary(tmp_path / "t.tsv", strict=True).pairs)
    assert set(found) == vocabulary
    assert result["types"] == len(vocabulary)
    trans = Pipeline.parse("trans").fit()
    for token, twin in found.items():
        stem = token.removesuffix("</w>")
        assert twin == trans.apply(pa.array([stem]))[0].as_py() + token[len(stem) :]
    counted = Counter(t for line in corpus.read_text("utf-8").splitlines() for t in built.encode(line).tokens)
    listed = [line.split("\t") for line in (tmp_path / "t.tsv").read_text("utf-8").splitlines()[1:]]
    assert {word: int(n) for word, _, n in listed} == {word: counted[word] for word in vocabulary}
    half = dictionary(corpus, tmp_path / "h.tsv", "--level", "token", "--tokenizer", folder, "--coverage", 50)
    assert half["pairs"] == rounded(50, len(vocabulary))


def test_the_twins_of_entries_that_spell_special_tokens(tmp_path: Path) -> None:
    """`x<unk>` gives the entry `<unk></w>`, whose stem is no special token here. Training reads this dictionary."""
    source = SourceRequest(str(tmp_path / "u.txt"), words="space")
    (tmp_path / "u.txt").write_text("a x<unk> b y<unk> c z<unk> w x</s>\n" * 20, "utf-8")
    train(source, tmp_path / "tok", TokenizerOptions(vocab_size=37, min_frequency=1))
    tokenizer = Tokenizer.load(tmp_path / "tok")
    assert "<unk></w>" in tokenizer.bpe.entries
    dictionary(tmp_path / "u.txt", tmp_path / "u.tsv", "--words", "space", "--level", "token",
               "--tokenizer", tmp_path / "tok")  # fmt: skip
    twin = twin_of(tokenizer, load_script("georgian")).bpe.entries
    expected = dict(zip(tokenizer.bpe.entries[12:], twin[12:], strict=True))
    assert dict(read_dictionary(tmp_path / "u.tsv", strict=True).pairs) == expected


# bad input


def bad(corpus: Path, tmp_path: Path) -> list[tuple[list[object], int, str]]:
    lex = tmp_path / "lex.txt"
    lex.write_text("nothing rien\n", "utf-8")
    (tmp_path / "folder.tsv").mkdir()
    (tmp_path / "empty").mkdir()
    out = tmp_path / "d.tsv"
    usual: list[object] = ["--t", "trans", corpus, "-o", out]
    return [
        (
            [*usual, "--coverage", "101"],
            2,
            "--coverage: a percentage must be above 0 and at most 100, got 101 [bad-value]",
        ),
        ([*usual, "--coverage", "0"], 2, "[bad-value]"),
        ([*usual, "--coverage", "much"], 2, "'much' is not a percentage"),
        ([*usual, "--coverage", "0.01"], 2, "is less than one entry [coverage]"),
        ([*usual, "--coverage", "95", "--heldout", "10"], 2, "of the entries are held out [coverage]"),
        ([*usual, "--coverage", "99.9", "--heldout", "10", "--by", "mass"], 2, "held out [coverage]"),
        ([*usual, "--heldout", "100"], 2, "[bad-value]"),
        ([*usual, "--noise", "-1"], 2, "[bad-value]"),
        (
            ["--t", "inv", corpus, "-o", out],
            2,
            "changes no word: there is nothing to translate [no-lexicon]",
        ),
        ([corpus, "-o", out], 2, "a dictionary needs a pair of languages [no-pair]"),
        (["--t", "trans", corpus, "-o", "-", "--heldout", 5], 2, "[output]"),
        (["--t", "trans", "-o", out], 2, "Missing argument 'SOURCE'"),
        (
            ["--t", "trans", corpus, "-o", tmp_path / "d.csv"],
            2,
            "the suffix '.csv' [unknown-format]",
        ),
        (["--t", "trans", corpus, "-o", tmp_path / "folder.tsv"], 2, "is a directory"),
        (["--t", "trans", corpus, "-o", tmp_path / "no" / "d.tsv"], 1, "[cannot-write]"),
        (["--t", "trans", tmp_path / "none.txt", "-o", out], 1, "[missing-file]"),
        (["--t", f'lex:"{lex}"', corpus, "-o", out], 1, "no word of the source has an entry [empty-dictionary]"),
        ([*usual, "--level", "token"], 2, "[tokenizer]"),
        ([*usual, "--tokenizer", tmp_path], 2, "[tokenizer]"),
        ([*usual, "--level", "token", "--tokenizer", tmp_path / "empty"], 1, "not a tokenizer of derivlang"),
        (["check", tmp_path / "none.txt"], 1, "[missing-file]"),
        (["check", tmp_path / "folder.tsv"], 2, "is a directory"),
    ]


def test_bad_input_is_one_message_and_leaves_nothing(corpus: Path, tmp_path: Path) -> None:
    for arguments, code, message in bad(corpus, tmp_path):
        before = sorted(tmp_path.rglob("*"))
        ran = run("dict", *arguments, code=code)
        assert message in ran.err, (arguments, ran.err)
        assert ran.out == ""
        assert sorted(tmp_path.rglob("*")) == before


def test_a_tokenizer_that_does_not_fit(corpus: Path, tmp_path: Path) -> None:
    usual = ["--t", "trans", corpus, "-o", tmp_path / "d.tsv", "--level", "token", "--tokenizer", tmp_path]
    (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
    assert "not a tokenizer of derivlang" in run("dict", *usual, code=1).err
    ran = run("dict", *["trans:overlap=50" if a == "trans" else a for a in usual], code=2)
    assert "[token-level]" in ran.err


def test_fractions_that_are_percentages_are_named(tmp_path: Path) -> None:
    usual = ["dict", "--t", "trans", "demo", "-o", tmp_path / "d.tsv"]
    said = run(*usual, "--coverage", "0.25").err
    assert said.count("--coverage is a percentage: 0.25 means 0.25 %, not 25 %; write 0.25% if you mean it") == 1
    assert "is a percentage" not in run(*usual[:-1], tmp_path / "e.tsv", "--coverage", "0.25%").err
    said = run(*usual[:-1], tmp_path / "f.tsv", "--heldout", "0.1", "--noise", "0.5", "--force").err
    assert "--heldout is a percentage: 0.1 means 0.1 %, not 10 %; write 0.1% if you mean it" in said
    assert "--noise is a percentage: 0.5 means" in said
    with pytest.warns(DerivlangWarning, match="--parallel is a percentage: 0.5 means 0.5 %, not 50 %"):
        Pretrain.of(
            {"source": "demo", "spec": "trans", "out": tmp_path / "run", "objective": "tlm", "parallel": 0.5}
        ).planned()
