"""Readers and writers: what is written is what was read, on real files to the byte."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from derivlang.core.arrays import offsets_of
from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.trees import in_cycle
from derivlang.formats import conllu, delimited, jsonl, opening, parquet, squad, tagged
from derivlang.formats.base import format_of
from derivlang.formats.opening import open_bytes, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows
from tests.commands import written
from tests.real import SHARED, needs_data

in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
CHARACTERS = st.characters(exclude_characters="\t\n\r\0\ufeff", exclude_categories=["Cs"])
VALUES = st.text(CHARACTERS, min_size=1, max_size=6)


def output_of(write: Callable[..., None], tables: Iterable[pa.Table], **options: Any) -> bytes:
    out = io.BytesIO()
    write(tables, out, **options)
    return out.getvalue()


def tables_of(all_rows: Iterable[Rows]) -> list[pa.Table]:
    return [rows.table for rows in all_rows]


def column(all_rows: Iterable[Rows], name: str) -> list[Any]:
    return [value for table in tables_of(all_rows) for value in table.column(name).to_pylist()]


# opening


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a\n",
        "\n\n",
        "é\r\n\r\nb\r",
        "a\r\r\nb",
        "\ufeffa\ufeff\n",
        "a\u2028b\x0bc\x85d\ne\x1ef",
        "🐈\r\n",
    ],
)
def test_lines_end_at_newlines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, block: int) -> None:
    monkeypatch.setattr(opening, "BLOCK", block)
    expected = text.removeprefix("\ufeff").split("\n")
    expected = [line.removesuffix("\r") for line in expected[:-1]] + expected[-1:]
    if not expected[-1]:
        expected.pop()
    assert list(open_lines(written(tmp_path / "x.txt", text))) == list(enumerate(expected, 1))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gb18030", "shift_jis", "latin-1", "utf-8-sig"])
def test_other_encodings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(opening, "BLOCK", 3)
    text = "\u010a\u0a0a une\ndeux\n" if encoding.startswith("utf") else "une\r\ndeux\n"
    path = written(tmp_path / "x.txt", text.encode(encoding))
    assert [line for _, line in open_lines(path, encoding)] == text.replace("\r", "").split("\n")[:-1]


@pytest.mark.parametrize("content", [b"", b"one\ntwo\n", b"a line\n" * 300_000])
def test_compressed_files_are_read_as_their_content(tmp_path: Path, content: bytes) -> None:
    compressor = zstandard.ZstdCompressor()
    paths = [
        written(tmp_path / "x.txt", content),
        written(tmp_path / "x.txt.gz", gzip.compress(content[:100]) + gzip.compress(content[100:])),
        written(tmp_path / "x.txt.zst", compressor.compress(content[:100]) + compressor.compress(content[100:])),
    ]
    for path in paths:
        with open_bytes(path) as stream:
            assert stream.read() == content
        assert list(open_lines(path)) == list(enumerate(content.decode().split("\n")[:-1], 1))


# CoNLL-U

UD = SHARED / "ud"
TREEBANKS = [
    "UD_English-EWT/en_ewt-ud-dev.conllu",
    "UD_French-GSD/fr_gsd-ud-dev.conllu",
    "UD_English-GUM/en_gum-ud-test.conllu.gz",
    "UD_Welsh-CCG/cy_ccg-ud-test.conllu.gz",
    "UD_Arabic-PUD/ar_pud-ud-test.conllu.gz",
    "UD_Turkish-IMST/tr_imst-ud-dev.conllu.gz",
    "UD_Hebrew-HTB/he_htb-ud-dev.conllu.gz",
    "UD_Scottish_Gaelic-ARCOSG/gd_arcosg-ud-test.conllu.gz",
]


@needs_data
@pytest.mark.parametrize("entities", [False, True])
@pytest.mark.parametrize("name", TREEBANKS)
def test_conllu_comes_back_to_the_byte(name: str, entities: bool) -> None:
    path = UD / name
    read = list(conllu.read(path, entities=entities))
    with open_bytes(path) as stream:
        assert output_of(conllu.write, tables_of(read)) == stream.read()
    assert conllu.count(path)[0] == sum(rows.table.num_rows for rows in read)


@needs_data
def test_conllu_rows_know_their_lines() -> None:
    path = UD / "UD_English-GUM/en_gum-ud-test.conllu.gz"
    lines = dict(open_lines(path))
    for rows in conllu.read(path, limit=300):
        assert rows.word_lines is not None
        for row, tokens in enumerate(rows.table.column("tokens").to_pylist()):
            assert lines[rows.lines[row]].startswith("#")
            assert [lines[n].split("\t")[1] for n in rows.word_lines[row].as_py()] == tokens
        name = rows.table["idx"][0].as_py()
        assert rows.where(0, 0) == f"{path}:{rows.word_lines[0][0].as_py()} (sent_id {name})"


SMALL = """\
# newdoc
# sent_id = s1
# text = Vámonos al mar
# text_en = Let's go
0.1\t_\t_\tVERB\t_\t_\t_\t_\t0:root\t_
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tVamos\tir\tVERB\tV\tMood=Imp\t0\troot\t0:root\tGloss=go|NER=B-X|Zed
1.1\t_\t_\t_\t_\t_\t_\t_\t_\t_
1.2\tx\t_\t_\t_\t_\t_\t_\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t1:obj\tNER=I-X
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t5:case\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t5:det\tBONER=1
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t1:obl:a\tXNER=1
5.1\t_\t_\t_\t_\t_\t_\t_\t_\t_

