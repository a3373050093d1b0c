"""Files that appear whole: written under another name, flushed and renamed, by one process at a time.

    OUT                      the file, always a complete one
    .OUT.derivlang/OUT       what is being written; the next process that writes OUT replaces what a dead one left
    .OUT.derivlang.lock      the lock of the process that writes
    .OUT.lock                the lock of a command that makes the file, from its beginning (`held_file`)

Standard output, pipes and devices are written to as they are. Of several files the record comes first, as it names the
others, and then they come:

    OUT.recipe.json
    OUT
"""

from __future__ import annotations

import errno
import io
import os
import stat
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from derivlang.core.errors import StoreError, UsageError, visible
from derivlang.core.messages import warn
from derivlang.store.disk import disk, held, remove
from derivlang.store.folders import staged
from derivlang.store.record import digest, file_hash


def is_stream(out: Path) -> bool:
    """Return whether a path is standard output (`-`, or another name of it), a pipe or a device: it is not replaced."""
    if _is_stdout(out):
        return True
    with suppress(OSError):
        mode = out.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def refuse_source(out: Path, sources: Iterable[Path], noun: str, source: str = "source") -> None:
    """Raise UsageError if a file to write is one of those that it is made of, also with --force.

    noun, source: what they are called.
    """
    if any(path.exists() and out.exists() and out.samefile(path) for path in sources):
        fix = "name another file"
        raise UsageError(f"{noun} cannot be written over its {source}", where="-o", fix=fix, id="output")


@contextmanager
def writing(out: Path, *, replace: bool | None = None) -> Iterator[BinaryIO]:
    """Open a file that appears only when it is complete; a stream is written to.

    replace: of a file that the user has named: whether one with another content is replaced. A link is followed. None
    for another file of a result, which replaces what has its name: a link is not followed, and a pipe not written to.
    StoreError if it is not replaced, or if `out` cannot be written.
    """
    with writing_all([out], replace=replace) as (stream,):
        yield stream


@contextmanager
def writing_all(
    outs: Sequence[Path], gone: Sequence[Path] = (), *, replace: bool | None = None
) -> Iterator[list[BinaryIO]]:
    """Open files of one folder that belong together. None of them appears before all are complete.

    outs: the first is the one that the user has named; the last of several is the record, which is always replaced and
    appears first. gone: files of an earlier result, removed if they are there. replace: as of `writing`.
    """
    others = [None if replace else replace] * (len(outs) - 2)  # links at names that nobody gave are not followed
    ways = [replace, *others, None][: len(outs)]
    drafts: dict[Path, Path] = {}
    with ExitStack() as places:
        with ExitStack() as opened:
            streams: list[BinaryIO] = []
            for out, way in zip(outs, ways, strict=True):
                if way is not None and is_stream(out):
                    streams.append(opened.enter_context(_open_stream(out)))
                    continue
                drafts[out] = places.enter_context(_in_place(out, way is not None))
                streams.append(opened.enter_context(drafts[out].open("xb")))
            yield [*streams]
            for out, stream in zip(outs, streams, strict=True):
                stream.flush()
                if out in drafts:
                    os.fsync(stream.fileno())
        for out, way in zip(outs, ways, strict=True):
            if way is False and out in drafts and out.exists() and file_hash(out) != file_hash(drafts[out]):
                raise StoreError(
                    "holds something else than this command writes",
                    where=str(out),
                    fix="name another file, or --force; the file is as it was",
                    id="out-exists",
                )
        for path in gone:
            remove(path)


@contextmanager
def _in_place(out: Path, follow: bool) -> Iterator[Path]:
    """Give the draft of a file, which takes the place of the file after the block. follow: whether a link is followed.

    StoreError if the folder of the file is missing, as no folder is made for a file.
    """
    place = out.resolve() if follow else out
    with disk(out):
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        place.parent.stat()
    with staged(out, place) as stage:
        yield stage / place.name
        (stage / place.name).replace(place)


def write_texts(out: Path, texts: Mapping[str, str], gone: Sequence[str] = (), *, replace: bool | None = None) -> None:
    """Write several files: `out`, and others beside it. Arguments as of `writing_all`, files by their names."""
    outs = [out if name == out.name else out.with_name(name) for name in texts]  # a stream is not beside anything
    with writing_all(outs, [out.with_name(name) for name in gone], replace=replace) as streams:
        for stream, text in zip(streams, texts.values(), strict=True):
            stream.write(text.encode())


@contextmanager
def held_file(out: Path, told: str, *plan: Any, warn: Callable[[str], None] = warn) -> Iterator[None]:
    """Hold a file while a command makes it, from its beginning. Nothing is held for a stream.

    plan: what the content depends on. Another process with the same plan waits, one with another plan is refused with a
    StoreError, which names `told`, the plan for people.
    """
    if not is_stream(out):
        with disk(out):
            out.resolve().parent.stat()  # a lock would make the folder
        with held(out, digest([told, *plan]), told, warn, what="this file"):
            yield
        return
    yield


def _is_stdout(out: Path) -> bool:
    """Return whether a path names what standard output is: /dev/stdout, or the file that a shell redirects it to."""
    if str(out) == "-":
        return True
    with suppress(OSError):
        return os.path.samestat(out.stat(), os.fstat(1))
    return False


@contextmanager
def _open_stream(out: Path) -> Iterator[BinaryIO]:
    stdout = _is_stdout(out)
    try:
        with StreamOutput(os.dup(1) if stdout else os.open(out, os.O_WRONLY)) as stream:
            yield stream
    except BrokenPipeError:  # the reader closed the pipe
        raise
    except OSError as error:
        where = "standard output" if stdout else str(out)
        raise StoreError(f"cannot write: {error.strerror}", where=where, id="cannot-write") from None


class StreamOutput(io.BufferedWriter):
    """A stream of bytes that counts its position, which pyarrow asks for even if it is a pipe.

    A terminal sees control characters as escapes. descriptor: of the open stream, which is closed with this object.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb"))
        self._written = 0
        self._decoder = getincrementaldecoder("utf-8")("replace") if os.isatty(descriptor) else None

    def write(self, data: Any) -> int:
        """Write bytes, and return their number."""
        n = len(data)
        if self._decoder is not None:
            data = visible(self._decoder.decode(data), keep="\t\n").encode()
        super().write(data)
        self._written += n
        return n

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._written
