"""Labels that differ between treebanks: relations without a subtype, demonstratives, relations that a class lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from derivlang.grammar.families import Families, as_in_trees, marked, named, plain
from derivlang.grammar.fit import FEW, SHARE, Counted, FitSettings, Problem, distinct, dropped, fit, with_borrowed
from derivlang.grammar.grammar import Grammar, grammar_text, load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import demonstratives, families_of_tables, read_families
from derivlang.grammar.weights import Weights

# Like Hindi: genitives precede their noun as `nmod:poss`, and bare ones follow.
GENITIVES = [*["NOUN&nmod:poss @NOUN&@"] * 90, *["@NOUN&@ NOUN&nmod"] * 10]


def families(lines: list[str]) -> Families:
    return Families.of([line.split() for line in lines])


def before(model: OrderModel, line: str, label: str) -> float:
    labels = line.split()
    orders, probabilities = model.distribution(labels)
    x, head = labels.index(label), next(place for place, each in enumerate(labels) if each.startswith("@"))
    return float(((orders == x).argmax(axis=1) < (orders == head).argmax(axis=1)) @ probabilities)


def genitives(*, own: bool = True, share: float = 0.5) -> Weights:
    known = named(families(GENITIVES)) if own else families(GENITIVES)
    return fit(known, "N", FitSettings(l2=0.05, dropped=share))


def test_a_relation_without_a_subtype_is_named_if_its_treebank_has_one() -> None:
    got = named(families(["NOUN&nmod:poss NOUN&nmod DET&det @NOUN&@", "DET&det:dem @NOUN&@"]))
    assert got.labels(0) == ["NOUN&nmod:poss", "NOUN&nmod:-", "DET&det", "@NOUN&@"]
    assert got.labels(1) == ["DET&det:dem", "@NOUN&@"]  # the demonstrative is universal: it names nothing
    assert named(got).tokens == got.tokens


def test_labels() -> None:
    assert [plain(label) for label in ("NOUN&nmod:-", "NOUN&nmod:poss", "DET&det:dem", "@NOUN&@")] == [
        "NOUN&nmod",
        "NOUN&nmod",
        "DET&det:dem",
        "@NOUN&@",
    ]
    assert [as_in_trees(label) for label in ("NOUN&nmod:-", "NOUN&nmod:poss", "DET&det:dem")] == [
        "NOUN&nmod",
        "NOUN&nmod:poss",
        "DET&det",
    ]
    upos, deprel = ["DET", "PRON", "PRON", "DET", "PRON"], ["det", "det", "det:pmod", "det", "nsubj"]
    feats = ["PronType=Dem", "Number=Sing|PronType=Dem", "PronType=Dem", "PronType=Art", "_"]
    assert marked(upos, deprel, feats) == (
        ["DET", "DET", "PRON", "DET", "PRON"],
        ["det:dem", "det:dem", "det:pmod", "det", "nsubj"],
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_share_of_the_families_has_no_subtypes(share: float) -> None:
    known = distinct(named(families(GENITIVES)), "N")
    found = {" ".join(labels): count for labels, count in dropped(known, share).items()}
    expected = {
        "NOUN&nmod:poss @NOUN&@": 90 * (1 - share),
        "@NOUN&@ NOUN&nmod:-": 10 * (1 - share),
        "NOUN&nmod @NOUN&@": 90 * share,
        "@NOUN&@ NOUN&nmod": 10 * share,
    }
    assert found == pytest.approx({line: count for line, count in expected.items() if count})
    assert sum(found.values()) == pytest.approx(sum(known.values()))


def test_a_foreign_relation_has_the_order_of_all_its_subtypes() -> None:
    """Nine in ten genitives precede, and so does a foreign one; in the language itself the bare ones follow."""
    model = OrderModel(Grammar("x", "", "v2", {"N": genitives()}))
    assert before(model, "NOUN&nmod @NOUN&@", "NOUN&nmod") == pytest.approx(0.9, abs=0.05)
    assert before(model, "NOUN&nmod:- @NOUN&@", "NOUN&nmod:-") < 0.1
    assert before(model, "NOUN&nmod:poss @NOUN&@", "NOUN&nmod:poss") > 0.9
    assert before(model, "NOUN&nmod:gen @NOUN&@", "NOUN&nmod:gen") == before(model, "NOUN&nmod @NOUN&@", "NOUN&nmod")
    once = OrderModel(Grammar("x", "", "v2", {"N": genitives(own=False, share=0.0)}))
    assert before(once, "NOUN&nmod @NOUN&@", "NOUN&nmod") < 0.2


def test_the_substrate_reads_the_trees_as_its_own() -> None:
    """As superstrate of other trees a bare genitive is any; as their own grammar it is a bare one."""
    own = Grammar("own", "", "v2", {"N": genitives()})
    other = Grammar("other", "", "v2", {"N": Weights.of({}, 5)})
    line = "NOUN&nmod @NOUN&@"
    assert before(OrderModel(own, other, mix=0.5), line, "NOUN&nmod") > 0.5
    assert before(OrderModel(other, own, mix=0.5), line, "NOUN&nmod") < 0.5
    alone = before(OrderModel(own), "NOUN&nmod:- @NOUN&@", "NOUN&nmod:-")
    assert before(OrderModel(own, own), line, "NOUN&nmod") == pytest.approx(alone, abs=1e-12)


def test_names_reach_no_published_model() -> None:
    weights = Weights.of({("BI", ("NOUN&nmod",)): {"@NOUN&@": 2.0}}, 3)
    for version, labels in (("v1", "map"), ("v1", "as-is")):
        model = OrderModel(Grammar("x", "", version, {"N": weights}), labels=labels)
        assert (
            before(model, "NOUN&nmod:- @NOUN&@", "NOUN&nmod:-") == before(model, "NOUN&nmod @NOUN&@", "NOUN&nmod") > 0.8
        )


# borrowing

AUXILIARIES = [*["AUX&aux NOUN&nsubj @NOUN&@"] * 200, *["@VERB&@ NOUN&nsubj"] * 495]


def borrowed(some: Families, name: str) -> Counted:
    return with_borrowed(distinct(some, name), some, name)


def test_a_relation_that_a_class_has_not_seen_is_learnt_from_other_classes() -> None:
    all_families = families([*AUXILIARIES, *["DET&det @VERB&@"] * FEW])
    found = {" ".join(labels): count for labels, count in borrowed(all_families, "V").items()}
    assert found == {"@VERB&@ NOUN&nsubj": 495, "DET&det @VERB&@": FEW, "AUX&aux @VERB&@": SHARE * 500}
    model = OrderModel(Grammar("x", "", "v2", {"V": fit(all_families, "V", FitSettings(l2=0.5))}))
    assert before(model, "AUX&aux @VERB&@ NOUN&nsubj", "AUX&aux") > 0.9


def test_nothing_is_borrowed_without_need() -> None:
    some = families(AUXILIARIES)
    assert borrowed(some, "N") == distinct(some, "N")
    assert borrowed(some, "ADV") == {}


def test_borrowed_relations_do_not_outweigh_a_small_class() -> None:
    """Ten verbs whose nouns follow: 500 nouns before their heads elsewhere count as one."""
    all_families = families([*["NOUN&nmod @NOUN&@"] * 500, *["@VERB&@ NOUN&obj"] * 10])
    found = {" ".join(labels): count for labels, count in borrowed(all_families, "V").items()}
    assert found == {"@VERB&@ NOUN&obj": 10, "NOUN&nmod @VERB&@": 1}


# demonstratives


def test_demonstratives_are_penalised_as_a_relation_and_subtypes_more() -> None:
    some = distinct(families(["DET&det:dem @NOUN&@", "@NOUN&@ NOUN&nmod:poss"]), "N")
    plain = Problem(some, FitSettings(l2=3.0)).strengths
    found = Problem(some, FitSettings(l2=3.0, factors={"joint": 2.0, "fine joint": 4.0})).strengths
    assert set(plain) == {3.0}
    assert set(found) == {3.0, 6.0, 12.0}
    one = distinct(families(["DET&det:dem @NOUN&@"]), "N")
    found = Problem(one, FitSettings(l2=3.0, factors={"joint": 2.0, "fine joint": 4.0})).strengths
    assert set(found) == {3.0, 6.0}


THIS_MAN = """\
1\tseo\tseo\tDET\t_\tPronType=Dem\t2\tdet\t_\t_
2\tfear\tfear\tNOUN\t_\t_\t0\troot\t_\t_
3\tan\tan\tDET\t_\tPronType=Art\t2\tdet\t_\t_

