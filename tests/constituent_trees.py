"""Trees in brackets for real text: of the dependency trees of a treebank, and by a rule for text that has none.

A head projects a phrase over its dependents: a verb an S with a VP, a noun an NP, with a preposition a PP, with a
conjunction an SBAR. The trees stand for a treebank of constituents, which is not among the test data; they need not be
good linguistics, but have what such treebanks have: function tags, traces, unary chains, flat and nested noun phrases.
A tree is a nested list [label, child, child …]; a word is a string.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Node = list[Any]

BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
PENN = set(
    "CC CD DT EX FW IN JJ JJR JJS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP TO UH VB VBD VBG VBN VBP VBZ WDT "
    "WP WP$ WRB $ . , : `` '' -LRB- -RRB- HYPH SYM LS NFP ADD AFX GW".split()
)
PLAIN_TAGS = {
    "CCONJ": "CC",
    "SCONJ": "IN",
    "ADP": "IN",
    "NUM": "CD",
    "ADV": "RB",
    "INTJ": "UH",
    "PART": "RP",
    "X": "FW",
}
PHRASES = {"ADJ": "ADJP", "ADV": "ADVP", "NUM": "QP", "ADP": "PP", "INTJ": "INTJ", "VERB": "VP", "AUX": "VP"}
NOMINAL = {"NOUN", "PROPN", "PRON", "DET", "SYM", "X"}
BARE = {
    "det",
    "amod",
    "nummod",
    "compound",
    "case",
    "mark",
    "cc",
    "aux",
    "cop",
    "punct",
    "flat",
    "fixed",
    "goeswith",
    "clf",
}
AFTER = {"nmod", "acl", "appos", "conj", "obl", "parataxis", "list", "dep", "advcl", "orphan"}


@dataclass(frozen=True)
class Token:
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: dict[str, str]
    head: int
    relation: str

    @property
    def base(self) -> str:
        return self.relation.partition(":")[0]


def sentences_of(path: Path) -> Iterator[list[Token]]:
    """Read the words of a CoNLL-U file, with a stand-in at place 0. Forms keep no white space."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    for block in text.split("\n\n"):
        lines = [line.split("\t") for line in block.split("\n") if line[:1].isdigit()]
        tokens = [Token("", "", "", "", {}, -1, "")]
        for number, form, lemma, upos, xpos, feats, head, relation, *_ in lines:
            if number.isdigit():
                pairs = dict(pair.split("=", 1) for pair in feats.split("|")) if feats != "_" else {}
                form = re.sub(r"\s", "_", form)
                tokens.append(Token(form, re.sub(r"\s", "_", lemma), upos, xpos, pairs, int(head), relation))
        if len(tokens) > 1:
            yield tokens


def projective(tokens: list[Token]) -> bool:
    """Return whether each subtree is a stretch of words."""
    low, high, size = list(range(len(tokens))), list(range(len(tokens))), [1] * len(tokens)
    for at in range(1, len(tokens)):
        up = at
        while (up := tokens[up].head) > 0:
            low[up], high[up], size[up] = min(low[up], at), max(high[up], at), size[up] + 1
    return all(high[at] - low[at] + 1 == size[at] for at in range(1, len(tokens)))


def tag_of(token: Token) -> str:
    """Return the Penn tag of a word: its own, else one for its part of speech and features."""
    feats = token.feats
    if token.xpos in PENN:
        return token.xpos
    if token.upos in ("NOUN", "PROPN"):
        return ("NN" if token.upos == "NOUN" else "NNP") + ("S" if feats.get("Number") == "Plur" else "")
    question = feats.get("PronType", "") in ("Int", "Rel", "Int,Rel")
    if token.upos == "PRON":
        return "WP" if question else "PRP$" if feats.get("Poss") == "Yes" else "PRP"
    if token.upos == "DET":
        return "WDT" if question else "PRP$" if feats.get("Poss") == "Yes" else "DT"
    if token.upos == "ADV" and question:
        return "WRB"
    if token.upos == "ADJ":
        return {"Cmp": "JJR", "Sup": "JJS"}.get(feats.get("Degree", ""), "JJ")
    if token.upos in ("VERB", "AUX"):
        if feats.get("VerbForm", "Fin") == "Fin" and feats.get("Mood", "Ind") == "Ind":
            third = feats.get("Person", "3") == "3" and feats.get("Number", "Sing") == "Sing"
            return "VBD" if feats.get("Tense") == "Past" else "VBZ" if third else "VBP"
        return {"Part": "VBN", "Ger": "VBG"}.get(feats.get("VerbForm", ""), "VB")
    if token.upos == "PUNCT":
        return BRACKETS.get(token.form, "." if token.form in ".?!" else "," if token.form == "," else ":")
    if token.upos == "SYM":
        return "$" if token.form in "$€£" else "SYM"
    return PLAIN_TAGS.get(token.upos, "FW")


