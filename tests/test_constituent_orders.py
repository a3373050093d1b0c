"""Orders of constituents: switch, np and hop:edge, on trees in brackets and on trees of grammars."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derivlang.core.batch import Batch
from derivlang.core.brackets import Constituents
from derivlang.core.errors import DataError, LayerError, UsageError
from derivlang.core.layers.base import Labels
from derivlang.core.layers.constituents import PARSE, ConstituentTrees
from derivlang.core.lexicon import Lexicon
from derivlang.core.schema import Field
from derivlang.pipeline import Pipeline
from derivlang.sources.find import find
from derivlang.sources.read import tables
from derivlang.sources.request import SourceRequest
from derivlang.syntax.phrases import labelled
from tests.commands import run, written
from tests.helpers import make, manifest, right, undone
from tests.reference_brackets import numbered, read
from tests.reference_constituents import leaves, switching
from tests.strategies import batch_of, few_words, laws, seeds, some_brackets, units_of
from tests.test_constituents import leaves_of, nested

TOY = """# switch 1
S -> Subject VP [1]
# switch 2
VP -> Object 'fudded' [1]
Subject -> NP 'sub' [1]
Object -> 'burse' 'ob' [1]
# switch 5
NP -> 'big' 'blope' [1]
"""
# A grammar with a rule for each switch, rules without one, and repetition.
QUESTION = "(SQ (VBZ Does) (RB n't) (NP (PRP he)) (VP (VB go)) (. ?))"
SWITCHES = ["".join(digits) for digits in product("01", repeat=6)]
ENGLISH = [
    "(S (NP-SBJ (DT the) (NNP York) (NN city) (NNS halls)) (VP (VBP stand)) (. .))",
    "(S (NP (DT the) (CD two) (JJ big) (NN city) (NNS halls)) (VP (VBZ is) (ADJP (JJ old))))",
    "(S (NP (NP (NNP Ann) (POS 's)) (ADJP (RB very) (JJ old)) (NN dog)) (VP (VBZ barks)) (. .))",
    "(S (NP (PRP he)) (VP (VBZ says) (SBAR (IN that) (S (NP (NP (DT the) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ "
    "sleeps))))) (VP (VBZ is) (PP (IN in) (NP (NN town))))))) (. .))",
]


def batch_with(texts: list[str]) -> Batch:
    words = [[leaf for leaf in leaves_of(nested(text))] for text in texts]
    layer = ConstituentTrees.read(Field(PARSE, "constituents"), Labels({PARSE: pa.array(texts)}, batch_of(words)))
    return batch_of(words, layers={PARSE: layer})


def derived(texts: list[str], spec: str) -> list[str]:
    """The derived words of each unit."""
    made = Pipeline.parse(spec).derive(batch_with(texts), Lexicon(), split=False).derived
    return [" ".join(words) for words in made.unit_lists().to_pylist()]


def rows(source: str) -> list[tuple[list[str], str]]:
    corpus = find(SourceRequest(source))
    read = (row for part in corpus.parts for some in tables(corpus, part) for row in some.table.to_pylist())
    return [(row["tokens"], row["parse"]) for row in read]


# switch


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ("000000", "big blope sub burse ob fudded"),
        ("100000", "burse ob fudded big blope sub"),
        ("010000", "big blope sub fudded burse ob"),
        ("110010", "fudded burse ob blope big sub"),
    ],
)
def test_switches_of_white_and_cotterell(switches: str, expected: str, tmp_path: Path) -> None:
    grammar = written(tmp_path / "toy.pcfg", TOY)
    out = make(f'switch:{switches}:rules="{grammar}"', f'source:pcfg="{grammar}":n=1', tmp_path / "out")
    assert run("show", out, "--split", "train", "--json").json["tokens"] == expected.split()


@pytest.mark.parametrize("switches", SWITCHES[::7] + SWITCHES[-1:])
def test_a_switch_of_the_source_is_the_transform_on_its_trees(switches: str, tmp_path: Path) -> None:
    """In the grammar of the package, by its name."""
    source = "source:pcfg=six-switches:n=300"
    out = make(f"switch:{switches}:rules=six-switches:final=move", source, tmp_path / "out")
    right(out)
    made = _rows_of_set(out)
    assert made == rows(source + f":switch={switches}")
    assert "switch-unknown" not in manifest(out)["changed"]


def _rows_of_set(out: Path) -> list[tuple[list[str], str]]:
    import pyarrow.parquet as pq

    found: list[tuple[list[str], str]] = []
    for split in ("train", "validation", "test"):
        for path in sorted((out / "data").glob(f"{split}-*")):
            table = pq.read_table(path)
            found += zip(table["tokens"].to_pylist(), table["parse"].to_pylist(), strict=True)
    return found


def test_switching_twice_is_the_source() -> None:
    texts = [text for _, text in rows("source:pcfg=six-switches:n=300")]
    for final in ("keep", "move"):
        once = f"switch:111111:rules=six-switches:final={final}"
        assert derived(texts, f"{once},{once}") == derived(texts, "identity")
        assert derived(texts, once) != derived(texts, "identity")


TAGS = ["DT", "JJ", "NN", "NNS", "VBZ", "IN", "WP", "ADJP", "CD"]


@laws
@given(units_of(few_words, min_size=1), seeds, st.sampled_from(SWITCHES))
def test_switches_reverse_the_children_that_the_table_names(units: list[list[str]], seed: int, on: str) -> None:
    rng = random.Random(seed)
    texts = [some_brackets(unit, rng, [rng.choice(TAGS) for _ in unit]) for unit in units]
    texts = [text.replace("(X ", "(WHNP ") for text in texts]
    expected = []
    for text in texts:
        (tree,), given_ = numbered(read(text))
        expected.append(" ".join(given_[word] for word in leaves(switching(on)(tree))))
    # A tree is one unit here, whatever its marks say.
    words = [list(leaves_of(nested(text))) for text in texts]
    plain = [[f"w{n}" for n in range(len(row))] for row in words]
    named = [_renamed(text) for text in texts]
    names = [dict(zip(row, given_, strict=True)) for row, given_ in zip(plain, words, strict=True)]
    found = derived(named, f"switch:{on}")
    assert [" ".join(name[word] for word in row.split()) for name, row in zip(names, found, strict=True)] == expected


def _renamed(text: str) -> str:
    """The tree with the words w0 w1 …, none of which ends a sentence."""
    parts, number = [], 0
    for part in text.split(" "):
        if part.startswith("("):
            parts.append(part)
        else:
            parts.append(f"w{number}" + ")" * (len(part) - len(part.rstrip(")"))))
            number += 1
    return " ".join(parts)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("switch:000000", "he says that the man who sleeps is in town ."),
        ("switch:100000", "says that is in town the man who sleeps he ."),
        ("switch:010000", "he that the man who sleeps in town is says ."),
        ("switch:001000", "he says the man who sleeps is in town that ."),
        ("switch:000100", "he says that the man who sleeps is town in ."),
        ("switch:000010", "he says that the man who sleeps is in town ."),
        ("switch:000001", "he says that sleeps who the man is in town ."),
        ("switch:100000:final=move", ". says that is in town the man who sleeps he"),
    ],
)
def test_switches_of_english(spec: str, expected: str) -> None:
    assert derived([ENGLISH[3]], spec) == [expected]


def test_a_switch_of_adjectives_needs_tags() -> None:
    bare = "(S (NP big (NP Ann)) (VP sleeps))"
    assert derived([bare], "switch:110000") == ["sleeps big Ann"]
    for spec in ("switch:000010", "np:N-Num-A-D"):
        with pytest.raises(LayerError, match="'big' stands in NP without one") as caught:
            derived([bare], spec)
        assert caught.value.id == "untagged"


def test_what_no_rule_makes_is_counted(tmp_path: Path) -> None:
    grammar = written(tmp_path / "toy.pcfg", TOY)
    path = written(tmp_path / "a.mrg", "(S (Subject (NP big blope) sub) (VP (VP x) (Object burse ob) fudded))\n")
    out = make(f'switch:110010:rules="{grammar}"', path, tmp_path / "out")
    assert manifest(out)["changed"] == {"switch-unknown": 2}
    assert (
        "2 constituents keep their order, since no rule of the grammar makes them"
        in run("make", path, "--t", f'switch:110010:rules="{grammar}"', "-o", tmp_path / "again").out
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("switch:1", "must be 6 zeros and ones"),
        ("switch:1:rules={grammar}", "has 1 digits, but"),
        ("switch:11002x:rules={grammar}", "must be zeros and ones"),
        ("switch:0:rules={unnumbered}", "numbers no rule with `# switch N`"),
        ("hop:edge=NP-SBJ", "must be a label without function tags"),
        ('hop:edge="A B"', "must be a label without function tags"),
        ('hop:edge="("', "must be a label without function tags"),
        ("np:D-N", "must have each of D, Num, A and N once"),
        ("np:D-Num-A-A", "must have each of D, Num, A and N once"),
    ],
)
def test_a_wrong_value_is_one_message(spec: str, message: str, tmp_path: Path) -> None:
    grammar = written(tmp_path / "toy.pcfg", TOY)
    unnumbered = written(tmp_path / "unnumbered.pcfg", "S -> 'a' 'b' [1]\n")
    with pytest.raises(UsageError, match=message):
        Pipeline.parse(spec.format(grammar=f'"{grammar}"', unnumbered=f'"{unnumbered}"'))


def test_a_rule_under_two_switches_is_refused(tmp_path: Path) -> None:
    rules = "S -> 'c' [0.5]\n# switch 1\nS -> 'a' 'b' [0.2]\n# switch 2\nS -> 'a' 'b' [0.3]\n"
    grammar = written(tmp_path / "a.pcfg", rules)
    with pytest.raises(DataError, match="a rule of S has switch 2, but switch 1 in line 3") as caught:
        Pipeline.parse(f'switch:11:rules="{grammar}"')
    assert caught.value.where == f"{grammar}:5"
    Pipeline.parse(f'switch:1:rules="{written(grammar, rules.replace("switch 2", "switch 1"))}"')


@pytest.mark.parametrize("spec", ["switch:110010", "np:N-Num-A-D"])
def test_text_without_constituents_is_refused(spec: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tokens", "a b .\n")
    failed = run("make", path, "--t", spec, "-o", tmp_path / "out", code=1)
    assert "needs parse, which this set lacks" in failed.err
    assert "trees in brackets (.mrg) or source:pcfg=FILE" in failed.err


@pytest.mark.parametrize("parse", ['"(S (NN a) (NN x))"', '"(S (NN a) (NN b)"', "null"])
@pytest.mark.parametrize("spec", ["switch:110010", "np:N-Num-A-D", "hop:edge=VP:by=tags"])
def test_a_row_without_its_tree_is_one_message(spec: str, parse: str, tmp_path: Path) -> None:
    good = '{"tokens":["a","b"],"parse":"(S (NN a) (NN b))"}\n'
    path = written(tmp_path / "a.jsonl", good + f'{{"tokens":["a","b"],"parse":{parse}}}\n')
    failed = run("make", path, "--t", spec, "-o", tmp_path / "out", code=1)
    assert "not every row has a tree over its words in the column parse [brackets]" in failed.err
    assert "row 2 of the first 2 rows is not a tree over its words" in failed.err


# noun phrases


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("N-Num-D-A", ["York city halls the stand .", "city halls two the big is old", "Ann 's dog very old barks ."]),
        ("A-Num-N-D", ["York city halls the stand .", "big two city halls the is old", "Ann 's very old dog barks ."]),
        ("D-A-N-Num", ["the York city halls stand .", "the big city halls two is old", "Ann 's very old dog barks ."]),
        ("D-Num-A-N", ["the York city halls stand .", "the two big city halls is old", "Ann 's very old dog barks ."]),
        ("D-Num-N-A", ["the York city halls stand .", "the two city halls big is old", "Ann 's dog very old barks ."]),
        ("N-Num-A-D", ["York city halls the stand .", "city halls two big the is old", "Ann 's dog very old barks ."]),
    ],
)
def test_orders_of_noun_phrases(order: str, expected: list[str]) -> None:
    assert derived(ENGLISH[:3], f"np:order={order}") == expected


@laws
@given(units_of(few_words, min_size=1), seeds, st.permutations(["N", "Num", "A", "D"]))
def test_children_of_a_class_keep_their_order_and_others_their_place(
    units: list[list[str]], seed: int, order: list[str]
) -> None:
    rng = random.Random(seed)
    tags = ["DT", "PRP$", "CD", "JJ", "NN", "NNP", "VB", "POS"]
    classes = {"DT": "D", "PRP$": "D", "CD": "Num", "JJ": "A", "NN": "N", "NNP": "N"}
    flat = []
    for unit in units:
        parts = [f"({rng.choice(tags)} w{n})" for n in range(len(unit))]
        flat.append(f"(S (NP {' '.join(parts)}) (VP (VB go)))")
    for text, found in zip(flat, derived(flat, f"np:{'-'.join(order)}"), strict=True):
        children = [(tag, word) for tag, word in nested(text)[0][1][1:]]
        of = {word: classes.get(tag, "") for tag, word in children}
        words = found.split()[:-1]
        assert [w for w in words if not of[w]] == [w for _, w in children if not of[w]]
        assert [n for n, w in enumerate(words) if not of[w]] == [n for n, (_, w) in enumerate(children) if not of[w]]
        sorted_ = sorted((w for _, w in children if of[w]), key=lambda w: order.index(of[w]))
        assert [w for w in words if of[w]] == sorted_


def test_function_tags_do_not_count() -> None:
    names = pa.array(["NP-SBJ-1", "NP", "-LRB-", "NP=2", "WHNP-3", "NPX", "-NONE-"])
    none = np.zeros(7, np.int64)
    found = Constituents(np.arange(7, dtype=np.int32), names, none, none + 1, none - 1)
    assert labelled(found, ("NP",)).tolist() == [True, True, False, True, False, False, False]
    assert labelled(found, ("-LRB-",), begin="WH").tolist() == [False, False, True, False, True, False, False]


# hop


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        ("hop:edge=VP:by=tags", ENGLISH[3], "he says that the man who sleeps 🅂 is in town 🅂 🅂 ."),
        ("hop:0:by=tags", ENGLISH[3], "he says 🅂 that the man who sleeps 🅂 is 🅂 in town ."),
        ("hop:2:by=tags", ENGLISH[3], "he says that the 🅂 man who sleeps is in 🅂 town 🅂 ."),
        ("hop:edge=VP:by=tags:sing=+", ENGLISH[1], "the two big city halls is old +"),
        ("hop:edge=VP:by=tags", ENGLISH[0], "the York city halls stand ."),
        ("hop:edge=PP:by=tags", ENGLISH[1], "the two big city halls is 🅂 old"),
        ("hop:edge=VP:by=tags", "(S (NP (NN He)) (VP (VBZ sings) (CC and) (VBZ dances)))", "He sings and dances 🅂 🅂"),
        ("hop:edge=S:by=tags", "(S (VBZ sings) (ADV well) (. .))", "sings well 🅂 ."),
        ("hop:edge=VP:by=tags", QUESTION, "Does n't 🅂 he go ?"),
        ("hop:0:by=tags", QUESTION, "Does n't 🅂 he go ?"),
        ("hop:edge=VP:by=tags", "(S (NP (VP (VBZ is) (ADJP (JJ big))) (POS 's)) (NN x))", "is big 's 🅂 x"),
    ],
)
def test_hops_to_the_edge_of_a_phrase(spec: str, text: str, expected: str) -> None:
    assert derived([text], spec) == [expected]


# A tree may hold words that end sentences: it is one sentence to these orders, also to the second of them.
QUOTED = (
    "(S (NP (PRP He)) (VP (VBZ says) (S (S (NP (DT the) (JJ big) (NN dog)) (VP (VBD sat)) (. .)) "
    "(S (NP (PRP it)) (VP (VBD ate))))) (. .))"
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("switch:100000", "says ate it . sat the big dog He ."),
        ("np:N-Num-A-D,switch:100000", "says ate it . sat dog big the He ."),
        ("hop:edge=VP:by=tags", "He says the big dog sat . it ate 🅂 ."),
        ("hop:edge=VP:by=tags,switch:000000", "He says the big dog sat . it ate 🅂 ."),
        ("switch:010000,hop:edge=VP:by=tags", "He the big dog sat . it ate says 🅂 ."),
    ],
)
def test_a_tree_is_one_sentence(spec: str, expected: str) -> None:
    assert derived([QUOTED], spec) == [expected]


def test_inserted_words_need_no_part_of_speech() -> None:
    text = "(S (NP (NP (DT the) (JJ big) (NN man)) (VP (VBZ sings)) (SBAR (IN that) (NN x))) (VP (VBD sat)))"
    for spec, expected in {
        "hop:edge=VP:by=tags,switch:000010": "man big the sings 🅂 that x sat",
        "hop:edge=VP:by=tags,np:N-Num-A-D": "man big the sings 🅂 that x sat",
    }.items():
        assert derived([text], spec) == [expected]


def test_hops_with_features_lemmas_and_constituents(tmp_path: Path) -> None:
    row = (
        '{"tokens":["He","cleans","his","very","messy","bookshelf","."],"lemmas":["he","clean","his","very","messy",'
        '"bookshelf","."],"feats":["_","Number=Sing|Person=3|Tense=Pres|VerbForm=Fin","_","_","_","Number=Sing","_"],'
        '"parse":"(S (NP He) (VP cleans (NP his (ADJP very messy) bookshelf)) .)"}\n'
    )
    out = make("hop:edge=VP", written(tmp_path / "a.jsonl", row), tmp_path / "out")
    right(out)
    shown = run("show", out, "--json").json
    assert " ".join(shown["tokens"]) == "He clean his very messy bookshelf 🅂 ."
    assert shown["values"]["parse"] == "(S (NP He) (VP clean (NP his (ADJP very messy) bookshelf)) 🅂 .)"
    assert undone(out, suffix=".jsonl").decode() == row


def test_of_two_markers_at_one_place_the_smaller_constituent_s_comes_first(tmp_path: Path) -> None:
    row = (
        '{"tokens":["He","says","they","go","."],"lemmas":["he","say","they","go","."],"feats":["_",'
        '"Number=Sing|Person=3|Tense=Pres|VerbForm=Fin","_","Number=Plur|Person=3|Tense=Pres|VerbForm=Fin","_"],'
        '"parse":"(S (NP He) (VP says (S (NP they) (VP go))) .)"}\n'
    )
    out = make("hop:edge=VP", written(tmp_path / "a.jsonl", row), tmp_path / "out")
    right(out)
    shown = run("show", out, "--json").json
    assert " ".join(shown["tokens"]) == "He say they go 🄿 🅂 ."
    assert undone(out, suffix=".jsonl").decode() == row


def test_what_tags_do_not_say_is_refused_or_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.mrg", "\n".join(ENGLISH) + "\n(S (VBZ goes))\n")
    failed = run("make", path, "--t", "hop:4", "-o", tmp_path / "out", code=1)
    assert "hop needs feats, lemmas, which this set lacks" in failed.err
    assert "add by=tags, or take a treebank in CoNLL-U" in failed.err
    failed = run("make", path, "--t", "hop:edge=VP", "-o", tmp_path / "out", code=1)
    assert "add by=tags, or take a table with feats, lemmas and parse" in failed.err
    text = written(tmp_path / "a.tokens", "a b .\n")
    for spec, fix in (
        ("hop:edge=VP", "take a file of trees in brackets (.mrg), with by=tags, or take a table with"),
        ("hop:edge=VP:by=tags", "take a file of trees in brackets (.mrg)\n"),
    ):
        assert fix in run("make", text, "--t", spec, "-o", tmp_path / "out", code=1).err
    out = make("hop:edge=VP:by=tags", path, tmp_path / "made")
    assert manifest(out)["changed"] == {"hops-unknown": 1, "hops-without-phrase": 1}
    right(out)
