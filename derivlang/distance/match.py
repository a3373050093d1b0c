"""Match: the parameter of a family that is as far from the source as another language is, by tau or by entropy.

    match(batches of demo, Pipeline.parse("stride:2"), Family.parse("mallows"))   ->   mallows:0.2959, tau 0.623 of both

The families are the transforms with a dial: `mallows` (theta), `shuffle` (rate), `flip` (p). From the dial's near end
on, Kendall's tau falls and the local entropy rises, so a few values of the parameter, tried on a sample, find it. If
nothing is drawn at the far end, the entropy falls again before it: of two parameters the one nearer to the near end is
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.messages import warn
from derivlang.core.spec import read_spec
from derivlang.distance.measure import bits_of_units, derive_all
from derivlang.distance.reordering import Reordering
from derivlang.pipeline import Pipeline
from derivlang.transforms.base import Dial, Transform
from derivlang.transforms.registry import find_transform, transform_names

_POINTS = 9  # values of the parameter to look between
_EXACT = 1e-6  # of the parameter's range, where sentences do not differ
_LOCAL, LOCAL_WORDS = 3, 1_000_000  # the m of the local entropy, and the words of the sample that it is measured on
_PARTS = 10  # of the sample, for the interval
_T = 2.262  # two-sided 95 % of Student's t with 9 degrees of freedom


@dataclass(frozen=True, slots=True)
class Match:
    """A language that is as far from the source as another one.

    spec: the matched language, with what the other one changes beside the order. by: tau or entropy. wanted, reached:
    the distance of both languages from the source: mean Kendall's tau, or bits per word. low, high: 95 % interval of
    the parameter over samples of sentences, None where the distance does not depend on it. units: sentences of two
    words and more in the sample, or held-out ones.
    """

    spec: str
    parameter: str
    value: float
    low: float | None
    high: float | None
    wanted: float
    reached: float
    units: int
    by: str = "tau"


# Of each unit: its part of the distance, and its weight. The distance is the sum of the parts divided by the weights'.
Parts: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Family:
    """The languages of one transform that differ in its dial. transform: one of them, with its other parameters."""

    transform: Transform
    dial: Dial

    @classmethod
    def parse(cls, spec: str, language: Pipeline = Pipeline(())) -> Family:  # noqa: B008 (frozen)
        """Return the family of a spec: `mallows:by=sentence`. Raise UsageError for a transform without a dial.

        language: moves the final punctuation of the family, too, if its orders do and the spec does not say `final`.
        """
        pipeline = Pipeline.parse(spec)
        dial = pipeline.transforms[0].dial
        if len(pipeline.transforms) != 1 or dial is None:
            with_dial = [name for name in transform_names() if find_transform(name).dial is not None]
            raise UsageError(
                f"{spec} has no parameter that sets how far it is; families: {', '.join(with_dial)}",
                where="--family",
                id="family",
            )
        own, ((_, values, keyed),) = pipeline.transforms[0], read_spec(spec)
        if values or dial.parameter in keyed:
            raise UsageError(
                f"{spec} gives {dial.parameter}, which is what `match` finds",
                where="--family",
                fix=f"leave {dial.parameter} out",
                id="family",
            )
        moves = any(getattr(transform, "final", None) == "move" for transform in language.transforms)
        if moves and hasattr(own, "final") and "final=" not in spec:
            own = replace(own, **{"final": "move"})
        return cls(own, dial)

    def at(self, value: float) -> Pipeline:
        """Return the language with the dial at a value."""
        return Pipeline((replace(self.transform, **{self.dial.parameter: value}),))


def match(
    batches: Sequence[Batch], language: Pipeline, family: Family, by: str = "tau", lexicon: Lexicon | None = None
) -> Match:
    """Return the member of a family that is as far from the source as a language.

    batches: a sample of the source; sentences are split, with trees if the language needs them. by: a name of
    DISTANCES. lexicon: of `orders_of(language)`, for orders that are fitted.

    Warn of a member at an end of the family. Raise UsageError if no member is as far, if the sample has fewer than ten
    units, or if the entropy of a language is asked that gives several words one form.
    """
    dial, parts_of = family.dial, DISTANCES[by]
    if by == "entropy" and not language.injective:
        raise UsageError(
            f"{language} gives several words one form, which changes the entropy whatever the order",
            where="--t",
            fix="leave out what changes words, or match by tau",
            id="not-injective",
        )
    wanted = parts_of(batches, orders_of(language), lexicon or Lexicon())
    n_units = len(wanted[0])
    if n_units < _PARTS:
        raise UsageError(
            f"the sample has {n_units} {_UNITS[by]}; a match needs {_PARTS}",
            fix="take a larger sample",
            id="sample",
        )

    goal, tried = _mean(wanted), dict[float, Parts]()

    def parts(value: float) -> Parts:
        if value not in tried:
            tried[value] = parts_of(batches, family.at(value), Lexicon())
        return tried[value]

    def gap(value: float) -> float:
        return _mean(parts(value)) - goal

    points = np.linspace(dial.near, dial.far, _POINTS).tolist()
    for a, b in pairwise(points):
        if gap(dial.near) * gap(b) <= 0:
            rough = _half_interval(wanted, parts(b), (gap(b) - gap(a)) / (b - a)) or 0.0
            value = _root(gap, a, b, max(rough / _CLOSE[by], _EXACT * abs(dial.far - dial.near)))
            break
    else:
        value = min(points, key=lambda point: abs(gap(point)))
    reached, spec, what = parts(value), str(family.at(value)), _NAMES[by]
    if abs(gap(value)) > _TOLERANCE[by]:
        raise UsageError(
            f"{language} has {what} of {goal:.3f}; the nearest language of {family.transform.name} is {spec} with "
            f"{_mean(reached):.3f}",
            where="--family",
            fix="take another family, such as --family mallows:by=sentence; shuffle begins at the source itself",
            id="family",
        )
    if gap(value) in [gap(end) for end in (dial.near, dial.far) if end in tried]:
        near, far = (_mean(parts(end)) for end in (dial.near, dial.far))
        warn(f"{spec} is at an end of its family, which goes from {what} of {near:.3f} to {far:.3f}")
    words = [one for one in language.transforms if one.has_lexicon and not one.has_order]
    step = abs(dial.near - dial.far) / 200
    a, b = np.clip([value - step, value + step], min(dial.near, dial.far), max(dial.near, dial.far)).tolist()
    half = _half_interval(wanted, reached, (gap(b) - gap(a)) / (b - a))
    low, high = (None, None) if half is None else (value - half, value + half)
    control = str(Pipeline((*words, *family.at(value).transforms)))
    return Match(control, dial.parameter, value, low, high, goal, _mean(reached), n_units, by)


def _mean(parts: Parts, which: int | None = None) -> float:
    """Return the distance of a language in the whole sample, or in every tenth unit from one on."""
    values, weights = (array if which is None else array[which::_PARTS] for array in parts)
    return float(values.sum() / weights.sum())


def _half_interval(wanted: Parts, reached: Parts, slope: float) -> float | None:
    """Return half of the interval of the parameter; None if the distance does not depend on it.

    Each tenth of the sample has a parameter of its own: it differs by the gap of its distances, divided by the slope.
    """
    # A language that deletes words may have fewer units than the source.
    gaps = np.array([_mean(wanted, i) - _mean(reached, i) for i in range(_PARTS)])
    return float(abs(_T * gaps.std(ddof=1) / np.sqrt(_PARTS) / slope)) if slope else None


def _root(gap: Callable[[float], float], a: float, b: float, close: float) -> float:
    """Return where a gap is nearest to 0 of what regula falsi tries, in the variant "Illinois".

    a, b: two values whose gaps have two signs. close: how near to each other they come.
    """
    tried, gap_a, gap_b = [a, b], gap(a), gap(b)
    while gap_b and abs(b - a) > close:
        middle = b - gap_b * (b - a) / (gap_b - gap_a)
        tried.append(middle)
        # A new value on the same side as the last one leaves the other end, which counts half from then on.
        a, gap_a = (a, gap_a / 2) if gap(middle) * gap_b > 0 else (b, gap_b)
        b, gap_b = middle, gap(middle)
    return _rounded(min(tried, key=lambda value: abs(gap(value))))


def _rounded(value: float) -> float:
    """Return a value with four significant digits, so that a spec can be read."""
    return float(f"{value:.4g}")


def orders_of(language: Pipeline) -> Pipeline:
    """Return the transforms that order words. Others move none, and one to one they change no entropy."""
    return Pipeline(tuple(transform for transform in language.transforms if transform.has_order))


def _taus(batches: Sequence[Batch], language: Pipeline, lexicon: Lexicon) -> Parts:
    """Return Kendall's tau of each unit of two words or more."""
    reordering = Reordering()
    for triple in derive_all(batches, language, lexicon):
        reordering.add(*triple)
    taus = np.concatenate([np.zeros(0), *reordering.taus])
    return taus, np.ones(len(taus))


def _local_bits(batches: Sequence[Batch], language: Pipeline, lexicon: Lexicon) -> Parts:
    """Return the bits of each held-out unit by a model of three words, and the number of the source's words in it."""
    return bits_of_units(derive_all(batches, language, lexicon), _LOCAL, LOCAL_WORDS)


DISTANCES: Mapping[str, Callable[[Sequence[Batch], Pipeline, Lexicon], Parts]] = MappingProxyType(
    {"tau": _taus, "entropy": _local_bits}
)
_NAMES = {"tau": "a tau", "entropy": f"a {_LOCAL}-local entropy"}
_TOLERANCE = {"tau": 0.01, "entropy": 0.05}  # the distances of a language and of its match differ by less
_CLOSE = {"tau": 100, "entropy": 10}  # half of the interval is so many times as wide as where the search ends
_UNITS = {"tau": "sentences of two words and more", "entropy": "held-out sentences"}
