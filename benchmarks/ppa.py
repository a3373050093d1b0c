"""Claim: a step of `ppa` takes at most 60 CPU milliseconds on one thread, with a queue of 32,000 vectors of width 300.

Beside it a step of `tlm`, which reads the same pairs and has no contrast. The tiny model trains on the built-in `demo`
for many steps and for few; what the runs differ by is the cost of the steps, without start-up and last checkpoint.
"""

from __future__ import annotations

import shutil
from functools import partial

from measure import Report, Settings, Spread, Usage, alternate, derivlang, ratio

_LIMIT = 60
_STEPS = 200  # of 100 MB; fewer of less
_FEW = 20
_OBJECTIVES = ("ppa", "tlm")


def benchmark(settings: Settings) -> Report:
    few = max(1, min(_FEW, round(_FEW * settings.size / 100)))
    steps = max(2, min(_STEPS, round(_STEPS * settings.size / 100)))
    jobs = [partial(_train, settings, name, count) for name in _OBJECTIVES for count in (few, few + steps)]
    runs = alternate(settings.repeat, *jobs)
    report = Report(f"A step of ppa, of {steps}", ("objective", "CPU ms a step", "× the start of the run"))
    found = {}
    for at, name in enumerate(_OBJECTIVES):
        short, long = runs[2 * at : 2 * at + 2]
        found[name] = Spread(tuple(1e3 * (b.cpu - a.cpu) / steps for a, b in zip(short, long, strict=True)))
        report.figure(f"{name}: CPU ms a step", found[name])
        report.row(name, found[name].text(1), ratio(long, short).text())
    times = report.figure(
        "ppa / tlm", Spread(tuple(a / b for a, b in zip(found["ppa"].values, found["tlm"].values, strict=True)))
    )
    report.notes.append(f"a step of ppa takes {times.text()} × one of tlm")
    holds = found["ppa"].median <= _LIMIT if steps == _STEPS else None
    report.claim(f"at most {_LIMIT} CPU ms a step", found["ppa"].text(1), holds)
    return report


def _train(settings: Settings, objective: str, steps: int) -> Usage:
    out = settings.work / f"{objective}-{steps}"
    shutil.rmtree(out, ignore_errors=True)
    options = ("--model", "tiny", "--vocab-size", "400", "--threads", "1")
    return derivlang(
        "pretrain", "--source", "demo", "--t", "trans,inv", "--objective", objective,
        "--steps", str(steps), *options, "-o", out,
    )  # fmt: skip
