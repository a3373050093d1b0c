"""A file of counts (grammar/counts.py): the same treebanks give the same bytes, so it needs no recipe beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from derivlang.commands.grammar_file import check_out
from derivlang.engine.watch import FileStamp, unchanged
from derivlang.grammar.counts import count, text_of
from derivlang.grammar.settings import GrammarCountOptions
from derivlang.store.files import held_file, write_texts


def count_file(
    treebanks: Sequence[Path], out: Path, options: GrammarCountOptions, warn: Callable[[str], None]
) -> dict[str, Any]:
    """Count the orders of treebanks, write them to `out`, and return what `count_orders` returns.

    Raise StoreError if the file is there with another content, and `options.force` is not set.
    """
    check_out(out, treebanks, "a file of counts")
    with held_file(out, f"grammar count {treebanks[0]}", treebanks, options, warn=warn):
        with unchanged({path: FileStamp.of(path) for path in treebanks}):
            about = {
                "language": options.language,
                "treebanks": ", ".join(path.name for path in treebanks),
                "licence": options.licence,
            }
            counts = count(treebanks, {key: value for key, value in about.items() if value})
        write_texts(out, {out.name: text_of(counts)}, replace=options.force)
    return {
        "out": str(out),
        "sentences": int(counts.about["sentences"]),
        "relations": len({relation for relation, _ in counts.sides}),
        "pairs": len(counts.pairs),
        "fingerprint": counts.fingerprint,
    }
