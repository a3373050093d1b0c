"""What the columns of a file mean is told by names, by flags or by the source, and never guessed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derivlang import Columns, DerivlangWarning, Pipeline, derive, map_dataset
from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.engine.make import make as run_make
from derivlang.engine.options import MakeOptions
from derivlang.formats import delimited
from derivlang.sources.find import find
from derivlang.sources.read import tables
from derivlang.sources.request import SourceRequest
from tests.commands import run, written
from tests.helpers import manifest, right, rows, undone
from tests.strategies import laws

REVIEWS = "sentence\tstars\nA good film .\t5\nBad , bad .\t1\n"
NLI = "premise\thypothesis\tlabel\nHe left .\tHe went .\tentailment\nShe sang .\tNo .\tcontradictory\n"


def made(path: Path, **asked: Any) -> Path:
    out = path.parent / f"{path.name}.out"
    run_make(Pipeline.parse("trans,inv"), SourceRequest(str(path), words="space", **asked), MakeOptions(out))
    right(out)
    return out


# header rows and names


def test_two_columns_are_not_taken_for_a_pair(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", REVIEWS)
    with pytest.raises(UsageError) as caught:
        find(SourceRequest(str(path)))
    assert caught.value.id == "no-columns"
    assert caught.value.where == f"{path}:1"
    assert "--header --text-column sentence" in str(caught.value.fix)
    assert "--column-names text,label" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("asked", "texts", "n_rows"),
    [
        ({"header": True}, "sentence", 2),
        ({"header": True, "text_column": ("sentence",)}, "sentence", 2),
        ({"text_column": ("sentence",)}, "sentence", 2),
        ({"header": True, "column_names": ("text", "stars")}, "text", 2),
        ({"header": False, "column_names": ("text", "stars")}, "text", 3),
        ({"column_names": ("text", "stars")}, "text", 3),
        ({"column_names": ("body", "stars"), "text_column": ("body",)}, "body", 3),
    ],
)
@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_what_the_user_says_is_done(
    asked: dict[str, Any], texts: str, n_rows: int, suffix: str, tmp_path: Path
) -> None:
    content = REVIEWS if suffix == "tsv" else REVIEWS.replace(",", ";").replace("\t", ",")
    out = made(written(tmp_path / f"x.{suffix}", content), **asked)
    table = rows(out)
    assert table.num_rows == n_rows
    assert texts in table.column_names
    assert table["stars"].to_pylist()[-2:] == ["5", "1"]
    assert table["source"].to_pylist()[-2] == ["A", "good", "film", "."]


def test_the_advice_is_true(tmp_path: Path) -> None:
    """Each of the two lines of flags in the error, as it stands there, makes a set."""
    path = written(tmp_path / "x.tsv", REVIEWS)
    told = run("make", "--t", "inv", path, "-o", tmp_path / "no", code=2).err
    header, names = told.partition("if it is a header: ")[2].split("; if it is data, name the columns: ")
    for number, flags in enumerate((header, names)):
        run("make", "--t", "inv", path, "-o", tmp_path / str(number), *flags.split())
    assert rows(tmp_path / "0").num_rows == 2
    assert rows(tmp_path / "1").num_rows == 3


FIELDS = st.text(st.sampled_from('ab ,;|\t".'), min_size=1, max_size=6).map(lambda text: f"a{text}b")


@laws
@given(delimiter=st.sampled_from(",;\t|"), fields=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=4))
@pytest.mark.filterwarnings("ignore:.*holds the text of its row")
def test_the_delimiter_that_wrote_a_table_is_found(delimiter: str, fields: list[tuple[str, str]]) -> None:
    """It divides the header into two known names, whatever the fields below hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([("text", "label"), *fields])
        corpus = find(SourceRequest(str(path)))
        (found,) = tables(corpus, corpus.parts[0])
        assert [(row["text"], row["label"]) for row in found.table.to_pylist()] == fields
        assert corpus.layout["delimiter"] == delimiter


