"""Estimates of the duration of a study's parts, for a dry run."""

from __future__ import annotations

from collections.abc import Sequence

from derivlang.evaluation.finetune_settings import REGIMES
from derivlang.evaluation.tasks.registry import find_task

# Seconds for the parts that all cells share, mostly parsing at 19,000 words a second.
SHARED = {"tiny": 180.0, "small": 540.0, "paper": 5_500.0}
# Seconds for a process to start, compile and save, or to read the tasks and measure. Assumed, except for tiny.
START = {"tiny": 12.0, "small": 50.0, "paper": 50.0}
# Minimum seconds of a fine-tuning step, as an accelerator waits for kernel launches. Assumed, except for tiny.
STEP = {"tiny": 0.004, "small": 0.015, "paper": 0.015}
# Number of examples in train, dev and test, and of sub-words in a row.
_SIZES = {"pos": (12_544, 2_001, 2_077, 22), "ner": (20_000, 10_000, 10_000, 14), "xnli": (392_702, 2_490, 5_010, 40)}


def fine_tuning(options: Sequence[str], rate: float, a_step: float) -> float:
    """Return the estimated seconds of an evaluation's fine-tuning and tests.

    rate: training speed in sub-words a second. a_step: minimum seconds of a step.
    """
    asked = dict(zip(options[::2], options[1::2], strict=True))
    tasks = [name for name in asked["--task"].split(",") if name != "none"]

    def number(option: str, task: int, default: int) -> int:
        given = asked.get(option, str(default)).split(",")
        return int(given[task % len(given)])

    total = 0.0
    for i, name in enumerate(tasks):
        kind = name.partition(":")[0]
        (train, dev, test, length), settings = _SIZES[kind], find_task(kind).defaults
        train, dev = min(train, number("--train-examples", i, train)), min(dev, number("--dev-examples", i, dev))
        epochs, batch = number("--epochs", i, settings.epochs), number("--batch-size", i, settings.batch_size)
        steps = epochs * -(-train // batch)
        tested = (epochs + 0.5) * dev + 1.5 * test  # dev after each epoch; ZS is tested on the source as well
        one = steps * max(a_step, batch * length / rate) + tested * length / (3 * rate)
        total += number("--seeds", 0, 3) * len(REGIMES) * one
    return total
