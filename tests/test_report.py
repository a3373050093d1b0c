"""The report: what stands in the page, the Markdown, the tables and the figures; its folder; bad input."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import derivlang
from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.messages import DerivlangWarning
from derivlang.evaluation import table as table_module
from derivlang.evaluation.columns import Column
from derivlang.evaluation.table import read_scores, write_scores
from tests import runs
from tests.commands import run
from tests.frames import (
    ACCURACY,
    ALIGNMENT,
    BITS,
    DOCUMENTS,
    LINKS,
    NER,
    NGRAMS,
    PERPLEXITY,
    PICTURE,
    POS,
    FakeTask,
    frame,
    study,
)

stats = pytest.importorskip("scipy.stats")
pytest.importorskip("matplotlib")

from derivlang.evaluation.report import write as report_module  # noqa: E402
from derivlang.evaluation.report.compare import MEAN, compared  # noqa: E402
from derivlang.evaluation.report.correlation import correlation, correlation_table, correlations_of  # noqa: E402
from derivlang.evaluation.report.factors import sections_of  # noqa: E402
from derivlang.evaluation.report.facts import results_of, settings_of  # noqa: E402
from derivlang.evaluation.report.figures import score_figures  # noqa: E402
from derivlang.evaluation.report.tables import (  # noqa: E402
    ReportedScore,
    Table,
    contrast_table,
    curve_table,
    number,
    score_table,
    scores_of,
    signed,
)
from derivlang.evaluation.report.write import part_of, report  # noqa: E402
from derivlang.evaluation.statistics import FEW_UNITS  # noqa: E402

LEVELS = {"t": ["trans", "trans,inv"], "objective": ["mlm", "align-mlm"]}
# A measure of a package that derivlang does not know.
OWN = FakeTask("centroids", (Column("cosine", "cosine of centroids", unit="", formula="mean", headline=True),))
TASKS = (POS, LINKS, ALIGNMENT, PICTURE, OWN)
TOLD: dict[str, Any] = {"baseline": {"objective": "mlm", "t": "trans"}, "primary": "pos.zs", "x": "t"}


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    published = {"task": "pos", "regime": "zs", "t": "trans", "objective": "mlm", "value": 94.6, "source": "Tang 2022"}
    found = study(LEVELS, TASKS, settings={"source": "demo"}, published=[published], **TOLD)
    return told(
        found,
        states={"overlap/trans.mlm.4": "training at step 5 of 20"},
        tests={f"overlap/trans.mlm.{n}": {"pos": {"cut": cut, "in_train": 4}} for n, cut in ((1, 1_003), (2, 7))},
        doses={"overlap/trans.mlm.1": {"tokens": 1_234_567, "translated_percent": 52.71}},
    )


def told(found: pd.DataFrame, **more: Any) -> pd.DataFrame:
    found.attrs |= more
    return found


@pytest.fixture(scope="module")
def written(scores: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    assert report(scores, out) == {"out": str(out), "runs": 13, "evaluated": 12, "figures": 10}
    return out


def analysed(found: pd.DataFrame) -> tuple[Any, pd.DataFrame]:
    """The section of these scores, and its comparisons."""
    (one,) = sections_of(found)
    return one, compared(one)


def scored(section: Any, comparisons: pd.DataFrame, task: str, metric: str) -> ReportedScore:
    (one,) = (one for one in scores_of(section, comparisons) if (one.task, one.column.name) == (task, metric))
    return one


def cell(table: Table, labels: tuple[str, ...], column: str) -> str:
    found: str = table.shown.loc[labels, column]
    return found


# what stands in it


def test_every_metric_is_in_every_file_and_each_headline_in_a_figure(scores: pd.DataFrame, written: Path) -> None:
    page = text_of(written)
    rows = pd.read_csv(written / "scores.tsv", sep="\t")
    there = set(zip(rows["task"], rows["metric"], strict=True))
    figures = [path.stem for path in (written / "figures").glob("*.pdf")]
    for task in TASKS:
        for column in task.columns:
            assert column.shown in page, column
            assert (task.label, column.name) in there
            if column.headline:
                assert any(name.startswith(f"{task.label}-{column.name}") for name in figures), column
                assert (written / "tables" / f"{task.label}-{column.name}.csv").exists()


def test_every_figure_has_three_formats_and_a_caption(written: Path) -> None:
    pictures = Counter(path.stem for path in (written / "figures").iterdir())
    assert set(pictures.values()) == {3}
    starts = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF"}
    for path in (written / "figures").iterdir():
        assert path.read_bytes().startswith(starts[path.suffix[1:]])
        assert b"#010203" not in path.read_bytes()
    page = (written / "index.html").read_text("utf-8")
    assert page.count("<figcaption>") == page.count("<img") == len(pictures)
    caption = (
        "pos: accuracy, ZS, by t and objective. Marks: means over 3 pre-training seeds; vertical lines: their 95 % "
        "intervals, which cover seeds and 40 test documents; dots: seeds. The same in all runs: source demo."
    )
    assert caption in page


def test_a_cell_has_mean_interval_number_and_the_published_value(scores: pd.DataFrame) -> None:
    one, found = analysed(scores)
    table = score_table(scored(one, found, "pos", "accuracy"))
    (row,) = found[(found["kind"] == "mean") & (found["task"] == "pos") & (found["metric"] == "accuracy")
                   & (found["regime"] == "zs") & (found["factor.t"] == "trans")
                   & (found["factor.objective"] == "mlm")].to_dict("records")  # fmt: skip
    told = f"{number(row['value'])}\n{number(row['low'])}–{number(row['high'])}, n=3"
    assert cell(table, ("trans", "mlm"), "ZS") == told
    published = {objective: cell(table, ("trans", objective), "ZS, published") for objective in ("mlm", "align-mlm")}
    assert published == {"mlm": "94.6", "align-mlm": "–"}
    assert list(table.shown.columns) == ["SUP", "ZS", "ZS, published", "Δ"]
    assert "Published: Tang 2022." in table.note


@pytest.mark.parametrize("controls", [False, True])
def test_zero_shot_stands_in_the_range_from_a_floor_to_sup(controls: bool) -> None:
    """The floor is ZS of the untrained model of the same language; without controls, chance."""
    task = FakeTask("pos", (ACCURACY,), ("sup", "zs", "chance"), ft_seeds=(1,), split="test")
    cells: list[dict[str, str]] = [{"t": t, "objective": o} for t in ("trans", "inv") for o in ("mlm", "align")]
    if controls:
        cells += [{"t": t, "objective": "mlm", "control": "untrained"} for t in ("trans", "inv")]
    rates = {"sup": 0.9, "chance": 0.2}

    def rate(levels: Mapping[str, str], regime: str) -> float:
        low = 0.1 if levels["t"] == "trans" else 0.3
        return rates.get(regime, low if "control" in levels else 0.6)

    scores = frame(
        [{"study": "s", "seed": seed, "factors": cell} for cell in cells for seed in (1, 2, 3)], [task], rate
    )
    one, found = analysed(told(scores, studies={"s": {"x": "t", "lines": "objective"}}))
    table = score_table(scored(one, found, "pos", "accuracy"))
    assert list(table.shown.columns) == ["SUP", "ZS", "Δ", "% of range", "chance"]
    (way,) = (text for text in results_of(scored(one, found, "pos", "accuracy")) if "of the way from the floor" in text)
    floor = "the floor of 3 untrained runs" if controls else "chance"
    assert re.search(rf"ZS goes \d+\.\d % \(.*: \+\d+\.\d points from \d+\.\d, {floor}\) to ", way)
    floor = "ZS of the untrained model" if controls else "the chance level"
    assert f"with {floor} as the floor" in table.note

    def values(regime: str, **levels: str) -> Any:
        some = found[(found["kind"] == "mean") & (found["regime"] == regime)]
        for name in ("t", "objective", "control"):
            if f"factor.{name}" in some:
                level = some[f"factor.{name}"]
                some = some[level == levels[name] if name in levels else level.isna()]
        return np.array(some["values"].iloc[0])

    for t, o in ((t, o) for t in ("trans", "inv") for o in ("mlm", "align")):
        floors = (
            values("zs", t=t, objective="mlm", control="untrained") if controls else values("chance", t=t, objective=o)
        )
        sup, zs = values("sup", t=t, objective=o), values("zs", t=t, objective=o)
        assert values("range", t=t, objective=o) == pytest.approx(100 * (zs - floors.mean()) / (sup - floors.mean()))


def test_the_floor_of_a_language_is_its_own() -> None:
    """Without an untrained model of its language, a condition begins at chance, and the note says so."""
    task = FakeTask("pos", (ACCURACY,), ("sup", "zs", "chance"), ft_seeds=(1,), split="test")
    cells: list[dict[str, str]] = [{"t": t, "objective": "mlm"} for t in ("trans", "inv")]
    cells.append({"t": "trans", "objective": "mlm", "control": "untrained"})
    some = [{"study": "s", "seed": seed, "factors": cell} for cell in cells for seed in (1, 2, 3)]
    rates = {"sup": 0.9, "zs": 0.6, "chance": 0.2}
    scores = frame(
        some, [task], lambda levels, regime: 0.1 if "control" in levels and regime == "zs" else rates[regime]
    )
    one, found = analysed(told(scores, studies={"s": {"x": "t", "lines": "objective"}}))
    assert (
        "with ZS of the untrained model, or else the chance level as the floor"
        in score_table(scored(one, found, "pos", "accuracy")).note
    )
    ranges = found[(found["kind"] == "mean") & (found["regime"] == "range") & found["factor.control"].isna()]
    by_language = ranges.set_index("factor.t")["value"]
    assert by_language["trans"] == pytest.approx(100 * 0.5 / 0.8, abs=4)
    assert by_language["inv"] == pytest.approx(100 * 0.4 / 0.7, abs=4)


def test_a_report_of_runs_without_an_evaluation_has_their_losses(tmp_path: Path) -> None:
    for objective, parts in (("mlm", {"mlm": 2.0}), ("align-mlm", {"mlm": 1.5, "align": -0.5})):
        for seed in (1, 2):
            result = {"loss": sum(parts.values()) + seed, "parts": parts, "steps": 1000}
            runs.run(tmp_path / f"{objective}.{seed}", objective=objective, seed=seed, evaluated=False,
                     facts={"result": result})  # fmt: skip
    found = derivlang.scores(*sorted(tmp_path.iterdir()))
    assert set(found["task"]) == {"training"}
    made = found.set_index(["run", "metric"])["value"]
    assert made[str(tmp_path / "mlm.2"), "loss"] == 4.0
    assert made[str(tmp_path / "align-mlm.1"), "align"] == -0.5
    report(found, tmp_path / "report")
    page = text_of(tmp_path / "report")
    assert "mlm 3.50 3.00, 4.00, n=2" in page
    assert "align-mlm 2.50 2.00, 3.00, n=2" in page
    assert "the best objective" not in page  # the losses are sums of other parts
    assert "not evaluated" in page
    runs.run(tmp_path / "evaluated")
    assert "training" not in set(derivlang.scores(*sorted(tmp_path.glob("*[12]")), tmp_path / "evaluated")["task"])


def test_contrasts_of_other_test_sets_are_named(scores: pd.DataFrame) -> None:
    changed = scores.copy()
    changed.loc[(changed["factor.t"] == "trans,inv") & (changed["task"] == "pos"), "set_hash"] = "another"
    table = contrast_table(scored(*analysed(changed), "pos", "accuracy"), "difference")
    assert table is not None
    assert "paired by pre-training seed. There are other test sets in trans,inv − trans: these" in table.note
    assert "same test set" not in table.note


def test_a_run_of_several_languages_names_these(tmp_path: Path) -> None:
    """It is one run, and no target is the best one: they have other test sets."""
    asked = (
        "fr=text:fr.txt lang:fr t:identity ids:text",
        "ar=text:ar.txt t:identity ids:text",
        "rf=t:trans,inv ids:own",
    )
    runs = [{"run": f"multi@{name}", "seed": 1, "factors": {"target": name}, "settings": {"language": "; ".join(asked)}}
            for name in ("ar", "rf")]  # fmt: skip
    found = frame(runs, [POS])
    sentences = list(results_of(scored(*analysed(found), "pos", "accuracy")))
    assert "Languages: fr (fr.txt, lang fr), ar (ar.txt), rf (trans,inv of fr)." in sentences
    assert any("the best target is" in one for one in sentences)
    assert not any(one.startswith(("identity:", "Derived languages:")) for one in sentences)
    found.loc[found["factor.target"] == "ar", "set_hash"] = "another"
    assert not any("best" in one for one in results_of(scored(*analysed(found), "pos", "accuracy")))
    assert report(found, tmp_path / "report")["runs"] == 1


def test_a_factor_has_one_baseline(tmp_path: Path) -> None:
    twice = ("--baseline", "t=inv", "--baseline", "objective=mlm", "--baseline", "t=trans")
    assert "--baseline: a factor has two baselines" in run("report", tmp_path, *twice, code=2).err


def test_one_contrast_has_one_p_and_stars_are_of_the_primary_outcome_alone(scores: pd.DataFrame, written: Path) -> None:
    one, found = analysed(scores)
    starred = found[found["p_holm"] < 0.05]
    assert len(starred)
    table = contrast_table(scored(one, found, "pos", "accuracy"), "difference")
    assert table is not None
    stars = table.shown["difference"].str.contains("*", regex=False)
    assert stars.sum() == len(starred) == stars["ZS"].sum()
    assert list(table.shown.columns) == ["difference", "p", "by seed", "p (Holm)"]
    assert set(table.shown.loc["SUP", "p (Holm)"]) == {"–"}
    for row in starred.to_dict("records"):
        assert f"{signed(row['value'])}*" in text_of(written)
    assert "paired by pre-training seed, on the same test set. A mean" in table.note
    other = analysed(study(LEVELS, [POS], baseline=TOLD["baseline"]))
    for kind in ("difference", "interaction"):
        table = contrast_table(scored(*other, "pos", "accuracy"), kind)
        assert table is not None
        assert not table.shown.map(lambda cell: "*" in cell).to_numpy().any()
        assert "p (Holm)" not in table.shown


def test_a_condition_that_was_planned_has_a_row_without_a_result() -> None:
    cells = [{"t": "trans", "o": "mlm"}, {"t": "trans", "o": "xlm"}, {"t": "inv", "o": "mlm"}]
    scores = frame(
        [{"study": "s", "seed": seed, "factors": cell} for cell in cells[:2] for seed in (1, 2)], [ALIGNMENT]
    )
    planned = [{"run": "r", "factors": cell} for cell in cells for _ in range(3)]
    study = {"factors": {"t": ["trans", "inv"]}, "cells": planned, "x": "t"}
    table = score_table(scored(*analysed(told(scores, studies={"s": study})), "alignment", "heldout"))
    assert list(table.shown.index) == [("trans", "mlm"), ("trans", "xlm"), ("inv", "mlm")]
    assert cell(table, ("inv", "mlm"), "held-out") == "–"
    assert cell(table, ("trans", "mlm"), "held-out").endswith("n=2 of 3")


def test_values_that_are_nan_are_shown_and_counted(tmp_path: Path) -> None:
    scores = study({"objective": ["mlm", "xlm"]}, [ALIGNMENT])
    scores.loc[(scores["metric"] == "heldout") & (scores["seed"] == 2), "value"] = np.nan
    one, found = analysed(scores)
    shown = score_table(scored(one, found, "alignment", "heldout")).shown
    assert shown.map(lambda cell: cell.startswith("NaN\n") and cell.endswith("n=3")).to_numpy().all()
    assert "2 values of alignment heldout are NaN or infinite: mlm.2, xlm.2." in settings_of(one)
    report(scores, tmp_path / "out")
    assert "NaN" in (tmp_path / "out" / "index.html").read_text("utf-8")


def test_scores_by_layer_and_over_steps_have_joined_figures_and_steps_a_table() -> None:
    runs = [
        {"study": "s", "seed": seed, "factors": {"t": t}, "steps": (10, 20)} for seed in (1, 2, 3) for t in ("a", "b")
    ]
    one, found = analysed(frame(runs, [POS, LINKS]))
    steps = curve_table(scored(one, found, "pos", "accuracy"))
    assert steps is not None
    assert list(steps.shown.columns) == ["10", "20"]
    assert list(steps.shown.index) == [(regime, t) for regime in ("SUP", "ZS", "Δ") for t in ("a", "b")]
    assert not (steps.shown == "–").to_numpy().any()
    names = [figure.name for figure in score_figures(scored(one, found, "links", "transport"))]
    assert names == ["links-transport-by-factor", "links-transport-by-layer", "links-transport-by-step"]


@pytest.mark.parametrize(("levels", "joined"), [(["0", "25", "100"], True), (["mlm", "xlm", "tlm"], False)])
def test_numbers_alone_are_joined_by_lines(levels: list[str], joined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn: list[Any] = []
    plot = Axes.plot
    monkeypatch.setattr(Axes, "plot", lambda axes, *a, **k: drawn.append((a, k)) or plot(axes, *a, **k))
    found = study({"level": levels, "t": ["a", "b"]}, [ALIGNMENT], x="level")
    (_,) = score_figures(scored(*analysed(found), "alignment", "heldout"))
    lines = [k for _, k in drawn if "linestyle" in k]
    assert {k["linestyle"] for k in lines} == {"-" if joined else "none"}
    assert len({(k["color"], k["marker"]) for k in lines}) == len(lines) == 2
    xs = [a[0] for a, k in drawn if "linestyle" in k]
    assert set(xs[0]).isdisjoint(xs[1]), "marks of one level stand side by side"


def test_a_study_of_one_condition_has_no_contrasts(tmp_path: Path) -> None:
    found = report(frame([{"seed": 1}], [POS, ALIGNMENT]), tmp_path / "out")
    assert found["figures"] == 0
    assert not list((tmp_path / "out" / "tables").glob("*differences*"))


def test_one_seed_has_neither_a_figure_nor_a_word_of_intervals(tmp_path: Path) -> None:
    scores = study({"t": ["a", "b"]}, [replace(POS, regimes=("sup", "zs"))], seeds=[1], baseline={"t": "a"})
    assert report(scores, tmp_path / "out")["figures"] == 0
    page = text_of(tmp_path / "out")
    assert "95 %" not in page
    assert "an interval needs 3 pre-training seeds" in page


def test_an_axis_of_shares_begins_at_0_and_chance_is_a_dashed_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: drawn.append(figure) or save(figure, *a, **k))
    task = FakeTask("pos", (ACCURACY,), ("sup", "zs", "chance"), ft_seeds=(1,), split="test")
    rates = {"sup": 0.9, "zs": 0.6, "chance": 0.2}
    found = study({"t": ["a", "b"]}, [task], rate=lambda _, regime: rates[regime])
    zs, delta = score_figures(scored(*analysed(found), "pos", "accuracy"))
    (axes,), (of_delta,) = (figure.axes for figure in drawn[::3])
    assert axes.get_ylim()[0] == 0
    dashed = [one for one in axes.collections if one.get_label() == "chance"]
    assert [round(line.vertices[0][1]) for one in dashed for line in one.get_paths()] == pytest.approx([20, 20], abs=4)
    assert "dashed: chance" in zs.caption
    assert "chance" not in delta.caption
    assert not [one for one in of_delta.collections if one.get_label() == "chance"]


def test_floors_have_lines_of_their_own_and_levels_without_a_result_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: drawn.append(figure) or save(figure, *a, **k))
    task = FakeTask("pos", (ACCURACY,), ("zs", "chance"), ft_seeds=(1,), split="test")
    cells: list[dict[str, str]] = [{"t": "trans", "control": ""}, {"t": "inv", "control": ""}]
    cells.append({"t": "trans", "control": "untrained"})
    planned = [{"run": "r", "factors": {"t": "syn:fr", "control": ""}}]
    scores = frame([{"study": "s", "seed": seed, "factors": cell} for cell in cells for seed in (1, 2)], [task])
    section, found = analysed(told(scores, studies={"s": {"x": "t", "lines": "control", "cells": planned}}))
    (figure,) = score_figures(scored(section, found, "pos", "accuracy"))
    (axes,) = drawn[0].axes
    assert axes.get_xlim() == (-0.5, 2.5)
    lines = {one.get_label(): one.get_linestyle()[0][1] for one in axes.collections}
    assert lines["chance"] != lines["untrained model"]
    assert "dotted: untrained model" in figure.caption
    assert "dashed: chance" in figure.caption


def test_the_page_says_first_what_was_found_and_of_what(scores: pd.DataFrame) -> None:
    settings = {"source": "demo", "spec": "trans,inv", "model": "tiny", "parameters": "1187476"}
    found = study({"t": ["trans", "trans,inv"], "objective": ["mlm", "xlm"]}, [POS], settings=settings, **TOLD)
    one, comparisons = analysed(found)
    lines = list(results_of(scored(one, comparisons, "pos", "accuracy")))
    row = comparisons[(comparisons["contrast"] == "xlm − mlm") & (comparisons["regime"] == "zs")
                      & (comparisons["metric"] == "accuracy") & (comparisons["conditions"] == 2)].iloc[0]  # fmt: skip
    told = f"ZS: objective xlm − objective mlm = {signed(row['value'])} points (95 % interval {signed(row['low'])} to "
    assert any(told in line and "3 seeds, mean of 2 conditions" in line for line in lines)
    shown = "\n".join(lines)
    for text in (
        "Text of pre-training: demo.",
        "Derived languages: trans,inv.",
        "Model: tiny.",
        "Parameters: 1,187,476.",
    ):
        assert text in shown
    assert "inv: Inversion" in shown
    assert any(line.startswith("trans,inv is in full trans:script=georgian:") for line in settings_of(one))
    assert "pos: Part-of-speech tags" in shown


@pytest.mark.parametrize("baseline", [{}, {"objective": "mlm"}])
def test_the_page_names_the_best_level(baseline: dict[str, str]) -> None:
    rates = {"mlm": 0.5, "xlm": 0.6, "tlm": 0.8}
    asked = {"t": ["trans", "inv"], "objective": list(rates)}
    found = study(asked, [POS, LINKS], rate=lambda levels, _: rates[levels["objective"]], baseline=baseline)
    one, comparisons = analysed(found)
    (line,) = [line for line in results_of(scored(one, comparisons, "pos", "accuracy")) if "the best" in line]
    assert line.startswith("pos: accuracy, ZS: the best objective is tlm, before xlm by +")
    assert "3 seeds, mean of 2 conditions" in line
    assert " p " not in line  # both levels are chosen by their values
    assert not [line for line in results_of(scored(one, comparisons, "links", "transport")) if "the best" in line]


def test_an_untrained_model_is_the_floor_of_every_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    drawn: list[Any] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: drawn.append(figure) or save(figure, *a, **k))
    cells = [{"objective": "mlm", "control": ""}, {"objective": "xlm", "control": ""}]
    cells.append({"objective": "mlm", "control": "untrained"})
    made = frame(
        [{"study": "s", "seed": seed, "factors": cell} for cell in cells for seed in (1, 2)], [POS],
        rate=lambda levels, _: 0.7 if levels["control"] else {"mlm": 0.5, "xlm": 0.9}[levels["objective"]],
    )  # fmt: skip
    section, found = analysed(told(made, studies={"s": {"x": "objective", "lines": "control"}}))
    score = scored(section, found, "pos", "accuracy")
    assert "pos: accuracy, SUP: the untrained model is ahead of objective mlm by 19.5." in list(results_of(score))
    assert list(score_figures(score))
    (floor,) = [one for one in drawn[0].axes[0].collections if one.get_label() == "untrained model"]
    assert sorted(line[:, 0].tolist() for line in floor.get_segments()) == [[-0.5, 0.5], [0.5, 1.5]]


def test_a_tie_has_no_winner_and_levels_below_chance_are_named() -> None:
    task = FakeTask("pos", (ACCURACY,), ("sup", "zs", "chance"), ft_seeds=(1,), split="test")
    rates = {"sup": 0.52, "zs": 0.1, "chance": 0.5}
    found = study({"objective": ["mlm", "xlm"]}, [task], seeds=[1], rate=lambda _, regime: rates[regime])
    found["value"] = found["regime"].map({"sup": 52.0, "zs": 10.0, "chance": 50.0})
    found["counts"] = None
    one, comparisons = analysed(found)
    shown = " ".join(results_of(scored(one, comparisons, "pos", "accuracy")))
    assert "no objective is ahead, mlm and xlm differ by 0.0 points (" in shown
    assert "); both are below chance (50.0)." in shown
    assert "of the way" not in shown  # SUP is 2 points above the floor
    assert "range" not in set(comparisons["regime"])


def test_a_share_of_the_range_below_0_is_below_the_floor() -> None:
    task = FakeTask("pos", (ACCURACY,), ("sup", "zs", "chance"), ft_seeds=(1,), split="test")
    rates = {"sup": 0.9, "zs": 0.1, "chance": 0.5}
    one, comparisons = analysed(study({"t": ["a", "b"]}, [task], rate=lambda _, regime: rates[regime]))
    told = "\n".join(results_of(scored(one, comparisons, "pos", "accuracy")))
    assert re.search(
        r"^pos: accuracy: ZS is below the floor \(t [ab]: −\d+\.\d points from \d+\.\d, chance\)\.$", told, re.M
    )


def test_the_best_data_is_not_named_by_a_hash() -> None:
    some = [{"seed": 1, "run": data, "settings": {"data": data}} for data in ("773ef7", "88af01")]
    one, comparisons = analysed(frame(some))
    assert one.factors == ("data",)
    assert "the best" not in " ".join(results_of(scored(one, comparisons, "pos", "accuracy")))


def test_the_best_level_is_the_lowest_of_what_should_be_low() -> None:
    one, comparisons = analysed(
        study({"t": ["a", "b"]}, [PERPLEXITY], rate=lambda levels, _: 0.5 + (levels["t"] == "b") / 4)
    )
    means = comparisons[(comparisons["kind"] == MEAN) & (comparisons["regime"] == "derived")]
    lowest = means.loc[means["value"].idxmin(), "factor.t"]
    assert f"the best t is {lowest}" in " ".join(results_of(scored(one, comparisons, "perplexity", "perplexity")))


def test_signatures_name_set_split_settings_seeds_and_version(written: Path) -> None:
    line = "pos.accuracy|set:set of pos#00000000|split:test|units:40 documents|epochs:1|lr:0.002|seeds:1-3|ft_seeds:1-2"
    line += "|derivlang:0.9.0"
    for text in (text_of(written),
                 (written / "tables" / "pos-accuracy.tex").read_text("utf-8").replace("\\allowbreak ", "")
                 .replace("$", "").replace("\\", "")):  # fmt: skip
        assert line in text


def test_states_doses_and_rows_of_test_sets_are_listed(written: Path) -> None:
    text = text_of(written)
    assert "training at step 5 of 20" in text
    assert " 1,234,567 52.7 " in text
    assert re.search(r"cut in train Task pos 7 to 1,003 4 ", text)


@pytest.mark.parametrize("units", [FEW_UNITS, FEW_UNITS - 1])
def test_tables_warn_where_intervals_are_of_few_units(units: int) -> None:
    found = study({"objective": ["mlm", "clm"]}, [POS], **TOLD | {"baseline": {"objective": "mlm"}, "x": "objective"})
    found["counts"] = found["counts"].map(lambda counts: np.resize(counts, len(counts) // DOCUMENTS * units))
    both = analysed(found)
    contrasts = contrast_table(scored(*both, "pos", "accuracy"), "difference")
    for table in (score_table(scored(*both, "pos", "accuracy")), contrasts):
        assert table is not None
        assert (f"The test set has {units} documents" in table.note) == (units < FEW_UNITS)


def test_tables_for_papers_are_whole(written: Path) -> None:
    files = list((written / "tables").glob("*.tex"))
    assert {"pos-accuracy.tex", "pos-accuracy-differences.tex"} <= {path.name for path in files}
    for path in files:
        text = path.read_text("utf-8")
        assert text.isascii(), path.name
        assert text.count("\\toprule") == text.count("\\bottomrule") == text.count("\\end{table}") == 1
        assert text.count("{") == text.count("}")
        rows = re.search(r"\\toprule\n(.*)\\bottomrule", text, re.DOTALL)
        assert rows is not None
        columns = len(re.search(r"begin\{tabular\}\{([lr]+)\}", text)[1])  # type: ignore[index]
        for line in rows[1].replace("\\midrule\n", "").splitlines():
            assert len(re.findall(r"(?<!\\)&", line)) == columns - 1


def test_numbers_of_tables_are_data(scores: pd.DataFrame, written: Path) -> None:
    found = pd.read_csv(written / "tables" / "pos-accuracy.csv")
    _, expected = analysed(scores)
    expected = expected[(expected["task"] == "pos") & (expected["metric"] == "accuracy") & (expected["kind"] == "mean")]
    assert found["value"].tolist() == pytest.approx(expected["value"].tolist())
    assert found["factor.t"].tolist() == expected["factor.t"].tolist()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(-0.04, "%", "0.0"), (79.25, "%", "79.2"), (-1.5, "%", "−1.5"), (7.125, "", "7.12"), (205.31, "", "205.3"),
     (1e14, "", "1.0e+14"), (float("nan"), "%", "NaN")],
)  # fmt: skip
def test_how_numbers_are_written(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


# the page


class Page(HTMLParser):
    """Tags that are open, ids, and what a browser would fetch."""

    void = frozenset({"meta", "br", "wbr", "img", "hr", "input", "link"})

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "table":
            assert "scroll" in self.classes, "a table outside a box that scrolls"
        if tag not in self.void:
            self.open.append(tag)
        self.classes = given.get("class") or ""
        if given.get("id"):
            self.ids[str(given["id"])] += 1
        self.links += [(tag, str(given[name])) for name in ("src", "href", "xlink:href") if given.get(name)]

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(written: Path) -> None:
    text = (written / "index.html").read_text("utf-8")
    page = Page(text)
    assert page.open == []
    assert [id for id, count in page.ids.items() if count > 1] == []
    for tag, link in page.links:
        assert link.startswith(("#", "data:image/svg+xml;base64,")), (tag, link)
        assert not link.startswith("#") or link[1:] in page.ids
    assert not re.search(r"@import|url\((?!#)|<script|<link|#010203", text)
    assert "prefers-color-scheme: dark" in text


def text_of(out: Path) -> str:
    """The words of a report's page, without markup, with one space between them."""
    text = (out / "index.html").read_text("utf-8")
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text[text.index("</style>") :])).split())


