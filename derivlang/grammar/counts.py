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
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from derivlang.core.errors import DataError
from derivlang.core.schema import V2_RELATIONS
from derivlang.formats import conllu
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
    for begin, end in pairwise(sentences.tolist()):
        relations = plain[begin:end]
        dependents: dict[int, list[int]] = {}
        for word, head in enumerate(heads[begin:end].tolist()):
            if head and _PUNCT not in (
                relations[word],
                relations[head - 1],
            ):  # a mark's dependents are left out with it
                dependents.setdefault(head - 1, []).append(word)
        for head, words in dependents.items():
            sides.update((relations[word], word > head) for word in words)
            family = [relations[word] for word in sorted([head, *words])]
            ordered = ((first, second) for first, second in combinations(family, 2) if first != second)
            pairs.update((relations[head], first, second) for first, second in ordered)
    return len(sentences) - 1


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
