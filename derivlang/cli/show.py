"""`derivlang show`: source and derived side by side, with the links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command("show", no_args_is_help=True)
@click.argument("derived")
@click.option("--t", "spec", help="Show a text of your own under these transforms: DERIVED is then the text.")
@click.option("--split", help="The split.  [default: the first]")
@click.option("--row", type=click.IntRange(0), default=0, show_default=True, help="The first row, from 0.")
@click.option("-n", "--count", type=click.IntRange(1), default=3, show_default=True, help="How many rows.")
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def command(derived: str, spec: str | None, split: str | None, row: int, count: int, as_json: bool) -> None:
    """Show rows of a derived set, or any text under --t: each derived word beside its source word.

    \b
    derivlang show OUT --split test -n 2
    derivlang show --t trans,inv "Welcome to ACL ."
    """
    rows = _of_text(derived, spec) if spec else _of_set(Path(derived), split, row, count)
    for number, shown in enumerate(rows):
        if as_json:
            click.echo(json.dumps(shown, ensure_ascii=False))
        else:
            click.echo(("\n" if number else "") + _picture(shown))


def _of_text(text: str, spec: str) -> list[dict[str, Any]]:
    from derivlang import derive

    result = derive(text, spec)
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
    """The two sentences, then a line a derived word: its place, itself, its source word's place, that word."""
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
    """Columns of a terminal: wide East Asian characters take two, combining marks none."""
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
