"""Alignment of embeddings and states, and perplexity: against slow loops, and where the answer is known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derivlang.core.errors import DataError
from derivlang.engine.batches import Source
from derivlang.evaluation import embeddings
from derivlang.evaluation.contextual import contextual, retrieval, word_accuracy
from derivlang.evaluation.embeddings import EmbeddingPairs, alignment, best, figures, known_entries, neighbourhood
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.perplexity import RATE, chosen, perplexity
from derivlang.evaluation.trained import ModelEncoder, PretrainedRun
from derivlang.sources.find import SourceRequest
from derivlang.training import model as training_model
from tests.tiny_runs import languages, model_of, rows_of_twins_equal, save_model, write_run

CPU = torch.device("cpu")


def unit(rows: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def slow(left: Any, right: Any, k: int) -> tuple[list[int], list[int]]:
    """Nearest rows by cosine and by CSLS (Conneau et al. 2018), cell by cell, in float64."""

    def near(row: Any, others: Any) -> float:
        cosines = sorted((sum(a * b for a, b in zip(row, other, strict=True)) for other in others), reverse=True)
        return float(np.mean(cosines[:k]))

    nearest, by_csls = [], []
    reach = [near(other, left) for other in right]
    for row in left:
        cosines = [sum(a * b for a, b in zip(row, other, strict=True)) for other in right]
        nearest.append(int(np.argmax(cosines)))
        own = near(row, right)
        by_csls.append(int(np.argmax([2 * c - own - r for c, r in zip(cosines, reach, strict=True)])))
    return nearest, by_csls


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(1, 14), st.integers(1, 12), st.integers(0, 99))
def test_retrieval_against_a_slow_loop(n: int, m: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = unit(rng.normal(size=(n, 5))), unit(rng.normal(size=(m, 5)))
    ours, theirs = torch.tensor(left), torch.tensor(right)
    found = best(ours, theirs, neighbourhood(theirs, ours, k))
    assert tuple(side.tolist() for side in found) == slow(left, right, k)


def table(n: int, own: Any = None, known: Any = None, counts: Any = None) -> EmbeddingPairs:
    every = np.ones(n, bool)
    return EmbeddingPairs(
        np.arange(n),
        np.arange(n) + n,
        every if own is None else np.asarray(own, bool),
        ~every if known is None else np.asarray(known, bool),
        np.ones(n, np.int64) if counts is None else np.asarray(counts),
    )


def test_figures_against_a_slow_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_CELLS", 50)  # several blocks
    rng = np.random.default_rng(3)
    n = 40
    source = rng.normal(size=(n, 6))
    rows = np.concatenate([source, source + rng.normal(size=(n, 6))])
    own, known, counts = rng.random(n) < 0.8, rng.random(n) < 0.3, rng.integers(0, 9, n)
    found = figures(*[torch.tensor(rows)] * 2, table(n, own, known, counts))
    ours, theirs = unit(rows[:n]), unit(rows[n:])
    asked = np.flatnonzero(own)
    for prefix, left, right in (("", ours, theirs), ("reverse_", theirs, ours)):
        for name, hits in zip(("all", "csls"), slow(left[own], right, 10), strict=True):
            right_ones = np.array(hits) == asked
            stem = prefix if name == "all" else f"{prefix}csls_"
            assert found[f"{prefix}{name}"] == pytest.approx(100 * right_ones.mean())
            assert found[f"{stem}heldout"] == pytest.approx(100 * right_ones[~known[own]].mean())
            assert found[f"{stem}mass"] == pytest.approx(100 * np.average(right_ones, weights=counts[own]))
        assert found[f"{prefix}heldout_low"] <= found[f"{prefix}heldout"] <= found[f"{prefix}heldout_high"]
    assert 0 < found["all"] < 100


def test_figures_of_nothing() -> None:
    rows = torch.eye(6)
    found = figures(rows, rows, table(3, own=[0, 0, 0]))
    assert (found["all"], found["heldout"], found["reverse_csls"]) == (None, None, None)
    found = figures(rows, rows, table(3, known=[1, 1, 1]))
    assert found["heldout"] is None
    assert "heldout_low" not in found


def test_equal_rows_are_aligned_and_the_dictionary_is_left_out(tmp_path: Path) -> None:
    run = PretrainedRun.load(write_run(tmp_path, dictionary=40))
    encoder = run.encoder(CPU)
    before = alignment(run, encoder)
    assert before["all"] < 20
    first, size = run.languages.tokenizer.n_special, run.languages.tokenizer.size
    assert (before["rows"], before["rows_heldout"], before["rows_shared"]) == (size - first, size - first - 40, 0)
    known = np.arange(size) - first
    assert (known_entries(tmp_path / "dictionary.tsv", run.languages) == ((known >= 0) & (known < 40))).all()
    weights = encoder.module.get_input_embeddings().weight
    joint = run.languages.twin.joint.table()[first : first + 40]
    with torch.no_grad():  # only the dictionary's are learnt
        weights[torch.from_numpy(joint.astype(np.int64))] = weights[first : first + 40].clone()
    learnt = alignment(run, encoder)
    assert learnt["all"] - before["all"] == pytest.approx(100 * 40 / (size - first), abs=2)
    assert learnt["heldout"] == pytest.approx(before["heldout"], abs=2)
    rows_of_twins_equal(encoder.module, run.languages)
    every = alignment(run, encoder)
    assert {every[name] for name in every if not name.startswith("rows")} == {100.0}


def test_shared_rows_are_not_asked_for(tmp_path: Path) -> None:
    run = PretrainedRun.load(write_run(tmp_path, "trans:overlap=60"))
    found = alignment(run, run.encoder(CPU))
    languages = run.languages
    assert found["rows"] + found["rows_shared"] == languages.tokenizer.size - languages.tokenizer.n_special
    assert found["rows_shared"] > 0
    everything = PretrainedRun.load(write_run(tmp_path / "all", "trans:overlap=100"))
    found = alignment(everything, everything.encoder(CPU))
    # entries that no text holds, e.g. letters that are always joined
    assert found["rows"] < 0.6 * found["rows_shared"]


def test_language_embeddings_are_added_where_the_run_uses_them(tmp_path: Path) -> None:
    facts = {"model": {"name": "roberta", "language_ids": True}}
    run = PretrainedRun.load(write_run(tmp_path, kind="roberta", **facts))
    encoder = run.encoder(CPU)
    rows_of_twins_equal(encoder.module, run.languages)
    types = encoder.module.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        types[1] = types[0]
    assert alignment(run, encoder)["heldout_language"] == 100.0
    with torch.no_grad():
        types[1] = 50 * torch.randn(types.shape[1])
    found = alignment(run, encoder)
    assert found["heldout"] == 100.0
    assert found["heldout_language"] < 100


def test_a_dictionary_of_another_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "dictionary.tsv").write_text("source\tderived\tcount\nnonsense\tb\t1\n", "utf-8")
    with pytest.raises(DataError, match="nonsense"):
        known_entries(tmp_path / "dictionary.tsv", languages("trans"))
    assert not known_entries(tmp_path / "none.tsv", languages("trans")).any()


# Contextual alignment


def test_words_and_sentences_by_hand() -> None:
    source = torch.tensor([[1.0, 0], [0, 1], [1, 1], [1, -1]])
    offsets = np.array([0, 2, 4])
    assert word_accuracy(source, source * 3, offsets) == 100
    assert word_accuracy(source, source[[1, 0, 2, 3]], offsets) == 50
    assert word_accuracy(source, source[[0, 0, 3, 2]], offsets) == 25
    assert retrieval(source, source) == 100
    # the third looks like the first: from the source 3 of 4, from the derived language 3 of 4
    assert retrieval(source, torch.stack([source[0], source[1], source[0], source[3]])) == 75


def heldout(spec: str, n: int = 50, length: int = 60) -> Heldout:
    found = languages(spec)
    return Heldout.read(Source.open(found.pipeline, SourceRequest("demo")), "validation", found, n, length)


def test_heldout_sentences_are_parallel() -> None:
    text, home = heldout("trans,perm"), heldout("trans")
    joint = languages("trans").twin.joint.table()
    assert (text.source == home.source).all()
    assert (home.index == np.arange(len(home.source))).all()
    assert (text.derived == joint[text.source][text.index]).all()
    assert (text.rows[text.index] == text.rows).all()
    assert (text.index != np.arange(len(text.index))).any()
    few = text.first(5)
    assert few.n_sentences == 5
    assert set(few.keys.tolist()) <= set(text.first(9).keys.tolist())
    assert (few.derived == joint[few.source][few.index]).all()
    assert heldout("trans,perm", 5).keys.tolist() == few.keys.tolist()
    assert (np.diff(heldout("trans", 50, 12).offsets) <= 10).all()
    with pytest.raises(DataError, match="fits 3"):
        heldout("trans", 5, 3)


@pytest.mark.parametrize("kind", ["roberta", "modernbert"])
def test_a_model_that_sees_one_language_aligns_all_of_it(kind: str) -> None:
    found = languages("trans")
    model = rows_of_twins_equal(model_of(kind, found.size), found)
    layers = contextual(ModelEncoder(model.base_model, False, CPU), heldout("trans"))
    assert [layer["layer"] for layer in layers] == [0, 1, 2]
    assert [layer["sentences"] for layer in layers] == [100, 100, 100]
    assert min(layer["words"] for layer in layers[1:]) == 100  # layer 0 of ModernBERT holds no positions
    # words that an order has moved are the same ones without positions
    moved = contextual(ModelEncoder(model.base_model, False, CPU), heldout("trans,inv"))
    assert moved[0]["sentences"] == 100


def test_contextual_against_a_slow_loop() -> None:
    found, text = languages("trans,inv"), heldout("trans,inv", 6)
    model = model_of("bert", found.size).eval()
    layers = contextual(ModelEncoder(model.base_model, False, CPU), text)
    hits, words = [0, 0, 0], 0
    for s in range(text.n_sentences):
        a, b = text.offsets[s], text.offsets[s + 1]
        number, place = text.words[a:b], text.index[a:b] - a
        with torch.inference_mode():
            sides = [
                model.base_model(torch.tensor([[0, *ids[a:b].tolist(), 2]]), output_hidden_states=True).hidden_states
                for ids in (text.source, text.derived)
            ]
        n = int(number.max()) + 1
        words += n
        for layer, (left, right) in enumerate(zip(*sides, strict=True)):
            ours, theirs = (
                [state[0, 1:-1][torch.tensor(of == w)].mean(0) for w in range(n)]
                for state, of in ((left, number), (right, number[place]))
            )
            for w in range(n):
                cosines = [float(torch.cosine_similarity(ours[w], other, dim=0)) for other in theirs]
                hits[layer] += int(np.argmax(cosines)) == w
    assert [layer["words"] for layer in layers] == pytest.approx([100 * h / words for h in hits])


# Perplexity


def test_perplexity_of_a_model_that_knows_nothing() -> None:
    found, text = languages("trans,inv"), heldout("trans,inv")
    model = model_of("bert", found.size)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    got = perplexity(ModelEncoder(model, False, CPU), text)
    assert got["source"] == pytest.approx(found.size, rel=1e-4)
    assert got["derived"] == pytest.approx(found.size, rel=1e-4)
    assert (got["positions"], got["sentences"]) == (int(chosen(text).sum()), text.n_sentences)


@pytest.mark.parametrize("kind", ["roberta", "modernbert", "bert", "unknown"])
def test_perplexity_against_a_slow_loop(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "unknown":  # a checkpoint from elsewhere, whose head is not known
        monkeypatch.setattr(training_model, "_HEADS", {})
    found, text = languages("trans,perm"), heldout("trans,perm", 8)
    model = model_of("roberta" if kind == "unknown" else kind, found.size).eval()
    got = perplexity(ModelEncoder(model, False, CPU), text)
    masked = chosen(text)
    assert 0.3 * RATE < masked.mean() < 3 * RATE
    mask = found.tokenizer.bpe.entries.index("<mask>")
    for side, ids, hidden in (("source", text.source, masked), ("derived", text.derived, masked[text.index])):
        total = 0.0
        for s in range(text.n_sentences):
            a, b = text.offsets[s], text.offsets[s + 1]
            row = [0, *np.where(hidden[a:b], mask, ids[a:b]).tolist(), 2]
            with torch.inference_mode():
                logs = model(torch.tensor([row])).logits[0].double().log_softmax(-1)
            total -= sum(float(logs[i + 1, ids[a + i]]) for i in range(b - a) if hidden[a + i])
        assert got[side] == pytest.approx(math.exp(total / masked.sum()), rel=1e-4)


def test_equal_languages_are_equally_perplexing() -> None:
    found, text = languages("trans"), heldout("trans")
    model = rows_of_twins_equal(model_of("modernbert", found.size), found)
    got = perplexity(ModelEncoder(model, False, CPU), text)
    assert got["source"] == pytest.approx(got["derived"], rel=1e-5)


def test_an_encoder_alone_has_no_perplexity(tmp_path: Path) -> None:
    write_run(tmp_path, kind="bert")
    save_model(tmp_path, model_of("bert", languages("trans,inv").size).base_model)
    run = PretrainedRun.load(tmp_path)
    assert not run.has_lm_head
    assert run.encoder(CPU).module.config.hidden_size == 16
