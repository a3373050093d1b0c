"""The tokenizer of a checkpoint: a fast tokenizer of `transformers`, whose sub-words are assigned to words by offsets.

    words      we lower it             text      "we lower it"
    sub-words  we _low er _it          offsets   0-2 2-6 6-8 8-11        a space belongs to the word that it precedes

Each sentence is a text of its own: its words, joined by spaces. Special tokens in a text are read as other text, or as
the unknown token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, offsets_of, owners
from derivlang.core.errors import StoreError, parse_errors
from derivlang.lexical.encoding import Encoded
from derivlang.lexical.pretrained import from_pretrained
from derivlang.lexical.tokenizer import RECIPE
from derivlang.store.record import short

TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"
# What transformers writes for a tokenizer besides these two, as far as it is known.
OTHER_FILES = (
    "*.codes", "*.jinja", "*.model", "*.spm", "*.tiktoken", "*.tokenizer", "*vocab*", "added_tokens.json",
    "byte_maps.json", "dict.txt", "emoji.json", "merges.txt", "normalizer.json", "special_tokens_map.json",
    "tekken.json", "word_*.json",
)  # fmt: skip
_MOST_ENTRIES = 1 << 24
_TEXTS_AT_ONCE = 1 << 12  # bounds memory: `tokenizers` makes an object of each text
_ROLES = (("cls_token_id", "bos_token_id"), ("pad_token_id",), ("sep_token_id", "eos_token_id"), ("mask_token_id",))


@dataclass(frozen=True, eq=False)
class ForeignTokenizer:
    """A tokenizer that was made elsewhere. whole: the tokenizer of `transformers`."""

    whole: Any
    folder: Path

    @classmethod
    def load(cls, folder: Path) -> ForeignTokenizer:
        """Read the tokenizer of a checkpoint's folder. Raise StoreError if there is none, or not a fast one."""
        from transformers import AutoTokenizer

        with parse_errors(str(folder), "tokenizer", error=StoreError, id="tokenizer"):
            _check_ids(folder / TOKENIZER)
            whole = from_pretrained(AutoTokenizer, folder)
        if not getattr(whole, "is_fast", False):
            raise StoreError(
                "its tokenizer gives no offsets of characters",
                where=str(folder),
                fix="use a checkpoint with a fast tokenizer (tokenizer.json)",
                id="tokenizer",
            )
        tokenizer = cls(whole, folder)
        with parse_errors(str(folder), "tokenizer", error=StoreError, id="tokenizer"):
            tokenizer.fingerprint, tokenizer.own  # noqa: B018 (a damaged file shows only when it is used)
        return tokenizer

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files into a folder."""
        self.whole.save_pretrained(str(folder))

    @property
    def size(self) -> int:
        """The highest id + 1. Vocabularies may have gaps, e.g. where two lines of a file are the same entry."""
        return max(self._ids) + 1

    @property
    def end(self) -> int:
        return self.size

    @property
    def table(self) -> Int32:
        """int32[V]: the id of each entry."""
        return np.arange(self.size, dtype=np.int32)

    @property
    def special_ids(self) -> tuple[int | None, ...]:
        """The ids of the begin, padding, end and mask tokens; None for one that the tokenizer lacks."""
        candidates = ([getattr(self.whole, name, None) for name in names] for names in _ROLES)
        return tuple(next((i for i in ids if i is not None), None) for ids in candidates)

    @property
    def unknown(self) -> int | None:
        """The id of text that the tokenizer cannot represent."""
        unknown_id: int | None = self.whole.unk_token_id
        return unknown_id

    @property
    def own(self) -> Int32:
        """int32[K]: the ids of all entries that are not special."""
        return np.setdiff1d(self._ids, self.whole.all_special_ids).astype(np.int32)

    @property
    def entries(self) -> list[str]:
        """The entries by id, without what marks the begin or the inside of a word (`##`, `▁`, `Ġ`); "" at a gap."""
        tokens: list[str | None] = self.whole.convert_ids_to_tokens(list(range(self.size)))
        return [(entry or "").removeprefix("##").lstrip("▁Ġ") for entry in tokens]

    @cached_property
    def _ids(self) -> list[int]:
        """The ids of all entries, in any order."""
        return list(self.whole.get_vocab().values())

    @cached_property
    def _specials(self) -> Int32:
        """int32[K]: the ids of special tokens except the unknown one."""
        return np.setdiff1d(self.whole.all_special_ids, [self.unknown]).astype(np.int32)

    @cached_property
    def _library(self) -> Any:
        from tokenizers import Tokenizer

        library = Tokenizer.from_str(self.whole.backend_tokenizer.to_str())
        library.no_padding()
        library.no_truncation()
        library.encode_special_tokens = True
        return library

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that identify everything the ids of a text depend on."""
        text = f"{self._library.to_str()}{self.special_ids}"
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def encode(self, types: pa.Array, codes: Int32, offsets: Int64) -> Encoded:
        """Return the sub-words of the words of sentences. A word may have no sub-word.

        types: Arrow strings; codes: int32[N], the type of each word; offsets: int64[S + 1], of the sentences. Raise
        StoreError if a word is unknown and the tokenizer has no entry for that.
        """
        words = types.to_pylist()
        ids, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for begin in range(0, len(offsets) - 1, _TEXTS_AT_ONCE):
            ends = offsets[begin : begin + _TEXTS_AT_ONCE + 1]
            forms = [words[code] for code in codes[ends[0] : ends[-1]].tolist()]
            sizes = np.fromiter(map(len, forms), np.int64, len(forms))
            new_ids, word = self._sentences(forms, sizes, ends - ends[0])
            ids.append(new_ids)
            counts.append(np.bincount(word, minlength=len(forms)))
        return Encoded(np.concatenate(ids), offsets_of(np.concatenate(counts)))

    def _sentences(self, forms: list[str], sizes: Int64, offsets: Int64) -> tuple[Int32, Int64]:
        """Return (int32[M] ids, int64[M] word of each) of sentences. sizes: number of characters of each word.

        A sub-word that begins at a character belongs to the word that ends after it. With words of 2, 5 and 2
        characters the ends are 2, 8 and 11: a sub-word from 2 (the space) to 6 belongs to word 1, one from 8 to word 2.
        """
        texts = [" ".join(forms[a:b]) for a, b in pairwise(offsets.tolist())]
        sentence = owners(offsets)
        # of each word, the end in its sentence's text: characters so far, and a space before each but the first
        ends = np.cumsum(sizes + 1) - 1
        ends -= np.append(0, np.cumsum(sizes + 1))[offsets[:-1]][sentence]
        # it fails at an unknown word, if it has no entry for such words
        with parse_errors(str(self.folder), "tokenizer", error=StoreError, id="tokenizer"):
            encodings = self._library.encode_batch(texts, add_special_tokens=False)
        counts = np.fromiter((len(one) for one in encodings), np.int64, len(encodings))
        ids = np.array([i for one in encodings for i in one.ids], np.int32)
        if self.unknown is not None:  # some models have special tokens among the pieces of other words
            ids[np.isin(ids, self._specials)] = self.unknown
        starts = np.array([start for one in encodings for start, _ in one.offsets], np.int64)
        text = np.repeat(np.arange(len(encodings)), counts)
        # one search for all sentences: each has a range of numbers of its own
        room = int(ends.max(initial=0)) + 2
        word = np.searchsorted(sentence * room + ends, text * room + starts, "right")
        last = offsets[1:][text] - 1  # white space after the last word
        return ids, np.minimum(word, last)


def is_foreign(folder: Path) -> bool:
    """Return whether a folder holds a tokenizer that derivlang did not make."""
    return (folder / CONFIG).is_file() and not (folder / RECIPE).exists()


def _check_ids(path: Path) -> None:
    """Raise ValueError for an id that no vocabulary has: `tokenizers` would allocate memory for all below it."""
    if not path.exists():  # made from other files
        return
    content = json.loads(path.read_text("utf-8"))
    vocabulary = (content.get("model") or {}).get("vocab")
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    ids += [token["id"] for token in content.get("added_tokens") or ()]
    if wrong := [i for i in ids if not isinstance(i, int) or not 0 <= i < _MOST_ENTRIES]:
        raise ValueError(f"an entry has the id {short(wrong[0])}")
