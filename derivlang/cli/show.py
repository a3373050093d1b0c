"""`derivlang show`: source and derived sentences side by side, with their links, trees and labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.colours import painted
from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import refuse_given, request_of, spec_option, text_options
from derivlang.cli.settings import settings_options
from derivlang.cli.types import COUNT, OUT_FILE, PATH, PLACE
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import DataError, UsageError
from derivlang.core.messages import counted
from derivlang.engine.options import MakeOptions
from derivlang.formats.places import located
from derivlang.store.settings import FileOptions

if TYPE_CHECKING:
    from derivlang.core.rules import Mode
    from derivlang.display.linked import LinkedLines


@click.command("show", cls=HeadedCommand, no_args_is_help=True)
@click.argument("derived", shell_complete=PATH.shell_complete)
@spec_option("Transforms of a text or file of your own; DERIVED is then the text, or the path of the file.")
@settings_options(MakeOptions, only=("lexicon",), needs={"lexicon": OptionNeeds(only_with="--t")})
@option("--split", help="Split to show.  [default: the first]")
@option("--row", type=PLACE, default=0, show_default=True, help="First row to show, from 0.")
@option("-n", "--count", type=COUNT, default=3, show_default=True, help="Number of rows to show.")
@option(
    "--html", type=OUT_FILE, help="File or URL to write the rows to as a page with drawings; FILE.svg: the first row."
)
@settings_options(FileOptions, needs={"force": OptionNeeds(only_with="--html")})
@option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
@text_options
def command(
    derived: str,
    spec: str | None,
    lexicon: Path | None,
    split: str | None,
    row: int,
    count: int,
    html: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show each derived word beside its source word, for rows of a derived set, or for a text or file (with --t).

    Trees stand at the left, tags and entities at the right. Colours are shown where the terminal has them, unless
    NO_COLOR is set. A page of --html is complete in itself: it loads nothing.

    \b
    derivlang show OUT --split test -n 2
    derivlang show OUT --row 5 --html rows.html
    derivlang show --t trans,syn:fr treebank.conllu
    derivlang show --t trans,inv "Hello, world!"
    derivlang show --t trans,inv --words space "Welcome to ACL ."
    """
    if spec is None:
        rows, title, told = _of_set(located(derived), split, row, count)
    elif _is_file(derived):
        if split is not None:
            raise UsageError("a file has one split", where="--split", fix="leave --split out", id="unused-option")
        rows, title, told = _of_file(derived, spec, lexicon, row, count, options)
    else:
        of_files = set(options) - {"words", "lang"}
        refuse_given("is for a file or a set, not for a text", "split", "row", "count", *of_files)
        rows, title, told = _of_text(derived, spec, lexicon, options["words"], options["lang"])
    if html is not None:
        from derivlang.display.view import View

        View(rows, title).save(html, told, force=force)
        drawn = 1 if html.suffix.lower() == ".svg" else len(rows)
        echo(f"{html}: {counted(drawn, 'drawing')}", err=as_json)
    if as_json:
        for shown in rows:
            echo(json.dumps(_object(shown), ensure_ascii=False))
    elif html is None:
        _print(rows)


def _is_file(text: str) -> bool:
    """Return whether a text is the path of a file. Raise DataError if it looks like one that is not there."""
    from derivlang.formats.registry import suffixes

    try:
        is_file = (located(text) if len(text.split()) == 1 else Path(text)).is_file()
    except (OSError, ValueError):  # too long, or with a NUL character
        return False
    if not is_file and len(text.split()) == 1 and text.endswith(tuple(suffixes())):
        raise DataError("there is no such file", where=text, fix="check the path", id="missing-file")
    return is_file


def _of_text(
    text: str, spec: str, lexicon: Path | None, words: Mode | None, language: str | None
) -> tuple[list[LinkedLines], str, str]:
    from derivlang.api import derive_lines

    ((derived,),) = derive_lines([[text]], spec, words=words, language=language or "en", lexicon=lexicon, one=True)
    return [derived.linked()], spec, ""


def _of_file(
    path: str, spec: str, lexicon: Path | None, first: int, count: int, options: dict[str, Any]
) -> tuple[list[LinkedLines], str, str]:
    from derivlang.display.rows import rows_of_file
    from derivlang.pipeline import Pipeline

    pipeline = Pipeline.parse(spec)
    rows = rows_of_file(request_of(path, {**options, "data_dir": None}), pipeline, first, count, lexicon)
    return rows, located(path).name, f"{pipeline} of {path}"


def _of_set(folder: Path, split: str | None, first: int, count: int) -> tuple[list[LinkedLines], str, str]:
    from derivlang.display.rows import rows_of_set, set_of

    derived, name = set_of(folder, split)
    rows = rows_of_set(derived, name, first, count)
    return rows, folder.name, f"{derived.pipeline} of {derived.manifest['source']['name']}, split {name}"


def _print(rows: list[LinkedLines]) -> None:
    from derivlang.display.drawing import colours_of
    from derivlang.display.terminal import text_of

    colours = colours_of(rows)
    for number, shown in enumerate(rows):
        echo(("\n" if number else "") + text_of(shown, painted, colours), escaped=True)


def _object(shown: LinkedLines) -> dict[str, Any]:
    """Return what `--json` prints of a row. labels: of the derived words, by column; values: of the row."""
    from derivlang.display.terminal import tags_of

    line = shown.derived
    trees = {"head": line.head, "deprel": line.relation} if line.head else {}
    facts = {"row": int(shown.facts.get("row", "0"))} | {k: v for k, v in shown.facts.items() if k != "row"}
    return {
        **facts,
        "source": shown.source.words,
        "tokens": line.words,
        "order": shown.order,
        "labels": {**line.tags, **trees, **tags_of(line)},
        **({"values": dict(shown.values)} if shown.values else {}),
    }
