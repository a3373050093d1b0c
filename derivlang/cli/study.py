"""`derivlang study`: run a grid of runs that a TOML file describes. `reproduce` has the same options."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, say, tell
from derivlang.cli.options import Bar
from derivlang.cli.settings import settings_options
from derivlang.cli.types import LOCAL_FOLDER, Number, completes
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.messages import counted
from derivlang.store.settings import FileOptions
from derivlang.studies.settings import SCALES, Extent, Place

if TYPE_CHECKING:
    from derivlang.studies.file import StudyFile

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    option("-o", "--out", type=LOCAL_FOLDER, help="Folder of the study.  [default: the study's name, here]"),
    settings_options(Place, without=("as_is",)),
    settings_options(Extent),
    option("--data-only", is_flag=True, excludes="--dry-run, --array",
           help="Prepare text, tokenizer and encoded data, and stop."),
    settings_options(Place, only=("as_is",)),
    option("--dry-run", is_flag=True, excludes="--array, --data-only",
           help="Print the steps with sizes, estimated time and disk; run nothing."),
    option("--array", is_flag=True, excludes="--dry-run, --data-only, --workers",
           help="Print one command per cell, write OUT/array.sh for Slurm; run nothing."),
    settings_options(FileOptions, needs={"force": OptionNeeds(only_with="--array")}),
    option("--rate", type=Number(1), only_with="--dry-run", help="Training speed in sub-words per second.  "
           "[default: measured; 1.1 million for a wide model if there is no accelerator]"),
    option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)  # fmt: skip


def study_options(command: Command) -> Command:
    """Add the options of a study, but not its name."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


