"""XLM-Align: labels of the model's own, the pointer, and who may point where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig

from derivlang.align.similarity import itermax, sinkhorn
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.checkpoint import load_model
from derivlang.training.config import ModelConfig
from derivlang.training.encoder import Encoder
from derivlang.training.objectives.base import masked_part
from derivlang.training.objectives.registry import read_objective
from derivlang.training.objectives.xlm_align import (
    NONE,
    XlmAlign,
    gold_links,
    last_link,
    other_side,
    pointer_loss,
    self_links,
)
from tests.commands import run as command
from tests.test_training_loop import state
from tests.training import ENCODERS, loader, log, micro_of, network, trained

Cell = tuple[int, int]


def places(batch: SubwordRows, row: int) -> tuple[list[int], list[int]]:
    """The columns of the sub-words of each side."""
    side, words = batch.side[row].tolist(), batch.word_ids[row].tolist()
    first, second = ([c for c, word in enumerate(words) if word >= 0 and side[c] == s] for s in (0, 1))
    return first, second


def slow_links(states: np.ndarray, batch: SubwordRows, row: int, *, filtered: bool) -> set[Cell]:
    """The links of a row in both directions, from its own matrix, without padding."""
    ours, theirs = places(batch, row)
    plan = sinkhorn(states[row, ours].astype(np.float64) @ states[row, theirs].astype(np.float64).T)
    if filtered:
        found = itermax(plan)
    else:
        found = np.zeros(plan.shape, bool)
        for i in range(len(ours)):
            found[i, int(plan[i].argmax())] = True
        for j in range(len(theirs)):
            found[int(plan[:, j].argmax()), j] = True
    one = {(ours[i], theirs[j]) for i, j in np.argwhere(found)}
    return one | {(j, i) for i, j in one}


def slow_label(links: set[Cell], column: int) -> int:
    return max((j for i, j in links if i == column), default=NONE)


def cells(links: torch.Tensor) -> set[Cell]:
    return {(int(i), int(j)) for i, j in links.nonzero()}


def slow_dwa(net: Any, micro: Step, labels: list[dict[int, int]], layer: int | None = None) -> float:
    """The sum of -log softmax over the other side; labels: of each row, the queries and their labels."""
    batch = micro["pairs"]
    with torch.no_grad():
        states = net.model.states(batch, layer)
    weights = {name: parameter.detach().numpy() for name, parameter in net.state.named_parameters()}
    total = 0.0
    for row, queries in enumerate(labels):
        both = places(batch, row)
        for i, label in queries.items():
            others = both[1] if i in both[0] else both[0]
            q = weights["query.weight"] @ states[row, i].numpy() + weights["query.bias"]
            scores = {}
            for j in others:
                k = weights["key.weight"] @ states[row, j].numpy() + weights["key.bias"]
                scores[j] = float(q @ k) / np.sqrt(len(q))
            most = max(scores.values())
            total += most + np.log(sum(np.exp(s - most) for s in scores.values())) - scores[label]
    return total


def clean_states(net: Any, batch: SubwordRows, layer: int) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(net.model.states(batch.unmasked(), layer).numpy())


# by slow loops


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("more", ["", ":filter=no", ":layer=0", ":labels=gold", ":pointer=0:tlm=2.0:dwa=3.0"])
def test_xlm_align_by_a_slow_loop(more: str, kind: str) -> None:
    net, made = network(f"xlm-align{more}", kind)
    net.double()
    micro = micro_of(made, 3)
    batch = micro["pairs"]
    states = clean_states(net, batch, 0 if "layer=0" in more else 1)
    width = batch.input_ids.shape[1]
    gold: list[set[Cell]] = [set() for _ in batch.input_ids]
    for i, j in batch.links.T.tolist():
        gold[i // width].add((i % width, j % width))
    links = gold
    if "gold" not in more:
        links = [slow_links(states, batch, row, filtered="filter" not in more) for row in range(len(batch.input_ids))]
    queries: list[dict[int, int]] = [{} for _ in links]
    for target in batch.targets.tolist():
        label = slow_label(links[target // width], target % width)
        if label != NONE:
            queries[target // width][target % width] = label
    expected = slow_dwa(net, micro, queries, 0 if "pointer=0" in more else None) / len(batch.targets)
    total, parts = net(micro)
    assert expected > 0.1
    assert parts["dwa"].item() == pytest.approx(expected, rel=1e-5)
    for name, stream in (("mlm", "rows"), ("tlm", "pairs")):
        plain = masked_part(net.model, micro[stream])
        assert parts[name].item() == pytest.approx(plain.total.item() / plain.by, rel=1e-6)
    weights = {"mlm": 1, "tlm": 2, "dwa": 3} if "dwa" in more else dict.fromkeys(("mlm", "tlm", "dwa"), 1)
    assert total.item() == pytest.approx(sum(by * parts[name].item() for name, by in weights.items()), rel=1e-6)
    if "gold" not in more:
        some, of = (sum(map(len, found)) for found in ([a & b for a, b in zip(links, gold, strict=True)], links))
        assert (parts["precision:some"].item(), parts["precision:of"].item()) == (some, of)
    assert ("precision:of" in parts) == ("gold" not in more)
    assert parts["labelled:some"].item() == sum(len({i for i, _ in found}) for found in links)
    assert parts["labelled:of"].item() == sum(len(a) + len(b) for a, b in (places(batch, r) for r in range(len(links))))


@pytest.mark.parametrize("query", ["unmasked", "all-aligned"])
def test_other_queries_by_a_slow_loop(query: str) -> None:
    net, made = network(f"xlm-align:query={query}:pairs=1.0")
    net.double()
    micro = micro_of(made, 3)
    batch, drawn = micro["pairs"], set(micro["pairs:2"].targets.tolist())
    states, width, hidden = clean_states(net, batch, 1), batch.input_ids.shape[1], set(batch.targets.tolist())
    queries: list[dict[int, int]] = []
    for row in range(len(batch.input_ids)):
        links, found = slow_links(states, batch, row, filtered=True), {}
        for side, columns in enumerate(places(batch, row)):
            for i in columns:
                label, place = slow_label(links, i), row * width + i
                if query == "unmasked":
                    asked = place in drawn and place not in hidden
                else:
                    asked = place in drawn if side == 0 else row * width + label not in drawn
                if asked and label != NONE:
                    found[i] = label
        queries.append(found)
    expected = slow_dwa(net, micro, queries) / len(batch.targets)
    assert expected > 0.1
    assert net(micro)[1]["dwa"].item() == pytest.approx(expected, rel=1e-5)


def test_one_end_of_each_link_points() -> None:
    """With gold links of a permutation: of each link exactly one end, whichever; about half on each side."""
    objective = read_objective("xlm-align:query=all-aligned:labels=gold:pairs=4.0")
    assert isinstance(objective, XlmAlign)
    micro = micro_of(loader(objective, parallel="100"), 1)
    batch = micro["pairs"]
    label = last_link(gold_links(batch))
    places, labels = objective._queries(micro, label)
    width, sides = batch.input_ids.shape[1], [0, 0]
    pointing = {int(i): int(i) // width * width + int(j) for i, j in zip(places, labels, strict=True) if j != NONE}
    for i, j in batch.links.T.tolist():
        assert (i in pointing) != (j in pointing)
        assert pointing.get(i, j) == j
    for i in pointing:
        sides[int(batch.side.flatten()[i])] += 1
    assert abs(sides[0] - sides[1]) < 4.5 * np.sqrt(sum(sides))


# by hand


def test_the_last_link_by_hand() -> None:
    links = torch.tensor([[[0, 1, 1], [0, 0, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 0], [0, 1, 0]]], dtype=torch.bool)
    assert last_link(links).tolist() == [2, NONE, 0, 2, NONE, 1]


def test_a_pointer_by_hand() -> None:
    """Scores 2 and 0 for the columns 1 and 2; the place without a label does not count."""
    query = torch.tensor([[[2.0, 0, 0, 0], [9.0, 9, 9, 9], [0, 0, 0, 0]]])
    key = torch.tensor([[[5.0, 0, 0, 0], [2.0, 0, 0, 0], [0, 3.0, 0, 0]]])
    allowed = torch.tensor([[[0, 1, 1], [1, 0, 0], [0, 0, 0]]], dtype=torch.bool)
    expected = -np.log(1 / (1 + np.e**2))
    found = pointer_loss(query, key, allowed, torch.tensor([0, 1]), torch.tensor([2, NONE]))
    assert found.item() == pytest.approx(expected, rel=1e-6)
    assert pointer_loss(query, key, allowed, torch.tensor([1, 2]), torch.tensor([NONE, NONE])).item() == 0


def hand_batch(sides: list[list[int]], batch: SubwordRows) -> SubwordRows:
    """Rows of sub-words alone, of these sides; -1: a special id."""
    side = torch.tensor(sides)
    return replace(batch, side=side.clamp(min=0), word_ids=torch.where(side >= 0, 0, -1), lengths=(side >= -1).sum(1))


def test_labels_by_hand() -> None:
    """Two words a side, of which the second pair crosses; special ids like everything are linked to nothing."""
    batch = hand_batch([[-1, 0, 0, -1, 1, 1]], micro_of(loader("tlm"))["pairs"])
    states = torch.tensor([[[9.0, 9], [1, 0], [0, 1], [9.0, 9], [0, 2], [3, 0]]])
    links = self_links(states, batch, filtered=True)
    assert cells(links[0]) == {(1, 5), (2, 4), (5, 1), (4, 2)}
    assert cells(other_side(batch)[0]) == {(i, j) for i in (1, 2) for j in (4, 5)} | {
        (j, i) for i in (1, 2) for j in (4, 5)
    }


def test_filtering_by_hand() -> None:
    """Three words against one, each of whose rows of the plan sums to 1.

    The first round links the first word. The second links the best of those that are left, the second word: its cell
    counts 0.9 times, as does the third word's, and the first's not at all. There is no third round. Without the filter
    each word takes the best of its row.
    """
    batch = hand_batch([[0, 0, 0, 1]], micro_of(loader("tlm"))["pairs"])
    states = torch.tensor([[[3.0], [2.0], [1.0], [1.0]]])
    plan = sinkhorn(np.array([[3.0], [2], [1]]))
    np.testing.assert_allclose(plan, 1.0)  # each row sums to 1
    assert cells(self_links(states, batch, filtered=True)[0]) == {(0, 3), (3, 0), (1, 3), (3, 1)}
    every = {(i, 3) for i in range(3)} | {(3, i) for i in range(3)}
    assert cells(self_links(states, batch, filtered=False)[0]) == every


# gradients, phases


def test_labels_have_no_gradient_and_no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bool, bool]] = []
    real = Encoder.states

    def states(self: Encoder, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        seen.append((torch.is_grad_enabled(), self.module.training, bool((batch.input_ids == batch.clean_ids).all())))
        return real(self, batch, layer)

    monkeypatch.setattr(Encoder, "states", states)
    net, made = network("xlm-align")
    net(micro_of(made))
    assert sorted(seen) == [(False, False, True), (True, True, False), (True, True, False)]  # TLM and DWA share one


def test_the_pointer_reaches_the_model_and_its_own_layers() -> None:
    net, made = network("xlm-align", "roberta", tie=False)
    micro = micro_of(made)
    parts = made.objective.loss(net.model, micro, net.state)
    parts["dwa"].total.backward()  # type: ignore[union-attr]
    reached = {name for name, p in net.named_parameters() if p.grad is not None and bool((p.grad != 0).any())}
    assert {"state.query.weight", "state.query.bias", "state.key.weight"} <= reached
    assert any(name.startswith("lm.roberta.encoder") for name in reached)
    assert not any("lm_head" in name for name in reached)


def test_steps_before_the_alignment(tmp_path: Path) -> None:
    """They train MLM and TLM alone, but every weight has a gradient, which several processes need."""
    net, made = network("xlm-align:start=2")
    for step in (0, 1, 2):
        net.zero_grad()
        total, parts = net(micro_of(made, step))
        total.backward()
        assert (parts["dwa"] > 0) == (step == 2)
        assert ("precision:of" in parts) == (step == 2)
        assert net.state["query"].weight.grad.any() == (step == 2)
    trained(tmp_path / "run", "xlm-align:start=2", steps=4, log_every=1)
    entries = log(tmp_path / "run")
    assert [entry["parts"]["dwa"] > 0 for entry in entries] == [False, False, True, True]
    assert [entry["labelled_percent"] > 0 for entry in entries] == [False, False, True, True]
    assert ["precision_percent" in entry for entry in entries] == [False, False, True, True]


@pytest.mark.parametrize("accumulate", [1, 4])
def test_the_log_has_the_precision_of_all_steps(accumulate: int, tmp_path: Path) -> None:
    """The right ones of all steps among all labels of these steps, however a step is divided."""
    options: dict[str, Any] = {"steps": 4, "log_every": 4, "save_every": 4, "kind": "roberta", "learning_rate": 1e-9}
    result = trained(tmp_path / "run", "xlm-align:pairs=1.0", accumulate=accumulate, parallel="50", **options)
    net, made = network("xlm-align:pairs=1.0", lm=load_model(tmp_path / "run" / "model").train())
    counts: dict[str, float] = {}
    for step in range(4):
        for name, value in net(micro_of(made, step))[1].items():
            counts[name] = counts.get(name, 0.0) + value.item()
    (entry,) = log(tmp_path / "run")
    for name in ("precision", "labelled"):
        expected = 100 * counts[f"{name}:some"] / counts[f"{name}:of"]
        assert entry[f"{name}_percent"] == result["doses"][f"{name}_percent"] == pytest.approx(expected, abs=0.01)
    assert set(entry["parts"]) == {"mlm", "tlm", "dwa"}
    assert entry["loss"] == pytest.approx(sum(entry["parts"].values()), rel=1e-5)


@pytest.mark.parametrize(("depth", "layer"), [(1, 1), (2, 2), (4, 3), (12, 10), (24, 20)])
def test_the_layer_by_default_is_at_ten_twelfths(depth: int, layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []
    real = Encoder.states

    def states(self: Encoder, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        seen.append(layer)
        return real(self, batch, None)

    monkeypatch.setattr(Encoder, "states", states)
    monkeypatch.setattr(Encoder, "n_layers", depth)
    net, made = network("xlm-align")
    net(micro_of(made))
    assert [at for at in seen if at is not None] == [layer]


def test_the_depth_of_a_model() -> None:
    for name, depth in (("tiny", 2), ("roberta-8", 8)):
        assert ModelConfig.read(name).n_layers == depth
    for kind, depth in (("bert", 12), ("modernbert", 22), ("llama", 32), ("gpt2", 12)):
        assert replace(ModelConfig.read("tiny"), type=kind, fields={}).n_layers == depth
        config = AutoConfig.for_model(kind)
        assert config.num_hidden_layers == depth


# labels of a file, bad input


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of the demo as text, with links in a file of their own."""
    folder = tmp_path_factory.mktemp("bitext")
    command("make", "--t", "trans,inv", "demo", "-o", folder / "set")
    command("pair", folder / "set", "--split", "train", "--rate", "100", "--format", "text", "-o", folder / "pairs")
    (folder / "pairs.pharaoh").rename(folder / "links")
    return folder


