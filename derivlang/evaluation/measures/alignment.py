"""Embedding alignment: the percentage of sub-words whose nearest row in the other language is their twin's.

    row i of the source -> argmax over all rows j of the derived language of cos(E[i], E[j])      correct: j = twin(i)

    all        all rows, except special tokens and rows that both languages share
    heldout    rows outside the training dictionary
    mass       all rows, weighted by the frequency of the sub-word in the text of the tokenizer
    csls       by 2 cos(x, y) - r(x) - r(y) instead, r the mean cosine to the 10 nearest rows of the other language

Groups are `reverse`, from the derived language to the source, and `language`, with the language embeddings added, if
the model has any. A guess among the m rows of a language reaches 100 / m. A row of counts is an entry of the
tokenizer that is scored. Runs with other overlaps or dictionaries score other entries: these are other sets.

Sources: ALIGN-MLM (Tang et al. 2022), §5, which samples rows and includes the dictionary's; CSLS: Conneau et al.
2018, §2.3.

The measure projection has the principal components of the embeddings of frequent sub-words and of their twins, for a
picture (WEAM, Yang et al. 2021, Figure 2, shows such a picture by t-SNE, which keeps no distances). They are computed
from unit vectors, with the mean of both languages taken away: a language that lies apart is seen to lie apart.

    counts    [[x, y], …] in ten-thousandths, of the source and of the derived language: row i of both is a pair, of
              the PAIRS most frequent ones outside the dictionary
    value     percentage of the variance that x and y have, of both languages' rows together
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derivlang.align.lexical import Floats
from derivlang.core.arrays import Bool, Int64
from derivlang.core.messages import warn
from derivlang.core.threads import one_thread
from derivlang.evaluation.columns import Column
from derivlang.evaluation.formulas import SCALE
from derivlang.evaluation.measures.base import Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.scores import Score
from derivlang.formats.progress import rows_done, stage
from derivlang.lexical.own import OwnTokenizer
from derivlang.lexical.train import read_words
from derivlang.training.languages import DERIVED, SOURCE, Languages
from derivlang.training.translations import DICTIONARY, read_entries

if TYPE_CHECKING:
    import torch

    from derivlang.training.encoder import Encoder


NEIGHBOURS = 10
_CELLS = 1 << 24  # number of similarities in a block


class Alignment(Measure):
    """Sub-words whose nearest embedding in the other language is their twin's; CSLS: by local scaling."""

    columns = (  # by cosine and by CSLS, each with the weights of `EmbeddingPairs`
        Column("all", "all sub-words", chance=True),
        Column("heldout", "outside the dictionary", headline=True, chance=True),
        Column("mass", "by frequency"),
        Column("csls", "CSLS", chance=True),
        Column("csls_heldout", "CSLS, outside the dictionary", chance=True),
        Column("csls_mass", "CSLS, by frequency"),
    )
    needs = ("twin",)
    reads = ()

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the hits of each scored entry of the tokenizer, and of a guess; NaN if no entry is scored.

        There are no scores outside a dictionary that has every pair.
        """
        pairs = EmbeddingPairs.load(sets.folder, sets.languages)
        columns: Sequence[Column] = self.columns
        if pairs.own.any() and not (pairs.own & ~pairs.known).any():
            warn("every pair is in the dictionary, so there are no scores outside it")
            columns = [column for column in columns if "heldout" not in column.name]
        rows = model.embeddings.detach().float()
        ways = {"": (rows, rows)}
        if model.language_ids:
            types = model.language_embeddings.detach().float()
            ways["language"] = rows + types[SOURCE], rows + types[DERIVED]
        with stage("comparing embeddings", "rows"):
            for group, sides in ways.items():
                for reverse, by_score in zip(("", "reverse"), hits(*sides, pairs), strict=True):
                    name = ", ".join(filter(None, (reverse, group)))
                    for column, (right, weights) in zip(self.columns, product(by_score, pairs.weights), strict=True):
                        if column in columns:
                            yield _score(sets, column, right * weights, weights, "", name)
        for column, weights in zip(self.columns, 2 * pairs.weights, strict=True):
            if column.chance and column in columns:
                yield _score(sets, column, weights, len(weights) * weights, "chance")


def _score(sets: MeasureSets, column: Column, right: Int64, every: Int64, regime: str, group: str = "") -> Score:
    some = np.flatnonzero(every)
    counts, value = (np.stack([right, every], axis=1)[some], None) if len(some) else (None, math.nan)
    return Score(column.name, counts, value, regime, group=group, set=sets.of_entries(some))


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingPairs:
    """Rows to compare: source[i] and derived[i] are the joint ids of an entry and of its twin.

    own: bool[n], entries that the languages do not share; these are scored, while all are candidates. known: bool[n],
    entries of the training dictionary. counts: int64[n], frequencies of the sub-words in the tokenizer's text.
    """

    source: Int64
    derived: Int64
    own: Bool
    known: Bool
    counts: Int64

    @property
    def weights(self) -> tuple[Int64, Int64, Int64]:
        """int64[n] each, 0 for shared entries: 1, 1 outside the dictionary, the frequency (scaled to fit int32)."""
        mass = self.counts * self.own
        return self.own.astype(np.int64), (self.own & ~self.known).astype(np.int64), mass // (1 + mass.max() // 2**31)

    @classmethod
    def load(cls, folder: Path, languages: Languages) -> EmbeddingPairs:
        """Return the pairs of a run, from the dictionary in a folder and the training words of its tokenizer."""
        tokenizer = languages.tokenizer
        assert isinstance(tokenizer, OwnTokenizer)  # as it needs a twin
        first, size = tokenizer.n_special, tokenizer.size
        types, numbers = read_words(tokenizer.folder)
        encoded = tokenizer.encoder.types(types)
        numbers = numbers[encoded.words()]
        kept = languages.twin.kept(types)[encoded.words()]
        counts, changed = np.zeros(size, np.int64), np.zeros(size, np.int64)
        np.add.at(counts, encoded.ids, numbers)
        np.add.at(changed, encoded.ids, np.where(kept, 0, numbers))
        source = np.arange(size)
        derived = languages.twin.joint.table().astype(np.int64)
        # An entry is shared, too, if it occurs only in words that the overlap keeps.
        own = (derived != source) & ~((counts > 0) & (changed == 0))
        known = known_entries(folder / DICTIONARY, languages)
        return cls(source[first:], derived[first:], own[first:], known[first:], counts[first:])


def known_entries(path: Path, languages: Languages) -> Bool:
    """Return bool[V]: the source entries of a dictionary file; all False if there is no file."""
    known = np.zeros(languages.tokenizer.size, bool)
    if path.exists():
        known[read_entries(path, languages).pairs[:, 0]] = True
    return known


def hits(source: torch.Tensor, derived: torch.Tensor, pairs: EmbeddingPairs) -> list[tuple[Bool, Bool]]:
    """Return bool[n] by cosine and by CSLS, from the source and from the derived language: own entries that are right.

    source, derived: joint embeddings [size, D], from which the languages' rows are taken.
    """
    import torch

    ours, theirs = (
        torch.nn.functional.normalize(rows[torch.from_numpy(ids).to(rows.device)], dim=1)
        for rows, ids in ((source, pairs.source), (derived, pairs.derived))
    )
    asked = np.flatnonzero(pairs.own)
    own = torch.from_numpy(asked).to(source.device)
    by_direction = []
    for left, right in ((ours, theirs), (theirs, ours)):
        # CSLS: the neighbours of each candidate are scored rows.
        near = neighbourhood(right, left[own])
        nearest, by_csls = (
            np.isin(np.arange(len(pairs.own)), asked[one == asked]) for one in best(left[own], right, near)
        )
        by_direction.append((nearest, by_csls))
    return by_direction


def best(left: torch.Tensor, right: torch.Tensor, near: torch.Tensor) -> tuple[Int64, Int64]:
    """Return the nearest row of `right` to each row of `left` by cosine and by CSLS, int64[n] each (ties: the first).

    left [n, D], right [m, D]: of length 1. near: [m], the neighbourhood of each row of `right`. The neighbourhood of a
    left row is the same for all candidates and does not affect the argmax.
    """
    nearest, by_csls = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for block in _blocks(left, len(right)):
        cosines = block @ right.T
        nearest.append(cosines.argmax(dim=1).cpu().numpy())
        by_csls.append((2 * cosines - near).argmax(dim=1).cpu().numpy())
    return np.concatenate(nearest), np.concatenate(by_csls)


def neighbourhood(rows: torch.Tensor, others: torch.Tensor, k: int = NEIGHBOURS) -> torch.Tensor:
    """Return [n]: the mean cosine of each row to its k nearest others, or to all if there are fewer."""
    import torch

    k = min(k, len(others))
    if not k:
        return torch.zeros(len(rows), device=rows.device)
    return torch.cat([(block @ others.T).topk(k, dim=1).values.mean(dim=1) for block in _blocks(rows, len(others))])


def _blocks(rows: torch.Tensor, width: int) -> Iterator[torch.Tensor]:
    for block in rows.split(max(1, _CELLS // max(width, 1))):
        yield block
        rows_done(len(block))


PAIRS = 200


class Projection(Measure):
    """Embeddings of frequent sub-words and of their twins in two dimensions, for a picture in the report."""

    columns = (
        Column("embeddings", "share of the variance", better="", formula="", headline=True, over="points"),
    )  # fmt: skip
    needs = ("twin",)
    reads = ()

    def measure(self, model: Encoder, sets: MeasureSets) -> Iterator[Score]:
        """Yield the points of both languages, none if the languages share all sub-words."""
        pairs = EmbeddingPairs.load(sets.folder, sets.languages)
        apart = np.flatnonzero(pairs.own & ~pairs.known & (pairs.counts > 0))
        asked = apart[np.argsort(-pairs.counts[apart], kind="stable")[:PAIRS]]
        rows = model.embeddings.detach().float().cpu().numpy().astype(np.float64)
        points, share = principal(np.concatenate([rows[pairs.source[asked]], rows[pairs.derived[asked]]]))
        source, derived = np.split(points, 2)
        if len(asked):  # the signs of components are arbitrary: the source lies left and below
            source, derived = (side * np.where(source.mean(0) > derived.mean(0), -1, 1) for side in (source, derived))
        for regime, side in (("source", source), ("derived", derived)):
            yield Score("embeddings", np.rint(side * SCALE).astype(np.int64), share, regime)


@one_thread()
def principal(rows: Floats) -> tuple[Floats, float]:
    """Return the first two principal components of unit vectors, [n, 2], and their share of the variance in percent.

    rows: [n, D], D at least 2. The share is NaN if all rows are equal.
    """
    if not len(rows):
        return np.zeros((0, 2)), math.nan
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    left, sizes, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    points = left[:, :2] * sizes[:2]
    variance = sizes**2
    return points, 100 * float(variance[:2].sum() / variance.sum()) if variance.sum() > 1e-12 else math.nan
