"""Pipeline: a chain of transforms, applied to batches from left to right.

    Pipeline.parse("trans,inv")        spec: name[:value][:key=value]... , ...   values in "..." where needed

The spec `a,b` applies a first, then b; papers write T_b . T_a. The orders of all transforms are composed into one
gather, and their lexicons into one chain of type maps. An order never sees the image of a word of the source
under a lexicon, so `trans` commutes with every permutation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from derivlang.core.arrays import Int32
from derivlang.core.batch import Batch, groups, join_sentences, realign, reordered, settle_groups, split_sentences
from derivlang.core.errors import DerivlangError, UsageError, parse_errors
from derivlang.core.keys import Draws
from derivlang.core.lexicon import Lexicon, chooses
from derivlang.core.messages import warn
from derivlang.core.order import Order
from derivlang.core.plugins import plug_in_errors
from derivlang.core.policies import Policies
from derivlang.core.spec import FilePolicy, any_file, no_file, read_spec
from derivlang.core.takes import Rule
from derivlang.formats.spec_paths import named_files
from derivlang.parsing.base import Parser, with_parses
from derivlang.syntax.parts import contract
from derivlang.transforms.base import Transform, check_layers, check_order
from derivlang.transforms.fitting import Chain, part_hash, streams
from derivlang.transforms.forms import LEMMAS, choose_images
from derivlang.transforms.registry import TRANSFORMS, find_transform

_DIGITS = 7  # of the hashes that `repr` shows


@dataclass(frozen=True, slots=True, eq=False)
class Derivation:
    """A source batch, its derived form, and the order between them."""

    source: Batch
    derived: Batch
    order: Order


@dataclass(frozen=True, slots=True, repr=False)
class Pipeline(Chain):
    """A chain of transforms. `str` gives its spec, `repr` a tree with the first digits of each part's hash.

    >>> str(Pipeline.parse("trans").then(Pipeline.parse("inv:final=keep")))
    'trans,inv'
    """

    _begun: tuple[Draws, ...] | None = field(default=None, compare=False)  # of each transform, with live generators

    def __post_init__(self) -> None:
        """Raise UsageError for lemmas of words that a dictionary has replaced: the lemma is of the source's word."""
        replaced = None
        for transform in self.transforms:
            if replaced is not None and transform.has_forms and LEMMAS in transform.needs:
                raise UsageError(
                    f"{transform} takes the lemma of a word, but {replaced} before it may have replaced the word",
                    where="--t",
                    fix=f"give {transform} first",
                    id="bad-spec",
                )
            if type(transform).choices is not Transform.choices:
                replaced = transform

    @classmethod
    def parse(cls, spec: str, *, seed: int | None = None, files: FilePolicy = any_file) -> Pipeline:
        """Return the pipeline of a spec string. UsageError if the spec is wrong.

        seed: for the transforms whose part of the spec states none. files: which files the spec may name.
        """
        if not isinstance(spec, str):
            raise UsageError(f"a spec is a string as 'trans,inv', not {spec!r}", where="--t", id="bad-spec")
        TRANSFORMS.plug_ins()  # warns of those with a built-in name, which the spec may mean
        transforms = []
        for name, values, keyed in read_spec(spec):
            kind = find_transform(name)
            transform = kind.from_values(*kind.bounded(values, keyed, files))
            if seed is not None and "seed" not in keyed and transform.takes_seed:
                keyed["seed"] = str(seed)
                transform = kind.from_values(*kind.bounded(values, keyed, files))
            transforms.append(transform)
        return cls(tuple(transforms))

    @classmethod
    def from_stored(
        cls, spec: str, files: FilePolicy = no_file, *, where: str = "--t", plug_ins: Mapping[str, str] = {}
    ) -> Pipeline:
        """Return the pipeline of a stored spec (`stored`), written by this version or an older one.

        files: which files the spec may name: files in the folder that stores it, unless this process wrote it. where:
        the file that holds the spec. plug_ins: the packages that this file names. StoreError for the transform of a
        plug-in that is not installed.
        """
        transforms = []
        for name, values, keyed in read_spec(spec):
            TRANSFORMS.require(name, plug_ins, where)
            kind = find_transform(name)
            transforms.append(kind.from_stored(*kind.bounded(values, keyed, files)))
        return cls(tuple(transforms))

    @property
    def stored(self) -> str:
        """The spec as files hold it: it means the same to every later version."""
        return ",".join(transform.stored for transform in self.transforms)

    @property
    def with_defaults(self) -> str:
        """The spec with every parameter."""
        return ",".join(transform.with_defaults for transform in self.transforms)

    def __str__(self) -> str:
        return ",".join(str(transform) for transform in self.transforms)

    def __repr__(self) -> str:
        """Return a tree of the transforms.

        Pipeline 4ac4cf2
        ├── trans  55e2ab1
        └── inv    e4f1a02
        """
        width = max((len(str(transform)) for transform in self.transforms), default=0)
        lines = [f"{t!s:<{width}}  {_digits(partial(part_hash, t))}" for t in self.transforms]
        branches = ["├── "] * (len(lines) - 1) + ["└── "] * bool(lines)
        tree = [branch + line for branch, line in zip(branches, lines, strict=True)]
        return "\n".join([f"Pipeline {_digits(self.fingerprint)}", *tree])

    def then(self, after: Pipeline) -> Pipeline:
        """Return the pipeline that applies this one, then `after`."""
        return Pipeline(self.transforms + after.transforms)

    def after(self, stored: str | None, files: FilePolicy) -> Pipeline:
        """Return the pipeline of a derived source, then this one. stored, files: the spec of the source, or None.

        Warn if the source has these transforms already: trans and inv, for example, undo themselves.
        """
        if stored is None:
            return self
        first = Pipeline.parse(stored, files=files)
        if first.transforms[-len(self.transforms) :] == self.transforms:
            warn(f"the source is derived by {self} already; this derives it by {self} once more")
        return first.then(self)

    def files_to_keep(self, *, fitted: bool = True) -> dict[str, bytes]:
        """Return the content of the files that are needed to derive again, by name: grammars, for example.

        A set or a run keeps copies of them (`formats/spec_paths.py`). fitted: whether a lexicon is fitted, so that no
        file is needed that a transform saves in lexicon.tsv. Raises UsageError for two files of one name.
        """
        kept: dict[str, tuple[Path, bytes]] = {}
        for transform in self.transforms:
            for path in () if fitted and transform.saves else named_files(transform):
                with parse_errors(str(path), "file", id="missing-file"):
                    content = path.read_bytes()
                if kept.setdefault(path.name, (path, content))[1] != content:
                    raise UsageError(
                        f"{kept[path.name][0]} and {path} have the same name, and the result keeps a copy of each",
                        where="--t",
                        fix="rename one of them",
                        id="output",
                    )
        return {name: content for name, (_, content) in kept.items()}

    @property
    def has_order(self) -> bool:
        """Whether some transform changes the order of words."""
        return any(transform.has_order for transform in self.transforms)

    @property
    def needs_trees(self) -> bool:
        """Whether every word must have a tag and a head before this pipeline can run."""
        return any({"head", "upos"} & set(transform.needs) for transform in self.transforms)

    @property
    def needs_heads(self) -> bool:
        """Whether every sentence must be one tree before this pipeline can run."""
        return any("head" in transform.needs for transform in self.transforms)

    def warn_of_misfits(self, language: str, warn: Callable[[str], None] = warn) -> None:
        """Warn of parameters that do not fit a language as `fr`, or have no effect."""
        for message in chain.from_iterable(transform.misfits(language) for transform in self.transforms):
            warn(message)

    @property
    def is_permutation(self) -> bool:
        """Whether no transform inserts or deletes words."""
        return all(transform.is_permutation for transform in self.transforms)

    @property
    def injective(self) -> bool:
        """Whether the lexicon has an inverse."""
        return all(transform.injective for transform in self.transforms)

    @property
    def keyed(self) -> bool:
        """Whether the result is a function of the sentence."""
        return all(transform.keyed for transform in self.transforms)

    def check_keyed(self, what: str = "a batch by itself", where: str = "--t") -> None:
        """Raise UsageError not-keyed if a transform draws in sequence. what: what needs a function of the sentence."""
        for transform in self.transforms:
            if not transform.keyed:
                raise UsageError(
                    f"{transform} draws in sequence, from the first sentence of a corpus on, so it is not for {what}",
                    where=where,
                    fix="make a set of the corpus with one worker, or leave out what draws in sequence (rng=)",
                    id="not-keyed",
                )

    def begin(self) -> Pipeline:
        """Return the pipeline before the first sentence of a corpus. It derives the batches of the corpus in order."""
        return self if self.keyed else replace(self, _begun=tuple(draws for _, draws in streams(self.transforms)))

    def copy(self, stop: int | None = None) -> Pipeline:
        """Return the first transforms (default: all), which draw from here on as these will but by themselves."""
        return Pipeline(self.transforms[:stop], None if self._begun is None else deepcopy(self._begun[:stop]))

    def streams(self) -> list[tuple[Transform, Draws]]:
        """Return each transform with its draws. Raise UsageError not-keyed unless a sequence has begun."""
        if self._begun is not None:
            return list(zip(self.transforms, self._begun, strict=True))
        self.check_keyed()
        return streams(self.transforms)

    def order(self, batch: Batch, policies: Policies | None = None, lexicon: Lexicon | None = None) -> Order:
        """Return the order of a batch whose sentences are split. Groups under `atomic` count as one word.

        lexicon: of this pipeline or a longer one, for orders that are fitted, and for the words that transforms insert:
        each goes through the transforms after its own.
        """
        policies, lexicon = policies or Policies(), lexicon or Lexicon()
        group = groups(batch, policies)
        order = self._fold(batch if group is None else contract(batch, group), lexicon)
        return order if group is None else order.expand(group)

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
    ) -> Derivation:
        """Derive a batch.

        split: whether to split its sentences first; False if they are known, as in derived output. counts: where to
        count what was changed or dropped, by reason. parser: finds the trees of a batch without trees.
        """
        policies = policies or Policies()
        batch = settle_groups(batch, policies)
        group = groups(batch, policies)
        if split:
            batch = split_sentences(batch, rule, group)
        elif group is not None:
            batch = join_sentences(batch, group)
        if parser is not None:
            batch = with_parses(batch, parser)
        unmoved = self.copy()
        order = self.order(batch, policies, lexicon)
        words: Int32 | None = None
        types = None
        if lexicon.chooses:

            def order_before(place: int) -> Order | None:
                before = unmoved.copy(place)
                return before.order(batch, policies, lexicon) if before.has_order else None

            words, types = choose_images(self.streams(), lexicon, batch, order_before, counts)
        elif not lexicon.is_identity:
            types = lexicon.apply(batch.types)
        distinct = lexicon.injective
        derived = realign(
            batch,
            order,
            types,
            words=words,
            distinct=distinct,
            policies=policies,
            counts=counts,
            labels=lexicon.of_labels,
        )
        return Derivation(batch, derived, order)

    def _fold(self, batch: Batch, lexicon: Lexicon) -> Order:
        """Return the orders of all transforms, composed."""
        order: Order | None = None
        maps = 0  # of the transforms so far
        for place, (transform, draws) in enumerate(self.streams()):
            maps += transform.has_lexicon
            if not transform.has_order:
                continue
            check_layers(transform, batch)
            view = batch if order is None else reordered(batch, order, transform.needs)
            with plug_in_errors("transform", transform, transform.order):
                step = lexicon.orders.get(place, transform).order(view, draws)
            check_order(transform, step, view)
            if step.inserted is not None:  # hop,trans: the marker is written in the other script
                later = tuple(one for one in lexicon.steps[maps:] if not chooses(one))  # choices are of source words
                step = replace(step, inserted=Lexicon(later).apply(step.inserted))
            order = step if order is None else order.then(step)
        return Order.identity(batch.sentences, batch.tails) if order is None else order


def _digits(hash_of: Callable[[], str]) -> str:
    """Return the first digits of a hash, or "?" if a file that it covers cannot be read."""
    try:
        return hash_of()[:_DIGITS]
    except DerivlangError:
        return "?"


def seeded(spec: str, seed: int | None, warn: Callable[[str], None]) -> Pipeline:
    """Return the pipeline of a spec with a seed for the transforms that state none. Warn if none takes it."""
    pipeline = Pipeline.parse(spec, seed=seed)
    if seed is not None and pipeline == Pipeline.parse(spec, seed=seed ^ 1):
        warn(f"no transform of {spec} takes a seed from --seed, so it has no effect")
    return pipeline
