"""Names of splits (train, validation, test, and their other spellings), and names of files for texts.

fr_gsd-ud-dev.conllu.gz  ->  validation      test/a.txt  ->  test
trans,inv  ->  trans-inv                     mallows:-2  ->  mallows-minus2, other than mallows:2
"""

from __future__ import annotations

import re

SPLITS = ("train", "validation", "test")
_NAMES = {"dev": "validation", "valid": "validation", "val": "validation"}
_IN_FILE = re.compile(r"(?:^|[._-])(train|validation|valid|val|dev|test)(?=[._-]|\d|$)", re.IGNORECASE)


def split_name(name: str) -> str:
    """Return the name of a split: `dev`, `valid`, `val` become `validation`; other names stay."""
    low = name.lower()
    return _NAMES.get(low, low if low in SPLITS else name)


def usual_spelling(file: str) -> str:
    """Return the relative path of a file, with the usual names of splits: `validation.txt` for `dev.txt`."""
    names = (_IN_FILE.sub(lambda m: m[0].replace(m[1], split_name(m[1])), name) for name in re.split(r"[/\\]", file))
    return "/".join(names)


def split_of(file: str) -> str | None:
    """Return the split in the name of a file, or else of the nearest folder of its relative path; or None."""
    for name in reversed(re.split(r"[/\\]", file.removesuffix(".gz").removesuffix(".zst"))):
        if matches := _IN_FILE.findall(name):
            return split_name(matches[-1].lower())
    return None


_SIGN = re.compile(r"(?<![A-Za-z0-9._-])-(?=[0-9.])")  # of a number, not the hyphen of `ner-2`


def slug(text: str, empty: str = "none") -> str:
    """Return the text with hyphens for everything except letters, digits, dots and underscores, signs as `minus`.

    empty: the result for a text without such characters.
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", _SIGN.sub("-minus", text)).strip("-.") or empty
