"""Studies: what a file plans, what is refused, and how a study runs, fails and goes on."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.core.seal import sealed
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.studies import run as running
from derivlang.studies.cells import Cell, stages
from derivlang.studies.commands import EVALUATE, TypedFloat
from derivlang.studies.estimate import cost, dry_run, fine_tuning, shared_cost
from derivlang.studies.file import StudyFile, only, read
from derivlang.studies.plan import PlannedCommand, data_of, plan
from derivlang.studies.records import check_shared, write_study
from derivlang.studies.run import prepare, run_study
from derivlang.studies.settings import Place
from derivlang.studies.text import is_joined, join
from derivlang.training.language import read_languages
from derivlang.training.record import levels_of
from tests import runs
from tests.commands import ROOT, command_line, environment, run, snapshot
from tests.study_calls import Here, here, server

TINY_EVALUATION = (
    "--task pos,ner --seeds 3 --epochs 1,2 --lr 2e-3 --max-length 64 --train-examples 4000 --dev-examples 2000 "
    "--parses parses --threads 1"
)


def shipped_study(name: str, *grids: str) -> StudyFile:
    return read(name, grids=grids)


def written(folder: Path, text: str, name: str = "grid.toml") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def with_pairs(text: str) -> str:
    """The text of a study whose cells take the sentence pairs of the files bitext.source and so on."""
    return text.replace("[cell]", '[cell]\npairs = "bitext"')


def study_of(folder: Path, text: str) -> StudyFile:
    return read(str(written(folder, text)))


def commands(study: StudyFile) -> set[str]:
    """The commands of a study without the labels, which no result depends on."""
    steps = plan(study, Place(Path("out")))
    arguments = (
        [a for a, before in zip(s.arguments, ("", *s.arguments), strict=False) if "--factor" not in (a, before)]
        for s in steps
    )
    return {" ".join(some) for some in arguments if some[0] != "report"}


def as_typed(t: str, objective: str, steps: int, seed: int, name: str, more: str = "") -> list[str]:
    """The commands of a cell of the recipes that the shipped studies replace."""
    return [
        f"pretrain --source wikitext2 --t {t} --objective {objective} --model tiny --steps {steps} --seed {seed} "
        f"--data data --parses parses {more}--threads 1 -o runs/{name} --resume",
        f"evaluate runs/{name} {TINY_EVALUATION}",
    ]


def test_the_tiny_study_has_the_commands_of_the_recipe() -> None:
    own = "--parallel 25 --dict-coverage 25 --budget steps "
    objectives = {
        "mlm": "mlm",
        "xlm": "xlm",
        "dict-mlm:as=align-mlm": "dict-mlm-as-align-mlm",
        "align-mlm": "align-mlm",
    }
    cells = [
        *(("trans,inv", o, 10_500, s, f"trans-inv.{o}.long.{s}", own) for o in ("align-mlm", "mlm") for s in (1, 2)),
        *(("trans", o, 3500, 1, f"trans.{name}.1", own) for o, name in objectives.items()),
        *(("trans,inv", o, 3500, 1, f"trans-inv.{name}.1", own) for o, name in objectives.items()),
        *(("trans,syn:fr", o, 3500, 1, f"trans-syn-fr.{o}.1", own) for o in ("mlm", "align-mlm")),
    ]
    expected = {command for cell in cells for command in as_typed(*cell)}
    assert len(cells) == 14
    assert commands(shipped_study("align-mlm-tiny")) == expected
    packing = [as_typed("trans,inv", o, 3500, 1, f"trans-inv.{o}.packing.1", f"{own.strip()} --packing stream ")
               for o in ("mlm", "align-mlm")]  # fmt: skip
    assert commands(shipped_study("align-mlm-tiny", "packing")) == expected.union(*packing)


def test_the_study_of_seeds_has_the_cells_of_tiny_with_five_seeds() -> None:
    objectives = {"mlm": "mlm", "align-mlm": "align-mlm", "xlm": "xlm", "dict-mlm:among=all": "dict-mlm-among-all"}
    expected: set[str] = set()
    for objective, name in objectives.items():
        for seed in range(1, 6):
            expected.update(as_typed("trans,inv", objective, 10_500, seed, f"trans-inv.{name}.{seed}"))
    assert commands(shipped_study("align-mlm-seeds")) == expected


def test_the_larger_scales_have_the_options_of_the_recipes() -> None:
    small = commands(shipped_study("align-mlm-small", "packing"))
    assert len(small) == 2 * (36 + 2)
    assert (
        "pretrain --source text --t trans,inv --objective mlm --model roberta-8 --steps 5000 --seed 2 "
        "--data data --parses parses --warmup 0.1 --save-every 1000 --keep 1 "
        "--parallel 25 --dict-coverage 25 --budget steps -o runs/trans-inv.mlm.2 --resume"
    ) in small
    assert (
        "evaluate runs/trans-inv.mlm.2 --task pos,ner,xnli --seeds 3 --epochs 4 --lr 1e-4 --batch-size 64 "
        "--train-examples 8000 --parses parses"
    ) in small
    paper = commands(shipped_study("align-mlm-paper"))
    assert len(paper) == 2 * 12
    assert (
        "pretrain --source wikitext103 --t trans,syn:fr --objective xlm --model roberta-8 --steps 500000 --seed 1 "
        "--data data --parses parses --parallel 25 --dict-coverage 25 "
        "--budget steps -o runs/trans-syn-fr.xlm.1 --resume"
    ) in paper


@pytest.mark.parametrize(("scale", "name"), [("tiny", "align-mlm-tiny"), ("small", "align-mlm-small")])
def test_a_shipped_study_is_named_with_its_scale(scale: str, name: str, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "out", "--dry-run", "--rate", "1e6", "--json", "--data-dir", tmp_path)
    expected = run("study", name, *options).json
    assert run("study", "align-mlm", "--scale", scale, *options).json == expected
    assert not (tmp_path / "out").exists()
    assert "did you mean align-mlm" in run("study", "align-mln", code=2).err


# What a file means

GRID = """
[study]
source = "demo"
steps = 2

[factors]
order = ["identity", "perm"]
overlap = [0, 25, 50, 100]
seed = [1, 2, 3]

[cell]
t = "trans:overlap={overlap},{order}"
learning-rate = 2e-3

[report]
baseline = { overlap = 0 }
x = "overlap"
lines = "order"
"""


def test_a_study_has_a_cell_for_every_combination(tmp_path: Path) -> None:
    study = study_of(tmp_path, GRID)
    assert len(study.cells) == 24
    assert [cell.name for cell in study.cells[:3]] == ["identity.0.1", "perm.0.1", "identity.25.1"]
    assert {cell.levels["seed"] for cell in study.cells[:8]} == {1}  # the first seed of all before the second of any
    for cell in study.cells:
        assert cell.options["t"] == f"trans:overlap={cell.levels['overlap']},{cell.levels['order']}"
        assert cell.options["seed"] == cell.levels["seed"]
    pretrain = next(step for step in plan(study, Place(tmp_path)) if step.name == "pretrain perm.25.2")
    assert pretrain.command == (
        "derivlang pretrain --source demo --t trans:overlap=25,perm --steps 2 --seed 2 "
        "--data data --parses parses --learning-rate 2e-3 --factor order=perm "
        "--factor overlap=25 --factor seed=2 -o runs/perm.25.2 --resume"
    )


def test_the_example_of_the_page_is_a_study(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "studies" / "writing.md").read_text("utf-8")
    study = study_of(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    assert len(study.cells) == 24
    assert "perm.25.1" in {cell.name for cell in study.cells}


def test_zipped_lists_move_together_and_grids_add_cells(tmp_path: Path) -> None:
    study = study_of(
        tmp_path,
        """
        study = { source = "demo" }
        cell = { t = "trans,{order}", tie = false }
        [factors]
        order = ["inv"]
        [[zip]]
        rate = [1e-3, 2e-3]
        steps = [2, 4]
        [[grid]]
        factors = { order = ["perm"], keep = [1] }
        evaluate = { task = "pos", seeds = 1, freeze = "embeddings,encoder" }
        [[grid]]
        name = "more"
        factors = { order = ["identity"] }
        """,
    )
    assert [cell.name for cell in study.cells] == ["inv.1e-3.2", "inv.2e-3.4", "perm.1"]
    pretrain = [" ".join(s.arguments) for s in plan(study, Place(tmp_path)) if s.name.startswith("pretrain")]
    assert any("--t trans,inv --steps 4 --data" in one for one in pretrain)
    assert all("--no-tie" in one for one in pretrain)
    told = " ".join(EVALUATE.arguments(study.cells[2].evaluation))
    assert told == "--task pos --seeds 1 --freeze embeddings,encoder"
    more = read(str(tmp_path / "grid.toml"), grids=["more"])
    assert [cell.name for cell in more.cells][3:] == ["identity"]
    assert study.factors["order"] == ("inv", "perm")
    assert more.factors["order"] == ("inv", "perm", "identity")


def test_cells_share_the_data_of_the_same_options(tmp_path: Path) -> None:
    text = GRID.replace("order = [", "vocab-size = [300, 2000]\nlimit = [5]\norder = [")
    study = study_of(tmp_path, text)
    data = {(c.levels["vocab-size"], c.options["t"]): data_of(c) for c in study.cells}
    assert len(set(data.values())) == len(data) == 16


def test_files_beside_the_study_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, MODEL, "small.toml")
    path = written(tmp_path, GRID.replace("steps = 2", 'steps = 2\nmodel = "small.toml"'))
    monkeypatch.chdir(path.parent.parent)
    study = read(str(path.relative_to(Path.cwd())))
    steps = plan(study, Place(Path("out")))
    assert f"--model {tmp_path / 'small.toml'}" in steps[0].command
    assert steps[0].facts["model"] == "small.toml"  # the record of what is done may be moved


def test_a_prefix_of_sentence_pairs_beside_the_study_is_found(tmp_path: Path) -> None:
    (tmp_path / "bitext.source").touch()
    study = study_of(tmp_path, with_pairs(GRID))
    assert f"--pairs {tmp_path / 'bitext'}" in plan(study, Place(Path("out")))[0].command


LANGUAGES = """
[study]
source = "demo"
model = "tiny"
steps = 2

