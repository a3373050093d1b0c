"""The named source `demo`: the sentences of the package, with tags, trees and entities; pairs and questions, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.core.schema import Field, Schema
from derivlang.core.splits import SPLITS
from derivlang.formats.conllu import MEANING as CONLLU
from derivlang.formats.squad import MEANING as SQUAD
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.named import WIKIANN, XNLI, NamedSource, files_of_splits

_NAMES = ("train", "dev", "test")


@dataclass(frozen=True, slots=True)
class Demo(NamedSource):
    """The demo, whose files are in the package."""

    def find(self, argument: str, folders: Sequence[Path]) -> Corpus:
        """Return the demo, or one of its other sets: `nli`, `qa`, `pairs`. UsageError unknown-source for any other."""
        folder = Path(str(resources.files("derivlang.sources") / "demo"))
        if argument == "nli":
            files = [f"demo-nli-{name}.tsv" for name in _NAMES]
            parts = tuple(CorpusFile(split, folder / file, file) for split, file in zip(SPLITS, files, strict=True))
            options = {"columns": ("premise", "hypothesis", "label"), "header": False}
            return self.corpus(argument, parts, format="delimited", schema=XNLI, options=options)
        if argument == "qa":
            file = "demo-qa-test.json"
            part = CorpusFile("test", folder / file, file)
            return self.corpus(argument, (part,), format="squad", schema=SQUAD, options={}, expected=("test",))
        if argument == "pairs":
            file = "demo-pairs.conllu"
            part = CorpusFile("test", folder / file, file)
            return self.corpus(argument, (part,), schema=CONLLU, options={}, expected=("test",))
        if argument:
            raise UsageError(f"the demo has no set {argument!r}; there are: nli, pairs, qa", id="unknown-source")
        # Not `super()`: a dataclass with slots is another class than the one that is written here.
        corpus = NamedSource.find(self, "", [folder])
        assert corpus is not None
        return corpus


def demo() -> NamedSource:
    """Return the source `demo`."""
    return Demo(
        "demo",
        "the built-in set: tags, trees and entities; demo:nli has pairs, demo:qa questions, demo:pairs minimal pairs",
        "conllu",
        Schema(CONLLU.sides, (*CONLLU.fields, Field("ner_tags", "entities", WIKIANN))),
        files_of_splits("demo-ud-{split}.conllu"),
        words="spacy",
        options={"entities": True},
        licence="apache-2.0",
        citation="derivlang: the demo sentences, written for the project.",
    )
