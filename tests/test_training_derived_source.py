"""Another text for the derived language (`--derived-source`): whose rows a step has, and what stays held out."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import derivlang
from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.collect import scores
from derivlang.pipeline import Pipeline
from derivlang.sources.find import request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.studies.file import read
from derivlang.studies.plan import data_of, plan
from derivlang.studies.settings import Place
from derivlang.training import run_folder
from derivlang.training.batch import SubwordRows
from derivlang.training.doses import steps_within
from derivlang.training.encode import heldout_overlap
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.settings import RunPaths
from derivlang.training.streams.packed import Packed
from tests.checkpoints import checkpoint
from tests.commands import run
from tests.training import batches, loader, log, material, pair, settings, trained, warnings_to, weights
from tests.training import data_folder as shared_data

pytestmark = pytest.mark.filterwarnings("ignore:.*the words look divided already")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the shared data of the demo, to which the encoded text of the derived language is added."""
    pair()
    return Path(shutil.copytree(shared_data(), tmp_path / "data"))


def text(folder: Path, n: int = 70, name: str = "other.txt") -> Path:
    """A text of n sentences that the demo does not have, of its words."""
    words = sorted({word for batch in batches("identity") for word in batch.strings().to_pylist() if word.isalpha()})
    draws = np.random.default_rng(1).integers(len(words), size=(n, 7))
    (folder / name).write_text("".join(" ".join(words[i] for i in row) + " .\n" for row in draws.tolist()), "utf-8")
    return folder / name


def prepared(data: Path, other: Path | str, spec: str = "trans,inv", **changes: Any) -> Prepared:
    wanted = settings("mlm", spec, derived_source=str(other), **changes)
    return prepare_data(wanted, SourceRequest("demo"), RunPaths(run=data.parent / "run", data=data))


def sentences(rows: SubwordRows) -> list[list[int]]:
    """The sub-words of each sentence of rows."""
    return [
        ids[numbers == k].tolist()
        for ids, numbers in zip(rows.clean_ids, rows.sentence_ids, strict=True)
        for k in range(int(numbers.max()) + 1)
    ]


# rows


def test_the_same_text_gives_the_same_weights(data: Path, tmp_path: Path) -> None:
    """Only the recorded setting differs."""
    told: list[str] = []
    plain = trained(tmp_path / "plain", data=data)
    other = trained(tmp_path / "other", data=data, derived_source="demo", warn=told.append)
    assert any("the texts are parallel in part" in line for line in told)
    one, two = weights(tmp_path / "plain" / "model"), weights(tmp_path / "other" / "model")
    assert all(one[name].equal(two[name]) for name in one)
    assert plain["fingerprint"] != other["fingerprint"]
    before, after = (run_folder.read(tmp_path / name) for name in ("plain", "other"))
    assert not {"derived_data", "heldout_overlap"} & before.keys()
    assert before["settings"]["derived_source"] == ""
    assert (after["derived_data"], after["heldout_overlap"]) == (before["data"], 0)


@pytest.mark.parametrize("spec", ["trans", "trans,inv", "trans:overlap=25,inv"])
def test_rows_of_a_language_are_of_its_own_text(spec: str, tmp_path: Path) -> None:
    """The derived rows, undone, are the sentences of the other text, and the source rows those of the source."""
    found = prepared(tmp_path / "data", text(tmp_path), spec)
    assert found.languages.are_mapped
    rows = Packed().open(replace(found, settings=settings("mlm", spec, derived_source="x")))
    order = np.random.default_rng(1).permutation(rows.n)
    every = rows.rows(order, Keys.of(1, 0, order))
    language = every.language[:, 0]
    encoder = found.languages.tokenizer.encoder
    undo = dict(zip(found.languages.own[DERIVED].tolist(), found.languages.own[SOURCE].tolist(), strict=True))
    own = [SourceRequest("demo"), SourceRequest(str(tmp_path / "other.txt"))]
    for side, request in enumerate(own):
        some = SubwordRows.joined([every], np.flatnonzero(language == side))
        wanted: Counter[tuple[int, ...]] = Counter()
        for batch in Source.open(Pipeline.parse("identity"), request, trees=False).batches("train"):
            encoded = encoder.batch(batch)
            ends = encoded.offsets[batch.sentences].tolist()
            wanted.update(tuple(sorted(encoded.ids[i:j].tolist())) for i, j in pairwise(ends) if j > i)
        seen = Counter(tuple(sorted(undo.get(i, i) if side else i for i in one)) for one in sentences(some))
        whole = {one: n for one, n in seen.items() if one in wanted}
        assert whole == {one: n for one, n in wanted.items() if len(one) <= 30}  # longer sentences are cut
        if side == DERIVED:
            assert whole == seen


