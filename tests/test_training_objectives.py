"""Objectives: each loss against a slow float64 loop, and the laws that every registered one is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import UsageError
from derivlang.core.spec import param
from derivlang.sources.request import SourceRequest
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.doses import OF, SOME
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.loader import Loader, open_streams
from derivlang.training.masking import Keys
from derivlang.training.objectives import registry
from derivlang.training.objectives.align_mlm import alignment_loss
from derivlang.training.objectives.base import Context, Loss, LossPart, Objective, masked_part
from derivlang.training.objectives.registry import find_objective, objective_names, read_objective, register_objective
from derivlang.training.prepare import prepare_data
from derivlang.training.settings import RunPaths
from tests.plugin.derivlang_sample.objectives import Small
from tests.plugin.derivlang_sample.streams import DerivedMlm
from tests.training import (
    CAUSAL,
    ENCODERS,
    context,
    data_folder,
    loader,
    log,
    micro_of,
    model_of,
    network,
    padded,
    pair,
    rows_of,
    settings,
    special_ids,
    stream_rows,
    trained,
)

SETTINGS = [
    "xlm:pairs=0.5:reset=no", "xlm:pairs=0.5:source=0.5:derived=2:tlm=3", "xlm:pairs=0.5", "xlm:reset=no",
    "tlm:reset=no", "dict-mlm:rate=90", "dict-mlm:among=all",
    "dict-mlm:variant=input", "dict-mlm:condition=yes", "align-mlm:2.5", "dict-tlm:switch=100:condition=yes",
    "weam:weight=0.5",
    "ppa:queue=5000:moco=0.5:tlm=2.0", "xlm-align:labels=gold:pairs=1.0", "xlm-align:query=unmasked:layer=0",
    "xlm-align:query=all-aligned:filter=no",
]  # fmt: skip
EVERY = [*objective_names(), *SETTINGS, "small", "derived-mlm"]
CASES = [
    (name, kind)
    for name in EVERY
    for kind in (CAUSAL if name == "clm" else ENCODERS)
    if kind in ("roberta", *CAUSAL)
    or (kind == "bert") == (name in ("xlm", "weam") or "condition=yes" in name)
    or name == "align-mlm"
]
# The other objectives have further parts, whose own tests say what gets a gradient.
MASKED = [(name, kind) for name, kind in CASES if not name.startswith(("ppa", "xlm-align"))]
every = pytest.mark.parametrize("name", EVERY)
cases = pytest.mark.parametrize(("name", "kind"), CASES)


@pytest.fixture(autouse=True)
def _sample(monkeypatch: pytest.MonkeyPatch) -> None:
    for sample in (Small, DerivedMlm):
        monkeypatch.setitem(registry.OBJECTIVES.added, sample.name, sample)


@dataclass(frozen=True, eq=False)
class Spy(Encoder):
    """Keeps the states, and what was projected on the vocabulary."""

    seen: list[tuple[SubwordRows, torch.Tensor]] = field(default_factory=list)
    projected: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        output = self.module.get_output_embeddings()
        output.register_forward_hook(lambda module, inputs, out: self.projected.append(len(out)))

    def states(self, batch: SubwordRows, layer: int | None = None) -> torch.Tensor:
        found = super().states(batch, layer)
        found.retain_grad()
        self.seen.append((batch, found))
        return found


# The losses, slowly


def slow_losses(lm: Any, batch: SubwordRows, *, language_ids: bool) -> list[float]:
    """-log p of each masked position, by the library's own forward over all positions, in float64."""
    more: dict[str, Any] = {"token_type_ids": batch.language} if language_ids else {}
    if batch.positions is not None:
        first = lm.config.pad_token_id + 1 if lm.config.model_type == "roberta" else 0
        more["position_ids"] = batch.positions + first
    logits = lm(input_ids=batch.input_ids, attention_mask=batch.attention.long(), **more).logits.detach().numpy()
    out = []
    for target, label in zip(batch.targets.tolist(), batch.labels.tolist(), strict=True):
        row = logits[target // logits.shape[1], target % logits.shape[1]]
        out.append(float(row.max() + np.log(np.exp(row - row.max()).sum()) - row[label]))
    return out


def slow_masked(lm: Any, batch: SubwordRows, *, language_ids: bool) -> float:
    """Their mean."""
    return float(np.mean(slow_losses(lm, batch, language_ids=language_ids)))


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize(
    "name",
    ["mlm", "dict-mlm:rate=70", "dict-mlm:variant=input", "dict-mlm:among=all", "tlm:reset=no", "dict-tlm:switch=100"],
)
def test_masked_words_by_a_slow_loop(name: str, kind: str) -> None:
    net, made = network(name, kind)
    net.double()
    micro = micro_of(made, 3)
    ((stream, batch),) = micro.batches.items()
    part = {"rows": "mlm", "pairs": "tlm", "switched": "tlm"}[stream]
    total, parts = net(micro)
    expected = slow_masked(net.lm, batch, language_ids=net.model.language_ids)
    assert total.item() == pytest.approx(expected, rel=1e-5)
    assert {name: value.item() for name, value in parts.items()} == pytest.approx({part: expected}, rel=1e-5)


@pytest.mark.parametrize("kind", CAUSAL)
@pytest.mark.parametrize("packing", ["sentences", "stream"])
def test_next_words_by_a_slow_loop(packing: Any, kind: str) -> None:
    """-log p of each sub-word and each </s>, by the library's own forward over the row up to there, in float64."""
    wanted = settings("clm", packing=packing)
    found = prepare_data(wanted, SourceRequest("demo"), RunPaths(run=Path("none"), data=data_folder()))
    objective = read_objective("clm")
    streams = open_streams(objective, replace(found, settings=replace(wanted, batch_size=4)))
    net, _ = network("clm", kind)
    net.double()
    micro = micro_of(Loader(streams, objective, context(found), 1), 3)
    batch, losses, inside = micro["rows"], [], 0
    for ids, attention, words in zip(batch.input_ids, batch.attention, batch.word_ids.tolist(), strict=True):
        row = ids[attention].tolist()
        for t in range(1, len(row)):
            if words[t] < 0 and row[t] != special_ids().end:
                assert row[t] == special_ids().begin
                inside += 1
                continue
            logs = net.lm(input_ids=ids[None, :t]).logits[0, -1].detach().log_softmax(-1)
            losses.append(-float(logs[row[t]]))
    assert batch.totals.masked == len(batch.targets) == len(losses) > 50
    assert (inside > 0) == (packing == "stream")
    assert torch.equal(batch.input_ids, batch.clean_ids)
    total, parts = net(micro)
    assert total.item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert {name: value.item() for name, value in parts.items()} == pytest.approx({"clm": np.mean(losses)}, rel=1e-5)


def test_positions_that_a_causal_model_predicts_by_hand() -> None:
    """Each of 7 8 </s> 9 </s>, from the position before; not the first <s>, and no padding."""
    _, made = network("clm")
    begin, end, pad = special_ids().begin, special_ids().end, special_ids().pad
    rows = rows_of([[begin, 20, 21, end, 22, end], [begin, 23, end]], [[-1, 1, 1, -1, 4, -1], [-1, 1, -1]], [0, 1])
    rows = replace(rows, clean_ids=np.where(np.arange(6) < rows.lengths[:, None], rows.clean_ids, pad))
    found = made.objective.mask("rows", rows, Keys.of(1, 0, np.arange(2)), made.context)
    assert found.targets.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert found.labels.tolist() == [20, 21, end, 22, end, 23, end]
    assert found.label_language.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert found.input_ids is rows.clean_ids
    # a row of a stream: it begins inside a sentence, and has an <s> inside; the word <s> of a text is predicted
    rows = rows_of([[20, end, begin, 21, begin]], [[0, -1, -1, 3, 4]], [0])
    found = made.objective.mask("rows", rows, Keys.of(1, 0, np.arange(1)), made.context)
    assert (found.targets.tolist(), found.labels.tolist()) == ([0, 2, 3], [end, 21, begin])


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("xlm:pairs=0.5", (1, 1, 1)),
        ("xlm:pairs=0.5:reset=no", (1, 1, 1)),
        ("xlm:pairs=0.5:source=0.5:derived=2:tlm=3", (0.5, 2, 3)),
        ("xlm:pairs=0.5:source=0:tlm=0.25", (0, 1, 0.25)),
    ],
)
def test_xlm_by_a_slow_loop(name: str, weights: tuple[float, ...], kind: str) -> None:
    """Three means: over masked positions of the source, of the derived language, and of pairs."""
    net, made = network(name, kind)
    net.double()
    micro = micro_of(made, 3)
    spoken = net.model.language_ids
    rows = slow_losses(net.lm, micro["rows"], language_ids=spoken)
    language = micro["rows"].label_language.tolist()
    expected = {
        "mlm-source": np.mean([loss for loss, own in zip(rows, language, strict=True) if own == SOURCE]),
        "mlm-derived": np.mean([loss for loss, own in zip(rows, language, strict=True) if own == DERIVED]),
        "tlm": slow_masked(net.lm, micro["pairs"], language_ids=spoken),
    }
    total, parts = net(micro)
    assert {name: value.item() for name, value in parts.items()} == pytest.approx(expected, rel=1e-5)
    whole = sum(weight * part for weight, part in zip(weights, expected.values(), strict=True))
    assert total.item() == pytest.approx(whole, rel=1e-5)


