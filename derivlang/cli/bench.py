"""`derivlang bench`: how fast things go on this machine."""

from __future__ import annotations

import json
from typing import Any

import click

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("bench", context_settings=_HELP)
def command() -> None:
    """How fast things go on this machine.

    \b
    derivlang bench train --model tiny --seconds 1
    """


@command.command("train", context_settings=_HELP)
@click.option("--model", default="tiny", show_default=True, help="tiny, roberta-8, or a FILE.toml.")
@click.option("--batch-size", type=int, help="Rows a step.  [default: the model's]")
@click.option("--seq-len", type=int, help="Sub-words a row.  [default: the model's]")
@click.option("--vocab-size", type=int, help="Of one language.  [default: the model's]")
@click.option("--precision", type=click.Choice(["auto", "fp32", "bf16"]), default="auto", show_default=True,
              help="auto: bf16 on an accelerator.")  # fmt: skip
@click.option("--compile/--no-compile", "compiled", default=None, help="torch.compile.  [default: on an accelerator]")
@click.option("--threads", type=click.IntRange(1), help="Of the processor.  [default: 1 for a narrow model, else all]")
@click.option("--seconds", type=click.FloatRange(0.1), default=10.0, show_default=True, help="Of measuring.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def train(seconds: float, as_json: bool, **options: Any) -> None:
    """Sub-words a second of pre-training (MLM), and the share of this machine's matrix rate that is.

    \b
    derivlang bench train --model roberta-8
    derivlang bench train --model tiny --seconds 1
    """
    from derivlang.training.needs import require_torch

    require_torch()
    from derivlang.training.bench import Plan, bench
    from derivlang.training.start import settings_of

    settings, design, watch = settings_of("made-up", {**options, "spec": "trans,inv", "objective": "mlm"})
    found = bench(settings, design, Plan(seconds, compile=watch["compile"]))
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(
        f"{found['tokens_per_second']:,} sub-words a second ({found['device']}, {found['precision']}, "
        f"{found['threads']} threads): {100 * found['matrix_rate_fraction']:.1f} % of the matrix rate, "
        f"{found['matrix_tflops']:,} Tflop a second at {found['gflop_per_token']:.4f} Gflop a sub-word"
    )
    click.echo(
        f"{found['parameters']:,} parameters, {found['peak_memory_mb']:,} MB; "
        f"the loader makes {found['loader_tokens_per_second']:,} sub-words a second"
    )
