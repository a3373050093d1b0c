"""What the page offers for a transform: a control for each declared parameter, and the spec of the values.

No library of widgets is used here: `Control` says what to show, and `app.py` shows it. A plug-in's parameters appear
like the package's own, because both are read from `param`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from derivlang.core.errors import DerivlangError
from derivlang.core.spec import quote, read_spec, text_of
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform, transform_names

_SLIDER = 1000  # a range of at most this size is a slider
_OF_A_SENTENCE = {"head", "upos"}  # the layers of a typed sentence, which is parsed


@dataclass(frozen=True, slots=True)
class Control:
    """The control of a parameter. kind: choice, switch, slider, whole, number or text. choices: of a choice."""

    name: str
    kind: Literal["choice", "switch", "slider", "whole", "number", "text"]
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def controls_of(transform: str, *, files: bool = True) -> list[Control]:
    """Return the controls of a transform, by name. files=False leaves out parameters that may name files."""
    out = []
    for parameter in find_transform(transform).parameters():
        name, kind, low, high = parameter["name"], parameter["type"], parameter["low"], parameter["high"]
        choices: tuple[str, ...] = ()
        shown: Any = "text"
        if parameter["names"]:
            shown, choices = "choice", tuple(sorted({*parameter["names"], parameter["default"]}))  # "": none of them
        elif kind == "yes|no":
            shown = "switch"
        elif "|" in kind:
            shown, choices = "choice", tuple(kind.split("|"))
        elif kind in ("int", "float"):
            sliding = low is not None and high is not None and high - low <= _SLIDER
            shown = "slider" if sliding and kind == "int" else {"int": "whole", "float": "number"}[kind]
        if name == "unit" and "token" in choices:
            continue  # sub-words occur only in encoded batches, never in a text
        if files or shown != "text":
            out.append(Control(name, shown, parameter["default"], parameter["help"], choices, low, high))
    return out


def offered(*, files: bool = True) -> list[str]:
    """Return the names of the transforms to offer for a typed sentence.

    files=False: for a page where nobody can name a file, which offers what a visitor can try at once. A typed sentence
    is parsed, but has no features and no lemmas, and there is no text to count words of. So transforms that need one of
    these by default are left out, as are those whose first value is a file.
    """
    return [name for name in transform_names() if files or _needs_no_more(find_transform(name))]


def _needs_no_more(transform: type[Transform]) -> bool:
    """Return whether the defaults of a transform need nothing but a parsed sentence."""
    if any(p["file"] and p["positional"] and p["default"] == "" for p in transform.parameters()):
        return False
    # The defaults are attributes of the class. Calling the class would check them, and read files of grammars.
    with_defaults = object.__new__(transform)
    return {*with_defaults.needs} <= _OF_A_SENTENCE and not with_defaults.needs_reference


def spec_of(steps: Sequence[str], values: Mapping[tuple[int, str], Any]) -> str:
    """Return the spec of transforms with values by (number of the step, parameter); defaults are left out.

    [trans, inv], {(0, script): greek, (0, seed): 1}  ->  trans:greek,inv
    """
    parts = []
    for number, transform in enumerate(steps):
        part, in_place = transform, True
        for parameter in find_transform(transform).parameters():
            name, default = parameter["name"], parameter["default"]
            value = values.get((number, name), default)
            if value is None or value == "" or value == default:
                in_place = in_place and not parameter["positional"]
                continue
            if parameter["type"] == "int":
                value = int(value)
            elif parameter["type"] == "float":
                value = float(value)
            text = quote(text_of(value))
            part += f":{text}" if parameter["positional"] and in_place else f":{name}={text}"
        parts.append(part)
    return ",".join(parts)


def steps_of(spec: str, *, files: bool = True) -> tuple[list[str], dict[tuple[int, str], Any]] | None:
    """Return the transforms of a spec and its values by (number of the step, parameter): the reverse of `spec_of`.

    trans:greek,inv  ->  [trans, inv], {(0, script): greek}

    None for a spec that is wrong or that the controls cannot show: with a transform that is not offered, or twice the
    same. No file is opened, so the spec may still name one that is missing.
    """
    steps: list[str] = []
    values: dict[tuple[int, str], Any] = {}
    try:
        for number, (name, given, keyed) in enumerate(read_spec(spec)):
            transform = find_transform(name)
            steps.append(name)
            values |= {(number, key): value for key, value in transform.typed_values(given, keyed).items()}
    except DerivlangError:
        return None
    if len(set(steps)) < len(steps) or not set(steps) <= set(offered(files=files)):
        return None
    return steps, values
