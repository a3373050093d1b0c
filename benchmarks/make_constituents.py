"""Claims: an order of constituents costs at most 2 CPU seconds for 1 M words beyond `make --t identity`, with the trees
that follow it, and 300 MB. Start-up taken off, each makes at least 0.5 M words per CPU second, of a derived set and of
a file of bracketed trees.

The trees are drawn from a grammar with labels of the Penn Treebank; all commands read the same ones. Start-up is what
the same command costs on one tree.
"""

from __future__ import annotations

from functools import partial

from measure import Report, Settings, alternate, beyond_identity, derivlang, make, rates, tokens

_LIMIT, _MEMORY, _RATE, _ROWS = 2.0, 300, 0.5, 1_000  # rows for each MB of text asked for: 100,000 have 1.1 M words
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
_DECIDES = 50  # MB, from which the rates are decided
_KINDS = 1000  # of words of each open class, equally frequent


def benchmark(settings: Settings) -> Report:
    grammar = settings.work / "penn.pcfg"
    words = {
        tag: " | ".join(f"'{tag.lower()}{n}' [{1 / _KINDS}]" for n in range(_KINDS)) for tag in ("NN", "NNS", "NNP")
    }
    grammar.write_text(_GRAMMAR.format(**words), "utf-8")
    rows = max(20, int(settings.size * _ROWS))
    trees, one = settings.work / "trees", settings.work / "one-tree"
    make("identity", settings.data, trees, source=f'source:pcfg="{grammar}":n={rows}')
    make("identity", settings.data, one, source=f'source:pcfg="{grammar}":n=1')
    bracketed, one_bracketed = settings.work / "trees-train.mrg", settings.work / "one-train.mrg"
    derivlang("export", trees, "--split", "train", "-o", bracketed)
    one_bracketed.write_text(bracketed.read_text("utf-8").partition("\n")[0] + "\n", "utf-8")
    specs = (
        "identity",
        "inv",
        "switch:110010",
        f'switch:110010:rules="{grammar}"',
        "np:N-Num-A-D",
        "hop:edge=VP:by=tags",
    )
    out, n = settings.work / "out", len(specs)
    sources = (trees, one, bracketed, one_bracketed)
    commands = [partial(make, spec, settings.data, out, source=str(source)) for source in sources for spec in specs]
    runs = alternate(settings.repeat, *commands)
    n_words = tokens(runs[0][0])
    title = f"orders of constituents, {n_words / 1e6:.2f} M words of a derived set or a file"
    header = ("make --t", "CPU s", "x identity", "CPU s more for 1 M words", "peak MB", "M words / CPU s*")
    report = Report(title, header)
    worst = largest = 0.0
    slowest = []
    for first, what in ((0, ""), (2 * n, ", of a bracketed file")):
        names = [spec.replace(f'"{grammar}"', "FILE") + what for spec in specs]
        found, starts = runs[first : first + n], runs[first + n : first + 2 * n]
        n_words = tokens(found[0][0])
        speeds = rates(found, starts, n_words)
        more, peak = beyond_identity(report, names, found, n_words, 1, speeds)
        worst, largest = max(worst, more), max(largest, peak)
        slowest.append(min(speed.median for speed in speeds))
    report.notes.append("* start-up taken off")
    report.claim(f"at most {_LIMIT:.0f} CPU seconds more for 1 M words", f"{worst:.2f}", worst <= _LIMIT)
    for what, rate in zip(("a derived set", "a bracketed file"), slowest, strict=True):
        claim = f"at least {_RATE} M words per CPU second of {what}, start-up taken off"
        report.claim(claim, f"{rate:.2f}", rate >= _RATE if settings.size >= _DECIDES else None)
    report.claim(f"at most {_MEMORY} MB", f"{largest:.0f}", largest <= _MEMORY)
    return report