"""


def test_demonstratives_are_read_from_feats(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(THIS_MAN * 3, "utf-8")
    got, n_sentences = read_families([path], own=True)
    assert got.labels(0) == ["DET&det:dem", "@NOUN&@", "DET&det"]
    assert n_sentences == 3
    assert demonstratives([path]) == ("seo",)
    bare = pa.table(
        {"upos": [["DET", "NOUN"]], "deprel": [["det", "root"]], "head": pa.array([[2, 0]], pa.list_(pa.int32()))}
    )
    assert families_of_tables([bare])[0].labels(0) == ["DET&det", "@NOUN&@"]


def test_the_demonstratives_of_a_grammar_are_in_its_file_and_fingerprint(tmp_path: Path) -> None:
    weights = {"N": genitives()}
    grammar = Grammar("x", "X", "v2", weights, {"demonstratives": "that this"})
    (tmp_path / "x.grammar.tsv").write_text(grammar_text(grammar), "utf-8", newline="\n")
    again = load_grammar(tmp_path / "x.grammar.tsv")
    assert again.demonstratives == ("that", "this")
    assert OrderModel(again, again).demonstratives == ("that", "this")
    assert OrderModel(again).demonstratives == ()
    assert grammar.fingerprint != Grammar("x", "X", "v2", weights).fingerprint
    assert {"that", "these", "this", "those"} <= set(load_grammar("en").demonstratives)


def test_a_demonstrative_stands_where_the_language_has_it() -> None:
    """Irish: an fear seo, `the man this`; English marks it by its form."""
    model = OrderModel(load_grammar("ga"), load_grammar("en"))
    assert before(model, "DET&det:dem @NOUN&@", "DET&det:dem") < 0.3
    assert before(model, "DET&det @NOUN&@", "DET&det") > 0.9
    assert np.isclose(
        before(model, "DET&det:other @NOUN&@", "DET&det:other"), before(model, "DET&det @NOUN&@", "DET&det")
    )
