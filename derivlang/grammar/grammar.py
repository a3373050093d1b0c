"""Grammar: the order models of one language, by head class, and their origin."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from derivlang.grammar.weights import Weights


@dataclass(frozen=True, eq=False)
class Grammar:
    """The order models of one language.

    name: as users write it. language: its English name, or "". labels: "v1" or "v2", the UD version of the labels.
    weights: head class ("N", "V", or a UPOS) -> Weights. about: the header of the file: treebanks, licence, settings …
    has_hash: whether its file has the hash of its content.
    """

    name: str
    language: str
    labels: str
    weights: Mapping[str, Weights]
    about: Mapping[str, str] = field(default_factory=dict)
    has_hash: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """The head classes with a model."""
        return tuple(self.weights)

    @property
    def demonstratives(self) -> tuple[str, ...]:
        """The demonstrative determiners of the language, in lower case: English that, these, this, those."""
        return tuple(self.about.get("demonstratives", "").split())

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits: a hash of label version, demonstratives, classes and weights, not of the rest of `about`."""
        digest = hashlib.blake2b(" ".join((self.labels, *self.demonstratives)).encode(), digest_size=8)
        for name in sorted(self.weights):
            digest.update(f"\n{name}\n".encode() + self.weights[name].digest())
        return digest.hexdigest()

    def summary(self) -> dict[str, Any]:
        """Return name, language, labels, fingerprint, classes with their number of weights, and about."""
        return {
            "name": self.name,
            "language": self.language,
            "labels": self.labels,
            "fingerprint": self.fingerprint,
            "classes": {name: len(weights) for name, weights in self.weights.items()},
            "about": dict(self.about),
        }
