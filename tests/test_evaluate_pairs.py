"""Minimal pairs: scores held to slow loops, what both languages share, and runs as folders for `transformers`."""

from __future__ import annotations

import json
import runpy
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers

from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, UsageError
from derivlang.engine.batches import Source
from derivlang.evaluation.export import export_model, library_file
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.blimp import _Pairs, log_likelihoods
from derivlang.evaluation.tasks.registry import task_of
from derivlang.evaluation.trained import PretrainedRun
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train
from derivlang.lexical.twin import make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE, load
from tests.commands import Ran
from tests.commands import run as cli
from tests.evaluations import evaluate
from tests.helpers import ROOT
from tests.tiny_runs import DEMO, MARKS, languages, model_of, save_model, write_run

CPU = torch.device("cpu")
KINDS = ("gpt2", "llama", "modernbert", "roberta")
Row = dict[str, Any]


def row(good: str, bad: str, term: str = "agreement", uid: str = "number") -> Row:
    return {"sentence_good": good, "sentence_bad": bad, "linguistics_term": term, "UID": uid, "pairID": "1"}


PAIRS = [
    row("These cats sleep in the house.", "This cats sleep in the house."),
    row("Who should Ann hug after shocking Bo?", "Who should Ann hug Bo after shocking?", "island", "adjunct"),
    row("She didn't see the river.", "She saw any river.", "npi", "any"),
    row("The train left (at night).", "The train leave (at night).", uid="tense"),
    row("He said it twice.", "He say it twice.", uid="tense"),
    row("It rains. We stay at home!", "It rain. We stay at home!"),
]
LONG = row("The cat sleeps.", f"The cat {'very ' * 80}sleeps.")


def write(path: Path, rows: Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), "utf-8")
    return path


def scored(run: Path, pairs: Path, **options: Any) -> tuple[Row, dict[tuple[str, str, str], Row]]:
    """The settings of the task, and its rows by metric, regime and group; `wins` are its counts in pairs."""
    task = task_of(f"blimp:{pairs}")
    found = evaluate(run, EvaluateOptions(tasks=(task,), **{"measures": (), "device": "cpu", **options}))
    rows = {(row["metric"], row["regime"], row["group"]): row for row in found.scores.to_pylist()}
    for row in rows.values():
        counts = np.reshape(row["counts"], (-1, 2))
        row["wins"] = (counts[:, 0] / counts[:, 1]).tolist()
        assert row["value"] == pytest.approx(100 * np.mean(row["wins"]))
    return found.record["tasks"][task.label]["settings"], rows


def evaluated(run: Path, pairs: Path, *words: object, code: int | None = 0) -> Ran:
    """`derivlang evaluate` of a run on pairs, and nothing else."""
    task = ("--task", f"blimp:{pairs}", "--measure", "none", "--device", "cpu")
    return cli("evaluate", run, *task, *words, code=code)


@cache
def encoder(kind: str, spec: str) -> Encoder:
    return Encoder(model_of(kind, languages(spec).size).eval(), MARKS)  # without dropout


# Scores


def slowly(encoder: Encoder, ids: list[int]) -> float:
    """The (pseudo-)log-likelihood of a sentence by the library's own forward pass, a sub-word at a time, in float64."""
    model, total, mask = encoder.module, 0.0, 4
    framed = [0, *ids, 2]
    for t in range(1, len(framed) - 1):
        given = framed[:t] if encoder.causal else [*framed[:t], mask, *framed[t + 1 :]]
        with torch.inference_mode():
            logits = model(torch.tensor([given])).logits[0, -1 if encoder.causal else t]
        total += float(logits.double().log_softmax(-1)[framed[t]])
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_log_likelihoods_by_a_slow_loop(kind: str) -> None:
    model = encoder(kind, "trans,inv")
    lengths = [1, 7, 3, 12, 3, 5]
    draw = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = draw.integers(12, languages("trans,inv").size, offsets[-1]).astype(np.int32)
    ids[offsets[4] : offsets[5]] = ids[offsets[2] : offsets[3]]  # the same sentence again
    found = log_likelihoods(model, np.split(ids, offsets[1:-1]), DERIVED)
    assert found == pytest.approx([slowly(model, ids[a:b].tolist()) for a, b in pairwise(offsets)], rel=1e-4)
    assert found[2] == found[4]


