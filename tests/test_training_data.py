"""The encoded data of a trainer: packing, rows of both languages, and that they are what `make` would have written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.errors import DataError, StoreError
from derivlang.core.messages import DerivlangWarning
from derivlang.engine.batches import Source
from derivlang.evaluation.verify import verify_run
from derivlang.lexical.dictionary import DICTIONARIES
from derivlang.lexical.own import OwnTokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.listing import file_hash
from derivlang.training import encode as encoding
from derivlang.training import prepare as preparing
from derivlang.training.data import STAMPS, Data, damages, write_stamps
from derivlang.training.encode import encode, take
from derivlang.training.languages import DERIVED, LEXICON, SOURCE, TOKENIZER, TWIN, load, of_twin
from derivlang.training.packing import cut, pack
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.prepare_languages import LEXICONS
from derivlang.training.settings import RunPaths
from derivlang.training.translations import DICTIONARY
from tests.helpers import make, rows
from tests.strategies import batch_of, laws
from tests.training import SEQ_LEN, batches, data_folder, pair, settings, trained

SPECS = ["trans,inv", "trans,perm", "trans,syn:fr", "trans:overlap=25,inv", "trans:overlap=25,perm"]

# packing

sentence_words = st.lists(st.lists(st.integers(1, 9), max_size=6), max_size=7)  # sub-words of each word of a sentence


def flat(found: list[list[int]]) -> tuple[Int64, Int64]:
    """(sub-word offsets of sentences, the word of each sub-word)."""
    sizes = [sum(sentence) for sentence in found]
    words = np.repeat(np.arange(sum(map(len, found))), [n for sentence in found for n in sentence])
    return offsets_of(np.array(sizes, np.int64)), words


@laws
@given(found=sentence_words, most=st.integers(1, 12))
def test_pieces_cover_everything_and_are_cut_at_words(found: list[list[int]], most: int) -> None:
    sentences, words = flat(found)
    pieces = cut(sentences, words, most)
    assert pieces.tolist() == slow_cut(found, most)
    sizes = np.diff(pieces)
    assert (sizes > 0).all()
    assert (sizes <= most).all()
    assert pieces[-1] == sentences[-1]
    assert len(sentences) == 1 or pieces[0] == 0
    full = sentences[:-1][np.diff(sentences) > 0]
    assert set(full.tolist()) <= set(pieces.tolist())
    lengths = np.bincount(words, minlength=1) if len(words) else np.zeros(1)
    for at in pieces[1:-1].tolist():
        inside = words[at] == words[at - 1]
        assert not inside or lengths[words[at]] > most


def slow_cut(found: list[list[int]], most: int) -> list[int]:
    """A piece takes whole words while they fit, and a part of the next one only where it would be empty."""
    out = [0]
    for sentence in found:
        rest = list(sentence)
        while rest:
            taken = 0
            while rest and taken + rest[0] <= most:
                taken += rest.pop(0)
            if not taken:
                taken = most
                rest[0] -= most
            out.append(out[-1] + taken)
    return out


@laws
@given(lengths=st.lists(st.integers(1, 9), max_size=30), room=st.integers(9, 25))
def test_instances_close_when_the_next_piece_does_not_fit(lengths: list[int], room: int) -> None:
    expected, used = [0], 0
    for i, length in enumerate(lengths):
        if used + length > room:
            expected.append(i)
            used = 0
        used += length
    if lengths:
        expected.append(len(lengths))
    assert pack(np.array(lengths, np.int64), room).tolist() == expected


# rows


@pytest.mark.parametrize("spec", SPECS)
def test_rows_by_a_slow_loop(spec: str) -> None:
    data = pair(spec).data
    special_ids = data.special_ids
    instances = np.repeat(np.arange(data.n_instances(SOURCE)), 2)
    language = np.tile([SOURCE, DERIVED], data.n_instances(SOURCE))
    found = data.rows(instances, language)
    assert (found.language == language[:, None]).all()
    assert found.positions is None
    assert not found.side.any()
    for row, (instance, spoken) in enumerate(zip(instances.tolist(), language.tolist(), strict=True)):
        ids, words, sentences = [special_ids.begin], [-1], [-1]
        for place, p in enumerate(range(*data.instances[spoken][instance : instance + 2].tolist())):
            first, last = data.pieces[p], data.pieces[p + 1]
            column = len(ids)
            number = list(accumulate(data.begins[first + 1 : last].tolist(), initial=0))
            for k in range(*data.starts[2 * p + spoken : 2 * p + spoken + 2].tolist()):
                ids.append(int(data.ids[k]))
                words.append(column + number[data.slots[k]])
                sentences.append(place)
            ids.append(special_ids.end)
            words.append(-1)
            sentences.append(-1)
        assert len(ids) == found.lengths[row] <= SEQ_LEN
        assert found.clean_ids[row].tolist() == ids + [special_ids.pad] * (SEQ_LEN - len(ids))
        assert found.word_ids[row].tolist() == words + [-1] * (SEQ_LEN - len(ids))
        assert found.sentence_ids[row].tolist() == sentences + [-1] * (SEQ_LEN - len(ids))


@pytest.mark.parametrize("spec", SPECS)
def test_both_languages_have_the_same_subwords_in_every_piece(spec: str) -> None:
    data, languages = pair(spec).data, pair(spec).languages
    table = languages.twin.joint.table().astype(np.int64)
    pieces = np.arange(len(data.pieces) - 1)
    for p in pieces.tolist():
        source, derived = (slice(*data.starts[2 * p + n : 2 * p + n + 2].tolist()) for n in (SOURCE, DERIVED))
        assert data.slots[source].tolist() == sorted(data.slots[derived].tolist())
        assert len(data.slots[source]) == data.pieces[p + 1] - data.pieces[p]
        images = dict(zip(data.slots[derived].tolist(), data.ids[derived].tolist(), strict=True))
        for slot, i, shared in zip(data.slots[source].tolist(), data.ids[source], data.shared[source], strict=True):
            assert images[slot] == (i if shared else table[i])
            assert shared == (images[slot] == i)
    offsets = np.arange(len(pieces) + 1)
    left, right = (data.rows_of(pieces, offsets, np.full(len(pieces), n), SEQ_LEN) for n in (SOURCE, DERIVED))
    for a, b, x, y in zip(left.clean_ids, right.clean_ids, left.word_ids, right.word_ids, strict=True):
        if not languages.twin.map.overlap:
            assert sorted(table[a].tolist()) == sorted(b.tolist())
        assert sorted(x.tolist()) == sorted(y.tolist())


def test_every_subword_is_in_one_row() -> None:
    data = pair().data
    found = data.rows(np.arange(data.n_instances(SOURCE)), np.full(data.n_instances(SOURCE), SOURCE))
    words = found.clean_ids[found.word_ids >= 0]
    expected = np.concatenate([pair().languages.tokenizer.encoder.batch(batch).ids for batch in batches("trans,inv")])
    assert words.tolist() == expected.tolist()


def test_word_ids_are_words_and_no_two_words_of_a_row_share_one() -> None:
    data = pair().data
    instances = np.arange(data.n_instances(SOURCE))
    found = data.rows(instances, np.full(data.n_instances(SOURCE), SOURCE))
    starts = word_starts(data)
    at = 0
    for word_ids in found.word_ids:
        expected: list[int] = []
        for word_id in word_ids[word_ids >= 0].tolist():
            expected.append(word_id)
            same = len(expected) > 1 and expected[-2] == word_id
            begins = bool(starts[at]) or at in set(data.pieces.tolist())
            assert same != begins
            at += 1
        changes = [g for i, g in enumerate(expected) if not i or expected[i - 1] != g]
        assert len(set(changes)) == len(changes)


def source_ids(data: Data) -> Int64:
    n_pieces = len(data.pieces) - 1
    return data.tokens(np.arange(n_pieces), np.full(n_pieces, SOURCE)).ids


def word_starts(data: Data) -> list[bool]:
    """Does a word begin at a sub-word? By the entries' suffix."""
    entries = pair().languages.tokenizer.tokenizer.bpe.entries
    special = pair().languages.tokenizer.n_special
    out, before = [], True
    for i in source_ids(data).tolist():
        out.append(before)
        before = entries[i].endswith("</w>") or i < special
    return out


