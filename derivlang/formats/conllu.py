"""CoNLL-U: a word per line in ten columns, a tree per sentence (universaldependencies.org/format).

Reading keeps everything in a well-formed file, and writing restores it byte for byte, except tags of entities in MISC:
`NER=O` is not written, and other tags of `NER=` stand where the alphabet puts them among the keys. Syntactic words
(ids 1..n) are the `tokens`; the lines of multiword tokens (`3-4`) and empty nodes (`8.1`) are kept in columns of their
own. Heads are 1-based in their sentence, 0 = root, -1 for `_`.

    1<TAB>Paris<TAB>Paris<TAB>PROPN … 2<TAB>nsubj …
    2<TAB>dort<TAB>dormir<TAB>VERB … 0<TAB>root …    ->   tokens [Paris, dort], head [2, 0]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, first_true, offsets_of, owners, positions
from derivlang.core.arrow import list_array, scalar, string_array, to_arrow, to_numpy
from derivlang.core.errors import DataError, LayerError
from derivlang.core.layers.misc import without_spaces
from derivlang.core.layers.nodes import NODE_FIELDS, NODES
from derivlang.core.messages import counted, warn
from derivlang.core.schema import UPOS, Field, Schema, Side
from derivlang.core.trees import NO_HEAD, fault_of_ids, first_fault
from derivlang.formats.base import Format, Look, ReadOptions
from derivlang.formats.lines import (
    EMPTY,
    begins_sentence,
    columns_of,
    count_lines,
    cut_lines,
    split_columns,
    text_blocks,
    word_values,
)
from derivlang.formats.opening import WHOLE, Piece, open_lines, whole_lines
from derivlang.formats.rows import Rows, in_tables

WORD_COLUMNS = ("tokens", "lemmas", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
Node: TypeAlias = dict[str, str]
# The number of the first line, the comments, the number of the first line behind them, and these lines.
Sentence: TypeAlias = tuple[int, list[str], int, list[str]]
MEANING = Schema(
    (Side("", words="tokens", text="text"),),
    (
        Field("idx", "value"),
        Field("comments", "value"),
        Field("lemmas", "tags", lexical=True),
        Field("upos", "tags", UPOS),
        Field("xpos", "tags"),
        Field("feats", "tags"),
        Field("head", "tree", lexical=True),
        Field("misc", "misc"),
    ),
)
TEXT = re.compile(r"#\s*text\s*=")
SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(.*)")


def read(
    path: Path,
    *,
    encoding: str = "utf-8",
    limit: int | None = None,
    entities: bool = False,
    piece: Piece = WHOLE,
    whole: bool = True,
) -> Iterator[Rows]:
    """Yield one row per sentence, with `word_lines`; a document is a sentence.

    Comments before an empty line belong to the next sentence, and "" among them is the empty line. Comments behind the
    last sentence are skipped.

    Columns: idx string (the sent_id, or ""), comments list<string> (verbatim), tokens, lemmas, upos, xpos, feats,
    deprel, deps, misc list<string>, head list<int32>, mwt and empty_nodes NODES. With `entities` there is also
    ner_tags list<string>, moved out of MISC's `NER=` (`O` if there is none).
    limit: greatest number of sentences. piece: what to read. whole: whether each sentence must be one tree, so that no
    head is -1.
    Raises DataError: conllu-columns, conllu-ids, conllu-comment, empty-file, and as `open_lines`; LayerError:
    head-range, head-root, head-cycle.
    """
    for first, sentences in in_tables(_sentences(path, encoding, piece), limit, path, "sentence", piece):
        yield _rows(path, sentences, first, entities, whole)


def write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    """Write rows as CoNLL-U. Rows of `read` give the same bytes as were read. Only the column `tokens` is required.

    A missing list column is written `_`. A column `text`, words joined by one space, replaces the comment `# text = …`,
    or is added to the comments; multiword tokens then stand in it, and lose their notes on white space. `ner_tags`
    other than `O` go into MISC as `NER=`.
    Raises DataError conllu-value (a tab, a line end, an empty value), LayerError layer-length, conllu-ids.
    """
    for table in tables:
        out.write(_text(table).encode())


def cut(path: Path, size: int, target: int, **options: Any) -> list[int]:
    """Return where the pieces of a file begin: behind empty lines."""
    last = b""  # the last line with characters, as far as it is known

    def begins(before: bytes, line: bytes) -> bool:
        """Return whether a sentence begins at a line, with all of its comments."""
        nonlocal last
        last = before if before not in EMPTY else last
        return last[:1].isdigit() and begins_sentence(before, line)

    return cut_lines(path, size, target, begins)


def count(path: Path, encoding: str = "utf-8", *, entities: bool = False, piece: Piece = WHOLE) -> tuple[int, int]:
    """Return the number of sentences with words (lines with the id 1), and of lines."""
    return count_lines(path, piece, encoding, lambda block: (b"\n" + block).count(b"\n1\t"))


def _sentences(path: Path, encoding: str, piece: Piece) -> Iterator[Sentence]:
    """Yield the sentences with words. Raises DataError conllu-comment."""
    held: list[str] = []  # comments without words so far, with the empty lines behind them
    begin = last = 0
    texts = (lines.decode().replace("\r\n", "\n") for lines in whole_lines(path, encoding, piece))
    for first, text in text_blocks(texts, piece.line + 1):
        lines = text.split("\n")
        held += [""] * (first - last - 1) if held else []
        begin, last = begin if held else first, first + len(lines) - 1
        n_comments = next((i for i, line in enumerate(lines) if line[0] != "#"), len(lines))
        nodes = lines[n_comments:]
        late = next((i for i, line in enumerate(nodes, first + n_comments) if line[0] == "#"), None)
        if late is not None:
            raise DataError(
                "a comment stands between the words of a sentence",
                where=f"{path}:{late}",
                fix="move it before the first word, or put an empty line before it",
                id="conllu-comment",
            )
        held += lines[:n_comments]
        if nodes:
            yield begin, held, first + n_comments, nodes
            held = []


def _rows(path: Path, sentences: list[Sentence], first: int, entities: bool, whole: bool) -> Rows:
    starts, comments, firsts, nodes_of = zip(*sentences, strict=True)
    lines = list(chain.from_iterable(nodes_of))
    node_offsets = offsets_of(np.array([*map(len, nodes_of)]))
    numbers = np.array(firsts, np.int32)[owners(node_offsets)] + positions(node_offsets)
    names = [_sent_id(each) for each in comments]
    shown = tuple(f"sent_id {name}" if name else "" for name in names)

    def where(node: int) -> str:
        """Return the place of a line, by its number among all lines."""
        name = shown[int(np.searchsorted(node_offsets, node, "right")) - 1]
        return f"{path}:{numbers[node]}" + (f" ({name})" if name else "")

    nodes = split_columns("\n".join(lines), len(NODE_FIELDS))
    fix = "write ten columns with single tabs between them, and _ for an empty value"
    if isinstance(nodes, int):
        what = f"the line has {columns_of(lines[nodes])}, expected 10"
        raise DataError(what, where=where(nodes), fix=fix, id="conllu-columns")
    if (empty := pc.index(nodes[1], scalar("")).as_py()) >= 0:
        raise DataError("the line has an empty FORM", where=where(empty), fix=fix, id="conllu-columns")
    ids = nodes[0].to_pylist()
    for start, stop in pairwise(node_offsets.tolist()):
        if fault := fault_of_ids(ids[start:stop]):
            fix = "number the words of a sentence 1, 2, 3 …, and end it with an empty line"
            raise DataError(fault[1], where=where(start + fault[0]), fix=fix, id="conllu-ids")
    is_word = np.array([id.isdecimal() for id in ids])
    offsets = offsets_of(np.add.reduceat(is_word, node_offsets[:-1], dtype=np.int64))
    words = nodes if is_word.all() else [node.filter(to_arrow(is_word)) for node in nodes]
    values = dict(zip(WORD_COLUMNS, words[1:], strict=True))
    heads = _heads(values["head"], offsets, whole)
    if not isinstance(heads, pa.Array):
        word, what, id = heads
        at = int(np.flatnonzero(is_word)[word])
        fix = "correct the tree, or leave out the sentence"
        raise LayerError(f"word {ids[at]} has {what}", where=where(at), fix=fix, id=id)
    values["head"] = heads
    if entities:
        values["misc"], values["ner_tags"] = _take_entities(values["misc"])
    is_range = ~is_word & to_numpy(pc.match_substring(nodes[0], "-"))
    table = pa.table(
        {
            "idx": string_array(names),
            "comments": list_array(
                offsets_of(np.array([len(each) for each in comments])), string_array(chain.from_iterable(comments))
            ),
            **{name: list_array(offsets, array) for name, array in values.items()},
            "mwt": _node_lists(nodes, is_range, node_offsets),
            "empty_nodes": _node_lists(nodes, ~is_word & ~is_range, node_offsets),
        }
    )
    word_lines = list_array(offsets, to_arrow(numbers[is_word]))
    return Rows.of_documents(path, table, np.array(starts, np.int64), first, word_lines, shown)


def _heads(texts: pa.Array, offsets: Int64, whole: bool) -> pa.Array | tuple[int, str, str]:
    """Return the heads as numbers, int32[N], NO_HEAD for `_`; or their first fault, as `first_fault`."""
    is_number = to_numpy(pc.match_substring_regex(texts, "^(0|[1-9][0-9]{0,8}|_)$"))
    if not is_number.all():
        word = first_true(~is_number)
        return word, f"head {str(texts[word])!r}, which is not the number of a word", "head-range"
    texts = pc.if_else(pc.equal(texts, scalar("_")), scalar(str(NO_HEAD)), texts)
    heads = texts.cast(pa.int32())
    return first_fault(np.asarray(to_numpy(heads)), offsets, whole=whole) or heads


def _sent_id(comments: list[str]) -> str:
    for comment in comments:
        if "sent_id" in comment and (match := SENT_ID.match(comment)):
            return match[1]
    return ""


def _take_entities(misc: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return MISC without `NER=`, and the tags."""
    values, tags = misc.to_pylist(), []
    for i, value in enumerate(values):
        parts = value.split("|") if "NER=" in value else []
        tag = next((part for part in parts if part.startswith("NER=")), "NER=O")
        tags.append(tag.removeprefix("NER="))
        if tag in parts:
            parts.remove(tag)
            values[i] = "|".join(parts) or "_"
    return string_array(values), string_array(tags)


