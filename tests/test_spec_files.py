"""Which files a spec may name: the user's own any, a visitor's none, that of a set or a run only its own copies."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.spec import FileText, Parameterised, any_file, no_file, param
from derivlang.explore import app
from derivlang.formats.spec_paths import FOLDER, files_of, named_files
from derivlang.grammar.grammar import shipped
from derivlang.pipeline import Pipeline
from derivlang.sources.generated.base import GENERATORS
from derivlang.store.manifest import NAME, Derived, dump, read_manifest
from derivlang.training.objectives.registry import find_objective, objective_names
from derivlang.transforms.registry import find_transform, transform_names
from tests.commands import make, run

SECRET = "a planted secret"
KINDS: list[type[Parameterised]] = [
    *map(find_transform, transform_names()),
    *map(find_objective, objective_names()),
    *map(GENERATORS.find, GENERATORS.names()),
]
TEXTS = [(kind, field) for kind in KINDS for field in fields(kind) if kind.declared()[field.name].is_text]
NAMING = [(kind, field.name) for kind, field in TEXTS if field.metadata["file"]]


def _id(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "name", str(value))


@pytest.mark.parametrize(("kind", "field"), TEXTS, ids=_id)
def test_every_text_parameter_declares_whether_it_names_files(kind: type[Parameterised], field: Any) -> None:
    assert field.metadata["file"] is not None


@pytest.mark.parametrize(("kind", "name"), NAMING, ids=_id)
def test_a_file_parameter_follows_the_policy(kind: type[Parameterised], name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "secret.txt")
    assert kind.bounded([], {name: path}, any_file) == ([], {name: path})
    with pytest.raises(UsageError, match="names a file"):
        kind.bounded([], {name: path}, no_file)
    for text in (path, "../../secret.txt", "secret.txt", "C:\\a\\secret.txt"):
        _, bounded = kind.bounded([], {name: text}, files_of(tmp_path / "set"))
        value = bounded[name]
        assert value == str(tmp_path / "set" / FOLDER / "secret.txt")
        assert isinstance(value, FileText)
        assert value.typed == text  # the spec, and so the fingerprint, stay as they were
    for known in kind.parameters():
        if known["name"] == name:
            for text in known["names"]:
                assert kind.bounded([], {name: text}, no_file) == ([], {name: text})


def test_an_undeclared_text_is_only_for_own_specs() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Old(Parameterised):
        """Of a package that declares nothing."""

        name = "old"
        text: str = param("", "some text", positional=True)

    assert Old.bounded(["a.txt"], {}, any_file) == (["a.txt"], {})
    for policy in (no_file, files_of(Path("set"))):
        with pytest.raises(UsageError, match="nothing declares"):
            Old.bounded(["a.txt"], {}, policy)


def test_a_value_with_several_grammars_names_each_file(tmp_path: Path) -> None:
    (tmp_path / "my~own.tsv").write_bytes(shipped()["hi"].read_bytes())
    inside = tmp_path / "a~b" / FOLDER
    inside.mkdir(parents=True)
    (inside / "own.tsv").write_bytes(shipped()["hi"].read_bytes())
    pipeline = Pipeline.from_stored("syn:fr@N~/other/place/own.tsv@V", files_of(inside.parent))
    assert str(pipeline) == "syn:fr@N~/other/place/own.tsv@V"
    assert named_files(pipeline.transforms[0]) == [inside / "own.tsv"]
    assert pipeline.fingerprint() != Pipeline.parse("syn:fr@N~ja@V").fingerprint()


def test_the_name_of_a_shipped_grammar_comes_before_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fr").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    assert Pipeline.parse("syn:fr", files=no_file).fingerprint() == Pipeline.parse("syn:fr").fingerprint()
    with pytest.raises(Exception, match="derivlang grammar"):
        Pipeline.parse("syn:./fr")


@pytest.mark.parametrize(
    "spec",
    ["lex:{}", "lex:file={}", "syn:{}", "syn:fr@N~{}@V", "syn:substrate={}", "inv,lex:{}", "dialect:nonce=1:words={}"],
)
def test_a_visitor_of_the_page_reads_no_file(spec: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"a\t{SECRET}\n")
    for path in (str(tmp_path / "secret"), "/proc/self/environ", "/etc/hosts", "../secret", "secret"):
        message, command = app.derived("a b .", spec.format(path), "space", files=False)
        assert "[spec-file]" in message
        assert SECRET not in message
        assert command == ""
    assert "<svg" in app.derived("a b .", "trans,perm:window=2", "space", files=False)[0]


def test_a_page_for_the_network_is_a_page_for_visitors() -> None:
    assert [app._is_loopback(host) for host in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert [app._is_loopback(host) for host in ("0.0.0.0", "::", "192.0.2.1", "a-host")] == [False] * 4


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """A set whose manifest a stranger has written: its spec names a file of this machine."""
    make("inv", "demo", tmp_path / "out")
    return tmp_path / "out"


def _forge(folder: Path, spec: str) -> None:
    (folder / NAME).write_text(dump({**read_manifest(folder), "spec": spec}), "utf-8")


@pytest.mark.parametrize("spec", ["lex:{}", "syn:{}", "syn:fr@N~{}@V", "inv,syn:substrate={}"])
def test_a_set_of_a_stranger_reaches_no_file_of_the_machine(spec: str, forged: Path, tmp_path: Path) -> None:
    secret, pipe = tmp_path / "secret", tmp_path / "pipe"
    secret.write_text(SECRET)
    os.mkfifo(pipe)
    for path in (secret, pipe, "../secret"):
        _forge(forged, spec.format(path))
        for command in (
            ["verify"],
            ["show", "-n", "1"],
            ["undo", "--split", "test"],
            ["export", "-o", tmp_path / "x.txt"],
        ):
            found = run(*map(str, command[:1]), str(forged), *map(str, command[1:]), code=1)
            assert SECRET not in found.out + found.err
            assert str(secret) not in found.err or str(path) == str(secret)
    (forged / FOLDER).mkdir()
    for place in (secret, pipe):
        (forged / FOLDER / "x").unlink(missing_ok=True)
        (forged / FOLDER / "x").symlink_to(place)
        _forge(forged, spec.format("x"))
        with pytest.raises(StoreError, match="a link or no regular file"):
            Derived(forged)
    (forged / FOLDER / "x").unlink()
    os.mkfifo(forged / FOLDER / "x")
    with pytest.raises(StoreError, match="a link or no regular file"):
        Derived(forged)


CONLLU = """\
1	She	she	PRON	_	_	2	nsubj	_	_
2	bought	buy	VERB	_	_	0	root	_	_
3	a	a	DET	_	_	5	det	_	_
4	red	red	ADJ	_	_	5	amod	_	_
5	car	car	NOUN	_	_	2	obj	_	_
6	.	.	PUNCT	_	_	2	punct	_	_

