"""Fuzzing of every reader of bytes that derivlang did not write.

    mutate.py    damages a small real file: its bytes, or its structure (lines, JSON, Parquet, the content of a gz file)
    readers.py   the registry: each reader with its seeds and the functions that read
    harness.py   runs inputs with bounded time and memory, and says what went wrong

    python -m tests.fuzz --inputs 100000           # the long run; prints a table
    python -m tests.fuzz manifest --inputs 2000    # one reader

Inputs are a function of (reader, seed, number), so that a fault is repeated by its number: `--first 1234 --inputs 1`.
"""
