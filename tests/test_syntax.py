"""How a tree is laid out: held to a plain recursive layout, and to what a reader expects of names and punctuation.

The layout is tested under orders of any kind (drawn by key), not only under those that a grammar makes likely.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from derivlang.core.arrays import Bool, Int32, Int64, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.errors import LayerError
from derivlang.core.keys import Draws
from derivlang.core.layers.tree import Tree
from derivlang.core.policies import Policies
from derivlang.engine.batches import Source
from derivlang.grammar.families import Families, head_class
from derivlang.pipeline import Pipeline
from derivlang.sources.request import SourceRequest
from derivlang.syntax.arrange import arrange
from derivlang.syntax.forest import Forest, forest_of
from derivlang.syntax.layout import Listing, Members, list_families
from derivlang.syntax.nodes import Rules, TreeBlock
from derivlang.syntax.parts import bonds
from derivlang.syntax.words import WordKinds, see
from derivlang.transforms.syn import Syn
from tests import reference
from tests.real import SHARED, needs_data
from tests.strategies import (
    Annotated,
    annotated,
    batch_of,
    laws,
    lists,
    sentence_lists,
    tree_layers,
    with_trees,
)

WORDS = [
    *["the", "cat", "slept", "Ada", "Lovelace", "of", "5", "20", "$", "%", "not", "n't", "'s", "very", "who", "et"],
    *[",", ",", ",", "(", ")", "[", "]", "“", "”", '"', '"', "'", "-", "@-@", ";", "--", ".", "!", "...", "?"],
]
SYN_OPTIONS = {
    "freeze": ("parts", "none"),
    "punct": ("reader", "permute"),
    "nonprojective": ("block", "keep-order"),
    "mode": ("sample", "argmax"),
}
sentences = st.lists(st.sampled_from(WORDS), max_size=14)
units = st.lists(sentences, max_size=5)
seeds = st.integers(0, 1 << 20)


# small builders


def batch_with(*trees: Annotated | Sequence[Annotated], running: bool = False) -> Batch:
    """A unit for each argument: a tree, or some side by side (sentences as the rule finds them)."""
    rows = [[tree] if isinstance(tree, Annotated) else list(tree) for tree in trees]
    batch = batch_of([[word for tree in row for word in tree.words] for row in rows], running=running)
    return replace(batch, layers=tree_layers(rows))


def tree(text: str) -> Annotated:
    """From `word/TAG/relation/head` pieces, heads 1-based."""
    parts = [piece.rsplit("/", 3) for piece in text.split()]
    words, tags, relations, heads = (list(column) for column in zip(*parts, strict=True))
    return Annotated(words, tags, [int(head) for head in heads], relations, [])


def spec_words(spec: str, batch: Batch) -> list[list[str]]:
    derived = Pipeline.parse(spec).derive(batch, Pipeline.parse(spec).fit(), split=False).derived
    return sentence_lists(derived)


def by_key(seed: int, turned: bool) -> Any:
    """A choice of an order for each family: a function of its words; turned: the reverse of the surface order."""

    def arranged(head: int, family: list[int]) -> list[int]:
        if turned:
            return family[::-1]
        return sorted(family, key=lambda word: reference.mix((seed << 20) + head * 1009 + word))

    return arranged


def chosen(arranged: Any) -> Any:
    """The same for `arrange`: of nodes, by the word that stands for each, counted in its tree."""

    def choose(block: TreeBlock, families_in_order: Members) -> Listing:
        forest, listing, top = families_in_order.forest, families_in_order.listing, families_in_order.top
        families = np.arange(len(listing.heads))
        members: list[int] = []
        for f in families.tolist():
            entries = slice(listing.offsets[f], listing.offsets[f + 1])
            head = int(listing.heads[f])
            tree = int(forest.tree_of[head]) if head < len(forest) else head - len(forest)
            begin = int(block.forest.trees[tree])
            words = (top[listing.nodes[entries]] - begin).tolist()
            wanted = arranged(int(top[head]) - begin if head < len(forest) else -1, words)
            members += [entries.start + words.index(word) for word in wanted]
        return listing.reordered(np.arange(len(members)), np.array(members, np.int64))

    return choose


def one_tree(words: list[str], seed: int) -> tuple[Annotated, Batch]:
    """A tree over the words, as a batch of one sentence."""
    found = annotated(words, seed)
    batch = batch_of([words], rule="unit")
    return found, replace(batch, layers=tree_layers([[found]]))


def places_of(forest: Forest, seen: WordKinds, tails: Int32, bound: Bool, arranged: Any, rules: Rules) -> Int64:
    block = TreeBlock(forest, seen, tails, bound, np.arange(len(tails), dtype=np.uint64))
    return arrange(block, chosen(arranged), rules)[0]


def arranged_words(
    batch: Batch,
    arranged: Any,
    *,
    tails: bool = True,
    frozen: bool = True,
    keep_order: bool = False,
    free: bool = False,
) -> list[int]:
    """Which word stands at each place."""
    layer = batch.layers["head"]
    assert isinstance(layer, Tree)
    forest = forest_of(layer.head, batch.unit_words, batch.sentences)
    seen = see(batch)
    bound = bonds(forest, seen, layer) if frozen else np.zeros(batch.n_words, bool)
    tail = batch.tails if tails else np.zeros_like(batch.tails)
    place = places_of(forest, seen, tail, bound, arranged, Rules(keep_order, free))
    assert sorted(place.tolist()) == list(range(batch.n_words))
    index = np.empty(batch.n_words, np.int64)
    index[place] = np.arange(batch.n_words)
    return index.tolist()


def descendants(heads: Sequence[int]) -> list[set[int]]:
    """The words at or below each word."""
    below = [{word} for word in range(len(heads))]
    for word in range(len(heads)):
        up = word
        while heads[up]:
            up = heads[up] - 1
            below[up].add(word)
    return below


def together(places: Sequence[int]) -> bool:
    return not places or max(places) - min(places) + 1 == len(places)


def crosses(heads: Sequence[int], order: Sequence[int] | None = None, without: Collection[int] = ()) -> bool:
    """Do arcs cross in this order, some words left out: do other words stand inside a subtree?"""
    shown = [word for word in (range(len(heads)) if order is None else order) if word not in without]
    place = {word: number for number, word in enumerate(shown)}
    below = descendants(heads)
    return not all(together([place[other] for other in below[word] if other in place]) for word in shown)


# the layout


@laws
@given(sentences, seeds, st.booleans())
def test_a_free_layout_is_the_recursive_one(words: list[str], seed: int, turned: bool) -> None:
    found, batch = one_tree(words, seed)
    arranged = by_key(seed, turned)
    ours = arranged_words(batch, arranged, free=True, frozen=False)
    assert ours == reference.laid_out(found.heads, arranged)


@laws
@given(sentences, seeds, st.data())
def test_a_layout_of_parts_is_that_of_a_tree_of_parts(words: list[str], seed: int, data: st.DataObject) -> None:
    found, batch = one_tree(words, seed)
    bound = [i > 0 and data.draw(st.booleans()) for i in range(len(words))]
    arranged = by_key(seed, False)
    layer = batch.layers["head"]
    forest = forest_of(layer.head, batch.unit_words, batch.sentences)  # type: ignore[attr-defined]
    place = places_of(forest, see(batch), batch.tails, np.array(bound, bool), arranged, Rules(free_marks=True))
    parts = reference.parts_of(bound)
    heads, tops = reference.part_heads(found.heads, parts)

    def of_parts(head: int, family: list[int]) -> list[int]:
        by_top = {tops[part]: part for part in family}
        wanted = arranged(tops[head] if head >= 0 else -1, [tops[part] for part in family])
        return [by_top[top] for top in wanted]

    expected = [word for part in reference.laid_out(heads, of_parts) for word in parts[part]]
    ours = np.argsort(place).tolist()
    if crosses(found.heads, expected) and not crosses(found.heads):  # then its parts take in more words
        assert not crosses(found.heads, ours)
    else:
        assert ours == expected


@laws
@given(units, seeds, st.booleans())
def test_trees_side_by_side_are_laid_out_each_by_itself(rows: list[list[str]], seed: int, free: bool) -> None:
    batch = with_trees(batch_of(rows), seed=seed)
    # The words of a tree are numbered from its first, so that a choice by key is the same alone.
    starts = batch.sentences.tolist()

    def turned(head: int, family: list[int]) -> list[int]:
        return family[::-1]

    ours = arranged_words(batch, turned, free=free)
    for start, end in itertools.pairwise(starts):
        words = batch.strings().to_pylist()[start:end]
        alone = with_trees(batch_of([words]), seed=seed)
        alone = replace(alone, tails=batch.tails[[starts.index(start)]])
        if len(alone.sentences) == 2:
            assert [word - start for word in ours[start:end]] == arranged_words(alone, turned, free=free)


@laws
@given(units, seeds, st.data())
def test_a_forest_without_nodes_knows_its_depths(rows: list[list[str]], seed: int, data: st.DataObject) -> None:
    batch = with_trees(batch_of(rows), seed=seed)
    tree = batch.layers["head"]
    assert isinstance(tree, Tree)
    forest = forest_of(tree.head, batch.unit_words, batch.sentences)
    gone = np.array(data.draw(st.lists(st.booleans(), min_size=len(forest), max_size=len(forest))), bool)
    left = forest.without(gone)
    assert np.array_equal(left.depth, Forest(left.parent, left.trees).depth)


def random_forest(seed: int) -> Forest:
    """Trees whose arcs may cross: each node depends on any node before it in a random order, or is a root."""
    rng = np.random.default_rng(seed)
    trees = np.append(0, np.cumsum(rng.integers(0, 9, 6)))
    parent = np.full(int(trees[-1]), -1)
    for begin, end in itertools.pairwise(trees.tolist()):
        order = begin + rng.permutation(end - begin)
        for at in range(1, len(order)):
            parent[order[at]] = rng.choice([-1, *order[:at]])
    return Forest(parent, trees)


@laws
@given(seeds)
def test_sums_over_a_forest_are_those_of_its_paths(seed: int) -> None:
    forest = random_forest(seed)
    n = len(forest)
    values = np.random.default_rng(seed).integers(0, 9, n)
    paths: list[list[int]] = []
    for node in range(n):
        path = [node]
        while (up := int(forest.parent[path[-1]])) >= 0:
            path.append(up)
        paths.append(path)
    yields = [[node for node in range(n) if head in paths[node]] for head in range(n)]
    assert forest.depth.tolist() == [len(path) - 1 for path in paths]
    assert forest.along(values).tolist() == [values[path].sum() for path in paths]
    assert forest.below(values).tolist() == [values[nodes].sum() for nodes in yields]
    assert [edge.tolist() for edge in forest.edges] == [[y[0] for y in yields], [y[-1] for y in yields]]
    gaps = [y[-1] - y[0] + 1 != len(y) for y in yields]
    assert forest.has_gap.tolist() == gaps
    crossing = [any(gaps[begin:end]) for begin, end in itertools.pairwise(forest.trees.tolist())]
    assert forest.is_crossing.tolist() == crossing


@laws
@given(seeds)
def test_families_are_listed_in_surface_order(seed: int) -> None:
    forest = random_forest(seed)
    n = len(forest)
    expected = {n + tree: [] for tree in set(forest.tree_of.tolist())} | {head: [] for head in forest.parent.tolist()}
    expected.pop(-1, None)
    for node in range(n):
        head = int(forest.parent[node])
        expected[head if head >= 0 else n + int(forest.tree_of[node])].append((node, False))
    for head, members in expected.items():
        if head < n:
            members.append((head, True))
    listing = list_families(forest)
    found = {
        int(head): list(zip(listing.nodes[begin:end].tolist(), listing.itself[begin:end].tolist(), strict=True))
        for head, (begin, end) in zip(listing.heads, itertools.pairwise(listing.offsets.tolist()), strict=True)
    }
    assert found == {head: sorted(members) for head, members in expected.items()}


@needs_data
def test_stretches_of_a_batch_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    path = SHARED / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
    batches = [*Source.open(Pipeline.parse("syn:fr"), SourceRequest(str(path))).batches("validation")]
    whole = [Syn(grammar="fr").order(batch, Draws("s")) for batch in batches]
    for words in (50, 3000):
        monkeypatch.setattr("derivlang.syntax.arrange.WORDS_AT_ONCE", words)
        for batch, expected in zip(batches, whole, strict=True):
            found = Syn(grammar="fr").order(batch, Draws("s"))
            assert np.array_equal(found.index, expected.index)
            assert found.counts == expected.counts


PAIRED = {"(", ")", "[", "]", "“", "”", '"', "'"}


@laws
@given(sentences, seeds)
def test_a_subtree_is_one_block_marks_aside(words: list[str], seed: int) -> None:
    words = [word for word in words if word not in PAIRED]
    found, batch = one_tree(words, seed)
    ours = arranged_words(batch, by_key(seed, False), frozen=False)
    if ours == sorted(ours):
        return  # a tree that only punctuation could lead keeps its order
    tail = len(words) - int(batch.tails.sum())
    plain = [word for word in ours if found.tags[word] != "PUNCT" and word < tail]
    place = {word: number for number, word in enumerate(plain)}
    for word, below in enumerate(descendants(found.heads)):
        if word < tail:
            assert together([place[other] for other in below if other in place])


@laws
@given(sentences, seeds)
def test_frozen_parts_stay_together_and_in_order(words: list[str], seed: int) -> None:
    _, batch = one_tree(words, seed)
    layer = batch.layers["head"]
    assert isinstance(layer, Tree)
    forest = forest_of(layer.head, batch.unit_words, batch.sentences)
    for free in (False, True):
        ours = arranged_words(batch, by_key(seed, False), free=free)
        place = np.argsort(ours)
        bound = np.flatnonzero(bonds(forest, see(batch), layer))
        inside = bound[bound < len(words) - (0 if free else int(batch.tails.sum()))]
        assert (place[inside] == place[inside - 1] + 1).all()


@laws
@given(sentences, seeds, st.booleans(), st.booleans(), st.booleans())
def test_arcs_that_do_not_cross_do_not_cross_afterwards(
    words: list[str], seed: int, frozen: bool, keep_order: bool, free: bool
) -> None:
    found, batch = one_tree(words, seed)
    assume(not crosses(found.heads))
    ours = arranged_words(batch, by_key(seed, False), frozen=frozen, keep_order=keep_order, free=free)
    assert not crosses(found.heads, ours, () if free else moving_with_phrases(found, batch))


def moving_with_phrases(found: Annotated, batch: Batch) -> set[int]:
    """The tail, and marks with only marks under them: under `punct=reader` their places follow from other words."""
    n = len(found.words)
    below = descendants(found.heads)
    marks = {word for word in range(n) if all(found.tags[other] == "PUNCT" for other in below[word])}
    return marks | set(range(n - int(batch.tails.sum()), n))


@laws
@given(sentences, seeds, st.booleans())
def test_only_trees_whose_own_arcs_cross_are_counted(words: list[str], seed: int, frozen: bool) -> None:
    found, batch = one_tree(words, seed)
    spec = f"syn:punct=permute:freeze={'parts' if frozen else 'none'}"
    counted = Pipeline.parse(spec).order(batch).counts["trees-not-projective"]
    assert counted == int(crosses(found.heads))


@needs_data
@pytest.mark.filterwarnings("ignore:.*mixes in the word order of en")
@pytest.mark.parametrize("options", [*itertools.product(*SYN_OPTIONS.values())], ids=":".join)
def test_real_trees_whose_arcs_do_not_cross_do_not_cross_afterwards(options: tuple[str, ...]) -> None:
    """Hebrew: conjunctions, prepositions and articles are written with the word after them, as one multiword token."""
    file = SHARED / "ud/UD_Hebrew-HTB/he_htb-ud-dev.conllu.gz"
    pipeline = Pipeline.parse("syn:ja:" + ":".join(f"{k}={v}" for k, v in zip(SYN_OPTIONS, options, strict=True)))
    (batch,) = Source.open(pipeline, SourceRequest(str(file))).batches("validation")
    order = pipeline.order(batch)
    seen, tree = see(batch), batch.layers["head"]
    assert isinstance(tree, Tree)
    crossing_before = crossing_after = 0
    for begin, end in itertools.pairwise(batch.unit_words.tolist()):
        heads = tree.head[begin:end].tolist()
        marks = np.flatnonzero(seen.has_tag("PUNCT")[begin:end]).tolist() if "reader" in options else []
        before, after = crosses(heads), crosses(heads, order.index[begin:end] - begin, marks)
        assert before or not after
        crossing_before += before
        crossing_after += after
    assert 0 < crossing_before < 10
    assert order.counts["trees-not-projective"] == crossing_before


@laws
@given(units, seeds)
def test_the_tail_stays_last(rows: list[list[str]], seed: int) -> None:
    batch = with_trees(batch_of(rows), seed=seed)
    ours = arranged_words(batch, by_key(seed, False))
    for end, tail in zip(batch.sentences[1:].tolist(), batch.tails.tolist(), strict=True):
        assert ours[end - tail : end] == list(range(end - tail, end))


def childless(found: Annotated) -> set[int]:
    return set(range(len(found.words))) - {head - 1 for head in found.heads}


@laws
@given(sentences, seeds)
@example(["who", "the", "slept", '"', '"'], 0)
def test_no_mark_leads_a_tree_that_did_not_begin_with_one(words: list[str], seed: int) -> None:
    found, batch = one_tree(words, seed)
    ours = arranged_words(batch, by_key(seed, False), frozen=False)
    if words and found.tags[0] != "PUNCT":
        assert found.tags[ours[0]] != "PUNCT"


def pairs_of(found: Annotated, upto: int) -> list[tuple[int, int]]:
    """Brackets that are marks, matched one kind at a time."""
    out = []
    for opener, closer in ("()", "[]", "“”"):
        stack = []
        for place, word in enumerate(found.words):
            if found.tags[place] != "PUNCT" or place not in childless(found) or place >= upto:
                continue
            if word == opener:
                stack.append(place)
            elif word == closer and stack:
                out.append((stack.pop(), place))
    return out


@laws
@given(sentences, seeds)
def test_brackets_keep_what_they_enclose(words: list[str], seed: int) -> None:
    found, batch = one_tree(words, seed)
    ours = arranged_words(batch, by_key(seed, False), frozen=False)
    place = np.argsort(ours)
    for left, right in pairs_of(found, len(words) - int(batch.tails.sum())):
        assert place[left] < place[right]
        inside = set(ours[place[left] + 1 : place[right]])
        assert {word for word in range(left + 1, right) if found.tags[word] != "PUNCT"} <= inside


@laws
@given(sentences, seeds)
def test_keep_order_leaves_the_stretch_of_a_gap_as_it_is(words: list[str], seed: int) -> None:
    found, batch = one_tree(words, seed)
    arranged = by_key(seed, False)
    ours = arranged_words(batch, arranged, frozen=False, keep_order=True, free=True)
    place = np.argsort(ours)
    gaps = [below for below in descendants(found.heads) if not together(sorted(below))]
    for below in gaps:
        stretch = place[min(below) : max(below) + 1]
        assert (np.diff(stretch) == 1).all()
    if not gaps:
        assert ours == arranged_words(batch, arranged, frozen=False, free=True)


# what a reader expects: small trees, by hand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a comma goes with the phrase that it closes or opens, on the side where it parts it from others
        (
            "well/INTJ/discourse/3 ,/PUNCT/punct/1 come/VERB/root/0 back/ADV/advmod/3 ./PUNCT/punct/3",
            "back come , well .",
        ),
        (
            "come/VERB/root/0 well/ADV/advmod/1 ,/PUNCT/punct/2 back/ADV/advmod/1 ./PUNCT/punct/1",
            "back well , come .",
        ),
        # names, numbers with signs, fixed expressions
        ("saw/VERB/root/0 Ada/PROPN/obj/1 Lovelace/PROPN/flat/2 ./PUNCT/punct/1", "Ada Lovelace saw ."),
        ("paid/VERB/root/0 $/SYM/obj/1 5/NUM/nummod/2 ./PUNCT/punct/1", "$ 5 paid ."),
        (
            "rose/VERB/root/0 5/NUM/nummod/3 %/SYM/obj/1 because/ADP/case/6 of/ADP/fixed/4 rain/NOUN/obl/1",
            "rain because of 5 % rose",
        ),
        ("5/NUM/nummod/3 @,@/PUNCT/punct/1 000/NUM/root/0 men/NOUN/dep/3", "men 5 @,@ 000"),
        # clitics go with the word before them
        ("he/PRON/nsubj/3 did/AUX/aux/3 go/VERB/root/0 n't/PART/advmod/3", "go n't did he"),
        # brackets keep their phrase
        (
            "Bo/PROPN/nsubj/5 (/PUNCT/punct/3 5/NUM/appos/1 )/PUNCT/punct/3 slept/VERB/root/0 ./PUNCT/punct/5",
            "slept ( 5 ) Bo .",
        ),
        (
            "he/PRON/nsubj/2 said/VERB/advcl/7 (/PUNCT/punct/2 Bo/PROPN/nsubj/5 left/VERB/parataxis/2 )/PUNCT/punct/2 "
            "today/ADV/root/0 ./PUNCT/punct/7",
            "today ( left Bo ) said he .",
        ),
        # a final quote stays with the final mark
        ('"/PUNCT/punct/2 go/VERB/root/0 home/ADV/advmod/2 ./PUNCT/punct/2 "/PUNCT/punct/2', '" home go . "'),
    ],
)
def test_a_reader_expects(text: str, expected: str) -> None:
    batch = batch_with(tree(text))
    ours = arranged_words(batch, by_key(0, True))
    words = batch.strings().to_pylist()
    assert " ".join(words[i] for i in ours) == expected


def test_published_behaviour_is_there() -> None:
    batch = batch_with(tree("saw/VERB/root/0 Ada/PROPN/obj/1 Lovelace/PROPN/flat/2 ,/PUNCT/punct/3 ./PUNCT/punct/1"))
    words = batch.strings().to_pylist()
    ours = arranged_words(batch, by_key(0, True), frozen=False, free=True)
    assert [words[i] for i in ours] == [".", ",", "Lovelace", "Ada", "saw"]


# trees and sentences


@laws
@given(st.lists(st.lists(sentences, max_size=4), max_size=4), seeds, st.booleans())
@example([[["a", "."], [], ["b", "."]]], 0, True)
def test_an_arc_joins_the_sentences_it_passes_over(rows: list[list[list[str]]], seed: int, whole: bool) -> None:
    flat = [[word for part in row for word in part] for row in rows]
    batch = with_trees(batch_of(flat), seed=seed, whole_units=whole)
    head = batch.layers["head"].head  # type: ignore[attr-defined]
    forest = forest_of(head, batch.unit_words, batch.sentences)
    wanted = {0}
    for unit, (begin, end) in enumerate(itertools.pairwise(batch.unit_words.tolist())):
        bounds = batch.sentences[batch.units[unit] : batch.units[unit + 1] + 1] - begin
        wanted |= {begin + cut for cut in reference.joined_sentences(head[begin:end].tolist(), bounds.tolist())}
    assert sorted({*forest.trees.tolist(), 0}) == sorted(wanted | {batch.n_words})
    assert forest.trees[0] == 0
    assert forest.trees[-1] == batch.n_words


@laws
@given(units, seeds, st.sampled_from(["syn", "syn:mode=argmax:punct=permute:freeze=none"]))
def test_joined_sentences_become_one_with_the_last_tail(rows: list[list[str]], seed: int, spec: str) -> None:
    batch = with_trees(batch_of(rows), seed=seed, whole_units=True)
    order = Pipeline.parse(spec).order(batch)
    head = batch.layers["head"].head  # type: ignore[attr-defined]
    trees = forest_of(head, batch.unit_words, batch.sentences).trees
    assert len(order.sentences) == len(batch.sentences)
    sizes = lengths_of(order.sentences)
    assert sizes[sizes > 0].tolist() == [n for n in lengths_of(trees).tolist() if n]
    last = {int(end): int(tail) for end, tail in zip(batch.sentences[1:], batch.tails, strict=True)}
    for end, size, tail in zip(order.sentences[1:].tolist(), sizes.tolist(), order.tails.tolist(), strict=True):
        assert tail == (last[end] if size and "permute" not in spec else 0)
        if tail:
            assert order.index[end - tail : end].tolist() == list(range(end - tail, end))


def test_inv_after_syn_turns_the_whole_tree() -> None:
    one = tree(
        "He/PRON/nsubj/2 left/VERB/root/0 ./PUNCT/punct/2 She/PRON/nsubj/5 stayed/VERB/parataxis/2 !/PUNCT/punct/2"
    )
    batch = batch_with(one)
    assert sentence_lists(batch) == [["He", "left", "."], ["She", "stayed", "!"]]
    syn, both = spec_words("syn:mode=argmax", batch), spec_words("syn:mode=argmax,inv", batch)
    assert syn[1] == both[1] == []
    assert syn[0][-1] == "!"
    assert both[0] == [*syn[0][-2::-1], "!"]


@laws
@given(units, seeds, st.booleans(), st.sampled_from(["inv", "perm", "perm:window=2", "inv:final=move", "syn:fr@N"]))
def test_what_comes_after_sees_the_order_so_far(rows: list[list[str]], seed: int, whole: bool, after: str) -> None:
    """An order composed with the next is the next one on what the first gave, with the first's keys."""
    batch = with_trees(batch_of(rows), seed=seed, whole_units=whole)
    both = Pipeline.parse(f"syn,{after}").order(batch)
    first = Pipeline.parse("syn").order(batch)
    assert both.is_permutation
    assert both.sentences.tolist() == first.sentences.tolist()
    between = lists(first.index.tolist(), first.sentences)
    result = lists(both.index.tolist(), both.sentences)
    source = batch.strings().to_pylist()
    tails = first.tails.tolist()
    for place, (one, two, tail) in enumerate(zip(between, result, tails, strict=True)):
        assert sorted(one) == sorted(two)
        if after.startswith("inv"):
            assert two == [one[i] for i in reference.inv(len(one), tail, after.partition("final=")[2] or "keep")]
        elif after.startswith("perm"):
            window = int(after.partition("window=")[2] or 0)
            words = [source[word] for word in one]
            key = [source[word] for word in sorted(one)]
            assert two == [one[i] for i in reference.perm(words, tail, window=window, source=key)], place


