"""`derivlang evaluate`: fine-tuning and measures of a run, into its folder.

    cell = (task, regime, seed)     RUN/evaluation/TASK.REGIME.SEED.npz: per-sentence counts of each metric on test
    RUN/evaluation.json             what all finished cells and measures say (docs/training.md)

SUP is fine-tuned and tested on the derived language; ZS is fine-tuned on the source and tested on the derived. Both on
the same derived test sentences, with the same examples and the same order of them; the dev set of the language that is
fine-tuned on chooses the epoch, so that ZS sees no derived label. Scores on the derived dev set, which published tables
hold, are told apart. A finished cell of the same settings, data and weights is not made again: an evaluation that was
interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from derivlang.core.arrays import Int64
from derivlang.core.errors import StoreError, UsageError, unknown
from derivlang.engine.batches import Source
from derivlang.engine.make import Events
from derivlang.evaluation.cell import Cell, forget
from derivlang.evaluation.contextual import contextual
from derivlang.evaluation.embeddings import alignment
from derivlang.evaluation.heldout import Heldout
from derivlang.evaluation.metrics import METRICS, Metric
from derivlang.evaluation.perplexity import perplexity
from derivlang.evaluation.resample import difference, summary
from derivlang.evaluation.sets import Sets
from derivlang.evaluation.tasks import MAX_LENGTH, REGIMES, SPLITS, Regime, Task
from derivlang.evaluation.trained import Trained
from derivlang.sources.find import Request, find
from derivlang.store.export import writing
from derivlang.training.devices import device_of
from derivlang.training.needs import require_torch
from derivlang.training.processes import use_threads

if TYPE_CHECKING:
    import torch

Measure = Literal["alignment", "contextual", "perplexity"]
MEASURES: tuple[Measure, ...] = ("alignment", "contextual", "perplexity")
RESULT = "evaluation.json"


@dataclass(frozen=True, slots=True)
class Options:
    """What to evaluate. tasks, regimes, measures: any may be empty. seeds: of fine-tuning, 1 … seeds.

    pairs: sentences for the contextual measure; sentences: for perplexity. device: as torch names it; None: a GPU where
    there is one. threads: of the processor, as of `pretrain`. parser, parses: as of `make`, for orders that need trees.
    force: make finished cells again.
    """

    tasks: tuple[Task, ...] = ()
    regimes: tuple[Regime, ...] = REGIMES
    seeds: int = 3
    measures: tuple[Measure, ...] = MEASURES
    pairs: int = 500
    sentences: int = 2000
    data_dir: Path | None = None
    device: str | None = None
    threads: int | None = None
    parser: str | None = None
    parses: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        for name in ("seeds", "pairs", "sentences"):
            if getattr(self, name) < 1:
                raise UsageError(f"{getattr(self, name)} is none", where=f"--{name}", fix="1 or more", id="bad-value")
        twice = {task.file_name for task in self.tasks}
        if len(twice) < len(self.tasks):
            raise UsageError("a task is named twice", where="--task", id="bad-value")


@dataclass(frozen=True, slots=True)
class Progress:
    """What an evaluation tells: warnings; what begins, of how many steps; each step done."""

    warn: Callable[[str], None] = lambda message: None
    start: Callable[[str, int], None] = lambda what, total: None
    step: Callable[[], None] = lambda: None


def evaluate(folder: Path, options: Options, progress: Progress | None = None) -> dict[str, Any]:
    """Evaluate a run and write its `evaluation.json`, which is returned; DerivlangError where something does not fit.

    Results of other tasks and measures that the folder holds stay, if they are of the same weights.
    """
    require_torch()
    progress = progress or Progress()
    trained = Trained.load(folder)
    device = device_of(options.device)
    use_threads(options.threads, trained.config.hidden_size)
    result = _stored(trained)
    for measure, found in _measures(trained, device, options, progress):
        result[measure] = found
        _write(trained, result)
        progress.step()
    for task in options.tasks:
        result["tasks"][task.name] = _task(trained, device, task, options, progress)
        _write(trained, result)
    return result


def measure_of(name: str) -> Measure:
    """alignment, contextual or perplexity; UsageError with near names."""
    for measure in MEASURES:
        if name == measure:
            return measure
    raise unknown("measure", name, MEASURES)


# What is there, and what is written


def _stored(trained: Trained) -> dict[str, Any]:
    """The folder's evaluation, if it is of this run as it is now; else an empty one."""
    path = trained.folder / RESULT
    signature = trained.signature
    fresh = {"signature": signature, "tasks": {}}
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        same = found["signature"] == signature and isinstance(found["tasks"], dict)
    except FileNotFoundError:
        return fresh
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(
            "is no evaluation that derivlang can read", where=str(path), fix="take it away; finished cells are kept",
            id="evaluation",
        ) from None  # fmt: skip
    return found if same else fresh


def _write(trained: Trained, result: dict[str, Any]) -> None:
    order = ("signature", "tasks", *MEASURES)
    text = json.dumps({name: result[name] for name in order if name in result}, ensure_ascii=False, indent=1)
    with writing(trained.folder / RESULT) as stream:
        stream.write(f"{text}\n".encode())


