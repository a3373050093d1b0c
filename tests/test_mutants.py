"""The list of mutants (tests/mutant_sites.py) names code that is there, and a mutant changes what it says."""

from __future__ import annotations

import pytest

from tests.mutant_sites import NUMBER, gone, listed, sites

TEXT = '''"""Docstring 1."""


@dataclass(frozen=True)
class A:
    n: Literal[1] = 2

    def f(self, x: int) -> bool:
        if not self.g(x):
            raise ValueError(3, f"é{4}")
        return x <= 5 and "ä" in self.names or all(a for a in zip(x, strict=True) if a)
'''


def test_the_list_names_code_that_is_there() -> None:
    assert len(listed()) == NUMBER
    assert gone() == [], "run `python -m tests.mutants --alive`, which draws others"


@pytest.mark.parametrize(
    ("scope", "before", "after"),
    [
        ("A", "2", "3"),
        ("A.f()", "not self.g(x)", "self.g(x)"),
        ("A.f()", "5", "6"),
        ("A.f()", "x <= 5", "x < 5"),
        ("A.f()", '"ä" in self.names', "'ä' not in self.names"),
        ("A.f()", "a", "not a"),
    ],
)
def test_a_mutant_is_a_comparison_a_constant_or_a_branch(scope: str, before: str, after: str) -> None:
    """Neither docstrings, annotations and messages, nor `strict` of `zip` and options of dataclasses."""
    found = {TEXT.encode()[begin:end].decode(): mutant for mutant, (begin, end) in sites(TEXT, "a.py").items()}
    assert len(found) == 8
    assert (found[before].scope, found[before].after) == (scope, after)
