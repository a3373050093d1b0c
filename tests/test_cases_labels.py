"""Which columns hold entities, lists that fit few words, texts inside objects: files as people have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from derivlang import Columns, DerivlangWarning, map_dataset
from derivlang.core.errors import UsageError
from tests.commands import ROOT, Ran, run
from tests.evaluations import fresh_run, task_data
from tests.helpers import manifest, rows, undone

DATA = ROOT / "tests" / "cases" / "data"
MARA = ["Mara", "Kim", "met", "Bo", "Ida", "Lee", "."]
BIO = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "I-PER", "O"]
BACK = ["B-PER", "I-PER", "I-PER", "O", "B-PER", "I-PER", "O"]
SHORT = ["B-PER", "O", "B-PER", "I-PER", "O"]  # Bo met Kim Mara .


def made(source: Path, out: Path, *more: object) -> Ran:
    ran = run("make", "--t", "inv", source, "-o", out, *more)
    run("verify", out)
    return ran


def names(out: Path, column: str, split: str = "train") -> list[Any]:
    """The labels of the first row, classes by their names, as `datasets` gives them."""
    files = [str(out / shard["file"]) for shard in manifest(out)["splits"][split]["shards"]]
    found = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(out.parent / "cache"))
    feature = found.features[column]
    inner = getattr(feature, "feature", feature)
    values = found[0][column]
    return [inner.int2str(v) for v in values] if isinstance(inner, datasets.ClassLabel) else values


def lines(path: Path, *objects: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in objects), "utf-8")
    return path


# -- what is right of each file: its column, and its tags after `inv`
ENTITIES = {
    **{f"c9_{name}.jsonl": (name, BACK) for name in
       ("bio", "labels", "ner", "ner_labels", "ner_tags", "pos_tags", "slots", "tags")},
    "c10_labels.parquet": ("labels", None),
    "c6_bies_only.jsonl": ("labels", SHORT),
    "c1_bio_untyped.jsonl": ("doc_bio_tags", ["B", "O", "B", "I", "O"]),
    "c1b_ner_untyped.jsonl": ("ner_tags", ["B", "O", "B", "I", "O"]),
    "c2_lower.jsonl": ("ner_tags", ["B-per", "O", "B-per", "I-per", "O"]),
    "c3_underscore.jsonl": ("ner_tags", SHORT),
    "b7b_untyped.conll": ("ner_tags", ["B", "O", "B", "I", "O"]),
    "b7c_lower.conll": ("ner_tags", ["B-per", "O", "B-per", "I-per", "O"]),
    "b7d_underscore.conll": ("ner_tags", SHORT),
    "b9_io.conll": ("ner_tags", ["B-LOC", "I-LOC", "B-PER", "O", "B-PER", "I-PER"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ENTITIES)
def test_entities_are_known_by_their_tags(name: str, tmp_path: Path) -> None:
    (column, wanted), out = ENTITIES[name], tmp_path / "out"
    ran = made(DATA / name, out)
    assert manifest(out)["schema"]["fields"][0]["kind"] == "entities"
    if wanted is not None:
        assert names(out, column) == wanted
    by_values = f"by the values, {column} holds entities; --label-column NAME=KIND"
    assert (by_values in ran.err) == (column not in ("ner", "ner_tags", "slots"))
    run("undo", out, "-o", back := tmp_path / f"back{(DATA / name).suffix}")
    if name.endswith(".jsonl"):
        assert json.loads(back.read_text("utf-8")) == json.loads((DATA / name).read_text("utf-8"))
    if name.startswith("b7"):
        assert back.read_text("utf-8").strip() == (DATA / name).read_text("utf-8").strip()


@pytest.mark.parametrize(
    "tags",
    [
        ["S-PER", "O", "B-LOC", "E-LOC"], ["b_per", "i_per", "o", "o"], ["I-PER", "I-PER", "O", "I-LOC"],
        ["U-per", "O", "B-per", "L-per"], ["b", "i", "o", "b"], ["b-PER", "i-PER", "O", "O"],
        ["B_a-b", "I_a-b", "O", "O"],
        ["B-PER", "I_PER", "O", "O"],
    ],
)  # fmt: skip
def test_undo_gives_the_tags_as_they_were(tags: list[str], tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"tokens": MARA[:4], "x": tags})
    made(source, out := tmp_path / "out", "--label-column", "x=entities")
    run("undo", out, "-o", back := tmp_path / "back.jsonl")
    assert json.loads(back.read_text("utf-8"))["x"] == tags
    assert {name[:2] for name in names(out, "x")} <= {"O", "B", "I", "B-", "I-"}


def test_repaired_tags_are_spelled_as_the_others(tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"tokens": MARA[:4], "x": ["b_per", "o", "o", "i_loc"]})
    made(source, out := tmp_path / "out", "--label-column", "x=entities", "--repair-tags")
    run("undo", out, "-o", back := tmp_path / "back.jsonl")
    assert json.loads(back.read_text("utf-8"))["x"] == ["b_per", "o", "o", "b_loc"]


OTHERS = {
    "answers": ["A", "B", "O", "B"], "grades": ["A", "B", "C", "F"], "penn": ["NNP", "VBD", "-LRB-", "."],
    "pos": ["B", "N", "V", "O"], "outside": ["O", "O", "O", "O"], "b and o": ["B", "O", "O", "B"],
    "words": ["B-52", "i-95", "e-mail", "o"], "io": ["PER", "PER", "O", "LOC"], "xpos": ["B-", "I", "O", "S-x"],
}  # fmt: skip


@pytest.mark.parametrize("tags", OTHERS.values(), ids=OTHERS)
def test_other_labels_of_words_are_no_entities(tags: list[str], tmp_path: Path) -> None:
    if tags == OTHERS["words"]:
        tags = ["B-52", "the", "e-mail", "o"]
    source = lines(tmp_path / "a.jsonl", {"tokens": MARA[:4], "labels": tags})
    ran = made(source, out := tmp_path / "out")
    assert names(out, "labels") == tags[::-1]
    # Of values among which is no tag there is no doubt.
    assert ("labels holds a value for each word; --label-column" in ran.err) == (tags != OTHERS["penn"])


def test_all_values_of_all_files_decide(tmp_path: Path) -> None:
    """An I in the last file makes entities of B and O, and an A there makes answers of them."""
    for last, kind in (("I", "entities"), ("A", "tags"), ("B-PER", "entities")):
        folder = tmp_path / kind / last
        lines(folder / "train.jsonl", *[{"tokens": ["a", "b", "."], "x": ["O", "O" if "-" in last else "B", "O"]}] * 3)
        lines(folder / "test.jsonl", {"tokens": ["a", "b", "."], "x": ["B" if last == "I" else "O", last, "O"]})
        made(folder, out := tmp_path / f"out-{last}")
        assert [field["kind"] for field in manifest(out)["schema"]["fields"]] == [kind]


def test_the_user_says_otherwise(tmp_path: Path) -> None:
    source = DATA / "c9_labels.jsonl"
    for kind, wanted in (("tags", [*BIO[:6][::-1], "O"]), ("value", BIO)):
        ran = made(source, out := tmp_path / kind, "--label-column", f"labels={kind}")
        assert names(out, "labels") == wanted
        assert "warning" not in ran.err
    assert (
        "no column" in run("make", "--t", "inv", source, "-o", tmp_path / "x", "--label-column", "x=tags", code=2).err
    )
    told = run("make", "--t", "inv", source, "-o", tmp_path / "x", "--label-column", "labels=ner", code=2).err
    assert "NAME=entities or NAME=tags or NAME=heads or NAME=value" in told
    assert "--label-column ner_tags=tags" in run("make", "--t", "inv", DATA / "c4_intner.jsonl", "-o", tmp_path / "x",
                                                 code=2).err  # fmt: skip
    made(DATA / "c4_intner.jsonl", tmp_path / "n", "--label-column", "ner_tags=tags")
    assert names(tmp_path / "n", "ner_tags") == [1, 0, 2, 1, 0]


def test_a_tag_that_is_none_among_entities_is_refused(tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"tokens": MARA[:4], "x": ["B-PER", "I-PER", "O", "?"]})
    told = run("make", "--t", "inv", source, "-o", tmp_path / "out", code=1).err
    assert "a.jsonl:1: the tag '?' in x" in told
    assert "[ill-formed-tags]" in told
    source = lines(tmp_path / "b.jsonl", {"tokens": MARA[:4], "x": ["B-PER", "b-PER", "O", "I-PER"]})
    assert (
        "'B-PER' and 'b-PER' of the column 'x'" in run("make", "--t", "inv", source, "-o", tmp_path / "out", code=1).err
    )


@pytest.mark.parametrize("name", ["c5_suffix.jsonl", "b22_bilou.conll"])
def test_tags_of_no_scheme_stay_refused(name: str, tmp_path: Path) -> None:
    run("make", "--t", "inv", DATA / name, "-o", tmp_path / "out", code=1)
    assert not (tmp_path / "out").exists()


def test_names_of_classes_decide(tmp_path: Path) -> None:
    """Numbers of classes are entities by the names in the file's note, whatever the column is called."""
    for classes, kind in (
        (["O", "B_PER", "I_PER"], "entities"),
        (["O", "B", "I"], "entities"),
        (["A", "B", "O"], "tags"),
    ):
        features = datasets.Features(
            {"tokens": datasets.Sequence(datasets.Value("string")),
             "x": datasets.Sequence(datasets.ClassLabel(names=classes))}
        )  # fmt: skip
        found = datasets.Dataset.from_dict({"tokens": [["a", "b", "c"]], "x": [[1, 2, 0]]}, features=features)
        found.to_parquet(path := tmp_path / f"{classes[1]}{kind}.parquet")
        made(path, out := tmp_path / path.stem)
        assert manifest(out)["schema"]["fields"][0]["kind"] == kind
        run("undo", out, "-o", back := tmp_path / f"{path.stem}.jsonl")
        assert json.loads(back.read_text("utf-8"))["x"] == [classes[1], classes[2], classes[0]]


