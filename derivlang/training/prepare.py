"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     made once for all objectives of a language pair
DATA/tokenizer  DATA/lexicon.tsv                  DATA/train-512     with the tokenizer of a checkpoint, or of both
DATA/tokenizer  DATA/derived-tokenizer            DATA/train-512     with a tokenizer for each language
                                          DATA/derived/train-512     another text for the derived language
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from derivlang.core.errors import StoreError
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.core.seal import sealed
from derivlang.engine.batches import Source
from derivlang.engine.events import Events
from derivlang.formats.progress import stage
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical import train as tokenizers
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.settings import DictionaryOptions, TokenizerOptions
from derivlang.lexical.tokenizer import TOKENIZERS, Tokenizer
from derivlang.lexical.train import TextToDerive
from derivlang.lexical.twin_folder import TWINS, make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import Artifact, kind_of_files
from derivlang.store.disk import disk, file_lock
from derivlang.store.files import write_texts
from derivlang.store.folders import sweep
from derivlang.store.record import record_text
from derivlang.training import derived_text
from derivlang.training.data import Data
from derivlang.training.dictionary import DICTIONARY, JointDictionary, WordDictionary
from derivlang.training.encode import Check, check_source, encode, take
from derivlang.training.languages import (
    DERIVED,
    DERIVED_TOKENIZER,
    LEXICON,
    TOKENIZER,
    TWIN,
    Languages,
    TextLanguages,
    TwinLanguages,
    has_twin,
    is_foreign,
    twin_trans,
)
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.texts import SCRIPT_HINT
from derivlang.training.origin import Origin
from derivlang.training.settings import Packing, RunPaths, TokenizerFor, TrainingSettings
from derivlang.transforms.lexicon_file import read_lexicon

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: with the encoded data, shared by runs. files: what a run keeps to use its model, by name: folders of
    tokenizers, a fitted lexicon, a dictionary. data: encoded for rows of `seq_len` sub-words, None of pairs only
    (pairs_only.py); encoded: for each row length. pairs: the dictionary; with the tokenizer of a checkpoint it is one
    of words, None if none was given. given: the name of the file of a dictionary that was given, "" if it was made.
    heldout: names and hashes of the files of held-out text; None if the data was taken without its source. derived:
    the text of the derived language if it is another one (derived_text.py), encoded for rows of `seq_len` sub-words.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    data: Data | None
    pairs: JointDictionary | WordDictionary | None
    encoded: Mapping[int, Data]
    given: str = ""
    heldout: list[dict[str, Any]] | None = None
    derived: Data | None = None

    @property
    def fingerprint(self) -> str:
        """That of the encoded data, "" without any."""
        return "" if self.data is None else self.data.fingerprint


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

    def derived_text(self, lexicon: Lexicon, kind: Literal["derived", "both"]) -> TextToDerive:
        """Return the derived text, for a tokenizer of this kind."""
        paths = self.paths
        return TextToDerive(self.pipeline, lexicon, self.settings.limit, paths.parser, paths.parses, kind)

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


def prepare_data(
    settings: TrainingSettings,
    request: SourceRequest,
    paths: RunPaths,
    warn: Say = warn,
    say: Say = lambda message: None,
    *,
    lengths: Collection[int] = (),
) -> Prepared:
    """Return tokenizer, twin, dictionary and encoded data. Existing ones, also of a concurrent run, are reused.

    warn, say: called with warnings, and with what begins. lengths: row lengths for which the source is encoded, besides
    `seq_len`. Raise DerivlangError if existing files do not fit the settings.
    """
    path = paths.data or paths.run / "data"
    other = path / derived_text.FOLDER
    every = sorted({settings.seq_len, *lengths})
    if paths.data_as_is:
        folder = DataFolder(path, settings, request, paths, None, warn, say)
        for length in every:
            check_source(_there(folder, length), request)
        if settings.derived_source:
            there = replace(folder, path=other)
            of_derived = replace(request, source=settings.derived_source)
            check_source(_there(there, settings.seq_len), of_derived, "--derived-source")
        return _prepared(folder, every)
    with file_lock(path):
        for made in (path, other):
            sweep(made)
        return _prepared(DataFolder(path, settings, request, paths, Origin.of(request), warn, say), every)


