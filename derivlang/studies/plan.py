"""The commands of a study, each of which also works when typed in OUT.

    OUT/text  OUT/data                              made once, by the first cell that needs them
    OUT/runs/CELL                                   pretrain, then evaluate
    OUT/report                                      tables, figures, a page
    OUT/array.txt  OUT/array.sh                     one command per cell, for Slurm

Paths are relative to OUT, because a run records the path of its source. So a study can be moved, or its cells
distributed over machines. In OUT/data, each tokenizer and each encoded text has the name of what it is made of.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from derivlang.core.errors import UsageError
from derivlang.core.settings import declared, text_of
from derivlang.pipeline import Pipeline
from derivlang.store.disk import disk
from derivlang.store.files import writing
from derivlang.store.folders import sweep
from derivlang.studies.cells import RUNS, Cell, languages_of, stages, with_paths
from derivlang.studies.commands import EVALUATE, LANGUAGES, NAMES_FILE, NAMES_TEXT, PRETRAIN, Level
from derivlang.studies.file import FIRST, StudyFile
from derivlang.studies.settings import Extent, Place
from derivlang.training.config import ModelConfig
from derivlang.training.objectives.registry import read_objective
from derivlang.training.settings import TrainingSettings

DATA = "data"
_IN_DATA = (*NAMES_TEXT, *NAMES_FILE, "tokenizer")  # files that may lie in the data folder
# What tokenizers and encoded data depend on.
_OF_DATA = (
    LANGUAGES, "source", "t", "words", "lang", "format", "encoding", "text-column", "word-column", "label-column",
    "header", "column-names", "quoting", "delimiter", "derived-source", "limit", "parser", "tokenizer", "tokenizer-for",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """A command of a study. arguments: as they are typed. options: what its result depends on, except data.

    cell: its cell, or None for the report.
    """

    name: str
    arguments: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    cell: Cell | None = None

    @property
    def command(self) -> str:
        return "derivlang " + shlex.join(self.arguments)

    @property
    def run(self) -> str:
        """The folder of its cell's run, from OUT; "" without a cell."""
        return f"{RUNS}/{self.cell.name}" if self.cell else ""

    @property
    def facts(self) -> dict[str, Any]:
        """The options for the record of what is done: with the names of files in place of their absolute paths."""
        return {key: with_paths(key, value, _without_folder) for key, value in self.options.items()}


def _without_folder(key: str, value: str) -> str:
    return Path(value).name if Path(value).is_absolute() else value


def plan(study: StudyFile, place: Place) -> list[PlannedCommand]:
    """Return the commands of a study, in the order of their start."""
    where = {} if place.data_dir is None else {"data-dir": str(Path(place.data_dir).resolve())}
    parses = {"parses": "parses" if place.parses is None else str(Path(place.parses).resolve())}
    threads = place.threads or study.threads
    machine = {} if threads is None else {"threads": threads}
    steps = []

    def in_data(key: str, text: str) -> str:
        """Return the path of a text in the data folder, such as text/kjv/kjv.txt.gz, if there is none from OUT."""
        path = Path(place.data_dir or "") / text
        there = place.data_dir and key in _IN_DATA and "/" in text and not (place.out / text).exists() and path.exists()
        return str(path.resolve()) if there else text

    for cell in in_order(study):
        options = {key: with_paths(key, value, in_data) for key, value in cell.options.items()}
        run, first = f"{RUNS}/{cell.name}", {key: options[key] for key in FIRST if key in options}
        values = {
            **first, "data": DATA, **parses, **where, **options, **machine,
            "factor": _factors(cell.levels),
        }  # fmt: skip
        arguments = ("pretrain", *PRETRAIN.arguments(values), "-o", run, "--resume")
        steps.append(PlannedCommand(f"pretrain {cell.name}", arguments, options, cell))
        if cell.evaluation:
            arguments = ("evaluate", run, *EVALUATE.arguments({**cell.evaluation, **parses, **where, **machine}))
            steps.append(PlannedCommand(f"evaluate {cell.name}", arguments, cell.evaluation, cell))
    return [*steps, report_of(["."])]


def report_of(runs: list[str]) -> PlannedCommand:
    """Return the command that writes the report of some runs, or of the whole study, `.`."""
    return PlannedCommand("report", ("report", *runs, "-o", "report"))


def in_order(study: StudyFile) -> list[Cell]:
    """Return the cells in the order of their start.

    The first cell of each data comes first, as it encodes what the others need. Longer cells follow
    before shorter ones, so that workers finish at about the same time. A cell comes after those that it begins from.
    """
    first = first_cells(study)
    others = [cell for cell in study.cells if cell not in first]
    others.sort(key=lambda cell: -(positions(cell) or 0))
    return [cell for stage in stages([*first, *others]) for cell in stage]