def test_xlm_of_equal_weights_is_mlm_and_tlm_on_the_same_rows() -> None:
    """The rows and masks are those of MLM, so its parts are MLM's loss on each language."""
    net, made = network("xlm:pairs=0.5")
    micro, plain = micro_of(made, 2), micro_of(loader("mlm"), 2)
    for name in ("input_ids", "targets", "labels"):
        assert torch.equal(getattr(micro["rows"], name), getattr(plain["rows"], name))
    _, parts = net(micro)
    n = torch.bincount(micro["rows"].label_language)
    both = (parts["mlm-source"] * n[0] + parts["mlm-derived"] * n[1]) / n.sum()
    mlm = masked_part(net.model, micro["rows"])
    assert both.item() == pytest.approx(mlm.total.item() / mlm.by, rel=1e-5)


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("alpha", [10.0, 0.5])
def test_align_mlm_by_a_slow_loop(alpha: float, kind: str) -> None:
    net, made = network(f"align-mlm:{alpha}", kind)
    net.double()
    micro = micro_of(made)
    matrix = net.lm.get_input_embeddings().weight.detach().numpy()
    cosines = []
    for a, b in pair().dictionary.pairs.tolist():
        left, right = matrix[a], matrix[b]
        cosines.append(float(left @ right / np.sqrt(left @ left) / np.sqrt(right @ right)))
    align = -sum(cosines) / len(cosines)
    mlm = slow_masked(net.lm, micro["rows"], language_ids=False)
    total, parts = net(micro)
    assert total.item() == pytest.approx(mlm + alpha * align, rel=1e-5)
    assert parts["align"].item() == pytest.approx(align, rel=1e-5)
    assert parts["mlm"].item() == pytest.approx(mlm, rel=1e-5)
    assert not net.model.language_ids


