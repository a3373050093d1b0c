"""The rules of the methods page, §1 and §2, written as plainly and slowly as they read: one word at a time,
Python integers and lists, nothing of the package. The tests hold the package's arrays to these.

    sentences(["said", '"', "."])  ->  [Sentence(0, 3, tail=1)]
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

# shares


def rounded(share: Fraction | int, n: int) -> int:
    """A share in percent of n, halves rounded up."""
    return int((Fraction(share) * n / 100 + Fraction(1, 2)) // 1)


# keys and draws

_64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """The finaliser of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64
    return z ^ (z >> 31)


def word_hash(word: str) -> int:
    """64 bits of a word's UTF-8 bytes: its length, then eight bytes at a time; BLAKE2b beyond 64 bytes."""
    data = word.encode()
    if len(data) > 64:
        return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    found = mix(((len(data) + 1) * _GOLDEN) & _64)
    for start in range(0, len(data), 8):
        found = mix(found ^ int.from_bytes(data[start : start + 8], "little"))
    return found


def sequence_key(words: Sequence[str]) -> int:
    """64 bits of a word sequence."""
    total = len(words) * _GOLDEN
    for place, word in enumerate(words, start=1):
        total += word_hash(word) * (mix((place * _GOLDEN) & _64) | 1)
    return mix(total & _64)


def draw(stream: str, key: int, position: int) -> int:
    """64 bits of a stream's name, a key and a position."""
    name = int.from_bytes(hashlib.blake2b(stream.encode(), digest_size=8).digest(), "little")
    return mix((mix(name ^ key) + (position + 1) * _GOLDEN) & _64)


# sentences

END_MARKS = set(".!?…。！？।॥؟۔")
CLOSERS = {")", "]", "}", "”", "’", "»", "''"}


class Sentence(NamedTuple):
    start: int
    end: int
    tail: int


def sentences(
    words: Sequence[str],
    scopes: Sequence[int] = (),
    lines: Sequence[int] = (),
    rule: str = "marks",
) -> list[Sentence]:
    """The sentences of some words. scopes, lines: word offsets; default: one scope, which is one line."""
    scopes = list(scopes) or [0, len(words)]
    lines = scopes if rule == "unit" else (list(lines) or scopes)
    out = []
    for line_start, line_end in itertools.pairwise(lines):
        start = at = line_start
        while at < line_end:
            if not _is_end_mark(words[at], at + 1 == line_end, rule):
                at += 1
                continue
            tail_start = at
            while at < line_end and (
                _is_end_mark(words[at], at + 1 == line_end, rule) or _is_closer(words, at, scopes)
            ):
                at += 1
            if at == line_end or rule != "unit":
                out.append(Sentence(start, at, at - tail_start))
                start = at
        if start < line_end:
            out.append(Sentence(start, line_end, 0))
    return out


def _is_end_mark(word: str, last_of_line: bool, rule: str) -> bool:
    if rule == "period":
        return word == "."
    if not word or not all(character in END_MARKS for character in word):
        return False
    dots_only = all(character in ".…" for character in word)
    if dots_only and word != ".":
        return last_of_line
    return True


def _is_closer(words: Sequence[str], at: int, scopes: Sequence[int]) -> bool:
    if words[at] in ('"', "'"):
        scope_start = max(scope for scope in scopes if scope <= at)
        return list(words[scope_start:at]).count(words[at]) % 2 == 1
    return words[at] in CLOSERS


# inv, perm


def inv(length: int, tail: int, final: str = "keep") -> list[int]:
    """Which word of a sentence stands at each place."""
    body = length - tail if final == "keep" else length
    return [*reversed(range(body)), *range(body, length)]


def perm(
    words: Sequence[str],
    tail: int,
    *,
    window: int = 0,
    seed: int = 1,
    occurrence: int = 0,
    source: Sequence[str] | None = None,
) -> list[int]:
    """Which word stands at each place: blocks sorted by the draws' top 32 bits, ties by position.

    source: the sentence's source words, if they reach perm in another order: the key is theirs.
    """
    stream = f"perm|window={window},seed={seed}|rule=1|occurrence={occurrence}"
    key = sequence_key(words if source is None else source)
    body = len(words) - tail
    order: list[int] = []
    size = window or max(body, 1)
    for start in range(0, body, size):
        block = range(start, min(start + size, body))
        order += sorted(block, key=lambda place: (draw(stream, key, place) >> 32, place))
    return [*order, *range(body, len(words))]


