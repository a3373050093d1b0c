"""Claim: `derivlang --help` takes less than 0.4 s, start of Python included; so does `import derivlang`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from measure import Report, Settings, Usage, alternate, derivlang, run, spread

_LIMIT = 0.4


def benchmark(settings: Settings) -> Report:
    commands: dict[str, Callable[[], Usage]] = {
        "python -m derivlang --help": lambda: derivlang("--help"),
        'python -c "import derivlang"': lambda: run([sys.executable, "-c", "import derivlang"]),
        'python -c "pass"': lambda: run([sys.executable, "-c", "pass"]),
    }
    for command in commands.values():
        command()  # byte code is written, files are read
    report = Report("Start-up", ("command", "wall s", "CPU s"))
    for name, runs in zip(commands, alternate(settings.repeat, *commands.values()), strict=True):
        wall, cpu = spread(runs, lambda usage: usage.wall), spread(runs)
        report.figure(f"{name}: wall s", wall)
        report.figure(f"{name}: CPU s", cpu)
        report.row(name, wall.text(3), cpu.text(3))
        if name.endswith("--help"):
            report.claim(f"--help in less than {_LIMIT} s", f"{wall.median:.3f} s", wall.median < _LIMIT)
    return report
