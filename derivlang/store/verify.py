"""Verify a derived folder: its files, their hashes and counts, and every row.

Each row is checked twice. Its stored source is derived again, and the result is compared with the row, column by
column. Its derived words are undone, and the result is compared with the stored source. The report names the first row
that differs, and the column that contradicts the others. If running text was read whole, the undone text is also
compared with the hashes of the source files.

Three kinds of damage are visible only in the hash of the shard: a changed label that moves with its word and is stored
once, two exchanged rows of one document, and a changed `gaps` where the undone text is not compared with the source
(compressed files, JSON Lines, other encodings than UTF-8, `--limit`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import decoded, differs, to_arrow, to_numpy
from derivlang.core.articles import RowCounts
from derivlang.core.batch import Batch
from derivlang.core.errors import DerivlangError, LayerError, StoreError, parse_errors
from derivlang.core.from_table import from_table
from derivlang.core.keys import string_buffers
from derivlang.core.lexicon import Lexicon
from derivlang.core.order import Order
from derivlang.core.plugins import is_own
from derivlang.core.schema import left_out
from derivlang.core.seal import is_intact
from derivlang.core.to_table import to_table
from derivlang.formats.spec_paths import FOLDER as SPEC_FILES
from derivlang.pipeline import Pipeline
from derivlang.store.disk import LOCK, STAGE
from derivlang.store.manifest import CARD, NAME, Derived, data_folder, shards_of
from derivlang.store.record import faults, file_hash
from derivlang.store.set_plan import begun_plan
from derivlang.store.shards import describe, read_shard
from derivlang.store.storage import store_at

# The column to report for each id of an error, if the source of a row cannot be rebuilt.
_COLUMN_OF = {"row-lengths": "tokens", "row-order": "order", "order": "order", "row-sentences": "sentences"}
_PLAIN_TEXT = re.compile(r".*\.(txt|tokens)")
Problem = dict[str, Any]
Batches = tuple[Batch, Batch]  # the source of some rows, and what is derived of it


def verify(folder: Path) -> dict[str, Any]:
    """Verify a set.

    Returns {"ok", "out", "splits": {name: {"rows", "tokens"}}, "problems": [{"file", "row", "column", "what"}],
    "notes": [{"file", "what"}]}. `problems` has at most one entry per file, its first problem. `notes` lists unusual
    things that do not affect the data, such as an edited card. Raises StoreError if there is no readable manifest.
    """
    derived = Derived(folder, changed=True)
    problems = []
    for name in foreign_files(derived):
        why = ": the manifest does not list it" if "/" in name else ""
        problems.append(_problem(name, f"is not a file of the set{why}"))
    notes = notes_on_files(derived)
    if not derived.has_fingerprint():
        told = "the fingerprint does not match the spec, the lexicon and the rules of this version"
        problems.append(_problem(derived.manifest["lexicon"] or NAME, told))
    splits: dict[str, Any] = {}
    for split in derived.splits:
        check = _SplitCheck(derived, split)
        problems += check.problems()
        splits[split] = {"rows": check.rows, "tokens": check.counts.tokens}
    if not is_intact(derived.manifest) and all(problem["file"] != NAME for problem in problems):
        problems.append(_problem(NAME, "its hash does not match its content: a value was changed"))
    return {"ok": not problems, "out": str(folder), "splits": splits, "problems": problems, "notes": notes}


class _SourceText:
    """The undone text of a split, to be compared with the hashes of its source files.

    The comparison is made only for uncompressed UTF-8 text files that were read without a limit. For any other source,
    there are no files here, and nothing is compared.
    """

    def __init__(self, derived: Derived, split: str):
        manifest = derived.manifest
        files = [file for file in manifest["source"]["files"] if file.get("split") == split]
        is_compared = (
            derived.schema.running
            and manifest["source"]["format"] == "text"
            and derived.is_utf8
            and manifest.get("limit", 0) is None
            and all(_PLAIN_TEXT.fullmatch(file["name"]) and "bytes" in file for file in files)
        )
        self._files = files if is_compared else []
        self._digests = [hashlib.sha256() for _ in self._files]
        self._size = 0

    def add(self, source: Batch) -> None:
        """Add the text of the next batch. The files of a split follow each other in its rows.

        Files of 5 and 3 bytes, and batches of 4 and 4 bytes: the first batch goes to the first file; the second gives
        its first byte to the first file and the other three to the second.
        """
        if not self._files:
            return
        data, offsets = string_buffers(source.texts())
        text, start = data[offsets[0] : offsets[-1]].tobytes(), -self._size
        self._size += len(text)
        for file, digest in zip(self._files, self._digests, strict=True):
            digest.update(text[max(start, 0) : max(start + file["bytes"], 0)])
            start += file["bytes"]

    def fault(self) -> str | None:
        """Return what is wrong with the text that was added, or None. Called after the last batch."""
        if self._size != sum(file["bytes"] for file in self._files):
            # A file of only white space has no rows, so its bytes are missing here. Which of several files that
            # is cannot be known, so the length of several files proves nothing.
            return "the text undone is longer or shorter than the source" if len(self._files) == 1 else None
        if any(digest.hexdigest() != file["sha256"] for file, digest in zip(self._files, self._digests, strict=True)):
            return "the text undone is not the source's text: its hash differs"
        return None


class _SplitCheck:
    """The check of a split, row group by row group. Only right rows count.

    pipeline: it has derived the rows so far.
    """

    def __init__(self, derived: Derived, split: str):
        self.derived, self.split = derived, split
        self.pipeline, self.lexicon = derived.pipeline.begin(), derived.lexicon
        self.rows, self.counts, self.text = 0, RowCounts(), _SourceText(derived, split)

    def problems(self) -> list[Problem]:
        """Return the first problem of each shard; if there is none, the first of the split's counts and its text."""
        found = [problem for shard in self.derived.shards(self.split) for problem in self._check_shard(shard)]
        told = self.derived.manifest["splits"][self.split]
        true = {**asdict(self.counts), "articles": self.counts.articles or 0}
        for name in ("documents", "sentences", "tokens", "articles"):
            if not found and told.get(name) not in (None, true[name]):
                found.append(_problem(NAME, f"{true[name]} {name}, but the manifest says {told[name]}"))
        if not found and (what := self.text.fault()):
            found.append(_problem(f"data/{self.split}-*.parquet", what))
        return found

    def _check_shard(self, shard: dict[str, Any]) -> Iterator[Problem]:
        """Yield the first problem of a shard. A wrong row is reported rather than the hash that it also changes."""
        file, path = shard["file"], self.derived.folder / shard["file"]
        if not path.is_file():
            yield _problem(file, "the file is missing")
            return
        is_intact, rows, tokens = file_hash(path) == shard["sha256"], self.rows, self.counts.tokens
        try:
            for table in read_shard(path):
                problem = self._check_rows(file, self.rows - rows, table) if table.num_rows else None
                if problem is not None:
                    yield problem
                    return
                self.rows += table.num_rows
        except DerivlangError as error:
            yield _problem(file, error.what)
            return
        if not is_intact:
            yield _problem(file, "the file's hash is not the one in the manifest")
            return
        true = {"rows": self.rows - rows, "words": self.counts.tokens - tokens, "bytes": path.stat().st_size}
        for name in (name for name in true if shard[name] != true[name]):
            yield _problem(NAME, f"{file} has {true[name]} {name}, but the manifest says {shard[name]}")
            return

    def _check_rows(self, file: str, first_row: int, table: pa.Table) -> Problem | None:
        """Check a row group, and count its rows if they are right. Returns the first problem, or None."""
        pipeline = self.pipeline.copy()
        found = self._try_rows(self.pipeline, file, first_row, table)
        if isinstance(found, dict):
            return found
        if not all(map(is_own, pipeline.transforms)):  # ours have tests
            alone = self._try_rows(pipeline, file, first_row, table.slice(0, 1))
            if isinstance(alone, dict):
                return {**alone, "what": "derived by itself it is another row: a plug-in looks beyond the sentence"}
        schema, (source, image) = self.derived.schema, found
        several = schema.running or any(field.kind == "answers" for field in schema.fields)
        steps = np.diff(source.documents, prepend=self.counts.last)
        if (back := np.flatnonzero(steps < (0 if several else 1))).size:
            what = "a document's rows come before the rows of an earlier one: rows were exchanged"
            return _problem(file, what, first_row + int(back[0]), "document")
        self.text.add(source)
        self.counts.add(source, image)
        return None

    def _try_rows(self, pipeline: Pipeline, file: str, first_row: int, table: pa.Table) -> Problem | Batches:
        """Return the batches of the rows, or the problem of the first wrong row. pipeline: at the first row."""
        unmoved = pipeline.copy()
        try:
            with parse_errors(file, "row", error=LayerError, id="row"):
                found = self._compare(pipeline, table)
        except DerivlangError as error:
            if table.num_rows > 1 and error.id != "missing-column":  # some row cannot be rebuilt: find it by bisection
                half = table.num_rows // 2
                for start, part in ((first_row, table.slice(0, half)), (first_row + half, table.slice(half))):
                    found = self._try_rows(unmoved, file, start, part)
                    if isinstance(found, dict):
                        return found
            return _problem(file, error.what, first_row, _COLUMN_OF.get(error.id))
        return {**found, "file": file, "row": first_row + found["row"]} if isinstance(found, dict) else found

    def _compare(self, pipeline: Pipeline, table: pa.Table) -> Problem | Batches:
        """Compare rows with the rows that their stored source gives.

        Returns the source and the derived batch, or the problem of the first row that differs, or of a whole column.
        """
        derived = self.derived
        self._check_columns(table, _always(derived))
        source, image, order = from_table(table, derived.schema, self.lexicon, stored_source=True)
        expected = self._derive_again(pipeline, source)
        self._check_columns(table, set(expected))
        wrong: dict[str, int] = {}
        for name in table.column_names:
            if name not in expected:
                return _problem("", "the column is not one of the set", 0, name)
            ours, theirs = decoded(table[name].combine_chunks()), decoded(expected[name])
            if describe(ours.type) != describe(theirs.type):
                return _problem("", f"the column is {ours.type}, not {theirs.type}", 0, name)
            rows = np.flatnonzero(differs(ours, theirs))
            if rows.size:
                wrong[name] = int(rows[0])
        if not order.n_deleted and self.lexicon.injective:  # the derived words must suffice to find the source
            rows = np.flatnonzero(_not_undone(self.lexicon, source, image, order))
            if rows.size:
                wrong.setdefault("tokens", int(rows[0]))
        if not wrong:
            return source, image
        row = min(wrong.values())
        column = _to_blame(derived, table.slice(row, 1), [name for name in wrong if wrong[name] == row])
        return _problem("", "not what the source and the pipeline give", row, column)

    def _check_columns(self, table: pa.Table, names: set[str]) -> None:
        """Raise LayerError if one of the columns is missing and the manifest does not list it as left out."""
        dropped = left_out(self.derived.schema, self.derived.manifest["columns_left_out"])
        for name in sorted(names - dropped - set(table.column_names)):
            raise LayerError(f"the column {name} is missing", id="missing-column")

    def _derive_again(self, pipeline: Pipeline, source: Batch) -> dict[str, pa.Array]:
        """Return the output columns of a source batch."""
        policies = self.derived.policies
        again = pipeline.derive(source, self.lexicon, policies=policies, split=False)
        return to_table(
            again.source,
            again.derived,
            again.order,
            self.derived.schema,
            self.lexicon,
            has_order=pipeline.has_order,
            exact=pipeline.is_permutation,
            policies=policies,
        )


