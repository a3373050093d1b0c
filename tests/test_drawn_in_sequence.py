"""Transforms that draw in sequence (`keyed` is False): laws of their own, in place of "a function of the sentence".

One generator runs through the sentences of a split, in the order of its rows. So the same corpus has the same result,
however it is read; a sentence has the result of its place; and a part of a corpus is derived only from its beginning
on. `EVERY` holds the built-in ones by what they declare, and a transform of a plug-in.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.api import derive_chunks
from derivlang.core.batch import Batch, split_sentences
from derivlang.core.errors import UsageError
from derivlang.core.from_table import to_batch
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.spec import param
from derivlang.pipeline import Pipeline
from derivlang.store.shards import ShardWriter
from derivlang.store.verify import verify
from derivlang.training.languages import check_words
from derivlang.transforms import registry
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform, transform_names
from tests import transforms as contract
from tests.commands import run, spawn
from tests.helpers import make, manifest, right, rows, same_rows, undone
from tests.real import SHARED, needs_data
from tests.strategies import batch_of, few_words, sentence_lists, split_at_spaces, unit_lists, units_of
from tests.test_contract_transforms import PAIRS

KALLINI = "shuffle:final=move:rng=numpy:seed=0"
PARTIAL = "inv:final=move:from=random:mark=R:rng=numpy:seed=21"


@dataclass(frozen=True, kw_only=True)
class Deal(Transform):
    """Words of a sentence in the order in which Python's generator deals them."""

    name = "deal"
    keyed = False
    seed: int = param(1, "seed of the generator", low=0)

    def stream(self, occurrence: int) -> Draws:
        return replace(super().stream(occurrence), generator=random.Random(f"{self.seed} {occurrence}"))

    def order(self, batch: Batch, draws: Draws) -> Order:
        index = np.arange(batch.n_words, dtype=np.int32)
        bounds = list(pairwise(batch.sentences.tolist()))
        for sentence in batch.in_sequence().tolist():
            begin, end = bounds[sentence]
            index[begin:end] = draws.generator.sample(range(begin, end), end - begin)
        return Order(index, batch.sentences, np.zeros_like(batch.tails), batch.n_words)


@pytest.fixture(autouse=True)
def _deal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.TRANSFORMS.added, "deal", Deal)


EVERY = [*(t for t in contract.EVERY if not t.keyed), Deal()]
every = pytest.mark.parametrize("transform", EVERY, ids=str)
LINES = [
    "Ann has left the old house by the river .",
    "It rained . It rained .",
    "Who saw the two black cats on the sofa ?",
    "Ann has left the old house by the river .",
    "One , two , three !",
]
UNITS = [line.split() for line in LINES]
Result = list[tuple[list[str], list[int]]]


def derived(pipeline: Pipeline, *parts: list[list[str]]) -> Result:
    """The sentences of some batches in turn, under a pipeline that has begun."""
    batches = [batch_of(units) for units in parts]
    return [s for b in batches for s in contract.per_sentence(pipeline.derive(b, Lexicon(), split=False))]


def begun(transform: Transform) -> Pipeline:
    return Pipeline((transform,)).begin()


def test_the_built_in_ones_are_found_by_what_they_declare() -> None:
    assert {t.name for t in EVERY} == {"inv", "shuffle", "deal"}
    assert all(find_transform(name).keyed is True for name in set(transform_names()) - {"inv", "shuffle", "deal"})
    assert not Pipeline.parse(f"trans,{KALLINI},inv").keyed
    for spec in ("shuffle", "shuffle:by=length:rng=numpy", "shuffle:by=window:local=3:rng=numpy", "inv:rng=numpy"):
        assert Pipeline.parse(spec).keyed  # a function of the sentence, its length, or a window


# laws


@every
@given(units=units_of(few_words), cut=st.integers(0, 20))
def test_batches_do_not_matter(transform: Transform, units: list[list[str]], cut: int) -> None:
    whole = derived(begun(transform), units)
    assert derived(begun(transform), units) == whole
    assert derived(begun(transform), units[:cut], units[cut:]) == whole
    assert derived(begun(transform), *([unit] for unit in units)) == whole


