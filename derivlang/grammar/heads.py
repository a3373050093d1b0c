"""Heads as a user writes them: a UPOS and the labels of its family, in surface order.

VERB    NOUN&nsubj @VERB&@ NOUN&obj          a line of a file has a tab between the two
"""

from __future__ import annotations

from pathlib import Path

from derivlang.core.errors import DataError, UsageError
from derivlang.formats.opening import open_lines
from derivlang.grammar.families import UPOS
from derivlang.grammar.labels import V1_RELATIONS, V2_RELATIONS


def read_heads(path: Path) -> list[tuple[str, str, str]]:
    """Return (file:line, UPOS, labels) of each line. Raises DataError nodes-line."""
    out = []
    for number, line in open_lines(path):
        upos, tab, text = line.partition("\t")
        if not tab:
            raise DataError(
                f"{line!r} has no tab", where=f"{path}:{number}", fix="write VERB, a tab, the labels", id="nodes-line"
            )
        out.append((f"{path}:{number}", upos, text))
    return out


def parse_head(upos: str, text: str, where: str, *, any_relation: bool = False) -> list[str]:
    """Return the labels of one head. any_relation: accept relations that UD does not have.

    Raises UsageError not-a-upos, family-head, not-a-relation.
    """
    labels = text.split()
    if upos not in UPOS:
        raise UsageError(f"{upos!r} is not a UPOS", where=where, fix=f"one of {', '.join(UPOS)}", id="not-a-upos")
    heads = [label for label in labels if label.startswith("@")]
    if heads != [f"@{upos}&@"]:
        given = "no head" if not heads else f"the heads {' '.join(heads)}"
        raise UsageError(f"there must be one head @{upos}&@, found {given}", where=where, id="family-head")
    for label in labels:
        tag, _, relation = label.removeprefix("@").partition("&")
        if tag not in UPOS:
            raise UsageError(f"{label!r}: {tag!r} is not a UPOS", where=where, fix="write UPOS&deprel", id="not-a-upos")
        plain = relation.partition(":")[0]
        if not relation or (not any_relation and relation != "@" and plain not in V1_RELATIONS | V2_RELATIONS):
            raise UsageError(
                f"{label!r}: {relation!r} is not a relation of UD version 1 or 2",
                where=where,
                fix="write UPOS&deprel, or pass --labels as-is",
                id="not-a-relation",
            )
    return labels
