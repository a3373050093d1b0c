"""Dictionaries of words in runs of natural languages: words of several sub-words, in several pairs of languages."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import derivlang
from derivlang.commands.pretrain import Pretrain
from derivlang.core.arrays import offsets_of
from derivlang.core.errors import DerivlangError
from derivlang.training.masking import Keys
from derivlang.training.run import _data
from derivlang.training.translations import Spelling, word_pairs
from tests.checkpoints import checkpoint
from tests.commands import run
from tests.training import weights

pytestmark = pytest.mark.filterwarnings("ignore::derivlang.core.messages.DerivlangWarning")

SENTENCES = {
    "en": ["the old dog sleeps near the house .", "a student reads the long letter .", "we see a dog and a bird ."],
    "fr": ["le vieux chien dort devant la maison .", "un étudiant lit la longue lettre .", "on voit un oiseau ."],
    "de": ["der alte hund schläft in dem haus .", "ein student liest den langen brief .", "wir sehen einen vogel ."],
}
WORDS = {
    "en-fr": "the le\nthe la\ndog chien\nold vieux\nhouse maison\nletter lettre\nbird oiseau\na un\nreads lit\n",
    "en-de": "the der\nthe dem\ndog hund\nold alte\nhouse haus\nletter brief\nbird vogel\na ein\n. .\nmoon mond\n",
}
TINY: dict[str, Any] = {
    "steps": 6, "seq_len": 32, "pair_length": 48, "batch_size": 8, "threads": 1, "learning_rate": 1e-3,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of three languages, dictionaries, and a tokenizer of all texts with few entries."""
    out = tmp_path_factory.mktemp("natural")
    for name, lines in SENTENCES.items():
        (out / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines * 30), "utf-8")
    for name, text in WORDS.items():
        (out / f"{name}.words").write_text(text, "utf-8")
    more = [part for name in ("fr", "de") for part in ("--text", out / f"{name}.txt")]
    run("tokenizer", "train", out / "en.txt", *more, "--vocab-size", 150, "-o", out / "tokenizer")
    return out


def options(folder: Path, names: str = "en fr de", known: str = "en-fr en-de", **more: Any) -> dict[str, Any]:
    languages = {name: {"text": str(folder / f"{name}.txt")} for name in names.split()}
    own = {"language": languages, "tokenizer": folder / "tokenizer", "data": folder / "data"}
    return TINY | own | {"dictionary": {pair: folder / f"{pair}.words" for pair in known.split()}} | more


def opened(folder: Path, out: Path, **more: Any) -> tuple[Any, Any]:
    """The inputs of a run that is not trained, and its loader."""
    inputs = _data(Pretrain.of({"out": out, **options(folder, **more)}).planned())
    return inputs, inputs.loader


def trained(folder: Path, out: Path, **more: Any) -> dict[str, Any]:
    return derivlang.pretrain(None, None, out, **options(folder, **more)).record


def translations() -> dict[tuple[str, int], set[tuple[str, int]]]:
    """The translations of each word of a language, by number, in both directions."""
    found = defaultdict(set)
    for number, name in enumerate(sorted(WORDS), 1):
        for left, right in (line.split() for line in WORDS[name].splitlines()):
            if left != right:
                found[left, 0].add((right, number))
                found[right, number].add((left, 0))
    return found


sequences = st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=12)


@given(sequences, sequences)
def test_words_are_found_by_their_subwords(known: list[list[int]], wanted: list[list[int]]) -> None:
    def flat(words: list[list[int]]) -> tuple[Any, Any]:
        return np.array([i for word in words for i in word], np.int64), offsets_of(np.array([*map(len, words)], int))

    spelling = Spelling.of(*flat(known))
    numbers = spelling.find(*flat(known)).tolist()
    assert [number < 0 for number in numbers] == [not word for word in known]
    by_word = {tuple(word): number for word, number in zip(known, numbers, strict=True)}
    assert len({*by_word.values()}) == len(by_word)
    words = {tuple(word) for word in known if word}
    assert len(spelling) == len(words)
    found = spelling.find(*flat(wanted)).tolist()
    assert [number >= 0 for number in found] == [tuple(word) in words for word in wanted]
    ids, offsets = spelling.take(np.arange(len(spelling)))
    spelt = [tuple(ids[a:b].tolist()) for a, b in pairwise(offsets)]
    assert {*spelt} == words
    assert all(by_word[word] == number for number, word in enumerate(spelt) if word in by_word)


