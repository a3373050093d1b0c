"""Drawings: what is linked, where it stands, the markup; rows of sets and files; the terminal."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.core.errors import StoreError, UsageError
from derivlang.display import drawing as drawing_module
from derivlang.display import view as view_module
from derivlang.display.drawing import arcs_of, colours_of, draw, is_rtl, isolated, kinds_of, width
from derivlang.display.page import fragment, page, standalone_svg
from derivlang.display.rows import Line, LinkedLines, Span
from derivlang.display.view import View, text_of
from tests import commands
from tests.commands import make, run
from tests.helpers import CONTROLS, obeyed

ADA = LinkedLines(
    Line(
        ("Ada", "Lovelace", "was", "born", "in", "London"),
        spans=(Span("entity", 0, 2, "PER", "ner_tags"), Span("answer", 4, 6, "answer", "answers")),
    ),
    Line(
        ("London", "in", "quite", "was", "Lovelace", "Ada"),
        spans=(Span("entity", 4, 6, "PER", "ner_tags"), Span("answer", 0, 2, "answer", "answers")),
    ),
    (5, 4, -1, 2, 1, 0),
    {"row": "3"},
)


def linked(text: str, spec: str) -> LinkedLines:
    return derivlang.derive(text.split(), spec).linked()


def svg_of(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


class _Balanced(HTMLParser):
    """Collects tags that are not closed, attributes that load something, and ids."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link", "path", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


# What is linked


def test_pairs_say_what_moved() -> None:
    assert kinds_of(linked("a b c .", "inv")) == [
        (0, 2, "later"), (1, 1, "same"), (2, 0, "earlier"), (3, 3, "same"),
    ]  # fmt: skip
    # A deleted word moves nothing, nor does an inserted one.
    assert kinds_of(LinkedLines(Line(("a", "b", "c")), Line(("a", "x", "c")), (0, -1, 2))) == [
        (0, 0, "same"), (1, -1, "deleted"), (2, 2, "same"), (-1, 1, "inserted"),
    ]  # fmt: skip


def test_links_of_a_derived_text() -> None:
    assert derivlang.derive("a b c .", "inv").links == [(0, 2), (1, 1), (2, 0), (3, 3)]


def test_trees_of_a_derived_text_count_in_the_text() -> None:
    found = derivlang.derive("The old dog barks. It sleeps.\n\nShe saw the old cat.", "syn:fr")
    for words, labels in ((found.source, found.source_labels), (found.words, found.labels)):
        governed = {
            words[place]: words[head - 1] for place, head in enumerate(labels["head"]) if head and words[place] != "."
        }
        assert governed["It"] == "sleeps"
        assert governed["cat"] == "saw"
        assert labels["deprel"].count("root") == 3
    assert derivlang.derive("a b", "inv").labels == {}


@given(st.lists(st.integers(0, 30), max_size=30))
def test_an_arc_is_one_level_above_those_that_it_overlaps(heads: list[int]) -> None:
    head = [h % (len(heads) + 1) for h in heads]
    head = [0 if h == place + 1 else h for place, h in enumerate(head)]
    highest = [0] * len(head)
    for arc in arcs_of(head):
        first, last = sorted((arc.head, arc.word))
        assert arc.level == 1 + max(highest[first:last])
        highest[first:last] = [arc.level] * (last - first)


