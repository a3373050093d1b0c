"""Word links and the Pharaoh format: one line per sentence pair, one `i-j` per link, source first, zero-based.

Gold files mark sure links as `i-j` and possible ones as `ipj`; a sure link is also possible.

    parse_lines(["0-0 1p2", ""])  ->  Links(offsets [0, 2, 2], source [0, 1], target [0, 2], sure [True, False])

Precision, recall, F1 and alignment error rate of links against gold links (Och and Ney 2003, §4.1).

With links A, sure links S and possible links P (S is a subset of P):

    precision = |A ∩ P| / |A|    recall = |A ∩ S| / |S|    AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Counts are summed over all sentence pairs. F1 is the harmonic mean of precision and recall.

Symmetrisation: one set of links from the links of both directions (Och and Ney 2003; Koehn, Och and Marcu 2003).

intersection, union            links of both directions, or of either
grow-diag-final-and            the intersection, plus neighbours of its links that are in the union, plus links of
                               either direction between two words without a link (Koehn et al. 2005)
posterior:0.3                  links whose two posteriors have a geometric mean above 0.3
"""

from __future__ import annotations

import itertools
import re
from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from derivlang.core.arrays import Bool, Int32, Int64, Ints, lengths_of, offsets_of, owners
from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.messages import counted
from derivlang.formats.progress import rows_done, stage

_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")
_LAST_WORD = 99_999  # of a sentence; so `keys_of` stays below 2^63 for up to 900 million sentences


@dataclass(frozen=True, slots=True)
class Links:
    """Links of R sentence pairs: offsets int64[R + 1]; source, target int32[L], zero-based; sure bool[L]."""

    offsets: Int64
    source: Int32
    target: Int32
    sure: Bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, rows: Int64, source: Int32, target: Int32, n_rows: int) -> Links:
        """Return sure links sorted by row, source word and target word, without duplicates.

        rows int64[L], source and target int32[L]: links in any order.
        """
        order = np.lexsort((target, source, rows))
        rows, source, target = rows[order], source[order], target[order]
        new = np.ones(len(rows), bool)
        new[1:] = (np.diff(rows) != 0) | (np.diff(source) != 0) | (np.diff(target) != 0)
        offsets = offsets_of(np.bincount(rows[new], minlength=n_rows))
        return cls(offsets, source[new].astype(np.int32), target[new].astype(np.int32), np.ones(int(new.sum()), bool))

    def lines(self) -> Iterator[str]:
        """Yield Pharaoh lines, without line breaks."""
        separators = np.where(self.sure, "-", "p").tolist()
        pairs = list(map("%d%s%d".__mod__, zip(self.source.tolist(), separators, self.target.tolist(), strict=True)))
        offsets = self.offsets.tolist()
        for begin, end in itertools.pairwise(offsets):
            yield " ".join(pairs[begin:end])


def parse_lines(lines: Iterable[str], where: str = "links") -> Links:
    """Return the links of Pharaoh lines. where: file name for errors. Raises DataError `link` with the line."""
    counts: list[int] = []
    source: list[int] = []
    target: list[int] = []
    sure: list[bool] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        for word in words:
            match = _LINK.fullmatch(word)
            if match is None:
                raise DataError(
                    f"{word!r} is not a link",
                    where=f"{where}:{number}",
                    fix="write i-j (sure) or ipj (possible): zero-based word numbers, source first",
                    id="link",
                )
            ours, theirs = int(match[1]), int(match[3])
            if max(ours, theirs) > _LAST_WORD:
                raise DataError(
                    f"the link {word} is to word {max(ours, theirs)}; a sentence has at most {_LAST_WORD + 1:,} words",
                    where=f"{where}:{number}",
                    fix="check that the file has the links of one sentence pair per line",
                    id="link",
                )
            source.append(ours)
            target.append(theirs)
            sure.append(match[2] == "-")
        counts.append(len(words))
    return Links(
        offsets_of(np.array(counts, np.int64)),
        np.array(source, np.int32),
        np.array(target, np.int32),
        np.array(sure, bool),
    )


def check_range(links: Links, n_source: Ints | None, n_target: Ints | None, where: str = "links") -> None:
    """Raise DataError `link-range` for a link outside its sentences, `lengths` if the numbers of sentences differ.

    n_source, n_target int[R]: numbers of words of the sentences; None: unknown.
    """
    row = owners(links.offsets)
    for side, words, sizes in (("source", links.source, n_source), ("target", links.target, n_target)):
        if sizes is None:
            continue
        if len(links) != len(sizes):
            raise DataError(
                f"{counted(len(links), 'line')} of links, but {counted(len(sizes), f'{side} sentence')}",
                where=where,
                fix="line n of the links must belong to line n of the texts",
                id="lengths",
            )
        beyond = np.flatnonzero(words >= sizes[row])
        if len(beyond):
            at = int(beyond[0])
            raise DataError(
                f"the link {links.source[at]}-{links.target[at]} is to {side} word {words[at]}, but the sentence has "
                f"{sizes[row[at]]} words",
                where=f"{where}:{int(row[at]) + 1}",
                fix="word numbers are zero-based, source first; check the order of the sides and of the files",
                id="link-range",
            )


