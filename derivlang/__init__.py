"""derivlang: derived languages from natural ones.

source corpus -> Batch -> Pipeline (an order and a lexicon) -> derived Batch -> Parquet, manifest

>>> import derivlang
>>> derivlang.derive("Welcome to ACL .", "inv").text
'ACL to Welcome .'
>>> derivlang.map_dataset(dataset, "trans,inv")          # a Hugging Face dataset
>>> derivlang.view(derivlang.derive("Welcome to ACL .", "inv")).save("acl.html")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from derivlang.core.version import __version__ as __version__

if TYPE_CHECKING:
    from derivlang.api import DerivedText, derive, view
    from derivlang.core.errors import DerivlangError
    from derivlang.core.spec import param
    from derivlang.map import Columns, map_dataset
    from derivlang.pipeline import Pipeline
    from derivlang.transforms.base import Transform
    from derivlang.transforms.registry import register

__all__ = [
    "Columns",
    "DerivedText",
    "DerivlangError",
    "Pipeline",
    "Transform",
    "derive",
    "map_dataset",
    "param",
    "register",
    "view",
]

_WHERE = {
    "Columns": "derivlang.map",
    "DerivedText": "derivlang.api",
    "DerivlangError": "derivlang.core.errors",
    "Pipeline": "derivlang.pipeline",
    "Transform": "derivlang.transforms.base",
    "derive": "derivlang.api",
    "map_dataset": "derivlang.map",
    "param": "derivlang.core.spec",
    "register": "derivlang.transforms.registry",
    "view": "derivlang.api",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import derivlang` costs nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'derivlang' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)
