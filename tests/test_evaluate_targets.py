"""Targets of a run with sets of the user: labelled ones (--task pos:fr=SET), pairs, gold links and dictionaries."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import derivlang
from derivlang.align.bitext import encode
from derivlang.align.links import parse_lines, score
from derivlang.core.messages import DerivlangWarning
from derivlang.evaluation import cell as cells
from derivlang.evaluation.encoder_links import LinkEncoder
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from tests.commands import run
from tests.plugin.derivlang_sample.measures import Centroids
from tests.tiny_runs import DEMO, seal
from tests.training import batches

TUNE: dict[str, Any] = {"epochs": 2, "seeds": 1, "train_examples": 12, "batch_size": 8, "lr": 5e-3, "threads": 1}
QUICK = [word for name, value in TUNE.items() for word in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a source, a language in another script, and another text, with one tokenizer."""
    folder = tmp_path_factory.mktemp("targets")
    lines = []
    for batch in batches("identity"):
        words, ends = batch.strings().to_pylist(), batch.sentences.tolist()
        lines += [" ".join(words[i:j]) for i, j in pairwise(ends)]
    for name, some in (("en", lines[::2]), ("fr", lines[1::2])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in some), "utf-8")
    joint = "--words", "space", "--vocab-size", 200, "-o", folder / "joint"
    run("tokenizer", "train", folder / "en.txt", "--text", folder / "fr.txt", *joint)
    options: dict[str, Any] = {"tokenizer": folder / "joint", "steps": 4, "seq_len": 32, "batch_size": 8, "threads": 1}
    languages = {"en": {"text": str(folder / "en.txt")}, "la": {"t": "trans"}, "fr": {"text": str(folder / "fr.txt")}}
    asked: dict[str, Any] = {"language": languages, "words": "space", "data": folder / "data", **options}
    derivlang.pretrain(None, None, folder / "run", learning_rate=1e-3, **asked)
    return folder / "run"


@pytest.fixture
def several(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def values(found: Any, **equal: str) -> dict[tuple[str, str], float]:
    """The test scores by metric and regime."""
    rows = found[found["split"] == "test"]
    for name, value in equal.items():
        rows = rows[rows[name] == value]
    return {(row["metric"], row["regime"]): row["value"] for _, row in rows.iterrows()}


def test_a_set_of_a_target_is_read_in_its_language(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the source's tokenizer, the source's set gives the source's scores."""
    tuned: list[int] = []
    once = cells.fine_tune
    monkeypatch.setattr(cells, "fine_tune", lambda *given: (tuned.append(given[2]), once(*given))[1])
    made = derivlang.Run(several).evaluate(task="pos:demo+fr=demo", measure="none", predictions=True, **TUNE)
    assert sorted(tuned) == [0, 1, 1]  # one fine-tuning on the source
    assert set(made["factor.target"]) == {"la", "fr"}
    found = made[made["factor.target"] == "fr"]
    assert set(found["task"]) == {"pos:demo+fr=demo"}
    assert set(found["set.ft_source"]) == {"demo+demo"}
    scores = values(found)
    assert {regime for _, regime in scores} == {"zs", "sup", "source", "oracle", "chance"}
    assert all(scores[name, "zs"] == scores[name, "source"] for name in ("accuracy", "macro_f1"))
    assert set(found["set.ft_own_train"]) == {"12"}
    assert run("verify", several, "--json").json["ok"]
    assert (derivlang.report(several, out=several / "report")).exists()


def test_a_target_whose_set_has_no_train(several: Path) -> None:
    test = several.parent / "fr.conllu"
    shutil.copy(DEMO / "demo-ud-test.conllu", test)
    with pytest.warns(DerivlangWarning, match="the target's own set has no train and dev for sup, which is left out"):
        made = derivlang.Run(several).evaluate(task=f"pos:demo+fr={test}", target="fr", measure="none", **TUNE)
    found = values(made)
    assert {regime for _, regime in found} == {"zs", "source", "chance"}
    assert set(made["set.ft_own_train"]) == {"0"}
    (label,) = set(made["task"])
    assert label.startswith("pos:demo+fr=fr.conllu-")
    told = run("evaluate", several, "--target", "fr", "--task", f"pos:demo+fr={test}", "--measure", "none", *QUICK).out
    assert "ZS, on the source  accuracy" in told


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--task", "pos:demo", "--target", "fr"], "fr has a text of its own, so no set can be derived for it"),
        (["--task", "pos:demo+de=demo"], "there is no target 'de'"),
        (["--task", "pos:en=demo+fr=demo"], "en is the source, not a target [languages]"),
        (["--task", "pos:demo+fr=demo+fr=demo"], "gives a target two sets"),
        (["--task", "pos:demo+fr="], "names no set"),
        (["--task", "pos:fr=demo+demo"], "has a set of the source after fr=SET"),
        (["--task", "pos:demo+la=demo"], "the sets of la are derived from the source's"),
        (["--task", "pos:demo+fr={train}/", "--target", "fr"], "provide test\n"),
        (["--task", "pos:demo+demo+demo+fr=demo"], "names more than two sets"),
        (["--task", "pos:demo+fr={folder}/none.conllu"], "there is no such file"),
        (["--task", "xnli:demo:nli+fr=demo:nli", "--target", "fr", "--regime", "cs"], "cs mixes sides of sets"),
        (["--task", "pos:demo+fr={test}", "--target", "fr", "--regime", "sup"], "has no train and dev for sup"),
        (["--task", "pos:demo+fr={words}", "--target", "fr"], "has no labels of the task pos"),
    ],
)
def test_sets_that_do_not_suit(asked: list[str], message: str, several: Path) -> None:
    words = several.parent / "words.txt"
    words.write_text("a b c\n", "utf-8")
    train = several.parent / "train"
    train.mkdir()
    for split in ("train", "dev"):
        shutil.copy(DEMO / f"demo-ud-{split}.conllu", train / f"{split}.conllu")
    places = {"train": train, "folder": several.parent, "test": DEMO / "demo-ud-test.conllu", "words": words}
    typed = [word.format(**places) for word in asked]
    found = run("evaluate", several, *typed, "--measure", "none", *QUICK, code=None)
    assert message in found.err


