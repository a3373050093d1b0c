"""trans: a one-to-one copy of every word type in another script.

    Welcome to ACL .   ->   Წელცომე ტო ᲐᲪᲚ ．

    trans:greek             the letters of a script, as its table pairs them
    trans:offset=200000     code points + 200,000, as in the fake English of K et al. 2020: a -> U+30DA1
    trans:clones=3          the third of six languages that share no letter with each other or with the source: what
                            id + k * V is for k clones of a vocabulary (Dufter and Schütze 2020; Schäfer et al. 2024)

A script is an involution on code points (`scripts/`), so trans is its own inverse. A script's table has versions:
`trans` means the newest, `trans:table=1` an older one. Files always name the version that they were made with
(`stored`).

`overlap=P` keeps P percent of the types unchanged. The rule is fitted on a reference vocabulary and then applied to
any text. `by` chooses the types:

    type        the first floor(PT/100 + 1/2) of its T non-special types by a keyed ranking
    frequency   the most frequent ones, ties by key
    mass        the shortest prefix of the keyed ranking with P % of the running words

If a type and its image both occur, they share one key and are kept or changed together. A type outside the reference
is kept if its keyed hash lies in the first P % of the hash range, under `frequency` never.
Source: ALIGN-MLM (arXiv 2211.08547), section 3; the published overlap was 22.1 % for "25 %".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import Bool, Int64, UInt64
from derivlang.core.arrow import places_of, string_array, to_arrow, to_numpy
from derivlang.core.errors import UsageError, unknown
from derivlang.core.keys import Draws, codepoints, from_codepoints, hash_types
from derivlang.core.lexicon import SPECIALS, TypeMap, read_rows, write_rows
from derivlang.core.spec import param
from derivlang.transforms.base import MANY_PERCENT, Transform
from derivlang.transforms.scripts import CLONES, PRIVATE, Script, load_script, offset_name, script_names

By = Literal["type", "frequency", "mass"]
_HEADER = "type\timage\tcount\tkept"
_WAYS = ("script", "offset", "clones")  # of writing words; a transform has one
_PRIVATE_PLANES = 0xF0000  # first code point of planes 15 and 16


@dataclass(frozen=True, kw_only=True)
class Trans(Transform):
    """Transliteration: every word type in another script, one to one."""

    name = "trans"
    script: str = param(
        "georgian", "name of the script; `derivlang ls` lists them", positional=True, draws=False, names=script_names
    )
    offset: int = param(0, "number to add to code points, 131072 to 786432 or 983040; 0: none", draws=False, low=0)
    clones: int = param(
        0, "number of the clone, a language without letters of any other; 0: none", draws=False, low=0, high=len(CLONES)
    )
    overlap: int = param(0, "percentage of the types to keep unchanged", draws=False, low=0, high=100)
    by: By = param("type", "choice of the kept types: drawn, the most frequent, or drawn by token mass", draws=False)
    seed: int = param(1, "seed of the choice of kept types", low=0)
    table: int = param(0, "version of the script's table; 0: the newest", draws=False, low=0)

    def validate(self) -> None:
        """Raise UsageError for two ways of writing words, or an unknown script or table."""
        ways = [f.name for f in fields(self) if f.name in _WAYS and getattr(self, f.name) != f.default]
        if len(ways) > 1:
            raise UsageError(
                f"trans: {' and '.join(ways)} each say how words are written",
                where="--t",
                fix="give one",
                id="bad-spec",
            )
        if self.script not in script_names():
            raise unknown("script", self.script, script_names())
        if self.offset:
            try:
                offset_name(self.offset)
            except ValueError as error:
                raise UsageError(f"trans: offset={self.offset} {error}", where="--t", id="bad-value") from None
        newest = load_script(self.script_name).version if self.table else 0
        if self.table > newest:
            raise UsageError(
                f"trans: table={self.table}, but the newest table of {self.script_name} is {newest}",
                where="--t",
                fix="leave table out, or install a newer derivlang",
                id="bad-value",
            )
        if self.table == newest:
            object.__setattr__(self, "table", 0)  # equal transforms have equal specs

    @property
    def script_name(self) -> str:
        """The name of the script that words are written in."""
        offset = CLONES[self.clones - 1] if self.clones else self.offset
        return offset_name(offset) if offset else self.script

    @property
    def loaded(self) -> Script:
        """The script that words are written in."""
        return load_script(self.script_name, self.table)

    @classmethod
    def from_stored(cls, values: list[str], keyed: dict[str, str]) -> Self:
        """Return the transform of a stored spec. A spec without a table predates versions and means table 1."""
        return cls.from_values(values, {"table": "1", **keyed})

    @property
    def stored(self) -> str:
        """The spec with the version of the table, unless it is table 1."""
        version = self.loaded.version
        return str(replace(self, table=0)) + (f":table={version}" if version > 1 else "")

    @property
    def with_defaults(self) -> str:
        """The spec with every parameter, and the version of the table that is used in place of 0, the newest."""
        return f"{super().with_defaults.removesuffix(f':table={self.table}')}:table={self.loaded.version}"

    @property
    def needs_reference(self) -> bool:
        """Whether some types, but not all, are kept."""
        return 0 < self.overlap < 100

    def fit(self, types: pa.Array, counts: Int64, draws: Draws) -> TypeMap:
        """Return the transliteration, with the kept types chosen from the reference vocabulary."""
        fitted = Transliteration(self.loaded, self.overlap, self.by, draws)
        if not self.needs_reference:
            return fitted
        return replace(fitted, reference=_choose(fitted, types, counts))

    def load(self, state: str, draws: Draws) -> TypeMap:
        """Return the transliteration with the kept types of a saved section. Raise ValueError if it is damaged."""
        rows = read_rows(state, _HEADER)
        if any(row[3] not in ("kept", "changed") for row in rows):
            raise ValueError("each row must end with kept or changed")
        types = string_array([row[0] for row in rows])
        counts = np.array([int(row[2]) for row in rows], np.int64)
        kept = np.array([row[3] == "kept" for row in rows], bool)
        return Transliteration(self.loaded, self.overlap, self.by, draws, Reference(types, counts, kept))

    def warnings(self, step: TypeMap, types: pa.Array, counts: Int64) -> list[str]:
        """Return a warning if more than 1 % of the running words get private-use characters, with better scripts."""
        if self.script_name not in script_names() or self.script_name == PRIVATE:
            return []  # every letter gets such a character, or one that is unassigned
        share = private_share(self.loaded, types, counts, step.apply)
        if share <= MANY_PERCENT:
            return []
        others = {
            name: private_share(load_script(name), types, counts)
            for name in script_names()
            if name != PRIVATE and load_script(name) is not self.loaded
        }
        least = min(others.values())
        better = [name for name, percent in others.items() if percent <= max(least, MANY_PERCENT)]
        what = f"{share:.1f} % of the words hold characters that the script {self.script} has no letters for"
        if round(least, 1) >= round(share, 1):  # as both would be printed
            return [f"{what}; they become private-use characters, and no other script has fewer"]
        few = f"at most {MANY_PERCENT} %" if least <= MANY_PERCENT else f"{least:.1f} %"
        return [f"{what}; they become private-use characters. Fewer ({few}) under: trans:{', trans:'.join(better)}"]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The kept types of a reference vocabulary.

    types: Arrow strings [T]. counts: int64[T]. kept: bool[T].
    """

    types: pa.Array
    counts: Int64
    kept: Bool


