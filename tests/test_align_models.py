"""The statistical aligners' parts against plain loops, and laws of their training."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.align import hmm
from derivlang.align.align import AlignOptions, align
from derivlang.align.bitext import build, encode
from derivlang.align.hmm import (
    END,
    LAST,
    N_NEXT,
    N_PLACES,
    Diagonal,
    DiagonalCounts,
    JumpCounts,
    Jumps,
    jump_bins,
    place_bins,
    uniform,
)
from derivlang.align.lexical import Floats, Lexical
from derivlang.align.links import parse_lines, score
from derivlang.align.train import AlignerSettings, State, iterate, start
from derivlang.core.arrays import Int32
from derivlang.core.errors import DataError, UsageError

ENGLISH = ["the cat sleeps", "the dog sleeps", "a cat", "the small dog sees a cat .", "", "a dog sleeps here"]
FRENCH = ["le chat dort", "le chien dort", "un chat", "le petit chien voit un chat .", "vide", "un chien dort là"]
EXACT = AlignerSettings(dtype=np.float64)


def sums(settings: AlignerSettings) -> list[State]:
    bitext = encode(ENGLISH, FRENCH)
    return list(iterate(build(bitext), bitext, settings))


# blocks


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30), st.integers(1, 300))
def test_blocks_hold_every_cell_once_with_its_pair_of_types(sizes: list[tuple[int, int]], cells: int) -> None:
    source = [" ".join(f"s{(k + i) % 7}" for i in range(a)) for k, (a, _) in enumerate(sizes)]
    target = [" ".join(f"t{(k * i) % 5}" for i in range(b)) for k, (_, b) in enumerate(sizes)]
    if not any(source) or not any(target):
        with pytest.raises(DataError):
            encode(source, target)
        return
    bitext = encode(source, target)
    table = build(bitext, cells)
    seen = set()
    for block in table.blocks:
        for s, row in enumerate(block.rows.tolist()):
            words, others = source[row].split(), target[row].split()
            assert (block.source_lengths[s], block.target_lengths[s]) == (len(words), len(others))
            for j, i in np.ndindex(block.cells.shape[0], block.cells.shape[2]):
                entry = block.entries[block.cells[j, s, i]]
                if i < len(words) and j < len(others):
                    assert bitext.source.types[table.source_of[entry]].as_py() == words[i]
                    assert bitext.target.types[table.target_of[entry]].as_py() == others[j]
                    seen.add((row, i, j))
                else:
                    assert entry == len(table) - 1
    assert seen == {(r, i, j) for r, (a, b) in enumerate(sizes) for i in range(a) for j in range(b)}


def test_words_are_what_spaces_divide() -> None:
    bitext = encode([" a  b\u00a0c ", "É"], ["x", "É é"], lower=True)
    assert bitext.source.types.to_pylist() == ["a", "b\u00a0c", "é"]
    assert bitext.source.offsets.tolist() == [0, 2, 3]
    assert bitext.target.codes.tolist() == [0, 1, 1]


# E-steps, against loops over alignments


def emissions(seed: int, shape: tuple[int, int, int], lengths: list[int], ends: list[int]):  # type: ignore[no-untyped-def]
    draws = np.random.default_rng(seed)
    emission, null = draws.random(shape), draws.random(shape[:2])
    for s, n in enumerate(lengths):
        emission[:, s, n:] = 0
    return emission, null, np.array(lengths), np.array(ends)


def test_ibm2_is_the_loop_over_source_words() -> None:
    emission, null, lengths, ends = emissions(1, (4, 3, 5), [5, 2, 1], [4, 3, 1])
    for model in (Diagonal(), Diagonal(3.0), Diagonal(2.0, mirrored=True, null=0.1)):
        links, likelihood = hmm.diagonal_posterior(emission.copy(), null, lengths, ends, model)
        for s, (n, end) in enumerate(zip(lengths, ends, strict=True)):
            expected = 0.0
            for j in range(len(emission)):
                if j >= end:
                    assert not links[j, s].any()
                    continue
                place = (j + 0.5) / end
                weights = [
                    math.exp(-model.tension * abs((i + 0.5) / n - (1 - place if model.mirrored else place)))
                    for i in range(n)
                ]
                made = [(1 - model.null) * w / sum(weights) * emission[j, s, i] for i, w in enumerate(weights)]
                total = sum(made) + model.null * null[j, s]
                expected += math.log(total)
                np.testing.assert_allclose(links[j, s, :n], np.array(made) / total, atol=1e-12)
                assert not links[j, s, n:].any()
            assert likelihood[s] == pytest.approx(expected, abs=1e-9)


def paths(n: int, end: int) -> Iterator[tuple[int | None, ...]]:
    """All alignments of `end` target words to n source words or none."""
    return itertools.product([None, *range(n)], repeat=end)


@pytest.mark.parametrize("seed", range(4))
def test_the_hmm_is_the_sum_over_all_alignments(seed: int) -> None:
    draws = np.random.default_rng(seed)
    model = Jumps(draws.random(N_NEXT) + 0.1, draws.random(N_PLACES) + 0.1, 0.3)
    emission, null, lengths, ends = emissions(seed, (4, 3, 4), [4, 3, 1], [4, 2, 4])
    counts = JumpCounts()
    links, likelihood = hmm.posterior(emission.copy(), null, lengths, ends, model, counts)
    after, firsts = np.zeros(N_NEXT), np.zeros(N_PLACES)
    chances, first_chances = np.zeros(N_NEXT), np.zeros(N_PLACES)
    for s, (n, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True)):
        places = place_bins(lengths[s : s + 1], n)[0]
        # what may follow each place: jumps to all others, the way to the last word, the end
        bins = np.concatenate([jump_bins(n), LAST + places[:, None], END + places[:, None]], axis=1)
        chance = (1 - model.null) * model.next[bins] / model.next[bins].sum(1, keepdims=True)
        first = (1 - model.null) * model.first[places] / model.first[places].sum()
        total, marginal = 0.0, np.zeros_like(links[:, s])
        used = defaultdict(float)  # (from, which of its bins) -> weight; from None: the first link
        for path in paths(n, end):
            weight, last, steps = 1.0, None, []
            for j, i in enumerate(path):
                if i is None:
                    weight *= model.null * null[j, s]
                    continue
                ways = [i] if last is None or i < n - 1 else [i, n]  # to the last word there are two
                each = [first[i]] if last is None else [chance[last, k] for k in ways]
                weight *= sum(each) * emission[j, s, i]
                steps += [(last, k, c / sum(each)) for k, c in zip(ways, each, strict=True)]
                last = i
            weight *= chance[:, -1].mean() if last is None else chance[last, -1]
            if last is not None:
                steps.append((last, n + 1, 1.0))
            total += weight
            for j, i in enumerate(path):
                if i is not None:
                    marginal[j, i] += weight
            for *step, share in steps:
                used[tuple(step)] += weight * share
        assert likelihood[s] == pytest.approx(math.log(total), abs=1e-9)
        np.testing.assert_allclose(links[:, s], marginal / total, atol=1e-9)
        for (last, k), weight in used.items():
            c, at, sums, possible = (
                (model.first, places, firsts, first_chances)
                if last is None
                else (model.next, bins[last], after, chances)
            )
            sums[at[k]] += weight / total
            for k in at:
                possible[k] += weight / total / c[at].sum()
    np.testing.assert_allclose(counts.next, after, atol=1e-9)
    np.testing.assert_allclose(counts.firsts, firsts, atol=1e-9)
    np.testing.assert_allclose(counts.chances, chances, atol=1e-9)
    np.testing.assert_allclose(counts.first_chances, first_chances, atol=1e-9)


def test_padding_and_blocks_change_nothing() -> None:
    bitext = encode(ENGLISH, FRENCH)
    found = []
    for cells in (1, 20, 1 << 17):
        table = build(bitext, cells)
        *_, last = iterate(table, bitext, EXACT)
        by_row = {}
        for block, belief in zip(table.blocks, last.links, strict=True):
            for s, row in enumerate(block.rows.tolist()):
                by_row[row] = belief.forward[: block.target_lengths[s], s, : block.source_lengths[s]]
        found.append(by_row)
    for row, links in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(other[row], links, atol=1e-9)


def test_collapsed_iterations_with_agreement_are_the_plain_loops() -> None:
    pairs = [(e.split(), f.split()) for e, f in zip(ENGLISH, FRENCH, strict=True) if e and f]
    english, french = ({w for p in pairs for w in p[k]} for k in (0, 1))
    # types of lines whose other side is empty are types as well
    sizes = (len(english), len(french | {"vide"}))

    Posteriors = dict[tuple[int, int, int], float]  # of links (pair, i, j)

    def iteration(own: Posteriors | None, alone: list[Posteriors] | None) -> list[Posteriors]:
        """Those of both directions, from what they agreed on and what each believed alone before."""
        out = []
        for k in (0, 1):
            n, total = defaultdict(float), defaultdict(float)
            lost, all_lost = defaultdict(float), 0.0
            prior, n_made = 3.0 / sizes[1 - k], sizes[1 - k]
            for (p, i, j), value in (own or {}).items():
                given, made = (pairs[p][k][(i, j)[k]], pairs[p][1 - k][(i, j)[1 - k]])
                n[given, made] += value
                total[given] += value

            def rest(p: int, b: int, k: int = k) -> float:
                cells = [(p, i, b) if k == 0 else (p, b, i) for i in range(len(pairs[p][k]))]
                return max(0.0, 1 - sum(alone[k][cell] for cell in cells)) if alone else 0.0

            for p in range(len(pairs)):
                for b, made in enumerate(pairs[p][1 - k]):
                    lost[made] += rest(p, b)
                    all_lost += rest(p, b)
            found = {}
            for p in range(len(pairs)):
                for b, made in enumerate(pairs[p][1 - k]):
                    weights = []
                    for a, given in enumerate(pairs[p][k]):
                        mine = (own or {}).get((p, a, b) if k == 0 else (p, b, a), 0.0)
                        t = (n[given, made] - mine + prior) / (total[given] - mine + prior * n_made)
                        weights.append(0.8 / len(pairs[p][k]) * t)
                    none = (lost[made] - rest(p, b) + prior) / (all_lost - rest(p, b) + prior * n_made)
                    norm = sum(weights) + 0.2 * none
                    for a, weight in enumerate(weights):
                        found[(p, a, b) if k == 0 else (p, b, a)] = weight / norm
            out.append(found)
        return out

    settings = AlignerSettings(
        ibm1=3, ibm2=0, hmm=0, spelling=False, dtype=np.float64, concentration=3.0, agree_from=0, null_weight=None
    )
    own, alone = None, None
    for _ in range(3):
        alone = iteration(own, alone)
        own = {cell: math.sqrt(alone[0][cell] * alone[1][cell]) for cell in alone[0]}
    bitext = encode(ENGLISH, FRENCH)
    table = build(bitext)
    *_, last = iterate(table, bitext, settings)
    numbers = [k for k, (e, f) in enumerate(zip(ENGLISH, FRENCH, strict=True)) if e and f]
    for block, belief in zip(table.blocks, last.links, strict=True):
        for s, row in enumerate(block.rows.tolist()):
            p = numbers.index(row)
            for j, i in np.ndindex(int(block.target_lengths[s]), int(block.source_lengths[s])):
                assert belief.forward[j, s, i] == pytest.approx(own[p, i, j], abs=1e-9)


# training


@pytest.mark.parametrize(
    "settings",
    [
        AlignerSettings(ibm1=12, ibm2=0, hmm=0),
        AlignerSettings(ibm1=0, ibm2=12, hmm=0, tension=3.0),
        AlignerSettings(ibm1=2, ibm2=0, hmm=12, jump_prior=0.0),
    ],
    ids=["ibm1", "ibm2", "hmm"],
)
@pytest.mark.parametrize("weight", [None, 0.0])
def test_the_likelihood_never_falls_under_em(
    settings: AlignerSettings, weight: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its two additions, own counts taken out and prior counts, the training is plain EM."""

    def emission(self: Lexical, counts: Floats, given: Int32, own: Floats | None) -> Floats:
        return counts / self.totals[given]

    def null_emission(self: Lexical, made: Int32, own: Floats | None) -> Floats:
        return self.null[made] / self.null_total

    monkeypatch.setattr(Lexical, "emission", emission)
    monkeypatch.setattr(Lexical, "null_emission", null_emission)
    plain = replace(settings, agree_from=None, null_weight=weight, spelling=False, concentration=1e-12)
    states = sums(replace(plain, dtype=np.float64))
    stage = states[-1].stage
    likelihoods = np.array([state.log_likelihood for state in states if state.stage == stage])
    assert len(likelihoods) == 12
    assert (np.diff(likelihoods, axis=0) >= -1e-9).all(), likelihoods
    assert (likelihoods[-1] > likelihoods[0] + 1).all()


