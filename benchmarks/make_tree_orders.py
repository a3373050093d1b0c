"""Claims: an order by rule (`grammar`, `sov`, `swap`) or by counts (`syn:hi:model=…`) runs from parsed to derived
Parquet at 0.5 M words a CPU second, takes no more CPU than `syn:fr` does in a fresh process, and at most 300 MB.

The parsed words are WikiText-2's, as in `make_syn`; the commands are run in turns, each in a process of its own, whose
start is counted in.
"""

from __future__ import annotations

from functools import partial

from make_syn import parsed
from measure import Report, Settings, alternate, make, ratio, spread, tokens

_SPEED, _MEMORY = 0.5, 300
_SPECS = (
    "grammar:min-dl",
    "grammar:random=1",
    "grammar:random=1:heads=function",
    "sov:ovs",
    "sov:random",
    "swap:VERB-obj",
    "swap:ADP-NOUN",
    "swap:aux-VERB",
    "swap:cop-pred",
    "swap:NOUN-of",
    'syn:hi:model="side=0.75"',
    'syn:hi:model="pairwise=0.7"',
)


def benchmark(settings: Settings) -> Report:
    folder, _ = parsed(settings, "wikitext-2", settings.data / "text" / "wikitext-2" / "wiki.train.tokens")
    commands = [
        partial(make, spec, settings.data, settings.work / "out", source=str(folder))
        for spec in ("syn:fr", "identity", *_SPECS)
    ]
    syn, identity, *runs = alternate(settings.repeat, *commands)
    words = tokens(syn[0])
    title = f"orders by rule from parsed Parquet, {words / 1e6:.2f} M words"
    report = Report(title, ("make --t", "CPU s", "x syn:fr", "M words / CPU s", "peak MB"))
    slowest, worst, largest = float("inf"), 0.0, 0.0
    for spec, found in zip(("syn:fr", "identity", *_SPECS), (syn, identity, *runs), strict=True):
        speed = spread(found, lambda usage: words / usage.cpu / 1e6)
        peak = spread(found, lambda usage: usage.peak)
        times = report.figure(f"{spec}: x syn:fr", ratio(found, syn))
        report.row(spec, spread(found).text(), times.text(), speed.text(), peak.text(0))
        if spec in _SPECS:
            slowest, worst = min(slowest, speed.median), max(worst, times.median)
            largest = max(largest, peak.median)
    report.claim(f"at least {_SPEED} M words a CPU second", f"{slowest:.2f}", slowest >= _SPEED)
    report.claim("no more CPU than syn:fr", f"{worst:.2f} times", worst <= 1)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report
