"""The three types of a batch, from text to loss: numpy arrays in the loader, tensors in an objective.

    Pieces ──stream──▶ SubwordRows ──Objective.mask──▶ SubwordRows with targets ──loader──▶ Step ──loss──▶

    Pieces        text without special ids
    SubwordRows   rows of one stream
    Step          the rows of every stream, by its name

B = 2 rows of H = 3 sub-words; the last of row 0 and the first of row 1 are masked
    clean_ids [[1, 17, 18], [5, 9, 2]]      input_ids [[1, 17, 4], [4, 9, 2]]      targets [2, 3]      labels [18, 5]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints, offsets_of, owners, positions
from derivlang.training.devices import arrays_to_device

if TYPE_CHECKING:
    import torch

    from derivlang.training.languages import SpecialIds


# Endings of the names of counts by stream, and of both counts of a share that an objective logs.
TOKENS, SENTENCES = "_tokens", "_sentences"
SOME, OF = ":some", ":of"
LANGUAGE = "language "  # and its number


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The sub-words of pieces of text (`data.py`), one after the other, without special ids.

    ids: int64[M]. words: int64[M], the word of each sub-word, counted in its piece. language: int8[M]. shared: bool[M],
    sub-words with one id in both languages.

    `low er it` and `we` in the derived language, in pieces of 2 words and of 1
    ids [17, 18, 5, 9]      words [0, 0, 1, 0]      language [1, 1, 1, 1]      shared [F, F, F, F]
    """

    ids: Int64
    words: Int64
    language: Ints
    shared: Bool