def test_predictions_on_a_set_with_other_names_of_sides(several: Path) -> None:
    """They have the names of the target's set."""
    test = several.parent / "pairs.jsonl"
    rows = [line.split("\t") for line in (DEMO / "demo-nli-test.tsv").read_text("utf-8").splitlines()]
    lines = [json.dumps(dict(zip(("sentence1", "sentence2", "label"), row, strict=True))) for row in rows]
    test.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    asked: dict[str, Any] = {"task": f"xnli:demo:nli+fr={test}", "target": "fr", "regime": "zs", "predictions": True}
    derivlang.Run(several).evaluate(measure="none", **asked, **TUNE)
    (path,) = (several / "evaluation" / "fr").glob("*.predictions.parquet")
    table = pq.read_table(path)
    assert {"sentence1", "sentence2"} < {*table.column_names}
    assert len(table) == 2 * len(rows)


def test_targets_without_a_set_are_left_out(several: Path) -> None:
    told = run("evaluate", several, "--task", "pos:demo", "--measure", "alignment", *QUICK)
    assert "fr: not evaluated, as a text of its own has no derived sets: name one, e.g. pos:fr=SET" in told.err
    assert [line for line in told.out.splitlines() if line.endswith(":") and "  " not in line][:1] == ["la:"]
    assert not (several / "evaluation" / "fr.json").exists()
    told = run("evaluate", several, "--task", "pos:demo+fr=demo,ner:demo", "--target", "fr", *QUICK)
    assert "fr: left out, as a text of its own is not parallel to the source's: ner:demo, alignment" in told.err


def test_names_of_sets() -> None:
    task: Any = task_of("pos:A+B+fr=C+de=./x=y.conllu")
    assert task.sources == ("pos:A", "pos:B")
    assert {target: own.sources for target, own in task.own.items()} == {"fr": ("pos:C",), "de": ("./x=y.conllu",)}
    alone: Any = task_of("pos:fr=C")
    assert alone.sources == ("pos:English-EWT",)
    assert task_of("pos:./a=b.conllu").sources == ("./a=b.conllu",)  # type: ignore[attr-defined]


