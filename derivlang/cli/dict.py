"""`derivlang dict`: write the bilingual dictionary of a language pair, or check a dictionary file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.messages import echo, warn
from derivlang.cli.options import STDOUT, Bar, find_options, place_of, refuse_given, request_of, spec_option, told
from derivlang.cli.streams import message
from derivlang.cli.types import FILE, FOLDER, OUT_FILE, SEED, completes
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted

_FORMATS = click.Choice(["muse", "tsv", "json"])


@click.command("dict", no_args_is_help=True)
@click.argument("source", required=False, shell_complete=completes("source"))
@spec_option("Transforms, as for make.  [default: those of a derived set]")
@click.option("-o", "--out", type=OUT_FILE,
              help="File to write: .txt (MUSE), .tsv or .json.  [default: standard output]")  # fmt: skip
@click.option("--coverage", default="100", show_default=True, help="Percentage of the entries.")
@click.option("--by", type=click.Choice(["random", "frequency", "mass", "pos"]), default="random", show_default=True,
              help="Choice of the entries: random, by frequency, by token mass, or even over tags.")  # fmt: skip
@click.option("--level", type=click.Choice(["word", "token"]), default="word", show_default=True,
              help="Level of the entries: words, or the sub-words of --tokenizer.")  # fmt: skip
@click.option("--tokenizer", type=FOLDER, help="Folder of a tokenizer, for --level token.")
@click.option("--noise", default="0", show_default=True, help="Percentage of the pairs with a wrong translation.")
@click.option("--heldout", default="0", show_default=True, help="Percentage of the entries held out for tests.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the choice of entries.")
@click.option("--lexicon", type=FILE, help="Saved lexicon.tsv to use.")
@click.option("--format", "kind", type=_FORMATS, help="Format to write.  [default: by the suffix of --out, else muse]")
@find_options
@click.option("--repair-tags", is_flag=True, help="Repair ill-formed tags of entities, without losing a label.")
@click.option("--read", "given", type=FILE,
              help="Dictionary file to check instead of writing one; -o writes a clean copy.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that holds something else.")
@click.option("--strict", is_flag=True, help="Stop at the first fault (with --read).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(source: str | None, given: Path | None, as_json: bool, **options: Any) -> None:
    """Write the bilingual dictionary of SOURCE and its derived language, at a given coverage, with a recipe.

    SOURCE is given as for make; a derived set gives its own language pair. The entries are the words of the train
    split, or of the first split if there is no train split. Without -o the dictionary goes to standard output, without
    its recipe.

    \b
    derivlang dict --t trans demo --format tsv | head
    derivlang dict --t trans --coverage 25 wikitext103 --data-dir DIR -o en-derived.tsv
    """
    if (source is None) == (given is None):
        raise UsageError(
            "give either a source or --read FILE", where="SOURCE", fix="see derivlang dict --help", id="usage"
        )
    if given is not None:
        of_making = set(options) - {"out", "kind", "strict", "force"}
        refuse_given("has no effect with --read, which makes no dictionary", *of_making)
        _read(given, options, as_json)
        return
    refuse_given("is an option of --read", "strict")
    from derivlang.lexical.dictionary import DictionaryOptions, make_dictionary
    from derivlang.lexical.percent import percent

    out = options["out"] or STDOUT
    settings = DictionaryOptions(
        out,
        percent(options["coverage"], "--coverage"),
        options["by"],
        options["level"],
        options["tokenizer"],
        percent(options["noise"], "--noise", zero=True),
        percent(options["heldout"], "--heldout", zero=True, hundred=False),
        options["seed"],
        options["lexicon"],
        options["kind"] or ("muse" if out == STDOUT else None),
        options["repair_tags"],
        options["force"],
    )
    assert source is not None
    with Bar() as bar, bar.stage("reading"):
        result = make_dictionary(options["spec"], request_of(source, options), settings, warn)
    if as_json:
        told(json.dumps(result, ensure_ascii=False), as_json=True, out=out)
        return
    pairs, words = counted(result["pairs"], "pair"), counted(result["entries"], "word")
    types = counted(result["types"], "type")
    lines = [
        f"{place_of(out)}: {pairs} of {words}, "
        f"{result['coverage_types']} % of {types}, {result['coverage_tokens']} % of running words"
    ]
    more = (("heldout", "entries held out"), ("noise", "wrong pairs"), ("spaces", "words with a space"))
    lines += [f"{result[name]:,} {what}" for name, what in more if result[name]]
    echo("\n".join(lines), err=out == STDOUT)


def _read(given: Path, options: dict[str, Any], as_json: bool) -> None:
    from derivlang.lexical.dictionary import check_dictionary

    if options["out"] is None:
        refuse_given("is the format of -o, which is not given", "kind")
    kind, force = options["kind"], options["force"]
    _, result = check_dictionary(given, strict=options["strict"], out=options["out"], out_format=kind, force=force)
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
        return
    unit = result["unit"]
    for fault in result["lines"][:20]:
        place = f":{fault['line']}" if unit == "line" else f": {unit} {fault['line']}"
        message(f"{given}{place}: {fault['what']} [{fault['kind']}]")
    pairs, words = counted(result["pairs"], "pair"), counted(result["types"], "word")
    echo(f"{given}: {pairs} of {words}; {counted(result['skipped'], unit)} skipped")
    for kind, n in result["faults"].items():
        echo(f"{kind}: {n:,}")
