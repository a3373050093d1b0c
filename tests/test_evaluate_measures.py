"""Each measure: against slow loops, and where the answer is known."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from derivlang import derive
from derivlang.align.links import Links, score
from derivlang.align.similarity import argmax, cosine, itermax, transport
from derivlang.core.errors import DataError
from derivlang.core.messages import DerivlangWarning
from derivlang.engine.batches import Source
from derivlang.evaluation.formulas import value_of
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.measures import alignment as embeddings
from derivlang.evaluation.measures import links
from derivlang.evaluation.measures.alignment import Alignment, EmbeddingPairs, hits, known_entries
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.links import Contextual, Retrieval, WordLinks
from derivlang.evaluation.measures.perplexity import RATE, Perplexity, chosen
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.measures.states import ParallelWords
from derivlang.evaluation.measures.surprisal import Surprisal
from derivlang.evaluation.scores import table_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.sources.request import SourceRequest
from derivlang.training.encoder import Encoder
from derivlang.training.languages import Languages, LanguageSide
from tests.tiny_runs import MARKS, languages, model_of, rows_of_twins_equal, write_run

CPU = torch.device("cpu")


def values(measure: Measure, model: Encoder, sets: MeasureSets) -> dict[Any, float]:
    """The values by metric and layer, or regime or group; of what has neither by metric."""
    rows = table_of("", measure.columns, measure.measure(model, sets)).to_pylist()
    places = [(row["layer"] if row["layer"] is not None else row["regime"] or row["group"]) for row in rows]
    return {
        row["metric"] if place == "" else (row["metric"], place): row["value"]
        for row, place in zip(rows, places, strict=True)
    }


def sets_of(text: Heldout | None, found: Languages | None = None, folder: Path = Path("nowhere")) -> MeasureSets:
    """The sets that a measure reads: all sentences of `text`, or none for a measure that needs no text."""
    n = 1 if text is None else text.n_sentences
    of_text = "demo", lambda: cast("Heldout", text), n, n
    return MeasureSets(folder, found or languages("trans"), *of_text, folder / "evaluation", lambda: (None, None))


def alignment(run: PretrainedRun, model: Encoder) -> dict[Any, float]:
    return values(Alignment(), model, sets_of(None, run.languages, run.folder))


def share(counts: Any) -> float:
    return value_of("percent", counts)


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


def table(n: int, own: Any = None, known: Any = None, counts: Any = None) -> EmbeddingPairs:
    every = np.ones(n, bool)
    return EmbeddingPairs(
        np.arange(n),
        np.arange(n) + n,
        every if own is None else np.asarray(own, bool),
        ~every if known is None else np.asarray(known, bool),
        np.ones(n, np.int64) if counts is None else np.asarray(counts),
    )


@pytest.mark.parametrize("n", [3, 40])
def test_hits_against_a_slow_loop(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_CELLS", 50)  # several blocks
    rng = np.random.default_rng(3)
    source = rng.normal(size=(n, 6))
    rows = np.concatenate([source, source + rng.normal(size=(n, 6))])
    own, known, counts = rng.random(n) < 0.8, rng.random(n) < 0.3, rng.integers(0, 9, n)
    pairs = table(n, own, known, counts)
    assert [weights.tolist() for weights in pairs.weights] == [(own * w).tolist() for w in (1, ~known, counts)]
    ours, theirs = unit(rows[:n]), unit(rows[n:])
    asked = np.flatnonzero(own)
    for found, (left, right) in zip(
        hits(*[torch.tensor(rows)] * 2, pairs), ((ours, theirs), (theirs, ours)), strict=True
    ):
        for one, expected in zip(found, slow(left[own], right, 10), strict=True):
            assert np.flatnonzero(one).tolist() == asked[np.array(expected) == asked].tolist()
            assert n < 40 or 0 < one.sum() < own.sum()
    assert table(3, counts=[2**33, 2**31, 1]).weights[2].max() < 2**31


def test_scores_of_no_row_are_nan_or_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = cast("Encoder", SimpleNamespace(embeddings=torch.eye(6), language_ids=False))
    monkeypatch.setattr(EmbeddingPairs, "load", lambda *_: table(3, own=[0, 0, 0]))
    every = values(Alignment(), model, sets_of(None))
    assert all(map(math.isnan, every.values()))
    monkeypatch.setattr(EmbeddingPairs, "load", lambda *_: table(3, known=[1, 1, 1]))
    with pytest.warns(DerivlangWarning, match="every pair is in the dictionary"):
        found = values(Alignment(), model, sets_of(None))
    assert set(found) == {name for name in every if "heldout" not in str(name)}
    assert not any(map(math.isnan, found.values()))


def test_equal_rows_are_aligned_and_the_dictionary_is_left_out(tmp_path: Path) -> None:
    run = PretrainedRun.load(write_run(tmp_path, dictionary=40))
    encoder = run.encoder(CPU)
    before = alignment(run, encoder)
    assert before["all"] < 20
    first, size = run.languages.tokenizer.n_special, run.languages.tokenizer.size
    pairs = EmbeddingPairs.load(tmp_path, run.languages)
    assert [int(weights.sum()) for weights in pairs.weights[:2]] == [size - first, size - first - 40]
    assert before["all", "chance"] == before["csls_heldout", "chance"] == pytest.approx(100 / (size - first))
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
    assert {value for name, value in alignment(run, encoder).items() if "chance" not in name} == {100.0}


def test_shared_rows_are_not_asked_for(tmp_path: Path) -> None:
    n = {}
    for overlap in (0, 60, 100):
        run = PretrainedRun.load(write_run(tmp_path / str(overlap), f"trans:overlap={overlap}"))
        n[overlap] = int(EmbeddingPairs.load(run.folder, run.languages).own.sum())
    every = run.languages.tokenizer.size - run.languages.tokenizer.n_special
    # of a whole overlap: entries that no text holds, e.g. letters that are always joined
    assert every == n[0] > n[60] > n[100] < 0.4 * every


def test_scores_of_embeddings_are_of_the_subwords_that_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs with other dictionaries have the same set of all sub-words, and other sets outside the dictionary."""
    run = PretrainedRun.load(write_run(tmp_path / "run", "trans"))
    encoder, whole = run.language_model(CPU), EmbeddingPairs.load(run.folder, run.languages)
    sets: dict[str, dict[int, Any]] = {"all": {}, "heldout": {}}
    for n in (50, 40):
        known = np.arange(len(whole.own)) < n
        monkeypatch.setattr(EmbeddingPairs, "load", lambda *_, known=known: replace(whole, known=known))
        for one in Alignment().measure(encoder, sets_of(None, run.languages, run.folder)):
            if one.metric in sets:
                assert one.counts is not None
                sets[one.metric].setdefault(n, set()).add((getattr(one.set, "hash", ""), len(one.counts)))
    every, (outside_50, outside_40) = sets["all"], sets["heldout"].values()
    assert every[50] == every[40]
    assert len(outside_50) == len(outside_40) == len(every[50]) == 1  # the guess, too
    ((hash_50, n_50),), ((hash_40, n_40),), ((_, size),) = outside_50, outside_40, every[50]
    assert (n_50, n_40) == (size - 50, size - 40)
    assert hash_50 != hash_40


