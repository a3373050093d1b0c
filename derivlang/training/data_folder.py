"""The folder of data that runs share, and what each of its folders is made of (`store/made_of.py`).

DATA/tokenizer-HASH  DATA/twin-HASH  DATA/dictionary-HASH  DATA/encoded-text-HASH     of the languages
DATA/lexicon-HASH                                                                fitted, or read from a file
DATA/links-HASH                                                                  an aligner's, of sentence pairs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import DataError
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.formats.progress import stage
from derivlang.formats.words import has_rules
from derivlang.lexical.train import TextToDerive
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find, name_of, request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.store import made_of
from derivlang.training.language import Language, by_text
from derivlang.training.settings import RunPaths, TrainingSettings

Make = Callable[[str, Mapping[str, Any], Callable[[Path], object]], Path]  # of a kind and a recipe, by `write`
LANGUAGES = "languages"  # in the folder of a run: the files of each of several languages


@dataclass(frozen=True, slots=True)
class Origin:
    """The text that tokenizers and dictionaries are made of, by the hashes of its files: a part of their names.

    files, heldout: names and hashes of the files of the first split and of the held-out one, as of `source_files`.
    reading: how they are read.
    """

    files: list[dict[str, Any]]
    heldout: list[dict[str, Any]]
    reading: dict[str, Any]

    @classmethod
    def of(cls, request: SourceRequest) -> Origin:
        """Return the files of a source as they are now."""
        corpus = find(request)
        corpus.splitter()  # raises for a language without word rules, before anything is announced
        first, heldout = corpus.splits[0], corpus.heldout
        hashed = source_files(Job(corpus, encoding=request.encoding), [first, heldout])
        files, other = ([file for file in hashed if file["split"] == split] for split in (first, heldout))
        return cls(files, other, corpus.reading(request.encoding))

    @property
    def recipe(self) -> dict[str, Any]:
        """The text, as recipes of folders have it: its files, and how they are read."""
        return {"files": self.files, "reading": self.reading}


@dataclass(frozen=True, slots=True, eq=False)
class DataFolder:
    """The folder of data that is made or reused, for a run.

    origin: the source as it is now. used: the names of the folders in it that the run uses. other: the text of one of
    several languages, None for the source's.
    """

    settings: TrainingSettings
    request: SourceRequest
    paths: RunPaths
    origin: Origin
    used: list[str] = field(default_factory=list)
    other: SourceRequest | None = None

    @property
    def path(self) -> Path:
        return self.paths.home

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline.parse(self.settings.spec)

    def of(self, language: Language) -> DataFolder:
        """Return the folder with the settings of one of several languages, beside the source."""
        settings = replace(self.settings, language=(), spec=language.t, derived_source=language.text)
        return replace(self, settings=settings, other=self._request(language) if language.text else None)

    def _request(self, language: Language) -> SourceRequest:
        """Return the request for the text of a language, which is read by the rules of its `lang`, else of the run's.

        A `lang` of the source is only its own.
        """
        lang = language.lang or (None if self.settings.asked[0].lang else self.request.lang)
        return replace(self.request, source=language.text, lang=lang)

    def texts(self) -> list[DataFolder]:
        """Return the folder for each text that is encoded, the source first."""
        asked, texts = self.settings.asked, [self]
        for one in (asked[numbers[0]] for numbers in by_text(asked)[1:]):
            request = request_of_text(self._request(one), one.text)
            texts.append(replace(self, request=request, origin=Origin.of(request)))
        return texts

    def warn_of_rules(self) -> None:
        """Warn of raw text that is split by the rules of another language than the one that its name is the code of."""
        for one in self.settings.asked if self.settings.language else ():
            if one.text and not one.lang and has_rules(one.name):
                corpus = find(request_of_text(self._request(one), one.text))
                if corpus.is_raw and corpus.words == "spacy" and corpus.language != one.name:
                    warn(
                        f"the text of {one.name} is split by the word rules of {corpus.language!r}: write "
                        f'--language "{one.name}=text:… lang:{one.name}"'
                    )

    def other_texts(self) -> list[SourceRequest]:
        """Return the texts that a tokenizer of several languages is trained on besides the source's."""
        if self.paths.tokenizer is not None:
            return []
        some = {(one.text, one.lang): one for one in self.settings.asked[1:] if one.text and not one.tokenizer}
        return [self._request(some[key]) for key in sorted(some)]

    def derived_text(self, lexicon: Lexicon, kind: Literal["derived", "both"]) -> TextToDerive:
        """Return the derived text, for a tokenizer of this kind."""
        paths = self.paths
        # The source's tokenizer is of the whole text; with a limit, only so much of it may have trees.
        limit = self.settings.limit if self.pipeline.needs_trees else None
        language = self.settings.asked[1]
        other = self.other or self._request(language)
        request = request_of_text(other, other.source) if language.text else None
        return TextToDerive(self.pipeline, lexicon, limit, paths.parser, paths.parses, kind, request)

    def made(self, kind: str, recipe: Mapping[str, Any], write: Callable[[Path], object], what: str = "") -> Path:
        """Return the folder of a recipe and of the source, which is made if it is missing.

        what: the stage in which it is made. Raise DataError if the source changes meanwhile.
        """
        recipe = {"text": name_of(self.request.source), **recipe, **self.origin.recipe}

        def written(fresh: Path) -> None:
            with stage(what or f"making the {kind}"):
                write(fresh)

        def check() -> None:
            if self.origin != Origin.of(self.request):
                raise DataError(
                    "has changed while it was read",
                    where=self.request.source,
                    fix="run the same command again",
                    id="source-changed",
                )

        folder = made_of.made(self.path, kind, recipe, written, check)
        self.used.append(folder.name)
        return folder
