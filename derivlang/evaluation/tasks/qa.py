"""qa: the words of a context that answer a question, in sets of SQuAD's form (SQuAD, XQuAD, MLQA).

    <s> context </s> question </s>      start and end of the answer, each at the first sub-word of a word of the context

The derived answer is what the layer of answers gives in a derived set: the answer's words where they still stand
together, else their longest run. qa takes the files of `squad:en`: SQuAD 1.1 for train, MLQA for dev, XQuAD for test.
Other sets are named by folders or files: qa:my/squad+my/mlqa-test.json.

    em    answers that are right as a whole, in percent
    f1    mean F1 of the words of the gold and the predicted answer

Both take the best of several gold answers and compare words in the normal form of SQuAD's script (Rajpurkar et al.
2016): lower case, without punctuation, without English articles. The forms are those of the source's words, of which
the derived words are images, so a score means the same in both languages. SQuAD's script divides text at white space,
this task into the words of the source. An answer has any length. A question without an answer in its row (unanswerable,
or its answer cut off with the end of the context) is left out and counted as unscored; there are no overlapping
windows.

Fine-tuning as BERT's on SQuAD 1.1 (Devlin et al. 2019, §4.2): 3 epochs, lr 5e-5, batch 32; rows of 384. There is no
chance level.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import numpy as np

from derivlang.core.arrays import Int32, Int64, lengths_of, offsets_of, owners
from derivlang.core.batch import Batch
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.base import Move
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, exact_counts, overlap_counts, share
from derivlang.evaluation.rows import LanguageRows, ParallelRows
from derivlang.evaluation.tasks.base import PairTask
from derivlang.sources.corpus import Corpus
from derivlang.training.languages import Languages

if TYPE_CHECKING:
    import torch

_DROPPED = {ord(mark): None for mark in string.punctuation}


class Questions(PairTask):
    """Questions on a context, in the form of SQuAD: XQuAD, MLQA."""

    kind = "qa"
    source = "squad"
    default = "en"
    needs = "answers in a context for each question"
    metrics = (Metric("f1", overlap_counts, share, "F1"), Metric("em", exact_counts, share, "EM"))
    headline = "f1"
    defaults = FinetuneSettings(epochs=3, lr=5e-5, max_length=384)

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        if not any(field.kind == "answers" for field in corpus.schema.fields):
            raise self.no_labels(corpus.name)
        return ()

    def pair_examples(self, batch: Batch, languages: Languages, classes: tuple[str, ...], *, mixed: bool) -> Examples:
        found = [layer for layer in batch.layers.values() if isinstance(layer, Answers)]
        if len(found) != 1 or batch.records.shape[1] != 2:
            raise self.no_labels(self.name)
        (layer,) = found
        rows = ParallelRows.of(batch, languages, self.settings.max_length)
        forms, answers = normal_forms(batch), _by_row(rows, layer)
        rows = rows.mixed() if mixed else rows

        def instances(text: LanguageRows) -> Instances:
            place = _places(rows, text.segments, text.words).astype(np.int32)
            n = int(lengths_of(batch.unit_words)[rows.segments.units].sum())
            order = Order(place, np.array([0, len(place)]), np.zeros(1, np.int32), n)
            moved = answers.realign(Move(batch, order, Policies()))
            gold = np.stack([text.at[moved.start], text.at[moved.end - 1]], axis=1)
            inside = text.segments % text.n_sides == layer.side
            words = text.at_words(np.where(inside, forms[text.words], -1).astype(np.int32))
            return text.instances(owners(moved.offsets), np.zeros(len(gold), np.int64), gold, words)

        return rows.examples(instances, classes).labelled()

    def head(self, config: Any, n_classes: int) -> torch.nn.Module:
        from derivlang.evaluation.heads import Pointer

        return Pointer(config)

    def loss(self, scores: Any, gold: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(scores, gold)

    def decode(self, scores: Any) -> torch.Tensor:
        start, end = scores.unbind(dim=2)
        # The best end from each start on: from the right, the maximum so far.
        best, place = (found.flip(1) for found in end.flip(1).cummax(dim=1))
        first = (start + best).argmax(dim=1, keepdim=True)
        last = scores.shape[1] - 1 - place.gather(1, first)
        found: torch.Tensor = first.repeat(1, 2)
        found[:, 1:] = last
        return found

    def labels(self, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[list[Any]]:
        """Return the normal forms of an answer's words, by number."""
        assert instances.words is not None
        starts = np.repeat(instances.offsets[:-1], lengths_of(instances.label_offsets))[:, None] + values
        spans = [instances.words[a : b + 1] for a, b in starts.tolist()]
        return instances.by_row([tuple(span[span > 0].tolist()) for span in spans])


def normal_forms(batch: Batch) -> Int32:
    """Return int32[N]: the number of each word's normal form, 0 if nothing is left of it."""
    forms = [form.lower().translate(_DROPPED) for form in batch.types.to_pylist()]
    numbers = {"": 0, "a": 0, "an": 0, "the": 0}
    codes = [numbers.setdefault(form, len(numbers)) for form in forms]
    return np.array(codes, np.int32)[batch.words]


def _places(rows: ParallelRows, segments: Int64, words: Int64) -> Int64:
    """Return words of the batch, in these segments, as words of all rows, one row after the other.

    Rows of one context share its words in the batch. Contexts of 3 words and questions of 2, units 0 1 and 0 2: words 0
    1 2 of the context are places 0 1 2 in segment 0, and 5 6 7 in segment 2.
    """
    units = rows.segments.units
    starts = offsets_of(lengths_of(rows.batch.unit_words)[units])
    return starts[segments] + words - rows.batch.unit_words[units[segments]]


def _by_row(rows: ParallelRows, layer: Answers) -> Answers:
    """Return the answers that are whole in their rows, in the words of all rows (`_places`)."""
    segments = owners(layer.offsets).astype(np.int64) * rows.segments.n_sides + layer.side
    start, end = (_places(rows, segments, words) for words in (layer.start, layer.end))
    in_row = np.zeros(int(lengths_of(rows.batch.unit_words)[rows.segments.units].sum()), bool)
    in_row[_places(rows, rows.source.segments, rows.source.words)] = True
    kept, all_of_it = offsets_of(in_row), offsets_of(rows.has_subwords)
    n_kept = kept[end] - kept[start]
    whole = (n_kept > 0) & (n_kept == all_of_it[layer.end] - all_of_it[layer.start])
    return Answers(layer.name, offsets_of(whole)[layer.offsets], start[whole], end[whole], layer.side)
