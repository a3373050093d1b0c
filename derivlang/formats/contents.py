"""What a text file looks like, where its name says something else.

Each test is narrow: prose that begins with `<`, lines of two words and a list of words go on being text.
`--format` overrides them all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from derivlang.core.errors import DataError, DerivlangError
from derivlang.core.schema import UPOS
from derivlang.formats.lines import text_blocks
from derivlang.formats.opening import BOM, utf8_blocks
from derivlang.formats.tagged_columns import WHITE, find_columns, stripped

HEAD = 1 << 12  # bytes: a folder may have many files
_LONG = 200  # letters in a line, on average, which a word and its tags never have
_MOST = 0.95  # share of lines: a file may have a faulty one
_TAG = re.compile(r"[BIESLUMW][-_]\S+", re.IGNORECASE)
_PAGE = re.compile(
    r"\s*(<\?xml\s[^>]*>|(<!--[^>]*-->\s*)?(<!doctype\s+html[^>]*>|<html[^>]*>)\s*(<|\Z)|<html[^>]*>.*</html>\s*\Z)",
    re.IGNORECASE | re.DOTALL,
)
# A lone start tag on the first line, with attributes or closed by a lone end tag: <doc url="…"> of WikiExtractor.
_MARKUP = re.compile(
    r"\s*<([A-Za-z][\w:.-]*)(?:(?:\s+[\w:.-]+=[^<>]*)>[ \t]*\r?$|>[ \t]*\r?$(?=.*^</\1>))", re.DOTALL | re.MULTILINE
)
_BINARY = {
    b"\x1f\x8b": ("compressed by gzip", "add .gz to its name"),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "add .zst to its name"),
    b"\xfd7zXZ": ("compressed by xz", "unpack it"),
    b"BZh9": ("compressed by bzip2", "unpack it"),
    b"PK\x03\x04": ("a ZIP archive or an office document", "unpack it, or save it as plain text"),
    b"%PDF-": ("a PDF", "take its text out"),
    b"PAR1": ("Parquet", "add .parquet to its name"),
}
_LONE = re.compile(r"\r(?!\n)")
_CONLLU_ID = re.compile(r"\d+([-.]\d+)?")


def check_contents(path: Path, format: str, encoding: str) -> None:
    """Raise DataError contents if a file clearly holds something else than its format.

    format: the name of a format of text. Compressed files, other binary ones and web pages are refused in all of them.
    Running text has no form that would show a fault: there other formats, markup, and lines that end in carriage
    returns, which would be one paragraph, are refused, too; in tagged text CoNLL-U is, as it has columns to be read.
    """
    check_head(_head(path, encoding), path, format)


def check_head(first: bytes, path: Path, format: str) -> None:
    """Raise DataError contents as `check_contents`. first: of the file, decompressed and in UTF-8."""
    for magic, (what, fix) in _BINARY.items():
        if first.startswith(magic):
            raise DataError(f"the file is {what}", where=str(path), fix=fix, id="contents")
    head = first.decode(errors="replace")
    if _PAGE.match(head):
        raise _other(path, format, "a web page (HTML or XML)", "download the file itself")
    if format not in ("text", "tagged") or "\0" in head:  # UTF-16: its reader says so
        return
    if format == "text" and len(_LONE.findall(head.rstrip())) > 1 + head.count("\n") // 10:
        raise _other(
            path, format, "text with lines that end in \\r, as on old Macs", "convert it: tr '\\r' '\\n' < FILE > NEW"
        )
    if format == "text" and _MARKUP.match(head):
        raise _other(path, format, "text between tags of XML or SGML", "take the text out of the tags")
    lines = [line.rstrip(WHITE) for line in head.split("\n")]
    if len(head) >= HEAD // 4:  # letters of four bytes: the last line may be cut off
        lines.pop()
    for name, (what, looks) in _LOOKS.items():
        if (format == "text" or name == "conllu") and looks(lines):
            raise _other(path, format, what, f"rename it, or pass --format {name}")


def _other(path: Path, format: str, what: str, fix: str) -> DataError:
    as_it_is = "; --format text reads it as it is" if format == "text" else ""
    return DataError(f"the file looks like {what}", where=str(path), fix=f"{fix}{as_it_is}", id="contents")


def _head(path: Path, encoding: str) -> bytes:
    """Return the first letters of a file in UTF-8, none if it cannot be read, which is an error when it is."""
    with suppress(DerivlangError, OSError), closing(utf8_blocks(path, encoding, size=HEAD)) as blocks:
        return next(blocks, b"")[:HEAD].removeprefix(BOM)
    return b""


def _is_conllu(lines: Sequence[str]) -> bool:
    words = [line.split("\t") for line in lines if line and line[0] != "#"]
    fit = sum(len(word) == 10 and _CONLLU_ID.fullmatch(word[0]) is not None for word in words)
    return len(words) > 1 and fit >= _MOST * len(words)


def _is_tagged(lines: Sequence[str]) -> bool:
    """Return whether nearly all lines have the same number of columns, one of which holds tags of a known scheme."""
    words = [line for line in lines if line and line[0] != "#"]
    if sum(map(len, words)) > _LONG * len(words) or not any(_have_one_width(words, by) for by in (None, "\t")):
        return False  # prose, for which what follows takes ten times as long
    blocks = list(text_blocks([stripped("\n".join(lines))], 1))
    columns = find_columns(blocks)
    texts = [text for _, text in map(columns.without_comments, blocks) if text]
    rows = [columns.split(line) for text in texts for line in text.split("\n")]
    tags = [row[columns.tag] for row in rows if len(row) == columns.n > 1]
    return len(tags) > 1 and len(tags) >= _MOST * len(rows) and _are_tags(tags)


def _have_one_width(lines: Sequence[str], by: str | None) -> bool:
    """Return whether most lines have the same number of fields, two or more."""
    widths = Counter(len(line.split(by)) for line in lines).most_common(1)
    return any(width > 1 and n > len(lines) / 2 for width, n in widths)


def _are_tags(tags: Sequence[str]) -> bool:
    """Return whether nearly all values are tags of entities or parts of speech.

    Tags of entities are known by one with a type, or by B, I and O together. Three or more O and nothing else are tags,
    too: the first entity may be far away.
    """
    typed = [_TAG.fullmatch(tag) is not None for tag in tags]
    entities = sum(typed) + sum(tag in ("O", "o") for tag in tags)
    kinds = set(tags)
    return (
        (any(typed) and entities >= _MOST * len(tags))
        or kinds == {*"BIO"}
        or (kinds == {"O"} and len(tags) > 2)
        or (len(kinds) > 1 and sum(tag in UPOS for tag in tags) >= _MOST * len(tags))
    )


def _is_table(lines: Sequence[str]) -> bool:
    """Return whether nearly all lines have the same number of tabs within; prose may begin with one."""
    tabs = Counter(line.strip(WHITE).count("\t") for line in lines if line)
    (n_tabs, n), *_ = tabs.most_common(1) or [(0, 0)]
    return n_tabs > 0 and n > 1 and n >= _MOST * tabs.total()


def _is_json_lines(lines: Sequence[str]) -> bool:
    full = [line for line in lines if line][:3]
    with suppress(ValueError, RecursionError):
        return len(full) > 1 and all(isinstance(json.loads(line), dict) for line in full)
    return False


_LOOKS: dict[str, tuple[str, Callable[[Sequence[str]], bool]]] = {
    "conllu": ("CoNLL-U", _is_conllu),
    "tagged": ("CoNLL: a word and its tag in each line", _is_tagged),
    "jsonl": ("JSON Lines", _is_json_lines),
    "tsv": ("a table whose columns are separated by tabs", _is_table),
}
