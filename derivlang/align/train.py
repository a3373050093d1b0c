"""Training of the statistical aligners: both directions together, block by block.

Training runs some iterations of IBM model 1, then of model 2, then of the HMM. From iteration `agree_from` on, both
directions use the same expected links, (p(link | source to target) p(link | target to source)) ** agreement. Exponent
1 is the product of Liang, Taskar and Klein 2006; exponent ½ keeps more links of which both directions are unsure.

Shapes: [J, S, I] cells of a block: J target words, S sentence pairs, I source words (`bitext.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from derivlang.align import hmm
from derivlang.align.bitext import Bitext, BitextBlock, TypePairs, build
from derivlang.align.hmm import Diagonal, DiagonalCounts, JumpCounts, Jumps, uniform
from derivlang.align.lexical import Floats, Lexical, prior_counts
from derivlang.core.errors import UsageError
from derivlang.core.threads import one_thread
from derivlang.formats import progress

_LEAST_NULL, _MOST_NULL = 1e-3, 0.5  # bounds of the fitted probability that a word has no link


@dataclass(frozen=True, slots=True)
class AlignerSettings:
    """How the aligner is trained.

    ibm1, ibm2, hmm: iterations of each model, in this order. concentration: sum of the prior counts of a type's
    translations. jump_prior: prior counts of each bin of jumps. null: initial probability that a word has no link.
    null_weight: number of words with that probability that count as already seen when the HMM's is fitted (on little
    data it would fall, and precision with it); None: it is not fitted. agree_from: first iteration, counted from 0, in
    which the directions agree; None: they never do. agreement: the exponent. spelling: give prior counts to words that
    are spelled alike. tension: of the diagonal prior; None: fitted.
    """

    ibm1: int = 2
    ibm2: int = 2
    hmm: int = 8
    concentration: float = 10.0
    jump_prior: float = 0.5
    null: float = 0.2
    null_weight: float | None = 100_000.0
    agreement: float = 0.5
    agree_from: int | None = 1
    spelling: bool = True
    tension: float | None = None
    dtype: DTypeLike = np.float32

    def __post_init__(self) -> None:
        if min(self.ibm1, self.ibm2, self.hmm) < 0 or self.ibm1 + self.ibm2 + self.hmm < 1:
            raise UsageError("an aligner needs at least one iteration", where="iterations", id="iterations")
        if not 0 < self.null < 1:
            raise UsageError(f"null={self.null} must be above 0 and below 1", where="null", id="null")

    @property
    def stages(self) -> list[str]:
        """The model of each iteration."""
        return ["ibm1"] * self.ibm1 + ["ibm2"] * self.ibm2 + ["hmm"] * self.hmm


@dataclass(slots=True)
class Direction:
    """The model of one direction: target words given source words, or (reverse) source words given target words."""

    reverse: bool
    lexical: Lexical
    diagonal: Diagonal
    jumps: Jumps


@dataclass(slots=True)
class Beliefs:
    """The posteriors of a block.

    forward, backward [J, S, I]: p(i and j are linked) in each direction; the same array once the directions agree.
    null ([J, S], [I, S]): p(no link) of each target word in the first direction, of each source word in the other.
    """

    forward: Floats
    backward: Floats
    null: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class State:
    """The result of an iteration: its model, each direction's log likelihood before the update, and the posteriors."""

    stage: str
    log_likelihood: tuple[float, float]
    links: list[Beliefs]


def train(bitext: Bitext, settings: AlignerSettings = AlignerSettings()) -> tuple[TypePairs, list[Beliefs]]:
    """Return the table of a bitext and the posteriors of each of its blocks."""
    table = build(bitext)
    n_pairs = sum(len(block.rows) for block in table.blocks)
    with progress.stage("comparing spellings", None):
        directions = start(table, bitext, settings)
    state = None
    with progress.stage("aligning", "rows", n_pairs * len(settings.stages)):
        for state in iterate(table, bitext, settings, directions):  # noqa: B007
            pass
    assert state is not None
    return table, state.links


def iterate(
    table: TypePairs,
    bitext: Bitext,
    settings: AlignerSettings,
    directions: tuple[Direction, Direction] | None = None,
) -> Iterator[State]:
    """Yield the state after each iteration.

    directions: initial models, trained in place; None: as `start` makes them.
    """
    directions = directions or start(table, bitext, settings)
    links: list[Beliefs] = []
    for number, stage in enumerate(settings.stages):
        agree = settings.agree_from is not None and number >= settings.agree_from
        links, likelihood = _iteration(table, directions, links, stage, settings, agree)
        yield State(stage, likelihood, links)


def start(table: TypePairs, bitext: Bitext, settings: AlignerSettings) -> tuple[Direction, Direction]:
    """Return the models of both directions before the first iteration."""
    dtype = np.dtype(settings.dtype)
    alike: Floats = np.zeros(len(table))
    if settings.spelling:
        alike = prior_counts(table, bitext.source.types.to_pylist(), bitext.target.types.to_pylist())
    out = []
    for reverse in (False, True):
        given_of = table.target_of if reverse else table.source_of
        n_given, n_made = (table.n_target, table.n_source) if reverse else (table.n_source, table.n_target)
        even = settings.concentration / n_made
        prior = alike + even
        prior[-1] = 0
        prior_of = np.bincount(given_of, alike, n_given + 1) + even * n_made
        lexical = Lexical.start(table, prior.astype(dtype), prior_of.astype(dtype), even, reverse=reverse)
        places = Diagonal(settings.tension or 0.0, null=settings.null)
        out.append(Direction(reverse, lexical, places, uniform(settings.null)))
    return out[0], out[1]


