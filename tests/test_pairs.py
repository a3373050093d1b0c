"""Sentence pairs: exact rates, nested and keyed; gold links; formats read back."""

from __future__ import annotations

import gc
import itertools
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.lexical.bitext import links_of, segments, writing_pairs
from derivlang.pipeline import Pipeline
from derivlang.store.files import writing_all
from derivlang.store.manifest import Derived, load
from derivlang.transforms import registry
from tests.commands import change, pairs, questions, run, shards, trees
from tests.helpers import make
from tests.reference import rounded
from tests.strategies import Drop, Mark, batch_of, few_words, laws, seeds, sentence_lists, units_of

WORDS = "the a cat dog <unk> sat , ran & < > \" don't".split()


def sentences(n: int, seed: int = 1) -> list[str]:
    draws = random.Random(seed)
    return [" ".join(draws.choices(WORDS, k=draws.randint(1, 9))) + " ." for _ in range(n)]


@pytest.fixture
def derived(tmp_path: Path) -> Path:
    source = tmp_path / "a.train.tokens"
    source.write_text("".join(f"{s}\n" for s in sentences(300)), "utf-8")
    return make("trans,inv", source, tmp_path / "set")


def pair(folder: Path, out: Path, kind: str, *options: object) -> Any:
    return run("pair", folder, "--format", kind, "-o", out, "--json", "--force", *options).json


def read_links(path: Path) -> list[list[tuple[int, int]]]:
    found = []
    for line in path.read_text("utf-8").splitlines():
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert links == sorted(links)
        found.append(links)
    return found  # type: ignore[return-value]


def whole(folder: Path, out: Path) -> list[dict[str, Any]]:
    """All pairs of a set, as rows of the Parquet form."""
    pair(folder, out, "parquet")
    return rows_of(out)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


# rates


def test_rates_are_exact_nested_and_in_source_order(derived: Path, tmp_path: Path) -> None:
    everything = whole(derived, tmp_path / "all")
    assert [row["pair"] for row in everything] == list(range(len(everything)))
    last: set[int] = set()
    for rate in ("1", "10", "12.5", "25", "99"):
        result = pair(derived, tmp_path / "p", "parquet", "--rate", rate)
        found = rows_of(tmp_path / "p")
        numbers = [row["pair"] for row in found]
        assert result["sentences"] == len(everything)
        assert result["pairs"] == len(found) == rounded(Fraction(rate), len(everything))
        assert numbers == sorted(set(numbers))
        assert last <= set(numbers)
        assert found == [everything[n] for n in numbers]
        last = set(numbers)
    pair(derived, tmp_path / "q", "parquet", "--rate", 25, "--seed", 2)
    pair(derived, tmp_path / "p", "parquet", "--rate", 25)
    assert {r["pair"] for r in rows_of(tmp_path / "q")} != {r["pair"] for r in rows_of(tmp_path / "p")}


def test_all_formats_give_the_same_pairs(derived: Path, tmp_path: Path) -> None:
    options = ("--rate", 20, "--seed", 3)
    results = [pair(derived, tmp_path / kind, kind, *options) for kind in ("text", "pharaoh", "parquet")]
    counts = [{k: v for k, v in r.items() if k not in ("out", "files")} for r in results]
    assert counts[0] == counts[1] == counts[2]
    rows = rows_of(tmp_path / "parquet")
    for side, column in (("source", "source"), ("derived", "tokens")):
        lines = (tmp_path / f"text.{side}").read_text("utf-8").splitlines()
        assert lines == [" ".join(row[column]) for row in rows]
    links = read_links(tmp_path / "pharaoh")
    assert links == read_links(tmp_path / "text.pharaoh")
    assert links == [[tuple(link) for link in row["links"]] for row in rows]
    trans = Pipeline.parse("trans").fit()
    for row in rows:
        assert len(row["links"]) == len(row["source"]) == len(row["tokens"])
        ours = [row["source"][i] for i, _ in row["links"]]
        assert trans.apply(_strings(ours)).to_pylist() == [row["tokens"][j] for _, j in row["links"]]
    assert results[0]["words"] == {"source": results[0]["links"], "derived": results[0]["links"]}


def _strings(words: list[str]) -> Any:
    from derivlang.core.arrow import string_array

    return string_array(words)


def test_the_same_pairs_for_any_size_of_shards_and_order_of_the_source(tmp_path: Path) -> None:
    texts = sorted(set(sentences(200)))
    turned = texts[::-1]
    found = []
    for name, lines, size in (("a", texts, 10**6), ("b", texts, 150), ("c", turned, 70)):
        source = tmp_path / name / "x.train.tokens"
        source.parent.mkdir()
        source.write_text("".join(f"{s}\n" for s in lines), "utf-8")
        out = make("perm,trans", source, tmp_path / name / "set", shard_tokens=size)
        pair(out, tmp_path / name / "p", "text", "--rate", 30)
        sides = [(tmp_path / name / f"p.{s}").read_text("utf-8").splitlines() for s in ("source", "derived", "pharaoh")]
        found.append(sides)
    assert len(shards(tmp_path / "c" / "set")) > len(shards(tmp_path / "b" / "set")) > 1
    assert found[0] == found[1]
    assert [side[::-1] for side in found[2]] == found[0]


