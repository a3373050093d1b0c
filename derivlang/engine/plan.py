"""The plan: which shard holds which piece of which file. It is fixed before anything runs, for every engine alike.

Shards are planned by the size of what is read: a large plain file is cut where its format says (`Format.cut`), and
small files that follow each other share a shard. A large gz or zst file is one task. So is a whole split under a
pipeline that draws in sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.messages import first_names
from derivlang.core.names import split_name
from derivlang.core.schema import answered_side
from derivlang.core.settings import typed
from derivlang.engine.job import Job, Plan, ShardTask
from derivlang.engine.options import MakeOptions
from derivlang.formats.inspection import FileStamp
from derivlang.formats.opening import WHOLE, Piece, packing_of
from derivlang.formats.places import size_of as bytes_of_file
from derivlang.formats.progress import stage
from derivlang.sources import read
from derivlang.sources.corpus import CorpusFile, FileSpan
from derivlang.store.shards import other_shard

# Bytes for each word of tokenised English text: shards of some number of words are planned by bytes.
_BYTES_A_WORD = 5.3
_PACKED = 4  # bytes of text for each byte of a compressed file


def make_plan(
    job: Job,
    *,
    splits: list[str] | None,
    shard_tokens: int | None = None,
    limit: int | None = None,
) -> Plan:
    """Return the tasks of each split. The source is read, to number its documents. Arguments as of `layout`.

    limit: documents of a split at most.
    """
    tasks = layout(job, splits=splits, shard_tokens=shard_tokens, limited=limit is not None)
    return numbered(tasks, limit, lambda span: read.count_documents(job.corpus, span, job.encoding))


def layout(
    job: Job,
    *,
    splits: list[str] | None,
    shard_tokens: int | None = None,
    limited: bool = False,
) -> Plan:
    """Return the tasks of each split, without the numbers of their documents and lines, for which all must be read.

    splits: the splits that the source has, if empty or None. shard_tokens: approximate number of words per task; None
    for any number. limited: whether the documents of a split are limited; no file is cut then. DataError for a named
    split that the source lacks.
    """
    wanted = [split_name(split) for split in splits] if splits else job.corpus.splits
    for split in wanted:
        if split not in job.corpus.splits:
            raise DataError(
                f"{job.corpus.name} has no split {split!r} here; found: {', '.join(job.corpus.splits)}",
                fix="name one of these splits, or add the missing files",
                id="missing-split",
            )
    size = None if shard_tokens is None or not job.pipeline.keyed else max(1, int(shard_tokens * _BYTES_A_WORD))
    cut = None if limited else size
    return {split: _split_tasks(job, split, cut, size) for split in dict.fromkeys(wanted)}


def numbered(tasks: Plan, limit: int | None, count: Callable[[FileSpan], tuple[int, int]]) -> Plan:
    """Return the tasks of a layout with their numbers: of documents through a split, of lines through a file.

    limit: documents of a split at most. count: the documents and lines of a span; not called for the last one.

    a.txt has 9 lines, the third of them empty, and is cut after 6 of them; b.txt and c.txt have 4 lines each:

                          first_document   piece.line   limit
        0-of-3   a.txt    0                0            None
        1-of-3   a.txt    5                6            None
        2-of-3   b.txt    8                0            None
                 c.txt    12               0            None

    Under a limit a file is not cut. A limit of 10 gives a.txt the limit 10 and b.txt, with 8 documents before it, 2.
    Under a limit of 8 there is no task for b.txt.
    """
    return {split: list(_numbered(of_split, limit, count)) for split, of_split in tasks.items()}


def _numbered(
    tasks: list[ShardTask], limit: int | None, count: Callable[[FileSpan], tuple[int, int]]
) -> Iterator[ShardTask]:
    first, left, line = 0, limit, 0
    last = tasks[-1].spans[-1] if tasks else None
    for task in tasks:
        spans = []
        for span in task.spans:
            if left == 0:
                break
            line = line if span.piece.begin else 0  # a new file: messages count lines from its beginning
            spans.append(replace(span, piece=replace(span.piece, line=line), first_document=first, limit=left))
            if span is not last:  # to count its documents would be to read it in vain
                documents, lines = count(span)
                first, line = first + documents, line + lines
                if left is not None:
                    left = max(0, left - documents)
        if spans:
            yield replace(task, spans=tuple(spans))


def _split_tasks(job: Job, split: str, cut: int | None, size: int | None) -> list[ShardTask]:
    """Return the tasks of a split. cut, size: bytes of a piece and of a shard; None for any number."""
    parts = [part for part in job.corpus.parts if part.split == split]
    pieces = [(part, piece) for part in parts for piece in _pieces(job, part, cut)]
    shared = _shared(job, pieces, size) if job.pipeline.keyed else [0] * len(pieces)
    spans: dict[int, list[FileSpan]] = {}  # of each shard
    for shard, (part, piece) in zip(shared, pieces, strict=True):
        spans.setdefault(shard, []).append(FileSpan(part, piece))
    names = {shard: f"{split}-{shard:05d}-of-{shared[-1] + 1:05d}" for shard in spans}
    return [ShardTask(name, tuple(spans[i])) for i, name in names.items()]


def _shared(job: Job, pieces: list[tuple[CorpusFile, Piece]], size: int | None) -> list[int]:
    """Return the number of the shard of each piece. Only whole files that follow each other share one.

    Sizes 3, 4, 9 (in two pieces), 2, 2 and shards of 8   ->   0, 0, 1, 2, 3, 3
    """
    shards, filled, shard = [], 0, -1
    for part, piece in pieces:
        n_bytes = _bytes_of(job, part) if piece == WHOLE else None
        if n_bytes is None or shard < 0 or filled < 0 or (size is not None and filled + n_bytes > size):
            shard, filled = shard + 1, 0
        filled = -1 if n_bytes is None else filled + n_bytes  # -1: nothing else belongs to this shard
        shards.append(shard)
    return shards


def _bytes_of(job: Job, part: CorpusFile) -> int | None:
    """Return about how much text a file holds, None for one that shares no shard.

    The shards of a derived set have the size that was asked for when it was made; other rows may come from no file.
    """
    if (
        job.corpus.format == "derived" or not job.corpus.has_files or not part.path.is_file()
    ):  # a broken link is an error later
        return None
    return bytes_of_file(part.path) * (_PACKED if packing_of(part.path) else 1)


def warn_of_uncut(job: Job, options: MakeOptions, warn: Callable[[str], None]) -> None:
    """Warn if `shard_tokens` was given and has no effect: under a limit, or for files larger than a shard.

    Not of the shards of a parse, which the user has not named.
    """
    if not typed(options, ("shard_tokens",)) or job.corpus.options.get("parser"):
        return
    if not job.pipeline.keyed:
        warn(f"{job.pipeline} draws in sequence, so a split is one shard and --shard-tokens has no effect")
        return
    if options.limit is not None:
        warn("under --limit no file is cut, so --shard-tokens has no effect")
        return
    wanted = [split_name(split) for split in options.splits] or job.corpus.splits
    whole = [part.name for part in job.corpus.parts if part.split in wanted and _stays_whole(job, part, options)]
    if whole:
        why = "only plain files in UTF-8 are cut, before a row, a sentence or a row group"
        why = "--answers atomic keeps files whole" if _stays_together(job) else why
        warn(f"--shard-tokens does not cut {first_names(whole)}: {why}")


def _stays_whole(job: Job, part: CorpusFile, options: MakeOptions) -> bool:
    """Return whether a file that is larger than a shard is one piece. Rows on the hub have no size."""
    if job.corpus.format == "hub":
        return True
    shard = int(options.shard_tokens * _BYTES_A_WORD)
    size = bytes_of_file(part.path) if part.path.is_file() else 0  # a broken link is an error later
    return size > shard and len(_pieces(job, part, max(shard, size // 2))) == 1


def _pieces(job: Job, part: CorpusFile, size: int | None) -> list[Piece]:
    """Return the pieces of a file."""
    if size is None or _stays_together(job) or job.corpus.format == "derived":
        return [WHOLE]
    return read.format_of(job.corpus).pieces(part.path, size, job.encoding, read.options_of(job.corpus))


def _stays_together(job: Job) -> bool:
    """Return whether rows with one context stay in one task, because all their answers form its groups."""
    return job.policies.answers == "atomic" and answered_side(job.corpus.schema) is not None


def look(job: Job, splits: list[str]) -> dict[Path, FileStamp]:
    """Hash the files of some splits, the rows of a set on the hub, or what a generated source depends on.

    StoreError for a shard of a derived set that is not the one its manifest lists.
    """
    parts = [part for part in job.corpus.parts if part.split in splits]
    with stage("hashing", total=total_size([ShardTask("", tuple(map(FileSpan, parts)))])):
        return {part.path: look_at(job, part) for part in parts}


def look_at(job: Job, part: CorpusFile) -> FileStamp:
    """Hash one file, as `look` does, or what is read in place of a file. DataError if it cannot be read."""
    corpus = job.corpus
    if not corpus.has_files:
        content = read.format_of(corpus).content
        assert content is not None
        return FileStamp(sha256=content(part.path, **corpus.options))
    seen = FileStamp.of(part.path)
    if seen.sha256 != corpus.options.get("sha256", {}).get(part.name, seen.sha256):
        raise other_shard(part.path)
    return seen


def source_files(job: Job, splits: list[str]) -> list[dict[str, Any]]:
    """Return name, bytes (only of files) and SHA-256 of the files that the plan reads."""
    out = []
    for part in job.corpus.parts:
        if part.split in splits:
            seen = job.seen.get(part.path) or look_at(job, part)
            size = {"bytes": seen.stamp[0]} if job.corpus.has_files else {}
            out.append({"split": part.split, "name": part.name, **size, "sha256": seen.sha256})
    return out


def files_of(job: Job) -> list[dict[str, Any]]:
    """Return the files of a planned source, as the manifest lists them."""
    return job.corpus.options.get("files") or source_files(job, list(job.plan))


def total_size(tasks: Iterable[ShardTask]) -> int | None:
    """Return the bytes of the source that some tasks read, or None if unknown: with a limit, or on the hub."""
    spans = [span for task in tasks for span in task.spans]
    if all(span.limit is None for span in spans):
        with suppress(OSError):
            ends = [bytes_of_file(span.part.path) if span.piece.end is None else span.piece.end for span in spans]
            return sum(ends) - sum(span.piece.begin for span in spans)
    return None
