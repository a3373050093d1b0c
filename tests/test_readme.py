"""What the README says is what happens: its first command prints its first output, its samples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import derivlang
from derivlang.sources.named import named_sources
from derivlang.transforms.registry import find_transform, transform_names
from derivlang.transforms.scripts import script_names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    """The texts of the fenced blocks of this kind."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == kind]


def test_first_command_prints_the_first_output(tmp_path: Path) -> None:
    command = re.search(r"^pip install \. && derivlang (.*)$", README, re.MULTILINE)
    assert command is not None
    done = subprocess.run(
        [sys.executable, "-m", "derivlang", *command[1].split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    shown = blocks("")[1]
    printed = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("demo."))
    assert printed == shown
    assert done.stderr == f"derivlang: writing to demo.trans-inv{os.sep}\n"


def test_picture_is_what_show_prints() -> None:
    result = derivlang.derive("Welcome to ACL .", "trans,inv")
    picture = blocks("")[0]
    assert " ".join(result.source) in picture
    assert result.text in picture
    for place, (word, source) in enumerate(zip(result.words, result.order, strict=True)):
        assert re.search(rf"{place} {re.escape(word)} +<- +{source} {re.escape(result.source[source])}", picture)


def test_python_sample() -> None:
    sample = next(block for block in blocks("python") if "derive(" in block)
    shown = re.search(r"# (DerivedText\(.*?\))\n\n", sample.replace("\n#            ", ""), re.DOTALL)
    assert shown is not None
    assert eval(shown[1], {"DerivedText": derivlang.DerivedText}) == derivlang.derive("Welcome to ACL .", "trans,inv")


def test_own_transform_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from derivlang.transforms import registry

    monkeypatch.setattr(registry.TRANSFORMS, "added", {})
    sample = next(block for block in blocks("python") if "class Rotate" in block)
    names: dict[str, object] = {}
    exec(compile(sample, "README.md", "exec"), names)
    derivlang.register(names["Rotate"])  # type: ignore[arg-type]
    assert derivlang.derive("a b c d .", "rotate:2").text == "c d a b ."


def test_own_objective_sample_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from derivlang.sources.find import SourceRequest
    from derivlang.training.config import ModelConfig
    from derivlang.training.objectives import registry
    from derivlang.training.run import pretrain
    from derivlang.training.settings import TrainingSettings, Where

    monkeypatch.setattr(registry.OBJECTIVES, "added", {})
    sample = next(block for block in blocks("python") if "class Small" in block)
    names: dict[str, object] = {}
    exec(compile(sample, "README.md", "exec"), names)
    registry.register_objective(names["Small"])  # type: ignore[arg-type]
    model_config = ModelConfig.read("tiny")
    asked = {**model_config.training, "vocab_size": 300, "steps": 3}
    settings = TrainingSettings(source="demo", spec="trans,inv", objective="small:0.5", model="tiny", **asked)
    found = pretrain(settings, SourceRequest("demo"), Where(tmp_path / "run"), model_config=model_config)
    assert set(found["parts"]) == {"mlm", "size"}
    assert found["loss"] == pytest.approx(found["parts"]["mlm"] + 0.5 * found["parts"]["size"], rel=1e-4)


@pytest.mark.parametrize("name", transform_names())
def test_every_transform_and_parameter_is_in_the_table(name: str) -> None:
    row = next(line for line in README.splitlines() if line.startswith(f"| `{name}` |"))
    assert all(f"`{p['name']}`" in row for p in find_transform(name).parameters())


def test_scripts_and_sources_are_named() -> None:
    assert all(name in README for name in script_names())
    data = (ROOT / "data" / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in data for name in named_sources())


def test_every_command_is_shown() -> None:
    from derivlang.cli.main import COMMANDS

    assert all(f"derivlang {name}" in README for name in COMMANDS)
