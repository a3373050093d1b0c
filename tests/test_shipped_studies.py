"""The studies that come with the package: a contract over all of them, at every scale, and their list."""

from __future__ import annotations

import json
import tomllib
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import pytest

from derivlang.core.errors import UsageError
from derivlang.studies.cells import languages_of
from derivlang.studies.commands import LANGUAGES
from derivlang.studies.estimate import listing
from derivlang.studies.file import StudyFile, read, scales, shipped
from derivlang.studies.plan import plan
from derivlang.studies.settings import Place
from derivlang.studies.tables import scaled
from derivlang.training.record import levels_of
from tests.commands import run

NAMES = sorted(shipped())
AT_SCALES = [(name, scale) for name in NAMES for scale in scales(name)]


def grids_of(name: str, scale: str) -> list[str]:
    """The named grids of a study at a scale."""
    return sorted({grid["name"] for grid in scaled(tomllib.loads(shipped()[name]), scale, name).get("grid", [])
                   if "name" in grid})  # fmt: skip


def study_at(name: str, scale: str) -> StudyFile:
    return read(name, scale=scale, grids=grids_of(name, scale))


@pytest.mark.parametrize(("name", "scale"), AT_SCALES)
def test_every_step_is_a_command_that_can_be_typed(name: str, scale: str, tmp_path: Path) -> None:
    """With all named grids."""
    study = study_at(name, scale)
    for step in plan(study, Place(tmp_path, data_dir=tmp_path)):
        first, *rest = step.arguments
        command: click.Command = import_module(f"derivlang.cli.{first}").command
        if isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        found = command.make_context(first, rest, help_option_names=["-h", "--help"]).params
        if first == "pretrain" and step.cell is not None:
            assert levels_of(found["factor"]) == dict(step.cell.levels)
    assert len({cell.name for cell in study.cells}) == len(study.cells)
    assert not set("".join(cell.name for cell in study.cells)) & set("/:, *?[]")


@pytest.mark.parametrize(("name", "scale"), AT_SCALES)
def test_a_dry_run_needs_no_corpus(name: str, scale: str, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "out", "--data-dir", tmp_path, "--rate", "1e6", "--json")
    found = run("study", name, "--scale", scale, "--dry-run", *options).json
    assert [step["name"].split()[0] for step in found["steps"]][-1] == "report"
    cells = [step for step in found["steps"] if step["name"].startswith("pretrain ")]
    assert len(cells) == len(read(name, scale=scale, check=False).cells)
    assert all((step["tokens"] > 0) == ("untrained" not in step["name"]) and step["seconds"] > 0 for step in cells)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_has_all_cells(name: str) -> None:
    """With --steps, cells that differ in steps only become the same runs, which is no fault of the file."""
    trial, whole = (read(name, steps=steps, check=False) for steps in (20, None))
    assert [cell.name for cell in trial.cells] == [cell.name for cell in whole.cells]
    assert {cell.options["steps"] for cell in trial.cells} - {0} == {20}  # an untrained model stays so