def derived_rows(spec: str, pairs: Path) -> dict[str, list[list[list[int]]]]:
    """The sub-words of good and bad sentences of each pair, from the text that `make` writes, by side."""
    found, out = languages(spec), pairs.parent / "set"
    cli("make", "--t", spec, pairs, "-o", out)
    cli("export", out, "--format", "jsonl", "-o", out.with_suffix(".jsonl"))
    import pyarrow as pa

    sides: dict[str, list[list[list[int]]]] = {"source": [], "derived": []}
    for line in out.with_suffix(".jsonl").read_text("utf-8").splitlines():
        made = json.loads(line)
        for side, part in (("source", "source"), ("derived", "tokens")):
            texts = [pa.array(made[f"sentence_{which}_{part}"]) for which in ("good", "bad")]
            if side == "source":
                ids = [found.tokenizer.encoder.types(words).ids for words in texts]
            else:
                numbers = [np.arange(len(words), dtype=np.int32) for words in texts]
                ids = [
                    found.twin.encode_words(found.tokenizer.encoder, w, n).ids
                    for w, n in zip(texts, numbers, strict=True)
                ]
            sides[side].append([one.tolist() for one in ids])
    return sides


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("gpt2", "trans,inv"),
        ("llama", "trans,perm"),
        ("roberta", "trans,inv"),
        ("modernbert", "trans:overlap=60,syn:fr"),  # the sentences are parsed, as those of any source
    ],
)
def test_an_entry_by_the_text_that_make_writes(kind: str, spec: str, tmp_path: Path) -> None:
    """Sentences of the derived set, tokenised by themselves, and scored one sub-word at a time."""
    pairs = write(tmp_path / "pairs.jsonl", PAIRS)
    settings, found = scored(write_run(tmp_path / "run", spec, kind=kind), pairs)
    model = encoder(kind, spec)
    groups = {"": PAIRS} | {
        f"{by}={name}": [one for one in PAIRS if one[by] == name]
        for by in ("linguistics_term", "UID") for name in dict.fromkeys(one[by] for one in PAIRS)
    }  # fmt: skip
    for side, rows in derived_rows(spec, pairs).items():
        right = [slowly(model, good) > slowly(model, bad) for good, bad in rows]
        assert sum(right) > 0  # or the test shows little
        for group, members in groups.items():
            assert found["accuracy", side, group]["wins"] == [
                won for won, one in zip(right, PAIRS, strict=True) if one in members
            ]
    assert settings["score"] == ("log-likelihood" if model.causal else "pseudo-log-likelihood")
    assert {found["accuracy", "chance", group]["value"] for group in groups} == {50.0}
    assert {group for _, _, group in found} == set(groups)


def test_names_of_groups_may_be_numbers(tmp_path: Path) -> None:
    numbers = [{**one, "UID": at % 2} for at, one in enumerate(PAIRS)]
    run = write_run(tmp_path / "run", kind="gpt2")
    named = {"UID": None, "linguistics_term": ""}  # in no group
    _, found = scored(run, write(tmp_path / "pairs.jsonl", [*numbers, {**PAIRS[0], **named}]))
    sizes = {group: len(row["wins"]) for (metric, _, group), row in found.items() if metric == "accuracy"}
    assert sizes["UID=0"] == (len(PAIRS) + 1) // 2
    assert sizes["UID=1"] == len(PAIRS) // 2
    assert sizes[""] == len(PAIRS) + 1
    terms = dict.fromkeys(f"linguistics_term={one['linguistics_term']}" for one in PAIRS)
    assert list(sizes) == ["", *terms, "UID=0", "UID=1"]


def test_long_pairs_are_counted_and_ties_count_half(tmp_path: Path) -> None:
    tie = row("The cat saw ☃ .", "The cat saw ☂ .")  # the tokenizer has neither
    run = write_run(tmp_path / "run", kind="gpt2")
    pairs = write(tmp_path / "pairs.jsonl", [LONG, tie, *PAIRS])
    settings, found = scored(run, pairs)
    assert (settings["items"], settings["left_out"]) == (1 + len(PAIRS), 1)
    for side in ("source", "derived"):
        assert found["accuracy", side, ""]["wins"][0] == 0.5
        assert found["ties", side, ""]["wins"][0] == 1
    told = evaluated(run, pairs).out
    assert told.startswith(f"blimp:{short_name(str(pairs))}: source ")
    assert "items 7, left out 1\n" in told
    assert str(tmp_path) not in (run / "evaluation.json").read_text("utf-8")


