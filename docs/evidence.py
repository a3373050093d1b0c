"""Write the tables and figures of the study pages from the scores that lie beside them, in docs/studies/scores/.

    python docs/evidence.py                      write them; a test says when they are not up to date
    python docs/evidence.py NAME STUDY           first keep the scores NAME of a study: those that its page has

A page has a table below <!-- table: NAME --> and a figure under its file name. A cell has the mean over pre-training
seeds and its 95 % interval, all by `derivlang.compare`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

import derivlang
from derivlang.evaluation.report.cells import MEAN, Table, estimate_cell, file_name, number, p_value, signed
from derivlang.evaluation.report.compare import DIFFERENCE, is_whole
from derivlang.evaluation.report.compare import compared as of_section
from derivlang.evaluation.report.correlation import correlation
from derivlang.evaluation.report.drawing import GREY, INK
from derivlang.evaluation.report.factors import INTERACTION, Section, sections_of
from derivlang.evaluation.report.figures import correlation_figure, score_figures
from derivlang.evaluation.report.frame import DELTA, SUP, ZS, ScoreTable, with_names
from derivlang.evaluation.report.markdown import table_text
from derivlang.evaluation.report.tables import curve_table
from derivlang.evaluation.report.transfer import scatters_of
from derivlang.evaluation.table import FACTOR, SETTING, write_scores

PAGES = Path(__file__).parent / "studies"
KEPT = PAGES / "scores"

Outcome = str  # TASK.METRIC[.REGIME][@LAYER]
SEEDS = "align-mlm-seeds"
OF_SEEDS: dict[str, Outcome] = {
    "alignment, held-out": "alignment.heldout",
    "all rows": "alignment.all",
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "NER SUP": "ner.f1.sup",
    "NER ZS": "ner.f1.zs",
}
TINY = "align-mlm-tiny"
OF_TINY: dict[str, Outcome] = {
    **OF_SEEDS,
    "perplexity, source": "perplexity.perplexity.source",
    "derived": "perplexity.perplexity.derived",
}
METHODS = "alignment-methods-tiny"
OF_METHODS: dict[str, Outcome] = {
    "AER jointly, layer 1": "links.joint_transport@1",
    "layer 2": "links.joint_transport@2",
    "apart, OT, layer 2": "links.transport@2",
    "apart, argmax, layer 2": "links.argmax@2",
    "retrieval, mean": "retrieval.sentences@2",
    "<s>": "retrieval.first@2",
    "words, layer 2": "contextual.words@2",
    "embeddings": "alignment.heldout",
    "POS SUP": "pos.accuracy.sup",
    "ZS": "pos.accuracy.zs",
    "Δ": "pos.accuracy.delta",
}
FACTORS = ("t", "objective", "start", "from")
STARTS = {"cold": "cold start", "early": "cold start of 3,500 steps"}
TLM, MIXED, ALIGN = "tlm:reset=no", "xlm-align:pairs=2:start=1500", "xlm-align:pairs=2"
PPA = "ppa:pairs=2:queue=2000:momentum=0.99:shortest=1"
HALVES = "deshpande-halves"
GRIDS = {  # study -> its factors, as the lines of its tables have them
    "align-mlm-parallel": ("parallel", "objective"),
    "align-mlm-overlap": ("overlap",),
    "overlap-objective": ("overlap", "objective"),
    HALVES: ("halves", "objective"),
}
OF_GRIDS: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "POS Δ": "pos.accuracy.delta",
    "NER SUP": "ner.f1.sup",
    "NER ZS": "ner.f1.zs",
    "alignment, held-out": "alignment.heldout",
    "words, layer 2": "contextual.words@2",
}
FLOORS = "floors"
OF_FLOORS: dict[str, Outcome] = {
    "POS SUP": "pos.accuracy.sup",
    "POS ZS": "pos.accuracy.zs",
    "most frequent tag": "pos.accuracy.chance",
    "alignment, all rows": "alignment.all",
    "held-out": "alignment.heldout",
    "words, layer 2": "contextual.words@2",
}
RUNS = {
    "random": "random weights",
    "alignment-alone": "only alignment, 100 steps",
    "mlm-300": "mlm, 300 steps",
    "align-mlm-300": "align-mlm, 300 steps",
}
WITH_ZERO_SHOT = {  # title of a measure -> its outcome: correlated with zero-shot POS
    "alignment of embeddings, held-out": "alignment.heldout",
    "words in context, layer 2": "contextual.words@2",
    "AER of states, argmax, layer 2": "links.argmax@2",
    "AER of states, OT, layer 2": "links.transport@2",
    "retrieval of sentences, layer 2": "retrieval.sentences@2",
}
IMPOSSIBLE = "impossible-kallini"
OF_IMPOSSIBLE: dict[str, Outcome] = {
    "bits per word": "perplexity.bits.derived",
    "5-grams": "ngrams.bits_5.derived",
    "3-grams": "ngrams.bits_3.derived",
    "POS": "pos.accuracy.sup",
    "UAS": "dep.uas.sup",
    "minimal pairs": "blimp:demo.accuracy.derived",
}
CURVES = "impossible-curves"
SCATTER = f"{file_name('ngrams', 'bits_3')}-{file_name('perplexity', 'bits')}-correlation"
_TRANSFER = f"{file_name('pos', 'accuracy')}-correlation"
FIGURE_3 = {
    f"{file_name('alignment', 'heldout')}-{_TRANSFER}": "alignment-embeddings-transfer.svg",
    f"{file_name('contextual', 'words')}-{_TRANSFER}": "alignment-words-transfer.svg",
}
REVERSED = "inv:from=random:mark=🅁:final=move"
CONTROLS = [  # (language, the one that it is compared with)
    ("inv:from=end:mark=🅁:final=move", "identity"),
    ("inv:mark=🅁:final=move", "inv:from=end:mark=🅁:final=move"),
    (REVERSED, "inv:from=end:mark=🅁:final=move"),
    (REVERSED, "mallows:0.102:final=move"),
    (REVERSED, "mallows:2.056:final=move"),
    ("inv:mark=🅁:final=move", "mallows:3.035:final=move"),
    ("hop:0", "identity"),
    ("hop:tokens=4", "hop:0"),
    ("hop:words=4", "hop:tokens=4"),
    ("shuffle:by=length:final=move:seed=21", "shuffle:final=move"),
    ("shuffle:local=10:by=window:final=move", "shuffle:local=5:by=window:final=move"),
]
OF_MARKERS: dict[str, Outcome] = {
    "expected by": "regions.difference.derived",
    "marker": "regions.marker.derived",
    "word after it": "regions.after.derived",
    "other words": "regions.other.derived",
}
# (method, its control, language, title of the outcome, perhaps another beginning)
DIFFERENCES: list[tuple[str, ...]] = [
    ("weam", TLM, "trans,inv", "AER jointly, layer 1"),
    ("weam", TLM, "trans,inv", "apart, OT, layer 2"),
    ("weam", TLM, "trans", "layer 2"),
    ("weam", TLM, "trans,inv", "ZS"),
    ("weam:links=hmm", "weam", "trans", "AER jointly, layer 1"),
    ("weam:links=hmm", "weam", "trans,inv", "AER jointly, layer 1"),
    (ALIGN, MIXED, "trans", "layer 2"),
    (ALIGN, MIXED, "trans,inv", "layer 2"),
    (ALIGN, MIXED, "trans,inv", "apart, argmax, layer 2"),
    (ALIGN, MIXED, "trans", "ZS"),
    (f"{ALIGN}:labels=gold", ALIGN, "trans", "layer 2"),
    (f"{ALIGN}:labels=gold", ALIGN, "trans,inv", "layer 2"),
    (PPA, TLM, "trans", "<s>"),
    (PPA, TLM, "trans,inv", "<s>"),
    (PPA, TLM, "trans", "ZS"),
    (PPA, TLM, "trans,inv", "ZS"),
    (TLM, "mlm", "trans", "layer 2"),
    (TLM, "mlm", "trans,inv", "layer 2"),
    (TLM, "mlm", "trans,inv", "layer 2", "plateau"),
    ("align-mlm", "mlm", "trans", "ZS"),
    ("align-mlm", "mlm", "trans,inv", "ZS"),
]
BY_LAYER = ["links.transport@0", "links.transport@1"]  # besides the last one, for the figure
# Scores -> what is kept of them.
OUTCOMES: dict[str, Sequence[Outcome]] = {
    SEEDS: list(OF_SEEDS.values()),
    TINY: list(OF_TINY.values()),
    METHODS: [*OF_METHODS.values(), *BY_LAYER],
    IMPOSSIBLE: [*OF_IMPOSSIBLE.values(), *OF_MARKERS.values()],
    CURVES: [OF_IMPOSSIBLE["bits per word"]],
    FLOORS: list(OF_FLOORS.values()),
    **{name: list(OF_GRIDS.values()) for name in GRIDS},
}


def tables() -> dict[str, str]:
    """Return the text of each table, by its name."""
    zero_shot = {"POS": "pos.accuracy.zs", "NER": "ner.f1.zs"}
    dict_mlm = {"objective": "dict-mlm:among=all"}
    differences = [
        *contrasts(SEEDS, zero_shot, ["align-mlm", "dict-mlm:among=all", "xlm"]),
        *contrasts(SEEDS, zero_shot, ["align-mlm"], dict_mlm),
    ]
    return {
        "five-seeds": means(SEEDS, OF_SEEDS, ["objective"], ["objective"], lambda *levels: levels, intervals=True),
        "five-seeds-differences": text(differences, ["difference, zero-shot"]),
        "half-hour": means(TINY, OF_TINY, ("t", "objective", "choice", "length"), ("language", "objective"), _of_tiny),
        "methods": means(METHODS, OF_METHODS, FACTORS, ("language", "method"), _of_methods),
        "floors": means(FLOORS, OF_FLOORS, ["run"], ["model"], lambda run: (RUNS[run],), intervals=True),
        "methods-correlations": correlations(),
        "overlap-objective-share": gap_closed(),
        "methods-differences": text([_difference(*one) for one in DIFFERENCES], ["difference", "language", "score"]),
        "impossible": means(IMPOSSIBLE, OF_IMPOSSIBLE, ["language"], ["language"], _of_language, intervals=True),
        "markers": means(IMPOSSIBLE, OF_MARKERS, ["language"], ["language"], _of_language, intervals=True),
        "impossible-curves": curves(),
        "impossible-differences": text([_beside(*pair) for pair in CONTROLS], ["language", "beside"]),
        **{name: means(name, OF_GRIDS, factors, factors, _of_grid, intervals=True) for name, factors in GRIDS.items()},
        **{f"{name}-differences": effects(name, factors) for name, factors in GRIDS.items()},
    }


def curves() -> str:
    """Return the bits per word of impossible languages over steps."""
    section = section_of(CURVES)
    table = curve_table(section, of_section(section), "perplexity", "bits")
    assert table is not None
    return table_text(table).replace(", n=3", "")  # the page says it once


def correlations() -> str:
    """Return Spearman's correlations of measures with zero-shot POS, over the methods that began alike, by language."""
    found = compared(METHODS)
    objectives = sorted(set(found[f"{FACTOR}objective"].dropna()))
    lines = []
    for title, outcome in WITH_ZERO_SHOT.items():
        cells = {}
        for language in ("trans", "trans,inv"):
            levels = {f"{FACTOR}t": language, f"{FACTOR}from": "", f"{FACTOR}start": ""}
            x, y = (
                [_row(found, MEAN, one, **levels, **{f"{FACTOR}objective": level})["value"] for level in objectives]
                for one in (outcome, "pos.accuracy.zs")
            )
            one = correlation(x, y)
            assert one.rho is not None
            assert one.p is not None
            cells[language] = f"{one.rho:+.2f} (p {p_value(one.p)})".replace("-", "−")
        lines.append(((title,), cells))
    return text(lines, [f"ρ with zero-shot POS, over {len(objectives)} methods"])


