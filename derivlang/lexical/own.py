"""A tokenizer of derivlang that reads a text by itself, behind the same interface as the tokenizer of a checkpoint.

Two such tokenizers of one model share the special tokens, and the ids of the second go on where the first ends:

    5 special tokens, V = 100 and 80 entries      ids 0 … 4      5 … 99            100 … 174
                                                  both           of the first      of the second, its 5 … 79

With a twin it reads the words of the twin's language, with joint ids (twin.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64
from derivlang.lexical.bpe import SUFFIX
from derivlang.lexical.encoding import Encoded, SubwordEncoder
from derivlang.lexical.tokenizer import Tokenizer
from derivlang.lexical.twin import Twin


@dataclass(frozen=True, eq=False)
class OwnTokenizer:
    """A tokenizer of derivlang, as `encoder` has it. folder: where it is.

    first: the id of its first entry that is not special. twin: of the language that it reads, None for its own.
    """

    encoder: SubwordEncoder
    folder: Path
    first: int
    twin: Twin | None = None

    @classmethod
    def load(cls, folder: Path, after: OwnTokenizer | None = None) -> OwnTokenizer:
        """Read a folder. after: the tokenizer whose ids it follows. Raise StoreError as `Tokenizer.load`."""
        tokenizer = Tokenizer.load(folder)
        return cls(SubwordEncoder(tokenizer), folder, tokenizer.n_special if after is None else after.end)

    @property
    def tokenizer(self) -> Tokenizer:
        return self.encoder.tokenizer

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files into a folder, with the tokenizer's own ids."""
        self.tokenizer.save(folder)

    @property
    def kind(self) -> str:
        """What it was trained on: `source`, `derived` or `both`."""
        kind: str = self.tokenizer.recipe["kind"]
        return kind

    @property
    def n_special(self) -> int:
        return self.tokenizer.n_special

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.tokenizer.size

    @property
    def end(self) -> int:
        """The highest id + 1."""
        return self.first + self.size - self.n_special if self.twin is None else self.twin.joint.size

    @property
    def fingerprint(self) -> str:
        return self.tokenizer.fingerprint()

    @property
    def special_ids(self) -> tuple[int, ...]:
        return self.tokenizer.special_ids

    @property
    def unknown(self) -> int:
        return self.tokenizer.unknown

    @property
    def own(self) -> Int32:
        """int32[K]: the ids of all entries that are not special."""
        return self.table[self.n_special :]

    @property
    def table(self) -> Int32:
        """int32[V]: the id of each entry."""
        if self.twin is not None:
            return self.twin.joint.table()
        return np.concatenate(
            [np.arange(first, end, dtype=np.int32) for first, end in ((0, self.n_special), (self.first, self.end))]
        )

    @property
    def ids(self) -> dict[str, int]:
        """The id of each entry, in the order of the tokenizer."""
        tokenizer = self.tokenizer if self.twin is None else self.twin.tokenizer
        return dict(zip(tokenizer.bpe.entries, self.table.tolist(), strict=True))

    @property
    def entries(self) -> list[str]:
        """The entries in the order of the tokenizer, without the mark of the word's end."""
        return [entry.removesuffix(SUFFIX) for entry in self.ids]

    def encode(self, types: pa.Array, codes: Int32, offsets: Int64) -> Encoded:
        """Return the sub-words of the words of sentences, as `ForeignTokenizer.encode` does."""
        if self.twin is not None:
            return self.twin.encode_words(self.encoder, types, codes)
        encoded = self.encoder.types(types).take(codes)
        return Encoded(self.table[encoded.ids], encoded.offsets)
