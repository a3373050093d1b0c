r"""Bilingual dictionaries as files: MUSE text, TSV and JSON, read and written.

    muse    the le            a pair per line, with a space or a tab between (a tab allows spaces in words); any suffix
    tsv     source  derived  count      a header, then a pair per line; `\t`, `\n`, `\r`, `\\` as in lexicon.tsv
    json    {"the": ["le", "la"]}       or a list of pairs

A word may have several translations, each on a line of its own, and they keep their order. A line that is not a pair is
skipped and reported, or an error (`strict`): `duplicate` (the same pair again), `blank` (a side is missing), `columns`
(more than two), `encoding` (not UTF-8, U+FFFD, NUL), `special` (a special token). The first form comes from MUSE
(Conneau et al. 2018), github.com/facebookresearch/MUSE.

Lists of words are files, too: a word in each line; or a word and its count, with a tab between.

    word	count             the header may be left out
    the	129
    \\	3               a word is escaped as in lexicon.tsv

A dictionary that `derivlang dict -o NAME.tsv` wrote is such a file, too: the count is of the source word.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from derivlang.core.errors import DataError, UsageError, parse_errors
from derivlang.core.lexicon import SPECIALS, unescape, write_rows
from derivlang.core.messages import counted, in_shell
from derivlang.formats.contents import HEAD, check_head
from derivlang.formats.opening import read_bytes, read_text, suffix_of
from derivlang.formats.places import located

Format = Literal["muse", "tsv", "json"]
FORMATS: tuple[str, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {".txt": "muse", ".tsv": "tsv", ".json": "json"}
_SOURCE, _TARGET = ("source", "src", "word"), ("derived", "target", "tgt", "translation")
_OWN_HEADER = "source\tderived\tcount"
_BOM = b"\xef\xbb\xbf"
_COUNT = re.compile("[0-9]{1,18}")
_Row = tuple[str, str] | tuple[str, str, int]  # with a count in derivlang's own files
_WRONG = re.compile("[\0\ufffd\ud800-\udfff]")  # JSON can hold halves of surrogate pairs, which are not characters


@dataclass(frozen=True, slots=True)
class Fault:
    """A line (JSON: an entry), from 1, that is not a pair. kind: duplicate, blank, columns, encoding, special."""

    line: int
    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The contents of a dictionary file.

    pairs: (word, translation), distinct, in the order of the file. sha256: of the file's decompressed bytes. unit: what
    the numbers of faults count, `line` or (JSON) `entry`. numbers: counts of the pairs' words, 1 where
    the file has none.
    """

    pairs: tuple[tuple[str, str], ...]
    faults: tuple[Fault, ...]
    sha256: str
    unit: str = "line"
    numbers: tuple[int, ...] = ()

    def entries(self) -> dict[str, tuple[str, ...]]:
        """Return the translations of each word."""
        return {word: tuple(translations) for word, translations in _by_word(self.pairs).items()}

    def warning(self, path: Path) -> str | None:
        """Return a warning if entries of the file were skipped, except for pairs that it holds twice."""
        faults = [fault for fault in self.faults if fault.kind != "duplicate"]
        if not faults:
            return None
        noun = counted(len(faults), self.unit)
        first = f"{self.unit} {faults[0].line}: {faults[0].what}"
        return f"{path}: {noun} skipped, the first is {first} (`derivlang dict check {in_shell(path)}` lists all)"

    def counts(self) -> dict[str, int]:
        """Return the number of faults of each kind."""
        return dict(sorted(Counter(fault.kind for fault in self.faults).items()))


def format_of(path: Path, named: str | None) -> Format:
    """Return the format to write a file in: as named, else by suffix. Raises UsageError unknown-format."""
    if named in FORMATS:
        return cast(Format, named)
    if named is None and path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    what = (
        f"there is no dictionary format {named!r}" if named else f"no dictionary format has the suffix {path.suffix!r}"
    )
    raise UsageError(
        what,
        where=str(path),
        fix=f"use {', '.join(_SUFFIXES)}, or pass --format {', '.join(FORMATS)}",
        id="unknown-format",
    )


