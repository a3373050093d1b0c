"""The sub-words of sentence pairs and their gold links, by a tokenizer of the source and one of the derived language.

    links of words (i, j)  ->  links of their sub-words, `each` to each or `all` to all (subwords.py)

A word and its transliteration have equally many sub-words under a tokenizer and its twin, and the k-th is linked to the
k-th, as in a word that stays as it is under one tokenizer. Otherwise (a dictionary exchanged words, or the second
tokenizer is not a twin) every sub-word of a word is linked to every sub-word of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import list_array, to_arrow, to_numpy
from derivlang.core.errors import UsageError
from derivlang.lexical.bitext import Pairs, Subwords
from derivlang.lexical.encoding import Encoded, SubwordEncoder
from derivlang.lexical.segments import GoldLinks
from derivlang.lexical.subwords import lift_links, lift_offsets
from derivlang.lexical.tokenizer import Tokenizer, require_source
from derivlang.lexical.twin_folder import check_twin
from derivlang.pipeline import Pipeline
from derivlang.transforms.trans import Trans


@dataclass(frozen=True, slots=True)
class PairEncoder:
    """The tokenizers of both sides. how: the method by which `lift_links` links sub-words."""

    source: SubwordEncoder
    derived: SubwordEncoder
    how: Literal["each", "all"]

    @classmethod
    def load(cls, folders: tuple[Path, Path], pipeline: Pipeline) -> PairEncoder:
        """Read the tokenizers of the source and of the derived language of a pipeline.

        Raise DataError if the first is a twin, StoreError for a twin of another tokenizer or script, UsageError for a
        twin that cannot encode the derived words.
        """
        ours, theirs = map(Tokenizer.load, folders)
        require_source(ours, str(folders[0]))
        lexical = [t for t in pipeline.transforms if t.has_lexicon]
        maps = [t for t in lexical if isinstance(t, Trans)]
        if theirs.recipe["kind"] == "twin":
            if keeps := [t for t in maps if t.overlap]:
                raise UsageError(
                    f"{keeps[0]} keeps words of the source, which the twin's own vocabulary lacks",
                    where="--twin",
                    fix="leave out --tokenizer and --twin, or give a set without an overlap",
                    id="tokenizer",
                )
            if len(maps) != 1:
                raise UsageError(
                    f"a twin is of one trans, but the set's transforms are {pipeline}",
                    where="--twin",
                    fix="give a tokenizer of the derived language: derivlang tokenizer train SET",
                    id="tokenizer",
                )
            fix = "give the tokenizer that the twin was made of, and a twin made with the set's own trans"
            check_twin(theirs, ours, maps[0].stored, folders[1], fix)
            alike = len(lexical) == 1
        else:
            alike = not lexical and theirs.fingerprint() == ours.fingerprint()
        return cls(SubwordEncoder(ours), SubwordEncoder(theirs), "each" if alike else "all")

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of both tokenizers."""
        return [side.tokenizer.fingerprint() for side in (self.source, self.derived)]

    def encode(self, pairs: Pairs) -> Subwords:
        """Return the ids of both sides, and the gold links of their sub-words."""
        source, derived = _encoded(self.source, pairs.source), _encoded(self.derived, pairs.derived)
        sides = [to_numpy(side.offsets).astype(np.int64) for side in (pairs.source, pairs.derived)]
        # Links count words in their pair; `lift_links` takes words counted over all pairs.
        links = np.stack(
            [pairs.links.source + sides[0][pairs.links.pair], pairs.links.derived + sides[1][pairs.links.pair]], 1
        )
        lifted = lift_links(links, source, derived, self.how)
        starts = [lift_offsets(words, encoded) for words, encoded in zip(sides, (source, derived), strict=True)]
        # starts[0] [0, 3, 5]: the sub-words 0 1 2 are of pair 0, 3 and 4 of pair 1.
        pair = np.searchsorted(starts[0], lifted[:, 0], "right") - 1
        gold = GoldLinks(pair, lifted[:, 0] - starts[0][pair], lifted[:, 1] - starts[1][pair])
        ids = [list_array(start, to_arrow(side.ids)) for start, side in zip(starts, (source, derived), strict=True)]
        return Subwords(ids[0], ids[1], gold.sorted())

    def count(self, subwords: Subwords, counts: dict[str, int]) -> None:
        """Add the numbers of sub-words and of unknown ones to `counts`."""
        for side, encoder, lists in (
            ("source", self.source, subwords.source),
            ("derived", self.derived, subwords.derived),
        ):
            ids = to_numpy(lists.flatten())
            counts[side] += len(ids)
            counts[f"{side}_unknown"] += int((ids == encoder.tokenizer.bpe.entries.index("<unk>")).sum())


def _encoded(encoder: SubwordEncoder, words: pa.Array) -> Encoded:
    """Return the sub-words of the words of list<string>[P]."""
    coded = words.flatten()
    return encoder.types(coded.dictionary).take(to_numpy(coded.indices))
