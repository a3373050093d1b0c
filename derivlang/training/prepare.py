"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

All runs may share one folder of data: each folder in it has the name of what it is made of (data_folder.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import warn
from derivlang.engine.batches import Source
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.settings import DictionaryOptions
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store import made_of
from derivlang.training.data import Data
from derivlang.training.data_folder import LANGUAGES, DataFolder, Origin, identity_of, languages_of
from derivlang.training.encode import encode, heldout_overlap
from derivlang.training.language import OPTION, by_text, only_file, paired_languages
from derivlang.training.languages import (
    SOURCE,
    TOKENIZER,
    Languages,
    of_texts,
    twin_trans,
)
from derivlang.training.languages.joint import SCRIPT_HINT
from derivlang.training.languages.readers import unknown_warning
from derivlang.training.settings import RunPaths, TrainingSettings
from derivlang.training.translations import DICTIONARY, Translations, joined, read_entries, read_words
from derivlang.training.word_dictionaries import WordDictionary, check_direction, read_dictionaries, spelt

_UNREADABLE = 30.0  # percent of unknown sub-words above which a language is refused


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    settings: of the run. folder: of the data, shared by runs. files: what a run keeps to use its model, by name:
    folders of tokenizers, a fitted lexicon, a dictionary. encoded: the texts for each row length, the source's first;
    none of a run that reads only pairs. pairs: where sentence pairs come from, as of `paired_languages`. dictionary:
    without a twin it is one of words, None if none was given. given: the name of the file of a dictionary that was
    given, "" if it was made. origin: the files of the source; None without one. used: the names of the folders of data
    that the run uses. overlap: held-out sentences of the source that other texts have. others: the files of these
    texts.
    """

    settings: TrainingSettings
    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    encoded: Mapping[int, tuple[Data, ...]]
    pairs: Mapping[tuple[int, int], Path | None]
    dictionary: Translations | None
    given: str = ""
    origin: Origin | None = None
    used: list[str] = field(default_factory=list)
    overlap: int = 0
    others: tuple[Origin, ...] = ()

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

    def text(self, length: int, language: int) -> Data:
        """Return the text of a language, in pieces for rows of a length."""
        return self.by_language(length)[language]

    def by_language(self, length: int) -> dict[int, Data]:
        """Return the text that each language reads, by its number, in pieces for rows of a length."""
        return {number: data for data, numbers in self.texts_of(length) for number in numbers}

    def texts_of(self, length: int) -> list[tuple[Data, tuple[int, ...]]]:
        """Return the texts in pieces for rows of a length, and the languages that read them."""
        return list(zip(self.encoded.get(length, ()), by_text(self.settings.asked), strict=False))

    @property
    def pair_files(self) -> dict[tuple[int, int], Path]:
        """The files of sentence pairs, by the numbers of both languages."""
        return {sides: path for sides, path in self.pairs.items() if path is not None}


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
    folder = DataFolder(settings, request, paths, Origin.of(request))
    folder.warn_of_rules()
    given = read_dictionaries(paths.dictionary, settings.asked, warn) if settings.language else []
    only = None if settings.language else only_file(paths.dictionary, "--dictionary")

    # Tokenizer, with its twin or with the lexicon of a checkpoint
    languages, files = languages_of(folder)

    # Dictionary
    dictionary: Translations | None = None
    if settings.language:
        dictionary = _dictionaries(folder, languages, files, given)
    elif languages.are_mapped:
        file = only or _dictionary(folder, languages.readers[-1].pipeline, files[TOKENIZER])
        dictionary = read_entries(file, languages, warn)
        files |= {DICTIONARY: file, f"{DICTIONARY}.recipe.json": Path(f"{file}.recipe.json")}
    elif only is not None:
        dictionary = read_words(only, warn)

    # Encoded text
    folders, every = folder.texts(), list(dict.fromkeys((settings.seq_len, *sorted(lengths))))
    encoded, overlap = _encoded_texts(folders, languages, every)
    _check_unknown(folder, languages, encoded[settings.seq_len])
    names = [language.name for language in settings.asked]
    files_given = [f"{names[one.left]}-{names[one.right]}={one.path.name}" for one in given]
    name = ", ".join(files_given or [path.name for path in paths.dictionary])
    pairs = paired_languages(settings.asked, paths.pairs, named=bool(settings.language))
    prepared = Prepared(
        settings, paths.home, languages, files, encoded, pairs, dictionary, name, folder.origin, folder.used, overlap,
        tuple(one.origin for one in folders[1:]),
    )  # fmt: skip
    for one in given:
        check_direction(one, languages, prepared.by_language(settings.seq_len), names)
    return prepared


def prepare_pairs(settings: TrainingSettings, paths: RunPaths) -> Prepared:
    """Return the inputs of a run without a source. Raise UsageError if tokenizer or transforms need one.

    Its sentence pairs may be of any two languages, so their tokenizer comes from a checkpoint.
    """
    pipeline = Pipeline.parse(settings.spec)
    if paths.tokenizer is None or not is_foreign(paths.tokenizer):
        raise UsageError(
            "without a source, the pairs need the tokenizer of a checkpoint",
            where="--tokenizer",
            fix="give --init or --tokenizer of a checkpoint, or --source and --t",
            id="tokenizer",
        )
    if pipeline.needs_counts():
        raise UsageError(
            f"{pipeline} keeps words that are chosen from a source",
            where="--t",
            fix="give --source, or leave --t out",
            id="missing-option",
        )
    tokenizer, file = ForeignTokenizer.load(paths.tokenizer), only_file(paths.dictionary, "--dictionary")
    dictionary, name = (None, "") if file is None else (read_words(file, warn), file.name)
    languages = of_texts(pipeline, tokenizer, pipeline.fit())
    pairs = paired_languages(settings.asked, paths.pairs, named=bool(settings.language))
    prepared = Prepared(settings, paths.home, languages, {}, {}, pairs, dictionary, name)
    own = prepared.made("tokenizer", {"of": tokenizer.fingerprint}, tokenizer.save)
    return replace(prepared, files={TOKENIZER: own})


def _check_unknown(folder: DataFolder, languages: Languages, texts: Sequence[Data]) -> None:
    """Warn of a language with many unknown sub-words; with --language, raise DataError if they are very many."""
    asked, several = folder.settings.asked, bool(folder.settings.language)
    for text, numbers in zip(texts, by_text(asked), strict=True):
        for number in numbers:
            reader, share = languages.readers[number], text.recipe["unknown_percent"][text.column[number]]
            mapped, where = reader.lexicon is None, f"the tokenizer of {reader.tokenizer.folder}"
            side, hint = (text.recipe["source"], "") if mapped else ("the derived language", SCRIPT_HINT)
            if several:
                side, hint = asked[number].name, ""
            elif number == SOURCE or (mapped and text is texts[0]):
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
            path = _dictionary(folder, reader.pipeline, files[TOKENIZER])
            read[number] = read_entries(path, languages, warn, number)
            files[f"{LANGUAGES}/{language.name}/{DICTIONARY}"] = path
    if given:
        return spelt(given, read, languages)
    return joined(read) if read else None


def _dictionary(folder: DataFolder, pipeline: Pipeline, tokenizer: Path) -> Path:
    """Return the dictionary of a language and this coverage, made if it is missing. All objectives share the file."""
    settings, plain = folder.settings, replace(twin_trans(pipeline), overlap=0)
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


def _encoded_texts(
    folders: Sequence[DataFolder], languages: Languages, lengths: list[int]
) -> tuple[dict[int, tuple[Data, ...]], int]:
    """Return the texts for each row length, each in its languages; without --language, in both: runs share it.

    Return how many held-out sentences of the source are in the other texts, too. folders: of `DataFolder.texts`.
    """
    settings, overlap = folders[0].settings, 0
    texts: list[dict[int, Data]] = []
    for text, numbers in zip(folders, by_text(settings.asked), strict=True):
        some = languages.of(numbers) if settings.language else languages
        source = _source(text, some)
        split, several = source.corpus.splits[0], len(source.corpus.splits) > 1
        if split != "train" and (several or "train" in source.corpus.expected):
            warn(f"{source.corpus.name} has no train split: the run is trained on {split}")
        read: dict[int, Data] = {}
        for length in lengths:
            # pairs are always of whole sentences
            packing = settings.packing if length == settings.seq_len else "sentences"
            read[length] = encode(
                partial(text.made, what="encoding"), source, some,
                split=split, seq_len=length, limit=settings.limit, packing=packing,
            )  # fmt: skip
        if texts:
            trained, keys = (one[settings.seq_len].keys for one in (texts[0], read))
            overlap += heldout_overlap(folders[0].request, text.request, trained, keys)
        texts.append(read)
    return {length: tuple(read[length] for read in texts) for length in lengths}, overlap


def _source(folder: DataFolder, languages: Languages) -> Source:
    """Return the text to encode, with trees if an order needs them."""
    paths, split = folder.paths, find(folder.request).splits[0]
    parsing: dict[str, Any] = {"limit": folder.settings.limit, "parser": paths.parser, "parses": paths.parses}
    return Source.open(languages.pipeline, folder.request, splits=(split,), **parsing)
