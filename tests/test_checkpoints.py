"""Checkpoints that were trained elsewhere, with their own tokenizers: sub-words of words, data, pairs, runs."""

from __future__ import annotations

import json
import shutil
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

import derivlang
from derivlang.core.errors import DerivlangError, StoreError, UsageError
from derivlang.engine.batches import Source
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.made_of import made
from derivlang.training.begun_from import checkpoint_folder, load_model
from derivlang.training.encode import encode
from derivlang.training.languages import DERIVED, SOURCE, Languages, of_texts
from derivlang.training.masking import Keys
from derivlang.training.streams.pair_source import DerivedPairs
from derivlang.training.streams.pairs import PairRows, SentencePairs
from tests.checkpoints import TYPES, checkpoint
from tests.commands import run
from tests.tiny_runs import seal

KINDS = ("bert", "roberta", "xlm-roberta")  # word pieces, bytes, a unigram model
SPECS = ("inv", "trans:script=cyrillic,inv", "trans:script=georgian,perm:seed=3")


def languages(kind: str, spec: str) -> Languages:
    pipeline = Pipeline.parse(spec)
    return of_texts(pipeline, ForeignTokenizer.load(checkpoint(kind)), pipeline.fit())


def source(spec: str) -> Source:
    return Source.open(Pipeline.parse(spec), SourceRequest("demo"))


def slow_words(tokenizer: ForeignTokenizer, words: list[str]) -> list[list[int]]:
    """The ids of each word of a sentence, by the character at which each sub-word of its text begins."""
    text, owner = " ".join(words), [i for i, word in enumerate(words) for _ in range(len(word) + 1)]
    library = tokenizer.whole.backend_tokenizer
    library.no_truncation()
    library.encode_special_tokens = True
    out: list[list[int]] = [[] for _ in words]
    found = library.encode(text, add_special_tokens=False)
    for number, (begin, _) in zip(found.ids, found.offsets, strict=True):
        # a space belongs to the next word
        at = begin + 1 if begin < len(text) and text[begin] == " " else begin
        out[owner[min(at, len(owner) - 1)]].append(number)
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_words_by_offsets(kind: str) -> None:
    found = ForeignTokenizer.load(checkpoint(kind))
    for batch in source("inv").batches("train"):
        encoded = found.encode(batch.types, batch.words, batch.sentences)
        words = batch.strings().to_pylist()
        for begin, end in pairwise(batch.sentences[:60].tolist()):
            expected = slow_words(found, words[begin:end])
            got = [encoded.ids[a:b].tolist() for a, b in pairwise(encoded.offsets[begin : end + 1].tolist())]
            assert got == expected


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_in_a_text_are_text(kind: str) -> None:
    found = ForeignTokenizer.load(checkpoint(kind))
    specials = set(found.whole.all_special_ids) - {found.unknown}
    types = found.whole.all_special_tokens
    encoded = found.encode(pa.array(types), np.arange(len(types), dtype=np.int32), np.array([0, len(types)]))
    assert not specials & set(encoded.ids.tolist())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kind", KINDS)
def test_both_languages_hold_the_same_words(kind: str, spec: str) -> None:
    """The derived side is the text that `make` writes; its words are those that the order names."""
    found = languages(kind, spec)
    for batch in source(spec).batches("train"):
        both = found.parallel(batch)
        derived = found.pipeline.derive(batch, found.readers[1].lexicon, split=False)
        ours, theirs = batch.strings().to_pylist(), derived.derived.strings().to_pylist()
        word = {}
        for name, side in (("source", both.source), ("derived", both.derived)):
            numbers = both.words(side)
            word[name] = [side.ids[numbers == w].tolist() for w in range(200)]
            assert (np.diff(side.slots[numbers == 0]) == 1).all()
        order = derived.order.index.tolist()
        for begin, end in pairwise(derived.order.sentences.tolist()):
            if end > 200:
                break
            assert [word["source"][w] for w in range(begin, end)] == slow_words(found.tokenizer, ours[begin:end])
            expected = slow_words(found.tokenizer, theirs[begin:end])
            assert [word["derived"][order[j]] for j in range(begin, end)] == expected


