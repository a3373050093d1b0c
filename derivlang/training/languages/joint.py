"""The languages of a run, with ids of one joint vocabulary; evaluations read two of them, a source and a target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, expand_ranges, offsets_of, owners
from derivlang.core.arrow import string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.lexical.foreign import ForeignTokenizer, is_foreign
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.twin import Twin, check_twin
from derivlang.pipeline import Pipeline
from derivlang.training.language import OPTION, Language
from derivlang.training.languages.readers import (
    DERIVED,
    DERIVED_TOKENIZER,
    NO_MASK,
    SOURCE,
    TOKENIZER,
    TWIN,
    LanguageReader,
    LanguageSide,
    ParallelBatch,
    SpecialIds,
    check_words,
)
from derivlang.transforms.fitting import read_lexicon
from derivlang.transforms.trans import Trans

LEXICON = "lexicon.tsv"
SCRIPT_HINT = ": choose a script that it knows (trans:script=NAME)"  # of a derived language with unknown sub-words


@dataclass(frozen=True, eq=False)
class Languages:
    """Languages as input of a model, by number; the first is the source.

    special_ids: of rows. unknown_id: for what the tokenizer cannot represent; None if it represents everything.
    numbers: which languages of a run they are, for the languages of one text.
    """

    readers: tuple[LanguageReader, ...]
    special_ids: SpecialIds
    unknown_id: int | None
    numbers: tuple[int, ...] = (SOURCE, DERIVED)

    def of(self, numbers: tuple[int, ...]) -> Languages:
        """Return some languages of a run."""
        return replace(self, readers=tuple(self.readers[number] for number in numbers), numbers=numbers)

    @property
    def are_mapped(self) -> bool:
        """Whether all languages have the sub-words of one tokenizer, so every source sub-word has its counterparts."""
        return all(reader.lexicon is None for reader in self.readers)

    @property
    def size(self) -> int:
        """The highest id + 1, the number of embeddings."""
        return max(reader.tokenizer.end for reader in self.readers)

    @property
    def own(self) -> tuple[Int32, ...]:
        """int32[K]: the ids of each language without special tokens."""
        return tuple(reader.tokenizer.own for reader in self.readers)

    @property
    def tokenizer(self) -> ForeignTokenizer | OwnTokenizer:
        """The tokenizer of the source."""
        return self.readers[SOURCE].tokenizer

    @property
    def pipeline(self) -> Pipeline:
        """The transforms of all languages; the first has none, as a rule."""
        return Pipeline(tuple(transform for reader in self.readers for transform in reader.pipeline.transforms))

    @property
    def twin(self) -> Twin:
        """The twin of the derived language, which must be mapped."""
        twin = self.readers[DERIVED].twin
        assert twin is not None
        return twin

    def unknown_percent(self, ids: Int32) -> float:
        """Return the percentage of unknown sub-words among ids, int32[M]; 0 of none."""
        return 100 * float(np.mean(ids == self.unknown_id)) if len(ids) and self.unknown_id is not None else 0.0

    def parallel(self, batch: Batch) -> ParallelBatch:
        """Return a batch, split into sentences, in all languages.

        Words a b of 1 and 2 sub-words, images A B of 2 and 1, and the order that gives X B A, where X marks a and has
        2 sub-words: offsets [0, 4, 6], X begins at slot 2

            source   a b b      slots  0 4 5
            derived  X X B A A  slots  2 3 4 0 1
        """
        forms, blocks = {}, batch.sentences
        # A text that is read as it is comes last: it is tokenized in the blocks that the orders keep together.
        for number in sorted(range(len(self.readers)), key=lambda n: not self.readers[n].pipeline.transforms):
            forms[number] = self.readers[number].form(batch, blocks)
            own = forms[number].blocks
            blocks = own if blocks is batch.sentences else blocks[np.isin(blocks, own)]
        width = np.full(batch.n_words, 0 if self.are_mapped else 1, np.int64)
        for form in forms.values():
            width = np.maximum(width, form.widths)
        places = {}
        for number, form in sorted(forms.items()):  # inserted words have slots after the words that they mark
            places[number] = form.place.copy()
            places[number][form.new] += width[form.word[form.new]]
            np.add.at(width, form.word[form.new], np.maximum(form.sizes[form.new], 1))
        offsets, sides, inserted = offsets_of(width), [], []
        for number, form in sorted(forms.items()):
            starts = offsets[form.word] + places[number]
            inserted.append(starts[form.new])
            mapped = self.readers[number].lexicon is None
            slots = starts if mapped else expand_ranges(starts, form.sizes)
            sides.append(LanguageSide(form.ids, slots, None if mapped else starts))
        return ParallelBatch(offsets, tuple(sides), offsets[blocks], np.concatenate(inserted))

    def spelt(self, batch: Batch, both: ParallelBatch) -> pa.Array:
        """Return the derived word that begins at each slot of a batch, Arrow strings [K]; "" if none does.

        With a twin, all slots of a word have its derived word.
        """
        reader = self.readers[DERIVED]
        if reader.lexicon is None:
            return reader.words(batch).take(to_arrow(owners(both.offsets)))
        derived = reader.pipeline.derive(batch, reader.lexicon, split=False).derived
        codes = np.full(int(both.offsets[-1]), len(derived.types), np.int32)
        codes[both.derived.words] = derived.words
        return pa.concat_arrays([derived.types, string_array([""])]).take(to_arrow(codes))

    def fingerprint(self) -> str:
        """Return 16 hex digits that identify the derived language."""
        return self.readers[-1].fingerprint

    @property
    def entries(self) -> list[str]:
        """The text of each id, without marks of the word's begin or end."""
        out = [""] * self.size
        for reader in reversed(self.readers):
            for number, entry in zip(reader.tokenizer.table.tolist(), reader.tokenizer.entries, strict=True):
                out[number] = entry
        return out

    @property
    def recipe(self) -> dict[str, Any]:
        """What identifies tokenizers and lexicon, for the recipe of encoded data."""
        derived = self.readers[-1]
        told = {"tokenizer": self.tokenizer.fingerprint} | derived.identity
        if derived.tokenizer.fingerprint != self.tokenizer.fingerprint:
            told["derived_tokenizer"] = derived.tokenizer.fingerprint
        if self.numbers != (SOURCE, DERIVED):
            told["languages"] = [
                one.identity | {"pipeline": one.fingerprint, "first": int(one.tokenizer.own[0])} for one in self.readers
            ]
        return told

    @property
    def signature(self) -> dict[str, Any]:
        """The same for the key of a task's examples."""
        if not self.are_mapped or self.readers[DERIVED].twin is None:
            return self.recipe
        return {"tokenizer": self.tokenizer.fingerprint, "twin": dict(self.twin.tokenizer.recipe)}


