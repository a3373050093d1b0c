"""Fitting, grammar files, and label maps."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from derivlang.core.errors import DataError, LayerError, UsageError
from derivlang.core.messages import DerivlangWarning
from derivlang.grammar.build import GrammarRecipe, build, held_out_bits
from derivlang.grammar.families import Families, candidates, families_of_trees, head_class, old_labels
from derivlang.grammar.fit import FitSettings, Problem, distinct, fit, thinned
from derivlang.grammar.grammar import Grammar, grammar_text, load_grammar
from derivlang.grammar.order_model import OrderModel
from derivlang.grammar.treebank import joined
from derivlang.grammar.weights import Weights, views
from tests.commands import run

TOY = [
    *["NOUN&nsubj @VERB&@ NOUN&obj"] * 30,
    *["NOUN&nsubj NOUN&obj @VERB&@"] * 6,
    *["ADV&advmod NOUN&nsubj @VERB&@ NOUN&obj NOUN&obl:arg"] * 4,
    *["PRON&nsubj AUX&aux @VERB&@ NOUN&obl:mod NOUN&obl:arg SCONJ&mark"] * 3,
    *["DET&det @NOUN&@ ADJ&amod"] * 25,
]


def toy() -> Families:
    return Families.of([line.split() for line in TOY])


def test_the_gradient_is_that_of_finite_differences() -> None:
    problem = Problem(distinct(toy(), "V"), FitSettings(l2=0.7, factors={"joint": 2.0, "fine joint": 0.5}))
    rng = np.random.default_rng(0)
    weights = rng.normal(size=len(problem.cells))
    _, gradient = problem.value(weights)
    for at in rng.choice(len(weights), 40, replace=False):
        step = np.zeros(len(weights))
        step[at] = 1e-5
        slope = (problem.value(weights + step)[0] - problem.value(weights - step)[0]) / 2e-5
        assert slope == pytest.approx(gradient[at], abs=1e-6, rel=1e-6)


def test_the_value_is_the_likelihood_of_the_model() -> None:
    """The fitted objective and `log_probs`, two programmes, agree."""
    problem = Problem(distinct(toy(), "V"), FitSettings(l2=1e-12))
    weights = np.random.default_rng(1).normal(size=len(problem.cells))
    model = OrderModel(Grammar("", "", "v2", {"V": problem.weights(weights)}))
    families = toy().take(np.arange(43))
    standing = np.concatenate([np.arange(n) for n in np.diff(families.offsets)]).astype(np.int32)
    assert -model.log_probs(families, standing).sum() == pytest.approx(problem.value(weights)[0])


def test_a_fitted_model_has_the_shares_that_it_saw() -> None:
    model = OrderModel(Grammar("", "", "v2", {"V": fit(toy(), "V", FitSettings(l2=0.01))}))
    orders, probabilities = model.distribution("NOUN&nsubj @VERB&@ NOUN&obj".split())
    shares = {tuple(order): p for order, p in zip(orders.tolist(), probabilities, strict=True)}
    assert shares[0, 1, 2] == pytest.approx(34 / 40, abs=0.06)
    assert shares[0, 2, 1] == pytest.approx(6 / 40, abs=0.06)


def test_counts_weigh_families() -> None:
    often = np.repeat(np.arange(len(TOY)), [5 if 30 <= at < 36 else 1 for at in range(len(TOY))])
    model = OrderModel(Grammar("", "", "v2", {"V": fit(toy().take(often), "V", FitSettings(l2=0.01))}))
    orders, probabilities = model.distribution("NOUN&nsubj @VERB&@ NOUN&obj".split())
    assert probabilities[orders.tolist().index([0, 2, 1])] > 0.4


def test_build_chooses_by_held_out_families_and_says_so() -> None:
    even = np.arange(len(toy())) % 2 == 0
    inside, held = toy().take(~even), toy().take(even)
    recipe = GrammarRecipe("toy", "Toy", ("N", "V", "ADJ"), strengths=(0.1, 50.0))
    grammar, chosen = build(recipe, inside, held, {"treebanks": "toy"})
    assert {name: settings.l2 for name, settings in chosen.items()} == {"V": 0.1}
    assert chosen["V"].thin == 0  # noun heads alone are thinned
    assert grammar.classes == ("V",)  # too few nouns, no adjective
    assert "L2 V 0.1" in grammar.about["settings"]
    strong, _ = build(GrammarRecipe("toy", "Toy", ("V",), strengths=(50.0,)), inside, None, {})
    assert held_out_bits(OrderModel(grammar), held) < held_out_bits(OrderModel(strong), held)
    with pytest.raises(DataError, match="few-heads"):
        build(GrammarRecipe("toy", "Toy", ("ADV",)), inside, None, {})


def test_too_few_held_out_heads_to_choose_by_are_told() -> None:
    few = toy().take(np.arange(12))  # V alone
    with pytest.warns(DerivlangWarning, match=r"^12 held-out heads of the class V are too few .* 20 are needed: L2 2"):
        build(GrammarRecipe("toy", "Toy", ("V",)), toy(), few, {})
    with pytest.warns(DerivlangWarning, match=r"^0 held-out heads of the class N"):
        build(GrammarRecipe("toy", "Toy", ("N",), strengths=(2.0,)), toy(), few, {})
    build(GrammarRecipe("toy", "Toy", ("V",), strengths=(2.0,)), toy(), few, {})  # nothing to choose


# thinning

ARTICLES = [
    *["DET&det @NOUN&@ ADJ&amod"] * 40,
    *["DET&det ADJ&amod @NOUN&@"] * 10,
    *["ADJ&amod @NOUN&@"] * 6,
    *["@NOUN&@ ADJ&amod"] * 4,
]


def articles() -> Families:
    return Families.of([line.split() for line in ARTICLES])


def test_thinned_families() -> None:
    got = thinned({("DET&det", "ADJ&amod", "@NOUN&@"): 2.0}, 0.25)
    assert {" ".join(labels): count for labels, count in got.items()} == {
        "DET&det ADJ&amod @NOUN&@": 1.125,
        "ADJ&amod @NOUN&@": 0.375,
        "DET&det @NOUN&@": 0.375,
        "@NOUN&@": 0.125,
    }


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_thinning_leaves_out_each_dependent_on_its_own(share: float) -> None:
    """Against every choice of who stays, one by one; the sum of the counts stays what it was."""
    own = distinct(toy(), "V")
    counted = {labels: own[labels] * factor for labels, factor in zip(own, np.linspace(0.5, 2, len(own)), strict=True)}
    expected: dict[tuple[str, ...], float] = {}
    for labels, count in counted.items():
        for stays in product((True, False), repeat=len(labels)):
            chances = [1.0 if label.startswith("@") else 1 - share if stay else share
                       for label, stay in zip(labels, stays, strict=True)]  # fmt: skip
            if all(stay or not label.startswith("@") for label, stay in zip(labels, stays, strict=True)):
                left = tuple(label for label, stay in zip(labels, stays, strict=True) if stay)
                expected[left] = expected.get(left, 0.0) + count * float(np.prod(chances))
    found = thinned(counted, share)
    assert found == pytest.approx({labels: count for labels, count in expected.items() if count})
    assert sum(found.values()) == pytest.approx(sum(counted.values()))
    assert list(found) == sorted(found)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_to_leave_out_is_below_one(share: float) -> None:
    with pytest.raises(UsageError, match="thin-share"):
        fit(toy(), "N", FitSettings(thin=share))


def test_a_thinned_model_leans_less_on_what_is_not_there() -> None:
    """Articles seen: adjectives follow four times in five; without: two in five. A foreign bare noun is between."""

    def after(thin: float) -> float:
        model = OrderModel(Grammar("", "", "v2", {"N": fit(articles(), "N", FitSettings(l2=0.01, thin=thin))}))
        orders, probabilities = model.distribution("@NOUN&@ ADJ&amod".split())
        return float(probabilities[orders.tolist().index([0, 1])])

    assert after(0.0) == pytest.approx(0.4, abs=0.05)
    assert after(0.0) < after(0.25) < after(0.5) < 0.8
    assert after(0.5) == pytest.approx((0.5 * 4 + 0.25 * 40) / (0.5 * 10 + 0.25 * 50), abs=0.05)


def test_build_chooses_the_thinning_by_held_out_families_and_says_so() -> None:
    """The largest share that is near the best: without the articles' families, bare nouns are what they were."""
    bare = Families.of([["@NOUN&@", "ADJ&amod"]] * 40)
    recipe = GrammarRecipe("toy", "Toy", ("N",), strengths=(0.1,))
    grammar, chosen = build(recipe, articles(), bare, {})
    assert chosen["N"].thin == 0.5
    assert "thinned N 0.5" in grammar.about["settings"]
    grammar, chosen = build(recipe, articles(), articles().take(np.arange(50, 60).repeat(4)), {})
    assert chosen["N"].thin == 0
    assert "thinned" not in grammar.about["settings"]
    assert build(recipe, articles(), None, {})[1]["N"].thin == 0
    asked = GrammarRecipe("toy", "Toy", ("N",), strengths=(0.1,), thin=0.25)
    assert build(asked, articles(), bare, {})[1]["N"].thin == build(asked, articles(), None, {})[1]["N"].thin == 0.25


