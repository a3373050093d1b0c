"""The loader: the rows and masks of a step are a pure function of the streams, the settings and the step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import Ints
from derivlang.core.errors import UsageError
from derivlang.training import loader as loaders
from derivlang.training.batch import Step, SubwordRows
from derivlang.training.doses import tokens_of
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.loader import Loader, ahead
from derivlang.training.masking import Keys
from derivlang.training.objectives.base import Context, Objective
from derivlang.training.objectives.registry import objective_names, read_objective
from derivlang.training.streams.base import GOLD, Stream
from derivlang.training.streams.linked import LinkedPairs
from derivlang.training.streams.packed import Packed
from derivlang.training.streams.pairs import SentencePairs
from derivlang.training.streams.switched import CodeSwitched
from tests.strategies import laws
from tests.training import (
    PAIR_LENGTH,
    SEQ_LEN,
    arrays,
    every_step,
    loader,
    micro_of,
    pair,
    same_batches,
    same_rows,
    stream_rows,
)


def reading(*given: Stream) -> Objective:
    """An objective with these streams."""

    @dataclass(frozen=True, kw_only=True)
    class Reads(Objective):
        """Masked words of some streams."""

        name = "reads"

        def streams(self) -> tuple[Stream, ...]:
            return given

    return Reads()


def reads(*given: Stream, **options: Any) -> Loader:
    return loader(reading(*given), **options)


STREAMS = [
    Packed(),
    SentencePairs(),
    SentencePairs(links=True, reset=False, together=False),
    CodeSwitched(switch=0.5, links=True),
]
EVERY = [*objective_names(), "xlm:pairs=0.75", "xlm:reset=no", "dict-mlm:variant=input"]
streams = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: f"{stream.name}-{stream.share}")
objectives = pytest.mark.parametrize("name", EVERY)


def one_step(made: Loader, step: int) -> Step:
    """The arrays of a step in one micro-batch."""
    ((micro,),) = made.steps(step, step + 1)
    return micro


# rows


@objectives
def test_every_objective_gets_the_same_rows_of_a_stream(name: str) -> None:
    ours = loader(name)
    for one in ours.streams:
        stream = one.stream.name
        # Only an objective that needs links has them, so they are compared in tests of their own.
        stream_alone = replace(one.stream, share=1.0)
        if isinstance(one.stream, LinkedPairs):
            stream_alone = replace(stream_alone, kind=GOLD)
        plain = reads(stream_alone, batch_size=one.size)
        for begin, end in [(step, step + 1) for step in range(20)] + [(0, 30)]:
            found, expected = (replace(stream_rows(made, stream, begin, end)[0], links=None) for made in (ours, plain))
            assert same_rows(found, expected)


def test_an_epoch_has_every_instance_of_both_corpora_once() -> None:
    made, data = loader(batch_size=10), pair().data
    n = data.n_instances(SOURCE)
    assert made.steps_per_epoch == 2 * n / 10 == 15
    seen = []
    for epoch in range(3):
        rows, _ = stream_rows(made, "rows", 15 * epoch, 15 * epoch + 15)
        found = sorted(
            (int(spoken[0]), tuple(ids)) for ids, spoken in zip(rows.clean_ids.tolist(), rows.language, strict=True)
        )
        expected = [
            (language, tuple(ids))
            for language in (SOURCE, DERIVED)
            for ids in data.rows(np.arange(n), np.full(n, language)).clean_ids.tolist()
        ]
        assert found == sorted(expected)
        seen.append(rows.clean_ids.tolist())
    assert seen[0] != seen[1] != seen[2]
    assert stream_rows(loader(batch_size=10, seed=2), "rows", 0, 15)[0].clean_ids.tolist() != seen[0]


def test_an_epoch_of_pairs_has_every_row_once() -> None:
    made = reads(SentencePairs(share=1.0), batch_size=7)
    one = made.streams[0]
    steps = one.source.n
    assert made.steps_per_epoch == steps / 7
    found = stream_rows(made, "pairs", 0, steps)[0].clean_ids.tolist()
    expected = one.source.rows(np.arange(one.source.n), Keys.of(1, 0, np.arange(one.source.n))).clean_ids.tolist()
    assert sorted(found) == sorted(expected * 7)


@laws
@given(begin=st.integers(0, 60), steps=st.integers(1, 40), size=st.sampled_from([1, 7, 8, 200]))
def test_rows_of_a_step_do_not_depend_on_where_one_begins(begin: int, steps: int, size: int) -> None:
    made = loader(batch_size=size)
    rows, keys = stream_rows(made, "rows", begin, begin + steps)
    assert rows.clean_ids.shape == (steps * size, SEQ_LEN)
    at = steps // 2
    own, its = stream_rows(made, "rows", begin + at, begin + at + 1)
    assert same_rows(rows.take(at * size, at * size + size), own)
    assert keys.rows[at * size : at * size + size].tolist() == its.rows.tolist()


@streams
@laws
@given(begin=st.integers(0, 60), steps=st.integers(1, 12))
def test_rows_of_any_stream_do_not_depend_on_where_one_begins(stream: Stream, begin: int, steps: int) -> None:
    made = reads(Packed(), stream) if stream.name != "rows" else reads(stream)
    size = made.streams[-1].size
    rows, _ = stream_rows(made, stream.name, begin, begin + steps)
    at = steps // 2
    own, _ = stream_rows(made, stream.name, begin + at, begin + at + 1)
    assert same_rows(rows.take(at * size, at * size + size), own)


@streams
def test_a_row_does_not_depend_on_its_neighbours(stream: Stream) -> None:
    source = reads(stream).streams[0].source
    numbers = np.random.default_rng(1).permutation(source.n)[:20]
    keys = Keys.of(1, 5, np.arange(20))
    together = source.rows(numbers, keys)
    for place, number in enumerate(numbers.tolist()):
        alone = source.rows(np.array([number]), keys.take(slice(place, place + 1)))
        assert same_rows(together.take(place, place + 1), alone)


def test_the_size_of_a_stream_is_its_share_of_the_positions() -> None:
    made = reads(Packed(), SentencePairs(share=0.25), CodeSwitched(share=1.0), pair_length=64, batch_size=32)
    sizes = [one.size for one in made.streams]
    assert sizes == [32, round(0.25 * 32 * SEQ_LEN / 64), round(32 * SEQ_LEN / 64)]
    assert [one.first for one in made.streams] == [0, 32, 36]


@pytest.mark.parametrize(("share", "accumulate"), [(0.3, 1), (0.45, 1), (1 / 3, 1), (0.9, 2)])
def test_a_share_that_rows_cannot_express_is_reached_on_average(share: float, accumulate: int) -> None:
    """Each step has the rows that follow those before it, one more or fewer; masks are keyed by their place."""
    made = reads(Packed(), SentencePairs(share=share), pair_length=64, batch_size=16, accumulate=accumulate)
    plain = reads(Packed(), SentencePairs(share=1.0), pair_length=64, batch_size=16)
    wanted = Fraction(share).limit_denominator(10**6) * 16 * SEQ_LEN / 64
    sizes = [sum(len(micro["pairs"].lengths) for micro in micros) for micros in made.steps(0, 60)]
    assert {floor(wanted), ceil(wanted)} == set(sizes)
    assert [sum(sizes[:n]) for n in range(61)] == [floor(n * wanted) for n in range(61)]
    each = [row for micros in made.steps(0, 6) for micro in micros for row in micro["pairs"].clean_ids.tolist()]
    theirs = [row for micros in plain.steps(0, 6) for row in micros[0]["pairs"].clean_ids.tolist()]
    assert each == theirs[: len(each)]
    later = [micro for micros in made.steps(31, 33) for micro in micros]
    whole = [micro for micros in made.steps(0, 33) for micro in micros][31 * accumulate :]
    assert all(same_batches(a["pairs"], b["pairs"]) for a, b in zip(later, whole, strict=True))


def test_a_share_of_less_than_a_row_is_refused_with_the_lowest_that_is_possible() -> None:
    with pytest.raises(
        UsageError, match=r"a share of 0\.01 of a step's 256 sub-words is less than a row of 64"
    ) as error:
        reads(SentencePairs(share=0.01), pair_length=64, batch_size=256 // SEQ_LEN)
    assert error.value.fix is not None
    assert "0.25 or more" in error.value.fix
    assert reads(SentencePairs(share=0.25), pair_length=64, batch_size=256 // SEQ_LEN).streams[0].size == 1


@streams
def test_the_average_of_subwords_is_that_of_all_rows(stream: Stream) -> None:
    made = reads(stream)
    source, size = made.streams[0].source, made.streams[0].size
    every = np.arange(source.n)
    lengths = source.rows(every, Keys.of(1, 0, every)).lengths
    assert source.mean_subwords == pytest.approx(lengths.mean())
    assert made.subwords_per_step == pytest.approx(lengths.mean() * size)


# micro-batches


def joined(batches: list[SubwordRows]) -> dict[str, Any]:
    """The arrays of a step's micro-batches as if they were one; its totals."""
    starts = np.cumsum([0, *(batch.input_ids.size for batch in batches)])
    out: dict[str, Any] = {}
    for name in arrays(batches[0]):
        parts = [getattr(batch, name) for batch in batches]
        if name in ("targets", "links"):
            parts = [part + start for part, start in zip(parts, starts, strict=False)]
        out[name] = np.concatenate(parts, axis=1 if name == "links" else 0)
    (totals,) = {batch.totals for batch in batches}
    return out | {"totals": totals}


