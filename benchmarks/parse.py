"""Claims: the bundled parser reads at least 20,000 words a CPU second on one thread, peaks below 200 MB, and loads
within 1 s of CPU.

Words come from WikiText-2's train text, read and split into sentences as `make` does, `--size` MB at most (10.8 MB
are the whole text, 2.05 M words). The process is a fresh one; its CPU time holds everything: Python's start, reading,
sentences, the model, the parse. BLAS is held to one thread.

    python parse.py FILE MB [PARSER]     one run, JSON
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from functools import partial
from pathlib import Path

from measure import Report, Settings, alternate, script, spread

_WORDS, _PEAK, _LOAD = 20_000, 200, 1.0


def benchmark(settings: Settings) -> Report:
    os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")
    text = settings.data / "text" / "wikitext-2" / "wiki.train.tokens"
    report = Report("The bundled parser on WikiText-2", ("run", "M words", "CPU s", "words / CPU s", "peak MB"))
    (runs,) = alternate(settings.repeat, partial(script, "parse.py", text, str(settings.size)))
    told = [json.loads(run.output) for run in runs]
    for run, found in zip(runs, told, strict=True):
        words, rate = f"{found['words'] / 1e6:.2f}", f"{found['words'] / run.cpu:,.0f}"
        report.row(f"{found['sentences']:,} sentences", words, f"{run.cpu:.1f}", rate, f"{run.peak:.0f}")
    n_words = told[0]["words"]
    speed = report.figure("words a CPU second", spread(runs, lambda run: n_words / run.cpu))
    peak = report.figure("peak MB", spread(runs, lambda run: run.peak))
    by_run = {id(run): found["load"] for run, found in zip(runs, told, strict=True)}
    load = report.figure("load, CPU s", spread(runs, lambda run: by_run[id(run)]))
    report.claim(f"at least {_WORDS:,} words a CPU second", speed.text(0), speed.median >= _WORDS)
    report.claim(f"peak below {_PEAK} MB", f"{peak.text(0)} MB", max(peak.values) < _PEAK)
    report.claim(f"loads within {_LOAD} s", f"{load.text()} s", max(load.values) < _LOAD)
    return report


def main(path: Path, megabytes: float, name: str = "english") -> None:
    """Parse the text; print words, sentences, a hash of the trees, and the CPU seconds of loading and of parsing."""
    from derivlang.core.batch import split_sentences
    from derivlang.formats.opening import Piece
    from derivlang.formats.text import read
    from derivlang.formats.words import Splitter
    from derivlang.parsing.registry import find_parser
    from derivlang.sources.read import text_batches

    began = time.process_time()
    parser = find_parser(name, "en")
    load = time.process_time() - began
    size = min(path.stat().st_size, int(megabytes * 1e6))
    words = sentences = 0
    parsing = 0.0
    trees = hashlib.sha256()
    for batch in text_batches(read(path, piece=Piece(0, size)), Splitter("space", "en")):
        cut = split_sentences(batch)
        began = time.process_time()
        parses = parser.parse(cut.words, cut.types, cut.sentences)
        parsing += time.process_time() - began
        for codes in (parses.upos, parses.head, parses.deprel):
            trees.update(codes.tobytes())
        words += cut.n_words
        sentences += len(cut.sentences) - 1
    found = {"words": words, "sentences": sentences, "trees": trees.hexdigest(), "load": load, "parse": parsing}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