class Projector:
    """The tree of one sentence. flat: noun phrases hold what follows their noun as further children. traces: clauses
    without a subject have an empty one."""

    def __init__(self, tokens: list[Token], *, flat: bool, traces: bool) -> None:
        self.tokens, self.flat, self.traces = tokens, flat, traces
        self.below: list[list[int]] = [[] for _ in tokens]
        for at, token in enumerate(tokens[1:], 1):
            self.below[token.head].append(at)

    def tree(self) -> Node:
        (root,) = self.below[0]
        found = self.phrase(root)
        return found if found[0] in ("S", "SQ", "SINV") else ["FRAG", found]

    def leaf(self, at: int) -> Node:
        return [tag_of(self.tokens[at]), self.tokens[at].form]

    def nodes(self, at: int) -> list[Node]:
        """The phrase of a dependent; a conjunct gives its conjunction first."""
        lead: list[int] = []
        if self.tokens[at].base == "conj":
            for child in self.below[at]:
                if child > at or self.tokens[child].base not in ("cc", "punct"):
                    break
                lead.append(child)
        return [node for child in lead for node in self.nodes(child)] + [self.phrase(at, lead)]

    def phrase(self, at: int, lead: list[int] | None = None) -> Node:
        token = self.tokens[at]
        items = [child for child in self.below[at] if child not in (lead or [])]
        relations = {self.tokens[child].base for child in items}
        if token.upos in ("VERB", "AUX") and (items or token.base not in BARE):
            return self.clause(at, items)
        if relations & {"nsubj", "csubj", "cop"}:
            return self.clause(at, items)
        if not items:
            return self.alone(at)
        first = last = 0
        while first < len(items) and items[first] < at and self.tokens[items[first]].base in ("case", "mark"):
            first += 1
        while last < len(items) - first and items[-1 - last] > at and self.tokens[items[-1 - last]].base == "case":
            if tag_of(self.tokens[items[-1 - last]]) == "POS":
                break
            last += 1
        inner = self.core(at, items[first : len(items) - last])
        if not first and not last:
            return inner
        before = [node for child in items[:first] for node in self.nodes(child)]
        after = [node for child in items[len(items) - last :] for node in self.nodes(child)]
        label = "SBAR" if any(self.tokens[child].base == "mark" for child in items[:first]) else "PP"
        return [label, *before, inner, *after]

    def alone(self, at: int) -> Node:
        token = self.tokens[at]
        if token.base in BARE or token.upos == "PUNCT":
            return self.leaf(at)
        if token.upos in NOMINAL:
            tmp = "-SBJ" if token.base == "nsubj" else "-TMP" if "tmod" in token.relation else ""
            return ["NP" + tmp, self.leaf(at)]
        return [PHRASES[token.upos], self.leaf(at)] if token.upos in PHRASES else self.leaf(at)

    def core(self, at: int, items: list[int]) -> Node:
        """The phrase of a head that is no clause."""
        token = self.tokens[at]
        label = "NML" if token.base == "compound" else PHRASES.get(token.upos, "NP")
        if token.base == "nsubj":
            label += "-SBJ"
        start = next(
            (i for i, child in enumerate(items) if child > at and self.tokens[child].base in AFTER), len(items)
        )
        parts = self.around(at, items[:start])
        after = [node for child in items[start:] for node in self.nodes(child)]
        if after and not self.flat and label.startswith("NP"):
            return [label, ["NP", *parts], *after]
        return [label, *parts, *after]

    def around(self, at: int, items: list[int]) -> list[Node]:
        """Dependents and their head, in their order."""
        before = [node for child in items if child < at for node in self.nodes(child)]
        return [*before, self.leaf(at), *(node for child in items if child > at for node in self.nodes(child))]

    def clause(self, at: int, items: list[int]) -> Node:
        token, of = self.tokens[at], self.tokens
        begin, end = 0, len(items)
        while begin < end and items[begin] < at and of[items[begin]].base == "mark":
            begin += 1
        wh = (
            begin == 0 and end > 0 and items[0] < at and token.base in ("acl", "ccomp", "advcl") and self.asks(items[0])
        )
        begin += wh
        while end > begin and items[end - 1] > at and of[items[end - 1]].base == "punct":
            end -= 1
        left = [i for i in range(begin, end) if items[i] < at]
        subjects = [i for i in left if of[items[i]].base in ("nsubj", "csubj", "expl")]
        cut = subjects[-1] + 1 if subjects else begin
        while not subjects and cut < end and items[cut] < at and of[items[cut]].base in ("punct", "advcl", "cc"):
            cut += 1
        verbal = self.verbal(at, items[cut:end])
        if token.base == "acl" and not subjects and not begin and not items[:cut]:
            return [*verbal, *(node for child in items[end:] for node in self.nodes(child))]
        subject = (
            [["NP-SBJ", ["-NONE-", "*-1"]]] if self.traces and not subjects and token.base in ("xcomp", "acl") else []
        )
        inside = [*(node for child in items[begin:cut] for node in self.nodes(child)), *subject, verbal]
        inverted = any(of[child].base == "nsubj" and child > at for child in items)
        closing = [node for child in items[end:] for node in self.nodes(child)]
        asked = any(of[child].form in "?؟？" for child in items[end:])
        label = "SQ" if asked and inverted else "SINV" if inverted else "S"
        if not begin:
            return [label, *inside, *closing]
        before = [node for child in items[:begin] for node in self.nodes(child)]
        if wh:
            name = re.split("[-=]", before[0][0])[0]
            before[0] = ["WH" + name, *before[0][1:]] if name in ("NP", "ADVP", "PP", "ADJP") else ["WHNP-1", before[0]]
        elif self.traces:
            before.append(["WHNP-2", ["-NONE-", "0"]])
        return ["SBAR", *before, [label, *inside], *closing]

    def asks(self, at: int) -> bool:
        return tag_of(self.tokens[at]) in ("WDT", "WP", "WRB") or any(self.asks(child) for child in self.below[at])

    def verbal(self, at: int, items: list[int]) -> Node:
        """The VP of a clause: each auxiliary opens another one, and a copula has a predicate beside it."""
        for i, child in enumerate(items):
            base = self.tokens[child].base
            if child < at and base in ("aux", "cop"):
                before = [node for one in items[: i + 1] for node in self.nodes(one)]
                rest = self.verbal(at, items[i + 1 :]) if base == "aux" else self.predicate(at, items[i + 1 :])
                return ["VP", *before, rest]
        if self.tokens[at].upos in ("VERB", "AUX"):
            return ["VP", *self.around(at, items)]
        return ["VP", self.predicate(at, items)]

    def predicate(self, at: int, items: list[int]) -> Node:
        label, *rest = self.core(at, items)
        return [f"{label.partition('-')[0]}-PRD", *rest]