@every
def test_a_result_depends_on_the_sentences_before_it_only(transform: Transform) -> None:
    units = [unit for _ in range(5) for unit in UNITS]
    whole = derived(begun(transform), units)
    for k in (1, 2, 9):
        first = derived(begun(transform), units[:k])
        assert whole[: len(first)] == first
        assert whole[len(first) :] != derived(begun(transform), units[k:])
    images: dict[str, set[str]] = {}
    for source, (image, _) in zip(sentence_lists(batch_of(units)), whole, strict=True):
        images.setdefault(" ".join(source), set()).add(" ".join(image))
    assert max(map(len, images.values())) > 3  # a sentence has many forms


@every
def test_a_second_transform_of_a_kind_draws_anew(transform: Transform) -> None:
    twice = Pipeline((transform, transform)).begin()
    once = [order for _, order in derived(begun(transform), UNITS)]
    if transform.is_permutation:
        assert [order for _, order in derived(twice, UNITS)] != [[one[i] for i in one] for one in once]


@every
def test_a_copy_draws_on_without_moving_the_pipeline(transform: Transform) -> None:
    pipeline = begun(transform)
    derived(pipeline, UNITS)
    later = derived(pipeline.copy(), UNITS)
    assert derived(pipeline, UNITS) == later


def test_pairs_are_drawn_row_by_row() -> None:
    """A batch holds all premises, then all hypotheses, and equal neighbours are not drawn together."""
    premises, hypotheses = [*LINES[:2], LINES[1], LINES[2]], [*LINES[2:], LINES[4]]
    table = pa.table({"premise": premises, "hypothesis": hypotheses, "label": ["neutral"] * 4})

    def read(part: pa.Table) -> Batch:
        return split_sentences(
            to_batch(
                part,
                PAIRS,
                split_at_spaces,
                documents=np.arange(len(part)),
                where=lambda row, word: "",
                counts=Counter(),
                shares=False,
            )
        )

    def pairs(*parts: pa.Table) -> list[list[list[str]]]:
        pipeline = Pipeline.parse(KALLINI).begin()
        found = [pipeline.derive(read(part), Lexicon(), split=False).derived for part in parts]
        return [[unit_lists(b)[unit] for unit in row] for b in found for row in b.records.tolist()]

    whole = pairs(table)
    assert pairs(table[:1], table[1:3], table[3:]) == pairs(*(table[i : i + 1] for i in range(4))) == whole
    flat = [line.split() for pair in zip(premises, hypotheses, strict=True) for line in pair]
    one_side = Pipeline.parse(KALLINI).begin().derive(batch_of(flat), Lexicon(), split=False)
    assert [text for row in whole for text in row] == unit_lists(one_side.derived)


def test_words_are_chosen_in_the_order_that_was_drawn(tmp_path: Path) -> None:
    """`lex` with several images chooses by the place in the order so far; to ask for it draws nothing."""
    (tmp_path / "d.tsv").write_text("the\tle\nthe\tla\nold\tvieux\nold\tancien\n")
    spec = f"{KALLINI},lex:{tmp_path / 'd.tsv'}"
    (with_words,) = derive_chunks([LINES], spec, words="space")
    (orders,) = derive_chunks([LINES], KALLINI, words="space")
    assert [text.order for text in with_words] == [text.order for text in orders]
    assert [text.words for text in with_words] != [text.words for text in orders]


# published programs


def reference(sentences: list[list[str]]) -> list[list[str]]:
    """Kallini et al.: one generator shuffles the list of each sentence."""
    generator, out = np.random.default_rng(0), []
    for sentence in sentences:
        words = list(sentence)
        generator.shuffle(words)
        out.append(words)
    return out


def marked(sentences: list[list[str]]) -> list[list[str]]:
    """Kallini et al., partial reverse: a place of 0 … n from one generator; what is behind the marker is reversed."""
    generator, out = np.random.default_rng(21), []
    for words in sentences:
        i = generator.choice(len(words) + 1)
        out.append([*words[:i], "R", *reversed(words[i:])])
    return out