def _node_lists(nodes: list[pa.Array], chosen: Bool, node_offsets: Int64) -> pa.ListArray:
    """Return NODES of R rows: the chosen lines of each sentence."""
    fields = [array.filter(to_arrow(chosen)) for array in nodes]
    lengths = np.bincount(owners(node_offsets)[chosen], minlength=len(node_offsets) - 1)
    structs = pa.StructArray.from_arrays(fields, fields=list(NODES.value_type))
    return list_array(offsets_of(lengths), structs)


def _text(table: pa.Table) -> str:
    """Return the sentences of a table as CoNLL-U."""
    comments, ranges, empties = (
        _lists(table, name, kind)
        for name, kind in (("comments", pa.string()), ("mwt", NODES.value_type), ("empty_nodes", NODES.value_type))
    )
    texts = table.column("text").to_pylist() if "text" in table.column_names else [None] * len(table)
    lengths = pc.list_value_length(table.column("tokens").combine_chunks())
    words = iter(_word_lines(table))
    written: list[str] = []
    for row, n_words in enumerate(lengths.to_pylist()):
        head, lines, nodes = comments[row], list(islice(words, n_words)), (ranges[row], empties[row])
        if (text := texts[row]) is not None:
            if any(nodes):
                text = _surface(lines, ranges[row])
                for node in chain(*nodes):
                    node["misc"] = without_spaces(node["misc"])
            head = [comment for comment in head if comment]  # the empty lines between comments, too
            at = next((i for i, comment in enumerate(head) if TEXT.match(comment)), len(head))
            head[at : at + 1] = [f"# text = {text}"]
        block = [*head, *(_with_nodes(lines, *nodes) if any(nodes) else lines), ""]
        if any("\n" in line or line.endswith("\r") for line in block):
            raise DataError(
                f"a value of row {row} holds a line end",
                fix="replace it by a space, or write another format",
                id="conllu-value",
            )
        written += block
    return "".join(f"{line}\n" for line in written)


