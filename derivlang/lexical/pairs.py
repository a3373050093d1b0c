"""A share of the sentence pairs of a derived set, with gold word links and optional noise, in source order.

    S pairs of a split  ->  the first floor(pS/100 + 1/2) by one keyed ranking, ties by position  ->  in source order

Rates are nested for one seed. A pair is drawn by its source words, not by its position. The set is read by row groups,
once for the keys and once for writing (with noise three more times). Memory holds some bytes per pair, and the derived
sides that pair noise exchanges. Methods, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from derivlang.core.arrays import Bool, Int64, UInt64, expand_ranges, offsets_of
from derivlang.core.arrow import list_array, string_array, to_arrow
from derivlang.core.batch import Batch
from derivlang.core.errors import DataError, StoreError, UsageError
from derivlang.core.keys import draw, text_key
from derivlang.core.version import __version__
from derivlang.lexical import noise
from derivlang.lexical.bitext import Pairs, files_of, holding_space, open_writer
from derivlang.lexical.pair_subwords import PairEncoder
from derivlang.lexical.percent import number, portion
from derivlang.lexical.segments import GoldLinks, Segments, links_of, segment_keys, segments
from derivlang.lexical.settings import PairOptions
from derivlang.store.artifact import check_replaceable
from derivlang.store.files import held_file, is_stream, writing_all
from derivlang.store.manifest import Derived, Loaded, load
from derivlang.store.record import read_record, record_text

RULE_VERSION = 1
FORMAT = 1


def write_pairs(folder: Path, options: PairOptions) -> dict[str, Any]:
    """Write sentence pairs of a derived set, with a recipe in OUT.recipe.json and wrong items in OUT.noise.tsv.

    Return {"out", "files", "pairs", "sentences", "links", "words": {"source", "derived"}, "noise", "spaces"}:
    sentences = pairs of the split; noise = wrong links or pairs; spaces = words with a space. With tokenizers there is
    also "subwords": {"source", "derived", "source_unknown", "derived_unknown"}. Raise StoreError if `folder` is not a
    derived set, DataError if it has no pair, UsageError for no pair at this rate, too much noise, or tokenizers that do
    not fit. No partial files remain. The output is held meanwhile: another process with other options is refused.
    """
    _check(options)
    with held_file(options.out, f"pair of {folder}", options):
        return _choose_and_write(folder, options)


def _choose_and_write(folder: Path, options: PairOptions) -> dict[str, Any]:
    derived = Derived(folder)
    split = derived.choose_split(options.split)
    keys = np.concatenate([np.zeros(0, np.uint64), *(group.keys for group in _groups(derived, split))])
    if not len(keys):
        raise DataError(f"the split {split} has no sentence pair", where=str(folder), id="empty-split")
    n = portion(options.shares["rate"], len(keys))
    if not n:
        raise UsageError(
            f"{float(options.shares['rate']):g} % of {len(keys):,} sentence pairs is less than one pair",
            where="--rate",
            id="rate",
        )
    chosen = noise.first_by_key(draw(pair_stream(options.seed), keys, np.zeros(len(keys), np.int64)), n)
    plan, share = _Plan(derived, split, chosen, options), options.shares["noise"]
    if share and options.noise_kind == "pairs":
        wrong, donors = noise.wrong_partners(keys[chosen], share, options.seed)
        plan = replace(plan, donors=dict(zip(wrong.tolist(), donors.tolist(), strict=True)))
        plan.exchanged.update(_derived_sides(plan))
    elif share:
        plan = replace(plan, cut=_wrong_links(plan))
    return _write(plan, len(keys))


def pair_stream(seed: int) -> np.uint64:
    """Return the stream of draws that rank the pairs."""
    return text_key(f"pair|seed={seed}|rule={RULE_VERSION}")


@dataclass(frozen=True, slots=True)
class _Group:
    """The pairs of a row group, by row, side and sentence: word ranges and content keys."""

    loaded: Loaded
    ranges: Segments
    keys: UInt64

    def take(self, which: Int64) -> _Group:
        return _Group(self.loaded, self.ranges.take(which), self.keys[which])


@dataclass(frozen=True, slots=True)
class _Plan:
    """The pairs to write.

    chosen: int64[n], ascending positions of pairs in the split; a pair's line is its index in `chosen`. donors: line of
    a wrong pair -> line of the pair whose derived side it gets. exchanged: those sides. cut: threshold of wrong links.
    """

    derived: Derived
    split: str
    chosen: Int64
    options: PairOptions
    donors: dict[int, int] = field(default_factory=dict)
    exchanged: dict[int, list[str]] = field(default_factory=dict)
    cut: noise.Threshold | None = None

    def groups(self) -> Iterator[tuple[Int64, _Group]]:
        """Yield (lines, chosen pairs) of each row group."""
        first = 0
        for group in _groups(self.derived, self.split):
            last = first + len(group.ranges)
            begin, end = np.searchsorted(self.chosen, [first, last])
            yield np.arange(begin, end), group.take(self.chosen[begin:end] - first)
            first = last

    def link_draws(self, links: GoldLinks, group: _Group) -> tuple[Bool, UInt64]:
        """Return (bool[L]: whether the pair has a second source word; draws of these links)."""
        able = (group.ranges.source_end - group.ranges.source_begin)[links.pair] > 1
        stream = noise.stream("links", self.options.seed)
        return able, draw(stream, group.keys[links.pair[able]], links.derived[able])


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
            ranges = ranges.take(~shared[ranges.unit])
        ranges = ranges.take(np.argsort(rank[ranges.unit], kind="stable"))
        yield _Group(loaded, ranges, segment_keys(source, ranges))


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


def _derived_sides(plan: _Plan) -> dict[int, list[str]]:
    """Return the derived words of the donor pairs, by line."""
    wanted = np.unique(np.array(list(plan.donors.values()), np.int64))
    out: dict[int, list[str]] = {}
    for numbers, group in plan.groups():
        here = np.isin(numbers, wanted)
        if here.any():
            batch = group.loaded.derived
            names = batch.types.to_pylist()  # one string per type, however often it occurs
            some = group.ranges.take(here)
            for line, begin, end in zip(numbers[here].tolist(), some.begin, some.end, strict=True):
                out[line] = [names[code] for code in batch.words[begin:end]]
    return out


def _wrong_links(plan: _Plan) -> noise.Threshold:
    """Return the threshold of wrong links: the first floor(pL/100 + 1/2) of L by one keyed ranking."""
    total = sum(len(links_of(g.loaded.order, g.ranges).pair) for _, g in plan.groups())

    def draws() -> Iterator[UInt64]:
        for _, group in plan.groups():
            yield plan.link_draws(links_of(group.loaded.order, group.ranges), group)[1]

    return noise.threshold(draws, portion(plan.options.shares["noise"], total))


def _write(plan: _Plan, sentences: int) -> dict[str, Any]:
    options, out = plan.options, plan.options.out
    encoder = None
    if options.tokenizers is not None:
        encoder = PairEncoder.load(options.tokenizers, plan.derived.pipeline, noisy=plan.cut is not None)
    result: dict[str, Any] = {
        "out": str(out),
        "files": [path.name for path in files_of(out, options.format)],
        "pairs": len(plan.chosen),
        "sentences": sentences,
        "links": 0,
        "words": {"source": 0, "derived": 0},
        "noise": 0,
        "spaces": 0,
    }
    aside = not is_stream(out)  # which has no room for a second file
    told, list_of_noise = (out.with_name(f"{out.name}.{ending}") for ending in ("recipe.json", "noise.tsv"))
    wanted = _recipe(plan, encoder)
    noisy = bool(options.shares["noise"])
    outs = [*files_of(out, options.format), *[list_of_noise] * noisy]
    if not options.force:
        check_replaceable(outs, told, wanted, noun="choice of pairs")
    gone = [list_of_noise] if aside and not noisy and _had_noise(told) else []
    outs += [told] * aside
    with writing_all(outs, gone, replace=options.force) as streams, ExitStack() as ends:
        recipe = streams.pop() if aside else None
        listed = streams.pop() if noisy else None
        language = plan.derived.manifest["source"]["language"]
        writer = open_writer(streams, options.format, language, ends, subwords=options.tokenizers is not None)
        if listed is not None:
            columns = "line\tsource\tderived\twrong" if plan.cut else "line\tderived_of"
            listed.write(f"{columns}\n".encode())
        if encoder is not None:
            result["subwords"] = {"source": 0, "derived": 0, "source_unknown": 0, "derived_unknown": 0}
        ties = 0
        for numbers, group in plan.groups():
            if not len(numbers):
                continue
            pairs, rows, ties = _pairs(plan, numbers, group, ties)
            if encoder is not None:
                subwords = encoder.encode(pairs)
                encoder.count(subwords, result["subwords"])
                pairs = replace(pairs, subwords=subwords)
            if listed is not None:
                listed.write("".join("\t".join(map(str, row)) + "\n" for row in rows).encode())
            writer.write(pairs)
            result["noise"] += len(rows)
            result["links"] += len(pairs.links.pair)
            for side, words in (("source", pairs.source), ("derived", pairs.derived)):
                result["words"][side] += len(words.flatten())
                result["spaces"] += int(holding_space(words).sum())
        writer.close()
        if unfit := getattr(writer, "unfit", 0):
            result["unfit"] = unfit
        if recipe is not None:
            shown = {name: value for name, value in result.items() if name != "out"}
            recipe.write(record_text({**wanted, "result": shown}).encode())
    return result


def _had_noise(recipe: Path) -> bool:
    """Return whether an earlier run, whose recipe is there, wrote a list of noise."""
    try:
        return read_record(recipe, "recipe", id="data").get("noise") not in (None, 0)
    except StoreError:
        return False


def _pairs(plan: _Plan, numbers: Int64, group: _Group, ties: int) -> tuple[Pairs, list[tuple[int, ...]], int]:
    """Return (pairs to write, rows of OUT.noise.tsv, number of ties at the noise threshold so far)."""
    ranges, loaded = group.ranges, group.loaded
    links = links_of(loaded.order, ranges)
    target = _words(loaded.derived, ranges.begin, ranges.end)
    rows: list[tuple[int, ...]] = []
    if plan.cut is not None:
        able, draws = plan.link_draws(links, group)
        drawn, ties = noise.below(draws, plan.cut, ties)
        which = np.flatnonzero(able)[drawn]
        pair, place = links.pair[which], links.derived[which]
        moved = links.source.copy()
        to = draw(noise.stream("words", plan.options.seed), group.keys[pair], place)
        moved[which] = noise.other_word(to, links.source[which], (ranges.source_end - ranges.source_begin)[pair])
        rows = list(zip(*(a.tolist() for a in (numbers[pair], links.source[which], place, moved[which])), strict=True))
        links = GoldLinks(links.pair, moved, links.derived)
    wrong = np.array([line in plan.donors for line in numbers.tolist()], bool)
    if wrong.any():
        sides = target.to_pylist()
        for at in np.flatnonzero(wrong).tolist():
            donor = plan.donors[int(numbers[at])]
            sides[at] = plan.exchanged[donor]
            rows.append((int(numbers[at]), donor))
        sizes = np.fromiter(map(len, sides), np.int64, len(sides))
        target = list_array(
            offsets_of(sizes), string_array([word for side in sides for word in side]).dictionary_encode()
        )
        still = ~wrong[links.pair]  # wrong pairs have no links
        links = GoldLinks(links.pair[still], links.source[still], links.derived[still])
    source = _words(loaded.source, ranges.source_begin, ranges.source_end)
    return Pairs(plan.chosen[numbers], group.keys, source, target, links.sorted()), rows, ties


def _words(batch: Batch, begin: Int64, end: Int64) -> pa.Array:
    """Return list<dictionary<string>>[P]: the words of some ranges."""
    codes = to_arrow(batch.words[expand_ranges(begin, end - begin)])
    return list_array(offsets_of(end - begin), pa.DictionaryArray.from_arrays(codes, batch.types, safe=False))


def _recipe(plan: _Plan, encoder: PairEncoder | None) -> dict[str, Any]:
    """Return what the content of the files depends on."""
    manifest, options = plan.derived.manifest, plan.options
    return {
        "format": FORMAT,
        "derivlang": __version__,
        "spec": manifest["spec"],
        "fingerprint": manifest["fingerprint"],
        "plan": manifest["plan"],
        "source": {name: manifest["source"][name] for name in ("name", "language", "licence", "citation")},
        "split": plan.split,
        "rule_version": RULE_VERSION,
        "kind": options.format,
        "rate": number(options.shares["rate"]),
        "seed": options.seed,
        "noise": number(options.shares["noise"]),
        "noise_kind": options.noise_kind if options.shares["noise"] else None,
        "tokenizers": [] if encoder is None else encoder.fingerprints,
    }


def _check(options: PairOptions) -> None:
    if options.tokenizers is not None and options.format != "parquet":
        raise UsageError(
            "only Parquet has columns for sub-words", where="--tokenizer", fix="give --format parquet", id="usage"
        )
    noisy = bool(options.shares["noise"])
    if is_stream(options.out) and (options.format == "text" or noisy):
        what = "noise needs a second file for its list" if noisy else "the format text needs three files"
        where = "--noise" if noisy else "--format"
        raise UsageError(what, where=where, fix="name the output with -o, e.g. -o train25", id="output")
    if options.out.is_dir():
        raise StoreError("is a folder", where=str(options.out), fix="give a file name", id="cannot-write")
