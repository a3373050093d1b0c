"""PPA: the contrast of sentences and their counterparts, its momentum encoder and its queue."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import DerivlangError, UsageError
from derivlang.core.seal import sealed
from derivlang.training.checkpoint import load_model
from derivlang.training.contrast import Momentum, gather, info_nce, one_side
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import masked_part
from derivlang.training.objectives.registry import read_objective
from derivlang.training.streams.pairs import PairRows, SentencePairs
from tests.commands import written
from tests.test_training_loop import Stop, state, stopping
from tests.training import (
    ENCODERS,
    built,
    links_of,
    loader,
    micro_of,
    model_file,
    network,
    opened,
    special_ids,
    toml,
    trained,
)


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / np.sqrt((vector**2).sum(-1, keepdims=True)))


def slow_nce(query: np.ndarray, key: np.ndarray, queue: np.ndarray, temperature: float) -> list[float]:
    """-log of the share of the positive among itself and the queue, a row at a time."""
    out = []
    for q, k in zip(query, key, strict=True):
        scores = [float(q @ k) / temperature, *(float(q @ other) / temperature for other in queue)]
        most = max(scores)
        out.append(most + np.log(sum(np.exp(score - most) for score in scores)) - scores[0])
    return out


# the loss


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_info_nce_by_a_slow_loop(temperature: float) -> None:
    draws = np.random.default_rng(1)
    query, key, queue = (unit(draws.normal(size=(n, 7))) for n in (4, 4, 30))
    found = info_nce(*(torch.from_numpy(some) for some in (query, key, queue)), temperature)
    assert found.item() == pytest.approx(sum(slow_nce(query, key, queue, temperature)), rel=1e-9)


def test_info_nce_of_a_full_queue_is_exact_enough() -> None:
    """A queue of 32,000 keys of 300 numbers, in 32 bits: unlike pairs, and equal ones, whose loss is small."""
    draws = np.random.default_rng(1)
    query, key, queue = (unit(draws.normal(size=(n, 300))).astype(np.float32) for n in (16, 16, 32_000))
    for of in (key, query):
        found = info_nce(*map(torch.from_numpy, (query, of, queue)), 0.05)
        exact = [some.astype(np.float64) for some in (query, of, queue)]
        assert found.item() == pytest.approx(sum(slow_nce(*exact, 0.05)), rel=1e-6)


def test_info_nce_by_hand() -> None:
    """A key like the query, one across, one against: -log(e^2 / (e^2 + 1 + e^-2)) at t = 0.5."""
    query = torch.tensor([[1.0, 0.0]])
    queue = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    expected = -np.log(np.e**2 / (np.e**2 + 1 + np.e**-2))
    assert info_nce(query, query, queue, 0.5).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ENCODERS)
def test_ppa_by_a_slow_loop(kind: str) -> None:
    """Each side alone, by the library's own forward, with weights of the keys that are others by now; and TLM."""
    net, made = network("ppa:queue=40:moco=0.5:tlm=3.0:temperature=0.2", kind)
    with torch.no_grad():
        for key in [*net.state.key_encoder.parameters(), *net.state.project_key.parameters()]:
            key.mul_(1.5)
    net.double()
    batch = micro_of(made, 3)["pairs"]
    first, second, queue = net.state.project, net.state.project_key, net.state.queue.numpy()
    queries, keys = [], []
    assert set(batch.language[:, 0].tolist()) == {SOURCE, DERIVED}
    for row, side, length in zip(batch.clean_ids, batch.side, batch.attention.sum(1).tolist(), strict=True):
        half = side[:length].tolist().index(1)
        assert side[:length].tolist() == [0] * half + [1] * (length - half)
        for encoder, layers, text, out in (
            (net.lm.base_model, first, row[:half], queries),
            (net.state.key_encoder, second, row[half:length], keys),
        ):
            assert [text[0], text[-1]] == [special_ids().begin, special_ids().end]
            with torch.no_grad():
                h = unit(encoder(input_ids=text[None]).last_hidden_state[0, 0].numpy())
            hidden = np.maximum(layers[0].weight.detach().numpy() @ h, 0)
            out.append(unit(layers[2].weight.detach().numpy() @ hidden))
    expected = np.mean(slow_nce(np.array(queries), np.array(keys), queue, 0.2))
    total, parts = net(micro_of(made, 3))
    assert parts["moco"].item() == pytest.approx(expected, rel=1e-6)
    tlm = masked_part(net.model, batch)
    assert parts["tlm"].item() == pytest.approx(tlm.total.item() / tlm.by, rel=1e-6)
    assert total.item() == pytest.approx(0.5 * expected + 3 * parts["tlm"].item(), rel=1e-6)


