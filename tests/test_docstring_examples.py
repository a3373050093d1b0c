"""The examples in the docstrings of the public interface, which the reference page on Python shows."""

from __future__ import annotations

import doctest
import sys

import pytest

import derivlang
from derivlang.transforms import registry

OBJECTS = [derivlang, *(getattr(derivlang, name) for name in derivlang.__all__)]
FINDER = doctest.DocTestFinder(recurse=True)


def examples(thing: object) -> list[doctest.DocTest]:
    """The examples of an object; they see the names of its module, and `derivlang`."""
    home = sys.modules[getattr(thing, "__module__", "derivlang")]
    if thing is derivlang:
        return [test for test in FINDER.find(thing, module=home) if test.name == "derivlang"]
    return FINDER.find(thing, module=home, globs={**vars(home), "derivlang": derivlang})


TESTS = [test for thing in OBJECTS for test in examples(thing) if test.examples]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_an_example_is_right(test: doctest.DocTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.TRANSFORMS, "added", {})
    report: list[str] = []
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


def test_examples_are_found() -> None:
    assert {"derivlang", "derive", "map_dataset", "Pipeline"} <= {test.name for test in TESTS}