def test_an_unknown_subtype_is_looked_up_without_it() -> None:
    model = OrderModel(Grammar("", "", "v2", {"V": fit(toy(), "V", FitSettings())}))
    plain = model.distribution("NOUN&nsubj @VERB&@ NOUN&obl".split())[1]
    assert (model.distribution("NOUN&nsubj @VERB&@ NOUN&obl:tmod".split())[1] == plain).all()
    assert (model.distribution("NOUN&nsubj @VERB&@ NOUN&obl:arg".split())[1] != plain).any()


# files


def test_a_file_gives_its_grammar_back(tmp_path: Path) -> None:
    weights = {"N": fit(toy(), "N", FitSettings()), "V": fit(toy(), "V", FitSettings())}
    weights["V"] = Weights(weights["V"].codes, weights["V"].pairs, {("BOS", "NOUN&nsubj", "@VERB&@"): 0.5})
    grammar = Grammar("toy", "Toy", "v2", weights, {"licence": "CC0-1.0", "treebanks": "a: b"})
    path = tmp_path / "toy.grammar.tsv"
    path.write_text(grammar_text(grammar), "utf-8", newline="\n")
    again = load_grammar(path)
    assert (again.name, again.language, again.labels, again.classes) == ("toy", "Toy", "v2", ("N", "V"))
    assert again.about == grammar.about
    assert grammar_text(again) == path.read_text("utf-8")
    for name in weights:
        theirs = {feature[:2]: feature[2] for feature in again.weights[name].features()}
        for kind, tokens, weight in weights[name].features():
            assert theirs.get((kind, tokens), 0.0) == pytest.approx(weight, abs=0.00501 if kind != "HI" else 1e-9)
    assert again.fingerprint == load_grammar(path).fingerprint
    assert any(weights.sequences for weights in again.weights.values())


