"""A store that fails: moto's S3 server behind a proxy that spoils every Nth request, in a process of its own.

    with flaky_store.opened() as store:          # sets the AWS_* variables, so that `s3fs` finds the proxy
        url = store.new_bucket().url
        store.spoil(10)                          # every tenth request; 0: none
        ...
        store.asked()                            # {"PUT object": 12, …} since the last call, and {"500": 3, …}

The faults come in turns, and each is one that clients of real stores meet: an error of the server (500), "SlowDown"
(503), a late answer, a connection that is reset before the request is passed on, one that is reset after the store has
done what was asked, and an answer that breaks off in its middle.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.object_store import Bucket, forget

FAULTS = ("500", "503", "late", "reset before", "reset after", "broken off")
_LATE = 0.3  # seconds
_OWN = "/-derivlang"  # requests to the proxy itself
_KEPT = ("content-length", "connection", "transfer-encoding", "expect", "host")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class FlakyStore:
    """The store as tests see it. address: of the proxy. client: boto3's, which goes past the proxy."""

    address: str
    client: Any = field(repr=False)

    def new_bucket(self) -> Bucket:
        name = f"flaky-{next(_numbers)}"
        self.client.create_bucket(Bucket=name)
        return Bucket(name, self.client)

    def spoil(self, every: int) -> None:
        """Spoil every so many requests from now on; 0: none."""
        self._ask(f"{_OWN}/every/{every}")

    def asked(self) -> tuple[dict[str, int], dict[str, int]]:
        """The requests since the last call, by what they ask for, and those that were spoiled, by fault."""
        requests, spoiled = json.loads(self._ask(f"{_OWN}/counts"))
        return requests, spoiled

    def _ask(self, path: str) -> bytes:
        connection = HTTPConnection(self.address, timeout=30)
        connection.request("GET", path)
        content = connection.getresponse().read()
        connection.close()
        return content


@contextmanager
def opened() -> Iterator[FlakyStore]:
    """Run server and proxy within the block, with the environment that leads to the proxy."""
    import boto3

    server = subprocess.Popen([sys.executable, "-m", "tests.flaky_store"], stdout=subprocess.PIPE, text=True)
    before = dict(os.environ)
    try:
        assert server.stdout is not None
        behind, proxy = server.stdout.readline().split()
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            del os.environ[name]  # a test never reaches a real account
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://{proxy}",
            "AWS_ENDPOINT_URL_S3": f"http://{proxy}",
            "AWS_ACCESS_KEY_ID": "test-key",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        forget()
        client = boto3.client("s3", endpoint_url=f"http://{behind}")
        yield FlakyStore(proxy, client)
        client.close()
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget()
        server.terminate()
        server.wait(10)
        if server.stdout is not None:
            server.stdout.close()


class _Proxy(ThreadingHTTPServer):
    """The proxy. behind: the address of the server that it passes requests on to."""

    daemon_threads = True

    def __init__(self, behind: str):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind, self.every, self.n = behind, 0, 0
        self.requests, self.spoiled = Counter[str](), Counter[str]()
        self.lock = threading.Lock()

    def fault(self, what: str) -> str | None:
        """Count a request, and return how it is to fail; None for one that is passed on."""
        with self.lock:
            self.requests[what] += 1
            self.n += 1
            if not self.every or self.n % self.every:
                return None
            fault = FAULTS[self.n // self.every % len(FAULTS)]
            self.spoiled[fault] += 1
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that were killed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client
    server: _Proxy

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_any(self) -> None:
        if self.path.startswith(_OWN):
            self._answer(200, {}, self._own())
            return
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.fault(_what(self.command, self.path))
        if fault in ("500", "503"):
            code = "InternalError" if fault == "500" else "SlowDown"
            self._answer(int(fault), {}, f"<Error><Code>{code}</Code><Message>spoiled</Message></Error>".encode())
            return
        if fault == "reset before":
            self._reset()
            return
        if fault == "late":
            time.sleep(_LATE)
        connection = HTTPConnection(self.server.behind, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _KEPT}
        connection.request(self.command, self.path, content or None, {**headers, "Host": self.headers["Host"]})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if fault == "reset after":
            self._reset()
            return
        told = {name: value for name, value in answer.getheaders() if name.lower() not in _KEPT}
        if self.command == "HEAD":
            told["Content-Length"] = answer.getheader("Content-Length") or "0"
        self._answer(answer.status, told, body, broken=fault == "broken off")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def _answer(self, status: int, headers: dict[str, str], body: bytes, *, broken: bool = False) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if broken:
            self.wfile.write(body[: len(body) // 2])
            self._reset()
        elif self.command != "HEAD":
            self.wfile.write(body)

    def _reset(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()  # with a reset, not an end
        self.close_connection = True

    def _own(self) -> bytes:
        *_, name, value = self.path.split("/")
        with self.server.lock:
            if name == "every":
                self.server.every = int(value)
                return b""
            counts = json.dumps([self.server.requests, self.server.spoiled]).encode()
            self.server.requests.clear()
            self.server.spoiled.clear()
        return counts


def _what(method: str, path: str) -> str:
    """What a request asks for: the method, and the kind of thing."""
    parts = urlsplit(path)
    listed = "list-type" in parse_qs(parts.query, keep_blank_values=True)
    return f"{method} {'list' if listed else 'object' if parts.path.strip('/').count('/') else 'bucket'}"


def main() -> None:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log each request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    proxy = _Proxy(f"{host}:{port}")
    sys.stdout.write(f"{host}:{port} 127.0.0.1:{proxy.server_address[1]}\n")
    sys.stdout.flush()
    proxy.serve_forever()


if __name__ == "__main__":
    main()
