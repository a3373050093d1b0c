"""Adapters to other parsers: from sentences as lists of strings to checked trees as arrays.

Words are normalised as for the bundled parser (`normalise.py`), so that WikiText's `@-@` and `don 't` mean the same to
all parsers. A foreign parser computes in floating point, so its parse of a sentence may depend on the other sentences.

spaCy: any pipeline whose labels are Universal Dependencies: `spacy:NAME`, an installed package or a folder. Only the
tagger and the parser run. spaCy's own English models have ClearNLP labels (`dobj`, `pobj`) and are refused; so is a
pipeline without a parser or universal tags. Each sentence is one document. If spaCy splits it nevertheless, later roots
depend on the first as `parataxis`.

Stanza (Qi et al. 2020), which the papers on derived languages used: the parser is named `stanza`, or `stanza:DIR` for
models in another folder. It keeps the words as given, parses sentences of similar length together, and uses a GPU if
there is one. Nothing is downloaded. Stanza unpickles some parts of its models, which may run code: a folder must be one
that the user trusts, and no file of derivlang names one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.errors import DataError, DerivlangError, UsageError, reason
from derivlang.core.schema import V2_RELATIONS
from derivlang.formats.progress import words_done
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


def load_stanza(folder: str | None, language: str) -> ForeignParser:
    """Load Stanza's default models for a language. folder: where they are; None for Stanza's own folder.

    Raises DerivlangError missing-package, and DataError parser-missing with the command that downloads the models.
    """
    name = "stanza" if folder is None else f"stanza:{folder}"
    try:
        import stanza
    except ImportError:
        raise missing_package(name, "stanza") from None
    options: dict[str, Any] = {} if folder is None else {"dir": folder}
    try:
        with nullcontext() if folder is None else tensors_only():
            pipeline = stanza.Pipeline(
                lang=language,
                processors="tokenize,pos,lemma,depparse",  # depparse needs lemmas
                tokenize_pretokenized=True,
                download_method=None,
                verbose=False,
                **options,
            )
    except Exception as error:  # a damaged model may raise any kind
        place = "" if folder is None else f", model_dir={folder!r}"
        raise DataError(
            f"cannot load Stanza's models for tagging and parsing {language!r}: {reason(error)}",
            where=f"--parser {name}",
            fix=f'download them (500 MB): python -c "import stanza; stanza.download({language!r}{place})"',
            id="parser-missing",
        ) from error
    return stanza_parser(pipeline, name, language, stanza.__version__)


def stanza_parser(pipeline: Any, name: str, language: str, version: str) -> ForeignParser:
    """Return the parser of a Stanza pipeline that takes lists of words. version: of the package, for the fingerprint.

    The fingerprint also covers the content of the model files, so that a new download makes new parses.
    """

    def run(sentences: list[list[str]]) -> Iterator[Tree]:
        for sentence in pipeline(sentences).sentences:
            words = sentence.words
            yield [w.upos for w in words], [w.head for w in words], [w.deprel for w in words]

    paths = {str(value) for key, value in pipeline.config.items() if key.endswith("_path") and isinstance(value, str)}
    files = [Path(path) for path in sorted(paths) if Path(path).is_file()]
    return ForeignParser(name, language, fingerprint(["stanza", version, language], files), run)
