"""A table of tanh, so that each machine, device and library finds the same value.

tanh(z)  =  TANH[place], with place = z · STEPS + MIDDLE truncated to a whole number, at most the last entry
"""

from __future__ import annotations

import numpy as np

from derivlang.core.arrays import Float32

STEPS, SPAN = 512, 5  # entries per unit, and the range -5 … 5; its ends hold beyond
# Entries have 16 bits, and no exact value is near the middle of two (tested), so that all machines have one table.
TANH: Float32 = (np.rint(np.tanh(np.arange(-SPAN * STEPS, SPAN * STEPS + 1) / STEPS) * 65536) / 65536).astype(
    np.float32
)
MIDDLE = SPAN * STEPS + 0.5  # place of tanh(0); the half turns truncation into rounding