def test_mlm_in_place_of_tlm() -> None:
    """The contrast is the same, and masked words are of the rows that mlm reads."""
    spec = "ppa:queue=40:tlm=3.0"
    (net, made), (other, pairs) = network(f"{spec}:words=mlm", "roberta"), network(spec, "roberta")
    other.load_state_dict(net.state_dict())
    total, parts = net(micro_of(made, 3))
    assert set(parts) == {"moco", "mlm"}
    torch.testing.assert_close(parts["moco"], other(micro_of(pairs, 3))[1]["moco"])
    rows = micro_of(loader("mlm"), 3)["rows"]
    assert torch.equal(micro_of(made, 3)["rows"].clean_ids, rows.clean_ids)  # masks follow the order of streams
    plain = masked_part(net.model, micro_of(made, 3)["rows"])
    assert parts["mlm"].item() == pytest.approx(plain.total.item() / plain.by, rel=1e-6)
    assert total.item() == pytest.approx(parts["moco"].item() + 3 * parts["mlm"].item(), rel=1e-6)


def test_the_contrast_reaches_the_queries_alone() -> None:
    """Not the keys, not the queue, and not the head that predicts words."""
    net, made = network("ppa:tlm=0.0", "roberta", tie=False)
    net(micro_of(made))[0].backward()
    reached = {name for name, p in net.named_parameters() if p.grad is not None and bool((p.grad != 0).any())}
    assert reached
    assert all(name.startswith(("lm.roberta.", "state.project.")) for name in reached)
    layers = {name for name, _ in net.named_parameters() if name.startswith(("lm.roberta.encoder", "state.project."))}
    assert {name for name in layers if "key.bias" not in name} <= reached  # a key's bias moves all scores alike
    assert all(p.grad is None for name, p in net.named_parameters() if "key_encoder" in name or "project_key" in name)
    assert not net.state.queue.requires_grad


def test_two_pairs_are_told_apart() -> None:
    """In turns, each with the other's key in the queue: their states begin alike, and end apart."""
    net, made = network("ppa:queue=1:momentum=0.5:shortest=1", "modernbert", batch_size=1)
    micros = [micro_of(made, step) for step in (0, 1)]
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=0.01, weight_decay=0.0)
    losses: list[float] = []
    for step in range(120):
        optimizer.zero_grad()
        total, parts = net(micros[step % 2])
        total.backward()
        optimizer.step()
        with torch.no_grad():
            made.objective.after_step(net.model, net.state, step)
        losses.append(parts["moco"].item())
    assert min(losses[1:6]) > 0.1
    assert max(losses[-10:]) < 0.01


# rows


def test_one_side_by_hand() -> None:
    batch = micro_of(loader("ppa", batch_size=4))["pairs"]
    for side in (0, 1):
        found = one_side(batch, side)
        for row in range(len(batch.input_ids)):
            inside = batch.attention[row] & (batch.side[row] == side)
            assert found.clean_ids[row][found.attention[row]].tolist() == batch.clean_ids[row][inside].tolist()
            assert found.input_ids[row].tolist() == found.clean_ids[row].tolist()
            assert found.language[row][found.attention[row]].tolist() == batch.language[row][inside].tolist()
        assert found.attention[:, 0].all()
        assert (found.positions, found.links, len(found.targets)) == (None, None, 0)


@pytest.mark.parametrize("reset", [True, False])
def test_a_coin_of_each_row_turns_it(reset: bool) -> None:
    """A turned row is the plain one with its halves exchanged; links follow. Another step draws anew."""
    plain, mixed = (
        opened(SentencePairs(together=False, links=True, reset=reset, shuffle=shuffle), parallel="100")
        for shuffle in (False, True)
    )
    assert isinstance(mixed, PairRows)
    every = np.arange(plain.n)
    one, two = (source.rows(every, Keys.of(1, 0, every)) for source in (plain, mixed))
    turned = two.language[:, 0] == DERIVED
    assert abs(turned.mean() - 0.5) < 4.5 * np.sqrt(0.25 / len(turned))
    assert one.lengths.tolist() == two.lengths.tolist()
    for rows in (one, two):
        assert rows.links is not None
        assert links_of(rows) == sorted(links_of(rows))
    for row in range(len(every)):
        n, half = int(one.lengths[row]), int((one.side[row, : one.lengths[row]] == 0).sum())
        where = [*range(half, n), *range(half)] if turned[row] else list(range(n))
        for name in ("clean_ids", "language", "sentence_ids", "word_ids"):
            ours, theirs = (getattr(rows, name)[row, :n] for rows in (one, two))
            if name != "word_ids":
                assert theirs.tolist() == ours[where].tolist()
            else:  # numbers within the row: other ones, for the same words
                assert len({*zip(ours[where].tolist(), theirs.tolist(), strict=True)}) == len(set(ours.tolist()))
        assert two.side[row, :n].tolist() == [0] * (n - half if turned[row] else half) + [1] * (
            half if turned[row] else n - half
        )
        if reset:
            assert two.positions is not None
            begins = two.positions[row, :n] == 0
            assert np.flatnonzero(begins).tolist() == [0, n - half if turned[row] else half]
        assert one.links is not None and two.links is not None  # noqa: PT018
        ours = {(i, j) for some, i, j in links_of(one) if some == row}
        theirs = {(where[i], where[j]) for some, i, j in links_of(two) if some == row}
        assert ours == theirs
    again = mixed.rows(every, Keys.of(1, 1, every))
    assert (again.language[:, 0] != two.language[:, 0]).any()


