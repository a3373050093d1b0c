"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

All runs may share one folder of data: each folder in it has the name of what it is made of (data_folder.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.core.messages import warn
from derivlang.engine.batches import Source
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical.settings import DictionaryOptions
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store import made_of
from derivlang.training import derived_text
from derivlang.training.data import Data
from derivlang.training.data_folder import LANGUAGES, DataFolder
from derivlang.training.encode import Check, encode, take
from derivlang.training.language import OPTION, by_text, only_file
from derivlang.training.languages import (
    SOURCE,
    TOKENIZER,
    Languages,
    twin_trans,
)
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.joint import SCRIPT_HINT
from derivlang.training.origin import Origin
from derivlang.training.prepare_languages import identity_of, languages_of
from derivlang.training.settings import Packing, RunPaths, TrainingSettings
from derivlang.training.translations import DICTIONARY, Translations, joined, read_entries, read_words
from derivlang.training.word_dictionaries import WordDictionary, check_direction, read_dictionaries, spelt

_UNREADABLE = 30.0  # percent of unknown sub-words above which a language is refused


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: of the data, shared by runs. files: what a run keeps to use its model, by name: folders of tokenizers, a
    fitted lexicon, a dictionary. encoded: the texts for each row length, the source's first; none of pairs only
    (pairs_only.py). pairs: the dictionary; without a twin it is one of words, None if none was given. given: the name
    of the file of a dictionary that was given, "" if it was made. origin: the files of the source; None if the data was
    taken without it. used: the names of the folders of data that the run uses.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    pairs: Translations | None
    encoded: Mapping[int, tuple[Data, ...]]
    given: str = ""
    origin: Origin | None = None
    used: list[str] = field(default_factory=list)

    def made(self, kind: str, recipe: Mapping[str, Any], write: Callable[[Path], object]) -> Path:
        """Return the folder of a recipe that names all that it depends on, made if it is missing."""
        folder = made_of.made(self.folder, kind, recipe, write)
        self.used.append(folder.name)
        return folder

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
    *,
    lengths: Collection[int] = (),
) -> Prepared:
    """Return tokenizer, twin, dictionary and encoded data. Existing ones, also of a concurrent run, are reused.

    lengths: row lengths for which the source is encoded, besides `seq_len`. Raise DerivlangError if existing files do
    not fit the settings.
    """
    path = paths.data or paths.run / "data"
    origin = None if paths.data_as_is else Origin.of(request)
    folder = DataFolder(path, settings, request, paths, origin)
    given = read_dictionaries(paths.dictionary, settings.asked, warn) if settings.language else []
    only = None if settings.language else only_file(paths.dictionary, "--dictionary")

    # Tokenizer, with its twin or with the lexicon of a checkpoint
    languages, files = languages_of(folder)

    # Dictionary
    pairs: Translations | None = None
    if settings.language:
        pairs = _dictionaries(folder, languages, files, given)
    elif languages.are_mapped:
        dictionary = only or _dictionary(folder, files[TOKENIZER])
        pairs = read_entries(dictionary, languages, warn)
        files |= {DICTIONARY: dictionary, f"{DICTIONARY}.recipe.json": Path(f"{dictionary}.recipe.json")}
    elif only is not None:
        pairs = read_words(only, warn)

    # Encoded text
    encoded = _encoded_texts(folder, languages, list(dict.fromkeys((settings.seq_len, *sorted(lengths)))))
    _check_unknown(folder, languages, encoded[settings.seq_len])
    places = zip(by_text(settings.asked), encoded[settings.seq_len], strict=True)
    texts = {number: text for numbers, text in places for number in numbers}
    names = [language.name for language in settings.asked]
    for one in given:
        check_direction(one, languages, texts, names)
    files_given = [f"{names[one.left]}-{names[one.right]}={one.path.name}" for one in given]
    name = ", ".join(files_given or [path.name for path in paths.dictionary])
    return Prepared(path, languages, files, pairs, encoded, name, origin, folder.used)


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
            warn(told)


