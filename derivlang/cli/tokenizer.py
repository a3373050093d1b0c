"""`derivlang tokenizer`: train a tokenizer on a source, and make its twins for derived languages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.folders import changed_options, default_folder
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, find_options, refuse_given, request_of, spec_option
from derivlang.cli.types import FILE, FOLDER, OUT_FOLDER, SEED, Group, Whole, completes

_FORCE = click.option("--force", is_flag=True, help="Replace an existing tokenizer in the output folder.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the recipe as JSON.")


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
@click.option("--vocab-size", type=Whole(1), default=40_000, show_default=True,
              help="Number of entries, special tokens included.")  # fmt: skip
@click.option("-o", "--out", type=OUT_FOLDER, help="Folder to write.  [default: SOURCE.tokenizer, here]")
@click.option("--min-frequency", type=Whole(1), default=2, show_default=True,
              help="Minimum frequency of a pair to merge.")  # fmt: skip
@find_options
@_FORCE
@_JSON
def train_(
    source: str,
    vocab_size: int,
    out: Path | None,
    min_frequency: int,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
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
        recipe = train(
            request, out, vocab_size=vocab_size, min_frequency=min_frequency, force=force, found=bar.complete
        )
    if as_json:
        echo(json.dumps({"out": str(out), **recipe}, ensure_ascii=False))
        return
    words = recipe["words"]
    echo(
        f"{out}: {recipe['vocab_size']:,} entries, {recipe['merges']:,} merges, from {words['tokens']:,} words "
        f"({words['types']:,} types), {words['subwords'] / words['tokens']:.3f} sub-words a word"
    )


@command.command("twin", no_args_is_help=True, short_help="Make the twin of a tokenizer for a derived language.")
@click.argument("folder", type=FOLDER, metavar="DIR")
@spec_option("Transforms: trans with its script and overlap; orders are ignored.", required=True)
@click.option("-o", "--out", type=OUT_FOLDER, help="Folder to write.  [default: DIR.TRANSFORMS, here]")
@click.option("--lexicon", type=FILE, help="Saved lexicon.tsv with the types to keep.")
@click.option("--subword-overlap", type=Whole(0, 100), metavar="PERCENT",
              help="Percentage of the vocabulary's entries that both languages share.")  # fmt: skip
@click.option("--by", type=click.Choice(["type", "frequency", "mass"]), default="type", show_default=True,
              help="Choice of the shared entries: drawn, the most frequent, or drawn by token mass.")  # fmt: skip
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the choice of shared entries.")
@click.option("--subwords", type=FILE, help="Saved subwords.tsv with the entries to share.")
@click.option("--joint", is_flag=True,
              help="Also write OUT/joint, one tokenizer for both languages; an error if inexact.")  # fmt: skip
@click.option("--compat", type=click.Choice(["exact", "paper"]), default="exact", show_default=True,
              help="Shift of the joint ids: V without special tokens, or V as in the released ALIGN-MLM.")  # fmt: skip
@_FORCE
@_JSON
def twin_(
    folder: Path,
    spec: str,
    out: Path | None,
    lexicon: Path | None,
    subword_overlap: int | None,
    by: Any,
    seed: int,
    subwords: Path | None,
    joint: bool,
    compat: Any,
    force: bool,
    as_json: bool,
) -> None:
    """Make the twin of the tokenizer in DIR, and print what both languages share.

    \b
    derivlang tokenizer twin tok --t trans:overlap=25 --lexicon SET/lexicon.tsv -o tok-25
    derivlang tokenizer twin demo.tokenizer --t trans:script=georgian
    """
    from derivlang.core.errors import UsageError
    from derivlang.lexical.twin_folder import Shared, make_twin, trans_of
    from derivlang.pipeline import Pipeline

    if subword_overlap is not None and subwords is not None:
        raise UsageError("give a percentage or a file", where="--subword-overlap, --subwords", id="two-overlaps")
    if subword_overlap is None:
        refuse_given("chooses the entries of --subword-overlap", "by", "seed")
    shared = None
    if subword_overlap is not None or subwords is not None:
        shared = Shared(subword_overlap or 0, by, seed, subwords)
    begins = ""
    if out is None:
        out = default_folder(str(folder), str(trans_of(Pipeline.parse(spec))), changed_options("folder"))
        begins = f"writing to {out}{os.sep}"
    with Bar(begins=begins) as bar:
        recipe = make_twin(
            folder,
            spec,
            out,
            lexicon=lexicon,
            shared=shared,
            joint=joint,
            compat=compat,
            force=force,
            found=bar.complete,
        )
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