# Measures


def _measures(
    trained: Trained, device: torch.device, options: Options, progress: Progress
) -> Iterator[tuple[Measure, Any]]:
    """Each measure as it is done."""
    if not options.measures:
        return
    model = trained.masked_lm(device)
    progress.start("measures", len(options.measures))
    if "alignment" in options.measures:
        yield "alignment", alignment(trained, model)
    if options.measures != ("alignment",):
        text = _heldout(trained, options, progress)
    if "contextual" in options.measures:
        encoder = replace(model, module=model.module.base_model)
        yield "contextual", contextual(encoder, text.first(options.pairs))
    if "perplexity" in options.measures and trained.has_lm_head:
        yield "perplexity", perplexity(model, text.first(options.sentences))
    elif "perplexity" in options.measures:
        progress.warn("the model has no head that predicts words: there is no perplexity")


def _heldout(trained: Trained, options: Options, progress: Progress) -> Heldout:
    request = _request(trained.facts["source"], options, trained.facts.get("reading"))
    splits = find(request).splits
    split = next((s for s in ("validation", "test") if s in splits), splits[0])
    source = _open(trained, request, (split,), options, progress)
    longest = min(trained.longest, MAX_LENGTH)
    return Heldout.read(source, split, trained.languages, max(options.pairs, options.sentences), longest)


# Tasks


def _task(trained: Trained, device: torch.device, task: Task, options: Options, progress: Progress) -> dict[str, Any]:
    """The entry of a task: its settings and the scores of the regimes whose cells are all there."""
    task = _fitted(task, trained)
    request = _request(task.name, options)
    sets = Sets.read(trained.languages, task, lambda splits: _open(trained, request, splits, options, progress))
    seeds = range(1, options.seeds + 1)

    def cell(regime: Regime, seed: int) -> Cell:
        return Cell(trained, task, regime, seed, sets.key)

    for regime in options.regimes:
        for seed in seeds:
            if options.force or cell(regime, seed).counts() is None:
                progress.start(f"{task.name} {regime} {seed}", task.settings.batches(sets.train.n_rows))
                cell(regime, seed).make(sets, device, progress.step)
    forget(trained, task, sets.key)
    sizes = {name: getattr(sets, name) for name in SPLITS}
    entry: dict[str, Any] = {
        "settings": {
            "source": task.source,
            **{k: v for k, v in asdict(task.settings).items() if not k.endswith("_examples")},
            **{name: found.n_rows for name, found in sizes.items()},
            "truncated": {name: int(found.truncated.sum()) for name, found in sizes.items()},
            "unscored": sets.test.unscored,
        }
    }
    by_regime: dict[Regime, list[dict[str, Int64]]] = {}
    for regime in REGIMES:
        counts = [found for seed in seeds if (found := cell(regime, seed).counts()) is not None]
        if len(counts) == len(seeds):
            by_regime[regime] = counts
    entry |= _scores(by_regime, METRICS[task.kind])
    if "zs" in by_regime:
        entry["source"] = _scores({"zs": by_regime["zs"]}, METRICS[task.kind], "source_")["zs"]
    entry["dev"] = _scores(by_regime, METRICS[task.kind], "dev_")
    return entry


def _scores(
    cells: Mapping[Regime, list[dict[str, Int64]]], metrics: tuple[Metric, ...], prefix: str = ""
) -> dict[str, dict[str, Any]]:
    """SCOREs by regime and metric, of counts whose names begin so; with both regimes their difference, too."""
    found = {
        str(regime): {m.name: summary([c[prefix + m.name] for c in kept], m.score) for m in metrics}
        for regime, kept in cells.items()
    }
    if len(cells) == len(REGIMES):
        found["delta"] = {
            m.name: difference(
                [c[prefix + m.name] for c in cells["sup"]], [c[prefix + m.name] for c in cells["zs"]], m.score
            )
            for m in metrics
        }
    return found


def _fitted(task: Task, trained: Trained) -> Task:
    """The task with rows that the model takes: a published length is lowered, one that was asked for refused."""
    longest = trained.longest
    if task.settings.max_length <= longest:
        return task
    if task.settings.max_length == MAX_LENGTH:
        return task.with_settings(max_length=longest)
    raise UsageError(
        f"the model takes rows of at most {longest} sub-words", where="--max-length", fix="a lower one", id="bad-value"
    )


def _request(name: str, options: Options, reading: dict[str, Any] | None = None) -> Request:
    """A source by name. reading: how the run read its text, of run.json."""
    found: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in (reading or {}).items()
    }
    return Request(name, options.data_dir, **found)


def _open(trained: Trained, request: Request, splits: tuple[str, ...], options: Options, progress: Progress) -> Source:
    return Source.open(
        trained.languages.pipeline,
        request,
        splits=splits,
        parser=options.parser,
        parses=options.parses,
        events=Events(progress.warn, lambda tasks: progress.start("parsing", tasks), lambda result: progress.step()),
    )
