"""Orders and hops of constituents written plainly, from the definitions, one row at a time.

A tree is a nested list whose words are numbers (`tests/reference_brackets.py`). No code is shared with derivlang.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Node = list[Any]  # [label, child, child …]; a child is a node, or the number of a word
Change = Callable[[Any], Any]  # a node or word, with the children of nodes in another order

END_MARKS = set(".!?…。！？।॥؟۔")
CLOSERS = {")", "]", "}", "”", "’", "»", "''"}
CLITICS = {"n't", "'ll", "'s", "'re", "'ve", "'m", "'t", "'d"}  # the last two are derivlang's
CLASSES = {
    "D": {"DT", "PRP$", "PDT"},
    "Num": {"QP", "CD", "$"},
    "A": {"JJ", "JJR", "JJS", "ADJP", "RB"},
    "N": {"NN", "NNS", "NNP", "NNPS"},
}


def leaves(tree: Any) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for child in tree[1:] for leaf in leaves(child)]


def base(label: str) -> str:
    """Return a label without function tags: NP-SBJ-1 and NP=2 are NP, -LRB- is -LRB-."""
    return label if label.startswith("-") else re.split("(?<=.)[-=]", label)[0]


def labels_below(node: Node) -> list[str]:
    return [base(child[0]) for child in node[1:] if not isinstance(child, int)]


# Sentences


def sentences(words: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (first word, first word of the tail, end) of each sentence of a row."""
    found, start, at = [], 0, 0
    quotes = {'"': 0, "'": 0}
    marks: list[str] = []  # "end", "close" or "" for each word
    for number, word in enumerate(words):
        kind = ""
        if word in quotes:
            kind = "close" if quotes[word] % 2 else ""
            quotes[word] += 1
        elif word in CLOSERS:
            kind = "close"
        elif word and set(word) <= END_MARKS:
            dots = word != "." and set(word) <= {".", "…"}
            kind = "end" if not dots or number == len(words) - 1 else ""
        marks.append(kind)
    while at < len(words):
        if marks[at] == "end":
            end = at
            while end < len(words) and marks[end]:
                end += 1
            found.append((start, at, end))
            start = at = end
        else:
            at += 1
    if start < len(words):
        found.append((start, len(words), len(words)))
    return found


def over_trees(found: list[tuple[int, int, int]], trees: list[Any]) -> list[tuple[int, int, int]]:
    """Return the sentences, those that a tree spans as one with the tail of the last."""
    inside = {word for tree in trees for word in leaves(tree)[1:]}  # no sentence begins before such a word
    out: list[tuple[int, int, int]] = []
    for start, tail, end in found:
        if out and start in inside:
            start = out.pop()[0]
        out.append((start, tail, end))
    return out


# Orders: a node becomes a node with its children in another order


def switch_of(node: Node) -> int:
    """Return the number of the switch of a constituent, 0 for none."""
    label, below = base(node[0]), labels_below(node)
    asks = [name for name in below if name.startswith("WH")]
    if label in ("S", "SINV", "SQ"):
        return 1
    if label == "VP":
        return 2
    if label == "SBAR":
        return 6 if asks else 3
    if label == "PP":
        return 4
    if label == "NP":
        relative = any(
            base(child[0]) == "SBAR" and switch_of(child) == 6 for child in node[1:] if not isinstance(child, int)
        )
        if relative:
            return 6
        if "PP" in below:
            return 4
        adjective = CLASSES["A"] - {"RB"} & set(below)
        noun = (CLASSES["N"] | {"NML", "NX"}) & set(below)
        return 5 if adjective and noun else 0
    return 0


def switching(on: str) -> Change:
    """Return the change of a tree by switches that are on (1) or off (0)."""

    def change(node: Any) -> Any:
        if isinstance(node, int):
            return node
        number = switch_of(node)
        below = [change(child) for child in node[1:]]
        return [node[0], *(below[::-1] if number and on[number - 1] == "1" else below)]

    return change


def class_of(child: Any) -> str:
    names = [name for name, labels in CLASSES.items() if not isinstance(child, int) and base(child[0]) in labels]
    return names[0] if names else ""


