"""The record of an evaluation, evaluation.json: which files of scores belong to it (docs/reference/runs.md).

    {"format": 2, "signature": {…}, "tasks": {"pos": ENTRY}, "measures": {"links": ENTRY}, "sha256": "…"}
    ENTRY = {"settings": {…}, "scores": ["pos.sup.1.parquet", …], "files": {"pos.sup.1.parquet": [bytes, SHA-256], …}}

It has no score: these are in the files (`scores.py`). signature: everything that the results depend on. settings: of a
task, its fine-tuning and the rows of its sets; of a measure, the held-out text that it read. files: all that it wrote.
A task with fine-tuning has "test", too: numbers of the test set's rows that were cut, of labels, of those that have no
score, and of rows that are in train, in the examples taken and in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.core.seal import HASH, sealed
from derivlang.evaluation.scores import SCHEMA, read_part
from derivlang.store.disk import file_lock
from derivlang.store.files import writing
from derivlang.store.folders import remove_files
from derivlang.store.record import ENTRY, check_same, difference, faults, listed, read_record, record_text

if TYPE_CHECKING:  # reports, which load no torch, read these files, too
    from derivlang.evaluation.trained import PretrainedRun

EVALUATION, COUNTS = "evaluation.json", "evaluation"  # the record of a run's results, and the folder of their files
FORMAT = 2
FILES, SCORES = "files", "scores"  # of an entry
ResultKind = Literal["tasks", "measures"]
KINDS: tuple[ResultKind, ...] = ("tasks", "measures")
AGAIN = "evaluate the run again: derivlang evaluate RUN"
_RESULTS = {"*": {"settings": dict, SCORES: [str], FILES: {"*": ENTRY}, "test?": dict}}
_RECORD = {
    "format": FORMAT,
    "signature": {"weights?": str, "derivlang?": str, "fingerprint?": str, "steps?": int, "seed?": int},
    "tasks": _RESULTS,
    "measures": _RESULTS,
}
# What is said of hashes in a signature that differ.
SIGNATURE_WORDS = {
    "data": "its encoded text is another one",
    "fingerprint": "its settings or its data are others",
    "weights": "its weights are others",
}


def read(path: Path) -> dict[str, Any]:
    """Return the record in a file. Raise StoreError if it is damaged."""
    return read_record(path, path.name, _RECORD, _check, sealed=True, id="evaluation", fix=f"{AGAIN} --force")


def _check(record: Mapping[str, Any]) -> None:
    """Raise ValueError if a file of scores has no hash."""
    for kind in KINDS:
        for label, entry in record[kind].items():
            if missing := set(entry[SCORES]) - entry[FILES].keys():
                raise ValueError(f"{kind}.{label} has no hash of {min(missing)}")


def entry_of(
    settings: Mapping[str, Any],
    scores: Iterable[Path],
    others: Iterable[Path] = (),
    test: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the entry of a task or measure. scores: files of `write_part`; others: what else it wrote.

    test: numbers of rows and labels of the test set.
    """
    paths = list(scores)
    files = {path.name: path for path in (*paths, *others)}
    of_test = {} if test is None else {"test": dict(test)}
    return {"settings": dict(settings), **of_test, SCORES: [path.name for path in paths], FILES: listed(files)}


def files_of(record: Mapping[str, Any]) -> list[str]:
    """Return the names of all files that an evaluation wrote, in the folder of its files."""
    return [name for entry in entries_of(record).values() for name in entry[FILES]]


def entries_of(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entry of each task and measure by its label."""
    return {label: entry for kind in KINDS for label, entry in record[kind].items()}


def damages(cells: Path, entries: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the name of each file of entries that is not the one that was evaluated, and what is wrong with it.

    cells: the folder of the files.
    """
    present = {path.name: path for path in cells.glob("*") if path.is_file()}
    return [one for entry in entries for one in faults(entry[FILES], present)]


def scores_of(
    cells: Path, record: Mapping[str, Any], labels: Iterable[str]
) -> tuple[pa.Table, dict[str, list[dict[str, Any]]]]:
    """Return (rows, columns by label) of the files of these tasks and measures. Raise StoreError for damaged ones."""
    entries = entries_of(record)
    tables = [SCHEMA.empty_table()]
    columns: dict[str, list[dict[str, Any]]] = {}
    for label in labels:
        for name, what in damages(cells, [entries[label]]):
            raise StoreError(f"{what} since it was evaluated", where=str(cells / name), fix=AGAIN, id="damaged")
        for name in entries[label][SCORES]:
            facts, table = read_part(cells / name)
            columns[label] = facts["columns"]
            tables.append(table)
    return pa.concat_tables(tables), columns


def stored(trained: PretrainedRun, *, force: bool) -> dict[str, Any]:
    """Return the record that is there, without hash, or an empty one.

    Results of other weights, and a damaged record, are an error, unless `force` removes them. The version is ignored:
    most commits change no number.
    """
    path, signature = trained.results, trained.signature
    fresh: dict[str, Any] = {"format": FORMAT, "signature": signature, "tasks": {}, "measures": {}}
    if not path.exists():
        return fresh
    record: dict[str, Any] = {}
    try:
        record = read(path)
        check_same(
            record["signature"],
            {**dict.fromkeys(record["signature"]), **signature},
            "is of another state of the run",
            where=str(path),
            fix="give --force to replace these results, or restore the run",
            id="stale-evaluation",
            words=SIGNATURE_WORDS,
        )
    except StoreError as error:
        if not force:
            raise
        if record:
            remove_files(trained.cells, files_of(record))
        else:
            warn(f"{path} is replaced: {error.what}")
        path.unlink()
        return fresh
    return {name: value for name, value in record.items() if name != HASH}


def add(trained: PretrainedRun, kind: ResultKind, label: str, entry: dict[str, Any], *, force: bool) -> dict[str, Any]:
    """Write an entry into the record as it is now, and return the record.

    Files of an earlier entry with other settings are removed; with the same, they may be of other seeds or regimes.
    Another process may have added other entries since this one began.
    """
    trained.results.parent.mkdir(exist_ok=True)
    with file_lock(trained.results):
        record = stored(trained, force=force)
        before = record[kind].get(label)
        differs = before is not None and difference(before["settings"], entry["settings"])
        stale = set(before[FILES]) - set(entry[FILES]) if differs else set()
        record[kind] = {**record[kind], label: entry}
        with writing(trained.results) as stream:
            stream.write(record_text(sealed(record)).encode())
        remove_files(trained.cells, stale)
    return record
