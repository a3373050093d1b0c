"""Where the entries of a log go besides log.jsonl: TensorBoard (`--tensorboard`), Weights & Biases (`--wandb`).

    entry   loss, lr, tokens_per_second, and loss/PART for each part of the loss, at its step

Neither package is needed otherwise. A run of Weights & Biases is written offline, into RUN/wandb, unless the
environment has WANDB_MODE; `wandb sync RUN/wandb/offline-run-*` sends it. A resumed training continues the same run.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from derivlang.core.errors import DataError
from derivlang.training.settings import LogSettings


class Board(Protocol):
    """Shows the figures of a run."""

    def write(self, step: int, figures: dict[str, float]) -> None:
        """Add figures by name."""

    def close(self) -> None:
        """Write what is left."""


class TensorBoard:
    """Events of TensorBoard in a folder."""

    def __init__(self, folder: Path):
        self._writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder))

    def write(self, step: int, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases in a project.

    Raises DataError if the package refuses, as it does online without a key.
    """

    def __init__(self, project: str, run: Path, step: int, settings: dict[str, Any]):
        wandb = import_module("wandb")
        # Folders are named offline-run-DATE_TIME-ID or run-DATE_TIME-ID.
        earlier = sorted((run / "wandb").glob("*run-*-*"), key=lambda path: path.name.removeprefix("offline-"))
        try:
            self._run = wandb.init(
                project=project,
                name=run.resolve().name,
                dir=str(run),
                config=settings,
                id=earlier[-1].name.rpartition("-")[2] if earlier and step else None,
                resume="allow",
                mode=None if os.environ.get("WANDB_MODE") else "offline",
                settings=wandb.Settings(silent=True),
            )
        except Exception as error:  # noqa: BLE001 (the package raises many kinds)
            raise DataError(
                f"Weights & Biases cannot begin a run: {' '.join(str(error).split())[:200]}",
                where="--wandb",
                fix="unset WANDB_MODE to write the run offline, or leave out --wandb",
                id="wandb",
            ) from None

    def write(self, step: int, figures: dict[str, float]) -> None:
        self._run.log(figures, step=step)

    def close(self) -> None:
        self._run.finish()


def boards_of(settings: LogSettings, run: Path, step: int, recorded: dict[str, Any]) -> list[Board]:
    """Return the boards of a run that begins at a step. recorded: the settings of the run."""
    boards: list[Board] = []
    if settings.tensorboard is not None:
        boards.append(TensorBoard(settings.tensorboard))
    if settings.wandb is not None:
        boards.append(WeightsAndBiases(settings.wandb, run, step, recorded))
    return boards


def figures_of(entry: dict[str, Any]) -> dict[str, float]:
    """Return the figures of an entry of the log."""
    figures = {name: entry[name] for name in ("loss", "lr", "tokens_per_second")}
    return figures | {f"loss/{name}": value for name, value in entry["parts"].items()}
