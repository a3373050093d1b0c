"""`derivlang explore`: what it offers for each transform; the page, if gradio is here, in a browser if there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import derivlang
from derivlang.core.errors import UsageError
from derivlang.explore import app
from derivlang.explore.controls import controls_of, offered, spec_of
from derivlang.pipeline import Pipeline
from derivlang.transforms.registry import TRANSFORMS, find_transform, transform_names
from tests.commands import cut_off, environment, make, run
from tests.helpers import ROOT

# Controls


@pytest.mark.parametrize("name", transform_names())
def test_every_parameter_has_a_control(name: str) -> None:
    declared = {p["name"]: p for p in find_transform(name).parameters()}
    controls = {control.name: control for control in controls_of(name)}
    assert set(controls) == set(declared) - {"unit"}
    for control in controls.values():
        assert control.help == declared[control.name]["help"]
        assert control.default == declared[control.name]["default"]
        assert not control.choices or control.default in control.choices


def test_the_parameters_of_a_plug_in_appear(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Turn(derivlang.Transform):
        """Turned."""

        name = "turn"
        by: int = derivlang.param(1, "number of words", positional=True, low=0, high=9)
        whole: bool = derivlang.param(False, "whole sentences")

    monkeypatch.setitem(TRANSFORMS.added, "turn", Turn)
    assert [(c.name, c.kind) for c in controls_of("turn")] == [("by", "slider"), ("whole", "switch")]
    assert "turn" in offered()
    assert spec_of(["turn", "inv"], {(0, "by"): 3, (0, "whole"): True}) == "turn:3:whole=yes,inv"


def test_the_spec_of_chosen_values() -> None:
    assert spec_of([], {}) == ""
    assert spec_of(["trans", "inv"], {}) == "trans,inv"
    assert spec_of(["trans", "perm"], {(0, "script"): "greek", (1, "seed"): 3.0, (1, "window"): None}) == (
        "trans:greek,perm:seed=3"
    )
    assert spec_of(["syn"], {(0, "mix"): 0.5, (0, "grammar"): "ja"}) == "syn:ja:mix=0.5"
    assert spec_of(["perm", "perm"], {(1, "seed"): 2}) == "perm,perm:seed=2"
    assert spec_of(["lex"], {(0, "file"): "a,b.txt"}) == 'lex:"a,b.txt"'


@pytest.mark.parametrize("name", ["inv", "perm", "syn", "trans"])
def test_every_choice_gives_a_spec_that_is_read(name: str) -> None:
    for control in controls_of(name):
        for value in control.choices[:3] or ([control.high] if control.high is not None else []):
            spec = spec_of([name], {(0, control.name): value})
            assert str(Pipeline.parse(spec)) == spec


def test_a_public_page_offers_no_files() -> None:
    assert "lex" in offered()
    assert "lex" not in offered(files=False)
    assert "file" not in {control.name for control in controls_of("lex", files=False)}


# What the page shows


def test_a_drawing_with_its_command() -> None:
    drawing, command = app.derived("Don't go !", "inv", "space")
    assert "<svg" in drawing
    assert command == """derivlang derive --t inv --words space 'Don'"'"'t go !'"""
    assert app.derived("-x marks", "inv", "space")[1] == "derivlang derive --t inv --words space -- '-x marks'"
    assert app.derived("-", "inv", "space")[1] == ""
    assert "--words" not in app.derived("Go !", "inv", "spacy")[1]


@pytest.mark.parametrize(
    ("text", "spec", "said"),
    [("a", "", "choose a transform"), ("a " * 2000, "inv", "more than"), ("a", "trans:<b>", "&lt;b&gt;"),
     ("a b", "trans:overlap=50", "[needs-lexicon]")],
)  # fmt: skip
def test_what_cannot_be_derived_is_said(text: str, spec: str, said: str) -> None:
    message, command = app.derived(text, spec, "space")
    assert 'role="alert"' in message
    assert said in message
    assert command == ""


def test_rows_and_statistics_of_a_set(tmp_path: Path) -> None:
    make("inv", "demo", tmp_path / "out")
    assert "<svg" in app.shown(tmp_path / "out", "train", 2)
    assert "no row 1000" in app.shown(tmp_path / "out", "train", 1000)
    assert dict(app.statistics(tmp_path / "out", "train"))["Source words"] == "787"


def test_a_damaged_set_gives_messages(tmp_path: Path) -> None:
    make("inv", "demo", tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.parquet"):
        cut_off(path)
    assert 'role="alert"' in app.shown(tmp_path / "out", "train", 0)
    ((name, message),) = app.statistics(tmp_path / "out", "train")
    assert name == "error"
    assert ".parquet" in message


def test_without_gradio_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gradio", None)
    with pytest.raises(UsageError, match=r"explore needs gradio \[missing-package\]\n.*derivlang\[explore\]"):
        app.build()
    assert "[missing-package]" in run("explore", "--no-open", code=2).err


# The page itself: needs gradio, and for the browser Debian's chromium, chromium-driver and selenium. Not in .ci/run.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("gradio", reason="pip install 'derivlang[explore]'")
    out = tmp_path_factory.mktemp("set") / "demo"
    make("trans,inv", "demo", out)
    page, found = app.serve(out)
    yield found
    page.close(verbose=False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    selenium = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("no browser here: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1300,1300"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    started = selenium.Chrome(options=options, service=selenium.ChromeService(driver))
    yield started
    started.quit()


def found(browser: Any, selector: str, so: Callable[[Any], bool] = lambda element: True) -> Any:
    """The first element that is as asked, waited for."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            for element in browser.find_elements("css selector", selector):
                if so(element):
                    return element
        except WebDriverException:  # the element was replaced meanwhile
            pass
        time.sleep(0.2)
    raise AssertionError(f"no {selector}")


