"""`derivlang evaluate`: fine-tuning and measures of a pre-trained run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import Bar, data_dir_option, ends_well, events, names, parser_options
from derivlang.cli.settings import settings_options, type_of
from derivlang.cli.types import FOLDER
from derivlang.core.errors import UsageError
from derivlang.core.settings import declared
from derivlang.evaluation.finetune_settings import FinetuneSettings, regime_of
from derivlang.evaluation.settings import EvaluateOptions, measure_of
from derivlang.evaluation.tasks.registry import TASKS, task_of


@dataclass(frozen=True, slots=True)
class Numbers:
    """What an option gives for the tasks."""

    option: str
    values: tuple[int | float, ...]

    def of(self, task: int, n_tasks: int) -> int | float:
        """That of a task, by its place. UsageError where there are neither one nor as many as there are tasks."""
        if len(self.values) not in (1, n_tasks):
            raise UsageError(
                f"{len(self.values)} numbers for {n_tasks} tasks",
                where=self.option,
                fix="one, or one for each",
                id="usage",
            )
        return self.values[task % len(self.values)]


def _numbers(context: click.Context, option: click.Parameter, value: str | None) -> Numbers | None:
    """A setting of fine-tuning: a number for all tasks, or one for each, with commas."""
    if value is None:
        return None
    one = declared(FinetuneSettings)[option.name or ""]
    whole = type_of(one)
    try:
        numbers = [
            float(part) if one.kind is float else whole.convert(part, option, context) for part in value.split(",")
        ]
    except ValueError:
        fix = "a number, or one for each task, with commas"
        raise UsageError(f"{value!r} is not a number", where=option.opts[0], fix=fix, id="usage") from None
    for number in numbers:
        one.check(number)
    return Numbers(option.opts[0], tuple(numbers))


@click.command("evaluate", no_args_is_help=True)
@click.argument("run", type=FOLDER)
@click.option("--task", "tasks", default="none", show_default=True,
              help=f"Tasks: {', '.join(sorted(TASKS.built_in))}. pos:French-GSD is another set, pos:A+B has train and "
              "dev of A and test of B.")  # fmt: skip
@click.option("--regime", "regimes", default="sup,zs", show_default=True,
              help="Regimes: sup is fine-tuned on the derived language, zs on the source.")  # fmt: skip
@settings_options(EvaluateOptions, only=("seeds",))
@settings_options(FinetuneSettings, without=("frozen",), metavar="N[,N...]", callback=_numbers)
@settings_options(FinetuneSettings, only=("frozen",))
@click.option("--measure", "measures", default="alignment,contextual,perplexity", show_default=True,
              help="Further measures; none for tasks alone.")  # fmt: skip
@settings_options(EvaluateOptions, only=("pairs", "sentences"))
@data_dir_option
@parser_options
@settings_options(EvaluateOptions, only=("threads", "device", "force"))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@ends_well()
def command(run: Path, tasks: str, regimes: str, measures: str, as_json: bool, **options: Any) -> None:
    """Evaluate RUN, the folder of a pre-trained run, and write RUN/evaluation.json.

    Upper bound (SUP), zero-shot (ZS) and the gap between them, on test, by several seeds with 95 % intervals; how well
    embeddings and contextual states of the two languages align; perplexity. The same command goes on where one was
    interrupted. Small models take other settings than the published ones, which are the defaults; an option of
    fine-tuning has a number for all tasks, or one for each: --epochs 1,2.

    \b
    derivlang evaluate RUN --task pos --epochs 1 --lr 2e-3 --train-examples 4000    # 2 s each, on a small model
    derivlang evaluate RUN --measure alignment
    """
    from derivlang.training.needs import require_torch

    require_torch()
    from derivlang.evaluation.evaluate import evaluate

    asked = _listed(tasks, "--task")
    frozen = {"frozen": options.pop("frozen")}
    fitting = set(declared(FinetuneSettings)) - set(frozen)
    changes = [{name: options[name].of(i, len(asked)) for name in fitting if options[name]} for i in range(len(asked))]
    for name in fitting:
        del options[name]
    settings = EvaluateOptions(
        tasks=tuple(
            task_of(name).with_settings(**changed, **frozen) for name, changed in zip(asked, changes, strict=True)
        ),
        regimes=tuple(dict.fromkeys(regime_of(name) for name in _listed(regimes, "--regime"))),
        measures=tuple(dict.fromkeys(measure_of(name) for name in _listed(measures, "--measure"))),
        **options,
    )
    if not settings.tasks and not settings.measures:
        raise UsageError("there is nothing to evaluate", fix="--task pos, or --measure alignment", id="usage")
    with Bar():
        found = evaluate(run, settings, events())
    shown = {task.name: found["tasks"][task.name] for task in settings.tasks}
    shown |= {measure: found[measure] for measure in settings.measures if measure in found}
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for task in settings.tasks:
        _show_task(task.name, shown.pop(task.name))
    _show_measures(shown)


def _listed(text: str, option: str) -> tuple[str, ...]:
    """Names of a list with commas; `none` is no name."""
    found = names(text, option)
    return () if found == ("none",) else found


def _show_task(name: str, entry: dict[str, Any]) -> None:
    settings = entry["settings"]
    click.echo(
        f"{name}: {settings['train']:,} examples, {settings['epochs']} epochs, lr {settings['lr']:g}; "
        f"{settings['test']:,} of test"
    )
    for part, title in (("sup", "SUP"), ("zs", "ZS"), ("delta", "SUP - ZS"), ("source", "ZS, on the source")):
        for metric, score in entry.get(part, {}).items():
            spread = (
                "" if score["deviation"] is None else f"  ± {score['deviation']:.1f} over {len(score['seeds'])} seeds"
            )
            by_chance = entry["chance"].get(metric) if part != "delta" else None
            chance = "" if by_chance is None else f"  (chance {by_chance:.1f})"
            click.echo(
                f"  {title:<19}{metric:<12}{score['mean']:>7.1f}  [{score['low']:.1f}, {score['high']:.1f}]"
                f"{spread}{chance}"
            )


def _show_measures(shown: dict[str, Any]) -> None:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{value:.1f}"

    if "alignment" in shown:
        found = shown["alignment"]
        click.echo(
            f"alignment of embeddings: {percent(found['all'])} % of {found['rows']:,} rows, "
            f"{percent(found['heldout'])} % of {found['rows_heldout']:,} outside the dictionary; "
            f"CSLS {percent(found['csls'])}, {percent(found['csls_heldout'])} %"
        )
    for layer in shown.get("contextual", ()):
        click.echo(f"layer {layer['layer']}: words {layer['words']:.1f} %, sentences {layer['sentences']:.1f} %")
    if "perplexity" in shown:
        found = shown["perplexity"]
        ours, theirs = (percent(found[side]) for side in ("source", "derived"))
        click.echo(f"perplexity: {ours} of the source, {theirs} of the derived language")
