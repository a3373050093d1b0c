"""The lines that `evaluate` prints: they follow from columns and rows alone, whoever wrote the task or measure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.evaluation.columns import Column
from derivlang.evaluation.lines import lines, short_lines
from derivlang.evaluation.scores import Score, ScoredSet, table_of

SET, OTHER = ScoredSet("words", "0123456789abcdef", "document"), ScoredSet("words", "f" * 16, "document")
COLUMNS = (Column("a", "the first"), Column("b", "the second", unit="", formula="", headline=True, chance=True))
RECORD = {
    "tasks": {},
    "measures": {"x": {"settings": {"pairs": 5000, "word": "first sub-word"}}},
    "signature": {"steps": 20, "derivlang": "0.1"},
}


def told(scores: Iterable[Score], columns: Sequence[Column] = COLUMNS) -> list[str]:
    return list(lines({"x": [column.record() for column in columns]}, table_of("x", columns, scores), RECORD))


def short(scores: Iterable[Score], columns: Sequence[Column] = COLUMNS) -> list[str]:
    return list(short_lines({"x": [column.record() for column in columns]}, table_of("x", columns, scores)))


def counts(seed: int, n: int = 30) -> np.ndarray:  # type: ignore[type-arg]
    right = np.random.default_rng(seed).integers(0, 10, n)
    return np.stack([right, np.full(n, 10)], axis=1)


def test_a_score_that_is_not_declared_is_refused() -> None:
    with pytest.raises(DataError, match="own: the score 'f1' is not one of its columns"):
        table_of("own", [Column("accuracy")], [Score("f1", value=0.5)])


def test_each_score_has_its_title_value_unit_and_chance() -> None:
    found = told(
        [
            Score("a", counts(1), regime="source", set=SET),
            Score("b", value=3.0, regime="source"),
            Score("b", value=math.nan, regime="derived"),
            Score("b", value=1.25, regime="chance"),
        ]
    )
    head, first, second, third, signature = (re.sub(" +", " ", line).strip() for line in found)
    assert head == "x: pairs 5,000, word first sub-word"
    value = 10 * counts(1)[:, 0].mean()
    assert first == f"source the first {value:.1f} %"
    assert (second, third) == ("source the second 3 (chance 1.2)", "derived the second NaN (chance 1.2)")
    assert signature == "x.a|set:words#01234567|units:30 documents|word:first sub-word|step:20|derivlang:0.1"


def test_numbers_of_the_test_set_are_in_words() -> None:
    test = {"cut": 3, "labels": 25_094, "unscored": 129, "cut_answers": 1, "in_train": 0, "in_whole_train": 94}
    record = {**RECORD, "tasks": {"x": {"settings": {"epochs": 10}, "test": test}}}
    columns = {"x": [column.record() for column in COLUMNS]}
    first, *_ = lines(columns, table_of("x", COLUMNS, [Score(COLUMNS[0].name, counts(1))]), record)
    assert first == (
        "x: epochs 10; the test set has 3 rows cut, 25,094 labels, 129 labels without a score, 1 answers cut off, "
        "0 rows also in train, 94 rows also in the whole train split"
    )


def test_a_line_for_each_layer() -> None:
    layered = (Column("a", over="layer", chance=True), Column("b", over="layer", headline=True))
    scores = [Score(name, counts(n), layer=n) for name in "ab" for n in range(3)]
    guess = Score("a", np.tile([1, 4], (30, 1)), regime="chance")
    found = told([*scores, guess], layered)[1:]
    values = [10 * counts(n)[:, 0].mean() for n in range(3)]
    assert found == [f"x, layer {n}: a {v:.1f} % (chance 25.0 %), b {v:.1f} %" for n, v in enumerate(values)]
    assert short([*scores, guess], layered) == [f"x b {values[2]:.1f} %"]


@pytest.mark.parametrize(("other", "n_seeds"), [(SET, 3), (OTHER, 3), (SET, 2)])
def test_a_difference_has_its_mean_and_deviation_over_seeds(other: ScoredSet, n_seeds: int) -> None:
    seeds = range(1, n_seeds + 1)
    found = told(
        [
            Score("a", counts(10 * (regime == "zs") + seed), None, regime, "test", ft_seed=seed, set=of)
            for regime, of in (("sup", SET), ("zs", other)) for seed in seeds
        ]
        + [Score("a", counts(7), None, "sup", "dev", ft_seed=1, set=SET)]
    )  # fmt: skip
    (line,) = (line for line in found if line.startswith("  SUP - ZS"))
    values = [10 * (counts(seed)[:, 0].mean() - counts(10 + seed)[:, 0].mean()) for seed in seeds]
    assert f"{np.mean(values):.1f} %" in line
    assert f"± {np.std(values, ddof=1):.1f} over {n_seeds} seeds" in line
    signatures = [line for line in found if "|" in line]
    assert len(signatures) == (1 if other is SET else 2)
    assert all("|split:test|" in line and f"|ft_seeds:1-{n_seeds}|" in line for line in signatures)


def test_groups_show_the_headline_and_one_column_of_the_set() -> None:
    columns = (Column("a", headline=True), Column("b"))
    groups = ("", "reverse", "kind=noun", "kind=verb", "field=law")
    scores = [Score(name, counts(1), group=group, set=SET) for group in groups for name in "ab"]
    found = [line.split()[0] for line in told(scores, columns) if "|" not in line][1:]
    assert found == ["a", "b", "reverse", "kind=noun", "kind=verb"]
