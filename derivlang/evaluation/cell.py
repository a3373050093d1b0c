"""One fine-tuning: of a run, for a task, in a regime, with a seed.

Its scores are in RUN/evaluation/TASK.REGIME.SEED.parquet (`scores.py`): on the derived test set, on the derived dev
set (which published tables use), and for ZS on the source's test set, as the regime `source`. A ZS fine-tuning of
several epochs has the regime `oracle` as well: scores on the derived test set of the epoch that the derived dev set
chooses. The facts of the file say what it was made of. A file of other settings, data or weights, or one that was
changed, is ignored, so an interrupted evaluation resumes with the next cell.

If predictions are asked for, TASK.REGIME.SEED.predictions.parquet has them (`predictions.py`). Its hash is among the
facts, so that other predictions are not taken for those that were scored.

SUP is fine-tuned and tested on the derived language, ZS is fine-tuned on the source and tested on the derived language.
CS is fine-tuned on mixed pairs and tested on the derived language: each pair is replaced by two, one with its first
side derived and its second in the source language, one the reverse, and both are in one batch (PPA, Pan et al. 2021,
§2.3). All use the same examples in the same order and the same derived test sentences. The dev set of the fine-tuning
language chooses the epoch (CS: the derived dev set), so ZS sees no derived label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.evaluation import results
from derivlang.evaluation.encoded import OpenedRun, digest_of
from derivlang.evaluation.examples import Instances
from derivlang.evaluation.finetune import TaskModel, fine_tune, predict
from derivlang.evaluation.finetune_settings import REGIMES, RULES, SPLITS, Regime
from derivlang.evaluation.predictions import write_predictions
from derivlang.evaluation.scores import read_part, write_part
from derivlang.evaluation.set_names import short_name
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import Task
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.store.record import check_same, difference, digest, file_hash
from derivlang.training.languages import DERIVED, SOURCE

Counts = dict[str, Int64]  # of each metric, int64[S, k]
_UNSUITED = {  # why a regime does not suit a target's own set
    "sup": "the target's own set has no train and dev for sup",
    "cs": "cs mixes sides of sets that are derived, not of a set in each language",
}


@dataclass(slots=True, eq=False)
class FinetuneCell:
    """A fine-tuning of a run. sets: of the task.

    While it is made it has, of each epoch, the counts and the score on the derived dev set; and the best epoch there,
    from 1, with its counts on the test set.
    """

    trained: PretrainedRun
    task: Task
    regime: Regime
    seed: int
    sets: Sets
    on_dev: list[Counts] = field(default_factory=list)
    dev_scores: list[float] = field(default_factory=list)
    oracle: tuple[int, Counts] | None = None

    @property
    def path(self) -> Path:
        return self.trained.cells / f"{self.task.file_name}.{self.regime}.{self.seed}.parquet"

    @property
    def key(self) -> str:
        """The digest of everything that its scores depend on."""
        return digest(
            {
                "rules": RULES,
                "weights": self.trained.weights,
                "language_ids": self.trained.language_ids,
                "settings": self.task.settings.record(),
                "regime": self.regime,
                "seed": self.seed,
                "data": self.sets.key,
                "words": self.sets.words,
            }
        )

    @property
    def predictions(self) -> Path:
        return self.path.with_suffix(".predictions.parquet")

    @property
    def facts(self) -> dict[str, Any]:
        """What its file says of it; {} if the file is missing, damaged or of something else."""
        facts = _facts(self.path)
        return facts if facts.get("key") == self.key else {}

    def has_predictions(self) -> bool:
        """Return whether the predictions that were scored are there."""
        told, path = self.facts.get("predictions"), self.predictions
        return told is not None and path.is_file() and told == file_hash(path)

    def is_wanted(self, options: EvaluateOptions) -> bool:
        """Return whether it has to be made: it, or its predictions, are missing, or all are made again."""
        return options.force or not self.facts or (options.predictions and not self.has_predictions())

    @property
    def language(self) -> int:
        """The language of its training and dev sets."""
        return SOURCE if self.regime == "zs" else DERIVED

    @property
    def train(self) -> Instances:
        """The rows to train on: of cs, mixed pairs, two neighbouring rows each."""
        if self.regime == "cs":
            assert self.sets.mixed is not None
            return self.sets.mixed
        return self.sets.of(self.language).train.side(self.language)

    def make(self, device: torch.device, others: Sequence[FinetuneCell]) -> None:
        """Fine-tune, and write each file completely or not at all.

        others: cells of other targets, which this fine-tuning serves, too: it sees the same.
        """
        task, headline, tested = self.task, self.task.headline(), (self, *others)

        def make() -> TaskModel:
            return TaskModel(task, self.trained.encoder(device), len(self.sets.test.classes))

        def dev_score(model: TaskModel) -> float:
            for one in tested:
                one.add_epoch(model)
            if self.language == DERIVED:
                return self.dev_scores[-1]
            return headline.value(self.counted(model, "dev", SOURCE)[0][headline.name])

        together = 2 if self.regime == "cs" else 1
        model, facts = fine_tune(make, self.train, self.language, task.settings, self.seed, dev_score, together)
        for one in tested:
            one.write(model, facts)

    def counted(self, model: TaskModel, split: Literal["dev", "test"], number: int) -> tuple[Counts, Int64]:
        """Return the counts of the task on a split in a language, and the predictions. model: of any target."""
        task, examples = self.task, getattr(self.sets.of(number), split)
        instances = examples.side(number)
        predicted = predict(model, instances, number, self.trained.reader(model.encoder))
        labels = (task.labels(instances, values, examples.classes) for values in (instances.gold, predicted))
        return task.score(*labels), predicted

    def add_epoch(self, model: TaskModel) -> None:
        """Score the derived dev set after an epoch; a target's own set may have none."""
        if not self.sets.dev.n_rows:
            return
        headline, (counts, _) = self.task.headline(), self.counted(model, "dev", DERIVED)
        self.on_dev.append(counts)
        self.dev_scores.append(headline.value(counts[headline.name]))
        is_best = self.dev_scores[-1] > max(self.dev_scores[:-1], default=-math.inf)
        if is_best and self.regime == "zs" and self.task.settings.epochs > 1:
            self.oracle = len(self.dev_scores), self.counted(model, "test", DERIVED)[0]

    def write(self, model: TaskModel, facts: Mapping[str, Any]) -> None:
        """Score the test sets by the model of the chosen epoch, and write the files. facts: of the fine-tuning."""
        sets, task = self.sets, self.task
        told: dict[str, Any] = {"key": self.key, "words": sets.words, "derivlang": __version__}
        told |= {"regime": self.regime, "seed": self.seed, "settings": task.settings.record(), **facts}
        numbers = (DERIVED, SOURCE) if self.regime == "zs" else (DERIVED,)
        on_test = {number: self.counted(model, "test", number) for number in numbers}
        rows = sets.scores("test", on_test[DERIVED][0], self.regime, self.seed)
        if self.on_dev:
            rows += sets.scores("dev", self.on_dev[facts["epoch"] - 1], self.regime, self.seed)
        if SOURCE in on_test:
            rows += sets.of(SOURCE).scores("test", on_test[SOURCE][0], "source", self.seed)
        if self.oracle:
            told["oracle_epoch"], counts = self.oracle
            rows += sets.scores("test", counts, "oracle", self.seed)
        if sets.told:
            gold: list[Any] = []
            predicted: list[Any] = []
            people = {}
            for number, (_, values) in on_test.items():
                own = sets.of(number)
                people[number], side = own.told[number], own.test.side(number)
                for labels, some in ((gold, side.gold), (predicted, values)):
                    labels += task.told(people[number][0], side, some, sets.test.classes)
            told["predictions"] = write_predictions(self.predictions, told, people, gold, predicted)
        write_part(self.path, told, task.label, task.columns, rows)


