"""Trees in brackets: text and arrays, files, and what becomes of constituents when their words move."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import offsets_of
from derivlang.core.batch import Batch, realign
from derivlang.core.brackets import BracketFault, read_brackets
from derivlang.core.errors import DataError, LayerError
from derivlang.core.keys import string_buffers
from derivlang.core.layers.base import Labels
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.core.order import Order
from derivlang.core.schema import Field
from derivlang.display.rows import pieces_of
from derivlang.formats.bracketed import FORMAT, read, write
from derivlang.sources.infer import infer
from tests.commands import run, written
from tests.helpers import make, manifest, right, undone
from tests.strategies import batch_of, few_words, gathered, laws, seeds, some_brackets, some_order, units_of

FIELD = Field(PARSE, "constituents")
WSJ = """
( (S
    (NP-SBJ-1 (DT The) (JJ old) (NN ferry) )
    (VP (VBZ seems)
      (S (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB leave) (NP (-NONE- *T*-2)) (PP-TMP (IN at) (NP (CD 1\\/2) (-LRB- -LRB-) (NN noon) (-RRB- -RRB-) ))))))
    (. .) ))
(TOP (S (NP (NNP Ann)) (VP (VBZ sleeps)) (. .)))  (S (NP Bo) (VP left))

"""


def trees_of(units: list[list[str]], seed: int) -> Batch:
    rng = random.Random(seed)
    texts = pa.array([some_brackets(unit, rng) for unit in units], pa.string())
    batch = batch_of(units)
    return batch_of(units, layers={PARSE: ConstituentTrees.read(FIELD, Labels({PARSE: texts}, batch))})


def texts_of(batch: Batch) -> list[str]:
    layer = batch.layers[PARSE]
    assert isinstance(layer, ConstituentTrees)
    texts: list[str] = layer.columns(batch)[PARSE].to_pylist()
    return texts


# By the definition, node by node: a second implementation, of nested lists [label, child, child …].


def nested(text: str) -> list[list]:
    stack: list[list] = [[""]]
    for part in re.findall(r"[()]|[^()\s]+", text):
        if part == "(":
            stack.append([])
        elif part == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(part)
    return stack[0][1:]


def spans_of(trees: list[list], at: int = 0, depth: int = 0) -> Iterator[tuple[int, int, int, str]]:
    """(first word, words, depth, label) of each constituent."""
    for tree in trees:
        if isinstance(tree, str):
            at += 1
            continue
        below = list(spans_of(tree[1:], at, depth + 1))
        size = sum(1 for _ in leaves_of(tree[1:]))
        yield at, size, depth, tree[0]
        yield from below
        at += size


def leaves_of(trees: list[list]) -> Iterator[str]:
    for tree in trees:
        if isinstance(tree, str):
            yield tree
        else:
            yield from leaves_of(tree[1:])


def expected_text(text: str, words: list[str], index: list[int]) -> str:
    """The tree of the derived words: each constituent whose words are adjacent there, insertions aside."""
    place = {word: at for at, word in enumerate(index) if word >= 0}
    rank = {at: n for n, at in enumerate(sorted(place.values()))}
    kept = []
    for order, (first, size, _, label) in enumerate(spans_of(nested(text))):
        at = sorted(place[word] for word in range(first, first + size) if word in place)
        if at and rank[at[-1]] - rank[at[0]] + 1 == len(at):
            kept.append((at[0], -(at[-1] + 1), order, label))
    kept.sort()
    outer = 0
    for n, (first, end, order, label) in enumerate(kept):
        if first >= outer:  # it stands in no other one, and takes what is inserted at the edges
            outer = -end
            first = 0 if max(index[:first], default=-1) < 0 else first
            end = end if max(index[-end:], default=-1) >= 0 else -len(index)
            kept[n] = (first, end, order, label)
    parts, ends = [], []
    for at, word in enumerate(words):
        while kept and kept[0][0] == at:
            _, end, _, label = kept.pop(0)
            parts.append(f"({label}")
            ends.append(-end)
        closing = 0
        while ends and ends[-1] == at + 1:
            ends.pop()
            closing += 1
        parts.append(word.replace("(", "-LRB-").replace(")", "-RRB-") + ")" * closing)
    return " ".join(parts)


@laws
@given(units_of(few_words), seeds, seeds, st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.3]))
def test_the_derived_tree_is_the_one_of_the_definition(
    units: list[list[str]], seed: int, shuffle: int, insert: float, delete: float
) -> None:
    batch = trees_of(units, seed)
    order = some_order(batch.sentences, shuffle, insert=insert, delete=delete)
    derived = realign(batch, order)
    bounds, source = derived.unit_words.tolist(), batch.unit_words.tolist()
    words = gathered(batch.strings().to_pylist(), order)
    for unit, (text, found) in enumerate(zip(texts_of(batch), texts_of(derived), strict=True)):
        begin, end = bounds[unit], bounds[unit + 1]
        index = [i - source[unit] if i >= 0 else -1 for i in order.index[begin:end].tolist()]
        assert found == expected_text(text, words[begin:end], index)


def test_many_trees_are_read_as_each_by_itself() -> None:
    texts = ["(S (NP big Ann) (VP sleeps))", "", "(X a) b ( (Y c) () (Z))", "(ROOT (S (S no)))", "one two"] * 3000
    letters, offsets = string_buffers(pa.array(texts))
    read = read_brackets(letters, offsets)
    assert not isinstance(read, BracketFault)
    found, leaves = read
    names, words = found.names.to_pylist(), leaves.words().to_pylist()
    first = np.searchsorted(found.start, leaves.offsets)
    for row in range(0, len(texts), 997):
        one = read_brackets(*string_buffers(pa.array(texts[row : row + 1])))
        assert not isinstance(one, BracketFault)
        begin, inside = int(leaves.offsets[row]), slice(int(first[row]), int(first[row + 1]))
        assert words[begin : int(leaves.offsets[row + 1])] == one[1].words().to_pylist()
        assert [names[label] for label in found.label[inside]] == one[0].names.take(pa.array(one[0].label)).to_pylist()
        assert (found.start[inside] - begin).tolist() == one[0].start.tolist()
        assert (found.end[inside] - begin).tolist() == one[0].end.tolist()
        parents = found.parent[inside]
        assert np.where(parents < 0, -1, parents - inside.start).tolist() == one[0].parent.tolist()
    texts[11_111] = "(S (NP a)"
    fault = read_brackets(*string_buffers(pa.array(texts)))
    assert isinstance(fault, BracketFault)
    assert (fault.row, fault.byte) == (11_111, len("".join(texts[:11_111])))


@laws
@given(units_of(few_words), seeds)
def test_mirrored_words_keep_every_constituent(units: list[list[str]], seed: int) -> None:
    batch = trees_of(units, seed)
    one_each = batch_of(units, layers=batch.layers, split=False)
    bounds = one_each.sentences.tolist()
    index = [word for begin, end in pairwise(bounds) for word in reversed(range(begin, end))]
    order = Order(np.array(index, np.int32), one_each.sentences, one_each.tails, batch.n_words)
    derived = realign(one_each, order)
    for text, found in zip(texts_of(one_each), texts_of(derived), strict=True):
        before, after = (sorted(span[1:] for span in spans_of(nested(tree))) for tree in (text, found))
        assert before == after


def test_an_inserted_word_belongs_to_what_holds_both_of_its_neighbours() -> None:
    text = "(S (NP big Ann) (VP sleeps))"
    layer = ConstituentTrees.read(FIELD, Labels({PARSE: pa.array([text])}, batch_of([["big", "Ann", "sleeps"]])))
    batch = batch_of([["big", "Ann", "sleeps"]], layers={PARSE: layer})
    for index, expected in {
        (0, -1, 1, 2): "(S (NP big + Ann) (VP sleeps))",
        (0, 1, -1, 2): "(S (NP big Ann) + (VP sleeps))",
        (0, 1, 2, -1): "(S (NP big Ann) (VP sleeps) +)",
        (-1, 0, 1, 2, -1, -1): "(S + (NP big Ann) (VP sleeps) + +)",
        (0, -1, 2, 1): "(S big + (VP sleeps) Ann)",
        (2, -1): "(S (VP sleeps) +)",
        (*[-1] * 9, 1, 2): f"(S{' +' * 9} (NP Ann) (VP sleeps))",  # more words come than there were
    }.items():
        words, none = np.array(index, np.int32), np.zeros(1, np.int32)
        order = Order(words, offsets_of(np.array([len(words)])), none, 3, pa.array(["+"]), none)
        assert texts_of(realign(batch, order)) == [expected]


@pytest.mark.parametrize(
    ("texts", "row", "byte", "what"),
    [
        (["(S a)", "(S (NP a)", "(S b)"], 1, 0, "never closes"),
        (["(S a) (S (NP b)"], 0, 6, "never closes"),
        (["(S a))", "(S b"], 0, 5, "none is open"),
        (["(S a", ")"], 0, 0, "never closes"),
        (["", ") (S a)"], 1, 0, "none is open"),
    ],
)
def test_brackets_that_do_not_match(texts: list[str], row: int, byte: int, what: str) -> None:
    fault = read_brackets(*string_buffers(pa.array(texts)))
    assert isinstance(fault, BracketFault)
    assert (fault.row, fault.byte - sum(map(len, texts[:row]))) == (row, byte)
    assert what in fault.what


@pytest.mark.parametrize(
    ("tree", "id"),
    [
        ("(S (NP a)", "brackets"),
        ("(S a b c)", "label-length"),
        ("(S a x)", "brackets"),
        ("(S  a b)", "brackets"),
        ("( (S a b))", "brackets"),
        (None, "null-value"),
    ],
)
def test_a_column_with_a_wrong_tree_is_one_error_with_its_place(tree: str | None, id: str) -> None:
    labels = Labels({PARSE: pa.array(["(S c)", tree])}, batch_of([["c"], ["a", "b"]]), lambda row, word: f"file:{row}")
    with pytest.raises(LayerError) as caught:
        ConstituentTrees.read(FIELD, labels)
    assert (caught.value.id, caught.value.where) == (id, "file:1")


# files


def rows_of(path: Path, **options: int) -> list[dict]:
    return [row for rows in read(path, **options) for row in rows.table.to_pylist()]


def test_a_file_of_the_penn_treebank(tmp_path: Path) -> None:
    rows = rows_of(written(tmp_path / "a.mrg", WSJ))
    assert [" ".join(row["tokens"]) for row in rows] == [
        "The old ferry seems to leave at 1/2 ( noon ) .",
        "Ann sleeps .",
        "Bo left",
    ]
    assert rows[0]["parse"] == (
        "(S (NP-SBJ-1 (DT The) (JJ old) (NN ferry)) (VP (VBZ seems) (S (VP (TO to) (VP (VB leave) "
        "(PP-TMP (IN at) (NP (CD 1/2) (-LRB- -LRB-) (NN noon) (-RRB- -RRB-))))))) (. .))"
    )
    assert [row["parse"] for row in rows[1:]] == [
        "(TOP (S (NP (NNP Ann)) (VP (VBZ sleeps)) (. .)))",
        "(S (NP Bo) (VP left))",
    ]
    assert [rows.where(row) for rows in read(tmp_path / "a.mrg") for row in range(3)] == [
        f"{tmp_path / 'a.mrg'}:{line}" for line in (2, 9, 9)
    ]


@laws
@given(
    units_of(few_words, min_size=1),
    seeds,
    st.lists(st.sampled_from(["\n", " ", "\n\n  ", "\r\n", "\t"]), min_size=6, max_size=6),
    st.booleans(),
)
def test_a_file_is_written_as_it_was(units: list[list[str]], seed: int, spaces: list[str], wrapped: bool) -> None:
    rng = random.Random(seed)
    texts = [some_brackets(unit, rng) for unit in units]
    loose = [f"( {text.replace(' (', spaces[0] + '(')} )" if wrapped else text for text in texts]
    content = "".join(text + rng.choice(spaces) for text in loose)
    path = Path(_folder()) / "x.mrg"
    path.write_bytes(content.encode())
    tables = [rows.table for rows in read(path)] if units else []
    out = io.BytesIO()
    write(tables, out)
    assert out.getvalue().decode() == ("" if not units else content)
    assert [row for table in tables for row in table["tokens"].to_pylist()] == units
    assert [row for table in tables for row in table["parse"].to_pylist()] == texts


def _folder() -> str:
    import tempfile

    return tempfile.mkdtemp(prefix="derivlang-trees-")


def test_large_files_are_read_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("derivlang.formats.bracketed._BLOCK", 100)
    path = written(tmp_path / "a.mrg", WSJ * 20)
    whole = rows_of(path)
    assert len(whole) == 60
    assert [row["parse"] for row in whole] == 20 * [row["parse"] for row in rows_of(written(tmp_path / "b.mrg", WSJ))]
    for limit in (0, 1, 3, 4, 31):
        assert rows_of(path, limit=limit) == whole[:limit]
    out = io.BytesIO()
    write([rows.table for rows in read(path)], out)
    assert out.getvalue().decode() == WSJ * 20


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("(S ok)\n(S (NP a)\n", 2, "never closes"),
        ("(S ok)\n(S\n a)\n)\n", 4, "none is open"),
        ("(S ok)\n\nword (S a)\n", 3, "'word' stands outside"),
        ("(S ok)\n(S a) word\n", 2, "'word' stands outside"),
        ("(S ok)\n(S)\n", 2, "without words"),
        ("(S ok)\n(S (NP (-NONE- *)))", 2, "without words"),
        ("(S ok)\n()\n", 2, "without words"),
        (") word", 1, "none is open"),
    ],
)
def test_a_wrong_file_is_one_message_with_its_line(text: str, line: int, what: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", text)
    with pytest.raises(DataError, match=what) as caught:
        list(FORMAT.rows(path))
    assert caught.value.where == f"{path}:{line}"
    failed = run("make", path, "--t", "inv", "-o", tmp_path / "out", code=1)
    assert failed.err.count("derivlang: ") == 1


def test_trees_are_shown_a_word_a_line(tmp_path: Path) -> None:
    assert pieces_of("(S (NP big Ann) (VP sleeps))") == ("(S (NP big", "    Ann)", "  (VP sleeps))")
    assert pieces_of("") == ()
    shown = run("show", "--t", "inv", written(tmp_path / "a.mrg", "(S (NP (NN dog)) (VP (VBZ barks)))\n")).out
    assert shown.splitlines()[-2:] == [
        "    0 barks  <-   1 barks  (S (VP (VBZ barks))",
        "    1 dog    <-   0 dog      (NP (NN dog)))",
    ]


@pytest.mark.parametrize("spec", ["inv", "perm", "trans,inv", "shuffle:local=3", "inv:from=random:mark=R,trans"])
def test_a_set_of_trees_is_made_verified_and_undone(spec: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", WSJ * 30)
    out = make(spec, path, tmp_path / "out")
    right(out)
    assert undone(out, suffix=".mrg").decode() == WSJ * 30
    splits = manifest(out)["changed"].get("parse-split", 0)
    assert (splits > 0) == (spec in ("perm", "shuffle:local=3"))


def test_trees_are_read_from_json_lines_with_words(tmp_path: Path) -> None:
    row = {"tokens": ["a", "(", "b"], "parse": "(S a (NP -LRB- b))"}
    path = written(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    out = make("inv", path, tmp_path / "out")
    assert run("show", out, "--json").json["values"] == {"parse": "(S (NP b -LRB-) a)"}
    other = written(tmp_path / "b.jsonl", json.dumps({**row, "parse": "(S (NP a b) c d)"}) + "\n")
    assert run("show", make("inv", other, tmp_path / "other"), "--json").json["values"] == {"parse": "(S (NP a b) c d)"}


@pytest.mark.parametrize(
    ("trees", "row", "why"),
    [
        (["(S a b)", None, "(S a b)"], 2, r"it has no value \(null\)"),
        (["(S (NP a)  b)", "(S a b)"], 1, "or not one space between its parts"),
        (["(S a b)", "(S a b", "(S a"], 2, "it does not have the words of its row"),
    ],
)
def test_trees_that_stay_as_they_are_are_one_warning(trees: list[str | None], row: int, why: str) -> None:
    table = pa.table({"tokens": [["a", "b"]] * len(trees), "parse": trees})
    with pytest.warns(UserWarning, match=f"'parse' do not move .* row {row} of the first {len(trees)} rows .*{why}"):
        schema, _ = infer(table.schema, table, where="x")
    assert schema.field("parse").kind == "value"


@pytest.mark.filterwarnings("error")
def test_a_column_parse_without_trees_is_no_warning() -> None:
    table = pa.table({"tokens": [["a", "b"]] * 2, "parse": ["good", None]})
    assert infer(table.schema, table, where="x")[0].field("parse").kind == "value"
