"""The packages that training needs in addition to those of `pip install derivlang`."""

from __future__ import annotations

from importlib.util import find_spec

from derivlang.core.errors import UsageError


def require_torch(*more: str) -> None:
    """Raise UsageError with the install command if torch, transformers, accelerate or one of `more` is missing."""
    names = dict.fromkeys(("torch", "transformers", "accelerate", *more))
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"training needs {', '.join(missing)}", fix="pip install 'derivlang[train]'", id="missing-package"
        )
