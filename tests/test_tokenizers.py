"""Tokenizers and twins: derived text has the source's ids, exactly, for every script and whatever the text holds."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.arrow import string_array
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.lexicon import SPECIALS
from derivlang.formats.words import Splitter
from derivlang.lexical.bpe import SPECIAL_TOKENS, SUFFIX, WHITE_SPACE, Bpe, train_bpe
from derivlang.lexical.encoding import Encoded, SubwordEncoder
from derivlang.lexical.settings import TokenizerOptions, TwinOptions
from derivlang.lexical.tokenizer import RECIPE, TOKENIZER, WORDS, Tokenizer
from derivlang.lexical.train import read_words, train
from derivlang.lexical.twin import JointIds, Twin, check_unmarked, clashes, joint_file, make_twin, twin_of
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.transforms.scripts import load_script, script_names
from tests.commands import run
from tests.helpers import make, read_text
from tests.real import SHARED, needs_data
from tests.strategies import batch_of, codes_of, few_words, laws

TEXT = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest "
    "a<unk>b a<unk>b a<unk>b (<mask>) (<mask>) x</w> x</w> e</w>y e</w>y e</w>y e</w> e</w> "
    "\ufefflow \ufefflow \u2581low \u2581low ლოწ ლოწ ლოწ newლ 10\u00a0000 10\u00a0000 <unk> <unk> [MASK] 𠀀 𠀀 "
) * 3
SCRIPTS = [*script_names(), "offset=200000", "offset=393216"]
each_script = pytest.mark.parametrize("name", SCRIPTS)
VOCAB = SHARED / "text" / "wikitext-2"

# Letters of the source and of the scripts, what reads in two ways, and whatever Unicode holds.
_PARTS = [
    *"low newst ლოწ \u2581 \ufeff \u00a0 \u3000 < > / [ ] u n k w 𠀀 \ufdd0".split(" "),
    *SPECIAL_TOKENS,
    SUFFIX,
    *(load_script(name).map_text(part) for name in SCRIPTS for part in ("<unk>", "<s>", "[MASK]", SUFFIX, "low")),
]
odd_words = st.lists(
    st.one_of(st.sampled_from(_PARTS), st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5
).map(lambda parts: re.sub("[\t\n\r ]", "_", "".join(parts)))
words_of = st.lists(st.one_of(st.sampled_from(_PARTS), few_words, odd_words), min_size=1, max_size=8)


@cache
def small() -> Tokenizer:
    return Tokenizer(trained(TEXT.split(" "), 85))


def trained(words: list[str], size: int, min_frequency: int = 2) -> Bpe:
    return train_bpe(*counted(words), size, min_frequency)


def counted(words: list[str]) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.int64]]]:
    codes, types = codes_of([word for word in words if word])
    return types, np.bincount(codes).astype(np.int64)


@cache
def library(name: str | None) -> Any:
    return (small() if name is None else twin_of(small(), load_script(name))).build()


# training


def test_merges_are_those_of_the_paper() -> None:
    words = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    bpe = trained(words, 12 + 14 + 4)
    assert [left + right for left, right in bpe.merges[:3]] == ["es", "est</w>", "lo"]
    assert bpe.entries[:5] == ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    assert set(bpe.entries[: bpe.n_special]) == set(SPECIALS)


def test_training_from_counts_is_training_on_the_text() -> None:
    """The same merges as the library's own trainer finds in the running text, where no tie decides."""
    from tokenizers import Tokenizer as Library
    from tokenizers import models, pre_tokenizers, trainers

    words = ["hugs"] * 50 + ["pun"] * 21 + ["bugs"] * 11 + ["pugs"] * 5
    theirs = Library(models.BPE(end_of_word_suffix=SUFFIX))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.train_from_iterator([" ".join(words)], trainers.BpeTrainer(vocab_size=14, end_of_word_suffix=SUFFIX))
    wanted = [tuple(merge) for merge in json.loads(theirs.to_str())["model"]["merges"]]
    ours = trained(words, 12 + len({(c, w[-1] == c) for w in words for c in w}) + len(wanted))
    assert len(wanted) > 3
    assert list(ours.merges) == wanted


def test_training_does_not_depend_on_the_order_of_types() -> None:
    types, counts = counted(TEXT.split(" "))
    turned = types.take(pa.array(range(len(types) - 1, -1, -1)))
    assert train_bpe(turned, counts[::-1].copy(), 85).merges == small().bpe.merges
    assert train_bpe(turned, counts[::-1].copy(), 85).entries == small().bpe.entries


