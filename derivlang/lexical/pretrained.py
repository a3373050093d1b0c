"""The one place where the files of a checkpoint are loaded with `transformers`. No code of a checkpoint ever runs.

    from_pretrained(AutoConfig, folder)            also AutoTokenizer
    model_from_pretrained(AutoModel, folder)       safetensors, or `.bin` files that torch reads with weights_only

A checkpoint may name code: `auto_map` in one of its configs names classes in its own `.py` files or in a repository,
`attn_implementation` a kernel on the hub. `transformers` would ask on the terminal whether to run it, and `yes y |`
would answer. Such a checkpoint is refused before anything is loaded. `quiet` silences the bars and reports of
`transformers` on standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from derivlang.core.errors import DataError
from derivlang.store.record import short

_CODE = "auto_map"  # {"AutoModel": "module.Class", "AutoTokenizer": ["module.Slow", null]}
_KERNEL = "_implementation"  # ends the names of fields whose value may be OWNER/REPOSITORY on the hub
_MOST_NAMED = 3


def from_pretrained(kind: Any, folder: Path, **options: Any) -> Any:
    """Return what an `Auto…` class of `transformers` makes of a folder; nothing is fetched.

    Raise DataError if the checkpoint names code, and whatever `transformers` raises.
    """
    refuse_code(folder)
    return kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False, **options)


def model_from_pretrained(kind: Any, folder: Path, **options: Any) -> Any:
    """Return the model of a folder; raise as `from_pretrained`."""
    return from_pretrained(kind, folder, weights_only=True, **options)


def refuse_code(folder: Path) -> None:
    """Raise DataError, with the file and the classes, if a config in the folder names code to run."""
    for path in sorted(folder.glob("*config*.json")):  # also config.4.0.0.json, which a config may name
        try:
            config = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):  # the loader reports it, if it reads the file at all
            continue
        if classes := list(_code_of(config)):
            more = f" and {len(classes) - _MOST_NAMED} more" if len(classes) > _MOST_NAMED else ""
            raise DataError(
                f"it asks to run code: {', '.join(classes[:_MOST_NAMED])}{more}",
                where=str(path),
                fix="use a checkpoint whose type is part of transformers: derivlang runs no code of a checkpoint; if "
                "this type is part of it, remove the field from the file",
                id="checkpoint-code",
            )


def _code_of(config: Any) -> Iterator[str]:
    """Yield the code that a config names, at any depth: `class Model of model.py (auto_map, AutoModel)`."""
    rest = [config]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += value
        if not isinstance(value, dict):
            continue
        for name, content in value.items():
            if name == _CODE and content:
                parts = content if isinstance(content, dict) else {"no class": content}
                for role, classes in parts.items():
                    for one in classes if isinstance(classes, list) else [classes]:
                        if one is not None:
                            yield f"{_class(one)} ({_CODE}, {role})"
            elif name.endswith(_KERNEL) and "/" in (text := json.dumps(content)):
                yield f"{name} = {short(text)}, a kernel on the hub"
            else:
                rest.append(content)


def _class(name: Any) -> str:
    """Return `class Model of model.py` for `model.Model`, with the repository of `owner/name--model.Model`."""
    repository, _, place = str(name).rpartition("--")
    module, _, cls = place.rpartition(".")
    return f"class {cls} of {module}.py" + (f" in {repository}" if repository else "")


@contextmanager
def quiet() -> Iterator[None]:
    """Switch off bars and reports of `transformers` inside the block, and restore the settings after it."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