def test_words_without_subwords_part_no_word_ids(tmp_path: Path) -> None:
    """A word of white space alone has no sub-word. Word ids stay in their piece: no two words are masked as one."""
    text = (" a " + "\u00a0 " * 40 + "b . \n c d . \n") * 3
    (tmp_path / "a.train.tokens").write_text(text, "utf-8")
    found = pair()
    source = Source.open(Pipeline.parse("trans,inv"), SourceRequest(str(tmp_path / "a.train.tokens")))
    data = encode(tmp_path / "data", source, found.languages, split="train", seq_len=16, limit=None)
    every = data.rows(np.arange(data.n_instances(SOURCE)), np.full(data.n_instances(SOURCE), SOURCE))
    assert every.word_ids.max() < 16
    for word_ids, ids in zip(every.word_ids, every.clean_ids, strict=True):
        some = word_ids[word_ids >= 0].tolist()
        assert len(set(some)) == len(some) > 1, (some, ids)  # here every word is one sub-word


def test_a_sentence_a_row(tmp_path: Path) -> None:
    """Every piece is a row of its own, in both languages, with the same sub-words as in rows of several."""
    data, packed = prepared(tmp_path / "data", packing="single"), pair().data
    n_pieces = len(packed.pieces) - 1
    for language in (SOURCE, DERIVED):
        assert data.n_instances(language) == n_pieces
        rows = data.rows(np.arange(n_pieces), np.full(n_pieces, language))
        assert rows.sentence_ids.max() == 0
        wanted = packed.rows_of(np.arange(n_pieces), np.arange(n_pieces + 1), np.full(n_pieces, language), SEQ_LEN)
        assert np.array_equal(rows.clean_ids, wanted.clean_ids)