@click.command("study", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", metavar="FILE", required=False, shell_complete=completes("study"))
@option(
    "--list",
    "listed",
    is_flag=True,
    excludes="FILE, --scale, --dry-run, --array, --data-only",
    help="Print the shipped studies by paper, with their sizes.",
)
@option("--scale", type=click.Choice(SCALES),
              help="Scale, of a study that has several.  [default: its first]")  # fmt: skip
@study_options
def command(file: str | None, listed: bool, scale: str | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Run the study of FILE, a TOML file or the name of a shipped study, from data to report.

    A study has a cell for every combination of its factors' levels: a run of pretrain, then evaluate. The same command
    continues an interrupted study, and adds the cells of new levels. --list prints the shipped studies.

    \b
    derivlang study overlap.toml -o overlap --data-dir DIR --workers 2
    derivlang study overlap.toml -o overlap --cells "perm.*,identity.0.1"
    derivlang study alignment-methods --scale tiny -o methods --dry-run
    derivlang study --list
    """
    if listed:
        _list_studies(as_json=as_json)
        return
    if file is None:
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    study_command(file, scale, out, as_json, options)


def _list_studies(*, as_json: bool) -> None:
    """Print the shipped studies."""
    from derivlang.core.extras import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # what a cell reads follows from its objective
    from derivlang.studies.estimate import lines_of, listing

    studies = listing()
    echo(json.dumps(studies, ensure_ascii=False) if as_json else "\n".join(lines_of(studies)))


def study_command(name: str, scale: str | None, out: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    """Run a study, or what else the options ask for, and print the result."""
    from derivlang.core.extras import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # before modules that import torch; a study ends with its report
    import time

    from derivlang.studies.file import asked_for
    from derivlang.studies.run import prepare, run_study

    study, place, extent = asked_for(name, out, options, scale)
    if options["dry_run"]:
        _dry_run(study, place, options["rate"], as_json=as_json)
        return
    if options["array"]:
        _array(study, place, extent, force=options["force"], as_json=as_json)
        return
    began = time.perf_counter()
    with Bar(shown=False, begins="" if out else f"writing to {place.out}{os.sep}") as bar:

        def told(line: str) -> None:
            bar.begin()
            tell(line)

        summary = (prepare if options["data_only"] else run_study)(study, place, told)
    summary["seconds"] = round(time.perf_counter() - began, 1)
    what = summary.get("report") or summary["out"]
    echo(json.dumps(summary) if as_json else f"{what}  in {summary['seconds'] / 60:.1f} minutes")


def _array(study: StudyFile, place: Place, extent: Extent, *, force: bool, as_json: bool) -> None:
    """Write the scripts of an array, and print their commands."""
    from derivlang.studies.plan import write_array

    scripts = write_array(study, place, extent, force=force)
    commands = [command for some in scripts.values() for command in some]
    echo(json.dumps({"commands": commands}) if as_json else "\n".join(commands))
    first, *later = (str(place.out / script) for script in scripts)
    after = f", then {', '.join(later)}, each when the one before is done (--dependency=afterok:JOB)" if later else ""
    say(f"wrote {first}: first --data-only, then sbatch it{after}, then the same command without --array")


def _dry_run(study: StudyFile, place: Place, speed: float | None, *, as_json: bool) -> None:
    """Print the commands with sizes, estimated time and disk. speed: in sub-words per second, None to measure it."""
    from derivlang.studies.estimate import cost, is_narrow, shared_cost, total_seconds
    from derivlang.studies.plan import model_of, plan

    narrow = all(is_narrow(cell) for cell in study.cells)
    threads = place.threads or study.threads
    rate, how = _rate(model_of(study.cells[0]), threads, speed, narrow=narrow)
    costs = {cell.name: cost(cell, rate) for cell in study.cells}
    steps = [step for step in plan(study, place) if study.whole is None or step.arguments[0] != "report"]
    shared = shared_cost(study, place)
    workers = place.workers or study.workers
    seconds = total_seconds(list(costs.values()), shared, workers)
    size = sum(one.bytes for one in costs.values()) + (shared[1] if shared else 0.0)
    disk = f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"
    rows = []
    for step in steps:
        one = costs.get(step.cell.name) if step.cell else None
        pretrain = step.arguments[0] == "pretrain"
        took = 0.0 if one is None else one.pretraining if pretrain else one.evaluation
        rows.append((step, (one.positions if one and pretrain else 0) or 0, took))
    if as_json:
        shown = [{"name": s.name, "command": s.command, "tokens": n, "seconds": took} for s, n, took in rows]
        told = {"seconds": round(seconds), "bytes": round(size), "tokens_per_second": rate}
        echo(json.dumps({"steps": shown, **told}))
        return
    echo(f"in {place.out}:")
    for step, n, took in rows:
        echo(f"{took:8.0f} s {f'{n:>14,} sub-words' if n else ' ' * 24}  {step.command}")
    each = sum(one.seconds for one in costs.values()) / len(costs)
    echo(
        f"{counted(len(costs), 'cell')}: about {seconds / 60:,.0f} minutes with {workers} in parallel, "
        f"{each / 60:,.1f} per cell, at {rate:,.0f} sub-words per second ({how}); about {disk} of disk"
    )
    if any(one.positions is None for one in costs.values()):
        echo("cells with --epochs are counted without their training, whose length follows from the data")
    if shared is None:
        echo("the text is not here: its tokenizer, parses and encoded data are not counted")


def _rate(model: str, threads: int | None, asked: float | None, *, narrow: bool) -> tuple[float, str]:
    """Return the training speed in sub-words per second, and its origin: asked, assumed or measured.

    Wide models are not measured on a CPU, where a step takes minutes.
    """
    if asked is not None:
        return asked, "as asked"
    import torch

    from derivlang.training.options import settings_of
    from derivlang.training.speed import made_up_run, steps_per_second

    cuda = torch.cuda.is_available()
    if not cuda and not narrow:
        return 1.1e6, "assumed: there is no accelerator here"
    settings, model_config, _ = settings_of(
        "made-up", {"model": model, "spec": "trans", "objective": "mlm", "threads": threads}
    )
    net, loader = made_up_run(settings, model_config, compile=cuda)
    steps = steps_per_second(net, loader, settings, seconds=2.0)
    return steps * settings.batch_size * settings.seq_len, "measured"
