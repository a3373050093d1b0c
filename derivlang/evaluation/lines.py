"""Scores as lines of text, for the command line. All follows from columns and rows: no task or measure has a rule.

    pos: epochs 10, lr 2e-05, train 12,544, test 2,077; of test cut 3, labels 25,094
      SUP       accuracy   61.2 %  ± 0.5 over 3 seeds  (chance 17.0 %)
      ZS        accuracy   40.3 %  ± 1.2 over 3 seeds  (chance 17.0 %)
      SUP - ZS  accuracy   20.9 %  ± 1.3 over 3 seeds
      pos.accuracy|set:UD EWT#5f0c3a91|split:test|units:32 documents|ft_seeds:1-3|step:20|derivlang:0.1
    links, layer 0: AER by argmax 89.3 %, AER by itermax 88.0 %

Numbers are means over fine-tuning seeds with their standard deviation; intervals need several runs and are the
report's. The last line of each set is its signature (`signature.py`): what a score depends on besides the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.messages import counted
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import Float64
from derivlang.evaluation.scores import counts_of
from derivlang.evaluation.signature import seeds_told, set_told, signature_line, units_told

_TUNED = {"sup": "SUP", "zs": "ZS", "cs": "CS", "delta": "SUP - ZS", "source": "ZS, on the source",
          "oracle": "ZS, dev oracle"}  # fmt: skip
_Place = tuple[str, str, str, int | None]  # regime, group, metric, layer


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A score by fine-tuning seed. row: the first one. counts: int64[U, k], of the first one; None without units."""

    column: Column
    row: Mapping[str, Any]
    seeds: tuple[int, ...]
    values: Float64
    counts: Int64 | None

    @classmethod
    def of(cls, column: Column, rows: Sequence[Mapping[str, Any]]) -> _Found:
        counts = rows[0]["counts"] if column.formula else None
        return cls(
            column,
            rows[0],
            tuple(row["ft_seed"] for row in rows if row["ft_seed"] is not None),
            np.array([row["value"] for row in rows]),
            None if counts is None else counts_of(column.formula, counts),
        )

    @property
    def value(self) -> str:
        """The mean."""
        return _number(self.column, float(self.values.mean()))

    @property
    def deviation(self) -> str:
        """The standard deviation over fine-tuning seeds; "" of one."""
        n = len(self.values)
        return f"± {self.values.std(ddof=1):.1f} over {n} seeds" if n > 1 else ""


