"""A stand-in of the Hugging Face hub: the HTTP requests of `huggingface_hub` for a push and for hf://, on this machine.

    with hub_server() as hub:                             # the fixture `hub` of conftest.py, which sets HF_ENDPOINT
        run("push", out, "me/set")
    hub.repos["dataset", "me/set"].head().files           # {"README.md": b"…", …}
    hub.faults["commit", 2] = 500                         # the second commit from now on fails
    hub.faults["put", 1] = lambda: os.kill(pid, SIGKILL)  # … or something happens before it is answered

Storage is as of the hub: files of the suffixes LARGE lie in a store by their SHA-256, from which commits take them.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = (".parquet", ".safetensors", ".bin", ".pt")
SIGNATURE = "very-secret-signature"
TOKEN = "hf_verysecrettoken"


@dataclass(frozen=True, slots=True)
class Commit:
    """A state of a branch. files: the content of each by its path."""

    oid: str
    title: str
    files: dict[str, bytes]


@dataclass
class Repo:
    """A repository: the commits of each branch, the first one first."""

    private: bool
    branches: dict[str, list[Commit]] = field(default_factory=dict)

    def head(self, branch: str = "main") -> Commit:
        return self.branches[branch][-1]

    def at(self, revision: str) -> Commit | None:
        commits = [one for history in self.branches.values() for one in history if one.oid == revision]
        return self.head(revision) if revision in self.branches else (commits or [None])[0]

    def add(self, branch: str, title: str, files: dict[str, bytes]) -> Commit:
        history = self.branches.setdefault(branch, [])
        told = json.dumps([branch, title, len(history), sorted(files)]).encode()
        history.append(Commit(sha1(told).hexdigest(), title, files))
        return history[-1]


@dataclass
class Hub:
    """The server's state. requests: how many of each kind were answered. faults: (kind, number) -> what happens."""

    url: str = ""
    repos: dict[tuple[str, str], Repo] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    faults: dict[tuple[str, int], int | Callable[[], object]] = field(default_factory=dict)
    tokens: set[str | None] = field(default_factory=set)
    counting: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reset(self) -> None:
        """Count requests from here on, and let nothing go wrong."""
        self.requests.clear()
        self.faults.clear()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer({})

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        self._answer(self._body())

    def do_POST(self) -> None:
        self._answer(self._body())

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, body: Any) -> None:
        path = unquote(urlsplit(self.path).path)
        for pattern, kind in _ROUTES.items():
            if match := re.fullmatch(pattern, path):
                hub = self.hub
                with hub.counting:  # of several threads
                    hub.requests[kind] += 1
                    number = hub.requests[kind]
                if kind not in ("put", "validate"):
                    hub.tokens.add(self.headers.get("Authorization"))
                fault = hub.faults.get((kind, number))
                if callable(fault):
                    fault()
                if isinstance(fault, int):
                    return self._send(fault, {"error": f"{kind} failed, see https://hub/?signature={SIGNATURE}"})
                status, answer = getattr(self, f"_{kind}")(body, **match.groupdict())
                after = hub.faults.get((f"after {kind}", number))
                if callable(after):
                    after()
                return self._send(status, answer)
        no_name = path.startswith("/api/datasets/")  # of a set without an owner, none of which is here
        return self._send(404, {"error": "Repository not found" if no_name else f"no such page: {path}"})

    def _send(self, status: int, answer: object) -> None:
        headers: dict[str, str] = {}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        if isinstance(answer, bytes):  # of a file
            headers = {"ETag": f'"{sha1(answer).hexdigest()}"', "X-Repo-Commit": self.commit_of_file}
        elif status == 404 and isinstance(answer, dict) and (what := _MISSING.get(answer["error"])):
            headers = {"X-Error-Code": what}
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
        except OSError:  # the client was killed
            self.close_connection = True

    def _create(self, body: bytes) -> tuple[int, object]:
        asked = json.loads(body)
        kind, name = asked.get("type", "model"), f"{asked['organization']}/{asked['name']}"
        url = f"{self.hub.url}/{'' if kind == 'model' else f'{kind}s/'}{name}"
        if (kind, name) in self.hub.repos:
            return 409, {"error": "You already created this repo", "url": url}
        repo = self.hub.repos[kind, name] = Repo(asked.get("visibility") == "private")
        repo.add("main", "initial commit", {".gitattributes": b"*.parquet filter=lfs\n"})
        return 200, {"url": url}

    def _validate(self, body: bytes) -> tuple[int, object]:
        content = json.loads(body)["content"]
        wrong = [{"message": '"license" must be one of the list'}] if "license: nonsense" in content else []
        wrong += [{"message": "the YAML cannot be read"}] if "license: {" in content else []
        lacks = [] if content.startswith("---") else [{"message": "empty or missing yaml metadata in repo card"}]
        return (400 if wrong else 200), {"errors": wrong, "warnings": lacks}

    def _info(self, body: bytes, type: str, name: str, revision: str = "main") -> tuple[int, object]:
        repo = self.hub.repos.get((type, name))
        commit = repo and repo.at(revision)
        if repo is None or commit is None:
            return 404, {"error": "Repository not found" if repo is None else "Revision not found"}
        return 200, {"id": name, "sha": commit.oid, "private": repo.private, "siblings": [], "tags": []}

    def _tree(self, body: bytes, type: str, name: str, revision: str, folder: str | None = None) -> tuple[int, object]:
        commit = self.hub.repos[type, name].at(revision)
        assert commit is not None
        under = f"{folder}/" if folder else ""
        recursive = "recursive=true" in self.path.lower()
        files = [
            {"type": "file", "path": path, "size": len(content), **_id(path, content)}
            for path, content in sorted(commit.files.items())
        ]
        parents = {str(parent) for path in commit.files for parent in PurePosixPath(path).parents} - {"."}
        folders = [{"type": "directory", "path": path, "oid": "0" * 40} for path in sorted(parents)]
        found = [one for one in [*folders, *files] if str(one["path"]).startswith(under)]
        if folder and not found:
            return 404, {"error": "Entry not found"}
        return 200, [one for one in found if recursive or "/" not in str(one["path"]).removeprefix(under)]

    def _resolve(self, body: bytes, name: str, revision: str, file: str, type: str | None) -> tuple[int, object]:
        repo = self.hub.repos.get(((type or "models")[:-1], name))
        commit = repo and repo.at(revision)
        if commit is None or file not in commit.files:
            return 404, {"error": "Entry not found"}
        self.commit_of_file, content = commit.oid, commit.files[file]
        if match := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            return 206, content[int(match[1]) : int(match[2]) + 1]
        return 200, content

    def _branch(self, body: bytes, type: str, name: str, branch: str) -> tuple[int, object]:
        repo = self.hub.repos[type, name]
        if branch in repo.branches:
            return 409, {"error": "Reference already exists"}
        repo.branches[branch] = list(repo.branches["main"])
        return 200, {}

    def _preupload(self, body: bytes, type: str, name: str, revision: str) -> tuple[int, object]:
        commit = self.hub.repos[type, name].at(revision)
        assert commit is not None
        answer = []
        for one in json.loads(body)["files"]:
            path, there = one["path"], commit.files.get(one["path"])
            entry = {} if there is None else _id(path, there)
            oid = entry["lfs"]["oid"] if "lfs" in entry else entry.get("oid")
            mode = "lfs" if path.endswith(LARGE) else "regular"
            answer.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": answer}

    def _batch(self, body: bytes, name: str) -> tuple[int, object]:
        objects = []
        for one in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{one['oid']}?X-Amz-Signature={SIGNATURE}"}}
            objects.append({**one, **({} if one["oid"] in self.hub.large else {"actions": upload})})
        return 200, {"transfer": "basic", "objects": objects}

    def _put(self, body: bytes, oid: str) -> tuple[int, object]:
        if sha256(body).hexdigest() != oid:  # of a client that was killed
            return 400, {"error": "the content is another one"}
        self.hub.large[oid] = body
        return 200, {}

    def _commit(self, body: bytes, type: str, name: str, branch: str) -> tuple[int, object]:
        repo = self.hub.repos[type, name]
        before = repo.head(branch)
        lines = [json.loads(line) for line in body.splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        if header.get("parentCommit") not in (None, before.oid):
            return 412, {"error": "A commit has happened since. Please refresh and try again."}
        files = dict(before.files)
        for value, key in ((line["value"], line["key"]) for line in lines):
            if key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        made = repo.add(branch, header["summary"], files)
        return 200, {"commitUrl": f"{self.hub.url}/{name}/commit/{made.oid}", "commitOid": made.oid}


def _id(path: str, content: bytes) -> dict[str, Any]:
    """The ids of a file: of a large one that of its pointer, and its SHA-256."""
    if not path.endswith(LARGE):
        return {"oid": sha1(b"blob %d\0" % len(content) + content).hexdigest()}
    digest = sha256(content).hexdigest()
    return {"oid": digest[:40], "lfs": {"oid": digest, "size": len(content), "pointerSize": 130}}


_MISSING = {
    "Repository not found": "RepoNotFound",
    "Revision not found": "RevisionNotFound",
    "Entry not found": "EntryNotFound",
}
_REPO = r"/api/(?P<type>model|dataset)s/(?P<name>[^/]+/[^/]+)"
_ROUTES = {
    r"/api/repos/create": "create",
    r"/api/validate-yaml": "validate",
    rf"{_REPO}": "info",
    rf"{_REPO}/revision/(?P<revision>.+)": "info",
    rf"{_REPO}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.+))?": "tree",
    rf"{_REPO}/branch/(?P<branch>.+)": "branch",
    rf"{_REPO}/preupload/(?P<revision>.+)": "preupload",
    rf"{_REPO}/commit/(?P<branch>.+)": "commit",
    r"(?:/datasets)?/(?P<name>[^/]+/[^/]+)\.git/info/lfs/objects/batch": "batch",
    r"(?:/(?P<type>datasets))?/(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)": "resolve",
    r"/lfs/(?P<oid>[0-9a-f]{64})": "put",
}


@contextmanager
def hub_server() -> Iterator[Hub]:
    """Serve on a free port of this machine until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