def test_language_embeddings_are_added_where_the_run_uses_them(tmp_path: Path) -> None:
    facts = {"model": {"name": "roberta", "language_ids": True}}
    run = PretrainedRun.load(write_run(tmp_path, kind="roberta", **facts))
    encoder = run.encoder(CPU)
    rows_of_twins_equal(encoder.module, run.languages)
    types = encoder.module.embeddings.token_type_embeddings.weight
    with torch.no_grad():
        types[1] = types[0]
    assert alignment(run, encoder)["heldout", "language"] == 100.0
    with torch.no_grad():
        types[1] = 50 * torch.randn(types.shape[1])
    found = alignment(run, encoder)
    assert found["heldout"] == 100.0
    assert found["heldout", "language"] < 100


def test_a_dictionary_of_another_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "dictionary.tsv").write_text("source\tderived\tcount\nnonsense\tb\t1\n", "utf-8")
    with pytest.raises(DataError, match="nonsense"):
        known_entries(tmp_path / "dictionary.tsv", languages("trans"))
    assert not known_entries(tmp_path / "none.tsv", languages("trans")).any()


# Held-out text


@pytest.mark.parametrize("tree", ["", "Why ? he asked her now .", "he really so ? asked her"])
@pytest.mark.parametrize("order", ["inv", "syn:ja"])
def test_each_heldout_sentence_has_its_own_words_in_both_languages(tmp_path: Path, order: str, tree: str) -> None:
    """A tree with an end mark inside spans two sentences, which an order of trees mixes."""
    words = [
        f"{i}\t{word}\t{word}\tNOUN\t_\t_\t{0 if word == 'asked' else tree.split().index('asked') + 1}\tdep\t_\t_\n"
        for i, word in enumerate(tree.split(), 1)
    ]
    (tmp_path / "x.conllu").write_text("".join(words) + "\n", "utf-8")
    found = languages(f"trans,{order}")
    source = Source.open(found.pipeline, SourceRequest(str(tmp_path / "x.conllu") if tree else "demo"))
    text = Heldout.read(source, source.corpus.splits[0], found, 500, 500)
    for side in (text.source, text.derived):
        for own, slots in zip(pairwise(text.offsets), pairwise(text.offsets_in(side)), strict=True):
            assert sorted(side.slots[slice(*slots)]) == list(range(*own))