def lines(
    columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table, record: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the lines that `evaluate` prints.

    columns: records of those of each task and measure, by its label. scores: their rows, of one run and step. record:
    the content of evaluation.json (`results.py`).
    """
    for label, found in _read(columns, scores):
        entry = record["tasks" if label in record["tasks"] else "measures"][label]
        yield from _lines(label, found, entry, record["signature"])


def short_lines(columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table) -> Iterator[str]:
    """Yield the headline of each task and measure, of the last layer, in each language or regime."""
    for label, found in _read(columns, scores):
        main = next((one.column for one in found.values() if one.column.headline), next(iter(found.values())).column)
        last = {
            place[0]: (place, one) for place, one in found.items()
            if one.column == main and not place[1] and place[0] != "chance"
        }  # fmt: skip
        if "sup" in last or "zs" in last:
            last = {regime: last[regime] for regime in ("sup", "zs", "cs") if regime in last}
        told = [f"{_where(place, one)} {one.value}".strip() for place, one in last.values()]
        yield f"{label} {main.shown} {', '.join(told)}"


def _read(
    columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table
) -> Iterator[tuple[str, dict[_Place, _Found]]]:
    """Yield each label with its scores by place, in the order of its columns; those on dev are left out."""
    rows = scores.drop_columns(["counts"]).to_pylist()
    by_place: dict[tuple[str, _Place], list[dict[str, Any]]] = {}
    for row, counts in zip(rows, scores["counts"], strict=True):
        if row["split"] != "dev":
            place = row["regime"], row["group"], row["metric"], row["layer"]
            numbers = counts.values.to_numpy() if counts.is_valid else None
            by_place.setdefault((row["task"], place), []).append(row | {"counts": numbers})
    for label, records in columns.items():
        found = {
            place: _Found.of(column, some) for column in (Column(**record) for record in records)
            for (task, place), some in by_place.items() if task == label and place[2] == column.name
        }  # fmt: skip
        if found:
            yield label, found


def _lines(
    label: str, found: Mapping[_Place, _Found], entry: Mapping[str, Any], signature: Mapping[str, Any]
) -> Iterator[str]:
    of_test = f"; of test {', '.join(_settings(entry['test']))}" if entry.get("test") else ""
    yield f"{label}: {', '.join(_settings(entry['settings']))}{of_test}".rstrip()
    for layer in sorted({place[3] for place in found if place[3] is not None}):
        told = [
            f"{one.column.shown} {one.value}{_chance(found, place)}"
            for place, one in found.items() if place[3] == layer and place[0] != "chance"
        ]  # fmt: skip
        yield f"{label}, layer {layer}: {', '.join(told)}"
    rows = []
    for place, one in _whole(found).items():
        chance = "" if place[0] == "delta" else _chance(found, place)
        of = "" if one.counts is None or not place[1] else counted(int(one.counts.any(axis=1).sum()), one.row["unit"])
        score = "  ".join(filter(None, (f"{one.value:>9}", one.deviation + chance, of)))
        rows.append((_where(place, one), one.column.shown, score))
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for *names, score in rows:
        text = "  ".join(f"{name:<{n}}" for name, n in zip(names, widths, strict=True) if n)
        yield f"  {text}  {score}".rstrip()
    alike: dict[str, tuple[dict[str, Any], dict[str, None]]] = {}
    for (regime, group, metric, _), one in found.items():
        if one.row["set"] and regime != "chance" and not group:
            parts = _parts(one, entry["settings"], signature)
            alike.setdefault(str(parts), (parts, {}))[1][metric] = None
    for parts, metrics in alike.values():
        name = f"{label}.{','.join(metrics)}"
        yield f"  {signature_line(name, parts)}"


def _whole(found: Mapping[_Place, _Found]) -> dict[_Place, _Found]:
    """Return the scores without layers, with SUP - ZS, in the order of regimes, groups last.

    Of groups, the headline alone; of those that a column of the set names, the groups of the first column.
    """
    named = next((place[1].partition("=")[0] for place in found if "=" in place[1]), "")
    whole = {
        place: one for place, one in found.items()
        if place[0] != "chance" and place[3] is None
        and (not place[1] or (one.column.headline and place[1].partition("=")[0] in (named, place[1])))
    }  # fmt: skip
    for (regime, *_), one in list(whole.items()):
        place = "", "", one.column.name, None
        other = whole.get(("zs", *place[1:])) if regime == "sup" else None
        if other is not None and other.seeds == one.seeds:
            whole["delta", *place[1:]] = replace(one, values=one.values - other.values)
    order = list(_TUNED) if any(one.seeds for one in whole.values()) else []
    return dict(
        sorted(
            whole.items(), key=lambda item: (order.index(item[0][0]) if item[0][0] in order else 0, bool(item[0][1]))
        )
    )


def _where(place: _Place, one: _Found) -> str:
    regime = _TUNED.get(place[0], place[0]) if one.seeds else place[0]
    return ", ".join(filter(None, (regime, place[1])))


def _chance(found: Mapping[_Place, _Found], place: _Place) -> str:
    """What a guess reaches, in brackets: in this group, or in all of the set."""
    _, group, metric, layer = place
    guesses = [found.get(("chance", some, metric, n)) for some in (group, "") for n in (layer, None)]
    guess = next(filter(None, guesses), None)
    return f" (chance {guess.value})" if guess else ""


def _parts(one: _Found, settings: Mapping[str, Any], signature: Mapping[str, Any]) -> dict[str, list[object]]:
    """Return what a score depends on, besides the run and the task: the parts of its signature."""
    row = one.row
    return {
        "set": [set_told(row["set"], row["set_hash"])],
        "split": [row["split"]],
        "units": [units_told(0 if one.counts is None else len(one.counts), row["unit"])],
        "word": [settings.get("word")],
        "ft_seeds": [seeds_told(one.seeds)],
        "step": [signature["steps"]],
        "derivlang": [signature["derivlang"]],
    }


def _settings(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{name.replace('_', ' ')} {f'{value:,}' if type(value) is int else value}"


def _number(column: Column, value: float) -> str:
    """A value with its unit; a number of things, which has no counts, as it is."""
    whole = not column.formula and not column.over and value == round(value) if math.isfinite(value) else False
    return f"{value:,.0f}" if whole else f"{value:z,.1f} {column.unit}".rstrip() if math.isfinite(value) else "NaN"
