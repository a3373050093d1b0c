"""JSON lines by Arrow's reader, where it cannot take what `json_text.py` refuses, or give it another value.

With the types of the columns given, Arrow refuses a key twice, new keys, other types, NaN and integers beyond 64 bits.
What it lets pass is looked for here: missing keys, which become null, and two objects on a line. Rows with null, and
columns of other types than text and whole numbers, are left to `json_text.py`, as are long rows and all that Arrow
refuses: it writes the message.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, UInt8
from derivlang.formats.line_cuts import bounds_of_lines
from derivlang.formats.stretches import Stretch

_TYPES = {pa.string(), pa.int64(), pa.list_(pa.string()), pa.list_(pa.int64())}


class LineStarts:
    """Finds the lines that are not blank."""

    quoted = broken = False

    def starts(self, text: UInt8) -> Int64:
        """Return the first bytes of these lines of a block, int64[R]."""
        starts, ends = bounds_of_lines(text)
        first, lengths = text[starts], ends - starts
        full = first == ord("{")
        for line in np.flatnonzero(~full & (lengths > 0) & ~((lengths == 1) & (first == ord("\r")))).tolist():
            full[line] = not is_blank(text[starts[line] : ends[line]].tobytes().decode())
        found: Int64 = starts[full]
        return found


def is_blank(line: str) -> bool:
    """Return whether a line holds nothing but white space, of any kind."""
    return not line or line.isspace()


def table_of(stretch: Stretch, schema: pa.Schema) -> pa.Table | None:
    """Return the objects of a stretch, one a line, as a table, or None if they have to be read one by one."""
    if not (stretch.for_arrow and _TYPES.issuperset(schema.types) and _begin_and_end(stretch)):
        return None
    from pyarrow import json

    try:
        table = json.read_json(
            pa.BufferReader(stretch.text),
            read_options=json.ReadOptions(use_threads=False, block_size=len(stretch.text) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="error"
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    whole = table.num_rows == len(stretch.starts) and not any(column.null_count for column in table.columns)
    return table if whole else None


def _begin_and_end(stretch: Stretch) -> bool:
    """Return whether each line that is not blank begins with { and ends with }.

    No object goes on from a line that ends with } to one that begins with {. So where there are as many objects as such
    lines, each line holds one.
    """
    starts, text = stretch.starts, np.frombuffer(stretch.text, np.uint8)
    last = np.append(stretch.ends, len(text))[np.searchsorted(stretch.ends, starts)] - 1
    last -= text[last] == ord("\r")
    return bool((text[starts] == ord("{")).all() and (text[last] == ord("}")).all())
