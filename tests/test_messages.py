"""Messages: -v and -q on the command line, `warnings` and `logging` in Python."""

from __future__ import annotations

import json
import logging
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from derivlang import DerivlangWarning
from derivlang.cli.messages import echo, message, message_options, say, tell, warnings_as_lines
from derivlang.cli.messages import warn as cli_warn
from derivlang.core.errors import visible
from derivlang.core.messages import in_python, warn
from derivlang.engine.job import Events
from derivlang.formats.dictionary import read_dictionary
from derivlang.formats.progress import stage
from derivlang.pipeline import Pipeline
from tests.commands import ROOT, run
from tests.helpers import CONTROLS, obeyed

SET = ("make", "--t", "inv", "demo", "--limit", 2)


def test_quiet_leaves_results(tmp_path: Path) -> None:
    plain = run(*SET, "-o", tmp_path / "a", "-q")
    assert "tokens" in plain.out
    assert plain.err == ""
    again = run("-q", *SET, "-o", tmp_path / "a")
    assert again.err == ""
    assert "already complete" in run(*SET, "-o", tmp_path / "a").err


def test_warnings_are_printed_with_quiet_too() -> None:
    def talk() -> None:
        say("writing")
        cli_warn("no test split")

    talking = click.Command("talk", callback=talk, params=message_options())
    assert CliRunner().invoke(talking, ["-q"]).stderr == "derivlang: warning: no test split\n"
    assert CliRunner().invoke(talking).stderr.startswith("derivlang: writing\n")


@pytest.mark.parametrize("typed", [("-v", *SET), (*SET, "--verbose")])
def test_verbose_says_what_each_stage_took(tmp_path: Path, typed: tuple[str, ...]) -> None:
    lines = run(*typed, "-o", tmp_path / "a").err.splitlines()
    assert any(line.startswith("derivlang: hashing: ") and line.endswith(" s") for line in lines)
    assert any(line.startswith("derivlang: making: ") for line in lines)
    assert not logging.getLogger("derivlang").handlers, "the next command is as quiet as before"
    assert "hashing" not in run(*SET, "-o", tmp_path / "b").err


def test_commands_in_groups_take_them_too_and_show_them_once() -> None:
    assert run("grammar", "ls", "-q").code == 0
    assert run("-v", "grammar", "ls", "-v").code == 0
    assert "--quiet" in run("--help").out
    assert "--quiet" not in run("grammar", "ls", "--help").out


def test_python_code_gets_warnings_at_its_own_line() -> None:
    with pytest.warns(DerivlangWarning, match="no test split") as found:
        Events().warn("no test split")
    assert found[0].filename == __file__
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn("directly")
    assert [one.filename for one in seen] == [__file__]


def test_the_command_line_prints_warnings_of_python_as_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        before = warnings.showwarning
        with warnings_as_lines():
            for _ in range(3):  # a run opens its text many times
                warn("no test split")
            warnings.warn("of another package", UserWarning, stacklevel=1)
        assert warnings.showwarning is before
    assert [str(one.message) for one in others] == ["of another package"]
    assert capsys.readouterr().err == "derivlang: warning: no test split\n"


@pytest.mark.parametrize("print_it", [echo, say, tell, cli_warn, message])
def test_no_line_holds_what_a_terminal_obeys(print_it: Any, capsys: pytest.CaptureFixture[str]) -> None:
    print_it(f"a word {CONTROLS}")
    said = "".join(capsys.readouterr())
    assert not obeyed(said)
    assert "\\u001b\\u001c" in said


def test_options_with_numbers_become_arguments() -> None:
    names = {"--steps": "steps=", "--mask": "mask="}
    assert in_python("pass --steps 60 --mask 0.2, or --steps", names) == "pass steps=60 mask=0.2, or steps="
    assert in_python("--mask 5%; --steps 60.", names) == "mask= 5%; steps=60."


def test_a_python_warning_holds_no_control_character() -> None:
    with pytest.warns(DerivlangWarning) as found:
        warn(f"a word {CONTROLS}")
    assert not obeyed(str(found[0].message))


@given(st.text(st.sampled_from(CONTROLS + '"\\é')))
def test_escapes_in_json_mean_the_same_characters(text: str) -> None:
    for ascii in (False, True):
        line = visible(json.dumps(text, ensure_ascii=ascii))
        assert json.loads(line) == text
        assert not obeyed(line)


@pytest.mark.parametrize("arguments", [["\x1b[8mx"], ["show", "--\x1b[8mx", "a"], ["verify", "\x1b[8mx"]])
def test_what_was_typed_is_shown_as_it_is(arguments: list[str]) -> None:
    """A shell completes the names of other people's files."""
    assert not obeyed(run(*arguments, code=None).err)


def test_commands_print_by_echo_alone() -> None:
    """So that no printed line, of any command, holds a control character of a word."""
    for path in (ROOT / "derivlang").rglob("*.py"):
        found = re.findall(r"\bclick\.s?echo\(|\bsys\.std(?:out|err)\.write\(", path.read_text("utf-8"))
        assert len(found) == 2 * (path.parent.name == "cli" and path.name == "messages.py"), path


def test_stages_are_logged_for_whoever_listens(caplog: pytest.LogCaptureFixture) -> None:
    with stage("unheard", "rows", 3):
        pass
    with caplog.at_level(logging.DEBUG, "derivlang"), stage("sorting", "rows", 3000):
        pass
    assert [record.getMessage() for record in caplog.records] == ["sorting: 3,000 rows, 0.0 s"]


@pytest.mark.parametrize("name", ["d", "my d", "a,b", "it's"])
def test_commands_of_messages_are_typed_as_they_stand(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell takes each path and spec as one word, whatever it holds."""
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.txt").write_text("the le\nhouse maison\n", "utf-8")
    Path(f"{name}-2.txt").write_text("the le\ncat\n", "utf-8")
    spec = str(Pipeline.parse(f'lex:"{name}.txt"'))
    said = run("make", "--t", spec, "demo", "-o", f"{name}-set").err
    said += run("make", "--t", "trans:overlap=25", "demo", "-o", f"{name}-2").err
    said += run("tokenizer", "train", f"{name}-set", "-o", f"{name}-tok", "--vocab-size", 300).err
    said += str(read_dictionary(Path(f"{name}-2.txt")).warning(Path(f"{name}-2.txt")))
    for command in (
        ["derivlang", "tokenizer", "twin", f"{name}-tok", "--t", spec],
        ["derivlang", "dict", "check", f"{name}-2.txt"],
        ["derivlang", "verify", f"{name}-2"],
        ["--lexicon", f"{name}-2/lexicon.tsv"],
    ):
        assert shlex.join(command) in said
