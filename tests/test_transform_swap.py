"""`swap`: each pair held to words that are moved one after the other, as the published program moves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real import needs_data
from tests.strategies import Annotated
from tests.test_syntax import batch_with, spec_words, tree
from tests.tree_orders import FREE, Family, children, derived, made_verified_and_undone, plain, plainly, trees

SUBJECTS = ("nsubj", "csubj")


def names(found: Annotated, word: int) -> set[str]:
    """The relations of a word's dependents."""
    return {plain(found, child) for child in children(found, word)}


def movers(found: Annotated, head: int, relation: str) -> list[int]:
    """Dependents that move behind the phrase of their head."""
    here = [word for word in children(found, head) if word < head and plain(found, word) == relation]
    if relation == "case":
        nominal = found.tags[head] in ("NOUN", "PROPN", "PRON", "NUM")
        return [word for word in here if nominal and found.tags[word] == "ADP"]
    late = max((word for word in children(found, head) if plain(found, word) in SUBJECTS), default=-1)
    return [word for word in here if word > late]


def behind(found: Annotated, head: int, members: list[int], relation: str, stops: tuple[str, ...]) -> list[int]:
    """One mover after the other: to the end of the phrase, before those that moved already."""

    def ends(word: int) -> bool:
        name = plain(found, word)
        conjunct = name == "conj" and (
            names(found, word).intersection(SUBJECTS)
            or movers(found, word, relation)
            or (relation == "cop" and found.tags[word] == "VERB")
        )
        return word > head and (name in stops or bool(conjunct))

    out = list(members)
    for moved, word in enumerate(movers(found, head, relation)):
        out.remove(word)
        end = next((at for at, member in enumerate(out) if ends(member)), len(out))
        out.insert(end - moved, word)
    return out


def of_first(found: Annotated, head: int, members: list[int]) -> list[int]:
    """The noun and what belongs to it, behind one `of` phrase after the other."""
    out = list(members)
    for genitive in members:
        forms = {(plain(found, child), found.words[child]) for child in children(found, genitive)}
        if genitive > head and plain(found, genitive) == "nmod" and ("case", "of") in forms:
            belongs = ("nummod", "compound", "appos", "flat", "conj")
            chunk = [word for word in out if word < genitive and (word == head or plain(found, word) in belongs)]
            out = [word for word in out if word not in chunk]
            at = out.index(genitive) + 1
            out[at:at] = chunk
    return out


def objects_first(found: Annotated, head: int, members: list[int], otherwise: list[int]) -> list[int]:
    """The chunk of the verb behind one object after the other."""
    name = {word: plain(found, word) if word != head else "" for word in members}
    left = [word for word in members if word < head and name[word] in (*SUBJECTS, "expl")]
    expletive = any(name[word] == "expl" for word in left)
    right = [word for word in members if word > head and name[word] in SUBJECTS]

    def is_object(word: int) -> bool:
        adverbial = name[word] == "advcl" and not names(found, word).intersection(SUBJECTS)
        return word > head and (
            name[word] in ("obj", "iobj", "obl", "expl", "ccomp", "xcomp") or word in right or adverbial
        )

    objects = [word for word in members if is_object(word)]
    if found.tags[head] not in ("VERB", "AUX") or (right and not expletive) or not objects:
        return otherwise
    subject, out = max(left, default=-1), list(members)
    for one in objects:
        marks = [word for word in out if name[word] == "mark" and word < head and found.words[word] != "to"]
        chunk = [word for word in out if word > subject and word != one and word not in marks]
        out = [word for word in out if word not in chunk]
        at = out.index(one) + 1
        out[at:at] = chunk
    return out