"""


def test_conllu_parts(tmp_path: Path) -> None:
    path = written(tmp_path / "x.conllu", "\n# only a comment\n\n" + SMALL + "1\t_\t_\t_\t_\t_\t0\troot\t_\t_")
    (rows,) = conllu.read(path, entities=True)
    first, last = rows.table.to_pylist()
    assert (first["idx"], last["idx"], last["comments"], last["tokens"]) == ("s1", "", [], ["_"])
    assert first["tokens"] == ["Vamos", "nos", "a", "el", "mar"]
    assert first["head"] == [0, 1, 5, 5, 1]
    assert first["ner_tags"] == ["B-X", "I-X", "O", "O", "O"]
    assert first["misc"] == ["Gloss=go|Zed", "_", "_", "BONER=1", "XNER=1"]
    assert [node["id"] for node in first["mwt"]] == ["1-2", "3-4"]
    assert [node["id"] for node in first["empty_nodes"]] == ["0.1", "1.1", "1.2", "5.1"]
    assert first["mwt"][0]["misc"] == "SpaceAfter=No"
    assert first["comments"][:2] == ["# only a comment", ""]
    assert rows.lines.tolist() == [2, 20]
    assert rows.word_lines is not None
    assert rows.word_lines.to_pylist() == [[10, 13, 15, 16, 17], [20]]
    assert rows.documents.tolist() == [0, 1]
    assert rows.table.schema.field("head").type == pa.list_(pa.int32())
    assert conllu.count(path)[0] == 2


@pytest.mark.parametrize("entities", [False, True])
def test_conllu_small_comes_back(tmp_path: Path, entities: bool) -> None:
    path = written(tmp_path / "x.conllu", SMALL * 2)
    assert output_of(conllu.write, tables_of(conllu.read(path, entities=entities))) == (SMALL * 2).encode()


def test_conllu_text_is_replaced_or_added(tmp_path: Path) -> None:
    """With multiword tokens it is their text, and their notes on white space do not fit it any more."""
    bare = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    (rows,) = conllu.read(written(tmp_path / "x.conllu", SMALL.replace("# text = Vámonos", "# text = old") + bare * 2))
    table = rows.table.append_column("text", pa.array(["Vamos nos a el mar", "b", None]))
    replaced = SMALL.replace("SpaceAfter=No", "_")
    assert output_of(conllu.write, [table]).decode() == replaced + "# text = b\n" + bare + bare


NODE = dict.fromkeys(conllu.NODE_FIELDS, "_") | {"id": "1-2"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("comments", [None]),
        ("mwt", [None]),
        ("mwt", [NODE | {"form": None}]),
        ("mwt", [NODE | {"id": "x-2"}]),
        ("mwt", [NODE | {"id": "9" * 5000 + "-2"}]),
        ("empty_nodes", [NODE | {"id": None}]),
    ],
)
def test_conllu_refuses_damaged_comments_and_nodes(column: str, value: list[Any]) -> None:
    types = pa.list_(pa.string()) if column == "comments" else conllu.NODES
    table = pa.table({"tokens": [["le", "chat"]], column: pa.array([value], types)})
    with pytest.raises(DerivlangError, match=r"null|lies outside"):
        output_of(conllu.write, [table])


@pytest.mark.parametrize(("name", "value"), [("comments", "text"), ("mwt", ["1-2"]), ("mwt", 3)])
def test_conllu_refuses_columns_of_another_type(name: str, value: Any) -> None:
    with pytest.raises(DerivlangError, match=f"the column {name} is|lies outside|null|line end") as caught:
        output_of(conllu.write, [pa.table({"tokens": [["le", "chat"]], name: [value]})])
    assert caught.value.id.startswith("conllu-")


def test_conllu_needs_only_tokens() -> None:
    table = pa.table({"tokens": [["le", "chat"], ["dort"]], "head": [[2, 0], [0]]})
    lines = [
        "1\tle\t_\t_\t_\t_\t2\t_\t_\t_",
        "2\tchat\t_\t_\t_\t_\t0\t_\t_\t_",
        "",
        "1\tdort\t_\t_\t_\t_\t0\t_\t_\t_",
    ]
    assert output_of(conllu.write, [table.slice(0, 2)]).decode() == "\n".join(lines) + "\n\n"
    assert output_of(conllu.write, [table.slice(1)]).decode() == lines[-1] + "\n\n"


@st.composite
def sentences(draw: st.DrawFn) -> str:
    """A well-formed sentence: heads point to words of a random order before them."""
    order = draw(st.permutations(range(1, draw(st.integers(1, 8)) + 1)))
    heads = {word: order[draw(st.integers(0, i - 1))] if i else 0 for i, word in enumerate(order)}
    lines = [f"# {value}" for value in draw(st.lists(VALUES, max_size=2))]
    covered = 0
    for word in range(len(order) + 1):
        if word:
            fields = [str(word), draw(VALUES), *draw(st.lists(VALUES, min_size=4, max_size=4))]
            lines.append("\t".join([*fields, str(heads[word]), *draw(st.lists(VALUES, min_size=3, max_size=3))]))
        rest = "\tf\tl\tu\tx\tf\t_\td\td\tm"
        lines += [f"{word}.{k + 1}{rest}" for k in range(draw(st.integers(0, 2)))]
        if word >= covered and word + 1 < len(order) and draw(st.booleans()):
            covered = draw(st.integers(word + 1, len(order)))
            lines.append(f"{word + 1}-{covered}{rest}")
    return "".join(f"{line}\n" for line in lines) + "\n"


@given(st.lists(sentences(), min_size=1, max_size=4))
@in_one_folder
def test_any_wellformed_conllu_comes_back(tmp_path: Path, blocks: list[str]) -> None:
    path = written(tmp_path / "x.conllu", "".join(blocks))
    assert output_of(conllu.write, tables_of(conllu.read(path))) == path.read_bytes()


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=10), min_size=1, max_size=5))
def test_cycles_are_those_found_by_walking(trees: list[list[int]]) -> None:
    trees = [[min(head, len(heads)) for head in heads] for heads in trees]

    def walks_in_circles(heads: list[int], word: int) -> bool:
        for _ in range(len(heads)):
            word = heads[word] - 1 if heads[word] else word
        return heads[word] != 0

    expected = [walks_in_circles(heads, i) for heads in trees for i in range(len(heads))]
    flat = np.array([head for heads in trees for head in heads], np.int32)
    assert in_cycle(flat, offsets_of(np.array([len(heads) for heads in trees]))).tolist() == expected


# tagged


@needs_data
@pytest.mark.parametrize("name", ["fr/dev.tsv", "en/train.tsv.gz", "zh/dev.tsv.gz"])
def test_tagged_comes_back_to_the_byte(name: str) -> None:
    path = SHARED / "ner/wikiann" / name
    read = list(tagged.read(path))
    with open_bytes(path) as stream:
        assert output_of(tagged.write, tables_of(read)) == stream.read()
    assert tagged.count(path)[0] == sum(rows.table.num_rows for rows in read) == read[-1].documents[-1] + 1


def test_tagged_prefixes_are_taken_off_only_if_all_have_one(tmp_path: Path) -> None:
    (rows,) = tagged.read(written(tmp_path / "x.tsv", "en:a\tO\nen:en:b\tB-X\n\nen::\tO\n"))
    assert column([rows], "tokens") == [["a", "en:b"], [":"]]
    (rows,) = tagged.read(written(tmp_path / "x.tsv", "en:a\tO\nb\tO\n"))
    assert column([rows], "tokens") == [["en:a", "b"]]


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("between", [(), ("NNP",), ("_", "_")])
def test_comments_of_tagged_files_are_no_words(between: tuple[str, ...], separator: str, tmp_path: Path) -> None:
    """A comment may have as many columns as the words, and a word may be `#`."""
    sentences = [["# B-PER", "Ann I-PER", "# O"], ["#ACL B-ORG", "met O"], ["# O"]]
    comments = [["# id = 1"], ["# id 77\tdomain=en", "# text = vitamin B-12 plus"], ["#begin document (x); part 000"]]
    blocks = []
    for lines, before in zip(sentences, comments, strict=True):
        words = [separator.join([word, *between, tag]) for word, tag in map(str.split, lines)]
        blocks.append("\n".join([*before, *words]) + "\n")
    path = written(tmp_path / "x.tsv", "# a licence\n\n" + "\n".join(blocks) + "\n# the end\n")
    (rows,) = tagged.read(path)
    assert rows.table.to_pylist() == [
        {"tokens": [line.split()[0] for line in lines], "ner_tags": [line.split()[1] for line in lines]}
        for lines in sentences
    ]
    assert [rows.where(i, 0).rpartition(":")[2] for i in range(3)] == ["4", "10", "14"]
    assert tagged.count(path)[0] == 3
    assert separator == " " or format_of(path).name == "tagged"


@pytest.mark.parametrize("line", ["#\tX", "#ACL", "#\tO", "# O", "#ACL\tB-ORG"])
def test_a_line_that_may_be_a_word_is_no_comment(line: str, tmp_path: Path) -> None:
    """Its columns are wrong, or its tag is, which is an error later: the word is not left out."""
    path = written(tmp_path / "x.conll", f"a\tX\tO\n\n{line}\n")
    with pytest.raises(DataError) as caught:
        list(tagged.read(path))
    assert (caught.value.id, caught.value.where) == ("tsv-columns", f"{path}:3")


def test_tagged_reads_conll2003(tmp_path: Path) -> None:
    content = "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\n. . O O\n\n\n-DOCSTART- -X- O O\nPeter NNP I-NP B-PER\n"
    path = written(tmp_path / "x.txt", content)
    (rows,) = tagged.read(path)
    assert column([rows], "tokens") == [["EU", "."], ["Peter"]]
    assert column([rows], "ner_tags") == [["B-ORG", "O"], ["B-PER"]]
    assert rows.lines.tolist() == [3, 8]
    assert rows.word_lines is not None
    assert rows.word_lines.to_pylist() == [[3, 4], [8]]
    assert tagged.count(path)[0] == 2


@given(
    st.lists(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), min_size=1, max_size=4),
    st.booleans(),
)
@in_one_folder
def test_any_tagged_sentences_come_back(
    tmp_path: Path, sentences: list[list[tuple[str, str]]], final_empty_line: bool
) -> None:
    tokens = [["x", *(token for token, _ in sentence)] for sentence in sentences]
    tags = [["O", *(tag.strip() or "O" for _, tag in sentence)] for sentence in sentences]
    table = pa.table({"tokens": tokens, "tags": tags})
    options = {"tag_column": "tags", "final_empty_line": final_empty_line}
    path = written(tmp_path / "x.tsv", output_of(tagged.write, [table, table.slice(1)], **options))
    read = list(tagged.read(path))
    assert (column(read, "tokens"), column(read, "ner_tags")) == (tokens + tokens[1:], tags + tags[1:])


# tab-separated values

PAIR = ("premise", "hypothesis", "label")


@needs_data
@pytest.mark.parametrize("name", ["xnli/dev.fr.tsv", "xnli/test.zh.tsv.gz", "nli/en_pairs.tsv", "pawsx/dev.fr.tsv"])
def test_delimited_comes_back_to_the_byte(name: str) -> None:
    read = list(delimited.read(SHARED / name, columns=PAIR, quoting=False))
    with open_bytes(SHARED / name) as stream:
        assert output_of(delimited.write, tables_of(read), columns=PAIR) == stream.read()
    assert delimited.count(SHARED / name)[0] == sum(rows.table.num_rows for rows in read)


@needs_data
def test_pawsx_has_a_header_and_quoted_fields() -> None:
    path = SHARED / "pawsx/test.de.tsv"
    plain, unwrapped = (list(delimited.read(path, quoting=quoting)) for quoting in (False, True))
    assert plain[0].table.column_names == ["id", "sentence1", "sentence2", "label"]
    assert delimited.count(path)[0] == sum(rows.table.num_rows for rows in plain) == 2000
    names = ("sentence1", "sentence2")
    changed = [(a, b) for n in names for a, b in zip(column(plain, n), column(unwrapped, n), strict=True) if a != b]
    assert len(changed) == 158
    assert all(a == '"' + b.replace('"', '""') + '"' for a, b in changed)
    assert plain[0].lines[0] == 2


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('"', '"'),
        ('""', ""),
        ('"""', '"""'),
        ('""""', '"'),
        ('"a"', "a"),
        ('"a""b"', 'a"b'),
        ('"a"b"', '"a"b"'),
    ],
)
def test_quoted_fields(tmp_path: Path, field: str, expected: str) -> None:
    path = written(tmp_path / "x.tsv", f"{field}\tx\n")
    assert column(delimited.read(path, columns=["a", "b"], quoting=True), "a") == [expected]
    assert column(delimited.read(path, columns=["a", "b"], quoting=False), "a") == [field]


