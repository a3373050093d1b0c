"""The fingerprint of a pipeline: 16 hex digits that change with anything its output depends on.

Each transform is hashed by its labelled parts, and the pipeline by the hashes of its transforms and of its lexicon:

    transform=trans     the name
    trans.table=2       the parameters that its stored spec states
    rule=1              the version of its rule
    resource=…          the files that it reads (dictionaries, grammars)

Only stated parameters are hashed: a parameter that a later version adds changes no fingerprint of what was made
before, and a stored spec means the same to every version. The package version is not hashed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence

from derivlang.core.spec import read_spec
from derivlang.transforms.base import Transform
from derivlang.transforms.fitting import saved_positions

_FORMAT = 2  # of the hashed text; it is hashed, too


def fingerprint(transforms: Sequence[Transform], lexicon: str | None) -> str:
    """Return the fingerprint of a chain of transforms with its lexicon (the text of lexicon.tsv, or None).

    A file need not be there if the lexicon holds what was read from it.
    """
    held = saved_positions(transforms, lexicon)
    parts = [f"transform={part_hash(t, held=i in held)}" for i, t in enumerate(transforms)]
    return _hash([f"format={_FORMAT}", *parts, f"lexicon={_hash_of_text(lexicon)}"])[:16]


def part_hash(transform: Transform, *, held: bool = False) -> str:
    """Return the SHA-256 of a transform's labelled parts. held: its files are not read, since the lexicon has them."""
    return _hash(labelled_parts(transform) + ([] if held else [f"resource={file}" for file in transform.resources]))


def labelled_parts(transform: Transform) -> list[str]:
    """Return `label=value` for each part of a transform that is known without reading a file."""
    ((name, values, keyed),) = read_spec(transform.stored)
    positional = [field.name for field in dataclasses.fields(transform) if field.metadata["positional"]]
    stated = dict(zip(positional, values, strict=False)) | keyed
    parameters = [f"{name}.{key}={stated[key]}" for key in sorted(stated)]
    return [f"transform={name}", *parameters, f"rule={transform.rule_version}"]


def _hash_of_text(text: str | None) -> str | None:
    return hashlib.sha256(text.encode()).hexdigest() if text else None


def _hash(parts: list[str]) -> str:
    """Return the SHA-256 of a list of strings. As JSON, a line break in a value is not taken for the next part."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