@pytest.mark.parametrize("length", [16, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_data_holds_every_subword_of_both_languages_once(tmp_path: Path, kind: str, length: int) -> None:
    spec = "trans:script=cyrillic,inv"
    found, text = languages(kind, spec), source(spec)
    data = encode(partial(made, tmp_path / "data"), text, found, split="train", seq_len=length)
    again = encode(partial(made, tmp_path / "data"), text, found, split="train", seq_len=length)
    assert again.fingerprint == data.fingerprint
    for language in (SOURCE, DERIVED):
        rows = data.rows(np.arange(data.n_instances(language)), np.full(data.n_instances(language), language))
        kept = rows.clean_ids[rows.word_ids >= 0]
        sides = [found.parallel(batch).sides[language] for batch in text.batches("train")]
        # pieces are in source order, so sentences that are cut change the order within them alone
        assert np.bincount(kept).tolist() == np.bincount(np.concatenate([side.ids for side in sides])).tolist()
        assert rows.lengths.max() <= length
        assert (rows.clean_ids[:, 0] == found.special_ids.begin).all()
        assert int(rows.lengths.sum()) == data.filled(language)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_hold_the_same_words_and_links_join_them(tmp_path: Path, kind: str) -> None:
    spec = "trans:script=cyrillic,inv"
    found = languages(kind, spec)
    data = encode(partial(made, tmp_path / "data"), source(spec), found, split="train", seq_len=24)
    pairs = DerivedPairs(data, 50, seed=1)
    some = np.arange(0, len(pairs.sizes), 3)
    source_side, derived = pairs.side(some, SOURCE), pairs.side(some, DERIVED)
    left, right = pairs.links(some)
    piece = [np.repeat(np.arange(len(some)), pairs.sizes[some, side]) for side in (SOURCE, DERIVED)]
    expected = {
        (i, j)
        for i in range(len(source_side.ids))
        for j in np.flatnonzero(piece[DERIVED] == piece[SOURCE][i]).tolist()
        if source_side.words[i] == derived.words[j]
    }
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == expected
    assert len(left) == len(expected)
    rows = PairRows(SentencePairs(links=True), pairs, 48).rows(np.arange(4), Keys.of(1, 0, np.arange(4)))
    assert rows.links is not None
    assert len(rows.links)


def pretrain(out: Path, kind: str, *more: str, spec: str = "trans:script=cyrillic,inv", code: int = 0) -> str:
    sizes = ("--steps", "4", "--batch-size", "4", "--seq-len", "32", "--pair-length", "32")
    init = ("--init", checkpoint(kind))
    found = run("pretrain", "--source", "demo", "--t", spec, *init, *sizes, "-o", out, *more, code=code)
    return found.out + found.err


@pytest.mark.parametrize("kind", TYPES)
def test_a_run_from_a_checkpoint(tmp_path: Path, kind: str) -> None:
    pretrain(tmp_path / "run", kind)
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert (facts["status"], facts["model"]["type"], facts["dictionary"]) == ("done", kind, None)
    assert facts["model"]["name"] == str(checkpoint(kind))
    trained, before = load_model(tmp_path / "run/model", causal=False), load_model(checkpoint(kind), causal=False)
    assert trained.config.to_dict().keys() == before.config.to_dict().keys()
    assert not torch.equal(trained.get_input_embeddings().weight, before.get_input_embeddings().weight)
    tokenizer = ForeignTokenizer.load(tmp_path / "run/model")
    assert tokenizer.fingerprint == ForeignTokenizer.load(checkpoint(kind)).fingerprint


def test_prepared_data_has_the_tokenizer_of_the_checkpoint(tmp_path: Path) -> None:
    told = pretrain(tmp_path / "run", "bert", "--data", str(tmp_path / "data"), "--data-only", "--json", spec="inv")
    assert json.loads(told.splitlines()[0])["subwords"] > 1000
    found = ForeignTokenizer.load(next((tmp_path / "data").glob("tokenizer-*")))
    assert found.fingerprint == ForeignTokenizer.load(checkpoint("bert")).fingerprint


def test_resuming_gives_the_same_model(tmp_path: Path) -> None:
    options = ("--objective", "tlm", "--save-every", "2")
    pretrain(tmp_path / "whole", "bert", *options)
    pretrain(tmp_path / "part", "bert", *options)
    shutil.rmtree(tmp_path / "part/model")
    shutil.rmtree(tmp_path / "part/checkpoints/step-00000004")
    facts = json.loads((tmp_path / "part/run.json").read_text())
    (tmp_path / "part/run.json").write_text(json.dumps({**facts, "status": "stopped", "result": {}}))
    seal(tmp_path / "part")
    pretrain(tmp_path / "part", "bert", *options, "--resume")
    files = [tmp_path / name / "model/model.safetensors" for name in ("whole", "part")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_new_embeddings_for_the_body_of_a_checkpoint(tmp_path: Path) -> None:
    """MonoTrans: a tokenizer of derivlang, new embeddings, the checkpoint's body frozen."""
    pretrain(tmp_path / "run", "bert", "--embeddings", "new", "--freeze", "encoder", "--vocab-size", "300")
    trained, before = load_model(tmp_path / "run/model", causal=False), load_model(checkpoint("bert"), causal=False)
    for ours, theirs in zip(trained.bert.encoder.parameters(), before.bert.encoder.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert trained.get_input_embeddings().weight.shape[0] == 2 * 300 - 12


@pytest.mark.parametrize("objective", ["align-mlm", "dict-mlm"])
def test_objectives_of_entries_need_a_twin(tmp_path: Path, objective: str) -> None:
    assert "has no twin" in pretrain(tmp_path / "run", "bert", "--objective", objective, code=2)
    assert not (tmp_path / "run/run.json").exists()


def without(folder: Path, out: Path, *names: str) -> Path:
    shutil.copytree(folder, out)
    for name in names:
        (out / name).unlink()
    return out


def test_refused_checkpoints(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModel

    with pytest.raises(DerivlangError, match="tokenizer"):
        ForeignTokenizer.load(without(checkpoint(), tmp_path / "a", "tokenizer.json"))
    headless = without(checkpoint(), tmp_path / "b", "model.safetensors")
    AutoModel.from_config(AutoConfig.from_pretrained(headless)).save_pretrained(headless)
    with pytest.raises(StoreError, match="weights of a masked language model"):
        load_model(headless, causal=False)
    with pytest.raises(StoreError):
        load_model(without(checkpoint(), tmp_path / "c", "model.safetensors"), causal=False)
    with pytest.raises(UsageError, match="orders sub-words"):
        languages("bert", "inv:unit=token")
    assert checkpoint_folder(str(tmp_path)) is None
    assert checkpoint_folder(str(checkpoint())) == checkpoint()
    with pytest.raises(StoreError, match="hub"):
        checkpoint_folder("hub:")


@pytest.mark.parametrize("kind", ["opt", "t5"])
def test_a_type_of_model_that_is_neither_masked_nor_of_a_known_causal_form(kind: str, tmp_path: Path) -> None:
    from transformers import AutoConfig

    folder = without(checkpoint(), tmp_path / "model", "config.json")
    AutoConfig.for_model(kind).save_pretrained(folder)
    words = ("--t", "inv", "--source", "demo", "-o", tmp_path / "out", "--init", folder)
    for command in (("pretrain", "--objective", "clm"), ("pretrain", "--objective", "mlm"), ("evaluate",)):
        told = run(*command, *words, code=2).err
        assert f"a model of the type '{kind}' can neither be trained nor evaluated here [model]" in told
        assert "causal one of the types gpt2 and llama" in told
    assert not (tmp_path / "out").exists()


def test_its_rows_are_not_cut_from_a_stream(tmp_path: Path) -> None:
    told = pretrain(tmp_path / "run", "bert", "--packing", "stream", "--data-only", code=2)
    assert "--packing: rows of languages without a twin are of whole sentences" in told
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_without_a_mask_token(tmp_path: Path) -> None:
    folder = without(checkpoint(), tmp_path / "model")
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in config.items() if name != "mask_token"}))
    found = run("pretrain", "--source", "demo", "--t", "inv", "--init", str(folder), "--steps", "2",
                "-o", str(tmp_path / "run"), code=1)  # fmt: skip
    assert "no mask token" in found.err


def test_a_tokenizer_without_an_entry_for_unknown_words(tmp_path: Path) -> None:
    folder = without(checkpoint(), tmp_path / "model")
    path = folder / "tokenizer.json"
    made = json.loads(path.read_text("utf-8"))
    made["model"]["unk_token"] = "missing"
    path.write_text(json.dumps(made), "utf-8")
    found = run("pretrain", "--source", "demo", "--t", "trans,inv", "--init", str(folder), "--steps", "2",
                "-o", str(tmp_path / "run"), code=1)  # fmt: skip
    assert f"{folder}: this is not a valid tokenizer" in found.err


def test_a_vocabulary_larger_than_the_model(tmp_path: Path) -> None:
    folder = without(checkpoint(), tmp_path / "model")
    shutil.copy(checkpoint("roberta") / "tokenizer.json", folder)
    shutil.copy(checkpoint("roberta") / "tokenizer_config.json", folder)
    found = run("pretrain", "--source", "demo", "--t", "inv", "--init", str(folder), "--steps", "2",
                "-o", str(tmp_path / "run"), code=2)  # fmt: skip
    assert "embeddings, but its tokenizer" in found.err
    assert not (tmp_path / "run").exists()


def evaluate(out: Path, *more: str, code: int = 0, spec: str = "trans:script=cyrillic,inv", kind: str = "bert") -> str:
    init = ("--init", checkpoint(kind), "--t", spec, "--source", "demo", "-o", out)
    found = run("evaluate", *init, "--pairs", "9", "--sentences", "9", *more, code=code)
    return found.out + found.err


def test_a_checkpoint_is_measured_as_it_is(tmp_path: Path) -> None:
    """Under the identity all states are equal. The folder is one of a run, for later commands and reports."""
    told = evaluate(tmp_path / "out", "--measure", "alignment,links,retrieval,perplexity", spec="identity")
    assert "alignment needs a tokenizer with a twin" in told
    found = derivlang.scores(tmp_path / "out").set_index(["task", "metric", "regime"])["value"]
    assert found["links", "argmax", ""].tolist() == [0, 0, 0]
    assert found["retrieval", "sentences", ""].tolist() == [100, 100, 100]
    source, derived = (found["perplexity", "perplexity", side].item() for side in ("source", "derived"))
    assert source == derived
    run("evaluate", tmp_path / "out", "--task", "none", "--measure", "contextual")
    assert json.loads((tmp_path / "out/evaluation.json").read_text())["measures"]["contextual"]
    run("report", tmp_path / "out", "-o", tmp_path / "report")
    assert "checkpoint" in (tmp_path / "report/index.html").read_text()


def test_a_checkpoint_without_a_head_has_states(tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModel

    folder = without(checkpoint(), tmp_path / "model", "model.safetensors")
    AutoModel.from_config(AutoConfig.from_pretrained(folder)).save_pretrained(folder)
    found = run("evaluate", "--init", folder, "--t", "inv", "--source", "demo", "-o", tmp_path / "out",
                "--measure", "links,perplexity", "--pairs", "9")  # fmt: skip
    assert "no language-model head, so there is no perplexity" in found.err
    assert "links" in json.loads((tmp_path / "out/evaluation.json").read_text())["measures"]


def test_refused_evaluations_of_checkpoints(tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluate(out, "--measure", "links", spec="inv")
    assert "holds another evaluation: spec is inv, not perm" in evaluate(out, "--measure", "links", spec="perm", code=1)
    assert "orders sub-words" in evaluate(tmp_path / "unit", spec="inv:unit=token", code=2)
    assert "--init: needs --t, too" in run("evaluate", out, "--init", checkpoint(), code=2).err
    assert "--init: needs --source, too" in run("evaluate", "--init", checkpoint(), "--t", "inv", code=2).err
    assert "--source: has no effect without --init" in run("evaluate", out, "--source", "demo", code=2).err
    assert "nothing to evaluate" in run("evaluate", "--measure", "links", code=2).err
    assert "is not the folder of a checkpoint" in run(
        "evaluate", "--init", tmp_path, "--t", "inv", "--source", "demo", "-o", tmp_path / "none", code=2
    ).err  # fmt: skip
    assert not (tmp_path / "none").exists()


def test_a_file_of_a_measured_checkpoint_that_is_missing_is_written_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluate(out, "--measure", "links", spec="trans:overlap=25")
    whole = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for name in ("tokenizer/tokenizer.json", "lexicon.tsv"):
        (out / name).unlink()
        assert f"{name} is missing; the evaluation is made again" in evaluate(
            out, "--measure", "links", spec="trans:overlap=25"
        )
        assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == whole


def test_what_has_changed_since_a_checkpoint_was_measured_is_named(tmp_path: Path) -> None:
    model, out, table = (tmp_path / name for name in ("model", "out", "table.tsv"))
    shutil.copytree(checkpoint(), model)
    table.write_text("the\tda\n")

    def again(code: int = 1) -> str:
        options = ("--init", model, "--t", f"lex:{table}", "--source", "demo", "-o", out, "--measure", "links")
        return run("evaluate", *options, "--pairs", "9", code=code).err

    again(code=0)
    table.write_text("the\tdu\n")
    assert "holds another evaluation: a file of its transforms" in again()
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    (model / "tokenizer.json").write_text(json.dumps(tokenizer | {"normalizer": {"type": "Lowercase"}}))
    assert "holds another evaluation: the tokenizer of the checkpoint is another one" in again()
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"initializer_range": 0.5}))
    assert "holds another evaluation: the weights of the checkpoint are others" in again()


def test_a_script_that_the_tokenizer_does_not_know_is_a_warning(tmp_path: Path) -> None:
    told = evaluate(tmp_path / "out", "--measure", "links", spec="trans:script=armenian")
    assert "unknown to the tokenizer" in told
    assert "unknown" in pretrain(tmp_path / "run", "bert", spec="trans:script=armenian")
    (data,) = (tmp_path / "run/data").glob("encoded-text-*")
    source_share, derived_share = json.loads((data / "data.json").read_text())["unknown_percent"]
    assert derived_share > 50 > source_share


@pytest.mark.parametrize("objective", ["tlm", "weam", "weam:links=hmm", "ppa:queue=20:shortest=1", "xlm-align"])
def test_pairs_of_real_languages_for_a_checkpoint(tmp_path: Path, objective: str) -> None:
    """Sentences of two languages with links between words; the tokenizer is that of the checkpoint."""
    pairs = [
        ("the old dog sleeps .", "der alte Hund schläft .", "0-0 1-1 2-2 3-3 4-4"),
        ("a student reads three books .", "ein Student liest drei Bücher .", "0-0 1-1 2-2 3-3 4-4 5-5"),
    ]
    for part, lines in zip(("source", "derived", "pharaoh"), zip(*pairs * 8, strict=True), strict=True):
        (tmp_path / f"bitext.{part}").write_text("\n".join(lines) + "\n", "utf-8")
    pretrain(tmp_path / "run", "xlm-roberta", "--objective", objective, "--pairs", str(tmp_path / "bitext"), spec="inv")
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["streams"]["pairs"]["sentences"] == 16
