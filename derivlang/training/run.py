"""A run from top to bottom: settings, data, model, loop, folder.

The same command with `resume` continues from the last checkpoint and gives the model of an uninterrupted run. It raises
an error for other settings or other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
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
from derivlang.training import checkpoint, run_folder
from derivlang.training.checkpoint import Checkpoint
from derivlang.training.config import ModelConfig
from derivlang.training.foreign import checkpoint_folder
from derivlang.training.init_weights import Init, model_of
from derivlang.training.languages import TOKENIZER, check_permutation, is_foreign
from derivlang.training.loader import Loader, OpenStream, open_streams
from derivlang.training.loop import train
from derivlang.training.masking import LanguageIds
from derivlang.training.memory import check_step
from derivlang.training.model import build_model, freeze, n_parameters, set_tie
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import read_objective
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.processes import processes
from derivlang.training.record import RunInputs, environment, levels_of
from derivlang.training.settings import Duration, LogSettings, Resolved, RunPaths, TrainingSettings
from derivlang.training.streams.base import Material


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for warnings and for what begins, and the settings of logging."""

    warn: Callable[[str], None] = warn
    say: Callable[[str], None] = lambda message: None
    log: LogSettings = field(default_factory=LogSettings)

    def silent(self) -> Callbacks:
        """Return the callbacks of a process that logs and saves at the same steps, but writes nothing."""
        log = replace(self.log, logged=LogSettings().logged, tensorboard=None, wandb=None)
        return Callbacks(lambda message: None, log=log)


def pretrain(
    settings: TrainingSettings,
    request: SourceRequest,
    paths: RunPaths,
    *,
    duration: Duration = Duration(),
    model_config: ModelConfig | None = None,
    resume: bool = False,
    force: bool = False,
    callbacks: Callbacks = Callbacks(),
) -> dict[str, Any]:
    """Pre-train a model. After any error, `resume` can continue from the run's folder, which is held by one run.

    settings: with the objective and the spec in their usual spelling, as `options.settings_of` gives them. While
    another run holds the folder, the same call waits if it is to `resume`.

    Return {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint",
    "doses"}; doses are those of run.json (doses.py).

    Raise DerivlangError if an objective lacks what it needs, the folder is taken or held, settings or data differ from
    those of the resumed run, the loss becomes NaN or infinite, or the disk is full.
    """
    model_config = model_config or ModelConfig.read(settings.model)
    objective = read_objective(settings.objective)
    run, ranks = paths.run, processes()
    main = ranks.is_main_process
    if not main:  # processes wait for each other where they log and save, so all must do so at the same steps
        callbacks = callbacks.silent()
    # The lock says what is trained: a process with the same plan waits for this one, any other is refused.
    plan = digest([settings, request, replace(paths, run=Path()), duration, model_config])
    told = f"{settings.objective} of {settings.spec}, seed {settings.seed}"
    with _held(run, plan, told, callbacks.warn, resume=resume, force=force) if main else nullcontext():
        # Everything up to the loop is done by the main process first; the others then reuse its files.
        with ranks.main_process_first():
            # Data. Nothing is written to the run's folder before every check has passed.
            _check(settings, objective, model_config)
            before = run_folder.record_to_resume(run, resume=resume, force=force) if main else run_folder.read(run)
            if main and before is not None:  # a file that is missing is written again
                run_folder.check_files(run, before, missing=False, warn=callbacks.warn)
            init = _init(paths, settings, before, causal=objective.causal)
            prepared = prepare(settings, request, paths, objective, callbacks, before)
            loader = _loader(settings, paths, objective, prepared, init)
            # A tokenizer that is given has its own size, and a number of epochs needs the number of rows.
            resolved = Resolved(settings, prepared.languages.tokenizer.size, _steps(settings, duration, loader))
            inputs = RunInputs(resolved, objective, model_config, prepared, loader.streams, init, paths.pairs)
            last = None
            if before is not None:
                inputs.check_same(before, run)
                if main:
                    run_folder.restore_copies(run, prepared.languages.pipeline, prepared.files, before, callbacks.warn)
                if before["status"] == "done" and before.get("result"):
                    if main:
                        run_folder.restore_model(run, before, callbacks.warn)
                    return {**before["result"], "doses": before.get("doses", {})}
                last = _last_checkpoint(run, inputs.fingerprint, callbacks.warn)
            _check_division(settings, loader.streams, ranks.num_processes)

            # Model
            if last is not None:
                callbacks.say(f"resuming from step {last.step:,}")
            lm = _model(inputs, last)
            record = _first_record(inputs, n_parameters(lm), request, before, callbacks.log.factors)
            if ranks.device.type == "cpu":  # an accelerator says itself that its memory is full; a CPU's process dies
                check_step(settings, lm, loader, world=ranks.num_processes, goes_on=last is not None)
            if main:
                if before is None:
                    run_folder.clear(run, [*prepared.files.values(), *_begun_from(paths, settings)], callbacks.warn)
                run_folder.create(run, prepared.languages.pipeline, prepared.files, record)
        return _train(run, inputs, lm, loader, last, record, callbacks.log)


