"""`--device`: the same parses on a device as on the CPU, resumed or not, and one clear message for what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import DerivlangError
from derivlang.engine.events import Events
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import parse as run_parse
from derivlang.parsing import registry
from derivlang.parsing.device import device_of
from derivlang.parsing.on_device import on_device
from derivlang.sources.request import SourceRequest
from tests.commands import TREES, run, snapshot, written
from tests.helpers import manifest

torch = pytest.importorskip("torch")

TEXT = "".join(f"The old man saw {n} cats near the garden .\nShe reads , and nobody has seen it .\n" for n in range(40))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DERIVLANG_PARSES", str(tmp_path / "parses"))
    written(tmp_path / "a.train.tokens", TEXT)


@pytest.fixture
def _inexact(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Devices whose scores differ from those of the CPU."""
    registry._load_on.cache_clear()
    monkeypatch.setattr("derivlang.parsing.on_device.same_scores", lambda one, other: False)
    yield
    registry._load_on.cache_clear()


def parse(out: str = "", **options: Any) -> dict[str, Any]:
    """Parse the text in this process."""
    events = options.pop("events", Events())
    return run_parse(SourceRequest("a.train.tokens"), MakeOptions(Path(out), **options), events)


def without_versions(folder: Path) -> dict[str, Any]:
    found = manifest(folder)
    return {name: value for name, value in found.items() if name not in ("versions", "card", "sha256")}


def test_parses_on_a_device_are_those_of_the_cpu(tmp_path: Path) -> None:
    for device in (None, "cpu"):
        parse(f"out-{device}", device=device, shard_tokens=300)
    ours, theirs = (Path(f"out-{device}") for device in ("cpu", None))
    data = [{name: data for name, data in snapshot(out).items() if "/" in name} for out in (ours, theirs)]
    assert len(data[0]) > 1
    assert data[0] == data[1]
    assert without_versions(ours) == without_versions(theirs)
    versions = manifest(ours)["versions"]
    assert versions.pop("device") == "cpu"
    assert versions.pop("torch").startswith(torch.__version__.partition("+")[0])
    assert versions == manifest(theirs)["versions"]


class StopError(Exception):
    pass


def test_a_parse_begun_on_the_cpu_goes_on_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(result: Any) -> None:
        raise StopError

    monkeypatch.setattr("derivlang.engine.parse.SHARD_TOKENS", 300)
    parse("whole")
    with pytest.raises(StopError):
        parse("out", events=Events(done=stop))
    done = []
    parse("out", device="cpu", events=Events(done=done.append))
    assert 0 < len(done) < len(manifest(Path("whole"))["splits"]["train"]["shards"])
    assert without_versions(Path("out")) == without_versions(Path("whole"))


def test_make_finds_what_parse_has_found_on_a_device() -> None:
    run("parse", "a.train.tokens", "--device", "cpu")
    before = snapshot(Path("parses"))
    run("make", "--t", "syn:fr", "a.train.tokens", "-o", "out", "--workers", 2)
    assert snapshot(Path("parses")) == before


@pytest.mark.usefixtures("_inexact")
def test_parses_of_a_device_that_computes_otherwise_are_kept_apart() -> None:
    warned: list[str] = []
    parse()
    parse(device="cpu", events=Events(warn=warned.append))
    folders = sorted(Path("parses").iterdir())
    assert len(folders) == 2
    first, second = (manifest(folder) for folder in folders)
    assert first["parser"]["fingerprint"] != second["parser"]["fingerprint"]
    assert ["scores on cpu differ from scores on the CPU" in message for message in warned] == [True]


@pytest.mark.usefixtures("_inexact")
def test_shards_of_such_a_device_and_of_the_cpu_do_not_mix() -> None:
    def stop(result: Any) -> None:
        raise StopError

    with pytest.raises(StopError):
        parse("out", events=Events(done=stop), shard_tokens=300)
    with pytest.raises(DerivlangError) as caught:
        parse("out", device="cpu", shard_tokens=300, events=Events(warn=print))
    assert caught.value.id == "other-plan"


def test_scores_on_both() -> None:
    written(Path("fr-ud-test.conllu"), TREES)
    alone = run("parser", "score", "english", "fr-ud-test.conllu", "--json").json
    both = run("parser", "score", "english", "fr-ud-test.conllu", "--json", "--device", "cpu").json
    on = both.pop("device")
    assert both == alone
    assert on.pop("differ") == {"UPOS": 0, "heads": 0, "relations": 0}
    assert on.pop("device") == "cpu"
    assert on.pop("torch") == torch.__version__
    assert on == alone
    told = run("parser", "score", "english", "fr-ud-test.conllu", "--device", "cpu").out
    assert "on cpu, torch " in told
    assert "words that differ: UPOS 0.0000 %, heads 0.0000 %, relations 0.0000 %" in told


# bad input


@pytest.mark.parametrize("command", [("parse",), ("make", "--t", "syn:fr")])
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--device", "tpu"), 2, "there is no device 'tpu'"),
        (("--device", ""), 2, "there is no device ''"),
        (("--device", "cuda:99"), 2, "there is no device 'cuda:99'"),
        (("--device", "mps"), 2, "there is no device 'mps'"),
        (("--device", "meta"), 2, "there is no device 'meta'"),
        (("--device", "cpu", "--workers", "2"), 2, "one process parses on a device, so --workers 2 cannot be used"),
        (("--device", "cpu", "--engine", "dask:x"), 2, "one process parses on a device, so --engine dask:x cannot"),
        (("--device", "cpu", "--parser", "chain"), 2, "the parser 'chain' is not a model of derivlang"),
    ],
)
@pytest.mark.usefixtures("plugins")
def test_what_is_refused(command: tuple[str, ...], options: tuple[str, ...], code: int, said: str) -> None:
    ran = run(*command, "a.train.tokens", "-o", "out", *options, code=code)
    assert ran.err.startswith(f"derivlang: --device: {said}")
    assert len(ran.err) < 400
    assert not Path("out").exists()
    assert not Path("parses").exists()


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    registry._load_on.cache_clear()
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = run("parse", "a.train.tokens", "--device", "cuda", code=1)
    assert "the device 'cuda' needs torch, which is not installed [missing-package]" in ran.err
    assert "pip install 'derivlang[train]'" in ran.err


def test_a_device_loads_a_model_once() -> None:
    registry._load_on.cache_clear()
    assert registry.find_parser(None, "en", "cpu") is registry.find_parser("english", "en", "cpu")
    assert registry.find_parser(None, "en") is not registry.find_parser(None, "en", "cpu")


@pytest.mark.gpu
def test_a_parser_on_a_gpu_is_the_one_of_the_cpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("there is no accelerator")
    parser = on_device(registry.find_parser(None, "en"), "cuda")
    assert parser.is_exact
    assert torch.cuda.get_device_name(device_of("cuda")) in parser.device["device"]
    assert json.dumps(dict(parser.device))
