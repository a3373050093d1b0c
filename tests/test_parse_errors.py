"""The boundary of readers: nothing but a DerivlangError leaves it, and it names its place."""

import json

import pyarrow as pa
import pytest

from derivlang.core.errors import DataError, StoreError, parse_errors


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1" * 5000, "Exceeds the limit"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ],
)
def test_json_of_all_kinds_is_one_error(text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught, parse_errors("a.json:3", "JSON"):
        json.loads(text)
    assert caught.value.where == "a.json:3"


@pytest.mark.parametrize(
    "raised",
    [KeyError("spec"), TypeError("x"), AttributeError("x"), OverflowError("x"), pa.ArrowInvalid("x"), MemoryError()],
)
def test_whatever_a_parser_raises_becomes_the_error_asked_for(raised: Exception) -> None:
    with pytest.raises(StoreError) as caught, parse_errors("m", "manifest", error=StoreError, id="manifest"):
        raise raised
    assert caught.value.id == "manifest"
    assert caught.value.__cause__ is raised


def test_the_place_is_asked_for_when_something_fails() -> None:
    lines = iter(["1", "2", "no number"])
    seen: list[str] = []
    with pytest.raises(DataError) as caught, parse_errors(lambda: f"f:{len(seen) + 1}", "number"):
        seen.extend(line for line in lines if int(line) or True)
    assert caught.value.where == "f:3"


def test_own_errors_and_interrupts_pass() -> None:
    own = DataError("own", id="own")
    with pytest.raises(DataError) as caught, parse_errors("f", "row"):
        raise own
    assert caught.value is own
    with pytest.raises(KeyboardInterrupt), parse_errors("f", "row"):
        raise KeyboardInterrupt


def test_a_long_foreign_message_is_cut() -> None:
    with pytest.raises(DataError) as caught, parse_errors("f", "row"):
        raise ValueError("x" * 100_000)
    assert len(str(caught.value)) < 400
