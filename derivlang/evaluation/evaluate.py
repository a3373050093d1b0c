"""`derivlang evaluate`: fine-tune and measure a run, and write the results into its folder.

    cell = (task, regime, seed)     RUN/evaluation/TASK.REGIME.SEED.npz: counts of each metric by row of test
    RUN/evaluation/TASK.documents.npz         the document of each row (`documents.py`)
    RUN/evaluation.json             results of all finished cells and measures (docs/reference/runs.md)

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
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Int64
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.parse_errors import parse_errors
from derivlang.engine.batches import Source
from derivlang.engine.events import Events
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.evaluation import results
from derivlang.evaluation.cell import FinetuneCell, forget
from derivlang.evaluation.documents import write_documents
from derivlang.evaluation.finetune_settings import DOCUMENTS, MAX_LENGTH, ORACLE, REGIMES, SPLITS, Regime
from derivlang.evaluation.heldout import Heldout, check_files
from derivlang.evaluation.measures.registry import MEASURES
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.metrics import Metric
from derivlang.evaluation.resample import by_document, difference, summary
from derivlang.evaluation.sets import Sets
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
from derivlang.store.record import digest
from derivlang.training.folder import RUN
from derivlang.training.languages import TextLanguages
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.texts import SCRIPT_HINT
from derivlang.training.processes import use_threads


def evaluate(
    folder: Path, options: EvaluateOptions, events: Events | None = None, *, step: int | None = None
) -> dict[str, Any]:
    """Evaluate a run, or its checkpoint of a step, write the file of its results and return its content.

    Results of other tasks and measures are kept. Raise StoreError if they are of other weights, unless `options.force`
    replaces them, and DerivlangError if something does not fit.
    """
    events = events or Events()
    trained = PretrainedRun.load(folder, step, events.warn)
    check_mixed(options)
    for task in options.tasks:
        _check(trained, task)
    device = device_of(options.device)
    use_threads(options.threads, trained.config.hidden_size)
    sweep(trained.folder)
    sweep(trained.cells)
    result = results.stored(trained, force=options.force, drop=True)
    for measure, found, read in _measures(trained, device, options, events):
        parts = {"heldout": {measure: read}} if read else {}
        result = results.add(trained, {measure: found}, parts, force=options.force)
    for task in options.tasks:
        if isinstance(task, UntunedTask):
            entry = _untuned(trained, device, task, options, events)
        else:
            assert isinstance(task, Task)
            entry = _tuned(trained, device, task, options, events)
        result = results.add(trained, {}, {"tasks": {task.label: entry}}, force=options.force)
    return result


def _check(trained: PretrainedRun, task: NamedTask) -> None:
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
    for task in options.tasks if "cs" in options.regimes else ():
        if isinstance(task, Task):
            _check_mixed(task)


def _check_mixed(task: Task) -> None:
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


# Measures


def _measures(
    trained: PretrainedRun, device: torch.device, options: EvaluateOptions, events: Events
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the name of each measure with its result, and what it read of the held-out text, {} for nothing."""
    if not options.measures:
        return
    measures = [(name, MEASURES.find(name)) for name in options.measures]
    model = trained.language_model(device)

    of_text: dict[str, Any] = {"length": _longest(trained, options)}

    def read() -> Heldout:
        text = _heldout(trained, options, events)
        of_text["split"] = text.split
        return text

    sets = MeasureSets(trained.folder, trained.languages, read, options.pairs, options.sentences, trained.cells)
    for name, measure in measures:
        if measure.needs_head and not trained.has_lm_head:
            events.warn(f"the model has no language-model head, so there is no {name}")
            continue
        if measure.needs_causal and not (trained.causal and trained.has_lm_head):
            events.warn(f"{name} needs a causal language model, so there is none of this {trained.config.model_type}")
            continue
        if measure.needs_twin and not trained.languages.has_twin:
            events.warn(f"{name} needs a tokenizer with a twin, so there is none of this checkpoint")
            continue
        with stage(name, None):
            found = measure.measure(model, sets)
        numbers = {option: getattr(options, option) for option in measure.reads}
        yield name, found, numbers | of_text if numbers else {}


