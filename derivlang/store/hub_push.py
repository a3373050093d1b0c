"""Send files to a repository of the Hugging Face hub, in one commit, which comes whole or not at all.

The client skips files that the hub has already. Credentials are its own business; no message quotes its errors, since
they hold signed URLs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from logging import CRITICAL
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from derivlang.core.errors import StoreError, UsageError, causes
from derivlang.core.messages import DerivlangWarning, first_names, warn
from derivlang.core.version import __version__
from derivlang.formats.progress import stage
from derivlang.formats.store_errors import asking
from derivlang.store.manifest import CARD
from derivlang.store.record import difference
from derivlang.store.settings import PushOptions

MAIN = "main"
_OF_HUB = ".gitattributes"  # in every repository from its beginning
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_URL = re.compile(r"\w+://\S+")
_AGAIN = "the same command goes on: what the hub has is not sent again"
_LOGIN = "log in with `hf auth login`, or set HF_TOKEN, with a token that may write there"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """What the record of one kind of result says.

    identity: the names of the fields that another result has otherwise. words: said of fields whose values say nothing
    to a reader. own: patterns of the names of its files on the hub, as of `fnmatch`.
    """

    identity: tuple[str, ...]
    words: Mapping[str, str]
    own: tuple[str, ...]

    def identity_of(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a record that another result has otherwise."""
        return {name: record[name] for name in self.identity if name in record}


def check_repository(name: str, revision: str) -> None:
    """Raise UsageError for names that no repository or branch of the hub can have; a repository's is owner/name."""
    part = name.partition("/")[2]
    if not _NAME.fullmatch(name) or len(name) > 96 or "--" in name or ".." in name or part.endswith((".git", ".ipynb")):
        raise UsageError(
            f"{name!r} is not the name of a repository",
            where="REPOSITORY",
            fix="give OWNER/NAME, such as my-name/demo-inverted, of letters, digits, '-', '_' and '.'",
            id="repository",
        )
    if not _BRANCH.fullmatch(revision) or ".." in revision:
        raise UsageError(f"{revision!r} is not the name of a branch", where="--revision", id="repository")