# the model


def plain_syn(batch: Batch, transform: Syn) -> list[int]:
    """`syn` with free marks and no parts, one family at a time: which word stands at each place."""
    model, draws = transform.order_model(), transform.stream(0)
    layer, tags = batch.layers["head"], batch.layers["upos"]
    upos = [tags.values[code].as_py() for code in tags.codes]  # type: ignore[attr-defined]
    relations = [layer.deprel.values[code].as_py() for code in layer.deprel.codes]  # type: ignore[attr-defined]
    words = batch.strings().to_pylist()
    out: list[int] = []
    for begin, end in itertools.pairwise(batch.unit_words.tolist()):
        head = layer.head[begin:end].tolist()  # type: ignore[attr-defined]
        inside = [cut - begin for cut in batch.sentences.tolist() if begin <= cut <= end]
        for start, stop in itertools.pairwise(sorted(set(reference.joined_sentences(head, inside)))):
            key = reference.sequence_key(words[begin + start : begin + stop])

            def arranged(top: int, family: list[int], key: int = key, begin: int = begin + start) -> list[int]:
                if top < 0 or not model.has_model(upos[begin + top]):
                    return family
                labels = [
                    f"@{upos[begin + w]}&@" if w == top else f"{upos[begin + w]}&{relations[begin + w]}" for w in family
                ]
                stream = draws.draw(np.array([key], np.uint64), np.array([top]))
                order = model.draw(Families.of([labels], stream), draws)
                return [family[i] for i in order.tolist()]

            local = [above - start if above else 0 for above in head[start:stop]]
            out += [begin + start + word for word in reference.laid_out(local, arranged)]
    return out


