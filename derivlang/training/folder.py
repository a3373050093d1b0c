"""The folder of a run: its record, and copies of all files needed to use its model (docs/reference/runs.md).

run.json has the hashes of these files and its own (run_files.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.seal import check_intact
from derivlang.lexical.tokenizer import CONFIG
from derivlang.lexical.tokenizer import TOKENIZER as TOKENIZER_FILE
from derivlang.store.disk import disk, whole_folder
from derivlang.store.export import writing
from derivlang.store.listing import check_listed
from derivlang.store.record import Kind, check_types, read_record, record_text, short
from derivlang.training import checkpoint
from derivlang.training.dictionary import DICTIONARY
from derivlang.training.languages import LEXICON, TOKENIZER, TWIN, fingerprint_of, is_foreign
from derivlang.training.prepared import Prepared
from derivlang.training.run_files import FILES, check_files, damages, with_hashes

FORMAT = 1
RUN = "run.json"
AGAIN = "restore the file, or make the run again in another folder"


def read(folder: Path) -> dict[str, Any]:
    """Return `run.json`. Raise StoreError if it is missing or was changed, or if this version cannot read it."""
    path = folder / RUN
    if not path.exists():
        raise StoreError(
            f"is not a run: there is no {RUN}",
            where=str(folder),
            fix="make one: derivlang pretrain … -o DIR",
            id="no-run",
        )
    return read_record(path, RUN, _check, id="run", fix=AGAIN)


def _check(record: dict[str, Any]) -> None:
    """Raise ValueError for a record that this version cannot resume or evaluate."""
    if record.get("format") != FORMAT:
        raise ValueError(f"format {short(record.get('format'))}, but this version reads {FORMAT}")
    required: dict[str, Kind] = {"status": str, "settings": dict, "fingerprint": str}
    optional: dict[str, Kind] = {
        "model": dict, "dictionary": dict, "result": dict, "reading": dict, "environments": list, "weights": str,
        "step": int, "steps": int, "seed": int, "data": str, "streams": dict, "init": dict, "factors": dict,
        "checkpoint": str, "pipeline": dict, "heldout_files": list, FILES: dict,
    }  # fmt: skip
    check_types(record, required, optional)
    check_sealed(record)
    if record.get("pipeline") is not None:
        check_types(record["pipeline"], {"fingerprint": str, "format": int}, where="pipeline.")
    for file in record.get("heldout_files") or ():
        check_types(file, {"split": str, "name": str, "sha256": str}, where="heldout_files.")
    for name, facts in (record.get("streams") or {}).items():
        check_types(facts, {}, {"sha256": str}, where=f"streams.{name}.")
    if record.get("init") is not None:
        check_types(record["init"], {"run": str, "weights": str}, {"embeddings": str}, where="init.")


def check_sealed(record: dict[str, Any]) -> None:
    """Raise ValueError if a value of run.json was changed after it was written."""
    check_intact(record, [FILES])
    check_listed(record.get(FILES) or {}, f"{FILES}.")


def taken(run: Path, *, resume: bool, force: bool) -> dict[str, Any] | None:
    """Return run.json of the run to resume, or None for a new run. Raise StoreError if the folder is taken."""
    if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
        if run.exists() and not run.is_dir():
            raise StoreError("is a file", where=str(run), fix="give a folder", id="output")
        return None
    if resume:
        return read(run)
    if force:
        return None
    raise StoreError(
        "holds a run already",
        where=str(run),
        fix="give --resume to continue it, another folder, or --force",
        id="run-exists",
    )


def clear(run: Path, needed: Iterable[Path] = ()) -> None:
    """Remove the files of an earlier run except its encoded data. Raise UsageError if a needed path is among them."""
    with disk(run):
        if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
            return
        folders = [run / name for name in (checkpoint.FOLDER, checkpoint.MODEL, "evaluation", TOKENIZER, TWIN)]
        files = {*run.glob("*.json"), *run.glob("*.jsonl"), *run.glob(f"{DICTIONARY}*"), *run.glob(LEXICON)}
        removed = {path.resolve() for path in (run, *folders, *files)}
        for path in needed:
            found = path.resolve()
            # RUN itself is what `--init RUN` names; RUN/data stays
            if found in removed or not (removed - {run.resolve()}).isdisjoint(found.parents):
                raise UsageError(
                    f"{path} would be removed with the old run, but the new run needs it",
                    where="--force",
                    fix="give another -o folder",
                    id="output",
                )
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)
        for path in files:
            path.unlink()


def begin(run: Path, prepared: Prepared, record: dict[str, Any]) -> None:
    """Write the folder with its record and all files needed to use its model."""
    with disk(run):
        run.mkdir(parents=True, exist_ok=True)
        for leftover in run.glob(".*.tmp"):  # left by a run that was killed while it wrote a file
            leftover.unlink()
        for name, path in prepared.files.items():
            if path.is_dir():
                _copy(path, run / name)
            elif path.exists() and not (run / name).exists():
                with writing(run / name) as out:
                    out.write(path.read_bytes())
    write(run, record)


def _copy(folder: Path, out: Path) -> None:
    """Copy a tokenizer's folder completely or not at all. Raise StoreError if another one is there."""
    if not out.exists():

        def write(fresh: Path) -> None:
            shutil.copytree(folder, fresh, dirs_exist_ok=True)

        whole_folder(out, write)
    elif fingerprint_of(out) != fingerprint_of(folder):
        raise StoreError(
            "exists already, with another vocabulary", where=str(out), fix="give another folder", id="output"
        )


def write(run: Path, record: dict[str, Any]) -> None:
    """Write run.json, with the hashes of the files, completely or not at all. Raise StoreError if the disk is full."""
    with writing(run / RUN) as file:
        file.write(record_text(with_hashes(run, record)).encode())


def finish(run: Path, steps: int) -> None:
    """Write RUN/model, the last checkpoint's model with the source's tokenizer, completely or not at all."""
    last = run / checkpoint.FOLDER / checkpoint.name_of(steps) / checkpoint.MODEL

    def write(fresh: Path) -> None:
        shutil.copytree(last, fresh, dirs_exist_ok=True)
        own = (TOKENIZER_FILE, CONFIG)  # a tokenizer of derivlang has further files, which no other program reads
        for path in (run / TOKENIZER).iterdir():
            if path.name in own or is_foreign(run / TOKENIZER):
                shutil.copyfile(path, fresh / path.name)

    whole_folder(run / checkpoint.MODEL, write)


def restore_model(run: Path, record: dict[str, Any], warn: Callable[[str], None]) -> None:
    """Write the model of a finished run again from its last checkpoint, if it is missing, and say so.

    Raise StoreError if that checkpoint is missing or damaged, or if a file of the run is not the one of its record.
    """
    step = record["step"]
    if any(name.partition("/")[0] == checkpoint.MODEL and what == "is missing" for name, what in damages(run, record)):
        finish(run, checkpoint.of_step(run, step).step)
        warn(f"wrote {run / checkpoint.MODEL} again from the checkpoint of step {step:,}")
    check_files(run, record, warn=None)


def reached(run: Path) -> dict[str, Any]:
    """Return the last checkpoint of a stopped run, for its record."""
    try:
        last = checkpoint.newest(run, lambda message: None)
    except StoreError:
        last = None
    return {} if last is None else {"step": last.step, "tokens": last.subwords, "seconds": last.seconds}
