"""What training starts from: tokenizer, twin, dictionary and encoded data, made where they are not there.

DATA/tokenizer  DATA/twin  DATA/dictionary-….tsv  DATA/train-512     once, shared by every objective of a pair
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from derivlang.core.errors import StoreError
from derivlang.engine.batches import Source
from derivlang.engine.make import Events
from derivlang.lexical import dictionary as dictionaries
from derivlang.lexical import train as tokenizers
from derivlang.lexical.percent import percent
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin_folder import Twin, make_twin, trans_of
from derivlang.pipeline import Pipeline
from derivlang.sources.find import Request, find
from derivlang.store.disk import alone
from derivlang.training.data import Data, Packing
from derivlang.training.dictionary import Dictionary
from derivlang.training.encode import encode, take
from derivlang.training.languages import TOKENIZER, TWIN, Languages
from derivlang.training.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Where:
    """Where a run reads and writes. data: the folder of encoded data, or None for one in the run's. tokenizer,
    dictionary: ready ones. parser, parses: as of `make`. as_is: take the encoded data without looking at its source,
    which need not be there."""

    run: Path
    data: Path | None = None
    tokenizer: Path | None = None
    dictionary: Path | None = None
    parser: str | None = None
    parses: Path | None = None
    as_is: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What training starts from."""

    tokenizer: Path
    twin: Path
    languages: Languages
    data: Data
    dictionary: Path
    pairs: Dictionary


def _nothing(message: str) -> None:
    pass


def prepare_data(
    settings: Settings, request: Request, where: Where, warn: Say = _nothing, stage: Say = _nothing
) -> Prepared:
    """Tokenizer, twin, dictionary and encoded data; what is there already, or is being made, is taken.

    warn, stage: told of warnings, and of what begins. Raises DerivlangError: what is there does not fit the settings.
    """
    folder = where.data or where.run / "data"
    with nullcontext() if where.as_is else alone(folder):
        return _prepare(folder, settings, request, where, warn, stage)


def _prepare(folder: Path, settings: Settings, request: Request, where: Where, warn: Say, stage: Say) -> Prepared:
    pipeline = Pipeline.parse(settings.spec)
    tokenizer = where.tokenizer or folder / TOKENIZER
    if where.tokenizer is None and not tokenizer.exists():
        stage("training the tokenizer")
        tokenizers.train(request, tokenizer, vocab_size=settings.vocab_size)
    found = Tokenizer.load(tokenizer)
    if found.size != settings.vocab_size and where.tokenizer is None:
        raise StoreError(
            f"has {found.size:,} entries, and {settings.vocab_size:,} are asked for",
            where=str(tokenizer),
            fix="another --data folder, or the same --vocab-size",
            id="other-tokenizer",
        )
    twin = folder / TWIN
    if not twin.exists():
        make_twin(tokenizer, settings.spec, twin)
    languages = Languages(pipeline, found, Twin.load(twin))
    recipe, wanted = languages.twin.tokenizer.recipe, str(trans_of(settings.spec))
    if recipe["of"] != found.fingerprint() or recipe["spec"] != wanted:
        other = f"of {recipe['spec']}, not {wanted}" if recipe["spec"] != wanted else "of another tokenizer"
        raise StoreError(f"is a twin {other}", where=str(twin), fix="another --data folder", id="other-twin")
    dictionary = where.dictionary or _dictionary(settings, request, folder, tokenizer, warn, stage)
    pairs = Dictionary.read(dictionary, languages)
    packing: Packing = settings.packing  # type: ignore[assignment]
    ending = f"-{settings.seq_len}{'-stream' if packing == 'stream' else ''}"
    if where.as_is:
        there = next(iter(sorted(folder.glob(f"*{ending}"))), folder / f"train{ending}")
        data = take(there, languages, seq_len=settings.seq_len, limit=settings.limit, packing=packing)
        return Prepared(tokenizer, twin, languages, data, dictionary, pairs)
    stage("encoding")
    split = find(request).splits[0]
    source = Source.open(
        pipeline,
        request,
        splits=(split,),
        parser=where.parser,
        parses=where.parses,
        limit=settings.limit,
        events=Events(warn),
    )
    data = encode(
        folder / f"{split}{ending}",
        source,
        languages,
        split=split,
        seq_len=settings.seq_len,
        limit=settings.limit,
        packing=packing,
    )
    return Prepared(tokenizer, twin, languages, data, dictionary, pairs)


def _dictionary(settings: Settings, request: Request, folder: Path, tokenizer: Path, warn: Say, stage: Say) -> Path:
    """The dictionary of this coverage, made where it is not there: the same file for every objective."""
    name = f"dictionary-{settings.coverage}-{settings.dictionary_by}-{settings.dictionary_seed}.tsv"
    path = folder / name
    if not path.exists():
        stage("making the dictionary")
        plain = replace(trans_of(settings.spec), overlap=0)  # an overlap keeps words; entries have twins all the same
        options = dictionaries.Options(
            path,
            coverage=percent(settings.coverage, "--dict-coverage"),
            by=settings.dictionary_by,  # type: ignore[arg-type]
            level="token",
            tokenizer=tokenizer,
            seed=settings.dictionary_seed,
        )
        dictionaries.make_dictionary(str(plain), request, options, warn)
    return path
