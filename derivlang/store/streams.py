"""Standard output, a pipe or a device as a file of bytes: a terminal sees control characters as escapes."""

from __future__ import annotations

import io
import os
from codecs import getincrementaldecoder
from typing import Any

from derivlang.core.visible import visible


class StreamOutput(io.BufferedWriter):
    """A stream of bytes that counts its position, which pyarrow asks for even if it is a pipe.

    descriptor: of the open stream, which is closed with this object.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(io.FileIO(descriptor, "wb"))
        self._written = 0
        self._decoder = getincrementaldecoder("utf-8")("replace") if os.isatty(descriptor) else None

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
