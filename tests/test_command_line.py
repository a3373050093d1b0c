"""Every command as people mistype it: hostile values for each argument and option, found by walking click's parameters.

Each gives exit code 1 or 2 and a message, never a traceback, and leaves nothing behind in the current folder.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from derivlang.cli.main import COMMANDS, main
from derivlang.cli.types import SpecOption, Value
from derivlang.commands.folders import default_folder
from tests import commands
from tests.commands import forked, run

Words = tuple[str, ...]

HUGE = "9" * 20
NUMBERS = ("-1", HUGE, f"-{HUGE}", "9" * 5000, "1.5", "", "x")
PATHS = ("", "a\0b", b"caf\xe9".decode(errors="surrogateescape"), "x" * 5000, "/dev/null/x")


def every_command() -> Iterator[tuple[Words, click.Command]]:
    """The words of each command that can be run, and the command."""
    context = click.Context(main)
    for name in COMMANDS:
        found = main.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from (((name, inner), command) for inner, command in sorted(found.commands.items()))
        else:
            yield (name,), found


EVERY = list(every_command())
NAMES = [" ".join(words) for words, _ in EVERY]


def takes_path(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.Path) or parameter.name in ("source", "derived", "grammar", "parser")


def command_line(words: Words, command: click.Command, changed: click.Parameter, value: str) -> list[str]:
    """The command with its required parameters and one that has this value."""
    line: list[str] = list(words)
    arguments: list[str] = []
    for parameter in command.params:
        text = value if parameter is changed else sample(parameter)
        if isinstance(parameter, click.Argument):
            arguments.append(text)
        elif parameter is changed or parameter.required:
            line.append(f"{parameter.opts[0]}={text}" if parameter.opts[0].startswith("--") else parameter.opts[0])
            line += [] if parameter.opts[0].startswith("--") else [text]
    return [*line, "--", *arguments]


def sample(parameter: click.Parameter) -> str:
    """A value that is right in form; the files it names are not there."""
    if isinstance(parameter, SpecOption):
        return "trans,inv"
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    return "1" if is_number(parameter) else "no-such-thing"


def is_number(parameter: click.Parameter) -> bool:
    """Whether a parameter is a whole number."""
    return isinstance(parameter.type, Value) and parameter.type.one.item is int


def cases() -> Iterator[object]:
    for words, command in EVERY:
        for parameter in command.params:
            values: tuple[str, ...] = ()
            if is_number(parameter):
                values = NUMBERS
            elif takes_path(parameter):
                values = PATHS
            elif isinstance(parameter, SpecOption):
                values = ("", " ", ",", "trans,", "a\0b", "trans:" + "x" * 5000)
            elif parameter.name in ("splits", "columns", "cells", "as_published", "tasks", "regimes", "measures"):
                values = ("", ",", " , ")
            if values:
                yield pytest.param(words, command, parameter, values, id=f"{' '.join(words)} {parameter.name}")


@pytest.mark.parametrize(("words", "command", "parameter", "values"), list(cases()))
def test_a_hostile_value_is_one_clear_message(
    words: Words,
    command: click.Command,
    parameter: click.Parameter,
    values: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in values:
        line = command_line(words, command, parameter, value)
        result = CliRunner().invoke(main, line)
        shown = ascii(line)[:300]
        assert isinstance(result.exception, SystemExit), (shown, result.exception)
        assert result.exit_code in (1, 2), (shown, result.output)
        assert result.stderr.strip(), shown
        assert "Traceback" not in result.output, shown
        assert len(result.stderr) < 2500, (shown, "a message does not repeat thousands of characters")
        assert not list(tmp_path.iterdir()), (shown, "something was left behind")


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_whole_numbers_and_paths_have_a_type_that_checks_them(words: Words, command: click.Command) -> None:
    for parameter in command.params:
        assert not isinstance(parameter.type, (click.types.IntParamType, click.IntRange)), parameter.name
        assert type(parameter.type) is not click.Path, parameter.name


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_a_folder_where_a_file_is_needed_and_the_reverse(words: Words, command: click.Command, tmp_path: Path) -> None:
    file, folder = commands.written(tmp_path / "file", "x\n"), tmp_path / "folder"
    folder.mkdir()
    for parameter in command.params:
        kind = parameter.type
        if not isinstance(kind, click.Path) or (kind.file_okay and kind.dir_okay):
            continue
        wrong = folder if kind.file_okay else file
        result = CliRunner().invoke(main, command_line(words, command, parameter, str(wrong)))
        assert result.exit_code == 2, result.output
        assert str(wrong) in result.stderr.replace("\n", "")
        assert ("is a directory" if kind.file_okay else "is a file") in result.stderr


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_every_help_page_ends_with_an_example(words: Words, command: click.Command) -> None:
    page = run(*words, "--help").out
    text = page.partition("\nOptions:")[0].rstrip().splitlines()
    assert text[-1].strip().startswith(f"derivlang {' '.join(words)}"), text[-1]


@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_a_required_option_that_is_not_given_is_missing(words: Words, command: click.Command) -> None:
    for option in (one for one in command.params if isinstance(one, click.Option) and one.required):
        with pytest.raises(click.MissingParameter):
            option.handle_parse_result(click.Context(command), {}, [])


@pytest.mark.parametrize("spelling", ["--t", "-t", "--transform"])
@pytest.mark.parametrize(("words", "command"), EVERY, ids=NAMES)
def test_spellings_of_the_transforms(words: Words, command: click.Command, spelling: str) -> None:
    specs = [p for p in command.params if p.name == "spec"]
    if not specs:
        return
    assert isinstance(specs[0], SpecOption)
    assert spelling in specs[0].opts
    page = run(*words, "--help").out
    assert "--t TEXT" in page
    assert "--transform" not in page


def test_spellings_mean_the_same() -> None:
    shown = [run("show", spelling, "inv", "a b c .").out for spelling in ("--t", "-t", "--transform")]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("sohw", "show"), ("mkae", "make"), ("verfy", "verify"), ("grammar shwo", "show"), ("parser scroe", "score"),
     ("align trian", "train"), ("tokenizer twinn", "twin"), ("make --spilts x demo", "--splits")],
)  # fmt: skip
def test_a_mistyped_name_is_answered_with_a_near_one(typed: str, meant: str) -> None:
    ran = run(*typed.split(), code=2)
    assert "did you mean" in ran.err.lower()
    assert meant in ran.err


def test_a_mistyped_choice_lists_the_choices() -> None:
    ran = run("export", "OUT", "--format", "jsnol", code=2)
    assert "jsonl" in ran.err


# Default outputs


def named(source: str, spec: str = "", last: str = "", **options: object) -> str:
    return str(default_folder(source, spec, options, last=last))


def test_plain_names_are_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands.written(tmp_path / "my-corpus.txt.gz", "")
    assert named("wikitext103", "trans,inv") == "wikitext103.trans-inv"
    assert named("ner:fr", "trans") == "ner-fr.trans"
    assert named("pos:French-GSD", "syn,inv") == "pos-French-GSD.syn-inv"
    assert named("my-corpus.txt.gz", "perm") == "my-corpus.txt.gz.perm"
    assert named("./my-corpus.txt.gz", "perm") == "my-corpus.txt.gz.perm"
    assert named("demo", last="tokenizer") == "demo.tokenizer"
    assert named("wikitext2", "trans,inv", last="align-mlm") == "wikitext2.trans-inv.align-mlm"


def test_names_tell_apart_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("a/x.txt", "b/x.txt", "x.txt", "ner-fr/x.tsv", "ünï cöde.txt", ".hidden.txt", "x y.txt", "x-y.txt"):
        commands.written(tmp_path / path, "")
    long = ",".join(f"perm:window={n}" for n in range(40))
    different = [
        ("x.txt", "trans"), ("a/x.txt", "trans"), ("b/x.txt", "trans"), (str(Path("/elsewhere/x.txt")), "trans"),
        ("ner:fr", "trans"), ("ner-fr", "trans"), ("hub:ner/fr", "trans"), ("hub:ner-fr", "trans"),
        ("demo", "trans,inv"), ("demo", "trans:overlap=25,perm:window=3"), ("demo", "trans:overlap=253,perm:window="),
        ("demo", "syn:ja@N~ga@V"), ("demo", "syn:ja@N~ga,V"), ("demo", long), ("demo", long + ",inv"), (long, "inv"),
        ("demo", "mallows:2"), ("demo", "mallows:-2"),
        ("ünï cöde.txt", "inv"), (".hidden.txt", "inv"), ("x y.txt", "inv"), ("x-y.txt", "inv"),
    ]  # fmt: skip
    found = [named(source, spec) for source, spec in different]
    found += [named("demo", "inv", limit=5), named("demo", "inv", limit=6), named("demo", "inv", splits="limit=5")]
    assert len(set(found)) == len(found)
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert name.isascii()
        assert not set(name) & set('/\\:*?"<>|=@~, ')
        assert name[0] not in ".-"
        assert len(name) < 200
    assert found == [named(source, spec) for source, spec in different] + found[-3:]


def test_make_without_an_output_and_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DERIVLANG_DATA", str(commands.wikitext103(tmp_path)))
    first = run("make", "--t", "trans,inv", "wikitext103", "--json")
    assert first.err.splitlines()[0] == f"derivlang: writing to wikitext103.trans-inv{os.sep}"
    assert first.json["out"] == "wikitext103.trans-inv"
    before = commands.snapshot(tmp_path / "wikitext103.trans-inv")
    again = run("make", "-t", "trans, inv", "wikitext103")
    assert f"wikitext103.trans-inv{os.sep} is already complete: nothing to do" in again.err
    assert commands.snapshot(tmp_path / "wikitext103.trans-inv") == before
    other = run("make", "--t", "trans,inv", "wikitext103", "--limit", 1, "--json")
    assert other.json["out"].startswith("wikitext103.trans-inv.limit-1.")
    refused = run("make", "--t", "trans,inv", "wikitext103", "--shard-tokens", 3, code=1)
    assert "other-plan" in refused.err


def test_a_tokenizer_and_its_twin_without_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words, folder in (
        (("train", "demo", "--vocab-size", 400), "demo.vocab_size-400."),
        (("twin", "TOK", "--t", "trans"), "TOK.trans"),
    ):
        first = run("tokenizer", *words, "--json")
        out = first.json["out"]
        assert out.startswith(folder)
        assert first.err == f"derivlang: writing to {out}{os.sep}\n"
        again = run("tokenizer", *words, "--json")
        assert again.json == first.json
        assert f"{out}{os.sep} is already complete" in again.err
        Path(out).rename("TOK") if words[0] == "train" else None
    (tmp_path / "TOK.trans" / "tokenizer.json").write_text("{}")
    damaged = run("tokenizer", "twin", "TOK", "--t", "trans", code=1).err
    assert "TOK.trans/tokenizer.json: was changed since it was made" in damaged
    assert "or --force" in damaged


def test_pretraining_without_an_output_goes_on_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    typed = ("pretrain", "--source", "demo", "-t", "trans,inv", "--vocab-size", 300, "--steps", 2, "--json")
    first = run(*typed)
    out = first.json["out"]
    assert out.startswith("demo.trans-inv.steps-2-vocab_size-300.mlm.")
    assert first.err == f"derivlang: writing to {out}{os.sep}\n"
    again = run(*typed)
    assert again.json == first.json
    assert again.err.endswith(f"derivlang: {out}{os.sep} is already complete: nothing to do\n")


# Standard output


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("derived")
    commands.make("trans,inv", commands.wiki(folder, commands.WIKI * 200), folder / "out")
    return folder / "out"


TO_OUTPUT: list[Words] = [
    ("undo", "{}"), ("export", "{}", "--format", "pharaoh"), ("export", "{}", "--format", "jsonl"),
    ("pair", "{}", "--format", "pharaoh"), ("pair", "{}", "--format", "parquet"),
    ("dict", "{}"), ("dict", "{}", "--format", "tsv"), ("dict", "{}", "--format", "json"),
    ("align", "train", "en.txt", "fr.txt"),
]  # fmt: skip
# Each command runs in a child of one process that has loaded the command line; the child ends as a program does. Its
# standard output is a pipe that nobody reads, or a full disk.
DRIVER = """
import json, os, sys
from derivlang.cli.main import run
import derivlang.align.align, derivlang.api, derivlang.lexical.pairs, derivlang.store.export
for number, (arguments, stdout) in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if child:
        print(number, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(f"{number}.err", os.O_WRONLY | os.O_CREAT), 2)
    if stdout == "pipe":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open(stdout, os.O_WRONLY)
    os.dup2(writing, 1)
    os.close(writing)
    sys.argv[1:] = arguments
    run()
    sys.exit(0)
