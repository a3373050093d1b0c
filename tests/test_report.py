"""The report over runs: the published numbers, what may share a table, statistics, the page, bad input."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import permutations
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from derivlang.core.errors import DataError, DerivlangError, StoreError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.core.seal import sealed
from derivlang.evaluation.resample import by_document, replicates
from derivlang.evaluation.statistics import holm
from derivlang.evaluation.tasks.registry import find_task, task_of
from derivlang.training.objectives.registry import OBJECTIVES
from tests import commands
from tests.commands import cut_off
from tests.runs import DOCUMENTS, SEEDS, run, runs, seal, write

stats = pytest.importorskip("scipy.stats")
pytest.importorskip("matplotlib")

from derivlang.evaluation.report import listings, published  # noqa: E402
from derivlang.evaluation.report import write as report_module  # noqa: E402
from derivlang.evaluation.report.cells import EMPTY, Row, Table  # noqa: E402
from derivlang.evaluation.report.columns import Column, columns  # noqa: E402
from derivlang.evaluation.report.correlation import spearman  # noqa: E402
from derivlang.evaluation.report.differences import differences_of  # noqa: E402
from derivlang.evaluation.report.estimates import mean_of  # noqa: E402
from derivlang.evaluation.report.figures import _main, _styles, alignment_figures, delta_figures  # noqa: E402
from derivlang.evaluation.report.listings import inside  # noqa: E402
from derivlang.evaluation.report.overview import (  # noqa: E402
    alignment,
    correlations,
    dev_overview,
    epoch_choice,
    overview,
)  # fmt: skip
from derivlang.evaluation.report.page import _template  # noqa: E402
from derivlang.evaluation.report.reading import read_runs  # noqa: E402
from derivlang.evaluation.report.scores import scores_of  # noqa: E402
from derivlang.evaluation.report.settings import Setting, copies_of, settings_of  # noqa: E402
from derivlang.evaluation.report.sweeps import sweeps  # noqa: E402
from derivlang.evaluation.report.variants import Language, Variant  # noqa: E402
from derivlang.evaluation.report.write import report  # noqa: E402


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs(tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three objectives with three pre-training seeds."""
    folder = tmp_path_factory.mktemp("studied")
    for objective, zs in (("mlm", 0.5), ("xlm", 0.6), ("align-mlm", 0.7)):
        for seed in (1, 2, 3):
            run(folder / f"{objective}-{seed}", objective=objective, seed=seed, rates={"pos": (0.9, zs + seed / 99)})
    return folder


