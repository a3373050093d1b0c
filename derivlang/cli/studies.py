"""What `study` and `reproduce` have in common: their options, and how a study is run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, say, tell
from derivlang.cli.options import Bar, data_dir_option
from derivlang.cli.types import COUNT, FOLDER, OUT_FOLDER, Number
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import given, names

if TYPE_CHECKING:
    from derivlang.study.commands import CommandOption, CommandOptions
    from derivlang.study.file import Study
    from derivlang.study.plan import Place

Command = TypeVar("Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option("-o", "--out", type=OUT_FOLDER, help="Folder of the study.  [default: the study's name, here]"),
    data_dir_option,
    click.option("--parses", type=FOLDER, help="Folder that keeps parses.  [default: OUT/parses]"),
    option("--workers", type=COUNT, excludes="--array, --data-only",
           help="Number of cells to run in parallel.  [default: the study's]"),
    click.option("--threads", type=COUNT, help="Number of CPU threads per cell.  [default: the study's]"),
    click.option("--steps", type=COUNT, help="Number of steps of each run, for a trial.  [default: the study's]"),
    click.option("--cells", help="Cells to run without a report, e.g. trans-inv.mlm.1,trans.*.  [default: all]"),
    click.option("--grids", "--as-published", help="Named grids of the study to run in addition, e.g. untied,packing."),
    option("--data-only", is_flag=True, excludes="--dry-run, --array",
           help="Prepare text, tokenizer and encoded data, and stop."),
    click.option("--data-as-is", is_flag=True, help="Use encoded data made elsewhere, without its text."),
    option("--dry-run", is_flag=True, excludes="--array, --data-only",
           help="Print the steps with sizes, estimated time and disk; run nothing."),
    option("--array", is_flag=True, excludes="--dry-run, --data-only",
           help="Print one command per cell, write OUT/array.sh for Slurm; run nothing."),
    option("--rate", type=Number(1), only_with="--dry-run", help="Training speed in sub-words per second.  "
           "[default: measured; 1.1 million for a wide model if there is no accelerator]"),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)  # fmt: skip
# Options that a study gives to its commands, and what a user gives instead.
_MACHINE = {
    "data-dir": "give --data-dir to derivlang study",
    "parses": "give --parses to derivlang study",
    "threads": "write threads in [study]",
    "json": "leave it out",
    "force": "remove a run's folder to make it again",
}
_RESERVED = {
    "pretrain": {
        **_MACHINE,
        "out": "leave it out: a run is in OUT/runs",
        "data": "leave it out: encoded data is in OUT/data",
        "factor": "leave it out",
        "resume": "leave it out",
        "data-only": "give --data-only to derivlang study",
        "data-as-is": "give --data-as-is to derivlang study",
    },
    "evaluate": _MACHINE,
}


def study_options(command: Command) -> Command:
    """Add the options of a study, but not its name."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def options_of(name: str) -> CommandOptions:
    """Return what a study may give to `pretrain` or `evaluate`."""
    from derivlang.study.commands import CommandOptions

    command = _command(name)
    options = {key: option for parameter in command.params for key, option in _option(parameter)}

    def check(arguments: Sequence[str]) -> None:
        try:
            found = command.make_context(name, list(arguments), help_option_names=["-h", "--help"])
        except click.UsageError as error:
            raise UsageError(error.format_message().rstrip("."), id="usage") from None
        _check_values(name, found)

    reserved = _RESERVED[name]
    return CommandOptions(name, {k: v for k, v in options.items() if k not in reserved}, reserved, check)


def _command(name: str) -> click.Command:
    from importlib import import_module

    command: click.Command = import_module(f"derivlang.cli.{name}").command
    return command


def _option(parameter: click.Parameter) -> list[tuple[str, CommandOption]]:
    """Return an option under the first of its long names, or nothing for an argument and for --help-all."""
    from derivlang.study.commands import CommandOption

    spellings = [spelling for spelling in parameter.opts if spelling.startswith("--")]
    if not isinstance(parameter, click.Option) or not spellings or not parameter.expose_value:
        return []
    no = (parameter.secondary_opts or [""])[0]
    is_path = isinstance(parameter.type, click.Path)
    option = CommandOption(spellings[0], no, parameter.is_flag, parameter.multiple, is_path)
    return [(spellings[0].removeprefix("--"), option)]


