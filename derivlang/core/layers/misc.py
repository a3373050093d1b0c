"""Misc: the MISC column of CoNLL-U.

Notes on white space describe a place in the source text, not a word, so they are removed when words move.

    SpaceAfter=No|Gloss=go   ->   Gloss=go            SpaceAfter=No   ->   _
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow.compute as pc

from derivlang.core.arrays import Bool, segment_any
from derivlang.core.arrow import filled, string_array, to_arrow, to_numpy
from derivlang.core.layers.base import Layer, Realignment
from derivlang.core.layers.words import Words

_SPACE_KEYS = ("SpaceAfter=", "SpacesAfter=", "SpacesBefore=", "SpacesInToken=")


class Misc(Words):
    """One string a word: `Key=Value` notes joined by `|`, or `_`."""

    __slots__ = ()
    text = True

    def realign(self, move: Realignment) -> Misc:
        """Return the notes in the derived order, without those on white space."""
        noted = to_numpy(filled(pc.match_substring(self.values, "Space"), False))  # of all _SPACE_KEYS
        values = self.values
        if noted.any():
            bare = map(_without_spaces, values.filter(to_arrow(noted)).to_pylist())
            values = pc.replace_with_mask(values, to_arrow(noted), string_array(bare).cast(values.type))
        return super(Misc, replace(self, values=values)).realign(move)

    def unrestored(self, derived: Layer, move: Realignment) -> Mapping[str, Bool]:
        """Return the rows with notes on white space."""
        bare = derived.values[: len(self.values)] if isinstance(derived, Misc) else self.values
        changed = to_numpy(filled(pc.not_equal(bare, self.values), False))[self.codes]
        rows = segment_any(changed, move.source.unit_words)[move.source.records[:, 0]]
        return {self.name: rows}

    def may_change(self, *, has_order: bool, exact: bool) -> bool:
        """Return True: notes on white space are removed also without an order."""
        return True


def _without_spaces(misc: str) -> str:
    return "|".join(note for note in misc.split("|") if not note.startswith(_SPACE_KEYS)) or "_"