def _dictionaries(
    folder: DataFolder, languages: Languages, files: dict[str, Path], given: Sequence[WordDictionary]
) -> Translations | None:
    """Return the given dictionaries, and one for the source and each language in another script; None without any.

    files: of the run, which get the dictionaries that are made.
    """
    read: dict[int, Translations] = {}
    for number, (language, reader) in enumerate(zip(folder.settings.asked, languages.readers, strict=True)):
        if reader.twin is not None and reader.twin.map.overlap != 100:
            path = _dictionary(folder.of(language), files[TOKENIZER])
            read[number] = read_entries(path, languages, warn, number)
            files[f"{LANGUAGES}/{language.name}/{DICTIONARY}"] = path
    if given:
        return spelt(given, read, languages)
    return joined(read) if read else None


def _dictionary(folder: DataFolder, tokenizer: Path) -> Path:
    """Return the dictionary of this coverage, made if it is missing. All objectives share the file."""
    settings, plain = folder.settings, replace(twin_trans(folder.pipeline), overlap=0)
    # An overlap keeps words, but every vocabulary entry still has a twin.
    options = DictionaryOptions(
        out=Path(DICTIONARY),
        coverage=settings.dict_coverage,
        by=settings.dict_by,
        level="token",
        tokenizer=tokenizer,
        seed=settings.dict_seed,
    )

    def write(fresh: Path) -> None:
        placed = replace(options, out=fresh / DICTIONARY)
        dictionaries.make_dictionary(str(plain), folder.request, placed)

    recipe = {**dictionaries.choice_of(options), "tokenizer": Tokenizer.load(tokenizer).recipe["sha256"]}
    return folder.made("dictionary", {**recipe, **identity_of(Pipeline((plain,)))}, write) / DICTIONARY


def _encoded_texts(folder: DataFolder, languages: Languages, lengths: list[int]) -> dict[int, tuple[Data, ...]]:
    """Return the texts for each row length, each in its languages; without --language, in both: runs share it."""
    texts: list[dict[int, Data]] = []
    for text, numbers in zip(folder.texts(), by_text(folder.settings.asked), strict=True):
        some, check = languages.of(numbers) if folder.settings.language else languages, None
        if text.origin is None:
            read = _taken(text, some, "--derived-source" if texts else "--source")
        else:
            if texts:
                trained = texts[0][lengths[0]].keys
                check = derived_text.overlap_check(folder.request, text.request, trained)
            read = _encoded(text, some, check)
        texts.append({length: read(length) for length in lengths})
    return {length: tuple(text[length] for text in texts) for length in lengths}


def _taken(folder: DataFolder, languages: Languages, option: str) -> Callable[[int], Data]:
    """Return a function that gives the data of a row length as it is, without its source, which `option` names."""

    def read(length: int) -> Data:
        packing = _packing(folder.settings, length)
        return take(folder, languages, seq_len=length, packing=packing, option=option)

    return read


def _encoded(folder: DataFolder, languages: Languages, check: Check | None) -> Callable[[int], Data]:
    """Return a function that encodes a text for a row length, unless that is done. check: as of `encode`."""
    settings, paths, split = folder.settings, folder.paths, find(folder.request).splits[0]
    source = Source.open(
        languages.pipeline,
        folder.request,
        splits=(split,),
        parser=paths.parser,
        parses=paths.parses,
        limit=settings.limit,
    )

    def read(length: int) -> Data:
        return encode(
            partial(folder.made, what="encoding"), source, languages,
            split=split, seq_len=length, limit=settings.limit, packing=_packing(settings, length),
            check=check if length == settings.seq_len else None,
        )  # fmt: skip

    return read


def _packing(settings: TrainingSettings, length: int) -> Packing:
    """Return the packing of a row length: pairs are always of whole sentences."""
    return settings.packing if length == settings.seq_len else "sentences"
