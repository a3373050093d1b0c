"""`derivlang show`: source and derived sentences side by side, with their links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from derivlang.cli.options import spec_option
from derivlang.cli.types import COUNT, PLACE, completes
from derivlang.core.errors import UsageError

if TYPE_CHECKING:
    from derivlang.formats.words import Mode


@click.command("show", no_args_is_help=True)
@click.argument("derived", shell_complete=completes("set"))
@spec_option("Transforms of a text of your own; DERIVED is then the text.")
@click.option(
    "--words",
    type=click.Choice(["spacy", "unicode", "space"]),
    help="Word splitter of the text (with --t).  [default: spacy]",
)
@click.option("--lang", help="Language of the text, for spaCy's tokenizer and the parser (with --t).  [default: en]")
@click.option("--split", help="Split to show.  [default: the first]")
@click.option("--row", type=PLACE, default=0, show_default=True, help="First row to show, from 0.")
@click.option("-n", "--count", type=COUNT, default=3, show_default=True, help="Number of rows to show.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def command(
    derived: str,
    spec: str | None,
    words: Mode | None,
    lang: str | None,
    split: str | None,
    row: int,
    count: int,
    as_json: bool,
) -> None:
    """Show each derived word beside its source word, for rows of a derived set or for a text (with --t).

    \b
    derivlang show OUT --split test -n 2
    derivlang show --t trans,inv "Hello, world!"
    derivlang show --t trans,inv --words space "Welcome to ACL ."
    """
    if spec is None and (words or lang):
        raise UsageError("--words and --lang are for a text of your own", fix="give --t, too", id="words")
    rows = _of_set(Path(derived), split, row, count) if spec is None else _of_text(derived, spec, words, lang)
    for number, shown in enumerate(rows):
        if as_json:
            click.echo(json.dumps(shown, ensure_ascii=False))
        else:
            click.echo(("\n" if number else "") + _picture(shown))


def _of_text(text: str, spec: str, words: Mode | None, language: str | None) -> list[dict[str, Any]]:
    from derivlang import derive

    result = derive(text, spec, words=words, language=language or "en")
    return [{"row": 0, "source": result.source, "tokens": result.words, "order": result.order, "labels": {}}]


def _of_set(folder: Path, split: str | None, first: int, count: int) -> list[dict[str, Any]]:
    from derivlang.core.errors import StoreError
    from derivlang.store.export import labelled
    from derivlang.store.load import load
    from derivlang.store.manifest import Derived

    derived = Derived(folder)
    name = derived.choose_split(split, first=True)
    out: list[dict[str, Any]] = []
    for group in load(derived, name):
        if group.first_row + group.table.num_rows <= first:
            continue
        labels = labelled(group.derived, derived.schema)
        per_word = [f.column for f in derived.schema.fields if f.kind in ("tags", "entities")]
        per_word = [column for column in ("upos", "ner_tags", *per_word) if column in per_word][:3]
        for at in range(max(0, first - group.first_row), group.table.num_rows):
            for side, unit in enumerate(group.derived.records[at]):
                out.append(_unit(group, int(unit), group.first_row + at, derived.schema.sides[side].name))
                out[-1]["labels"] = {column: labels[column][at].as_py() for column in dict.fromkeys(per_word)}
            if len({shown["row"] for shown in out}) == count:
                return out
    if not out:
        raise StoreError(f"the split {name} has no row {first}", where=str(folder), id="row")
    return out


def _unit(group: Any, unit: int, row: int, side: str) -> dict[str, Any]:
    source, derived = group.source, group.derived
    words = derived.types.take(_codes(derived, unit)).to_pylist()
    begin, end = derived.unit_words[unit], derived.unit_words[unit + 1]
    index = group.order.index[begin:end]
    order = [int(i) - int(source.unit_words[unit]) if i >= 0 else -1 for i in index]
    return {
        "row": row,
        "side": side,
        "source": source.types.take(_codes(source, unit)).to_pylist(),
        "tokens": words,
        "order": order,
    }


def _codes(batch: Any, unit: int) -> Any:
    from derivlang.core.arrow import to_arrow

    return to_arrow(batch.words[batch.unit_words[unit] : batch.unit_words[unit + 1]])


def _picture(shown: dict[str, Any]) -> str:
    """Return the two sentences, and a line for each derived word: position and word, source position and word."""
    source, tokens, order = shown["source"], shown["tokens"], shown["order"]
    side = f" ({shown['side']})" if shown.get("side") else ""
    lines = [f"row {shown['row']}{side}", f"  source   {' '.join(source)}", f"  derived  {' '.join(tokens)}"]
    width = max((_width(word) for word in tokens), default=0)
    own = max((_width(source[i]) if i >= 0 else 1 for i in order), default=0)
    for j, (word, i) in enumerate(zip(tokens, order, strict=True)):
        partner = f"{i:>3} {_padded(source[i], own)}" if i >= 0 else f"  - {_padded('', own)}"
        labels = "  ".join(str(values[j]) for values in shown["labels"].values())
        lines.append(f"  {j:>3} {_padded(word, width)}  <- {partner}  {labels}".rstrip())
    return "\n".join(lines)


def _width(text: str) -> int:
    """Return the number of terminal columns: wide East Asian characters take two, combining marks none."""
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
