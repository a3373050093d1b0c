"""The share of words in sentences that came before, which `parsing/bundled.py` saves the parser, in all running text.

    python benchmarks/repeats.py DATA_DIR       rows of the table in README.md, "The parser"

Each corpus is parsed by a stand-in that counts the sentences it is given, as it is given them: within a batch of
2^20 words, whose sentences the bundled parsers compare, and in the whole corpus. Treebanks have trees; their
sentences are counted as they are.
"""

from __future__ import annotations

import argparse
import collections
import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, UInt64, lengths_of
from derivlang.core.keys import hash_types, sequence_keys
from derivlang.engine.job import Events
from derivlang.engine.options import MakeOptions
from derivlang.engine.parse import parse
from derivlang.formats import conllu
from derivlang.parsing.base import Parses
from derivlang.parsing.bundled import distinct_sentences
from derivlang.parsing.registry import PARSERS, forget_parsers
from derivlang.sources.request import SourceRequest


@dataclass(frozen=True)
class Row:
    """Counts of a corpus. parsed: words that the parser reads."""

    name: str
    words: int
    sentences: int
    distinct_words: int
    distinct_sentences: int
    parsed: int

    def print(self) -> None:
        shares = (self.distinct_sentences / self.sentences, self.distinct_words / self.words, self.parsed / self.words)
        told = " | ".join(f"{100 - 100 * share:.2f} %" for share in shares)
        print(f"| {self.name} | {self.words:,} | {self.sentences:,} | {told} |", flush=True)


@dataclass(eq=False)
class Counter:
    """A `Parser` that counts. again: words of sentences that came before in their batch. keys, lengths: of all."""

    language: str
    name: str = "counter"
    fingerprint: str = "0"
    again: int = 0
    keys: list[UInt64] = field(default_factory=list)
    lengths: list[Int64] = field(default_factory=list)

    def parse(self, words: Int32, types: pa.Array, sentences: Int64) -> Parses:
        lengths = lengths_of(sentences)
        self.keys.append(sequence_keys(hash_types(types)[words], sentences))
        self.lengths.append(lengths)
        chosen, _ = distinct_sentences(words, sentences)
        self.again += int(lengths.sum() - lengths[chosen].sum())
        head = np.ones(len(words), np.int32)
        head[sentences[:-1][lengths > 0]] = 0  # the first word governs all others
        return Parses(np.zeros(len(words), np.uint8), head, (head > 0).astype(np.int32), ("root", "dep"))

    def row(self, name: str, words: int = 0, sentences: int = 0) -> Row:
        """A row of the table. words, sentences: of the corpus, if some of them are not given to the parser again."""
        keys, lengths = np.concatenate(self.keys), np.concatenate(self.lengths)
        keys, lengths = keys[lengths > 0], lengths[lengths > 0]
        _, first = np.unique(keys, return_index=True)
        return Row(
            name,
            words or int(lengths.sum()),
            sentences or len(keys),
            distinct_words=int(lengths[first].sum()),
            distinct_sentences=len(first),
            parsed=int(lengths.sum()) - self.again,
        )


