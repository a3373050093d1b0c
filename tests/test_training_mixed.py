"""XLM as published: rows of both corpora and of pairs in one set; runs of the rules before; budgets of objectives.

And languages that keep all words, training on one language, and on another half of the text in each.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derivlang.core.errors import StoreError, UsageError
from derivlang.training import run_folder
from derivlang.training.doses import log_within, steps_within, tokens_of
from derivlang.training.loader import Loader
from derivlang.training.masking import Keys
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import SessionSettings
from derivlang.training.streams.mixed import PAIRS
from derivlang.training.streams.packed import Packed, _span
from derivlang.training.streams.pairs import SentencePairs
from tests.commands import run
from tests.training import (
    SEQ_LEN,
    loader,
    material,
    model_file,
    pair,
    same_rows,
    settings,
    stream_rows,
    trained,
    weights,
)


def of_pairs(rows: Any) -> Any:
    return np.array([1 in side[:n] for side, n in zip(rows.side, rows.lengths, strict=True)], bool)


@pytest.mark.parametrize("parallel", ["10", "50", "100"])
def test_the_share_of_the_pairs_is_that_of_their_rows(parallel: str) -> None:
    """An epoch has each row once, so its positions are those of the instances; a step has as many as with MLM."""
    made = loader("xlm", parallel=parallel)
    (one,) = made.streams
    plain = loader("mlm", parallel=parallel).streams[0]
    pairs = SentencePairs().open(material(parallel=parallel, pair_length=SEQ_LEN))
    assert one.source.n == plain.source.n + pairs.n
    assert (one.size, one.source.length) == (plain.size, plain.source.length)
    steps = -(-one.source.n // one.size)
    seen = [of_pairs(stream_rows(made, "rows", step, step + 1)[0]) for step in range(steps)]
    found = int(np.concatenate(seen)[: one.source.n].sum())
    assert abs(found - pairs.n) <= 1
    tokens = sum(micros[0].counts["pairs_tokens"] for micros in made.steps(0, steps))
    assert tokens == pytest.approx(pairs.mean_subwords * pairs.n, rel=one.size / pairs.n)


def test_the_rows_are_those_of_their_streams_in_the_order_of_their_numbers() -> None:
    made = loader("xlm", parallel="50")
    source = made.streams[0].source
    packed, pairs = Packed().open(material(parallel="50")), SentencePairs().open(material(parallel="50"))
    order = np.random.default_rng(1).permutation(source.n)[:40]
    keys = Keys.of(1, 0, order)
    rows = source.rows(order, keys)
    for place, number in enumerate(order.tolist()):
        one = np.array([number])
        own = packed.rows(one, keys) if number < packed.n else pairs.rows(one - packed.n, keys.take(np.array([place])))
        assert own.clean_ids.tolist() == rows.clean_ids[place : place + 1].tolist()
        for name in ("word_ids", "sentence_ids", "language", "side", "lengths", "shared"):
            assert getattr(own, name).tolist() == getattr(rows, name)[place : place + 1].tolist()
        positions = np.arange(SEQ_LEN)[None] if own.positions is None else own.positions
        assert positions.tolist() == rows.positions[place : place + 1].tolist()
    for kind in (order[order < packed.n], order[order >= packed.n]):  # steps in which one kind is missing
        assert source.rows(kind, Keys.of(1, 0, kind)).shape == (len(kind), SEQ_LEN)
    assert same_rows(source.rows(order, keys), rows)


def test_xlm_without_pairs_is_mlm_with_the_same_language_ids(tmp_path: Path) -> None:
    trained(tmp_path / "xlm", "xlm:pairs=0", kind="roberta", steps=6, language_ids=True)
    trained(tmp_path / "mlm", "mlm", kind="roberta", steps=6, language_ids=True)
    one, two = (weights(tmp_path / name / "model") for name in ("xlm", "mlm"))
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)


@pytest.mark.parametrize("name", ["xlm:tlm=2", "xlm:pairs=0:source=0.5"])
def test_weights_without_a_share_of_pairs_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="all masked positions count alike"):
        trained(tmp_path / "run", name)


def test_a_resumed_run_keeps_its_language_ids(tmp_path: Path) -> None:
    words = "--source demo --t trans,inv --vocab-size 300 --objective dict-mlm".split()
    given = ["pretrain", *words, "-o", tmp_path / "run"]
    run(*given, "--steps", 4, "--no-language-ids")
    assert "already complete" in run(*given, "--steps", 4, "--resume").err
    assert "language_ids is false, not true" in run(*given, "--steps", 4, "--resume", "--language-ids", code=1).err


def test_embeddings_that_nothing_trains(tmp_path: Path) -> None:
    """Without them align-mlm is mlm, weights and all."""
    with pytest.raises(UsageError, match="align-mlm aligns the embeddings, and these are not trained") as error:
        trained(tmp_path / "run", "align-mlm", freeze="encoder,embeddings")
    assert error.value.id == "nothing-to-train"
    trained(tmp_path / "run", "align-mlm", freeze="layers=0-0", steps=1)


# presets


def test_presets_are_names_for_parameters() -> None:
    assert str(read_objective("dict-mlm:as=paper")) == "dict-mlm"
    assert str(read_objective("dict-mlm:as=align-mlm")) == "dict-mlm:variant=input:among=all"
    assert str(read_objective("dict-mlm:as=align-mlm:rate=70")) == "dict-mlm:rate=70:variant=input:among=all"
    assert str(read_objective("dict-mlm:variant=label:as=align-mlm")) == "dict-mlm:among=all"  # what is given holds
    with pytest.raises(UsageError, match="there is no preset of dict-mlm 'tang'"):
        read_objective("dict-mlm:as=tang")
    with pytest.raises(UsageError, match="there is no parameter of mlm 'as'"):
        read_objective("mlm:as=paper")


# budgets


@cache
def counted_of_mlm() -> dict[str, int]:
    return counted(loader("mlm"), 400)


def counted(made: Loader, steps: int) -> dict[str, int]:
    micros = [micros[0].counts for micros in made.steps(0, steps)]
    return {
        "tokens": sum(sum(tokens_of(one).values()) for one in micros),
        "predictions": sum(one["masked"] for one in micros),
    }


@pytest.mark.parametrize("budget", ["tokens", "predictions"])
@pytest.mark.parametrize("name", ["mlm", "xlm", "xlm:pairs=0.5", "tlm", "dict-mlm", "xlm-align", "weam"])
def test_a_budget_is_met(name: str, budget: Any) -> None:
    made = loader(name)
    steps = steps_within(budget, 400, made, material())
    assert counted(made, steps)[budget] == pytest.approx(counted_of_mlm()[budget], rel=0.03)
    if name == "mlm":
        assert steps == 400


def test_a_budget_of_a_causal_objective_is_that_of_clm() -> None:
    assert steps_within("predictions", 50, loader("clm"), material()) == 50


def test_steps_are_steps() -> None:
    assert steps_within("steps", 7, loader("tlm"), material()) == 7


def test_a_budget_that_no_number_of_steps_meets_is_refused() -> None:
    with pytest.raises(UsageError, match=r"1 step of mlm: .* no number of steps is within 5%"):
        steps_within("tokens", 1, loader("xlm:pairs=0.5"), material())


def test_a_budget_without_text_is_refused() -> None:
    with pytest.raises(UsageError, match="without a source there is no text of which mlm could read as much"):
        steps_within("tokens", 100, loader("tlm"), replace(material(), encoded={}))


def test_the_log_follows_the_budget() -> None:
    asked = SessionSettings(log_every=50, save_every=200)
    assert log_within(asked, 1000, 500) is asked
    found = log_within(replace(asked, budget="tokens"), 1000, 500)
    assert (found.log_every, found.save_every) == (25, 100)
    assert log_within(SessionSettings(budget="tokens"), 1000, 3).log_every == 1


def test_an_objective_that_begins_after_the_end_of_a_budget(tmp_path: Path) -> None:
    given = ["pretrain", *"--source demo --t trans,inv --vocab-size 300 --steps 40 --pair-length 32".split()]
    given += ["--model", model_file("roberta"), "--objective", "xlm-align:start=35", "-o"]
    assert "at step 35" in run(*given, tmp_path / "tokens", "--budget", "tokens").err
    assert "the run ends after" not in run(*given, tmp_path / "steps").err


def test_a_run_within_a_budget(tmp_path: Path) -> None:
    given = ["pretrain", *"--source demo --t trans,inv --vocab-size 300 --steps 60 --pair-length 32 --model".split()]
    given.append(model_file("roberta"))
    found = {}
    for name, budget in (("mlm", "steps"), ("xlm:pairs=0.5", "tokens"), ("xlm:pairs=0.5", "steps")):
        out = tmp_path / f"{name[:3]}-{budget}"
        result = run(*given, "--objective", name, "--budget", budget, "-o", out, "--json")
        found[name, budget] = json.loads(result.out)
    one, two, three = found.values()
    assert one["steps"] == three["steps"] == 60 > two["steps"]
    assert two["tokens"] == pytest.approx(one["tokens"], rel=0.05)
    assert three["tokens"] > 1.2 * one["tokens"]


def test_kinds_of_rows_have_names_of_their_own() -> None:
    assert PAIRS == "pairs"
    assert Packed().pair_kinds == set()


# languages that keep all words


@pytest.mark.parametrize("order", ["inv", "perm:window=3"])
def test_a_language_of_an_order_alone_shares_all_ids(order: str, tmp_path: Path) -> None:
    given = ["pretrain", *"--source demo --vocab-size 300 --steps 4 --objective xlm".split()]
    for name, spec in (("one", order), ("two", f"trans:overlap=100,{order}")):
        run(*given, "--t", spec, "-o", tmp_path / name)
    one, two = (weights(tmp_path / name / "model") for name in ("one", "two"))
    assert all((one[key] == two[key]).all() for key in two)
    run("evaluate", tmp_path / "one", "--measure", "links,retrieval,perplexity", "--pairs", 4)


@pytest.mark.parametrize("objective", ["align-mlm", "dict-mlm", "dict-tlm"])
@pytest.mark.parametrize("spec", ["inv", "trans:overlap=100,inv"])
def test_a_dictionary_of_the_same_words_is_refused(objective: str, spec: str, tmp_path: Path) -> None:
    given = ["pretrain", *"--source demo --vocab-size 300 --steps 4 -o".split(), tmp_path / "run"]
    told = run(*given, "--t", spec, "--objective", objective, code=2).err
    assert "changes no word, so a dictionary translates nothing [no-lexicon]" in told
    assert objective == "dict-tlm" or not (tmp_path / "run").exists()


# one language


@pytest.mark.parametrize("side", ["source", "derived"])
def test_rows_of_one_language(side: str) -> None:
    """As many per step as of both, and the same rows."""
    made, both = loader(languages=side), loader()
    language = ("source", "derived").index(side)
    assert made.streams[0].size == both.streams[0].size
    assert made.streams[0].source.n == pair().data.n_instances(language)
    steps = -(-made.streams[0].source.n // made.streams[0].size)
    batches = [micros[0]["rows"] for micros in made.steps(0, steps)]
    assert {value for batch in batches for value in batch.language.ravel().tolist()} == {language}
    rows = [row for batch in batches for row in batch.clean_ids.tolist()]
    every = np.arange(made.streams[0].source.n)
    wanted = pair().data.rows(every, np.full(len(every), language))
    assert sorted(rows[: len(every)]) == sorted(wanted.clean_ids.tolist())
    assert made.streams[0].source.mean_subwords == pytest.approx(wanted.lengths.mean())


def test_a_model_that_has_other_defaults_today_is_told_with_the_former_ones(tmp_path: Path) -> None:
    """The same command then names another run: the message has what is to be added to it."""
    trained(tmp_path / "run", mask=0.2)
    with pytest.raises(StoreError, match=r"mask is 0\.2, not 0\.3") as error:
        trained(tmp_path / "run", mask=0.3, resume=True)
    assert "pass --mask 0.2, as the model had then" in str(error.value.fix)


def test_a_run_on_one_language(tmp_path: Path) -> None:
    given = ["pretrain", *"--source demo --t trans,inv --vocab-size 300 --steps 4".split()]
    run(*given, "--languages", "derived", "-o", tmp_path / "one")
    assert run_folder.read(tmp_path / "one")["settings"]["languages"] == "derived"
    run(*given, "-o", tmp_path / "both")
    assert run_folder.read(tmp_path / "both")["settings"]["languages"] == "both"
    told = run(*given, "--languages", "source", "-o", tmp_path / "one", "--resume", code=1).err
    assert "is another run: languages is derived, not source" in told
    assert "languages" in run(*given, "-o", tmp_path / "one", "--resume", code=1).err
    run("evaluate", tmp_path / "one", "--measure", "perplexity", "--sentences", 4)


@pytest.mark.parametrize("name", ["xlm", "tlm", "align-mlm", "dict-mlm", "weam"])
def test_an_objective_that_needs_both_languages(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs both languages"):
        trained(tmp_path / "run", name, languages="derived")


# other text in each language


def test_no_sentence_of_a_half_is_in_the_other() -> None:
    made = loader(halves=True)
    data, rows = pair().data, made.streams[0].source
    asked = settings(halves=True).asked
    source, derived = (_span(data, number, asked[number]) for number in (0, 1))
    first, last = data.instances[0][list(source)]
    begin, end = data.instances[1][list(derived)]
    assert 0 == first < last <= begin < end == len(data.pieces) - 1
    sentence = np.searchsorted(data.sentences, data.pieces[:-1], "right")
    assert not {*sentence[first:last].tolist()} & {*sentence[begin:end].tolist()}
    assert abs((last - first) - (end - begin)) <= 0.1 * (end - begin) + 8
    every = np.arange(rows.n)
    found = rows.rows(every, Keys.of(1, 0, every))
    assert rows.n == (source[1] - source[0]) + (derived[1] - derived[0])
    assert found.language[:, 0].tolist() == [0] * (source[1] - source[0]) + [1] * (derived[1] - derived[0])
    wanted = data.rows(np.arange(*derived), np.ones(derived[1] - derived[0], int))
    assert found.clean_ids[source[1] :].tolist() == wanted.clean_ids.tolist()
    assert rows.mean_subwords == pytest.approx(found.lengths.mean())


@pytest.mark.parametrize(
    ("objective", "more", "message"),
    [
        ("xlm", {}, "xlm reads sentences of the corpus in both languages"),
        ("tlm", {}, "tlm reads sentences of the corpus in both languages"),
        ("dict-tlm", {}, "dict-tlm reads sentences of the corpus in both languages"),
        ("mlm", {"packing": "stream"}, "its halves would share one"),
        ("tlm", {"pairs": Path("pairs.parquet")}, "tlm reads no text of the corpus"),
    ],
)
def test_halves_that_would_share_text(objective: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        trained(tmp_path / "run", objective, halves=True, **more)


def test_a_run_on_halves(tmp_path: Path) -> None:
    given = [
        "pretrain",
        *"--source demo --t trans,inv --vocab-size 300 --steps 4 --halves --objective align-mlm".split(),
    ]
    run(*given, "-o", tmp_path / "run")
    record = run_folder.read(tmp_path / "run")
    assert record["settings"]["halves"] is True
    run("evaluate", tmp_path / "run", "--measure", "alignment,perplexity", "--sentences", 4)