def test_an_edited_grammar_is_refused_unless_its_hash_is_deleted(tmp_path: Path) -> None:
    """A change of any line is noticed; other line ends are none."""
    grammar = Grammar("toy", "Toy", "v2", {"V": fit(toy(), "V", FitSettings())}, {"licence": "CC0-1.0"})
    path = tmp_path / "toy.grammar.tsv"
    path.write_text(grammar_text(grammar), "utf-8", newline="\n")
    lines = path.read_text("utf-8").splitlines()
    assert load_grammar(path).has_hash
    assert run("verify", path).out == f"{path}: 1 file checked, nothing is wrong\n"
    (hashed,) = (number for number, line in enumerate(lines) if line.startswith("# sha256: "))
    for number in (1, 3, hashed, len(lines) - 1):  # language, licence, the hash itself, a weight
        other = lines[number][:-1] + ("1" if lines[number][-1] != "1" else "2")
        changed = [*lines[:number], other, *lines[number + 1 :]]
        assert changed != lines
        path.write_text("\n".join(changed) + "\n", "utf-8")
        with pytest.raises(DataError, match="delete the line `# sha256` if you edited it") as caught:
            load_grammar(path)
        assert (caught.value.id, caught.value.where) == ("grammar-changed", str(path))
    assert "[grammar-changed]" in run("verify", path, code=1).err
    path.write_bytes("\r\n".join(lines).encode())
    assert load_grammar(path).fingerprint == grammar_of(lines, tmp_path).fingerprint
    edited = [line.replace("CC0", "CC-BY") for line in lines if not line.startswith("# sha256")]
    assert not grammar_of(edited, tmp_path).has_hash


