"""A share of the sentence pairs of a derived set, with gold word links, in source order.

    S pairs of a split  ->  the first floor(pS/100 + 1/2) by one keyed ranking, ties by position  ->  in source order

Rates are nested for one seed. A pair is drawn by its source words, not by its position. The set is read by row groups,
once for the keys and once for writing. Memory holds some bytes per pair. Methods, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int64, UInt64, expand_ranges, offsets_of
from derivlang.core.arrow import list_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.keys import draw, text_key
from derivlang.core.version import __version__
from derivlang.lexical.bitext import (
    PairEncoder,
    Pairs,
    by_source,
    files_of,
    holding_space,
    links_of,
    segment_keys,
    segments,
    writing_pairs,
)
from derivlang.lexical.settings import PairOptions, number, portion
from derivlang.store.artifact import check_replaceable
from derivlang.store.files import held_file, is_stream, writing_all
from derivlang.store.manifest import Derived, Loaded, load
from derivlang.store.record import record_text

RULE_VERSION = 1
FORMAT = 1
_TEXT_SUFFIXES = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".pharaoh")


def write_pairs(folder: Path, options: PairOptions) -> dict[str, Any]:
    """Write sentence pairs of a derived set, with a recipe in OUT.recipe.json.

    Return {"out", "files", "pairs", "sentences", "links", "words": {"source", "derived"}, "spaces"}: sentences = pairs
    of the split; spaces = words with a space. With tokenizers there is also "subwords": {"source", "derived",
    "source_unknown", "derived_unknown"}. Raise StoreError if `folder` is not a derived set, DataError if it has no
    pair, UsageError for no pair at this rate, or tokenizers that do not fit. No partial files remain. The output is
    held meanwhile: another process with other options is refused.
    """
    _check(options)
    with held_file(options.out, f"pair of {folder}", options):
        return _choose_and_write(folder, options)


def _choose_and_write(folder: Path, options: PairOptions) -> dict[str, Any]:
    derived = Derived(folder)
    split = derived.choose_split(options.split)
    keys = np.concatenate([np.zeros(0, np.uint64), *(keys for _, _, keys in _groups(derived, split))])
    if not len(keys):
        raise DataError(f"the split {split} has no sentence pair", where=str(folder), id="empty-split")
    n = portion(options.share, len(keys))
    if not n:
        raise UsageError(
            f"{float(options.share):g} % of {len(keys):,} sentence pairs is less than one pair",
            where="--rate",
            id="rate",
        )
    chosen = first_by_key(draw(pair_stream(options.seed), keys, np.zeros(len(keys), np.int64)), n)
    return _write(derived, split, chosen, options, len(keys))


def pair_stream(seed: int) -> np.uint64:
    """Return the stream of draws that rank the pairs."""
    return text_key(f"pair|seed={seed}|rule={RULE_VERSION}")


def first_by_key(draws: UInt64, m: int) -> Int64:
    """Return int64[m]: the positions of the m smallest draws, ascending. Of equal draws the earlier counts as smaller.

    draws [9, 2, 7, 2], m = 3  ->  [1, 2, 3]
    """
    return np.sort(np.argsort(draws, kind="stable")[:m])


# The pairs of a row group, by row, side and sentence: int64[P, 5] as from `segments`, and their content keys.
_Group: TypeAlias = tuple[Loaded, Int64, UInt64]


def _groups(derived: Derived, split: str) -> Iterator[_Group]:
    """Yield all sentence pairs of a split. A unit that successive rows share (the context of questions) counts once."""
    last: tuple[int, list[int]] | None = None
    for loaded in load(derived, split):
        source = loaded.source
        ranges = segments(source, loaded.derived, loaded.order)
        # Units are stored by side: the first side of all rows, then the second.
        # Two rows of two sides: records [[0, 2], [1, 3]]. Read row by row the units are 0 2 1 3, so rank is [0, 2, 1,
        # 3].
        rank = np.empty(len(source.units) - 1, np.int64)
        rank[source.records.ravel()] = np.arange(source.records.size)
        if not derived.schema.running and source.n_records:
            shared, last = _shared(source, last)
            ranges = ranges[~shared[ranges[:, 0]]]
        ranges = ranges[np.argsort(rank[ranges[:, 0]], kind="stable")]
        yield loaded, ranges, segment_keys(source, ranges)


def _shared(source: Batch, last: tuple[int, list[int]] | None) -> tuple[Bool, tuple[int, list[int]]]:
    """Return (bool[U]: units that repeat the units of the previous row and document; last row, for the next group)."""
    keys = source.unit_keys[source.records]
    same = np.zeros(keys.shape, bool)
    same[1:] = (keys[1:] == keys[:-1]) & (source.documents[1:] == source.documents[:-1])[:, None]
    # The first row of a group is compared with the last row of the group before.
    if last is not None and last[0] == source.documents[0]:
        same[0] = keys[0] == np.array(last[1], np.uint64)
    out = np.zeros(len(source.units) - 1, bool)
    out[source.records] = same
    return out, (int(source.documents[-1]), keys[-1].tolist())


def _write(derived: Derived, split: str, chosen: Int64, options: PairOptions, sentences: int) -> dict[str, Any]:
    """Write the chosen pairs of a split, int64[n] ascending positions. sentences: all pairs of the split."""
    out, encoder = options.out, None
    if options.tokenizers is not None:
        encoder = PairEncoder.load(options.tokenizers, derived.pipeline)
    result: dict[str, Any] = {
        "out": str(out),
        "files": [path.name for path in files_of(out, options.format)],
        "pairs": len(chosen),
        "sentences": sentences,
        "links": 0,
        "words": {"source": 0, "derived": 0},
        "spaces": 0,
    }
    aside = not is_stream(out)  # which has no room for a second file
    told, outs = out.with_name(f"{out.name}.recipe.json"), files_of(out, options.format)
    wanted = _recipe(derived, split, options, encoder)
    if not options.force:
        check_replaceable(outs, told, wanted, noun="choice of pairs")
    if encoder is not None:
        result["subwords"] = {"source": 0, "derived": 0, "source_unknown": 0, "derived_unknown": 0}
    with writing_all([*outs, *[told] * aside], replace=options.force) as streams:
        recipe = streams.pop() if aside else None
        with writing_pairs(streams, options.format, subwords=encoder is not None) as write:
            first = 0  # the position of a group's first pair in the split
            for loaded, ranges, keys in _groups(derived, split):
                begin, end = np.searchsorted(chosen, [first, first + len(ranges)])
                numbers, which = chosen[begin:end], chosen[begin:end] - first
                first += len(ranges)
                if not len(which):
                    continue
                some = ranges[which]
                source = _words(loaded.source, some[:, 1], some[:, 2])
                target = _words(loaded.derived, some[:, 3], some[:, 4])
                pairs = Pairs(numbers, keys[which], source, target, by_source(links_of(loaded.order, some)))
                if encoder is not None:
                    pairs = replace(pairs, subwords=(subwords := encoder.encode(pairs)))
                    encoder.count(subwords[:2], result["subwords"])
                write(pairs)
                result["links"] += len(pairs.links)
                for side, words in (("source", pairs.source), ("derived", pairs.derived)):
                    result["words"][side] += len(words.flatten())
                    result["spaces"] += int(holding_space(words).sum())
        if recipe is not None:
            shown = {name: value for name, value in result.items() if name != "out"}
            recipe.write(record_text({**wanted, "result": shown}).encode())
    return result


def _words(batch: Batch, begin: Int64, end: Int64) -> pa.Array:
    """Return list<dictionary<string>>[P]: the words of some ranges."""
    codes = to_arrow(batch.words[expand_ranges(begin, end - begin)])
    return list_array(offsets_of(end - begin), pa.DictionaryArray.from_arrays(codes, batch.types, safe=False))


def _recipe(derived: Derived, split: str, options: PairOptions, encoder: PairEncoder | None) -> dict[str, Any]:
    """Return what the content of the files depends on."""
    manifest = derived.manifest
    return {
        "format": FORMAT,
        "derivlang": __version__,
        "spec": manifest["spec"],
        "fingerprint": manifest["fingerprint"],
        "plan": manifest["plan"],
        "source": {name: manifest["source"][name] for name in ("name", "language", "licence", "citation")},
        "split": split,
        "rule_version": RULE_VERSION,
        "kind": options.format,
        "rate": number(options.share),
        "seed": options.seed,
        "tokenizers": [] if encoder is None else encoder.fingerprints,
    }


def _check(options: PairOptions) -> None:
    if options.tokenizers is not None and options.format != "parquet":
        raise UsageError(
            "only Parquet has columns for sub-words", where="--tokenizer", fix="give --format parquet", id="usage"
        )
    if is_stream(options.out) and options.format == "text":
        what, fix = "the format text needs three files", "name the output with -o, e.g. -o train25"
        raise UsageError(what, where="--format", fix=fix, id="output")
    if options.format == "parquet" and options.out.suffix in _TEXT_SUFFIXES:
        fix = f"give --format pharaoh or text, or name it {options.out.with_suffix('.parquet').name}"
        raise UsageError(
            f"the format is Parquet, but {options.out.name} names a text file", where="-o", fix=fix, id="output"
        )
    if options.out.is_dir():
        raise StoreError("is a folder", where=str(options.out), fix="give a file name", id="cannot-write")