def gap_closed() -> str:
    """Return the share of MLM's gap to SUP that ALIGN-MLM closes, with and without shared words, and the difference.

    Of each seed: (ZS of ALIGN-MLM - ZS of MLM) / (SUP of MLM - ZS of MLM), accuracy of POS.
    """
    found = compared("overlap-objective")

    def values(objective: str, overlap: str, regime: str) -> np.ndarray:
        levels = {f"{FACTOR}objective": objective, f"{FACTOR}overlap": overlap}
        return np.array(_row(found, MEAN, f"pos.accuracy.{regime}", **levels)["values"])

    shares = {}
    for overlap in ("0", "50"):
        start = values("mlm", overlap, ZS)
        shares[overlap] = 100 * (values("align-mlm", overlap, ZS) - start) / (values("mlm", overlap, SUP) - start)
    shares["50 − 0"] = shares["50"] - shares["0"]
    p = p_value(float(ttest_1samp(shares["50 − 0"], 0).pvalue))
    lines = []
    for name, share in shares.items():
        shown = signed if name == "50 − 0" else number
        cells = {"gap closed": shown(share.mean()), "by seed": ", ".join(map(shown, share))}
        lines.append(((name,), {**cells, "p": p if name == "50 − 0" else ""}))
    return text(lines, ["overlap"])