@contextmanager
def _held(run: Path, plan: str, told: str, warn: Callable[[str], None], *, resume: bool, force: bool) -> Iterator[None]:
    """Hold the folder of a run, unless the run is finished and nothing will be written. Raise StoreError as `held`."""
    before = run_folder.record_to_resume(run, resume=resume, force=force)  # said at once, not after the other run
    if before is not None and before["status"] == "done":
        sweep(run)
        yield
        return
    with held(run, plan, told, warn, what="a model in this folder", waits=resume, lock=run / LOCK):
        yield


def _train(
    run: Path,
    inputs: RunInputs,
    lm: Any,
    loader: Loader,
    last: Checkpoint | None,
    record: dict[str, Any],
    log_settings: LogSettings,
) -> dict[str, Any]:
    """Train the model, write the folder of the run, and return its result.

    last: the checkpoint to resume. record: run.json at the beginning.
    """
    resolved, fingerprint, main = inputs.resolved, inputs.fingerprint, processes().is_main_process

    # Loop
    try:
        with stage("training", "steps", resolved.steps):
            found = train(run, resolved, lm, loader, fingerprint=fingerprint, last=last, log_settings=log_settings)
    except BaseException:  # also an interrupt: run.json says how far the run has come
        if main:
            run_folder.write(run, {**record, **_reached(run, inputs), "status": "stopped"})
        raise

    # Save
    result = {
        "out": str(run),
        "steps": resolved.steps,
        "tokens": found["subwords"],
        "seconds": found["seconds"],
        "tokens_per_second": round(found["subwords"] / max(found["seconds"], 1e-9)),
        "loss": found.get("loss"),
        "parts": found.get("parts", {}),
        "parameters": record["model"]["parameters"],
        "fingerprint": fingerprint,
    }
    doses = inputs.doses(found["counts"], found["subwords"], resolved.steps)
    if main:
        run_folder.finish(run, resolved.steps)
        done = {"step": resolved.steps, "tokens": result["tokens"], "seconds": result["seconds"], "doses": doses}
        weights = checkpoint.hash_of_weights(run / checkpoint.MODEL)
        # Last: until then the same command trains again from the last checkpoint.
        run_folder.write(run, {**record, **done, "weights": weights, "status": "done", "result": result})
    return {**result, "doses": doses}


def _loader(
    settings: TrainingSettings, paths: RunPaths, objective: Objective, prepared: Prepared, init: Init | None
) -> Loader:
    """Return the loader of a run, for one process. Raise DerivlangError if a stream lacks something."""
    needs = {need.name: need.prepare(prepared) for need in objective.needs()}
    streams = open_streams(objective, Material(settings, prepared.languages, prepared.encoded, paths.pairs, needs))
    _check_pairs(paths, objective, streams)
    context = Context(LanguageIds.of(prepared.languages), settings.mask, needs)
    # A run that begins from another one does not see its rows and masks again.
    seed = settings.seed if init is None else int(text_key(f"{settings.seed}|{init.facts['weights']}")) >> 1
    return Loader(streams, objective, context, seed, settings.accumulate)


def _last_checkpoint(run: Path, fingerprint: str, warn: Callable[[str], None]) -> Checkpoint | None:
    """Return the checkpoint to resume, None if there is none. Raise StoreError if it is of another run."""
    last = checkpoint.newest(run, warn)
    if last is not None and last.fingerprint != fingerprint:
        raise StoreError("belongs to another run", where=str(last.folder), fix="give another folder", id="other-run")
    return last


