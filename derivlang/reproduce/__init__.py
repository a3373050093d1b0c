"""A paper's study as one command: data, runs, evaluation, report."""
