"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     made once for all objectives of a language pair
DATA/tokenizer  DATA/lexicon.tsv                  DATA/train-512     with the tokenizer of a checkpoint, or of both
DATA/tokenizer  DATA/derived-tokenizer            DATA/train-512     with a tokenizer for each language
                                          DATA/derived/train-512     another text for the derived language
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from derivlang.core.errors import DataError
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
from derivlang.training.data_folder import LANGUAGES, DataFolder, Say
from derivlang.training.encode import Check, check_source, encode, take
from derivlang.training.language import OPTION, by_text
from derivlang.training.languages import (
    SOURCE,
    TOKENIZER,
    Languages,
    twin_trans,
)
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.joint import SCRIPT_HINT
from derivlang.training.origin import Origin
from derivlang.training.prepare_languages import languages_of
from derivlang.training.settings import Packing, RunPaths, TrainingSettings
from derivlang.training.translations import DICTIONARY, Translations, joined, read_entries, read_words

_UNREADABLE = 30.0  # percent of unknown sub-words above which a language is refused


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: with the encoded data, shared by runs. files: what a run keeps to use its model, by name: folders of
    tokenizers, a fitted lexicon, a dictionary. encoded: the texts for each row length, the source's first; none of
    pairs only (pairs_only.py). pairs: the dictionary; without a twin it is one of words, None if none was given. given:
    the name of the file of a dictionary that was given, "" if it was made. origin: the files of the source; None if the
    data was taken without it.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    pairs: Translations | None
    encoded: Mapping[int, tuple[Data, ...]]
    given: str = ""
    origin: Origin | None = None

    @property
    def data(self) -> Data:
        """The text of the source."""
        return self.texts[0]

    @property
    def texts(self) -> tuple[Data, ...]:
        """The texts for rows of `seq_len` sub-words, as every objective has them."""
        return next(iter(self.encoded.values()), ())

    def fingerprints(self, first: int, last: int | None = None) -> str | None:
        """Return the fingerprints of some texts; None if there are none."""
        return "+".join(data.fingerprint for data in self.texts[first:last]) or None


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
    every = list(dict.fromkeys((settings.seq_len, *sorted(lengths))))
    if paths.data_as_is:
        folder = DataFolder(path, settings, request, paths, None, warn, say)
        for text in folder.texts():
            option = "--source" if text is folder else "--derived-source"
            for length in every:
                check_source(_there(text, length), text.request, option)
        return _prepared(folder, every)
    with file_lock(path):
        folder = DataFolder(path, settings, request, paths, Origin.of(request), warn, say)
        for text in folder.texts():
            sweep(text.path)
        return _prepared(folder, every)


def _prepared(folder: DataFolder, lengths: list[int]) -> Prepared:
    settings, paths, origin = folder.settings, folder.paths, folder.origin

    # Tokenizer, with its twin or with the lexicon of a checkpoint
    tokenizer = paths.tokenizer or folder.path / TOKENIZER
    languages, files = languages_of(folder, tokenizer)

    # Dictionary
    pairs: Translations | None = None
    if settings.language:
        pairs = _dictionaries(folder, tokenizer, languages, files)
    elif languages.are_mapped:
        dictionary = paths.dictionary or _dictionary(folder, tokenizer)
        pairs = read_entries(dictionary, languages, folder.warn)
        files |= {DICTIONARY: dictionary, f"{DICTIONARY}.recipe.json": Path(f"{dictionary}.recipe.json")}
    elif paths.dictionary is not None:
        pairs = read_words(paths.dictionary, folder.warn)

    # Encoded text
    encoded = _encoded_texts(folder, languages, lengths)
    _check_unknown(folder, languages, encoded[settings.seq_len])
    name = "" if paths.dictionary is None else paths.dictionary.name
    return Prepared(folder.path, languages, files, pairs, encoded, name, origin)