def test_a_delimiter_that_is_not_clear_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", "review;more,stars\na b;c,d\ne f;g,h\n")
    with pytest.raises(DataError, match=r"a comma or a semicolon \[delimiter\]\n.*--delimiter"):
        find(SourceRequest(str(path)))
    for delimiter, names in ((";", ["review", "more,stars"]), (",", ["review;more", "stars"])):
        corpus = find(SourceRequest(str(path), delimiter=delimiter, text_column=(names[0],)))
        assert [corpus.schema.sides[0].text, *(f.column for f in corpus.schema.fields)] == names
        assert (
            find(SourceRequest(str(path), text_column=(names[0],))).layout == corpus.layout
        )  # the name makes it clear
    uneven = written(tmp_path / "y.csv", "a;b;c\nd\n")
    with pytest.raises(DataError, match=r"\[delimiter\]"):
        find(SourceRequest(str(uneven)))
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(UsageError, match="--delimiter: must be one character"):
            find(SourceRequest(str(path), delimiter=wrong))
    with pytest.raises(UsageError, match="unused-option"):
        find(SourceRequest(str(written(tmp_path / "x.tsv", REVIEWS)), delimiter="tab"))


def test_a_name_that_occurs_twice_is_not_proposed_as_a_column(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", "text,text\nA dog .,The cat .\nIt is so .,No one .\n")
    with pytest.raises(UsageError, match="--column-names premise,hypothesis") as caught:
        find(SourceRequest(str(path)))
    assert "--text-column" not in str(caught.value.fix)
    assert rows(made(path, column_names=("premise", "hypothesis"), header=True)).num_rows == 2


@pytest.mark.parametrize("names", ["c0 c1 c2", "c1 c2 c3", " ".join(f"f_{i}" for i in range(50))])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_numbered_names_beside_a_known_one_are_a_header(names: str, separator: str, tmp_path: Path) -> None:
    content = "\n".join(separator.join(row) for row in (["text", *names.split()], ["a b", *"x" * len(names.split())]))
    path = written(tmp_path / ("x.csv" if separator == "," else "x.tsv"), f"{content}\n")
    assert rows(made(path)).num_rows == 1


@pytest.mark.parametrize("first", ["text,c0,c1", "text,c0,c1,c3", "body,c0,c1,c2", "text,0,1,2", "text,b2,c3,d4"])
def test_other_names_beside_a_known_one_may_be_data(first: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-columns"):
        find(SourceRequest(str(written(tmp_path / "x.csv", f"{first}\n{first}\n"))))


@pytest.mark.parametrize("header", [None, False, True])
def test_pairs_without_a_header_are_told_their_names(header: bool | None, tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", NLI.partition("\n")[2])
    if header is not True:
        with pytest.raises(UsageError, match="--column-names premise,hypothesis,label"):
            find(SourceRequest(str(path), header=header))
    out = made(path, column_names=("premise", "hypothesis", "label"), header=header)
    assert rows(out)["label"].to_pylist() == ([2] if header else [0, 2])


def test_names_and_a_row_that_looks_like_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", NLI)
    with pytest.raises(UsageError, match=r"add --header .*or --no-header"):
        find(SourceRequest(str(path), column_names=("a", "b", "c"), text_column=("a",)))
    with pytest.raises(UsageError, match="a name occurs twice"):
        find(SourceRequest(str(path), column_names=("a", "a", "c")))


def test_names_that_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.tsv:1: the line has 2 columns, expected 1"):
        find(SourceRequest(str(written(tmp_path / "x.tsv", REVIEWS)), column_names=("text",)))


def test_one_column_is_not_taken_for_text(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", "One .\nTwo .\n")
    with pytest.raises(UsageError, match="--column-names text"):
        find(SourceRequest(str(path)))
    assert rows(made(path, column_names=("text",))).num_rows == 2


def test_words_and_tags_stay_recognised(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", "Ann\tB-PER\nsang\tO\n\nBo\tB-PER\n")
    assert find(SourceRequest(str(path))).format == "tagged"


def test_an_empty_line_at_the_end_makes_no_tags(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.tsv:4: the line has 1 column, expected 3"):
        made(written(tmp_path / "x.tsv", NLI + "\n"))


@pytest.mark.parametrize("table", ["sentence\tstars\nA good film .\t5\nBad .\t1\n", "word\tn\ngood\t5\nbad\t1\n"])
def test_a_table_that_ends_with_an_empty_line_is_no_words_and_tags(tmp_path: Path, table: str) -> None:
    with pytest.raises(UsageError, match=r"x\.tsv:1: the columns have no names"):
        made(written(tmp_path / "x.tsv", table + "\n"))


def test_a_name_in_other_letters_is_meant(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", "review,n\nA good film .,5\n")
    with pytest.raises(UsageError, match=r"did you mean review\?"):
        made(path, text_column=("Review",))


def test_json_lines_with_the_suffix_of_squad_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", '{"text": "a b"}\n{"text": "c"}\n')
    with pytest.raises(DataError, match="--format jsonl"):
        made(path)


def test_columns_that_may_be_words_or_text_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", '{"my body": "A good film .", "parts": ["a"], "stars": 5}\n')
    with pytest.raises(UsageError, match=r"name it: --word-column parts or --text-column 'my body'$"):
        made(path)
    with pytest.raises(UsageError, match=r"a source needs raw text or lists of words"):
        made(written(tmp_path / "y.jsonl", '{"stars": 5}\n'))


def test_rows_of_another_language_are_kept(tmp_path: Path) -> None:
    """Only the files of XNLI 1.0 hold languages that were not asked for."""
    path = written(tmp_path / "x.tsv", "text\tlanguage\nHello .\ten\nSalut .\tfr\n")
    assert rows(made(path))["language"].to_pylist() == ["en", "fr"]


@pytest.mark.parametrize(
    ("name", "content", "asked", "option"),
    [
        ("x.txt", "a .\n", {"text_column": ("text",)}, "--text-column"),
        ("x.txt", "a .\n", {"header": True}, "--header"),
        ("x.jsonl", '{"text":"a"}\n', {"header": False}, "--no-header"),
        ("x.jsonl", '{"text":"a"}\n', {"column_names": ("a",)}, "--column-names"),
        ("x.jsonl", '{"text":"a"}\n', {"quoting": True}, "--quoting"),
        ("x.csv", "text,label\na,b\n", {"quoting": True}, "--quoting"),
        ("x.csv", "text,label\na,b\n", {"quoting": False}, "--no-quoting"),
        (None, "demo", {"text_column": ("text",)}, "--text-column"),
        (None, "demo:nli", {"header": True}, "--header"),
    ],
)
def test_a_flag_that_has_no_effect_is_refused(
    name: str | None, content: str, asked: dict[str, Any], option: str, tmp_path: Path
) -> None:
    source = content if name is None else str(written(tmp_path / name, content))
    with pytest.raises(UsageError) as caught:
        find(SourceRequest(source, **asked))
    assert (caught.value.id, caught.value.where) == ("unused-option", option)


def test_files_of_one_source_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    written(tmp_path / "in" / "a.train.jsonl", '{"text":"a","label":1}\n')
    path = written(tmp_path / "in" / "b.test.jsonl", '{"label":1}\n')
    with pytest.raises(DataError) as caught:
        made(tmp_path / "in")
    assert (caught.value.id, caught.value.where) == ("jsonl-keys", f"{path}:1")


# CSV


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_quoted_fields(packed: str, suffix: str, tmp_path: Path) -> None:
    """In CSV always, in TSV where the user says so."""
    text = 'He said "no", twice.\nThen left .'
    table = [["id", "text", "label"], ["1", text, "good"], ["2", "plain", ""], ["3", "a,\tb", "x"]]
    delimiter = "," if suffix == "csv" else "\t"
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter).writerows(table)
    content = stream.getvalue() + "\r\n"  # a blank line at the end is no row
    data = content.encode()
    data = {"": data, ".gz": gzip.compress(data), ".zst": zstandard.compress(data)}[packed]
    out = made(written(tmp_path / f"x.{suffix}{packed}", data), quoting=suffix == "tsv" or None)
    assert rows(out)["id"].to_pylist() == ["1", "2", "3"]
    assert rows(out)["label"].to_pylist() == ["good", "", "x"]
    assert list(csv.reader(io.StringIO(undone(out).decode(), newline=""), delimiter=delimiter)) == table


def test_tsv_is_literal(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", 'text\tlabel\n"a"" b\t"c"\n')
    out = made(path)
    assert rows(out)["source"].to_pylist() == [['"a""', "b"]]
    assert rows(out)["label"].to_pylist() == ['"c"']
    assert undone(out) == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "id", "line"),
    [
        ('text,label\na,b\n"c" d,e\n', "csv", 3),
        ('text,label\na,b\nc,"d\ne\n', "csv", 4),
        ("text,label\na,b\nc\n", "csv-columns", 3),
        ('text,label\n"a\nb",c\nd,e,f\n', "csv-columns", 4),
        ("text,label\na\rb,c\n", "csv", 2),
        ("text,label,text\na,b,c\n", "tsv-header", 1),
        ("text,label\n" + '"' + "x" * (delimited.LONGEST + 1) + '",a\n', "csv", 2),
    ],
)
def test_bad_csv_is_named_by_its_line(content: str, id: str, line: int, tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", content)
    with pytest.raises(DataError) as caught:
        made(path)
    assert (caught.value.id, caught.value.where) == (id, f"{path}:{line}")


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4))
def test_any_values_come_back_from_csv(tmp_path: Path, values: list[tuple[str, str]]) -> None:
    table = pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]})
    out = io.BytesIO()
    delimited.write_csv([table], out, columns=["a", "b"])
    path = written(tmp_path / "x.csv", out.getvalue())
    read = [rows.table for rows in delimited.read_csv(path, columns=["a", "b"])]
    assert pa.concat_tables(read).equals(table)


def test_undo_gives_the_header_and_the_order_of_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", "label\tid\ttext\ngood\t1\tA film .\nbad\t2\tNo .\n")
    assert undone(made(path)) == path.read_bytes()
    again = tmp_path / "again"
    run_make(Pipeline.parse("inv"), SourceRequest(str(tmp_path / "x.tsv.out")), MakeOptions(again))
    assert undone(again) == path.read_bytes()


# labels are any classes

LABELS = {"strings": ["a", "b", "-"], "numbers": [3, 7, -2], "nli strings": ["neutral", "entailment", "maybe"]}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("sides", [("text",), ("premise", "hypothesis"), ("sentence1", "sentence2")])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv", "tsv", "map", "stream"])
def test_labels_are_kept_as_they_are(suffix: str, sides: tuple[str, ...], labels: list[Any], tmp_path: Path) -> None:
    data = {**{side: ["One .", "Two .", "Three ."] for side in sides}, "label": labels, "other": ["x", "y", "z"]}
    if suffix in ("map", "stream"):
        dataset = datasets.Dataset.from_dict(data)
        found = map_dataset(dataset.to_iterable_dataset() if suffix == "stream" else dataset, "inv")
        got = [(row["label"], row["other"]) for row in found]
    else:
        path = tmp_path / f"x.{suffix}"
        listed = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        if suffix == "parquet":
            pq.write_table(pa.table(data), path)
        elif suffix == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in listed))
        else:
            lines = [list(data), *(list(map(str, row.values())) for row in listed)]
            path.write_text("".join(("," if suffix == "csv" else "\t").join(line) + "\n" for line in lines))
            labels = [str(label) for label in labels]
        table = rows(made(path))
        got = list(zip(table["label"].to_pylist(), table["other"].to_pylist(), strict=True))
    assert got == list(zip(labels, "xyz", strict=True))


