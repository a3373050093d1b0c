"""Versions of a script's table: sets made with an older one still verify, undo and serve as sources."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from derivlang.core.arrow import string_array
from derivlang.core.errors import UsageError
from derivlang.formats import conllu
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.train import train
from derivlang.lexical.twin import Twin, make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.transforms.scripts import load_script
from derivlang.transforms.trans import private_share
from tests.commands import written
from tests.helpers import make, manifest, right, rows, undone
from tests.real import SHARED, needs_data

TEXT = "Le café est fermé .\nOù est la garçonnière ? – Là-bas !\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "text.tokens", TEXT)


def test_a_stored_spec_without_a_table_means_the_first() -> None:
    assert Pipeline.parse("trans").fingerprint() != Pipeline.from_stored("trans").fingerprint()
    assert Pipeline.parse("trans:private").fingerprint() == Pipeline.from_stored("trans:private").fingerprint()


def test_one_name_for_one_table() -> None:
    assert str(Pipeline.parse("trans:table=2")) == str(Pipeline.parse("trans")) == "trans"
    assert Pipeline.parse("trans").stored == "trans:table=2"
    assert str(Pipeline.parse("trans:copy:table=1")) == Pipeline.parse("trans:copy").stored == "trans:copy"
    assert str(Pipeline.from_stored("trans,inv")) == "trans:table=1,inv"
    with pytest.raises(UsageError, match="the newest table of copy is 1"):
        Pipeline.parse("trans:copy:table=2")


@pytest.mark.parametrize(("spec", "version"), [("trans", 2), ("trans:table=1", 1), ("trans:copy", 1)])
def test_the_full_spec_names_the_table_that_is_used(spec: str, version: int) -> None:
    full = Pipeline.parse(spec).with_defaults
    assert full.endswith(f":table={version}")
    assert full.count("table=") == 1
    assert Pipeline.parse(full) == Pipeline.parse(spec)


@pytest.mark.parametrize("spec", ["trans:table=1,inv", "trans:overlap=50:table=1,inv"])
def test_a_set_of_the_old_table_is_whole(spec: str, source: Path, tmp_path: Path) -> None:
    """A spec without a table means the first one, so the manifest and the lexicon name none."""
    out = make(spec, source, tmp_path / "old")
    assert manifest(out)["spec"] == spec.replace(":table=1", "")
    if "overlap" in spec:
        assert (out / "lexicon.tsv").read_text("utf-8").startswith("# derivlang lexicon: trans:overlap=50\n")
    else:
        assert "\U000f00e9" in "".join(rows(out)["tokens"].combine_chunks().flatten().to_pylist())
    right(out)
    assert undone(out).decode() == TEXT
    both = make("trans", out, tmp_path / "both")
    assert manifest(both)["spec"] == f"{spec.replace(':table=1', '')},trans:table=2"
    right(both)
    assert undone(both).decode() == TEXT


def test_a_set_of_the_new_table_says_so(source: Path, tmp_path: Path) -> None:
    out = make("trans", source, tmp_path / "new")
    assert manifest(out)["spec"] == "trans:table=2"
    assert rows(out)["tokens"][0].as_py()[1] == "ცაფⴄ"
    right(out)
    assert undone(out).decode() == TEXT


def test_an_old_lexicon_is_of_the_old_table(source: Path, tmp_path: Path) -> None:
    old = make("trans:overlap=50:table=1", source, tmp_path / "old")
    with pytest.raises(UsageError, match="fitted for trans:overlap=50, but the pipeline has trans:overlap=50:table=2"):
        make("trans:overlap=50", source, tmp_path / "new", lexicon=old / "lexicon.tsv")
    right(make("trans:overlap=50:table=1", source, tmp_path / "again", lexicon=old / "lexicon.tsv"))


def test_a_twin_keeps_its_table(source: Path, tmp_path: Path) -> None:
    train(SourceRequest(str(source)), tmp_path / "tok", TokenizerOptions(vocab_size=43))
    for spec, stored, version in (("trans:table=1", "trans", 1), ("trans", "trans:table=2", 2)):
        recipe = make_twin(tmp_path / "tok", spec, tmp_path / stored)
        assert recipe["spec"] == stored
        twin = Twin.load(tmp_path / stored)
        assert twin.map.script.version == version
        image = twin.map.script.map_text("café")
        assert json.loads(json.dumps(twin.tokenizer.build().encode(image).tokens))[-1] == image[-1] + "</w>"


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ("trans", None),
        ("trans:private", None),
        ("trans:table=1", "46.2 % .* script georgian .* under: trans:cyrillic, trans:georgian, trans:greek$"),
        (
            "trans:copy",
            "69.2 % .* script copy .* under: trans:cyrillic, trans:georgian, trans:greek$",
        ),
        ("trans:overlap=100:table=1", None),
        ("inv", None),
    ],
)
def test_make_warns_of_private_use(spec: str, warned: str | None, source: Path, tmp_path: Path) -> None:
    warnings: list[str] = []
    make(spec, source, tmp_path / "out", warnings=warnings)
    assert len(warnings) == (warned is not None)
    if warned is not None:
        assert re.search(warned, warnings[0])


@needs_data
@pytest.mark.parametrize(
    ("treebank", "before"),
    [("French-GSD", 14.9), ("German-GSD", 8.3), ("Spanish-GSD", 9.2), ("Turkish-BOUN", 37), ("Irish-IDT", 26)],
)
def test_words_of_real_treebanks_are_visible(treebank: str, before: float) -> None:
    words: Counter[str] = Counter()
    for path in (SHARED / "ud" / f"UD_{treebank}").glob("*.conllu*"):
        for found in conllu.read(path):
            words.update(found.table["tokens"].combine_chunks().flatten().to_pylist())
    types, counts = string_array(list(words)), np.array(list(words.values()))
    for script in ("georgian", "greek", "cyrillic"):
        old, new = (private_share(load_script(script, v), types, counts) for v in (1, 2))
        assert old > before
        assert new < 0.2


def test_a_private_character_counts_if_it_is_in_the_image() -> None:
    types, counts = string_array(["漢", "\U000f6f22", "a", "a漢"]), np.array([1, 2, 4, 1])
    script = load_script("georgian")
    assert private_share(script, types, counts) == 25  # the second becomes 漢
    assert private_share(script, types, counts, lambda types: types) == 25
    assert private_share(script, types, counts, lambda types: string_array(["a"] * len(types))) == 0


@pytest.mark.parametrize("more", ["", "дом\n"])  # one word in 4,001 has letters in another script
def test_make_says_where_no_script_fits(more: str, tmp_path: Path) -> None:
    path = tmp_path / "text.tokens"
    path.write_text("東京 は 雨 です\n" * 1000 + more, "utf-8")
    warnings: list[str] = []
    make("trans", path, tmp_path / "out", warnings=warnings)
    assert warnings[0].startswith("100.0 % of the words")
    assert warnings[0].endswith("no other script has fewer")