"""


def test_a_set_keeps_the_grammar_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU)
    grammar = tmp_path / "own.tsv"
    grammar.write_bytes(shipped()["hi"].read_bytes())
    monkeypatch.chdir(tmp_path)
    make("syn:own.tsv", "a.conllu", "out")
    grammar.unlink()
    run("verify", "out")
    make("inv", "out", "again")  # a set made of a set keeps it, too
    assert (tmp_path / "again" / FOLDER / "own.tsv").read_bytes() == shipped()["hi"].read_bytes()
    run("verify", "again")
    assert not (tmp_path / "out" / FOLDER / "hi.grammar.tsv").exists()
    (tmp_path / "out" / FOLDER / "own.tsv").write_bytes(shipped()["ja"].read_bytes())
    assert "fingerprint" in run("verify", "out", code=1).out
    (tmp_path / "out" / FOLDER / "own.tsv").unlink()
    assert "restore the file" in run("verify", "out", code=1).err


def test_two_grammars_of_one_name_are_refused(tmp_path: Path) -> None:
    for place, name in (("a", "hi"), ("b", "ja")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "own.tsv").write_bytes(shipped()[name].read_bytes())
    pipeline = Pipeline.parse(f"syn:{tmp_path}/a/own.tsv@N~{tmp_path}/b/own.tsv@V")
    with pytest.raises(UsageError, match="the same name"):
        pipeline.files_to_keep()