EVIL = """<script>alert(1)</script>"><img src=x onerror=alert(2)> [a](javascript:alert(3)) | `c` *b* _u_ & % $ # h
# heading"""


def test_hostile_names_in_every_field_are_never_markup(tmp_path: Path) -> None:
    task = replace(POS, label=f"pos:{EVIL}", columns=(Column(EVIL, EVIL, unit=EVIL, headline=True),))
    levels = {EVIL: [EVIL, f"{EVIL}2"]}
    scores = study(levels, [task, ALIGNMENT], name=EVIL, settings={EVIL + "s": EVIL}, baseline={EVIL: EVIL})
    for name in ("set", "unit", "fingerprint", "weights", "version"):
        scores[name] = EVIL
    states, doses = {f"{EVIL}/{EVIL}": EVIL}, {f"{EVIL}/{scores['run'].iloc[0]}": {EVIL: EVIL}}
    report(told(scores, states=states, doses=doses), tmp_path / "out")
    for path in (tmp_path / "out" / "index.html", *(tmp_path / "out" / "figures").glob("*.svg")):
        text = path.read_text("utf-8")
        assert "alert(1)" in text
        assert not re.search(r"<script|<img src=x", text)
        assert not re.search(r"""<[^>"]*("[^"]*"[^>"]*)*\son\w+\s*=""", text), "an attribute was left"
    Page((tmp_path / "out" / "index.html").read_text("utf-8"))
    for path in (tmp_path / "out" / "tables").glob("*.tex"):
        assert not re.search(r"(?<!\\)[#%&_](?![^\n]*\\\\\n)", path.read_text("utf-8").replace(" & ", "")), path.name


