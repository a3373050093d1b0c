"""sample: a few trees that lie in the package."""

from __future__ import annotations

from pathlib import Path

from derivlang.core.schema import Schema
from derivlang.sources.corpus import Corpus, Part
from derivlang.sources.named import CONLLU, Named

FOLDER = Path(__file__).parent


class Sample(Named):
    """A source that lies in its own package."""

    def find(self, argument: str, folders: object) -> Corpus | None:
        return self.corpus(argument, (Part("test", FOLDER / "sample-test.conllu", "sample-test.conllu"),))


def sample() -> Named:
    return Sample(
        "sample",
        "two sentences of a sample package",
        "conllu",
        Schema(CONLLU.sides, CONLLU.fields),
        {"test": ("sample-test.conllu",)},
        licence="apache-2.0",
    )
