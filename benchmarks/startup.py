"""Claims: `derivlang --help` takes less than 0.4 s, start of Python included, and `derive` of raw text 0.9 CPU seconds.

Beside them: Python alone, `import derivlang`, and the import of pyarrow's Parquet reader. `derive` loads of spaCy only
what its tokenizer needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from measure import Report, Settings, Usage, alternate, derivlang, ratio, run, spread

_HELP, _DERIVE = 0.4, 0.9


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
            report.claim(f"derive in at most {_DERIVE} CPU s", f"{cpu.median:.3f} s", cpu.median <= _DERIVE)
    return report
