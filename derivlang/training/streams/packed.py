"""Rows of the text of each language, as `data.py` packs them: the same for every objective."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from derivlang.core.arrays import Int64, Ints, offsets_of, positions
from derivlang.core.errors import DataError
from derivlang.core.keys import draw, text_key
from derivlang.training.batch import SubwordRows
from derivlang.training.data import Data
from derivlang.training.language import OPTION, UNREAD, Language, phases_of
from derivlang.training.masking import Keys
from derivlang.training.prepare import Prepared
from derivlang.training.row_order import row_numbers, rows_before
from derivlang.training.streams.base import RowSource, Stream


@dataclass(frozen=True, kw_only=True)
class Packed(Stream):
    """`<s> s1 </s> s2 </s> …`, each row in one language; an epoch has every row in every language."""

    name: ClassVar[str] = "rows"
    of_one_language: ClassVar[bool] = True

    def reads(self, files: Collection[str]) -> Set[str]:
        return {"packing"}

    def keeps_apart(self, files: Collection[str]) -> bool:
        return True

    def open(self, prepared: Prepared) -> RowSource:
        texts = prepared.by_language(prepared.settings.seq_len)
        return PackedRows([texts[number] for number in sorted(texts)], prepared.settings.asked)


class PackedRows(RowSource):
    """The rows of all languages, one language after the other.

    texts: of each language. asked: the languages, for the part of its text that each has; by default all of it. So an
    epoch has every row of these parts once, whatever their sizes. Raise DataError for a part without a row.
    """

    def __init__(self, texts: Sequence[Data], asked: Sequence[Language] = ()):
        self._texts, self.length = texts, texts[0].seq_len
        spans = [_span(text, number, asked[number] if asked else None) for number, text in enumerate(texts)]
        self._first = np.array([first for first, _ in spans])
        self.bounds = offsets_of(np.array([last - first for first, last in spans]))
        self.n = int(self.bounds[-1])
        every = enumerate(zip(texts, spans, strict=True))
        filled = [text.filled(number, span) if span[1] > span[0] else 0 for number, (text, span) in every]
        self.mean_subwords = sum(filled) / self.n
        self.asked, self.phases = asked, phases_of(asked)
        if self.phases:
            self.mean_subwords = float(np.array(filled) / np.diff(self.bounds) @ np.array(self.phases[0][1], float))

    def numbers(self, name: str, seed: int, steps: range, begin: int, offsets: Int64) -> Int64:
        """Return the rows of some steps. With shares, each language has an endless list of its own rows."""
        if not self.phases:
            return super().numbers(name, seed, steps, begin, offsets)
        given = rows_before(self.phases, int(offsets[1]), steps[-1] + 1)[steps[0] :]
        step = np.repeat(steps, np.diff(offsets))
        language = np.repeat(np.tile(np.arange(len(self.asked)), len(steps)), np.diff(given, axis=0).ravel())
        # mixed, so that every micro-batch may have all languages
        mixed = draw(text_key(f"languages|seed={seed}"), step.astype(np.uint64), positions(offsets))
        language = language[np.lexsort((mixed, step))]
        out = np.empty(len(language), np.int64)
        for number, one in enumerate(self.asked):
            first, last = given[[0, -1], number].tolist()
            if last > first:
                rows = row_numbers(f"{name}|{one.name}", seed, int(np.diff(self.bounds)[number]), first, last)
                out[language == number] = self.bounds[number] + rows
        return out

    def without_rows(self, rows: int, steps: int) -> list[str]:
        """Return the names of the languages that get no row in some steps. rows: of each step."""
        if not self.phases or not steps:
            return []
        return [one.name for one, n in zip(self.asked, rows_before(self.phases, rows, steps)[-1], strict=True) if not n]

    def rows(self, numbers: Ints, keys: Keys) -> SubwordRows:
        language = np.searchsorted(self.bounds, numbers, "right") - 1
        instances = numbers - self.bounds[language] + self._first[language]
        texts = list(dict.fromkeys(self._texts))
        of = np.array([texts.index(text) for text in self._texts])[language]
        places = [np.flatnonzero(of == number) for number in range(len(texts))]
        parts = [text.rows(instances[at], language[at]) for text, at in zip(texts, places, strict=True) if len(at)]
        return parts[0] if len(texts) == 1 else SubwordRows.joined(parts, np.argsort(np.concatenate(places)))


def _span(text: Data, number: int, language: Language | None) -> tuple[int, int]:
    """Return the first row of a language's part of its text, and the last + 1.

    A part begins and ends with a sentence, so no sentence is in two parts; a row that crosses an end is left out.
    """
    if language is None or not language.part:
        return 0, text.n_instances(number)
    if language.part == UNREAD:
        return 0, 0
    part, of = map(int, language.part.split("/"))
    ends = [min(len(text.sentences) * end // of, len(text.sentences) - 1) for end in (part - 1, part)]
    begin, end = np.searchsorted(text.pieces, text.sentences[ends])
    rows = text.first_pieces(number)
    first, last = int(np.searchsorted(rows, begin)), int(np.searchsorted(rows, end, "right")) - 1
    if last <= first:
        what = "half of the text" if of == 2 else f"part {language.part} of the text of {language.name}"
        where = "--halves" if of == 2 else OPTION
        raise DataError(f"{what} has no row", where=where, fix="give more text", id="no-text")
    return first, last
