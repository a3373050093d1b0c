"""Print the table of docs/studies/statistics.md: python -m tests.simulation [--studies 3000] [--units 20 50]."""

from __future__ import annotations

import argparse
from dataclasses import replace

from tests.simulation.studies import ACCURACY, MACRO_F1, ROWS, SEEDS, coverage

parser = argparse.ArgumentParser(description="Coverage of the report's intervals in simulated studies.")
parser.add_argument("--studies", type=int, default=3000)
parser.add_argument("--units", type=int, nargs="+", help="Test sets of so few units, ten seeds that hardly differ.")
asked = parser.parse_args()
columns = (
    "score", "units", "seeds", "deviation", "n", "mean", "difference", "interaction", "only units",
    "alike, no floor", "alike", "half-width",
)  # fmt: skip
print(f"| {' | '.join(columns)} |")
print(f"| --- | ---: | --- |{' ---: |' * (len(columns) - 3)}")
few = [(replace(test, units=units), "normal", 0.1) for test in (ACCURACY, MACRO_F1) for units in asked.units or ()]
for test, shape, deviation in few or ROWS:
    for n in (10,) if few else SEEDS:
        one = coverage(test, shape, deviation, n, asked.studies)
        shares = one.mean, one.difference, one.interaction, one.units_only, one.no_floor, one.alike
        numbers = " | ".join(f"{share:.1f}" for share in shares)
        print(
            f"| {test.name} | {test.units} | {shape} | {deviation:g} | {n} | {numbers} | {one.half_width:.2f} |",
            flush=True,
        )
