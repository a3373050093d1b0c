"""The weights that a run begins with: from another run or a checkpoint, perhaps with other embeddings.

    --init RUN | RUN@STEP        the model of a finished run, or of one of its checkpoints
           FOLDER | hub:NAME     a checkpoint that was trained elsewhere (begun_from.py), with its own tokenizer
    --embeddings keep            as they are
                 copy            each sub-word of the derived language gets its twin's, also in a new model
                 new             drawn anew; the tokenizers may be others (Artetxe et al. 2020, MonoTrans, section 3)
                 permute         the same rows in another order, within each language (Wu et al. 2022, section 3)

Rows of special tokens are always kept. Input and output embeddings are treated alike. The rows of a step and their
masks are drawn anew: they depend on the weights that a run begins with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.errors import StoreError, UsageError
from derivlang.core.keys import draw, text_key
from derivlang.core.messages import in_shell
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.lexical.twin import Twin
from derivlang.training import checkpoint
from derivlang.training.begun_from import INIT, check_vocabulary, checkpoint_folder, load_model, model_of
from derivlang.training.config import ModelConfig
from derivlang.training.encoder import positions_of
from derivlang.training.languages import DERIVED_TOKENIZER, TOKENIZER, TWIN, Languages, tokenizer_of
from derivlang.training.masking import LanguageIds
from derivlang.training.model import is_tied, set_tie
from derivlang.training.own_parts import refuse_own
from derivlang.training.settings import RunPaths, TrainingSettings

_EMBEDDINGS = "--embeddings"


def init_of(
    paths: RunPaths, settings: TrainingSettings, before: Mapping[str, Any] | None, *, causal: bool
) -> dict[str, Any] | None:
    """Return what a run begins from, for run.json: {"run": as given, "weights": hash of its model}; None: a new model.

    A checkpoint that was trained elsewhere is tried at once. before: the record of a run to resume, which suffices.
    causal: whether the objective needs a causal model. Raise UsageError if there is nothing to take the embeddings
    from, StoreError if there is no such model.
    """
    run, how = paths.init, settings.embeddings
    if run is None:
        if how not in ("keep", "copy"):
            raise UsageError(
                "there is no run to take the embeddings from", where=_EMBEDDINGS, fix="give --init RUN", id="usage"
            )
        return None
    if before is not None and (before.get("init") or {}).get("run") == run:
        facts: dict[str, Any] = before["init"]
        return facts
    elsewhere = checkpoint_folder(run)
    if elsewhere is not None:
        lm = load_model(elsewhere, causal=causal)
        if how != "new":
            check_vocabulary(lm, ForeignTokenizer.load(elsewhere).size, str(elsewhere))
    path = model_of(run)[1] if elsewhere is None else elsewhere
    return {"run": run, "weights": checkpoint.hash_of_weights(path)}


def init_model(
    facts: Mapping[str, Any], settings: TrainingSettings, model_config: ModelConfig, languages: Languages, longest: int
) -> Any:
    """Return the language model to begin with. facts: as of `init_of`.

    longest: number of sub-words in the longest row. Raise UsageError if the run does not fit the settings, StoreError
    if it cannot be read.
    """
    elsewhere = checkpoint_folder(facts["run"])
    run, path = (None, elsewhere) if elsewhere is not None else model_of(facts["run"])
    if checkpoint.hash_of_weights(path) != facts["weights"]:
        raise StoreError(
            "has other weights than when this run began",
            where=str(path),
            fix="restore it, or use --force",
            id="other-run",
        )
    how = settings.embeddings
    if how != "new":
        _check_tokenizers(run or path, languages)
    specials: list[tuple[int, int]] = []
    if run is not None:
        lm = checkpoint.load_model(path)
    else:
        lm = load_model(path, causal=model_config.causal)
        if how == "new":
            specials = _special_pairs(path, lm, languages)
    _check_model(lm, settings, model_config, longest, elsewhere=run is None)
    if how == "new":
        _new_rows(lm, languages.size, specials)
    set_tie(lm, settings.tie)
    if how in ("keep", "copy"):
        return lm
    std = model_config.embedding_std or float(getattr(lm.config, "initializer_range", 0.02))
    fixed = [new for _, new in specials] or None
    _replace_embeddings(lm, LanguageIds.of(languages), std if how == "new" else None, settings.seed, fixed)
    return lm


def copy_embeddings(lm: Any, languages: Languages) -> None:
    """Give the sub-words of the derived language the rows of their twins in the source.

    Raise UsageError for a derived language without twins.
    """
    if not languages.are_mapped:
        raise UsageError(
            "the derived language has a tokenizer of its own, whose sub-words have no twins in the source",
            where=f"{_EMBEDDINGS} copy",
            fix="leave out --tokenizer-for and a tokenizer of a checkpoint, or give --embeddings keep",
            id="embeddings",
        )
    source, *others = (torch.from_numpy(own.astype(np.int64)) for own in languages.own)
    with torch.no_grad():
        for matrix in _matrices(lm):
            for derived in others:
                matrix[derived] = matrix[source]


def _check_tokenizers(folder: Path, languages: Languages) -> None:
    """Raise UsageError if the ids of a run, or of a checkpoint, mean other sub-words. folder: of either."""
    tokenizer = folder / TOKENIZER if (folder / TOKENIZER).is_dir() else folder
    twin, derived = folder / TWIN, folder / DERIVED_TOKENIZER
    theirs = {
        "tokenizer": tokenizer_of(tokenizer).fingerprint,
        "twin": Twin.load(twin).tokenizer.recipe["fingerprint"] if twin.exists() else None,
        "derived_tokenizer": tokenizer_of(derived).fingerprint if derived.exists() else None,
    }
    for part, fingerprint in theirs.items():
        if fingerprint != languages.recipe.get(part):
            raise UsageError(
                f"the {part.replace('_', ' ')} of {folder} is another one than this run's, so its embeddings have "
                "other meanings",
                where=INIT,
                fix=f"give --tokenizer {in_shell(tokenizer)}, the same script and --tokenizer-for, or --embeddings new",
                id="other-tokenizer",
            )


def _special_pairs(folder: Path, lm: Any, languages: Languages) -> list[tuple[int, int]]:
    """Return (id in a checkpoint, id in the run) of the special tokens that rows need.

    Raise UsageError if the model numbers positions from its id of padding, and the run's is another one.
    """
    theirs, special_ids = ForeignTokenizer.load(folder).special_ids, languages.special_ids
    if positions_of(lm).shift and lm.config.pad_token_id != special_ids.pad:
        raise UsageError(
            f"the model numbers positions from its id of padding, {lm.config.pad_token_id}; the padding id of the new "
            f"tokenizer is {special_ids.pad}",
            where=_EMBEDDINGS,
            fix="give --embeddings keep, or a checkpoint of another type",
            id="other-tokenizer",
        )
    lm.config.bos_token_id = lm.config.cls_token_id = special_ids.begin
    lm.config.eos_token_id = lm.config.sep_token_id = special_ids.end
    lm.config.pad_token_id = special_ids.pad
    ours = special_ids.begin, special_ids.pad, special_ids.end, special_ids.mask
    return [(old, new) for old, new in zip(theirs, ours, strict=True) if old is not None]


def _check_model(
    lm: Any, settings: TrainingSettings, model_config: ModelConfig, longest: int, *, elsewhere: bool
) -> None:
    """Raise UsageError if the model is of another form than --model, or too small for the rows.

    elsewhere: whether it was trained elsewhere. Its token types then mean something else, and stay 0.
    """
    config = lm.config
    if config.model_type != model_config.type:
        raise UsageError(
            f"the run's model is of the type {config.model_type}, but --model {settings.model} is {model_config.type}",
            where=INIT,
            fix="give the --model of that run",
            id="other-model",
        )
    for name, value in model_config.own_fields.items():
        if isinstance(value, int) and getattr(config, name, value) != value:
            raise UsageError(
                f"the run's model has {name} = {getattr(config, name)}, but --model {settings.model} has {value}",
                where=INIT,
                fix="give the --model of that run",
                id="other-model",
            )
    refuse_own(config, INIT)
    has_types = (getattr(config, "type_vocab_size", None) or 1) >= 2
    if has_types != settings.language_ids and (settings.language_ids or not elsewhere):
        has = "no language ids" if settings.language_ids else "language ids, which this run lacks"
        raise UsageError(
            f"the run's model has {has}",
            where=INIT,
            fix="give --no-language-ids" if settings.language_ids else "give --language-ids",
            id="language-ids",
        )
    room = positions_of(lm).longest
    if room is not None and room < longest:
        raise UsageError(
            f"the run's model has {room} positions, but rows have {longest} sub-words",
            where=INIT,
            fix="lower --seq-len or --pair-length",
            id="model",
        )


def _new_rows(lm: Any, size: int, specials: list[tuple[int, int]]) -> None:
    """Give a model embeddings of another size. specials: (row before, row after) of the rows that are kept."""
    before, after = (torch.tensor([pair[side] for pair in specials], dtype=torch.int64) for side in range(2))
    with torch.no_grad():
        kept = [matrix[before].clone() for matrix in _matrices(lm)]
        lm.resize_token_embeddings(size, mean_resizing=False)
        for matrix, rows in zip(_matrices(lm), kept, strict=True):
            matrix[after] = rows


def _replace_embeddings(
    lm: Any, vocabulary: LanguageIds, std: float | None, seed: int, fixed: list[int] | None = None
) -> None:
    """Change the rows of both languages in the input and output embeddings, and in the bias of the output.

    std: of the numbers that are drawn; None: the rows of each language change places. fixed: rows that stay; None for
    all rows that are of no language, such as special tokens.
    """
    rows = np.unique(np.concatenate(vocabulary.own))
    if fixed is not None:
        rows = np.setdiff1d(np.arange(vocabulary.size), fixed)
    index = np.arange(vocabulary.size)
    for language, own in enumerate(vocabulary.own):
        draws = draw(text_key(f"permute|seed={seed}|{language}"), np.zeros(len(own), np.uint64), np.arange(len(own)))
        index[own] = own[np.argsort(draws, kind="stable")]
    at = torch.from_numpy(rows.astype(np.int64))
    moved = torch.from_numpy(index)[at]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for matrix in _matrices(lm):
            if std is None:
                matrix[at] = matrix[moved].clone()
            else:
                drawn = torch.randn(len(at), *matrix.shape[1:], generator=generator)
                matrix[at] = drawn * (std if matrix.ndim > 1 else 0)


def _matrices(lm: Any) -> Iterator[torch.Tensor]:
    """Yield the input embeddings, the output embeddings if they are another matrix, and the output's bias."""
    yield lm.get_input_embeddings().weight
    output = lm.get_output_embeddings()
    if not is_tied(lm):
        yield output.weight
    if output.bias is not None:
        yield output.bias