def _always(derived: Derived) -> set[str]:
    """Return the columns that every set of the schema has."""
    schema = derived.schema
    gaps = ("gaps",) if schema.running or any(side.words is None for side in schema.sides) else ()
    parts = {side.column(part) for side in schema.sides for part in ("source", "tokens", "order", "sentences", *gaps)}
    return {"document", "key"} | parts | {field.column for field in schema.fields}


def _not_undone(lexicon: Lexicon, source: Batch, image: Batch, order: Order) -> Any:
    """Return bool[R]: the rows whose stored source differs from the derived words under inverse order and lexicon."""
    types = lexicon.invert().apply(image.types)
    back = types.take(to_arrow(image.words.take(order.positions(), mode="clip")))
    same = to_numpy(pc.equal(back, source.strings()))
    bad = np.concatenate([[0], np.cumsum(~same)])
    units = bad[source.unit_words[1:]] > bad[source.unit_words[:-1]]
    return units[source.records].any(axis=1)


def _to_blame(derived: Derived, row: pa.Table, columns: list[str]) -> str:
    """Return the column that contradicts the others in a wrong row. columns: those that differ from the expected ones.

    The key decides whether the source was changed: it is a hash of the source words. If the derived words give back the
    source that the key belongs to, the stored source is wrong. Otherwise it is the order, the tokens, or the first
    column that differs.
    """
    sides = derived.schema.sides
    wanted = [side.column(part) for part in ("order", "tokens") for side in sides]
    if "key" in columns and "key" in row.column_names:
        if columns == ["key"]:
            wanted = ["key"]
        # A lexicon without an inverse cannot give back the source. Then a key that differs together with other
        # columns means that the stored source was changed.
        one_way = not derived.lexicon.injective and len(columns) > 1
        if one_way or _undone_key(derived, row) == row["key"][0].as_py():
            changed = [side for side in sides if side.column("tokens") in columns]
            return (changed or sides)[0].column("source")
    return next(name for name in [*wanted, *map(str, row.column_names)] if name in columns)


