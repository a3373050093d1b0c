"""Languages that are tokenized as text: other words, inserted and deleted words, one tokenizer or two."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from derivlang.core.arrays import lengths_of
from derivlang.core.errors import StoreError, UsageError
from derivlang.core.layers.words import Words
from derivlang.evaluation.export import export_model
from derivlang.evaluation.tasks.labelling import PartsOfSpeech
from derivlang.evaluation.trained import PretrainedRun
from derivlang.lexical.own import OwnTokenizer
from derivlang.sources.find import find
from derivlang.sources.request import SourceRequest
from derivlang.store.made_of import RECIPE
from derivlang.studies.file import read
from derivlang.studies.plan import plan
from derivlang.studies.settings import Place
from derivlang.training.data import Data
from derivlang.training.languages import DERIVED, DERIVED_TOKENIZER, SOURCE, Languages
from derivlang.training.languages.readers import _blocks
from derivlang.transforms.registry import TRANSFORMS
from tests.checkpoints import checkpoint
from tests.commands import written
from tests.evaluations import evaluate, options, regimes, rows
from tests.strategies import Drop, Mark, some_order
from tests.training import batches, log, trained, weights

DICTIONARY = "the\tle\ncat\tchat\ncat\tminet\nof\tde\nin\tdans la\nis\test\n"
_HOME = Path(tempfile.mkdtemp(prefix="derivlang-texts-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
SPECS = ("lex:d.txt", "lex:d.txt,inv", "mark", "trans,mark:2,inv", "skip,trans", "trans,inv")


@pytest.fixture(autouse=True)
def other_transforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Transforms that insert and delete words are registered, and a dictionary is here."""
    (tmp_path / "d.txt").write_text(DICTIONARY, "utf-8")
    monkeypatch.chdir(tmp_path)
    for transform in (Mark, Drop):
        TRANSFORMS.add(transform.name, transform)
    yield
    for transform in (Mark, Drop):
        del TRANSFORMS.added[transform.name]


@cache
def made(spec: str, texts: str | None) -> Path:
    """A folder with the run of a language and its data, made once."""
    folder = _HOME / str(len(list(_HOME.iterdir())))
    written(folder / "d.txt", DICTIONARY)
    with chdir(folder):
        trained(Path("run"), "mlm", spec, data=Path("data"), tokenizer_for=texts)
    return folder


def run_of(spec: str, texts: str | None = "each", objective: str = "mlm", **changes: Any) -> PretrainedRun:
    """The run `run` in this folder, with its data. Without changes, the data are copied, and a run of MLM, too."""
    if not changes:
        shutil.copytree(made(spec, texts), ".", dirs_exist_ok=True)
        if objective == "mlm":
            return PretrainedRun.load(Path("run"))
        shutil.rmtree("run")
    trained(Path("run"), objective, spec, **{"data": Path("data"), "tokenizer_for": texts, **changes})
    return PretrainedRun.load(Path("run"))


def text(languages: Languages, ids: Any) -> str:
    """The text of sub-words of one language, without spaces."""
    entries = languages.entries
    every = {number: entry for number, entry in enumerate(entries)}
    return "".join(every[i] for i in ids.tolist())


