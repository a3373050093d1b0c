"""Results that are folders, and their default names, made from the source, the transforms and the other options.

    make --t trans,inv wikitext103                wikitext103.trans-inv
    make --t perm corpus.txt.gz                   corpus.txt.gz.perm
    make --t trans ner:fr                         ner-fr.trans
    make --t perm:window=3 demo --limit 5         demo.perm-window-3.limit-5.1b2c3d4e

A plain name determines the command: two commands with one name are the same command. If the name leaves something out
or spells it differently, eight hex digits of a hash of the whole follow.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from derivlang.core.errors import DerivlangError
from derivlang.core.names import slug
from derivlang.formats.places import PathLike, located
from derivlang.formats.progress import reader

_LONGEST = 60  # maximum number of characters in each part of a name
_NAMED = re.compile(r"[A-Za-z0-9_]+:[A-Za-z0-9_-]+")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WORDS = re.compile(r"[a-z0-9_]+(,[a-z0-9_]+)*")
_LAST = re.compile(r"[a-z0-9_-]*")

# Options that change where or how fast a command runs, but not what it makes.
_NEUTRAL = frozenset(
    "source spec out as_json force workers parses data_dir threads device resume tracker "
    "keep save_every log_every shard_tokens data data_only factors".split()
)


def named_folder(source: str, spec: str = "", options: Mapping[str, object] | None = None, *, last: str = "") -> Path:
    """Return `default_folder`, and say so when the work begins."""
    out = default_folder(source, spec, options, last=last)
    reader().begins(f"writing to {out}{os.sep}")
    return out


def default_folder(source: str, spec: str = "", options: Mapping[str, object] | None = None, *, last: str = "") -> Path:
    """Return the folder, in the current one, for the output of a command.

    options: those that differ from their defaults; some change nothing of what is made. last: a final part of the name,
    e.g. "tokenizer" or an objective.
    """
    identity = _identity(source)
    changed = [f"{name}={_text(value)}" for name, value in sorted((options or {}).items()) if name not in _NEUTRAL]
    plain = _is_plain(identity) and (not spec or _WORDS.fullmatch(spec)) and not changed and _LAST.fullmatch(last)
    parts = [_part(identity.rpartition("/")[2] if ":" not in identity else identity)]
    parts += [_part(spec)] if spec else []
    parts += [_part("-".join(changed))] if changed else []
    parts += [_part(last)] if last else []
    name = ".".join(parts)
    if plain and len(name) <= 2 * _LONGEST:
        return Path(name)
    from hashlib import sha256  # imported late: help pages do not need it

    whole = "\0".join([identity, spec, last, *changed])
    return Path(f"{name}.{sha256(whole.encode()).hexdigest()[:8]}")


def _identity(source: str) -> str:
    """Return a source's name, or its path: relative inside the current folder, else absolute."""
    if ":" in source or not os.path.lexists(source):
        return source
    path = Path(os.path.normpath(Path.cwd() / source))
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.as_posix()


def _is_plain(identity: str) -> bool:
    """Return whether the name is unambiguous. `ner:fr` becomes ner-fr, so a path with `-` must also have a dot."""
    if _NAMED.fullmatch(identity):
        return True
    return _FILE.fullmatch(identity) is not None and ("." in identity or "-" not in identity)


def _part(text: str) -> str:
    return slug(text, empty="x")[:_LONGEST].rstrip("-.")


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


@dataclass(frozen=True, init=False, repr=False)
class InFolder:
    """Something in a folder. path: the folder, which may be given as a text, also as a URL.

    summary: what was counted when it was just made, else {}. Raise StoreError if it is not there.
    """

    path: Path
    summary: Mapping[str, Any] = field(compare=False)

    def __init__(self, path: PathLike, summary: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "path", located(path))
        object.__setattr__(self, "summary", summary or {})
        if summary is None:
            self.facts()

    def facts(self) -> dict[str, Any]:
        """Return what `repr` shows beside the path."""
        raise NotImplementedError

    def __repr__(self) -> str:
        try:
            facts = self.facts()
        except DerivlangError:  # something was damaged since
            facts = {}
        shown = [repr(str(self.path)), *(f"{name}={value!r}" for name, value in facts.items())]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def set_size(derived: Path, split: str | None = None) -> int | None:
    """Bytes of the shards of a derived set, or of a split of it; None if there are none."""
    try:
        return sum(path.stat().st_size for path in derived.glob(f"data/{glob.escape(split or '')}*.parquet")) or None
    except OSError:
        return None
