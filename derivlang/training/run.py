"""A run from top to bottom: settings, data, model, loop, save.

The same command with `resume` continues from the last checkpoint and gives the model of an uninterrupted run. It raises
an error for other settings or other data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from derivlang.core.errors import StoreError
from derivlang.core.keys import text_key
from derivlang.core.messages import counted, warn
from derivlang.formats.progress import stage
from derivlang.store.disk import LOCK, held
from derivlang.store.folders import sweep
from derivlang.store.record import digest
from derivlang.training import checkpoint, run_folder
from derivlang.training.begun_from import checkpoint_folder, with_tokenizer
from derivlang.training.checkpoint import LOG, Checkpoint, run_and_step
from derivlang.training.checks import (
    check_all_read,
    check_dictionary,
    check_division,
    check_languages,
    check_pairs,
    check_settings_fit,
    check_texts,
)
from derivlang.training.devices import only_main_warns, processes
from derivlang.training.doses import log_within, steps_within
from derivlang.training.encoder import check_reset
from derivlang.training.init_weights import copy_embeddings, init_model, init_of
from derivlang.training.language import phases_of
from derivlang.training.loader import Loader, open_streams
from derivlang.training.masking import LanguageIds
from derivlang.training.model import build_model, freeze, n_parameters, set_tie
from derivlang.training.objectives.base import Context
from derivlang.training.plan import RunPlan
from derivlang.training.prepare import Prepared, prepare_data, prepare_pairs
from derivlang.training.record import RunInputs
from derivlang.training.settings import SessionSettings
from derivlang.training.trainer import train


@only_main_warns()
def pretrain(plan: RunPlan) -> dict[str, Any]:
    """Pre-train a model. After any error, `resume` can continue from the run's folder, which is held by one run.

    While another run holds the folder, the same call waits if it is to `resume`.

    Return {"out", "steps", "tokens", "seconds", "tokens_per_second", "loss", "parts", "parameters", "fingerprint",
    "doses"}; doses are as in run.json (doses.py).

    Raise DerivlangError if an objective lacks what it needs, the folder is taken or held, settings or data differ from
    the resumed run's, the loss becomes NaN or infinite, or the disk is full.
    """
    # Settings
    run, ranks = plan.paths.run, processes()
    main, going = ranks.is_main_process, {"resume": plan.resume, "force": plan.force}
    if not main:  # processes wait for each other where they log and save, so all must do so at the same steps
        plan = replace(plan, session=replace(plan.session, logged=SessionSettings.logged, tracker=()))

    with _held(plan) if main else nullcontext():
        # Everything up to the loop is done by the main process first; the others then reuse its files.
        with ranks.main_process_first():
            # Data. Nothing is written to the run's folder before every check has passed.
            before = run_folder.record_to_resume(run, **going) if main else run_folder.read(run)
            plan = replace(plan, before=before)
            check_settings_fit(plan.settings, plan.objective, plan.model_config)
            check_texts(plan.settings, plan.objective, plan.paths.pairs)
            if main and before is not None:  # a file that is missing is written again
                run_folder.check_files(run, before, missing=False)
            inputs = _data(plan)
            prepared = inputs.prepared
            if before is not None:
                inputs.check_same_run()
                if main:
                    run_folder.restore(run, prepared.languages.pipeline, prepared.files, before)
                if before["status"] == "done" and before.get("result"):
                    return {**before["result"], "doses": before.get("doses", {})}
            last = None if before is None else _last_checkpoint(run, inputs.fingerprint)
            check_division(plan.settings, inputs.loader.streams, ranks.num_processes)

            # Model
            lm = _model(inputs, last)
            record = inputs.record(n_parameters(lm))
            if main:
                sweep(run)
                if before is None:
                    init = plan.paths.init  # --force must not remove it
                    begun_from = [] if init is None else [checkpoint_folder(init) or run_and_step(Path(init))[0]]
                    run_folder.clear(run, [*prepared.files.values(), *begun_from])
                    run_folder.create(run, prepared.languages.pipeline, prepared.files)
                run_folder.write(run, record)

        # Loop
        steps = inputs.plan.settings.steps or 0
        within = log_within(plan.session, plan.settings.steps or steps, steps)
        try:
            with stage("training", "steps", steps):
                options: Any = {"fingerprint": inputs.fingerprint, "last": last, "options": within}
                trained = train(run, inputs.plan.settings, lm, inputs.loader, **options)
        except BaseException:  # also an interrupt: run.json says how far the run has come
            if main:
                run_folder.write(run, {**record, **_reached(run, inputs), "status": "stopped"})
            raise

        # Save
        return _finish(run, inputs, record, trained, main=main)


@contextmanager
def _held(plan: RunPlan) -> Iterator[None]:
    """Hold the folder of a run, unless the run is finished and nothing will be written. Raise StoreError as `held`."""
    run, settings, session = plan.paths.run, plan.settings, plan.session
    # Said at once, not after the other run.
    before = run_folder.record_to_resume(run, resume=plan.resume, force=plan.force)
    if before is not None and before["status"] == "done":
        sweep(run)
        yield
        return
    # The lock says what is trained: a process with the same plan waits for this one, any other is refused.
    told = f"{settings.objective} of {settings.spec}, seed {settings.seed}"
    duration = session.tokens, session.epochs, session.budget
    asked = digest([settings, plan.request, replace(plan.paths, run=Path()), duration, plan.model_config])
    with held(run, asked, told, what="a model in this folder", waits=plan.resume, lock=run / LOCK):
        yield


def _data(plan: RunPlan) -> RunInputs:
    """Return what the model depends on. Raise DerivlangError if a stream lacks something."""
    settings, paths, objective = plan.settings, plan.paths, plan.objective
    init = init_of(paths, settings, plan.before, causal=objective.causal)
    prepared = prepare(plan)
    check_dictionary(prepared, objective)
    streams = open_streams(objective, prepared)
    check_pairs(paths.pairs, objective, streams)
    ids = LanguageIds.of(prepared.languages, settings.replacements, prepared.by_language(settings.seq_len))
    context = Context(ids, settings.mask, prepared.dictionary)
    # A run that begins from another one does not see its rows and masks again.
    seed = settings.seed if init is None else int(text_key(f"{settings.seed}|{init['weights']}")) >> 1
    loader = Loader(streams, objective, context, seed, settings.accumulate)
    # A tokenizer that is given has its own size, and a number of epochs needs the number of rows.
    steps = _steps(plan.session, loader, prepared)
    check_all_read(settings, streams, steps)
    if 0 < steps <= objective.first_step():
        what = f"before all parts of {objective} begin, at step {objective.first_step():,}"
        warn(f"the run ends after {counted(steps, 'step')}, {what}")
    begins = [begin for begin, _ in phases_of(settings.asked) if 0 < steps <= begin]
    if begins:
        warn(f"the run ends after {counted(steps, 'step')}, before the shares from step {begins[0]:,} on")
    resolved = replace(settings, vocab_size=prepared.languages.tokenizer.size, steps=steps)
    return RunInputs(replace(plan, settings=resolved), prepared, loader, init)


@only_main_warns()
def prepare(plan: RunPlan) -> Prepared:
    """Return the inputs of a run, with the tokenizer of what it begins from.

    Raise DerivlangError if they cannot be made, or if existing ones do not fit.
    """
    settings, objective = plan.settings, plan.objective
    paths = with_tokenizer(plan.paths, settings, plan.before)
    if plan.request is None:
        return prepare_pairs(settings, paths)
    check_languages(settings, paths.tokenizer, objective)
    return prepare_data(settings, plan.request, paths, lengths=objective.row_lengths(settings))


def _steps(asked: SessionSettings, loader: Loader, prepared: Prepared) -> int:
    """Return the number of steps of the whole run. A number of sub-words counts all streams."""
    if asked.tokens is not None:
        return max(1, round(asked.tokens / loader.subwords_per_step))
    if asked.epochs is not None:
        return max(1, round(asked.epochs * loader.steps_per_epoch))
    assert prepared.settings.steps is not None  # `settings_of` refuses settings without a duration
    return steps_within(asked.budget, prepared.settings.steps, loader, prepared)


def _last_checkpoint(run: Path, fingerprint: str) -> Checkpoint | None:
    """Return the checkpoint to resume, None if there is none. Raise StoreError if it is of another run."""
    last = checkpoint.newest(run)
    if last is None:
        return None
    if last.fingerprint != fingerprint:
        raise StoreError("belongs to another run", where=str(last.folder), fix="give another folder", id="other-run")
    if not checkpoint.has_log(run, last):
        warn(f"{run / LOG} is not what was written until step {last.step:,}; it is written again")
    return last


def _model(inputs: RunInputs, last: Checkpoint | None) -> Any:
    """Return the model of a checkpoint, of a run to begin from, or a new one."""
    settings, model_config, prepared = inputs.plan.settings, inputs.plan.model_config, inputs.prepared
    streams = inputs.loader.streams
    longest = max(settings.seq_len, *(one.source.length for one in streams))
    if last is not None:
        lm = checkpoint.load_model(last.folder / checkpoint.MODEL)
        set_tie(lm, settings.tie)
    elif inputs.init is not None:
        lm = init_model(inputs.init, settings, model_config, prepared.languages, longest)
    else:
        size, special_ids = prepared.languages.size, prepared.languages.special_ids
        options: Any = {"tie": settings.tie, "language_ids": settings.language_ids, "seed": settings.seed}
        lm = build_model(
            model_config, size, longest, special_ids, **options, own=settings.own_parts, languages=len(settings.asked)
        )
    if last is None and settings.embeddings == "copy":
        copy_embeddings(lm, prepared.languages)
    if any(one.stream.reset for one in streams):
        check_reset(lm)
    freeze(lm, settings.freeze)
    return lm


def _reached(run: Path, inputs: RunInputs) -> dict[str, Any]:
    """Return what run.json says of the last checkpoint of a stopped run."""
    try:
        last = checkpoint.newest(run, lambda message: None)
    except StoreError:
        last = None
    return {} if last is None else inputs.reached(last.step, last.subwords, last.seconds, last.counts)


def _finish(
    run: Path, inputs: RunInputs, record: dict[str, Any], trained: dict[str, Any], *, main: bool
) -> dict[str, Any]:
    """Write the model and the record of a finished run, and return its result. trained: what `train` returned."""
    steps = inputs.plan.settings.steps or 0
    reached = inputs.reached(steps, trained["subwords"], trained["seconds"], trained["counts"])
    result = {
        "out": str(run),
        "steps": steps,
        "tokens": trained["subwords"],
        "seconds": trained["seconds"],
        "tokens_per_second": round(trained["subwords"] / max(trained["seconds"], 1e-9)),
        "loss": trained.get("loss"),
        "parts": trained.get("parts", {}),
        "parameters": record["model"]["parameters"],
        "fingerprint": inputs.fingerprint,
    }
    if main:
        run_folder.finish(run, steps)
        weights = checkpoint.hash_of_weights(run / checkpoint.MODEL)
        # Last: until then the same command trains again from the last checkpoint.
        run_folder.write(run, {**record, **reached, "weights": weights, "status": "done", "result": result})
    return {**result, "doses": reached["doses"]}
