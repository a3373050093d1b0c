"""`report`: tables and figures of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from derivlang.commands.command import Command
from derivlang.core.errors import UsageError
from derivlang.core.settings import setting, text_of
from derivlang.core.takes import Takes
from derivlang.formats.places import OptionalPath, PathLike, located
from derivlang.formats.progress import reader

Levels: TypeAlias = Takes[tuple[str, ...], Mapping[str, Any] | Sequence[str]]  # {"objective": "mlm"}, ["objective=mlm"]


@dataclass(frozen=True, eq=False, repr=False)
class WriteReport(Command[Path]):
    """Write tables and figures of RUNS: what varies among them is a factor, what does not is the caption.

    RUNS are folders of `derivlang pretrain`, folders that contain them, the folder of a study, or a file scores.parquet
    of another report; each may be a URL. `derivlang evaluate` adds results to a run. The report consists of index.html
    (one self-contained page), tables/ with CSV and LaTeX, figures/ with PNG, SVG and PDF, scores.parquet and scores.tsv
    (every number of every run), and report.json.

    \b
    derivlang report runs
    """

    runs: PathLike | Sequence[PathLike]
    out: OptionalPath = setting(
        None, "Folder to write; an earlier report is replaced.", also="-o", unset="report, here", writes=True,
    )  # fmt: skip
    _: KW_ONLY
    baseline: Levels = setting(
        (),
        "Level that the others of its factor are compared with, such as objective=mlm; may be repeated.",
        metavar="FACTOR=LEVEL", unset="the study's",
    )  # fmt: skip
    primary: str | None = setting(
        None,
        "Main outcome, such as pos.zs: only its differences are corrected for their number and have stars.",
        metavar="TASK.REGIME", unset="the study's",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if isinstance(self.baseline, Mapping):
            texts = tuple(f"{name}={text_of(level)}" for name, level in self.baseline.items())
            object.__setattr__(self, "baseline", texts)
        super().__post_init__()

    def __call__(self) -> Path:
        """Return the path of index.html."""
        from derivlang.evaluation.report.write import PAGE

        return located(self.written()["out"]) / PAGE

    def written(self) -> dict[str, Any]:
        """Return what was written: {"out", "runs", "evaluated", "figures"}."""
        from derivlang.evaluation.collect import scores
        from derivlang.evaluation.report.write import report

        several = [self.runs] if isinstance(self.runs, (str, os.PathLike)) else self.runs
        levels = [*map(_level, self.baseline)]
        compared = dict(levels)
        if len(compared) < len(levels):
            what = "a factor has two baselines"
            raise UsageError(what, where="--baseline", fix="name each factor once", id="bad-value")
        out = self.out
        if out is None:
            out = Path("report")
            reader().begins(f"writing to {out}{os.sep}")
        return report(scores(*map(located, several)), out, compared or None, self.primary)


def _level(text: str) -> tuple[str, str]:
    """Return (factor, level) of FACTOR=LEVEL. Raise UsageError for another text."""
    name, equals, level = text.partition("=")
    if not (name and equals and level):
        raise UsageError(f"{text!r} is not FACTOR=LEVEL", where="--baseline", fix="e.g. objective=mlm", id="usage")
    return name, level