@pytest.fixture(scope="module")
def written(grid: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    report([grid], out)
    return out


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one figure."""
    return run(tmp_path_factory.mktemp("one") / "run", rates={"xnli": (0.8, 0.6)})


def setting(*folders: Path) -> Setting:
    (found,) = settings_of(read_runs(folders))
    return found


def row(table: Table, *labels: str) -> Row:
    (found,) = [one for one in table.rows if one.labels == labels]
    return found


def texts(table: Table, *labels: str) -> list[str]:
    return [cell.text for cell in row(table, *labels).cells]


# the published numbers


def test_published_differences_are_those_of_their_scores() -> None:
    lines = [*published.TABLE_3.values(), *published.BY_PARALLEL.values(), *published.BY_OVERLAP.values()]
    assert len(lines) == 12 + 4 + 3
    for line in lines:
        for sup, zs, delta in line.values():
            assert sup is not None
            assert zs is not None
            assert delta == pytest.approx(sup - zs, abs=0.11)


def test_published_tables_agree_where_they_overlap() -> None:
    assert published.BY_PARALLEL[25] == published.BY_OVERLAP[0] == published.TABLE_3["xlm", published.INV]
    for (objective, spec), by in published.BY_DICTIONARY.items():
        whole = published.TABLE_3[objective, spec]
        assert {task: delta for task, (_, _, delta) in by[25].items()} == {t: d for t, (_, _, d) in whole.items()}
    assert set(published.ALIGNMENT) == set(published.TABLE_3)


def test_the_published_correlations() -> None:
    """The paper prints 0.727, 0.781 and 0.734, without the sign, and p < .01."""
    for task, rho in (("xnli", -0.727), ("ner", -0.781), ("pos", -0.734)):
        keys = list(published.TABLE_3)
        found = spearman([published.ALIGNMENT[k] for k in keys], [published.TABLE_3[k][task][2] for k in keys])
        assert found.n == 12
        assert found.rho == pytest.approx(rho, abs=5e-4)
        assert found.p is not None
        assert found.p < 0.02


# correlation


def test_small_permutation_tests_are_exact() -> None:
    first, second = [1.0, 5.0, 2.0, 2.0, 9.0], [3.0, 1.0, 4.0, 2.5, 0.0]
    found = spearman(first, second)
    rho = stats.spearmanr(first, second).statistic
    others = [stats.spearmanr(order, second).statistic for order in permutations(first)]
    assert found.rho == pytest.approx(rho)
    assert found.exact
    assert found.p == pytest.approx(np.mean([abs(other) >= abs(rho) - 1e-9 for other in others]))
    assert spearman([1, 2, 3, 4], [1, 2, 3, 4]).p == pytest.approx(2 / 24)


def test_only_points_of_one_language_are_exchanged() -> None:
    first, second, groups = [1.0, 5.0, 2.0, 7.0, 9.0], [3.0, 1.0, 4.0, 2.5, 0.0], "abaab"
    found = spearman(first, second, groups)
    others = []
    for a in permutations((0, 2, 3)):
        for b in permutations((1, 4)):
            order = [a[0], b[0], a[1], a[2], b[1]]
            others.append(abs(stats.spearmanr(first, [second[i] for i in order]).statistic))
    assert found.exact
    assert found.rho == stats.spearmanr(first, second).statistic
    assert found.p == pytest.approx(np.mean(np.array(others) >= abs(found.rho) - 1e-9))
    assert found.floor == pytest.approx(np.mean(np.array(others) >= max(others) - 1e-9))
    assert found.p >= found.floor


def test_the_floor_of_p() -> None:
    assert spearman([1, 2, 3, 4], [5, 6, 7, 9]).floor == pytest.approx(2 / 24)
    assert spearman([1, 2, 3], [5, 6, 7], "abc").p == spearman([1, 2, 3], [5, 6, 7], "abc").floor == 1
    many = spearman(list(range(40)), list(range(40)), [0, 1] * 20)
    assert (many.exact, many.p, many.floor) == (False, 1 / 10_001, 1 / 10_001)


def test_large_permutation_tests_are_near_the_theory() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=40)
    second = -first + rng.normal(size=40) * 3
    found, theory = spearman(first.tolist(), second.tolist()), stats.spearmanr(first, second)
    assert found.rho == pytest.approx(theory.statistic)
    assert found.p == pytest.approx(theory.pvalue, abs=0.01)
    assert not found.exact
    assert found == spearman(first.tolist(), second.tolist())


@pytest.mark.parametrize(
    ("first", "second"), [([], []), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])]
)
def test_too_little_for_a_correlation(first: list[float], second: list[float]) -> None:
    found = spearman(first, second)
    assert (found.n, found.rho, found.p) == (len(first), None, None)


def test_correlations_of_a_grid(grid: Path) -> None:
    found = correlations(setting(grid))
    for column in columns(published.METRIC, headline=True):
        assert found[column, "heldout"].n == 12
        assert found[column, "heldout"].rho == found[column, "all"].rho  # one is 0.8 of the other here
        assert ((column, "paper") in found) == (column.title != "POS accuracy")
    assert found[columns(["xnli"])[0], "paper"].rho == pytest.approx(-0.727, abs=5e-4)


# tables


def test_the_overview_has_the_runs_scores_beside_the_papers(grid: Path) -> None:
    table = overview(setting(grid))
    evaluation = json.loads((grid / "10-1" / "evaluation.json").read_text())
    assert json.loads((grid / "10-1" / "run.json").read_text())["objective"] == "align-mlm"
    others = json.loads((grid / "10-2" / "evaluation.json").read_text())
    found = texts(table, "ALIGN-MLM", "trans,inv", "here")
    values = [one["tasks"]["xnli"]["zs"]["accuracy"]["mean"] for one in (evaluation, others)]
    assert found[1] == f"{mean(values):.1f}"
    assert row(table, "ALIGN-MLM", "trans,inv", "here").cells[1].note == f"{values[0]:.1f}, {values[1]:.1f}, n=2"
    assert texts(table, "ALIGN-MLM", "trans,inv", "paper")[:9] == "75.5 68.8 6.7 80.0 64.5 15.5 95.0 92.0 3.0".split()
    assert texts(table, "ALIGN-MLM", "trans,inv", "paper")[9:12] == [EMPTY] * 3
    assert texts(table, "XLM", "trans", "paper")[2] == "−0.2"
    assert [one.labels for one in table.rows][:2] == [("MLM", "trans", "here"), ("MLM", "trans", "paper")]
    assert len(table.rows) == 24


def test_dev_scores_stand_in_a_table_of_their_own(grid: Path, tmp_path: Path) -> None:
    table = dev_overview(setting(grid))
    assert table is not None
    assert texts(table, "XLM", "trans,inv", "here") == texts(overview(setting(grid)), "XLM", "trans,inv", "here")
    assert texts(table, "XLM", "trans,inv", "paper")[:3] == ["75.4", "67.2", "8.2"]
    folder = run(tmp_path / "a")
    evaluation = json.loads((folder / "evaluation.json").read_text())
    for task in evaluation["tasks"].values():
        del task["dev"]
    write(folder / "evaluation.json", evaluation)
    assert not dev_overview(setting(folder)).rows


def test_one_run_has_an_interval_in_its_own_table_alone_and_every_number_its_signature(grid: Path) -> None:
    cells = row(overview(setting(grid)), "XLM", "trans,inv", "here").cells
    score = json.loads((grid / "04-1" / "evaluation.json").read_text())["tasks"]["pos"]["zs"]["accuracy"]
    assert {cell.note for cell in cells[:-1]} == {"n=1"}
    own = listings.every_score(setting(grid))
    assert own is not None
    (line,) = [r for r in own.rows if r.labels[1:] == ("XLM", "trans,inv", "POS accuracy")]
    assert line.cells[1].note.startswith(f"{score['low']:.1f}–{score['high']:.1f} (")
    assert "says nothing of the objective" in own.note
    facts = json.loads((grid / "04-1" / "run.json").read_text())
    for part in ("spec trans,inv", f"fingerprint {facts['fingerprint']}", "seed 1", "steps 1,000", "derivlang 0.0.0"):
        assert all(part in cell.title for cell in cells)
    assert re.fullmatch(r"R\d+", cells[-1].text)


def test_cells_without_runs_stay_empty(tmp_path: Path) -> None:
    run(tmp_path / "a", rates={"ner": (0.8, 0.4)}, alignment=None)
    run(tmp_path / "b", objective="xlm", rates={"pos": (0.8, 0.4)}, alignment=None)
    found = setting(tmp_path)
    titles = [title for title, _ in overview(found).columns]
    assert titles == ["NER F1", "POS seqeval F1", "POS accuracy", ""], "no column of xnli, which no run has"
    assert EMPTY not in texts(overview(found), "MLM", "trans,inv", "here")[:3]
    assert texts(overview(found), "MLM", "trans,inv", "here")[3:6] == [EMPTY] * 3
    assert {row.labels[0] for row in overview(found).rows} == {"MLM", "XLM"}, "what was neither run nor planned"
    assert texts(alignment(found), "MLM", "trans,inv", "here")[:5] == [EMPTY] * 5
    assert all(one.rho is None for key, one in correlations(found).items() if key[1] != "paper")
    assert sweeps(found) == []


def test_held_out_alignment_comes_first(grid: Path) -> None:
    table = alignment(setting(grid))
    (name, kinds), *_ = table.columns
    assert (name, kinds[0], kinds[-1]) == ("Alignment", "held-out", "all")
    assert texts(table, "DICT-MLM", "trans,inv", "here")[:5] == ["51.4", EMPTY, EMPTY, EMPTY, "64.2"]
    assert texts(table, "DICT-MLM", "trans,inv", "paper")[:5] == [EMPTY] * 4 + ["64.2"]


def test_given_dictionaries_and_pairs_are_rows_of_their_own(tmp_path: Path) -> None:
    run(tmp_path / "made", objective="dict-mlm")
    for seed, digest in ((1, "a"), (2, "a"), (1, "b")):
        facts = {"dictionary": {"file": "mine.tsv", "pairs": 9, "sha256": digest * 64}}
        run(tmp_path / f"{digest}{seed}", objective="dict-mlm", seed=seed, facts=facts)
    run(tmp_path / "pairs", objective="xlm", facts={"parallel": None, "streams": {"pairs": {"sha256": "c" * 64}}})
    entries = {entry.label: len(entry.runs) for entry in setting(tmp_path).entries}
    given = {f"DICT-MLM, dictionary mine.tsv ({digest * 7})": n for digest, n in (("a", 2), ("b", 1))}
    assert entries == {"XLM, pairs ccccccc": 1, "DICT-MLM": 1, **given}


def test_sweeps_are_there_where_their_runs_are(tmp_path: Path) -> None:
    run(tmp_path / "x25", objective="xlm")
    assert sweeps(setting(tmp_path)) == []
    run(tmp_path / "x1", objective="xlm", facts={"parallel": 1})
    run(tmp_path / "x100", objective="xlm", facts={"parallel": 100})
    run(tmp_path / "half", objective="xlm", spec="inv,trans:overlap=50")
    run(tmp_path / "d50", objective="dict-mlm", facts={"dictionary": {"coverage": 50, "by": "random"}})
    run(tmp_path / "f50", objective="dict-mlm", facts={"dictionary": {"coverage": 50, "by": "frequency"}})
    run(tmp_path / "s50", objective="align-mlm", spec="syn:fr,trans", facts={"dictionary": {"coverage": 50}})
    tables = {table.id: table for table in sweeps(setting(tmp_path))}
    assert set(tables) == {"parallel", "overlap", "dictionary-inv", "dictionary-syn"}
    shown = [r.labels[1] for r in tables["parallel"].rows if r.labels[2] == "here" and r.cells[-1].text != EMPTY]
    assert shown == ["1 %", "25 %", "100 %"]
    assert texts(tables["parallel"], "XLM", "1 %", "paper")[-1] == ""
    assert "10 %" not in {row.labels[1] for row in tables["parallel"].rows}, "which was not run"
    assert texts(tables["overlap"], "XLM", "50 %", "here")[-1] != EMPTY
    assert texts(tables["dictionary-inv"], "DICT-MLM", "50 %", "paper")[:3] == ["3.4", EMPTY, ""]
    assert texts(tables["dictionary-inv"], "DICT-MLM", "50 %", "here")[-1] == "R1"
    assert texts(tables["dictionary-syn"], "ALIGN-MLM", "50 %", "here")[-1] != EMPTY
    names = {r.labels[0] for r in overview(setting(tmp_path)).rows}
    assert {
        "XLM, parallel 1 %",
        "DICT-MLM, dictionary 50 %",
        "DICT-MLM, dictionary by frequency, dictionary 50 %",
    } < names


def test_sweeps_have_every_language_of_a_size(tmp_path: Path) -> None:
    for name, spec in (("a", "trans:overlap=50,inv"), ("b", "trans:copy:overlap=50,inv"), ("c", "trans,inv")):
        run(tmp_path / name, objective="xlm", spec=spec, data=name)
    (table,) = sweeps(setting(tmp_path))
    assert [row.labels for row in table.rows] == [
        ("XLM", "0 %", "here"),
        ("XLM", "0 %", "paper"),
        ("XLM", "50 %, trans:copy:overlap=50,inv", "here"),
        ("XLM", "50 %, trans:overlap=50,inv", "here"),
        ("XLM", "50 %", "paper"),
    ]
    assert [row.cells[-1].text for row in table.rows if not row.paper] == ["R3", "R2", "R1"]


def test_every_objective_looks_different(tmp_path: Path) -> None:
    for number, objective in enumerate(OBJECTIVES.built_in):
        rates = {"pos": (0.9, 0.4 + number / 30)}
        run(tmp_path / objective, objective=objective, rates=rates, alignment=10.0 + number)
    found = setting(tmp_path)
    styles = _styles(found.entries, lambda entry: entry.label)
    assert len(styles) == len(OBJECTIVES.built_in)
    for kind in (lambda style: style.bar, lambda style: style.marker):
        assert len({json.dumps(kind(style)) for style in styles.values()}) == len(styles)
    (bars, *_) = delta_figures(found, "")
    assert bars.svg.count("<pattern ") == 2
    assert len(alignment_figures(found, "")) == 2


def test_long_names_of_languages_fit_below_bars(tmp_path: Path) -> None:
    run(tmp_path / "a", spec=f"trans,perm:file={'long/' * 30}name")  # matplotlib warns if there is no room for bars
    (figure, *_) = delta_figures(setting(tmp_path), "")
    assert ">trans,perm:file=long/long/long/long/<" in figure.svg


def test_bars_have_what_was_run_at_one_other_size_alone(tmp_path: Path) -> None:
    sizes = {"dictionary": {"coverage": 50, "by": "random"}, "parallel": 100}
    for objective in ("mlm", "align-mlm", "tlm"):
        run(tmp_path / objective, objective=objective, facts=sizes)
    run(tmp_path / "overlap", spec="trans:overlap=25,syn", objective="xlm")
    found = setting(tmp_path)
    labels = ["MLM", "XLM", "ALIGN-MLM, dictionary 50 %", "tlm, parallel 100 %"]
    assert [entry.label for entry in _main(found.entries)] == labels
    (figure, *_) = delta_figures(found, "")
    assert all(f">{label}<" in figure.svg for label in [*labels, "trans:overlap=25,syn"])
    run(tmp_path / "usual", objective="align-mlm")
    run(tmp_path / "without", spec="trans,syn", objective="xlm")
    assert [(entry.label, entry.language.spec) for entry in _main(setting(tmp_path).entries)] == [
        ("MLM", "trans,inv"),
        ("XLM", "trans,syn"),
        ("ALIGN-MLM", "trans,inv"),
        ("tlm, parallel 100 %", "trans,inv"),
    ]


@pytest.mark.parametrize(
    ("spec", "rank", "text"),
    [
        ("trans", 0, "trans"), ("inv,trans", 1, "trans,inv"), ("trans:private,inv", 1, "trans:private,inv"),
        ("trans:georgian:table=2,inv", 1, "trans,inv"), ("trans:script=copy:table=2", 0, "trans:copy"),
        ("trans,syn:fr", 2, "trans,syn"), ("syn,trans:copy", 2, "trans:copy,syn"), ("trans,syn:de", 3, "trans,syn:de"),
        ("trans,inv:final=move", 3, "trans,inv:final=move"), ("trans:overlap=50,inv", 3, "trans:overlap=50,inv"),
        ("trans,perm", 3, "trans,perm"), ("trans,inv,inv", 3, "trans,inv,inv"),
    ],
)  # fmt: skip
def test_which_languages_are_the_papers(spec: str, rank: int, text: str) -> None:
    found = Language.of(spec)
    assert (found.rank, found.spec) == (rank, text)
    assert found.bare == (published.LANGUAGES[rank] if rank < 3 else text)


def test_another_script_is_named_and_stands_beside_the_papers_row(tmp_path: Path) -> None:
    run(tmp_path / "a", data="one", rates={"pos": (0.9, 0.5)})
    run(tmp_path / "b", data="two", rates={"pos": (0.9, 0.6)}, spec="trans:copy:table=2,inv")
    run(tmp_path / "c", data="two", rates={"pos": (0.9, 0.7)}, spec="trans:copy:table=2,inv", objective="xlm")
    found = setting(tmp_path)
    assert [row.labels for row in overview(found).rows] == [
        ("MLM", "trans,inv", "here"),
        ("MLM", "trans,inv", "paper"),
        ("MLM", "trans:copy,inv", "here"),
        ("XLM", "trans:copy,inv", "here"),
        ("XLM", "trans:copy,inv", "paper"),
    ]
    assert {(one.entry.label, one.entry.language.spec) for one in differences_of(found)} == {("XLM", "trans:copy,inv")}
    report([tmp_path], tmp_path / "out")
    (told,) = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["settings"]
    assert [entry["spec"] for entry in told["entries"]] == ["trans,inv", "trans:copy,inv", "trans:copy,inv"]
    assert "trans:copy,inv" in (tmp_path / "out" / "figures" / "delta-pos-accuracy.svg").read_text("utf-8")


SIZES = {  # at a dictionary of 50 % and 100 % parallel sentences
    "mlm": "MLM",
    "clm": "clm",
    "dict-mlm": "DICT-MLM, dictionary 50 %",
    "align-mlm": "ALIGN-MLM, dictionary 50 %",
    "dict-tlm": "dict-tlm, dictionary 50 %",
    "xlm": "XLM, parallel 100 %",
    "xlm:pairs=0": "XLM, pairs=0",
    "tlm": "tlm, parallel 100 %",
    "ppa": "ppa, parallel 100 %",
    "weam": "weam, parallel 100 %",
    "xlm-align": "xlm-align, parallel 100 %",
    "mine": "mine, dictionary 50 %, parallel 100 %",
    "tlm:earlier=1": "tlm, earlier=1, dictionary 50 %, parallel 100 %",
}


@pytest.mark.parametrize("objective", dict.fromkeys([*SIZES, *OBJECTIVES.built_in]))
def test_rows_name_the_sizes_that_their_objective_reads(objective: str, tmp_path: Path) -> None:
    facts = {"dictionary": {"coverage": 50, "by": "random"}, "parallel": 100}
    (found,) = read_runs([run(tmp_path / "a", objective=objective, evaluated=False, facts=facts)])
    assert Variant.of(found).label == SIZES[objective]


# what may share a table


def test_a_title_tells_published_choices(tmp_path: Path) -> None:
    run(tmp_path / "a", facts={"model": {"name": "toy", "tie": False}, "settings": {"packing": "stream"}})
    (found,) = settings_of(read_runs([tmp_path]))
    assert found.title.endswith("embeddings untied, rows cut from a stream")


@pytest.mark.parametrize(
    "change",
    [{"steps": 2000}, {"facts": {"source": "other"}}, {"facts": {"model": {"name": "big", "tie": True}}},
     {"facts": {"model": {"name": "toy", "tie": False}}}, {"facts": {"batch_size": 128}}, {"data": "other"},
     {"test": 2077}, {"facts": {"settings": {"learning_rate": 1}}}, {"facts": {"step": 500, "status": "stopped"}}],
    ids=str,
)  # fmt: skip
def test_other_settings_stand_in_other_tables(tmp_path: Path, change: dict[str, Any]) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b", objective="align-mlm", **change)
    found = settings_of(read_runs([tmp_path]))
    assert [len(one.entries) for one in found] == [1, 1]
    assert all(differences_of(one) == [] for one in found)


def test_settings_have_parts_of_their_own(one: Path, tmp_path: Path) -> None:
    run(tmp_path / "a", steps=2000, rates={"xnli": (0.8, 0.6)})
    result = report([one, tmp_path], tmp_path / "out")
    assert (result["settings"], result["figures"]) == (2, 2)
    assert (tmp_path / "out" / "index.html").read_text("utf-8").count(">Objectives and languages</h3>") == 2


def test_data_may_differ_by_language(tmp_path: Path) -> None:
    run(tmp_path / "a", data="one")
    run(tmp_path / "b", spec="trans", data="two")
    run(tmp_path / "c", spec="trans:overlap=25,inv", data="three")
    assert len(setting(tmp_path).entries) == 3


def test_runs_of_one_seed_that_differ_unseen_are_rows_of_their_own(tmp_path: Path) -> None:
    run(tmp_path / "a", facts={"lr": 1})
    run(tmp_path / "b", facts={"lr": 2})
    run(tmp_path / "c", seed=2)
    labels = [entry.label for entry in setting(tmp_path).entries]
    assert len(labels) == len(set(labels)) == 3
    assert all(re.fullmatch(r"MLM, R[123] [0-9a-f]{7}", label) for label in labels)


def test_copies_count_once(tmp_path: Path) -> None:
    run(tmp_path / "a", facts={"weights": "0123456789abcdef"})
    run(tmp_path / "b", facts={"weights": "0123456789abcdef"})
    assert [len(entry.runs) for entry in setting(tmp_path / "a", tmp_path / "b", tmp_path / "a").entries] == [1]
    report([tmp_path / "a", tmp_path / "b", tmp_path / "a"], tmp_path / "out")
    assert "the same as R1, left out" in (tmp_path / "out" / "report.md").read_text("utf-8")
    runs = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["runs"]
    assert [(run["id"], run["same_as"], run["left_out_for"]) for run in runs] == [
        ("R1", None, None),
        ("R2", "R1", "R1"),
    ]


SAME = {"weights": "0123456789abcdef"}


@pytest.mark.parametrize(
    ("one", "other", "rows", "left_out"),
    [
        ({"evaluated": False}, {}, [["R2"]], {"R1": "R2"}),
        ({}, {"evaluated": False}, [["R1"]], {"R2": "R1"}),
        ({"evaluated": False}, {"evaluated": False}, [["R1"]], {"R2": "R1"}),
        ({"rates": {"pos": (0.9, 0.6)}}, {"rates": {"ner": (0.9, 0.6)}}, [["R1"], ["R2"]], {}),
        ({}, {"rates": {"pos": (0.9, 0.6), "xnli": (0.9, 0.6)}}, [["R2"]], {"R1": "R2"}),
        ({}, {"alignment": 11.0}, [["R1"], ["R2"]], {}),
    ],
    ids=["original not evaluated", "copy not evaluated", "none evaluated", "other tasks", "more tasks", "other values"],
)
def test_no_measurement_of_a_copy_is_left_out(
    one: dict[str, Any], other: dict[str, Any], rows: list[list[str]], left_out: dict[str, str], tmp_path: Path
) -> None:
    found = read_runs([run(tmp_path / "a", facts=SAME, **one), run(tmp_path / "b", facts=SAME, **other)])
    entries = [entry for setting in settings_of(found) for entry in setting.entries]
    assert [[run.id for run in entry.runs] for entry in entries] == rows
    assert copies_of(found) == left_out


def test_a_copy_with_other_measurements_keeps_the_mean_over_seeds(tmp_path: Path) -> None:
    for seed in SEEDS:
        run(tmp_path / f"{seed}", seed=seed, facts={"weights": f"{seed:016}"}, rates={"pos": (0.9, 0.4)})
    run(tmp_path / "copy", seed=1, facts={"weights": f"{1:016}"}, rates={"ner": (0.9, 0.4)})
    entries = setting(tmp_path).entries
    assert sorted(len(entry.runs) for entry in entries) == [1, len(SEEDS)]


def test_a_copy_with_evaluated_checkpoints_stands_for_its_original(tmp_path: Path) -> None:
    folders = [run(tmp_path / name, facts=SAME) for name in "ab"]
    told = json.loads((folders[1] / "evaluation.json").read_text("utf-8"))
    told["signature"]["steps"] = 500
    write(folders[1] / "evaluation" / "step-00000500.json", told)
    assert copies_of(read_runs(folders)) == {"R1": "R2"}


@pytest.mark.parametrize("weights", [("0123456789abcdef", "fedcba9876543210"), (None, None), (None, "0" * 16)])
def test_runs_of_one_recipe_are_no_copies_unless_their_weights_are_known_to_be(
    tmp_path: Path, weights: tuple[str | None, str | None]
) -> None:
    """Other threads give other weights, and the same fingerprint; an older version wrote none."""
    for name, found in zip("ab", weights, strict=True):
        run(tmp_path / name)
        facts = json.loads((tmp_path / name / "run.json").read_text("utf-8"))
        write(tmp_path / name / "run.json", {**facts, **({"weights": found} if found else {})})
    assert sum(len(entry.runs) for entry in setting(tmp_path).entries) == 2
    report([tmp_path], tmp_path / "out")
    assert "left out" not in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_an_evaluation_of_other_weights_is_stale(tmp_path: Path) -> None:
    folder = run(tmp_path / "a", facts={"weights": "0123456789abcdef"})
    found = json.loads((folder / "evaluation.json").read_text("utf-8"))
    found["signature"]["weights"] = "f" * 16
    write(folder / "evaluation.json", found)
    with pytest.raises(StoreError, match="is of the weights ffffffffffffffff"):
        read_runs([folder])


def test_rows_that_differ_in_what_no_name_says_are_not_averaged(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b", seed=2, facts={"model": {"name": "toy", "tie": True, "language_ids": True}})
    assert sorted(len(entry.runs) for entry in setting(tmp_path).entries) == [1, 1]


BEGINNING = {"run": "runs/first", "weights": "0123456789abcdef"}
TOY = {"name": "toy", "tie": True, "language_ids": False}


@pytest.mark.parametrize(
    ("objective", "one", "other"),
    [
        ("mlm", {}, {"init": BEGINNING}),
        ("mlm", {"init": BEGINNING}, {"init": {"run": "runs/first", "weights": "f" * 16}}),
        ("mlm", {"model": {**TOY, "config": "0" * 16}}, {"model": {**TOY, "config": "1" * 16}}),
        ("xlm", *({"dictionary": None, "settings": {"dictionary_seed": seed}} for seed in (1, 2))),
        ("dict-tlm", *({"parallel": None, "streams": {"switched": {"sha256": text * 16}}} for text in "01")),
        ("mlm", *({"dictionary": {"coverage": share, "by": "random"}} for share in (25, 50))),
        ("mlm", *({"dictionary": {"coverage": 25, "by": by}} for by in ("random", "frequency"))),
        ("mlm", *({"dictionary": {"file": "mine.tsv", "sha256": text * 64}} for text in "01")),
        ("align-mlm", *({"dictionary": {"coverage": 25, "by": "random", "sha256": text * 64}} for text in "01")),
    ],
    ids=[
        "a beginning",
        "another beginning",
        "model file",
        "seed of pairs",
        "file of sentences",
        "coverage",
        "choice",
        "file of pairs",
        "pairs",
    ],
)
def test_runs_of_other_origins_are_not_averaged(
    tmp_path: Path, objective: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    for seed, facts in enumerate((one, one, other), 1):
        run(tmp_path / str(seed), objective=objective, seed=seed, facts=facts)
    rows = [entry.runs for found in settings_of(read_runs([tmp_path])) for entry in found.entries]
    assert all(len({run.folder.name == "3" for run in row}) == 1 for row in rows)


@pytest.mark.parametrize(("option", "n_tables"), [("sentences", 2), ("pairs", 1), ("length", 2)])
def test_perplexities_of_other_sentences_stand_in_other_tables(tmp_path: Path, option: str, n_tables: int) -> None:
    for seed in (1, 2):
        path = run(tmp_path / str(seed), seed=seed) / "evaluation.json"
        heldout = {"perplexity": {"pairs": 500, "sentences": 2000, "length": 128, option: 10 * seed}}
        write(path, {**json.loads(path.read_text("utf-8")), "heldout": heldout})
    assert len(settings_of(read_runs([tmp_path]))) == n_tables


def test_settings_that_rows_name_do_not_divide(tmp_path: Path) -> None:
    names = {"seed": 1, "objective": "mlm", "coverage": "25", "parallel": "25", "spec": "trans", "language_ids": False}
    run(tmp_path / "a", facts={"settings": {**names, "mask": 0.3}})
    run(tmp_path / "b", objective="xlm", facts={"settings": {**{name: "other" for name in names}, "mask": 0.3}})
    found = setting(tmp_path)
    assert len(found.entries) == 2
    assert "mask 0.3" in found.notes


def test_an_objective_of_ones_own(tmp_path: Path) -> None:
    run(tmp_path / "a", objective="mine:strength=2", spec="trans,perm")
    run(tmp_path / "b", objective="dict-mlm:variant=input")
    run(tmp_path / "c", objective="align-mlm:alpha=10")
    names = {r.labels[:2] for r in overview(setting(tmp_path)).rows if r.cells[-1].text not in ("", EMPTY)}
    assert names == {
        ("mine, strength=2", "trans,perm"),
        ("DICT-MLM, variant=input", "trans,inv"),
        ("ALIGN-MLM", "trans,inv"),
    }


def test_other_sets_of_a_task_have_columns_of_their_own(tmp_path: Path) -> None:
    run(tmp_path / "a", rates={"pos:French-GSD": (0.9, 0.5)})
    run(tmp_path / "b", objective="align-mlm", rates={"pos:French-GSD": (0.9, 0.7)})
    found = setting(tmp_path)
    titles = [title for title, _ in overview(found).columns]
    assert titles == ["POS French-GSD seqeval F1", "POS French-GSD accuracy", ""]
    assert EMPTY not in texts(overview(found), "MLM", "trans,inv", "here")
    assert not [row for row in overview(found).rows if row.paper], "it has no number of these sets"
    (one, *_) = [d for d in differences_of(found) if d.regime == "zs" and d.column.name == "accuracy"]
    assert one.found is not None
    assert one.found.mean > 10
    report([tmp_path], tmp_path / "out")
    assert (tmp_path / "out" / "figures" / "delta-pos-French-GSD-accuracy.png").exists()


# differences


def test_a_mean_and_its_interval_are_of_the_same_counts(studied: Path) -> None:
    """Against a plain reading of the files: Student's part, and the documents' covariance of two seeds."""
    found = setting(studied)
    (entry,) = found.find("align-mlm", "trans,inv")
    (base,) = found.find("mlm", "trans,inv")
    metric = find_task("pos").metrics[0]

    def drawn(objective: str, seed: int, regime: str) -> tuple[float, Any]:
        files = [studied / f"{objective}-{seed}" / "evaluation" / f"pos.{regime}.{one}.npz" for one in SEEDS]
        counts = [by_document(np.load(file)["accuracy"], DOCUMENTS) for file in files]
        return float(np.mean([metric.value(one) for one in counts])), replicates(counts, metric.score)

    def plain(sides: list[tuple[int, str, str]]) -> tuple[float, float]:
        values, repeated = [], []
        for seed in (1, 2, 3):
            parts = [(sign, *drawn(objective, seed, regime)) for sign, objective, regime in sides]
            values.append(sum(sign * value for sign, value, _ in parts))
            repeated.append(sum(sign * b for sign, _, b in parts))
        between = np.cov(repeated)[np.triu_indices(3, 1)].mean()
        seeds = stats.t.ppf(0.975, 2) * stdev(values) / 3**0.5
        return mean(values), (seeds**2 + stats.norm.ppf(0.975) ** 2 * max(between, 0)) ** 0.5

    column = next(one for one in found.columns if (one.task, one.name) == ("pos", "accuracy"))
    ours, theirs = "align-mlm", "mlm"
    delta = [(1, ours, "sup"), (-1, ours, "zs"), (-1, theirs, "sup"), (1, theirs, "zs")]
    expected = {
        mean_of(entry, column, "zs"): plain([(1, ours, "zs")]),
        mean_of(base, column, "delta"): plain([(1, theirs, "sup"), (-1, theirs, "zs")]),
        **{d.found: plain([(1, ours, "zs"), (-1, theirs, "zs")] if d.regime == "zs" else delta)
           for d in differences_of(found) if d.entry is entry and d.base is base and d.column == column},
    }  # fmt: skip
    assert len(expected) == 4
    for one, (value, half) in expected.items():
        assert one is not None
        assert (one.n, one.why) == (3, "")
        assert one.mean == pytest.approx(value)
        assert (one.low, one.high) == (pytest.approx(value - half), pytest.approx(value + half))


def test_differences_of_any_two_objectives_with_mlm_first(studied: Path) -> None:
    found = setting(studied)
    differences = differences_of(found)
    pairs = list(dict.fromkeys((d.entry.variant.objective, d.base.variant.objective) for d in differences))
    assert pairs == [("xlm", "mlm"), ("align-mlm", "mlm"), ("align-mlm", "xlm")]
    for table, against in ((listings.differences, True), (listings.other_differences, False)):
        mine = [d for d in differences if d.from_base is against and d.column in found.headline]
        raw = [d.found.p for d in mine if d.found is not None and d.found.p is not None]
        assert len(raw) == len(mine)
        assert [d.p for d in mine] == holm(raw)  # over ZS and Δ of all rows
        shown = table(found, differences)
        assert shown is not None
        assert len(shown.rows) == len(mine) / 2
    assert all(d.p is None for d in differences if d.column not in found.headline)


def test_two_seeds_give_values_and_no_interval(grid: Path) -> None:
    found = setting(grid)
    (one,) = [d for d in differences_of(found) if d.regime == "zs" and d.column.title == "POS accuracy"
              and (d.entry.variant.objective, d.base.variant.objective) == ("align-mlm", "mlm")
              and d.entry.language.spec == "trans,inv"]  # fmt: skip
    assert one.found is not None
    assert (one.found.n, one.found.low, one.found.p, one.p) == (2, None, None, None)
    assert one.found.why == "an interval needs 3 pre-training seeds"
    table = listings.differences(found, differences_of(found))
    assert table is not None
    cells = row(table, "ALIGN-MLM − MLM", "trans,inv", "POS accuracy").cells
    assert cells[0].note == ", ".join(f"{value:+.1f}" for value in one.by_seed.values()) + ", n=2"
    assert cells[1].text == EMPTY


def test_seeds_of_one_side_alone_are_left_out_and_named(tmp_path: Path) -> None:
    for seed in (1, 2):
        run(tmp_path / f"mlm-{seed}", seed=seed)
    run(tmp_path / "align-2", objective="align-mlm", seed=2)
    run(tmp_path / "xlm-7", objective="xlm", seed=7)
    found = setting(tmp_path)
    (one,) = [d for d in differences_of(found) if (d.regime, d.column.name) == ("zs", "accuracy")
              and (d.entry.variant.objective, d.base.variant.objective) == ("align-mlm", "mlm")]  # fmt: skip
    assert (list(one.by_seed), one.alone) == ([2], (1,))
    assert one.found is not None
    assert one.found.mean == one.by_seed[2]
    table = listings.differences(found, differences_of(found))
    assert table is not None
    assert (
        "without seed 1, which only one has" in row(table, "ALIGN-MLM − MLM", "trans,inv", "POS accuracy").cells[2].note
    )
    assert row(table, "XLM − MLM", "trans,inv", "POS accuracy").cells[0].note == "no seed in common"


def test_an_estimate_without_all_of_its_counts_has_no_interval(studied: Path, tmp_path: Path) -> None:
    """The interval of the counts that are left would not be the estimate's, and might leave it out."""
    shutil.copytree(studied, tmp_path / "runs")
    (tmp_path / "runs" / "align-mlm-2" / "evaluation" / "pos.zs.3.npz").unlink()
    found = setting(tmp_path / "runs")
    id = next(run.id for run in read_runs([tmp_path / "runs"]) if run.folder.name == "align-mlm-2")
    (entry,) = found.find("align-mlm", "trans,inv")
    for column in found.headline:
        for regime in ("zs", "delta"):
            one = mean_of(entry, column, regime)
            assert one is not None
            assert (one.n, one.low, one.p, one.why) == (3, None, None, f"the counts of {id} are missing")
        sup = mean_of(entry, column, "sup")
        assert sup is not None
        assert sup.low is not None
    for d in differences_of(found):
        assert d.found is not None
        assert (d.found.low is None) == ("align-mlm" in (d.entry.variant.objective, d.base.variant.objective))
    assert (
        row(overview(found), "ALIGN-MLM", "trans,inv", "here").cells[4].note == f"the counts of {id} are missing, n=3"
    )


def test_runs_of_earlier_versions_are_resampled_by_sentence_and_say_so(studied: Path, tmp_path: Path) -> None:
    shutil.copytree(studied, tmp_path / "runs")
    for folder in (tmp_path / "runs").glob("xlm-*"):
        (folder / "evaluation" / "pos.documents.npz").unlink()
        told = json.loads((folder / "evaluation.json").read_text("utf-8"))
        del told["tasks"]["pos"]["test"]
        write(folder / "evaluation.json", told)
    found, whole = setting(tmp_path / "runs"), setting(studied)
    column = next(one for one in found.columns if (one.task, one.name) == ("pos", "accuracy"))
    widths = {}
    for name, of in (("old", found), ("new", whole)):
        for objective in ("mlm", "xlm"):
            (entry,) = of.find(objective, "trans,inv")
            one = mean_of(entry, column, "zs")
            assert one is not None
            widths[name, objective] = one.documents
    assert widths["old", "mlm"] == widths["new", "mlm"]
    assert widths["old", "xlm"] != widths["new", "xlm"]
    table = listings.test_sets(found)
    assert table is not None
    assert texts(table, "pos", "trans,inv") == [
        "100", "20 documents, rows, documents not known", "3", "7", "4", "5", "0.5"
    ]  # fmt: skip
    assert texts(listings.test_sets(whole) or table, "pos", "trans,inv")[1] == "20 documents"


def test_documents_that_are_missing_are_an_error(studied: Path, tmp_path: Path) -> None:
    for spoil, told in (
        (Path.unlink, r"pos\.documents\.npz: the documents of the test set are missing"),
        (lambda path: np.savez(path, test=DOCUMENTS[1:]), "counts of 150 rows, but documents of 149"),
        (lambda path: np.savez(path, dev=DOCUMENTS), r"pos\.documents\.npz: .*test"),
    ):
        shutil.copytree(studied, tmp_path / "runs", dirs_exist_ok=True)
        for folder in (tmp_path / "runs").glob("*-*"):
            spoil(folder / "evaluation" / "pos.documents.npz")
        with pytest.raises(StoreError, match=told):
            report([tmp_path / "runs"], tmp_path / "out")


def test_other_documents_are_another_test_set(studied: Path, tmp_path: Path) -> None:
    shutil.copytree(studied, tmp_path / "runs")
    path = tmp_path / "runs" / "xlm-2" / "evaluation" / "pos.documents.npz"
    np.savez(path, test=np.sort(DOCUMENTS)[::-1], dev=DOCUMENTS)
    with pytest.raises(StoreError, match=r"xlm-.*: pos was tested on other sentences: their documents differ"):
        report([tmp_path / "runs"], tmp_path / "out")


def test_the_choice_of_the_epoch_stands_beside_the_score(studied: Path) -> None:
    table = epoch_choice(setting(studied))
    assert table is not None
    cells = texts(table, "XLM", "trans,inv")
    assert cells[2:4] == [texts(overview(setting(studied)), "XLM", "trans,inv", "here")[4]] * 2


def test_counts_of_other_scores_are_refused(tmp_path: Path) -> None:
    run(tmp_path / "a")
    align = run(tmp_path / "b", objective="align-mlm")
    path = align / "evaluation" / "pos.zs.2.npz"
    with np.load(path) as arrays:
        spoilt = {name: arrays[name] // 2 for name in arrays}
    np.savez(path, **spoilt)
    with pytest.raises(StoreError, match=r"pos\.zs\.2\.npz: does not give the scores of evaluation\.json"):
        differences_of(setting(tmp_path))


def test_other_sentences_cannot_be_paired(tmp_path: Path) -> None:
    run(tmp_path / "a")
    align = run(tmp_path / "b", objective="align-mlm")
    for path in (align / "evaluation").iterdir():
        with np.load(path) as arrays:  # one more, without words: the scores stay
            grown = {name: np.concatenate([arrays[name], 0 * arrays[name][:1]]) for name in arrays}
        np.savez(path, **grown)
    with pytest.raises(StoreError, match=r"b, .*a: pos was tested on other sentences: .*150, 151"):
        differences_of(setting(tmp_path))


def test_a_later_fine_tuning_seed_without_a_score_is_left_alone(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        run(tmp_path / f"a-{seed}", seed=seed)
        align = run(tmp_path / f"b-{seed}", objective="align-mlm", seed=seed)
        (align / "evaluation" / "pos.zs.4.npz").write_bytes(b"of another evaluation")
    assert all(one.found and one.found.low is not None for one in differences_of(setting(tmp_path)))


# the page


class Page(HTMLParser):
    """Tags that are open, ids, and what a browser would fetch."""

    void = frozenset({"meta", "br", "wbr", "img", "hr", "input", "link"})

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.tags: Counter[str] = Counter()
        self.links: list[tuple[str, str]] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags[tag] += 1
        if tag == "table":
            assert "scroll" in self.classes[-1:], "a table outside a box that scrolls"
        if tag not in self.void:
            self.open.append(tag)
        self.classes = [given.get("class") or ""]
        if given.get("id"):
            self.ids[str(given["id"])] += 1
        for name in ("src", "href", "xlink:href"):
            if given.get(name):
                self.links.append((tag, str(given[name])))

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
    assert page.tags["svg"] == 8
    for tag, link in page.links:
        assert link.startswith(("#", "data:image/png;base64,")), (tag, link)
        assert not link.startswith("#") or link[1:] in page.ids
    assert not re.search(r"@import|url\((?!#)|<script|<link|<img", text)
    assert not re.search(r"#010203", text)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_figures_are_files_too(written: Path) -> None:
    found = sorted(path.name for path in (written / "figures").iterdir())
    names = [f"{kind}-{score}" for kind in ("alignment", "delta")
             for score in ("ner-f1", "pos-accuracy", "pos-seqeval_f1", "xnli-accuracy")]  # fmt: skip
    assert found == sorted(f"{name}.{ending}" for name in names for ending in ("png", "svg"))
    for path in (written / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG\r\n")
    svg = (written / "figures" / "delta-xnli-accuracy.svg").read_text("utf-8")
    for text in ("trans,inv", "ALIGN-MLM", "paper", "Δ = SUP − ZS, XNLI accuracy"):
        assert f">{text}</text>" in svg
    assert "#010203" not in svg


def test_the_markdown_has_the_same_tables(written: Path) -> None:
    text = (written / "report.md").read_text("utf-8")
    assert "| ALIGN-MLM | trans,inv | paper | 75.5 | 68.8 | 6.7 | 80.0 | 64.5 | 15.5 | 95.0 | 92.0 | 3.0 | – |" in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    for image in re.findall(r"!\[[^]]+\]\(([^)]+)\)", text):
        assert (written / image).exists()


def test_the_data_hold_what_the_tables_show(written: Path, grid: Path) -> None:
    data = json.loads((written / "report.json").read_text("utf-8"))
    assert len(data["runs"]) == len(list(grid.iterdir())) == 16
    (found,) = data["settings"]
    (one,) = [e for e in found["entries"] if (e["objective"], e["spec"]) == ("MLM", "trans,inv")]
    assert len(one["runs"]) == 2
    assert set(one["scores"]["pos"]["accuracy"]["zs"]) == set(one["runs"])
    assert found["differences"][0]["minus"] == "MLM"
    assert {d["minus"] for d in found["differences"]} == {"MLM", "XLM", "DICT-MLM"}
    assert all(d["low"] is None and d["why"] and d["p_holm"] is None for d in found["differences"])
    assert one["means"]["pos"]["accuracy"]["zs"]["n"] == 2


def test_the_same_runs_give_the_same_bytes(written: Path, grid: Path, tmp_path: Path) -> None:
    report([grid], tmp_path / "again")
    for path in written.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(written)).read_bytes() == path.read_bytes(), path.name


def test_names_are_escaped(tmp_path: Path) -> None:
    run(tmp_path / "a<b>&", objective="mine", facts={"source": "<script>|"})
    report([tmp_path], tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;|" in text
    assert "a&lt;b&gt;&amp;" in text
    Page(text)
    assert "&#124;" in (tmp_path / "out" / "report.md").read_text("utf-8")


EVIL = """<script>alert(1)</script>"><img src=x onerror=alert(2)> [a](javascript:alert(3)) | `c` *b* _u_ # h
# heading"""


def hostile(found: Any, keep: tuple[str, ...]) -> Any:
    """The same with every string and every key's string replaced, but for the fields that must stay what they are."""
    if isinstance(found, dict):
        return {name: value if name in keep else hostile(value, keep) for name, value in found.items()}
    if isinstance(found, list):
        return [hostile(value, keep) for value in found]
    return EVIL if isinstance(found, str) else found


def test_hostile_names_in_every_field_reach_neither_page_nor_markdown_as_markup(tmp_path: Path) -> None:
    told = '"<script>alert(1)</script><img src=x onerror=alert(2)> [a](javascript:alert(3)) | `c` *b* # h"'
    name = f"pos:{EVIL}"
    folder = run(tmp_path / "<b>run</b>", objective=f"mine:{told}", spec=f"trans:script={told},inv",
                 rates={"pos": (0.9, 0.6)}, facts={"settings": {f"{EVIL} name": EVIL}})  # fmt: skip
    again = run(tmp_path / "other", objective=f"mine:{told}", spec=f"trans:script={told},inv", seed=2)
    for one in (folder, again):
        keep = ("format", "spec", "objective", "coverage", "parallel", "fingerprint")
        facts = hostile(json.loads((one / "run.json").read_text()), keep)
        write(one / "run.json", {**facts, "weights": EVIL, "status": "done"})
        evaluation = hostile(json.loads((one / "evaluation.json").read_text()), keep)
        evaluation["signature"]["weights"] = EVIL
        evaluation["tasks"] = {name: evaluation["tasks"]["pos"]}
        write(one / "evaluation.json", evaluation)
        for path in (one / "evaluation").glob("*.npz"):
            path.unlink()
    report([tmp_path], tmp_path / "out")
    for page in (tmp_path / "out" / "index.html", *(tmp_path / "out" / "figures").glob("*.svg")):
        text = page.read_text("utf-8")
        assert "alert(1)" in text
        assert "<script" not in text
        assert "<img" not in text
        assert not re.search(r"""<[^>"]*("[^"]*"[^>"]*)*\son\w+\s*=""", text), "an attribute was left"
    Page((tmp_path / "out" / "index.html").read_text("utf-8"))
    lines = (tmp_path / "out" / "report.md").read_text("utf-8").splitlines()
    assert any("alert(1)" in line for line in lines)
    for line in lines:
        assert "<script" not in line
        assert "<img" not in line
        assert "](javascript" not in line
        assert not line.startswith("# heading")
        assert not re.search(r"[`*]", line)
    tables = [line for line in lines if line.startswith("|") and "alert" in line]
    assert tables
    for line in tables:  # no cell ends inside a name
        head = next(lines[n] for n in range(lines.index(line), -1, -1) if not lines[n].startswith("|"))
        first = lines[lines.index(head, 0) + 1] if head else line
        assert line.count("|") == first.count("|") or not first.startswith("|")


def test_chance_stands_below_the_scores_and_beside_each(tmp_path: Path) -> None:
    for seed, level in ((1, 18.04), (2, 18.04)):
        path = run(tmp_path / str(seed), seed=seed) / "evaluation.json"
        found = json.loads(path.read_text("utf-8"))
        found["tasks"]["pos"]["chance"] = {"accuracy": level}
        write(path, found)
    (one,) = settings_of(read_runs([tmp_path]))
    row = overview(one).rows[-1]
    assert row.labels[0] == "Chance"
    at = [column.name for column in one.headline].index("accuracy")
    assert [cell.text for cell in row.cells[3 * at : 3 * at + 3]] == ["18.0", "18.0", ""]
    assert {cell.text for cell in row.cells[: 3 * at]} == {EMPTY, ""}
    report([tmp_path / "1", tmp_path / "2"], tmp_path / "out")
    (line,) = [x for x in (tmp_path / "out" / "report.md").read_text("utf-8").splitlines() if x.startswith("| R1 | MLM")
               and "POS accuracy" in x]  # fmt: skip
    assert line.endswith("| 18.0 | 4 | 5 |")


@pytest.mark.parametrize("chance", [3, {"accuracy": "high"}, {"accuracy": float("nan")}])
def test_a_chance_level_that_is_no_number(chance: object, tmp_path: Path) -> None:
    path = run(tmp_path / "a") / "evaluation.json"
    found = json.loads(path.read_text("utf-8"))
    found["tasks"]["pos"]["chance"] = chance
    write(path, found)
    with pytest.raises(StoreError, match="chance"):
        read_runs([tmp_path])


def test_layers_of_earlier_and_of_this_version(tmp_path: Path) -> None:
    old, new = run(tmp_path / "a"), run(tmp_path / "b", seed=2)
    layer = {"layer": 1, "chance": 6.0}
    changed(old / "evaluation.json", contextual=[{"layer": 1, "words": 10.0, "sentences": 20.0}])
    changed(
        new / "evaluation.json",
        contextual=[layer | {"words": 30.0}],
        retrieval=[layer | {"sentences": 40.0, "first": 5.0, "chance": 0.2}],
        links=[{"layer": 1, "argmax": 70.0, "itermax": 71.0, "transport": 72.0, "joint_argmax": 60.0}],
    )
    table = inside(setting(tmp_path))
    assert table is not None
    assert table.columns[1][1][1:] == (
        "words", "words by chance", "sentences", "sentences by <s>", "sentences by chance",
        "AER by argmax", "AER by itermax", "AER by transport",
        "joint AER by argmax", "joint AER by itermax", "joint AER by transport",
    )  # fmt: skip
    cells = [[cell.text for cell in row.cells[2:]] for row in table.rows]
    assert cells == [
        ["1", "10.0", EMPTY, "20.0", *(EMPTY,) * 8],
        ["1", "30.0", "6.0", "40.0", "5.0", "0.2", "70.0", "71.0", "72.0", "60.0", EMPTY, EMPTY],
    ]


@pytest.mark.parametrize("largest", [1e14, 2.0**1000])
def test_the_perplexity_of_a_diverged_run_is_shown(largest: float, tmp_path: Path) -> None:
    """2 ** 1000 and exp(700) are those of earlier versions."""
    for seed in (1, 2, 3):
        path = run(tmp_path / str(seed), seed=seed, facts={"factors": {"seed": seed}}) / "evaluation.json"
        told = json.loads(path.read_text("utf-8"))
        write(path, told | {"perplexity": {"source": 40.0, "derived": largest, "positions": 100}})
    (line, *_) = inside(setting(tmp_path)).rows
    assert [cell.text for cell in line.cells[:2]] == ["40.0", "1.0e+14"]
    assert [row.value for row in scores_of(read_runs([tmp_path])) if row.key.regime == "derived"] == [1e14] * 3


@pytest.mark.parametrize("value", ["Infinity", "NaN", "-1e300", "1" + 400 * "0"])
def test_a_perplexity_that_is_no_number(value: str, tmp_path: Path) -> None:
    path = run(tmp_path / "a") / "evaluation.json"
    path.write_text(path.read_text("utf-8").replace('"derived": 44.0', f'"derived": {value}'), "utf-8")
    seal(path)
    with pytest.raises(StoreError, match=r"perplexity\.derived is .*, not a number"):
        read_runs([tmp_path])


def test_runs_that_are_not_evaluated_are_listed(tmp_path: Path) -> None:
    run(tmp_path / "a", evaluated=False)
    run(tmp_path / "b", evaluated=False, seed=2, facts={"status": "stopped", "step": 10})
    result = report([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    assert (result["runs"], result["evaluated"], result["figures"]) == (2, 0, 0)
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "| not evaluated |" in text
    assert "| stopped at step 10 of 1,000, not evaluated |" in text
    Page((tmp_path / "out" / "index.html").read_text("utf-8"))


def test_an_unevaluated_run_is_no_part_of_a_row(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b", seed=2, evaluated=False)
    assert texts(overview(setting(tmp_path)), "MLM", "trans,inv", "here")[-1] == "R1"


# the command


def test_the_command(one: Path, tmp_path: Path) -> None:
    other = run(tmp_path / "other", evaluated=False)
    ran = commands.run("report", one, other, "-o", tmp_path / "out", "--json")
    assert ran.json == {"out": str(tmp_path / "out"), "runs": 2, "evaluated": 1, "settings": 1, "figures": 1}
    told = commands.run("report", one, other, "-o", tmp_path / "out")
    assert told.out == f"{tmp_path / 'out' / 'index.html'}: 2 runs, 1 not evaluated yet, 1 figure\n"
    assert commands.run("report", "-o", tmp_path / "out", code=2).out == ""


def test_an_earlier_report_is_replaced_and_nothing_else(one: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report([one], out)
    (out / "figures" / "old.png").write_text("old")
    data = json.loads((out / "report.json").read_text("utf-8"))
    written_before = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {*data["files"], "figures/old.png"} == written_before
    with pytest.warns(DerivlangWarning, match="kept what is not part of the report: figures/old.png"):
        report([one], out)
    assert (out / "figures" / "old.png").read_text() == "old"
    (out / "report.json").write_text(json.dumps({**data, "files": [*data["files"], "figures/old.png"]}))
    report([one], out)
    assert not (out / "figures" / "old.png").exists()
    for name, content in (("mine", "x"), ("report.json", "[1]")):
        other = tmp_path / f"other-{name}"
        other.mkdir()
        (other / name).write_text(content)
        with pytest.raises(StoreError, match="holds something else than a report"):
            report([one], other)
        assert [path.name for path in other.iterdir()] == [name]


def test_nothing_is_half_written(one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report([one], tmp_path / "out")
    before = (tmp_path / "out" / "index.html").read_bytes()

    def fail(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_module, "markdown", fail)
    for out in (tmp_path / "out", tmp_path / "new" / "out"):
        with pytest.raises(StoreError, match="No space left"):
            report([one], out)
    assert (tmp_path / "out" / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# bad input


def changed(path: Path, **values: Any) -> None:
    write(path, {**json.loads(path.read_text()), **values})


def not_a_number(folder: Path) -> None:
    text = (folder / "evaluation.json").read_text()
    (folder / "evaluation.json").write_text(re.sub(r'"mean": [\d.]+', '"mean": NaN', text, count=1))
    seal(folder / "evaluation.json")


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda f: (f / "run.json").unlink(), r"not a run: there is no run\.json"),
        (lambda f: cut_off(f / "run.json"),
         r"run\.json: this is not a valid run\.json: .* \[run\]\n  leave this run out"),
        (lambda f: (f / "run.json").write_text("[]"), r"run\.json: .*not an object"),
        (lambda f: (f / "run.json").write_bytes(b"\xff\xfe"), r"run\.json: this is not a valid"),
        (lambda f: changed(f / "run.json", format=2), "format 2, but this version reads 1"),
        (lambda f: changed(f / "run.json", steps="many"), 'steps is "many"'),
        (lambda f: changed(f / "run.json", model={}), "name is missing"),
        (lambda f: changed(f / "run.json", spec="trans,,inv"), r"run\.json: this is not a valid"),
        (lambda f: changed(f / "run.json", fingerprint="0" * 16), r"evaluation\.json: is of .* has made "
                                                                  r"0{16} at step 1,000 \[stale-evaluation\]\n  ev"),
        (lambda f: changed(f / "run.json", step=900), r"evaluation\.json: is of .* at step 1,000, .* at step 900"),
        (lambda f: cut_off(f / "evaluation.json"),
         r"evaluation\.json: this is not a valid .*\n  evaluate the run again"),
        (lambda f: changed(f / "evaluation.json", signature={}), r"evaluation\.json: .*fingerprint is missing"),
        (lambda f: changed(f / "evaluation.json", alignment={"all": "high"}), 'alignment.all is "high", not a number'),
        (not_a_number, r"pos\.sup\.accuracy\.mean is NaN, not a number"),
        (lambda f: cut_off(f / "evaluation" / "pos.zs.1.npz"), r"pos\.zs\.1\.npz: this is not a valid"),
        (lambda f: (f / "evaluation" / "pos.zs.1.npz").write_bytes(b""), r"pos\.zs\.1\.npz: "),
        (lambda f: np.savez(f / "evaluation" / "pos.zs.1.npz", other=np.zeros(3)), r"pos\.zs\.1\.npz: .*accuracy"),
    ],
)  # fmt: skip
def test_damaged_runs(tmp_path: Path, spoil: Any, told: str) -> None:
    good = run(tmp_path / "good")
    bad = run(tmp_path / "bad", objective="align-mlm")
    spoil(bad)
    with pytest.raises(DataError, match=told) as caught:
        report([good, bad], tmp_path / "out")
    assert str(bad) in str(caught.value)
    assert not (tmp_path / "out").exists()
    ran = commands.run("report", good, bad, "-o", tmp_path / "out", code=1)
    assert ran.err.startswith("derivlang: ")
    assert ran.err.count("\n") <= 2


DAMAGES = [None, True, 10**400, float("nan"), "text", "\ud800\0", [], [{}], {"x": {}}]


def paths_of(found: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value of a JSON object."""
    inside = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return [*([above] if above else []), *(p for key, value in inside for p in paths_of(value, (*above, key)))]


@pytest.mark.parametrize("name", ["run.json", "evaluation.json"])
def test_any_damage_of_a_record_gives_a_report_or_one_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every field missing, or of every other kind; without figures, which take most of the time."""
    settings = {"mask": 0.3, "packing": "stream"}
    folder = run(tmp_path / "run", facts={"settings": settings, "weights": "f" * 16})
    path = folder / name
    good = json.loads(path.read_text())
    monkeypatch.setattr(report_module, "delta_figures", lambda *_: [])
    monkeypatch.setattr(report_module, "alignment_figures", lambda *_: [])
    monkeypatch.setattr(report_module, "differences_of", lambda *_: [])
    if name == "evaluation.json":  # one metric, and dev for one regime: the others are alike
        task = good["tasks"]["pos"]
        for scores in (*(task[regime] for regime in ("sup", "zs", "delta")), task["dev"]["zs"]):
            for metric in set(scores) - {"accuracy"}:
                del scores[metric]
        task["dev"] = {"zs": task["dev"]["zs"]}
        del task["delta"], task["oracle"], good["contextual"][1:]
    shown = refused = tried = 0
    for place in paths_of(good):
        for damage in ("missing", *DAMAGES):
            found = json.loads(json.dumps(good))
            inner = found
            for key in place[:-1]:
                inner = inner[key]
            if damage == "missing":
                inner.pop(place[-1])
            else:
                inner[place[-1]] = damage
            tried += 1
            path.write_text(json.dumps(sealed(found)), "utf-8")
            try:
                report([folder], tmp_path / "out")
                shown += 1
                assert "<script" not in (tmp_path / "out" / "index.html").read_text("utf-8")
                assert "<script" not in (tmp_path / "out" / "report.md").read_text("utf-8")
            except DerivlangError as error:
                refused += str(folder) in str(error)
    assert shown + refused == tried, "an error does not name the file"
    assert min(shown, refused) > 100


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, '{"format": ' + "1" * 5000 + "}", '{"a": "\\ud800"}']
)
@pytest.mark.parametrize("name", ["run.json", "evaluation.json"])
def test_records_that_no_parser_takes(name: str, content: str, tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    (folder / name).write_text(content, "utf-8")
    with pytest.raises(StoreError) as caught:
        report([folder], tmp_path / "out")
    assert str(folder / name) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_no_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no runs"):
        report([], tmp_path / "out")
    with pytest.raises(StoreError, match="there is no such folder"):
        report([tmp_path / "nowhere"], tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"not a run: there is no run\.json, here or in its subfolders"):
        report([tmp_path / "empty"], tmp_path / "out")


@pytest.mark.parametrize("package", ["matplotlib", "scipy.stats", "jinja2"])
def test_a_missing_package_is_named(tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run(tmp_path / "a")
    monkeypatch.setitem(sys.modules, package, None)
    _template.cache_clear()  # an earlier report has loaded jinja2
    with pytest.raises(DerivlangError, match=rf"a report needs {package.partition('.')[0]}.*\n.*derivlang\[train\]"):
        report([folder], tmp_path / "out")


def test_what_runs_were_trained_on(tmp_path: Path) -> None:
    """Runs of earlier versions record no doses, and are left out of the table."""
    steps = {"rows": 400.1, "pairs": 206.7}
    facts = {
        "result": {"tokens": 119_354, "tokens_per_step": steps, "masked_percent": 27.85, "translated_percent": 5.0},
        "streams": {"pairs": {"percent": 24.9, "cut_sentences": 3327, "short_pairs": 12}},
    }
    run(tmp_path / "new", objective="xlm", facts=facts)
    run(tmp_path / "old")
    run(tmp_path / "null", facts={"result": {"tokens": 9, "tokens_per_step": None}})
    report([tmp_path / "new", tmp_path / "old", tmp_path / "null"], tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "| R1 | xlm | 119,354 | rows 400, pairs 207 | 27.9 | 5.0 | 24.9 | 3,327 | 12 |" in page
    assert "## Training text and doses" in page
    report([tmp_path / "old"], tmp_path / "report-old")
    assert "Training text" not in (tmp_path / "report-old" / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    "facts",
    [{"result": {"tokens_per_step": {"rows": "x"}}}, {"result": {"masked_percent": True}}, {"streams": {"pairs": 3}}],
)
def test_damaged_doses_are_refused(facts: dict[str, Any], tmp_path: Path) -> None:
    run(tmp_path / "a", facts=facts)
    with pytest.raises(DerivlangError, match=r"run\.json"):
        report([tmp_path / "a"], tmp_path / "report")


def test_columns_of_sets_outside_ascii_have_file_names_of_their_own() -> None:
    metric = task_of("pos").main_metric
    names = [Column(f"pos:{which}", metric).id for which in ("./été", "./ete", "./中文", "./日文", "French-GSD")]
    assert len(set(names)) == 5
    assert all(name.isascii() for name in names)
    assert names[-1] == "pos-French-GSD-accuracy"