@pytest.mark.parametrize("agree", [None, 0, 2])
def test_posteriors_are_chances(agree: int | None) -> None:
    for state in sums(AlignerSettings(agree_from=agree, concentration=1e-3)):
        for belief in state.links:
            assert np.isfinite(belief.forward).all()
            assert (belief.forward >= 0).all()
            assert (belief.forward <= 1 + 1e-5).all()
            assert (belief.backward <= 1 + 1e-5).all()
            if agree is None:
                assert (belief.forward.sum(2) <= 1 + 1e-5).all()
                assert (belief.backward.sum(0) <= 1 + 1e-5).all()
        assert np.isfinite(state.log_likelihood).all()


def pattern(order: str, n: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """n sentences over 60 words, their image in capitals in another order, and the links."""
    draws = np.random.default_rng(seed)
    source, target, gold = [], [], []
    for _ in range(n):
        words = draws.choice(60, draws.integers(5, 15), p=np.arange(60, 0, -1) / 1830)
        index = {
            "same": np.arange(len(words)),
            "inv": np.arange(len(words))[::-1],
            "perm": draws.permutation(len(words)),
        }[order]
        source.append(" ".join(f"w{w}" for w in words))
        target.append(" ".join(f"X{words[i]}" for i in index))
        gold.append(" ".join(f"{i}-{j}" for j, i in enumerate(index)))
    return source, target, gold


@pytest.mark.parametrize("model", ["hmm", "ibm2"])
@pytest.mark.parametrize(("order", "most"), [("same", 0.01), ("inv", 0.01), ("perm", 0.12)])
def test_the_places_of_links_are_learnt(model: str, order: str, most: float) -> None:
    source, target, gold = pattern(order, 300)
    found = align(source, target, AlignOptions(model, "intersection"))
    assert score(found, parse_lines(gold)).aer < most


@pytest.mark.parametrize("order", ["same", "inv", "perm"])
def test_final_marks_are_linked(order: str) -> None:
    """They follow any word of a reordered sentence, and a word that often lacks a link is soon thought to lack one."""
    source, target, _ = pattern(order, 300)
    found = list(align([f"{line} ." for line in source], [f"{line} !" for line in target]).lines())
    marks = [f"{len(line.split())}-{len(line.split())}" for line in source]
    missed = sum(mark not in line.split() for mark, line in zip(marks, found, strict=True))
    assert missed <= 3


def test_which_diagonal_and_how_tense_is_learnt() -> None:
    draws = np.random.default_rng(3)
    for mirrored, order in ((False, 1), (True, -1)):
        links = np.zeros((8, 4, 8))
        links[np.arange(8), :, np.arange(8)[::order]] = 1
        model = Diagonal()
        for _ in range(12):
            counts = DiagonalCounts()
            counts.add(links, model, np.full(4, 8), np.full(4, 8))
            model = counts.fit(model)
        assert model.mirrored == mirrored
        assert model.tension > 10
    model = Diagonal(5.0)
    links = draws.dirichlet(np.ones(8), (8, 200))
    for _ in range(12):
        counts = DiagonalCounts()
        counts.add(links, model, np.full(200, 8), np.full(200, 8))
        model = counts.fit(model)
    assert model.tension < 0.3


def test_the_variance_is_the_slope_of_the_expected_distance() -> None:
    """By which a Newton step divides: expected distance at tensions 2 ± 0.001, of the same links."""
    links = np.random.default_rng(3).random((5, 3, 4))
    counts = [DiagonalCounts() for _ in range(3)]
    for tension, some in zip((1.999, 2.0, 2.001), counts, strict=True):
        some.add(links, Diagonal(tension), np.full(3, 4), np.full(3, 5))
    assert (counts[0].expected - counts[2].expected) / 0.002 == pytest.approx(counts[1].variance, rel=1e-4)


def test_jumps_without_a_pattern_get_equal_weights() -> None:
    """Departures from everywhere, arrivals anywhere: short jumps are then commoner, not likelier; so with the end."""
    counts, lengths = JumpCounts(), np.array([12] * 50 + [5] * 50)
    for n in (12, 5):
        size = int((lengths == n).sum())
        even = np.full((size, n), 1 / n)  # of n + 2 ways on
        counts.add_next(np.full((n, n), size / n), even, even, even, lengths[lengths == n])
    fitted = counts.fit(uniform(0.2), prior=0.5)
    seen = counts.chances > 0
    np.testing.assert_allclose(fitted.next[seen], 1, rtol=1e-6)


@pytest.mark.parametrize(("weight", "low", "high"), [(None, 0.2, 0.2), (0.0, 0.0, 0.05), (1e6, 0.19, 0.2)])
def test_the_chance_of_no_link_is_fitted_from_its_prior(weight: float | None, low: float, high: float) -> None:
    """Every word of these sentences has a link."""
    source, target, _ = pattern("same", 300)
    bitext = encode(source, target)
    table, settings = build(bitext), AlignerSettings(null_weight=weight)
    directions = start(table, bitext, settings)
    *_, _ = iterate(table, bitext, settings, directions)
    for direction in directions:
        assert low <= direction.jumps.null <= high


def test_the_same_input_gives_the_same_links() -> None:
    assert list(align(ENGLISH, FRENCH).lines()) == list(align(ENGLISH, FRENCH).lines())


def test_spelling_links_what_is_written_alike() -> None:
    source, target = ["Anna Karenina lives", "no more"], ["lebt Anna Karenina", "nicht mehr"]
    lines = list(align(source, target).lines())
    assert {"0-1", "1-2"} <= set(lines[0].split())


@pytest.mark.parametrize("model", ["hmm", "ibm2"])
def test_an_empty_sentence_has_no_links(model: str) -> None:
    lines = list(align(["a b", "", "c", ""], ["x y", "z", "", ""], AlignOptions(model)).lines())
    assert len(lines) == 4
    assert lines[1:] == ["", "", ""]
    assert lines[0]


@pytest.mark.parametrize(
    ("make", "id"),
    [
        (lambda: AlignOptions("hm"), "unknown-aligner"),
        (lambda: AlignOptions(iterations=0), "iterations"),
        (lambda: AlignOptions(symmetrise="growing"), "unknown-symmetrisation"),
        (lambda: AlignOptions(symmetrise="posterior:2"), "symmetrisation"),
        (lambda: AlignerSettings(ibm1=0, ibm2=0, hmm=0), "iterations"),
        (lambda: AlignerSettings(null=0.0), "null"),
        (lambda: align(["a"], ["b", "c"]), "lengths"),
        (lambda: align(["", " "], ["b", "c"]), "empty-side"),
    ],
)
def test_bad_options_and_texts(make, id: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((UsageError, DataError)) as caught:
        make()
    assert caught.value.id == id


def test_inputs_stay_as_they_are() -> None:
    emission, null, lengths, ends = emissions(5, (3, 2, 3), [3, 2], [3, 2])
    for array in (emission, null, lengths, ends):
        array.flags.writeable = False
    links, _ = hmm.diagonal_posterior(emission, null, lengths, ends, Diagonal(1.0))
    again, _ = hmm.diagonal_posterior(emission, null, lengths, ends, Diagonal(1.0))
    np.testing.assert_array_equal(links, again)
