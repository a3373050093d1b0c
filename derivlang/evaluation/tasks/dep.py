"""dep: the head and the relation of each word of a treebank, by a biaffine classifier (Dozat and Manning 2017).

    s(i, j) = d_i · U · [h_j; 1]      r(i, j) = [d_i; 1] · W · [h_j; 1]      d, h: projections of the encoder's states

A word stands at its first sub-word (in a causal model at its last one), the root at `<s>`. The head of word i is the
best j among `<s>` and the other words of the row; its relation is the best at that head. Heads are chosen word by word,
so they need not form a tree. With --freeze embeddings,encoder this is a probe of the pre-trained states.

    uas    words with the right head, in percent
    las    words with the right head and relation

Both count all words, punctuation too, and ignore subtypes (`nmod:poss` is `nmod`), as the CoNLL 2018 shared task does
(Zeman et al. 2018), here on gold words. Words whose head was cut off with the end of a long row are left out and
counted as unscored. The chance level of uas is the score of a head drawn uniformly among the possible ones. Fine-tuning
as of the pos task, but with lr 5e-5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Int64, lengths_of, owners
from derivlang.core.errors import DataError
from derivlang.core.layers.tree import Tree
from derivlang.core.schema import V2_RELATIONS
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.formulas import fixed
from derivlang.evaluation.metrics import Metric, head_counts, right_counts
from derivlang.evaluation.rows import LanguageRows, ParallelRows
from derivlang.evaluation.tasks.base import Task
from derivlang.sources.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.predictions import RowWords


class Dependencies(Task):
    """Universal Dependencies: unlabelled (UAS) and labelled attachment scores (LAS)."""

    kind = "dep"
    source = "pos"
    default = "English-EWT"
    needs = "a tree for each sentence"
    word, causal = "first", True
    columns = (
        Metric("uas", "UAS", count=head_counts, chance=True),
        Metric("las", "LAS", count=right_counts, headline=True),
    )
    defaults = FinetuneSettings(lr=5e-5)

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        if not any(field.kind == "tree" for field in corpus.schema.fields):  # a parser's trees are not labels
            raise self.no_labels(corpus.name)
        return tuple(sorted(V2_RELATIONS))

    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        batch = rows.batch
        tree = batch.layers.get("head")
        if not isinstance(tree, Tree):
            raise self.no_labels(self.name)
        if (tree.head < 0).any():
            raise DataError(
                "a word has no head, which dep is to predict",
                fix="evaluate dep on a treebank in which every word has a head",
                id="head-range",
            )
        starts = batch.unit_words[:-1][owners(batch.unit_words)]
        governor = np.where(tree.head > 0, starts + tree.head - 1, batch.n_words)  # the root's: one past the last word
        relation = self._relations(tree, classes)

        def instances(text: LanguageRows) -> Instances:
            position = np.full(batch.n_words + 1, -1, np.int64)
            position[-1] = 0  # the root is `<s>`
            position[text.words] = text.at
            gold = np.stack([position[governor[text.words]], relation[text.words]], axis=1)
            words = text.at_words(np.zeros(len(text.words), np.int32))
            words[text.offsets[:-1]] = 0
            return text.word_labels(gold, words)

        return rows.examples(instances, classes, batch.n_words)

    def _relations(self, tree: Tree, classes: tuple[str, ...]) -> Int64:
        """Return int64[N]: the class of each word's relation. Raise DataError for one that UD does not have."""
        known = {name: i for i, name in enumerate(classes)}
        names = [value.partition(":")[0] for value in tree.deprel.values.to_pylist()]
        codes = np.array([known.get(name, -1) for name in names], np.int64)[tree.deprel.codes]
        if (codes < 0).any():
            raise DataError(
                f"{names[tree.deprel.codes[codes.argmin()]]!r} is not one of the {len(classes)} universal relations",
                fix="evaluate dep on a treebank of Universal Dependencies 2",
                id="unknown-relation",
            )
        return codes

    def head(self, config: Any, n_classes: int) -> torch.nn.Module:
        from derivlang.evaluation.heads import Biaffine

        return Biaffine(config, n_classes)

    def loss(self, scores: Any, gold: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import cross_entropy

        heads, relations = scores
        return cross_entropy(heads, gold[:, 0]) + cross_entropy(_at(relations, gold[:, 0]), gold[:, 1])

    def decode(self, scores: Any) -> torch.Tensor:
        heads, relations = scores
        best = heads.argmax(dim=1, keepdim=True)
        labels: torch.Tensor = best.repeat(1, 2)
        labels[:, 1] = _at(relations, best[:, 0]).argmax(dim=1)
        return labels

    def labels(self, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[list[Any]]:
        """Return (position of the head, relation) of each word."""
        return instances.by_row([(head, classes[relation]) for head, relation in values.tolist()])

    def told(self, words: RowWords, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[Any]:
        """Return one list per row: head (the number of a word of the row, from 1; 0: the root) and deprel of each word,
        None for a word whose head was cut off."""
        number = np.where(values[:, 0] > 0, words.numbers(instances, values[:, 0]) + 1, 0)
        both = zip(number.tolist(), values[:, 1].tolist(), strict=True)
        return words.labelled(instances, [{"head": head, "deprel": classes[relation]} for head, relation in both])

    def chance(self, train: Instances, test: Instances, classes: tuple[str, ...]) -> dict[str, Int64]:
        possible = np.add.reduceat(test.words >= 0, test.offsets[:-1]) - 1  # not the word itself
        labels = lengths_of(test.label_offsets)
        return {"uas": fixed(labels / np.maximum(possible, 1), labels)}


def _at(relations: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
    """Return [G, C]: the scores [G, T, C] of the relations at heads int64[G]."""
    return relations.gather(1, heads[:, None, None].expand(-1, 1, relations.shape[2])).squeeze(1)