def test_map_dataset_decides_alike() -> None:
    data = {"tokens": [MARA], "labels": [BIO]}
    with pytest.warns(DerivlangWarning, match=r"labels holds entities; Columns\(labels=\['NAME=KIND'\]\)"):
        found = map_dataset(datasets.Dataset.from_dict(data), "inv")
    assert [found.features["labels"].feature.int2str(v) for v in found[0]["labels"]] == BACK
    found = map_dataset(datasets.Dataset.from_dict(data), "inv", Columns(labels=("labels=tags",)))
    assert found[0]["labels"] == [*BIO[:6][::-1], "O"]


def test_a_stream_decides_by_name_or_option() -> None:
    stream = datasets.Dataset.from_dict({"tokens": [MARA], "labels": [BIO]}).to_iterable_dataset()
    with pytest.raises(UsageError, match="a stream cannot be searched"):
        map_dataset(stream, "inv")
    columns = Columns(labels=("labels=entities",), tags=("O", "B-PER", "I-PER"))
    assert next(iter(map_dataset(stream, "inv", columns)))["labels"] == [1, 2, 2, 0, 1, 2, 0]
    columns = Columns(labels=("labels=tags",))
    assert next(iter(map_dataset(stream, "inv", columns)))["labels"] == [*BIO[:6][::-1], "O"]


