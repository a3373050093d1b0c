"""Check run.json and evaluation.json before a report reads them: types, numbers, names of tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from derivlang.core.spec import read_spec
from derivlang.evaluation import results
from derivlang.evaluation.finetune_settings import REGIMES
from derivlang.evaluation.report.columns import DEV
from derivlang.evaluation.report.plan import check_levels
from derivlang.evaluation.tasks.registry import TASKS, task_of
from derivlang.evaluation.tasks.untuned import SIDES, UntunedTask, shown_groups
from derivlang.lexical.percent import percent
from derivlang.store.record import Kind, check_types, short
from derivlang.training import folder
from derivlang.training.run_files import FILES

FORMAT = 1
# Measure -> its figures of a layer, and their names in the report. Older versions gave `sentences` in `contextual`.
LAYER_FIGURES = {
    "contextual": {"words": "words", "chance": "words by chance", "sentences": "sentences"},
    "retrieval": {"sentences": "sentences", "first": "sentences by <s>", "chance": "sentences by chance"},
    "links": {
        f"{way}{name}": f"{title} by {name}"
        for way, title in (("", "AER"), ("joint_", "joint AER"))
        for name in ("argmax", "itermax", "transport")
    },
}
_WHOLE = ("alignment", "perplexity", "surprisal")  # measures with figures of the whole model
TEST_COUNTS = ("units", "labels", "in_train", "in_whole_train")
_FACTS: dict[str, Kind] = {
    "source": str, "spec": str, "objective": str, "seed": int, "steps": int, "model": dict, "data": str,
    "fingerprint": str, "derivlang": str,
}  # fmt: skip
_SHARE = (str, int, float)  # a percentage: 25, "12.5", "1/3"
_MORE_FACTS: dict[str, Kind] = {
    "status": str, "step": int, "batch_size": int, "seq_len": int, "dictionary": dict, "parallel": _SHARE,
    "settings": dict, "weights": str, "result": dict, "streams": dict, "init": dict, FILES: dict,
}  # fmt: skip
_LARGEST = 1e15  # bound of a number to print


def untuned_task(label: str) -> UntunedTask | None:
    """Return the task of a label, or None if it is fine-tuned or not known."""
    task = task_of(label) if label.partition(":")[0] in TASKS else None
    return task if isinstance(task, UntunedTask) else None


def check_facts(facts: dict[str, Any]) -> None:
    """Raise ValueError for a run.json that the report cannot show."""
    if facts.get("format") != FORMAT:
        raise ValueError(f"format {short(facts.get('format'))}, but this version reads {FORMAT}")
    check_types(facts, _FACTS, _MORE_FACTS)
    folder.check_sealed(facts)
    check_levels(facts.get("factors") or {}, "factors")
    check_types(facts["model"], {"name": str}, {"tie": bool, "language_ids": bool})
    dictionary = facts.get("dictionary") or {}
    check_types(dictionary, {}, {"coverage": _SHARE, "by": str, "seed": int, "sha256": str, "file": str})
    result = facts.get("result") or {}
    check_types(result, {}, {"tokens_per_step": dict})
    for name in ("masked_percent", "translated_percent"):
        _check_number(result.get(name), name)
    if result.get("tokens_per_step"):
        _check_number(result.get("tokens"), "tokens", none=False)
        for name, count in result["tokens_per_step"].items():
            _check_number(count, f"tokens_per_step: {name}", none=False)
    streams = facts.get("streams") or {}
    for name in streams:
        check_types(streams, {name: dict})
        check_types(streams[name], {}, {"sha256": str}, where=f"streams.{name}.")
    pairs = streams.get("pairs") or {}
    if facts.get("init"):
        check_types(facts["init"], {"run": str, "weights": str}, where="init.")
    for name in ("percent", "cut_sentences", "short_pairs"):
        _check_number(pairs.get(name), name, none=name not in pairs)
    for value in (dictionary.get("coverage"), facts.get("parallel")):
        if value is not None:
            percent(str(value), "percent", zero=True)
    for name in ("spec", "objective"):
        for _, _, keyed in read_spec(facts[name], name):
            _check_number(float(keyed.get("overlap", 0)), f"{name}: overlap")


def check_evaluation(evaluation: dict[str, Any]) -> None:
    """Raise ValueError for an evaluation.json that the report cannot show."""
    check_types(evaluation, {"signature": dict}, {"tasks": dict, "heldout": dict})
    check_types(evaluation, {}, dict.fromkeys(LAYER_FIGURES, list) | dict.fromkeys(_WHOLE, dict))
    for name, told in (evaluation.get("heldout") or {}).items():
        if not isinstance(told, dict):
            raise ValueError(f"heldout: {name}: {short(told)} is not an object")
    check_types(evaluation["signature"], {"fingerprint": str}, {"steps": int, "weights": str})
    results.check_sealed(evaluation)
    _check_scores(evaluation)


def _check_scores(evaluation: Mapping[str, Any]) -> None:
    """Raise ValueError for a score that is not a number."""
    for task, entry in (evaluation.get("tasks") or {}).items():
        if task.partition(":")[0] in TASKS:
            task_of(task)
        check_types(entry, {}, {"settings": dict, "dev": dict, "chance": dict, "test": dict})
        if (untuned := untuned_task(task)) is not None:
            _check_groups(task, untuned, entry)
        if entry.get("test"):
            check_types(entry["test"], {"unit": str, **dict.fromkeys(TEST_COUNTS, int)})
        settings = entry.get("settings") or {}
        check_types(settings, {}, {"truncated": dict, "unscored": int, "test": int})
        check_types(settings.get("truncated") or {}, {}, {"test": int})
        lost = {"truncated": (settings.get("truncated") or {}).get("test"), "unscored": settings.get("unscored")}
        counts = {name: (entry.get("test") or {}).get(name) for name in TEST_COUNTS}
        for name, value in {**lost, **counts, "test": settings.get("test")}.items():
            _check_number(value, f"{task}.{name}")
        for metric, value in (entry.get("chance") or {}).items():
            _check_number(value, f"{task}.chance.{metric}")
        regimes = {regime: entry.get(regime) for regime in (*REGIMES, "delta", "source", "oracle")}
        regimes |= {f"{DEV}{regime}": found for regime, found in (entry.get("dev") or {}).items()}
        for regime, found in regimes.items():
            for metric, score in (found or {}).items():
                check_types(score, {"seeds": list})
                for name in ("mean", "deviation", "low", "high"):
                    _check_number(score.get(name), f"{task}.{regime}.{metric}.{name}")
                for value in (score["mean"], *score["seeds"]):
                    _check_number(value, f"{task}.{regime}.{metric}.seeds", none=score["mean"] is None)
    for part in _WHOLE:
        for name, value in (evaluation.get(part) or {}).items():
            if part != "perplexity" or not isinstance(value, float) or not _LARGEST <= value < math.inf:
                _check_number(value, f"{part}.{name}")
    for measure, names in LAYER_FIGURES.items():
        for layer in evaluation.get(measure) or ():
            check_types(layer, {"layer": int})
            for name in ("layer", *names):
                _check_number(layer.get(name), f"{measure}.{name}")
    _check_points(evaluation.get("projection") or {})


def _check_points(found: Any) -> None:
    """Raise ValueError for points of the measure projection that are not pairs of numbers."""
    if not found:
        return
    check_types(found, {"source": list, "derived": list})
    _check_number(found.get("explained"), "projection.explained")  # null: no pairs, or all rows are equal
    if len(found["source"]) != len(found["derived"]):
        raise ValueError("projection: source and derived are of different lengths")
    for x, y in (*found["source"], *found["derived"]):
        for value in (x, y):
            _check_number(value, "projection", none=False)


def _check_groups(label: str, task: UntunedTask, entry: Mapping[str, Any]) -> None:
    """Raise ValueError for the groups of a task without fine-tuning that the report cannot show."""
    check_types(entry, {"groups": list})
    for group in shown_groups(entry):
        check_types(group, {"by": str, "name": str, "items": int, **dict.fromkeys(SIDES, dict)})
        for side, figure in product(SIDES, (task.headline, "low", "high")):
            _check_number(group[side].get(figure), f"{label}.{side}.{figure}", none=False)


def _check_number(value: Any, name: str, *, none: bool = True) -> None:
    if value is None and none:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise ValueError(f"{name} is {short(value)}, not a number")
