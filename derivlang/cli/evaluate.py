"""`derivlang evaluate`: fine-tuning and measures of a pre-trained run."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import Bar, ends_well, names, warn
from derivlang.core.errors import UsageError

_FITTING = ("epochs", "lr", "batch_size", "max_length", "train_examples", "dev_examples")


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


def _each(kind: type[int] | type[float]) -> Any:
    """An option of fine-tuning: a number for all tasks, or one for each, with commas."""

    def convert(context: click.Context, option: click.Parameter, value: str | None) -> Numbers | None:
        try:
            return None if value is None else Numbers(option.opts[0], tuple(kind(part) for part in value.split(",")))
        except ValueError:
            what = "a number" if kind is float else "a whole number"
            fix = f"{what}, or one for each task, with commas"
            raise UsageError(f"{value!r} is none", where=option.opts[0], fix=fix, id="usage") from None

    return {"metavar": "N[,N...]", "callback": convert}


@click.command("evaluate", no_args_is_help=True)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--task", "tasks", default="none", show_default=True,
              help="pos, ner, xnli, or several: pos,ner; pos:French-GSD is another set.")  # fmt: skip
@click.option("--regime", "regimes", default="sup,zs", show_default=True,
              help="sup: fine-tuned on the derived language; zs: on the source.")  # fmt: skip
@click.option("--seeds", type=int, default=3, show_default=True, help="Fine-tunings of each: seeds 1, 2, …")
@click.option("--epochs", **_each(int), help="Passes over the examples.  [default: 10; xnli: 5]")
@click.option("--lr", **_each(float), help="Learning rate of the first step.  [default: 2e-05]")
@click.option("--batch-size", **_each(int), help="Sentences or pairs in a batch.  [default: 32]")
@click.option("--max-length", **_each(int), help="Sub-words in a row; longer ones are cut at words.  [default: 128]")
@click.option("--train-examples", **_each(int), help="Only so many examples, by a keyed ranking.  [default: all]")
@click.option("--dev-examples", **_each(int), help="Of dev, which chooses the epoch, likewise.  [default: all]")
@click.option("--measure", "measures", default="alignment,contextual,perplexity", show_default=True,
              help="What else to measure; none for tasks alone.")  # fmt: skip
@click.option("--pairs", type=int, default=500, show_default=True, help="Sentence pairs of the contextual measure.")
@click.option("--sentences", type=int, default=2000, show_default=True, help="Sentences of the perplexity.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Where corpora lie; else $DERIVLANG_DATA, then the hub."
)
@click.option("--parser", help="What finds the trees that syn needs: english (bundled), stanza, spacy:NAME, a folder.")
@click.option("--parses", type=click.Path(path_type=Path),
              help="Where parses are kept.  [default: $DERIVLANG_PARSES, then the user's cache]")  # fmt: skip
@click.option("--threads", type=click.IntRange(1),
              help="Of the processor; more or fewer give slightly other numbers.  [default: as pretrain]")  # fmt: skip
@click.option("--device", help="As torch names it: cpu, cuda, cuda:1.  [default: a GPU where there is one]")
@click.option("--force", is_flag=True, help="Fine-tune again what is there already.")
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
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from derivlang.evaluation.evaluate import Options, Progress, evaluate, measure_of
    from derivlang.evaluation.tasks import regime_of, task_of

    asked = _listed(tasks, "--task")
    changes = [{name: options[name].of(i, len(asked)) for name in _FITTING if options[name]} for i in range(len(asked))]
    for name in _FITTING:
        del options[name]
    settings = Options(
        tasks=tuple(task_of(name).with_settings(**changed) for name, changed in zip(asked, changes, strict=True)),
        regimes=tuple(dict.fromkeys(regime_of(name) for name in _listed(regimes, "--regime"))),
        measures=tuple(dict.fromkeys(measure_of(name) for name in _listed(measures, "--measure"))),
        **options,
    )
    if not settings.tasks and not settings.measures:
        raise UsageError("there is nothing to evaluate", fix="--task pos, or --measure alignment", id="usage")
    with Bar() as bar:
        found = evaluate(run, settings, Progress(warn, lambda what, total: bar.start(total, what=what), bar.step))
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
    found = names(text)
    if not found:
        raise UsageError("names nothing", where=option, fix="`none`, if nothing is meant", id="usage")
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
            click.echo(
                f"  {title:<18}{metric:<12}{score['mean']:>7.1f}  [{score['low']:.1f}, {score['high']:.1f}]{spread}"
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