# -- lists that fit the words of few rows
def test_lists_that_fit_few_rows_are_told_or_refused(tmp_path: Path) -> None:
    few = [{"tokens": MARA[:5], "tags": ["x", "y", "z", "v"]}] * 19 + [
        {"tokens": MARA[:4], "tags": ["x", "y", "z", "v"]}
    ]
    ran = made(lines(tmp_path / "a.jsonl", *few), tmp_path / "a")
    assert "the lists of 'tags' are as long as the words in 1 of the first 20 rows, but do not move" in ran.err
    bio = [{**row, "tags": ["B-PER", "I-PER", "O", "O"]} for row in few]
    told = run("make", "--t", "inv", lines(tmp_path / "b.jsonl", *bio), "-o", tmp_path / "b", code=1).err
    assert "b.jsonl:1: 5 words but 4 values in tags" in told
    assert "(--label-column says" in told
    assert "do not move" not in told
    ran = made(tmp_path / "b.jsonl", tmp_path / "b", "--label-column", "tags=value")
    assert rows(tmp_path / "b")["tags"][0].as_py() == ["B-PER", "I-PER", "O", "O"]


def test_tags_of_a_text_are_told(tmp_path: Path) -> None:
    ran = made(lines(tmp_path / "a.jsonl", {"text": "Mara met Bo", "labels": ["B-PER", "O", "B-PER"]}), tmp_path / "a")
    assert "the lists of 'labels' do not move with the words: the table has no column of words" in ran.err