@pytest.mark.parametrize(
    ("name", "stream"),
    [("dict-mlm:condition=yes:rate=70", "rows"), ("dict-tlm:condition=yes:switch=100", "switched")],
)
def test_conditioning_by_a_slow_loop(name: str, stream: str) -> None:
    net, made = network(name, "roberta", coverage="100")
    net.double()
    micro = micro_of(made)
    batch = micro[stream]
    lm = net.lm
    out = lm.base_model(input_ids=batch.input_ids, attention_mask=batch.attention, token_type_ids=batch.language)
    states = out.last_hidden_state.flatten(0, 1)
    types = lm.base_model.embeddings.token_type_embeddings.weight
    loss = 0.0
    wanted = batch.label_language.tolist()
    assert set(wanted) == {SOURCE, DERIVED}
    for target, label, language in zip(batch.targets.tolist(), batch.labels.tolist(), wanted, strict=True):
        both = torch.cat([states[target], types[language]])
        logits = lm.lm_head(net.state.weight @ both + net.state.bias).detach().numpy()
        loss -= logits[label] - np.log(np.exp(logits).sum())
    assert net(micro)[0].item() == pytest.approx(loss / len(wanted), rel=1e-5)


def test_alignment_by_hand() -> None:
    embeddings = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-5.0, 0.0]])
    assert alignment_loss(embeddings[[0]], embeddings[[1]]).item() == 0
    assert alignment_loss(embeddings[[0]], embeddings[[3]]).item() == pytest.approx(1)
    expected = -(0 + -1 + np.sqrt(0.5)) / 3
    assert alignment_loss(embeddings[[0, 0, 1]], embeddings[[1, 3, 2]]).item() == pytest.approx(expected)