def same_joined(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one if k != "totals")


EVEN = reading(Packed(), SentencePairs(links=True, views=2), CodeSwitched(share=0.5, links=True))


@pytest.mark.parametrize("objective", [*EVERY, EVEN], ids=str)
@pytest.mark.parametrize(("accumulate", "world"), [(4, 1), (1, 4), (2, 2)])
def test_micro_batches_part_the_step(objective: str | Objective, accumulate: int, world: int) -> None:
    whole = loader(objective)
    parts = [loader(objective, accumulate=accumulate, world=world, rank=rank) for rank in range(world)]
    found = [list(part.steps(3, 6)) for part in parts]
    for i, (one,) in enumerate(whole.steps(3, 6)):
        micros = [micro for process in found for micro in process[i]]
        assert len(micros) == accumulate * world
        assert sum(micro.share for micro in micros) == 1
        assert {micro.step for micro in micros} == {one.step} == {3 + i}
        for micro in micros:
            assert micro.counts == one.counts
            assert micro.batches.keys() == one.batches.keys()
        for name in one.batches:
            ours, theirs = joined([micro[name] for micro in micros]), joined([one[name]])
            assert same_joined(ours, theirs)
            assert ours["totals"] == theirs["totals"]


@pytest.mark.parametrize("objective", [*EVERY, reading(SentencePairs(links=True), CodeSwitched(links=True))], ids=str)
def test_numbers_of_a_step_by_a_slow_count(objective: str | Objective) -> None:
    made = loader(objective)
    for step in range(4):
        micro = one_step(made, step)
        subwords = {stream: int(micro[stream].attention.sum()) for stream in micro.batches}
        kinds = {kind: count for kind, count in tokens_of(micro.counts).items() if kind not in subwords}
        assert sum(tokens_of(micro.counts).values()) == sum(subwords.values())
        assert not kinds or (str(made.objective)[:3], list(kinds)) == ("xlm", ["pairs"])
        assert micro.counts["masked"] == sum(len(micro[stream].targets) for stream in micro.batches)
        for batch in micro.batches.values():
            spoken = [int((batch.label_language == language).sum()) for language in (SOURCE, DERIVED)]
            assert batch.totals.rows == len(batch.input_ids)
            assert (batch.totals.masked, list(batch.totals.by_language)) == (len(batch.targets), spoken)
            links = [] if batch.links is None else batch.links.T.tolist()
            assert batch.totals.links == len(links)
            assert batch.totals.linked == len(set(batch.targets.tolist()) & {begin for begin, _ in links})


