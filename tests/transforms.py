"""What the contract tests of transforms run over: each transform with many settings, and odd batches.

A transform is in `EVERY` by being registered. Its numbers, switches and choices are varied without further code; a
parameter of type str needs values in `_STRINGS`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pyarrow as pa
import pytest

from derivlang.core.arrays import Int32, lengths_of
from derivlang.core.batch import Batch
from derivlang.core.errors import UsageError
from derivlang.core.lexicon import Lexicon
from derivlang.pipeline import Derivation, Pipeline
from derivlang.transforms.base import Transform
from derivlang.transforms.registry import find_transform, transform_names
from derivlang.transforms.scripts import script_names
from tests.plugin.derivlang_sample.parser import Chain
from tests.strategies import Drop, DropPunct, Mark, batch_of, lists, sentence_lists, with_trees

SAMPLES = (Mark, Drop, DropPunct)
_NUMBERS = (0, 1, 3, 100)
_FLOATS = (0.25, 0.5, 2.0)
_FILES = Path(__file__).parent / "dictionaries"
_WORDS = str(_FILES / "words.txt")
# Parameters of type str: where their values are listed.
_STRINGS: dict[str, Callable[[], list[str]]] = {
    "script": script_names,
    "grammar": lambda: ["fr@N", "fr@V~en@N"],
    "substrate": lambda: ["none", "fr"],
    "model": lambda: [],  # it does not go with the parameters of drawn orders: FURTHER
    "weights": lambda: [],  # a file and `random` are two grammars: FURTHER
    "marker": lambda: ["the"],  # a word of the text, too
    "mark": lambda: ["🅁", "the"],
    "places": lambda: ["1-0", "2-900"],
    "words": lambda: [_WORDS],
    "sing": lambda: ["the"],
    "plur": lambda: ["pl"],
    "upos": lambda: ["punct", "NOUN+VERB"],
    "arguments": lambda: ["subj", "subj+obj+iobj"],
    "on": lambda: ["010000", "111111"],
    "rules": lambda: [],  # the trees are of no grammar: FURTHER
    "order_": lambda: ["D-A-N-Num", "D-Num-A-N"],
    "edge": lambda: ["VP", "NP"],
    "system": lambda: ["erg-abs", "none", str(_FILES / "suffixes.tsv")],
}
# What a transform cannot do without.
GIVEN: dict[str, dict[str, Any]] = {
    "dialect": {"phon": 0.5, "suffix": 0.5},
    "lex": {"file": str(_FILES / "toy.tsv")},
    "sort": {"counts": str(_FILES / "counts.tsv")},
}
# Settings that do not go with the values of other parameters.
_TABLE = str(_FILES / "weights.tsv")
FURTHER: dict[str, list[dict[str, Any]]] = {
    "dialect": [{"phon": 0.5}, {"nonce": 0.5, "words": _WORDS}],
    "hop": [{"edge": "VP", "by": "tags"}, {"words": 0, "by": "tags"}],
    "grammar": [{"weights": _TABLE}, {"weights": _TABLE, "heads": "function", "punct": "permute"}],
    "inv": [{"from_": "random", "mark": "🅁", "rng": "numpy"}],
    "syn": [
        {"grammar": "hi", "model": "side=0.75"},
        {"grammar": "ja", "model": "pairwise=0.7"},
        {"grammar": "ga", "model": "pairwise=0.7", "freeze": "none", "punct": "permute", "nonprojective": "keep-order"},
    ],
    "sort": [{}, {"first": "rare", "final": "move"}],
    "switch": [{"on": "10", "rules": str(_FILES / "switches.pcfg"), "final": "move"}],
    "trans": [
        {"offset": 200_000},
        {"clones": 6, "overlap": 50, "by": "mass", "seed": 2},
        {"script": "greek", "overlap": 50, "by": "frequency", "seed": 2, "table": 1},
    ],
}


def settings_of(transform: type[Transform]) -> Iterator[Transform]:
    """The default, each parameter alone at each of some values, and all of them away from their defaults.

    Settings that a transform refuses, since they exclude each other, are left out.
    """
    hints = get_type_hints(transform)
    values: dict[str, list[Any]] = {}
    for parameter, field in zip(transform.parameters(), dataclasses.fields(transform), strict=True):
        name, kind = field.name, hints[field.name]
        if name == "unit":
            continue  # sub-words, which these batches have not: tests/test_tokenizers_subwords.py
        low, high = field.metadata["low"], field.metadata["high"]
        found: list[Any]
        if name == "table":
            found = [1]  # every script has it
        elif get_args(kind):
            found = list(get_args(kind))
        elif kind is bool:
            found = [False, True]
        elif kind is int:
            found = (
                [2]
                if name == "seed"
                else [n for n in _NUMBERS if (low is None or n >= low) and (high is None or n <= high)]
            )
        elif kind is float:
            found = [n for n in _FLOATS if (low is None or n >= low) and (high is None or n <= high)]
        elif name in GIVEN.get(transform.name, {}):
            continue
        else:
            assert name in _STRINGS, f"{transform.name} has a parameter {name}: list some values of it in _STRINGS"
            found = _STRINGS[name]()
        values[name] = [value for value in found if value != parameter["default"]]
    given: dict[str, Any] = dict(GIVEN.get(transform.name, {}))
    yield transform(**given)
    several = [{name: value} for name, others in values.items() for value in others]
    if len(values) > 1:
        several.append({name: others[len(others) // 2] for name, others in values.items() if others})
    for settings in several:
        with suppress(UsageError):
            yield transform(**{**given, **settings})
    for further in FURTHER.get(transform.name, []):
        yield transform(**further)


EVERY = list(dict.fromkeys(t for cls in [*map(find_transform, transform_names()), *SAMPLES] for t in settings_of(cls)))
every = pytest.mark.parametrize("transform", EVERY, ids=str)
# Those whose result is a function of the sentence; tests/test_drawn_in_sequence.py has the laws of the others.
keyed = pytest.mark.parametrize("transform", [t for t in EVERY if t.keyed], ids=str)
lexical = pytest.mark.parametrize("transform", [t for t in EVERY if t.has_lexicon], ids=str)
# Plain text has no labels, but a parser gives it tags and trees where heads are needed.
OF_TEXT = [t for t in EVERY if not t.needs or {"head"} <= {*t.needs} <= {"head", "upos"}]
of_trees = pytest.mark.parametrize("transform", [t for t in EVERY if {*t.needs} <= {"head", "upos"}], ids=str)
keyed_of_text = pytest.mark.parametrize("transform", [t for t in OF_TEXT if t.keyed], ids=str)


def few(transforms: list[Transform]) -> list[Transform]:
    """The default and the last setting of each. With every setting a sentence is derived alike among any others."""
    first = {t.name: t for t in reversed(transforms)}
    last = {t.name: t for t in transforms}
    return list(dict.fromkeys([*first.values(), *last.values()]))


UNITS: dict[str, list[list[str]]] = {
    "no units": [],
    "an empty unit": [[]],
    "one word": [["Hello"]],
    "one mark": [["."]],
    "no final mark": ["the cat sat on the mat".split()],
    "all marks": [[".", "!", "?", "…", ".", ".", "?!"]],
    "two sentences": ["He left . She did not !".split()],
    "a closing quote": ['" I go " , he said . " Really ? "'.split()],
    "right to left": ["هل قرأت الكتاب الجديد ؟ نعم .".split(), "שלום עולם , מה שלומך ?".split()],
    "combining": ["Cafe\u0301 nai\u0308ve \u202bمرحبا\u202c 👩‍👩‍👧 .".split(" ")],
    "specials": ["<unk> met [MASK] and <unk> .".split()],
    "odd words": ['a\u00a0b \ufeffc ,:=" 10\u202f000 ≠ ｆｕｌｌ .'.split(" ")],
    "long": [[f"w{n % 40}" for n in range(300)] + ["."]],
    "repeats": ["the the the the . the the the the .".split()] * 3,
    "empty ones between": [[], ["a", "b", "."], [], ["c"], []],
}
ALL = [unit for units in UNITS.values() for unit in units]
DISTINCT = [unit for number, unit in enumerate(ALL) if unit not in ALL[:number]]


def batch_for(units: list[list[str]], *, running: bool = False, whole_units: bool = False) -> Batch:
    """A batch with tags and trees, one a sentence or one a unit; read-only."""
    return _batch_for(tuple(map(tuple, units)), running, whole_units)


@cache
def _batch_for(units: tuple[tuple[str, ...], ...], running: bool, whole_units: bool) -> Batch:
    return all_frozen(with_trees(batch_of(units, running=running), whole_units=whole_units))


def all_frozen(batch: Batch) -> Batch:
    for value in arrays_in(batch):
        value.flags.writeable = False
    return batch


def arrays_in(thing: Any) -> Iterator[np.ndarray]:
    """All arrays of a dataclass and of what it holds."""
    for field in dataclasses.fields(thing):
        value = getattr(thing, field.name)
        for part in value.values() if isinstance(value, dict) else [value]:
            if isinstance(part, np.ndarray):
                yield part
            elif dataclasses.is_dataclass(part):
                yield from arrays_in(part)


@cache
def reference() -> tuple[pa.Array, np.ndarray]:
    """The types of all cases and their counts; read-only."""
    counts = Counter(word for unit in ALL for word in unit)
    numbers = np.array(list(counts.values()), np.int64)
    numbers.flags.writeable = False
    return pa.array(list(counts), pa.string()), numbers


@cache
def lexicon_of(pipeline: Pipeline) -> Lexicon:
    return pipeline.fit(*reference())


def derive(spec: Transform | str, batch: Batch) -> Derivation:
    pipeline = Pipeline((spec,)) if isinstance(spec, Transform) else Pipeline.parse(spec)
    parser = Chain() if pipeline.needs_trees else None
    return pipeline.begin().derive(batch, lexicon_of(pipeline), split=False, parser=parser)


@cache
def derived_all(transform: Transform) -> Derivation:
    """All units at once, with tags and trees, as many laws compare them; read-only."""
    found = derive(transform, batch_for(ALL))
    for part in (found.derived, found.order):
        for array in arrays_in(part):
            array.flags.writeable = False
    return found


@cache
def _sentences_of_all(transform: Transform) -> list[tuple[list[str], list[int]]]:
    return per_sentence(derived_all(transform))


def sentences_of_all(transform: Transform) -> list[tuple[list[str], list[int]]]:
    """`per_sentence` of all units at once."""
    return list(_sentences_of_all(transform))


def per_sentence(derived: Derivation) -> list[tuple[list[str], list[int]]]:
    """Derived words and order, from 0 in the sentence, of each sentence."""
    words = sentence_lists(derived.derived)
    starts = np.repeat(derived.source.sentences[:-1], lengths_of(derived.order.sentences))
    local: Int32 = np.where(derived.order.index < 0, -1, derived.order.index - starts)
    return list(zip(words, lists(local.tolist(), derived.order.sentences), strict=True))
