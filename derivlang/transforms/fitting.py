"""The lexicon of a chain of transforms, and the file `lexicon.tsv` that keeps what they were fitted with.

Each lexical transform is fitted on the images of the reference vocabulary under the transforms before it. Orders see
source words, so they are fitted on the reference vocabulary itself. The file has a section for each transform that
saves:

    # derivlang lexicon: trans:overlap=25     the title: the lexical transforms up to this one, as a spec
    type	image	count	kept              the state: what the fitted map's `state()` returned
    the	the	9	kept

A pipeline that begins with the same lexical transforms can use the file: the sections that are there are loaded, and
the rest is fitted.

The fingerprint of a pipeline: 16 hex digits that change with anything its output depends on.

Each transform is hashed by its labelled parts, and the pipeline by the hashes of its transforms and of its lexicon:

    transform=trans     the name
    trans.table=2       the parameters that its stored spec states
    rule=1              the version of its rule
    code=…              the file of its class, if that is of another package
    resource=…          the files that it reads (dictionaries, grammars)

Only stated parameters are hashed: a parameter that a later version adds changes no fingerprint of what was made
before, and a stored spec means the same to every version. The package version is not hashed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int64
from derivlang.core.arrow import string_array, to_numpy
from derivlang.core.errors import DataError, UsageError, parse_errors
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon, TypeMap, chooses
from derivlang.core.plugins import is_own, plug_in_errors
from derivlang.core.spec import read_spec
from derivlang.transforms.base import FittedOrder, PlugInMap, Transform, steps_of

_MAP = "TypeMap", "apply", "injective", "invert", "state"
_ORDER = "FittedOrder", "order", "state"
_TITLE = "# derivlang lexicon: "
# A word of a row is followed by a tab, so that no row is taken for a title.
_SECTIONS = re.compile(r"^(?=# derivlang lexicon: [^\t\n]*$)", re.MULTILINE)


def fit(
    transforms: Sequence[Transform],
    types: pa.Array | None = None,
    counts: Int64 | None = None,
    *,
    saved: str | None = None,
    where: str = "--lexicon",
) -> Lexicon:
    """Return the lexicon of a chain of transforms; see `Pipeline.fit`."""
    loaded = saved_states(transforms, saved, where)
    unfitted = [transforms[i] for i in saving(transforms)[len(loaded) :] if transforms[i].needs_reference]
    if types is not None and counts is None and unfitted:
        raise UsageError("a reference vocabulary needs the counts of its types", id="counts")
    if types is None and unfitted:
        raise needs_lexicon(transforms) if saved is None else other_lexicon(transforms, saved, where)
    reference = types if types is not None else string_array([])
    numbers = counts if counts is not None else np.zeros(len(reference), np.int64)
    source = reference, numbers
    steps, orders, states = [], {}, iter(loaded)
    for place, (transform, draws) in enumerate(streams(transforms)):
        if not (transform.has_lexicon or transform.fits_order):
            continue
        if transform.has_forms and type(transform).fit is not Transform.fit:
            raise UsageError(
                f"the transform {transform.name} defines both `fit` and `forms`",
                fix="define one of them; two transforms in a row do both",
                id="plug-in",
            )
        state = next(states, None) if transform.saves else None
        fit = transform.fit_order if transform.fits_order else transform.fit
        if state is None:
            with plug_in_errors("transform", transform, fit):
                step: Any = fit(*(source if transform.fits_order else (reference, numbers)), draws)
            kind, *parts = _ORDER if transform.fits_order else _MAP
            if lacks := [name for name in parts if not hasattr(step, name)]:
                raise UsageError(
                    f"`{fit.__name__}` of the transform {transform.name} returned {type(step).__name__}, "
                    f"not a {kind}: it has no {', '.join(lacks)}",
                    fix="return an object with its methods (derivlang/core/lexicon.py has some)",
                    id="plug-in",
                )
        else:
            step = _load(transform, state, draws, where)
        if transform.fits_order:
            orders[place] = step
        else:
            step = step if is_own(transform) else PlugInMap(transform, step)
            steps.append(step)
            reference, numbers = _image(step, reference, numbers)
    return Lexicon(tuple(steps), orders)


def needs_counts(transforms: Sequence[Transform], saved: str | None) -> bool:
    """Return whether a reference vocabulary must be counted, beyond what a saved lexicon holds."""
    held = saved_positions(transforms, saved)
    return any(transform.needs_reference for i, transform in enumerate(transforms) if transform.saves and i not in held)


def warnings(transforms: Sequence[Transform], lexicon: Lexicon, types: pa.Array, counts: Int64) -> list[str]:
    """Return the warnings of all lexical transforms on a vocabulary; see `Pipeline.warnings`."""
    out: list[str] = []
    before = Lexicon()  # the last map, whose images are the types of the next one
    for transform, step in zip(transforms, steps_of(transforms, lexicon), strict=True):
        if step is not None:
            types = before.apply(types)
            out += transform.warnings(step, types, counts)
            if chooses(step):
                break  # from here on, the words of one type may differ
            before = Lexicon((step,))
    return out


def streams(transforms: Sequence[Transform]) -> list[tuple[Transform, Draws]]:
    """Return each transform with its draws. A transform that occurs twice draws differently the second time."""
    seen: Counter[str] = Counter()
    out = []
    for transform in transforms:
        family = transform.family or transform.name
        out.append((transform, transform.stream(seen[family])))
        seen[family] += 1
    return out


def _load(transform: Transform, state: str, draws: Draws, where: str) -> TypeMap | FittedOrder:
    """Return the map or order of a saved state. DataError, with the file's name, if the state is damaged."""
    with parse_errors(where, "lexicon", id="lexicon", fix="restore the file, or make it again"):
        try:
            return transform.load_order(state, draws) if transform.fits_order else transform.load(state, draws)
        except DataError as error:
            raise ValueError(error.what) from error


