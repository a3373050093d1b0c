"""What pip installs: the contents and the data of the wheel, built once, without network."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_string
from email.message import Message

import pytest

from derivlang.core.version import with_commit
from tests.helpers import ROOT

TOLD = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
GPL = ("eflomal",)
HEADS = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Of the files of git in this tree, built in a copy, as a build writes into its source."""
    pytest.importorskip("hatchling")
    pytest.importorskip("hatch_vcs")
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith(("derivlang/", "grammars/")) or "/" not in name:
            source, target = ROOT / name, folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.exists():
                target.write_bytes(source.read_bytes())
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)], cwd=folder / "source", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_string(wheel.read(name).decode())


def test_the_wheel_has_what_runs_and_nothing_of_its_developers(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    grammars = {f"derivlang/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "grammars").glob("*.tsv")}
    assert grammars
    assert grammars <= names
    assert {
        "derivlang/py.typed",
        "derivlang/display/letters/georgian.woff2",
        "derivlang/evaluation/report/page.html",
        "derivlang/parsing/english/model.npz",
        "derivlang/parsing/english-light/model.npz",
        "derivlang/parsing/english-light/model.json",
        "derivlang/sources/demo/demo-pairs.conllu",
    } <= names
    assert not [name for name in names if re.match(r"derivlang/grammars/.*\.(py|json)$", name)]
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"derivlang"}


def test_all_licence_texts_are_in_it(wheel: zipfile.ZipFile) -> None:
    texts = [wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/licenses/" in name]
    for title in (
        "Apache License",
        "Attribution-ShareAlike 4.0 International",
        "Attribution-ShareAlike 3.0",
        "SIL OPEN FONT",
    ):
        assert any(title in text[:1000] and len(text) > 4_000 for text in texts), title
    told = metadata(wheel)
    assert told["License-Expression"] == TOLD["license"]
    assert len(told.get_all("License-File") or ()) == len(TOLD["license-files"])


def test_the_extra_all_has_neither_tools_of_developers_nor_gpl(wheel: zipfile.ZipFile) -> None:
    of_all = {
        re.split(r"[^A-Za-z0-9_-]", line)[0]
        for line in metadata(wheel).get_all("Requires-Dist") or ()
        if "extra == 'all'" in line or "extra" not in line
    }
    assert {"torch", "stanza", "gradio", "click"} <= of_all
    assert not of_all & {"pytest", "mypy", "ruff", "hypothesis", *GPL}


def test_the_version_needs_no_git(wheel: zipfile.ZipFile) -> None:
    """The copy has no .git, and the number of a build from it is the fallback's, not an error."""
    assert metadata(wheel)["Version"].partition("+")[0] == HEADS[1].partition(" ")[0]


def test_the_address_stands_in_one_place() -> None:
    """No file invents one: only pyproject.toml names an address of the project, when there is one."""
    address = TOLD.get("urls", {}).get("Homepage")
    assert address is None or "example.org" not in address
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert ("\nurl:" in citation) is (address is not None)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.4.0", "0.4.0"),
        ("0.4.0+g1a2b3c4", "0.4.0 (commit 1a2b3c4)"),
        ("0.4.0+g1a2b3c4.d20260101", "0.4.0 (commit 1a2b3c4, changed)"),
        ("0+unknown", "0+unknown"),
    ],
)
def test_the_version_names_its_commit(version: str, told: str) -> None:
    assert with_commit(version) == told


def test_sections_of_the_changelog_have_dates() -> None:
    assert HEADS[0] == "Unreleased"
    assert all(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+ - [0-9]{4}-[0-9]{2}-[0-9]{2}", head) for head in HEADS[1:])
