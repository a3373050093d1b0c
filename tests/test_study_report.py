"""[report] of a study file: outcomes, names of levels, published numbers; each fault is one message with its place."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from derivlang.core.errors import UsageError
from derivlang.evaluation.tasks.registry import task_of
from derivlang.studies.commands import Level, TypedFloat
from derivlang.studies.report import read_report
from derivlang.studies.tables import check_tables

FACTORS: dict[str, tuple[Level, ...]] = {
    "t": ("trans", "trans,inv"),
    "overlap": (0, 25),
    "seed": (1, 2),
    "rate": (TypedFloat("2e-3"),),
}
EVALUATIONS = [{"task": "pos,ner,links"}, {"task": "blimp:my/x.jsonl"}, {"task": "{t}"}, {}]


def report(text: str) -> dict[str, Any]:
    found = tomllib.loads(text, parse_float=TypedFloat)
    check_tables(found, "my.toml")
    return read_report(found.get("report", {}), FACTORS, EVALUATIONS, "my.toml")


def test_nothing_is_asked() -> None:
    assert report("") == {}


@pytest.mark.parametrize(
    "name", ["pos.zs", "pos.delta", "pos.macro_f1.sup", "ner.f1.zs", "blimp:x.jsonl.derived", "pos.oracle"]
)
def test_an_outcome_that_counts(name: str) -> None:
    if name.startswith("blimp"):
        name = name.replace("blimp:x.jsonl", task_of("blimp:my/x.jsonl").label)
    assert report(f"[report]\nprimary = '{name}'\ntest = 'interaction'") == {"primary": name, "test": "interaction"}


def test_names_of_levels_are_by_their_text() -> None:
    found = report("[report.names]\noverlap = { 25 = 'a quarter' }\nt = { 'trans,inv' = 'reversed' }")
    assert found == {"names": {"overlap": {"25": "a quarter"}, "t": {"trans,inv": "reversed"}}}
    assert report("[report.names.rate]\n'2e-3' = 'high'")["names"] == {"rate": {"2e-3": "high"}}


def test_published_numbers_are_a_row_each() -> None:
    several = "[[report.published]]\ntask = 'pos'\nmetric = 'accuracy'\noverlap = 25\nsource = 'A'\n"
    found = report(f"{several}values = {{ sup = 94, zs = 56.5 }}")
    row = {"task": "pos", "metric": "accuracy", "overlap": "25", "source": "A"}
    assert found["published"] == [{**row, "regime": "sup", "value": 94.0}, {**row, "regime": "zs", "value": 56.5}]
    one = "[[report.published]]\ntask = 'ner'\nregime = 'zs'\nvalue = 3\nsource = 'B'\nt = 'trans'"
    assert report(one)["published"] == [{"task": "ner", "source": "B", "t": "trans", "regime": "zs", "value": 3.0}]


ROW = "[[report.published]]\ntask = 'pos'\nsource = 'A'\n"
BAD = {
    "an unknown key": ("[report]\nprimry = 'pos.zs'", "no key 'primry'; did you mean primary"),
    "an unknown outcome": ("[report]\nprimary = 'pos.zz'", "no outcome 'pos.zz'; did you mean pos.*TASK.REGIME"),
    "a task without a regime": ("[report]\nprimary = 'pos'", "no outcome 'pos'"),
    "a task that is not evaluated": ("[report]\nprimary = 'xnli.zs'", "no outcome 'xnli.zs'"),
    "an unknown metric": ("[report]\nprimary = 'pos.f1.zs'", "no outcome 'pos.f1.zs'"),
    "an outcome that is no text": ("[report]\nprimary = 3", "primary = 3 must be text"),
    "an unknown test": ("[report]\ntest = 'interactions'", "no test 'interactions'; did you mean interaction"),
    "a test that is no text": ("[report]\ntest = 1", "test = 1 must be text"),
    "names that are no table": ("[report]\nnames = 3", "names must be a table, not 3"),
    "names without a factor": ("[report.names]\ntrans = 'T'", ".report.names.: trans must be a table"),
    "a name that is no text": ("[report.names.t]\ntrans = 3", ".report.names.t.: trans = 3 must be text"),
    "names of an unknown factor": ("[report.names.tt]\ntrans = 'T'", "no factor 'tt'"),
    "names of an unknown level": ("[report.names.t]\ntrans2 = 'T'", "no level of t 'trans2'; did you mean trans"),
    "published that is no list": ("[report]\npublished = 3", "published must be a list of tables.*\n.*\\[\\[report"),
    "published without a task": ("[[report.published]]\nsource = 'A'\nvalue = 3", "published 1: task is missing"),
    "published without a source": ("[[report.published]]\ntask = 'pos'", "published 1: source is missing"),
    "published without a value": (ROW, "published 1: there is no published value"),
    "a value twice": (f"{ROW}value = 3\nvalues = {{ zs = 3 }}", "or there are two"),
    "a value that is text": (f"{ROW}regime = 'zs'\nvalue = '3'", "published 1: value = '3' must be a number"),
    "a value that is true": (f"{ROW}values = {{ zs = true }}", "published 1 .values.: zs = True must be a number"),
    "a regime that there is not": (f"{ROW}{ROW}values = {{ zz = 3 }}", "published 1: there is no published value"),
    "an unknown regime": (f"{ROW}values = {{ zz = 3 }}", "published 1: there is no outcome 'pos.zz'"),
    "no regime": (f"{ROW}value = 3", "published 1: there is no outcome 'pos'"),
    "a factor that there is not": (f"{ROW}values = {{ zs = 3 }}\nobjective = 'mlm'", "no factor 'objective'"),
    "a level that there is not": (f"{ROW}values = {{ zs = 3 }}\nt = 'inv'", "no level of t 'inv'; did you"),
    "a level that is a list": (f"{ROW}values = {{ zs = 3 }}\nt = ['trans']", "t = .'trans'. must be a text or"),
    "a baseline that is a list": ("[report]\nbaseline = { t = ['trans'] }", "t = .'trans'. must be a text or"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_one_message_with_its_place(name: str) -> None:
    text, told = BAD[name]
    with pytest.raises(UsageError) as error:
        report(text)
    assert str(error.value).startswith("my.toml [report")
    error.match(f"(?s){told}")
