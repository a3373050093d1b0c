"""Claims: `derivlang --help` takes less than 0.4 s, start of Python included, and `derive` of raw text at most 5.3 ×
the CPU of `import pyarrow.parquet`: 0.9 s where the import takes 0.17 s.

Beside them: Python alone and `import derivlang`. `derive` loads of spaCy only what its tokenizer needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from measure import Report, Settings, Usage, alternate, derivlang, ratio, run, spread

_HELP, _DERIVE = 0.4, 5.3


def benchmark(settings: Settings) -> Report:
    def python(code: str) -> Callable[[], Usage]:
        return lambda: run([sys.executable, "-c", code])

    commands: dict[str, Callable[[], Usage]] = {
        "derivlang --help": lambda: derivlang("--help"),
        "import derivlang": python("import derivlang"),
        "pass": python("pass"),
        'derivlang derive "…" --t trans,inv': lambda: derivlang("derive", "Raw text, isn't it?", "--t", "trans,inv"),
        "import pyarrow.parquet": python("import pyarrow.parquet"),
    }
    for command in commands.values():
        command()  # byte code is written, files are read
    runs = dict(zip(commands, alternate(settings.repeat, *commands.values()), strict=True))
    report = Report("Start-up", ("command", "wall s", "CPU s", "CPU × import pyarrow.parquet"))
    for name, found in runs.items():
        wall, cpu = spread(found, lambda usage: usage.wall), spread(found)
        report.figure(f"{name}: wall s", wall)
        report.figure(f"{name}: CPU s", cpu)
        over = report.figure(f"{name} / import pyarrow.parquet, CPU", ratio(found, runs["import pyarrow.parquet"]))
        report.row(name, wall.text(3), cpu.text(3), over.text())
        if name == "derivlang --help":
            report.claim(f"--help in less than {_HELP} s", f"{wall.median:.3f} s", wall.median < _HELP)
        if name.startswith("derivlang derive"):
            what = f"derive: at most {_DERIVE} x the CPU of import pyarrow.parquet"
            report.claim(what, over.text(), over.median <= _DERIVE)
    return report
