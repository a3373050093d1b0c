"""`derivlang dict`: a bilingual dictionary of a pair, or a look at a dictionary file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from derivlang.cli.options import find_options, request_of, warn
from derivlang.core.errors import UsageError

_FORMATS = click.Choice(["muse", "tsv", "json"])


@click.command("dict", no_args_is_help=True)
@click.argument("source", required=False)
@click.option("--t", "spec", help="The transforms, as for make; a derived set brings its own.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The file to write: .txt (MUSE), .tsv or .json.")
@click.option("--coverage", default="100", show_default=True, help="Percent of the entries.")
@click.option("--by", type=click.Choice(["random", "frequency", "mass", "pos"]), default="random", show_default=True,
              help="Drawn, the most frequent, drawn by running words, or even over tags.")  # fmt: skip
@click.option("--level", type=click.Choice(["word", "token"]), default="word", show_default=True,
              help="Words, or the sub-words of --tokenizer.")  # fmt: skip
@click.option("--tokenizer", type=click.Path(path_type=Path), help="A tokenizer's folder, for --level token.")
@click.option("--noise", default="0", show_default=True, help="Percent of the pairs with a wrong translation.")
@click.option("--heldout", default="0", show_default=True, help="Percent of the entries kept apart for tests.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Another seed, other entries.")
@click.option("--lexicon", type=click.Path(path_type=Path), help="A saved lexicon.tsv: the words of that pair.")
@click.option("--format", "kind", type=_FORMATS, help="Of the file written.  [default: by its suffix]")
@find_options
@click.option("--repair-tags", is_flag=True, help="Repair ill-formed BIO tags.")
@click.option("--read", "given", type=click.Path(path_type=Path),
              help="Read this dictionary file instead, report its faults by line (JSON: by entry); -o writes a clean "
              "copy.")  # fmt: skip
@click.option("--strict", is_flag=True, help="--read: the first fault is an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(source: str | None, given: Path | None, as_json: bool, **options: Any) -> None:
    """Write the bilingual dictionary of SOURCE and its derived twin, at a stated coverage, with its recipe.

    SOURCE: as for make; of a derived set, its own pair. Words are those of the train split (else the first).

    \b
    derivlang dict --t trans --coverage 25 wikitext103 --data-dir DIR -o en-derived.tsv
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if (source is None) == (given is None):
        raise UsageError("name a source, or --read a file", where="SOURCE", fix="derivlang dict --help", id="usage")
    if given is not None:
        _read(given, options, as_json)
        return
    from derivlang.lexical.dictionary import Options, make_dictionary
    from derivlang.lexical.percent import percent

    if options["out"] is None:
        raise UsageError("where to? name the file", where="-o", fix="-o en-derived.tsv", id="output")
    settings = Options(
        options["out"],
        percent(options["coverage"], "--coverage"),
        options["by"],
        options["level"],
        options["tokenizer"],
        percent(options["noise"], "--noise", zero=True),
        percent(options["heldout"], "--heldout", zero=True, hundred=False),
        options["seed"],
        options["lexicon"],
        options["kind"],
        options["repair_tags"],
    )
    assert source is not None
    result = make_dictionary(options["spec"], request_of(source, options), settings, warn)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    click.echo(
        f"{result['out']}: {result['pairs']:,} pairs of {result['entries']:,} words, "
        f"{result['coverage_types']} % of {result['types']:,} types, {result['coverage_tokens']} % of running words"
    )
    for name, what in (("heldout", "entries held out"), ("noise", "wrong pairs"), ("spaces", "words with a space")):
        if result[name]:
            click.echo(f"{result[name]:,} {what}")


def _read(given: Path, options: dict[str, Any], as_json: bool) -> None:
    from derivlang.lexical.dictionary import check_dictionary

    _, result = check_dictionary(given, strict=options["strict"], out=options["out"], out_format=options["kind"])
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    unit = result["unit"]
    for fault in result["lines"][:20]:
        place = f":{fault['line']}" if unit == "line" else f": {unit} {fault['line']}"
        click.echo(f"{given}{place}: {fault['what']} [{fault['kind']}]", err=True)
    units = "lines" if unit == "line" else "entries"
    click.echo(
        f"{given}: {result['pairs']:,} pairs of {result['types']:,} words; {result['skipped']:,} {units} skipped"
    )
    for kind, n in result["faults"].items():
        click.echo(f"{kind}: {n:,}")
