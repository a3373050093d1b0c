"""The log of a run: what is measured between two entries, and how they are written to log.jsonl and boards."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from derivlang.core.errors import DataError
from derivlang.store.disk import create, disk
from derivlang.training.batch import StepCounts
from derivlang.training.boards import Board, figures_of
from derivlang.training.doses import OF, SOME, counts_of, percentages, tokens_of
from derivlang.training.log_file import LOG, read_log


class Meter:
    """Accumulate losses on the device between log entries; count what is read, and time.

    counts: of the whole run, up to the last entry (doses.py). subwords, seconds: of earlier sessions. masks: whether
    any sub-words are masked.
    """

    def __init__(
        self, device: torch.device, subwords: int, seconds: float, counts: Mapping[str, int], *, masks: bool = True
    ):
        self._device, self._masks = device, masks
        self.subwords, self._before, self.counts = subwords, seconds, Counter(counts)
        self._began = self._last = time.perf_counter()
        self._clear()

    def _clear(self) -> None:
        self._sums: dict[str, Any] = {}
        self._steps: Counter[str] = Counter()  # of each part: streams may be absent from some steps
        self._window: Counter[str] = Counter()
        self._here: set[str] = set()

    @property
    def seconds(self) -> float:
        """The seconds of training so far, earlier sessions included."""
        return self._before + time.perf_counter() - self._began

    def add(self, total: torch.Tensor, parts: dict[str, torch.Tensor]) -> None:
        """Add the losses of a micro-batch."""
        for name, value in {"loss": total.detach(), **parts}.items():
            self._sums[name] = self._sums[name] + value.float() if name in self._sums else value.float()
            self._here.add(name)

    def step(self, norm: Any, counts: StepCounts) -> None:
        """Add the gradient norm and the counts of a step."""
        self._window.update(counts_of(counts))
        self.subwords += sum(counts.subwords.values())
        self._sums["norm"] = self._sums["norm"] + norm if "norm" in self._sums else norm
        self._steps.update({*self._here, "norm"})
        self._here.clear()

    def entry(self, step: int, rate: float, accelerator: Any) -> dict[str, Any]:
        """Return the log entry with the means since the last entry. Only this method synchronises the device."""
        names = list(self._sums)
        values = torch.stack([torch.as_tensor(self._sums[n], device=self._device).float() for n in names])
        norm = float(values[names.index("norm")])
        values = accelerator.reduce(values, reduction="sum")  # each process has its part of the step's loss
        steps = torch.tensor([self._steps[n] for n in names], dtype=values.dtype)
        sums = values.cpu()
        means = dict(zip(names, (sums / steps).tolist(), strict=True))
        totals = zip(names, sums.tolist(), strict=True)
        self._window.update({name: round(total) for name, total in totals if name.endswith((SOME, OF))})
        self.counts.update(self._window)
        now = time.perf_counter()
        seen = tokens_of(self._window)
        out = {
            "step": step,
            "tokens": self.subwords,
            "seconds": round(self.seconds, 3),
            "lr": rate,
            "loss": means["loss"],
            "parts": {
                name: value
                for name, value in means.items()
                if name not in ("loss", "norm") and not name.endswith((SOME, OF))
            },
            "grad_norm": norm / self._steps["norm"],
            "tokens_per_second": round(sum(seen.values()) / max(now - self._last, 1e-9)),
            "tokens_per_step": {name: round(n / self._steps["norm"], 1) for name, n in seen.items()},
            **percentages(self._window, masks=self._masks),
        }
        self._last = now
        self._clear()
        return out


class TrainingLog:
    """The log of a run in log.jsonl and on boards.

    Entries after the step at which a run resumes are removed. last: the last remaining entry.

    before: the hash of the log in the checkpoint that is resumed, None if it is not known. Raise DataError if the
    entries that remain have changed; a log that is missing begins anew.
    """

    def __init__(self, run: Path, step: int, boards: Sequence[Board] = (), before: str | None = None):
        path = run / LOG
        kept = [entry for entry in read_log(run) if entry["step"] <= step]
        text = "".join(json.dumps(entry) + "\n" for entry in kept)
        if before is not None and path.exists() and sha256(text.encode()).hexdigest() != before:
            raise DataError(
                f"was changed since the checkpoint of step {step:,} was written",
                where=str(path),
                fix="restore it, or remove it: the run then goes on without the log of its earlier steps",
                id="damaged",
            )
        with disk(path):
            self._file = create(path)
            self._write(text)
        self._path = path
        self.last: dict[str, Any] = kept[-1] if kept else {}
        self._boards = boards

    def write(self, entry: dict[str, Any]) -> None:
        """Append an entry. Raise StoreError if the disk is full."""
        with disk(self._path):
            self._write(json.dumps(entry) + "\n")
        for board in self._boards:
            board.write(entry["step"], figures_of(entry))

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()

    def close(self) -> None:
        """Close the file and the boards."""
        self._file.close()
        for board in self._boards:
            board.close()
