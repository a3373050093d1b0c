"""Every measure of the registry, and that of the sample package, keeps the same promises on runs of five kinds."""

from __future__ import annotations

import ast
import json
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
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.trained import PretrainedRun
from derivlang.sources.request import SourceRequest
from derivlang.training.encoder import Encoder
from tests.plugin.derivlang_sample.measures import Centroids
from tests.tiny_runs import write_run

NAMES = [*MEASURES.built_in, "centroids"]
ALL = pytest.mark.parametrize("name", NAMES)
RUNS: dict[str, dict[str, Any]] = {
    "trans,inv": {"kind": "modernbert", "dictionary": 40},
    "trans:overlap=30,perm:unit=token": {"kind": "roberta", "model": {"name": "r", "language_ids": True}},
    "trans": {"kind": "bert"},
    "trans:overlap=20,inv": {"kind": "gpt2"},
    "trans,perm": {"kind": "llama"},
}
CAUSAL = ("trans:overlap=20,inv", "trans,perm")
# Every measure on every run that it applies to.
CASES = [(name, spec) for name in NAMES for spec in RUNS if name != "surprisal" or spec in CAUSAL]
cases = pytest.mark.parametrize(("name", "spec"), CASES)


@pytest.fixture(autouse=True)
def sample() -> Iterator[None]:
    """The measure of the sample package is registered in this process."""
    MEASURES.add("centroids", Centroids())
    yield
    del MEASURES.added["centroids"]


@cache
def run(spec: str) -> PretrainedRun:
    return PretrainedRun.load(write_run(Path(mkdtemp(prefix="derivlang-tests-")) / "run", spec, **RUNS[spec]))


@cache
def model(spec: str) -> Encoder:
    return run(spec).language_model(torch.device("cpu"))


def sets(spec: str, n: int = 30) -> MeasureSets:
    """Fresh ones, without states of earlier tests."""
    found = run(spec).languages

    def read() -> Heldout:
        return Heldout.read(Source.open(found.pipeline, SourceRequest("demo")), "validation", found, n, 60)

    return MeasureSets(run(spec).folder, found, read, n, n)


def numbers(found: Any) -> list[Any]:
    """All values of a result."""
    if isinstance(found, dict):
        return [value for inner in found.values() for value in numbers(inner)]
    return [value for inner in found for value in numbers(inner)] if isinstance(found, list) else [found]


@cases
def test_a_result_is_json_and_always_the_same(name: str, spec: str) -> None:
    measure, before = (
        MEASURES.find(name),
        {key: value.clone() for key, value in model(spec).module.state_dict().items()},
    )
    found = measure.measure(model(spec), sets(spec))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert all(value is None or isinstance(value, (int, float)) for value in numbers(found))
    shared = sets(spec)
    shared.states(model(spec))  # another measure has asked for the states before
    assert measure.measure(model(spec), shared) == found
    for key, value in model(spec).module.state_dict().items():
        assert torch.equal(value, before[key]), f"{name} changes the model"


@cases
def test_rows_are_figures_with_titles(name: str, spec: str) -> None:
    measure = MEASURES.find(name)
    found = measure.measure(model(spec), sets(spec))
    rows = measure.rows(json.loads(json.dumps(found)))
    assert rows
    if isinstance(found, list):
        assert [layer["layer"] for layer in found] == [0, 1, 2]
        assert len(rows) == 3
    for title, figures in rows.items():
        assert title
        assert set(figures) - {"chance"}
        for figure, value in figures.items():
            assert value is None or isinstance(value, float), figure
            assert value is None or measure.unit != " %" or abs(value) <= 100 + 1e-4, figure
            assert figure != "chance" or value is None or 0 < value < 50


@ALL
def test_one_sentence_is_enough(name: str) -> None:
    spec = CAUSAL[0] if MEASURES.find(name).needs_causal else "trans,inv"
    found = MEASURES.find(name).measure(model(spec), sets(spec, 1))
    assert MEASURES.find(name).rows(found)


@ALL
def test_only_a_measure_that_says_so_needs_a_head(name: str) -> None:
    measure = MEASURES.find(name)
    if measure.needs_head or measure.needs_causal:
        spec = CAUSAL[0] if measure.needs_causal else "trans,inv"
        with pytest.raises(UsageError, match="it has no head"):
            measure.measure(model(spec).base(), sets(spec))
    else:
        found = [measure.measure(one, sets("trans,inv")) for one in (model("trans,inv"), model("trans,inv").base())]
        assert found[0] == found[1]


@ALL
def test_a_measure_is_one_short_file_with_docstrings(name: str) -> None:
    measure = type(MEASURES.find(name))
    path = Path(getsourcefile(measure) or "")
    tree = ast.parse(path.read_text("utf-8"))
    assert sum(isinstance(node, ast.ClassDef) and node.name == measure.__name__ for node in tree.body) == 1
    assert measure.__doc__ != Measure.__doc__
    assert measure.measure.__doc__ != Measure.measure.__doc__
    assert ast.get_docstring(tree)
    assert name in ("alignment",) or len(path.read_text("utf-8").splitlines()) <= 150


def test_names_are_free_in_evaluation_json() -> None:
    assert not {"signature", "tasks", "heldout", "none"} & set(MEASURES.names())


def test_names_of_options() -> None:
    assert EvaluateOptions().measures == tuple(
        name for name in MEASURES.built_in if name not in ("projection", "surprisal")
    )
    assert EvaluateOptions(measures=("centroids",)).measures == ("centroids",)
    with pytest.raises(UsageError, match="did you mean retrieval"):
        EvaluateOptions(measures=("retrieva",))
