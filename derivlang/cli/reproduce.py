"""`derivlang reproduce`: run a paper's study with one command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import data_dir_option, ends_well, names, say
from derivlang.cli.types import COUNT, FOLDER


@click.command("reproduce", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("recipe")
@click.option("--scale", type=click.Choice(["tiny", "small", "paper"]), default="tiny", show_default=True,
              help="Scale: half an hour on 2 cores, hours on an accelerator, or days on an accelerator.")  # fmt: skip
@click.option("-o", "--out", type=FOLDER, help="Folder of the study.  [default: RECIPE-SCALE, here]")
@data_dir_option
@click.option("--parses", type=FOLDER, help="Folder that keeps parses.  [default: OUT/parses]")
@click.option("--workers", type=COUNT, help="Number of cells to run in parallel.  [default: the scale's]")
@click.option("--threads", type=COUNT, help="Number of CPU threads a cell.  [default: 1 in tiny]")
@click.option("--steps", type=COUNT, help="Number of steps of each run, for a trial.  [default: the scale's]")
@click.option("--cells", help="Cells to run without a report, e.g. trans-inv.mlm.1,trans.*.  [default: all]")
@click.option("--as-published", help="Published choices to run in addition, each alone: untied, dict-input, packing, "
              "dev-scores, span-f1.")  # fmt: skip
@click.option("--data-only", is_flag=True, help="Prepare text, tokenizer and encoded data, and stop.")
@click.option("--data-as-is", is_flag=True, help="Use encoded data made elsewhere, without its text.")
@click.option("--dry-run", is_flag=True, help="Print the steps with sizes and estimated time; run nothing.")
@click.option("--rate", type=click.FloatRange(1), help="Training speed in sub-words a second, for --dry-run.  "
              "[default: measured; 1.1 million if the scale's accelerator is missing]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@ends_well()
def command(recipe: str, out: Path | None, data_only: bool, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Reproduce RECIPE (align-mlm) from data to report.

    The same command continues an interrupted study.

    \b
    derivlang reproduce align-mlm --data-dir DIR
    derivlang reproduce align-mlm --scale small --data-dir DIR -o out --cells trans-inv.align-mlm.1
    derivlang reproduce align-mlm --scale tiny --dry-run
    """
    import time

    from derivlang.reproduce.recipes import only, recipe_of
    from derivlang.reproduce.run import Place, estimate, plan, prepare, reproduce
    from derivlang.training.needs import require_torch

    scale = options["scale"]
    study = recipe_of(
        recipe, scale, steps=options["steps"], as_published=names(options["as_published"], "--as-published")
    )
    if options["cells"] is not None:
        study = only(study, names(options["cells"], "--cells"))
    data = options["data_dir"] or (Path(os.environ["DERIVLANG_DATA"]) if "DERIVLANG_DATA" in os.environ else None)
    threads = options["threads"] or (1 if scale == "tiny" else None)
    place = Place(
        out or Path(f"{recipe}-{scale}"), data, options["parses"], options["workers"], threads, options["data_as_is"]
    )
    require_torch()
    workers = place.workers or study.workers
    if dry_run:
        rate, how = _rate(study.model, scale, threads, options["rate"])
        steps = plan(study, place, rate)
        seconds = estimate(study, steps, workers)
        if as_json:
            shown = [{"name": s.name, "command": s.command, "tokens": s.tokens, "seconds": s.seconds} for s in steps]
            click.echo(json.dumps({"steps": shown, "seconds": round(seconds), "tokens_per_second": rate}))
            return
        click.echo(f"in {place.out}:")
        for step in steps:
            size = f"{step.tokens:>14,} sub-words" if step.tokens else " " * 24
            click.echo(f"{step.seconds:8.0f} s {size}  {step.command}")
        each = sum(step.seconds for step in steps) / len(study.cells)
        click.echo(
            f"{len(study.cells)} cells: about {seconds / 60:,.0f} minutes with {workers} in parallel, "
            f"{each / 60:,.1f} a cell, at {rate:,.0f} sub-words a second ({how})"
        )
        return
    began = time.perf_counter()
    if out is None:
        say(f"writing to {place.out}{os.sep}")

    def tell(message: str) -> None:
        click.echo(message, err=True)

    found = prepare(study, place, tell) if data_only else reproduce(study, place, tell, report=not options["cells"])
    found["seconds"] = round(time.perf_counter() - began, 1)
    what = found.get("report") or found["out"]
    click.echo(json.dumps(found) if as_json else f"{what}  in {found['seconds'] / 60:.1f} minutes")


def _rate(model: str, scale: str, threads: int | None, asked: float | None) -> tuple[float, str]:
    """Return the training speed in sub-words a second, and its origin: asked, assumed or measured.

    The larger scales are not measured on a CPU, where a step of the paper's model takes minutes.
    """
    import torch

    from derivlang.training.bench import Plan, bench
    from derivlang.training.start import settings_of

    if asked is not None:
        return asked, "as asked"
    cuda = torch.cuda.is_available()
    if not cuda and scale != "tiny":
        return 1.1e6, "assumed: there is no accelerator here"
    settings, model_config, _ = settings_of(
        "made-up", {"model": model, "spec": "trans", "objective": "mlm", "threads": threads}
    )
    found = bench(settings, model_config, Plan(seconds=2.0, warm_up=2, compile=cuda))
    return float(found["tokens_per_second"]), "measured"
