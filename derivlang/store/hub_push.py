"""Send files to a repository of the Hugging Face hub, so that an interrupted push is never taken for a whole result.

    commit 1     the earlier record and its other files go, the marker and all new files come
    commit 2     the marker goes, the new record comes

Between the two a copy of the repository has no record, but a folder `.derivlang`, as an unfinished set on a disk. The
same push goes on: the client of the hub sends only content that the hub does not have. Credentials are the client's
own business; no message quotes its errors, since they hold signed URLs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha1, sha256
from logging import CRITICAL
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from derivlang.core.errors import DerivlangError, StoreError, UsageError
from derivlang.core.messages import first_names, warn
from derivlang.core.version import __version__
from derivlang.formats.progress import bytes_read, stage
from derivlang.store.card import CARD
from derivlang.store.listing import file_hash

MARKER = ".derivlang/unfinished-push"  # in a repository whose record is still to come
MAIN = "main"
_MARKED = b"The files of a push by derivlang. Its record is still to come: the same command goes on.\n"
_GROUP = 16  # files that are sent before the progress is reported
_COMMIT = 1000  # most files of a commit; the hub takes 25,000 large ones
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_URL = re.compile(r"\w+://\S+")
_AGAIN = "the same command goes on: what the hub has is not sent again"
_LOGIN = "log in with `hf auth login`, or set HF_TOKEN, with a token that may write there"
Content = Path | bytes


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
    """A push. repository: owner/name. revision: a branch. record: the file that is sent last.

    left_behind: patterns of the names of files that an earlier push may have left there, which are removed unless
    they are sent again. other_records: the records of results of other kinds, which are refused there. private: of a
    new repository; a public one is refused.
    """

    repository: str
    repo_type: Literal["dataset", "model"]
    revision: str
    record: str
    left_behind: Sequence[str]
    other_records: Sequence[str]
    private: bool

    def send(self, files: Mapping[str, Content], warn: Callable[[str], None] = warn) -> dict[str, Any]:
        """Send files by their names, and return {"commit", "sent", "removed"}: the last commit, and numbers of files.

        Nothing is sent if the repository has these files already. Raise StoreError if it holds something else, or if
        the hub cannot be reached or refuses.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

        with _hub_errors(self.repository), _quiet_client(warn):
            api = HfApi(library_name="derivlang", library_version=__version__)
            head, there = self._look(api)
            self._refuse_others(there, files)
            changed = [name for name, content in files.items() if not _is_same(content, there.get(name))]
            stale = [name for name in there if name not in files and self._is_left_behind(name)]
            if not changed and not stale and MARKER not in there:
                return {"commit": head, "sent": 0, "removed": 0}
            before = [name for name in changed if name != self.record]
            if CARD in before:
                self._check_card(files[CARD])
            if before or stale:
                gone = [*stale, *([self.record] if self.record in there else [])]
                operations: list[Any] = [CommitOperationDelete(name, is_folder=False) for name in gone]
                operations += [CommitOperationAdd(MARKER, _MARKED)] if MARKER not in there else []
                operations += [CommitOperationAdd(name, _of_client(files[name])) for name in before]
                with stage("sending", "bytes", sum(_size(files[name]) for name in before)):
                    for at in range(0, len(operations), _COMMIT):
                        head = self._commit(api, operations[at : at + _COMMIT], head, f"Send files of {self.record}")
            last: list[Any] = [CommitOperationAdd(self.record, _of_client(files[self.record]))]
            if MARKER in there or before or stale:
                last.append(CommitOperationDelete(MARKER, is_folder=False))
            head = self._commit(api, last, head, f"Add {self.record}: all files are there")
            return {"commit": head, "sent": len({*before, self.record}), "removed": len(stale)}

    def _look(self, api: Any) -> tuple[str, dict[str, Any]]:
        """Make the repository and the branch unless they are there. Return the last commit, and the files by name."""
        api.create_repo(self.repository, repo_type=self.repo_type, private=self.private or None, exist_ok=True)
        if self.private and not api.repo_info(self.repository, repo_type=self.repo_type).private:
            raise StoreError(
                "this repository is public, and a push does not change that",
                where=self.repository,
                fix="make it private on its page, or leave out --private; nothing was sent",
                id="public-repository",
            )
        if self.revision != MAIN:
            api.create_branch(self.repository, branch=self.revision, repo_type=self.repo_type, exist_ok=True)
        head = api.repo_info(self.repository, repo_type=self.repo_type, revision=self.revision).sha
        tree = api.list_repo_tree(self.repository, repo_type=self.repo_type, revision=head, recursive=True)
        return head, {one.path: one for one in tree if hasattr(one, "blob_id")}

    def _refuse_others(self, there: Mapping[str, Any], files: Mapping[str, Content]) -> None:
        """Raise StoreError if files would be replaced that no earlier push of this kind has written."""
        foreign = [name for name in self.other_records if name in there]
        if self.record not in there and MARKER not in there:
            foreign += [name for name in there if name != CARD and (name in files or self._is_left_behind(name))]
        if foreign:
            raise StoreError(
                f"the repository holds something else: {first_names(foreign)}",
                where=self.repository,
                fix="give another repository, or another --revision; nothing was sent",
                id="other-repository",
            )

    def _check_card(self, content: Content) -> None:
        """Raise StoreError if the hub does not accept the card. A commit would find out, but after sending the rest."""
        from huggingface_hub import RepoCard

        try:
            text = content.decode() if isinstance(content, bytes) else content.read_text("utf-8")
            card = RepoCard(text, ignore_metadata_errors=True)
        except Exception as error:  # noqa: BLE001 (of the reader of YAML)
            raise _wrong_card(error) from None
        try:
            card.validate(repo_type=self.repo_type)
        except ValueError as error:
            raise _wrong_card(error) from None

    def _is_left_behind(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.left_behind)

    def _commit(self, api: Any, operations: Sequence[Any], head: str, message: str) -> str:
        """Send the content of some files, report its bytes, and commit them onto `head`. Return the new commit."""
        place = {"repo_id": self.repository, "repo_type": self.repo_type, "revision": self.revision}
        added = [one for one in operations if hasattr(one, "upload_info")]
        for at in range(0, len(added), _GROUP):
            group = added[at : at + _GROUP]
            api.preupload_lfs_files(additions=group, free_memory=False, **place)
            bytes_read(sum(one.upload_info.size for one in group))
        made = api.create_commit(operations=operations, commit_message=message, parent_commit=head, **place)
        return str(made.oid)


