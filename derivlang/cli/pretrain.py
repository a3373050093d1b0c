"""`derivlang pretrain`: train a model on a source and its derived language."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.headings import HeadedCommand, under
from derivlang.cli.messages import echo, tell, warn
from derivlang.cli.options import Bar, complete, find_options, parser_options, request_of, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import LOCAL_FOLDER, completes
from derivlang.core.messages import counted
from derivlang.training.settings import Duration, LogSettings, Machine, RunPaths, TrainingSettings

_HELP = {"help_option_names": ["-h", "--help"]}
_USUAL = ("source", "spec", "objective", "model", "out", "seed", "steps", "coverage", "parallel", "data_dir")
# Settings of training by the headings of the help page; "Training" has all others.
_CHOICES = ("objective", "model")
_OPTIMISER = ("learning_rate", "warmup", "weight_decay", "beta1", "beta2", "epsilon", "clip")
_DATA = ("vocab_size", "coverage", "dictionary_by", "dictionary_seed", "parallel", "packing", "derived_source", "limit")


@click.command("pretrain", cls=HeadedCommand, usual=_USUAL, no_args_is_help=True, context_settings=_HELP)
@option(
    "--source",
    metavar="SOURCE",
    shell_complete=completes("source"),
    help="Name or path of the source. An objective that reads only --pairs needs none.",
)
@spec_option("Transforms of the derived language, e.g. trans,inv, if there is a source.")
@settings_options(TrainingSettings, only=_CHOICES)
@option("-o", "--out", type=LOCAL_FOLDER, help="Folder of the run.  [default: SOURCE.TRANSFORMS.OBJECTIVE, here]")
@under("Training", settings_options(TrainingSettings, without=(*_CHOICES, *_OPTIMISER, *_DATA)),
       settings_options(Duration))  # fmt: skip
@under("Optimiser", settings_options(TrainingSettings, only=_OPTIMISER))
@under("Tokenizer, dictionary and data", settings_options(TrainingSettings, only=_DATA), settings_options(RunPaths))
@under("Machine and log", settings_options(Machine), settings_options(LogSettings))
@find_options
@under("Source", parser_options)
@option("--data-only", is_flag=True, help="Prepare the data, and stop.")
@option("--resume", is_flag=True, help="Continue from the last checkpoint.  [default without -o]")
@option("--force", is_flag=True, help="Replace a run that the folder holds.")
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(source: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Pre-train a model on SOURCE and its derived language.

    The derived text is not written to disk. Without -o the run is written to a folder in the current folder, named
    after the source, the transforms and the objective, and the same command continues an interrupted run.

    An objective that reads nothing but sentence pairs (dict-tlm, ppa, tlm, weam) takes the file of --pairs without a
    source and a derived language. They may be of any two languages, with the tokenizer of a checkpoint.

    \b
    derivlang pretrain --source wikitext2 --t trans,inv --objective align-mlm --data-dir DIR -o run
    derivlang pretrain --source demo --t trans,inv --vocab-size 300 --steps 20
    """
    try:
        _pretrain(source, out, as_json, options)
    except KeyboardInterrupt:
        how = "the same command" if out is None else "the same command with --resume"
        raise KeyboardInterrupt(how) from None


def _pretrain(source: str | None, out: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    from derivlang.core.errors import UsageError
    from derivlang.core.extras import require_torch

    require_torch()
    if options["resume"] and options["force"]:
        raise UsageError(
            "a run is either resumed or replaced",
            where="--resume and --force",
            fix="leave one of them out",
            id="bad-value",
        )
    from derivlang.pipeline import Pipeline
    from derivlang.training import run_folder
    from derivlang.training.devices import is_main
    from derivlang.training.languages import DERIVED, SOURCE
    from derivlang.training.objectives.registry import read_objective
    from derivlang.training.options import settings_of
    from derivlang.training.plan import plan_of
    from derivlang.training.record import levels_of
    from derivlang.training.run import Callbacks, prepare, pretrain
    from derivlang.training.run_folder import RUN

    settings, model_config, log_settings = settings_of(source, options)
    objective = read_objective(settings.objective)
    begins = ""
    if out is None:
        spec = str(Pipeline.parse(settings.spec))
        changed = changed_options("objective", "precision", "compile")
        out = default_folder(source or str(options["pairs"]), spec, changed, last=str(objective))
        begins = f"writing to {out}{os.sep}" if is_main() else ""
        options["resume"] = not options["force"]
    before = run_folder.read(out) if options["resume"] and (out / RUN).exists() else None
    request = None if source is None else request_of(source, options)
    plan = plan_of(
        settings, model_config, request, out, options,
        resume=options["resume"], warn=warn if is_main() else lambda message: None,
    )  # fmt: skip
    if options["data_only"]:
        with Bar(shown=is_main(), begins=begins):
            prepared = prepare(plan, Callbacks(warn))
        data, other = prepared.data, prepared.derived
        assert data is not None
        counts = {"subwords": data.n_subwords, "rows": data.n_instances(SOURCE)}
        told = f"{counted(counts['subwords'], 'sub-word')} in {counted(counts['rows'], 'row')}"
        if other is not None:
            subwords, rows = other.n_subwords, other.n_instances(DERIVED)
            counts |= {"derived_subwords": subwords, "derived_rows": rows}
            told += f", and {subwords:,} in {counted(rows, 'row')} of {settings.derived_source}"
        echo(json.dumps({"data": str(plan.paths.data or out / "data"), **counts}) if as_json else told)
        return

    def logged(step: int, entry: dict[str, Any]) -> None:
        bar.note(loss=f"{entry['loss']:.3f}")

    def begun(what: str) -> None:
        if bar.shown:
            tell(what)

    with Bar(shown=not as_json and is_main(), begins=begins) as bar:
        result = pretrain(
            plan,
            resume=options["resume"],
            force=options["force"],
            callbacks=Callbacks(warn, begun, replace(log_settings, logged=logged)),
        )
    if not is_main():
        return
    if before is not None and before["status"] == "done":
        complete(out)
        if options["factors"] and levels_of(tuple(options["factors"])) != (run_folder.read(out).get("factors") or {}):
            warn("the run is complete and keeps its factors, so --factor has no effect; --force trains it again")
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
        return
    parts = ", ".join(f"{name} {value:.3f}" for name, value in result["parts"].items()) or "untrained"
    steps = counted(result["steps"], "step")
    echo(f"{steps}, {result['tokens']:,} sub-words, {result['parameters']:,} parameters; {parts}")
    doses = result["doses"]
    if doses.get("translated_share") is not None:
        predicted = doses["predicted_per_step"] / max(doses["subwords_per_step"], 1)
        echo(f"{predicted:.1%} of the sub-words were predicted; {doses['translated_share']:.1%} of these translated")
    if doses.get("short_pairs"):
        short, pairs = doses["short_pairs"], doses["short_pairs"] + doses["pairs"]
        echo(f"{short:,} of {pairs:,} sentence pairs were left out: a side is empty or too short")
    echo(f"{out}  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} sub-words per second")
