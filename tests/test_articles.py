"""Articles and paragraphs: what `make` counts in running text, and the names under which it prints the counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from derivlang.store.verify import verify
from tests import commands
from tests.commands import run, written
from tests.helpers import make, manifest, right, rows
from tests.real import SHARED, needs_data

# Two articles in ten paragraphs, 54 words. The line of a formula, the section and the last line are no titles.
WIKITEXT = """\

 = Robert Boulter = \n \n Robert Boulter is an actor . He was born in 1980 . \n \n = = Career = = \n \n In it
 = 2 <unk> / s and k =
 4 .
 \n = De <unk> ; <unk> = \n \n = = = More = = = \n \n The end .
 = Not a title =
"""


def text(folder: Path, content: str = WIKITEXT, name: str = "a.test.tokens") -> Path:
    return written(folder / name, content)


def counts(out: Path) -> dict[str, Any]:
    entry = manifest(out)["splits"]["test"]
    return {key: entry[key] for key in ("articles", "documents", "sentences") if key in entry}


@pytest.mark.parametrize(("name", "words"), [("a.test.tokens", None), ("a.test.txt", None), ("a.test.txt", "unicode")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("shard_tokens", [10**6, 1, 3, 9])
def test_articles_and_paragraphs(name: str, words: Any, end: str, shard_tokens: int, tmp_path: Path) -> None:
    source = text(tmp_path, WIKITEXT.replace("\n", end), name)
    out = make("trans,inv", source, tmp_path / "out", words=words, shard_tokens=shard_tokens)
    assert (counts(out)["articles"], counts(out)["documents"]) == (2, 10)
    right(out)
    again = make("perm", out, tmp_path / "again", shard_tokens=shard_tokens)
    assert counts(again) == counts(out)
    right(again)


@pytest.mark.parametrize(
    ("content", "limit", "articles"),
    [
        ("A preface .\n\n" + WIKITEXT, None, None),  # not all paragraphs belong to an article
        ("= =\n\na b .\n", None, None),
        ("=\n\na b .\n", None, None),
        ("= a b\n\na b .\n", None, None),
        ("= a =\nb .\n\n= c =\n\nd .\n", None, None),
        ("= a =\n\nb .\n", None, 1),
        ("= a =\n\n= b =\n\n", None, 2),
        (WIKITEXT, 1, 1),
        (WIKITEXT, 7, 2),
        (WIKITEXT, 6, 1),
    ],
)
def test_where_a_text_has_articles(content: str, limit: int | None, articles: int | None, tmp_path: Path) -> None:
    out = make("inv", text(tmp_path, content), tmp_path / "out", limit=limit)
    assert manifest(out)["splits"]["test"].get("articles") == articles
    right(out)


def test_the_counts_are_printed_by_their_names(tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", text(tmp_path), "-o", tmp_path / "out")
    assert re.search(r"^test +2 articles +10 paragraphs +11 sentences +54 tokens$", ran.out, re.MULTILINE)
    assert "| test | 2 articles, 10 paragraphs, 11 sentences, 54 tokens |" in (tmp_path / "out/README.md").read_text()
    made = run("make", "--t", "inv", text(tmp_path), "-o", tmp_path / "out", "--json").json
    assert made["document"] == "paragraph"
    assert made["splits"]["test"] == {"documents": 10, "articles": 2, "sentences": 11, "tokens": 54}


def test_questions_are_counted_by_paragraphs(tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", "demo:qa", "-o", tmp_path / "out")
    contexts = set(rows(tmp_path / "out")["context"].to_pylist())
    assert len(contexts) < rows(tmp_path / "out").num_rows
    assert re.search(rf"^test +{len(contexts)} paragraphs ", ran.out, re.MULTILINE)


def test_rows_are_rows(tmp_path: Path) -> None:
    ran = run("make", "--t", "inv", commands.trees(tmp_path), "-o", tmp_path / "out")
    assert re.search(r"^test +2 rows +2 sentences +12 tokens$", ran.out, re.MULTILINE)
    assert (
        run("make", "--t", "inv", commands.trees(tmp_path), "-o", tmp_path / "out", "--json").json["document"] == "row"
    )


def test_the_card_names_the_source(tmp_path: Path) -> None:
    card = make("inv", "demo", tmp_path / "out").joinpath("README.md").read_text("utf-8")
    assert "\ndemo; licence of the source: apache-2.0.\n" in card
    card = make("syn", "demo", tmp_path / "syn", limit=1).joinpath("README.md").read_text("utf-8")
    assert 'With every parameter, the spec is `syn:grammar=fr:model="":mode=sample:' in card


def test_verify_finds_a_changed_count_of_articles(tmp_path: Path) -> None:
    out = make("inv", text(tmp_path), tmp_path / "out")
    commands.edit_manifest(out, ["splits", "test", "articles"], 3)
    found = [problem["what"] for problem in verify(out)["problems"]]
    assert found == ["2 articles, but the manifest says 3"]


@needs_data
@pytest.mark.parametrize("shard_tokens", [10**6, 50_000])
def test_wikitext(shard_tokens: int, tmp_path: Path) -> None:
    source = SHARED / "text/wikitext-2/wiki.valid.tokens"
    out = make("inv", source, tmp_path / "out", shard_tokens=shard_tokens)
    entry = manifest(out)["splits"]["validation"]
    assert (entry["articles"], entry["documents"]) == (60, 2461)
