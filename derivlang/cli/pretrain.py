"""`derivlang pretrain`: train a model on a source and its derived language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import Bar, ends_well, find_options, warn

_HELP = {"help_option_names": ["-h", "--help"]}


@click.command("pretrain", no_args_is_help=True, context_settings=_HELP)
@click.option("--source", required=True, help="A source's name or path.")
@click.option("--t", "spec", required=True, help="The derived language, e.g. trans,inv.")
@click.option(
    "--objective", default="mlm", show_default=True, help="e.g. align-mlm:alpha=10; `derivlang ls` lists all."
)
@click.option("--model", default="tiny", show_default=True, help="tiny, roberta-8, or a FILE.toml.")
@click.option("--steps", type=int, help="Updates of the weights.  [default: the model's]")
@click.option("--tokens", type=int, help="Instead of steps: sub-words, of both languages together.")
@click.option("--epochs", type=float, help="Instead of steps: passes over both corpora.")
@click.option("--batch-size", type=int, help="Rows a step.  [default: the model's]")
@click.option("--seq-len", type=int, help="Sub-words a row.  [default: the model's]")
@click.option("--accumulate", type=int, help="Micro-batches a step.  [default: 1]")
@click.option("--learning-rate", type=float, help="At its highest.  [default: the model's]")
@click.option("--warmup", type=float, help="Share of the steps in which it rises.  [default: the model's]")
@click.option("--weight-decay", type=float, help="Of matrices.  [default: 0]")
@click.option("--mask", type=float, help="Share of sub-words that are hidden.  [default: the model's]")
@click.option("--tie/--no-tie", default=None, help="Input and output embeddings are one matrix.  [default: tie]")
@click.option("--language-ids/--no-language-ids", default=None,
              help="Tell the model each position's language.  [default: as the objective does]")  # fmt: skip
@click.option("--vocab-size", type=int, help="Of the tokenizer.  [default: the model's]")
@click.option("--dict-coverage", "coverage", help="Percent of the entries.  [default: 25]")
@click.option("--dict-by", "dictionary_by", type=click.Choice(["random", "frequency", "mass"]),
              help="Which entries.  [default: random]")  # fmt: skip
@click.option("--dict-seed", "dictionary_seed", type=int, help="Of entries and pairs.  [default: 1]")
@click.option("--parallel", help="Percent of the sentences that are pairs (xlm).  [default: 25]")
@click.option("--packing", type=click.Choice(["sentences", "stream"]),
              help="Whole sentences, or a stream cut every --seq-len.  [default: sentences]")  # fmt: skip
@click.option("--seed", type=int, help="Of weights, masks and the order of rows.  [default: 1]")
@click.option("--limit", type=click.IntRange(1), help="At most so many documents.")
@click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), default="auto", show_default=True,
              help="auto: bf16 on an accelerator.")  # fmt: skip
@click.option("--compile/--no-compile", "compiled", default=None, help="torch.compile.  [default: on an accelerator]")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The run's folder.")
@click.option("--data", type=click.Path(path_type=Path), help="Encoded data, shared by runs.  [default: OUT/data]")
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A tokenizer's folder.  [default: train one]")
@click.option("--dictionary", type=click.Path(path_type=Path), help="Of `dict --level token`.  [default: make one]")
@click.option("--save-every", type=click.IntRange(1), help="Steps between checkpoints.  [default: a tenth of all]")
@click.option("--keep", type=click.IntRange(1), default=2, show_default=True, help="Checkpoints.")
@click.option("--log-every", type=click.IntRange(1), default=50, show_default=True, help="Steps.")
@click.option("--tensorboard", type=click.Path(path_type=Path), help="Write its events into this folder, too.")
@click.option("--threads", type=click.IntRange(1), help="Of the processor.  [default: 1 for a narrow model, else all]")
@click.option("--parser", help="What finds the trees that syn needs.")
@click.option("--parses", type=click.Path(path_type=Path), help="Where parses are kept.")
@find_options
@click.option("--data-as-is", is_flag=True, help="Take what --data holds without its source, which need not be there.")
@click.option("--data-only", is_flag=True, help="Prepare the data and stop.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint.")
@click.option("--force", is_flag=True, help="Replace a run that the folder holds.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@ends_well("the same command with --resume")
def command(source: str, out: Path, as_json: bool, **options: Any) -> None:
    """Pre-train a model on SOURCE and its derived language; nothing but the model and its log is written.

    \b
    derivlang pretrain --source wikitext2 --t trans,inv --objective align-mlm --data-dir DIR -o run
    derivlang pretrain --source demo --t trans,inv --vocab-size 300 --steps 20 -o run
    """
    from derivlang.cli.options import request_of
    from derivlang.core.errors import UsageError
    from derivlang.training.needs import require_torch

    require_torch()
    if options["resume"] and options["force"]:
        raise UsageError("go on with a run, or replace it", where="--resume and --force", id="bad-value")
    from derivlang.training.loop import Watch
    from derivlang.training.prepare import Where, prepare_data
    from derivlang.training.processes import is_main
    from derivlang.training.run import Duration, Talk, pretrain
    from derivlang.training.start import settings_of

    settings, design, watch = settings_of(source, options)
    request = request_of(source, options)
    places = ("data", "tokenizer", "dictionary", "parser", "parses", "data_as_is")
    where = Where(out, *(options[name] for name in places))
    if options["data_only"]:
        found = prepare_data(settings, request, where, warn).data
        click.echo(f"{found.n_subwords:,} sub-words in {found.n_instances:,} rows")
        return
    duration = Duration(options["steps"], options["tokens"], options["epochs"])
    known = duration.tokens is None and duration.epochs is None
    done = 0

    def logged(step: int, entry: dict[str, Any]) -> None:
        nonlocal done
        if not done:
            bar.start(settings.steps if known else None, unit="step")
        bar.step(step - done, loss=f"{entry['loss']:.3f}")
        done = step

    with Bar(shown=not as_json) as bar:
        result = pretrain(
            settings,
            request,
            where,
            duration=duration,
            design=design,
            resume=options["resume"],
            force=options["force"],
            talk=Talk(warn, bar.say, Watch(**{**watch, "progress": logged})),
        )
    if not is_main():
        return
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    parts = ", ".join(f"{name} {value:.3f}" for name, value in result["parts"].items())
    click.echo(
        f"{result['steps']:,} steps, {result['tokens']:,} sub-words, {result['parameters']:,} parameters; {parts}"
    )
    click.echo(f"{out}  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} sub-words a second")
