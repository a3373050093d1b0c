"""Transforms by name: the built-in ones, and transforms from other packages (entry points `derivlang.transforms`)."""

from __future__ import annotations

from derivlang.core.plugins import Registry
from derivlang.transforms.base import Transform

TRANSFORMS: Registry[type[Transform]] = Registry(
    "transform",
    Transform,
    {
        "agree": "derivlang.transforms.suffixes:Agree",
        "case": "derivlang.transforms.suffixes:Case",
        "dialect": "derivlang.transforms.dialect:Dialect",
        "drop": "derivlang.transforms.forms:Drop",
        "exchange": "derivlang.transforms.word_order:ExchangePlaces",
        "flip": "derivlang.transforms.word_order:Flip",
        "grammar": "derivlang.transforms.grammar:WeightGrammar",
        "hop": "derivlang.transforms.hop:Hop",
        "identity": "derivlang.transforms.word_order:Identity",
        "inv": "derivlang.transforms.word_order:Inv",
        "lemma": "derivlang.transforms.forms:Lemma",
        "lex": "derivlang.transforms.lex:Lex",
        "mallows": "derivlang.transforms.shuffle:Mallows",
        "np": "derivlang.transforms.constituents:NounPhrase",
        "perm": "derivlang.transforms.shuffle:Perm",
        "scramble": "derivlang.transforms.scramble:Scramble",
        "shuffle": "derivlang.transforms.shuffle:Shuffle",
        "sort": "derivlang.transforms.sort:Sort",
        "sov": "derivlang.transforms.sov:Sov",
        "stride": "derivlang.transforms.word_order:Stride",
        "swap": "derivlang.transforms.swap:Swap",
        "switch": "derivlang.transforms.constituents:Switch",
        "syn": "derivlang.transforms.syn:Syn",
        "trans": "derivlang.transforms.trans:Trans",
    },
    of_classes=True,
    overrides=("order", "fit", "forms"),
    instead={
        "resample": "source:resample=SOURCE in place of the source",
        "source": "it in place of the source, as in: derivlang make source:pcfg=FILE …",
    },
)
transform_names = TRANSFORMS.names
find_transform = TRANSFORMS.find


def register(transform: type[Transform]) -> type[Transform]:
    """Register a transform for this process. Works as a decorator, for notebooks and tests.

    >>> @register
    ... class Still(Transform):
    ...     "Another name of the source itself."
    ...     name = "still"
    ...     def order(self, batch, draws):
    ...         return super().order(batch, draws)
    >>> derivlang.derive("Welcome to ACL .", "still,inv").text
    'ACL to Welcome .'

    Raise UsageError for a class that is not a transform or does nothing, and for the name of a built-in one.
    """
    return TRANSFORMS.add(getattr(transform, "name", ""), transform)
