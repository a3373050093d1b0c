"""Figures of the report over layers, of self-labels, and of embeddings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from derivlang.core.errors import StoreError
from derivlang.evaluation.measures.projection import principal
from tests.runs import run, seal, write

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from derivlang.evaluation.report.cells import EMPTY
from derivlang.evaluation.report.curves import layer_curves, layer_table, logged_curves
from derivlang.evaluation.report.projection import projection_figures, projection_table
from derivlang.evaluation.report.reading import read_runs
from derivlang.evaluation.report.settings import settings_of
from derivlang.evaluation.report.write import report

POINTS = {"explained": 12.5, "source": [[0.0, 1.0], [1.0, 0.5]], "derived": [[0.5, 1.0], [-1.0, -0.5]]}


def evaluated(folder: Path, *, rate: float, **more: object) -> Path:
    """A run whose error rate by argmax at layer n is rate - n."""
    found = json.loads((folder / "evaluation.json").read_text("utf-8"))
    write(folder / "evaluation.json", found | {"links": [{"layer": n, "argmax": rate - n} for n in (0, 1)]} | more)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for seed in (1, 2):
        folder = evaluated(run(tmp_path / "runs" / f"mlm-{seed}", seed=seed), rate=50.0 + seed, projection=POINTS)
        lines = [{"step": 50, "precision_percent": 60 + seed}, {"step": 100}, {"step": 150, "precision_percent": 71}]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / "log.jsonl").write_text(text + '{"step": 20', "utf-8")  # the last line is cut off
        seal(folder / "run.json")
    evaluated(run(tmp_path / "runs" / "align", objective="align-mlm"), rate=40.0)
    return tmp_path / "runs"


def test_curves_over_layers_are_means_over_seeds(runs: Path) -> None:
    (setting,) = settings_of(read_runs([runs]))
    (curve,) = (one for one in layer_curves(setting) if "links" in one.id)
    assert (curve.title, curve.x) == ("Links: AER by argmax, trans,inv, %", "layer")
    means = {entry.label: curve.mean(entry) for entry in curve.seeds}
    assert means == {"MLM": {0: (51.5, 2), 1: (50.5, 2)}, "ALIGN-MLM": {0: (40.0, 1), 1: (39.0, 1)}}
    table = layer_table(setting, [curve])
    assert table is not None
    assert [(row.labels, row.cells[0].text, row.cells[0].note) for row in table.rows][1:3] == [
        (("MLM", "trans,inv", "1"), "50.5", "n=2"),
        (("ALIGN-MLM", "trans,inv", "0"), "40.0", "n=1"),
    ]


def test_precision_of_self_labels_is_that_of_the_log(runs: Path) -> None:
    (setting,) = settings_of(read_runs([runs]))
    (curve,) = logged_curves(setting)
    ((entry, seeds),) = curve.seeds.items()
    assert list(seeds.values()) == [{50: 61, 150: 71}, {50: 62, 150: 71}]
    assert curve.mean(entry) == {50: (61.5, 2), 150: (71, 2)}


def test_embeddings_have_a_panel_for_each_row(runs: Path) -> None:
    settings = settings_of(read_runs([runs]))
    (figure,) = projection_figures(settings)
    assert figure.svg.count("MLM, ") == 1  # the first seed; the other row has no picture
    table = projection_table(settings)
    assert table is not None
    assert [cell.text for row in table.rows for cell in row.cells] == ["12.5"]


@pytest.mark.parametrize("points", [POINTS, {"source": [], "derived": []}], ids=["equal rows", "no pairs"])
def test_a_projection_without_a_share_of_the_variance_is_no_error(runs: Path, points: dict[str, object]) -> None:
    path = runs / "mlm-1" / "evaluation.json"
    found = json.loads(path.read_text("utf-8"))
    write(path, found | {"projection": points | {"explained": None}})
    settings = settings_of(read_runs([runs / "mlm-1"]))
    rows = projection_table(settings).rows
    assert [cell.text for row in rows for cell in row.cells] == ([EMPTY] if points["source"] else [])
    assert len(projection_figures(settings)) == len(rows)


def test_all_of_it_is_in_the_report(runs: Path, tmp_path: Path) -> None:
    report([runs], tmp_path / "out")
    names = {path.stem for path in (tmp_path / "out" / "figures").glob("*.svg")}
    assert {"curve-layers-links-argmax-0", "curve-precision-0", "projection-0"} <= names
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "### By layer" in text
    assert "Embeddings of frequent sub-words" in text


def test_other_held_out_text_is_another_table(runs: Path) -> None:
    for name, length in (("mlm-1", 128), ("mlm-2", 22)):
        path = runs / name / "evaluation.json"
        found = json.loads(path.read_text("utf-8"))
        told = {"pairs": 500, "sentences": 2000, "length": length}
        write(path, found | {"heldout": {"links": told, "retrieval": told}})
    settings = settings_of(read_runs([runs]))
    assert len(settings) == 3  # the two, and the run that does not say
    notes = [note for setting in settings for note in setting.notes if note.startswith("held-out text")]
    assert "held-out text: pairs 500, length 22" in notes


@pytest.mark.parametrize(
    "bad",
    [
        {"projection": {"explained": 1.0, "source": [[0.0, 1.0]], "derived": []}},
        {"projection": {"explained": 1.0, "source": [[0.0]], "derived": [[0.0]]}},
        {"projection": {"explained": "much", "source": [], "derived": []}},
        {"heldout": {"links": 5}},
    ],
)
def test_damaged_results_are_named(runs: Path, bad: dict[str, object]) -> None:
    path = runs / "align" / "evaluation.json"
    write(path, json.loads(path.read_text("utf-8")) | bad)
    with pytest.raises(StoreError, match=r"evaluation\.json"):
        read_runs([runs])


def test_a_layer_has_all_its_digits(runs: Path) -> None:
    layers = [{"layer": number, "argmax": 40.0} for number in (0, 1_234_567)]
    path = runs / "align" / "evaluation.json"
    write(path, json.loads(path.read_text("utf-8")) | {"links": layers})
    curves = [curve for setting in settings_of(read_runs([runs])) for curve in layer_curves(setting)]
    steps = {step for curve in curves for runs in curve.seeds.values() for one in runs.values() for step in one}
    assert 1_234_567 in steps


def test_principal_components_by_hand() -> None:
    # Unit vectors on three axes in pairs: the mean is 0, two of the axes have all points but the last two.
    rows = np.array([[2.0, 0, 0], [-1, 0, 0], [0, 3, 0], [0, -1, 0], [0, 0, 0.0]])
    points, explained = principal(rows)
    assert explained == pytest.approx(100)
    assert np.allclose(np.sort(np.abs(points), axis=1)[:4], [[0, 1]] * 4)
    assert principal(np.zeros((0, 3)))[1] is None
    assert principal(np.ones((4, 3)))[1] is None