def _lists(table: pa.Table, name: str, kind: pa.DataType) -> list[list[Any]]:
    """Return the lists of a column, empty ones for nulls or a table without it.

    Raises DataError conllu-value for another type, or a null within.
    """
    if name not in table.column_names:
        return [[]] * len(table)
    fix = "replace it by _, or remove it from its list"
    try:
        lists = [values or [] for values in table.column(name).cast(pa.list_(kind)).to_pylist()]
        bad = [row for row, values in enumerate(lists) for one in values if _has_null(one)]
    except pa.ArrowException:
        raise DataError(
            f"the column {name} is {table.schema.field(name).type}, not a list of {kind}",
            fix="remove the column, or make the set again",
            id="conllu-value",
        ) from None
    if bad:
        raise DataError(f"row {bad[0]} has a null in {name}", fix=fix, id="conllu-value")
    return lists


def _has_null(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and None in value.values())


def _word_lines(table: pa.Table) -> list[str]:
    """Return the line of each word. Raises DataError conllu-value for an empty value, or one with a tab."""
    values = {name: word_values(table, name) for name in (*WORD_COLUMNS, "ner_tags") if name in table.column_names}
    if "head" in values:
        values["head"] = ["_" if head == str(NO_HEAD) else head for head in values["head"]]
    unknown = ["_"] * len(values["tokens"])
    if "ner_tags" in values:
        values["misc"] = [*map(_put_entity, values.get("misc", unknown), values["ner_tags"])]
    ids = positions(offsets_of(to_numpy(pc.list_value_length(table.column("tokens").combine_chunks())))) + 1
    columns = [map(str, ids.tolist()), *(values.get(name, unknown) for name in WORD_COLUMNS)]
    lines = list(map("\t".join, zip(*columns, strict=True)))
    n_tabs = len(WORD_COLUMNS)
    bad = next((line for line in lines if line.count("\t") != n_tabs or "\t\t" in line), None)
    if bad is not None:
        raise DataError(
            f"a value is empty or holds a tab, in {bad!r}",
            fix="replace an empty value by _, a tab by a space",
            id="conllu-value",
        )
    return lines


