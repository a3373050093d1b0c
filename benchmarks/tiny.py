"""Stand-ins of a few kB for the corpora of the benchmarks, made from the sentences of the built-in `demo`.

`run.py --tiny` reads them, so that a test can run every benchmark in seconds and without a corpus.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

_DEMO = Path(__file__).resolve().parents[1] / "derivlang" / "sources" / "demo"


def corpora(folder: Path) -> Path:
    """Write the stand-ins where the benchmarks look for the corpora: WikiText-2, novels, a treebank, a gold set
    with bitext."""
    treebank = folder / "ud" / "UD_English-Demo"
    treebank.mkdir(parents=True)
    for file in sorted(_DEMO.glob("demo-ud-*.conllu")):
        shutil.copy(file, treebank)
    sentences = [sentence for file in sorted(treebank.iterdir()) for sentence in _sentences(file.read_text("utf-8"))]
    text = "".join(f" {' '.join(words)} \n" for words in sentences)
    _write(folder / "text" / "wikitext-2" / "wiki.train.tokens", text.encode())
    _write(folder / "text" / "eltec-eng" / "eltec-eng.txt.gz", gzip.compress(text.encode()))
    gold = folder / "align" / "en-fr"
    _write(gold / "test.en", text.encode())
    _write(gold / "test.fr", text.upper().encode())
    links = (" ".join(f"{i}-{i}" for i in range(len(words))) for words in sentences)
    pairs = "".join(f"{line.strip()}\t{line.strip().upper()}\n" for line in text.splitlines())
    _write(folder / "align" / "bitext" / "tatoeba" / "en-fr.tsv.gz", gzip.compress(pairs.encode()))
    _write(gold / "test.gold", "".join(f"{line}\n" for line in links).encode())
    return folder


def _sentences(conllu: str) -> list[list[str]]:
    """The words of each sentence."""
    blocks = (block.splitlines() for block in conllu.strip().split("\n\n"))
    return [[line.split("\t")[1] for line in block if line.split("\t")[0].isdigit()] for block in blocks]


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