@laws
@given(units, seeds, st.booleans(), st.sampled_from(["", ":mode=argmax", "@V", "@N:seed=3", ":substrate=none"]))
def test_syn_is_the_models_order_of_each_family(rows: list[list[str]], seed: int, whole: bool, setting: str) -> None:
    batch = with_trees(batch_of(rows), seed=seed, whole_units=whole)
    transform = Pipeline.parse(f"syn:fr{setting}:punct=permute:freeze=none").transforms[0]
    assert isinstance(transform, Syn)
    assert transform.order(batch, transform.stream(0)).index.tolist() == plain_syn(batch, transform)


@laws
@given(units, seeds)
def test_a_head_without_a_model_keeps_its_order(rows: list[list[str]], seed: int) -> None:
    """Under syn:fr@V the families of other heads stand as they stood."""
    batch = with_trees(batch_of(rows), seed=seed)
    ours = Pipeline.parse("syn:fr@V:punct=permute:freeze=none").order(batch)
    place = ours.positions()
    for sentence, (begin, _end) in zip(
        sentence_lists(batch), itertools.pairwise(batch.sentences.tolist()), strict=True
    ):
        found = annotated(sentence, seed)
        children: dict[int, list[int]] = {}
        for word, head in enumerate(found.heads):
            if head:
                children.setdefault(head - 1, [head - 1]).append(word)
        for head, family in children.items():
            if head_class(found.tags[head]) != "V":
                places = [int(place[begin + word]) for word in sorted(family)]
                assert places == sorted(places)


