"""The command line: help pages, the contract that scripts rely on, export formats, show, ls."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang import __version__
from derivlang.cli.main import COMMANDS
from derivlang.core.version import with_commit
from derivlang.formats import conllu
from derivlang.pipeline import Pipeline
from derivlang.sources.generated.base import find_generator
from derivlang.training.objectives.registry import read_objective
from tests import commands
from tests import runs as synthetic
from tests.commands import forked, make, rows, run, spawn, wiki
from tests.real import SHARED, needs_data

RESULT = {"out", "splits", "document", "changed", "dropped", "seconds", "tokens_per_second"}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small WikiText under trans,inv."""
    folder = tmp_path_factory.mktemp("text")
    make("trans,inv", wiki(folder), folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("treebank")
    make("trans,inv", commands.trees(folder), folder / "out")
    return folder / "out"


def exported(derived: Path, kind: str, folder: Path, *options: object) -> str:
    file = folder / f"exported.{kind}"
    run("export", derived, "--format", kind, "-o", file, "--force", *options)
    return file.read_text("utf-8")


# Help


def example(command: str) -> list[str]:
    """The last line of a help page's text: the command as one would type it."""
    found = re.findall(r"^ {2}(derivlang .+)$", run(command, "--help").out, re.MULTILINE)
    assert found, f"{command} --help has no example"
    return shlex.split(found[-1].strip())


def test_the_group_lists_every_command() -> None:
    page = run("--help").out
    assert "derivlang make --t trans,inv" in page
    for name, what in COMMANDS.items():
        assert re.search(rf"^ {{2}}{name} +{re.escape(what)}$", page, re.MULTILINE), name
    assert run("--version").out.startswith(f"derivlang {with_commit(__version__)}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    page = run(name, "--help").out
    assert page == run(name, "-h").out
    options = page.partition("Options:")[2]
    for line in re.findall(r"^ {2}-.*$", options, re.MULTILINE):
        alone = re.fullmatch(r" {2}\S.*?", line) and not re.search(r"\S {2,}\S", line)
        assert not alone or re.search(rf"{re.escape(line)}\n {{10,}}\S", options), f"{name}: no help for {line.strip()}"


# `explore` serves until it is interrupted: tests/test_explore.py starts it.
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "explore"])
def test_the_example_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = example(name)
    assert words[:2] == ["derivlang", name]
    monkeypatch.chdir(tmp_path)
    data = commands.wikitext103(tmp_path)
    for language in ("en", "fr"):
        for split in ("train", "dev", "test"):
            commands.entities(data / "ner" / "wikiann" / language, name=f"{split}.tsv")
    (tmp_path / "en.txt").write_text("the cat sleeps .\na cat\n", "utf-8")
    (tmp_path / "fr.txt").write_text("le chat dort .\nun chat\n", "utf-8")
    if name == "report":
        synthetic.run(tmp_path / "runs" / "mlm")
    if name not in ("make", "ls"):
        make("trans,inv", "wikitext103", tmp_path / "OUT", "--data-dir", data)
    if name in ("evaluate", "export"):
        from tests.checkpoints import checkpoint
        from tests.tiny_runs import write_run

        write_run(tmp_path / "RUN")
        pair = {"sentence_good": "The cat sleeps.", "sentence_bad": "The cat sleep."}
        (tmp_path / "pairs.jsonl").write_text(json.dumps(pair), "utf-8")
        shutil.copytree(checkpoint(), tmp_path / "FOLDER")
    if name == "study":
        study = '[study]\nsource = "demo"\nmodel = "tiny"\nsteps = 2\n[factors]\nt = ["trans"]\nseed = [1, 2]\n'
        (tmp_path / "overlap.toml").write_text(study, "utf-8")
    run(*(data if word == "DIR" else word for word in words[1:]))


def test_importing_is_quick(tmp_path: Path) -> None:
    for page in (["--help"], ["make", "--help"], ["export", "--help"]):
        ran = spawn(*page, env=commands.environment(PYTHONPROFILEIMPORTTIME="1"))
        for package in ("torch", "pyarrow", "spacy", "datasets", "numpy"):
            assert not re.search(rf"\| +{package}$", ran.err, re.MULTILINE), f"{page} imports {package}"


