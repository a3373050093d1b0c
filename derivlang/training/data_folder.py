"""The folder of data that a run makes or reuses: where its files come from, and whether they are of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import StoreError
from derivlang.core.lexicon import Lexicon
from derivlang.lexical.train import TextToDerive
from derivlang.pipeline import Pipeline
from derivlang.sources.find import request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.training.language import Language, by_text
from derivlang.training.origin import Origin
from derivlang.training.settings import RunPaths, TrainingSettings

Say = Callable[[str], None]
LANGUAGES = "languages"  # in the folder of data and of a run: the files of each of several languages


@dataclass(frozen=True, slots=True, eq=False)
class DataFolder:
    """The folder of data that is made or reused, for a run.

    origin: the source as it is now; None with --data-as-is, which takes what is there. warn, say: called with warnings,
    and with what begins.
    """

    path: Path
    settings: TrainingSettings
    request: SourceRequest
    paths: RunPaths
    origin: Origin | None
    warn: Say
    say: Say

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline.parse(self.settings.spec)

    def of(self, language: Language) -> DataFolder:
        """Return the folder of tokenizers and dictionaries of one of several languages, beside the source."""
        settings = replace(self.settings, language=(), spec=language.t, derived_source=language.text)
        return replace(self, path=self.path / LANGUAGES / language.name, settings=settings)

    def texts(self) -> list[DataFolder]:
        """Return the folder of each text: the source's is this one, unless the languages are of --language."""
        asked = self.settings.asked
        first = self
        if self.settings.language:
            digest = sha256("\n".join(one.identity for one in asked).encode()).hexdigest()[:16]
            first = replace(self, path=self.path / f"texts-{digest}")
        texts = [first]
        for one in (asked[numbers[0]] for numbers in by_text(asked)[1:]):
            named = replace(self.request, source=one.text)  # which need not be there if the data is
            request = named if self.origin is None else request_of_text(self.request, one.text)
            texts.append(replace(self, path=first.path / one.name, request=request))
        return texts

    def derived_text(self, lexicon: Lexicon, kind: Literal["derived", "both"]) -> TextToDerive:
        """Return the derived text, for a tokenizer of this kind."""
        paths = self.paths
        # The source's tokenizer is of the whole text; with a limit, only so much of it may have trees.
        limit = self.settings.limit if self.pipeline.needs_trees else None
        other = self.settings.derived_source
        request = request_of_text(self.request, other) if other else None
        return TextToDerive(self.pipeline, lexicon, limit, paths.parser, paths.parses, kind, request)

    def check(self, path: Path, recipe: Mapping[str, Any]) -> None:
        """Raise StoreError if the recipe of a file names another source. Without the source there is none to ask."""
        if self.origin is not None:
            self.origin.check(path, recipe)

    def required(self, path: Path) -> Origin:
        """Return the source of a file that must be made. Raise StoreError if the data is taken without its source."""
        if self.origin is None:
            raise StoreError(
                "is missing, and with --data-as-is nothing is made from the source",
                where=str(path),
                fix="copy it from where the data was made, or leave out --data-as-is",
                id="data",
            )
        return self.origin