def page_of(name: str, repo_type: str, revision: str = MAIN) -> str:
    """Return the URL of the page of a repository, which need not be there. A password in HF_ENDPOINT is left out."""
    from huggingface_hub import constants

    parts = urlsplit(constants.ENDPOINT)
    host = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    folder = "" if repo_type == "model" else f"{repo_type}s/"
    return f"{host}/{folder}{name}" + ("" if revision == MAIN else f"/tree/{revision}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPush:
    """A push. repository: owner/name. record: the file by which the result is known.

    kinds: of results, by the names of their records.
    """

    repository: str
    repo_type: Literal["dataset", "model"]
    record: str
    kinds: Mapping[str, RecordKind]
    options: PushOptions

    def send(self, folder: Path, names: Sequence[str], warn: Callable[[str], None] = warn) -> dict[str, Any]:
        """Send files of a folder by their names.

        Return {"commit", "sent", "removed"}: the last commit, whether this push made it, and the number of files that
        were removed. Raise StoreError if the repository holds something else, or if the hub cannot be reached or
        refuses.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

        with asking(self.repository, "write", _of_hub), _quiet_client(warn):
            api = HfApi(library_name="derivlang", library_version=__version__)
            head, there = self._look(api)
            records = [name for name in self.kinds if name in there]
            if not self.options.force:
                self._refuse_others(api, head, folder, records, there)
            stale = [name for name in there if name not in names and self._is_own(name, records)]
            if kept := [name for name in there if name not in {*names, *stale}]:
                warn(f"{self.repository}: kept what is not of an earlier push: {first_names(kept)}")
            added = [CommitOperationAdd(name, folder / name) for name in names]
            # `upload_folder` may make several commits, and a reader would take the record of the first for a result.
            with stage("sending", None), _checked_card():
                made = api.create_commit(
                    self.repository,
                    [*added, *map(CommitOperationDelete, stale)],
                    commit_message=f"Send {self.record}",
                    repo_type=self.repo_type,
                    revision=self.options.revision,
                    parent_commit=head,
                )
            return {"commit": made.oid, "sent": made.oid != head, "removed": len(stale)}

    def _look(self, api: Any) -> tuple[str, list[str]]:
        """Make the repository and the branch unless they are there. Return the last commit, and the names of files."""
        private, revision = self.options.private, self.options.revision
        api.create_repo(self.repository, repo_type=self.repo_type, private=private or None, exist_ok=True)
        if private and not api.repo_info(self.repository, repo_type=self.repo_type).private:
            raise StoreError(
                "this repository is public, and a push does not change that",
                where=self.repository,
                fix="make it private on its page, or leave out --private; nothing was sent",
                id="public-repository",
            )
        if revision != MAIN:
            api.create_branch(self.repository, branch=revision, repo_type=self.repo_type, exist_ok=True)
        head = api.repo_info(self.repository, repo_type=self.repo_type, revision=revision).sha
        there = api.list_repo_files(self.repository, repo_type=self.repo_type, revision=head)
        return head, [name for name in there if name != _OF_HUB]

    def _is_own(self, name: str, records: Sequence[str]) -> bool:
        """Return whether a file on the hub is of an earlier push. records: those that are there."""
        return any(fnmatchcase(name, pattern) for record in records for pattern in (record, *self.kinds[record].own))

    def _refuse_others(self, api: Any, head: str, folder: Path, records: Sequence[str], others: Sequence[str]) -> None:
        """Raise StoreError if the repository holds another result, or other files and no result."""
        if not records:
            if others:
                raise self._other(first_names(others), ", or --force to send it there")
            return
        if records != [self.record]:
            raise self._other(f"{records[0]}, not {self.record}", ", or --force to replace it")
        kind = self.kinds[self.record]
        with TemporaryDirectory(prefix="derivlang-") as place:
            options = {"repo_type": self.repo_type, "revision": head, "local_dir": place}
            path = Path(api.hf_hub_download(self.repository, self.record, **options))
            try:
                was, now = (kind.identity_of(json.loads(one.read_bytes())) for one in (path, folder / self.record))
            except (ValueError, RecursionError, TypeError, AttributeError):
                raise self._other(f"{self.record} cannot be read", ", or --force to replace it") from None
        if told := difference(was, {**dict.fromkeys(was), **now}, kind.words):
            raise self._other(f"another result ({told})", ", or --force to replace it")

    def _other(self, found: str, way_out: str) -> StoreError:
        return StoreError(
            f"the repository holds something else: {found}",
            where=self.repository,
            fix=f"give another repository, or another --revision{way_out}; nothing was sent",
            id="other-repository",
        )


@contextmanager
def _checked_card() -> Iterator[None]:
    """Raise StoreError if the hub does not accept the card, which the client finds out before it sends the files."""
    try:
        yield
    except ValueError as error:
        if CARD not in str(error):
            raise
        what = f"the hub refuses the card: {_without_urls(error)}"
        fix = "correct the lines above its text; nothing was sent"
        raise StoreError(what, where=CARD, fix=fix, id="card") from None


@contextmanager
def _quiet_client(warn: Callable[[str], None]) -> Iterator[None]:
    """Silence the client of the hub: its log has signed URLs. Warnings about the card are passed on, without URLs."""
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    level, had_bars = logging.get_verbosity(), not are_progress_bars_disabled()
    logging.set_verbosity(CRITICAL)
    disable_progress_bars()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for one in caught:
            if CARD in str(one.message) or isinstance(one.message, DerivlangWarning):
                warn(_without_urls(one.message))
    finally:
        logging.set_verbosity(level)
        if had_bars:
            enable_progress_bars()


def _of_hub(caught: Exception, where: str, doing: str) -> StoreError:
    what, fix = _told(caught)
    return StoreError(what, where=where, fix=fix, id="hub")


def _told(error: BaseException) -> tuple[str, str]:
    """Return what is wrong and what to do about it, without URLs, which may be signed."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    chain = list(causes(error))  # an error of an upload has its cause behind it
    if any(isinstance(one, OfflineModeIsEnabled) for one in chain):
        return "the hub is not asked: HF_HUB_OFFLINE is set", "unset it, and run the same command again"
    if any(isinstance(one, LocalTokenNotFoundError) for one in chain):
        return "there is no token for the hub", _LOGIN
    of_http = next((one for one in chain if isinstance(one, HfHubHTTPError)), None)
    if of_http is None:
        return f"the connection to the hub failed ({type(chain[-1]).__name__})", _AGAIN
    status = of_http.response.status_code
    said = f": {_without_urls(of_http.server_message)}" if of_http.server_message else ""
    if status in (401, 403):
        return f"the hub refuses access ({status}){said}", _LOGIN
    if status == 404:
        return f"the hub has no such repository or branch, or hides it ({status}){said}", _LOGIN
    if status in (409, 412):
        return f"somebody else changed the repository meanwhile ({status}){said}", "run the same command again"
    return f"the hub answered with status {status}{said}", _AGAIN


def _without_urls(message: object) -> str:
    return _URL.sub("…", " ".join(str(message).split()))[:300]