def _first_record(
    inputs: RunInputs,
    parameters: int,
    request: SourceRequest,
    before: dict[str, Any] | None,
    factors: tuple[str, ...],
) -> dict[str, Any]:
    """Return run.json at the beginning. before: that of the resumed run."""
    record = inputs.record(parameters, request)
    if before is not None and inputs.prepared.heldout is None:  # the run began where the source was
        record["heldout_files"] = before.get("heldout_files")
    if levels := levels_of(factors):
        record["factors"] = levels
    earlier = [] if before is None else before.get("environments") or []
    record["environments"] = _distinct([*earlier, environment()])
    return record


def _begun_from(paths: RunPaths, settings: TrainingSettings) -> list[Path]:
    """Return the folders that the run begins from, which --force must not remove."""
    names = [paths.init or "", settings.embeddings.partition("=")[2]]
    return [checkpoint_folder(name) or checkpoint.run_and_step(Path(name))[0] for name in names if name]


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
    paths: RunPaths,
    objective: Objective,
    callbacks: Callbacks,
    before: dict[str, Any] | None = None,
) -> Prepared:
    """Return the inputs of a run, with the tokenizer of what it begins from. before: the record of a resumed run.

    Raise DerivlangError if they cannot be made, or if existing ones do not fit.
    """
    paths = with_tokenizer(paths, settings, before)
    _check_languages(settings, paths, objective)
    lengths = objective.row_lengths(settings)
    return prepare_data(settings, request, paths, callbacks.warn, callbacks.say, lengths=lengths)


def _distinct(environments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each environment once, in the order of training."""
    return [one for place, one in enumerate(environments) if one not in environments[:place]]


def _check_pairs(paths: RunPaths, objective: Objective, streams: tuple[OpenStream, ...]) -> None:
    """Raise UsageError for a file of sentence pairs that no stream has read."""
    if paths.pairs is not None and not any("sha256" in one.source.facts() for one in streams):
        raise UsageError(
            f"the rows of {objective.name} are of the corpus alone, so it does not read {paths.pairs}",
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


def with_tokenizer(paths: RunPaths, settings: TrainingSettings, before: dict[str, Any] | None) -> RunPaths:
    """Return the paths with the tokenizer of the run to begin from, whose embeddings belong to it.

    before: the record of a resumed run, which has a copy. Raise StoreError if there is no such run.
    """
    if paths.init is None or paths.tokenizer is not None or settings.embeddings == "new":
        return paths
    if before is not None:
        return replace(paths, tokenizer=paths.run / TOKENIZER)
    elsewhere = checkpoint_folder(paths.init)
    return replace(paths, tokenizer=elsewhere or model_of(paths.init, "--init")[0] / TOKENIZER)


def _check_languages(settings: TrainingSettings, paths: RunPaths, objective: Objective) -> None:
    """Raise UsageError or StoreError if the languages cannot be made, before anything is made of them."""
    pipeline = Pipeline.parse(settings.spec)
    check_permutation(pipeline)
    if paths.tokenizer is None or not is_foreign(paths.tokenizer):
        trans_of(pipeline)
        return
    if settings.packing == "stream":
        raise UsageError(
            "the rows of a checkpoint's tokenizer are of whole sentences, not cut from a stream",
            where="--packing",
            fix="leave it out",
            id="unused-option",
        )
    if ForeignTokenizer.load(paths.tokenizer).special_ids[-1] is None and not objective.causal:
        raise StoreError(
            "its tokenizer has no mask token",
            where=str(paths.tokenizer),
            fix="give the tokenizer of a masked language model, or --objective clm",
            id="special-tokens",
        )


def _init(paths: RunPaths, settings: TrainingSettings, before: dict[str, Any] | None, *, causal: bool) -> Init | None:
    """Return what the run begins from. A resumed run needs only its record."""
    if paths.init is None:
        if settings.embeddings != "keep":
            raise UsageError(
                "there is no run to take the embeddings from", where="--embeddings", fix="give --init RUN", id="usage"
            )
        return None
    if before is not None and (before.get("init") or {}).get("run") == paths.init:
        return Init(before["init"])
    return Init.of(paths.init, settings.embeddings, causal=causal)


def _model(inputs: RunInputs, last: Checkpoint | None) -> Any:
    """Return the model of a checkpoint, of a run to begin from, or a new one."""
    settings, model_config, prepared = inputs.settings, inputs.model_config, inputs.prepared
    longest = max(settings.seq_len, *(one.source.length for one in inputs.streams))
    if last is not None:
        lm = last.load_model()
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
