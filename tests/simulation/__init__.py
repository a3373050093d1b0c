"""Simulated studies with a known truth, for the intervals of the report: `python -m tests.simulation`."""
