"""Articles of running text in the form of WikiText: each begins with a title, a line with a blank line below it.

     = Robert Boulter =         the title: one = on each side
                                a blank line
     Robert Boulter is …        a paragraph; headings of sections have two = and more on each side

A line of a formula may look like a title, but no blank line follows it. So the count is exact on WikiText: 600 articles
in the train split of WikiText-2, 60 in the other two.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from derivlang.core.arrays import Bool
from derivlang.core.arrow import scalar, to_numpy
from derivlang.core.bare_batch import BareBatch

_MARK = scalar("=")


class ArticleCount:
    """The articles of a split, or of a part of it, whose batches are added in turn.

    count: None for rows that are not running text, and for a text whose first paragraph is not a title.
    """

    def __init__(self) -> None:
        self.count: int | None = 0

    def add(self, batch: BareBatch) -> None:
        """Count the articles that begin in a batch of whole paragraphs."""
        if not batch.running or batch.gaps is None:
            self.count = None
        if self.count is None or not batch.n_records:
            return
        titles = _titles(batch)
        self.count = None if batch.documents[0] == 0 and not titles[0] else self.count + int(titles.sum())


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