# labels


def entity_spans(tags: Sequence[str]) -> list[tuple[str, list[int]]]:
    """(type, words) of each entity of a well-formed IOB2 sequence."""
    spans: list[tuple[str, list[int]]] = []
    for place, tag in enumerate(tags):
        if tag.startswith("B-"):
            spans.append((tag[2:], [place]))
        elif tag.startswith("I-"):
            spans[-1][1].append(place)
    return spans


def entities(tags: Sequence[str], index: Sequence[int], policy: str = "split") -> list[str]:
    """IOB2 tags in a derived order. index: source word of each derived place, -1 where a word is inserted.

    An inserted word between two words of an entity breaks it not, and is part of it; any other is O.
    """
    out = ["O"] * len(index)
    kept = [place for place, word in enumerate(index) if word >= 0]  # the derived places of source words
    for kind, words in entity_spans(tags):
        ranks = [rank for rank, place in enumerate(kept) if index[place] in words]
        runs = _runs(ranks)
        if len(runs) > 1 and policy == "drop":
            continue
        for run in runs:
            first, last = kept[run[0]], kept[run[-1]]
            out[first : last + 1] = [f"B-{kind}", *[f"I-{kind}"] * (last - first)]
    return out


def answer(words: Iterable[int], index: Sequence[int], policy: str = "split") -> tuple[int, int] | None:
    """First place, and place after the last, of an answer's words in a derived order; None if it is dropped."""
    mine = set(words)
    kept = [place for place, word in enumerate(index) if word >= 0]
    runs = _runs([rank for rank, place in enumerate(kept) if index[place] in mine])
    if not runs or (len(runs) > 1 and policy == "drop"):
        return None
    longest = max(runs, key=len)  # the first of equals
    return kept[longest[0]], kept[longest[-1]] + 1


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers, cut where one is left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def heads(head: Sequence[int], index: Sequence[int], marks: Sequence[int] = ()) -> list[int]:
    """1-based heads, 0 = root, in a derived order: every word keeps its governor.

    index: source word of each derived place, from 0, -1 where a word is inserted; marks: the source word that
    each of these marks. A deleted word's dependents go to its head; if roots were deleted, the first root that
    is left governs the others.
    """
    place_of = {word: place for place, word in enumerate(index) if word >= 0}

    def kept(word: int | None) -> int | None:  # a source word or, where it is deleted, the nearest above it
        while word is not None and word not in place_of:
            word = head[word] - 1 if head[word] else None
        return word

    governors: list[int | None] = []
    marked = iter(marks)
    for word in index:
        above = next(marked) if word < 0 else (head[word] - 1 if head[word] else None)
        governors.append(kept(above))
    out = [0 if governor is None else place_of[governor] + 1 for governor in governors]
    roots = [place for place, number in enumerate(out) if number == 0]
    for other in roots[1:]:
        out[other] = roots[0] + 1
    return out


def enhanced(deps: str, renumbered: dict[str, str]) -> str:
    """DEPS with new numbers, in the order of the new numbers; what points to a node that is gone is left out."""
    if deps == "_":
        return "_"
    found = []
    for part in deps.split("|"):
        number, _, relation = part.partition(":")
        new = "0" if number == "0" else renumbered.get(number)
        if new is not None:
            found.append((tuple(int(n) for n in new.split(".")), f"{new}:{relation}"))
    return "|".join(part for _, part in sorted(found, key=lambda item: item[0])) or "_"


def reached(deps: dict[str, str]) -> set[str]:
    """The words and empty nodes that a root reaches, by their ids."""
    found: set[str] = set()
    while True:
        more = {id for id, text in deps.items() if {"0", *found} & set(governors(text))}
        if more == found:
            return found
        found = more


def governors(deps: str) -> list[str]:
    return [] if deps == "_" else [part.partition(":")[0] for part in deps.split("|")]