# Laws of every objective


@cases
def test_the_loss_is_finite_and_has_a_gradient_for_every_weight(name: str, kind: str) -> None:
    """A weight without one is learnt by no process, and several processes would wait for it."""
    for tie in (True, False):
        net, made = network(name, kind, tie=tie)
        total, parts = net(micro_of(made))
        total.backward()
        assert torch.isfinite(total)
        assert all(value.ndim == 0 and not value.requires_grad for value in parts.values())
        missing = [n for n, p in net.named_parameters() if p.requires_grad and p.grad is None]
        assert not missing


@cases
def test_padding_changes_nothing(name: str, kind: str) -> None:
    net, made = network(name, kind)
    micro = micro_of(made)
    more = {"rows": 7, "pairs": 5, "switched": 5, "derived": 3}  # columns, the same of every view
    batches = {
        name: padded(batch, more[name.partition(":")[0]], special_ids().pad) for name, batch in micro.batches.items()
    }
    assert net(replace(micro, batches=batches))[0].item() == pytest.approx(net(micro)[0].item(), rel=1e-5)


@pytest.mark.parametrize(("name", "kind"), MASKED)
def test_only_masked_positions_are_projected_and_get_a_gradient(name: str, kind: str) -> None:
    net, made = network(name, kind)
    net.model = Spy(net.lm, special_ids(), language_ids=net.model.language_ids)
    micro = micro_of(made)
    net(micro)[0].backward()
    batches = list(micro.batches.values())
    assert [batch is seen for batch, (seen, _) in zip(batches, net.model.seen, strict=True)] == [True] * len(batches)
    assert net.model.projected == [len(batch.targets) for batch in batches]
    for batch, states in net.model.seen:
        gradient = states.grad.flatten(0, 1)
        ignored = torch.ones(len(gradient), dtype=torch.bool)
        ignored[batch.targets] = False
        if batch.links is not None:  # their counterparts predict them, too
            ignored[batch.links[1][torch.isin(batch.links[0], batch.targets)]] = False
        assert (gradient[ignored] == 0).all()
        assert (gradient[~ignored] != 0).any(dim=1).all()


@every
@pytest.mark.parametrize(("accumulate", "world"), [(4, 1), (2, 2)])
def test_micro_batches_add_up_to_the_step(name: str, accumulate: int, world: int) -> None:
    def gradients(processes: list[Loader]) -> tuple[float, dict[str, torch.Tensor]]:
        net, _ = network(name)
        loss = 0.0
        for process in processes:
            for part in range(process.accumulate):
                total, _ = net(micro_of(process, 2, part))
                total.backward()
                loss += total.item()
        return loss, {n: p.grad for n, p in net.named_parameters() if p.grad is not None}

    one, whole = gradients([loader(name)])
    parts, summed = gradients([loader(name, accumulate=accumulate, world=world, rank=r) for r in range(world)])
    assert parts == pytest.approx(one, rel=1e-5)
    for weight, gradient in whole.items():
        torch.testing.assert_close(summed[weight], gradient, rtol=1e-3, atol=1e-5)


def learnt(name: str) -> str:
    """The setting of an objective that learns two rows in a short time."""
    if name.startswith("xlm-align"):
        return "xlm-align:labels=gold:pairs=1.0"  # labels of the model's own change as it learns
    return "ppa:queue=500" if name == "ppa" else name  # its 32,000 take most of the time


def one_kind_each() -> list[tuple[str, str]]:
    """Every objective and setting with one kind of model, in turn one of those that it goes with."""
    kinds: dict[str, list[str]] = {}
    for name, kind in CASES:
        kinds.setdefault(learnt(name), []).append(kind)
    return [(name, found[number % len(found)]) for number, (name, found) in enumerate(kinds.items())]


