"""`derivlang tokenizer`: train a tokenizer on a source, and make its twins for derived languages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, find_options, request_of, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import FOLDER, LOCAL_FOLDER, Group, completes
from derivlang.core.settings import given
from derivlang.lexical.settings import TokenizerOptions, TwinOptions

_JSON = option("--json", "as_json", is_flag=True, help="Print the recipe as JSON.")


@click.group("tokenizer", cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Train tokenizers and make their twins.

    A twin gives derived text the ids that the source's tokenizer gives the source text.

    \b
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    derivlang tokenizer train --vocab-size 400 demo
    """


@command.command("train", no_args_is_help=True, short_help="Train a character BPE on the words of a source.")
@click.argument("source", shell_complete=completes("source"))
@settings_options(TokenizerOptions, only=("vocab_size",))
@option("-o", "--out", type=LOCAL_FOLDER, help="Folder to write.  [default: SOURCE.tokenizer, here]")
@settings_options(TokenizerOptions, only=("min_frequency",))
@find_options
@settings_options(TokenizerOptions, only=("force",))
@_JSON
def train_(source: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Train a character BPE on the words of SOURCE.

    It is trained on the train split, or on the first split if there is none. A tokenizer that the same command has
    already made is kept.

    \b
    derivlang tokenizer train wikitext103 --data-dir DIR
    derivlang tokenizer train --vocab-size 400 demo -o tok
    """
    from derivlang.lexical.train import train

    request = request_of(source, options)
    begins = ""
    if out is None:
        out = default_folder(source, options=changed_options(), last="tokenizer")
        begins = f"writing to {out}{os.sep}"
    with Bar(begins=begins) as bar:
        recipe = train(request, out, TokenizerOptions(**given(TokenizerOptions, options)), found=bar.complete)
    if as_json:
        echo(json.dumps({"out": str(out), **recipe}, ensure_ascii=False))
        return
    words = recipe["words"]
    echo(
        f"{out}: {recipe['vocab_size']:,} entries, {recipe['merges']:,} merges, from {words['tokens']:,} words "
        f"({words['types']:,} types), {words['subwords'] / words['tokens']:.3f} sub-words per word"
    )


@command.command("twin", no_args_is_help=True, short_help="Make the twin of a tokenizer for a derived language.")
@click.argument("folder", type=FOLDER, metavar="DIR")
@spec_option("Transforms: trans with its script and overlap; orders are ignored.", required=True)
@option("-o", "--out", type=LOCAL_FOLDER, help="Folder to write.  [default: DIR.TRANSFORMS, here]")
@settings_options(TwinOptions)
@_JSON
def twin_(folder: Path, spec: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Make the twin of the tokenizer in DIR, and print what both languages share.

    \b
    derivlang tokenizer twin tok --t trans:overlap=25 --lexicon SET/lexicon.tsv -o tok-25
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    """
    from derivlang.lexical.twin_folder import make_twin, trans_of
    from derivlang.pipeline import Pipeline

    begins = ""
    if out is None:
        out = default_folder(str(folder), str(trans_of(Pipeline.parse(spec))), changed_options("folder"))
        begins = f"writing to {out}{os.sep}"
    with Bar(begins=begins) as bar:
        recipe = make_twin(folder, spec, out, TwinOptions(**given(TwinOptions, options)), found=bar.complete)
    if as_json:
        echo(json.dumps({"out": str(out), **recipe}, ensure_ascii=False))
        return
    joint_ids = recipe["joint"]
    echo(
        f"{out}: {recipe['vocab_size']:,} entries in {recipe['scripts'][0]}; joint ids: shift {joint_ids['shift']:,}, "
        f"size {joint_ids['size']:,}"
    )
    for unit, share in recipe["overlap"].items():
        echo(
            f"shared {unit}: {share['shared_types_percent']} % of {share['types']:,} types, "
            f"{share['shared_tokens_percent']} % of {share['tokens']:,} running ones"
        )
