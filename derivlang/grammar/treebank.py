"""Treebanks as families: the data of fitting and scoring.

with_subtypes(families, ("acl:relcl",))     obl:arg becomes obl, acl:relcl stays
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Int32, Int64, offsets_of, positions
from derivlang.core.errors import DataError
from derivlang.formats import conllu
from derivlang.grammar.families import DEMONSTRATIVE, Families, families_of_trees, marked, named, old_labels


def families_of_tables(tables: Iterable[pa.Table], *, punct: bool = False, own: bool = False) -> tuple[Families, int]:
    """Return (all families, the number of sentences) of tables with list columns head, upos, deprel and, maybe, feats.

    own: the tables are one treebank of a grammar's own language, so relations without a subtype are named (`families`).
    """
    heads, offsets, columns = words_of_tables(tables, ("upos", "deprel", "feats"))
    upos, deprel = marked(columns["upos"], columns["deprel"], columns["feats"])
    families, _ = families_of_trees(heads, offsets, upos, deprel, punct=punct)
    return named(families) if own else families, len(offsets) - 1


def words_of_tables(tables: Iterable[pa.Table], names: Collection[str]) -> tuple[Int32, Int64, dict[str, list[str]]]:
    """Return (heads int32[N], offsets of the sentences int64[S + 1], N values of each named column; "_" without it)."""
    heads, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    columns: dict[str, list[str]] = {name: [] for name in names}
    for table in tables:
        head = table["head"].combine_chunks()
        heads.append(head.flatten().to_numpy(zero_copy_only=False).astype(np.int32))
        lengths.append(np.diff(head.offsets.to_numpy()).astype(np.int64))
        for name in names:
            there = name in table.column_names
            columns[name] += table[name].combine_chunks().flatten().to_pylist() if there else ["_"] * len(heads[-1])
    return np.concatenate(heads), offsets_of(np.concatenate(lengths)), columns


def read_families(paths: Iterable[Path], *, punct: bool = False, own: bool = False) -> tuple[Families, int]:
    """Return (all families, the number of sentences) of CoNLL-U files, each as a treebank of its own."""
    parts = [families_of_tables((rows.table for rows in conllu.read(path)), punct=punct, own=own) for path in paths]
    return joined(*(families for families, _ in parts)), sum(n_sentences for _, n_sentences in parts)


def demonstratives(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the lower-case forms of CoNLL-U files that are mostly demonstrative as determiners, sorted.

    They are the DET with the relation det and PronType=Dem: `that these this those`. Left out are forms seen fewer than
    three times, and those with a space.
    """
    seen: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    names = ("tokens", "upos", "deprel", "feats")
    for path in paths:
        _, _, columns = words_of_tables((rows.table for rows in conllu.read(path)), names)
        _, relations = marked(columns["upos"], columns["deprel"], columns["feats"])
        for form, upos, relation in zip(columns["tokens"], columns["upos"], relations, strict=True):
            if upos == "DET" and relation.partition(":")[0] == "det":
                seen[form.lower()] += 1
                of_kind[form.lower()] += relation == DEMONSTRATIVE
    forms = (form for form, count in of_kind.items() if count >= 3 and 2 * count > seen[form])
    return tuple(sorted(form for form in forms if " " not in form))


def check_version(families: Families, labels: str, where: str) -> None:
    """Raise DataError labels-version if labels are to be v2 and v1 relations or tags occur."""
    if labels == "v2" and (old := old_labels(families.tokens)):
        raise DataError(
            f"the labels follow Universal Dependencies version 1: {', '.join(old)}",
            where=where,
            fix="pass --labels v1 to make a grammar of v1 labels, or use a v2 release of the treebank",
            id="labels-version",
        )


def check_labels(families: Families, where: str) -> None:
    """Raise DataError no-labels for words without a tag or a relation, which no grammar can distinguish."""
    missing = [token for token in families.tokens if token.startswith(("_&", "@_&")) or token.endswith("&_")]
    if missing:
        raise DataError(
            f"words have no tag or no relation: {', '.join(sorted(missing)[:3])}",
            where=where,
            fix="use a treebank with UPOS tags and relations, or parse it first",
            id="no-labels",
        )


def joined(*parts: Families) -> Families:
    """Return several sets of families as one."""
    codes: dict[str, int] = {}
    members, lengths = [], []
    for part in parts:
        table = np.array([codes.setdefault(token, len(codes)) for token in part.tokens], np.int32)
        members.append(table[part.members])
        lengths.append(np.diff(part.offsets))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    keys = np.arange(len(offsets) - 1, dtype=np.uint64)
    return Families(offsets, np.concatenate(members), tuple(codes), keys)


def as_they_stand(families: Families) -> Int32:
    """Return int32[M]: the present order of each family, sizes [2, 3] -> [0, 1, 0, 1, 2]."""
    return positions(families.offsets)
