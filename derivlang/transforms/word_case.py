"""The case of a word, given to another word in its place: Cat, chat -> Chat; CAT, chat -> CHAT."""

from __future__ import annotations


def is_capitals(word: str) -> bool:
    """Return whether a word has two or more capitals and no small letter."""
    return word.isupper() and sum(map(str.isupper, word)) > 1


def in_case(word: str, other: str) -> str:
    """Return another word in the case of a word: UPPER if that is in capitals, Title if it begins with a capital."""
    if is_capitals(word):
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
