"""load_grammar: a shipped grammar by its name, or a file by its path.

fr                       shipped with derivlang
my.grammar.tsv           derivlang's own format
DIR/fr                   DIR/fr@N.orm.gz and DIR/fr@V.orm.gz, whichever exist
DIR/fr@V.orm.gz          one head class
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from derivlang.core.errors import UsageError, unknown
from derivlang.core.spec import Named, Parts
from derivlang.formats.places import is_path
from derivlang.grammar import counts
from derivlang.grammar.counts import Counts
from derivlang.grammar.grammar import Grammar, read_grammar
from derivlang.grammar.weights import ORM_SUFFIXES, head_class_of, language_of, read_weights

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
    """Return a grammar by name or path. where: the option that names it, for messages.

    The name of a shipped grammar comes before a file of that name: ./fr is the file.

    Raises UsageError unknown-grammar, grammar-name; DataError missing-file, grammar-line, grammar-header.
    """
    text = os.fspath(name_or_path)
    path, names = Path(text), shipped()
    if text in names:
        return read_grammar(names[text])
    if is_path(text, "file"):
        return _orm({head_class_of(path): path}) if path.name.endswith(ORM_SUFFIXES) else read_grammar(path)
    if pair := files_of_pair(path):
        return _orm(pair)
    raise _unknown(text, where)


def load_counts(name_or_path: str | os.PathLike[str], *, where: str | None = None) -> Counts:
    """Return the counts of a shipped grammar's language, or of a file. where: as of `load_grammar`.

    Raises UsageError unknown-grammar; DataError as `counts.read`.
    """
    text = os.fspath(name_or_path)
    if text in shipped():
        return counts.read(shipped()[text].with_name(f"{text}{COUNTS}"))
    if is_path(text, "file"):
        return counts.read(Path(text))
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
    weights = {name: read_weights(path) for name, path in paths.items()}
    return Grammar(language_of(first), "", "v1", weights, {"format": "orm"})


GRAMMARS = Named(shipped, grammar_parts, grammar_files)
SUBSTRATES = Named(lambda: [*shipped(), "none"], paths=grammar_files)