def _check_values(name: str, context: click.Context) -> None:
    """Raise UsageError for values out of bounds, which the command itself would find only when it runs."""
    from derivlang.cli.evaluate import options_from
    from derivlang.evaluation.checks import check_mixed
    from derivlang.training.options import settings_of
    from derivlang.training.settings import Duration

    if name == "evaluate":
        check_mixed(options_from(context))
        return
    found = context.params
    settings_of(found["source"], found)
    Duration(found["steps"], **given(Duration, found))


def study_command(name: str, options: dict[str, Any]) -> None:
    """Run a study, or what else the options ask for, and print the result."""
    from derivlang.core.extras import EXTRAS, require_torch

    require_torch(*EXTRAS["train"])  # before modules that import torch; a study ends with its report
    import time

    from derivlang.study.array import write_array
    from derivlang.study.file import only, read
    from derivlang.study.plan import Place
    from derivlang.study.run import prepare, run_study

    whole = read(
        name,
        options_of("pretrain"),
        options_of("evaluate"),
        grids=names(options["grids"], "--grids"),
        steps=options["steps"],
    )
    study = whole if options["cells"] is None else only(whole, names(options["cells"], "--cells"))
    named = os.environ.get("DERIVLANG_DATA")
    data = options["data_dir"] or (Path(named) if named else None)
    out = options["out"] or Path(study.name)
    place = Place(out, data, options["parses"], options["workers"], options["threads"], options["data_as_is"])
    if options["dry_run"]:
        _dry_run(study, place, options["rate"], report=study is whole, as_json=options["as_json"])
        return
    if options["array"]:
        scripts = write_array(study, place, _for_each_cell(options))
        commands = [command for some in scripts.values() for command in some]
        echo(json.dumps({"commands": commands}) if options["as_json"] else "\n".join(commands))
        first, *later = (str(out / script) for script in scripts)
        after = (
            f", then {', '.join(later)}, each when the one before is done (--dependency=afterok:JOB)" if later else ""
        )
        say(f"wrote {first}: first --data-only, then sbatch it{after}, then the same command without --array")
        return
    began = time.perf_counter()
    some = None if study is whole else whole
    with Bar(shown=False, begins="" if options["out"] else f"writing to {out}{os.sep}") as bar:

        def told(line: str) -> None:
            bar.begin()
            tell(line)

        found = (prepare if options["data_only"] else run_study)(study, place, told, whole=some)
    found["seconds"] = round(time.perf_counter() - began, 1)
    what = found.get("report") or found["out"]
    echo(json.dumps(found) if options["as_json"] else f"{what}  in {found['seconds'] / 60:.1f} minutes")


def _for_each_cell(options: dict[str, Any]) -> list[str]:
    """The options that the command of each cell of an array has, too."""
    found = [(f"--{key}", str(options[key])) for key in ("grids", "steps", "threads") if options[key] is not None]
    return [word for pair in found for word in pair] + ["--data-as-is"] * options["data_as_is"]


def _dry_run(study: Study, place: Place, asked: float | None, *, report: bool, as_json: bool) -> None:
    """Print the commands with sizes, estimated time and disk. report: whether the study ends with its report."""
    from derivlang.study.estimate import cost, is_narrow, shared_cost, total_seconds
    from derivlang.study.plan import model_of, plan

    narrow = all(is_narrow(cell) for cell in study.cells)
    threads = place.threads or study.threads
    rate, how = _rate(model_of(study.cells[0]), threads, asked, narrow=narrow)
    costs = {cell.name: cost(cell, rate) for cell in study.cells}
    steps = [step for step in plan(study, place) if report or step.arguments[0] != "report"]
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
    import torch

    from derivlang.training.bench import Plan, bench
    from derivlang.training.options import settings_of

    if asked is not None:
        return asked, "as asked"
    cuda = torch.cuda.is_available()
    if not cuda and not narrow:
        return 1.1e6, "assumed: there is no accelerator here"
    settings, model_config, _ = settings_of(
        "made-up", {"model": model, "spec": "trans", "objective": "mlm", "threads": threads}
    )
    found = bench(settings, model_config, Plan(seconds=2.0, warm_up=2, compile=cuda))
    return float(found["tokens_per_second"]), "measured"
