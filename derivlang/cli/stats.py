"""`derivlang stats`: how far derived languages are from their source, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, find_options, parser_options, request_of, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FILE, completes
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.distance.settings import StatsOptions


@click.command("stats", cls=HeadedCommand, no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, shell_complete=completes("set"))
@spec_option("Transforms to measure on one source, without a set; may be repeated.", multiple=True)
@settings_options(StatsOptions)
@click.option("-o", "--out", type=OUT_FILE, help="Parquet file to write, with a row for each language.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, a line for each language.")
@parser_options
@find_options
def command(sources: tuple[str, ...], spec: tuple[str, ...], out: Path | None, as_json: bool, **options: Any) -> None:
    """Measure how far derived languages are from their source: derived sets, or transforms of a source with --t.

    Kendall's tau, words moved, changed, inserted and deleted, dependency length, vocabulary shared, and local entropy:
    how well a word is predicted from the one to four words before it.

    \b
    derivlang stats OUT
    derivlang stats --t inv --t shuffle:local=3 --t shuffle demo
    """
    from derivlang.distance.measure import write_table
    from derivlang.distance.run import run_stats
    from derivlang.pipeline import Pipeline
    from derivlang.store.files import held_file

    told = f"stats of {', '.join(sources)}"
    held = held_file(out, told, sources, spec, str(options)) if out is not None else nullcontext()
    with held, Bar() as bar, bar.stage("measuring"):
        rows = run_stats(
            sources,
            [Pipeline.parse(one) for one in spec],
            request_of("", options),
            StatsOptions(**given(StatsOptions, options)),
            parser=options["parser"],
            parses=options["parses"],
        )
        if out is not None:
            write_table(rows, out)
    if out is not None:
        echo(f"{out}: {counted(len(rows), 'row')}", err=as_json)
    if as_json:
        for row in rows:
            echo(json.dumps(row, ensure_ascii=False))
    else:
        _print(rows)


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a column for each language; figures that none has are left out."""
    from derivlang.distance.measure import ALL_MEANINGS

    table = [["", *(str(row["language"]) for row in rows)]]
    for name, what in ALL_MEANINGS.items():
        if any(row.get(name) is not None for row in rows):
            table.append([what, *(_shown(row.get(name)) for row in rows)])
    wide = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        cells = [f"{line[0]:<{wide[0]}}", *(f"{cell:>{width}}" for cell, width in zip(line[1:], wide[1:], strict=True))]
        echo("  ".join(cells).rstrip())


def _shown(value: float | int | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
