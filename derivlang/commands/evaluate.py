"""`Run.evaluate`: fine-tuning and measures of a pre-trained run, or of its checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from derivlang.commands.command import Command, transforms
from derivlang.commands.folders import default_folder
from derivlang.core.dependencies import require_torch
from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.core.settings import setting
from derivlang.evaluation.settings import EvaluateChoice
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.formats.progress import reader
from derivlang.sources.request import SourceRequest

if TYPE_CHECKING:
    from pandas import DataFrame

    from derivlang.evaluation.evaluate import Evaluated


@dataclass(frozen=True, eq=False, repr=False)
class Evaluate(Command["DataFrame"], EvaluateChoice):
    """Evaluate RUN, the folder of a pre-trained run, and write RUN/evaluation.json.

    For each task, it measures the upper bound (SUP), zero-shot transfer (ZS) and the gap between them on the test
    split, over several seeds. The task blimp compares the log-likelihoods of minimal pairs in both languages, without
    fine-tuning. It also measures how well the embeddings and the contextual states of the two languages align, and the
    perplexity. The same command continues an interrupted evaluation.

    The defaults are the published settings, which do not suit small models. An option of fine-tuning takes one number
    for all tasks, or one for each, such as --epochs 1,2.

    RUN@3500 is the checkpoint of step 3500, also of an unfinished run. Its results are in RUN/evaluation. --init
    evaluates a checkpoint that was trained elsewhere, with its own tokenizer, on a derived language.

    \b
    derivlang evaluate RUN --task pos --epochs 1 --lr 2e-3 --train-examples 4000
    derivlang evaluate RUN --measure contextual,perplexity --every-checkpoint
    derivlang evaluate RUN --measure alignment
    derivlang evaluate RUN --task blimp:pairs.jsonl --measure none
    derivlang evaluate --init FOLDER --t inv --source demo --measure links,retrieval
    """

    run: PathLike | None = None
    _: KW_ONLY
    init: str | None = setting(
        None, "Checkpoint that was trained elsewhere.", metavar="FOLDER|hub:NAME", requires="--t, --source",
        excludes="RUN, --every-checkpoint",
    )  # fmt: skip
    spec: str | None = transforms("Transforms of the derived language.", only_with="--init")
    source: str | None = setting(None, "Name or path of the source of held-out text.", only_with="--init")
    out: OptionalPath = setting(
        None, "Folder of the results.", also="-o", unset="SOURCE.TRANSFORMS.…, here", writes=True, only_with="--init"
    )
    target: str | None = setting(
        None, "Language to evaluate on, of a run of several.", unset="each in turn", excludes="--init"
    )
    step: int | None = setting(
        None, "Step of a checkpoint of the run.", option=False, minimum=0, unset="the finished model"
    )

    def __call__(self) -> DataFrame:
        """Return the scores (`derivlang.scores`). Results that are there already are kept."""
        from derivlang.evaluation.collect import scores

        (*_, (_, _, folder)) = self.each()
        return scores(folder)

    def check(self) -> None:
        """Raise UsageError for settings that do not fit together."""
        from derivlang.evaluation.settings import asked_for

        asked_for(self, self.given, lambda message: None)

    def each(self) -> Iterator[tuple[int | None, Evaluated, Path]]:
        """Yield (step, what was evaluated, the run) of each checkpoint that is asked for."""
        require_torch()
        from derivlang.evaluation.checks import targets_of
        from derivlang.evaluation.evaluate import evaluations
        from derivlang.evaluation.settings import asked_for
        from derivlang.training.checkpoint import run_and_step
        from derivlang.training.run_folder import asked_steps

        run = self._checkpoint() if self.run is None else Path(self.run)
        asked = asked_for(self, self.given, warn)
        folder, step = run_and_step(run)
        steps = asked_steps(folder, self.step if step is None else step, every=self.every_checkpoint)
        targets = targets_of(folder, self.target, asked, warn)
        for one, evaluated in evaluations(folder, targets, steps):
            yield one, evaluated, folder

    def _checkpoint(self) -> Path:
        """Return the folder of the checkpoint of --init, which is made unless it is there. UsageError without one."""
        from derivlang.evaluation.checkpoint_run import write_checkpoint_run
        from derivlang.pipeline import Pipeline

        if self.init is None or self.source is None:
            raise UsageError("there is nothing to evaluate", fix="name a RUN, or give --init FOLDER", id="usage")
        spec, out = str(Pipeline.parse(str(self.spec))), self.path("out")
        if out is None:
            out = default_folder(self.source, spec, {"init": self.init})
            reader().begins(f"{Path(self.init).name if ':' not in self.init else self.init}: results in {out}{os.sep}")
        write_checkpoint_run(out, self.init, spec, self.part(SourceRequest, source=self.source), parser=self.parser)
        return out