def read_dictionary(path: Path | str, *, strict: bool = False, allowed: Sequence[str] = ()) -> Dictionary:
    """Read a dictionary, plain or compressed (.gz, .zst). The suffix names the format; any other suffix means MUSE.

    strict: whether a fault of a kind that is not in `allowed` is an error. Raises DataError: missing-file, directory,
    unreadable-file, truncated, contents, too-large, no-pair, dictionary (strict, or broken JSON), each with its line.
    """
    path = located(path)
    data = read_bytes(path)
    kind = _SUFFIXES.get(suffix_of(path), "muse")
    check_head(data[:HEAD], path, "dictionary")
    if kind != "json":
        _check_separator(data.decode(errors="replace").splitlines(), path, tabs=kind == "tsv")
    rows = _json(data, path) if kind == "json" else _lines(data, path, tabs=kind == "tsv")
    pairs: dict[tuple[str, str], int] = {}
    faults: list[Fault] = []
    unit = "entry" if kind == "json" else "line"
    with parse_errors(str(path), "dictionary", id="dictionary"):
        for line, row in rows:
            fault = row if isinstance(row, Fault) else _fault(line, row[:2], pairs, own=len(row) > 2)
            if fault is None:
                assert not isinstance(row, Fault)
                pairs[row[:2]] = row[2] if len(row) > 2 else 1
                continue
            if strict and fault.kind not in allowed:
                raise DataError(
                    fault.what,
                    where=f"{path}:{line}" if unit == "line" else f"{path}: {unit} {line}",
                    fix="correct the line, or skip such lines with `derivlang dict check FILE -o CLEAN`",
                    id="dictionary",
                )
            faults.append(fault)
    if not pairs:
        line, first = (faults[0].line, faults[0].what) if faults else (0, "")
        raise DataError(
            "the dictionary holds no pair" + (f"; the first fault, in {unit} {line}: {first}" if faults else ""),
            where=str(path),
            fix="write `word translation` lines, a TSV with a header, or JSON",
            id="no-pair",
        )
    digest = hashlib.sha256(data).hexdigest()
    return Dictionary(tuple(pairs), tuple(faults), digest, unit, tuple(pairs.values()))


def fits(pair: tuple[str, str], kind: Format) -> bool:
    """Return whether a file of a format may hold a pair; TSV and JSON hold every pair.

    MUSE's own reader stops at capitals and at white space inside a word, U+00A0 among it.
    """
    return kind != "muse" or all(word == word.lower() and word.split() == [word] for word in pair)


def written(pairs: Sequence[tuple[str, str]], counts: Sequence[int], kind: Format) -> str:
    """Return the text of a file. pairs: those that fit the format. counts: of the source words, for TSV."""
    if kind == "json":
        rows = [f" {_dumped(word)}: {_dumped(translations)}" for word, translations in _by_word(pairs).items()]
        return "{\n" + ",\n".join(rows) + "\n}\n"
    if kind == "tsv":
        return write_rows(_OWN_HEADER, ((*pair, str(n)) for pair, n in zip(pairs, counts, strict=True)))
    return "".join(f"{word} {translation}\n" for word, translation in pairs)


