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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from derivlang.core.arrow import decoded, differs, to_arrow, to_numpy
from derivlang.core.articles import ArticleCount
from derivlang.core.batch import Batch
from derivlang.core.errors import DerivlangError, LayerError, StoreError, parse_errors
from derivlang.core.from_table import from_table
from derivlang.core.keys import string_buffers
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
        seen = _Seen(_SourceText(derived, split), derived.pipeline.begin())
        of_split = [problem for shard in derived.shards(split) for problem in _check_shard(derived, shard, seen)]
        if not of_split:
            of_split += _check_counts(derived.manifest["splits"][split], seen)
        if not of_split and (what := seen.text.fault()):
            of_split.append(_problem(f"data/{split}-*.parquet", what))
        splits[split] = {"rows": seen.rows, "tokens": seen.tokens}
        problems += of_split
    if not is_intact(derived.manifest) and all(problem["file"] != NAME for problem in problems):
        problems.append(_problem(NAME, "its hash does not match its content: a value was changed"))
    return {"ok": not problems, "out": str(folder), "splits": splits, "problems": problems, "notes": notes}


class _SourceText:
    """The undone text of a split, to be compared with the hashes of its source files.

    The comparison is made only for uncompressed UTF-8 text files that were read without a limit. For any other source,
    `add` and `fault` do nothing.
    """

    def __init__(self, derived: Derived, split: str):
        manifest = derived.manifest
        files = [file for file in manifest["source"]["files"] if file.get("split") == split]
        self._told = (
            derived.schema.running
            and manifest["source"]["format"] == "text"
            and derived.is_utf8
            and manifest.get("limit", 0) is None
            and all(_PLAIN_TEXT.fullmatch(file["name"]) and "bytes" in file for file in files)
        )
        self._ends = np.cumsum([file["bytes"] for file in files]).tolist() if self._told else []
        self._hashes = [file["sha256"] for file in files] if self._told else []
        self._digests = [hashlib.sha256() for _ in self._ends]
        self._size = 0

    def add(self, source: Batch) -> None:
        """Add the text of the next batch. The files of a split follow each other in its rows.

        Files of 5 and 3 bytes, so ends [5, 8], and batches of 4 and 4 bytes: the first batch goes to the first file;
        the second gives its first byte to the first file and the other three to the second.
        """
        if not self._told:
            return
        data, offsets = string_buffers(source.texts())
        text = data[offsets[0] : offsets[-1]].tobytes()
        begin = self._size
        self._size += len(text)
        for end, digest in zip(self._ends, self._digests, strict=True):
            if begin < end and len(text):
                digest.update(text[: end - begin])
                text = text[end - begin :]
                begin = min(end, self._size)

    def fault(self) -> str | None:
        """Return what is wrong with the text that was added, or None. Called after the last batch."""
        if not self._told or not self._ends:
            return None
        if self._size != self._ends[-1]:
            # A file of only white space has no rows, so its bytes are missing here. Which of several files that
            # is cannot be known, so the length of several files proves nothing.
            return "the text undone is longer or shorter than the source" if len(self._ends) == 1 else None
        if [digest.hexdigest() for digest in self._digests] != self._hashes:
            return "the text undone is not the source's text: its hash differs"
        return None


class _Seen:
    """What has been seen of a split so far: counts, its text, and the number of the last document (-1: none yet).

    pipeline: it has derived the rows so far.
    """

    def __init__(self, text: _SourceText, pipeline: Pipeline):
        self.text, self.pipeline = text, pipeline
        self.rows = self.documents = self.sentences = self.tokens = 0
        self.last_document = -1
        self.articles = ArticleCount()


def _check_shard(derived: Derived, shard: dict[str, Any], seen: _Seen) -> list[Problem]:
    """Return the first problem of a shard, or []. A wrong row is reported rather than the hash that it also changes."""
    file, path = shard["file"], derived.folder / shard["file"]
    if not path.is_file():
        return [_problem(file, "the file is missing")]
    intact = file_hash(path) == shard["sha256"]
    rows, tokens = seen.rows, seen.tokens
    try:
        for table in read_shard(path):
            problem = _check_rows(derived, file, seen.rows - rows, table, seen)
            if problem is not None:
                return [problem]
            seen.rows += table.num_rows
    except DerivlangError as error:
        return [_problem(file, error.what)]
    if not intact:
        return [_problem(file, "the file's hash is not the one in the manifest")]
    told = {name: shard[name] for name in ("rows", "words", "bytes")}
    true = {"rows": seen.rows - rows, "words": seen.tokens - tokens, "bytes": path.stat().st_size}
    wrong = [f"{file} has {true[n]} {n}, but the manifest says {told[n]}" for n in told if told[n] != true[n]]
    return [_problem(NAME, wrong[0])] if wrong else []


