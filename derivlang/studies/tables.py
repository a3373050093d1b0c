"""The tables and keys that a study's file may have, and the form of each value. What reads the file believes them.

check({"study": {"step": 3}}, "my.toml")      my.toml [study]: there is no key 'step'; did you mean steps?
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from derivlang.core.errors import UsageError, unknown
from derivlang.core.settings import text_of
from derivlang.studies.commands import EVALUATE, PRETRAIN
from derivlang.studies.settings import SCALES

Tables = Mapping[str, Any]
_NUMBERS = re.compile(r"[\d.]+(, *[\d.]+)*")  # in a text, as on a command line
Form = Callable[[str, Any, str], None]  # called with a key, its value and the place of its table


def check_tables(tables: Tables, place: str) -> None:
    """Raise UsageError, with the table, for the first key that is not known or has a wrong value. place: the file."""
    for name in tables:
        if name not in _FILE:
            raise unknown("table", name, _FILE, where=place)
    _check(tables, _FILE, place)


def _check(table: Tables, known: Mapping[str, Any], where: str, path: str = "") -> None:
    """Raise UsageError for a table. known: the form of each key. path: of the table in the file, as "grid.cell."."""
    for key, value in table.items():
        form = known.get(key) or known.get("*")
        inner = f"{where[:-1]}.{key}]" if where.endswith("]") else f"{where} [{key}]"
        name = f"{path}{key}"
        if form is None:
            raise unknown("key", key, known, where=where)
        if isinstance(form, list):
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                raise UsageError(f"{key} must be a list of tables", where=where, fix=f"write [[{name}]]", id="study")
            for number, one in enumerate(value, 1):
                _check(one, form[0], f"{where} {key} {number}", f"{name}.")
        elif isinstance(form, dict):
            if not isinstance(value, dict):
                raise UsageError(
                    f"{key} must be a table, not {value!r}", where=where, fix=f"write [{name}]", id="study"
                )
            _check(value, form, inner, f"{name}.")
        else:
            form(key, value, where)


def _of(form: str, is_right: Callable[[Any], bool]) -> Form:
    """Return a form of values. form: for messages."""

    def check(key: str, value: Any, where: str) -> None:
        if not is_right(value):
            raise UsageError(f"{key} = {value!r} must be {form}", where=where, id="bad-value")

    return check


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _levels(name: str, value: Any, where: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
        fix = "use letters, digits, -, _"
        raise UsageError(f"{name!r} is not the name of a factor", where=where, fix=fix, id="study")
    if name in PRETRAIN.reserved:
        PRETRAIN.check_key(name, value, where)
    if not isinstance(value, list) or not value or not all(map(_is_level, value)):
        what = f"{name} = {value!r} must be a list of levels, which are texts, numbers, true or false"
        fix = f"write e.g. {name} = [1, 2]"
        if _is_level(value):
            listed = value if _NUMBERS.fullmatch(str(value)) else json.dumps(value, ensure_ascii=False)
            fix = f"write {name} = [{listed}]"
        raise UsageError(what, where=where, fix=fix, id="bad-value")


def _is_level(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _distinct_levels(name: str, value: Any, where: str) -> None:
    _levels(name, value, where)
    texts = list(map(text_of, value))
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise UsageError(f"the factor {name} has the level {twice[0]} twice", where=where, id="study")


_text = _of("text", _is_text)
_texts = _of("a list of sources, each once", lambda value: _are_texts(value) and len(set(value)) == len(value))
_count = _of("a whole number of at least 1", lambda value: type(value) is int and value > 0)
_number = _of("a number", lambda value: type(value) is not bool and isinstance(value, (int, float)))
_level = _of("a text or a number", _is_level)
_scales = _of(f"a list of one scale or more: {', '.join(SCALES)}", _are_texts)
_STUDY = {
    "source": _text, "text": _texts, "treebanks": _texts, "model": _text, "steps": _count, "workers": _count,
    "threads": _count, "title": _text, "paper": _text, "table": _text, "scales": _scales,
}  # fmt: skip
_REPORT = {
    "baseline": {"*": _level},
    "x": _text,
    "lines": _text,
    "primary": _text,
    "test": _text,
    "names": {"*": {"*": _text}},
    "published": [
        {
            "task": _text, "metric": _text, "source": _text, "regime": _text, "value": _number,
            "values": {"*": _number}, "*": _level,
        }
    ],
}  # fmt: skip
_PARTS = {"factors": {"*": _distinct_levels}, "cell": {"*": PRETRAIN.check_key}, "evaluate": {"*": EVALUATE.check_key}}
_LANGUAGE = {**dict.fromkeys(("text", "t", "ids", "tokenizer", "part"), _text), "*": _level}
_CELLS = {**_PARTS, "zip": [{"*": _levels}], "languages": {"*": _LANGUAGE}}
_FILE = {
    **_CELLS,
    "study": _STUDY,
    "report": _REPORT,
    "scale": {"*": {**_PARTS, "study": _STUDY, "report": _REPORT, "seeds": _count}},
    "grid": [{**_CELLS, "name": _text, "scales": _scales, "scale": {"*": {**_PARTS, "seeds": _count}}}],
}