NODES = ["DET&det", "ADJ&amod", "@NOUN&@", "PROPN&nmod"]


def noun_phrases(n: int) -> Batch:
    """n sentences of one tree, each with words of its own."""
    return batch_with(
        *(
            Annotated(
                [f"d{i}", f"a{i}", f"n{i}", f"p{i}"],
                ["DET", "ADJ", "NOUN", "PROPN"],
                [3, 3, 0, 3],
                ["det", "amod", "root", "nmod"],
                [],
            )
            for i in range(n)
        )
    )


@pytest.mark.parametrize("setting", ["", ":seed=2", ":temperature=2.0", ":mix=0.5", ":substrate=none:temperature=3.0"])
def test_orders_are_drawn_as_the_model_says(setting: str) -> None:
    n = 4000
    batch = noun_phrases(n)
    transform = Pipeline.parse(f"syn:fr{setting}").transforms[0]
    assert isinstance(transform, Syn)
    orders, probabilities = transform.order_model().distribution(NODES)
    rows = transform.order(batch, transform.stream(0)).index.reshape(n, 4) - 4 * np.arange(n)[:, None]
    counts = Counter(map(tuple, rows.tolist()))
    observed = np.array([counts[tuple(order)] for order in orders.tolist()])
    assert observed.sum() == n
    common = probabilities * n >= 5
    rest = [observed[~common].sum()], [probabilities[~common].sum() * n]
    seen, expected = np.append(observed[common], rest[0]), np.append(probabilities[common] * n, rest[1])
    if expected[-1] < 1:
        seen[-2], expected[-2] = seen[-2] + seen[-1], expected[-2] + expected[-1]
        seen, expected = seen[:-1], expected[:-1]
    assert len(seen) > 1
    assert chisquare(seen, expected).pvalue > 1e-4


