"""sample: a few trees that lie in the package; moods: sentences in a format of its own;
pronouns: sentences with a layer of its own."""

from __future__ import annotations

from pathlib import Path

from derivlang.core.schema import Field, Schema, Side
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.named import CONLLU, NamedSource

FOLDER = Path(__file__).parent


class Sample(NamedSource):
    """A source that lies in its own package."""

    def find(self, argument: str, folders: object) -> Corpus | None:
        return self.corpus(argument, (CorpusFile("test", FOLDER / "sample-test.conllu", "sample-test.conllu"),))


def sample() -> NamedSource:
    return Sample(
        "sample",
        "two sentences of a sample package",
        "conllu",
        Schema(CONLLU.sides, CONLLU.fields),
        {"test": ("sample-test.conllu",)},
        licence="apache-2.0",
    )


class Moods(NamedSource):
    """Sentences and their moods, in the package's own format."""

    def find(self, argument: str, folders: object) -> Corpus | None:
        return self.corpus(argument, (CorpusFile("test", FOLDER / "sample-test.blocks", "sample-test.blocks"),))


def moods() -> NamedSource:
    return Moods(
        "moods",
        "two sentences and their moods",
        "blocks",
        Schema((Side("", words="tokens"),), (Field("mood", "value"),)),
        {"test": ("sample-test.blocks",)},
        licence="apache-2.0",
    )


class Pronouns(NamedSource):
    """Sentences and the words that their pronouns refer to, in the package's own layer."""

    def find(self, argument: str, folders: object) -> Corpus | None:
        return self.corpus(argument, (CorpusFile("test", FOLDER / "sample-test.jsonl", "sample-test.jsonl"),))


def pronouns() -> NamedSource:
    return Pronouns(
        "pronouns",
        "two sentences and what their pronouns refer to",
        "jsonl",
        Schema((Side("", words="tokens"),), (Field("refers", "referents"),)),
        {"test": ("sample-test.jsonl",)},
        licence="apache-2.0",
    )