def test_an_epoch_has_every_row_of_both_texts_once(data: Path, tmp_path: Path) -> None:
    found = prepared(data, text(tmp_path))
    inputs = replace(found, settings=settings(derived_source="x"))
    source, derived = found.data.n_instances(SOURCE), found.texts[1].n_instances(DERIVED)
    assert source != derived
    rows = Packed().open(inputs)
    assert rows.n == source + derived
    every = rows.rows(np.arange(rows.n), Keys.of(1, 0, np.arange(rows.n)))
    assert every.language[:, 0].tolist() == [SOURCE] * source + [DERIVED] * derived
    assert rows.mean_subwords == pytest.approx(every.lengths.mean())


def test_epochs_tokens_budgets_and_doses_count_both_texts(data: Path, tmp_path: Path) -> None:
    found = prepared(data, text(tmp_path))
    n = found.data.n_instances(SOURCE) + found.texts[1].n_instances(DERIVED)
    filled = found.data.filled(SOURCE) + found.texts[1].filled(DERIVED)
    options: dict[str, Any] = {"data": data, "derived_source": str(tmp_path / "other.txt"), "batch_size": 4}
    made = trained(tmp_path / "epoch", epochs=1.0, **options)
    assert made["steps"] == round(n / 4)
    assert made["doses"]["passes"] == pytest.approx(1, abs=4 / n)
    assert made["tokens"] == pytest.approx(filled, rel=8 / n)
    tokens = trained(tmp_path / "tokens", tokens=filled, **options)
    assert tokens["steps"] == made["steps"]
    within = trained(tmp_path / "budget", "align-mlm", budget="tokens", steps=10, **options)
    assert within["steps"] == 10  # it reads the rows of mlm
    log_entries = log(tmp_path / "epoch")
    assert sum(entry["tokens_per_step"]["rows"] for entry in log_entries) > 0


def test_a_budget_follows_from_the_rows_of_both_texts(data: Path, tmp_path: Path) -> None:
    found = prepared(data, text(tmp_path))
    inputs = replace(found, settings=settings(derived_source="x"))
    made, own = loader("mlm"), Packed().open(inputs)
    assert own.mean_subwords != made.streams[0].source.mean_subwords
    wanted = round(1000 * own.mean_subwords / made.streams[0].source.mean_subwords)
    assert steps_within("tokens", 1000, made, inputs) == wanted
    assert steps_within("tokens", 1000, made, material()) == 1000


# what is refused