def test_all_kinds_of_models_are_taught_by_heart() -> None:
    assert {kind for _, kind in one_kind_each()} >= {*ENCODERS}


@pytest.mark.parametrize(("name", "kind"), one_kind_each())
def test_two_rows_are_learnt_by_heart(name: str, kind: str) -> None:
    net, _ = network(name, kind)
    made = loader(name, batch_size=2, seed=5)
    micros = [micro_of(made, step) for step in range(30)]
    with torch.no_grad():
        every = set().union(*(net(micro)[1] for micro in micros))
        micro = next(micro for micro in micros if every <= (parts := net(micro)[1]).keys() and all(parts.values()))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.02, weight_decay=0.0)
    for _ in range(80):
        optimizer.zero_grad()
        total, parts = net(micro)
        total.backward()
        optimizer.step()
        found = {name: value.item() for name, value in parts.items() if not name.endswith((SOME, OF))}
        align = found.pop("align", -1.0)
        assert found
        if align < -0.9 and all(0 < value < 0.1 for value in found.values()):
            return
    pytest.fail(f"not after 80 steps: align {align}, {found}")


@every
def test_the_same_dictionary_for_every_objective(name: str) -> None:
    found = prepare_data(settings(name), SourceRequest("demo"), RunPaths(run=Path("none"), data=data_folder()))
    assert found.dictionary.sha256 == pair().dictionary.sha256
    assert found.files["dictionary.tsv"].name == "dictionary.tsv"
    assert found.data.fingerprint == pair().data.fingerprint


@every
def test_the_same_seed_gives_the_same_network(name: str) -> None:
    """Also where an objective brings layers of its own, whatever was drawn before."""
    one, _ = network(name)
    torch.rand(3)
    two, _ = network(name)
    for (key, a), (other, b) in zip(one.state_dict().items(), two.state_dict().items(), strict=True):
        assert key == other
        assert torch.equal(a, b), key


@every
def test_a_name_reads_back(name: str) -> None:
    found = read_objective(name)
    assert read_objective(str(found)) == found
    assert found.name in objective_names()
    assert isinstance(found, find_objective(found.name))
    assert found.summary().endswith(".")


# DICT-MLM's masks


def masks_of(
    objective: str, steps: int = 150, rate: float = 0.3, coverage: str = "25"
) -> tuple[SubwordRows, SubwordRows, Context]:
    made = loader(objective, rate=rate, coverage=coverage)
    rows, keys = stream_rows(made, "rows", 0, steps)
    return rows, made.objective.mask("rows", rows, keys, made.context), made.context


def translations(known: Context) -> dict[int, set[int]]:
    out: dict[int, set[int]] = {}
    for a, b in known.dictionary.pairs.tolist():
        out.setdefault(a, set()).add(b)
        out.setdefault(b, set()).add(a)
    return out


@pytest.mark.parametrize("rate", [50, 70, 90, 0, 100])
@pytest.mark.parametrize("coverage", ["25", "100"])
@pytest.mark.parametrize("among", ["entries", "all"])
def test_labels_are_translated_at_the_stated_rate(among: str, rate: int, coverage: str) -> None:
    rows, masked, known = masks_of(f"dict-mlm:rate={rate}:among={among}", coverage=coverage)
    entries = translations(known)
    width = rows.shape[1]
    words: dict[tuple[int, int], list[int]] = {}
    for row, column in zip(*np.nonzero(rows.word_ids >= 0), strict=True):
        words.setdefault((int(row), int(rows.word_ids[row, column])), []).append(int(row) * width + int(column))
    place = {int(target): i for i, target in enumerate(masked.targets)}
    able = turned = some = masked_words = 0
    flat_ids, flat_language, flat_shared = rows.clean_ids.ravel(), rows.language.ravel(), rows.shared.ravel()
    for word in words.values():
        chosen = [at in place for at in word]
        assert len(set(chosen)) == 1
        can = all(int(flat_ids[at]) in entries and not flat_shared[at] for at in word)
        some += can or among == "all"
        if not chosen[0]:
            continue
        assert can or among == "all"
        changed = []
        for at in word:
            i, was = place[at], int(flat_ids[at])
            label, language = int(masked.labels[i]), int(masked.label_language[i])
            changed.append(language != flat_language[at])
            assert label in entries.get(was, ()) if changed[-1] else label == was
        assert len(set(changed)) == 1
        assert can or not changed[0]
        masked_words += 1
        able += can
        turned += changed[0]
    assert able > 300
    assert abs(masked_words / some - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / some)
    assert abs(turned / able - rate / 100) < 4.5 * np.sqrt(rate * (100 - rate) / 10_000 / able) + 1e-9
    assert masked.language is rows.language
    own = [set(ids.tolist()) for ids in known.vocabulary.own]
    for label, language in zip(masked.labels.tolist(), masked.label_language.tolist(), strict=True):
        assert label in own[language] or label < 12


