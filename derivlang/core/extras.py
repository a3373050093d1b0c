"""The packages of the extras of `pip install 'derivlang[EXTRA]'`, as pyproject.toml declares them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from derivlang.core.errors import UsageError

# A package of several extras is of the first one here.
EXTRAS = {
    "train": ("torch", "transformers", "accelerate", "scipy", "matplotlib", "jinja2"),
    "fit": ("scipy",),
    "stanza": ("stanza",),
    "datatrove": ("datatrove",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
    "align": ("eflomal",),
    "urls": ("upath", "fsspec"),  # upath: the module of universal_pathlib
    "s3": ("s3fs",),
    "gcs": ("gcsfs",),
}


def missing_package(error: ModuleNotFoundError) -> UsageError | None:
    """Return the error for a package of an extra that is not installed, None for any other module."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return UsageError(
                f"this needs the package {package}, which is not installed",
                fix=f"pip install 'derivlang[{extra}]'",
                id="missing-package",
            )
    return None


def module_of(name: str, what: str) -> Any:
    """Return a module of an extra's package. what: needs it, for the message of the UsageError without the package."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        extra = next(extra for extra, packages in EXTRAS.items() if package in packages)
        raise UsageError(
            f"{what} needs {package}", fix=f"pip install 'derivlang[{extra}]'", id="missing-package"
        ) from None


def require(extra: str, packages: Iterable[str] = (), *, what: str = "", where: str | None = None) -> None:
    """Raise UsageError, with the install command, if packages of an extra are missing. packages: () for all of them.

    what, where: needs them, for the message: `training`, or the option.
    """
    missing = [package for package in packages or EXTRAS[extra] if find_spec(package) is None]
    if missing:
        told = f"{what} needs {', '.join(missing)}".lstrip()
        raise UsageError(told, where=where, fix=f"pip install 'derivlang[{extra}]'", id="missing-package")


def require_torch(*more: str) -> None:
    """Raise UsageError if torch, transformers, accelerate or one of `more` is missing."""
    require("train", dict.fromkeys(("torch", "transformers", "accelerate", *more)), what="training")