@pytest.mark.parametrize("labels", [["neutral"] * 1500 + ["Neutral "], ["Neutral ", "-", "entailment", None]])
def test_labels_of_inference_in_another_spelling_have_a_warning(labels: list[str | None], tmp_path: Path) -> None:
    """They are plain texts, which `xnli` cannot score."""
    listed = ({"premise": "a", "hypothesis": "b", "label": label} for label in labels)
    path = written(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in listed))
    told = run("make", "--t", "inv", path, "-o", tmp_path / "out").err
    assert "label holds 'Neutral ', so its values are plain texts; labels of xnli are entailment, neutral, c" in told


def test_a_late_label_decides(tmp_path: Path) -> None:
    """What a set's labels are does not depend on its first rows, nor on one of its files."""
    (tmp_path / "in").mkdir()
    row = '{"premise":"a","hypothesis":"b","label":"neutral"}\n'
    written(tmp_path / "in" / "x.train.jsonl", row * 1500)
    written(tmp_path / "in" / "x.test.jsonl", row + row.replace("neutral", "maybe"))
    out = made(tmp_path / "in")
    assert rows(out, "test")["label"].to_pylist() == ["neutral", "maybe"]
    assert set(rows(out, "train")["label"].to_pylist()) == {"neutral"}


# map_dataset