# Contextual alignment


def text_of(source: list[list[int]], words: list[list[int]], orders: list[list[int]]) -> Heldout:
    """Sentences by hand. source: sub-words. words: the word of each. orders: their places in derived order."""
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in source])])
    ids = np.concatenate(source).astype(np.int32)
    index = np.concatenate([np.array(order) + begin for order, begin in zip(orders, offsets, strict=False)])
    keys = np.arange(len(source), dtype=np.uint64)
    sides = LanguageSide(ids, np.arange(len(ids))), LanguageSide(ids[index] + 100, index)
    numbers = np.concatenate(words).astype(np.int32)
    return Heldout(keys, offsets, numbers, np.zeros(len(numbers), bool), *sides, "test")


# word 0 0 1 2 3 4 | 0 1 2: `the cat saw the dog` with two sub-words in `the`, and `the a the`
TWO = text_of(
    [[7, 8, 20, 21, 7, 8, 22], [7, 30, 7]], [[0, 0, 1, 2, 3, 3, 4], [0, 1, 2]], [[6, 4, 5, 3, 2, 0, 1], [2, 1, 0]]
)


def test_equal_words_by_hand() -> None:
    words = ParallelWords(TWO)
    assert words.offsets.tolist() == [0, 5, 8]
    assert words.source.tolist() == [0, 1, 2, 0, 4, 5, 6, 5]  # `the` of another sentence is another word
    assert words.derived.tolist() == [4, 0, 2, 1, 0, 5, 6, 5]
    assert words.of_source.tolist() == [0, 0, 1, 2, 3, 3, 4, 5, 6, 7]
    assert words.of_derived.tolist() == [0, 1, 1, 2, 3, 4, 4, 5, 6, 7]
    # sub-words of a word that an order has separated: the first one gives the place
    apart = ParallelWords(text_of([[7, 8, 20]], [[0, 0, 1]], [[0, 2, 1]]))
    assert (apart.derived.tolist(), apart.of_derived.tolist()) == ([0, 1], [0, 1, 0])
    # a word without sub-words in between
    assert ParallelWords(text_of([[7, 8]], [[0, 2]], [[0, 1]])).offsets.tolist() == [0, 2]


def test_chance_of_words_by_hand() -> None:
    by_chance = 100 * (2 / 5 + 1 / 5 + 1 / 5 + 2 / 5 + 1 / 5 + 2 / 3 + 1 / 3 + 2 / 3) / 8
    assert share(links.chance(ParallelWords(TWO))) == pytest.approx(by_chance, rel=1e-4)


def test_sentence_retrieval_by_hand() -> None:
    source = torch.tensor([[1.0, 0], [0, 1], [1, 1], [1, -1]])
    assert share(links.hits(source, source * 3)) == 100
    # the third looks like the first: from the source 3 of 4, from the derived language 3 of 4
    found = links.hits(source, torch.stack([source[0], source[1], source[0], source[3]]))
    assert found.tolist() == [[2, 2], [2, 2], [0, 2], [2, 2]]