def test_as_a_module(tmp_path: Path) -> None:
    assert spawn("--version").out.startswith(f"derivlang {with_commit(__version__)}")
    assert "Usage:" in spawn("make", code=2).err
    assert spawn("nonsense", code=2).err.count("\n") <= 4


# make


def test_make_as_scripts_call_it(tmp_path: Path) -> None:
    data, out = commands.wikitext103(tmp_path), tmp_path / "out"
    ran = spawn("make", "--t", "trans,inv", "wikitext103", "--data-dir", data, "-o", out, "--json")
    assert ran.err == ""
    assert ran.out.count("\n") == 1
    result = ran.json
    assert set(result) == RESULT
    assert result["out"] == str(out)
    assert result["splits"] == {
        "train": {"documents": 5, "sentences": 5, "tokens": 20},
        "validation": {"documents": 1, "sentences": 1, "tokens": 3},
        "test": {"documents": 4, "articles": 1, "sentences": 6, "tokens": 37},
    }
    assert result["changed"] == {}
    assert result["dropped"] == {}
    assert result["seconds"] > 0
    assert isinstance(result["tokens_per_second"], int)

    links = tmp_path / "links"
    assert forked("export", out, "--split", "test", "--format", "pharaoh", "-o", links).out == ""
    pairs = [sorted((i, j) for j, i in enumerate(row["order"])) for row in rows(out, "test")]
    expected = [" ".join(f"{i}-{j}" for i, j in row) for row in pairs]
    assert links.read_text() == "".join(f"{line}\n" for line in expected)
    assert links.read_text().splitlines()[0] == "0-4 1-3 2-2 3-1 4-0"

    checked = forked("verify", out, "--json").json
    assert checked["ok"] is True
    assert checked["problems"] == []
    assert checked["splits"]["test"] == {"rows": 6, "tokens": 37}

    forked("undo", out, "--split", "test", "-o", tmp_path / "undone")
    assert (tmp_path / "undone").read_text("utf-8") == commands.WIKI


@needs_data
def test_the_contract_on_wikitext(tmp_path: Path) -> None:
    out, links, undone = tmp_path / "out", tmp_path / "links", tmp_path / "undone"
    result = make("trans,inv", "wikitext103", out, "--data-dir", SHARED, "--splits", "test")
    source = (SHARED / "text" / "wikitext-103" / "wiki.test.tokens").read_bytes()
    assert set(result["splits"]) == {"test"}
    assert result["splits"]["test"]["tokens"] == len(source.split())
    assert result["splits"]["test"]["documents"] == sum(bool(line.strip()) for line in source.split(b"\n"))
    assert run("verify", out, "--json").json["ok"]
    run("export", out, "--split", "test", "--format", "pharaoh", "-o", links)
    with links.open() as lines:
        assert sum(len(line.split()) for line in lines) == len(source.split())
    run("undo", out, "--split", "test", "-o", undone)
    assert undone.read_bytes() == source