@pytest.mark.parametrize("value", [[{"text": "a"}], None, {"text": ["a"]}, "text", pa.table({"text": ["a"]})])
def test_map_of_what_is_no_dataset(value: Any) -> None:
    with pytest.raises(UsageError, match=r"map_dataset takes .*Dataset") as caught:
        map_dataset(value, "inv")
    assert caught.value.id == "dataset"


def test_labels_mean_the_same_in_all_splits() -> None:
    train = {"tokens": [["a", "b"]], "ner": [["B-PER", "I-PER"]]}
    test = {"tokens": [["c", "d"]], "ner": [["B-LOC", "O"]]}
    sets = datasets.DatasetDict({name: datasets.Dataset.from_dict(d) for name, d in [("train", train), ("test", test)]})
    found = map_dataset(sets, "inv")
    assert found["train"].features == found["test"].features
    assert (found["train"]["ner"][0], found["test"]["ner"][0]) == ([1, 2], [0, 3])
    sets["test"] = sets["test"].remove_columns("ner")
    with pytest.raises(UsageError, match=r"different columns"):
        map_dataset(sets, "inv")


@pytest.mark.parametrize(
    "options",
    [{"columns": ("text",)}, {"policies": {"entities": "drop"}}, {"parser": "english"}, {"lexicon": "missing.tsv"}],
)
def test_map_refuses_what_it_cannot_use(options: dict[str, Any]) -> None:
    with pytest.raises(DerivlangError, match=options.get("lexicon", f"{next(iter(options))}=")):
        map_dataset(datasets.Dataset.from_dict({"text": ["a b"]}), "inv", **options)


