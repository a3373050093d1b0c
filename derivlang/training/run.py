"""A run, from a source to a model: what it starts from is prepared, the model trained, the folder written.

The same command with `resume` goes on from the last checkpoint, and gives the model that an unbroken run gives. It
refuses other settings or other data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import derivlang
from derivlang.core.errors import StoreError, UsageError
from derivlang.pipeline import Pipeline
from derivlang.sources.find import Request
from derivlang.training import checkpoint, folder
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.data import Data
from derivlang.training.languages import check_pipeline
from derivlang.training.loader import Loader
from derivlang.training.loop import Watch, train
from derivlang.training.masking import Vocabulary
from derivlang.training.model import Design, set_tie
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.pairs import PairData
from derivlang.training.prepare import Prepared, Where, prepare_data
from derivlang.training.processes import processes
from derivlang.training.settings import Settings

# Raised when the same settings and data would give another model.
RULE_VERSION = 1


@dataclass(frozen=True, slots=True)
class Duration:
    """How long to train: steps, sub-words, or epochs over both corpora; nothing for the model's default."""

    steps: int | None = None
    tokens: int | None = None
    epochs: float | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    """What a caller may want to know: warnings, steps of the preparation, entries of the log."""

    warn: Callable[[str], None] = lambda message: None
    stage: Callable[[str], None] = lambda message: None
    watch: Watch = field(default_factory=Watch)


def pretrain(
    settings: Settings,
    request: Request,
    where: Where,
    *,
    duration: Duration = Duration(),
    design: Design | None = None,
    resume: bool = False,
    force: bool = False,
    talk: Talk = Talk(),
) -> dict[str, Any]:
    """Pre-train a model; the run's folder is left in a state that `resume` goes on from, whatever happens.

    Returns {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint"}.
    Raises DerivlangError: an objective without what it needs, a folder that is taken, other settings or data than those
    of the run that is to go on, a loss that is no number, a full disk.
    """
    design = design or Design.read(settings.model)
    objective = read_objective(settings.objective)
    settings = replace(settings, objective=str(objective), spec=str(Pipeline.parse(settings.spec)))
    _check(settings, objective, design, duration)
    run, ranks = where.run, processes()
    main = ranks.is_main_process
    if not main:  # it says nothing, but logs and saves when the others do: they wait for each other there
        talk = Talk(watch=replace(talk.watch, progress=Watch().progress, tensorboard=None))
    with ranks.main_process_first():  # the others find what it has made
        before = folder.taken(run, resume=resume, force=force) if main else folder.read(run)
        prepared = prepare_data(settings, request, where, talk.warn, talk.stage)
        settings = replace(settings, steps=_steps(settings, duration, prepared.data))
        print_ = _fingerprint(settings, design, prepared)
        if before is not None:
            _same(before, settings, prepared, print_, run)
            if before["status"] == "done":
                return before["result"]  # type: ignore[no-any-return]
        begin = checkpoint.newest(run, talk.warn) if before is not None else None
        if begin is not None and begin.fingerprint != print_:
            raise StoreError("is of another run", where=str(begin.folder), fix="another folder", id="other-run")
        if begin is not None:
            talk.stage(f"going on from step {begin.step:,}")
        lm = _model(settings, design, prepared, begin)
        parameters = sum({p.data_ptr(): p.numel() for p in lm.parameters()}.values())
        record = _record(settings, design, prepared, print_, parameters) | {"reading": reading_of(request)}
        pairs = _pairs(settings, objective, prepared)
        if pairs is not None:
            record["pairs"] = {"chosen": pairs.chosen, "dropped": pairs.dropped, "instances": pairs.n_instances}
        if main:
            if before is None:
                folder.clear(run)
            folder.begin(run, prepared, record)
    context = Context(Vocabulary.of(prepared.languages), settings.mask, prepared.pairs)

    def loader_of(rank: int, world: int) -> Loader:
        if settings.batch_size % (settings.accumulate * world):
            raise UsageError(
                f"{settings.batch_size} rows are not {settings.accumulate * world} equal parts",
                where="--batch-size",
                id="bad-value",
            )
        return Loader(
            prepared.data, objective, context, settings.seed, settings.batch_size, pairs,
            settings.accumulate, rank, world,
        )  # fmt: skip

    try:
        found = train(run, settings, lm, objective, loader_of, fingerprint=print_, begin=begin, watch=talk.watch)
    except BaseException:
        if main:
            folder.write(run, {**record, **folder.reached(run), "status": "stopped"})
        raise
    result = {
        "out": str(run),
        "steps": settings.steps,
        "tokens": found["subwords"],
        "seconds": found["seconds"],
        "tokens_per_second": round(found["subwords"] / max(found["seconds"], 1e-9)),
        "loss": found.get("loss"),
        "parts": found.get("parts", {}),
        "parameters": parameters,
        "fingerprint": print_,
    }
    if main:
        folder.finish(run, settings.steps)
        done = {"step": settings.steps, "tokens": result["tokens"], "seconds": result["seconds"]}
        folder.write(run, {**record, **done, "status": "done", "result": result})
    return result


