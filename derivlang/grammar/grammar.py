"""A grammar, the order models of one language by head class, and derivlang's file of it (docs/reference/files.md).

    # derivlang grammar 1
    # language: French
    # labels: v2
    # licence: CC-BY-SA-4.0
    # weights: 55780
    # sha256: 5d0c…
    class       V
    BTW NOUN&nsubj      NOUN&obj=1.204  VERB&advcl=0.31

A line of weights has a kind, the first label, then `second=weight` for each second label; HI separates its first labels
by spaces. Lines are sorted and weights have two decimals, so the same grammar gives the same bytes. `sha256` is the
hash of all other lines; shipped grammars have none.

load_grammar: a shipped grammar by its name, or a file by its path.

fr                       shipped with derivlang
my.grammar.tsv           derivlang's own format
DIR/fr                   DIR/fr@N.orm.gz and DIR/fr@V.orm.gz, whichever exist
DIR/fr@V.orm.gz          one head class
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError, UsageError, unknown
from derivlang.core.spec import Named, Parts
from derivlang.formats.places import is_path, once_per_version
from derivlang.grammar import counts
from derivlang.grammar.counts import Counts
from derivlang.grammar.enumerate_orders import SHORTEST
from derivlang.grammar.weights import (
    KINDS,
    LARGEST,
    LONGEST_SEQUENCE,
    ORM_SUFFIXES,
    VIEWS,
    Features,
    Weights,
    broken,
    check_number,
    head_class_of,
    language_of,
    lines,
    read_weights,
    with_header,
)


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


FIRST_LINE = "# derivlang grammar 1"
DECIMALS = 2
_WEIGHTS, _HASH = "weights", "sha256"


def grammar_text(grammar: Grammar) -> str:
    """Return the text of the file of a grammar; weights are rounded, and left out if they round to 0."""
    out = [FIRST_LINE, f"# language: {grammar.language}", f"# labels: {grammar.labels}"]
    out += [f"# {key}: {value}" for key, value in grammar.about.items()]
    n_header, n_weights = len(out), 0
    for name, weights in grammar.weights.items():
        out.append(f"class\t{name}")
        features = [
            (kind, tokens[:-1], tokens[-1], f"{weight:.{DECIMALS}f}") for kind, tokens, weight in weights.features()
        ]
        kept = [feature for feature in features if float(feature[3])]
        for (kind, first), group in groupby(kept, key=lambda feature: feature[:2]):
            cells = [f"{last}={value}" for _, _, last, value in group]
            n_weights += len(cells)
            out.append("\t".join([kind, " ".join(first), *cells]))
    out.insert(n_header, f"# {_WEIGHTS}: {n_weights}")  # so that a truncated file is noticed
    out.insert(n_header + 1, f"# {_HASH}: {_hash_of(out)}")
    return "\n".join(out) + "\n"


def read_grammar(path: Path) -> Grammar:
    """Return the grammar of a file.

    Raises DataError missing-file, encoding, grammar-header (not this format, no labels), grammar-line, grammar-cut,
    grammar-changed.
    """
    every = list(lines(path))
    found = with_header(path, iter(every), FIRST_LINE)
    if found is None:
        raise DataError(
            f"this is not a grammar: the first line of one is {FIRST_LINE!r}",
            where=f"{path}:1",
            fix='name a published model like fr@V.orm.gz; for counts of a treebank write syn:FILE:model="side=0.75"',
            id="grammar-header",
        )
    about, rows = found
    sections: dict[str, Features] = {}
    current: Features | None = None
    for number, line in rows:
        if line.startswith("class\t"):
            name = line.removeprefix("class\t")
            if name in sections or not name.isupper():
                raise broken(path, number, f"{name!r} is not a head class, or comes twice")
            current = sections[name] = {}
        elif current is None:
            raise broken(path, number, "weights come before the first class")
        else:
            _add_line(current, path, number, line)
    labels = about.pop("labels", "")
    if labels not in ("v1", "v2"):
        raise DataError(
            f"labels: {labels!r} must be v1 or v2, the version of Universal Dependencies",
            where=str(path),
            id="grammar-header",
        )
    if not sections:
        raise DataError("the file has no section `class`", where=str(path), id="grammar-header")
    language = about.pop("language", "")
    check_number(path, about, _WEIGHTS, sum(len(row) for section in sections.values() for row in section.values()))
    digest = about.pop(_HASH, "")
    if digest and digest != _hash_of([line for _, line in every if not line.startswith(f"# {_HASH}:")]):
        raise DataError(
            "the content has changed since the file was written",
            where=str(path),
            fix="copy the file again, or delete the line `# sha256` if you edited it",
            id="grammar-changed",
        )
    weights = {name: Weights.of(features, len(VIEWS)) for name, features in sections.items()}
    return Grammar(path.name.partition(".")[0], language, labels, weights, about, has_hash=bool(digest))


def _hash_of(rows: list[str]) -> str:
    """Return the SHA-256 of lines, without their line ends."""
    return sha256("\n".join("\n".join(rows).splitlines()).encode()).hexdigest()


def _add_line(features: Features, path: Path, number: int, line: str) -> None:
    """Add the weights of a line. Raises DataError grammar-line."""
    kind, *cells = line.split("\t")
    if kind not in KINDS or len(cells) < 2:
        raise broken(path, number, f"{line[:40]!r} is not a line of weights: KIND, first label, second=weight …")
    first = tuple(cells[0].split(" "))
    least, most = (SHORTEST - 1, LONGEST_SEQUENCE - 1) if kind == "HI" else (1, 1)
    if not least <= len(first) <= most or "" in first:
        wanted = "one label" if kind != "HI" else f"{least} to {most} labels"
        raise broken(path, number, f"{cells[0]!r} is not {wanted}")
    row = features.setdefault((kind, first), {})
    n_weights = len(row) + len(cells) - 1
    for cell in cells[1:]:
        last, equals, value = cell.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            raise broken(path, number, f"{cell!r}: {value!r} is not a number") from None
        if not equals or not last:
            raise broken(path, number, f"{cell!r} is not label=weight")
        if not abs(weight) <= LARGEST:
            raise broken(path, number, f"{cell!r}: a weight must be from -{LARGEST:,} to {LARGEST:,}")
        row[last] = weight
    if len(row) < n_weights:
        raise broken(path, number, "a weight is given twice")


SUFFIX = ".grammar.tsv"
COUNTS = ".counts.tsv"  # beside each shipped grammar


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the shipped grammars by name (`fr`)."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "grammars", package.parent / "grammars"):  # installed; a checkout
        grammars = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
        if grammars:
            return grammars
    return {}


def grammar_parts(value: str) -> Parts:
    """Return the parts of a value that names grammars: fr@N~my.tsv -> (fr, @N~), (my.tsv, "").

    A head class is in capitals, so that fr@V.orm.gz is a file. Raise UsageError for a part without a name.
    """
    parts = []
    texts = value.split("~")
    for number, part in enumerate(texts):
        name, at, head_class = part.rpartition("@")
        if not part or (at and not (name and head_class)):
            raise UsageError(
                f"syn: {value!r} names no grammar in {part!r}",
                fix="write syn:fr, syn:fr@N or syn:fr@N~hi@V",
                id="bad-value",
            )
        if not (at and head_class.isupper() and (name in shipped() or not is_path(part, "file"))):
            name, at, head_class = part, "", ""
        parts.append((name, at + head_class + ("~" if number < len(texts) - 1 else "")))
    return tuple(parts)


def grammar_files(path: str) -> tuple[str, ...]:
    """Return the files that the path of a grammar stands for: a pair of .orm files, one a head class, or itself."""
    pair = {} if is_path(path, "file") else files_of_pair(Path(path))
    return tuple(map(str, pair.values())) or (path,)


def load_grammar(name_or_path: str | os.PathLike[str], *, where: str | None = None) -> Grammar:
    """Return a grammar by name or path, the same object until a file changes. where: its option, for messages.

    The name of a shipped grammar comes before a file of that name: ./fr is the file.

    Raises UsageError unknown-grammar, grammar-name; DataError missing-file, grammar-line, grammar-header.
    """
    text = os.fspath(name_or_path)
    path, names = Path(text), shipped()
    if text in names:
        return _grammar(str(names[text]))
    if is_path(text, "file"):
        return _orm({head_class_of(path): path}) if path.name.endswith(ORM_SUFFIXES) else _grammar(text)
    if pair := files_of_pair(path):
        return _orm(pair)
    raise _unknown(text, where)


def load_counts(name_or_path: str | os.PathLike[str], *, where: str | None = None) -> Counts:
    """Return the counts of a shipped grammar's language, or of a file. where: as of `load_grammar`.

    Raises UsageError unknown-grammar; DataError as `counts.read`.
    """
    text = os.fspath(name_or_path)
    if text in shipped():
        return _counts(str(shipped()[text].with_name(f"{text}{COUNTS}")))
    if is_path(text, "file"):
        return _counts(text)
    raise _unknown(text, where)


def _unknown(text: str, where: str | None) -> UsageError:
    """Return the error for a text that is neither a shipped grammar nor a file."""
    names = shipped()
    if "/" in text or os.sep in text or text.endswith((*ORM_SUFFIXES, SUFFIX, ".tsv")):
        return UsageError(
            f"there is no grammar file {text}",
            where=where,
            fix=f"give a name ({', '.join(names)}) or the path of a .tsv or .orm file",
            id="unknown-grammar",
        )
    return unknown("grammar", text, names, fix="`derivlang grammar ls` lists them; a path works too")


def files_of_pair(prefix: Path) -> dict[str, Path]:
    """Return the .orm files that a prefix names, by head class: {"V": DIR/fr@V.orm.gz}; {} if there are none."""
    return {
        name: file
        for name in ("N", "V")
        for suffix in ORM_SUFFIXES
        if is_path(file := Path(f"{prefix}@{name}{suffix}"), "file")
    }


def _orm(paths: dict[str, Path]) -> Grammar:
    first = next(iter(paths.values()))
    return _of_weights(language_of(first), tuple((name, _weights(str(path))) for name, path in paths.items()))


@lru_cache(maxsize=16)
def _of_weights(language: str, weights: tuple[tuple[str, Weights], ...]) -> Grammar:
    return Grammar(language, "", "v1", dict(weights), {"format": "orm"})


_grammar = once_per_version(read_grammar)
_counts = once_per_version(counts.read)
_weights = once_per_version(read_weights)
GRAMMARS = Named(shipped, grammar_parts, grammar_files)
SUBSTRATES = Named(lambda: [*shipped(), "none"], paths=grammar_files)
