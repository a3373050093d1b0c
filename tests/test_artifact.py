"""What is made in one go: kept if it is the same and whole, made again if a file is missing, refused with a reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import StoreError
from derivlang.core.messages import DerivlangWarning
from derivlang.lexical.settings import TokenizerOptions, TwinOptions
from derivlang.lexical.tokenizer import TOKENIZERS
from derivlang.lexical.train import train
from derivlang.lexical.twin import TWINS, make_twin
from derivlang.parsing.settings import ParserOptions
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import ArtifactKind
from derivlang.store.record import difference
from derivlang.training.parser import PARSER_FOLDERS, train_parser
from tests.commands import TREES, run
from tests.helpers import make

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
    max_leaves=4,
)
records = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(records, records)
def test_records_differ_exactly_if_a_wanted_field_does(recorded: dict[str, Any], wanted: dict[str, Any]) -> None:
    other = [name for name, value in wanted.items() if recorded.get(name) != value]
    told = difference(recorded, wanted)
    assert bool(told) == any(_plain(recorded.get(name)) != _plain(wanted[name]) for name in other)
    assert not told or any(told.startswith(name) for name in other)


def _plain(value: Any) -> Any:
    """A value without fields of objects that are null, which is the same as to lack them."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if _plain(one) is not None} if value else value
    return value


@pytest.mark.parametrize(
    ("recorded", "wanted", "told"),
    [
        ({"vocab_size": 60}, {"vocab_size": 70}, "vocab_size is 60, not 70"),
        ({"source": {"name": "demo"}}, {"source": {"name": "ptb"}}, "source.name is demo, not ptb"),
        ({}, {"limit": 3}, "limit was not given, and is 3 now"),
        ({"limit": 3}, {"limit": None}, "limit is 3, not given now"),
        ({"columns": ["a"]}, {"columns": ["b", "c"]}, "columns is a, not b, c"),
        ({"f": [{"name": "a", "sha256": "1"}]}, {"f": [{"name": "a", "sha256": "2"}]}, "a has changed since"),
        ({"files": [{"name": "a", "sha256": "1"}]}, {"files": [{"name": "b", "sha256": "1"}]}, "it is of a, not of b"),
        ({"dev": []}, {"dev": [{"name": "b", "sha256": "1"}]}, "dev is none, not b"),
        ({"hash": "1", "size": 1}, {"hash": "2", "size": 2}, "size is 1, not 2"),  # what can be read comes first
        ({"hash": "1"}, {"hash": "2"}, "it is another"),
        ({"derivlang": "0.1"}, {"derivlang": "0.2"}, ""),
    ],
)
def test_a_difference_is_named(recorded: dict[str, Any], wanted: dict[str, Any], told: str) -> None:
    assert difference(recorded, wanted, {"hash": "it is another"}) == told


@dataclass(frozen=True)
class Maker:
    """How an artifact is made. other: the same command with another setting. told: what its refusal says."""

    kind: ArtifactKind
    make: Callable[[Path], Any]
    other: Callable[[Path], Any]
    told: str


def _makers(folder: Path) -> dict[str, Maker]:
    text = folder / "a.train.tokens"
    if not text.exists():
        text.write_text("the cat sat .\nthe dog ran to the cat .\n" * 30, "utf-8")
        train(SourceRequest(str(text)), folder / "tok", TokenizerOptions(vocab_size=36))
        make_twin(folder / "tok", "trans", folder / "twin")
    tok, request = folder / "tok", SourceRequest(str(text))

    def twin(out: Path, options: TwinOptions = TwinOptions(), spec: str = "trans") -> Any:
        return make_twin(tok, spec, out, options)

    def parser(out: Path, epochs: int = 1) -> Any:
        return train_parser(bank, out, ParserOptions(epochs=epochs))

    bank = folder / "a.conllu"
    bank.write_text(TREES, "utf-8")
    return {
        "tokenizer": Maker(
            TOKENIZERS,
            lambda out: train(request, out, TokenizerOptions(vocab_size=36)),
            lambda out: train(request, out, TokenizerOptions(vocab_size=34)),
            "vocab_size is 36, not 34",
        ),
        "twin": Maker(TWINS, twin, lambda out: twin(out, spec="trans:script=greek"), "scripts is georgian, not greek"),
        "joint": Maker(TWINS, lambda out: twin(out, TwinOptions(joint=True)), twin, "joint.file is true, not false"),
        "overlap": Maker(
            TWINS,
            lambda out: twin(out, spec="trans:overlap=50"),
            lambda out: twin(out, spec="trans:overlap=25"),
            "spec is trans:",
        ),
        "parser": Maker(PARSER_FOLDERS, parser, lambda out: parser(out, 2), "epochs is 1, not 2"),
    }