@given(units=units_of(few_words))
def test_the_draws_of_numpy(units: list[list[str]]) -> None:
    sentences = sentence_lists(batch_of(units))
    for spec, plain in ((KALLINI, reference), (PARTIAL, marked)):
        assert [words for words, _ in derived(Pipeline.parse(spec).begin(), units)] == plain(sentences)


@needs_data
@pytest.mark.parametrize(("spec", "plain"), [(KALLINI, reference), (PARTIAL, marked)])
@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("wikitext2", "text/wikitext-2/wiki.test.tokens"),
        ("pos", "ud/UD_English-EWT/en_ewt-ud-test.conllu"),
        ("xnli", "xnli/test.en.tsv"),
    ],
)
def test_real_corpora(
    spec: str, plain: Callable[[list[list[str]]], list[list[str]]], source: str, file: str, tmp_path: Path
) -> None:
    out = make(spec, source, tmp_path / "out", data_dir=SHARED, splits=("test",))
    right(out)
    assert undone(out, suffix=Path(file).suffix) == (SHARED / file).read_bytes()
    table = rows(out)
    sides = [name.removesuffix("source") for name in table.column_names if name.endswith("source")]
    sources, images = [], []
    for row in table.select([f"{s}{part}" for s in sides for part in ("source", "tokens", "sentences")]).to_pylist():
        for side in sides:
            words = row[f"{side}source"]
            ends = np.cumsum(row[f"{side}sentences"][::2] or [len(words)]).tolist()
            sources += [words[a:b] for a, b in pairwise([0, *ends]) if b > a]
            images += row[f"{side}tokens"]
    assert [word for sentence in plain(sources) for word in sentence] == images


# sets


@every
def test_a_set_of_files_of_any_size(transform: Transform, tmp_path: Path) -> None:
    text = [f"{line}\n" for _ in range(20) for line in LINES]
    folders: list[Path] = []
    for number, cuts in enumerate(([0, 100], [0, 1, 37, 100])):
        folder = tmp_path / f"files{number}"
        folder.mkdir()
        for part, (a, b) in enumerate(pairwise(cuts)):
            (folder / f"{part}-train.tokens").write_text("".join(text[a:b]))
        folders.append(folder)
    warnings: list[str] = []
    one = make(str(transform), folders[0], tmp_path / "one")
    two = make(str(transform), folders[1], tmp_path / "two", shard_tokens=10, warnings=warnings)
    assert any("--shard-tokens has no effect" in warning for warning in warnings)
    for out in (one, two):
        right(out)
        assert manifest(out)["keyed"] is False
        assert len(manifest(out)["splits"]["train"]["shards"]) == 1
        assert undone(out, suffix=".txt") == "".join(text).encode()
    same_rows(rows(two).drop(["document"]), rows(one).drop(["document"]))
    lines = derive_chunks([[line] for line in "".join(text).split("\n")[:-1]], str(transform), words="space")
    assert [w for (line,) in lines for w in line.words] == [w for row in rows(one)["tokens"].to_pylist() for w in row]
    assert "it is not for a language of two corpora [not-keyed]" in run("verify", one, two, code=2).err
    limited = make(str(transform), folders[0], tmp_path / "limited", limit=7)
    same_rows(rows(limited), rows(one)[: rows(limited).num_rows])


