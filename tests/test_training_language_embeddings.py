"""Language embeddings of an encoder without token types: of the states, in a folder, exported, in a whole run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, PreTrainedTokenizerFast

from derivlang.core.errors import StoreError
from derivlang.evaluation.export import export_model
from derivlang.evaluation.trained import PretrainedRun
from derivlang.training.checkpoint import load_model
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.own_parts import has_own, restore
from tests.commands import run
from tests.training import built, loader, micro_of, model_of, weights
from tests.training import trained as trained_here

CPU = torch.device("cpu")


def test_they_are_added_before_the_first_norm() -> None:
    model = model_of("modernbert", language_ids=True).base()
    batch = micro_of(loader("xlm"))["rows"]
    assert set(batch.language.flatten().tolist()) == {SOURCE, DERIVED}
    added = model.embeddings[batch.input_ids] + model.language_embeddings[batch.language]
    found = model.states(batch, 0)
    expected = model.module.embeddings.norm(added)
    inside = batch.attention
    torch.testing.assert_close(found[inside], expected[inside])
    one = model(batch.input_ids, batch.attention, DERIVED)
    assert not torch.equal(one, model(batch.input_ids, batch.attention, SOURCE))


def test_other_weights_are_those_of_a_model_without_them() -> None:
    """So that two objectives begin alike, whether or not they are told the language."""
    one, two = (built("modernbert", language_ids=ids).state_dict() for ids in (True, False))
    assert set(one) - set(two) == {"model.language_embeddings.weight"}
    assert all(torch.equal(one[name], two[name]) for name in two)


def test_models_with_token_types_have_none_of_these() -> None:
    assert not any("language_embeddings" in name for name in built("roberta", language_ids=True).state_dict())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of tiny with language ids, which DICT-MLM has by default."""
    out = tmp_path_factory.mktemp("run") / "run"
    given = "--source demo --t trans,inv --vocab-size 300 --steps 4 --objective dict-mlm:condition=yes".split()
    run("pretrain", *given, "-o", out)
    return out


def test_a_run_keeps_them(trained: Path) -> None:
    record = json.loads((trained / "run.json").read_text())
    assert record["model"]["language_ids"] is True
    model = PretrainedRun.load(trained).language_model(CPU)
    saved = load_file(trained / "model" / "model.safetensors")
    assert torch.equal(model.language_embeddings, saved["model.language_embeddings.weight"])
    run("evaluate", trained, "--measure", "alignment,perplexity", "--pairs", 4)


def test_a_folder_without_them_is_refused(trained: Path, tmp_path: Path) -> None:
    lm = load_model(trained / "model")
    lm.save_pretrained(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    save_file({n: t for n, t in saved.items() if "language" not in n}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(StoreError, match="its language embeddings are missing"):
        load_model(tmp_path)


@pytest.mark.parametrize("language", [SOURCE, DERIVED])
def test_an_exported_model_is_told_by_its_embeddings(language: int, trained: Path, tmp_path: Path) -> None:
    """`transformers` alone gives the logits that the model has for this language."""
    ours = PretrainedRun.load(trained)
    export_model(ours, language, tmp_path / "out")
    theirs: Any = AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    assert isinstance(PreTrainedTokenizerFast.from_pretrained(tmp_path / "out"), PreTrainedTokenizerFast)
    ids = torch.arange(20, 40)[None]
    model = ours.language_model(CPU)
    expected = model.predict(model(ids, torch.ones_like(ids, dtype=torch.bool), language).flatten(0, 1))
    with torch.no_grad():
        torch.testing.assert_close(theirs(input_ids=ids).logits[0], expected)
    assert not theirs.config.tie_word_embeddings


def test_nothing_is_folded_or_restored_where_there_are_none(tmp_path: Path) -> None:
    lm = built("roberta", language_ids=True)
    assert not has_own(lm)
    restore(lm, tmp_path)
    restore(built("modernbert"), tmp_path)


def test_a_run_goes_on_from_a_checkpoint_with_them(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def logged(step: int, entry: dict[str, Any]) -> None:
        if step == 4:
            raise Stop

    options: dict[str, Any] = {"steps": 6, "language_ids": True}
    trained_here(tmp_path / "whole", "dict-tlm", **options)
    with pytest.raises(Stop):
        trained_here(tmp_path / "run", "dict-tlm", logged=logged, **options)
    trained_here(tmp_path / "run", "dict-tlm", resume=True, **options)
    one, two = (weights(tmp_path / name / "model") for name in ("run", "whole"))
    assert "model.language_embeddings.weight" in two
    assert all(torch.equal(one[key], two[key]) for key in two)
