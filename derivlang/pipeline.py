"""Pipeline: transforms applied left to right, their spec string, and what it does to a batch.

    Pipeline.parse("trans,inv")        spec: name[:value][:key=value]... , ...   values in "..." where needed

`--t a,b` is a first, then b; the papers' T_b . T_a. All orders fold into one gather, all lexicons into one
chain of type maps; the two never see each other, so trans commutes with every order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from derivlang.core import batch as batches
from derivlang.core.arrays import Int32, Int64, lengths_of
from derivlang.core.arrow import string_array, to_arrow, to_numpy
from derivlang.core.batch import Batch, Policies, realign, used_types
from derivlang.core.errors import DataError, LayerError, UsageError
from derivlang.core.keys import Draws, sequence_keys
from derivlang.core.lexicon import Lexicon, TypeMap, chooses
from derivlang.core.order import Order
from derivlang.core.sentences import Rule
from derivlang.core.spec import read_spec
from derivlang.parsing.attach import with_parses
from derivlang.syntax.groups import contract
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform

if TYPE_CHECKING:
    from derivlang.map import Columns
    from derivlang.parsing.base import Parser


_SECTION = "# derivlang lexicon: "
_SECTIONS = re.compile(r"^(?=# derivlang lexicon: [^\t\n]*$)", re.MULTILINE)  # a word of a row is followed by a tab


@dataclass(frozen=True, slots=True, eq=False)
class Derived:
    """A source batch, its derived form, and the order between them."""

    source: Batch
    derived: Batch
    order: Order


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A chain of transforms."""

    transforms: tuple[Transform, ...]

    @classmethod
    def parse(cls, spec: str, *, seed: int | None = None) -> Pipeline:
        """From a spec string; UsageError says what is wrong with it. seed: for transforms that state none."""
        transforms = []
        for name, values, keyed in read_spec(spec):
            found = find_transform(name)
            if seed is not None and any(f.name == "seed" for f in fields(found)):
                keyed.setdefault("seed", str(seed))
            transforms.append(found.from_values(values, keyed))
        return cls(tuple(transforms))

    def __str__(self) -> str:
        return ",".join(str(transform) for transform in self.transforms)

    def then(self, after: Pipeline) -> Pipeline:
        return Pipeline(self.transforms + after.transforms)

    @property
    def needs_reference(self) -> bool:
        """Must a reference vocabulary be counted before this pipeline can run?"""
        return any(transform.needs_reference for transform in self.transforms)

    @property
    def has_order(self) -> bool:
        return any(transform.has_order for transform in self.transforms)

    @property
    def needs_trees(self) -> bool:
        """Must every word have a tag and a head before this pipeline can run?"""
        return any({"head", "upos"} & set(transform.needs) for transform in self.transforms)

    @property
    def is_permutation(self) -> bool:
        return all(transform.is_permutation for transform in self.transforms)

    @property
    def injective(self) -> bool:
        return all(transform.injective for transform in self.transforms)

    def fingerprint(self, lexicon: str | None = None) -> str:
        """16 hex digits: the spec, rule versions, files that it names, the fitted lexicon's text; not the package
        version. A file of which the lexicon holds what was read need no longer be there."""
        held = self._saving()[: fitted_parts(lexicon)]
        rules = [
            (str(t), t.name, t.rule_version, *(() if i in held else t.resources)) for i, t in enumerate(self.transforms)
        ]
        text = repr((rules, hashlib.sha256(lexicon.encode()).hexdigest() if lexicon else None))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def fit(
        self,
        types: pa.Array | None = None,
        counts: Int64 | None = None,
        *,
        saved: str | None = None,
        where: str = "--lexicon",
    ) -> Lexicon:
        """The lexicon: fitted parts from `saved` (the text of a lexicon.tsv, named `where` in errors) as far as it
        goes, the rest fitted on a reference vocabulary, Arrow strings [T] and int64[T] counts.

        UsageError where a part needs a reference and there is none, or `saved` is of another pipeline.
        """
        sections = [section[len(_SECTION) :] for section in _SECTIONS.split(saved or "")[1:]]
        titles = [section.partition("\n")[0] for section in sections]
        saving = self._saving()
        wanted = [self._titles()[i] for i in saving]
        unfitted = any(self.transforms[i].needs_reference for i in saving[len(titles) :])
        if types is not None and counts is None and unfitted:
            raise UsageError("a reference vocabulary needs the counts of its types", id="counts")
        if titles != wanted[: len(titles)] or (types is None and unfitted) or (saved is not None and not titles):
            raise self._unfitted(titles, wanted, saved, where)
        reference = types if types is not None else string_array([])
        numbers = counts if counts is not None else np.zeros(len(reference), np.int64)
        steps, states = [], iter(sections)
        for transform, draws in self._streams():
            if not transform.has_lexicon:
                continue
            state = next(states, None) if transform.saves else None
            if state is None:
                step = transform.fit(reference, numbers, draws)
            else:
                try:
                    step = transform.load(state.partition("\n")[2], draws)
                except (ValueError, IndexError, DataError) as error:
                    raise DataError(f"not a lexicon: {error}", where=where, id="lexicon") from error
            if step is not None:
                steps.append(step)
                reference, numbers = _image(step, reference, numbers)
        return Lexicon(tuple(steps))

    def _saving(self) -> list[int]:
        """The transforms that have a section in lexicon.tsv, by their places."""
        return [i for i, transform in enumerate(self.transforms) if transform.saves]

    def needs_counts(self, saved: str | None) -> bool:
        """Must a reference vocabulary be counted, beyond what a saved lexicon holds?"""
        return any(self.transforms[i].needs_reference for i in self._saving()[fitted_parts(saved) :])

    def _titles(self) -> list[str]:
        """What each transform's lexicon was fitted on: itself and the lexicons before it, as a spec."""
        lexical = [str(t) if t.has_lexicon else None for t in self.transforms]
        return [",".join(t for t in lexical[: i + 1] if t is not None) for i in range(len(lexical))]

    def _unfitted(self, titles: list[str], wanted: list[str], saved: str | None, where: str) -> UsageError:
        if saved is not None:
            return UsageError(
                f"the lexicon was fitted for {', '.join(titles) or 'nothing'}, "
                f"but the pipeline has {', '.join(wanted) or 'no transform that needs one'}",
                where=where,
                fix="pass the lexicon.tsv of a set made with the same --t",
                id="other-lexicon",
            )
        return UsageError(
            f"{self} keeps some types and must be fitted on a reference vocabulary",
            fix="pass a saved one: --lexicon FILE, or lexicon=Path(...) in Python; `make` saves lexicon.tsv",
            id="needs-lexicon",
        )

    def save(self, lexicon: Lexicon) -> str | None:
        """`lexicon.tsv`: a section for each fitted transform; None where nothing was fitted."""
        sections = []
        steps = iter(lexicon.steps)
        for transform, title in zip(self.transforms, self._titles(), strict=True):
            if transform.has_lexicon:
                state = next(steps).state()
                if state is not None:
                    sections.append(f"{_SECTION}{title}\n{state}")
        return "".join(sections) or None

    def order(self, batch: Batch, policies: Policies | None = None) -> Order:
        """The order of a batch whose sentences are split; groups under `atomic` count as one word."""
        policies = policies or Policies()
        group = batches.groups(batch, policies)
        order = self._fold(batch if group is None else contract(batch, group))
        return order if group is None else order.expand(group, batch.sentences, batch.tails)

    def derive(
        self,
        batch: Batch,
        lexicon: Lexicon,
        *,
        policies: Policies | None = None,
        rule: Rule = "marks",
        counts: Counter[str] | None = None,
        split: bool = True,
        parser: Parser | None = None,
    ) -> Derived:
        """A batch and its derived form.

        split=False: its sentences are known already (derived output). parser: finds the trees of a batch without any.
        """
        policies = policies or Policies()
        if split:
            group = batches.groups(batch, policies)
            batch = batches.split_sentences(batch, rule, group)
        if parser is not None:
            batch = with_parses(batch, parser)
        order = self.order(batch, policies)
        words: Int32 | None = None
        types = None
        if lexicon.chooses:
            words, types = self._choose(batch, lexicon, policies, counts)
        elif not lexicon.is_identity:
            types = lexicon.apply(batch.types)
        distinct = lexicon.injective
        derived = realign(batch, order, types, words=words, distinct=distinct, policies=policies, counts=counts)
        return Derived(batch, derived, order)

    def map(self, dataset: Any, columns: Columns | None = None, **options: Any) -> Any:
        """A Hugging Face Dataset, DatasetDict or IterableDataset, derived: the rows that `make` gives.

        columns: which columns hold words, text and labels (default: by name and type). Options are those of
        `derivlang.map.map_dataset`: lexicon, words, language, policies, sentences, repair_tags, parser.
        """
        from derivlang.map import map_dataset

        return map_dataset(self, dataset, columns, **options)

    def _streams(self) -> list[tuple[Transform, Draws]]:
        seen: Counter[str] = Counter()
        out = []
        for transform in self.transforms:
            out.append((transform, transform.stream(seen[transform.name])))
            seen[transform.name] += 1
        return out

    def _choose(
        self, batch: Batch, lexicon: Lexicon, policies: Policies, counts: Counter[str] | None
    ) -> tuple[Int32, pa.Array]:
        """What each source word looks like, where words of one type may differ: int32[N] codes, and their types."""
        words, types = batch.words, batch.types
        steps = iter(lexicon.steps)
        for place, (transform, draws) in enumerate(self._streams()):
            if not transform.has_lexicon:
                continue
            step = next(steps)
            if not chooses(step):
                types = step.apply(types)
                continue
            found = step.images(types)
            images = lengths_of(found.offsets).astype(np.int32)[words]
            before = Pipeline(self.transforms[:place])
            if before.has_order:  # draws go by the place that a word has by now
                order = before.order(batch, policies)
                kept = order.index >= 0
                seen = np.where(kept, images[np.where(kept, order.index, 0)], 1).astype(np.int32)
                taken = np.zeros(len(words), np.int32)
                taken[order.index[kept]] = transform.choices(_reordered(batch, order, ()), seen, draws)[kept]
            else:
                taken = transform.choices(batch, images, draws)
            if counts is not None:
                counts[f"{transform.name}-replaced"] += int((taken > 0).sum())
            used, words = used_types((found.offsets[:-1][words] + taken).astype(np.int32), len(found.strings))
            types = found.strings.take(to_arrow(used))
        return words, types

    def _fold(self, batch: Batch) -> Order:
        order: Order | None = None
        for transform, draws in self._streams():
            if not transform.has_order:
                continue
            missing = [name for name in transform.needs if name not in batch.layers]
            if missing:
                raise LayerError(f"{transform.name} needs {', '.join(missing)}, which this set lacks", id="needs-layer")
            view = batch if order is None else _reordered(batch, order, transform.needs)
            step = transform.order(view, draws)
            order = step if order is None else order.then(step)
        return Order.identity(batch.sentences, batch.tails) if order is None else order