def test_no_entry_reads_in_two_ways() -> None:
    """`e</w>` inside a word would be the same string as a last `e`; a special token would be an entry twice. So in
    every twin: what a script makes `</w>`, or a special token, inside a word is no entry."""
    named = script_names()
    seen = [SUFFIX, "<s>", *(load_script(name).map_text(text_) for name in named for text_ in (SUFFIX, "<s>"))]
    words = ["he", *(f"{e}{text_}{c}" for text_ in seen for c in "abcd" for e in ("e", ""))] * 4
    with pytest.raises(UsageError) as error:
        trained(words, 9999)
    bpe = trained(words, int(re.findall(r"--vocab-size (\d+) or less", str(error.value))[0]))
    assert "he</w>" in bpe.entries
    assert not any(left.endswith(SUFFIX) for left, _ in bpe.merges)
    assert not {entry for merge in bpe.merges for entry in merge} & set(SPECIAL_TOKENS)
    source = Tokenizer(bpe)
    built = source.build()
    for name in named:
        derived = Pipeline.parse(f"trans:{name}").fit().apply(string_array(words)).to_pylist()
        twin = twin_of(source, load_script(name))
        assert len(set(twin.bpe.entries)) == len(set(bpe.entries)) == bpe.size
        assert twin.build().encode(" ".join(derived)).ids == built.encode(" ".join(words)).ids


@pytest.mark.parametrize(
    ("size", "figure"), [(20, r"--vocab-size (\d+) or more"), (9999, r"--vocab-size (\d+) or less")]
)
def test_a_size_that_the_words_do_not_allow_names_one_that_they_do(size: int, figure: str) -> None:
    with pytest.raises(UsageError) as error:
        trained(TEXT.split(" "), size)
    found = re.search(figure, str(error.value))
    assert found is not None
    possible = int(found[1])
    assert trained(TEXT.split(" "), possible).size == possible
    with pytest.raises(UsageError):
        trained(TEXT.split(" "), possible + (1 if size == 9999 else -1))
    with pytest.raises(UsageError) as again:
        trained(TEXT.split(" "), size, 1)
    assert "--min-frequency" not in str(again.value)


def test_no_words() -> None:
    with pytest.raises(DataError, match="no words"):
        trained(["<unk>", "[MASK]"], 100)


def test_white_space_is_what_divides_a_text() -> None:
    from tokenizers import pre_tokenizers

    split = pre_tokenizers.WhitespaceSplit()
    ours = re.compile(f"[{WHITE_SPACE}]")
    for point in [*range(0x20000), *range(0xE0000, 0xE0200)]:
        if not 0xD800 <= point < 0xE000:
            text_ = f"a{chr(point)}b"
            assert (len(split.pre_tokenize_str(text_)) == 2) == bool(ours.search(text_)), hex(point)


# twins


def same_ids(name: str, words: list[str]) -> None:
    """encode(trans(text)) is encode(text)."""
    derived = Pipeline.parse(f"trans:{name}").fit().apply(string_array(words)).to_pylist()
    assert library(name).encode(" ".join(derived)).ids == library(None).encode(" ".join(words)).ids


@each_script
@laws
@given(words=words_of)
def test_a_twin_gives_the_ids_of_the_source(name: str, words: list[str]) -> None:
    same_ids(name, words)


@each_script
def test_a_twin_gives_the_ids_of_the_source_for_all_that_is_odd(name: str) -> None:
    script = load_script(name)
    words = [word for word in dict.fromkeys(_PARTS) if word]
    same_ids(name, words)
    same_ids(name, [a + b for a in words for b in words])
    same_ids(name, [f"x{script.map_text(token)}y" for token in SPECIALS])
    same_ids(name, TEXT.split(" "))


@needs_data
@pytest.mark.slow
@each_script
def test_a_twin_gives_the_ids_of_the_source_on_all_of_wikitext_2(name: str, wikitext: Tokenizer) -> None:
    source, twin = wikitext.build(), twin_of(wikitext, load_script(name)).build()
    lexicon = Pipeline.parse(f"trans:{name}").fit()
    lines = 0
    for split in ("train", "valid", "test"):
        for batch in read_text(VOCAB / f"wiki.{split}.tokens", Splitter("space")):
            derived = pa.compute.binary_join(
                pa.ListArray.from_arrays(
                    pa.array(batch.unit_words, pa.int32()), lexicon.apply(batch.types).take(pa.array(batch.words))
                ),
                " ",
            ).to_pylist()
            originals = pa.compute.binary_join(batch.unit_lists(), " ").to_pylist()
            for start in range(0, len(originals), 1000):
                part = slice(start, start + 1000)
                ours, theirs = source.encode_batch(originals[part]), twin.encode_batch(derived[part])
                assert all(a.ids == b.ids for a, b in zip(ours, theirs, strict=True))
            lines += len(originals)
    assert lines == 29_119


