"""What `pretrain` and `evaluate` load, which takes seconds: the server that forks the steps of a study imports it once.

A module that a missing package needs is passed over; the command that needs it says so.
"""

from __future__ import annotations

import gc
import warnings
from contextlib import suppress
from importlib import import_module

NAMES = (
    "derivlang.cli.pretrain",
    "derivlang.cli.evaluate",
    "derivlang.training.plan",
    "derivlang.training.run",
    "derivlang.evaluation.cell",
    "derivlang.evaluation.evaluate",
    "derivlang.evaluation.measures.alignment",
    "accelerate",
    "transformers.models.modernbert.modeling_modernbert",
    "pandas",
    "pyarrow.pandas_compat",
)

gc.disable()  # a quarter of the time: it looks through all modules again and again, and none is garbage
with warnings.catch_warnings(action="ignore"):
    for _name in NAMES:
        with suppress(Exception):
            import_module(_name)
    with suppress(Exception):  # builds the table of all types, for which each step would take 0.1 s
        import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("")
gc.enable()
gc.freeze()  # what is shared with the steps is not copied to be looked through