def reading_of(request: Request) -> dict[str, Any]:
    """How a source's text is read, as run.json keeps it: all of a request but its name and place."""
    return {name: value for name, value in asdict(request).items() if name not in ("source", "data_dir")}


def _model(settings: Settings, design: Design, prepared: Prepared, begin: Checkpoint | None) -> Any:
    """The model of a checkpoint, or a new one."""
    if begin is None:
        size, marks = prepared.languages.size, prepared.data.marks
        ids, seed = settings.language_ids, settings.seed
        return design.build(size, settings.seq_len, marks, tie=settings.tie, language_ids=ids, seed=seed)
    lm = begin.load_model()
    set_tie(lm, settings.tie)
    return lm


def _pairs(settings: Settings, objective: Objective, prepared: Prepared) -> PairData | None:
    """Sentence pairs, for an objective that needs some."""
    if "pairs" not in objective.requires:
        return None
    reset = bool(getattr(objective, "reset", False))
    return PairData.of(prepared.data, settings.parallel_rate, seed=settings.dictionary_seed, reset=reset)


def _check(settings: Settings, objective: Objective, design: Design, duration: Duration) -> None:
    """UsageError for what can be known before anything is made."""
    check_pipeline(Pipeline.parse(settings.spec))
    _given(duration)
    if settings.language_ids and not design.token_types:
        raise UsageError(
            f"the model {settings.model} ({design.type}) cannot be told languages: it has no token types",
            where="--language-ids",
            fix="take a RoBERTa or BERT, or leave it out",
            id="no-token-types",
        )
    if "language-ids" in objective.requires and not settings.language_ids:
        raise UsageError(
            f"{objective} needs language ids",
            where="--objective",
            fix="a model with token types (roberta-8), with --language-ids",
            id="needs-language-ids",
        )


def _given(duration: Duration) -> None:
    """UsageError for a duration that is none."""
    given = {f"--{name}": value for name, value in asdict(duration).items() if value is not None}
    if len(given) > 1:
        raise UsageError("give one of --steps, --tokens and --epochs", where=" and ".join(given), id="duration")
    for name, value in given.items():
        if not 0 < value < math.inf:
            raise UsageError(f"{value} must be above 0", where=name, id="bad-value")


def _steps(settings: Settings, duration: Duration, data: Data) -> int:
    """Steps of the whole run."""
    if duration.tokens is not None:
        mean = (data.n_subwords + len(data.pieces) - 1 + data.n_instances) / data.n_instances
        return max(1, round(duration.tokens / (mean * settings.batch_size)))
    if duration.epochs is not None:
        return max(1, round(duration.epochs * 2 * data.n_instances / settings.batch_size))
    return duration.steps or settings.steps


def _fingerprint(settings: Settings, design: Design, prepared: Prepared) -> str:
    """16 hex digits of all that the model depends on."""
    parts = (
        settings.to_json(),
        {"type": design.type, "fields": dict(design.fields), "std": design.embedding_std},
        prepared.data.fingerprint,
        prepared.pairs.sha256,
        RULE_VERSION,
    )
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _same(before: dict[str, Any], settings: Settings, prepared: Prepared, print_: str, run: Path) -> None:
    """StoreError where a run that is to go on had other settings or data."""
    if before["fingerprint"] == print_:
        return
    now = settings.to_json()
    other = [name for name, value in now.items() if before["settings"].get(name) != value]
    if other:
        name = other[0]
        what = f"{name.replace('_', '-')} was {before['settings'].get(name)!r}, and is now {now[name]!r}"
    elif before.get("data") != prepared.data.fingerprint:
        what = f"its data was {before.get('data')}, and is now {prepared.data.fingerprint}"
    elif before.get("dictionary", {}).get("sha256") != prepared.pairs.sha256:
        what = f"its dictionary was another than {prepared.dictionary}"
    else:
        what = f"the description of the model {settings.model}, or derivlang's rules, were changed since"
    raise StoreError(
        f"is another run: {what}", where=str(run), fix="the same command as before, or another folder", id="other-run"
    )


def _record(settings: Settings, design: Design, prepared: Prepared, print_: str, parameters: int) -> dict[str, Any]:
    return {
        "format": folder.FORMAT,
        "derivlang": derivlang.__version__,
        "status": "training",
        "source": settings.source,
        "spec": settings.spec,
        "objective": settings.objective,
        "seed": settings.seed,
        "steps": settings.steps,
        "step": 0,
        "tokens": 0,
        "seconds": 0.0,
        "batch_size": settings.batch_size,
        "seq_len": settings.seq_len,
        "model": {
            "name": design.name,
            "type": design.type,
            "parameters": parameters,
            "tie": settings.tie,
            "language_ids": settings.language_ids,
        },
        "dictionary": {
            "coverage": settings.coverage,
            "by": settings.dictionary_by,
            "seed": settings.dictionary_seed,
            "pairs": len(prepared.pairs.pairs),
            "sha256": prepared.pairs.sha256,
        },
        "parallel": settings.parallel,
        "data": prepared.data.fingerprint,
        "fingerprint": print_,
        "settings": settings.to_json(),
    }
