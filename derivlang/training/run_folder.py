"""The folder of a run: its record run.json, and copies of all files needed to use its model (docs/reference/runs.md).

    tokenizer/  twin/  derived-tokenizer/               from the beginning
    lexicon.tsv  dictionary.tsv
    model/  log.jsonl                                   once the training is done

run.json lists these files with their hashes, and has a hash of itself. Checkpoints (checkpoint.py), which know the log
until then, and results of evaluations have hashes of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.messages import warn
from derivlang.core.seal import sealed
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.lexical.foreign import OTHER_FILES, is_foreign
from derivlang.lexical.tokenizer import CONFIG
from derivlang.lexical.tokenizer import FILES as TOKENIZER_FILES
from derivlang.lexical.tokenizer import TOKENIZER as TOKENIZER_FILE
from derivlang.pipeline import Pipeline
from derivlang.store.disk import disk
from derivlang.store.files import writing
from derivlang.store.folders import remove_files, replace_folder, split_files, warn_of_kept
from derivlang.store.made_of import RECIPE
from derivlang.store.record import ENTRY, below, faults, listed, read_record, record_text
from derivlang.training import checkpoint
from derivlang.training.checkpoint import LOG
from derivlang.training.data_folder import LANGUAGES
from derivlang.training.languages import DERIVED_TOKENIZER, LEXICON, TOKENIZER, TWIN
from derivlang.training.translations import DICTIONARY

FORMAT = 3
RUN, DATA = "run.json", "data"
AGAIN = "restore the file, or make the run again in another folder"
FILES = "files"  # the field of run.json; written only beside the hash
_SOURCE_FILES = [{"split": str, "name": str, "sha256": str}]
RECORD = {  # form of a run.json that this version can resume or evaluate
    "format": FORMAT,
    **dict.fromkeys(("status", "fingerprint", "pipeline"), str),
    "settings": dict,
    FILES: {"*": ENTRY},
    **dict.fromkeys(("weights?", "data?", "objective?", "derived_data?", "checkpoint?"), str),
    **dict.fromkeys(("step?", "steps?", "seed?", "heldout_overlap?"), int),
    **dict.fromkeys(("model?", "dictionary?", "alignment_dictionary?", "unread?", "result?", "doses?"), dict),
    **dict.fromkeys(("reading?", "factors?", "languages?"), dict),
    **dict.fromkeys(("environments?", "folders?"), list),
    **dict.fromkeys(("training_files?", "heldout_files?"), _SOURCE_FILES),
    "streams?": {"*": {"sha256?": str}},
    "init?": {"run": str, "weights": str},
}
MODEL_AGAIN = "the same `derivlang pretrain` command with --resume writes it again from the last checkpoint"
_RESTORE = "restore it, or make the run again in another folder"
_TOKENIZERS = (TOKENIZER, TWIN, DERIVED_TOKENIZER, LANGUAGES)
_TOKENIZER = (*TOKENIZER_FILES, *OTHER_FILES)
MODEL_FILES = (*checkpoint.MODEL_FILES, TOKENIZER_FILE, CONFIG, *OTHER_FILES)
_NEVER_FIRST = (
    LOG,
    *(f"{checkpoint.MODEL}/{name}" for name in MODEL_FILES),
)  # written after run.json, over what is there
# The files of a run without its encoded data and RESULTS. `pretrain --force` removes these and RESULTS.
FILE_NAMES = (
    RUN, LOG, LEXICON, DICTIONARY, f"{DICTIONARY}.*", f"{SPEC_FILES}/*",
    "evaluation.json", "pretrained.json", "evaluated.json", "evaluation/*.json", "evaluation/*/step-*.json",
    *(f"{folder}/{name}" for folder in (*_TOKENIZERS, f"{LANGUAGES}/*/*") for name in _TOKENIZER),
    f"{LANGUAGES}/*/{DICTIONARY}", f"{LANGUAGES}/*/{LEXICON}",
    *(f"{checkpoint.MODEL}/{name}" for name in MODEL_FILES),
    *(f"{checkpoint.FOLDER}/step-*/{name}" for name in checkpoint.FILES),
)  # fmt: skip
RESULTS = ("evaluation/*.parquet", "evaluation/*/*.parquet", "evaluation/*/step-*/*.parquet")


def own_files(run: Path) -> list[str]:
    """Return the names of the files of a run, without its encoded data and the scores of its evaluations."""
    return split_files(run, FILE_NAMES)[0]


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
    return read_record(path, RUN, RECORD, sealed=True, id="run", fix=AGAIN)


def asked_steps(run: Path, step: int | None, *, every: bool) -> list[int | None]:
    """Return the steps to evaluate: the asked one, None for the finished model, or with `every` all checkpoints.

    Raise UsageError for a step with `every` and for a run without checkpoints, and StoreError if there is no run.
    """
    if not every:
        return [step]
    if step is not None:
        raise UsageError("names one checkpoint", where=f"{run}@{step}", fix="leave out --every-checkpoint", id="usage")
    steps: list[int | None] = [*checkpoint.steps(run)]
    if not steps:
        read(run)  # raises an error of its own if there is no run
        raise UsageError("there are no checkpoints", where=str(run), fix="evaluate RUN itself", id="usage")
    return steps


def with_hashes(run: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run with its files and its own hash."""
    return sealed({**record, FILES: listed(_present(run, record.get("status")))})


