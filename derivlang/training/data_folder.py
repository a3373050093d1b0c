"""The folder of data that runs share, what each of its folders is made of (`store/made_of.py`), and its tokenizers.

DATA/tokenizer-HASH  DATA/twin-HASH  DATA/dictionary-HASH  DATA/encoded-text-HASH     of the languages
DATA/lexicon-HASH                                                                fitted, or read from a file
DATA/links-HASH                                                                  an aligner's, of sentence pairs

The tokenizers of the languages of a run, made or reused, with a twin or a lexicon:

a script, or only an order     tokenizer-HASH  twin-HASH           of the source's text
any other language             tokenizer-HASH  tokenizer-HASH      of the text of each
--tokenizer-for both           tokenizer-HASH                      of both texts
--language with other texts    tokenizer-HASH                      of all texts
a checkpoint's tokenizer       tokenizer-HASH                      which reads both
lexicon-HASH                   beside them, if one was fitted or read from a file
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import DataError, StoreError
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.engine.batches import Source
from derivlang.engine.job import Job
from derivlang.engine.plan import source_files
from derivlang.formats.progress import stage
from derivlang.formats.words import has_rules
from derivlang.lexical import train as tokenizers
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.tokenizer import FORMAT
from derivlang.lexical.train import TextToDerive
from derivlang.lexical.twin import make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find, name_of, request_of_text
from derivlang.sources.request import SourceRequest
from derivlang.store import made_of
from derivlang.training.language import Language, by_text
from derivlang.training.languages import (
    DERIVED_TOKENIZER,
    LEXICON,
    TOKENIZER,
    TWIN,
    Languages,
    is_mapped,
    of_several,
    of_texts,
    of_twin,
    tokenizer_of,
    twin_trans,
)
from derivlang.training.settings import RunPaths, TokenizerFor, TrainingSettings
from derivlang.transforms.fitting import read_lexicon

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

    origin: the source as it is now. used: the names of the folders in it that the run uses.
    """

    settings: TrainingSettings
    request: SourceRequest
    paths: RunPaths
    origin: Origin
    used: list[str] = field(default_factory=list)

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

    def derived_text(self, language: Language, lexicon: Lexicon, kind: Literal["derived", "both"]) -> TextToDerive:
        """Return the text of a language other than the source, for a tokenizer of this kind."""
        paths, pipeline = self.paths, Pipeline.parse(language.t)
        # The source's tokenizer is of the whole text; with a limit, only so much of it may have trees.
        limit = self.settings.limit if pipeline.needs_trees else None
        request = request_of_text(self._request(language), language.text) if language.text else None
        return TextToDerive(pipeline, lexicon, limit, paths.parser, paths.parses, kind, request)

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

        folder = made_of.made(self.paths.home, kind, recipe, written, check)
        self.used.append(folder.name)
        return folder


