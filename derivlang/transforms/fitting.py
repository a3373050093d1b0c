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

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from derivlang.transforms.base import PlugInMap, Transform, steps_of

_MAP = "TypeMap", "apply", "injective", "invert", "state"
_ORDER = "fitted order", "order", "state"
_TITLE = "# derivlang lexicon: "
# A word of a row is followed by a tab, so that no row is taken for a title.
_SECTIONS = re.compile(r"^(?=# derivlang lexicon: [^\t\n]*$)", re.MULTILINE)
_FORMAT = 2  # of the hashed text; it is hashed, too


@dataclass(frozen=True, slots=True, repr=False)
class Chain:
    """A chain of transforms: its lexicon, the file that keeps it, and its fingerprint. A `Pipeline` also derives."""

    transforms: tuple[Transform, ...]

    def fit(
        self,
        types: pa.Array | None = None,
        counts: Int64 | None = None,
        *,
        saved: str | None = None,
        where: str = "--lexicon",
    ) -> Lexicon:
        """Return the lexicon. The parts in `saved` are loaded, the others fitted on a reference vocabulary.

        types, counts: the reference vocabulary, Arrow strings [T] and int64[T]. saved: the text of a lexicon.tsv.
        where: its name in errors. Raise UsageError if a part needs a reference and there is none, or if `saved` belongs
        to another pipeline.
        """
        states = self._states(saved, where)
        if self.needs_counts(saved):
            if types is None:
                raise needs_lexicon(self) if saved is None else self._other_lexicon(saved, where)
            if counts is None:
                raise UsageError("a reference vocabulary needs the counts of its types", id="counts")
        types = string_array([]) if types is None else types
        source = image = types, np.zeros(len(types), np.int64) if counts is None else counts
        steps: list[Any] = []
        orders = {}
        for place, (transform, draws) in enumerate(streams(self.transforms)):
            if not (transform.has_lexicon or transform.saves):
                continue
            if place in states:
                step = _load(transform, states[place], draws, where)
            else:
                step = _fitted(transform, *(source if transform.fits_order else image), draws)
            if transform.fits_order:
                orders[place] = step
                continue
            steps.append(step if is_own(transform) else PlugInMap(transform, step))
            image = _image(steps[-1], *image)
        return Lexicon(tuple(steps), orders)

    def needs_counts(self, saved: str | None = None) -> bool:
        """Return whether a reference vocabulary must be counted, beyond what a saved lexicon holds."""
        held = self._held(saved)
        return any(one.needs_reference for place, one in enumerate(self.transforms) if place not in held)

    def warnings(self, lexicon: Lexicon, types: pa.Array, counts: Int64) -> list[str]:
        """Return what a user should know about the lexicon on a vocabulary (Arrow strings [T], int64[T] counts)."""
        out: list[str] = []
        before = Lexicon()  # the last map, whose images are the types of the next one
        for transform, step in zip(self.transforms, steps_of(self.transforms, lexicon), strict=True):
            if step is not None:
                types = before.apply(types)
                out += transform.warnings(step, types, counts)
                if chooses(step):
                    break  # from here on, the words of one type may differ
                before = Lexicon((step,))
        return out

    def save(self, lexicon: Lexicon) -> str | None:
        """Return the text of lexicon.tsv, or None if nothing was fitted."""
        steps, text = steps_of(self.transforms, lexicon), ""
        for place, title in self._titles().items():
            state = lexicon.orders.get(place, steps[place]).state()
            text += "" if state is None else f"{_TITLE}{title}\n{state}"
        return text or None

    def fingerprint(self, lexicon: str | None = None) -> str:
        """Return 16 hex digits that change with anything the output depends on.

        lexicon: the text of lexicon.tsv. A file need not be there if the lexicon holds what was read from it.
        """
        held = self._held(lexicon)
        parts = [f"transform={part_hash(one, held=place in held)}" for place, one in enumerate(self.transforms)]
        text = hashlib.sha256(lexicon.encode()).hexdigest() if lexicon else None
        return _hash([f"format={_FORMAT}", *parts, f"lexicon={text}"])[:16]

    def _titles(self) -> dict[int, str]:
        """Return the title of the section of each transform that saves, by its place: the lexical transforms up to it.

        [trans:overlap=25, perm, lex:a.txt] -> {0: "trans:overlap=25", 2: "trans:overlap=25,lex:a.txt"}

        A fitted order has its own spec as the title, since it does not depend on the transforms before it.
        """
        titles, lexical = {}, []
        for place, transform in enumerate(self.transforms):
            if transform.has_lexicon:
                lexical.append(transform.stored)
            if transform.saves:
                titles[place] = transform.stored if transform.fits_order else ",".join(lexical)
        return titles

    def _held(self, saved: str | None) -> list[int]:
        """Return the places of the transforms whose sections are in a saved lexicon."""
        return list(self._titles())[: len(sections(saved))] if saved else []

    def _states(self, saved: str | None, where: str) -> dict[int, str]:
        """Return the states of a saved lexicon by place. Raise UsageError if it is another pipeline's."""
        titled, titles = sections(saved), {} if saved is None else self._titles()
        if saved is not None and (not titled or [title for title, _ in titled] != list(titles.values())[: len(titled)]):
            raise self._other_lexicon(saved, where)
        return dict(zip(titles, (state for _, state in titled), strict=False))

    def _other_lexicon(self, saved: str, where: str) -> UsageError:
        """Return the error for a saved lexicon that does not fit the transforms."""
        what, titles = "the file is not a lexicon of derivlang", ", ".join(title for title, _ in sections(saved))
        if titles:
            wanted = ", ".join(self._titles().values()) or "no transform that needs one"
            what = f"the lexicon was fitted for {titles}, but the pipeline has {wanted}"
        return UsageError(
            what, where=where, fix="pass the lexicon.tsv of a set made with the same --t", id="other-lexicon"
        )


