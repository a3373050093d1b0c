"""The model: tying that holds through every move, folders that `transformers` reads, languages and positions."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import StoreError, UsageError
from derivlang.lexical.pretrained import quiet
from derivlang.training.checkpoint import load_model
from derivlang.training.config import ModelConfig
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.model import build_model, is_tied, set_tie
from tests.training import (
    CAUSAL,
    KINDS,
    SEQ_LEN,
    batches,
    built,
    loader,
    micro_of,
    model_file,
    model_of,
    pair,
    rows_batch,
    special_ids,
    toml,
    trained,
    weights,
)
from tools.bench_train import flop_per_token

kinds = pytest.mark.parametrize("kind", KINDS)
ties = pytest.mark.parametrize("tie", [True, False])


def step(lm: Any, *, tie: bool) -> None:
    """One update by the masked words' loss."""
    model = Encoder(lm, special_ids())
    part = rows_batch()
    logits = model.predict(model.states(part).flatten(0, 1)[part.targets])
    torch.nn.functional.cross_entropy(logits, part.labels).backward()
    torch.optim.SGD(lm.parameters(), lr=0.5).step()
    lm.zero_grad()
    assert is_tied(lm) == tie


# tying


@kinds
@ties
def test_tying_holds_after_every_move(kind: str, tie: bool, tmp_path: Path) -> None:
    lm = built(kind, tie=tie)
    source, output = lm.get_input_embeddings, lm.get_output_embeddings
    assert is_tied(lm) == (output().weight is source().weight) == tie
    step(lm, tie=tie)
    for move in (lambda m: m.to(torch.float64), lambda m: m.to(torch.float32), copy.deepcopy, lambda m: m.to("cpu")):
        lm = move(lm)
        assert is_tied(lm) == tie
        step(lm, tie=tie)
    assert torch.equal(lm.get_input_embeddings().weight, lm.get_output_embeddings().weight) == tie
    before = {name: value.clone() for name, value in lm.state_dict().items()}
    lm.save_pretrained(tmp_path / "saved")
    with quiet():
        import transformers

        kept: Any = transformers.AutoModelForCausalLM if kind in CAUSAL else transformers.AutoModelForMaskedLM
        other = kept.from_pretrained(tmp_path / "saved")
    for again in (load_model(tmp_path / "saved"), other):
        assert is_tied(again) == tie
        assert again.config.tie_word_embeddings == tie
        assert {name: True for name in before} == {
            name: torch.equal(value, before[name]) for name, value in again.state_dict().items()
        }
        again.train()
        step(again, tie=tie)
        again.tie_weights()  # as trainers do
        assert is_tied(again) == tie


@kinds
@ties
def test_an_untied_output_does_not_move_with_the_input(kind: str, tie: bool) -> None:
    lm = built(kind, tie=tie)
    before = lm.get_output_embeddings().weight.detach().clone()
    lm.get_input_embeddings().weight.pow(2).sum().backward()
    torch.optim.SGD(lm.parameters(), lr=0.1).step()
    assert torch.equal(lm.get_output_embeddings().weight, before) != tie
    assert not torch.equal(lm.get_input_embeddings().weight, before)


@kinds
def test_setting_the_tie_later(kind: str) -> None:
    lm = built(kind, tie=True)
    set_tie(lm, False)
    assert not is_tied(lm)
    assert torch.equal(lm.get_input_embeddings().weight, lm.get_output_embeddings().weight)
    step(lm, tie=False)
    assert not torch.equal(lm.get_input_embeddings().weight, lm.get_output_embeddings().weight)
    set_tie(lm, True)
    assert is_tied(lm)


@pytest.mark.parametrize("kind", KINDS)
@ties
def test_a_trained_model_is_tied_as_asked(kind: str, tie: bool, tmp_path: Path) -> None:
    result = trained(tmp_path / "run", "clm" if kind in CAUSAL else "mlm", kind=kind, tie=tie, steps=2)
    lm = load_model(tmp_path / "run" / "model")
    assert is_tied(lm) == tie
    assert result["parameters"] == sum(p.numel() for p in {id(p): p for p in lm.parameters()}.values())
    one, two = lm.get_input_embeddings().weight, lm.get_output_embeddings().weight
    assert torch.equal(one, two) == tie
    n = pair().languages.size
    assert one.shape == two.shape == (n, 16)


# folders


