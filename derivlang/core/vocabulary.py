"""Map the words of a byte buffer to word codes, a whole buffer at a time.

A word of at most eight bytes is its own key: an unaligned 8-byte load, masked by its length. The key of a longer word
is a hash of its bytes with 0xFF as the last byte. 0xFF never occurs in UTF-8, so the two kinds of keys differ. A longer
word is compared byte by byte with the type that was found, so a hash collision is detected.

    Vocabulary().encode(b"a cat a ........", starts=[0, 2, 6], lengths=[1, 3, 1]) -> [0, 1, 0]
    keys  a 0x61, cat 0x746163 (the first byte is the lowest)

Each key has two slots in a hash table. A new key takes its first slot if that is free, else its second, else a place in
the sorted overflow table. Slots hold codes, and a code's key shows whether the slot was the right one:

    key     slots    becomes
    a       5, 2     code 0 in slot 5
    cat     5, 7     code 1 in slot 7, as 5 is taken
    dog     7, 5     code 2 in the overflow table, as both are taken

For measurements see `docs/design/speed.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from derivlang.core.arrays import (
    AT_ONCE,
    Bool,
    Int32,
    Int64,
    Ints,
    UInt8,
    UInt64,
    expand_ranges,
    lengths_of,
    offsets_of,
)
from derivlang.core.arrow import to_arrow
from derivlang.core.errors import DataError
from derivlang.core.keys import (
    BYTE_MASKS,
    GOLDEN,
    LONGEST,
    bytes_key,
    hash_bytes,
    load8,
    mix,
    string_buffers,
    strings_from,
)

_LONG = np.uint64(0xFF) << np.uint64(56)
_NOT_LONG = np.uint64((1 << 56) - 1)
_EMPTY = np.uint64(0xFE) << np.uint64(56)  # never a word's key, as 0xFE does not occur in UTF-8 either
_MIN_BITS = 16


class Vocabulary:
    """A growing table of distinct words. Codes count from 0 in the order of first occurrence.

    A buffer given to `encode` needs eight spare bytes after its last word.
    """

    def __init__(self) -> None:
        self._bits = _MIN_BITS
        # Slots hold only codes, and keys are compared by code. So the table is small and stays in the cache.
        self._slots_code = np.full(1 << self._bits, -1, np.int32)  # -1: free; its key is the last one, _EMPTY
        # These arrays have room for more types than the T that there are.
        self._size = 0  # T
        self._keys = np.full(1, _EMPTY, np.uint64)  # [T], and _EMPTY as the last one of the room
        self._offsets = np.zeros(1, np.int64)  # [T + 1] into _pool
        self._pool = np.zeros(8, np.uint8)  # bytes of all types, and at least eight spare ones
        # [T], the first eight bytes of each type and the next eight, to compare most long words without the pool.
        self._first = np.zeros(0, np.uint64)
        self._second = np.zeros(0, np.uint64)
        self._hashes = np.zeros(0, np.uint64)  # content hashes of the first types, filled on demand
        # The overflow table: sorted keys whose two slots other keys had taken, and their codes.
        self._overflow, self._overflow_codes = np.zeros(0, np.uint64), np.zeros(0, np.int32)
        self._types: pa.Array | None = None  # result of `types()`, until a word is added

    def __len__(self) -> int:
        return self._size

    def encode(self, buffer: UInt8, starts: Ints, lengths: Ints) -> Int32:
        """Return int32[n]: the code of each word `buffer[start:start + length]`. New words are added."""
        if len(starts) > AT_ONCE:
            parts = [slice(i, i + AT_ONCE) for i in range(0, len(starts), AT_ONCE)]
            return np.concatenate([self.encode(buffer, starts[part], lengths[part]) for part in parts])
        keys, long = _keys(buffer, starts, lengths)
        if not len(keys):
            return np.zeros(0, np.int32)
        codes, missed = self._lookup(keys)
        if missed.size:
            self._resolve(buffer, starts, lengths, keys, codes, missed)
        if long.at.size:
            self._verify(buffer, long, codes[long.at])
        return codes

    def encode_types(self, types: pa.Array) -> Int32:
        """Return int32[n]: the code of each of these types, Arrow strings [n]. New ones are added."""
        data, offsets = string_buffers(types)
        return self.encode(np.append(data, np.zeros(8, np.uint8)), offsets[:-1], lengths_of(offsets))

    def types(self) -> pa.Array:
        """Return Arrow strings [T], one for each code. Raise DataError for invalid UTF-8 (see `first_invalid`)."""
        if self._types is None:
            if (bad := self.first_invalid(0)) is not None:
                raise DataError(f"the word {bad!r} is not UTF-8", id="encoding")
            self._types = self.since(0)
        return self._types

    def since(self, code: int) -> pa.Array:
        """Return the types from a code on, Arrow strings [T - code]. They are not checked to be UTF-8."""
        offsets = self._offsets[code : self._size + 1]
        return strings_from(self._pool[offsets[0] : offsets[-1]], offsets - offsets[0])

    def first_invalid(self, since: int) -> bytes | None:
        """Return the first type from code `since` on that is not UTF-8, or None."""
        if since >= len(self):
            return None
        offsets = self._offsets[since : self._size + 1]
        joined = bytes(self._pool[offsets[0] : offsets[-1]])
        starts = self._pool[offsets[:-1][offsets[:-1] < offsets[1:]]]
        try:
            joined.decode()
            # All types joined are valid, but a type may begin inside a character: with a byte 10xxxxxx.
            broken = bool(((starts & 0xC0) == 0x80).any())
        except UnicodeDecodeError:
            broken = True
        if broken:
            for start, end in pairwise(offsets):
                word = bytes(self._pool[start:end])
                try:
                    word.decode()
                except UnicodeDecodeError:
                    return word
        return None

    def subset(self, used: Ints) -> pa.Array:
        """Return the types of these codes, Arrow strings [len(used)]."""
        # The offsets of all types may need 64 bits.
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._pool)]
        every = pa.Array.from_buffers(pa.large_string(), self._size, buffers)
        return every.take(to_arrow(used)).cast(pa.string())

    def hashes(self, used: Ints | None = None) -> UInt64:
        """Return the content hashes (`keys.hash_types`), uint64, of the types of these codes, or of all types."""
        known = len(self._hashes)
        if known < len(self):
            offsets = self._offsets[known : self._size + 1]
            self._hashes = np.concatenate([self._hashes, hash_bytes(self._pool, offsets[:-1], np.diff(offsets))])
        return self._hashes if used is None else self._hashes[used]

    def _lookup(self, keys: UInt64) -> tuple[Int32, Int64]:
        """Return (int32[n] codes, the positions of keys that are in neither of their slots, whose codes are wrong).

        An empty slot holds -1, and `_keys[-1]` is _EMPTY, which equals no key.
        """
        first, second = self._slots(keys)
        codes = self._slots_code.take(first, mode="clip")
        again = np.flatnonzero(self._keys.take(codes, mode="wrap") != keys)
        if again.size:
            second_codes = self._slots_code.take(second(again), mode="clip")
            codes[again] = second_codes
            again = again[self._keys.take(second_codes, mode="wrap") != keys[again]]
        return codes, again

    def _slots(self, keys: UInt64):  # type: ignore[no-untyped-def]
        """Return (the first slot of each key, a function that returns the second slots of some of them).

        Both come from one mixed number: the first slot from its highest bits, the second from its lowest. Few keys need
        the second slot, so it is computed only for these.
        """
        shift = np.uint64(64 - self._bits)
        spun = keys * GOLDEN
        spun ^= spun >> np.uint64(29)
        spun *= GOLDEN
        first = (spun >> shift).astype(np.int64)
        mask = np.uint64((1 << self._bits) - 1)
        return first, lambda which: (spun[which] & mask).astype(np.int64)

    def _resolve(self, buffer: UInt8, starts: Ints, lengths: Ints, keys: UInt64, codes: Int32, missed: Int64) -> None:
        """Set the codes of the words at `missed`, in place: those in the overflow table, then new types.

        missed words dog cat dog: first seen at 0 1 0  ->  new codes dog n, cat n + 1
        """
        if len(self._overflow):
            full = np.flatnonzero(codes[missed] >= 0)  # a key whose second slot is free is not in the overflow table
            wanted = keys[missed[full]]
            at = np.minimum(np.searchsorted(self._overflow, wanted), len(self._overflow) - 1)
            old = self._overflow[at] == wanted
            codes[missed[full[old]]] = self._overflow_codes[at[old]]
            missed = np.delete(missed, full[old])
        if not missed.size:
            return
        wanted = keys[missed]
        first = _first_places(wanted)
        is_new = first == np.arange(len(first), dtype=np.int32)
        number = np.cumsum(is_new, dtype=np.int32) + np.int32(len(self) - 1)
        codes[missed] = number[first]
        where = missed[is_new]
        self._add(buffer, np.asarray(starts)[where], np.asarray(lengths)[where], wanted[is_new])

    def _add(self, buffer: UInt8, starts: Ints, lengths: Ints, keys: UInt64) -> None:
        """Add new types. The table grows when more than half of its slots would be taken."""
        lengths = lengths.astype(np.int64)
        bytes_ = buffer[expand_ranges(starts, lengths)]
        size = self._size
        end = int(self._offsets[size])
        self._pool = _appended(self._pool, end, bytes_, 8)
        self._offsets = _appended(self._offsets, size, end + offsets_of(lengths))
        self._keys = _appended(self._keys, size, keys, 1)
        self._keys[-1] = _EMPTY
        loads, second = load8(buffer), np.minimum(lengths - 8, 8)
        self._first = _appended(self._first, size, loads[starts] & BYTE_MASKS[np.minimum(lengths, 8)])
        rest = np.where(second > 0, loads[starts + np.where(second > 0, 8, 0)], 0)
        self._second = _appended(self._second, size, rest & BYTE_MASKS[np.maximum(second, 0)])
        self._size += len(keys)
        self._types = None
        if len(self) * 2 > (1 << self._bits):
            while len(self) * 2 > (1 << self._bits):
                self._bits += 1
            self._slots_code = np.full(1 << self._bits, -1, np.int32)
            self._overflow, self._overflow_codes = np.zeros(0, np.uint64), np.zeros(0, np.int32)
            self._insert(np.arange(len(self), dtype=np.int32))
        else:
            self._insert(np.arange(len(self) - len(keys), len(self), dtype=np.int32))

    def _insert(self, codes: Int32) -> None:
        """Put codes into their first slot if it is free, else into their second, else into the overflow table."""
        keys = self._keys[codes]
        first, second = self._slots(keys)
        left = np.arange(len(codes))  # those that have no slot yet
        for probe in (first, second(left)):
            slots, wanted = probe[left], codes[left]
            free = self._slots_code[slots] < 0
            # If several codes want a slot, the earliest gets it: numpy keeps the value that is written last.
            self._slots_code[slots[free][::-1]] = wanted[free][::-1]
            left = left[self._slots_code[slots] != wanted]
        if len(left):
            both = np.concatenate([self._overflow, keys[left]])
            by = np.argsort(both)
            self._overflow = both[by]
            self._overflow_codes = np.concatenate([self._overflow_codes, codes[left]])[by]

    def _verify(self, buffer: UInt8, long: _Long, codes: Int32) -> None:
        """Compare every word of more than eight bytes with its type. Raise DataError for a hash collision."""
        starts, lengths = long.starts, long.lengths
        at = self._offsets[codes]
        same: Bool = (self._offsets[codes + 1] - at == lengths) & (self._first[codes] == long.first)
        same &= self._second[codes] == long.second
        for i in np.flatnonzero(same & (lengths > LONGEST)):
            word = buffer[starts[i] : starts[i] + lengths[i]]
            same[i] = np.array_equal(word, self._pool[at[i] : at[i] + lengths[i]])
        ours, theirs = load8(buffer), load8(self._pool)
        # The other bytes, eight at a time: a word of 20 bytes is compared once more, masked to four bytes.
        active, done = np.flatnonzero(same & (lengths > 16) & (lengths <= LONGEST)), 16
        while active.size and same.all():
            left = lengths[active] - done
            differ = ours[starts[active] + done] ^ theirs[at[active] + done]
            same[active] = (differ & BYTE_MASKS[np.minimum(left, 8)]) == 0
            done += 8
            active = active[left > 8]
        if not same.all():
            bad = int(np.flatnonzero(~same)[0])
            text = bytes(buffer[starts[bad] : starts[bad] + lengths[bad]])
            raise DataError(
                f"the word {text!r} has the same 56-bit hash as another word",
                fix="please report this text: no such pair was known",
                id="hash-collision",
            )


def _first_places(keys: UInt64) -> Int32:
    """Return int32[n]: where each key occurs first.

    Every key writes its place into a slot of a table. Keys that find another key's place in theirs try another slot.

    keys dog cat dog, cat's slot is dog's  ->  0 0 0, then cat by itself  ->  0 1 0
    """
    first, left = np.zeros(len(keys), np.int32), np.arange(len(keys), dtype=np.int32)
    bits = len(keys).bit_length() + 1
    table = np.empty(1 << bits, np.int32)
    salt = 0
    while left.size:
        wanted = keys[left]
        slots = (mix(wanted + np.uint64(salt)) >> np.uint64(64 - bits)).astype(np.int64)
        table[slots[::-1]] = left[::-1]  # of several places for one slot, numpy keeps the last one written: the first
        first[left] = found = table[slots]
        left = left[keys[found] != wanted]
        salt += 1
    return first


def _appended(array: NDArray[Any], size: int, values: NDArray[Any], spare: int = 0) -> NDArray[Any]:
    """Return an array with values after its first `size` elements and room for `spare` more.

    An array without room is copied to one of twice the size, so that a growing one is copied a few times only.
    """
    needed = size + len(values) + spare
    if needed > len(array):
        array = np.concatenate([array[:size], np.zeros(max(needed, 2 * len(array)) - size, array.dtype)])
    array[size : size + len(values)] = values
    return array


@dataclass(frozen=True, slots=True)
class _Long:
    """L words of more than eight bytes.

    at: int64[L], their positions among all words. starts, lengths: int64[L], in the buffer. first, second: uint64[L],
    bytes 0 to 7 and 8 to 15 of each.
    """

    at: Int64
    starts: Int64
    lengths: Int64
    first: UInt64
    second: UInt64


def _keys(buffer: UInt8, starts: Ints, lengths: Ints) -> tuple[UInt64, _Long]:
    """Return the keys, uint64[n], and the words of more than eight bytes."""
    loads = load8(buffer)
    keys = loads[starts]
    keys &= BYTE_MASKS.take(lengths, mode="clip")
    at = np.flatnonzero(lengths > 8)
    begin, size, first = starts[at].astype(np.int64), lengths[at].astype(np.int64), keys[at]
    second = loads[begin + 8] & BYTE_MASKS.take(size - 8, mode="clip")
    long = _Long(at, begin, size, first, second)
    if at.size:
        hashed = mix(mix(first ^ (size.astype(np.uint64) * GOLDEN)) ^ second)
        for i in np.flatnonzero(size > LONGEST):
            hashed[i] = bytes_key(buffer[begin[i] : begin[i] + size[i]])
        active, done = np.flatnonzero((size > 16) & (size <= LONGEST)), 16
        while active.size:
            left = size[active] - done
            chunk = loads[begin[active] + done] & BYTE_MASKS[np.minimum(left, 8)]
            hashed[active] = mix(hashed[active] ^ chunk)
            done += 8
            active = active[left > 8]
        keys[at] = (hashed & _NOT_LONG) | _LONG
    return keys, long
