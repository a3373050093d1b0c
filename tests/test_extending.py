"""The pages on extending derivlang show the code that the tests run, and the members that the base classes have."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import numpy as np
import pytest

from derivlang import Transform
from derivlang.core.layers.base import Layer
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.metrics import Metric
from derivlang.evaluation.tasks.base import Task
from derivlang.formats.base import Format
from derivlang.parsing.base import Parser
from derivlang.sources.named import NamedSource
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "extending.md").read_text("utf-8")
TASK = (ROOT / "docs" / "howto" / "own-task.md").read_text("utf-8")
NAMED = re.compile(r"^`([\w./]+)`\n\n```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAMPLES = [one for one in NAMED.findall(PAGE + TASK) if one[0].startswith(("derivlang/", "derivlang_sample/"))]


def test_samples_are_the_files_that_they_name() -> None:
    assert len(SAMPLES) >= 6
    for name, _, text in SAMPLES:
        path = ROOT / name if name.startswith("derivlang/") else ROOT / "tests" / "plugin" / name
        assert text in path.read_text("utf-8"), name


def test_the_entry_points_are_those_of_the_sample_package() -> None:
    whole = tomllib.loads((ROOT / "tests/plugin/pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    named = set(re.findall(r"entry point `([\w.]+)`", PAGE))
    assert named == set(whole)


def test_the_metric_of_the_task_page_counts_and_scores() -> None:
    (sample,) = (text for name, _, text in NAMED.findall(TASK) if name == "sentences.py")
    names: dict[str, Any] = {"__name__": "sentences"}
    exec(compile(sample, "own-task.md", "exec"), names)
    (metric,) = names["WholeSentences"].columns
    assert isinstance(metric, Metric)
    counts = metric.counts([["NOUN", "VERB"], ["DET"], ["X"]], [["NOUN", "VERB"], ["DET"], ["NUM"]])
    assert counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert np.isclose(metric.value(counts), 200 / 3)


def members(title: str) -> set[str]:
    """The names in the first column of the first table of a section."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0].partition("\n| base class")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def inherited(base: type) -> set[str]:
    """The members and annotated fields of a class and its bases."""
    return set(dir(base)).union(*(vars(one).get("__annotations__", {}) for one in base.__mro__))


BASES: dict[str, type] = {
    "A transform": Transform,
    "A source": NamedSource,
    "A file format": Format,
    "A layer": Layer,
    "A parser": Parser,
    "A task": Task,
    "A measure": Measure,
}


@pytest.mark.parametrize("title", BASES)
def test_the_tables_name_the_members_of_the_base_class(title: str) -> None:
    named, base = members(title), BASES[title]
    assert named
    assert named <= inherited(base)
    assert set(getattr(base, "__abstractmethods__", ())) <= named


@pytest.mark.parametrize("title", ["An objective", "A stream"])
def test_the_tables_of_training_name_the_members_of_the_base_class(title: str) -> None:
    pytest.importorskip("torch")
    from derivlang.training.objectives.base import Objective
    from derivlang.training.streams.base import Stream

    base: type = Objective if title == "An objective" else Stream
    assert members(title)
    assert members(title) <= inherited(base)
    assert set(getattr(base, "__abstractmethods__", ())) <= members(title)