def test_links_by_hand() -> None:
    words = ParallelWords(TWO)
    eye = np.eye(8)
    theirs = eye[[4, 3, 2, 1, 0, 7, 6, 5]]
    perfect = [[4, 4, 4, 4], [2, 2, 2, 2]]  # equal words count as one
    wrong = theirs[[0, 1, 3, 2, 4, 5, 6, 7]]  # `cat` and `saw` exchanged
    for name in links.METHODS:
        assert links.link_counts(eye[words.source], eye[words.derived], words)[name].tolist() == perfect
        assert links.link_counts(eye, theirs, words)[name].tolist() == perfect
        assert links.link_counts(eye, wrong, words)[name].tolist() == [[2, 2, 4, 4], [2, 2, 2, 2]]


def test_error_rates_without_equal_words_are_those_of_the_score() -> None:
    """Link by link, with the order as gold."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(3, 9, 20)
    orders = [rng.permutation(n).tolist() for n in lengths]
    ids = [rng.permutation(50)[:n].tolist() for n in lengths]
    words = ParallelWords(text_of(ids, [list(range(n)) for n in lengths], orders))
    ours, theirs = rng.normal(size=(2, int(lengths.sum()), 6))
    found = {name: value_of("aer", counts) for name, counts in links.link_counts(ours, theirs, words).items()}
    for name, method in (("argmax", argmax), ("itermax", itermax), ("transport", transport)):
        made: list[tuple[int, int, int]] = []
        gold: list[tuple[int, int, int]] = []
        for s, order in enumerate(orders):
            begin, end = words.offsets[s : s + 2]
            made += [(s, int(i), int(j)) for i, j in np.argwhere(method(cosine(ours[begin:end], theirs[begin:end])))]
            gold += [(s, i, j) for j, i in enumerate(order)]
        both = [Links.of(*map(np.array, zip(*one, strict=True)), len(lengths)) for one in (made, gold)]
        assert found[name] == pytest.approx(100 * score(*both).aer)
    assert 5 < min(found.values()) < 99


@pytest.mark.parametrize(
    ("spec", "kind", "layers"),
    [
        ("trans,inv", "modernbert", 1),
        ("trans,perm", "modernbert", 1),
        ("trans", "roberta", 3),
        ("trans", "modernbert", 3),
    ],
)
def test_equal_states_are_aligned(spec: str, kind: str, layers: int) -> None:
    """Twins with equal embeddings: of modernbert without positions, where two equal words have the same state."""
    found, text = languages(spec), heldout(spec)
    words = ParallelWords(text)
    assert len(np.unique(words.source)) < len(words.source)  # some words occur twice in a sentence
    encoder, sets = Encoder(rows_of_twins_equal(model_of(kind, found.size), found), MARKS), sets_of(text)
    for measure, metric in ((Contextual(), "words"), (Retrieval(), "sentences")):
        assert [values(measure, encoder, sets)[metric, layer] for layer in range(layers)] == [100] * layers
    rates = values(WordLinks(), encoder, sets)
    assert {rates["argmax", layer] for layer in range(layers)} == {0}
    assert rates["itermax", 0] == 0
    assert rates["transport", 0] < 5  # a plan gives each of two equal words half as much as it gives another one


def heldout(spec: str, n: int = 50, length: int = 60) -> Heldout:
    found = languages(spec)
    return Heldout.read(Source.open(found.pipeline, SourceRequest("demo")), "validation", found, n, length)


@pytest.mark.filterwarnings("ignore:.*held-out sentence")  # short rows
def test_heldout_sentences_are_parallel() -> None:
    text, home = heldout("trans,perm"), heldout("trans")
    joint = languages("trans").twin.joint.table()
    assert (text.source.ids == home.source.ids).all()
    assert (home.derived.slots == np.arange(len(home.source.ids))).all()
    assert (text.derived.ids == joint[text.source.ids][text.derived.slots]).all()
    assert (text.rows[text.derived.slots] == text.rows).all()
    assert (text.derived.slots != np.arange(len(text.derived.slots))).any()
    few = text.first(5)
    assert few.n_sentences == 5
    assert set(few.keys.tolist()) <= set(text.first(9).keys.tolist())
    assert (few.derived.ids == joint[few.source.ids][few.derived.slots]).all()
    assert heldout("trans,perm", 5).keys.tolist() == few.keys.tolist()
    assert (np.diff(heldout("trans", 50, 12).offsets) <= 10).all()
    assert np.bincount(text.rows[text.begins]).tolist() == np.diff(ParallelWords(text).offsets).tolist()
    assert text.forms is not None
    encoded = languages("trans").tokenizer.encoder.types(text.forms)
    assert all(
        i in encoded.ids[a:b] for i, a, b in zip(text.source.ids, encoded.offsets, encoded.offsets[1:], strict=False)
    )
    with pytest.raises(DataError, match="fits 3"):
        heldout("trans", 5, 3)


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_layers_against_a_slow_loop(kind: str) -> None:
    found, text = languages("trans,inv"), heldout("trans,inv", 6)
    model = model_of(kind, found.size).eval()
    sets = sets_of(text)
    words, sentences = (values(measure, Encoder(model, MARKS), sets) for measure in (Contextual(), Retrieval()))
    n_right, n_words = [0, 0, 0], 0
    means, firsts = ([([], []) for _ in range(3)] for _ in range(2))  # by layer and side
    for s in range(text.n_sentences):
        a, b = text.offsets[s], text.offsets[s + 1]
        number, place = text.words[a:b], text.derived.slots[a:b] - a
        with torch.inference_mode():
            sides = [
                model.base_model(torch.tensor([[0, *ids[a:b].tolist(), 2]]), output_hidden_states=True).hidden_states
                for ids in (text.source.ids, text.derived.ids)
            ]
        n = int(number.max()) + 1
        n_words += n
        spelt = [text.source.ids[a:b][number == w].tolist() for w in range(n)]
        for layer, (left, right) in enumerate(zip(*sides, strict=True)):
            ours, theirs = (
                [state[0, 1:-1][torch.tensor(of == w)].mean(0) for w in range(n)]
                for state, of in ((left, number), (right, number[place]))
            )
            for w in range(n):
                cosines = [float(torch.cosine_similarity(ours[w], other, dim=0)) for other in theirs]
                n_right[layer] += spelt[int(np.argmax(cosines))] == spelt[w]
            for side, state in enumerate((left, right)):
                means[layer][side].append(state[0, 1:-1].mean(0))
                firsts[layer][side].append(state[0, 0])
    assert [words["words", layer] for layer in range(3)] == pytest.approx([100 * h / n_words for h in n_right])
    for layer in range(3):
        assert sentences["sentences", layer] == share(links.hits(*map(torch.stack, means[layer])))
        if layer:
            assert sentences["first", layer] == share(links.hits(*map(torch.stack, firsts[layer])))
    assert sentences["first", 0] == sentences["first", "chance"]  # every `<s>` has the same embedding


def test_a_causal_model_has_no_retrieval_by_the_first_state() -> None:
    model = Encoder(model_of("gpt2", languages("trans,inv").size), MARKS)
    found = values(Retrieval(), model, sets_of(heldout("trans,inv", 6)))
    assert {metric for metric, _ in found} == {"sentences"}


@pytest.mark.parametrize("language_ids", [False, True])
def test_joint_error_rates_against_a_slow_loop(language_ids: bool) -> None:
    """RoBERTa takes 64 positions, so that some pairs are too long. Word by word, with the order as gold."""
    found, text = languages("trans,perm"), heldout("trans,perm", 20)
    model = model_of("roberta", found.size, language_ids=language_ids).eval()
    got = values(WordLinks(), Encoder(model, MARKS, language_ids=language_ids), sets_of(text))
    lengths = np.diff(text.offsets)
    kept = np.flatnonzero(2 * lengths + 4 <= 64)
    assert 0 < len(kept) < text.n_sentences
    assert got["joint_left_out"] == text.n_sentences - len(kept)
    some = text.take(kept)
    words = ParallelWords(some)
    states: list[tuple[list[torch.Tensor], list[torch.Tensor]]] = [([], []) for _ in range(3)]
    for s in range(len(kept)):
        a, b = some.offsets[s : s + 2]
        n, number = int(b - a), some.words[a:b]
        row = torch.tensor([[0, *some.source.ids[a:b].tolist(), 2, 0, *some.derived.ids[a:b].tolist(), 2]])
        types = torch.tensor([[0] * (n + 2) + [1] * (n + 2)]) if language_ids else None
        with torch.inference_mode():
            layers = model.base_model(row, token_type_ids=types, output_hidden_states=True).hidden_states
        moved = number[some.derived.slots[a:b] - a]
        for layer, state in enumerate(layers):
            for side, (begin, owner) in enumerate(((1, number), (n + 3, moved))):
                for word in dict.fromkeys(owner.tolist()):
                    at = begin + np.flatnonzero(owner == word)
                    states[layer][side].append(state[0, at].mean(0))
    for layer, sides in enumerate(states):
        for name, counts in links.link_counts(*(torch.stack(side).numpy() for side in sides), words).items():
            assert got[f"joint_{name}", layer] == pytest.approx(value_of("aer", counts))
    assert got["joint_argmax", 0] != got["argmax", 0]


def test_a_model_too_short_for_pairs_has_no_joint_scores() -> None:
    found, text = languages("trans,inv"), heldout("trans,inv", 4)
    model = model_of("bert", found.size)
    longest, embeddings = int(np.diff(text.offsets).max()) + 2, model.bert.embeddings
    embeddings.position_embeddings = torch.nn.Embedding.from_pretrained(embeddings.position_embeddings.weight[:longest])
    short = text.take(np.flatnonzero(2 * np.diff(text.offsets) + 4 > longest))
    got = values(WordLinks(), Encoder(model, MARKS), sets_of(short))
    assert got.pop("joint_left_out") == short.n_sentences
    assert {(math.isnan(rate), "joint" in name) for (name, _), rate in got.items()} == {(True, True), (False, False)}


# Perplexity


def test_perplexity_of_a_model_that_knows_nothing() -> None:
    found, text = languages("trans,inv"), heldout("trans,inv")
    model = model_of("bert", found.size)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
    got = values(Perplexity(), Encoder(model, MARKS), sets_of(text))
    assert list(got.values()) == pytest.approx([found.size] * 2, rel=1e-4)
    few = text.take(np.flatnonzero([chosen(text)[a:b].sum() == 0 for a, b in pairwise(text.offsets)]))
    assert few.n_sentences
    assert all(map(math.isnan, values(Perplexity(), Encoder(model, MARKS), sets_of(few)).values()))


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("largest", [1e4, 1e30, math.nan])
def test_perplexity_of_a_diverged_model_has_a_bound_or_is_nan(kind: str, largest: float) -> None:
    found, text = languages("trans,inv"), heldout("trans,inv", 8)
    model = model_of(kind, found.size)
    logits = torch.linspace(0, largest, found.size)
    model.get_output_embeddings().register_forward_hook(lambda *args: args[-1] + logits)
    got = values(Perplexity(), Encoder(model, MARKS), sets_of(text))
    for regime in ("source", "derived"):
        assert got["perplexity", regime] == pytest.approx(math.nan if math.isnan(largest) else 1e14, nan_ok=True)


@pytest.mark.parametrize("kind", ["roberta", "modernbert", "bert"])
def test_perplexity_against_a_slow_loop(kind: str) -> None:
    found, text = languages("trans,perm"), heldout("trans,perm", 8)
    model = model_of(kind, found.size).eval()
    got = values(Perplexity(), Encoder(model, MARKS), sets_of(text))
    masked = chosen(text)
    assert 0.3 * RATE < masked.mean() < 3 * RATE
    mask = found.tokenizer.tokenizer.bpe.entries.index("<mask>")
    for side, ids, hidden in (
        ("source", text.source.ids, masked),
        ("derived", text.derived.ids, masked[text.derived.slots]),
    ):
        total = 0.0
        for s in range(text.n_sentences):
            a, b = text.offsets[s], text.offsets[s + 1]
            row = [0, *np.where(hidden[a:b], mask, ids[a:b]).tolist(), 2]
            with torch.inference_mode():
                logs = model(torch.tensor([row])).logits[0].double().log_softmax(-1)
            total -= sum(float(logs[i + 1, ids[a + i]]) for i in range(b - a) if hidden[a + i])
        assert got["perplexity", side] == pytest.approx(math.exp(total / masked.sum()), rel=1e-4)


def slow_bits(model: Any, ids: list[int]) -> list[float]:
    """Of each id after the first, from the library's own forward over those before it, in float64."""
    model = model.double()
    out = []
    for t in range(1, len(ids)):
        with torch.inference_mode():
            out.append(-float(model(torch.tensor([ids[:t]])).logits[0, -1].log_softmax(-1)[ids[t]]) / math.log(2))
    return out