def test_make_prints_counts_for_people(tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", commands.trees(tmp_path), "-o", tmp_path / "out")
    assert re.search(r"^test +2 rows +2 sentences +12 tokens$", ran.out, re.MULTILINE)
    assert "1 multiword token was dissolved: its words are no longer adjacent and in order (--mwt" in ran.out
    assert str(tmp_path / "out") in ran.out.splitlines()[-1]
    assert ran.err == ""


def test_splits_and_their_other_names(tmp_path: Path) -> None:
    data = commands.wikitext103(tmp_path)
    for number, name in enumerate(("dev", "valid", "validation", "Validation")):
        result = make("inv", "wikitext103", tmp_path / str(number), "--data-dir", data, "--splits", name)
        assert list(result["splits"]) == ["validation"]
    result = make("inv", "wikitext103", tmp_path / "two", "--data-dir", data, "--splits", "test, train,test")
    assert set(result["splits"]) == {"train", "test"}
    assert sorted(f.name[:5] for f in commands.shards(tmp_path / "two")) == ["test-", "train"]


@pytest.mark.parametrize("command", ["show", "export", "undo"])
def test_dev_is_validation_when_reading_too(tmp_path: Path, command: str) -> None:
    data, out = commands.wikitext103(tmp_path), tmp_path / "out"
    make("inv", "wikitext103", out, "--data-dir", data)
    options = {"show": ["--json"], "export": ["--format", "text", "-o", tmp_path / "x"], "undo": ["-o", tmp_path / "x"]}
    run(command, out, "--split", "dev", *options[command])


def test_data_folder_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DERIVLANG_DATA", str(commands.wikitext103(tmp_path)))
    assert set(make("inv", "wikitext103", tmp_path / "out")["splits"]) == {"train", "validation", "test"}


def test_a_missing_split_is_warned_of_once(tmp_path: Path) -> None:
    data = commands.wikitext103(tmp_path)
    (data / "wikitext-103" / "wiki.train.tokens").unlink()
    ran = run("make", "--t", "inv", "wikitext103", "--data-dir", data, "-o", tmp_path / "out", "--json")
    assert re.fullmatch(r"derivlang: warning: wikitext103: no train split was found.*\n", ran.err)
    assert "train" not in ran.json["splits"]
    named = run("make", "--t", "inv", "wikitext103", "--data-dir", data, "-o", tmp_path / "b", "--splits", "test,dev")
    assert named.err == ""


@pytest.mark.parametrize("limit", [1, 2, 4, 100])
def test_limit_is_documents_of_each_split(tmp_path: Path, limit: int) -> None:
    data = commands.wikitext103(tmp_path)
    make("perm", "wikitext103", tmp_path / "all", "--data-dir", data)
    result = make("perm", "wikitext103", tmp_path / "out", "--data-dir", data, "--limit", limit)
    assert {name: s["documents"] for name, s in result["splits"].items()} == {
        "train": min(limit, 5),
        "validation": 1,
        "test": min(limit, 4),
    }
    for split in ("train", "validation", "test"):
        whole = [row for row in rows(tmp_path / "all", split) if row["document"] < limit]
        assert [strip(row) for row in rows(tmp_path / "out", split)] == [strip(row) for row in whole]
    assert run("verify", tmp_path / "out").code == 0


def strip(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the white space around it: it ends where the limit cuts."""
    return {name: value for name, value in row.items() if name != "gaps"}


@pytest.mark.parametrize("kind", ["trees", "pairs", "questions", "entities"])
def test_limit_of_labelled_sets(tmp_path: Path, kind: str) -> None:
    source = getattr(commands, kind)(tmp_path)
    make("inv", source, tmp_path / "all")
    result = make("inv", source, tmp_path / "out", "--limit", 1)
    (split,) = result["splits"]
    assert result["splits"][split]["documents"] == 1
    whole = [row for row in rows(tmp_path / "all", split) if row["document"] == 0]
    assert rows(tmp_path / "out", split) == whole


def test_limit_of_several_files_of_a_split(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        commands.entities(tmp_path / "in", name=f"train-{number}.tsv")
    make("inv", tmp_path / "in", tmp_path / "all")
    result = make("inv", tmp_path / "in", tmp_path / "out", "--limit", 3)
    assert result["splits"]["train"]["documents"] == 3
    assert rows(tmp_path / "out", "train") == rows(tmp_path / "all", "train")[:3]
    assert [row["document"] for row in rows(tmp_path / "all", "train")] == list(range(6))


def test_seed_is_that_of_transforms_without_one(tmp_path: Path) -> None:
    source = wiki(tmp_path)
    make("perm", source, tmp_path / "option", "--seed", 7)
    make("perm:seed=7", source, tmp_path / "spec")
    make("perm:seed=7", source, tmp_path / "both", "--seed", 3)
    make("perm", source, tmp_path / "one")
    make("perm", source, tmp_path / "one-told", "--seed", 1)
    assert commands.snapshot(tmp_path / "option") == commands.snapshot(tmp_path / "spec")
    assert commands.snapshot(tmp_path / "both") == commands.snapshot(tmp_path / "spec")
    assert commands.snapshot(tmp_path / "one") == commands.snapshot(tmp_path / "one-told")
    assert rows(tmp_path / "one", "test") != rows(tmp_path / "spec", "test")


@pytest.mark.parametrize("tokens", [1, 10, 20_000_000])
def test_shard_size_changes_no_row(tmp_path: Path, tokens: int) -> None:
    source = wiki(tmp_path)
    make("trans,perm", source, tmp_path / "one")
    result = make("trans,perm", source, tmp_path / "out", "--shard-tokens", tokens)
    assert rows(tmp_path / "out", "test") == rows(tmp_path / "one", "test")
    assert result["splits"]["test"] == {"documents": 4, "articles": 1, "sentences": 6, "tokens": 37}
    assert len(commands.shards(tmp_path / "out")) == (1 if tokens > 100 else 4 if tokens == 1 else 2)


@pytest.mark.parametrize(
    ("keep", "there"),
    [("tokens", {"tokens"}), ("source,tokens", {"source", "tokens"}), ("source", {"source"}),
     ("tokens,key", {"tokens", "key"})],
)  # fmt: skip
def test_columns_keeps_what_is_named(tmp_path: Path, keep: str, there: set[str]) -> None:
    source, out = wiki(tmp_path), tmp_path / "out"
    make("trans,inv", source, tmp_path / "whole")
    make("trans,inv", source, out, "--columns", keep)
    optional = {"key", "source", "tokens", "text"}
    assert set(rows(out, "test")[0]) & optional == there
    assert [r["order"] for r in rows(out, "test")] == [r["order"] for r in rows(tmp_path / "whole", "test")]
    assert run("verify", out, "--json").json["ok"]
    run("undo", out, "-o", tmp_path / "undone")
    assert (tmp_path / "undone").read_text("utf-8") == commands.WIKI
    for kind in ("text", "pharaoh"):
        assert exported(out, kind, tmp_path) == exported(tmp_path / "whole", kind, tmp_path)


def test_columns_of_pairs_and_of_labels_that_look_alike(tmp_path: Path) -> None:
    lines = [{"tokens": ["a", "b"], "order_key": "k", "alt_text": "t", "label": "neutral"}]
    source = commands.written(tmp_path / "x.test.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    make("inv", source, tmp_path / "out", "--columns", "tokens")
    (row,) = rows(tmp_path / "out", "test")
    assert row["order_key"] == "k"
    assert row["alt_text"] == "t"
    make("inv", commands.pairs(tmp_path), tmp_path / "pairs", "--columns", "tokens")
    assert not [name for name in rows(tmp_path / "pairs", "test")[0] if name.endswith("_source")]
    assert run("verify", tmp_path / "pairs").code == 0


def test_a_derived_set_as_source(tmp_path: Path) -> None:
    source = wiki(tmp_path)
    make("trans", source, tmp_path / "first")
    make("inv", tmp_path / "first", tmp_path / "second")
    make("trans,inv", source, tmp_path / "both")
    assert rows(tmp_path / "second", "test") == rows(tmp_path / "both", "test")
    assert run("verify", tmp_path / "second").code == 0


def test_a_saved_lexicon(tmp_path: Path) -> None:
    data = commands.wikitext103(tmp_path)
    make("trans:overlap=50", "wikitext103", tmp_path / "first", "--data-dir", data)
    lexicon = tmp_path / "first" / "lexicon.tsv"
    make("trans:overlap=50", wiki(tmp_path), tmp_path / "second", "--lexicon", lexicon)
    assert (tmp_path / "second" / "lexicon.tsv").read_bytes() == lexicon.read_bytes()
    first, second = ([row["tokens"] for row in rows(tmp_path / name, "test")] for name in ("first", "second"))
    assert first == second
    assert run("verify", tmp_path / "second").code == 0


def test_stderr_is_quiet_when_it_is_no_terminal(tmp_path: Path) -> None:
    ran = spawn("make", "--t", "inv", wiki(tmp_path), "-o", tmp_path / "out", "--shard-tokens", 1)
    assert ran.err == ""
    assert len(commands.shards(tmp_path / "out")) == 4
    assert spawn("verify", tmp_path / "out").err == ""


# export, undo


def test_export_text_source_and_links_have_the_same_lines(text: Path, tmp_path: Path) -> None:
    derived, source = (exported(text, "text", tmp_path, *side).splitlines() for side in ((), ("--source",)))
    links = exported(text, "pharaoh", tmp_path).splitlines()
    assert len(derived) == len(source) == len(links) == 6
    assert source[0] == "= Harbour Chronicles III ="
    assert derived[0] == "＝ ᲘᲘᲘ Ცჰრონიცლეს Ჰარბოურ ＝"
    for row, ours, theirs, pairs in zip(rows(text, "test"), derived, source, links, strict=True):
        assert ours.split(" ") == row["tokens"]
        assert theirs.split(" ") == row["source"]
        found = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
        assert found == sorted((i, j) for j, i in enumerate(row["order"]))


def test_export_text_a_document_a_line(text: Path, tmp_path: Path) -> None:
    lines = exported(text, "text", tmp_path, "--documents", "--source").splitlines()
    assert len(lines) == 4
    assert lines[2] == 'Is it " new " ? It was , then .'


def test_documents_over_row_groups_and_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of one paragraph share a document; a document is never two lines."""
    make("inv", commands.questions(tmp_path), tmp_path / "out")
    lines = exported(tmp_path / "out", "text", tmp_path, "--documents").splitlines()
    assert len(lines) == 1


def test_export_jsonl(text: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in exported(text, "jsonl", tmp_path).splitlines()]
    assert all(re.fullmatch("[0-9a-f]{16}", line["key"]) for line in lines)
    assert [{**line, "key": int(line["key"], 16)} for line in lines] == rows(text, "test")
    assert "Ცჰრონიცლეს" in exported(text, "jsonl", tmp_path)


def test_export_conllu(treebank: Path, tmp_path: Path) -> None:
    content = exported(treebank, "conllu", tmp_path)
    assert "SpaceAfter" not in content
    assert "SpacesAfter" not in content
    assert "Gloss=tomorrow" in content
    assert "# sent_id = a-1\n# text = ） დემაინ （ პარც ლე ჺ ვაის Ჯე ．\n" in content
    (parsed,) = conllu.read(tmp_path / "exported.conllu")
    found = parsed.table.to_pylist()
    assert [row["tokens"] for row in found] == [row["tokens"] for row in rows(treebank, "test")]
    assert [row["head"] for row in found] == [row["head"] for row in rows(treebank, "test")]
    assert found[0]["mwt"] == []
    for sentence in found:
        texts = [c.removeprefix("# text = ") for c in sentence["comments"] if c.startswith("# text = ")]
        assert texts == [" ".join(sentence["tokens"])]
    assert exported(treebank, "conllu", tmp_path, "--source") == commands.TREES


def test_export_conllu_of_running_text(text: Path, tmp_path: Path) -> None:
    blocks = exported(text, "conllu", tmp_path).rstrip("\n").split("\n\n")
    assert len(blocks) == 6
    assert "# text = ＝ ᲘᲘᲘ Ცჰრონიცლეს Ჰარბოურ ＝" in blocks[0].splitlines()


def test_export_tsv(tmp_path: Path) -> None:
    make("trans,inv", commands.entities(tmp_path), tmp_path / "ner")
    assert exported(tmp_path / "ner", "tsv", tmp_path, "--source") == commands.ENTITIES.replace(" ", "\t")
    assert exported(tmp_path / "ner", "tsv", tmp_path).splitlines()[:5] == [
        "Ლონდონ\tB-LOC", "ინ\tO", "ლივეს\tO", "Ლოველაცე\tB-PER", "Ადა\tI-PER"
    ]  # fmt: skip
    make("trans,inv", commands.pairs(tmp_path), tmp_path / "nli")
    lines = ["\t".join(row) for row in commands.PAIRS]
    assert exported(tmp_path / "nli", "tsv", tmp_path, "--source").splitlines() == lines
    first = exported(tmp_path / "nli", "tsv", tmp_path).splitlines()[0]
    assert first == "სლეეპს ცატ Ტჰე ．\tასლეეპ ის ცატ Ა ．\tentailment"


def test_export_squad(tmp_path: Path) -> None:
    make("trans,inv", commands.questions(tmp_path), tmp_path / "qa")
    source = json.loads(exported(tmp_path / "qa", "squad", tmp_path, "--source"))
    assert source["data"] == commands.QUESTIONS["data"]
    derived = json.loads(exported(tmp_path / "qa", "squad", tmp_path))
    (paragraph,) = derived["data"][0]["paragraphs"]
    for question in paragraph["qas"]:
        (answer,) = question["answers"]
        assert paragraph["context"][answer["answer_start"] :].startswith(answer["text"])
    assert paragraph["qas"][0]["answers"][0]["text"] == "Ლონდონ"


def test_a_space_inside_a_word_is_u00a0_and_counted(treebank: Path, tmp_path: Path) -> None:
    ran = run("export", treebank, "--format", "text", "-o", tmp_path / "t", "--json")
    assert ran.json == {"out": str(tmp_path / "t"), "rows": 2, "spaces": 1}
    assert (tmp_path / "t").read_text("utf-8").splitlines()[1] == "ეუროს ၂၀\u00a0၀၀၀ ！"
    told = run("export", treebank, "--format", "text", "-o", tmp_path / "t")
    assert told.out == ""
    assert re.search(r"inside 1 word\b", told.err)
    links = exported(treebank, "pharaoh", tmp_path).splitlines()
    assert links[1] == "0-1 1-0 2-2"
    for line, pairs in zip((tmp_path / "t").read_text("utf-8").splitlines(), links, strict=True):
        assert len(line.split(" ")) == len(pairs.split())


def test_formats_that_do_not_fit(text: Path, treebank: Path, tmp_path: Path) -> None:
    make("inv", commands.pairs(tmp_path), tmp_path / "nli")
    for folder, kind in ((text, "squad"), (text, "tsv"), (treebank, "squad"), (tmp_path / "nli", "conllu")):
        ran = run("export", folder, "--format", kind, "-o", tmp_path / "x", code=2)
        assert ran.err.startswith("derivlang: --format: ")
        assert not (tmp_path / "x").exists()
    assert run("export", text, "-o", tmp_path / "x.csv", code=2).err.startswith("derivlang: -o: this set does not fit")


def test_words_without_tags_are_no_lines_of_a_tsv_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["A", "dog", "barks"], "label": "x"}\n')
    make("inv", tmp_path / "a.jsonl", tmp_path / "out")
    ran = run("export", tmp_path / "out", "--format", "tsv", "-o", tmp_path / "x", code=2)
    assert "[unfit-format]" in ran.err


@pytest.mark.parametrize(
    "options", ["jsonl --source", "pharaoh --source", "jsonl --documents", "conllu --documents", "pharaoh --documents"]
)
def test_options_that_do_not_apply_to_a_format(treebank: Path, tmp_path: Path, options: str) -> None:
    ran = run("export", treebank, "--format", *options.split(), "-o", tmp_path / "x", code=2)
    assert ran.err.startswith(f"derivlang: {options.split()[1]}: does not apply to the format")


def test_lists_of_a_row_are_no_values_of_a_csv_file(treebank: Path, tmp_path: Path) -> None:
    """The comments of a CoNLL-U sentence are a list, the value `meta` is a struct."""
    assert exported(treebank, "csv", tmp_path).splitlines()[0] == "text,idx"
    (tmp_path / "a.jsonl").write_text('{"text": "A dog.", "meta": {"a": 1}, "n": 3}\n')
    make("inv", tmp_path / "a.jsonl", tmp_path / "out")
    assert exported(tmp_path / "out", "csv", tmp_path, "--source") == "text,n\nA dog.,3\n"
    assert exported(tmp_path / "out", "tsv", tmp_path, "--source") == "A dog.\t3\n"


def test_values_that_are_not_equal_to_themselves_or_no_text(tmp_path: Path) -> None:
    columns = {"tokens": [["A", "dog"], ["B"]], "f": [float("nan"), 1.0], "s": [[float("nan"), 0.5], [1.0]]}
    pq.write_table(pa.table({**columns, "meta": [{"x": float("nan")}, None]}), tmp_path / "a.parquet")
    make("inv", tmp_path / "a.parquet", tmp_path / "out")
    assert run("verify", tmp_path / "out", "--json").json["ok"]
    pq.write_table(pa.table({"text": ["A dog."], "bytes": [b"\xff"]}), tmp_path / "b.parquet")
    make("inv", tmp_path / "b.parquet", tmp_path / "bytes")
    assert "[text-value]" in run("export", tmp_path / "bytes", "--format", "csv", "-o", tmp_path / "x", code=1).err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("kind", ["trees", "pairs", "questions", "entities", "wiki"])
@pytest.mark.parametrize("spec", ["trans,inv", "perm:seed=2,trans:script=private"])
def test_undo_gives_the_source_back(tmp_path: Path, kind: str, spec: str) -> None:
    source = getattr(commands, kind)(tmp_path)
    make(spec, source, tmp_path / "out")
    assert run("verify", tmp_path / "out", "--json").json["ok"]
    result = run("undo", tmp_path / "out", "-o", tmp_path / "undone", "--json").json
    assert result["out"] == str(tmp_path / "undone")
    ours, theirs = (tmp_path / "undone").read_text("utf-8"), source.read_text("utf-8")
    if kind == "questions":
        assert json.loads(ours)["data"] == json.loads(theirs)["data"]
    else:
        assert ours == theirs


@pytest.mark.parametrize("kind", ["trees", "entities", "wiki"])
def test_undo_restores_all_splits_into_a_folder(tmp_path: Path, kind: str) -> None:
    """A file for each split, which is the source again; no file that is there is replaced."""
    source = getattr(commands, kind)(tmp_path)
    (tmp_path / "in").mkdir()
    for split in ("train", "test"):
        shutil.copy(source, tmp_path / "in" / f"{split}{source.suffix}")
    make("inv", tmp_path / "in", tmp_path / "out")
    result = run("undo", tmp_path / "out", "-o", tmp_path / "back" / "all", "--json").out
    files = [Path(json.loads(line)["out"]) for line in result.splitlines()]
    assert files == [tmp_path / "back" / "all" / f"{split}{source.suffix}" for split in ("train", "test")]
    assert [file.read_bytes() for file in files] == [source.read_bytes()] * 2
    files[0].unlink()
    assert "[output]" in run("undo", tmp_path / "out", "-o", files[0].parent, code=1).err
    assert sorted(files[0].parent.iterdir()) == [files[1]]
    run("undo", tmp_path / "out", "--split", "train", "-o", files[0].parent)
    assert files[0].read_bytes() == source.read_bytes()
    assert "-o FOLDER" in run("undo", tmp_path / "out", code=1).err


def test_undo_tells_that_it_writes_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Ça va .\n".encode("latin-1"))
    run("make", tmp_path / "a.txt", "-t", "inv", "-o", tmp_path / "out", "--encoding", "latin-1")
    told = run("undo", tmp_path / "out", "-o", tmp_path / "undone").err
    assert (tmp_path / "undone").read_text("utf-8") == "Ça va .\n"
    assert "written in UTF-8; the source is in latin-1" in told


@pytest.mark.parametrize(
    "content",
    ["\n\nHello world\n", " \n \n a b . \n", "\n\na\nb\n", "a\n\n\n", "a", " a ", "a\n\nb", "a\u00a0b c\n",
     "\ufeffa b\n", "a\tb\r\nc\r\n", "a  b\x0bc\n", "\n" * 5000 + "a\n" + "\n" * 5000],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["tokens", "txt"])
def test_undo_gives_text_back_byte_for_byte(tmp_path: Path, content: str, suffix: str) -> None:
    source = commands.written(tmp_path / f"x.{suffix}", content)
    make("trans,inv", source, tmp_path / "out", "--words", "space" if suffix == "tokens" else "unicode")
    run("undo", tmp_path / "out", "-o", tmp_path / "undone")
    assert (tmp_path / "undone").read_bytes() == source.read_bytes()


def test_standard_output(text: Path, tmp_path: Path) -> None:
    file = exported(text, "text", tmp_path)
    ran = forked("export", text, "--format", "text", "-o", "-")
    assert ran.out == file
    undone = forked("undo", text, "-o", "-")
    assert undone.out == commands.WIKI
    assert "Traceback" not in ran.err + undone.err


@pytest.mark.parametrize("command", [["export", "--format", "jsonl"], ["undo"]])
def test_standard_output_stays_clean_with_json(text: Path, command: list[str], tmp_path: Path) -> None:
    plain = forked(command[0], text, *command[1:], "-o", "-").out
    assert forked(command[0], text, *command[1:], "-o", "-", "--json", code=None).out in (plain, "")


def test_a_reader_that_stops_early(text: Path) -> None:
    line = " ".join(map(shlex.quote, commands.command_line("show", text, "-n", 6)))
    done = subprocess.run(
        ["bash", "-c", f"for i in 1 2 3; do {line}; done | true"],
        capture_output=True, env=commands.environment(), timeout=60, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_several_splits_must_be_named(tmp_path: Path) -> None:
    make("inv", "wikitext103", tmp_path / "out", "--data-dir", commands.wikitext103(tmp_path))
    for command in (["undo", "-o", tmp_path / "x.txt"], ["export", "--format", "text", "-o", tmp_path / "x"]):
        ran = run(command[0], tmp_path / "out", *command[1:], code=None)
        assert ran.code in (1, 2)
        assert "train, validation, test" in ran.err
        assert "--split" in ran.err


# show, ls


def test_show_a_text() -> None:
    assert run("show", "--t", "trans,inv", "Welcome to ACL .").out == (
        "  source   Welcome to ACL .\n"
        "  derived  ᲐᲪᲚ ტო Წელცომე ．\n"
        "    0 ᲐᲪᲚ      <-   2 ACL\n"
        "    1 ტო       <-   1 to\n"
        "    2 Წელცომე  <-   0 Welcome\n"
        "    3 ．       <-   3 .\n"
    )


def test_show_a_text_as_json() -> None:
    assert run("show", "--t", "inv", "Welcome to ACL .", "--json").json == {
        "row": 0,
        "source": ["Welcome", "to", "ACL", "."],
        "tokens": ["ACL", "to", "Welcome", "."],
        "order": [2, 1, 0, 3],
        "labels": {},
    }


@pytest.mark.parametrize("words", ["", " ", "\n"])
def test_show_no_words(words: str) -> None:
    assert "Traceback" not in run("show", "--t", "inv", words, code=None).err


def test_show_rows_of_a_set(text: Path) -> None:
    ran = run("show", text, "--split", "test", "-n", 2)
    keys = [f"{row['key']:016x}" for row in rows(text, "test")]
    assert [line for line in ran.out.splitlines() if line.startswith("row")] == [
        f"row 0  split test  document 0  key {keys[0]}", f"row 1  split test  document 1  key {keys[1]}"
    ]  # fmt: skip
    assert "\n\nrow 1  split" in ran.out
    last = [json.loads(line) for line in run("show", text, "--row", 4, "-n", 10, "--json").out.splitlines()]
    assert [row["row"] for row in last] == [4, 5]
    for shown, row in zip(last, rows(text, "test")[4:], strict=True):
        assert [shown[name] for name in ("source", "tokens", "order")] == [row["source"], row["tokens"], row["order"]]
    assert "no row 6" in run("show", text, "--row", 6, code=1).err


def test_show_labels_beside_their_words(treebank: Path, tmp_path: Path) -> None:
    lines = run("show", treebank, "--row", 1).out.splitlines()
    assert [tag in line.split() for tag, line in zip(("NOUN", "NUM", "PUNCT"), lines[3:], strict=True)] == [True] * 3
    make("inv", commands.pairs(tmp_path), tmp_path / "nli")
    shown = [json.loads(line) for line in run("show", tmp_path / "nli", "-n", 1, "--json").out.splitlines()]
    assert [(row["row"], row["side"]) for row in shown] == [(0, "premise"), (0, "hypothesis")]


def test_ls() -> None:
    found = run("ls", "--json").json
    assert set(found) == {
        *("transforms", "objectives", "generators", "tasks", "measures", "sources", "formats", "scripts", "studies"),
    }
    names = {kind: [entry["name"] for entry in entries] for kind, entries in found.items()}
    assert {"identity", "inv", "perm", "trans"} <= set(names["transforms"])
    assert {"wikitext103", "wikitext2", "pos", "ner", "xnli", "squad", "demo"} <= set(names["sources"])
    assert "georgian" in names["scripts"]
    assert {"mlm", "xlm", "dict-mlm", "align-mlm"} <= set(names["objectives"])
    assert {"blimp", "dep", "ner", "pawsx", "pos", "qa", "xnli"} <= set(names["tasks"])
    (perm,) = [t for t in found["transforms"] if t["name"] == "perm"]
    assert {p["name"]: p["default"] for p in perm["parameters"]} == {"window": 0, "seed": 1, "unit": "word"}
    assert all(p["help"] for t in found["transforms"] for p in t["parameters"])
    page = run("ls").out
    for kind in names:
        for name in names[kind]:
            assert re.search(rf"^ {{2}}{re.escape(name)}\s", page, re.MULTILINE), name
    # each parameter is shown with its default, as a spec takes it
    for kind, read in (("transforms", Pipeline.parse), ("objectives", read_objective), ("generators", find_generator)):
        for entry in found[kind]:
            own = re.split(rf"^ {{2}}{re.escape(entry['name'])}\s", page, maxsplit=1, flags=re.MULTILINE)[1]
            for parameter in entry["parameters"]:
                line = re.search(rf"^ {{4}}({parameter['name']}=(\S*)) ", own, re.MULTILINE)
                assert line is not None
                if line[2] and entry["name"] not in ("dialect", "lex", "sort"):  # which need a file or a rate
                    read(f"{entry['name']}:{line[1]}")
