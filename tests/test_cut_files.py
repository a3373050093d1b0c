"""Large files of every format are cut: wherever that is, the rows, their numbers and places are those of the file."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.errors import DerivlangError
from derivlang.formats import opening
from derivlang.formats.base import Format, find_format, format_names
from derivlang.formats.opening import WHOLE, Piece
from derivlang.formats.words import Splitter
from tests.commands import TREES as FRENCH
from tests.commands import make, run, shards, written
from tests.helpers import file_bytes, first_blocks, first_lines, read_text
from tests.real import SHARED, needs_data
from tests.test_contract_formats import SAMPLES

Found = tuple[list[Any], str | None]  # rows with their places, and the error after them


def mixed(*bits: str, most: int = 30) -> st.SearchStrategy[bytes]:
    """Any order of some bits of a file, after a byte-order mark or without one."""
    return st.tuples(st.sampled_from(["", "\ufeff"]), st.lists(st.sampled_from(bits), max_size=most)).map(
        lambda drawn: (drawn[0] + "".join(drawn[1])).encode()
    )


def parquet(values: list[int], group: int) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": [f"a {value}" for value in values], "label": values}), sink, row_group_size=group)
    return sink.getvalue()


WORD = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_"
JSON_LINES = [
    '{"a":1,"b":"x"}\n',
    '{"b":null,"a":2}\r\n',
    '{"a":1.5,"b":"é"}\n',
    "\n",
    " \n",
    "\u3000\n",
    '{"a":1}\n',
    "{",
]
TAGGED = [
    "a\tO\n",
    "é\tB-X\r\n",
    "\n",
    "\r\n",
    "# id = 1\n",
    "#\tO\n",
    "#b c\n",
    "-DOCSTART- X O\n",
    "-D\tO\n",
    "d O\n",
    " \t\n",
    "e  \tO \r\n",
    "1\ta\tO\n2\t#\tO\n",
]
TREES = [f"# sent_id = é\n{WORD}\n\n", "# newdoc\n", "# text = a\n", f"{WORD}\r\n\r\n", "\n", WORD, "1-2\ta\n"]
COLUMNS = {"columns": ["x", "y"]}
# Of each format, whatever its files may hold; options of its reader.
CONTENTS: dict[str, tuple[st.SearchStrategy[bytes], dict[str, Any]]] = {
    "text": (mixed("a", " ", "\n", "\r\n", "\u3000", "é b", "\n \n"), {}),
    "jsonl": (mixed(*JSON_LINES), {}),
    "delimited": (mixed("a\tb\n", "é\tc\r\n", "\n", "d", "\t", "text\tlabel\n"), COLUMNS),
    "csv": (
        mixed("a,b\n", '"', '"a\nb",c\n', '""', ",", "\n", "\r\n", "é,", 'c"d,e\n', "\r"),
        COLUMNS | {"header": True},
    ),
    "conllu": (mixed(*TREES), {}),
    "tagged": (mixed(*TAGGED), {}),
    "parquet": (st.builds(parquet, st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5)), {}),
    "squad": (st.just(SAMPLES["squad"]), {}),
    "bracketed": (mixed("(S (NP (DT a) (NN b)) (VP (V c)))\n", "( (S (X é)) )\r\n", "\n", "(S", " a)"), {}),
}


def found(format: Format, path: Path, pieces: list[Piece], options: dict[str, Any]) -> Found:
    """What the pieces of a file hold, read one after the other as tasks read them, until the first error."""
    rows: list[Any] = []
    first = line = 0
    try:
        for piece in pieces:
            piece = replace(piece, line=line)
            given = {name: value for name, value in options.items() if name != "types"}
            if format.running:
                for batch in read_text(path, Splitter("space"), piece):
                    rows += zip((batch.documents + first).tolist(), batch.texts().to_pylist(), strict=True)
            else:
                for table in format.rows(path, piece=piece, options=options):
                    places = [table.where(row) for row in range(table.table.num_rows)]
                    words = table.word_lines.to_pylist() if table.word_lines is not None else places
                    documents = (table.documents + first).tolist()
                    rows += zip(places, words, documents, table.table.to_pylist(), strict=True)
                    rows.append(table.table.schema)
            documents, lines = format.documents(path, piece=piece, options=given)
            first, line = first + documents, line + lines
    except DerivlangError as error:
        return rows, str(error)
    kinds = [row for row in rows if isinstance(row, pa.Schema)]
    rows = [row for row in rows if not isinstance(row, pa.Schema)]
    return [*rows, kinds[:1], all(kind.equals(kinds[0]) for kind in kinds), first, line], None


def test_every_format_is_tried() -> None:
    assert set(CONTENTS) == set(format_names())


@pytest.mark.parametrize("name", CONTENTS)
@given(data=st.data(), target=st.integers(1, 60), block=st.sampled_from([1, 7, 1 << 20]))
def test_any_cut_is_the_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: Any, target: int, block: int
) -> None:
    format = find_format(name)
    drawn, options = CONTENTS[name]
    if "columns" in options and data.draw(st.booleans()):
        options = options | {"header": False}
    path = tmp_path_factory.getbasetemp() / f"any{format.suffixes[0]}"
    path.write_bytes(data.draw(drawn))
    if format.types is not None:
        with suppress(DerivlangError):
            options = options | {"types": format.types_of(path, "utf-8", options)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BLOCK", block)
        try:
            pieces = format.pieces(path, target, options=CONTENTS[name][1])
        except DerivlangError:
            pieces = [WHOLE]
        begins = [piece.begin for piece in pieces]
        assert begins == sorted(set(begins))
        assert pieces == [WHOLE] or begins == [0, *(piece.end for piece in pieces[:-1])]
        (whole, error), (cut, same) = (found(format, path, each, options) for each in ([WHOLE], pieces))
    if error is None:
        assert cut == whole
    elif error.partition("\n")[0].endswith("[empty-file]"):  # only the whole split may be empty
        assert not cut[:-4]
    else:
        assert same is not None  # of several faults, either may be found first


# ---- faults


FAULTS: dict[str, tuple[str, str, str]] = {
    "jsonl": ('{"a":%d,"b":"x"}\n', '{"a":1,"b":2\n', "json"),
    "delimited": ("%d\tb\n", "a\n", "tsv-columns"),
    "conllu": (f"# sent_id = %d\n{WORD}\n\n", "1\ta\n\n", "conllu-columns"),
    "tagged": ("%d\tO\n\n", "a\n\n", "tsv-columns"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("bytes_", [None, b"\xff", b"\0"])
def test_a_fault_is_found_in_its_line(name: str, bytes_: bytes | None, tmp_path: Path) -> None:
    line, fault, id = FAULTS[name]
    format, (_, options) = find_format(name), CONTENTS[name]
    lines = [(line % i).encode() for i in range(40)]
    bad = fault.encode() if bytes_ is None else lines[23].replace(b"2", bytes_, 1)
    path = tmp_path / f"a{format.suffixes[0]}"
    path.write_bytes(b"".join([*lines[:23], bad, *lines[24:]]))
    pieces = format.pieces(path, 20, options=options)
    assert len(pieces) > 5
    (_, whole), (_, cut) = (found(format, path, each, options) for each in ([WHOLE], pieces))
    assert cut == whole
    assert str(whole).partition("\n")[0].endswith({None: f"[{id}]", b"\xff": "[encoding]", b"\0": "[nul-byte]"}[bytes_])


# ---- sets


def rows_of(out: Path) -> list[Any]:
    return pa.concat_tables([pq.read_table(path) for path in shards(out)]).to_pylist()


def both(tmp_path: Path, spec: str, source: Path, tokens: int, *options: object) -> Path:
    """The set of a file in one shard, and in several; they have the same rows, and the same file comes back."""
    for out, size in (("whole", 10**9), ("cut", tokens)):
        make(spec, source, tmp_path / out, "--shard-tokens", size, *options)
        run("undo", tmp_path / out, "-o", tmp_path / f"{out}{source.suffix}")
    assert len(shards(tmp_path / "whole")) == 1 < len(shards(tmp_path / "cut"))
    assert rows_of(tmp_path / "cut") == rows_of(tmp_path / "whole")
    if source.suffix == ".parquet":  # its row groups are those of the set
        assert pq.read_table(tmp_path / "cut.parquet").equals(pq.read_table(tmp_path / "whole.parquet"))
    else:
        assert (tmp_path / f"cut{source.suffix}").read_bytes() == (tmp_path / f"whole{source.suffix}").read_bytes()
    assert run("verify", tmp_path / "cut").code == 0
    manifests = [json.loads((tmp_path / out / "derivlang.json").read_text()) for out in ("whole", "cut")]
    counts = [{**one["splits"]["test"], "shards": []} for one in manifests]
    assert counts[0] == counts[1]
    for key in ("changed", "dropped", "entities", "vocabulary"):
        assert manifests[0][key] == manifests[1][key]
    return tmp_path / f"cut{source.suffix}"


JSON = [f'{{"text":"a dog {i} runs .","n":{0.5 if i == 7 else i}}}\n' for i in range(5000)]  # n is float in all pieces
FILES = {
    "jsonl": "".join(JSON[:1000]),
    "tsv": "text\tlabel\n" + "".join(f"a dog {i} runs .\t{i}\n" for i in range(40)),
    "conllu": FRENCH * 20,
    "conll": "Ada\tB-PER\nsleeps\tO\n\nHello\tO\n\n" * 30 + "Paris\tB-LOC\n",
}


@pytest.mark.parametrize(("suffix", "workers"), list(zip(FILES, cycle([2, 1]), strict=False)))
def test_a_set_of_several_shards(tmp_path: Path, suffix: str, workers: int) -> None:
    source = written(tmp_path / f"a-test.{suffix}", FILES[suffix])
    back = both(tmp_path, "trans,inv", source, len(FILES[suffix]) // 15, "--workers", workers)
    if suffix not in ("jsonl", "conll"):  # JSON is written without spaces, and an empty line follows each sentence
        assert back.read_bytes() == source.read_bytes()


def test_a_parquet_file(tmp_path: Path) -> None:
    source = tmp_path / "a-test.parquet"
    source.write_bytes(parquet([*range(900)], 100))
    both(tmp_path, "trans,inv", source, source.stat().st_size // 20)


@needs_data
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ud/UD_French-GSD/fr_gsd-ud-test.conllu", []),
        ("ud/UD_Hebrew-HTB/he_htb-ud-test.conllu.gz", []),
        ("ner/wikiann/fr/test.tsv", []),
        ("xnli/test.fr.tsv", ["--column-names", "premise,hypothesis,label"]),
    ],
)
def test_real_files(tmp_path: Path, name: str, options: list[str]) -> None:
    """The first sentences or pairs of each."""
    source = tmp_path / name.rpartition("/")[2].removesuffix(".gz")
    data = file_bytes(SHARED / name)
    cut = first_lines(data, 500) if "xnli" in name else first_blocks(data, 200)
    source.write_bytes(cut.removesuffix(b"\n") if "ner" in name else cut)  # whose files end without an empty line
    back = both(tmp_path, "inv", source, source.stat().st_size // 15, *options)
    assert back.read_bytes() == source.read_bytes()


def test_questions_whose_answers_are_groups_stay_together(tmp_path: Path) -> None:
    """The answers of all questions on a context are its groups, so that its rows are read by one task."""
    row = (
        '{"id":"q%d","context":"Ada lives in London .","question":"?","answers":{"text":["%s"],"answer_start":[%d]}}\n'
    )
    found = [("Ada lives", 0), ("in London", 10)] * 9
    source = written(tmp_path / "a-test.jsonl", "".join(row % (i, *each) for i, each in enumerate(found)))
    make("perm", source, tmp_path / "out", "--shard-tokens", 50, "--answers", "atomic")
    assert len(shards(tmp_path / "out")) == 1
    both(tmp_path, "perm", source, 50)