[languages.en]
share = "{big}"
[languages.la]
t = "trans,inv"
share = "{other}"
[languages.fr]
text = "fr.txt"
share = "{other}"

[[zip]]
big = [0.5, 0.4]
other = [0.25, 0.3]
"""


def test_the_languages_of_a_run_are_tables(tmp_path: Path, processes: type[Finished]) -> None:
    french = written(tmp_path, "Le chien dort .\n", "fr.txt")
    written(tmp_path, "dog chien\n", "en-fr.txt")
    text = LANGUAGES + '[cell]\ndictionary = ["en-fr=en-fr.txt"]\nobjective = "align-mlm"\n'
    study, place = study_of(tmp_path, text), Place(tmp_path / "out")
    command = plan(study, place)[0].command
    assert "--source" not in command
    assert "--t " not in command
    assert f"--dictionary en-fr={tmp_path}/en-fr.txt" in command
    given = read_languages(study.cells[1].options["[languages]"])
    assert [(one.name, one.text, one.t, one.share) for one in given] == [
        ("en", "demo", "identity", "0.4"), ("fr", str(french), "identity", "0.3"), ("la", "", "trans,inv", "0.3"),
    ]  # fmt: skip
    run_study(study, place)
    for name in ("fr.txt", "en-fr.txt"):
        was = (tmp_path / name).read_text()
        written(tmp_path, was + was, name)
        with pytest.raises(StoreError, match="has changed since"):
            run_study(study, place)
        written(tmp_path, was, name)
    processes.calls.clear()
    (tmp_path / "moved").mkdir()
    for name in ("fr.txt", "en-fr.txt"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    run_study(study_of(tmp_path / "moved", text), place)
    assert names_of(processes.calls, "pretrain") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('t = "trans,inv"', 't = "trnas"', r"cell 0.5.0.25: .*did you mean trans"),
        ('t = "trans,inv"', 'to = "trans"', r"cell 0.5.0.25: .languages. la: there is no setting of a language 'to'"),
        ('t = "trans,inv"', "t = [1]", r"\[languages.la\]: t = \[1\] must be text"),
        ("[0.25, 0.3]", "[0.25, 0.4]", r"cell 0.4.0.4: .languages.: the shares .* add up to 1.2, not to 1"),
        ("steps = 2", "steps = 2\n[cell]\nt = 'inv'", "cell 0.5.0.25: .languages.: cannot be given with --t"),
        (
            "steps = 2",
            "steps = 2\n[cell]\nobjective = 'align-mlm'\ndictionary = ['en-es=x.txt']",
            "cell 0.5.0.25: --dictionary: there is no language 'es'",
        ),
    ],
)
def test_languages_that_are_wrong_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        study_of(tmp_path, LANGUAGES.replace(old, new))
    assert re.search(message, str(caught.value)), caught.value


@pytest.mark.parametrize("level", ["mlm", "25", 25, 0.5, TypedFloat("2e-3"), True, "true", "NaN", '"x"', "[1]", "a=b"])
def test_levels_come_back_from_the_command_line(level: Any, tmp_path: Path) -> None:
    from derivlang.studies.plan import _factors

    assert levels_of(tuple(_factors({"f": level}))) == {"f": level}


def test_a_baseline_is_a_level_as_the_factor_has_it(tmp_path: Path) -> None:
    text = GRID.replace("overlap = 0 }", 'overlap = "25", rate = 0.002 }').replace("[cell]", "rate = [2e-3]\n[cell]")
    assert study_of(tmp_path, text).report["baseline"] == {"overlap": 25, "rate": 0.002}
    text = GRID.replace("overlap = 0 }", "warmup = 0 }").replace("[cell]", "warmup = [0.0, 0.5]\n[cell]")
    assert str(study_of(tmp_path, text).report["baseline"]["warmup"]) == "0.0"


def test_a_number_and_its_negative_have_folders_of_their_own(tmp_path: Path) -> None:
    text = GRID.replace("overlap = [0, 25, 50, 100]", "overlap = [-0.5, 0.5]")
    text = text.replace("trans:overlap={overlap},{order}", "mallows:{overlap}").replace("overlap = 0", "overlap = 0.5")
    study = study_of(tmp_path, text.replace('order = ["identity", "perm"]', 'order = ["identity"]'))
    assert [cell.name for cell in study.cells if cell.options["seed"] == 1] == ["identity.minus0.5.1", "identity.0.5.1"]


def test_levels_that_are_equal_numbers_but_other_text_are_two(tmp_path: Path) -> None:
    """Cells have names, and reports have rows, by the text of a level."""
    grids = "[[grid]]\nfactors = { w = [0, 0.5] }\n[[grid]]\nfactors = { w = [0.0] }\n"
    study = study_of(tmp_path, f'study = {{ source = "demo" }}\ncell = {{ t = "trans", warmup = "{{w}}" }}\n{grids}')
    assert [str(level) for level in study.factors["w"]] == ["0", "0.5", "0.0"]


BAD = {
    "a misspelt table": (("[factors]", "[factor]"), "there is no table 'factor'; did you mean factors"),
    "a misspelt key": (("steps = 2", "step = 2"), r"\[study\]: there is no key 'step'; did you mean steps"),
    "XLM without pairs": (
        ("[cell]", '[cell]\nobjective = "xlm"\nparallel = 0'),
        r"cell identity.0.1: --parallel: 0 % of the sentences are pairs(?s:.*)give an objective without pairs: mlm",
    ),
    "a misspelt option": (("learning-rate", "learing-rate"), "pretrain 'learing-rate'; did you mean learning-r"),
    "a misspelt option of evaluate": (("[report]", "[evaluate]\ntaks = 'pos'\n[report]"), "'taks'; did you mean task"),
    "an option that the study gives": (("[cell]", "[cell]\nout = 'x'"), "a study gives --out to pretrain itself"),
    "a factor that the study gives": (("seed =", "threads ="), "a study gives --threads"),
    "a factor without levels": (("[0, 25, 50, 100]", "[]"), r"overlap = \[\] must be a list of levels"),
    "a level that is no list": (("[1, 2, 3]", "1"), "seed = 1 must be a list of levels"),
    "levels in a text": (("[1, 2, 3]", "'1,2'"), r"seed = '1,2' must be a list of levels(?s:.*)write seed = \[1,2\]"),
    "a text that is no list": (("[1, 2, 3]", "'a,b'"), r"must be a list of levels(?s:.*)write seed = \[\"a,b\"\]"),
    "a date that is no list": (("[1, 2, 3]", "2026-01-01"), r"must be a list of levels(?s:.*)e.g. seed = \[1, 2\]"),
    "a level that is a list": (("[1, 2, 3]", "[[1]]"), r"seed = \[\[1\]\] must be a list of levels, which are t"),
    "a level twice": (("[1, 2, 3]", "[1, 2, 1]"), "the factor seed has the level 1 twice"),
    "levels in the place of an option": (("learning-rate = 2e-3", "keep = [1, 2]"), "must be one value, not a list"),
    "a formula without a factor": (("{overlap}", "{overlay}"), "no factor 'overlay'; did you mean overlap"),
    "an open brace": (("{overlap}", "{overlap"), "has a brace without its partner"),
    "a flag that is text": (("[cell]", "[cell]\ntie = 'no'"), 'tie = "no" must be true or false'),
    "a number that is text": (("learning-rate = 2e-3", "learning-rate = 'high'"), "learning-rate.*'high'"),
    "a number out of bounds": (("learning-rate = 2e-3", "warmup = 7"), "--warmup: must be below 1, got 7"),
    "a level of a wrong type": (("[1, 2, 3]", "[1, 'two']"), "cell identity.0.two: --seed: must be a whole number"),
    "a wrong spec": (("trans:overlap", "trnas:overlap"), "cell identity.0.1.*did you mean trans"),
    "a wrong objective": (("[cell]", "[cell]\nobjective = 'mln'"), "cell identity.0.1.*did you mean mlm"),
    "a wrong task": (("[report]", "[evaluate]\ntask = 'poss'\n[report]"), "poss.*did you mean pos"),
    "a wrong measure": (("[report]", "[evaluate]\nmeasure = 'alignmentz'\n[report]"), "did you mean alignment"),
    "a wrong regime": (("[report]", "[evaluate]\nregime = 'sup,zz'\n[report]"), "no regime 'zz'"),
    "a regime of pairs": (("[report]", "[evaluate]\ntask = 'pos'\nregime = 'cs'\n[report]"), "cs mixes the two sides"),
    "numbers of other tasks": (("[report]", "[evaluate]\ntask = 'pos,ner'\nepochs = '1,2,3'\n[report]"), "3 numbers"),
    "no evaluation": (("[report]", "[evaluate]\nmeasure = 'none'\n[report]"), "there is nothing to evaluate"),
    "a baseline that is no level": (("overlap = 0 }", "overlap = 10 }"), "no level of overlap '10'"),
    "a baseline that is no factor": (("{ overlap = 0", "{ overlay = 0"), "no factor 'overlay'; did you mean overlap"),
    "a baseline without a factor": (("{ overlap = 0 }", "0"), "baseline must be a table, not 0"),
    "an axis that is no factor": (('x = "overlap"', 'x = "overlay"'), "did you mean overlap"),
    "an outcome that is not evaluated": (("x =", "primary = 'pos.zs'\nx ="), "no outcome 'pos.zs'"),
    "a mistyped measure": (("x =", "primary = 'perplexty.bits'\nx ="), "did you mean perplexity?"),
    "a misspelt key of the report": (("lines =", "line ="), r"\[report\]: there is no key 'line'; did you mean lines"),
    "cells with one name": (('"perm"]', '"identity,"]'), "both would be the folder runs/identity.0.1"),
    "cells whose names differ in a capital": (('"perm"]', '"Identity"]'), "two cells have the name Identity.0.1"),
    "a factor that nothing depends on": (("{order}", "inv"), "are the same run .*\n.*depends on the factor order"),
    "an objective that differs by a default": (
        ("[cell]", "objective = ['align-mlm', 'align-mlm:alpha=10']\n[cell]"), "align-mlm-alpha-10 are the same run"
    ),
    "transforms that differ by a default": (
        ('["identity", "perm"]', '["inv", "inv:final=keep"]'), "inv-final-keep.0.1 are the same run"
    ),
    "a wrong type in [study]": (("steps = 2", "steps = 'two'"), "steps = 'two' must be a whole number"),
    "both source and text": (("steps = 2", "text = ['demo']"), "both source and text"),
    "a flag whose levels are text": (("[cell]", "tie = ['no']\n[cell]"), 'identity.0.1.no: tie = "no" must be true or'),
    "a flag of a formula": (("[cell]", "x = ['yes', 'false']\n[cell]\ntie = '{x}'"), 'tie = "yes" must be true'),
    "a flag of evaluate": (("[cell]", "x = ['no']\n[evaluate]\npredictions = '{x}'\n[cell]"), '= "no" must be true'),
    "no source": (('source = "demo"\n', ""), "there is no source"),
    "no transforms": (("t = ", "dict-coverage = "), "there is no t"),
    "zipped lists of other lengths": (("[cell]", "[[zip]]\na = [1]\nb = [1, 2]\n[cell]"), "a has 1, b has 2"),
    "a factor in two places": (("[cell]", "[[zip]]\nseed = [4]\n[cell]"), "the factor seed is given twice"),
    "no factors": ((GRID, "[study]\nsource = 'demo'"), "the study has no factors"),
    "too many cells": (("[1, 2, 3]", str(list(range(2000)))), "the study has 16,000 cells, more than 10,000"),
    "no TOML": (("[cell]", "[cell"), "not a valid TOML file.*line 11"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_one_message(name: str, tmp_path: Path) -> None:
    (old, new), message = BAD[name]
    path = written(tmp_path, GRID.replace(old, new, 1))
    ran = run("study", path, "-o", tmp_path / "out", code=2)
    assert re.search(message, ran.err), ran.err
    assert str(path) in ran.err
    assert ran.err.count("derivlang: ") == 1
    assert not (tmp_path / "out").exists()


def test_percentages_that_may_be_fractions_have_a_warning(tmp_path: Path) -> None:
    """As of `pretrain`, once each: levels of a factor, and values of [cell]."""
    text = GRID.replace("[cell]", "dict-coverage = [0.25, 25]\n[cell]\nparallel = 0.5")
    with pytest.warns(DerivlangWarning) as warned:
        study_of(tmp_path, text)
    assert sorted(told for one in warned if "is a percentage" in (told := str(one.message))) == [
        "--dict-coverage is a percentage: 0.25 means 0.25 %, not 25 %; write 0.25% if you mean it",
        "--parallel is a percentage: 0.5 means 0.5 %, not 50 %; write 0.5% if you mean it",
    ]


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, GRID)
    assert "none.toml: cannot be read: No such file" in run("study", "none.toml", code=2).err
    assert "did you mean align-mlm" in run("study", "align-mlm-tyni", code=2).err
    assert "did you mean packing" in run("study", "align-mlm-tiny", "--grids", "packings", code=2).err
    assert "there is no cell 'perm.0.4'; did you mean" in run("study", path, "--cells", "perm.0.4", code=2).err
    assert "cannot be given with --array" in run("study", path, "--dry-run", "--array", code=2).err


def test_some_cells_are_chosen_by_name(tmp_path: Path) -> None:
    study = study_of(tmp_path, GRID)
    assert [cell.name for cell in only(study, ["perm.*.2", "identity.0.1"]).cells] == [
        "identity.0.1", "perm.0.2", "perm.25.2", "perm.50.2", "perm.100.2",
    ]  # fmt: skip


# Estimates and arrays


def test_small_cells_take_some_nine_minutes() -> None:
    for cell in shipped_study("align-mlm-small").cells:
        found = cost(cell, 1.1e6)
        assert 8 < found.seconds / 60 < 10
        assert found.positions == 5000 * 128 * 512  # also of xlm, whose pairs are among its rows
        assert found.bytes == pytest.approx(270e6 + 800e6, rel=0.05)  # a model and a checkpoint, as measured


def test_fine_tuning_is_estimated_by_its_steps_or_by_its_sub_words() -> None:
    asked = {"task": "pos", "seeds": 2, "epochs": 1, "batch-size": 10, "train-examples": 1000}
    assert fine_tuning(asked, 1e12, 0.01) == pytest.approx(2 * 2 * 100 * 0.01, rel=1e-3)
    assert fine_tuning(asked, 1000, 0.0) == pytest.approx(2 * fine_tuning(asked, 2000, 0.0))
    assert fine_tuning({"task": "pos,ner,xnli"}, 1.1e6, 0.015) > 3600
    several = {"task": "pos, blimp:pairs.jsonl,links, ner"}  # neither minimal pairs nor measures are fine-tuned
    assert fine_tuning(several, 1e6, 0.01) == fine_tuning({"task": "pos,ner"}, 1e6, 0.01)
    assert fine_tuning({"task": "pos:demo"}, 1000, 0.0) < fine_tuning({"task": "pos"}, 1000, 0.0) / 100


def test_a_dry_run_tells_sizes_time_and_disk(tmp_path: Path) -> None:
    options = ("--dry-run", "--rate", "1000", "-o", tmp_path / "out")
    told = run("study", written(tmp_path, GRID), *options, "--cells", "perm.0.*").out
    assert "1,024 sub-words  derivlang pretrain --source demo" in told  # 2 steps of 4 rows of 128
    assert "3 cells: about" in told
    assert "at 1,000 sub-words per second (as asked); about 47 MB of disk" in told
    assert not (tmp_path / "out").exists()
    study, place = study_of(tmp_path, GRID), Place(tmp_path)
    demo = shared_cost(study, place)
    assert demo is not None
    large = written(tmp_path, "The cat sat on the mat .\n" * 432_000, "large.tokens")  # as much as WikiText-2
    other = shared_cost(study_of(tmp_path, GRID.replace("demo", str(large))), place)
    assert other is not None
    assert demo[0] < 5 < 70 < other[0] < 90
    assert shared_cost(study_of(tmp_path, GRID.replace('"demo"', '"no.txt"')), place) is None


def test_a_dry_run_says_what_the_run_would_refuse(tmp_path: Path) -> None:
    options = ("--dry-run", "--rate", "1000", "-o", tmp_path / "out", "--data-dir", tmp_path)
    lost = GRID + '[evaluate]\ntask = "blimp:pairs.jsonl"\n'
    assert "the task's file ./pairs.jsonl is missing" in run("study", written(tmp_path, lost), *options, code=1).err
    written(tmp_path, "", "pairs.jsonl")
    assert "write ../pairs.jsonl" in run("study", written(tmp_path, lost), *options, code=1).err
    for source, told in (("./no.txt", "the source ./no.txt is missing"), ("demoo", "did you mean demo")):
        assert told in run("study", written(tmp_path, GRID.replace('"demo"', f'"{source}"')), *options, code=None).err
    for option, value in (("dictionary", "./no.tsv"), ("pairs", "./no")):
        lost = GRID.replace("learning-rate", f'{option} = "{value}"\nlearning-rate')
        for more in (options, ("-o", tmp_path / "out")):
            assert f"the file {value} is missing" in run("study", written(tmp_path, lost), *more, code=1).err
    of_hub = GRID + '[evaluate]\ntask = "pos:demo,pos:French-GSD"\n'
    (tmp_path / "ud" / "UD_French-GDS").mkdir(parents=True)
    (tmp_path / "ud" / "UD_French-GDS" / "fr_gds-ud-test.conllu").touch()
    told = run("study", written(tmp_path, of_hub), *options)
    assert "so the hub is asked for them: pos:French-GSD (pos:French-GDS is there)" in told.err
    assert "24 cells: about" in told.out


def test_an_array_has_a_command_for_each_cell(tmp_path: Path) -> None:
    out = tmp_path / "an out"
    ran = run("study", written(tmp_path, GRID), "-o", out, "--array", "--data-dir", tmp_path, "--steps", "9")
    lines = ran.out.splitlines()
    assert len(lines) == 24
    assert {line.split()[-1] for line in lines} == {cell.name for cell in study_of(tmp_path, GRID).cells}
    (tmp_path / "derivlang").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (tmp_path / "derivlang").chmod(0o755)
    task = {**environment(), "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "3"}
    told = subprocess.run(["bash", out / "array.sh"], capture_output=True, env=task, check=True).stdout.decode()
    cell = lines[2].split()[-1]
    assert told.split("|")[:-1] == [
        "study", str(tmp_path / "grid.toml"), "-o", str(out), "--data-dir", str(tmp_path), "--steps", "9",
        "--cells", cell,
    ]  # fmt: skip
    assert "--array=1-24" in (out / "array.sh").read_text()
    assert (out / "logs").is_dir()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_no_module_in_the_folder_of_a_study_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    """Somebody else may have made the folder; a command that runs in it finds modules where the study does."""
    monkeypatch.setattr(running, "START", start)
    out = tmp_path / "out"
    out.mkdir()
    for name in ("click", "derivlang"):
        (out / f"{name}.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    monkeypatch.chdir(out)
    step = PlannedCommand("tok", ("tokenizer", "train", "demo", "-o", "tok", "--vocab-size", "200"))
    wrong = replace(step, name="wrong", arguments=(*step.arguments[:-1], "-1"))
    said: list[str] = []
    with pytest.raises(DataError, match=r"wrong: .*vocab"):
        running.in_server(partial(running.run_steps, [step, wrong], Path()), Place(Path()), None, said.append)
    assert said == ["tok", "wrong"]
    assert (out / "tok" / "tokenizer.json").exists()
    assert not (out / "ran").exists()


def test_a_call_that_is_killed_takes_no_other_with_it(tmp_path: Path) -> None:
    study, out = small(tmp_path, text=SMALL.replace("steps = 3", "steps = 1_000_000")), tmp_path / "out"
    said: list[str] = []
    with ThreadPoolExecutor() as pool:
        ran = pool.submit(run_study, only(study, ["trans-inv.mlm.*"]), Place(out, workers=2), said.append)
        try:
            logs = [out / "runs" / f"trans-inv.mlm.{seed}" / "log.jsonl" for seed in (1, 2)]
            wait_for(lambda: all(log.exists() for log in logs) or ran.done())
            (process,) = children(os.getpid())
            first, second = children(process)
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: len(said) > 1 or ran.done())
            assert said == ["text", "trans-inv.mlm.1 failed, 1 to go"]
            assert Path("/proc", str(second)).exists()
        finally:
            for process in children(os.getpid()):
                os.kill(process, signal.SIGKILL)  # as for lack of memory: what it has begun ends as well
        with pytest.raises(DataError, match=r"processes.log: the process of its steps has ended"):
            ran.result()
        wait_for(lambda: not Path("/proc", str(second)).exists())


def children(process: int) -> list[int]:
    """The processes that a process has started, without those of multiprocessing, as of other tests."""
    texts = [task.read_text() for task in Path(f"/proc/{process}/task").glob("*/children")]
    found = sorted(int(child) for child in " ".join(texts).split())
    return [one for one in found if b"cli.child" in Path(f"/proc/{one}/cmdline").read_bytes()]


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 200
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


# Running, with processes that only write their record


class Finished(Here):
    """Processes that end at once. Commands on runs of `fail` end with an error; `pretrain` writes a run.json."""

    calls: ClassVar[list[str]]
    fail: ClassVar[tuple[str, ...]]

    def run(self, arguments: Sequence[str], folder: Path, log: Path) -> int:
        function = arguments[0]
        run = arguments[arguments.index("-o") + 1] if "-o" in arguments else arguments[1]
        self.calls.append(f"{function} {Path(run).name}{' --force' * ('--force' in arguments)}")
        if f"{function} {Path(run).name}" in self.fail or (function == "pretrain" and Path(run).name in self.fail):
            log.write_text("derivlang: the loss became NaN or infinite [not-finite]\n")
            return 1
        if function == "pretrain":
            (folder / run).mkdir(parents=True)
            (folder / run / "run.json").write_text(json.dumps(sealed({"status": "done", "fingerprint": run})))
        return 0


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> type[Finished]:
    class Own(Finished):
        calls: ClassVar[list[str]] = []
        fail: ClassVar[tuple[str, ...]] = ()

    monkeypatch.setattr(running, "in_server", server(Own))
    return Own


def names_of(calls: list[str], kind: str) -> list[str]:
    return [call.split()[1] for call in calls if call.startswith(kind)]


def test_an_outcome_that_is_changed_after_runs_is_recorded(tmp_path: Path, processes: type[Finished]) -> None:
    """Also one that is named only then; the first stays on record, whatever comes after."""
    place = Place(tmp_path / "out")

    def report(primary: str) -> dict[str, Any]:
        asked = f"primary = '{primary}'\nx =" if primary else "x ="
        run_study(study_of(tmp_path, f"{GRID.replace('x =', asked)}[evaluate]\ntask = 'pos:demo'\n"), place)
        found: dict[str, Any] = json.loads((place.out / "study.json").read_text())["report"]
        return found

    assert "changed_primary" not in report("pos:demo.zs")
    assert "changed_primary" not in report("pos:demo.zs")
    for primary in ("pos:demo.sup", "pos:demo.sup", "", "pos:demo.zs"):
        found = report(primary)
        assert (found["changed_primary"], found["former_primary"]) == (True, "pos:demo.zs")
        assert found.get("primary", "") == primary
    place = Place(tmp_path / "other")
    assert "changed_primary" not in report("")
    found = report("pos:demo.zs")
    assert (found["changed_primary"], found["former_primary"]) == (True, None)


def test_the_folder_of_another_study_is_refused(tmp_path: Path, processes: type[Finished]) -> None:
    """Of another file with other cells only, not of one that gains or loses levels, or has another name."""
    place = Place(tmp_path / "out")
    run_study(study_of(tmp_path, GRID), place)
    run_study(study_of(tmp_path, GRID.replace('"perm"', '"inv"')), place)
    before = snapshot(place.out)
    same = study_of(tmp_path, GRID.replace("[1, 2, 3]", "[4]"))
    check_shared(same, place)
    other = replace(same, name="other")
    for refused in (other, only(other, ["identity.0.4"])):
        for used in (run_study, partial(dry_run, rate=1000.0, say=print)):
            with pytest.raises(StoreError, match=r"holds another study: none of its cells \(identity\.0\.1") as error:
                used(refused, place)
            assert error.value.fix == f"give another folder: derivlang study {tmp_path / 'grid.toml'} -o OUT"
    assert snapshot(place.out) == before


def test_an_outcome_that_is_changed_before_runs_is_not_recorded(tmp_path: Path) -> None:
    place, text = Place(tmp_path / "out"), f"{GRID}[evaluate]\ntask = 'pos:demo'\n"
    for primary in ("pos:demo.zs", "pos:demo.sup"):
        place.out.mkdir(exist_ok=True)
        write_study(study_of(tmp_path, text.replace("x =", f"primary = '{primary}'\nx =")), place)
        record = json.loads((place.out / "study.json").read_text())
        assert record["report"] == {"baseline": {"overlap": 0}, "primary": primary, "x": "overlap", "lines": "order"}


def test_a_new_level_adds_only_the_missing_cells(tmp_path: Path, processes: type[Finished]) -> None:
    place = Place(tmp_path / "out")
    run_study(study_of(tmp_path, GRID), place)
    assert len(names_of(processes.calls, "pretrain")) == 24
    before = snapshot(place.out / "runs")
    processes.calls.clear()
    said: list[str] = []
    more = study_of(tmp_path, GRID.replace("50, 100]", "50, 75, 100]"))
    assert run_study(more, place, said.append)["cells"] == 30
    assert sorted(names_of(processes.calls, "pretrain")) == sorted(
        f"{order}.75.{seed}" for order in ("identity", "perm") for seed in (1, 2, 3)
    )
    assert said[0] == "24 of 30 cells are done already"
    assert {name: content for name, content in snapshot(place.out / "runs").items() if name in before} == before
    record = json.loads((place.out / "study.json").read_text())
    assert record["factors"]["overlap"] == [0, 25, 50, 75, 100]
    assert record["report"] == {"baseline": {"overlap": 0}, "x": "overlap", "lines": "order"}
    assert {cell["run"]: cell["factors"] for cell in record["cells"]}["runs/perm.75.2"] == {
        "order": "perm", "overlap": 75, "seed": 2,
    }  # fmt: skip
    processes.calls.clear()
    run_study(more, place)
    assert processes.calls == ["report report"]


@pytest.mark.parametrize(
    ("factor", "levels", "equal"),
    [
        ("dict-coverage", "[25, 50]", {"mlm", "tlm"}),
        ("dict-seed", "[1, 2]", {"mlm"}),
        ("parallel", "[25, 50]", {"mlm", "align-mlm"}),
        ("mask", "[0.15, 0.3]", set()),
    ],
)
def test_cells_that_train_the_same_model_are_named(
    factor: str, levels: str, equal: set[str], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    objectives = ("mlm", "align-mlm", "tlm")
    text = GRID.replace("overlap = [0, 25, 50, 100]", f"objective = {list(objectives)}\n{factor} = {levels}")
    study_of(tmp_path, re.sub(r":overlap=\{overlap\}|(baseline|x) = .*overlap.*", "", text))
    told = [str(one.message) for one in recwarn]
    assert len(told) == bool(equal)
    if equal:
        assert f"{6 * len(equal)} pairs of cells train the same model, e.g. " in told[0]
        assert re.search(r"e\.g\. identity\.([a-z-]+)\.", told[0])[1] in equal  # type: ignore[index]


@pytest.mark.parametrize(("old", "new"), [("[1, 2, 3]", "[1, 3]"), ("perm", "inv"), ("[1, 2, 3]", "[1, 2, 3, 4]")])
def test_a_run_is_in_the_report_or_is_named(
    old: str, new: str, tmp_path: Path, processes: type[Finished], recwarn: pytest.WarningsRecorder
) -> None:
    place, said = Place(tmp_path / "out"), list[str]()
    before = study_of(tmp_path, GRID)
    for cell in before.cells:
        runs.run(place.out / "runs" / cell.name, seed=int(str(cell.levels["seed"])))
    after = study_of(tmp_path, GRID.replace(old, new))
    lost = {cell.name for cell in before.cells} - {cell.name for cell in after.cells}
    write_study(after, place)
    reported = {Path(run).name for run in derivlang.scores(place.out)["run"]}
    assert len(reported) == 24 - len(lost)
    warnings = [str(one.message) for one in recwarn]
    assert len(warnings) == bool(lost)
    if lost:
        first, more = sorted(lost)[:3], f" and {len(lost) - 3} more"
        told = f"leaves out {len(lost)} runs of 24 in its folder (not cells of its file): {', '.join(first)}{more}"
        assert warnings[0].endswith(told)
    shutil.rmtree(place.out)
    for study in (before, after):  # which says it, too
        run_study(study, place, said.append)
    assert sum("leaves out" in line for line in said) == len(warnings)


def test_a_cell_that_fails_does_not_end_the_others(tmp_path: Path, processes: type[Finished]) -> None:
    place, study = Place(tmp_path / "out"), study_of(tmp_path, GRID + '[evaluate]\nmeasure = "alignment"\n')
    processes.fail = ("perm.25.2", "identity.0.1")
    said: list[str] = []
    with pytest.raises(DataError, match=r"2 of 24 cells failed: identity.0.1, perm.25.2") as error:
        run_study(study, place, said.append)
    assert error.value.exit_code == 1
    assert len(names_of(processes.calls, "evaluate")) == 22
    assert processes.calls[-1] == "report report"
    log = place.out / "logs" / "pretrain-perm.25.2.log"
    assert said[-1] == f"pretrain perm.25.2: the loss became NaN or infinite [not-finite] ({log})"
    processes.calls.clear()
    processes.fail = ()
    assert run_study(study, place)["cells"] == 24
    assert sorted(names_of(processes.calls, "pretrain")) == ["identity.0.1", "perm.25.2"]


@pytest.mark.parametrize("full", ["logs/pretrain-perm.50.1.log", "runs/perm.50.1/.pretrained.json"])
def test_a_full_disk_fails_its_cell(
    full: str, tmp_path: Path, processes: type[Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, opened = Place(tmp_path / "out"), Path.open
    path = place.out / full

    def limited(self: Path, *arguments: Any, **options: Any) -> Any:
        if str(self).startswith(str(path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", limited)
    said: list[str] = []
    with pytest.raises(DataError, match=r"1 of 24 cells failed: perm.50.1"):
        run_study(study_of(tmp_path, GRID), place, said.append)
    assert "No space left on the disk" in said[-1]
    assert len(names_of(processes.calls, "pretrain")) >= 23
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2e-3", "3e-3", "learning-rate is 0.002, not 0.003"),
        ("steps = 2", "steps = 3", "steps is 2, not 3"),
        ("learning-rate = 2e-3", "", "learning-rate is 0.002, not given now"),
        ('source = "demo"', 'source = "wikitext2"', "source is demo, not wikitext2"),
    ],
)
def test_a_file_that_finished_cells_do_not_fit_is_refused(
    old: str, new: str, message: str, tmp_path: Path, processes: type[Finished]
) -> None:
    place, study = Place(tmp_path / "out"), study_of(tmp_path, GRID)
    run_study(only(study, ["perm.0.1"]), place)
    before = snapshot(place.out)
    other = study_of(tmp_path, GRID.replace(old, new))
    for some in (other, only(other, ["perm.25.1"])):
        with pytest.raises(StoreError, match=message):
            run_study(some, place)
        with pytest.raises(StoreError, match=message):
            dry_run(some, place, 1000, str)
    whole = dry_run(study, place, 1000, str)
    assert [step["name"] for step in whole["steps"] if step["done"]] == ["pretrain perm.0.1"]
    assert whole["seconds"] < dry_run(study, Place(tmp_path / "other"), 1000, str)["seconds"]
    assert snapshot(place.out) == before
    assert names_of(processes.calls, "pretrain") == ["perm.0.1"]


def test_other_options_after_an_interrupted_evaluation_replace_its_results(
    tmp_path: Path, processes: type[Finished]
) -> None:
    place, text = Place(tmp_path / "out"), GRID + '[evaluate]\nmeasure = "alignment"\n'
    processes.fail = ("evaluate perm.0.1",)
    for _ in range(2):
        with pytest.raises(DataError, match="1 of 1 cells failed"):
            run_study(only(study_of(tmp_path, text), ["perm.0.1"]), place)
    run = place.out / "runs" / "perm.0.1"
    assert json.loads((run / "evaluated.json").read_text())["status"] == "begun"
    processes.fail = ()
    run_study(only(study_of(tmp_path, text + "epochs = 2\n"), ["perm.0.1"]), place)
    assert [" --force" in call for call in processes.calls if call.startswith("evaluate")] == [False, False, True]
    assert json.loads((run / "evaluated.json").read_text())["status"] == "done"


def test_other_options_of_evaluate_evaluate_again(tmp_path: Path, processes: type[Finished]) -> None:
    place, text = Place(tmp_path / "out"), GRID + '[evaluate]\nmeasure = "alignment"\n'
    run_study(study_of(tmp_path, text), place)
    processes.calls.clear()
    run_study(study_of(tmp_path, text), place)
    assert names_of(processes.calls, "evaluate") == []
    damaged = written(place.out / "runs" / "perm.0.1", "{}", "evaluation.json")
    run_study(study_of(tmp_path, text), place)
    assert [call for call in processes.calls if call.startswith("evaluate")] == ["evaluate perm.0.1 --force"]
    processes.calls.clear()
    damaged.unlink()
    run_study(study_of(tmp_path, text + "sentences = 5\n"), place)
    assert len(names_of(processes.calls, "evaluate")) == 24
    assert not any("--force" in call for call in processes.calls)
    run_study(study_of(tmp_path, text + "sentences = 5\nepochs = 2\n"), place)  # results are replaced
    assert sum("--force" in call for call in processes.calls) == 24
    assert names_of(processes.calls, "pretrain") == []


@pytest.mark.parametrize("name", ["text.txt", "small.toml", "bitext.derived"])
def test_files_that_changed_since_cells_were_finished_are_refused(
    name: str, tmp_path: Path, processes: type[Finished]
) -> None:
    for other in ("text.txt", "bitext.source", "bitext.derived"):
        written(tmp_path, "One line .\n", other)
    written(tmp_path, MODEL, "small.toml")
    text = with_pairs(GRID.replace('source = "demo"', 'source = "text.txt"\nmodel = "small.toml"'))
    place, study = Place(tmp_path / "out"), study_of(tmp_path, text)
    run_study(only(study, ["perm.0.1"]), place)
    before = snapshot(place.out)
    written(tmp_path, (tmp_path / name).read_text() + "# more\n", name)
    with pytest.raises(StoreError, match=r"the content of .* has changed since|another content of the source"):
        run_study(study_of(tmp_path, text), place)
    assert snapshot(place.out) == before


TWO = GRID.replace("[0, 25, 50, 100]", "[0]").replace("[1, 2, 3]", "[1]")


@pytest.mark.parametrize("name", ["texts/more/b.txt", "words/tokenizer.json", "fr@V.orm"])
def test_a_folder_or_grammar_that_changed_since_cells_were_finished_is_refused(
    name: str, tmp_path: Path, processes: type[Finished]
) -> None:
    place = Place(tmp_path / "out")
    for other in ("texts/a.txt", "texts/more/b.txt", "words/tokenizer.json", "out/fr@V.orm"):
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path, "One line .\n", other)
    text = TWO.replace('source = "demo"', 'source = "texts"').replace("{order}", "{order},syn:fr")
    text = text.replace("[cell]", '[cell]\ntokenizer = "words"')
    study = study_of(tmp_path, text)
    run_study(study, place)
    processes.calls.clear()
    written(tmp_path / "texts", "not read\n", "about.md")
    run_study(study, place)
    assert names_of(processes.calls, "pretrain") == []
    written(place.out if "@" in name else tmp_path, "Another line .\n", name)
    before = snapshot(place.out)
    with pytest.raises(StoreError, match=r"the content of .* has changed since"):
        run_study(study, place)
    assert snapshot(place.out) == before


def test_a_run_made_again_by_hand_is_not_taken_for_the_study_s(tmp_path: Path, processes: type[Finished]) -> None:
    place, study = Place(tmp_path / "out"), study_of(tmp_path, GRID)
    run_study(study, place)
    record = place.out / "runs" / "perm.0.1" / "run.json"
    record.write_text(json.dumps(sealed({"status": "done", "fingerprint": "another"})))
    processes.calls.clear()
    processes.fail = ("perm.0.1",)  # as `pretrain --resume` does with other settings
    with pytest.raises(DataError, match=r"1 of 24 cells failed: perm.0.1"):
        run_study(study, place)


# Running, for real

MODEL = """
[model]
type = "modernbert"
hidden_size = 16
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 16
global_attn_every_n_layers = 1