def tokenizer_of(folder: Path) -> ForeignTokenizer | OwnTokenizer:
    """Return the tokenizer of a folder. Raise StoreError if there is none, or if it is damaged."""
    return ForeignTokenizer.load(folder) if is_foreign(folder) else OwnTokenizer.load(folder)


def load(folder: Path, pipeline: Pipeline, tokenizer: Path | None = None) -> Languages:
    """Read a pair of languages of a run. Raise StoreError if files are missing or do not fit each other.

    tokenizer: the folder of the source's, if it is not in the same folder.
    """
    source = tokenizer_of(tokenizer or folder / TOKENIZER)
    own = source if isinstance(source, OwnTokenizer) and source.kind != "both" else None
    by_text = own is None or (folder / DERIVED_TOKENIZER).exists() or not is_mapped(pipeline)
    if own is not None and ((folder / TWIN).exists() or not by_text):
        return of_twin(pipeline, own, folder / TWIN, "restore the run's own folder")
    saved = read_lexicon(folder / LEXICON) if (folder / LEXICON).exists() else None
    if pipeline.needs_counts(saved):
        raise StoreError(
            f"the lexicon of {pipeline} is missing",
            where=str(folder / LEXICON),
            fix="restore the run's own folder",
            id="no-lexicon",
        )
    lexicon = pipeline.fit(saved=saved, where=str(folder / LEXICON))
    # A missing folder is an error.
    derived = None if own is None else OwnTokenizer.load(folder / DERIVED_TOKENIZER, own)
    return of_texts(pipeline, source, lexicon, derived)


def of_twin(pipeline: Pipeline, tokenizer: OwnTokenizer, folder: Path, fix: str) -> Languages:
    """Return a pair of languages with a tokenizer and the twin of a folder; the pipeline has a twin (`is_mapped`).

    Raise StoreError, with this advice, if the twin belongs to another tokenizer or pipeline.
    """
    twin = Twin.load(folder)
    check_twin(twin.tokenizer, tokenizer.tokenizer, twin_trans(pipeline).stored, folder, fix)
    readers = LanguageReader(Pipeline(()), tokenizer), LanguageReader(pipeline, replace(tokenizer, twin=twin))
    return Languages(readers, SpecialIds(*tokenizer.special_ids), tokenizer.unknown)


