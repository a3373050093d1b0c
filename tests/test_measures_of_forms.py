"""Measures of runs whose languages insert, delete and change words, and n-grams of what a run was trained on."""

from __future__ import annotations

import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array
from derivlang.core.batch import Batch
from derivlang.evaluation.evaluate import Evaluated
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, SOURCE
from tests.commands import run
from tests.evaluations import evaluate, options, rows, stored
from tests.reference_ngrams import cross_entropy
from tests.tiny_runs import DEMO, batch
from tests.training import model_file, trained

SIDES = ("source", "derived")
SPECS = ("hop:words=2", "inv:from=random:mark=R", "drop", "case:nom-acc:suffix=free", "agree:subj+obj")


@cache
def run_of(spec: str, *languages: str) -> Path:
    """A causal run of some steps on the demo, in both languages or in one."""
    folder = Path(mkdtemp(prefix="derivlang-tests-"))
    settings = {"tokenizer_for": "both", "languages": (*languages, "both")[0], "steps": 3, "seq_len": 40}
    trained(folder / "run", "clm", spec, data=folder / "data", **settings)
    return folder / "run"


@cache
def evaluated(spec: str, *languages: str) -> Evaluated:
    measures = ("perplexity", "surprisal", "ngrams", *(["regions"] if spec in SPECS[:2] else []))
    return evaluate(run_of(spec, *languages), options(measures=measures, sentences=60))


def value(found: Evaluated, measure: str, metric: str, regime: str = "derived", group: str = "") -> float:
    (row,) = rows(found, measure, metric=metric, regime=regime, group=group)
    return float(row["value"])


def surprisals(spec: str) -> list[list[dict[str, Any]]]:
    """The rows of both files."""
    evaluated(spec)
    return [pq.read_table(run_of(spec) / "evaluation" / f"surprisal.{side}.parquet").to_pylist() for side in SIDES]


def rows_of(text: Batch, offsets: Int64) -> list[list[str]]:
    words = text.strings().to_pylist()
    return [words[a:b] for a, b in pairwise(offsets.tolist())]