@objectives
def test_the_input_differs_from_the_text_only_at_masked_positions(name: str) -> None:
    causal = read_objective(name).causal
    for batch in one_step(loader(name), 2).batches.values():
        changed = np.flatnonzero(batch.input_ids.ravel() != batch.clean_ids.ravel())
        assert set(changed.tolist()) <= set(batch.targets.tolist())
        assert (len(changed) > 0) != causal
        assert batch.unmasked().input_ids is batch.clean_ids
        assert ((batch.word_ids >= 0) == (batch.sentence_ids >= 0)).all()
        assert causal or (batch.word_ids.ravel()[batch.targets] >= 0).all()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_the_number_of_pair_rows_is_that_of_one_process(share: float) -> None:
    counts = {
        sum(len(micro["pairs"].input_ids) for rank in range(w) for micro in next(loader(
            f"xlm:pairs={share}", batch_size=40, accumulate=a, world=w, rank=rank).steps(0, 1)))
        for a, w in ((1, 1), (2, 1), (4, 1), (2, 2), (1, 2))
    }  # fmt: skip
    assert counts == {round(40 * share * SEQ_LEN / PAIR_LENGTH)}


@pytest.mark.parametrize("objective", [*EVERY, EVEN], ids=str)
def test_steps_do_not_depend_on_how_many_are_made_at_once(
    objective: str | Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(every_step(loader(objective), 0, 12))
    for size in (1, 8 * SEQ_LEN * 5):
        monkeypatch.setattr(loaders, "_SUBWORDS", size)
        for ours, theirs in zip(every_step(loader(objective), 0, 12), whole, strict=True):
            assert np.array_equal(ours, theirs)
    each = [array for step in range(12) for array in every_step(loader(objective), step, step + 1)]
    assert all(np.array_equal(a, b) for a, b in zip(each, whole, strict=True))


def test_tensors_of_a_batch() -> None:
    made = loader(EVEN)
    here = one_step(made, 1)
    there = here.to(torch.device("cpu"))
    assert (there.step, there.share, there.counts) == (here.step, here.share, here.counts)
    for name, batch in there.batches.items():
        assert batch.totals == here[name].totals
        assert same_batches(batch, here[name])
        kinds = {field: array.dtype for field, array in arrays(batch).items()}
        assert set(kinds.values()) == {torch.int64}
        assert batch.attention.dtype == torch.bool
        assert batch.attention.tolist() == here[name].attention.tolist()
        assert (batch.shared, batch.translated) == (None, None)


# views, rows without masks


def test_two_views_of_a_stream() -> None:
    made, plain = reads(SentencePairs(views=2)), reads(SentencePairs())
    for step in range(5):
        micro = one_step(made, step)
        assert list(micro.batches) == ["pairs", "pairs:2"]
        assert same_batches(micro["pairs"], one_step(plain, step)["pairs"])
        assert same_batches(micro["pairs"], micro["pairs:2"], ("input_ids", "targets", "labels", "label_language"))
        assert micro["pairs"].clean_ids.tolist() == micro["pairs:2"].clean_ids.tolist()
        one, two = (set(micro[name].targets.tolist()) for name in ("pairs", "pairs:2"))
        assert one != two
        assert tokens_of(micro.counts).keys() == {"pairs"}
        assert micro.counts["masked"] == len(one)  # the first view counts


def test_masks_of_views_are_independent() -> None:
    made = reads(SentencePairs(views=2), batch_size=400)
    micro = one_step(made, 0)
    some = (micro["pairs"].word_ids >= 0).ravel()
    chosen = []
    for name in ("pairs", "pairs:2"):
        at = np.zeros(some.shape, bool)
        at[micro[name].targets] = True
        chosen.append(at[some])
    both = (chosen[0] & chosen[1]).mean()
    assert abs(both - 0.09) < 4.5 * np.sqrt(0.09 * 0.91 / some.sum())


@streams
def test_rows_without_masks_have_no_targets(stream: Stream) -> None:
    micro = one_step(reads(replace(stream, masked=False)), 3)
    masked = one_step(reads(stream), 3)
    assert len(masked[stream.name].targets) > 0
    batch = micro[stream.name]
    assert len(batch.targets) == len(batch.labels) == len(batch.label_language) == 0
    assert (batch.totals.masked, batch.totals.by_language, micro.counts["masked"]) == (0, (0, 0), 0)
    assert batch.input_ids.tolist() == batch.clean_ids.tolist() == masked[stream.name].clean_ids.tolist()


# masks


@objectives
def test_masks_differ_by_step_and_seed(name: str) -> None:
    def targets(made: Loader, step: int) -> list[list[int]]:
        return [batch.targets.tolist() for batch in one_step(made, step).batches.values()]

    assert targets(loader(name), 0) != targets(loader(name), 1)
    assert targets(loader(name), 0) != targets(loader(name, seed=2), 0)
    assert targets(loader(name), 0) == targets(loader(name), 0)


def test_streams_of_a_step_have_masks_of_their_own() -> None:
    """Rows are numbered over all streams, so no two rows of a step share their draws."""
    made = reads(Packed(), SentencePairs(), CodeSwitched())
    keys = np.concatenate([stream_rows(made, one.stream.name, 4, 5)[1].rows for one in made.streams])
    assert len(set(keys.tolist())) == len(keys) == sum(one.size for one in made.streams)


def test_the_second_time_an_instance_is_masked_otherwise() -> None:
    made = loader(batch_size=150)
    by_ids: dict[tuple[int, ...], list[Any]] = {}
    for step in (0, 1):
        batch = one_step(made, step)["rows"]
        chosen = np.zeros(batch.input_ids.size, bool)
        chosen[batch.targets] = True
        for ids, row in zip(batch.clean_ids.tolist(), chosen.reshape(150, -1).tolist(), strict=True):
            by_ids.setdefault(tuple(ids), []).append(row)
    assert np.mean([len(set(map(tuple, found))) > 1 for found in by_ids.values()]) > 0.9


def test_a_step_without_masked_positions() -> None:
    micro = one_step(loader(rate=1e-9), 0)
    assert (micro["rows"].totals.masked, micro.counts["masked"], len(micro["rows"].targets)) == (0, 0, 0)


# the thread


@pytest.mark.parametrize("name", ["mlm", "xlm"])
def test_a_thread_makes_the_same_steps(name: str) -> None:
    made = loader(name)

    def made_ahead() -> Iterator[tuple[str, SubwordRows]]:
        for micros in ahead(made.steps(2, 30), 4):
            for micro in micros:
                yield from micro.batches.items()

    plain = [item for micros in made.steps(2, 30) for micro in micros for item in micro.batches.items()]
    for (ours, one), (theirs, two) in zip(made_ahead(), plain, strict=True):
        assert ours == theirs
        assert same_batches(one, two)


@dataclass(frozen=True, kw_only=True)
class Breaks(Objective):
    """Masks that fail."""

    name = "breaks"

    def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
        raise ZeroDivisionError


def test_an_error_in_the_thread_is_raised_where_the_steps_are_read() -> None:
    with pytest.raises(ZeroDivisionError):
        list(ahead(loader(Breaks()).steps(0, 10), 4))


def test_the_thread_ends_with_its_reader() -> None:
    before = set(threading.enumerate())
    steps = ahead(loader(batch_size=1024).steps(0, 1000), 4)
    next(steps)
    (thread,) = set(threading.enumerate()) - before
    steps.close()  # type: ignore[attr-defined]
    thread.join(5)
    assert not thread.is_alive()


# an objective's own masks


def test_an_objective_masks_each_stream_by_its_name() -> None:
    seen: list[tuple[str, Ints]] = []

    @dataclass(frozen=True, kw_only=True)
    class Notes(Objective):
        """Notes what it masks."""

        name = "notes"

        def streams(self) -> tuple[Stream, ...]:
            return Packed(), SentencePairs(views=2), CodeSwitched(views=2, masked=False)

        def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
            seen.append((stream, rows.clean_ids))
            return super().mask(stream, rows, keys, context)

    ((micro,),) = loader(Notes()).steps(0, 1)
    assert list(micro.batches) == ["rows", "pairs", "pairs:2", "switched", "switched:2"]
    assert [name for name, _ in seen] == ["rows", "pairs", "pairs"]


def test_text_and_input_have_names_of_their_own() -> None:
    """`ids` was the text in rows and the masked input in a batch; a plug-in of that time stops with an error."""
    made = loader()
    rows, _ = stream_rows(made, "rows", 0, 1)
    for found in (rows, micro_of(made)["rows"]):
        assert (found.clean_ids == np.asarray(rows.clean_ids)).all()
        assert not any(hasattr(found, name) for name in ("ids", "clean", "inputs"))


def test_a_mask_that_predicts_nothing_stops_with_one_message() -> None:
    """As that of an objective that returned a class of its own for masked rows, or forgot its targets."""

    @dataclass(frozen=True, kw_only=True)
    class Forgets(Objective):
        """Masks nothing."""

        name = "forgets"

        def mask(self, stream: str, rows: SubwordRows, keys: Keys, context: Context) -> SubwordRows:
            return rows

    with pytest.raises(UsageError, match="'forgets' masks rows without saying what is to be predicted"):
        list(loader(Forgets()).steps(0, 1))
