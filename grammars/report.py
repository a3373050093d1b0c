"""What is written about the shipped grammars: `grammars/README.md`, `docs/reference/word-order.md` and its picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import features

SVO = ("S-V-O", "S-O-V", "V-S-O", "V-O-S", "O-V-S", "O-S-V")
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
Figures = Mapping[str, Mapping[str, Any]]


def write(root: Path, figures: Figures) -> None:
    """All three, from the figures that `build.py` measured."""
    (root / "grammars" / "README.md").write_text(readme(figures), "utf-8")
    (root / "docs" / "reference" / "word-order.md").write_text(page(figures), "utf-8")
    (root / "docs" / "reference" / "word-order.svg").write_text(picture(measured(figures)), "utf-8")


def measured(figures: Figures) -> Figures:
    """The grammars that were measured since they were fitted."""
    return {name: f for name, f in figures.items() if "svo" in f}


def missing(figures: Figures) -> list[str]:
    """A paragraph that names the grammars without figures; [] if there are none."""
    names = [f"`{name}`" for name in figures if name not in measured(figures)]
    return [f"Not measured since they were fitted last, and left out below: {', '.join(names)}.", ""] if names else []


def readme(figures: Figures) -> str:
    lines = [
        "# Word-order models",
        "",
        "Grammars that ship with derivlang, fitted on Universal Dependencies treebanks whose licence allows it.",
        "This page is written by `python grammars/build.py DATA`, which fits them, too. What they do to English:",
        "[word order](../docs/reference/word-order.md). The format of the files: [grammar files](../docs/reference/files.md#grammars-name-grammar-tsv).",
        "",
        "Each file is derived from the treebanks named in it and here, by their authors and annotators",
        "(universaldependencies.org), and stands under their licence; its header says so, too. CC-BY-SA 3.0 allows",
        "an adaptation under 4.0, so a file from both may be used under CC-BY-SA 4.0.",
        "",
        *table(
            ("grammar", "language", "treebanks learnt from", "licence", "sentences", "weights", "L2", "thinned"),
            (
                (
                    f"`{n}`",
                    f["language"],
                    f["treebanks"],
                    f["licence"],
                    f"{f['sentences']:,}",
                    f"{sum(f['weights'].values()):,}",
                    ", ".join(f"{key} {value:g}" for key, value in f["l2"].items()),
                    ", ".join(f"{key} {value:g}" for key, value in f["thin"].items()) or "–",
                )
                for n, f in figures.items()
            ),
        ),
        "",
        "French: a verb head of the spoken treebanks counts a fifth of one of the written, others a twentieth; that and the",
        "penalty are chosen on Sequoia dev (only looked at, nothing of it is in the file). Elsewhere the penalty is chosen",
        "on a fifth of the heads learnt from: the least one whose bits a head are within half a per cent of the best.",
        "",
        "Thinned: each dependent of a noun head was left out with this probability (all outcomes counted, nothing drawn), so",
        "that the model leans less on which others are there, which means another thing in the trees of another language.",
        "Of 0, 0.25 and 0.5 the largest whose bits a head, on the same heads as the penalty's and without dependents left",
        "out, are within half a per cent of the best. Verbs are not: one that comes second would come first.",
        "",
        f"Of {', '.join(f'`{n}`' for n, f in figures.items() if f.get('dropped'))} each head is learnt from with its subtypes"
        " and, counted the same, without any, as trees of another",
        "language have it; relations that a head class has hardly seen are learnt from the heads of other classes:",
        "[syntax](../docs/guide/syntax.md#relations-that-two-languages-divide-differently). The other files are of a fit before"
        " these rules.",
        "Tried for `de`, `es`, `fa`, `gd`, `ja` and `tr`, the rules brought the ten word-order features nearer by at most 0.2"
        " points in the mean;",
        "held-out heads of `de` and `fa` cost more bits. Files grew by 18 to 35 %, and that of `en` is 1.05 MB of at most 1.1.",
        "",
        "## Counts",
        "",
        "`NAME.counts.tsv` has the counts for `syn:NAME:model=…`: how often a relation stands on each side of its head, and before",
        "another one ([format](../docs/reference/files.md#counts-name-counts-tsv)). They are of the same treebanks, punctuation left out, and under the",
        "same licence; for French only of the two written ones (GSD dev and PUD, 2,476 sentences).",
        "`python grammars/build.py DATA --counts` writes them, and nothing else.",
        "",
        *missing(figures),
        "## Held-out cross-entropy",
        "",
        "Bits for each head with at least one dependent and at most seven members, punctuation left out; uniform: all",
        "orders equally likely; published: the model of Galactic Dependencies (UD 1.2) for the language on the same heads,",
        "labels mapped; right: the most probable order is the observed one. All: the same with heads of up to 13 members.",
        "",
        *table(
            (
                "grammar",
                "held out",
                "heads",
                "number",
                "bits",
                "uniform",
                "published",
                "right",
                "published right",
                "all",
            ),
            held_rows(measured(figures)),
        ),
        "",
        "## Order statistics",
        "",
        "On the same held-out sentences (cross-validated ones: those learnt from): shares in the treebank, and what the",
        "model expects for the same heads, from exact probabilities.",
        "",
        *table(
            ("grammar", "clauses", "", *SVO),
            (
                row
                for n, f in measured(figures).items()
                for row in (
                    (f"`{n}`", str(f["svo"]["clauses"]), "treebank", *map(percent, f["svo"]["treebank"])),
                    ("", "", "model", *map(percent, f["svo"]["model"])),
                )
            ),
        ),
        "",
        *table(
            ("grammar", *(f"{name}: treebank / model" for name in pair_names(measured(figures)))),
            (
                (
                    f"`{n}`",
                    *(
                        f"{percent(p['treebank'])} / {percent(p['model'])} ({p['count']:,})"
                        for p in f["pairs"].values()
                    ),
                )
                for n, f in measured(figures).items()
            ),
        ),
        "",
    ]
    return "\n".join(lines)


def held_rows(figures: Figures) -> Iterable[tuple[str, ...]]:
    for name, f in figures.items():
        for key, row in f["held"].items():
            theirs = row.get("published_bits")
            yield (
                f"`{name}`",
                f["held out"],
                key,
                f"{row['heads']:,.0f}",
                f"**{row['bits']:.3f}**",
                f"{row['uniform']:.3f}",
                "–" if theirs is None else f"{theirs:.3f}",
                percent(row["right"]),
                "–" if theirs is None else percent(row["published_right"]),
                f"{row['all_bits']:.3f}",
            )


def page(figures: Figures) -> str:
    some = next(iter(measured(figures).values()))["svo"]
    lines = [
        "# Word order of the shipped grammars",
        "",
        "How near English under `syn:NAME` is to the language itself. Each cell is *in the language / in English under its",
        "grammar*, in per cent, punctuation left out, with the default settings of `syn` (5 % English mixed in). Shares under",
        "a grammar are exact probabilities, of heads with at most 14 dependents.",
        "",
        *missing(figures),
        "## Subject, verb and object",
        "",
        f"Clauses with a noun as subject and as object. English: the {some['ewt_clauses']:,} of UD English-EWT, of which",
        f"{', '.join(f'{percent(s)} are {o}' for o, s in zip(SVO, some['ewt'], strict=True) if s)}. Language: the clauses, in brackets, of its treebank.",
        "",
        "![shares of the orders of subject, verb and object](word-order.svg)",
        "",
        *table(
            ("grammar", *SVO),
            (
                (
                    f"`{n}` {f['language']} ({f['svo']['clauses']})",
                    *(
                        f"{100 * own:.1f} / {100 * english:.1f}"
                        for own, english in zip(f["svo"]["treebank"], f["svo"]["ewt_sample"], strict=True)
                    ),
                )
                for n, f in measured(figures).items()
            ),
        ),
        "",
        *features.section(figures),
    ]
    return "\n".join(lines)


def picture(figures: Figures) -> str:
    """Stacked bars, two a language: its treebank, and English under its grammar."""
    bar, gap, left, width = 9, 7, 150, 420
    height = len(figures) * (2 * bar + gap) + 46
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 20}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{left + width + 20}" height="{height}" fill="white"/>',
    ]
    for i, (order, colour) in enumerate(zip(SVO, COLOURS, strict=True)):
        x = left + i * 70
        out.append(
            f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="17">{order}</text>'
        )
    y = 30
    for f in figures.values():
        out.append(f'<text x="{left - 8}" y="{y + bar + 4}" text-anchor="end">{f["language"]}</text>')
        for key, opacity in (("treebank", 0.55), ("ewt_sample", 1)):
            x = float(left)
            for share, colour in zip(f["svo"][key], COLOURS, strict=True):
                if share > 0.0005:
                    out.append(
                        f'<rect x="{x:.1f}" y="{y}" width="{share * width:.1f}" height="{bar - 1}" fill="{colour}"'
                        f' fill-opacity="{opacity}"/>'
                    )
                x += share * width
            y += bar
        y += gap
    out.append(
        f'<text x="{left}" y="{y + 8}">pale: the treebank of the language; full: English under its grammar</text>'
    )
    return "\n".join([*out, "</svg>", ""])


def pair_names(figures: Figures) -> list[str]:
    return list(next(iter(figures.values()))["pairs"])


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
