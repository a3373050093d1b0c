"""The reference page of specs: what `derivlang ls` lists, with its parameters. `conf.py` writes it."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from click.testing import CliRunner

from derivlang.cli.ls import IN_SEQUENCE
from derivlang.cli.main import main
from derivlang.core.spec import quote, text_of
from derivlang.transforms.registry import find_transform, transform_names

HEAD = """# Spec strings

A spec names transforms (`--t`) or an objective (`--objective`), with parameters:

```text
name[:value][:key=value]...[,name...]
```

- Transforms are applied from left to right: `trans,inv` transliterates, then inverts.
- Parameters follow a colon. One marked *by place* may be written without its name: `syn:ja` is `syn:grammar=ja`.
- A value with `,`, `:`, `=` or `"` is written in double quotes, in which `""` stands for `"`: `lex:"my,file.txt"`.
- A parameter at its default is left out of the canonical spec, which manifests, reports and names of folders have.

```pycon
>>> import derivlang
>>> str(derivlang.Pipeline.parse("perm:window=3, inv:final=keep"))
'perm:window=3,inv'
>>> derivlang.derive("Welcome to ACL .", "trans:cyrillic,inv").text
'АЦЛ то Шелцоме ．'
```

`derivlang ls` prints these tables, also with what other packages add.
"""

PARAMETERS = "\n| parameter | values | default | |\n|---|---|---|---|\n"


def page() -> str:
    """The text of docs/reference/specs.md."""
    found = json.loads(CliRunner().invoke(main, ["ls", "--json"], catch_exceptions=False).stdout)
    return HEAD + "".join(
        [
            "\n## Transforms\n",
            *(part for entry in found["transforms"] for part in _parameterised(entry)),
            "\n## Objectives\n\n[Objectives](objectives.md) has their losses and sources.\n",
            *(part for entry in found["objectives"] for part in _parameterised(entry)),
            _table("Tasks", found["tasks"], {"metrics": lambda task: _codes(task["metrics"])}),
            f"\n## Measures\n\n{_codes(entry['name'] for entry in found['measures'])}: "
            "[what they measure](evaluation.md#measures).\n",
            _table(
                "Sources",
                found["sources"],
                {"splits": lambda source: _codes(source["splits"]), "licence": lambda source: source["licence"]},
            ),
            "\nA source is also a file or a folder of files, a derived set, the URL of one of these "
            "(`s3://bucket/folder`), or `hub:NAME/CONFIG@REVISION`.\n",
            "\n## Generated sources\n\n`source:NAME=VALUE:key=value`: [what they make](../guide/generated.md).\n",
            *(part for entry in found["generators"] for part in _parameterised(entry)),
            _table("File formats", found["formats"], {"suffixes": lambda entry: _codes(entry["suffixes"])}),
            "\nText formats are also read from `.gz` and `.zst`.\n",
            _table("Scripts", found["scripts"], {"`Welcome 2023`": _sample}),
        ]
    )


def _parameterised(entry: dict[str, Any]) -> Iterator[str]:
    """The section of a transform, an objective or a generated source."""
    yield f"\n### `{entry['name']}`\n\n{_cell(entry['summary'])}\n"
    if source := _source(entry["name"]):
        yield f"\nFrom: {source}\n"
    if not entry.get("keyed", True):
        yield f"\n{IN_SEQUENCE[:-1]} ([more](../guide/orders.md#draws-in-sequence)).\n"
    if entry["parameters"]:
        yield PARAMETERS
    for one in entry["parameters"]:
        name = f"`{one['name']}`" + (", by place" if one["positional"] else "")
        default = f"`{quote(text_of(one['default']))}`" if one["default"] not in ("", None) else "–"
        yield f"| {name} | {_values(one)} | {default} | {_cell(one['help'])} |\n"


def _source(name: str) -> str:
    """The papers of a transform, with their sections: the end of its docstring, or of its module's; "" for others."""
    if name not in transform_names():
        return ""
    transform = find_transform(name)
    text = f"{inspect.getdoc(transform)}\n\n{sys.modules[transform.__module__].__doc__ or ''}"
    found = re.search(r"^Sources?: (.*?)(?:\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _values(parameter: dict[str, Any]) -> str:
    """What a parameter may be: its choices, or its type with its bounds."""
    if "|" in parameter["type"]:
        return _codes(parameter["type"].split("|"))
    name = {"int": "integer", "float": "number", "str": "text"}[parameter["type"]]
    low, high = parameter["low"], parameter["high"]
    if low is None:
        return name
    return f"{name}, at least {low}" if high in (None, 2**31 - 1) else f"{name}, {low} to {high}"


def _table(title: str, entries: list[dict[str, Any]], columns: dict[str, Any]) -> str:
    """A section with a row for each entry: name, summary, and further columns by their heads."""
    lines = [f"\n## {title}\n", f"| name | | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for entry in entries:
        cells = " | ".join(_cell(value(entry)) for value in columns.values())
        lines.append(f"| `{entry['name']}` | {_cell(entry['summary'])} | {cells} |")
    return "\n".join(lines) + "\n"


def _sample(script: dict[str, Any]) -> str:
    return "private-use characters" if script["name"] == "private" else str(script["sample"])


def _codes(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
