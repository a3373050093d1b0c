"""Claim: encoding a corpus by its types costs at least 10 x less CPU than `encode_batch` on its text, for the same ids.

Both read the file, on one thread, and end with the ids in numpy. `encode_batch` gets a thousand lines at once, with the
same tokenizer, and again with one whose special tokens are found only by the library (no rule for whole words: the
same ids on this text; claimed only of the larger text). Two texts: WikiText-2's train split as it is, and one that
grows from it in types as a real one does; the tokenizer of each has 40,000 entries of its own words. Not the command
line but Python functions are timed, in a process each. Loading the tokenizer is the same work in both; the ratio is
given without and with it.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

from corpus import corpus, text_file, warm
from measure import Report, Settings, Spread, alternate, derivlang, script

_TIMES = 10
_SMALLEST, _LARGEST = 10, 50  # MB: WikiText-2; encode_batch takes half a minute for the other
_WAYS = ("types", "encode_batch", "encode_batch, no rule")


def benchmark(settings: Settings) -> Report:
    os.environ.update(
        RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
    )
    report = Report(
        "Encoding, one thread",
        ("text", "way", "CPU s", "loading", "M words / s", "peak MB", "to types", "with loading"),
    )
    for size in dict.fromkeys(min(settings.size, size) for size in (_SMALLEST, _LARGEST)):
        _text(report, settings, size)
    return report


def _text(report: Report, settings: Settings, size: float) -> None:
    """The rows and claims of a text of some `size` MB."""
    data = corpus(size, "grown", settings.cache, settings.data)
    warm(data)
    tokenizer = settings.work / f"tokenizer-{size}"
    entries = "40000" if size >= _SMALLEST else "400"
    train = ("tokenizer", "train", "wikitext103", "--data-dir", data, "--vocab-size", entries, "-o", tokenizer)
    trained = derivlang(*train)
    jobs = (partial(script, "encoding.py", way, tokenizer, text_file(data)) for way in _WAYS)
    runs = alternate(settings.repeat, *jobs)
    found = [[json.loads(usage.output) for usage in part] for part in runs]
    words, types = found[0][0]["words"], found[0][0]["types"]
    name = f"{text_file(data).stat().st_size / 1e6:.2g} MB"
    for way, part, usages in zip(_WAYS, found, runs, strict=True):
        cost = report.figure(f"{name}, {way}: CPU s", Spread(tuple(r["cpu"] for r in part)))
        load = report.figure(f"{name}, {way}: CPU s of loading", Spread(tuple(r["load"] for r in part)))
        peak = report.figure(f"{name}, {way}: peak MB", Spread(tuple(usage.peak for usage in usages)))
        pairs = list(zip(part, found[0], strict=True))
        times = Spread(tuple(r["cpu"] / ours["cpu"] for r, ours in pairs))
        loaded = Spread(tuple((r["cpu"] + r["load"]) / (ours["cpu"] + ours["load"]) for r, ours in pairs))
        speed = f"{words / cost.median / 1e6:.2f}"
        report.row(name, way, cost.text(), load.text(), speed, f"{peak.median:.0f}", times.text(), loaded.text())
        if way != "types":
            report.figure(f"{name}, {way}: times the CPU of types", times)
            report.figure(f"{name}, {way}: times the CPU of types, loading counted", loaded)
            if way == "encode_batch" or size > _SMALLEST:
                report.claim(f"{name}: at least {_TIMES} x less CPU than {way}", times.text(), times.median >= _TIMES)
    same = len({r["ids"] for part in found for r in part}) == 1
    report.claim(f"{name}: the same {found[0][0]['subwords']:,} ids", "yes" if same else "no", same)
    report.notes.append(
        f"{name}: {words:,} words, {types:,} types; training the tokenizer took {trained.cpu:.1f} CPU s, "
        f"its peak was {trained.peak:.0f} MB"
    )


def _measure(way: str, folder: Path, path: Path) -> dict[str, float | str]:
    """CPU seconds of loading and of encoding; hashing the ids, to compare them, is left out."""
    import time
    from hashlib import sha256

    import numpy as np

    from derivlang.formats import text
    from derivlang.formats.words import Splitter
    from derivlang.lexical.encoding import SubwordEncoder
    from derivlang.lexical.tokenizer import Tokenizer
    from derivlang.sources.read import text_batches

    digest = sha256()
    cpu, words, types, subwords = 0.0, 0, 0, 0
    began = time.process_time()
    tokenizer = Tokenizer.load(folder)
    if way == "types":
        encoder = SubwordEncoder(tokenizer)
        load = time.process_time() - began
        began = time.process_time()
        for batch in text_batches(text.read(path), Splitter("space")):
            encoded = encoder.batch(batch)
            cpu += time.process_time() - began
            words, subwords = words + encoded.n_words, subwords + encoded.n_subwords
            types = max(types, encoder.n_types)
            digest.update(encoded.ids.tobytes())
            began = time.process_time()
    else:
        library = tokenizer.build()
        if way != "encode_batch":
            library = _without_rule(library)
        load = time.process_time() - began
        began = time.process_time()
        with path.open(encoding="utf-8", newline="\n") as file:
            lines: list[str] = []
            for line in file:
                lines.append(line.strip())
                if len(lines) < 1000:
                    continue
                found = library.encode_batch(lines, add_special_tokens=False)
                ids = np.concatenate([np.array(encoding.ids, np.int32) for encoding in found])
                cpu += time.process_time() - began
                subwords += len(ids)
                digest.update(ids.tobytes())
                began = time.process_time()
                lines = []
            found = library.encode_batch(lines, add_special_tokens=False)
            for encoding in found:
                subwords += len(encoding.ids)
                digest.update(np.array(encoding.ids, np.int32).tobytes())
    cpu += time.process_time() - began
    return {"load": load, "cpu": cpu, "words": words, "types": types, "subwords": subwords, "ids": digest.hexdigest()}


def _without_rule(library):  # type: ignore[no-untyped-def]
    """The tokenizer without its normalizer: special tokens are found anywhere."""
    from tokenizers import Tokenizer

    content = json.loads(library.to_str())
    content["normalizer"] = None
    for token in content["added_tokens"]:
        token["normalized"] = False
    return Tokenizer.from_str(json.dumps(content))


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
