"""derivlang beside a plain second reading of four studies (`tests/published_rules.py`), and rows of each.

`published_rows.tsv` has 20 rows or more of each study, from its own examples where it has them: table 1 of Kallini et
al. (both columns), the sentence of Ravfogel et al. (its OVS row stands in their README; the other rows are worked out
by the rule), and the orders by length that the program of Ziv et al. draws. All other rows are our own, worked out from
the descriptions: 12 of Ravfogel, all of White and Cotterell.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import published_rules as plain
from tests.commands import make, rows, run, written
from tests.published_rules import Token
from tests.real import SHARED, needs_data
from tests.reference_brackets import read
from tests.test_marks_and_forms import COLUMNS, UPOS, VERB, treebank


class Row(NamedTuple):
    """A row of a paper, or of our own. source: a text, or @ and the name of a tree."""

    study: str
    language: str
    spec: str
    source: str
    right: str


FILE = Path(__file__).parent / "published_rows.tsv"
ROWS = [Row(*line.split("\t")) for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
HE = (
    f"He/he/PRON/2/nsubj cleans/clean/VERB/0/root/{VERB} his/his/PRON/5/nmod very/very/ADV/5/advmod"
    " messy/messy/ADJ/6/amod"
)
BOOKS = "books/book/NOUN/2/obj he/he/PRON/8/nsubj lf/lf/X/2/dep ././PUNCT/2/punct"
SHELF = "bookshelf/bookshelf/NOUN/2/obj ././PUNCT/2/punct"
THEY = HE.replace("He/he", "They/they").replace("cleans", "clean").replace("Sing", "Plur")
SINGULAR, PLURAL = "Number=Sing", "Number=Plur"
TREES = {
    "he": f"{HE} {BOOKS}",
    "they": f"{THEY} {BOOKS}",
    "he_shelf": f"{HE} {SHELF}",
    "they_shelf": f"{THEY} {SHELF}",
    "lunch": f"they/they/PRON/2/nsubj/{PLURAL} say/say/VERB/0/root the/the/DET/4/det"
    f" broker/broker/NOUN/5/nsubj/{SINGULAR} took/take/VERB/2/ccomp them/they/PRON/5/obj/{PLURAL}"
    " out/out/ADP/5/compound:prt for/for/ADP/9/case lunch/lunch/NOUN/5/obl frequently/frequently/ADV/5/advmod",
    "gave": f"she/she/PRON/2/nsubj/{SINGULAR} gave/give/VERB/0/root him/he/PRON/2/iobj/{SINGULAR}"
    f" apples/apple/NOUN/2/obj/{PLURAL} today/today/NOUN/2/obl",
    "cat": f"the/the/DET/2/det cats/cat/NOUN/5/nsubj/{PLURAL} are/be/AUX/5/cop very/very/ADV/5/advmod"
    " black/black/ADJ/0/root",
    "man": f"Ann/Ann/PROPN/2/nsubj/{SINGULAR} met/meet/VERB/0/root a/a/DET/4/det man/man/NOUN/2/obj/{SINGULAR}"
    f" who/who/PRON/6/nsubj sells/sell/VERB/4/acl:relcl books/book/NOUN/6/obj/{PLURAL}",
    "slept": f"the/the/DET/2/det boys/boy/NOUN/4/nsubj/{PLURAL} have/have/AUX/4/aux slept/sleep/VERB/0/root"
    " well/well/ADV/4/advmod",
}
BRACKETS = {
    "object": "(Text (S (Subject_p (NP_p (N_p (Noun_p menans))) sub) (VP_p (Object (NP_s (PP (NP_s (N_s (Noun_s"
    " zeeltuv))) (P sogip)) (NP_s (N_s (A traigan) (N_s (Noun_s bletov))))) ob) (VT_p zemof))) .)",
    "clause": "(Text (S (Subject_p (NP_p (N_p (Noun_p droopuvs))) sub) (VP_p (CP (S (Subject_s (NP_s (Relative_s"
    " (VP_s (VI_s brindompes)) hoo) (NP_s (N_s (Noun_s drakuk)))) sub) (VP_s (VI_s bakoges))) tha) (VC_p greekif))) .)",
}


@pytest.mark.parametrize("study", ["kallini", "ravfogel", "ziv", "white"])
def test_each_study_has_twenty_rows(study: str) -> None:
    assert sum(row.study == study for row in ROWS) >= 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.study} {row.spec} {row.source[:12]}")
def test_rows(row: Row, tmp_path: Path) -> None:
    name = row.source.removeprefix("@")
    if name == row.source:
        made = run("derive", row.source, "--t", row.spec, "--words", "space").out.split()
    else:
        text, suffix = (treebank(TREES[name]), "conllu") if name in TREES else (BRACKETS[name] + "\n", "mrg")
        make(row.spec, written(tmp_path / f"a.{suffix}", text), tmp_path / "out")
        made = rows(tmp_path / "out", "train")[0]["tokens"]
    assert " ".join(made) == row.right


# real sentences


def made(spec: str, source: str, out: Path, split: str, *options: object) -> list[dict[str, Any]]:
    make(spec, source, out, "--splits", split, *options)
    return rows(out, split)


@pytest.fixture(name="ewt", scope="module")
def _ewt(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """300 sentences of a treebank under a spec."""
    numbers = itertools.count()
    return lambda spec: made(
        spec,
        "pos:English-EWT",
        tmp_path_factory.mktemp(str(next(numbers))),
        "test",
        "--data-dir",
        SHARED,
        "--limit",
        300,
    )


def sentences(row: dict[str, Any]) -> list[list[str]]:
    """The sentences of a row of the source."""
    ends = [0, *itertools.accumulate((row["sentences"] or [len(row["tokens"])])[::2])]
    return [row["tokens"][a:b] for a, b in itertools.pairwise(ends)]


@needs_data
def test_kallini(ewt: Callable[[str], list[dict[str, Any]]]) -> None:
    """Twelve languages and a control; hops are in `tests/test_marks_and_forms.py`."""
    found = [sentence for row in ewt("identity") for sentence in sentences(row)]
    for spec, (name, language) in plain.KALLINI.items():
        ours = [word for row in ewt(spec) for word in row["tokens"]]
        assert ours == [word for sentence in language(found) for word in sentence], name


@needs_data
@pytest.mark.parametrize("order", ["ovs", "sov", "vso", "vos", "osv", "svo"])
def test_ravfogel(order: str, ewt: Callable[[str], list[dict[str, Any]]]) -> None:
    """Orders; suffixes are in `tests/test_marks_and_forms.py`."""
    for source, row in zip(ewt("identity"), ewt(f"sov:{order}:freeze=none:punct=permute"), strict=True):
        unit = [
            Token(form, lemma, UPOS[tag], feats, head - 1, relation)
            for form, lemma, tag, feats, head, relation in zip(*(source[name] for name in COLUMNS), strict=True)
        ]
        assert row["order"] == plain.sov(unit, order), " ".join(source["tokens"])


@needs_data
def test_ziv(ewt: Callable[[str], list[dict[str, Any]]]) -> None:
    """Sentences that end with one full stop; the places of the markers are read from the control."""
    rules = {
        "shuffle:by=length:final=move:rng=python:seed=0": plain.shuffle_global,
        "inv:local=2:final=move": plain.pairs_turned,
        "exchange:0-3": plain.switch_indices,
    }
    languages = {spec: ewt(spec) for spec in rules}
    kinds = {"no": "inv:from=end", "partial": "inv:from=random", "full": "inv"}
    turned = {kind: ewt(f"{spec}:mark=<rev>") for kind, spec in kinds.items()}
    n = 0
    for number, source in enumerate(ewt("identity")):
        words = source["tokens"]
        if len(sentences(source)) > 1 or words[-1] != "." or not words[-2][-1].isalnum():
            continue
        n += 1
        for spec, rule in rules.items():
            assert languages[spec][number]["tokens"] == rule(words), spec
        place = turned["no"][number]["tokens"].index("<rev>")
        for kind, found in turned.items():
            assert found[number]["tokens"] == plain.ziv_reversed(kind, words, place)
    assert n > 100


@pytest.mark.parametrize("on", ["100000", "010000", "001000", "000100", "000010", "000001", "110010", "111111"])
def test_white(on: str, tmp_path: Path) -> None:
    """Sentences of a grammar with the study's switches, with the final full stop last."""
    source = "source:pcfg=six-switches:n=300"
    plainly = made("identity", source, tmp_path / "identity", "train")
    ours = made(f"switch:{on}:rules=six-switches", source, tmp_path / "out", "train")
    assert len(ours) > 250
    for row, derived in zip(plainly, ours, strict=True):
        (tree,) = read(row["parse"])
        assert derived["tokens"] == plain.switched(tree, on)
