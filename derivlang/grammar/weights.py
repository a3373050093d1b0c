"""Weights of the features of one head class, as a dense table for each view.

    score(order) = sum over features of weight · value;    p(order) = exp(score) / sum over all orders

Kinds (Wang and Eisner 2016, §5): PRE, a before b; BFR and AFT, both before or after the head; BTW, the head between
them; BI, neighbours, with BOS and EOS; HI, sequences of three to five. Views of a label: `UPOS&deprel`, `UPOS`,
`deprel`.

Published models have these three views, with the subtype as a part of the relation. Grammars that derivlang fits have
five: the three views without subtypes, and two *fine* views with subtypes, which apply if at least one label of the
pair has a subtype. So `obl:arg` uses the weights of `obl` plus its own, and an unknown subtype uses only the weights
of `obl`.

Files `.orm` have the published order models (gdtreebank, Wang and Eisner 2016), one head class per file. A line is
`KIND_LABEL_LABEL[_LABEL…] WEIGHT`. The file's name has the class: `fr@N.orm.gz`, `fr@V.orm.gz`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import read_text

Float: TypeAlias = NDArray[np.float64]
Feature: TypeAlias = tuple[str, tuple[str, ...], float]  # kind, labels, weight
Features: TypeAlias = dict[
    tuple[str, tuple[str, ...]], dict[str, float]
]  # (kind, first labels) -> last label -> weight

PAIRS = ("PRE", "BFR", "AFT", "BTW", "BI")
KINDS = (*PAIRS, "HI")
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
VIEWS = ("joint", "tag", "relation", "fine joint", "fine relation")
PUBLISHED = 3  # views of a published model
BOS, EOS = "BOS", "EOS"
LARGEST = 1_000_000  # of a weight in a file. A weight is a logarithm, and weights of published models are below 20
LONGEST_SEQUENCE = 5


def views(token: str, n_views: int) -> tuple[str, ...]:
    """Return the views of a label.

    NOUN&obl:arg    five views: NOUN&obl, NOUN, obl, NOUN&obl:arg, obl:arg     three: NOUN&obl:arg, NOUN, obl:arg
    @NOUN&@         the label of a head: @NOUN&@, @NOUN, @ …
    BOS, EOS        the same in every view
    """
    if token in (BOS, EOS):
        return (token,) * n_views
    upos, _, relation = token.partition("&")
    if n_views == PUBLISHED:
        return token, upos, relation
    plain = relation.partition(":")[0]
    return f"{upos}&{plain}", upos, plain, token, relation


_FINE = 4  # the bit of a shape that says that the label has a subtype


@cache
def _view(shapes: tuple[int, ...], n_views: int) -> int:
    """Return the view of a feature from the shapes of its labels (`_shape`).

    BOS and EOS (0) take the view of the other label: (0, 2) -> 1, `tag`. One subtype makes the feature fine: of five
    views, (1, 1 | _FINE) -> 3, `fine joint`. A tag has no subtype, so `tag` is never fine.
    """
    kind = max(shape & 3 for shape in shapes)
    if n_views > PUBLISHED and kind != 2 and any(shape & _FINE for shape in shapes):
        return PUBLISHED if kind == 1 else PUBLISHED + 1
    return max(kind - 1, 0)


@cache
def _shape(token: str) -> int:
    """Return 0 for BOS and EOS, 1 for a joint label, 2 for a tag, 3 for a relation; plus _FINE with a subtype."""
    if token in (BOS, EOS):
        return 0
    kind = 1 if "&" in token else 2 if token.lstrip("@")[:1].isupper() else 3
    return kind | (_FINE if ":" in token else 0)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of one head class.

    codes: for each view, the row of each label in its table. pairs: for each view float64[5, V + 1, V + 1], the weights
    of PAIRS by first and second label. The last row and column are 0, for labels without weights. sequences: the HI
    weights, by their labels.
    """

    codes: tuple[dict[str, int], ...]
    pairs: tuple[Float, ...]
    sequences: dict[tuple[str, ...], float]

    @classmethod
    def of(cls, features: Features, n_views: int) -> Weights:
        """Return the tables of some features. n_views: PUBLISHED (three) or five."""
        sequences: dict[tuple[str, ...], float] = {}
        codes: tuple[dict[str, int], ...] = tuple({} for _ in range(n_views))
        cells: list[dict[tuple[int, int, int], float]] = [{} for _ in range(n_views)]
        for (kind, (first, *more)), weights in features.items():
            if kind == "HI":
                sequences.update({(first, *more, last): weight for last, weight in weights.items()})
                continue
            number, shape = _NUMBERS[kind], _shape(first)
            for last, weight in weights.items():
                view = _view((shape, _shape(last)), n_views)
                code = codes[view]
                cells[view][number, code.setdefault(first, len(code)), code.setdefault(last, len(code))] = weight
        pairs = tuple(np.zeros((len(PAIRS), len(code) + 1, len(code) + 1)) for code in codes)
        for table, own in zip(pairs, cells, strict=True):
            for cell, weight in own.items():
                table[cell] = weight
        return cls(codes, pairs, sequences)

    def features(self) -> list[Feature]:
        """Return all non-zero weights, sorted by kind, view and labels."""
        out: list[Feature] = []
        for view in range(len(self.codes)):
            names = [*self.codes[view], ""]
            for kind, first, second in np.argwhere(self.pairs[view]).tolist():
                out.append((PAIRS[kind], (names[first], names[second]), float(self.pairs[view][kind, first, second])))
        out += [("HI", tokens, weight) for tokens, weight in self.sequences.items()]
        n_views = len(self.codes)

        def place(feature: Feature) -> tuple[int, int, tuple[str, ...]]:
            kind, labels, _ = feature
            return _NUMBERS[kind], _view(tuple(map(_shape, labels)), n_views), labels

        return sorted(out, key=place)

    def digest(self) -> bytes:
        """Return a hash of all weights, independent of the order in which they were read."""
        out = hashlib.blake2b(digest_size=16)
        for codes, table in zip(self.codes, self.pairs, strict=True):
            names = sorted(codes)
            by = np.array([codes[name] for name in names], np.int64)
            known = table[:, by[:, None], by] if len(by) else np.zeros((len(PAIRS), 0, 0))
            places = np.flatnonzero(known)
            out.update(repr(names).encode() + places.tobytes() + known.reshape(-1)[places].tobytes())
        out.update(repr(sorted(self.sequences.items())).encode())
        return out.digest()

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(table)) for table in self.pairs) + len(self.sequences)

    def knows(self, token: str) -> bool:
        """Return whether there are weights for the relation of a label with a subtype, whatever the tag."""
        return len(self.codes) > PUBLISHED and views(token, len(VIEWS))[-1] in self.codes[-1]

    def choose(self, candidates: list[str]) -> str:
        """Return the best name for a label with several names (`families.candidates`), the preferred one first.

        It is the first candidate with weights of its own (view `joint`), else the first whose relation has weights
        (view `relation`), else the first candidate. A candidate with a subtype is looked up in the fine views.
        """
        for view in (0, 2):
            for token in candidates:
                fine = len(self.codes) > PUBLISHED and ":" in token
                place = (PUBLISHED + view // 2) if fine else view
                if views(token, len(self.codes))[place] in self.codes[place]:
                    return token
        return candidates[0]


ORM_SUFFIXES = (".orm", ".orm.gz")


def read_weights(path: Path) -> Weights:
    """Return the weights of one file. Raises DataError missing-file, grammar-line (file:line)."""
    return Weights.of(_features(path), PUBLISHED)


def head_class_of(path: Path) -> str:
    """Return N or V, from the file's name. Raises UsageError grammar-name."""
    stem = path.name.removesuffix(".gz").removesuffix(".orm")
    _, at, name = stem.rpartition("@")
    if not at or name not in ("N", "V"):
        raise UsageError(
            f"the name {path.name!r} does not end in @N or @V, so its head class is unknown",
            where=str(path),
            fix="name it like fr@V.orm.gz",
            id="grammar-name",
        )
    return name


def language_of(path: Path) -> str:
    """Return the language of a file name, `fr` of `fr@N.orm.gz`."""
    return path.name.partition("@")[0]


def _features(path: Path) -> Features:
    out: Features = {}
    for number, line in lines(path):
        name, _, value = line.partition(" ")
        kind, *tokens = name.split("_")
        length = (3, LONGEST_SEQUENCE) if kind == "HI" else (2, 2)
        try:
            weight = float(value)
        except ValueError:
            raise broken(path, number, f"{value!r} is not a number") from None
        if kind not in KINDS:
            raise broken(path, number, f"there is no kind of feature {kind!r}")
        if not length[0] <= len(tokens) <= length[1] or "" in tokens:
            raise broken(path, number, f"{name!r} has {len(tokens)} labels")
        row = out.setdefault((kind, tuple(tokens[:-1])), {})
        if tokens[-1] in row:
            raise broken(path, number, f"{name!r} comes twice")
        if not abs(weight) <= LARGEST:
            raise broken(path, number, f"the weight {value!r} must be from -{LARGEST:,} to {LARGEST:,}")
        row[tokens[-1]] = weight
    return out


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text) of each line of a plain or compressed file. Raises DataError encoding."""
    yield from enumerate(read_text(path).splitlines(), 1)


def with_header(
    path: Path, rows: Iterator[tuple[int, str]], first_line: str
) -> tuple[dict[str, str], list[tuple[int, str]]] | None:
    """Return (the header, the other lines with their numbers) of the lines of a file, None if the first is another one.

    A header line is `# key: value`. Raises DataError grammar-line for one without a colon.
    """
    if next(rows, (0, ""))[1] != first_line:
        return None
    about: dict[str, str] = {}
    others = []
    for number, line in rows:
        if not line.startswith("#"):
            others.append((number, line))
            continue
        key, colon, value = line.removeprefix("#").partition(":")
        if not colon:
            raise broken(path, number, "a header line has no colon")
        about[key.strip()] = value.strip()
    return about, others


def check_number(path: Path, about: dict[str, str], what: str, there: int) -> None:
    """Take a number out of the header. Raises DataError grammar-cut if it is there and differs from what is there."""
    stated = about.pop(what, None)
    if stated is not None and stated != str(there):
        raise DataError(
            f"the header says {stated or 'no number of'} {what}, the file has {there}",
            where=str(path),
            fix=f"the file is truncated or edited: copy it again, or delete the line `# {what}` if you edited it",
            id="grammar-cut",
        )


def broken(path: Path, number: int, what: str) -> DataError:
    """Return the error for a line that cannot be read."""
    return DataError(
        what,
        where=f"{path}:{number}",
        fix="copy the file again, or correct the line (docs/reference/files.md)",
        id="grammar-line",
    )
