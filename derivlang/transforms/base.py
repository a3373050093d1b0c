"""The base class of transforms. Each transform is a frozen dataclass; a family shares a file.

The fields of the dataclass are the parameters. The spec, the help text and the random draws follow from them.

    @dataclass(frozen=True, kw_only=True)
    class Turn(Transform):
        '''Exchange of neighbours.'''
        name = "turn"
        every: int = param(1, "exchange every k-th pair", low=1)
        def order(self, batch, draws): ...

A transform overrides `order` (which source word stands where), `fit` (what each type becomes; with `choices` if a type
has several images), `forms` (what each word becomes, by its place), or several of them. What it does not override is
the identity. Its class attributes decide which laws the contract tests check.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, owners
from derivlang.core.errors import LayerError, UsageError
from derivlang.core.keys import Draws
from derivlang.core.layers.constituents import PARSE
from derivlang.core.lexicon import ByPlace
from derivlang.core.order import Order
from derivlang.core.plugins import is_own, plug_in_errors
from derivlang.core.spec import Parameterised, key_of, quote, text_of

if TYPE_CHECKING:
    from derivlang.core.batch import Batch
    from derivlang.core.lexicon import Lexicon, TypeMap


MANY_PERCENT = 1  # warn of what befalls more of the running words than this
# The layer that marks a batch whose words are sub-words; `unit=token` requires it.
SUBWORDS = "subwords"


class Dial(NamedTuple):
    """A parameter that sets how far a language is from its source. near, far: its values there.

    Kendall's tau must fall from near to far.
    """

    parameter: str
    near: float
    far: float


class Forms(NamedTuple):
    """The form of each word of a batch. words: int32[N], codes into types, Arrow strings [T]."""

    words: Int32
    types: pa.Array

    def changed(self, at: Int64, types: pa.Array, codes: Int64) -> Forms:
        """Return the forms with other ones at some words. at: int64[n]. codes: int64[n], into further types."""
        words = self.words.copy()
        words[at] = len(self.types) + codes
        return Forms(words, pa.concat_arrays([self.types, types.cast(self.types.type)]))


@dataclass(frozen=True, kw_only=True)
class Transform(Parameterised):
    """Base class of every transform; without overrides it is the identity.

    name: the name in a spec. family: the transform whose draws it shares, if it has none of its own. rule_version:
    raised only when an output would change. needs: layers that a batch must have. is_permutation: no word is inserted
    or deleted. dial: the parameter by which `match` turns it. keyed: the
    result is a function of the sentence. Otherwise `stream` returns draws with a generator, which runs through the
    sentences of a split, as in published programs. fits_order: `fit` returns an order.
    """

    family: ClassVar[str] = ""
    rule_version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ()
    is_permutation: ClassVar[bool] = True
    dial: ClassVar[Dial | None] = None
    keyed: ClassVar[bool] = True
    fits_order: ClassVar[bool] = False

    def order(self, batch: Batch, draws: Draws) -> Order:
        """Return the order of a batch.

        The batch holds source words in the order of the transforms before this one, never the image of a lexicon.
        """
        return Order.identity(batch.sentences, batch.tails)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> Any:
        """Return the map on types, fitted on a reference vocabulary: Arrow strings [T] and int64[T] counts.

        It is called only if a class overrides it, or `forms`. If the class `fits_order`, it returns an order in place
        of a map: an object whose method `order` takes the place of the transform's own, and whose `state` returns what
        was fitted as the text of a section of `lexicon.tsv`. It is fitted on the source's vocabulary.
        """
        if self.saves:
            raise self._lacks("fit")
        return ByPlace()

    def load(self, state: str, draws: Draws) -> Any:
        """Return what `fit` returned from the text that its `state()` returned. Raise ValueError for any other text.

        A transform that `saves` must override it.
        """
        raise self._lacks("load")

    def _lacks(self, method: str) -> UsageError:
        return UsageError(
            f"the transform {self.name} saves what it was fitted with, but has no `{method}`",
            fix=f"define `{method}` in its class",
            id="plug-in",
        )

    def misfits(self, language: str) -> list[str]:
        """Return warnings about parameters: without effect, or that do not fit a language as `fr`; usually none."""
        return []

    def warnings(self, step: TypeMap, types: pa.Array, counts: Int64) -> list[str]:
        """Return warnings about the fitted map on a vocabulary, one sentence each; usually an empty list."""
        return []

    def choices(self, batch: Batch, images: Int32, draws: Draws) -> Int32:
        """Return the index of the image that each word takes, int32[N], for a map with several images per type.

        Index 0 is the type itself. batch: source words in the order so far, as in `order`. images: int32[N], the number
        of images of each word's type.
        """
        return np.minimum(images - 1, 1)

    def forms(self, batch: Batch, forms: Forms, before: Lexicon, draws: Draws) -> Forms:
        """Return the form of each word, where it depends on more than the type: on the tree, or on a lemma.

        batch: the words of the source in their own order, with the layers that the transform needs. forms: of these
        words so far; new types follow its types. before: the lexicon of the transforms before, for further words of the
        source. Special tokens stay, whatever it returns for them. A class that overrides it does not override `fit`.
        """
        return forms

    @property
    def stored(self) -> str:
        """The spec as files hold it. Its meaning does not change when a default does."""
        return str(self)

    @classmethod
    def from_stored(cls, values: list[str], keyed: dict[str, str]) -> Self:
        """Return the transform of a `stored` spec, written by this version or an older one."""
        return cls.from_values(values, keyed)

    @property
    def takes_seed(self) -> bool:
        """Whether `--seed` sets its parameter `seed`, if the spec states none."""
        return "seed" in self.declared()

    @property
    def needs_reference(self) -> bool:
        """Whether `fit` or `fit_order` needs a reference vocabulary with these parameters."""
        return False

    @property
    def saves(self) -> bool:
        """Whether the fitted map or order is saved in `lexicon.tsv`, which then suffices to derive again."""
        return self.needs_reference

    @property
    def resources(self) -> tuple[str, ...]:
        """Fingerprints of the files that the parameters name, such as grammars, and of rules outside the draws."""
        return ()

    def remedy(self, missing: Sequence[str], layers: Collection[str]) -> str:
        """Return what to do where a batch lacks layers, "" for the usual advice.

        missing: their names. layers: the names of those that it has.
        """
        return ""

    @property
    def has_order(self) -> bool:
        """Whether the transform changes the order of words."""
        return type(self).order is not Transform.order

    @property
    def has_lexicon(self) -> bool:
        """Whether the transform changes words."""
        return (type(self).fit is not Transform.fit and not self.fits_order) or self.has_forms

    @property
    def has_forms(self) -> bool:
        """Whether the transform changes words by their place."""
        return type(self).forms is not Transform.forms

    @property
    def injective(self) -> bool:
        """Whether the fitted map has an inverse; a class whose map has none declares `injective = False`."""
        return not self.has_forms

    def stream(self, occurrence: int) -> Draws:
        """Return the draws of this transform.

        occurrence: its number among the transforms of its family in a pipeline, from 0.
        """
        relevant = ",".join(
            f"{key_of(field)}={quote(text_of(getattr(self, field.name)))}"
            for field in self.spec_fields()
            if field.metadata["draws"]
        )
        return Draws(f"{self.name}|{relevant}|rule={self.rule_version}|occurrence={occurrence}")


@dataclass(frozen=True, slots=True)
class PlugInMap:
    """The map that a transform of another package fitted. Its images are checked; all else is as in the map.

    Maps of derivlang have tests, and checking costs time.
    """

    transform: Transform
    step: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type. Raise UsageError plug-in unless it breaks no promise of a map."""
        with plug_in_errors("transform", self.transform, self.step.apply):
            images = self.step.apply(types)
        map_ = f"the map of the transform {self.transform.name}"
        is_text = isinstance(images, pa.Array) and images.type in (pa.string(), pa.large_string())
        if not is_text or len(images) != len(types) or images.null_count or pc.any(pc.equal(images, "")).as_py():
            raise UsageError(
                f"`apply` of {map_} returned no Arrow array of strings, one for each type, none empty or null",
                fix="return the images as an Arrow array of strings, in the order of the types",
                id="plug-in",
            )
        if self.injective:
            with plug_in_errors("transform", self.transform, self.step.invert):
                back = self.step.invert().apply(images).cast(types.type)
            if not back.equals(types):
                at = pc.index(pc.equal(types, back), False).as_py()
                word, image, other = (str(some[at]) for some in (types, images, back))
                raise UsageError(
                    f"{map_} has no inverse: it takes {word!r} to {image!r}, and that back to {other!r}",
                    fix="declare `injective = False` in the map and in its transform, or correct `apply` or `invert`",
                    id="plug-in",
                )
        return images


