"""Print the tables of the page on alignment methods and draw its picture, from the scores of a finished study.

    python docs/alignment_methods.py OUT/report/scores.tsv docs/studies/alignment-layers.svg

The first has means over seeds of each method and language. The second has differences between two methods, paired by
seed, with the 95 % interval of their mean (derivlang/evaluation/statistics.py), in the units of the scores.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean

from derivlang.evaluation.report.drawing import finished, panels
from derivlang.evaluation.statistics import estimate

LAST = "2"  # layer of the model tiny
# Title -> (task, metric, regime, part) in scores.tsv.
COLUMNS = {
    "AER jointly, layer 1": ("links", "joint_transport", "", "1"),
    "layer 2": ("links", "joint_transport", "", LAST),
    "apart, OT, layer 2": ("links", "transport", "", LAST),
    "apart, argmax, layer 2": ("links", "argmax", "", LAST),
    "retrieval, mean": ("retrieval", "sentences", "", LAST),
    "`<s>`": ("retrieval", "first", "", LAST),
    "words, layer 2": ("contextual", "words", "", LAST),
    "embeddings": ("alignment", "heldout", "", ""),
    "POS SUP": ("pos", "accuracy", "sup", ""),
    "ZS": ("pos", "accuracy", "zs", ""),
    "Δ": ("pos", "accuracy", "delta", ""),
}
STARTS = {"cold": "cold start", "early": "cold start of 3,500 steps"}
EARLY = " from 3,500 steps"
TLM, CONTROL = "tlm:reset=no", "xlm-align:pairs=2:start=1500"
ALIGN, PPA, GOLD = (
    "xlm-align:pairs=2",
    "ppa:pairs=2:queue=2000:momentum=0.99:shortest=1",
    "xlm-align:pairs=2:labels=gold",
)
COLOURS = ("#767676", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7")
# Methods in the picture, with their names there.
SHOWN = {
    "cold start": "cold start", "mlm": "MLM", TLM: "TLM", "weam": "WEAM, gold", ALIGN: "XLM-Align", PPA: "PPA",
    "dict-tlm": "DICT-TLM", "align-mlm": "ALIGN-MLM", "xlm": "XLM", "dict-mlm:among=all": "DICT-MLM",
    "tlm": "TLM, reset", CONTROL: "MLM + TLM",
}  # fmt: skip
DIFFERENCES = [
    ("weam", TLM, "trans,inv", "AER jointly, layer 1"),
    ("weam", TLM, "trans,inv", "apart, OT, layer 2"),
    (ALIGN, CONTROL, "trans,inv", "apart, argmax, layer 2"),
    (ALIGN, CONTROL, "trans,inv", "layer 2"),
    (ALIGN, CONTROL, "trans", "layer 2"),
    (PPA, TLM, "trans", "`<s>`"),
    (PPA, TLM, "trans,inv", "`<s>`"),
    (PPA, TLM, "trans", "ZS"),
    (TLM, "mlm", "trans", "layer 2"),
    (TLM, "mlm", "trans,inv", "layer 2"),
    (TLM + EARLY, "mlm" + EARLY, "trans,inv", "layer 2"),
    ("weam", TLM, "trans", "layer 2"),
    ("weam:links=hmm", "weam", "trans", "AER jointly, layer 1"),
    ("weam:links=hmm", "weam", "trans,inv", "AER jointly, layer 1"),
    (GOLD, ALIGN, "trans", "layer 2"),
    (GOLD, ALIGN, "trans,inv", "layer 2"),
    (PPA, TLM, "trans,inv", "ZS"),
    ("align-mlm", "mlm", "trans", "ZS"),
    ("align-mlm", "mlm", "trans,inv", "ZS"),
    (ALIGN, CONTROL, "trans", "ZS"),
    ("weam", TLM, "trans,inv", "ZS"),
]


def main(path: str, picture: str | None = None) -> None:
    """Print the tables as Markdown, and write the picture."""
    scores: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    layers: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    titles = {key: title for title, key in COLUMNS.items()}
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, dialect="excel-tab"):
            if row.get("factor.length"):
                continue
            name = STARTS[start] if (start := row.get("factor.start")) else row["factor.objective"]
            if row.get("factor.from"):
                name += EARLY
            if (row["task"], row["metric"]) == ("links", "transport"):
                layers[row["factor.t"]][name][int(row["part"])].append(float(row["value"]))
            title = titles.get((row["task"], row["metric"], row["regime"], row["part"]))
            if title is not None:
                scores[row["factor.t"], name][title][int(row["seed"])] = float(row["value"])
    print(_row(["language", "method", "seeds", *COLUMNS]))
    print(_row(["---"] * 2 + ["---:"] * (len(COLUMNS) + 1)))
    for (language, method), found in sorted(
        scores.items(), key=lambda one: (one[0][0], one[0][1] not in STARTS.values())
    ):
        cells = [f"{mean(found[title].values()):.1f}" if title in found else "–" for title in COLUMNS]
        name = method if method in STARTS.values() else _code(method)
        print(_row([f"`{language}`", name, f"{len(found['ZS'])}", *cells]))
    print()
    print(_row(["difference", "language", "score", "seeds", "mean", "95 % interval"]))
    print(_row(["---"] * 4 + ["---:"] * 2))
    for method, base, language, title in DIFFERENCES:
        ours, theirs = scores[language, method][title], scores[language, base][title]
        each = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
        if each:
            found = estimate(each)
            told = "–" if found.low is None else f"{found.low:+.1f} to {found.high:+.1f}"
            score = f"AER jointly, {title}" if title == "layer 2" else title
            values = ", ".join(f"{value:+.1f}" for value in each)
            told_of = f"{_code(method)} − {_code(base)}", f"`{language}`", score, values, f"{mean(each):+.1f}", told
            print(_row(told_of).replace(" -", " −"))

    if picture is not None:
        Path(picture).write_text(_picture(layers), "utf-8")


def _picture(layers: Mapping[str, Mapping[str, Mapping[int, list[float]]]]) -> str:
    """Return the error rate by layer, apart and by optimal transport, as SVG: a panel for each language."""
    with panels(sorted(layers), "Alignment error rate by layer, sentences apart, optimal transport, %") as (
        figure,
        every,
    ):
        for axes, methods in zip(every, (layers[name] for name in sorted(layers)), strict=True):
            for number, name in enumerate(SHOWN):
                means = {layer: mean(values) for layer, values in sorted(methods.get(name, {}).items())}
                line, colour = ("o-", "s--")[number // 6], COLOURS[number % 6]
                axes.plot(list(means), list(means.values()), line, color=colour, label=SHOWN[name], markersize=4)
            axes.set(xticks=(0, 1, 2), yticks=range(0, 61, 10), ylim=(0, 60), aspect="auto", xlabel="layer")
            axes.tick_params(labelsize=7)
        figure.set_size_inches(7, 4.2)
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return finished(figure, "alignment-layers", "Alignment error rate by layer and method").file


def _code(method: str) -> str:
    """Return a method's specification as Markdown, without the code marks around what its start is."""
    spec = method.removesuffix(EARLY)
    return f"`{spec}`{method[len(spec) :]}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main(*sys.argv[1:])
