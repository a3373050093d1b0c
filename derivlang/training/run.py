"""A run, from a source to a model: prepare its inputs, train the model, write the folder.

The same command with `resume` continues from the last checkpoint and gives the model of an uninterrupted run. It raises
an error for other settings or other data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.keys import text_key
from derivlang.core.messages import warn
from derivlang.formats.progress import stage
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.twin_folder import trans_of
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.disk import LOCK, held
from derivlang.store.folders import sweep
from derivlang.store.record import digest
from derivlang.training import checkpoint, folder
from derivlang.training.begin import Init, freeze, model_of
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.config import ModelConfig
from derivlang.training.foreign import checkpoint_folder
from derivlang.training.languages import TOKENIZER, check_permutation, is_foreign
from derivlang.training.loader import Loader, OpenStream, open_streams
from derivlang.training.loop import train
from derivlang.training.masking import LanguageIds
from derivlang.training.memory import check_step
from derivlang.training.model import build_model, set_tie
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.prepare import prepare_data
from derivlang.training.prepared import Prepared
from derivlang.training.processes import processes
from derivlang.training.record import RunInputs, environment, levels_of
from derivlang.training.run_files import check_files
from derivlang.training.settings import Duration, LogSettings, Resolved, TrainingSettings, Where
from derivlang.training.streams.base import Material


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for warnings and for what begins, and the settings of logging."""

    warn: Callable[[str], None] = warn
    say: Callable[[str], None] = lambda message: None
    log: LogSettings = field(default_factory=LogSettings)


def pretrain(
    settings: TrainingSettings,
    request: SourceRequest,
    where: Where,
    *,
    duration: Duration = Duration(),
    model_config: ModelConfig | None = None,
    resume: bool = False,
    force: bool = False,
    callbacks: Callbacks = Callbacks(),
) -> dict[str, Any]:
    """Pre-train a model. After any error, `resume` can continue from the run's folder, which is held by one run.

    While another run holds it, the same call waits if it is to `resume`.

    Return {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint",
    "doses"}; doses are those of run.json (doses.py).

    Raise DerivlangError if an objective lacks what it needs, the folder is taken or held, settings or data differ from
    those of the resumed run, the loss becomes NaN or infinite, or the disk is full.
    """
    model_config = model_config or ModelConfig.read(settings.model)
    objective = read_objective(settings.objective)
    run, ranks = where.run, processes()
    main = ranks.is_main_process
    if not main:  # silent, but logs and saves at the same steps, where processes wait for each other
        callbacks = Callbacks(
            lambda message: None, log=replace(callbacks.log, logged=LogSettings().logged, tensorboard=None, wandb=None)
        )
    with ExitStack() as stack:
        if main:  # the others wait for it
            before = folder.taken(run, resume=resume, force=force)  # said at once, not after the other run
            done = before is not None and before["status"] == "done"  # nothing is written then
            plan = digest([settings, request, replace(where, run=Path()), duration, model_config])
            told = f"{settings.objective} of {settings.spec}, seed {settings.seed}"
            if done:
                sweep(run)
            else:
                lock = run / LOCK
                stack.enter_context(
                    held(run, plan, told, callbacks.warn, what="a model in this folder", waits=resume, lock=lock)
                )
        return _pretrain(settings, request, where, duration, model_config, objective, resume, force, callbacks)


