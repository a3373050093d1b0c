"""Prepare the inputs of training: tokenizer, twin, dictionary and encoded data. Missing ones are made.

DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     made once for all objectives of a language pair
DATA/tokenizer  DATA/lexicon.tsv                  DATA/train-512     with the tokenizer of a checkpoint
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from derivlang.core.errors import StoreError
from derivlang.core.messages import warn
from derivlang.core.parse_errors import parse_errors
from derivlang.core.seal import sealed
from derivlang.engine.batches import Source
from derivlang.engine.events import Events
from derivlang.engine.job import Job
from derivlang.engine.plan import as_earlier, source_files
from derivlang.formats.progress import stage
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical import train as tokenizers
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.settings import DictionaryOptions, TokenizerOptions
from derivlang.lexical.tokenizer import TOKENIZERS, Tokenizer
from derivlang.lexical.twin_folder import TWINS, make_twin, trans_of
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.artifact import Artifact, kind_of_files
from derivlang.store.disk import file_lock
from derivlang.store.files import write_texts
from derivlang.store.folders import sweep
from derivlang.store.record import check_types, difference, record_text
from derivlang.training.data import Data
from derivlang.training.dictionary import DICTIONARY, JointDictionary, WordDictionary
from derivlang.training.encode import check_source, encode, take
from derivlang.training.languages import (
    DERIVED,
    LEXICON,
    TOKENIZER,
    TWIN,
    Languages,
    TextLanguages,
    TwinLanguages,
    is_foreign,
)
from derivlang.training.languages.base import unknown_warning
from derivlang.training.languages.texts import SCRIPT_HINT
from derivlang.training.settings import Packing, RunPaths, TrainingSettings
from derivlang.transforms.lexicon_file import read_lexicon

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """The inputs of training.

    folder: that of the encoded data, shared by runs. files: what a run keeps to use its model, by name: folders of
    tokenizers, a fitted lexicon, a dictionary. data: encoded for rows of `seq_len` sub-words; encoded: for each row
    length. pairs: the dictionary; with the tokenizer of a checkpoint it is one of words, None if none was given.
    given: the name of the file of a dictionary that was given, "" if it was made. heldout: names and hashes of the
    files of held-out text; None if the data was taken without its source.
    """

    folder: Path
    languages: Languages
    files: Mapping[str, Path]
    data: Data
    pairs: JointDictionary | WordDictionary | None
    encoded: Mapping[int, Data]
    given: str = ""
    heldout: list[dict[str, Any]] | None = None


def _nothing(message: str) -> None:
    pass


def prepare_data(
    settings: TrainingSettings,
    request: SourceRequest,
    paths: RunPaths,
    warn: Say = warn,
    say: Say = _nothing,
    *,
    lengths: Collection[int] = (),
) -> Prepared:
    """Return tokenizer, twin, dictionary and encoded data. Existing ones, also of a concurrent run, are reused.

    warn, say: called with warnings, and with what begins. lengths: row lengths for which the source is encoded, besides
    `seq_len`. Raise DerivlangError if existing files do not fit the settings.
    """
    folder = paths.data or paths.run / "data"
    with nullcontext() if paths.data_as_is else file_lock(folder):
        return _prepare(folder, settings, request, paths, warn, say, {settings.seq_len, *lengths})


def _prepare(
    folder: Path,
    settings: TrainingSettings,
    request: SourceRequest,
    paths: RunPaths,
    warn: Say,
    say: Say,
    lengths: Collection[int],
) -> Prepared:
    pipeline = Pipeline.parse(settings.spec)
    if not paths.data_as_is:
        sweep(folder)
    origin = None if paths.data_as_is else _origin(request)
    for length in sorted(lengths) if origin is None else ():
        check_source(_there(folder, settings, length), request)
    languages, files = _languages(folder, pipeline, settings, request, paths, warn, say, origin)
    pairs: JointDictionary | WordDictionary | None = None
    if isinstance(languages, TwinLanguages):
        dictionary = paths.dictionary or _dictionary(settings, request, folder, files[TOKENIZER], warn, say, origin)
        pairs = JointDictionary.read(dictionary, languages, warn)
        files |= {DICTIONARY: dictionary, f"{DICTIONARY}.recipe.json": Path(f"{dictionary}.recipe.json")}
    elif paths.dictionary is not None:
        pairs = WordDictionary.read(paths.dictionary, warn)
    read = _taken if paths.data_as_is else _encoded(folder, origin, pipeline, request, paths, settings, warn, say)
    encoded = {length: read(folder, languages, settings, length) for length in sorted(lengths)}
    if isinstance(languages, TextLanguages):
        share = encoded[settings.seq_len].recipe["unknown_percent"][DERIVED]
        if told := unknown_warning(
            share, "the derived language", f"the tokenizer of {languages.tokenizer.folder}", SCRIPT_HINT
        ):
            warn(told)
    given = "" if paths.dictionary is None else paths.dictionary.name
    heldout = None if origin is None else origin["heldout"]
    return Prepared(folder, languages, files, encoded[settings.seq_len], pairs, encoded, given, heldout)


def _origin(request: SourceRequest) -> dict[str, Any]:
    """Return {"files", "heldout", "reading"}: what tokenizers and dictionaries are made of, and the held-out files.

    files, heldout: names and hashes, as of `source_files`. reading: how they are read.
    """
    corpus = find(request)
    first, heldout = corpus.splits[0], corpus.heldout
    hashed = source_files(Job(corpus, encoding=request.encoding), [first, heldout])
    files, other = ([file for file in hashed if file["split"] == split] for split in (first, heldout))
    return {"files": files, "heldout": other, "reading": corpus.reading(request.encoding)}


def _check_origin(path: Path, recipe: Mapping[str, Any], origin: dict[str, Any] | None) -> None:
    """Raise StoreError if the recipe of a file in the data folder names another source. None: there is none to ask."""
    if origin is None:
        return
    with parse_errors(str(path), "recipe", error=StoreError, id="data"):
        check_types(recipe, {}, {"source": dict, "reading": dict})
        told = {"files": (recipe.get("source") or {}).get("files"), "reading": recipe.get("reading")}
        recorded = {name: value for name, value in told.items() if value is not None}  # earlier versions lack some
        wanted = {name: origin[name] for name in recorded}
        what = difference(recorded, wanted, earlier={"files": as_earlier(origin["files"])})
    if what:
        raise StoreError(
            f"was made of another text: {what}",
            where=str(path),
            fix="give another --data folder, or the same source",
            id="other-data",
        )


def _required(origin: dict[str, Any] | None, path: Path) -> dict[str, Any]:
    """Return the origin of a file that must be made. Raise StoreError if the data is taken without its source."""
    if origin is None:
        raise StoreError(
            "is missing, and with --data-as-is nothing is made from the source",
            where=str(path),
            fix="copy it from where the data was made, or leave out --data-as-is",
            id="data",
        )
    return origin


def _languages(
    folder: Path,
    pipeline: Pipeline,
    settings: TrainingSettings,
    request: SourceRequest,
    paths: RunPaths,
    warn: Say,
    say: Say,
    origin: dict[str, Any] | None,
) -> tuple[Languages, dict[str, Path]]:
    """Return the languages, and the files that a run keeps of them, by name."""
    tokenizer = paths.tokenizer or folder / TOKENIZER
    if is_foreign(tokenizer):
        return _of_checkpoint(folder, pipeline, request, paths, tokenizer, warn, origin)
    if paths.tokenizer is None and not TOKENIZERS.is_whole(tokenizer):
        _required(origin, tokenizer)
        say("training the tokenizer")
        tokenizers.train(request, tokenizer, TokenizerOptions(vocab_size=settings.vocab_size))
    found = Tokenizer.load(tokenizer)
    if found.size != settings.vocab_size and paths.tokenizer is None:
        raise StoreError(
            f"has {found.size:,} entries instead of {settings.vocab_size:,}",
            where=str(tokenizer),
            fix="give another --data folder, or the same --vocab-size",
            id="other-tokenizer",
        )
    if paths.tokenizer is None:
        _check_origin(tokenizer, found.recipe, origin)
    twin = folder / TWIN
    if not TWINS.is_whole(twin):
        make_twin(tokenizer, settings.spec, twin)
    languages = TwinLanguages.of(pipeline, found, twin, "give another --data folder")
    return languages, {TOKENIZER: tokenizer, TWIN: twin}


def _of_checkpoint(
    folder: Path,
    pipeline: Pipeline,
    request: SourceRequest,
    paths: RunPaths,
    tokenizer: Path,
    warn: Say,
    origin: dict[str, Any] | None,
) -> tuple[Languages, dict[str, Path]]:
    """Return languages with the tokenizer of a checkpoint, and a lexicon that is fitted once for all runs."""
    own, lexicon = folder / TOKENIZER, folder / LEXICON
    found = ForeignTokenizer.load(tokenizer)
    found.copy(own)
    saved = None
    told = Artifact(kind=LEXICONS, path=lexicon, wanted={}).found(warn)
    if told is not None:
        _check_origin(lexicon, told, origin)
        saved = read_lexicon(lexicon)
    if pipeline.needs_counts(saved):
        origin = _required(origin, lexicon)
        fitted = Source.open(pipeline, request, parser=paths.parser, trees=False).lexicon()
        saved = pipeline.save(fitted)
        if saved is not None:
            recipe = {"source": {"files": origin["files"]}, "reading": origin["reading"]}
            recipe = sealed({**recipe, "files": {lexicon.name: sha256(saved.encode()).hexdigest()}})
            texts = {lexicon.name: saved, LEXICONS.record_of(lexicon).name: record_text(recipe)}
            write_texts(lexicon, texts)
    languages = TextLanguages(pipeline, found, pipeline.fit(saved=saved, where=str(lexicon)))
    return languages, {TOKENIZER: own} | ({} if saved is None else {LEXICON: lexicon})


Read: TypeAlias = Callable[[Path, Languages, TrainingSettings, int], Data]


def _taken(folder: Path, languages: Languages, settings: TrainingSettings, length: int) -> Data:
    """Return the data of a row length as it is, without its source."""
    packing = _packing(settings, length)
    there = _there(folder, settings, length)
    return take(there, languages, seq_len=length, limit=settings.limit, packing=packing)


def _there(folder: Path, settings: TrainingSettings, length: int) -> Path:
    """Return the folder of the data of a row length, of whichever split it was made."""
    ending = _ending(settings, length)
    return next(iter(sorted(folder.glob(f"*{ending}"))), folder / f"train{ending}")


def _encoded(
    folder: Path,
    origin: dict[str, Any] | None,
    pipeline: Pipeline,
    request: SourceRequest,
    paths: RunPaths,
    settings: TrainingSettings,
    warn: Say,
    say: Say,
) -> Read:
    """Return a function that encodes the source for a row length, unless that is done."""
    say("encoding")
    split = find(request).splits[0]
    source = Source.open(
        pipeline,
        request,
        splits=(split,),
        parser=paths.parser,
        parses=paths.parses,
        limit=settings.limit,
        events=Events(warn),
    )
    # The source may have changed since the tokenizer or the dictionary was made of it.
    _check_origin(folder, {"source": {"files": source.files([split])}}, origin)

    def read(folder: Path, languages: Languages, settings: TrainingSettings, length: int) -> Data:
        with stage("encoding"):
            return encode(
                folder / f"{split}{_ending(settings, length)}",
                source,
                languages,
                split=split,
                seq_len=length,
                limit=settings.limit,
                packing=_packing(settings, length),
            )

    return read


def _packing(settings: TrainingSettings, length: int) -> Packing:
    """Return the packing of a row length: pairs are always of whole sentences."""
    return settings.packing if length == settings.seq_len else "sentences"


def _ending(settings: TrainingSettings, length: int) -> str:
    return f"-{length}{'-stream' if _packing(settings, length) == 'stream' else ''}"


LEXICONS = kind_of_files("lexicon", fix="remove it and its recipe, and run again", id="other-data")


def _dictionary(
    settings: TrainingSettings,
    request: SourceRequest,
    folder: Path,
    tokenizer: Path,
    warn: Say,
    say: Say,
    origin: dict[str, Any] | None,
) -> Path:
    """Return the dictionary of this coverage, made if it is missing. All objectives share the file."""
    coverage = settings.coverage.replace("/", "_")  # 100/3
    name = f"dictionary-{coverage}-{settings.dictionary_by}-{settings.dictionary_seed}.tsv"
    path = folder / name
    options = DictionaryOptions(
        out=path,
        coverage=settings.coverage,
        by=settings.dictionary_by,
        level="token",
        tokenizer=tokenizer,
        seed=settings.dictionary_seed,
    )
    wanted = dictionaries.choice_of(options)
    told = Artifact(kind=dictionaries.DICTIONARIES, path=path, wanted=wanted).found(warn)
    if told is not None:
        _check_origin(path, told, origin)
    else:
        _required(origin, path)
        say("making the dictionary")
        # An overlap keeps words, but every vocabulary entry still has a twin.
        plain = replace(trans_of(Pipeline.parse(settings.spec)), overlap=0)
        with stage("making the dictionary"):
            dictionaries.make_dictionary(str(plain), request, options, warn)
    return path
