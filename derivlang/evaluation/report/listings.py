"""Tables that are not in the paper: differences, perplexity and contextual alignment, all scores, all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from derivlang.evaluation.report.cells import (
    ALIGNMENTS,
    EMPTY,
    INTERVALS,
    Row,
    Table,
    TableCell,
    decimal,
    full_cell,
    interval,
    number_cell,
    p_cell,
    runs_cell,
    seeds_note,
    signed,
    titles,
    yes,
)
from derivlang.evaluation.report.checks import LAYER_FIGURES
from derivlang.evaluation.report.columns import regimes_of
from derivlang.evaluation.report.differences import Difference
from derivlang.evaluation.report.runs import Run
from derivlang.evaluation.report.settings import Setting, copies_of
from derivlang.evaluation.report.variants import Language, percent_of
from derivlang.evaluation.tasks.untuned import SIDES, shown_groups


def differences(setting: Setting, found: Sequence[Difference]) -> Table:
    """Return the table of objectives minus MLM. `report.json` has the differences in other metrics."""
    rows = _difference_rows(setting, [one for one in found if one.from_base])
    return _difference_table("differences", "Objectives against MLM", rows)


def other_differences(setting: Setting, found: Sequence[Difference]) -> Table:
    """Return the table of the differences between all other pairs of objectives."""
    rows = _difference_rows(setting, [one for one in found if not one.from_base])
    return _difference_table("other-differences", "Other pairs of objectives", rows)


def _difference_table(id: str, title: str, rows: tuple[Row, ...]) -> Table:
    names = ("points", "p", "by pre-training seed")
    return Table(
        id,
        title,
        "First minus second, in points: the mean over the pre-training seeds that both have, on the same test "
        f"documents. ZS above zero and Δ below zero favour the first. {INTERVALS} p: of no difference, corrected for "
        "all those of this table (Holm); without three seeds there is none.",
        ("Difference", "Language", "Score"),
        (("ZS", names), ("Δ", names), ("", ("runs",))),
        rows,
    )


def _difference_rows(setting: Setting, found: Sequence[Difference]) -> tuple[Row, ...]:
    rows = []
    for (entry, base, column), group in groupby(found, key=lambda one: (one.entry, one.base, one.column)):
        if column in setting.headline:
            by_regime = {one.regime: one for one in group}
            cells = [cell for regime in ("zs", "delta") for cell in _difference_cells(by_regime.get(regime))]
            labels = (f"{entry.label} − {base.label}", entry.language.spec, column.title)
            rows.append(Row(labels, (*cells, runs_cell((*entry.runs, *base.runs)))))
    return tuple(rows)


def _difference_cells(one: Difference | None) -> tuple[TableCell, ...]:
    if one is None:
        return TableCell(), TableCell(), TableCell()
    alone = f"without seed {', '.join(map(str, one.alone))}, which only one has" if one.alone else ""
    if one.found is None:
        return TableCell(EMPTY, "no seed in common", titles(one.runs)), TableCell(), TableCell(EMPTY, alone)
    seeds = ", ".join(f"{seed}: {signed(value)}" for seed, value in one.by_seed.items())
    deviation = "" if one.found.deviation is None else f"± {decimal(one.found.deviation)}"
    return (
        TableCell(signed(one.found.mean), seeds_note(one.found, signed), titles(one.runs)),
        p_cell(one.p),
        TableCell(seeds, ", ".join(filter(None, [deviation, alone]))),
    )


def test_sets(setting: Setting) -> Table:
    """Return the table of what the scores were measured on."""
    rows = []
    for task in setting.tasks:
        for spec, group in groupby(sorted(setting.runs, key=_language), key=_language):
            tested = [run for run in group if run.settings(task)]
            if tested:
                rows.append(Row((task, spec), _test_set_cells(tested, task)))
    return Table(
        "test-sets",
        "Test sets",
        "What intervals draw: documents where a set has them, rows that share a premise or a context, else rows. Runs "
        "that were evaluated by an earlier version have no documents; evaluate them again, which repeats no "
        "fine-tuning. In train: test rows that stand in the training set word for word, in the examples that "
        "fine-tuning took and in all. Cut: test rows longer than a row of the model. Unscored: labels that are cut "
        "off, or of words without sub-words; they count neither as right nor as wrong.",
        ("Task", "Language"),
        (
            ("Test set", ("rows", "drawn")),
            ("In train", ("examples taken", "all")),
            ("Lost", ("cut rows", "unscored labels", "of all, %")),
        ),
        tuple(rows),
    )


def _language(run: Run) -> str:
    return Language.of(run.facts["spec"]).spec


def _test_set_cells(runs: Sequence[Run], task: str) -> tuple[TableCell, ...]:
    """Return the cells of a task; a range where runs differ, as their sub-words do."""
    facts = [run.test_set(task) for run in runs]
    drawn = dict.fromkeys(f"{one['units']:,} {one['unit']}s" if one else "rows, documents not known" for one in facts)
    lost = [run.lost(task) for run in runs]
    shares = [
        100 * some["unscored"] / one["labels"]
        for some, one in zip(lost, facts, strict=True)
        if "unscored" in some and one.get("labels")
    ]
    return (
        _range([run.n_test(task) for run in runs]),
        TableCell(", ".join(drawn)),
        *(_range([one.get(name) for one in facts]) for name in ("in_train", "in_whole_train")),
        *(_range([one.get(name) for one in lost]) for name in ("cut", "unscored")),
        _range(shares, decimal),
    )


def _range(values: Sequence[float | None], write: Callable[[float], str] = "{:,}".format) -> TableCell:
    """Return the smallest and the largest value, once if they are written alike."""
    known = [value for value in values if value is not None]
    if not known:
        return TableCell()
    return TableCell("–".join(dict.fromkeys(write(value) for value in (min(known), max(known)))))


def inside(setting: Setting) -> Table:
    """Return the table of perplexity and the figures by layer."""
    rows = []
    names = tuple(dict.fromkeys(title for titles in LAYER_FIGURES.values() for title in titles.values()))
    for entry in setting.entries:
        for run in entry.runs:
            layers = run.layers()
            sides = [number_cell(run.perplexity(side), run) for side in ("source", "derived")]
            if not layers and all(cell.text == EMPTY for cell in sides):
                continue
            labels = (entry.label, entry.language.spec, run.id)
            for number, layer in enumerate(layers or ({},)):
                found = [number_cell(layer.get(name), run) for name in names]
                told = TableCell(f"{layer['layer']}") if "layer" in layer else TableCell()
                rows.append(Row(labels, (*(sides if not number else (TableCell(""),) * 2), told, *found)))
    return Table(
        "inside",
        "Perplexity and contextual alignment",
        "Perplexity of both languages: of masked sub-words, or of all if the model is causal. By layer, in percent: "
        "words whose nearest word in the other language is their own, sentences whose nearest sentence is their own, "
        "each beside the figure of a guess, and the alignment error rate of links between words.",
        ("Objective", "Language", "Run"),
        (("Perplexity", ("source", "derived")), ("By layer", ("layer", *names))),
        tuple(rows),
    )


def untuned(setting: Setting) -> Table:
    """Return the table of the tasks without fine-tuning."""
    rows = []
    for entry in setting.entries:
        for run in entry.runs:
            for label, task, found in run.untuned():
                for group in shown_groups(found):
                    cells = [
                        TableCell(
                            decimal(group[side][task.headline]),
                            interval(group[side]["low"], group[side]["high"]),
                            run.signature,
                        )
                        for side in SIDES
                    ]
                    chance = number_cell((found.get("chance") or {}).get(task.headline))
                    labels = (entry.label, entry.language.spec, run.id, label, group["name"] or group["by"])
                    rows.append(Row(labels, (*cells, chance, TableCell(f"{group['items']:,}"))))
    return Table(
        "untuned",
        "Tasks without fine-tuning",
        "Minimal pairs: percent of the pairs whose good sentence has the higher log-likelihood (of masked models, "
        "pseudo-log-likelihood); ties count half. In small type: Wilson's 95 % interval over pairs.",
        ("Objective", "Language", "Run", "Task", "Group"),
        (("", (*SIDES, "chance", "number")),),
        tuple(rows),
    )


def every_alignment(setting: Setting) -> Table:
    """Return the table of all figures of embedding alignment of all runs."""
    rows = []
    for entry in setting.entries:
        for run in entry.runs:
            names = [f"{back}{name}{more}" for back, more, _ in _DIRECTIONS for name, _ in ALIGNMENTS]
            cells = [number_cell(run.alignment(name), run) for name in names]
            sizes = [run.alignment(name) for name in ("rows", "rows_heldout")]
            if any(cell.text != EMPTY for cell in cells):
                counts = [TableCell() if size is None else TableCell(f"{size:,.0f}") for size in sizes]
                rows.append(Row((entry.label, entry.language.spec, run.id), (*cells, *counts)))
    kinds = tuple(title for _, title in ALIGNMENTS)
    return Table(
        "alignments",
        "Every figure of embedding alignment",
        "In percent, from the source's rows to the derived language's and back, by word embeddings alone and, if a "
        "model has language embeddings, with these added.",
        ("Objective", "Language", "Run"),
        (*((title, kinds) for _, _, title in _DIRECTIONS), ("Rows", ("all", "held-out"))),
        tuple(rows),
    )


def every_score(setting: Setting) -> Table:
    """Return the table of all metrics of all runs."""
    rows = []
    regimes = (*regimes_of(mixed=setting.mixed), *_MORE_REGIMES)
    for entry in setting.entries:
        for run in entry.runs:
            for column in setting.columns:
                scores = [run.score(column, regime) for regime, _ in regimes]
                if any(scores):
                    labels = (run.id, entry.label, entry.language.spec, column.title)
                    cells = [full_cell(score, run) for score in scores]
                    lost = run.lost(column.task)
                    counts = [_range([lost.get(name)]) for name in ("cut", "unscored")]
                    rows.append(Row(labels, (*cells, number_cell(run.chance(column), run), *counts)))
    return Table(
        "scores",
        "Every score of every run",
        "Mean and deviation over fine-tuning seeds, and (the value of each seed). Between them the 95 % bootstrap "
        "interval over test documents: it is one of this run alone, and says nothing of the objective, as it does not "
        "cover pre-training seeds. ZS on source: fine-tuned and tested on the source. ZS, dev oracle: like ZS, but the "
        "derived dev set chooses the epoch, not the source's. Chance: as in the first table. Cut rows and unscored "
        "labels: of the test set.",
        ("Run", "Objective", "Language", "Score"),
        (("", (*(title for _, title in regimes), "chance", "cut rows", "unscored")),),
        tuple(rows),
    )


def doses(runs: Sequence[Run]) -> Table:
    """Return the table of what the runs were trained on."""
    rows = []
    for run in runs:
        result, pairs = run.facts.get("result") or {}, (run.facts.get("streams") or {}).get("pairs") or {}
        if not result.get("tokens_per_step"):
            continue
        cells = [
            TableCell(f"{result['tokens']:,}"),
            TableCell(", ".join(f"{name} {count:,.0f}" for name, count in result["tokens_per_step"].items())),
            *(number_cell(result.get(name)) for name in ("masked_percent", "translated_percent")),
            number_cell(pairs.get("percent")),
            *(TableCell(f"{pairs[name]:,}" if name in pairs else EMPTY) for name in ("cut_sentences", "short_pairs")),
        ]
        rows.append(Row((run.id, run.facts["objective"]), tuple(cells)))
    return Table(
        "doses",
        "Training text and doses",
        "Sub-words of all streams, without padding. Masked: percent of the sub-words; translated: percent of the "
        "masked ones whose input or label is a translation, both in the last steps. Pairs: percent of the corpus's "
        "sub-words that sentence pairs reach, the number of sentences that were cut to fit half a row, and the number "
        "of pairs that were left out, since a side is empty or too short for the objective.",
        ("Run", "Objective"),
        (
            ("Sub-words", ("in all", "a step")),
            ("Doses", ("masked", "translated")),
            ("Pairs", ("reach", "cut", "left out")),
        ),
        tuple(rows),
    )


def run_list(runs: Sequence[Run]) -> Table:
    """Return the table of all runs with their signatures."""
    copies = copies_of(runs)
    rows = []
    for run in runs:
        facts, model = run.facts, run.facts["model"]
        state = f"the same as {copies[run.id]}, left out" if run.id in copies else run.state
        dictionary = facts.get("dictionary") or {}
        values = (
            facts["objective"], facts["spec"], facts["source"], model["name"], yes(model.get("tie")),
            f"{facts['steps']:,}", run.seed, _dictionary(dictionary), str(dictionary.get("sha256", ""))[:12],
            _percent(facts.get("parallel")), facts["data"], run.fingerprint,
            run.weights, facts["derivlang"], state, str(run.folder),
        )  # fmt: skip
        rows.append(Row((run.id,), tuple(TableCell(str(value) if value != "" else EMPTY) for value in values)))
    return Table(
        "runs",
        "Runs",
        "The origin of every number above.",
        ("Run",),
        (("", _FACTS),),
        tuple(rows),
    )


def _dictionary(facts: Mapping[str, Any]) -> str:
    return facts.get("file") or " ".join(filter(None, [_percent(facts.get("coverage")), facts.get("by")]))


def _percent(value: Any) -> str:
    share = percent_of(value)
    return "" if share is None else f"{share:g} %"


_DIRECTIONS = (
    ("", "", "To the derived language"), ("reverse_", "", "To the source"),
    ("", "_language", "To the derived, with language embeddings"),
    ("reverse_", "_language", "To the source, with language embeddings"),
)  # fmt: skip
_MORE_REGIMES = (("source", "ZS on source"), ("oracle", "ZS, dev oracle"))
_FACTS = (
    "objective", "spec", "source", "model", "tied", "steps", "seed", "dictionary", "its SHA-256", "parallel", "data",
    "fingerprint", "weights", "derivlang", "state", "folder",
)  # fmt: skip
