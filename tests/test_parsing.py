"""The bundled parser: accuracy on real treebanks, always trees, a sentence's parse a function of its words."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.errors import DataError
from derivlang.core.seal import sealed
from derivlang.core.trees import first_fault
from derivlang.parsing.base import UPOS, Parser, Parses
from derivlang.parsing.bundled import LONGEST, ModelParser
from derivlang.parsing.inference import GRID, PackedSentences
from derivlang.parsing.model import load_model, save_model
from derivlang.parsing.registry import BUNDLED, find_parser
from derivlang.parsing.treebank import Treebank, mask_rare, read_treebank, score
from tests.helpers import ROOT, python
from tests.real import SHARED, needs_data
from tests.strategies import laws

EWT = SHARED / "ud" / "UD_English-EWT"
GUM = SHARED / "ud" / "UD_English-GUM" / "en_gum-ud-test.conllu.gz"
PACKAGE = ROOT / "derivlang" / "parsing"
ENGLISH = PACKAGE / "english"
every_bundled = pytest.mark.parametrize("name", BUNDLED["en"])


@cache
def bundled(name: str) -> ModelParser:
    parser = find_parser(name, "en")
    assert isinstance(parser, ModelParser)
    return parser


def english() -> ModelParser:
    return bundled("english")


@cache
def ewt(split: str) -> Treebank:
    return read_treebank(EWT / f"en_ewt-ud-{split}.conllu")


def parse(sentences: list[list[str]], parser: Parser | None = None) -> Parses:
    types = pa.array([word for sentence in sentences for word in sentence], pa.string()).dictionary_encode()
    codes = types.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    offsets = offsets_of(np.array([len(sentence) for sentence in sentences], np.int64))
    return (parser or english()).parse(codes, types.dictionary, offsets)


def rows(parses: Parses, offsets: Int64) -> list[tuple[object, ...]]:
    """A tuple a sentence: tags, heads, relations."""
    relations = [parses.relations[code] for code in parses.deprel]
    return [
        (tuple(parses.upos[a:b].tolist()), tuple(parses.head[a:b].tolist()), tuple(relations[a:b]))
        for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]


# accuracy: floors, on gold words, all words counted, relations in full


@needs_data
@pytest.mark.parametrize(("name", "upos", "las"), [("english", 95.0, 85.5), ("english-light", 94.5, 85.0)])
def test_accuracy_on_ewt_test(name: str, upos: float, las: float) -> None:
    found = score(bundled(name), ewt("test"))
    assert found["words"] == 25094
    assert found["UPOS"] >= upos
    assert found["LAS"] >= las
    assert found["UAS"] >= found["LAS universal"] >= found["LAS"]


@needs_data
@pytest.mark.parametrize(("name", "las"), [("english", 84.0), ("english-light", 83.0)])
def test_accuracy_with_rare_words_unknown(name: str, las: float) -> None:
    assert score(bundled(name), mask_rare(ewt("test"), ewt("train")))["LAS"] >= las


@needs_data
@every_bundled
def test_accuracy_on_a_treebank_never_trained_on(name: str) -> None:
    assert score(bundled(name), read_treebank(GUM))["LAS"] >= 82.0


@needs_data
@every_bundled
def test_scores_are_those_that_the_model_says_it_has(name: str) -> None:
    card = json.loads((PACKAGE / name / "model.json").read_text("utf-8"))
    assert card["scores"]["en_ewt-ud-dev.conllu"] == score(bundled(name), ewt("dev"))


# a parse is a function of the sentence


@needs_data
def test_a_sentence_is_parsed_the_same_alone_and_in_any_company() -> None:
    bank = ewt("dev")
    together = rows(english().parse(bank.words, bank.types, bank.sentences), bank.sentences)
    draws = np.random.default_rng(5)
    order = draws.permutation(bank.n_sentences)
    lengths = np.diff(bank.sentences)
    for size in (1, 7, 40):
        chosen = order[: 6 * size]
        for group in chosen.reshape(6, size):
            words = np.concatenate([bank.words[bank.sentences[i] : bank.sentences[i + 1]] for i in group])
            offsets = offsets_of(lengths[group])
            again = rows(english().parse(words, bank.types, offsets), offsets)
            assert again == [together[i] for i in group]


def test_scores_are_on_the_grid_and_hardly_differ_in_any_company() -> None:
    """The shapes of products change their last bits, and so a score by one step of the grid, if it is near a half."""
    network = english().network
    words = "The old man the boat that nobody has seen since the war ended in 1945 .".split()
    vectors = network.vectors(words)
    alone = PackedSentences.of(np.array([len(words)]))
    first = network.scores(vectors, np.arange(len(words)), alone)
    here = np.isfinite(first.arcs[0])
    for others in (1, 5, 63, 200):
        lengths = np.array([len(words)] + [9] * others, np.int64)
        packed = PackedSentences.of(lengths)
        code = np.zeros(int(lengths.sum()), np.int64)
        code[packed.row[0]] = np.arange(len(words))
        code[packed.row[1:][packed.inside[1:]]] = np.arange(9 * others) % len(words)
        found = network.scores(vectors, code, packed)
        assert np.array_equal(np.isfinite(found.arcs[0]), here)
        pairs = (found.tags[packed.row[0]], first.tags[alone.row[0]]), (found.arcs[0][here], first.arcs[0][here])
        for one, other in pairs:
            steps = one * GRID
            assert np.array_equal(steps, np.rint(steps))
            assert np.abs(one - other).max() <= 1 / GRID
            assert (one != other).mean() < 0.05


THREADS = """
import os, sys
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = sys.argv[1]
import hashlib, numpy as np, pyarrow as pa
from derivlang.parsing.registry import BUNDLED, find_parser
draws = np.random.default_rng(3)
types = pa.array("the a dog cats see saw that which in of <unk> ran quickly John 1998 , . and not 's".split())
lengths = draws.integers(1, 40, 80)
words = draws.integers(0, len(types), lengths.sum()).astype(np.int32)
parses = find_parser("english", "en").parse(words, types, np.concatenate([[0], np.cumsum(lengths)]))
print(hashlib.sha256(parses.head.tobytes() + parses.deprel.tobytes() + parses.upos.tobytes()).hexdigest())
"""


def test_the_number_of_threads_changes_nothing() -> None:
    assert len({python("-c", THREADS, n).stdout for n in ("1", "2", "4")} - {""}) == 1


def test_empty_sentences_have_no_words() -> None:
    assert parse([[], ["a"], [], ["b", "c", "d", "e"], []]).head.tolist().count(0) == 2
    assert not len(english().parse(np.zeros(0, np.int32), pa.array([], pa.string()), np.zeros(1, np.int64)).head)


# always trees

WORDS = st.sampled_from(
    "the dog 's sees don 't <unk> @-@ @,@ @.@ 3 000 = == . ... ! ( \" '' naïve 犬 مرحبا 😀 U.S. it's -LRB-".split()
)


@laws
@given(st.lists(st.lists(WORDS | st.text(min_size=1, max_size=8), max_size=12), max_size=6))
def test_any_words_give_trees(sentences: list[list[str]]) -> None:
    offsets = offsets_of(np.array([len(sentence) for sentence in sentences], np.int64))
    parses = parse(sentences)
    assert len(parses.upos) == len(parses.head) == len(parses.deprel) == offsets[-1]
    assert parses.upos.dtype == np.uint8
    assert parses.head.dtype == parses.deprel.dtype == np.int32
    assert first_fault(parses.head, offsets) is None
    assert parses.upos.max(initial=0) < len(UPOS)
    root = np.array([parses.relations[code] == "root" for code in parses.deprel], bool)
    assert np.array_equal(root, parses.head == 0)


def test_no_sentence_and_empty_sentences() -> None:
    assert len(parse([]).head) == 0
    assert parse([[], ["Yes"], []]).head.tolist() == [0]


@needs_data
def test_input_is_untouched_and_may_be_a_slice() -> None:
    bank = ewt("dev")
    words = bank.words[: bank.sentences[40]].copy()
    words.flags.writeable = False
    found = english().parse(words, bank.types, bank.sentences[:41])
    large = pa.concat_arrays([pa.array(["x"]), bank.types])[1:]
    assert np.array_equal(english().parse(words, large, bank.sentences[:41]).head, found.head)


# very long sentences


@pytest.mark.parametrize("words", [["word"] * 2000, "a b c , d e f ; g h".split() * 200, ["."] * 2000])
def test_a_very_long_sentence_is_a_tree(words: list[str]) -> None:
    parses = parse([["Short", "one", "."], words])
    assert first_fault(parses.head, np.array([0, 3, 3 + len(words)])) is None
    assert np.array_equal(parse([[], words]).head, parses.head[3:])


@needs_data
def test_a_long_sentence_is_cut_at_marks_and_hung_together() -> None:
    bank = ewt("dev")
    strings = bank.types.to_pylist()
    chosen = [i for i in range(bank.n_sentences) if 20 < bank.sentences[i + 1] - bank.sentences[i] < 40][:12]
    parts = [[strings[code] for code in bank.words[bank.sentences[i] : bank.sentences[i + 1]]] for i in chosen]
    parts = [[word for word in part[:-1] if word not in ".;:!?..."] + [";"] for part in parts]
    whole = [word for part in parts for word in part]
    assert len(whole) > LONGEST
    parses = parse([whole])
    assert first_fault(parses.head, np.array([0, len(whole)])) is None
    hung = [i for i in range(len(whole)) if parses.relations[parses.deprel[i]] == "parataxis"]
    assert hung
    # Cuts stand after the marks: the words of a part are parsed as if they stood alone.
    alone = parse([whole[: len(whole)]])
    assert np.array_equal(alone.head, parses.head)
    start = sum(len(part) for part in parts[:-1])
    first = next(n for n in range(len(parts), 0, -1) if sum(map(len, parts[:n])) <= LONGEST)
    n = sum(map(len, parts[:first]))
    assert np.array_equal(parse([whole[:n]]).head, parses.head[:n])
    assert start > 0


# loading

LOAD = """
import sys
from derivlang.parsing.registry import BUNDLED, find_parser
parser = find_parser(None, "en")
import numpy as np, pyarrow as pa
parses = parser.parse(np.arange(4, dtype=np.int32), pa.array(["She", "reads", "books", "."]), np.array([0, 4]))
print(parses.head.tolist(), *sorted({name.partition(".")[0] for name in sys.modules} & set(sys.argv[1:])))
"""


def test_it_needs_numpy_and_pyarrow_alone() -> None:
    heavy = ["torch", "scipy", "spacy", "stanza", "transformers", "click"]
    assert python("-c", LOAD, *heavy).stdout == "[2, 0, 2, 2]\n"


@pytest.mark.parametrize(("name", "size"), [("english", 5_000_000), ("english-light", 600_000)])
def test_the_model_is_small_and_says_where_it_comes_from(name: str, size: int) -> None:
    folder = PACKAGE / name
    assert sum(path.stat().st_size for path in folder.iterdir()) <= size
    card = json.loads((folder / "model.json").read_text("utf-8"))
    assert card["licence"] == "CC-BY-SA-4.0"
    assert set(card["trained_on"]) == {"en_ewt-ud-train.conllu", "wiki.train.tokens"}
    assert "CC BY-SA 4.0" in (folder / "README.md").read_text("utf-8")


@every_bundled
def test_it_is_a_parser_with_a_stable_fingerprint(name: str) -> None:
    parser = bundled(name)
    assert isinstance(parser, Parser)
    assert parser.name == name
    assert parser.language == "en"
    again = ModelParser.load(PACKAGE / name)
    assert again.fingerprint == parser.fingerprint
    assert len(again.fingerprint) == 16
    assert Path(again.name) == PACKAGE / name


def test_the_bundled_parsers_differ() -> None:
    assert len({bundled(name).fingerprint for name in BUNDLED["en"]}) == len(BUNDLED["en"]) == 2


# word tables that are stored once


def test_the_student_reads_its_teachers_word_tables() -> None:
    teacher, student = english().model, bundled("english-light").model
    assert student.vocabulary == teacher.vocabulary
    for name in ("words", "pieces"):
        assert np.array_equal(student.matrices[name], teacher.matrices[name])
        with np.load(PACKAGE / "english-light" / "model.npz") as file:
            assert name not in file.files
    assert student.card["teacher"]["name"] == "english"


def test_a_student_is_written_with_and_without_its_word_tables(tmp_path: Path) -> None:
    student = bundled("english-light").model
    save_model(student, tmp_path / "part", words_of="english")
    for name in ("model.npz", "model.json"):
        assert (tmp_path / "part" / name).read_bytes() == (PACKAGE / "english-light" / name).read_bytes()
    save_model(student, tmp_path / "whole")
    assert "words_of" not in json.loads((tmp_path / "whole" / "model.json").read_text("utf-8"))
    with np.load(tmp_path / "whole" / "model.npz") as file:
        assert {"words", "pieces", "vocabulary"} <= set(file.files)
    for name in ("part", "whole"):
        assert load_model(tmp_path / name).fingerprint == student.fingerprint


def test_other_word_tables_are_not_left_out(tmp_path: Path) -> None:
    model = bundled("english-light").model
    other = replace(model, vocabulary=("x", *model.vocabulary[1:]))
    with pytest.raises(ValueError, match="vocabulary differs from the vocabulary of english"):
        save_model(other, tmp_path, words_of="english")


@pytest.mark.parametrize("model", ["english", "englich", "../parsing/english", ""])
def test_another_file_of_the_teacher_is_refused(model: str, tmp_path: Path) -> None:
    """A folder copied from another version of derivlang, or changed by hand."""
    save_model(bundled("english-light").model, tmp_path, words_of="english")
    path = tmp_path / "model.json"
    card = json.loads(path.read_text("utf-8"))
    card["words_of"] = {"model": model, "sha256": "0" * 64 if model == "english" else card["words_of"]["sha256"]}
    path.write_text(json.dumps(sealed(card)), "utf-8")
    with pytest.raises(DataError, match="this version of derivlang has another file") as caught:
        load_model(tmp_path)
    assert caught.value.id == "parser-damaged"
    assert caught.value.where == str(tmp_path)