def test_two_seeds_and_two_occurrences_draw_apart() -> None:
    batch = noun_phrases(300)
    one, two = (Pipeline.parse(f"syn:temperature=5.0:seed={n}").order(batch).index for n in (1, 2))
    again = Pipeline.parse("syn:temperature=5.0,syn:temperature=5.0").order(batch).index
    assert not np.array_equal(one, two)
    assert not np.array_equal(again, one)


def test_argmax_draws_nothing() -> None:
    batch = noun_phrases(50)
    rows = [Pipeline.parse(f"syn:mode=argmax:seed={n}").order(batch).index.reshape(50, 4) % 4 for n in (1, 2)]
    assert (rows[0] == rows[0][0]).all()
    assert (rows[0] == rows[1]).all()
    orders, probabilities = Syn(mode="argmax").order_model().distribution(NODES)
    assert rows[0][0].tolist() == orders[probabilities.argmax()].tolist()


# sizes


def test_no_word_and_one_word() -> None:
    for rows in ([], [[]], [["Hello"]], [["."]], [[], ["a"], []]):
        batch = with_trees(batch_of(rows))
        for spec in ("syn", "syn:punct=permute:freeze=none:nonprojective=keep-order"):
            assert Pipeline.parse(spec).order(batch).index.tolist() == list(range(batch.n_words))