def _prepared(folder: DataFolder, lengths: list[int]) -> Prepared:
    settings, paths, origin = folder.settings, folder.paths, folder.origin

    # Tokenizer, with its twin or with the lexicon of a checkpoint
    tokenizer = paths.tokenizer or folder.path / TOKENIZER
    languages, files = _languages(folder, tokenizer)

    # Dictionary
    pairs: JointDictionary | WordDictionary | None = None
    if isinstance(languages, TwinLanguages):
        dictionary = paths.dictionary or _dictionary(folder, tokenizer)
        pairs = JointDictionary.read(dictionary, languages, folder.warn)
        files |= {DICTIONARY: dictionary, f"{DICTIONARY}.recipe.json": Path(f"{dictionary}.recipe.json")}
    elif paths.dictionary is not None:
        pairs = WordDictionary.read(paths.dictionary, folder.warn)

    # Encoded text
    read = _taken(folder, languages) if origin is None else _encoded(folder, languages)
    encoded = {length: read(length) for length in lengths}
    data = encoded[settings.seq_len]
    derived = _derived(folder, languages, data) if settings.derived_source else None
    if derived is not None or isinstance(languages, TextLanguages):
        read_text, side, hint, reader = derived or data, "the derived language", SCRIPT_HINT, str(tokenizer)
        if isinstance(languages, TextLanguages):
            reader = str(languages.reader(DERIVED).folder)
        else:
            side, hint = read_text.recipe["source"], ""
        share = read_text.recipe["unknown_percent"][DERIVED]
        if told := unknown_warning(share, side, f"the tokenizer of {reader}", hint):
            folder.warn(told)
    name = "" if paths.dictionary is None else paths.dictionary.name
    heldout = None if origin is None else origin.heldout
    return Prepared(folder.path, languages, files, data, pairs, encoded, name, heldout, derived)


