"""The encoded data of a trainer: packing, rows of both languages, and that they are what `make` would have written."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrays import Int64, offsets_of
from derivlang.core.errors import DataError, StoreError
from derivlang.engine.batches import Source
from derivlang.evaluation.collect import verify_run
from derivlang.lexical.own import OwnTokenizer
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.store.made_of import RECIPE, made
from derivlang.training import encode as encoding
from derivlang.training import prepare as preparing
from derivlang.training import run_folder
from derivlang.training.data import Data, cut, pack
from derivlang.training.encode import encode
from derivlang.training.languages import DERIVED, LEXICON, SOURCE, TOKENIZER, load, of_twin
from derivlang.training.prepare import Prepared, prepare_data
from derivlang.training.settings import RunPaths
from derivlang.training.translations import DICTIONARY
from tests.commands import snapshot
from tests.helpers import make, rows
from tests.strategies import batch_of, laws
from tests.training import SEQ_LEN, batches, pair, settings, trained, warnings_to

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
    data = encode(partial(made, tmp_path), source, found.languages, split="train", seq_len=16)
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


def test_a_stream_shorter_than_a_row(tmp_path: Path) -> None:
    for _ in range(2):  # also when the data is there
        with pytest.raises(DataError, match="fewer sub-words than a row of a stream, 90000"):
            prepared(tmp_path / "data", packing="stream", seq_len=90_000)


# what `make` writes


@pytest.mark.parametrize("spec", SPECS)
def test_the_derived_ids_are_those_of_the_text_that_make_writes(spec: str, tmp_path: Path) -> None:
    out = make(spec, "demo", tmp_path / "out")
    found = pair(spec, 512)
    data, languages = found.data, found.languages
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
    return encode(partial(made, folder), source, found.languages, **given)  # type: ignore[arg-type]


def test_files_are_mapped_and_small(tmp_path: Path) -> None:
    data = prepared(tmp_path / "data")
    assert isinstance(data.ids, np.memmap)
    assert isinstance(data.slots, np.memmap)
    assert isinstance(data.begins, np.memmap)
    assert (data.ids.dtype, data.slots.dtype, data.begins.dtype) == (np.uint16, np.uint16, np.uint8)
    with pytest.raises(ValueError, match="read-only"):
        data.ids[0] = 1
    assert [p.name.partition("-")[0] for p in (tmp_path / "data").iterdir()] == ["encoded"]


def test_the_same_data_has_the_same_bytes(tmp_path: Path) -> None:
    one, two = prepared(tmp_path / "one"), prepared(tmp_path / "two")
    assert one.fingerprint == two.fingerprint
    files = [snapshot(next((tmp_path / name).iterdir())) for name in ("one", "two")]
    assert [file.pop(RECIPE) != b"" for file in files] == [True, True]  # with the times of the files
    assert files[0] == files[1]
    assert prepared(tmp_path / "one", limit=7).fingerprint != one.fingerprint
    assert prepared(tmp_path / "one", seq_len=16).fingerprint != one.fingerprint
    assert len(list((tmp_path / "one").iterdir())) == 3
    assert pair("trans,perm").data.fingerprint != one.fingerprint


def test_verify_reads_the_data_of_a_run(tmp_path: Path) -> None:
    trained(tmp_path / "run", data=None, steps=2)
    assert verify_run(tmp_path / "run")["ok"]
    (file,) = (tmp_path / "run" / "data").rglob("ids.bin")
    facts = file.stat()
    file.write_bytes(bytes(reversed(file.read_bytes())))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    name = str(file.relative_to(tmp_path / "run"))
    assert verify_run(tmp_path / "run")["problems"] == [{"file": name, "what": "was changed"}]


def test_a_split_without_words_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.train.tokens").write_text(" \n \n")
    source = Source.open(Pipeline.parse("trans,inv"), SourceRequest(str(tmp_path / "a.train.tokens")))
    with pytest.raises(DataError, match="holds no words"):
        encode(partial(made, tmp_path), source, pair().languages, split="train", seq_len=16)
    assert [p.name for p in tmp_path.iterdir()] == ["a.train.tokens"]


def test_languages_share_a_folder(tmp_path: Path) -> None:
    """Other transforms, sizes and row lengths are beside each other; the tokenizer and the twin are shared."""
    folder, kinds = tmp_path / "data", Counter[str]()
    for changes in (
        {},
        {"spec": "trans,perm"},
        {"spec": "trans:script=greek,inv"},
        {"vocab_size": 150},
        {"seq_len": 24},
    ):
        trained(tmp_path / "run", data=folder, steps=1, force=True, **changes)  # type: ignore[arg-type]
        assert all((folder / name).is_dir() for name in run_folder.read(tmp_path / "run")["folders"])
    kinds.update(path.name.partition("-")[0] for path in folder.iterdir())
    assert kinds == {"tokenizer": 2, "twin": 3, "dictionary": 3, "encoded": 5}


def test_the_twin_of_a_smaller_tokenizer(tmp_path: Path) -> None:
    found, small = pair("trans,inv"), tmp_path / "small"
    trained(tmp_path / "first", data=small, vocab_size=150)
    with pytest.raises(StoreError, match="is another twin: it has 150 entries, the tokenizer 300"):
        of_twin(
            Pipeline.parse("trans,inv"),
            OwnTokenizer.load(found.files[TOKENIZER]),
            next(small.glob("twin-*")),
            "remove it",
        )


def test_languages_read_from_a_folder(tmp_path: Path) -> None:
    trained(tmp_path / "run", spec="trans:overlap=25,inv", steps=1)
    found = load(tmp_path / "run", Pipeline.parse("trans:overlap=25,inv"))
    assert found.size == 2 * 300 - found.tokenizer.n_special
    for batch in batches("trans:overlap=25,inv"):
        ours, theirs = found.parallel(batch), pair("trans:overlap=25,inv").languages.parallel(batch)
        assert ours.derived.ids.tolist() == theirs.derived.ids.tolist()
        assert ours.derived.slots.tolist() == theirs.derived.slots.tolist()
        assert ours.offsets[-1] == len(ours.source.ids) == len(ours.derived.ids)


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
    given = {name: changes.pop(name) for name in ("tokenizer", "dictionary") if name in changes}
    path = str(folder / source)
    wanted = settings(source=path, spec=changes.pop("spec", "trans,inv"), **{"vocab_size": 34, **changes})
    paths = RunPaths(run=folder / "run", data=folder / "data", **given)
    with warnings_to(lambda message: None):
        return prepare_data(wanted, SourceRequest(path, **some), paths)


def test_another_source_is_beside(two_columns: Path) -> None:
    """Also another column of it, or another content: nothing that is there is of these."""
    first = prepare_of(two_columns, "t.csv", text_column=("text",))
    again = prepare_of(two_columns, "t.csv")
    assert (again.data.fingerprint, again.used) == (first.data.fingerprint, first.used)  # read in the same way
    used = [*first.used]
    used += prepare_of(two_columns, "z.txt", vocab_size=30).used
    used += prepare_of(two_columns, "t.csv", text_column=("other",)).used
    (two_columns / "t.csv").write_text((two_columns / "t.csv").read_text() + "alpha,zulu,1\n", "utf-8")
    used += prepare_of(two_columns, "t.csv").used
    assert len(set(used)) == len(used) == 4 * 4


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
        after_the_dictionary.setattr(preparing, "_source", longer(preparing._source))
        with pytest.raises(DataError, match=r"t\.csv: has changed while it was read"):
            prepare_of(two_columns, "t.csv", text_column=("text",))
    shutil.rmtree(two_columns / "data")
    with monkeypatch.context() as while_it_is_encoded:
        while_it_is_encoded.setattr(encoding, "cut", longer(encoding.cut))
        with pytest.raises(DataError, match=r"t\.csv: the file changed while it was read"):
            prepare_of(two_columns, "t.csv", text_column=("text",))
    assert not list((two_columns / "data").glob("encoded-*"))


def test_a_coverage_with_a_slash(two_columns: Path) -> None:
    found = prepare_of(two_columns, "t.csv", coverage="100/3").files[DICTIONARY]
    assert len(found.read_text("utf-8").splitlines()) == 1 + 7  # of 22 entries


def test_a_lexicon_is_fitted_once_for_each_source(two_columns: Path) -> None:
    from tests.checkpoints import checkpoint

    given = {"tokenizer": checkpoint(), "spec": "trans:overlap=50,inv"}
    first = prepare_of(two_columns, "t.csv", **given)
    assert prepare_of(two_columns, "t.csv", **given).data.fingerprint == first.data.fingerprint
    assert prepare_of(two_columns, "z.txt", **given).files[LEXICON] != first.files[LEXICON]
    others = prepare_of(two_columns, "t.csv", **{**given, "tokenizer": checkpoint("roberta")})
    assert others.files[LEXICON] == first.files[LEXICON]
    assert others.files[TOKENIZER] != first.files[TOKENIZER]
