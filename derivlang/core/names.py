"""Names of splits (train, validation, test, and their other spellings), and names of files for texts.

fr_gsd-ud-dev.conllu.gz  ->  validation      test/a.txt  ->  test
trans,inv  ->  trans-inv                     mallows:-2  ->  mallows-minus2, other than mallows:2

URLs of stores are texts here: what is one, and which would give credentials away.

s3://bucket/a.txt      is a URL          C:\\a.txt, ner:fr, hub:a/b     are not
"""

from __future__ import annotations

import re

from derivlang.core.errors import UsageError

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


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+(?:::[A-Za-z0-9+.-]+)*)://")
# A user with a password before the host; a secret key may hold slashes. `host:8080/` is a port, `arn:aws:…` a bucket.
_PASSWORD = re.compile(r"(?!arn:)[^/@:]*:(?!\d+(/|$))[^@]*@")
_USER = re.compile(r"[^/@]*@")
_WITH_USERS = ("abfs", "abfss", "wasb", "wasbs", "sftp", "ssh", "ftp", "smb")  # what stands before `@` is not secret
_SECRET = re.compile(r"[?&][^=&]*(sig|token|secret|passw|credential|auth|key)[^=&]*=", re.IGNORECASE)


def is_url(text: str) -> bool:
    """Return whether a text is the URL of a store, also of one that is not known."""
    return _URL.match(text) is not None


def protocol_of(url: str) -> str:
    """Return the protocol of a URL in lower case: s3 for S3://bucket."""
    match = _URL.match(url)
    assert match is not None
    return match[1].lower()


def check_no_secrets(text: str) -> None:
    """Raise UsageError, without quoting it, for a URL that holds a password or is signed. Other texts pass."""
    match = _URL.match(text)
    if match is None:
        return
    rest = text[match.end() :]
    user = _USER.match(rest) is not None and protocol_of(text) not in _WITH_USERS
    if user or _PASSWORD.match(rest) or _SECRET.search(rest):
        raise UsageError(
            "this URL holds credentials, which would be shown in messages and records",
            where=f"{match[1]}://…",
            fix="leave them out, and give them where the store's own tools take them, such as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or GOOGLE_APPLICATION_CREDENTIALS",
            id="url-credentials",
        )
