"""Claims: a mark or a form of words (`hop`, `case`, `agree`, `lemma`, `drop`) runs from labelled Parquet to derived
Parquet at 0.5 M words a CPU second and takes at most 300 MB.

The words are a treebank's train split (UD English-EWT), repeated to a million words and made into a set without a
change, so that a run reads what is parsed. The commands are run in turns, each in a process of its own, whose start is
counted in.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from measure import Report, Settings, alternate, derivlang, make, ratio, spread, tokens

_SPEED, _MEMORY = 0.5, 300
_BYTES = 60_000_000  # of CoNLL-U: 1 M words
_SPECS = (
    "hop:0",
    "hop:tokens=4",
    "hop:words=4",
    "case:nom-acc",
    "case:nom-acc:suffix=free",
    "case:erg-abs:stem=lemma",
    "agree:subj+obj",
    "lemma",
    "drop:function",
    "drop:punct",
)


def benchmark(settings: Settings) -> Report:
    source = _labelled(settings)
    commands = [
        partial(make, spec, settings.data, settings.work / "out", source=str(source)) for spec in ("identity", *_SPECS)
    ]
    identity, *runs = alternate(settings.repeat, *commands)
    words = tokens(identity[0])
    title = f"marks and forms of words from labelled Parquet, {words / 1e6:.2f} M words"
    report = Report(title, ("make --t", "CPU s", "x identity", "M words / CPU s", "peak MB"))
    slowest, largest = float("inf"), 0.0
    for spec, found in zip(("identity", *_SPECS), (identity, *runs), strict=True):
        speed = spread(found, lambda usage: words / usage.cpu / 1e6)
        peak = spread(found, lambda usage: usage.peak)
        times = report.figure(f"{spec}: x identity", ratio(found, identity))
        report.row(spec, spread(found).text(), times.text(), speed.text(), peak.text(0))
        if spec in _SPECS:
            slowest, largest = min(slowest, speed.median), max(largest, peak.median)
    report.claim(f"at least {_SPEED} M words a CPU second", f"{slowest:.2f}", slowest >= _SPEED)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report


def _labelled(settings: Settings) -> Path:
    """The treebank, repeated, as a derived set that is its source."""
    treebank = next((settings.data / "ud").glob("UD_English-*/*-train.conllu")).read_bytes()
    repeated = settings.work / "treebank-train.conllu"
    size = min(settings.size * 1_000_000, _BYTES)
    repeated.write_bytes(treebank * max(1, round(size / len(treebank))))
    folder = settings.work / "labelled"
    derivlang("make", "--t", "identity", str(repeated), "-o", str(folder))
    return folder
