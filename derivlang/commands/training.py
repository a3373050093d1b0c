"""`pretrain`, `Run.evaluate` and `report`: runs and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.commands.shared import InFolder, PathLike, local, path_of, request_of
from derivlang.core.keywords import takes
from derivlang.core.messages import warn
from derivlang.core.settings import declared, given, with_defaults
from derivlang.display.bar import ProgressBar
from derivlang.evaluation.finetune_settings import USUAL_REGIMES, FinetuneSettings
from derivlang.evaluation.settings import EvaluateOptions
from derivlang.formats.places import located
from derivlang.sources.request import SourceRequest
from derivlang.store.settings import ExportOptions
from derivlang.training.settings import Duration, LogSettings, Machine, RunPaths, TrainingSettings

if TYPE_CHECKING:
    from pandas import DataFrame

_REGIMES = ",".join(USUAL_REGIMES)
_TRAINING = (TrainingSettings, Duration, RunPaths, Machine, LogSettings)


class Run(InFolder):
    """A pre-trained run. path: its folder."""

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json. Raise StoreError if the folder is not a run, or was changed."""
        from derivlang.training.run_folder import read

        return read(self.path)

    @takes(EvaluateOptions, FinetuneSettings)
    def evaluate(
        self,
        *,
        task: str | Sequence[str] = "none",
        regime: str | Sequence[str] = _REGIMES,
        measure: str | Sequence[str] | None = None,
        step: int | None = None,
        every_checkpoint: bool = False,
        data_dir: PathLike | None = None,
        parser: str | None = None,
        parses: PathLike | None = None,
        **options: Any,
    ) -> DataFrame:
        """Evaluate the run, as `derivlang evaluate` does, and return its scores (`derivlang.scores`).

        task, regime, measure: names, as a list or with commas. measure: None for the usual ones. step: of a checkpoint,
        None for the finished model. every_checkpoint: evaluate each checkpoint in turn. data_dir, parser, parses: as of
        `make`. A setting of fine-tuning is one value for all tasks, or a list with one for each. Results that are there
        already are kept. Raise DerivlangError as the command.
        """
        from derivlang.evaluation.asked import Numbers, asked_for
        from derivlang.evaluation.collect import scores
        from derivlang.evaluation.evaluate import Evaluation
        from derivlang.training.run_folder import asked_steps

        numbers = {
            name: Numbers(str(one.option), _several(options[name]))
            for name, one in declared(FinetuneSettings).items()
            if not one.commas and options.get(name) is not None
        }
        names = {"tasks": _commas(task), "regimes": _commas(regime), "measures": measure and _commas(measure)}
        places = {"data_dir": data_dir and Path(data_dir), "parser": parser, "parses": parses and Path(parses)}
        typed = {*options, *({"regimes"} if regime != _REGIMES else ()), *({"measures"} if measure else ())}
        asked = asked_for({**options, **places, **numbers, **names}, typed, warn)
        steps = asked_steps(self.path, step, every=every_checkpoint)
        evaluation = Evaluation(self.path, asked, several=len(steps) > 1)
        for one in steps:
            with ProgressBar():
                evaluation.of(one)
        return scores(self.path)

    @takes(ExportOptions, without=("split", "format", "documents", "escape_formulas"))
    def export(self, out: PathLike, *, step: int | None = None, **options: Any) -> dict[str, Any]:
        """Write the model with a tokenizer for `transformers`, as `derivlang export --format transformers` does.

        out: the folder to write. step: of a checkpoint, None for the finished model. Return {"out", "language",
        "entries"}: the language and the size of the tokenizer. Raise DerivlangError as the command.
        """
        from derivlang.core.extras import require_torch

        require_torch()
        from derivlang.evaluation.export import export_model
        from derivlang.evaluation.trained import PretrainedRun
        from derivlang.training.languages import DERIVED, SOURCE

        asked = ExportOptions(**given(ExportOptions, options))
        trained = PretrainedRun.load(self.path, step)
        return export_model(trained, SOURCE if asked.source else DERIVED, located(out), force=asked.force)


@takes(*_TRAINING, SourceRequest)
def pretrain(
    source: PathLike | None,
    spec: str | None,
    out: PathLike,
    *,
    resume: bool = True,
    force: bool = False,
    data_only: bool = False,
    parser: str | None = None,
    parses: PathLike | None = None,
    **options: Any,
) -> Run:
    """Pre-train a model on a source and its derived language, as `derivlang pretrain` does.

    source, spec: may be None for an objective that reads nothing but sentence pairs, with the argument `pairs`. out:
    the folder of the run. resume: whether a run that is there goes on, or is kept if it is finished; it must be of the
    same settings. data_only: prepare the data, and stop. parser, parses: as of `make`. Raise DerivlangError as the
    command.
    """
    from derivlang.core.extras import require_torch

    require_torch()
    from derivlang.training.options import settings_of
    from derivlang.training.plan import plan_of
    from derivlang.training.run import Callbacks, prepare
    from derivlang.training.run import pretrain as run

    parsed = Path(parses) if parses is not None else None
    values = with_defaults(
        _TRAINING, options | {"spec": spec, "parser": parser, "parses": parsed, "data_only": data_only}
    )
    settings, model_config, log_settings = settings_of(None if source is None else str(source), values)
    request = None if source is None else request_of(source, options)
    resume = resume and not force
    plan = plan_of(settings, model_config, request, local(out, "runs"), values, resume=resume, warn=warn)
    with ProgressBar() as bar:
        if data_only:
            prepare(plan, Callbacks())
            return Run(Path(out))
        log = replace(log_settings, logged=lambda step, entry: bar.note(loss=f"{entry['loss']:.3f}"))
        run(plan, resume=resume, force=force, callbacks=Callbacks(log=log))
    return Run(Path(out))


@takes()
def report(
    *runs: Run | PathLike,
    out: PathLike,
    baseline: Mapping[str, Any] | None = None,
    primary: str | None = None,
) -> Path:
    """Write the tables and figures of runs, studies or files scores.parquet, and return the path of index.html.

    baseline, primary: as of `compare`. Raise DerivlangError as `derivlang report`.
    """
    from derivlang.evaluation.collect import scores
    from derivlang.evaluation.report.write import PAGE
    from derivlang.evaluation.report.write import report as write

    with ProgressBar():
        write(scores(*map(path_of, runs)), located(out), baseline, primary)
    return located(out) / PAGE


def _commas(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,)
