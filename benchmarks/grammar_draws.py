"""The cost of drawing the orders of the heads of an English corpus.

Claim: a head costs at most 4 CPU microseconds.

The heads come from UD English-EWT and English-GUM (gold trees, punctuation left out), repeated with other keys: so
the share of heads that is new falls as it does in a corpus. Not the command line but the Python class is timed, in a
process of its own (`_measure` below), on one thread.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from measure import HERE, Report, Settings, Spread, run

_DRAWN = 4.0
_REPEATS = 4  # of the treebanks: 2 M words


def benchmark(settings: Settings) -> Report:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, str(HERE / "grammar_draws.py"), str(settings.data)]
    runs = [json.loads(run(command).output) for _ in range(settings.repeat)]
    report = Report(
        f"Drawing orders: {runs[0]['heads']:,} heads of {runs[0]['words']:,} words, fr over en",
        ("pass", "us a head", "M words / CPU s"),
    )
    for name in ("drawn", "argmax"):
        cost = report.figure(f"{name}: us a head", Spread(tuple(1e6 * r[name] / r["heads"] for r in runs)))
        speed = report.figure(f"{name}: M words a CPU second", Spread(tuple(r["words"] / r[name] / 1e6 for r in runs)))
        report.row(name, cost.text(), speed.text())
        if name == "drawn":
            report.claim(f"at most {_DRAWN} us a head", cost.text(), cost.median <= _DRAWN)
    return report


def _measure(data: Path) -> dict[str, float]:
    import numpy as np

    from derivlang.core.keys import Draws, mix
    from derivlang.formats import conllu
    from derivlang.grammar.families import Families
    from derivlang.grammar.grammar import load_grammar
    from derivlang.grammar.order_model import OrderModel
    from derivlang.grammar.treebank import families_of_tables, joined

    paths = sorted((data / "ud").glob("UD_English-*/*.conllu*"))
    tables = [rows.table for path in paths for rows in conllu.read(path)]
    one, _ = families_of_tables(tables)
    words = sum(len(table["head"].combine_chunks().flatten()) for table in tables)
    several = joined(*[one] * _REPEATS)
    keys = mix(np.arange(len(several), dtype=np.uint64))
    several = Families(several.offsets, several.members, several.tokens, keys)
    batches = [several.take(part) for part in np.array_split(np.arange(len(several)), 2 * _REPEATS)]

    def cost(model: OrderModel) -> float:
        began = time.process_time()
        for part in batches:
            model.draw(part, Draws("grammar_draws"))
        return time.process_time() - began

    fr, en = load_grammar("fr"), load_grammar("en")
    model, best = OrderModel(fr, en), OrderModel(fr, en, mode="argmax")
    out = {"words": words * _REPEATS, "heads": int(model.modelled(several).sum())}
    out["drawn"], out["argmax"] = cost(model), cost(best)
    return out


if __name__ == "__main__":
    print(json.dumps(_measure(Path(sys.argv[1]))))
