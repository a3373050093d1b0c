"""Grammar: the order models of one language, by head class, with where they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from derivlang.grammar.weights import Weights


@dataclass(frozen=True, eq=False)
class Grammar:
    """weights: head class ("N", "V", or a UPOS) -> Weights. labels: "v1" or "v2", the UD version of its labels.

    name: as a user names it. language: its English name, or "". about: settings and origin, in order (treebanks,
    licence, attribution …), as the header of the file has them.
    """

    name: str
    language: str
    labels: str
    weights: Mapping[str, Weights]
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def classes(self) -> tuple[str, ...]:
        """The head classes with a model."""
        return tuple(self.weights)

    @property
    def has_sequences(self) -> bool:
        """Does a model have HI features?"""
        return any(weights.sequences for weights in self.weights.values())

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits: a hash of label version, classes and weights; not of the name, nor of `about`."""
        digest = hashlib.blake2b(self.labels.encode(), digest_size=8)
        for name in sorted(self.weights):
            digest.update(f"\n{name}\n".encode() + self.weights[name].digest())
        return digest.hexdigest()
