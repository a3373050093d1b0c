"""Claim: a study of four short cells takes at most 2.6 × as long as their training steps (aim 2.2).

The cells train the tiny model on the built-in `demo`, one after the other and with one thread, and measure the
alignment of their embeddings. What is not training is loading the libraries, tokenizer, data, measures and report.
Both times are by the clock, which `run.json` has for the training steps, so that other programs slow both down.
"""

from __future__ import annotations

import json
import shutil

from measure import Report, Settings, Spread, Usage, alternate, derivlang, spread

_LIMIT, _AIM = 2.6, 2.2
_STEPS = 100  # of 100 MB; fewer of less
_STUDY = """
[study]
source = "demo"
model = "tiny"
steps = {steps}
threads = 1
[cell]
t = "trans,inv"
vocab-size = 400
[evaluate]
measure = "alignment"
[factors]
objective = ["mlm", "align-mlm"]
seed = [1, 2]
"""


def benchmark(settings: Settings) -> Report:
    steps = max(2, min(_STEPS, round(_STEPS * settings.size / 100)))
    file, out = settings.work / "short.toml", settings.work / "out"
    file.write_text(_STUDY.format(steps=steps), "utf-8")
    training: list[float] = []

    def study() -> Usage:
        shutil.rmtree(out, ignore_errors=True)
        usage = derivlang("study", file, "-o", out, "--workers", "1")
        records = [json.loads(path.read_text("utf-8")) for path in out.glob("runs/*/run.json")]
        training.append(sum(record["result"]["seconds"] for record in records))
        return usage

    (runs,) = alternate(settings.repeat, study)
    report = Report(f"A study of four cells of {steps} steps", ("", "seconds", "CPU s"))
    whole = report.figure("seconds", spread(runs, lambda usage: usage.wall))
    trained = report.figure("training seconds", Spread(tuple(training)))
    report.row("the study", whole.text(), report.figure("CPU s", spread(runs)).text())
    report.row("its training steps", trained.text(), "")
    over = Spread(tuple(usage.wall / seconds for usage, seconds in zip(runs, training, strict=True)))
    report.figure("ratio", over)
    holds = over.median <= _LIMIT if steps == _STEPS else None
    report.claim(f"at most {_LIMIT} x its training steps (aim {_AIM})", over.text(), holds)
    return report