@pytest.mark.parametrize("spec", SPECS)
def test_bits_are_divided_by_the_words_of_the_source(spec: str) -> None:
    """Marks and free suffixes are not words, deleted words are. The files have the words of each language."""
    languages = PretrainedRun.load(run_of(spec)).languages
    assert not languages.are_mapped
    source = batch(split="validation", spec=spec)
    made = languages.pipeline.derive(source, languages.readers[1].lexicon, split=False)
    ours, theirs = rows_of(source, source.sentences), rows_of(made.derived, made.order.sentences)
    derived_of = dict(zip(map(tuple, ours), theirs, strict=True))
    both = surprisals(spec)
    assert len(both[SOURCE]) > 10
    changed = 0
    for ours, theirs in zip(*both, strict=True):
        assert theirs["words"] == derived_of[tuple(ours["words"])]
        changed += len(ours["words"]) != len(theirs["words"])
        for row in (ours, theirs):
            assert sum(row["bits"]) + row["end"] == pytest.approx(row["total"], rel=1e-4)
            assert np.bincount(row["subword_words"], row["subword_bits"]) == pytest.approx(row["bits"], rel=1e-4)
    assert bool(changed) == (spec != "agree:subj+obj")
    n_words = sum(len(row["words"]) for row in both[SOURCE])
    for side, table in zip(SIDES, both, strict=True):
        bits = sum(row["total"] for row in table) / n_words
        assert value(evaluated(spec), "perplexity", "bits", side) == pytest.approx(bits, rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*held-out sentence")  # short rows
@pytest.mark.parametrize("spec", ["hop:words=2", "drop", "trans,inv"])
def test_ngrams_are_of_the_text_that_the_run_was_trained_on(spec: str) -> None:
    """Against the encoded rows of the training, and models written plainly."""
    run = PretrainedRun.load(run_of(spec))
    data, found = Data.open(next((run.folder.parent / "data").glob("encoded-text-*")), run.languages), evaluated(spec)
    pieces, end = np.arange(len(data.pieces) - 1), str(run.languages.special_ids.end)
    both = surprisals(spec)
    n_words = sum(len(row["words"]) for row in both[SOURCE])
    for language, side in enumerate(SIDES):
        every = np.full(len(pieces), language)
        ids = np.split(data.tokens(pieces, every).ids, np.cumsum(data.sizes(pieces, every))[:-1])
        train = [[*map(str, piece.tolist()), end] for piece in ids]
        held_out = [[*map(str, one), end] for one in heldout_ids(run, language)]
        for m in (2, 5):
            bits = cross_entropy(train, held_out, m, 4) * sum(map(len, held_out)) / n_words
            assert value(found, "ngrams", f"bits_{m}", side) == pytest.approx(bits, rel=1e-4)
    assert value(found, "ngrams", "bits_5") < value(found, "ngrams", "bits_2")


def heldout_ids(run: PretrainedRun, language: int) -> list[list[int]]:
    """The sub-words of the sentences that were measured, by the words in the files."""
    found = []
    for row in pq.read_table(run.folder / "evaluation" / f"surprisal.{SIDES[language]}.parquet").to_pylist():
        codes = np.arange(len(row["words"]), dtype=np.int32)
        offsets = np.array([0, len(codes)])
        found.append(
            run.languages.readers[language].tokenizer.encode(string_array(row["words"]), codes, offsets).ids.tolist()
        )
    return found


def test_a_language_without_training_has_no_ngrams() -> None:
    found = evaluated("hop:words=2", "derived")
    assert {row["regime"] for row in rows(found, "ngrams")} == {"derived"}
    assert {row["regime"] for row in rows(found, "perplexity")} == set(SIDES)
    assert value(found, "ngrams", "bits_5") == value(evaluated("hop:words=2"), "ngrams", "bits_5")


@pytest.mark.filterwarnings("ignore:.*held-out sentence")  # short rows
def test_fewer_sentences_of_the_training_text() -> None:
    folder = run_of("trans,inv")
    every = value(evaluated("trans,inv"), "ngrams", "bits_5")
    few = evaluate(folder, options(measures=("ngrams",), sentences=60, ngram_sentences=30))
    assert value(few, "ngrams", "bits_5") > every
    assert few.record["measures"]["ngrams"]["settings"]["ngram_sentences"] == 30


@pytest.mark.parametrize("spec", SPECS[:2])
def test_regions_against_the_library_s_own_forward(spec: str) -> None:
    run, found, sums = PretrainedRun.load(run_of(spec)), evaluated(spec), dict[str, list[float]]()
    model = run.language_model(torch.device("cpu")).module.double().eval()
    ids, marks, special = heldout_ids(run, DERIVED), {"🅂", "🄿", "R"}, run.languages.special_ids
    for own, row in zip(ids, surprisals(spec)[DERIVED], strict=True):
        marked = [word in marks for word in row["words"]]
        before = [False, *marked[:-1]]
        for place, (word, bits) in enumerate(zip(row["words"], row["bits"], strict=True)):
            region = "marker" if marked[place] else "after" if before[place] else "other"
            sums.setdefault(region, []).append(bits)
            if not marked[place]:
                continue
            sums.setdefault(f"marker {word}", []).append(bits)
            of = np.array(row["subword_words"])
            first = int(np.flatnonzero(of == place)[0])
            rest = [*np.array(own)[of != place].tolist(), special.end]
            with torch.inference_mode():
                logits = model(torch.tensor([[special.begin, *rest[:first]]])).logits[0, -1]
            without = -float(logits.log_softmax(-1)[rest[first]]) / math.log(2)
            for name in ("difference", f"difference {word}"):
                sums.setdefault(name, []).append(without - bits)
    assert len(sums["marker"]) > 3
    got = {" ".join(filter(None, (row["metric"], row["group"]))): row["value"] for row in rows(found, "regions")}
    assert got == pytest.approx({name: np.mean(values) for name, values in sums.items()}, rel=1e-3, abs=1e-3)


def test_what_cannot_be_measured_is_left_out(tmp_path: Path) -> None:
    asked = ("--measure", "regions,ngrams", "--device", "cpu", "--sentences", 20)
    for spec in ("drop", "trans,inv"):
        result = run("evaluate", run_of(spec), *asked)
        assert f"regions needs inserted words, but the held-out text of {spec} has none" in result.err
    trained(tmp_path / "halves", "clm", "trans,inv", steps=1, halves=True)
    result = run("evaluate", tmp_path / "halves", *asked)
    assert "that both languages were trained on, but each has another one (--halves)" in result.err


def test_training_text_that_has_changed(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.conllu").write_bytes((DEMO / f"demo-ud-{name}.conllu").read_bytes())
    sizes = ("--model", model_file("gpt2"), "--vocab-size", 300, "--steps", 1, "--seq-len", 40)
    run("pretrain", "--source", tmp_path, "--t", "hop:words=2", "--objective", "clm", *sizes, "-o", tmp_path / "run")
    told = stored(tmp_path / "run", "run.json")["training_files"]
    assert [(file["split"], file["name"]) for file in told] == [("train", "train.conllu")]
    text = (tmp_path / "train.conllu").read_text("utf-8")
    (tmp_path / "train.conllu").write_text(text.replace("harbour", "port"), "utf-8")
    result = run("evaluate", tmp_path / "run", "--measure", "perplexity,ngrams", "--device", "cpu", code=1)
    assert "training text has changed since the run was trained" in result.err
    assert "perplexity" in json.loads((tmp_path / "run" / "evaluation.json").read_text("utf-8"))["measures"]
