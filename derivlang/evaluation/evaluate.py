"""`derivlang evaluate`: fine-tune and measure a run, and write the results into its folder.

    cell = (task, regime, seed)     RUN/evaluation/TASK.REGIME.SEED.parquet, with TASK.REGIME.SEED.predictions.parquet
    measure, task without fine-tuning, chance of a task         RUN/evaluation/NAME.parquet, TASK.chance.parquet
    RUN/evaluation.json             the record of all finished cells and measures (`results.py`)

For a checkpoint, RUN@STEP, both are elsewhere (`trained.py`).

SUP is fine-tuned and tested on the derived language, ZS is fine-tuned on the source and tested on the derived language.
CS is fine-tuned on mixed pairs and tested on the derived language: each pair is replaced by two, one with its first
side derived and its second in the source language, one the reverse, and both are in one batch (PPA, Pan et al. 2021,
§2.3). All use the same examples in the same order and the same derived test sentences. The dev set of the fine-tuning
language chooses the epoch (CS: that of the derived one), so ZS sees no derived label. Scores on the derived dev set,
which published tables use, are reported separately. A finished cell of the same settings, data and weights is not made
again, so an interrupted evaluation resumes with the next cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.core.version import __version__
from derivlang.engine.batches import Source
from derivlang.engine.events import Events
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.evaluation import results
from derivlang.evaluation.cell import FinetuneCell, forget
from derivlang.evaluation.finetune_settings import MAX_LENGTH, REGIMES, SPLITS
from derivlang.evaluation.heldout import Heldout, check_files
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import write_part
from derivlang.evaluation.sets import Sets, check_sources
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.evaluation.tasks.base import PairTask, Task
from derivlang.evaluation.tasks.named import NamedTask, short_name
from derivlang.evaluation.tasks.registry import tuned_tasks
from derivlang.evaluation.tasks.untuned import UntunedTask
from derivlang.evaluation.trained import PretrainedRun
from derivlang.formats.progress import stage
from derivlang.parsing.device import device_of
from derivlang.sources.corpus import Corpus
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.folders import sweep
from derivlang.store.listing import file_hash
from derivlang.store.record import difference, digest
from derivlang.training.languages import TextLanguages
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.texts import SCRIPT_HINT
from derivlang.training.processes import use_threads
from derivlang.training.run_folder import RUN


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """What was evaluated. record: the content of evaluation.json. scores: the rows of what was asked (`scores.py`).

    columns: records of those of each task and measure that was asked for, by its label.
    """

    record: dict[str, Any]
    scores: pa.Table
    columns: dict[str, list[dict[str, Any]]]

    def entry(self, label: str) -> dict[str, Any]:
        """Return what the record has of a task or measure."""
        (found,) = (self.record[kind][label] for kind in results.KINDS if label in self.record[kind])
        return dict(found)


def evaluate(
    folder: Path, options: EvaluateOptions, events: Events | None = None, *, step: int | None = None
) -> Evaluated:
    """Evaluate a run, or its checkpoint of a step, and write the files of its results.

    Results of other tasks and measures are kept. Raise StoreError if they are of other weights, unless `options.force`
    replaces them, and DerivlangError if something does not fit; then no model has been trained.
    """
    events = events or Events()
    trained = PretrainedRun.load(folder, step, events.warn)
    check_mixed(options)
    for task in options.tasks:
        _check_model(trained, task)
    device = device_of(options.device)
    use_threads(options.threads, trained.config.hidden_size)
    sweep(trained.folder)
    sweep(trained.cells)
    result = results.stored(trained, force=options.force, drop=True)
    evaluation = Evaluation(trained, options, device, events, result)
    labels = [task.label for task in options.tasks]
    sources = {task.label: evaluation.sources(task) for task in options.tasks}
    for name, entry in evaluation.measures():
        labels.append(name)
        result = results.add(trained, "measures", name, entry, force=options.force)
    for task in options.tasks:
        if isinstance(task, UntunedTask):
            entry = evaluation.untuned(task, *sources[task.label])
        else:
            assert isinstance(task, Task)
            entry = evaluation.tuned(task, sources[task.label])
        result = results.add(trained, "tasks", task.label, entry, force=options.force)
    return Evaluated(result, *results.scores_of(trained.cells, result, labels))


def _check_model(trained: PretrainedRun, task: NamedTask) -> None:
    """Raise UsageError if the model cannot do the task."""
    if isinstance(task, UntunedTask):
        if not trained.has_lm_head:
            raise UsageError(
                f"the model of {trained.folder} has no language-model head, which {task.kind} needs",
                where="--task",
                fix="leave it out",
                id="no-head",
            )
    elif trained.causal:
        raise UsageError(
            f"fine-tuning needs an encoder, but the model of {trained.folder} is causal ({trained.config.model_type})",
            where="--task",
            fix="leave it out; --task blimp:FILE and --measure perplexity,surprisal suit causal models",
            id="causal-model",
        )


def check_mixed(options: EvaluateOptions) -> None:
    """Raise UsageError for the regime cs if a fine-tuned task has no mixed pairs, or if two do not fit into a batch."""
    tuned = [task for task in options.tasks if isinstance(task, Task)]
    for task in tuned if "cs" in options.regimes else ():
        if not isinstance(task, PairTask):
            names = ", ".join(sorted(name for name, found in tuned_tasks().items() if issubclass(found, PairTask)))
            raise UsageError(
                f"cs mixes the two sides of pairs, which {task.kind} does not have",
                where="--regime",
                fix=f"leave out cs, or evaluate apart the tasks that have pairs: {names}",
                id="no-pairs",
            )
        if task.settings.batch_size % 2:
            raise UsageError(
                f"cs puts the two mixed pairs of an example into one batch; got {task.settings.batch_size}",
                where="--batch-size",
                fix="give an even number",
                id="bad-value",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """An evaluation of a run. It writes files of scores, and returns the entries of the record.

    stored: the record before, as of `results.stored`.
    """

    trained: PretrainedRun
    options: EvaluateOptions
    device: torch.device
    events: Events
    stored: Mapping[str, Any]

    def measures(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the name of each measure with its entry, once its scores are written."""
        trained, options, warn = self.trained, self.options, self.events.warn
        if not options.measures:
            return
        model = trained.language_model(self.device)
        source = short_name(str(trained.facts["source"]))
        of_sets = trained.folder, trained.languages, source, self._heldout, options.pairs, options.sentences
        sets = MeasureSets(*of_sets, trained.cells)
        for name in options.measures:
            measure = MEASURES.find(name)
            if measure.needs_head and not trained.has_lm_head:
                warn(f"the model has no language-model head, so there is no {name}")
                continue
            if measure.needs_causal and not (trained.causal and trained.has_lm_head):
                warn(f"{name} needs a causal language model, so there is none of this {trained.config.model_type}")
                continue
            if measure.needs_twin and not trained.languages.has_twin:
                warn(f"{name} needs a tokenizer with a twin, so there is none of this checkpoint")
                continue
            with stage(name, None):
                found = list(measure.measure(model, sets))
            path = trained.cells / f"{name}.parquet"
            write_part(path, {"derivlang": __version__, "weights": trained.weights}, name, measure.columns, found)
            settings: dict[str, Any] = {option: getattr(options, option) for option in measure.reads}
            if settings:
                settings |= {"length": self._longest, "split": sets.text.split}
            yield name, results.entry_of(settings, [path], [trained.cells / file for file in measure.files])

    def sources(self, task: NamedTask) -> list[Source]:
        """Return the sources of a task, which have what it needs. Raise DerivlangError for others."""
        if isinstance(task, UntunedTask):
            request = request_of(task.source, self.options, {"texts": list(task.texts)})
            try:
                corpus = find(request)
            except UsageError as error:
                if error.id not in ("unused-option", "no-columns"):
                    raise
                raise DataError(
                    f"has no columns {' and '.join(task.texts)}",
                    where=task.source,
                    fix="give JSON lines with these fields, or a TSV file with a header that names them",
                    id="unknown-column",
                ) from None
            task.check(corpus)  # before it may be parsed: a set of parses has no lines for messages
            return [self._open(request, ())]
        assert isinstance(task, Task)
        splits = [tuple(SPLITS.values())] if len(task.sources) == 1 else [("train", "validation"), ()]
        names = zip(task.sources, splits, strict=True)
        sources = [self._open(request_of(name, self.options), wanted) for name, wanted in names]
        check_sources(task, [source.corpus for source in sources])
        return sources

    def untuned(self, task: UntunedTask, source: Source) -> dict[str, Any]:
        """Return the entry of a task without fine-tuning, once its scores are written."""
        trained = self.trained
        settings, scores = task.score(trained.language_model(self.device), trained.languages, source, trained.longest)
        path = trained.cells / f"{task.file_name}.parquet"
        write_part(path, {"derivlang": __version__, "weights": trained.weights}, task.label, task.columns, scores)
        told = {"source": short_name(*task.sets), "data": _digest_of(source.corpus), **settings}
        return results.entry_of(told, [path])

    def tuned(self, task: Task, sources: Sequence[Source]) -> dict[str, Any]:
        """Return the entry of a task with fine-tuning: settings, and files of the regimes whose cells are finished."""
        trained, options = self.trained, self.options
        task = _fitted(task, trained)
        with stage(f"reading {task.name}"):
            asked = {"mixed": "cs" in options.regimes, "predictions": options.predictions}
            sets = Sets.read(trained.languages, task, sources, **asked)
        seeds = range(1, options.seeds + 1)
        cells = {
            regime: [FinetuneCell(trained, task, regime, seed, sets.key, sets.words) for seed in seeds]
            for regime in REGIMES
        }
        settings = {
            "source": "+".join(map(short_name, task.sources)),
            **_data_of(task, sources),
            **({"word": task.word} if task.word else {}),
            **{name: value for name, value in task.settings.record().items() if not name.endswith("_examples")},
            **{name: getattr(sets, name).n_rows for name in SPLITS},
        }
        damaged = self._damaged(task.label, settings)
        for regime in options.regimes:
            for cell in cells[regime]:
                if what := damaged.pop(cell.path.name, None):
                    self.events.warn(f"{cell.path} {what} since it was evaluated; the fine-tuning is made again")
                if options.force or what or not cell.facts or (options.predictions and not cell.has_predictions()):
                    with stage(f"{task.name} {regime} {cell.seed}", "rows", cell.n_rows(sets)):
                        cell.make(sets, self.device)
        forget(trained, task, sets.key, sets.words)
        paths: list[Path] = []
        predictions: list[Path] = []
        for regime, wanted in cells.items():
            done = [cell for cell in wanted if cell.facts and cell.path.name not in damaged]
            if len(done) == len(wanted):
                paths += [cell.path for cell in done]
                predictions += [cell.predictions for cell in done if cell.has_predictions()]
            elif done:
                told = f"{task.label} has no score of {regime}, as {len(done)} of {len(wanted)} fine-tunings are there"
                self.events.warn(f"{told}: --regime {regime} makes the others")
        paths.append(self._chance(task, sets))
        return results.entry_of(settings, paths, predictions, sets.told_of_test)

    def _damaged(self, label: str, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the files of a task's results of these settings that were changed since, and what is wrong with them.

        Files of other settings are left out: those of a stopped evaluation are not in the record yet.
        """
        entry = self.stored["tasks"].get(label)
        if entry is None or difference(entry["settings"], settings):
            return {}
        return dict(results.damages(self.trained.cells, {"tasks": {label: entry}, "measures": {}}))

    def _chance(self, task: Task, sets: Sets) -> Path:
        """Write the scores of a guess on the test set, and return their file."""
        counts = task.chance(sets.train.derived, sets.test.derived, sets.test.classes)
        path = self.trained.cells / f"{task.file_name}.chance.parquet"
        write_part(path, {"derivlang": __version__}, task.label, task.columns, sets.scores("test", counts, "chance"))
        return path

    @property
    def _longest(self) -> int:
        """The maximum length of held-out sentences."""
        return min(self.trained.longest, self.options.heldout_length or MAX_LENGTH)

    def _heldout(self) -> Heldout:
        """Return the held-out text of the run's source, with a warning if the model hardly knows it."""
        trained, options, languages = self.trained, self.options, self.trained.languages
        request = request_of(trained.facts["source"], options, trained.facts.get("reading"))
        corpus = find(request)
        split = corpus.heldout
        files = source_files(Job(corpus, encoding=request.encoding), [split])
        check_files(trained.facts.get("heldout_files"), files, f"the source of {trained.folder}")
        if split == corpus.splits[0] and "checkpoint" not in trained.facts:
            self.events.warn(
                f"{corpus.name} has no held-out split: the sentences are those of {split}, which the run was trained on"
            )
        source = self._open(request, (split,))
        with stage("reading held-out text"):
            text = Heldout.read(source, split, languages, max(options.pairs, options.sentences), self._longest)
        if isinstance(languages, TextLanguages):
            share = languages.unknown_percent(text.derived.ids)
            tokenizer = f"the tokenizer of {languages.tokenizer.folder}"
            if told := unknown_warning(share, "the derived language", tokenizer, SCRIPT_HINT):
                self.events.warn(told)
        return text

    def _open(self, request: SourceRequest, splits: tuple[str, ...]) -> Source:
        self.trained.check_pipeline()
        pipeline, parser, parses = self.trained.languages.pipeline, self.options.parser, self.options.parses
        try:
            return Source.open(pipeline, request, splits=splits, parser=parser, parses=parses, events=self.events)
        except UsageError as error:
            if error.id != "no-columns":
                raise
            fix = "give the file a header row with the names of its columns"  # this command has no --column-names
            raise DataError(error.what, where=error.where, fix=fix, id=error.id) from None


def _data_of(task: Task, sources: Sequence[Source]) -> dict[str, str]:
    """Return {"data": hash of the files} of sets that are named by a relative path, which is no name for a set."""
    paths = [
        s.corpus for name, s in zip(task.sources, sources, strict=True) if "/" in name and s.corpus.format != "hub"
    ]
    return {"data": digest([_digest_of(corpus) for corpus in paths])} if paths else {}


def _digest_of(corpus: Corpus) -> str:
    """Return 16 hex digits of the files of a corpus."""
    return digest([file_hash(part.path) for part in corpus.parts])


def _fitted(task: Task, trained: PretrainedRun) -> Task:
    """Return the task with rows that fit into the model.

    The published length is lowered if necessary. Raise UsageError for a length that the user gave.
    """
    longest = trained.longest
    if task.settings.max_length <= longest:
        return task
    if task.settings.max_length == task.defaults.max_length:
        return task.with_settings(max_length=longest)
    raise UsageError(
        f"the model takes rows of at most {longest} sub-words", where="--max-length", fix="lower it", id="bad-value"
    )


def request_of(name: str, options: EvaluateOptions, reading: dict[str, Any] | None = None) -> SourceRequest:
    """Return the request of a source by name. reading: the options with which the run read its text, from run.json."""
    found: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in (reading or {}).items()
    }
    with parse_errors(f"{RUN}: reading", "way to read a source", error=StoreError, id="run"):
        return SourceRequest(name, options.data_dir, **found)