def figures() -> dict[str, str]:
    """Return the content of each figure, by its file name."""
    by_layer = file_name("links", "transport")
    wanted = {
        (SEEDS, "pos", "accuracy"): {"pos-accuracy-zs-by-factor": "align-mlm-seeds.svg"},
        (CURVES, "perplexity", "bits"): {"perplexity-bits-derived-by-step": "impossible-curves.svg"},
        (METHODS, "links", "transport"): {
            file_name(by_layer, "t trans", "by-layer"): "alignment-layers-trans.svg",
            file_name(by_layer, "t trans,inv", "by-layer"): "alignment-layers-trans-inv.svg",
        },
    }
    found = {}
    for (name, task, metric), names in wanted.items():
        section = section_of(name, f"{task}.{metric}")
        for one in score_figures(section, of_section(section), task, metric):
            if one.name in names:
                found[names[one.name]] = one.svg.replace(INK, GREY)
    section = section_of(METHODS, "alignment.heldout", "contextual.words", "pos.accuracy")
    for one in scatters_of(section, of_section(section)):
        if one.name in FIGURE_3:
            found[FIGURE_3[one.name]] = correlation_figure(section, one).svg.replace(INK, GREY)
    section = section_of(IMPOSSIBLE, "ngrams.bits_3", "perplexity.bits")
    (scatter,) = (one for one in scatters_of(section, of_section(section)) if one.name == SCATTER)
    found["impossible-languages.svg"] = correlation_figure(section, scatter).svg.replace(INK, GREY)
    return found


