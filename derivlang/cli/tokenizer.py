"""`derivlang tokenizer`: train a tokenizer on a source, and make its twins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

_OUT = click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
_FORCE = click.option("--force", is_flag=True, help="Replace a tokenizer that this folder holds.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the recipe as JSON.")


@click.group("tokenizer", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Tokenizers that know they are twins: the derived text has the ids of the source's.

    \b
    derivlang tokenizer twin tok --t trans:script=georgian -o tok-georgian
    derivlang tokenizer train --vocab-size 400 demo -o tok
    """


@command.command("train", no_args_is_help=True)
@click.argument("source")
@click.option("--vocab-size", type=int, default=40_000, show_default=True, help="Entries, special tokens included.")
@_OUT
@click.option("--min-frequency", type=click.IntRange(1), default=2, show_default=True,
              help="Merge no pair that is seen less often.")  # fmt: skip
@click.option("--data-dir", type=click.Path(path_type=Path),
              help="Where corpora lie; else $DERIVLANG_DATA, then the hub.")  # fmt: skip
@click.option("--words", type=click.Choice(["spacy", "unicode", "space"]), help="How raw text becomes words.")
@click.option("--lang", help="Language of raw text, for spaCy's tokenizer.  [default: the source's]")
@click.option("--encoding", default="utf-8", show_default=True, help="Of text files.")
@click.option("--text-column", multiple=True, help="A column of raw text, where names do not tell.")
@click.option("--word-column", multiple=True, help="A column of word lists, where names do not tell.")
@_FORCE
@_JSON
def train_(
    source: str, vocab_size: int, out: Path, min_frequency: int, force: bool, as_json: bool, **options: Any
) -> None:
    """Train a character BPE on the words of SOURCE's train split, else its first.

    \b
    derivlang tokenizer train wikitext103 --data-dir DIR --vocab-size 40000 -o DIR
    """
    from derivlang.cli.options import request_of
    from derivlang.lexical.train import train

    request = request_of(source, options)
    recipe = train(request, out, vocab_size=vocab_size, min_frequency=min_frequency, force=force)
    if as_json:
        click.echo(json.dumps({"out": str(out), **recipe}, ensure_ascii=False))
        return
    words = recipe["words"]
    click.echo(
        f"{out}: {recipe['vocab_size']:,} entries, {recipe['merges']:,} merges, from {words['tokens']:,} words "
        f"({words['types']:,} types), {words['subwords'] / words['tokens']:.3f} sub-words a word"
    )


@command.command("twin", no_args_is_help=True)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--t", "spec", required=True, help="trans with its script and overlap; orders beside it do not matter.")
@_OUT
@click.option("--lexicon", type=click.Path(path_type=Path), help="A saved lexicon.tsv: keep the same types as there.")
@click.option("--subword-overlap", type=click.IntRange(0, 100), metavar="PERCENT",
              help="Share so many percent of the vocabulary's entries.")  # fmt: skip
@click.option("--by", type=click.Choice(["type", "frequency", "mass"]), default="type", show_default=True,
              help="Which entries: drawn, the most frequent, or drawn by token mass.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Another seed, other entries.")
@click.option("--subwords", type=click.Path(path_type=Path), help="A saved subwords.tsv: share the same entries.")
@click.option("--joint", is_flag=True, help="One file for both languages, too, in DIR/joint; refused where inexact.")
@click.option("--compat", type=click.Choice(["exact", "paper"]), default="exact", show_default=True,
              help="Joint ids: shift by V without specials, or by V as the released ALIGN-MLM.")  # fmt: skip
@_FORCE
@_JSON
def twin_(
    folder: Path,
    spec: str,
    out: Path,
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
    """Make the twin of the tokenizer in DIR, and say what both languages share.

    \b
    derivlang tokenizer twin tok --t trans:script=georgian -o tok-georgian
    derivlang tokenizer twin tok --t trans:overlap=25 --lexicon SET/lexicon.tsv -o tok-25
    """
    from derivlang.core.errors import UsageError
    from derivlang.lexical.twin_folder import Shared, make_twin

    if subword_overlap is not None and subwords is not None:
        raise UsageError("give a percentage or a file", where="--subword-overlap, --subwords", id="two-overlaps")
    shared = None
    if subword_overlap is not None or subwords is not None:
        shared = Shared(subword_overlap or 0, by, seed, subwords)
    recipe = make_twin(folder, spec, out, lexicon=lexicon, shared=shared, joint=joint, compat=compat, force=force)
    if as_json:
        click.echo(json.dumps({"out": str(out), **recipe}, ensure_ascii=False))
        return
    joint_ids = recipe["joint"]
    click.echo(
        f"{out}: {recipe['vocab_size']:,} entries in {recipe['scripts'][0]}; joint ids: shift {joint_ids['shift']:,}, "
        f"size {joint_ids['size']:,}"
    )
    for unit, share in recipe["overlap"].items():
        click.echo(
            f"shared {unit}: {share['shared_types_percent']} % of {share['types']:,} types, "
            f"{share['shared_tokens_percent']} % of {share['tokens']:,} running ones"
        )
