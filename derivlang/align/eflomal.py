"""Adapter to eflomal (Östling and Tiedemann 2016).

eflomal is an optional package under GPL-3 that is built from source, so it is imported only when it is used. It gets
word codes instead of words, so that it tokenises text as the other aligners do. It draws its own random seed,
so two runs differ slightly.
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
from derivlang.formats.opening import open_lines
from derivlang.formats.progress import rows_done, stage

INSTALL = "pip install 'derivlang[align]' (or: pip install eflomal); it is built from source and needs a C compiler"


def align(bitext: Bitext, method: Method, iterations: int | None = None) -> Links:
    """Return the links of a bitext.

    iterations: the number for each of its three models; None lets eflomal choose. Raises UsageError `missing-package`,
    and UsageError `symmetrisation` for the method `posterior`, as eflomal returns links without posteriors.
    """
    if method.name == "posterior":
        raise UsageError(
            "eflomal returns no posteriors",
            where="--symmetrise",
            fix="use intersection, union or grow-diag-final-and",
            id="symmetrisation",
        )
    try:
        from eflomal import Aligner
    except ImportError:
        raise UsageError("eflomal is not installed", where="--model", fix=INSTALL, id="missing-package") from None

    rows = np.flatnonzero((lengths_of(bitext.source.offsets) > 0) & (lengths_of(bitext.target.offsets) > 0))
    with stage("writing numbers for words", "rows", 2 * len(rows)):
        source = list(_numbers(bitext.source.codes, bitext.source.offsets, rows))
        target = list(_numbers(bitext.target.codes, bitext.target.offsets, rows))
    if not len(rows):
        return parse_lines([""] * len(bitext))
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("forward", "backward")]
        aligner = Aligner(n_iterations=None if iterations is None else (iterations,) * 3)
        # All iterations are one call of a program, whose only report is text on standard error.
        with stage("aligning with eflomal", None):
            aligner.align(source, target, links_filename_fwd=files[0], links_filename_rev=files[1])
        with stage("reading links", "bytes", sum(Path(file).stat().st_size for file in files)):
            both = [_links(Path(file), rows, len(bitext)) for file in files]
    return symmetrise(both[0], both[1], method.name)


def _numbers(codes: Int32, offsets: Int64, rows: Int64) -> Iterator[str]:
    """Yield each row as a line of its word codes.

    codes [7, 3, 7], offsets [0, 1, 3]  ->  "7", "3 7"
    """
    words = codes.tolist()
    for row in rows.tolist():
        yield " ".join(map(str, words[offsets[row] : offsets[row + 1]])) + "\n"
        rows_done(1)


def _links(path: Path, rows: Int64, n_rows: int) -> Links:
    """Return the links of a file with a line for each of `rows`. Raises DataError `eflomal` for missing lines."""
    links = parse_lines((line for _, line in open_lines(path, "ascii")), "eflomal")
    if len(links) != len(rows):
        raise DataError(
            f"eflomal aligned {len(links):,} of {len(rows):,} sentence pairs",
            fix="see its messages on standard error",
            id="eflomal",
        )
    row = np.repeat(rows, lengths_of(links.offsets))
    return Links.of(row, links.source, links.target, n_rows)
