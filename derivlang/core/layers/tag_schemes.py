"""Tag schemes: how the tags of words write down entities.

                Ana   Lee   met   Bo    Kim   Ida          [Ana Lee] and [Bo Kim] are entities, and so is [Ida]
    IOB2        B-PER I-PER O     B-PER I-PER B-PER
    IOB1        I-PER I-PER O     I-PER I-PER B-PER        B- only after an entity of the same type
    IOE2        I-PER E-PER O     I-PER E-PER E-PER
    IOE1        I-PER I-PER O     I-PER E-PER I-PER        E- only before an entity of the same type
    BIOES       B-PER E-PER O     B-PER E-PER S-PER        also BILOU (L, U), BMES (M) and BMEWO (M, W)

One rule reads them all: words of one type are one entity, unless a tag says that one begins (B, S, U, W) or has ended
(E, L, S, U, W). A scheme is what tags are written by. So tags are of a scheme if they are what it writes for the
entities that they were read as, and then nothing is lost by reading them.

    spelling    B-PER   B_PER   b-per   B               a tag without a type is one if no tag of the column has a type
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int32, Int64, expand_ranges, offsets_of
from derivlang.core.arrow import filled, to_numpy
from derivlang.core.errors import LayerError
from derivlang.core.schema import Field

OUTSIDE, UNKNOWN = 0, -1
PREFIXES = "OBIESLUMW"  # a prefix is its place here
_TAG = re.compile(r"(?i:([BIESLUMW]))(?:[-_](.+))?", re.ASCII | re.DOTALL)
_UNTYPED = {"B", "I", "O"}
_MOST_OTHERS = 8  # values that are not tags, after which a column without a B- and an I- of one type holds no entities
_BEGINS = np.array([prefix in "BSUW" for prefix in PREFIXES])
_ENDS = np.array([prefix in "ESLUW" for prefix in PREFIXES])


class Entities(NamedTuple):
    """start, end: int64[E], the words start … end - 1 of each entity. types: int32[E]."""

    start: Int64
    end: Int64
    types: Int32


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme: the prefixes of an entity of one word, and of the first, middle and last word of a longer one.

    after, before: the same for an entity right after or right before one of its type, if they differ.
    """

    usual: str
    after: str = ""
    before: str = ""

    @property
    def prefixes(self) -> set[str]:
        """All prefixes that the scheme writes."""
        return set(self.usual + self.after + self.before)

    def write(self, entities: Entities, firsts: Bool) -> Int32:
        """Return int32[N], the prefix of each word. firsts: bool[N], words that begin a sentence."""
        start, end, types = entities
        # touches[e]: entity e + 1 follows entity e directly and has its type.
        touches = (start[1:] == end[:-1]) & (types[1:] == types[:-1]) & ~firsts[start[1:]]
        row = np.zeros(len(start), np.int64)  # of the table below
        row[1:][touches & bool(self.after)] = 1
        row[:-1][touches & bool(self.before)] = 2
        table = [list(map(PREFIXES.index, letters or self.usual)) for letters in (self.usual, self.after, self.before)]
        alone, first, middle, last = np.array(table, np.int32)[row].T
        out = np.zeros(len(firsts), np.int32)
        out[expand_ranges(start, end - start)] = np.repeat(middle, end - start)
        out[end - 1] = last
        out[start] = np.where(end - start == 1, alone, first)
        return out


IOB2 = "IOB2"
SCHEMES = {
    IOB2: Scheme("BBII"),
    "BIOES": Scheme("SBIE"),
    "BILOU": Scheme("UBIL"),
    "BMES": Scheme("SBME"),
    "BMEWO": Scheme("WBME"),
    "IOB1": Scheme("IIII", after="BBII"),
    "IOE2": Scheme("EIIE"),
    "IOE1": Scheme("IIII", before="EIIE"),
}


