"""`derivlang stats`: how far derived languages are from their source, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, find_options, parser_options, request_of, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import OUT_FILE, completes
from derivlang.core.dependencies import OptionNeeds
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import given
from derivlang.distance.settings import StatsOptions
from derivlang.store.settings import FileOptions


@click.command("stats", cls=HeadedCommand, no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, shell_complete=completes("source"))
@spec_option("Transforms to measure on one source, without a set; may be repeated.", multiple=True)
@settings_options(StatsOptions)
@option("-o", "--out", type=OUT_FILE, help="Parquet file or URL to write, with a row for each language.")
@option("--plot", type=OUT_FILE, help="Picture or URL to write (.svg, .png or .pdf), with a row for each language.")
@settings_options(FileOptions, needs={"force": OptionNeeds(only_with="--out, --plot")})
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, a line for each language.")
@parser_options
@find_options
def command(
    sources: tuple[str, ...], spec: tuple[str, ...], out: Path | None, plot: Path | None, as_json: bool, **options: Any
) -> None:
    """Measure how far derived languages are from their source: derived sets, or transforms of a source with --t.

    Kendall's tau, words moved, changed, inserted and deleted, dependency length, vocabulary shared, and local entropy:
    how well a word is predicted from the one to four words before it. With --tokenizer also the sub-words shared.

    \b
    derivlang stats OUT
    derivlang stats --t inv --t shuffle:local=3 --t shuffle demo --plot distances.svg
    """
    from derivlang.distance.measure import write_table
    from derivlang.distance.run import run_stats
    from derivlang.pipeline import Pipeline
    from derivlang.store.files import held_file

    writers: dict[Path, Callable[..., None]] = {}
    if out is not None:
        writers[out] = write_table
    if plot is not None:
        from derivlang.distance.plot import check_plot, write_plot

        check_plot(plot)
        if out is not None and out.resolve() == plot.resolve():
            raise UsageError(
                f"{plot} is the file of -o, too", where="--plot", fix="give the picture a name of its own", id="usage"
            )
        writers[plot] = write_plot
    told = f"stats of {', '.join(sources)}"
    with ExitStack() as held, Bar() as bar, bar.stage("measuring"):
        for path in writers:
            held.enter_context(held_file(path, told, sources, spec, str(options)))
        rows = run_stats(
            sources,
            [Pipeline.parse(one) for one in spec],
            request_of("", options),
            StatsOptions(**given(StatsOptions, options)),
            parser=options["parser"],
            parses=options["parses"],
        )
        for path, write in writers.items():
            write(rows, path, force=options["force"])
    for path in writers:
        echo(f"{path}: {counted(len(rows), 'language')}", err=as_json)
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
