"""Chromium without a screen, driven through chromedriver by the WebDriver protocol (JSON over HTTP).

The fixture `browser` gives a window. A test that asks for it is skipped where chromium or chromium-driver is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1300,1300",
)  # fmt: skip


class BrowserError(Exception):
    """What the driver refuses, such as an element that the page has replaced."""


@dataclass(frozen=True)
class Browser:
    """A window. place: the address of its session."""

    place: str

    def call(self, method: str, path: str, **sent: Any) -> Any:
        """Return the value of an answer. Raise BrowserError for a refusal."""
        data = json.dumps(sent).encode() if method == "POST" else None
        request = urllib.request.Request(self.place + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"]) from None

    def get(self, url: str) -> None:
        self.call("POST", "/url", url=url)

    def devtools(self, command: str, **given: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=given)

    def brought(self, selector: str) -> int:
        """Return how many glyphs of the text of an element are drawn with fonts that the page brings."""
        self.devtools("Runtime.evaluate", expression="document.fonts.ready", awaitPromise=True)
        for domain in ("DOM", "CSS"):
            self.devtools(f"{domain}.enable")
        root = self.devtools("DOM.getDocument")["root"]["nodeId"]
        node = self.devtools("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        used = self.devtools("CSS.getPlatformFontsForNode", nodeId=node)["fonts"]
        return sum(int(font["glyphCount"]) for font in used if font["isCustomFont"])


@contextmanager
def opened() -> Iterator[Browser]:
    """A window of Chromium."""
    program = shutil.which("chromedriver")
    if program is None or shutil.which("chromium") is None:
        pytest.skip("no browser here: apt-get install chromium chromium-driver")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        driver = subprocess.Popen([program, "--port=0"], stdout=subprocess.PIPE, text=True)
        try:
            assert driver.stdout is not None
            port = next(line.split()[-1].rstrip(".") for line in driver.stdout if "successfully on port" in line)
            wanted = {
                "goog:chromeOptions": {"args": [*_OPTIONS, f"--user-data-dir={folder}"]},
            }
            place = f"http://127.0.0.1:{port}/session"
            begun = Browser(place).call("POST", "", capabilities={"alwaysMatch": wanted})
            window = Browser(f"{place}/{begun['sessionId']}")
            yield window
            window.call("DELETE", "")
        finally:
            driver.terminate()
            driver.communicate()
