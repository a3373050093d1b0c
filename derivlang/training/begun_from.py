"""What a run begins from: another run, one of its checkpoints, or a checkpoint that was trained elsewhere; its folders.

The command line and studies look at them before torch is loaded; the weights are read by `init_weights.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.training import checkpoint, run_folder
from derivlang.training.foreign import checkpoint_folder
from derivlang.training.languages import TOKENIZER
from derivlang.training.settings import RunPaths, TrainingSettings

INIT = "--init"


def with_tokenizer(paths: RunPaths, settings: TrainingSettings, before: dict[str, Any] | None) -> RunPaths:
    """Return the paths with the tokenizer of the run to begin from, whose embeddings belong to it.

    before: the record of a resumed run, which has a copy. Raise StoreError if there is no such run.
    """
    if paths.init is None or paths.tokenizer is not None or settings.embeddings == "new":
        return paths
    if before is not None:
        return replace(paths, tokenizer=paths.run / TOKENIZER)
    elsewhere = checkpoint_folder(paths.init)
    return replace(paths, tokenizer=elsewhere or model_of(paths.init, INIT)[0] / TOKENIZER)


def folders_begun_from(paths: RunPaths, settings: TrainingSettings) -> list[Path]:
    """Return the folders that a run begins from, which --force must not remove."""
    names = [paths.init or "", settings.embeddings.partition("=")[2]]
    return [checkpoint_folder(name) or checkpoint.run_and_step(Path(name))[0] for name in names if name]


def model_of(text: str, option: str) -> tuple[Path, Path]:
    """Return (folder of the run, folder of its model) for RUN or RUN@STEP. option: for messages.

    Raise StoreError if the run is not finished, if it has no such checkpoint, or if a file is not the one that was
    written.
    """
    run, step = checkpoint.run_and_step(Path(text))
    facts = run_folder.read(run)
    if step is not None:
        run_folder.check_files(run, facts, model=False)
        return run, checkpoint.of_step(run, step).folder / checkpoint.MODEL
    if facts["status"] == "done":
        run_folder.check_files(run, facts)
        return run, run / checkpoint.MODEL
    there = ", ".join(map(str, checkpoint.steps(run)))
    raise StoreError(
        "is not a finished run",
        where=f"{option} {text}",
        fix="finish it" + (f", or begin from a checkpoint: RUN@STEP, of {there}" if there else ""),
        id="no-model",
    )


def has_language_ids(text: str) -> bool:
    """Return whether the model of RUN or RUN@STEP gets the language of each position; False if it is not there.

    Raise StoreError if its record cannot be read.
    """
    run, _ = checkpoint.run_and_step(Path(text))
    there = (run / run_folder.RUN).exists()  # a study looks at the options of all cells before the first one runs
    return there and bool((run_folder.read(run).get("model") or {}).get("language_ids"))