def test_each_row_has_one_pair_and_no_position_reset() -> None:
    batch = micro_of(loader("ppa"))["pairs"]
    assert batch.positions is None
    assert batch.sentence_ids.max() == 0
    assert not read_objective("ppa").language_ids


def test_pairs_below_ten_sub_words_are_left_out(tmp_path: Path) -> None:
    """Unless asked otherwise; result, run.json and the command's last lines have their number."""
    rows = [opened(read_objective(spec).streams()[0]) for spec in ("ppa", "ppa:shortest=1")]
    short = rows[0].facts()["short_pairs"]
    assert 0 < short == rows[1].n - rows[0].n
    result = trained(tmp_path / "run", "ppa:queue=50", data=tmp_path / "data", steps=2)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (result["doses"]["short_pairs"], result["doses"]["pairs"]) == (short, rows[0].n)
    assert record["streams"]["pairs"]["short_pairs"] == short
    assert record["streams"]["pairs"]["shortest"] == 10


# over steps


def momentum(size: int = 5, width: int = 3) -> Momentum:
    torch.manual_seed(1)
    return Momentum(torch.nn.Linear(4, 4), 4, width, size)


def test_the_queue_by_hand() -> None:
    kept = momentum()
    assert torch.allclose(kept.queue.norm(dim=1), torch.ones(5))
    slow = kept.queue.tolist()
    for step in range(4):
        keys = torch.arange(6.0).view(2, 3) + 10 * step
        kept.add(keys[:1], 2)
        kept.add(keys[1:], 2)
        kept.fill(step)
        for i, key in enumerate(keys.tolist()):
            slow[(2 * step + i) % 5] = key
        assert kept.queue.tolist() == slow
        assert not kept.fresh


def test_the_keys_follow_by_hand() -> None:
    kept, encoder = momentum(), torch.nn.Linear(4, 4)
    before = deepcopy(kept)
    with torch.no_grad():
        kept.project[0].weight.add_(1.0)
        kept.follow(encoder, 0.75)
    torch.testing.assert_close(
        kept.key_encoder.weight,
        0.75 * before.key_encoder.weight + 0.25 * encoder.weight,  # type: ignore[operator]
    )
    torch.testing.assert_close(kept.project_key[0].weight, before.project_key[0].weight + 0.25)  # type: ignore[index]
    assert all(not p.requires_grad for p in [*kept.key_encoder.parameters(), *kept.project_key.parameters()])


