"""What a place raises, as an error of derivlang: the one place that knows the exceptions of fsspec and botocore.

Classes are known by their names, since each store has its own packages and none of them need be installed. No message
of a store is quoted where it might hold a signed address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from derivlang.core.errors import DataError, DerivlangError, StoreError, causes, reason

_NO_CREDENTIALS = {
    "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "DefaultCredentialsError",
    "ProfileNotFound", "TokenRetrievalError", "SSOTokenLoadError", "UnauthorizedSSOTokenError",
}  # fmt: skip
_UNREACHABLE = {
    "EndpointConnectionError", "ConnectionClosedError", "ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError",
    "ProxyConnectionError", "ResponseParserError", "IncompleteReadError", "ClientConnectionError", "ClientPayloadError",
    "FSTimeoutError", "gaierror", "TimeoutError", "ConnectionError",
}  # fmt: skip
_ANONYMOUS = "Anonymous caller"  # so Google's store answers a request without credentials
_BAD_KEYS = re.compile(
    r"access key id|signature we calculated|token.*(expired|invalid)|unauthorized|\b401\b|(^|403 )forbidden:", re.I
)
_BUCKET = re.compile(r"(s3a?|gs|gcs)://[^/]*/?")
_BUCKET_OF_GCSFS = re.compile(r"(^|/)b/[^/]+(/o)?$")  # what `gcsfs` asked for: the path of a request, without an object
_FAILED = range(500, 600)
_LOGIN = re.compile(r"//[^/@]*@")
_QUERY = re.compile(r"\?[^\s'\")]+")


def fault(caught: Exception, where: str, doing: str = "read") -> DataError:
    """Return the error for what a store raised. where: the URL. doing: `read` or `write`."""
    caught = _of_server(caught) or caught
    names, text = _names(caught), str(caught)
    if "FileExpired" in names:
        return changed_file(where)
    if names & _NO_CREDENTIALS or _ANONYMOUS in text:
        return DataError(
            "the store asks for credentials, and none were found",
            where=where,
            fix="give them where the store's own tools take them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "~/.aws/credentials, or GOOGLE_APPLICATION_CREDENTIALS",
            id="no-credentials",
        )
    if names & {"PermissionError", "RefreshError"} or _BAD_KEYS.search(text):
        return DataError(
            "the store denies access",
            where=where,
            fix=f"check the credentials, and that they may list the folder and {doing} its files",
            id="access-denied",
        )
    if names & _UNREACHABLE:
        return DataError(
            "the store cannot be reached",
            where=where,
            fix="check the network and the store's address (such as AWS_ENDPOINT_URL), then run the same command again",
            id="unreachable-store",
        )
    if names_bucket(caught, where):
        return DataError("there is no such bucket", where=where, fix="check the URL", id="missing-bucket")
    ranges = "range requests" in text  # of a web server that gives files only from their beginning
    return DataError(
        f"the store cannot {doing} it: {_LOGIN.sub('//…@', _QUERY.sub('?…', reason(caught)))}",
        where=where,
        fix="copy the file to this machine first" if ranges else "run the same command again",
        id="unreadable-file",
    )


@contextmanager
def asking(
    where: object, doing: str = "read", told: Callable[[Exception, str, str], DerivlangError | None] = fault
) -> Iterator[None]:
    """Raise an error of derivlang for what a place raises: a store, a disk, the hub.

    where: the URL or the path. doing, told: as of `fault`, which explains an exception; one for which it returns None
    stays. To read: a DataError; missing files, and folders as files, stay as in Python. To write: a StoreError.
    """
    try:
        yield
    except DerivlangError:
        raise
    except Exception as caught:
        if doing == "read" and (
            isinstance(caught, IsADirectoryError | NotADirectoryError | FileExistsError)
            or (isinstance(caught, FileNotFoundError) and is_missing_file(caught, str(where)))
        ):
            raise
        error = told(caught, str(where), doing)
        if error is None:
            raise
        kind = DataError if doing == "read" else StoreError
        # What is written may have a signed address, which a traceback would show.
        cause = caught if doing == "read" else None
        raise kind(error.what, where=error.where, fix=error.fix, id=error.id) from cause


def is_missing_file(caught: FileNotFoundError, where: str) -> bool:
    """Return whether an object or a folder is missing, and not its bucket, or the whole store."""
    other = names_bucket(caught, where) or _names(caught) & (_UNREACHABLE | _NO_CREDENTIALS)
    return not (other or _of_server(caught))


def names_bucket(caught: Exception, where: str) -> bool:
    """Return whether what is missing at a URL is the bucket, and not an object in it."""
    text = str(caught).lower()
    named = ("bucket" in text and "exist" in text) or _BUCKET_OF_GCSFS.search(text) or _BUCKET.fullmatch(where)
    return isinstance(caught, FileNotFoundError) and bool(named)


def changed_file(where: str) -> DataError:
    """Return the error for a source that changed while it was read."""
    return DataError(
        "the file changed while it was read",
        where=where,
        fix="let it be written whole, then run the same command again (make, parse: with --force)",
        id="source-changed",
    )


def _of_server(caught: Exception) -> Exception | None:
    """Return the answer 500 to 599 of a web server behind an exception: fsspec makes a missing file of it."""
    return next((e for e in causes(caught) if isinstance(e, Exception) and getattr(e, "status", 0) in _FAILED), None)


def _names(caught: Exception) -> set[str]:
    """Return the names of the classes of an exception and of its causes."""
    return {kind.__name__ for error in causes(caught) for kind in type(error).__mro__}
