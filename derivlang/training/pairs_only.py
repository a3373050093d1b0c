"""Runs that read only sentence pairs of a file, without a source and its derived language.

    derivlang pretrain --objective tlm --pairs en-fr.parquet --init hub:FacebookAI/xlm-roberta-base -o run

Whether an objective needs a source follows from what its streams and needs declare (`reads_text`). The pairs may be of
any two languages, so their tokenizer comes from a checkpoint, and the pipeline is `identity` unless one is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.messages import warn
from derivlang.core.settings import declared
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.language import only_file
from derivlang.training.languages import TOKENIZER, of_texts
from derivlang.training.objectives.base import Objective
from derivlang.training.prepare import Prepared
from derivlang.training.settings import RunPaths, TrainingSettings
from derivlang.training.translations import read_words

SPEC = "identity"
_FILES = ("dictionary", "pairs")


def check_text(objective: Objective, options: Mapping[str, Any], *, source: bool, spec: bool) -> None:
    """Raise UsageError if a source or transforms are missing that the objective needs, or if options have no source.

    options: of `pretrain`. source, spec: whether they are given.
    """
    if source and spec:
        return
    if objective.reads_text({name for name in _FILES if options.get(name)}):
        pairs = "" if objective.reads_text(_FILES) else ", or sentence pairs with --pairs"
        raise UsageError(
            f"is missing: {objective.name} reads the text of a source and of its derived language",
            where="--t" if source else "--source",
            fix=f"give --source and --t{pairs}",
            id="missing-option",
        )
    for one in declared(SourceRequest).values() if not source else ():
        if one.option and options.get(one.name) not in (None, (), one.default):
            raise UsageError("has no effect without --source", where=one.option, fix="leave it out", id="unused-option")
    if not source and options.get("data_only"):
        raise UsageError("there is no text to encode without --source", where="--data-only", id="unused-option")


def prepare_pairs(settings: TrainingSettings, paths: RunPaths) -> Prepared:
    """Return the inputs of a run without a source. Raise UsageError if tokenizer or transforms need one."""
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
    tokenizer, dictionary = ForeignTokenizer.load(paths.tokenizer), only_file(paths.dictionary, "--dictionary")
    prepared = Prepared(
        folder=paths.data or paths.run / "data",
        languages=of_texts(pipeline, tokenizer, pipeline.fit()),
        files={},
        pairs=None if dictionary is None else read_words(dictionary, warn),
        encoded={},
        given="" if dictionary is None else dictionary.name,
    )
    own = prepared.made("tokenizer", {"of": tokenizer.fingerprint}, tokenizer.save)
    return replace(prepared, files={TOKENIZER: own})
