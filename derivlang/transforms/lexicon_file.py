"""The file `lexicon.tsv`: what the transforms of a pipeline were fitted with, a section for each of them.

    # derivlang lexicon: trans:overlap=25     the title: the lexical transforms up to this one, as a spec
    type	image	count	kept              the state: what the fitted map's `state()` returned
    the	the	9	kept

A pipeline that begins with the same lexical transforms can use the file: it loads the sections that are there and fits
the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.core.parse_errors import parse_errors
from derivlang.transforms.base import Transform, steps_of

_TITLE = "# derivlang lexicon: "
# A word of a row is followed by a tab, so that no row is taken for a title.
_SECTIONS = re.compile(r"^(?=# derivlang lexicon: [^\t\n]*$)", re.MULTILINE)


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
