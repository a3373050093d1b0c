"""The page on extending derivlang shows the code that the tests run."""

from __future__ import annotations

import re
import tomllib

import numpy as np

from derivlang.evaluation.metrics import Metric
from tests.helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "extending.md").read_text("utf-8")
SAMPLES = re.findall(r"^`([\w./]+)`\n\n```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_samples_are_the_files_that_they_name() -> None:
    assert len(SAMPLES) >= 6
    for name, kind, text in SAMPLES:
        path = ROOT / name if name.startswith("derivlang/") else ROOT / "tests" / "plugin" / name
        content = path.read_text("utf-8")
        if kind == "toml":
            shown, whole = tomllib.loads(text)["project"], tomllib.loads(content)["project"]
            for group, entries in shown["entry-points"].items():
                assert entries.items() <= whole["entry-points"][group].items()
        else:
            assert text in content, name


def test_the_metric_counts_and_scores() -> None:
    (sample,) = (
        text for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) if "exact_match" in text
    )
    names: dict[str, object] = {}
    exec(compile(sample, "extending.md", "exec"), names)
    metric = names["exact_match"]
    assert isinstance(metric, Metric)
    counts = metric.counts([["NOUN", "VERB"], ["DET"], ["X"]], [["NOUN", "VERB"], ["DET"], ["NUM"]])
    assert counts.tolist() == [[1, 1], [1, 1], [0, 1]]
    assert np.isclose(metric.value(counts), 200 / 3)
