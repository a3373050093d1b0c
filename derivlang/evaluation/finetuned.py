"""The fine-tunings of a task: a cell for each regime and seed, and the score of a guess.

SUP is fine-tuned and tested on the derived language, ZS is fine-tuned on the source and tested on the derived language.
CS is fine-tuned on mixed pairs and tested on the derived language: each pair is replaced by two, one with its first
side derived and its second in the source language, one the reverse, and both are in one batch (PPA, Pan et al. 2021,
§2.3). All use the same examples in the same order and the same derived test sentences. The dev set of the fine-tuning
language chooses the epoch (CS: the derived dev set), so ZS sees no derived label. Scores on the derived dev set,
which published tables use, are reported separately. A finished cell of the same settings, data and weights is not made
again, so an interrupted evaluation resumes with the next cell.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.evaluation import results
from derivlang.evaluation.cell import FinetuneCell, forget
from derivlang.evaluation.encoded import OpenedRun
from derivlang.evaluation.finetune_settings import REGIMES, SPLITS, Regime
from derivlang.evaluation.scores import read_part, write_part
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.sources import digest_of
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.store.record import check_same, difference, digest
from derivlang.training.languages import SOURCE

_UNSUITED = {  # why a regime does not suit a target's own set
    "sup": "the target's own set has no train and dev for sup",
    "cs": "cs mixes sides of sets that are derived, not of a set in each language",
}


def finetuned(
    task: Task, run: OpenedRun, others: Sequence[OpenedRun], before: Mapping[str, Any], warn: Callable[[str], None]
) -> dict[str, Any]:
    """Return the entry of a task with fine-tuning: settings, and files of the regimes whose cells are finished.

    others: the run on other targets. before: the record that was there, as of `results.stored`. warn: called for a
    regime that lacks some of its cells, and for a cell that is made again as its file was changed.
    """
    trained, options, sets = run.trained, run.options, run.text.sets_of(task)
    cells = {regime: _cells(run, task, sets, regime) for regime in REGIMES}
    settings = _settings(task, task.own.get(trained.target_name), run.text.sources_of(task), sets)
    damaged = _damaged(trained, before["tasks"].get(task.label), settings)
    to_make = []
    for cell in (cell for regime in _regimes(task, sets, options, warn) for cell in cells[regime]):
        what = damaged.pop(cell.path.name, None)
        if cell.path in run.made:
            continue
        if what:
            warn(f"{cell.path} {what} since it was evaluated; the fine-tuning is made again")
        if what or _is_wanted(cell, options):
            to_make.append(cell)
    beside = [list(_alike(cell, sets, others)) for cell in to_make]
    # One stage for all of them, so that its bar says when the task is done.
    n_rows = sum(cell.n_rows(sets, alike) for cell, alike in zip(to_make, beside, strict=True))
    with stage(f"{task.name}, {len(to_make)} fine-tunings", "rows", n_rows):
        for cell, alike in zip(to_make, beside, strict=True):
            cell.make(sets, run.device, alike)
    forget(trained, task, sets.key, sets.words)
    finished = [cell for regime in REGIMES for cell in _finished(cells[regime], damaged, warn)]
    return results.entry_of(
        settings,
        [*(cell.path for cell in finished), _chance(task, sets, trained)],
        [cell.predictions for cell in finished if cell.has_predictions()],
        sets.told_of_test,
    )


def check_settings(run: OpenedRun, record: Mapping[str, Any]) -> None:
    """Raise StoreError for a task that was fine-tuned with other settings: its results would be replaced.

    record: that was there, as of `results.stored`.
    """
    for task in run.tasks:
        entry = record["tasks"].get(task.label)
        if entry is None or not isinstance(task, Task) or run.options.force:
            continue
        for told in _settings_in(run.trained.cells / name for name in entry[results.SCORES]):
            check_same(
                told,
                {**dict.fromkeys(told), **task.settings.record()},
                f"{task.label} was fine-tuned with other settings",
                where=str(run.trained.results),
                fix="give the same settings, or --force to replace these results",
                id="stale-evaluation",
            )


def _settings_in(paths: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of fine-tunings. Files of chance levels have none; damaged ones are made again."""
    for path in paths:
        with suppress(StoreError):
            facts, _ = read_part(path)
            if "settings" in facts:
                yield facts["settings"]