def test_labels_of_a_file(files: Path, tmp_path: Path) -> None:
    """The links of the file, as if they stood beside the pairs; another file is another run."""
    objective = f'xlm-align:labels="{files / "links"}"'
    for part in ("source", "derived"):
        (tmp_path / f"own.{part}").write_text((files / f"pairs.{part}").read_text())
    (tmp_path / "own.pharaoh").write_text((files / "links").read_text())
    one = trained(tmp_path / "one", objective, pairs=files / "pairs")
    two = trained(tmp_path / "two", "xlm-align:labels=gold", pairs=tmp_path / "own")
    assert one["parts"] == two["parts"]
    shares = [result["doses"]["labelled_percent"] for result in (one, two)]
    assert shares[0] == shares[1] > 10  # long pairs are cut, and lose links
    assert "precision_percent" not in one["doses"]
    own = trained(tmp_path / "own-labels", "xlm-align", pairs=files / "pairs")
    assert "precision_percent" not in own["doses"]  # there is nothing to compare them with
    assert own["doses"]["labelled_percent"] > 0
    assert "precision_percent" in trained(tmp_path / "known", "xlm-align", pairs=tmp_path / "own")["doses"]
    lines = (files / "links").read_text().splitlines()
    (tmp_path / "links").write_text("\n".join(["", *lines[1:]]) + "\n")
    changed = f'xlm-align:labels="{tmp_path / "links"}"'
    trained(tmp_path / "three", changed, pairs=files / "pairs")
    (tmp_path / "links").write_text("\n".join([*lines[:-1], ""]) + "\n")
    with pytest.raises(DerivlangError, match="its sentence pairs are others"):
        trained(tmp_path / "three", changed, pairs=files / "pairs", resume=True)


