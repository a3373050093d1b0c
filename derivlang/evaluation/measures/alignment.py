"""Embedding alignment: the percentage of sub-words whose nearest row in the other language is their twin's.

    row i of the source -> argmax over all rows j of the derived language of cos(E[i], E[j])      correct: j = twin(i)

    all         all rows, except special tokens and rows that both languages share
    heldout     rows outside the training dictionary, with a 95 % interval over rows (Wilson 1927)
    mass        all rows, weighted by the frequency of the sub-word in the text of the tokenizer
    csls        by 2 cos(x, y) - r(x) - r(y) instead, r the mean cosine to the 10 nearest rows of the other language
    reverse_    from the derived language to the source
    _language   with the language embeddings added, if the model has any
    chance      the same for a guess among the m rows of a language: 100 / m

Sources: ALIGN-MLM (Tang et al. 2022), §5, which samples rows and includes those of the dictionary; CSLS: Conneau et al.
2018, §2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from derivlang.core.arrays import Bool, Int64, Ints
from derivlang.evaluation.measures.base import Figures, Measure
from derivlang.evaluation.measures.sets import MeasureSets
from derivlang.evaluation.statistics import wilson
from derivlang.formats.progress import rows_done, stage
from derivlang.lexical.encoding import SubwordEncoder
from derivlang.lexical.train import read_words
from derivlang.training.dictionary import DICTIONARY, JointDictionary
from derivlang.training.encoder import Encoder
from derivlang.training.languages import DERIVED, SOURCE, TOKENIZER, TwinLanguages

NEIGHBOURS = 10
_CELLS = 1 << 24  # number of similarities in a block


class Alignment(Measure):
    """Sub-words whose nearest embedding in the other language is their twin's."""

    needs_twin = True
    reads = ()

    def measure(self, model: Encoder, sets: MeasureSets) -> dict[str, Any]:
        """Return the figures of the module docstring, and the numbers "rows", "rows_heldout" and "rows_shared".

        A figure over no rows is None.
        """
        assert isinstance(sets.languages, TwinLanguages)  # needs_twin
        pairs = EmbeddingPairs.load(sets.folder, sets.languages)
        rows = model.embeddings.detach().float()
        with stage("comparing embeddings", "rows"):
            found = figures(rows, rows, pairs)
            if model.language_ids:
                types = model.language_embeddings.detach().float()
                added = figures(rows + types[SOURCE], rows + types[DERIVED], pairs)
                found |= {f"{name}_language": value for name, value in added.items()}
        own, n = int(pairs.own.sum()), len(pairs.own)
        sizes = {"rows": own, "rows_heldout": int((pairs.own & ~pairs.known).sum()), "rows_shared": n - own}
        return found | {"chance": 100 / n if own else None} | sizes

    def rows(self, found: Any) -> dict[str, Figures]:
        title = f"{found['rows']:,} rows, {found['rows_heldout']:,} outside the dictionary"
        return {title: {name: found.get(name) for name in ("all", "heldout", "csls", "csls_heldout", "chance")}}


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

    @classmethod
    def load(cls, folder: Path, languages: TwinLanguages) -> EmbeddingPairs:
        """Return the pairs of a run, from its dictionary and the training words of its tokenizer."""
        first, size = languages.tokenizer.n_special, languages.tokenizer.size
        types, numbers = read_words(folder / TOKENIZER)
        encoded = SubwordEncoder(languages.tokenizer).types(types)
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


def known_entries(path: Path, languages: TwinLanguages) -> Bool:
    """Return bool[V]: the source entries of a dictionary file; all False if there is no file."""
    known = np.zeros(languages.tokenizer.size, bool)
    if path.exists():
        known[JointDictionary.read(path, languages).pairs[:, 0]] = True
    return known


def figures(source: torch.Tensor, derived: torch.Tensor, pairs: EmbeddingPairs) -> dict[str, Any]:
    """Return the figures of two joint embeddings [size, D], from which the languages' rows are taken."""
    ours, theirs = (
        torch.nn.functional.normalize(rows[torch.from_numpy(ids).to(rows.device)], dim=1)
        for rows, ids in ((source, pairs.source), (derived, pairs.derived))
    )
    asked = np.flatnonzero(pairs.own)
    own = torch.from_numpy(asked).to(source.device)
    found: dict[str, Any] = {}
    for prefix, left, right in (("", ours, theirs), ("reverse_", theirs, ours)):
        # CSLS: the neighbours of each candidate are scored rows.
        near = neighbourhood(right, left[own])
        nearest, by_csls = best(left[own], right, near)
        for name, hits in (("", nearest == asked), ("csls", by_csls == asked)):
            found |= _shares(prefix, name, hits, ~pairs.known[asked], pairs.counts[asked])
    return found


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
    k = min(k, len(others))
    if not k:
        return torch.zeros(len(rows), device=rows.device)
    return torch.cat([(block @ others.T).topk(k, dim=1).values.mean(dim=1) for block in _blocks(rows, len(others))])


def _blocks(rows: torch.Tensor, width: int) -> Iterator[torch.Tensor]:
    for block in rows.split(max(1, _CELLS // max(width, 1))):
        yield block
        rows_done(len(block))


def _shares(prefix: str, name: str, hits: Bool, heldout: Bool, counts: Ints) -> dict[str, float | None]:
    stem = f"{prefix}{name}_" if name else prefix
    found = {
        f"{prefix}{name or 'all'}": _percent(hits, np.ones(len(hits))),
        f"{stem}heldout": _percent(hits, heldout),
        f"{stem}mass": _percent(hits, counts),
    }
    if not name and heldout.any():
        low, high = wilson(int(hits[heldout].sum()), int(heldout.sum()))
        found |= {f"{stem}heldout_low": low, f"{stem}heldout_high": high}
    return found


def _percent(hits: Bool, weights: Any) -> float | None:
    total = float(np.sum(weights))
    return float(100 * np.sum(hits * weights) / total) if total else None
