"""eflomal behind the interface of the own aligners (Östling and Tiedemann 2016).

It is a package of its own, under GPL-3 and built from source: it is imported only here, when it is asked for. It is
given numbers for words, so that it sees the same words as the own aligners do; it draws at random by its own clock,
and two runs differ a little.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from derivlang.align.bitext import Bitext
from derivlang.align.links import Links, parse_lines
from derivlang.align.symmetrise import Method, symmetrise
from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.errors import DataError, UsageError

INSTALL = "pip install 'derivlang[align]' (or: pip install eflomal); it is built from source and needs a C compiler"


def align(bitext: Bitext, method: Method, iterations: int | None = None) -> Links:
    """The links of a bitext; iterations: of each of its three models, else as eflomal thinks fit.

    Raises UsageError: `missing-package`; `symmetrisation` for a posterior threshold, since eflomal gives links alone.
    """
    if method.name == "posterior":
        raise UsageError(
            "eflomal gives links without posteriors",
            where="--symmetrise",
            fix="take intersection, union or grow-diag-final-and",
            id="symmetrisation",
        )
    try:
        from eflomal import Aligner
    except ImportError:
        raise UsageError("eflomal is not installed", where="--model", fix=INSTALL, id="missing-package") from None

    rows = np.flatnonzero((lengths_of(bitext.source_offsets) > 0) & (lengths_of(bitext.target_offsets) > 0))
    source = list(_numbers(bitext.source, bitext.source_offsets, rows))
    target = list(_numbers(bitext.target, bitext.target_offsets, rows))
    if not len(rows):
        empty = parse_lines([""] * len(bitext))
        return empty
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("forward", "backward")]
        aligner = Aligner(n_iterations=None if iterations is None else (iterations,) * 3)
        aligner.align(source, target, links_filename_fwd=files[0], links_filename_rev=files[1])
        both = [_links(Path(file), rows, len(bitext)) for file in files]
    return symmetrise(both[0], both[1], method.name)


def _numbers(codes: Int32, offsets: Int64, rows: Int64) -> Iterator[str]:
    words = codes.tolist()
    for row in rows.tolist():
        yield " ".join(map(str, words[offsets[row] : offsets[row + 1]])) + "\n"


def _links(path: Path, rows: Int64, n_rows: int) -> Links:
    with path.open(encoding="ascii") as lines:
        found = parse_lines(lines, "eflomal")
    if len(found) != len(rows):
        raise DataError(
            f"eflomal has aligned {len(found):,} of {len(rows):,} sentence pairs",
            fix="see what it has written to standard error",
            id="eflomal",
        )
    row = np.repeat(rows, lengths_of(found.offsets))
    return Links.of(row, found.source, found.target, n_rows)