@pytest.mark.parametrize("spec", ["trans,inv", "trans:overlap=25,perm"])
def test_a_stream_is_cut_every_so_many_places(spec: str, tmp_path: Path) -> None:
    """`<s> p1 </s> <s> p2 </s> …` of a language, without a row that is not full."""
    data = prepared(tmp_path / "data", spec, packing="stream")
    whole = pair(spec).data
    pieces = np.arange(len(whole.pieces) - 1)
    for language in (SOURCE, DERIVED):
        rows_ = whole.rows_of(pieces, np.arange(len(pieces) + 1), np.full(len(pieces), language), SEQ_LEN)
        stream = [i for ids, n in zip(rows_.clean_ids, rows_.lengths, strict=True) for i in ids[:n].tolist()]
        words = [(p, g) for p, (gs, n) in enumerate(zip(rows_.word_ids, rows_.lengths, strict=True)) for g in gs[:n]]
        n_rows = len(stream) // SEQ_LEN
        assert data.n_instances(SOURCE) == n_rows
        found = data.rows(np.arange(n_rows), np.full(n_rows, language))
        assert found.clean_ids.ravel().tolist() == stream[: n_rows * SEQ_LEN]
        assert (found.lengths == SEQ_LEN).all()
        assert (found.language == language).all()
        for row, word_ids in enumerate(found.word_ids):
            here = words[row * SEQ_LEN : (row + 1) * SEQ_LEN]
            assert [g >= 0 for g in word_ids.tolist()] == [g >= 0 for _, g in here]
            numbers = [p - here[0][0] if g >= 0 else -1 for p, g in here]
            assert found.sentence_ids[row].tolist() == numbers
            for i, j in pairwise(np.flatnonzero(word_ids >= 0).tolist()):
                assert (word_ids[i] == word_ids[j]) == (here[i] == here[j])
            known = {g: w for g, w in zip(word_ids.tolist(), here, strict=True) if g >= 0}
            assert len(set(known.values())) == len(known)
            assert max(known) < SEQ_LEN
    with pytest.raises(StoreError, match="packing is"):
        prepared(tmp_path / "data", spec)


def test_a_stream_shorter_than_a_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fewer sub-words than a row of a stream, 90000"):
        prepared(tmp_path / "data", packing="stream", seq_len=90_000)
    assert not list(tmp_path.iterdir())


# what `make` writes


@pytest.mark.parametrize("spec", SPECS)
def test_the_derived_ids_are_those_of_the_text_that_make_writes(spec: str, tmp_path: Path) -> None:
    out = make(spec, "demo", tmp_path / "out")
    found = pair(spec, 512)
    data, languages = found.data, found.languages
    assert data.recipe["cut_sentences"] == 0
    batch = batch_of(rows(out, "train")["tokens"].to_pylist())
    expected = languages.twin.encode_words(languages.tokenizer.encoder, batch.types, batch.words)
    derived = data.rows(np.arange(data.n_instances(SOURCE)), np.full(data.n_instances(SOURCE), DERIVED))
    assert derived.clean_ids[derived.word_ids >= 0].tolist() == expected.ids.tolist()
    source = batch_of(rows(out, "train")["source_tokens"].to_pylist()) if has_source(out) else None
    if source is not None:
        assert source_ids(data).tolist() == languages.tokenizer.encoder.batch(source).ids.tolist()


