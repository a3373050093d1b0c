"""From what the user typed to a corpus: a name, a path, `hub:name/config`, or a derived set.

wikitext103     ner:fr     my.conllu.gz     folder/     hub:Salesforce/wikitext/wikitext-2-v1     OUT
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.layers.spans import complete_classes
from derivlang.core.schema import TEXT, Field, Schema, Side
from derivlang.core.splits import split_of
from derivlang.formats.opening import empty_file, open_lines
from derivlang.formats.words import Mode
from derivlang.sources.corpus import SUFFIXES, Corpus, Format, Part, suffix_of
from derivlang.sources.infer import infer
from derivlang.sources.named import (
    CONLLU,
    CONLLU_FIELDS,
    SQUAD,
    find_named,
    hub_name,
    is_named,
    missing,
    source_names,
)

MANIFEST = "derivlang.json"


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked of a source. words, texts: named columns; mode: --words; language: --lang."""

    source: str
    data_dir: Path | None = None
    mode: Mode | None = None
    language: str | None = None
    encoding: str = "utf-8"
    words: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def find(request: Request) -> Corpus:
    """The corpus; DataError or UsageError says what is missing and where to put it."""
    corpus = _locate(request)
    if request.mode is not None:
        corpus = replace(corpus, words=request.mode)
    if request.language is not None:
        corpus = replace(corpus, language=request.language)
    return _with_classes(corpus, request.encoding)


def _locate(request: Request) -> Corpus:
    source = request.source
    if source.startswith("hub:"):
        from derivlang.sources.hub import find_hub

        return find_hub(source.removeprefix("hub:"), request.words, request.texts)
    name, _, argument = source.partition(":")
    if is_named(name):
        folders = _folders(request)
        corpus, named = find_named(name, argument, folders)
        if corpus is not None:
            return corpus
        hub = hub_name(named, argument)
        if hub is not None:
            from derivlang.sources.hub import find_hub_copy

            corpus = find_hub_copy(named, argument, hub)
            if corpus is not None:
                return corpus
        raise missing(named, argument, folders)
    path = Path(source)
    if path.exists():
        return _from_path(path, request)
    if any(mark in source for mark in ("/", "\\", ".")):
        raise DataError("there is no such file or folder", where=source, fix="check the path", id="missing-file")
    raise unknown("source", source, source_names(), fix="a path to a file or folder works too")


def _folders(request: Request) -> list[Path]:
    folders = [request.data_dir] if request.data_dir else []
    if os.environ.get("DERIVLANG_DATA"):
        folders.append(Path(os.environ["DERIVLANG_DATA"]))
    for folder in folders:
        if not folder.is_dir():
            raise DataError("the data folder does not exist", where=str(folder), id="missing-file")
    return folders


def _from_path(path: Path, request: Request) -> Corpus:
    if path.is_dir() and (path / MANIFEST).exists():
        return _derived(path)
    files = [path] if path.is_file() else _files(path)
    formats = {suffix_of(file) for file in files}
    kinds = {SUFFIXES.get(suffix, "unknown") for suffix in formats}
    if len(kinds) != 1 or "unknown" in kinds:
        known = ", ".join(SUFFIXES)
        what = "files of several formats" if len(kinds) > 1 else f"the suffix {formats.pop()!r} tells no format"
        raise UsageError(what, where=str(path), fix=f"known suffixes: {known}, also with .gz or .zst", id="format")
    parts = tuple(Part(split_of(file.name) or "train", file, _relative(file, path)) for file in files)
    kind: Format = SUFFIXES[suffix_of(files[0])]
    make = {"text": _text, "conllu": _conllu, "delimited": _delimited, "squad": _squad}.get(kind, _table)
    return make(path.name, parts, request)


def _files(folder: Path) -> list[Path]:
    found = sorted(f for f in folder.rglob("*") if f.is_file() and suffix_of(f) in SUFFIXES and f.name[0] != ".")
    if not found:
        raise DataError(
            "the folder holds no file of a known format", where=str(folder), fix=", ".join(SUFFIXES), id="no-files"
        )
    return found


def _relative(file: Path, root: Path) -> str:
    return file.name if file == root else str(file.relative_to(root))


def _text(name: str, parts: tuple[Part, ...], request: Request) -> Corpus:
    tokenised = suffix_of(parts[0].path) == ".tokens"
    return Corpus(name, "text", TEXT, parts, words="space" if tokenised else "spacy")


