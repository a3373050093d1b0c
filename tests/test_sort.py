"""sort: the words of a sentence by their counts in a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, UsageError
from derivlang.core.lexicon import Lexicon, escape
from derivlang.formats.dictionary import read_counts, write_counts
from derivlang.lexical.encoding import Encoded, subword_order
from derivlang.pipeline import Pipeline
from derivlang.training.languages import is_mapped
from derivlang.transforms import sort
from tests.commands import run, written
from tests.strategies import any_word, batch_of, few_words, scan_words, units_of
from tests.transforms import GIVEN

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)


@given(
    rows=units_of(st.one_of(few_words, any_word, scan_words)),
    numbers=st.randoms(use_true_random=False),
    rare=st.booleans(),
)
def test_sort_is_pythons(tmp_path_factory: pytest.TempPathFactory, rows, numbers, rare) -> None:  # type: ignore[no-untyped-def]
    batch = batch_of(rows)
    words = batch.types.to_pylist()
    counts = {word: numbers.randint(0, 3) for word in words if numbers.random() < 0.8}
    path = tmp_path_factory.mktemp("counts") / "counts.tsv"
    path.write_bytes("".join(f"{escape(word)}\t{count}\n" for word, count in {**counts, "x y": 2}.items()).encode())
    order = Pipeline.parse(f"sort:{path}{':first=rare' if rare else ''}").order(batch)
    for k, begin in enumerate(batch.sentences[:-1].tolist()):
        end = int(batch.sentences[k + 1] - batch.tails[k])

        def place(i: int) -> int:
            count = counts.get(words[batch.words[i]], 0)
            return count if rare else -count

        assert order.index[begin:end].tolist() == sorted(range(begin, end), key=place)
        assert order.index[end : batch.sentences[k + 1]].tolist() == list(range(end, batch.sentences[k + 1]))


def test_the_example_of_the_module_is_right() -> None:
    source, _, derived = (sort.__doc__ or "").splitlines()[2].strip().partition("   ->   ")
    assert run("derive", source, "--t", f"sort:{GIVEN['sort']['counts']}").out.strip() == derived
    assert str(read_counts(Path(GIVEN["sort"]["counts"]))) == (
        "{'the': 9, 'of': 7, 'One': 5, 'old': 4, 'crossed': 3, 'lake': 3, 'ferries': 2}"
    )


def test_a_dictionary_of_a_set_holds_its_counts(tmp_path: Path) -> None:
    run("make", "--t", "trans", "demo", "-o", tmp_path / "set")
    run("dict", tmp_path / "set", "-o", tmp_path / "dict.tsv")
    assert read_counts(tmp_path / "dict.tsv")["the"] > 50
    run("make", "--t", f"sort:{tmp_path}/dict.tsv", "demo", "-o", tmp_path / "sorted")
    (tmp_path / "dict.tsv").unlink()  # the set keeps a copy
    assert "are right" in run("verify", tmp_path / "sorted").out


@given(counts=st.dictionaries(WORDS, st.integers(0, 10**18 - 1), min_size=1, max_size=6), header=st.booleans())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, counts, header) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("counts") / "a.tsv"
    lines = [
        *(["\ufeffword\tcount"] if header else []),
        *(f"{escape(word)}\t{count}" for word, count in counts.items()),
    ]
    path.write_bytes("\n".join(lines).encode())
    assert read_counts(path) == counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.tsv:1: the file has no word with a count"),
        ("word\tcount\n", "a.tsv:1: the file has no word with a count"),
        ("the\t1\nof 2\n", "a.tsv:2: 'of 2' is not a word and its count, separated by a tab"),
        ("the\t1\nof\t-2\n", "a.tsv:2: 'of\\t-2' is not a word and its count"),
        ("the\t1\n\nthe\t2\n", "a.tsv:3: the word 'the' has the counts 1 and 2"),
    ],
)
def test_a_broken_file_is_one_message(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", text)
    with pytest.raises(DataError) as caught:
        read_counts(path)
    assert message in str(caught.value)
    assert message in run("derive", "a b", "--t", f"sort:{path}", code=1).err


def fitted(spec: str, counts: dict[str, int]) -> Lexicon:
    return Pipeline.parse(spec).fit(string_array(list(counts)), np.array(list(counts.values()), np.int64))


@given(rows=units_of(few_words), numbers=st.randoms(use_true_random=False), first=st.sampled_from(["frequent", "rare"]))
def test_source_and_file_give_one_order(tmp_path_factory: pytest.TempPathFactory, rows, numbers, first) -> None:  # type: ignore[no-untyped-def]
    """The fitted order, the saved one and the one by a file of the same counts are equal, under any lexicon."""
    batch = batch_of(rows)
    counts = {word: numbers.randint(0, 3) for word in batch.types.to_pylist() if numbers.random() < 0.8} | {"x": 1}
    path = tmp_path_factory.mktemp("counts") / "counts.tsv"
    path.write_text(write_counts(counts, counts.values()), "utf-8")
    wanted = Pipeline.parse(f"inv,sort:{path}:first={first}").derive(batch, Lexicon(), split=False).order
    for before, after in (("", ""), ("trans:overlap=50,", ""), ("", ",scramble")):
        pipeline = Pipeline.parse(f"{before}inv,sort:first={first}{after}")
        lexicon = fitted(str(pipeline), counts)
        saved = pipeline.save(lexicon)
        for one in (lexicon, pipeline.fit(saved=saved)):
            assert pipeline.derive(batch, one, split=False).order.index.tolist() == wanted.index.tolist()
        assert pipeline.save(pipeline.fit(saved=saved)) == saved


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ("sort:freq", "sort"),
        ("sort:freq=desc", "sort"),
        ("sort:freq=asc", "sort:first=rare"),
        ("sort:freq=asc:final=move", "sort:first=rare:final=move"),
    ],
)
def test_spellings_of_the_field(spec: str, same: str) -> None:
    assert str(Pipeline.parse(spec)) == Pipeline.parse(spec).stored == same
    assert Pipeline.from_stored(same) == Pipeline.parse(spec)


@pytest.mark.parametrize("spec", ["sort:freq=up", "sort:freq=asc:first=rare", "sort:a.tsv:freq=asc"])
def test_spellings_that_contradict_themselves(spec: str) -> None:
    with pytest.raises(UsageError):
        Pipeline.parse(spec)


def test_a_file_named_freq_has_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "freq", "b\t2\na\t1\n")
    assert run("derive", "a b", "--t", "sort:./freq").out == "b a\n"
    assert "needs-lexicon" in run("derive", "a b", "--t", "sort:freq", code=2).err


def test_an_order_that_is_not_fitted_is_one_message() -> None:
    assert "sort must be fitted on a reference vocabulary" in run("derive", "a b", "--t", "trans,sort", code=2).err
    with pytest.raises(UsageError, match="needs-lexicon"):
        Pipeline.parse("sort").order(batch_of([["a", "b"]]))


def test_a_set_keeps_the_counts_that_it_was_sorted_by(tmp_path: Path) -> None:
    for workers in ("1", "2"):
        run("make", "--t", "trans,sort", "demo", "-o", tmp_path / workers, "--workers", workers)
    one, two = ((tmp_path / workers / "lexicon.tsv").read_text("utf-8") for workers in "12")
    assert one == two
    assert one.startswith("# derivlang lexicon: sort\nword\tcount\n.\t63\nthe\t55\n")
    assert "are right" in run("verify", tmp_path / "1").out
    asked = ("derive", "the cat of", "--t", "sort", "--lexicon", tmp_path / "1" / "lexicon.tsv")
    assert run(*asked).out == "the of cat\n"
    written(tmp_path / "cut.tsv", one.rstrip("\n"))
    assert "its last row is cut off" in run(*asked[:-1], tmp_path / "cut.tsv", code=1).err
    written(tmp_path / "damaged.tsv", one.replace("the\t", "the "))
    assert "is not a word and its count" in run(*asked[:-1], tmp_path / "damaged.tsv", code=1).err


def test_stats_and_match_count_the_source() -> None:
    sorted_, same = map(json.loads, run("stats", "demo", "--t", "sort", "--t", "identity", "--json").out.splitlines())
    assert sorted_["kendall_tau"] < 0.5 < same["kendall_tau"]
    assert "mallows:" in run("match", "demo", "--t", "trans,sort", "--family", "mallows").out


def test_sub_words_follow_a_fitted_order() -> None:
    batch, pipeline = batch_of([["a", "b", "a", "c", "."]]), Pipeline.parse("sort,inv:unit=token:final=move")
    lexicon = fitted("sort", {"a": 1, "b": 2, "c": 3})
    encoded = Encoded(np.arange(10, dtype=np.int32), np.arange(0, 11, 2))
    entries = string_array([f"e{n}" for n in range(10)])
    assert subword_order(pipeline, batch, encoded, entries, lexicon).index.tolist() == [9, 8, 5, 4, 1, 0, 3, 2, 7, 6]
    with pytest.raises(UsageError, match="needs-lexicon"):
        subword_order(pipeline, batch, encoded, entries)
    assert not is_mapped(pipeline)
    assert is_mapped(Pipeline.parse(f"sort:{GIVEN['sort']['counts']}"))
