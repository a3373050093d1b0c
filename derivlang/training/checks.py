"""Whether a model can be pre-trained as asked: checks before its folder is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.messages import counted
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.own import OwnTokenizer
from derivlang.pipeline import Pipeline
from derivlang.training.config import ModelConfig
from derivlang.training.language import OPTION, by_text, paired_languages
from derivlang.training.languages import TOKENIZER, check_words, is_mapped, tokenizer_of, twin_trans
from derivlang.training.loader import OpenStream
from derivlang.training.objectives.base import Objective
from derivlang.training.prepare import Prepared
from derivlang.training.settings import TrainingSettings
from derivlang.training.streams.packed import PackedRows
from derivlang.training.streams.pairs import PairRows


def check_settings_fit(settings: TrainingSettings, objective: Objective, model_config: ModelConfig) -> None:
    """Raise UsageError for what can be known before anything is made."""
    if objective.causal != model_config.causal:
        kinds = ("encoders", "an encoder"), ("causal models", "a causal one")
        raise UsageError(
            f"{objective.name} trains {kinds[objective.causal][0]}, but the model {settings.model} "
            f"({model_config.type}) is {kinds[model_config.causal][1]}",
            where="--objective",
            fix="give another --model, e.g. tiny-gpt"
            if objective.causal
            else "give --objective clm, or another --model",
            id="causal-model",
        )
    if settings.language_ids and not model_config.takes_languages:
        raise UsageError(
            f"the model {settings.model} ({model_config.type}) cannot get the language of a position",
            where="--language-ids",
            fix="use ModernBERT, RoBERTa or BERT, or leave it out",
            id="no-token-types",
        )
    if "positions" in settings.own_parts and not model_config.has_position_table:
        raise UsageError(
            f"the model {settings.model} ({model_config.type}) has rotary positions, which no language can have of its "
            "own",
            where="--own",
            fix="use a model with a table of positions, e.g. BERT or RoBERTa, or leave positions out",
            id="unused-option",
        )
    if settings.languages != "both" and not objective.of_one_language:
        raise UsageError(
            f"{objective.name} needs both languages",
            where="--languages",
            fix="leave it out, or give --objective mlm or clm",
            id="unused-option",
        )
    objective.check(settings, model_config)
    if objective.dictionary == "entries" and not settings.language:
        if settings.tokenizer_for is not None:
            raise _no_twin(f"with --tokenizer-for {settings.tokenizer_for} there is none")
        pipeline = Pipeline.parse(settings.spec)
        if not is_mapped(pipeline):
            raise _no_twin(f"{settings.spec} has no twin")
        _check_differs(pipeline)


def check_dictionary(prepared: Prepared, objective: Objective) -> None:
    """Raise UsageError if the dictionary of a run does not suit an objective that reads one."""
    if not objective.dictionary:
        return
    words, without = objective.dictionary == "words", f"the tokenizer of {prepared.files[TOKENIZER]} has no twin"
    if prepared.dictionary is None and words:
        raise UsageError(
            f"{without}, so the objective needs a dictionary of words",
            where="--objective",
            fix="give a dictionary with --dictionary, e.g. of derivlang dict or MUSE",
            id="no-dictionary",
        )
    if prepared.dictionary is None or (prepared.dictionary.words and not words):
        raise _no_twin(without)
    if prepared.languages.are_mapped and prepared.dictionary.spelling is None:
        _check_differs(prepared.languages.pipeline)


def _no_twin(why: str) -> UsageError:
    return UsageError(
        f"the objective needs a dictionary of the entries of a tokenizer and its twin, but {why}",
        where="--objective",
        fix="give another objective, e.g. mlm or tlm, or leave out --init, --tokenizer and --tokenizer-for; with "
        "--language, give dictionaries of words: --dictionary en-fr=FILE",
        id="no-twin",
    )


def _check_differs(pipeline: Pipeline) -> None:
    """Raise UsageError if both languages have the same words, so that a dictionary translates nothing."""
    if twin_trans(pipeline).overlap == 100:
        raise UsageError(
            f"{pipeline} changes no word, so a dictionary translates nothing",
            where="--objective",
            fix="give an objective without a dictionary, e.g. mlm or xlm, or words of another script: --t trans,…",
            id="no-lexicon",
        )


def check_texts(settings: TrainingSettings, objective: Objective, pairs: Sequence[Path]) -> None:
    """Raise UsageError if the languages are to have a text each, but this has no effect, or would not keep them apart.

    pairs: the files of --pairs.
    """
    paired = paired_languages(settings.asked, pairs, named=bool(settings.language))
    of_files = bool(pairs) and all(path is not None for path in paired.values())
    parts, texts = any("/" in one.part for one in settings.asked), by_text(settings.asked)
    together = len(texts) == 1 or (settings.language and any(len(numbers) > 1 for numbers in texts))
    if together and not parts:
        return
    option = OPTION if settings.language else "--halves" if settings.halves else "--derived-source"
    files, streams = ("pairs",) if of_files else (), objective.streams()
    # With --language the texts say what the languages are, so all rows may be of files.
    if (parts or not settings.language) and not any(stream.reads_text(files) for stream in streams):
        raise UsageError(
            f"{objective} reads no text of the corpus", where=option, fix="leave it out", id="unused-option"
        )
    # Copies of sentences in their own language follow the texts, but not parts of one text.
    if not all(stream.keeps_apart(files) or not (parts or stream.pair_kinds) for stream in streams):
        raise UsageError(
            f"{objective} reads sentences of the corpus in both languages",
            where=option,
            fix="give an objective without pairs, or pairs of another text with --pairs",
            id="unused-option",
        )
    if parts and settings.packing == "stream":
        raise UsageError(
            "a stream is cut without regard to sentences, so its halves would share one",
            where=option,
            fix="leave out --packing",
            id="two-options",
        )


def check_languages(settings: TrainingSettings, tokenizer: Path | None, objective: Objective) -> None:
    """Raise UsageError or StoreError if the languages cannot be made, before anything is made of them.

    tokenizer: the folder of a given tokenizer.
    """
    pipelines = [Pipeline.parse(one.t) for one in settings.asked]
    given = None if tokenizer is None else tokenizer_of(tokenizer)
    for pipeline in pipelines:
        pipeline.check_keyed("training")
    may_have_twin = given is None or (isinstance(given, OwnTokenizer) and given.kind != "both")
    mapped = may_have_twin and settings.tokenizer_for is None
    spoken = [pipeline for pipeline in pipelines[1:] if not (mapped and is_mapped(pipeline))]
    if not spoken:
        return
    for pipeline in spoken:
        check_words(pipeline)
    if settings.packing == "stream":
        raise UsageError(
            "rows of languages without a twin are of whole sentences, not cut from a stream",
            where="--packing",
            fix="leave it out",
            id="unused-option",
        )
    if not isinstance(given, ForeignTokenizer):
        return
    if settings.tokenizer_for is not None:
        raise UsageError(
            f"the tokenizer of {tokenizer} reads both languages",
            where="--tokenizer-for",
            fix="leave it out, or give no --tokenizer and no --init",
            id="unused-option",
        )
    if given.special_ids[-1] is None and not objective.causal:
        raise StoreError(
            "its tokenizer has no mask token",
            where=str(tokenizer),
            fix="give the tokenizer of a masked language model, or --objective clm",
            id="special-tokens",
        )


def check_all_read(settings: TrainingSettings, streams: Sequence[OpenStream], steps: int) -> None:
    """Raise UsageError if a language of --language has no row in the steps of a run."""
    if not settings.language:
        return
    unread = set(range(len(settings.asked)))
    for one in streams:
        if isinstance(one.source, PackedRows):
            if few := one.source.without_rows(int(one.size), steps):
                fix = "raise its share, --steps or --batch-size"
                what = f"{few[0]} gets no row in {counted(steps, 'step')} of {one.size} rows"
                raise UsageError(what, where=OPTION, fix=fix, id="languages")
            return
        unread -= set(np.unique(one.source.source.languages).tolist()) if isinstance(one.source, PairRows) else unread
    if unread:
        raise UsageError(
            f"{settings.asked[min(unread)].name} is in no sentence pair, and no other rows are read",
            where=OPTION,
            fix="give its pairs with --pairs, give another objective, or leave it out",
            id="languages",
        )


def check_pairs(pairs: Sequence[Path], objective: Objective, streams: tuple[OpenStream, ...]) -> None:
    """Raise UsageError for a file of sentence pairs that no stream has read."""
    if pairs and not any("sha256" in one.source.facts() for one in streams):
        raise UsageError(
            f"the rows of {objective.name} are only of the corpus, so it does not read {', '.join(map(str, pairs))}",
            where="--pairs",
            fix="leave --pairs out, or give an objective with sentence pairs, e.g. tlm",
            id="unused-option",
        )


def check_division(settings: TrainingSettings, streams: tuple[OpenStream, ...], world: int) -> None:
    """Raise UsageError if the rows of a step cannot be divided into micro-batches on `world` processes."""
    parts = settings.accumulate * world
    if settings.batch_size % parts:
        raise UsageError(
            f"{settings.batch_size} rows cannot be divided into {parts} equal micro-batches",
            where="--batch-size",
            id="bad-value",
        )
    few = min(streams, key=lambda one: one.size)
    if int(few.size) < parts:
        raise UsageError(
            f"a step has {counted(int(few.size), 'row')} of the stream {few.stream.name!r}, fewer than its "
            f"{parts} micro-batches",
            where="--accumulate",
            fix="lower it, or raise --batch-size; shorter rows (--pair-length) are more rows, too",
            id="bad-value",
        )
