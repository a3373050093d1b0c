"""Checkpoints from which a run can resume. Each is written completely or not at all.

    RUN/checkpoints/step-00003500/model/         an ordinary Hugging Face folder
    RUN/checkpoints/step-00003500/training.pt    states of the optimiser, the objective (with its dictionary) and torch
    RUN/checkpoints/step-00003500/state.json     step, sub-words, seconds, fingerprint; size and hash of every file;
                                                 the hash of log.jsonl so far, and of state.json itself; the
                                                 counts so far, from which doses follow (doses.py)

A checkpoint is written under another name, flushed and renamed. The position in the data and every draw follow from
the step. Damaged checkpoints are skipped with a warning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import check_intact, sealed
from derivlang.lexical.pretrained import from_pretrained, model_from_pretrained, quiet
from derivlang.store.folders import remove_files, replace_folder, sweep
from derivlang.store.foreign import split_files
from derivlang.store.listing import below, check_listed, faults, file_hash, listed, remembered
from derivlang.store.record import Kind, check_types, read_record, record_text
from derivlang.training.config import auto_class, check_finite
from derivlang.training.log_file import LOG

if TYPE_CHECKING:  # reports and `verify`, which load no torch, look at checkpoints, too
    import torch

FOLDER, STATE, TRAINING, MODEL = "checkpoints", "state.json", "training.pt", "model"
_AGAIN = "remove this checkpoint; the same command resumes from the one before it"
MODEL_FILES = ("config.json", "generation_config.json", "model*.safetensors*", "pytorch_model*.bin*")
FILES = (STATE, TRAINING, *(f"{MODEL}/{name}" for name in MODEL_FILES))  # of a checkpoint
_WEIGHTS = ("*.safetensors", "*.bin", "config.json")
_FORMAT = 1  # written only beside the hash of state.json


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A valid checkpoint.

    subwords: trained on so far. seconds: of training so far, including earlier sessions. log: hash of the log so far;
    None if it is not known. counts: of all steps so far (doses.py); {} in a checkpoint of an earlier version.
    """

    folder: Path
    step: int
    subwords: int
    seconds: float
    fingerprint: str
    log: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def load_model(self) -> Any:
        """Return the language model of `transformers`."""
        return load_model(self.folder / MODEL)

    def load_training(self) -> dict[str, Any]:
        """Return {"optimizer", "objective", "random"}."""
        import torch

        path = self.folder / TRAINING
        with parse_errors(str(path), "checkpoint", error=StoreError, id="checkpoint", fix=_AGAIN):
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            check_types(state, {"optimizer": dict}, {"objective": dict})
        return state


def load_state(module: torch.nn.Module, saved: dict[str, torch.Tensor]) -> None:
    """Load the tensors of an objective. Raise ValueError, with the name of the first one, if they do not fit."""
    for name, tensor in module.state_dict().items():
        if saved[name].shape != tensor.shape:
            theirs, ours = (" x ".join(map(str, each.shape)) for each in (saved[name], tensor))
            raise ValueError(f"{name} is {theirs}, but here {ours}")
    module.load_state_dict(saved)


def load_model(folder: Path) -> Any:
    """Read a saved masked or causal language model. Raise StoreError if it cannot be read."""
    from transformers import AutoConfig

    from derivlang.training.language_embeddings import restore

    with quiet(), parse_errors(str(folder), "model", error=StoreError, id="model", fix="train it again"):
        config = from_pretrained(AutoConfig, folder)
        check_finite(config.to_dict())
        lm = model_from_pretrained(auto_class(config.model_type), folder)
        restore(lm, folder)
        return lm


def hash_of_weights(model: Path) -> str:
    """Return 16 hex digits of a saved model's weights and config, equal for equal models."""
    files = [path for pattern in _WEIGHTS for path in sorted(model.glob(pattern))]

    def compute() -> str:
        digest = sha256()
        for path in files:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                file_digest(file, lambda: digest)
        return digest.hexdigest()[:16]

    return remembered("weights", files, compute)


def save(
    run: Path,
    lm: Any,
    optimizer: torch.optim.Optimizer,
    objective: torch.nn.Module | None,
    *,
    step: int,
    subwords: int,
    seconds: float,
    counts: Mapping[str, int],
    fingerprint: str,
    keep: int,
) -> Checkpoint:
    """Write a checkpoint completely or not at all, and remove all but the last `keep`.

    Raise StoreError if the disk is full.
    """
    import torch

    folder = run / FOLDER / name_of(step)
    log = file_hash(run / LOG) if (run / LOG).exists() else None

    def write(fresh: Path) -> None:
        with quiet():
            lm.save_pretrained(fresh / MODEL)
        state = {
            "optimizer": optimizer.state_dict(),
            "objective": None if objective is None else objective.state_dict(),
            "random": torch.get_rng_state(),
        }
        with (fresh / TRAINING).open("wb") as out:  # its own file would not say why it cannot be written
            torch.save(state, out)
        recipe = {
            "format": _FORMAT,
            "step": step,
            "subwords": subwords,
            "seconds": round(seconds, 3),
            "counts": dict(counts),
            "fingerprint": fingerprint,
            "files": listed(_present(fresh)),
            "log": log,
        }
        (fresh / STATE).write_text(record_text(sealed(recipe)), "utf-8", newline="\n")

    replace_folder(folder, write, FILES, record=STATE, warn=lambda message: None)
    remove_old(run, folder, keep)
    return Checkpoint(folder, step, subwords, seconds, fingerprint, log, counts)


def remove_old(run: Path, newest: Path, keep: int) -> None:
    """Remove all checkpoints before `newest` but the last `keep` with it, and what killed processes left of some.

    Foreign files stay. Raise StoreError if a file cannot be removed.
    """
    sweep(run / FOLDER)
    for old in [folder for folder in _folders(run) if folder <= newest][keep:]:
        remove_files(old, FILES, record=STATE)
        with suppress(OSError):  # a foreign file stays in it
            old.rmdir()


def newest(run: Path, warn: Callable[[str], None]) -> Checkpoint | None:
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
        state = read_record(folder / STATE, STATE, partial(_check, folder), id="checkpoint")
    except StoreError:
        return f"{STATE} is missing or damaged", None
    files, present = state["files"], _present(folder)
    for name, what in faults(files, present):
        return f"{name} {what}", None
    for name in below(folder / MODEL, folder):  # `from_pretrained` takes some files that are there unasked
        if name not in files:
            return f"{name} was added", None
    step, subwords, seconds, fingerprint = (state[name] for name in ("step", "subwords", "seconds", "fingerprint"))
    return "", Checkpoint(folder, step, subwords, seconds, fingerprint, state.get("log"), state.get("counts") or {})


def _present(folder: Path) -> dict[str, Path]:
    """Return the files of a checkpoint but its state, by name."""
    return {name: path for name, path in below(folder, folder).items() if name != STATE}


def _check(folder: Path, state: dict[str, Any]) -> None:
    """Raise ValueError if the state was changed, or does not belong to this folder."""
    kinds: dict[str, Kind] = {
        "step": int, "subwords": int, "seconds": (int, float), "fingerprint": str, "files": dict
    }  # fmt: skip
    check_types(state, kinds, {"log": str, "counts": dict})
    check_intact(state)
    if folder.name != name_of(state["step"]):
        raise ValueError(f"it is of step {state['step']}")
    check_listed(state["files"])
    if not math.isfinite(state["seconds"]):
        raise ValueError("seconds is not a finite number")
