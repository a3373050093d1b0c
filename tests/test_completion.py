"""Shell completion: what click answers to a shell, and a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from derivlang.cli.main import main
from tests.commands import written
from tests.helpers import ROOT

VARIABLE = "_DERIVLANG_COMPLETE"
PROGRAM = f"#!{sys.executable}\nfrom derivlang.cli.main import main\n\nmain()\n"


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("gra", ["plain,grammar"]),
        ("grammar sc", ["plain,score"]),
        ("make --see", ["plain,--seed"]),
        ("make --t trans,pe", ["plain,trans,perm"]),
        ("make -t tra", ["plain,trans"]),
        ("make --t trans wikitext", ["plain,wikitext2", "plain,wikitext103"]),
        ("make --t trans data/", ["file,data/"]),
        ("make --t trans demo -o o", ["dir,o"]),
        ("verify o", ["file,o"]),
        ("show o", ["file,o"]),
        ("pretrain --source xn", ["plain,xnli"]),
        ("pretrain --derived-source xn", ["plain,xnli"]),
        ("pretrain --objective align", ["plain,align-mlm"]),
        ("pretrain --model tiny-", ["plain,tiny-gpt"]),
        ("evaluate RUN --task pos,x", ["plain,pos,xnli"]),
        ("evaluate RUN --measure links,retr", ["plain,links,retrieval"]),
        ("parser score engl", ["plain,english", "plain,english-light"]),
        ("grammar show f", ["plain,fa", "plain,fr"]),
        ("study xlm-align-l", ["plain,xlm-align-labels", "plain,xlm-align-layers"]),
        ("study align-mlm --scale sm", ["plain,small"]),
        ("nope x", [""]),
    ],
)
def test_what_click_answers(line: str, answers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", f"derivlang {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    found = BashComplete(main, {}, "derivlang", VARIABLE).complete()
    assert sorted(found.split("\n")) == sorted(answers)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_a_real_bash(tmp_path: Path) -> None:
    written(tmp_path / "derivlang", PROGRAM).chmod(0o755)
    script = f"""
        eval "$({VARIABLE}=bash_source derivlang)"
        COMP_WORDS=(derivlang make --t trans,in); COMP_CWORD=3
        _derivlang_completion derivlang
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("trans,inv\n", "")