def needs_lexicon(transforms: Sequence[Transform]) -> UsageError:
    """Return the error for transforms that are to be used before they are fitted."""
    return UsageError(
        f"{','.join(map(str, transforms))} must be fitted on a reference vocabulary",
        fix="pass a saved one: --lexicon FILE; `make` saves lexicon.tsv",
        id="needs-lexicon",
    )


def _image(step: TypeMap, types: pa.Array, counts: Int64) -> tuple[pa.Array, Int64]:
    """Return a reference vocabulary under one more map.

    Types with the same image are merged and their counts added. Of several images, the first translation gets the
    count: cat 3 with the images cat, chat, minet becomes cat 0, chat 3, minet 0.
    """
    if not chooses(step):
        types = step.apply(types)
    else:
        images = step.images(types)
        several = np.zeros(len(images.strings), np.int64)
        several[np.minimum(images.offsets[:-1] + 1, images.offsets[1:] - 1)] = counts
        types, counts = images.strings, several
    if step.injective:
        return types, counts
    merged = types.dictionary_encode()
    total = np.bincount(to_numpy(merged.indices), counts, minlength=len(merged.dictionary))
    return merged.dictionary, total.astype(np.int64)


def read_lexicon(path: Path) -> str:
    """Return the text of a saved lexicon.tsv. DataError if the file cannot be read."""
    with parse_errors(str(path), "lexicon", id="lexicon"):
        return path.read_bytes().decode("utf-8")  # with its line ends: read_text would turn \r\n into \n


def sections(text: str | None) -> list[tuple[str, str]]:
    """Return the sections of a saved lexicon, (title, state) in order; none for None."""
    parts = [section.removeprefix(_TITLE).partition("\n") for section in _SECTIONS.split(text or "")[1:]]
    return [(title, state) for title, _, state in parts]


def write_lexicon(transforms: Sequence[Transform], lexicon: Lexicon) -> str | None:
    """Return the text of lexicon.tsv for a fitted lexicon, or None if no transform has anything to save."""
    fitted = [lexicon.orders.get(place, step) for place, step in enumerate(steps_of(transforms, lexicon))]
    states = [None if one is None else one.state() for one in fitted]
    titled = zip(_titles(transforms), states, strict=True)
    return "".join(f"{_TITLE}{title}\n{state}" for title, state in titled if state is not None) or None