@pytest.mark.filterwarnings("ignore:.*the words look divided already")
def test_each_split_begins_anew_and_a_set_can_be_a_source(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for split in ("train", "test"):
        (tmp_path / "in" / f"{split}.txt").write_text("".join(f"{line}\n" for line in LINES * 9))
    keyed = make("inv", tmp_path / "in", tmp_path / "keyed", shard_tokens=40)
    assert len(list((keyed / "data").iterdir())) > 2
    whole = make(f"inv,{KALLINI},inv", tmp_path / "in", tmp_path / "whole")
    same_rows(rows(whole, "test"), rows(whole, "train"))
    first = make(KALLINI, keyed, tmp_path / "first")  # from several shards
    again = make("inv", first, tmp_path / "again")
    for split in ("train", "test"):
        same_rows(rows(again, split), rows(whole, split))
    right(again)


def test_an_interrupted_set_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, again = (f"make --t {KALLINI} demo -o {tmp_path / name}".split() for name in ("whole", "again"))
    run(*whole)
    write, seen = ShardWriter.write, []

    def stopping(self: ShardWriter, columns: Any) -> None:
        seen.append(self)
        write(self, columns)
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(ShardWriter, "write", stopping)
    run(*again, code=None)
    assert len(seen) == 2
    monkeypatch.setattr(ShardWriter, "write", write)
    run(*again)
    for file in (tmp_path / "whole" / "data").iterdir():
        assert (tmp_path / "again" / "data" / file.name).read_bytes() == file.read_bytes()


def test_verify_names_the_row_that_was_changed(tmp_path: Path) -> None:
    out = make(KALLINI, "demo", tmp_path / "out", splits=("train",))
    (shard,) = (out / "data").iterdir()
    table = pq.read_table(shard)
    tokens, order = (table[name].to_pylist() for name in ("tokens", "order"))
    at = next(i for i, words in enumerate(tokens) if i > 20 and len(words) > 4)
    for column in (tokens, order):
        column[at][:2] = column[at][1::-1]
    for name, values in (("tokens", tokens), ("order", order)):
        table = table.set_column(table.column_names.index(name), name, [pa.array(values, table[name].type)])
    pq.write_table(table, shard)
    problems = verify(out)["problems"]
    assert [problem["row"] for problem in problems] == [at]


def test_a_data_set_in_memory() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": LINES * 500})
    mapped = derivlang.map_dataset(data, KALLINI, words="space")
    (texts,) = derive_chunks([LINES * 500], KALLINI, words="space")
    assert mapped["tokens"][:] == [text.words for text in texts]
    with pytest.raises(UsageError, match=r"a stream \[not-keyed\]"):
        derivlang.map_dataset(data.to_iterable_dataset(), KALLINI, words="space")


def test_figures_are_of_the_first_rows(tmp_path: Path) -> None:
    out = make(KALLINI, "demo", tmp_path / "out", splits=("train",))
    on_the_fly = run("stats", "--t", KALLINI, "demo", "--split", "train", "--json").json
    of_set = run("stats", out, "--split", "train", "--json").json
    assert on_the_fly["kendall_tau"] == of_set["kendall_tau"] != 1
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES[:2] * 9))
    of_file = make(KALLINI, path, tmp_path / "file")
    shown = run("show", "--json", "-n", 1, "--row", 7, "--t", KALLINI, path).json
    assert shown["tokens"] == rows(of_file)["tokens"][7].as_py()


# what needs a function of the sentence


@every
@pytest.mark.parametrize("spec", ["{}", "trans,{}", "{},inv"])
def test_only_a_corpus_in_one_process(transform: Transform, spec: str, tmp_path: Path) -> None:
    spec, source = spec.format(transform), tmp_path / "a.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    pipeline = Pipeline.parse(spec)
    refused: list[Callable[[], Any]] = [
        lambda: make(spec, source, tmp_path / "out", workers=2),
        lambda: derivlang.derive(LINES[0], spec, words="space"),
        lambda: derivlang.derive(LINES[0].split(), spec),
        lambda: pipeline.order(batch_of(UNITS)),
        lambda: pipeline.derive(batch_of(UNITS), pipeline.fit(), split=False),
        lambda: derivlang.pretrain(source, spec, tmp_path / "run"),
        lambda: check_words(pipeline),
    ]
    for call in refused:
        with pytest.raises(UsageError) as error:
            call()
        assert error.value.id == "not-keyed"
        assert str(transform) in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


def test_a_text_of_several_sentences_is_a_sequence() -> None:
    text = "He cleans his very messy books he lf .\nThey clean his very messy books he lf ."
    found = derivlang.derive(text, KALLINI, words="space")
    assert found.text == "messy books his he very . lf He cleans his . very he They messy lf books clean"


def test_on_the_command_line() -> None:
    line = LINES[0]
    for command in ("derive", "show"):
        done = run(command, "--words", "space", "--t", KALLINI, line, code=2)
        assert "it is not for a single sentence [not-keyed]" in done.err
    assert len(spawn("derive", "--words", "space", "--t", KALLINI, "-", input=f"{line}\n").out.split()) == 10
    assert run("ls").out.count("It may draw in sequence") == 3
