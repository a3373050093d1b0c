"""Send files to a repository of the Hugging Face hub, so that an interrupted push is never taken for a whole result.

    commit 1     the earlier record goes, the marker comes; then its other files go, and all new files come
    commit 2     the marker goes, the new record comes

Commit 1 may be several, in this order. The marker lists the files of both results, so that the next push knows which
are derivlang's; those that somebody added on the hub are never removed. Between the two a copy of the repository has no
record, but a folder `.derivlang`, as an unfinished set on a disk. The same push goes on: the client of the hub sends
only content that the hub does not have. Credentials are the client's own business; no message quotes its errors, since
they hold signed URLs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha1
from logging import CRITICAL
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from derivlang.core.errors import DerivlangError, StoreError, UsageError
from derivlang.core.messages import first_names, warn
from derivlang.core.version import __version__
from derivlang.formats.progress import bytes_read, stage
from derivlang.store.card import CARD
from derivlang.store.listing import file_hash
from derivlang.store.record import check_types, difference, record_text

MARKER = ".derivlang/unfinished-push"  # in a repository whose record is still to come
MAIN = "main"
_OF_HUB = ".gitattributes"  # in every repository from its beginning
_GROUP = 16  # files that are sent before the progress is reported
_COMMIT = 1000  # most files of a commit; the hub takes 25,000 large ones
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_URL = re.compile(r"\w+://\S+")
_AGAIN = "the same command goes on: what the hub has is not sent again"
_LOGIN = "log in with `hf auth login`, or set HF_TOKEN, with a token that may write there"
Read = Callable[[str], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """What the record of one kind of result says.

    identity: the part of a record that another result has otherwise. words: said of fields whose values say nothing to
    a reader. files: the names of the files that a record lists, given it, the names of all files there, and a reader
    of JSON files there, which returns {} for a file that is missing.
    """

    identity: Callable[[Mapping[str, Any]], dict[str, Any]]
    words: Mapping[str, str]
    files: Callable[[Mapping[str, Any], Iterable[str], Read], set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """What an earlier push has left: the name of its record, the identity of its result, the names of its files."""

    record: str
    identity: Mapping[str, Any]
    files: frozenset[str]
    unfinished: bool


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

    kinds: of results, by the names of their records. force: replace another result, or a card that somebody else wrote.
    private: of a new repository; a public one is refused.
    """

    repository: str
    repo_type: Literal["dataset", "model"]
    revision: str
    record: str
    kinds: Mapping[str, RecordKind]
    force: bool
    private: bool

    def send(self, files: Mapping[str, Path], warn: Callable[[str], None] = warn) -> dict[str, Any]:
        """Send files by their names, and return {"commit", "sent", "removed"}: the last commit, and numbers of files.

        Nothing is sent if the repository has these files already. Raise StoreError if it holds something else, or if
        the hub cannot be reached or refuses.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

        with _hub_errors(self.repository), _quiet_client(warn):
            api = HfApi(library_name="derivlang", library_version=__version__)
            head, there = self._look(api)
            earlier = self._earlier(api, head, there)
            identity = self._identity(files[self.record])
            changed = [name for name, content in files.items() if not _is_same(content, there.get(name))]
            foreign = [name for name in there if name not in {*earlier.files, _OF_HUB, MARKER}]
            self._refuse_others(earlier, identity, foreign, changed)
            stale = [name for name in there if name in earlier.files and name not in files]
            if kept := [name for name in foreign if name not in files]:
                warn(f"{self.repository}: kept what is not of an earlier push: {first_names(kept)}")
            if not changed and not stale and MARKER not in there:
                return {"commit": head, "sent": 0, "removed": 0}
            before = [name for name in changed if name != self.record]
            if CARD in before:
                self._check_card(files[CARD])
            if before or stale:
                gone = [name for name in (earlier.record, self.record) if name in there]
                operations: list[Any] = [CommitOperationDelete(name, is_folder=False) for name in dict.fromkeys(gone)]
                operations += [CommitOperationAdd(MARKER, self._marker(identity, {*files, *stale}))]
                operations += [CommitOperationDelete(name, is_folder=False) for name in stale if name not in gone]
                operations += [CommitOperationAdd(name, str(files[name])) for name in before]
                with stage("sending", "bytes", sum(files[name].stat().st_size for name in before)):
                    for at in range(0, len(operations), _COMMIT):
                        head = self._commit(api, operations[at : at + _COMMIT], head, f"Send files of {self.record}")
            last: list[Any] = [CommitOperationAdd(self.record, str(files[self.record]))]
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

    def _earlier(self, api: Any, head: str, there: Mapping[str, Any]) -> _Earlier:
        """Return what an earlier push has left. Raise StoreError if its marker or its record cannot be read."""

        def read(name: str) -> dict[str, Any]:
            if name not in there:
                return {}
            place = {"repo_type": self.repo_type, "revision": head}
            with TemporaryDirectory(prefix="derivlang-") as folder:
                path = Path(api.hf_hub_download(self.repository, name, local_dir=folder, **place))
                try:
                    content = json.loads(path.read_text("utf-8"))
                    check_types({name: content}, {name: dict})
                    return dict(content)
                except (ValueError, RecursionError):
                    raise self._other(f"{name} cannot be read") from None

        records = [name for name in self.kinds if name in there]
        if MARKER not in there and not records:
            return _Earlier(record="", identity={}, files=frozenset(), unfinished=False)
        found = read(MARKER if MARKER in there else records[0])
        try:
            if MARKER not in there:
                kind, record = self.kinds[records[0]], records[0]
                known, files = kind.identity(found), {CARD, record, *kind.files(found, there, read)}
            else:
                check_types(found, {"record": str, "identity": dict, "files": list})
                record, known, files = found["record"], found["identity"], {CARD, *found["files"]}
                self.kinds[record]
        except (AttributeError, KeyError, TypeError, ValueError):  # somebody else wrote it
            raise self._other(f"{MARKER if MARKER in there else records[0]} cannot be read") from None
        return _Earlier(record=record, identity=known, files=frozenset(files), unfinished=MARKER in there)

    def _identity(self, record: Path) -> dict[str, Any]:
        """Return the identity of the result to send."""
        return self.kinds[self.record].identity(json.loads(record.read_bytes()))

    def _marker(self, identity: Mapping[str, Any], files: set[str]) -> bytes:
        note = "The record of this push by derivlang is still to come: the same command goes on."
        return record_text({"note": note, "record": self.record, "identity": identity, "files": sorted(files)}).encode()

    def _other(self, found: str, way_out: str = "") -> StoreError:
        return StoreError(
            f"the repository holds something else: {found}",
            where=self.repository,
            fix=f"give another repository, or another --revision{way_out}; nothing was sent",
            id="other-repository",
        )

    def _refuse_others(
        self, earlier: _Earlier, identity: Mapping[str, Any], foreign: Sequence[str], changed: Sequence[str]
    ) -> None:
        """Raise StoreError if a file would be replaced that no earlier push has written, or another result.

        foreign: the names of files that are not of an earlier push. changed: of files that would be sent.
        """
        if not earlier.record and foreign == [CARD]:
            if self.force:
                return
            raise self._other(CARD, ", or --force to replace this file")
        clash = [name for name in foreign if not earlier.record or name in changed or name in self.kinds]
        if clash:
            raise self._other(first_names(clash))
        if not earlier.record or self.force:
            return
        told = f"{earlier.record}, not {self.record}"
        if earlier.record == self.record:
            every = {**dict.fromkeys(earlier.identity), **identity}
            told = difference(earlier.identity, every, self.kinds[self.record].words)
        if told:
            what = "an unfinished push of another result" if earlier.unfinished else "another result"
            raise self._other(f"{what} ({told})", ", or --force to replace it")

    def _check_card(self, path: Path) -> None:
        """Raise StoreError if the hub does not accept the card. A commit would find out, but after sending the rest."""
        from huggingface_hub import RepoCard

        try:
            card = RepoCard(path.read_text("utf-8"), ignore_metadata_errors=True)
        except Exception as error:  # noqa: BLE001 (of the reader of YAML)
            raise _wrong_card(error) from None
        try:
            card.validate(repo_type=self.repo_type)
        except ValueError as error:
            raise _wrong_card(error) from None

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


def _is_same(path: Path, there: Any) -> bool:
    """Return whether a file of the hub has the content of this one: SHA-256 of large files, git's hash of others.

    there: the client's description of the file, None if there is none.
    """
    if there is None or there.size != path.stat().st_size:
        return False
    if there.lfs is not None:
        return bool(file_hash(path) == there.lfs.sha256)
    data = path.read_bytes()
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
