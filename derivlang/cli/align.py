"""`derivlang align`: link the words of two texts, and score links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.align.settings import AlignScoreOptions, AlignTrainOptions
from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import STDOUT, Bar, place_of, told
from derivlang.cli.settings import settings_options
from derivlang.cli.types import FILE, OUT_FILE, Group
from derivlang.core.messages import counted
from derivlang.core.settings import given


@click.group("align", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Word aligners: link the words of two texts, and score links against gold links.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    """


@command.command("train", no_args_is_help=True, short_help="Train an aligner on two texts and write their links.")
@click.argument("source", type=FILE)
@click.argument("target", type=FILE)
@option("-o", "--out", type=OUT_FILE, default=STDOUT, help="Pharaoh file or URL to write.  [default: standard output]")
@settings_options(AlignTrainOptions)
@option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def train(source: Path, target: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Train an aligner on SOURCE and TARGET and write their links.

    With --encoder nothing is trained: the similarity of the words' states gives the links, by optimal transport (ot),
    mutual argmax, or itermax.

    Line n of SOURCE belongs to line n of TARGET; words are separated by spaces. Each line of the result has the links
    of one sentence pair as i-j, zero-based, source word first; it is empty if one of the sentences is empty. Without -o
    the links go to standard output.

    \b
    derivlang align train en.txt fr.txt | head
    derivlang align train en.txt fr.txt --lower -o en-fr.pharaoh
    derivlang align train en.txt fr.txt --model ot --encoder hub:FacebookAI/xlm-roberta-base
    """
    from derivlang.commands.align import link_texts

    with Bar():
        result = link_texts(source, target, out, AlignTrainOptions(**given(AlignTrainOptions, options)), warn)
    text = f"{counted(result['links'], 'link')} of {counted(result['sentences'], 'sentence pair')}: {place_of(out)}"
    told(json.dumps(result) if as_json else text, as_json=as_json, out=out)


@command.command("score", no_args_is_help=True, short_help="Score links against gold links.")
@click.argument("links", type=FILE)
@click.argument("gold", type=FILE)
@settings_options(AlignScoreOptions)
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def score(links: Path, gold: Path, as_json: bool, **options: Any) -> None:
    """Score LINKS against GOLD: precision, recall, F1 and alignment error rate of two Pharaoh files.

    Gold links are sure (i-j) or only possible (ipj). The gold links of a derived set come from
    `derivlang export --format pharaoh`.

    \b
    derivlang align score en-fr.pharaoh gold.pharaoh --json
    """
    from derivlang.commands.align import link_scores

    figures = link_scores(links, gold, AlignScoreOptions(**given(AlignScoreOptions, options)))
    if as_json:
        echo(json.dumps(figures))
        return
    for name, value in figures.items():
        echo(f"{name:<11}{100 * value:6.2f} %")
