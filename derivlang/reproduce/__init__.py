"""Reproduce a paper's study with one command: data, runs, evaluation, report."""