def test_the_same_command_gives_the_same_bytes(derived: Path, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for kind in ("text", "parquet", "pharaoh"):
            pair(derived, tmp_path / folder / kind, kind, "--rate", 40)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f).iterdir()} for f in ("one", "two"))
    assert one == two
    assert len(one) == 5 + 3
    assert str(tmp_path).encode() not in b"".join(one.values())


# sentences of labelled sets


def test_each_sentence_of_a_unit_is_a_pair(tmp_path: Path) -> None:
    out = make("inv,trans", pairs(tmp_path), tmp_path / "nli", words="unicode")
    found = whole(out, tmp_path / "p")
    assert [" ".join(row["source"]) for row in found] == [
        "The cat sleeps .",
        "A cat is asleep .",
        "He didn't go .",
        "He went home .",
        "It rains .",
        "She stays .",
        "She reads .",
    ]


def test_a_context_of_several_questions_counts_once(tmp_path: Path) -> None:
    out = make("inv", questions(tmp_path), tmp_path / "qa", words="unicode")
    found = Counter(" ".join(row["source"]) for row in whole(out, tmp_path / "p"))
    assert found == {"Ada lives in London .": 1, "She writes programs .": 1, "Where ?": 1, "What ?": 1}


def test_a_word_with_a_space(tmp_path: Path) -> None:
    out = make("inv", trees(tmp_path), tmp_path / "set")
    result = pair(out, tmp_path / "p", "text")
    assert result["spaces"] == 2
    assert "20\u00a0000 euros !" in (tmp_path / "p.source").read_text("utf-8")
    assert whole(out, tmp_path / "q")[1]["source"] == ["20 000", "euros", "!"]


def test_inserted_and_deleted_words_have_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in (Mark, Drop):
        monkeypatch.setitem(registry.TRANSFORMS.added, sample.name, sample)
    source = tmp_path / "a.train.tokens"
    source.write_text("".join(f"{s}\n" for s in sentences(60)), "utf-8")
    for spec in (str(Mark()), str(Drop()), f"{Mark()},inv"):
        out = make(spec, source, tmp_path / f"set-{spec.replace(':', '-')}")
        for row in whole(out, tmp_path / "p"):
            places = [j for _, j in row["links"]]
            assert len(set(places)) == len(places)
            assert all(row["source"][i] == row["tokens"][j] for i, j in row["links"])
            unlinked = [word for j, word in enumerate(row["tokens"]) if j not in places]
            assert (Counter(row["tokens"]) - Counter(unlinked)) <= Counter(row["source"])
            assert row["links"]


@laws
@given(
    units_of(few_words), seeds, st.sampled_from(["inv", "perm", "identity", "mark", "skip", "skip,mark", "mark,perm"])
)
def test_pairs_are_the_sentences_and_hold_every_link(units: list[list[str]], seed: int, spec: str) -> None:
    samples = {"mark": Mark(), "skip": Drop()}
    transforms = [samples.get(name) or Pipeline.parse(name).transforms[0] for name in spec.split(",")]
    batch = batch_of(units)
    result = Pipeline(tuple(transforms)).derive(batch, Pipeline(tuple(transforms)).fit(), split=False)
    found = segments(result.source, result.derived, result.order)
    links = links_of(result.order, found)
    source, target = batch.strings().to_pylist(), result.derived.strings().to_pylist()
    ours = [source[a:b] for a, b in found[:, 1:3].tolist()]
    theirs = [target[a:b] for a, b in found[:, 3:].tolist()]
    kept = [(s, t) for s, t in zip(sentence_lists(batch), _sentences(result), strict=True) if s and t]
    if result.order.is_permutation:
        assert list(zip(ours, theirs, strict=True)) == kept
    assert len(links) == int((result.order.index >= 0).sum())
    for p, i, j in links.tolist():
        assert ours[p][i] == theirs[p][j]
    assert all(ours)
    assert all(theirs)


def _sentences(result: Any) -> list[list[str]]:
    words = result.derived.strings().to_pylist()
    bounds = result.order.sentences.tolist()
    return [words[a:b] for a, b in itertools.pairwise(bounds)]