def connected(
    before: dict[str, str], after: dict[str, str], came: dict[str, str | None], own: dict[str, str]
) -> dict[str, str]:
    """DEPS by id, with those that a root reached in the source reached again, and inserted words in the graph.

    before: of the source. after: as `enhanced` gives them. came: the source's id, None for an inserted word. own: the
    head and relation of each.
    """
    is_given = any("." not in id and text != "_" for id, text in before.items())
    needed = {id for id, old in came.items() if (is_given if old is None else old in reached(before))}
    out = dict(after)
    for only_without in (True, False):
        lost = needed - reached(out)
        for id in lost:
            (head,) = governors(own[id])
            if head not in governors(out[id]) and not (only_without and out[id] != "_" and head != "0"):
                out[id] = own[id] if out[id] == "_" else f"{out[id]}|{own[id]}"
    return {id: enhanced(text, {n: n for n in governors(text)}) for id, text in out.items()}


# trans


def overlap(
    types: Sequence[str],
    counts: Sequence[int],
    percent: int,
    by: str,
    image: Callable[[str], str],
    stream: str,
    specials: Iterable[str],
) -> set[str]:
    """The kept types of a reference vocabulary.

    Types w and f(w) that both occur are one entry of the ranking and are kept together; under `frequency` the
    more frequent of the two ranks them. An entry that no longer fits is passed over.
    """
    plain = {word: count for word, count in zip(types, counts, strict=True) if word not in set(specials)}
    entries = {frozenset({word, image(word)} & plain.keys()) for word in plain}

    def key(entry: frozenset[str]) -> int:
        word = next(iter(entry))
        return draw(stream, (word_hash(word) + word_hash(image(word))) & _64, 0)

    def rank(entry: frozenset[str]) -> tuple[int, int]:
        return (-max(plain[word] for word in entry) if by == "frequency" else 0, key(entry))

    kept: set[str] = set()
    if by == "mass":
        for entry in sorted(entries, key=rank):
            if 100 * sum(plain[word] for word in kept) >= percent * sum(plain.values()):
                break
            kept |= entry
        return kept
    room = (2 * percent * len(plain) + 100) // 200  # floor(PT/100 + 1/2)
    for entry in sorted(entries, key=rank):
        if len(kept) + len(entry) <= room:
            kept |= entry
    return kept


# trees (methods, §1: Levels; the syntax issue, §2)


def joined_sentences(head: Sequence[int], bounds: Sequence[int]) -> list[int]:
    """Word offsets of the trees of one unit: sentences that an arc joins, or passes over, are one.

    head: 1-based in the unit, 0 = root. bounds: word offsets of its sentences.
    """
    arcs = [(min(word, above - 1), max(word, above - 1)) for word, above in enumerate(head) if above]
    inner = [cut for cut in bounds[1:-1] if not any(low < cut <= high for low, high in arcs)]
    return [bounds[0], *inner, *bounds[-1:]] if len(bounds) > 1 else list(bounds)


def parts_of(bonds: Sequence[bool]) -> list[list[int]]:
    """Words in parts; bonds: is a word one part with the word before it."""
    parts: list[list[int]] = []
    for word, bound in enumerate(bonds):
        if bound:
            parts[-1].append(word)
        else:
            parts.append([word])
    return parts


def part_heads(head: Sequence[int], parts: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(heads of parts, 1-based, 0 = root; the word nearest to the root that stands for each)."""
    part_of = {word: number for number, part in enumerate(parts, start=1) for word in part}

    def depth(word: int) -> int:
        steps = 0
        while head[word]:
            word = head[word] - 1
            steps += 1
        return steps

    tops = [min(part, key=lambda word: (depth(word), word)) for part in parts]
    return [part_of[head[top] - 1] if head[top] else 0 for top in tops], tops


def laid_out(head: Sequence[int], arrange: Callable[[int, list[int]], list[int]]) -> list[int]:
    """Which word stands at each place when every subtree is one block.

    head: 1-based, 0 = root. arrange: a head's number from 0 (-1: that of the roots) and its family in surface
    order, itself among its dependents, to the family in the order it is to have.
    """
    children: dict[int, list[int]] = {}
    for word, above in enumerate(head):
        children.setdefault(above - 1, []).append(word)

    def block(top: int) -> list[int]:
        family = sorted([*children.get(top, []), *([top] if top >= 0 else [])])
        if len(family) > 1:
            family = arrange(top, family)
        return [word for member in family for word in ([member] if member == top else block(member))]

    return block(-1)
