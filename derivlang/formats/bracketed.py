"""Trees in brackets, as the Penn Treebank has them: one or several trees in a line, or a tree over several lines.

    ( (S (NP (DT the) (NN dog))        ->   tokens [the, dog, barks, .]
         (VP (VBZ barks)) (. .)) )          parse (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))

A tree is a row. Traces (-NONE-) are left out with the constituents that hold nothing else, and so are brackets without
a label. -LRB- and the like are words in brackets again, `\\/` is `/`; a word that is a bare bracket, as in `(( ()`
and `(-RRB- ))`, is kept as if it were written so. Where `parse` and a line end are not what the
file has, the column `bracketed` holds its own text, so that it is written back byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, lengths_of, offsets_of
from derivlang.core.arrow import list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError
from derivlang.core.layers.constituents import PARSE, BracketFault, Constituents, read_brackets, write_brackets
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.places import located
from derivlang.formats.rows import Rows

BRACKETED = "bracketed"
_BLOCK = 1 << 20  # characters read at once
_TRACE = "-NONE-"
# Words that are bare brackets, under a label that says so -> as they should be written.
_BARE = re.compile(r"\((?:\(|-LRB-) \(\)|\((?:\)|-RRB-) \)\)")
_PART = re.compile(rf"{_BARE.pattern}|[()]|[^()\t\n\v\f\r ]+")  # a bare bracket with its label is one
_WHITE = re.compile(r"[\t\n\v\f\r ]+")
_WRITTEN = {"(": "(-LRB- -LRB-)", ")": "(-RRB- -RRB-)"}
_ESCAPES = {
    **{f"-{name}-": sign for name, sign in zip(("LRB", "RRB", "LSB", "RSB", "LCB", "RCB"), "()[]{}", strict=True)},
    r"\/": "/",
    r"\*": "*",
}
MEANING = Schema((Side("", words="tokens"),), (Field(PARSE, "constituents"), Field(BRACKETED, "value")))


def read(path: Path | str, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """Yield one row per tree: `tokens` list<string>, `parse` string, `bracketed` list<string>, none or one.

    limit: greatest number of trees. Raises DataError: brackets (they do not match, or words stand outside of them),
    tree-words (a tree without words), empty-file, and as `open_lines`.
    """
    path, done = located(path), 0
    for line, text in _blocks(path, encoding):
        if limit is not None and done >= limit:
            return
        rows = _rows(path, line, text, done)
        if rows is not None:
            rows = rows if limit is None else rows.slice(0, min(rows.table.num_rows, limit - done))
            yield rows
            done += rows.table.num_rows
    if not done and limit != 0:
        raise empty_file(path, "tree")


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """Write the trees, a line each, or as their file had them."""
    for table in tables:
        own = pc.binary_join(table[BRACKETED].combine_chunks(), scalar(""))
        lines = pc.binary_join_element_wise(table[PARSE].combine_chunks(), scalar("\n"), scalar(""))
        has_own = pc.greater(pc.list_value_length(table[BRACKETED].combine_chunks()), scalar(0))
        out.write("".join(pc.if_else(has_own, own, lines).to_pylist()).encode())


def write_trees(trees: Iterable[pa.Array], out: BinaryIO) -> int:
    """Write Arrow strings, a tree for each row, and return how many of the rows `read` would not read back.

    These have no words, or begin with a word outside of brackets. A row with several trees, or with words behind its
    tree, gets brackets without a label around it: (S Ann) (X !)   ->   ( (S Ann) (X !) )
    """
    unread = 0
    for some in trees:
        for tree in some.to_pylist():
            is_read = tree.startswith("(")
            unread += not is_read
            out.write((f"( {tree} )\n" if is_read and len(list(_outermost(tree))) > 1 else f"{tree}\n").encode())
    return unread


def _blocks(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield stretches of whole trees: the number of their first line, and the text with its line ends."""
    held: list[str] = []
    size = depth = first = 0
    for number, line in open_lines(path, encoding, ends=True):
        if size >= _BLOCK and depth <= 0 and not line.isspace():  # empty lines belong to the tree before them
            yield first, "".join(held)
            held, size = [], 0
        if not held:
            first = number
        held.append(line)
        size += len(line)
        plain = _BARE.sub("", line) if " ()" in line or " ))" in line else line
        depth += plain.count("(") - plain.count(")")
    if held:
        yield first, "".join(held)