[training]
vocab_size = 300
seq_len = 32
batch_size = 4
learning_rate = 1e-3
"""
SMALL = """
[study]
text = ["demo"]
model = "small.toml"
steps = 3
threads = 1

[factors]
t = ["trans,inv"]
objective = ["mlm", "align-mlm"]
seed = [1, 2]
"""


def small(folder: Path, more: str = "", text: str = SMALL) -> StudyFile:
    """A study of four cells on the built-in source."""
    written(folder, MODEL, "small.toml")
    return study_of(folder, text + more)


def until(done: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    def is_done() -> bool:
        assert process.poll() is None, process.communicate()
        return done()

    wait_for(is_done)


def test_a_study_that_is_ended_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    small(tmp_path)
    out, command = tmp_path / "out", ("study", tmp_path / "grid.toml", "-o", tmp_path / "out")
    process = subprocess.Popen(command_line(*command), env=environment(), stderr=subprocess.PIPE)
    first = out / "runs" / "trans-inv.mlm.1"
    until((first / "pretrained.json").exists, process)
    process.terminate()
    told = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert "the same command continues from here" in told
    assert "failed" not in told
    before = snapshot(first)
    ran = run(*command, "--workers", "2", "--json")
    assert ran.json["cells"] == 4
    assert "of 4 cells are done already" in ran.err
    assert "text\n" not in ran.err  # neither it nor the tokenizer is made again
    assert snapshot(first) == before
    records = [json.loads(path.read_text()) for path in sorted(out.glob("runs/*/run.json"))]
    assert [record["factors"] for record in records] == [
        {"t": "trans,inv", "objective": name, "seed": seed} for name in ("align-mlm", "mlm") for seed in (1, 2)
    ]
    dictionaries = {(record["dictionary"] or record["alignment_dictionary"])["sha256"] for record in records}
    assert len({record["data"] for record in records}) == len(dictionaries) == 1
    assert {record["source"] for record in records} == {"text"}
    assert (out / "report" / "index.html").exists()
    # every file is the one that was written
    told = run("verify", out).out
    assert re.fullmatch(
        rf"{re.escape(str(out))}: 4 cells, \d+ files, \d+ checkpoints checked, nothing is wrong\n", told
    )
    (first / "model" / "config.json").write_text("{}", "utf-8")
    (first / "pretrained.json").unlink()
    shutil.rmtree(out / "runs" / "trans-inv.mlm.2")
    assert [problem["file"] for problem in run("verify", out, "--json", code=1).json["problems"]] == [
        f"runs/{first.name}/model/config.json", f"runs/{first.name}/pretrained.json", "runs/trans-inv.mlm.2"
    ]  # fmt: skip
    for text in ('"mlm"', '"trans,inv"'):
        path = out / "study.json"
        whole = path.read_text("utf-8")
        path.write_text(whole.replace(text, '"tlm"', 1), "utf-8")
        assert "study.json: this is not a valid study.json: a value was changed" in run("verify", out, code=1).err
        assert "a value was changed" in run("report", out, "-o", tmp_path / "report", code=1).err
        path.write_text(whole, "utf-8")


def test_a_study_ends_its_cells_when_it_is_ended(tmp_path: Path) -> None:
    """Asked to, and killed: the second command finds text, tokenizer and data."""
    small(tmp_path, text=SMALL.replace("steps = 3", "steps = 1_000_000"))
    out = tmp_path / "out"
    command = command_line("study", tmp_path / "grid.toml", "-o", out, "--cells", "trans-inv.mlm.1")
    log = out / "runs" / "trans-inv.mlm.1" / "log.jsonl"
    for how in (signal.SIGTERM, signal.SIGKILL):
        shutil.rmtree(out / "runs", ignore_errors=True)
        process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
        until(lambda: log.exists() and log.stat().st_size > 0, process)
        process.send_signal(how)
        process.communicate(timeout=60)
        end = time.monotonic() + 200
        while json.loads((log.parent / "run.json").read_text())["status"] != "stopped":
            assert how == signal.SIGKILL  # else it has waited for them
            assert time.monotonic() < end
            time.sleep(0.01)
        size = log.stat().st_size
        time.sleep(0.3)
        assert log.stat().st_size == size


def test_a_moved_study_with_data_made_elsewhere_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "in_server", here)
    measures = '[evaluate]\nmeasure = "alignment,perplexity"\n'
    whole = small(tmp_path, measures)
    study, place, said = only(whole, ["trans-inv.mlm.1"]), Place(tmp_path / "out"), []  # type: ignore[var-annotated]
    assert prepare(study, place, said.append)["data"] == str(place.out / "data")
    assert said == ["text", "data-trans-inv.mlm.1"]
    assert not (place.out / "runs").exists()
    there = {path.name for path in (place.out / "data").iterdir()}
    place = Place(place.out.rename(tmp_path / "moved"))
    assert run_study(study, place)["report"] is None
    run_folder = place.out / "runs" / "trans-inv.mlm.1"
    assert json.loads((run_folder / "evaluation.json").read_text())["measures"]["perplexity"]
    assert {"study.json", "logs", "runs"} <= {path.name for path in place.out.iterdir()}
    assert {path.name for path in (place.out / "data").iterdir()} == there  # nothing is made again


def test_labels_do_not_change_what_a_run_is(tmp_path: Path) -> None:
    found = []
    for name, labels in (("a", ()), ("b", ("--factor", "overlap=25", "--factor", "order=inv"))):
        options = (
            "--source",
            "demo",
            "--t",
            "trans",
            "--model",
            written(tmp_path, MODEL, "small.toml"),
            "--steps",
            "1",
        )
        run("pretrain", *options, "--data", tmp_path / "data", "-o", tmp_path / name, *labels)
        found.append(json.loads((tmp_path / name / "run.json").read_text()))
    assert found[0]["fingerprint"] == found[1]["fingerprint"]
    assert found[0]["weights"] == found[1]["weights"]
    assert "factors" not in found[0]
    assert found[1]["factors"] == {"overlap": 25, "order": "inv"}
    twice = ("--factor", "a=1", "--factor", "a=2")
    assert "a is given twice" in run("pretrain", *options, "-o", tmp_path / "c", *twice, code=2).err
    assert "'25' is not NAME=LEVEL" in run("pretrain", *options, "-o", tmp_path / "c", "--factor", "25", code=2).err


# Cells that begin from other cells

COLD = """
[study]
source = "demo"
steps = 2

