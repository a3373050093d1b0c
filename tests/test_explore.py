"""`derivlang explore`: what it offers for each transform; the page, if gradio is here, in a browser if there is one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import derivlang
from derivlang.core.errors import UsageError
from derivlang.core.spec import Parameterised
from derivlang.explore import app
from derivlang.explore.controls import controls_of, offered, spec_of, steps_of
from derivlang.pipeline import Pipeline
from derivlang.transforms.registry import TRANSFORMS, find_transform, transform_names
from tests.browser import ALL, BACKSPACE, ENTER, ESCAPE, TAB, Browser, Element
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


@pytest.mark.parametrize("name", ["inv", "lex", "perm", "syn", "trans"])
def test_a_typed_spec_sets_the_controls(name: str) -> None:
    """`steps_of` reverses `spec_of`, for every choice and both ends of every range."""
    for control in controls_of(name):
        ends = [end for end in (control.low, control.high) if end is not None]
        for value in control.choices or ends or [{"switch": True, "text": "a,b.txt"}.get(control.kind, 7)]:
            spec = spec_of(["identity", name], {(1, control.name): value})
            kept = {} if value == control.default else {(1, control.name): value}
            assert steps_of(spec) == (["identity", name], kept), spec


@pytest.mark.parametrize(
    "spec",
    ["", " ", "trans,", "trance", "trans:a:b:c", "perm:seed=-1", "perm:seed=x", "perm:seed=" + "9" * 5000, 'a"b', "\0",
     "perm:sed=1", "perm,inv,perm"],
)  # fmt: skip
def test_a_spec_that_controls_cannot_show_leaves_them_as_they_are(spec: str) -> None:
    assert steps_of(spec) is None


def test_reading_a_typed_spec_opens_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor's spec is refused where it is derived; showing it in the controls builds no transform before that."""

    def built(transform: Parameterised) -> None:
        raise AssertionError(f"{transform.name} is built")

    monkeypatch.setattr(Parameterised, "__post_init__", built)
    for spec, name in (("syn:/etc/hosts", "grammar"), ("trans:/etc/hosts", "script")):
        step = spec.partition(":")[0]
        assert steps_of(spec, files=False) == ([step], {(0, name): "/etc/hosts"})
    assert steps_of("lex:/etc/hosts") == (["lex"], {(0, "file"): "/etc/hosts"})
    assert steps_of("lex:/etc/hosts", files=False) is None


def test_a_public_page_offers_no_files() -> None:
    assert "lex" in offered()
    assert "lex" not in offered(files=False)
    assert "dialect" in offered(files=False)  # its list of words may be left out
    assert "file" not in {control.name for control in controls_of("lex", files=False)}


def test_a_public_page_offers_what_a_typed_sentence_has_the_layers_for() -> None:
    left_out = set(offered()) - set(offered(files=False))
    assert left_out == {"agree", "case", "hop", "lemma", "lex", "np", "switch", "scramble", "sort"}
    for name in offered():
        shown, _ = app.derived("She gave him apples .", name, "space")
        lacking = "[needs-l" in shown  # needs-layer, needs-lexicon
        assert lacking == (name in left_out - {"lex"}), name


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


def test_a_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(**options: object) -> None:
        raise OSError("Cannot find empty port")

    monkeypatch.setattr(app, "build", lambda folder, files: SimpleNamespace(launch=launch))
    monkeypatch.setattr(app, "launching", lambda hosts: {})
    assert "--port: cannot serve on port 80: Cannot find" in run("explore", "--no-open", "--port", 80, code=2).err


# The page itself: needs gradio and, for the browser, Debian's chromium and chromium-driver. Not in .ci/run.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("gradio", reason="pip install 'derivlang[explore]'")
    out = tmp_path_factory.mktemp("set") / "demo"
    make("trans,inv", "demo", out)
    page, found = app.serve(out)
    yield found
    page.close(verbose=False)


def test_the_page_answers_only_to_its_own_names_takes_no_file_and_leaves_none(tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="pip install 'derivlang[explore]'")
    place = {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "derivlang", "explore", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment() | place) as process:
        address = re.search(r"http://\S+", process.stderr.readline())[0]  # type: ignore[index, union-attr]

        def asked(path: str, data: bytes | None = None, **headers: str) -> int:
            try:
                with urlopen(Request(address + path, data, headers), timeout=60) as answer:
                    return int(answer.status)
            except HTTPError as error:
                return error.code

        form = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhello\r\n--x--\r\n'
        assert asked("config") == 200
        assert asked("config", Host="elsewhere.example") == 400
        assert asked("gradio_api/upload", form, **{"Content-Type": "multipart/form-data; boundary=x"}) == 403
        process.terminate()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def opened(button: Element) -> bool:
    """Return whether a button's box is open; a closed one is clicked, and `find` looks again."""
    return "open" in button.attribute("class") or not button.click()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of gradio and its packages