Word = tuple[str, int]


def changed(entries: list[str], words: Any, before: tuple[Any, Any], after: tuple[Any, Any]) -> list[tuple[Word, Word]]:
    """The words whose language changes, and what they become. before, after: ids and languages; words: [n]."""
    found = []
    for at in np.split(np.arange(len(words)), np.flatnonzero(np.diff(words)) + 1):
        one, image = (("".join(entries[i] for i in ids[at]), int(own[at][0])) for ids, own in (before, after))
        found += [(one, image)] if one[1] != image[1] else []
    return found


@pytest.mark.parametrize("objective", ["dict-mlm:rate=100", "dict-mlm:as=align-mlm", "dict-tlm:switch=100"])
def test_every_translation_is_one_of_the_files(objective: str, folder: Path, tmp_path: Path) -> None:
    """Put together from its sub-words, and drawn uniformly over languages, then over entries."""
    inputs, loader = opened(folder, tmp_path / "run", objective=objective, mask=0.5)
    entries, stream = inputs.prepared.languages.entries, loader.streams[0]
    numbers = np.tile(np.arange(stream.source.n), -(-300 // stream.source.n))
    keys, found = Keys.of(1, 0, np.arange(len(numbers))), []
    rows = stream.source.rows(numbers, keys)
    masked = loader.objective.mask(stream.stream.name, rows, keys, loader.context)
    ids, language = rows.clean_ids.copy(), rows.language.copy()
    if "as=" in objective:
        ids, language = masked.input_ids, masked.language
    else:
        ids.ravel()[masked.targets], language.ravel()[masked.targets] = masked.labels, masked.label_language
    for row in range(len(numbers)):
        inside = rows.word_ids[row] >= 0
        before = after = inside
        if rows.translated is not None:  # a sentence and its copy
            before, after = inside & (rows.side[row] == 0), inside & (rows.side[row] == 1)
        sides = ((one[row][at], own[row][at]) for one, own, at in (
            (rows.clean_ids, rows.language, before), (ids, language, after)
        ))  # fmt: skip
        found += changed(entries, rows.word_ids[row][after], *sides)
    known = translations()
    assert len(found) > 200
    assert all(image in known[word] for word, image in found)
    assert {image for word, image in found if word == ("dog", 0)} <= {("hund", 1), ("chien", 2)}
    images = [image for word, image in found if word == ("the", 0)]
    german = sum(own == 1 for _, own in images)
    assert len(images) > 30
    assert abs(german - len(images) / 2) < 2 * np.sqrt(len(images))  # four standard deviations
    assert {word for word, _ in images} == {"le", "la", "der", "dem"}


def test_only_skipped_lines_of_a_dictionary_are_told(tmp_path: Path) -> None:
    path, told = tmp_path / "en-fr.txt", list[str]()
    for text, said in (("dog chien\n", 0), ("dog chien\ncat\n", 1)):
        path.write_text(text, "utf-8")
        assert word_pairs(path, told.append)[0] == (("dog", "chien"),)
        assert len(told) == said


def test_translations_have_as_many_subwords(folder: Path, tmp_path: Path) -> None:
    """Others are only aligned; a word that no text has is in the dictionary, too."""
    inputs, loader = opened(folder, tmp_path / "run", objective="dict-mlm")
    dictionary = loader.context.dictionary
    sizes = dictionary.spelling.lengths[dictionary.pairs]
    assert len(sizes) == sum(len(text.splitlines()) for text in WORDS.values()) - 1  # "." is no translation of itself
    assert sizes.max() > 1
    assert (np.diff(sizes) != 0).any()
    numbers = np.arange(dictionary.size).repeat(3)
    language = np.tile(np.arange(3), dictionary.size)
    some = dictionary.has(numbers, language)
    images, _ = dictionary.translate(
        numbers[some], language[some], np.arange(some.sum(), dtype=np.uint64) << np.uint64(33)
    )
    assert (dictionary.spelling.lengths[images] == dictionary.spelling.lengths[numbers[some]]).all()
    assert inputs.prepared.given == "en-fr=en-fr.words, en-de=en-de.words"


def test_alignment_of_words_by_hand(folder: Path, tmp_path: Path) -> None:
    """The embedding of a word is the mean of its sub-words' embeddings."""
    inputs, loader = opened(folder, tmp_path / "run", objective="align-mlm:only=align")
    languages, cosines = inputs.prepared.languages, []
    table = np.random.default_rng(1).normal(size=(languages.size, 5)).astype(np.float32)
    for text in WORDS.values():
        for pair in (line.split() for line in text.splitlines()):
            encoded = languages.tokenizer.encoder.types(pa.array(pair))
            ids = [encoded.ids[a:b].tolist() for a, b in pairwise(encoded.offsets)]
            if ids[0] != ids[1]:
                one, two = (table[some].mean(axis=0) for some in ids)
                cosines.append(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
    model: Any = SimpleNamespace(embeddings=torch.nn.Parameter(torch.from_numpy(table)))
    micro: Any = SimpleNamespace(share=1.0)
    loss = loader.objective.loss(model, micro, loader.objective.state(model, loader.context))["align"].total
    assert loss.item() == pytest.approx(-np.mean(cosines), abs=1e-5)
    loss.backward()
    assert model.embeddings.grad.abs().sum() > 0


@pytest.mark.parametrize("objective", ["align-mlm", "dict-mlm", "dict-mlm:condition=yes", "dict-tlm"])
@pytest.mark.parametrize("others", ["fr de", "fr", "la fr"])
def test_runs_with_dictionaries_of_words(objective: str, others: str, folder: Path, tmp_path: Path) -> None:
    """Of three languages, of two, and of a language in another script, which has the dictionary of its twin."""
    pairs = " ".join(f"en-{name}" for name in others.split() if name != "la")
    asked = options(folder, f"en {others}", pairs, objective=objective, dict_seed=2)
    if "la" in others:
        asked["language"]["la"] = {"t": "trans"}
    record = derivlang.pretrain(None, None, tmp_path / "run", **asked).record
    assert np.isfinite(record["result"]["loss"])
    assert record["dictionary"]["file"] == ", ".join(f"{pair}={pair}.words" for pair in pairs.split())
    if objective != "align-mlm":
        assert record["doses"]["translated_share"] > 0
    run("verify", tmp_path / "run")
    assert weights(derivlang.pretrain(None, None, tmp_path / "run", **asked).path / "model")  # the same run


def test_a_tokenizer_for_each_language(folder: Path, tmp_path: Path) -> None:
    """No word has ids of another language, so equal words are translations, too. English has no `m` of moon."""
    run("tokenizer", "train", folder / "de.txt", "--vocab-size", 75, "-o", tmp_path / "tokenizer")
    asked = options(folder, "en de", "en-de", objective="dict-mlm", data=tmp_path / "data", vocab_size=75)
    del asked["tokenizer"]
    asked["language"]["de"]["tokenizer"] = str(tmp_path / "tokenizer")
    record = derivlang.pretrain(None, None, tmp_path / "run", **asked).record
    assert record["dictionary"]["pairs"] == len(WORDS["en-de"].splitlines()) - 1
    assert record["doses"]["translated_share"] > 0


def test_copies_of_sentences_of_files_have_words_of_any_length(folder: Path, tmp_path: Path) -> None:
    """Read beside the texts; their words are translated into every language with a dictionary."""
    files = {}
    for name in ("fr", "de"):
        for end, language in (("source", "en"), ("derived", name)):
            (tmp_path / f"{name}.{end}").write_text("".join(f"{line}\n" for line in SENTENCES[language]), "utf-8")
        files[f"en-{name}"] = tmp_path / name
    inputs, loader = opened(folder, tmp_path / "run", objective="dict-tlm:switch=100", pairs=files)
    source, entries = loader.streams[0].source.source, inputs.prepared.languages.entries
    assert len(source.sizes) == 12
    assert np.unique(source.languages, axis=0).tolist() == [[0, 0], [1, 1], [2, 2]]
    before, after = (source.side(np.arange(12), side) for side in (0, 1))
    own, copy = (np.split(one.words, np.cumsum(source.sizes[:, side])[:-1]) for side, one in enumerate((before, after)))
    assert [len({*words.tolist()}) for words in own] == [len({*words.tolist()}) for words in copy]
    assert (source.sizes[:, 0] != source.sizes[:, 1]).any()
    assert {*after.language[: int(source.sizes[:3, 1].sum())].tolist()} == {0, 1, 2}
    assert "schläft" in "".join(entries[i] for i in before.ids)
    record = trained(folder, tmp_path / "run", objective="dict-tlm", pairs=files)
    assert record["streams"]["switched"]["pairs"] == 12
    assert np.isfinite(trained(folder, tmp_path / "tlm", known="", objective="tlm", pairs=files)["result"]["loss"])


@pytest.mark.parametrize(
    ("typed", "text", "message"),
    [
        ("en-de={file}", "the der\n", "there is no language 'de'"),
        ("{file}", "the le\n", "is not NAME-NAME=FILE"),
        ("en-en={file}", "the le\n", "en-en has one language"),
        ("en-fr={file}x", "the le\n", "there is no such file"),
        ("en-fr={file}", "", "holds no pair"),
        ("en-fr={file}", "the\u0645 \u0645\u0646\n", "the vocabulary knows none of its 1 pairs of words"),
        ("en-fr={file}", "moon lune\n", "no word of the texts of en and fr has an entry"),
        (
            "en-fr={file}",
            "the der\ndog hund\nbird bird\nstudent student\n",
            "of 2 entries with a word in the texts of en and fr, 0 (0.0%) have both; their words of fr may",
        ),
        ("en-fr={file}", "le the\nchien dog\nmaison house\n", "if the sides of the dictionary are exchanged"),
        ("fr-en={file}", "the le\ndog chien\n", "if the sides of the dictionary are exchanged"),
        ("en-fr={file}", "dog dog\n", "every pair is of a word and itself"),
        ("en-fr={file}", "the</w> le</w>\n", "has entries of a tokenizer, not words"),
    ],
)
def test_dictionaries_that_are_refused(typed: str, text: str, message: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(text, "utf-8")
    asked = options(folder, "en fr", "", objective="align-mlm") | {
        "dictionary": [typed.format(file=tmp_path / "words.txt")]
    }
    with pytest.raises(DerivlangError) as error:
        derivlang.pretrain(None, None, tmp_path / "run", **asked)
    assert message in f"{error.value} {error.value.fix}"
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_dictionary_without_words_of_equal_length(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the étudiant\n", "utf-8")
    asked = options(folder, "en fr", "", objective="dict-mlm") | {"dictionary": [f"en-fr={tmp_path / 'words.txt'}"]}
    with pytest.raises(DerivlangError, match="no word has as many sub-words as its translation"):
        derivlang.pretrain(None, None, tmp_path / "run", **asked)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_words_are_found_with_the_tokenizer_of_a_checkpoint(kind: str, folder: Path, tmp_path: Path) -> None:
    """As they are spelled within a sentence, also where a space belongs to a word."""
    more = {"tokenizer": checkpoint(kind), "data": tmp_path / "data"}
    inputs, loader = opened(folder, tmp_path / "run", objective="dict-mlm", **more)
    dictionary, source = loader.context.dictionary, loader.streams[0].source
    rows = source.rows(np.arange(source.n), Keys.of(1, 0, np.arange(source.n)))
    numbers, _ = dictionary.spelling.of_rows(rows)
    known = {number for side in (0, 1) for number in dictionary.pairs[:, side].tolist()}
    entries = inputs.prepared.languages.entries
    found = set()
    for row in range(source.n):
        for word in np.unique(rows.word_ids[row][np.isin(numbers[row], [*known])]):
            found.add("".join(entries[i] for i in rows.clean_ids[row][rows.word_ids[row] == word]))
    assert found >= {"dog", "house", "old"}


def test_without_a_dictionary(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DerivlangError, match="needs a dictionary") as error:
        trained(folder, tmp_path / "run", known="", objective="align-mlm")
    assert "give dictionaries of words" in f"{error.value.fix}"