[cell]
t = "trans,{order}"

[[grid]]
factors = { order = ["identity", "inv"], start = ["cold"] }
[[grid]]
factors = { order = ["identity", "inv"], objective = ["tlm", "mlm"], seed = [1, 2] }
cell = { init = "{order}.cold" }
"""


def test_a_cell_begins_from_another(tmp_path: Path) -> None:
    study = study_of(tmp_path, COLD)
    steps = plan(study, Place(tmp_path))
    assert [step.name for step in steps[:2]] == ["pretrain identity.cold", "pretrain inv.cold"]
    tlm = next(step for step in steps if step.name == "pretrain inv.tlm.2")
    assert "--init runs/inv.cold " in tlm.command
    assert tlm.cell is not None
    assert tlm.cell.needs == ("inv.cold",)
    chosen = only(study, ["inv.tlm.2"])
    assert [cell.name for cell in chosen.cells] == ["inv.cold", "inv.tlm.2"]


@pytest.mark.parametrize(
    ("given", "command", "needs"),
    [
        ('init = "{order}.cold@1"', "--init runs/{}.cold@1 ", True),
        ('init = "runs/{order}.cold"', "--init runs/{}.cold ", True),
        ('init = "runs/other"', "--init runs/other ", False),
        ('init = "../{order}.cold"', "--init ../{}.cold ", False),
        ('init = "hub:name"', "--init hub:name ", False),
    ],
)
def test_what_names_a_cell_and_what_a_path(
    given: str, command: str, needs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("derivlang.training.begun_from.checkpoint_folder", lambda text: None)
    monkeypatch.setattr("derivlang.training.plan.checkpoint_folder", lambda text: None)
    study = study_of(tmp_path, COLD.replace('cell = { init = "{order}.cold" }', f"[grid.cell]\n{given}"))
    for order in ("identity", "inv"):
        step = next(s for s in plan(study, Place(tmp_path)) if s.name == f"pretrain {order}.mlm.1")
        assert command.format(order) in step.command
        assert step.cell is not None
        assert step.cell.needs == ((f"{order}.cold",) if needs else ())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"{order}.cold"', '"{order}.cool"', r"cell \S+: init: there is no cell 'identity.cool'; did you mean ident"),
        ('"{order}.cold"', '"{order}.mlm.1"', "the cell identity.mlm.1 begins from itself"),
        ('["cold"]', '["cold"], init = ["{order}.tlm.1"]', "there is no cell"),
        ('["cold"] }', '["cold"] }\ncell = { init = "{order}.tlm.1" }', "the cells .* begin from each other"),
    ],
)
def test_a_beginning_that_cannot_be_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, COLD.replace(old, new))
    ran = run("study", path, "-o", tmp_path / "out", code=2)
    assert re.search(message, ran.err), ran.err
    assert str(path) in ran.err
    assert not (tmp_path / "out").exists()


@given(st.integers(1, 12), st.data())
def test_stages_are_those_of_a_slow_definition(n: int, data: st.DataObject) -> None:
    """A cell's stage is one after the last of what it needs; needs go to smaller numbers, so there is no circle."""
    needs = {i: data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(n)}
    order = data.draw(st.permutations(range(n)))
    cells = [Cell(str(i), {}, {}, {}, tuple(map(str, needs[i]))) for i in order]

    def stage(i: int) -> int:
        return 1 + max((stage(need) for need in needs[i]), default=-1)

    found = stages(cells)
    assert [[int(cell.name) for cell in some] for some in found] == [
        [i for i in order if stage(i) == number] for number in range(len(found))
    ]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_cell_runs_after_the_one_that_it_needs(workers: int, tmp_path: Path, processes: type[Finished]) -> None:
    place, study = Place(tmp_path / "out", workers=workers), study_of(tmp_path, COLD)
    assert run_study(study, place)["cells"] == 10
    ran = names_of(processes.calls, "pretrain")
    assert sorted(ran) == sorted(cell.name for cell in study.cells)
    for name in ran:
        if not name.endswith("cold"):
            assert ran.index(f"{name.split('.')[0]}.cold") < ran.index(name)
    processes.calls.clear()
    run_study(study, place)
    assert names_of(processes.calls, "pretrain") == []