@dataclass(frozen=True, slots=True)
class Totals:
    """Numbers of a stream's whole step, over all micro-batches and processes: what sums of losses are divided by.

    rows. masked: positions to predict, of a causal objective, too; by_language: of them, those with a label of the
    source, of another language. links. linked: positions to predict that have a link.
    """

    rows: int = 0
    masked: int = 0
    by_language: tuple[int, int] = (0, 0)
    links: int = 0
    linked: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SubwordRows:
    """B rows of at most H sub-words: numpy arrays in the loader, int64 and bool tensors in an objective.

    The text. clean_ids: int64[B, H], `<pad>` after its end. word_ids, sentence_ids: int32[B, H], numbers within the
    row, -1 for special ids and padding; both sides of a sentence pair have its number. language: int8[B, H], of each
    position. side: int8[B, H], 1 in the second half of a pair row, else 0. positions: int32[B, H], or None for
    0 … H - 1. lengths: int64[B], without padding. shared: bool[B, H], sub-words with one id in both languages: the
    sub-words of an overlap, and special tokens of the text. translated: bool[B, H], sub-words that a stream or an
    objective has replaced by translations; None: none. links: int64[2, L], linked positions (from, to) in the flattened
    rows [B * H], in both directions, ascending; None without links.

    What `Objective.mask` adds. input_ids: int64[B, H], what the model gets: the text with masks. targets: int64[n],
    ascending positions in the flattened rows, whose states predict `labels`, int64[n]: the masked positions and their
    ids or, with a causal objective, positions and the ids of the next ones. label_language: int8[n].

    totals: numbers of the whole step, in the micro-batches of a step. `shared` and `translated` are only for masking:
    an objective's loss finds None.
    """

    clean_ids: Any
    word_ids: Any
    sentence_ids: Any
    language: Any
    side: Any
    lengths: Any
    shared: Any
    positions: Any = None
    translated: Any = None
    links: Any = None
    input_ids: Any = None
    targets: Any = None
    labels: Any = None
    label_language: Any = None
    totals: Totals = Totals()

    @property
    def shape(self) -> tuple[int, int]:
        return self.clean_ids.shape[0], self.clean_ids.shape[1]

    @property
    def attention(self) -> Any:
        """bool[B, H]: False for padding."""
        if isinstance(self.lengths, np.ndarray):
            return np.arange(self.shape[1]) < self.lengths[:, None]
        import torch

        return torch.arange(self.shape[1], device=self.lengths.device) < self.lengths[:, None]

    @classmethod
    def blank(cls, language: Ints, width: int, lengths: Int64, special_ids: SpecialIds) -> SubwordRows:
        """Return rows of padding, for `write`. language: [B, H], or [B, 1]; lengths: int64[B], as they will be."""
        shape = (len(lengths), width)
        return cls(
            clean_ids=np.full(shape, special_ids.pad, np.int64),
            word_ids=np.full(shape, -1, np.int32),
            sentence_ids=np.full(shape, -1, np.int32),
            language=np.array(np.broadcast_to(language, shape), np.int8),
            side=np.zeros(shape, np.int8),
            positions=None,
            lengths=lengths,
            shared=np.zeros(shape, bool),
        )

    def write(
        self, text: Pieces, sizes: Int64, offsets: Int64, language: Ints, begins: Int64, special_ids: SpecialIds
    ) -> Int64:
        """Write `<s> p1 </s> p2 </s>` into each row, and return int64[M]: the places of sub-words in flattened rows.

        sizes, language: [P], of each piece. offsets: int64[B + 1], the pieces of each row. begins: int64[B], the column
        of `<s>`.

        two pieces with 2 and 3 sub-words in one row, begins 0
        columns      0    1 2   3     4 5 6   7     8
        ids         <s>   a b  </s>   c d e  </s>  <pad>      first [1, 4]: the column of each piece's first
        """
        row_of_piece, before = owners(offsets), offsets_of(sizes + 1)
        first = 1 + before[:-1] + (begins - before[offsets[:-1]])[row_of_piece]
        at = np.repeat(row_of_piece, sizes), np.repeat(first, sizes) + positions(offsets_of(sizes))
        ends = row_of_piece, first + sizes
        self.clean_ids[np.arange(len(begins)), begins] = special_ids.begin
        self.clean_ids[ends], self.language[ends] = special_ids.end, language
        self.clean_ids[at], self.language[at], self.shared[at] = text.ids, text.language, text.shared
        self.word_ids[at] = np.repeat(first, sizes) + text.words
        self.sentence_ids[at] = np.repeat(positions(offsets), sizes)
        return at[0] * self.shape[1] + at[1]

    def predicting(self, targets: Int64, input_ids: Int64 | None = None) -> SubwordRows:
        """Return the rows with positions to predict, int64[n] in the flattened rows, labelled by their own ids.

        input_ids: int64[B, H], what the model gets; None: the text as it is.
        """
        return replace(
            self,
            input_ids=self.clean_ids if input_ids is None else input_ids,
            targets=targets,
            labels=self.clean_ids.ravel()[targets],
            label_language=self.language.ravel()[targets],
        )

    def unmasked(self) -> SubwordRows:
        """Return the rows with the text as the model's input."""
        return replace(self, input_ids=self.clean_ids)

    def take(self, first: int, last: int) -> SubwordRows:
        """Return the rows first … last - 1, with positions counted from the first of them.

        3 rows of 4 sub-words, targets [1, 5, 9]: rows 1 … 2 have the targets [1, 5]
        """
        begin, end = first * self.shape[1], last * self.shape[1]
        arrays = {name: None if (array := getattr(self, name)) is None else array[first:last] for name in _ROWS}
        if self.links is not None:
            links = slice(*np.searchsorted(self.links[0], (begin, end)))
            arrays["links"] = self.links[:, links] - begin
        if self.targets is not None:
            some = slice(*np.searchsorted(self.targets, (begin, end)))
            arrays["targets"] = self.targets[some] - begin
            arrays["labels"], arrays["label_language"] = self.labels[some], self.label_language[some]
        return SubwordRows(**arrays, totals=self.totals)

    def part(self, which: int, parts: int) -> SubwordRows:
        """Return the rows of the which-th of `parts` micro-batches."""
        n = len(self.lengths)
        return self.take(n * which // parts, n * (which + 1) // parts)

    @classmethod
    def joined(cls, parts: Sequence[SubwordRows], order: Ints) -> SubwordRows:
        """Return the rows of all parts, one after the other, in an order [B]; none of them has links or targets.

        parts of 2 rows and of 1, order [2, 0, 1]: the row of the second part comes first
        """
        names = [field.name for field in fields(cls) if field.name != "totals"]
        lists = {name: [getattr(rows, name) for rows in parts] for name in names}
        arrays: dict[str, Any] = {
            name: np.concatenate(some)[order] for name, some in lists.items() if some[0] is not None
        }
        return cls(**arrays)

    def for_device(self) -> dict[str, Any]:
        """Return the arrays that a loss reads, as int64 or bool."""
        arrays = {name: getattr(self, name) for name in _ON_DEVICE}
        return {
            name: array if array.dtype == np.bool_ else array.astype(np.int64, copy=False)
            for name, array in arrays.items()
            if array is not None
        }


_NOT_OF_ROWS = {"links", "targets", "labels", "label_language", "totals"}
_ROWS = [field.name for field in fields(SubwordRows) if field.name not in _NOT_OF_ROWS]
_ON_DEVICE = [field.name for field in fields(SubwordRows) if field.name not in {"shared", "translated", "totals"}]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step's rows of every stream, or the part of them that one process trains on at once, a micro-batch.

    `step["rows"]` is the batch of the stream `rows`. step: its number, from 0. share: of the step, 1 / (micro-batches
    * processes), for parts of a loss that do not depend on rows. batches: by stream; a second view is `NAME:2`. counts:
    numbers of the whole step by name, `rows_tokens`, `rows_sentences`, …, `masked`, `translated`: sub-words without
    padding; sentences, parts of sentences or pairs; positions to predict; of them, or of their inputs, translations; of
    more than two languages the sub-words of each. Of several views the first counts.

    a step with 8 rows and 2 rows of pairs, 32 sub-words each, in 2 micro-batches      share 0.5
        step["rows"].clean_ids  int64[4, 32]      step["pairs"].clean_ids  int64[1, 32]
    """

    step: int
    share: float
    batches: Mapping[str, SubwordRows]
    counts: Mapping[str, int]

    def __getitem__(self, stream: str) -> SubwordRows:
        return self.batches[stream]

    def __contains__(self, stream: object) -> bool:
        return stream in self.batches

    def to(self, device: torch.device) -> Step:
        """Return the micro-batch with int64 and bool tensors on a device, without synchronising it."""
        arrays = {
            (stream, name): array for stream, rows in self.batches.items() for name, array in rows.for_device().items()
        }
        tensors = arrays_to_device(arrays, device)
        batches = {}
        for stream, rows in self.batches.items():
            changed: dict[str, Any] = {name: tensors.get((stream, name)) for name in _ON_DEVICE}
            batches[stream] = SubwordRows(**changed, shared=None, totals=rows.totals)
        return Step(self.step, self.share, batches, self.counts)