"""


def to_output(line: Words, derived: Path) -> list[str]:
    return [str(derived) if word == "{}" else word for word in line]


@pytest.fixture(scope="module")
def cut_short(derived: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Words, str], tuple[int, str]]:
    """The exit code and the errors of each line of `TO_OUTPUT`, for a closed pipe and a full disk."""
    folder = texts(tmp_path_factory.mktemp("cut"))
    jobs = [(line, stdout) for line in TO_OUTPUT for stdout in ("pipe", "/dev/full")]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([(to_output(line, derived), stdout) for line, stdout in jobs]).encode(),
        capture_output=True,
        cwd=folder,
        env=commands.environment(),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    codes = [int(line.split()[1]) for line in done.stdout.decode().splitlines()]
    errors = [(folder / f"{number}.err").read_text("utf-8") for number in range(len(jobs))]
    return dict(zip(jobs, zip(codes, errors, strict=True), strict=True))


def texts(folder: Path) -> Path:
    """A folder with what `align train` reads."""
    commands.written(folder / "en.txt", "the cat sleeps\na cat\n" * 2000)
    commands.written(folder / "fr.txt", "le chat dort\nun chat\n" * 2000)
    return folder


@pytest.mark.parametrize("line", TO_OUTPUT, ids=" ".join)
def test_the_file_goes_to_standard_output_and_talk_to_standard_error(
    line: Words,
    derived: Path,
    cut_short: dict[tuple[Words, str], tuple[int, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts(tmp_path)
    words = to_output(line, derived)
    suffix = {"tsv": ".tsv", "json": ".json", "parquet": ".parquet"}.get(line[-1], ".txt")
    monkeypatch.chdir(tmp_path)
    run(*words, "-o", f"x{suffix}")
    done = forked(*words)
    assert done.out.encode(errors="surrogateescape") == (tmp_path / f"x{suffix}").read_bytes()
    assert "standard output" in done.err
    as_json = forked(*words, "--json")
    assert as_json.out == done.out
    assert as_json.err.startswith("{")
    # A reader that stops early, and a disk that is full: never exit 0 after half a file
    code, error = cut_short[line, "pipe"]
    assert code != 0
    assert "Traceback" not in error
    assert "Exception" not in error
    code, error = cut_short[line, "/dev/full"]
    assert code == 1
    assert "No space left" in error
    assert "Traceback" not in error
    assert "Exception" not in error


def test_what_needs_several_files_asks_for_a_name(derived: Path) -> None:
    for line in (
        ("pair", derived, "--format", "text"),
        ("dict", derived, "--heldout", 10),
    ):
        ran = run(*line, code=2)
        assert ran.out == ""
        assert "-o" in ran.err


def test_parquet_is_not_written_to_a_terminal(derived: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pty = pytest.importorskip("pty")

    parent, child = pty.openpty()
    typed = [sys.executable, "-m", "derivlang", "pair", str(derived), "--format", "parquet"]
    done = subprocess.run(typed, stdout=child, stderr=subprocess.PIPE, env=commands.environment(), timeout=60)
    os.close(child)
    with suppress(OSError):  # Linux: nothing was written, and the other side is closed
        assert os.read(parent, 100) == b""
    os.close(parent)
    assert done.returncode == 2
    assert b"-o FILE" in done.stderr


def test_printed_results_are_not_lost_in_silence() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "derivlang", "ls"], stdout=full, stderr=subprocess.PIPE, env=commands.environment()
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert b"Exception" not in done.stderr


# Treebanks by name


def test_a_treebank_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data" / "ud" / "UD_English-Tiny"
    for split in ("train", "test"):
        commands.written(folder / f"en_tiny-ud-{split}.conllu", commands.TREES)
    monkeypatch.chdir(tmp_path)
    named_ = run("parser", "score", "english", "UD_English-Tiny", "--data-dir", tmp_path / "data", "--json").json
    assert named_ == run("parser", "score", "english", folder, "--json").json
    monkeypatch.setenv("DERIVLANG_DATA", str(tmp_path / "data"))
    assert run("parser", "score", "english", "UD_English-Tiny", "--json").json == named_
    missing = run("parser", "score", "english", "UD_English-Other", code=1)
    assert "UD_English-Other" in missing.err
    assert str(tmp_path / "data") in missing.err


@pytest.mark.parametrize(
    "command",
    [
        "dict check d.txt --format tsv",
        "parse demo --force",
        "parse demo --shard-tokens 100",
        "parse demo -o out --parses parses",
        "study align-mlm-tiny --array --rate 5",
        "study align-mlm-tiny --array --workers 7",
        "study align-mlm-tiny --data-only --workers 7",
        "parser score english x.conllu --split train",
        "grammar fit x.conllu --dev x.conllu --l2 2 --thin 0.5",
        "grammar fit x.conllu --dev x.conllu --l2 2 --classes V",
        "grammar fit x.conllu --classes V,ADJ --thin 0.5",
        "grammar score fr x.conllu --mix 0.5",
        "grammar probs --superstrate fr --mix 0.5 --head VERB --nodes @VERB&@",
        "show set --header",
        "show --t inv --text-column a Hello",
        "show --t inv --split train Hello",
        "make --t trans demo --parser english",
        "make --t syn demo --parser english",
    ],
)
def test_an_option_without_effect_is_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.txt").write_text("dog chien\n")
    (tmp_path / "x.conllu").touch()
    for folder in ("tok", "set"):
        (tmp_path / folder).mkdir()
    message = run(*command.split(), code=2).err
    flag = re.match(r"derivlang: (--[a-z-]+): ", message)
    assert flag is not None
    assert flag[1] in command
    assert message.rpartition(" [")[2].startswith(("unused-option]", "two-options]"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("make --t inv demo:qa --parses parses", "inv needs no trees, so --parses has no effect"),
        ("make --t inv demo:qa --limit 2 --shard-tokens 9", "under --limit no file is cut, so --shard-tokens"),
        ("make --t inv demo:qa --shard-tokens 9", "--shard-tokens does not cut"),
        ("make --t inv long.txt.gz --words space --shard-tokens 9", "not cut long.txt.gz: only plain"),
        (
            "make --t inv short.txt --words space --shard-tokens 1",
            "not cut short.txt: only plain",
        ),
        ("make --t inv rows.jsonl --answers atomic --shard-tokens 9", "not cut rows.jsonl: --answers atomic"),
        ("make --t inv long.txt --words space --shard-tokens 9", ""),
        ("make --t inv demo:qa --shard-tokens 20000000", ""),
        ("make --t inv short.txt --words space --data-dir none", "so --data-dir has no effect on short.txt"),
        ("make --t inv demo:qa", ""),
        ("derive --t inv --lang zz --words space Hello", "so the language 'zz' has no effect"),
        ("show --t inv --lang zz --words unicode Hello", "so the language 'zz' has no effect"),
        ("show --t inv --lang de Hello", ""),
    ],
)
def test_an_option_without_effect_is_told(
    command: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DERIVLANG_DATA", raising=False)
    text = "One line .\n" + "Another line .\n" * 20
    (tmp_path / "long.txt").write_text(text)
    (tmp_path / "short.txt").write_text("One line .\n")
    with gzip.open(tmp_path / "long.txt.gz", "wt") as file:
        file.write(text)
    answers = {"text": ["line"], "answer_start": [4]}
    row = json.dumps({"id": "1", "context": "One line .", "question": "What ?", "answers": answers})
    (tmp_path / "rows.jsonl").write_text(f"{row}\n" * 9)
    warnings = [line for line in run(*command.split()).err.splitlines() if "warning" in line]
    assert len(warnings) == bool(told)
    assert told in "".join(warnings)


def test_letters_that_standard_output_lacks_are_escaped() -> None:
    line = commands.command_line("show", "--t", "trans", "Hello")
    ran = subprocess.run(
        line, env=commands.environment(PYTHONIOENCODING="latin-1", PYTHONUTF8="0"), capture_output=True, check=False
    )
    assert ran.returncode == 0
    assert b"\\u1cb0" in ran.stdout


def test_a_seed_without_effect_is_told(tmp_path: Path) -> None:
    for spec, told in (("inv", True), ("perm:seed=3", True), ("trans,perm", False)):
        ran = run("make", "--t", spec, "demo:qa", "--seed", 5, "-o", tmp_path / spec.replace(":", "-"))
        assert ("takes a seed from --seed" in ran.err) == told


def test_only_commands_that_go_on_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("derivlang.store.verify.verify", interrupt)
    monkeypatch.setattr("derivlang.engine.make.find", interrupt)
    (tmp_path / "derivlang.json").write_text("{}")
    assert run("verify", tmp_path, code=130).err.strip() == "derivlang: interrupted"
    assert "same command" in run("-q", "make", "--t", "inv", "demo", "-o", tmp_path / "out", code=130).err


def test_arguments_that_python_does_not_read_as_utf8() -> None:
    words = [sys.executable, "-m", "derivlang", "derive", "--t", "inv", "\u00e7a va"]
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    ended = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "set PYTHONUTF8=1" in ended.stderr


@pytest.mark.parametrize(
    ("words", "joined", "taken"),
    [
        (["make", "--t", "trans", "inv", "demo"], "trans,inv", "'inv' was taken for the source"),
        (["make", "demo", "--t", "trans", "inv"], "trans,inv", "'inv' was taken for a further argument"),
        (["make", "--t", "trans,", "perm:window=3", "inv", "demo"], "trans,perm:window=3,inv", "'perm:window=3' was"),
        (["make", "--t", "trans", "inv"], "trans,inv", "'inv' was taken for the source"),
        (["dict", "--t", "trans", "inv", "demo"], "trans,inv", "'inv' was taken for the source"),
        (["derive", "--t", "trans", "inv", "hello"], "trans,inv", "'inv' was taken for the text"),
        (["tokenizer", "twin", "--t", "trans", "inv", "DIR"], "trans,inv", "'inv' was taken for the tokenizer"),
    ],
)
def test_transforms_that_are_words_of_their_own(words: list[str], joined: str, taken: str) -> None:
    told = run(*words, code=2).err
    assert f"commas join transforms: --t {joined}; {taken}" in told


def test_a_command_without_arguments_refuses_one() -> None:
    assert "(demo); give the source as --source" in run("pretrain", "demo", "--t", "trans,inv", code=2).err


def test_a_word_with_the_name_of_a_transform_may_be_a_text_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("derive", "--t", "inv", "inv").out == "inv\n"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inv").mkdir()
    commands.wiki(tmp_path / "inv")
    run("make", "--t", "trans", "inv", "-o", "out")
    assert "unexpected extra argument" in run("make", "--t", "trans", "demo", "x", code=2).err
