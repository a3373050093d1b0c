"""`derivlang evaluate`: fine-tuning and measures of a pre-trained run, or of its checkpoints."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, say, warn
from derivlang.cli.options import Bar, data_dir_option, events, parser_options, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import FOLDER, LOCAL_FOLDER
from derivlang.core.errors import UsageError
from derivlang.core.settings import declared
from derivlang.evaluation.asked import Numbers, asked_for
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.settings import EvaluateNames, EvaluateOptions

if TYPE_CHECKING:
    import pyarrow as pa


def _numbers(context: click.Context, option: click.Parameter, value: str | None) -> Numbers | None:
    """Return the numbers of an option of fine-tuning; a click callback. Raise UsageError for anything else."""
    return None if value is None else Numbers.read(declared(FinetuneSettings)[option.name or ""], value)


@click.command("evaluate", no_args_is_help=True)
@click.argument("run", metavar="[RUN[@STEP]]", type=FOLDER, required=False)
@option("--init", metavar="FOLDER|hub:NAME", requires="--t, --source", excludes="RUN, --every-checkpoint",
        help="Checkpoint that was trained elsewhere.")  # fmt: skip
@spec_option("Transforms of the derived language.", only_with="--init")
@option("--source", only_with="--init", help="Name or path of the source of held-out text.")
@option("-o", "--out", type=LOCAL_FOLDER, only_with="--init",
        help="Folder of the results.  [default: SOURCE.TRANSFORMS.…, here]")  # fmt: skip
@settings_options(EvaluateNames, only=("tasks", "regimes"))
@settings_options(EvaluateOptions, only=("seeds",))
@settings_options(FinetuneSettings, without=("schedule", "freeze"), metavar="N[,N...]", callback=_numbers, commas=True)
@settings_options(FinetuneSettings, only=("schedule",), metavar="NAME[,...]", callback=_numbers, commas=True)
@settings_options(FinetuneSettings, only=("freeze",))
@settings_options(EvaluateNames, only=("measures",))
@settings_options(EvaluateOptions, only=("pairs", "sentences", "ngram_sentences", "heldout_length"))
@data_dir_option
@parser_options
@settings_options(EvaluateOptions, only=("predictions", "threads", "device", "force"))
@settings_options(EvaluateNames, only=("every_checkpoint",))
@option("--json", "as_json", is_flag=True, help="Print the result as JSON, a line for each checkpoint.")
def command(
    run: Path | None, tasks: str, regimes: str, measures: str, every_checkpoint: bool, as_json: bool, **options: Any
) -> None:
    """Evaluate RUN, the folder of a pre-trained run, and write RUN/evaluation.json.

    For each task, it measures the upper bound (SUP), zero-shot transfer (ZS) and the gap between them on the test
    split, over several seeds. The task blimp compares the log-likelihoods of minimal pairs in both languages, without
    fine-tuning. It also measures how well the embeddings and the contextual states of the two languages align, and the
    perplexity. The same command continues an interrupted evaluation.

    The defaults are the published settings, which do not suit small models. An option of fine-tuning takes one number
    for all tasks, or one for each, such as --epochs 1,2.

    RUN@3500 is the checkpoint of step 3500, also of an unfinished run. Its results are in RUN/evaluation. --init
    evaluates a checkpoint that was trained elsewhere, with its own tokenizer, on a derived language.

    \b
    derivlang evaluate RUN --task pos --epochs 1 --lr 2e-3 --train-examples 4000
    derivlang evaluate RUN --measure contextual,perplexity --every-checkpoint
    derivlang evaluate RUN --measure alignment
    derivlang evaluate RUN --task blimp:pairs.jsonl --measure none
    derivlang evaluate --init FOLDER --t inv --source demo --measure links,retrieval
    """
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.evaluation.evaluate import Evaluation
    from derivlang.evaluation.lines import lines, short_lines
    from derivlang.training.checkpoint import run_and_step
    from derivlang.training.run_folder import asked_steps

    run = _run(run, {name: options.pop(name) for name in ("init", "spec", "source", "out")}, options)
    settings = options_from(click.get_current_context(), warn)
    folder, step = run_and_step(run)
    steps = asked_steps(folder, step, every=every_checkpoint)
    evaluation = Evaluation(folder, settings, events(), several=len(steps) > 1)
    for one in steps:
        with Bar():
            evaluated = evaluation.of(one)
        if as_json:
            told = {
                label: {**evaluated.entry(label), "scores": _plain(evaluated.scores, label)}
                for label in evaluated.columns
            }
            echo(json.dumps({"step": one} | told if every_checkpoint else told, ensure_ascii=False))
        elif every_checkpoint:
            echo(f"step {one}: {'; '.join(short_lines(evaluated.columns, evaluated.scores))}")
        else:
            for line in lines(evaluated.columns, evaluated.scores, evaluated.record):
                echo(line)


def options_from(context: click.Context, warn: Callable[[str], None] = lambda message: None) -> EvaluateOptions:
    """Return what the options of a command line ask for.

    Raise UsageError for invalid values and values that do not fit together.
    """
    typed = {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    return asked_for(context.params, typed, warn)


def _run(run: Path | None, given: dict[str, Any], options: dict[str, Any]) -> Path:
    """Return RUN, or the folder of the checkpoint of --init, which is made unless it is there.

    given: the options that belong to --init. Raise UsageError if there is neither.
    """
    from derivlang.cli.folders import default_folder
    from derivlang.evaluation.checkpoint_run import write_checkpoint_run
    from derivlang.pipeline import Pipeline
    from derivlang.sources.request import SourceRequest

    if given["init"] is None:
        if run is None:
            raise UsageError("there is nothing to evaluate", fix="name a RUN, or give --init FOLDER", id="usage")
        return run
    init, source = given["init"], given["source"]
    spec = str(Pipeline.parse(given["spec"]))
    name = Path(init).name if ":" not in init else init
    out: Path = given["out"] or default_folder(source, spec, {"init": init}, last="")
    request = SourceRequest(source, options["data_dir"])
    if given["out"] is None:
        say(f"{name}: results in {out}{os.sep}")
    with Bar():
        write_checkpoint_run(out, init, spec, request, parser=options["parser"])
    return out


def _plain(scores: pa.Table, label: str) -> list[dict[str, Any]]:
    """Return the rows of a task or measure without counts, for JSON, which has null for NaN."""
    rows = (row for row in scores.drop_columns(["counts"]).to_pylist() if row["task"] == label)
    return [row | {"value": None if math.isnan(row["value"]) else row["value"]} for row in rows]
