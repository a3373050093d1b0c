"""Chromium without a screen, driven through chromedriver by the WebDriver protocol (JSON over HTTP).

The fixture `browser` gives a window. A test that asks for it is skipped where chromium or chromium-driver is missing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id, fixed by the standard
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1300,1300",
)  # fmt: skip
ENTER, ESCAPE, TAB, BACKSPACE, CONTROL, LET_GO = "\ue007", "\ue00c", "\ue004", "\ue003", "\ue009", "\ue000"
ALL = CONTROL + "a" + LET_GO  # selects the whole text of a box


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

    def run(self, script: str) -> Any:
        return self.call("POST", "/execute/sync", script=script, args=[])

    def devtools(self, command: str, **given: Any) -> Any:
        return self.call("POST", "/goog/cdp/execute", cmd=command, params=given)

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Return the entries since the last call. kind: browser or performance."""
        return list(self.call("POST", "/se/log", type=kind))

    def all(self, selector: str) -> list[Element]:
        found = self.call("POST", "/elements", using="css selector", value=selector)
        return [Element(self, one[_ELEMENT]) for one in found]

    def active(self) -> Element:
        return Element(self, self.call("GET", "/element/active")[_ELEMENT])

    def find(self, selector: str, so: Callable[[Element], bool] = lambda element: True) -> Element:
        """Return the first element that is as asked, waited for."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                for element in self.all(selector):
                    if so(element):
                        return element
            except BrowserError:  # the element was replaced meanwhile
                pass
            time.sleep(0.2)
        raise AssertionError(f"no {selector}")

    def hosts(self) -> set[str]:
        """Return the hosts that the browser has asked since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return {url.split("/")[2].split(":")[0] for url in urls if url.startswith(("http", "ws"))}

    def brought(self, selector: str) -> int:
        """Return how many glyphs of the text of an element are drawn with fonts that the page brings."""
        self.devtools("Runtime.evaluate", expression="document.fonts.ready", awaitPromise=True)
        for domain in ("DOM", "CSS"):
            self.devtools(f"{domain}.enable")
        root = self.devtools("DOM.getDocument")["root"]["nodeId"]
        node = self.devtools("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        used = self.devtools("CSS.getPlatformFontsForNode", nodeId=node)["fonts"]
        return sum(int(font["glyphCount"]) for font in used if font["isCustomFont"])


@dataclass(frozen=True)
class Element:
    """An element of the page that `browser` shows."""

    browser: Browser
    id: str

    def _get(self, what: str) -> Any:
        return self.browser.call("GET", f"/element/{self.id}/{what}")

    @property
    def text(self) -> str:
        return str(self._get("text"))

    @property
    def value(self) -> str:
        return str(self._get("property/value"))

    def attribute(self, name: str) -> str:
        return str(self._get(f"attribute/{name}"))

    def css(self, name: str) -> str:
        return str(self._get(f"css/{name}"))

    def displayed(self) -> bool:
        return bool(self._get("displayed"))

    def type(self, *keys: str) -> None:
        self.browser.call("POST", f"/element/{self.id}/value", text="".join(keys))

    def click(self) -> bool:
        """Click; an element that cannot be clicked yet raises, and `find` tries again."""
        self.browser.call("POST", f"/element/{self.id}/click")
        return True


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
                "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            }
            place = f"http://127.0.0.1:{port}/session"
            begun = Browser(place).call("POST", "", capabilities={"alwaysMatch": wanted})
            window = Browser(f"{place}/{begun['sessionId']}")
            yield window
            window.call("DELETE", "")
        finally:
            driver.terminate()
            driver.communicate()