def languages_of(folder: DataFolder) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a folder, and the files that a run keeps of them, by name."""
    if not folder.settings.language:
        return _pair(folder, folder.settings.asked[1])
    if texts := folder.other_texts():
        folder = replace(folder, paths=replace(folder.paths, tokenizer=_trained(folder, texts=texts)))
    files: dict[str, Path] = {}
    pairs = []
    for language in folder.settings.asked[1:]:
        pair, own = _pair(folder, language)
        pairs.append((language, pair))
        files |= {name if name == TOKENIZER else f"{LANGUAGES}/{language.name}/{name}": at for name, at in own.items()}
    return of_several(pairs), files


def _pair(folder: DataFolder, language: Language) -> tuple[Languages, dict[str, Path]]:
    """Return the source and another language, and the files of both."""
    asked, tokenizer, pipeline = folder.settings.tokenizer_for, folder.paths.tokenizer, Pipeline.parse(language.t)
    given = None if tokenizer is None else tokenizer_of(tokenizer)
    if language.tokenizer:
        return _of_texts(folder, language, "each")
    if isinstance(given, ForeignTokenizer):
        return _of_checkpoint(folder, pipeline, given)
    if asked is None and given is not None and given.kind == "both":
        asked = "both"
    if asked is None and is_mapped(pipeline):
        return _of_twin(folder, pipeline)
    return _of_texts(folder, language, asked or "each")


def _trained(
    folder: DataFolder,
    derived: TextToDerive | None = None,
    size: int | None = None,
    texts: Sequence[SourceRequest] = (),
) -> Path:
    """Return the folder of a tokenizer.

    derived: as of `tokenizers.train`. size: in entries, None for the settings'. texts: others to train on.
    """
    options = TokenizerOptions(vocab_size=size or folder.settings.vocab_size)
    kind = "source" if derived is None else derived.kind
    recipe: dict[str, Any] = {
        "rules": FORMAT,
        "kind": kind,
        "vocab_size": options.vocab_size,
        "min_frequency": options.min_frequency,
        "derived": None if derived is None else derived.identity,
    }
    if derived is not None and derived.other is not None:
        recipe["other"] = Origin.of(derived.other).recipe
    if texts:
        recipe |= {"kind": "several", "texts": [name_of(text.source) for text in texts]}
        recipe["others"] = [Origin.of(request_of_text(text, text.source)).recipe for text in texts]
    what = "training the tokenizer" if kind != "derived" else "training the tokenizer of the derived language"
    return folder.made(
        "tokenizer",
        recipe,
        lambda fresh: tokenizers.train(folder.request, fresh, options, texts=texts, derived=derived),
        what,
    )


def _of_texts(folder: DataFolder, language: Language, texts: TokenizerFor) -> tuple[Languages, dict[str, Path]]:
    """Return languages with one tokenizer that is trained on both texts, or with a tokenizer for each."""
    pipeline = Pipeline.parse(language.t)
    saved, files = _lexicon(folder, pipeline)
    lexicon = pipeline.fit(saved=saved)
    tokenizer = folder.paths.tokenizer or _trained(
        folder, folder.derived_text(language, lexicon, "both") if texts == "both" else None
    )
    source, files = OwnTokenizer.load(tokenizer), {TOKENIZER: tokenizer, **files}
    if source.kind != ("both" if texts == "both" else "source"):
        raise StoreError(
            f"was trained on the text of {_TEXTS[source.kind]}",
            where=str(tokenizer),
            fix="leave out --tokenizer, or give another one",
            id="other-tokenizer",
        )
    if texts == "both":
        return of_texts(pipeline, source, lexicon), files
    derived = folder.derived_text(language, lexicon, "derived")
    second = Path(language.tokenizer) if language.tokenizer else _trained(folder, derived, source.size)
    return of_texts(pipeline, source, lexicon, OwnTokenizer.load(second, source)), files | {DERIVED_TOKENIZER: second}


def _of_twin(folder: DataFolder, pipeline: Pipeline) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a tokenizer and its twin, and the files that a run keeps of them, by name."""
    tokenizer, trans = folder.paths.tokenizer or _trained(folder), twin_trans(pipeline)
    source = OwnTokenizer.load(tokenizer)
    recipe = {"tokenizer": source.tokenizer.recipe["sha256"], **identity_of(Pipeline((trans,)))}
    twin = folder.made("twin", recipe, lambda fresh: make_twin(tokenizer, str(trans), fresh))
    return of_twin(pipeline, source, twin, "remove it"), {TOKENIZER: tokenizer, TWIN: twin}


def _of_checkpoint(
    folder: DataFolder, pipeline: Pipeline, source: ForeignTokenizer
) -> tuple[Languages, dict[str, Path]]:
    """Return languages with the tokenizer of a checkpoint, and a lexicon that is fitted once for all runs."""
    saved, files = _lexicon(folder, pipeline)
    own = folder.made("tokenizer", {"of": source.fingerprint}, source.save)
    return of_texts(pipeline, source, pipeline.fit(saved=saved)), {TOKENIZER: own, **files}


def _lexicon(folder: DataFolder, pipeline: Pipeline) -> tuple[str | None, dict[str, Path]]:
    """Return the text of the lexicon, fitted or read from a file once for all runs, and its file by name.

    None and {} if none is saved.
    """
    if not pipeline.needs_counts() and pipeline.save(pipeline.fit()) is None:
        return None, {}

    def write(fresh: Path) -> None:
        source = Source.open(pipeline, folder.request, parser=folder.paths.parser, trees=False)
        text = pipeline.save(source.fit())
        (fresh / LEXICON).write_text(text or "", "utf-8", newline="\n")

    file = folder.made("lexicon", identity_of(pipeline), write) / LEXICON
    return read_lexicon(file), {LEXICON: file}


def identity_of(pipeline: Pipeline) -> dict[str, str]:
    """Return what a recipe says of a pipeline; the fingerprint covers its rules and the files that it names."""
    return {"spec": pipeline.stored, "fingerprint": pipeline.fingerprint()}


_TEXTS = {
    "source": "one language",
    "twin": "one language",
    "derived": "a derived language",
    "both": "both languages",
}
