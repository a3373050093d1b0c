"""syn: each head's dependents in the order of another language, drawn from a word-order model.

    syn:fr          French order for all heads that the grammar has models for
    syn:fr@N        French order for nouns only      syn:fr@N~hi@V       nouns as in French, verbs as in Hindi
    syn:my.tsv      a grammar file of your own       syn:fr:mode=argmax  the most probable order, nothing drawn
    syn:hi:model="side=0.75"       dependents on the side where their relation stands in Hindi treebanks
    syn:hi:model="pairwise=0.7"    relations in the order that agrees with most pairs of Hindi treebanks

A subtree moves as one block. By default names, numbers and fixed expressions stay together, and punctuation moves with
its phrase. With `model` an order follows from counts of treebanks (`grammar/counts.py`), and nothing is drawn.
Source: Wang and Eisner 2016, *The Galactic Dependencies Treebanks*, sections 4 and 5 (models, mixing); the
differences are in `docs/guide/syntax.md`. For orders by counts see `syntax/by_counts.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from derivlang.core.arrays import group_of, lengths_of, offsets_of
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError, unknown
from derivlang.core.keys import Draws
from derivlang.core.spec import param, parts_of, text_of
from derivlang.grammar.counts import Counts
from derivlang.grammar.families import Families
from derivlang.grammar.grammar import GRAMMARS, SUBSTRATES, Grammar, load_counts, load_grammar, shipped
from derivlang.grammar.order_model import OrderModel
from derivlang.syntax.by_counts import ByPairs, BySide
from derivlang.syntax.layout import Listing, Members
from derivlang.syntax.nodes import TreeBlock
from derivlang.syntax.words import WordKinds, see
from derivlang.transforms.tree_transform import TreeTransform

_COUNTED: dict[str, type[BySide | ByPairs]] = {"side": BySide, "pairwise": ByPairs}
_DRAWN = ("mode", "temperature", "substrate", "mix", "labels", "seed")  # parameters that only drawn orders read


@dataclass(frozen=True, kw_only=True)
class Syn(TreeTransform):
    """Syntax: dependents in the order of another language, drawn from a word-order model."""

    name = "syn"

    grammar: str = param(
        "fr",
        "shipped grammar (fr, ja, …), file, or one grammar per class: fr@N~hi@V",
        positional=True,
        draws=False,
        file=GRAMMARS,
    )
    model: str = param(
        "",
        'order by counts of treebanks instead of weights: "pairwise=0.7" or "side=0.75", with a threshold',
        draws=False,
        file=False,
    )
    mode: Literal["sample", "argmax"] = param("sample", "choice of an order: drawn, or the most probable", draws=False)
    temperature: float = param(1.0, "sampling temperature, at least 1e-6; lower: closer to argmax", draws=False)
    substrate: str = param("en", "grammar of the source language to mix in, or none", draws=False, file=SUBSTRATES)
    mix: float = param(0.05, "weight of the substrate", low=0, high=1, draws=False)
    labels: Literal["map", "as-is"] = param(
        "map", "tree labels: mapped to the grammar's UD version, or as they are", draws=False
    )
    seed: int = param(1, "seed of the draws: each seed gives another language", low=0)

    def validate(self) -> None:
        """Raise UsageError or DataError for an unknown grammar or model, before any source is read."""
        if self.model:
            self._check_drawn()
            self.counted_model()
        else:
            self.order_model()

    @property
    def takes_seed(self) -> bool:
        """Whether an order is drawn."""
        return not self.model

    def misfits(self, language: str) -> list[str]:
        """Return a warning if the grammar that is mixed in is of another language than the source."""
        own, other = language.partition("-")[0], str(self.substrate)
        if self.model or not self.mix or other == own or other not in shipped():
            return []
        better = f"substrate={own} or substrate=none" if own in shipped() else "substrate=none"
        return [f"{self} mixes in the word order of {other}, but the source is in {language}; pass {better}"]

    def counted_model(self) -> BySide | ByPairs:
        """Return the model of counts. Raise UsageError for an unknown model or grammar, DataError for broken counts."""
        (name, rest), *others = parts_of(self.grammar, GRAMMARS)
        if others or rest:
            raise UsageError(
                f"syn: model={self.model} has one order for all heads, so {self.grammar} cannot divide them",
                where="--t",
                fix="name one grammar, without a head class",
                id="bad-value",
            )
        return _counted(name, load_counts(name, where="--t syn"), str(self.model))

    def _check_drawn(self) -> None:
        """Raise UsageError for a parameter of drawn orders that is not at its default."""
        for field in self.spec_fields():
            value = getattr(self, field.name)
            if field.name in _DRAWN and value != field.default:
                raise UsageError(
                    f"syn: {field.name}={text_of(value)} is for drawn orders, and model={self.model} draws none",
                    where="--t",
                    fix=f"leave {field.name} or model out",
                    id="bad-value",
                )

    def order_model(self) -> OrderModel:
        """Return the word-order model. Raise UsageError or DataError for an unknown or broken grammar."""
        return self._loaded()[0]

    @property
    def resources(self) -> tuple[str, ...]:
        """The version of the layout and the fingerprints of the grammars."""
        if self.model:
            return (*super().resources, f"counts {self.counted_model().counts.fingerprint}")
        return (*super().resources, *self._loaded()[1])

    def _loaded(self) -> tuple[OrderModel, tuple[str, ...]]:
        """Return (the model, the fingerprints of its grammars)."""
        classes: dict[str, Grammar] = {}
        for name, rest in parts_of(self.grammar, GRAMMARS):
            grammar, head_class = load_grammar(name, where="--t syn"), rest.strip("@~")
            for wanted in (head_class,) if head_class else grammar.classes:
                if wanted in classes:
                    raise UsageError(
                        f"syn: there are two grammars for {wanted} heads, the second is {name}",
                        fix="name the class of each grammar, as in fr@N~hi@V",
                        id="bad-value",
                    )
                if wanted not in grammar.classes:
                    raise UsageError(
                        f"syn: the grammar {name} has no model of {wanted} heads",
                        fix=f"use one of its classes: {', '.join(grammar.classes)}",
                        id="grammar-class",
                    )
                classes[wanted] = grammar
        under = None if self.substrate == "none" else load_grammar(self.substrate, where="--t syn:substrate")
        model = _model(tuple(classes.items()), under, self.mix, self.labels, self.temperature, self.mode)
        used = [f"{name} {grammar.fingerprint}" for name, grammar in classes.items()]
        return model, (*used, *([] if under is None else [f"substrate {under.fingerprint}"]))

    def words(self, batch: Batch) -> WordKinds:
        """Return the properties of the words; demonstratives are marked if the model distinguishes them."""
        return see(batch).with_demonstratives(batch, () if self.model else self.order_model().demonstratives)

    def choose(self, draws: Draws, block: TreeBlock, members: Members) -> Listing:
        """Return the listing with the families of modelled heads in a drawn order, or in the order of counts.

        A family is a head and its dependents. Each member is coded as upos * relations + relation, the head itself as
        tags * relations + upos: with 2 tags, 3 relations, a dependent (1, 2) is 5 and a head of tag 1 is 7.
        """
        seen, forest, listing, top = block.seen, members.forest, members.listing, members.top
        if self.model:
            return members.arranged(self.counted_model().slots(members, seen))
        model = self.order_model()
        ordered = np.array([model.has_model(tag) for tag in seen.tags], bool)
        # Families of roots have no head to order them: their number is n + t.
        which = np.flatnonzero(listing.heads < len(forest))
        which = which.compress(ordered.take(seen.upos.take(top.take(listing.heads.take(which)))))
        if not len(which):
            return listing
        offsets = offsets_of(lengths_of(listing.offsets)[which])
        owner, begins = group_of(offsets), listing.offsets[which]
        entries = np.arange(len(owner)) + (begins - offsets[:-1]).take(owner)
        words = top.take(listing.nodes.take(entries))
        itself = np.flatnonzero(listing.itself.take(entries))
        n_relations = len(seen.relations)
        codes = seen.upos.take(words).astype(np.int64) * n_relations + seen.relation.take(words)
        codes[itself] = len(seen.tags) * n_relations + seen.upos.take(words.take(itself))
        used, numbers = np.unique(codes, return_inverse=True)
        tokens = tuple(_token(code, seen) for code in used.tolist())
        head = listing.heads.take(which)
        tree = forest.tree_of.take(head)
        # The head's place in its tree, so that a draw does not depend on the batch.
        family_keys = draws.draw(block.keys[tree], top.take(head) - block.forest.trees.take(tree))
        families = Families(offsets, numbers.astype(np.int32), tokens, family_keys)
        return listing.reordered(entries, begins.take(owner) + model.draw(families, draws))


def _token(code: int, seen: WordKinds) -> str:
    """Return the grammar's label of a code: `UPOS&deprel` of a dependent, `@UPOS&@` of a head."""
    n_relations = len(seen.relations)
    if code >= len(seen.tags) * n_relations:
        return f"@{seen.tags[code - len(seen.tags) * n_relations]}&@"
    return f"{seen.tags[code // n_relations]}&{seen.relations[code % n_relations]}"