@pytest.mark.parametrize("world", [2, 3])
def test_keys_of_several_processes_stand_in_the_order_of_the_step(world: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a step's rows are no multiple of the processes: what each one gives, summed, is the whole."""
    from torch import distributed

    whole = torch.arange(1.0, 11.0).view(5, 2)
    given: list[torch.Tensor] = []
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: world)
    monkeypatch.setattr(distributed, "all_reduce", lambda out: given.append(out.clone()))
    made = [loader("ppa", batch_size=5, world=world, rank=rank) for rank in range(world)]
    sizes = [len(micro_of(one)["pairs"].input_ids) for one in made]
    for rank in range(world):
        monkeypatch.setattr(distributed, "get_rank", lambda rank=rank: rank)
        begin = sum(sizes[:rank])
        gather(whole[begin : begin + sizes[rank]], 5)
    assert torch.equal(sum(given), whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_run_keeps_the_keys_of_its_last_steps(accumulate: int, tmp_path: Path) -> None:
    """Of three steps of 6 pairs, in a queue of 14: the keys of the steps, by the key encoder as it was then."""
    options: dict[str, Any] = {"kind": "roberta", "batch_size": 6, "accumulate": accumulate, "save_every": 1, "keep": 9}
    trained(tmp_path / "run", "ppa:queue=14:momentum=0.5", steps=3, parallel="50", **options)
    for step in (1, 2):
        lm = load_model(tmp_path / "run" / "checkpoints" / f"step-{step:08d}" / "model")
        net, made = network("ppa:queue=14:momentum=0.5", batch_size=6, lm=lm)
        before, after = (state(tmp_path / "run", at)["objective"] for at in (step, step + 1))
        net.state.load_state_dict(before)
        batch = one_side(micro_of(made, step)["pairs"], 1)
        with torch.no_grad():
            out = replace(net.model, module=net.state.key_encoder).states(batch)
            keys = net.state.encode(out[:, 0], net.state.project_key)
        queue = before["queue"].clone()
        for i, key in enumerate(keys):
            queue[(6 * step + i) % 14] = key
        torch.testing.assert_close(after["queue"], queue, rtol=1e-3, atol=1e-5)
        name = "embeddings.word_embeddings.weight"
        then = load_model(tmp_path / "run" / "checkpoints" / f"step-{step + 1:08d}" / "model").roberta.state_dict()
        halfway = (before[f"key_encoder.{name}"] + then[name]) / 2
        torch.testing.assert_close(after[f"key_encoder.{name}"], halfway)
        assert not torch.equal(halfway, then[name])


# what is refused


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ppa:temperature=0", "temperature: must be above 0, got 0.0"),
        ("ppa:temperature=-1", "temperature: must be above 0, got -1.0"),
        ("ppa:pairs=0", "pairs: must be above 0, got 0.0"),
        ("ppa:momentum=1.5", "momentum: must be at most 1, got 1.5"),
        ("ppa:queue=0", "queue: must be at least 1, got 0"),
        ("ppa:width=0", "width: must be at least 1, got 0"),
        ("ppa:moco=-1", "moco: must be at least 0, got -1.0"),
        ("ppa:tlm=nan", "must be a finite number"),
    ],
)
def test_parameters_out_of_range(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_objective(spec)
    assert message in str(error.value)


def test_a_queue_that_is_smaller_than_a_step(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the queue holds 7 sentences, fewer than the 8 pairs of a step") as error:
        trained(tmp_path / "run", "ppa:queue=7", data=tmp_path / "data")
    assert error.value.fix is not None
    assert "queue=8" in error.value.fix
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["key_encoder.embeddings.word_embeddings.weight", "queue"])
def test_a_key_encoder_of_another_width(name: str, tmp_path: Path) -> None:
    """A checkpoint that was exchanged for another model's."""
    options = {"kind": "roberta", "steps": 6, "save_every": 3}
    with pytest.raises(Stop):
        trained(tmp_path / "run", "ppa:queue=20", logged=stopping(4), **options)
    folder = tmp_path / "run" / "checkpoints" / "step-00000003"
    held = torch.load(folder / "training.pt", weights_only=True)
    held["objective"][name] = held["objective"][name][:, :-1].clone()
    torch.save(held, folder / "training.pt")
    found = json.loads((folder / "state.json").read_text())
    data = (folder / "training.pt").read_bytes()
    found["files"]["training.pt"] = [len(data), sha256(data).hexdigest()]
    (folder / "state.json").write_text(json.dumps(sealed(found)))
    with pytest.raises(DerivlangError) as error:
        trained(tmp_path / "run", "ppa:queue=20", resume=True, **options)
    assert error.value.id == "checkpoint"
    assert str(folder) in str(error.value)
    assert f"size mismatch for {name}: " in str(error.value)


def test_a_model_of_another_width_to_begin_with(tmp_path: Path) -> None:
    trained(tmp_path / "wide", "mlm", steps=1)
    narrow = written(tmp_path / "narrow.toml", toml().replace("hidden_size = 16", "hidden_size = 8"))
    with pytest.raises(UsageError, match=r"has hidden_size = 16, but --model .* has 8"):
        trained(tmp_path / "run", "ppa", model=str(narrow), init=str(tmp_path / "wide"))
    assert not (tmp_path / "run").exists()
    found = trained(tmp_path / "run", "ppa:queue=20", steps=2, init=str(tmp_path / "wide"), model=model_file())
    assert set(found["parts"]) == {"moco", "tlm"}


def test_a_new_key_encoder_is_the_model() -> None:
    """So that both begin at the same point, also after a cold start."""
    net, made = network("ppa", lm=built("roberta", seed=9))
    kept = net.lm.base_model.state_dict()
    assert all(torch.equal(kept[name], weight) for name, weight in net.state.key_encoder.state_dict().items())
    micro = micro_of(made)
    net(micro)
    with torch.no_grad():
        made.objective.after_step(net.model, net.state, 0)
    # Without an update of the model the keys stay, too.
    assert all(torch.equal(kept[name], weight) for name, weight in net.state.key_encoder.state_dict().items())
