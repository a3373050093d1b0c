"""Special tokens as whole words: a normalisation rule in a tokenizer's file.

    the <unk> x<unk>   ->   the <unk> x<·unk>        (· is U+FDD0, which no text holds)

A word that equals a special token is that token. A word that only contains one is an ordinary word, and a lexicon
changes it. But `tokenizers` finds special tokens anywhere in a text. So the rule first inserts a mark into every
string that looks like a special token inside a word. The mark becomes one extra `<unk>` in such a word, in the source
and in every twin. The rule changes nothing else.

A twin must insert the mark in the same places. Under the script f it reads f(w) for a word w, or w itself if w is a
special token or would become one. With a special token s and any other script g:

    the source's text    the twin's text     both
    s, whole             s                   the token
    x s y                f(x) f(s) f(y)      marked
    f(s), whole          f(s)                marked; the twin reads it as a marked s, as its entry for f(<) is <
    x f(s) y             f(x) s f(y)         marked
    g(s), x g(s) y       f(g(s)), …          marked

The source's rule lists the scripts of `script_names`. It cannot list all offset scripts, so it does not mark f(s) for
them. The twin then inserts no mark either: it replaces the first character of s, `<` or `[`, by the mark. Both
tokenizers read one `<unk>` there if the source's vocabulary lacks f(<) and f([), and `make_twin` checks that it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from derivlang.lexical.bpe import SPECIAL_TOKENS
from derivlang.transforms.scripts import Script, load_script, script_names

PART = "\ufdd0"  # the mark: a noncharacter, which every script leaves unchanged
# The characters that separate words in a text. Other white space can occur inside a word.
_AROUND = "\\t\\n\\r "


def normalizer(scripts: Iterable[Script | None]) -> Any:
    """Return the rule as a normalizer of `tokenizers`, for text in these scripts. None: the source's own script."""
    from tokenizers import Regex, normalizers

    inside: dict[str, None] = dict.fromkeys(SPECIAL_TOKENS)
    anywhere: dict[str, None] = {}
    escapes: dict[str, str] = {}
    scripts = list(scripts)
    unmarked = None not in scripts and not all(map(is_listed, scripts))
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
                escapes[image] = ("" if unmarked else token[0]) + PART + token[1:]
    rules = []
    if unmarked:
        for token in SPECIAL_TOKENS:
            del inside[token]
        rules.append(normalizers.Replace(Regex("|".join(_inside(SPECIAL_TOKENS, taken=True))), PART))
    rules.append(normalizers.Replace(Regex(_parting(inside, anywhere)), PART))
    rules += [normalizers.Replace(Regex(_whole(word)), read) for word, read in escapes.items()]
    return normalizers.Sequence(rules) if escapes else rules[0]


def is_listed(script: Script | None) -> bool:
    """Return whether the rule of every tokenizer knows the special tokens in this script."""
    return script is None or script.name in script_names()


def _parting(inside: Iterable[str], anywhere: Iterable[str]) -> str:
    """Return a pattern of the empty string after the first character of each word.

    Words of `inside` match only as parts of longer words, words of `anywhere` also as whole words.
    """
    return "|".join([*_inside(inside), *(f"(?<={first})(?={rest})" for first, rest in _by_first(anywhere))])


def _inside(words: Iterable[str], taken: bool = False) -> Iterable[str]:
    """Yield patterns for words as parts of longer words: of the empty string after the first character, or of that
    character if it is taken."""
    for first, rest in _by_first(words):
        yield (f"(?<=[^{_AROUND}]){first}" if taken else f"(?<=[^{_AROUND}]{first})") + f"(?={rest})"
        yield (first if taken else f"(?<={first})") + f"(?=(?:{rest})[^{_AROUND}])"


def _by_first(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return (pattern of a first character, pattern of the rest) for each first character."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(re.escape(word[0]), []).append(re.escape(word[1:]))
    return ((first, "|".join(rest)) for first, rest in rests.items())


def _whole(word: str) -> str:
    return f"(?<![^{_AROUND}]){re.escape(word)}(?![^{_AROUND}])"
