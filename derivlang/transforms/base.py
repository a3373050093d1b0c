"""Transform: one file each; parameters are a frozen dataclass, from which spec, help and draws all follow.

    @dataclass(frozen=True, kw_only=True)
    class Swap(Transform):
        '''Exchanges neighbours.'''
        name = "swap"
        every: int = param(1, "exchange every k-th pair", low=1)
        def order(self, batch, draws): ...

A transform overrides what it does: `order` (which source word stands where), `fit` (what types look like; with
`choices` where a type has several images), or both; the rest is the identity. What it declares decides which laws the
contract tests hold it to.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, Ints, UInt64
from derivlang.core.errors import UsageError, unknown
from derivlang.core.keys import draw, text_key
from derivlang.core.order import Order

if TYPE_CHECKING:
    from derivlang.core.batch import Batch
    from derivlang.core.lexicon import TypeMap


# The layer that a batch has whose words are sub-words; `unit=token` asks for it.
SUBWORDS = "subwords"


@dataclass(frozen=True, slots=True)
class Draws:
    """A stream of keyed draws: everything a draw depends on, but for the key and the position."""

    name: str

    def draw(self, keys: UInt64, positions: Ints) -> UInt64:
        """uint64[n]: one draw for each (key, position); equal arguments give equal draws."""
        return draw(text_key(self.name), keys, positions)


def param(
    default: Any,
    help: str,
    *,
    positional: bool = False,
    draws: bool = True,
    low: int | None = None,
    high: int | None = None,
) -> Any:
    """A parameter of a transform. positional: `name:value` sets it. draws: does a random choice depend on it."""
    return dataclasses.field(
        default=default,
        metadata={"help": help, "positional": positional, "draws": draws, "low": low, "high": high},
    )


@dataclass(frozen=True, kw_only=True)
class Transform:
    """The identity; the base of every transform.

    name: as in a spec. rule_version: rises only when an output would change. needs: layers that a batch must
    have. is_permutation: no word is inserted or deleted. injective: the fitted map has an inverse.
    """

    name: ClassVar[str] = ""
    rule_version: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ()
    is_permutation: ClassVar[bool] = True
    injective: ClassVar[bool] = True

    def order(self, batch: Batch, draws: Draws) -> Order:
        """The order of a batch. It sees source words in the order so far, never a lexicon's image."""
        return Order.identity(batch.sentences, batch.tails)

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap | None:
        """The map on types: Arrow strings [T] and int64[T] counts of a reference vocabulary."""
        return None

    def load(self, state: str, draws: Draws) -> TypeMap | None:
        """The fitted map again, from the text that its `state()` gave."""
        return None

    def choices(self, batch: Batch, images: Int32, draws: Draws) -> Int32:
        """Where the fitted map has several images for a type: which one each word takes, int32[N], 0: itself.

        batch: source words in the order so far, as `order` sees them. images: int32[N], how many there are for each.
        """
        return np.minimum(images - 1, 1)

    @property
    def needs_reference(self) -> bool:
        """Must `fit` see a reference vocabulary with these parameters?"""
        return False

    @property
    def saves(self) -> bool:
        """Is what `fit` gives kept in `lexicon.tsv`, so that nothing else is needed for deriving once more?"""
        return self.needs_reference

    @property
    def resources(self) -> tuple[str, ...]:
        """Fingerprints of the files that the parameters name (grammars, dictionaries)."""
        return ()

    @property
    def has_order(self) -> bool:
        return type(self).order is not Transform.order

    @property
    def has_lexicon(self) -> bool:
        return type(self).fit is not Transform.fit

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, low, high = getattr(self, field.name), field.metadata["low"], field.metadata["high"]
            if (low is not None and value < low) or (high is not None and value > high):
                span = f"from {low} to {high}" if high is not None else f"at least {low}"
                raise UsageError(f"{self.name}: {field.name}={value} must be {span}", id="bad-value")

    def __str__(self) -> str:
        parts, in_place = [self.name], True
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                text = quote(_text(value))
                parts.append(text if field.metadata["positional"] and in_place else f"{field.name}={text}")
            elif field.metadata["positional"]:
                in_place = False  # a later value without a name would slip into this place
        return ":".join(parts)

    def stream(self, occurrence: int) -> Draws:
        """The draws of this transform, as the occurrence-th (from 0) of its name in a pipeline."""
        relevant = ",".join(
            f"{field.name}={quote(_text(getattr(self, field.name)))}"
            for field in dataclasses.fields(self)
            if field.metadata["draws"]
        )
        return Draws(f"{self.name}|{relevant}|rule={self.rule_version}|occurrence={occurrence}")

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or cls.name).strip().splitlines()[0]

    @classmethod
    def parameters(cls) -> list[dict[str, Any]]:
        """Name, type, default and help of each parameter, for `ls` and for help pages."""
        hints = get_type_hints(cls)
        return [
            {
                "name": field.name,
                "type": _type_name(hints[field.name]),
                "default": field.default,
                "help": field.metadata["help"],
                "positional": field.metadata["positional"],
                "low": field.metadata["low"],
                "high": field.metadata["high"],
            }
            for field in dataclasses.fields(cls)
        ]

    @classmethod
    def from_values(cls, values: list[str], keyed: dict[str, str]) -> Transform:
        """From the parts of a spec: `name:value:key=value` -> values ["value"], keyed {"key": "value"}."""
        hints = get_type_hints(cls)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        slots = [name for name, field in fields.items() if field.metadata["positional"]]
        if len(values) > len(slots):
            takes = f"takes {len(slots)}" if slots else "takes none"
            raise UsageError(
                f"{cls.name}: a value without a name ({values[len(slots)]!r}) is one too many; it {takes}",
                fix=f"parameters: {', '.join(fields) or 'none'}, written key=value",
                id="bad-spec",
            )
        given = dict(zip(slots, values, strict=False))
        for key, value in keyed.items():
            if key not in fields:
                raise unknown(f"parameter of {cls.name}", key, fields)
            if key in given:
                raise UsageError(f"{cls.name}: {key} is given twice", id="bad-spec")
            given[key] = value
        return cls(**{key: _value(cls.name, key, hints[key], value) for key, value in given.items()})


def check_unit(transform: Transform, unit: str, batch: Batch) -> None:
    """UsageError where a transform of sub-words gets words."""
    if unit == "token" and SUBWORDS not in batch.layers:
        raise UsageError(
            f"{transform} orders sub-words, which a text of words cannot hold",
            where="--t",
            fix="leave unit=token out; for encoded batches there is derivlang.lexical.subwords.subword_order",
            id="unit",
        )


def quote(value: str) -> str:
    """A value as a spec holds it: in double quotes, with inner ones doubled, where it must be."""
    if value and not any(c in value for c in ',:="') and value == value.strip():
        return value
    return '"' + value.replace('"', '""') + '"'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


def _type_name(hint: Any) -> str:
    if get_args(hint) and get_origin(hint) is not None:
        return "|".join(str(a) for a in get_args(hint))
    return getattr(hint, "__name__", str(hint))


def _value(name: str, key: str, hint: Any, text: str) -> Any:
    choices = get_args(hint)
    if choices:
        if text not in choices:
            raise UsageError(f"{name}: {key}={text!r} must be one of {', '.join(choices)}", id="bad-value")
        return text
    if hint is bool:
        if text not in ("yes", "no"):
            raise UsageError(f"{name}: {key}={text!r} must be yes or no", id="bad-value")
        return text == "yes"
    try:
        value = hint(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
        return value
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(hint, hint.__name__)
        raise UsageError(f"{name}: {key}={text!r} must be {kind}", id="bad-value") from None
