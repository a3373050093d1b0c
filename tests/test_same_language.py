"""`derivlang verify A B`: one language or not, and what differs in the user's words."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path

import pytest

from derivlang.transforms.word_order import Inv
from tests.commands import ENTITIES, Ran, entities, make, run, snapshot, wiki, written
from tests.helpers import ROOT, manifest

OVERLAP = "trans:overlap=50,inv"


def verify(one: Path, other: Path, *, same: bool) -> Ran:
    """The comparison, which is the same from both ends."""
    run("verify", other, one, code=0 if same else 1)
    found = run("verify", one, other, "--json", code=0 if same else 1).json
    assert found["ok"] is same
    assert [told["out"] for told in found["sets"]] == [str(one), str(other)]
    assert bool(found["differences"]) is not same
    return run("verify", one, other, code=0 if same else 1)


def test_one_language_is_one_fingerprint(tmp_path: Path) -> None:
    specs = ("trans,inv", "trans", "perm", "perm:seed=2", OVERLAP, "trans:overlap=50:by=frequency,inv")
    for number, spec in enumerate(specs):
        for name, source in (("text", wiki(tmp_path)), ("tags", entities(tmp_path))):
            make(spec, source, tmp_path / f"{name}-{number}")
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    for one, other in product(folders, folders):
        verify(one, other, same=manifest(one)["fingerprint"] == manifest(other)["fingerprint"])


def test_sources_of_one_language_are_told_in_a_sentence(tmp_path: Path) -> None:
    for name, source in (("text", wiki(tmp_path)), ("tags", entities(tmp_path))):
        make("trans,inv", source, tmp_path / name)
    one, other = tmp_path / "text", tmp_path / "tags"
    before = snapshot(tmp_path)
    assert verify(one, other, same=True).out == f"{one} and {other} are of one language: trans,inv\n"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ("trans,inv", "trans,perm", "the transforms are trans,inv in {one} and trans,perm in {other}"),
        ("trans,inv", "trans", "the transforms are trans,inv in {one} and trans in {other}"),
        ("perm", "perm:seed=7", "the transforms are perm in {one} and perm:seed=7 in {other}"),
        (
            "trans:overlap=50",
            "trans:overlap=25",
            "the transforms are trans:overlap=50 in {one} and trans:overlap=25 in {other}",
        ),
        ("trans", "trans:script=greek", "the transforms are trans in {one} and trans:greek in {other}"),
    ],
)
def test_the_part_of_the_spec_that_differs_is_named(ours: str, theirs: str, told: str, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    make(ours, wiki(tmp_path), one)
    make(theirs, wiki(tmp_path), other)
    lines = verify(one, other, same=False).out.splitlines()
    assert lines[0] == f"{one} and {other} are of different languages"
    assert lines[1].strip() == told.format(one=one, other=other)
    assert len(lines) == 2


def test_the_first_word_that_differs_in_the_lexicons_is_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    make(OVERLAP, entities(tmp_path), one)
    make(OVERLAP, entities(tmp_path, ENTITIES.replace("Lovelace", "Byron"), name="other.train.tsv"), other)
    told = verify(one, other, same=False).out
    words = [{line.split("\t")[0]: line.split("\t")[1:] for line in _lexicon(folder)} for folder in (one, other)]
    word = told.partition("the first word that differs is ")[2].partition(":")[0].strip("'")
    assert words[0].get(word) != words[1].get(word)
    for folder, found in zip((one, other), words, strict=True):
        assert f"{f'image={found[word][0]} ' if word in found else 'it is missing'}" in told
        assert f" in {folder}" in told


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0c"])
def test_a_word_with_a_line_end_of_unicode_is_one_word(mark: str, tmp_path: Path) -> None:
    for name, word in (("one", f"a{mark}b"), ("other", f"a{mark}c")):
        row = json.dumps({"words": [word], "tags": ["X"]})
        written(tmp_path / f"{name}.train.jsonl", row + "\n")
        make("trans:overlap=50", tmp_path / f"{name}.train.jsonl", tmp_path / name, "--word-column", "words")
    told = verify(tmp_path / "one", tmp_path / "other", same=False).out
    assert f"differs is {f'a{mark}b'!r}: " in told


def test_words_that_only_have_other_counts_are_named(tmp_path: Path) -> None:
    """They are of two fingerprints: a lexicon is compared as it is."""
    one, other = tmp_path / "one", tmp_path / "other"
    make(OVERLAP, entities(tmp_path), one)
    make(OVERLAP, entities(tmp_path, ENTITIES + "\n" + ENTITIES, name="other.train.tsv"), other)
    kept = [[line.split("\t")[::3] for line in sorted(_lexicon(folder))] for folder in (one, other)]
    assert kept[0] == kept[1]
    assert "lexicon.tsv: words have other counts in" in verify(one, other, same=False).out


def test_a_lexicon_given_to_the_second_source_makes_one_language(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    hint = run("make", "--t", OVERLAP, wiki(tmp_path), "-o", one).err
    assert f"--lexicon {one / 'lexicon.tsv'}" in hint
    assert f"derivlang verify {one} OTHER" in hint
    again = run("make", "--t", OVERLAP, entities(tmp_path), "--lexicon", one / "lexicon.tsv", "-o", other)
    assert "--lexicon" not in again.err
    verify(one, other, same=True)
    assert "--lexicon" not in run("make", "--t", "trans,inv", wiki(tmp_path), "-o", tmp_path / "none").err


def test_another_version_of_a_rule_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    make("trans,inv", wiki(tmp_path), one)
    monkeypatch.setattr(Inv, "rule_version", Inv.rule_version + 1)
    make("trans,inv", wiki(tmp_path), other)
    told = verify(one, other, same=False).out
    assert "a rule has changed since derivlang" in told
    assert f"made {one}\n" in told
    shutil.copytree(one, tmp_path / "copy")
    verify(one, tmp_path / "copy", same=True)


def test_another_grammar_is_named(tmp_path: Path) -> None:
    grammar = tmp_path / "my.grammar.tsv"
    spec = f"syn:{grammar}"
    for name in ("fr", "ja"):
        grammar.write_bytes((ROOT / "grammars" / f"{name}.grammar.tsv").read_bytes())
        make(spec, "demo", tmp_path / name, "--splits", "test")
    told = verify(tmp_path / "fr", tmp_path / "ja", same=False).out
    assert f"the grammar or another file of {spec}" in told
    assert f"in {tmp_path / 'fr'} is not the one in {tmp_path / 'ja'}\n" in told
    verify(tmp_path / "fr", tmp_path / "fr", same=True)  # as it was made, whatever the file is now


def test_a_policy_that_differs_is_noted(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    make("inv", "demo", one)
    make("inv", "demo", other, "--entities", "atomic")
    assert f"note: --entities is split in {one} and atomic in {other}" in verify(one, other, same=True).out


def test_a_set_that_was_changed_is_compared_with_none(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        make("trans,inv", wiki(tmp_path), folder)
    path = other / "derivlang.json"
    path.write_text(path.read_text("utf-8").replace("trans:table=2,inv", "trans:table=2"), "utf-8")
    assert "[manifest]" in run("verify", one, other, code=1).err
    (tmp_path / "empty").mkdir()
    assert "[no-manifest]" in run("verify", one, tmp_path / "empty", code=1).err


def _lexicon(folder: Path) -> list[str]:
    """The rows of a lexicon of one section."""
    return (folder / "lexicon.tsv").read_text("utf-8").splitlines()[2:]
