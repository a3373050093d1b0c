"""The Python function of each command: the same arguments, the same bytes, and errors that name arguments."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import derivlang
from derivlang.cli import align, distance, evaluate, grammar, lexical, parser, pretrain, report, results, sets, study
from derivlang.core.errors import UsageError
from tests.commands import TREES, run, snapshot
from tests.helpers import python
from tests.study_calls import here

SMALL: dict[str, Any] = {"vocab_size": 300, "steps": 2, "threads": 1}
# Options that a function does not have: what is printed, and what follows from its other arguments.
SHOWN = {"as_json", "verbose", "quiet", "force", "resume", "data_only", "every_checkpoint", "help", "help_all"}
FUNCTIONS: dict[str, tuple[click.Command, Callable[..., Any], set[str]]] = {
    "make": (sets.make_command, derivlang.make, set()),
    "parse": (sets.parse_command, derivlang.parse, {"parses"}),
    "plan": (sets.plan_command, derivlang.plan, {"world", "parse"}),  # spec=None plans a parse
    "work": (sets.work_command, derivlang.work, set()),
    "finish": (sets.finish_command, derivlang.finish, set()),
    "dict": (lexical.dict_command, derivlang.dictionary, set()),
    "pair": (lexical.pair_command, derivlang.pairs, set()),
    "pretrain": (pretrain.command, derivlang.pretrain, set()),
    "evaluate": (evaluate.command, derivlang.Run.evaluate, {"init", "spec", "source", "out", "run"}),
    "report": (report.command, derivlang.report, set()),
    "export": (results.export_command, derivlang.DerivedSet.export, {"derived"}),
    "push": (results.push_command, derivlang.push, set()),
    "study": (study.command, derivlang.study, {"array", "listed"}),
    "align train": (align.train, derivlang.align_words, set()),
    "align score": (align.score, derivlang.score_links, set()),
    "grammar fit": (grammar.fit, derivlang.fit_grammar, set()),
    "grammar count": (grammar.count, derivlang.count_orders, set()),
    "grammar score": (grammar.score, derivlang.score_grammar, set()),
    "grammar probs": (grammar.probs, derivlang.grammar_probs, set()),
    "parser train": (parser.train, derivlang.train_parser, set()),
    "parser score": (parser.score, derivlang.score_parser, set()),
    "stats": (distance.stats_command, derivlang.stats, {"out", "plot"}),
    "match": (distance.match_command, derivlang.match, set()),
    "tokenizer": (lexical.train, derivlang.tokenizer, set()),
    "twin": (lexical.twin, derivlang.twin, set()),
}  # fmt: skip


def _names(option: click.Parameter) -> set[str]:
    spelled = {name.removeprefix("--").replace("-", "_") for name in option.opts}
    return {str(option.name), *spelled}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_is_an_argument_with_the_same_default(name: str) -> None:
    command, function, apart = FUNCTIONS[name]
    arguments = inspect.signature(function).parameters
    for option in command.params:
        if option.name in SHOWN or option.name in apart:
            continue
        found = [arguments[one] for one in _names(option) & arguments.keys()]
        assert len(found) == 1, f"{function.__name__} has no argument {option.name}"
        if isinstance(option.default, str | int | float) and found[0].default is not None:
            assert str(found[0].default) == str(option.default)


def test_help_shows_the_help_of_options() -> None:
    told = inspect.getdoc(derivlang.make) or ""
    assert "workers\n    Number of worker processes." in told


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_shows_what_a_function_returns(name: str) -> None:
    assert inspect.signature(FUNCTIONS[name][1]).return_annotation not in (None, "None", inspect.Signature.empty)


def test_a_set_of_python_is_that_of_the_command(tmp_path: Path) -> None:
    made = derivlang.make("demo", "trans,perm", tmp_path / "python", seed=3, splits=["train", "test"], limit=9)
    run(
        "make",
        "--t",
        "trans,perm",
        "demo",
        "-o",
        tmp_path / "command",
        "--seed",
        3,
        "--splits",
        "train,test",
        "--limit",
        9,
    )
    assert snapshot(made.path) == snapshot(tmp_path / "command")
    assert made.verify()["ok"]
    assert made.manifest["limit"] == 9
    assert {entry["out"] for entry in made.undo(tmp_path / "back")} == {
        str(tmp_path / "back" / f"{split}.conllu") for split in ("train", "test")
    }
    assert made.dataset("test").num_rows == 9  # type: ignore[union-attr]
    assert made.dataset("test[:4]").num_rows == 4  # type: ignore[union-attr]
    for absent in ("dev", "no-such-split"):
        with pytest.raises(UsageError, match=r"there is no split '.*'; there are: test, train"):
            made.dataset(absent)
    told = made.export(tmp_path / "p.conllu", split="test", source=True)
    ran = run("export", made.path, "--split", "test", "--source", "-o", tmp_path / "c.conllu", "--json")
    assert (tmp_path / "p.conllu").read_bytes() == (tmp_path / "c.conllu").read_bytes()
    assert {**told, "out": ""} == {**ran.json, "out": ""}


def test_a_dataset_is_of_the_set_that_is_there_now(tmp_path: Path) -> None:
    """Two sets of one folder, with equal columns and counts, would have one name in the cache of `datasets`."""
    import datasets

    rows = []
    for spec in ("identity", "inv"):
        shutil.rmtree(tmp_path / "set", ignore_errors=True)
        made = derivlang.make("demo", spec, out=tmp_path / "set", splits="test")
        rows.append(made.dataset("test")[0]["tokens"])
        assert datasets.load_dataset(str(tmp_path / "set"), split="test")[0]["tokens"] == rows[-1]
    assert rows[0] != rows[1]
    assert sorted(rows[0]) == sorted(rows[1])


def test_a_parse_is_that_of_the_command(tmp_path: Path) -> None:
    text = tmp_path / "a.train.tokens"
    text.write_text("The cat sat on the mat .\n")
    parsed = derivlang.parse(text, tmp_path / "python")
    run("parse", text, "-o", tmp_path / "command")
    assert snapshot(parsed.path) == snapshot(tmp_path / "command")


def test_dictionary_pairs_and_tokenizer_are_those_of_the_commands(tmp_path: Path) -> None:
    made = derivlang.make("demo", "trans,inv", tmp_path / "set")
    derivlang.dictionary("demo", "trans", tmp_path / "p.tsv", coverage=12.5, by="frequency")
    run("dict", "--t", "trans", "demo", "--coverage", 12.5, "--by", "frequency", "-o", tmp_path / "c.tsv")
    derivlang.pairs(made, tmp_path / "p.parquet", split="train", rate=50)
    run(
        "pair",
        made.path,
        "--split",
        "train",
        "--rate",
        50,
        "--format",
        "parquet",
        "-o",
        tmp_path / "c.parquet",
    )
    for suffix in ("tsv", "parquet"):
        assert (tmp_path / f"p.{suffix}").read_bytes() == (tmp_path / f"c.{suffix}").read_bytes()
    derivlang.tokenizer("demo", tmp_path / "p", vocab_size=200)
    run("tokenizer", "train", "demo", "--vocab-size", 200, "-o", tmp_path / "c")
    assert snapshot(tmp_path / "p") == snapshot(tmp_path / "c")
    derivlang.twin(tmp_path / "p", "trans", tmp_path / "p-twin")
    run("tokenizer", "twin", tmp_path / "c", "--t", "trans", "-o", tmp_path / "c-twin")
    assert snapshot(tmp_path / "p-twin") == snapshot(tmp_path / "c-twin")
    derivlang.pairs(made, tmp_path / "p.pairs", split="train", tokenizer=tmp_path / "p", twin=tmp_path / "p-twin")
    with pytest.raises(derivlang.DerivlangError, match="twin: needs tokenizer="):
        derivlang.pairs(made, tmp_path / "x", split="train", twin=tmp_path / "p-twin")
    with pytest.raises(derivlang.DerivlangError, match=r"rate: .* got 0"):
        derivlang.pairs(made, tmp_path / "x", split="train", rate=0)


def test_a_parser_of_python_is_that_of_the_command(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "a.conllu").write_text(TREES, "utf-8")
    bank = str(tmp_path / "a.conllu")
    outs = [tmp_path / kind / "small" for kind in ("python", "command")]
    card = derivlang.train_parser(bank, outs[0], epochs=1, seed=3, score=bank)
    line = ("parser", "train", bank, "--epochs", 1, "--seed", 3, "--score", bank, "-o", outs[1])
    assert run(*line, "--json").json == card
    assert snapshot(outs[0]) == snapshot(outs[1])
    for masked in (dict[str, str](), {"unk": bank}):
        flags = [word for name, value in masked.items() for word in (f"--{name}", value)]
        scores = derivlang.score_parser(outs[0], bank, **masked)
        assert run("parser", "score", outs[1], bank, *flags, "--json").json == scores
    assert scores["words"] == card["scores"]["a.conllu"]["words"]
    derivlang.train_parser(bank, outs[0], epochs=2, force=True)
    run("parser", "train", bank, "--epochs", 2, "-o", outs[1], "--force")
    assert snapshot(outs[0]) == snapshot(outs[1])
    assert derivlang.score_parser(outs[0], bank) == run("parser", "score", outs[1], bank, "--json").json


def test_grammars_and_links_are_those_of_the_commands(tmp_path: Path) -> None:
    bank = tmp_path / "a.conllu"
    bank.write_text(TREES * 30, "utf-8")
    outs = [tmp_path / name / "own.grammar.tsv" for name in ("python", "command")]
    for out in outs:
        out.parent.mkdir()
    told = derivlang.fit_grammar(bank, outs[0], classes="V", l2=1.5)
    ran = run("grammar", "fit", bank, "-o", outs[1], "--classes", "V", "--l2", 1.5, "--json")
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert {**told, "out": ""} == {**ran.json, "out": ""}
    counts = [tmp_path / name / "own.counts.tsv" for name in ("python", "command")]
    told = derivlang.count_orders(bank, counts[0], language="Own")
    ran = run("grammar", "count", bank, "-o", counts[1], "--language", "Own", "--json")
    assert counts[0].read_bytes() == counts[1].read_bytes()
    assert {**told, "out": ""} == {**ran.json, "out": ""}
    scores = derivlang.score_grammar("fr", [bank], substrate="en", mix=0.5)
    assert scores == run("grammar", "score", "fr", bank, "--substrate", "en", "--mix", 0.5, "--json").json
    probs = derivlang.grammar_probs("fr", head="VERB", nodes="NOUN&nsubj @VERB&@ NOUN&obj")
    assert len(probs["probs"]) == 6
    assert sum(probs["probs"]) == pytest.approx(1)
    texts = [tmp_path / name for name in ("en.txt", "fr.txt")]
    for path, text in zip(texts, ("the cat\na dog\nthe dog\n", "le chat\nun chien\nle chien\n"), strict=True):
        path.write_text(text)
    links = [tmp_path / name for name in ("python.pharaoh", "command.pharaoh")]
    assert derivlang.align_words(*texts, links[0], symmetrise="union")["sentences"] == 3
    run("align", "train", *texts, "-o", links[1], "--symmetrise", "union")
    assert links[0].read_bytes() == links[1].read_bytes()
    figures = derivlang.score_links(links[0], links[1], source=texts[0])
    assert figures == run("align", "score", *links, "--source", texts[0], "--json").json
    unused = ({"mix": 0.5}, "mix: has no effect without substrate=")
    for wrong, what in (unused, ({"most": 99}, "most: must be at most")):
        with pytest.raises(derivlang.DerivlangError, match=what):
            derivlang.score_grammar("fr", bank, **wrong)


def test_a_run_of_python_is_that_of_the_command(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sizes: dict[str, Any] = {"vocab_size": 300, "steps": 4, "threads": 1}
    made = derivlang.pretrain(
        "demo", "trans,inv", tmp_path / "python", objective="align-mlm", learning_rate=1e-3, **sizes
    )
    options = [word for name, value in sizes.items() for word in (f"--{name.replace('_', '-')}", value)]
    line = ("--source", "demo", "--t", "trans,inv", "--objective", "align-mlm", "--lr", 1e-3, *options)
    run("pretrain", *line, "-o", tmp_path / "command")
    other = json.loads((tmp_path / "command" / "run.json").read_text("utf-8"))
    assert (made.record["weights"], made.record["fingerprint"]) == (other["weights"], other["fingerprint"])
    again = derivlang.pretrain("demo", "trans,inv", made.path, objective="align-mlm", learning_rate=1e-3, **sizes)
    assert again == made
    assert repr(made).endswith("spec='trans:table=2,inv', objective='align-mlm', seed=1, step=4, status='done')")
    found = made.evaluate(task="pos:demo", measure=["alignment"], epochs=10, lr=[2e-3], seeds=1, threads=1)
    line = ("--task", "pos:demo", "--measure", "alignment", "--epochs", 10, "--lr", 2e-3, "--seeds", 1, "--threads", 1)
    told = run("evaluate", tmp_path / "command", *line, "--json").json
    for label in ("pos:demo", "alignment"):
        values = [row["value"] for row in told[label]["scores"]]
        assert found.loc[found["task"] == label, "value"].tolist() == pytest.approx(values)
    entries = made.export(tmp_path / "model")["entries"]
    run("export", tmp_path / "command", "--format", "transformers", "-o", tmp_path / "model2")
    assert (tmp_path / "model" / "tokenizer.json").read_bytes() == (tmp_path / "model2" / "tokenizer.json").read_bytes()
    assert entries == 300
    assert derivlang.report(made, out=tmp_path / "report").read_text("utf-8").startswith("<!doctype html>")


STUDY = """
[study]
source = "demo"
steps = 2