@pytest.mark.parametrize(
    ("text", "id"), [("0-0\n", "lengths"), (None, "link-range"), ("0:0\n", "link")], ids=["short", "outside", "no link"]
)
def test_labels_that_do_not_fit(text: str | None, id: str, files: Path, tmp_path: Path) -> None:
    n = len((files / "links").read_text().splitlines())
    (tmp_path / "links").write_text(text if text is not None else "0-999\n" * n)
    with pytest.raises(DataError) as error:
        trained(tmp_path / "run", f'xlm-align:labels="{tmp_path / "links"}"', pairs=files / "pairs")
    assert error.value.id == id
    assert str(tmp_path / "links") in str(error.value)
    assert not (tmp_path / "run").exists()


def test_gold_labels_of_pairs_without_links(files: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sentence pairs have no links") as error:
        trained(tmp_path / "run", "xlm-align:labels=gold", pairs=files / "pairs")
    assert error.value.id == "no-links"
    assert str(files / "pairs") in str(error.value)
    assert not (tmp_path / "run").exists()


def test_labels_of_a_file_for_pairs_of_the_corpus(files: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has links of the pairs of a file") as error:
        trained(tmp_path / "run", f'xlm-align:labels="{files / "links"}"')
    assert "--pairs" in str(error.value.fix)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("xlm-align:layer=2", "layer=2, but the model .* has the layers 0 to 1"),
        ("xlm-align:labels=glod", "labels=glod is neither gold, hmm, eflomal nor a file"),
    ],
)
def test_what_the_model_or_the_disk_lacks(objective: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        trained(tmp_path / "run", objective, data=tmp_path / "data")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("xlm-align:layer=-2", "layer: must be at least -1, got -2"),
        ("xlm-align:start=-1", "start: must be at least 0, got -1"),
        ("xlm-align:pairs=0", "pairs: must be above 0, got 0.0"),
        ("xlm-align:query=some", "must be masked or unmasked or all-aligned"),
        ("xlm-align:filter=1", "must be yes or no"),
        ("xlm-align:pointer=-2", "pointer: must be at least -1, got -2"),
        ("xlm-align:dwa=-1", "dwa: must be at least 0, got -1.0"),
    ],
)
def test_parameters_out_of_range(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_objective(spec)
    assert message in str(error.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_labels_that_are_not_finite(bad: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States of the labels' layer alone that are no numbers stop the run; the last good checkpoint stays."""
    real, at = Encoder.states, []

    def states(self: Encoder, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        found = real(self, batch, layer)
        if layer is None:
            return found
        at.append(1)
        return found * bad if len(at) > 4 else found

    monkeypatch.setattr(Encoder, "states", states)
    with pytest.raises(DataError, match="the loss or a weight became NaN or infinite by step 5") as error:
        trained(tmp_path / "run", "xlm-align", log_every=1, save_every=2)
    assert "step 4 is the last good one" in str(error.value)
    assert error.value.id == "not-finite"
    assert state(tmp_path / "run", 4)["objective"].keys() == {"query.weight", "query.bias", "key.weight", "key.bias"}
