"""Runs that begin with the weights of another one: what is kept, changed and frozen, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import DerivlangError, UsageError
from derivlang.training.begun_from import model_of
from derivlang.training.config import ModelConfig
from derivlang.training.init_weights import init_model, init_of
from derivlang.training.languages import TOKENIZER
from derivlang.training.masking import LanguageIds
from derivlang.training.model import freeze, is_tied
from derivlang.training.settings import RunPaths
from tests.tiny_runs import seal
from tests.training import built, log, model_file, pair, settings, trained, weights

KINDS = ["modernbert", "roberta", "bert"]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with checkpoints at 3 and 6."""
    run = tmp_path_factory.mktemp("first") / "run"
    trained(run, "mlm", keep=9)
    return run


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("second") / "run"
    trained(run, "mlm", seed=2)
    return run


def begun(init: Path | str, **changes: Any) -> Any:
    """The model that a run would begin with."""
    wanted = settings(**changes)
    facts = init_of(RunPaths(run=Path("run"), init=str(init)), wanted, None, causal=False)
    assert facts is not None
    return init_model(facts, wanted, ModelConfig.read(wanted.model), pair().languages, 32)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
    assert set(one) == set(other)
    return {name for name, value in one.items() if torch.equal(value, other[name])}


def test_the_weights_of_a_run_or_of_a_step(first: Path) -> None:
    for init, folder in ((first, first / "model"), (f"{first}@3", first / "checkpoints" / "step-00000003" / "model")):
        saved, found = weights(folder), begun(init).state_dict()
        assert all(torch.equal(found[name], value) for name, value in saved.items())
    three, six = (begun(f"{first}@{step}").state_dict() for step in (3, 6))
    assert same(six, begun(first).state_dict()) == set(six)
    assert same(three, six) != set(six)


def test_a_run_goes_on_from_another(first: Path, tmp_path: Path) -> None:
    """Its loss is lower from the first step, its rows and masks are others, and run.json says where it began."""
    new, begins = (trained(tmp_path / name, "mlm", log_every=1, **more) for name, more in
                   (("new", {}), ("begins", {"init": str(first)})))  # fmt: skip
    ours, theirs = log(tmp_path / "begins"), log(tmp_path / "new")
    assert ours[0]["loss"] < theirs[0]["loss"]
    assert [e["tokens"] for e in ours] != [e["tokens"] for e in theirs]
    record = json.loads((tmp_path / "begins" / "run.json").read_text())
    assert record["init"]["run"] == str(first)
    assert record["init"]["weights"] == json.loads((first / "run.json").read_text())["weights"]
    assert begins["fingerprint"] != new["fingerprint"]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_causal_run_goes_on_from_another(kind: str, tmp_path: Path) -> None:
    first = tmp_path / "first"
    trained(first, "clm", kind=kind, tie=False)
    wanted: dict[str, Any] = {"objective": "clm", "kind": kind, "tie": False}
    saved = weights(first / "model")
    assert same(saved, begun(first, **wanted).state_dict()) == set(saved)
    anew = same(saved, begun(first, **wanted, embeddings="new").state_dict())
    assert {name for name in saved if saved[name].shape[0] == pair().languages.size} == set(saved) - anew
    result = trained(tmp_path / "second", "clm", kind=kind, tie=False, init=str(first), freeze="embeddings")
    assert set(result["parts"]) == {"clm"}
    embeddings = "transformer.wte.weight" if kind == "gpt2" else "model.embed_tokens.weight"
    assert embeddings in same(saved, weights(tmp_path / "second" / "model"))
    with pytest.raises(UsageError, match=f"of the type {kind}, but --model .* is modernbert"):
        trained(tmp_path / "third", "mlm", init=str(first))


@pytest.mark.parametrize("more", [{}, {"embeddings": "new", "freeze": "encoder"}, {"embeddings": "permute"}])
def test_an_interrupted_run_goes_on_without_the_first(first: Path, tmp_path: Path, more: dict[str, str]) -> None:
    gone = tmp_path / "gone"
    shutil.copytree(first, gone)
    whole = trained(tmp_path / "whole", "mlm", init=str(gone), **more)
    stopped = tmp_path / "stopped"

    def stop(step: int, entry: dict[str, Any]) -> None:
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(stopped, "mlm", init=str(gone), logged=stop, **more)
    shutil.rmtree(gone)
    assert trained(stopped, "mlm", init=str(gone), resume=True, **more)["loss"] == whole["loss"]
    assert same(weights(stopped / "model"), weights(tmp_path / "whole" / "model")) == set(weights(stopped / "model"))