@pytest.fixture(scope="module")
def wikitext(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    out = tmp_path_factory.mktemp("wikitext") / "tok"
    train(SourceRequest(str(VOCAB)), out)
    return Tokenizer.load(out)


def test_a_special_token_is_a_whole_word() -> None:
    encode = library(None).encode
    assert encode("<unk>").ids == [3]
    assert encode("low <mask> [MASK]\n<s>").tokens[1:] == ["<mask>", "[MASK]", "<s>"]
    for word in ("a<unk>b", "(<mask>)", "<s></s>", "low\u00a0<s>"):
        inside = encode(word).ids
        assert all(i == 3 or i >= len(SPECIALS) for i in inside), word
        assert len(inside) > 2


def test_twins_share_no_entry_but_special_tokens_and_what_no_script_moves() -> None:
    twin = twin_of(small(), load_script("private"))
    plain = set(small().bpe.entries[12:]) & set(twin.bpe.entries[12:])
    assert plain <= {"𠀀", "𠀀</w>", "\u00a0", "\u00a0</w>"}
    assert twin.bpe.entries[:12] == small().bpe.entries[:12]


@each_script
def test_the_twin_of_a_twin_is_the_source(name: str) -> None:
    script = load_script(name)
    again = twin_of(twin_of(small(), script), script)
    assert again.bpe.entries == small().bpe.entries
    assert again.bpe.merges == small().bpe.merges


def test_a_twin_under_an_offset_needs_a_vocabulary_without_its_special_tokens() -> None:
    """The source's tokenizer does not mark `<s>` in the letters of an offset, so the twin could not follow it."""
    source = Tokenizer(trained(["low", "\U00030d7clow"] * 3, 12 + 5))
    check_unmarked(small(), load_script("offset=200000"))
    check_unmarked(source, load_script("private"))
    with pytest.raises(DataError, match="begin special tokens: \U00030d7c"):
        check_unmarked(source, load_script("offset=200000"))


def test_a_joint_file_is_refused_where_letters_are_in_both() -> None:
    georgian = load_script("georgian")
    found = clashes(small(), georgian)
    assert {"ლ", "ო"} & set(found)
    with pytest.raises(DataError, match="also the image of one") as error:
        joint_file(small(), twin_of(small(), georgian), georgian)
    assert found[0] in str(error.value)


@given(words=st.lists(st.sampled_from("low lower newest <unk> [MASK] a<unk>b lowest wow".split()), min_size=1))
def test_a_joint_file_gives_the_joint_ids(words: list[str]) -> None:
    source = Tokenizer(trained("low lower newest a<unk>b lowest wow".split() * 9, 40))
    private = load_script("private")
    joint = joint_file(source, twin_of(source, private), private)
    ids = JointIds(source.size, source.n_special)
    assert joint.size == ids.size == 2 * source.size - 12
    line, built = " ".join(words), joint.build()
    ours = source.build().encode(line).ids
    assert built.encode(line).ids == ours
    derived = " ".join(Pipeline.parse("trans:private").fit().apply(string_array(words)).to_pylist())
    assert built.encode(derived).ids == ids.table()[ours].tolist()


# joint ids


def test_joint_ids() -> None:
    encoded = Encoded(np.array([3, 20, 21, 50], np.int32), np.array([0, 1, 3, 4]))
    exact = JointIds(100, 12)
    assert (exact.shift, exact.size) == (88, 188)
    assert exact.of(encoded).tolist() == [3, 108, 109, 138]
    assert exact.of(encoded, np.array([True, True, False])).tolist() == [3, 20, 21, 138]
    assert len(set(exact.table().tolist()) | set(range(100))) == 188


# encoding


@laws
@given(lines=st.lists(words_of, min_size=1, max_size=4))
def test_types_once_is_the_text(lines: list[list[str]]) -> None:
    encoder = SubwordEncoder(small())
    theirs = [i for line in lines for i in library(None).encode(" ".join(line)).ids]
    batch = batch_of(lines)
    encoded = encoder.batch(batch)
    assert encoded.ids.tolist() == theirs
    assert encoded.ids.dtype == np.int32
    assert encoded.n_words == batch.n_words
    one = [library(None).encode(word).ids for line in lines for word in line]
    assert np.diff(encoded.offsets).tolist() == [len(ids) for ids in one]


def test_a_growing_vocabulary_and_a_short_memory_change_nothing() -> None:
    lines = [[f"low{k}x{i % k}" for i in range(50)] for k in (3, 20, 7, 50)]
    remembers, forgets = SubwordEncoder(small()), SubwordEncoder(small(), most=5)
    for line in lines:
        batch = batch_of([line])
        want = library(None).encode(" ".join(line)).ids
        assert remembers.batch(batch).ids.tolist() == want
        assert forgets.batch(batch).ids.tolist() == want
    assert remembers.n_types == 3 + 20 + 7 + 50
    assert forgets.n_types == 50  # those of the last batch: it had more than five before
    assert SubwordEncoder(small()).batch(batch_of([])).n_words == 0


def test_a_space_inside_a_word_divides_it_and_starts_no_special_token() -> None:
    spaced, written = (SubwordEncoder(small()).types(string_array([word])) for word in ("low <unk>", "low\u00a0<unk>"))
    assert spaced.ids.tolist() == written.ids.tolist() == library(None).encode("low\u00a0<unk>").ids
    assert SubwordEncoder(small()).types(string_array(["\u00a0", "low"])).offsets.tolist()[:2] == [0, 0]


# folders


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lines = ["low lower newest widest <unk> Welcome to ACL .", "the low and the new , wide ."] * 20
    (tmp_path / "a.tokens").write_text("\n".join(lines) + "\n", "utf-8")
    train(SourceRequest(str(tmp_path / "a.tokens")), tmp_path / "tok", TokenizerOptions(vocab_size=60))
    return tmp_path


def test_a_folder_is_read_back_and_is_the_same_each_time(source: Path) -> None:
    train(SourceRequest(str(source / "a.tokens")), source / "again", TokenizerOptions(vocab_size=60))
    files = {path.name for path in (source / "tok").iterdir()}
    assert files == {TOKENIZER, "tokenizer_config.json", RECIPE, WORDS}
    for name in files:
        assert (source / "tok" / name).read_bytes() == (source / "again" / name).read_bytes()
    loaded = Tokenizer.load(source / "tok")
    assert loaded.size == 60
    types, counts = read_words(source / "tok")
    assert dict(zip(types.to_pylist(), counts.tolist(), strict=True))["the"] == 40
    recipe = loaded.recipe
    assert recipe["words"]["tokens"] == 20 * 17
    assert recipe["source"]["files"][0]["name"] == "a.tokens"
    assert str(source) not in (source / "tok" / RECIPE).read_text("utf-8")
    ids = SubwordEncoder(loaded).types(types)
    assert recipe["words"]["subwords"] == int(np.diff(ids.offsets) @ counts)


def test_a_tokenizer_is_kept_only_for_the_same_reading(tmp_path: Path) -> None:
    table = "text,other,label\n" + "alpha beta gamma,zulu yankee xray,1\n" * 30
    (tmp_path / "t.csv").write_text(table, "utf-8")
    (tmp_path / "l.txt").write_text("été naïve garçon über\n" * 20, "utf-8")
    kept: list[Path] = []

    sizes = {"t.csv": 33, "l.txt": 36}

    def made(name: str, **reading: Any) -> list[str]:
        request = SourceRequest(str(tmp_path / name), **reading)
        train(
            request,
            tmp_path / f"{name}.tok",
            TokenizerOptions(vocab_size=sizes[name], min_frequency=1),
            found=kept.append,
        )
        found: list[str] = read_words(tmp_path / f"{name}.tok")[0].to_pylist()
        return found

    for name, first, second in (
        ("t.csv", {"text_column": ("text",)}, {"text_column": ("other",)}),
        ("l.txt", {}, {"encoding": "latin-1"}),
    ):
        words = made(name, **first)
        assert made(name, **first) == made(name) == words
        assert len(kept) == 2
        with pytest.raises(StoreError, match=r"holds another tokenizer: reading\."):
            made(name, **second)
        kept.clear()


def test_a_later_version_finds_its_tokenizers_done(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_twin(source / "tok", "trans", source / "twin")
    for module in ("train", "twin"):
        monkeypatch.setattr(f"derivlang.lexical.{module}.__version__", "99.0")
    kept: list[Path] = []
    train(SourceRequest(str(source / "a.tokens")), source / "tok", TokenizerOptions(vocab_size=60), found=kept.append)
    make_twin(source / "tok", "trans", source / "twin", found=kept.append)
    assert kept == [source / "tok", source / "twin"]


def test_transformers_loads_both(source: Path) -> None:
    transformers = pytest.importorskip("transformers")
    make_twin(source / "tok", "trans:greek", source / "twin")
    line = "Welcome to <unk> newest [MASK] a<unk>b ."
    want = Tokenizer.load(source / "tok").build().encode(line).ids
    derived = " ".join(Pipeline.parse("trans:greek").fit().apply(string_array(line.split())).to_pylist())
    for kind in (transformers.AutoTokenizer, transformers.PreTrainedTokenizerFast):
        first, second = kind.from_pretrained(source / "tok"), kind.from_pretrained(source / "twin")
        assert first(line)["input_ids"] == want == second(derived)["input_ids"]
        assert (first.mask_token_id, first.pad_token_id, first.bos_token_id, first.unk_token) == (4, 1, 0, "<unk>")
        assert len(first) == len(second) == 60
        assert first.convert_ids_to_tokens([3, 4]) == ["<unk>", "<mask>"]
        assert first.decode(first("newest <unk> low .")["input_ids"]) == "newest <unk> low ."
        assert second.decode(second(derived)["input_ids"][:4], skip_special_tokens=True).split() == derived.split()[:2]


def test_an_overlap_is_fitted_as_make_fits_it_and_reused(source: Path) -> None:
    spec = "trans:overlap=50,inv"
    made = make(spec, source / "a.tokens", source / "set")
    fitted = make_twin(source / "tok", spec, source / "one")
    reused = make_twin(source / "tok", spec, source / "two", TwinOptions(lexicon=made / "lexicon.tsv"))
    assert (source / "one" / "lexicon.tsv").read_bytes() == (made / "lexicon.tsv").read_bytes()
    assert fitted == reused
    words = fitted["overlap"]["words"]
    assert words["shared_types"] == (words["types"] + 1) // 2
    assert 0 < fitted["overlap"]["subwords"]["shared_tokens"] < fitted["overlap"]["subwords"]["tokens"]


def test_a_kept_word_has_the_ids_of_the_source(source: Path) -> None:
    make_twin(source / "tok", "trans:overlap=50", source / "twin")
    twin, tokenizer = Twin.load(source / "twin"), Tokenizer.load(source / "tok")
    encoder = SubwordEncoder(tokenizer)
    batch = batch_of([["low", "the", "<unk>", "Welcome", "unseen", "."]])
    pipeline = Pipeline.parse("trans:overlap=50")
    lexicon = pipeline.fit(saved=(source / "twin" / "lexicon.tsv").read_text("utf-8"))
    derived = pipeline.derive(batch, lexicon, split=False).derived
    encoded = encoder.batch(batch)
    ids = twin.ids(encoded, batch)
    both = set()
    for i, (word, image) in enumerate(zip(batch.strings().to_pylist(), derived.strings().to_pylist(), strict=True)):
        at = slice(encoded.offsets[i], encoded.offsets[i + 1])
        same = word == image
        both.add(same)
        shift = 0 if same else tokenizer.size - 12
        assert ids[at].tolist() == [int(k) + (shift if k >= 12 else 0) for k in encoded.ids[at]]
    assert both == {True, False}
    assert twin.encode_words(encoder, derived.types, derived.words).ids.tolist() == ids.tolist()
    assert twin.encode_words(encoder, derived.types, derived.words).offsets.tolist() == encoded.offsets.tolist()


def test_the_command(source: Path) -> None:
    done = run("tokenizer", "train", source / "a.tokens", "--vocab-size", 50, "-o", source / "t", "--json").json
    assert done["vocab_size"] == 50
    twin = run("tokenizer", "twin", source / "t", "--t", "trans:overlap=25", "-o", source / "u", "--json").json
    assert twin["of"] == done["fingerprint"]
    assert twin["joint"] == {"shift": 38, "size": 88, "file": False}
    assert twin["overlap"]["words"]["shared_types_percent"] == pytest.approx(25, abs=3)
    assert "shared sub" in run("tokenizer", "twin", source / "t", "--t", "trans", "-o", source / "v").out
    joint = ["tokenizer", "twin", source / "t", "--t", "trans:private", "-o", source / "w", "--joint"]
    run(*joint)
    assert (source / "w" / "joint" / TOKENIZER).exists()
    run(*joint, "--force")


# what is wrong


def twin_with(*options: object) -> list[object]:
    return ["tokenizer", "twin", "{tok}", *options, "-o", "{out}"]


BAD: dict[str, tuple[list[object], int, str]] = {
    "no folder": (["tokenizer", "twin", "{tok}x", "--t", "trans", "-o", "{out}"], 1, "no such folder"),
    "no tokenizer": (["tokenizer", "twin", "{folder}", "--t", "trans", "-o", "{out}"], 1, "not a tokenizer"),
    "inv": (twin_with("--t", "inv"), 2, "inv has none"),
    "two scripts": (twin_with("--t", "trans,trans:greek"), 2, "has trans and trans"),
    "no script": (twin_with("--t", "trans:klingon"), 2, "no script 'klingon'"),
    "no lexicon": (twin_with("--t", "trans:overlap=25", "--lexicon", "{folder}/nothing"), 1, "nothing: cannot be read"),
    "lexicon for nothing": (twin_with("--t", "trans", "--lexicon", "{folder}/a.tokens"), 2, "is not a lexicon"),
    "over the source": (["tokenizer", "twin", "{tok}", "--t", "trans", "-o", "{tok}", "--force"], 2, "over its source"),
    "too small": (["tokenizer", "train", "{folder}/a.tokens", "--vocab-size", 20, "-o", "{out}"], 2, "too small"),
    "negative": (["tokenizer", "train", "{folder}/a.tokens", "--vocab-size", -1, "-o", "{out}"], 2, "at least 1, got"),
    "too large": (["tokenizer", "train", "{folder}/a.tokens", "-o", "{out}"], 2, "--vocab-size 65 or less"),
    "no source": (["tokenizer", "train", "{folder}/b.tokens", "-o", "{out}"], 1, "no such file"),
    "taken": (["tokenizer", "train", "{folder}/a.tokens", "--vocab-size", 50, "-o", "{tok}"], 1, "--force"),
    "taken by something else": (
        ["tokenizer", "train", "{folder}/a.tokens", "--vocab-size", 50, "-o", "{folder}", "--force"],
        1,
        "something else",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message_and_nothing_is_written(case: str, source: Path) -> None:
    arguments, code, message = BAD[case]
    names = {"tok": source / "tok", "out": source / "deep" / "out", "folder": source}
    before = sorted(source.rglob("*"))
    done = run(*(str(a).format(**names) for a in arguments), code=code)
    assert message in done.err
    assert "Traceback" not in done.err
    assert sorted(source.rglob("*")) == before


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "recipe", "ids"])
def test_a_damaged_folder(source: Path, damage: str) -> None:
    path = source / "tok" / (RECIPE if damage == "recipe" else TOKENIZER)
    content = path.read_text("utf-8")
    if damage == "gone":
        path.unlink()
    else:
        new = {
            "cut": content[:500],
            "changed": content.replace('"low</w>"', '"löw</w>"'),
            "recipe": content.replace('"format": 1', '"format": 9'),
            "ids": content.replace('"<mask>":4', '"<mask>":444'),
        }[damage]
        assert new != content
        path.write_text(new, "utf-8")
    with pytest.raises(StoreError) as error:
        Tokenizer.load(source / "tok")
    assert path.name in str(error.value)


def test_a_twin_has_no_twin_and_a_source_is_none(source: Path) -> None:
    make_twin(source / "tok", "trans", source / "twin")
    with pytest.raises(DataError, match="twin itself"):
        make_twin(source / "twin", "trans", source / "more")
    with pytest.raises(StoreError, match="not a twin"):
        Twin.load(source / "tok")


def test_a_relative_folder_may_have_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("tokenizer", "train", "--vocab-size", "300", "demo", "-o", "tok:1")
    run("tokenizer", "twin", "tok:1", "--t", "trans:script=georgian", "-o", "twin:1")
    assert len(read_words(Path("tok:1"))[0])
    assert Path("twin:1", TOKENIZER).is_file()


def test_a_tokenizer_of_a_derived_set_is_of_its_source(tmp_path: Path) -> None:
    for spec, message in (("trans", f"derivlang tokenizer twin {tmp_path / 'trans.tok'} --t trans"), ("inv", "")):
        run("make", "--t", spec, "demo", "-o", tmp_path / spec)
        told = run("tokenizer", "train", tmp_path / spec, "--vocab-size", 200, "-o", tmp_path / f"{spec}.tok").err
        assert message in " ".join(told.split())
        assert bool(message) == ("whose source is read" in told)
