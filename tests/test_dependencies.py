"""Options that depend on others: what is declared, is said on help pages and checked everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from derivlang.cli.generated import HeadedCommand
from derivlang.cli.main import COMMANDS, main
from derivlang.cli.types import DependentOption
from derivlang.core.dependencies import OptionNeeds, check_dependencies
from derivlang.core.errors import UsageError


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, the groups aside, by its words."""

    def of(group: click.Group, words: tuple[str, ...], names: list[str]) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in names:
            found = group.get_command(context, name)
            assert found is not None
            if isinstance(found, click.Group):
                yield from of(found, (*words, name), found.list_commands(context))
            else:
                yield " ".join((*words, name)), found

    return of(main, (), list(COMMANDS))


DEPENDENT = [
    (name, command, option)
    for name, command in commands()
    for option in command.params
    if isinstance(option, DependentOption) and option.needs not in (None, OptionNeeds())
]


@pytest.mark.parametrize(("name", "command", "option"), DEPENDENT, ids=[f"{n} {o.name}" for n, _, o in DEPENDENT])
def test_a_command_has_the_options_that_another_depends_on(
    name: str, command: click.Command, option: DependentOption
) -> None:
    needs = option.needs
    assert needs is not None
    others = [one for text in (needs.only_with, needs.requires, needs.excludes) for one in text.split(", ") if one]
    known = {spelling for one in command.params for spelling in (*one.opts, (one.name or "").upper())}
    assert set(others) <= known - set(option.opts)
    record = option.get_help_record(click.Context(command))
    assert record is not None
    help = " ".join(record[1].split())
    assert all(other in help for other in others)


@pytest.mark.parametrize(
    ("needs", "given", "told"),
    [
        (OptionNeeds(only_with="--a, --b"), {"--b"}, None),
        (OptionNeeds(only_with="--a, --b"), {"--c"}, "--x: has no effect without --a or --b"),
        (OptionNeeds(requires="--a, --b"), {"--a", "--b"}, None),
        (OptionNeeds(requires="--a, --b"), {"--a"}, "--x: needs --b, too"),
        (OptionNeeds(excludes="--a, SOURCE"), {"--b"}, None),
        (OptionNeeds(excludes="--a, SOURCE"), {"SOURCE"}, "--x: cannot be given with SOURCE"),
    ],
)
def test_the_check(needs: OptionNeeds, given: set[str], told: str | None) -> None:
    check_dependencies({}, given)
    if told is None:
        check_dependencies({"--x": needs}, given)
        return
    with pytest.raises(UsageError) as error:
        check_dependencies({"--x": needs}, given)
    assert str(error.value).startswith(told)


def test_help_shows_the_usual_options_and_help_all_shows_all() -> None:
    usual, every = (CliRunner().invoke(main, ["pretrain", flag]).output for flag in ("--help", "--help-all"))
    command = main.get_command(click.Context(main), "pretrain")
    assert isinstance(command, HeadedCommand)
    flags = {
        next(name for name in one.opts if name.startswith("--")): one.name
        for one in command.params
        if isinstance(one, click.Option) and not one.hidden
    }

    def shown(page: str) -> set[str | None]:
        return {name for flag, name in flags.items() if re.search(rf"^  (-\w, )?{flag}(?![\w-])", page, re.MULTILINE)}

    assert shown(every) == set(flags.values())
    assert shown(usual.partition("Options:")[2]) == {*command.usual, "help_all"}
    assert f"--help-all shows {len(flags) - len(command.usual) - 1} more." in usual
