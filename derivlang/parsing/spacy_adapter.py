"""Any spaCy pipeline whose labels are Universal Dependencies: `spacy:NAME`, an installed package or a folder.

Only the tagger and the parser run. spaCy's own English models have ClearNLP labels (`dobj`, `pobj`) and are refused; so
is a pipeline without a parser or universal tags. Each sentence is one document. If spaCy splits it nevertheless, later
roots depend on the first as `parataxis`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, DerivlangError, UsageError
from derivlang.core.parse_errors import reason
from derivlang.grammar.labels import V2_RELATIONS
from derivlang.parsing.foreign import (
    ForeignParser,
    Tree,
    fingerprint,
    missing_package,
    not_universal,
    tensors_only,
)

# Components that neither tag nor parse, by the names of their factories.
_UNUSED = {
    "lemmatizer", "trainable_lemmatizer", "ner", "beam_ner", "entity_linker", "entity_ruler", "span_ruler", "spancat",
    "spancat_singlelabel", "span_finder", "textcat", "textcat_multilabel", "senter", "sentencizer",
}  # fmt: skip


def load_spacy(name: str) -> ForeignParser:
    """Load the pipeline of an installed package or a folder.

    Raises UsageError parser-name, DataError parser-missing, DerivlangError missing-package, parser-labels,
    parser-incomplete.
    """
    full = f"spacy:{name}"
    if not name:
        raise UsageError(
            "spacy: needs the name of a pipeline",
            where="--parser",
            fix="write spacy:NAME or spacy:PATH",
            id="parser-name",
        )
    try:
        import spacy
    except ImportError:
        raise missing_package(full, "spacy") from None
    try:
        with tensors_only():
            pipeline = spacy.load(name)
    except Exception as error:  # a damaged folder may raise any kind
        raise DataError(
            f"spaCy cannot load the pipeline {name!r}: {reason(error)}",
            where=f"--parser {full}",
            fix=f"install it with `python -m spacy download {name}`, or name its folder",
            id="parser-missing",
        ) from error
    return spacy_parser(pipeline, full)


def spacy_parser(pipeline: Any, name: str) -> ForeignParser:
    """Return a parser over a loaded pipeline. Raises DerivlangError parser-labels, parser-incomplete."""
    from spacy.tokens import Doc

    for component in list(pipeline.pipe_names):
        if pipeline.get_pipe_meta(component).factory in _UNUSED:
            pipeline.disable_pipe(component)
    labels = {label for component, names in pipeline.pipe_labels.items() if component == "parser" for label in names}
    foreign = sorted(labels - {"ROOT"} - {label for label in labels if label.partition(":")[0] in V2_RELATIONS})
    if foreign:
        raise not_universal(name, f"its relations are {', '.join(foreign[:6])}{' …' * (len(foreign) > 6)}")

    def documents(sentences: list[list[str]]) -> Iterator[Any]:
        for words in sentences:
            starts: list[bool | int | None] = [i == 0 for i in range(len(words))]
            yield Doc(pipeline.vocab, words=words, sent_starts=starts)

    probe = next(pipeline.pipe(documents([["This", "works", "."]])))
    for part, annotation in (("parser", "DEP"), ("tagger with universal tags", "POS")):
        if not probe.has_annotation(annotation):
            raise DerivlangError(
                f"the spaCy pipeline {name!r} has no {part}; it has: {', '.join(pipeline.pipe_names) or 'nothing'}",
                where="--parser",
                fix="name a pipeline that both tags and parses",
                id="parser-incomplete",
            )

    def run(sentences: list[list[str]]) -> Iterator[Tree]:
        for doc in pipeline.pipe(documents(sentences)):
            heads = [0 if token.head.i == token.i else token.head.i + 1 for token in doc]
            deprel = [token.dep_ for token in doc]
            first, *others = [i for i, head in enumerate(heads) if head == 0]
            for i in others:
                heads[i], deprel[i] = first + 1, "parataxis"
            yield [token.pos_ for token in doc], heads, deprel

    return ForeignParser(name, pipeline.lang, _fingerprint(pipeline), run)


def _fingerprint(pipeline: Any) -> str:
    meta = pipeline.meta
    parts = ["spacy", version("spacy"), pipeline.lang, str(meta.get("name")), str(meta.get("version"))]
    folder = getattr(pipeline, "path", None)
    if folder is None or not Path(folder).is_dir():
        return fingerprint([*parts, pipeline.to_bytes(exclude=["vocab"]).hex()])
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return fingerprint([*parts, *(str(path.relative_to(folder)) for path in files)], files)
