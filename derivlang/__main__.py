"""Run the command line: `python -m derivlang`."""

from derivlang.cli.main import run

run()