TORCH = pytest.param("parser", marks=pytest.mark.skipif(not find_spec("torch"), reason="training needs torch"))
NAMES = ["tokenizer", "twin", "joint", "overlap", TORCH]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inputs")


@pytest.fixture
def maker(request: pytest.FixtureRequest, inputs: Path) -> Maker:
    return _makers(inputs)[request.param]


def contents(folder: Path) -> dict[str, bytes]:
    """The files of an artifact."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("maker", NAMES, indirect=True)
def test_an_artifact_is_kept_made_again_or_refused(maker: Maker, tmp_path: Path) -> None:
    out, kind = tmp_path / "out", maker.kind
    maker.make(out)
    whole = contents(out)
    files = set(kind.files(kind.read(out)))
    assert whole.keys() == {*files, kind.record}  # every file that is written is known to be part of it
    assert not [*kind.missing(out, kind.read(out))]
    maker.make(out)
    assert contents(out) == whole
    for name in sorted(files):
        (out / name).unlink()
        assert [*kind.missing(out, kind.read(out))] == [out / name]
        with pytest.warns(DerivlangWarning, match=f"{name} is missing; the {kind.noun} is made again"):
            maker.make(out)
        assert contents(out) == whole
    with pytest.raises(StoreError, match=f"holds another {kind.noun}: {maker.told}") as error:
        maker.other(out)
    assert str(error.value).startswith(f"{out}: ")
    assert contents(out) == whole
    (out / "notes.txt").write_text("mine")
    (out / next(iter(sorted(files)))).unlink()
    with pytest.warns(DerivlangWarning):
        maker.make(out)
    assert contents(out) == {**whole, "notes.txt": b"mine"}
    shutil.rmtree(out)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=f"holds something else, and no {kind.noun}"):
        maker.make(out)
    assert contents(out) == {"notes.txt": b"mine"}


@pytest.fixture(scope="module")
def derived(inputs: Path) -> Path:
    _makers(inputs)
    return make("trans,inv", inputs / "a.train.tokens", inputs / "set")


@pytest.mark.parametrize(
    ("words", "first", "other", "told"),
    [
        (["dict", "SET"], ["--coverage", 50], ["--coverage", 25], "is another dictionary: coverage is 50, not 25"),
        (
            ["pair", "SET", "--format", "pharaoh"],
            ["--rate", 50],
            ["--rate", 25],
            "is another choice of pairs: rate is 50",
        ),
        (
            ["pair", "SET", "--format", "text"],
            [],
            ["--seed", 2],
            "is another choice of pairs: seed is 1",
        ),
        (["export", "SET", "--format", "text"], [], ["--source"], "holds something else than this command writes"),
    ],
)
def test_a_file_of_other_settings_is_refused_without_force(
    words: list[str], first: list[Any], other: list[Any], told: str, derived: Path, tmp_path: Path
) -> None:
    command = [derived if word == "SET" else word for word in words] + ["-o", tmp_path / "out.txt"]
    run(*command, *first)
    whole = contents(tmp_path)
    run(*command, *first)
    assert contents(tmp_path) == whole
    refused = run(*command, *other, code=1).err
    assert told in refused
    assert "--force" in refused
    assert contents(tmp_path) == whole
    run(*command, *other, "--force")
    assert contents(tmp_path) != whole


@pytest.mark.parametrize("words", [["dict", "SET"], ["pair", "SET", "--format", "pharaoh"], ["dict", "check", "DICT"]])
def test_a_file_of_unknown_origin_is_refused_without_force(words: list[str], derived: Path, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("the la\ncat chat\n")
    places = {"SET": derived, "DICT": tmp_path / "given.txt"}
    out = tmp_path / "out.txt"
    out.write_text("mine")
    command = [places.get(word, word) for word in words] + ["-o", out]
    assert "[out-exists]" in run(*command, code=1).err
    assert out.read_text() == "mine"
    run(*command, "--force")
    assert out.read_text() != "mine"