def saving(transforms: Sequence[Transform]) -> list[int]:
    """Return the positions of the transforms that have a section in lexicon.tsv."""
    return [i for i, transform in enumerate(transforms) if transform.saves]


def saved_positions(transforms: Sequence[Transform], text: str | None) -> list[int]:
    """Return the positions of the transforms whose sections are in a saved lexicon."""
    return saving(transforms)[: len(sections(text))]


def saved_states(transforms: Sequence[Transform], text: str | None, where: str) -> list[str]:
    """Return the states of a saved lexicon, in the order of `saving`. UsageError if it is another pipeline's."""
    if text is None:
        return []
    saved = sections(text)
    if not saved or [title for title, _ in saved] != _wanted(transforms)[: len(saved)]:
        raise other_lexicon(transforms, text, where)
    return [state for _, state in saved]


def other_lexicon(transforms: Sequence[Transform], text: str, where: str) -> UsageError:
    """Return the error for a saved lexicon that does not fit the transforms."""
    titles = [title for title, _ in sections(text)]
    if not titles:
        return UsageError(
            "the file is not a lexicon of derivlang",
            where=where,
            fix="pass the lexicon.tsv of a set made with the same --t",
            id="other-lexicon",
        )
    return UsageError(
        f"the lexicon was fitted for {', '.join(titles)}, but "
        f"the pipeline has {', '.join(_wanted(transforms)) or 'no transform that needs one'}",
        where=where,
        fix="pass the lexicon.tsv of a set made with the same --t",
        id="other-lexicon",
    )


def _wanted(transforms: Sequence[Transform]) -> list[str]:
    """Return the titles of a lexicon that holds all it may."""
    titles = _titles(transforms)
    return [titles[i] for i in saving(transforms)]


def _titles(transforms: Sequence[Transform]) -> list[str]:
    """Return the title of each transform's section: the lexical transforms up to and with it, as a spec.

    [trans:overlap=25, perm, lex:a.txt] -> ["trans:overlap=25", "trans:overlap=25", "trans:overlap=25,lex:a.txt"]

    A fitted order has its own spec as the title, since it does not depend on the transforms before it.
    """
    lexical = [t.stored if t.has_lexicon else None for t in transforms]
    titles = [",".join(t for t in lexical[: i + 1] if t is not None) for i in range(len(lexical))]
    return [t.stored if t.fits_order else title for t, title in zip(transforms, titles, strict=True)]


_FORMAT = 2  # of the hashed text; it is hashed, too


def fingerprint(transforms: Sequence[Transform], lexicon: str | None) -> str:
    """Return the fingerprint of a chain of transforms with its lexicon (the text of lexicon.tsv, or None).

    A file need not be there if the lexicon holds what was read from it.
    """
    held = saved_positions(transforms, lexicon)
    parts = [f"transform={part_hash(t, held=i in held)}" for i, t in enumerate(transforms)]
    return _hash([f"format={_FORMAT}", *parts, f"lexicon={_hash_of_text(lexicon)}"])[:16]


def part_hash(transform: Transform, *, held: bool = False) -> str:
    """Return the SHA-256 of a transform's labelled parts. held: its files are not read, since the lexicon has them."""
    return _hash(labelled_parts(transform) + ([] if held else [f"resource={file}" for file in transform.resources]))


def labelled_parts(transform: Transform) -> list[str]:
    """Return `label=value` for each part of a transform that needs none of the files that its parameters name."""
    ((name, values, keyed),) = read_spec(transform.stored)
    positional = [field.name for field in dataclasses.fields(transform) if field.metadata["positional"]]
    stated = dict(zip(positional, values, strict=False)) | keyed
    parameters = [f"{name}.{key}={stated[key]}" for key in sorted(stated)]
    code = [] if is_own(transform) else [f"code={_code_of(type(transform))}"]
    return [f"transform={name}", *parameters, f"rule={transform.rule_version}", *code]


def _code_of(kind: type) -> str:
    """Return the SHA-256 of the file of a class, "" of a class without a file, as of a notebook."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    with suppress(OSError):
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
    return ""


def _hash_of_text(text: str | None) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def _hash(parts: list[str]) -> str:
    """Return the SHA-256 of a list of strings. As JSON, a line break in a value is not taken for the next part."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
