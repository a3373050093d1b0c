"""A stand-in of Google Cloud Storage: the requests of `gcsfs` that reading and making sets needs, on this machine.

    with google_store.opened() as store:      # the fixture `google_store` of conftest.py, which leads `gcsfs` to it
        bucket = store.new_bucket()
        make("inv", bucket.put(tmp_path / "corpus", "in"), f"{bucket.url}/out")
    store.requests["batch"]                   # how many of each kind were answered

It gives a token for a key that it has made, asks for it in each request, and answers preconditions, ranges, pages of
lists, uploads in one request or in several, and removal of many in one, as the JSON interface of the store describes
them. Not here: buckets with folders or in a zone, which need another interface (gRPC).
"""

from __future__ import annotations

import json
import os
import re
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from tests.object_store import Files, forget_workers

TOKEN = "very-secret-token"
_ROOT = "/storage.googleapis.com"  # `gcsfs` removes many files at once where this is in the address
_PAGE = 7  # objects in a page of a list at most: small, so that lists have pages
_numbers = count(1)


@dataclass
class GoogleStore:
    """The server's state. buckets: the objects of each; an object is its content and its generation."""

    endpoint: str = ""
    buckets: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    uploads: dict[str, tuple[str, str, str | None, bytearray]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    denied: bool = False  # answer 403 to each request
    lock: threading.Lock = field(default_factory=threading.Lock)
    generations: Iterator[int] = field(default_factory=lambda: count(1_700_000_000_000_000))

    def new_bucket(self) -> GoogleBucket:
        name = f"derivlang-gs-{next(_numbers)}"
        self.buckets[name] = {}
        return GoogleBucket(name, self)

    def write(self, bucket: str, key: str, content: bytes, if_generation: str | None = None) -> dict[str, Any] | None:
        """Store an object; None if its generation is another one (0: there is no object)."""
        with self.lock:
            objects = self.buckets[bucket]
            if if_generation is not None and int(if_generation) != objects.get(key, (b"", 0))[1]:
                return None
            objects[key] = content, next(self.generations)
            return self.described(bucket, key)

    def described(self, bucket: str, key: str) -> dict[str, Any]:
        """What the store says of an object."""
        content, generation = self.buckets[bucket][key]
        digest = b64encode(md5(content).digest()).decode()
        return {
            "kind": "storage#object",
            "bucket": bucket,
            "name": key,
            "size": str(len(content)),
            "generation": str(generation),
            "metageneration": "1",
            "md5Hash": digest,
            "etag": f"{generation}/1",
            "updated": "2026-01-01T00:00:00.000Z",
            "timeCreated": "2026-01-01T00:00:00.000Z",
            "contentType": "application/octet-stream",
        }


@dataclass(frozen=True, slots=True)
class GoogleBucket(Files):
    """A bucket of the server, as `object_store.Bucket`."""

    name: str
    store: GoogleStore = field(repr=False)

    @property
    def url(self) -> str:
        return f"gs://{self.name}"

    def write(self, key: str, content: bytes) -> str:
        self.store.write(self.name, key, content)
        return f"{self.url}/{key}"

    def read(self, key: str) -> bytes:
        return self.store.buckets[self.name][key][0]

    def keys(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self.store.buckets[self.name] if key.startswith(prefix))

    def delete(self, key: str) -> None:
        del self.store.buckets[self.name][key]


class _Handler(BaseHTTPRequestHandler):
    store: GoogleStore
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client

    def log_message(self, *arguments: object) -> None:
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        path = parts.path.removeprefix(_ROOT)
        if path == "/token":
            return self._send(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            told = "Anonymous caller does not have storage.objects.get access to the Google Cloud Storage object. "
            told += "Permission 'storage.objects.get' denied on resource (or it may not exist)."
            return self._fail(401, told)
        if self.store.denied:
            return self._fail(403, "me@mine.iam.gserviceaccount.com does not have storage.objects.get access.")
        for pattern, kind in _ROUTES.items():
            if match := re.fullmatch(pattern, f"{self.command} {path}"):
                self.store.requests[kind] += 1
                given = {name: unquote(value) for name, value in match.groupdict().items()}
                if given.get("bucket", "") not in {"", *self.store.buckets}:
                    return self._fail(404, "The specified bucket does not exist.")
                if kind in ("object", "download", "delete") and given["key"] not in self.store.buckets[given["bucket"]]:
                    return self._fail(404, f"No such object: {given['bucket']}/{given['key']}")
                return getattr(self, f"_{kind}")(body=body, query=query, **given)  # type: ignore[no-any-return]
        return self._fail(400, f"no such request: {self.command} {self.path}")

    do_GET = do_POST = do_PUT = do_DELETE = handle_any

    def _send(self, status: int, answer: object = b"", **headers: str) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        try:
            self.send_response_only(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:  # the client was killed
            self.close_connection = True

    def _fail(self, status: int, message: str) -> None:
        self._send(status, {"error": {"code": status, "message": message}})

    def _bucket(self, bucket: str, **_: Any) -> None:
        self._send(200, {"kind": "storage#bucket", "name": bucket})

    def _object(self, bucket: str, key: str, **_: Any) -> None:
        self._send(200, self.store.described(bucket, key))

    def _list(self, bucket: str, query: dict[str, str], **_: Any) -> None:
        """A page of the objects below a prefix, and of the folders where names are cut at a delimiter."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found = set()  # the names of objects and, with the delimiter at their ends, of folders
        for key in [key for key in self.store.buckets[bucket] if key.startswith(prefix)]:
            head, cut, _rest = key.removeprefix(prefix).partition(delimiter) if delimiter else ("", "", "")
            found.add(f"{prefix}{head}{cut}" if cut else key)
        names = sorted(name for name in found if name > query.get("pageToken", ""))
        page = names[: min(_PAGE, int(query.get("maxResults", _PAGE)))]
        objects = self.store.buckets[bucket]
        answer: dict[str, Any] = {"kind": "storage#objects"}
        answer["items"] = [self.store.described(bucket, name) for name in page if name in objects]
        answer["prefixes"] = [name for name in page if name not in objects]
        if len(page) < len(names):
            answer["nextPageToken"] = page[-1]
        self._send(200, answer)

    def _download(self, bucket: str, key: str, **_: Any) -> None:
        content, generation = self.store.buckets[bucket][key]
        if not (match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))):
            return self._send(200, content, X_Goog_Generation=str(generation))
        begin, end = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
        if begin >= len(content):
            return self._fail(416, "The requested range cannot be satisfied.")
        return self._send(206, content[begin : end + 1], Content_Range=f"bytes {begin}-{end}/{len(content)}")

    def _delete(self, bucket: str, key: str, **_: Any) -> None:
        self.store.buckets[bucket].pop(key, None)
        self._send(204)

    def _upload(self, bucket: str, body: bytes, query: dict[str, str], **_: Any) -> None:
        condition = query.get("ifGenerationMatch")
        if query["uploadType"] == "multipart":
            boundary = b"\n--" + self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
            _, head, media = (b"\n" + body).removesuffix(b"--").split(boundary, 2)
            content = media.partition(b"\n\n")[2].removesuffix(boundary)
            return self._stored(bucket, json.loads(head.partition(b"\n\n")[2])["name"], content, condition)
        number = str(next(_numbers))
        self.store.uploads[number] = bucket, query["name"], condition, bytearray()
        return self._send(200, Location=f"{self.store.endpoint}/upload/{number}")

    def _chunk(self, upload: str, body: bytes, **_: Any) -> None:
        """A part of an upload in several requests: the object appears with the last one."""
        bucket, key, condition, held = self.store.uploads[upload]
        begin, end, size = map(int, re.findall(r"\d+", self.headers["Content-Range"]))
        assert (begin, end + 1) == (len(held), len(held) + len(body))
        held += body
        if len(held) < size:
            return self._send(308, Range=f"bytes=0-{len(held) - 1}")
        del self.store.uploads[upload]
        return self._stored(bucket, key, bytes(held), condition)

    def _cancel(self, upload: str, **_: Any) -> None:
        self.store.uploads.pop(upload, None)
        self._send(499)

    def _stored(self, bucket: str, key: str, content: bytes, condition: str | None) -> None:
        stored = self.store.write(bucket, key, content, condition)
        if stored is None:
            return self._fail(412, "At least one of the pre-conditions you specified did not hold.")
        return self._send(200, stored)

    def _batch(self, body: bytes, **_: Any) -> None:
        answers = []
        for bucket, key in re.findall(r"DELETE /storage/v1/b/([^/]+)/o/(\S+) HTTP", body.decode()):
            there = self.store.buckets[unquote(bucket)].pop(unquote(key), None)
            error = {"error": {"code": 404, "message": f"No such object: {unquote(bucket)}/{unquote(key)}"}}
            line = (
                "204 No Content"
                if there
                else f"404 Not Found\r\nContent-Type: application/json\r\n\r\n{json.dumps(error)}"
            )
            answers.append(f"--batch_x\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {line}\r\n\r\n")
        content = "".join([*answers, "--batch_x--"]).encode()
        self._send(200, content, Content_Type="multipart/mixed; boundary=batch_x")


_BUCKET = r"/storage/v1/b/(?P<bucket>[^/]+)"
_ROUTES = {
    rf"GET {_BUCKET}": "bucket",
    rf"GET {_BUCKET}/o": "list",
    rf"GET {_BUCKET}/o/(?P<key>[^/]+)": "object",
    rf"GET /download{_BUCKET}/o/(?P<key>[^/]+)": "download",
    rf"DELETE {_BUCKET}/o/(?P<key>[^/]+)": "delete",
    rf"POST /upload{_BUCKET}/o": "upload",
    r"POST /upload/(?P<upload>\d+)": "chunk",
    r"DELETE /upload/(?P<upload>\d+)": "cancel",
    r"POST /batch/storage/v1": "batch",
}


@contextmanager
def opened(folder: Path) -> Iterator[GoogleStore]:
    """Run the server within the block, with the environment that leads to it. folder: for the key that it takes."""
    if find_spec("gcsfs") is None:
        pytest.skip("gcsfs is not installed")
    store = GoogleStore()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": store}))
    store.endpoint = f"http://127.0.0.1:{server.server_port}{_ROOT}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith(("GOOGLE_", "CLOUDSDK_"))]:
                patch.delenv(name)  # a test never reaches a real account
            patch.setenv("STORAGE_EMULATOR_HOST", store.endpoint)
            patch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(_key(folder, store.endpoint)))
            patch.setenv("GOOGLE_CLOUD_PROJECT", "tests")
            patch.setenv("CLOUDSDK_CONFIG", str(folder))
            patch.setenv("NO_GCE_CHECK", "true")  # or a test without keys waits for a server
            forget_workers()
            yield store
        _forget()
        forget_workers()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _forget() -> None:
    from gcsfs import GCSFileSystem

    GCSFileSystem.clear_instance_cache()


def _key(folder: Path, endpoint: str) -> Path:
    """Write a key of a service account, as Google gives it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(*form).decode()
    account = {"client_email": "me@mine.iam.gserviceaccount.com", "project_id": "tests", "private_key_id": "1"}
    path = folder / "key.json"
    told = {"type": "service_account", "private_key": private, "token_uri": f"{endpoint}/token", **account}
    path.write_text(json.dumps(told))
    return path