class _Counts:
    """Expected counts of one direction in one iteration."""

    def __init__(self, lexical: Lexical):
        self.counts = np.zeros(len(lexical.counts), lexical.counts.dtype)
        self.totals = np.zeros(len(lexical.totals))
        self.null = np.zeros(len(lexical.null))
        self.words = self.unlinked = 0.0
        self.jumps = JumpCounts()
        self.diagonal = DiagonalCounts()


@one_thread()
def _iteration(
    table: TypePairs,
    directions: tuple[Direction, Direction],
    before: list[Beliefs],
    stage: str,
    settings: AlignerSettings,
    agree: bool,
) -> tuple[list[Beliefs], tuple[float, float]]:
    """Compute the posteriors of every block under the current models, then update the models in place."""
    new = (_Counts(directions[0].lexical), _Counts(directions[1].lexical))
    likelihood = [0.0, 0.0]
    beliefs = []
    for number, block in enumerate(table.blocks):
        own = before[number] if before else None
        links, block_likelihood = _posteriors(block, directions, own, stage, new)
        if agree:
            links = _agreed(links, settings.agreement)
        _gather(block, links, new, same=agree)
        beliefs.append(links)
        likelihood = [a + b for a, b in zip(likelihood, block_likelihood, strict=True)]
        progress.rows_done(len(block.rows))
    # The totals and the empty word's counts differ in the directions, so `_gather` filled both of these.
    if agree:  # both directions have the same links, so `_gather` filled only the first
        new[1].counts = new[0].counts
    for direction, counts in zip(directions, new, strict=True):
        direction.lexical.fit(counts.counts, counts.totals, counts.null)
        if stage == "hmm":
            direction.jumps = counts.jumps.fit(direction.jumps, settings.jump_prior)
            if settings.null_weight is not None:
                # As if null_weight more words had been seen, of which the share `null` had no link.
                unlinked = counts.unlinked + settings.null * settings.null_weight
                null = min(max(unlinked / (counts.words + settings.null_weight), _LEAST_NULL), _MOST_NULL)
                direction.jumps = replace(direction.jumps, null=null)
        elif settings.tension is None:
            direction.diagonal = counts.diagonal.fit(direction.diagonal)
    return beliefs, (likelihood[0], likelihood[1])


def _posteriors(
    block: BitextBlock,
    directions: tuple[Direction, Direction],
    own: Beliefs | None,
    stage: str,
    new: tuple[_Counts, _Counts],
) -> tuple[Beliefs, list[float]]:
    """Return each direction's own posteriors of a block, all [J, S, I], and its log likelihood."""
    links, nulls, likelihood = [], [], []
    for number, direction in enumerate(directions):
        lexical, reverse = direction.lexical, direction.reverse
        lengths, ends = block.source_lengths, block.target_lengths
        given, made = block.source, block.target
        counts = lexical.counts[block.entries].take(block.cells, mode="clip")
        mine = None if own is None else (own.backward if reverse else own.forward)
        if reverse:
            lengths, ends, given, made = ends, lengths, made, given
            emission = lexical.emission(counts, given.T[:, :, None], mine)
            # The other direction runs over source words as its time steps: [J, S, I] -> [I, S, J].
            emission = np.ascontiguousarray(emission.transpose(2, 1, 0))
        else:
            emission = lexical.emission(counts, given, mine)
        null = lexical.null_emission(np.ascontiguousarray(made.T), None if own is None else own.null[number])
        if stage == "hmm":
            posterior, value = hmm.posterior(emission, null, lengths, ends, direction.jumps, new[number].jumps)
        else:
            model = direction.diagonal if stage == "ibm2" else Diagonal(null=direction.diagonal.null)
            posterior, value = hmm.diagonal_posterior(emission, null, lengths, ends, model)
            new[number].diagonal.add(posterior, model, lengths, ends)
        links.append(posterior.transpose(2, 1, 0) if reverse else posterior)
        nulls.append(_lacking(posterior, ends))
        new[number].words += float(ends.sum())
        new[number].unlinked += float(nulls[-1].sum())
        likelihood.append(float(value.sum()))
    return Beliefs(links[0], links[1], (nulls[0], nulls[1])), likelihood


def _agreed(links: Beliefs, exponent: float) -> Beliefs:
    """Return the links that both directions agree on; each keeps its own empty word.

    Disagreement about where a word is linked does not mean that the word has no link.
    """
    both = links.forward * links.backward
    if exponent == 0.5:
        np.sqrt(both, out=both)
    elif exponent != 1:
        np.power(both, exponent, out=both)
    return Beliefs(both, both, links.null)


def _lacking(links: Floats, ends: np.ndarray) -> Floats:
    """Return 1 less the links of each word [J, S], the probability of no link; 0 at padding."""
    lacking = np.maximum(1 - links.sum(2), 0)
    lacking[np.arange(len(lacking))[:, None] >= ends] = 0
    return np.asarray(lacking)


def _gather(block: BitextBlock, links: Beliefs, new: tuple[_Counts, _Counts], *, same: bool) -> None:
    """Add a block's links to the counts. same: both directions have the same links."""
    cells = block.cells.ravel()
    for counts, posterior in zip(new[: 1 if same else 2], (links.forward, links.backward), strict=False):
        summed = np.bincount(cells, posterior.ravel(), len(block.entries))
        counts.counts[block.entries] += summed.astype(counts.counts.dtype)
    # Expected links of each word of the given side: [S, I] forward, where the source is given, and [S, J] backward.
    sums = links.forward.sum(0), links.backward.sum(2).T
    sides = block.source, block.target
    for number, counts in enumerate(new):
        given, made = sides[number], sides[1 - number]
        counts.totals += np.bincount(given.ravel(), sums[number].ravel(), len(counts.totals))
        counts.null += np.bincount(made.T.ravel(), links.null[number].ravel(), len(counts.null))
