"""Text of another encoding as UTF-8, and the errors for bytes that are not of the encoding.

Where each letter has one byte, what is not of the encoding is refused at its first letters: as latin-1, "Le café" in
UTF-8 would come out as "Le cafÃ©", and Arabic in cp1256 as accented letters.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from derivlang.core.errors import DataError

AT_ONCE = 1 << 16  # bytes that are recoded at a time
_UPPER = bytes(range(128, 256))
_NO_ASCII = re.compile(b"[\x80-\xff]+")
_LETTERS = re.compile(b"[\xc0-\xff]+")  # beyond ASCII, in latin-1 and its like: dashes and quotation marks are below
_NOT_LATIN = "cp1251 (Russian), cp1256 (Arabic) or shift_jis (Japanese)"
_AS_UTF8 = "pass --encoding utf-8; if other files of the source are not UTF-8, convert them"
_CUT = ("unexpected end of data", "incomplete multibyte sequence", "truncated data")  # reasons of Python's decoders
_C1 = re.compile("[\x80-\x84\x86-\x9f]")  # U+0085 ends lines in some files


def recoded(stream: BinaryIO, path: Path, encoding: str) -> Iterator[bytes]:
    """Yield a stream in another encoding as UTF-8. Raises DataError encoding for bytes that the encoding lacks."""
    decoder = codecs.getincrementaldecoder(encoding)()
    upper = _UPPER.decode(encoding, "replace")
    one_byte = len(upper) == len(_UPPER) and upper.count("\ufffd") < 64  # a letter has
    unchecked, is_wide = one_byte, codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    line, read, raw = 1, 0, b"..."
    while raw:
        raw = stream.read(AT_ONCE)
        read += len(raw)
        state = decoder.getstate()  # the byte order, among others
        if unchecked and not raw.isascii():
            unchecked = False
            _check(raw, path, encoding, upper)
        if is_wide and read == len(raw) and raw and b"\0" not in raw:  # a line feed in UTF-16 has a zero byte
            with suppress(UnicodeDecodeError):
                codecs.utf_8_decode(raw, "strict", False)
                raise _other(path, f"the file is UTF-8, but the encoding is {encoding}", _AS_UTF8)
        try:
            text = decoder.decode(raw, final=not raw)
            block = text.encode()
        except UnicodeDecodeError as error:
            at = line + _lines_before(error, raw, decoder, state)
            raise undecodable(path, encoding, error, read - len(error.object), at) from None
        except UnicodeError as error:  # UTF-16 without a byte-order mark, or half of a surrogate pair in UTF-7
            fix = "pass --encoding with the byte order, such as utf-16-le"
            raise DataError(str(error), where=f"{path}:{line}", fix=fix, id="encoding") from None
        if one_byte and (control := _C1.search(text)):
            raise DataError(
                f"{encoding} has the control character U+{ord(control[0]):04X} there",
                where=f"{path}:{line + text.count(chr(10), 0, control.start())}",
                fix="pass --encoding cp1252 if it should be a quotation mark or a dash, or convert the file",
                id="encoding",
            )
        line += text.count("\n")
        yield block


def _check(raw: bytes, path: Path, encoding: str, upper: str) -> None:
    """Raise DataError if the first block with letters beyond ASCII is UTF-8, or not in the encoding's script.

    upper: the letters that the encoding has beyond ASCII.
    """
    try:
        codecs.utf_8_decode(raw, "strict", False)
    except UnicodeDecodeError:
        letters = [unicodedata.name(letter, "") for letter in upper if letter.isalpha()]
        is_latin = 2 * sum(name.startswith("LATIN") for name in letters) > len(letters)
        if not is_latin or not _has_no_latin(_LETTERS.findall(raw)):
            return
        found = f"its words are not in Latin letters, which {encoding} is for"
        fix = f"pass the file's own --encoding, such as {_NOT_LATIN}, or convert the file"
    else:  # text with one byte a letter hardly ever is
        found, fix = f"the file is UTF-8, but the encoding is {encoding}", _AS_UTF8
    raise _other(path, found, fix)


def _other(path: Path, found: str, fix: str) -> DataError:
    return DataError(found, where=str(path), fix=fix, id="encoding")


def _lines_before(error: UnicodeDecodeError, raw: bytes, decoder: codecs.IncrementalDecoder, state: Any) -> int:
    """Return the number of line ends in a block before the byte that cannot be decoded.

    state: of the decoder before the block. `error.object` is what the decoder held, and the block.
    """
    held = len(error.object) - len(raw)
    decoder.setstate(state)
    decoder.errors = "ignore"
    try:
        return decoder.decode(raw[: max(0, error.start - held)]).count("\n")
    except UnicodeError:  # UTF-16 without a byte-order mark
        return 0


def _is_utf8(line: bytes) -> bool:
    """Return whether a line has characters of several bytes, all of them UTF-8."""
    with suppress(UnicodeDecodeError):
        return len(line.decode()) < len(line)
    return False


def _has_no_latin(runs: list[bytes]) -> bool:
    """Return whether whole words, and not single letters, are beyond ASCII. runs: of bytes beyond it."""
    return 4 * sum(len(run) > 2 for run in runs) > len(runs)


def undecodable(path: Path, encoding: str, error: UnicodeDecodeError, offset: int, line: int) -> DataError:
    """Return the error. offset: where `error.object` begins in the file. line: of the byte."""
    offset += error.start
    likely = "cp1252" if error.object[error.start] in range(0x80, 0xA0) else "latin-1"
    if _has_no_latin(_NO_ASCII.findall(error.object)):
        likely = _NOT_LATIN
    fix = f"pass the file's own --encoding, such as {likely}, or convert the file"
    if error.end == len(error.object) and error.reason in _CUT:
        fix = f"the file ends inside a character if it is {encoding}: copy or download it again; otherwise {fix}"
    elif codecs.lookup(encoding).name.startswith("utf-8") and any(map(_is_utf8, error.object.split(b"\n"))):
        fix = "convert the lines that are not UTF-8: other lines are, so the file mixes encodings"
    if offset == 0 and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        bits = 32 if error.object.startswith(codecs.BOM_UTF32_LE) else 16
        fix = f"pass --encoding utf-{bits}, because the file starts with a UTF-{bits} byte-order mark"
    return DataError(
        f"byte 0x{error.object[error.start]:02x} at offset {offset} is not {encoding}",
        where=f"{path}:{line}",
        fix=fix,
        id="encoding",
    )
