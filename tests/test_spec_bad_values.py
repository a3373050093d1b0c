"""Whatever stands in a spec or names a parser: a result, or one error that names the option and shows no traceback."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang import Pipeline, derive
from derivlang.core.errors import DerivlangError, UsageError
from derivlang.core.spec import quote
from derivlang.parsing.registry import find_parser
from derivlang.training.objectives.registry import find_objective, objective_names
from derivlang.transforms.registry import find_transform, transform_names
from tests.commands import run
from tests.strategies import laws


@pytest.mark.parametrize(
    ("spec", "id", "said"),
    [
        ("np:order=N-Num-A-D", "needs-layer", "trees in brackets"),
        ("np:order=Nnda", "bad-value", "write np:N-Num-A-D"),
        ("switch:110010", "needs-layer", "trees in brackets"),
        ("switch:1100", "bad-value", "write switch:110010"),
        ("switch:11001x", "bad-value", "write switch:110010"),
        ("switch:11:rules=nothing.pcfg", "missing-file", "list the files"),
        ("hop:tokens=2:edge=VP", "bad-value", "leave all but one"),
        ("resample:unigram", "unknown-transform", "source:resample=SOURCE"),
        ("source:pcfg=a.gr", "unknown-transform", "derivlang make source:pcfg=FILE"),
        ("lex:phon=0.07", "unknown-parameter", "write dialect:phon="),
        ("lex:suffix=0.5", "unknown-parameter", "write dialect:suffix="),
        ("lex:nonce=0.8:pos=function", "unknown-parameter", "write dialect:nonce="),
        ("lex:shuffle", "missing-file", "write scramble"),
        ("lex:shuffle:within=length", "unknown-parameter", "write scramble:within=length"),
        ("shuffle:blocks=2:derange", "bad-spec", "as derange=yes;"),
    ],
)
def test_published_spellings_say_what_to_write(spec: str, id: str, said: str) -> None:
    with pytest.raises(DerivlangError) as raised:
        derive("a b c", spec)
    assert raised.value.id == id
    assert said in str(raised.value.fix)


VALUES = {
    "empty": "",
    "long": "a" * 300,
    "long in bytes": "ü" * 200,
    "longer": "a" * 100_000,
    "deep": "a/" * 3000,
    "nul": "a\0b",
    "no UTF-8": "\udcff/x",
    "half of a pair": "\ud800",
    "dot": ".",
    "dots": "..",
    "root": "/",
    "class alone": "@N",
    "no class": "fr@",
    "empty classes": "~~",
    "twice": "fr@N~fr@N",
    "nothing there": "/no/such/file.tsv",
    "under a file": "/etc/passwd/x",
    "memory": "/proc/self/mem",
    "device": "/dev/null",
    "star": "*[",
    "space": " ",
    "line": "\n",
    "digits": "9" * 5000,
    "large": "99999999999999999999",
    "negative": "-1",
    "tiny": "1e-320",
    "huge": "1e308",
    "infinite": "inf",
    "no number": "nan",
    "full width": "１",
}


def only_clear_errors(spec: str) -> None:
    try:
        derive("He did it , then left .", spec)
    except DerivlangError as error:
        message = str(error).encode()
        assert len(message) < 5000
        assert b"\n\n" not in message


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", transform_names())
@pytest.mark.filterwarnings("ignore:mallows.*theta is so large")
@pytest.mark.filterwarnings("error")
def test_a_parameter_of_any_value(name: str, value: str) -> None:
    for field in dataclasses.fields(find_transform(name)):
        only_clear_errors(f"{name}:{field.name}={quote(value)}")
    only_clear_errors(f"{name}:{quote(value)}")
    only_clear_errors(f"{name}:{value}")
    only_clear_errors(f"{quote(value)}:{name}")


@pytest.mark.parametrize("spec", ["syn:{}", "syn:{}@N", "syn:fr@N~{}", "syn:substrate={}", "lex:{}"])
@pytest.mark.parametrize("named", ["a folder", "an empty file", "bytes", "no reading"])
def test_a_file_that_is_none(spec: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    if named == "a folder":
        path.mkdir()
    else:
        path.write_bytes(b"" if named == "an empty file" else bytes(range(256)))
    with pytest.raises(DerivlangError):
        derive("He did it .", spec.format(quote(str(path))))


@pytest.mark.parametrize(
    "spec",
    [
        "",
        ",",
        ":",
        "inv,",
        ",inv",
        "inv,,inv",
        "inv:",
        "inv::",
        "inv:=",
        "inv:=x",
        "inv:a=",
        "=",
        '"',
        '"inv',
        'inv"',
        '""',
    ],
)
def test_an_empty_part_is_named(spec: str) -> None:
    with pytest.raises(UsageError) as raised:
        Pipeline.parse(spec)
    assert raised.value.id in ("bad-spec", "unknown-transform", "unknown-parameter")


@laws
@given(st.text('inv,:="a~@ \0\ud800syn', max_size=30))
def test_any_text_is_a_spec_or_a_clear_error(spec: str) -> None:
    only_clear_errors(spec)


@pytest.mark.parametrize("name", ["inv", "trans", "perm"])
def test_a_pipeline_of_10000_transforms(name: str) -> None:
    assert len(Pipeline.parse(",".join([name] * 10_000)).transforms) == 10_000
    if name != "perm":
        assert derive("He did it .", ",".join([name] * 1_000)).words == ["He", "did", "it", "."]


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("prefix", ["", "stanza:", "spacy:", "english:"])
def test_a_parser_of_any_name(prefix: str, value: str) -> None:
    with pytest.raises(DerivlangError) as raised:
        find_parser(prefix + value, "en")
    assert len(str(raised.value).encode()) < 5000


def test_the_command_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A b .\n")
    ran = run("make", "--t", f"syn:{'a' * 300}", tmp_path / "a.txt", "-o", tmp_path / "out", code=2)
    assert "[unknown-grammar]" in ran.err
    assert not (tmp_path / "out").exists()
    ran = run("make", "--t", "syn", "--parser", "a" * 300, tmp_path / "a.txt", "-o", tmp_path / "out", code=2)
    assert "[unknown-parser]" in ran.err


FLOATS = [
    (kind, field.name)
    for kind in (*map(find_transform, transform_names()), *map(find_objective, objective_names()))
    for field in dataclasses.fields(kind)
    if isinstance(field.default, float)
]


@pytest.mark.parametrize(("kind", "name"), FLOATS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_not_finite_is_refused_from_python_too(kind: type, name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{name}: must be"):
        kind(**{name: value})