def test_cells_that_begin_from_a_failed_one_are_not_run(tmp_path: Path, processes: type[Finished]) -> None:
    further = '[[grid]]\nfactors = { order = ["inv"], end = ["late"] }\ncell = { init = "inv.mlm.1" }\n'
    place, study = Place(tmp_path / "out"), study_of(tmp_path, COLD + further)
    processes.fail = ("inv.cold",)
    said: list[str] = []
    with pytest.raises(DataError, match=r"1 of 11 cells failed: inv.cold; 5 that begin from them were not run: ") as e:
        run_study(study, place, said.append)
    assert e.value.exit_code == 1
    assert {line for line in said if ": needs" in line} == {
        *(f"inv.{objective}.{seed} not run: needs inv.cold" for objective in ("tlm", "mlm") for seed in (1, 2)),
        "inv.late not run: needs inv.mlm.1",
    }
    assert processes.calls[-1] == "report report"
    assert len(names_of(processes.calls, "pretrain")) == 6
    processes.calls.clear()
    processes.fail = ()
    assert run_study(study, place)["cells"] == 11
    assert names_of(processes.calls, "pretrain")[0] == "inv.cold"
    assert len(names_of(processes.calls, "pretrain")) == 6


def test_a_beginning_that_was_trained_again_is_not_taken_for_the_former(
    tmp_path: Path, processes: type[Finished]
) -> None:
    place, study = Place(tmp_path / "out"), study_of(tmp_path, COLD)
    run_study(only(study, ["inv.cold"]), place)
    cold = place.out / "runs" / "inv.cold" / "run.json"
    cold.write_text(json.dumps(sealed(json.loads(cold.read_text()) | {"weights": "1"})))
    run_study(study, place)
    run_study(study, place)
    cold.write_text(json.dumps(sealed(json.loads(cold.read_text()) | {"weights": "2"})))
    with pytest.raises(StoreError, match=r"inv.\S+: was trained otherwise: the content of init \(runs/inv.cold\) has"):
        run_study(study, place)


