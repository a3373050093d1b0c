"""Declared settings: what help pages show, what files may give and what is recorded come from one declaration."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

from derivlang.align.settings import AlignScoreOptions, AlignTrainOptions
from derivlang.cli.generated import default_text
from derivlang.cli.main import main
from derivlang.core.errors import UsageError
from derivlang.core.policies import Policies
from derivlang.core.settings import Declared, Settings, declared, given, setting
from derivlang.engine.options import MakeOptions
from derivlang.evaluation.finetune_settings import FinetuneSettings
from derivlang.evaluation.settings import EvaluateNames, EvaluateOptions
from derivlang.grammar.settings import (
    GrammarCountOptions,
    GrammarFitOptions,
    GrammarProbsOptions,
    GrammarScoreOptions,
)
from derivlang.lexical.settings import DictionaryOptions, TokenizerOptions, TwinOptions
from derivlang.parsing.settings import ParserOptions, ParserScoreOptions
from derivlang.store.settings import ExportOptions
from derivlang.studies.settings import Extent, Place
from derivlang.training.plan import settings_of
from derivlang.training.settings import RunPaths, SessionSettings, TrainingSettings
from tests.commands import ROOT, run

# The dataclasses that a command's options come from.
USED = (
    [("pretrain", kind) for kind in (TrainingSettings, SessionSettings, RunPaths)]
    + [("evaluate", kind) for kind in (EvaluateNames, EvaluateOptions, FinetuneSettings)]
    + [("make", kind) for kind in (MakeOptions, Policies)]
    + [("grammar fit", GrammarFitOptions), ("grammar count", GrammarCountOptions)]
    + [("grammar score", GrammarScoreOptions)]
    + [("grammar probs", GrammarProbsOptions), ("align train", AlignTrainOptions), ("align score", AlignScoreOptions)]
    + [("dict", DictionaryOptions), ("tokenizer train", TokenizerOptions), ("tokenizer twin", TwinOptions)]
    + [("parser train", ParserOptions), ("parser score", ParserScoreOptions)]
    + [("export", ExportOptions)]
    + [("study", kind) for kind in (Place, Extent)]
)
EVERY = [
    pytest.param(command, kind, one, id=f"{command} {kind.__name__}.{one.name}")
    for command, kind in USED
    for one in declared(kind).values()
]
MODELS = sorted((ROOT / "derivlang" / "training" / "models").glob("*.toml"))


def option_of(command: str, name: str) -> click.Option:
    found: click.Command | None = main
    for word in command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    option = next(p for p in found.params if p.name == name)
    assert isinstance(option, click.Option)
    return option


def _every(command: str) -> str:
    """The option that shows all options of a command."""
    return "--help-all" if command == "pretrain" else "--help"


@pytest.mark.parametrize(("command", "kind", "one"), EVERY)
def test_a_setting_has_one_option_with_its_help_and_its_default(command: str, kind: type, one: Declared) -> None:
    if one.option is None:
        return
    option = option_of(command, one.name)
    assert one.option in option.opts
    assert option.help is not None
    assert option.help.startswith(one.help_text)
    page = " ".join(run(*command.split(), _every(command)).out.split()).replace(
        "- ", "-"
    )  # a line may end after a hyphen
    shown = f"{' '.join(one.help_text.split())} ".replace("- ", "-")
    assert shown in page
    after = page.partition(shown)[2]
    found = re.match(r"\[default: ([^\]]*)\]", after)
    if one.unset:
        assert found is not None
        assert found[1] == one.unset
    elif one.default is None or one.default is False or one.default in ("", ()):
        assert found is None
    else:
        assert found is not None
        assert found[1].replace(" ", "") == default_text(one).replace(" ", "")  # a line may end anywhere


@pytest.mark.parametrize(("command", "kind", "one"), EVERY)
def test_help_is_a_noun_phrase_and_of_a_flag_a_command(command: str, kind: type, one: Declared) -> None:
    assert one.help[0].isupper()
    assert one.help.endswith(".")
    assert not re.match(r"(The|A|An|Of|Whether) ", one.help)
    assert one.kind is bool or not re.match(r"(Use|Let|Give|Take|Tie) ", one.help)


@pytest.mark.parametrize(("command", "kind", "one"), EVERY)
def test_a_default_passes_its_own_check(command: str, kind: type, one: Declared) -> None:
    if one.name != "steps":  # which has none: a model's file, or an option, must give it
        one.check(one.default)


@pytest.mark.parametrize(("command", "kind", "one"), EVERY)
def test_a_bound_is_the_same_for_the_option_and_for_the_api(
    command: str, kind: type, one: Declared, tmp_path: Path
) -> None:
    if one.kind is not int or one.option is None:
        return
    assert one.minimum is not None
    value = int(one.minimum) - 1
    with pytest.raises(UsageError) as caught:
        one.check(value)
    text, folder = tmp_path / "a.txt", tmp_path / "run"
    text.write_text("a\n")
    folder.mkdir()
    asked: dict[str, list[object]] = {  # what click asks for before values are checked
        "pretrain": ["--source", "demo", "--t", "trans", "-o", folder],
        "make": ["--t", "trans", folder],
        "grammar score": ["fr", text],
        "align train": [text, text],
    }
    ran = run(*command.split(), *asked.get(command, [folder]), one.option, value, code=2)
    assert str(caught.value) == f"{one.option}: must be at least {one.minimum:,}, got {value} [bad-value]"
    assert str(caught.value) in ran.err


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_what_is_the_models_stands_in_its_file(path: Path) -> None:
    training = tomllib.loads(path.read_text("utf-8"))["training"]
    for one in declared(TrainingSettings).values():
        assert (one.unset == "the model's") == (one.name in training), one.name
        assert one.in_file or one.name not in training


def test_what_is_not_given_is_the_declared_default() -> None:
    options: dict[str, Any] = {p.name: p.get_default(click.Context(main)) for p in _pretrain().params if p.name}
    found, model_config, log_settings = settings_of("demo", {**options, "spec": "trans"})
    for one in declared(TrainingSettings).values():
        if one.name in model_config.training:
            assert getattr(found, one.name) == model_config.training[one.name]
        elif one.name not in ("precision", "language_ids"):  # of the machine, of the objective
            assert getattr(found, one.name) == one.default
    assert log_settings == dataclasses.replace(SessionSettings(), compile=log_settings.compile)


def test_a_file_gives_what_the_command_line_gives(tmp_path: Path) -> None:
    wanted = {
        "batch_size": 6,
        "weight_decay": 0.5,
        "tie": False,
        "packing": "stream",
        "dict_seed": 7,
        "clip": 0.5,
    }
    text = next(path for path in MODELS if path.stem == "tiny").read_text("utf-8").replace("batch_size = 4\n", "")
    lines = [f"{name} = {json.dumps(value)}" for name, value in wanted.items()]
    (tmp_path / "mine.toml").write_text(text + "\n".join(lines), "utf-8")
    asked = {"objective": "mlm", "spec": "trans"}
    by_file, _, _ = settings_of("demo", {**asked, "model": str(tmp_path / "mine.toml")})
    by_options, _, _ = settings_of("demo", {**asked, **wanted, "model": "tiny"})
    assert dataclasses.replace(by_file, model="tiny") == by_options
    # The command line has the last word.
    found, _, _ = settings_of("demo", {**asked, "model": str(tmp_path / "mine.toml"), "batch_size": 4})
    assert found.batch_size == 4


def _pretrain() -> click.Command:
    found = main.get_command(click.Context(main), "pretrain")
    assert found is not None
    return found


# the declarations themselves


@dataclasses.dataclass(frozen=True)
class Example(Settings):
    plain: int = 3
    count: int = setting(1, "Number.", minimum=1, maximum=9)
    share: float = setting(0.5, "Share.", above=0, below=1)
    text: str | None = setting(None, "Text.")
    yes: bool = setting(False, "Yes.")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "--count: must be at least 1, got 0"),
        ({"count": 10}, "--count: must be at most 9, got 10"),
        ({"count": 1.0}, "--count: must be a whole number, got 1.0"),
        ({"count": True}, "--count: must be a whole number, got True"),
        ({"count": None}, "--count: must be a whole number, got None"),
        ({"share": 0}, "--share: must be above 0, got 0"),
        ({"share": 1.0}, "--share: must be below 1, got 1.0"),
        ({"share": float("nan")}, "--share: must be a finite number, got nan"),
        ({"text": True}, "--text: must be text, got True"),
        ({"yes": 1}, "--yes: must be true or false, got 1"),
    ],
)
def test_a_wrong_value_is_named_by_its_option(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Example(**values)


def test_given_leaves_out_what_was_not_asked_for() -> None:
    options = {"plain": 5, "count": 2, "share": None, "yes": False, "other": 1}
    assert given(Example, options) == {"count": 2, "yes": False}
    assert Example(**given(Example, options)) == Example(count=2)


@pytest.mark.parametrize("command", ["pretrain", "evaluate"])
def test_the_learning_rate_has_one_name_in_both_commands(command: str) -> None:
    """And the older name of each means the same; the help page shows both."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    for spelling in ("--lr", "--learning-rate"):
        (option,) = (p for p in found.params if spelling in p.opts)
        values = found.make_parser(click.Context(found)).parse_args(["RUN", spelling, "3e-4"])[0]
        assert values[option.name] == ["3e-4"]
        assert spelling in run(*command.split(), _every(command)).out
