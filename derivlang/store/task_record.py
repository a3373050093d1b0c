"""The record of a finished task: its shard, its counts, and the vocabulary of what it read.

    3f0c…                                                   SHA-256 of all that follows
    {"task": "train-00000-of-00002", "plan": …, "shard": …}  the entry, one line of JSON
    ARROW1…                                                 types and their counts, an Arrow stream

A record is written after its shard, whole or not at all. So a task with a record is done, and the records of all tasks
are what a finished set is made of. A record that was damaged is as if it were not there: the task runs again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.errors import DerivlangError, StoreError
from derivlang.core.parse_errors import parse_errors
from derivlang.store.record import check_record

STAGE = ".derivlang"  # the folder of what is being made
TASK = re.compile(r"[^/\\\0]+-\d{5,}-of-\d{5,}")  # name of a task
_ENTRY = {
    **dict.fromkeys(("task", "plan"), str),
    "shard": {"file": str, "sha256": str, **dict.fromkeys(("bytes", "rows", "words"), int)},
    **dict.fromkeys(("documents", "sentences", "tokens", "articles?"), int),
    "counts": {"*": int},
    "byte_order_marks?": {"*": int},
}
_VOCABULARY = pa.schema([("type", pa.string()), ("count", pa.int64())])


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """What a task has made. entry: JSON values. types, counts: the vocabulary, Arrow strings [T] and int64[T]."""

    entry: dict[str, Any]
    types: pa.Array
    counts: Int64

    def dump(self) -> bytes:
        """Return the record as bytes."""
        table = pa.table({"type": self.types, "count": to_arrow(self.counts)}, schema=_VOCABULARY)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        line = json.dumps(self.entry, ensure_ascii=False).encode()
        body = b"\n".join((line, sink.getvalue().to_pybytes()))
        return sha256(body).hexdigest().encode() + b"\n" + body

    @classmethod
    def load(cls, content: bytes | None, form: Mapping[str, Any] = _ENTRY) -> TaskRecord | None:
        """Return the record in some bytes; None if there are none, or if they were damaged.

        form: of the entry (`check_record`).
        """
        if content is None:
            return None
        digest, _, body = content.partition(b"\n")
        if digest.decode("latin-1") != sha256(body).hexdigest():
            return None
        try:
            with parse_errors("record", "record of a task", error=StoreError):
                line, _, stream = body.partition(b"\n")
                entry = json.loads(line)
                check_record(entry, form)
                table = pa.ipc.open_stream(stream).read_all().combine_chunks()
                if table.schema != _VOCABULARY or any(column.null_count for column in table.columns):
                    raise ValueError("it has no vocabulary")
                types = table["type"].chunk(0) if table.num_rows else string_array([])
                return cls(entry, types, to_numpy(table["count"]))
        except DerivlangError:  # written by somebody else: the task runs again
            return None