def test_a_head_of_many_words_is_shown_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted by the values that `max` sees: with some work for each pair of words it would see millions."""
    seen = 0

    def counting(*values: Any, **default: Any) -> Any:
        nonlocal seen
        values = tuple(values[0]) if len(values) == 1 else values
        seen += len(values)
        return max(values, **default)

    for module in (drawing_module, view_module):
        monkeypatch.setattr(module, "max", counting, raising=False)
    words = tuple(map(str, range(2000)))
    head, tag = (0, *[1] * 1999), {"upos": ("NOUN",) * 2000}
    line = Line(words, head, ("root",) * 2000, tag, tuple(Span("entity", n, n + 1, "PER") for n in range(2000)))
    text = text_of(LinkedLines(line, line, tuple(range(2000))), lambda text, kind: text, {"PER": 1})
    assert text.splitlines()[-1].endswith("NOUN  root of 0  B-PER")
    assert seen < 20 * 2000


def test_labels_of_a_word() -> None:
    line = Line(
        ("She", "sleeps"), (2, 0), ("nsubj", "root"), {"upos": ("PRON", "VERB"), "lemmas": ("she", "_")},
        (Span("entity", 0, 1, "PER"),),
    )  # fmt: skip
    assert line.labels()[0] == ["PRON", "lemmas she", "nsubj of 1 sleeps", "PER"]
    assert line.labels()[1] == ["VERB", "root"]


# Drawings


@pytest.mark.parametrize(
    "row",
    [
        linked("Welcome to ACL .", "trans,inv"),
        derivlang.derive("The black cat that we saw sleeps on the old sofa .", "syn:fr").linked(),
        linked("החתול השחור ישן על הספה .", "inv"),
        ADA,
        LinkedLines(Line(()), Line(()), ()),
        LinkedLines(Line(("a",)), Line(()), ()),
    ],
    ids=["inv", "syn", "hebrew", "entities", "empty", "all deleted"],
)
def test_everything_lies_inside_the_drawing_and_words_do_not_overlap(row: LinkedLines) -> None:
    drawing = draw(row, colours_of([row]))
    spans: dict[float, list[tuple[float, float]]] = {}
    for pair in drawing.pairs:
        for text in pair.texts:
            if "word" in text.kind:
                wide = width(text.text) * 15
                left = text.x - wide / 2
                assert left >= -4
                assert left + wide <= drawing.width + 4
                assert 0 < text.y <= drawing.height
                spans.setdefault(text.y, []).append((left, left + wide))
        for path, arrow, _ in pair.arcs:
            ends = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path + arrow)
            assert all(-4 <= float(x) <= drawing.width + 4 and 0 <= float(y) <= drawing.height for x, y in ends)
    for found in spans.values():
        found.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(found))
    assert len(drawing.pairs) == len(kinds_of(row))


def test_a_right_to_left_line_begins_at_the_right() -> None:
    drawing = draw(linked("החתול ישן .", "trans:copy,inv"), {"answer": 0})
    places = {text.text: text.x for pair in drawing.pairs for text in pair.texts}
    assert places[isolated("החתול")] > places[isolated("ישן")] > places["."]
    assert is_rtl(["שלום", "12", "."])
    assert not is_rtl(["a", "שלום", "b"])
    assert isolated("abc") == "abc"
    assert isolated("א.") == "\u2068א.\u2069"


def test_widths_grow_with_what_is_written() -> None:
    assert width("iii") < width("nnn") < width("WWW") < width("漢字漢字")
    assert width("e\u0301") == width("e")


# Markup


def test_a_page_is_whole_and_loads_nothing() -> None:
    text = page([linked("Welcome to ACL .", "trans,inv"), ADA], "<a> & b", "told")
    assert text.startswith("<!doctype html>")
    assert "<title>&lt;a&gt; &amp; b</title>" in text
    parser = _Balanced()
    parser.feed(text)
    assert parser.open == []
    assert parser.loads == []
    assert "script" not in parser.tags
    assert text.count("url(") == text.count("url(data:")
    assert "@import" not in text


def test_words_are_escaped() -> None:
    text = fragment([linked('<script>alert(1)</script> & "x" \' .', "inv")])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_keyboard_and_a_screen_reader_can_follow() -> None:
    text = fragment([derivlang.derive("She sleeps .".split(), "trans,syn:fr").linked()])
    assert text.count('tabindex="0" role="img"') == 3
    assert 'aria-label="source 1: sleeps (VERB, root); derived 1: ' in text
    assert 'role="group" aria-label="3 source words linked to 3 derived words; 0 moved"' in text
    rows = re.findall(r"<tr><td>(\d)</td>", text)
    assert rows == ["0", "1", "2"]


def test_the_key_explains_what_occurs() -> None:
    key = re.findall(r"<li>.*?</li>", fragment([ADA]), re.DOTALL)
    assert [re.sub(r"<.*?>|word(?=</)", "", item).removeprefix("word") for item in key] == [
        "in its place", "moved forward", "moved back", "deleted", "inserted", "answer", "PER",
    ]  # fmt: skip
    assert 'dl-key"' not in fragment([linked("a b", "trans:copy")])


def test_a_picture_is_an_svg_of_its_own(tmp_path: Path) -> None:
    text = standalone_svg(linked("Welcome to ACL .", "trans,inv"))
    root = svg_of(text)
    assert [found.text for found in root.iter("{http://www.w3.org/2000/svg}text")][:2] == ["Welcome", "Წელცომე"]
    assert "prefers-color-scheme: dark" in text
    View([ADA]).save(tmp_path / "ada.svg")
    svg_of((tmp_path / "ada.svg").read_text("utf-8"))


# Notebooks


def test_a_derived_text_shows_itself() -> None:
    text = derivlang.derive("a b .", "inv")
    assert text._repr_html_() == derivlang.view(text)._repr_html_()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo") / "out"
    make("trans,inv", "demo", out)
    return out


def test_pairs_and_questions_have_two_drawings(tmp_path: Path) -> None:
    for source in (commands.pairs(tmp_path), commands.questions(tmp_path)):
        made = tmp_path / source.stem
        make("trans,inv", source, made)
        rows = derivlang.DerivedSet(made).show(1).rows
        assert len(rows) == 2
        answers = [span for row in rows for span in row.derived.spans]
        assert len(answers) == ("qa" in source.stem)


@pytest.mark.parametrize("data", [None, 3, "text", {"tokens": ["a"], "order": [0]}, {}])
def test_other_data_are_refused(data: Any) -> None:
    with pytest.raises(UsageError, match=r"\[no-view\]\n.*DerivedSet"):
        derivlang.view(data)


def test_what_cannot_be_drawn_is_refused(demo: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no row to draw"):
        View([]).save(tmp_path / "x.html")
    with pytest.raises(StoreError, match="has no row 100000"):
        derivlang.DerivedSet(demo).show(row=100_000)
    with pytest.raises(StoreError):
        derivlang.view(derivlang.derive("a b .", "inv")).save(tmp_path / "no" / "x.html")


# The terminal


@given(st.lists(st.text(st.sampled_from(CONTROLS + "aé"), min_size=1), min_size=1, max_size=4))
def test_the_terminal_obeys_no_word_or_label(words: list[str]) -> None:
    """Rows have as many lines as without control characters, and all columns stand where they should."""

    def row(texts: list[str]) -> str:
        line = Line(
            tuple(texts), (0, 1, 1, 1)[: len(texts)], tuple(texts), {"upos": tuple(texts)},
            (Span("entity", 0, 1, texts[0], "ner_tags"),),
        )  # fmt: skip
        facts = {texts[0]: texts[-1]}
        linked = LinkedLines(line, line, tuple(range(len(texts))), facts, facts)
        return text_of(linked, lambda text, kind: text, colours_of([linked]))

    text = row(words)
    assert not obeyed(text)
    assert "\t" not in text
    assert text.count("\n") == row(["x"] * len(words)).count("\n")


def test_colours_reach_entities_answers_and_arrows() -> None:
    text = text_of(ADA, lambda text, kind: f"<{kind}|{text}>", colours_of([ADA]))
    assert "<label 1|Ada>" in text
    assert "<label 0|London>" in text
    assert "<earlier|<->" in text
    assert "B-PER" in text
    assert text.endswith("<deleted|<->   3 born  deleted")


def test_show_writes_a_page_or_a_picture(demo: Path, tmp_path: Path) -> None:
    ran = run("show", demo, "--split", "dev", "-n", 2, "--html", tmp_path / "a.html")
    assert ran.out == f"{tmp_path / 'a.html'}: 2 drawings\n"
    ran = run("show", demo, "--split", "dev", "-n", 2, "--html", tmp_path / "two.SVG")
    assert ran.out == f"{tmp_path / 'two.SVG'}: 1 drawing\n"
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "trans,inv of demo, split validation" in text
    assert text.count("<figure") == 2
    run("show", "--t", "inv", "a b c", "--html", tmp_path / "a.svg")
    svg_of((tmp_path / "a.svg").read_text("utf-8"))
    both = run("show", "--t", "inv", "a b c", "--html", tmp_path / "b.html", "--json")
    assert both.json["tokens"] == ["c", "b", "a"]
    assert "b.html" in both.err
    assert "name the file .html or .htm or .svg" in run("show", demo, "--html", tmp_path / "a.png", code=2).err
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("column", ["pos_tags", "tags", "xpos", "stress"])
def test_show_has_the_tags_whatever_their_column(column: str, tmp_path: Path) -> None:
    row = {"tokens": ["Ann", "saw", "."], column: ["NNP", "VBD", "."]}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row)}\n", "utf-8")
    run("make", "--t", "inv", tmp_path / "a.jsonl", "-o", tmp_path / "out", "--label-column", f"{column}=tags")
    shown = run("show", tmp_path / "out").out
    assert [len(re.findall(rf" {tag}( |$)", shown, re.MULTILINE)) for tag in ("NNP", "VBD")] == [1, 1]


def test_show_a_file(tmp_path: Path) -> None:
    source = commands.trees(tmp_path)
    ran = run("show", "--t", "inv", source, "--row", 1)
    assert ran.out.splitlines()[0].startswith("row 1  split test  document 1  key ")
    assert "nummod of " in ran.out
    make("inv", source, tmp_path / "out")
    made = run("show", tmp_path / "out", "--row", 1, "--json").json
    assert run("show", "--t", "inv", source, "--row", 1, "--json").json == made
    assert "[row]" in run("show", "--t", "inv", source, "--row", 5, code=1).err
    assert "[missing-file]" in run("show", "--t", "inv", tmp_path / "none.tsv", code=1).err
    assert "[unused-option]" in run("show", "--t", "inv", source, "--split", "test", code=2).err
    make("trans:overlap=50", source, tmp_path / "half")
    made = run("show", tmp_path / "half", "--row", 1, "--json").json
    saved = ("--t", "trans:overlap=50", "--lexicon", tmp_path / "half" / "lexicon.tsv")
    assert run("show", *saved, source, "--row", 1, "--json").json == made
    assert run("show", *saved, "--json", "Je vais").json["source"] == ["Je", "vais"]
    pairs = run("show", "--t", "inv", commands.pairs(tmp_path), "-n", 1)
    assert pairs.out.count("side ") == 2


@pytest.mark.parametrize("rows", [(0, 3), (2, 3), (4, 2)])
def test_show_rows_of_running_text(tmp_path: Path, rows: tuple[int, int]) -> None:
    source = commands.wiki(tmp_path)
    make("inv", source, tmp_path / "out")
    options = ("--row", rows[0], "-n", rows[1], "--json")
    assert run("show", "--t", "inv", source, *options).out == run("show", tmp_path / "out", *options).out


def test_own_columns_with_the_names_of_facts(tmp_path: Path) -> None:
    """An own column `row` or `work_order` is a value of the row, a word such as B-52 is not a tag."""
    commands.written(tmp_path / "a.jsonl", '{"tokens": ["B-52"], "row": 7, "side": "q", "work_order": 3}\n')
    told = run("show", "-t", "inv", tmp_path / "a.jsonl").out.splitlines()[0]
    assert told.startswith("row 0  split train")
    assert told.endswith("row 7  side q  work_order 3")
    shown = run("show", "-t", "inv", tmp_path / "a.jsonl", "--json").json
    assert (shown["row"], shown["values"]) == (0, {"row": "7", "side": "q", "work_order": "3"})
    make("inv", tmp_path / "a.jsonl", tmp_path / "set")
    text = derivlang.DerivedSet(tmp_path / "set").show()._repr_html_()
    assert "B-52" in text
    assert ">52<" not in text


def test_a_picture_is_well_formed_whatever_its_words_hold(tmp_path: Path) -> None:
    run("show", "-t", "inv", "--words", "space", "a\x02b \x1b[1m \uffff c", "--html", tmp_path / "x.SVG")
    assert "a\ufffdb" in "".join(svg_of((tmp_path / "x.SVG").read_text("utf-8")).itertext())


def test_an_exported_file_is_what_its_name_says(tmp_path: Path) -> None:
    commands.written(tmp_path / "a.txt", "a b .\n")
    make("inv", tmp_path / "a.txt", tmp_path / "set")
    for name, kind in (("x.txt.gz", "text"), ("x.csv", "jsonl"), ("x.conllu", "pharaoh")):
        assert "[output]" in run("export", tmp_path / "set", "--format", kind, "-o", tmp_path / name, code=2).err
        assert not (tmp_path / name).exists()
    for name, kind in (("x.txt", "pharaoh"), ("x.links", "pharaoh"), ("x", "jsonl")):
        run("export", tmp_path / "set", "--format", kind, "-o", tmp_path / name)
    assert "no split '**'" in run("undo", tmp_path / "set", "--split", "**", code=1).err