def test_a_sentence_is_typed_and_its_language_changed(address: str, browser: Browser) -> None:
    browser.get(address)
    browser.find("#drawing dd", lambda element: element.text == "Welcome to ACL .")
    assert browser.brought("#drawing dl.lines div:last-child dd") == len("ᲐᲪᲚტოᲬელცომე．")
    text = browser.find("#text textarea")
    text.type(ALL, "The old cat sleeps .")
    browser.find("#drawing dd", lambda element: element.text == "სლეეპს ცატ ოლდ Ტჰე ．")
    command = browser.find("#command textarea, #command input").value
    assert command == "derivlang derive --t trans,inv --words space 'The old cat sleeps .'"
    steps = browser.find("#steps input")
    steps.type(BACKSPACE, BACKSPACE, "syn", ENTER)
    browser.find("#drawing dd", lambda element: element.text == "The cat old sleeps .")
    assert browser.find("#spec textarea, #spec input").value == "syn"
    steps.type(ESCAPE)
    # The parameters are drawn anew, closed, when the steps change: open them until they stay open.
    browser.find("#step-0-syn button", opened)
    browser.find("#syn-grammar input", Element.click)
    browser.active().type(ALL, "ja", ENTER)
    browser.find("#spec textarea, #spec input", lambda element: element.value == "syn:ja")
    spec = browser.find("#spec textarea, #spec input")
    spec.type(ALL, "perm:seed=7,trans:copy")
    browser.find("#step-1-trans")
    browser.find("#step-0-perm button", opened)
    browser.find("#perm-seed input", lambda element: element.value == "7")
    browser.find("#command textarea, #command input", lambda element: " perm:seed=7,trans:copy " in element.value)
    browser.find("#spec textarea, #spec input").type(ALL, "perm:sed=7")
    browser.find("#drawing .dl-error", lambda element: "'sed'" in element.text)
    assert browser.all("#step-1-trans")
    browser.find("#perm-window input").type(ALL, "3", TAB)  # the controls still work, and win
    browser.find("#spec textarea, #spec input", lambda element: element.value == "perm:window=3:seed=7,trans:copy")
    browser.find("#steps .remove-all", Element.click)
    browser.find("#drawing .dl-error", lambda element: element.text == "choose a transform")
    assert browser.find("#spec textarea, #spec input").value == ""
    next(tab for tab in browser.all("[role=tab]") if "Set" in tab.text).click()
    browser.find("#row-drawing svg.across", Element.displayed)
    browser.find("#statistics", lambda element: "787" in element.text)
    assert browser.hosts() == {"127.0.0.1"}
    assert not [entry for entry in browser.log("browser") if "Content Security Policy" in entry["message"]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of gradio and its packages
def test_a_phone_shows_both_lines(address: str, browser: Browser) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.devtools("Emulation.setDeviceMetricsOverride", **phone)
    browser.get(address)
    browser.find("#drawing dd", lambda element: element.text == "Welcome to ACL .")
    picked = "The black cat that we saw yesterday sleeps on the old sofa ."
    browser.find("button.gallery-item", lambda element: element.text == picked and element.click())
    browser.find("#drawing dd", lambda element: element.text == picked)
    assert not browser.find("#drawing svg.across").displayed()
    edges = "return [...document.querySelectorAll('#drawing svg.down .word')].map(e => e.getBoundingClientRect().right)"
    assert max(browser.run(edges)) <= 390
    assert browser.run("return document.documentElement.scrollWidth") == 390
    browser.devtools("Emulation.clearDeviceMetricsOverride")
    assert browser.hosts() == {"127.0.0.1"}


@pytest.mark.slow
def test_the_focus_shows_a_pair(browser: Browser, tmp_path: Path) -> None:
    derivlang.view(derivlang.derive("Welcome to ACL .", "trans,inv")).save(tmp_path / "a.html")
    browser.hosts()  # forgotten
    browser.get(f"file://{tmp_path / 'a.html'}")
    tips = browser.all("svg.across .tip")
    assert [tip.css("visibility") for tip in tips] == ["hidden"] * 4
    browser.find("body").type(TAB)
    assert [tip.css("visibility") for tip in tips] == ["visible", "hidden", "hidden", "hidden"]
    assert browser.active().attribute("aria-label").startswith("source 0: Welcome; derived 2: ")
    browser.call("POST", "/window/rect", width=500, height=900)  # Chromium's least width
    assert browser.find("svg.across").displayed()
    browser.call("POST", "/window/rect", width=1300, height=1300)
    browser.get("about:blank")
    assert browser.hosts() == set()


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
