"""The report by factor: tables against means worked by hand, cells that are missing or not planned, scores.tsv."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from derivlang.core.errors import StoreError, UsageError
from derivlang.evaluation.statistics import estimate, holm
from tests.runs import run, write

pytest.importorskip("scipy.stats")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from derivlang.evaluation.report.by_factor import by_factor, contrasts, marginal_means
from derivlang.evaluation.report.cells import EMPTY, Table, decimal, score_cell, signed
from derivlang.evaluation.report.curves import curve_table, curves_of
from derivlang.evaluation.report.differences import differences_of
from derivlang.evaluation.report.factors import FactorGrid, Headline, grids_of
from derivlang.evaluation.report.figures import alignment_figures, delta_figures
from derivlang.evaluation.report.overview import overview
from derivlang.evaluation.report.reading import read_runs
from derivlang.evaluation.report.scores import ScoreKey, scores_of
from derivlang.evaluation.report.settings import settings_of
from derivlang.evaluation.report.sweeps import sweeps
from derivlang.evaluation.report.write import report

OVERLAPS, ORDERS, SEEDS = (100, 0, 25), ("<b>perm</b>", "identity"), (1, 2, 3)  # an order that no sorting gives
MISSING, NEVER = ("identity", 25), ("<b>perm</b>", 100)
CHOICES = {"baseline": {"overlap": 0}, "x": "overlap", "lines": "order"}


def aligned(order: str, overlap: int, seed: int) -> float:
    """The alignment of all rows; the held-out one is 0.8 of it in these runs."""
    return {"identity": 40.0, "<b>perm</b>": 20.0}[order] + overlap / 5 + seed


def study(
    out: Path,
    cells: list[Mapping[str, Any]],
    make: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
    choices: Mapping[str, Any] = {},
    factors: Mapping[str, Any] | None = None,
) -> Path:
    """Make a study of these cells at `out`. make: options of a cell's run, or None if it was not run."""
    out.mkdir()
    names = {".".join(str(level).strip("</b>") for level in levels.values()): levels for levels in cells}
    for name, levels in names.items():
        if (given := make(levels)) is not None:
            facts = {"factors": dict(levels), **given.get("facts", {})}
            run(out / "runs" / name, **{"seed": levels.get("seed", 1), **given, "facts": facts})  # type: ignore[arg-type]
    found: dict[str, list[Any]] = {}
    for levels in cells:
        for factor, level in levels.items():
            found[factor] = list(dict.fromkeys([*found.get(factor, ()), level]))
    planned = [{"name": name, "run": f"runs/{name}", "factors": levels} for name, levels in names.items()]
    write(out / "study.json", {"format": 1, "study": "mine", "factors": factors or found, "report": choices,
                               "cells": planned})  # fmt: skip
    return out


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Overlaps by orders by seeds. One cell was never planned, one was not run, and one lacks a seed."""
    cells = [{"order": order, "overlap": overlap, "seed": seed} for order, overlap, seed in
             product(ORDERS, OVERLAPS, SEEDS) if (order, overlap) != NEVER]  # fmt: skip

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any] | None:
        order, overlap, seed = levels["order"], levels["overlap"], levels["seed"]
        if (order, overlap) == MISSING or (order, overlap, seed) == ("identity", 100, 3):
            return None
        return {"spec": f"trans:overlap={overlap},{'inv' if order == 'identity' else 'perm'}",
                "alignment": aligned(order, overlap, seed), "rates": {"pos": (0.9, 0.4 + overlap / 400)}}  # fmt: skip

    factors = {"order": ORDERS, "overlap": OVERLAPS, "seed": SEEDS}
    return study(tmp_path_factory.mktemp("study") / "out", cells, made, CHOICES, factors)


def grid_of(*folders: Path) -> FactorGrid:
    runs = read_runs(folders)
    (found,) = grids_of(runs, scores_of(runs))
    return found


def headline(grid: FactorGrid, title: str) -> Headline:
    (found,) = [one for one in grid.headlines if one.title == title]
    return found


def texts(table: Table | None) -> dict[tuple[str, ...], list[str]]:
    assert table is not None
    return {row.labels: [cell.text for cell in row.cells] for row in table.rows}


def held_out(order: str, overlap: int, *seeds: int) -> list[float]:
    return [0.8 * aligned(order, overlap, seed) for seed in seeds]


def test_a_table_by_factor_has_means_worked_by_hand(done: Path) -> None:
    grid = grid_of(done)
    table = by_factor(grid, headline(grid, "Held-out alignment"))
    assert (grid.x, grid.lines, table.title) == ("overlap", "order", "Held-out alignment by overlap and order")
    assert table.columns == (("held-out", ORDERS),)
    # 0.8 * (20 + overlap / 5 + 2) and 0.8 * (40 + overlap / 5 + 2): 17.6, 33.6; 21.6; and seeds 1 and 2 of 100
    assert texts(table) == {("100",): ["", "49.2"], ("0",): ["17.6", "33.6"], ("25",): ["21.6", EMPTY]}
    assert [row.labels[0] for row in table.rows] == ["100", "0", "25"]
    cells = {(row.labels[0], one): cell for row in table.rows for one, cell in zip(ORDERS, row.cells, strict=True)}
    assert cells["100", "identity"].note == "48.8, 49.6, n=2 of 3"
    assert cells["100", "<b>perm</b>"].title == "not planned"
    found = estimate(held_out("<b>perm</b>", 0, *SEEDS))
    assert found.low is not None
    assert found.high is not None
    assert cells["0", "<b>perm</b>"].note == f"{decimal(found.low)}–{decimal(found.high)}, n=3"


def test_a_fine_tuned_score_is_that_of_the_other_tables(done: Path, tmp_path: Path) -> None:
    """With the same interval, over seeds and documents; a file of counts that is missing is named."""
    shutil.copytree(done, tmp_path / "out")
    for broken in (False, True):
        if broken:
            (tmp_path / "out" / "runs" / "identity.0.2" / "evaluation" / "pos.zs.1.npz").unlink()
        grid = grid_of(tmp_path / "out")
        pos = headline(grid, "POS accuracy")
        (cell,) = [cell for row in by_factor(grid, pos).rows if row.labels == ("0",) for cell in row.cells[3:4]]
        (setting,) = settings_of(read_runs([tmp_path / "out"]))
        (entry,) = [entry for entry in setting.entries if entry.language.spec == "trans,inv"]
        assert pos.column is not None
        other = score_cell(entry, pos.column, "zs")
        assert (cell.text, cell.note) == (other.text, other.note)
        assert ("the counts of R" in cell.note) is broken


def test_marginal_means_are_of_the_conditions_that_all_levels_have(done: Path) -> None:
    grid = grid_of(done)
    rows = texts(marginal_means(grid, headline(grid, "Held-out alignment")))
    # every overlap: under no order, as one lacks 25, the other 100. Every order: with 0 alone
    assert rows == {("order", "<b>perm</b>"): ["17.6", "1"], ("order", "identity"): ["33.6", "1"]}


def test_marginal_means_weigh_conditions_alike(tmp_path: Path) -> None:
    cells = [{"lr": lr, "size": size, "seed": seed} for lr, size, seed in product((1e-2, 1e-3), (1, 2), SEEDS)]
    out = study(tmp_path / "out", cells, lambda c: {"alignment": 10 * c["size"] + 1000 * c["lr"] + c["seed"]},
                {"baseline": {"size": 1}})  # fmt: skip
    grid = grid_of(out)
    rows = texts(marginal_means(grid, headline(grid, "Held-out alignment")))
    # 0.8 * (10 size + 1000 lr + 2): of lr 0.01 the mean of 17.6 and 25.6, of lr 0.001 that of 10.4 and 18.4
    assert rows == {
        ("size", "1"): ["14.0", "2"], ("size", "2"): ["22.0", "2"], ("lr", "0.01"): ["21.6", "2"],
        ("lr", "0.001"): ["14.4", "2"],
    }  # fmt: skip
    assert (grid.x, grid.lines) == ("size", "lr")  # without x, the first factor with a baseline


@pytest.mark.parametrize(
    ("choices", "axes"),
    [
        ({}, ("lr", "size")),
        ({"lines": "lr"}, ("size", "lr")),
        ({"lines": "lr", "baseline": {"lr": 0.01, "size": 1}}, ("size", "lr")),
        ({"lines": "size", "baseline": {"size": 1}}, ("lr", "size")),
        ({"x": "size"}, ("size", "lr")),
    ],
)
def test_the_factor_of_the_lines_makes_no_rows(
    choices: Mapping[str, Any], axes: tuple[str, str], tmp_path: Path
) -> None:
    cells = [{"lr": lr, "size": size, "seed": seed} for lr, size, seed in product((1e-2, 1e-3), (1, 2), SEEDS)]
    grid = grid_of(study(tmp_path / "out", cells, lambda c: {"alignment": 10.0 + c["seed"]}, choices))
    assert (grid.x, grid.lines) == axes


def test_contrasts_with_the_baseline_are_paired_by_seed(done: Path) -> None:
    grid = grid_of(done)
    one = headline(grid, "Held-out alignment")
    table = contrasts(grid, one)
    # 0.8 * 100 / 5 = 16 of seeds 1 and 2; 0.8 * 25 / 5 = 4; identity has no 25, and perm plans no 100
    assert texts(table) == {
        ("overlap", "100 − 0", "order identity"): ["+16.0", EMPTY],
        ("overlap", "25 − 0", "order <b>perm</b>"): ["+4.0", "< 0.001"],
        ("overlap", "25 − 0", "order identity"): [EMPTY, EMPTY],
    }
    pos = headline(grid, "POS accuracy")
    raw, shown = [], []
    for level, order in (("100", "identity"), ("25", "<b>perm</b>")):
        for key, _ in pos.regimes:
            runs = [grid.scored((name, order), key) for name in (level, "0")]
            both = [seed for seed in runs[0] if seed in runs[1]]
            values = [grid.values[runs[0][s].id, key] - grid.values[runs[1][s].id, key] for s in both]
            found = grid.contrast([("0", order)], "overlap", level, pos, key)
            assert found is not None
            assert (found.n, found.mean) == (len(both), pytest.approx(mean(values)))
            raw += [found.p] if found.p is not None else []
            shown.append(signed(found.mean))
    rows = [cells for cells in texts(contrasts(grid, pos)).values() if cells[0] != EMPTY]
    assert [text for cells in rows for text in cells[::2]] == shown
    corrected = ["< 0.001" if p < 0.001 else f"{p:.3f}" for p in holm(raw)]
    assert [text for cells in rows for text in cells[1::2] if text != EMPTY] == corrected
    assert len(corrected) == 3


def test_a_contrast_over_conditions_is_the_mean_of_theirs(tmp_path: Path) -> None:
    cells = [{"size": size, "deep": deep, "seed": seed} for size, deep, seed in product((1, 2), (True, False), SEEDS)]
    out = study(tmp_path / "out", cells,
                lambda c: {"alignment": 10 * c["size"] * (1 + c["deep"]) + (c["seed"] - 2) ** 2 * c["size"]},
                {"baseline": {"size": 1, "deep": False}})  # fmt: skip
    grid = grid_of(out)
    rows = texts(contrasts(grid, headline(grid, "Held-out alignment")))
    assert rows["size", "2 − 1", "deep true"][0] == "+16.5"  # 0.8 * (20 + 2 / 3)
    assert rows["size", "2 − 1", "deep false"][0] == "+8.5"  # 0.8 * (10 + 2 / 3)
    assert rows["size", "2 − 1", "mean of 2 conditions"][0] == "+12.5"
    assert rows["deep", "true − false", "mean of 2 conditions"][0] == "+12.0"


def test_the_report_of_a_study(done: Path, tmp_path: Path) -> None:
    result = report([done], tmp_path / "out")
    assert result["runs"] == 11
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "<b>" not in text
    assert "&lt;b&gt;perm&lt;/b&gt;" in text
    assert "mine: by factor" in text
    assert 'class="paper"' not in text
    names = {path.name for path in (tmp_path / "out" / "figures").iterdir()}
    assert {"factor-pos-accuracy-zs.svg", "factor-pos-accuracy-delta.png", "factor-alignment.png"} < names
    svg = (tmp_path / "out" / "figures" / "factor-alignment.svg").read_text("utf-8")
    assert "order &lt;b&gt;perm&lt;/b&gt;" in svg
    assert "| 100 |  | 49.2 (48.8, 49.6, n=2 of 3) |" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_the_runs_of_a_study_know_it(done: Path) -> None:
    whole, some = grid_of(done), grid_of(*sorted((done / "runs").iterdir()))
    assert (whole.planned, whole.levels) == (some.planned, some.levels)
    assert {c: set(runs) for c, runs in whole.cells.items()} == {c: set(runs) for c, runs in some.cells.items()}


def test_runs_may_lie_elsewhere(tmp_path: Path) -> None:
    out = study(tmp_path / "out", [{"size": 1}, {"size": 2}], lambda c: {})
    (out / "runs").rename(tmp_path / "disk")
    (out / "runs").symlink_to(tmp_path / "disk", target_is_directory=True)
    (tmp_path / "link").symlink_to(out, target_is_directory=True)
    assert grid_of(tmp_path / "link").plan.name == grid_of(out / "runs").plan.name == "mine"


def test_scores_are_a_tidy_table(done: Path, tmp_path: Path) -> None:
    report([done], tmp_path / "out")
    with (tmp_path / "out" / "scores.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    runs = {one.id: one for one in read_runs([done])}
    keys = [(row["run"], row["task"], row["metric"], row["regime"], row["part"]) for row in rows]
    assert len(keys) == len(set(keys))
    assert {row["run"] for row in rows} == set(runs)
    for row in rows:
        one = runs[row["run"]]
        assert (row["factor.order"], row["factor.overlap"], row["factor.seed"]) == tuple(one.levels.values())
        assert (row["seed"], row["objective"], row["spec"]) == (str(one.seed), "mlm", one.facts["spec"])
        if (row["task"], row["metric"]) == ("alignment", "heldout"):
            assert float(row["value"]) == one.alignment("heldout")
    assert {row["regime"] for row in rows if row["task"] == "pos"} == {
        "sup", "zs", "delta", "oracle", "dev-sup", "dev-zs", "dev-delta",
    }  # fmt: skip
    assert {(row["task"], row["part"]) for row in rows if row["part"]} == {("contextual", str(n)) for n in range(3)}


def test_runs_without_a_study_have_tables_by_their_factors(tmp_path: Path) -> None:
    for size in (100, 20):
        run(tmp_path / f"run-{size}", alignment=size / 2, facts={"factors": {"size": size}})
    grid = grid_of(tmp_path)
    assert texts(by_factor(grid, headline(grid, "Held-out alignment"))) == {("20",): ["8.0"], ("100",): ["40.0"]}
    run(tmp_path / "again", alignment=1, facts={"factors": {"size": 20}})
    with pytest.raises(StoreError, match=r"again, .*run-20: two runs have the same factors and the same seed"):
        grid_of(tmp_path)


def test_factors_that_follow_from_others_make_no_condition(tmp_path: Path) -> None:
    """A factor with one level, the second list of a [[zip]]; and a label that only some cells have does make one."""
    cells: list[Mapping[str, Any]] = [{"text": "a", "size": size, "script": f"s{size}", "number": seed}
                                      for size, seed in product((1, 2), (1, 2))]  # fmt: skip
    cells.append({"text": "a", "size": 1, "script": "s1", "length": "long", "number": 1})
    out = study(tmp_path / "out", cells, lambda c: {"seed": c["number"], "alignment": 10 * c["size"]})
    grid = grid_of(out)
    assert (grid.factors, grid.follow) == (("size", "length"), ("text", "script"))
    assert grid.levels["length"] == ("none", "long")
    assert texts(by_factor(grid, headline(grid, "Held-out alignment"))) == {
        ("1",): ["8.0", "8.0"],
        ("2",): ["16.0", ""],
    }
    assert set(grid.cells["1", "none"]) == {"1", "2"}


def test_a_factor_that_moves_with_the_seed_makes_no_condition(tmp_path: Path) -> None:
    cells = [{"size": size, "dict": 10 + seed, "seed": seed} for size, seed in product((1, 2), SEEDS)]
    out = study(tmp_path / "out", cells, lambda c: {"seed": c["seed"], "alignment": 10 * c["size"] + c["seed"]})
    grid = grid_of(out)
    assert (grid.factors, grid.follow) == (("size",), ("dict",))
    assert set(grid.planned.values()) == {3}
    # each seed of its own: the sizes are compared all the same
    cells = [{"size": seed, "seed": seed} for seed in SEEDS]
    assert grid_of(study(tmp_path / "one", cells, lambda c: {"seed": c["seed"], "alignment": 1})).factors == ("size",)


def test_a_level_that_the_list_of_an_earlier_version_lacks(tmp_path: Path) -> None:
    cells = [{"w": w, "seed": seed} for w, seed in product((0, 30, 0.0), (1, 2))]
    choices, factors = {"baseline": {"w": 30}}, {"w": [0, 30], "seed": [1, 2]}
    out = study(tmp_path / "out", cells, lambda c: {"seed": c["seed"], "alignment": 10}, choices, factors)
    assert grid_of(out).levels["w"] == ("0", "30", "0.0")
    report([out], tmp_path / "report")


def test_a_run_of_a_study_from_the_folder_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = study(tmp_path / "out", [{"size": size, "seed": 1} for size in (1, 2)], lambda c: {"alignment": 10})
    monkeypatch.chdir(out / "runs" / "1.1")
    for folders in ([Path("../2.1"), Path("../1.1")], [Path("../..")]):
        assert grid_of(*folders).plan.folder == out


def test_one_condition_has_no_tables_by_factor(tmp_path: Path) -> None:
    out = study(tmp_path / "out", [{"size": 1, "seed": seed} for seed in SEEDS], lambda c: {})
    runs = read_runs([out])
    assert grids_of(runs, scores_of(runs)) == []


def test_other_test_sentences_have_no_interval_and_are_no_error(tmp_path: Path) -> None:
    """A factor of [evaluate] may change the test set."""
    cells = [{"examples": n, "seed": seed} for n, seed in product((10, 20), SEEDS)]
    out = study(tmp_path / "out", cells, lambda c: {"test": c["examples"]}, {"baseline": {"examples": 10}})
    for folder in (out / "runs").glob("20.*"):
        told = json.loads((folder / "evaluation.json").read_text("utf-8"))
        (folder / "evaluation" / "pos.documents.npz").unlink()
        told["tasks"]["pos"]["test"]["unit"] = "sentence"
        write(folder / "evaluation.json", told)
    grid = grid_of(out)
    pos = headline(grid, "POS accuracy")
    found = grid.contrast([("10",)], "examples", "20", pos, pos.regimes[1][0])
    assert found is not None
    assert (found.low, found.p, found.why) == (None, None, "other test sentences")
    assert report([out], tmp_path / "report")["settings"] == 2


# learning curves


def with_checkpoints(folder: Path, *steps: int, alignment: float = 1.0) -> Path:
    """A run whose checkpoints were evaluated; the held-out alignment at a step is `alignment` times the step."""
    found = json.loads((folder / "evaluation.json").read_text("utf-8"))
    for step in steps:
        told = found | {"signature": found["signature"] | {"steps": step}, "alignment": {"heldout": alignment * step}}
        del told["tasks"]
        write(folder / "evaluation" / f"step-{step:08}.json", told)
    return folder


def test_learning_curves(tmp_path: Path) -> None:
    for seed, steps in ((1, (2, 4, 10)), (2, (2, 10))):
        with_checkpoints(run(tmp_path / f"mlm-{seed}", seed=seed), *steps, alignment=seed)
    with_checkpoints(run(tmp_path / "align", objective="align-mlm"), 10)
    run(tmp_path / "xlm", objective="xlm")
    (setting,) = settings_of(read_runs([tmp_path]))
    table = curve_table(setting, curves_of(setting))
    assert table is not None
    assert table.columns[0][1][0] == "Held-out alignment, held-out"
    first = {labels: cells[0] for labels, cells in texts(table).items()}
    language = "trans,inv"
    assert first == {
        ("MLM", language, "2"): "3.0",
        ("MLM", language, "10"): "15.0",
        ("ALIGN-MLM", language, "10"): "10.0",
    }
    report([tmp_path], tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "curve-alignment.svg").exists()
    assert "### Learning curves" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_an_evaluation_of_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    folder = with_checkpoints(run(tmp_path / "a"), 2)
    path = folder / "evaluation" / "step-00000002.json"
    found = json.loads(path.read_text("utf-8"))
    write(path, found | {"signature": found["signature"] | {"fingerprint": "0" * 16}})
    with pytest.raises(StoreError, match=r"step-00000002\.json: is of 0{16}, but the run is .* \[stale-evaluation\]"):
        read_runs([tmp_path])
    path.write_text("[]")
    with pytest.raises(StoreError, match=r"step-00000002\.json: this is not a valid evaluation of a checkpoint"):
        read_runs([tmp_path])


# where the paper's numbers stand


@pytest.mark.parametrize(
    ("given", "published"),
    [
        ({}, True),
        ({"objective": "checkpoint"}, False),
        ({"spec": "trans,perm"}, False),
        ({"objective": "align-mlm", "facts": {"factors": {"t": "trans,inv", "objective": "align-mlm"}}}, True),
        ({"facts": {"factors": {"overlap": 1}}}, False),
    ],
)
def test_the_papers_numbers_stand_where_they_apply(given: dict[str, Any], published: bool, tmp_path: Path) -> None:
    """`overlap` has two levels here, those of t and objective do not count."""
    run(tmp_path / "a", **given)
    if "overlap" in given.get("facts", {}).get("factors", {}):
        run(tmp_path / "b", facts={"factors": {"overlap": 2}}, spec="trans:overlap=2,inv")
    (found,) = settings_of(read_runs([tmp_path]))
    assert found.published is published
    report([tmp_path], tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert ("| paper |" in text) is ("“paper”" in text) is ("Table 3 of the paper" in text) is published
    assert "XNLI" not in text  # the run has no such task


# bad input


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.update(format=2), "format 2"),
        (lambda d: d.update(cells=3), "cells is 3"),
        (lambda d: d["cells"][0].update(run="/elsewhere"), "a cell has the path"),
        (lambda d: d["cells"][0].update(run="../elsewhere"), "a cell has the path"),
        (lambda d: d["cells"][0].update(run="runs/" + 300 * "x"), "a cell has the path"),
        (lambda d: d["cells"].append({"run": "runs/x"}), "factors is missing"),
        (lambda d: d["cells"][0]["factors"].update(other=1), 'the factor "other"'),
        (lambda d: d["cells"][0]["factors"].update(order="unknown"), '"unknown" of order'),
        (lambda d: d["factors"].update(order=[[]]), "not a level"),
        (lambda d: d["report"].update(baseline={"overlap": None}), "not a level"),
        (lambda d: d["report"].update(x=1), "x is 1"),
    ],
)
def test_a_damaged_study_is_refused(
    change: Callable[[dict[str, Any]], None], told: str, done: Path, tmp_path: Path
) -> None:
    found = json.loads((done / "study.json").read_text("utf-8"))
    change(found)
    write(tmp_path / "study.json", found)
    with pytest.raises(StoreError, match=rf"study\.json: .*{told}"):
        report([tmp_path], tmp_path / "out")


def test_a_run_with_other_levels_than_its_study_is_refused(tmp_path: Path) -> None:
    out = study(tmp_path / "out", [{"size": 1}, {"size": 2}], lambda c: {})
    facts = json.loads((out / "runs" / "1" / "run.json").read_text("utf-8"))
    write(out / "runs" / "1" / "run.json", {**facts, "factors": {"size": 3}})
    with pytest.raises(StoreError, match=r"runs/1.*: has other factors than study\.json"):
        report([out], tmp_path / "report")


def test_a_study_of_which_nothing_was_run(tmp_path: Path) -> None:
    out = study(tmp_path / "out", [{"size": 1}, {"size": 2}], lambda c: None)
    with pytest.raises(UsageError, match="no cell of the study has been run"):
        report([out], tmp_path / "report")


def test_keys_of_the_tidy_table_are_unique(done: Path) -> None:
    rows = scores_of(read_runs([done]))
    assert len({(row.run.id, row.key) for row in rows}) == len(rows)
    assert ScoreKey("perplexity", "perplexity", "derived") in {row.key for row in rows}


def test_bits_of_a_causal_model_are_in_the_tidy_table(tmp_path: Path) -> None:
    out = study(tmp_path / "out", [{"size": 1}, {"size": 2}], lambda c: {})
    path = out / "runs" / "1" / "evaluation.json"
    evaluation = json.loads(path.read_text("utf-8"))
    evaluation["perplexity"] |= {"source_bits": 9.5, "derived_bits": 10.5, "words": 7}
    write(path, {**evaluation, "surprisal": {"source": 90.0, "derived": 99.0, "words": 7, "sentences": 2}})
    rows = [
        (row.key.task, row.key.regime, row.value) for row in scores_of(read_runs([out])) if row.key.metric == "bits"
    ]
    assert sorted(rows) == [
        ("perplexity", "derived", 10.5), ("perplexity", "source", 9.5),
        ("surprisal", "derived", 99.0), ("surprisal", "source", 90.0),
    ]  # fmt: skip
    write(path, {**evaluation, "surprisal": {"source": "many"}})
    with pytest.raises(StoreError, match=r"surprisal\.source is .many., not a number"):
        read_runs([out])


def sized(out: Path, **facts: Any) -> Path:
    """A study of two sizes that rows do not name, by two objectives and two seeds."""
    cells = [{"size": size, "objective": objective, "seed": seed} for size, objective, seed in
             product((1, 2), ("mlm", "xlm"), (1, 2))]  # fmt: skip

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
        found = {"settings": {"width": levels["size"], "mask": 0.3}, **facts}
        return {"objective": levels["objective"], "alignment": 0.0, "facts": found}

    return study(out, cells, made, {"baseline": {"size": 1}})


def test_rows_of_a_study_name_the_options_that_differ(tmp_path: Path) -> None:
    (setting,) = settings_of(read_runs([sized(tmp_path / "out")]))
    assert "mask 0.3" in setting.notes
    assert not any("width" in note for note in setting.notes)
    assert [entry.label for entry in setting.entries] == [
        "MLM, width 1",
        "MLM, width 2",
        "XLM, width 1",
        "XLM, width 2",
    ]
    pairs = {(one.entry.label, one.base.label) for one in differences_of(setting)}
    assert pairs == {("XLM, width 1", "MLM, width 1"), ("XLM, width 2", "MLM, width 2")}


@pytest.mark.parametrize(
    ("factor", "objective", "named"), [("dict-coverage", "align-mlm", "dictionary"), ("parallel", "xlm", "parallel")]
)
def test_differences_are_of_one_level_where_an_objective_has_it_in_its_name(
    factor: str, objective: str, named: str, tmp_path: Path
) -> None:
    cells = [{"objective": name, factor: level, "seed": seed} for name, level, seed in
             product(("mlm", objective), (25, 50), (1, 2, 3))]  # fmt: skip

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
        level = levels[factor]
        found = {"parallel": level} if factor == "parallel" else {"dictionary": {"coverage": level, "by": "random"}}
        return {"objective": levels["objective"], "facts": found}

    (setting,) = settings_of(read_runs([study(tmp_path / "out", cells, made)]))
    found = [one for one in differences_of(setting) if one.from_base]
    name = objective.upper()
    assert {(one.entry.label, one.base.label) for one in found} == {
        (name, f"MLM, {factor} 25"),
        (f"{name}, {named} 50 %", f"MLM, {factor} 50"),
    }
    assert all(set(one.by_seed) == {1, 2, 3} for one in found)


def test_dictionaries_that_are_no_factor_of_a_study_do_not_divide_its_rows(tmp_path: Path) -> None:
    cells = [{"objective": objective, "seed": seed} for objective, seed in product(("mlm", "align-mlm"), (1, 2, 3))]

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
        dictionary = {"coverage": 25, "by": "random", "seed": 1, "sha256": f"{levels['seed']:064}"}
        return {"objective": levels["objective"], "facts": {"dictionary": dictionary}}

    (setting,) = settings_of(read_runs([study(tmp_path / "out", cells, made)]))
    assert [(entry.label, len(entry.runs)) for entry in setting.entries] == [("MLM", 3), ("ALIGN-MLM", 3)]


def test_settings_that_follow_from_the_objective_are_told_once(tmp_path: Path) -> None:
    cells = [{"objective": objective, "seed": seed} for objective, seed in product(("mlm", "xlm"), (1, 2))]

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = {"mlm": 16, "xlm": 32}[levels["objective"]]
        facts = {"settings": {"batch_size": rows}, "seed": levels["seed"], "batch_size": rows, "seq_len": 8}
        return {"objective": levels["objective"], "alignment": 0.0, "facts": facts}

    (setting,) = settings_of(read_runs([study(tmp_path / "out", cells, made)]))
    assert "batch_size 16 (MLM) or 32 (XLM)" in setting.notes
    assert [(entry.label, len(entry.runs)) for entry in setting.entries] == [("MLM", 2), ("XLM", 2)]
    assert {(one.entry.label, one.base.label) for one in differences_of(setting)} == {("XLM", "MLM")}


def test_runs_that_differ_in_a_factor_alone_are_named_by_its_level(tmp_path: Path) -> None:
    cells = [{"objective": "mlm", **level, "seed": seed} for level, seed in product(({}, {"from": "early"}), (1, 2))]

    def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"objective": "mlm", "alignment": 0.0, "facts": {"settings": {"mask": 0.3}, "seed": levels["seed"]}}

    (setting,) = settings_of(read_runs([study(tmp_path / "out", cells, made)]))
    assert [(entry.label, len(entry.runs)) for entry in setting.entries] == [("MLM", 2), ("MLM, from early", 2)]


def test_fine_tuning_that_differs_in_a_study_is_named_too(tmp_path: Path) -> None:
    out = sized(tmp_path / "out")
    for path in out.glob("runs/*/evaluation.json"):
        found = json.loads(path.read_text("utf-8"))
        found["tasks"]["pos"]["settings"]["lr"] = 1e-3 if path.parent.name.startswith("1") else 1e-4
        write(path, found)
    (setting,) = settings_of(read_runs([out]))
    assert setting.entries[0].label == "MLM, width 1, pos lr 0.001"
    assert any(note.startswith("pos: source") and "lr" not in note for note in setting.notes)


def test_studies_that_share_runs_have_them_in_the_tables_of_each(tmp_path: Path) -> None:
    for name, other in (("a", "align-mlm"), ("b", "xlm")):
        cells = [{"objective": objective, "seed": seed} for objective, seed in product(("mlm", other), (1, 2))]

        def made(levels: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"objective": levels["objective"], "facts": {"weights": f"{levels['seed']:016}"}}

        study(tmp_path / name, cells, made)
    found = settings_of(read_runs([tmp_path / "a", tmp_path / "b"]))
    labels = [[(entry.label, len(entry.runs)) for entry in setting.entries] for setting in found]
    assert labels == [[("MLM", 2), ("ALIGN-MLM", 2)], [("MLM", 2), ("XLM", 2)]]
    assert all(differences_of(setting) for setting in found)
    report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert "left out" not in runs_of(tmp_path / "out" / "report.md")
    runs = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["runs"]
    assert all(run["left_out_for"] is None for run in runs)
    assert sum(run["same_as"] is not None for run in runs) == 2


def runs_of(page: Path) -> str:
    """The list of runs in report.md."""
    return page.read_text("utf-8").rpartition("## Runs")[2]


def test_two_seeds_give_their_values_in_every_table_by_factor(tmp_path: Path) -> None:
    grid = grid_of(sized(tmp_path / "out"))
    pos = headline(grid, "POS accuracy")
    for table in (by_factor(grid, pos), marginal_means(grid, pos), contrasts(grid, pos)):
        assert table is not None
        notes = [cell.note for row in table.rows for cell in row.cells if cell.note]
        assert notes
        assert all(re.fullmatch(r"\S+, \S+, n=2", note) for note in notes)


def test_a_figure_whose_points_lie_above_each_other_says_so(tmp_path: Path) -> None:
    (setting,) = settings_of(read_runs([sized(tmp_path / "out")]))
    figures = {figure.name: figure for figure in alignment_figures(setting, "")}
    assert figures["alignment-pos-accuracy"].title.endswith(": 0.0 in every row")
    assert "held-out alignment, %: 0.0 in every row" in figures["alignment-pos-accuracy"].svg


def test_rows_that_a_study_plans_stand_in_the_papers_table(tmp_path: Path) -> None:
    cells = [{"objective": objective, "t": t} for objective in ("mlm", "xlm") for t in ("trans,inv", "trans")]
    made = {"objective": "mlm", "spec": "trans,inv"}
    out = study(tmp_path / "out", cells, lambda c: made if c == {"objective": "mlm", "t": "trans,inv"} else None)
    (setting,) = settings_of(read_runs([out]))
    table = overview(setting)
    assert table is not None
    shown = {row.labels[:2] for row in table.rows if row.labels[2] == "here"} - {("Chance", "")}
    assert shown == {("MLM", "trans"), ("MLM", "trans,inv"), ("XLM", "trans"), ("XLM", "trans,inv")}


def test_a_planned_language_of_another_script_is_named(tmp_path: Path) -> None:
    cells = [{"objective": "mlm", "t": t} for t in ("trans,inv", "trans:copy,inv", "trans:georgian,inv")]
    out = study(tmp_path / "out", cells, lambda c: {"spec": "trans,inv"} if c["t"] == "trans,inv" else None)
    (setting,) = settings_of(read_runs([out]))
    labels = [row.labels for row in overview(setting).rows if row.labels[0] == "MLM"]
    assert labels == [("MLM", "trans,inv", "here"), ("MLM", "trans,inv", "paper"), ("MLM", "trans:copy,inv", "here")]


def test_sweeps_have_every_option_of_a_size(tmp_path: Path) -> None:
    levels = product((25, 100), (25, 50))
    cells = [{"objective": "xlm", "parallel": parallel, "dict-coverage": coverage} for parallel, coverage in levels]
    out = study(tmp_path / "out", cells, lambda c: {"objective": "xlm", "facts": {"parallel": c["parallel"]}})
    (setting,) = settings_of(read_runs([out]))
    (table,) = sweeps(setting)
    sizes = [f"{parallel} %, dict-coverage {coverage}" for parallel, coverage in product((25, 100), (25, 50))]
    assert [row.labels[1] for row in table.rows] == [*sizes[:2], "25 %", *sizes[2:], "100 %"]


def test_mixed_fine_tuning_is_in_all_tables(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", rates={"xnli": (0.8, 0.5)}, spec="perm")
    found = json.loads((folder / "evaluation.json").read_text("utf-8"))
    found["tasks"]["xnli"]["cs"] = found["tasks"]["xnli"]["sup"]
    write(folder / "evaluation.json", found)
    for path in (folder / "evaluation").glob("*.sup.*"):
        shutil.copy(path, path.with_name(path.name.replace(".sup.", ".cs.")))
    runs = read_runs([folder])
    (setting,) = settings_of(runs)
    table = overview(setting)
    assert table is not None
    assert table.columns[0] == ("XNLI accuracy", ("SUP", "ZS", "Δ", "CS"))
    assert table.rows[0].cells[3].text == table.rows[0].cells[0].text != EMPTY
    assert "CS: fine-tuned on pairs" in table.note
    assert ("xnli", "accuracy", "cs") in {(row.key.task, row.key.metric, row.key.regime) for row in scores_of(runs)}
    report([folder], tmp_path / "report")
    data = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert set(data["settings"][0]["entries"][0]["means"]["xnli"]["accuracy"]) == {"sup", "zs", "delta", "cs"}


def test_bars_without_height_say_so(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / str(seed), seed=seed, rates={"pos": (0.5, 0.5)}, spec="perm")
    (setting,) = settings_of(read_runs([tmp_path]))
    (figure,) = delta_figures(setting, "")
    assert figure.title == "Bars of Δ by language and objective: POS accuracy: 0.0 in every row"
