"""Doses: what a run has read over all of its steps, in one session or several; and budgets of steps.

    counts of each step ──added──▶ counts so far, in state.json of each checkpoint ──▶ `doses` in run.json

A dose is a number by which objectives are compared (docs/reference/runs.md). Nothing here synchronises the device.

A budget is what a number of steps holds equal between objectives (`--budget`).

    budget        a run of N steps has as many as
    steps         N updates of the weights
    tokens        the sub-words that MLM reads in N steps, of all its rows and without padding
    predictions   the positions that MLM predicts in N steps

    N = 1000, MLM reads 400 sub-words per step, the objective 600   ->   667 steps

The learning rate, checkpoints and log entries follow the steps that are made, so they are at equal shares of the
budget. The reference of a causal objective is CLM, which reads the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.training.batch import LANGUAGE, OF, SENTENCES, SOME, TOKENS
from derivlang.training.loader import Loader, OpenStream
from derivlang.training.objectives.base import Objective
from derivlang.training.objectives.clm import Clm
from derivlang.training.objectives.mlm import Mlm
from derivlang.training.prepare import Prepared
from derivlang.training.settings import Budget, SessionSettings
from derivlang.training.streams.packed import Packed

_POSITIONS = 1 << 20  # in which predictions are counted
_NEAR = 0.05  # maximum difference from the budget, as a share of it
_NAMES = {"tokens": "sub-words", "predictions": "predictions"}


def tokens_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of sub-words of each stream."""
    return {name.removesuffix(TOKENS): count for name, count in counts.items() if name.endswith(TOKENS)}


def percentages(counts: Counter[str], *, masks: bool) -> dict[str, float]:
    """Return `masked_percent`, `translated_percent` and the percentages of an objective's shares. masks: whether any
    are masked.

    A percentage of nothing is left out, and so is `translated_percent` where nothing is translated.
    """
    percents: dict[str, float] = {}
    if masks:
        percents["masked_percent"] = round(100 * counts["masked"] / max(sum(tokens_of(counts).values()), 1), 2)
    if counts["translated"]:
        percents["translated_percent"] = round(100 * counts["translated"] / counts["masked"], 2)
    return percents | _shares(counts)


def doses_of(
    counts: Counter[str],
    objective: Objective,
    streams: Sequence[OpenStream],
    step: int,
    entries: int | None,
    languages: Sequence[str] = (),
) -> dict[str, float | None]:
    """Return the doses of a run's first `step` steps; None for one that the objective does not have.

    entries: of the dictionary that it reads, None without one. languages: names, of a run of more than two.
    """
    seen, masked, translated = tokens_of(counts), counts["masked"], counts["translated"]
    paired = {kind for one in streams for kind in one.stream.pair_kinds}
    epochs = {one.stream.name: round(int(one.rows_before(step, step + 1)[0]) / one.source.n, 4) for one in streams}
    used = None if entries is None else objective.entries_per_step(entries)
    doses: dict[str, float | None] = {
        "subwords_per_step": _per(sum(seen.values()), step),
        "predicted_per_step": _per(masked, step),
        "pair_share": _per(sum(seen.get(kind, 0) for kind in paired), sum(seen.values()), 6) if paired else None,
        "pairs_per_step": _per(sum(counts[kind + SENTENCES] for kind in paired), step) if paired else None,
        "translated_share": _per(translated, masked, 6) if translated or objective.translates else None,
        "dictionary_pairs_per_step": used,
        "passes": epochs[streams[0].stream.name],
        "tokens": sum(seen.values()),
    }
    doses |= {f"tokens_of_{name}": counts[f"{LANGUAGE}{number}"] for number, name in enumerate(languages)}
    for kind in seen:
        doses |= {kind + ending: counts[kind + ending] for ending in (TOKENS, SENTENCES)}
    for one in streams:
        name, facts = one.stream.name, one.source.facts()
        doses[f"{name}_epochs"] = epochs[name]
        doses |= {of: facts[of] for of in ("pairs", "short_pairs") if of in facts}
        if "percent" in facts:
            doses[f"{next(iter(one.stream.pair_kinds), name)}_percent"] = facts["percent"]
    if entries is not None:
        doses["dictionary_entries"] = entries
    return doses | _shares(counts)


def _per(count: int, of: int, digits: int = 3) -> float:
    return round(count / max(of, 1), digits)


def _shares(counts: Counter[str]) -> dict[str, float]:
    """Return the percentages that an objective logs (`Share`). One of nothing is left out."""
    names = [name.removesuffix(OF) for name, of in counts.items() if name.endswith(OF) and of]
    return {f"{name}_percent": round(100 * counts[name + SOME] / counts[name + OF], 2) for name in names}


def steps_within(budget: Budget, steps: int, loader: Loader, prepared: Prepared) -> int:
    """Return the number of steps of an objective that equals `steps` of MLM. loader: of all processes together.

    Raise UsageError if no whole number of steps is within 5 % of the budget.
    """
    if budget == "steps" or not steps:
        return steps
    settings, stream = prepared.settings, Packed()
    if settings.seq_len not in prepared.encoded:
        raise UsageError(
            "without a source there is no text of which mlm could read as much",
            where="--budget",
            fix="leave it out, or give --source and --t",
            id="unused-option",
        )
    rows = OpenStream(stream, stream.open(prepared), settings.batch_size, 0)
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


def log_within(log: SessionSettings, steps: int, made: int) -> SessionSettings:
    """Return the settings of a log whose entries and checkpoints are at the same shares of a budget.

    steps: of MLM, in which the settings count; made: of this run.
    """
    if log.budget == "steps" or not made:
        return log

    def scaled(every: int) -> int:
        return max(1, round(every * made / steps))

    save_every = None if log.save_every is None else scaled(log.save_every)
    return replace(log, log_every=scaled(log.log_every), save_every=save_every)


def _per_step(budget: Budget, loader: Loader) -> float:
    """Return the mean number of sub-words or of predictions in a step."""
    if budget == "tokens":
        return loader.subwords_per_step
    positions = sum(float(one.size) * one.source.length for one in loader.streams)
    n = max(1, int(_POSITIONS / positions))
    return sum(micros[0].counts["masked"] for micros in loader.steps(0, n)) / n
