"""Files that hold words, links and weights: what once ended in a foreign exception ends in one error with its place."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from derivlang.align.links import parse_lines, score
from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, DerivlangError, StoreError, parse_errors
from derivlang.formats import opening as whole
from derivlang.formats.dictionary import read_dictionary
from derivlang.formats.opening import open_lines
from derivlang.formats.places import is_path
from derivlang.grammar.grammar import load_grammar, shipped
from derivlang.lexical.settings import TokenizerOptions
from derivlang.lexical.tokenizer import RECIPE, TOKENIZER, Tokenizer
from derivlang.lexical.train import WORDS, read_words, train
from derivlang.lexical.twin import Twin, make_twin
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.training.config import ModelConfig
from tests.commands import written

DEEP = "[" * 100_000
DIGITS = "1" * 5_000


# dictionaries


@pytest.mark.parametrize("content", [DEEP, '{"a": ' + DEEP, f'{{"a": {DIGITS}}}', f"[[1, {DIGITS}]]"])
def test_a_json_dictionary_that_python_cannot_read(content: str, tmp_path: Path) -> None:
    path = written(tmp_path / "d.json", content)
    with pytest.raises(DataError) as error:
        read_dictionary(path)
    assert str(path) in str(error.value)


def test_half_a_surrogate_pair_is_no_word(tmp_path: Path) -> None:
    path = written(tmp_path / "d.json", '{"a": "\\ud800", "b": "c"}')
    found = read_dictionary(path)
    assert found.pairs == (("b", "c"),)
    assert [(fault.line, fault.kind) for fault in found.faults] == [(1, "encoding")]
    with pytest.raises(DataError, match="entry 1"):
        Pipeline.parse(f"lex:{path}").fit()


@pytest.mark.parametrize("name", ["d.txt.gz", "d.json.gz", "fr@V.orm.gz", "fr.grammar.tsv"])
def test_a_small_file_that_expands_without_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 MiB in 16 KiB, against a limit of 1 MiB."""
    monkeypatch.setattr(whole, "LIMIT", 1 << 20)
    path = written(tmp_path / name, gzip.compress(b"\n" * (16 << 20)))
    with pytest.raises(DataError, match="expands to more than 1 MiB") as error:
        read_dictionary(path) if name.startswith("d.") else load_grammar(path)
    assert error.value.id == "too-large"


def test_a_plain_file_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "LIMIT", 8)
    assert len(read_dictionary(written(tmp_path / "d.txt", "a b\nc d\ne f\n")).pairs) == 3
    packed = gzip.compress(b"a b\nc d\n")
    assert len(read_dictionary(written(tmp_path / "d.txt.gz", packed)).pairs) == 2


def test_a_device_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "LIMIT", 1 << 20)
    for read in (read_dictionary, load_grammar, lambda path: Pipeline.parse(f"lex:{path}").fit()):
        with pytest.raises(DataError, match="holds more than 1 MiB") as error:
            read("/dev/zero")
        assert error.value.id == "too-large"
    with pytest.raises(DataError, match="NUL"):
        next(open_lines("/dev/zero"))


@pytest.mark.parametrize("packing", [bytes, gzip.compress])
def test_a_pipe_is_read_once(packing: Callable[[bytes], bytes], tmp_path: Path) -> None:
    dictionary, grammar = tmp_path / "d.txt", tmp_path / "fr.grammar.tsv"
    texts = {dictionary: b"the le\ncat chat\n", grammar: shipped()["fr"].read_bytes()}
    for path, text in texts.items():
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(packing(text),), daemon=True).start()
    pipeline = Pipeline.parse(f"lex:{dictionary}")
    assert [pipeline.fit().apply(string_array(["cat"])).to_pylist() for _ in range(2)] == [["chat"]] * 2
    assert load_grammar(grammar).fingerprint == load_grammar("fr").fingerprint


def test_what_a_text_means_that_may_be_a_name_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    texts = ("folder", "file", "pipe", "/dev/null", "neither", "./file", "", "x" * 5000, "a\0b")
    assert [text for text in texts if is_path(text, "file")] == ["file", "pipe", "/dev/null", "./file"]
    assert [text for text in texts if is_path(text, "folder")] == ["folder", ""]


# lexicons


@pytest.mark.parametrize("count", ["1" * 20, DIGITS, "", "x", "1.5"])
def test_a_count_that_is_no_number_of_64_bits(count: str) -> None:
    pipeline = Pipeline.parse("trans:overlap=50")
    saved = pipeline.save(pipeline.fit(pa.array(["a", "b"]), np.array([3, 2])))
    assert saved is not None
    with pytest.raises(DataError, match="not a valid lexicon") as error:
        pipeline.fit(saved=saved.replace("\t3\t", f"\t{count}\t"), where="lexicon.tsv")
    assert error.value.where == "lexicon.tsv"


# links


@pytest.mark.parametrize("link", ["0-100000", "999999999-0", f"{DIGITS}-0", "-1-0", "0--1", "0-1p2", "٣-0"])
def test_a_link_that_cannot_be(link: str) -> None:
    with pytest.raises(DataError, match=r"gold:2") as error:
        parse_lines(["0-0", f"0-0 {link}"], "gold")
    assert error.value.id == "link"


def test_links_of_long_sentences_are_told_apart() -> None:
    """Their numbers were products beyond 2^63, where unlike links could be one."""
    lines = [""] * 50 + ["99999-99999 99999-99998"]
    same = score(parse_lines(lines), parse_lines(lines))
    assert (same.precision, same.recall) == (1, 1)
    assert score(parse_lines(lines), parse_lines([*lines[:50], "99998-99999"])).precision == 0


