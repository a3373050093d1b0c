"""A study as Slurm arrays: OUT/array.txt with one command per cell, and OUT/array.sh, which runs one of them.

Cells that begin from other cells are an array of their own, OUT/array-2.txt and OUT/array-2.sh, and so on.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from derivlang.core.errors import UsageError
from derivlang.store.disk import disk
from derivlang.store.files import writing
from derivlang.store.folders import sweep
from derivlang.studies.begins import stages
from derivlang.studies.file import StudyFile
from derivlang.studies.plan import in_order
from derivlang.studies.settings import Extent, Place

_TEMPLATE = """\
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
    """Write the two files of each stage, and return the commands of each script.

    force: replace files that hold something else, such as scripts with lines for a cluster.
    """
    source = str(Path(study.place).resolve()) if study.place.endswith(".toml") else study.place
    out = place.out.resolve()
    shared = {
        "--data-dir": place.data_dir and place.data_dir.resolve(),
        "--parses": place.parses and place.parses.resolve(),
        "--grids": ",".join(extent.grids),
        "--steps": extent.steps,
        "--threads": place.threads,
    }
    given = [word for option, value in shared.items() if value for word in (option, str(value))]
    given += ["--data-as-is"] * place.as_is
    scripts: dict[str, list[str]] = {}
    for number, cells in enumerate(stages(in_order(study)), 1):
        stem = "array" if number == 1 else f"array-{number}"
        commands = [
            shlex.join(["derivlang", "study", source, "-o", str(out), *given, "--cells", cell.name]) for cell in cells
        ]
        if any("\n" in command for command in commands):
            raise UsageError("a path has a line break", where="--array", id="bad-value")
        script = _TEMPLATE.format(
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