@kinds
def test_a_run_is_read_by_auto_model_and_auto_tokenizer(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    trained(tmp_path / "run", "clm" if kind in CAUSAL else "xlm", kind=kind, steps=2)
    folder = tmp_path / "run" / "model"
    with quiet():
        encoder = AutoModel.from_pretrained(folder).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
    languages = pair().languages
    for batch in batches("trans,inv"):
        found = languages.tokenizer.encoder.batch(batch)
        words = batch.strings().to_pylist()[:200]
        ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
        assert ids == found.ids[: found.offsets[200]].tolist()
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id) == (
        pair().data.special_ids.pad,
        pair().data.special_ids.mask,
    )
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (
        pair().data.special_ids.begin,
        pair().data.special_ids.end,
    )
    assert encoder.config.pad_token_id == tokenizer.pad_token_id
    lm = load_model(folder).eval()
    spoken = kind in ("roberta", "bert")
    part = rows_batch()
    more = {"token_type_ids": part.language} if spoken else {}
    with torch.no_grad():
        theirs = encoder(input_ids=part.input_ids, attention_mask=part.attention.long(), **more).last_hidden_state
        ours = Encoder(lm, special_ids(), language_ids=spoken).states(part)
    torch.testing.assert_close(ours[part.attention], theirs[part.attention])
    assert weights(folder).keys() == weights(tmp_path / "run" / "checkpoints" / "step-00000002" / "model").keys()


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="this is not a valid model"):
        load_model(tmp_path)
    built().save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"cannot be read|not a valid model") as error:
        load_model(tmp_path)
    assert str(tmp_path) in str(error.value)


# languages and positions


@pytest.mark.parametrize("kind", ["roberta", "bert"])
def test_language_ids_are_token_types(kind: str) -> None:
    model = model_of(kind, language_ids=True)
    assert model.language_embeddings.shape == (2, 16)
    part = rows_batch()
    assert set(part.language.unique().tolist()) == {SOURCE, DERIVED}
    plain = model.states(part)
    with torch.no_grad():
        weight = model.language_embeddings
        weight[DERIVED] += torch.arange(16)
    changed = (model.states(part) - plain).abs().amax(dim=(1, 2)) > 1e-3
    assert changed.tolist() == (part.language[:, 0] == DERIVED).tolist()
    assert model_of(kind).module.config.type_vocab_size == 1


@kinds
def test_positions_restart_in_the_second_half_of_a_pair(kind: str) -> None:
    """With one layer that does not mix positions, equal sub-words at equal places have equal states."""
    pairs = micro_of(loader("xlm:pairs=0.5"))["pairs"]
    assert pairs.positions is not None
    for positions, attention in zip(pairs.positions.tolist(), pairs.attention.tolist(), strict=True):
        half = sum(attention) // 2
        assert positions[: 2 * half] == [*range(half), *range(half)]
    first = 2 if kind == "roberta" else 0
    model = model_of(kind)
    seen = []
    model.module.base_model.register_forward_pre_hook(
        lambda module, args, options: seen.append(options.get("position_ids")), with_kwargs=True
    )
    model.states(pairs)
    assert torch.equal(seen[-1], pairs.positions + first)
    assert micro_of(loader("xlm:pairs=0.5:reset=no"))["pairs"].positions is None


@kinds
def test_states_of_every_layer(kind: str) -> None:
    """The last one is what the head gets; 0 is the embeddings, which do not depend on other positions."""
    model, batch = model_of(kind), rows_batch()
    n = model.module.config.num_hidden_layers
    assert torch.equal(model.states(batch, 0), model.states(batch, layer=0))
    last = model.states(batch)
    assert last.shape == model.states(batch, n).shape == (*batch.input_ids.shape, 16)
    out = model.module.base_model(input_ids=batch.input_ids, attention_mask=batch.attention, output_hidden_states=True)
    for layer, states in enumerate(out.hidden_states):
        assert torch.equal(model.states(batch, layer), states)
    changed = batch.input_ids.clone()
    changed[:, 3] = batch.input_ids.max()
    differs = (model.states(replace(batch, input_ids=changed), 0) != model.states(batch, 0)).any(dim=(0, 2))
    assert differs.nonzero().flatten().tolist() == [3]


@kinds
def test_ids_of_padding_have_no_effect(kind: str) -> None:
    model, batch = model_of(kind), rows_batch()
    junk = batch.input_ids.masked_fill(~batch.attention, 17)
    assert not torch.equal(junk, batch.input_ids)
    assert torch.equal(model.states(replace(batch, input_ids=junk)), model.states(batch))