@pytest.mark.parametrize(("kind", "spec"), [("gpt2", "trans,perm"), ("llama", "trans,inv")])
def test_bits_of_a_causal_model_by_a_slow_loop(kind: str, spec: str, tmp_path: Path) -> None:
    found, text = languages(spec), heldout(spec, 6)
    encoder = Encoder(model_of(kind, found.size), MARKS)
    sets = replace(sets_of(text, found), files=tmp_path / "files")
    perplexity, surprisal = (values(measure, encoder, sets) for measure in (Perplexity(), Surprisal()))
    files = {side: tmp_path / "files" / f"surprisal.{side}.parquet" for side in ("source", "derived")}
    assert set((tmp_path / "files").iterdir()) == set(files.values())
    tables = {side: pq.read_table(path).to_pylist() for side, path in files.items()}
    for ours, theirs in zip(tables["source"], tables["derived"], strict=True):
        assert derive(" ".join(ours["words"]), spec, words="space").words == theirs["words"]
    for side, ids in (("source", text.source.ids), ("derived", text.derived.ids)):
        total, n_words = 0.0, 0
        for s, row in enumerate(tables[side]):
            words = pa.array(row["words"])
            if side == "source":
                encoded = found.tokenizer.encoder.types(words)
            else:
                encoded = found.twin.encode_words(found.tokenizer.encoder, words, np.arange(len(words), dtype=np.int32))
            own = ids[text.offsets[s] : text.offsets[s + 1]]
            assert (encoded.ids == own).all()
            bits = slow_bits(encoder.module, [0, *own.tolist(), 2])
            by_word = [sum(bits[a:b]) for a, b in pairwise(encoded.offsets.tolist())]
            assert row["bits"] == pytest.approx(by_word, rel=1e-4)
            assert row["subword_bits"] == pytest.approx(bits[:-1], rel=1e-4)
            assert row["subword_words"] == np.repeat(np.arange(len(words)), np.diff(encoded.offsets)).tolist()
            assert row["end"] == pytest.approx(bits[-1], rel=1e-4)
            assert row["total"] == pytest.approx(sum(bits), rel=1e-4)
            total, n_words = total + sum(bits), n_words + len(words)
        assert perplexity["perplexity", side] == pytest.approx(2 ** (total / (len(ids) + 6)), rel=1e-4)
        assert perplexity["bits", side] == pytest.approx(total / n_words, rel=1e-4)
        assert surprisal["bits", side] == pytest.approx(total / 6, rel=1e-4)


