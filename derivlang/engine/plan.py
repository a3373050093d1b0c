"""The plan: which shard holds which piece of which file. Fixed before anything runs, the same for any engine.

A large plain text file is cut at non-empty lines; a gz or zst file, and every labelled file, is one task.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.core.splits import split_name
from derivlang.engine.job import Job, Task
from derivlang.formats.text import Piece, count_documents, cut
from derivlang.sources import read
from derivlang.sources.corpus import PACKED, Part

SHARD_TOKENS = 20_000_000
# Bytes of tokenised English text a word, to plan shards of some number of words by bytes.
_BYTES_A_WORD = 5.3


def make_plan(
    job: Job, out: Path, *, splits: list[str] | None, shard_tokens: int, limit: int | None
) -> dict[str, list[Task]]:
    """The tasks of each split. DataError for a named split that the source lacks."""
    wanted = [split_name(split) for split in splits] if splits else job.corpus.splits
    for split in wanted:
        if split not in job.corpus.splits:
            raise DataError(
                f"{job.corpus.name} has no split {split!r} here; found: {', '.join(job.corpus.splits)}",
                where="--splits",
                fix="leave --splits out to make what there is, or add the missing files",
                id="missing-split",
            )
    return {split: _split_tasks(job, split, out, shard_tokens, limit) for split in dict.fromkeys(wanted)}


def _split_tasks(job: Job, split: str, out: Path, shard_tokens: int, limit: int | None) -> list[Task]:
    parts = [part for part in job.corpus.parts if part.split == split]
    pieces = [(part, piece) for part in parts for piece in _pieces(job, part, shard_tokens, limit)]
    tasks = []
    first, left, line = 0, limit, 0
    for i, (part, piece) in enumerate(pieces):
        name = f"{split}-{i:05d}-of-{len(pieces):05d}"
        line = line if piece.begin else 0
        piece = replace(piece, line=line)
        tasks.append(Task(name, split, part, piece, first, left, out / "data" / f"{name}.parquet"))
        if i + 1 < len(pieces):
            documents, lines = _count(job, part, piece)
            first, line = first + documents, line + lines
            if left is not None:
                left = max(0, left - documents)
    return [task for task in tasks if task.limit != 0]


def _pieces(job: Job, part: Part, shard_tokens: int, limit: int | None) -> list[Piece]:
    plain = job.corpus.format == "text" and part.path.suffix not in PACKED and job.encoding == "utf-8"
    if not plain or limit is not None:
        return [Piece()]
    try:
        size = part.path.stat().st_size
        target = max(1, int(shard_tokens * _BYTES_A_WORD))
        cuts = cut(part.path, job.corpus.splitter(), size, target) if size > target else [Piece(0, size)]
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=str(part.path), id="missing-file") from error
    return cuts if len(cuts) > 1 else [Piece()]


def _count(job: Job, part: Part, piece: Piece) -> tuple[int, int]:
    """(documents, lines) of a piece; lines only where a file has more than one."""
    if job.corpus.format == "text":
        return count_documents(part.path, job.corpus.splitter(), piece, job.encoding)
    return read.count_documents(job.corpus, part, job.encoding), 0


def source_files(job: Job, splits: list[str]) -> list[dict[str, Any]]:
    """Name, bytes and SHA-256 of the files that the plan reads."""
    out = []
    for part in job.corpus.parts:
        if part.split not in splits:
            continue
        entry: dict[str, Any] = {"split": part.split, "name": part.name}
        if job.corpus.format != "hub":
            try:
                with part.path.open("rb") as file:
                    entry["bytes"] = part.path.stat().st_size
                    entry["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise DataError(f"cannot be read: {error.strerror}", where=str(part.path), id="missing-file") from error
        out.append(entry)
    return out


def check_shard_tokens(value: int) -> int:
    if value < 1:
        raise UsageError(f"{value} is no number of words", where="--shard-tokens", id="bad-value")
    return value
