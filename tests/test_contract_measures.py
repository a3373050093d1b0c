"""Every measure of the registry, and that of the sample package, keeps the same promises on runs of five kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from inspect import getsourcefile
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch

from derivlang.core.errors import UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.formulas import formula_of, value_of
from derivlang.evaluation.heldout import Heldout, TrainingText, training_text
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import counts_of, table_of
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.trained import PretrainedRun
from derivlang.sources.request import SourceRequest
from derivlang.training.encoder import Encoder
from tests.plugin.derivlang_sample.measures import Centroids
from tests.tiny_runs import write_run
from tests.training import trained

Row = dict[str, Any]
REGIMES = ("", "source", "derived", "chance")
NAMES = [*(name for name in MEASURES.built_in if name != "translation"), "centroids"]  # that one needs a file
ALL = pytest.mark.parametrize("name", NAMES)
RUNS: dict[str, dict[str, Any]] = {
    "trans,inv": {"kind": "modernbert", "dictionary": 40},
    "trans:overlap=30,perm:unit=token": {"kind": "roberta", "model": {"name": "r", "language_ids": True}},
    "trans": {"kind": "bert"},
    "trans:overlap=20,inv": {"kind": "gpt2"},
    "trans,perm": {"kind": "llama"},
}
MARKED = "inv:from=random:mark=R"  # inserts a word, so it has no twin
CAUSAL = ("trans:overlap=20,inv", "trans,perm")


def specs_of(name: str) -> tuple[str, ...]:
    """The runs that a measure applies to."""
    if name == "regions":
        return (MARKED,)
    measure = MEASURES.find(name) if name in MEASURES.built_in else Centroids()
    twins = CAUSAL if "causal" in measure.needs else tuple(RUNS)
    return twins if "twin" in measure.needs else (*twins, MARKED)


cases = pytest.mark.parametrize(("name", "spec"), [(name, spec) for name in NAMES for spec in specs_of(name)])


@pytest.fixture(autouse=True)
def sample() -> Iterator[None]:
    """The measure of the sample package is registered in this process."""
    MEASURES.add("centroids", Centroids())
    yield
    del MEASURES.added["centroids"]


@cache
def run(spec: str) -> PretrainedRun:
    if spec == MARKED:
        folder = Path(mkdtemp(prefix="derivlang-tests-"))
        trained(folder / "run", "clm", spec, steps=1, data=folder / "data", tokenizer_for="both", seq_len=64)
        return PretrainedRun.load(folder / "run")
    return PretrainedRun.load(write_run(Path(mkdtemp(prefix="derivlang-tests-")) / "run", spec, **RUNS[spec]))


@cache
def model(spec: str) -> Encoder:
    return run(spec).language_model(torch.device("cpu"))


def sets(spec: str, n: int = 30) -> MeasureSets:
    """Fresh ones, without states of earlier tests."""
    found = run(spec).languages

    def read() -> Heldout:
        return Heldout.read(Source.open(found.pipeline, SourceRequest("demo")), "validation", found, n, 60)

    def read_training() -> TrainingText:
        return training_text(Source.open(found.pipeline, SourceRequest("demo")), found, 500, {"seq_len": 60})

    return MeasureSets(run(spec).folder, found, "demo", read, n, n, run(spec).folder / "evaluation", read_training)


def scores(name: str, model: Encoder, sets: MeasureSets) -> list[Row]:
    measure = MEASURES.find(name)
    return table_of(name, measure.columns, measure.measure(model, sets)).to_pylist()


@cache
def found_of(name: str, spec: str) -> list[Row]:
    return scores(name, model(spec), sets(spec))


@cache
def shared_sets(spec: str) -> MeasureSets:
    """Sets whose states another measure has asked for before."""
    found = sets(spec)
    found.states(model(spec))
    return found


@cases
def test_scores_are_always_the_same_and_the_model_stays_as_it_is(name: str, spec: str) -> None:
    before = {key: value.clone() for key, value in model(spec).module.state_dict().items()}
    found = found_of(name, spec)
    assert repr(scores(name, model(spec), shared_sets(spec))) == repr(found)
    for key, value in model(spec).module.state_dict().items():
        assert torch.equal(value, before[key]), f"{name} changes the model"


@cases
def test_scores_are_what_the_columns_declare(name: str, spec: str) -> None:
    columns = {column.name: column for column in MEASURES.find(name).columns}
    found = found_of(name, spec)
    assert found
    assert sum(column.headline for column in columns.values()) == 1
    places = [(row["metric"], row["regime"], row["group"], row["layer"]) for row in found]
    assert len(set(places)) == len(places)
    for row in found:
        column, counts = columns[row["metric"]], row["counts"]
        assert (row["regime"], row["ft_seed"], row["split"]) in {(r, None, "") for r in REGIMES}
        assert row["regime"] != "chance" or (column.chance and 0 < row["value"] < 50)
        if column.formula and counts is not None:
            assert row["value"] == pytest.approx(
                value_of(column.formula, counts_of(column.formula, counts)), nan_ok=True
            )
            assert row["set"]
            assert len(row["set_hash"]) == 16
        assert column.unit != "%" or abs(row["value"]) <= 100 + 1e-9
    own = {row["metric"]: row for row in found if row["regime"] != "chance"}
    guesses = {row["metric"] for row in found if row["regime"] == "chance"}
    assert guesses == {metric for metric in own if columns[metric].chance}
    every = set(range(1 + run(spec).config.num_hidden_layers))
    for metric in own:
        layers = [row["layer"] for row in found if row["metric"] == metric and row["regime"] != "chance"]
        assert set(layers) == (every if columns[metric].over == "layer" else {None})
    for hash in {row["set_hash"] for row in found} - {""}:
        widths = {row["metric"]: formula_of(row["formula"])[1] for row in found if row["formula"]}
        units = {
            len(row["counts"]) // widths[row["metric"]] for row in found if row["set_hash"] == hash and row["counts"]
        }
        assert len(units) == 1


@ALL
def test_runs_of_two_languages_and_models_have_the_same_set(name: str) -> None:
    # sub-words that both languages share are not scored by alignment
    specs = [spec for spec in specs_of(name) if name != "alignment" or "overlap" not in spec]
    found = [{row["set_hash"] for row in found_of(name, spec) if row["layer"] in (None, 0)} for spec in specs]
    assert all(one & found[0] for one in found)


@ALL
def test_one_sentence_is_enough(name: str) -> None:
    spec = specs_of(name)[0]
    assert scores(name, model(spec), sets(spec, 1))


@ALL
def test_only_a_measure_that_says_so_needs_a_head(name: str) -> None:
    measure = MEASURES.find(name)
    if {"head", "causal"} & {*measure.needs}:
        spec = specs_of(name)[-1]
        with pytest.raises(UsageError, match="it has no head"):
            scores(name, model(spec).base(), sets(spec))
    else:
        assert repr(scores(name, model("trans,inv").base(), sets("trans,inv"))) == repr(found_of(name, "trans,inv"))


@ALL
def test_a_measure_has_docstrings_in_a_short_file(name: str) -> None:
    measure = type(MEASURES.find(name))
    path = Path(getsourcefile(measure) or "")
    tree = ast.parse(path.read_text("utf-8"))
    assert sum(isinstance(node, ast.ClassDef) and node.name == measure.__name__ for node in tree.body) == 1
    assert measure.__doc__ != Measure.__doc__
    assert measure.measure.__doc__ != Measure.measure.__doc__
    assert ast.get_docstring(tree)
    assert len(path.read_text("utf-8").splitlines()) <= 250


def test_names_of_options() -> None:
    assert EvaluateOptions().measures == tuple(
        name for name in NAMES if name not in ("ngrams", "projection", "regions", "surprisal", "centroids")
    )
    assert EvaluateOptions(measures=("centroids",)).measures == ("centroids",)
    with pytest.raises(UsageError, match="did you mean retrieval"):
        EvaluateOptions(measures=("retrieva",))
