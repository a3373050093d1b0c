"""Budgets: what a number of steps holds equal between objectives (`--budget`).

    budget        a run of N steps has as many as
    steps         N updates of the weights
    tokens        the sub-words that MLM reads in N steps, of all its rows and without padding
    predictions   the positions that MLM predicts in N steps

    N = 1000, MLM reads 400 sub-words per step, the objective 600   ->   667 steps

The learning rate, checkpoints and log entries follow the steps that are made, so they are at equal shares of the
budget. The reference of a causal objective is CLM, which reads the same rows.
"""

from __future__ import annotations

from dataclasses import replace

from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.training.loader import Loader, OpenStream
from derivlang.training.objectives.clm import Clm
from derivlang.training.objectives.mlm import Mlm
from derivlang.training.settings import Budget, LogSettings
from derivlang.training.streams.base import StreamInputs
from derivlang.training.streams.packed import Packed

_POSITIONS = 1 << 20  # in which predictions are counted
_NEAR = 0.05  # maximum difference from the budget, as a share of it


def steps_within(budget: Budget, steps: int, loader: Loader, material: StreamInputs) -> int:
    """Return the number of steps of an objective that equals `steps` of MLM. loader: of all processes together.

    Raise UsageError if no whole number of steps is within 5 % of the budget.
    """
    if budget == "steps" or not steps:
        return steps
    settings, stream = material.settings, Packed()
    if settings.seq_len not in material.encoded:
        raise UsageError(
            "without a source there is no text of which mlm could read as much",
            where="--budget",
            fix="leave it out, or give --source and --t",
            id="unused-option",
        )
    rows = OpenStream(stream, stream.open(material), settings.batch_size, 0)
    objective = Clm() if loader.objective.causal else Mlm()
    wanted, each = (_per_step(budget, one) for one in (replace(loader, streams=(rows,), objective=objective), loader))
    if not each:
        raise UsageError(
            f"{loader.objective.name} predicts nothing in its first steps", where="--budget", id="bad-value"
        )
    n_steps = max(1, round(steps * wanted / each))
    if abs(n_steps * each - steps * wanted) > _NEAR * steps * wanted:
        raise UsageError(
            f"{counted(steps, 'step')} of {objective.name}: {steps * wanted:,.0f} {_NAMES[budget]}, and a step of "
            f"{loader.objective.name} has {each:,.0f}: no number of steps is within {_NEAR:.0%}",
            where="--budget",
            fix="give more --steps",
            id="bad-value",
        )
    return n_steps


def log_within(log: LogSettings, budget: Budget, steps: int, made: int) -> LogSettings:
    """Return the settings of a log whose entries and checkpoints are at the same shares of a budget.

    steps: of MLM, in which the settings count; made: of this run.
    """
    if budget == "steps" or not made:
        return log

    def scaled(every: int) -> int:
        return max(1, round(every * made / steps))

    save_every = None if log.save_every is None else scaled(log.save_every)
    return replace(log, log_every=scaled(log.log_every), save_every=save_every)


_NAMES = {"tokens": "sub-words", "predictions": "predictions"}


def _per_step(budget: Budget, loader: Loader) -> float:
    """Return the mean number of sub-words or of predictions in a step."""
    if budget == "tokens":
        return loader.subwords_per_step
    positions = sum(float(one.size) * one.source.length for one in loader.streams)
    n = max(1, int(_POSITIONS / positions))
    return sum(micros[0].counts.masked for micros in loader.steps(0, n)) / n
