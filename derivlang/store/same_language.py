"""Whether two sets are of one derived language, and if not, what differs.

Equal fingerprints are equal languages. If they differ, the parts that they are hashes of are compared:

    the transforms and their parameters     trans:overlap=25 in A and trans:overlap=50 in B
    the lexicon, word by word               the first word that differs is 'is': image=ის … in A, image=is … in B
    rules and files (grammars)              a set whose fingerprint no longer matches its spec and its lexicon
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from derivlang.store.manifest import LEXICON, Derived
from derivlang.transforms.fitting import sections


def compare(one: Derived, other: Derived) -> dict[str, Any]:
    """Compare the languages of two sets.

    Returns {"ok", "sets": [{"out", "spec", "fingerprint"}], "differences", "notes"}; the last two are sentences. `ok`
    is whether they are one language. Policies are not part of it.
    """
    differences = list(_differences(one, other))
    ours, theirs = (dataclasses.asdict(derived.policies) for derived in (one, other))
    notes = [
        f"--{name} is {value} in {one.folder} and {theirs[name]} in {other.folder}: it is not part of the language, "
        "but changes the order of some sentences"
        for name, value in ours.items()
        if value != theirs[name]
    ]
    told = [
        {"out": str(derived.folder), "spec": str(derived.pipeline), "fingerprint": derived.manifest["fingerprint"]}
        for derived in (one, other)
    ]
    return {"ok": not differences, "sets": told, "differences": differences, "notes": notes}


def _differences(one: Derived, other: Derived) -> Iterator[str]:
    """Yield what differs."""
    if str(one.pipeline) != str(other.pipeline):
        yield f"the transforms are {one.pipeline} in {one.folder} and {other.pipeline} in {other.folder}"
        return
    differences = [*_of_files(one, other), *_of_lexicons(one, other)]
    if not differences:
        one.pipeline.check_keyed("a language of two corpora", str(one.folder))
    if differences or one.manifest["fingerprint"] == other.manifest["fingerprint"]:
        yield from differences
        return
    for derived in (one, other):
        files = [str(transform) for transform in derived.pipeline.transforms if transform.resources]
        if not derived.has_fingerprint():
            what = f"the grammar or another file of {', '.join(files)}, or a rule" if files else "a rule"
            yield f"{what} has changed since derivlang {derived.manifest.get('derivlang')} made {derived.folder}"


def _of_files(one: Derived, other: Derived) -> Iterator[str]:
    """Yield the transforms of equal specs that read other files. Sets keep copies of these files."""
    for left, right in zip(one.pipeline.transforms, other.pipeline.transforms, strict=True):
        if not left.saves and left.resources != right.resources:
            yield f"the grammar or another file of {left} in {one.folder} is not the one in {other.folder}"


def _of_lexicons(one: Derived, other: Derived) -> Iterator[str]:
    """Yield the first word that differs in each section of the lexicons; the sections belong to equal specs."""
    for (_, ours), (_, theirs) in zip(sections(one.lexicon_text()), sections(other.lexicon_text()), strict=False):
        left, right = _rows(ours), _rows(theirs)
        differing = [word for word in {**left, **right} if left.get(word) != right.get(word)]
        for word in sorted(differing, key=lambda word: word not in left or word not in right)[:1]:  # in both, if any
            what = f"the first word that differs is {word!r}"
            was, now = left.get(word, "it is missing"), right.get(word, "it is missing")
            yield f"{LEXICON}: {what}: {was} in {one.folder}, {now} in {other.folder}"
        if not differing and ours != theirs:
            yield f"{LEXICON}: words have other counts in {one.folder} and in {other.folder}"


def _rows(state: str) -> dict[str, str]:
    """Return the rows of each word in the state of a transform, without its counts: a word, then other columns.

    type image count kept / is ის 1 changed   ->   {"is": "image=ის kept=changed"}
    """
    header, *lines = (line.split("\t") for line in state.removesuffix("\n").split("\n"))  # words may hold U+2028
    rows: dict[str, list[str]] = {}
    for word, *values in lines:
        shown = (f"{name}={value}" for name, value in zip(header[1:], values, strict=False) if name != "count")
        rows.setdefault(word, []).append(" ".join(shown))
    return {word: "; ".join(several) for word, several in rows.items()}
