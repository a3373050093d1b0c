"""Generated sources: text that is drawn, not read. `source:dyck=64:p=0.49:n=5000` is a source like any other.

    dyck      brackets that match, nested or crossing, with trees
    zipf      independent words of a Zipf or uniform vocabulary
    pcfg      sentences of a probabilistic grammar in a file, with their constituents
    resample  words of another source, drawn by their frequency

A row is a function of the source's parameters, its seed, its split and its number (`base.py`). So a task makes only its
own rows, and neither the number of workers nor the size of the shards changes a row.
"""