def _check_counts(entry: dict[str, Any], seen: _Seen) -> list[Problem]:
    """Return the first count of a split that differs from the manifest, or []."""
    counts = {"documents": seen.documents, "sentences": seen.sentences, "tokens": seen.tokens}
    if entry.get("articles") is not None:
        counts["articles"] = seen.articles.count or 0
    wrong = [name for name in counts if entry[name] != counts[name]]
    return [_problem(NAME, f"{counts[n]} {n}, but the manifest says {entry[n]}") for n in wrong[:1]]


def _check_rows(derived: Derived, file: str, first_row: int, table: pa.Table, seen: _Seen) -> Problem | None:
    """Check a row group, and add its rows to the state of the check if they are right.

    Returns the first problem, or None.
    """
    if not table.num_rows:
        return None
    pipeline = seen.pipeline.copy()
    outcome = _try_rows(derived, seen.pipeline, file, first_row, table)
    if isinstance(outcome, Batch) and not all(map(is_own, pipeline.transforms)):  # ours have tests
        alone = _try_rows(derived, pipeline, file, first_row, table.slice(0, 1))
        if not isinstance(alone, Batch):
            return {**alone, "what": "derived by itself it is another row: a plug-in looks beyond the sentence"}
    if isinstance(outcome, Batch):
        seen.text.add(outcome)
        seen.articles.add(outcome)
        return _count(derived, file, first_row, table, seen)
    return outcome


def _try_rows(derived: Derived, pipeline: Pipeline, file: str, first_row: int, table: pa.Table) -> Problem | Batch:
    """Return the source batch of the rows, or the problem of the first wrong row. pipeline: at the first row."""
    unmoved = pipeline.copy()
    try:
        with parse_errors(file, "row", error=LayerError, id="row"):
            row, columns, what, source = _first_difference(derived, pipeline, table)
    except DerivlangError as error:
        if table.num_rows > 1 and error.id != "missing-column":  # some row cannot be rebuilt: find it by bisection
            half = table.num_rows // 2
            for start, part in ((first_row, table.slice(0, half)), (first_row + half, table.slice(half))):
                outcome = _try_rows(derived, unmoved, file, start, part)
                if not isinstance(outcome, Batch):
                    return outcome
        return {"file": file, "row": first_row, "column": _COLUMN_OF.get(error.id), "what": error.what}
    if row is None:
        return source
    column = columns[0] if what else _to_blame(derived, table.slice(row, 1), columns)
    what = what or "not what the source and the pipeline give"
    return {"file": file, "row": first_row + row, "column": column, "what": what}