# Measures on a file


@pytest.fixture(scope="module")
def pairs(made: Path) -> Path:
    """Pairs of a sentence and its words in reverse, with gold links, some possible; and with exchanged sides."""
    lines = [line.split() for line in (made.parent / "en.txt").read_text("utf-8").splitlines()][:30]
    ends = [[(i, len(words) - 1 - i, "-p"[i % 2]) for i in range(len(words))] for words in lines]
    sides = [[" ".join(words) for words in lines], [" ".join(words[::-1]) for words in lines]]
    links = [[" ".join(f"{i}{sure}{j}" for i, j, sure in some) for some in ends]]
    links += [[" ".join(f"{j}{sure}{i}" for i, j, sure in some) for some in ends]]
    contents = {"en": sides[0], "fr": sides[1], "gold": links[0]}
    contents |= {"turned.source": sides[1], "turned.derived": sides[0], "turned.pharaoh": links[1]}
    for name, some in contents.items():
        (made.parent / f"pairs.{name}").write_text("".join(f"{line}\n" for line in some), "utf-8")
    return made.parent / "pairs"


def measured(place: Path, name: str, target: str = "fr") -> dict[tuple[str, int], float]:
    found = derivlang.Run(place).evaluate(target=target, measure=name, threads=1)
    assert found["task"].nunique() == 1
    return {(row["metric"], row["layer"]): row["value"] for _, row in found.iterrows() if row["regime"] != "chance"}


def test_links_and_retrieval_of_a_file(several: Path, pairs: Path) -> None:
    """Against the aligner and `align score`; the sides may be exchanged."""
    found = measured(several, f"links:en-fr={pairs}")
    trained = PretrainedRun.load(several, target="fr")
    encoder = LinkEncoder(trained.languages, trained.encoder(torch.device("cpu")), 1, trained.longest)
    text = encode(*(Path(f"{pairs}.{side}").read_text("utf-8").splitlines() for side in ("en", "fr")))
    gold = parse_lines(Path(f"{pairs}.gold").read_text("utf-8").splitlines())
    assert 0 < gold.sure.sum() < len(gold.sure)
    for metric, method in (("argmax", "argmax"), ("transport", "ot")):
        assert found[metric, 1] == pytest.approx(100 * score(encoder.links(text, method)[0], gold).aer)
    fresh = several.parent / "fresh"
    shutil.copytree(several, fresh, ignore=shutil.ignore_patterns("evaluation"))
    assert measured(fresh, f"links:fr-en={pairs}.turned") == found
    shutil.rmtree(fresh / "evaluation")
    for part, name in {"en": "en", "fr": "fr", "gold": "pharaoh"}.items():
        shutil.copy(f"{pairs}.{part}", several.parent / f"other.{name}")
    assert measured(fresh, f"links:en-fr={several.parent / 'other'}") == found


def test_retrieval_of_a_file(several: Path, pairs: Path) -> None:
    same = several.parent / "same"
    lines = sorted(set(Path(f"{pairs}.en").read_text("utf-8").splitlines()))
    for name in ("en", "fr"):
        same.with_name(f"same.{name}").write_text("".join(f"{line}\n" for line in [*lines, ""]), "utf-8")
    found = measured(several, f"retrieval:en-fr={same}")
    assert {value for (metric, _), value in found.items() if metric == "sentences"} == {100.0}
    table = derivlang.scores(several)
    assert {len(counts) for counts in table["counts"]} == {2 * len(lines)}