def needs_lexicon(transforms: Chain | Transform) -> UsageError:
    """Return the error for transforms that are to be used before they are fitted."""
    return UsageError(
        f"{transforms} must be fitted on a reference vocabulary",
        fix="pass a saved one: --lexicon FILE; `make` saves lexicon.tsv",
        id="needs-lexicon",
    )


def streams(transforms: Sequence[Transform]) -> list[tuple[Transform, Draws]]:
    """Return each transform with its draws. A transform that occurs twice draws differently the second time."""
    seen: Counter[str] = Counter()
    out = []
    for transform in transforms:
        family = transform.family or transform.name
        out.append((transform, transform.stream(seen[family])))
        seen[family] += 1
    return out


def _fitted(transform: Transform, types: pa.Array, counts: Int64, draws: Draws) -> Any:
    """Return the map or order that a transform fits. Raise UsageError plug-in for another object."""
    if transform.has_forms and type(transform).fit is not Transform.fit:
        raise UsageError(
            f"the transform {transform.name} defines both `fit` and `forms`",
            fix="define one of them; two transforms in a row do both",
            id="plug-in",
        )
    with plug_in_errors("transform", transform, transform.fit):
        step = transform.fit(types, counts, draws)
    kind, *parts = _ORDER if transform.fits_order else _MAP
    if lacks := [name for name in parts if not hasattr(step, name)]:
        raise UsageError(
            f"`fit` of the transform {transform.name} returned {type(step).__name__}, "
            f"not a {kind}: it has no {', '.join(lacks)}",
            fix="return an object with its methods (derivlang/core/lexicon.py has some)",
            id="plug-in",
        )
    return step


def _load(transform: Transform, state: str, draws: Draws, where: str) -> Any:
    """Return the map or order of a saved state. DataError, with the file's name, if the state is damaged."""
    with parse_errors(where, "lexicon", id="lexicon", fix="restore the file, or make it again"):
        try:
            return transform.load(state, draws)
        except DataError as error:
            raise ValueError(error.what) from error


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


def part_hash(transform: Transform, *, held: bool = False) -> str:
    """Return the SHA-256 of a transform's labelled parts. held: its files are not read, since the lexicon has them."""
    return _hash(labelled_parts(transform) + ([] if held else [f"resource={file}" for file in transform.resources]))


def labelled_parts(transform: Transform) -> list[str]:
    """Return `label=value` for each part of a transform that needs none of the files that its parameters name."""
    ((name, values, keyed),) = read_spec(transform.stored)
    positional = [field.name for field in transform.spec_fields() if field.metadata["positional"]]
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


def _hash(parts: list[str]) -> str:
    """Return the SHA-256 of a list of strings. As JSON, a line break in a value is not taken for the next part."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
