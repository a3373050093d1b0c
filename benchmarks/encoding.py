"""Claim: encoding a corpus by its types costs at least 10 x less CPU than `encode_batch` on its text, for the same ids.

Both read the file, on one thread, and end with the ids in numpy. `encode_batch` gets a thousand lines at once, with the
same tokenizer, and again with one whose special tokens are found by the library alone (no rule for whole words: the
same ids on this text). The text grows in types as a real one does; the tokenizer has 40,000 entries of its own words.
Not the command line but Python functions are timed, in a process each; loading the tokenizer is counted.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from corpus import corpus, text_file, warm
from measure import HERE, Report, Settings, Spread, Usage, alternate, derivlang, run

_TIMES = 10
_LARGEST = 50  # MB: encode_batch takes half a minute for them
_WAYS = ("types", "encode_batch", "encode_batch, no rule")


def benchmark(settings: Settings) -> Report:
    os.environ.update(
        RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
    )
    data = corpus(min(settings.size, _LARGEST), "grown", settings.cache, settings.data)
    warm(data)
    tokenizer = settings.work / "tokenizer"
    trained = derivlang("tokenizer", "train", "wikitext103", "--data-dir", data, "-o", tokenizer)
    runs = alternate(settings.repeat, *(lambda way=way: _run(way, tokenizer, text_file(data)) for way in _WAYS))  # type: ignore[misc]
    found = [[json.loads(usage.output) for usage in part] for part in runs]
    words, types = found[0][0]["words"], found[0][0]["types"]
    report = Report(
        f"Encoding {words:,} words ({types:,} types, {text_file(data).stat().st_size / 1e6:.0f} MB), one thread",
        ("way", "CPU s", "M words / s", "peak MB", "to types"),
    )
    for way, part, usages in zip(_WAYS, found, runs, strict=True):
        cost = report.figure(f"{way}: CPU s", Spread(tuple(r["cpu"] for r in part)))
        peak = report.figure(f"{way}: peak MB", Spread(tuple(usage.peak for usage in usages)))
        times = Spread(tuple(r["cpu"] / ours["cpu"] for r, ours in zip(part, found[0], strict=True)))
        report.row(way, cost.text(), f"{words / cost.median / 1e6:.2f}", f"{peak.median:.0f}", times.text())
        if way != "types":
            report.figure(f"{way}: times the CPU of types", times)
            report.claim(f"at least {_TIMES} x less CPU than {way}", times.text(), times.median >= _TIMES)
    same = len({r["ids"] for part in found for r in part}) == 1
    report.claim(f"the same {found[0][0]['subwords']:,} ids", "yes" if same else "no", same)
    report.notes.append(f"training the tokenizer took {trained.cpu:.1f} CPU s, its peak was {trained.peak:.0f} MB")
    return report


def _run(way: str, tokenizer: Path, text: Path) -> Usage:
    return run([sys.executable, str(HERE / "encoding.py"), way, str(tokenizer), str(text)])


def _measure(way: str, folder: Path, path: Path) -> dict[str, float | str]:
    """CPU seconds; hashing the ids, to compare them, is left out."""
    import time
    from hashlib import sha256

    import numpy as np

    from derivlang.formats import text
    from derivlang.formats.words import Splitter
    from derivlang.lexical.encoding import Encoder
    from derivlang.lexical.tokenizer import Tokenizer

    digest = sha256()
    cpu, words, types, subwords = 0.0, 0, 0, 0
    began = time.process_time()
    tokenizer = Tokenizer.load(folder)
    if way == "types":
        encoder = Encoder(tokenizer)
        for batch in text.read(path, Splitter("space")):
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
    return {"cpu": cpu, "words": words, "types": types, "subwords": subwords, "ids": digest.hexdigest()}


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
