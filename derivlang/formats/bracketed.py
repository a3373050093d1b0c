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
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, UInt8, lengths_of, offsets_of
from derivlang.core.arrow import list_array, scalar, to_arrow, to_numpy
from derivlang.core.brackets import BracketFault, Constituents, Leaves, depths, read_brackets, write_brackets
from derivlang.core.errors import DataError
from derivlang.core.keys import string_buffers, strings_from
from derivlang.core.layers.constituents import PARSE
from derivlang.core.schema import Field, Schema, Side
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.rows import Rows

BRACKETED = "bracketed"
_BLOCK = 1 << 20  # characters read at once
_TRACE = "-NONE-"
# Words that are bare brackets, under a label that says so -> as they should be written.
_BARE = re.compile(r"\((?:\(|-LRB-) \(\)|\((?:\)|-RRB-) \)\)")
_WRITTEN = {"(": "(-LRB- -LRB-)", ")": "(-RRB- -RRB-)"}
_ESCAPES = {
    **{f"-{name}-": sign for name, sign in zip(("LRB", "RRB", "LSB", "RSB", "LCB", "RCB"), "()[]{}", strict=True)},
    r"\/": "/",
    r"\*": "*",
}
MEANING = Schema((Side("", words="tokens"),), (Field(PARSE, "constituents"), Field(BRACKETED, "value")))


def read(path: Path, *, encoding: str = "utf-8", limit: int | None = None) -> Iterator[Rows]:
    """Yield one row per tree: `tokens` list<string>, `parse` string, `bracketed` list<string>, none or one.

    limit: greatest number of trees. Raises DataError: brackets (they do not match, or words stand outside of them),
    tree-words (a tree without words), empty-file, and as `open_lines`.
    """
    done = 0
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
        letters, offsets = string_buffers(some)
        depth, is_text = depths(letters)
        top = (depth == 1) & (letters == ord("(")) | is_text & (depth == 0)
        several = np.diff(offsets_of(top)[offsets]) > 1
        begins = to_numpy(pc.starts_with(some, "("))
        unread += int((~begins).sum())
        rows = zip(some.to_pylist(), (several & begins).tolist(), strict=True)
        out.write("".join(f"( {tree} )\n" if wrap else f"{tree}\n" for tree, wrap in rows).encode())
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
    letters, at, more = _with_escapes(text)
    depth, is_text = depths(letters)

    def fail(byte: int, what: str, fix: str, id: str = "brackets") -> DataError:
        at = line + int(np.count_nonzero(letters[:byte] == ord("\n")))
        return DataError(what, where=f"{path}:{at}", fix=fix, id=id)

    opens = np.flatnonzero((depth == 1) & (letters == ord("(")))
    outside = np.flatnonzero(is_text & (depth == 0))[:1]
    # A text of brackets that match has no word outside of them unless it comes before a bracket that closes nothing.
    if len(outside) and (depth[: outside[0]] >= 0).all():
        word = letters[outside[0] :].tobytes().split(maxsplit=1)[0].decode(errors="replace")[:30]
        raise fail(int(outside[0]), f"{word!r} stands outside of brackets", "write trees as (S (NP Ann) (VP sleeps))")
    offsets = np.concatenate([[0], opens[1:], [len(letters)]]).astype(np.int64)
    read = read_brackets(letters, offsets)
    if isinstance(read, BracketFault):
        raise fail(read.byte, read.what, "correct the tree, or remove it")
    if not len(opens):
        return None
    found, words, sizes = _plain(*read)
    lines = line + np.searchsorted(np.flatnonzero(letters == ord("\n")), opens)
    if len(without := np.flatnonzero(lengths_of(sizes) == 0)):
        raise fail(int(opens[without[0]]), "a tree without words", "remove it", "tree-words")
    texts = write_brackets(found, to_numpy(words.indices).astype(np.int32), words.dictionary, sizes)
    given = strings_from(np.frombuffer(text.encode(), np.uint8), offsets - more[np.searchsorted(at, offsets)])
    differs = pc.not_equal(pc.binary_join_element_wise(texts, scalar("\n"), scalar("")), given)
    table = pa.table(
        {
            "tokens": list_array(sizes, words.dictionary_decode()),
            PARSE: texts,
            BRACKETED: list_array(offsets_of(to_numpy(differs)), given.filter(differs)),
        }
    )
    return Rows.of_documents(path, table, lines.astype(np.int64), first)


def _with_escapes(text: str) -> tuple[UInt8, Int64, Int64]:
    """Return a text whose bare brackets are words of trees, in UTF-8, and how much longer it is.

    Returns uint8[B]; int64[K], the first byte of each of K replacements; int64[K + 1], the bytes that the first 0 … K
    of them add.

    (( ()   ->   (-LRB- -LRB-), [0], [0, 8]
    """
    parts: list[bytes] = []
    at, more, size, end = [], [0], 0, 0
    for bare in _BARE.finditer(text) if " ()" in text or " ))" in text else ():
        parts += [text[end : bare.start()].encode(), _WRITTEN[bare[0][-2]].encode()]
        at.append(size + len(parts[-2]))
        more.append(more[-1] + len(parts[-1]) - len(bare[0]))
        size, end = at[-1] + len(parts[-1]), bare.end()
    letters = np.frombuffer(b"".join([*parts, text[end:].encode()]), np.uint8)
    return letters, np.array(at, np.int64), np.array(more, np.int64)


def _plain(found: Constituents, leaves: Leaves) -> tuple[Constituents, pa.Array, Int64]:
    """Return the trees without traces, their words as text, as codes into types, and the offsets of their words."""
    encoded = leaves.words().dictionary_encode()
    types = encoded.dictionary
    for written, sign in _ESCAPES.items():
        types = pc.replace_substring(types, written, sign)
    words = pa.DictionaryArray.from_arrays(encoded.indices, types).dictionary_decode().dictionary_encode()
    traces = np.array([name == _TRACE for name in found.names.to_pylist()], bool)
    kept = ~np.append(traces[found.label], False)[found.holders(len(words))]
    if kept.all():
        return found, words, leaves.offsets
    return found.over(kept), words.take(to_arrow(np.flatnonzero(kept))), offsets_of(kept)[leaves.offsets]


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