def test_labels_of_several_synonyms_are_uniform() -> None:
    from derivlang.training.translations import Translations

    pairs = np.array([[12, 300], [12, 301], [12, 302], [13, 300], [14, 14]])
    found = Translations.of(pairs, 400)
    assert found.pairs.tolist() == pairs[:4].tolist()
    known = found.has(np.array([[12, 13, 14, 300], [300, 301, 15, 12]]), np.array([[0], [1]]))
    assert known.tolist() == [[True, True, False, False], [True, True, False, False]]
    bits = Keys.of(1, np.arange(3000), np.zeros(3000, int)).bits("synonym", np.zeros((1, 1), int)).ravel()
    ids, languages = found.translate(np.full(3000, 12), np.zeros(3000, int), bits)
    assert set(languages.tolist()) == {1}
    counts = np.unique(ids, return_counts=True)
    assert counts[0].tolist() == [300, 301, 302]
    assert ((counts[1] - 1000) ** 2 / 1000).sum() < 18.4  # 2 degrees of freedom, 99.99 %
    back = found.translate(np.full(100, 300), np.ones(100, int), bits[:100])
    assert [set(some.tolist()) for some in back] == [{12, 13}, {0}]


@pytest.mark.parametrize("coverage", ["25", "50", "100"])
@pytest.mark.parametrize("among", ["entries", "all"])
def test_swapped_inputs_as_in_the_released_code(among: str, coverage: str) -> None:
    """Half the masked positions as in MLM; of the others those with an entry are swapped, the rest are copies."""
    rows, masked, known = masks_of(f"dict-mlm:variant=input:among={among}", coverage=coverage)
    entries = translations(known)
    n = len(masked.targets)
    ids, seen = rows.clean_ids.ravel(), masked.input_ids.ravel()
    flipped = masked.language.ravel() != rows.language.ravel()
    at = masked.targets
    assert masked.labels.tolist() == ids[at].tolist()
    assert masked.label_language.tolist() == rows.language.ravel()[at].tolist()
    untouched = np.ones(len(ids), bool)
    untouched[at] = False
    assert (seen[untouched] == ids[untouched]).all()
    assert not flipped[untouched].any()
    for was, now, swapped in zip(ids[at].tolist(), seen[at].tolist(), flipped[at].tolist(), strict=True):
        assert not swapped or now in entries[was]
    covered = np.mean([int(i) in entries for i in ids[at]])
    assert covered == 1 if among == "entries" else 0.1 < covered <= 1
    could = (rows.word_ids >= 0).ravel() & ((among == "all") | np.isin(ids, list(entries)))
    shares_of_masks = abs(n / could.sum() - 0.3)
    assert shares_of_masks < 4.5 * np.sqrt(0.3 * 0.7 / could.sum())
    shares = {
        "mask": ((seen[at] == special_ids().mask).mean(), 0.5 * 0.8),
        "swapped": (flipped[at].mean(), 0.5 * covered),
        "copied": ((~flipped[at] & (seen[at] == ids[at])).mean(), 0.5 * (1 - covered) + 0.5 * 0.1 * (1 + 1 / 288)),
    }
    for name, (found, wanted) in shares.items():
        assert abs(found - wanted) < 4.5 * np.sqrt(wanted * (1 - wanted) / n) + 1e-9, name


