"""URLs of stores, as texts: what is one, and which would give credentials away.

s3://bucket/a.txt      is a URL          C:\\a.txt, ner:fr, hub:a/b     are not
"""

from __future__ import annotations

import re

from derivlang.core.errors import UsageError

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
