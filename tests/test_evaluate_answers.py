"""Answers of `qa`: EM and F1 as SQuAD has them, in both languages, and answers that were cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.metrics import squad_words
from derivlang.evaluation.tasks.base import PairTask
from derivlang.evaluation.tasks.qa import CUT, Questions
from tests import squad
from tests.tiny_runs import batch, languages

CONTEXTS = [
    (
        'The ferryman\'s well-known "sister-in-law", a Dr. O\'Hara-Lee, paid 1,200 euros\tfor the (old) boat. '
        "She called it U.S.S. Gull–the boat's second name.\nAn owl, a heron and the gull were aboard.",
        [
            ["sister-in-law"], ["a Dr. O'Hara-Lee", "O'Hara-Lee"], ["1,200 euros\tfor the (old) boat"],
            ["the (old)", "old"], ["U.S.S. Gull–the boat's second name"], ["An owl, a heron and the gull"], ["The"], [],
        ],
    ),
    (
        "Nobody knows who built the inn. They say it was the miller, or the miller's wife.",
        [["the miller", "the miller's wife"]],
    ),
]  # fmt: skip


def data(extra: str = "") -> dict[str, Any]:
    """Questions on the contexts; extra: in front of each."""
    return {
        "data": [
            squad.article(str(c), extra + context, [("Which words are it?", texts) for texts in answers])
            for c, (context, answers) in enumerate(CONTEXTS)
        ]
    }


def made(path: Path, spec: str, length: int = 512, content: dict[str, Any] | None = None) -> tuple[Questions, Examples]:
    path.write_text(json.dumps(content or data()))
    task = Questions("qa").with_settings(max_length=length)
    assert isinstance(task, Questions)
    return task, task.examples(task.rows(batch(str(path), "test", spec), languages(spec)), ())


def places_of(instances: Instances, row: int) -> list[int]:
    """The positions of a row at which a word of the context begins."""
    begin, end = instances.offsets[row : row + 2].tolist()
    found: list[int] = np.flatnonzero(instances.words[begin:end] >= 0).tolist()
    return found


def spans(instances: Instances, seed: int) -> Any:
    """A random answer of some words for each row, int64[R, 2]."""
    draws, found = np.random.default_rng(seed), []
    for row in range(instances.n_rows):
        places = places_of(instances, row)
        first = int(draws.integers(len(places)))
        found.append((places[first], places[min(first + int(draws.integers(9)), len(places) - 1)]))
    return np.array(found)


def scored(task: Questions, instances: Instances, values: Any) -> dict[str, float]:
    """The scores of an answer for each row, [R, 2]."""
    gold = task.labels(instances, instances.gold, ())
    each = np.repeat(values, np.diff(instances.label_offsets), axis=0)  # one for each gold answer, as `predict` gives
    counts = task.score(gold, task.labels(instances, each, ()))
    return {metric.name: metric.value(counts[metric.name]) for metric in task.columns}


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_a_plain_scorer(seed: int, tmp_path: Path) -> None:
    """Words that white space does not divide, punctuation, articles, several gold answers, no answer."""
    task, found = made(tmp_path / "qa.test.json", "trans,inv")
    source, text = found.source, batch(str(tmp_path / "qa.test.json"), "test")
    values = source.gold[source.label_offsets[:-1]] if seed == 0 else spans(source, seed)
    begins, sizes = text.word_starts(), text.word_lengths()
    names = [(c, q) for c, (_, questions) in enumerate(CONTEXTS) for q, _ in enumerate(questions)]
    kept = [record for record, (c, q) in enumerate(names) if CONTEXTS[c][1][q]]
    answers = {}
    for row, record in enumerate(kept):
        places, first = places_of(source, row), text.unit_words[text.records[record, 0]]
        a, b = (int(first) + places.index(at) for at in values[row])
        c, q = names[record]
        answers[f"{c}-{q}"] = CONTEXTS[c][0][begins[a] : begins[b] + sizes[b]]
    wanted = squad.scores(data(), answers)
    assert scored(task, source, values) == pytest.approx(wanted, abs=1e-4)
    assert (wanted["em"] == 100) == (seed == 0)


@pytest.mark.parametrize(
    "text", ["The cat-the dog", "a–an–the", "don't", "U.S.A.", "theatre a", "«Une»\u00a0a", "", "A", "_a_"]
)
def test_normal_forms(text: str) -> None:
    assert list(squad_words(text)) == squad.words(text)


def test_a_score_means_the_same_in_both_languages(tmp_path: Path) -> None:
    """Equal spans of words have equal scores."""
    task, found = made(tmp_path / "qa.test.json", "trans")
    values = spans(found.source, 1)
    other = [
        [places_of(found.derived, row)[places_of(found.source, row).index(at)] for at in ends]
        for row, ends in enumerate(values.tolist())
    ]
    assert scored(task, found.source, values) == scored(task, found.derived, np.array(other))


def test_words_of_a_reversed_answer(tmp_path: Path) -> None:
    """What white space does not divide in the source is one word in the derived text, too."""
    task, found = made(tmp_path / "qa.test.json", "trans,inv")
    source, derived = (task.answers(side, side.gold) for side in (found.source, found.derived))
    assert source[0] == "sister-in-law"
    assert derived[0] == "law-in-sister"
    assert [len((text or "").split()) for text in source] == [len((text or "").split()) for text in derived]


@pytest.mark.parametrize("mixed", [False, True])
def test_an_answer_that_was_cut_off_is_wrong(mixed: bool, tmp_path: Path) -> None:
    """Whatever is predicted; questions without an answer are left out, and training has neither."""
    _, whole = made(tmp_path / "qa.test.json", "trans,inv")
    task, cut = made(tmp_path / "qa.test.json", "trans,inv", 40)
    if mixed:
        assert isinstance(task, PairTask)
        cut = task.examples(
            task.rows(batch(str(tmp_path / "qa.test.json"), "test", "trans,inv"), languages("trans,inv")).mixed(), ()
        )
    n = int(cut.wrong.sum())
    assert 0 < n < cut.n_rows == whole.n_rows == 8
    assert cut.unscored == whole.unscored == 1
    assert not whole.wrong.any()
    for side in (cut.source, cut.derived):
        gold = task.labels(side, side.gold, ())
        assert [CUT in row for row in gold] == cut.wrong.tolist()
        first = side.gold[side.label_offsets[:-1]]
        predicted = np.where(first < 0, np.array([[0, side.lengths.min() - 1]]), first)
        assert scored(task, side, predicted) == pytest.approx({"em": 100 * (8 - n) / 8, "f1": 100 * (8 - n) / 8})
        empty = [[()] for _ in gold]
        assert task.score([[CUT]] * 8, empty)["f1"][:, 0].sum() == task.score([[CUT]] * 8, empty)["em"][:, 0].sum() == 0
    learnt = cut.learnable()
    assert learnt.n_rows == 8 - n
    assert (learnt.source.gold >= 0).all()
    assert whole.learnable() is whole


def test_joined_examples_keep_their_texts(tmp_path: Path) -> None:
    """Batches have words of their own."""
    task, one = made(tmp_path / "a.test.json", "trans,inv")
    _, two = made(tmp_path / "b.test.json", "trans,inv", content=data("Once more: "))
    both = Examples.joined([one, two])
    for side in ("source", "derived"):
        parts = [getattr(examples, side) for examples in (one, two)]
        whole = getattr(both, side)
        assert task.answers(whole, whole.gold) == [text for part in parts for text in task.answers(part, part.gold)]
        some = whole.take(np.array([9, 0]))
        assert task.answers(some, some.gold) == [
            *task.answers(parts[1].take(np.array([1])), parts[1].take(np.array([1])).gold),
            *task.answers(parts[0].take(np.array([0])), parts[0].take(np.array([0])).gold),
        ]