# its folder


def test_scores_are_written_and_read_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message has the row of the file."""
    found = study({"o": ["a", "b"]}, [POS, ALIGNMENT])
    paths = [tmp_path / f"{name}.parquet" for name in ("whole", "parts", "bad")]
    write_scores(found, paths[0])
    monkeypatch.setattr(table_module, "ROWS", 5)
    write_scores(found, paths[1])
    whole, parts = map(read_scores, paths[:2])
    for one in (whole, parts):
        assert one.attrs["columns"] == found.attrs["columns"]
        assert all(map(np.array_equal, one["counts"], found["counts"]))
        assert {counts.dtype for counts in one["counts"]} == {np.dtype(np.int32)}
    pd.testing.assert_frame_equal(parts.drop(columns="counts"), whole.drop(columns="counts"))
    found.at[7, "value"] = 99.0
    write_scores(found, paths[2])
    with pytest.raises(StoreError, match="row 8 has the value 99"):
        read_scores(paths[2])


@pytest.fixture
def small() -> pd.DataFrame:
    return frame([{"seed": 1}], [ALIGNMENT])


def test_the_same_scores_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("first", "again"):
        report(study({"o": ["a", "b"]}, [replace(POS, regimes=("zs",))]), tmp_path / name)
    for path in (tmp_path / "first").rglob("*"):
        if path.is_file():
            again = tmp_path / "again" / path.relative_to(tmp_path / "first")
            assert again.read_bytes() == path.read_bytes(), path.name


def test_an_earlier_report_is_replaced_and_nothing_else(small: pd.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report(small, out)
    data = json.loads((out / "report.json").read_text("utf-8"))
    assert data["files"] == sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    (out / "tables" / "mine.csv").write_text("mine")
    with pytest.warns(DerivlangWarning, match=r"kept what is not part of the report: tables/mine\.csv"):
        report(frame([{"seed": 2}], [ALIGNMENT]), out)
    assert (out / "tables" / "mine.csv").read_text() == "mine"
    (out / "report.json").write_text(json.dumps({**data, "files": [*data["files"], "tables/mine.csv"]}))
    report(frame([{"seed": 2}], [ALIGNMENT]), out)
    assert not (out / "tables" / "mine.csv").exists()
    for name, content in (("mine", "x"), ("report.json", "[1]")):
        other = tmp_path / f"other-{name}"
        other.mkdir()
        (other / name).write_text(content)
        with pytest.raises(StoreError, match="holds something else than a report"):
            report(small, other)
        assert [path.name for path in other.iterdir()] == [name]


def test_nothing_is_half_written(small: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report(small, tmp_path / "out")
    before = (tmp_path / "out" / "index.html").read_bytes()

    def fail(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_module, "page", fail)
    for out in (tmp_path / "out", tmp_path / "new" / "out"):
        with pytest.raises(StoreError, match="No space left"):
            report(frame([{"seed": 2}], [ALIGNMENT]), out)
    assert (tmp_path / "out" / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_title_of_a_study_heads_its_part() -> None:
    one, _ = analysed(study({"t": ["a", "b"]}, [POS], title="Does order matter?"))
    assert part_of(one).title == "Does order matter?"
    one, _ = analysed(study({"t": ["a", "b"]}, [POS]))
    assert part_of(one).title == "overlap"


def test_several_studies_have_parts_and_files_of_their_own(tmp_path: Path) -> None:
    both = pd.concat([study({"o": ["a", "b"]}, [ALIGNMENT], name=name) for name in ("one", "two")], ignore_index=True)
    report(both, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "tables").glob("*heldout.csv")}
    assert names == {"one-alignment-heldout.csv", "two-alignment-heldout.csv"}
    Page((tmp_path / "out" / "index.html").read_text("utf-8"))


def test_labels_outside_ascii_have_files_of_their_own() -> None:
    tasks = [replace(ALIGNMENT, label=label) for label in ("alignment:ä.tsv", "alignment:ö.tsv")]
    part = part_of(analysed(study({"o": ["a", "b"]}, tasks))[0])
    names = [block.name for block in (*part.blocks, *part.folded)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)


@pytest.mark.parametrize("package", ["matplotlib", "scipy.stats", "jinja2"])
def test_a_missing_package_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = study({"o": ["a", "b", "c"]}, [replace(POS, regimes=("zs",)), ALIGNMENT])
    monkeypatch.setitem(sys.modules, package, None)
    name = package.partition(".")[0]
    with pytest.raises(DerivlangError, match=rf"a (report|figure) needs {name}.*\n.*derivlang\[train\]"):
        report(scores, tmp_path / "out")


# correlation


@pytest.mark.parametrize("groups", [None, "abaab"])
def test_small_permutation_tests_are_exact(groups: str | None) -> None:
    """Only points of one group are exchanged."""
    first, second, place = [1.0, 5.0, 2.0, 2.0, 9.0], [3.0, 1.0, 4.0, 2.5, 0.0], groups or "aaaaa"
    others = [
        abs(stats.spearmanr([first[i] for i in order], second).statistic)
        for order in permutations(range(5))
        if all(place[i] == place[at] for at, i in enumerate(order))
    ]
    found = correlation(first, second, groups)
    assert found["exact"] is True
    assert found["rho"] == pytest.approx(stats.spearmanr(first, second).statistic)
    assert found["p"] == pytest.approx(np.mean(np.array(others) >= abs(found["rho"]) - 1e-9))
    assert found["floor"] == pytest.approx(np.mean(np.array(others) >= max(others) - 1e-9))


def test_large_permutation_tests_are_near_the_theory() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=40)
    second = -first + rng.normal(size=40) * 3
    found, theory = correlation(first.tolist(), second.tolist()), stats.spearmanr(first, second)
    assert found["rho"] == pytest.approx(theory.statistic)
    assert found["p"] == pytest.approx(theory.pvalue, abs=0.01)
    assert found["exact"] is False
    assert found == correlation(first.tolist(), second.tolist())


@pytest.mark.parametrize(
    ("first", "second"), [([], []), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])]
)
def test_too_little_for_a_correlation(first: list[float], second: list[float]) -> None:
    found = correlation(first, second)
    assert found["n"] == len(first)
    assert np.isnan([found["rho"], found["p"], found["exact"]]).all()


def test_the_headline_of_each_measure_goes_with_each_fine_tuned_task() -> None:
    one, found = analysed(study(LEVELS, [POS, NER, LINKS, ALIGNMENT, PERPLEXITY, PICTURE, OWN], **TOLD))
    scatters = correlations_of(one, scores_of(one, found))
    names = ["links-transport", "alignment-heldout", "perplexity-perplexity", "centroids-cosine"]
    tasks = ["pos-accuracy", "ner-f1"]
    assert scatters["name"].tolist() == [f"{name}-{task}-correlation" for name in names for task in tasks]
    means = found[(found["kind"] == "mean") & (found["layer"].isna() | (found["layer"] == 2))]
    x, y = (means[(means["metric"] == metric) & (means["regime"] == regime)]["value"].tolist()
            for metric, regime in (("transport", ""), ("accuracy", "delta")))  # fmt: skip
    expected = correlation(x, y, [0, 0, 1, 1])  # objectives are exchanged within a language
    assert {name: scatters.at[0, name] for name in expected} == expected
    assert len(correlation_table(one, scatters).shown) == len(scatters)


def test_a_score_goes_with_what_explains_it() -> None:
    """All columns that name it, headline or not; in the derived language, a point for each condition."""
    one, found = analysed(study({"t": list("abcde")}, [BITS, NGRAMS], primary="perplexity.bits.derived"))
    scatters = correlations_of(one, scores_of(one, found))
    assert scatters["name"].tolist() == [f"ngrams-bits_{m}-perplexity-bits-correlation" for m in (2, 5)]
    means = found[(found["kind"] == "mean") & (found["regime"] == "derived")]
    x, y = (means[(means["task"] == task) & (means["metric"] == metric)]["value"].tolist()
            for task, metric in (("ngrams", "bits_5"), ("perplexity", "bits")))  # fmt: skip
    pearson = stats.pearsonr(x, y)
    got, interval = scatters.loc[1], pearson.confidence_interval(0.95)
    assert (got["n"], got["r"]) == (5, pytest.approx(pearson.statistic))
    assert (got["low"], got["high"]) == pytest.approx((interval.low, interval.high))
    blocks = {block.name: block for block in part_of(one).blocks}
    assert {"perplexity-bits", "perplexity-bits-derived-by-factor"} <= blocks.keys()  # not its headline
    told = f"r = {got['r']:.2f} ({got['low']:.2f} to {got['high']:.2f})"
    assert told.replace("-", "−") in blocks[got["name"]].caption
    assert "interval too narrow" in blocks["correlation"].note