@lru_cache(maxsize=16)
def _counted(grammar: str, counts: Counts, model: str) -> BySide | ByPairs:
    """Return the model of a text such as "side=0.75". The cache keeps what it has computed."""
    name, _, text = model.partition("=")
    if name not in _COUNTED:
        raise unknown(
            "model of syn", name, _COUNTED, where="--t", fix='write model="side=0.75" or model="pairwise=0.7"'
        )
    try:
        threshold = float(text)
    except ValueError:
        threshold = 0.0
    # A share cannot be above 1, so side=1 would move nothing.
    if not 0.5 < threshold <= 1 or (name == "side" and threshold == 1):
        raise UsageError(
            f"syn: model={model} has no threshold above 0.5 and {'below' if name == 'side' else 'up to'} 1",
            where="--t",
            fix=f'write the share that decides an order, as in model="{name}=0.75"',
            id="bad-value",
        )
    row, rows = ("side", counts.sides) if name == "side" else ("pair", counts.pairs)
    if not rows:
        raise UsageError(
            f"syn: model={model} needs rows `{row}`, and the file {grammar} has none",
            where="--t",
            fix="`derivlang grammar count TREEBANK` writes a file with all rows",
            id="bad-value",
        )
    return _COUNTED[name](counts, threshold)


@lru_cache(maxsize=32)
def _model(
    classes: tuple[tuple[str, Grammar], ...],
    substrate: Grammar | None,
    mix: float,
    labels: Literal["map", "as-is"],
    temperature: float,
    mode: Literal["sample", "argmax"],
) -> OrderModel:
    """Return the model of these grammars, which are the same objects until their files change. It is kept."""
    return OrderModel(dict(classes), substrate, mix=mix, labels=labels, temperature=temperature, mode=mode)