def parse_tags(names: Sequence[str]) -> tuple[tuple[str, ...], Int32, Int32]:
    """Return the entity types, and the prefix and the type of each tag name. UNKNOWN: not a tag.

    (O, B-PER, I-PER, PER)  ->  (PER,), [0, 1, 2, UNKNOWN], [-1, 0, 0, -1]
    (o, b_per, i_per)       ->  (per,), [0, 1, 2], [-1, 0, 0]
    (O, B, I)               ->  ("",), [0, 1, 2], [-1, 0, 0]
    """
    types: dict[str, int] = {}
    prefixes, kinds = np.full(len(names), UNKNOWN, np.int32), np.full(len(names), -1, np.int32)
    matches = [_TAG.fullmatch(name) for name in names]
    typed = any(match is not None and match[2] for match in matches)
    for i, (name, match) in enumerate(zip(names, matches, strict=True)):
        if name in ("O", "o"):
            prefixes[i] = OUTSIDE
        elif match is not None and (match[2] or not typed):
            prefixes[i] = PREFIXES.index(match[1].upper())
            kinds[i] = types.setdefault(match[2] or "", len(types))
    return tuple(types), prefixes, kinds


def tag(prefix: str, kind: str, between: str = "-") -> str:
    """Return the name of a tag: B-PER, or B if it has no type."""
    return f"{prefix}{between}{kind}" if kind else prefix


def spellings(names: Sequence[str], column: str = "one column") -> Mapping[tuple[str, str], str]:
    """Return the name of each tag as a column spells it, by prefix and type; O by ("O", "").

    (o, b_per, ?)  ->  {(O, ""): o, (B, per): b_per}

    column: for messages. LayerError for two spellings of a tag, of which one would be lost.
    """
    types, prefixes, kinds = parse_tags(names)
    spellings: dict[tuple[str, str], str] = {}
    for name, prefix, kind in zip(names, prefixes.tolist(), kinds.tolist(), strict=True):
        if prefix == UNKNOWN:
            continue
        other = spellings.setdefault((PREFIXES[prefix], types[kind] if prefix > OUTSIDE else ""), name)
        if other != name:
            raise LayerError(
                f"the tags {other!r} and {name!r} of {column} mean the same",
                fix="write all its tags in one way",
                id="tag-spelling",
            )
    return spellings


def read_tags(prefixes: Int32, kinds: Int32, firsts: Bool) -> Entities:
    """Return the entities of one prefix and type a word. firsts: bool[N], words that begin a sentence.

    Every word with a type is in an entity of this type: no label is lost.
    """
    inside = prefixes > OUTSIDE
    goes_on = np.zeros(len(prefixes), bool)
    # goes_on[w]: word w belongs to the entity of word w - 1. For B-PER I-PER O I-LOC: [F, T, F, F].
    goes_on[1:] = inside[1:] & inside[:-1] & (kinds[1:] == kinds[:-1])
    goes_on[1:] &= ~(firsts[1:] | _BEGINS[prefixes[1:]] | _ENDS[prefixes[:-1]])
    start = np.flatnonzero(inside & ~goes_on)
    # An entity ends before the next word that does not go on: stops [0, 2, 3, 4] above, so start 0 -> 2 and 3 -> 4.
    stops = np.flatnonzero(np.append(~goes_on, True))
    return Entities(start, stops[np.searchsorted(stops, start, "right")], kinds[start].astype(np.int32))


def first_words(offsets: Int64, n_words: int) -> Bool:
    """Return bool[N]: the words that begin a sentence. offsets: int64[S + 1]."""
    firsts = np.zeros(n_words + 1, bool)
    firsts[offsets[:-1]] = True
    return firsts[:-1]


def spelled(given: Sequence[str], tags: Iterable[tuple[str, str]]) -> list[str]:
    """Return tags (prefix, type) as given ones are spelled, also those that a repair needs beside these."""
    known, like = spellings(given), next((name for name in given if name not in ("O", "o")), "O")
    return [
        known.get(key) or tag(key[0].lower() if like[0].islower() else key[0], key[1], like[1:2] or "-") for key in tags
    ]


def complete_classes(names: Sequence[str]) -> tuple[str, ...]:
    """Return the IOB2 tags of all types in the usual order: `O`, then `B-` and `I-` of each type that occurs."""
    kinds = set(parse_tags(names)[0])
    usual = [kind for kind in ("PER", "ORG", "LOC") if kind in kinds]
    order = usual + sorted(kinds - set(usual))
    return ("O", *(tag(prefix, kind) for kind in order for prefix in "BI"))


def are_entity_tags(names: Sequence[str]) -> bool:
    """Return whether values, or names of classes, are tags of entities: words of a text are hardly ever.

    Either all are tags, some of them typed; or one type has a B- and an I-, and any other value is a mistake; or all
    are B, I and O, and one is an I: only O says nothing, and B may be an answer or a grade.
    """
    if has_both(names):
        return True
    types, prefixes, _ = parse_tags(names)
    if types == ("",):
        return "I" in (upper := {name.upper() for name in names}) and upper <= _UNTYPED
    return bool(types) and bool((prefixes != UNKNOWN).all())


