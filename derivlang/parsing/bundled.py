"""The parser of a stored model: one of this package, or one that `derivlang parser train` made.

    words -> equal sentences once -> normalise -> cut very long sentences -> network, on sentences of similar length
          -> trees -> restore words -> all sentences

The parse of a sentence is meant to depend on its words only: not on other sentences, the number of threads or the
processor. `inference.py` says how far float32 allows that.

Very long sentences: cut into parts that are parsed separately, then joined into one tree.

The table of arcs grows with the square of the length, and no treebank has trees of 2,000 words to learn from. So a
sentence of more than LONGEST words is cut. Of the next LONGEST words, a part ends after the last `;`, `:`, `.`, `!` or
`?` in the second half, else after the last comma, dash or bracket there, else after all of them. The root of the first
part is the root of the sentence; the roots of the other parts depend on it as `parataxis` (a punctuation mark as
`punct`).

Equal sentences are parsed once. Headings and short lines come again in
any corpus, and in NLI each premise stands in several pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Float32, Int32, Int64, UInt8, lengths_of, take_rows
from derivlang.core.threads import one_thread
from derivlang.formats.progress import words_done
from derivlang.parsing.base import UPOS, Parses
from derivlang.parsing.inference import Network, PackedSentences, best_heads
from derivlang.parsing.model import PACKAGE, StoredModel, load_model, readable
from derivlang.parsing.normalise import NormalisedWords, normalise, restore

LONGEST = 160  # words; the longest sentence of UD English-EWT has 159
_STRONG, _WEAK = set(";:.!?") | {"..."}, set(",-)]}")


def cut_long(words: Int32, types: Sequence[str], sentences: Int64) -> Int64:
    """Return int64[P + 1], the word offsets of the parts; `sentences` itself if none is too long."""
    long = np.flatnonzero(lengths_of(sentences) > LONGEST)
    if not len(long):
        return sentences
    cuts = []
    for row in long.tolist():
        start, end = int(sentences[row]), int(sentences[row + 1])
        while end - start > LONGEST:
            start += _first_part([types[code] for code in words[start : start + LONGEST]])
            cuts.append(start)
    return np.sort(np.concatenate([sentences, np.array(cuts, np.int64)]))


def _first_part(words: Sequence[str]) -> int:
    """Return how many of LONGEST words are a part."""
    for marks in (_STRONG, _WEAK):
        for n in range(len(words), len(words) // 2, -1):
            if words[n - 1] in marks:
                return n
    return len(words)


def hang_together(
    upos: UInt8, head: Int32, deprel: Int32, parts: Int64, sentences: Int64, relations: Sequence[str]
) -> None:
    """Turn heads of parts (parts: int64[P + 1]) into heads of sentences (sentences: int64[S + 1]), in place.

    A sentence of 5 words in parts of 2 and 3 words, with heads 2 0 | 2 0 2: its root is word 2 (`top`). The second part
    begins at word 2 (from 0), so its heads 2 and 2 become 4 and 4, and its root depends on word 2: 2 0 4 2 4.
    """
    punct, parataxis = relations.index("punct"), relations.index("parataxis")
    for row in np.flatnonzero(lengths_of(sentences) > LONGEST).tolist():
        start, end = int(sentences[row]), int(sentences[row + 1])
        # an empty sentence before this one is a part that begins here, too
        bounds = parts[np.searchsorted(parts, start, "right") - 1 : np.searchsorted(parts, end) + 1].tolist()
        top = int(np.flatnonzero(head[start : bounds[1]] == 0)[0]) + 1
        for a, b in pairwise(bounds[1:]):
            part = head[a:b]
            root = a + int(np.flatnonzero(part == 0)[0])
            # First the shift of the heads inside the part, then the root: `top` already counts in the sentence.
            part[part > 0] += a - start
            head[root] = top
            deprel[root] = punct if upos[root] == UPOS.index("PUNCT") else parataxis


def distinct_sentences(words: Int32, sentences: Int64) -> tuple[Int64, Int64]:
    """Return (int64[D] the first of each kind of equal sentences, ascending; int64[S] the kind of each sentence).

    words: int32[N], codes of the words. sentences: int64[S + 1]. Sentences a b a c -> [0, 1, 3], [0, 1, 0, 2].
    """
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(words[a:b].tobytes(), len(kinds)) for a, b in pairwise(sentences.tolist())]
    return np.unique(np.array(kind, np.int64), return_index=True)[1], np.array(kind, np.int64)


WORDS_AT_ONCE = 3072  # words of a batch, with padding up to the longest sentence: more take memory and no less time
FEWEST = 24  # sentences of a batch: with fewer, products wait for the weights from memory
MOST = 512  # sentences of a batch: with more, the gates of a step take most of the memory


@dataclass(frozen=True, eq=False)
class ModelParser:
    """A `Parser` (`base.py`) that runs a stored model."""

    name: str
    model: StoredModel
    network: Network

    @classmethod
    def load(cls, folder: Path, name: str | None = None) -> ModelParser:
        """Load the model of a folder. Raises DataError parser-missing, parser-damaged."""
        model = load_model(folder)
        with readable(folder), one_thread():
            parser = cls(name or str(folder), model, Network(model))
            # Matrices that do not fit together raise ValueError here, with a sentence of two words.
            parser._batch(parser.network.vectors(["a", "b"]), np.arange(2), PackedSentences.of(np.array([2])))
            return parser

    @property
    def language(self) -> str:
        return self.model.language

    @cached_property
    def fingerprint(self) -> str:
        return self.model.fingerprint

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The model's relations, and those that attach pieces of words and parts of sentences."""
        known = self.model.relations
        return known + tuple(name for name in ("goeswith", "parataxis", "punct") if name not in known)

    @one_thread()
    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        """Parse sentences, equal ones once; arguments as for `Parser.parse`."""
        chosen, kind = distinct_sentences(words, sentences)
        place, offsets = take_rows(sentences, chosen)
        normal = normalise(words[place], types, offsets, self.language)
        once = restore(normal, self._trees(normal), offsets)
        words_done(len(words) - len(place))
        place, _ = take_rows(offsets, kind)
        return Parses(once.upos[place], once.head[place], once.deprel[place], once.relations)

    def _trees(self, normal: NormalisedWords) -> Parses:
        """Return the trees of normalised words."""
        words, types, sentences = normal.words, normal.types, normal.sentences
        used, codes = np.unique(words, return_inverse=True)
        vectors = self.network.vectors([types[code] for code in used])
        codes = codes.reshape(-1)
        parts = cut_long(words, types, sentences)
        upos = np.zeros(len(words), np.uint8)
        head = np.zeros(len(words), np.int32)
        deprel = np.zeros(len(words), np.int32)
        lengths = lengths_of(parts)
        order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
        start = 0
        while start < len(order):
            fitting = WORDS_AT_ONCE // int(lengths[order[start]])
            chosen = order[start : start + min(max(fitting, FEWEST), MOST)]
            packed = PackedSentences.of(lengths[chosen])
            place = (parts[chosen][:, None] + np.arange(packed.inside.shape[1]))[packed.inside]
            upos[place], head[place], deprel[place] = self._batch(vectors, codes[place], packed)
            start += len(chosen)
            words_done(len(place))
        if len(parts) != len(sentences):
            hang_together(upos, head, deprel, parts, sentences, self.relations)
        return Parses(upos, head, deprel, self.relations)

    def _batch(self, vectors: Float32, codes: Int64, packed: PackedSentences) -> tuple[Int64, Int64, Int64]:
        """Return tag, head and relation of each word of some sentences: int64[N] each, sentence by sentence.

        vectors: float32[T, K], from `Network.vectors`. codes: int64[N], the type of each word.
        """
        row = packed.row[packed.inside]
        here, code = np.unique(codes, return_inverse=True)
        packed_code = np.empty(len(row), np.int64)
        packed_code[row] = code.reshape(-1)
        scores = self.network.scores(vectors[here], packed_code, packed)
        heads = best_heads(scores.arcs, packed.lengths)
        governor = np.take_along_axis(packed.row, np.maximum(heads - 1, 0), 1)
        head_row = np.empty(len(row), np.int64)
        head_row[row] = np.where(heads > 0, governor, -1)[packed.inside]
        labels = self.network.labels(scores, head_row)
        labels[:, self._root] = np.where(head_row < 0, np.inf, -np.inf)
        tags, relations = (each.argmax(1)[row] for each in (scores.tags, labels))
        return tags, heads[packed.inside], relations

    @cached_property
    def _root(self) -> int:
        return self.model.relations.index("root")


def bundled_model(name: str) -> StoredModel:
    """Return the model of this name in the package."""
    return load_model(PACKAGE / name)


english = partial(ModelParser.load, PACKAGE / "english", "english")
# Smaller and faster; it learnt from the other one.
english_light = partial(ModelParser.load, PACKAGE / "english-light", "english-light")
