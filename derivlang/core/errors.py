"""The exceptions that a user may see, and the form of their messages.

    DerivlangError            exit code 1
    ├── UsageError            exit code 2: the command, a spec or an option is wrong
    └── DataError             the input is wrong: a file, a line, a word
        ├── LayerError        an annotation does not fit its words
        └── StoreError        a derived folder is damaged, incomplete or made by another plan

A message says what is wrong and where, ends with a short stable id, and says on a second line what to do:

    fr.conllu:1482: word 9 has head 31, but the sentence has 24 words [head-range]
      correct the tree, or leave out the sentence

`parse_errors` is the boundary between derivlang's readers and the parsers of foreign data. A reader does not list the
exceptions that a parser may raise: each of them becomes an error of derivlang with its file and line.

    with parse_errors(lambda: f"{path}:{line}", "JSON"):
        json.loads(text)          # 5,000 digits, nesting 100,000 deep, a lone surrogate: always a DataError
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

_LINES = "\t\n"
_LONGEST = 1000  # maximum number of characters of each part of a message
_LONG_NAME = re.compile(r"[^\s/]{256,}")  # longer than any file's name


class DerivlangError(Exception):
    """Base class of the errors that a user may see. It formats their messages.

    what: a sentence without a full stop. where: `file:line`, an option or a folder. fix: what to do next.
    id: a short stable name of the fault, for scripts.

    >>> try:
    ...     derivlang.derive("Welcome to ACL .", "invert")
    ... except derivlang.DerivlangError as error:
    ...     print(error.id)
    unknown-transform
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None, id: str = "error"):
        super().__init__(what, where, fix, id)
        self.what, self.where, self.fix, self.id = what, where, fix, id

    def __str__(self) -> str:
        place = f"{_short(self.where)}: " if self.where else ""
        step = f"\n  {_short(self.fix, keep=_LINES)}" if self.fix else ""
        return f"{place}{_short(self.what)} [{self.id}]{step}"

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only fields do not survive the default pickling
        return partial(type(self), self.what, where=self.where, fix=self.fix, id=self.id), ()


class UsageError(DerivlangError):
    """The command line, a spec string or an option cannot be used."""

    exit_code = 2


class DataError(DerivlangError):
    """The input does not have the expected form."""


class LayerError(DataError):
    """An annotation does not fit its words."""


class StoreError(DataError):
    """A derived folder is damaged, incomplete, or was made by another plan."""


def unknown(
    kind: str, name: str, names: Iterable[str], *, where: str | None = None, fix: str | None = None, id: str = ""
) -> UsageError:
    """Return the error for an unknown name, with similar names or else the list of all names.

    id: if not given, `unknown-` and the first word of the kind, as in unknown-parameter for "parameter of trans".
    """
    import difflib  # imported late: help pages load this module

    known = sorted(names)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    listed = f"there are: {', '.join(known)}" if known else "there are none"
    hint = f"did you mean {' or '.join(near)}?" if near else listed
    return UsageError(
        f"there is no {kind} {name!r}; {hint}", where=where, fix=fix, id=id or f"unknown-{kind.split()[0]}"
    )


def _short(text: str, keep: str = "\t") -> str:
    """Return a part of a message, with overlong names and text cut, and lone surrogates and control characters escaped.

    keep: the control characters that stay.
    """
    text = visible(text.encode("utf-8", "backslashreplace").decode(), keep)
    text = _LONG_NAME.sub(lambda found: f"{found[0][:80]}…{found[0][-40:]}", text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 4 :]}"


# C0, DEL and C1; embeddings, overrides and isolates of direction. A terminal obeys them: ESC [ 8 m hides what follows,
# CR writes over the line, U+202E turns the rest of it around. U+200E, U+200F and U+061C reorder nothing else, and stay.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters as `\u001b`. keep: those that stay, such as line ends.

    In JSON the escapes mean the same characters.
    """
    return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else f"\\u{ord(match[0]):04x}", text)


_RUST = "pyo3_runtime"  # a panic of a Rust library is a BaseException, but not an Exception
_LONGEST_REASON = 200  # maximum number of characters of a parser's message, which may quote the whole input


@contextmanager
def parse_errors(
    where: str | Callable[[], str],
    what: str,
    *,
    error: type[DerivlangError] = DataError,
    id: str = "unreadable",
    fix: str | None = None,
    within: type[DerivlangError] | tuple[()] = (),
) -> Iterator[None]:
    """Raise `error` in place of any exception of the block that is not a DerivlangError.

    where: `file:line`, a file or an option; a function is called when something fails, so that it can name the line
    that was being read. what: a noun for the content ("JSON", "manifest"). The original exception is the cause.
    within: errors of derivlang for which the content is at fault, too, such as an error of a spec in a manifest.
    """
    try:
        yield
    except DerivlangError as caught:
        if isinstance(caught, error) or not isinstance(caught, within):
            raise
        place, told = where if isinstance(where, str) else where(), reason(ValueError(caught.what))
        raise error(f"this is not a valid {what}: {told}", where=place, fix=fix, id=id) from caught
    except OSError as caught:
        place = where if isinstance(where, str) else where()
        raise error(f"cannot be read: {caught.strerror or reason(caught)}", where=place, fix=fix, id=id) from caught
    except BaseException as caught:
        if not isinstance(caught, Exception) and type(caught).__module__ != _RUST:
            raise  # an interrupt, not a fault of the bytes
        place = where if isinstance(where, str) else where()
        raise error(f"this is not a valid {what}: {reason(caught)}", where=place, fix=fix, id=id) from caught


def causes(caught: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    at: BaseException | None = caught
    seen: list[BaseException] = []
    while at is not None and at not in seen:  # `raise e from e` is its own cause
        yield at
        seen.append(at)
        at = at.__cause__ or at.__context__


def reason(caught: BaseException) -> str:
    """Return the first line of an exception's message, for people."""
    if isinstance(caught, RecursionError):
        return "it is nested too deeply"
    if isinstance(caught, MemoryError):
        return "it does not fit into memory"
    if isinstance(caught, KeyError):
        return f"{caught} is missing"
    lines = str(caught).splitlines()
    text = lines[0].rstrip(".") if lines and lines[0].strip() else type(caught).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