def has_source(out: Path) -> bool:
    return "source_tokens" in rows(out, "train").column_names


@pytest.mark.parametrize("spec", SPECS)
def test_the_same_sentence_by_sentence_in_memory(spec: str) -> None:
    from derivlang.core.batch import realign

    found = pair(spec)
    pipeline, twin = found.languages.pipeline, found.languages.twin
    for batch in batches(spec):
        both = found.languages.parallel(batch)
        moved = realign(batch, pipeline.order(batch))
        derived = twin.map.apply(moved.types)
        text = batch_of([derived.take(moved.words).to_pylist()])
        encoded = twin.encode_words(found.languages.tokenizer.encoder, text.types, text.words)
        assert both.derived.ids.tolist() == encoded.ids.tolist()


def test_an_order_of_subwords_that_no_text_can_hold() -> None:
    found = pair("trans,inv:unit=token")
    table = found.languages.twin.joint.table()
    for batch in batches("trans,inv:unit=token"):
        both = found.languages.parallel(batch)
        expected: list[int] = []
        for begin, end, tail in zip(batch.sentences[:-1], batch.sentences[1:], batch.tails, strict=True):
            body = both.source.ids[both.offsets[begin] : both.offsets[end - tail]].tolist()
            rest = both.source.ids[both.offsets[end - tail] : both.offsets[end]].tolist()
            expected += [int(table[i]) for i in body[::-1] + rest]
        assert both.derived.ids.tolist() == expected
    data = pair("trans,inv:unit=token", 512).data
    rows_ = data.rows(np.arange(data.n_instances(SOURCE)), np.full(data.n_instances(SOURCE), DERIVED))
    whole = np.concatenate([found.languages.parallel(b).derived.ids for b in batches("trans,inv:unit=token")])
    assert rows_.clean_ids[rows_.word_ids >= 0].tolist() == whole.tolist()


# files


def prepared(folder: Path, spec: str = "trans,inv", **changes: object) -> Data:
    found = pair(spec)
    source = Source.open(Pipeline.parse(spec), SourceRequest("demo"))
    given = {"split": "train", "seq_len": SEQ_LEN, "limit": None, **changes}
    return encode(folder, source, found.languages, **given)  # type: ignore[arg-type]


def test_files_are_mapped_and_small(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data")
    assert isinstance(data.ids, np.memmap)
    assert isinstance(data.slots, np.memmap)
    assert isinstance(data.begins, np.memmap)
    assert (data.ids.dtype, data.slots.dtype, data.begins.dtype) == (np.uint16, np.uint16, np.uint8)
    with pytest.raises(ValueError, match="read-only"):
        data.ids[0] = 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data"]


def test_the_same_data_has_the_same_bytes(tmp_path: Path) -> None:
    one, two = prepared(tmp_path / "one"), prepared(tmp_path / "two")
    assert one.fingerprint == two.fingerprint
    for path in (tmp_path / "one").iterdir():
        if path.name != STAMPS:
            assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    assert prepared(tmp_path / "three", limit=7).fingerprint != one.fingerprint
    assert prepared(tmp_path / "four", seq_len=16).fingerprint != one.fingerprint
    assert pair("trans,perm").data.fingerprint != one.fingerprint


def test_what_is_there_is_taken(tmp_path: Path) -> None:
    prepared(tmp_path / "data")
    before = (tmp_path / "data" / "data.json").stat().st_mtime_ns
    prepared(tmp_path / "data")
    assert (tmp_path / "data" / "data.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("changes", "named"), [({"seq_len": 16}, "seq_len"), ({"limit": 3}, "limit"), ({"spec": "trans,perm"}, "spec")]
)
def test_data_of_another_run_is_refused(changes: dict[str, object], named: str, tmp_path: Path) -> None:
    prepared(tmp_path / "data")
    with pytest.raises(StoreError, match=f"holds another encoded text: {named} (is|was)"):
        prepared(tmp_path / "data", **changes)  # type: ignore[arg-type]


def test_data_is_taken_as_it_is(tmp_path: Path) -> None:
    made = prepared(tmp_path / "data")
    found = take(tmp_path / "data", pair().languages, seq_len=SEQ_LEN)
    assert found.fingerprint == made.fingerprint
    for changes, named in (({"seq_len": 16}, "seq_len"), ({"packing": "stream"}, "packing"), ({"limit": 3}, "limit")):
        with pytest.raises(StoreError, match=f"holds another encoded text: {named} (is|was)"):
            take(tmp_path / "data", pair().languages, **{"seq_len": SEQ_LEN, **changes})  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="holds another encoded text: spec is"):
        take(tmp_path / "data", pair("trans,perm").languages, seq_len=SEQ_LEN)
    with pytest.raises(StoreError, match="no encoded data"):
        take(tmp_path / "other", pair().languages, seq_len=SEQ_LEN)


