"""Claims: a mark or a form of words (`hop`, `case`, `agree`, `lemma`, `drop`) costs at most 2 CPU seconds for 1 M words
beyond `make --t identity`, that is, 0.5 M words a CPU second, and 300 MB.

The words are a treebank's train split with all labels, repeated and made into a set; a run reads that set. What is
counted is the difference to the set itself.
"""

from __future__ import annotations

from functools import partial

from measure import Report, Settings, alternate, beyond_identity, derivlang, make, tokens

_LIMIT, _MEMORY = 2, 300
_MEGABYTES = 60  # of CoNLL-U: some 0.8 M words
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


def benchmark(settings: Settings) -> Report:
    treebank = next((settings.data / "ud").glob("UD_English-*/*-train.conllu")).read_bytes()
    repeated = settings.work / "treebank-train.conllu"
    repeated.write_bytes(treebank * max(1, round(min(settings.size, _MEGABYTES) * 1e6 / len(treebank))))
    labelled, out = settings.work / "labelled", settings.work / "out"
    derivlang("make", "--t", "identity", repeated, "-o", labelled)
    runs = alternate(
        settings.repeat, *(partial(make, spec, settings.data, out, source=str(labelled)) for spec in _SPECS)
    )
    words = tokens(runs[0][0])
    title = f"marks and forms of words beside the source itself, {words / 1e6:.2f} M words with all labels of CoNLL-U"
    report = Report(title, ("make --t", "CPU s", "x identity", "CPU s more for 1 M words", "peak MB"))
    worst, largest = beyond_identity(report, _SPECS, runs, words, per=1)
    report.claim(f"at most {_LIMIT} CPU seconds more for 1 M words", f"{worst:.2f}", worst <= _LIMIT)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report
