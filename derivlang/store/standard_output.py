"""Standard output as a file of bytes: a pipe gets them as they are, a terminal sees control characters as escapes."""

from __future__ import annotations

import io
import os
from codecs import getincrementaldecoder
from typing import Any

from derivlang.core.visible import visible


class StandardOutput(io.BufferedWriter):
    """Standard output that counts its position, which pyarrow asks for even if it is a pipe."""

    def __init__(self) -> None:
        super().__init__(io.FileIO(os.dup(1), "wb"))
        self._written = 0
        self._decoder = getincrementaldecoder("utf-8")("replace") if os.isatty(1) else None

    def write(self, data: Any) -> int:
        """Write bytes, and return their number."""
        n = len(data)
        if self._decoder is not None:
            data = visible(self._decoder.decode(data), keep="\t\n").encode()
        super().write(data)
        self._written += n
        return n

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._written
