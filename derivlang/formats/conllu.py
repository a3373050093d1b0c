"""CoNLL-U: a word a line in ten columns, a tree a sentence (universaldependencies.org/format).

Reading keeps all that a well-formed file holds, writing gives it back byte for byte. Syntactic words
(ids 1..n) are the `tokens`; the lines of multiword tokens (`3-4`) and empty nodes (`8.1`) are kept beside
them. Heads are 1-based in their sentence, 0 = root; each sentence is a tree with one root.

    1<TAB>Paris<TAB>Paris<TAB>PROPN … 2<TAB>nsubj …
    2<TAB>dort<TAB>dormir<TAB>VERB … 0<TAB>root …    ->   tokens [Paris, dort], head [2, 0]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, offsets_of, owners, places
from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.errors import DataError, LayerError
from derivlang.formats.conllu_checks import Places, check_ids, checked_heads
from derivlang.formats.delimited import split_columns
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import ROWS_PER_TABLE, Rows

WORD_COLUMNS = ("tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NODE_FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
NODE = pa.struct([(name, pa.string()) for name in NODE_FIELDS])
Node: TypeAlias = dict[str, str]
SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.*)")
TEXT = re.compile(r"#\s*text\s*=")


def read(
    path: Path | str, *, encoding: str = "utf-8", limit: int | None = None, entities: bool = False
) -> Iterator[Rows]:
    """One row a sentence, with `word_lines`; a document is a sentence. Comments without words are skipped.

    Columns: idx string (the sent_id, or ""), comments list<string> (verbatim), tokens, lemmas, upos, xpos,
    feats, deprel, deps, misc list<string>, head list<int32>, mwt and empty_nodes list<NODE>; with `entities`
    also ner_tags list<string>, taken out of MISC's `NER=` (`O` where there is none).
    limit: at most that many sentences.
    Raises DataError: conllu-columns, conllu-ids, conllu-comment, empty-file, and those of `open_lines`;
    LayerError: head-range, head-root, head-cycle.
    """
    path = Path(path)
    done = 0
    for lines in _chunks(path, encoding, limit):
        yield _rows(path, lines, done, entities)
        done += len(lines.lengths)
    if done == 0 and limit != 0:
        raise empty_file(path, "sentence")


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """The rows as CoNLL-U: what `read` gave comes out byte for byte. Only `tokens` must be there.

    A list column that is missing is written `_`. A column `text` replaces the comment `# text = …`, or is
    added to the comments; `ner_tags` other than `O` go into MISC as `NER=`.
    Raises DataError conllu-value (a tab, a line end, an empty value), LayerError layer-length, conllu-ids.
    """
    for table in tables:
        out.write(_text(table).encode())


def count(path: Path | str, encoding: str = "utf-8") -> int:
    """The number of sentences with words (lines with the id 1)."""
    return sum(line.startswith("1\t") for _, line in open_lines(path, encoding))


@dataclass(slots=True)
class _Lines:
    """The lines of some sentences.

    nodes, numbers: lines of words, multiword tokens and empty nodes with their line numbers. lengths: such
    lines of each sentence. comments, starts: comments and first line of each sentence.
    """

    nodes: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    comments: list[list[str]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def _chunks(path: Path, encoding: str, limit: int | None) -> Iterator[_Lines]:
    if limit == 0:
        return
    done = start = first_line = 0
    comments: list[str] = []
    chunk = _Lines()
    nodes, numbers = chunk.nodes, chunk.numbers
    for number, line in chain(open_lines(path, encoding), [(0, "")]):  # the last empty line may be missing
        if not line:
            if len(nodes) > start:
                chunk.lengths.append(len(nodes) - start)
                chunk.comments.append(comments)
                chunk.starts.append(first_line)
                start = len(nodes)
                done += 1
                if len(chunk.lengths) == ROWS_PER_TABLE or done == limit:
                    yield chunk
                    if done == limit:
                        return
                    chunk = _Lines()
                    nodes, numbers, start = chunk.nodes, chunk.numbers, 0
            comments = []
        elif line[0] == "#":
            if len(nodes) > start:
                raise DataError(
                    "a comment stands between the words of a sentence",
                    where=f"{path}:{number}",
                    fix="move it before the first word, or put an empty line before it",
                    id="conllu-comment",
                )
            if not comments:
                first_line = number
            comments.append(line)
        else:
            if len(nodes) == start and not comments:
                first_line = number
            nodes.append(line)
            numbers.append(number)
    if chunk.lengths:
        yield chunk


def _rows(path: Path, lines: _Lines, done: int, entities: bool) -> Rows:
    columns = split_columns(lines.nodes, len(NODE_FIELDS))
    if isinstance(columns, int):
        n_columns = lines.nodes[columns].count("\t") + 1
        raise _bad_columns(path, lines.numbers[columns], f"has {n_columns} columns, expected {len(NODE_FIELDS)}")
    if "" in columns[1]:
        raise _bad_columns(path, lines.numbers[columns[1].index("")], "has an empty FORM")
    names = [_sent_id(comments) for comments in lines.comments]
    node_offsets = offsets_of(np.array(lines.lengths))
    numbers = np.array(lines.numbers, np.int32)
    is_word = np.array([id.isdecimal() for id in columns[0]])
    offsets = offsets_of(np.add.reduceat(is_word, node_offsets[:-1], dtype=np.int64))
    at = Places(path, names, offsets, numbers[is_word])
    check_ids(at, columns[0], is_word, node_offsets, numbers)

    nodes = [pa.array(column, pa.string()) for column in columns]
    words = nodes if is_word.all() else [node.filter(to_arrow(is_word)) for node in nodes]
    values = dict(zip(WORD_COLUMNS, words[1:], strict=True))
    values["head"] = checked_heads(at, values["head"])
    if entities:
        values["misc"], values["ner_tags"] = _take_entities(values["misc"])
    is_range = ~is_word & to_numpy(pc.match_substring(nodes[0], "-"))
    table = pa.table(
        {
            "idx": pa.array(names, pa.string()),
            "comments": pa.array(lines.comments, pa.list_(pa.string())),
            **{name: list_array(offsets, array) for name, array in values.items()},
            "mwt": _node_lists(nodes, is_range, node_offsets),
            "empty_nodes": _node_lists(nodes, ~is_word & ~is_range, node_offsets),
        }
    )
    documents = np.arange(done, done + len(names), dtype=np.int64)
    word_lines = list_array(offsets, to_arrow(at.lines))
    return Rows(path, table, np.array(lines.starts, np.int64), documents, word_lines)


def _bad_columns(path: Path, number: int, fault: str) -> DataError:
    return DataError(
        f"the line {fault}",
        where=f"{path}:{number}",
        fix="write ten columns, single tabs between them; an empty one is written _",
        id="conllu-columns",
    )


def _sent_id(comments: list[str]) -> str:
    for comment in comments:
        if "sent_id" in comment and (found := SENT_ID.match(comment)):
            return found[1]
    return ""


def _take_entities(misc: pa.Array) -> tuple[pa.Array, pa.Array]:
    """MISC without `NER=`, and the tags."""
    values = misc.to_pylist()
    tags = ["O"] * len(values)
    for i, value in enumerate(values):
        if "NER=" in value:
            parts = value.split("|")
            place = next((k for k, part in enumerate(parts) if part.startswith("NER=")), None)
            if place is not None:
                tags[i] = parts.pop(place).removeprefix("NER=")
                values[i] = "|".join(parts) or "_"
    return pa.array(values, pa.string()), pa.array(tags, pa.string())


def _put_entity(misc: str, tag: str) -> str:
    """MISC with `NER=tag` before the first key that sorts after it (by code point)."""
    if tag == "O":
        return misc
    parts = [] if misc == "_" else misc.split("|")
    place = next((k for k, part in enumerate(parts) if part.split("=")[0] > "NER"), len(parts))
    return "|".join([*parts[:place], f"NER={tag}", *parts[place:]])


def _node_lists(nodes: list[pa.Array], chosen: Bool, node_offsets: Int64) -> pa.ListArray:
    """list<NODE> of R rows: the chosen lines of each sentence."""
    fields = [array.filter(to_arrow(chosen)) for array in nodes]
    lengths = np.bincount(owners(node_offsets)[chosen], minlength=len(node_offsets) - 1)
    structs = pa.StructArray.from_arrays(fields, fields=list(NODE))
    return list_array(offsets_of(lengths), structs)


def _text(table: pa.Table) -> str:
    """The sentences of a table as CoNLL-U."""
    names = set(table.column_names)
    lengths = pc.list_value_length(table.column("tokens").combine_chunks())
    offsets = offsets_of(to_numpy(lengths))
    lines = _word_lines(table, names, lengths, offsets)
    comments, ranges, empties = (
        table.column(name).to_pylist() if name in names else repeat([]) for name in ("comments", "mwt", "empty_nodes")
    )
    texts = table.column("text").to_pylist() if "text" in names else repeat(None)
    pieces: list[str] = []
    bounds = offsets.tolist()
    rows = zip(bounds, bounds[1:], comments, texts, ranges, empties, strict=False)  # repeat() has no end
    for row, (start, stop, head, text, mwt, empty) in enumerate(rows):
        words = lines[start:stop]
        if mwt or empty:
            words = _with_nodes(words, mwt, empty)
        block = [*(head if text is None else _with_text(head, text)), *words]
        if any("\n" in line or line.endswith("\r") for line in block):
            raise DataError(
                f"row {row} has a value with a line end",
                fix="replace it by a space, or write another format",
                id="conllu-value",
            )
        pieces += block
        pieces.append("")
    return "".join(f"{piece}\n" for piece in pieces)


def _word_lines(table: pa.Table, names: set[str], lengths: pa.Array, offsets: Int64) -> list[str]:
    columns: list[Iterable[str]] = []
    for name in WORD_COLUMNS:
        columns.append(_values(table, name, lengths) if name in names else repeat("_"))
    if "ner_tags" in names:
        columns[-1] = map(_put_entity, columns[-1], _values(table, "ner_tags", lengths))
    ids = map(str, (places(offsets) + 1).tolist())
    lines = list(map("\t".join, zip(ids, *columns, strict=False)))  # repeat() has no end
    n_tabs = len(WORD_COLUMNS)
    bad = next((line for line in lines if line.count("\t") != n_tabs or "\t\t" in line), None)
    if bad is not None:
        raise DataError(
            f"a value with a tab, or an empty one, in {bad!r}",
            fix="write _ for an empty value, a space for a tab",
            id="conllu-value",
        )
    return lines


def _values(table: pa.Table, name: str, lengths: pa.Array) -> list[str]:
    """The values of all words, as strings. Raises LayerError layer-length."""
    lists = table.column(name).combine_chunks()
    if not pc.list_value_length(lists).equals(lengths):
        raise LayerError(
            f"a sentence has more or fewer values in {name} than tokens",
            fix="give each token one value",
            id="layer-length",
        )
    return cast("list[str]", lists.flatten().cast(pa.string()).to_pylist())


def _with_text(comments: list[str], text: str) -> list[str]:
    """The comments with `# text = …` replaced, or added at the end."""
    place = next((i for i, comment in enumerate(comments) if TEXT.match(comment)), len(comments))
    return [*comments[:place], f"# text = {text}", *comments[place + 1 :]]


def _with_nodes(words: list[str], ranges: list[Node], empties: list[Node]) -> list[str]:
    """A sentence's lines: `8.1` after word 8, `3-4` before word 3."""
    after: list[list[str]] = [[] for _ in range(len(words) + 1)]  # of each word, from 0 = before the first
    for nodes, separator, shift in ((empties, ".", 0), (ranges, "-", 1)):
        for node in nodes:
            place = int(node["id"].partition(separator)[0]) - shift
            if not 0 <= place <= len(words):
                raise LayerError(
                    f"the id {node['id']} lies outside its sentence of {len(words)} words",
                    fix="take it out of the columns mwt and empty_nodes",
                    id="conllu-ids",
                )
            after[place].append("\t".join(node[name] for name in NODE_FIELDS))
    return [
        *after[0],
        *(line for word, nodes in zip(words, after[1:], strict=True) for line in (word, *nodes)),
    ]
