"""What a run counted, as sentences for people. `--json` and the manifest keep the names (docs/reference/counts.md).

mwt-dissolved 18 -> 18 multiword tokens were dissolved: their words are no longer adjacent …
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from derivlang.core.schema import Field

# What transforms count; layers declare theirs in `Layer.losses`. [a|b]: a of one thing, b of several.
_OF_TRANSFORMS = {
    "lex-replaced": "word[|s] [was|were] replaced by lex",
    "hops-cut": "marker[|s] of hop [has|have] too few words before the end of the sentence, and [stands|stand] there",
    "hops-unknown": "verb[|s] tagged VBP [has|have] no marker of hop, since the tag does not say [its|their] person",
    "hops-without-phrase": "marker[|s] of hop [stands|stand] directly after [its verb, which heads|their verbs, which "
    "head] no such phrase",
    "sentences-emptied": "sentence[|s] lost all words and [is|are] empty",
    "switch-unknown": "constituent[|s] [keeps its|keep their] order, since no rule of the grammar makes [it|them]",
    "trees-not-projective": "source tree[|s] [has|have] crossing arcs (punctuation within phrases not counted)",
    "trees-kept-for-a-mark": "tree[|s] [keeps its|keep their] order, since a bracket or quote would come first",
}
_FORMS = re.compile(r"\[([^\]|]*)\|([^\]]*)\]")


def templates_of(fields: Iterable[Field]) -> dict[str, str]:
    """Return the sentence of each count that a set with these fields may have, with its [singular|plural] forms."""
    from derivlang.core.layers.base import find_layer

    templates = dict(_OF_TRANSFORMS)
    for field in fields:
        for name, template in find_layer(field.kind).losses.items():
            templates[name.format(field.column)] = template.format(field.column)
    return templates


def sentences(counts: Mapping[str, int], templates: Mapping[str, str]) -> list[str]:
    """Return what counts mean. Those that share a template are one sentence, with the middles of their names behind it.

    misc-Entity-dropped 8, misc-Bridge-dropped 4   ->   12 notes of misc were left out …: Entity 8, Bridge 4
    """
    shared = Counter(templates.values())
    parts: dict[str, list[str]] = {}
    for name in counts:
        template = templates.get(name, "")
        parts.setdefault(template if shared[template] > 1 else name, []).append(name)
    lines = []
    for names in parts.values():
        line = sentence(names[0], sum(counts[name] for name in names), templates)
        if shared[templates.get(names[0], "")] > 1:
            line += ": " + ", ".join(f"{name.split('-')[1]} {counts[name]:,}" for name in names)
        lines.append(line)
    return lines


def sentence(name: str, count: int, templates: Mapping[str, str]) -> str:
    """Return what a count means; `name: 3` if it has no template."""
    if name not in templates:
        return f"{name}: {count:,}"
    return f"{count:,} {_FORMS.sub(lambda forms: forms[1 if count == 1 else 2], templates[name])}"
