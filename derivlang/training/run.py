"""A run, from a source to a model: prepare its inputs, train the model, write the folder.

The same command with `resume` continues from the last checkpoint and gives the model of an uninterrupted run. It raises
an error for other settings or other data.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.version import __version__
from derivlang.formats.progress import stage
from derivlang.pipeline import Pipeline
from derivlang.sources.find import SourceRequest
from derivlang.training import checkpoint, folder
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.languages import check_pipeline
from derivlang.training.loader import Loader, open_streams
from derivlang.training.loop import train
from derivlang.training.masking import LanguageIds
from derivlang.training.memory import check_step
from derivlang.training.model import ModelConfig, set_tie
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.processes import processes
from derivlang.training.settings import Duration, LogSettings, TrainingSettings, Where
from derivlang.training.streams.base import Material

# Raise it when the same settings and data give another model.
RULE_VERSION = 2


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for warnings and for what begins, and the settings of logging."""

    warn: Callable[[str], None] = lambda message: None
    say: Callable[[str], None] = lambda message: None
    watch: LogSettings = field(default_factory=LogSettings)


def pretrain(
    settings: TrainingSettings,
    request: SourceRequest,
    where: Where,
    *,
    duration: Duration = Duration(),
    design: ModelConfig | None = None,
    resume: bool = False,
    force: bool = False,
    talk: Callbacks = Callbacks(),
) -> dict[str, Any]:
    """Pre-train a model. After any error, `resume` can continue from the run's folder.

    Return {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint"}.
    Raise DerivlangError if an objective lacks what it needs, the folder is taken, settings or data differ from those of
    the resumed run, the loss becomes NaN or infinite, or the disk is full.
    """
    design = design or ModelConfig.read(settings.model)
    objective = read_objective(settings.objective)
    settings = replace(settings, objective=str(objective), spec=str(Pipeline.parse(settings.spec)))
    _check(settings, objective, design)
    run, ranks = where.run, processes()
    main = ranks.is_main_process
    if not main:  # silent, but logs and saves at the same steps, where processes wait for each other
        talk = Callbacks(watch=replace(talk.watch, logged=LogSettings().logged, tensorboard=None))
    with ranks.main_process_first():  # the others reuse what it has made
        before = folder.taken(run, resume=resume, force=force) if main else folder.read(run)
        prepared = prepare_data(settings, request, where, talk.warn, talk.say)
        found = {need.name: need.prepare(prepared) for need in objective.needs()}
        streams = open_streams(objective, Material(settings, prepared.languages, prepared.encoded, where.pairs, found))
        context = Context(LanguageIds.of(prepared.languages), settings.mask, found)
        loader = Loader(streams, objective, context, settings.seed)
        settings = replace(settings, steps=_steps(settings, duration, loader))
        facts = {one.stream.name: one.source.facts() for one in streams}
        fingerprint = _fingerprint(settings, design, prepared, facts)
        if before is not None:
            _same(before, settings, prepared, fingerprint, facts, run)
            if before["status"] == "done" and before.get("result"):
                return before["result"]  # type: ignore[no-any-return]
        begin = checkpoint.newest(run, talk.warn) if before is not None else None
        if begin is not None and begin.fingerprint != fingerprint:
            raise StoreError(
                "belongs to another run", where=str(begin.folder), fix="give another folder", id="other-run"
            )
        if begin is not None:
            talk.say(f"resuming from step {begin.step:,}")
        longest = max(settings.seq_len, *(one.source.length for one in streams))
        lm = _model(settings, design, prepared, begin, longest)
        parameters = sum({p.data_ptr(): p.numel() for p in lm.parameters()}.values())
        record = _record(settings, design, prepared, fingerprint, parameters) | {"reading": reading_of(request)}
        record["streams"] = {
            one.stream.name: {"rows_per_step": one.size, "length": one.source.length, **facts[one.stream.name]}
            for one in streams
        }

        def probe(rows: int) -> Loader:
            some = (replace(one, size=-(-one.size * rows // settings.batch_size)) for one in streams)
            return Loader(tuple(some), objective, context, settings.seed)

        if ranks.device.type == "cpu":
            check_step(settings, lm, objective, probe, world=ranks.num_processes, goes_on=begin is not None)
        earlier = [] if before is None else before.get("environments") or []
        record["environments"] = _distinct([*earlier, environment()])
        if main:
            if before is None:
                folder.clear(run)
            folder.begin(run, prepared, record)

    def loader_of(rank: int, world: int) -> Loader:
        parts = settings.accumulate * world
        if settings.batch_size % parts:
            raise UsageError(
                f"{settings.batch_size} rows cannot be divided into {parts} equal micro-batches",
                where="--batch-size",
                id="bad-value",
            )
        # every micro-batch has a row of each stream
        enough = tuple(replace(one, size=max(one.size, parts)) for one in streams)
        return Loader(enough, objective, context, settings.seed, settings.accumulate, rank, world)

    try:
        with stage("training", "steps", settings.steps):
            found = train(
                run, settings, lm, objective, loader_of, fingerprint=fingerprint, begin=begin, watch=talk.watch
            )
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
        "fingerprint": fingerprint,
    }
    if main:
        folder.finish(run, settings.steps)
        done = {"step": settings.steps, "tokens": result["tokens"], "seconds": result["seconds"]}
        weights = checkpoint.hash_of_weights(run / checkpoint.MODEL)
        folder.write(run, {**record, **done, "weights": weights, "status": "done", "result": result})
    return result


def record_of(settings: TrainingSettings) -> dict[str, Any]:
    """Settings as run.json keeps them; their spec means the same to later versions."""
    return asdict(settings) | {"spec": Pipeline.parse(settings.spec).stored}


def reading_of(request: SourceRequest) -> dict[str, Any]:
    """Return the options for reading a source as in run.json: a request without its name and data folder."""
    return {name: value for name, value in asdict(request).items() if name not in ("source", "data_dir")}


def environment() -> dict[str, Any]:
    """Return what a model's weights depend on besides settings and data: libraries, device, threads."""
    import torch
    import transformers

    return {
        "derivlang": __version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "processes": int(processes().num_processes),
    }


def _distinct(environments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each environment once, in the order of training."""
    return [one for place, one in enumerate(environments) if one not in environments[:place]]


def _model(
    settings: TrainingSettings, design: ModelConfig, prepared: Prepared, begin: Checkpoint | None, longest: int
) -> Any:
    """Return the model of a checkpoint, or a new one for rows of `longest` sub-words."""
    if begin is None:
        size, marks = prepared.languages.size, prepared.data.marks
        ids, seed = settings.language_ids, settings.seed
        return design.build(size, longest, marks, tie=settings.tie, language_ids=ids, seed=seed)
    lm = begin.load_model()
    set_tie(lm, settings.tie)
    return lm


def _check(settings: TrainingSettings, objective: Objective, design: ModelConfig) -> None:
    """UsageError for what can be known before anything is made."""
    check_pipeline(Pipeline.parse(settings.spec))
    if settings.language_ids and not design.token_types:
        raise UsageError(
            f"the model {settings.model} ({design.type}) has no token types for language ids",
            where="--language-ids",
            fix="use RoBERTa or BERT, or leave it out",
            id="no-token-types",
        )
    for need in objective.needs():
        need.check(settings)


def _steps(settings: TrainingSettings, duration: Duration, loader: Loader) -> int:
    """Return the number of steps of the whole run. A number of sub-words counts those of all streams."""
    if duration.tokens is not None:
        return max(1, round(duration.tokens / loader.subwords_per_step))
    if duration.epochs is not None:
        return max(1, round(duration.epochs * loader.steps_per_epoch))
    return duration.steps or settings.steps


def _fingerprint(
    settings: TrainingSettings, design: ModelConfig, prepared: Prepared, streams: dict[str, dict[str, Any]]
) -> str:
    """Return 16 hex digits of everything that the model depends on."""
    parts = (
        record_of(settings),
        {"type": design.type, "fields": dict(design.fields), "std": design.embedding_std},
        [prepared.encoded[length].fingerprint for length in sorted(prepared.encoded)],
        prepared.pairs.sha256,
        [facts.get("sha256") for facts in streams.values()],
        RULE_VERSION,
    )
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _same(
    before: dict[str, Any],
    settings: TrainingSettings,
    prepared: Prepared,
    fingerprint: str,
    streams: dict[str, dict[str, Any]],
    run: Path,
) -> None:
    """Raise StoreError if the run to resume had other settings or data."""
    if before["fingerprint"] == fingerprint:
        return
    now = record_of(settings)
    other = [name for name, value in now.items() if before["settings"].get(name) != value]
    if other:
        name = other[0]
        what = f"{name.replace('_', '-')} was {before['settings'].get(name)!r}, and is now {now[name]!r}"
    elif before.get("data") != prepared.data.fingerprint:
        what = f"its data was {before.get('data')}, and is now {prepared.data.fingerprint}"
    elif (before.get("dictionary") or {}).get("sha256") != prepared.pairs.sha256:
        what = f"its dictionary was not {prepared.dictionary}"
    elif any((before.get("streams") or {}).get(n, {}).get("sha256") != f.get("sha256") for n, f in streams.items()):
        what = "its sentence pairs were others"
    else:
        what = f"the config of the model {settings.model}, or derivlang's rules, have changed since"
    raise StoreError(
        f"is another run: {what}",
        where=str(run),
        fix="give the same command as before, or another folder",
        id="other-run",
    )


def _record(
    settings: TrainingSettings, design: ModelConfig, prepared: Prepared, fingerprint: str, parameters: int
) -> dict[str, Any]:
    return {
        "format": folder.FORMAT,
        "derivlang": __version__,
        "status": "training",
        "source": settings.source,
        "spec": Pipeline.parse(settings.spec).stored,
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
        "fingerprint": fingerprint,
        "settings": record_of(settings),
    }
