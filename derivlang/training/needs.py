"""The packages that training takes, which `pip install derivlang` alone does not bring."""

from __future__ import annotations

from importlib.util import find_spec

from derivlang.core.errors import UsageError


def require_torch() -> None:
    """UsageError with the installing command where torch, transformers or accelerate is missing."""
    missing = [name for name in ("torch", "transformers", "accelerate") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"training needs {', '.join(missing)}", fix='pip install "derivlang[train]"', id="missing-package"
        )
