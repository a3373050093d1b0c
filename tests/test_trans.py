"""trans: an involution on types that commutes with every order, keeps exact shares, and survives its file."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from derivlang.core.errors import DataError, UsageError
from derivlang.core.keys import hash_types
from derivlang.core.lexicon import SPECIALS, Lexicon, special_types
from derivlang.pipeline import Pipeline
from derivlang.transforms.fitting import read_lexicon
from derivlang.transforms.scripts import load_script, script_names
from derivlang.transforms.trans import Trans, map_script
from tests import reference
from tests.strategies import any_word, batch_of, derive, few_words, laws, scan_words, sentence_lists, units_of

GEORGIAN = load_script("georgian")
scripts = st.sampled_from(script_names())
# Words in Latin and Georgian letters, so that a type and its image often occur both.
clashing = st.text(st.sampled_from("abcABCაბცᲐᲑ1.-"), min_size=1, max_size=4)
vocabularies = st.lists(st.one_of(clashing, any_word, st.sampled_from(SPECIALS)), unique=True, max_size=30)
bys = st.sampled_from(["type", "frequency", "mass"])


def types_of(words: list[str]) -> pa.Array:
    return pa.array(words, pa.string())


def fitted(spec: str, words: list[str], counts: list[int] | None = None) -> Lexicon:
    return Pipeline.parse(spec).fit(types_of(words), np.array(counts or [1] * len(words), np.int64))


def image(words: list[str], lexicon: Lexicon) -> list[str]:
    return [str(word) for word in lexicon.apply(types_of(words)).to_pylist()]


def kept(lexicon: Lexicon) -> set[str]:
    """The types that the lexicon of one transform was fitted to keep."""
    (step,) = lexicon.steps
    reference_ = step.reference  # type: ignore[attr-defined]
    return {word for word, flag in zip(reference_.types.to_pylist(), reference_.kept, strict=True) if flag}


def loaded(pipeline: Pipeline, text: str | None, where: str = "lexicon.tsv") -> Lexicon:
    assert text is not None
    return pipeline.fit(saved=text, where=where)


def counts_for(words: list[str]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 40), min_size=len(words), max_size=len(words))


# the map


def test_golden() -> None:
    batch = batch_of([["Welcome", "to", "ACL", "."]])
    assert sentence_lists(derive("trans", batch).derived) == [["Წელცომე", "ტო", "ᲐᲪᲚ", "．"]]
    assert sentence_lists(derive("trans,inv", batch).derived) == [["ᲐᲪᲚ", "ტო", "Წელცომე", "．"]]


@laws
@given(st.lists(any_word, max_size=15), scripts)
def test_a_script_on_types_is_the_script_on_text(words: list[str], name: str) -> None:
    script = load_script(name)
    found = map_script(types_of(words), script)
    assert found.to_pylist() == [script.map_text(word) for word in words]
    found.validate(full=True)
    assert map_script(types_of(words).slice(1), script).to_pylist() == found.to_pylist()[1:]


@laws
@given(vocabularies, scripts)
def test_trans_undoes_itself_and_specials_stay(words: list[str], script: str) -> None:
    lexicon = Pipeline.parse(f"trans:{script}").fit()
    once = image(words, lexicon)
    assert image(once, lexicon) == image(once, lexicon.invert()) == words
    assert len(set(once)) == len(words)
    for word, target in zip(words, once, strict=True):
        assert target == (word if word in SPECIALS else load_script(script).map_text(word))


@pytest.mark.parametrize("script", script_names())
def test_the_image_of_a_special_token_is_no_exception_to_one_to_one(script: str) -> None:
    """A word of the text that is spelled like f("<unk>") must not become "<unk>", from which nothing leads back."""
    words = [*SPECIALS, *(load_script(script).map_text(special) for special in SPECIALS), "word"]
    lexicon = Pipeline.parse(f"trans:{script}").fit()
    once = image(words, lexicon)
    assert once[: len(SPECIALS)] == list(SPECIALS)
    assert len(set(once)) == len(words)
    assert image(once, lexicon.invert()) == words


def test_specials_are_whole_words() -> None:
    words = ["<unk>", "<unk>.", "unk", "<UNK>", "[MASK]", "MASK"]
    assert image(words, Pipeline.parse("trans").fit())[:1] == ["<unk>"]
    assert special_types(types_of(words)).tolist() == [True, False, False, False, True, False]
    assert special_types(types_of([])).tolist() == []


@laws
@given(units_of(st.one_of(few_words, any_word, scan_words)), scripts)
@example([[]], "private")
def test_trans_commutes_with_every_order_draws_included(rows: list[list[str]], script: str) -> None:
    batch = batch_of(rows)
    for order in ("inv", "inv:final=move", "perm", "perm:window=3", "perm,inv,perm:seed=4"):
        after, before = derive(f"trans:{script},{order}", batch), derive(f"{order},trans:{script}", batch)
        assert sentence_lists(after.derived) == sentence_lists(before.derived)
        assert after.order.index.tolist() == before.order.index.tolist()
        twice = derive(f"trans:{script},{order},trans:{script}", batch)
        assert sentence_lists(twice.derived) == sentence_lists(derive(order, batch).derived)


@laws
@given(units_of(clashing))
def test_derived_types_are_distinct_and_sentences_keep_their_tails(rows: list[list[str]]) -> None:
    """Sentences are those of the source: `。` may be what `.` becomes, and is no mark of the derived text."""
    batch = batch_of([[*row, "."] for row in rows])
    out = derive("trans:copy,inv", batch).derived
    assert len(set(out.types.to_pylist())) == len(out.types)
    assert out.tails.tolist() == batch.tails.tolist()


# overlap


@laws
@given(st.data(), st.integers(1, 99), bys, st.integers(0, 2))
def test_overlap_is_the_reference_s(data: st.DataObject, percent: int, by: str, seed: int) -> None:
    words = data.draw(vocabularies)
    counts = data.draw(counts_for(words))
    lexicon = fitted(f"trans:overlap={percent}:by={by}:seed={seed}", words, counts)
    stream = f"trans|seed={seed}|rule=1|occurrence=0"
    expected = reference.overlap(words, counts, percent, by, GEORGIAN.map_text, stream, SPECIALS)
    assert kept(lexicon) == expected
    for word, target in zip(words, image(words, lexicon), strict=True):
        stays = word in expected or word in SPECIALS
        assert target == (word if stays else GEORGIAN.map_text(word))


@pytest.mark.parametrize("by", ["type", "frequency"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 50, 199])
def test_exactly_k_types_stay(by: str, n: int) -> None:
    words = [*SPECIALS, *(f"w{i}" for i in range(n))]
    counts = [1000] * len(SPECIALS) + [n - i for i in range(n)]
    for percent in (1, 2, 10, 25, 33, 50, 67, 75, 98, 99):
        lexicon = fitted(f"trans:overlap={percent}:by={by}", words, counts)
        k = int(percent * n / 100 + 0.5)
        assert len(kept(lexicon)) == k
        same = [word for word, target in zip(words, image(words, lexicon), strict=True) if word == target]
        assert len(same) == k + len(SPECIALS)
        if by == "frequency":
            assert kept(lexicon) == {f"w{i}" for i in range(k)}


def test_exactly_k_types_stay_though_some_come_in_pairs() -> None:
    """A type without a partner fills the last place where a pair no longer fits."""
    pairs = [f"w{i}" for i in range(40)]
    words = [*pairs, *(GEORGIAN.map_text(word) for word in pairs), *(f"x{i}" for i in range(40))]
    for percent in range(1, 100, 2):
        for by in ("type", "frequency"):
            found = kept(fitted(f"trans:overlap={percent}:by={by}", words))
            assert len(found) == int(percent * len(words) / 100 + 0.5)
            for word in pairs:
                assert (word in found) == (GEORGIAN.map_text(word) in found)


@laws
@given(st.data(), st.integers(1, 99))
def test_mass_is_the_shortest_prefix_that_reaches_the_share(data: st.DataObject, percent: int) -> None:
    n = data.draw(st.integers(1, 40))
    words = [f"w{i}" for i in range(n)]
    counts = data.draw(counts_for(words))
    found = kept(fitted(f"trans:overlap={percent}:by=mass", words, counts))
    count = dict(zip(words, counts, strict=True))
    total = sum(counts)
    mass = sum(count[word] for word in found)
    assert 100 * mass >= percent * total
    stream = "trans|seed=1|rule=1|occurrence=0"
    keys = {
        word: reference.draw(
            stream, (reference.word_hash(word) + reference.word_hash(GEORGIAN.map_text(word))) % 2**64, 0
        )
        for word in words
    }
    last = max(found, key=lambda word: keys[word])
    assert 100 * (mass - count[last]) < percent * total
    assert all(keys[word] > keys[last] for word in words if word not in found)


@laws
@given(st.data(), st.integers(1, 99), bys)
def test_overlap_is_invertible_also_beyond_the_reference(data: st.DataObject, percent: int, by: str) -> None:
    """w and f(w) both occur, in the reference, beside it, or one here and one there."""
    words = data.draw(vocabularies)
    lexicon = fitted(f"trans:overlap={percent}:by={by}", words, data.draw(counts_for(words)))
    more = data.draw(st.lists(st.one_of(clashing, any_word), max_size=20))
    both = list(dict.fromkeys([*words, *more, *(GEORGIAN.map_text(word) for word in [*words, *more])]))
    both = [word for word in both if word in SPECIALS or GEORGIAN.map_text(word) not in SPECIALS]
    once = image(both, lexicon)
    assert image(once, lexicon.invert()) == both
    assert len(set(once)) == len(both)
    for word, target in zip(both, once, strict=True):
        assert target in (word, GEORGIAN.map_text(word))


def test_the_share_of_unseen_types_that_stay() -> None:
    unseen = [f"unseen-{i}" for i in range(20_000)]
    for percent in (10, 25, 50, 90):
        for by, expected in (("type", percent), ("mass", percent), ("frequency", 0)):
            lexicon = fitted(f"trans:overlap={percent}:by={by}", ["a", "b"])
            same = sum(a == b for a, b in zip(unseen, image(unseen, lexicon), strict=True))
            assert abs(same / 200 - expected) < 1.8  # five standard deviations at 50 %


def test_overlaps_are_nested_and_other_seeds_keep_others() -> None:
    words = [f"w{i}" for i in range(400)]
    sets = [kept(fitted(f"trans:overlap={p}", words)) for p in (10, 25, 50, 75)]
    assert all(small < large for small, large in itertools.pairwise(sets))
    other = kept(fitted("trans:overlap=50:seed=2", words))
    assert 60 < len(sets[2] & other) < 140  # 100 of 200 by chance, sd 7
    assert kept(fitted("trans:greek:overlap=50", words)) != set()


def test_the_kept_set_does_not_depend_on_the_order_of_the_vocabulary() -> None:
    words = [f"w{i}" for i in range(60)] + [GEORGIAN.map_text(f"w{i}") for i in range(20)]
    counts = [i % 7 + 1 for i in range(80)]
    for by in ("type", "frequency", "mass"):
        one = fitted(f"trans:overlap=30:by={by}", words, counts)
        two = fitted(f"trans:overlap=30:by={by}", words[::-1], counts[::-1])
        assert kept(one) == kept(two)


def test_no_overlap_and_full_overlap_need_no_reference() -> None:
    words = ["a", "b", "ა", "<unk>"]
    assert image(words, Pipeline.parse("trans:overlap=100").fit()) == words
    assert image(words, Pipeline.parse("trans:overlap=0").fit()) == ["ა", "ბ", "a", "<unk>"]
    with pytest.raises(UsageError, match="needs-lexicon"):
        Pipeline.parse("trans:overlap=1").fit()
    with pytest.raises(UsageError, match="needs-lexicon"):
        Pipeline.parse("inv,trans:overlap=99").fit()


@pytest.mark.parametrize("by", ["frequency", "mass"])
def test_a_reference_without_the_counts_that_it_is_ranked_by_is_an_error(by: str) -> None:
    with pytest.raises(UsageError):
        Pipeline.parse(f"trans:overlap=50:by={by}").fit(types_of(["a", "b"]))


def test_an_empty_reference() -> None:
    for by in ("type", "frequency", "mass"):
        lexicon = fitted(f"trans:overlap=50:by={by}", [])
        assert image([], lexicon) == []
        pipeline = Pipeline.parse(f"trans:overlap=50:by={by}")
        again = loaded(pipeline, pipeline.save(lexicon))
        assert image(["a", "ab", "abc"], again) == image(["a", "ab", "abc"], lexicon)


def test_mass_of_a_vocabulary_that_never_occurs() -> None:
    """The shortest prefix that reaches P % of nothing is empty."""
    assert kept(fitted("trans:overlap=50:by=mass", ["a", "b"], [0, 0])) == set()


# the file


AWKWARD = [
    "tab\there",
    "back\\slash",
    "\\",
    "\\\\",
    "\\t",
    "\\n",
    "\\\t",
    "new\nline",
    "\r",
    "\r\n",
    "trailing\n",
    "a b",
    " a",
    "a ",
    "#",
    "# comment",
    "kept",
    "type",
    "é",
    "𝕎",
    "\u00a0",
    "\ufeff",
    "\ufeffx",
    '"',
    '""',
]
LINE_ENDS = ["v\x0bt", "f\x0cf", "\x1c", "\x1d", "\x1e", "n\x85l", "l\u2028s", "p\u2029s"]  # for str.splitlines


@laws
@given(st.data(), st.integers(1, 99), bys)
def test_a_saved_lexicon_gives_the_same_map(data: st.DataObject, percent: int, by: str) -> None:
    words = data.draw(vocabularies.map(lambda words: list(dict.fromkeys([*words, *AWKWARD]))))
    pipeline = Pipeline.parse(f"trans:overlap={percent}:by={by},inv")
    lexicon = pipeline.fit(types_of(words), np.array(data.draw(counts_for(words)), np.int64))
    text = pipeline.save(lexicon)
    again = loaded(pipeline, text)
    assert pipeline.save(again) == text
    unseen = data.draw(st.lists(any_word, max_size=10))
    probe = [*words, *unseen, *(GEORGIAN.map_text(word) for word in words)]
    assert image(probe, again) == image(probe, lexicon)
    assert kept(again) == kept(lexicon)


@pytest.mark.parametrize("word", [*AWKWARD, *LINE_ENDS, "# derivlang lexicon: trans", "a\tb\nc\\d\re"])
def test_any_word_survives_the_file(word: str, tmp_path: Path) -> None:
    words = ["before", word, "after"]
    for percent in (1, 99):
        pipeline = Pipeline.parse(f"trans:overlap={percent}:by=frequency")
        lexicon = pipeline.fit(types_of(words), np.array([3, 2, 1]))
        text = pipeline.save(lexicon)
        assert text is not None
        (tmp_path / "lexicon.tsv").write_bytes(text.encode())
        again = loaded(pipeline, read_lexicon(tmp_path / "lexicon.tsv"))
        assert image(words, again) == image(words, lexicon)
        assert kept(again) == kept(lexicon)


def test_the_file_says_type_image_count_and_what_was_done() -> None:
    pipeline = Pipeline.parse("trans:overlap=50:by=frequency")
    text = pipeline.save(pipeline.fit(types_of(["the", "<unk>", "cat"]), np.array([9, 5, 4])))
    assert text == (
        "# derivlang lexicon: trans:overlap=50:by=frequency:table=2\n"
        "type\timage\tcount\tkept\n"
        "the\tthe\t9\tkept\n"
        "cat\tცატ\t4\tchanged\n"
    )
    assert Pipeline.parse("trans,inv").save(Pipeline.parse("trans,inv").fit()) is None


def test_two_fitted_transforms_of_a_pipeline() -> None:
    words = [f"w{i}" for i in range(50)]
    pipeline = Pipeline.parse("trans:overlap=30,inv,trans:greek:overlap=60:by=mass,trans")
    lexicon = pipeline.fit(types_of(words), np.arange(1, 51))
    again = loaded(pipeline, pipeline.save(lexicon))
    assert image([*words, "x", "y"], again) == image([*words, "x", "y"], lexicon)
    assert image(image(words, lexicon), lexicon.invert()) == words


def test_a_saved_lexicon_is_used_as_far_as_it_goes() -> None:
    """`--t b` on the output of `--t a`: what a fitted holds, and b is fitted on what a gives."""
    words, counts = [f"w{i}" for i in range(50)], np.arange(1, 51)
    first, both = Pipeline.parse("trans:overlap=30"), Pipeline.parse("trans:overlap=30,trans:greek:overlap=60")
    lexicon = first.fit(types_of(words), counts)
    more = both.fit(types_of(words[:20]), counts[:20], saved=first.save(lexicon) or "")
    assert kept(Lexicon(more.steps[:1])) == kept(lexicon)
    after_first = image(words[:20], lexicon)
    assert kept(Lexicon(more.steps[1:])) <= set(after_first)
    assert len(kept(Lexicon(more.steps[1:]))) == 12


@pytest.mark.parametrize(
    "other",
    [
        "trans",
        "inv",
        "trans:overlap=26",
        "trans:overlap=25:by=mass",
        "trans:overlap=25:seed=2",
        "trans:greek:overlap=25",
        "trans:overlap=25,trans:overlap=25",
        "trans,trans:overlap=25",  # its second step was never fitted on Georgian
    ],
)
def test_a_lexicon_of_another_pipeline_is_refused(other: str) -> None:
    fitted_for = Pipeline.parse("trans:overlap=25,inv")
    text = fitted_for.save(fitted_for.fit(types_of(["a", "b", "c", "d"]), np.ones(4, np.int64)))
    with pytest.raises(UsageError, match="other-lexicon"):
        loaded(Pipeline.parse(other), text)
    assert loaded(Pipeline.parse("inv,trans:overlap=25"), text).steps  # orders do not matter


@pytest.mark.parametrize(
    "damage",
    [
        "\n",
        "# derivlang lexicon: trans:overlap=25\ntype\timage\tcount\tkept\na\tა\t1\n",
        "# derivlang lexicon: trans:overlap=25\ntype\timage\tcount\tkept\na\tა\tone\tkept\n",
        "# derivlang lexicon: trans:overlap=25\ntype\timage\tcount\tkept\na\tა\t1\tmaybe\n",
        "type\timage\tcount\tkept\na\tა\t1\tkept\n",
    ],
)
def test_a_damaged_lexicon_is_an_error_with_its_place(damage: str) -> None:
    with pytest.raises((DataError, UsageError), match=r"my\.tsv"):
        loaded(Pipeline.parse("trans:overlap=25"), damage, "my.tsv")


def test_a_lexicon_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lexicon"):
        read_lexicon(tmp_path / "none.tsv")
    (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="lexicon"):
        read_lexicon(tmp_path / "binary.tsv")


# what else there is


def test_pairs_are_the_types_that_are_no_special_tokens() -> None:
    table = Pipeline.parse("trans").fit().pairs(types_of(["to", "<unk>", "ACL"]))
    assert table.to_pylist() == [{"source": "to", "derived": "ტო"}, {"source": "ACL", "derived": "ᲐᲪᲚ"}]


def test_lexicons_chain() -> None:
    one, two, both = (Pipeline.parse(spec).fit() for spec in ("trans", "trans:greek", "trans,trans:greek"))
    words = ["a", "Welcome", "<s>"]
    assert image(words, both) == image(image(words, one), two)
    assert image(image(words, both), both.invert()) == words
    assert one.injective
    assert not one.is_identity
    assert Lexicon().is_identity


@pytest.mark.parametrize("spec", ["trans:offset=200000", "trans:clones=3", "trans:clones=3:overlap=10"])
def test_offsets_and_clones_in_a_spec(spec: str) -> None:
    pipeline = Pipeline.parse(spec)
    assert str(pipeline) == pipeline.stored == spec
    assert Pipeline.from_stored(pipeline.stored) == pipeline
    (trans,) = pipeline.transforms
    assert trans.stream(0) == Trans().stream(0)
    assert not pipeline.warnings(fitted(spec, ["Café", "ضرب"]), types_of(["Café", "ضرب"]), np.array([1, 1]))


def test_the_sixth_clone_is_the_script_private() -> None:
    words = ["Welcome", "to", "ACL", "<unk>", "😀"]
    images = [image(words, Pipeline.parse(f"trans:{way}").fit()) for way in ("clones=6", "offset=983040", "private")]
    assert images[0] == images[1] == images[2] != words


@pytest.mark.parametrize("spec", ["trans:offset=200000:clones=1", "trans:greek:clones=1", "trans:greek:offset=200000"])
def test_one_way_of_writing_words_at_a_time(spec: str) -> None:
    with pytest.raises(UsageError, match="each say how words are written"):
        Pipeline.parse(spec)


@pytest.mark.parametrize(
    ("spec", "what"), [("offset=5", "from 131072 to 786432, or 983040"), ("clones=7", "at most 6")]
)
def test_an_offset_or_clone_that_does_not_exist(spec: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Pipeline.parse(f"trans:{spec}")


def test_ideographs_among_the_images_become_letters() -> None:
    lexicon = Pipeline.parse("trans:offset=200000").fit()
    assert image(["a𰶡", "𰶡b", "𠮷"], lexicon) == ["𰶡a", "a𰶢", "𠮷"]


def test_an_unknown_script_is_named_with_its_neighbours() -> None:
    with pytest.raises(UsageError, match="georgian"):
        Trans(script="gorgian")


def test_a_lexicon_applies_to_a_sliced_or_large_array() -> None:
    words = types_of(["x", "a", "b", "<unk>"])
    lexicon = fitted("trans:overlap=50", ["a", "b", "c"])
    whole = lexicon.apply(words).to_pylist()
    assert lexicon.apply(words.slice(2)).to_pylist() == whole[2:]
    assert len(set(hash_types(lexicon.apply(words)).tolist())) == 4


def test_counts_of_types_in_both_scripts_in_a_derived_batch() -> None:
    """`ab` and `აბ` both in the text: each becomes the other, and none is lost."""
    batch = batch_of([["ab", "აბ", "ab", "x", "."]])
    out = derive("trans", batch).derived
    assert Counter(sentence_lists(out)[0]) == Counter({"აბ": 2, "ab": 1, "ხ": 1, "．": 1})