def corpora(data: Path, work: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield name, language and requests of each corpus with running text; work: an empty folder."""

    def lines(paths: list[Path], column: int | None = None) -> list[dict[str, Any]]:
        requests = []
        for path in paths:
            text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            if column is not None:
                text = b"".join(line.split(b"\t")[column] + b"\n" for line in text.splitlines())
            file = work / f"{len(list(work.iterdir()))}.txt"
            file.write_bytes(text)
            requests.append({"source": str(file)})
        return requests

    yield "WikiText-2", "en", [{"source": "wikitext2"}]
    yield "WikiText-103, valid and test", "en", [{"source": "wikitext103"}]
    yield "novels (ELTeC)", "en", lines([data / "text/eltec-eng/eltec-eng.txt.gz"])
    for language in ("en", "fr", "de", "es", "ru", "zh", "ar"):
        yield (
            f"XNLI dev and test, {language}",
            language,
            [{"source": f"xnli:{language}", "splits": ("validation", "test")}],
        )
    pairs = {"names": ("premise", "hypothesis", "label")}
    yield "SNLI, sample", "en", [{"source": str(data / "nli/en_pairs.tsv"), "quoting": True, **pairs}]
    yield "MultiNLI, sample", "en", [{"source": str(data / "nli/multinli_pairs.tsv.gz"), **pairs}]
    for language in ("en", "fr", "de"):
        yield f"PAWS-X, {language}", language, [{"source": f"pawsx:{language}"}]
    for language in ("en", "de", "es"):
        yield f"XQuAD{' and MLQA dev' * (language == 'en')}, {language}", language, [{"source": f"squad:{language}"}]
    for language in ("en", "fr", "de", "zh"):
        yield f"WikiAnn, {language}", language, [{"source": f"ner:{language}"}]
    for pair in ("en-fr", "de-en", "ro-en", "en-hi", "en-cs"):
        for language in pair.split("-"):
            yield (
                f"gold links {pair}, {language}",
                language,
                [{**request, "mode": "space"} for request in lines([data / "align" / pair / f"test.{language}"])],
            )
    multi30k = data / "align/bitext/multi30k"
    for language in ("en", "fr", "de"):
        files = [multi30k / f"{name}.{language}" for name in ("train", "val", "test_2016_flickr")]
        found = [path if path.exists() else path.with_name(f"{path.name}.gz") for path in files]
        yield f"Multi30k, {language}", language, lines(found)
    for column, language in enumerate(("en", "fr")):
        yield f"Tatoeba, {language}", language, lines([data / "align/bitext/tatoeba/en-fr.tsv.gz"], column)


def parsed(data: Path, name: str, language: str, requests: list[dict[str, Any]], out: Path) -> Row:
    """The counts of a corpus with running text."""
    counter = PARSERS.add("counter", Counter(language))
    forget_parsers()
    told: collections.Counter[str] = collections.Counter()
    for number, asked in enumerate(requests):
        splits = asked.pop("splits", ())
        if ":" not in asked["source"]:  # the name of a source says its language
            asked["language"] = language
        request = SourceRequest(**asked, data_dir=data)
        repair = name.startswith("WikiAnn")
        options = MakeOptions(out=out / str(number), parser="counter", splits=splits, repair_tags=repair)
        for entry in parse(request, options, Events(warn=lambda line: None))["splits"].values():
            told.update({what: entry[what] for what in ("tokens", "sentences")})
    return counter.row(name, told["tokens"], told["sentences"])


def treebanks(data: Path) -> Iterator[tuple[str, Counter]]:
    """Yield name and counts of the treebanks of each language."""
    by_language: dict[str, list[Path]] = {}
    for folder in sorted((data / "ud").glob("UD_*")):
        by_language.setdefault(folder.name[3:].partition("-")[0], []).append(folder)
    for language, folders in by_language.items():
        counter = Counter("")
        for folder in folders:
            for path in sorted(folder.glob("*.conllu*")):
                for rows in conllu.read(path):
                    tokens = rows.table["tokens"].combine_chunks()
                    types = tokens.flatten().dictionary_encode()
                    offsets = np.asarray(tokens.offsets).astype(np.int64)
                    counter.parse(np.asarray(types.indices).astype(np.int32), types.dictionary, offsets - offsets[0])
        yield f"UD, {language.replace('_', ' ')}, {len(folders)} treebank{'s' * (len(folders) > 1)}", counter


def main() -> None:
    """Print a row for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    data = parser.parse_args().data_dir
    print("| corpus | words | sentences | repeated sentences | repeated words | words not parsed again |")
    print("|---|--:|--:|--:|--:|--:|")
    rows = []
    with TemporaryDirectory() as work:
        (texts := Path(work, "texts")).mkdir()
        for name, language, requests in corpora(data, texts):
            rows.append(parsed(data, name, language, requests, Path(work, name.replace("/", " "))))
            rows[-1].print()
    for name, counter in treebanks(data):
        rows.append(counter.row(name))
        rows[-1].print()
    total = (sum(getattr(row, column.name) for row in rows) for column in fields(Row)[1:])
    Row("all, each corpus by itself", *total).print()


if __name__ == "__main__":
    main()