def test_a_measure_of_a_plug_in_takes_a_file(several: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosines of a sentence and itself are 1."""
    monkeypatch.setitem(MEASURES.added, "centroids", Centroids())
    text = several.parent / "same"
    for name in ("en", "fr"):
        Path(f"{text}.{name}").write_text(Path(f"{pairs}.en").read_text("utf-8"), "utf-8")
    found = measured(several, f"centroids:en-fr={text}")
    assert {round(value, 3) for value in found.values()} == {100.0}
    assert {layer for _, layer in found} == {0, 1, 2}
    assert "no such file" in run("evaluate", several, "--measure", "centroids:en-fr=none", code=None).err


def test_words_of_a_dictionary(several: Path) -> None:
    """Against all cosines; a pair of a word and itself is left out."""
    words = sorted(set(filter(str.isalpha, (DEMO / "demo-nli-test.tsv").read_text("utf-8").lower().split())))[:40]
    path = several.parent / "words.txt"
    chosen = [*pairwise(words), *zip(words, words[2:], strict=False), (words[0], words[0])]
    path.write_text("".join(f"{left} {right}\n" for left, right in chosen), "utf-8")
    found = derivlang.Run(several).evaluate(target="fr", measure=f"translation:en-fr={path}", threads=1)
    rows = found[(found["metric"] == "nearest") & (found["regime"] == "") & (found["group"] == "")]
    trained = PretrainedRun.load(several, target="fr")
    table = trained.encoder(torch.device("cpu")).embeddings.detach().numpy()

    def vectors(language: int, some: list[str]) -> Any:
        tokenizer = trained.languages.readers[language].tokenizer
        means = []
        for word in some:
            encoded = tokenizer.encode(pa.array([word]), np.zeros(2, np.int32), np.array([0, 2]))
            means.append(table[encoded.ids[encoded.offsets[1] :]].mean(axis=0))
        made = np.stack(means)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    left, right = (list(dict.fromkeys(pair[side] for pair in chosen if pair[0] != pair[1])) for side in (0, 1))
    nearest = (vectors(0, left) @ vectors(1, right).T).argmax(axis=1)
    expected = np.mean([(word, right[at]) in set(chosen) for word, at in zip(left, nearest.tolist(), strict=True)])
    assert rows["value"].tolist() == [pytest.approx(100 * expected)]


def test_a_dictionary_of_words_that_were_not_read_is_named(several: Path) -> None:
    path = several.parent / "words.txt"
    path.write_text("the der\nferry schiff\ngate tor\nnear nahe\nold alt\n", "utf-8")
    told = run("evaluate", several, "--measure", f"translation:en-fr={path}", "--threads", 1).err
    assert "0.0% of its pairs have both words in the text of the tokenizers" in told
    path.write_text("the the\nferry gate\nstopped ferry\n", "utf-8")
    told = run("evaluate", several, "--measure", f"translation:en-fr={path}", "--threads", 1, "--force").err
    assert "of its pairs have both words" not in told


def test_words_of_a_dictionary_are_in_the_order_of_the_alphabet(several: Path) -> None:
    """In all runs, as they are compared word by word, and a pair counts once; the file has another order."""
    words = sorted(set(filter(str.isalpha, (DEMO / "demo-nli-test.tsv").read_text("utf-8").lower().split())))[:12]
    path = several.parent / "words.txt"
    chosen = sorted(zip(words[:6], words[6:], strict=True))
    sets, hits = [], []
    for order in (chosen, chosen[::-1], [*chosen, chosen[0]]):
        path.write_text("".join(f"{left} {right}\n" for left, right in order), "utf-8")
        derivlang.Run(several).evaluate(target="fr", measure=f"translation:en-fr={path}", threads=1, force=True)
        table = derivlang.scores(several)
        sets.append(table["set_hash"].tolist())
        hits.append([counts.tolist() for counts in table["counts"]])
    assert sets[0] == sets[1] == sets[2]
    assert hits[0] == hits[1] == hits[2]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("links:", "'links:' is not a measure on a file"),
        ("perplexity:x", "'perplexity:x' is not a measure on a file"),
        ("translation", "'translation' is not a measure on a file"),
        ("translation", "write e.g. translation:en-fr=FILE\n"),
        ("link:x", "there is no measure 'link'"),
        ("links:en-fr=a/g,links:en-fr=a-g", "two measures have one name of their results"),
        ("links:en-de=x", "en-de are not the source and a target"),
        ("links:fr-la=x", "fr-la are not the source and a target"),
        ("links:en-en=x", "en-en are not the source and a target"),
        ("links:x", "a file of which two languages?"),
        ("links:en-fr={folder}/none", "no such file"),
        ("links:en-fr={folder}/same", "has no gold links"),
        ("translation:en-fr={folder}/same.en", "knows none of its"),
        ("links:en-fr={folder}/empty", "empty: has no pair with words on both sides"),
        ("retrieval:en-fr={folder}/blank", "blank: has no pair with words on both sides"),
        ("retrieval:en-fr=.", "no such file"),
    ],
)
def test_files_that_cannot_be_measured(measure: str, message: str, several: Path) -> None:
    for name in ("en", "fr"):
        (several.parent / f"same.{name}").write_text("Кот ждёт\n", "utf-8")
        (several.parent / f"empty.{name}").write_text("", "utf-8")
        (several.parent / f"blank.{name}").write_text("a\n\n" if name == "en" else "\na\n", "utf-8")
    told = run("evaluate", several, "--measure", measure.format(folder=several.parent), "--threads", 1, code=None)
    assert message in told.err


def test_a_file_of_another_target(several: Path, pairs: Path) -> None:
    """Targets without a file have nothing to do; to ask for one of them is an error."""
    name = f"retrieval:en-fr={pairs}"
    told = run("evaluate", several, "--target", "la", "--measure", name, "--threads", 1, code=None)
    assert "there is nothing to evaluate for la" in told.err
    run("evaluate", several, "--measure", name, "--threads", 1)
    assert [path.name for path in (several / "evaluation").glob("*.json")] == ["fr.json"]


def test_files_are_opened_before_a_fine_tuning(several: Path) -> None:
    """Of all targets, also of later ones."""
    asked = "--task", "pos:demo+fr=demo", "--measure", f"translation:en-fr={several / 'none'}"
    assert "no such file" in run("evaluate", several, *asked, *QUICK, code=None).err
    assert not (several / "evaluation").exists()


def test_a_file_of_a_run_without_names(made: Path, pairs: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"vocab_size": 200, "steps": 2, "seq_len": 32, "batch_size": 8, "threads": 1}
    derivlang.pretrain("demo", "inv", tmp_path / "run", data=tmp_path / "data", **options)
    shutil.copy(f"{pairs}.en", tmp_path / "two.source")
    shutil.copy(f"{pairs}.fr", tmp_path / "two.derived")
    told = run("evaluate", tmp_path / "run", "--task", "pos:demo+derived=demo", code=None).err
    assert "the sets of derived are derived from the source's" in told
    told = run("evaluate", tmp_path / "run", "--measure", f"retrieval:{tmp_path / 'two'},alignment", "--threads", 1).out
    assert "alignment" in told
    assert "retrieval:two-" in told
    assert run("verify", tmp_path / "run", "--json").json["ok"]


def test_a_default_set_in_another_language_than_the_source(several: Path) -> None:
    """It is named by the task: pos means an English treebank."""
    path = several / "run.json"
    record = json.loads(path.read_text("utf-8"))

    def refused(*asked: object, settings: dict[str, Any], reading: dict[str, Any], source: str) -> str:
        record["settings"] |= settings
        path.write_text(json.dumps(record | {"source": source, "reading": record["reading"] | reading}), "utf-8")
        seal(several)
        return run(
            "evaluate", several, "--measure", "none", *QUICK, "--data-dir", several / "no", *asked, code=None
        ).err

    several_languages = ["ja=text:ja.txt lang:ja", "la=t:trans", "fr=text:fr.txt"]
    for asked, settings, reading, source, code in (
        ("pos:fr=demo", {"language": several_languages}, {}, "ja.txt", "ja"),
        ("ner", {"language": []}, {"lang": "de"}, "de.txt", "de"),
        ("pos", {"language": []}, {"lang": None}, "pos:French-GSD", "fr"),
    ):
        kind = asked.partition(":")[0]
        told = refused("--task", asked, settings=settings, reading=reading, source=source)
        assert f"the source of the run is in '{code}', but the default set of {kind}, " in told
        assert f"name a set, as {kind}:SET" in told
        told = refused("--task", f"{kind}:none", settings=settings, reading=reading, source=source)
        assert "default set" not in told
    assert "default set" not in refused("--task", "pos", settings={}, reading={"lang": "en"}, source="en.txt")