def first_cells(study: StudyFile) -> list[Cell]:
    """Return the first cell of each data."""
    return list({data_of(cell): cell for cell in reversed(study.cells)}.values())[::-1]


def positions(cell: Cell) -> int | None:
    """Return the number of sub-words, with padding, that a cell is trained on. None if only its data can show it."""
    if "tokens" in cell.options:
        return int(cell.options["tokens"])
    if "epochs" in cell.options:
        return None
    streams = read_objective(_setting(cell.options, "objective")).streams()
    size = _setting(cell.options, "steps") * _setting(cell.options, "batch-size") * _setting(cell.options, "seq-len")
    if cell.options.get("budget", "steps") != "steps":
        return int(size)  # as for mlm
    return round(float(size) * sum(stream.share for stream in streams))


def model_of(cell: Cell) -> str:
    """Return the name or the file of a cell's model."""
    return text_of(_setting(cell.options, "model"))


def vocabulary_size(cell: Cell) -> int:
    """Return the number of entries of a cell's tokenizer: its option, else the model's."""
    return int(_setting(cell.options, "vocab-size"))


def data_of(cell: Cell) -> tuple[str, ...]:
    """Return what the data of a cell depends on: cells with the same share it."""
    return (*(str(cell.options.get(key)) for key in _OF_DATA), str(vocabulary_size(cell)))


def needs_trees(cell: Cell) -> bool:
    """Return whether the order of a cell's languages needs parsed sentences."""
    return any(Pipeline.parse(one.t).needs_trees for one in languages_of(cell))


def _setting(options: Mapping[str, Any], key: str) -> Any:
    """Return the value of an option: as given, else the model's, else the default."""
    one = next(one for one in declared(TrainingSettings).values() if one.option == f"--{key}")
    described: Mapping[str, Any] = {}
    if one.in_file:
        described = ModelConfig.read(text_of(_setting(options, "model"))).training
    return options.get(key, described.get(one.name, one.default))


def _factors(levels: Mapping[str, Level]) -> list[str]:
    """Return NAME=LEVEL of each level, for run.json. Text that reads as another JSON value is quoted."""
    return [
        f"{name}={level if isinstance(level, str) and not _is_json(level) else json.dumps(level)}"
        for name, level in levels.items()
    ]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=1-{cells}
#SBATCH --cpus-per-task={threads}
#SBATCH --output={log}
#SBATCH --open-mode=append
# Partition, time and accelerator are the cluster's: add lines such as #SBATCH --time=01:00:00 --gres=gpu:1
eval "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" {commands})"
"""


def write_array(study: StudyFile, place: Place, extent: Extent, *, force: bool = False) -> dict[str, list[str]]:
    """Write a study as Slurm arrays, and return the commands of each script.

    OUT/array.txt has one command per cell, and OUT/array.sh runs one of them. Cells that begin from other cells are an
    array of their own, OUT/array-2.txt and OUT/array-2.sh, and so on. force: replace files that hold something else,
    such as scripts with lines for a cluster.
    """
    source = str(Path(study.place).resolve()) if study.place.endswith(".toml") else study.place
    out = place.out.resolve()
    shared = {
        "--data-dir": place.data_dir and Path(place.data_dir).resolve(),
        "--parses": place.parses and Path(place.parses).resolve(),
        "--grids": ",".join(extent.grids),
        "--steps": extent.steps,
        "--threads": place.threads,
    }
    given = [word for option, value in shared.items() if value for word in (option, str(value))]
    scripts: dict[str, list[str]] = {}
    for number, cells in enumerate(stages(in_order(study)), 1):
        stem = "array" if number == 1 else f"array-{number}"
        commands = [
            shlex.join(["derivlang", "study", source, "-o", str(out), *given, "--cells", cell.name]) for cell in cells
        ]
        if any("\n" in command for command in commands):
            raise UsageError("a path has a line break", where="--array", id="bad-value")
        script = _SCRIPT.format(
            name=study.name,
            cells=len(commands),
            threads=place.threads or study.threads or 1,
            log=shlex.quote(str(out / "logs" / f"{stem}-%a.log")),
            commands=shlex.quote(str(out / f"{stem}.txt")),
        )
        with disk(out):
            (out / "logs").mkdir(parents=True, exist_ok=True)  # Slurm makes no folder for its logs
        sweep(out)
        for name, text in ((f"{stem}.txt", "".join(command + "\n" for command in commands)), (f"{stem}.sh", script)):
            with writing(out / name, replace=None if force else False) as file:
                file.write(text.encode())
        scripts[f"{stem}.sh"] = commands
    return scripts