def _pretrain(
    settings: TrainingSettings,
    request: SourceRequest,
    where: Where,
    duration: Duration,
    model_config: ModelConfig,
    objective: Objective,
    resume: bool,
    force: bool,
    callbacks: Callbacks,
) -> dict[str, Any]:
    run, ranks = where.run, processes()
    main = ranks.is_main_process
    with ranks.main_process_first():  # the others reuse what it has made
        _check(settings, objective, model_config)
        before = folder.taken(run, resume=resume, force=force) if main else folder.read(run)
        if main and before is not None:  # a file that is missing is written again
            check_files(run, before, missing=False, warn=callbacks.warn)
        init = _init(where, settings, before, causal=objective.causal)
        prepared = prepare(settings, request, where, objective, callbacks, before)
        found = {need.name: need.prepare(prepared) for need in objective.needs()}
        streams = open_streams(objective, Material(settings, prepared.languages, prepared.encoded, where.pairs, found))
        _check_pairs(where, objective, streams)
        context = Context(LanguageIds.of(prepared.languages), settings.mask, found)
        # A run that begins from another one does not see its rows and masks again.
        seed = settings.seed if init is None else int(text_key(f"{settings.seed}|{init.facts['weights']}")) >> 1
        steps = _steps(settings, duration, Loader(streams, objective, context, seed))
        resolved = Resolved(settings, prepared.languages.tokenizer.size, steps)  # a given tokenizer has its own size
        inputs = RunInputs(resolved, objective, model_config, prepared, streams, init, where.pairs)
        fingerprint = inputs.fingerprint
        if before is not None:
            inputs.check_same(before, run)
            if before["status"] == "done" and before.get("result"):
                if main:
                    folder.restore_model(run, before, callbacks.warn)
                return {**before["result"], "doses": before.get("doses", {})}
        begin = checkpoint.newest(run, callbacks.warn) if before is not None else None
        if begin is not None and begin.fingerprint != fingerprint:
            raise StoreError(
                "belongs to another run", where=str(begin.folder), fix="give another folder", id="other-run"
            )
        _check_division(settings, streams, ranks.num_processes)
        if begin is not None:
            callbacks.say(f"resuming from step {begin.step:,}")
        lm = _model(inputs, begin, max(settings.seq_len, *(one.source.length for one in streams)))
        parameters = sum({p.data_ptr(): p.numel() for p in lm.parameters()}.values())
        record = inputs.record(parameters, request)

        def probe(rows: int) -> Loader:
            some = (replace(one, size=-(-one.size * rows // settings.batch_size)) for one in streams)
            return Loader(tuple(some), objective, context, seed)

        if ranks.device.type == "cpu":
            check_step(settings, lm, objective, probe, world=ranks.num_processes, goes_on=begin is not None)
        earlier = [] if before is None else before.get("environments") or []
        if before is not None and prepared.heldout is None:  # the run began where the source was
            record["heldout_files"] = before.get("heldout_files")
        if levels := levels_of(callbacks.log.factors):
            record["factors"] = levels
        record["environments"] = _distinct([*earlier, environment()])
        if main:
            if before is None:
                origins = [where.init or "", settings.embeddings.partition("=")[2]]
                begun = [checkpoint_folder(name) or checkpoint.run_and_step(Path(name))[0] for name in origins if name]
                folder.clear(run, [*prepared.files.values(), *begun], callbacks.warn)
            folder.begin(run, prepared, record)

    def loader_of(rank: int, world: int) -> Loader:
        return Loader(streams, objective, context, seed, settings.accumulate, rank, world)

    try:
        with stage("training", "steps", steps):
            found = train(
                run,
                resolved,
                lm,
                objective,
                loader_of,
                fingerprint=fingerprint,
                begin=begin,
                log_settings=callbacks.log,
            )
    except BaseException:
        if main:
            folder.write(run, {**record, **_reached(run, inputs), "status": "stopped"})
        raise
    result = {
        "out": str(run),
        "steps": steps,
        "tokens": found["subwords"],
        "seconds": found["seconds"],
        "tokens_per_second": round(found["subwords"] / max(found["seconds"], 1e-9)),
        "loss": found.get("loss"),
        "parts": found.get("parts", {}),
        "parameters": parameters,
        "fingerprint": fingerprint,
    }
    doses = inputs.doses(found["counts"], found["subwords"], steps)
    if main:
        folder.finish(run, steps)
        done = {"step": steps, "tokens": result["tokens"], "seconds": result["seconds"], "doses": doses}
        weights = checkpoint.hash_of_weights(run / checkpoint.MODEL)
        folder.write(run, {**record, **done, "weights": weights, "status": "done", "result": result})
    return {**result, "doses": doses}


def _reached(run: Path, inputs: RunInputs) -> dict[str, Any]:
    """Return the last checkpoint of a stopped run, for its record."""
    try:
        last = checkpoint.newest(run, lambda message: None)
    except StoreError:
        last = None
    if last is None:
        return {}
    doses = inputs.doses(last.counts, last.subwords, last.step)
    return {"step": last.step, "tokens": last.subwords, "seconds": last.seconds, "doses": doses}


def prepare(
    settings: TrainingSettings,
    request: SourceRequest,
    where: Where,
    objective: Objective,
    callbacks: Callbacks,
    before: dict[str, Any] | None = None,
) -> Prepared:
    """Return the inputs of a run, with the tokenizer of what it begins from. before: the record of a resumed run.

    Raise DerivlangError if they cannot be made, or if existing ones do not fit.
    """
    where = with_tokenizer(where, settings, before)
    _check_languages(settings, where, objective)
    lengths = objective.row_lengths(settings)
    return prepare_data(settings, request, where, callbacks.warn, callbacks.say, lengths=lengths)


def _distinct(environments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each environment once, in the order of training."""
    return [one for place, one in enumerate(environments) if one not in environments[:place]]


def _check_pairs(where: Where, objective: Objective, streams: tuple[OpenStream, ...]) -> None:
    """Raise UsageError for a file of sentence pairs that no stream has read."""
    if where.pairs is not None and not any("sha256" in one.source.facts() for one in streams):
        raise UsageError(
            f"the rows of {objective.name} are of the corpus alone, so it does not read {where.pairs}",
            where="--pairs",
            fix="leave --pairs out, or give an objective with sentence pairs, e.g. tlm",
            id="unused-option",
        )


def _check_division(settings: TrainingSettings, streams: tuple[OpenStream, ...], world: int) -> None:
    """Raise UsageError if the rows of a step cannot be divided into micro-batches on `world` processes."""
    parts = settings.accumulate * world
    if settings.batch_size % parts:
        raise UsageError(
            f"{settings.batch_size} rows cannot be divided into {parts} equal micro-batches",
            where="--batch-size",
            id="bad-value",
        )
    few = min(streams, key=lambda one: one.size)
    if few.size < parts:
        raise UsageError(
            f"a step has {few.size} rows of the stream {few.stream.name!r}, fewer than its {parts} micro-batches",
            where="--accumulate",
            fix="lower it, or raise --batch-size; shorter rows (--pair-length) are more rows, too",
            id="bad-value",
        )


def with_tokenizer(where: Where, settings: TrainingSettings, before: dict[str, Any] | None) -> Where:
    """Return `where` with the tokenizer of the run to begin from, whose embeddings belong to it.

    before: the record of a resumed run, which has a copy. Raise StoreError if there is no such run.
    """
    if where.init is None or where.tokenizer is not None or settings.embeddings == "new":
        return where
    if before is not None:
        return replace(where, tokenizer=where.run / TOKENIZER)
    elsewhere = checkpoint_folder(where.init)
    return replace(where, tokenizer=elsewhere or model_of(where.init, "--init")[0] / TOKENIZER)


def _check_languages(settings: TrainingSettings, where: Where, objective: Objective) -> None:
    """Raise UsageError or StoreError if the languages cannot be made, before anything is made of them."""
    pipeline = Pipeline.parse(settings.spec)
    check_permutation(pipeline)
    if where.tokenizer is None or not is_foreign(where.tokenizer):
        trans_of(pipeline)
        return
    if settings.packing == "stream":
        raise UsageError(
            "the rows of a checkpoint's tokenizer are of whole sentences, not cut from a stream",
            where="--packing",
            fix="leave it out",
            id="unused-option",
        )
    if ForeignTokenizer.load(where.tokenizer).special_ids[-1] is None and not objective.causal:
        raise StoreError(
            "its tokenizer has no mask token",
            where=str(where.tokenizer),
            fix="give the tokenizer of a masked language model, or --objective clm",
            id="special-tokens",
        )


def _init(where: Where, settings: TrainingSettings, before: dict[str, Any] | None, *, causal: bool) -> Init | None:
    """Return what the run begins from. A resumed run needs only its record."""
    if where.init is None:
        if settings.embeddings != "keep":
            raise UsageError(
                "there is no run to take the embeddings from", where="--embeddings", fix="give --init RUN", id="usage"
            )
        return None
    if before is not None and (before.get("init") or {}).get("run") == where.init:
        return Init(before["init"])
    return Init.of(where.init, settings.embeddings, causal=causal)


def _model(inputs: RunInputs, begin: Checkpoint | None, longest: int) -> Any:
    """Return the model of a checkpoint, of a run to begin from, or a new one, for rows of `longest` sub-words."""
    settings, model_config, prepared = inputs.settings, inputs.model_config, inputs.prepared
    if begin is not None:
        lm = begin.load_model()
        set_tie(lm, settings.tie)
    elif inputs.init is not None:
        lm = inputs.init.model(settings, model_config, prepared.languages, longest)
    else:
        size, marks = prepared.languages.size, prepared.data.marks
        ids, seed = settings.language_ids, settings.seed
        lm = build_model(model_config, size, longest, marks, tie=settings.tie, language_ids=ids, seed=seed)
    freeze(lm, settings.freeze)
    return lm


def _check(settings: TrainingSettings, objective: Objective, model_config: ModelConfig) -> None:
    """UsageError for what can be known before anything is made."""
    if objective.causal != model_config.causal:
        kinds = ("encoders", "an encoder"), ("causal models", "a causal one")
        raise UsageError(
            f"{objective.name} trains {kinds[objective.causal][0]}, but the model {settings.model} "
            f"({model_config.type}) is {kinds[model_config.causal][1]}",
            where="--objective",
            fix="give another --model, e.g. tiny-gpt"
            if objective.causal
            else "give --objective clm, or another --model",
            id="causal-model",
        )
    if settings.language_ids and not model_config.token_types:
        raise UsageError(
            f"the model {settings.model} ({model_config.type}) has no token types for language ids",
            where="--language-ids",
            fix="use RoBERTa or BERT, or leave it out",
            id="no-token-types",
        )
    objective.check(settings, model_config)
    for need in objective.needs():
        need.check(settings)


def _steps(settings: TrainingSettings, duration: Duration, loader: Loader) -> int:
    """Return the number of steps of the whole run. A number of sub-words counts those of all streams."""
    if duration.tokens is not None:
        return max(1, round(duration.tokens / loader.subwords_per_step))
    if duration.epochs is not None:
        return max(1, round(duration.epochs * loader.steps_per_epoch))
    return duration.steps or settings.steps