# grammars


@pytest.mark.parametrize("weight", ["1e300", "-1e7", "inf", "nan", DIGITS])
def test_a_weight_that_no_probability_can_have(weight: str, tmp_path: Path) -> None:
    text = f"# derivlang grammar 1\n# language: x\n# labels: v2\nclass\tV\nBTW\tNOUN&nsubj\tNOUN&obj={weight}\n"
    with pytest.raises(DataError, match=r":5: .*NOUN&obj=.* must be from -1,000,000 to 1,000,000"):
        load_grammar(written(tmp_path / "x.grammar.tsv", text))
    with pytest.raises(DataError, match=r"orm:1: .* must be from -1,000,000 to 1,000,000"):
        load_grammar(written(tmp_path / "x@V.orm", f"BTW_a_b {weight}\n"))


def test_a_grammar_is_read_from_a_compressed_file(tmp_path: Path) -> None:
    text = "# derivlang grammar 1\n# language: x\n# labels: v2\nclass\tV\nBTW\tNOUN&nsubj\tNOUN&obj=1.5\n"
    assert load_grammar(written(tmp_path / "x.grammar.tsv", gzip.compress(text.encode()))).language == "x"
    with pytest.raises(DataError, match=r"x\.grammar\.tsv:3: the file is not UTF-8"):
        load_grammar(written(tmp_path / "x.grammar.tsv", gzip.compress(text.encode()[:40] + b"\xff")))
    with pytest.raises(DataError, match="truncated or damaged"):
        load_grammar(written(tmp_path / "x.grammar.tsv", gzip.compress(text.encode())[:-9]))


# tokenizers and twins


@pytest.fixture(scope="module")
def _folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizers")
    text = written(folder / "a.tokens", "the cat sees the dog .\nthe dog sees the cat .\n" * 4)
    train(SourceRequest(str(text)), folder / "tok", TokenizerOptions(vocab_size=34))
    make_twin(folder / "tok", "trans:overlap=50", folder / "twin")
    return folder


@pytest.fixture
def folders(_folders: Path, tmp_path: Path) -> Path:
    import shutil

    for name in ("tok", "twin"):
        shutil.copytree(_folders / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("file", [TOKENIZER, RECIPE])
@pytest.mark.parametrize("content", ["", DEEP, DIGITS, "[]", "null", '{"model": 1}', b"\xff\xfe", '{"format": 1}'])
def test_a_damaged_tokenizer(file: str, content: str | bytes, folders: Path) -> None:
    written(folders / "tok" / file, content)
    with pytest.raises(StoreError) as error:
        Tokenizer.load(folders / "tok")
    assert str(folders / "tok" / file) in str(error.value)


@pytest.mark.parametrize("name", ["format", "kind", "fingerprint", "scripts", "spec", "lexicon"])
@pytest.mark.parametrize("value", [None, "absent", 7, DIGITS, [[]], {"none": "none"}])
def test_a_twin_whose_recipe_lacks_a_field_or_has_another(name: str, value: object, folders: Path) -> None:
    path = folders / "twin" / RECIPE
    recipe = json.loads(path.read_text("utf-8"))
    if recipe[name] == value:
        return
    if value == "absent":
        del recipe[name]
    else:
        recipe[name] = value
    written(path, json.dumps(recipe))
    with pytest.raises(DerivlangError) as error:
        Twin.load(folders / "twin")
    assert str(folders / "twin") in str(error.value)
    assert error.value.exit_code == 1


def test_a_twin_whose_lexicon_was_changed(folders: Path) -> None:
    path = folders / "twin" / "lexicon.tsv"
    text = path.read_text("utf-8")
    written(path, text.replace("\tchanged", "\tkept", 1))
    with pytest.raises(StoreError, match="not the lexicon of the twin's recipe"):
        Twin.load(folders / "twin")


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"type": ["a", None], "count": [1, 2]}),
        pa.table({"type": ["a", "b"], "count": [1, -2]}),
        pa.table({"word": ["a"], "count": [1]}),
        pa.table({"type": pa.array([b"\xff"], pa.binary()), "count": [1]}),
    ],
)
def test_damaged_words_of_a_tokenizer(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / WORDS)
    with pytest.raises(StoreError) as error:
        read_words(tmp_path)
    assert str(tmp_path / WORDS) in str(error.value)


def test_a_panic_of_a_rust_library_is_an_error(folders: Path) -> None:
    """`tokenizers` panics on merges that the prefix of inner sub-words does not fit; a panic is no Exception."""
    path = folders / "tok" / TOKENIZER
    data = json.loads(path.read_text("utf-8"))
    data["model"]["continuing_subword_prefix"] = "longer than any entry"
    written(path, json.dumps(data))
    from tokenizers import Tokenizer as Library

    with pytest.raises(DataError, match="not a valid tokenizer"), parse_errors(str(path), "tokenizer"):
        Library.from_file(str(path))


# TOML


@pytest.mark.parametrize("content", [f"a = {DEEP}", f"[model]\nhidden_size = {DIGITS}\n", b"\xff"])
def test_a_damaged_description_of_a_model(content: str | bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "m.toml", content)
    with pytest.raises(DerivlangError, match=r"m\.toml: this is not a valid TOML file"):
        ModelConfig.read(str(path))
