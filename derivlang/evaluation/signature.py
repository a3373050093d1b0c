"""How a score was computed, in one line that a paper can print beside it, as sacrebleu's is (Post 2018).

    pos.accuracy|set:UD EWT#5f0c12ab|split:test|units:316 documents|epochs:1|seeds:1-3|ft_seeds:1-2|derivlang:0.9

`evaluate` prints the signature of a run, and a report the signature of all runs of a section, where what differs among
them is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from derivlang.core.messages import counted

_DIGITS = 8  # of the hash of a set


def signature_line(name: str, parts: Mapping[str, Iterable[object]]) -> str:
    """Return the signature of a score: its name, and the values of each part; a part without any is left out."""
    told = {key: ",".join(filter(None, (str(one) for one in some if one is not None))) for key, some in parts.items()}
    return "|".join([name, *(f"{key}:{value}" for key, value in told.items() if value)])


def set_told(name: str, digest: str) -> str:
    """Return the name of a set with the first digits of its hash, if it has one."""
    return f"{name}#{digest[:_DIGITS]}" if digest else name


def units_told(n: int, unit: str) -> str:
    """Return the number of units of a set, "316 documents"; "" for none."""
    return counted(n, unit) if n else ""


def seeds_told(seeds: Iterable[int]) -> str:
    """Return seeds as text: 1, 2, 3 -> "1-3", and 1, 2, 5 -> "1,2,5"."""
    ordered = sorted(set(map(int, seeds)))
    whole = len(ordered) > 1 and ordered == list(range(ordered[0], ordered[-1] + 1))
    return f"{ordered[0]}-{ordered[-1]}" if whole else ",".join(map(str, ordered))
