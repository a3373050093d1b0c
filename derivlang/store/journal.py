"""The journal of a set that an earlier version began: it is turned into records, so that this version goes on.

.derivlang/journal.jsonl                       {"plan": …, "asked": …}, then an entry for each finished task
.derivlang/train-00000-of-00002.vocabulary     the types that the task read, and their counts
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pyarrow as pa

from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.errors import DerivlangError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import HASH, hash_of
from derivlang.store.base import Store
from derivlang.store.task_record import PLAN_HASH, STAGE, TASK, TaskRecord

JOURNAL = f"{STAGE}/journal.jsonl"


def read(store: Store) -> tuple[dict[str, Any], dict[str, TaskRecord]]:
    """Return what the journal of a folder says of its plan, and the records of the finished tasks by name.

    {} and {} if there is no journal, or if its first line was damaged. Entries that were damaged are left out.
    """
    first, *lines = (store.get(JOURNAL) or b"").split(b"\n")
    records: dict[str, TaskRecord] = {}
    with suppress(DerivlangError), parse_errors("journal", "journal"):
        begun = json.loads(first)
        if not PLAN_HASH.fullmatch(begun["plan"]):  # it becomes the name of a folder
            return {}, {}
        header = {"plan": begun["plan"], "asked": dict(begun.get("asked") or {})}
        with suppress(DerivlangError), parse_errors("journal", "journal"):
            for line in lines[:-1]:  # text after the last line end is a torn line
                entry = json.loads(line)
                intact = entry.pop(HASH) == hash_of(entry)
                name = str(entry.pop("task"))
                if not TASK.fullmatch(name):
                    continue
                vocabulary = store.get(f"{STAGE}/{name}.vocabulary")
                if intact and vocabulary is not None and sha256(vocabulary).hexdigest() == entry.pop("vocabulary"):
                    table = pa.ipc.open_file(vocabulary).read_all().combine_chunks()
                    types = table["type"].chunk(0) if table.num_rows else string_array([])
                    records[name] = TaskRecord(entry, types, to_numpy(table["count"]))
        return header, records
    return {}, {}