def grammar_of(lines: list[str], folder: Path) -> Grammar:
    path = folder / "again.grammar.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return load_grammar(path)


HEADER = "# derivlang grammar 1\n# language: Toy\n# labels: v2\nclass\tV\n"


@pytest.mark.parametrize(
    ("text", "line", "id"),
    [
        ("nothing of the kind\n", 1, "grammar-header"),
        (HEADER + "BFR\tNOUN&nsubj\tNOUN&obj=x\n", 5, "grammar-line"),
        (HEADER + "BFR\tNOUN&nsubj\tNOUN&obj\n", 5, "grammar-line"),
        (HEADER + "BFR\tNOUN&nsubj\tNOUN&obj=nan\n", 5, "grammar-line"),
        (HEADER + "XYZ\tNOUN&nsubj\tNOUN&obj=1\n", 5, "grammar-line"),
        (HEADER + "BFR NOUN&nsubj NOUN&obj=1\n", 5, "grammar-line"),
        (HEADER + "class\tV\n", 5, "grammar-line"),
        (HEADER + "HI\ta\tb=1\n", 5, "grammar-line"),
        ("# derivlang grammar 1\n# labels: v2\nBFR\ta\tb=1\n", 3, "grammar-line"),
        ("# derivlang grammar 1\n# labels: v3\nclass\tV\n", None, "grammar-header"),
        ("# derivlang grammar 1\n# labels: v2\n", None, "grammar-header"),
        (HEADER + "BFR\ta\tb=1\tb=2\n", 5, "grammar-line"),
    ],
)
def test_a_broken_file_is_one_clear_error(text: str, line: int | None, id: str, tmp_path: Path) -> None:
    path = tmp_path / "x.grammar.tsv"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError) as caught:
        load_grammar(path)
    assert caught.value.id == id
    assert caught.value.where == (f"{path}:{line}" if line else str(path))


