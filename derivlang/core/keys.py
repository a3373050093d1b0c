"""Content keys and keyed draws: randomness as a function, not a stream.

    key(sentence) = mix(sum over positions p of hash(word_p) * odd(p)  +  length * G)   64 bits
    draw(stream, key, p) = mix(mix(stream ^ key) + (p + 1) * G)                          64 bits

`mix` is the finaliser of splitmix64 (Steele, Lea, Flood 2014), G the golden ratio in 64 bits. `stream` is a hash of
everything else that a draw depends on: seed, transform, parameters, rule version, occurrence. Equal sentences get equal
draws in every file and at every position. Neighbouring seeds give unrelated draws because the seed is hashed with the
rest; with `mix(key + seed * G)`, seeds s and s + 1 would repeat each other. `tests/test_keys.py` tests uniformity and
independence of the draws by chi-square.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrays import (
    Float64,
    Int64,
    Ints,
    UInt8,
    UInt32,
    UInt64,
    lengths_of,
    offsets_of,
    positions,
)
from derivlang.core.arrow import to_numpy

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)

# Longer words, in bytes, are hashed one by one: a line without spaces may be one word of a megabyte.
LONGEST = 64
# Masks that keep the first 0 … 8 bytes of a little-endian 8-byte load.
BYTE_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], np.uint64)


def mix(x: UInt64) -> UInt64:
    """Return the finaliser of splitmix64, a bijection, of uint64 of any shape."""
    z = x ^ (x >> _S30)
    z *= _M1
    z ^= z >> _S27
    z *= _M2
    z ^= z >> _S31
    return z


def text_key(text: str) -> np.uint64:
    """Return a 64-bit key of a text, for the parts of a stream that are not arrays."""
    return bytes_key(np.frombuffer(text.encode(), np.uint8))


def bytes_key(data: UInt8) -> np.uint64:
    """Return a 64-bit BLAKE2b hash of bytes."""
    return np.uint64(int.from_bytes(hashlib.blake2b(data.tobytes(), digest_size=8).digest(), "little"))


def load8(data: UInt8) -> UInt64:
    """Return a view of all unaligned little-endian 8-byte loads of `data`: element i is bytes i … i + 7."""
    return np.ndarray(shape=(max(len(data) - 7, 0),), dtype="<u8", buffer=data, strides=(1,))


def hash_bytes(data: UInt8, starts: Ints, lengths: Ints) -> UInt64:
    """Return uint64[n]: a hash of each `data[start:start + length]`. `data` needs eight spare bytes at its end."""
    loads = load8(data)
    lengths = lengths.astype(np.int64, copy=False)
    hashes = mix((lengths + 1).astype(np.uint64) * GOLDEN)
    for at in np.flatnonzero(lengths > LONGEST):
        hashes[at] = bytes_key(data[starts[at] : starts[at] + lengths[at]])
    active = np.flatnonzero((lengths > 0) & (lengths <= LONGEST))
    done = 0
    while active.size:
        left = lengths[active] - done
        chunk = loads[starts[active] + done] & BYTE_MASKS[np.minimum(left, 8)]
        hashes[active] = mix(hashes[active] ^ chunk)
        done += 8
        active = active[left > 8]
    return hashes


def hash_types(types: pa.Array) -> UInt64:
    """Return uint64[T]: a hash of the UTF-8 bytes of each word type (Arrow strings without nulls)."""
    data, offsets = string_buffers(types)
    return hash_bytes(np.concatenate([data, np.zeros(8, np.uint8)]), offsets[:-1], lengths_of(offsets))


def sequence_keys(word_hashes: UInt64, offsets: Ints) -> UInt64:
    """Return uint64[S]: the key of each word sequence. word_hashes: uint64[N]; offsets: [S + 1], empty ones allowed.

    A sequence's sum is the difference of two running sums. They wrap around at 2^64, and so does the difference.
    """
    lengths = lengths_of(offsets)
    longest = int(lengths.max(initial=0))
    odd = mix(np.arange(1, longest + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)
    running = np.zeros(len(word_hashes) + 1, np.uint64)
    np.cumsum(word_hashes * odd.take(positions(offsets), mode="clip"), out=running[1:])
    sums = running[offsets[1:]] - running[offsets[:-1]]
    return mix(sums + lengths.astype(np.uint64) * GOLDEN)


def draw(stream: np.uint64, keys: UInt64, positions: Ints) -> UInt64:
    """Return uint64[n]: the draw of each (key, position) in a stream."""
    return mix(mix(stream ^ keys) + (positions.astype(np.uint64) + np.uint64(1)) * GOLDEN)


def uniform(draws: UInt64, below: Ints) -> Int64:
    """Return int64[n]: each draw as a whole number from 0 to `below` - 1 (below 2^31)."""
    high = draws >> np.uint64(32)
    return ((high * below.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def fractions(draws: UInt64) -> Float64:
    """Return float64[n]: each draw as a number from 0 to below 1, with 53 bits."""
    return (draws >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True, slots=True)
class Draws:
    """A stream of keyed draws: everything that a draw depends on except the key and the position.

    generator: numpy's or Python's, of a transform that draws in sequence (`Transform.keyed`); None for all others.
    """

    name: str
    generator: Any = field(default=None, compare=False)

    def draw(self, keys: UInt64, positions: Ints) -> UInt64:
        """Return uint64[n]: one draw for each (key, position). Equal arguments give equal draws."""
        return draw(text_key(self.name), keys, positions)


def string_buffers(strings: pa.Array) -> tuple[UInt8, Ints]:
    """Return (bytes uint8[B], offsets int64[T + 1] from 0) of an Arrow string array without nulls."""
    data, offsets = _buffers(strings)
    return data[offsets[0] : offsets[-1]], offsets.astype(np.int64) - offsets[0]


def _buffers(strings: pa.Array) -> tuple[UInt8, Ints]:
    """Return (bytes, offsets [T + 1] into them) of an Arrow string array without nulls, both over its memory."""
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    width = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    _, offset_buffer, data_buffer = strings.buffers()
    if len(strings) == 0 or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(len(strings) + 1, np.int64)
    offsets: Any = np.frombuffer(offset_buffer, width)[strings.offset : strings.offset + len(strings) + 1]
    return np.frombuffer(data_buffer, np.uint8) if data_buffer else np.zeros(0, np.uint8), offsets


def joined(strings: pa.Array, offsets: Ints) -> pa.Array:
    """Return Arrow strings [U]: strings offsets[u] … offsets[u + 1] - 1 as one, without anything between them.

    The bytes of Arrow strings follow each other anyway, so that only the offsets change.
    """
    data, begins = _buffers(strings)
    ends = begins[offsets]
    return strings_from(data[begins[0] : begins[-1]], ends - begins[0])


def strings_from(data: UInt8, offsets: Ints) -> pa.Array:
    """Return an Arrow string array over bytes uint8[B] and offsets [T + 1]. The bytes are not checked to be UTF-8."""
    return pa.StringArray.from_buffers(
        len(offsets) - 1,
        pa.py_buffer(np.ascontiguousarray(offsets, np.int32)),
        pa.py_buffer(np.ascontiguousarray(data)),
    )


def codepoints(strings: pa.Array) -> tuple[UInt32, Int64]:
    """Return (code points uint32[L], offsets int64[T + 1] into them) of an Arrow string array without nulls."""
    data, _ = string_buffers(strings)
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    return points, offsets_of(to_numpy(pc.utf8_length(strings)))


def from_codepoints(points: UInt32, offsets: Ints) -> pa.Array:
    """Return an Arrow string array from code points and their offsets [T + 1]."""
    # Bytes of a code point in UTF-8: one, and one more from each of these on.
    width = np.ones(len(points), np.uint8)
    for least in (0x80, 0x800, 0x10000):
        width += (points >= least).view(np.uint8)
    encoded = points.tobytes().decode("utf-32-le").encode()
    return strings_from(np.frombuffer(encoded, np.uint8), offsets_of(width)[offsets])