@pytest.mark.parametrize(("name", "scale"), [one for one in AT_SCALES if one[1] in ("tiny", "base")])
def test_zero_shot_scores_have_controls_in_every_language(name: str, scale: str) -> None:
    """At scales that can be run on a processor; a trial keeps the untrained model untrained."""
    own = read(name, scale=scale).cells
    regimes = {str(cell.evaluation.get("regime", "sup,zs")) for cell in own}
    if "controls" not in grids_of(name, scale):
        assert all(cell.evaluation["task"] == "none" for cell in own) or regimes == {"sup"}
        return
    for steps in (None, 7):
        cells = [cell for cell in read(name, scale=scale, grids=["controls"], steps=steps).cells
                 if "control" in cell.levels]  # fmt: skip
        orders = [{one.t for cell in some for one in languages_of(cell)} for some in (cells, own)]
        assert orders[0] == orders[1]
        kinds = {
            (cell.levels["control"], cell.options["objective"], cell.options.get("embeddings", "keep"),
             cell.options["steps"] == 0) for cell in cells
        }  # fmt: skip
        copied = {("untrained, copied", "mlm", "copy", True), ("copied", "mlm", "copy", False)}
        if any(one.text for cell in own if LANGUAGES in cell.options for one in languages_of(cell)[1:]):
            copied = set()  # no word of another text is the image of a word
        assert kinds == copied | {
            ("untrained", "mlm", "keep", True), ("only aligned", "align-mlm:only=align", "keep", False),
        }  # fmt: skip
        assert not {cell.name for cell in cells} & {cell.name for cell in own}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_what_it_asks_and_by_which_paper(name: str) -> None:
    """And what its cells hold equal: align-mlm-seeds has equal steps, as before there was a budget."""
    study = read(name, check=False)
    assert study.title
    assert study.paper or not study.table
    assert all("budget" in cell.options for cell in study.cells) or name == "align-mlm-seeds"