def test_derive_refuses_a_parser_without_use() -> None:
    with pytest.raises(UsageError, match="needs no trees"):
        derive("a b", "inv", parser="english")


def test_several_class_labels_of_a_row_keep_their_numbers() -> None:
    classes = datasets.Sequence(datasets.ClassLabel(names=["joy", "fear"]))
    features = datasets.Features({"text": datasets.Value("string"), "labels": classes})
    rows = datasets.Dataset.from_dict({"text": ["a b .", "c ."], "labels": [[1, 0], []]}, features=features)
    assert map_dataset(rows, "inv")["labels"][:] == [[1, 0], []]


def test_a_column_has_one_meaning() -> None:
    with pytest.raises(UsageError, match="named twice"):
        map_dataset(datasets.Dataset.from_dict({"tokens": [["a", "b"]]}), "inv", Columns(words=("tokens", "tokens")))


@pytest.mark.parametrize("name", ["words", "texts", "tags"])
def test_columns_take_no_string(name: str) -> None:
    with pytest.raises(UsageError, match=r"not a string"):
        Columns(**{name: "ab"})


def test_own_columns_of_derived_rows_are_no_labels() -> None:
    once = map_dataset(datasets.Dataset.from_dict({"tokens": [["a", "b", "."]], "upos": [["X", "X", "PUNCT"]]}), "inv")
    (twice,) = map_dataset(once, "inv")
    assert twice["tokens"] == twice["source_given"] == ["a", "b", "."]
    assert (twice["source"], twice["order_given"]) == (["b", "a", "."], [1, 0, 2])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a", "b"], "senses": [["x"], ["y", "z"]]}, r"'senses' are as long as the words in 1 of"),
        ({"tokens": ["a", "b"], "entities": [{"start": 0, "end": 1, "kind": "PER"}]}, r"'entities' do not move"),
        ({"text": "a b", "ner_tags": ["B-PER", "O"]}, r"'ner_tags' do not move .* no column of words"),
    ],
)
def test_labels_of_words_that_do_not_move_are_told(row: dict[str, Any], message: str) -> None:
    with pytest.warns(DerivlangWarning, match=message):
        map_dataset(datasets.Dataset.from_list([row]), "inv")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    for kind, values in {"text": ["a b"], "tokens": [["a"]]}.items():
        pq.write_table(pa.Table.from_arrays([pa.array(values)] * 2, names=[kind] * 2), tmp_path / "x.parquet")
        assert "two columns have the name" in run("show", tmp_path / "x.parquet", "-t", "inv", code=1).err