[factors]
objective = ["mlm", "align-mlm"]
seed = [1]

[cell]
t = "trans,inv"
vocab-size = 300

[evaluate]
measure = "alignment"
"""


def test_a_study_of_python_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("derivlang.studies.run.in_server", here)
    file = tmp_path / "grid.toml"
    file.write_text(STUDY, "utf-8")
    made = derivlang.study(file, tmp_path / "python", threads=1)
    told = run("study", file, "-o", tmp_path / "command", "--threads", 1, "--json").json
    other = derivlang.Study(tmp_path / "command")
    assert (len(made.runs), list(made.runs)) == (told["cells"], ["mlm.1", "align-mlm.1"])
    for name, one in made.runs.items():
        assert one.record["weights"] == other.runs[name].record["weights"]
        done = [json.loads((path / "runs" / name / "pretrained.json").read_text()) for path in (made.path, other.path)]
        assert done[0] == done[1]
    assert set(made.scores()["factor.objective"]) == {"mlm", "align-mlm"}
    assert made.report().read_text("utf-8").startswith("<!doctype html>")
    assert made.verify()["ok"]
    tried = derivlang.study(file, tmp_path / "none", dry_run=True, rate=1000, threads=1)
    line = ("study", file, "-o", tmp_path / "none", "--dry-run", "--rate", 1000, "--threads", 1)
    assert tried.summary == run(*line, "--json").json
    assert repr(tried).startswith(f"Study({str(tried.path)!r}, study='grid', cells=2, seconds=")
    assert not tried.path.exists()
    before = (made.path / "runs" / "mlm.1" / "run.json").stat().st_mtime_ns
    assert derivlang.study(file, made.path, cells="mlm.*", threads=1) == made
    assert repr(made) == f"Study({str(made.path)!r}, study='grid', cells=2, runs=2)"
    assert (made.path / "runs" / "mlm.1" / "run.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("source", [["a b ."], {"text": ["a b ."]}, 7, None])
def test_rows_in_memory_are_not_a_source(source: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"not {type(source).__name__} \[bad-value\]\n.* derivlang\.map_dataset"):
        derivlang.make(source, "inv", tmp_path / "set")


def test_a_set_shows_itself(tmp_path: Path) -> None:
    made = derivlang.make("demo", "inv", tmp_path / "set")
    assert repr(made) == (
        f"DerivedSet({str(made.path)!r}, source='demo', spec='inv', rows={{'train': 76, 'validation': 16, 'test': 23}})"
    )
    assert made["test"][4]["tokens"][:4] == ["stopped", "ferry", "The", "."]
    with pytest.raises(derivlang.DerivlangError, match="there is no split 'tset'; did you mean test"):
        made["tset"]
    line = ("show", made, "--split", "test", "--row", 4, "-n", 2)
    assert f"{made.show(2, row=4, split='test')}\n" == run(*line).out
    with pytest.raises(derivlang.DerivlangError, match="count must be at least 1, got 0"):
        made.show(0)
    (tmp_path / "set" / "derivlang.json").unlink()
    assert repr(made) == f"DerivedSet({str(made.path)!r})"


@pytest.mark.parametrize("kind", [derivlang.DerivedSet, derivlang.Run, derivlang.Study])
def test_what_is_not_there_is_refused_at_once(kind: Any, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(derivlang.DerivlangError) as error:
            kind(folder)
        assert str(folder) in str(error.value)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda out: derivlang.make("demo", "inv", out, worker=2), "no argument of make 'worker'"),
        (lambda out: derivlang.make("demo", "perm", out), "or pass force=True to replace it"),
        (lambda out: derivlang.make("demo", "inv", out / "x", workers=0), "workers: must be at least 1, got 0"),
        (lambda out: derivlang.make("demo", "inv", out / "x", splits="best"), "splits"),
        (lambda out: derivlang.DerivedSet(out).export(out / "x"), "out: the suffix '' names no format"),
        (lambda out: derivlang.DerivedSet(out).export(out / "x.txt", split="tst"), "no split 'tst'"),
        (lambda out: derivlang.DerivedSet(out).export(out, format="transformers"), "is not a run"),
        (lambda out: derivlang.DerivedSet(out).export(out / "x", format="xml"), "format: must be text or jsonl"),
        (lambda out: derivlang.Run(out).export(out / "x"), "is not a run"),
        (lambda out: derivlang.train_parser("a", out / "x", teacher="english"), "no argument of train_parser"),
        (lambda out: derivlang.score_parser("english", __file__, split="test"), "split: is of a folder"),
        (lambda out: derivlang.dictionary("demo", "trans", out / "d", coverage=101), "coverage: "),
        (lambda out: derivlang.pretrain("demo", "trans", out / "x", dict_coverage="0"), "dict_coverage: "),
        (lambda out: derivlang.study("align-mlm", out, scale="tny"), "scale: must be tiny or base or small or paper,"),
        (lambda out: derivlang.study("align-mlm-tiny", out, cells="mlm"), "cells: there is no cell 'mlm'"),
        (lambda out: derivlang.study("a.toml", out, scale="tiny"), "a.toml: cannot be read"),
        (lambda out: derivlang.study("align-mlm", out, workers=0), "workers: must be at least 1, got 0"),
        (lambda out: derivlang.study("align-mlm", out, workers=2, data_only=True), "be given with data_only="),
        (lambda out: derivlang.Study(out).runs, "is not a study"),
    ],
)  # fmt: skip
def test_errors_name_arguments(call: Callable[[Path], Any], told: str, tmp_path: Path) -> None:
    derivlang.make("demo", "inv", tmp_path / "set")
    with pytest.raises(derivlang.DerivlangError) as error:
        call(tmp_path / "set")
    assert told in str(error.value)
    assert " --" not in str(error.value)


CAUSAL = {"objective": "clm", "model": "tiny-gpt", **SMALL}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda run, out: derivlang.make("demo", "inv", out, seed=3), "takes a seed from seed=, so it has no effect"),
        (lambda run, out: run.evaluate(measure="alignment", epochs=2, pairs=3), "so epochs= has no effect"),
        (lambda run, out: run.evaluate(measure="alignment", predictions=True), "so predictions=True has no effect"),
        (
            lambda run, out: derivlang.pretrain("demo", "trans", out, mask=0.3, **CAUSAL),
            "clm has no masked words, so mask= has no effect",
        ),
        (
            lambda run, out: derivlang.pretrain("demo", "trans", out, dict_by="mass", dict_seed=2, **SMALL),
            "mlm has no dictionary, so dict_by= has no effect on the training mlm has no dictionary or sentence pairs",
        ),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_said(call: Callable[..., Any], told: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run = derivlang.pretrain("demo", "trans", str(tmp_path / "run"), **SMALL)
    with pytest.warns(derivlang.DerivlangWarning) as warned:
        call(derivlang.Run(str(run.path)), tmp_path / "out")
    assert told in " ".join(str(one.message) for one in warned)


def test_what_excludes_each_other_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pipeline = derivlang.Pipeline.parse("perm")
    with pytest.raises(derivlang.DerivlangError, match="seed: a pipeline states its own seeds"):
        derivlang.make("demo", pipeline, tmp_path / "out", seed=3)
    derivlang.tokenizer("demo", tmp_path / "tok", vocab_size=200)
    with pytest.raises(derivlang.DerivlangError, match=r"vocab_size: .* has 200 entries"):
        derivlang.pretrain("demo", "trans", tmp_path / "run", tokenizer=tmp_path / "tok", **SMALL)
    with pytest.raises(derivlang.DerivlangError, match="dict_coverage: cannot be given with dictionary="):
        derivlang.pretrain("demo", "trans", tmp_path / "run", dictionary="d.tsv", dict_coverage=25, **SMALL)


SCRIPT = """
import sys
import derivlang

print("begun", flush=True)
made = derivlang.make(sys.argv[1], "inv", sys.argv[2], workers=2, shard_tokens=50)
print(len(list((made.path / "data").glob("*.parquet"))))
"""


def test_a_plain_script_may_have_workers(tmp_path: Path) -> None:
    """Each worker would run the script again, and wait for the set that the script is making."""
    (tmp_path / "a.train.tokens").write_text("the cat sat on the mat .\n" * 60)
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = python(tmp_path / "script.py", tmp_path / "a.train.tokens", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    first, shards = ran.stdout.split()
    assert (first, int(shards) > 1) == ("begun", True)


def test_a_script_with_a_transform_of_its_own_is_told_what_to_do(tmp_path: Path) -> None:
    own = "@derivlang.register\nclass Own(derivlang.Transform):\n    name, order = 'own', len\n"
    (tmp_path / "a.train.tokens").write_text("the cat sat on the mat .\n" * 60)
    (tmp_path / "script.py").write_text(SCRIPT.replace('print("begun"', own + '\nprint("begun"'))
    ran = python(tmp_path / "script.py", tmp_path / "a.train.tokens", tmp_path / "out")
    assert ran.returncode != 0
    assert 'put the call under `if __name__ == "__main__":`' in ran.stderr
