"""Claims: an order of constituents costs at most 2 CPU seconds for 1 M words beyond `make --t identity`, with the trees
that follow it, and 300 MB.

The trees are drawn from a grammar with labels of the Penn Treebank; both commands read the same derived set of them.
"""

from __future__ import annotations

from functools import partial

from measure import Report, Settings, alternate, beyond_identity, make, tokens

_LIMIT, _MEMORY, _ROWS = 2.0, 300, 1_000  # rows for each MB of text asked for: 100,000 have 1.1 M words
_GRAMMAR = """# switch 1
S -> NP VP [0.9] | ADVP NP VP [0.1]
ADVP -> RB [1]
NP -> DT NN [0.25] | DT JJ NN [0.2] | PRP [0.15] | NNP NNP [0.15] | DT CD JJ NNS [0.05] | NP PP [0.15] | NP SBAR [0.05]
PP -> IN NP [1]
SBAR -> WHNP S [0.5] | IN S [0.5]
WHNP -> WDT [1]
# switch 2
VP -> VBZ NP [0.45] | VBZ PP [0.15] | VBZ NP PP [0.2] | VBZ SBAR [0.1] | VBP NP [0.1]
DT -> 'the' [0.6] | 'a' [0.4]
RB -> 'often' [1]
JJ -> 'old' [0.5] | 'big' [0.5]
CD -> 'two' [0.5] | 'three' [0.5]
PRP -> 'he' [0.5] | 'she' [0.5]
IN -> 'in' [0.4] | 'of' [0.4] | 'with' [0.2]
WDT -> 'that' [1]
VBZ -> 'sees' [0.5] | 'takes' [0.5]
VBP -> 'see' [1]
NN -> {NN}
NNS -> {NNS}
NNP -> {NNP}
"""
_KINDS = 1000  # of words of each open class, equally frequent


def benchmark(settings: Settings) -> Report:
    grammar = settings.work / "penn.pcfg"
    words = {
        tag: " | ".join(f"'{tag.lower()}{n}' [{1 / _KINDS}]" for n in range(_KINDS)) for tag in ("NN", "NNS", "NNP")
    }
    grammar.write_text(_GRAMMAR.format(**words), "utf-8")
    rows = max(20, int(settings.size * _ROWS))
    trees = settings.work / "trees"
    make("identity", settings.data, trees, source=f'source:pcfg="{grammar}":n={rows}')
    specs = (
        "identity",
        "inv",
        "switch:110010",
        f'switch:110010:rules="{grammar}"',
        "np:N-Num-A-D",
        "hop:edge=VP:by=tags",
    )
    out = settings.work / "out"
    runs = alternate(settings.repeat, *(partial(make, spec, settings.data, out, source=str(trees)) for spec in specs))
    n_words = tokens(runs[0][0])
    title = f"orders of constituents from derived Parquet, {n_words / 1e6:.2f} M words"
    report = Report(title, ("make --t", "CPU s", "x identity", "CPU s more for 1 M words", "peak MB"))
    names = [spec.replace(f'"{grammar}"', "FILE") for spec in specs]
    worst, largest = beyond_identity(report, names, runs, n_words, per=1)
    report.claim(f"at most {_LIMIT:.0f} CPU seconds more for 1 M words", f"{worst:.2f}", worst <= _LIMIT)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report