def test_the_cross_entropy_at_some_positions_is_the_one_of_the_whole_model() -> None:
    """From states in the caller's precision, and in float32."""
    model, batch = model_of("roberta", language_ids=True), rows_batch()
    derived = torch.ones_like(batch.input_ids)
    whole = model.module(
        input_ids=batch.input_ids, attention_mask=batch.attention.long(), token_type_ids=derived
    ).logits
    wanted = torch.nn.functional.cross_entropy(whole.flatten(0, 1)[batch.targets], batch.labels, reduction="none")

    def found(reduction: str) -> torch.Tensor:
        states = model(batch.input_ids, batch.attention, DERIVED).flatten(0, 1)[batch.targets]
        return model.cross_entropy(states, batch.labels, reduction)

    torch.testing.assert_close(found("none"), wanted)
    torch.testing.assert_close(found("sum"), wanted.sum())
    with torch.autocast("cpu", torch.bfloat16):
        rounded = found("none")
        assert model.predict(model.states(batch)).dtype == torch.bfloat16
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, found("none"))


def test_states_without_gradient_have_no_dropout() -> None:
    lm = build_model(
        ModelConfig.read(model_file("roberta", 0.5)),
        pair().languages.size,
        SEQ_LEN,
        pair().data.special_ids,
        tie=True,
        language_ids=False,
        seed=1,
    )
    model, batch = Encoder(lm.train(), special_ids()), rows_batch()
    assert not torch.equal(model.states(batch), model.states(batch))
    with model.without_gradient():
        assert torch.equal(model.states(batch), model.states(batch))
        assert not model.states(batch).requires_grad
        assert not lm.training
    assert lm.training
    lm.eval()
    with pytest.raises(ZeroDivisionError), model.without_gradient():
        raise ZeroDivisionError
    assert not lm.training


# descriptions


def test_the_named_models() -> None:
    special_ids = pair().data.special_ids
    paper = ModelConfig.read("roberta-8")
    config = paper.config(80_000, 512, special_ids, tie=False, language_ids=True)
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_size) == (8, 8, 512)
    assert (config.intermediate_size, config.max_position_embeddings, config.vocab_size) == (2048, 514, 80_000)
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.1, 0.1)
    assert (config.hidden_act, config.initializer_range, config.layer_norm_eps) == ("gelu", 0.02, 1e-5)
    assert config.type_vocab_size == 2
    assert paper.training == {
        "vocab_size": 40_000, "seq_len": 512, "batch_size": 128, "steps": 500_000, "learning_rate": 1e-4,
        "warmup": 0.02, "mask": 0.15,
    }  # fmt: skip
    tiny = ModelConfig.read("tiny")
    config = tiny.config(3988, 32, special_ids, tie=True, language_ids=False)
    assert config.model_type == "modernbert"
    assert not tiny.token_types
    assert set(config.layer_types) == {"full_attention"}
    assert all(rope["rope_theta"] == 100.0 for rope in config.rope_parameters.values())
    assert (config.cls_token_id, config.sep_token_id, config.pad_token_id) == (
        special_ids.begin,
        special_ids.end,
        special_ids.pad,
    )


