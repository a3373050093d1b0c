"""`derivlang reproduce`: a paper's study as one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command("reproduce", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("recipe")
@click.option("--scale", type=click.Choice(["tiny", "small", "paper"]), default="tiny", show_default=True,
              help="2 cores and half an hour; an accelerator and hours; an accelerator and days.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Its folder.  [default: RECIPE-SCALE]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where corpora lie; else $DERIVLANG_DATA.")
@click.option("--parses", type=click.Path(path_type=Path), help="Where parses are kept.  [default: OUT/parses]")
@click.option("--workers", type=click.IntRange(1), help="Cells side by side.  [default: the scale's]")
@click.option("--threads", type=click.IntRange(1), help="Of the processor, a cell.  [default: 1 in tiny]")
@click.option("--steps", type=int, help="Of each run, for a trial.  [default: the scale's]")
@click.option("--only", help="Only the cells whose names hold this.")
@click.option("--as-published", default="", help="Also with published choices, one at a time: untied, dict-input, "
              "packing, dev-scores, span-f1.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the steps with sizes and estimated time; run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(recipe: str, out: Path | None, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Reproduce RECIPE (align-mlm) from data to report; the same command goes on where it stopped.

    \b
    derivlang reproduce align-mlm --scale tiny --data-dir DIR -o out
    derivlang reproduce align-mlm --scale tiny --dry-run
    """
    import os
    import time
    from dataclasses import replace

    from derivlang.cli.options import names
    from derivlang.core.errors import UsageError
    from derivlang.reproduce.recipes import recipe_of
    from derivlang.reproduce.run import Place, estimate, plan, reproduce
    from derivlang.training.needs import require_torch

    scale = options["scale"]
    study = recipe_of(recipe, scale, steps=options["steps"], as_published=names(options["as_published"]))
    if options["only"]:
        kept = tuple(cell for cell in study.cells if options["only"] in cell.name)
        if not kept:
            raise UsageError(f"no cell's name holds {options['only']!r}", where="--only", id="no-cell")
        study = replace(study, cells=kept)
    data = options["data_dir"] or (Path(os.environ["DERIVLANG_DATA"]) if "DERIVLANG_DATA" in os.environ else None)
    threads = options["threads"] or (1 if scale == "tiny" else None)
    place = Place(out or Path(f"{recipe}-{scale}"), data, options["parses"], options["workers"], threads)
    require_torch()
    if dry_run:
        from derivlang.training.bench import Plan, bench
        from derivlang.training.start import settings_of

        settings, design, _ = settings_of(
            "made-up", {"model": study.model, "spec": "trans", "objective": "mlm", "threads": threads}
        )
        rate = bench(settings, design, Plan(seconds=2.0, warm_up=2))["tokens_per_second"]
        steps = plan(study, place, rate)
        seconds = estimate(steps, place.workers or study.workers)
        if as_json:
            shown = [{"name": s.name, "command": s.command, "tokens": s.tokens, "seconds": s.seconds} for s in steps]
            click.echo(json.dumps({"steps": shown, "seconds": round(seconds), "tokens_per_second": rate}))
            return
        for step in steps:
            size = f"{step.tokens:>14,} sub-words" if step.tokens else " " * 24
            click.echo(f"{step.seconds:8.0f} s {size}  {step.command}")
        click.echo(
            f"{len(study.cells)} cells: about {seconds / 60:,.0f} minutes with "
            f"{place.workers or study.workers} side by side, at {rate:,} sub-words a second"
        )
        return
    began = time.perf_counter()
    found = reproduce(study, place, lambda message: click.echo(message, err=True))
    found["seconds"] = round(time.perf_counter() - began, 1)
    click.echo(json.dumps(found) if as_json else f"{found['report']}  in {found['seconds'] / 60:.1f} minutes")
