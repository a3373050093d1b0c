"""Records of a CSV file by Arrow's reader, where it gives the fields that Python's `csv.reader` gives.

Where records begin follows from the quotation marks (`csv_lines.py`). Arrow is not asked where it reads otherwise:
where a carriage return stands by itself, a byte-order mark begins a field, or the quoting is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from derivlang.formats.opening import BOM
from derivlang.formats.stretches import Stretch


def table_of(stretch: Stretch, columns: Sequence[str], delimiter: str) -> pa.Table | None:
    """Return the records as a table of strings, or None if they have to be read by `csv.reader`."""
    text = stretch.text
    if not stretch.for_arrow or len(delimiter) > 1 or not delimiter.isascii():
        return None
    if text.startswith(BOM) or (b"\r" in text and text.count(b"\r") != text.count(b"\r\n")):
        return None
    from pyarrow import csv

    names = [str(i) for i in range(len(columns))]
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table.combine_chunks().rename_columns(list(columns)) if table.num_rows == len(stretch.starts) else None
