"""Golden examples: those of the documentation, worked by hand, and a small table that pins the draws of perm.

A changed draw is another language: sets that were made and sets that will be made no longer match. Where a table
below fails, raise `rule_version` of the transform, say so first in CHANGELOG.md, and only then write the new one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import derivlang
from derivlang import DerivedText, Pipeline
from derivlang.core.sentences import RULE_VERSION
from derivlang.transforms.shuffle import Perm
from derivlang.transforms.trans import Trans
from derivlang.transforms.word_order import Inv
from tests.helpers import make, manifest, rows

RAISE = "the output of {} changed: raise rule_version, note it in CHANGELOG.md, then renew this table"
SENTENCE = "Welcome to ACL ."


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("identity", "Welcome to ACL ."),
        ("inv", "ACL to Welcome ."),
        ("inv:final=keep", "ACL to Welcome ."),
        ("inv:final=move", ". ACL to Welcome"),
        ("inv,inv", "Welcome to ACL ."),
        ("trans", "Წელცომე ტო ᲐᲪᲚ ．"),
        ("trans:georgian", "Წელცომე ტო ᲐᲪᲚ ．"),
        ("trans:script=georgian", "Წელცომე ტო ᲐᲪᲚ ．"),
        ("trans:copy", "𝕎𝕖𝕝𝕔𝕠𝕞𝕖 𝕥𝕠 𝔸ℂ𝕃 \U000f002e"),
        ("trans:overlap=100", "Welcome to ACL ."),
        ("trans,trans", "Welcome to ACL ."),
        ("trans,inv", "ᲐᲪᲚ ტო Წელცომე ．"),
        ("inv,trans", "ᲐᲪᲚ ტო Წელცომე ．"),
    ],
)
def test_documented_examples(spec: str, expected: str) -> None:
    assert derivlang.derive(SENTENCE, spec).text == expected, RAISE.format(spec)


@pytest.mark.parametrize("script", ["georgian", "armenian", "cyrillic", "greek", "copy", "private"])
def test_a_script_undoes_itself(script: str) -> None:
    once = derivlang.derive(SENTENCE, f"trans:{script}")
    assert once.text != SENTENCE
    assert derivlang.derive(once.text, f"trans:{script}").text == SENTENCE
    assert len(once.text) == len(SENTENCE)


def test_the_fields_of_a_derived_text() -> None:
    result = derivlang.derive(SENTENCE, "trans,inv")
    assert result == DerivedText(
        words=["ᲐᲪᲚ", "ტო", "Წელცომე", "．"],
        order=[2, 1, 0, 3],
        text="ᲐᲪᲚ ტო Წელცომე ．",
        source=["Welcome", "to", "ACL", "."],
    )
    raw = derivlang.derive("Didn't it? Yes!", "inv", words="unicode")
    assert raw.source == ["Didn't", "it", "?", "Yes", "!"]
    assert raw.order == [1, 0, 2, 3, 4]
    assert raw.text == "it Didn't ? Yes !"
    nothing = derivlang.derive("", "trans,inv")
    assert (nothing.words, nothing.order, nothing.text, nothing.source) == ([], [], "", [])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("marks", "go I . left He !"),
        ("period", "go I . ! left He"),
        ("unit", "left He . go I !"),
    ],
)
def test_sentence_rules(rule: str, expected: str) -> None:
    assert derivlang.derive("I go . He left !", "inv", sentences=rule).text == expected, "raise sentences.RULE_VERSION"  # type: ignore[arg-type]


THREE = [
    "Welcome to ACL .",
    "the quick brown fox jumps over the lazy dog",
    'He said : " I shall stay at home today . "',
]
DRAWS: dict[str, list[list[int]]] = {
    "perm": [
        [1, 0, 2, 3],
        [3, 5, 2, 8, 6, 0, 4, 1, 7],
        [2, 4, 9, 7, 8, 0, 3, 6, 1, 5, 10, 11],
    ],
    "perm:seed=2": [
        [0, 1, 2, 3],
        [2, 3, 4, 8, 1, 5, 6, 7, 0],
        [6, 5, 2, 7, 8, 4, 0, 9, 3, 1, 10, 11],
    ],
    "perm:window=3": [
        [2, 0, 1, 3],
        [0, 1, 2, 4, 3, 5, 8, 7, 6],
        [1, 0, 2, 4, 5, 3, 8, 6, 7, 9, 10, 11],
    ],
    "perm,perm": [
        [1, 2, 0, 3],
        [2, 3, 8, 1, 0, 5, 6, 4, 7],
        [8, 2, 0, 7, 9, 5, 1, 4, 6, 3, 10, 11],
    ],
}


@pytest.mark.parametrize("spec", ["perm", "perm:seed=2", "perm:window=3", "perm,perm"])
def test_the_draws_of_perm(spec: str) -> None:
    found = [derivlang.derive(sentence, spec).order for sentence in THREE]
    assert found == DRAWS[spec], RAISE.format(spec)


def test_rule_versions() -> None:
    """The goldens here belong to these versions."""
    assert (Inv.rule_version, Perm.rule_version, Trans.rule_version, RULE_VERSION) == (1, 1, 1, 1)


SPECS = {
    "inv": "inv",
    "perm": "perm",
    "trans:script=georgian,inv:final=keep": "trans,inv",
    "trans:script=copy:overlap=25": "trans:copy:overlap=25",
    " trans , perm : window = 3 ": "trans,perm:window=3",
    '"trans":"greek"': "trans:greek",
    "perm:seed=1": "perm",
}


@pytest.mark.parametrize("spec", SPECS)
def test_canonical_specs(spec: str) -> None:
    assert str(Pipeline.parse(spec)) == SPECS[spec]


FINGERPRINTS = {
    "identity": "847f739ab0dba6a6",
    "inv": "f1e6560cb92fd104",
    "trans,inv": "f1e5f328a0537a30",
    "trans:table=1,inv": "b7c61cc5526203bc",
    "perm:window=3": "eb5e813255098669",
}


@pytest.mark.parametrize("spec", list(FINGERPRINTS))
def test_fingerprints(spec: str) -> None:
    """A set that was made is recognised by later versions."""
    assert Pipeline.parse(spec).fingerprint() == FINGERPRINTS[spec]


KEYS = [5796146352931281205, 2208818520245054755]


def test_a_row_of_text(tmp_path: Path) -> None:
    """Every column of the documented example (docs/reference/columns.md)."""
    path = tmp_path / "test.tokens"
    path.write_text("Welcome to ACL . Thanks\n", "utf-8")
    out = make("trans,inv", path, tmp_path / "out")
    assert rows(out).to_pylist() == [
        {
            "document": 0,
            "key": KEYS[0],
            "source": ["Welcome", "to", "ACL", "."],
            "tokens": ["ᲐᲪᲚ", "ტო", "Წელცომე", "．"],
            "order": [2, 1, 0, 3],
            "sentences": [],
            "gaps": [],
        },
        {
            "document": 0,
            "key": KEYS[1],
            "source": ["Thanks"],
            "tokens": ["Ტჰანკს"],
            "order": [0],
            "sentences": [1, 0],
            "gaps": [],
        },
    ]
    made = manifest(out)
    assert made["splits"]["test"]["documents"] == 1
    assert made["splits"]["test"]["sentences"] == 2
    assert made["splits"]["test"]["tokens"] == 5
    assert made["spec"] == "trans:table=2,inv"
