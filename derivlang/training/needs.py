"""The packages that training needs in addition to those of `pip install derivlang`."""

from __future__ import annotations

from importlib.util import find_spec

from derivlang.core.errors import UsageError


def require_torch() -> None:
    """Raise UsageError with the install command if torch, transformers or accelerate is missing."""
    missing = [name for name in ("torch", "transformers", "accelerate") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"training needs {', '.join(missing)}", fix='pip install "derivlang[train]"', id="missing-package"
        )
