"""The regime cs: mixed pairs, which side of them is of which language, their labels, and their place in batches."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from derivlang.core.errors import UsageError
from derivlang.evaluation.examples import Examples, Instances
from derivlang.evaluation.finetune import LabelBatch, batches
from derivlang.evaluation.rows import LanguageRows
from derivlang.evaluation.tasks.base import PairTask
from derivlang.evaluation.tasks.registry import task_of
from derivlang.training.encoder import Encoder
from tests.commands import run as cli
from tests.evaluations import evaluate, of_regime, options, regimes, values
from tests.test_evaluate_examples import END, classes_of, made, rows
from tests.tiny_runs import MARKS, batch, languages, write_run


def mixed(spec: str, name: str, length: int, source: str) -> Examples:
    task = task_of(name).with_settings(max_length=length)  # type: ignore[attr-defined]
    assert isinstance(task, PairTask)
    found = batch(source, "test" if source == "demo:qa" else "train", spec)
    return task.examples(task.rows(found, languages(spec)).mixed(), classes_of(source, task))


def values_by_row(found: Instances, values: Any) -> list[list[int]]:
    return [values[a:b].tolist() for a, b in itertools.pairwise(found.offsets)]


def test_rows_by_hand() -> None:
    """<s> a b b </s> c </s> with the words a, b, c, and <s> b' b' a' </s> c' c' </s>."""
    source = LanguageRows(
        np.array([0, 10, 11, 12, 2, 13, 2], np.int32), np.array([0, 5, 7]), np.array([0, 1, 2]), np.array([1, 2, 5]),
        np.array([0, 0, 1]), 2,
    )  # fmt: skip
    derived = LanguageRows(
        np.array([0, 21, 22, 20, 2, 23, 24, 2], np.int32), np.array([0, 5, 8]), np.array([1, 0, 2]),
        np.array([1, 3, 5]), np.array([0, 0, 1]), 2,
    )  # fmt: skip
    first, second = (LanguageRows.mixed(source, derived, side) for side in (0, 1))
    assert first.ids.tolist() == [0, 21, 22, 20, 2, 13, 2]
    assert first.languages.tolist() == [1, 1, 1, 1, 1, 0, 0]  # type: ignore[union-attr]
    assert (first.words.tolist(), first.at.tolist(), first.segments.tolist()) == ([1, 0, 2], [1, 3, 5], [0, 0, 1])
    assert second.ids.tolist() == [0, 10, 11, 12, 2, 23, 24, 2]
    assert second.languages.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]  # type: ignore[union-attr]
    assert (second.words.tolist(), second.at.tolist()) == ([0, 1, 2], [1, 2, 5])
    assert (first.offsets.tolist(), second.offsets.tolist()) == ([0, 7], [0, 8])


@pytest.mark.parametrize("length", [13, 40, 200])
@pytest.mark.parametrize(("name", "source"), [("xnli", "demo:nli"), ("qa", "demo:qa")])
@pytest.mark.parametrize("spec", ["trans,inv", "trans,perm:seed=4", "trans,inv:unit=token"])
def test_each_side_is_of_its_language(spec: str, name: str, source: str, length: int) -> None:
    plain, _, _ = made(spec, task_of(name), length, source)  # type: ignore[arg-type]
    found = mixed(spec, name, length, source)
    assert np.array_equal(found.keys, plain.keys)
    assert np.array_equal(found.truncated, plain.truncated)
    expected: tuple[list[Any], ...] = ([], [], [], [])
    for ours, theirs in zip(rows(plain.source), rows(plain.derived), strict=True):
        here, there = ours.index(END) + 1, theirs.index(END) + 1
        expected[0].append(theirs[:there] + ours[here:])
        expected[1].append(ours[:here] + theirs[there:])
        expected[2].append([1] * there + [0] * (len(ours) - here))
        expected[3].append([0] * here + [1] * (len(theirs) - there))
    assert (rows(found.source), rows(found.derived)) == expected[:2]
    assert values_by_row(found.source, found.source.languages) == expected[2]
    assert values_by_row(found.derived, found.derived.languages) == expected[3]


