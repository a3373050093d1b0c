"""Trees for a small parser, the student: a treebank's, and those that its teacher, a larger parser, gives a text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import lengths_of, offsets_of
from derivlang.parsing.bundled import ModelParser
from derivlang.parsing.repeats import take_sentences
from derivlang.parsing.training.plain_text import plain_sentences
from derivlang.parsing.treebank import Text, Treebank

COPIES = 4  # of the treebank: its trees are correct, the teacher's are nearly correct
SHORTEST = 3  # words; shorter sentences of the text are left out


def taught(train: Treebank, text: Text, teacher: ModelParser) -> Treebank:
    """Return the treebank, COPIES times, and the sentences of the text with the teacher's trees."""
    plain = plain_sentences(text, teacher.language)
    chosen = np.flatnonzero(lengths_of(plain.sentences) >= SHORTEST)
    place, sentences = take_sentences(plain.sentences, chosen)
    parses = teacher.parse(plain.words[place], plain.types, sentences)
    parsed = Treebank(
        plain.words[place], plain.types, sentences, parses.upos, parses.head, parses.deprel, parses.relations
    )
    return joined([train] * COPIES + [parsed])


def joined(banks: list[Treebank]) -> Treebank:
    """Return one treebank with the sentences of all, in order."""
    types = {word: None for bank in banks for word in bank.types.to_pylist()}
    relations = {name: None for bank in banks for name in bank.relations}
    word_code = {word: i for i, word in enumerate(types)}
    relation_code = {name: i for i, name in enumerate(relations)}
    words, deprel = [], []
    for bank in banks:
        words.append(np.array([word_code[word] for word in bank.types.to_pylist()], np.int32)[bank.words])
        deprel.append(np.array([relation_code[name] for name in bank.relations], np.int32)[bank.deprel])
    return Treebank(
        words=np.concatenate(words),
        types=pa.array(list(types), pa.string()),
        sentences=offsets_of(np.concatenate([lengths_of(bank.sentences) for bank in banks])),
        upos=np.concatenate([bank.upos for bank in banks]),
        head=np.concatenate([bank.head for bank in banks]),
        deprel=np.concatenate(deprel),
        relations=tuple(relations),
    )
