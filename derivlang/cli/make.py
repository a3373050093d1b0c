"""`derivlang make`: from a source to a derived set."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click


@click.command("make", no_args_is_help=True)
@click.argument("source")
@click.option("--t", "spec", required=True, help="The transforms, left to right: trans,inv or perm:window=3 …")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="Where corpora lie; else $DERIVLANG_DATA, then the hub."
)
@click.option("--splits", help="Only these, e.g. train,test.  [default: all that are found]")
@click.option("--limit", type=click.IntRange(1), help="At most so many documents a split.")
@click.option("--seed", type=click.IntRange(0), help="For transforms that state none.  [default: 1]")
@click.option("--lexicon", type=click.Path(path_type=Path), help="A saved lexicon.tsv: keep the same types as there.")
@click.option("--words", type=click.Choice(["spacy", "unicode", "space"]), help="How raw text becomes words.")
@click.option("--lang", help="Language of raw text, for spaCy's tokenizer.  [default: the source's]")
@click.option("--sentences", type=click.Choice(["marks", "period", "unit"]), default="marks", show_default=True,
              help="Where sentences end.")  # fmt: skip
@click.option("--entities", type=click.Choice(["split", "drop", "atomic"]), default="split", show_default=True,
              help="Entities that an order takes apart.")  # fmt: skip
@click.option("--answers", type=click.Choice(["split", "drop", "atomic"]), default="split", show_default=True,
              help="Answers that an order takes apart; split keeps the longest run.")  # fmt: skip
@click.option("--mwt", type=click.Choice(["free", "atomic"]), default="free", show_default=True,
              help="Multiword tokens: their words move freely, or as one.")  # fmt: skip
@click.option("--repair-tags", is_flag=True, help="Repair ill-formed BIO tags and count them.")
@click.option("--encoding", default="utf-8", show_default=True, help="Of text files.")
@click.option("--text-column", multiple=True, help="A column of raw text, where names do not tell.")
@click.option("--word-column", multiple=True, help="A column of word lists, where names do not tell.")
@click.option("--columns", help="Keep only these of key, source, tokens, text; the rest follows.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--engine", default="local", show_default=True, help="local, or dask:ADDRESS.")
@click.option("--shard-tokens", type=int, default=20_000_000, show_default=True, help="About so many words a shard.")
@click.option("--force", is_flag=True, help="Replace a set that another plan made in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(source: str, spec: str, out: Path, as_json: bool, **options: Any) -> None:
    """Make a derived language from SOURCE: a name, a file, a folder, hub:name/config, or a derived set.

    \b
    derivlang make --t trans,inv wikitext103 --data-dir DIR -o OUT
    derivlang make --t trans:overlap=25,perm ner:fr --data-dir DIR -o OUT
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: --workers share the cores, not threads
    from derivlang.core.batch import Policies
    from derivlang.engine.make import Events, Options, make
    from derivlang.sources.find import Request

    request = Request(
        source,
        options["data_dir"],
        options["words"],
        options["lang"],
        options["encoding"],
        tuple(options["word_column"]),
        tuple(options["text_column"]),
    )
    settings = Options(
        out=out,
        splits=_names(options["splits"]),
        seed=options["seed"],
        workers=options["workers"],
        engine=options["engine"],
        shard_tokens=options["shard_tokens"],
        limit=options["limit"],
        lexicon=options["lexicon"],
        rule=options["sentences"],
        policies=Policies(options["entities"], options["answers"], options["mwt"]),
        repair_tags=options["repair_tags"],
        columns=_names(options["columns"]),
        force=options["force"],
    )
    progress = _Progress()
    try:
        result = make(spec, request, settings, Events(_warn, progress.start, progress.done))
    finally:
        progress.close()
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    for name, entry in result["splits"].items():
        click.echo(
            f"{name:<11}{entry['documents']:>12,} documents {entry['sentences']:>12,} sentences "
            f"{entry['tokens']:>13,} tokens"
        )
    for reason, count in {**result["changed"], **result["dropped"]}.items():
        click.echo(f"{reason}: {count:,}")
    click.echo(
        f"{result['out']}{os.sep}  in {result['seconds']:.1f} s, {result['tokens_per_second']:,} tokens a second"
    )


class _Progress:
    """A bar on stderr, where that is a terminal and there is more than one shard."""

    def __init__(self) -> None:
        self._bar: Any = None

    def start(self, tasks: int) -> None:
        if tasks > 1 and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=tasks, unit="shard", file=sys.stderr)

    def done(self, result: Any) -> None:
        if self._bar is not None:
            self._bar.update(1)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def _warn(message: str) -> None:
    click.echo(f"derivlang: warning: {message}", err=True)
