"""`derivlang match`: the language of a family that is as far from the source as another one."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from derivlang.cli.dependent import option
from derivlang.cli.headings import HeadedCommand
from derivlang.cli.messages import echo
from derivlang.cli.options import Bar, find_options, parser_options, request_of, spec_option
from derivlang.cli.settings import settings_options
from derivlang.cli.types import completes
from derivlang.core.settings import given
from derivlang.distance.settings import MatchOptions


@click.command("match", cls=HeadedCommand, no_args_is_help=True)
@click.argument("source", shell_complete=completes("source"))
@spec_option("Transforms to match.", required=True)
@settings_options(MatchOptions)
@option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@parser_options
@find_options
def command(source: str, spec: str, as_json: bool, **options: Any) -> None:
    """Find the language of a family that is as far from SOURCE as another one, by Kendall's tau or local entropy.

    A language may be hard for a model only because it is far from the source. The spec that is printed makes a control
    that is as far: `mallows` with its theta, `shuffle` with its rate, or `flip` with its p.

    \b
    derivlang match --t stride:2 demo
    derivlang match --t inv:from=random --family shuffle demo
    """
    from derivlang.distance.run import run_match
    from derivlang.pipeline import Pipeline

    with Bar() as bar, bar.stage("matching"):
        found = run_match(
            Pipeline.parse(spec),
            request_of(source, options),
            MatchOptions(**given(MatchOptions, options)),
            parser=options["parser"],
            parses=options["parses"],
        )
    if as_json:
        echo(json.dumps(asdict(found), ensure_ascii=False))
        return
    echo(found.spec)
    distance = "Kendall's tau" if found.by == "tau" else "3-local entropy"
    interval = "" if found.low is None else f", 95 % interval {found.low:.4g} to {found.high:.4g}"
    echo(
        f"{distance} {found.reached:.3f}, of {spec} {found.wanted:.3f}, in {found.units:,} sentences; "
        f"{found.parameter} {found.value:g}{interval}",
        err=True,
    )
