"""Embedding alignment: the percentage of sub-words whose nearest row in the other language is their twin's.

    row i of the source -> argmax over all rows j of the derived language of cos(E[i], E[j])      correct: j = twin(i)

    all         all rows, except special tokens and rows that both languages share
    heldout     rows outside the training dictionary, with a 95 % bootstrap interval over rows
    mass        all rows, weighted by the frequency of the sub-word in the text of the tokenizer
    csls        by 2 cos(x, y) - r(x) - r(y) instead, r the mean cosine to the 10 nearest rows of the other language
    reverse_    from the derived language to the source
    _language   with the language embeddings added, if the model has any

Sources: ALIGN-MLM (Tang et al. 2022), §5, which samples rows and includes those of the dictionary; CSLS: Conneau et al.
2018, §2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Bool, Int64, Ints
from derivlang.core.errors import DataError
from derivlang.evaluation.metrics import share
from derivlang.evaluation.resample import bootstrap
from derivlang.evaluation.trained import ModelEncoder, PretrainedRun
from derivlang.formats.progress import rows_done
from derivlang.lexical.encoding import Encoder as SubwordEncoder
from derivlang.lexical.train import read_words
from derivlang.training.dictionary import JointDictionary
from derivlang.training.folder import DICTIONARY
from derivlang.training.languages import DERIVED, SOURCE, TOKENIZER, Languages

if TYPE_CHECKING:
    import torch

NEIGHBOURS = 10
_CELLS = 1 << 24  # number of similarities in a block


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
    def of(cls, languages: Languages, counts: Int64, changed: Int64, known: Bool) -> EmbeddingPairs:
        """Return the table of two languages. All arrays are [V], by source id.

        counts: frequency of an entry in the source. changed: its frequency in words that the overlap does not keep (0:
        the entry is shared). known: whether it is in the dictionary.
        """
        first = languages.tokenizer.n_special
        source = np.arange(first, languages.tokenizer.size)
        derived = languages.twin.joint.table()[first:].astype(np.int64)
        own = (derived != source) & ~((counts[first:] > 0) & (changed[first:] == 0))
        return cls(source, derived, own, known[first:], counts[first:])

    @classmethod
    def load(cls, trained: PretrainedRun) -> EmbeddingPairs:
        """Return the table of a run, from its dictionary and the training words of its tokenizer."""
        languages = trained.languages
        types, numbers = read_words(trained.folder / TOKENIZER)
        encoded = SubwordEncoder(languages.tokenizer).types(types)
        kept = languages.twin.kept(types)
        size, words = languages.tokenizer.size, encoded.words()
        counts = np.zeros(size, np.int64)
        changed = counts.copy()
        np.add.at(counts, encoded.ids, numbers[words])
        np.add.at(changed, encoded.ids, np.where(kept, 0, numbers)[words])
        return cls.of(languages, counts, changed, known_entries(trained.folder / DICTIONARY, languages))


def known_entries(path: Path, languages: Languages) -> Bool:
    """Return bool[V]: the source entries of a dictionary file; all False if there is no file."""
    known = np.zeros(languages.tokenizer.size, bool)
    if path.exists():
        known[JointDictionary.read(path, languages).pairs[:, 0]] = True
    return known


def alignment(trained: PretrainedRun, encoder: ModelEncoder) -> dict[str, Any]:
    """Return the figures listed in the module docstring, and the numbers "rows", "rows_heldout" and "rows_shared".

    A figure over no rows is None.
    """
    table = EmbeddingPairs.load(trained)
    rows = encoder.module.get_input_embeddings().weight.detach().float()
    found = figures(rows, rows, table)
    if encoder.token_types:
        types = _token_types(encoder.module)
        added = figures(rows + types[SOURCE], rows + types[DERIVED], table)
        found |= {f"{name}_language": value for name, value in added.items()}
    own = int(table.own.sum())
    sizes = {
        "rows": own,
        "rows_heldout": int((table.own & ~table.known).sum()),
        "rows_shared": len(table.own) - own,
    }
    return found | sizes


def figures(source: torch.Tensor, derived: torch.Tensor, table: EmbeddingPairs) -> dict[str, Any]:
    """Return the figures of two joint embeddings [size, D], from which the languages' rows are taken."""
    import torch

    ours, theirs = (
        torch.nn.functional.normalize(rows[torch.from_numpy(ids).to(rows.device)], dim=1)
        for rows, ids in ((source, table.source), (derived, table.derived))
    )
    asked = np.flatnonzero(table.own)
    heldout = ~table.known[asked]
    found: dict[str, Any] = {}
    own = torch.from_numpy(asked).to(source.device)
    for prefix, left, right in (("", ours, theirs), ("reverse_", theirs, ours)):
        # CSLS: the neighbours of each candidate are scored rows.
        near = neighbourhood(right, left[own])
        nearest, by_csls = best(left[own], right, near)
        for name, hits in (("", nearest == asked), ("csls", by_csls == asked)):
            found |= _shares(prefix, name, hits, heldout, table.counts[asked])
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
    import torch

    k = min(k, len(others))
    if not k:
        return torch.zeros(len(rows), device=rows.device)
    return torch.cat([(block @ others.T).topk(k, dim=1).values.mean(dim=1) for block in _blocks(rows, len(others))])


def _blocks(rows: torch.Tensor, width: int) -> Iterator[torch.Tensor]:
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
        rows_done(min(step, len(rows) - start))


def _shares(prefix: str, name: str, hits: Bool, heldout: Bool, counts: Ints) -> dict[str, float | None]:
    stem = f"{prefix}{name}_" if name else prefix
    found = {
        f"{prefix}{name or 'all'}": _percent(hits, np.ones(len(hits))),
        f"{stem}heldout": _percent(hits, heldout),
        f"{stem}mass": _percent(hits, counts),
    }
    if not name and heldout.any():
        pairs = np.stack([hits[heldout], np.ones(int(heldout.sum()))], axis=1).astype(np.int64)
        low, high = bootstrap([pairs], share)
        found |= {f"{stem}heldout_low": low, f"{stem}heldout_high": high}
    return found


def _percent(hits: Bool, weights: Any) -> float | None:
    total = float(np.sum(weights))
    return float(100 * np.sum(hits * weights) / total) if total else None


def _token_types(module: Any) -> torch.Tensor:
    """Return [types, D]: the embeddings of token types, found by their module name."""
    for name, part in module.named_modules():
        if name.endswith("token_type_embeddings"):
            found: torch.Tensor = part.weight.detach().float()
            return found
    raise DataError("the model has no embeddings of token types", id="language-ids")
