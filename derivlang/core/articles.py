"""Counts of rows: documents, sentences, words, and articles of running text in the form of WikiText.

An article begins with a title, a line with a blank line below it.

     = Robert Boulter =         the title: one = on each side
                                a blank line
     Robert Boulter is …        a paragraph; headings of sections have two = and more on each side

A line of a formula may look like a title, but no blank line follows it. So the count is exact on WikiText: 600 articles
in the train split of WikiText-2, 60 in the other two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64
from derivlang.core.arrow import scalar, to_numpy
from derivlang.core.bare_batch import BareBatch

_MARK = scalar("=")


@dataclass(slots=True)
class RowCounts:
    """The counts of a split, or of a part of it, whose batches are added in turn.

    tokens: derived words. articles: None for rows that are not running text, and for a text whose first paragraph is
    not a title. last: the document of the last row, -1 before the first one.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    articles: int | None = 0
    last: int = -1

    def add(self, source: BareBatch, derived: BareBatch) -> None:
        """Count a batch of whole paragraphs, and the articles that begin in it."""
        if not source.n_records:
            return
        # A document that goes on in the next batch counts once, where its number comes first.
        self.documents += int((np.diff(source.documents, prepend=self.last) != 0).sum())
        self.last = int(source.documents[-1])
        self.sentences += _in_rows(source, np.diff(source.units))
        self.tokens += _in_rows(source, np.diff(derived.unit_words))
        titles = _titles(source) if source.running and source.gaps is not None else None
        if titles is None or self.articles is None or (source.documents[0] == 0 and not titles[0]):
            self.articles = None
        else:
            self.articles += int(titles.sum())


def _in_rows(batch: BareBatch, per_unit: Int64) -> int:
    """Return the sum over rows. A unit that several rows share counts in each of them."""
    return int(per_unit[batch.records].sum())


def _titles(batch: BareBatch) -> Bool:
    """Return bool[P]: the paragraphs of running text that are titles."""
    assert batch.gaps is not None
    mark = pc.index(batch.types, _MARK).as_py()  # -1 if no word is a mark
    ends = np.flatnonzero(np.diff(batch.documents, append=-1))  # the last sentence of each paragraph
    starts = np.append(0, ends[:-1] + 1)
    first, last = batch.unit_words[starts], batch.unit_words[ends + 1] - 1
    out: Bool = last - first >= 2
    for place, wanted in ((first, True), (last, True), (first + 1, False), (last - 1, False)):
        out &= (batch.words.take(place, mode="clip") == mark) == wanted
    blank_below = to_numpy(pc.count_substring(batch.gaps.strings, "\n")) >= 2
    return out & blank_below[batch.gaps.trail[ends]]