def lacks_model(run: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the model of a finished run is missing. That of a checkpoint from elsewhere is not in the run."""
    return record.get("status") == "done" and not record.get("checkpoint") and not (run / checkpoint.MODEL).is_dir()


def has_last_checkpoint(run: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the checkpoint is there that a finished run's model is a copy of."""
    step = record.get("step")
    return isinstance(step, int) and (run / checkpoint.FOLDER / checkpoint.name_of(step)).is_dir()


def damages(run: Path, record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that does not match the record, and what is wrong: of a missing model, `model`.

    record: of run.json, whose hash is right.
    """
    present, files = _present(run, record.get("status")), record[FILES]
    has_model = (run / checkpoint.MODEL).is_dir()
    if lacks_model(run, record):
        yield checkpoint.MODEL, "is missing"
    for name, what in faults(files, present):
        if has_model or not name.startswith(f"{checkpoint.MODEL}/"):
            yield name, what
    for name in present:
        if name not in files:
            yield name, "was added: it is not a file of the run"


def check_files(run: Path, record: Mapping[str, Any], *, model: bool = True, missing: bool = True) -> None:
    """Raise StoreError, with its name, if a file is not the one that the record lists.

    model: whether RUN/model is used. missing: whether a missing file is an error, too.
    """
    for name, what in damages(run, record):
        is_model = name.partition("/")[0] == checkpoint.MODEL
        if (is_model and not model) or (what == "is missing" and not missing):
            continue
        fix = "remove it" if what.startswith("was added") else _RESTORE
        if is_model and has_last_checkpoint(run, record):
            fix = MODEL_AGAIN if what == "is missing" else f"remove {run / checkpoint.MODEL}: {MODEL_AGAIN}"
        raise StoreError(
            f"{what} since the run was made" if what == "was changed" else what,
            where=str(run / name),
            fix=fix,
            id="no-model" if name == checkpoint.MODEL and what == "is missing" else "damaged",
        )


def _present(run: Path, status: str | None) -> dict[str, Path]:
    """Return the files of a run that its record lists at this status, as far as they are there, by name."""
    names = [LEXICON, DICTIONARY, f"{DICTIONARY}.recipe.json", *([LOG] if status == "done" else [])]
    files = {name: run / name for name in names if (run / name).is_file()}
    for folder in (*_TOKENIZERS, SPEC_FILES, *([checkpoint.MODEL] if status == "done" else [])):
        files |= below(run / folder, run)
    return files


def record_to_resume(run: Path, *, resume: bool, force: bool) -> dict[str, Any] | None:
    """Return run.json of the run to resume, or None for a new run. Raise StoreError if the folder is taken."""
    if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
        if run.exists() and not run.is_dir():
            raise StoreError("is a file", where=str(run), fix="give a folder", id="output")
        if taken := split_files(run, _NEVER_FIRST, follow=True)[0]:
            raise StoreError(
                f"{taken[0]} would be written, and it is there already, but not as a part of a run",
                where=str(run),
                fix="move it away, or give another folder; nothing was written",
                id="output",
            )
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


def clear(run: Path, needed: Iterable[Path]) -> None:
    """Remove the files of an earlier run except its encoded data, and warn of files that are of no run, which stay.

    Raise UsageError if a needed path is among them.
    """
    found, foreign = split_files(run, (*FILE_NAMES, *RESULTS))
    warn_of_kept(run, [name for name in foreign if name != f"{DATA}/"], "run")
    if not (run / RUN).exists() and not (run / checkpoint.FOLDER).exists():
        return
    place = run.resolve()
    own = [place / name for name in found]
    for path in needed:
        resolved = path.resolve()
        # RUN itself is what `--init RUN` names; RUN/data stays
        if place in (resolved, *resolved.parents) and any(resolved in (file, *file.parents) for file in own):
            raise UsageError(
                f"{path} would be removed with the old run, but the new run needs it",
                where="--force",
                fix="give another -o folder",
                id="output",
            )
    # The record last: a run that is killed in between leaves what --force removes again.
    remove_files(run, [name for name in (*FILE_NAMES, *RESULTS) if name != RUN])
    remove_files(run, [RUN])


def create(run: Path, pipeline: Pipeline, files: Mapping[str, Path]) -> None:
    """Write the folder of a new run with all files needed to use its model, and those that its spec names.

    files: by their names in the folder, as in `Prepared`. Raise StoreError, before anything is written, if one is there
    with another content.
    """
    copies = _copies(pipeline, files)
    for name, content in copies.items():
        if (run / name).exists() and (run / name).read_bytes() != content:
            fix = "give another folder"
            raise StoreError("exists already, with another content", where=str(run / name), fix=fix, id="output")
    with disk(run):
        for name, content in copies.items():
            _write_copy(run / name, content)


def restore(run: Path, pipeline: Pipeline, files: Mapping[str, Path], record: Mapping[str, Any]) -> None:
    """Write again what a run to resume has lost, and say so: copies of files, and its model, of the last checkpoint.

    files: as of `create`. record: run.json. Raise StoreError if the file to copy or the checkpoint is gone, or if a
    file is not the one that the record lists.
    """
    lost = [name for name, what in damages(run, record) if what == "is missing"]
    copies = _copies(pipeline, files) if lost else {}
    for name in lost:
        if name.partition("/")[0] in (checkpoint.MODEL, LOG):
            continue
        content = copies.get(name, b"")
        if [len(content), sha256(content).hexdigest()] != record[FILES][name]:
            raise StoreError("is missing", where=str(run / name), fix=_RESTORE, id="damaged")
        _write_copy(run / name, content)
        warn(f"{run / name} was missing, and was copied again")
    if any(name.partition("/")[0] == checkpoint.MODEL for name in lost):
        last = checkpoint.of_step(run, record["step"])
        finish(run, last.step)
        warn(f"wrote {run / checkpoint.MODEL} again from the checkpoint of step {last.step:,}")
    check_files(run, record)


def _copies(pipeline: Pipeline, files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the content of the copies that a run keeps, by name: "twin/words.parquet"."""
    copies = {f"{SPEC_FILES}/{name}": content for name, content in pipeline.files_to_keep().items()}
    for name, path in files.items():
        for file in below(path, path).values() if path.is_dir() else [path]:
            if file.exists() and file.name != RECIPE:
                copies[name + file.as_posix().removeprefix(path.as_posix())] = file.read_bytes()
    return copies


def _write_copy(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as out:
        out.write(content)


def write(run: Path, record: dict[str, Any]) -> None:
    """Write run.json, with the hashes of the files, completely or not at all. Raise StoreError if the disk is full."""
    with writing(run / RUN) as file:
        file.write(record_text(with_hashes(run, record)).encode())


def finish(run: Path, steps: int) -> None:
    """Write RUN/model, the last checkpoint's model with the source's tokenizer, completely or not at all."""
    last = run / checkpoint.FOLDER / checkpoint.name_of(steps) / checkpoint.MODEL

    def write(fresh: Path) -> None:
        # A tokenizer of derivlang has further files, which no other program reads.
        own = _TOKENIZER if is_foreign(run / TOKENIZER) else (TOKENIZER_FILE, CONFIG)
        for folder, names in ((last, checkpoint.MODEL_FILES), (run / TOKENIZER, own)):
            for name in split_files(folder, names)[0]:
                shutil.copyfile(folder / name, fresh / name)

    replace_folder(run / checkpoint.MODEL, write, MODEL_FILES, record="config.json", warn=lambda message: None)