def test_a_stopped_cell_does_not_go_on_from_another_beginning(tmp_path: Path, processes: type[Finished]) -> None:
    place, study = Place(tmp_path / "out"), only(study_of(tmp_path, COLD), ["inv.tlm.1"])
    run_study(study, place)
    cold, tlm = (place.out / "runs" / name / "run.json" for name in ("inv.cold", "inv.tlm.1"))
    (tlm.parent / "pretrained.json").unlink()  # as if it had been stopped
    for path, more in ((cold, {"weights": "2"}), (tlm, {"init": {"run": "runs/inv.cold", "weights": "1"}})):
        path.write_text(json.dumps(sealed(json.loads(path.read_text()) | more)))
    said: list[str] = []
    with pytest.raises(DataError, match=r"cells failed: inv.tlm.1"):
        run_study(study, place, said.append)
    assert any("began with other weights than runs/inv.cold has now" in one for one in said)


def test_files_of_lists_may_lie_in_the_data_folder(tmp_path: Path, processes: type[Finished]) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    (data / "dict").mkdir(parents=True)
    written(data / "dict", "dog chien\n", "en-fr.txt")
    (data / "runs" / "inv.cold").mkdir(parents=True)  # no option but those of files is looked up there
    text = LANGUAGES.replace('text = "fr.txt"', 'ids = "own"')
    text += '[cell]\ndictionary = ["en-fr=dict/en-fr.txt"]\nobjective = "align-mlm"\n'
    study, place = study_of(tmp_path, text), Place(out, data_dir=data)
    assert f"--dictionary en-fr={data}/dict/en-fr.txt" in plan(study, place)[0].command
    assert "--init runs/inv.cold" in " ".join(step.command for step in plan(study_of(tmp_path, COLD), place))
    run_study(study, place)
    written(data / "dict", "dog chat\n", "en-fr.txt")
    with pytest.raises(StoreError, match="the content of dictionary"):
        run_study(study, place)