def test_surprisal_of_words_whose_subwords_are_apart(tmp_path: Path) -> None:
    """An order of sub-words: a word stands where its first one does, with the bits of all."""
    found, text = languages("trans,inv:unit=token"), heldout("trans,inv:unit=token", 5)
    encoder = Encoder(model_of("gpt2", found.size), MARKS)
    assert list(Surprisal().measure(encoder, sets_of(text, found, tmp_path)))
    rows = pq.read_table(tmp_path / "evaluation" / "surprisal.derived.parquet").to_pylist()
    mapped = found.twin.map.apply(text.forms).to_pylist()
    for s, row in enumerate(rows):
        a, b = text.offsets[s], text.offsets[s + 1]
        bits = slow_bits(encoder.module, [0, *text.derived.ids[a:b].tolist(), 2])
        by_word: dict[int, float] = {}
        for at, bit in zip(text.derived.slots[a:b].tolist(), bits, strict=False):
            by_word[int(text.words[at])] = by_word.get(int(text.words[at]), 0.0) + bit
        spelt = {int(text.words[at]): mapped[at] for at in range(a, b)}
        assert row["words"] == [spelt[word] for word in by_word]
        assert row["bits"] == pytest.approx(list(by_word.values()), rel=1e-4)
        assert row["subword_bits"] == pytest.approx(bits[:-1], rel=1e-4)
        places = list(by_word)
        slots = text.derived.slots[a:b].tolist()
        assert row["subword_words"] == [places.index(int(text.words[at])) for at in slots]
