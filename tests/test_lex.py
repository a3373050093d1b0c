"""lex: words replaced by a dictionary: look-up, case, choices by the sentence; sets that have no way back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang import Pipeline, derive, map_dataset
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.keys import draw, text_key
from derivlang.store.manifest import Derived
from derivlang.store.verify import verify
from derivlang.transforms.fitting import read_lexicon
from tests.commands import change, run, shards, trees, written
from tests.helpers import make, right, rows, same_rows, undone
from tests.strategies import batch_of, laws, sentence_lists, units_of

FRENCH = """\
the le
the la
the les
cat chat
is est
not pas
Paris Lutèce
us nous
US États-Unis
i je
dog chien
"""
TEXT = "The cat is not the dog . The DOG is US !\nI , Paris and us : the cat <unk> .\n\nthe the the the ! the end\n"


@pytest.fixture
def french(tmp_path: Path) -> Path:
    return written(tmp_path / "en-fr.txt", FRENCH)


def text(folder: Path, content: str = TEXT, name: str = "a.tokens") -> Path:
    return written(folder / name, content)


def words_of(sentence: str, spec: str) -> list[str]:
    return derive(sentence, spec).words


# look-up and case


def test_a_word_is_looked_up_as_it_stands_then_lower_cased(french: Path) -> None:
    spec = f"lex:{french}:choose=first"
    assert words_of("cat Cat CAT paris Paris us US Us I <unk> zebra", spec) == (
        "chat Chat CHAT paris Lutèce nous États-Unis Nous Je <unk> zebra".split()
    )
    as_is = words_of("cat Cat CAT Us I", f"{spec}:case=as-is")
    assert as_is == "chat chat chat nous je".split()


def test_a_translation_of_several_words_is_one_word(tmp_path: Path) -> None:
    path = tmp_path / "d.tsv"
    path.write_text("because\tparce que\n", "utf-8")
    assert words_of("Because I go .", f"lex:{path}") == ["Parce que", "I", "go", "."]
    source = text(tmp_path, "I go because .\n")
    out = make(f"lex:{path}", source, tmp_path / "out")
    right(out)
    ran = run("export", out, "--format", "text", "-o", tmp_path / "t", "--json")
    assert ran.json["spaces"] == 1
    assert (tmp_path / "t").read_text("utf-8") == "I go parce\u00a0que .\n"


def test_special_tokens_stay_and_are_no_translation(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text("a b\n<unk> c\n", "utf-8")
    with pytest.raises(DataError, match=r"d\.txt:2: .*special token"):
        derive("a <unk>", f"lex:{path}")


# choices


def test_the_choice_is_the_draw_of_the_sentence_and_the_place(french: Path) -> None:
    """Upper 32 bits against the rate, lower 32 bits for the translation: computed here by the rule."""
    units = [["the", "cat", "is", "the", "dog", "."], ["The", "the", "the"]]
    batch = batch_of(units)
    for rate in (0, 30, 100):
        pipeline = Pipeline.parse(f"lex:{french}:rate={rate}:seed=7")
        result = pipeline.derive(batch, pipeline.fit(), split=False)
        entries = {"the": ["le", "la", "les"], "cat": ["chat"], "is": ["est"], "dog": ["chien"]}
        entries["The"] = ["Le", "La", "Les"]
        for number, (unit, derived) in enumerate(zip(units, sentence_lists(result.derived), strict=True)):
            stream = text_key("lex|seed=7|rule=1|occurrence=0")
            drawn = draw(stream, np.repeat(batch.keys[number], len(unit)), np.arange(len(unit))).tolist()
            expected = []
            for word, d in zip(unit, drawn, strict=True):
                options = entries.get(word, [])
                replaced = options and (d >> 32) * 100 < rate * 2**32
                expected.append(options[((d & 0xFFFFFFFF) * len(options)) >> 32] if replaced else word)
            assert derived == expected
        assert all(rate or u == d for u, d in zip(units, sentence_lists(result.derived), strict=True))


@laws
@given(units_of(st.sampled_from(["the", "cat", "is", "dog", "a", "."]), max_units=4), st.integers(0, 99))
def test_a_higher_rate_replaces_more_and_by_the_same_words(units: list[list[str]], rate: int) -> None:
    path = Path(__file__).parent / "dictionaries" / "toy.tsv"
    batch = batch_of(units)
    found = []
    for percent in (rate, rate + 1, 100):
        pipeline = Pipeline.parse(f"lex:{path}:rate={percent}")
        found.append(
            [w for s in sentence_lists(pipeline.derive(batch, pipeline.fit(), split=False).derived) for w in s]
        )
    words = [w for s in sentence_lists(batch) for w in s]
    for word, low, high, all_of_them in zip(words, *found, strict=True):
        assert low in (word, high)
        assert high in (word, all_of_them)


def test_the_rate_is_met_and_translations_are_even(tmp_path: Path, french: Path) -> None:
    sentences = "".join(f"the n{i} .\n" for i in range(4000))
    out = make(f"lex:{french}:rate=25", text(tmp_path, sentences), tmp_path / "out")
    seen = Counter(row["tokens"][0] for row in rows(out).to_pylist())
    replaced = 4000 - seen["the"]
    assert abs(replaced - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5
    chi2 = sum((seen[w] - replaced / 3) ** 2 / (replaced / 3) for w in ("le", "la", "les"))
    assert chi2 < 18.4  # 2 degrees of freedom, p = 0.0001
    changed = json.loads((out / "derivlang.json").read_text("utf-8"))["changed"]
    assert changed["lex-replaced"] == replaced


def test_seeds_and_occurrences_choose_apart(french: Path) -> None:
    sentence = " ".join(["the"] * 60)
    first, second = (words_of(sentence, f"lex:{french}:seed={seed}") for seed in (1, 2))
    assert first != second
    twice = words_of(sentence, f"lex:{french}:rate=50,lex:{french}:rate=50")
    once = words_of(sentence, f"lex:{french}:rate=50")
    assert all(b == a or a == "the" for a, b in zip(once, twice, strict=True))
    assert twice.count("the") < once.count("the")


def test_draws_do_not_depend_on_where_the_file_lies(tmp_path: Path, french: Path) -> None:
    other = tmp_path / "elsewhere" / "x.txt"
    other.parent.mkdir()
    other.write_bytes(french.read_bytes())
    sentence = "the cat is the dog and the the the end ."
    assert words_of(sentence, f"lex:{french}:rate=50") == words_of(sentence, f"lex:{other}:rate=50")


def test_its_place_is_that_of_the_words_as_they_reach_it(french: Path) -> None:
    sentence = "the a the b the c the d the e"
    before = derive(sentence, f"lex:{french}:rate=50,inv")
    after = derive(sentence, f"inv,lex:{french}:rate=50")
    assert before.words == words_of(sentence, f"lex:{french}:rate=50")[::-1]
    assert before.order == after.order
    assert after.words != before.words
    assert [w for w in after.words if w in "abcde"] == list("edcba")


def test_a_script_after_it_maps_the_translation(french: Path) -> None:
    plain = words_of("the cat .", f"lex:{french}")
    script = Pipeline.parse("trans").fit()
    assert words_of("the cat .", f"lex:{french},trans") == script.apply(pa.array(plain)).to_pylist()
    # A dictionary after a script sees the script's words.
    assert words_of("the cat .", f"trans,lex:{french}") == words_of("the cat .", "trans")


# sets


def spec_of(path: Path, rest: str) -> str:
    return f'lex:"{path}"{rest}'


@pytest.mark.parametrize("rest", ["", ":rate=40", ":rate=40,inv", ":rate=40,perm,trans", ",trans:overlap=50"])
def test_a_set_is_right_and_gives_its_source_back(rest: str, tmp_path: Path, french: Path) -> None:
    out = make(spec_of(french, rest), text(tmp_path), tmp_path / "out")
    right(out)
    assert undone(out) == TEXT.encode()
    french.unlink()  # the set holds what it needs
    right(out)
    assert undone(out) == TEXT.encode()
    again = make("inv", out, tmp_path / "again")
    right(again)
    assert undone(again) == TEXT.encode()


def test_a_treebank_gives_its_source_back(tmp_path: Path, french: Path) -> None:
    source = trees(tmp_path)
    out = make(spec_of(french, ":rate=50,inv"), source, tmp_path / "out")
    right(out)
    assert undone(out) == source.read_bytes()


def test_a_set_read_as_a_source_is_the_composition(tmp_path: Path, french: Path) -> None:
    source = text(tmp_path)
    one = make(spec_of(french, ":rate=40"), source, tmp_path / "one")
    both = make(spec_of(french, ":rate=40,perm"), source, tmp_path / "both")
    same_rows(rows(make("perm", one, tmp_path / "two")), rows(both))


def test_both_sides_must_be_stored(tmp_path: Path, french: Path) -> None:
    for columns in ("tokens", "source"):
        ran = run(
            "make", "--t", spec_of(french, ""), text(tmp_path), "-o", tmp_path / "o", "--columns", columns, code=2
        )
        assert "[columns]" in ran.err
    out = make(spec_of(french, ""), text(tmp_path), tmp_path / "out", columns=("source", "tokens"))
    right(out)


def test_verify_names_a_changed_word(tmp_path: Path, french: Path) -> None:
    for column, word in (("tokens", "chatte"), ("source", "kitten")):
        out = make(spec_of(french, ""), text(tmp_path), tmp_path / f"out-{column}")
        row = rows(out).to_pylist()[0]
        row[column][1] = word
        change(shards(out)[0], column, 0, row[column])
        result = verify(out)
        assert not result["ok"]
        problem = result["problems"][0]
        assert (problem["row"], problem["column"]) == (0, column)


def test_another_content_is_another_plan(tmp_path: Path, french: Path) -> None:
    source = text(tmp_path)
    make(spec_of(french, ""), source, tmp_path / "out")
    before = Pipeline.parse(spec_of(french, "")).fingerprint()
    french.write_text(FRENCH + "end fin\n", "utf-8")
    assert Pipeline.parse(spec_of(french, "")).fingerprint() != before
    with pytest.raises(StoreError):
        make(spec_of(french, ""), source, tmp_path / "out")
    make(spec_of(french, ""), source, tmp_path / "out", force=True)
    assert rows(tmp_path / "out").to_pylist()[-1]["tokens"][-1] == "fin"


def test_a_saved_lexicon_stands_for_the_file(tmp_path: Path, french: Path) -> None:
    out = make(spec_of(french, ":rate=60"), text(tmp_path), tmp_path / "out")
    french.unlink()
    spec = spec_of(french, ":rate=60")
    found = derive("The cat is not the dog .", spec, lexicon=out / "lexicon.tsv").words
    assert found == rows(out).to_pylist()[0]["tokens"]
    assert Derived(out).pipeline.save(Derived(out).lexicon) == read_lexicon(out / "lexicon.tsv")


def test_a_dataset_is_mapped_alike(tmp_path: Path, french: Path) -> None:
    import datasets

    tokens = [line.split() for line in TEXT.splitlines() if line]
    mapped = map_dataset(datasets.Dataset.from_dict({"tokens": tokens}), spec_of(french, ":rate=50"))
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"tokens": row}) + "\n" for row in tokens), "utf-8")
    out = make(spec_of(french, ":rate=50"), source, tmp_path / "out")
    assert [row["tokens"] for row in mapped] == [row["tokens"] for row in rows(out).to_pylist()]


def test_shares_of_the_vocabulary_are_not_told(tmp_path: Path, french: Path) -> None:
    out = make(spec_of(french, ":rate=50"), text(tmp_path), tmp_path / "out")
    told: dict[str, Any] = json.loads((out / "derivlang.json").read_text("utf-8"))["vocabulary"]
    assert set(told) == {"types", "tokens"}


# bad input


def test_a_spec_without_a_file() -> None:
    with pytest.raises(UsageError, match=r"lex needs a dictionary"):
        Pipeline.parse("lex")


@pytest.mark.parametrize(
    ("rest", "code", "message"),
    [
        (":rate=101", 2, "at most 100"),
        (":case=upper", 2, "must be keep or as-is"),
        (":rate=x", 2, "whole number"),
    ],
)
def test_bad_values(rest: str, code: int, message: str, tmp_path: Path, french: Path) -> None:
    ran = run("make", "--t", spec_of(french, rest), text(tmp_path), "-o", tmp_path / "out", code=code)
    assert message in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b\nc\n", r"d.txt:2: the translation is blank [dictionary]"),
        (b"a b\nc \xff\n", r"d.txt:2: the line is not UTF-8: byte 0xff [dictionary]"),
        (b"a b\nc d e\n", r"d.txt:2: the line has 3 columns, expected 2 [dictionary]"),
        (b"", "the dictionary holds no pair [no-pair]"),
        (None, "there is no such file [missing-file]"),
    ],
)
def test_a_dictionary_that_cannot_be_read(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    if content is not None:
        path.write_bytes(content)
    ran = run("make", "--t", spec_of(path, ""), text(tmp_path), "-o", tmp_path / "out", code=1)
    assert message in ran.err
    assert not (tmp_path / "out" / "derivlang.json").exists()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            "le the\nchat cat\n",
            "0 words have an entry, but 3 would have one with the sides of the dictionary exchanged",
        ),
        ("maison house\n", "no word has an entry in the dictionary"),
        ("the le\nle the\ncat chat\n", ""),
    ],
)
def test_a_dictionary_of_the_other_direction_is_named(pairs: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat saw the dog.\n", "utf-8")
    (tmp_path / "d.txt").write_text(pairs, "utf-8")
    told = run("make", "--t", f"lex:{tmp_path / 'd.txt'}", tmp_path / "a.txt", "-o", tmp_path / "out").err
    assert message in told
    assert bool(message) == ("dictionary" in told)


def test_a_file_with_a_colon_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "en-fr:2.txt").write_text("a b\n", "utf-8")
    told = run("derive", "--t", f"lex:{tmp_path}/en-fr:2.txt", "a", code=2).err
    spec = f'lex:"{tmp_path}/en-fr:2.txt"'
    assert f"a name that holds a colon is quoted: {spec}" in " ".join(told.split())
    assert derive("a c", spec).words == ["b", "c"]