def _count(derived: Derived, file: str, first_row: int, table: pa.Table, seen: _Seen) -> Problem | None:
    """Count rows that are right. Returns a problem if their document numbers are not in order."""
    documents = to_numpy(table["document"])
    steps = np.diff(documents, prepend=seen.last_document)
    several = derived.schema.running or any(field.kind == "answers" for field in derived.schema.fields)
    if (back := np.flatnonzero(steps < (0 if several else 1))).size:
        row = int(back[0])
        what = "a document's rows come before the rows of an earlier one: rows were exchanged"
        return {"file": file, "row": first_row + row, "column": "document", "what": what}
    seen.documents += int((steps != 0).sum())
    seen.last_document = int(documents[-1])
    for side in derived.schema.sides:
        sentences = to_numpy(pc.list_value_length(table[side.column("sentences")]))
        words = to_numpy(pc.list_value_length(table[side.column("order")]))
        seen.sentences += int(np.where(sentences > 0, sentences // 2, words > 0).sum())
        seen.tokens += int(words.sum())
    return None


def _first_difference(
    derived: Derived, pipeline: Pipeline, table: pa.Table
) -> tuple[int | None, list[str], str, Batch]:
    """Compare rows with the rows that their stored source gives. Returns (row, columns, what, source).

    row: the first row that differs, None if all are right. columns: those that differ in this row. what: the problem,
    if a whole column is wrong (its name or its type), else "". source: the source batch.
    """
    _check_columns(derived, table, _always(derived))
    source, image, order = from_table(table, derived.schema, derived.lexicon, stored_source=True)
    expected = _derive_again(derived, pipeline, source)
    _check_columns(derived, table, set(expected))
    wrong: dict[str, int] = {}
    for name in table.column_names:
        if name not in expected:
            return 0, [name], "the column is not one of the set", source
        ours, theirs = decoded(table[name].combine_chunks()), decoded(expected[name])
        if describe(ours.type) != describe(theirs.type):
            return 0, [name], f"the column is {ours.type}, not {theirs.type}", source
        rows = np.flatnonzero(differs(ours, theirs))
        if rows.size:
            wrong[name] = int(rows[0])
    if not order.n_deleted and derived.lexicon.injective:  # the derived words must suffice to find the source
        rows = np.flatnonzero(_not_undone(derived, source, image, order))
        if rows.size:
            wrong.setdefault("tokens", int(rows[0]))
    if not wrong:
        return None, [], "", source
    row = min(wrong.values())
    return row, [name for name in wrong if wrong[name] == row], "", source


def _always(derived: Derived) -> set[str]:
    """Return the columns that every set of the schema has."""
    schema = derived.schema
    gaps = ("gaps",) if schema.running or any(side.words is None for side in schema.sides) else ()
    parts = {side.column(part) for side in schema.sides for part in ("source", "tokens", "order", "sentences", *gaps)}
    return {"document", "key"} | parts | {field.column for field in schema.fields}


def _check_columns(derived: Derived, table: pa.Table, names: set[str]) -> None:
    """Raise LayerError if one of the columns is missing and the manifest does not list it as left out."""
    missing = names - left_out(derived.schema, derived.manifest["columns_left_out"]) - set(table.column_names)
    if missing:
        raise LayerError(f"the column {min(missing)} is missing", id="missing-column")


def _derive_again(derived: Derived, pipeline: Pipeline, source: Batch) -> dict[str, pa.Array]:
    """Return the output columns of a source batch."""
    again = pipeline.derive(source, derived.lexicon, policies=derived.policies, split=False)
    return to_table(
        again.source,
        again.derived,
        again.order,
        derived.schema,
        derived.lexicon,
        has_order=pipeline.has_order,
        exact=pipeline.is_permutation,
        policies=derived.policies,
    )


def _not_undone(derived: Derived, source: Batch, image: Batch, order: Order) -> Any:
    """Return bool[R]: the rows whose stored source differs from the derived words under inverse order and lexicon."""
    types = derived.lexicon.invert().apply(image.types)
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
    if "key" in columns and "key" in row.column_names:
        undone = _undone_key(derived, row)
        # A lexicon without an inverse cannot give back the source. Then a key that differs together with other
        # columns means that the stored source was changed.
        one_way = not derived.lexicon.injective and len(columns) > 1
        if one_way or (undone is not None and undone == row["key"][0].as_py()):
            for side in derived.schema.sides:
                if side.column("tokens") in columns:
                    return side.column("source")
            return side.column("source")
        if columns == ["key"]:
            return "key"
    for part in ("order", "tokens"):
        for side in derived.schema.sides:
            if side.column(part) in columns:
                return side.column(part)
    return str(next(name for name in row.column_names if name in columns))


def _undone_key(derived: Derived, row: pa.Table) -> int | None:
    """Return the key of the source that follows from only the derived words, or None if they do not determine it."""
    try:
        source, _, _ = from_table(row, derived.schema, derived.lexicon)
    except (LayerError, ValueError, IndexError):
        return None
    return int(source.record_keys[0])


def _problem(file: str, what: str) -> Problem:
    return {"file": file, "row": None, "column": None, "what": what}


# Files


def foreign_files(derived: Derived) -> Iterator[str]:
    """Yield the names of files and folders that are not of the set; hidden ones are nobody's."""
    folder = derived.folder
    own = derived.own_files()
    tops = {name.partition("/")[0] for name in own} | {data_folder(derived.manifest)}
    begun = None
    with suppress(StoreError):  # a store where no set can be made
        begun = begun_plan(store_at(folder)).get("data")  # of a set that is about to replace this one
    for path in sorted(folder.iterdir()):
        if path.name not in tops | {begun} and path.name[0] != ".":
            yield path.name
    for top in (data_folder(derived.manifest), SPEC_FILES):
        if top in tops and (folder / top).is_dir():
            inside = (f"{top}/{path.name}" for path in sorted((folder / top).iterdir()) if path.name[0] != ".")
            yield from (name for name in inside if name not in own)


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