@pytest.mark.parametrize("shape", ["right", "left", "star", "random", "combs"])
@pytest.mark.parametrize("spec", ["syn", "syn:mode=argmax", "syn:nonprojective=keep-order"])
def test_a_sentence_of_2000_words(shape: str, spec: str) -> None:
    n = 2000
    words = [f"w{i % 90}" for i in range(n - 1)] + ["."]
    found = annotated(words, 1)
    heads = {
        "right": list(range(n)),
        "left": [*range(2, n + 1), 0],
        "star": [0] + [1] * (n - 1),
        "random": found.heads,
        "combs": [0, *(max(1, i - i % 100) for i in range(1, n))],
    }[shape]
    tags = ["NOUN" if i % 3 else "VERB" for i in range(n - 1)] + ["PUNCT"]
    relations = ["root" if h == 0 else "obl" for h in heads]
    batch = batch_with(replace(found, heads=heads, tags=tags, relations=relations, ranges=[]))
    order = Pipeline.parse(spec).order(batch).check()
    assert sorted(order.index.tolist()) == list(range(n))
    assert order.index[-1] == n - 1


@pytest.mark.parametrize("mode", ["sample", "argmax"])
def test_a_head_with_100_dependents(mode: str) -> None:
    n = 101
    relations = ["nsubj", "obj", "obl", "advmod", "aux"]
    one = Annotated(
        [f"w{i}" for i in range(n)],
        ["VERB", *(["NOUN", "ADV", "PRON", "AUX"][i % 4] for i in range(n - 1))],
        [0] + [1] * (n - 1),
        ["root", *(relations[i % 5] for i in range(n - 1))],
        [],
    )
    order = Pipeline.parse(f"syn:mode={mode}").order(batch_with(one, one)).index
    assert sorted(order[:n].tolist()) == list(range(n))
    assert (order[n:] - n == order[:n]).all()