@pytest.mark.parametrize(
    "line", ["BI_a_b x", "BI_a 1.0", "XY_a_b 1.0", "BI_a_b inf", "HI_a_b 1", "BI_a_b_c 1", "BI_DET_NOUN 0.5", ""]
)
def test_a_broken_published_file_too(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x@V.orm"
    path.write_text(f"BI_DET_NOUN 0.5\n{line}\n", "utf-8")
    with pytest.raises(DataError) as caught:
        load_grammar(path)
    assert (caught.value.id, caught.value.where) == ("grammar-line", f"{path}:2")


def test_sequences_of_four_count_without_one_of_three(tmp_path: Path) -> None:
    path = tmp_path / "h@V.orm"
    path.write_text("HI_NOUN&nsubj_@VERB&@_NOUN&dobj_ADV&advmod 5\n")
    nodes = ["NOUN&nsubj", "@VERB&@", "NOUN&obj", "ADV&advmod"]
    probabilities = OrderModel(load_grammar(path)).distribution(nodes)[1]
    assert probabilities[0] == pytest.approx(np.exp(5) / (np.exp(5) + 23))


def test_names_and_paths_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean fr"):
        load_grammar("frr")
    with pytest.raises(UsageError, match="unknown-grammar"):
        load_grammar(tmp_path / "fr")
    (tmp_path / "fr.orm").write_text("BI_DET_NOUN 0.5\n")
    with pytest.raises(UsageError, match="grammar-name"):
        load_grammar(tmp_path / "fr.orm")
    (tmp_path / "fr@N.orm.gz").write_bytes(b"\x1f\x8b not gzip")
    with pytest.raises(DataError, match="truncated"):
        load_grammar(tmp_path / "fr@N.orm.gz")
    with pytest.raises(UsageError, match="grammar-class"):
        OrderModel({"ADP": load_grammar("fr")})


# labels


@pytest.mark.parametrize(
    ("token", "name", "version", "first"),
    [
        ("NOUN&obj", "V", "v1", "NOUN&dobj"),
        ("NOUN&obl", "V", "v1", "NOUN&nmod"),
        ("NOUN&obl:tmod", "V", "v1", "NOUN&nmod:tmod"),
        ("NOUN&nsubj:pass", "V", "v1", "NOUN&nsubjpass"),
        ("AUX&aux:pass", "V", "v1", "AUX&auxpass"),
        ("CCONJ&cc", "V", "v1", "CONJ&cc"),
        ("PROPN&flat", "N", "v1", "PROPN&name"),
        ("X&flat:foreign", "N", "v1", "X&foreign"),
        ("ADP&fixed", "N", "v1", "ADP&mwe"),
        ("PART&advmod", "V", "v1", "PART&neg"),
        ("AUX&cop", "N", "v1", "AUX&cop"),
        ("NOUN&nsubj", "V", "v1", "NOUN&nsubj"),
        ("VERB&acl:relcl", "N", "v1", "VERB&acl:relcl"),
        ("NOUN&dobj", "V", "v2", "NOUN&obj"),
        ("NOUN&nmod", "V", "v2", "NOUN&obl"),
        ("NOUN&nmod", "NUM", "v2", "NOUN&nmod"),
        ("NOUN&nmod", "N", "v2", "NOUN&nmod"),
        ("NOUN&nsubjpass", "V", "v2", "NOUN&nsubj:pass"),
        ("AUX&auxpass", "V", "v2", "AUX&aux:pass"),
        ("CONJ&cc", "V", "v2", "CCONJ&cc"),
        ("PROPN&name", "N", "v2", "PROPN&flat"),
        ("ADP&mwe", "N", "v2", "ADP&fixed"),
        ("PART&neg", "V", "v2", "PART&advmod"),
        ("VERB&cop", "N", "v2", "AUX&cop"),
        ("NOUN&remnant", "V", "v2", "NOUN&orphan"),
        ("@NOUN&@", "N", "v1", "@NOUN&@"),
    ],
)
def test_labels_go_from_one_version_to_the_other(token: str, name: str, version: str, first: str) -> None:
    assert candidates(token, name, version)[0] == first


def test_a_label_of_the_grammars_own_version_stays() -> None:
    for token in ("NOUN&obj", "NOUN&obl:arg", "CCONJ&cc", "AUX&aux:pass", "ADV&advmod"):
        assert candidates(token, "V", "v2")[0] == token
    for token in ("NOUN&dobj", "NOUN&nmod:tmod", "CONJ&cc", "AUX&auxpass", "ADV&neg"):
        assert candidates(token, "V", "v1")[0] == token


def test_old_labels_are_named() -> None:
    assert old_labels(["NOUN&dobj", "CONJ&cc", "NOUN&nsubj", "@VERB&@"]) == ["CONJ", "dobj"]
    assert old_labels(["NOUN&obj", "CCONJ&cc", "NOUN&nsubj:pass"]) == []


def test_views() -> None:
    assert views("NOUN&obl:arg", 3) == ("NOUN&obl:arg", "NOUN", "obl:arg")
    assert views("NOUN&obl:arg", 5) == ("NOUN&obl", "NOUN", "obl", "NOUN&obl:arg", "obl:arg")
    assert views("@NOUN&@", 5) == ("@NOUN&@", "@NOUN", "@", "@NOUN&@", "@")
    assert head_class("@PRON&@") == head_class("PROPN") == "N"


# families


def test_families_of_trees() -> None:
    """She sleeps there . / Ann"""
    heads = np.array([2, 0, 2, 2, 0], np.int32)
    upos, deprel = "PRON VERB ADV PUNCT PROPN".split(), "nsubj root advmod punct root".split()
    families, words = families_of_trees(heads, np.array([0, 4, 5]), upos, deprel)
    assert [families.labels(f) for f in range(len(families))] == [["PRON&nsubj", "@VERB&@", "ADV&advmod"]]
    assert words.tolist() == [0, 1, 2]
    families, words = families_of_trees(heads, np.array([0, 4, 5]), upos, deprel, punct=True)
    assert families.labels(0)[-1] == "PUNCT&punct"
    assert families.head_places.tolist() == [1]


@pytest.mark.parametrize("family", [["NOUN&nsubj"], ["@VERB&@", "@VERB&@"], []])
def test_a_family_has_one_head(family: list[str]) -> None:
    with pytest.raises(LayerError, match="family-head"):
        Families.of([["@VERB&@", "NOUN&obj"], family])


def test_joining() -> None:
    other = Families.of([["NOUN&obj", "@VERB&@"], ["@NOUN&@"]])
    both = joined(toy(), other)
    assert both.labels(len(TOY)) == other.labels(0)
    assert len(both) == len(TOY) + 2
