"""The web fonts of the package: they have the letters that scripts write, and pages use them."""

from __future__ import annotations

import io
import re
from importlib import resources
from pathlib import Path

import pytest

import derivlang
from derivlang.display.page import faces, file_of, font_notes, shipped_faces, standalone_svg
from derivlang.transforms.scripts import load_script, script_names
from tests.browser import Browser
from tests.helpers import ROOT

FOLDER = resources.files("derivlang.display") / "letters"
LATIN = "The Quick brown fox Ate 1,503 jumps – « déjà vu » !"
TABLES = [name for name in script_names() if name != "private"]


def pairs(script: str) -> dict[int, int]:
    """The pairs of a table, as (source, target) of its lines."""
    text = (resources.files("derivlang.transforms.scripts") / f"{script}.tsv").read_text("utf-8")
    lines = [line.split("\t") for line in text.split("\n") if "\t" in line]
    return {ord(chr(int(a[2:], 16)) if len(a) > 1 else a): ord(b) for a, b in lines}


def files_in(text: str) -> list[str]:
    """The web fonts that a page carries."""
    return [file_of(rule) for rule in shipped_faces() if rule.partition("src:")[2].partition("; ")[2] in text]


@pytest.mark.parametrize("script", TABLES)
def test_every_letter_that_a_script_writes_is_in_one_font(script: str) -> None:
    """Of each pair, that is the target. Sources are letters and signs of Latin text, which every machine has."""
    table = load_script(script).table
    for source, target in pairs(script).items():
        assert table[source] == target
        assert sum(target in codes for codes in shipped_faces().values()) == 1, f"U+{target:04X}: run docs/fonts.py"
        assert not any(source in codes for codes in shipped_faces().values())


def test_a_font_has_the_characters_that_its_rule_names() -> None:
    fonts = pytest.importorskip("fontTools.ttLib", reason="pip install fonttools brotli")
    pytest.importorskip("brotli", reason="pip install fonttools brotli")
    for rule, codes in shipped_faces().items():
        font = fonts.TTFont(io.BytesIO((FOLDER / file_of(rule)).read_bytes()))
        assert codes <= set(font.getBestCmap())  # and mirrored signs, which come along


def test_the_folder_has_the_fonts_and_their_licence() -> None:
    names = {entry.name for entry in FOLDER.iterdir()}
    assert names == {"letters.css", "OFL.txt", *map(file_of, shipped_faces())}
    assert "SIL OPEN FONT LICENSE Version 1.1" in (FOLDER / "OFL.txt").read_text("utf-8")


def test_a_page_carries_the_fonts_that_it_needs() -> None:
    assert faces(LATIN) == ""
    for spec, files in {
        "inv": [],
        "trans": ["fullwidth.woff2", "georgian.woff2"],
        "trans:copy": ["double-struck.woff2"],
        "trans:armenian": ["fullwidth.woff2", "armenian.woff2"],
    }.items():
        derived = derivlang.derive("Welcome to ACL .".split(), spec)
        for text in (derivlang.view(derived)._repr_html_(), standalone_svg(derived.linked())):
            assert sorted(files_in(text)) == sorted(files), spec
            assert text.count("@font-face") == text.count("url(data:font/woff2;base64,") == text.count("url(")


def test_private_use_characters_are_explained() -> None:
    assert font_notes(["plain", "café", "Წელცომე", "．"]) == []
    assert "private-use" in font_notes(["\U000f0041"])[0]


# In a browser


def all_letters(script: str) -> list[str]:
    """Words of all sources of a table."""
    sources = "".join(map(chr, pairs(script)))
    return [sources[first : first + 8] for first in range(0, len(sources), 8)]


def letters(text: str) -> int:
    """The number of characters, without spaces."""
    return len("".join(text.split()))


@pytest.mark.parametrize("script", TABLES)
def test_a_page_and_a_picture_use_the_fonts(browser: Browser, tmp_path: Path, script: str) -> None:
    derived = derivlang.derive(all_letters(script), f"trans:{script}")
    derivlang.view(derived).save(tmp_path / "a.html")
    browser.get(f"file://{tmp_path / 'a.html'}")
    assert browser.brought(".lines div:last-child dd") == letters(derived.text)
    derivlang.view(derived).save(tmp_path / "a.svg")
    browser.get(f"file://{tmp_path / 'a.svg'}")
    for place, word in enumerate(derived.words, 1):
        assert browser.brought(f".pair:nth-of-type({place + 1}) text:last-of-type") == letters(word)


def test_the_site_uses_the_fonts(browser: Browser, tmp_path: Path) -> None:
    """Its two style sheets, the texts of a page in the fonts that furo's rules name."""
    text = derivlang.derive(all_letters("georgian"), "trans").text
    (tmp_path / "a.html").write_text(
        f"""<meta charset="utf-8"><link rel="stylesheet" href="file://{FOLDER}/letters.css">
        <link rel="stylesheet" href="file://{ROOT}/docs/_static/site.css">
        <p style="font-family: var(--font-stack)">{text}</p>
        <code style="font-family: var(--font-stack--monospace)">{text}</code>""",
        "utf-8",
    )
    browser.get(f"file://{tmp_path / 'a.html'}")
    for element in ("p", "code"):
        assert browser.brought(element) == letters(text)
    sheets = re.findall(r"html_(?:static_path|css_files) = (\[.*?\])", (ROOT / "docs" / "conf.py").read_text("utf-8"))
    assert "../derivlang/display/letters" in sheets[0]
    assert "letters.css" in sheets[1]
