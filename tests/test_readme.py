"""What the README says is what happens: its first command prints its first output, its samples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from derivlang.sources.named import named_sources

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(kind: str) -> list[str]:
    """The texts of the fenced blocks of this kind."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == kind]


def test_first_command_prints_the_first_output(tmp_path: Path) -> None:
    command = re.search(r"^pip install \. && derivlang (.*)$", README, re.MULTILINE)
    assert command is not None
    done = subprocess.run(
        [sys.executable, "-m", "derivlang", *command[1].split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )
    shown = blocks("")[0]
    printed = "".join(line for line in done.stdout.splitlines(keepends=True) if not line.startswith("demo."))
    assert printed == shown
    assert done.stderr == f"derivlang: writing to demo.trans-inv{os.sep}\n"


def test_the_python_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README


def test_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^]]+\]\((\S+)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", README)
    assert links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_sources_are_named() -> None:
    data = (ROOT / "data" / "README.md").read_text("utf-8")
    assert all(f"`{name}`" in data for name in named_sources())