def _cells(run: OpenedRun, task: Task, sets: Sets, regime: Regime) -> list[FinetuneCell]:
    """Return the cells of a regime, one for each seed."""
    seeds = range(1, run.options.seeds + 1)
    return [FinetuneCell(run.trained, task, regime, seed, sets.key, sets.words) for seed in seeds]


def _regimes(task: Task, sets: Sets, options: EvaluateOptions, warn: Callable[[str], None]) -> Sequence[Regime]:
    """Return the regimes of a task: on a target's own set, those that it has the splits for.

    warn: called with what is left out. Raise UsageError if nothing is left.
    """
    if sets.ours is None:
        return options.regimes
    has_sup = bool(sets.train.n_rows and sets.dev.n_rows)
    some = [regime for regime in options.regimes if regime == "zs" or (regime == "sup" and has_sup)]
    left = [f"{task.name}: {_UNSUITED[regime]}" for regime in options.regimes if regime not in some]
    if not some:
        raise UsageError("; ".join(left), where="--regime", fix="give --regime zs", id="no-set")
    for why in left:
        warn(f"{why}, which is left out")
    return some


def _is_wanted(cell: FinetuneCell, options: EvaluateOptions) -> bool:
    """Return whether a cell has to be made: it, or its predictions, are missing, or all are made again."""
    return options.force or not cell.facts or (options.predictions and not cell.has_predictions())


def _alike(cell: FinetuneCell, sets: Sets, others: Sequence[OpenedRun]) -> Iterator[tuple[FinetuneCell, Sets]]:
    """Yield the wanted cells of other targets, with their sets, that a fine-tuning on the source is the same for."""
    for run in others if cell.regime == "zs" else ():
        for task in run.tasks:
            if not isinstance(task, Task) or task != cell.task:
                continue
            own = run.text.sets_of(task)
            other = _cells(run, task, own, "zs")[cell.seed - 1]
            if sets.learns_as(own) and other.path not in run.made and _is_wanted(other, run.options):
                run.made.add(other.path)
                yield other, own


def _damaged(trained: PretrainedRun, entry: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a task's results of these settings that were changed since, and what is wrong with them.

    entry: of the task in the record that was there. Files of other settings are left out: a stopped evaluation has
    not recorded its files yet.
    """
    if entry is None or difference(entry["settings"], settings):
        return {}
    return dict(results.damages(trained.cells, {"tasks": {"": entry}, "measures": {}}))


def _finished(
    cells: Sequence[FinetuneCell], damaged: Container[str], warn: Callable[[str], None]
) -> Sequence[FinetuneCell]:
    """Return the cells of a regime if all of them are finished, else none. Warn if some are.

    damaged: names of files that were changed.
    """
    n_done = sum(bool(cell.facts) and cell.path.name not in damaged for cell in cells)
    if n_done == len(cells):
        return cells
    if n_done:
        label, regime = cells[0].task.label, cells[0].regime
        told = f"{label} has no score of {regime}, as {n_done} of {len(cells)} fine-tunings are there"
        warn(f"{told}: --regime {regime} makes the others")
    return ()


def _chance(task: Task, sets: Sets, trained: PretrainedRun) -> Path:
    """Write the scores of a guess on the test set, and return their file."""
    train = sets.train.derived if sets.train.n_rows else sets.of(SOURCE).train.source
    counts = task.chance(train, sets.test.derived, sets.test.classes)
    path = trained.cells / f"{task.file_name}.chance.parquet"
    write_part(path, {"derivlang": __version__}, task.label, task.columns, sets.scores("test", counts, "chance"))
    return path


def _settings(task: Task, own: Task | None, sources: Sequence[Source], sets: Sets) -> dict[str, Any]:
    """Return what the record says of a task: its sets, its fine-tuning, and the numbers of rows.

    own: the task on the target's own set, None without one.
    Sets that are named by a relative path have the hash of their files, since such a path does not identify a set.
    """
    names = [*task.sources, *(own.sources if own is not None else ())]
    corpora = (source.corpus for source in sources)
    by_path = [corpus for name, corpus in zip(names, corpora, strict=True) if "/" in name and corpus.format != "hub"]
    return {
        "source": "+".join(map(short_name, names)),
        **({"data": digest([digest_of(corpus) for corpus in by_path])} if by_path else {}),
        **({"word": task.told_word} if task.word else {}),
        **{name: value for name, value in task.settings.record().items() if not name.endswith("_examples")},
        **{name: getattr(sets if name == "test" else sets.of(SOURCE), name).n_rows for name in SPLITS},
        **({"own_train": sets.train.n_rows} if own is not None else {}),
    }
