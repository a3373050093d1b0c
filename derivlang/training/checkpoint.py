"""Checkpoints: what a run goes on from. Each is whole or not there.

    RUN/checkpoints/step-00003500/model/         an ordinary Hugging Face folder
    RUN/checkpoints/step-00003500/training.pt    the optimiser's state, the objective's (with its dictionary), torch's
    RUN/checkpoints/step-00003500/state.json     step, sub-words, seconds, fingerprint; size and hash of every file

Written under another name, flushed, renamed. The place in the data and every draw follow from the step. A checkpoint
that was damaged later is passed over, and said to be.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.core.errors import StoreError
from derivlang.store.disk import disk
from derivlang.training.quiet import quiet

if TYPE_CHECKING:
    import torch

FOLDER, STATE, TRAINING, MODEL = "checkpoints", "state.json", "training.pt", "model"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint. subwords: seen so far; seconds: of training, earlier parts of the run included."""

    folder: Path
    step: int
    subwords: int
    seconds: float
    fingerprint: str

    def load_model(self) -> Any:
        """The masked language model of `transformers`."""
        return load_model(self.folder / MODEL)

    def load_training(self) -> dict[str, Any]:
        """{"optimizer", "objective", "random"}."""
        import torch

        found: dict[str, Any] = torch.load(self.folder / TRAINING, map_location="cpu", weights_only=True)
        return found


def load_model(folder: Path) -> Any:
    """A saved masked language model; StoreError where it cannot be read."""
    from transformers import AutoModelForMaskedLM

    try:
        with quiet():
            return AutoModelForMaskedLM.from_pretrained(folder)
    except Exception as error:  # noqa: BLE001 (transformers and safetensors raise many kinds)
        raise StoreError(
            f"the model cannot be read: {error}", where=str(folder), fix="train it again", id="model"
        ) from None


def save(
    run: Path,
    lm: Any,
    optimizer: torch.optim.Optimizer,
    objective: torch.nn.Module | None,
    *,
    step: int,
    subwords: int,
    seconds: float,
    fingerprint: str,
    keep: int,
) -> Checkpoint:
    """Write a checkpoint, whole or not at all, and remove all but the last `keep`; StoreError on a full disk."""
    import torch

    folder = run / FOLDER / name_of(step)
    fresh = folder.with_name(f".{folder.name}.derivlang")
    try:
        with disk(folder):
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            try:
                with quiet():
                    lm.save_pretrained(fresh / MODEL)
                state = {
                    "optimizer": optimizer.state_dict(),
                    "objective": None if objective is None else objective.state_dict(),
                    "random": torch.get_rng_state(),
                }
                torch.save(state, fresh / TRAINING)
            except RuntimeError as error:  # torch's writer says so, where the disk is full
                raise OSError(28 if "writ" in str(error) else 5, str(error)) from error
            except Exception as error:  # safetensors has an error of its own
                if type(error).__module__.startswith("safetensors"):
                    raise OSError(28 if "os error 28" in str(error) else 5, str(error)) from error
                raise
            recipe = {
                "step": step,
                "subwords": subwords,
                "seconds": round(seconds, 3),
                "fingerprint": fingerprint,
                "files": {str(p.relative_to(fresh)): list(_seen(p)) for p in sorted(fresh.rglob("*")) if p.is_file()},
            }
            (fresh / STATE).write_text(json.dumps(recipe, indent=1) + "\n", "utf-8")
            for path in fresh.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        os.fsync(file.fileno())
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for old in _folders(run)[keep:]:
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return Checkpoint(folder, step, subwords, seconds, fingerprint)


def newest(run: Path, warn: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole; None where there is none at all, StoreError where all are damaged."""
    folders = _folders(run)
    for folder in folders:
        fault, found = _read(folder)
        if found is not None:
            return found
        warn(f"{folder.name} is passed over: {fault}")
    if folders:
        raise StoreError(
            "no checkpoint is whole", where=str(run / FOLDER), fix="start again, in another folder", id="checkpoint"
        )
    return None


def name_of(step: int) -> str:
    """A checkpoint's folder in `checkpoints/`."""
    return f"step-{step:08d}"


def _folders(run: Path) -> list[Path]:
    """Newest first."""
    return sorted((run / FOLDER).glob("step-*"), reverse=True)


def _read(folder: Path) -> tuple[str, Checkpoint | None]:
    """(what is wrong, the checkpoint if nothing is)."""
    try:
        state = json.loads((folder / STATE).read_text("utf-8"))
        found = Checkpoint(folder, state["step"], state["subwords"], state["seconds"], state["fingerprint"])
        files = [(name, int(size), str(digest)) for name, (size, digest) in state["files"].items()]
        if found.folder != folder.parent / name_of(found.step):
            raise ValueError
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return f"{STATE} is missing or damaged", None
    for name, size, digest in files:
        path = folder / name
        if not path.exists():
            return f"{name} is missing", None
        if path.stat().st_size != size:
            return f"{name} was cut off ({path.stat().st_size:,} of {size:,} bytes)", None
        if _seen(path)[1] != digest:
            return f"{name} was changed", None
    return "", found


def _seen(path: Path) -> tuple[int, str]:
    """(bytes, hash) of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return path.stat().st_size, digest.hexdigest()
