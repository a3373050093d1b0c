"""`derivlang stats` and `match`: how far derived languages are from their source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derivlang.cli.generated import as_json, command_line
from derivlang.cli.messages import echo
from derivlang.cli.types import source_argument
from derivlang.commands.distance import FindMatch, Stats
from derivlang.core.errors import UsageError
from derivlang.core.messages import counted
from derivlang.core.settings import replaces, setting
from derivlang.formats.places import OptionalPath

if TYPE_CHECKING:
    from derivlang.distance.match import Match
    from derivlang.distance.measure import Figures

_WIDTH = 120  # of a line of the table


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _WrittenStats(Stats):
    """The command with the files that it writes."""

    out: OptionalPath = setting(
        None, "Parquet file to write, with a row for each language.", also="-o", file=True, writes=True,
    )  # fmt: skip
    plot: OptionalPath = setting(
        None, "Picture to write (.svg, .png or .pdf), with a row for each language.", file=True, writes=True,
    )  # fmt: skip
    force: bool = replaces(only_with="--out, --plot")

    def __call__(self) -> list[Figures]:
        from derivlang.distance.measure import write_table
        from derivlang.store.export import refuse_other_suffix
        from derivlang.store.files import held_file

        out, plot = self.out, self.plot
        writers: dict[Path, Callable[..., None]] = {}
        if out is not None:
            refuse_other_suffix("a Parquet table", [".parquet"], out)
            writers[out] = write_table
        if plot is not None:
            from derivlang.distance.plot import check_plot, write_plot

            check_plot(plot)
            if out is not None and out.resolve() == plot.resolve():
                fix = "give the picture a name of its own"
                raise UsageError(f"{plot} is the file of -o, too", where="--plot", fix=fix, id="usage")
            writers[plot] = partial(write_plot, folders=self.names)
        with ExitStack() as held:
            for path in writers:
                held.enter_context(held_file(path, f"stats of {', '.join(self.names)}", self.spec, self.changed()))
            rows = super().__call__()
            for path, write in writers.items():
                write(rows, path, force=self.force)
        for path in writers:
            echo(f"{path}: {counted(len(rows), 'language')}", err=as_json())
        return rows


def _print_stats(asked: Stats, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a column for each language, below each other what is wider than a line; figures that none has are left out.

    Equal languages of several sets have the names of their folders.
    """
    from derivlang.distance.measure import ALL_MEANINGS, labels

    table = [["", *labels(rows, asked.names)]]
    for name, what in ALL_MEANINGS.items():
        if any(row.get(name) is not None for row in rows):
            table.append([what, *(_shown(row.get(name)) for row in rows)])
    wide = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    blocks: list[list[int]] = [[]]
    for column in range(1, len(wide)):
        if sum(2 + wide[one] for one in (*blocks[-1], column)) > _WIDTH - wide[0] and blocks[-1]:
            blocks.append([])
        blocks[-1].append(column)
    for number, block in enumerate(blocks):
        for line in ([[""] * len(wide)] if number else []) + table:
            cells = [f"{line[0]:<{wide[0]}}", *(f"{line[column]:>{wide[column]}}" for column in block)]
            echo("  ".join(cells).rstrip())


def _shown(value: float | int | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


_WrittenStats.__doc__ = Stats.__doc__
stats_command = command_line(
    _WrittenStats,
    "stats",
    _print_stats,
    arguments=[source_argument("sources", nargs=-1)],
    json_help="Print the figures as JSON, a line for each language.",
    last=("parser", "parses"),
)


def _show_match(asked: FindMatch, found: Match) -> None:
    echo(found.spec)
    distance = "Kendall's tau" if found.by == "tau" else "3-local entropy"
    interval = "" if found.low is None else f", 95 % interval {found.low:.4g} to {found.high:.4g}"
    echo(
        f"{distance} {found.reached:.3f}, of {asked.spec} {found.wanted:.3f}, in {found.units:,} sentences; "
        f"{found.parameter} {found.value:g}{interval}",
        err=True,
    )


match_command = command_line(
    FindMatch, "match", _show_match, arguments=[source_argument()], json_of=asdict, last=("parser", "parses")
)