def test_cells_that_begin_from_others_are_an_array_of_their_own(tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run("study", written(tmp_path, COLD), "-o", out, "--array")
    first, second = ((out / name).read_text().splitlines() for name in ("array.txt", "array-2.txt"))
    assert [line.split()[-1] for line in first] == ["identity.cold", "inv.cold"]
    assert len(second) == 8
    assert ran.out.splitlines() == first + second
    assert "--array=1-8" in (out / "array-2.sh").read_text()
    assert str(out / "array-2.txt") in (out / "array-2.sh").read_text()
    assert "array-2.sh, each when the one before is done" in ran.err


def test_a_study_trains_a_cell_from_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "in_server", here)
    text = (
        SMALL.partition("[factors]")[0]
        + """
    [cell]
    t = "trans,inv"
    [[grid]]
    factors = { start = ["cold"] }
    [[grid]]
    factors = { seed = [1] }
    cell = { init = "cold" }
    """
    )
    small(tmp_path, text=text)
    assert run("study", tmp_path / "grid.toml", "-o", tmp_path / "out", "--json").json["cells"] == 2
    cold, one = (json.loads((tmp_path / "out" / "runs" / name / "run.json").read_text()) for name in ("cold", "1"))
    assert one["init"] == {"run": "runs/cold", "weights": cold["weights"]}
    assert cold["weights"] != one["weights"]


