"""A plain second reading of published rules, in lists: Kallini, Ravfogel, Ziv, and White and Cotterell.

It was written from the papers' descriptions, one sentence at a time. It is not the released programs, and shares no
code with them or with derivlang: where both agree, two readings of the rules agree. Units are words, trees are of UD
v2. `tests/test_published_rules.py` compares it with derivlang, on rows of the papers and on real sentences.

    Kallini et al. 2024 (ACL, arXiv 2401.06416)      shuffle, reverse and hop languages: 12 beside three controls
    Ravfogel et al. 2019 (NAACL, N19-1356)           orders of subject, object and verb; suffixes of case and agreement
    Ziv et al. 2026 (EACL, arXiv 2510.07178)         shuffles, reversals, switch-indices
    White and Cotterell 2021 (ACL, arXiv 2106.01044) six switches
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Token(NamedTuple):
    """A word of a sentence. head: from 0, -1 for the root."""

    form: str
    lemma: str
    upos: str
    feats: str
    head: int
    relation: str

    @property
    def plain(self) -> str:
        return self.relation.partition(":")[0]

    @property
    def is_plural(self) -> bool:
        return "Number=Plur" in self.feats.split("|")


# Kallini et al.: of a sentence with its final mark, words for GPT-2's sub-words

Corpus = list[list[str]]


def nondeterministic(sentences: Corpus) -> Corpus:
    """Shuffle each sentence; one generator runs through the corpus."""
    generator = np.random.default_rng(0)
    return [shuffled(words, generator) for words in sentences]


def shuffled(words: Sequence[str], generator: Any) -> list[str]:
    out = list(words)
    generator.shuffle(out)
    return out


def deterministic(seed: int) -> Callable[[Corpus], Corpus]:
    """Shuffle each sentence with a generator that begins anew: an order for each length."""
    return lambda sentences: [shuffled(words, np.random.default_rng(seed)) for words in sentences]


def local(window: int) -> Callable[[Corpus], Corpus]:
    """Shuffle blocks of `window` words, each with a generator that begins anew."""

    def by_blocks(words: list[str]) -> list[str]:
        blocks = [words[at : at + window] for at in range(0, len(words), window)]
        return [word for block in blocks for word in shuffled(block, np.random.default_rng(0))]

    return lambda sentences: [by_blocks(words) for words in sentences]


def even_odd(sentences: Corpus) -> Corpus:
    return [words[::2] + words[1::2] for words in sentences]


def reversing(kind: str, marker: str = "R") -> Callable[[Corpus], Corpus]:
    """Insert a marker before word i of 0 … n, by one generator; reverse all, what follows it, or nothing."""

    def all_of(sentences: Corpus) -> Corpus:
        generator, out = np.random.default_rng(21), []
        for words in sentences:
            i = generator.choice(len(words) + 1)
            before, after = [*words[:i], marker], words[i:]
            if kind == "partial":
                after = after[::-1]
            out.append((before + after)[::-1] if kind == "full" else before + after)
        return out

    return all_of


KALLINI: dict[str, tuple[str, Callable[[Corpus], Corpus]]] = {
    "shuffle:final=move:rng=numpy:seed=0": ("NondeterministicShuffle", nondeterministic),
    **{
        f"shuffle:by=length:final=move:rng=numpy:seed={seed}": (f"DeterministicShuffle {seed}", deterministic(seed))
        for seed in (21, 57, 84)
    },
    **{
        f"shuffle:local={size}:by=window:final=move:rng=numpy:seed=0": (f"LocalShuffle {size}", local(size))
        for size in (3, 5, 10)
    },
    "stride:2:final=move": ("EvenOddShuffle", even_odd),
    "inv:final=move:from=end:mark=R:rng=numpy:seed=21": ("NoReverse", reversing("no")),
    "inv:final=move:from=random:mark=R:rng=numpy:seed=21": ("PartialReverse", reversing("partial")),
    "inv:final=move:mark=R:rng=numpy:seed=21": ("FullReverse", reversing("full")),
}
CLITICS = {f"{mark}{end}" for mark in "'’" for end in ("s", "ll", "re", "ve", "m", "d", "t")} | {"n't", "n’t"}


def hop(sentence: list[Token], tail: int, count: int, *, tokens: bool) -> list[str]:
    """A verb becomes its lemma; its marker follows `count` words or tokens later, before the last `tail` words."""
    out, markers = [], list[tuple[int, str]]()
    body = len(sentence) - tail

    def counts(word: str) -> bool:
        return word not in CLITICS and any(c.isalnum() for c in word)

    for place, token in enumerate(sentence):
        features = token.feats.split("|")
        numbers = [feature for feature in features if feature.startswith("Number=")]
        if numbers and {"Person=3", "Tense=Pres", "VerbForm=Fin"} <= {*features}:
            after, left = place, count
            if tokens:
                after = max(place, min(place + count, body - 1))
            else:
                for later in range(place + 1, body):
                    if left and counts(sentence[later].form):
                        after, left = later, left - 1
                while after + 1 < body and sentence[after + 1].form in CLITICS:
                    after += 1
            markers.append((after, "🄿" if "Number=Plur" in features else "🅂"))
            out.append(token.lemma if token.lemma not in ("", "_") else token.form)
        else:
            out.append(token.form)
    return [
        word for place, form in enumerate(out) for word in [form, *(mark for after, mark in markers if after == place)]
    ]


# Ravfogel et al.


def outside(unit: list[Token]) -> list[Token]:
    """The tree with each outer copula as the head of its subject, what stands outside, and the inner predicate."""
    out = list(unit)
    for subject, token in enumerate(unit):
        head = out[subject].head
        below = [word for word, other in enumerate(out) if other.head == head >= 0]
        copulas = [word for word in below if out[word].plain == "cop"]
        if not token.relation.endswith(":outer") or not copulas:
            continue
        copula = next((word for word in copulas if word < head), copulas[-1])
        low = max([word + 1 for word in (copula, subject) if word < head], default=0)
        high = min([word for word in (copula, subject) if word > head], default=len(out))
        for word in [word for word in below if low <= word < head] if low else []:
            if out[word].plain in ("mark", "nsubj", "csubj") and not out[word].relation.endswith(":outer"):
                low = word if out[word].plain == "mark" else low
                break
        for word in below:
            if word < low or word >= high:
                out[word] = out[word]._replace(head=copula)
        out[copula] = out[copula]._replace(head=out[head].head, relation=out[head].relation)
        out[head] = out[head]._replace(head=copula, relation="predicate")
    return out


def sov(unit: list[Token], order: str) -> list[int]:
    """The words of a tree with s, o and v in an order, at each verb and each copula. Marks move like words."""
    tree = outside(unit)
    names = {"nsubj": "s", "nsubjpass": "s", "csubj": "s", "obj": "o", "dobj": "o", "ccomp": "o", "xcomp": "o"}
    names |= dict.fromkeys(("aux", "expl", "advmod", "neg", "prt", "auxpass"), "v")

    def relative(word: int) -> bool:
        head = unit[word].head
        while head >= 0 and unit[head].plain == "conj":
            head = unit[head].head
        return head >= 0 and unit[head].relation.endswith(":relcl")

    def letter(word: int, head: int) -> str:
        token = tree[word]
        form = token.form.lower()
        asks = {f"{stem}{end}" for stem in ("who", "whom", "which", "what") for end in ("", "ever")}
        if word == head or token.relation == "compound:prt" or (token.plain == "mark" and form == "to"):
            return "v"
        pronoun = token.upos in ("PRON", "DET") and token.plain != "csubj" and names.get(token.plain) in ("s", "o")
        if pronoun and (form in asks or (form == "that" and relative(word))):
            return "-"
        return "-" if token.plain == "csubj" and word > head else names.get(token.plain, "-")

    def arranged(head: int) -> list[int]:
        members = [word for word in range(len(tree)) if word == head or tree[word].head == head]
        letters = {word: letter(word, head) for word in members}
        below = [word for word in members if word != head]
        is_outer = any(tree[word].relation == "predicate" for word in below)
        if tree[head].upos in ("VERB", "AUX") and not is_outer:
            core = [word for wanted in order for word in members if letters[word] == wanted]
            others = [word for word in members if letters[word] == "-"]
            return [*(word for word in others if word < head), *core, *(word for word in others if word > head)]
        copulas = [head] if is_outer else [word for word in below if tree[word].plain == "cop"]
        if not copulas or any(tree[word].plain in ("aux", "auxpass") for word in below):
            return members
        subjects = [word for word in below if letters[word] == "s"]
        rest = [word for word in members if word not in subjects]
        at = rest.index(copulas[0]) + (order.index("s") > order.index("v"))
        return [*rest[:at], *subjects, *rest[at:]]

    def under(head: int) -> list[int]:
        return [word for member in arranged(head) for word in ([member] if member == head else under(member))]

    return [word for root, token in enumerate(tree) if token.head < 0 for word in under(root)]


ROLES = {"nsubj": 0, "nsubjpass": 0, "obj": 1, "dobj": 1, "iobj": 2}
SUFFIXES = [("kar", "kon"), ("kin", "ker"), ("kan", "kre")]


def suffix(unit: list[Token], token: Token, system: str) -> str:
    case = ROLES[token.plain]
    transitive = any(other.head == token.head and ROLES.get(other.plain) == 1 for other in unit)
    return SUFFIXES[1 if system == "erg-abs" and case == 0 and not transitive else case][token.is_plural]


def case(unit: list[Token], system: str) -> list[str]:
    unit = outside(unit)
    return [t.form + (suffix(unit, t, system) if t.plain in ROLES and t.head >= 0 else "") for t in unit]


def agree(unit: list[Token], roles: set[int], on: str = "verb", system: str = "nom-acc") -> list[str]:
    unit = outside(unit)
    out = [token.form for token in unit]
    for head, verb in enumerate(unit):
        found = [t for t in unit if t.head == head and ROLES.get(t.plain) in roles]
        auxiliaries = [place for place, t in enumerate(unit) if t.head == head and t.plain in ("aux", "auxpass")]
        copulas = [place for place, t in enumerate(unit) if t.head == head and t.plain == "cop"]
        verbs = [head] if verb.upos in ("VERB", "AUX") else []
        places = auxiliaries or copulas or verbs if on == "aux" else verbs or copulas or auxiliaries
        if places:
            out[places[-1]] += "".join(sorted(suffix(unit, t, system) for t in found))
    return out


# Ziv et al.: of a sentence with its final mark; markers at places that the study draws are given here


def shuffle_global(words: list[str]) -> list[str]:
    out = list(words)
    random.Random(len(out)).shuffle(out)
    return out


def pairs_turned(words: list[str]) -> list[str]:
    return [word for at in range(0, len(words), 2) for word in words[at : at + 2][::-1]]


def switch_indices(words: list[str]) -> list[str]:
    """The first and the fourth word before the final mark change places; capitals stay."""
    body, mark = (words[:-1], words[-1:]) if words and words[-1] in (".", "!", "?", "…") else (words, [])
    if len(body) >= 4:
        body = [body[3], body[1], body[2], body[0], *body[4:]]
    return body + mark


def ziv_reversed(kind: str, words: list[str], place: int, marker: str = "<rev>") -> list[str]:
    body, stop = (words[:-1], words[-1:]) if words[-1:] == ["."] else (words, [])
    before, after = [*body[:place], marker], body[place:]
    turned = {"no": before + after, "partial": before + after[::-1], "full": (before + after)[::-1]}
    return turned[kind] + stop


# White and Cotterell: trees as nested lists [label, child …]; words are strings


def switch_number(node: list[Any]) -> int:
    """The number of a rule, by the labels of `source:pcfg=six-switches`."""
    label = node[0].partition("_")[0]
    below = [child[0].partition("_")[0] for child in node[1:] if isinstance(child, list)]
    if label == "NP":
        return 4 if below[0] == "PP" else 6 if below[0] == "Relative" else 0
    if label == "N":
        return 5 if len(below) == 2 else 0
    numbers = {"S": 1, "VP": 2, "CP": 3, "PP": 4, "Relative": 6}
    return numbers.get(label, 0) if len(node) > 2 else 0


def switched(node: list[Any] | str, on: str) -> list[str]:
    """The words of a tree, with the children of each rule whose switch is 1 in reverse."""
    if isinstance(node, str):
        return [node]
    below = node[1:]
    number = switch_number(node)
    return [
        word for child in (below[::-1] if number and on[number - 1] == "1" else below) for word in switched(child, on)
    ]
