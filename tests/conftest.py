"""Every test runs offline and on its own: no hub, a Hugging Face folder of its own, no data folder from outside."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_HOME = tempfile.mkdtemp(prefix="derivlang-tests-")
# `datasets` reads these once, when it is imported: before any test module is.
os.environ.update(HF_HOME=_HOME, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
os.environ.pop("DERIVLANG_DATA", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(_HOME, ignore_errors=True)
