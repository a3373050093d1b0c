"""The columns that `make` may leave out."""

from __future__ import annotations

from derivlang.core.errors import UsageError
from derivlang.pipeline import Pipeline

# Columns that follow from the others, so that `--columns` may leave them out.
OPTIONAL = ("key", "source", "tokens", "text")


def dropped_columns(columns: tuple[str, ...], pipeline: Pipeline) -> tuple[str, ...]:
    """Return the optional columns to leave out, given those to keep; () keeps all.

    UsageError if the source or the derived words could not be restored from what is kept.
    """
    if not columns:
        return ()
    for name in columns:
        if name not in OPTIONAL:
            raise UsageError(
                f"{name!r} is not an optional column; optional columns: {', '.join(OPTIONAL)}",
                where="--columns",
                fix="name the optional columns to keep; order and labels are always there",
                id="columns",
            )
    exact = pipeline.is_permutation and pipeline.injective
    if not {"source", "tokens"} & set(columns) or not (exact or {"source", "tokens"} <= set(columns)):
        what = "tokens or source" if exact else f"tokens and source (neither follows from the other under {pipeline})"
        raise UsageError(f"{what} must be kept", where="--columns", fix="e.g. --columns source,tokens", id="columns")
    return tuple(name for name in OPTIONAL if name not in columns)
