"""Exact probabilities: against enumeration written out in `tests/grammars.py`, and against each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from derivlang.grammar import exact
from derivlang.grammar.enumerate_orders import all_orders
from derivlang.grammar.model import Families, OrderModel, load_grammar
from tests.grammars import MODELS, Keyed, old, plain_distribution, plain_weights, sizes, treebank
from tests.real import SHARED, needs_data

TREEBANKS = ("UD_English-EWT", "UD_French-GSD", "UD_German-GSD", "UD_Persian-Seraji", "UD_Irish-IDT", "UD_Turkish-BOUN")
PER_FILE = {2: 6, 3: 12, 4: 12, 5: 8, 6: 1}  # families of each size


def real_heads(number: int, head_class: str, wanted: dict[int, int]) -> list[list[str]]:
    """Some families of a treebank, another part of another treebank for each number, with v1 labels."""
    families = treebank(TREEBANKS[number % len(TREEBANKS)], "dev")
    heads = ("@VERB&@",) if head_class == "V" else ("@NOUN&@", "@PROPN&@", "@PRON&@")
    of_class = np.isin(families.members[families.head_places], [families.tokens.index(h) for h in heads])
    out = []
    for n, count in wanted.items():
        found = np.flatnonzero(of_class & (sizes(families) == n))
        out += [families.labels(int(found[(number * 131 + 17 * i) % len(found)])) for i in range(count)]
    return [[old(label) for label in family] for family in out]


@needs_data
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_a_published_model_gives_the_plain_distribution(path: Path) -> None:
    number = MODELS.index(path)
    name = path.name.partition(".")[0][-1]
    weights = plain_weights(path)
    model = OrderModel(load_grammar(path), labels="as-is")
    for labels in real_heads(number, name, PER_FILE):
        plain = plain_distribution(labels, (1.0, weights))
        orders, probabilities = model.distribution(labels)
        assert [tuple(order) for order in orders.tolist()] == list(plain)
        np.testing.assert_allclose(probabilities, list(plain.values()), atol=1e-9, rtol=0)


@needs_data
@pytest.mark.parametrize("name", ["N", "V"])
def test_seven_members_and_a_mixture(name: str) -> None:
    paths = [SHARED / f"gd/models/GD_{language}/{code}@{name}.orm.gz" for language, code in (("Irish", "ga"), ("English", "en"))]
    ga, en = map(load_grammar, paths)
    mixture = [(0.95, plain_weights(paths[0])), (0.05, plain_weights(paths[1]))]
    for labels in real_heads(0, name, {7: 1, 5: 5, 3: 10}):
        plain = plain_distribution(labels, *mixture)
        _, probabilities = OrderModel(ga, en, labels="as-is").distribution(labels)
        np.testing.assert_allclose(probabilities, list(plain.values()), atol=1e-9, rtol=0)