def by_swap(pair: str) -> Family:
    """Each word of a pair moved by itself, one after the other, as the published program does."""

    def arranged(found: Annotated, head: int, members: list[int]) -> list[int]:
        if pair == "ADP-NOUN":
            return behind(found, head, members, "case", ())
        if pair == "aux-VERB":
            return behind(found, head, members, "aux", ("advcl", *SUBJECTS))
        if pair == "NOUN-of":
            return of_first(found, head, members)
        stops = ("ccomp", "advcl", "obl", *(() if found.tags[head] == "ADJ" else ("xcomp",)))
        copulas = behind(found, head, members, "cop", stops)
        return copulas if pair == "cop-pred" else objects_first(found, head, members, copulas)

    return arranged


@pytest.mark.parametrize("pair", ["VERB-obj", "ADP-NOUN", "aux-VERB", "cop-pred", "NOUN-of"])
def test_pairs(pair: str) -> None:
    found = trees()
    wanted = [plainly(one, by_swap(pair)) for one in found]
    assert derived(f"swap:{pair}:{FREE}", found) == wanted
    unmoved = [plainly(one, lambda _tree, _head, members: members) for one in found]
    assert sum(before != after for before, after in zip(unmoved, wanted, strict=True)) > 20


@pytest.mark.parametrize(
    ("pair", "text", "wanted"),
    [
        ("VERB-obj", "She/PRON/nsubj/2 gave/VERB/root/0 him/PRON/iobj/2 books/NOUN/obj/2", "She books him gave"),
        (
            "VERB-obj",
            "There/PRON/expl/2 are/VERB/root/0 lions/NOUN/nsubj/2 here/ADV/advmod/2",
            "There lions are here",
        ),
        (
            "VERB-obj",
            "She/PRON/nsubj/2 left/VERB/root/0 while/SCONJ/mark/4 eating/VERB/advcl/2 apples/NOUN/obj/4",
            "She while apples eating left",
        ),
        (
            "VERB-obj",
            "She/PRON/nsubj/2 wants/VERB/root/0 to/PART/mark/4 eat/VERB/xcomp/2 apples/NOUN/obj/4",
            "She apples to eat wants",
        ),
        ("ADP-NOUN", "in/ADP/case/4 the/DET/det/4 old/ADJ/amod/4 house/NOUN/root/0", "the old house in"),
        ("ADP-NOUN", "in/ADP/case/2 Paris/PROPN/root/0 and/CCONJ/cc/4 Rome/PROPN/conj/2", "Paris and Rome in"),
        (
            "ADP-NOUN",
            "in/ADP/case/2 Paris/PROPN/root/0 and/CCONJ/cc/5 in/ADP/case/5 Rome/PROPN/conj/2",
            "Paris in and Rome in",
        ),
        (
            "aux-VERB",
            "He/PRON/nsubj/4 has/AUX/aux/4 been/AUX/aux/4 sleeping/VERB/root/0 at/ADP/case/6 home/NOUN/obl/4",
            "He sleeping at home been has",
        ),
        (
            "cop-pred",
            "The/DET/det/2 cat/NOUN/nsubj/5 is/AUX/cop/5 very/ADV/advmod/5 black/ADJ/root/0",
            "The cat very black is",
        ),
        ("cop-pred", "Is/AUX/cop/3 he/PRON/nsubj/3 happy/ADJ/root/0 ?/PUNCT/punct/3", "Is he happy ?"),
        (
            "NOUN-of",
            "the/DET/det/3 old/ADJ/amod/3 capital/NOUN/root/0 of/ADP/case/5 France/PROPN/nmod/3",
            "the old of France capital",
        ),
    ],
)
def test_sentences_with_a_pair_swapped(pair: str, text: str, wanted: str) -> None:
    assert spec_words(f"swap:{pair}", batch_with(tree(text))) == [wanted.split()]


@needs_data
@pytest.mark.parametrize(("spec", "treebank"), [("swap:VERB-obj", "French-GSD"), ("swap:ADP-NOUN", "Turkish-BOUN")])
def test_a_treebank_is_made_verified_and_undone(spec: str, treebank: str, tmp_path: Path) -> None:
    made_verified_and_undone(spec, treebank, tmp_path)