def _undone_key(derived: Derived, row: pa.Table) -> int | None:
    """Return the key of the source that follows from only the derived words, or None if they do not determine it."""
    try:
        source, _, _ = from_table(row, derived.schema, derived.lexicon)
    except (LayerError, ValueError, IndexError):
        return None
    return int(source.record_keys[0])


def _problem(file: str, what: str, row: int | None = None, column: str | None = None) -> Problem:
    return {"file": file, "row": row, "column": column, "what": what}


# Files


def foreign_files(derived: Derived) -> Iterator[str]:
    """Yield the names of files and folders that are not of the set; hidden ones are nobody's."""
    own, data = derived.own_files(), data_folder(derived.manifest)
    known = {*own, *(name.partition("/")[0] for name in own), data}
    with suppress(StoreError):  # a store where no set can be made
        known.add(begun_plan(store_at(derived.folder)).get("data", data))  # of a set that is about to replace this one
    for top in ("", f"{data}/", f"{SPEC_FILES}/"):
        if not top or (top[:-1] in known and (derived.folder / top).is_dir()):
            names = sorted(path.name for path in (derived.folder / top).iterdir() if path.name[0] != ".")
            yield from (f"{top}{name}" for name in names if f"{top}{name}" not in known)


def notes_on_files(derived: Derived) -> list[dict[str, str]]:
    """Return what is unusual about the files and does not affect the data: leftovers of a run, the card's state."""
    folder = derived.folder
    stopped = "belongs to a run that was stopped or is still running"
    notes = [{"file": name, "what": stopped} for name in (STAGE, LOCK) if (folder / name).exists()]
    if what := state_of_card(derived):
        notes.append({"file": CARD, "what": f"the dataset card {what}"})
    return notes


def state_of_card(derived: Derived) -> str:
    """Return "is missing" or "was edited" of a card that is not as the set was made with it, else ""."""
    card = derived.folder / CARD
    if not card.is_file():
        return "is missing"
    return "was edited" if derived.manifest.get("card", file_hash(card)) != file_hash(card) else ""


def damaged_shards(derived: Derived) -> Iterator[tuple[str, str]]:
    """Yield the name of each shard that is not the one that the manifest lists, and what is wrong with it."""
    shards = {shard["file"]: (shard["bytes"], shard["sha256"]) for shard in shards_of(derived.manifest)}
    present = {name: derived.folder / name for name in shards if (derived.folder / name).is_file()}
    return faults(shards, present)