def test_a_folder_is_all_of_its_files(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", kind="gpt2")
    _, one = scored(run, write(tmp_path / "pairs.jsonl", PAIRS))
    for number, name in enumerate(("agreement.jsonl", "test_of_islands.jsonl", "more/dev.jsonl")):
        write(tmp_path / "sets" / name, PAIRS[number::3])
    _, several = scored(run, tmp_path / "sets")
    assert {place: sorted(row["wins"]) for place, row in several.items()} == {
        place: sorted(row["wins"]) for place, row in one.items()
    }


# What a user may get wrong


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", kind="gpt2")


FINE = '{"sentence_good": "A b.", "sentence_bad": "A c."}\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "pairs.jsonl: there is no such file or folder"),
        ("", "pairs.jsonl: the file holds no row"),
        (f"{FINE}A d.\n", "pairs.jsonl:2: column 1: this is not valid JSON"),
        (f"{FINE}[1]\n", "pairs.jsonl:2: the line holds [1], which is not an object"),
        (FINE + '{"sentence_good": "A b."}\n', "pairs.jsonl:2: the row lacks the key 'sentence_bad'"),
        ('{"sentence": "A b."}\n', "pairs.jsonl: there is no column 'sentence_good'; there are: sentence"),
        ('{"sentence_good": "A.", "sentence_bad": 3}\n', "the column 'sentence_bad' holds int64, not text"),
        (FINE + '\n{"sentence_good": "A.", "sentence_bad": "A. "}', "jsonl:3: sentence_good and sentence_bad are"),
        (FINE + '{"sentence_good": " ", "sentence_bad": "A."}', "pairs.jsonl:2: sentence_good has no text"),
        (FINE + '{"sentence_good": "A.", "sentence_bad": null}', "pairs.jsonl:2: sentence_bad has no text"),
        (json.dumps(LONG), "none of the 1 pairs fits into rows of 64 sub-words"),
    ],
)
def test_a_file_that_cannot_be_scored(text: str | None, told: str, causal: Path, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "pairs.jsonl").write_text(text, "utf-8")
    found = evaluated(causal, tmp_path / "pairs.jsonl", code=None)
    assert found.code in (1, 2)
    assert told in found.err
    assert found.err.count("\n") <= 3
    assert not (causal / "evaluation.json").exists()


