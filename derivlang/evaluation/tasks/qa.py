"""qa: the words of a context that answer a question, in sets of SQuAD's form (SQuAD, XQuAD, MLQA).

    <s> context </s> question </s>      start and end of the answer, each at the first sub-word of a word of the context

The derived answer is what the layer of answers gives in a derived set: the answer's words where they still stand
together, else their longest run. qa takes the files of `squad:en`: SQuAD 1.1 for train, MLQA for dev, XQuAD for test.
Other sets are named by folders or files: qa:my/squad+my/mlqa-test.json.

    em    answers that are right as a whole, in percent
    f1    mean F1 of the words of the gold and the predicted answer

Both take the best of several gold answers and compare text in the normal form of SQuAD's script (Rajpurkar et al.
2016): lower case, without punctuation, without English articles, divided at white space. The text is the text of the
source's words, of which the derived words are images, so a score means the same in both languages. Words that have no
white space between them in the source, such as `don't` in three words, are joined wherever they are neighbours. A set
whose words are given as lists has white space between all of them. A gold answer covers whole words, to which it is
widened when a set is read, and has any length.

There are no overlapping windows. A question whose answer was cut off with the end of the context is wrong, whatever is
predicted, as in SQuAD's script, and is not an example for training. A question without an answer is left out and
counted as unscored.

Fine-tuning as BERT's on SQuAD 1.1 (Devlin et al. 2019, §4.2): 3 epochs, lr 5e-5, batch 32; rows of 384. There is no
chance level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Int64, lengths_of, offsets_of, owners
from derivlang.core.layers.answers import Answers
from derivlang.core.layers.base import Realignment
from derivlang.core.order import Order
from derivlang.core.policies import Policies
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.metrics import Metric, exact_counts, overlap_counts, squad_words
from derivlang.evaluation.rows import LanguageRows, ParallelRows
from derivlang.evaluation.tasks.base import PairTask
from derivlang.sources.corpus import Corpus

if TYPE_CHECKING:
    import torch

    from derivlang.evaluation.predictions import RowWords

CUT = ("",)  # equals no answer, and has no word of one: words are not empty


class Questions(PairTask):
    """Questions on a context, in the form of SQuAD (XQuAD, MLQA): F1 and exact match (EM)."""

    kind = "qa"
    source = "squad"
    default = "en"
    needs = "answers in a context for each question"
    word = "first"
    columns = (
        Metric("f1", "F1", count=overlap_counts, headline=True),
        Metric("em", "EM", count=exact_counts),
    )
    defaults = FinetuneSettings(epochs=3, lr=5e-5, max_length=384)

    def classes(self, corpus: Corpus) -> tuple[str, ...]:
        if not any(field.kind == "answers" for field in corpus.schema.fields):
            raise self.no_labels(corpus.name)
        return ()

    def examples(self, rows: ParallelRows, classes: tuple[str, ...]) -> Examples:
        batch = rows.batch
        layers = [layer for layer in batch.layers.values() if isinstance(layer, Answers)]
        if len(layers) != 1 or batch.records.shape[1] != 2:
            raise self.no_labels(self.name)
        (layer,) = layers
        answers = _by_row(rows, layer)
        # The width of the white space before each word; 1 where it is not known.
        gaps = np.ones(batch.n_words, np.int64) if batch.gaps is None else batch.gaps.widths(batch.unit_words)
        lost = np.flatnonzero((lengths_of(layer.offsets) > 0) & (lengths_of(answers.offsets) == 0))
        # The text of a word, with the space before it and, if it is joined to the word before, without.
        texts = pa.concat_arrays([pc.binary_join_element_wise("", batch.types, " "), batch.types])

        def instances(text: LanguageRows) -> Instances:
            place = rows.in_all_rows(text.segments, text.words).astype(np.int32)
            order = Order(place, np.array([0, len(place)]), np.zeros(1, np.int32), len(rows.in_rows))
            moved = answers.realign(Realignment(batch, order, Policies()))
            spans = np.stack([text.at[moved.start], text.at[moved.end - 1]], axis=1)
            row = np.concatenate([owners(moved.offsets).astype(np.int64), lost])
            gold, by_row = np.append(spans, np.full((len(lost), 2), -1), axis=0), np.argsort(row, kind="stable")
            number = batch.words[text.words] + np.where(text.joined(gaps), len(batch.types), 0)
            inside = text.segments % text.n_sides == layer.side
            words = text.at_words(np.where(inside, number, -1).astype(np.int32))
            return text.instances(row[by_row], np.zeros(len(row), np.int64), gold[by_row], words, texts)

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
        best, place = (each.flip(1) for each in end.flip(1).cummax(dim=1))
        first = (start + best).argmax(dim=1, keepdim=True)
        last = scores.shape[1] - 1 - place.gather(1, first)
        labels: torch.Tensor = first.repeat(1, 2)
        labels[:, 1:] = last
        return labels

    def labels(self, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[list[Any]]:
        """Return the words of each answer in their normal form, as a tuple; CUT for one that was cut off."""
        texts = self.answers(instances, values)
        return instances.by_row([CUT if text is None else squad_words(text) for text in texts])

    def answers(self, instances: Instances, values: Int64) -> list[str | None]:
        """Return the text of each answer, with single spaces; None for a gold answer that was cut off."""
        begins = np.repeat(instances.offsets[:-1], lengths_of(instances.label_offsets))
        spans = [instances.words[n + a : n + b + 1] for n, (a, b) in zip(begins, values, strict=True)]
        texts = ["".join(instances.texts.take(pa.array(span[span >= 0])).to_pylist()).strip() for span in spans]
        return [None if a < 0 else text for text, a in zip(texts, values[:, 0].tolist(), strict=True)]

    def told(self, words: RowWords, instances: Instances, values: Int64, classes: tuple[str, ...]) -> list[Any]:
        """Return the different answers of each row, without those that were cut off.

        Each has its text, the source's text of it, which is what scores compare, and the numbers of its first and last
        word in the context, from 0.
        """
        there = values.clip(0)
        first, last = (words.find(instances, there[:, i]).tolist() for i in (0, 1))
        numbers = words.numbers(instances, there[:, 0]).tolist()
        answers = [
            source and {"text": " ".join(words.forms[a : b + 1].to_pylist()), "source": source, "first": n,
                        "last": n + b - a}
            for source, a, b, n in zip(self.answers(instances, values), first, last, numbers, strict=True)
        ]  # fmt: skip
        by_row = instances.by_row(answers)
        return [[one for i, one in enumerate(some) if one and one not in some[:i]] for some in by_row]


def _by_row(rows: ParallelRows, layer: Answers) -> Answers:
    """Return the answers that are whole in their rows, in the words of all rows (`_places`)."""
    segments = owners(layer.offsets).astype(np.int64) * rows.source.n_sides + layer.side
    start, end = (rows.in_all_rows(segments, words) for words in (layer.start, layer.end))
    kept, all_of_it = offsets_of(rows.in_rows), offsets_of(rows.has_subwords)
    n_kept = kept[end] - kept[start]
    whole = (n_kept > 0) & (n_kept == all_of_it[layer.end] - all_of_it[layer.start])
    return Answers(layer.name, offsets_of(whole)[layer.offsets], start[whole], end[whole], layer.side)