def test_lists_that_fit_some_rows_are_told() -> None:
    rows = datasets.Dataset.from_dict({"tokens": [["a", "b"], ["c", "d"]], "topics": [["x", "y"], ["z"]]})
    with pytest.warns(DerivlangWarning, match=r"'topics' are as long as the words in 1 of the first 2 rows") as caught:
        assert map_dataset(rows, "inv")["topics"][0] == ["x", "y"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("option", ["--entities=atomic", "--answers=drop", "--mwt=atomic", "--repair-tags"])
def test_an_option_about_missing_labels_is_told(option: str, tmp_path: Path) -> None:
    written(tmp_path / "a.txt", "a b .\n")
    for command in (["make", "-t", "inv"], ["parse"]):
        found = run(*command, tmp_path / "a.txt", "-o", tmp_path / command[0], option)
        assert f"so {option.partition('=')[0]} has no effect" in found.err
    with pytest.warns(DerivlangWarning, match="repair_tags=True has no effect"):
        map_dataset(datasets.Dataset.from_dict({"text": ["a b"]}), "inv", repair_tags=True)
    words = datasets.Dataset.from_dict({"tokens": [["a", "b"]]})
    unused: dict[str, dict[str, Any]] = {
        "words=": {"words": "unicode"},
        "lang=": {"lang": "de"},
        r"Columns\(tags=\)": {"columns": Columns(tags=("O", "B-PER"))},
    }
    for name, option in unused.items():
        with pytest.warns(DerivlangWarning, match=f"so {name} has no effect"):
            map_dataset(words, "inv", **option)
    assert "--repair-tags has no effect" in run("dict", "-t", "trans", tmp_path / "a.txt", "--repair-tags").err


def test_options_about_text_without_text(tmp_path: Path) -> None:
    """Lists of words are not split again, and a Parquet file has no encoding; no tree is looked for under `inv`."""
    pq.write_table(pa.table({"tokens": [["a", "b"]], "label": [1]}), tmp_path / "a.parquet")
    make = ("make", "-t", "inv", tmp_path / "a.parquet", "-o", tmp_path / "out")
    assert "has no effect" not in run(*make).err
    for option in ("--words=spacy", "--encoding=latin-1"):
        assert f"so {option.partition('=')[0]} has no effect" in run(*make, "--force", option).err


@pytest.mark.parametrize(
    ("data", "options", "advice"),
    [
        ({"body": ["a b"]}, {}, "Columns(texts=['body'])"),
        ({"tokens": [["a", "b", "c"]], "ner_tags": [["I-PER", "O", "B-PER"]]}, {}, "repair_tags=True"),
        ({"text": ["a b"]}, {"lang": "nope"}, "words='unicode'"),
    ],
)
def test_map_advises_arguments(data: dict[str, Any], options: dict[str, Any], advice: str) -> None:
    with pytest.raises(DerivlangError) as caught:
        map_dataset(datasets.Dataset.from_dict(data), "inv", **options)
    assert advice in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "options", "advice"),
    [
        ("inv", {"lang": "nope"}, "pass lang='xx' for rules that fit most alphabets, or words='unicode' or"),
        ("inv", {"parser": "english"}, "parser: inv needs no trees [unused-option]\n  leave parser= out"),
        ("syn:fr", {"lang": "de"}, "parser='stanza', parser='spacy:NAME', or a folder made by `derivlang parser"),
        ("trans:overlap=25", {}, "pass a saved one: lexicon='FILE'; `make` saves lexicon.tsv"),
    ],
)
def test_python_advises_arguments_and_commands_options(spec: str, options: dict[str, Any], advice: str) -> None:
    for function, data in ((derive, "a b"), (map_dataset, datasets.Dataset.from_dict({"text": ["a b"]}))):
        with pytest.raises(UsageError) as caught:
            function(data, spec, **options)
        assert advice in str(caught.value)
        assert "--" not in str(caught.value)
    lang = ["--lang", options["lang"]] if "lang" in options else []
    for command in ("derive", "show") if "parser" not in options else ():
        told = run(command, "--t", spec, *lang, "a b", code=2).err.replace(spec, "")
        assert "--" in told
        assert "=" not in told


def test_the_hub_says_what_is_wrong_with_the_name_that_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, config: str | None = None, **options: Any) -> Any:
        if (name, config) == ("glue", "mrpx"):
            raise ValueError("BuilderConfig 'mrpx' not found. Available: ['mrpc']\nmore")
        raise datasets.exceptions.DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(DataError, match=r"hub does not give glue/mrpx: BuilderConfig 'mrpx' not found"):
        find(SourceRequest("hub:glue/mrpx"))
    with pytest.raises(DataError, match=r"hub does not give owner/set: Dataset 'owner/set' doesn't exist"):
        find(SourceRequest("hub:owner/set"))
    with pytest.raises(DataError, match=r"the hub \(facebook/xnli/sw\) does not give it: Dataset 'facebook/xnli'"):
        find(SourceRequest("xnli:sw"))