def test_a_set_of_another_kind(causal: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("A line.\n", "utf-8")
    (tmp_path / "pairs.tsv").write_text("The dogs bark .\tThe dogs barks .\n", "utf-8")
    cli("make", "--t", "inv", "demo", "-o", tmp_path / "set")
    for name in ("pairs.txt", "pairs.tsv", "set"):
        told = evaluated(causal, tmp_path / name, code=1).err
        assert f"{name}: has no columns sentence_good and sentence_bad" in told
        assert told.count("\n") <= 2


# CoNLL-U, and the built-in set

DEMO_PAIRS = DEMO / "demo-pairs.conllu"


def sentences() -> list[tuple[dict[str, str], list[str]]]:
    """The comments and the words of each sentence of the built-in set."""
    found = []
    for block in DEMO_PAIRS.read_text("utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        comments = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("# "))
        found.append((comments, [line.split("\t")[1] for line in lines if not line.startswith("# ")]))
    return found


def test_the_built_in_pairs_are_what_their_script_writes() -> None:
    told = runpy.run_path(str(ROOT / "docs" / "minimal_pairs.py"))
    assert told["content"]() == DEMO_PAIRS.read_text("utf-8")
    found = sentences()
    good, bad = ({" ".join(words) for _, words in found[side::2]} for side in (0, 1))
    assert len(good | bad) == len(good) + len(bad)  # what is good in one pair is bad in none
    pairs = [(a[1], b[1]) for a, b in zip(found[::2], found[1::2], strict=True)]
    assert len({str(pair) for pair in pairs}) == len(pairs) == 600
    assert all(len(a) == len(b) and a != b for a, b in pairs)
    assert set(Counter(comments["UID"] for comments, _ in found[::2]).values()) == {40}


def test_conllu_has_the_scores_of_json_lines(tmp_path: Path) -> None:
    run, found = write_run(tmp_path / "run", kind="gpt2"), sentences()
    names = ("UID", "linguistics_term", "field")
    rows = [
        {"sentence_good": a[0]["text"], "sentence_bad": b[0]["text"], **{name: a[0][name] for name in names}}
        for a, b in zip(found[::2], found[1::2], strict=True)
    ]
    _, ours = scored(run, Path("demo"))
    _, theirs = scored(run, write(tmp_path / "pairs.jsonl", rows))
    assert {group for *_, group in ours} >= {
        "UID=agreement_simple",
        "linguistics_term=island_effects",
        "field=syntax",
    }
    assert {place: row["wins"] for place, row in ours.items()} == {place: row["wins"] for place, row in theirs.items()}


def test_pairs_may_lie_in_two_batches(causal: Path, tmp_path: Path) -> None:
    run, blocks = PretrainedRun.load(causal), DEMO_PAIRS.read_text("utf-8").split("\n\n")[:20]

    def batch(begin: int, end: int) -> Batch:
        path = tmp_path / f"{begin}-{end}.conllu"
        path.write_text("".join(f"{block}\n\n" for block in blocks[begin:end]), "utf-8")
        (found,) = Source.open(run.languages.pipeline, SourceRequest(str(path))).batches("train")
        return found

    whole, two = (_Pairs(some, run.languages, 64) for some in ([batch(0, 20)], [batch(0, 7), batch(7, 20)]))
    assert whole.names == two.names
    assert len(whole.fits) == 10
    assert np.array_equal(whole.keys, two.keys)
    for ours, theirs in zip(whole.sides, two.sides, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_languages_with_forms_read_the_built_in_pairs(tmp_path: Path) -> None:
    cli("make", "--t", "hop:0", "demo:pairs", "-o", tmp_path / "set")
    first = pq.read_table(tmp_path / "set" / "data")["tokens"].to_pylist()[:2]
    assert [" ".join(words) for words in first] == ["The teacher work 🅂 here .", "The teacher work 🄿 here ."]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("# acceptable = no\n", "", "has no comment `# acceptable`, but `# acceptable = no` is due"),
        ("# acceptable = no\n", "# acceptable = yes\n", "has `# acceptable = yes`, but `# acceptable = no` is due"),
        ("\tsleep\t", "\tsleeps\t", "the two sentences of the pair are the same"),
        ("# acceptable = no\n1\tcats\t_\t_\t_\t_\t0\troot\t_\t_\n2\tsleep\t_\t_\t_\t_\t1\tdep\t_\t_\n\n", "",
         "the last pair has no sentence with `# acceptable = no`"),
    ],
)  # fmt: skip
def test_conllu_that_is_not_in_pairs(old: str, new: str, told: str, causal: Path, tmp_path: Path) -> None:
    text = "".join(
        f"# acceptable = {one}\n1\tcats\t_\t_\t_\t_\t0\troot\t_\t_\n2\t{form}\t_\t_\t_\t_\t1\tdep\t_\t_\n\n"
        for one, form in (("yes", "sleeps"), ("no", "sleep"))
    )
    assert text.count(old) == 1
    path = tmp_path / "pairs.conllu"
    path.write_text(text.replace(old, new), "utf-8")
    message = evaluated(causal, path, code=1).err
    assert told in message
    assert f"{path}:" in message


def test_a_model_without_a_head(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", kind="roberta")
    save_model(run, model_of("roberta", languages("trans,inv").size).base_model)
    with pytest.raises(UsageError, match="no language-model head, which blimp needs") as error:
        scored(run, write(tmp_path / "pairs.jsonl", PAIRS))
    assert error.value.id == "no-head"
    assert not (run / "evaluation.json").exists()


def test_beside_tasks_that_are_fine_tuned(causal: Path, tmp_path: Path) -> None:
    """A causal model is refused before anything is computed; numbers of fine-tuning count the other tasks only."""
    pairs = write(tmp_path / "pairs.jsonl", PAIRS)
    assert "qa needs an encoder" in cli("evaluate", causal, "--task", f"blimp:{pairs},qa", code=2).err
    assert not (causal / "evaluation.json").exists()
    assert "1 numbers" not in evaluated(causal, pairs, "--epochs", "1,2", code=None).err


# Folders for transformers


SPECS = ("trans", "trans,inv", "trans:script=private,inv", "trans:overlap=30:script=private", "trans:overlap=100")


@pytest.mark.parametrize("side", [SOURCE, DERIVED])
@pytest.mark.parametrize("spec", SPECS)
def test_an_exported_tokenizer_gives_the_ids_of_the_model(spec: str, side: int, tmp_path: Path) -> None:
    """On text that `make` derives, and so does an exported model's log-likelihood."""
    run = PretrainedRun.load(write_run(tmp_path / "run", spec, kind="gpt2"))
    result = export_model(run, side, tmp_path / "out")
    assert result["language"] == ("source", "derived")[side]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (0, 2, 1)
    (batch,) = Source.open(run.languages.pipeline, SourceRequest("demo")).batches("validation")
    both = run.languages.parallel(batch)
    ids = both.sides[side].ids
    cli("make", "--t", spec, "demo", "-o", tmp_path / "set")
    which = ("--source",) if side == SOURCE else ()
    cli("export", tmp_path / "set", "--split", "validation", "--format", "text", *which, "-o", tmp_path / "text")
    texts = (tmp_path / "text").read_text("utf-8").splitlines()
    offsets = both.offsets[batch.unit_words]
    assert len(texts) == len(offsets) - 1
    for text, (begin, end) in zip(texts, pairwise(offsets.tolist()), strict=True):
        assert tokenizer(text)["input_ids"] == ids[begin:end].tolist()
    own = ids[: offsets[1]].tolist()
    with torch.inference_mode():
        logs = model(torch.tensor([[0, *own]])).logits[0].double().log_softmax(-1)
    ours = log_likelihoods(run.language_model(CPU), [np.array(own, np.int32)], side)
    assert float(ours[0]) == pytest.approx(sum(float(logs[i, one]) for i, one in enumerate(own)), rel=1e-5)


def test_exports_that_are_refused(causal: Path, tmp_path: Path) -> None:
    words = ("export", causal, "--format", "transformers")
    assert "cannot be written to standard output" in cli(*words, code=2).err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "is not empty" in cli(*words, "-o", tmp_path / "full", code=1).err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
    assert "does not apply to the model of a run" in cli(*words, "-o", tmp_path / "out", "--split", "test", code=2).err
    assert "is not a run" in cli("export", tmp_path, "--format", "transformers", "-o", tmp_path / "out", code=1).err
    assert not (tmp_path / "out").exists()


def test_an_overlap_of_words_needs_scripts_that_are_apart(tmp_path: Path) -> None:
    """The source has letters of the derived language's script, so that no file can tell the languages apart."""
    (tmp_path / "train.txt").write_text("the ჰე he ტე\n" * 9, "utf-8")
    train(
        SourceRequest(str(tmp_path / "train.txt")),
        tmp_path / "tokenizer",
        TokenizerOptions(vocab_size=22, min_frequency=1),
    )
    for name, spec in (("clash", "trans:overlap=50:script=georgian"), ("whole", "trans:script=georgian")):
        shutil.copytree(tmp_path / "tokenizer", tmp_path / name / "tokenizer")
        make_twin(tmp_path / "tokenizer", spec, tmp_path / name / "twin")
        found = load(tmp_path / name, Pipeline.parse(spec))
        if name == "clash":
            with pytest.raises(DataError, match="cannot be exact") as error:
                library_file(found, DERIVED)
            assert error.value.id == "joint-clash"
        else:
            assert set(library_file(found, DERIVED)["model"]["vocab"].values()) == set(
                found.twin.joint.table().tolist()
            )


def test_an_exported_folder_by_the_command_line(causal: Path, tmp_path: Path) -> None:
    found = cli("export", causal, "--format", "transformers", "-o", tmp_path / "out", "--json").json
    assert found["language"] == "derived"
    assert (
        "for the source language"
        in cli("export", causal, "--format", "transformers", "--source", "-o", tmp_path / "s").out
    )
    assert (tmp_path / "s" / "tokenizer.json").read_bytes() == (causal / "tokenizer" / "tokenizer.json").read_bytes()
    shutil.rmtree(tmp_path / "out")
    told = write_run(tmp_path / "ids", kind="roberta", model={"name": "r", "language_ids": True})
    assert "token_type_ids of 1" in cli("export", told, "--format", "transformers", "-o", tmp_path / "out").out
