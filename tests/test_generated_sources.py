"""Generated sources: their laws, and what holds for all of them: rows by number, any number of workers, undo."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.names import SPLITS
from derivlang.sources.corpus import Corpus, FileSpan
from derivlang.sources.find import find, name_of
from derivlang.sources.generated.base import FORMAT, GENERATORS, find_generator
from derivlang.sources.read import Reading, batches, tables
from derivlang.sources.request import SourceRequest
from tests.commands import run, written
from tests.helpers import make, manifest, right, undone
from tests.real import SHARED, needs_data

GRAMMAR = """
# White and Cotterell's kind of language, with rules that repeat
# switch 1
S -> Subject VP [1]
# switch 2
VP -> Object Verb [0.6] | Verb [0.3] | S 'that' Says [0.1]
Subject -> NP 'sub' [1]
Object -> NP 'ob' [1]
# switch 5
NP -> Adj NP [0.3] | Noun [0.7]
Noun -> 'blope' [0.5] | 'burse' [0.25] | "(x)" [0.25]
Adj -> 'big' [1]
Verb -> 'fudded' [1]
Says -> 'says' [1]
"""
# Each kind with few words in a row, so that frequencies are those of many rows.
SMALL = {
    "dyck": "source:dyck=3:length=12:n=500",
    "pcfg": "source:pcfg={grammar}:n=500",
    "resample": "source:resample=demo",
    "zipf": "source:zipf=30:length=6:n=500",
}
EACH = pytest.mark.parametrize("kind", SMALL)
LIKELY = 1e-4  # draws are fixed, so a test that passes once passes always


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("grammar") / "small.pcfg", GRAMMAR)


def named(kind: str, grammar: Path, more: str = "") -> str:
    return SMALL[kind].format(grammar=f'"{grammar}"') + more


def corpus(source: str) -> Corpus:
    return find(SourceRequest(source))


def rows(source: str, split: str = "train") -> list[dict[str, Any]]:
    found = corpus(source)
    return [
        row
        for part in found.parts
        if part.split == split
        for read in tables(found, part)
        for row in read.table.to_pylist()
    ]


def tokens(source: str, split: str = "train") -> list[list[str]]:
    return [row["tokens"] for row in rows(source, split)]


def fits(observed: Counter[Any], expected: dict[Any, float]) -> bool:
    """Whether counts are like those of draws with these probabilities (chi-square); rare values are taken together."""
    total = sum(observed.values())
    assert set(observed) <= set(expected)
    common = [value for value, p in expected.items() if p * total >= 5]
    counts = [*(observed[v] for v in common), total - sum(observed[v] for v in common)]
    chances = [*(expected[v] * total for v in common), total * (1 - sum(expected[v] for v in common))]
    if chances[-1] < 5:
        counts, chances = counts[:-1], [c * sum(counts[:-1]) / sum(chances[:-1]) for c in chances[:-1]]
    return bool(chisquare(counts, chances).pvalue > LIKELY)


# all kinds


def test_every_kind_is_tested() -> None:
    assert set(SMALL) == set(GENERATORS.names())


@EACH
def test_rows_do_not_depend_on_workers(kind: str, grammar: Path, tmp_path: Path) -> None:
    made = []
    for workers in (1, 2, 3):
        out = make("perm,inv", named(kind, grammar), tmp_path / str(workers), workers=workers, shard_tokens=300)
        made.append({path.name: path.read_bytes() for path in [*(out / "data").iterdir(), out / "derivlang.json"]})
    assert len(made[0]) > 4
    assert made[0] == made[1] == made[2]


@EACH
@settings(max_examples=10)
@given(target=st.integers(1, 20_000), limit=st.none() | st.integers(0, 600))
def test_pieces_are_the_rows(kind: str, target: int, limit: int | None, grammar: Path) -> None:
    source, part = _opened(named(kind, grammar))
    cut = FORMAT.pieces(part.path, target, options=source.options)
    whole, found = _whole(named(kind, grammar)), [_table(source, part, piece) for piece in cut]
    assert pa.concat_tables(found).equals(whole)
    documents = [FORMAT.documents(part.path, piece=piece, options=source.options)[0] for piece in cut]
    assert documents == [table.num_rows for table in found]
    read = FORMAT.rows(part.path, limit=limit, options=source.options)
    assert sum(some.table.num_rows for some in read) == min(whole.num_rows, whole.num_rows if limit is None else limit)


@cache
def _opened(source: str) -> tuple[Corpus, Any]:
    found = corpus(source)
    return found, found.parts[0]


@cache
def _whole(source: str) -> pa.Table:
    return _table(*_opened(source), None)


def _table(source: Corpus, part: Any, piece: Any) -> pa.Table:
    read = list(tables(source, part, **({} if piece is None else {"piece": piece})))
    return pa.concat_tables([some.table for some in read]).combine_chunks()


@EACH
def test_made_verified_and_undone(kind: str, grammar: Path, tmp_path: Path) -> None:
    source = named(kind, grammar)
    out = make("trans,inv", source, tmp_path / "out")
    right(out)
    for split in SPLITS:
        assert [json.loads(line) for line in undone(out, split).splitlines()] == rows(source, split)
    made = manifest(out)["source"]
    assert made["name"] == named(kind, Path("small.pcfg")).replace('"', "")
    assert "version 1 of its rule" in made["citation"]
    assert [set(file) for file in made["files"]] == [{"split", "name", "sha256"}] * 3
    assert str(grammar.parent) not in json.dumps(manifest(out))
    before = (out / "derivlang.json").stat().st_mtime_ns
    make("trans,inv", source, tmp_path / "out")  # found again
    assert (out / "derivlang.json").stat().st_mtime_ns == before
    with pytest.raises(StoreError, match="holds another set"):
        make("trans,inv", source + ":seed=1", out)


@EACH
def test_rows_are_a_function_of_seed_split_and_number(kind: str, grammar: Path) -> None:
    source = named(kind, grammar)
    assert tokens(source) == tokens(source)
    assert tokens(source) != tokens(source + ":seed=1")
    assert tokens(source)[: len(tokens(source, "test"))] != tokens(source, "test")
    assert tokens(source, "validation") != tokens(source, "test")
    if kind != "resample":
        assert {split: len(tokens(source, split)) for split in SPLITS} == {"train": 500, "validation": 5, "test": 5}
        assert tokens(source.replace(":n=500", ":n=20")) == tokens(source)[:20]


def test_the_grammar_is_part_of_the_source(grammar: Path, tmp_path: Path) -> None:
    copy = written(tmp_path / "small.pcfg", GRAMMAR)
    source = f"source:pcfg={copy}:n=20"
    out = make("inv", source, tmp_path / "out")
    copy.write_text(GRAMMAR.replace("'big' [1]", "'large' [1]"))
    with pytest.raises(StoreError, match="holds another set"):
        make("inv", source, out)


def test_names_are_canonical() -> None:
    for given_, name in {
        "dyck": "source:dyck",
        "dyck=250:p=0.49": "source:dyck",
        "dyck:pairs=3:seed=2": "source:dyck=3:seed=2",
        "zipf=7:lengths=fixed:a=0": "source:zipf=7:a=0.0:lengths=fixed",
        'resample="ner:fr"': 'source:resample="ner:fr"',
        'resample="hub:owner/name"': 'source:resample="hub:owner/name"',
        "resample=a/b.txt": "source:resample=b.txt",
        'resample="source:pcfg=a/b.pcfg:n=10000"': 'source:resample="source:pcfg=b.pcfg"',
        'pcfg="a b/c:d.pcfg":n=5': 'source:pcfg="c:d.pcfg":n=5',
    }.items():
        assert str(find_generator(given_)) == name_of(f"source:{given_}") == name
        assert str(find_generator(name.removeprefix("source:"))) == name


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("source", "there is no generator ''; there are: dyck, pcfg, resample, zipf"),
        ("source:", "there is no generator ''"),
        ("source:dick=3", "did you mean dyck"),
        ("source:dyck=3:length=7", "must be even"),
        ("source:dyck=0", "must be at least 1"),
        ("source:dyck=3:p=1.5", "must be at most 1"),
        ("source:dyck=3:q=1", "there is no parameter of dyck 'q'"),
        ("source:dyck=3,zipf", "several sources"),
        ("source:zipf=x", "must be a whole number"),
        ("source:zipf=5:a=-1", "at least 0"),
        ("source:pcfg", "the file of the grammar is missing"),
        ("source:resample", "the name of the other source is missing"),
        ("source:resample=nothing", "there is no source 'nothing'"),
    ],
)
def test_a_wrong_source_is_one_message(source: str, message: str, tmp_path: Path) -> None:
    failed = run("make", "--t", "inv", source, "-o", tmp_path / "out", code=2)
    assert message in failed.err
    assert failed.err.count("derivlang: ") == 1
    assert not (tmp_path / "out").exists()


def test_other_commands_take_a_generated_source(tmp_path: Path) -> None:
    source = "source:dyck=3:length=8:n=30"
    measured = run("stats", source, "--t", "grammar:min-dl", "--json").out
    assert '"identity"' not in measured
    assert run("dict", "--t", "trans", source, "-o", tmp_path / "d.tsv").code == 0
    run("tokenizer", "train", source, "--vocab-size", "20", "-o", tmp_path / "tokenizer")
    assert "has trees already" in run("parse", source, "-o", tmp_path / "parsed", code=2).err
    listed = run("ls", "--json").json["generators"]
    assert [entry["name"] for entry in listed] == GENERATORS.names()


# dyck


def depths(row: list[str]) -> np.ndarray:
    return np.cumsum([1 if word.startswith("(") else -1 for word in row])


@pytest.mark.parametrize("cross", [False, True])
@given(
    pairs=st.integers(1, 5),
    half=st.integers(1, 12),
    p=st.sampled_from([0.0, 0.3, 0.49, 0.8, 1.0]),
    seed=st.integers(0, 9),
)
def test_brackets_match(cross: bool, pairs: int, half: int, p: float, seed: int) -> None:
    how = ":cross=yes" if cross else ""
    for row in rows(f"source:dyck={pairs}:length={2 * half}:p={p}:seed={seed}:n=20{how}"):
        open_: list[int] = []
        expected = []
        for place, word in enumerate(row["tokens"]):
            head, relation = row["head"][place] - 1, row["deprel"][place]
            if word.startswith("("):
                enclosing = open_[-1] if open_ and not cross else 0
                relation_ = "root" if place == 0 else "nested" if open_ and not cross else "next"
                expected.append((-1 if place == 0 else enclosing, relation_))
                open_.append(place)
            else:
                closed = head if cross else open_[-1]
                assert row["tokens"][closed] == "(" + word.removesuffix(")")
                expected.append((closed, "close"))
                open_.remove(closed)
            assert (head, relation) == expected[-1]
        assert not open_
        assert len(row["tokens"]) == 2 * half


@pytest.mark.parametrize("p", [0.3, 0.49, 0.7])
def test_depths_are_as_their_theory_says(p: float) -> None:
    """The distribution of depths of the walk that goes up with p, must go up at 0, and must reach 0 at the end."""
    length = 16
    found = np.array([depths(row) for row in tokens(f"source:dyck=2:length={length}:p={p}:n=4000")])
    chance = {0: 1.0}
    for place in range(length):
        after: Counter[int] = Counter()
        for depth, of in chance.items():
            up = 1.0 if depth == 0 else p if depth < length - place else 0.0
            after[depth + 1] += of * up
            after[depth - 1] += of * (1 - up)
        chance = {depth: of for depth, of in after.items() if of}
        if len(chance) > 1:
            assert fits(Counter(found[:, place].tolist()), chance)
    assert chance == {0: pytest.approx(1.0)}


def test_kinds_of_brackets_are_uniform_or_zipf() -> None:
    for a in (0, 1):
        found = Counter(w for row in tokens(f"source:dyck=10:length=20:n=1000:a={a}") for w in row if w[0] == "(")
        weights = [rank**-a for rank in range(1, 11)]
        assert fits(found, {f"({rank}": w / sum(weights) for rank, w in enumerate(weights, 1)})


def test_crossing_brackets_cross() -> None:
    def crossed(row: dict[str, Any]) -> bool:
        arcs = [(head - 1, at) for at, head in enumerate(row["head"]) if row["deprel"][at] == "close"]
        return any(a < c < b < d for a, b in arcs for c, d in arcs)

    assert not any(map(crossed, rows("source:dyck=3:length=20:n=50")))
    assert any(map(crossed, rows("source:dyck=3:length=20:n=50:cross=yes")))


# zipf


@pytest.mark.parametrize("a", [0, 0.7, 1, 2])
def test_words_follow_zipf(a: float) -> None:
    found = tokens(f"source:zipf=200:a={a}:n=3000:length=10")
    weights = np.arange(1, 201.0) ** -a
    assert fits(
        Counter(w for row in found for w in row), {f"w{r}": w / weights.sum() for r, w in enumerate(weights, 1)}
    )
    lengths = {n: 0.1 * 0.9 ** (n - 1) for n in range(1, 300)}
    assert fits(Counter(map(len, found)), lengths)


def test_fixed_lengths() -> None:
    assert {len(row) for row in tokens("source:zipf=5:length=512:lengths=fixed:n=10")} == {512}
    assert {len(row) for row in tokens("source:zipf=5:length=1:n=10")} == {1}


# pcfg


def nodes(parse: str) -> list[tuple[str, tuple[str, ...]]]:
    """(left side, right side) of each rule in a tree in brackets, from the outside in; words in quotes."""
    out: list[tuple[str, tuple[str, ...]]] = []
    parts = re.findall(r"\(|\)|[^\s()]+", parse)
    stack: list[tuple[int, list[str]]] = []
    for before, part in zip([None, *parts], parts, strict=False):
        if before == "(":
            if stack:
                stack[-1][1].append(part)
            out.append((part, ()))
            stack.append((len(out) - 1, []))
        elif part == ")":
            at, children = stack.pop()
            out[at] = (out[at][0], tuple(children))
        elif part != "(":
            stack[-1][1].append(repr(part))
    return out


RULES: dict[tuple[str, tuple[str, ...]], float] = {
    (line.split(" -> ")[0], tuple(re.sub(r'"(.*)"', r"'-LRB-x-RRB-'", rule).split()[:-1])): float(
        rule.split("[")[1][:-1]
    )
    for line in GRAMMAR.splitlines()
    if "->" in line
    for rule in line.split(" -> ")[1].split(" | ")
}


def test_every_sentence_has_a_tree_of_the_grammar(grammar: Path) -> None:
    used: Counter[tuple[str, tuple[str, ...]]] = Counter()
    n_words = 0
    for seed in range(3):
        for row in rows(f'source:pcfg="{grammar}":n=2000:seed={seed}'):
            tree = nodes(row["parse"])
            assert tree[0][0] == "S"
            assert set(tree) <= set(RULES)
            leaves = re.findall(r"[^\s()]+(?=[\s)])(?<!\()", re.sub(r"\(\S+", "", row["parse"]))
            assert [leaf.replace("-LRB-", "(").replace("-RRB-", ")") for leaf in leaves] == row["tokens"]
            used.update(tree)
            n_words += len(row["tokens"])
    for left in {left for left, _ in RULES}:
        expected = {rule: p for rule, p in RULES.items() if rule[0] == left}
        if len(expected) > 1:
            assert fits(Counter({rule: n for rule, n in used.items() if rule[0] == left}), expected), left
    expected_words = corpus(f'source:pcfg="{grammar}"').options["made"].words_a_row
    assert n_words / 6000 == pytest.approx(expected_words, rel=0.03)


@pytest.mark.parametrize("switch", ["100000", "010000", "000010", "110010", "111111"])
def test_a_switch_reverses_the_rules_of_its_number(switch: str, grammar: Path) -> None:
    on = {left for left, number in (("S", 1), ("VP", 2), ("NP", 5)) if switch[number - 1] == "1"}
    plain, switched = (rows(f'source:pcfg="{grammar}":n=300{more}') for more in ("", f":switch={switch}"))
    assert plain != switched
    for one, other in zip(plain, switched, strict=True):
        assert Counter(one["tokens"]) == Counter(other["tokens"])
        assert Counter(nodes(one["parse"])) == Counter(
            (left, right_[::-1] if left in on else right_) for left, right_ in nodes(other["parse"])
        )
    assert rows(f'source:pcfg="{grammar}":n=300:switch=000000') == plain


GOLDEN = """
# switch 1
S -> Subject VP [1]
# switch 2
VP -> Object 'fudded' [1]
Subject -> NP 'sub' [1]
Object -> 'burse' 'ob' [1]
# switch 5
NP -> 'big' 'blope' [1]
"""


@pytest.mark.parametrize(
    ("switch", "expected"),
    {
        "000000": "big blope sub burse ob fudded",
        "100000": "burse ob fudded big blope sub",
        "010000": "big blope sub fudded burse ob",
        "110010": "fudded burse ob blope big sub",
    }.items(),
)
def test_the_switches_of_white_and_cotterell(switch: str, expected: str, tmp_path: Path) -> None:
    path = written(tmp_path / "golden.pcfg", GOLDEN)
    assert [" ".join(row) for row in tokens(f"source:pcfg={path}:switch={switch}:n=1")] == [expected]


@pytest.mark.parametrize(
    ("text", "line", "id", "message"),
    [
        ("S -> S S [0.5] | 'a' [0.5]\n", 1, "pcfg-endless", "S and what it becomes make 1 times"),
        ("A -> B [1]\n\nB -> C C [0.7] | 'x' [.3]\nC -> B [1]\n", 4, "pcfg-endless", "which must be below 1"),
        ("S -> S [1]\n", 1, "pcfg-endless", "no finite mean length"),
        ("# c\nS -> A [1.2]\nA -> 'x' [1]", 2, "pcfg-probability", "S -> A has the probability 1.2"),
        ("S -> 'a' [0]", 1, "pcfg-probability", "not above 0"),
        ("S -> 'a' [nan]", 1, "pcfg-probability", "not above 0"),
        ("S -> 'a' [x]", 1, "pcfg-probability", "the probability x"),
        ("S -> A [0.5] | 'x' [0.3]\nA -> 'x' [1]\n", 1, "pcfg-probability", "sum to 0.8"),
        ("S -> A [1]", 1, "pcfg-symbol", "the symbol A has no rule"),
        ("S -> 'a'", 1, "pcfg-syntax", "S -> 'a' has no probability"),
        ("S 'a' [1]", 1, "pcfg-syntax", "does not begin"),
        ("S -> | 'a' [1]", 1, "pcfg-syntax", "without symbols"),
        ("S -> 'a' [1] 'b'", 1, "pcfg-syntax", "a probability ends a rule"),
        ("S -> 'a' ] [1]", 1, "pcfg-syntax", "']' is neither"),
        ("S -> 'a b' [1]", 1, "pcfg-syntax", "holds a space"),
        ("S -> 'a [1]", 1, "pcfg-syntax", "is neither"),
        (
            "S -> A0 [1]\n" + "".join(f"A{i} -> 'a' [1]\n" for i in range(1000)),
            None,
            "too-large",
            "1,001 symbols on left",
        ),
        ("S -> S [.999999] | 'a' [.000001]", None, "pcfg-endless", "1,000,000 constituents on average"),
        ("\n# nothing\n", None, "empty-file", "holds no rule"),
    ],
)
def test_a_wrong_grammar_is_one_message(text: str, line: int | None, id: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "wrong.pcfg", text)
    failed = run("make", "--t", "inv", f"source:pcfg={path}", "-o", tmp_path / "out", code=1)
    place = f"{path}:{line}: " if line else f"{path}: "
    assert failed.err.startswith(f"derivlang: {place}")
    assert message in failed.err
    assert f"[{id}]" in failed.err


def test_symbols_that_no_sentence_holds_may_repeat(tmp_path: Path) -> None:
    path = written(tmp_path / "g.pcfg", "S -> 'a' [1]\nX -> X X [1]\n")
    assert tokens(f"source:pcfg={path}:n=2") == [["a"]] * 2


def test_switches_that_do_not_fit_the_file(grammar: Path) -> None:
    for switch in ("11", "12", "xx0000"):
        with pytest.raises(UsageError, match="switch"):
            corpus(f'source:pcfg="{grammar}":switch={switch}')


def test_a_small_probability_that_is_missing_is_scaled(tmp_path: Path) -> None:
    """As in nltk, whose grammars may sum to 0.999."""
    path = written(tmp_path / "g.pcfg", "S -> 'a' [0.333] | 'b' [0.333] | 'c' [0.333]\n")
    found = Counter(w for row in tokens(f"source:pcfg={path}:n=3000") for w in row)
    assert fits(found, dict.fromkeys("abc", 1 / 3))


# resample


def _sentences(source: str, split: str) -> list[int]:
    """The lengths of the sentences of a set that was made of a source."""
    found = find(SourceRequest(source))
    return [
        n
        for part in found.parts
        if part.split == split
        for batch in batches(found, [FileSpan(part)], Reading(found.splitter()))
        for n in np.diff(batch.sentences).tolist()
    ]


def test_lengths_are_those_of_the_source(tmp_path: Path) -> None:
    out = make("identity", "demo", tmp_path / "out")
    for split in SPLITS:
        assert [len(row) for row in tokens("source:resample=demo", split)] == _sentences(str(out), split)
    made = corpus("source:resample=demo")
    assert "no alignment with the rows of demo" in made.citation
    assert made.licence == "apache-2.0"
    assert made.schema.fields == ()
    with pytest.raises(UsageError, match="is a derived set"):
        corpus(f'source:resample="{out}"')


@needs_data
def test_words_keep_their_frequencies_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DERIVLANG_DATA", str(SHARED))
    of = Counter((SHARED / "text/wikitext-2/wiki.train.tokens").read_text("utf-8").split())
    found = tokens("source:resample=wikitext2")
    counts = Counter(w for row in found for w in row)
    total = sum(of.values())
    assert sum(counts.values()) == total
    assert fits(counts, {word: n / total for word, n in of.items()})
    # mutual information of neighbours, among the 50 most frequent words and the others
    common = {word: i for i, (word, _) in enumerate(of.most_common(50))}

    def information(sentences: list[list[str]]) -> float:
        codes = ([common.get(word, 50) for word in words] for words in sentences)
        pairs = Counter(pair for row in codes for pair in pairwise(row))
        joint = np.zeros((51, 51))
        joint[tuple(np.array(list(pairs)).T)] = list(pairs.values())
        joint /= joint.sum()
        alone = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        seen = joint > 0
        return float((joint[seen] * np.log2(joint[seen] / alone[seen])).sum())

    lines = (SHARED / "text/wikitext-2/wiki.train.tokens").read_text("utf-8").splitlines()
    bias = 50 * 50 / (2 * total * np.log(2))  # of the estimate, for independent words
    assert information(found) < 2 * bias
    assert information([line.split() for line in lines if line.strip()]) > 100 * bias


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    for text in ("", "\n \n"):
        path = written(tmp_path / "empty.txt", text)
        with pytest.raises(DataError, match="the split train of empty"):
            corpus(f"source:resample={path}")