def of_texts(
    pipeline: Pipeline,
    tokenizer: ForeignTokenizer | OwnTokenizer,
    lexicon: Lexicon,
    derived: OwnTokenizer | None = None,
) -> Languages:
    """Return a pair of languages whose texts are tokenized.

    tokenizer: of the source. derived: of the derived language, with ids that follow the source's; None if `tokenizer`
    reads both texts. lexicon: the pipeline's, fitted. Raise UsageError for a pipeline that orders sub-words, StoreError
    for a tokenizer without a token that ends a sentence.
    """
    check_words(pipeline)
    plain = Pipeline(())
    readers = LanguageReader(plain, tokenizer, plain.fit()), LanguageReader(pipeline, derived or tokenizer, lexicon)
    return Languages(readers, _special_ids(tokenizer), tokenizer.unknown)


def of_several(pairs: Iterable[tuple[Language, Languages]]) -> Languages:
    """Return the languages of a run, of the pairs that the source has with each of the others."""
    readers: list[LanguageReader] = []
    blocks: dict[str, int] = {}
    for language, pair in pairs:
        readers = readers or [pair.readers[SOURCE]]
        end = max(reader.tokenizer.end for reader in readers)
        readers.append(_placed(language, pair.readers[DERIVED], pair.tokenizer, end, blocks))
    return replace(pair, readers=tuple(readers), numbers=tuple(range(len(readers))))


def _placed(
    language: Language,
    reader: LanguageReader,
    source: ForeignTokenizer | OwnTokenizer,
    end: int,
    blocks: dict[str, int],
) -> LanguageReader:
    """Return the reader of a language with ids that no other language has, unless they have the same entries.

    source: the tokenizer of the source. end: the first free id. blocks: by twin, where the ids begin that follow.
    """
    tokenizer, separate = reader.tokenizer, language.ids == "own"
    if not isinstance(tokenizer, OwnTokenizer):
        if separate:
            raise UsageError(
                f"the tokenizer of {tokenizer.folder} is not of derivlang, so no language has ids of its own",
                where=f"{OPTION} {language.name}",
                fix="leave out ids:own, or --tokenizer",
                id="languages",
            )
        return reader
    if tokenizer.twin is None:
        return (
            replace(reader, tokenizer=replace(tokenizer, first=end)) if separate or tokenizer is not source else reader
        )
    joint = tokenizer.twin.joint
    if separate:
        joint = replace(joint, same=False, after=end, separate=True)
    elif joint.shift:
        joint = replace(joint, after=blocks.setdefault(tokenizer.twin.tokenizer.fingerprint(), end))
    return replace(reader, tokenizer=replace(tokenizer, twin=replace(tokenizer.twin, joint=joint)))


def is_mapped(pipeline: Pipeline) -> bool:
    """Return whether the derived language has a twin: all words of the source, in their own script or another one.

    An order that is fitted has none, since a twin holds no counts of words.
    """
    lexical = [transform for transform in pipeline.transforms if transform.has_lexicon]
    fitted = any(transform.fits_order and transform.saves for transform in pipeline.transforms)
    only_trans = len(lexical) < 2 and all(isinstance(transform, Trans) for transform in lexical)
    return only_trans and pipeline.is_permutation and not fitted


def twin_trans(pipeline: Pipeline) -> Trans:
    """Return the `trans` of a pipeline whose language has a twin, trans:overlap=100 if it has none: all words stay."""
    return next((transform for transform in pipeline.transforms if isinstance(transform, Trans)), Trans(overlap=100))


def _special_ids(tokenizer: ForeignTokenizer | OwnTokenizer) -> SpecialIds:
    """Return the special ids. Causal models need none but an end: it also begins and pads rows if nothing else does."""
    begin, pad, end, mask = tokenizer.special_ids
    if end is None:
        raise StoreError(
            "its tokenizer has no token that ends a sentence (sep_token or eos_token)",
            where=str(tokenizer.folder),
            fix="use the tokenizer of a language model",
            id="special-tokens",
        )
    first, padding = (end if i is None else i for i in (begin, pad))
    return SpecialIds(first, padding, end, NO_MASK if mask is None else mask)
