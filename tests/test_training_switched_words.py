"""Code-switched copies by a dictionary of words, for the tokenizer of a checkpoint, and runs on them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derivlang.align.bitext import WordLists
from derivlang.core.errors import DataError
from derivlang.lexical.foreign import ForeignTokenizer
from derivlang.pipeline import Pipeline
from derivlang.training.languages import DERIVED, SOURCE, of_texts
from derivlang.training.masking import Keys
from derivlang.training.streams.bitext import FilePairs, read_pairs
from derivlang.training.streams.switched import CodeSwitched, SwitchedWordRows, code_switched
from derivlang.training.translations import Translations, read_words
from tests.checkpoints import checkpoint
from tests.commands import run
from tests.training import log

SENTENCES = [
    ("The old dog sleeps .", "der alte Hund schläft ."),
    ("a student reads .", "ein Student liest ."),
]
DICTIONARY = "the der\nthe die\ndog Hund\nstudent Student\nreads liest\nold alte\n. .\n"


@pytest.fixture
def bitext(tmp_path: Path) -> Path:
    (tmp_path / "words.txt").write_text(DICTIONARY, "utf-8")
    return write(tmp_path / "bitext")


def write(prefix: Path, times: int = 1) -> Path:
    for part, lines in zip(("source", "derived"), zip(*SENTENCES * times, strict=True), strict=True):
        prefix.with_name(f"{prefix.name}.{part}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return prefix


def texts(side: WordLists) -> list[str]:
    words = [side.types[code].as_py() for code in side.codes.tolist()]
    return [" ".join(words[a:b]) for a, b in zip(side.offsets[:-1], side.offsets[1:], strict=True)]


def dictionary(bitext: Path) -> Translations:
    return read_words(bitext.with_name("words.txt"))


def translations(known: Translations, word: str, language: int) -> set[tuple[str, int]]:
    """The translations of a word and their languages, found by 100 draws."""
    (number,) = known.find([word], language).tolist()
    if number < 0:
        return set()
    drawn = known.translate(np.full(100, number), np.full(100, language), np.arange(100, dtype=np.uint64) * 2)
    return {(known.words[i], spoken) for i, spoken in zip(*(some.tolist() for some in drawn), strict=True)}


def test_words_are_looked_up_in_both_directions(bitext: Path) -> None:
    found = dictionary(bitext)
    assert translations(found, "the", SOURCE) == translations(found, "The", SOURCE) == {("der", 1), ("die", 1)}
    assert translations(found, "Student", DERIVED) == {("student", 0)}
    assert not translations(found, "the", DERIVED)
    assert not translations(found, ".", SOURCE)  # a word is no translation of itself
    (bitext.parent / "words.txt.gz").write_bytes(gzip.compress(DICTIONARY.encode()))
    assert read_words(bitext.parent / "words.txt.gz").sha256 == found.sha256


def test_every_word_with_an_entry_is_replaced(bitext: Path) -> None:
    found = code_switched(read_pairs(bitext), dictionary(bitext), 1.0, seed=1)
    assert texts(found.source) == [a for a, _ in SENTENCES] + [b for _, b in SENTENCES]
    copies = texts(found.derived)
    assert copies[0] in {f"{the} alte Hund sleeps ." for the in ("der", "die")}
    assert copies[1:] == ["a Student liest .", "the old dog schläft .", "ein student reads ."]
    assert found.spoken is not None
    assert found.spoken[0].tolist() == [SOURCE] * 9 + [DERIVED] * 9
    assert found.spoken[1].tolist() == [1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1]


def test_a_dictionary_in_the_other_direction_is_refused(bitext: Path) -> None:
    pairs = (line.split() for line in [*DICTIONARY.splitlines(), "Name Name2", "reads reads2"])
    bitext.with_name("words.txt").write_text("".join(f"{right} {left}\n" for left, right in pairs), "utf-8")
    with pytest.raises(DataError, match="exchanged") as caught:
        code_switched(read_pairs(bitext), dictionary(bitext), 1.0, seed=1)
    assert caught.value.id == "exchanged"


@pytest.mark.parametrize("switch", [0.0, 0.15, 0.7])
def test_the_share_of_replaced_words(switch: float, bitext: Path) -> None:
    file, known = read_pairs(write(bitext, 200)), dictionary(bitext)
    found, again, other = (code_switched(file, known, switch, seed=seed) for seed in (1, 1, 2))
    (own, copies), (_, theirs) = found.spoken or ((), ()), other.spoken or ((), ())
    able = 200 * 10
    assert abs((own != copies).sum() / able - switch) <= 4.5 * np.sqrt(switch * (1 - switch) / able)
    assert texts(found.derived) == texts(again.derived)
    assert (texts(found.derived) == texts(other.derived)) == (switch == 0)
    assert (np.array_equal(copies, theirs)) == (switch == 0)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_rows_hold_a_sentence_and_its_copy(kind: str, bitext: Path) -> None:
    """Sub-words of both halves are those of their texts; replaced words have the other language."""
    tokenizer, pipeline = ForeignTokenizer.load(checkpoint(kind)), Pipeline.parse("identity")
    file = code_switched(read_pairs(bitext), dictionary(bitext), 1.0, seed=1)
    source = FilePairs(file, of_texts(pipeline, tokenizer, pipeline.fit()), 62)
    rows = SwitchedWordRows(CodeSwitched(reset=False, together=False), source, 128)
    numbers = np.array([3, 0])
    found = rows.rows(numbers, Keys.of(1, 0, numbers))
    assert found.translated is not None
    for row, number in enumerate(numbers.tolist()):
        for side, text in enumerate((texts(file.source)[number], texts(file.derived)[number])):
            columns = (found.side[row] == side) & (found.word_ids[row] >= 0)
            ids = tokenizer.whole(text, add_special_tokens=False)["input_ids"]
            assert found.clean_ids[row, columns].tolist() == ids
            own = int(number > 1)
            assert set(found.language[row, found.word_ids[row] < 0].tolist()) == {own}
            words = text.split()
            turned = [words[w] for w in np.unique(_words(found, row, columns & found.translated[row]))]
            assert turned == ([] if side == 0 else ["student", "reads"] if number else [words[0], "alte", "Hund"])
            assert (found.language[row, columns] == own ^ found.translated[row, columns]).all()


def _words(found: Any, row: int, columns: Any) -> Any:
    """The number of each sub-word's word in its half."""
    side = found.side[row, columns]
    every = [np.unique(found.word_ids[row, (found.side[row] == s) & (found.word_ids[row] >= 0)]) for s in (0, 1)]
    places = zip(found.word_ids[row, columns], side, strict=True)
    return np.array([np.searchsorted(every[s], word) for word, s in places], int)