@dataclass(frozen=True, slots=True)
class Transliteration:
    """The fitted map: an involution on types."""

    script: Script
    overlap: int
    by: By
    draws: Draws
    reference: Reference | None = None
    injective: bool = True

    def apply(self, types: pa.Array) -> pa.Array:
        """Return the image of each type; kept types and special tokens stay."""
        image = map_script(types, self.script)
        stays = _special(types, self.script)
        if self.overlap:
            stays |= self.kept(types, image)
        return pc.if_else(to_arrow(stays), types, image) if stays.any() else image

    def invert(self) -> TypeMap:
        """Return self, as the map is an involution."""
        return self

    def kept(self, types: pa.Array, image: pa.Array) -> Bool:
        """Return bool[T]: the types that the overlap keeps. A type and its image always get the same answer."""
        if self.overlap == 100:
            return np.ones(len(types), bool)
        assert self.reference is not None
        own, partner = (places_of(some, self.reference.types) for some in (types, image))
        kept = np.append(self.reference.kept, False)
        unseen = self.pair_keys(types, image) < np.uint64(self.overlap * ((1 << 64) // 100))
        return np.where(own >= 0, kept[own], np.where(partner >= 0, kept[partner], unseen & (self.by != "frequency")))

    def pair_keys(self, types: pa.Array, image: pa.Array) -> UInt64:
        """Return uint64[T]: the ranking keys of types. The sum of both hashes gives a type and its image one key."""
        return self.draws.draw(hash_types(types) + hash_types(image), np.zeros(len(types), np.int64))

    def state(self) -> str | None:
        """Return the section of `lexicon.tsv`: type, image, count, and kept or changed; None without a reference."""
        if self.reference is None:
            return None
        types, said = self.reference.types, np.where(self.reference.kept, "kept", "changed").tolist()
        counts, images = map(str, self.reference.counts.tolist()), self.apply(types).to_pylist()
        return write_rows(_HEADER, zip(types.to_pylist(), images, counts, said, strict=True))


def map_script(types: pa.Array, script: Script) -> pa.Array:
    """Return Arrow strings [T] mapped through a script, all code points in one look-up."""
    points, offsets = codepoints(types)
    return from_codepoints(script.map_codepoints(points), offsets)


def private_share(
    script: Script, types: pa.Array, counts: Int64, apply: Callable[[pa.Array], pa.Array] | None = None
) -> float:
    """Return the percentage of running words whose image holds a private-use character of planes 15 and 16.

    apply: maps types by the script, or keeps some of them; None to map all. An image can hold such a character only if
    the type holds one, or a character that becomes one. So only these types are mapped.
    """
    points, offsets = codepoints(types)
    at = np.flatnonzero(np.maximum(points, script.map_codepoints(points)) >= _PRIVATE_PLANES)
    asked = np.zeros(len(types), bool)
    asked[np.searchsorted(offsets, at, "right") - 1] = True
    some = types.filter(to_arrow(asked))
    image = map_script(some, script) if apply is None else apply(some)
    is_private = to_numpy(pc.match_substring_regex(image, r"[\x{F0000}-\x{10FFFD}]"))
    return 100 * int(counts[asked][is_private].sum()) / max(int(counts.sum()), 1)


def _special(types: pa.Array, script: Script) -> Bool:
    """Return bool[T]: the types that stay because they are special tokens, or because their image would be one.

    Mapped, the latter would become equal to the special token. A script is an involution, so they are the images of the
    special tokens.
    """
    specials = string_array(SPECIALS)
    return to_numpy(pc.is_in(types, value_set=pa.concat_arrays([specials, map_script(specials, script)])))


def _choose(fitted: Transliteration, types: pa.Array, counts: Int64) -> Reference:
    """Return the reference with its kept types.

    Types are ranked in groups: a single type, or a type with its image, led by the first of the two. A pair that no
    longer fits at the cut is skipped, and single types fill the room that is left:

        room for 3 types, ranked groups (a A) (b B) c   ->   a A c are kept
    """
    plain = ~_special(types, fitted.script)
    types, counts = types.filter(to_arrow(plain)), counts[plain]
    image, me = map_script(types, fitted.script), np.arange(len(types))
    partner = places_of(image, types)
    partner = np.where(partner < 0, me, partner)
    # partner[i]: the type that is the image of type i, or i itself.
    leader = np.minimum(me, partner)
    size = np.where(partner == me, 1, 2)
    weight = np.where(partner == me, counts, np.maximum(counts, counts[partner]))
    keys = fitted.pair_keys(types, image)
    rank = np.lexsort((keys, -weight)) if fitted.by == "frequency" else np.argsort(keys, kind="stable")
    rank = rank[leader[rank] == rank]  # one entry per group: its leader
    kept = np.zeros(len(me), bool)
    if fitted.by == "mass":
        mass = np.cumsum(np.where(partner == me, counts, counts + counts[partner])[rank])
        target = fitted.overlap * int(counts.sum())
        # The shortest prefix with at least the target; with the 0 in front, a target of 0 takes no group.
        chosen = rank[: int(np.searchsorted(np.append(0, mass * 100), target, "left"))]
    else:
        room = (2 * fitted.overlap * len(me) + 100) // 200  # floor(PT/100 + 1/2)
        filled = np.cumsum(size[rank])
        chosen = rank[filled <= room]
        left = room - int(size[chosen].sum())
        singles = rank[(filled > room) & (size[rank] == 1)]
        chosen = np.concatenate([chosen, singles[:left]])
    kept[chosen] = True
    kept[partner[chosen]] = True
    by = np.lexsort((hash_types(types), -counts))  # lexicon.tsv does not depend on how types were met
    return Reference(types.take(to_arrow(by)), counts[by], kept[by])