# What a study needs besides cells


def test_joined_text_is_the_words_of_its_sources(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.tokens").write_text(" = One = \n\n A cat sat . It slept . \n", "utf-8")
    (tmp_path / "a" / "dev.tokens").write_text(" A dog ran . \n", "utf-8")
    (tmp_path / "b.txt").write_text("He didn't go.\nShe did.\n", "utf-8")
    join([SourceRequest(str(tmp_path / "a")), SourceRequest(str(tmp_path / "b.txt"))], tmp_path / "out")
    lines = (tmp_path / "out" / "train.tokens").read_text("utf-8").splitlines()
    assert lines == ["= One =", "A cat sat . It slept .", "He did n't go .", "She did ."]
    assert (tmp_path / "out" / "valid.tokens").read_text("utf-8") == "A dog ran .\n"
    assert find(SourceRequest(str(tmp_path / "out"))).splits == ["train", "validation"]


def test_joined_treebanks_keep_their_labels(tmp_path: Path) -> None:
    """The rows are those of each treebank in turn; one of them is compressed and ends without an empty line."""
    sentence = "1\t{}\t{}\tVERB\t_\tNumber=Sing\t0\troot\t_\t_"
    names = {"a": "train.conllu", "b": "train.conllu.gz"}
    for folder, word in (("a", "runs"), ("b", "sings")):
        (tmp_path / folder).mkdir()
        data = sentence.format(word, word[:-1]).encode()
        (tmp_path / folder / names[folder]).write_bytes(gzip.compress(data) if folder == "b" else data)
    requests = [SourceRequest(str(tmp_path / folder)) for folder in names]
    join(requests, tmp_path / "out", labelled=True)
    assert is_joined(tmp_path / "out", labelled=True)
    assert not is_joined(tmp_path / "out")
    made = derivlang.make(tmp_path / "out", "lemma", out=tmp_path / "set")
    rows = made.dataset("train")
    assert [row["tokens"] for row in rows] == [["run"], ["sing"]]
    (tmp_path / "b.txt").write_text("She did .\n", "utf-8")
    with pytest.raises(UsageError, match=r"b.txt, which is not in CoNLL-U"):
        join([*requests, SourceRequest(str(tmp_path / "b.txt"))], tmp_path / "other", labelled=True)


def test_a_source_that_would_add_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "test.conllu").write_bytes(b"1\tgo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(DataError, match="has no train and no validation split"):
        join([SourceRequest("demo"), SourceRequest(str(tmp_path / "a"))], tmp_path / "out")
    with pytest.raises(UsageError, match=r"text = \[.*\] must be a list of sources, each once"):
        study_of(tmp_path, SMALL.replace('["demo"]', '["demo", "demo"]'))


def test_a_text_with_labels_is_another_one(tmp_path: Path, processes: type[Finished]) -> None:
    run_study(small(tmp_path), Place(tmp_path / "out"))
    labelled = small(tmp_path, text=SMALL.replace("text =", "treebanks ="))
    with pytest.raises(StoreError, match="is of another study: one keeps labels"):
        run_study(labelled, Place(tmp_path / "out"))


def test_a_text_that_is_not_there_is_named(tmp_path: Path) -> None:
    study = small(tmp_path, text=SMALL.replace('["demo"]', '["demo", "text/novels.txt"]'))
    with pytest.raises(DataError, match=r"novels.txt is missing"):
        run_study(study, Place(tmp_path / "out", data_dir=tmp_path))


def test_a_text_of_other_sources_is_refused(tmp_path: Path, processes: type[Finished]) -> None:
    place = Place(tmp_path / "out")
    run_study(small(tmp_path), place)
    before = snapshot(place.out)
    with pytest.raises(StoreError, match="is of another study: text is demo, not demo, wikitext2"):
        run_study(small(tmp_path, text=SMALL.replace('["demo"]', '["demo", "wikitext2"]')), place)
    assert snapshot(place.out) == before


def test_a_task_that_is_not_there_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "xnli").mkdir()
    (tmp_path / "xnli" / "dev.en.tsv").write_text("It rains .\tIt is wet .\tentailment\n", "utf-8")
    study = small(tmp_path, '[evaluate]\ntask = "alignment, xnli"\n')
    with pytest.raises(DataError, match="xnli:en lacks train and test"):
        run_study(study, Place(tmp_path / "out", data_dir=tmp_path))
    assert not (tmp_path / "out").exists()


def test_the_set_of_a_task_is_named_from_the_folder_of_the_study(
    tmp_path: Path, processes: type[Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`evaluate` runs there: a path from elsewhere would be found at the start, and missing after hours of training."""
    monkeypatch.chdir(tmp_path)
    Path("pairs.jsonl").write_text('{"sentence_good": "It rains .", "sentence_bad": "It rain ."}\n', "utf-8")
    study = small(tmp_path, '[evaluate]\ntask = "blimp:pairs.jsonl"\n')
    with pytest.raises(DataError, match=r"the task's file \./pairs.jsonl is missing"):
        run_study(study, Place(Path("out")))
    assert not Path("out").exists()
    for name in ("../pairs.jsonl", tmp_path / "pairs.jsonl"):
        processes.calls.clear()
        run_study(
            small(tmp_path, f'[evaluate]\ntask = "blimp:{name}"\n'), Place(Path(f"out-{name == '../pairs.jsonl'}"))
        )
        assert names_of(processes.calls, "evaluate")


def test_the_speed_of_an_accelerator_is_assumed_where_there_is_none(tmp_path: Path) -> None:
    study = ("study", "align-mlm-small", "-o", tmp_path, "--dry-run", "--cells", "trans.mlm.1", "--data-dir", tmp_path)
    told = run(*study).out
    assert "at 1,100,000 sub-words per second (assumed: there is no accelerator here)" in told
    assert "the text is not here" in told
    assert "derivlang report" not in told  # --cells writes none
    assert "derivlang report" in run(*study[:-4], "--data-dir", tmp_path).out