def _put_entity(misc: str, tag: str) -> str:
    """Return MISC with `NER=tag` before the first key that sorts after it (by code point)."""
    if tag == "O":
        return misc
    parts = [] if misc == "_" else misc.split("|")
    place = next((k for k, part in enumerate(parts) if part.split("=")[0] > "NER"), len(parts))
    return "|".join([*parts[:place], f"NER={tag}", *parts[place:]])


def _surface(words: list[str], ranges: list[Node]) -> str:
    """Return the text of a sentence with its multiword tokens, one space between two tokens. words: its lines."""
    forms = [line.split("\t", 2)[1] for line in words]
    for node in reversed(ranges):
        first, _, last = node["id"].partition("-")
        if first.isdecimal() and last.isdecimal():
            forms[int(first) - 1 : int(last)] = [node["form"]]
    return " ".join(forms)


def _with_nodes(words: list[str], ranges: list[Node], empties: list[Node]) -> list[str]:
    """Return a sentence's lines with its other nodes.

    Words 1, 2, 3 with the empty node 1.1 and the multiword token 2-3    ->    1, 1.1, 2-3, 2, 3
    """
    after: list[list[str]] = [[], *([word] for word in words)]  # each word with the nodes behind it; 0: before them
    for nodes, separator, shift in ((empties, ".", 0), (ranges, "-", 1)):
        for node in nodes:
            first = node["id"].partition(separator)[0]
            place = int(first) - shift if first.isdecimal() and len(first) < 10 else -1
            if not 0 <= place <= len(words):
                raise LayerError(
                    f"the id {node['id']} lies outside its sentence of {len(words)} words",
                    fix="remove it from the columns mwt and empty_nodes",
                    id="conllu-ids",
                )
            after[place].append("\t".join(node[name] for name in NODE_FIELDS))
    return list(chain.from_iterable(after))


def _look(paths: Sequence[Path], asked: ReadOptions) -> Look:
    entities = False
    for path in paths:
        comments = 0
        for _, line in open_lines(path, asked.encoding):
            entities = entities or "NER=" in line
            comments = comments + 1 if line[:1] == "#" else 0 if line else comments
        if comments:
            warn(f"{path}: {counted(comments, 'comment line')} after the last sentence left out")
    fields = (*MEANING.fields, Field("ner_tags", "entities")) if entities else MEANING.fields
    return Look(Schema(MEANING.sides, fields), options={"entities": entities})


def _write(tables: Iterable[pa.Table], out: BinaryIO) -> None:
    write((table.drop_columns(["text"]) for table in tables), out)  # the comments already have the source's `# text`


FORMAT = Format(
    name="conllu",
    suffixes=(".conllu",),
    what="CoNLL-U",
    read=partial(read, whole=False),  # a transform that needs trees checks them
    write=_write,
    cut=cut,
    count=count,
    look=_look,
)
