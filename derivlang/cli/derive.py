"""`derivlang derive`: a text, or lines from standard input, under a pipeline; text in, text out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.commands.command import Command, transforms
from derivlang.commands.sets import TRANSFORMS
from derivlang.core.errors import DataError, visible
from derivlang.core.settings import setting
from derivlang.engine.options import LexiconOption, ParserOption, SentenceRule

if TYPE_CHECKING:
    from derivlang.api import DerivedText

_STDIN = "standard input"
_BLOCK = 1 << 16  # bytes read at once, if so many are there: their lines are derived together


@dataclass(frozen=True, eq=False, repr=False)
class _DeriveText(Command[None], LexiconOption, SentenceRule, ParserOption):
    """Derive TEXT, or each line of standard input if TEXT is -, as `make` derives a .txt file.

    Each input line gives one output line: the derived words, joined by one space. Lines are written as soon as they are
    read, so the command can stand in a pipe. A terminal shows control characters as escapes; a pipe or a file gets
    them.

    \b
    derivlang derive --t inv - < corpus.txt
    derivlang derive --t trans,inv --json "Welcome to ACL ."
    derivlang derive --t trans,inv "Welcome to ACL ."
    """

    text: str
    spec: Annotated[str, transforms(TRANSFORMS)]
    words: Literal["spacy", "unicode", "space"] | None = setting(
        None, "Word splitter; space for tokenised text.", unset="spacy"
    )
    lang: str = setting("en", "Language of the text, for spaCy's tokenizer and the parser.")

    def __call__(self) -> None:
        """Print the derived lines."""
        from derivlang.api import derive_chunks

        lines = _lines_as_they_come(sys.stdin.buffer) if self.text == "-" else iter([self.text.split("\n")])
        derived = derive_chunks(
            lines, self.spec, words=self.words, lang=self.lang, sentences=self.sentences,
            lexicon=self.path("lexicon"), parser=self.parser, one=self.text != "-",
        )  # fmt: skip
        for chunk in derived:
            _write(chunk)


def _write(texts: Iterable[DerivedText]) -> None:
    out = sys.stdout.buffer  # UTF-8, whatever the locale
    lines = (json.dumps(_object(text), ensure_ascii=False) if as_json() else text.text for text in texts)
    if sys.stdout.isatty():  # which would obey control characters; a pipe gets the words as they are
        lines = (visible(line, keep="\t") for line in lines)
    out.write("".join(f"{line}\n" for line in lines).encode())
    out.flush()


def _object(text: DerivedText) -> dict[str, Any]:
    """Return what `--json` prints of a line. links: as `export --format pharaoh` writes them."""
    links = " ".join(f"{i}-{j}" for i, j in text.links)
    return {"text": text.text, "words": text.words, "source": text.source, "order": text.order, "links": links}


def _lines_as_they_come(stream: BinaryIO) -> Iterator[list[str]]:
    """Yield the lines of a stream in chunks, each as soon as it is there. A last line needs no newline.

    Raises DataError, with the number of the line, for a byte that is not UTF-8 and for a NUL byte.
    """
    done, first = 0, True
    rest: list[bytes] = []  # the beginning of a line whose end has not come
    while block := stream.read1(_BLOCK):  # type: ignore[attr-defined]
        complete, newline, last = block.rpartition(b"\n")
        if not newline:
            rest.append(block)
            continue
        lines = b"".join((*rest, complete)).split(b"\n")
        yield [_decoded(line, done + number, first=first) for number, line in enumerate(lines, start=1)]
        done, rest, first = done + len(lines), [last] if last else [], False
    if rest:
        yield [_decoded(b"".join(rest), done + 1, first=first)]


def _decoded(line: bytes, number: int, *, first: bool) -> str:
    """Return a line as text, without the mark at the head of a file. number: of the line, for errors."""
    if b"\0" in line:
        raise DataError(
            "the line holds a NUL byte: the input is binary, or text in UTF-16",
            where=f"{_STDIN}:{number}",
            fix="convert it to UTF-8, e.g. with iconv",
            id="nul-byte",
        )
    try:
        return line.decode("utf-8-sig" if first and number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {error.start} (0x{error.object[error.start]:02X}) is not utf-8",
            where=f"{_STDIN}:{number}",
            fix="convert it to UTF-8, e.g. with iconv",
            id="encoding",
        ) from None


command = command_line(
    _DeriveText,
    "derive",
    arguments=[click.Argument(["text"])],
    run=lambda asked: asked(),
    json_help="Print an object per line: text, words, source words and links.",
)
