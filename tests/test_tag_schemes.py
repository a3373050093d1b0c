"""Tag schemes, held to seqeval's reading of each: what is read, what is written, which scheme a column has."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from derivlang import map_dataset
from derivlang.core.arrays import offsets_of
from derivlang.core.errors import DataError, LayerError
from derivlang.core.layers.spans import Spans
from derivlang.core.layers.tag_schemes import SCHEMES, SchemeSearch, complete_classes
from derivlang.core.messages import DerivlangWarning
from derivlang.core.schema import Field
from tests.helpers import make, manifest, right, rows, undone
from tests.strategies import laws

KINDS = ("PER", "LOC", "MISC-x")
Entity = tuple[int, int, str]


@st.composite
def sentences(draw: st.DrawFn) -> list[tuple[int, list[Entity]]]:
    """Sentences as (words, entities); neighbours of one type are frequent."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        at, entities = 0, []
        for _ in range(draw(st.integers(0, 5))):
            at += draw(st.sampled_from([0, 0, 1, 2]))
            end = at + draw(st.integers(1, 4))
            entities.append((at, end, draw(st.sampled_from(KINDS))))
            at = end
        found.append((max(1, at + draw(st.integers(0, 1))), entities))
    return found


def layer(found: list[tuple[int, list[Entity]]]) -> tuple[Spans, np.ndarray]:
    """The entities of sentences one after the other, and the word offsets of the sentences."""
    units = offsets_of(np.array([n for n, _ in found]))
    flat = [(units[i] + a, units[i] + b, KINDS.index(kind)) for i, (_, e) in enumerate(found) for a, b, kind in e]
    start, end, kinds = np.array(flat, np.int64).reshape(-1, 3).T
    return Spans(
        "ner_tags", start, end, kinds.astype(np.int32), KINDS, complete_classes([f"B-{k}" for k in KINDS])
    ), units


def tagged(found: list[tuple[int, list[Entity]]], scheme: str) -> list[list[str]]:
    spans, units = layer(found)
    flat = spans.tags_in(scheme, (), units).to_pylist()
    return [flat[a:b] for a, b in itertools.pairwise(units.tolist())]


def read(tags: list[list[str]], scheme: str, **options: Any) -> list[list[Entity]]:
    """The entities of each sentence, as derivlang reads them."""
    names = sorted({tag for row in tags for tag in row})
    units = offsets_of(np.array([len(row) for row in tags]))
    codes = np.array([names.index(tag) for row in tags for tag in row], np.int32)
    spans = Spans.from_tags("x", codes, complete_classes(names), units, given=tuple(names), scheme=scheme, **options)
    where = np.searchsorted(units, spans.start, "right") - 1
    found: list[list[Entity]] = [[] for _ in tags]
    for unit, a, b, kind in zip(where, spans.start, spans.end, spans.labels, strict=True):
        found[unit].append((int(a - units[unit]), int(b - units[unit]), spans.types[kind]))
    return found


def search(tags: list[list[str]]) -> SchemeSearch:
    found = SchemeSearch()
    for row in tags:
        found.add(pa.array([row], pa.list_(pa.string())))
    return found


@laws
@given(scheme=st.sampled_from(list(SCHEMES)), found=sentences())
def test_what_a_scheme_writes_is_read_again(scheme: str, found: list[tuple[int, list[Entity]]]) -> None:
    tags = tagged(found, scheme)
    assert read(tags, scheme) == [entities for _, entities in found]
    assert {tag[0] for row in tags for tag in row} <= {"O", *SCHEMES[scheme].prefixes}


@laws
@given(scheme=st.sampled_from(["IOB1", "IOB2", "IOE1", "IOE2", "BIOES", "BILOU"]), found=sentences())
def test_seqeval_reads_the_same_entities(scheme: str, found: list[tuple[int, list[Entity]]]) -> None:
    seqeval = pytest.importorskip("seqeval.scheme")
    if scheme == "IOE1":  # seqeval reads no E- that follows an O
        crowded = (one for _, row in found for one in itertools.pairwise(row))
        assume(not any(a[1] - a[0] == 1 and a[1] == b[0] and a[2] == b[2] for a, b in crowded))
    tags = tagged(found, scheme)
    theirs = seqeval.Entities(tags, getattr(seqeval, {"BIOES": "IOBES"}.get(scheme, scheme))).entities
    assert read(tags, scheme) == [[(e.start, e.end, e.tag) for e in row] for row in theirs]


@laws
@given(scheme=st.sampled_from(list(SCHEMES)), found=sentences())
def test_the_tags_decide_a_scheme_that_writes_them(scheme: str, found: list[tuple[int, list[Entity]]]) -> None:
    """Several schemes may write the same tags; each reads the same entities of them."""
    tags = tagged(found, scheme)
    detected = search(tags).result()
    assert tagged(found, detected) == tags
    assert read(tags, detected) == [entities for _, entities in found]


ANY = st.lists(
    st.lists(st.sampled_from(["O", *(f"{p}-{k}" for p in "BIESLUMW" for k in KINDS[:2])]), min_size=1, max_size=9),
    min_size=1,
    max_size=3,
)


