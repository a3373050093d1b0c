"""The twin of a tokenizer: every entry and merge through a script, so that it reads the derived text as the source's.

    twin.encode(f(text)) = source.encode(text), id by id

The suffix and special tokens are not mapped. In *joint* ids, where both languages have a vocabulary together, the
source keeps its ids, and a twin's id i that is no special token is i + (V - n_special):

    0 … n_special - 1 | source's n_special … V - 1 | twin's V … 2V - n_special - 1

With an overlap, words (or sub-words) that are kept have the source's ids. `compat=paper` shifts by V, as the released
ALIGN-MLM does (size 2V, n_special rows unused). One *file* for both is exact only where no entry is the image of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from derivlang.core.arrays import Bool, Int32
from derivlang.core.errors import DataError
from derivlang.lexical.bpe import SUFFIX, Bpe
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.transforms.scripts import Script

Compat = Literal["exact", "paper"]
_LISTED = 20


def twin_of(source: Tokenizer, script: Script) -> Tokenizer:
    """The twin in a script; DataError where two entries would have one image (no tokenizer of derivlang has such)."""
    image = images(source.bpe, script)
    entries = tuple(image[entry] for entry in source.bpe.entries)
    if len(set(entries)) < len(entries):
        seen: set[str] = set()
        twice = [entry for entry in entries if entry in seen or seen.add(entry)]  # type: ignore[func-returns-value]
        raise DataError(f"entries have the same image in {script.name}: {_some(twice)}", id="clash")
    merges = tuple((image[left], image[right]) for left, right in source.bpe.merges)
    return Tokenizer(Bpe(entries, merges, source.n_special), (script.name,))


def images(bpe: Bpe, script: Script) -> dict[str, str]:
    """Each entry's image."""
    out = {entry: entry for entry in bpe.entries[: bpe.n_special]}
    for entry in bpe.entries[bpe.n_special :]:
        stem = entry.removesuffix(SUFFIX)
        out[entry] = script.map_text(stem) + entry[len(stem) :]
    return out


def clashes(source: Tokenizer, script: Script) -> list[str]:
    """The entries, special tokens aside, that are their own image or another's."""
    plain = source.bpe.entries[source.n_special :]
    known, image = set(plain), images(source.bpe, script)
    return [image[entry] for entry in plain if image[entry] in known]


def joint_file(source: Tokenizer, twin: Tokenizer, script: Script) -> Tokenizer:
    """One tokenizer for both languages, whose ids are the joint ones; DataError with the clashes where there are any.

    Exact for text whose characters the source's vocabulary holds: others are `<unk>` to the source, but may be a
    letter of the twin here.
    """
    found = clashes(source, script)
    if found:
        raise DataError(
            f"one file for both languages cannot be exact: {len(found):,} entries are also the image of one in "
            f"{script.name}: {_some(found)}",
            where="--joint",
            fix="leave --joint out: two files and the joint ids are exact; or take another script (private)",
            id="joint-clash",
        )
    entries = source.bpe.entries + twin.bpe.entries[twin.n_special :]
    bpe = Bpe(entries, source.bpe.merges + twin.bpe.merges, source.n_special)
    return Tokenizer(bpe, (*source.scripts, *twin.scripts))


@dataclass(frozen=True, slots=True, eq=False)
class JointIds:
    """vocab_size: V of either tokenizer. kept: bool[V], sub-words that both languages share, or None."""

    vocab_size: int
    n_special: int
    compat: Compat = "exact"
    kept: Bool | None = None

    @property
    def shift(self) -> int:
        """What is added to a twin's id."""
        return self.vocab_size - (0 if self.compat == "paper" else self.n_special)

    @property
    def size(self) -> int:
        """Rows of a joint embedding."""
        return self.vocab_size + self.shift

    def table(self) -> Int32:
        """int32[V]: the joint id of each id of the twin."""
        ids = np.arange(self.vocab_size, dtype=np.int32)
        moved = ids >= self.n_special
        if self.kept is not None:
            moved &= ~self.kept
        return np.where(moved, ids + np.int32(self.shift), ids)

    def of(self, encoded: Encoded, kept_words: Bool | None = None) -> Int32:
        """int32[M]: the derived language's joint ids of the sub-words of N source words, in their order.

        kept_words: bool[N], words that the lexicon keeps, which have the source's ids.
        """
        ids = self.table().take(encoded.ids)
        if kept_words is None or not kept_words.any():
            return ids
        return np.where(np.repeat(kept_words, np.diff(encoded.offsets)), encoded.ids, ids)


def _some(entries: list[str]) -> str:
    return ", ".join(entries[:_LISTED]) + (" …" if len(entries) > _LISTED else "")
