"""Claim: `make --t trans,inv` makes at least 0.8 M words a CPU second of 2 M words of a million types.

The words are made up, of 4 to 10 letters; each occurs twice on average. Beside it stands a text of as many words,
WikiText-2, which has 33,000 types.
"""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from string import ascii_lowercase

from corpus import corpus, text_file
from measure import Report, Settings, alternate, make, spread, tokens

_LIMIT = 0.8
_TYPES = 1_000_000  # of 100 MB; fewer of less


def benchmark(settings: Settings) -> Report:
    n_types = max(100, min(_TYPES, round(_TYPES * settings.size / 100)))
    many = _made_up(settings.work / "many.tokens", n_types)
    few = settings.work / "few.tokens"
    few.write_bytes(text_file(corpus(10, "repeated", settings.cache, settings.data)).read_bytes())
    jobs = {
        f"{n_types:,} types": partial(make, "trans,inv", settings.data, settings.work / "a", source=str(many)),
        "WikiText-2": partial(make, "trans,inv", settings.data, settings.work / "b", source=str(few)),
    }
    runs = alternate(settings.repeat, *jobs.values())
    report = Report("make --t trans,inv by number of types", ("text", "CPU s", "M words", "M words / CPU s"))
    speeds = []
    for name, found in zip(jobs, runs, strict=True):
        words = tokens(found[0])
        cpu, speed = spread(found), spread(found, lambda usage, words=words: words / usage.cpu / 1e6)
        report.row(name, cpu.text(), f"{words / 1e6:.2f}", speed.text())
        speeds.append(report.figure(f"{name}: M words a CPU second", speed))
    holds = speeds[0].median >= _LIMIT if n_types == _TYPES else None
    report.claim(f"at least {_LIMIT} M words a CPU second", speeds[0].text(), holds)
    return report


def _made_up(path: Path, n_types: int) -> Path:
    draw = random.Random(1)
    types: dict[str, None] = {}
    while len(types) < n_types:
        types["".join(draw.choices(ascii_lowercase, k=draw.randint(4, 10)))] = None
    words = [*types, *draw.choices(list(types), k=n_types)]
    draw.shuffle(words)
    lines = (" ".join(words[i : i + 25]) for i in range(0, len(words), 25))
    path.write_text("".join(f"{line} .\n" for line in lines), "utf-8")
    return path
