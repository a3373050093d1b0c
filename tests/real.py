"""The real data that some tests read: `$DERIVLANG_TEST_DATA`, else `shared/data` beside the checkout.

@needs_data
def test_it(): read(SHARED / "ud/UD_French-GSD/fr_gsd-ud-dev.conllu")
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DERIVLANG_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (SHARED / "ud").is_dir(), reason=f"no real data in {SHARED}: set DERIVLANG_TEST_DATA"
)