def _heldout(trained: PretrainedRun, options: EvaluateOptions, events: Events) -> Heldout:
    request = request_of(trained.facts["source"], options, trained.facts.get("reading"))
    corpus = find(request)
    split = corpus.heldout
    files = source_files(Job(corpus, encoding=request.encoding), [split])
    check_files(trained.facts.get("heldout_files"), files, f"the source of {trained.folder}")
    if split == corpus.splits[0] and "checkpoint" not in trained.facts:
        events.warn(
            f"{corpus.name} has no held-out split: the sentences are those of {split}, which the run was trained on"
        )
    source = _open(trained, request, (split,), options, events)
    n, longest = max(options.pairs, options.sentences), _longest(trained, options)
    with stage("reading held-out text"):
        text = Heldout.read(source, split, trained.languages, n, longest)
    if isinstance(trained.languages, TextLanguages):
        share = trained.languages.unknown_percent(text.derived.ids)
        tokenizer = f"the tokenizer of {trained.languages.tokenizer.folder}"
        if told := unknown_warning(share, "the derived language", tokenizer, SCRIPT_HINT):
            events.warn(told)
    return text


def _longest(trained: PretrainedRun, options: EvaluateOptions) -> int:
    return min(trained.longest, options.heldout_length or MAX_LENGTH)


# Tasks


def _untuned(
    trained: PretrainedRun, device: torch.device, task: UntunedTask, options: EvaluateOptions, events: Events
) -> dict[str, Any]:
    """Return the entry of a task without fine-tuning."""
    request = request_of(task.source, options, {"texts": list(task.texts)})
    try:
        corpus = find(request)
    except UsageError as error:
        if error.id not in ("unused-option", "no-columns"):
            raise
        raise DataError(
            f"has no columns {' and '.join(task.texts)}",
            where=task.source,
            fix="give JSON lines, or a TSV file with a header, that have them",
            id="unknown-column",
        ) from None
    task.check(corpus)  # before it may be parsed: a set of parses has no lines for messages
    data = _digest_of(corpus)
    source = _open(trained, request, (), options, events)
    entry = task.score(trained.language_model(device), trained.languages, source, trained.longest)
    return {**entry, "settings": {"source": short_name(*task.sets), "data": data, **entry["settings"]}}


