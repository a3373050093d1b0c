"""Claim: an order of words costs at most 1.5 CPU seconds for 5 M words beyond `make --t identity` (aim 1), and 300 MB.

What is counted is the whole difference to the source itself: computing the order, gathering words and writing it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from corpus import corpus, text_file, warm
from measure import Report, Settings, alternate, beyond_identity, make, tokens

_WORDS, _LIMIT, _AIM, _MEMORY = 5, 1.5, 1, 300
_SIZE = 40  # MB of text, 8 M words; less of less
_SPECS = (
    "inv",
    "inv:local=2",
    "inv:from=random:mark=R",
    "shuffle",
    "shuffle:by=length",
    "shuffle:local=3",
    "shuffle:local=3:by=window:rng=numpy",
    "shuffle:rng=numpy",
    "shuffle:blocks=2",
    "shuffle:derange=yes",
    "shuffle:rate=0.25",
    "shuffle:rate=0.25:how=swaps",
    "flip:0.3",
    "mallows:0.4",
    "mallows:0.4:by=sentence",
    "stride:2",
    "exchange:0-3",
)


def benchmark(settings: Settings) -> Report:
    data = corpus(min(settings.size, _SIZE), "repeated", settings.cache, settings.data)
    warm(data)
    out = settings.work / "out"
    counts: Counter[str] = Counter()
    with text_file(data).open(encoding="utf-8") as lines:  # read whole, it would count as memory of each command
        for line in lines:
            counts.update(line.split())
    listed = settings.work / "counts.tsv"
    listed.write_text("".join(f"{word}\t{count}\n" for word, count in counts.items()), "utf-8")
    specs = {"identity": "identity", **{spec: spec for spec in _SPECS}, "sort:counts.tsv": f"sort:{listed}"}
    runs = alternate(settings.repeat, *(partial(make, spec, data, out) for spec in specs.values()))
    words = tokens(runs[0][0])
    title = f"orders of words beside the source itself, {words / 1e6:.1f} M words"
    report = Report(title, ("make --t", "CPU s", "x identity", "CPU s more for 5 M words", "peak MB"))
    worst, largest = beyond_identity(report, list(specs), runs, words, per=_WORDS)
    whole = words >= 8e6
    limit = f"at most {_LIMIT} CPU seconds more for 5 M words (aim {_AIM})"
    report.claim(limit, f"{worst:.2f}", worst <= _LIMIT if whole else None)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY if whole else None)
    return report
