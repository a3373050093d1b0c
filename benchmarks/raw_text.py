"""Claim: splitting each distinct space-separated piece once is cheaper than spaCy's tokenizer on every line.

The text is raw: novels (`eltec-eng`, 29 MB, or its first `--size` MB). `make` reads, splits, derives and writes;
against it stands a script that calls the same tokenizer on every line and does nothing else. The words of all
lines are compared; a few may differ, where spaCy's special cases look beyond a piece. The novels are a hard case:
5.2 M pieces, of which one in 23 is new.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from measure import Report, Settings, alternate, make, ratio, script, spread, tokens


def benchmark(settings: Settings) -> Report:
    text = text_of(settings, settings.size)
    out = settings.work / "out"
    ours, lines = alternate(
        settings.repeat,
        lambda: make("trans,inv", settings.data, out, source=str(text)),
        lambda: script("spacy_lines.py", "time", text),
    )
    words = tokens(ours[0])
    megabytes = text.stat().st_size / 1e6
    report = Report(
        f"Raw text with spaCy's tokenizer, {megabytes:.0f} MB, {words / 1e6:.2f} M words",
        ("job", "CPU s", "wall s", "M words / CPU s", "M words / wall s"),
    )
    for name, runs in (("make --t trans,inv, end to end", ours), ("spaCy on every line, nothing else", lines)):
        cpu, wall = spread(runs), spread(runs, lambda usage: usage.wall)
        by_cpu = spread(runs, lambda usage: words / usage.cpu / 1e6)
        by_wall = spread(runs, lambda usage: words / usage.wall / 1e6)
        report.row(name, cpu.text(), wall.text(), by_cpu.text(), by_wall.text())
        report.figure(f"{name}: CPU s", cpu)
        report.figure(f"{name}: wall s", wall)
        report.figure(f"{name}: M words a CPU second", by_cpu)
    compared, other = map(int, script("spacy_lines.py", "compare", out / "data", text).output.split())
    report.notes.append(f"the same words in {compared - other:,} of {compared:,} lines")
    report.claim("the same words in 99.9 % of the lines", f"{other} lines differ", other <= compared / 1000)
    gain = report.figure("spaCy by line / make, CPU", ratio(lines, ours))
    report.claim("all of make takes less CPU than the tokenizer on every line", gain.text(), gain.median > 1)
    return report


def text_of(settings: Settings, size: float) -> Path:
    """The first `size` MB of the novels, to a line end, as a plain file."""
    packed = settings.data / "text" / "eltec-eng" / "eltec-eng.txt.gz"
    if not packed.exists():
        raise SystemExit("eltec-eng is missing: DIR/text/eltec-eng/eltec-eng.txt.gz in --data-dir DIR")
    file = settings.cache / f"raw-{size:g}" / "eltec-eng.txt"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".tmp")
        left = size * 1e6
        with gzip.open(packed) as text, temporary.open("wb") as out:
            for line in text:
                if left < len(line):
                    break
                left -= out.write(line)
        temporary.replace(file)
    return file