@pytest.mark.parametrize("name", ["dict-mlm", "dict-mlm:among=all", "dict-mlm:variant=input", "dict-mlm:rate=0", "mlm"])
def test_the_dose_by_a_slow_count(name: str, tmp_path: Path) -> None:
    """Masked positions whose input or label is of another language than the text, in a step and in the log."""
    made = loader(name)
    counts = []
    for (micro,) in made.steps(0, 6):
        rows, _ = stream_rows(made, "rows", micro.step, micro.step + 1)
        batch, translated = micro["rows"], 0
        own, seen = rows.language.ravel(), batch.language.ravel()
        for target, label, language in zip(batch.targets, batch.labels, batch.label_language, strict=True):
            assert (language == own[target]) == (label == rows.clean_ids.ravel()[target])
            translated += bool(seen[target] != own[target] or language != own[target])
        assert micro.counts["translated"] == translated
        counts.append((translated, len(batch.targets), int(rows.lengths.sum())))
    assert (sum(found for found, _, _ in counts) > 10) == (name not in ("dict-mlm:rate=0", "mlm"))
    trained(tmp_path / "run", name, log_every=2)
    for entry in log(tmp_path / "run"):
        since = {2: 0, 3: 2, 4: 3, 6: 4}[entry["step"]]  # step 3 has an entry because it is saved
        translated, masked, subwords = np.sum(counts[since : entry["step"]], axis=0).tolist()
        assert entry["masked_percent"] == round(100 * masked / subwords, 2)
        assert entry.get("translated_percent", 0) == round(100 * translated / masked, 2)
        assert ("translated_percent" in entry) == (translated > 0)


@pytest.mark.parametrize(
    ("objective", "kind", "message"),
    [
        ("clm", "roberta", "clm trains causal models, but the model .* is an encoder"),
        ("mlm", "gpt2", "mlm trains encoders, but the model .* is a causal one"),
        ("align-mlm", "llama", "align-mlm trains encoders"),
        ("xlm:pairs=0.5", "gpt2", "xlm trains encoders"),
    ],
)
def test_an_objective_of_the_other_kind_of_model(objective: str, kind: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as error:
        trained(tmp_path / "run", objective, kind=kind, language_ids=False, data=tmp_path / "data")
    assert error.value.id == "causal-model"
    assert not list(tmp_path.iterdir())


# A user's own


def test_an_objective_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.OBJECTIVES, "added", {})

    @register_objective
    @dataclass(frozen=True, kw_only=True)
    class Mine(Objective):
        """Masked words, and embeddings drawn to a learnt point."""

        name = "mine"
        dictionary = "entries"
        weight: float = param(0.5, "of the second part", positional=True)

        def state(self, model: Encoder, context: Context) -> torch.nn.Module:
            assert len(context.dictionary.pairs) == len(pair().dictionary.pairs)
            return torch.nn.Linear(model.embeddings.shape[1], 1)

        def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
            assert state is not None
            extra = state(model.embeddings).pow(2).mean() * micro.share
            return {"mlm": masked_part(model, micro["rows"]), "extra": LossPart(extra, weight=self.weight)}

    whole = trained(tmp_path / "whole", "mine:2.0")
    assert set(whole["parts"]) == {"mlm", "extra"}
    assert whole["loss"] == pytest.approx(whole["parts"]["mlm"] + 2 * whole["parts"]["extra"])
    split = trained(tmp_path / "split", "mine:2.0", accumulate=4)
    assert split["loss"] == pytest.approx(whole["loss"], rel=1e-4)
    found = torch.load(tmp_path / "whole" / "checkpoints" / "step-00000006" / "training.pt", weights_only=True)
    assert set(found["objective"]) == {"weight", "bias"}


