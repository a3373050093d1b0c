"""Scores as lines of text, for the command line. All follows from columns and rows: no task or measure has a rule.

    pos: epochs 10, lr 2e-05, train 12,544, test 2,077; the test set has 3 rows cut, 25,094 labels
      SUP       accuracy   61.2 %  ± 0.5 over 3 seeds  (chance 17.0 %)
      ZS        accuracy   40.3 %  ± 1.2 over 3 seeds  (chance 17.0 %)
      SUP - ZS  accuracy   20.9 %  ± 1.3 over 3 seeds
      pos.accuracy|set:UD EWT#5f0c3a91|split:test|units:32 documents|ft_seeds:1-3|step:20|derivlang:0.1
    links, layer 0: AER by argmax 89.3 %, AER by itermax 88.0 %

Numbers are means over fine-tuning seeds with their standard deviation; intervals need several runs and are the
report's. The last line of each set is its signature, as sacrebleu's is (Post 2018): what a score depends on besides the
run. A report has the signature of all runs of a section, where what differs among them is listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.messages import counted
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import Float64
from derivlang.evaluation.scores import counts_of

_TUNED = {"sup": "SUP", "zs": "ZS", "cs": "CS", "delta": "SUP - ZS", "source": "ZS, on the source",
          "oracle": "ZS, dev oracle"}  # fmt: skip
CHANCE = "chance"


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """A score of one run: its mean over fine-tuning seeds. row: the first seed's row."""

    column: Column
    regime: str
    row: Mapping[str, Any]
    seeds: tuple[int, ...]
    values: Float64

    @property
    def group(self) -> str:
        return str(self.row["group"])

    @property
    def where(self) -> str:
        """The regime and the group, for people."""
        regime = _TUNED.get(self.regime, self.regime) if self.seeds else self.regime
        return ", ".join(filter(None, (regime, self.group)))

    @property
    def value(self) -> str:
        return _number(self.column, float(self.values.mean()))

    @property
    def deviation(self) -> str:
        """The standard deviation over fine-tuning seeds; "" of one."""
        n = len(self.values)
        return f"± {self.values.std(ddof=1):.1f} over {n} seeds" if n > 1 else ""

    @property
    def counts(self) -> Int64:
        """int64[U, k]; no rows of a score without units."""
        known = self.column.formula and self.row["counts"].is_valid
        return counts_of(self.column.formula, self.row["counts"].values if known else ())