@pytest.mark.parametrize(
    ("objective", "more", "message"),
    [
        ("xlm", {}, "xlm reads sentences of the corpus in both languages"),
        ("tlm", {}, "tlm reads sentences of the corpus in both languages"),
        ("tlm", {"pairs": Path("pairs.parquet")}, "tlm reads no text of the corpus"),
    ],
)
def test_objectives_that_would_share_text(objective: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as error:
        trained(tmp_path / "run", objective, derived_source="demo", **more)
    assert error.value.where == "--derived-source"


@pytest.mark.parametrize("option", ["--halves", "--languages=source", "--languages=both"])
def test_other_options_about_the_text_of_a_language(option: str, tmp_path: Path) -> None:
    line = ("pretrain", "--source", "demo", "--t", "trans", "--derived-source", "demo", "-o", tmp_path / "run")
    told = run(*line, option, code=2).err
    assert f"--derived-source: cannot be given with {option.partition('=')[0]} [two-options]" in told
    with pytest.raises(UsageError, match="derived_source: cannot be given with halves"):
        derivlang.pretrain("demo", "trans", tmp_path / "run", derived_source="demo", halves=True)
    without = ("pretrain", "--objective", "tlm", "--pairs", "x", "--derived-source", "demo", "-o", tmp_path / "run")
    assert "--derived-source: needs --source, too [missing-option]" in run(*without, code=2).err


def test_what_cannot_be_the_text_of_the_derived_language(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        prepared(data, tmp_path / "none.txt")
    with pytest.raises(UsageError, match="there is no source 'dmo'"):
        prepared(data, "dmo")
    derivlang.make("demo", "inv", tmp_path / "set")
    with pytest.raises(UsageError, match="is derived already"):
        prepared(data, tmp_path / "set")


def test_options_about_columns_are_for_a_text_that_has_some(tmp_path: Path) -> None:
    plain, table = text(tmp_path), tmp_path / "a.csv"
    table.write_text("review,stars\nIt was good .,5\n", "utf-8")
    asked = SourceRequest(str(table), text_column=("review",), encoding="latin-1", words="space")
    assert request_of_text(asked, str(plain)) == SourceRequest(str(plain), encoding="latin-1", words="space")
    assert request_of_text(asked, str(table)) == asked


# held-out text


def corpus(folder: Path, train: list[str], heldout: list[str]) -> SourceRequest:
    folder.mkdir()
    for name, lines in (("train.txt", train), ("valid.txt", heldout)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return SourceRequest(str(folder), words="space")


def keys_of(request: SourceRequest, split: str = "train") -> Any:
    read = Source.open(Pipeline.parse("identity"), request, trees=False).batches(split)
    return np.concatenate([batch.keys for batch in read])


@pytest.mark.parametrize("shared", [0, 1, 2, 3, 200])
def test_sentences_of_held_out_text_are_counted(shared: int, tmp_path: Path) -> None:
    """Up to 2 of 200 are a warning, more are refused. Sentences of the source's training text, and of two words, do not
    count, and one that recurs counts once."""
    heldout = [f"w{i} is held out ." for i in range(200)]
    recurring = [f"w{i} was trained on ." for i in range(50)]
    source = corpus(tmp_path / "a", recurring, [*heldout, *heldout[:9], "Oh ."])
    source = corpus(tmp_path / "b", recurring, [*heldout, *heldout[:9], "Oh .", *recurring]) if shared == 1 else source
    other = corpus(tmp_path / "other", [*heldout[:shared], *heldout[:shared], "Oh .", "w0 is held", *recurring], ["x"])
    warnings: list[str] = []
    every = 250 if shared == 1 else 200
    held = f"the held-out text of {Path(source.source).name} (validation)"
    told = f"{held} shares {shared} of its {every} sentences with other"
    with warnings_to(warnings.append):
        read = source, other, keys_of(source), keys_of(other)
        if shared > 2:
            with pytest.raises(DataError) as error:
                heldout_overlap(*read)
            assert error.value.what.startswith(told)
            assert "e.g. 'w0 is held out .'" in error.value.what
            return
        assert heldout_overlap(*read) == shared
    parallel, *others = warnings
    assert parallel.startswith("other has 50 of the 50 sentences that are trained on")
    assert [warning.startswith(told) for warning in others] == [True] * bool(shared)


def test_a_source_without_held_out_text_has_no_overlap(tmp_path: Path) -> None:
    one = SourceRequest(str(text(tmp_path)), words="space")
    assert heldout_overlap(one, one, np.zeros(0, np.uint64), keys_of(one)) == 0


def test_text_with_held_out_sentences_is_refused_each_time(data: Path, tmp_path: Path) -> None:
    other = text(tmp_path)
    lines = [
        " ".join(batch.strings()[i:j].to_pylist())
        for batch in batches("identity", "validation")
        for i, j in pairwise(batch.sentences.tolist())
    ]
    with other.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines[1:4])
    for _ in range(2):  # also when the data is there
        with pytest.raises(DataError, match=r"of demo \(validation\) shares 3 of its \d+ sentences with other"):
            prepared(data, other)


def test_text_that_the_tokenizer_does_not_know(data: Path, tmp_path: Path) -> None:
    (tmp_path / "ru.txt").write_text("Кот спит на столе и ничего не ждёт .\n" * 9, "utf-8")
    warnings: list[str] = []
    wanted = settings(derived_source=str(tmp_path / "ru.txt"))
    with warnings_to(warnings.append):
        prepare_data(wanted, SourceRequest("demo"), RunPaths(run=tmp_path / "run", data=data))
    assert any("of the sub-words of ru.txt are unknown to the tokenizer of" in told for told in warnings)


# runs


@pytest.mark.parametrize("objective", ["mlm", "align-mlm", "dict-mlm"])
def test_a_stopped_run_goes_on_with_the_same_weights(objective: str, data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": data, "derived_source": str(text(tmp_path)), "save_every": 3}
    trained(tmp_path / "whole", objective, **options)
    trained(tmp_path / "part", objective, **options)
    shutil.rmtree(tmp_path / "part" / "model")
    shutil.rmtree(tmp_path / "part" / "checkpoints" / "step-00000006")
    record = json.loads((tmp_path / "part" / "run.json").read_text("utf-8"))
    run_folder.write(tmp_path / "part", {**record, "status": "stopped"})
    trained(tmp_path / "part", objective, resume=True, **options)
    one, two = (weights(tmp_path / name / "model") for name in ("whole", "part"))
    assert all(one[name].equal(two[name]) for name in one)


def test_a_run_of_the_command(tmp_path: Path) -> None:
    other = text(tmp_path)
    given = ["pretrain", *"--source demo --t trans,inv --vocab-size 300 --steps 4 --data".split(), tmp_path / "data"]
    made = (*given, "--derived-source", other, "--words", "space")
    told = run(*made, "--data-only", "--json").json
    assert told["derived_rows"] > 0
    assert told["derived_subwords"] != told["subwords"]
    assert f"of {other}" in run(*made, "--data-only").out
    run(*made, "-o", tmp_path / "run")
    record = run_folder.read(tmp_path / "run")
    assert record["settings"]["derived_source"] == str(other)
    run("verify", tmp_path / "run")
    run("evaluate", tmp_path / "run", "--measure", "alignment,perplexity", "--sentences", 4)
    assert set(scores(tmp_path / "run")["set.derived_source"]) == {str(other)}
    run(*made, "-o", tmp_path / "run", "--resume")
    told = run(*given, "-o", tmp_path / "run", "--resume", code=1).err
    assert f'is another run: derived_source is {other}, not ""' in told
    # with the same data
    run(*made, "-o", tmp_path / "same")
    assert run_folder.read(tmp_path / "same")["weights"] == record["weights"]
    assert run_folder.read(tmp_path / "same")["heldout_overlap"] == 0
    # a text that has changed
    with other.open("a", encoding="utf-8") as file:
        file.write("one more sentence .\n")
    told = run(*made, "-o", tmp_path / "run", "--resume", code=1).err
    assert f"the encoded text of its derived language is another one: {other} may have changed" in told


def test_pairs_of_a_file_beside_both_texts(tmp_path: Path) -> None:
    other = text(tmp_path)
    derivlang.make("demo", "trans,inv", tmp_path / "set", splits="test")
    run("pair", tmp_path / "set", "--rate", 50, "-o", tmp_path / "pairs.parquet")
    given = ["pretrain", *"--source demo --t trans,inv --vocab-size 300 --steps 4 --objective xlm".split()]
    given = [*given, "--derived-source", other, "--pairs", tmp_path / "pairs.parquet"]
    run(*given, "-o", tmp_path / "run")
    facts = run_folder.read(tmp_path / "run")["streams"]["rows"]
    assert facts["rows"] > facts["rows_of_pairs"] > 0


def test_a_run_from_a_checkpoint(tmp_path: Path) -> None:
    other = text(tmp_path)
    sizes = ("--steps", "4", "--batch-size", "4", "--seq-len", "32", "--words", "space")
    line = ("pretrain", "--source", "demo", "--t", "inv", "--init", checkpoint("bert"), *sizes)
    run(*line, "--derived-source", other, "-o", tmp_path / "run")
    run(*line, "-o", tmp_path / "plain")
    record, plain = (run_folder.read(tmp_path / name) for name in ("run", "plain"))
    assert record["data"] == plain["data"]
    assert record["weights"] != plain["weights"]
    run("evaluate", tmp_path / "run", "--measure", "links", "--pairs", 4)


@pytest.mark.parametrize("kind", [Path, str])
def test_the_python_function(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    other = text(tmp_path)
    options: dict[str, Any] = {"vocab_size": 300, "steps": 2, "threads": 1}
    made = derivlang.pretrain("demo", "trans,inv", tmp_path / "run", derived_source=kind(other), **options)
    assert made.record["settings"]["derived_source"] == str(other)


def test_a_study_of_texts(tmp_path: Path) -> None:
    """A text beside the study is found; cells of other texts have other data."""
    other = text(tmp_path)
    (tmp_path / "grid.toml").write_text(
        '[study]\nsource = "demo"\nsteps = 2\n[cell]\nt = "trans,inv"\nvocab-size = 300\nwords = "space"\n'
        '[factors]\nderived-source = ["", "other.txt", "demo"]\n',
        "utf-8",
    )
    study = read(str(tmp_path / "grid.toml"))
    assert [cell.options["derived-source"] for cell in study.cells] == ["", str(other), "demo"]
    assert len({data_of(cell) for cell in study.cells}) == 3
    steps = plan(study, Place(tmp_path / "out"))
    assert f"--derived-source {other}" in next(step for step in steps if "other" in step.name).command
    wrong = (tmp_path / "grid.toml").read_text("utf-8").replace("[factors]", "halves = true\n[factors]")
    (tmp_path / "wrong.toml").write_text(wrong, "utf-8")
    with pytest.raises(UsageError, match="cannot be given with"):
        read(str(tmp_path / "wrong.toml"))