def _wrong_card(error: Exception) -> StoreError:
    what = f"the hub refuses the card: {_without_urls(error)}"
    return StoreError(what, where=CARD, fix="correct the lines above its text; nothing was sent", id="card")


def _of_client(content: Content) -> str | bytes:
    """Return content as the client takes it."""
    return content if isinstance(content, bytes) else str(content)


def _size(content: Content) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _is_same(content: Content, there: Any) -> bool:
    """Return whether a file of the hub has this content. The hub has the SHA-256 of large files, git's hash of others.

    there: the client's description of the file, None if there is none.
    """
    if there is None or there.size != _size(content):
        return False
    if there.lfs is not None:
        own = sha256(content).hexdigest() if isinstance(content, bytes) else file_hash(content)
        return bool(own == there.lfs.sha256)
    data = content if isinstance(content, bytes) else content.read_bytes()
    return bool(sha1(b"blob %d\0" % len(data) + data).hexdigest() == there.blob_id)


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
            if CARD in str(one.message):
                warn(_without_urls(one.message))
    finally:
        logging.set_verbosity(level)
        if had_bars:
            enable_progress_bars()


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Raise StoreError in place of whatever the client of the hub raises."""
    try:
        yield
    except DerivlangError:
        raise
    except Exception as error:  # noqa: BLE001 (the client raises errors of several packages)
        what, fix = _told(error)
        raise StoreError(what, where=repository, fix=fix, id="hub") from None


def _told(error: BaseException) -> tuple[str, str]:
    """Return what is wrong and what to do about it, without URLs, which may be signed."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:  # an error of an upload has its cause behind it
        chain.append(at)
        at = at.__cause__ or at.__context__
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
