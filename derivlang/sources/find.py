"""Find the corpus that the user names: a named source, a path or URL, `hub:name/config`, or a derived set.

wikitext103     ner:fr     my.conllu.gz     folder/     s3://bucket/folder     hub:Salesforce/wikitext     OUT
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import whole
from derivlang.core.columns import bring, conform, plain, value_lists
from derivlang.core.errors import DataError, DerivlangError, UsageError, parse_errors
from derivlang.core.layers.tag_schemes import SchemeSearch
from derivlang.core.messages import counted, warn
from derivlang.core.names import split_of
from derivlang.core.schema import UNDECIDED
from derivlang.core.settings import typed
from derivlang.formats.base import ReadOptions, candidates, find_format, format_of
from derivlang.formats.contents import check_contents
from derivlang.formats.header import check_delimiter
from derivlang.formats.inspection import inspecting
from derivlang.formats.opening import suffix_of
from derivlang.formats.places import PathLike, is_remote, located
from derivlang.formats.spec_paths import files_of
from derivlang.sources.corpus import Corpus, CorpusFile
from derivlang.sources.doubts import is_divided, is_not_english, is_wrapped
from derivlang.sources.folder import OF_A_SET, files_below, name_of_path, of_one_format, relative
from derivlang.sources.infer import infer, types_of_files, unify, without_nli
from derivlang.sources.labels import decided, is_string_list, relabelled
from derivlang.sources.named import SOURCES, missing, named_source, near_names
from derivlang.sources.read import tables
from derivlang.sources.request import SourceRequest

_UD_FILE = re.compile(r"([a-z]{2,3})_[a-z]+-ud-[a-z]+\.conllu")
_LONG = 200  # letters of a paragraph, by which its language can be judged
_FEW = 100  # rows that are looked at first: most often they settle what a column holds


@inspecting()
def find(request: SourceRequest) -> Corpus:
    """Return the corpus. DataError or UsageError says what is missing and where to put it."""
    with parse_errors(request.source, "source", id="source"):
        corpus = _locate(request)
    if request.words is not None:
        if not corpus.is_raw:
            warn(f"{corpus.name} has words, not raw text, so --words has no effect")
        corpus = replace(corpus, words=request.words)
    if request.lang is not None:
        corpus = replace(corpus, language=request.lang)
    no_text = corpus.format == "derived" or not corpus.has_files or find_format(corpus.format).binary
    if no_text and typed(request, ("encoding",)):
        warn(f"{corpus.name} is not a text file, so --encoding has no effect")
    return _with_classes(corpus, request.encoding)


def _locate(request: SourceRequest) -> Corpus:
    """Return the corpus of the source, before --words, --lang and tag names are applied."""
    source = request.source
    if not source:
        raise UsageError("the name of the source is empty", fix="give a name, a file or a folder; `.` is this folder",
                         id="usage")  # fmt: skip
    if source.startswith("hub:"):
        from derivlang.sources.hub import find_hub

        request.refuse("columns of a set of the hub have names", tables=True, files=False)
        found = find_hub(
            source.removeprefix("hub:"),
            words=request.word_column,
            texts=request.text_column,
            labels=request.label_column,
        )
        return _with_labels(found, request.encoding)
    named, argument = named_source(source)
    if named is not None:
        request.refuse(f"the source {named.name} knows its columns", files=False)
        if Path(source).exists():
            warn(f"{source} is read as the source of this name; the file or folder is ./{source}")
        folders, fault = data_folders(request.data_dir), None
        if (corpus := named.find(argument, folders)) is not None:
            return corpus
        if (hub := named.on_hub(argument)) is not None:
            from derivlang.sources.hub import find_hub_copy

            if argument and Path(argument).exists():
                warn(
                    f"{source} is looked for at the hub; the file or folder {argument} here is ./{argument}, or as a "
                    f"task {named.name}:./{argument}"
                )

            corpus, fault = find_hub_copy(named, argument, hub)
            if corpus is not None:
                if request.data_dir is not None:
                    warn(f"{corpus.name} is not in {request.data_dir}: taken from the hub")
                return corpus
        raise missing(named, argument, folders, fault)
    path = located(source)
    if path.exists():
        return _from_path(path, request)
    if any(mark in source for mark in ("/", "\\", ".")):
        raise DataError("there is no such file or folder", where=source, fix="check the path", id="missing-file")
    raise SOURCES.unknown(source)


def is_of_hub(source: str, data_dir: PathLike | None) -> bool:
    """Return whether a source is read from the hub: hub:NAME, or a named source that is not on this machine."""
    if source.partition(":")[0] == "hub":
        return True
    named, argument = named_source(source)
    return named is not None and named.find(argument, data_folders(data_dir)) is None


def with_near_names(source: str, data_dir: PathLike | None) -> str:
    """Return a source that is not on this machine, and which sets of nearly the same name are."""
    named, argument = named_source(source)
    near = near_names(named, argument, data_folders(data_dir)) if named else []
    return f"{source} ({', '.join(near)} is there)" if near else source


def name_of(source: str) -> str:
    """Return the name of the corpus of a source, which need not be there. That of a derived set is in its manifest."""
    named, argument = named_source(source)
    if named is not None:
        return named.full_name(argument)
    if source.startswith("hub:"):
        return source.partition("@")[0]
    return name_of_path(located(source))


def data_folders(data_dir: PathLike | None) -> list[Path]:
    """Return the folder that is searched for named sources, if there is one: --data-dir, or else $DERIVLANG_DATA."""
    folder = data_dir or os.environ.get("DERIVLANG_DATA")
    if folder and not Path(folder).is_dir():
        raise DataError("the data folder does not exist", where=str(folder), id="missing-file")
    return [Path(folder)] if folder else []


def _from_path(path: Path, request: SourceRequest) -> Corpus:
    """Return the corpus of a file or folder."""
    if path.is_dir() and any((path / name).exists() for name in OF_A_SET):
        request.refuse("a derived set knows its columns", files=False)
        return _derived(path)
    named = request.format is not None
    files = [path] if path.is_file() else of_one_format(files_below(path, of_any_suffix=named), request.format)
    by_suffix = {suffix_of(file): file for file in files}
    if not named and len({tuple(format.name for format in candidates(file)) for file in by_suffix.values()}) > 1:
        raise UsageError(
            f"files of several formats: {', '.join(sorted(by_suffix))}",
            where=str(path),
            fix="name one file, or a folder of files of one format; --format NAME reads only the files of one",
            id="format",
        )
    names = [relative(file, path) for file in files]
    parts = tuple(CorpusFile(split_of(name) or "train", file, name) for file, name in zip(files, names, strict=True))
    asked = ReadOptions(
        request.encoding, request.header, tuple(request.column_names), request.quoting,
        None if request.delimiter is None else check_delimiter(request.delimiter, "--delimiter"),
        (*request.word_column, *request.text_column), request.format,
    )  # fmt: skip
    format = format_of(files[0], asked)
    if not named and not format.binary:
        for file in files[:1] if is_remote(path) else files:  # a look at each file of a store would cost a request
            check_contents(file, format.name, request.encoding)
    if not format.tabular:
        request.refuse(f"columns of a {format.noun} are not named so", tables=True)
    look = format.looked_at(files, asked)
    if look.words is not None and request.words is None and len({s == ".tokens" for s in by_suffix}) > 1:
        raise UsageError(
            f"the folder holds tokenised text beside raw text: {', '.join(sorted(by_suffix))}",
            where=str(path),
            fix="make each apart, or say how all are split into words: --words",
            id="format",
        )
    schema, types, found, objects = look.schema, None, dict[CorpusFile, pa.Schema](), dict[str, Any]()
    if schema is not None:
        has_tags = any(field.kind == "entities" for field in schema.fields)
        others = replace(request, label_column=()) if has_tags else request
        others.refuse(f"a {format.noun} has no columns to choose")
        schema = relabelled(schema, request.label_column, str(files[0]))
    else:
        assert look.sample is not None
        found = types_of_files(find_format(look.format or format.name), parts, request.encoding, look.options)
        types = unify(found or {parts[0]: look.sample.schema})
        sample = bring(look.sample, types, lambda row: str(files[0]), optional=types.names)
        schema, objects = infer(
            types, sample,
            where=str(files[0]), words=request.word_column, texts=request.text_column, labels=request.label_column,
            language=request.lang or "en",
        )  # fmt: skip
    corpus = Corpus(
        name_of_path(path),
        look.format or format.name,
        schema,
        parts,
        words=look.words or "spacy",
        options=dict(look.options),
        layout={**look.layout, **objects},
        types=types,
        language=_language_of(files),
    )
    _check_values(corpus, found, request.encoding)
    if not is_remote(path):
        if corpus.is_raw:
            _look_at_text(corpus, request)
        elif corpus.schema.has_trees and request.lang is None and not any(_UD_FILE.match(file.name) for file in files):
            _look_at_trees(corpus, request)
    return _with_labels(corpus, request.encoding)


def _language_of(files: Iterable[Path]) -> str:
    """Return the language that the names of files have, as Universal Dependencies names them; else English.

    fr_gsd-ud-train.conllu, fr_gsd-ud-dev.conllu  ->  fr
    """
    codes = {named[1] if (named := _UD_FILE.match(file.name)) else "en" for file in files}
    return codes.pop() if len(codes) == 1 else "en"


def _look_at_text(corpus: Corpus, request: SourceRequest) -> None:
    """Warn of text that is hardly English but divided as such, or divided already, and of wrapped lines.

    The largest file is looked at.
    """
    # a link that leads nowhere is an error later
    part = max(corpus.parts, key=lambda one: one.path.stat().st_size if one.path.exists() else 0)
    with suppress(DerivlangError):  # a file that cannot be read is an error later, if its split is made
        names = [side.text or "text" for side in corpus.schema.sides if side.words is None]
        few = list(tables(corpus, part, encoding=request.encoding, limit=_FEW))
        texts = [text or "" for rows in few for name in names for text in rows.table[name].to_pylist()]
        by_rules = request.lang is None and request.words in (None, "spacy") and corpus.words == "spacy"
        if by_rules and is_not_english(texts):
            warn(f"{part.name}: hardly a word is English, but it is divided as English; --lang names its language")
        elif by_rules and (other := [text for text in texts if len(text) > _LONG and is_not_english([text])]):
            first = f"{counted(len(other), 'text')} of the first {len(texts):,}"
            warn(f"{part.name}: divided as English, with hardly an English word: {first}, {other[0].strip()[:40]!r} …")
        if request.words is None and corpus.words == "spacy" and is_divided(texts):
            warn(f"{part.name}: the words look divided already, and are divided again; --words space keeps them")
        if corpus.schema.running and is_wrapped(texts):
            warn(
                f"{part.name}: the lines look wrapped at one width, but each is a paragraph of its own; to join the "
                "lines of each paragraph: tr -d '\\r' < FILE | awk 'NF {printf \"%s \", $0; next} {print \"\"}' > NEW"
            )


def _look_at_trees(corpus: Corpus, request: SourceRequest) -> None:
    """Warn of a treebank that counts as English, which word orders of other languages ask for, but hardly is."""
    part = corpus.parts[0]
    with suppress(DerivlangError):  # as of text
        few = list(tables(corpus, part, encoding=request.encoding, limit=_FEW))
        columns = [rows.table[side.words] for rows in few for side in corpus.schema.sides if side.words]
        if is_not_english([" ".join(words or ()) for column in columns for words in column.to_pylist()]):
            warn(f"{part.name}: hardly a word is English, but it counts as English; --lang names its language")


def _check_values(corpus: Corpus, found: Mapping[CorpusFile, pa.Schema], encoding: str) -> None:
    """Warn of columns that a file lacks. Read the files whose types are widened: a number may be rounded.

    Raise DataError: types-differ, jsonl-type.
    """
    wider = {} if corpus.types is None else {field.name: field.type for field in corpus.types}
    values = [field.input for field in corpus.schema.fields if field.kind == "value"]
    for part, schema in found.items():
        if absent := [name for name in values if name not in schema.names]:
            warn(f"{part.name} has no column {', '.join(map(repr, absent))}: its rows have no value (null) there")
        own = {field.name: plain(field.type) for field in schema}
        if all(kind == wider[name] or pa.types.is_null(kind) for name, kind in own.items()):
            continue
        try:
            for _ in tables(corpus, part, encoding=encoding):
                pass
        except DataError as error:
            if error.id in ("types-differ", "jsonl-type"):  # other errors come again, if the split is made
                raise


def _with_labels(corpus: Corpus, encoding: str) -> Corpus:
    """Return the corpus, with NLI labels only if all values of the label are names of NLI labels."""

    def labels(column: str) -> Iterator[Any]:
        for part in corpus.parts:
            for rows in tables(corpus, part, encoding=encoding):
                yield from pc.unique(rows.table[column]).to_pylist()

    return replace(corpus, schema=without_nli(corpus.schema, labels))


def _derived(path: Path) -> Corpus:
    """Return a derived set as a source: its pipeline is applied first, and its sentences are not split again.

    Raise StoreError if it is not finished, or if its transforms would derive something else today.
    """
    from derivlang.store.manifest import Derived, counts_of_reading

    derived = Derived(path)
    derived.check_fingerprint()
    source = derived.manifest["source"]
    parser = derived.manifest.get("parser") if derived.manifest["spec"] == "identity" else None
    parts = tuple(
        CorpusFile(split, path / shard["file"], shard["file"])
        for split in derived.splits
        for shard in derived.shards(split)
    )
    return Corpus(
        source["name"],
        "derived",
        derived.schema,
        parts,
        language=source["language"],
        licence=source["licence"],
        citation=source["citation"],
        spec=None if parser else str(derived.pipeline),  # a parsed source is its text, with sentences and trees
        spec_files=files_of(path),
        lexicon=derived.lexicon,
        lexicon_text=derived.lexicon_text(),
        layout=source.get("layout", {}),
        origin=source["format"],
        options={
            "sha256": {shard["file"]: shard["sha256"] for split in derived.splits for shard in derived.shards(split)},
            "read": counts_of_reading(derived.manifest),
            "recipe": derived.manifest.get("options") or [],
            "sentences": derived.manifest["sentences"],
            "policies": derived.policies,
            "limit": derived.manifest.get("limit"),
            "told": {name: derived.manifest.get(name) for name in ("encoding", "words", "parser", "plug_ins")},
            **({"parser": parser} if parser else {}),
        },
    )


def _with_classes(corpus: Corpus, encoding: str) -> Corpus:
    """Find which columns hold entities, the tag scheme of these, and the names of tags, which every shard needs.

    All files decide it. The tags of named and derived sets are known.
    """
    inputs = {f.column: f.input for f in corpus.schema.fields}
    undecided = {f.column for f in corpus.schema.fields if f.kind in UNDECIDED}
    known = corpus.format == "derived" or bool(corpus.expected)
    searches = {
        f.column: SchemeSearch(f.classes or ())
        for f in corpus.schema.fields
        if f.kind in UNDECIDED or (f.kind == "entities" and (f.classes is None or not known))
    }
    if not searches:
        return corpus
    numbered = {f.column for f in corpus.schema.fields if f.classes is not None}  # tags may be numbers of classes
    open_searches = dict(searches)
    few = tables(corpus, corpus.parts[0], encoding=encoding, limit=_FEW)
    every = chain.from_iterable(tables(corpus, part, encoding=encoding) for part in corpus.parts)
    for rows in chain(few, every):
        for column, search in open_searches.items():
            tags = whole(rows.table[inputs[column]])
            if column in undecided and not is_string_list(tags.type):  # an error later, if it must have such values
                continue
            if column in numbered:
                search.add(value_lists(tags, column, rows.where))
            else:
                search.add(conform(tags, pa.list_(pa.string()), column, rows.where))
        for column in [column for column in open_searches if column in undecided and searches[column].is_settled]:
            del open_searches[column]
        if not open_searches:
            break
    schema = decided(corpus.schema, {column: search.names for column, search in searches.items()})
    fields = tuple(
        searches[f.column].of_field(f) if f.kind == "entities" and f.column in searches else f for f in schema.fields
    )
    for field in fields:
        if field.scheme is not None:
            warn(
                f"the tags in {field.input} of {corpus.name} are {field.scheme}: the entities that they mean are "
                f"written as B-, I- and O, and `undo` writes {field.scheme} again"
            )
    watched = tuple(f.input for f in fields if f.column in undecided and f.kind != "entities")
    return replace(corpus, schema=replace(schema, fields=fields), watched=watched)


def request_of_text(request: SourceRequest, other: str) -> SourceRequest:
    """Return the request for another text, which is read as the source is: options about columns only if it has some.

    Raise DerivlangError if it cannot be found.
    """
    asked = replace(request, source=other)
    try:
        find(asked)
    except UsageError as error:
        if error.id != "unused-option":
            raise
        asked = SourceRequest(
            other, data_dir=request.data_dir, words=request.words, lang=request.lang, encoding=request.encoding
        )
    return asked