def escaped(word: str) -> str:
    """A word as trees in brackets have it."""
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def on_a_line(tree: Node | str) -> str:
    """A tree with one space between its parts."""
    return escaped(tree) if isinstance(tree, str) else f"({tree[0]} {' '.join(on_a_line(child) for child in tree[1:])})"


def indented(tree: Node | str, depth: int = 0) -> str:
    """A tree over several lines, as the Penn Treebank's are."""
    if isinstance(tree, str) or not isinstance(tree[1], list):
        return on_a_line(tree)
    return f"({tree[0]} " + ("\n" + "  " * (depth + 1)).join(indented(child, depth + 1) for child in tree[1:]) + " )"


def without_traces(tree: Node | str) -> Node | str | None:
    """A tree without -NONE- and what holds nothing else."""
    if isinstance(tree, str):
        return tree
    kept = [child for child in map(without_traces, tree[1:]) if child is not None]
    return [tree[0], *kept] if kept and tree[0] != "-NONE-" else None


# By a rule, for text without trees: each word has a tag by its spelling, and what follows a verb, a preposition or a
# relative pronoun stands in its phrase.

TAGS = ["DT", "JJ", "NN", "NNS", "VBZ", "IN", "CD", "NNP", "RB", "WDT", "NN", "PRP$"]


def by_rule(words: list[str]) -> list[Node]:
    """Trees over words, one for each stretch up to a mark of its end."""
    trees: list[Node] = []
    start = 0
    for end in range(1, len(words) + 1):
        if words[end - 1] in ".?!" or end == len(words) or end - start == 40:
            last = end - 1 if words[end - 1] in ".?!" else end
            closing: list[Node] = [[".", word] for word in words[last:end]]
            trees.append(["S", *_rest(words[start:last]), *closing])
            start = end
    return trees


def _rest(words: list[str]) -> list[Node]:
    run: list[Node] = []
    for at, word in enumerate(words):
        tag = TAGS[zlib.crc32(word.encode()) % len(TAGS)] if word.isalnum() else ":"
        after = words[at + 1 :]
        if tag in ("VBZ", "IN", "WDT") and after:
            below = _rest(after)
            if tag == "VBZ":
                return [["NP-SBJ", *run], ["VP", [tag, word], *below]] if run else [["VP", [tag, word], *below]]
            if tag == "IN":
                phrase: Node = ["PP", [tag, word], *below]
            else:
                phrase = ["SBAR", ["WHNP", [tag, word]], ["S", *below]]
            return [["NP", ["NP", *run], phrase]] if run and at % 2 else [["NP", *run, phrase]] if run else [phrase]
        run.append([tag, word])
    return [["NP", *run]] if run else []
