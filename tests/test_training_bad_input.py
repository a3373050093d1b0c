"""What can be wrong with a run's options and files: one clear message, the right exit code, nothing half-written."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from derivlang.core.errors import UsageError
from derivlang.training.config import ModelConfig
from derivlang.training.translations import DICTIONARY
from tests.commands import run, snapshot, written
from tests.training import data_folder, model_file, pair, toml, trained

RESULT = {
    "out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint", "doses",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _data() -> None:
    pair()


def pretrain(out: Path, *options: object, code: int | None = 0, **named: object) -> Any:
    """The command on the shared data; an option given by name replaces the usual one (None: leaves it out)."""
    usual: dict[str, object] = {
        "source": "demo", "t": "trans,inv", "model": model_file(), "data": data_folder(), "threads": 1, **named,
    }  # fmt: skip
    given = [word for name, value in usual.items() if value is not None for word in (f"--{name}", value)]
    return run("pretrain", *given, "-o", out, *options, code=code)


def refused(out: Path, *options: object, code: int = 2, **named: object) -> str:
    """The one message of a command that does not begin; nothing is written."""
    shared = snapshot(data_folder())
    ran = pretrain(out, *options, code=code, **named)
    assert ran.out == ""
    lines = ran.err.strip().splitlines()
    assert len(lines) <= 4, ran.err
    assert "Traceback" not in ran.err
    assert not out.exists()
    assert snapshot(data_folder()) == shared
    return str(ran.err)


def test_encoded_data_without_its_source_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("A cat sat here .\nIt saw the old dog .\n" * 200, "utf-8")
    asked = {"source": text, "data": tmp_path / "data", "vocab-size": 40}
    pretrain(tmp_path / "one", "--steps", 2, **asked)
    text.unlink()
    left = snapshot(tmp_path / "data")
    assert "text.txt" in pretrain(tmp_path / "two", "--steps", 2, code=None, **asked).err
    assert snapshot(tmp_path / "data") == left
    assert not (tmp_path / "two").exists()


# before anything is made


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--t", "lex:file=words.tsv", "--objective", "align-mlm"], "but lex:words.tsv has no twin"),
        (["--tokenizer-for", "both", "--objective", "align-mlm"], "but with --tokenizer-for both there is none"),
        (["--t", "trans,trans:script=greek,inv:unit=token"], "orders sub-words, which differ between languages"),
        (["--t", "trnas"], "there is no transform 'trnas'; did you mean trans"),
        (["--objective", "aling-mlm"], "there is no objective 'aling-mlm'; did you mean align-mlm"),
        (["--objective", "align-mlm:alpha=x"], "alpha: must be a number, got 'x'"),
        (["--objective", "dict-mlm:rate=200"], "rate: must be at most 100, got 200"),
        (["--objective", "dict-tlm:switch=200"], "switch: must be at most 100, got 200"),
        (["--objective", "dict-tlm:condition=yes", "--no-language-ids"], "needs language ids"),
        (["--objective", "weam:weight=nan"], "weight: must be a finite number, got nan"),
        (["--objective", "weam:links=none.txt"], "links=none.txt is neither gold, hmm, eflomal nor a file"),
        (["--objective", "mlm,xlm"], "names 2 objectives"),
        (["--objective", "dict-mlm:condition=yes", "--no-language-ids"], "needs language ids"),
        (["--objective", "clm", "--model", "tiny-gpt", "--language-ids"], "cannot get the language of a position"),
        (["--model", "tinny"], "there is no model 'tinny'; did you mean tiny"),
        (["--model", "none.toml"], "none.toml: cannot be read"),
        (["--steps", "-3"], "--steps: must be at least 0, got -3"),
        (["--steps", "0", "--epochs", "1"], "--epochs: cannot be given with --steps"),
        (["--beta1", "1"], "--beta1: must be below 1, got 1.0"),
        (["--epsilon", "0"], "--epsilon: must be above 0, got 0.0"),
        (["--clip", "0"], "--clip: must be above 0, got 0.0"),
        (["--steps", "5", "--tokens", "5"], "--tokens: cannot be given with --steps"),
        (["--tokens", "0"], "--tokens: must be at least 1, got 0"),
        (["--epochs", "0"], "--epochs: must be above 0, got 0.0"),
        (["--epochs", "nan"], "--epochs: must be a finite number, got nan"),
        (["--epochs", "inf"], "--epochs: must be a finite number, got inf"),
        (["--seq-len", "7"], "--seq-len: must be at least 8, got 7"),
        (["--seq-len", "99999"], "--seq-len: must be at most 32,768, got 99999"),
        (["--pair-length", "7"], "--pair-length: must be at least 8, got 7"),
        (["--batch-size", "0"], "--batch-size: must be at least 1, got 0"),
        (["--batch-size", "9", "--accumulate", "2"], "--accumulate: 9 rows cannot be divided into 2"),
        (["--learning-rate", "0"], "--learning-rate: must be above 0, got 0.0"),
        (["--learning-rate", "nan"], "--learning-rate: must be a finite number, got nan"),
        (["--warmup", "1"], "--warmup: must be below 1, got 1.0"),
        (["--weight-decay", "-1"], "--weight-decay: must be at least 0, got -1.0"),
        (["--mask", "1.5"], "--mask: must be below 1, got 1.5"),
        (["--data-only", "--steps", "3", "--epochs", "2"], "--epochs: cannot be given with --steps"),
        (["--vocab-size", "0"], "--vocab-size: must be at least 1, got 0"),
        (["--dict-coverage", "0"], "--dict-coverage"),
        (["--dict-coverage", "101"], "--dict-coverage"),
        (["--dict-coverage", "some"], "is not a percentage"),
        (["--parallel", "200"], "--parallel"),
        (["--parallel", "0"], "--parallel: 0 % of the sentences are pairs"),
        (["--dict-by", "pos"], "--dict-by"),
        (["--seed", "-1"], "--seed: must be at least 0, got -1"),
        (["--limit", "0"], "--limit"),
        (["--save-every", "0"], "--save-every"),
        (["--precision", "fp8"], "--precision"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_options(options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "words.tsv", "the\tle\n")
    names = {options[i].removeprefix("--"): None for i in range(0, len(options), 2)}
    said = refused(tmp_path / "run", *options, **{n: None for n in names if n in ("t", "model")})
    assert message in said


@pytest.mark.parametrize("name", ["source", "t"])
def test_what_must_be_given(name: str, tmp_path: Path) -> None:
    words = {"--source": "demo", "--t": "trans", "--out": tmp_path / "run"}
    del words[f"--{name}"]
    ran = run("pretrain", *(w for pair_ in words.items() for w in pair_), code=2)
    assert f"--{name}" in ran.err
    assert not (tmp_path / "run").exists()


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    ran = pretrain(tmp_path / "run", source="demmo", data=None, code=None)
    assert ran.code in (1, 2)
    assert "demmo" in ran.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model", "not a valid TOML file"),
        ("", "[model] type is None"),
        (toml().replace("warmup", "warmpu"), "there is no setting of [training] 'warmpu'; did you mean warmup"),
        (toml().replace("hidden_size", "hiden_size"), "there is no field of [model] 'hiden_size'"),
        (toml().replace("num_attention_heads = 2", "num_attention_heads = 3"), "the model cannot be built"),
        (toml("roberta", more="max_position_embeddings = 8"), "max_position_embeddings = 8 is too small"),
    ],
)
def test_descriptions(text: str, message: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "run", model=written(tmp_path / "mine.toml", text))
    assert message in said
    assert "mine" in said


@pytest.mark.parametrize("missing", ["torch", "transformers", "accelerate"])
def test_a_package_that_is_missing(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("derivlang.core.dependencies.find_spec", lambda name: None if name == missing else found(name))
    said = refused(tmp_path / "run")
    assert f"training needs {missing}" in said
    assert "pip install 'derivlang[train]'" in said


# data


def test_a_vocabulary_that_the_words_cannot_fill(tmp_path: Path) -> None:
    ran = pretrain(tmp_path / "run", "--vocab-size", 999_999, data=None, code=2)
    assert "--vocab-size" in ran.err
    assert "or less" in ran.err
    assert not (tmp_path / "run").exists()


def dictionary(folder: Path, text: str) -> Path:
    return written(folder / "mine.tsv", text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\tle\ncat\tchat\n", "is a dictionary of another vocabulary: 2 of its 2 pairs"),
        ("", "holds no pair"),
        ("\n\n", "holds no pair"),
    ],
)
def test_dictionaries(text: str, message: str, tmp_path: Path) -> None:
    path = dictionary(tmp_path, text)
    said = refused(tmp_path / "run", dictionary=path, objective="align-mlm", code=1)
    assert message in said
    assert str(path) in said


def test_a_dictionary_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "none.tsv"
    said = refused(tmp_path / "run", dictionary=path, code=1)
    assert str(path) in said


def test_a_dictionary_of_another_vocabulary_of_the_same_source(tmp_path: Path) -> None:
    """A real one: of a tokenizer with fewer entries, all of which are known, and of one with more."""
    for size in (250, 400):
        run("tokenizer", "train", "demo", "--vocab-size", size, "-o", tmp_path / f"{size}")
        out = tmp_path / f"{size}.tsv"
        run("dict", "--t", "trans", "demo", "--level", "token", "--tokenizer", tmp_path / f"{size}", "-o", out)
    said = refused(tmp_path / "run", dictionary=tmp_path / "400.tsv", objective="align-mlm", code=1)
    assert "is a dictionary of another vocabulary" in said
    result = pretrain(tmp_path / "run", "--json", dictionary=tmp_path / "250.tsv", objective="align-mlm").json
    assert set(result) == RESULT


def test_a_pair_with_itself_alone_is_an_empty_dictionary(tmp_path: Path) -> None:
    path = dictionary(tmp_path, "<unk>\t<unk>\n")
    assert "holds no pair" in refused(tmp_path / "run", dictionary=path, objective="align-mlm", code=1)


def test_the_size_of_a_given_tokenizer_is_recorded(tmp_path: Path) -> None:
    run("tokenizer", "train", "demo", "--vocab-size", 250, "-o", tmp_path / "tok")
    given = {"tokenizer": tmp_path / "tok", "data": tmp_path / "data"}
    assert "tok has 250 entries" in refused(tmp_path / "run", "--vocab-size", 300, **given)
    pretrain(tmp_path / "run", "--json", "--steps", 1, **given)
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["settings"]["vocab_size"] == 250
    begins = ("--init", tmp_path / "run", "--vocab-size")
    assert "tokenizer has 250 entries" in refused(tmp_path / "two", *begins, 300, data=tmp_path / "data")
    pretrain(tmp_path / "two", *begins, 250, "--steps", 1, data=tmp_path / "data")


def test_a_given_dictionary_or_pairs_are_not_recorded_as_made_ones(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(pair().files[DICTIONARY].read_bytes())
    given = {"dictionary": path, "objective": "align-mlm"}
    for flag, value in (("--dict-coverage", 30), ("--dict-by", "frequency")):
        assert f"leave {flag} or --dictionary out" in refused(tmp_path / "run", flag, value, **given)
    prefix = tmp_path / "pairs"
    for side in ("source", "derived"):
        (tmp_path / f"pairs.{side}").write_text("the cat sleeps .\n", "utf-8")
    assert "leave --parallel or --pairs out" in refused(tmp_path / "run", "--parallel", 30, pairs=prefix)
    pretrain(tmp_path / "run", "--json", "--steps", 1, **given)
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert set(record["dictionary"]) == {"file", "pairs", "sha256"}
    assert (record["dictionary"]["file"], record["parallel"]) == ("mine.tsv", None)


@pytest.mark.parametrize("objective", ["mlm", "dict-tlm"])
def test_a_file_of_pairs_that_no_row_is_made_of(objective: str, tmp_path: Path) -> None:
    for side in ("source", "derived"):
        (tmp_path / f"pairs.{side}").write_text("the cat sleeps .\n", "utf-8")
    pretrain(tmp_path / "made", "--steps", 1, objective=objective)  # encodes what the rows need
    told = refused(tmp_path / "run", objective=objective, pairs=tmp_path / "pairs")
    assert "[unused-option]" in told
    assert "leave --pairs out" in told


def test_a_logged_loss_is_a_mean_over_the_steps_that_have_it(tmp_path: Path) -> None:
    """A step of one row has sub-words of one language only."""
    words = ("--steps", 6, "--batch-size", 1, "--save-every", 6, "--pair-length", 16)
    pretrain(tmp_path / "each", *words, "--log-every", 1, objective="xlm:pairs=0.5")
    pretrain(tmp_path / "all", *words, "--log-every", 6, objective="xlm:pairs=0.5")
    each, (mean,) = (
        [json.loads(line)["parts"] for line in (tmp_path / name / "log.jsonl").read_text("utf-8").splitlines()]
        for name in ("each", "all")
    )
    assert any(len(parts) == 2 for parts in each)
    for name, value in mean.items():
        there = [parts[name] for parts in each if name in parts]
        assert value == pytest.approx(sum(there) / len(there), rel=1e-4)


def test_links_of_an_aligner_do_not_hide_the_rate(tmp_path: Path) -> None:
    pretrain(tmp_path / "run", "--steps", 1, "--parallel", 50, objective="weam:links=hmm")
    assert json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["parallel"] == "50"


def test_a_rate_without_a_pair(tmp_path: Path) -> None:
    for objective in ("xlm:pairs=0.5", "tlm"):
        said = refused(tmp_path / "run", "--parallel", "0.5", objective=objective, code=1)
        assert "none of 80 sentences is a pair at 0.5 %" in said


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        ran = pretrain(tmp_path / "run", tokenizer=folder, data=None, code=None)
        assert ran.code in (1, 2)
        assert "Traceback" not in ran.err
        assert not (tmp_path / "run").exists()


def test_a_source_without_words(tmp_path: Path) -> None:
    source = written(tmp_path / "a.train.tokens", " \n \n")
    ran = pretrain(tmp_path / "run", source=source, data=None, code=None)
    assert ran.code in (1, 2)
    assert len(ran.err.strip().splitlines()) <= 4
    assert not (tmp_path / "run").exists()


# folders


def test_a_folder_that_is_taken(tmp_path: Path) -> None:
    trained(tmp_path / "run", steps=2)
    before = snapshot(tmp_path / "run")
    ran = pretrain(tmp_path / "run", code=1)
    assert "holds a run already" in ran.err
    assert "--resume" in ran.err
    assert "--force" in ran.err
    assert snapshot(tmp_path / "run") == before
    assert pretrain(tmp_path / "run", "--force", "--json").json["steps"] == 6


def test_other_files_in_the_folder_of_a_run_have_a_warning(tmp_path: Path) -> None:
    mine = written(tmp_path / "run" / "thesis.txt", "mine")
    (tmp_path / "run" / "data").mkdir()
    told = f"{mine.parent}: kept what is not part of the run: thesis.txt\n"
    assert told in pretrain(tmp_path / "run", "--steps", 1).err
    assert told in pretrain(tmp_path / "run", "--steps", 1, "--force").err
    assert mine.read_text("utf-8") == "mine"


def test_force_and_resume(tmp_path: Path) -> None:
    said = refused(tmp_path / "run", "--force", "--resume")
    assert "--force" in said
    assert "--resume" in said


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "run", "mine")
    ran = pretrain(path, code=2)
    assert str(path) in ran.err
    assert path.read_text() == "mine"


def test_a_folder_that_holds_another_tokenizer(tmp_path: Path) -> None:
    run("tokenizer", "train", "demo", "--vocab-size", 250, "-o", tmp_path / "run" / "tokenizer")
    before = snapshot(tmp_path / "run")
    ran = pretrain(tmp_path / "run", code=1)
    assert "tokenizer/derivlang-tokenizer.json: exists already, with another content" in ran.err
    assert snapshot(tmp_path / "run") == before


@pytest.mark.parametrize("name", ["data.json", "ids.bin"])
def test_data_that_was_damaged(name: str, tmp_path: Path) -> None:
    shutil.copytree(data_folder(), tmp_path / "data")
    path = tmp_path / "data" / next(one for one in pair().used if one.startswith("encoded-")) / name
    path.write_bytes(path.read_bytes()[:-5])
    ran = pretrain(tmp_path / "run", data=tmp_path / "data", code=1)
    assert str(path) in ran.err
    assert not (tmp_path / "run").exists()


# what is printed


def test_what_is_printed(tmp_path: Path) -> None:
    ran = pretrain(tmp_path / "run", "--json", "--steps", 3)
    assert ran.out.count("\n") == 1
    assert ran.err == ""
    assert set(ran.json) == RESULT
    assert ran.json["out"] == str(tmp_path / "run")
    assert ran.json["steps"] == 3
    assert isinstance(ran.json["tokens_per_second"], int)
    assert set(ran.json["parts"]) == {"mlm"}
    assert pretrain(tmp_path / "run", "--json", "--steps", 3, "--resume").json == ran.json
    plain = pretrain(tmp_path / "plain", "--steps", 3)
    assert "3 steps" in plain.out
    assert str(tmp_path / "plain") in plain.out
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {**record["result"], "doses": record["doses"]} == ran.json


def test_a_description_without_steps_takes_a_duration(tmp_path: Path) -> None:
    text = toml().replace("steps = 6\n", "").replace("mask = 0.3", "mask = 0.3\nparallel = 50\ndict_coverage = 12.5")
    model = written(tmp_path / "mine.toml", text)
    assert "--steps" in refused(tmp_path / "run", model=model)
    assert pretrain(tmp_path / "run", "--epochs", 0.5, "--json", model=model).json["steps"] == 9
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {**record["settings"], **record["unread"]}.items() >= {"parallel": "50", "coverage": "12.5"}.items()


@pytest.mark.parametrize(("threads", "width", "asked"), [(None, 16, [1]), (3, 16, [3]), (None, 256, []), (3, 256, [3])])
def test_threads(threads: int | None, width: int, asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow model has one, unless others are asked for; a wide one what torch takes."""
    import torch

    from derivlang.training.plan import settings_of

    found: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    monkeypatch.setattr(ModelConfig, "width", width)
    settings_of("demo", {"spec": "trans", "objective": "mlm", "model": "tiny", "threads": threads})
    assert found == asked