def test_a_part_of_a_loss_that_is_a_tensor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare(Objective):
        """Forgets the `LossPart` of its second part."""

        name = "bare"

        def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
            size: Any = model.embeddings.square().mean()
            return {"mlm": masked_part(model, micro["rows"]), "size": size}

    monkeypatch.setitem(registry.OBJECTIVES.added, "bare", Bare)
    with pytest.raises(UsageError, match="the loss of bare has a part 'size' that is neither a LossPart nor a Share"):
        trained(tmp_path / "run", "bare")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (lambda model, micro: masked_part(model, micro["rows"]), "the loss of odd returned LossPart, not its parts"),
        (lambda model, micro: None, "the loss of odd returned NoneType, not its parts"),
        (lambda model, micro: micro["pairs"], r"`loss` of the objective odd failed: KeyError: 'pairs'"),
        (lambda model, micro: {}, "the loss of odd has no part that depends on the weights"),
        (lambda model, micro: {"x": LossPart(torch.zeros(()))}, "the loss of odd has no part that depends"),
    ],
)
def test_a_loss_that_fails_or_is_no_mapping_is_named(
    value: Callable[[Encoder, Step], Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd(Objective):
        """Returns no parts by name."""

        name = "odd"

        def loss(self, model: Encoder, micro: Step, state: torch.nn.Module | None) -> Loss:
            parts: Loss = value(model, micro)
            return parts

    monkeypatch.setitem(registry.OBJECTIVES.added, "odd", Odd)
    with pytest.raises(UsageError, match=told):
        trained(tmp_path / "run", "odd")


def test_an_objective_of_another_package(plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.OBJECTIVES, "added", {})
    assert "small" in objective_names()
    result = trained(tmp_path / "run", "small:weight=3.0")
    assert set(result["parts"]) == {"mlm", "size"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mln", "there is no objective 'mln'; did you mean mlm"),
        ("alignmlm", "did you mean align-mlm"),
        ("mlm:3", "a value without a name"),
        ("mlm,xlm", "names 2 objectives"),
        ("align-mlm:alpha=much", "alpha: must be a number, got 'much'"),
        ("align-mlm:alpha=nan", "must be a finite number"),
        ("align-mlm:-1", "alpha: must be at least 0, got -1.0"),
        ("align-mlm:beta=1", "there is no parameter of align-mlm 'beta'"),
        ("dict-mlm:rate=101", "rate: must be at most 100, got 101"),
        ("dict-mlm:rate=0.5", "must be a whole number"),
        ("dict-mlm:variant=output", "must be label or input"),
        ("dict-mlm:among=some", "must be entries or all"),
        ("dict-tlm:switch=101", "switch: must be at most 100, got 101"),
        ("dict-tlm:switch=-1", "switch: must be at least 0, got -1"),
        ("weam:weight=inf", "weight: must be a finite number, got inf"),
        ("weam:weight=nan", "weight: must be a finite number, got nan"),
        ("weam:weight=-1", "weight: must be at least 0, got -1.0"),
        ("xlm:rows=1", "there is no parameter of xlm 'rows'"),
        ("xlm:pairs=-1", "pairs: must be at least 0, got -1.0"),
        ("xlm:tlm=-1", "tlm: must be at least 0, got -1.0"),
        ("tlm:reset=maybe", "reset: must be yes or no, got 'maybe'"),
        ("", "an empty part"),
    ],
)
def test_what_is_no_objective(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_objective(spec)
    assert message in str(error.value)


def test_a_model_without_token_types_has_no_language_embeddings() -> None:
    with pytest.raises(UsageError, match="no language embeddings"):
        _ = model_of("modernbert").language_embeddings


@pytest.mark.parametrize("name", ["dict-mlm:rate=100:among=all", "dict-mlm:rate=100:among=all:variant=input"])
def test_words_that_an_overlap_keeps_are_never_translated(name: str) -> None:
    """They have no other form; their sub-words may have one in other words."""
    made = loader(name, spec="trans:overlap=25,inv")
    rows, keys = stream_rows(made, "rows", 0, 40)
    assert 0.1 < rows.shared[rows.word_ids >= 0].mean() < 0.9
    found = made.objective.mask("rows", rows, keys, made.context)
    kept = rows.shared.ravel()[found.targets]
    assert kept.any()
    assert (found.labels[kept] == rows.clean_ids.ravel()[found.targets[kept]]).all()
    assert (found.label_language[kept] == rows.language.ravel()[found.targets[kept]]).all()
    assert (found.language[rows.shared] == rows.language[rows.shared]).all()