@pytest.mark.parametrize("texts", ["each", "both"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_ids_of_a_language_are_its_text(spec: str, texts: str) -> None:
    """Every derived sub-word is of the derived text, in its order; slots of a word are its image's."""
    languages = run_of(spec, texts).languages
    assert not languages.are_mapped
    assert not languages.are_mapped
    for batch in batches(spec):
        derivation = languages.pipeline.derive(batch, languages.readers[1].lexicon, split=False)
        order, both = derivation.order, languages.parallel(batch)
        for side, words in ((both.source, batch.strings()), (both.derived, derivation.derived.strings())):
            assert text(languages, side.ids) == "".join(words.to_pylist()).replace(" ", "")
        read = languages.readers[DERIVED].tokenizer.encode(
            derivation.derived.types, derivation.derived.words, order.sentences
        )
        assert np.array_equal(read.ids, both.derived.ids)
        owner = order.index.astype(np.int64)
        if order.anchors is not None:
            owner[owner < 0] = order.anchors
        assert np.array_equal(both.words(both.derived), np.repeat(owner, lengths_of(read.offsets)))
        # no two sub-words of one language share a slot, and an inserted word begins where no other does
        for side in both.sides:
            assert len(np.unique(side.slots)) == len(side.slots)
        begins = both.begins()
        assert begins.sum() == batch.n_words + int((lengths_of(read.offsets)[order.index < 0] > 0).sum())
        assert not np.isin(both.inserted, both.source.slots).any()


def test_a_sentence_a_row() -> None:
    languages = run_of("mark", packing="single", data=Path("single")).languages
    (folder,) = Path("single").glob("encoded-*")
    data = Data.open(folder, languages)
    n_pieces = len(data.pieces) - 1
    for language in (SOURCE, DERIVED):
        assert data.n_instances(language) == n_pieces
        rows = data.rows(np.arange(n_pieces), np.full(n_pieces, language))
        assert rows.sentence_ids.max() == 0


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("spec", ["mark", "trans,mark:2,inv", "skip,trans"])
def test_inserted_and_deleted_words_are_not_labelled(spec: str, last: bool) -> None:
    """A word of the source stands at the first or the last sub-word of its image, whatever is inserted around it."""
    languages = run_of(spec, "both").languages
    task = replace(PartsOfSpeech("pos:demo").with_settings(max_length=999), last=last)
    classes = task.classes(find(SourceRequest("demo")))
    for batch in batches(spec):
        derivation = languages.pipeline.derive(batch, languages.readers[1].lexicon, split=False)
        order, derived = derivation.order, derivation.derived
        assert not order.is_permutation
        read = languages.readers[DERIVED].tokenizer.encode(derived.types, derived.words, order.sentences)
        kept = np.flatnonzero(order.index >= 0)
        starts = order.sentences[np.searchsorted(batch.sentences, batch.unit_words)]  # a row may have two sentences
        begin = read.offsets[starts[np.searchsorted(starts, kept, "right") - 1]]
        at = read.offsets[kept + 1] - begin if last else read.offsets[kept] + 1 - begin  # after `<s>`
        tags = batch.layers["upos"]
        assert isinstance(tags, Words)
        names = [tags.values[int(tags.codes[word])].as_py() for word in order.index[kept]]
        made = task.examples(task.rows(batch, languages), classes).derived
        assert made.at.tolist() == at.tolist()
        assert [classes[label] for label in made.gold[:, 0].tolist()] == names


@pytest.mark.parametrize("spec", SPECS)
def test_the_tokenizers_of_each_language_share_only_special_tokens(spec: str) -> None:
    run = run_of(spec)
    languages = run.languages
    own = OwnTokenizer.load(Path("run") / DERIVED_TOKENIZER)
    assert (
        languages.size
        == 2 * 300 - own.n_special
        == weights(Path("run/model"))["model.embeddings.tok_embeddings.weight"].shape[0]
    )
    assert not np.intersect1d(*languages.own).size
    assert own.kind == "derived"
    assert own.tokenizer.recipe["derived"]["spec"] == languages.pipeline.stored
    sides = np.unique(
        languages.tokenizer.encode(batches(spec)[0].types, batches(spec)[0].words, batches(spec)[0].sentences).ids
    )
    assert sides.max() < languages.own[DERIVED].min()


def test_one_tokenizer_is_trained_on_the_words_of_both_texts() -> None:
    from derivlang.lexical.train import read_words

    languages = run_of("lex:d.txt", "both").languages
    wanted: dict[str, int] = {}
    for batch in batches("lex:d.txt"):
        derived = languages.pipeline.derive(batch, languages.readers[1].lexicon, split=False).derived
        for word in (*batch.strings().to_pylist(), *derived.strings().to_pylist()):
            wanted[word] = wanted.get(word, 0) + 1
    types, counts = read_words(Path("run/tokenizer"))
    assert dict(zip(types.to_pylist(), counts.tolist(), strict=True)) == wanted
    assert languages.size == 300
    assert np.array_equal(*languages.own)


@pytest.mark.parametrize("objective", ["mlm", "xlm", "tlm", "weam:links=hmm", "clm"])
@pytest.mark.parametrize(("spec", "texts"), [("lex:d.txt,inv", "each"), ("mark,trans", "each"), ("skip", "both")])
def test_objectives_without_a_dictionary_train(spec: str, texts: str, objective: str) -> None:
    """And a run that is killed goes on from its checkpoint, from a folder that holds all it needs."""
    run_of(spec, texts, objective)
    first = weights(Path("run/model"))
    assert all(np.isfinite(entry["loss"]) for entry in log(Path("run")) if "loss" in entry)
    shutil.rmtree("run/model")
    shutil.rmtree("run/checkpoints/step-00000006")
    record = json.loads(Path("run/run.json").read_text("utf-8"))
    assert record["settings"].get("tokenizer_for") == texts
    trained(Path("again"), objective, spec, data=Path("data"), tokenizer_for=texts)
    assert all((first[name] == other).all() for name, other in weights(Path("again/model")).items())


def test_inserted_words_are_linked_to_nothing() -> None:
    """Pairs under `mark` have links of every source word to its image, and none of the marker."""
    languages = run_of("mark", objective="tlm", data=Path("data")).languages
    data = Data.open(next(Path("data").glob("encoded-*")), languages)
    pieces = np.arange(min(40, len(data.pieces) - 1))
    source, derived = (data.tokens(pieces, np.full(len(pieces), side)) for side in (SOURCE, DERIVED))
    marker = set(
        languages.readers[DERIVED]
        .tokenizer.encode(Mark().order(batches("mark")[0], None).inserted[:1], np.zeros(1, np.int32), np.array([0, 1]))
        .ids.tolist()
    )
    linked = np.isin(np.arange(len(derived.ids)), data.links(pieces, 0 * pieces, 0 * pieces + 1)[1])
    assert (np.isin(derived.ids, list(marker)) == ~linked).all()
    assert len(source.ids) == len(np.unique(data.links(pieces, 0 * pieces, 0 * pieces + 1)[0]))


@pytest.mark.parametrize(("spec", "texts"), [("lex:d.txt", "both"), ("mark:2,trans", "each"), ("skip,inv", "each")])
def test_a_run_is_evaluated_and_exported(spec: str, texts: str, tmp_path: Path) -> None:
    """Only with the files of its folder: dictionary and data are gone."""
    from transformers import AutoTokenizer

    run = run_of(spec, texts)
    shutil.rmtree("data")
    Path("d.txt").unlink()
    told = evaluate(Path("run"), options("pos", measures=("perplexity", "retrieval"), pairs=5, sentences=9))
    assert {"sup", "zs"} <= regimes(told, "pos")
    assert rows(told, "perplexity")
    for language, name in ((SOURCE, "source"), (DERIVED, "derived")):
        export_model(run, language, tmp_path / name)
        batch = batches("identity")[0]
        words = batch.types.to_pylist()[:20]
        codes = np.arange(len(words), dtype=np.int32)
        ids = run.languages.readers[language].tokenizer.encode(batch.types[:20], codes, np.array([0, len(words)])).ids
        assert AutoTokenizer.from_pretrained(tmp_path / name)(" ".join(words)).input_ids == ids.tolist()


def test_the_same_data_is_used_again_and_another_is_beside() -> None:
    run_of("lex:d.txt,inv", "each")
    before = {path: path.stat().st_mtime_ns for path in Path("data").rglob("*") if path.is_file()}
    trained(Path("two"), "tlm", "lex:d.txt,inv", data=Path("data"), tokenizer_for="each")
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items() if path.name != RECIPE)
    used = [set(json.loads(Path("two/run.json").read_text("utf-8"))["folders"])]
    Path("e.txt").write_text(DICTIONARY + "a\tun\n", "utf-8")
    for spec, texts in (("lex:d.txt,inv", "both"), ("mark,inv", "each"), ("lex:e.txt,inv", "each")):
        trained(Path("three"), "mlm", spec, data=Path("data"), tokenizer_for=texts, force=True)
        used.append(set(json.loads(Path("three/run.json").read_text("utf-8"))["folders"]))
    encoded = [name for some in used for name in some if name.startswith("encoded-")]
    assert len(set(encoded)) == len(encoded) >= len(used)
    Path("d.txt").write_text(DICTIONARY + "a\tun\n", "utf-8")
    with pytest.raises(StoreError, match="is another run"):
        trained(Path("two"), "tlm", "lex:d.txt,inv", data=Path("data"), tokenizer_for="each", resume=True)


def test_a_twin_stays_where_there_is_one() -> None:
    run = run_of("trans,inv", None)
    assert run.languages.are_mapped
    assert json.loads(Path("run/run.json").read_text("utf-8"))["settings"]["tokenizer_for"] is None
    assert not Path("run", DERIVED_TOKENIZER).exists()


def test_a_given_tokenizer_says_what_it_was_trained_on() -> None:
    run_of("lex:d.txt", "both")
    trained(Path("two"), "mlm", "lex:d.txt", data=Path("data2"), tokenizer=Path("run/tokenizer"))
    assert not Path("two", DERIVED_TOKENIZER).exists()
    with pytest.raises(StoreError, match="trained on the text of both languages"):
        trained(
            Path("three"), "mlm", "lex:d.txt", data=Path("data3"), tokenizer=Path("run/tokenizer"), tokenizer_for="each"
        )
    run_of("lex:d.txt", "each", data=Path("data4"), force=True)
    with pytest.raises(StoreError, match="trained on the text of one language"):
        trained(
            Path("three"), "mlm", "lex:d.txt", data=Path("data5"), tokenizer=Path("run/tokenizer"), tokenizer_for="both"
        )


@pytest.mark.parametrize(
    ("changes", "id"),
    [
        ({"objective": "align-mlm", "spec": "lex:d.txt"}, "no-twin"),
        ({"objective": "dict-tlm", "spec": "mark"}, "no-dictionary"),
        ({"spec": "mark", "packing": "stream"}, "unused-option"),
        ({"spec": "mark,inv:unit=token"}, "unit"),
        ({"spec": "trans,inv:unit=token", "tokenizer_for": "each"}, "unit"),
    ],
)
def test_what_needs_a_twin_is_refused(changes: dict[str, Any], id: str) -> None:
    with pytest.raises(UsageError) as error:
        trained(Path("run"), **{"data": Path("data"), **changes})
    assert error.value.id == id
    assert not Path("run").exists()


def test_a_checkpoint_reads_both_languages_already() -> None:
    with pytest.raises(UsageError, match="reads both languages"):
        trained(Path("run"), "mlm", "lex:d.txt", data=Path("data"), tokenizer=checkpoint(), tokenizer_for="both")


def test_blocks_are_the_sentences_of_the_source() -> None:
    """Of any order that stays in its sentences; of merged sentences, their union."""
    sentences = np.array([0, 3, 3, 7, 9])
    for seed in range(50):
        order = some_order(sentences, seed, insert=0.3, delete=0.3)
        assert _blocks(order, sentences).tolist() == sentences.tolist()


def test_a_run_to_begin_from_has_the_same_tokenizers() -> None:
    """Ids of a twin and of a tokenizer of the derived text mean other sub-words, though they are as many."""
    for spec, texts, other, kind in (
        ("trans", None, "trans", "each"),
        ("inv", None, "trans", "each"),
        ("trans", "each", "trans", None),
    ):
        trained(Path("first"), "mlm", spec, data=Path(f"data-{spec}-{texts}"), tokenizer_for=texts, force=True)
        with pytest.raises(UsageError, match="is another one than this run's"):
            trained(Path("next"), "mlm", other, tokenizer=Path("first/tokenizer"), data=Path(f"next-{spec}-{texts}"),
                    tokenizer_for=kind, init="first")  # fmt: skip


def test_the_derived_tokenizer_is_as_large_as_the_source_s() -> None:
    run_of("trans,inv", None, vocab_size=250)
    trained(Path("two"), "mlm", "lex:d.txt", data=Path("data2"), tokenizer=Path("run/tokenizer"))
    assert OwnTokenizer.load(Path("two") / DERIVED_TOKENIZER).size == 250


def test_a_stream_of_a_given_tokenizer_of_both_texts_is_refused() -> None:
    run_of("lex:d.txt", "both")
    with pytest.raises(UsageError, match="rows of languages without a twin"):
        trained(Path("two"), "mlm", "trans", data=Path("data2"), tokenizer=Path("run/tokenizer"), packing="stream")


def test_a_study_makes_a_tokenizer_of_both_texts_with_its_data(tmp_path: Path) -> None:
    """It depends on the transforms; the source's tokenizer is shared."""
    grid = '[study]\nsource = "demo"\nsteps = 3\n[[grid]]\n[grid.factors]\nt = ["trans"]\nseed = [1]\n'
    path = written(tmp_path / "s.toml", f'{grid}tokenizer-for = ["each", "both"]\n')
    commands = [step.arguments for step in plan(read(str(path)), Place(tmp_path)) if step.name.startswith("pretrain")]
    assert [one[one.index("--data") + 1] for one in commands] == ["data", "data"]
    assert not any("--tokenizer" in one for one in commands)
