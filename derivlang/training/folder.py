"""The folder of a run: its record, and copies of all that reading its model needs (docs/training.md)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.lexical.tokenizer import CONFIG, Tokenizer
from derivlang.lexical.tokenizer import TOKENIZER as TOKENIZER_FILE
from derivlang.store.disk import disk, whole_folder
from derivlang.store.export import writing
from derivlang.training import checkpoint
from derivlang.training.languages import TOKENIZER, TWIN
from derivlang.training.prepare import Prepared

FORMAT = 1
RUN, DICTIONARY = "run.json", "dictionary.tsv"


def read(folder: Path) -> dict[str, Any]:
    """`run.json`; StoreError where there is none, or none that this version can read."""
    path = folder / RUN
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}, but this version reads {FORMAT}")
        _ = record["status"], record["settings"], record["fingerprint"]
    except FileNotFoundError:
        raise StoreError(
            f"is no run: there is no {RUN}", where=str(folder), fix="make one: derivlang pretrain … -o DIR", id="no-run"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"cannot be read: {error}", where=str(path), id="run") from None
    return record


def taken(run: Path, *, resume: bool, force: bool) -> dict[str, Any] | None:
    """run.json of the run that is to go on, or None for a new one; StoreError where the folder is taken."""
    if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
        if run.exists() and not run.is_dir():
            raise StoreError("is a file", where=str(run), fix="name a folder", id="output")
        return None
    if resume:
        return read(run)
    if force:
        return None
    raise StoreError(
        "holds a run already", where=str(run), fix="--resume to go on, another folder, or --force", id="run-exists"
    )


def clear(run: Path) -> None:
    """Without what an earlier run left; its data stays."""
    with disk(run):
        if (run / RUN).exists() or (run / checkpoint.FOLDER).exists():
            for name in (checkpoint.FOLDER, checkpoint.MODEL, "evaluation", TOKENIZER, TWIN):
                shutil.rmtree(run / name, ignore_errors=True)
            for path in {*run.glob("*.json"), *run.glob("*.jsonl"), *run.glob(f"{DICTIONARY}*")}:
                path.unlink()


def begin(run: Path, prepared: Prepared, record: dict[str, Any]) -> None:
    """The folder, with all that reading its model needs."""
    with disk(run):
        run.mkdir(parents=True, exist_ok=True)
        for name, folder in ((TOKENIZER, prepared.tokenizer), (TWIN, prepared.twin)):
            _copy(folder, run / name)
        recipe = prepared.dictionary.with_name(prepared.dictionary.name + ".recipe.json")
        for file, name in ((prepared.dictionary, DICTIONARY), (recipe, f"{DICTIONARY}.recipe.json")):
            if file.exists() and not (run / name).exists():
                with writing(run / name) as out:
                    out.write(file.read_bytes())
    write(run, record)


def _copy(folder: Path, out: Path) -> None:
    """A tokenizer's folder, whole or not at all; StoreError where another one has its place."""
    if not out.exists():

        def write(fresh: Path) -> None:
            shutil.copytree(folder, fresh, dirs_exist_ok=True)

        whole_folder(out, write)
    elif Tokenizer.load(out).fingerprint() != Tokenizer.load(folder).fingerprint():
        raise StoreError(
            "is there already, and of another vocabulary", where=str(out), fix="name another folder", id="output"
        )


def write(run: Path, record: dict[str, Any]) -> None:
    with writing(run / RUN) as file:
        file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())


def finish(run: Path, steps: int) -> None:
    """RUN/model: the last checkpoint's model, with the source's tokenizer, whole or not at all."""
    last = run / checkpoint.FOLDER / checkpoint.name_of(steps) / checkpoint.MODEL

    def write(fresh: Path) -> None:
        shutil.copytree(last, fresh, dirs_exist_ok=True)
        for name in (TOKENIZER_FILE, CONFIG):
            shutil.copyfile(run / TOKENIZER / name, fresh / name)

    whole_folder(run / checkpoint.MODEL, write)


def reached(run: Path) -> dict[str, Any]:
    """Where a run that has stopped would go on, for its record."""
    try:
        last = checkpoint.newest(run, lambda message: None)
    except StoreError:
        last = None
    return {} if last is None else {"step": last.step, "tokens": last.subwords, "seconds": last.seconds}