def clicked(element: Any) -> bool:
    """Click an element; one that cannot be clicked yet raises, and `found` tries again."""
    element.click()
    return True


def opened(button: Any) -> bool:
    """Return whether a button's box is open; a closed one is clicked, and `found` looks again."""
    return "open" in button.get_attribute("class") or not clicked(button)


def hosts(browser: Any) -> set[str]:
    """The hosts that the browser has asked since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return {url.split("/")[2].split(":")[0] for url in urls if url.startswith(("http", "ws"))}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of gradio and its packages
def test_a_sentence_is_typed_and_its_language_changed(address: str, browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(address)
    found(browser, "#drawing dd", lambda element: element.text == "Welcome to ACL .")
    text = found(browser, "#text textarea")
    text.send_keys(Keys.CONTROL, "a")
    text.send_keys("The old cat sleeps .")
    found(browser, "#drawing dd", lambda element: element.text == "სლეეპს ცატ ოლდ Ტჰე ．")
    command = found(browser, "#command textarea, #command input").get_attribute("value")
    assert command == "derivlang derive --t trans,inv --words space 'The old cat sleeps .'"
    steps = found(browser, "#steps input")
    steps.send_keys(Keys.BACKSPACE, Keys.BACKSPACE, "syn", Keys.ENTER)
    found(browser, "#drawing dd", lambda element: element.text == "The cat old sleeps .")
    assert found(browser, "#spec textarea, #spec input").get_attribute("value") == "syn"
    steps.send_keys(Keys.ESCAPE)
    # The parameters are drawn anew, closed, when the steps change: open them until they stay open.
    found(browser, "#step-0-syn button", opened)
    found(browser, "#syn-grammar input", clicked)
    browser.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    browser.switch_to.active_element.send_keys("ja", Keys.ENTER)
    found(browser, "#spec textarea, #spec input", lambda element: element.get_attribute("value") == "syn:ja")
    next(tab for tab in browser.find_elements("css selector", "[role=tab]") if "Set" in tab.text).click()
    found(browser, "#row-drawing svg.across", lambda element: element.is_displayed())
    found(browser, "#statistics", lambda element: "787" in element.text)
    assert hosts(browser) == {"127.0.0.1"}
    assert not [entry for entry in browser.get_log("browser") if "Content Security Policy" in entry["message"]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of gradio and its packages
def test_a_phone_shows_both_lines(address: str, browser: Any) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    browser.get(address)
    found(browser, "#drawing dd", lambda element: element.text == "Welcome to ACL .")
    picked = "The black cat that we saw yesterday sleeps on the old sofa ."
    found(browser, "button.gallery-item", lambda element: element.text == picked and clicked(element))
    found(browser, "#drawing dd", lambda element: element.text == picked)
    assert not browser.find_element("css selector", "#drawing svg.across").is_displayed()
    edges = "return [...document.querySelectorAll('#drawing svg.down .word')].map(e => e.getBoundingClientRect().right)"
    assert max(browser.execute_script(edges)) <= 390
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert hosts(browser) == {"127.0.0.1"}


@pytest.mark.slow
def test_the_focus_shows_a_pair(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    derivlang.view(derivlang.derive("Welcome to ACL .", "trans,inv")).save(tmp_path / "a.html")
    browser.get(f"file://{tmp_path / 'a.html'}")
    tips = browser.find_elements("css selector", "svg.across .tip")
    assert [tip.value_of_css_property("visibility") for tip in tips] == ["hidden"] * 4
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert [tip.value_of_css_property("visibility") for tip in tips] == ["visible", "hidden", "hidden", "hidden"]
    assert browser.switch_to.active_element.get_attribute("aria-label").startswith("source 0: Welcome; derived 2: ")
    browser.set_window_size(500, 900)  # Chromium's least width
    assert browser.find_element("css selector", "svg.across").is_displayed()
    browser.get("about:blank")
    assert hosts(browser) == set()


SPACE = """
import json, runpy, socket, sys
import gradio

def refused(*place, **options):
    raise OSError("the page looks for an address")

socket.getaddrinfo = refused
gradio.Blocks.launch = lambda page, **options: print(json.dumps([options["share"], page.analytics_enabled]))
runpy.run_path(sys.argv[1])
"""


def test_the_hosted_space_builds_its_page_without_a_network() -> None:
    pytest.importorskip("gradio", reason="pip install 'derivlang[explore]'")
    command = [sys.executable, "-W", "ignore", "-c", SPACE, str(ROOT / "examples/explore/app.py")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [False, False]
