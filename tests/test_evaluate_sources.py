"""What `evaluate` reads again long after a training: the source's held-out text and the files that a spec names."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from derivlang.engine.batches import Source
from derivlang.evaluation.cell import FinetuneCell
from derivlang.evaluation.scores import write_part
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from tests.checkpoints import checkpoint
from tests.commands import run
from tests.evaluations import stored
from tests.helpers import ROOT
from tests.tiny_runs import DEMO, data_folder, seal, write_run
from tests.training import model_file

SPLITS = ("train", "dev", "test")
SHIPPED = ROOT / "grammars"


def some(split: str, place: Path) -> None:
    """Write the first sentences of a split of the demo."""
    text = (DEMO / f"demo-ud-{split}.conllu").read_text("utf-8")
    place.write_text("\n\n".join(text.split("\n\n")[:40]) + "\n\n", "utf-8")


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A folder with a training and a development set, and a grammar beside it."""
    (tmp_path / "bank").mkdir()
    for name in ("train", "dev"):
        some(name, tmp_path / "bank" / f"{name}.conllu")
    shutil.copy(SHIPPED / "fr.grammar.tsv", tmp_path / "own.grammar.tsv")
    return tmp_path / "bank"


def pretrain(bank: Path, out: Path, *more: object, code: int = 0) -> Any:
    spec = f"trans,syn:{bank.parent / 'own.grammar.tsv'}"
    sizes = ("--vocab-size", 120, "--steps", 2, "--save-every", 1, "--threads", 1)
    return run("pretrain", "--source", bank, "--t", spec, "--model", model_file(), *sizes, "-o", out, *more, code=code)


EARLIER = ("pipeline", "heldout_files", "files", "sha256")  # what run.json of early versions lacks


def evaluate(out: Path, *words: object, code: int = 0) -> Any:
    return run("evaluate", out, "--device", "cpu", *words, code=code)


def test_files_that_changed_after_the_training(bank: Path, tmp_path: Path) -> None:
    out, links = tmp_path / "run", ("--measure", "links", "--pairs", 9)
    pretrain(bank, out)
    told = stored(out, "run.json")
    assert [(file["split"], file["name"]) for file in told["heldout_files"]] == [("validation", "dev.conllu")]
    evaluate(out, *links)
    before = (out / "evaluation.json").read_bytes()
    (entry,) = stored(out)["measures"].values()
    assert entry["settings"] == {"pairs": 9, "length": 128, "split": "validation"}
    (out / "run.json").write_text(json.dumps({**told, "status": "stopped"}), "utf-8")
    seal(out)
    pretrain(bank, out, "--resume")  # the same folder goes on
    another = {"seconds": 0, "result": None, "files": None, "sha256": None}  # the log tells the time
    assert stored(out, "run.json") | another == told | another
    run("report", out, "-o", tmp_path / "report")
    some("test", bank / "train.conllu")
    assert "its encoded text is another one: train.conllu has changed" in pretrain(bank, out, "--resume", code=1).err
    some("train", bank / "train.conllu")

    dev, grammar = bank / "dev.conllu", out / "files" / "own.grammar.tsv"
    some("test", dev)
    failed = evaluate(out, *links, code=1).err
    assert "held-out text has changed since the run was trained: dev.conllu (validation)" in failed
    dev.rename(bank / "test.conllu")
    failed = evaluate(out, *links, code=1).err
    assert "held-out text was dev.conllu (validation), and is now test.conllu (test)" in failed
    some("dev", dev)
    shutil.copy(SHIPPED / "de.grammar.tsv", tmp_path / "own.grammar.tsv")
    evaluate(out, *links)  # the run has its own copy
    shutil.copy(SHIPPED / "de.grammar.tsv", grammar)
    assert "own.grammar.tsv" in evaluate(out, *links, code=1).err
    seal(out)
    before = (out / "evaluation.json").read_bytes()
    assert "is another derived language now" in evaluate(out, *links, code=1).err
    assert (out / "evaluation.json").read_bytes() == before
    evaluate(out, "--measure", "alignment")  # of the embeddings: neither text nor grammar is read
    shutil.copy(SHIPPED / "fr.grammar.tsv", grammar)
    seal(out)
    evaluate(out, *links)


def test_a_run_of_a_source_without_held_out_text(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    some("train", tmp_path / "bank" / "train.conllu")
    out = write_run(tmp_path / "run", source=str(tmp_path / "bank"))
    told = evaluate(out, "--measure", "retrieval", "--pairs", 9, "--sentences", 9).err
    assert "bank has no held-out split: the sentences come from train, which the run was trained on" in told
    assert "no measure of this evaluation reads such sentences, so --sentences has no effect" in told
    assert stored(out)["measures"]["retrieval"]["settings"]["split"] == "train"
    told = evaluate(out, "--measure", "alignment", "--pairs", 7, "--heldout-length", 9).err
    assert "--pairs has no effect" in told
    assert "--heldout-length has no effect" in told
    assert stored(out)["measures"]["alignment"]["settings"] == {}


def test_a_run_of_a_source_without_training_text_is_evaluated_on_another_split(bank: Path, tmp_path: Path) -> None:
    (bank / "train.conllu").rename(bank / "test.conllu")
    assert "bank has no train split: the run is trained on validation" in pretrain(bank, tmp_path / "run").err
    found = evaluate(tmp_path / "run", "--measure", "perplexity")
    assert "no held-out split" not in found.err
    assert "perplexity: sentences 38 (at most 2,000), length 128, split test" in found.out


def test_a_checkpoint_of_a_dictionary_or_a_reference_that_changed(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    for name in SPLITS:
        some(name, tmp_path / "bank" / f"{name}.conllu")
    lex = tmp_path / "words.txt"
    lex.write_text("the\tle\n", "utf-8")

    def measure(spec: str, out: str, code: int = 0) -> str:
        words = ("--init", checkpoint("bert"), "--source", tmp_path / "bank", "--measure", "retrieval", "--pairs", 9)
        found = run("evaluate", *words, "--t", spec, "-o", tmp_path / out, code=code)
        return str(found.err)

    assert "no held-out split" not in measure(f"lex:{lex}", "lex")
    measure("trans:overlap=50", "overlap")
    measure(f"lex:{lex}", "lex")
    lex.write_text("the\tle\na\tun\n", "utf-8")
    some("test", tmp_path / "bank" / "train.conllu")
    changed = "a file of its transforms, the text of its lexicon or a rule of derivlang has changed"
    assert changed in measure(f"lex:{lex}", "lex", code=1)
    assert changed in measure("trans:overlap=50", "overlap", code=1)
    measure("trans:overlap=50", "anew")
    anew, overlap = (stored(tmp_path / name, "run.json")["fingerprint"] for name in ("anew", "overlap"))
    assert anew != overlap
    run("evaluate", tmp_path / "lex", "--measure", "links", "--pairs", 9)  # its own lexicon


def test_a_cell_of_another_version_of_the_word_tokenizer(tmp_path: Path) -> None:
    trained, task = PretrainedRun.load(write_run(tmp_path / "run")), task_of("xnli")
    source = Source.open(Pipeline.parse("identity"), SourceRequest("xnli", data_dir=data_folder(tmp_path / "data")))
    found = Sets.read(trained.languages, task, [source])
    assert found.words == source.corpus.word_rule
    assert found.words.startswith("spacy")
    one = FinetuneCell(trained, task, "zs", 1, found)
    write_part(one.path, {"key": one.key}, "xnli", task.columns, [])
    assert one.facts
    assert not replace(one, sets=replace(found, words="spacy 2 en")).facts