@kinds
def test_weights_follow_from_the_seed_alone(kind: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = built(kind)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(9)
    two, three = built(kind), built(kind, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    same = torch.equal(one.get_input_embeddings().weight, three.get_input_embeddings().weight)
    assert not same


def test_embeddings_are_as_wide_as_asked(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(toml().replace("embedding_std = 0.1", "embedding_std = 3.0"))
    special_ids = pair().data.special_ids
    for tie in (True, False):
        lm = build_model(
            ModelConfig.read(str(tmp_path / "a.toml")), 600, 32, special_ids, tie=tie, language_ids=False, seed=1
        )
        for weight in (lm.get_input_embeddings().weight, lm.get_output_embeddings().weight):
            assert weight.std().item() == pytest.approx(3.0, rel=0.1)


def test_a_longer_row_than_positions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(toml("roberta", more="max_position_embeddings = 20"))
    with pytest.raises(UsageError, match="max_position_embeddings"):
        ModelConfig.read(str(tmp_path / "a.toml")).config(
            600, SEQ_LEN, pair().data.special_ids, tie=True, language_ids=False
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[model]", "[model", "not a valid TOML file"),
        (
            'type = "modernbert"',
            'type = "t5"',
            "[model] type is 't5'; there are: bert, gpt2, llama, modernbert, roberta",
        ),
        ('type = "modernbert"', "", "[model] type is None"),
        ("[model]", "[modle]", "modle"),
        ("hidden_size = 16", "hiden_size = 16", "hiden_size"),
        ("hidden_size = 16", 'hidden_size = "wide"', "hidden_size"),
        ("hidden_size = 16", "vocab_size = 16", "vocab_size"),
        ("num_attention_heads = 2", "num_attention_heads = 3", "heads"),
        ("num_hidden_layers = 1", "num_hidden_layers = -1", "num_hidden_layers"),
        ("embedding_std = 0.1", 'embedding_std = "x"', "embedding_std"),
        ("embedding_std = 0.1", "attention_dropout = nan", "attention_dropout is nan, not a finite number"),
        ("theta = 100.0", 'theta = "x"', "theta"),
        ("[training]", "[trainig]", "trainig"),
        ("warmup = 0.1", "warmpu = 0.1", "there is no setting of [training] 'warmpu'; did you mean warmup"),
        ("steps = 6", 'steps = "6"', "steps"),
        ("steps = 6", "steps = 6.5", "steps"),
        ("steps = 6", "steps = true", "steps"),
        ("learning_rate = 3e-3", "learning_rate = nan", "learning_rate"),
        ("seq_len = 32", "seq_len = 7", "--seq-len"),
        ("mask = 0.3", "mask = 1.0", "--mask"),
        ("mask = 0.3", "parallel = 0", "parallel"),
    ],
)
def test_what_is_no_description(old: str, new: str, message: str, tmp_path: Path) -> None:
    from derivlang.training.plan import settings_of

    text = toml()
    assert text.count(old) == 1
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new), "utf-8")
    options = {"spec": "trans,inv", "objective": "mlm", "model": str(path)}

    def build() -> None:
        _, model_config, _ = settings_of("demo", options)
        build_model(model_config, 600, SEQ_LEN, pair().data.special_ids, tie=True, language_ids=False, seed=1)

    with pytest.raises(UsageError) as error:
        build()
    assert message in str(error.value).replace("learning-rate", "learning_rate")


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no model 'tinny'; did you mean tiny"):
        ModelConfig.read("tinny")
    with pytest.raises(UsageError, match="cannot be read"):
        ModelConfig.read(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n" + toml().encode())
    with pytest.raises(UsageError, match=r"latin\.toml"):
        ModelConfig.read(str(tmp_path / "latin.toml"))


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_operations_of_a_training_step_by_hand(kind: str) -> None:
    """6 for each weight of a matrix: four of 16 × 16, two of 16 × 32; and the head."""
    lm = built(kind)
    n = pair().languages.size
    body = 6 * (4 * 16 * 16 + 2 * 16 * 32) + 12 * 1 * SEQ_LEN * 16
    body += 6 * 16 * 16 * (kind == "bert") / 4  # a dense layer before the output, at a quarter of the positions
    if kind == "bert":
        assert flop_per_token(lm, SEQ_LEN, 0.25) == body + 6 * 16 * n / 4
    else:
        assert flop_per_token(lm, SEQ_LEN, 1.0) == body + 6 * 16 * n


def test_fields_of_gpt2_have_the_common_names(tmp_path: Path) -> None:
    config = ModelConfig.read("tiny-gpt").config(3988, 64, pair().data.special_ids, tie=True, language_ids=False)
    assert (config.n_embd, config.n_layer, config.n_head, config.n_inner, config.n_positions) == (64, 2, 4, 256, 64)
    assert config.resid_pdrop == config.embd_pdrop == config.attn_pdrop == 0
    path = tmp_path / "own.toml"
    path.write_text(toml("gpt2").replace("hidden_size", "n_embd"), "utf-8")
    with pytest.raises(UsageError, match="n_embd'; there are: hidden_size"):
        ModelConfig.read(str(path)).config(600, SEQ_LEN, pair().data.special_ids, tie=True, language_ids=False)
    path.write_text(toml("gpt2", more="max_position_embeddings = 20"), "utf-8")
    with pytest.raises(UsageError, match="max_position_embeddings = 20 is too small"):
        ModelConfig.read(str(path)).config(600, SEQ_LEN, pair().data.special_ids, tie=True, language_ids=False)
    path.write_text(toml("llama"), "utf-8")
    config = ModelConfig.read(str(path)).config(600, SEQ_LEN, pair().data.special_ids, tie=True, language_ids=False)
    assert (config.rope_parameters["rope_theta"], config.max_position_embeddings) == (100.0, 512)


def test_a_kind_that_cannot_be_trained() -> None:
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.for_model("xlm", vocab_size=50, emb_dim=16, n_layers=1, n_heads=2)
    model = Encoder(AutoModelForMaskedLM.from_config(config), special_ids())
    with pytest.raises(UsageError, match="'xlm' is not suitable: it has no head"):
        model.predict(torch.zeros(1, 16))


def test_description_and_name() -> None:
    found = ModelConfig.read(model_file("roberta"))
    assert (found.type, found.token_types, found.embedding_std) == ("roberta", True, None)
    assert found.training["seq_len"] == SEQ_LEN
    assert np.isclose(found.training["learning_rate"], 3e-3)
