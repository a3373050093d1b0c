"""The Dockerfile: what it installs, as text. No test here builds it."""

from __future__ import annotations

import re
import tomllib

from tests.helpers import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(*extras: str) -> set[str]:
    """The names of the packages that derivlang needs with some extras, as pip writes them."""
    needed = list(PROJECT["dependencies"])
    for extra in extras:
        needed += PROJECT["optional-dependencies"][extra]
    names = set()
    for line in needed:
        found = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", line)
        assert found is not None
        if found[1] == "derivlang":
            names |= requirements(*found[2].split(","))
        else:
            names.add(found[1])
    return names


def test_the_image_has_the_versions_of_the_constraints() -> None:
    (line,) = re.findall(r"^RUN pip install .*$", DOCKERFILE, re.MULTILINE)
    found = re.search(r"-c (\S+) '\.\[([\w,]+)\]'", line)
    assert found is not None
    pinned = (ROOT / found[1]).read_text("utf-8").splitlines()
    names = {name.partition("==")[0] for name in pinned if "==" in name}
    assert requirements(*found[2].split(",")) - names == set()


def test_the_image_gets_what_the_package_is_built_from() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").split()
    kept = {name.removeprefix("!") for name in lines if name[0] == "!"}
    needed = {
        "pyproject.toml",
        "constraints.txt",
        PROJECT["readme"],
        *PROJECT["license-files"],
        "derivlang",
        "grammars",
    }
    assert [name for name in needed if name.partition("/")[0] not in kept] == []
    assert not [name for name in kept if not (ROOT / name).exists()]


def test_the_image_runs_the_command_as_a_user() -> None:
    lines = DOCKERFILE.splitlines()
    assert lines[-1] == 'ENTRYPOINT ["derivlang"]'
    user = next(line for line in lines if line.startswith("USER "))
    assert user != "USER root"
    version = re.search(r"^FROM python:(\d+)\.(\d+)-slim$", DOCKERFILE, re.MULTILINE)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}.{version[2]}" in PROJECT["classifiers"]