def test_the_first_run_changed_before_the_end(first: Path, second: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    shutil.copytree(first, gone)

    def stop(step: int, entry: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run", "mlm", init=str(gone), logged=stop, log_every=1)
    shutil.copytree(second / "model", gone / "model", dirs_exist_ok=True)
    seal(gone)
    with pytest.raises(DerivlangError, match="has other weights than when this run began"):
        trained(tmp_path / "run", "mlm", init=str(gone), resume=True, log_every=1)


def test_another_beginning_is_another_run(first: Path, second: Path, tmp_path: Path) -> None:
    trained(tmp_path / "run", "mlm", init=str(first))
    with pytest.raises(DerivlangError, match=r"init is .*first.*, not .*second"):
        trained(tmp_path / "run", "mlm", init=str(second), resume=True)
    with pytest.raises(DerivlangError, match=r"init is .*, not given now"):
        trained(tmp_path / "run", "mlm", resume=True)


# embeddings


def rows() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The ids of special tokens, and those of both languages."""
    own = np.concatenate(LanguageIds.of(pair().languages).own)
    return np.setdiff1d(np.arange(pair().languages.size), own), np.sort(own)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("how", ["new", "permute"])
def test_embeddings_change_and_nothing_else_does(how: str, tie: bool, first: Path) -> None:
    kept, changed = begun(first, tie=tie), begun(first, tie=tie, embeddings=how)
    assert is_tied(changed) == tie
    names = {name for name in kept.state_dict() if name not in same(kept.state_dict(), changed.state_dict())}
    assert all("embed" in name or "decoder" in name for name in names)
    special, own = rows()
    before, after = (m.get_input_embeddings().weight.detach().numpy() for m in (kept, changed))
    assert (before[special] == after[special]).all()
    if how == "new":
        assert not (before[own] == after[own]).any()
        assert after[own].std() == pytest.approx(0.1, rel=0.1)
    else:
        for language in LanguageIds.of(pair().languages).own:
            assert sorted(map(tuple, before[language])) == sorted(map(tuple, after[language]))
            assert (before[language] == after[language]).all(axis=1).mean() < 0.1
    if not tie:
        outputs = [m.get_output_embeddings().weight.detach().numpy() for m in (kept, changed)]
        assert (outputs[0][special] == outputs[1][special]).all()
        assert not (outputs[0][own] == outputs[1][own]).all(axis=1).any() or how != "new"
        if how == "permute":  # one permutation for both
            moved = {tuple(a): tuple(b) for a, b in zip(before[own], outputs[0][own], strict=True)}
            assert all(moved[tuple(a)] == tuple(b) for a, b in zip(after[own], outputs[1][own], strict=True))


def test_new_embeddings_fit_another_tokenizer(first: Path, tmp_path: Path) -> None:
    """MonoTrans: the body of a model under new embeddings of another size, alone trained."""
    found = trained(tmp_path / "run", "mlm", init=str(first), embeddings="new", freeze="encoder",
                    vocab_size=350, data=tmp_path / "data")  # fmt: skip
    before, after = weights(first / "model"), weights(tmp_path / "run" / "model")
    size = 2 * 350 - pair().languages.tokenizer.n_special
    assert after["model.embeddings.tok_embeddings.weight"].shape == (size, 16)
    body = [name for name in before if ".layers." in name]
    assert body
    assert all(torch.equal(before[name], after[name]) for name in body)
    assert np.isfinite(found["loss"])


def test_a_run_with_another_tokenizer_is_refused(first: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the tokenizer of .* is another one"):
        trained(tmp_path / "run", "mlm", init=str(first), vocab_size=350, data=tmp_path / "data",
                tokenizer=other_tokenizer(tmp_path))  # fmt: skip
    with pytest.raises(UsageError, match=r"the twin of .* is another one"):
        trained(tmp_path / "run", "mlm", spec="trans:script=greek,inv", init=str(first), data=tmp_path / "greek")


def test_force_does_not_remove_what_the_run_begins_from(first: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(first, run)
    for changes in (
        {"init": str(run)},
        {"init": f"{run}@3"},
        {"tokenizer": run / TOKENIZER},
    ):
        with pytest.raises(UsageError, match="would be removed with the old run, but the new run needs it"):
            trained(run, "mlm", force=True, **changes)
        assert (run / TOKENIZER / "tokenizer.json").exists()
        assert (run / "model").exists()
    trained(run, "mlm", force=True, init=str(first))


def test_language_ids_for_a_model_without_them(first: Path) -> None:
    """The user may not have given them: an objective such as tlm asks for them."""
    with pytest.raises(UsageError, match="give --no-language-ids"):
        begun(first, language_ids=True)


def other_tokenizer(folder: Path) -> Path:
    from derivlang.lexical.settings import TokenizerOptions
    from derivlang.lexical.train import train
    from derivlang.sources.request import SourceRequest

    train(SourceRequest("demo"), folder / "tokenizer", TokenizerOptions(vocab_size=350))
    return folder / "tokenizer"


# frozen parts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parts", "still"),
    [
        ("embeddings", lambda name: "tok_embeddings" in name or "word_embeddings" in name),
        ("layers=0", lambda name: ".layers.0." in name or ".layer.0." in name),
        ("embeddings,layers=0-0", lambda name: "_embeddings.weight" in name or "layer" in name),
    ],
)
def test_frozen_parts_stay_as_they_are(kind: str, parts: str, still: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    trained(run, "mlm", kind=kind, freeze=parts, keep=9)
    three, six = (weights(run / "checkpoints" / f"step-0000000{step}" / "model") for step in (3, 6))
    stayed = same(three, six)
    frozen = {name for name in three if still(name)}
    assert frozen & stayed
    names = {n for n, p in frozen_names(kind, parts)}
    assert {name for name in names if name in three} <= stayed
    assert stayed < set(three)


def frozen_names(kind: str, parts: str) -> list[tuple[str, torch.nn.Parameter]]:
    model = built(kind)
    freeze(model, parts)
    return [(name, p) for name, p in model.named_parameters() if not p.requires_grad]


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_encoder_leaves_embeddings_and_head(kind: str) -> None:
    model = built(kind)
    left = freeze(model, "encoder")
    inside = {id(p) for p in model.get_input_embeddings().parameters()}
    assert left == sum(p.numel() for p in model.parameters() if p.requires_grad) > 0
    for parameter in model.base_model.parameters():
        assert parameter.requires_grad == (id(parameter) in inside)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"freeze": "layer"}, "did you mean layers=0-3"),
        ({"freeze": "layers=3-1"}, "layers=3-1 names no layer"),
        ({"embeddings": "newer"}, "must be keep or copy or new or permute"),
        ({"embeddings": "new"}, "there is no run to take the embeddings from"),
        ({"freeze": "layers=0-7"}, "the model has the layers 0 to 0"),
    ],
)
def test_wrong_values(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        trained(tmp_path / "run", "mlm", **changes)
    assert message in str(error.value)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_begun_from(first: Path, tmp_path: Path) -> None:
    with pytest.raises(DerivlangError, match="is not a run"):
        model_of(str(tmp_path))
    with pytest.raises(DerivlangError) as error:
        model_of(f"{first}@4")
    assert "there are: 3, 6" in str(error.value)
    damaged = tmp_path / "damaged"
    shutil.copytree(first, damaged)
    (damaged / "checkpoints" / "step-00000003" / "model" / "config.json").write_text("{}")
    with pytest.raises(DerivlangError, match="the checkpoint is damaged"):
        model_of(f"{damaged}@3")
    unfinished = tmp_path / "unfinished"
    shutil.copytree(first, unfinished)
    record = json.loads((unfinished / "run.json").read_text())
    (unfinished / "run.json").write_text(json.dumps({**record, "status": "stopped"}))
    seal(unfinished)
    with pytest.raises(DerivlangError, match="is not a finished run"):
        model_of(str(unfinished))
    for kind, message in (("roberta", "of the type modernbert"), ("modernbert", "has hidden_size = 16")):
        other = Path(model_file(kind)).read_text().replace("hidden_size = 16", "hidden_size = 32")
        (tmp_path / "other.toml").write_text(other)
        with pytest.raises(UsageError, match=message):
            begun(first, model=str(tmp_path / "other.toml"))
