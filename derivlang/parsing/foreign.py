"""The base of the adapters to other parsers: from sentences as lists of strings to checked trees as arrays.

Words are normalised as for the bundled parser (`normalise.py`), so that WikiText's `@-@` and `don 't` mean the same to
all parsers. A foreign parser computes in floating point, so its parse of a sentence may depend on the other sentences.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.errors import DerivlangError
from derivlang.formats.progress import words_done
from derivlang.grammar.labels import V2_RELATIONS
from derivlang.parsing import normalise
from derivlang.parsing.base import UPOS, Parses, checked
from derivlang.parsing.normalise import normalise as normalised
from derivlang.parsing.normalise import restore

Tree: TypeAlias = tuple[Sequence[str], Sequence[int], Sequence[str]]  # tags, heads (1-based, 0 = root), relations
WORDS_AT_ONCE = 20_000  # words given to the parser together, so that memory does not grow with the call

_TENSORS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"  # torch reads it at each call, before the argument `weights_only`


@dataclass(frozen=True, slots=True, eq=False)
class ForeignParser:
    """A `Parser` that calls `run` with sentences (lists of words) of similar length, and checks the trees it yields."""

    name: str
    language: str
    fingerprint: str
    run: Callable[[list[list[str]]], Iterable[Tree]]

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        """Parse sentences; arguments as for `Parser.parse`.

        Raises DerivlangError parser-tree if the result is not a tree for each sentence, and parser-labels for labels
        that are not universal.
        """
        normal = normalised(words, types, sentences, self.language)
        offsets = normal.sentences
        n = len(normal.words)
        tags, head, deprel = np.zeros(n, np.uint8), np.zeros(n, np.int32), np.zeros(n, np.int32)
        relations: dict[str, int] = {}
        for chosen in _by_length(lengths_of(offsets)):
            given = [[normal.types[code] for code in normal.words[offsets[i] : offsets[i + 1]]] for i in chosen]
            for i, words_of, (upos, heads, names) in zip(chosen, given, self.run(given), strict=True):
                if not len(words_of) == len(upos) == len(heads) == len(names):
                    raise DerivlangError(
                        f"the parser {self.name!r} returned {len(heads)} heads for a sentence of {len(words_of)} words",
                        fix="use a parser that does not change the words",
                        id="parser-tree",
                    )
                here = slice(int(offsets[i]), int(offsets[i + 1]))
                tags[here] = [self._tag(tag) for tag in upos]
                head[here] = heads
                called = [self._relation(name) if up else "root" for name, up in zip(names, heads, strict=True)]
                deprel[here] = [relations.setdefault(name, len(relations)) for name in called]
                words_done(len(heads))
        parses = checked(Parses(tags, head, deprel, tuple(relations)), offsets, self.name)
        return restore(normal, parses, sentences)

    def _tag(self, tag: str) -> int:
        try:
            return UPOS.index(tag)
        except ValueError:
            raise not_universal(self.name, f"it has the tag {tag!r}") from None

    def _relation(self, name: str) -> str:
        if name.partition(":")[0] not in V2_RELATIONS:
            raise not_universal(self.name, f"it has the relation {name!r}")
        return name


def not_universal(name: str, reason: str) -> DerivlangError:
    """Return the error for a parser whose labels do not follow Universal Dependencies."""
    return DerivlangError(
        f"the labels of the parser {name!r} are not Universal Dependencies (version 2): {reason}",
        where="--parser",
        fix="use a model trained on a UD treebank: Stanza's, or a spaCy pipeline trained on one",
        id="parser-labels",
    )


def missing_package(name: str, extra: str) -> DerivlangError:
    """Return the error for a parser whose package is not installed."""
    return DerivlangError(
        f"the parser {name!r} needs the package {extra}, which is not installed",
        where="--parser",
        fix=f"pip install {extra if extra != 'stanza' else chr(39) + 'derivlang[stanza]' + chr(39)}",
        id="missing-package",
    )


@contextmanager
def tensors_only() -> Iterator[None]:
    """Let `torch.load` read tensors and plain values within the block, and refuse to unpickle other objects.

    Packages that load a model may ask for more: unpickling runs code that the file names.
    """
    before = os.environ.get(_TENSORS_ONLY)
    os.environ[_TENSORS_ONLY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_TENSORS_ONLY]
        else:
            os.environ[_TENSORS_ONLY] = before


def fingerprint(parts: Iterable[str], files: Iterable[Path] = ()) -> str:
    """Return a hash of texts, contents of files and the version of normalisation: 16 hex digits."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (*parts, f"normalise {normalise.RULE_VERSION}"):
        digest.update(part.encode() + b"\0")
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _by_length(lengths: Int64) -> Iterable[list[int]]:
    """Yield the numbers of the non-empty sentences in groups of about WORDS_AT_ONCE words, the shortest first."""
    order = np.argsort(lengths, kind="stable")
    order = order[lengths[order] > 0]
    if len(order):
        group = np.cumsum(lengths[order]) // WORDS_AT_ONCE
        for part in np.split(order, np.flatnonzero(np.diff(group)) + 1):
            yield part.tolist()
