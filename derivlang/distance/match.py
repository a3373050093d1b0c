"""Match: the parameter of a family that is as far from the source as another language is, by Kendall's tau.

    match(batches of demo, Pipeline.parse("stride:2"), Family.parse("mallows"))   ->   mallows:0.296, tau 0.623 of both

The families are the transforms with a dial: `mallows` (theta), `shuffle` (rate), `flip` (p). Tau falls from the dial's
near end to its far end, so the parameter is found by bisection on a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.distance.measure import derive_all
from derivlang.distance.reordering import Reordering
from derivlang.pipeline import Pipeline
from derivlang.transforms.base import Dial, Transform
from derivlang.transforms.registry import find_transform, transform_names

_STEPS = 30
_PARTS = 10  # of the sample, for the interval
_T = 2.262  # two-sided 95 % of Student's t with 9 degrees of freedom


@dataclass(frozen=True, slots=True)
class Match:
    """A language that is as far from the source as another one.

    spec: the matched language. wanted, reached: mean Kendall's tau of both. low, high: 95 % interval of the parameter
    over samples of sentences. units: sentences of two words and more in the sample.
    """

    spec: str
    parameter: str
    value: float
    low: float
    high: float
    wanted: float
    reached: float
    units: int


@dataclass(frozen=True, slots=True)
class Family:
    """The languages of one transform that differ in its dial. transform: one of them, with its other parameters."""

    transform: Transform
    dial: Dial

    @classmethod
    def parse(cls, spec: str) -> Family:
        """Return the family of a spec: `mallows:by=sentence`. Raise UsageError for a transform without a dial."""
        pipeline = Pipeline.parse(spec)
        dial = pipeline.transforms[0].dial
        if len(pipeline.transforms) != 1 or dial is None:
            with_dial = [name for name in transform_names() if find_transform(name).dial is not None]
            raise UsageError(
                f"{spec} has no parameter that sets how far it is; families: {', '.join(with_dial)}",
                where="--family",
                id="family",
            )
        return cls(pipeline.transforms[0], dial)

    def at(self, value: float) -> Pipeline:
        """Return the language with the dial at a value."""
        return Pipeline((replace(self.transform, **{self.dial.parameter: value}),))


def match(batches: Sequence[Batch], language: Pipeline, family: Family) -> Match:
    """Return the member of a family that is as far from the source as a language.

    batches: a sample of the source; sentences are split, with trees if the language needs them. Raise UsageError if no
    member is as far, or if the sample has fewer than ten sentences of two words.
    """
    dial = family.dial
    wanted = _taus(batches, _orders_of(language))
    if len(wanted) < _PARTS:
        raise UsageError(
            f"the sample has {len(wanted)} sentences of two words and more; a match needs {_PARTS}",
            fix="take a larger sample",
            id="sample",
        )

    def taus(value: float) -> NDArray[np.float64]:
        return _taus(batches, family.at(value))

    near, far = taus(dial.near).mean(), taus(dial.far).mean()
    goal = float(wanted.mean())
    if not far <= goal <= near:
        raise UsageError(
            f"{language} has a tau of {goal:.3f}, and {family.transform.name} reaches {far:.3f} to {near:.3f}",
            where="--family",
            fix="take another family",
            id="family",
        )
    value = _rounded(_bisect(lambda x: float(taus(x).mean()), goal, dial.near, dial.far))
    reached = taus(value)
    # The parameter of each part of the sample, by the slope of the whole: d value = d tau / slope.
    step = (dial.near - dial.far) / 200
    ends = [min(max(value + s, min(dial.near, dial.far)), max(dial.near, dial.far)) for s in (-abs(step), abs(step))]
    slope = (taus(ends[1]).mean() - taus(ends[0]).mean()) / (ends[1] - ends[0])
    # A language that deletes words may have fewer units than the source.
    gaps = np.array([wanted[i::_PARTS].mean() - reached[i::_PARTS].mean() for i in range(_PARTS)])
    half = float(abs(_T * gaps.std(ddof=1) / np.sqrt(_PARTS) / slope)) if slope else float("inf")
    return Match(
        str(family.at(value)),
        dial.parameter,
        value,
        value - half,
        value + half,
        goal,
        float(reached.mean()),
        len(wanted),
    )


def _bisect(tau: Callable[[float], float], goal: float, near: float, far: float) -> float:
    for _ in range(_STEPS):
        middle = (near + far) / 2
        if tau(middle) > goal:
            near = middle
        else:
            far = middle
    return (near + far) / 2


def _rounded(value: float) -> float:
    """Return a value with four significant digits, so that a spec can be read."""
    return float(f"{value:.4g}")


def _orders_of(language: Pipeline) -> Pipeline:
    """Return the transforms that order words: no other moves one, and these need no fitted lexicon."""
    return Pipeline(tuple(transform for transform in language.transforms if transform.has_order))


def _taus(batches: Sequence[Batch], language: Pipeline) -> NDArray[np.float64]:
    """Return Kendall's tau of each unit of two words or more."""
    reordering = Reordering()
    for triple in derive_all(batches, language, Lexicon()):
        reordering.add(*triple)
    return np.concatenate([np.zeros(0), *reordering.taus])