def pretrain(bitext: Path, out: Path, *more: object, kind: str = "bert", code: int = 0) -> str:
    sizes = ("--steps", 4, "--batch-size", 4, "--seq-len", 32, "--pair-length", 64, "--save-every", 2)
    own = ("--source", "demo", "--t", "identity", "--init", checkpoint(kind), "--objective", "dict-tlm:switch=100")
    found = run("pretrain", *own, *sizes, "-o", out, *more, code=code)
    return found.out + found.err


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_a_run_from_a_checkpoint(kind: str, bitext: Path, tmp_path: Path) -> None:
    own = ("--pairs", write(bitext, 20), "--dictionary", tmp_path / "words.txt")
    pretrain(bitext, tmp_path / "run", *own, kind=kind)
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["streams"]["switched"]["pairs"] == 80
    assert facts["dictionary"]["pairs"] == 6
    assert log(tmp_path / "run")[-1]["translated_percent"] > 0
    pretrain(bitext, tmp_path / "run", *own, "--resume", kind=kind)
    (tmp_path / "words.txt").write_text(f"{DICTIONARY}a ein\n")
    told = pretrain(bitext, tmp_path / "run", *own, "--resume", kind=kind, code=1)
    assert "is another run: its dictionary is not the given one" in told


def test_what_is_missing(bitext: Path, tmp_path: Path) -> None:
    out, words = tmp_path / "run", tmp_path / "words.txt"
    told = pretrain(bitext, out, "--pairs", bitext, code=2)
    assert "has no twin, so the objective needs a dictionary of words" in told
    told = pretrain(bitext, out, "--dictionary", words, code=2)
    assert "a dictionary of words replaces words of the sentences of a file, but there is none" in told
    words.write_text("Hund dog\n")  # the other direction
    with pytest.raises(DataError, match="no word of the sentence pairs has an entry") as error:
        code_switched(read_pairs(bitext), dictionary(bitext), 0.0, seed=1)
    assert error.value.id == "no-entry"
    words.write_text("\n")
    assert "holds no pair" in pretrain(bitext, out, "--dictionary", words, "--pairs", bitext, code=1)
    assert not (out / "run.json").exists()