def _check_unknown(folder: DataFolder, languages: Languages, texts: Sequence[Data]) -> None:
    """Warn of a language with many unknown sub-words; with --language, raise DataError if they are very many."""
    asked, several = folder.settings.asked, bool(folder.settings.language)
    for place, number in [(place, number) for place, numbers in enumerate(by_text(asked)) for number in numbers]:
        reader, text = languages.readers[number], texts[place]
        share, mapped = text.recipe["unknown_percent"][text.column[number]], reader.lexicon is None
        where = f"the tokenizer of {reader.tokenizer.folder}"
        side, hint = ("the derived language", SCRIPT_HINT) if not mapped else (text.recipe["source"], "")
        if several:
            side, hint = asked[number].name, ""
        elif number == SOURCE or (not place and mapped):
            continue
        if several and share > _UNREADABLE:
            raise DataError(
                f"{share:.1f} % of the sub-words of {side} are unknown to {where}",
                where=f"{OPTION} {side}",
                fix="give it a tokenizer of its text (tokenizer:DIR), or --tokenizer of all texts: "
                "derivlang tokenizer train SOURCE --text OTHER",
                id="unknown-subwords",
            )
        if told := unknown_warning(share, side, where, hint):
            folder.warn(told)


def _dictionaries(
    folder: DataFolder, tokenizer: Path, languages: Languages, files: dict[str, Path]
) -> Translations | None:
    """Return the dictionary of the source with each language in another script; None without such a language.

    files: of the run, which get these dictionaries.
    """
    read: dict[int, Translations] = {}
    for number, (language, reader) in enumerate(zip(folder.settings.asked, languages.readers, strict=True)):
        if reader.twin is not None and reader.twin.map.overlap != 100:
            path = _dictionary(folder.of(language), tokenizer)
            read[number] = read_entries(path, languages, folder.warn, number)
            files[f"{LANGUAGES}/{language.name}/{DICTIONARY}"] = path
    return joined(read, len(languages.readers)) if read else None


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


def _encoded_texts(folder: DataFolder, languages: Languages, lengths: list[int]) -> dict[int, tuple[Data, ...]]:
    """Return the texts for each row length, each in its languages; without --language, in both: runs share it."""
    texts: list[dict[int, Data]] = []
    for text, numbers in zip(folder.texts(), by_text(folder.settings.asked), strict=True):
        some, check = languages.of(numbers) if folder.settings.language else languages, None
        if folder.origin is None:
            read = _taken(text, some)
        else:
            if texts:
                trained = texts[0][lengths[0]].keys
                check = derived_text.overlap_check(folder.request, text.request, trained, folder.warn)
            read = _encoded(text, some, check)
        texts.append({length: read(length) for length in lengths})
    return {length: tuple(text[length] for text in texts) for length in lengths}


def _taken(folder: DataFolder, languages: Languages) -> Callable[[int], Data]:
    """Return a function that gives the data of a row length as it is, without its source."""
    settings = folder.settings

    def read(length: int) -> Data:
        packing = _packing(settings, length)
        return take(_there(folder, length), languages, seq_len=length, limit=settings.limit, packing=packing)

    return read


def _encoded(folder: DataFolder, languages: Languages, check: Check | None) -> Callable[[int], Data]:
    """Return a function that encodes a text for a row length, unless that is done. check: as of `encode`."""
    folder.say("encoding")
    settings, paths, split = folder.settings, folder.paths, find(folder.request).splits[0]
    source = Source.open(
        languages.pipeline,
        folder.request,
        splits=(split,),
        parser=paths.parser,
        parses=paths.parses,
        limit=settings.limit,
        events=Events(folder.warn),
    )
    # The source may have changed since the tokenizer or the dictionary was made of it.
    if check is None:
        folder.check(folder.path, {"source": {"files": source.files([split])}})

    def read(length: int) -> Data:
        place, packing = folder.path / f"{split}{_ending(settings, length)}", _packing(settings, length)
        with stage("encoding"):
            return encode(
                place, source, languages,
                split=split, seq_len=length, limit=settings.limit, packing=packing,
                check=check if length == settings.seq_len else None,
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