def test_more_micro_batches_than_pair_rows(tmp_path: Path) -> None:
    """Otherwise accumulating would change what a step reads."""
    with pytest.raises(UsageError, match="a step has 1 row of the stream 'pairs', fewer than its 4 micro-batches"):
        trained(tmp_path / "run", "xlm:pairs=0.5", accumulate=4, pair_length=128)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("objective", "option", "what"),
    [
        ("mlm", "--parallel=50", "pairs"),
        ("dict-tlm", "--parallel=50", "pairs"),
        ("xlm:pairs=0", "--pair-length=40", "pairs"),
        ("clm", "--mask=0.3", "masked"),
        ("tlm", "--packing=stream", "rows of only the corpus"),
    ],
)
def test_a_setting_that_the_objective_does_not_read(objective: str, option: str, what: str, tmp_path: Path) -> None:
    name = option.partition("=")[0]
    words = ("--source", "demo", "--t", "trans", "--objective", objective, "--vocab-size", 300, "--data-only", option)
    told = run("pretrain", *words, "-o", tmp_path / "run").err
    assert what in told
    assert f"so {name} has no effect" in told
    assert "no effect" not in run("pretrain", *words, "--factor=a=1", "-o", tmp_path / "cell").err


def test_factors_that_come_too_late_and_an_alignment_that_never_begins_are_told(tmp_path: Path) -> None:
    asked = ("--objective", "xlm-align:start=2", "--steps")
    told = "the run ends after 2 steps, before all parts of xlm-align:start=2 begin, at step 2"
    assert told in pretrain(tmp_path / "run", *asked, 2, "--factor", "a=1").err
    assert "no effect" not in pretrain(tmp_path / "run", *asked, 2, "--factor", "a=1", "--resume").err
    late = pretrain(tmp_path / "run", *asked, 2, "--factor", "a=2", "--resume").err
    assert "so --factor has no effect" in late
    assert "the run ends after" not in pretrain(tmp_path / "more", *asked, 3).err