def _languages(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a folder, and the files that a run keeps of them, by name."""
    asked = folder.settings.tokenizer_for
    if is_foreign(tokenizer):
        return _of_checkpoint(folder, tokenizer)
    if asked is None and folder.paths.tokenizer is not None and OwnTokenizer.load(tokenizer).kind == "both":
        asked = "both"
    if asked is None and has_twin(folder.pipeline):
        return _of_twin(folder, tokenizer)
    return _of_texts(folder, tokenizer, asked or "each")


def _trained(folder: DataFolder, tokenizer: Path, derived: TextToDerive | None = None) -> Tokenizer:
    """Return a tokenizer of the folder, trained if it is missing. derived: as of `tokenizers.train`.

    Raise StoreError if the one that is there has another size, or was trained on another text.
    """
    settings, kind = folder.settings, "source" if derived is None else derived.kind
    if not TOKENIZERS.is_whole(tokenizer):
        folder.required(tokenizer)
        folder.say("training the tokenizer" if kind != "derived" else "training the tokenizer of the derived language")
        options = TokenizerOptions(vocab_size=settings.vocab_size)
        tokenizers.train(folder.request, tokenizer, options, derived=derived)
    trained = Tokenizer.load(tokenizer)
    wanted = {"kind": kind} | ({} if derived is None else {"derived": derived.identity})
    if trained.size != settings.vocab_size:
        what, same = f"has {trained.size:,} entries instead of {settings.vocab_size:,}", "--vocab-size"
    elif any(trained.recipe.get(name) != value for name, value in wanted.items()):
        what, same = "was trained on the text of other languages", "--t and --tokenizer-for"
    else:
        folder.check(tokenizer, trained.recipe)
        return trained
    fix = f"give another --data folder, or the same {same}"
    raise StoreError(what, where=str(tokenizer), fix=fix, id="other-tokenizer")


def _of_texts(folder: DataFolder, tokenizer: Path, texts: TokenizerFor) -> tuple[Languages, dict[str, Path]]:
    """Return languages with one tokenizer that is trained on both texts, or with a tokenizer for each."""
    pipeline, second = folder.pipeline, folder.path / DERIVED_TOKENIZER
    saved = _lexicon(folder)
    lexicon = pipeline.fit(saved=saved, where=str(folder.path / LEXICON))
    files = {TOKENIZER: tokenizer} | ({} if saved is None else {LEXICON: folder.path / LEXICON})
    if folder.paths.tokenizer is None:
        _trained(folder, tokenizer, folder.derived_text(lexicon, "both") if texts == "both" else None)
    source = OwnTokenizer.load(tokenizer)
    if source.kind != ("both" if texts == "both" else "source"):
        raise StoreError(
            f"was trained on the text of {_TEXTS[source.kind]}",
            where=str(tokenizer),
            fix="leave out --tokenizer, or give another one",
            id="other-tokenizer",
        )
    if texts == "both":
        return TextLanguages(pipeline, source, lexicon), files
    _trained(folder, second, folder.derived_text(lexicon, "derived"))
    return TextLanguages(pipeline, source, lexicon, OwnTokenizer.load(second, source)), files | {
        DERIVED_TOKENIZER: second
    }


def _of_twin(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return the languages of a tokenizer and its twin, and the files that a run keeps of them, by name."""
    twin = folder.path / TWIN
    source = _trained(folder, tokenizer) if folder.paths.tokenizer is None else Tokenizer.load(tokenizer)
    if not TWINS.is_whole(twin):
        make_twin(tokenizer, str(twin_trans(folder.pipeline)), twin)
    languages = TwinLanguages.of(folder.pipeline, source, twin, "give another --data folder")
    return languages, {TOKENIZER: tokenizer, TWIN: twin}


def _of_checkpoint(folder: DataFolder, tokenizer: Path) -> tuple[Languages, dict[str, Path]]:
    """Return languages with the tokenizer of a checkpoint, and a lexicon that is fitted once for all runs."""
    own, lexicon, pipeline = folder.path / TOKENIZER, folder.path / LEXICON, folder.pipeline
    source = ForeignTokenizer.load(tokenizer)
    source.copy(own)
    saved = _lexicon(folder)
    languages = TextLanguages(pipeline, source, pipeline.fit(saved=saved, where=str(lexicon)))
    return languages, {TOKENIZER: own} | ({} if saved is None else {LEXICON: lexicon})


def _lexicon(folder: DataFolder) -> str | None:
    """Return the text of the lexicon, fitted or read from a file once for all runs; None if none is saved."""
    lexicon, pipeline = folder.path / LEXICON, folder.pipeline
    told = Artifact(kind=LEXICONS, path=lexicon, wanted={}).found(folder.warn)
    if told is not None:
        folder.check(lexicon, told)
        known = read_lexicon(lexicon)
        if not pipeline.needs_counts() and known != pipeline.save(pipeline.fit()):
            raise StoreError(
                f"is not the lexicon of {pipeline}: the data is of another --t, or a file that it names has changed",
                where=str(lexicon),
                fix="give another --data folder, or restore the file",
                id="other-data",
            )
        return known
    if pipeline.needs_counts():
        folder.required(lexicon)
        fitted = Source.open(pipeline, folder.request, parser=folder.paths.parser, trees=False).lexicon()
    else:
        fitted = pipeline.fit()
    saved = pipeline.save(fitted)
    if saved is not None:
        recipe = folder.required(lexicon).recipe
        recipe = sealed({**recipe, "files": {lexicon.name: sha256(saved.encode()).hexdigest()}})
        with disk(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
        write_texts(lexicon, {lexicon.name: saved, LEXICONS.record_of(lexicon).name: record_text(recipe)})
    return saved


_TEXTS = {
    "source": "one language",
    "twin": "one language",
    "derived": "a derived language",
    "both": "both languages",
}
LEXICONS = kind_of_files("lexicon", fix="remove it and its recipe, and run again", id="other-data")


def _dictionary(folder: DataFolder, tokenizer: Path) -> Path:
    """Return the dictionary of this coverage, made if it is missing. All objectives share the file."""
    settings = folder.settings
    coverage = settings.coverage.replace("/", "_")  # 100/3
    path = folder.path / f"dictionary-{coverage}-{settings.dictionary_by}-{settings.dictionary_seed}.tsv"
    options = DictionaryOptions(
        out=path,
        coverage=settings.coverage,
        by=settings.dictionary_by,
        level="token",
        tokenizer=tokenizer,
        seed=settings.dictionary_seed,
    )
    wanted = dictionaries.choice_of(options)
    told = Artifact(kind=dictionaries.DICTIONARIES, path=path, wanted=wanted).found(folder.warn)
    if told is not None:
        folder.check(path, told)
        return path
    folder.required(path)
    folder.say("making the dictionary")
    # An overlap keeps words, but every vocabulary entry still has a twin.
    plain = replace(twin_trans(folder.pipeline), overlap=0)
    with stage("making the dictionary"):
        dictionaries.make_dictionary(str(plain), folder.request, options, folder.warn)
    return path


def _taken(folder: DataFolder, languages: Languages) -> Callable[[int], Data]:
    """Return a function that gives the data of a row length as it is, without its source."""
    settings = folder.settings

    def read(length: int) -> Data:
        packing = _packing(settings, length)
        return take(_there(folder, length), languages, seq_len=length, limit=settings.limit, packing=packing)

    return read


def _derived(folder: DataFolder, languages: Languages, data: Data) -> Data:
    """Return the text of the derived language, which is another one than the source's. data: the source's."""
    settings, request, path = folder.settings, folder.request, folder.path / derived_text.FOLDER
    if folder.origin is None:
        return _taken(replace(folder, path=path), languages)(settings.seq_len)
    other = derived_text.request_of(request, settings.derived_source)
    check = derived_text.overlap_check(request, other, data.keys, folder.warn)
    return _encoded(replace(folder, path=path, request=other, origin=None), languages, check)(settings.seq_len)


def _encoded(folder: DataFolder, languages: Languages, check: Check | None = None) -> Callable[[int], Data]:
    """Return a function that encodes the source for a row length, unless that is done. check: as of `encode`."""
    folder.say("encoding")
    settings, paths, split = folder.settings, folder.paths, find(folder.request).splits[0]
    source = Source.open(
        folder.pipeline,
        folder.request,
        splits=(split,),
        parser=paths.parser,
        parses=paths.parses,
        limit=settings.limit,
        events=Events(folder.warn),
    )
    # The source may have changed since the tokenizer or the dictionary was made of it.
    folder.check(folder.path, {"source": {"files": source.files([split])}})

    def read(length: int) -> Data:
        place, packing = folder.path / f"{split}{_ending(settings, length)}", _packing(settings, length)
        with stage("encoding"):
            return encode(
                place, source, languages,
                split=split, seq_len=length, limit=settings.limit, packing=packing, check=check,
            )  # fmt: skip

    return read


def _there(folder: DataFolder, length: int) -> Path:
    """Return the folder of the data of a row length, of whichever split it was made."""
    ending = _ending(folder.settings, length)
    return next(iter(sorted(folder.path.glob(f"*{ending}"))), folder.path / f"train{ending}")


def _packing(settings: TrainingSettings, length: int) -> Packing:
    """Return the packing of a row length: pairs are always of whole sentences."""
    return settings.packing if length == settings.seq_len else "sentences"


def _ending(settings: TrainingSettings, length: int) -> str:
    return f"-{length}{'-stream' if _packing(settings, length) == 'stream' else ''}"