def if_many(types: Bool, counts: Int64, what: str) -> list[str]:
    """Return a warning about some types, bool[T], if they are more than 1 % of the running words, else none."""
    share = 100 * int(counts[types].sum()) / max(int(counts.sum()), 1)
    return [f"{share:.1f} % of the words {what}"] if share > MANY_PERCENT else []


def steps_of(transforms: Sequence[Transform], lexicon: Lexicon) -> list[TypeMap | None]:
    """Return the map of each transform in a fitted lexicon, None for a transform that changes no words.

    trans,inv,lex:a.txt with the maps (t, l) -> [t, None, l]. Raise UsageError if the lexicon has more or fewer maps.
    """
    lexical = [transform.has_lexicon for transform in transforms]
    if sum(lexical) != len(lexicon.steps):
        raise UsageError(
            f"the lexicon has {len(lexicon.steps)} maps, but {sum(lexical)} transforms of the pipeline change words",
            fix="pass the lexicon that `fit` of this pipeline returns",
            id="other-lexicon",
        )
    steps = iter(lexicon.steps)
    return [next(steps) if changes_words else None for changes_words in lexical]


def check_order(transform: Transform, order: Order, batch: Batch) -> Order:
    """Return an order. Raise LayerError, or UsageError plug-in, if it breaks the contract of `Transform.order`.

    Only orders of other packages are checked: orders of derivlang have tests, and checking costs time.
    """
    if is_own(transform):
        return order
    parts = [order.index, order.sentences, order.tails] if isinstance(order, Order) else [None]
    if not all(isinstance(part, np.ndarray) and np.issubdtype(part.dtype, np.integer) for part in parts):
        raise UsageError(
            f"`order` of the transform {transform.name} returned no Order of NumPy arrays of whole numbers",
            fix="return Order(index.astype(np.int32), sentences, tails, n_source)",
            id="plug-in",
        )
    try:
        order.check()
    except LayerError as error:
        raise LayerError(
            f"the order of {transform.name} is wrong: {error.what}", fix="correct `order` of its class", id="order"
        ) from None
    if order.n_source != batch.n_words or len(order.sentences) != len(batch.sentences):
        raise LayerError(f"the order of {transform.name} has other words or sentences than its batch", id="order")
    if transform.is_permutation and not order.is_permutation:
        raise LayerError(
            f"the order of {transform.name} inserts or deletes words",
            fix="declare is_permutation = False in its class, or correct `order`",
            id="order",
        )
    kept = order.index >= 0
    same = np.array_equal(order.sentences, batch.sentences)  # otherwise the order has merged sentences of a unit
    before, after = (batch.sentences,) * 2 if same else (batch.unit_words, order.sentences[batch.units])
    if (owners(before)[order.index[kept]] != owners(after)[kept]).any():
        raise LayerError(f"the order of {transform.name} moves words into another sentence", id="order")
    return order


def check_layers(transform: Transform, batch: Batch) -> None:
    """Raise LayerError if a batch lacks a layer that a transform needs."""
    if missing := [name for name in transform.needs if name not in batch.layers]:
        source = "a treebank in CoNLL-U" if PARSE not in missing else "trees in brackets (.mrg) or source:pcfg=FILE"
        remedy = transform.remedy(missing, batch.layers)
        raise LayerError(
            f"{transform.name} needs {', '.join(missing)}, which this set lacks",
            fix=remedy if remedy else f"take a source with these columns, such as {source}",
            id="needs-layer",
        )


def check_unit(transform: Transform, unit: str, batch: Batch) -> None:
    """Raise UsageError if `unit=token` meets a batch of words."""
    if unit == "token" and SUBWORDS not in batch.layers:
        raise UsageError(
            f"{transform} orders sub-words, but this text consists of words",
            where="--t",
            fix="leave unit=token out; for encoded batches use derivlang.lexical.encoding.subword_order",
            id="unit",
        )
