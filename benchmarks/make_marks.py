"""Claims: a mark or a form of words (`hop`, `case`, `agree`, `lemma`, `drop`) costs at most 2 CPU seconds for 1 M words
beyond `make --t identity`, and 300 MB. Start-up taken off, each makes at least 0.5 M words per CPU second; from tags
and trees, the columns of a parse, the whole command does, start-up included.

The words are a treebank's train split, repeated and made into two sets: with all labels, and with tags and trees only.
A run reads one of them. Start-up is the cost of the same command on a set with only the first sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from measure import Report, Settings, Spread, alternate, beyond_identity, derivlang, make, rates, tokens

_LIMIT, _MEMORY, _RATE = 2, 300, 0.5
_MEGABYTES, _MEGABYTES_PARSED = 60, 90  # of CoNLL-U: some 0.8 and 1.2 M words
_HEADER = ("make --t", "CPU s", "x identity", "CPU s more for 1 M words", "peak MB")
_SPECS = (
    "identity",
    "inv",
    "hop:0",
    "hop:tokens=4",
    "hop:words=4",
    "case:nom-acc",
    "case:nom-acc:suffix=free",
    "case:erg-abs:stem=lemma",
    "agree:subj+obj",
    "lemma",
    "drop:function",
    "drop:punct",
)
_SPECS_PARSED = (
    "identity",
    "inv",
    "case:nom-acc:number=no",
    "agree:subj+obj:number=no",
    "drop:function",
    "drop:punct",
)


def benchmark(settings: Settings) -> Report:
    treebank = next((settings.data / "ud").glob("UD_English-*/*-train.conllu")).read_bytes()
    repeated, parsed = settings.work / "treebank-train.conllu", settings.work / "parsed-train.jsonl"
    repeated.write_bytes(treebank * _times(treebank, min(settings.size, _MEGABYTES)))
    rows = "".join(_parsed(treebank.decode()))
    parsed.write_text(rows * _times(treebank, min(settings.size, _MEGABYTES_PARSED)), "utf-8")
    labelled, with_trees, out = settings.work / "labelled", settings.work / "with-trees", settings.work / "out"
    first, one = settings.work / "first-train.conllu", settings.work / "one-sentence"
    first.write_bytes(treebank.partition(b"\n\n")[0] + b"\n\n")
    derivlang("make", "--t", "identity", repeated, "-o", labelled)
    derivlang("make", "--t", "identity", parsed, "-o", with_trees)
    derivlang("make", "--t", "identity", first, "-o", one)
    commands = [
        partial(make, spec, settings.data, out, source=str(source))
        for source, specs in ((labelled, _SPECS), (one, _SPECS), (with_trees, _SPECS_PARSED))
        for spec in specs
    ]
    runs = alternate(settings.repeat, *commands)
    runs, starts, of_parsed = runs[: len(_SPECS)], runs[len(_SPECS) : 2 * len(_SPECS)], runs[2 * len(_SPECS) :]
    words, n_parsed = tokens(runs[0][0]), tokens(of_parsed[0][0])
    title = (
        f"marks and forms of words: {words / 1e6:.2f} M with all labels of CoNLL-U, {n_parsed / 1e6:.2f} M with a parse"
    )
    report = Report(title, (*_HEADER, "M words / CPU s*"))
    speeds = rates(runs, starts, words)
    worst, largest = beyond_identity(report, _SPECS, runs, words, 1, speeds)
    names = [f"{spec}, of a parse" for spec in _SPECS_PARSED]
    whole = [Spread(tuple(n_parsed / 1e6 / run.cpu for run in found)) for found in of_parsed]
    worst_parsed, largest_parsed = beyond_identity(report, names, of_parsed, n_parsed, 1, whole)
    worst, largest = max(worst, worst_parsed), max(largest, largest_parsed)
    report.notes.append("* start-up taken off with all labels, included of a parse")
    slowest, rate = (min(speed.median for speed in some) for some in (speeds, whole))
    report.claim(f"at most {_LIMIT} CPU seconds more for 1 M words", f"{worst:.2f}", worst <= _LIMIT)
    decided = settings.size >= _MEGABYTES_PARSED
    report.claim(
        f"at least {_RATE} M words per CPU second with all labels, start-up taken off",
        f"{slowest:.2f}",
        slowest >= _RATE if decided else None,
    )
    report.claim(
        f"at least {_RATE} M words per CPU second of a parse, start-up included",
        f"{rate:.2f}",
        rate >= _RATE if decided else None,
    )
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report


def _times(treebank: bytes, megabytes: float) -> int:
    return max(1, round(megabytes * 1e6 / len(treebank)))


def _parsed(treebank: str) -> Iterator[str]:
    """Yield the sentences of CoNLL-U as JSON lines with the columns of a parse."""
    for sentence in treebank.strip().split("\n\n"):
        words = [fields for line in sentence.split("\n") if (fields := line.split("\t"))[0].isdigit()]
        columns = {"tokens": 1, "upos": 3, "head": 6, "deprel": 7}
        row: dict[str, list[str | int]] = {name: [word[at] for word in words] for name, at in columns.items()}
        row["head"] = [int(head) for head in row["head"]]
        yield json.dumps(row, ensure_ascii=False) + "\n"
