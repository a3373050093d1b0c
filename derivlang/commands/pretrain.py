"""`pretrain`: train a model on a source and its derived language."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from derivlang.commands.command import Command, Spec, transforms
from derivlang.commands.folders import named_folder
from derivlang.core.dependencies import require_torch
from derivlang.core.settings import declared, setting
from derivlang.engine.options import ParserNames
from derivlang.formats.places import OptionalPath, PathLike
from derivlang.formats.progress import reader
from derivlang.sources.request import SourceOptions, SourceRequest
from derivlang.training.settings import DataPaths, SessionOptions, TrainingOptions

if TYPE_CHECKING:
    from derivlang.commands.results import Run
    from derivlang.training.plan import RunPlan


class _ParsedSource(ParserNames, SourceOptions):
    """Where the source lies, how it is read and what parses it."""


@dataclass(frozen=True, eq=False, repr=False)
class Pretrain(Command["Run"], TrainingOptions, DataPaths, SessionOptions, _ParsedSource):
    """Pre-train a model on SOURCE and its derived language.

    The derived text is not written to disk. Without -o the run is written to a folder in the current folder, named
    after the source, the transforms and the objective, and the same command continues an interrupted run.

    An objective that reads nothing but sentence pairs (dict-tlm, ppa, tlm, weam) takes the file of --pairs without a
    source and a derived language. They may be of any two languages, with the tokenizer of a checkpoint.

    \b
    derivlang pretrain --source wikitext2 --t trans,inv --objective align-mlm --data-dir DIR -o run
    derivlang pretrain --source demo --t trans,inv --vocab-size 300 --steps 20
    """

    source: PathLike | None = setting(
        None, "Name or path of the source. An objective that reads only --pairs needs none.", metavar="SOURCE"
    )
    spec: Spec | None = transforms("Transforms of the derived language, e.g. trans,inv, if there is a source.")
    out: OptionalPath = setting(
        None, "Folder of the run.", also="-o", unset="SOURCE.TRANSFORMS.OBJECTIVE, here", writes=True
    )
    _: KW_ONLY
    data_only: bool = setting(False, "Prepare the data, and stop.")
    resume: bool = setting(True, "Continue from the last checkpoint.  [default without -o]")
    force: bool = setting(False, "Replace a run that the folder holds.")

    def __call__(self) -> Run:
        """Return the run. A run of the same settings that is there goes on, or is kept if it is finished."""
        from derivlang.commands.results import Run

        plan = self.planned()
        self.made(plan)
        return Run(plan.paths.run)

    def planned(self) -> RunPlan:
        """Return what is to be trained."""
        require_torch()
        from derivlang.training.plan import plan_of, settings_of, with_languages

        values = self.values
        source = with_languages(values["source"], values)
        settings, model_config, session = settings_of(source, values)
        name = source or " ".join(map(str, values["pairs"] or ()))
        changed = self.changed("objective", "precision", "compile")
        out = self.path("out") or named_folder(name, settings.spec, changed, last=settings.objective)
        request = None if source is None else self.part(SourceRequest, source=source, lang=values["lang"])
        session = replace(session, logged=lambda step, entry: reader().note(loss=f"{entry['loss']:.3f}"))
        going = {"resume": self.goes_on, "force": self.force}
        return plan_of(settings, model_config, request, out, session, values, **going)

    @property
    def values(self) -> dict[str, Any]:
        """The settings by name; None for one that is not given and has no default of its own."""
        kind: type = type(self)
        values = {
            name: getattr(self, name) if name in self.given or not one.is_open else None
            for name, one in declared(kind).items()
        }
        names = ("source", "spec")
        return values | {name: None if values[name] is None else str(values[name]) for name in names}

    def check(self) -> None:
        """Raise UsageError for settings that the training would refuse at once, without loading torch."""
        from derivlang.training.plan import check_options, with_languages

        values = self.values
        check_options(with_languages(values["source"], values), values)

    @property
    def goes_on(self) -> bool:
        """Whether a run that is there goes on."""
        return self.resume and not self.force

    def made(self, plan: RunPlan) -> Any:
        """Train and return what `run.pretrain` returns, or prepare the data and return it."""
        from derivlang.training.run import prepare, pretrain

        return prepare(plan) if self.data_only else pretrain(plan)
