"""Special tokens as whole words: the one rule that a tokenizer's file needs beside its vocabulary.

    the <unk> x<unk>   ->   the <unk> x<·unk>        (· is U+FDD0, which no text holds)

A word that equals a special token is that token; a word that only holds one is a word, and a lexicon changes it.
But `tokenizers` finds special tokens anywhere in a text. So its file parts, before that, what looks like one and is
none: the mark comes out as one `<unk>` more in such a word, in the source as in every twin. Nothing else is changed.

A twin must part in the same places. Under the script f it reads f(w) for every word w, but w itself where w is a
special token or would become one: with s a special token, g any other script,

    the source's text    the twin's text     both
    s, whole             s                   the token
    x s y                f(x) f(s) f(y)      parted
    f(s), whole          f(s)                parted; the twin reads it as s, parted: its entry for f(<) is <
    x f(s) y             f(x) s f(y)         parted
    g(s), x g(s) y       f(g(s)), …          parted
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from derivlang.lexical.bpe import SPECIAL_TOKENS
from derivlang.transforms.scripts import Script, load_script, script_names

PART = "\ufdd0"  # a noncharacter, which every script leaves as it is
# What surrounds a word in a text and cannot be inside one. Other white space can.
_AROUND = "\\t\\n\\r "


def normalizer(scripts: Iterable[Script | None]) -> Any:
    """The rule as a normalizer of `tokenizers`, for text in these scripts; None: as it is, the source."""
    from tokenizers import Regex, normalizers

    inside: dict[str, None] = dict.fromkeys(SPECIAL_TOKENS)
    anywhere: dict[str, None] = {}
    escapes: dict[str, str] = {}
    for script in scripts:
        for name in script_names():
            other = load_script(name)
            for token in SPECIAL_TOKENS:
                seen = other.map_text(token)
                if script is None:
                    anywhere[seen] = None
                elif name != script.name:
                    anywhere[script.map_text(seen)] = None
        if script is not None:
            for token in SPECIAL_TOKENS:
                image = script.map_text(token)
                inside[image] = None
                escapes[image] = token[0] + PART + token[1:]
    rules = [normalizers.Replace(Regex(_parting(inside, anywhere)), PART)]
    rules += [normalizers.Replace(Regex(_whole(word)), read) for word, read in escapes.items()]
    return normalizers.Sequence(rules) if escapes else rules[0]


def _parting(inside: Iterable[str], anywhere: Iterable[str]) -> str:
    """Matches nothing, after the first character of these: of `inside` only where they are no whole word."""
    ways = []
    for first, rest in _by_first(inside):
        ways += [f"(?<=[^{_AROUND}]{first})(?={rest})", f"(?<={first})(?=(?:{rest})[^{_AROUND}])"]
    ways += [f"(?<={first})(?={rest})" for first, rest in _by_first(anywhere)]
    return "|".join(ways)


def _by_first(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Patterns of the first character, and of what may follow it."""
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(re.escape(word[0]), []).append(re.escape(word[1:]))
    return ((first, "|".join(rest)) for first, rest in found.items())


def _whole(word: str) -> str:
    return f"(?<![^{_AROUND}]){re.escape(word)}(?![^{_AROUND}])"
