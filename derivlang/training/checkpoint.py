"""Checkpoints from which a run can resume, and its log. Each is written completely or not at all.

    RUN/checkpoints/step-00003500/model/         an ordinary Hugging Face folder
    RUN/checkpoints/step-00003500/training.pt    states of the optimiser and of the objective (with its dictionary)
    RUN/checkpoints/step-00003500/state.json     step, sub-words, seconds, fingerprint; the counts so far, from which
                                                 doses follow (doses.py); the entries of the log so far; size and hash
                                                 of every file, and of state.json itself
    RUN/log.jsonl                                a JSON object per line; a run that resumes has it from its checkpoint

A checkpoint is written under another name, flushed and renamed. The position in the data and every draw follow from
the step. Damaged checkpoints are skipped with a warning.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import StoreError, UsageError, parse_errors
from derivlang.core.messages import warn
from derivlang.core.seal import sealed
from derivlang.lexical.pretrained import from_pretrained, model_from_pretrained, quiet
from derivlang.store.disk import disk
from derivlang.store.files import writing
from derivlang.store.folders import remove_files, replace_folder, split_files, sweep
from derivlang.store.record import ENTRY, below, faults, listed, read_record, record_text
from derivlang.training.config import auto_class, check_finite

if TYPE_CHECKING:  # reports and `verify`, which load no torch, look at checkpoints, too
    import torch

FOLDER, STATE, TRAINING, MODEL, LOG = "checkpoints", "state.json", "training.pt", "model", "log.jsonl"
_AGAIN = "remove this checkpoint; the same command resumes from the one before it"
MODEL_FILES = ("config.json", "generation_config.json", "model*.safetensors*", "pytorch_model*.bin*")
FILES = (STATE, TRAINING, *(f"{MODEL}/{name}" for name in MODEL_FILES))  # of a checkpoint
_WEIGHTS = ("*.safetensors", "*.bin", "config.json")
_FIELDS = {
    "step": int, "subwords": int, "seconds": float, "counts": dict, "fingerprint": str, "log": [{"step": int}],
    "files": {"*": ENTRY},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A valid checkpoint.

    subwords: trained on so far. seconds: of training so far, including earlier sessions. counts: of all steps so far
    (doses.py). log: the entries so far.
    """

    folder: Path
    step: int
    subwords: int
    seconds: float
    counts: Mapping[str, int]
    fingerprint: str
    log: Sequence[Mapping[str, Any]]

    def restore(self, optimizer: torch.optim.Optimizer, objective: torch.nn.Module | None) -> None:
        """Load the states of an optimiser and of an objective. Raise StoreError if they do not fit."""
        import torch

        path = self.folder / TRAINING
        with parse_errors(str(path), "checkpoint of this model", error=StoreError, id="checkpoint", fix=_AGAIN):
            state = torch.load(path, map_location="cpu", weights_only=True)
            optimizer.load_state_dict(state["optimizer"])
            if objective is not None:
                try:
                    objective.load_state_dict(state["objective"])
                except RuntimeError as error:  # a list of what does not fit
                    raise ValueError(str(error).splitlines()[-1].strip()) from None


def load_model(folder: Path) -> Any:
    """Read a saved masked or causal language model. Raise StoreError if it cannot be read."""
    from transformers import AutoConfig

    from derivlang.training.own_parts import restore

    with quiet(), parse_errors(str(folder), "model", error=StoreError, id="model", fix="train it again"):
        config = from_pretrained(AutoConfig, folder)
        check_finite(config.to_dict())
        lm = model_from_pretrained(auto_class(config.model_type), folder)
        restore(lm, folder)
        return lm


def hash_of_weights(model: Path) -> str:
    """Return 16 hex digits of a saved model's weights and config, equal for equal models."""
    digest = sha256()
    for path in (path for pattern in _WEIGHTS for path in sorted(model.glob(pattern))):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            file_digest(file, lambda: digest)
    return digest.hexdigest()[:16]


def save(
    run: Path,
    lm: Any,
    optimizer: torch.optim.Optimizer,
    objective: torch.nn.Module | None,
    state: Mapping[str, Any],
    *,
    keep: int,
) -> None:
    """Write a checkpoint completely or not at all, and remove all but the last `keep`.

    state: all fields of `Checkpoint` except its folder. Raise StoreError if the disk is full.
    """
    import torch

    def write(fresh: Path) -> None:
        with quiet():
            lm.save_pretrained(fresh / MODEL)
        states = {
            "optimizer": optimizer.state_dict(),
            "objective": None if objective is None else objective.state_dict(),
        }
        with (fresh / TRAINING).open("wb") as out:  # its own file would not say why it cannot be written
            torch.save(states, out)
        record = sealed({**state, "files": listed(_present(fresh))})
        (fresh / STATE).write_text(record_text(record), "utf-8", newline="\n")

    replace_folder(run / FOLDER / name_of(state["step"]), write, FILES, record=STATE, warn=lambda message: None)
    remove_old(run, keep, state["step"])


