"""A study whose commands are called in this process: no server is started, which would load torch first.

monkeypatch.setattr("derivlang.studies.processes.Server", Here)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

from derivlang.cli import child
from derivlang.core.messages import DerivlangWarning


class Here:
    """A server that makes its calls in this process, one at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder

    def call(self, function: str, keywords: Mapping[str, Any], log: Path) -> int:
        with chdir(self.folder), warnings.catch_warnings():
            warnings.simplefilter("ignore", DerivlangWarning)
            log.write_text(child._CALLS[function](**keywords), "utf-8")
        return 0

    def end(self) -> None:
        pass