def finetuned(
    task: Task, run: OpenedRun, others: Sequence[OpenedRun], before: Mapping[str, Any], warn: Callable[[str], None]
) -> dict[str, Any]:
    """Return the entry of a task with fine-tuning: settings, and files of the regimes whose cells are finished.

    others: the run on other targets. before: the record that was there, as of `results.stored`. warn: called for a
    regime that lacks some of its cells, and for a cell that is made again as its file was changed.
    """
    trained, options, sets = run.trained, run.options, run.text.sets_of(task)
    cells = {regime: _cells(run, task, sets, regime) for regime in REGIMES}
    asked = [cell for regime in _regimes(task, sets, options, warn) for cell in cells[regime]]
    settings = _settings(task, task.own.get(trained.target_name), run.text.sources_of(task), sets)
    entry = before["tasks"].get(task.label)
    if entry is not None and not difference(entry["settings"], settings):  # a stopped evaluation has listed no files
        damaged = dict(results.damages(trained.cells, [entry]))
        for cell in (cell for cell in asked if cell.path not in run.made):
            if cell.path.name in damaged:
                warn(f"{cell.path} {damaged[cell.path.name]} since it was evaluated; the fine-tuning is made again")
            for path in (path for path in (cell.path, cell.predictions) if path.name in damaged):
                path.unlink(missing_ok=True)
    to_make = [cell for cell in asked if cell.path not in run.made and cell.is_wanted(options)]
    # One stage for all of them, so that its bar says when the task is done.
    n_rows = sum(task.settings.epochs * cell.train.n_rows for cell in to_make)
    beside = [list(_alike(cell, others)) for cell in to_make]
    with stage(f"{task.name}, {len(to_make)} fine-tunings", "rows", n_rows):
        for cell, alike in zip(to_make, beside, strict=True):
            cell.make(run.device, alike)
    finished = [cell for regime in REGIMES for cell in _finished(cells[regime], warn)]
    return results.entry_of(
        settings,
        [*(cell.path for cell in finished), _chance(task, sets, trained)],
        [cell.predictions for cell in finished if cell.has_predictions()],
        sets.numbers,
    )


