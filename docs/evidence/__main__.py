"""Write the tables and figures of the study pages from the scores that lie beside them, in docs/studies/scores/.

    python docs/evidence                      write them; a test says when they are not up to date
    python docs/evidence NAME STUDY           first keep the scores NAME of a study: those that its page has

A page has a table below <!-- table: NAME --> and a figure under its file name. A cell has the mean over pre-training
seeds and its 95 % interval, all by `derivlang.compare`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from curves import curve_figure, curve_statements
from kept import PAGES, compared, contrasts, estimate, keep, means, row_of, scores, section_of, text
from outcomes import (
    BASE,
    BILINGUAL,
    CLONES,
    CONTROLS,
    CURVES,
    FACTORS,
    FIGURE_3,
    FLOORS,
    GRIDS,
    IMPOSSIBLE,
    LABORATORY,
    LANGUAGES,
    METHODS,
    OF_BASE,
    OF_BILINGUAL,
    OF_BILINGUAL_DIFFERENCES,
    OF_FLOORS,
    OF_GRIDS,
    OF_IMPOSSIBLE,
    OF_LABORATORY,
    OF_LANGUAGES,
    OF_METHODS,
    OF_SEEDS,
    RUNS,
    SCATTER,
    SEEDS,
    STARTS,
    WITH_ZERO_SHOT,
)
from scipy.stats import spearmanr, ttest_1samp

from derivlang.evaluation.report.compare import DIFFERENCE, MEAN
from derivlang.evaluation.report.compare import compared as of_section
from derivlang.evaluation.report.correlation import correlation, correlations_of
from derivlang.evaluation.report.factors import INTERACTION, Section
from derivlang.evaluation.report.figures import correlation_figure, score_figures
from derivlang.evaluation.report.frame import DELTA, SUP, ZS
from derivlang.evaluation.report.tables import ReportedScore, file_name, listed, number, p_value, scores_of, signed
from derivlang.evaluation.table import FACTOR

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_RUNS_OF_BASE = ("trans-inv.mlm", "trans.mlm", "trans-inv.align-mlm")  # without their seeds


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
        "base": means(
            BASE, OF_BASE, ("t", "objective", "control"), ("language", "objective", "control"), lambda *levels: levels
        ),
        "laboratory": means(
            LABORATORY, OF_LABORATORY, ("t", "variant"), ("language", "variant"), lambda *levels: levels
        ),
        "languages": means(
            LANGUAGES,
            OF_LANGUAGES,
            ("objective", "control", "target"),
            ("objective", "control", "language"),
            lambda *levels: levels,
            intervals=True,
        ),
        "bilingual": means(
            BILINGUAL,
            OF_BILINGUAL,
            ("objective", "control"),
            ("objective", "control"),
            lambda *levels: levels,
            intervals=True,
        ),
        "bilingual-differences": text(
            contrasts(BILINGUAL, OF_BILINGUAL_DIFFERENCES, ["align-mlm", "dict-mlm"]), ["difference"]
        ),
        "clones": means(
            CLONES,
            OF_LANGUAGES,
            ("objective", "control", "shares", "target"),
            ("objective", "control", "shares", "language"),
            lambda *levels: levels,
            intervals=True,
        ),
        "methods": means(METHODS, OF_METHODS, FACTORS, ("language", "method"), _of_methods),
        "floors": means(FLOORS, OF_FLOORS, ["run"], ["model"], lambda run: (RUNS[run],), intervals=True),
        "methods-correlations": correlations(),
        "overlap-objective-share": gap_closed(),
        "impossible": means(IMPOSSIBLE, OF_IMPOSSIBLE, ["language"], ["language"], _of_language, intervals=True),
        "impossible-differences": text([_beside(*pair) for pair in CONTROLS], ["language", "beside"]),
        **{name: means(name, OF_GRIDS, factors, factors, _of_grid, intervals=True) for name, factors in GRIDS.items()},
        **{f"{name}-differences": effects(name, factors) for name, factors in GRIDS.items()},
    }


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
                [row_of(found, MEAN, one, **levels, **{f"{FACTOR}objective": level})["value"] for level in objectives]
                for one in (outcome, "pos.accuracy.zs")
            )
            one = correlation(x, y)
            cells[language] = f"{one['rho']:+.2f} (p {p_value(one['p'])})".replace("-", "−")
        lines.append(((title,), cells))
    return text(lines, [f"ρ with zero-shot POS, over {len(objectives)} methods"])


def gap_closed() -> str:
    """Return the share of MLM's gap to SUP that ALIGN-MLM closes, with and without shared words, and the difference.

    Of each seed: (ZS of ALIGN-MLM - ZS of MLM) / (SUP of MLM - ZS of MLM), accuracy of POS.
    """
    found = compared("overlap-objective")

    def values(objective: str, overlap: str, regime: str) -> np.ndarray:
        levels = {f"{FACTOR}objective": objective, f"{FACTOR}overlap": overlap}
        return np.array(row_of(found, MEAN, f"pos.accuracy.{regime}", **levels)["values"])

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
        (METHODS, "links", "transport"): {
            file_name(by_layer, "t trans", "by-layer"): "alignment-layers-trans.svg",
            file_name(by_layer, "t trans,inv", "by-layer"): "alignment-layers-trans-inv.svg",
        },
    }
    found = {f"{CURVES}.svg": curve_figure()}
    for (name, task, metric), names in wanted.items():
        section = section_of(name, f"{task}.{metric}")
        (score,) = (one for one in all_scores(section) if (one.task, one.column.name) == (task, metric))
        for figure in score_figures(score):
            if figure.name in names:
                found[names[figure.name]] = figure.files["svg"].decode()
    section = section_of(METHODS, "alignment.heldout", "contextual.words", "pos.accuracy")
    for one in correlations_of(section, all_scores(section)).to_dict("records"):
        if one["name"] in FIGURE_3:
            found[FIGURE_3[one["name"]]] = correlation_figure(section, one).files["svg"].decode()
    section = section_of(IMPOSSIBLE, "ngrams.bits_3", "perplexity.bits")
    every = correlations_of(section, all_scores(section)).to_dict("records")
    (scatter,) = (one for one in every if one["name"] == SCATTER)
    found["impossible-languages.svg"] = correlation_figure(section, scatter).files["svg"].decode()
    return found


def all_scores(section: Section) -> list[ReportedScore]:
    """Return the scores of a section with their comparisons."""
    return scores_of(section, of_section(section))


def statements() -> dict[str, list[str]]:
    """Return what the README and the page of ALIGN-MLM say of the scale base, with its numbers, by file."""
    found = compared(BASE)

    def value(language: str, regime: str, objective: str = "mlm", control: str = "") -> float:
        levels = {f"{FACTOR}t": language, f"{FACTOR}objective": objective, f"{FACTOR}control": control}
        return float(row_of(found, MEAN, f"pos.accuracy.{regime}", **levels)["value"])

    inverted = value("trans,inv", ZS)
    delta, cost = number(value("trans", DELTA)), number(value("trans", ZS) - inverted)
    back = number(value("trans,inv", ZS, "align-mlm") - inverted)
    alone = value("trans,inv", ZS, "align-mlm:only=align", "only aligned")
    less = number(value("trans,inv", ZS, "align-mlm") - alone)
    trained, floors = (
        [number(value("trans", regime, control=one)) for regime in (ZS, SUP)] for one in ("", "untrained")
    )
    copied = number(value("trans", ZS, control="untrained, copied"))
    rows = scores(BASE).query("task == 'pos' and metric == 'accuracy' and regime == @ZS")
    spread = rows.groupby("run")["value"].std()
    mean = rows.groupby("run")["value"].mean()
    held = scores(BASE).query("task == 'alignment' and metric == 'heldout'").set_index("run")["value"]
    seeds = {run: [seed for seed in range(1, 10) if f"{run}.{seed}" in mean.index] for run in _RUNS_OF_BASE}

    def differences(one: str, other: str) -> str:
        both = [seed for seed in seeds[one] if seed in seeds[other]]
        return listed(number(mean[f"{one}.{seed}"] - mean[f"{other}.{seed}"]) for seed in both)

    costs, backs = differences("trans.mlm", "trans-inv.mlm"), differences("trans-inv.align-mlm", "trans-inv.mlm")
    own, *others = [f"trans-inv.mlm.{seed}" for seed in (2, 1, 3)]  # own: the run of the learning curves
    ratios = [_NUMBERS[one] for one in sorted(round(held[run] / held[own]) for run in others)]
    more = [_NUMBERS[one] for one in sorted(round(mean[run] - mean[own]) for run in others)]
    aligned = [listed(number(held[f"{run}.{seed}"]) for seed in seeds[run]) for run in seeds]
    gaps = scores(BASE).query("task == 'pos' and metric == 'accuracy' and regime == @SUP")
    gaps = gaps.groupby("run")["value"].mean() - mean
    by_mlm = [run for run in mean.index if run.rpartition(".")[0] in seeds]
    rank = [f"{spearmanr(held[some], gaps[some]).statistic:.2f}".replace("-", "−") for some in (by_mlm, mean.index)]
    gain = row_of(
        found, DIFFERENCE, "pos.accuracy.zs", **{f"{FACTOR}t": "trans,inv", f"{FACTOR}objective": "align-mlm"}
    )
    low, high = number(gain["low"]), number(gain["high"])
    means = f"means of {_NUMBERS[len(seeds['trans.mlm'])]} seeds"
    return {
        "README.md": [
            f"**{delta} points** ({trained[0]} % zero-shot, {trained[1]} % is the upper bound; {means})",
            f"**{cost} points more** ({costs} by seed), of which ALIGN-MLM brings **{back}** back",
            f"it has {floors[0]} % zero-shot and an upper bound of {floors[1]}",
        ],
        "docs/studies/align-mlm.md": [
            f"Δ is {delta} points",
            f"has {floors[1]} % in SUP, so labels teach most of *that*, but zero-shot it has {floors[0]} %",
            f"it has {copied} % zero-shot, as in SUP",
            f"**Inversion costs MLM {cost} points of zero-shot POS**, {costs} by seed",
            f"{aligned[0]} % of the held-out sub-words are aligned ({aligned[1]} % without inversion)",
            f"**ALIGN-MLM brings {back} points back**, {backs} by seed (95 % interval {low} to {high}",
            f"{aligned[2]} % of them are aligned",
            f"Over the {_NUMBERS[len(by_mlm)]} runs that were trained with MLM, Spearman's ρ of held-out alignment "
            f"and Δ is {rank[0]}",
            f"With the controls it is {rank[1]}",
            f"the model has {number(alone)} % zero-shot, {less} points less",
            f"differ by at most {number(spread.max())} points (standard deviation)",
            *curve_statements(),
            f"Seeds 1 and 3 end with {' to '.join(ratios)} times as many aligned sub-words as this one, and with "
            f"{' to '.join(more)} points more of ZS",
        ],
    }


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
            row = row_of(kinds[same], kind, outcome)
            holm = f" ({p_value(row['p_holm'])})" if row["p_holm"] == row["p_holm"] else ""
            cells |= {title: estimate(name, row, outcome), f"{title}: p": p_value(row["p"]) + holm}
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
        row = row_of(
            compared(IMPOSSIBLE, *outcomes, language=control), DIFFERENCE, outcome, **{f"{FACTOR}language": language}
        )
        cells[title] = estimate(IMPOSSIBLE, row, outcome).replace("*", "")  # these contrasts were not planned
        if title == "bits per word":
            cells["by seed"] = ", ".join(f"{round(value, 2) + 0.0:+.2f}".replace("-", "−") for value in row["values"])
    return (*_of_language(language), *_of_language(control)), cells


def _of_methods(language: str, objective: str, start: str, begins: str) -> tuple[str, str]:
    return language, STARTS[start] if start else f"{objective}{' from 3,500 steps' if begins else ''}"


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