def test_sentences_that_an_order_mixes_are_one_pair() -> None:
    from dataclasses import replace

    from derivlang.core.batch import realign
    from derivlang.core.order import Order

    batch = batch_of([["a", "b", ".", "c", "d", ".", "e", "."], ["f", "."]])
    index = np.array([0, 3, 2, 1, 4, 5, 6, 7, 9, 8], np.int32)
    sentences = np.array([0, 6, 6, 8, 10])
    order = Order(index, sentences, np.zeros(4, np.int32), 10)
    found = segments(batch, replace(realign(batch, order), units=np.array([0, 3, 4])), order)
    assert found[:, 1:].tolist() == [[0, 6, 0, 6], [6, 8, 6, 8], [8, 10, 8, 10]]


# bad input


def test_bad_input_is_one_message_and_leaves_nothing(derived: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    out = tmp_path / "p"
    usual: list[object] = [derived, "--format", "pharaoh", "-o", out]
    cases: list[tuple[list[object], int, str]] = [
        ([*usual, "--rate", "101"], 2, "--rate: a percentage must be above 0 and at most 100, got 101 [bad-value]"),
        ([*usual, "--rate", "0"], 2, "[bad-value]"),
        ([*usual, "--rate", "many"], 2, "is not a percentage"),
        ([*usual, "--rate", "0.01"], 2, "is less than one pair [rate]"),
        ([*usual, "--split", "test"], 1, "there is no split 'test'; there are: train [unknown-split]"),
        ([derived, "--format", "moses", "-o", out], 2, "'moses' is not one of"),
        ([derived, "--format", "text", "-o", tmp_path / "folder"], 2, "is a directory"),
        ([derived, "--format", "pharaoh", "-o", tmp_path / "no" / "p"], 1, "[cannot-write]"),
        ([derived, "--format", "text", "-o", "-"], 2, "[output]"),
        ([derived, "-o", tmp_path / "p.txt"], 2, "the format is Parquet, but p.txt names a text file [output]"),
        ([tmp_path / "folder", "--format", "pharaoh", "-o", out], 1, "this is not a derived set"),
        ([tmp_path / "none", "--format", "pharaoh", "-o", out], 1, "there is no such folder"),
    ]
    for arguments, code, message in cases:
        before = sorted(tmp_path.rglob("*"))
        ran = run("pair", *arguments, code=code)
        assert message in ran.err, (arguments, ran.err)
        assert ran.out == ""
        assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_shard_leaves_nothing(derived: Path, tmp_path: Path) -> None:
    out = tmp_path / "p"
    last = len(next(iter(load(Derived(derived), "train"))).table) - 1
    change(shards(derived)[0], "order", last, [7] * 3)
    before = sorted(tmp_path.rglob("*"))
    assert "[damaged]" in run("pair", derived, "--format", "text", "-o", out, code=1).err
    assert sorted(tmp_path.rglob("*")) == before


def test_an_older_file_stays_where_a_run_fails(derived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair(derived, tmp_path / "p", "text", "--rate", 10)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("p.*")}

    def broken(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("derivlang.lexical.bitext._write_lines", broken)
    ran = run("pair", derived, "--format", "text", "-o", tmp_path / "p", "--rate", 50, "--force", code=1)
    assert "No space left" in ran.err
    assert {path.name: path.read_bytes() for path in tmp_path.glob("p.*")} == before
    assert not list(tmp_path.glob(".p*"))


# sub-words


@pytest.fixture
def tokenizers(derived: Path, tmp_path: Path) -> tuple[Path, Path]:
    run("tokenizer", "train", tmp_path / "a.train.tokens", "--vocab-size", 40, "-o", tmp_path / "tok")
    run("tokenizer", "twin", tmp_path / "tok", "--t", "trans", "-o", tmp_path / "twin")
    return tmp_path / "tok", tmp_path / "twin"


def test_subwords_are_linked_one_to_one(derived: Path, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = tokenizers
    pair(derived, tmp_path / "out", "parquet", "--tokenizer", ours, "--twin", theirs)
    rows = rows_of(tmp_path / "out")
    several = 0
    for row in rows:
        links = [tuple(link) for link in row["subword_links"]]
        assert links == sorted(links)
        assert sorted(i for i, _ in links) == list(range(len(row["source_ids"])))
        assert sorted(j for _, j in links) == list(range(len(row["ids"])))
        assert all(row["source_ids"][i] == row["ids"][j] for i, j in links)  # a twin gives the same ids
        several += len(row["source_ids"]) > len(row["source"])
    assert several > len(rows) / 2
    plain = whole(derived, tmp_path / "plain")
    assert [row["links"] for row in rows] == [row["links"] for row in plain]


def test_tokenizers_that_do_not_fit(derived: Path, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    ours, theirs = tokenizers
    out = tmp_path / "out"
    alone = run("pair", derived, "--format", "parquet", "-o", out, "--tokenizer", ours, code=2)
    assert "needs --twin, too" in alone.err
    text = run("pair", derived, "--format", "text", "-o", out, "--tokenizer", ours, "--twin", theirs, code=2)
    assert "Parquet" in text.err
    usual = ("pair", derived, "--format", "parquet", "-o", out, "--tokenizer")
    missing = run(*usual, tmp_path / "nope", "--twin", theirs, code=1)
    assert "nope: there is no such folder" in missing.err
    assert "Exception ignored" not in missing.err
    assert not list(tmp_path.glob("out*"))


def test_a_twin_of_another_tokenizer_or_script_is_refused(
    derived: Path, tokenizers: tuple[Path, Path], tmp_path: Path
) -> None:
    """Its ids would be those of other entries, in silence."""
    ours, theirs = tokenizers
    run("tokenizer", "train", tmp_path / "a.train.tokens", "--vocab-size", 35, "-o", tmp_path / "small")
    run("tokenizer", "twin", ours, "--t", "trans:script=greek", "-o", tmp_path / "greek")
    usual = ("pair", derived, "--format", "parquet", "-o", tmp_path / "out", "--tokenizer")
    assert "is another twin: it has 40 entries" in run(*usual, tmp_path / "small", "--twin", theirs, code=1).err
    assert "is another twin: spec is trans:" in run(*usual, ours, "--twin", tmp_path / "greek", code=1).err
    assert "is a twin itself" in run(*usual, theirs, "--twin", theirs, code=1).err
    inverted = make("inv", tmp_path / "a.train.tokens", tmp_path / "inverted")
    told = run("pair", inverted, *usual[2:], ours, "--twin", theirs, code=2).err
    assert "a twin is of one trans, but the set's transforms are inv" in told
    assert not list(tmp_path.glob("out*"))


def test_subwords_of_a_tokenizer_that_is_no_twin(derived: Path, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    ours, _ = tokenizers
    text = tmp_path / "b.train.tokens"
    run("export", derived, "--format", "text", "-o", text)
    run("tokenizer", "train", text, "--vocab-size", 35, "-o", tmp_path / "other")
    pair(derived, tmp_path / "out", "parquet", "--tokenizer", ours, "--twin", tmp_path / "other")
    lengths: Counter[bool] = Counter()
    for row in rows_of(tmp_path / "out"):
        links = {tuple(link) for link in row["subword_links"]}
        assert {i for i, _ in links} == set(range(len(row["source_ids"])))
        assert {j for _, j in links} == set(range(len(row["ids"])))
        lengths[len(row["source_ids"]) == len(row["ids"])] += 1
    assert lengths[False]


def test_unknown_subwords_are_counted(derived: Path, tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    ours, _ = tokenizers
    out = tmp_path / "out"
    told = run("pair", derived, "--format", "parquet", "-o", out, "--tokenizer", ours, "--twin", ours).out
    unknown = sum(row["ids"].count(3) for row in rows_of(out))
    n = sum(len(row["ids"]) for row in rows_of(out))
    assert unknown > n / 2
    assert f"derived side: {unknown:,} of {n:,} sub-words are <unk>" in told
    inverted = make("inv", tmp_path / "a.train.tokens", tmp_path / "inverted")
    result = pair(inverted, tmp_path / "same", "parquet", "--tokenizer", ours, "--twin", ours)
    assert result["subwords"]["derived_unknown"] == result["subwords"]["source_unknown"]
    for row in rows_of(tmp_path / "same"):
        assert all(row["source_ids"][i] == row["ids"][j] for i, j in row["subword_links"])
        assert len(row["subword_links"]) == len(row["ids"])


def test_a_failure_after_the_writer_is_open_is_one_error(tmp_path: Path) -> None:
    """pyarrow closes an open writer when it is collected, and prints a traceback if its file is closed by then."""

    def fail() -> None:
        with writing_all([tmp_path / "out"]) as streams, writing_pairs(streams, "parquet"):
            raise DataError("too bad", id="pairs")

    with pytest.raises(DataError, match="too bad"):
        fail()
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_twin_cannot_encode_kept_words(tokenizers: tuple[Path, Path], tmp_path: Path) -> None:
    """The words that an overlap keeps are in the source's script, which the twin's own vocabulary lacks."""
    ours, _ = tokenizers
    kept = make("trans:overlap=50", tmp_path / "a.train.tokens", tmp_path / "kept")
    run("tokenizer", "twin", ours, "--t", "trans:overlap=50", "-o", tmp_path / "half")
    options = ("--format", "parquet", "-o", tmp_path / "out", "--tokenizer", ours, "--twin")
    told = run("pair", kept, *options, tmp_path / "half", code=2).err
    assert "overlap=50 keeps words of the source, which the twin's own vocabulary lacks" in told
    assert not list(tmp_path.glob("out*"))
