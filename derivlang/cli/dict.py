"""`derivlang dict`: write the bilingual dictionary of a language pair, or check a dictionary file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.messages import echo, warn
from derivlang.cli.options import (
    STDOUT,
    Bar,
    dictionary_source_options,
    place_of,
    refuse_given,
    request_of,
    spec_option,
    told,
)
from derivlang.cli.settings import settings_options
from derivlang.cli.streams import message
from derivlang.cli.types import FILE, OUT_FILE, completes
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.lexical.settings import DictionaryOptions

_LEFT_OUT = (
    "pairs left out: MUSE reads no capitals and no white space inside a word (TSV and "
    "JSON hold all)"
)


@click.command("dict", no_args_is_help=True)
@click.argument("source", required=False, shell_complete=completes("source"))
@spec_option("Transforms, as for make.  [default: the derived set's]")
@option("-o", "--out", type=OUT_FILE,
              help="File or URL to write: .txt (MUSE), .tsv or .json.  [default: standard output]")  # fmt: skip
@settings_options(DictionaryOptions, without=("repair_tags", "force"))
@dictionary_source_options
@settings_options(DictionaryOptions, only=("repair_tags",))
@option("--read", "read", type=FILE,
              help="Dictionary file to check instead of writing one; -o writes a clean copy.")  # fmt: skip
@settings_options(DictionaryOptions, only=("force",))
@option("--strict", is_flag=True, only_with="--read", help="Stop at the first fault.")
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(source: str | None, read: Path | None, as_json: bool, **options: Any) -> None:
    """Write the bilingual dictionary of SOURCE and its derived language, at a given coverage, with a recipe.

    SOURCE is given as for make; a derived set gives its own language pair. The entries are the words of the train
    split, or of the first split if there is no train split. Without -o the dictionary goes to standard output, without
    its recipe.

    \b
    derivlang dict --t trans demo --format tsv | head
    derivlang dict --t trans --coverage 25 wikitext103 --data-dir DIR -o en-derived.tsv
    """
    if (source is None) == (read is None):
        raise UsageError(
            "give either a source or --read FILE", where="SOURCE", fix="see derivlang dict --help", id="usage"
        )
    if read is not None:
        of_making = set(options) - {"out", "format", "strict", "force"}
        refuse_given("has no effect with --read, which makes no dictionary", *of_making)
        _check_file(read, options, as_json)
        return
    from derivlang.lexical.dictionary import make_dictionary

    out = options["out"] or STDOUT
    kind = "muse" if out == STDOUT else None
    settings = DictionaryOptions(**{"format": kind, **given(DictionaryOptions, options), "out": out})
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
    more = (("heldout", "entries held out"), ("noise", "wrong pairs"), ("left_out", _LEFT_OUT))
    lines += [f"{result[name]:,} {what}" for name, what in more if result[name]]
    echo("\n".join(lines), err=out == STDOUT)


def _check_file(read: Path, options: dict[str, Any], as_json: bool) -> None:
    from derivlang.lexical.dictionary import check_dictionary

    if options["out"] is None:
        refuse_given("is the format of -o, which is not given", "format")
    kind, force = options["format"], options["force"]
    _, result = check_dictionary(read, strict=options["strict"], out=options["out"], out_format=kind, force=force)
    if as_json:
        echo(json.dumps(result, ensure_ascii=False))
        return
    unit = result["unit"]
    for fault in result["lines"][:20]:
        place = f":{fault['line']}" if unit == "line" else f": {unit} {fault['line']}"
        message(f"{read}{place}: {fault['what']} [{fault['kind']}]")
    pairs, words = counted(result["pairs"], "pair"), counted(result["types"], "word")
    echo(f"{read}: {pairs} of {words}; {counted(result['skipped'], unit)} skipped")
    for kind, n in result["faults"].items():
        echo(f"{kind}: {n:,}")
    if result["left_out"]:
        echo(f"{result['left_out']:,} {_LEFT_OUT}")
