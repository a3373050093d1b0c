"""Counts of treebanks: on which side of its head a relation stands, and which of two relations comes first.

    # derivlang counts 1
    # language: Hindi
    # rows: 3
    side	obj	1460	9              objects: 1,460 before their head, 9 after it
    pair	root	nsubj	obj	346    below heads with the relation root, nsubj stands before obj 346 times
    pair	root	obj	root	582    … and obj before the head itself 582 times

Subtypes are cut (`nsubj:pass` is `nsubj`), and punctuation is left out. Pairs of equal relations are not counted.
Source: Rasooli and Collins 2019 (NAACL, N19-1385) for sides, Arviv et al. 2023 (Findings of EMNLP, arXiv 2310.13583)
for pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64, lengths_of
from derivlang.core.errors import DataError
from derivlang.core.schema import V2_RELATIONS
from derivlang.formats import conllu
from derivlang.grammar.families import families_of_trees
from derivlang.grammar.treebank import words_of_tables
from derivlang.grammar.weights import broken, check_number, lines, with_header

FIRST_LINE = "# derivlang counts 1"
_ROWS = "rows"
_LARGEST = 2**53  # a sum of two counts is exact as a float
_PUNCT = "punct"
Sides: TypeAlias = Counter[tuple[str, bool]]
Pairs: TypeAlias = Counter[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of orders; what is not there was not seen.

    sides: by (relation, whether it stands after its head). pairs: by (head relation, first relation, second relation).
    about: the header.
    """

    sides: Mapping[tuple[str, bool], int]
    pairs: Mapping[tuple[str, str, str], int]
    about: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """The hash of the counts, whatever the header and the order of the rows."""
        return sha256("\n".join(_rows(self)).encode()).hexdigest()


def count(paths: Iterable[Path], about: Mapping[str, str]) -> Counts:
    """Return the counts of CoNLL-U files. about: the header, to which the number of sentences is added.

    Raises DataError no-labels if a word has no relation, unknown-label if it has one that UD v2 has not.
    """
    sides, pairs, n_sentences = Sides(), Pairs(), 0
    for path in paths:
        n_sentences += _add(sides, pairs, (rows.table for rows in conllu.read(path)), path)
    return Counts(sides, pairs, {**about, "sentences": str(n_sentences)})


def _add(sides: Sides, pairs: Pairs, tables: Iterable[pa.Table], path: Path) -> int:
    """Add the counts of a treebank, and return its number of sentences."""
    heads, sentences, columns = words_of_tables(tables, ("upos", "deprel"))
    plain = [relation.partition(":")[0] for relation in columns["deprel"]]
    if "_" in plain:
        raise DataError(
            f"word {plain.index('_') + 1} of the file has no relation",
            where=str(path),
            fix="use a treebank with heads and relations, or parse it first",
            id="no-labels",
        )
    if other := sorted({*plain} - V2_RELATIONS):
        raise DataError(
            f"{other[0]!r} is not a relation of UD v2",
            where=str(path),
            fix="use a treebank of UD v2",
            id="unknown-label",
        )
    families, words = families_of_trees(heads, sentences, columns["upos"], plain)
    names, codes = np.unique([*plain, _PUNCT], return_inverse=True)
    relation, n = codes[words], len(names)
    family = np.repeat(np.arange(len(families)), lengths_of(families.offsets))
    place, head_place = np.arange(len(words)), families.head_places[family]
    head = relation[head_place]
    of_word = names[head] != _PUNCT  # a mark's dependents are left out with it
    after = place > head_place
    child = of_word & (place != head_place)
    for code, number in _counted(2 * relation[child] + after[child]):
        sides[str(names[code // 2]), bool(code % 2)] += number
    for first in range(n):
        is_one = relation == first
        # Members of this relation before each member: flags 1 0 1 0 of one family -> 0 1 1 2.
        before = np.cumsum(is_one) - is_one
        before -= before[families.offsets[:-1]][family]
        others = of_word & ~is_one
        for code, number in _counted((head * n + relation)[others], before[others]):
            pairs[str(names[code // n]), str(names[first]), str(names[code % n])] += number
    return len(sentences) - 1


def _counted(codes: Int64, weights: Int64 | None = None) -> Iterable[tuple[int, int]]:
    """Yield (code, the sum of its weights, or how often it occurs) for sums above 0."""
    totals = np.bincount(codes, weights).astype(np.int64)
    at = np.flatnonzero(totals)
    return zip(at.tolist(), totals[at].tolist(), strict=True)


def text_of(counts: Counts) -> str:
    """Return the text of a file of counts, rows sorted: the same counts give the same bytes."""
    rows = _rows(counts)
    header = [f"# {key}: {value}" for key, value in {**counts.about, _ROWS: len(rows)}.items()]
    return "\n".join([FIRST_LINE, *header, *rows]) + "\n"


def _rows(counts: Counts) -> list[str]:
    relations = sorted({relation for relation, _ in counts.sides})
    sides = [(name, *(str(counts.sides.get((name, after), 0)) for after in (False, True))) for name in relations]
    pairs = [(*key, str(number)) for key, number in sorted(counts.pairs.items())]
    return ["\t".join(("side", *row)) for row in sides] + ["\t".join(("pair", *row)) for row in pairs]


def read(path: Path) -> Counts:
    """Return the counts of a file.

    Raises DataError missing-file, encoding, grammar-header (not this format), grammar-line, grammar-cut.
    """
    found = with_header(path, lines(path), FIRST_LINE)
    if found is None:
        raise DataError(
            f"the file does not begin with {FIRST_LINE!r}",
            where=f"{path}:1",
            fix="model=… reads counts of a treebank: derivlang grammar count TREEBANK -o FILE",
            id="grammar-header",
        )
    about, rows = found
    sides: dict[tuple[str, bool], int] = {}
    pairs: dict[tuple[str, str, str], int] = {}
    for number, line in rows:
        kind, *cells = line.split("\t")
        if kind == "side" and len(cells) == 3:
            *names, before, after = cells
            new = {(names[0], False): before, (names[0], True): after}
            _fill(sides, new, names, path, number)
        elif kind == "pair" and len(cells) == 4:
            *names, seen = cells
            _fill(pairs, {(names[0], names[1], names[2]): seen}, names, path, number)
        else:
            what = "a row: side RELATION BEFORE AFTER, or pair HEAD FIRST SECOND COUNT, separated by tabs"
            raise broken(path, number, f"{line[:60]!r} is not {what}")
    check_number(path, about, _ROWS, len(rows))
    return Counts(sides, pairs, about)


def _fill(counts: dict[Any, int], new: Mapping[Any, str], names: list[str], path: Path, number: int) -> None:
    """Add the counts of a row. Raises DataError grammar-line."""
    for name in names:
        if not name or ":" in name:
            raise broken(path, number, f"{name!r} is not a relation without a subtype")
        if name not in V2_RELATIONS:
            raise broken(path, number, f"{name[:40]!r} is not a relation of UD v2")
    for key, cell in new.items():
        if key in counts:
            raise broken(path, number, f"the row of {' '.join(names)} comes twice")
        if not (len(cell) <= 16 and cell.isascii() and cell.isdigit() and int(cell) <= _LARGEST):
            raise broken(path, number, f"{cell[:40]!r} is not a count, a whole number from 0 to {_LARGEST:,}")
        counts[key] = int(cell)
