"""The files of a run that run.json lists with their hashes, and whether they are still those.

    tokenizer/  twin/  lexicon.tsv  dictionary.tsv      from the beginning
    model/  log.jsonl                                   once the training is done

run.json has a hash of itself, too. Runs of earlier versions have neither; of their files only the weights of a finished
model can be checked. Checkpoints (checkpoint.py), which know the log until then, and results of evaluations have hashes
of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.core.seal import HASH, sealed
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.store.listing import below, faults, listed
from derivlang.training.checkpoint import FOLDER, MODEL, hash_of_weights, name_of
from derivlang.training.dictionary import DICTIONARY
from derivlang.training.languages import LEXICON, TOKENIZER, TWIN
from derivlang.training.log_file import LOG

FILES = "files"  # the field of run.json; written only beside the hash
AGAIN = "the same `derivlang pretrain` command with --resume writes it again from the last checkpoint"
_RESTORE = "restore it, or make the run again in another folder"
_told: set[Path] = set()


def with_hashes(run: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run with its files and its own hash."""
    return sealed({**record, FILES: listed(_present(run, record.get("status")))})


def has_hashes(record: Mapping[str, Any]) -> bool:
    """Return whether a record is of a version that writes hashes."""
    return HASH in record


def lacks_model(run: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the model of a finished run is missing. That of a checkpoint from elsewhere is not in the run."""
    return record.get("status") == "done" and not record.get("checkpoint") and not (run / MODEL).is_dir()


def has_last_checkpoint(run: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the checkpoint is there that a finished run's model is a copy of."""
    step = record.get("step")
    return isinstance(step, int) and (run / FOLDER / name_of(step)).is_dir()


def damages(run: Path, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that is not the one of the record, and what is wrong: of a missing model, `model`.

    record: of run.json, whose hash is right.
    """
    present, files = _present(run, record.get("status")), record.get(FILES)
    has_model = (run / MODEL).is_dir()
    if lacks_model(run, record):
        yield MODEL, "is missing"
    if files is None:
        weights = record.get("weights")
        if has_model and weights and not record.get("checkpoint") and hash_of_weights(run / MODEL) != weights:
            yield MODEL, "has other weights than run.json says"
        return
    for name, what in faults(files, present):
        if has_model or not name.startswith(f"{MODEL}/"):
            yield name, what
    for name in present:
        if name not in files:
            yield name, "was added: it is not a file of the run"


def check_files(
    run: Path,
    record: Mapping[str, Any],
    *,
    model: bool = True,
    missing: bool = True,
    warn: Callable[[str], None] | None = warn,
) -> None:
    """Raise StoreError, with its name, if a file is not the one that the record lists.

    model: whether RUN/model is used. missing: whether a missing file is an error, too. warn: called once for a run of
    an earlier version, which cannot be checked; None for nobody.
    """
    if not has_hashes(record) and warn is not None and run.resolve() not in _told:
        _told.add(run.resolve())
        warn(f"{run} is of an earlier version, whose run.json has no hashes: it cannot be checked")
    for name, what in damages(run, record):
        is_model = name.partition("/")[0] == MODEL
        if (is_model and not model) or (what == "is missing" and not missing):
            continue
        fix = "remove it" if what.startswith("was added") else _RESTORE
        if is_model and has_last_checkpoint(run, record):
            fix = AGAIN if what == "is missing" else f"remove {run / MODEL}: {AGAIN}"
        raise StoreError(
            f"{what} since the run was made" if what == "was changed" else what,
            where=str(run / name),
            fix=fix,
            id="no-model" if name == MODEL and what == "is missing" else "damaged",
        )


def _present(run: Path, status: str | None) -> dict[str, Path]:
    """Return the files of a run that its record lists at this status, as far as they are there, by name."""
    names = [LEXICON, DICTIONARY, f"{DICTIONARY}.recipe.json", *([LOG] if status == "done" else [])]
    found = {name: run / name for name in names if (run / name).is_file()}
    for folder in (TOKENIZER, TWIN, SPEC_FILES, *([MODEL] if status == "done" else [])):
        found |= below(run / folder, run)
    return found