def test_tagged_words_as_pandas_quotes_them_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", 'He\tO\n""""\tO\nno\tO\n')
    with pytest.raises(DataError, match=r"quotation mark as pandas writes it(?s:.*)quoting=3") as caught:
        list(tagged.read(path))
    assert (caught.value.id, caught.value.where) == ("tsv-quoting", f"{path}:2")


@pytest.mark.parametrize(
    ("row", "quoted"),
    [
        ('He slept .\t"He said ""no"" ."\t1', True),
        ('"He slept ."\t"He left ."\t"1"', True),
        ('"He slept ."\t"He left ."\t1', False),
        ('"He slept" and "left"\t"" He slept ""\t"1"', False),
    ],
)
def test_lines_that_look_quoted_are_refused(tmp_path: Path, row: str, quoted: bool) -> None:
    path = written(tmp_path / "x.tsv", f"a\tb\t0\n{row}\n")
    assert column(delimited.read(path, columns=PAIR, quoting=False), "premise") == ["a", row.split("\t")[0]]
    if quoted:
        with pytest.raises(DataError, match="--no-quoting") as caught:
            list(delimited.read(path, columns=PAIR))
        assert (caught.value.id, caught.value.where) == ("tsv-quoting", f"{path}:2")
    else:
        assert len(column(delimited.read(path, columns=PAIR), "label")) == 2


def test_headers(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tsv", "text\tother\na\tb\n")
    assert column(delimited.read(path, columns=["x", "y"]), "x") == ["text", "a"]
    assert column(delimited.read(path, header=True), "other") == ["b"]
    assert (delimited.count(path)[0], delimited.count(path, header=True)[0]) == (2, 1)
    path = written(tmp_path / "y.tsv", "text\n\nb\n")
    assert column(delimited.read(path), "text") == ["", "b"]
    path = written(tmp_path / "z.tsv", "text\tlabel\na\tb")
    assert column(delimited.read(path, header=False, columns=["x", "y"]), "x") == ["text", "a"]


# SQuAD


@needs_data
@pytest.mark.parametrize("name", ["xquad/xquad.de.json", "mlqa/dev-context-en-question-en.json"])
def test_squad_comes_back_as_the_same_rows(tmp_path: Path, name: str) -> None:
    path = SHARED / "qa" / name
    read = list(squad.read(path))
    again = list(squad.read(written(tmp_path / "x.json", output_of(squad.write, tables_of(read)))))
    assert pa.concat_tables(tables_of(read)).equals(pa.concat_tables(tables_of(again)))
    assert [rows.documents.tolist() for rows in read] == [rows.documents.tolist() for rows in again]
    assert squad.count(path)[0] == read[-1].documents[-1] + 1


def test_squad_limit_counts_paragraphs_and_answers_may_be_absent(tmp_path: Path) -> None:
    answer = {"text": "🐁 c", "answer_start": 2}
    qas = [{"id": "1", "question": "?", "answers": [answer]}, {"id": "2", "question": "?", "answers": []}]
    paragraphs = [
        {"context": "🐈 🐁 c", "qas": qas},
        {"context": "x", "qas": []},
        {"context": "🐈 🐁 c", "qas": qas},
    ]
    path = written(tmp_path / "x.json", json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    (rows,) = squad.read(path)
    assert rows.documents.tolist() == [0, 0, 2, 2]
    assert column([rows], "answers")[:2] == [
        {"text": ["🐁 c"], "answer_start": [2]},
        {"text": [], "answer_start": []},
    ]
    (two,) = squad.read(path, limit=2)
    assert two.documents.tolist() == [0, 0]
    table = rows.table.append_column("document", pa.array(rows.documents))
    data = json.loads(output_of(squad.write, [table.slice(0, 1), table.slice(1)]))
    assert [len(p["qas"]) for a in data["data"] for p in a["paragraphs"]] == [2, 2]
    assert data["version"] == "v2.0"
    assert data["data"][0]["paragraphs"][0]["qas"][1]["is_impossible"] is True


# JSON Lines, Parquet

JSON_VALUES = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(exclude_categories=["Cs"])),
        "n": st.integers(-(2**63), 2**63 - 1) | st.none(),
        "x": st.floats(allow_nan=False, allow_infinity=False),
        "tokens": st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
        "answers": st.fixed_dictionaries({"start": st.lists(st.integers(0, 9)), "yes": st.booleans()}),
    }
)


@given(st.lists(JSON_VALUES, min_size=1, max_size=5))
@in_one_folder
def test_any_json_lines_come_back(tmp_path: Path, values: list[dict[str, Any]]) -> None:
    content = "\n\n".join(json.dumps(value, ensure_ascii=False) for value in values)
    read = list(jsonl.read(written(tmp_path / "x.jsonl", content)))
    assert [row for rows in read for row in rows.table.to_pylist()] == values
    assert read[0].lines.tolist() == list(range(1, 2 * len(values), 2))
    assert jsonl.count(tmp_path / "x.jsonl")[0] == len(values)
    again = written(tmp_path / "y.jsonl", output_of(jsonl.write, tables_of(read)))
    assert tables_of(jsonl.read(again)) == tables_of(read)


def test_json_lines_keys_are_hexadecimal(tmp_path: Path) -> None:
    table = pa.table({"key": pa.array([255, 2**64 - 1], pa.uint64()), "text": ["é", '"']})
    expected = '{"key":"00000000000000ff","text":"é"}\n{"key":"ffffffffffffffff","text":"\\""}\n'
    assert output_of(jsonl.write, [table]).decode() == expected


def test_json_lines_have_one_schema(tmp_path: Path) -> None:
    first = ['{"a":1.5,"b":{"c":["x"],"d":1}}'] * ROWS_PER_TABLE
    path = written(tmp_path / "x.jsonl", "\n".join([*first, '{"b":{"c":[]},"a":2}']))
    one, two = tables_of(jsonl.read(path, types=jsonl.types(path)))
    assert two.schema == one.schema
    assert two.to_pylist() == [{"a": 2.0, "b": {"c": [], "d": None}}]


def test_parquet(tmp_path: Path) -> None:
    table = pa.table({"tokens": [["a"], [], ["b", "c"]] * 3000, "label": pa.array([1, 2, 3] * 3000, pa.int8())})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=5000)
    read = list(parquet.read(tmp_path / "x.parquet"))
    assert pa.concat_tables(tables_of(read)).equals(table)
    assert [n for rows in read for n in rows.documents] == list(range(9000))
    assert parquet.count(tmp_path / "x.parquet")[0] == 9000
    assert sum(rows.table.num_rows for rows in parquet.read(tmp_path / "x.parquet", limit=5001)) == 5001


# all readers


def many(folder: Path, format: str, n: int) -> tuple[Callable[..., Any], Path]:
    """The reader of a format and a file of n documents."""
    sentence = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    match format:
        case "conllu":
            return conllu.read, written(folder / "x.conllu", sentence * n)
        case "tagged":
            return tagged.read, written(folder / "x.tsv", "a\tO\n\n" * n)
        case "delimited":
            return delimited.read, written(folder / "y.tsv", "text\tlabel\n" + "a\tb\n" * n)
        case "squad":
            paragraph = {"context": "c", "qas": [{"id": "i", "question": "q", "answers": []}]}
            data = {"data": [{"title": "t", "paragraphs": [paragraph] * n}]}
            return squad.read, written(folder / "x.json", json.dumps(data))
        case "jsonl":
            return jsonl.read, written(folder / "x.jsonl", '{"a":1}\n' * n)
        case _:
            pq.write_table(pa.table({"a": [1] * n}), folder / "x.parquet")
            return parquet.read, folder / "x.parquet"


@pytest.mark.parametrize("format", ["conllu", "tagged", "delimited", "squad", "jsonl", "parquet"])
def test_limit_and_documents(tmp_path: Path, format: str) -> None:
    read, path = many(tmp_path, format, ROWS_PER_TABLE + 3)
    for limit in (None, 0, 1, ROWS_PER_TABLE, ROWS_PER_TABLE + 1, ROWS_PER_TABLE + 99):
        expected = min(ROWS_PER_TABLE + 3, ROWS_PER_TABLE + 99 if limit is None else limit)
        read_rows = list(read(path, limit=limit))
        assert [n for rows in read_rows for n in rows.documents.tolist()] == list(range(expected))
        for rows in read_rows:
            n_rows = rows.table.num_rows
            assert 0 < n_rows == len(rows.lines) == len(rows.documents)
            assert rows.lines.dtype == rows.documents.dtype == np.int64
            assert rows.word_lines is None or len(rows.word_lines) == n_rows


def test_json_lines_are_what_json_dumps_gives_each_row() -> None:
    """Columns are written as whole arrays; nulls, empty lists and values of every type come out as in one row."""
    columns = {
        'a "name"\n': pa.array(["x\u2028", "\\", "", '"']),
        "large": pa.array(["é", "\x7f\x01", "\U0001f600", "é"], pa.large_string()),
        "null": pa.array([None, "a", None, "null"]),
        "words": pa.array([["a", "b"], [], ["c\t"], ["a"]]),
        "some": pa.array([["a", None], None, [], ["b"]]),
        "deep": pa.array([[[1], []], [], [[2, 3]], [[]]]),
        "float": pa.array([1.5, 1e300, -0.0, 2.0]),
        "flag": pa.array([True, False, None, True]),
        "struct": pa.array([{"n": 1}, {"n": None}, None, {"n": 2}]),
        "int": pa.array([1, -2, 3, 127], pa.int8()),
        "coded": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
        "nothing": pa.nulls(4),
    }
    table = pa.table(columns)
    for some in (table, table.slice(1, 2), table.slice(0, 0), pa.concat_tables([table] * 3000)):
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in some.to_pylist()]
        assert output_of(jsonl.write, [some]).decode().split("\n") == [*lines, ""]
    keys = pa.table({"key": pa.array([1, None, 2**64 - 1], pa.uint64())})
    expected = '{"key":"0000000000000001"}\n{"key":null}\n{"key":"ffffffffffffffff"}\n'
    assert output_of(jsonl.write, [keys]).decode() == expected
