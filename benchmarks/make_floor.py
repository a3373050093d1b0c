"""Claim: `make --t trans,inv` costs at most 1.25 times the CPU of the floor (aim 1.1).

The floor is the same command with `--t identity`: the same reader, tokeniser, sentences, keys, columns and writer,
and no transform. Whatever is not the transforms' own is in both, so the ratio says what deriving costs.
"""

from __future__ import annotations

from corpus import corpus, warm
from measure import Report, Settings, alternate, make, ratio, spread, tokens

_LIMIT, _AIM = 1.25, 1.1


def benchmark(settings: Settings) -> Report:
    data = corpus(settings.size, "repeated", settings.cache, settings.data)
    warm(data)
    out = settings.work / "out"
    full, floor = alternate(settings.repeat, lambda: make("trans,inv", data, out), lambda: make("identity", data, out))
    words = tokens(full[0])
    report = Report(
        f"make against its floor, {words / 1e6:.1f} M words", ("make --t", "CPU s", "wall s", "M words / CPU s")
    )
    for name, runs in (("trans,inv", full), ("identity (the floor)", floor)):
        cpu, wall = spread(runs), spread(runs, lambda usage: usage.wall)
        speed = spread(runs, lambda usage: words / usage.cpu / 1e6)
        report.row(name, cpu.text(), wall.text(), speed.text())
        report.figure(f"{name}: CPU s", cpu)
        report.figure(f"{name}: wall s", wall)
        report.figure(f"{name}: M words a CPU second", speed)
    over = report.figure("ratio", ratio(full, floor))
    report.claim(f"at most {_LIMIT} x the floor's CPU (aim {_AIM})", over.text(), over.median <= _LIMIT)
    return report
