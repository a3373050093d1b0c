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

# Endings of the counts of a stream, and of both counts of a share that an objective logs.
TOKENS, SENTENCES = "_tokens", "_sentences"
SOME, OF = ":some", ":of"


def counts_of(step: StepCounts) -> dict[str, int]:
    """Return the counts of a step by name: `rows_tokens`, `rows_sentences`, …, `masked`, `translated`."""
    found = {name + TOKENS: count for name, count in step.subwords.items()}
    found |= {name + SENTENCES: count for name, count in step.sentences.items()}
    return found | {"masked": step.masked, "translated": step.translated}


def tokens_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of sub-words of each stream."""
    return {name.removesuffix(TOKENS): count for name, count in counts.items() if name.endswith(TOKENS)}


def percentages(counts: Counter[str], *, masks: bool) -> dict[str, float]:
    """Return `masked_percent`, `translated_percent` and those of an objective's shares. masks: whether any are masked.

    A percentage of nothing is left out, and so is `translated_percent` where nothing is translated.
    """
    found = {}
    if masks:
        found["masked_percent"] = round(100 * counts["masked"] / max(sum(tokens_of(counts).values()), 1), 2)
    if counts["translated"]:
        found["translated_percent"] = round(100 * counts["translated"] / counts["masked"], 2)
    for name in (name.removesuffix(OF) for name, of in counts.items() if name.endswith(OF) and of):
        found[f"{name}_percent"] = round(100 * counts[name + SOME] / counts[name + OF], 2)
    return found


def doses_of(
    counts: Counter[str], streams: Sequence[OpenStream], step: int, *, masks: bool, entries: int | None
) -> dict[str, float]:
    """Return the doses of a run's first `step` steps. entries: of the dictionary that it reads, None without one."""
    found: dict[str, float] = {"tokens": sum(tokens_of(counts).values())}
    for one in streams:
        name, facts = one.stream.name, one.source.facts()
        found |= {name + ending: counts[name + ending] for ending in (TOKENS, SENTENCES)}
        found[f"{name}_epochs"] = round(len(one.stream.steps(0, step)) * one.size / one.source.n, 4)
        found |= {of: facts[of] for of in ("pairs", "short_pairs") if of in facts}
        if "percent" in facts:
            found[f"{name}_percent"] = facts["percent"]
    if masks:
        found["masked"] = counts["masked"]
    if counts["translated"]:
        found["translated"] = counts["translated"]
    if entries is not None:
        found["dictionary_entries"] = entries
    return found | percentages(counts, masks=masks)
