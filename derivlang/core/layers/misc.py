"""Misc: the MISC column of CoNLL-U, and notes that hold for an order of the words.

Notes on white space describe a place in the source text, not a word, so they are removed when words move.

    SpaceAfter=No|Gloss=go   ->   Gloss=go            SpaceAfter=No   ->   _

`ORDERED` lists the other notes that hold for one order. In a unit whose words change places, numbers of words follow
them, the category of an expression moves to its new first word, and all others are left out and counted by key:

    CopyOf=2   --inv of five words-->   CopyOf=4            CxnElt=1:If.Clause   ->   CxnElt=5:If.Clause
    took PARSEME:MWE=1:VPC.full, up PARSEME:MWE=1   --inv-->   up PARSEME:MWE=1:VPC.full, took PARSEME:MWE=1
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Ints, segment_any
from derivlang.core.arrow import filled, string_array, to_arrow, to_numpy
from derivlang.core.layers.base import Realignment
from derivlang.core.layers.words import Words

_SPACE_KEYS = ("SpaceAfter=", "SpacesAfter=", "SpacesBefore=", "SpacesInToken=")
# What the value of a note holds, by key. A note with any other value is kept as it is. From the UD page on MISC, the
# formats CorefUD and PARSEME, and the treebanks of UD 2.16 to 2.18.
_NUMBERS = re.compile(r"[0-9]+.*")  # items at commas, each of which begins with the number of a word: 3:Pivot,5:Clause
_EXPRESSIONS = re.compile(r"[0-9]+(:[^;]*)?(;[0-9]+(:[^;]*)?)*")  # of a word, by number; the first has the category
_TAGS = re.compile(r"[BIOESLUMW]([-_].*)?")  # where a stretch of words begins: B-PER, I
_BRACKETS = re.compile(r"\([^()]*|[^()]*\)")  # only one of the two ends of a stretch
_SPANS = re.compile(r".*")  # brackets that open and close, the ends of stretches, numbers of words of other sentences
ORDERED: Mapping[str, re.Pattern[str]] = {
    **dict.fromkeys(("CheckAttachment", "CopyOf", "CxnElt", "Head"), _NUMBERS),
    **dict.fromkeys(("MWE", "PARSEME:MWE", "PARSEME:NE"), _EXPRESSIONS),
    **dict.fromkeys(("BIO", "BunsetuBILabel", "IOB", "LUWBILabel", "NE", "NER", "NamedEntity", "ne", "ner"), _TAGS),
    **dict.fromkeys(("Coref", "Mention", "coref"), _BRACKETS),
    **dict.fromkeys(("AttachTo", "Bridge", "Discourse", "Entity", "MentionSpan", "PDTB", "SplitAnte", "XML"), _SPANS),
}
_ANY = r"(?:^|\|)(?:" + "|".join(map(re.escape, ORDERED)) + ")="
_Line: TypeAlias = tuple[int, list[tuple[str, str, str]]]  # a unit; note, key and value
_Place: TypeAlias = tuple[int, str, str]  # an expression: its unit, key and number
_NUMBERED = re.compile(r"([0-9]{1,9})((?:\.[0-9]+)?(?![0-9]).*)")


class Misc(Words):
    """One string a word: `Key=Value` notes joined by `|`, or `_`."""

    __slots__ = ()
    text = True
    changes = "always"  # notes on white space are removed also without an order
    losses: ClassVar[Mapping[str, str]] = {
        f"{{}}-{key}-dropped": "note[|s] of {} [was|were] left out, since [it holds|they hold] for the source's order"
        for key in ORDERED
    }

    def realign(self, move: Realignment) -> Misc:
        """Return the notes in the derived order, without those on white space. Counts others that are left out."""
        codes, values = self.codes, self.values
        noted = to_numpy(filled(pc.match_substring(values, "Space"), False))  # of all _SPACE_KEYS
        if noted.any():
            bare = map(without_spaces, values.filter(to_arrow(noted)).to_pylist())
            values = pc.replace_with_mask(values, to_arrow(noted), string_array(bare).cast(values.type))
        at = np.flatnonzero(are_ordered(values)[codes] & moved_units(move)[move.source_unit_of])
        if at.size:
            notes = values.take(to_arrow(codes[at])).to_pylist()
            follow = moved_notes(notes, move.source_unit_of[at], move, self.name, move.positions[at])
            codes = codes.copy()
            codes[at] = len(values) + np.arange(at.size)
            values = pa.concat_arrays([values, string_array(follow).cast(values.type)])
        return super(Misc, replace(self, codes=codes, values=values)).realign(move)


def without_spaces(misc: str) -> str:
    """Return MISC without its notes on white space."""
    return "|".join(note for note in misc.split("|") if not note.startswith(_SPACE_KEYS)) or "_"


def are_ordered(misc: pa.Array) -> Bool:
    """Return bool[n]: whether a MISC has notes that hold for an order of the words."""
    return np.asarray(to_numpy(filled(pc.match_substring_regex(misc, _ANY), False)))


def moved_units(move: Realignment) -> Bool:
    """Return bool[U]: whether a word of the unit has another place in it, or none."""
    shift = move.derived_units[:-1] - move.source.unit_words[:-1]
    places = np.arange(move.source.n_words) + shift[move.source_unit_of]
    return segment_any(move.positions != places, move.source.unit_words)


def moved_notes(misc: list[str], unit: Ints, move: Realignment, name: str, place: Ints | None = None) -> list[str]:
    """Return the MISC of n words or other lines of units that moved. Counts the notes that are left out, by key.

    unit: int[n]. name: of the column, for counts. place: int[n], the derived places of words, -1 for a deleted word;
    None for other lines, which stand in no expression.
    """
    lines = [
        (u, [(note, *note.partition("=")[::2]) for note in text.split("|")])
        for text, u in zip(misc, unit.tolist(), strict=True)
    ]
    firsts, kinds = ({}, {}) if place is None else _expressions(lines, place.tolist())
    out = []
    for line, (u, notes) in enumerate(lines):
        kept = []
        for note, key, value in notes:
            holds = ORDERED.get(key)
            if holds is None or not holds.fullmatch(value) or (holds is _EXPRESSIONS and place is None):
                kept.append(note)
                continue
            if holds is _NUMBERS:
                items = [new for item in value.split(",") if (new := _renumbered(item, u, move))]
                lost = value.count(",") + 1 - len(items)
            elif holds is _EXPRESSIONS:
                named = [(n, (u, key, n)) for n, _ in _numbered(value)]
                items, lost = [n + kinds.get(at, "") * (firsts.get(at) == line) for n, at in named], 0
            else:
                items, lost = [], 1
            if items:
                kept.append(f"{key}={(';' if holds is _EXPRESSIONS else ',').join(items)}")
            if lost:
                move.counts[f"{name}-{key}-dropped"] += lost
        out.append("|".join(kept) or "_")
    return out


def _renumbered(item: str, unit: int, move: Realignment) -> str:
    """Return an item with the derived number of its word; "" if the word is gone; the item if it names none.

    3:Pivot   ->   5:Pivot
    """
    named = _NUMBERED.fullmatch(item)
    number = int(named[1]) if named else 0
    if named is None or not number:
        return item
    begin, end = move.source.unit_words[unit : unit + 2].tolist()
    place = int(move.positions[begin + number - 1]) if number <= end - begin else -1
    return f"{place - int(move.derived_units[unit]) + 1}{named[2]}" if place >= 0 else ""


def _numbered(value: str) -> list[tuple[str, str]]:
    """Return the number of each expression of a word, and the category that stands with it: 1:VID;2 -> 1 :VID, 2."""
    return [(n, colon + kind) for n, colon, kind in (part.partition(":") for part in value.split(";"))]


def _expressions(lines: list[_Line], place: list[int]) -> tuple[dict[_Place, int], dict[_Place, str]]:
    """Return the line of the first word of each expression in the derived order, and its category."""
    firsts: dict[_Place, int] = {}
    kinds: dict[_Place, str] = {}
    for line, (u, notes) in enumerate(lines):
        for _, key, value in notes:
            if ORDERED.get(key) is _EXPRESSIONS and _EXPRESSIONS.fullmatch(value):
                for n, kind in _numbered(value):
                    if kind:
                        kinds.setdefault((u, key, n), kind)
                    if place[line] >= 0 and place[line] <= place[firsts.setdefault((u, key, n), line)]:
                        firsts[u, key, n] = line
    return firsts, kinds