# -- texts and answers inside objects, and texts that stay
def test_hypo_is_the_other_text_of_a_pair(tmp_path: Path) -> None:
    made(DATA / "d4_hypo.tsv", out := tmp_path / "out")
    found = rows(out)
    assert (found["hypo"][0].as_py(), found["premise"][0].as_py()) == ("rained It .", "Bo on fell Rain .")
    assert found["label"].to_pylist() == [0, 2]
    run("undo", out, "-o", back := tmp_path / "back.tsv")
    assert back.read_bytes() == (DATA / "d4_hypo.tsv").read_bytes().replace(b"contradictory", b"contradiction")


@pytest.mark.parametrize("name", ["d6_xnli_all.jsonl", "p15_translation.parquet"])
def test_one_of_several_languages_is_chosen(name: str, tmp_path: Path) -> None:
    told = run("make", "--t", "inv", "--lang", "de", DATA / name, "-o", tmp_path / "out", code=2).err
    assert "choose one of en, fr: --text-column premise.en --text-column hypothesis.en" in told
    for language, words in (("en", "fell Rain ."), ("fr", "pleut Il .")):
        ran = made(DATA / name, out := tmp_path / language, *(("--lang", language) if language == "fr" else ()))
        assert f"premise.{language}, hypothesis.{language}: the objects" in ran.err
        assert names(out, f"premise_{language}") == words
    columns = ("--text-column", "premise.fr", "--text-column", "hypothesis.fr")
    ran = made(DATA / name, out := tmp_path / "out", *columns)
    assert "the objects that hold these texts stay as they are, in the source language" in ran.err
    assert names(out, "premise_fr") == "pleut Il ."
    assert rows(out)["hypothesis_fr"][0].as_py() == "plu a Il ."
    run("undo", out, "-o", back := tmp_path / "back.jsonl")
    source = DATA / "d6_xnli_all.jsonl"
    assert json.loads(back.read_text("utf-8")) == json.loads(source.read_text("utf-8"))
    told = run("make", "--t", "inv", DATA / name, "-o", tmp_path / "no", "--text-column", "hypothesis.de", code=1).err
    assert "no text 'hypothesis.de': the languages are en, fr" in told


def test_a_key_of_an_object_is_a_column_of_text(tmp_path: Path) -> None:
    found = [
        {"id": i, "review": {"body": f"Mara met Bo{i} .", "by": {"name": "Ann Lee ."}}, "review_body": 1}
        for i in (0, 1)
    ]
    source = lines(tmp_path / "a.jsonl", *found)
    for path, column, wanted in (
        ("review.body", "review_body_", "Bo0 met Mara ."),
        ("review.by.name", "review_by_name", "Lee Ann ."),
    ):
        made(source, out := tmp_path / column, "--text-column", path)
        assert rows(out)[column][0].as_py() == wanted
        run("undo", out, "-o", back := tmp_path / f"{column}.jsonl")
        assert [json.loads(line) for line in back.read_text("utf-8").splitlines()] == found
    for path, told in (
        ("review.no", "no text 'review.no'"),
        ("no.body", "no column 'no.body'"),
        ("review.by", "not text"),
    ):
        ran = run("make", "--t", "inv", source, "-o", tmp_path / "no", "--text-column", path, code=None)
        assert (ran.code in (1, 2), told in ran.err) == (True, True), ran.err
    with pytest.warns(DerivlangWarning, match="the objects that hold these texts stay as they are"):
        derived = map_dataset(datasets.Dataset.from_list(found), "inv", Columns(texts=("review.body",)))
    assert derived["review_body_"][0] == "Bo0 met Mara ."


@pytest.mark.parametrize("name", ["e9b_listdict.jsonl", "p14_ansliststruct.parquet"])
def test_answers_may_be_a_list_of_objects(name: str, tmp_path: Path) -> None:
    made(DATA / name, out := tmp_path / "out")
    answers = rows(out)["answers"][0].as_py()
    assert answers["text"] == ["Nizar"]
    assert rows(out)["context"][0].as_py()[answers["answer_start"][0]:].startswith("Nizar")  # fmt: skip
    run("undo", out, "-o", back := tmp_path / "back.jsonl")
    assert json.loads(back.read_text("utf-8"))["answers"] == [{"text": "Nizar", "answer_start": 0}]


