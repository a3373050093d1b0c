"""Tables 1, 2, 4 to 7 of the paper: parallel sentences, dictionaries and shared vocabulary beyond the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, groupby

from derivlang.evaluation.report import published
from derivlang.evaluation.report.cells import Regimes, Row, Table, pair, score_columns
from derivlang.evaluation.report.columns import REGIMES
from derivlang.evaluation.report.published import Line
from derivlang.evaluation.report.settings import Entry, Setting
from derivlang.evaluation.report.variants import NAMES


def sweeps(setting: Setting) -> list[Table]:
    """Return Tables 1 and 6, 7, and 2, 4, 5 of the paper, if this setting has runs for them beyond the defaults."""
    if not setting.published:
        return []
    found = (
        _by_parallel(setting),
        _by_overlap(setting),
        _by_dictionary(setting, published.INV, "Tables 2 and 4"),
        _by_dictionary(setting, published.SYN, "Table 5"),
    )
    return [table for table in found if table is not None]


def _by_parallel(setting: Setting) -> Table | None:
    found = [e for e in setting.find("xlm", published.INV) if not e.variant.parameters and not e.more]
    entries = [(entry.variant.parallel, entry) for entry in found if entry.variant.parallel is not None]
    if all(share == published.PARALLEL for share, _ in entries):
        return None
    rows = _rows(setting, "XLM", entries, published.BY_PARALLEL)
    align = next((e for e in setting.find("align-mlm", published.INV) if e.variant.standard and not e.more), None)
    if align is not None:
        rows += pair(("ALIGN-MLM", "0 %"), align, published.TABLE_3["align-mlm", published.INV], setting.headline)
    note = "Like Tables 1 and 6 of the paper: under trans,inv, by sentence pairs in percent of the sentences."
    return _table(setting, "parallel", "More parallel sentences for XLM", note, "Parallel", rows)


def _by_overlap(setting: Setting) -> Table | None:
    found = [e for e in setting.entries if e.variant.objective == "xlm" and e.variant.standard and not e.more]
    entries = [(e.language.overlap, e) for e in found if e.language.without_overlap == published.INV]
    if all(not share for share, _ in entries):
        return None
    rows = _rows(setting, "XLM", entries, published.BY_OVERLAP)
    note = "Like Table 7 of the paper: under trans,inv. The paper's 25 % were 22.1 % of the types, its 50 % 39.4 %."
    return _table(setting, "overlap", "Shared vocabulary for XLM", note, "Overlap", rows)


def _by_dictionary(setting: Setting, spec: str, tables: str) -> Table | None:
    entries = {
        objective: [
            (entry.variant.coverage, entry)
            for entry in setting.find(objective, spec)
            if not entry.variant.parameters and not entry.more and entry.variant.coverage is not None
        ]
        for objective in _WITH_DICTIONARY
    }
    if all(share == published.COVERAGE for some in entries.values() for share, _ in some):
        return None
    rows: list[Row] = []
    for objective, some in entries.items():
        rows += _rows(setting, NAMES[objective], some, published.BY_DICTIONARY[objective, spec], REGIMES[2:])
    note = f"Like {tables} of the paper, which print only Δ."
    id = f"dictionary-{spec.partition(',')[2]}"
    return _table(setting, id, f"Larger dictionaries under {spec}", note, "Dictionary", rows, REGIMES[2:])


def _rows(
    setting: Setting,
    name: str,
    entries: Sequence[tuple[float, Entry]],
    printed: Mapping[float, Line],
    regimes: Regimes = REGIMES,
) -> list[Row]:
    """Return the rows of entries by their share, with the paper's row below those of its share.

    Several entries of one share also have their options and language in the label, where these differ.
    """
    rows: list[Row] = []
    ordered = sorted(entries, key=lambda one: (one[0], one[1].language))
    for share, group in groupby(ordered, key=lambda one: one[0]):
        alike = [entry for _, entry in group]
        several = [len({entry.options for entry in alike}) > 1, len({entry.language for entry in alike}) > 1]
        for entry in alike:
            told = compress([entry.options, entry.language.spec], several)
            label = ", ".join(filter(None, [f"{share:g} %", *told]))
            rows += pair((name, label), entry, None, setting.headline, regimes)
        _, *paper = pair((name, f"{share:g} %"), None, printed.get(share), setting.headline, regimes)
        rows += paper
    return rows


def _table(
    setting: Setting, id: str, title: str, note: str, label: str, rows: Sequence[Row], regimes: Regimes = REGIMES
) -> Table:
    return Table(id, title, note, ("Objective", label, ""), score_columns(setting.headline, regimes), tuple(rows))


_WITH_DICTIONARY = ("dict-mlm", "align-mlm")