def lines(
    columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table, record: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the lines that `evaluate` prints.

    columns: records of the columns of each task and measure, by its label. scores: their rows, of one run and step.
    record: the content of evaluation.json (`results.py`).
    """
    for label, means in _read(columns, scores):
        entry = record["tasks" if label in record["tasks"] else "measures"][label]
        yield from _lines(label, means, entry, record["signature"])


def short_lines(columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table) -> Iterator[str]:
    """Yield the headline of each task and measure, of the last layer, in each language or regime."""
    for label, means in _read(columns, scores):
        main = next((one.column for one in means if one.column.headline), means[0].column)
        last = {one.regime: one for one in means if one.column == main and not one.group and one.regime != CHANCE}
        if "sup" in last or "zs" in last:
            last = {regime: last[regime] for regime in ("sup", "zs", "cs") if regime in last}
        yield f"{label} {main.shown} {', '.join(f'{one.where} {one.value}'.strip() for one in last.values())}"


def _read(columns: Mapping[str, Sequence[Mapping[str, Any]]], scores: pa.Table) -> Iterator[tuple[str, list[_Mean]]]:
    """Yield each label with its scores, in the order of its columns; those on dev are left out."""
    seeds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row, counts in zip(scores.drop_columns(["counts"]).to_pylist(), scores["counts"], strict=True):
        if row["split"] != "dev":
            place = tuple(row[name] for name in ("task", "metric", "regime", "group", "layer"))
            seeds.setdefault(place, []).append(row | {"counts": counts})
    for label, records in columns.items():
        means = [
            _Mean(
                column,
                rows[0]["regime"],
                rows[0],
                tuple(row["ft_seed"] for row in rows if row["ft_seed"] is not None),
                np.array([row["value"] for row in rows]),
            )
            for column in (Column(**record) for record in records)
            for (task, metric, *_), rows in seeds.items()
            if (task, metric) == (label, column.name)
        ]
        if means:
            yield label, means


_OF_TEST = {  # numbers of the record, in words
    "cut": "rows cut",
    "unscored": "labels without a score",
    "cut_answers": "answers cut off",
    "in_train": "rows also in train",
    "in_whole_train": "rows also in the whole train split",
}


def _lines(label: str, means: Sequence[_Mean], entry: Mapping[str, Any], signature: Mapping[str, Any]) -> Iterator[str]:
    told = (f"{n:,} {_OF_TEST.get(name, name.replace('_', ' '))}" for name, n in (entry.get("test") or {}).items())
    of_test = f"; the test set has {', '.join(told)}" if entry.get("test") else ""
    scored = [one for one in means if one.regime != CHANCE]
    n_read = max((len(one.counts) for one in scored if one.row["unit"] == "sentence"), default=0)
    yield f"{label}: {', '.join(_settings(entry['settings'], n_read))}{of_test}".rstrip()
    for layer in sorted({one.row["layer"] for one in scored} - {None}):
        told = (f"{one.column.shown} {one.value}{_chance(means, one)}" for one in scored if one.row["layer"] == layer)
        yield f"{label}, layer {layer}: {', '.join(told)}"
    rows = []
    for one in _whole(scored):
        chance = "" if one.regime == "delta" else _chance(means, one)
        of = counted(int(one.counts.any(axis=1).sum()), one.row["unit"]) if one.group and len(one.counts) else ""
        score = "  ".join(filter(None, (f"{one.value:>9}", one.deviation + chance, of)))
        rows.append((one.where, one.column.shown, score))
    widths = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
    for *names, score in rows:
        text = "  ".join(f"{name:<{n}}" for name, n in zip(names, widths, strict=True) if n)
        yield f"  {text}  {score}".rstrip()
    alike: dict[str, dict[str, None]] = {}  # the rest of a signature -> the scores that have it
    for one in scored:
        if one.row["set"] and not one.group:
            row = one.row
            parts: dict[str, list[object]] = {  # what a score depends on, besides the run and the task
                "set": [set_told(row["set"], row["set_hash"])],
                "split": [row["split"]],
                "units": [counted(len(one.counts), row["unit"])] if len(one.counts) else [],
                "word": [entry["settings"].get("word")],
                "ft_seeds": [seeds_told(one.seeds)],
                "step": [signature["steps"]],
                "derivlang": [signature["derivlang"]],
            }
            rest = signature_line("", parts)
            alike.setdefault(rest, {})[one.column.name] = None
    for rest, metrics in alike.items():
        yield f"  {label}.{','.join(metrics)}{rest}"


def _whole(scored: Sequence[_Mean]) -> list[_Mean]:
    """Return the scores without layers, with SUP - ZS, in the order of regimes, groups last.

    Of groups, only the headline; if columns of the set name groups, the groups of the first column.
    """
    named = next((one.group.partition("=")[0] for one in scored if "=" in one.group), "")
    whole = [
        one for one in scored
        if one.row["layer"] is None
        and (not one.group or (one.column.headline and one.group.partition("=")[0] in (named, one.group)))
    ]  # fmt: skip
    of_zs = {(one.column.name, one.group, one.seeds): one for one in whole if one.regime == "zs"}
    for one in list(whole):
        other = of_zs.get((one.column.name, one.group, one.seeds))
        if one.regime == "sup" and other is not None:
            whole.append(replace(one, regime="delta", values=one.values - other.values))
    order = {regime: place for place, regime in enumerate(_TUNED)}
    return sorted(whole, key=lambda one: (order.get(one.regime, 0) if one.seeds else 0, bool(one.group)))


def _chance(means: Iterable[_Mean], one: _Mean) -> str:
    """What a guess reaches on the set, in brackets: in this group, or in all of it."""
    guesses = {
        (guess.group, guess.row["layer"]): guess
        for guess in means
        if guess.regime == CHANCE and guess.column == one.column and guess.row["set"] == one.row["set"]
    }
    places = [(group, layer) for group in (one.group, "") for layer in (one.row["layer"], None)]
    return next((f" (chance {guesses[place].value})" for place in places if place in guesses), "")


def _settings(settings: Mapping[str, Any], n_read: int) -> Iterator[str]:
    """Yield settings with their values. n_read: the sentences that were read, 0 if that is not known."""
    for name, value in settings.items():
        if name in ("sentences", "pairs") and 0 < n_read < value:
            yield f"{name} {n_read:,} (at most {value:,})"
        else:
            yield f"{name.replace('_', ' ')} {f'{value:,}' if type(value) is int else value}"


def _number(column: Column, value: float) -> str:
    """A value with its unit; a number of things, which has no counts, as it is."""
    whole = not column.formula and not column.over and value == round(value) if math.isfinite(value) else False
    return f"{value:,.0f}" if whole else f"{value:z,.1f} {column.unit}".rstrip() if math.isfinite(value) else "NaN"


def signature_line(name: str, parts: Mapping[str, Iterable[object]]) -> str:
    """Return the signature of a score: its name, and the values of each part; a part without any is left out."""
    told = {key: ",".join(filter(None, (str(one) for one in some if one is not None))) for key, some in parts.items()}
    return "|".join([name, *(f"{key}:{value}" for key, value in told.items() if value)])


def set_told(name: str, digest: str) -> str:
    """Return the name of a set with the first digits of its hash, if it has one."""
    return f"{name}#{digest[:8]}" if digest else name


def seeds_told(seeds: Iterable[int]) -> str:
    """Return seeds as text: 1, 2, 3 -> "1-3", and 1, 2, 5 -> "1,2,5"."""
    ordered = sorted(set(map(int, seeds)))
    whole = len(ordered) > 1 and ordered == list(range(ordered[0], ordered[-1] + 1))
    return f"{ordered[0]}-{ordered[-1]}" if whole else ",".join(map(str, ordered))
