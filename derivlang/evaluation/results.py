"""The results of an evaluation, evaluation.json: read, checked and added to (docs/reference/runs.md).

The file has a hash of itself, and each task the hashes of its fine-tunings' counts (`files`). Files of earlier versions
have neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import StoreError
from derivlang.core.seal import HASH, check_intact, sealed
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.store.disk import file_lock
from derivlang.store.files import writing
from derivlang.store.folders import remove_files
from derivlang.store.listing import check_listed, faults, listed
from derivlang.store.record import check_types, read_record, record_text

if TYPE_CHECKING:  # reports, which load no torch, check these files, too
    from derivlang.evaluation.trained import PretrainedRun

FILES = "files"  # of a task
FORMAT = 1  # written only beside the hash


def check_sealed(found: Mapping[str, Any]) -> None:
    """Raise ValueError if a value of evaluation.json was changed after it was written, or if its files are no files."""
    check_intact(found, ["format"])
    for task, entry in (found.get("tasks") or {}).items():
        check_types(entry, {}, {FILES: dict}, where=f"{task}.")
        check_listed(entry.get(FILES) or {}, f"{task}.{FILES}.")


def files_of(paths: Iterable[Path]) -> dict[str, list[Any]]:
    """Return the files of a task's counts, as they are listed, as far as they are there."""
    return listed({path.name: path for path in paths if path.is_file()})


def damages(cells: Path, found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the name of each file of counts that is not the one that was evaluated, and what is wrong with it.

    cells: the folder of the counts. found: the content of evaluation.json.
    """
    present = {path.name: path for path in cells.glob("*.npz") if path.is_file()}
    return [one for entry in (found.get("tasks") or {}).values() for one in faults(entry.get(FILES) or {}, present)]


def stored(trained: PretrainedRun, *, force: bool, drop: bool = False) -> dict[str, Any]:
    """Return the results that are there, without hash and format, or none.

    Those of other weights are an error, unless `force` drops them.
    drop: whether to remove the files of these results, too. The version is ignored: most commits change no number.
    """
    path, signature = trained.results, trained.signature
    fresh = {"signature": signature, "tasks": {}}
    if not path.exists():
        return fresh
    found = read_record(path, "evaluation.json", _check, id="evaluation", fix="remove it; finished cells are kept")
    found = {name: value for name, value in found.items() if name not in ("format", HASH)}
    told = found["signature"]
    changed = [name for name in signature | told if name != "derivlang" and told.get(name) != signature.get(name)]
    if changed and force:
        names = {name for measure in MEASURES.names() for name in MEASURES.find(measure).files} if drop else ()
        remove_files(trained.cells, names)  # written by measures of the other weights
        return fresh
    if changed:
        raise StoreError(
            f"is of another state of the run; changed since then: {', '.join(changed)}",
            where=str(path),
            fix="give --force to replace these results, or restore the run",
            id="stale-evaluation",
        )
    return found


def add(
    trained: PretrainedRun, results: dict[str, Any], parts: dict[str, dict[str, Any]], *, force: bool
) -> dict[str, Any]:
    """Write results, and parts of tables, into the file as it is now, and return them all.

    Another process may have added others since this one began.
    """
    trained.results.parent.mkdir(exist_ok=True)
    with file_lock(trained.results):
        found = stored(trained, force=force) | results
        found |= {name: {**(found.get(name) or {}), **part} for name, part in parts.items()}
        order = dict.fromkeys(["signature", "tasks", *MEASURES.names(), *found])
        record = {"format": FORMAT, **{name: found[name] for name in order if name in found}}
        with writing(trained.results) as stream:
            stream.write(record_text(sealed(record)).encode())
    return found


def _check(found: dict[str, Any]) -> None:
    check_types(found, {"signature": dict, "tasks": dict}, {"heldout": dict})
    check_sealed(found)