# what it counts and refuses


def test_trees_that_are_not_projective_are_counted() -> None:
    crossing = tree("a/NOUN/obj/3 b/NOUN/nmod/4 c/VERB/root/0 d/NOUN/obl/1")
    plain = tree("a/NOUN/nsubj/2 b/VERB/root/0")
    batch = batch_with(crossing, plain, crossing)
    for spec in ("syn", "syn:nonprojective=keep-order"):
        assert Pipeline.parse(spec).order(batch).counts["trees-not-projective"] == 2
    kept = Pipeline.parse("syn:nonprojective=keep-order").order(batch_with(crossing))
    assert kept.index.tolist() == [0, 1, 2, 3]


def test_a_word_without_a_tag_is_named() -> None:
    batch = batch_with(tree("a/NOUN/nsubj/2 b/_/root/0"))
    with pytest.raises(LayerError, match=r"'b'.*no UPOS"):
        Pipeline.parse("syn").order(batch)


def test_groups_that_are_atomic_are_one_word() -> None:
    """mwt=atomic: a multiword token keeps its words together; the order of the others does not fall apart."""
    one = tree("we/PRON/nsubj/2 go/VERB/root/0 to/ADP/case/5 the/DET/det/5 park/NOUN/obl/2 ./PUNCT/punct/2")
    batch = batch_with(replace(one, ranges=[(3, 4)]))
    order = Pipeline.parse("syn:freeze=none").order(batch, Policies(mwt="atomic"))
    place = order.positions()
    assert place[3] == place[2] + 1
    assert order.index[-1] == 5
