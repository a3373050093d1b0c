"""Weights: the features of one head class, by kind and view, as dense tables.

    score(order) = sum over features of weight · value;    p(order) = exp(score) / sum over all orders

Kinds (Wang and Eisner 2016, §5): PRE a before b; BFR, AFT both before, after the head; BTW the head between; BI
neighbours, with BOS and EOS; HI sequences of three to five. Views of a label: `UPOS&deprel`, `UPOS`, `deprel`.

Published models have these three views, subtypes being part of the relation. Grammars fitted here have five: the three
without subtypes, and two *fine* ones with them, for pairs of which at least one has a subtype. So `obl:arg` shares
what is known of `obl`, and an unknown subtype is looked up without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float: TypeAlias = NDArray[np.float64]
Feature: TypeAlias = tuple[str, tuple[str, ...], float]  # kind, tokens, weight

PAIRS = ("PRE", "BFR", "AFT", "BTW", "BI")
KINDS = (*PAIRS, "HI")
VIEWS = ("joint", "tag", "relation", "fine joint", "fine relation")
PUBLISHED = 3  # views of a published model
BOS, EOS = "BOS", "EOS"
LONGEST_SEQUENCE = 5


def views(token: str, n_views: int) -> tuple[str, ...]:
    """The views of a label: `NOUN&obl:arg` -> (NOUN&obl, NOUN, obl, NOUN&obl:arg, obl:arg), or as published
    (NOUN&obl:arg, NOUN, obl:arg); `@NOUN&@` -> (@NOUN&@, @NOUN, @ …); BOS and EOS stay."""
    if token in (BOS, EOS):
        return (token,) * n_views
    upos, _, relation = token.partition("&")
    if n_views == PUBLISHED:
        return token, upos, relation
    plain = relation.partition(":")[0]
    return f"{upos}&{plain}", upos, plain, token, relation


def view_of(tokens: Iterable[str], n_views: int) -> int:
    """Which view the tokens of a feature are of."""
    return _view_of_shapes(tuple([_shape(token) for token in tokens]), n_views)


@cache
def _view_of_shapes(shapes: tuple[int, ...], n_views: int) -> int:
    kind = max(shape & 3 for shape in shapes)
    if n_views > PUBLISHED and kind != 2 and any(shape & _FINE for shape in shapes):
        return PUBLISHED if kind == 1 else PUBLISHED + 1
    return max(kind - 1, 0)


_FINE = 4


@cache
def _shape(token: str) -> int:
    """0 BOS and EOS, 1 joint, 2 tag, 3 relation; and _FINE with a subtype."""
    if token in (BOS, EOS):
        return 0
    kind = 1 if "&" in token else 2 if token.lstrip("@")[:1].isupper() else 3
    return kind | (_FINE if ":" in token else 0)


@dataclass(frozen=True, eq=False)
class Weights:
    """codes: for each view, token -> row of its tables. pairs: for each view float64[5, V + 1, V + 1] by PAIRS; the
    last row and column are zero: a token without weights. sequences: HI weights by their tokens."""

    codes: tuple[dict[str, int], ...]
    pairs: tuple[Float, ...]
    sequences: dict[tuple[str, ...], float]

    @classmethod
    def of(cls, features: Iterable[Feature], n_views: int) -> Weights:
        """From features in any order."""
        codes: tuple[dict[str, int], ...] = tuple({} for _ in range(n_views))
        cells: tuple[list[tuple[int, int, int, float]], ...] = tuple([] for _ in range(n_views))
        sequences: dict[tuple[str, ...], float] = {}
        numbers = {kind: i for i, kind in enumerate(PAIRS)}
        for kind, tokens, weight in features:
            if kind == "HI":
                sequences[tokens] = weight
                continue
            view = view_of(tokens, n_views)
            known = codes[view]
            first = known.setdefault(tokens[0], len(known))
            second = known.setdefault(tokens[1], len(known))
            cells[view].append((numbers[kind], first, second, weight))
        pairs = []
        for view in range(n_views):
            table = np.zeros((len(PAIRS), len(codes[view]) + 1, len(codes[view]) + 1))
            if cells[view]:
                kinds, firsts, seconds, weights = zip(*cells[view], strict=True)
                table[list(kinds), list(firsts), list(seconds)] = weights
            pairs.append(table)
        return cls(codes, tuple(pairs), sequences)

    def features(self) -> list[Feature]:
        """All non-zero weights, sorted by kind, view and tokens."""
        out: list[Feature] = []
        for view in range(len(self.codes)):
            names = [*self.codes[view], ""]
            for kind, first, second in np.argwhere(self.pairs[view]).tolist():
                out.append((PAIRS[kind], (names[first], names[second]), float(self.pairs[view][kind, first, second])))
        out += [("HI", tokens, weight) for tokens, weight in self.sequences.items()]
        return sorted(out, key=lambda f: (KINDS.index(f[0]), view_of(f[1], len(self.codes)), f[1]))

    def digest(self) -> bytes:
        """A hash of all weights, whatever order they were read in."""
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

    def choose(self, candidates: list[str]) -> str:
        """The first candidate with a label this model has weights for; else with a relation it has; else the first."""
        for view in (0, 2):
            for token in candidates:
                fine = len(self.codes) > PUBLISHED and ":" in token
                place = (PUBLISHED + view // 2) if fine else view
                if views(token, len(self.codes))[place] in self.codes[place]:
                    return token
        return candidates[0]
