"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     made once for all objectives of a language pair
DATA/tokenizer  DATA/lexicon.tsv                  DATA/train-512     with the tokenizer of a checkpoint, or of both
DATA/tokenizer  DATA/derived-tokenizer            DATA/train-512     with a tokenizer for each language
                                          DATA/derived/train-512     another text for the derived language
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from derivlang.core.messages import warn
from derivlang.engine.batches import Source
from derivlang.engine.events import Events
from derivlang.formats.progress import stage
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical.settings import DictionaryOptions
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import Artifact
from derivlang.store.disk import file_lock
from derivlang.store.folders import sweep
from derivlang.training import derived_text
from derivlang.training.data import Data
from derivlang.training.data_folder import DataFolder, Say
from derivlang.training.encode import Check, check_source, encode, take
from derivlang.training.languages import (
    DERIVED,
    TOKENIZER,
    Languages,
    TextLanguages,
    TwinLanguages,
    twin_trans,
)
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.texts import SCRIPT_HINT
from derivlang.training.origin import Origin
from derivlang.training.prepare_languages import languages_of
from derivlang.training.settings import Packing, RunPaths, TrainingSettings
from derivlang.training.translations import DICTIONARY, Translations, read_entries, read_words


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: with the encoded data, shared by runs. files: what a run keeps to use its model, by name: folders of
    tokenizers, a fitted lexicon, a dictionary. data: encoded for rows of `seq_len` sub-words, None of pairs only
    (pairs_only.py); encoded: for each row length. pairs: the dictionary; without a twin it is one of words, None if
    none was given. given: the name of the file of a dictionary that was given, "" if it was made.
    origin: the files of the source; None if the data was taken without it. derived:
    the text of the derived language if it is another one (derived_text.py), encoded for rows of `seq_len` sub-words.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    data: Data | None
    pairs: Translations | None
    encoded: Mapping[int, Data]
    given: str = ""
    origin: Origin | None = None
    derived: Data | None = None

    @property
    def fingerprint(self) -> str:
        """That of the encoded data, "" without any."""
        return "" if self.data is None else self.data.fingerprint


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
    languages, files = languages_of(folder, tokenizer)

    # Dictionary
    pairs: Translations | None = None
    if isinstance(languages, TwinLanguages):
        dictionary = paths.dictionary or _dictionary(folder, tokenizer)
        pairs = read_entries(dictionary, languages, folder.warn)
        files |= {DICTIONARY: dictionary, f"{DICTIONARY}.recipe.json": Path(f"{dictionary}.recipe.json")}
    elif paths.dictionary is not None:
        pairs = read_words(paths.dictionary, folder.warn)

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
    return Prepared(folder.path, languages, files, data, pairs, encoded, name, origin, derived)


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
    packing = _packing(settings, length)
    return f"-{length}{'' if packing == 'sentences' else f'-{packing}'}"