def check_settings(run: OpenedRun, record: Mapping[str, Any]) -> None:
    """Raise StoreError for a task that was fine-tuned with other settings: its results would be replaced.

    record: that was there, as of `results.stored`.
    """
    for task in run.options.tasks:
        entry = record["tasks"].get(task.label)
        if entry is None or not isinstance(task, Task) or run.options.force:
            continue
        # Files of chance levels have no settings; damaged ones are made again.
        for told in filter(None, (_facts(run.trained.cells / name).get("settings") for name in entry[results.SCORES])):
            check_same(
                told,
                {**dict.fromkeys(told), **task.settings.record()},
                f"{task.label} was fine-tuned with other settings",
                where=str(run.trained.results),
                fix="give the same settings, or --force to replace these results",
                id="stale-evaluation",
            )


def _facts(path: Path) -> dict[str, Any]:
    """Return the facts of a file of scores; {} if it is missing or damaged."""
    try:
        return read_part(path)[0]
    except StoreError:
        return {}


def _cells(run: OpenedRun, task: Task, sets: Sets, regime: Regime) -> list[FinetuneCell]:
    """Return the cells of a regime, one for each seed."""
    return [FinetuneCell(run.trained, task, regime, seed, sets) for seed in range(1, run.options.seeds + 1)]


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


def _alike(cell: FinetuneCell, others: Sequence[OpenedRun]) -> Iterator[FinetuneCell]:
    """Yield the wanted cells of other targets that a fine-tuning on the source is the same for."""
    for run in others if cell.regime == "zs" else ():
        if cell.task not in run.options.tasks:
            continue
        other = _cells(run, cell.task, run.text.sets_of(cell.task), "zs")[cell.seed - 1]
        if cell.sets.learns_as(other.sets) and other.path not in run.made and other.is_wanted(run.options):
            run.made.add(other.path)
            yield other


def _finished(cells: Sequence[FinetuneCell], warn: Callable[[str], None]) -> Sequence[FinetuneCell]:
    """Return the cells of a regime if all of them are finished, else none. Warn if some are."""
    n_done = sum(bool(cell.facts) for cell in cells)
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
        **({"word": "last" if task.last else task.word} if task.word else {}),
        **{name: value for name, value in task.settings.record().items() if not name.endswith("_examples")},
        **{name: getattr(sets if name == "test" else sets.of(SOURCE), name).n_rows for name in SPLITS},
        **({"own_train": sets.train.n_rows} if own is not None else {}),
    }
