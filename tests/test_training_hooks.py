"""What an objective may add to a run: a state, and a hook after each step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from derivlang.core.errors import UsageError
from derivlang.training import run_folder as runs
from derivlang.training.batch import Step
from derivlang.training.checkpoint import load_model
from derivlang.training.doses import tokens_of
from derivlang.training.encoder import Encoder
from derivlang.training.objectives import registry
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.streams.base import Stream
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs
from derivlang.training.streams.switched import CodeSwitched
from tests.test_training_loop import Stop, same_runs, state, stopping
from tests.training import built, loader, log, pair, trained

CALLS: list[tuple[str, int]] = []


@dataclass(frozen=True, kw_only=True)
class Momentum(Objective):
    """Masked words, and embeddings that stay near their own moving average."""

    name = "momentum"

    def state(self, model: Encoder, context: Context) -> torch.nn.Module:
        out = torch.nn.Module()
        out.register_buffer("average", model.embeddings.detach().clone())
        return out

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        CALLS.append(("loss", micro.step))
        near = (model.embeddings - state.average * 0.5).pow(2).sum() * micro.share
        return {"mlm": masked_part(model, micro["rows"]), "near": LossPart(near, weight=0.1)}

    def after_step(self, model: Encoder, state: Any, step: int) -> None:
        assert not torch.is_grad_enabled()
        CALLS.append(("after", step))
        state.average.lerp_(model.embeddings, 0.25)


@dataclass(frozen=True, kw_only=True)
class Various(Objective):
    """Masks of some streams, and rows without masks."""

    name = "various"
    language_ids = True
    dictionary = "entries"

    def streams(self) -> tuple[Stream, ...]:
        return (
            Packed(),
            SentencePairs(views=2, links=True),
            CodeSwitched(share=0.5, masked=False),
        )

    def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
        out = {name: masked_part(model, micro[name]) for name in ("rows", "pairs", "pairs:2")}
        size = model.states(micro["switched"]).pow(2).sum()
        return {**out, "size": LossPart(size, micro["switched"].totals.rows, 1e-4)}


@pytest.fixture(autouse=True)
def _objectives(monkeypatch: pytest.MonkeyPatch) -> None:
    CALLS.clear()
    for objective in (Momentum, Various):
        monkeypatch.setitem(registry.OBJECTIVES.added, objective.name, objective)


# hooks


@pytest.mark.parametrize("accumulate", [1, 4])
def test_hooks_are_called_once_a_step(accumulate: int, tmp_path: Path) -> None:
    trained(tmp_path / "run", "momentum", accumulate=accumulate, steps=5)
    expected = [call for step in range(5) for call in [*[("loss", step)] * accumulate, ("after", step)]]
    assert expected == CALLS


def test_a_state_that_follows_the_model_by_hand(tmp_path: Path) -> None:
    """Of one step: the average moves a quarter of the way from the first embeddings to the next."""
    trained(tmp_path / "run", "momentum", steps=1)
    first = built().get_input_embeddings().weight.detach()
    then = load_model(tmp_path / "run" / "model").get_input_embeddings().weight.detach()
    found = state(tmp_path / "run", 1)["objective"]
    assert not torch.equal(first, then)
    torch.testing.assert_close(found["average"], first + 0.25 * (then - first))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_run_with_hooks_goes_on_bit_by_bit(accumulate: int, tmp_path: Path) -> None:
    options = {"steps": 10, "accumulate": accumulate}
    trained(tmp_path / "whole", "momentum", **options)
    for at in (2, 5, 10):
        with pytest.raises(Stop):
            trained(tmp_path / f"{at}", "momentum", logged=stopping(at), **options)
        CALLS.clear()
        trained(tmp_path / f"{at}", "momentum", resume=True, **options)
        begin = {2: 0, 5: 3, 10: 9}[at]
        assert [step for what, step in CALLS if what == "after"] == list(range(begin, 10))
        same_runs(tmp_path / "whole", tmp_path / f"{at}", 10)


def test_accumulating_with_hooks_changes_nothing(tmp_path: Path) -> None:
    for accumulate in (1, 4):
        trained(tmp_path / f"{accumulate}", "momentum", accumulate=accumulate)
    one, four = ([entry["loss"] for entry in log(tmp_path / name)] for name in ("1", "4"))
    assert four == pytest.approx(one, rel=1e-4)


# streams of several kinds


@pytest.mark.parametrize("accumulate", [1, 2])
def test_streams_of_several_kinds(accumulate: int, tmp_path: Path) -> None:
    """A part is the mean over the steps; the run goes on bit by bit."""
    options = {"steps": 10, "kind": "roberta", "dropout": 0.1, "accumulate": accumulate, "batch_size": 16}
    trained(tmp_path / "whole", "various", log_every=1, save_every=4, **options)
    each = {entry["step"]: entry for entry in log(tmp_path / "whole")}
    made = loader("various", parallel="25", batch_size=16)
    tokens = 0
    for (micro,) in made.steps(0, 10):
        parts = {"rows", "pairs", "pairs:2", "size"}
        entry = each[micro.step + 1]
        assert set(entry["parts"]) == parts
        tokens += sum(tokens_of(micro.counts).values())
        assert entry["tokens"] == tokens
        weights = {"size": 1e-4}
        whole = sum(weights.get(part, 1) * value for part, value in entry["parts"].items())
        assert entry["loss"] == pytest.approx(whole, rel=1e-5)
    trained(tmp_path / "some", "various", log_every=5, save_every=5, **options)
    for entry in log(tmp_path / "some"):
        steps = range(entry["step"] - 4, entry["step"] + 1)
        assert entry["loss"] == pytest.approx(sum(each[step]["loss"] for step in steps) / 5, rel=1e-5)
        for part, value in entry["parts"].items():
            some = [each[step]["parts"][part] for step in steps if part in each[step]["parts"]]
            assert value == pytest.approx(sum(some) / len(some), rel=1e-5)
    with pytest.raises(Stop):
        trained(tmp_path / "run", "various", log_every=1, save_every=4, logged=stopping(7), **options)
    trained(tmp_path / "run", "various", log_every=1, save_every=4, resume=True, **options)
    same_runs(tmp_path / "whole", tmp_path / "run", 10)


# a dictionary


def test_a_dictionary_that_is_read_is_in_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    @dataclass(frozen=True, kw_only=True)
    class Looks(Objective):
        """Masked words, and a look at the dictionary."""

        name = "looks"
        dictionary = "entries"

        def state(self, model: Encoder, context: Context) -> None:
            seen.append(context.dictionary)

        def loss(self, model: Encoder, micro: Step, state: Any) -> Loss:
            return {"mlm": masked_part(model, micro["rows"])}

    monkeypatch.setitem(registry.OBJECTIVES.added, "looks", Looks)
    trained(tmp_path / "run", "looks", steps=1)
    record = runs.read(tmp_path / "run")
    assert record["status"] == "done"
    assert record["dictionary"]["pairs"] == len(seen[0].pairs) == len(pair().dictionary.pairs)
    with pytest.raises(UsageError, match="changes no word"):
        trained(tmp_path / "other", "looks", "inv")
    assert not (tmp_path / "other").exists()
