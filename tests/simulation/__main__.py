"""Print the table of docs/studies/statistics.md: python -m tests.simulation [--studies 4000] [--documents 316]."""

from __future__ import annotations

import argparse

from tests.simulation.studies import DEVIATIONS, DOCUMENTS, SEEDS, SHAPES, coverage

parser = argparse.ArgumentParser(description="Coverage of the report's intervals in simulated studies.")
parser.add_argument("--studies", type=int, default=4000)
parser.add_argument("--documents", type=int, default=DOCUMENTS)
asked = parser.parse_args()
columns = "seeds", "their deviation, points", "n", "mean", "difference", "mean, documents alone", "half-width, points"
print(f"| {' | '.join(columns)} |")
print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
for shape in SHAPES:
    for deviation in DEVIATIONS:
        for n in SEEDS:
            one = coverage(n, deviation, shape, asked.studies, asked.documents)
            told = f"{one.mean:.1f} | {one.difference:.1f} | {one.documents_only:.1f} | {one.half_width:.2f}"
            print(f"| {shape} | {deviation:g} | {n} | {told} |", flush=True)
