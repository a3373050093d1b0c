"""Shell completion: what click is told, the forms for three shells, and a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class

from derivlang.cli import completion
from derivlang.cli.main import main
from derivlang.core.errors import UsageError
from tests.commands import written
from tests.helpers import ROOT

VARIABLE = "_DERIVLANG_COMPLETE"


def completed(*words: str) -> list[str]:
    """The answers for the last word of a command line, without the marks for files and folders."""
    *before, typed = words
    found = ShellComplete(main, {}, "derivlang", VARIABLE).get_completions(before, typed)
    return [item.value for item in found if item.type == "plain"]


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("gra", ["grammar"]),
        ("make --t tra", ["trans"]),
        ("make --t trans,pe", ["trans,perm"]),
        ("make -t trans:gr", ["trans:greek"]),
        ("make --t trans,perm:w", ["trans,perm:window="]),
        ("make --t inv:final=", ["inv:final=keep", "inv:final=move"]),
        ("make --t syn:f", ["syn:fa", "syn:fr", "syn:freeze="]),
        ("make --t trans:greek:over", ["trans:greek:overlap="]),
        ("make --t inv wikitext", ["wikitext103", "wikitext2"]),
        ("parse dem", ["demo"]),
        ("pretrain --source xn", ["xnli"]),
        ("pretrain --objective align", ["align-mlm"]),
        ("pretrain --model tiny-", ["tiny-gpt"]),
        ("evaluate RUN --task pos,x", ["pos,xnli"]),
        ("evaluate RUN --measure links,retr", ["links,retrieval"]),
        ("study align-mlm-s", ["align-mlm-seeds"]),
        ("reproduce xlm-align-l", ["xlm-align-labels", "xlm-align-layers"]),
        ("grammar show f", ["fa", "fr"]),
        ("make --t nope:", []),
        ("make --t nope:x:y", []),
        ("nope x", []),
        ("report no/such/folder/", []),
    ],
)
def test_what_may_stand_where(line: str, answers: list[str]) -> None:
    assert completed(*line.split()) == answers


def test_folders_of_runs_and_sets(tmp_path: Path) -> None:
    for place in ("runs/a", "runs/b", "runs/.hidden", "other"):
        (tmp_path / place).mkdir(parents=True)
    written(tmp_path / "runs" / "a" / "run.json", "{}")
    written(tmp_path / "set" / "derivlang.json", "{}")
    assert completed("report", f"{tmp_path}/") == [f"{tmp_path}/runs/"]
    assert completed("report", f"{tmp_path}/runs/") == [f"{tmp_path}/runs/a"]
    assert completed("verify", f"{tmp_path}/s") == [f"{tmp_path}/set"]
    kinds = [item.type for item in ShellComplete(main, {}, "derivlang", VARIABLE).get_completions(["report"], "x")]
    assert kinds[0] == "dir"


def test_what_fails_says_nothing_at_a_prompt() -> None:
    def broken(typed: str) -> list[str]:
        raise UsageError("a plug-in cannot be loaded", id="plug-in")

    assert completion.completer(broken)(None, None, "x") == []  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_and_answers_of_each_shell(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = get_completion_class(shell)
    assert kind is not None
    monkeypatch.setattr(kind, "_check_version", lambda *_: None, raising=False)
    found = kind(main, {}, "derivlang", VARIABLE)
    assert f"{VARIABLE}={shell}_complete" in found.source()
    monkeypatch.setenv("COMP_WORDS", "derivlang make --t trans,i")
    monkeypatch.setenv("COMP_CWORD", {"fish": "trans,i"}.get(shell, "3"))
    assert "trans,inv" in found.complete()


def typed_in_bash(folder: Path, line: str, words: str) -> tuple[list[str], str]:
    program = written(folder / "derivlang", f"#!{sys.executable}\nfrom derivlang.cli.main import main\n\nmain()\n")
    program.chmod(0o755)
    script = f"""
        eval "$({VARIABLE}=bash_source derivlang)"
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}
        _derivlang_completion derivlang
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
    )
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "words", "answers"),
    [
        ("derivlang make --t trans,in", "derivlang make --t trans,in", ["trans,inv"]),
        ("derivlang make --t trans:gr", "derivlang make --t trans : gr", ["greek"]),  # bash has `trans:` already
        ("derivlang make --t perm:window", "derivlang make --t perm : window", ["window="]),
    ],
)
def test_a_real_bash(line: str, words: str, answers: list[str], tmp_path: Path) -> None:
    found, told = typed_in_bash(tmp_path, line, words)
    assert found == answers, told
    assert "Traceback" not in told