def has_both(names: Sequence[str]) -> bool:
    """Return whether one type has a B- and an I-."""
    types, prefixes, kinds = parse_tags(names)
    begun, inside = (set(kinds[prefixes == PREFIXES.index(prefix)].tolist()) for prefix in "BI")
    return types != ("",) and not begun.isdisjoint(inside)


class SchemeSearch:
    """Finds the scheme of a tag column, which all its tags decide. classes: the names, if it holds class numbers."""

    def __init__(self, classes: Sequence[str] = ()):
        self._numbers = {name: i for i, name in enumerate(classes)}
        self._fits = list(SCHEMES)
        self._prefixes: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The tags that occur, or the names of the classes."""
        return list(self._numbers)

    @property
    def is_settled(self) -> bool:
        """Whether the column holds no entities: enough of its values, or all so far, are something else than tags."""
        unknown = parse_tags(self.names)[1] == UNKNOWN
        enough = 1 if unknown.all() else _MOST_OTHERS + 1
        return int(np.count_nonzero(unknown)) >= enough and not has_both(self.names)

    def add(self, lists: pa.Array) -> None:
        """Look at the tags of some sentences, a list array [S].

        A value that is not a tag is an error later, with its row.
        """
        flat = lists.flatten()
        codes = self._codes(flat)
        _, prefixes, kinds = parse_tags(self.names)
        known = (codes >= 0) & (codes < len(prefixes))
        # -1 reads the element that is appended, so that this also works before any tag is known.
        prefix = np.where(known, np.append(prefixes, UNKNOWN)[np.where(known, codes, -1)], OUTSIDE)
        prefix[prefix == UNKNOWN] = OUTSIDE
        kind = np.append(kinds, -1)[np.where(known, codes, -1)]
        self._prefixes |= {PREFIXES[code] for code in np.unique(prefix).tolist() if code != OUTSIDE}
        firsts = first_words(offsets_of(to_numpy(filled(pc.list_value_length(lists), 0))), len(prefix))
        entities = read_tags(prefix, kind, firsts)
        self._fits = [name for name in self._fits if np.array_equal(SCHEMES[name].write(entities, firsts), prefix)]

    def result(self) -> str:
        """Return the name of the scheme that wrote all tags, IOB2 if it may be.

        If none did, it is the first that has all prefixes: the tags that it would not write are ill-formed.
        """
        return next(iter(self._fits), None) or _likely(self._prefixes)

    def of_field(self, field: Field) -> Field:
        """Return the field with its scheme, and with IOB2 tags as its classes."""
        return with_scheme(field, self.names if field.classes else sorted(self.names), self.result())

    def _codes(self, flat: pa.Array) -> Int64:
        """Return the numbers of tags in `names`, to which new ones are added; -1 for null."""
        if pa.types.is_integer(flat.type):
            return np.asarray(to_numpy(filled(flat, -1)), np.int64)
        encoded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
        tags = encoded.dictionary.to_pylist()
        numbers = [-1 if tag is None else self._numbers.setdefault(str(tag), len(self._numbers)) for tag in tags]
        table = np.array([*numbers, -1], np.int64)
        return np.asarray(table[to_numpy(filled(encoded.indices, len(numbers)))], np.int64)


def with_scheme(field: Field, names: Sequence[str], scheme: str | None = None) -> Field:
    """Return a field of entities with the scheme of its tags. names: its tags, or its classes in their order.

    scheme: None for the first that has all prefixes of the names. LayerError for two spellings of one tag.
    """
    scheme = scheme or _likely({PREFIXES[code] for code in parse_tags(names)[1].tolist() if code > OUTSIDE})
    classes, given = complete_classes(names), spellings(names, f"the column {field.input!r}")
    usual = all(tag(*key) == name for key, name in given.items())
    if scheme == IOB2 and usual and field.classes is not None:
        return field
    if scheme == IOB2 and set(names) <= set(classes):
        return replace(field, classes=classes)
    return replace(field, classes=classes, scheme=None if scheme == IOB2 else scheme, given_classes=tuple(names))


def _likely(prefixes: set[str]) -> str:
    return next((name for name, scheme in SCHEMES.items() if scheme.prefixes >= prefixes), IOB2)