# what parsers raise


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", '{"text":"a","n":' + "9" * 5000 + "}\n"),
        ("x.jsonl", '{"text":"a"}\n{"text":' + "[" * 100_000 + "\n"),
        ("x.jsonl", '{"text":"a","n":' + "[" * 900 + "]" * 900 + "}\n"),
        ("x.json", '{"data":' + "9" * 5000 + "}"),
        ("x.json", '{"data":' + "[" * 100_000),
        ("x.json", '{"data":[{"title":"t","paragraphs":[{"context":"a","qas":[{"id":"q","question":"?","answers":'
                   '[{"text":"a","answer_start":99999999999999999999}]}]}]}]}'),
        ("x.json", '{"data":[{"title":"t","paragraphs":[{"context":"a","qas":[{"id":"q","question":"?","answers":'
                   '[{"text":"","answer_start":99999999999}]}]}]}]}'),
    ],
)  # fmt: skip
def test_numbers_and_nesting_without_a_bound(name: str, content: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(DataError) as caught:
        made(path)
    assert str(caught.value.where).startswith(str(path))
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("encoding", ["idna", "punycode", "undefined", "hex", "utf9", "a\0b", ""])
def test_encodings_that_are_none_of_text(encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path / "x.txt", "a .\n")
    with pytest.raises(UsageError, match=r"unknown encoding"):
        made(path, encoding=encoding)


@pytest.mark.parametrize("encoding", ["unicode_escape", "utf-7", "utf-16", "utf-32", "raw_unicode_escape"])
@pytest.mark.parametrize("name", ["x.txt", "x.jsonl", "x.csv", "x.conllu", "x.json"])
def test_encodings_that_do_not_fit(name: str, encoding: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, b"text,label\n\\ud800 a+,b\n")
    with pytest.raises(DerivlangError):
        made(path, encoding=encoding)


NAMES = ["a\0b.txt", "dir/a\0b.txt", "ner:a\0b", "ner:**x", "pos:[", "hub:a\0b", "\ud800.txt", "x" * 5000 + ".txt"]


@pytest.mark.parametrize("source", NAMES, ids=range(len(NAMES)))
def test_names_that_no_file_has(source: str, tmp_path: Path) -> None:
    with pytest.raises(DerivlangError):
        find(SourceRequest(source, data_dir=tmp_path))


def test_a_file_name_that_is_no_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = os.fsencode(folder) + b"/caf\xe9.test.txt"
    Path(os.fsdecode(path)).write_text("A cat .\n")
    for number, source in enumerate((folder, Path(os.fsdecode(path)))):
        out = tmp_path / str(number)
        run_make(Pipeline.parse("inv"), SourceRequest(str(source), words="space"), MakeOptions(out))
        right(out)
        assert undone(out) == b"A cat .\n"
        assert manifest(out)["source"]["files"][0]["name"] == "caf\\xe9.test.txt"
    Path(os.fsdecode(path)).write_bytes(b"\xff\n")
    with pytest.raises(DataError, match=r"test\.txt:1"):
        run_make(Pipeline.parse("inv"), SourceRequest(str(folder), words="space"), MakeOptions(tmp_path / "bad"))


def test_a_nul_in_a_text_of_json_is_named_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", '{"text":"a"}\n{"text":"b\\u0000"}\n')
    with pytest.raises(DataError) as caught:
        made(path)
    assert (caught.value.id, caught.value.where) == ("nul-byte", f"{path}:2")


def test_columns_by_name_in_python() -> None:
    dataset = datasets.Dataset.from_dict({"review": ["One .", "Two ."], "label": ["x", "y"]})
    assert map_dataset(dataset, "inv", Columns(texts=("review",)))["label"] == ["x", "y"]


def test_delimited_read_needs_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--column-names"):
        list(delimited.read(written(tmp_path / "x.tsv", "a\tb\n")))


def test_a_null_among_tags_is_an_error_with_its_row(tmp_path: Path) -> None:
    """Found by fuzzing: the names of tags are collected before any row is read."""
    table = pa.table({"tokens": [["Ann", "runs"], ["Yes", "."]], "ner_tags": [["B-PER", "O"], ["O", None]]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"row 1.*ner_tags is None"):
        run_make(Pipeline.parse("inv"), SourceRequest(str(tmp_path / "a.parquet")), MakeOptions(tmp_path / "out"))