def test_a_parser_and_settings_of_fine_tuning_that_nothing_reads(tmp_path: Path) -> None:
    pretrain(tmp_path / "run", "--steps", 1)
    words = ("--measure", "alignment", "--epochs=2", "--freeze=encoder", "--parser=english")
    told = run("evaluate", tmp_path / "run", *words).err
    assert "no task is fine-tuned, so --epochs has no effect" in told
    assert "so --freeze has no effect" in told
    words = ("--source", "demo", "--t", "trans", "--vocab-size", 300, "--data-only", "--parser=english")
    assert "trans needs no trees, so --parser has no effect" in run("pretrain", *words, "-o", tmp_path / "a").err


def test_a_run_that_trains_without_a_dictionary_has_one_all_the_same(tmp_path: Path) -> None:
    """The measure `alignment` tells held-out rows by it, so --dict-coverage has an effect beside the training."""
    lines = {}
    for coverage in (10, 50):
        told = pretrain(tmp_path / str(coverage), "--steps", 1, "--dict-coverage", coverage, objective="mlm").err
        assert "mlm has no dictionary, so --dict-coverage has no effect on the training" in told
        lines[coverage] = len((tmp_path / str(coverage) / "dictionary.tsv").read_text("utf-8").splitlines())
    assert lines[10] < lines[50]
