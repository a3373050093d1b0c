"""JSON lines by Arrow's reader, where it cannot take what `json_text.py` refuses, or give it another value.

With the types of the columns given, Arrow refuses a key twice, new keys, other types, NaN and integers beyond 64 bits.
What it lets pass is looked for here: missing keys, which become null, and two objects on a line. Rows with null, and
columns of other types than text and whole numbers, are left to `json_text.py`, as are long rows and all that Arrow
refuses: it writes the message.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

LONG = 1 << 11  # mean characters of a row; for longer rows, Python's own readers are faster
_TYPES = {pa.string(), pa.int64(), pa.list_(pa.string()), pa.list_(pa.int64())}


def table_of(lines: Sequence[str], schema: pa.Schema) -> pa.Table | None:
    """Return the table of some lines, an object each, or None if they have to be read one by one."""
    if not _TYPES.issuperset(schema.types) or sum(map(len, lines)) > LONG * len(lines):
        return None
    # No object goes on from a line that ends with } to one that begins with {. So where there are as many objects as
    # lines, each line holds one.
    if not all(line[0] == "{" and line[-1] == "}" for line in lines):
        return None
    from pyarrow import json

    try:
        text = "\n".join(lines).encode()
        table = json.read_json(
            pa.BufferReader(text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None
    whole = table.num_rows == len(lines) and not any(column.null_count for column in table.columns)
    return table if whole else None
