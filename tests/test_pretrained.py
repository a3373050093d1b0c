"""Checkpoints of strangers: whatever they hold, none of their code runs, and the error names what was found."""

from __future__ import annotations

import ast
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from derivlang.core.errors import DerivlangError
from derivlang.evaluation.trained import PretrainedRun
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.training import checkpoint as checkpoints
from derivlang.training.begun_from import config_of, load_model
from tests.checkpoints import checkpoint
from tests.commands import run
from tests.helpers import ROOT, Touching

RAN = "ran"  # the file that the stranger's code writes
CODE = """\
from pathlib import Path
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast
Path({ran!r}).write_text("")
class Config(BertConfig): model_type = "strange"
class Model(BertForMaskedLM): config_class = Config
class Words(PreTrainedTokenizerFast): pass
"""
MODEL = {"AutoConfig": "strange.Config", "AutoModel": "strange.Model", "AutoModelForMaskedLM": "strange.Model"}
WORDS = {"AutoTokenizer": [None, "strange.Words"]}
# How a checkpoint asks for code: a config, what it says, and what the error names.
ASKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a type of its own": ("config.json", {"model_type": "strange", "auto_map": MODEL}, "class Config of strange.py"),
    "a known type": ("config.json", {"auto_map": MODEL}, "class Model of strange.py"),
    "in a repository": ("config.json", {"auto_map": {"AutoModel": "me/it--m.Model"}}, "class Model of m.py in me/it"),
    "for a part": ("config.json", {"text_config": {"auto_map": MODEL}}, "class Model of strange.py"),
    "a kernel": ("config.json", {"attn_implementation": "me/kernel:attention"}, "me/kernel:attention"),
    "a tokenizer": ("tokenizer_config.json", {"auto_map": WORDS}, "class Words of strange.py"),
    "generation": ("generation_config.json", {"auto_map": MODEL}, "class Config of strange.py"),
    "another version": ("config.4.0.0.json", {"auto_map": MODEL}, "class Config of strange.py"),
}  # fmt: skip
LOADERS: dict[str, Callable[[Path], Any]] = {
    "config": lambda folder: config_of(folder, "mine"),
    "model to begin from": lambda folder: load_model(folder, causal=False),
    "model of a run": checkpoints.load_model,
    "tokenizer": ForeignTokenizer.load,
    "encoder": lambda folder: PretrainedRun.of_checkpoint(folder).encoder(torch.device("cpu")),
}


def strange(folder: Path, file: str, more: dict[str, Any], ran: Path) -> Path:
    """A checkpoint with a config that says more, and a module that writes the file `ran` when it is imported."""
    shutil.copytree(checkpoint("bert"), folder)
    before = json.loads((folder / file).read_text("utf-8")) if (folder / file).exists() else {}
    (folder / file).write_text(json.dumps(before | more), "utf-8")
    (folder / "strange.py").write_text(CODE.format(ran=str(ran)), "utf-8")
    (folder / "custom_generate").mkdir()
    shutil.copy(folder / "strange.py", folder / "custom_generate" / "generate.py")
    return folder


@pytest.fixture
def yes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answers every question with yes, as `yes |` does, and notes it."""
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question="": asked.append(question) or "y")
    return asked


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("ask", ASKS)
def test_no_code_of_a_checkpoint_runs(ask: str, loader: str, tmp_path: Path, yes: list[str]) -> None:
    file, more, named = ASKS[ask]
    folder = strange(tmp_path / "checkpoint", file, more, tmp_path / RAN)
    with pytest.raises(DerivlangError) as caught:
        LOADERS[loader](folder)
    assert not (tmp_path / RAN).exists()
    assert not yes
    assert (caught.value.id, caught.value.where) == ("checkpoint-code", str(folder / file))
    assert named in caught.value.what


@pytest.mark.parametrize(
    "command",
    [
        ("pretrain", "--source", "demo", "--t", "inv", "--steps", 1, "--init"),
        ("pretrain", "--source", "demo", "--t", "inv", "--steps", 1, "--tokenizer"),
        ("evaluate", "--source", "demo", "--t", "inv", "--measure", "alignment", "--init"),
    ],
    ids=lambda command: f"{command[0]} {command[-1]}",
)
def test_commands_ask_nothing_and_write_nothing(command: tuple[Any, ...], tmp_path: Path, yes: list[str]) -> None:
    _, more, named = ASKS["a tokenizer"]
    folder = strange(tmp_path / "checkpoint", "tokenizer_config.json", more, tmp_path / RAN)
    found = run(*command, folder, "-o", tmp_path / "out", code=1)
    assert not yes
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint"}
    assert named in found.err
    assert "[checkpoint-code]" in found.err


def _pickle(path: Path, ran: Path) -> None:
    path.write_bytes(pickle.dumps({"weight": Touching(ran)}))


def _archive(path: Path, ran: Path) -> None:
    torch.save({"weight": Touching(ran)}, path)


@pytest.mark.parametrize("write", [_pickle, _archive])
@pytest.mark.parametrize("loader", ["model to begin from", "model of a run", "encoder"])
def test_pickled_weights_run_no_code(
    loader: str, write: Callable[[Path, Path], None], tmp_path: Path, yes: list[str]
) -> None:
    folder = tmp_path / "checkpoint"
    shutil.copytree(checkpoint("bert"), folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert LOADERS[loader](folder) is not None
    write(folder / "pytorch_model.bin", tmp_path / RAN)
    with pytest.raises(DerivlangError) as caught:
        LOADERS[loader](folder)
    assert caught.value.id == "model"
    assert not (tmp_path / RAN).exists()


# The source of the package

SAFE = {"torch": ("weights_only", True), "np": ("allow_pickle", False)}  # arguments of their `load`
UNPICKLERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def _has(call: ast.Call, name: str, value: bool) -> bool:
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is value for k in call.keywords)


def test_every_loading_call_of_the_package_says_that_no_code_runs() -> None:
    found = set()
    for path in sorted((ROOT / "derivlang").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not UNPICKLERS & {name.name for name in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in UNPICKLERS, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                if node.func.attr == "from_pretrained":
                    assert path.name == "pretrained.py", f"{path}:{node.lineno}: use lexical/pretrained.py"
                    assert _has(node, "trust_remote_code", False)
                elif node.func.attr == "load" and owner in SAFE:
                    assert _has(node, *SAFE[owner]), f"{path}:{node.lineno}"
                else:
                    continue
                found.add(owner)
    assert found >= {"kind", "torch", "np"}