def _by_word(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_word: dict[str, list[str]] = {}
    for word, translation in pairs:
        by_word.setdefault(word, []).append(translation)
    return by_word


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _fault(line: int, row: tuple[str, str], known: Container[tuple[str, str]], *, own: bool) -> Fault | None:
    """Return the fault of two cells, or None. own: derivlang wrote the file, with all characters of its source."""
    for side, word in zip(("word", "translation"), row, strict=True):
        if not word.strip():
            return Fault(line, "blank", f"the {side} is blank")
        if not own and _WRONG.search(word):
            return Fault(line, "encoding", f"the {side} {word!r} holds a character that results from a wrong encoding")
        if word in SPECIALS:
            return Fault(line, "special", f"the {side} {word!r} is a special token")
    return Fault(line, "duplicate", f"the pair {row[0]!r}, {row[1]!r} is there already") if row in known else None


def _check_separator(lines: Sequence[str], path: Path, *, tabs: bool) -> None:
    """Raise DataError dictionary if most lines have a comma, semicolon or bar, and no separator of the format."""
    cells = [line for line in lines if len(line.split("\t" if tabs else None)) == 1]
    for mark in ",;|":
        if 2 * sum(mark in cell.strip(mark) for cell in cells) > len(lines):
            raise DataError(
                f"the words are separated by {mark!r}, not by tabs or spaces",
                where=str(path),
                fix=f"write tabs: tr '{mark}' '\\t' < {in_shell(path)} > NEW.tsv",
                id="dictionary",
            )


def _lines(data: bytes, path: Path, *, tabs: bool) -> Iterator[tuple[int, _Row | Fault]]:
    """Yield the pairs of a text file by line. tabs: only tabs divide cells, and the first line may be a header."""
    lines = data.removeprefix(_BOM).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    columns, own = (0, 1), False
    width: int | None = 2
    for number, raw in enumerate(lines, 1):
        try:
            line = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            yield number, Fault(number, "encoding", f"the line is not UTF-8: byte {raw[error.start]:#04x}")
            continue
        if "\t" in line or tabs:
            cells = [cell.strip(" ") for cell in line.split("\t")]
        else:
            cells = re.split(" +", line.strip(" "))
        header = [cell.lower() for cell in cells]
        if number == 1 and tabs and any(c in header for c in _SOURCE) and any(c in header for c in _TARGET):
            columns = _only(header, _SOURCE, path), _only(header, _TARGET, path)
            width, own = len(cells), line == _OWN_HEADER
            continue
        if len(cells) > (width or 2):
            yield number, Fault(number, "columns", f"the line has {len(cells)} columns, expected {width}")
            continue
        word, translation = (cells[i] if i < len(cells) else "" for i in columns)
        if not own:
            yield number, (word, translation)
            continue
        n = cells[2] if len(cells) > 2 else ""
        yield number, (unescape(word), unescape(translation), int(n) if _COUNT.fullmatch(n) else 1)


def _only(header: list[str], names: Sequence[str], path: Path) -> int:
    """Return the number of the column with one of these names. Raises DataError dictionary for a second one."""
    first, *others = (i for i, cell in enumerate(header) if cell in names)
    if others:
        raise DataError(
            f"both {header[first]!r} (column {first + 1}) and {header[others[0]]!r} (column {others[0] + 1}) may name "
            f"the {'words' if names is _SOURCE else 'translations'}",
            where=f"{path}:1",
            fix="rename or remove one of the columns",
            id="dictionary",
        )
    return first


def _json(data: bytes, path: Path) -> Iterator[tuple[int, _Row | Fault]]:
    """Yield the pairs of `{"word": "translation" or [...]}` or of a list of pairs, by entry."""
    try:
        entries = json.loads(data.removeprefix(_BOM).decode(), object_pairs_hook=list)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError("the file is not UTF-8", where=f"{path}:{line}", id="dictionary") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"this is not valid JSON: {error.msg}", where=f"{path}:{error.lineno}", id="dictionary"
        ) from None
    if not isinstance(entries, list):
        raise DataError(
            'the JSON is not {"word": ["translation", …]} or a list of pairs', where=f"{path}:1", id="dictionary"
        )
    for number, entry in enumerate(entries, 1):
        word, translations = entry if isinstance(entry, list | tuple) and len(entry) == 2 else (None, [None])
        for translation in translations if isinstance(translations, list) else [translations]:
            if isinstance(word, str) and isinstance(translation, str):
                yield number, (word, translation)
            else:
                yield number, Fault(number, "columns", f"{entry!r:.40} is not a word with its translations")
        if translations == []:
            yield number, Fault(number, "blank", f"{word!r} has no translation")


_HEADERS = ("word\tcount", _OWN_HEADER)
_COUNTED = "give lines as the<TAB>129, or a .tsv that `derivlang dict` wrote"
_LISTED = "write one word in each line"


def read_counts(path: Path) -> dict[str, int]:
    """Return the count of each word of a file, plain or compressed.

    Raises DataError missing-file, encoding, and word-counts: no line, a line without a count, two counts of one word.
    """
    counts = parse_counts(read_text(path), str(path))
    if not counts:
        raise DataError("the file has no word with a count", where=f"{path}:1", fix=_COUNTED, id="word-counts")
    return counts


def write_counts(words: Iterable[str], counts: Iterable[int]) -> str:
    """Return words and their counts as the text of a file."""
    return write_rows(_HEADERS[0], zip(words, map(str, counts), strict=True))


def parse_counts(text: str, where: str) -> dict[str, int]:
    """Return the count of each word of a text. Raise DataError word-counts; where: the text's name in errors."""
    counts: dict[str, int] = {}
    # Not splitlines: it also cuts at characters that may stand inside a word.
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if not line or (number == 1 and line in _HEADERS):
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not cells[0] or not _COUNT.fullmatch(cells[-1]):
            what = f"{line[:60]!r} is not a word and its count, separated by a tab"
            raise DataError(what, where=f"{where}:{number}", fix=_COUNTED, id="word-counts")
        word, count = unescape(cells[0]), int(cells[-1])
        if counts.setdefault(word, count) != count:
            what = f"the word {word!r} has the counts {counts[word]} and {count}"
            raise DataError(what, where=f"{where}:{number}", fix=_COUNTED, id="word-counts")
    return counts


def read_word_list(path: Path) -> list[str]:
    """Return the words of a file, each once, in order of their first lines. White space around them is left out.

    Raises DataError missing-file, encoding, and word-list: no word, or a line with several.
    """
    # Not splitlines, which also cuts at characters inside words.
    lines = [line.strip() for line in read_text(path).split("\n")]
    for number, line in enumerate(lines, 1):
        if len(line.split()) > 1:
            what = f"{line[:60]!r} is more than one word"
            raise DataError(what, where=f"{path}:{number}", fix=_LISTED, id="word-list")
    words = list(dict.fromkeys(filter(None, lines)))
    if not words:
        raise DataError("the file has no word", where=f"{path}:1", fix=_LISTED, id="word-list")
    return words
