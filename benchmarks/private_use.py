"""How many running words of treebanks hold characters for which a script has no letter, by the script's table.

python benchmarks/private_use.py DATA_DIR French-GSD German-GSD …     a row a treebank, as in docs/reference/scripts.md
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrow import string_array
from derivlang.formats import conllu
from derivlang.transforms.scripts import load_script, script_names
from derivlang.transforms.trans import private_share

TABLES = [
    (name, version)
    for name in script_names()
    if name not in ("copy", "private")
    for version in range(1, load_script(name).version + 1)
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("treebanks", nargs="+")
    options = parser.parse_args()
    print("| treebank | words |" + "".join(f" {name} {version} |" for name, version in TABLES))
    print("|---|" + "--:|" * (1 + len(TABLES)))
    for treebank in options.treebanks:
        words: Counter[str] = Counter()
        for path in sorted((options.data_dir / "ud" / f"UD_{treebank}").glob("*.conllu*")):
            for rows in conllu.read(path):
                words.update(rows.table["tokens"].combine_chunks().flatten().to_pylist())
        types, counts = string_array(list(words)), np.array(list(words.values()), np.int64)
        print(f"| {treebank} | {int(counts.sum()):,} |" + "".join(f" {_share(types, counts, *t)} |" for t in TABLES))


def _share(types: pa.Array, counts: np.ndarray[tuple[int], np.dtype[np.int64]], name: str, version: int) -> str:
    percent = private_share(load_script(name, version), types, counts)
    return f"{percent:.2f}"


if __name__ == "__main__":
    main()
