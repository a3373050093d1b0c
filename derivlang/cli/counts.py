"""What a run counted, as sentences for people. `--json` and the manifest keep the names (docs/formats.md).

mwt-dissolved 18 -> 18 multiword tokens were dissolved: their words are no longer adjacent …
"""

from __future__ import annotations

import re
from collections.abc import Collection

# Name, or its ending after that of a column -> sentence. [a|b]: a of one thing, b of several.
_WHOLE = {
    "mwt-dissolved": "multiword token[|s] [was|were] dissolved: [its|their] words are no longer adjacent and in order "
    "(--mwt atomic keeps [it|them])",
    "empty-nodes-dropped": "empty node[|s] [was|were] left out, since [its|their] word was deleted",
    "lex-replaced": "word[|s] [was|were] replaced by lex",
    "trees-not-projective": "source tree[|s] [has|have] crossing arcs (punctuation within phrases not counted)",
    "trees-kept-for-a-mark": "tree[|s] [keeps its|keep their] order, since a bracket or quote would come first",
}
_ENTITIES = {
    "split": "entit[y|ies] of {column} [was|were] split by the reordering "
    "(--entities atomic keeps [it|them] whole, drop leaves [it|them] out)",
    "dropped": "entit[y|ies] of {column} [was|were] left out, since the reordering splits [it|them] "
    "(--entities atomic keeps [it|them] whole)",
}
_COLUMN = {
    "deleted": "entit[y|ies] of {column} [was|were] deleted with all [its|their] words",
    "repaired": "ill-formed tag[|s] of {column} [was|were] repaired",
    "cut": "answer[|s] of {column} [was|were] cut to [its|their] longest run of words, since the reordering splits "
    "[it|them] (--answers atomic keeps [it|them] whole, drop leaves [it|them] out)",
    "dropped": "answer[|s] of {column} [was|were] left out, since the reordering splits [it|them] "
    "(--answers atomic keeps [it|them] whole)",
    "widened": "answer[|s] of {column} [was|were] widened to whole words",
}
_FORMS = re.compile(r"\[([^\]|]*)\|([^\]]*)\]")


def sentence(name: str, count: int, entities: Collection[str]) -> str:
    """Return what a count means. entities: the columns of entities.

    A count of another package is `3 references to words that were deleted`, if its layer declares the meaning, else
    `name: 3`.
    """
    column, _, ending = name.rpartition("-")
    found = _WHOLE.get(name) or (_ENTITIES.get(ending) if column in entities else None) or _COLUMN.get(ending)
    if found is None:
        meaning = _declared(name)
        return f"{name}: {count:,}" if meaning is None else f"{count:,} {meaning} ({name})"
    found = _FORMS.sub(lambda forms: forms[1 if count == 1 else 2], found)
    return f"{count:,} {found.format(column=column)}"


def _declared(name: str) -> str | None:
    """Return the meaning that a layer declares for a count, None if no layer does."""
    from derivlang.core.layers.registry import find_layer, layer_kinds

    for kind in layer_kinds():
        for loss, meaning in find_layer(kind).losses.items():
            if name.endswith(loss.removeprefix("{}")):
                return meaning
    return None
