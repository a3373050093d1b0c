"""Orders of trees on the cases of strangers (`tests/cases/orders`), through commands, and a law over real treebanks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import make, rows, run, written
from tests.real import SHARED, needs_data

CASES = Path(__file__).parent / "cases" / "orders"


# Texts, parsed by the bundled parser.
TEXTS = [
    ("syn:ja", "Ayman al-Zawahiri spoke to us .", "Ayman al - Zawahiri us to spoke ."),
    ("sov:svo", "It is hard to win .", "It is hard to win ."),
    ("exchange:0-3", "He sleeps well .", "He sleeps well ."),
]
# Files of `tests/cases/orders`.
FILES = [
    ("sov:svo", "outer-copula.conllu", "The problem is that customers are least loyal ."),
    ("sov:sov", "outer-copula.conllu", "The problem is that customers are least loyal ."),
    ("sov:ovs", "outer-copula.conllu", "is The problem that are customers least loyal ."),
    ("agree", "outer-copula.conllu", "The problem iskar that customers arekon least loyal ."),
    ("agree:on=aux", "outer-copula.conllu", "The problem iskar that customers arekon least loyal ."),
    ("hop:tokens=3", "clitic.conllu", "Here be a tip Do 🅂 n't go ."),
    ("hop:3", "clitic.conllu", "Here be a tip Do n't 🅂 go ."),
]


@pytest.mark.parametrize(("spec", "text", "right"), TEXTS)
def test_texts(spec: str, text: str, right: str) -> None:
    assert run("derive", text, "--t", spec).out == right + "\n"


def conllu(text: str) -> str:
    """A sentence of form/UPOS/relation/head words as CoNLL-U."""
    lines = []
    for number, word in enumerate(text.split(), 1):
        form, upos, relation, head = word.rsplit("/", 3)
        lines.append("\t".join([str(number), form, form.lower(), upos, "_", "_", head, relation, "_", "_"]))
    return "\n".join(lines) + "\n\n"


def derived(spec: str, source: Path, out: Path) -> str:
    """The first row of a file under a spec."""
    make(spec, source, out)
    return " ".join(rows(out, "train")[0]["tokens"])


# Trees that a parser may not find: spec, tree, derived words.
TREES = [
    # names, numbers and fixed expressions hold the marks between their words
    ("syn:ja", "We/PRON/nsubj/2 saw/VERB/root/0 Al/PROPN/obj/2 -/PUNCT/punct/5 Sadr/PROPN/flat/3", "We Al - Sadr saw"),
    (
        "syn:ja:mode=argmax",
        "We/PRON/nsubj/2 met/VERB/root/0 Abu/PROPN/obj/2 (/PUNCT/punct/5 Ali/PROPN/flat/3 )/PUNCT/punct/5",
        "We Abu ( Ali ) met",
    ),
    ("sov:ovs", "I/PRON/nsubj/2 saw/VERB/root/0 May/PROPN/obj/2 5/NUM/nummod/3 ,/PUNCT/punct/6 2005/NUM/nmod/4",
     "May 5 , 2005 saw I"),
    (
        "grammar:min-dl",
        "Kofi/PROPN/flat/3 ,/PUNCT/punct/3 Secretary/PROPN/nsubj/5 ,/PUNCT/punct/3 left/VERB/root/0",
        "left , Kofi , Secretary",
    ),
    # relative words stay, also where clauses are joined
    ("sov:ovs", "sort/NOUN/root/0 that/PRON/nsubj/3 keeps/VERB/advcl:relcl/1 projects/NOUN/obj/3",
     "sort that projects keeps"),
    ("sov:ovs", "sort/NOUN/root/0 that/PRON/nsubj/3 keeps/VERB/acl:relcl/1 projects/NOUN/obj/3",
     "sort that projects keeps"),
    ("sov:ovs", "cats/NOUN/root/0 that/PRON/nsubj/3 eat/VERB/acl:relcl/1 and/CCONJ/cc/6 that/PRON/nsubj/6 "
     "catch/VERB/conj/3 mice/NOUN/obj/6", "cats that eat and that mice catch"),
    ("sov:ovs", "I/PRON/nsubj/2 think/VERB/root/0 that/PRON/nsubj/4 helps/VERB/ccomp/2", "helps that think I"),
    # a clause behind its predicate stays, one before it is a subject
    ("sov:svo", "It/PRON/expl/2 hurts/VERB/root/0 me/PRON/obj/2 that/SCONJ/mark/6 he/PRON/nsubj/6 left/VERB/csubj/2",
     "It hurts me that he left"),
    ("sov:ovs", "What/PRON/obj/3 he/PRON/nsubj/3 did/VERB/csubj/4 hurts/VERB/root/0 me/PRON/obj/4",
     "me hurts What did he"),
    # outer copulas: verbs, auxiliaries, adverbs, questions, infinitives, conjunctions, two of them, none
    ("sov:svo", "The/DET/det/2 problem/NOUN/nsubj:outer/7 is/AUX/cop/7 really/ADV/advmod/7 that/SCONJ/mark/7 "
     "we/PRON/nsubj/7 lost/VERB/root/0 money/NOUN/obj/7", "The problem is really that we lost money"),
    ("sov:ovs", "The/DET/det/2 problem/NOUN/nsubj:outer/7 is/AUX/cop/7 really/ADV/advmod/7 that/SCONJ/mark/7 "
     "we/PRON/nsubj/7 lost/VERB/root/0 money/NOUN/obj/7", "is The problem really that money lost we"),
    ("sov:ovs", "The/DET/det/2 aim/NOUN/nsubj:outer/6 will/AUX/aux/6 be/AUX/cop/6 to/PART/mark/6 win/VERB/root/0 "
     "it/PRON/obj/6", "The aim will be it to win"),
    ("sov:ovs", "What/PRON/nsubj:outer/6 matters/VERB/acl:relcl/1 is/AUX/cop/6 that/SCONJ/mark/6 cats/NOUN/nsubj/6 "
     "happy/ADJ/root/0 are/AUX/cop/6", "What matters is that happy are cats"),
    ("sov:svo", "What/PRON/nsubj:outer/10 counts/VERB/acl:relcl/1 is/AUX/cop/10 that/SCONJ/mark/10 the/DET/det/6 "
     "way/NOUN/nsubj:outer/10 is/AUX/cop/10 always/ADV/advmod/10 to/PART/mark/10 try/VERB/root/0",
     "What counts is that the way is always to try"),
    ("sov:ovs", "We/PRON/nsubj:outer/2 owe/VERB/root/0 it/PRON/obj/2", "it owe We"),
    ("agree:number=no", "The/DET/det/2 problem/NOUN/nsubj:outer/6 may/AUX/aux/6 be/AUX/cop/6 we/PRON/nsubj/6 "
     "lost/VERB/root/0 money/NOUN/obj/6", "The problem may bekar we lostkarkin money"),
    ("agree:number=no:on=aux", "The/DET/det/2 problem/NOUN/nsubj:outer/7 may/AUX/aux/7 be/AUX/cop/7 we/PRON/nsubj/7 "
     "have/AUX/aux/7 lost/VERB/root/0 money/NOUN/obj/7", "The problem maykar be we havekarkin lost money"),
    ("agree:number=no:on=aux", "The/DET/det/2 problem/NOUN/nsubj:outer/5 is/AUX/cop/5 we/PRON/nsubj/5 "
     "lost/VERB/root/0", "The problem iskar we lostkar"),
    ("case:erg-abs:number=no", "The/DET/det/2 problem/NOUN/nsubj:outer/5 is/AUX/cop/5 we/PRON/nsubj/5 "
     "lost/VERB/root/0 money/NOUN/obj/5", "The problemkin is wekar lost moneykin"),
    # without them they are words and marks like others
    ("sov:ovs:freeze=none", "I/PRON/nsubj/2 saw/VERB/root/0 Al/PROPN/obj/2 -/PUNCT/punct/5 Sadr/PROPN/flat/3",
     "Al - Sadr saw I"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "tree", "right"), TREES)
def test_trees(spec: str, tree: str, right: str, tmp_path: Path) -> None:
    assert derived(spec, written(tmp_path / "a.conllu", conllu(tree)), tmp_path / "out") == right


@pytest.mark.parametrize(("spec", "name", "right"), FILES)
def test_files(spec: str, name: str, right: str, tmp_path: Path) -> None:
    assert derived(spec, CASES / name, tmp_path / "out") == right


def test_the_specs_listed_for_the_studies() -> None:
    """`ls --study` has both bearers of agreement, and the exchange of places before the final mark."""
    ravfogel, ziv = (run("ls", "--study", name).out.split() for name in ("ravfogel2019", "ziv2026"))
    assert {"agree:subj+obj+iobj", "agree:subj+obj+iobj:on=aux"} <= {*ravfogel}
    assert "exchange:0-3" in ziv


@needs_data
@pytest.mark.parametrize(("spec", "bank"), [("syn:ja", "English-EWT"), ("grammar:random=1", "English-GUM")])
def test_names_stay_whole(spec: str, bank: str, tmp_path: Path) -> None:
    """Each flat or fixed expression, with all that stands in it and depends on it, is one piece in source order."""
    make(spec, f"pos:{bank}", tmp_path, "--data-dir", SHARED, "--splits", "train")
    with_marks = 0
    for row in rows(tmp_path, "train"):
        place = {word: at for at, word in enumerate(row["order"])}
        for span in expressions(row):
            at = [place[word] for word in span]
            assert at == list(range(at[0], at[0] + len(at))), " ".join(row["source"])
            with_marks += any(row["source"][word] in ("-", ",", "(", '"') for word in span)
    assert with_marks > 100


HEADLESS = ("flat", "fixed", "goeswith")


def expressions(row: dict[str, Any]) -> Iterator[list[int]]:
    """The source words from the first to the last of each expression, if all of them are below its head."""
    names = [relation.partition(":")[0] for relation in row["deprel"]]
    if not {*names} & {*HEADLESS}:
        return
    order = row["order"]
    up = {word: order[head - 1] if head else -1 for word, head in zip(order, row["head"], strict=True)}
    inner = {word for word, name in zip(order, names, strict=True) if name in HEADLESS}

    def top(word: int) -> int:
        return top(up[word]) if word in inner else word

    def under(word: int, above: int) -> bool:
        return word == above or (word >= 0 and under(up[word], above))

    for above in {top(word) for word in inner}:
        members = [word for word in up if top(word) == above]
        span = list(range(min(members), max(members) + 1))
        if all(under(word, above) for word in span):
            yield span