def _conllu(name: str, parts: tuple[Part, ...], request: Request) -> Corpus:
    entities = any(_holds(part.path, "NER=", request.encoding) for part in parts)
    fields = (*CONLLU_FIELDS, Field("ner_tags", "entities")) if entities else CONLLU_FIELDS
    return Corpus(name, "conllu", Schema(CONLLU.sides, fields), parts, options={"entities": entities})


def _holds(path: Path, text: str, encoding: str) -> bool:
    return any(text in line for _, line in open_lines(path, encoding))


def _squad(name: str, parts: tuple[Part, ...], request: Request) -> Corpus:
    return Corpus(name, "squad", SQUAD, parts)


def _delimited(name: str, parts: tuple[Part, ...], request: Request) -> Corpus:
    """A .tsv is token TAB tag with empty lines between sentences, or rows of text."""
    if _is_tagged(parts[0].path, request.encoding):
        schema = Schema((Side("", words="tokens"),), (Field("ner_tags", "entities"),))
        return Corpus(name, "tagged", schema, parts)
    from derivlang.formats.delimited import read

    first = next((line for _, line in open_lines(parts[0].path, request.encoding)), None)
    if first is None:
        raise empty_file(parts[0].path, "row")
    usual = {1: ("text",), 2: ("premise", "hypothesis"), 3: ("premise", "hypothesis", "label")}
    columns = usual.get(first.count("\t") + 1)
    table = next(read(parts[0].path, columns=columns, encoding=request.encoding, limit=1)).table
    schema = infer(table.schema, where=str(parts[0].path), words=request.words, texts=request.texts)
    return Corpus(name, "delimited", schema, parts, options={"columns": columns})


def _is_tagged(path: Path, encoding: str) -> bool:
    """Two or more columns, and empty lines between rows: nobody separates pairs of sentences by those."""
    for number, line in open_lines(path, encoding):
        if not line.strip():
            return number > 1
        if number > 2000:
            break
    return False


def _table(name: str, parts: tuple[Part, ...], request: Request) -> Corpus:
    kind = SUFFIXES[suffix_of(parts[0].path)]
    path = parts[0].path
    if kind == "parquet":
        from derivlang.formats import parquet

        arrow, sample = parquet.schema(path), next((rows.table for rows in parquet.read(path, limit=100)), None)
    else:
        from derivlang.formats import jsonl

        sample = next(jsonl.read(path, encoding=request.encoding, limit=1000)).table
        arrow = sample.schema
    schema = infer(arrow, sample, where=str(path), words=request.words, texts=request.texts)
    return Corpus(name, kind, schema, parts)


def _derived(path: Path) -> Corpus:
    """derivlang's own output as a source: its pipeline goes first, its sentences are not split again."""
    from derivlang.store.manifest import Derived

    derived = Derived(path)
    source = derived.manifest["source"]
    parser = derived.manifest.get("parser") if derived.manifest["spec"] == "identity" else None
    parts = tuple(
        Part(split, path / shard["file"], shard["file"]) for split in derived.splits for shard in derived.shards(split)
    )
    return Corpus(
        source["name"],
        "derived",
        derived.schema,
        parts,
        language=source["language"],
        licence=source["licence"],
        citation=source["citation"],
        spec=None if parser else derived.manifest["spec"],  # parsed text is text: its sentences, with their trees
        lexicon=derived.lexicon_text(),
        origin=source["format"],
        options={
            "read": {k: v for k, v in derived.manifest["changed"].items() if k.endswith(("-widened", "-repaired"))},
            **({"parser": parser, "words": derived.manifest["words"]} if parser else {}),
        },
    )


def _with_classes(corpus: Corpus, encoding: str) -> Corpus:
    """Entity columns without known tag names: all files are looked through once, so that every shard agrees."""
    unknown_classes = [f for f in corpus.schema.fields if f.kind == "entities" and f.classes is None]
    if not unknown_classes:
        return corpus
    from derivlang.sources.read import tables

    names: dict[str, set[str]] = {field.column: set() for field in unknown_classes}
    for part in corpus.parts:
        for rows in tables(corpus, part, encoding=encoding):
            for column, found in names.items():
                flat = rows.table[column].combine_chunks().flatten()
                found.update(pa.compute.unique(flat).to_pylist())
    fields = tuple(
        Field(f.column, f.kind, _all_names(names[f.column])) if f.column in names else f for f in corpus.schema.fields
    )
    return replace(corpus, schema=replace(corpus.schema, fields=fields))


def _all_names(found: set[str]) -> tuple[str, ...]:
    """Proper tags in the usual order, then whatever else occurs: an error or a repair, later, with its line."""
    proper = complete_classes(sorted(found))
    return (*proper, *sorted(found - set(proper)))


__all__ = ["MANIFEST", "Request", "find"]