@laws
@given(tags=ANY)
def test_repaired_tags_lose_no_label(tags: list[list[str]]) -> None:
    """Each word with a type is in an entity of this type, and an entity ends only where a tag or its type says so."""
    detected = search(tags).result()
    counts: Counter[str] = Counter()
    found = read(tags, detected, repair=True, counts=counts)
    for row, entities in zip(tags, found, strict=True):
        kinds = ["O"] * len(row)
        for a, b, kind in entities:
            kinds[a:b] = [kind] * (b - a)
        assert kinds == [tag.partition("-")[2] or "O" for tag in row]
        for (_, end, kind), (begin, _, other) in itertools.pairwise(entities):
            assert end < begin or kind != other or row[begin][0] in "BSUW" or row[end - 1][0] in "ESLUW"
    if counts["x-repaired"]:
        with pytest.raises(LayerError, match="ill-formed-tags"):
            read(tags, detected)
    else:
        assert read(tags, detected) == found


def test_one_sentence_in_another_scheme_decides_none() -> None:
    assert search([["B-PER", "E-PER"], ["B-PER", "I-PER"]]).result() == "BIOES"  # and the second is ill-formed
    assert search([["O", "I-PER"], ["O", "B-PER"]]).result() == "IOB2"
    assert search([["O", "I-PER"], ["I-PER", "B-PER"]]).result() == "IOB1"


# files


def entity_file(path: Path, tags: list[list[str]]) -> Path:
    words = itertools.count(1)
    path.write_text("\n".join("".join(f"w{next(words)}\t{tag}\n" for tag in row) for row in tags), "utf-8")
    return path


# Every prefix of every scheme occurs: entities of one, two and three words, with a neighbour of their type.
SAMPLE = [(12, [(0, 3, "PER"), (3, 4, "PER"), (5, 7, "LOC"), (7, 8, "PER"), (8, 10, "PER")]), (2, [(0, 2, "LOC")])]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_file_of_each_scheme_has_the_set_of_its_iob2(scheme: str, tmp_path: Path) -> None:
    """The same rows and classes as of IOB2, one message, and the file again from `undo`, from a chain of sets, too."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    ours = entity_file(tmp_path / "a" / "x.conll", tagged(SAMPLE, scheme))
    plain = entity_file(tmp_path / "b" / "x.conll", tagged(SAMPLE, "IOB2"))
    if scheme == "IOB2":
        made = make("inv", ours, tmp_path / "made")
        assert '"scheme": null' in json.dumps(manifest(made)["schema"])
    else:
        with pytest.warns(DerivlangWarning, match=scheme) as told:
            made = make("inv", ours, tmp_path / "made")
        assert len(told) == 1
    assert rows(made).equals(rows(make("inv", plain, tmp_path / "plain")))
    assert manifest(made)["schema"]["fields"][0]["classes"] == list(complete_classes(["B-LOC", "B-PER"]))
    right(made)
    assert undone(made, suffix=".conll") == ours.read_bytes()
    assert undone(make("perm", made, tmp_path / "chain"), suffix=".conll") == ours.read_bytes()


def test_class_numbers_of_another_scheme(tmp_path: Path) -> None:
    """A ClassLabel names its tags in any order; what is written has the names of IOB2."""
    names = ["S-PER", "O", "E-LOC", "I-LOC", "B-LOC", "E-PER", "I-PER", "B-PER"]
    tags = tagged(SAMPLE, "BIOES")
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")), ner_tags=datasets.List(datasets.ClassLabel(names=names))
    )
    data = {"tokens": [[f"w{i}" for i in range(len(row))] for row in tags], "ner_tags": tags}
    found = datasets.Dataset.from_dict(data, features=features)
    found.to_parquet(tmp_path / "x.parquet")
    with pytest.warns(DerivlangWarning, match="BIOES"):
        made = make("inv", tmp_path / "x.parquet", tmp_path / "made")
    classes = manifest(made)["schema"]["fields"][0]["classes"]
    written = [[classes[tag] for tag in reversed(row)] for row in rows(made)["ner_tags"].to_pylist()]
    entities = [sorted(e.partition("-")[2] for e in row if e != "O") for row in written]
    assert entities == [sorted(t.partition("-")[2] for t in row if t != "O") for row in tags]
    with pytest.warns(DerivlangWarning, match="BIOES"):
        mapped = map_dataset(found, "inv")
    assert mapped["ner_tags"] == rows(made)["ner_tags"].to_pylist()
    assert mapped.features["ner_tags"].feature.names == classes
    again = tmp_path / "again.jsonl"
    again.write_bytes(undone(made, suffix=".jsonl"))
    assert [json.loads(line)["ner_tags"] for line in again.read_text("utf-8").splitlines()] == tags
    assert pq.read_table(made / manifest(made)["splits"]["train"]["shards"][0]["file"]).num_rows == len(tags)


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize(
    ("tags", "line", "id"),
    [
        ([["B-PER", "O"], ["PER", "O"]], 4, "ill-formed-tags"),
        ([["B-PER", "O", "B-"]], 3, "ill-formed-tags"),
        ([["B-PER", "O", "_"]], 3, "ill-formed-tags"),
        ([["O", "PER", "PER"]], 2, "tags-without-prefix"),
        ([["NOUN", "VERB"]], 1, "tags-without-prefix"),
    ],
)
def test_a_tag_that_is_none_is_refused_whatever_is_repaired(
    tags: list[list[str]], line: int, id: str, repair: bool, tmp_path: Path
) -> None:
    """The label of the word would be lost."""
    source = entity_file(tmp_path / "x.conll", tags)
    with pytest.raises(DataError) as caught:
        make("inv", source, tmp_path / "made", repair_tags=repair)
    assert caught.value.id == id
    assert caught.value.where == f"{source}:{line}"
    assert not (tmp_path / "made").exists()


def test_the_scheme_is_no_part_of_other_fields() -> None:
    assert SchemeSearch(("O", "B-a")).of_field(Field("x", "entities", ("O", "B-a"))) == Field(
        "x", "entities", ("O", "B-a")
    )
