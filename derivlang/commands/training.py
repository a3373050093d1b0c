"""`pretrain`, `Run.evaluate` and `report`: runs and their scores."""

from __future__ import annotations

from typing import Any

from derivlang.commands.command import function, method
from derivlang.commands.evaluate import Evaluate
from derivlang.commands.folders import InFolder
from derivlang.commands.results import Export
from derivlang.formats.places import PathLike


class Run(InFolder):
    """A pre-trained run. path: its folder."""

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json. Raise StoreError if the folder is not a run, or was changed."""
        from derivlang.training.run_folder import read

        return read(self.path)

    def facts(self) -> dict[str, Any]:
        record = self.record
        return {name: record[name] for name in ("source", "spec", "objective", "seed", "step", "status")}

    evaluate = method(Evaluate, "evaluate")

    def export(
        self,
        out: PathLike,
        *,
        step: int | None = None,
        source: bool = False,
        target: str | None = None,
        force: bool = False,
    ) -> dict[str, Any]:
        """Write the model with a tokenizer for `transformers`, as `derivlang export --format transformers` does.

        out: the folder to write. step: of a checkpoint, None for the finished model. source: take the source's
        tokenizer. target: a language of a run of several. force: replace a model. Return {"out", "language",
        "entries"}: the language and the size of the tokenizer. Raise DerivlangError as the command.
        """
        place = self.path if step is None else f"{self.path}@{step}"
        return function(Export, "export")(place, out, format="transformers", source=source, target=target, force=force)