def keys_of(links: Links, width: int) -> Int64:
    """Return int64[L]: a number for each link, sorted by row, source and target word.

    width: above every word's number. Width 10: link 3-7 of row 2 -> (2 · 10 + 3) · 10 + 7 = 237.
    """
    row = np.repeat(np.arange(len(links), dtype=np.int64), lengths_of(links.offsets))
    return np.asarray((row * width + links.source) * width + links.target)


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """All figures are from 0 to 1."""

    precision: float
    recall: float
    f1: float
    aer: float


def score(links: Links, gold: Links) -> AlignmentScore:
    """Return the figures of links against gold links; possible links in `links` count like sure ones.

    Precision is 1 without links, recall is 1 without sure links, AER is 0 without both. Raises DataError `lengths` if
    the numbers of lines differ.
    """
    if len(links) != len(gold):
        raise DataError(
            f"{counted(len(links), 'line')} of links, but {counted(len(gold), 'line')} of gold links",
            fix="score the links of the same sentence pairs, in the same order",
            id="lengths",
        )
    width = 1 + max(int(side.max(initial=0)) for side in (links.source, links.target, gold.source, gold.target))
    link_keys = np.unique(keys_of(links, width))
    keys = keys_of(gold, width)
    possible, sure = np.unique(keys), np.unique(keys[gold.sure])
    hits_possible = int(np.isin(link_keys, possible, assume_unique=True).sum())
    hits_sure = int(np.isin(link_keys, sure, assume_unique=True).sum())
    precision = hits_possible / len(link_keys) if len(link_keys) else 1.0
    recall = hits_sure / len(sure) if len(sure) else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    total = len(link_keys) + len(sure)
    return AlignmentScore(precision, recall, f1, 1 - (hits_sure + hits_possible) / total if total else 0.0)


METHODS = ("intersection", "union", "grow-diag-final-and", "posterior")
DEFAULT_THRESHOLD = 0.3
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Method:
    """A symmetrisation. name: one of METHODS; threshold: of `posterior`."""

    name: str
    threshold: float = DEFAULT_THRESHOLD


def method(text: str) -> Method:
    """Return the method of a text such as `intersection` or `posterior:0.4`. Raises UsageError."""
    name, colon, value = text.partition(":")
    if name not in METHODS:
        raise unknown("symmetrisation", name, METHODS)
    if not colon:
        return Method(name)
    try:
        threshold = float(value)
    except ValueError:
        threshold = -1.0
    if name != "posterior" or not 0 <= threshold < 1:
        raise UsageError(
            f"{text!r} is not a symmetrisation",
            where="--symmetrise",
            fix="posterior takes a threshold from 0 to below 1, for example posterior:0.3; the others take none",
            id="symmetrisation",
        )
    return Method(name, threshold)


def symmetrise(forward: Links, backward: Links, name: str) -> Links:
    """Return one set of links. name: any of METHODS except `posterior`, which needs posteriors."""
    joins = {"union": _union, "intersection": _intersection, "grow-diag-final-and": grow_diag_final_and}
    if name not in joins:
        raise unknown("symmetrisation", name, METHODS)
    found = [np.zeros((0, 2), np.int32)]
    with stage("joining both directions", "rows", len(forward)):
        for both in zip(_by_row(forward), _by_row(backward), strict=True):
            found.append(np.array([*joins[name](*both)], np.int32).reshape(-1, 2))
            rows_done(1)
    rows = np.repeat(np.arange(len(forward)), [len(links) for links in found[1:]])
    source, target = np.concatenate(found).T
    return Links.of(rows, source, target, len(forward))


def _by_row(links: Links) -> Iterator[list[Link]]:
    """Yield the links of each sentence pair, sorted."""
    for begin, end in itertools.pairwise(links.offsets.tolist()):
        yield sorted({*zip(links.source[begin:end].tolist(), links.target[begin:end].tolist(), strict=True)})


def _union(forward: list[Link], backward: list[Link]) -> set[Link]:
    return {*forward, *backward}


def _intersection(forward: list[Link], backward: list[Link]) -> set[Link]:
    return {*forward} & {*backward}


def grow_diag_final_and(forward: list[Link], backward: list[Link]) -> set[Link]:
    """Return the links of one sentence pair; both inputs are sorted by source, then target word."""
    links = set(forward) & set(backward)
    union = set(forward) | set(backward)
    source, target = {i for i, _ in links}, {j for _, j in links}
    size = -1
    while size < len(links):
        size = len(links)
        order, at = sorted(links), 0
        while at < len(order):  # links added after this position take part in the same sweep
            i, j = order[at]
            at += 1
            for di, dj in _NEIGHBOURS:
                new = (i + di, j + dj)
                if new in union and new not in links and (new[0] not in source or new[1] not in target):
                    links.add(new)
                    source.add(new[0])
                    target.add(new[1])
                    if new > (i, j):
                        insort(order, new, at)
    for direction in (forward, backward):
        for i, j in direction:
            if i not in source and j not in target:
                links.add((i, j))
                source.add(i)
                target.add(j)
    return links
