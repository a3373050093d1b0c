"""Rows of sentence pairs: both sides, their links and counts, and code-switched copies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from derivlang.core.errors import DataError
from derivlang.training.batch import SubwordRows
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, SOURCE
from derivlang.training.masking import Keys
from derivlang.training.streams.pair_source import DerivedPairs
from derivlang.training.streams.pairs import PairRows, SentencePairs
from derivlang.training.streams.switched import CodeSwitched
from tests.commands import run
from tests.strategies import batch_of
from tests.training import PAIR_LENGTH, batches, links_of, material, opened, pair, settings, special_ids

SPECS = ["trans,inv", "trans,perm", "trans:overlap=25,perm"]
HALF = PAIR_LENGTH // 2
specs = pytest.mark.parametrize("spec", SPECS)


class Piece(NamedTuple):
    """A piece of a sentence in both languages. order: of its sub-words. words: of each source sub-word."""

    source: list[int]
    derived: list[int]
    order: list[int]
    words: list[int]


def sentences(spec: str) -> list[list[Piece]]:
    """The sentences of the demo, cut for half a row, by a slow loop over what `Languages.both` gives."""
    data, found = pair(spec).encoded[HALF][0], []
    for batch in batches(spec):
        both = pair(spec).languages.parallel(batch)
        ends = both.offsets[batch.sentences].tolist()
        joint_of_slot = dict(zip(both.derived.slots.tolist(), both.derived.ids.tolist(), strict=True))
        word = both.words(both.source).tolist()
        found += [(both, joint_of_slot, word, begin, end) for begin, end in pairwise(ends) if end > begin]
    out, cuts, base = [], set(data.pieces.tolist()), 0
    for both, joint_of_slot, word, begin, end in found:
        inside = [begin, *(at for at in range(begin + 1, end) if at - begin + base in cuts), end]
        pieces = []
        for a, b in pairwise(inside):
            order = [i for i in both.derived.slots.tolist()[begin:end] if a <= i < b]
            pieces.append(
                Piece(
                    both.source.ids[a:b].tolist(),
                    [joint_of_slot[i] for i in order],
                    [i - a for i in order],
                    [w - word[a] for w in word[a:b]],
                )
            )
        out.append(pieces)
        base += end - begin
    return out


def rows_of(stream: SentencePairs, spec: str = "trans,inv", step: int = 0, **changes: Any) -> SubwordRows:
    """All rows of a stream."""
    source = opened(stream, spec, **changes)
    every = np.arange(source.n)
    return source.rows(every, Keys.of(1, step, every))


def halves(rows: SubwordRows, row: int) -> list[list[list[int]]]:
    """The pieces of each side of a row: their sub-words, without special ids."""
    out: list[list[list[int]]] = [[], []]
    ids, side = rows.clean_ids[row].tolist(), rows.side[row].tolist()
    for column in range(rows.lengths[row]):
        if ids[column] == special_ids().begin:
            assert not out[side[column]]
            out[side[column]].append([])
        elif rows.word_ids[row, column] < 0:
            assert ids[column] == special_ids().end
            out[side[column]].append([])
        else:
            out[side[column]][-1].append(ids[column])
    for found in out:
        assert found.pop() == []
    return out


# both sides


@specs
@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_rows_by_a_slow_loop(spec: str, reset: bool, together: bool) -> None:
    """All sentences: each piece once, whole, with its derived form, and packed while it fits."""
    rows = rows_of(SentencePairs(reset=reset, together=together), spec, parallel="100")
    pieces = [piece for sentence in sentences(spec) for piece in sentence]
    assert rows.clean_ids.shape[1] == PAIR_LENGTH
    assert max(len(piece.source) for piece in pieces) == HALF - 2
    expected: list[list[Piece]] = []
    for piece in pieces:
        size = sum(2 * len(p.source) + 2 for p in [*(expected[-1] if expected else []), piece]) + 2
        if expected and together and size <= PAIR_LENGTH:
            expected[-1].append(piece)
        else:
            expected.append([piece])
    assert len(expected) == len(rows.clean_ids)
    for row, held in enumerate(expected):
        assert halves(rows, row) == [[p.source for p in held], [p.derived for p in held]]
        half = 1 + sum(len(p.source) + 1 for p in held)
        n = 2 * half
        assert rows.lengths[row] == n
        assert (rows.clean_ids[row, n:] == special_ids().pad).all()
        assert rows.clean_ids[row, [0, half]].tolist() == [special_ids().begin] * 2
        for found in (rows.side, rows.language):
            assert found[row, :n].tolist() == [SOURCE] * half + [DERIVED] * half
        assert (rows.positions is None) == (not reset)
        if rows.positions is not None:
            assert rows.positions[row, :n].tolist() == [*range(half), *range(half)]
        place = [p for p, piece in enumerate(held) for _ in [*piece.source, "</s>"]]
        special = rows.word_ids[row, :n] < 0
        assert np.where(special, place[0], rows.sentence_ids[row, :n]).tolist() == (
            np.where(special, place[0], [0, *place, 0, *place]).tolist()
        )
        assert (rows.sentence_ids[row][rows.word_ids[row] < 0] == -1).all()
        words = [
            (side, number, w)
            for side in (SOURCE, DERIVED)
            for number, p in enumerate(held)
            for w in (p.words if side == SOURCE else [p.words[i] for i in p.order])
        ]
        own = rows.word_ids[row][rows.word_ids[row] >= 0].tolist()
        assert len(own) == len(words)
        assert len(set(zip(own, words, strict=True))) == len(set(own)) == len(set(words))


@pytest.mark.parametrize("together", [True, False])
def test_pairs_together_or_one_a_row(together: bool) -> None:
    rows = rows_of(SentencePairs(together=together), parallel="100")
    held = [len(halves(rows, row)[0]) for row in range(len(rows.clean_ids))]
    assert (max(held) == 1) == (not together)


@pytest.mark.parametrize("length", [32, 33])
def test_a_row_of_odd_length(length: int) -> None:
    rows = rows_of(SentencePairs(), parallel="100", pair_length=length)
    assert rows.clean_ids.shape[1] == length
    assert rows.lengths.max() == 32
    assert sum(int((row >= 0).sum()) for row in rows.word_ids) == 2 * pair().data.n_subwords


# which sentences


def test_the_chosen_sentences_are_those_of_the_command(tmp_path: Path) -> None:
    """All their sub-words are there, in source order."""
    rate, seed = "30", 7
    run("make", "--t", "trans,inv", "demo", "-o", tmp_path / "set")
    run("pair", tmp_path / "set", "--split", "train", "--rate", rate, "--seed", seed, "--format", "text",
        "-o", tmp_path / "pairs")  # fmt: skip
    lines = (tmp_path / "pairs.source").read_text("utf-8").splitlines()
    rows = rows_of(SentencePairs(), parallel=rate, dictionary_seed=seed)
    found = rows.clean_ids[(rows.side == 0) & (rows.word_ids >= 0)].tolist()
    words = batch_of([line.split(" ") for line in lines])
    assert found == pair().languages.tokenizer.encoder.batch(words).ids.tolist()
    assert len(lines) == round(0.3 * len(pair().data.keys))


def derived(rate: str, seed: int = 1) -> DerivedPairs:
    wanted = settings(parallel=rate)
    return DerivedPairs(pair().encoded[HALF][0], wanted.parallel_rate, seed=seed)


def test_pairs_are_nested_and_keyed() -> None:
    few, many, most = (set(derived(rate).pieces.tolist()) for rate in ("20", "60", "100"))
    assert few < many < most == set(range(len(pair().encoded[HALF][0].pieces) - 1))
    assert set(derived("20", seed=2).pieces.tolist()) != few
    assert (np.diff(derived("20").pieces) > 0).all()


@pytest.mark.parametrize("rate", ["20", "50", "100"])
def test_counts_by_a_slow_count(rate: str) -> None:
    data: Data = pair().encoded[HALF][0]
    source = opened(SentencePairs(), parallel=rate)
    assert isinstance(source, PairRows)
    chosen = set(derived(rate).pieces.tolist())
    ends = data.sentences.tolist()
    number, cut, subwords = 0, 0, 0
    for begin, end in pairwise(ends):
        pieces = [p for p, at in enumerate(data.pieces[:-1].tolist()) if begin <= at < end]
        inside = [p in chosen for p in pieces]
        assert len(set(inside)) == 1
        number += inside[0]
        cut += inside[0] and len(pieces) > 1
        subwords += (end - begin) * inside[0]
    assert source.facts() == {
        "sentences": number,
        "cut_sentences": cut,
        "short_pairs": 0,
        "percent": round(100 * subwords / data.n_subwords, 2),
        "pairs": len(chosen),
        "rows": source.n,
        "length": PAIR_LENGTH,
    }
    assert 0 < cut < number == round(float(rate) * len(data.keys) / 100)


@pytest.mark.parametrize("shortest", [5, 10])
def test_short_pairs_are_left_out_and_counted(shortest: int) -> None:
    whole, some = opened(SentencePairs(), parallel="100"), opened(SentencePairs(shortest=shortest), parallel="100")
    assert isinstance(whole, PairRows)
    assert isinstance(some, PairRows)
    kept = [i for i, size in enumerate(whole.source.sizes.tolist()) if min(size) >= shortest]
    assert some.source.sizes.tolist() == whole.source.sizes[kept].tolist()
    assert some.facts()["short_pairs"] == len(whole.source.sizes) - len(kept) > 0
    assert some.facts()["percent"] < whole.facts()["percent"]
    ours, theirs = some.source.side(np.arange(len(kept)), 1), whole.source.side(np.array(kept), 1)
    assert ours.ids.tolist() == theirs.ids.tolist()


def test_no_pair_is_long_enough() -> None:
    with pytest.raises(DataError, match=r"is a pair of 40 or more sub-words per side at 100 %"):
        opened(SentencePairs(shortest=40), parallel="100")


def test_a_rate_without_a_pair() -> None:
    with pytest.raises(DataError, match=r"none of 80 sentences is a pair at 0.1 %") as error:
        derived("0.1")
    assert error.value.id == "no-pair-fits"


# links


@specs
@pytest.mark.parametrize("together", [True, False])
def test_links_by_a_slow_loop(spec: str, together: bool) -> None:
    """Of each derived sub-word and the source sub-word that it stands for, in both directions, sorted."""
    rows = rows_of(SentencePairs(links=True, together=together), spec, parallel="100")
    pieces = iter([piece for sentence in sentences(spec) for piece in sentence])
    expected: list[tuple[int, int, int]] = []
    for row in range(len(rows.clean_ids)):
        held = [next(pieces) for _ in halves(rows, row)[0]]
        half, first, links = int(rows.lengths[row]) // 2, 1, []
        for piece in held:
            for place, at in enumerate(piece.order):
                one, other = first + at, half + first + place
                links += [(row, one, other), (row, other, one)]
            first += len(piece.source) + 1
        expected += sorted(links)
    assert rows.links is not None
    assert links_of(rows) == expected
    assert next(pieces, None) is None
    assert rows_of(SentencePairs(), spec).links is None


@pytest.mark.parametrize("stream", [SentencePairs(links=True), CodeSwitched(links=True)])
def test_links_of_some_rows(stream: SentencePairs) -> None:
    rows = rows_of(stream)
    assert rows.links is not None
    for first, last in ((0, 1), (3, 9), (len(rows.clean_ids) - 1, len(rows.clean_ids)), (4, 4)):
        some = rows.take(first, last)
        assert some.links is not None
        expected = [(row - first, i, j) for row, i, j in links_of(rows) if first <= row < last]
        assert links_of(some) == expected
        assert some.clean_ids.tolist() == rows.clean_ids[first:last].tolist()
        assert (some.positions is None) == (rows.positions is None)


# code-switched copies


def words_of(rows: SubwordRows, row: int, side: int) -> list[list[int]]:
    """The columns of each word on a side."""
    found: dict[int, list[int]] = {}
    for column in np.flatnonzero((rows.side[row] == side) & (rows.word_ids[row] >= 0)).tolist():
        found.setdefault(int(rows.word_ids[row, column]), []).append(column)
    return list(found.values())


@pytest.mark.parametrize("spec", ["trans,inv", "trans:overlap=25,perm"])
@pytest.mark.parametrize("switch", [0.0, 0.15, 0.6, 1.0])
def test_copies_differ_at_whole_words_with_entries(spec: str, switch: float) -> None:
    source = material(spec, coverage="50")
    rows = CodeSwitched(switch=switch).open(source)
    every = np.arange(rows.n)
    found = rows.rows(every, Keys.of(1, 0, every))
    assert found.translated is not None
    plain = CodeSwitched(switch=0.0).open(source).rows(every, Keys.of(1, 0, every))
    assert (found.translated == (found.language != plain.language)).all()
    known = source.dictionary
    pairs: dict[int, set[int]] = {}
    for a, b in known.pairs.tolist():
        pairs.setdefault(a, set()).add(b)
        pairs.setdefault(b, set()).add(a)
    able = turned = kept = 0
    for row in range(rows.n):
        one, two = (words_of(found, row, side) for side in (0, 1))
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            was, now = found.clean_ids[row, left].tolist(), found.clean_ids[row, right].tolist()
            spoken, now_spoken = found.language[row, left], found.language[row, right]
            assert found.shared[row, left].tolist() == found.shared[row, right].tolist()
            can = all(i in pairs for i in was) and not found.shared[row, left].any()
            switched = set((spoken != now_spoken).tolist())
            assert len(switched) == 1
            if switched == {True}:
                assert can
                assert all(b in pairs[a] for a, b in zip(was, now, strict=True))
            else:
                assert was == now
            able += can
            turned += switched == {True}
            kept += bool(found.shared[row, left].any())
    assert able > 200
    assert abs(turned / able - switch) <= 4.5 * np.sqrt(switch * (1 - switch) / able)
    assert (kept > 0) == ("overlap" in spec) or kept < 5  # special tokens of the text


def test_the_first_half_is_the_text_of_both_corpora() -> None:
    """Each piece once in each language, in any order of epochs, whatever is switched."""
    data, stream = pair().encoded[HALF][0], CodeSwitched(switch=0.7)
    pieces = np.arange(len(data.pieces) - 1)
    expected = [
        data.tokens(np.array([p]), np.array([language])).ids.tolist() for language in (SOURCE, DERIVED) for p in pieces
    ]
    for step in (0, 1):
        rows = rows_of(stream, step=step)
        assert [piece for row in range(len(rows.clean_ids)) for piece in halves(rows, row)[0]] == expected
        left = [piece for row in range(len(rows.clean_ids)) for piece in halves(rows, row)[1]]
        assert [len(piece) for piece in left] == [len(piece) for piece in expected]
        spoken = rows.language[(rows.side == 0) & (rows.word_ids >= 0)]
        assert spoken.tolist() == [SOURCE] * data.n_subwords + [DERIVED] * data.n_subwords
        for row in range(len(rows.clean_ids)):  # a special id has the language of its sentence
            end = int(rows.lengths[row])
            for half in (0, 1):
                at = np.flatnonzero(rows.side[row, :end] == half)
                ids, own = rows.clean_ids[row, at], rows.language[row, at]
                left = rows.language[row, :end][rows.side[row, :end] == 0]
                if half == 0:
                    assert own[0] == own[1]
                    ends = np.flatnonzero((ids == special_ids().end) & (rows.word_ids[row, at] < 0))
                    assert (own[ends] == own[ends - 1]).all()
                special = rows.word_ids[row, at] < 0
                assert (own[special] == left[special]).all()


def test_every_epoch_draws_other_words() -> None:
    one, two, again = (rows_of(CodeSwitched(switch=0.5), step=step) for step in (0, 1, 0))
    first = one.side == 0
    assert one.clean_ids[first].tolist() == two.clean_ids[first].tolist()
    assert one.clean_ids.tolist() == again.clean_ids.tolist() != two.clean_ids.tolist()


def test_copies_are_linked_with_themselves() -> None:
    rows = rows_of(CodeSwitched(links=True, switch=0.5))
    assert rows.links is not None
    expected = []
    for row in range(len(rows.clean_ids)):
        left, right = (np.flatnonzero((rows.side[row] == s) & (rows.word_ids[row] >= 0)).tolist() for s in (0, 1))
        links = list(zip(left, right, strict=True))
        expected += sorted([(row, a, b) for a, b in links] + [(row, b, a) for a, b in links])
    assert links_of(rows) == expected