def sorting(order: list[str]) -> Change:
    """Return the change of a tree whose noun phrases have D, Num, A and N in this order."""

    def change(node: Any) -> Any:
        if isinstance(node, int):
            return node
        below = [change(child) for child in node[1:]]
        if base(node[0]) == "NP":
            slots = [at for at, child in enumerate(below) if class_of(child)]
            members = sorted((below[at] for at in slots), key=lambda child: order.index(class_of(child)))
            for at, child in zip(slots, members, strict=True):
                below[at] = child
        return [node[0], *below]

    return change


# A row


@dataclass
class Row:
    """What is known of a row. words: the words as they are now. order: which source word each one is, -1: a marker.
    trees: over the places of `words`. sentences: over the places of `words`, with their tails."""

    words: list[str]
    order: list[int]
    trees: list[Any]
    sentences: list[tuple[int, int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, words: Sequence[str], trees: list[Any]) -> Row:
        return cls(list(words), list(range(len(words))), trees, over_trees(sentences(words), trees))


def moved(row: Row, change: Change, *, final: str = "keep") -> Row:
    """Return the row with its trees changed by `change`, and the tails of its sentences last under `keep`."""
    sequence = [leaf for tree in row.trees for leaf in leaves(change(tree))]
    return _in_order(row, sequence, tails_last=final == "keep")


def _in_order(row: Row, sequence: list[int], *, tails_last: bool) -> Row:
    tail = {word for _, first, end in row.sentences for word in range(first, end)} if tails_last else set()
    places: list[int] = []
    for start, first, end in row.sentences:
        inside = [word for word in sequence if start <= word < end and word not in tail]
        places += inside + (list(range(first, end)) if tails_last else [])
    assert sorted(places) == list(range(len(row.words)))
    return Row(
        [row.words[old] for old in places],
        [row.order[old] for old in places],
        over_order(row.trees, places),
        row.sentences,
    )


def over_order(trees: list[Any], order: Sequence[int]) -> list[Any]:
    """Return the trees over the places of an order. -1 is a marker, which separates nothing.

    A constituent whose words are not adjacent gives its children. A marker belongs to the smallest constituent that
    holds the words on both sides of it, else, before the first word or after the last one, to the outermost there."""
    own = [at for at, word in enumerate(order) if word >= 0]
    rank = {order[at]: number for number, at in enumerate(own)}
    out = [_places(tree, own) for tree in _sorted([kept for tree in trees for kept in _adjacent(tree, rank)])]
    for at, word in enumerate(order):
        if word < 0:
            before = max((place for place in own if place < at), default=None)
            after = min((place for place in own if place > at), default=None)
            _insert(out, before, after, at)
    return out


def _adjacent(tree: Any, rank: dict[int, int]) -> list[Any]:
    if isinstance(tree, int):
        return [rank[tree]]
    below = _sorted([kept for child in tree[1:] for kept in _adjacent(child, rank)])
    ranks = sorted(rank[leaf] for leaf in leaves(tree))
    return [[tree[0], *below]] if ranks[-1] - ranks[0] + 1 == len(ranks) else below


def _places(tree: Any, own: list[int]) -> Any:
    return own[tree] if isinstance(tree, int) else [tree[0], *(_places(child, own) for child in tree[1:])]


def _insert(trees: list[Any], before: int | None, after: int | None, at: int) -> None:
    into = trees
    level = trees
    while level:
        nodes = [node for node in level if not isinstance(node, int)]
        holding = [node for node in nodes if {before, after} - {None} <= set(leaves(node))]
        if not holding:
            break
        into, level = holding[0], holding[0][1:]
        if before is None or after is None:
            break
    label = [] if into is trees else into[:1]
    into[:] = [*label, *_sorted([*into[len(label) :], at])]


def _sorted(nodes: list[Any]) -> list[Any]:
    """Return nodes whose words are in their order by the first word of each."""

    def first(node: Any) -> int:
        return node if isinstance(node, int) else first(node[1])

    return sorted(nodes, key=first)


# Hops


def parents(trees: list[Any]) -> dict[int, list[Node]]:
    """Return the constituents above each word, the outermost first."""
    out: dict[int, list[Node]] = {}

    def visit(tree: Any, above: list[Node]) -> None:
        if isinstance(tree, int):
            out[tree] = above
        else:
            for child in tree[1:]:
                visit(child, [*above, tree])

    for tree in trees:
        visit(tree, [])
    return out


def headed(verb: int, above: list[Node], edge: str) -> Any:
    """Return the constituent with the label that the verb, or its part of speech, is a child of, else the verb."""
    if above and len(above[-1]) == 2 and base(above[-1][0]) != edge:
        above = above[:-1]  # (VBZ barks)
    return above[-1] if above and base(above[-1][0]) == edge else verb


def hopped(row: Row, edge: str, verbs: dict[int, tuple[str, str]]) -> Row:
    """Return the row with a marker after the constituent of each verb. verbs: (marker, form) of each verb's place."""
    above = parents(row.trees)
    after: dict[int, list[tuple[int, int, str]]] = {}
    words = list(row.words)
    for verb, (marker, form) in verbs.items():
        words[verb] = form
        phrase = headed(verb, above[verb], edge)
        at, size = max(leaves(phrase)), len(leaves(phrase))
        start, tail, _ = next(one for one in row.sentences if one[0] <= verb < one[2])
        while at + 1 < tail and words[at + 1].replace("’", "'") in CLITICS:
            at += 1
        at = max(min(at, tail - 1), start)
        after.setdefault(at, []).append((size, verb, marker))
    order: list[int] = []  # over the places before
    markers: list[str] = []
    for at in range(len(words)):
        order.append(at)
        here = [marker for _, _, marker in sorted(after.get(at, []))]
        order += [-1] * len(here)
        markers += here
    place = {at: number for number, at in enumerate(order) if at >= 0} | {len(words): len(order)}
    given = iter(markers)
    return Row(
        [words[at] if at >= 0 else next(given) for at in order],
        [row.order[at] if at >= 0 else -1 for at in order],
        over_order(row.trees, order),
        # A sentence begins at its first word, its markers stand before its tail.
        [(place[start], place[tail], place[end]) for start, tail, end in row.sentences],
    )


# Labels


def entities(tags: Sequence[str]) -> list[tuple[str, set[int]]]:
    """Return type and words of each entity of IOB2 tags."""
    out: list[tuple[str, set[int]]] = []
    for at, tag in enumerate(tags):
        if tag.startswith("B-"):
            out.append((tag[2:], {at}))
        elif tag.startswith("I-"):
            out[-1][1].add(at)
    return out


def tags_of(found: list[tuple[str, set[int]]], order: Sequence[int]) -> list[str]:
    """Return IOB2 tags of the derived words: an entity is one for each run of its words. A marker breaks no run."""
    owner = {word: number for number, (_, words) in enumerate(found) for word in words}
    numbers = [owner.get(word) for word in order]
    for at in [at for at, word in enumerate(order) if word < 0]:
        after = next((numbers[next_] for next_ in range(at, len(order)) if order[next_] >= 0), None)
        numbers[at] = after if at and numbers[at - 1] == after else None
    before = [None, *numbers[:-1]]
    return [
        "O" if number is None else ("I-" if number == last else "B-") + found[number][0]
        for number, last in zip(numbers, before, strict=True)
    ]


def answers_of(answers: dict[str, Any], source: Sequence[str], row: Row) -> dict[str, Any]:
    """Return answers in the derived words: the longest run of the words of each, of equal ones the first.

    Source and derived text are words with one space between; an answer is as wide as the words that it touches."""
    begins = _begins(source)
    new = _begins(row.words)
    out: dict[str, Any] = {"text": [], "answer_start": []}
    for start, text in zip(answers["answer_start"], answers["text"], strict=True):
        held = {
            word for word, begin in enumerate(begins) if begin < start + len(text) and begin + len(source[word]) > start
        }
        best: list[int] = []
        run: list[int] = []
        for place, word in enumerate(row.order):
            if word >= 0:  # a marker breaks no run, and does not count
                run = [*run, place] if word in held else []
                best = run if len(run) > len(best) else best
        out["answer_start"].append(new[best[0]])
        out["text"].append(" ".join(row.words[best[0] : best[-1] + 1]))
    return out


def _begins(words: Sequence[str]) -> list[int]:
    out, at = [], 0
    for word in words:
        out.append(at)
        at += len(word) + 1
    return out