@pytest.mark.parametrize("name", NAMES)
def test_published_numbers_are_shown_once_and_fit_together(name: str) -> None:
    """Each is shown at some scale, none twice, and SUP - ZS is the delta as rounded."""
    rows = tomllib.loads(shipped()[name]).get("report", {}).get("published", [])
    keys = [json.dumps({**row, "values": sorted(row.get("values", [])), "value": 0}, sort_keys=True) for row in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        values = row.get("values", {})
        if {"sup", "zs"} <= values.keys():
            assert values["sup"] - values["zs"] == pytest.approx(values["delta"], abs=0.11)
    shown = {json.dumps(row, sort_keys=True) for scale in scales(name)
             for row in read(name, scale=scale, check=False).report.get("published", [])}  # fmt: skip
    assert len(shown) == sum(len(row.get("values", [""])) for row in rows)


def test_the_list_has_every_study_under_its_paper() -> None:
    found = listing()
    assert sorted(one["name"] for one in found) == NAMES
    assert all(one["runs"] and one["scales"][0] == "tiny" for one in found)
    assert all(0 < one["seconds"] < 3 * 3600 for one in found)
    papers = [paper for paper, _ in groupby(found, key=lambda one: one["paper"])]
    assert len(set(papers)) == len(papers) == 13
    assert papers[-1] == ""
    told = run("study", "--list").out
    assert "\nTang et al. (2022), ALIGN-MLM\n" in told
    assert "Times are computed, not measured" in told
    assert all(f"  {one['name']} " in told and one["title"] in told for one in found)
    assert run("study", "--list", "--json").json == found
    assert "cannot be given with FILE" in run("study", "align-mlm", "--list", code=2).err
    assert "Missing argument" in run("study", "--scale", "tiny", code=2).err


OWN = """
[study]
source = "demo"
scales = ["tiny", "paper"]
steps = 7
[cell]
t = "trans"
[scale.paper]
seeds = 1
report = { x = "mask" }
[scale.paper.study]
text = ["demo"]
[scale.paper.cell]
mask = 0.2
[[grid]]
factors = { mask = [0.1, 0.3], seed = [1, 2, 3] }
[grid.scale.paper.factors]
mask = [0.4]
[[grid]]
scales = ["tiny"]
factors = { warmup = [0.5], seed = [1, 2] }
"""


def own(tmp_path: Path, text: str = OWN) -> str:
    (tmp_path / "own.toml").write_text(text, "utf-8")
    return str(tmp_path / "own.toml")


def test_a_scale_replaces_keys_factors_and_grids(tmp_path: Path) -> None:
    tiny, paper = (read(own(tmp_path), scale=scale) for scale in (None, "paper"))
    assert len(tiny.cells) == 6 + 2
    assert {cell.options["source"] for cell in tiny.cells} == {"demo"}
    assert tiny.name == "own"
    (cell,) = paper.cells
    assert (cell.name, paper.name, paper.text) == ("0.4.1", "own-paper", ("demo",))
    assert (cell.options["source"], cell.options["mask"], cell.options["steps"]) == ("text", 0.2, 7)
    assert cell.options["model"] == "roberta-8"  # of scales.toml
    assert paper.report["x"] == "mask"


BAD = {
    "a scale that is not one": ({'"paper"]': '"huge"]'}, "there is no scale 'huge'"),
    "a table of another scale": ({"[scale.paper]": "[scale.small]"}, "there is no scale 'small'"),
    "a grid of another scale": ({'scales = ["tiny"]': 'scales = ["small"]'}, "grid 2: there is no scale 'small'"),
    "a key": ({"seeds = 1": "sedes = 1"}, r"\[scale.paper\]: there is no key 'sedes'; did you mean seeds"),
    "no seed": ({"seeds = 1": "seeds = 0"}, "seeds = 0 must be a whole number of at least 1"),
    "no list": ({'["tiny", "paper"]': '"tiny"'}, "scales = 'tiny' must be a list"),
    "no scale": ({'["tiny", "paper"]': "[]"}, "must be a list of one scale or more"),
    "a report of a grid": (
        {"[grid.scale.paper.factors]": "[grid.scale.paper.report]"},
        r"grid 1 \[scale.paper\]: there is no key 'report'",
    ),
    "a published row that is no table": ({"[cell]": "[report]\npublished = [1]\n[cell]"}, "published"),
    "a published task that is no text": ({"[cell]": '[report]\npublished = [{ task = ["pos"] }]\n[cell]'}, "published"),
    "no list in a grid": ({'scales = ["tiny"]': 'scales = "tiny"'}, "grid 2: scales = 'tiny' must be a list"),
    "no table": ({"[scale.paper.cell]": "[scale.paper.study.cell]"}, "'cell'"),
    "a title that is not text": ({"steps = 7": "title = 7"}, "title = 7 must be text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_scales_are_refused_with_one_message(name: str, tmp_path: Path) -> None:
    changes, told = BAD[name]
    text = OWN
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(UsageError, match=told):
        read(own(tmp_path, text))


def test_a_scale_that_a_study_does_not_have(tmp_path: Path) -> None:
    plain: Any = OWN.replace('scales = ["tiny", "paper"]\n', "")
    with pytest.raises(UsageError, match="there is no scale 'paper'"):
        read(own(tmp_path, plain))
    plain = "\n".join(line for line in plain.splitlines()[:6])
    with pytest.raises(UsageError, match="has no scales"):
        read(own(tmp_path, plain), scale="tiny")
    with pytest.raises(UsageError, match="there is no scale 'paper'"):
        read("alignment-methods", scale="paper")


def test_a_table_of_two_scales() -> None:
    """Both scales have its keys; what one of them has of its own has priority, also in a grid."""
    text = """
        [study]
        scales = ["tiny", "base", "small"]
        [scale."tiny, base".cell]
        steps = 7
        limit = 8
        [scale.base.cell]
        steps = 9
        [[grid]]
        [grid.factors]
        seed = [1]
        [grid.scale."base,small".cell]
        mask = 0.5
    """
    wanted = {"tiny": (7, 8, None), "base": (9, 8, 0.5), "small": (None, None, 0.5)}
    for scale, cell in wanted.items():
        found = scaled(tomllib.loads(text), scale, "mine.toml")
        grid = next(grid for grid in found["grid"] if "name" not in grid)
        assert (found["cell"].get("steps"), found["cell"].get("limit"), grid.get("cell", {}).get("mask")) == cell
    with pytest.raises(UsageError, match="there is no scale 'bas'; did you mean base"):
        scaled(tomllib.loads(text.replace("base,small", "bas,small")), "tiny", "mine.toml")
