"""Claims: `make --t trans,inv` takes at least 12 times less CPU than a batched `datasets.map`, 10 times less than a
plain Python loop; 100 MB of text, start-up included.

Both are in `plain.py`, written as a user would; `make_tuned_loops` has them tuned as far as it goes. All rows of
`document`, `source`, `tokens` and `order` are compared with those that `make` wrote. `make` writes more: the sentences'
offsets and the source's white space.
"""

from __future__ import annotations

import shutil
from functools import partial

from corpus import corpus, text_file, warm
from measure import Report, Settings, Usage, alternate, make, ratio, script, spread, tokens

_CLAIMS = {"map": 12, "loop": 10}
_NAMES = {
    "map": "batched datasets.map",
    "loop": "plain loop, pyarrow",
    "tuned-map": "tuned datasets.map",
    "tuned-loop": "tuned loop, pyarrow",
    "first": "ten lines of datasets.map",
    "polars": "ten lines of polars",
}


def benchmark(settings: Settings) -> Report:
    return against(settings, _CLAIMS)


def against(settings: Settings, claims: dict[str, int], *, same_rows: bool = True) -> Report:
    """`make` and these jobs of `plain.py` in turns; claims: how many times less CPU, 0 for none.

    same_rows: whether the jobs make the rows of `make`, which are compared then.
    """
    data = corpus(settings.size, "repeated", settings.cache, settings.data)
    warm(data)
    out = settings.work / "out"

    def plain(job: str) -> Usage:
        shutil.rmtree(settings.work / "cache", ignore_errors=True)
        return script("plain.py", job, text_file(data), settings.work / f"{job}.parquet")

    jobs = [partial(plain, job) for job in claims]
    runs = alternate(settings.repeat, lambda: make("trans,inv", data, out), *jobs)
    ours, theirs = runs[0], dict(zip(claims, runs[1:], strict=True))
    words = tokens(ours[0])
    report = Report(
        f"make --t trans,inv against loops, {words / 1e6:.1f} M words",
        ("job", "CPU s", "wall s", "M words / CPU s", "peak MB"),
    )
    for name, found in (("derivlang make", ours), *((_NAMES[job], theirs[job]) for job in claims)):
        cpu, wall = spread(found), spread(found, lambda usage: usage.wall)
        speed = spread(found, lambda usage: words / usage.cpu / 1e6)
        peak = spread(found, lambda usage: usage.peak)
        report.row(name, cpu.text(), wall.text(), speed.text(), f"{peak.median:.0f}")
        report.figure(f"{name}: CPU s", cpu)
        report.figure(f"{name}: wall s", wall)
        report.figure(f"{name}: M words a CPU second", speed)
        report.figure(f"{name}: peak MB", peak)
    for job, least in claims.items():
        if same_rows:
            rows = int(script("plain.py", "compare", out / "data", settings.work / f"{job}.parquet").output)
            equal = f"document, source, tokens and order equal derivlang's in all {rows:,} rows"
            report.notes.append(f"{_NAMES[job]}: {equal}")
        gain = report.figure(f"{job} / make, CPU", ratio(theirs[job], ours))
        holds = gain.median >= least if settings.size >= 100 and least else None
        claim = (
            f"at least {least} x less CPU than a {_NAMES[job]} on 100 MB" if least else f"less CPU than a {_NAMES[job]}"
        )
        report.claim(claim, gain.text(1), holds)
    return report