def _tuned(
    trained: PretrainedRun, device: torch.device, task: Task, options: EvaluateOptions, events: Events
) -> dict[str, Any]:
    """Return the entry of a task with fine-tuning: settings, and scores of the regimes whose cells are all finished."""
    task = _fitted(task, trained)
    splits = [tuple(SPLITS.values())] if len(task.sources) == 1 else [("train", "validation"), ()]
    sources = [
        _open(trained, request_of(name, options), wanted, options, events)
        for name, wanted in zip(task.sources, splits, strict=True)
    ]
    with stage(f"reading {task.name}"):
        sets = Sets.read(trained.languages, task, sources, mixed="cs" in options.regimes)
    seeds = range(1, options.seeds + 1)

    def cell(regime: Regime, seed: int) -> FinetuneCell:
        return FinetuneCell(trained, task, regime, seed, sets.key, sets.words)

    for regime in options.regimes:
        for seed in seeds:
            if options.force or cell(regime, seed).counts() is None:
                one = cell(regime, seed)
                with stage(f"{task.name} {regime} {seed}", "rows", one.n_rows(sets)):
                    one.make(sets, device)
    forget(trained, task, sets.key, sets.words)
    sizes = {name: getattr(sets, name) for name in SPLITS}
    entry: dict[str, Any] = {
        "settings": {
            "source": "+".join(map(short_name, task.sources)),
            **_data_of(task, sources),
            **{k: v for k, v in task.settings.record().items() if not k.endswith("_examples")},
            **{name: found.n_rows for name, found in sizes.items()},
            "truncated": {name: int(found.truncated.sum()) for name, found in sizes.items()},
            "unscored": sets.test.unscored,
        }
    }
    path = trained.cells / f"{task.file_name}.{DOCUMENTS}"
    documents = write_documents(path, {"test": sets.test.documents, "dev": sets.dev.documents})
    entry["test"] = {
        "unit": sets.unit,
        "units": len(np.unique(sets.test.documents)) if documents["test"] is not None else sets.test.n_rows,
        "labels": len(sets.test.source.gold) + sets.test.unscored,
        "in_train": sets.in_train,
        "in_whole_train": sets.in_whole_train,
    }
    by_regime: dict[Regime, list[dict[str, Int64]]] = {}
    for regime in REGIMES:
        counts = [found for seed in seeds if (found := cell(regime, seed).counts()) is not None]
        if len(counts) == len(seeds):
            by_regime[regime] = counts
        elif counts:
            told = f"{task.label} has no score of {regime}, as {len(counts)} of {len(seeds)} fine-tunings are there"
            events.warn(f"{told}: --regime {regime} makes the others")
    on_test = partial(_scores, metrics=task.metrics, documents=documents["test"])
    entry |= on_test(by_regime)
    if "zs" in by_regime:
        zs: dict[Regime, list[dict[str, Int64]]] = {"zs": by_regime["zs"]}
        entry["source"] = on_test(zs, prefix="source_")["zs"]
        if task.settings.epochs == 1:
            entry["oracle"] = entry["zs"]
        elif all(f"{ORACLE}{task.headline}" in counts for counts in zs["zs"]):  # those of earlier versions have none
            entry["oracle"] = on_test(zs, prefix=ORACLE)["zs"]
    read = [cell(regime, seed).path for regime in by_regime for seed in seeds]
    entry[results.FILES] = results.files_of([*read, path])
    entry["dev"] = _scores(by_regime, task.metrics, documents["dev"], "dev_")
    entry["chance"] = task.chance(sets.train.derived, sets.test.derived, sets.test.classes)
    return entry


def _data_of(task: Task, sources: Sequence[Source]) -> dict[str, str]:
    """Return {"data": hash of the files} of sets that are named by a relative path, which is no name for a set."""
    paths = [
        s.corpus for name, s in zip(task.sources, sources, strict=True) if "/" in name and s.corpus.format != "hub"
    ]
    return {"data": digest([_digest_of(corpus) for corpus in paths])} if paths else {}


def _digest_of(corpus: Corpus) -> str:
    """Return 16 hex digits of the files of a corpus."""
    return digest([sha256(part.path.read_bytes()).hexdigest() for part in corpus.parts])


def _scores(
    cells: Mapping[Regime, list[dict[str, Int64]]],
    metrics: tuple[Metric, ...],
    documents: Int64 | None,
    prefix: str = "",
) -> dict[str, dict[str, Any]]:
    """Return the scores by regime and metric, of counts whose names have this prefix, and Δ if SUP and ZS exist."""

    def counts(regime: Regime, metric: Metric) -> list[Int64]:
        return [by_document(one[prefix + metric.name], documents) for one in cells[regime]]

    found: dict[str, dict[str, Any]] = {
        str(regime): {m.name: summary(counts(regime, m), m.score) for m in metrics} for regime in cells
    }
    if {"sup", "zs"} <= cells.keys():
        found["delta"] = {m.name: difference(counts("sup", m), counts("zs", m), m.score) for m in metrics}
    return found


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


def _open(
    trained: PretrainedRun, request: SourceRequest, splits: tuple[str, ...], options: EvaluateOptions, events: Events
) -> Source:
    trained.check_pipeline()
    pipeline, parser, parses = trained.languages.pipeline, options.parser, options.parses
    try:
        return Source.open(pipeline, request, splits=splits, parser=parser, parses=parses, events=events)
    except UsageError as error:
        if error.id != "no-columns":
            raise
        fix = "give the file a header row with the names of its columns"  # this command has no --column-names
        raise DataError(error.what, where=error.where, fix=fix, id=error.id) from None