@pytest.mark.parametrize(
    "name", ["ids", "slots", "shared", "begins", "sentences", "keys", "pieces", "starts", "instances-1"]
)
def test_a_file_that_was_cut_off_is_refused(name: str, tmp_path: Path) -> None:
    prepared(tmp_path / "data")
    path = tmp_path / "data" / f"{name}.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"is missing or was cut off") as error:
        prepared(tmp_path / "data")
    assert str(path) in str(error.value)
    path.unlink()
    with pytest.warns(DerivlangWarning, match=rf"{name}\.bin is missing; the encoded text is made again"):
        prepared(tmp_path / "data")
    record = tmp_path / "data" / "data.json"
    recipe = json.loads(record.read_text("utf-8"))
    del recipe["files"][name]
    record.write_text(json.dumps(recipe), "utf-8")
    with pytest.raises(StoreError, match=rf"{name}\.bin: is missing or was cut off"):
        prepared(tmp_path / "data")


def test_content_is_read_where_size_or_time_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data as it was written is not read. A copy is, and so is data without stamps. `damages` always reads all."""
    folder, read = tmp_path / "data", list[Path]()
    prepared(folder)
    monkeypatch.setattr("derivlang.training.data.file_hash", lambda path: read.append(path) or file_hash(path))
    prepared(folder)
    assert read == []
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    prepared(tmp_path / "copy")
    n_files = len(list(folder.glob("*.bin")))
    assert len(read) == n_files
    for text in ("", "[]", '{"ids.bin": 3}'):
        (folder / STAMPS).write_text(text)
        read.clear()
        prepared(folder)
        assert len(read) == n_files
    assert list(damages(folder)) == []
    path = tmp_path / "copy" / "ids.bin"
    path.write_bytes(bytes(reversed(path.read_bytes())))
    with pytest.raises(StoreError, match=r"ids\.bin: was changed"):
        prepared(tmp_path / "copy")
    write_stamps(tmp_path / "copy")
    prepared(tmp_path / "copy")
    assert list(damages(tmp_path / "copy")) == [("ids.bin", "was changed")]


def test_verify_reads_the_data_of_a_run(tmp_path: Path) -> None:
    trained(tmp_path / "run", data=None, steps=2)
    assert verify_run(tmp_path / "run")["ok"]
    (file,) = (tmp_path / "run" / "data").rglob("ids.bin")
    file.write_bytes(bytes(reversed(file.read_bytes())))
    write_stamps(file.parent)
    name = str(file.relative_to(tmp_path / "run"))
    assert verify_run(tmp_path / "run")["problems"] == [{"file": name, "what": "was changed"}]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 99, "files": {}}', "\x00"])
def test_a_recipe_that_is_damaged_is_refused(text: str, tmp_path: Path) -> None:
    prepared(tmp_path / "data")
    (tmp_path / "data" / "data.json").write_text(text)
    with pytest.raises(StoreError, match="not a valid recipe of encoded data") as error:
        prepared(tmp_path / "data")
    assert "data.json" in str(error.value)


def test_a_split_without_words_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.train.tokens").write_text(" \n \n")
    source = Source.open(Pipeline.parse("trans,inv"), SourceRequest(str(tmp_path / "a.train.tokens")))
    with pytest.raises(DataError, match="holds no words"):
        encode(tmp_path / "data", source, pair().languages, split="train", seq_len=16, limit=None)
    assert [p.name for p in tmp_path.iterdir()] == ["a.train.tokens"]


def test_the_twin_must_be_of_this_pair(tmp_path: Path) -> None:
    """A data folder with a twin of another script, and no data of this length yet."""
    folder = tmp_path / "data"
    shutil.copytree(data_folder("trans,inv"), folder)
    pair("trans,inv")
    for other in ("trans:script=greek,inv", "trans:overlap=50,inv"):
        with pytest.raises(StoreError, match="twin") as error:
            trained(tmp_path / "run", spec=other, data=folder, seq_len=24)
        assert str(folder / TWIN) in str(error.value)
    assert not (tmp_path / "run").exists()


def test_the_twin_of_a_smaller_tokenizer(tmp_path: Path) -> None:
    pair("trans,inv")
    folder, small = data_folder("trans,inv"), tmp_path / "small"
    trained(tmp_path / "first", data=small, vocab_size=150)
    with pytest.raises(StoreError, match="is another twin: it has 150 entries, the tokenizer 300"):
        of_twin(
            Pipeline.parse("trans,inv"),
            OwnTokenizer.load(folder / TOKENIZER),
            small / TWIN,
            "give another --data folder",
        )


def test_languages_read_from_a_folder() -> None:
    pair("trans:overlap=25,inv")
    found = load(data_folder("trans:overlap=25,inv"), Pipeline.parse("trans:overlap=25,inv"))
    assert found.size == 2 * 300 - found.tokenizer.n_special
    for batch in batches("trans:overlap=25,inv"):
        ours, theirs = found.parallel(batch), pair("trans:overlap=25,inv").languages.parallel(batch)
        assert ours.derived.ids.tolist() == theirs.derived.ids.tolist()
        assert ours.derived.slots.tolist() == theirs.derived.slots.tolist()
        assert ours.offsets[-1] == len(ours.source.ids) == len(ours.derived.ids)


def test_the_recipe_counts_rows_of_a_stream(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data", packing="stream")
    assert (data.recipe["instances"], data.recipe["filled_percent"]) == (data.n_instances(SOURCE), 100)


def test_the_recipe_counts_what_there_is() -> None:
    data = pair().data
    recipe = json.loads((data_folder() / f"train-{SEQ_LEN}" / "data.json").read_text("utf-8"))
    assert recipe["subwords"] == data.n_subwords == len(data.ids) // 2
    assert recipe["sentences"] == len(data.keys) == len(data.sentences) - 1
    assert recipe["instances"] == data.n_instances(SOURCE)
    assert recipe["cut_sentences"] == int((np.diff(data.sentences) > SEQ_LEN - 2).sum())
    found = data.rows(np.arange(data.n_instances(SOURCE)), np.zeros(data.n_instances(SOURCE), int))
    assert recipe["filled_percent"] == pytest.approx(100 * found.lengths.sum() / found.clean_ids.size, abs=0.01)
    assert settings().vocab_size == pair().languages.tokenizer.size


# a data folder of another source


@pytest.fixture
def two_columns(tmp_path: Path) -> Path:
    lines = [f"alpha beta gamma {i % 3},zulu yankee xray {i % 3},1" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["text,other,label", *lines]) + "\n", "utf-8")
    (tmp_path / "z.txt").write_text("the cat sat on a mat .\n" * 20, "utf-8")
    return tmp_path


def prepare_of(folder: Path, source: str, **changes: Any) -> Prepared:
    """What a run on a file of the folder prepares in DATA, `data`. changes: of settings, request or `RunPaths`."""
    some = {name: changes.pop(name) for name in ("text_column", "encoding") if name in changes}
    given = {name: changes.pop(name) for name in ("tokenizer", "dictionary", "data_as_is") if name in changes}
    path = str(folder / source)
    wanted = settings(source=path, spec=changes.pop("spec", "trans,inv"), **{"vocab_size": 34, **changes})
    return prepare_data(
        wanted,
        SourceRequest(path, **some),
        RunPaths(run=folder / "run", data=folder / "data", **given),
        lambda message: None,
    )


def test_a_tokenizer_of_another_source_is_refused(two_columns: Path) -> None:
    """Also where no data of this row length is there yet."""
    first = prepare_of(two_columns, "t.csv", text_column=("text",))
    assert prepare_of(two_columns, "t.csv").data.fingerprint == first.data.fingerprint  # read in the same way
    prepare_of(two_columns, "t.csv", text_column=("text",), seq_len=16)
    with pytest.raises(StoreError, match=r"tokenizer: was made of another text: it is of t\.csv, not of z\.txt"):
        prepare_of(two_columns, "z.txt", seq_len=64)
    with pytest.raises(StoreError, match=r"tokenizer: was made of another text: reading\.columns is text, not other"):
        prepare_of(two_columns, "t.csv", text_column=("other",), seq_len=64)
    (two_columns / "t.csv").write_text("text,other,label\nalpha beta gamma,zulu,1\n", "utf-8")
    with pytest.raises(StoreError, match=r"tokenizer: was made of another text: t\.csv has changed since"):
        prepare_of(two_columns, "t.csv", seq_len=64)


def test_a_source_that_changes_while_it_is_prepared_is_refused(
    two_columns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the tokenizer was made of it, or while it is encoded: the data would not be of the tokenizer's words."""
    path = two_columns / "t.csv"

    def longer(before: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            path.write_text(path.read_text("utf-8") + "alpha beta,zulu,1\n", "utf-8")
            return before(*arguments, **options)

        return changed

    with monkeypatch.context() as after_the_dictionary:
        after_the_dictionary.setattr(preparing, "_encoded", longer(preparing._encoded))
        with pytest.raises(StoreError, match=r"data: was made of another text: t\.csv has changed since"):
            prepare_of(two_columns, "t.csv", text_column=("text",))
    shutil.rmtree(two_columns / "data")
    with monkeypatch.context() as while_it_is_encoded:
        while_it_is_encoded.setattr(encoding, "cut", longer(encoding.cut))
        with pytest.raises(DataError, match=r"t\.csv: the file changed while it was read"):
            prepare_of(two_columns, "t.csv", text_column=("text",))
    assert not list((two_columns / "data").glob("train-*"))


def test_data_as_it_is_must_be_of_the_source_that_is_named(two_columns: Path) -> None:
    """The source is not read: its name is compared, and the options that say how it is read."""
    made = prepare_of(two_columns, "t.csv", text_column=("other",))
    (two_columns / "t.csv").unlink()
    for asked in ({}, {"text_column": ("other",)}):
        taken = prepare_of(two_columns, "t.csv", data_as_is=True, **asked)
        assert taken.data.fingerprint == made.data.fingerprint
        assert taken.origin is None
    for source, asked, told in (
        ("z.txt", {}, "train-32: holds data of --source t.csv, not z.txt"),
        ("t.csv", {"text_column": ("text",)}, "holds data of column other, not text"),
        ("t.csv", {"encoding": "latin-1"}, "holds data of --encoding utf-8, not latin-1"),
        ("t.csv", {"coverage": "50"}, r"dictionary-50-random-1.tsv: is missing, and with --data-as-is nothing is made"),
    ):
        with pytest.raises(StoreError, match=told):
            prepare_of(two_columns, source, data_as_is=True, **asked)


def test_a_dictionary_of_another_source_is_refused(two_columns: Path) -> None:
    prepare_of(two_columns, "t.csv")
    tokenizer = two_columns / "data" / TOKENIZER
    with pytest.raises(StoreError, match=r"-1\.tsv: was made of another text: it is of t\.csv, not of z\.txt"):
        prepare_of(two_columns, "z.txt", seq_len=64, tokenizer=tokenizer)


def test_encoded_data_of_another_column_is_refused(two_columns: Path) -> None:
    prepare_of(two_columns, "t.csv")
    given = {"tokenizer": two_columns / "data" / TOKENIZER}
    for name in ("dictionary-25-random-1.tsv", "dictionary-25-random-1.tsv.recipe.json"):
        (two_columns / "data" / name).unlink()
    with pytest.raises(StoreError, match=r"train-32: holds another encoded text: reading.columns is text, not other"):
        prepare_of(two_columns, "t.csv", text_column=("other",), **given)


def test_a_coverage_with_a_slash(two_columns: Path) -> None:
    found = prepare_of(two_columns, "t.csv", coverage="100/3").files[DICTIONARY]
    assert found.name == "dictionary-100_3-random-1.tsv"
    assert len(found.read_text("utf-8").splitlines()) == 1 + 7  # of 22 entries


def test_a_lexicon_of_another_source_is_refused(two_columns: Path) -> None:
    from tests.checkpoints import checkpoint

    given = {"tokenizer": checkpoint(), "spec": "trans:overlap=50,inv"}
    first = prepare_of(two_columns, "t.csv", **given)
    assert prepare_of(two_columns, "t.csv", **given).data.fingerprint == first.data.fingerprint
    with pytest.raises(StoreError, match=r"lexicon\.tsv: was made of another text: it is of t\.csv, not of z\.txt"):
        prepare_of(two_columns, "z.txt", seq_len=64, **given)


def test_a_dictionary_of_the_data_folder_is_used_only_if_it_is_the_one_that_was_made(two_columns: Path) -> None:
    """A cut dictionary, or another one under this name, would train another model."""
    prepare_of(two_columns, "t.csv")
    prepare_of(two_columns, "t.csv", coverage="50")
    dictionary, other = (two_columns / "data" / f"dictionary-{coverage}-random-1.tsv" for coverage in (25, 50))
    recipe = DICTIONARIES.record_of(dictionary)
    texts = {path: path.read_bytes() for path in (dictionary, recipe)}

    def restore() -> None:
        for path, text in texts.items():
            path.write_bytes(text)

    dictionary.write_bytes(texts[dictionary][:40])
    with pytest.raises(StoreError, match=r"-1\.tsv: was changed since it was made"):
        prepare_of(two_columns, "t.csv")
    restore()
    recipe.unlink()
    with pytest.raises(StoreError, match=r"-1\.tsv: exists already, and no .*recipe\.json says how it was made"):
        prepare_of(two_columns, "t.csv")
    for path, source in ((dictionary, other), (recipe, DICTIONARIES.record_of(other))):
        path.write_bytes(source.read_bytes())
    with pytest.raises(StoreError, match=r"-1\.tsv: is another dictionary: coverage is 50, not 25"):
        prepare_of(two_columns, "t.csv")
    restore()
    dictionary.unlink()  # as if the process had been killed between both
    prepare_of(two_columns, "t.csv")
    assert {path: path.read_bytes() for path in texts} == texts


def test_a_copied_tokenizer_is_made_again_or_refused(two_columns: Path) -> None:
    from tests.checkpoints import checkpoint

    given = {"tokenizer": checkpoint(), "spec": "trans:overlap=50,inv"}
    first = prepare_of(two_columns, "t.csv", **given).data.fingerprint
    copy = two_columns / "data" / TOKENIZER
    whole = {path.name: path.read_bytes() for path in copy.iterdir()}
    (copy / "tokenizer.json").unlink()
    with pytest.warns(DerivlangWarning, match=r"tokenizer\.json is missing; the tokenizer is made again"):
        assert prepare_of(two_columns, "t.csv", **given).data.fingerprint == first
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == whole
    (copy / "tokenizer.json").write_bytes(whole["tokenizer.json"][:900])
    with pytest.raises(StoreError, match=r"(?s)this is not a valid tokenizer.*remove it, or give another folder"):
        prepare_of(two_columns, "t.csv", **given)
    (copy / "tokenizer.json").write_bytes(whole["tokenizer.json"])
    with pytest.raises(StoreError, match=r"holds another tokenizer: vocab_size is [\d]+, not [\d]+"):
        prepare_of(two_columns, "t.csv", **{**given, "tokenizer": checkpoint("roberta")})
    (copy / "tokenizer_config.json").unlink()
    with pytest.raises(StoreError, match="holds something else, and no tokenizer"):
        prepare_of(two_columns, "t.csv", **given)


def test_a_lexicon_of_the_data_folder_has_its_recipe(two_columns: Path) -> None:
    """Without it nobody knows its text. A cut one is refused."""
    from tests.checkpoints import checkpoint

    given = {"tokenizer": checkpoint(), "spec": "trans:overlap=50,inv"}
    prepare_of(two_columns, "t.csv", **given)
    lexicon = two_columns / "data" / LEXICON
    recipe = LEXICONS.record_of(lexicon)
    texts = {path: path.read_bytes() for path in (lexicon, recipe)}
    lexicon.write_bytes(b"".join(texts[lexicon].splitlines(keepends=True)[:-1]))
    with pytest.raises(StoreError, match=r"lexicon\.tsv: was changed since it was made"):
        prepare_of(two_columns, "t.csv", **given)
    lexicon.unlink()  # as if the process had been killed between both
    prepare_of(two_columns, "t.csv", **given)
    assert {path: path.read_bytes() for path in texts} == texts
    recipe.unlink()
    with pytest.raises(StoreError, match=r"lexicon\.tsv: exists already, and no lexicon\.tsv\.recipe\.json says"):
        prepare_of(two_columns, "t.csv", **given)
