"""Kinds of layers by name: the built-in ones, and kinds from other packages (entry points `derivlang.layers`).

A `Field` of a schema names a kind.
"""

from __future__ import annotations

from derivlang.core.layers.base import Layer
from derivlang.core.plugins import Registry

LAYERS: Registry[type[Layer]] = Registry(
    "layer",
    Layer,
    {
        "answers": "derivlang.core.layers.answers:Answers",
        "constituents": "derivlang.core.layers.constituents:ConstituentTrees",
        "entities": "derivlang.core.layers.spans:Spans",
        "heads": "derivlang.core.layers.tree:Heads",
        "misc": "derivlang.core.layers.misc:Misc",
        "parsed-tags": "derivlang.core.layers.parse:ParsedTags",
        "parsed-tree": "derivlang.core.layers.parse:ParsedTree",
        "tags": "derivlang.core.layers.words:Words",
        "tree": "derivlang.core.layers.tree:Tree",
        "value": "derivlang.core.layers.values:Values",
    },
    of_classes=True,
    fix="derivlang.core.layers.registry.layer_kinds() lists the layers",
)
register_layer = LAYERS.add
layer_kinds = LAYERS.names
find_layer = LAYERS.find