def _rows(path: Path, line: int, text: str, first: int) -> Rows | None:
    """Return the rows of a stretch of trees, None if it is empty. line: the number of its first line."""
    outermost = list(_outermost(text))
    opens = [part.start() for part in outermost]
    bounds = [0, *opens[1:], len(text)]
    given = [text[begin:end] for begin, end in pairwise(bounds)]
    trees = [_BARE.sub(_written, tree) for tree in given]
    lines = line + offsets_of(np.array([tree.count("\n") for tree in given]))  # where each begins

    def fail(tree: int, at: int, what: str, fix: str, id: str = "brackets") -> DataError:
        at = lines[tree] + trees[tree].count("\n", 0, at)
        return DataError(what, where=f"{path}:{at}", fix=fix, id=id)

    for tree, part in enumerate(outermost):
        if part[0][0] != "(":
            at = part.start() - bounds[tree]
            word = _WHITE.split(_BARE.sub(_written, text[part.start() :]), 1)[0][:30]
            raise fail(tree, at, f"{word!r} stands outside of brackets", "write trees as (S (NP Ann) (VP sleeps))")
    try:
        found, words, sizes = _plain(*read_brackets(trees))
    except BracketFault as fault:
        raise fail(fault.row, fault.at, str(fault), "correct the tree, or remove it") from None
    if not opens:
        return None
    lines[0] += text.count("\n", 0, opens[0])
    if len(without := np.flatnonzero(lengths_of(sizes) == 0)):
        raise fail(int(without[0]), 0, "a tree without words", "remove it", "tree-words")
    texts = write_brackets(found, to_numpy(words.indices).astype(np.int32), words.dictionary, sizes)
    differs = np.array([text != f"{tree}\n" for text, tree in zip(given, texts.to_pylist(), strict=True)])
    table = pa.table(
        {
            "tokens": list_array(sizes, words.dictionary_decode()),
            PARSE: texts,
            BRACKETED: list_array(offsets_of(differs), string_array(compress(given, differs))),
        }
    )
    return Rows.of_documents(path, table, lines[:-1], first)


def _outermost(text: str) -> Iterator[re.Match[str]]:
    """Yield the brackets and words of a text that stand in no bracket, up to a bracket that closes nothing."""
    depth = 0
    for part in _PART.finditer(text):
        depth -= part[0] == ")"
        if depth < 0:
            return
        if depth == 0 and part[0] != ")":
            yield part
        depth += part[0] == "("


def _written(bare: re.Match[str]) -> str:
    """Return a word that is a bare bracket as it should be written."""
    return _WRITTEN[bare[0][-2]]


def _plain(found: Constituents, leaves: pa.Array, offsets: Int64) -> tuple[Constituents, pa.Array, Int64]:
    """Return the trees without traces, their words as text, as codes into types, and the offsets of their words."""
    encoded = leaves.dictionary_encode()
    types = encoded.dictionary
    for written, sign in _ESCAPES.items():
        types = pc.replace_substring(types, written, sign)
    words = pa.DictionaryArray.from_arrays(encoded.indices, types).dictionary_decode().dictionary_encode()
    traces = np.array([name == _TRACE for name in found.names.to_pylist()], bool)
    kept = ~np.append(traces[found.label], False)[found.holders(len(words))]
    if kept.all():
        return found, words, offsets
    return found.over(kept), words.take(to_arrow(np.flatnonzero(kept))), offsets_of(kept)[offsets]


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    return Look(MEANING)


FORMAT = Format(
    name="bracketed",
    suffixes=(".mrg", ".ptb", ".bracketed", ".brackets", ".prd", ".penn", ".tree"),
    what="file of bracketed trees",
    read=read,
    write=write,
    look=_look,
)