def remove_old(run: Path, keep: int, step: int) -> None:
    """Remove all checkpoints before a step but the last `keep` with it, and what killed processes left of some.

    Foreign files stay. Raise StoreError if a file cannot be removed.
    """
    sweep(run / FOLDER)
    for old in [folder for folder in _folders(run) if folder.name <= name_of(step)][keep:]:
        remove_files(old, FILES, record=STATE)
        with suppress(OSError):  # a foreign file stays in it
            old.rmdir()


def write_log(run: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the log of a run that begins or resumes."""
    with writing(run / LOG) as out:
        out.write(_lines(entries))


def add_to_log(run: Path, entry: Mapping[str, Any]) -> None:
    """Add an entry to the log. Raise StoreError if the disk is full."""
    path = run / LOG
    with disk(path), path.open("ab") as out:
        out.write(_lines([entry]))


def has_log(run: Path, last: Checkpoint) -> bool:
    """Return whether the log begins with the entries of a checkpoint."""
    path = run / LOG
    return path.is_file() and path.read_bytes().startswith(_lines(last.log))


def _lines(entries: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


def newest(run: Path, warn: Callable[[str], None] = warn) -> Checkpoint | None:
    """Return the newest valid checkpoint, or None if there is no checkpoint. Raise StoreError if all are damaged."""
    folders = _folders(run)
    for folder in folders:
        fault, checkpoint = _read(folder)
        if checkpoint is not None:
            return checkpoint
        warn(f"skipping {folder.name}: {fault}")
    if folders:
        raise StoreError(
            "all checkpoints are damaged", where=str(run / FOLDER), fix="start again in another folder", id="checkpoint"
        )
    return None


def steps(run: Path) -> list[int]:
    """Return the steps that have a checkpoint, perhaps a damaged one, in ascending order."""
    names = [folder.name.removeprefix("step-") for folder in _folders(run)]
    return sorted(int(step) for step in names if step.isascii() and step.isdigit())


def run_and_step(text: Path) -> tuple[Path, int | None]:
    """Return the folder and the step of RUN@STEP, or (RUN, None). A folder with this very name is a run.

    Raise UsageError if what follows the @ is not a step.
    """
    name, at, step = text.name.rpartition("@")
    if not (at and name) or text.is_dir():
        return text, None
    if not re.fullmatch("[0-9]{1,9}", step):
        raise UsageError(f"{step!r} is not a step", where=str(text), fix="write e.g. RUN@3500", id="usage")
    return text.with_name(name), int(step)


def of_step(run: Path, step: int) -> Checkpoint:
    """Return the checkpoint of a step. Raise StoreError, naming the others, if there is none or it is damaged."""
    others = ", ".join(str(other) for other in steps(run) if other != step) or "none; --keep of `pretrain` keeps more"
    folder = run / FOLDER / name_of(step)
    if not folder.is_dir():
        raise StoreError(
            f"there is no checkpoint of step {step}", where=str(run), fix=f"there are: {others}", id="no-checkpoint"
        )
    fault, checkpoint = _read(folder)
    if checkpoint is None:
        raise StoreError(
            f"the checkpoint is damaged: {fault}",
            where=str(folder),
            fix=f"name another one; there are: {others}",
            id="checkpoint",
        )
    return checkpoint


def name_of(step: int) -> str:
    """Return the name of a checkpoint's folder in `checkpoints/`."""
    return f"step-{step:08d}"


def _folders(run: Path) -> list[Path]:
    """Return the folders of checkpoints, newest first, without those that hold only foreign files."""
    divided = [(folder, *split_files(folder, FILES)) for folder in (run / FOLDER).glob("step-*")]
    return sorted((folder for folder, own, foreign in divided if own or not foreign), reverse=True)


def check_all(run: Path) -> dict[str, str]:
    """Return what is wrong with each checkpoint of a run, by the name of its folder; "" for nothing."""
    return {folder.name: _read(folder)[0] for folder in reversed(_folders(run))}


def _read(folder: Path) -> tuple[str, Checkpoint | None]:
    """Return (what is wrong, None) or ("", checkpoint)."""
    try:
        state = read_record(folder / STATE, STATE, _FIELDS, partial(_check, folder), sealed=True, id="checkpoint")
    except StoreError:
        return f"{STATE} is missing or damaged", None
    files, present = state["files"], _present(folder)
    for name, what in faults(files, present):
        return f"{name} {what}", None
    for name in below(folder / MODEL, folder):  # `from_pretrained` takes some files that are there unasked
        if name not in files:
            return f"{name} was added", None
    return "", Checkpoint(folder, **{name: state[name] for name in _FIELDS if name != "files"})


def _present(folder: Path) -> dict[str, Path]:
    """Return the files of a checkpoint but its state, by name."""
    return {name: path for name, path in below(folder, folder).items() if name != STATE}


def _check(folder: Path, state: dict[str, Any]) -> None:
    """Raise ValueError if the state was changed, or does not belong to this folder."""
    if folder.name != name_of(state["step"]):
        raise ValueError(f"it is of step {state['step']}")
    if not math.isfinite(state["seconds"]):
        raise ValueError("seconds is not a finite number")
