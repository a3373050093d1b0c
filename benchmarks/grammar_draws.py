"""The cost of drawing the orders of the heads of an English corpus.

Claims: a head costs at most 3 CPU microseconds the first time, and 0.4 if it was drawn before. Without the intervals
that `grammar/memo.py` keeps, `make --t syn:fr` costs at least 5 % more.

The heads come from UD English-EWT and English-GUM (gold trees, punctuation left out), repeated with other keys: so
the share of heads that is new falls as it does in a corpus. Not the command line but the Python class is timed, in a
process of its own (`_measure` below), on one thread.

What the intervals save is measured on WikiText-2, parsed once with the bundled parser (`--cache` keeps it): fresh
processes make the set with the intervals and without them, in turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from make_syn import parsed
from measure import HERE, Report, Settings, Spread, Usage, alternate, ratio, run, script, spread

_COLD, _WARM, _SAVED = 3.0, 0.4, 1.05
_REPEATS = 4  # of the treebanks: 2 M words


def benchmark(settings: Settings) -> Report:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, str(HERE / "grammar_draws.py"), str(settings.data)]
    runs = [json.loads(run(command).output) for _ in range(settings.repeat)]
    report = Report(
        f"Drawing orders: {runs[0]['heads']:,} heads of {runs[0]['words']:,} words, fr over en",
        ("pass", "us a head", "M words / CPU s"),
    )
    for name in ("cold", "other keys", "warm", "argmax cold", "argmax warm"):
        cost = report.figure(f"{name}: us a head", Spread(tuple(1e6 * r[name] / r["heads"] for r in runs)))
        speed = report.figure(f"{name}: M words a CPU second", Spread(tuple(r["words"] / r[name] / 1e6 for r in runs)))
        report.row(name, cost.text(), speed.text())
        limit = {"cold": _COLD, "warm": _WARM}.get(name)
        if limit is not None:
            report.claim(f"{name}: at most {limit} us a head", cost.text(), cost.median <= limit)
    report.notes.append("cold: an empty memo. other keys: the same heads, other draws. warm: the same draws again.")
    report.notes.append(f"memory of the memo: {runs[0]['memo'] / 1e6:.1f} MB")
    folder, _ = parsed(settings, "wikitext-2", settings.data / "text" / "wikitext-2" / "wiki.train.tokens")
    without, kept = alternate(settings.repeat, *(partial(script, "grammar_draws.py", folder, n) for n in _INTERVALS))
    for name in ("draws", "make"):
        costs = [spread(runs, partial(_told, name)).text() for runs in (without, kept)]
        more = report.figure(f"{name} without intervals / with", ratio(without, kept, partial(_told, name)))
        report.notes.append(f"{name}, WikiText-2: {costs[0]} CPU s without intervals, {costs[1]} with")
        if name == "make":
            report.claim(f"make without intervals: at least {_SAVED} x the CPU", more.text(), more.median >= _SAVED)
        else:
            report.notes.append(f"{name} without intervals: {more.text()} x the CPU")
    return report


_INTERVALS = ("none", "kept")


def _told(name: str, run: Usage) -> float:
    return float(json.loads(run.output)[name])


def _make(folder: Path, intervals: str) -> dict[str, float]:
    """The CPU seconds of `make --t syn:fr` from a parsed set, and of the draws in it."""
    from derivlang.engine.events import Events
    from derivlang.engine.make import make
    from derivlang.engine.options import MakeOptions
    from derivlang.grammar.memo import Memo
    from derivlang.grammar.sampler import Sampler
    from derivlang.pipeline import Pipeline
    from derivlang.sources.request import SourceRequest

    told = {"draws": 0.0}
    draw = Sampler.draw

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        found = draw(*arguments)
        told["draws"] += time.process_time() - began
        return found

    Sampler.draw = timed  # type: ignore[method-assign]
    if intervals == "none":
        Memo.add = lambda *_: None  # type: ignore[method-assign]
    with TemporaryDirectory() as work:
        began = time.process_time()
        options = MakeOptions(out=Path(work, "out"), parser=None)
        make(Pipeline.parse("syn:fr"), SourceRequest(str(folder)), options, Events())
        told["make"] = time.process_time() - began
    return told


def _measure(data: Path) -> dict[str, float]:
    import numpy as np

    from derivlang.core.keys import Draws, mix
    from derivlang.formats import conllu
    from derivlang.grammar.families import Families
    from derivlang.grammar.load import load_grammar
    from derivlang.grammar.order_model import OrderModel
    from derivlang.grammar.treebank import families_of_tables, joined

    paths = sorted((data / "ud").glob("UD_English-*/*.conllu*"))
    tables = [rows.table for path in paths for rows in conllu.read(path)]
    one, _ = families_of_tables(tables)
    words = sum(len(table["head"].combine_chunks().flatten()) for table in tables)
    several = joined(*[one] * _REPEATS)
    keys = mix(np.arange(len(several), dtype=np.uint64))
    several = Families(several.offsets, several.members, several.tokens, keys)
    others = Families(several.offsets, several.members, several.tokens, mix(keys))
    batches = [several.take(part) for part in np.array_split(np.arange(len(several)), 2 * _REPEATS)]
    other_batches = [others.take(part) for part in np.array_split(np.arange(len(several)), 2 * _REPEATS)]

    def cost(model: OrderModel, parts: list[Families]) -> float:
        began = time.process_time()
        for part in parts:
            model.draw(part, Draws("grammar_draws"))
        return time.process_time() - began

    fr, en = load_grammar("fr"), load_grammar("en")
    model, best = OrderModel(fr, en), OrderModel(fr, en, mode="argmax")
    out = {"words": words * _REPEATS, "heads": int(model.modelled(several).sum())}
    out["cold"], out["warm"] = cost(model, batches), cost(model, batches)
    out["other keys"] = cost(model, other_batches)
    out["argmax cold"], out["argmax warm"] = cost(best, batches), cost(best, batches)
    out["memo"] = model._sampler.n_bytes
    return out


if __name__ == "__main__":
    found = _make(Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 2 else _measure(Path(sys.argv[1]))
    print(json.dumps(found))
