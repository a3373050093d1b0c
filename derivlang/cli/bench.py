"""`derivlang bench`: measure speed on this machine."""

from __future__ import annotations

import json
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, tell
from derivlang.cli.settings import settings_options
from derivlang.cli.types import Number
from derivlang.training.settings import Machine, TrainingSettings

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("bench", context_settings=_HELP)
def command() -> None:
    """Measure speed on this machine.

    \b
    derivlang bench train --model tiny --seconds 1
    """


@command.command("train", context_settings=_HELP, short_help="Measure the speed of pre-training.")
@settings_options(
    TrainingSettings,
    only=("model", "batch_size", "seq_len", "vocab_size"),
    unset={"batch_size": "the model's, or on a CPU what fits into memory"},
)
@settings_options(Machine)
@option("--seconds", type=Number(0.1), default=10.0, show_default=True, help="Number of seconds to measure.")
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def train(seconds: float, as_json: bool, **options: Any) -> None:
    """Measure the sub-words per second of MLM pre-training, and compare them with the rate of matrix products.

    \b
    derivlang bench train --model roberta-8
    derivlang bench train --model tiny --seconds 1
    """
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.training.bench import Plan, bench
    from derivlang.training.options import settings_of

    settings, model_config, log_settings = settings_of("made-up", {**options, "spec": "trans,inv", "objective": "mlm"})
    shrink = options["batch_size"] is None
    figures = bench(settings, model_config, Plan(seconds, compile=log_settings.compile, shrink=shrink))
    if figures["batch_size"] != settings.batch_size:
        tell(
            f"{figures['batch_size']} rows per step, not the model's {settings.batch_size}: more do not fit into memory"
        )
    if as_json:
        echo(json.dumps(figures))
        return
    echo(
        f"{figures['tokens_per_second']:,} sub-words per second ({figures['device']}, {figures['precision']}, "
        f"{figures['threads']} threads): {100 * figures['matrix_rate_fraction']:.1f} % of the matrix rate, "
        f"{figures['matrix_tflops']:,} Tflop a second at {figures['gflop_per_token']:.4f} Gflop a sub-word"
    )
    echo(
        f"{figures['parameters']:,} parameters, {figures['peak_memory_mb']:,} MB; "
        f"the loader makes {figures['loader_tokens_per_second']:,} sub-words per second"
    )
