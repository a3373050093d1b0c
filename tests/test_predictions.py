"""Files of predictions: other programs compute the scores of the table from them; and when they are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from derivlang.core.errors import DataError
from derivlang.evaluation import cell as cells
from derivlang.evaluation.results import damages, entries_of
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.labelling import PartsOfSpeech
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.pipeline import Pipeline
from derivlang.training.languages import Languages, of_texts
from tests import scorers, squad
from tests.checkpoints import checkpoint
from tests.evaluations import evaluate, fresh_run, options
from tests.tiny_runs import batch, data_folder, languages

EWT = "ud/UD_English-EWT/en_ewt-ud-test.conllu"
Table = dict[str, list[Any]]

PARAPHRASES = [
    ("The old mill by the river belongs to Anna.", "Anna owns the old mill by the river.", 1),
    ("The teacher praised the girl after the race.", "The girl praised the teacher after the race.", 0),
    ("From Oslo the ship went to Bergen.", "The ship went from Oslo to Bergen.", 1),
    ("From Bergen the ship went to Oslo.", "The ship went from Oslo to Bergen.", 0),
    ("Only Paul saw the map on the wall.", "Paul saw only the map on the wall.", 0),
    ("Yesterday it rained in the valley.", "It rained in the valley yesterday.", 1),
    ("The cook gave the guest the bread.", "The cook gave the bread to the guest.", 1),
    ("The guest gave the cook the bread.", "The cook gave the guest the bread.", 0),
    ("Two ponds feed the long canal.", "The long canal feeds two ponds.", 0),
    ("Nobody has heard the bell since May.", "Since May nobody has heard the bell.", 1),
]

CONTEXT = 'The ferry to the island leaves at noon. An engine, the "Otter", moves a boat of twelve metres.'
ANSWERS = {
    "When does the ferry leave?": ["noon", "at noon"],
    "What is the engine called?": ["the \"Otter\"", "Otter"],
    "What does the engine move?": ["a boat of twelve metres", "a boat"],
    "Where does the ferry go?": ["the island", "to the island"],
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's sets, a tree with a word without a tag and one without a name, paraphrases, and several answers."""
    folder = data_folder(tmp_path_factory.mktemp("data"))
    lines = (folder / EWT).read_text("utf-8").splitlines(keepends=True)
    tagged = next(i for i, line in enumerate(lines) if line.startswith("3\t"))
    fields = lines[tagged].split("\t")
    lines[tagged] = "\t".join([*fields[:3], "_", *fields[4:]])
    del lines[next(i for i, line in enumerate(lines) if line.startswith("# sent_id"))]
    (folder / EWT).write_text("".join(lines), "utf-8")
    rows = "".join(f"{i}\t{a}\t{b}\t{label}\n" for i, (a, b, label) in enumerate(PARAPHRASES, 1))
    for split in ("train", "dev", "test"):
        (folder / "pawsx" / f"{split}.en.tsv").write_text(f"id\tsentence1\tsentence2\tlabel\n{rows}", "utf-8")
    place = folder / "qa" / "xquad" / "xquad.en.json"
    found = json.loads(place.read_text("utf-8"))
    found["data"].append(squad.article("ferry", CONTEXT, list(ANSWERS.items())))
    for file in (place, folder / "qa" / "squad" / "train-v1.1.json", folder / "qa" / "squad" / "dev-v1.1.json"):
        file.write_text(json.dumps(found), "utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fresh_run(tmp_path / "run")


def asked(data: Path, *names: str, **changes: Any) -> EvaluateOptions:
    return options(*names, **{"lr": 1e-2, "data_dir": data, "predictions": True, **changes})


def table_of(path: Path, on: str = "derived") -> Table:
    table = pq.read_table(path)
    found: Table = table.filter(pc.equal(table["on"], on)).to_pydict()
    return found


# The scores, by other programs


def labels(row: Any) -> list[Any]:
    """The labels of a row that has one for each word, or one; a head with its relation as a pair."""
    several = row if isinstance(row, list) else [row]
    return [tuple(one.values()) if isinstance(one, dict) else one for one in several if one is not None]


def of_qa(table: Table) -> dict[str, float]:
    """In the source's words, since SQuAD's normal form is of English."""
    exact, overlap = [], []
    for gold, (answer,) in zip(table["gold"], table["predicted"], strict=True):
        found = squad.words(answer["source"])
        exact.append(any(found == squad.words(one["source"]) for one in gold))
        overlap.append(max((squad.f1(answer["source"], one["source"]) for one in gold), default=0.0))
    return {"em": 100 * float(np.mean(exact)), "f1": 100 * float(np.mean(overlap))}


SCORERS = {"pos": scorers.of_pos, "ner": scorers.of_ner, "dep": scorers.of_dep, "xnli": scorers.of_pairs}


def scores_of(kind: str, table: Table) -> dict[str, float]:
    if kind == "qa":
        return of_qa(table)
    return SCORERS[kind](*(list(map(labels, table[column])) for column in ("gold", "predicted")))


@pytest.mark.filterwarnings("ignore:.* are in no row")  # the rows are short
@pytest.mark.parametrize(
    ("kind", "length"), [*((kind, 300) for kind in (*SCORERS, "qa")), ("pos", 10), ("dep", 10), ("qa", 40)]
)
def test_other_programs_compute_the_scores_from_the_file(kind: str, length: int, run: Path, data: Path) -> None:
    regimes = ("sup", "zs", "cs") if kind in ("xnli", "qa") else ("sup", "zs")
    found = evaluate(run, asked(data, kind, epochs=20 if kind == "ner" else 3, regimes=regimes, max_length=length))
    wanted = {
        (row["regime"], row["metric"]): row["value"] for row in found.scores.to_pylist() if row["split"] == "test"
    }
    files = {regime: run / "evaluation" / f"{kind}.{regime}.1.predictions.parquet" for regime in regimes}
    tables = {regime: table_of(path) for regime, path in files.items()} | {"source": table_of(files["zs"], "source")}
    for regime, table in tables.items():
        for name, value in scores_of(kind, table).items():
            assert value == pytest.approx(wanted[regime, name], abs=1e-4), (regime, name)
    (headline,) = (column["name"] for column in found.columns[kind] if column["headline"])
    assert 0 < wanted["sup", headline] < 100  # or the test shows little
    test = found.record["tasks"][kind]["test"]
    assert (test["cut"] > 0) == (length < 300)
    assert not table_of(files["sup"], "source")["row"]


# What a row has


def test_rows_have_their_words_labels_and_names(run: Path, data: Path) -> None:
    evaluate(run, asked(data, "pos", "dep", "xnli", "pawsx", "qa", regimes=("zs",)))

    def tables(kind: str) -> list[Table]:
        return [table_of(run / "evaluation" / f"{kind}.zs.1.predictions.parquet", on) for on in ("source", "derived")]

    text = batch(split="test")
    sentences = text.unit_lists().to_pylist()
    for kind in ("pos", "dep"):
        for table, turned in zip(tables(kind), (False, True), strict=True):
            assert table["row"] == list(range(len(sentences)))
            assert table["id"] == [None, *(f"demo-test-{i:03}" for i in range(2, 24))]
            assert [sorted(words) for words in table["source_words"]] == [sorted(words) for words in sentences]
            assert (table["words"] == table["source_words"]) is not turned
            assert [len(words) for words in table["gold"]] == [len(words) for words in sentences]
    source, derived = tables("pos")
    assert [sum(label is None for label in flat) for flat in source["gold"]] == [1] + [0] * 22
    # A label moves with its word, and so does a governor.
    assert tagged(source) == tagged(derived)
    source, derived = tables("dep")
    assert tagged(source, governor) == tagged(derived, governor)
    source, _ = tables("xnli")
    assert set(source["gold"]) == {"entailment", "neutral", "contradiction"} >= set(source["predicted"])
    source, derived = tables("pawsx")
    assert source["gold"] == derived["gold"] == [str(label) for _, _, label in PARAPHRASES]
    assert [words[-1] for words in source["sentence1"]] == ["."] * len(PARAPHRASES)
    for table in tables("qa"):
        assert table["id"][-1] == "ferry-3"
        for words, answers in zip(table["context"] * 2, table["gold"] + table["predicted"], strict=True):
            assert all(one["text"] == " ".join(words[one["first"] : one["last"] + 1]) for one in answers)
        for gold in table["gold"]:
            assert len({(one["first"], one["last"]) for one in gold}) == len(gold)
    source, _ = tables("qa")
    assert [{one["text"] for one in answers} for answers in source["gold"][-4:]] == [
        {"noon", "at noon"}, {'the " Otter "', "Otter"}, {"a boat of twelve metres", "a boat"},
        {"the island", "to the island"},
    ]  # fmt: skip


def tagged(table: Table, told: Callable[[list[str], Any], Any] = lambda words, label: label) -> list[list[Any]]:
    """The source words of each row with their gold labels, in one order for both languages."""
    rows = zip(table["source_words"], table["gold"], strict=True)
    return [sorted(((word, told(words, label)) for word, label in zip(words, gold, strict=True)), key=str)
            for words, gold in rows]  # fmt: skip


def governor(words: list[str], label: dict[str, Any]) -> tuple[str, str]:
    return words[label["head"] - 1] if label["head"] else "root", label["deprel"]


def test_derived_words_are_those_of_a_derived_set(tmp_path: Path) -> None:
    """Also where the place of a word chooses its image."""
    (tmp_path / "words.txt").write_text("the ce\nthe cette\nand et\nof de\n", "utf-8")
    chosen = Pipeline.parse(f"lex:{tmp_path}/words.txt:rate=50,perm")
    found: list[Languages] = [languages("trans,inv"), languages("trans:overlap=50,perm")]
    found.append(of_texts(chosen, ForeignTokenizer.load(checkpoint("roberta")), chosen.fit()))
    text = batch()
    for one in found:
        counts = np.bincount(text.words)
        lexicon = one.readers[1].lexicon if not one.are_mapped else one.pipeline.fit(text.types, counts)
        made = one.pipeline.derive(text, lexicon, split=False)
        words = one.readers[1].words(text).take(pa.array(made.order.index))
        assert words.to_pylist() == made.derived.strings().to_pylist()
        assert words.to_pylist() != text.strings().to_pylist()


# When they are kept


def test_predictions_are_kept_and_made_again_where_they_lack(
    run: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    tables: list[pa.Table] = []
    make = cells.FinetuneCell.make
    monkeypatch.setattr(
        cells.FinetuneCell, "make", lambda cell, *rest: (made.append(cell.regime), make(cell, *rest))[1]
    )

    def evaluated(**changes: Any) -> set[str]:
        """The predictions of the record; `made` has the regimes that were fine-tuned."""
        made.clear()
        found = evaluate(run, asked(data, "pos", **changes))
        if "lr" not in changes:
            tables.append(found.scores)
        assert not damages(run / "evaluation", entries_of(found.record).values())
        entry = found.record["tasks"]["pos"]
        assert len(entry["scores"]) == 3
        names = {name for name in entry["files"] if "predictions" in name}
        assert names == {path.name for path in (run / "evaluation").glob("*predictions*")}
        return names

    def file(regime: str) -> str:
        return f"pos.{regime}.1.predictions.parquet"

    assert (evaluated(predictions=False), made) == (set(), ["sup", "zs"])
    assert (evaluated(), made) == ({file("sup"), file("zs")}, ["sup", "zs"])
    assert (evaluated(), made) == ({file("sup"), file("zs")}, [])
    assert (evaluated(predictions=False), made) == ({file("sup"), file("zs")}, [])
    changed = run / "evaluation" / file("zs")
    changed.write_bytes(changed.read_bytes()[:-1])
    assert (evaluated(predictions=False), made) == ({file("sup")}, [])
    assert (evaluated(), made) == ({file("sup"), file("zs")}, ["zs"])
    assert all(table.equals(tables[0]) for table in tables), "predictions change scores"
    assert (evaluated(predictions=False, lr=1e-3, force=True), made) == (set(), ["sup", "zs"])


class Lengths(PartsOfSpeech):
    """What a plug-in may get wrong: labels of two types."""

    def told(self, *given: Any) -> list[Any]:
        return [label if i else len(label) for i, label in enumerate(super().told(*given))]


def test_labels_of_several_types_are_one_message(run: Path, data: Path) -> None:
    right = asked(data, "pos", regimes=("sup",))
    wrong = replace(right, tasks=(Lengths("pos", right.tasks[0].given),))
    with pytest.raises(DataError, match="does not return one value per row, of one type") as caught:
        evaluate(run, wrong)
    assert caught.value.id == "predictions"
    assert not list(run.glob("evaluation*/*"))
