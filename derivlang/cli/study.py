"""`derivlang study`: run a grid of runs that a TOML file describes. `reproduce` has the same options."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import click

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo, say
from derivlang.cli.options import Bar
from derivlang.cli.types import completes
from derivlang.commands.studies import RunStudy
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.messages import counted, first_names
from derivlang.core.settings import Settings, replaces, setting

FIRST, LAST = ("listed", "scale", "out"), (
    "data_only", "data_as_is", "dry_run", "array", "force", "rate", "as_json",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Printed(Settings):
    """What the command line can do instead of running a study."""

    needs: ClassVar[Mapping[str, OptionNeeds]] = {"data_only": OptionNeeds(excludes="--dry-run, --array")}
    dry_run: bool = setting(
        False, "Print the steps with sizes, estimated time and disk; run nothing.", excludes="--array, --data-only"
    )
    array: bool = setting(
        False, "Print one command per cell, write OUT/array.sh for Slurm; run nothing.",
        excludes="--dry-run, --data-only, --workers",
    )  # fmt: skip
    force: bool = replaces(only_with="--array")
    rate: float | None = setting(
        None, "Training speed in sub-words per second.", minimum=1, only_with="--dry-run",
        unset="measured; 1.1 million for a wide model if there is no accelerator",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _PrintedStudy(Printed, RunStudy):
    """The command with what only the command line can do."""

    listed: bool = setting(
        False, "Print the shipped studies by paper, with their sizes.", option="--list",
        excludes="FILE, --scale, --dry-run, --array, --data-only",
    )  # fmt: skip


def run_study_command(asked: Any) -> None:
    """Run a study, or what else the options ask for, and print the result."""
    if asked.dry_run:
        _dry_run(asked)
        return
    if asked.array:
        _array(asked)
        return
    began = time.perf_counter()
    with Bar(shown=False):
        summary = asked.summary()
    summary["seconds"] = round(time.perf_counter() - began, 1)
    what = summary.get("report") or summary["out"]
    echo(json.dumps(summary) if as_json() else f"{what}  in {summary['seconds'] / 60:.1f} minutes")


def _run(asked: _PrintedStudy) -> None:
    if asked.listed:
        _list_studies(as_json=as_json())
    elif asked.file is None:  # the command line can do without it
        context = click.get_current_context()
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    else:
        run_study_command(asked)


def _list_studies(*, as_json: bool) -> None:
    """Print the shipped studies."""
    from derivlang.core.extras import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # what a cell reads follows from its objective
    from derivlang.studies.estimate import lines_of, listing

    studies = listing()
    echo(json.dumps(studies, ensure_ascii=False) if as_json else "\n".join(lines_of(studies)))


def _array(asked: Any) -> None:
    """Write the scripts of an array, and print their commands."""
    from derivlang.studies.plan import write_array
    from derivlang.studies.settings import Extent

    study, place = asked.planned()
    scripts = write_array(study, place, asked.part(Extent), force=asked.force)
    commands = [command for some in scripts.values() for command in some]
    echo(json.dumps({"commands": commands}) if as_json() else "\n".join(commands))
    first, *later = (str(place.out / script) for script in scripts)
    after = f", then {', '.join(later)}, each when the one before is done (--dependency=afterok:JOB)" if later else ""
    say(f"wrote {first}: first --data-only, then sbatch it{after}, then the same command without --array")


def _dry_run(asked: Any) -> None:
    """Print the commands with sizes, estimated time and disk."""
    from derivlang.studies.estimate import cost, is_narrow, shared_cost, total_seconds
    from derivlang.studies.plan import model_of, plan
    from derivlang.studies.run import check_tasks

    study, place = asked.planned()
    if of_hub := check_tasks(study, place, dry=True):
        say(f"not on this machine, so the hub is asked for them: {first_names(of_hub)}")
    narrow = all(is_narrow(cell) for cell in study.cells)
    threads = place.threads or study.threads
    rate, how = _rate(model_of(study.cells[0]), threads, asked.rate, narrow=narrow)
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
    if as_json():
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


_PrintedStudy.__doc__ = RunStudy.__doc__
command = command_line(
    _PrintedStudy,
    "study",
    arguments=[click.Argument(["file"], required=False, metavar="FILE", shell_complete=completes("study"))],
    run=_run, first=FIRST, last=LAST, optional=("file",),
)  # fmt: skip
