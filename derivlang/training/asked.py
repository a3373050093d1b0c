"""Options of a run that exclude each other or have no effect, for the command and for `derivlang.pretrain` alike.

options: the values by `Declared.key`, None for what was not given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import declared
from derivlang.training.languages import tokenizer_of
from derivlang.training.objectives.base import Objective
from derivlang.training.objectives.xlm_align import XlmAlign
from derivlang.training.settings import Duration, TrainingSettings


def check_size(vocab_size: int | None, tokenizer: Path | None) -> None:
    """Raise UsageError if a tokenizer that is there has another size. None: not asked for; still to be trained."""
    if vocab_size is None or tokenizer is None or tokenizer_of(tokenizer).size == vocab_size:
        return
    raise UsageError(
        f"{tokenizer} has {tokenizer_of(tokenizer).size:,} entries",
        where="--vocab-size",
        fix="leave out --vocab-size; to train a tokenizer, leave out --tokenizer, or give --embeddings new with --init",
        id="other-tokenizer",
    )


def warn_of_unused(
    options: Mapping[str, Any],
    settings: TrainingSettings,
    duration: Duration,
    objective: Objective,
    warn: Callable[[str], None],
) -> None:
    """Warn of a setting that the objective does not read, and of a run that ends before its objective begins.

    The cells of a study, which give factors, share settings: nothing is said of these.
    """
    for one in declared(TrainingSettings).values() if not options["factors"] else ():
        if one.subject and one.name not in objective.reads() and options[one.key] is not None:
            warn(f"{objective.name} has no {one.subject}, so {one.option} has no effect")
    by_steps = duration.tokens is None and duration.epochs is None and not options.get("data_only")
    if by_steps and isinstance(objective, XlmAlign) and objective.start >= settings.steps:
        warn(f"the run ends after {counted(settings.steps, 'step')}, before the alignment of {objective} begins")
