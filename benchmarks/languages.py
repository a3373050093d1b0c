"""Claim: with shares for ten languages, training reads at least 0.95 × the sub-words per CPU second of two languages.

Every language is the same text of 2 M words in an order of its own, so both runs have the same vocabulary and model.
A short run is subtracted from a long one, which leaves the cost of the steps, without start-up, encoding and
checkpoint. The benchmark also counts the rows of each language: after no step may one be more than one row away from
its share.

    python languages.py shares TEXT DATA STEPS     most rows of a language away from its share, over all steps
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path

from measure import Report, Settings, Spread, Usage, alternate, derivlang, script

_LEAST = 0.95
_STEPS = 2_000  # of 100 MB; fewer of less
_FEW = 20
_COUNTED = 20_000  # steps whose rows are counted
_NUMBERS = (2, 10)
_TRAINED = ("--model", "tiny", "--objective", "mlm", "--vocab-size", "400", "--threads", "1")


def benchmark(settings: Settings) -> Report:
    few = max(10, min(_FEW, round(_FEW * settings.size / 100)))  # every language has a row
    steps = max(2, min(_STEPS, round(_STEPS * settings.size / 100)))
    text = settings.data / "text" / "wikitext-2" / "wiki.train.tokens"
    for number in _NUMBERS:  # the text is encoded once
        _train(settings, text, number, few)
    jobs = [partial(_train, settings, text, number, count) for number in _NUMBERS for count in (few, few + steps)]
    runs = alternate(settings.repeat, *jobs)
    report = Report(f"Training with shares, {steps} steps", ("languages", "sub-words / CPU s", "rows off at most"))
    found = {}
    for at, number in enumerate(_NUMBERS):
        short, long = runs[2 * at : 2 * at + 2]
        pairs = zip(short, long, strict=True)
        rates = tuple((float(b.output) - float(a.output)) / max(b.cpu - a.cpu, 1e-9) for a, b in pairs)
        found[number] = report.figure(f"{number} languages: sub-words / CPU s", Spread(rates))
        counted = max(2, min(_COUNTED, round(_COUNTED * settings.size / 100)))
        asked = "shares", str(number), text, settings.work / "data", str(counted)
        off = float(script("languages.py", *asked).output.splitlines()[-1])
        report.row(str(number), f"{found[number].median:,.0f}", f"{off:.3f}")
    report.claim(f"a language is at most one row away from its share in {counted:,} steps", f"{off:.3f}", off <= 1)
    both = zip(found[10].values, found[2].values, strict=True)
    times = report.figure("10 languages / 2 languages", Spread(tuple(ten / two for ten, two in both)))
    holds = times.median >= _LEAST if steps == _STEPS else None
    report.claim(f"at least {_LEAST} × the sub-words per CPU second", times.text(), holds)
    return report


def _languages(number: int, text: str | Path) -> list[str]:
    """The source with a share of 19 % or a half, and orders with equal shares of the rest."""
    first = "1/2" if number == 2 else "19/100"
    other = "1/2" if number == 2 else "9/100"
    orders = (f"l{seed}=t:perm:seed={seed} share:{other}" for seed in range(1, number))
    return [f"en=text:'{text}' share:{first}", *orders]


def _train(settings: Settings, text: Path, number: int, steps: int) -> Usage:
    """A run of some steps; its output is the number of sub-words that it has read."""
    out = settings.work / f"{number}-{steps}"
    shutil.rmtree(out, ignore_errors=True)
    languages = [word for one in _languages(number, text) for word in ("--language", one)]
    usage = derivlang(
        "pretrain", *languages, "--words", "space", *_TRAINED, "--steps", str(steps),
        "--data", settings.work / "data", "-o", out,
    )  # fmt: skip
    tokens = json.loads((out / "run.json").read_text("utf-8"))["tokens"]
    return Usage(usage.wall, usage.user, usage.system, usage.peak, str(tokens))


def _most_off(number: int, text: str, data: str, steps: int) -> float:
    """The most rows by which a language is away from its share after a step."""
    import numpy as np

    from derivlang.commands.pretrain import Pretrain
    from derivlang.core.arrays import offsets_of
    from derivlang.training.run import prepare
    from derivlang.training.streams.packed import PackedRows

    asked = {"language": _languages(number, text), "words": "space", "model": "tiny", "vocab_size": 400, "steps": steps}
    plan = Pretrain.of({**asked, "data": Path(data), "out": Path(data) / "none", "threads": 1}).planned()
    texts = prepare(plan).texts[0]
    source, per_step = PackedRows([texts] * number, plan.settings.asked), plan.settings.batch_size
    offsets = offsets_of(np.full(steps, per_step))
    rows = source.numbers("rows", plan.settings.seed, range(steps), 0, offsets)
    language = np.searchsorted(source.bounds, rows, "right") - 1
    counts = (language.reshape(steps, per_step)[:, :, None] == np.arange(number)).sum(axis=1).cumsum(axis=0)
    shares = np.array([float(one.shares[0]) for one in plan.settings.asked])
    return float(abs(counts - per_step * np.arange(1, steps + 1)[:, None] * shares).max())


if __name__ == "__main__":
    print(_most_off(int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])))
