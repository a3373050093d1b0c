"""Word-order features: what is counted, and expectations against the whole distribution."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from derivlang.grammar.families import Families
from derivlang.grammar.grammar import load_grammar
from derivlang.grammar.order_model import OrderModel
from tests.helpers import ROOT
from tests.real import SHARED, needs_data
from tools.word_order import FEATURES, FEWEST, PAIRS, SVO, OrderSample, expected, observed, sample_of_tables

NAMES = [feature.name for feature in FEATURES]


def table(*sentences: str) -> pa.Table:
    """Words as UPOS/deprel/head/FEATS."""
    words = [[word.split("/") for word in sentence.split()] for sentence in sentences]
    column = {
        name: [[word[i] for word in line] for line in words]
        for i, name in enumerate(("upos", "deprel", "head", "feats"))
    }
    heads = pa.array([[int(head) for head in line] for line in column["head"]], pa.list_(pa.int32()))
    return pa.table({"upos": column["upos"], "deprel": column["deprel"], "head": heads, "feats": column["feats"]})


def shares(*sentences: str) -> dict[str, tuple[int, float]]:
    found = observed(sample_of_tables([table(*sentences)]))
    return {name: row for name, row in found.items() if row[0]}


def test_each_feature_is_counted() -> None:
    """That old man sees two cats of Ann that sleep, as she has said."""
    assert shares(
        "DET/det/3/PronType=Dem ADJ/amod/3/_ NOUN/nsubj/4/_ VERB/root/0/_ NUM/nummod/6/_ NOUN/obj/4/_ ADP/case/8/_"
        " PROPN/nmod/6/_ PRON/nsubj/10/_ VERB/acl:relcl/6/_ SCONJ/mark/14/_ PRON/nsubj/14/_ AUX/aux/14/_ VERB/advcl/4/_"
    ) == {name: (1, 0.0 if name in ("object", "genitive", "relative clause") else 1.0) for name in NAMES}


def test_what_is_left_out() -> None:
    """Pronouns, copular clauses, case markers that are not ADP, infinitive markers, auxiliaries of no verb."""
    assert shares("PRON/nsubj/2/_ VERB/root/0/_ PRON/obj/2/_") == {}
    assert shares("NOUN/nsubj/4/_ AUX/aux/4/_ AUX/cop/4/_ ADJ/root/0/_") == {}
    assert shares("PROPN/nmod:poss/3/_ PART/case/1/_ NOUN/root/0/_") == {"genitive": (1, 1.0)}
    assert shares("VERB/root/0/_ PART/mark/3/_ VERB/xcomp/1/_ PRON/obj/3/_") == {}
    assert shares("AUX/aux/2/_ NOUN/root/0/VerbForm=Vnoun") == {"auxiliary": (1, 1.0)}


def test_a_difference_that_the_treebank_does_not_mark_is_not_made() -> None:
    two = "DET/det/2/_ NOUN/root/0/_ VERB/acl/2/_"
    assert shares(two) == {"demonstrative": (1, 1.0), "relative clause": (1, 0.0)}
    assert shares(two, "NOUN/root/0/_ DET/det/1/PronType=Dem VERB/acl:relcl/1/_") == {
        "demonstrative": (1, 0.0),
        "relative clause": (1, 0.0),
    }


def test_expectations_are_those_of_the_distribution() -> None:
    """Against the probabilities of all orders; a head without a model counts as it stands."""
    model = OrderModel(load_grammar("de"), load_grammar("en"))
    lines = ["SCONJ&mark AUX&aux NOUN&nsubj @VERB&@ NOUN&obj", "AUX&aux NOUN&nsubj @VERB&@", "DET&det @SYM&@"]
    families = Families.of([line.split() for line in lines])
    flags = np.array([token in ("AUX&aux", "DET&det") for token in families.tokens])[families.members]
    sample = OrderSample(families, {"some": flags})
    before = [1.0]
    for line, (x, head) in zip(lines[:2], ((1, 3), (0, 2)), strict=True):
        orders, probabilities = model.distribution(line.split())
        before.append(((orders == x).argmax(axis=1) < (orders == head).argmax(axis=1)) @ probabilities)
    assert expected(model, sample)["some"] == (3, pytest.approx(np.mean(before), abs=1e-12))
    assert expected(model, sample.take(np.array([False, False, True])))["some"] == (1, 1.0)


@needs_data
@pytest.mark.parametrize(
    ("path", "name", "percent"),
    [
        ("UD_Hindi-PUD/hi_pud", "genitive", 96.9),
        ("UD_Chinese-PUD/zh_pud", "adposition", 63.3),
        ("UD_French-PUD/fr_pud", "adjective", 31.1),
        ("UD_German-PUD/de_pud", "subject", 77.8),
        ("UD_German-PUD/de_pud", "genitive", 6.1),
    ],
)
def test_shares_of_real_treebanks(path: str, name: str, percent: float) -> None:
    from derivlang.formats import conllu

    tables = [rows.table for rows in conllu.read(SHARED / "ud" / f"{path}-ud-test.conllu.gz")]
    found = observed(sample_of_tables(tables))
    assert 100 * found[name][1] == pytest.approx(percent, abs=0.05)


@needs_data
def test_the_program_prints_features_pairs_and_clauses() -> None:
    """In French each share comes close to what the grammar expects; it has learnt from other sentences."""
    path = SHARED / "ud/UD_French-GSD/fr_gsd-ud-test.conllu"
    done = subprocess.run(
        [sys.executable, ROOT / "tools/word_order.py", path, "--grammar", "fr"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {line[:28].strip(): line[28:].replace("%", "").split() for line in done.stdout.splitlines()}
    assert [*rows] == [*NAMES, *PAIRS, *SVO]
    for number, share, under in rows.values():
        assert int(number.replace(",", "")) < FEWEST or abs(float(share) - float(under)) < 15
    assert rows["S-V-O"][1] == "100.0"