def test_labels_of_pairs_are_kept() -> None:
    plain, _, _ = made("trans,inv", task_of("xnli"), 60, "demo:nli")  # type: ignore[arg-type]
    found = mixed("trans,inv", "xnli", 60, "demo:nli").interleaved()
    assert found.gold[:, 0].tolist() == np.repeat(plain.source.gold[:, 0], 2).tolist()
    assert found.n_rows == 2 * plain.n_rows
    both = mixed("trans,inv", "xnli", 60, "demo:nli")
    assert rows(found)[:4] == [rows(side)[i] for i in (0, 1) for side in (both.source, both.derived)]


@pytest.mark.parametrize("spec", ["trans,inv", "trans,perm:seed=4"])
def test_answers_are_those_of_the_language_of_their_context(spec: str) -> None:
    """The context is the first side: it is derived in the first mixed pair, not in the second."""
    plain, _, _ = made(spec, task_of("qa"), 512, "demo:qa")  # type: ignore[arg-type]
    found = mixed(spec, "qa", 512, "demo:qa")
    for mix, own, other in ((found.source, plain.derived, plain.source), (found.derived, plain.source, plain.derived)):
        assert np.array_equal(mix.gold, own.gold)  # the context is first in the row
        assert not np.array_equal(mix.gold, other.gold)
        ours, theirs = (task_of("qa").labels(side, side.gold, ()) for side in (mix, own))  # type: ignore[attr-defined]
        assert ours == theirs


def test_two_mixed_pairs_are_in_one_batch() -> None:
    found = mixed("trans,inv", "xnli", 60, "demo:nli").interleaved()
    seen = list(batches(found, 8, 1, 0, together=2))
    assert sorted(np.concatenate(seen).tolist()) == list(range(found.n_rows))
    assert max(map(len, seen)) == 8
    for some in seen:
        assert (some[::2] % 2 == 0).all()
        assert np.array_equal(some[::2] + 1, some[1::2])


def test_the_model_gets_the_language_of_each_position() -> None:
    found = mixed("trans,inv", "xnli", 60, "demo:nli").interleaved()
    given: dict[str, torch.Tensor] = {}

    class Recorder:
        config = SimpleNamespace(pad_token_id=1, model_type="roberta")

        @property
        def base_model(self) -> Recorder:
            return self

        def __call__(self, **options: torch.Tensor) -> Any:
            given.update(options)
            return SimpleNamespace(last_hidden_state=None)

    padded = LabelBatch(found, np.array([3, 0]), torch.device("cpu"))
    assert padded.languages is not None
    encoder = Encoder(Recorder(), MARKS, language_ids=True)
    encoder(padded.ids, padded.mask, padded.languages)
    types = given["token_type_ids"]
    for row, number in zip(types, (3, 0), strict=True):
        wanted = values_by_row(found, found.languages)[number]
        assert row[: len(wanted)].tolist() == wanted
        assert not row[len(wanted) :].any()


# Whole evaluations


def test_cs_stands_beside_the_other_regimes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", kind="roberta", model={"name": "roberta", "language_ids": True})
    asked = options("xnli", max_length=40)
    plain = evaluate(run, asked)
    whole = evaluate(run, replace(asked, regimes=("sup", "zs", "cs")))
    for regime in ("sup", "zs", "source"):
        assert of_regime(whole, "xnli", regime) == of_regime(plain, "xnli", regime)
    assert regimes(whole, "xnli", "dev") == {"sup", "zs", "cs"}
    assert (run / "evaluation" / "xnli.cs.1.parquet").exists()
    again = evaluate(run, asked)  # the cell of cs stays, and its score
    assert of_regime(again, "xnli", "cs") == of_regime(whole, "xnli", "cs") != []
    fresh = tmp_path / "fresh"
    shutil.copytree(run, fresh, ignore=shutil.ignore_patterns("evaluation*"))
    alone = evaluate(fresh, replace(asked, regimes=("cs",), seeds=2))
    assert regimes(alone, "xnli") == {"cs"}
    assert values(alone, "xnli", "cs")[:1] == values(whole, "xnli", "cs")
    told = cli("report", run, "-o", tmp_path / "report")
    assert not told.err or "rror" not in told.err


def test_what_cannot_be_mixed() -> None:
    with pytest.raises(UsageError, match=r"which pos does not have \[no-pairs\]\n.*pairs: pawsx, qa, xnli"):
        options("xnli", "pos", regimes=("cs",))
    with pytest.raises(UsageError, match=r"--batch-size: cs puts the two mixed pairs .* got 15"):
        options("xnli", regimes=("cs",), batch_size=15)
