"""Make the manifest of a changed set, or the record of a changed run, say what is there.

So nothing but the content can show the change.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any


def forge(folder: Path) -> None:
    """Write the sizes and hashes of the shards that are there, and the manifest's own hash."""
    from derivlang.store import manifest as store

    path = folder / "derivlang.json"
    manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for entry in manifest["splits"].values():
        for shard in entry["shards"]:
            data = (folder / shard["file"]).read_bytes()
            shard |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(store.dump(manifest), "utf-8")


def seal(path: Path) -> None:
    """Give a damaged record its own hash, if it is a record and has one."""
    from derivlang.core.seal import HASH, sealed

    try:
        found = json.loads(path.read_text("utf-8"))
        if isinstance(found, dict) and HASH in found:
            path.write_text(json.dumps(sealed(found)), "utf-8")
    except (ValueError, RecursionError):
        return


def forge_run(run: Path) -> None:
    """Write the hashes of a run's files, and of those of its checkpoints, into their records."""
    from derivlang.store.record import below, listed
    from derivlang.training import run_folder
    from derivlang.training.checkpoint import hash_of_weights

    record = json.loads((run / "run.json").read_text("utf-8"))
    if "weights" in record:
        record["weights"] = hash_of_weights(run / "model")
    run_folder.write(run, record)
    for path in run.glob("checkpoints/*/state.json"):
        state = json.loads(path.read_text("utf-8"))
        files = {name: file for name, file in below(path.parent, path.parent).items() if name != path.name}
        path.write_text(json.dumps(state | {"files": listed(files)}), "utf-8")
        seal(path)


def forge_scores(run: Path, name: str) -> None:
    """Give a damaged file of scores its own hash, if it can be read, and evaluation.json the hash of the file."""
    import pyarrow.parquet as pq

    from derivlang.core.seal import HASH, hash_of, sealed
    from derivlang.evaluation.scores import FACTS, _digest
    from derivlang.store.record import listed

    path, record = run / "evaluation" / name, run / "evaluation.json"
    with suppress(Exception):  # of a damaged file, any
        table = pq.read_table(path)
        facts = json.loads(table.schema.metadata[FACTS])
        facts[HASH] = hash_of({**facts, "scores": _digest(table)})
        pq.write_table(table.replace_schema_metadata({FACTS: json.dumps(facts)}), path)
    found = json.loads(record.read_text("utf-8"))
    for entry in (*found["tasks"].values(), *found["measures"].values()):
        if name in entry["files"]:
            entry["files"] |= listed({name: path})
    record.write_text(json.dumps(sealed(found)), "utf-8")


def forge_parser(parser: Path) -> None:
    """Write the hash of a parser's weights into its card."""
    path = parser / "model.json"
    card = json.loads(path.read_text("utf-8"))
    card["weights_sha256"] = hashlib.sha256((parser / "model.npz").read_bytes()).hexdigest()
    path.write_text(json.dumps(card), "utf-8")
    seal(path)