def test_no_answers_in_a_list_of_objects(tmp_path: Path) -> None:
    context = "Mara met Bo ."
    found = [
        {"context": context, "question": "Who ?", "answers": given}
        for given in ([{"text": "Bo", "answer_start": 9}, {"text": "Mara", "answer_start": 0}], [], None)
    ]
    made(lines(tmp_path / "a.jsonl", *found), out := tmp_path / "out")
    assert rows(out)["answers"].to_pylist()[0] == {"text": ["Bo", "Mara"], "answer_start": [0, 7]}
    run("undo", out, "-o", back := tmp_path / "back.jsonl")
    assert [json.loads(line)["answers"] for line in back.read_text("utf-8").splitlines()][:2] == [
        found[0]["answers"],
        [],
    ]


def test_a_text_that_stays_is_told(tmp_path: Path) -> None:
    ran = made(DATA / "d21_qnli.tsv", tmp_path / "out")
    assert "'question' stays in the source language" in ran.err
    assert "--text-column question --text-column sentence" in ran.err
    ran = made(DATA / "d21_qnli.tsv", tmp_path / "pair", "--text-column", "question", "--text-column", "sentence")
    assert "stays" not in ran.err
    assert rows(tmp_path / "pair")["question"][0].as_py() == "fell Who ?"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[[0, 2]], [[3, 5]], []], "'x' holds whole numbers that may be places of words"),
        ([[{"from": 0}], [{"from": 5}], None], "'x' holds whole numbers that may be places of words (x.from)"),
        ([{"trigger": 0}, {"trigger": 3}, {}], "'x' holds whole numbers that may be places of words (x.trigger)"),
        ([{"y": list("abc")}, {"y": list("abcde")}, {"y": ["a"]}], "the lists of 'x.y' are as long as the words"),
        ([{"raw": "Mara met Bo"}, {"raw": "One two three four five"}, {}], "'x.raw' holds the text of its row"),
        ([[[0, 2]], [[3, 6]], []], ""),  # more than the words
        ([1, 2, 3], ""),  # labels, or numbers of the rows
        ([0.5, 3.0, 1.0], ""),
        (["Mara", "One two", "Go"], ""),
    ],
)
def test_what_may_follow_the_words_and_stays_is_told(values: list[object], message: str, tmp_path: Path) -> None:
    texts = ["Mara met Bo", "One two three four five", "Go"]
    table = [{"tokens": text.split(), "x": value} for text, value in zip(texts, values, strict=True)]
    told = made(lines(tmp_path / "a.jsonl", *table), tmp_path / "a").err
    assert message in told
    assert bool(message) == ("warning" in told)
    if table[0]["x"] == [[0, 2]]:  # places of characters, without a word on words
        flat = [{"text": text, "x": value} for text, value in zip(texts, values, strict=True)]
        assert "may be places of characters" in made(lines(tmp_path / "b.jsonl", *flat), tmp_path / "b").err


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"x": {"tokens": ["a"]}, "y": "a b"}, (), "name it: --text-column y; lists in objects are not read as words"),
        ({"id": "a", "x": [{"tokens": ["a"]}]}, (), "write them to a key of the row (x.tokens)"),
        ({"id": "a1", "d": {"t": "b", "e": {"f": "a b c"}}}, (), "name it: --text-column d.e.f or --text-column id"),
        ({"x": {"tokens": ["a"]}}, ("--word-column", "x.tokens"), "lists in objects are not read as words"),
        ({"text": "Mara met Bo", "label": [[0, 4, "PER"]]}, (), "write a tag for each word, which moves with it"),
    ],
)
def test_what_is_not_read_as_words_has_advice(row: dict[str, Any], options: Any, message: str, tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", row), "-o", tmp_path / "a", *options, code=None)
    assert ran.code
    assert message in ran.err


def test_numbers_that_fit_each_row_by_no_chance_are_told(tmp_path: Path) -> None:
    table = [{"tokens": ["a"] * n, "x": n - 1, "n": n, "row": n % 2} for n in range(1, 13)]
    told = made(lines(tmp_path / "a.jsonl", *table), tmp_path / "a").err
    assert [line for line in told.splitlines() if "warning" in line and "'x' holds" in line]
    assert told.count("warning") == 1


# -- labels behind the end of a row
@pytest.mark.parametrize(("length", "told"), [(24, True), (512, False)])
def test_labels_that_are_cut_off_are_told(length: int, told: bool, tmp_path: Path) -> None:
    asked = ("--task", "pos", "--seeds", 1, "--epochs", 1, "--measure", "none", "--device", "cpu")
    ran = run("evaluate", fresh_run(tmp_path / "run"), "--data-dir", task_data(), "--max-length", length, *asked)
    assert (f"are in no row, since rows are cut at {length} sub-words (--max-length)" in ran.err) == told


# -- places of other words, one for each word
HEADS = [{"tokens": ["the", "dog", "barks"], "x": [2, 3, 0]}, {"tokens": ["Go"], "x": [0]}]


@pytest.mark.parametrize(
    "name",
    ["head", "_heads_", "dep_head", "head_ids", "HeadIndex", "depHead", "governor", "Parent", "trigger", "coref_idx"],
)
@pytest.mark.parametrize("change", [0, -1, 0.0, str])
def test_places_of_other_words_are_refused(name: str, change: Any, tmp_path: Path) -> None:
    values = [list(map(str, row["x"])) if change is str else [n + change for n in row["x"]] for row in HEADS]
    if change == -1:
        values[0][0] = 2
    table = [{"tokens": row["tokens"], name: own} for row, own in zip(HEADS, values, strict=True)]
    source = lines(tmp_path / "a.jsonl", *table)
    told = run("make", "--t", "inv", source, "-o", tmp_path / "a", code=2).err
    assert f"the numbers in {name!r} may be places of words" in told
    assert "warning" not in made(source, tmp_path / "b", "--label-column", f"{name}=tags").err
    assert f"--label-column {name}=heads renumbers them" in told
    if isinstance(change, int) and change == 0:
        made(source, tmp_path / "c", "--label-column", f"{name}=heads")
        assert rows(tmp_path / "c")[name].to_pylist() == [[0, 1, 2], [0]]
        back = undone(tmp_path / "c", "train", ".jsonl").decode().splitlines()
        assert [json.loads(line)[name] for line in back] == values


def test_a_column_that_a_parse_writes_is_refused(tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", *({"tokens": row["tokens"], "head": row["x"]} for row in HEADS))
    told = run("make", "--t", "syn:fr", source, "-o", tmp_path / "d", "--label-column", "head=heads", code=None).err
    assert "has a column 'head' of its own" in told


def test_numbers_with_another_name_are_refused_if_they_fit_by_no_chance(tmp_path: Path) -> None:
    table = [{"tokens": ["a"] * n, "x": [n, *range(n - 1)], "id": list(range(n)), "y": [9] * n} for n in range(1, 9)]
    told = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", *table), "-o", tmp_path / "a", code=2).err
    assert "the numbers in 'x' may be places of words" in told
    flags = [{"tokens": ["a", "b", "c"], "predicate": [0, 1, 0], "pos": [7, 3, 0], "trigger": [1, 1, 0]}]
    assert "warning" not in made(lines(tmp_path / "b.jsonl", *flags), tmp_path / "b").err


@pytest.mark.parametrize("heads", [[1, 1, 1, 1], [0, 1, 1, 1], [-1, 0, 0, None]])
def test_small_heads_are_refused(heads: list[int | None], tmp_path: Path) -> None:
    source = lines(tmp_path / "a.jsonl", {"tokens": MARA[:4], "heads": heads})
    assert "[word-places]" in run("make", "--t", "inv", source, "-o", tmp_path / "a", code=2).err


def test_heads_that_count_from_0_are_refused(tmp_path: Path) -> None:
    row = {"tokens": ["the", "dog", "barks"], "head": [1, 2, -1], "deprel": ["det", "nsubj", "root"]}
    rows_ = [row, {**row, "head": [2, 2, -1]}]
    told = run("make", "--t", "inv", lines(tmp_path / "a.jsonl", *rows_), "-o", tmp_path / "a", code=1).err
    assert "has the relation root, but the head -1" in told
    assert "add 1 to each" in told