def sentence() -> str:
    """Return the difference that the README names: of ALIGN-MLM from MLM, on one text, in zero-shot POS."""
    row = _row(
        compared(HALVES), DIFFERENCE, "pos.accuracy.zs", contrast="align-mlm − mlm", **{f"{FACTOR}halves": "false"}
    )
    return f"**{signed(row['value'])} points ({number(row['low'])} to {number(row['high'])})**"


def section_of(name: str, *outcomes: Outcome) -> Section:
    """Return the one section of kept scores. outcomes: as of `some_scores`."""
    (section,) = sections_of(ScoreTable.of(with_names(some_scores(name, outcomes))))
    return section


@cache
def scores(name: str) -> pd.DataFrame:
    """Return kept scores."""
    return derivlang.scores(KEPT / f"{name}.parquet")


def some_scores(name: str, outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Return kept scores of the metrics of these outcomes and of the study's primary outcome; without any, all."""
    found = scores(name)
    if not outcomes:
        return found
    metrics = {_parts(outcome)[:2] for outcome in outcomes}
    primary = {str(study.get("primary")).partition(".")[0] for study in found.attrs["studies"].values()}
    places = zip(found["task"], found["metric"], strict=True)
    return found[[(task, metric) in metrics or task in primary for task, metric in places]].reset_index(drop=True)


@cache
def compared(name: str, *outcomes: Outcome, **baseline: str) -> pd.DataFrame:
    """Return the comparisons of kept scores. outcomes: as of `some_scores`, each of which is compared by itself."""
    return derivlang.compare(some_scores(name, outcomes), baseline=baseline or None)


@cache
def columns(name: str) -> Mapping[tuple[str, str], Any]:
    """Return what is declared of the metrics of kept scores."""
    return ScoreTable.of(scores(name)).columns


def contrasts(
    name: str, outcomes: Mapping[str, Outcome], levels: Iterable[str], baseline: Mapping[str, str] | None = None
) -> list[tuple[tuple[str, ...], dict[str, str]]]:
    """Return lines of differences from the baseline, which is the study's if none is given."""
    found, lines = compared(name, *(outcomes.values() if baseline else ()), **(baseline or {})), []
    for level in levels:
        cells: dict[str, str] = {}
        contrast = ""
        for title, outcome in outcomes.items():
            row = _row(found, DIFFERENCE, outcome, **{f"{FACTOR}objective": level})
            # Of another baseline than the study's, nothing was planned.
            holm = f" ({p_value(row['p_holm'])})" if row["p_holm"] == row["p_holm"] and not baseline else ""
            cells[title] = _estimate(name, row, outcome)
            cells[f"{title}: p"] = p_value(row["p"]) + holm
            cells[f"{title}: by seed"] = ", ".join(map(signed, row["values"]))
            contrast = row["contrast"]
        lines.append(((contrast,), cells))
    return lines


def means(
    name: str,
    outcomes: Mapping[str, Outcome],
    factors: Sequence[str],
    labels: Sequence[str],
    named: Callable[..., tuple[str, ...]],
    *,
    intervals: bool = False,
) -> str:
    """Return the table of means: a line for each condition, a column for each outcome.

    named: levels of the factors -> labels of a line. intervals: whether cells have one, in place of a column of seeds.
    """
    found, lines = compared(name), []
    columns = [f"{FACTOR}{factor}" for factor in factors]
    measured = found["task"] == next(iter(outcomes.values())).partition(".")[0]  # markers are not in every language
    conditions = found.loc[(found["kind"] == MEAN) & measured, columns].fillna("").drop_duplicates()
    for levels in conditions.itertuples(index=False, name=None):
        wanted = dict(zip(columns, levels, strict=True))
        rows = {title: (_row(found, MEAN, outcome, **wanted), outcome) for title, outcome in outcomes.items()}
        cells = {title: _estimate(name, *row) if intervals else number(row[0]["value"]) for title, row in rows.items()}
        n = {row["n"] for row, _ in rows.values()}
        lines.append((named(*levels), cells if intervals else {"seeds": ", ".join(map(str, n)), **cells}))
    if name not in (IMPOSSIBLE, FLOORS, *GRIDS):  # whose lines are in the order of the file
        lines.sort(key=lambda line: (line[0][:-1], line[0][-1] not in STARTS.values()))
    return text(lines, labels)


def effects(name: str, factors: Sequence[str]) -> str:
    """Return the differences from the baselines and the interactions of a grid, each in its condition."""
    shown = {title: OF_GRIDS[title] for title in ("POS ZS", "POS Δ", "NER ZS")}
    found, lines = compared(name), []
    kinds = found[found["kind"].isin([DIFFERENCE, INTERACTION])]
    keys = ["kind", "factor", "contrast", "conditions", *(f"{FACTOR}{factor}" for factor in factors)]
    for kind, factor, contrast, n, *levels in kinds[keys].drop_duplicates().itertuples(index=False, name=None):
        named = zip(factors, levels, strict=True)
        condition = ", ".join(f"{one} {at}" for one, at in named if at == at and one not in factor.split(" × "))
        cells: dict[str, str] = {}
        same = (kinds[keys].fillna("") == pd.Series([kind, factor, contrast, n, *levels], keys).fillna("")).all(axis=1)
        for title, outcome in shown.items():
            row = _row(kinds[same], kind, outcome)
            holm = f" ({p_value(row['p_holm'])})" if row["p_holm"] == row["p_holm"] else ""
            cells |= {title: _estimate(name, row, outcome), f"{title}: p": p_value(row["p"]) + holm}
            if title == "POS ZS":
                cells[f"{title}: by seed"] = ", ".join(map(signed, row["values"]))
        lines.append(((contrast, condition if n == 1 else f"mean of {n}"), cells))
    return text(lines, ["difference", "with"])


def _of_grid(*levels: str) -> tuple[str, ...]:
    return tuple(level or "none" for level in levels)


def _of_language(spec: str) -> tuple[str]:
    """Return the paper's name of a language."""
    (study,) = scores(IMPOSSIBLE).attrs["studies"].values()
    return (study["names"]["language"][spec],)


def _beside(language: str, control: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return a line of the difference of two languages, in bits per word of the model and of 5-grams."""
    cells = {}
    outcomes = [OF_IMPOSSIBLE[title] for title in ("bits per word", "5-grams")]
    for title, outcome in zip(("bits per word", "5-grams"), outcomes, strict=True):
        row = _row(
            compared(IMPOSSIBLE, *outcomes, language=control), DIFFERENCE, outcome, **{f"{FACTOR}language": language}
        )
        cells[title] = _estimate(IMPOSSIBLE, row, outcome).replace("*", "")  # these contrasts were not planned
        if title == "bits per word":
            cells["by seed"] = ", ".join(f"{round(value, 2) + 0.0:+.2f}".replace("-", "−") for value in row["values"])
    return (*_of_language(language), *_of_language(control)), cells


def _of_methods(language: str, objective: str, start: str, begins: str) -> tuple[str, str]:
    return language, STARTS[start] if start else f"{objective}{' from 3,500 steps' if begins else ''}"


def _of_tiny(language: str, objective: str, choice: str, length: str) -> tuple[str, str]:
    return language, ", ".join(filter(None, [objective, choice, "10,500 steps" if length else ""]))


def _difference(
    method: str, control: str, language: str, title: str, begins: str = ""
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return a line of the differences between methods that began alike. begins: the level of the factor `from`."""
    outcome = OF_METHODS[title]
    found = compared(METHODS, outcome, objective=control)
    wanted = {f"{FACTOR}t": language, f"{FACTOR}objective": method, f"{FACTOR}from": begins, f"{FACTOR}start": ""}
    row = _row(found[found["conditions"] == 1], DIFFERENCE, outcome, **wanted)
    cells = {"seeds": ", ".join(map(signed, row["values"])), "mean": _estimate(METHODS, row, outcome)}
    score = f"AER jointly, {title}" if title == "layer 2" else title
    return (f"{row['contrast']}{', from 3,500 steps' if begins else ''}", language, score), cells


def text(lines: Sequence[tuple[tuple[str, ...], Mapping[str, str]]], labels: Sequence[str]) -> str:
    """Return lines of (labels, cells) as a table."""
    index = pd.MultiIndex.from_tuples([names for names, _ in lines], names=labels)
    shown = pd.DataFrame([cells for _, cells in lines], index)
    return table_text(Table("", "", shown, shown))


def _estimate(name: str, row: Mapping[str, Any], outcome: Outcome) -> str:
    """Return the cell of a report, without its number of seeds: a page says it once."""
    cell = estimate_cell(row, columns(name)[_parts(outcome)[:2]])
    return cell.removesuffix(f"n={row['n']}").rstrip(", \n")


def _row(found: pd.DataFrame, kind: str, outcome: Outcome, **wanted: str) -> dict[str, Any]:
    """Return the one row of an outcome, on the whole test set."""
    task, metric, regime, layer = _parts(outcome)
    asked = {"kind": kind, "task": task, "metric": metric, "regime": regime}
    some = is_whole(found, layer)
    for column, level in asked.items():
        some &= found[column] == level
    for column, level in wanted.items():
        some &= found[column].fillna("") == level
    (row,) = found[some].to_dict("records")
    return {str(key): value for key, value in row.items()}


def _parts(outcome: Outcome) -> tuple[str, str, str, int | None]:
    """Return (task, metric, regime, layer)."""
    names, _, layer = outcome.partition("@")
    task, metric, regime = (*names.split("."), "")[:3]
    return task, metric, regime, int(layer) if layer else None


def keep(name: str, study: Path) -> None:
    """Keep the scores of a study that its page has: of finished models, on whole test sets."""
    scores = derivlang.scores(study)
    wanted = set()
    for outcome in OUTCOMES[name]:
        task, metric, regime, layer = _parts(outcome)
        wanted |= {(task, metric, one, layer) for one in ((SUP, ZS) if regime == DELTA else (regime,))}
    places = zip(scores["task"], scores["metric"], scores["regime"], scores["layer"], strict=True)
    rows = [
        (task, metric, regime, None if layer is pd.NA else layer) in wanted for task, metric, regime, layer in places
    ]
    whole = (scores["group"] == "") & (scores["split"] != "dev")
    kept = scores[pd.Series(rows) & whole].reset_index(drop=True)
    kept = kept.drop(columns=[one for one in kept if one.startswith((FACTOR, SETTING)) and kept[one].isna().all()])
    kept.attrs = {**scores.attrs, "states": {}, "tests": {}}
    KEPT.mkdir(exist_ok=True)
    write_scores(kept, KEPT / f"{name}.parquet")


def updated(page: str, made: Mapping[str, str]) -> str:
    """Return a page with its tables as they are made."""

    def table(found: re.Match[str]) -> str:
        return f"{found[1]}\n\n{made[found[2]]}"

    return re.sub(r"(<!-- table: (\S+) -->)\n\n(?:\|.*\n)*", table, page)


def main(*arguments: str) -> None:
    """Write all pages and figures."""
    if arguments:
        keep(arguments[0], Path(arguments[1]))
    made = tables()
    for path in PAGES.glob("*.md"):
        path.write_text(updated(path.read_text("utf-8"), made), "utf-8")
    for name, content in figures().items():
        (PAGES / name).write_text(content, "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
