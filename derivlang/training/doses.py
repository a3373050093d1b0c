"""Doses: what a run has read over all of its steps, in one session or several.

    counts of each step ──added──▶ counts so far, in state.json of each checkpoint ──▶ `doses` in run.json

A dose is a number by which objectives are compared (docs/reference/runs.md). Nothing here synchronises the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from derivlang.training.batch import StepCounts

if TYPE_CHECKING:
    from derivlang.training.loader import OpenStream
    from derivlang.training.objectives.base import Objective

# Endings of the counts of a stream, and of both counts of a share that an objective logs.
TOKENS, SENTENCES = "_tokens", "_sentences"
_LANGUAGE = "language "  # and its number
SOME, OF = ":some", ":of"


def counts_of(step: StepCounts) -> dict[str, int]:
    """Return the counts of a step by name: `rows_tokens`, `rows_sentences`, …, `masked`, `translated`."""
    counts = {name + TOKENS: count for name, count in step.subwords.items()}
    counts |= {name + SENTENCES: count for name, count in step.sentences.items()}
    counts |= {f"{_LANGUAGE}{number}": count for number, count in enumerate(step.languages)}
    return counts | {"masked": step.masked, "translated": step.translated}


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
    paired = {kind for one in streams for kind in one.stream.pair_kinds()}
    epochs = {
        one.stream.name: round(int(one.rows_before(n, n + 1)[0]) / one.source.n, 4)
        for one in streams
        for n in [len(one.stream.steps(0, step))]
    }
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
    doses |= {f"tokens_of_{name}": counts[f"{_LANGUAGE}{number}"] for number, name in enumerate(languages)}
    for kind in seen:
        doses |= {kind + ending: counts[kind + ending] for ending in (TOKENS, SENTENCES)}
    for one in streams:
        name, facts = one.stream.name, one.source.facts()
        doses[f"{name}_epochs"] = epochs[name]
        doses |= {of: facts[of] for of in ("pairs", "short_pairs") if of in facts}
        if "percent" in facts:
            doses[f"{next(iter(one.stream.pair_kinds()), name)}_percent"] = facts["percent"]
    if entries is not None:
        doses["dictionary_entries"] = entries
    return doses | _shares(counts)


def _per(count: int, of: int, digits: int = 3) -> float:
    return round(count / max(of, 1), digits)


def _shares(counts: Counter[str]) -> dict[str, float]:
    """Return the percentages that an objective logs (`Share`). One of nothing is left out."""
    names = [name.removesuffix(OF) for name, of in counts.items() if name.endswith(OF) and of]
    return {f"{name}_percent": round(100 * counts[name + SOME] / counts[name + OF], 2) for name in names}