def _image(step: TypeMap, types: pa.Array, counts: Int64) -> tuple[pa.Array, Int64]:
    """A reference vocabulary under one more map. Types that become one are one; of several images, the first
    translation has the count."""
    if not chooses(step):
        types = step.apply(types)
    else:
        found = step.images(types)
        several = np.zeros(len(found.strings), np.int64)
        several[np.minimum(found.offsets[:-1] + 1, found.offsets[1:] - 1)] = counts
        types, counts = found.strings, several
    if step.injective:
        return types, counts
    merged = types.dictionary_encode()
    total = np.bincount(to_numpy(merged.indices), counts, minlength=len(merged.dictionary))
    return merged.dictionary, total.astype(np.int64)


def _reordered(batch: Batch, order: Order, needs: tuple[str, ...]) -> Batch:
    """The words in the order so far, as the next transform sees them."""
    layers = {name: batch.layers[name] for name in needs}
    view = realign(replace(batch, layers=layers), order)
    if order.is_permutation and not np.array_equal(order.sentences, batch.sentences):
        # Sentences that became one have the key of all their source words.
        view = replace(view, keys=sequence_keys(batch.type_hashes[batch.words], order.sentences))
    return view


def fitted_parts(saved: str | None) -> int:
    """How many fitted transforms a saved lexicon holds."""
    return len(_SECTIONS.findall(saved or ""))


def read_lexicon(path: Path) -> str:
    """The text of a saved lexicon.tsv; DataError if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the lexicon: {error}", where=str(path), id="lexicon") from error
